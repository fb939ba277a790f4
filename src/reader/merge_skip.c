/*-------------------------------------------------------------------------
 *
 * merge_skip.c
 *	  Moves several scans behind the first rows that they have together, by the order of their keys.
 *
 * The scans' entries have the columns of the order in the same bits, so a number is a place in the order for
 * all of them.  The place with as many entries before it as there are rows to skip, or a few less, is found
 * as row_skip.c finds a part: by counts of pieces of a range, in each scan.  Where one value has too many
 * entries, those of the first scans are taken, and a part of the next one's.  What was found may be out of
 * date, so the rows before the place are counted then, and scans move only if they are not too many.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/relscan.h"
#include "miscadmin.h"

#include "reader/reader.h"
#include "reader/row_skip.h"

/* One of the scans. */
typedef struct Merged
{
	GpudsRowSkip skip;
	GpudsInterval *rest; /* its intervals, ascending, as far as they have not been skipped */
	int64 n;
	bool bounded;     /* the next part ends in its intervals, ... */
	GpudsEntry bound; /* ... here */
	int64 entries;    /* of that part */
	GpudsEntry last;  /* where the last part ended, if there was one */
	int64 skipped;    /* entries of all parts */
} Merged;

typedef struct MergeSkip
{
	Merged *scans;
	int n;
	bool forward;
	int nwords;      /* of a key */
	int low;         /* bits of an entry behind the columns of the order */
	int bits;        /* that ranges are cut in */
	GpudsEntry ones; /* in the low bits */
	int64 left;      /* rows to skip */
	int64 excess;    /* rows that parts had more than they should */
} MergeSkip;

/* The whole range of values that is left; false: nothing is. */
static bool
whole_range(const MergeSkip *m, GpudsInterval *range)
{
	bool any = false;

	for (int i = 0; i < m->n; i++)
	{
		const Merged *scan = &m->scans[i];

		if (scan->n == 0)
			continue;
		if (!any || entry_less(&scan->rest[0].lo, &range->lo))
			range->lo = scan->rest[0].lo;
		if (!any || entry_less(&range->hi, &scan->rest[scan->n - 1].hi))
			range->hi = scan->rest[scan->n - 1].hi;
		any = true;
	}
	if (!any)
		return false;
	range->lo.w0 &= ~m->ones.w0;
	range->lo.w1 &= ~m->ones.w1;
	range->lo.t &= ~m->ones.t;
	range->hi.w0 |= m->ones.w0;
	range->hi.w1 |= m->ones.w1;
	range->hi.t |= m->ones.t;
	return true;
}

/*
 * What n pieces, ascending and disjoint, have in common with what is left of a scan, ascending; there are as
 * many parts as both together at most.  of[i]: the number of the piece that a part is of.
 */
static int64
common_parts(const Merged *scan, const GpudsInterval *pieces, int64 n, GpudsInterval *parts, int64 *of)
{
	const GpudsScan rest = { .intervals = scan->rest, .n = scan->n };
	int64 i = entry_scan_find(&rest, &pieces[0].lo);
	int64 nparts = 0;

	for (int64 piece = 0; piece < n && i < scan->n;)
	{
		const GpudsInterval *a = &scan->rest[i];
		const GpudsInterval *b = &pieces[piece];
		const bool a_ends = entry_less(&a->hi, &b->hi);

		if (!entry_less(&a->hi, &b->lo) && !entry_less(&b->hi, &a->lo))
		{
			parts[nparts].lo = entry_less(&a->lo, &b->lo) ? b->lo : a->lo;
			parts[nparts].hi = a_ends ? a->hi : b->hi;
			of[nparts++] = piece;
		}
		if (a_ends)
			i++;
		else
			piece++;
	}
	return nparts;
}

/* Adds to sums how many entries a scan has in n pieces; false: who knows? */
static bool
add_entries(Merged *scan, const GpudsInterval *pieces, int64 n, int64 *sums)
{
	GpudsInterval *parts = palloc((scan->n + n) * sizeof(GpudsInterval));
	int64 *of = palloc((scan->n + n) * sizeof(int64));
	int64 *entries = palloc((scan->n + n) * sizeof(int64));
	const int64 nparts = common_parts(scan, pieces, n, parts, of);
	const bool known = nparts == 0 ||
					   gpuds_skip_count_entries(&scan->skip, parts, nparts, PG_INT64_MAX, entries);

	for (int64 i = 0; known && i < nparts; i++)
		sums[of[i]] += entries[i];
	pfree(parts);
	pfree(of);
	pfree(entries);
	return known;
}

/*
 * How many of n pieces, ascending, have *most entries together in all scans, from where these come to them;
 * *most is what is left then.  -1: who knows?
 */
static int64
find_whole(const MergeSkip *m, const GpudsInterval *pieces, int64 n, int64 *most)
{
	int64 *sums = palloc0(n * sizeof(int64));
	bool known = true;
	int64 whole = -1;

	for (int i = 0; i < m->n && known; i++)
	{
		CHECK_FOR_INTERRUPTS();
		known = add_entries(&m->scans[i], pieces, n, sums);
	}
	if (known)
	{
		for (whole = 0; whole < n && sums[gpuds_skip_turn(m->forward, whole, n)] <= *most; whole++)
			*most -= sums[gpuds_skip_turn(m->forward, whole, n)];
	}
	pfree(sums);
	return whole;
}

/* Where a scan leaves an interval. */
static const GpudsEntry *
end_of(const MergeSkip *m, const GpudsInterval *interval)
{
	return m->forward ? &interval->hi : &interval->lo;
}

/* The next part of all scans ends there. */
static void
set_bounds(MergeSkip *m, const GpudsEntry *bound)
{
	for (int i = 0; i < m->n; i++)
	{
		m->scans[i].bounded = true;
		m->scans[i].bound = *bound;
	}
}

/*
 * Sets the bounds of a part by values that have *most entries, or less; *most and *range are what is left
 * then.  The range has more.  False: who knows?
 */
static bool
bound_by_values(MergeSkip *m, GpudsInterval *range, int64 *most)
{
	GpudsInterval *pieces = palloc(sizeof(GpudsInterval) << m->bits);
	bool known = true;
	int64 n;

	do
	{
		int64 whole = 0;

		n = gpuds_skip_cut(range, m->bits, m->low, m->nwords, pieces);
		/* The last that the scans come to has what is too many. */
		if (n > 1)
			whole = find_whole(m, m->forward ? pieces : pieces + 1, n - 1, most);
		known = whole >= 0;
		if (!known)
			break;
		if (whole > 0)
			set_bounds(m, end_of(m, &pieces[gpuds_skip_turn(m->forward, whole - 1, n)]));
		*range = pieces[gpuds_skip_turn(m->forward, whole, n)];
	} while (n > 1 && *most > GPUDS_SKIP_FEW_FOR_PART / 2);
	pfree(pieces);
	return known;
}

/* The part of a scan's entries of one value that has *most entries, or less; the scan has more. */
static bool
bound_in_scan(const MergeSkip *m, Merged *scan, const GpudsInterval *value, int64 most)
{
	GpudsInterval *parts = palloc((scan->n + 1) * sizeof(GpudsInterval));
	int64 *of = palloc((scan->n + 1) * sizeof(int64));
	const int64 n = common_parts(scan, value, 1, parts, of);
	const int64 whole = gpuds_skip_find_whole(&scan->skip, parts, n, &most);
	GpudsInterval part;

	if (whole > 0)
	{
		scan->bounded = true;
		scan->bound = *end_of(m, &parts[gpuds_skip_turn(m->forward, whole - 1, n)]);
	}
	if (whole >= 0 && whole < n && most > GPUDS_SKIP_FEW_FOR_PART / 2 &&
		gpuds_skip_find_part(&scan->skip, &parts[gpuds_skip_turn(m->forward, whole, n)], most, &part))
	{
		scan->bounded = true;
		scan->bound = *end_of(m, &part);
	}
	pfree(parts);
	pfree(of);
	return whole >= 0;
}

/* Moves the bounds on in the entries of one value, which are more than *most: scan by scan. */
static bool
bound_by_scans(MergeSkip *m, const GpudsInterval *value, int64 most)
{
	for (int i = 0; i < m->n; i++)
	{
		Merged *scan = &m->scans[i];
		int64 entries = 0;

		if (!add_entries(scan, value, 1, &entries))
			return false;
		if (entries > most)
			return bound_in_scan(m, scan, value, most);
		scan->bounded = true;
		scan->bound = *end_of(m, value);
		most -= entries;
	}
	return true;
}

/* Finds the next part of all scans; false: it is not to be had. */
static bool
find_bounds(MergeSkip *m)
{
	int64 most = m->left - 2 * m->excess;
	GpudsInterval range;
	int64 whole;

	for (int i = 0; i < m->n; i++)
		m->scans[i].bounded = false;
	if (!whole_range(m, &range))
		return false;
	whole = find_whole(m, &range, 1, &most);
	if (whole > 0)
		set_bounds(m, end_of(m, &range));
	if (whole != 0)
		return whole > 0;
	if (!bound_by_values(m, &range, &most))
		return false;
	return most <= GPUDS_SKIP_FEW_FOR_PART / 2 || bound_by_scans(m, &range, most);
}

/* The intervals of a scan's next part, ascending; there are as many as are left at most. */
static int64
part_of(const MergeSkip *m, const Merged *scan, GpudsInterval *part)
{
	int64 n = 0;

	for (int64 i = 0; scan->bounded && i < scan->n; i++)
	{
		part[n] = scan->rest[i];
		if (m->forward ? entry_less(&scan->bound, &part[n].lo) : entry_less(&part[n].hi, &scan->bound))
			continue;
		if (m->forward && entry_less(&scan->bound, &part[n].hi))
			part[n].hi = scan->bound;
		if (!m->forward && entry_less(&part[n].lo, &scan->bound))
			part[n].lo = scan->bound;
		n++;
	}
	return n;
}

/* Counts the rows of the next part of all scans; false: a device does not. */
static bool
count_parts(MergeSkip *m, int64 *seen)
{
	bool counted = true;

	*seen = 0;
	for (int i = 0; i < m->n && counted; i++)
	{
		Merged *scan = &m->scans[i];
		GpudsInterval *part = palloc(Max(scan->n, 1) * sizeof(GpudsInterval));
		const int64 n = part_of(m, scan, part);
		int64 of_scan = 0;

		CHECK_FOR_INTERRUPTS();
		scan->entries = 0;
		scan->skip.left = m->left;
		if (n > 0)
			counted = gpuds_skip_count_part(&scan->skip, part, n, &of_scan, &scan->entries);
		*seen += of_scan;
		pfree(part);
	}
	return counted;
}

/* Takes its next part off what is left of a scan. */
static void
take_part(const MergeSkip *m, Merged *scan)
{
	bool any = false;
	int64 n = 0;

	for (int64 i = 0; scan->bounded && i < scan->n; i++)
	{
		GpudsInterval *interval = &scan->rest[i];
		const bool begun = m->forward ? !entry_less(&scan->bound, &interval->lo)
									  : !entry_less(&interval->hi, &scan->bound);
		const bool ended = m->forward ? !entry_less(&scan->bound, &interval->hi)
									  : !entry_less(&interval->lo, &scan->bound);

		/* The furthest in the scan's direction. */
		if (begun && (m->forward || !any))
			scan->last = ended ? *end_of(m, interval) : scan->bound;
		any |= begun;
		if (ended || (begun && !gpuds_skip_cut_off(&scan->skip, &scan->bound, interval)))
			continue;
		scan->rest[n++] = *interval;
	}
	if (scan->bounded)
		scan->n = n;
	scan->skipped += scan->entries;
}

/* Skips a part of all scans, or none at all if it has too many rows; false: no others can be skipped so. */
static bool
skip_part(MergeSkip *m)
{
	int64 entries = 0;
	int64 seen;

	if (!find_bounds(m) || !count_parts(m, &seen))
		return false;
	if (seen > m->left)
	{
		m->excess += seen - m->left;
		return true;
	}
	m->left -= seen;
	for (int i = 0; i < m->n; i++)
	{
		entries += m->scans[i].entries;
		take_part(m, &m->scans[i]);
	}
	return entries > 0;
}

/* Can parts of a scan be found and counted, and is it worth while?  Then it has all of its intervals. */
static bool
begin_parts(MergeSkip *m, Merged *scan)
{
	GpudsRowSkip *skip = &scan->skip;
	const IndexScanDesc desc = skip->scan;
	GpudsInterval *intervals;

	if (!gpuds_scan_has_more(desc))
		return true;
	if (!skip->count.visible.counts || !gpuds_scan_is_worth_a_map(desc, (double) m->left) ||
		!gpuds_scan_has_all(desc) || gpuds_scan_intervals(desc) > GPUDS_SKIP_MOST_INTERVALS)
		return false;
	intervals = palloc(gpuds_scan_intervals(desc) * sizeof(GpudsInterval));
	scan->rest = intervals;
	scan->n = gpuds_scan_rest(desc, gpuds_scan_intervals(desc), intervals, &skip->each);
	if (scan->n == 0 || (!skip->each && !gpuds_peek_begin(desc->indexRelation, &skip->peek)))
		return false;
	if (!skip->each)
		m->bits = GPUDS_SKIP_HALF_BITS;
	gpuds_skip_ascend(skip, intervals, scan->n);
	return true;
}

/* Skips rows by parts, as far as that can be done. */
static void
skip_parts(MergeSkip *m)
{
	bool can = true;

	for (int i = 0; i < m->n && can; i++)
		can = begin_parts(m, &m->scans[i]);
	for (int i = 0; i < GPUDS_SKIP_MOST_PARTS && can && m->left - 2 * m->excess > GPUDS_SKIP_FEW_FOR_PART;
		 i++)
		can = skip_part(m);
	for (int i = 0; i < m->n; i++)
	{
		if (m->scans[i].skipped > 0)
			gpuds_scan_move_to(m->scans[i].skip.scan, &m->scans[i].last, m->scans[i].skipped);
	}
}

/*
 * Moves n scans whose keys have been set, from their beginnings in one of the directions, behind so many rows
 * that their snapshot sees, or some less, in the order that the first columns of all keys have, which are in
 * the same bits (gpuds_key_orders_alike); of rows that are equal there, those of the scan with the lower
 * number come first.  Returns how many rows.  Else as gpuds_scan_skip; fetches: of each scan.
 */
int64
gpuds_scan_skip_merged(IndexScanDesc *scans, int n, int ncolumns, bool forward, int64 rows, int64 *fetches)
{
	const GpudsKeyLayout *layout = &gpuds_index_info(scans[0]->indexRelation)->layout;
	MergeSkip m = { .n = n, .forward = forward, .nwords = layout->nwords, .left = rows };

	memset(fetches, 0, n * sizeof(int64));
	if (rows <= GPUDS_SKIP_FEW_MERGED)
		return 0;
	m.low = gpuds_key_bits_behind(layout, ncolumns);
	m.ones = gpuds_key_ones_behind(layout, ncolumns);
	m.bits = GPUDS_SKIP_EACH_BITS;
	m.scans = palloc0(n * sizeof(Merged));
	for (int i = 0; i < n; i++)
		gpuds_skip_begin(&m.scans[i].skip, scans[i], forward, rows);
	skip_parts(&m);
	for (int i = 0; i < n; i++)
	{
		fetches[i] = gpuds_skip_end(&m.scans[i].skip);
		if (m.scans[i].rest)
			pfree(m.scans[i].rest);
	}
	pfree(m.scans);
	return rows - m.left;
}
