/*-------------------------------------------------------------------------
 *
 * cuda_unordered.c
 *	  Counts and TIDs of intervals in no order, of a tree that is divided among several cards.
 *
 * Each part is asked about the intervals that reach into its range, by requests of its own, and what parts
 * say is put together in memory of the session: it goes into other places than it came from.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "utils/memutils.h"

#include "device/cuda_requests.h"
#include "kernels/core/sort.h"

/* Intervals that are divided at a time, if they need not go at once. */
#define MOST_DIVIDED (INT64CONST(1024) * 1024)

/* The intervals of a part, and their places among those that are divided. */
typedef struct Share
{
	uint64 *points; /* or else: */
	GpudsInterval *intervals;
	uint32 *places;
	int64 n;
} Share;

static Share
make_share(const GpudsScan *scan, int64 n)
{
	Share share = { 0 };

	if (scan->points)
		share.points = MemoryContextAllocHuge(CurrentMemoryContext, Max(n, 1) * sizeof(uint64));
	else
		share.intervals = MemoryContextAllocHuge(CurrentMemoryContext, Max(n, 1) * sizeof(GpudsInterval));
	share.places = MemoryContextAllocHuge(CurrentMemoryContext, Max(n, 1) * sizeof(uint32));
	return share;
}

static void
free_share(Share *share)
{
	pfree(share->points ? (void *) share->points : (void *) share->intervals);
	pfree(share->places);
}

/* A scan of a share's intervals. */
static GpudsScan
scan_of(const GpudsScan *scan, const Share *share)
{
	return (GpudsScan){ .intervals = scan->points ? scan->intervals : share->intervals,
						.points = share->points,
						.n = share->n };
}

static size_t
item_bytes(const GpudsCountSpec *spec)
{
	return spec->partial ? sizeof(GpudsEntry) : sizeof(uint64);
}

/* Sets a share to those of the next n intervals that may have entries of a part. */
static void
collect(Share *share, const GpudsScan *scan, int64 n, const GpudsCudaLayout *layout, int part)
{
	share->n = 0;
	for (int64 i = 0; i < n; i++)
	{
		const GpudsInterval interval = entry_scan_interval(scan, scan->next + i);

		if ((part > 0 && !entry_less(&layout->last[part - 1], &interval.hi)) ||
			(part < layout->n - 1 && entry_less(&layout->last[part], &interval.lo)))
			continue;
		if (scan->points)
			share->points[share->n] = scan->points[scan->next + i];
		else
			share->intervals[share->n] = interval;
		share->places[share->n++] = (uint32) i;
	}
}

/* Adds what a part has handed back to the session's own. */
static void
add_others(GpudsCount *all, const GpudsCount *count, const GpudsCountSpec *spec)
{
	const size_t bytes = item_bytes(spec);
	const void *from = spec->partial ? (const void *) count->entries : (const void *) count->tids;

	if (count->n == 0)
		return;
	all->own_others = all->own_others ? repalloc_huge(all->own_others, (all->n + count->n) * bytes)
									  : MemoryContextAllocHuge(CurrentMemoryContext, count->n * bytes);
	memcpy((char *) all->own_others + all->n * bytes, from, count->n * bytes);
	all->n += count->n;
}

/* Adds the results of a share's intervals from the first on: a bit for each, or one for all. */
static void
add_results(GpudsCount *all, const GpudsCount *count, const GpudsCountSpec *spec, const Share *share,
			int64 first)
{
	uint64 *sum = all->own_results;
	uint32 *bits = all->own_results;

	for (int64 i = 0; i < count->nresults && spec->bits; i++)
	{
		const uint32 place = share->places[first + i];

		bits[place / 32] |= (count->bits[i / 32] >> i % 32 & 1) << place % 32;
	}
	if (spec->bits || count->nresults == 0)
		return;
	sum[0] += (uint64) gpuds_count_rows(count, spec, 0);
	for (int i = 0; i < spec->nagg; i++)
	{
		uint64 *to = sum + 1 + GPU_PARTIAL_AGG_WORDS * i;
		PartialAgg partial;
		PartialAgg merged;

		gpuds_count_partial_agg(count, spec, 0, i, &partial);
		memcpy(&merged, to, sizeof(merged));
		partial_agg_merge(&merged, &partial);
		memcpy(to, &merged, sizeof(merged));
	}
}

/* Room for the results of n intervals, without any yet. */
static void *
make_results(const GpudsCountSpec *spec, int64 n)
{
	const PartialAgg nothing = partial_agg_empty();
	const size_t bytes = spec->bits ? gpu_result_bits_bytes(n)
									: gpu_result_words(spec->nagg) * sizeof(uint64);
	uint64 *results = palloc0(bytes);

	for (int i = 0; i < spec->nagg && !spec->bits; i++)
		memcpy(results + 1 + GPU_PARTIAL_AGG_WORDS * i, &nothing, sizeof(nothing));
	return results;
}

/* Has a part count its share. */
static GpudsCountStatus
count_share(GpudsCudaCall *call, const GpudsScan *scan, const Share *share, const GpudsCountSpec *spec,
			GpudsCount *all)
{
	GpudsScan rest = scan_of(scan, share);

	while (rest.next < rest.n)
	{
		const int64 first = rest.next;
		GpudsCount count = { 0 };
		GpudsCountStatus status = gpuds_cuda_count(call, &rest, spec, &count);

		if (status != GPUDS_COUNT_OK)
			return status;
		/* Equal ones count once, of those that go with a request. */
		if (spec->unsorted && rest.next < rest.n)
			status = GPUDS_COUNT_TOO_LARGE;
		else
		{
			all->counted += count.counted;
			add_results(all, &count, spec, share, first);
			/* an error would leave the span with nobody */
			all->span = count.span;
			add_others(all, &count, spec);
		}
		all->span.n = 0;
		gpuds_staging_give(&count.span);
		if (status != GPUDS_COUNT_OK)
			return status;
	}
	return GPUDS_COUNT_OK;
}

/* Sets what the answer to n intervals is that parts have put together. */
static void
set_answer(GpudsCount *all, const GpudsCountSpec *spec, int64 n)
{
	all->results = all->own_results;
	all->bits = all->own_results;
	all->nresults = !spec->partial ? 0 : spec->bits ? n : 1;
	all->entries = all->own_others;
	all->tids = all->own_others;
}

/* Counts a piece of a scan whose intervals are in any order, and may be equal if they are points. */
GpudsCountStatus
gpuds_cuda_count_unordered(const GpudsCudaPlace *place, GpudsScan *scan, const GpudsCountSpec *spec,
						   GpudsCount *all)
{
	const GpudsCudaLayout *layout = place->layout;
	const int64 left = scan->n - scan->next;
	const int64 n = spec->unsorted ? left : Min(left, MOST_DIVIDED);
	GpudsCountStatus status = GPUDS_COUNT_OK;
	Share share = make_share(scan, n);

	all->own_results = make_results(spec, n);
	for (int part = 0; part < layout->n && status == GPUDS_COUNT_OK; part++)
	{
		GpudsCudaCall call;

		collect(&share, scan, n, layout, part);
		gpuds_cuda_begin_call(&call, place->tree, layout, part, place->guard, place->expected, true);
		status = count_share(&call, scan, &share, spec, all);
	}
	free_share(&share);
	if (status != GPUDS_COUNT_OK)
		return status;
	set_answer(all, spec, n);
	scan->next += n;
	scan->inside = false;
	return status;
}

/*
 * Adds the TIDs of a part's share, until there are cap in all; *many: there may be more.  False: then, and if
 * none can be had.
 */
static bool
add_tids(GpudsCudaCall *call, const GpudsScan *scan, const Share *share, int64 cap, GpudsTids *all,
		 bool *many)
{
	GpudsScan rest = scan_of(scan, share);

	while (rest.next < rest.n)
	{
		GpudsTids piece;

		*many = all->n == cap;
		if (*many || !gpuds_cuda_scan_tids(call, &rest, cap - all->n, &piece))
			return false;
		memcpy((uint64 *) all->own + all->n, piece.tids, piece.n * sizeof(uint64));
		all->n += piece.n;
		gpuds_staging_give(&piece.span);
	}
	return true;
}

/*
 * The TIDs of the next n intervals, in any order; the scan has moved behind these.  False: none can be had,
 * or (*many) there are more than cap, and the scan has not moved.
 */
static bool
find_tids(const GpudsCudaPlace *place, GpudsScan *scan, int64 n, int64 cap, GpudsTids *all, bool *many)
{
	Share share = make_share(scan, n);
	bool done = true;

	all->n = 0;
	for (int part = 0; part < place->layout->n && done; part++)
	{
		GpudsCudaCall call;

		collect(&share, scan, n, place->layout, part);
		gpuds_cuda_begin_call(&call, place->tree, place->layout, part, place->guard, place->expected, true);
		done = add_tids(&call, scan, &share, cap, all, many);
	}
	free_share(&share);
	if (done)
		scan->next += n;
	return done;
}

/*
 * A piece of a scan that is not inside an interval, as TIDs: of as many next intervals as have cap of them.
 * False: none can be had, or (*many) the next interval has more than that by itself.
 */
bool
gpuds_cuda_tids_unordered(const GpudsCudaPlace *place, GpudsScan *scan, int64 cap, GpudsTids *all, bool *many)
{
	bool done = false;

	memset(all, 0, sizeof(GpudsTids));
	*many = true;
	all->own = MemoryContextAllocHuge(CurrentMemoryContext, Max(cap, 1) * sizeof(uint64));
	for (int64 n = Min(scan->n - scan->next, Min(cap, MOST_DIVIDED)); n > 0 && !done && *many; n /= 4)
		done = find_tids(place, scan, n, cap, all, many);
	if (done && all->n > 0)
	{
		uint64 *scratch = MemoryContextAllocHuge(CurrentMemoryContext, all->n * sizeof(uint64));

		sort_u64(all->own, scratch, all->n);
		pfree(scratch);
	}
	if (!done)
	{
		pfree(all->own);
		all->own = NULL;
	}
	all->tids = all->own;
	return done;
}
