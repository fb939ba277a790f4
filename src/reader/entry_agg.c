/*-------------------------------------------------------------------------
 *
 * entry_agg.c
 *	  Adds up what a scan's rows have in the index's columns.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/relscan.h"

#include "reader/entry_agg.h"
#include "reader/reader.h"

/* Entries whose groups are on their way to the processor while others are added up. */
#define GROUPS_AHEAD 8

/* Entries that are enough for a piece of rows that need not be looked up. */
#define CACHED_PIECE_ENTRIES (8 * 1024)

/* Entries that a first piece has at most, for callers that want a few groups only. */
#define FIRST_PIECE_ENTRIES 4096

/* Is an aggregate of what entries do not have?  They have NULL bits. */
static inline bool
is_of_side(const GpudsEntryAgg *agg, int i)
{
	return agg->columns[i] >= 0 && agg->agg_columns[i].side_bytes != 0;
}

static void
clear_sum(GpudsEntryAgg *agg)
{
	agg->sum.rows = 0;
	for (int i = 0; i < GPUDS_AGG_COLUMNS; i++)
		agg->sum.partial[i] = partial_agg_empty();
	agg->total_rows = 0;
	for (int i = 0; i < GROUP_TERMS; i++)
		agg->total[i] = partial_agg_empty();
}

/* The filter of an aggregate; NULL: it has none. */
static inline GpudsRowFilter *
filter_of(const GpudsEntryAgg *agg, int i)
{
	return agg->filters ? agg->filters[i] : NULL;
}

/* Finds out what of filters and groups needs side values, or the host. */
static void
set_filters(GpudsEntryAgg *agg, const GpudsEntryAggSpec *spec)
{
	agg->entry_filter = spec->entry_filter;
	agg->side_filter = spec->side_filter;
	agg->has_filters = agg->entry_filter || agg->side_filter;
	agg->has_side = agg->side_filter != NULL || agg->hash.nside > 0;
	for (int i = 0; i < agg->nagg; i++)
	{
		const GpudsRowFilter *own = filter_of(agg, i);

		agg->has_side |= is_of_side(agg, i) || (own && own->side);
		agg->has_filters |= own != NULL;
	}
	agg->filtered = 0;
}

/*
 * Begins with a scan whose keys have been set, at its beginning.  The scan's snapshot must be an MVCC
 * snapshot.  expected: the number of rows before the filter, about.  Allocates in the current context.
 */
void
gpuds_entry_agg_begin(GpudsEntryAgg *agg, IndexScanDesc scan, const GpudsEntryAggSpec *spec, double expected)
{
	const GpudsKeyLayout *layout = spec->layout;
	const GpudsEntryAggGroups *groups = &spec->groups;

	Assert(IsMVCCSnapshot(scan->xs_snapshot));
	agg->scan = scan;
	agg->nwords = layout->nwords;
	agg->layout = layout;
	agg->agg_columns = spec->agg_columns;
	agg->columns = spec->columns;
	agg->filters = spec->filters;
	agg->cases = spec->cases;
	agg->nagg = spec->nagg;
	agg->groups = *groups;
	gpuds_key_prefix_bits(layout, groups->ncolumns, &agg->group_bits);
	agg->repeated = spec->least > 1 && groups->ncolumns > 0 && !groups->find && !groups->hashed;
	agg->left_out = 0;
	agg->grouped = groups->ncolumns > 0 || groups->find != NULL || groups->hashed != NULL;
	memset(&agg->hash, 0, sizeof(agg->hash));
	agg->parts = NULL;
	agg->next_group = 0;
	agg->has_run = false;
	if (groups->hashed)
		gpuds_hash_groups_begin(&agg->hash, groups->hashed, agg->nagg, groups->expected);
	set_filters(agg, spec);
	/*
	 * A query may have any number of columns to aggregate; a device's answers have room for some
	 * (GpudsCountedSum).
	 */
	agg->device_agg_columns = !agg->grouped && !agg->has_filters && agg->nagg <= GPUDS_AGG_COLUMNS &&
							  !agg->has_side;
	agg->device_groups = !agg->device_agg_columns;
	agg->context = CurrentMemoryContext;
	memset(&agg->others, 0, sizeof(agg->others));
	agg->next_other = agg->next_run = agg->ordered_most = 0;
	agg->answered = agg->answered_filtered = 0;
	clear_sum(agg);
	agg->entries = NULL;
	agg->seen = agg->passes = NULL;
	agg->numbers = NULL;
	agg->side = NULL;
	agg->size = agg->n = agg->at = 0;
	gpuds_visible_begin(&agg->visible, scan);
	gpuds_visible_lock(&agg->visible);
	gpuds_side_reader_begin(&agg->reader, &agg->visible, layout);
	gpuds_visible_before_barrier(&agg->visible);
	agg->expected = agg->device_agg_columns ? gpuds_scan_begin_sums(scan, expected)
											: gpuds_scan_begin_rows(scan, expected);
	agg->device_groups &= gpuds_entry_agg_may_group(agg);
}

static void
free_arrays(GpudsEntryAgg *agg)
{
	if (agg->entries == NULL)
		return;
	pfree(agg->entries);
	pfree(agg->seen);
	if (agg->passes)
		pfree(agg->passes);
	if (agg->numbers)
		pfree(agg->numbers);
	if (agg->side)
		pfree(agg->side);
}

/* Makes room for a piece; size: its entries. */
static void
ensure_capacity(GpudsEntryAgg *agg, int64 size)
{
	if (agg->size >= size)
		return;
	free_arrays(agg);
	agg->entries = MemoryContextAlloc(agg->context, size * sizeof(GpudsEntry));
	agg->seen = MemoryContextAlloc(agg->context, size * sizeof(bool));
	if (agg->has_filters)
		agg->passes = MemoryContextAlloc(agg->context, size * sizeof(bool));
	if (agg->hash.context)
		agg->numbers = MemoryContextAlloc(agg->context, size * sizeof(uint32));
	if (agg->has_side)
		agg->side = MemoryContextAlloc(agg->context, size * agg->layout->side_bytes);
	agg->size = size;
}

/* Copies those of a batch's entries that pass the filter, if there is one; returns how many. */
static int64
copy_passing(GpudsEntryAgg *agg, const GpudsScanBatch *batch, GpudsEntry *to)
{
	int64 kept = 0;

	if (agg->entry_filter == NULL)
	{
		memcpy(to, batch->entries, batch->n * sizeof(GpudsEntry));
		return batch->n;
	}
	gpuds_row_filter_run(agg->entry_filter, agg->layout, batch->entries, NULL, batch->n, agg->passes);
	for (int64 i = 0; i < batch->n; i++)
	{
		to[kept] = batch->entries[i];
		kept += agg->passes[i];
	}
	agg->filtered += batch->n - kept;
	return kept;
}

/* Takes the entries of a batch into the piece, and asks the visibility map about those that pass. */
static void
take_batch(GpudsEntryAgg *agg, const GpudsScanBatch *batch)
{
	GpudsScanBatch passing = *batch;
	GpudsEntry *to = agg->entries + agg->n;

	gpuds_visible_add_to_piece(&agg->visible, batch);
	passing.n = copy_passing(agg, batch, to);
	passing.entries = to;
	gpuds_visible_mark(&agg->visible, &passing, agg->seen + agg->n);
	agg->n += passing.n;
}

/* Leaves out those of the piece's entries whose side values do not pass. */
static void
keep_passing_side(GpudsEntryAgg *agg)
{
	const int bytes = agg->layout->side_bytes;
	int64 kept = 0;

	gpuds_row_filter_run(agg->side_filter, agg->layout, agg->entries, agg->side, agg->n, agg->passes);
	for (int64 i = 0; i < agg->n; i++)
	{
		agg->entries[kept] = agg->entries[i];
		/* so few words need no call */
		for (int at = 0; at < bytes; at += sizeof(uint64))
			memcpy(agg->side + kept * bytes + at, agg->side + i * bytes + at, sizeof(uint64));
		kept += agg->passes[i];
	}
	agg->filtered += agg->n - kept;
	agg->n = kept;
}

/* May a device add up what is left of the intervals at hand, by groups or filters? */
static bool
device_may_group(const GpudsEntryAgg *agg)
{
	return agg->device_groups && (!agg->grouped || agg->groups.hashed) && gpuds_scan_aggregates(agg->scan);
}

/* The same of groups of leading columns, behind the first piece: who wants some groups has them of that. */
static bool
device_may_order(const GpudsEntryAgg *agg)
{
	return agg->device_groups && agg->grouped && !agg->groups.hashed && agg->size > 0 &&
		   gpuds_scan_aggregates(agg->scan);
}

/*
 * Fetches entries until the piece is full enough for another one to be begun, or a device may do the rest.
 * Rows that are to be looked up are worth a large piece, as they are in the order of the heap; without them a
 * small one stays in the processor's cache.
 */
static void
fetch_piece(GpudsEntryAgg *agg)
{
	int64 enough = CACHED_PIECE_ENTRIES;

	ensure_capacity(agg, agg->size == 0 ? FIRST_PIECE_ENTRIES : GPUDS_PIECE_ENTRIES);
	agg->n = 0;
	gpuds_visible_begin_piece(&agg->visible);
	while (agg->n < Min(enough, agg->size / 2) && gpuds_scan_has_more(agg->scan) && !device_may_group(agg))
	{
		const int64 before = agg->n;
		GpudsScanBatch batch;

		gpuds_scan_next_batch(agg->scan, agg->size - agg->n, &batch);
		take_batch(agg, &batch);
		if (memchr(agg->seen + before, false, agg->n - before) != NULL)
			enough = agg->size;
	}
}

/*
 * Adds up what is left of the intervals at hand on the device, and keeps what it is not sure of; false:
 * it cannot.
 */
static bool
aggregate_on_device(GpudsEntryAgg *agg)
{
	GpudsCountSpec spec = { .partial = true, .agg_columns = agg->agg_columns, .nagg = agg->nagg };
	GpudsCountedSum sum;

	gpuds_probe_free_counted(&agg->others);
	memset(&agg->others, 0, sizeof(agg->others));
	agg->next_other = 0;
	agg->others.sums = &sum;
	if (!gpuds_scan_count_on_device(agg->scan, &agg->visible, agg->expected, &spec, &agg->others))
	{
		memset(&agg->others, 0, sizeof(agg->others));
		return false;
	}
	agg->others.sums = NULL;
	agg->sum.rows += sum.rows;
	for (int i = 0; i < agg->nagg; i++)
		partial_agg_merge(&agg->sum.partial[i], &sum.partial[i]);
	return true;
}

/* Notes for EXPLAIN what the visibility map is enough for. */
static void
note_matches(const GpudsEntryAgg *agg)
{
	int64 all_visible = 0;

	for (int64 i = 0; i < agg->n; i++)
		all_visible += agg->seen[i];
	gpuds_scan_note_matches(agg->scan, agg->n, all_visible);
}

/* Looks up the rows that the visibility map is not enough for. */
static void
look_up(GpudsEntryAgg *agg)
{
	GpudsVisible *visible = &agg->visible;

	for (int64 i = 0; i < agg->n; i++)
	{
		if (!agg->seen[i])
			gpuds_visible_order(visible, agg->entries[i].t & ENTRY_TID_MASK, i);
	}
	gpuds_visible_sort_order(visible);
	for (int64 place = 0; place < visible->norder; place++)
	{
		int64 i = gpuds_visible_at(visible, place);

		agg->seen[i] = gpuds_visible_sees(visible, place, &agg->entries[i]);
	}
	gpuds_visible_end_piece(visible);
}

/* Leaves in the piece the entries whose rows are seen, with their side values. */
static void
keep_seen(GpudsEntryAgg *agg)
{
	const bool *unseen = memchr(agg->seen, false, agg->n * sizeof(bool));
	int64 kept = unseen ? unseen - agg->seen : agg->n;

	for (int64 i = kept; i < agg->n; i++)
	{
		if (agg->seen[i])
			agg->entries[kept++] = agg->entries[i];
	}
	agg->n = kept;
	if (agg->has_side)
		gpuds_side_reader_piece(&agg->reader, agg->entries, kept, agg->side);
	if (agg->side_filter)
		keep_passing_side(agg);
}

/*
 * Makes a piece of entries that the visibility map says nothing of, at most GPUDS_PIECE_ENTRIES, and keeps
 * those that pass the filter and whose rows are seen.
 */
void
gpuds_entry_agg_look_up(GpudsEntryAgg *agg, const GpudsEntry *entries, int64 n)
{
	const GpudsScanBatch batch = { .entries = entries, .n = n, .kill_mark = gpuds_scan_kill_mark(agg->scan) };

	ensure_capacity(agg, GPUDS_PIECE_ENTRIES);
	agg->at = 0;
	agg->n = copy_passing(agg, &batch, agg->entries);
	memset(agg->seen, false, agg->n * sizeof(bool));
	gpuds_visible_begin_piece(&agg->visible);
	gpuds_visible_add_to_piece(&agg->visible, &batch);
	look_up(agg);
	keep_seen(agg);
}

/* The same of those that the device was not sure of. */
static void
look_up_others(GpudsEntryAgg *agg)
{
	int64 n = Min(agg->others.n - agg->next_other, GPUDS_PIECE_ENTRIES);

	agg->next_other += n;
	gpuds_entry_agg_look_up(agg, agg->others.entries + agg->next_other - n, n);
}

/* Has a device add up groups with runs, all of them, before anything else is done; false: it cannot. */
static bool
group_by_parts(GpudsEntryAgg *agg)
{
	GpudsEntryAggParts parts;
	bool done;

	if (!agg->groups.parts(agg->groups.arg, &parts))
		done = false;
	else
	{
		done = gpuds_entry_agg_group(agg, &parts);
		pfree(parts.intervals);
		pfree(parts.labels);
	}
	/* Runs without rows have no right to memory. */
	if (!done)
		agg->groups.restart(agg->groups.arg);
	return done;
}

/* Goes on to the next piece that has rows, or to groups of a device; false: there is none. */
static bool
next_piece(GpudsEntryAgg *agg)
{
	agg->at = agg->n = 0;
	if (agg->device_groups && agg->groups.parts)
	{
		(void) group_by_parts(agg);
		agg->device_groups = false;
	}
	while (agg->n == 0 && agg->next_run == agg->others.groups.n)
	{
		if (agg->next_other < agg->others.n)
			look_up_others(agg);
		else if (!gpuds_scan_has_more(agg->scan))
			return false;
		else if (agg->device_agg_columns && gpuds_scan_aggregates(agg->scan))
			agg->device_agg_columns = aggregate_on_device(agg);
		else if (device_may_group(agg))
			agg->device_groups = gpuds_entry_agg_group(agg, NULL);
		else if (device_may_order(agg))
			agg->device_groups = gpuds_entry_agg_next_runs(agg);
		else
		{
			fetch_piece(agg);
			note_matches(agg);
			look_up(agg);
			keep_seen(agg);
		}
	}
	return true;
}

/* An entry begins a group. */
static void
begin_group(GpudsEntryAgg *agg, const GpudsEntry *first)
{
	if (agg->groups.find)
	{
		agg->groups.find(agg->groups.arg, first, &agg->group_last);
		return;
	}
	agg->group_last = entry_last_alike(first, &agg->group_bits);
}

static inline bool
in_group(const GpudsEntryAgg *agg, const GpudsEntry *entry)
{
	return !entry_less(&agg->group_last, entry);
}

/* Where the group at hand ends in the piece, from its next entry on. */
static int64
end_of_group(const GpudsEntryAgg *agg)
{
	int64 end = agg->at;

	if (in_group(agg, &agg->entries[agg->n - 1]))
		return agg->n;
	while (in_group(agg, &agg->entries[end]))
		end++;
	return end;
}

/* Adds up entries; made for each number of key words. */
static pg_attribute_always_inline void
add_up(const AggColumn *agg_column, const GpudsEntry *entries, int64 n, const int nwords, PartialAgg *partial)
{
	const AggColumn m = *agg_column;
	PartialAgg sum = *partial;

	for (int64 i = 0; i < n; i++)
		partial_agg_add(&sum, &m, &entries[i], nwords);
	*partial = sum;
}

/* The side values of the piece's entries from number k on. */
static inline const uint8 *
side_from(const GpudsEntryAgg *agg, int64 k)
{
	if (agg->side == NULL)
		elog(ERROR, "side values have not been read");
	return agg->side + k * agg->layout->side_bytes;
}

/* The same of a side column, for entries from number first of the piece on. */
static void
add_up_side(const GpudsEntryAgg *agg, int i, int64 first, int64 n, PartialAgg *partial)
{
	const int bytes = agg->layout->side_bytes;
	const AggColumn m = agg->agg_columns[i];
	const GpudsEntry *entries = agg->entries + first;
	const uint8 *side = side_from(agg, first);
	PartialAgg sum = *partial;

	for (int64 k = 0; k < n; k++)
	{
		const GpudsEntry value = agg_column_side_entry(&m, &entries[k], agg->nwords, side + k * bytes);

		partial_agg_add(&sum, &m, &value, 1);
	}
	*partial = sum;
}

/* Adds what the k-th entry of the piece has of an aggregate's column. */
static inline void
add_entry(const GpudsEntryAgg *agg, int i, int64 k, PartialAgg *partial)
{
	const GpudsEntry *entry = &agg->entries[k];

	if (is_of_side(agg, i))
	{
		const GpudsEntry value = agg_column_side_entry(&agg->agg_columns[i], entry, agg->nwords,
													   side_from(agg, k));

		partial_agg_add(partial, &agg->agg_columns[i], &value, 1);
	}
	else if (agg->nwords == 1)
		partial_agg_add(partial, &agg->agg_columns[i], entry, 1);
	else
		partial_agg_add(partial, &agg->agg_columns[i], entry, 2);
}

/* The same of an aggregate with a filter. */
static inline void
add_filtered(const GpudsEntryAgg *agg, int i, int64 k, bool passes, PartialAgg *partial)
{
	const GpudsEntryAggCase *of = &agg->cases[i];

	if (passes && !of->has_value)
		add_entry(agg, i, k, partial);
	else if (passes)
		partial_agg_add_bits(partial, &agg->agg_columns[i], of->value);
	else if (of->has_other)
		partial_agg_add_bits(partial, &agg->agg_columns[i], of->other);
}

/*
 * Which of the piece's n entries from first on pass the filter of the i-th aggregate, until this is asked
 * again; NULL: it has none.
 */
const bool *
gpuds_entry_agg_passing(GpudsEntryAgg *agg, int i, int64 first, int64 n)
{
	GpudsRowFilter *filter = filter_of(agg, i);
	const uint8 *side = agg->side ? agg->side + first * agg->layout->side_bytes : NULL;

	if (filter == NULL)
		return NULL;
	gpuds_row_filter_run(filter, agg->layout, agg->entries + first, side, n, agg->passes);
	return agg->passes;
}

/* Adds what the k-th entry of the piece has for the i-th aggregate; passes: its filter; NULL: it has none. */
void
gpuds_entry_agg_add(const GpudsEntryAgg *agg, int i, int64 k, const bool *passes, PartialAgg *partial)
{
	if (passes)
		add_filtered(agg, i, k, *passes, partial);
	else
		add_entry(agg, i, k, partial);
}

/* Adds the piece's entries up to the end of the group. */
static void
add_to_group(GpudsEntryAgg *agg, GpudsEntryAggGroup *group)
{
	const GpudsEntry *entries = agg->entries + agg->at;
	const int64 n = (agg->grouped ? end_of_group(agg) : agg->n) - agg->at;

	for (int i = 0; i < agg->nagg; i++)
	{
		const bool *passes = gpuds_entry_agg_passing(agg, i, agg->at, n);

		for (int64 k = 0; passes && k < n; k++)
			add_filtered(agg, i, agg->at + k, passes[k], &group->partial[i]);
		if (passes)
			continue;
		if (is_of_side(agg, i))
			add_up_side(agg, i, agg->at, n, &group->partial[i]);
		else if (agg->nwords == 1)
			add_up(&agg->agg_columns[i], entries, n, 1, &group->partial[i]);
		else
			add_up(&agg->agg_columns[i], entries, n, 2, &group->partial[i]);
	}
	group->rows += n;
	agg->at += n;
}

/* Adds up all rows, as one group. */
static void
add_all(GpudsEntryAgg *agg, GpudsEntryAggGroup *group)
{
	while (next_piece(agg))
	{
		group->first = agg->entries[0];
		add_to_group(agg, group);
	}
	group->rows += agg->sum.rows + agg->total_rows;
	for (int i = 0; i < agg->nagg && i < GPUDS_AGG_COLUMNS; i++)
		partial_agg_merge(&group->partial[i], &agg->sum.partial[i]);
	for (int i = 0; i < agg->nagg && i < GROUP_TERMS; i++)
		partial_agg_merge(&group->partial[i], &agg->total[i]);
	clear_sum(agg);
}

/* Side values where there are none. */
static const uint8 nothing[GPUDS_SIDE_BYTES] = { 0 };

/*
 * Makes keys of the piece's entries from number at on, at most GPUDS_GROUP_KEYS; returns how many: fewer at
 * the end of the piece, or if there is no memory for another run.
 */
static int
make_keys(GpudsEntryAgg *agg, int64 at, GpudsGroupKey *keys)
{
	const int bytes = agg->side ? agg->layout->side_bytes : 0;
	const uint8 *side = agg->side ? agg->side : nothing;
	const int most = (int) Min(agg->n - at, GPUDS_GROUP_KEYS);
	int n;

	for (n = 0; n < most; n++)
	{
		const GpudsEntry *entry = &agg->entries[at + n];

		if (agg->groups.run && (!agg->has_run || !in_group(agg, entry)))
			agg->run = agg->groups.run(agg->groups.arg, entry, &agg->group_last);
		if (agg->run < 0)
			break;
		agg->has_run = true;
		gpuds_hash_groups_key(&agg->hash, entry, side + (at + n) * bytes, (uint64) agg->run, &keys[n]);
	}
	return n;
}

/*
 * Finds the groups of the piece's entries, from the one at hand on.  Returns where those end that have
 * groups: before the end of the piece if the table is full, or there is no memory for another run.  The runs
 * may be ahead of that; they are forgotten before the next entry.
 */
static int64
find_hashed(GpudsEntryAgg *agg)
{
	GpudsGroupKey keys[GPUDS_GROUP_KEYS];
	int64 at = agg->at;

	memset(keys, 0, sizeof(keys));
	while (at < agg->n)
	{
		const int n = make_keys(agg, at, keys);
		const int counted = gpuds_hash_groups_count(&agg->hash, keys, n, agg->numbers + at);

		at += counted;
		if (counted < GPUDS_GROUP_KEYS)
			break;
	}
	return at;
}

/* The i-th aggregate of the piece's k-th entry's group; the processor fetches that of one further on. */
static inline PartialAgg *
partial_of(const GpudsEntryAgg *agg, int i, int64 k, int64 end)
{
	if (k + GROUPS_AHEAD < end)
		__builtin_prefetch(&agg->hash.partial[(int64) agg->numbers[k + GROUPS_AHEAD] * agg->nagg + i], 1);
	return &agg->hash.partial[(int64) agg->numbers[k] * agg->nagg + i];
}

/* Adds up an aggregate without a filter; made for each number of key words. */
static pg_attribute_always_inline void
scatter(const GpudsEntryAgg *agg, int i, int64 end, const int nwords)
{
	const AggColumn m = agg->agg_columns[i];

	for (int64 k = agg->at; k < end; k++)
		partial_agg_add(partial_of(agg, i, k, end), &m, &agg->entries[k], nwords);
}

/* The same of a side column. */
static void
scatter_side(const GpudsEntryAgg *agg, int i, int64 end)
{
	const AggColumn m = agg->agg_columns[i];
	const int bytes = agg->layout->side_bytes;
	const uint8 *side = side_from(agg, 0);

	for (int64 k = agg->at; k < end; k++)
	{
		const GpudsEntry value = agg_column_side_entry(&m, &agg->entries[k], agg->nwords, side + k * bytes);

		partial_agg_add(partial_of(agg, i, k, end), &m, &value, 1);
	}
}

/* Adds up an aggregate of the piece's entries from the one at hand on, each to its group. */
static void
add_up_hashed(GpudsEntryAgg *agg, int i, int64 end)
{
	const bool *passes = gpuds_entry_agg_passing(agg, i, agg->at, end - agg->at);

	for (int64 k = agg->at; passes && k < end; k++)
		add_filtered(agg, i, k, passes[k - agg->at], partial_of(agg, i, k, end));
	if (passes)
		return;
	if (is_of_side(agg, i))
		scatter_side(agg, i, end);
	else if (agg->nwords == 1)
		scatter(agg, i, end, 1);
	else
		scatter(agg, i, end, 2);
}

/* Adds the piece's entries, from the one at hand on, to their groups; false: the table is full. */
static bool
add_hashed(GpudsEntryAgg *agg)
{
	const int64 end = find_hashed(agg);

	for (int i = 0; i < agg->nagg; i++)
		add_up_hashed(agg, i, end);
	agg->at = end;
	return end == agg->n;
}

/* Forgets the runs. */
static void
restart_runs(GpudsEntryAgg *agg)
{
	agg->run = 0;
	agg->has_run = false;
	if (agg->groups.restart)
		agg->groups.restart(agg->groups.arg);
}

/*
 * Fills the table, with the groups of all further rows or as many as there is room for; false: there are
 * none.  Whole groups are put aside when there is no room, and then all of them.
 */
static bool
fill_hashed(GpudsEntryAgg *agg)
{
	gpuds_hash_groups_clear(&agg->hash);
	agg->next_group = 0;
	restart_runs(agg);
	while (agg->at < agg->n || next_piece(agg))
	{
		if (add_hashed(agg))
			continue;
		if (agg->groups.whole)
			gpuds_group_parts_add(&agg->parts, &agg->hash);
		else if (agg->hash.n > 0)
			return true;
		/* Only runs without rows took the memory: those of a device's parts. */
		restart_runs(agg);
	}
	if (agg->parts)
	{
		gpuds_group_parts_add(&agg->parts, &agg->hash);
		gpuds_group_parts_sort(agg->parts);
	}
	return agg->hash.n > 0;
}

/* Takes the next group of those that are in the table. */
static bool
next_in_table(GpudsEntryAgg *agg, GpudsHashGroup *group, PartialAgg *partial)
{
	if (agg->next_group == agg->hash.n)
		return false;
	*group = agg->hash.groups[agg->next_group];
	memcpy(partial, agg->hash.partial + agg->next_group * agg->nagg, agg->nagg * sizeof(PartialAgg));
	agg->next_group++;
	return true;
}

/* The next group of those that are in the table, or were put aside. */
static bool
next_hashed(GpudsEntryAgg *agg, GpudsEntryAggGroup *group)
{
	GpudsHashGroup *next = &agg->hash_group;

	if (agg->parts == NULL && agg->next_group == agg->hash.n)
		(void) fill_hashed(agg);
	if (agg->parts ? !gpuds_group_parts_next(agg->parts, next, group->partial)
				   : !next_in_table(agg, next, group->partial))
		return false;
	group->first = next->key.entry;
	group->side = (const uint8 *) next->key.side;
	group->run = next->key.run;
	group->rows = next->rows;
	return true;
}

/* Has what a device was not sure of looked up, unless rows of it are at hand. */
static void
look_up_next_others(GpudsEntryAgg *agg)
{
	while (agg->at == agg->n && agg->next_other < agg->others.n)
		look_up_others(agg);
}

/* Is a row or a device's group at hand, and of both the first one?  Goes on to the next piece if none is. */
static bool
has_rows(GpudsEntryAgg *agg)
{
	look_up_next_others(agg);
	if (agg->at == agg->n && agg->next_run == agg->others.groups.n && !next_piece(agg))
		return false;
	look_up_next_others(agg);
	return true;
}

/* The first of what is at hand: an entry, or the key of a device's group. */
static GpudsEntry
first_at_hand(const GpudsEntryAgg *agg)
{
	GpudsEntry key;

	if (gpuds_entry_agg_run(agg, &key) && (agg->at == agg->n || entry_less(&key, &agg->entries[agg->at])))
		return key;
	return agg->entries[agg->at];
}

static bool
is_in_group_at_hand(const GpudsEntryAgg *agg)
{
	const GpudsEntry first = first_at_hand(agg);

	return in_group(agg, &first);
}

/*
 * The next group, in the order of the index unless groups are hashed; false: there are no more rows.
 * group->partial is filled in in either case.
 */
bool
gpuds_entry_agg_next(GpudsEntryAgg *agg, GpudsEntryAggGroup *group)
{
	for (int i = 0; i < agg->nagg; i++)
		group->partial[i] = partial_agg_empty();
	group->rows = 0;
	group->side = NULL;
	if (agg->groups.hashed)
		return next_hashed(agg, group);
	if (!agg->grouped)
	{
		add_all(agg, group);
		return group->rows > 0;
	}
	if (!has_rows(agg))
		return false;
	group->first = first_at_hand(agg);
	begin_group(agg, &group->first);
	do
	{
		gpuds_entry_agg_add_runs(agg, group);
		if (agg->at < agg->n)
			add_to_group(agg, group);
	} while (has_rows(agg) && is_in_group_at_hand(agg));
	return true;
}

/*
 * Passes groups of leading columns that are at hand as a whole and have fewer rows than least, without adding
 * them up; returns how many, and sets *rows.  Others of that kind are left to gpuds_entry_agg_next.
 */
int64
gpuds_entry_agg_skip_small(GpudsEntryAgg *agg, int64 least, int64 *rows)
{
	const GpudsEntry *entries = agg->entries;
	const int64 from = agg->at;
	int64 groups = 0;

	*rows = 0;
	if (agg->groups.ncolumns == 0 || agg->groups.find || agg->groups.hashed ||
		agg->next_run < agg->others.groups.n)
		return 0;
	while (least <= agg->n - agg->at)
	{
		const GpudsEntry last = entry_last_alike(&entries[agg->at], &agg->group_bits);

		/* An entry of another group comes before there are enough of this one. */
		if (!entry_less(&last, &entries[agg->at + least - 1]))
			break;
		do
			agg->at++;
		while (!entry_less(&last, &entries[agg->at]));
		groups++;
	}
	*rows = agg->at - from;
	return groups;
}

/* Frees what *agg has, but neither itself nor the scan. */
void
gpuds_entry_agg_end(GpudsEntryAgg *agg)
{
	gpuds_visible_end(&agg->visible);
	gpuds_probe_free_counted(&agg->others);
	gpuds_group_parts_end(&agg->parts);
	gpuds_hash_groups_end(&agg->hash);
	free_arrays(agg);
}
