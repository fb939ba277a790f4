/*-------------------------------------------------------------------------
 *
 * set.h
 *	  Sets of codes: what scan keys ask of a column.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_KEY_SET_H
#define GPUDS_KEY_SET_H

#include "utils/memutils.h"
#include "utils/rel.h"

#include "key/code.h"
#include "key/shapes.h"

/*
 * The codes that a column may have, and whether it may be NULL.  Codes of up
 * to 64 bits that are all points are kept as such: big arrays make them.
 */
typedef struct GpudsCodeSet
{
	bool constrained;       /* else everything is in, and the rest is unset */
	bool null;              /* NULL is in */
	bool arrived;           /* points are as they came, with duplicates */
	int64 n;                /* of points or ranges */
	uint64 *points;         /* ascending unless arrived; or NULL */
	GpudsCodeRange *ranges; /* ascending, disjoint; may be &single */
	GpudsCodeRange single;
	GpudsPointTest *tests; /* that points must pass, too; gpuds_set_intersect forgets them */
} GpudsCodeSet;

/* Memory for n elements, however many. */
static inline void *
gpuds_alloc_array(int64 n, size_t size)
{
	return MemoryContextAllocHuge(CurrentMemoryContext, Max(n, 1) * size);
}

/* The i-th of the set's points or ranges. */
static inline GpudsCodeRange
gpuds_set_item(const GpudsCodeSet *set, int64 i)
{
	GpudsCodeRange range;

	if (set->points == NULL)
		return set->ranges[i];
	range.lo = range.hi = set->points[i];
	return range;
}

/* set.c */
extern void gpuds_set_single(GpudsCodeSet *set, const GpudsCodeRange *range);
extern void gpuds_set_copy(GpudsCodeSet *to, const GpudsCodeSet *from);
extern int64 gpuds_sort_unique_words(uint64 *words, int64 n);
extern void gpuds_set_sort(GpudsCodeSet *set);
extern void gpuds_set_intersect_range(GpudsCodeSet *set, const GpudsCodeRange *range);
extern void gpuds_set_intersect(GpudsCodeSet *set, GpudsCodeSet *other);
extern void gpuds_set_intersect_null(GpudsCodeSet *set);
extern void gpuds_set_merge_ranges(GpudsCodeSet *set);
extern void gpuds_set_complement(GpudsCodeSet *set, int bits);
extern bool gpuds_set_is_points(const GpudsCodeSet *set);

/* condition.c */
extern void gpuds_key_narrow(Relation index, const GpudsKeyLayout *layout, ScanKey key, GpudsCodeSet *sets,
							 bool *recheck);
extern void gpuds_key_narrow_column(const GpudsKeyColumn *column, Oid type, ScanKey key, GpudsCodeSet *set);

/* point.c */
extern void gpuds_point_narrow(ScanKey key, GpudsCodeSet *set);

/* shapes.c */
extern void gpuds_shapes_add_rectangle(GpudsShapes *shapes, const GpudsRectangle *rectangle);
extern void gpuds_shapes_codes(GpudsShapes *shapes, GpudsCodeSet *set);

/* bounds.c */
extern void gpuds_key_set_of_codes(const GpudsKeyLayout *layout, GpudsCodeSet *codes, GpudsKeySet *set);

/* key_filter.c */
extern GpudsKeyFilter *gpuds_key_filter(const GpudsKeyLayout *layout, const GpudsCodeSet *sets, int first);

#endif /* GPUDS_KEY_SET_H */
