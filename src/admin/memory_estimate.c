/*-------------------------------------------------------------------------
 *
 * memory_estimate.c
 *	  gpuds_index_estimate: what an index would take that is not there yet.
 *
 * The number of rows is the planner's estimate, and how many of them have equal keys is ANALYZE's.  Where
 * that is not known, keys count as equal ones, whose structure is larger.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include <math.h>

#include "access/htup_details.h"
#include "access/table.h"
#include "access/xlog.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "optimizer/plancat.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "admin/admin.h"
#include "index/index.h"
#include "methods.h"

PG_FUNCTION_INFO_V1(gpuds_index_estimate);

/* An index that is not there. */
typedef struct Imagined
{
	int nkeys;
	int ncolumns;
	AttrNumber column[GPUDS_KEY_MAX_COLUMNS];
	int bits[GPUDS_KEY_MAX_COLUMNS]; /* with that of NULL */
	int nbits;
} Imagined;

/* Adds the names in an array to a list. */
static List *
add_names(List *names, ArrayType *array)
{
	Datum *values;
	bool *isnull;
	int n;

	deconstruct_array(array, NAMEOID, NAMEDATALEN, false, TYPALIGN_CHAR, &values, &isnull, &n);
	for (int i = 0; i < n; i++)
	{
		if (isnull[i])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("name of a column must not be null")));
		names = lappend(names, NameStr(*DatumGetName(values[i])));
	}
	return names;
}

/* Raises an error of a column that cannot be in an index. */
pg_noreturn static void
refuse_column(Relation table, AttrNumber column, bool included)
{
	const Oid relid = RelationGetRelid(table);

	const Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(table), column - 1);
	const char *type = format_type_with_typemod(attribute->atttypid, attribute->atttypmod);

	if (included)
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("column \"%s\" of relation \"%s\" has type %s, which cannot be included",
							   get_attname(relid, column, false), RelationGetRelationName(table), type),
						errdetail_internal("%s", gpuds_key_types_detail(attribute->atttypid, true))));
	ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					errmsg("column \"%s\" of relation \"%s\" has type %s, which cannot be a key",
						   get_attname(relid, column, false), RelationGetRelationName(table), type),
					errdetail_internal("%s", gpuds_key_types_detail(attribute->atttypid, false))));
}

static Oid
type_of(Relation table, AttrNumber column)
{
	return TupleDescAttr(RelationGetDescr(table), column - 1)->atttypid;
}

/* Leaves side columns (key/key.h) their NULL bits; raises an error if they are too wide. */
static void
put_aside(Relation table, Imagined *imagined)
{
	bool side[GPUDS_KEY_MAX_COLUMNS];
	int bits = 0;

	gpuds_key_choose_side(imagined->nkeys, imagined->ncolumns, imagined->bits, side);
	for (int i = imagined->nkeys; i < imagined->ncolumns; i++)
	{
		if (!side[i])
			continue;
		bits += imagined->bits[i] - 1;
		imagined->bits[i] = 1;
		if (bits > 8 * GPUDS_SIDE_BYTES)
			ereport(
				ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("index of relation \"%s\" would be too wide at column \"%s\"",
						RelationGetRelationName(table),
						get_attname(RelationGetRelid(table), imagined->column[i], false)),
				 errdetail("Beside %d bits for the key and what fits there, included columns take at most "
						   "%d bytes.",
						   GPUDS_KEY_MAX_BITS, GPUDS_SIDE_BYTES),
				 errhint("Leave the column out, or include it in another index.")));
	}
}

/* Gives texts the bits that other columns leave. */
static void
widen_texts(Relation table, Imagined *imagined)
{
	int texts = 0;
	int left = GPUDS_KEY_MAX_BITS;

	for (int i = 0; i < imagined->ncolumns; i++)
	{
		left -= imagined->bits[i];
		texts += i < imagined->nkeys && gpuds_key_is_text(type_of(table, imagined->column[i]));
	}
	for (int i = 0; texts > 0 && i < imagined->nkeys; i++)
		imagined->bits[i] = gpuds_key_widened_bits(type_of(table, imagined->column[i]), imagined->bits[i] - 1,
												   left / texts) +
							1;
}

/* Works out how wide the key is; raises an error if there can be no such index. */
static void
set_agg_columns(Relation table, Imagined *imagined)
{
	int of_key = 0; /* bits that only entries can have */

	for (int i = 0; i < imagined->ncolumns; i++)
	{
		const AttrNumber column = imagined->column[i];
		const bool included = i >= imagined->nkeys;
		Form_pg_attribute attribute;

		if (column < 0)
			ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
							errmsg("index creation on system columns is not supported")));
		attribute = TupleDescAttr(RelationGetDescr(table), column - 1);
		imagined->bits[i] = (included ? gpuds_key_included_bits
									  : gpuds_key_column_bits)(attribute->atttypid, attribute->atttypmod);
		if (imagined->bits[i] == 0)
			refuse_column(table, column, included);
		of_key += included ? 1 : imagined->bits[i];
		if (of_key > GPUDS_KEY_MAX_BITS)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("index of relation \"%s\" would be too wide at column \"%s\"",
							RelationGetRelationName(table),
							get_attname(RelationGetRelid(table), column, false)),
					 errdetail(
						 "A key takes at most %d bits, one of them for the NULL of each column of the index.",
						 GPUDS_KEY_MAX_BITS)));
	}
	put_aside(table, imagined);
	widen_texts(table, imagined);
	for (int i = 0; i < imagined->ncolumns; i++)
		imagined->nbits += imagined->bits[i];
}

/* How many different values a column has in so many rows; 1: that is not known. */
static double
distinct_values(Relation table, AttrNumber column, double rows)
{
	HeapTuple tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(RelationGetRelid(table)),
									  Int16GetDatum(column), BoolGetDatum(false));
	double distinct;

	if (!HeapTupleIsValid(tuple))
		return 1;
	distinct = ((Form_pg_statistic) GETSTRUCT(tuple))->stadistinct;
	ReleaseSysCache(tuple);
	return distinct < 0 ? -distinct * rows : Max(distinct, 1);
}

/*
 * How many different values the first words of the entries have, at least: those of the columns that lie in
 * the first word altogether (key/key.h).
 */
static double
distinct_words(Relation table, const Imagined *imagined, double rows)
{
	double distinct = 1;
	int begin = 0;

	for (int i = 0; i < imagined->ncolumns; i++)
	{
		/* The NULL bits of the last key and of included columns follow the code. */
		if (begin + imagined->bits[i] - (i >= imagined->nkeys - 1) > 64)
			break;
		distinct *= distinct_values(table, imagined->column[i], rows);
		begin += imagined->bits[i];
	}
	return distinct;
}

/* The structure of an access method, by its name; raises an error if it does not have keys in order. */
static uint8
structure_of(const char *method)
{
	for (const GpudsMethod *m = gpuds_methods; m->name; m++)
	{
		if (m->ordered && strcmp(m->name, method) == 0)
			return m->structure;
	}
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("cannot estimate indexes of \"%s\"", method),
			 errdetail("It is no access method of gpuds whose keys have an order.")));
}

/*
 * gpuds_index_estimate(relation regclass, columns name[], included name[], method name): entries, and bytes
 * of the pages on disk, of the structure on the CPU device, and of the structure on a GPU, of an index on
 * these columns that is not there yet.  Needs no shared memory, so the library need not be preloaded: the
 * settings are made by what it says.
 */
Datum
gpuds_index_estimate(PG_FUNCTION_ARGS)
{
	List *names = add_names(NIL, PG_GETARG_ARRAYTYPE_P(1));
	const uint8 structure = structure_of(NameStr(*PG_GETARG_NAME(3)));
	Imagined imagined = { .nkeys = list_length(names) };
	Relation table;
	BlockNumber pages;
	double rows;
	double all_visible;
	GpudsIndexSize size;
	TupleDesc desc;
	Datum values[4];
	bool isnull[4] = { false };

	names = add_names(names, PG_GETARG_ARRAYTYPE_P(2));
	imagined.ncolumns = list_length(names);
	if (imagined.nkeys == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("an index has at least one column")));
	if (imagined.ncolumns > GPUDS_KEY_MAX_COLUMNS)
		ereport(ERROR, (errcode(ERRCODE_TOO_MANY_COLUMNS),
						errmsg("an index has at most %d columns", GPUDS_KEY_MAX_COLUMNS)));
	table = gpuds_admin_open_table(PG_GETARG_OID(0), names, imagined.column);
	set_agg_columns(table, &imagined);
	estimate_rel_size(table, NULL, &pages, &rows, &all_visible);
	gpuds_index_size(rows, distinct_words(table, &imagined, rows), GpudsKeyWords(imagined.nbits), structure,
					 &size);
	table_close(table, AccessShareLock);

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	values[0] = Int64GetDatum((int64) rint(rows));
	values[1] = Int64GetDatum((int64) size.journal_bytes);
	values[2] = Int64GetDatum((int64) size.host_bytes);
	values[3] = Int64GetDatum((int64) size.device_bytes);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, isnull)));
}
