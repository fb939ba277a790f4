/*-------------------------------------------------------------------------
 *
 * join_state.h
 *	  The state of a GpudsJoin, for join.c, join_batch.c, join_match.c and join_explain.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_CUSTOM_JOIN_STATE_H
#define GPUDS_CUSTOM_JOIN_STATE_H

#include "custom/custom.h"
#include "custom/join.h"
#include "reader/fetch.h"
#include "reader/reader.h"
#include "reader/row_filter.h"
#include "reader/visible.h"
#include "sort/sorter.h"

typedef enum GpudsJoinStage
{
	GPUDS_JOIN_LOAD,    /* get the next batch of outer rows */
	GPUDS_JOIN_MATCHES, /* get the next piece of the batch's matches */
	GPUDS_JOIN_PAIRS,   /* give the pairs of each match */
	GPUDS_JOIN_REST,    /* give outer rows by whether they have a match */
	GPUDS_JOIN_END
} GpudsJoinStage;

/*
 * Equal probes: probes[first] to probes[end - 1].  Where one match is enough for a row, those of rows
 * that have had it go behind the end.
 */
typedef struct GpudsJoinGroup
{
	int64 first;
	int64 end;
	bool settled; /* no further match is wanted */
} GpudsJoinGroup;

typedef struct GpudsJoinMatch
{
	GpudsEntry entry;
	uint32 group; /* or near which shapes it is; or its only outer row, or the first that is noted of it */
	uint8 noted;  /* how many outer rows are known, and then they are all; 0: none is */
	bool visible; /* the snapshot sees the row; unknown if the heap is to be visited anyway */
} GpudsJoinMatch;

typedef struct GpudsJoinState
{
	CustomScanState css;
	JoinType type;
	bool right_semi;
	bool heap_free;
	bool by_pages;       /* else, all rows of a piece are looked up a page at a time */
	bool keeps;          /* outer rows are kept */
	int nouter;          /* columns of the scan tuple that are the outer plan's */
	int ninner;          /* and those behind them, */
	AttrNumber *columns; /* of the inner table, or of the index if that is enough; 0: none */
	int last_column;     /* highest of them */
	bool only_marks;     /* it is enough to know of each outer row whether it has a match */
	bool counts;         /* rows are only counted: columns behind the inner ones have their number; */
	bool counted;        /* it has been given */
	bool asks_for_marks; /* and a GPU is worth asking about that */
	List *tested;        /* conditions that entries must meet to be matches */
	MemoryContext filter_context;
	GpudsRowFilter *filter; /* of these; NULL: none, or it has not been made since the last rescan */
	List *keys;             /* ExprStates */
	/* NULL, or the outer plan's columns that the keys are, and the highest of them; of outer_scan's table */
	AttrNumber *key_columns;
	int last_key_column;
	SeqScanState *outer_scan; /* the outer plan, if its rows may come from its table scan; or NULL */
	ExprState *quals;         /* or NULL */
	Datum *inner_values;      /* of these */
	bool *inner_isnull;
	TupleTableSlot *outer_slot; /* an outer row that was kept */
	Oid index_oid;
	Oid shape_function; /* rows are joined by shapes that points are in; or none */
	Index inner;        /* number of the inner table */

	/* For EvalPlanQual, which joins single rows anew; NULL: it does not */
	PlanState *inner_plan; /* the inner table's row: the inner columns of the scan tuple */
	ExprState *conditions; /* that became keys */

	Relation heap;
	Relation index;     /* NULL: nothing will be executed, or EvalPlanQual's rows are */
	IndexScanDesc scan; /* NULL: no row has been asked for */
	GpudsVisible visible;
	GpudsSideReader side;
	bool wants_side; /* columns of the index that entries do not have */
	GpudsKeyLayout layout;
	GpudsKeyProbe probe;
	GpudsKeyScratch hashes;
	GpudsKeyBytes bytes[GPUDS_KEY_MAX_COLUMNS];

	GpudsJoinStage stage;
	bool outer_end;
	int64 target; /* rows of the next batch */

	/* The batch.  Its arrays have room for size rows and groups_size groups, and stay for the next one. */
	int64 size;
	int64 groups_size;
	MemoryContext batch; /* of the rows that are kept */
	MinimalTuple *rows;
	bool *matched; /* of each */
	int64 nrows;
	GpudsEntry *probes; /* sorted, with numbers of rows */
	int64 nprobes;
	int64 weight;               /* probes that there were before a GPU was asked for marks */
	GpudsJoinGroup *groups;     /* none in a right semijoin, nor of shapes */
	GpudsEntry *keys_of_groups; /* room to sort probes before */
	int64 ngroups;
	int64 group; /* of the last entry, or near which shapes it was */

	GpudsShapes *shapes;  /* of the batch: probes have the numbers of their rows */
	GpudsShapesAt shaped; /* what is left of them for the match at hand */

	GpudsSorter *sorter; /* of a right semijoin, when the outer rows have been read */

	GpudsJoinMatch *matches; /* the piece at hand */
	int64 nmatches;
	int64 matches_size;
	int64 at;     /* match to give pairs of, by its place in the order of the heap if that is visited */
	int64 member; /* probe of its group; -1: the match has not been looked at; of shapes 0 if it is none */
	int64 rest;   /* outer row */
	int64 piece;  /* entries of a piece, at most */

	/* Outer rows that the points of matches are in the shapes of */
	uint32 *noted;
	int64 nnoted;
	int64 noted_size;
	const uint32 *row_at; /* what is left of them for the match at hand, up to row_end; NULL: none is noted */
	const uint32 *row_end;

	/* The piece's rows, if they are visited by pages */
	GpudsFetch fetch;
	uint64 *order; /* TIDs and numbers of matches */
	uint64 *tids;

	GpudsNodeCounters counters;
} GpudsJoinState;

static inline PlanState *
gpuds_join_outer_of(GpudsJoinState *state)
{
	return linitial(state->css.custom_ps);
}

static inline bool
gpuds_join_wants_one_match(const GpudsJoinState *state)
{
	return state->type == JOIN_SEMI || state->type == JOIN_ANTI;
}

static inline bool
gpuds_join_keeps_unmatched(const GpudsJoinState *state)
{
	return state->type == JOIN_LEFT || state->type == JOIN_ANTI;
}

/* Is the index asked about a batch? */
static inline bool
gpuds_join_asks(const GpudsJoinState *state)
{
	return state->shapes ? state->nprobes > 0 : state->ngroups > 0;
}

/*
 * The scan tuple as its columns have been set.  The node that gets it may make it a tuple of its own, and
 * free that, so the inner columns, which serve several pairs, are kept apart.
 */
static inline TupleTableSlot *
gpuds_join_scan_tuple(GpudsJoinState *state)
{
	TupleTableSlot *slot = state->css.ss.ss_ScanTupleSlot;

	memcpy(slot->tts_values + state->nouter, state->inner_values, state->ninner * sizeof(Datum));
	memcpy(slot->tts_isnull + state->nouter, state->inner_isnull, state->ninner * sizeof(bool));
	return TTS_EMPTY(slot) ? ExecStoreVirtualTuple(slot) : slot;
}

/* Sets the outer columns of the scan tuple. */
static inline void
gpuds_join_set_outer(GpudsJoinState *state, TupleTableSlot *from)
{
	TupleTableSlot *slot = state->css.ss.ss_ScanTupleSlot;

	ExecClearTuple(slot);
	slot_getallattrs(from);
	memcpy(slot->tts_values, from->tts_values, state->nouter * sizeof(Datum));
	memcpy(slot->tts_isnull, from->tts_isnull, state->nouter * sizeof(bool));
}

/* Sets the inner columns of the scan tuple; NULL: to NULL. */
static inline void
gpuds_join_set_inner(GpudsJoinState *state, const Datum *values, const bool *isnull)
{
	for (int i = 0; i < state->ninner; i++)
	{
		int column = state->columns[i];
		bool none = values == NULL || column == 0;

		/* A row's system columns are not among them. */
		if (column < 0 && !none)
			continue;
		state->inner_isnull[i] = none || isnull[column - 1];
		state->inner_values[i] = none ? (Datum) 0 : values[column - 1];
	}
}

/* join_batch.c */
extern bool gpuds_join_load_batch(GpudsJoinState *state);
extern void gpuds_join_end_sorter(GpudsJoinState *state);

/* join_match.c */
extern bool gpuds_join_collect_matches(GpudsJoinState *state);
extern bool gpuds_join_next_pair(GpudsJoinState *state);
extern bool gpuds_join_next_of_rest(GpudsJoinState *state);
extern int64 gpuds_join_count_rest(GpudsJoinState *state);

/* join_pages.c */
extern void gpuds_join_begin_pages(GpudsJoinState *state);
extern const GpudsJoinMatch *gpuds_join_next_of_pages(GpudsJoinState *state);
extern void gpuds_join_end_pages(GpudsJoinState *state);

/* join_explain.c */
extern GpudsScanCounters gpuds_join_own_counters(const GpudsJoinState *state);
extern void gpuds_join_explain(CustomScanState *css, List *ancestors, ExplainState *es);

#endif /* GPUDS_CUSTOM_JOIN_STATE_H */
