/*-------------------------------------------------------------------------
 *
 * graph_index.c
 *	  Opens the index that a function reads the edges of a graph from.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/attnum.h"
#include "catalog/pg_inherits.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "graph/graph.h"

/* Is a column of the index a column of its table, and of a type of vertices? */
static bool
is_vertex(const GpudsTarget *target, int column)
{
	return target->index->rd_index->indkey.values[column] != InvalidAttrNumber &&
		   gpuds_vertex_words((GpudsKeyKind) target->layout.column[column].values) > 0;
}

static void
check_vertices(const GpudsTarget *target)
{
	const GpudsKeyLayout *layout = &target->layout;

	if (!layout->ordered || layout->ncolumns < 2 || !is_vertex(target, GPUDS_SOURCE) ||
		!is_vertex(target, GPUDS_TARGET) ||
		layout->column[GPUDS_SOURCE].values != layout->column[GPUDS_TARGET].values)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("index \"%s\" is not an index of edges", RelationGetRelationName(target->index)),
				 errdetail("The first two columns of an index of edges are columns of its table, and both "
						   "of type smallint, integer, bigint or uuid."),
				 errhint("Create an index of gpu_btree on (source, target), or of uuid on (source) INCLUDE "
						 "(target).")));
}

/* A query of the table would have the rows of its children, too. */
static void
check_children(const GpudsTarget *target)
{
	const Oid table = RelationGetRelid(target->heap);

	if (has_subclass(table) && find_inheritance_children(table, NoLock) != NIL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("table \"%s\" has tables that inherit from it",
						RelationGetRelationName(target->heap)),
				 errdetail("Index \"%s\" does not have their edges.", RelationGetRelationName(target->index)),
				 errhint("Copy all edges into one table, and name an index of that.")));
}

/* The place of the table's column of a name in the index; -1: it has none. */
static int
find_column(const GpudsTarget *target, const char *name)
{
	const AttrNumber column = get_attnum(RelationGetRelid(target->heap), name);

	for (int i = 0; i < target->layout.ncolumns && column != InvalidAttrNumber; i++)
	{
		if (target->index->rd_index->indkey.values[i] == column)
			return i;
	}
	return -1;
}

/* Finds the column of weights. */
static int
find_weight(const GpudsTarget *target, const char *name)
{
	const int column = find_column(target, name);

	if (column < 0)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN),
						errmsg("index \"%s\" does not have column \"%s\"",
							   RelationGetRelationName(target->index), name),
						errhint("Create an index that includes the column.")));
	if (!gpuds_edge_key_is_weight(&target->layout.column[column]))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("column \"%s\" of index \"%s\" cannot be a weight", name,
						RelationGetRelationName(target->index)),
				 errdetail("Weights are numbers.  Floating-point numbers must be in an included column.")));
	gpuds_target_check_column(target, column);
	return column;
}

/*
 * Opens an index of edges for a search with the active snapshot (gpuds_target_open, which says what is locked
 * and for how long).  weight: the column that has weights; NULL: none are wanted.
 *
 * Raises an error if the index has no edges, or not all that a query would see, or if the user may not see
 * them.
 */
void
gpuds_graph_open(Oid indexid, const char *weight, GpudsGraphIndex *index)
{
	GpudsTarget *target = &index->target;

	gpuds_target_open(indexid, false, target);
	check_vertices(target);
	check_children(target);
	gpuds_target_check_column(target, GPUDS_TARGET);
	gpuds_edge_key_init(&index->key, &target->layout, weight ? find_weight(target, weight) : -1);
	index->type = getBaseType(target->layout.column[GPUDS_SOURCE].type);
}

/*
 * Opens the index that has the same edges by their targets.  Raises an error, beside those of
 * gpuds_graph_open, if it is of another table, or of other columns.
 */
void
gpuds_graph_open_reverse(Oid indexid, const char *weight, const GpudsGraphIndex *forward,
						 GpudsGraphIndex *index)
{
	const int16 *columns = forward->target.index->rd_index->indkey.values;
	const int16 *others;

	gpuds_graph_open(indexid, weight, index);
	others = index->target.index->rd_index->indkey.values;
	if (RelationGetRelid(forward->target.heap) != RelationGetRelid(index->target.heap) ||
		columns[GPUDS_SOURCE] != others[GPUDS_TARGET] || columns[GPUDS_TARGET] != others[GPUDS_SOURCE])
		ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
						errmsg("index \"%s\" does not have the edges of index \"%s\" by their targets",
							   RelationGetRelationName(index->target.index),
							   RelationGetRelationName(forward->target.index)),
						errhint("Name an index of the same table, with the first two columns exchanged.")));
}

/* Raises an error: edges are to be followed against their direction, and no index has them so. */
void
gpuds_graph_need_reverse(const GpudsGraphIndex *index)
{
	ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					errmsg("index \"%s\" does not have edges by their targets",
						   RelationGetRelationName(index->target.index)),
					errhint("Name an index on (target, source) as \"reverse_index\".")));
}

/* Closes the index.  The locks stay until the transaction ends. */
void
gpuds_graph_close(GpudsGraphIndex *index)
{
	gpuds_target_close(&index->target);
}

/* Raises an error if vertices of the caller are of another type than the graph's. */
void
gpuds_graph_check_type(const GpudsGraphIndex *index, Oid type)
{
	if (type != index->type)
		ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
						errmsg("vertices of type %s are not those of index \"%s\"", format_type_be(type),
							   RelationGetRelationName(index->target.index)),
						errdetail("Its vertices are of type %s.", format_type_be(index->type)),
						errhint("Cast the vertices to type %s.", format_type_be(index->type))));
}

/*
 * The codes of an array's elements, without NULLs; *n: how many there are.  Allocated in the current memory
 * context.  Raises an error if they are of another type than the graph's vertices.
 */
uint64 *
gpuds_graph_vertices(const GpudsGraphIndex *index, ArrayType *array, int64 *n)
{
	const int64 elements = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	const int words = index->key.words;
	uint64 *codes = MemoryContextAllocHuge(CurrentMemoryContext, Max(elements, 1) * words * sizeof(uint64));
	ArrayIterator iterator;
	Datum value;
	bool isnull;

	gpuds_graph_check_type(index, ARR_ELEMTYPE(array));
	iterator = array_create_iterator(array, 0, NULL);
	*n = 0;
	while (array_iterate(iterator, &value, &isnull))
	{
		if (!isnull)
			gpuds_vertex_code(index->key.kind, value, codes + (*n)++ * words);
	}
	array_free_iterator(iterator);
	return codes;
}
