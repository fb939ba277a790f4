/*-------------------------------------------------------------------------
 *
 * entry_agg.c
 *	  Adds up what a scan's rows have in the index's columns.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/relscan.h"
#include "storage/predicate.h"

#include "reader/entry_agg.h"
#include "reader/reader.h"

/* Entries that a first piece has at most, for callers that want a few groups only. */
#define FIRST_PIECE_ENTRIES 4096

/* Is a measure of what entries do not have?  They have NULL bits. */
static inline bool
is_of_side(const GpudsFold *fold, int i)
{
	return gpuds_key_is_side(&fold->layout->column[fold->columns[i]]) &&
		   fold->measures[i].place != fold->measures[i].null_place;
}

static void
clear_sum(GpudsFold *fold)
{
	fold->sum.rows = 0;
	for (int i = 0; i < GPUDS_MEASURES; i++)
		fold->sum.measured[i] = measured_nothing();
}

/*
 * Begins with a scan whose keys have been set, at its beginning.  The scan's snapshot must be an MVCC
 * snapshot.  expected: the number of rows, about.  columns says which column each measure is of.  layout,
 * measures and columns must live as long as the fold, which allocates in the current context.
 *
 * Rows that are not looked up have no predicate locks of their own, so for SERIALIZABLE the whole
 * table is locked, as the whole index is.
 */
void
gpuds_fold_begin(GpudsFold *fold, IndexScanDesc scan, const GpudsKeyLayout *layout, const Measure *measures,
				 const int *columns, int nmeasures, const GpudsFoldGroups *groups, double expected)
{
	Assert(IsMVCCSnapshot(scan->xs_snapshot));
	fold->scan = scan;
	fold->nwords = layout->nwords;
	fold->expected = expected;
	fold->layout = layout;
	fold->measures = measures;
	fold->columns = columns;
	fold->nmeasures = nmeasures;
	fold->groups = *groups;
	gpuds_key_prefix_bits(layout, groups->ncolumns, &fold->group_bits);
	fold->grouped = groups->ncolumns > 0 || groups->find != NULL;
	fold->has_side = false;
	for (int i = 0; i < nmeasures; i++)
		fold->has_side |= is_of_side(fold, i);
	/* A query may have any number of measures; a device's answers have room for some (GpudsCountedSum). */
	fold->device_measures = !fold->grouped && nmeasures <= GPUDS_MEASURES && !fold->has_side;
	fold->context = CurrentMemoryContext;
	memset(&fold->others, 0, sizeof(fold->others));
	fold->next_other = 0;
	fold->answered = 0;
	clear_sum(fold);
	fold->entries = NULL;
	fold->seen = NULL;
	fold->side = NULL;
	fold->size = fold->n = fold->at = 0;
	PredicateLockRelation(scan->heapRelation, scan->xs_snapshot);
	gpuds_visible_begin(&fold->visible, scan);
	gpuds_side_reader_begin(&fold->reader, &fold->visible, layout);
	gpuds_visible_before_barrier(&fold->visible);
	gpuds_scan_begin_rows(scan, expected);
}

static void
free_room(GpudsFold *fold)
{
	if (fold->entries == NULL)
		return;
	pfree(fold->entries);
	pfree(fold->seen);
	if (fold->side)
		pfree(fold->side);
}

/* Makes room for a piece; size: its entries. */
static void
make_room(GpudsFold *fold, int64 size)
{
	if (fold->size >= size)
		return;
	free_room(fold);
	fold->entries = MemoryContextAlloc(fold->context, size * sizeof(GpudsEntry));
	fold->seen = MemoryContextAlloc(fold->context, size * sizeof(bool));
	if (fold->has_side)
		fold->side = MemoryContextAlloc(fold->context, size * fold->layout->side_bytes);
	fold->size = size;
}

/* Fetches entries until the piece is full enough for another one to be begun. */
static void
fetch_piece(GpudsFold *fold)
{
	make_room(fold, fold->size == 0 ? FIRST_PIECE_ENTRIES : GPUDS_PIECE_ENTRIES);
	fold->n = 0;
	gpuds_visible_begin_piece(&fold->visible);
	while (fold->n < fold->size / 2 && gpuds_scan_has_more(fold->scan))
	{
		GpudsScanBatch batch;

		gpuds_scan_next_batch(fold->scan, fold->size - fold->n, &batch);
		gpuds_visible_add_to_piece(&fold->visible, &batch);
		gpuds_visible_mark(&fold->visible, &batch, fold->seen + fold->n);
		memcpy(fold->entries + fold->n, batch.entries, batch.n * sizeof(GpudsEntry));
		fold->n += batch.n;
	}
}

/*
 * Adds up what is left of the intervals at hand on the device, and keeps what it is not sure of; false:
 * it cannot.
 */
static bool
measure_on_device(GpudsFold *fold)
{
	GpudsCountSpec spec = { .measured = true, .measures = fold->measures, .nmeasures = fold->nmeasures };
	GpudsCountedSum sum;

	gpuds_probe_free_counted(&fold->others);
	memset(&fold->others, 0, sizeof(fold->others));
	fold->next_other = 0;
	fold->others.sums = &sum;
	if (!gpuds_scan_count_on_device(fold->scan, &fold->visible, &spec, &fold->others))
	{
		memset(&fold->others, 0, sizeof(fold->others));
		return false;
	}
	fold->others.sums = NULL;
	fold->sum.rows += sum.rows;
	for (int i = 0; i < fold->nmeasures; i++)
		measure_merge(&fold->sum.measured[i], &sum.measured[i]);
	return true;
}

/* Notes for EXPLAIN what the visibility map is enough for. */
static void
note_matches(const GpudsFold *fold)
{
	int64 all_visible = 0;

	for (int64 i = 0; i < fold->n; i++)
		all_visible += fold->seen[i];
	gpuds_scan_note_matches(fold->scan, fold->n, all_visible);
}

/* Looks up the rows that the visibility map is not enough for. */
static void
look_up(GpudsFold *fold)
{
	GpudsVisible *visible = &fold->visible;

	for (int64 i = 0; i < fold->n; i++)
	{
		if (!fold->seen[i])
			gpuds_visible_order(visible, fold->entries[i].t & ENTRY_TID_MASK, i);
	}
	gpuds_visible_sort_order(visible);
	for (int64 place = 0; place < visible->norder; place++)
	{
		int64 i = gpuds_visible_at(visible, place);

		fold->seen[i] = gpuds_visible_look_up(visible, place, &fold->entries[i]);
	}
	gpuds_visible_end_piece(visible);
}

/* Leaves in the piece the entries whose rows are seen, with their side values. */
static void
keep_seen(GpudsFold *fold)
{
	int64 kept = 0;

	for (int64 i = 0; i < fold->n; i++)
	{
		if (fold->seen[i])
			fold->entries[kept++] = fold->entries[i];
	}
	fold->n = kept;
	if (fold->has_side)
		gpuds_side_reader_piece(&fold->reader, fold->entries, kept, fold->side);
}

/*
 * Makes a piece of entries that the visibility map says nothing of, at most GPUDS_PIECE_ENTRIES, and keeps
 * those whose rows are seen.
 */
void
gpuds_fold_look_up(GpudsFold *fold, const GpudsEntry *entries, int64 n)
{
	const GpudsScanBatch batch = { .entries = entries,
								   .n = n,
								   .kill_mark = gpuds_scan_kill_mark(fold->scan) };

	make_room(fold, GPUDS_PIECE_ENTRIES);
	fold->at = 0;
	fold->n = n;
	memcpy(fold->entries, entries, n * sizeof(GpudsEntry));
	memset(fold->seen, false, n * sizeof(bool));
	gpuds_visible_begin_piece(&fold->visible);
	gpuds_visible_add_to_piece(&fold->visible, &batch);
	look_up(fold);
	keep_seen(fold);
}

/* The same of those that the device was not sure of. */
static void
look_up_others(GpudsFold *fold)
{
	int64 n = Min(fold->others.n - fold->next_other, GPUDS_PIECE_ENTRIES);

	fold->next_other += n;
	gpuds_fold_look_up(fold, fold->others.entries + fold->next_other - n, n);
}

/* Goes on to the next piece that has rows; false: there is none. */
static bool
next_piece(GpudsFold *fold)
{
	fold->at = fold->n = 0;
	while (fold->n == 0)
	{
		if (fold->next_other < fold->others.n)
			look_up_others(fold);
		else if (!gpuds_scan_has_more(fold->scan))
			return false;
		else if (fold->device_measures && gpuds_scan_measures(fold->scan))
			fold->device_measures = measure_on_device(fold);
		else
		{
			fetch_piece(fold);
			note_matches(fold);
			look_up(fold);
			keep_seen(fold);
		}
	}
	return true;
}

/* An entry begins a group. */
static void
begin_group(GpudsFold *fold, const GpudsEntry *first)
{
	if (fold->groups.find)
	{
		fold->groups.find(fold->groups.arg, first, &fold->group_last);
		return;
	}
	fold->group_last = entry_last_alike(first, &fold->group_bits);
}

static inline bool
in_group(const GpudsFold *fold, const GpudsEntry *entry)
{
	return !entry_less(&fold->group_last, entry);
}

/* Where the group at hand ends in the piece, from its next entry on. */
static int64
end_of_group(const GpudsFold *fold)
{
	int64 end = fold->at;

	if (in_group(fold, &fold->entries[fold->n - 1]))
		return fold->n;
	while (in_group(fold, &fold->entries[end]))
		end++;
	return end;
}

/* Adds up entries; made for each number of key words. */
static pg_attribute_always_inline void
add_up(const Measure *measure, const GpudsEntry *entries, int64 n, const int nwords, Measured *measured)
{
	const Measure m = *measure;
	Measured sum = *measured;

	for (int64 i = 0; i < n; i++)
		measure_add(&sum, &m, &entries[i], nwords);
	*measured = sum;
}

/* The same of a side column, for entries from number first of the piece on. */
static void
add_up_side(const GpudsFold *fold, int i, int64 first, int64 n, Measured *measured)
{
	const GpudsKeyColumn column = fold->layout->column[fold->columns[i]];
	const int bytes = fold->layout->side_bytes;
	const Measure m = fold->measures[i];
	Measured sum = *measured;

	for (int64 k = first; k < first + n; k++)
	{
		GpudsEntry value;

		gpuds_key_side_entry(&column, fold->nwords, &fold->entries[k], fold->side + k * bytes, &value);
		measure_add(&sum, &m, &value, 1);
	}
	*measured = sum;
}

/* Adds the piece's entries up to the end of the group. */
static void
add_to_group(GpudsFold *fold, GpudsFoldGroup *group)
{
	const GpudsEntry *entries = fold->entries + fold->at;
	const int64 n = (fold->grouped ? end_of_group(fold) : fold->n) - fold->at;

	for (int i = 0; i < fold->nmeasures; i++)
	{
		if (is_of_side(fold, i))
			add_up_side(fold, i, fold->at, n, &group->measured[i]);
		else if (fold->nwords == 1)
			add_up(&fold->measures[i], entries, n, 1, &group->measured[i]);
		else
			add_up(&fold->measures[i], entries, n, 2, &group->measured[i]);
	}
	group->rows += n;
	fold->at += n;
}

/* Adds up all rows, as one group. */
static void
add_all(GpudsFold *fold, GpudsFoldGroup *group)
{
	while (next_piece(fold))
	{
		group->first = fold->entries[0];
		add_to_group(fold, group);
	}
	group->rows += fold->sum.rows;
	for (int i = 0; i < fold->nmeasures && i < GPUDS_MEASURES; i++)
		measure_merge(&group->measured[i], &fold->sum.measured[i]);
	clear_sum(fold);
}

/*
 * The next group, in the order of the index; false: there are no more rows.  group->measured is filled in
 * in either case.
 */
bool
gpuds_fold_next(GpudsFold *fold, GpudsFoldGroup *group)
{
	for (int i = 0; i < fold->nmeasures; i++)
		group->measured[i] = measured_nothing();
	group->rows = 0;
	if (!fold->grouped)
	{
		add_all(fold, group);
		return group->rows > 0;
	}
	if (fold->at == fold->n && !next_piece(fold))
		return false;
	group->first = fold->entries[fold->at];
	begin_group(fold, &group->first);
	do
		add_to_group(fold, group);
	while (fold->at == fold->n && next_piece(fold) && in_group(fold, &fold->entries[0]));
	return true;
}

void
gpuds_fold_end(GpudsFold *fold)
{
	gpuds_visible_end(&fold->visible);
	gpuds_probe_free_counted(&fold->others);
	free_room(fold);
}
