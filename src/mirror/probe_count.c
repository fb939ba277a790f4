/*-------------------------------------------------------------------------
 *
 * probe_count.c
 *	  Counts a scan's entries on the mirror's device, instead of fetching them.
 *
 * The memtable has the last word on what it has entries of.  These entries are left out of the
 * scan that the device is asked for, whatever the mirror has of them by then, and those that
 * are not deleted are added here.  Of points in no order (spec->unsorted) those are set apart that the
 * memtable may have entries of, and only they are sorted.  Intervals in no order (counted->hits) are not
 * split; there, the caller is told which entries these are, and does not believe what is counted of their
 * keys.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "port/pg_bswap.h"
#include "storage/ipc.h"
#include "utils/memutils.h"

#include "kernels/core/sort.h"
#include "mirror/mirror_internal.h"

/* May gpuds_probe_count have an answer? */
bool
gpuds_probe_counts(const GpudsMirrorRef *ref)
{
	return ref->mirror != NULL;
}

/* The same of an aggregate, for more than the entries of the others. */
bool
gpuds_probe_aggregates(const GpudsMirrorRef *ref)
{
	return ref->mirror && gpuds_device_aggregates(&ref->mirror->tree);
}

/* Up to this many intervals in no order, the memtable is asked about each; of more, for all that it has. */
#define FEW_INTERVALS (16 * 1024)

/* A count of a scan's entries. */
typedef struct Counting
{
	GpudsMirrorRef *ref;
	const GpudsScan *scan; /* as the caller has it */
	const GpudsCountSpec *spec;
	GpudsCounted *counted;
} Counting;

/* Makes array for n more of the others; size: bytes of one. */
static void *
ensure_capacity(GpudsCounted *counted, void *array, int64 n, size_t size)
{
	if (counted->n + n <= counted->size)
		return array;
	counted->size = Max(counted->n + n, 2 * counted->size);
	return array ? repalloc_huge(array, counted->size * size)
				 : MemoryContextAllocHuge(CurrentMemoryContext, counted->size * size);
}

/* Adds what a device calls the others. */
static void
add_others(GpudsCounted *counted, const GpudsCountSpec *spec, const GpudsCount *count)
{
	if (count->n == 0)
		return;
	if (spec->partial)
	{
		counted->entries = ensure_capacity(counted, counted->entries, count->n, sizeof(GpudsEntry));
		memcpy(counted->entries + counted->n, count->entries, count->n * sizeof(GpudsEntry));
	}
	else
	{
		counted->tids = ensure_capacity(counted, counted->tids, count->n, sizeof(uint64));
		memcpy(counted->tids + counted->n, count->tids, count->n * sizeof(uint64));
	}
	counted->n += count->n;
}

/* Adds an entry of the memtable to the others. */
static void
add_other(GpudsCounted *counted, const GpudsCountSpec *spec, const GpudsEntry *entry)
{
	if (spec->partial)
	{
		counted->entries = ensure_capacity(counted, counted->entries, 1, sizeof(GpudsEntry));
		counted->entries[counted->n++] = *entry;
	}
	else
	{
		counted->tids = ensure_capacity(counted, counted->tids, 1, sizeof(uint64));
		counted->tids[counted->n++] = entry->t & ENTRY_TID_MASK;
	}
}

/* The sum that an interval of a part of the scan, or of all of it, belongs to. */
static GpudsCountedSum *
sum_of(const Counting *counting, const GpudsScan *part, int64 interval)
{
	GpudsInterval is;

	if (!counting->spec->each)
		return counting->counted->sums;
	is = entry_scan_interval(part, interval);
	return &counting->counted->sums[entry_scan_find(counting->scan, &is.lo)];
}

/* Eight booleans of eight bits, the lowest one first. */
static inline void
spread_bits(uint8 bits, bool *to)
{
	/* Byte i keeps bit i, which 127 more makes the highest one. */
	uint64 bytes = bits * UINT64CONST(0x0101010101010101) & UINT64CONST(0x8040201008040201);

	bytes = (bytes + UINT64CONST(0x7f7f7f7f7f7f7f7f)) >> 7 & UINT64CONST(0x0101010101010101);
#ifdef WORDS_BIGENDIAN
	bytes = pg_bswap64(bytes);
#endif
	memcpy(to, &bytes, sizeof(bytes));
}

/* Notes which of a scan's intervals, from the first on, have entries that were counted. */
static void
set_membership(const Counting *counting, int64 first, const GpudsCount *count)
{
	bool *hits = counting->counted->hits + first;
	int64 i = 0;

	for (; i + BITS_PER_BYTE <= count->nresults; i += BITS_PER_BYTE)
		spread_bits((uint8) (count->bits[i / 32] >> i % 32), hits + i);
	for (; i < count->nresults; i++)
		hits[i] = (count->bits[i / 32] >> i % 32 & 1) != 0;
}

/* Adds the results of a part's intervals from the first on. */
static void
add_results(const Counting *counting, const GpudsScan *part, int64 first, const GpudsCount *count)
{
	for (int64 i = 0; i < count->nresults; i++)
	{
		GpudsCountedSum *sum = sum_of(counting, part, first + i);

		sum->rows += gpuds_count_rows(count, counting->spec, i);
		for (int k = 0; k < counting->spec->nagg; k++)
		{
			PartialAgg partial;

			gpuds_count_partial_agg(count, counting->spec, i, k, &partial);
			partial_agg_merge(&sum->partial[k], &partial);
		}
	}
}

/* Adds the groups of a part. */
static void
add_groups(const Counting *counting, const GpudsCount *count)
{
	const size_t words = gpuds_count_group_words(counting->spec);
	GpudsCountedGroups *groups = &counting->counted->groups;

	counting->counted->filtered += count->filtered;
	counting->counted->left_out += count->left_out;
	counting->counted->joined += count->joined;
	if (count->ngroups == 0)
		return;
	if (groups->n + count->ngroups > groups->size)
	{
		groups->size = Max(groups->n + count->ngroups, 2 * groups->size);
		groups->words = groups->words ? repalloc_huge(groups->words, groups->size * words * sizeof(uint64))
									  : MemoryContextAllocHuge(CurrentMemoryContext,
															   groups->size * words * sizeof(uint64));
	}
	memcpy(groups->words + groups->n * words, count->groups, count->ngroups * words * sizeof(uint64));
	groups->n += count->ngroups;
}

static void
free_count(int code, Datum arg)
{
	gpuds_device_free_count((GpudsCount *) DatumGetPointer(arg));
}

/* Counts as much of a part of the scan as a device does at once; false: it does not do it. */
static bool
count_piece(const Counting *counting, const GpudsCountSpec *spec, GpudsScan *part)
{
	GpudsMirrorRef *ref = counting->ref;
	GpudsMirror *mirror = ref->mirror;
	GpudsCountStatus status = GPUDS_COUNT_OK;
	GpudsCount count;
	int64 first = part->next;

	CHECK_FOR_INTERRUPTS();
	memset(&count, 0, sizeof(count));
	PG_ENSURE_ERROR_CLEANUP(free_count, PointerGetDatum(&count));
	{
		status = gpuds_device_count(&mirror->tree, &mirror->guard, ref->serial, part, spec, &count);
		if (status == GPUDS_COUNT_OK)
		{
			if (counting->counted->hits)
				set_membership(counting, first, &count);
			else if (spec->groups || spec->join)
				add_groups(counting, &count);
			else
				add_results(counting, part, first, &count);
			add_others(counting->counted, counting->spec, &count);
			counting->counted->counted += count.counted;
			counting->counted->newer |= !count.same;
			gpuds_mirror_count(ref, 0, 1, 0, count.counted + count.filtered + count.left_out + count.n);
		}
	}
	PG_END_ENSURE_ERROR_CLEANUP(free_count, PointerGetDatum(&count));
	gpuds_device_free_count(&count);
	return status == GPUDS_COUNT_OK;
}

/*
 * Counts what the mirror has of a part of the scan, by its spec, or if groups are wanted in order a piece of
 * it; false: the device does not do it.
 */
static bool
count_part(const Counting *counting, const GpudsCountSpec *spec, GpudsScan *part)
{
	while (part->next < part->n)
	{
		if (!count_piece(counting, spec, part))
			return false;
		if (gpuds_count_is_in_order(spec->groups))
			break;
	}
	return true;
}

/* The labels of a part's intervals: each has that of the interval it is a part of. */
static uint32 *
labels_of(const Counting *counting, const GpudsScan *part)
{
	uint32 *labels = MemoryContextAllocHuge(CurrentMemoryContext, Max(part->n, 1) * sizeof(uint32));

	for (int64 i = 0; i < part->n; i++)
	{
		GpudsInterval is = entry_scan_interval(part, i);

		labels[i] = counting->spec->groups->labels[entry_scan_find(counting->scan, &is.lo)];
	}
	return labels;
}

/* Counts what the mirror has of a part of the scan; false: the device does not do it. */
static bool
count_in_mirror(const Counting *counting, GpudsScan *part)
{
	GpudsCountSpec spec = *counting->spec;
	GpudsCountGroups groups;
	uint32 *labels;
	bool done;

	if (spec.groups == NULL || !spec.groups->spec->has_labels)
		return count_part(counting, counting->spec, part);
	labels = labels_of(counting, part);
	groups = *spec.groups;
	groups.labels = labels;
	spec.groups = &groups;
	done = count_part(counting, &spec, part);
	pfree(labels);
	return done;
}

/* A scan without some entries: intervals of the one shape, and of the other. */
typedef struct Remains
{
	GpudsScan as_it_is; /* what has none of them */
	GpudsScan split;    /* intervals between them */
} Remains;

/* Adds what an interval has on both sides of some entries, which are all in it; returns how many pieces. */
static int64
split_interval(const GpudsInterval *interval, const GpudsOp *ops, int64 n, GpudsInterval *out)
{
	GpudsInterval piece = *interval;
	int64 pieces = 0;

	for (int64 i = 0; i < n; i++)
	{
		piece.hi = entry_before(ops[i].e);
		/* An entry is not less than the interval's begin, so nothing wraps that is used. */
		if (!entry_less(&ops[i].e, &piece.lo) && !entry_equal(&ops[i].e, &piece.lo))
			out[pieces++] = piece;
		piece.lo = ops[i].e;
		piece.lo.t++;
	}
	piece.hi = interval->hi;
	if (!entry_less(&piece.hi, &piece.lo))
		out[pieces++] = piece;
	return pieces;
}

/*
 * What remains of a scan without the entries of some operations, ascending, all of the rest of the scan.
 * Between the intervals that have such entries the others are copied as they are, however many there are.
 */
static void
leave_out(const GpudsScan *scan, const GpudsOp *ops, int64 n, Remains *remains)
{
	const Size size = scan->points ? sizeof(uint64) : sizeof(GpudsInterval);
	const char *all = scan->points ? (const char *) scan->points : (const char *) scan->intervals;
	char *kept = MemoryContextAllocHuge(CurrentMemoryContext, Max(scan->n - scan->next, 1) * size);
	/* Each operation adds a piece at most, to those of the interval that it is in. */
	GpudsInterval *split = MemoryContextAllocHuge(CurrentMemoryContext, (2 * n + 2) * sizeof(GpudsInterval));
	int64 next = scan->next;
	int64 nkept = 0;
	int64 nsplit = 0;
	int64 i = 0;

	for (;;)
	{
		const bool begun = scan->inside && next == scan->next;
		int64 found = begun ? next : scan->n;
		int64 inside = 0;
		GpudsInterval interval;

		CHECK_FOR_INTERRUPTS();
		if (!begun && i < n)
			found = Max(entry_scan_find(scan, &ops[i].e), next);
		memcpy(kept + nkept * size, all + next * size, (found - next) * size);
		nkept += found - next;
		if (found >= scan->n)
			break;
		if (entry_scan_rest(scan, found, true, &interval))
		{
			while (i + inside < n && !entry_less(&interval.hi, &ops[i + inside].e))
				inside++;
			nsplit += split_interval(&interval, ops + i, inside, split + nsplit);
			i += inside;
		}
		next = found + 1;
	}
	memset(remains, 0, sizeof(*remains));
	remains->as_it_is.intervals = scan->points ? scan->intervals : (GpudsInterval *) kept;
	remains->as_it_is.points = scan->points ? (uint64 *) kept : NULL;
	remains->as_it_is.n = nkept;
	remains->split.intervals = split;
	remains->split.n = nsplit;
}

/* Frees what leave_out has made. */
static void
free_remains(Remains *remains)
{
	if (remains->as_it_is.points)
		pfree((void *) remains->as_it_is.points);
	else
		pfree((void *) remains->as_it_is.intervals);
	pfree((void *) remains->split.intervals);
}

/* What remains of a scan without the entries of some operations, as intervals in order. */
static GpudsScan
leave_out_in_order(const GpudsScan *scan, const GpudsOp *ops, int64 n)
{
	GpudsInterval *split = MemoryContextAllocHuge(CurrentMemoryContext,
												  (scan->n - scan->next + n) * sizeof(GpudsInterval));
	GpudsScan remains = { .intervals = split };
	int64 i = 0;

	for (int64 next = scan->next; next < scan->n; next++)
	{
		int64 inside = 0;
		GpudsInterval interval;

		CHECK_FOR_INTERRUPTS();
		if (!entry_scan_rest(scan, next, true, &interval))
			continue;
		while (i + inside < n && !entry_less(&interval.hi, &ops[i + inside].e))
			inside++;
		remains.n += split_interval(&interval, ops + i, inside, split + remains.n);
		i += inside;
	}
	return remains;
}

/* Has a scan been through all but the rest of another, which has the same entries? */
static void
go_on_like(GpudsScan *scan, const GpudsScan *other)
{
	scan->inside = other->next < other->n;
	if (!scan->inside)
	{
		scan->next = scan->n;
		return;
	}
	scan->at = other->inside ? other->at : other->intervals[other->next - 1].hi;
	/* Entries never have the highest t, and the scan goes on with the one above. */
	scan->at.t = Min(scan->at.t, UINT64_MAX - 1);
	scan->next = entry_scan_find(scan, &scan->at);
}

/* Counts a piece of what the mirror and its memtable have of the scan together; ops: those ahead. */
static bool
count_piece_of_both(const Counting *counting, const GpudsOp *ops, int64 n)
{
	GpudsScan *rest = &counting->counted->rest;
	GpudsScan part = leave_out_in_order(rest, ops, n);
	bool done = count_part(counting, counting->spec, &part);

	if (done)
		go_on_like(rest, &part);
	pfree((void *) part.intervals);
	for (int64 i = 0; done && i < n && (!rest->inside || !entry_less(&rest->at, &ops[i].e)); i++)
	{
		if ((ops[i].order & GPUDS_OP_DELETE) == 0)
			add_other(counting->counted, counting->spec, &ops[i].e);
	}
	return done && gpuds_probe_still_attached(counting->ref);
}

/* Counts what the mirror and its memtable have of the scan together. */
static bool
count_both(const Counting *counting)
{
	GpudsMirrorRef *ref = counting->ref;
	const GpudsDelta *delta = &ref->delta;
	Remains remains;
	const GpudsOp *ops;
	int64 n;
	bool done;

	if (!gpuds_probe_ask_memtable(ref, counting->scan, true, true) || !delta->all)
		return false;
	gpuds_injection_point("memtable-collected");
	ops = delta->ops + gpuds_probe_first_ahead(delta, counting->scan);
	n = delta->ops + delta->n - ops;
	if (n == 0)
		return count_in_mirror(counting, &counting->counted->rest) && gpuds_probe_still_attached(ref);
	if (gpuds_count_is_in_order(counting->spec->groups))
		return count_piece_of_both(counting, ops, n);
	leave_out(counting->scan, ops, n, &remains);
	done = count_in_mirror(counting, &remains.as_it_is) && count_in_mirror(counting, &remains.split);
	free_remains(&remains);
	for (int64 i = 0; done && i < n; i++)
	{
		if ((ops[i].order & GPUDS_OP_DELETE) == 0)
			add_other(counting->counted, counting->spec, &ops[i].e);
	}
	return done && gpuds_probe_still_attached(ref);
}

/* All entries. */
static const GpudsInterval everything = { { 0, 0, 0 }, { UINT64_MAX, UINT64_MAX, UINT64_MAX } };
static const GpudsScan all = { .intervals = &everything, .n = 1 };

/* Counts what the mirror has of n points, which are given up, by requests of as many as the device takes. */
static bool
count_split_points(const Counting *counting, uint64 *points, int64 n, int64 most)
{
	GpudsScan part = { .intervals = counting->scan->intervals, .n = n, .points = points };
	int64 start[SORT_SPLIT + 1];

	CHECK_FOR_INTERRUPTS();
	if (n > most && sort_split_words(points, n, start))
	{
		/* Equal points stay together, so they are counted once. */
		for (int first = 0, end; first < SORT_SPLIT; first = end)
		{
			end = first + 1;
			while (end < SORT_SPLIT && start[end + 1] - start[first] <= most)
				end++;
			if (!count_split_points(counting, points + start[first], start[end] - start[first], most))
				return false;
		}
		return true;
	}
	part.n = Min(n, most);
	return count_part(counting, counting->spec, &part);
}

/* Counts what the mirror has of n points in any order; false: the device does not do it. */
static bool
count_points(const Counting *counting, const uint64 *points, int64 n)
{
	const int64 most = gpuds_device_most_unsorted(&counting->ref->mirror->tree, counting->spec);
	GpudsScan part = { .intervals = counting->scan->intervals, .n = n, .points = points };
	uint64 *copy;
	bool done;

	if (most == 0 || n <= most)
		return most > 0 && count_part(counting, counting->spec, &part);
	copy = MemoryContextAllocHuge(CurrentMemoryContext, n * sizeof(uint64));
	memcpy(copy, points, n * sizeof(uint64));
	done = count_split_points(counting, copy, n, most);
	pfree(copy);
	return done;
}

/* Bits of a filter for each of the memtable's entries, so that few points of others pass it; at least. */
#define FILTER_BITS_AN_ENTRY 64
#define FILTER_BITS_LEAST 4096

/* A scan's points: those of which the memtable may have entries, ascending and different, and all others. */
typedef struct Parted
{
	uint64 *others; /* as they came */
	int64 nothers;
	uint64 *touched;
	int64 ntouched;
} Parted;

/* The number of a point's bit in a filter, by the upper bits of a product. */
static inline uint64
filter_bit(uint64 point, int shift)
{
	return (point * UINT64CONST(0x9e3779b97f4a7c15)) >> shift;
}

/* Makes a filter of the points that operations are of; *shift: for filter_bit. */
static uint64 *
make_filter(const GpudsInterval *frame, const GpudsOp *ops, int64 n, int *shift)
{
	uint64 *filter;

	*shift = 64 - pg_leftmost_one_pos64(Max(n * FILTER_BITS_AN_ENTRY, FILTER_BITS_LEAST));
	filter = MemoryContextAllocZero(CurrentMemoryContext, (UINT64CONST(1) << (64 - *shift)) / BITS_PER_BYTE);
	for (int64 i = 0; i < n; i++)
	{
		/* The frame has ones in the bits that points leave to other columns, in its upper end. */
		const uint64 bit = filter_bit(ops[i].e.w0 & ~frame->hi.w0, *shift);

		filter[bit / 64] |= UINT64CONST(1) << bit % 64;
	}
	return filter;
}

/* Sorts words, and leaves one of each; returns how many. */
static int64
sort_unique_words(uint64 *words, int64 n)
{
	uint64 *scratch = MemoryContextAllocHuge(CurrentMemoryContext, Max(n, 1) * sizeof(uint64));
	int64 kept = 0;

	sort_u64(words, scratch, n);
	pfree(scratch);
	for (int64 i = 0; i < n; i++)
	{
		if (kept == 0 || words[i] != words[kept - 1])
			words[kept++] = words[i];
	}
	return kept;
}

/* Parts a scan's points by n operations. */
static void
part_points(const GpudsScan *scan, const GpudsOp *ops, int64 n, Parted *parted)
{
	int shift;
	uint64 *filter = make_filter(scan->intervals, ops, n, &shift);
	uint64 *others = MemoryContextAllocHuge(CurrentMemoryContext, (scan->n + 1) * sizeof(uint64));
	uint64 *touched = MemoryContextAllocHuge(CurrentMemoryContext, (scan->n + 1) * sizeof(uint64));
	int64 nothers = 0;
	int64 ntouched = 0;

	for (int64 i = 0; i < scan->n; i++)
	{
		const uint64 point = scan->points[i];
		const uint64 bit = filter_bit(point, shift);
		const uint64 passes = filter[bit / 64] >> bit % 64 & 1;

		others[nothers] = touched[ntouched] = point;
		nothers += 1 - passes;
		ntouched += passes;
	}
	pfree(filter);
	*parted = (Parted){ others, nothers, touched, sort_unique_words(touched, ntouched) };
}

/* Leaves of ascending operations those whose entries a scan asks for; returns how many. */
static int64
keep_asked(const GpudsScan *scan, GpudsOp *ops, int64 n)
{
	int64 kept = 0;

	for (int64 i = 0; i < n; i++)
	{
		const int64 at = entry_scan_find(scan, &ops[i].e);
		GpudsInterval interval;

		if (at == scan->n)
			break;
		interval = entry_scan_interval(scan, at);
		if (!entry_less(&ops[i].e, &interval.lo))
			ops[kept++] = ops[i];
	}
	return kept;
}

/* Counts what mirror and memtable have of points, ascending, of which the memtable may have entries. */
static bool
count_touched(const Counting *counting, const Parted *parted)
{
	GpudsDelta *delta = &counting->ref->delta;
	GpudsCountSpec spec = *counting->spec;
	const GpudsScan scan = { .intervals = counting->scan->intervals,
							 .n = parted->ntouched,
							 .points = parted->touched };
	const Counting touched = { counting->ref, &scan, &spec, counting->counted };
	Remains remains;
	bool done;

	spec.unsorted = false;
	delta->n = keep_asked(&scan, delta->ops, delta->n);
	leave_out(&scan, delta->ops, delta->n, &remains);
	done = count_in_mirror(&touched, &remains.as_it_is) && count_in_mirror(&touched, &remains.split);
	free_remains(&remains);
	for (int64 i = 0; done && i < delta->n; i++)
	{
		if ((delta->ops[i].order & GPUDS_OP_DELETE) == 0)
			add_other(counting->counted, counting->spec, &delta->ops[i].e);
	}
	return done;
}

/*
 * Counts what the mirror and its memtable have of points in no order; false also if the memtable has more
 * than is looked at.
 */
static bool
count_unsorted(const Counting *counting)
{
	const GpudsScan *scan = counting->scan;
	GpudsMirrorRef *ref = counting->ref;
	GpudsDelta *delta = &ref->delta;
	Parted parted;
	bool done;

	if (ref->memtable == 0)
		return count_points(counting, scan->points, scan->n);
	gpuds_probe_forget(ref);
	done = gpuds_probe_ask_memtable(ref, &all, true, true) && delta->all;
	gpuds_injection_point("memtable-collected");
	if (done && delta->n == 0)
		done = count_points(counting, scan->points, scan->n);
	else if (done)
	{
		part_points(scan, delta->ops, delta->n, &parted);
		done = count_points(counting, parted.others, parted.nothers) && count_touched(counting, &parted);
		pfree(parted.others);
		pfree(parted.touched);
	}
	gpuds_probe_forget(ref);
	return done && gpuds_probe_still_attached(ref);
}

/*
 * Adds the entries that the memtable has the last word on to the others; false: there are too many.
 * There may be more of them than the scan asks for.
 */
static bool
add_delta(const Counting *counting)
{
	const GpudsScan *scan = counting->scan->n > FEW_INTERVALS ? &all : counting->scan;
	GpudsMirrorRef *ref = counting->ref;
	bool done;

	gpuds_probe_forget(ref);
	done = gpuds_probe_ask_memtable(ref, scan, true, scan == &all) && ref->delta.all;
	for (int64 i = 0; done && i < ref->delta.n; i++)
		add_other(counting->counted, counting->spec, &ref->delta.ops[i].e);
	counting->counted->ndelta = counting->counted->n;
	gpuds_probe_forget(ref);
	gpuds_injection_point("memtable-collected");
	return done;
}

/* Finds hits in the mirror, and says what the memtable has. */
static bool
test_membership(const Counting *counting)
{
	GpudsMirrorRef *ref = counting->ref;
	GpudsScan rest = *counting->scan;

	if (ref->memtable == 0)
		return count_in_mirror(counting, &rest);
	return add_delta(counting) && count_in_mirror(counting, &rest) && gpuds_probe_still_attached(ref);
}

/* Does the mirror's device do what is wanted? */
static bool
can_count(const GpudsMirrorRef *ref, const GpudsCountSpec *spec)
{
	if (!gpuds_probe_counts(ref))
		return false;
	if (spec->unsorted && gpuds_device_most_unsorted(&ref->mirror->tree, spec) == 0)
		return false;
	return gpuds_probe_aggregates(ref) ||
		   (spec->partial && spec->nagg == 0 && !spec->each && !spec->groups && !spec->join && !spec->edges);
}

static void
clear_sums(const Counting *counting)
{
	const GpudsCountSpec *spec = counting->spec;
	const bool sums = spec->partial && !spec->groups && !spec->join && !spec->edges &&
					  !counting->counted->hits;
	const int64 n = !sums ? 0 : spec->each ? counting->scan->n : 1;

	for (int64 i = 0; i < n; i++)
	{
		counting->counted->sums[i].rows = 0;
		for (int k = 0; k < spec->nagg; k++)
			counting->counted->sums[i].partial[k] = partial_agg_empty();
	}
}

/*
 * Counts the rest of a forward scan, whose intervals are ascending.  counted->sums is set by the caller
 * if it is an aggregate; the rest of *counted is set here.  A sum for each interval is wanted of
 * scans without points only.
 *
 * With spec->unsorted, the scan has points, has not begun, and is counted as a whole.
 *
 * With counted->hits in place of sums, of a scan from its first interval on, intervals may be in any
 * order, and alike.  hits[i] = true is reliable unless the memtable has an entry of interval i; false
 * is reliable unless one of the others lies in it.
 *
 * Of groups that are wanted in order, a piece of the scan is counted; counted->rest says where the next one
 * begins.
 *
 * False: the entries have to be fetched, and *counted says nothing.  What it has in memory is to be
 * freed in any case (gpuds_probe_free_counted).
 */
bool
gpuds_probe_count(GpudsMirrorRef *ref, const GpudsScan *scan, const GpudsCountSpec *spec,
				  GpudsCounted *counted)
{
	const Counting counting = { ref, scan, spec, counted };
	GpudsCountedSum *sums = counted->sums;
	bool *hits = counted->hits;
	bool done;

	memset(counted, 0, sizeof(*counted));
	counted->sums = sums;
	counted->hits = hits;
	counted->rest = *scan;
	if (!can_count(ref, spec))
		return false;
	clear_sums(&counting);
	if (hits)
		done = test_membership(&counting);
	else if (spec->unsorted)
		done = count_unsorted(&counting);
	else
		done = ref->memtable != 0 ? count_both(&counting) : count_in_mirror(&counting, &counted->rest);
	if (!gpuds_count_is_in_order(spec->groups))
	{
		counted->rest.next = counted->rest.n;
		counted->rest.inside = false;
	}
	gpuds_mirror_touch(ref->mirror);
	return done;
}

/* Frees what a count has made, but for the sums. */
void
gpuds_probe_free_counted(GpudsCounted *counted)
{
	if (counted->tids)
		pfree(counted->tids);
	if (counted->entries)
		pfree(counted->entries);
	if (counted->groups.words)
		pfree(counted->groups.words);
	counted->tids = NULL;
	counted->entries = NULL;
	counted->groups.words = NULL;
	counted->n = counted->groups.n = counted->groups.size = counted->size = 0;
}

/* The keys that the memtable has entries of, in palloc'd memory, ascending; false: there are too many. */
static bool
find_touched(GpudsMirrorRef *ref, GpudsCountJoin *join)
{
	static const GpudsInterval everything = { { 0, 0, 0 }, { UINT64_MAX, UINT64_MAX, UINT64_MAX } };
	const GpudsScan all = { .intervals = &everything, .n = 1 };
	const GpudsDelta *delta = &ref->delta;
	const GpudsEntry *rest = &join->join.rest;
	const GpudsEntry bits = { ~rest->w0, ~rest->w1, ~rest->t };
	GpudsEntry *keys;

	gpuds_probe_forget(ref);
	if (!gpuds_probe_ask_memtable(ref, &all, true, true) || !delta->all || delta->n > GPUDS_JOIN_TOUCHED)
		return false;
	keys = palloc(Max(delta->n, 1) * sizeof(GpudsEntry));
	join->touched = keys;
	for (int64 i = 0; i < delta->n; i++)
	{
		const GpudsEntry key = entry_first_alike(&delta->ops[i].e, &bits);

		if (join->ntouched == 0 || !entry_equal(&keys[join->ntouched - 1], &key))
			keys[join->ntouched++] = key;
	}
	gpuds_probe_forget(ref);
	gpuds_injection_point("memtable-collected");
	return true;
}

/*
 * Makes ready to join what a scan's mirror has with what another's has, which join->join says: sets the rest
 * of *join, but for what is known of rows.  The memtable's entries of the other index are left out, by their
 * keys, which the caller frees in any case.  False: both are not on one device that joins.
 */
bool
gpuds_probe_begin_join(const GpudsMirrorRef *ref, GpudsMirrorRef *other, GpudsCountJoin *join)
{
	join->touched = NULL;
	join->ntouched = 0;
	if (!ref->mirror || !other->mirror)
		return false;
	if (!gpuds_device_joins(&ref->mirror->tree, &other->mirror->tree))
	{
		gpuds_memory_bring_together(ref, other);
		return false;
	}
	join->tree = &other->mirror->tree;
	join->guard = &other->mirror->guard;
	join->expected = other->serial;
	return other->memtable == 0 || find_touched(other, join);
}

/* Is what has been joined since with another's mirror what the scan must see of it? */
bool
gpuds_probe_join_holds(const GpudsMirrorRef *other)
{
	gpuds_mirror_touch(other->mirror);
	return other->memtable == 0 || gpuds_probe_still_attached(other);
}

/*
 * Begins the session's graph on the device of a scan's mirror, with room for what that has and so many edges
 * more; false: it keeps no graphs, or has no memory.  The caller drops the graph in any case.
 */
bool
gpuds_probe_begin_graph(const GpudsMirrorRef *ref, int64 more, GpudsDeviceGraph *graph)
{
	GpudsDeviceTree *tree = ref->mirror ? &ref->mirror->tree : NULL;

	return tree && gpuds_device_keeps_graphs(tree) &&
		   gpuds_device_graph_begin(tree, (int64) gpuds_device_entries(tree) + more, graph) ==
			   GPUDS_DEVICE_OK;
}

/*
 * The same on the base of the graph that the device keeps of the mirror, whose edges lead both ways or not;
 * false also if it keeps none.
 */
bool
gpuds_probe_take_graph(const GpudsMirrorRef *ref, bool both, GpudsDeviceGraph *graph)
{
	GpudsDeviceTree *tree = ref->mirror ? &ref->mirror->tree : NULL;

	return tree && gpuds_device_keeps_graphs(tree) &&
		   gpuds_device_graph_take(tree, both, graph) == GPUDS_DEVICE_OK;
}
