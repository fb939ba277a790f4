/*-------------------------------------------------------------------------
 *
 * group_parts.h
 *	  Parts of hashed groups that are put aside when their table is full, and put together in the end.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_GROUP_PARTS_H
#define GPUDS_GROUP_PARTS_H

#include "reader/hash_groups.h"

typedef struct GpudsGroupParts GpudsGroupParts;

extern void gpuds_group_parts_add(GpudsGroupParts **parts, GpudsHashGroups *groups);
extern void gpuds_group_parts_sort(GpudsGroupParts *parts);
extern bool gpuds_group_parts_next(GpudsGroupParts *parts, GpudsHashGroup *group, PartialAgg *partial);
extern void gpuds_group_parts_end(GpudsGroupParts **parts);

#endif /* GPUDS_GROUP_PARTS_H */
