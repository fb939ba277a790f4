/*-------------------------------------------------------------------------
 *
 * set.c
 *	  Sets of codes: the values that a column may have.
 *
 * Nothing here takes long without checking for interrupts.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"

#include "kernels/core/sort.h"
#include "key/set.h"

/* Words sorted at a time: bounds the scratch memory, and is a moment's work. */
#define SORT_PIECE_WORDS (1024 * 1024)

#define ST_SORT sort_ranges
#define ST_ELEMENT_TYPE GpudsCodeRange
#define ST_COMPARE(a, b) ((a)->lo < (b)->lo ? -1 : (a)->lo > (b)->lo)
#define ST_CHECK_FOR_INTERRUPTS
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/* Makes the set one range. */
void
gpuds_set_single(GpudsCodeSet *set, const GpudsCodeRange *range)
{
	set->constrained = true;
	set->null = false;
	set->n = 1;
	set->points = NULL;
	set->arrived = false;
	set->single = *range;
	set->ranges = &set->single;
}

/* Copies a set; points and ranges stay the same ones. */
void
gpuds_set_copy(GpudsCodeSet *to, const GpudsCodeSet *from)
{
	*to = *from;
	if (from->ranges == &from->single)
		to->ranges = &to->single;
}

/* Sorts words; scratch has room for SORT_PIECE_WORDS of them. */
static void
sort_words(uint64 *words, int64 n, uint64 *scratch)
{
	int64 start[SORT_SPLIT + 1];

	CHECK_FOR_INTERRUPTS();
	if (n <= SORT_PIECE_WORDS)
		sort_u64(words, scratch, n);
	else if (sort_split_words(words, n, start))
	{
		for (int i = 0; i < SORT_SPLIT; i++)
			sort_words(words + start[i], start[i + 1] - start[i], scratch);
	}
}

/* Sorts words and leaves one of each; returns how many. */
int64
gpuds_sort_unique_words(uint64 *words, int64 n)
{
	int64 kept = 0;
	uint64 *scratch;
	bool ascending = true;

	for (int64 i = 1; i < n && ascending; i++)
		ascending = words[i - 1] < words[i];
	if (ascending)
		return n;

	scratch = gpuds_alloc_array(Min(n, SORT_PIECE_WORDS), sizeof(uint64));
	sort_words(words, n, scratch);
	pfree(scratch);
	for (int64 i = 1; i < n; i++)
	{
		if (words[i] != words[kept])
			words[++kept] = words[i];
	}
	return kept + 1;
}

/* Puts points that are as they came in order, and leaves one of each. */
void
gpuds_set_sort(GpudsCodeSet *set)
{
	if (set->arrived)
		set->n = gpuds_sort_unique_words(set->points, set->n);
	set->arrived = false;
}

/* Leaves in the set what is in the range too; NULL is not. */
void
gpuds_set_intersect_range(GpudsCodeSet *set, const GpudsCodeRange *range)
{
	int64 kept = 0;

	if (!set->constrained)
	{
		gpuds_set_single(set, range);
		return;
	}
	set->null = false;
	for (int64 i = 0; i < set->n; i++)
	{
		GpudsCodeRange item = gpuds_set_item(set, i);

		item.lo = Max(item.lo, range->lo);
		item.hi = Min(item.hi, range->hi);
		if (item.lo > item.hi)
			continue;
		if (set->points != NULL)
			set->points[kept++] = (uint64) item.lo;
		else
			set->ranges[kept++] = item;
	}
	set->n = kept;
}

/* Leaves in the set what is in the other too, which has no NULL and is given up. */
void
gpuds_set_intersect(GpudsCodeSet *set, GpudsCodeSet *other)
{
	GpudsCodeSet both = { .constrained = true };
	uint64 *points;
	GpudsCodeRange *ranges = NULL;
	int64 i = 0;
	int64 j = 0;

	if (!set->constrained)
	{
		gpuds_set_copy(set, other);
		return;
	}

	gpuds_set_sort(set);
	gpuds_set_sort(other);

	/*
	 * Every overlap ends where an item of one of them does.  An overlap with a
	 * point is that point, so it can take the place of one that was looked at.
	 */
	points = set->points != NULL ? set->points : other->points;
	if (points == NULL)
		ranges = gpuds_alloc_array(set->n + other->n, sizeof(GpudsCodeRange));
	while (i < set->n && j < other->n)
	{
		GpudsCodeRange a = gpuds_set_item(set, i);
		GpudsCodeRange b = gpuds_set_item(other, j);
		GpudsCodeRange item;

		CHECK_FOR_INTERRUPTS();
		item.lo = Max(a.lo, b.lo);
		item.hi = Min(a.hi, b.hi);
		if (item.lo <= item.hi)
		{
			if (points != NULL)
				points[both.n++] = (uint64) item.lo;
			else
				ranges[both.n++] = item;
		}
		if (a.hi <= b.hi)
			i++;
		else
			j++;
	}
	for (int k = 0; k < 2; k++)
	{
		GpudsCodeSet *old = k == 0 ? set : other;

		if (old->points != NULL && old->points != points)
			pfree(old->points);
		else if (old->points == NULL && old->ranges != NULL && old->ranges != &old->single)
			pfree(old->ranges);
	}
	both.points = points;
	both.ranges = ranges;
	gpuds_set_copy(set, &both);
}

/* Leaves NULL in the set, if it is there. */
void
gpuds_set_intersect_null(GpudsCodeSet *set)
{
	if (!set->constrained)
		set->null = true;
	set->constrained = true;
	set->n = 0;
}

/* Sorts the ranges and makes one of those that overlap. */
void
gpuds_set_merge_ranges(GpudsCodeSet *set)
{
	GpudsCodeRange *ranges = set->ranges;
	int64 kept = 0;

	if (set->n < 2)
		return;
	sort_ranges(ranges, set->n);
	for (int64 i = 1; i < set->n; i++)
	{
		if (ranges[i].lo > ranges[kept].hi)
			ranges[++kept] = ranges[i];
		else
			ranges[kept].hi = Max(ranges[kept].hi, ranges[i].hi);
	}
	set->n = kept + 1;
}

/* To the codes that a DESC column stores; ascending stays ascending. */
void
gpuds_set_complement(GpudsCodeSet *set, int bits)
{
	GpudsCode ones = gpuds_ones(bits);

	for (int64 i = 0, j = set->n - 1; i <= j; i++, j--)
	{
		if (set->points != NULL)
		{
			uint64 point = set->points[i];

			set->points[i] = set->points[j] ^ (uint64) ones;
			set->points[j] = point ^ (uint64) ones;
		}
		else
		{
			GpudsCodeRange a = set->ranges[i];
			GpudsCodeRange b = set->ranges[j];

			set->ranges[i].lo = b.hi ^ ones;
			set->ranges[i].hi = b.lo ^ ones;
			set->ranges[j].lo = a.hi ^ ones;
			set->ranges[j].hi = a.lo ^ ones;
		}
	}
}

/* Are all items of the set single codes? */
bool
gpuds_set_is_points(const GpudsCodeSet *set)
{
	if (set->points == NULL)
	{
		for (int64 i = 0; i < set->n; i++)
		{
			if (set->ranges[i].lo != set->ranges[i].hi)
				return false;
		}
	}
	return true;
}
