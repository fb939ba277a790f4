/*-------------------------------------------------------------------------
 *
 * layout.c
 *	  Which types can be keys, and where an index's columns lie in its key.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/xlog.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_index.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "key/code.h"
#include "key/text.h"

static const uint8 kind_bits[] = {
	[GPUDS_KIND_BOOL] = 1,
	[GPUDS_KIND_CHAR] = 8,
	[GPUDS_KIND_INT2] = 16,
	[GPUDS_KIND_INT4] = 32,
	[GPUDS_KIND_INT8] = 64,
	[GPUDS_KIND_OID] = 32,
	[GPUDS_KIND_FLOAT4] = 32,
	[GPUDS_KIND_FLOAT8] = 64,
	[GPUDS_KIND_DATE] = 32,
	[GPUDS_KIND_TIME] = 64,
	[GPUDS_KIND_TIMETZ] = 96,
	[GPUDS_KIND_TIMESTAMP] = 64,
	[GPUDS_KIND_TIMESTAMPTZ] = 64,
	[GPUDS_KIND_INTERVAL] = GPUDS_INTERVAL_BITS,
	[GPUDS_KIND_UUID] = 128,
	[GPUDS_KIND_MACADDR] = 48,
	[GPUDS_KIND_MACADDR8] = 64,
	[GPUDS_KIND_ENUM] = 32,
	[GPUDS_KIND_MONEY] = 64,
	[GPUDS_KIND_PG_LSN] = 64,
	[GPUDS_KIND_XID8] = 64,
	[GPUDS_KIND_NUMERIC] = 64,
	[GPUDS_KIND_SCALED] = 64,
	[GPUDS_KIND_POINT] = 128,
	[GPUDS_KIND_TEXT] = GPUDS_TEXT_MIN_BITS,
	[GPUDS_KIND_BPCHAR] = GPUDS_TEXT_MIN_BITS,
	[GPUDS_KIND_NAME] = GPUDS_TEXT_MIN_BITS,
	[GPUDS_KIND_BYTEA] = GPUDS_TEXT_MIN_BITS,
};

/* The kind of a type of PostgreSQL's or, for a domain, of what it is over, and of any enum. */
GpudsKeyKind
gpuds_key_core_kind(Oid type)
{
	Oid base;

	switch (type)
	{
		case BOOLOID:
			return GPUDS_KIND_BOOL;
		case CHAROID:
			return GPUDS_KIND_CHAR;
		case INT2OID:
			return GPUDS_KIND_INT2;
		case INT4OID:
			return GPUDS_KIND_INT4;
		case INT8OID:
			return GPUDS_KIND_INT8;
		case OIDOID:
			return GPUDS_KIND_OID;
		case FLOAT4OID:
			return GPUDS_KIND_FLOAT4;
		case FLOAT8OID:
			return GPUDS_KIND_FLOAT8;
		case DATEOID:
			return GPUDS_KIND_DATE;
		case TIMEOID:
			return GPUDS_KIND_TIME;
		case TIMETZOID:
			return GPUDS_KIND_TIMETZ;
		case TIMESTAMPOID:
			return GPUDS_KIND_TIMESTAMP;
		case TIMESTAMPTZOID:
			return GPUDS_KIND_TIMESTAMPTZ;
		case INTERVALOID:
			return GPUDS_KIND_INTERVAL;
		case UUIDOID:
			return GPUDS_KIND_UUID;
		case MACADDROID:
			return GPUDS_KIND_MACADDR;
		case MACADDR8OID:
			return GPUDS_KIND_MACADDR8;
		case ANYENUMOID:
			return GPUDS_KIND_ENUM;
		case MONEYOID:
			return GPUDS_KIND_MONEY;
		case PG_LSNOID:
			return GPUDS_KIND_PG_LSN;
		case XID8OID:
			return GPUDS_KIND_XID8;
		case NUMERICOID:
			return GPUDS_KIND_NUMERIC;
		case POINTOID:
			return GPUDS_KIND_POINT;
		case TEXTOID:
		case VARCHAROID:
			return GPUDS_KIND_TEXT;
		case BPCHAROID:
			return GPUDS_KIND_BPCHAR;
		case NAMEOID:
			return GPUDS_KIND_NAME;
		case BYTEAOID:
			return GPUDS_KIND_BYTEA;
	}

	base = getBaseType(type);
	if (base != type)
		return gpuds_key_core_kind(base);
	return type_is_enum(type) ? GPUDS_KIND_ENUM : GPUDS_KIND_NONE;
}

/*
 * The kind of a type or, for a domain, of what it is over.  Numbers have that of constants: for a column's,
 * its typmod must be known (gpuds_numeric_kind).
 */
GpudsKeyKind
gpuds_key_kind(Oid type)
{
	const GpudsKeyKind kind = gpuds_key_core_kind(type);

	return kind == GPUDS_KIND_NONE ? gpuds_accepted_kind(getBaseType(type)) : kind;
}

/* The kind of the values of a type in a column that has a typmod. */
static GpudsKeyKind
kind_of_column(Oid type, int32 typmod)
{
	const GpudsKeyKind kind = gpuds_key_kind(type);

	return kind == GPUDS_KIND_NUMERIC ? gpuds_numeric_kind(type, typmod) : kind;
}

/*
 * Can the values of a type be told from their codes?  Not those of types that have equal
 * values which differ, as -0 and 0, or 1 month and 30 days.  Equal numbers are alike in one column, whose
 * typmod says how many digits are shown.  Nor can texts, of which a code has the first bytes.
 */
bool
gpuds_key_is_exact(Oid type)
{
	switch (gpuds_key_kind(type))
	{
		case GPUDS_KIND_NONE:
		case GPUDS_KIND_FLOAT4:
		case GPUDS_KIND_FLOAT8:
		case GPUDS_KIND_INTERVAL:
		case GPUDS_KIND_TEXT:
		case GPUDS_KIND_BPCHAR:
		case GPUDS_KIND_NAME:
		case GPUDS_KIND_BYTEA:
			return false;
		default:
			return true;
	}
}

/* Are values of a type equal if and only if their bytes are? */
bool
gpuds_key_is_bytes(Oid type)
{
	const GpudsKeyKind kind = gpuds_key_kind(type);

	return gpuds_key_is_exact(type) && kind != GPUDS_KIND_TIMETZ && kind != GPUDS_KIND_POINT;
}

/* Are the codes of a column of a type the first bytes of its values, if they are in order? */
bool
gpuds_key_is_text(Oid type)
{
	return gpuds_is_text(gpuds_key_kind(type));
}

/* The least bits of a hash: eight columns' fit into a key. */
#define MIN_HASH_BITS 16
#define MAX_HASH_BITS 64

/* Bits of a column with a kind of codes, and of its NULL bit; at least, if the column is lossy. */
static int
column_bits(GpudsKeyKind kind)
{
	return (kind == GPUDS_KIND_HASHED ? MIN_HASH_BITS : gpuds_kind_bits(kind)) + 1;
}

/*
 * The kind of codes that an operator class alone would have.  Without an order, any type has one: its
 * own, if equality is the type's, else a hash.  Then labels of an enum need not sort by their OIDs.  A type
 * that has been accepted has a hash as before.
 */
static GpudsKeyKind
kind_of_class(bool ordered, Oid family, Oid type)
{
	GpudsKeyKind kind = ordered ? gpuds_key_kind(type) : gpuds_key_core_kind(type);

	if (ordered)
		return kind;
	/* numbers and texts were hashed before they had codes */
	if (kind == GPUDS_KIND_NONE || kind == GPUDS_KIND_NUMERIC || gpuds_is_text(kind) ||
		lookup_type_cache(type, TYPECACHE_EQ_OPR)->eq_opr !=
			get_opfamily_member(family, type, type, HTEqualStrategyNumber))
		return GPUDS_KIND_HASHED;
	return kind == GPUDS_KIND_ENUM ? GPUDS_KIND_OID : kind;
}

/*
 * The kinds of a key's columns.  Without an order, the widest columns are hashed until all of them fit, of
 * two that are as wide the later one.
 */
static void
choose_kinds(bool ordered, int nkeys, const Oid *families, const Oid *types, GpudsKeyKind *kinds)
{
	int bits = 0;

	for (int i = 0; i < nkeys; i++)
	{
		kinds[i] = kind_of_class(ordered, families[i], types[i]);
		bits += column_bits(kinds[i]);
	}
	while (!ordered && bits > GPUDS_KEY_MAX_BITS)
	{
		int widest = 0;

		for (int i = 1; i < nkeys; i++)
		{
			if (column_bits(kinds[i]) >= column_bits(kinds[widest]))
				widest = i;
		}
		bits -= column_bits(kinds[widest]) - column_bits(GPUDS_KIND_HASHED);
		kinds[widest] = GPUDS_KIND_HASHED;
	}
}

/*
 * May several values of a column have one code, in an index whose key has these operator families and input
 * types, by an access method that is ordered or not?  Not those of an included column.
 */
bool
gpuds_key_is_lossy(bool ordered, int nkeys, const Oid *families, const Oid *types, int column)
{
	GpudsKeyKind kinds[GPUDS_KEY_MAX_COLUMNS];

	if (column >= nkeys || nkeys > GPUDS_KEY_MAX_COLUMNS)
		return false;
	if (ordered)
		return gpuds_key_is_text(types[column]);
	choose_kinds(ordered, nkeys, families, types, kinds);
	return kinds[column] == GPUDS_KIND_HASHED;
}

/* Length of a kind's codes; of texts, the least. */
int
gpuds_kind_bits(GpudsKeyKind kind)
{
	return kind_bits[Min(kind, GPUDS_KIND_SCALED)];
}

/*
 * Bits of a key that a column of a type, with a typmod, would take, its NULL among them; 0: the type cannot
 * be a key.  Raises an error if it is an enum with labels that do not sort by their OIDs.
 */
int
gpuds_key_column_bits(Oid type, int32 typmod)
{
	const GpudsKeyKind kind = kind_of_column(type, typmod);

	if (kind == GPUDS_KIND_NONE)
		return 0;
	if (kind == GPUDS_KIND_ENUM)
		gpuds_enum_check_labels(getBaseType(type));
	return gpuds_kind_bits(kind) + 1;
}

/* Bytes of a value of a type, in a column with a typmod, that is included; 0: it cannot be. */
static int
included_bytes(Oid type, int32 typmod)
{
	const int bytes = get_typlen(type);

	if (gpuds_is_scaled(kind_of_column(type, typmod)))
		return sizeof(int64);
	return bytes >= 1 && bytes <= GPUDS_INCLUDED_BYTES ? bytes : 0;
}

/* The same of an included column; 0: values of the type cannot be included. */
int
gpuds_key_included_bits(Oid type, int32 typmod)
{
	const int bytes = included_bytes(type, typmod);

	return bytes > 0 ? 8 * bytes + 1 : 0;
}

/* What types columns must have, for one whose type cannot be a key or be included: DETAIL of an error. */
const char *
gpuds_key_types_detail(Oid type, bool included)
{
	if (gpuds_key_kind(type) == GPUDS_KIND_NUMERIC)
		return psprintf(_("Numbers must have a declared precision of at most %d digits, and a scale from 0 "
						  "to %d, as numeric(12,2)."),
						GPUDS_NUMERIC_DIGITS, GPUDS_NUMERIC_DIGITS);
	if (included)
		return psprintf(_("Included columns are of types of fixed length, of %d bytes at most."),
						GPUDS_INCLUDED_BYTES);
	return _("Keys are of types of fixed length whose order fits in 16 bytes, or texts.");
}

/*
 * Which columns are side columns, by the bits that each takes in a key, NULL bit included.  None is if all of
 * them fit.  Else included columns are put into the key as long as NULL bits are left for those behind.
 */
void
gpuds_key_choose_side(int nkeys, int ncolumns, const int *bits, bool *side)
{
	int all = 0;
	int left = GPUDS_KEY_MAX_BITS;

	for (int i = 0; i < ncolumns; i++)
	{
		all += bits[i];
		left -= i < nkeys ? bits[i] : 1;
	}
	for (int i = 0; i < ncolumns; i++)
	{
		side[i] = i >= nkeys && all > GPUDS_KEY_MAX_BITS && bits[i] - 1 > left;
		if (i >= nkeys && !side[i])
			left -= bits[i] - 1;
	}
}

/* Can a column of kind a be searched for a constant of kind b? */
bool
gpuds_kinds_compare(GpudsKeyKind a, GpudsKeyKind b)
{
	switch (a)
	{
		case GPUDS_KIND_NONE:
			return false;
		case GPUDS_KIND_INT2:
		case GPUDS_KIND_INT4:
		case GPUDS_KIND_INT8:
			return b == GPUDS_KIND_INT2 || b == GPUDS_KIND_INT4 || b == GPUDS_KIND_INT8;
		case GPUDS_KIND_FLOAT4:
		case GPUDS_KIND_FLOAT8:
			return b == GPUDS_KIND_FLOAT4 || b == GPUDS_KIND_FLOAT8;
		case GPUDS_KIND_DATE:
		case GPUDS_KIND_TIMESTAMP:
		case GPUDS_KIND_TIMESTAMPTZ:
			return b == GPUDS_KIND_DATE || b == GPUDS_KIND_TIMESTAMP || b == GPUDS_KIND_TIMESTAMPTZ;
		case GPUDS_KIND_TEXT:
		case GPUDS_KIND_NAME:
			return b == GPUDS_KIND_TEXT || b == GPUDS_KIND_NAME;
		default:
			return a == b || (gpuds_is_scaled(a) && b == GPUDS_KIND_NUMERIC);
	}
}

/* An index's column as errors call it. */
static const char *
column_name(Relation index, int i)
{
	return NameStr(TupleDescAttr(RelationGetDescr(index), i)->attname);
}

/* Has a family an operator that is no comparison, but for core's own of points? */
static bool
has_other_operators(Oid family)
{
	CatCList *members = SearchSysCacheList1(AMOPSTRATEGY, ObjectIdGetDatum(family));
	bool found = false;

	for (int i = 0; i < members->n_members; i++)
	{
		const FormData_pg_amop *op = (Form_pg_amop) GETSTRUCT(&members->members[i]->tuple);

		found |= op->amoplefttype == POINTOID
					 ? get_opcode(op->amopopr) != gpuds_point_function(op->amopstrategy, op->amoprighttype)
					 : op->amopstrategy > BTMaxStrategyNumber;
	}
	ReleaseCatCacheList(members);
	return found;
}

/*
 * What the making of an index of points looks at: no equality is wanted, operators are the type's, and no
 * column is beside it, since core gives no order to an index that has one without.
 */
static void
check_new_points(Relation index, int i)
{
	if (IndexRelationGetNumberOfKeyAttributes(index) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("column \"%s\" of index \"%s\" has type %s, which cannot be a key beside others",
						column_name(index, i), RelationGetRelationName(index), format_type_be(POINTOID)),
				 errhint("Include the other columns.")));
	if (index->rd_index->indisunique)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("column \"%s\" of index \"%s\" has type %s, which cannot be unique",
						column_name(index, i), RelationGetRelationName(index), format_type_be(POINTOID)),
				 errhint("Use a constraint EXCLUDE (column WITH ~=).")));
	if (has_other_operators(index->rd_opfamily[i]))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("operator class for column \"%s\" of index \"%s\" does not compare as type %s does",
						column_name(index, i), RelationGetRelationName(index), format_type_be(POINTOID)),
				 errhint("Use the default operator class.")));
}

/*
 * What only the making of an index needs to look at: that the operator class
 * orders as the codes do, and that an enum's labels can be told apart by OID.
 */
static void
check_new_column(Relation index, int i, const GpudsKeyColumn *column)
{
	Oid input = index->rd_opcintype[i];
	TypeCacheEntry *entry = lookup_type_cache(column->type, TYPECACHE_LT_OPR | TYPECACHE_EQ_OPR);

	/* Without an order, kind_of_class has looked. */
	if (!index->rd_indam->amcanorder)
		return;
	if (column->kind == GPUDS_KIND_POINT)
	{
		check_new_points(index, i);
		return;
	}
	if (entry->lt_opr != get_opfamily_member(index->rd_opfamily[i], input, input, BTLessStrategyNumber) ||
		entry->eq_opr != get_opfamily_member(index->rd_opfamily[i], input, input, BTEqualStrategyNumber) ||
		has_other_operators(index->rd_opfamily[i]))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("operator class for column \"%s\" of index \"%s\" does not order as type %s does",
						NameStr(TupleDescAttr(RelationGetDescr(index), i)->attname),
						RelationGetRelationName(index), format_type_be(column->type)),
				 errhint("Use the default operator class.")));

	if (column->kind == GPUDS_KIND_ENUM)
		gpuds_enum_check_type(column->type);
}

/* A column of the key whose codes are hashes; how many bits they have is not known yet. */
static void
describe_hash(Relation index, int i, GpudsKeyColumn *column)
{
	if (!OidIsValid(index_getprocid(index, i + 1, GPUDS_LONG_HASH_PROC)))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("operator class for column \"%s\" of index \"%s\" has no hash function of 64 bits",
						column_name(index, i), RelationGetRelationName(index)),
				 errdetail("Keys of type %s, or so many columns, do not fit into an index as they are.",
						   format_type_be(column->type)),
				 errhint("Add support function %d to the operator class.", GPUDS_LONG_HASH_PROC)));
	column->family = index->rd_opfamily[i];
	column->collation = index->rd_indcollation[i];
	column->hash = gpuds_key_sound_hash(index_getprocinfo(index, i + 1, GPUDS_LONG_HASH_PROC),
										column->collation);
}

/* An array, a range or a row has a hash only if its elements have, and only a good one if they have. */
static void
check_elements(Relation index, int i)
{
	const Oid input = index->rd_opcintype[i];
	const Oid type = getBaseType(TupleDescAttr(RelationGetDescr(index), i)->atttypid);
	Oid part;

	if (!IsPolymorphicType(input) && input != RECORDOID)
		return;
	if (!OidIsValid(lookup_type_cache(type, TYPECACHE_HASH_EXTENDED_PROC)->hash_extended_proc))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("column \"%s\" of index \"%s\" has type %s, whose elements have no hash function",
						column_name(index, i), RelationGetRelationName(index), format_type_be(type)),
				 errhint(
					 "Leave the column out, or create a hash operator class for the type of the elements.")));
	part = gpuds_key_unsound_part(type, index->rd_indcollation[i]);
	if (OidIsValid(part))
		ereport(
			ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("column \"%s\" of index \"%s\" has type %s, which has different hashes of equal values",
					column_name(index, i), RelationGetRelationName(index), format_type_be(type)),
			 errdetail("Its elements are of type %s and have a nondeterministic collation.",
					   format_type_be(part)),
			 errhint("Leave the column out, or give it elements of type text.")));
}

/* Raises an error of a column whose type cannot be a key or be included. */
pg_noreturn static void
refuse_type(Relation index, int i, bool included)
{
	const Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(index), i);
	const char *type = format_type_with_typemod(attribute->atttypid, attribute->atttypmod);
	const char *detail = gpuds_key_types_detail(attribute->atttypid, included);

	if (included)
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("column \"%s\" of index \"%s\" has type %s, which cannot be included",
							   column_name(index, i), RelationGetRelationName(index), type),
						errdetail_internal("%s", detail),
						errhint("Leave the column out; queries that want it visit the table.")));
	ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					errmsg("column \"%s\" of index \"%s\" has type %s, which cannot be a key",
						   column_name(index, i), RelationGetRelationName(index), type),
					errdetail_internal("%s", detail),
					gpuds_key_kind(attribute->atttypid) == GPUDS_KIND_NUMERIC
						? errhint("Access method \"gpu_hash\" answers equality of any numeric.")
						: 0));
}

/*
 * Raises ERRCODE_FEATURE_NOT_SUPPORTED if an index that is being made has numbers among its columns from one
 * on that have no codes, the first nkeys columns being keys.  Core makes an index anew without building it
 * where a column's type changes to one of the same values, and numeric(12,2) to numeric is such a change.
 */
void
gpuds_key_check_numbers(Relation index, int from, int nkeys)
{
	TupleDesc desc = RelationGetDescr(index);

	for (int i = from; i < desc->natts; i++)
	{
		const Form_pg_attribute attribute = TupleDescAttr(desc, i);

		if (gpuds_key_kind(attribute->atttypid) == GPUDS_KIND_NUMERIC &&
			gpuds_numeric_kind(attribute->atttypid, attribute->atttypmod) == GPUDS_KIND_NONE)
			refuse_type(index, i, i >= nkeys);
	}
}

/* A column of texts. */
static void
describe_text(Relation index, int i, bool making, GpudsKeyColumn *column)
{
	column->family = index->rd_opfamily[i];
	column->collation = index->rd_indcollation[i];
	column->hash = gpuds_key_hash_for(column, column->type);
	if (making && column->kind != GPUDS_KIND_BYTEA && !gpuds_text_collates(column->collation))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("column \"%s\" of index \"%s\" has collation \"%s\", which does not order bytes",
						column_name(index, i), RelationGetRelationName(index),
						get_collation_name(column->collation)),
				 errdetail("Texts are in order only by a collation that compares their bytes."),
				 errhint("Write COLLATE \"C\" behind the column, or use access method \"gpu_hash\" "
						 "for equality alone.")));
}

/* A column of the key, and what it is over. */
static void
describe_key_column(Relation index, int i, bool making, GpudsKeyKind kind, GpudsKeyColumn *column)
{
	const Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(index), i);
	int16 option = index->rd_indoption[i];

	column->type = index->rd_opcintype[i];
	if (kind == GPUDS_KIND_NUMERIC)
		kind = gpuds_numeric_kind(attribute->atttypid, attribute->atttypmod);
	column->kind = column->values = kind;
	if (column->type == ANYENUMOID && kind != GPUDS_KIND_HASHED)
		column->type = getBaseType(attribute->atttypid);
	if (kind == GPUDS_KIND_HASHED)
	{
		describe_hash(index, i, column);
		if (making)
			check_elements(index, i);
		return;
	}
	column->bits = gpuds_kind_bits(column->kind);
	column->exact = gpuds_key_is_exact(column->type);
	if (gpuds_is_text(kind))
		describe_text(index, i, making, column);
	column->descending = (option & INDOPTION_DESC) != 0;
	column->nulls_first = (option & INDOPTION_NULLS_FIRST) != 0;

	if (column->kind == GPUDS_KIND_NONE)
		refuse_type(index, i, false);

	/* Domains do for encoding, but what follows wants what is below them. */
	if (column->kind == GPUDS_KIND_ENUM || making)
		column->type = getBaseType(column->type);
	if (making)
		check_new_column(index, i, column);
}

static void
describe_included_column(Relation index, int i, GpudsKeyColumn *column)
{
	const Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(index), i);

	column->bytes = included_bytes(attribute->atttypid, attribute->atttypmod);
	if (column->bytes == 0)
		refuse_type(index, i, true);
	column->type = attribute->atttypid;
	column->kind = GPUDS_KIND_INCLUDED;
	column->values = gpuds_key_core_kind(attribute->atttypid);
	if (column->values == GPUDS_KIND_NUMERIC)
		column->values = gpuds_numeric_kind(attribute->atttypid, attribute->atttypmod);
	column->by_value = attribute->attbyval;
	column->bits = 8 * column->bytes;
	column->exact = true;
}

static void
check_width(Relation index, int i, int bits)
{
	if (bits > GPUDS_KEY_MAX_BITS)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						errmsg("key of index \"%s\" is too wide at column \"%s\"",
							   RelationGetRelationName(index), column_name(index, i)),
						errdetail("A key takes at most %d bytes in at most %d columns.",
								  (GPUDS_KEY_MAX_BITS - GPUDS_KEY_MAX_COLUMNS) / 8, GPUDS_KEY_MAX_COLUMNS)));
}

/* Makes side columns of those that do not fit; bits: what each takes, lossy ones the least. */
static void
place_side_columns(Relation index, const int *bits, GpudsKeyLayout *layout)
{
	bool side[GPUDS_KEY_MAX_COLUMNS];
	int bytes = 0;

	gpuds_key_choose_side(layout->nkeys, layout->ncolumns, bits, side);
	for (int i = layout->nkeys; i < layout->ncolumns; i++)
	{
		GpudsKeyColumn *column = &layout->column[i];

		if (!side[i])
			continue;
		column->bits = 0;
		column->side_offset = bytes;
		bytes += column->bytes;
		if (bytes > GPUDS_SIDE_BYTES)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("index \"%s\" is too wide at included column \"%s\"",
							RelationGetRelationName(index), column_name(index, i)),
					 errdetail("Beside %d bits for the key and what fits there, included columns take at "
							   "most %d bytes.",
							   GPUDS_KEY_MAX_BITS, GPUDS_SIDE_BYTES),
					 errhint("Leave the column out, or include it in another index.")));
	}
	layout->side_bytes = TYPEALIGN(8, bytes);
}

/*
 * Bits of a column of a type that is a key where there is an order, and takes so many at least, if it may
 * have some more.  Texts have whole bytes.
 */
int
gpuds_key_widened_bits(Oid type, int bits, int more)
{
	return gpuds_key_is_text(type) ? Min(bits + more / 8 * 8, GPUDS_TEXT_MAX_BITS) : bits;
}

/* Gives lossy columns the bits that other columns leave, of which there are so many. */
static void
share_bits(GpudsKeyLayout *layout, int left)
{
	int lossy = 0;

	for (int i = 0; i < layout->nkeys; i++)
		lossy += layout->column[i].hash != NULL;
	if (lossy == 0)
		return;
	layout->lossy = true;
	for (int i = 0; i < layout->nkeys; i++)
	{
		GpudsKeyColumn *column = &layout->column[i];

		if (column->kind == GPUDS_KIND_HASHED)
			column->bits = Min(MAX_HASH_BITS, Max(left, 0) / lossy + MIN_HASH_BITS);
		else if (column->hash)
			column->bits = gpuds_key_widened_bits(column->type, column->bits, Max(left, 0) / lossy);
	}
}

/* Gives the columns their places, from the left end on. */
static void
place_columns(GpudsKeyLayout *layout)
{
	int place = 64 * layout->nwords + ENTRY_SPILL_BITS;

	for (int i = 0; i < layout->ncolumns; i++)
	{
		GpudsKeyColumn *column = &layout->column[i];
		bool null_follows = i >= layout->nkeys - 1;

		if (!null_follows)
			column->null_shift = --place;
		place -= column->bits;
		column->shift = place;
		if (null_follows)
			column->null_shift = --place;
	}
}

/*
 * Works out the layout of an index's key, which depends on the catalogs alone.
 * An index that is just being made is looked at more closely; the share lock
 * then taken on an enum type, until the transaction ends, keeps labels from
 * being added meanwhile.
 *
 * Raises ERRCODE_TOO_MANY_COLUMNS, ERRCODE_PROGRAM_LIMIT_EXCEEDED or
 * ERRCODE_FEATURE_NOT_SUPPORTED, naming the column.
 */
void
gpuds_key_layout(Relation index, GpudsKeyLayout *layout)
{
	bool making = (index->rd_createSubid != InvalidSubTransactionId || !index->rd_index->indisready) &&
				  !RecoveryInProgress();
	GpudsKeyKind kinds[GPUDS_KEY_MAX_COLUMNS];
	int bits[GPUDS_KEY_MAX_COLUMNS] = { 0 }; /* of each column, with its NULL; of lossy ones the least */
	int of_key = 0;
	int least = 0;

	memset(layout, 0, sizeof(*layout));
	layout->ordered = index->rd_indam->amcanorder;
	layout->nkeys = IndexRelationGetNumberOfKeyAttributes(index);
	layout->ncolumns = IndexRelationGetNumberOfAttributes(index);
	if (layout->ncolumns > GPUDS_KEY_MAX_COLUMNS)
		ereport(ERROR, (errcode(ERRCODE_TOO_MANY_COLUMNS),
						errmsg("index \"%s\" has too many columns, column \"%s\" is one too many",
							   RelationGetRelationName(index), column_name(index, GPUDS_KEY_MAX_COLUMNS)),
						errdetail("A key takes at most %d bytes in at most %d columns.",
								  (GPUDS_KEY_MAX_BITS - GPUDS_KEY_MAX_COLUMNS) / 8, GPUDS_KEY_MAX_COLUMNS)));

	choose_kinds(layout->ordered, layout->nkeys, index->rd_opfamily, index->rd_opcintype, kinds);
	for (int i = 0; i < layout->ncolumns; i++)
	{
		GpudsKeyColumn *column = &layout->column[i];

		if (i < layout->nkeys)
			describe_key_column(index, i, making, kinds[i], column);
		else
			describe_included_column(index, i, column);
		layout->varying |= gpuds_is_scaled(column->values);
		bits[i] = (column->kind == GPUDS_KIND_HASHED ? MIN_HASH_BITS : column->bits) + 1;
		of_key += i < layout->nkeys ? bits[i] : 1;
		check_width(index, i, of_key);
	}
	place_side_columns(index, bits, layout);
	for (int i = 0; i < layout->ncolumns; i++)
		least += gpuds_key_is_side(&layout->column[i]) && i >= layout->nkeys ? 1 : bits[i];
	share_bits(layout, GPUDS_KEY_MAX_BITS - least);
	for (int i = 0; i < layout->ncolumns; i++)
		layout->nbits += layout->column[i].bits + 1;
	layout->nwords = GpudsKeyWords(layout->nbits);
	place_columns(layout);
	gpuds_key_set_levels(layout);
}

/* Have entries of two indexes the first columns of their keys in the same bits, and in the same order? */
bool
gpuds_key_orders_alike(const GpudsKeyLayout *a, const GpudsKeyLayout *b, int ncolumns)
{
	if (!a->ordered || !b->ordered || a->nwords != b->nwords || ncolumns > Min(a->nkeys, b->nkeys))
		return false;
	for (int i = 0; i < ncolumns; i++)
	{
		const GpudsKeyColumn *of_a = &a->column[i];
		const GpudsKeyColumn *of_b = &b->column[i];

		/* Entries of texts are not in the order of rows. */
		if (of_a->hash || of_b->hash || of_a->kind != of_b->kind ||
			(of_a->kind == GPUDS_KIND_ENUM && of_a->type != of_b->type) || of_a->bits != of_b->bits ||
			of_a->shift != of_b->shift || of_a->null_shift != of_b->null_shift ||
			of_a->descending != of_b->descending || of_a->nulls_first != of_b->nulls_first)
			return false;
	}
	return true;
}

/* How many bits an entry has behind those of the first columns of its key. */
int
gpuds_key_bits_behind(const GpudsKeyLayout *layout, int ncolumns)
{
	int place = GPUDS_KEY_MAX_BITS;

	for (int i = 0; i < ncolumns; i++)
		place = Min(place, Min(layout->column[i].shift, layout->column[i].null_shift));
	return place + ENTRY_SPILL_SHIFT;
}

/* The lowest n bits of a word, fewer than 64. */
static uint64
low_bits(int n)
{
	Assert(n >= 0 && n < 64);
	return (UINT64CONST(1) << (n & 63)) - 1;
}

/* Ones in these bits of an entry; the others are zero. */
GpudsEntry
gpuds_key_ones_behind(const GpudsKeyLayout *layout, int ncolumns)
{
	const int more = gpuds_key_bits_behind(layout, ncolumns) - 64;
	GpudsEntry ones = { 0, 0, UINT64_MAX };

	if (more < 0)
		ones.t >>= -more;
	else if (layout->nwords == 1)
		ones.w0 = low_bits(more);
	else if (more < 64)
		ones.w1 = low_bits(more);
	else
	{
		ones.w0 = low_bits(more - 64);
		ones.w1 = UINT64_MAX;
	}
	return ones;
}
