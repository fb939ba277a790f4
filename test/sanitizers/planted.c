/*-------------------------------------------------------------------------
 *
 * planted.c
 *	  Faults that a server with the sanitizers must report, and what it must not.
 *
 * The part "sanitizers" of test/run calls each by its name.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/memutils.h"

PG_MODULE_MAGIC;

#define N 8

/* More than a chunk of a block: palloc gets a block from malloc for it alone. */
#define LARGE (4 * ALLOCSET_DEFAULT_INITSIZE)

static int32 global[N];

/* What compilers cannot see through. */
static volatile int32 past_end = N;
static volatile int32 far = 3 * N;
static volatile int32 largest = PG_INT32_MAX;

static pg_noinline int32 write_to(volatile int32 *array, int32 at);

static int32
write_to(volatile int32 *array, int32 at)
{
	array[at] = at;
	return array[0];
}

PG_FUNCTION_INFO_V1(planted_stack);
Datum
planted_stack(PG_FUNCTION_ARGS)
{
	int32 array[N] = { 0 };

	PG_RETURN_INT32(write_to(array, past_end));
}

PG_FUNCTION_INFO_V1(planted_global);
Datum
planted_global(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(write_to(global, past_end));
}

PG_FUNCTION_INFO_V1(planted_block);
Datum
planted_block(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(write_to(palloc(LARGE), LARGE / sizeof(int32)));
}

PG_FUNCTION_INFO_V1(planted_freed);
Datum
planted_freed(PG_FUNCTION_ARGS)
{
	int32 *block = palloc(LARGE);

	pfree(block);
	PG_RETURN_INT32(write_to(block, 0));
}

PG_FUNCTION_INFO_V1(planted_index);
Datum
planted_index(PG_FUNCTION_ARGS)
{
	struct
	{
		int32 array[N];
		int32 behind[4 * N];
	} inside = { { 0 }, { 0 } };

	inside.array[far] = 1;
	PG_RETURN_INT32(inside.behind[0]);
}

PG_FUNCTION_INFO_V1(planted_overflow);
Datum
planted_overflow(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(largest + 1);
}

/* Is nothing: an error leaves functions that have arrays, whose places on the stack others then use. */
static pg_noinline void throw_from(int32 depth);

static void
throw_from(int32 depth)
{
	int32 array[N] = { 0 };

	if (depth == 0)
		elog(ERROR, "thrown");
	throw_from(depth - 1);
	(void) write_to(array, 0);
}

static pg_noinline int32 fill(int32 depth);

static int32
fill(int32 depth)
{
	volatile char array[256];

	for (size_t i = 0; i < sizeof(array); i++)
		array[i] = (char) i;
	return depth == 0 ? array[1] : fill(depth - 1) + array[0];
}

PG_FUNCTION_INFO_V1(planted_nothing);
Datum
planted_nothing(PG_FUNCTION_ARGS)
{
	MemoryContext context = CurrentMemoryContext;

	PG_TRY();
	{
		throw_from(50);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		FlushErrorState();
	}
	PG_END_TRY();
	PG_RETURN_INT32(fill(20));
}
