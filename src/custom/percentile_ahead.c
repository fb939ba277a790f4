/*-------------------------------------------------------------------------
 *
 * percentile_ahead.c
 *	  Groups that are taken ahead, so that rows of many of them are found at once.
 *
 * The rows of a group are those that a leading part of the index's key is the same in.  How many they are is
 * known, so the structure may know which of its entries they have (reader/row_rank.c).  Of a row that is not
 * found, the node has to do without that.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "custom/aggregate.h"
#include "custom/percentile_ahead.h"
#include "index/index.h"
#include "reader/reader.h"

/* Groups that are taken at first, how many times as many then, and at most; and ranks of them, about. */
#define FIRST_GROUPS 4
#define GROUPS_GROWTH 4
#define MOST_GROUPS 4096
#define MOST_RANKS (64 * 1024)

/*
 * For two nodes below one, in their order: groups, by leading columns of an index, and rows, about expected,
 * of which the values of the column behind these are wanted.  Without a node of groups, columns of the key
 * are wanted.  If that is what the nodes have, ahead->possible.
 */
void
gpuds_ahead_begin(GpudsGroupsAhead *ahead, PlanState *groups_of, PlanState *rows_of, double expected)
{
	ahead->possible = (groups_of == NULL || gpuds_aggregate_leading_columns(groups_of) > 0) &&
					  gpuds_child_scan_is_forward(rows_of);
	if (!ahead->possible)
		return;
	ahead->groups_of = groups_of;
	ahead->rows_of = rows_of;
	ahead->expected = expected;
	if (groups_of)
		ahead->slot = ExecInitExtraTupleSlot(groups_of->state, ExecGetResultType(groups_of),
											 &TTSOpsMinimalTuple);
	ahead->context = AllocSetContextCreate(CurrentMemoryContext, "gpuds groups", ALLOCSET_DEFAULT_SIZES);
}

/* Groups may be taken ahead from now on. */
void
gpuds_ahead_allow(GpudsGroupsAhead *ahead)
{
	if (ahead->possible && ahead->most == 0)
		ahead->most = FIRST_GROUPS;
}

/* Forgets all groups. */
static void
forget(GpudsGroupsAhead *ahead)
{
	if (ahead->slot)
		ExecClearTuple(ahead->slot);
	MemoryContextReset(ahead->context);
	ahead->groups = NULL;
	ahead->ranks = NULL;
	ahead->n = ahead->size = ahead->next = 0;
	ahead->nranks = ahead->ranks_size = 0;
	ahead->bytes_of_rows = 0;
}

/* Are groups to be taken, or more of them?  Those that have been taken before have been given. */
bool
gpuds_ahead_more(GpudsGroupsAhead *ahead)
{
	if (ahead->next > 0)
		forget(ahead);
	return ahead->n < ahead->most && ahead->nranks < MOST_RANKS &&
		   ahead->bytes_of_rows < (Size) work_mem * 1024;
}

/* Begins the scan that is asked for ranks. */
static void
begin_scan(GpudsGroupsAhead *ahead)
{
	MemoryContext old = MemoryContextSwitchTo(ahead->rows_of->state->es_query_cxt);

	ahead->scan = gpuds_child_scan_like(ahead->rows_of);
	ahead->layout = gpuds_index_info(ahead->scan->indexRelation)->layout;
	if (ahead->groups_of)
	{
		const int columns = gpuds_aggregate_leading_columns(ahead->groups_of);

		ahead->ones = gpuds_key_ones_behind(&ahead->layout, columns);
		ahead->layout.ncolumns = columns + 1;
	}
	MemoryContextSwitchTo(old);
}

/* What the keys of a group's rows are between; of all rows: any key. */
static GpudsInterval
interval_of(const GpudsGroupsAhead *ahead)
{
	const GpudsEntry *entry;
	const GpudsEntry *ones = &ahead->ones;

	if (ahead->groups_of == NULL)
		return (GpudsInterval){ { 0, 0, 0 }, { UINT64_MAX, UINT64_MAX, UINT64_MAX } };
	entry = gpuds_aggregate_group_entry(ahead->groups_of);
	return (GpudsInterval){ { entry->w0 & ~ones->w0, entry->w1 & ~ones->w1, entry->t & ~ones->t },
							{ entry->w0 | ones->w0, entry->w1 | ones->w1, entry->t | ones->t } };
}

static void
ensure_groups(GpudsGroupsAhead *ahead)
{
	if (ahead->n < ahead->size)
		return;
	ahead->size = Max(2 * ahead->size, FIRST_GROUPS);
	ahead->groups = ahead->groups ? repalloc(ahead->groups, ahead->size * sizeof(GpudsGroupAhead))
								  : palloc(ahead->size * sizeof(GpudsGroupAhead));
}

static void
ensure_ranks(GpudsGroupsAhead *ahead, int64 n)
{
	if (ahead->nranks + n <= ahead->ranks_size)
		return;
	ahead->ranks_size = Max(2 * ahead->ranks_size, ahead->nranks + n);
	ahead->ranks = ahead->ranks ? repalloc_huge(ahead->ranks, ahead->ranks_size * sizeof(GpudsRowRank))
								: MemoryContextAllocHuge(CurrentMemoryContext,
														 ahead->ranks_size * sizeof(GpudsRowRank));
}

/*
 * Adds the group that has just been taken, with its row, or all rows.  It has so many rows, and of those
 * behind the first offset the ranks are wanted, which ascend.
 */
void
gpuds_ahead_add(GpudsGroupsAhead *ahead, TupleTableSlot *row, int64 rows, int64 offset,
				const GpudsRanks *ranks)
{
	MemoryContext old = MemoryContextSwitchTo(ahead->context);
	GpudsGroupAhead *group;

	if (ahead->scan == NULL)
	{
		gpuds_child_scan_start(ahead->rows_of);
		begin_scan(ahead);
		gpuds_child_scan_stop(ahead->rows_of, 0, 0);
	}
	ensure_groups(ahead);
	group = &ahead->groups[ahead->n++];
	group->row = row ? ExecCopySlotMinimalTuple(row) : NULL;
	group->first = ahead->nranks;
	ahead->bytes_of_rows += row ? group->row->t_len : 0;
	ensure_ranks(ahead, ranks->n);
	for (int64 i = 0; i < ranks->n; i++)
		ahead->ranks[ahead->nranks++] = (GpudsRowRank){ .interval = interval_of(ahead),
														.rows = rows,
														.rank = offset + ranks->ranks[i].rank };
	MemoryContextSwitchTo(old);
}

/* Finds the rows of all ranks of the groups that have been added, as far as they can be found. */
void
gpuds_ahead_find(GpudsGroupsAhead *ahead)
{
	MemoryContext old = MemoryContextSwitchTo(ahead->context);
	int64 found = 0;

	if (ahead->nranks > 0)
	{
		gpuds_child_scan_start(ahead->rows_of);
		found = gpuds_scan_rank(ahead->scan, ahead->expected, ahead->ranks, ahead->nranks);
		gpuds_child_scan_stop(ahead->rows_of, found, 0);
	}
	ahead->found += found;
	ahead->most = Min(ahead->most * GROUPS_GROWTH, MOST_GROUPS);
	/* What cannot be found now is not worth the search of the next ones. */
	if (found < ahead->nranks / 2)
		ahead->most = FIRST_GROUPS;
	MemoryContextSwitchTo(old);
}

/*
 * Finds the rows of ranks among all rows, so many, as far as they can be found.  For more ranks than groups
 * may have, a scan that goes through the rows takes as long, and no memory of each.
 */
void
gpuds_ahead_find_of_all(GpudsGroupsAhead *ahead, int64 rows, const GpudsRanks *ranks)
{
	Assert(ahead->groups_of == NULL);
	if (!ahead->possible)
		return;
	forget(ahead);
	if (ranks->n == 0 || ranks->n > MOST_RANKS)
		return;
	gpuds_ahead_add(ahead, NULL, rows, 0, ranks);
	gpuds_ahead_find(ahead);
	ahead->next = ahead->n;
}

/* The row of the next group that has been added; NULL: there is none. */
TupleTableSlot *
gpuds_ahead_next(GpudsGroupsAhead *ahead)
{
	if (ahead->next == ahead->n)
		return NULL;
	return ExecStoreMinimalTuple(ahead->groups[ahead->next++].row, ahead->slot, false);
}

/* The scan's row of the i-th rank of the group that was given last; NULL: it was not found. */
TupleTableSlot *
gpuds_ahead_row(GpudsGroupsAhead *ahead, int64 i)
{
	const GpudsRowRank *rank;

	if (ahead->next == 0)
		return NULL;
	rank = &ahead->ranks[ahead->groups[ahead->next - 1].first + i];
	return rank->found ? gpuds_child_scan_row(ahead->rows_of, &rank->entry, &ahead->layout, ahead->bytes)
					   : NULL;
}

/* Forgets the groups, and ends the scan: for ReScan, and at the end. */
void
gpuds_ahead_reset(GpudsGroupsAhead *ahead)
{
	if (!ahead->possible)
		return;
	forget(ahead);
	ahead->most = 0;
	ahead->end = false;
	if (ahead->scan)
	{
		gpuds_counters_add(&ahead->counters, gpuds_scan_counters(ahead->scan));
		index_endscan(ahead->scan);
	}
	ahead->scan = NULL;
}
