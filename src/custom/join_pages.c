/*-------------------------------------------------------------------------
 *
 * join_pages.c
 *	  Inner rows of a GpudsJoin's matches, visited in the order of the heap, a page at a time.
 *
 * Each page is visited once for all matches of a piece.  So pieces have more and more matches, up to what
 * work_mem holds.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"
#include "storage/itemptr.h"

#include "custom/join_state.h"
#include "kernels/core/sort.h"

/* A word of the order has a block, a line pointer, of which pages of any size have fewer, and a number. */
#define POINTER_BITS 14
#define NUMBER_BITS 18

StaticAssertDecl(BLCKSZ / sizeof(ItemIdData) < 1 << POINTER_BITS, "line pointers have their numbers");

/* Entries of a piece that numbers suffice for; how many times as many it has as the one before. */
#define MOST_ENTRIES (INT64CONST(1) << NUMBER_BITS)
#define PIECE_GROWTH 2

/* Memory of a match, beside what is noted of it: its order and TID, too. */
#define MATCH_BYTES (sizeof(GpudsJoinMatch) + 2 * sizeof(uint64))

/* Rows whose matches, and what is noted of them, are on their way to the processor by then. */
#define MATCHES_AHEAD 16
#define NOTED_AHEAD 8

static inline GpudsJoinMatch *
match_at(const GpudsJoinState *state, int64 place)
{
	return &state->matches[state->order[place] & (MOST_ENTRIES - 1)];
}

/* The row of a match is dead for everybody. */
static void
note_dead_match(void *state, int64 place)
{
	gpuds_visible_note_dead(&((GpudsJoinState *) state)->visible,
							&match_at((GpudsJoinState *) state, place)->entry);
}

/* Puts the matches of the piece in the order of the heap. */
static void
order_matches(GpudsJoinState *state)
{
	MemoryContext context = state->css.ss.ps.state->es_query_cxt;
	const int64 n = state->nmatches;

	state->order = MemoryContextAllocHuge(context, Max(n, 1) * sizeof(uint64));
	state->tids = MemoryContextAllocHuge(context, Max(n, 1) * sizeof(uint64));
	for (int64 i = 0; i < n; i++)
	{
		const uint64 tid = state->matches[i].entry.t & ENTRY_TID_MASK;

		state->order[i] = ((tid >> 16) << POINTER_BITS | (tid & 0xFFFF)) << NUMBER_BITS | (uint64) i;
	}
	sort_u64(state->order, state->tids, n);
	for (int64 i = 0; i < n; i++)
	{
		const uint64 tid = state->order[i] >> NUMBER_BITS;

		state->tids[i] = (tid >> POINTER_BITS) << 16 | (tid & ((1 << POINTER_BITS) - 1));
	}
}

/* Begins to visit the rows of all matches of the piece. */
void
gpuds_join_begin_pages(GpudsJoinState *state)
{
	order_matches(state);
	state->fetch.tell_dead = note_dead_match;
	state->fetch.tell_arg = state;
	gpuds_fetch_begin(&state->fetch, state->scan, NULL, state->tids, state->nmatches);
}

/*
 * The next match of the piece whose row the snapshot sees; NULL: there are no more.  The row is in the slot
 * of rows that are looked up, and state->at has the match's number.
 */
const GpudsJoinMatch *
gpuds_join_next_of_pages(GpudsJoinState *state)
{
	const int64 last = state->nmatches - 1;
	int64 place;
	const GpudsJoinMatch *ahead;

	if (!gpuds_fetch_next(&state->fetch, gpuds_visible_slot(&state->visible)))
		return NULL;
	place = gpuds_fetch_place(&state->fetch);
	state->at = (int64) (state->order[place] & (MOST_ENTRIES - 1));
	/* Here, and not in a function that has no other effect: the compiler may leave such a one out. */
	__builtin_prefetch(&match_at(state, Min(place + MATCHES_AHEAD, last))->group);
	ahead = match_at(state, Min(place + NOTED_AHEAD, last));
	if (ahead->noted > 1)
		__builtin_prefetch(&state->noted[ahead->group]);
	return &state->matches[state->at];
}

/* Ends a piece, if there is one. */
void
gpuds_join_end_pages(GpudsJoinState *state)
{
	const int64 most = Min(MOST_ENTRIES, (int64) work_mem * 1024 / (int64) MATCH_BYTES);

	gpuds_fetch_reset(&state->fetch);
	if (state->order == NULL)
		return;
	pfree(state->order);
	pfree(state->tids);
	state->order = state->tids = NULL;
	state->piece = Max(state->piece, Min(PIECE_GROWTH * state->piece, most));
}
