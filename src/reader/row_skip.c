/*-------------------------------------------------------------------------
 *
 * row_skip.c
 *	  Moves a scan behind its first rows, which are counted and not given.
 *
 * Rows are counted in two ways.  First by intervals of the scan, unless these are small, and a part of the
 * one behind them: the mirror's device counts their entries, as for any count, and where the part should end
 * is found by the structure's ranks.  They are meant to have as many entries as there are rows to skip, or a
 * few less.  What was found may be out of date, and some of the entries lead to rows that the snapshot does
 * not see.  So the rows are counted then, and if they are too few, others follow.  What is left is counted
 * in batches, none of which has more entries than there are rows to skip.
 *
 * So the scan never comes to a row behind the last one that it was to skip.  It goes on by value behind the
 * last entry that was counted, as it does between any two batches.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/relscan.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"

#include "reader/reader.h"
#include "reader/row_skip.h"

/* Entries that a GPU counts in the time that one takes in a batch: 11 ns. */
#define ENTRIES_OF_BATCHED 512

/* An entry as one number, its lowest word last. */
typedef struct Number
{
	uint64 word[3];
} Number;

static Number
number_of(const GpudsEntry *entry, int nwords)
{
	if (nwords == 1)
		return (Number){ { 0, entry->w0, entry->t } };
	return (Number){ { entry->w0, entry->w1, entry->t } };
}

static GpudsEntry
entry_of(const Number *number, int nwords)
{
	if (nwords == 1)
		return (GpudsEntry){ number->word[1], 0, number->word[2] };
	return (GpudsEntry){ number->word[0], number->word[1], number->word[2] };
}

static Number
minus(Number a, const Number *b)
{
	uint64 borrow = 0;

	for (int i = 2; i >= 0; i--)
	{
		const uint64 less = b->word[i] + borrow;

		/* If the sum wraps, it takes all of a higher word away. */
		borrow = less < borrow || a.word[i] < less;
		a.word[i] -= less;
	}
	return a;
}

static Number
plus(Number a, const Number *b)
{
	uint64 carry = 0;

	for (int i = 2; i >= 0; i--)
	{
		const uint64 sum = a.word[i] + b->word[i];
		const uint64 all = sum + carry;

		carry = sum < a.word[i] || all < sum;
		a.word[i] = all;
	}
	return a;
}

static bool
is_less(const Number *a, const Number *b)
{
	for (int i = 0; i < 2; i++)
	{
		if (a->word[i] != b->word[i])
			return a->word[i] < b->word[i];
	}
	return a->word[2] < b->word[2];
}

/* Bits of a number without leading zeroes. */
static int
bits_of(const Number *number)
{
	for (int i = 0; i < 3; i++)
	{
		if (number->word[i] != 0)
			return 64 * (2 - i) + pg_leftmost_one_pos64(number->word[i]) + 1;
	}
	return 0;
}

/*
 * Cuts an interval into pieces of one width, ascending; there are 1 << bits at most, or as many as have a
 * width of 1 << low each.  Returns how many.
 */
int64
gpuds_skip_cut(const GpudsInterval *interval, int bits, int low, int nwords, GpudsInterval *pieces)
{
	static const Number one = { { 0, 0, 1 } };
	const Number last = number_of(&interval->hi, nwords);
	Number at = number_of(&interval->lo, nwords);
	Number left = minus(last, &at);
	Number width = { { 0, 0, 0 } };
	const int shift = Max(bits_of(&left) - bits, low);
	int64 n = 0;

	width.word[2 - shift / 64] = UINT64CONST(1) << shift % 64;
	for (;; n++)
	{
		Number next = plus(at, &width);

		pieces[n].lo = entry_of(&at, nwords);
		pieces[n].hi = interval->hi;
		if (is_less(&left, &width))
			return n + 1;
		at = minus(next, &one);
		pieces[n].hi = entry_of(&at, nwords);
		at = next;
		left = minus(last, &at);
	}
}

/* What is left of an interval without its begin, or its end, up to an entry; false: nothing. */
bool
gpuds_skip_cut_off(const GpudsRowSkip *skip, const GpudsEntry *entry, GpudsInterval *interval)
{
	static const Number one = { { 0, 0, 1 } };
	Number at = number_of(entry, skip->nwords);

	if (entry_equal(entry, skip->forward ? &interval->hi : &interval->lo))
		return false;
	at = skip->forward ? plus(at, &one) : minus(at, &one);
	*(skip->forward ? &interval->lo : &interval->hi) = entry_of(&at, skip->nwords);
	return true;
}

/*
 * How many entries pieces of an interval have that a device counts at once, in places of rows not seen; it
 * goes through all of them.
 */
static bool
count_each(GpudsRowSkip *skip, const GpudsInterval *pieces, int64 n, int64 *entries)
{
	const GpudsScan all = { .intervals = pieces, .n = n };
	GpudsCountSpec spec = { .partial = true, .each = true };
	GpudsCounted counted = { .sums = palloc(n * sizeof(GpudsCountedSum)) };
	bool done;

	gpuds_visible_tell_device(&skip->count.visible, (double) skip->left, &spec);
	done = gpuds_scan_count_intervals(skip->scan, pieces, n, &spec, &counted);
	pfree((void *) spec.map);
	for (int64 i = 0; done && i < n; i++)
		entries[i] = counted.sums[i].rows;
	for (int64 i = 0; done && i < counted.n; i++)
		entries[entry_scan_find(&all, &counted.entries[i])]++;
	gpuds_probe_free_counted(&counted);
	pfree(counted.sums);
	return done;
}

/*
 * How many entries intervals have, in the scan's direction, up to the first that has more than are left of so
 * many; false: who knows?
 */
bool
gpuds_skip_count_entries(GpudsRowSkip *skip, const GpudsInterval *pieces, int64 n, int64 most, int64 *entries)
{
	if (skip->each)
		return gpuds_scan_count_by_rank(skip->scan, pieces, n, entries) ||
			   count_each(skip, pieces, n, entries);
	for (int64 i = 0; i < n && most >= 0; i++)
	{
		const int64 piece = gpuds_skip_turn(skip->forward, i, n);

		entries[piece] = gpuds_peek_count(&skip->peek, &pieces[piece]);
		if (entries[piece] < 0)
			return false;
		most -= entries[piece];
	}
	return true;
}

/*
 * How many of n intervals, ascending, have *most entries together, from where the scan comes to them; *most
 * is what is left then.  -1: who knows?
 */
int64
gpuds_skip_find_whole(GpudsRowSkip *skip, const GpudsInterval *intervals, int64 n, int64 *most)
{
	int64 *entries = palloc(n * sizeof(int64));
	int64 i = -1;

	if (gpuds_skip_count_entries(skip, intervals, n, *most, entries))
	{
		for (i = 0; i < n && entries[gpuds_skip_turn(skip->forward, i, n)] <= *most; i++)
			*most -= entries[gpuds_skip_turn(skip->forward, i, n)];
	}
	pfree(entries);
	return i;
}

/*
 * The part of an interval, from where the scan comes to it, that has so many entries, one at least, by their
 * ranks; false: the interval has not so many, or who knows?
 */
static bool
find_part_by_rank(const GpudsRowSkip *skip, const GpudsInterval *interval, int64 most, GpudsInterval *part)
{
	int64 rank = most - 1;

	*part = *interval;
	if (!skip->forward)
	{
		if (!gpuds_scan_count_by_rank(skip->scan, interval, 1, &rank) || rank < most)
			return false;
		rank -= most;
	}
	return gpuds_scan_find_rank(skip->scan, interval, rank, skip->forward ? &part->hi : &part->lo);
}

/*
 * The part of an interval, from where the scan comes to it, that has so many entries or a few less; false: it
 * is not to be had.  The interval has more.
 */
bool
gpuds_skip_find_part(GpudsRowSkip *skip, const GpudsInterval *interval, int64 most, GpudsInterval *part)
{
	const int bits = skip->each ? GPUDS_SKIP_EACH_BITS : GPUDS_SKIP_HALF_BITS;
	GpudsInterval *pieces = palloc(sizeof(GpudsInterval) << bits);
	GpudsInterval rest = *interval;
	bool found = false;
	int64 n;

	if (find_part_by_rank(skip, interval, most, part))
	{
		pfree(pieces);
		return true;
	}
	do
	{
		int64 whole = 0;

		CHECK_FOR_INTERRUPTS();
		n = gpuds_skip_cut(&rest, bits, 0, skip->nwords, pieces);
		/* The last that the scan comes to has what is too many. */
		if (n > 1)
			whole = gpuds_skip_find_whole(skip, skip->forward ? pieces : pieces + 1, n - 1, &most);
		if (whole < 0)
			break;
		if (whole > 0)
		{
			const GpudsInterval *piece = &pieces[gpuds_skip_turn(skip->forward, whole - 1, n)];

			*(skip->forward ? &part->hi : &part->lo) = skip->forward ? piece->hi : piece->lo;
			found = true;
		}
		rest = pieces[gpuds_skip_turn(skip->forward, whole, n)];
	} while (n > 1 && most > GPUDS_SKIP_FEW_FOR_PART / 2);
	pfree(pieces);
	return found;
}

/* Counts the rows of n intervals, which have about as many as are left; false: the device does not. */
bool
gpuds_skip_count_part(GpudsRowSkip *skip, const GpudsInterval *intervals, int64 n, int64 *seen,
					  int64 *entries)
{
	GpudsRowCount *count = &skip->count;
	GpudsCountedSum sum;
	GpudsCountSpec spec = { .partial = true };
	GpudsCounted counted = { .sums = &sum };
	const bool holds = gpuds_scan_ask_intervals(skip->scan, &count->visible, (double) skip->left, intervals,
												n, &spec, &counted);

	if (holds)
	{
		*entries = counted.counted + counted.n;
		*seen = counted.counted + gpuds_row_count_others(count, &counted) + gpuds_row_count_in_heap(count);
		gpuds_scan_note_matches(skip->scan, *entries, counted.counted);
	}
	gpuds_probe_free_counted(&counted);
	return holds;
}

/* Is it so little of the table that a device takes longer to count all pieces than batches take? */
static bool
is_small_share(const GpudsRowSkip *skip)
{
	return (double) skip->left * ENTRIES_OF_BATCHED < skip->scan->heapRelation->rd_rel->reltuples;
}

/* Makes n intervals ascend that are in the scan's direction. */
void
gpuds_skip_ascend(const GpudsRowSkip *skip, GpudsInterval *intervals, int64 n)
{
	for (int64 i = 0; !skip->forward && i < n / 2; i++)
	{
		const GpudsInterval interval = intervals[i];

		intervals[i] = intervals[n - 1 - i];
		intervals[n - 1 - i] = interval;
	}
}

/* Makes the intervals at hand ascend, if parts of them can be found and counted; returns how many. */
static int64
begin_parts(GpudsRowSkip *skip, GpudsInterval *intervals)
{
	int64 n;

	if (!skip->count.visible.counts || !gpuds_scan_is_worth_a_map(skip->scan, (double) skip->left))
		return 0;
	n = gpuds_scan_rest(skip->scan, Min(GPUDS_SKIP_MOST_INTERVALS, skip->left / GPUDS_SKIP_FEW_FOR_PART),
						intervals, &skip->each);
	if (n == 0 || (skip->each && is_small_share(skip)) ||
		(!skip->each && !gpuds_peek_begin(skip->scan->indexRelation, &skip->peek)))
		return 0;
	gpuds_skip_ascend(skip, intervals, n);
	return n;
}

/*
 * Skips the rows of some of n intervals, ascending, and of a part of the one behind them: about all rows that
 * are left to be skipped, or none at all if there were more.  *last: the last entry.  Returns how many
 * intervals are left, from the part's on, which is cut; 0: no others can be skipped so.
 */
static int64
skip_some(GpudsRowSkip *skip, GpudsInterval *intervals, int64 n, int64 *skipped, GpudsEntry *last)
{
	int64 most = skip->left - 2 * skip->excess;
	GpudsInterval *partly = intervals;
	GpudsInterval before = *partly;
	/* An only interval need not be counted first. */
	bool part = n == 1 && find_part_by_rank(skip, &before, most, partly);
	const int64 whole = part ? 0 : gpuds_skip_find_whole(skip, intervals, n, &most);
	int64 first;
	int64 seen;
	int64 entries;

	if (whole < 0)
		return 0;
	if (!part)
	{
		/* Without one that has more, this is any. */
		partly = &intervals[whole < n ? gpuds_skip_turn(skip->forward, whole, n) : 0];
		before = *partly;
		part = whole < n && most > GPUDS_SKIP_FEW_FOR_PART / 2 &&
			   gpuds_skip_find_part(skip, &before, most, partly);
	}
	first = skip->forward ? 0 : n - whole - part;
	if (whole + part == 0 || !gpuds_skip_count_part(skip, &intervals[first], whole + part, &seen, &entries))
		return 0;
	if (seen > skip->left)
	{
		skip->excess += seen - skip->left;
		*partly = before;
		return n;
	}
	skip->left -= seen;
	*skipped += entries;
	*last = skip->forward ? intervals[whole + part - 1].hi : intervals[first].lo;
	if (whole == n || entries == 0)
		return 0;
	*partly = before;
	return part && !gpuds_skip_cut_off(skip, last, partly) ? 0 : n - whole;
}

/* Skips rows by parts of the scan's intervals, as far as that can be done. */
static void
skip_parts(GpudsRowSkip *skip)
{
	GpudsInterval *intervals;
	GpudsEntry last;
	int64 skipped = 0;
	int64 n;

	if (skip->left <= GPUDS_SKIP_FEW_FOR_PART)
		return;
	intervals = palloc(Min(GPUDS_SKIP_MOST_INTERVALS, skip->left / GPUDS_SKIP_FEW_FOR_PART) *
					   sizeof(GpudsInterval));
	n = begin_parts(skip, intervals);
	for (int i = 0;
		 i < GPUDS_SKIP_MOST_PARTS && n > 0 && skip->left - 2 * skip->excess > GPUDS_SKIP_FEW_FOR_PART; i++)
	{
		const int64 left = skip_some(skip, intervals, n, &skipped, &last);

		/* Forward, those behind come first now. */
		if (skip->forward && left > 0)
			memmove(intervals, intervals + n - left, left * sizeof(GpudsInterval));
		n = left;
	}
	pfree(intervals);
	if (skipped > 0)
		gpuds_scan_move_to(skip->scan, &last, skipped);
}

/* Skips rows by batches. */
static void
skip_batches(GpudsRowSkip *skip)
{
	GpudsRowCount *count = &skip->count;

	while (skip->left > GPUDS_SKIP_FEW && gpuds_scan_has_more(skip->scan))
	{
		GpudsScanBatch batch;

		gpuds_scan_next_batch(skip->scan, Min(gpuds_row_count_room(count), skip->left - count->n), &batch);
		skip->left -= gpuds_row_count_batch(count, &batch);
		/* Those on the list may be seen, too. */
		if (skip->left - count->n <= GPUDS_SKIP_FEW || gpuds_row_count_is_half_full(count))
			skip->left -= gpuds_row_count_in_heap(count);
	}
	skip->left -= gpuds_row_count_in_heap(count);
}

/* Begins to move a scan behind n rows, as gpuds_scan_skip does: it passes its barrier. */
void
gpuds_skip_begin(GpudsRowSkip *skip, IndexScanDesc scan, bool forward, int64 n)
{
	*skip = (GpudsRowSkip){ .scan = scan,
							.forward = forward,
							.nwords = gpuds_index_info(scan->indexRelation)->layout.nwords,
							.left = n };
	gpuds_row_count_begin(&skip->count, scan);
	gpuds_index_only_prepare(scan);
	gpuds_scan_begin_skip(scan, (double) n, forward);
}

/* Ends that: what is behind is given one by one.  Returns how many rows were looked up in the heap. */
int64
gpuds_skip_end(GpudsRowSkip *skip)
{
	gpuds_scan_end_skip(skip->scan);
	return gpuds_row_count_end(&skip->count);
}

/*
 * Moves a scan whose keys have been set, from its beginning in one of the directions, or from the row that
 * it has given last in this direction, behind n rows that its snapshot sees, or some less; returns how
 * many.  Core goes on with the scan in this direction.  The scan's snapshot must be an MVCC snapshot, and
 * its conditions exact.  *fetches: rows that were looked up in the heap.
 */
int64
gpuds_scan_skip(IndexScanDesc scan, bool forward, int64 n, int64 *fetches)
{
	GpudsRowSkip skip;

	*fetches = 0;
	if (n <= GPUDS_SKIP_FEW)
		return 0;
	gpuds_skip_begin(&skip, scan, forward, n);
	skip_parts(&skip);
	skip_batches(&skip);
	*fetches = gpuds_skip_end(&skip);
	return n - skip.left;
}
