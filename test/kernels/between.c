/*-------------------------------------------------------------------------
 *
 * between.c
 *	  Readers and appliers of structures that are changed in place, one between two accesses of the
 *	  other.
 *
 * After each store of the applier a reader looks at the tree, and between loads of a reader a batch
 * is applied.  So readers see every state that an applier makes, and appliers change what a
 * reader has read in part; by chance of scheduling (beside.c) that is rare.
 *
 *	  usage: between [rounds [seed]]
 *
 *-------------------------------------------------------------------------
 */
#include <stdbool.h>

static void loaded(void);
static void stored(void);

#define AVL_LOADED loaded
#define AVL_STORED stored
#define SKIPLIST_LOADED loaded
#define SKIPLIST_STORED stored

#include "steady_set.h"

static PinSlot pin;
static bool inside;      /* what is between is under way, or a build */
static int seldom;       /* between so many accesses */
static uint64_t between; /* how often something was */
static uint64_t chance;
static bool there[KEYS][TIDS];

/* The functions of this program's own instruction set: the others look at nothing in between. */
static CpuScan
scan_by(uint64_t *random)
{
	(void) random;
	return vtable->number == GPUDS_STRUCTURE_AVL ? avl_cpu_scan : skiplist_cpu_scan;
}

static void
apply(void)
{
	static GpudsOp ops[KEYS * TIDS];
	int64_t n = make_ops(ops, there, &chance);

	CHECK(vtable->cpu.apply(arena, &tree.common, ops, n) == KERNEL_OK);
	vtable->cpu.reclaim(arena, &tree.common, pin_oldest(&pin, 1, 1));
}

static void
read_some(void)
{
	CHECK(next_random(&chance) % (kind == ONE_CHUNK ? 2 : 50) == 0 ? walk(&chance) : look_up(&chance));
}

/* May something be between these accesses? */
static bool
enter(void)
{
	if (inside || next_random(&chance) % (uint64_t) seldom != 0)
		return false;
	between++;
	return inside = true;
}

static bool applying; /* else a reader is at work */

static void
loaded(void)
{
	if (applying || !enter())
		return;
	apply();
	inside = false;
}

static void
stored(void)
{
	if (!applying || !enter())
		return;
	read_some();
	inside = false;
}

/* A tree from its build to its end; it does not grow for long. */
static void
run(void)
{
	memset(&tree, 0, sizeof(tree));
	memset(there, 0, sizeof(there));
	vtable_init(&tree);
	inside = true;
	build();
	inside = false;
	for (int i = 0; i < 10; i++)
	{
		applying = true;
		seldom = 1 + (int) (next_random(&chance) % 10);
		apply();
		applying = false;
		/* so that something is between the accesses of most readers, and they still get on */
		seldom = kind == ONE_CHUNK ? 5 + (int) (next_random(&chance) % 50)
								   : 50 + (int) (next_random(&chance) % 1000);
		for (int r = 0; r < (kind == ONE_CHUNK ? 20 : 1); r++)
		{
			pin_version(&pin, 1, &tree.common.version);
			read_some();
			pin_release(&pin);
		}
		inside = true;
		vtable_verify(vtable, arena, &tree);
		inside = false;
	}
	vtable_drop(vtable, arena, &tree);
	CHECK(arena_used(arena) == 0);
}

int
main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 100;

	chance = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	arena = test_arena((size_t) 32 << 20);
	make_keys();
	for (int d = 0; d < VTABLES; d++)
	{
		vtable = &vtables[d];
		for (kind = 0; !vtable_copies(vtable) && kind < KINDS; kind++)
		{
			for (int r = 0; r < rounds; r++)
				run();
		}
	}
	printf("between: ok, %llu times\n", (unsigned long long) between);
	free(arena);
	return 0;
}
