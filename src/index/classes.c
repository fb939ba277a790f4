/*-------------------------------------------------------------------------
 *
 * classes.c
 *	  What the operator classes of an index mean to the planner.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/stratnum.h"
#include "utils/lsyscache.h"

#include "index/index.h"

/* Does an index of gpuds order its keys?  Its access method marks positions then, for merge joins. */
bool
gpuds_index_orders(const IndexOptInfo *index)
{
	return index->amcanmarkpos;
}

/* Is an operator the equality of a column's operator family? */
bool
gpuds_index_has_equality(const IndexOptInfo *index, int column, Oid op)
{
	return get_op_opfamily_strategy(op, index->opfamily[column]) ==
		   (gpuds_index_orders(index) ? BTEqualStrategyNumber : HTEqualStrategyNumber);
}

/* May several values of a key column have one code, so that what is found by it are candidates? */
bool
gpuds_index_is_lossy(const IndexOptInfo *index, int column)
{
	return gpuds_key_is_lossy(gpuds_index_orders(index), index->nkeycolumns, index->opfamily,
							  index->opcintype, column);
}

/* Is there such a column in the key? */
bool
gpuds_index_has_lossy(const IndexOptInfo *index)
{
	for (int i = 0; i < index->nkeycolumns; i++)
	{
		if (gpuds_index_is_lossy(index, i))
			return true;
	}
	return false;
}
