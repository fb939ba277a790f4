/*-------------------------------------------------------------------------
 *
 * combine.h
 *	  Inside GpudsCombine: what its plan says.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_CUSTOM_COMBINE_H
#define GPUDS_CUSTOM_COMBINE_H

#include "nodes/pathnodes.h"

/* CustomScan.custom_private of the plan, for each column of the scan tuple: */
enum
{
	COMBINE_PLANS,  /* which of the plans below has it */
	COMBINE_COLUMNS /* in which column, from 0 on */
};

/* What a GpudsCombine is to give. */
typedef struct GpudsCombined
{
	List *paths;   /* of the grouped relation; their rows are of the same groups, in the same order */
	bool finalize; /* they have grouping sets, and parts of aggregates below them */
	List *exprs;   /* what their columns are above ... */
	List *plans;   /* ... which path has each ... */
	List *columns; /* ... and in which column, from 0 on */
	Node *having;  /* conditions that are left to the node */
} GpudsCombined;

/* combine_path.c */
extern Path *gpuds_combine_path(const GpudsCombined *combined, RelOptInfo *output);

#endif /* GPUDS_CUSTOM_COMBINE_H */
