/*-------------------------------------------------------------------------
 *
 * filter.h
 *	  Conditions of a query that can be tested in the entries of an index (reader/row_filter.h).
 *
 * These are comparisons of a column of the index with what is the same for all rows: = <> < <= > >=, and
 * = ANY and <> ALL of an array; IS [NOT] NULL, boolean columns and what is asked of them; and AND, OR and NOT
 * of such conditions.  Operators are those of the type's default operator class of btree.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_CUSTOM_FILTER_H
#define GPUDS_CUSTOM_FILTER_H

#include "nodes/execnodes.h"
#include "nodes/pathnodes.h"

#include "reader/row_filter.h"

extern const Expr *gpuds_below_domain(const Expr *expr);
extern bool gpuds_filter_can_test(const IndexOptInfo *index, Index relid, const Expr *condition,
								  List **columns);
extern List *gpuds_filter_of_entries(const IndexOptInfo *index, const List *clauses, int *ntests);
extern List *gpuds_filter_params(const Expr *expr);
extern GpudsRowFilter *gpuds_filter_make(const Node *condition, const GpudsKeyLayout *layout, Relation index,
										 PlanState *parent);
extern GpudsRowFilter *gpuds_filter_make_of_tuple(const Node *condition, const List *tuple,
												  const GpudsKeyLayout *layout, Relation index,
												  PlanState *parent);

#endif /* GPUDS_CUSTOM_FILTER_H */
