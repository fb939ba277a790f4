/*-------------------------------------------------------------------------
 *
 * cuda_shares.c
 *	  Which intervals of a scan each part of a tree is asked about, if all are asked at once.
 *
 * An interval belongs to the share of each part that it reaches into.  Ascending intervals of a part lie one
 * behind the other, so its share is a piece of the scan.  Those in any order are copied.  Most of them are
 * points, hundreds of thousands in a batch, and a look at their first words says where they belong.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "utils/memutils.h"

#include "device/cuda_requests.h"

/* A share has room for so many intervals at first, at least. */
#define LEAST_SHARE 1024

/* So many points are given to parts at a time. */
#define BLOCK 1024

/* Memory of the session for so many items, which has those of the former memory, if there is any. */
void *
gpuds_cuda_resize(void *memory, int64 items, size_t bytes)
{
	return memory ? repalloc_huge(memory, items * bytes)
				  : MemoryContextAllocHuge(CurrentMemoryContext, items * bytes);
}

/* Makes room for so many more intervals. */
static void
make_room(GpudsCudaShare *share, const GpudsScan *scan, int64 more, bool places)
{
	if (share->scan.n + more <= share->size)
		return;
	share->size = Max(2 * share->size, share->scan.n + more);
	if (scan->points)
		share->points = gpuds_cuda_resize(share->points, share->size, sizeof(uint64));
	else
		share->intervals = gpuds_cuda_resize(share->intervals, share->size, sizeof(GpudsInterval));
	if (places)
		share->places = gpuds_cuda_resize(share->places, share->size, sizeof(uint32));
}

void
gpuds_cuda_free_shares(GpudsCudaShares *all)
{
	for (int part = 0; part < all->n; part++)
	{
		const GpudsCudaShare *share = &all->share[part];

		if (share->points)
			pfree(share->points);
		if (share->intervals)
			pfree(share->intervals);
		if (share->places)
			pfree(share->places);
	}
}

static void
begin_calls(GpudsCudaShares *all, const GpudsCudaPlace *place)
{
	memset(all, 0, sizeof(*all));
	all->n = place->layout->n;
	for (int part = 0; part < all->n; part++)
		gpuds_cuda_begin_call(&all->calls[part], place->tree, place->layout, part, place->guard,
							  place->expected, true);
}

/* Adds a scan's interval to a part's share. */
static void
add_to_share(GpudsCudaShare *share, const GpudsScan *scan, const GpudsInterval *interval, int64 i,
			 bool places)
{
	make_room(share, scan, 1, places);
	if (scan->points)
		share->points[share->scan.n] = scan->points[scan->next + i];
	else
		share->intervals[share->scan.n] = *interval;
	if (places)
		share->places[share->scan.n] = (uint32) i;
	share->scan.n++;
}

/* Adds n of a scan's next intervals, from the first on, to the shares of all parts that they reach into. */
static void
add_each(GpudsCudaShares *all, const GpudsCudaLayout *layout, const GpudsScan *scan, int64 first, int n,
		 bool places)
{
	for (int64 i = first; i < first + n; i++)
	{
		const GpudsInterval interval = entry_scan_interval(scan, scan->next + i);
		const int from = gpuds_cuda_part_from(layout, 0, &interval.lo);
		const int to = gpuds_cuda_part_from(layout, from, &interval.hi);

		for (int part = from; part <= to; part++)
			add_to_share(&all->share[part], scan, &interval, i, places);
	}
}

/* Points that are not given to a part yet. */
typedef struct Undivided
{
	uint64 points[BLOCK];
	uint32 places[BLOCK];
	int n;
} Undivided;

/*
 * Takes the points before the end of a part out of a block, and puts them behind the share of the part, which
 * does not count them yet.  Returns how many; -1: first words do not decide, since one is that of the end.
 */
static pg_attribute_always_inline int
take_points(Undivided *block, const GpudsInterval *frame, uint64 end, GpudsCudaShare *share, bool places)
{
	uint64 *to = &share->points[share->scan.n];
	uint32 *to_place = places ? &share->places[share->scan.n] : NULL;
	bool at_end = false;
	int taken = 0;

	for (int i = 0; i < block->n; i++)
	{
		const uint64 point = block->points[i];
		const bool before = (frame->hi.w0 | point) < end;

		at_end |= !before & ((frame->lo.w0 | point) <= end);
		to[taken] = point;
		block->points[i - taken] = point;
		if (places)
		{
			const uint32 place = block->places[i];

			to_place[taken] = place;
			block->places[i - taken] = place;
		}
		taken += before;
	}
	block->n -= taken;
	return at_end ? -1 : taken;
}

/* The same of those behind the ends of all parts but the last. */
static int
take_rest(const Undivided *block, GpudsCudaShare *share, bool places)
{
	memcpy(&share->points[share->scan.n], block->points, block->n * sizeof(uint64));
	if (places)
		memcpy(&share->places[share->scan.n], block->places, block->n * sizeof(uint32));
	return block->n;
}

/*
 * Adds n of a scan's next points, BLOCK at most, from the first on, to shares.  False: first words do not
 * decide, and nothing has been added.
 */
static bool
add_points(GpudsCudaShares *all, const GpudsCudaLayout *layout, const GpudsScan *scan, int64 first, int n,
		   bool places)
{
	int taken[GPUDS_MOST_CARDS];
	Undivided block;

	Assert(n <= BLOCK);
	block.n = n;
	memcpy(block.points, &scan->points[scan->next + first], n * sizeof(uint64));
	for (int i = 0; i < n && places; i++)
		block.places[i] = (uint32) (first + i);
	for (int part = 0; part < all->n; part++)
	{
		GpudsCudaShare *share = &all->share[part];
		const uint64 end = layout->last[part].w0;

		make_room(share, scan, block.n, places);
		if (part == all->n - 1)
			taken[part] = take_rest(&block, share, places);
		else if (places)
			taken[part] = take_points(&block, scan->intervals, end, share, true);
		else
			taken[part] = take_points(&block, scan->intervals, end, share, false);
		if (taken[part] < 0)
			return false;
	}
	for (int part = 0; part < all->n; part++)
		all->share[part].scan.n += taken[part];
	return true;
}

/* Divides the next n intervals of a scan, which are in any order.  places: they matter. */
void
gpuds_cuda_divide(GpudsCudaShares *all, const GpudsCudaPlace *place, const GpudsScan *scan, int64 n,
				  bool places)
{
	begin_calls(all, place);
	for (int part = 0; part < all->n; part++)
		make_room(&all->share[part], scan, Max(LEAST_SHARE, n / all->n), places);
	for (int64 first = 0; first < n; first += BLOCK)
	{
		const int block = (int) Min(BLOCK, n - first);

		if (scan->points == NULL || !add_points(all, place->layout, scan, first, block, places))
			add_each(all, place->layout, scan, first, block, places);
	}
	for (int part = 0; part < all->n; part++)
	{
		GpudsCudaShare *share = &all->share[part];

		share->scan.intervals = scan->points ? scan->intervals : share->intervals;
		share->scan.points = share->points;
	}
}

/* The same of a scan's next n intervals, which are ascending, without copies. */
void
gpuds_cuda_divide_ascending(GpudsCudaShares *all, const GpudsCudaPlace *place, const GpudsScan *scan, int64 n)
{
	GpudsCudaTurn turns[GPUDS_MOST_CARDS];
	GpudsScan piece = *scan;
	int nturns;

	piece.n = scan->next + n;
	nturns = gpuds_cuda_all_turns(place->layout, &piece, true, turns);
	begin_calls(all, place);
	for (int i = 0; i < nturns; i++)
	{
		all->share[turns[i].part].scan = turns[i].scan;
		all->share[turns[i].part].base = scan->next;
	}
}
