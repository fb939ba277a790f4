/*-------------------------------------------------------------------------
 *
 * accept_type.c
 *	  gpuds_accept_type: keys of types that extensions have made of integers and uuids.
 *
 * Such a type (h3index, s2cell, ulid, snowflake) is found to order as a type of PostgreSQL's of its length,
 * on edge values and random ones.  Then it gets operator classes, whose support function says which type
 * that is (key/accepted.c).
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/htup_details.h"
#include "access/stratnum.h"
#include "access/tupmacs.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "common/pg_prng.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/syscache.h"
#include "utils/typcache.h"
#include "utils/uuid.h"

#include "index/index.h"
#include "key/key.h"
#include "methods.h"

PG_FUNCTION_INFO_V1(gpuds_accept_type);

/* Samples that are compared: each with each. */
#define RANDOM_SAMPLES 48
#define NEAR_SAMPLES 4 /* of random ones, those that differ from the one before in one bit */
#define MAX_SAMPLES (3 * 129 + RANDOM_SAMPLES * (1 + NEAR_SAMPLES))

typedef struct Samples
{
	int n;
	int length; /* bytes of a value */
	unsigned char bytes[MAX_SAMPLES][UUID_LEN];
} Samples;

/* A type, and the operators of its btree operator class by strategy. */
typedef struct Type
{
	Oid oid;
	Oid collation;
	bool by_value;
	Oid operators[GPUDS_NSTRATEGIES + 1];
	FmgrInfo functions[GPUDS_NSTRATEGIES + 1];
	FmgrInfo comparison;
} Type;

static Datum
sample_value(const Type *type, const Samples *samples, int i)
{
	return type->by_value ? fetch_att(samples->bytes[i], true, samples->length)
						  : PointerGetDatum(samples->bytes[i]);
}

/* A value of which the first bits of the highest byte on are 0, and the others 1, or the other way round. */
static void
add_edge(Samples *samples, int bit, bool below)
{
	unsigned char *bytes = samples->bytes[samples->n++];

	for (int i = 0; i < 8 * samples->length; i++)
	{
		if (below ? i < bit : i == bit)
			bytes[i / 8] |= 1 << i % 8;
	}
}

/* All powers of two in the order of bytes, and what is next to them; random values and their neighbours. */
static void
make_samples(Samples *samples)
{
	pg_prng_state state;
	const int bits = 8 * samples->length;

	pg_prng_seed(&state, UINT64CONST(0x67707564735f6964));
	for (int bit = 0; bit <= bits; bit++)
	{
		add_edge(samples, bit, false);
		add_edge(samples, bit, true);
		add_edge(samples, bit, false);
		samples->bytes[samples->n - 1][0] |= 1;
	}
	for (int i = 0; i < RANDOM_SAMPLES; i++)
	{
		unsigned char *bytes = samples->bytes[samples->n++];

		for (int k = 0; k < samples->length; k++)
			bytes[k] = (unsigned char) pg_prng_uint32(&state);
		for (int near = 0; near < NEAR_SAMPLES; near++)
		{
			const int bit = (int) pg_prng_uint64_range(&state, 0, bits - 1);

			memcpy(samples->bytes[samples->n], bytes, samples->length);
			samples->bytes[samples->n++][bit / 8] ^= 1 << bit % 8;
		}
	}
	Assert(samples->n == (bits + 1) * 3 + RANDOM_SAMPLES * (1 + NEAR_SAMPLES));
}

/* Do all operators say of two values what their order in another type tells? */
static bool
agree(Type *type, Datum a, Datum b, int order)
{
	const bool expected[] = { false, order<0, order <= 0, order == 0, order >= 0, order> 0 };
	const int found = DatumGetInt32(FunctionCall2Coll(&type->comparison, type->collation, a, b));

	if ((found < 0) != (order < 0) || (found > 0) != (order > 0))
		return false;
	for (int i = 1; i <= GPUDS_NSTRATEGIES; i++)
	{
		if (DatumGetBool(FunctionCall2Coll(&type->functions[i], type->collation, a, b)) != expected[i])
			return false;
	}
	return true;
}

/* Does a type order its values as another one does? */
static bool
orders_alike(Type *type, const GpudsAlike *alike, const Samples *samples)
{
	for (int i = 0; i < samples->n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		for (int k = 0; k < samples->n; k++)
		{
			const Datum a = sample_value(type, samples, i);
			const Datum b = sample_value(type, samples, k);

			if (!agree(type, a, b, DatumGetInt32(OidFunctionCall2(alike->comparison, a, b))))
				return false;
		}
	}
	return true;
}

/* Context of an error that a comparison raises: the type's name is arg. */
static void
comparing_samples(void *arg)
{
	errcontext("comparison of values of type %s, of any bytes", (const char *) arg);
}

/* What a type orders like.  Raises an error if that is nothing, and what its comparison raises. */
static const GpudsAlike *
find_alike(Type *type)
{
	Samples *samples = palloc0(sizeof(Samples));
	const GpudsAlike *alike;
	ErrorContextCallback context = { .previous = error_context_stack,
									 .callback = comparing_samples,
									 .arg = format_type_be(type->oid) };

	samples->length = get_typlen(type->oid);
	make_samples(samples);
	error_context_stack = &context;
	for (int i = 0; (alike = gpuds_alike(i)) != NULL; i++)
	{
		if (gpuds_is_as_long(type->oid, alike) && orders_alike(type, alike, samples))
			break;
	}
	error_context_stack = context.previous;
	pfree(samples);
	if (alike)
		return alike;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("type %s cannot be a key", format_type_be(type->oid)),
			 errdetail("Its btree operator class orders some values neither as an integer of its length, "
					   "signed or not, nor as a uuid.")));
}

/* Does an access method lack the operator class of a type that has been accepted? */
static bool
lacks_class(Oid type, const char *method)
{
	return gpuds_accepted_by(method, type) == GPUDS_KIND_NONE;
}

/* Does one of the access methods whose keys have an order? */
static bool
lacks_some_class(Oid type)
{
	for (const GpudsMethod *m = gpuds_methods; m->name; m++)
	{
		if (m->ordered && lacks_class(type, m->name))
			return true;
	}
	return false;
}

/* Looks the operators of a type up.  Raises an error if it cannot be accepted. */
static void
open_type(Oid oid, Type *type)
{
	const TypeCacheEntry *entry = lookup_type_cache(oid, TYPECACHE_BTREE_OPFAMILY | TYPECACHE_CMP_PROC);

	if (OidIsValid(oid) && gpuds_key_kind(oid) != GPUDS_KIND_NONE &&
		(gpuds_key_core_kind(oid) != GPUDS_KIND_NONE || !lacks_some_class(oid)))
		ereport(ERROR, (errcode(ERRCODE_DUPLICATE_OBJECT),
						errmsg("type %s can be a key already", format_type_be(oid))));
	if (!gpuds_can_be_alike(oid))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("type %s cannot be a key", format_type_be(oid)),
				 errdetail("It is no base type with the length of an integer or a uuid and a btree operator "
						   "class of its own.")));
	type->oid = oid;
	type->by_value = get_typbyval(oid);
	type->collation = get_typcollation(oid);
	fmgr_info(entry->cmp_proc, &type->comparison);
	for (int i = 1; i <= GPUDS_NSTRATEGIES; i++)
	{
		type->operators[i] = get_opfamily_member(entry->btree_opf, oid, oid, i);
		if (!OidIsValid(type->operators[i]))
			ereport(ERROR, (errcode(ERRCODE_UNDEFINED_FUNCTION),
							errmsg("the btree operator class of type %s has no operator %d",
								   format_type_be(oid), i)));
		fmgr_info(get_opcode(type->operators[i]), &type->functions[i]);
	}
}

/* An operator, by its schema. */
static const char *
operator_name(Oid operator)
{
	HeapTuple tuple = SearchSysCache1(OPEROID, ObjectIdGetDatum(operator));
	Form_pg_operator form;
	const char *name;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for operator %u", operator);
	form = (Form_pg_operator) GETSTRUCT(tuple);
	name = psprintf("%s.%s", quote_identifier(get_namespace_name(form->oprnamespace)),
					NameStr(form->oprname));
	ReleaseSysCache(tuple);
	return name;
}

static const char *
type_name(Oid type)
{
	return format_type_extended(type, -1, FORMAT_TYPE_FORCE_QUALIFY);
}

/* Begins the statement that makes an operator class of a type, in the type's schema. */
static void
begin_class(StringInfo statement, Oid oid, const char *method)
{
	HeapTuple tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(oid));
	Form_pg_type form;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for type %u", oid);
	form = (Form_pg_type) GETSTRUCT(tuple);
	initStringInfo(statement);
	appendStringInfo(statement, "CREATE OPERATOR CLASS %s.%s DEFAULT FOR TYPE %s USING %s AS ",
					 quote_identifier(get_namespace_name(form->typnamespace)),
					 quote_identifier(makeObjectName(NameStr(form->typname), NULL, "ops")), type_name(oid),
					 method);
	ReleaseSysCache(tuple);
}

static void
execute(const StringInfo statement)
{
	if (SPI_execute(statement->data, false, 0) != SPI_OK_UTILITY)
		elog(ERROR, "could not execute \"%s\"", statement->data);
	pfree(statement->data);
}

static void
make_ordered_class(const Type *type, const GpudsAlike *alike, const char *method)
{
	StringInfoData statement;

	if (!lacks_class(type->oid, method))
		return;
	begin_class(&statement, type->oid, method);
	for (int i = 1; i <= GPUDS_NSTRATEGIES; i++)
		appendStringInfo(&statement, "OPERATOR %d %s, ", i, operator_name(type->operators[i]));
	appendStringInfo(&statement, "FUNCTION %d (%s, %s) %s", GPUDS_ORDER_PROC, type_name(type->oid),
					 type_name(type->oid), format_procedure_qualified(alike->comparison));
	execute(&statement);
}

/* gpu_hash takes the functions of the type's hash operator class, if it has one and gpu_hash has none. */
static void
make_hash_class(const Type *type)
{
	const TypeCacheEntry *entry = lookup_type_cache(type->oid, TYPECACHE_HASH_OPFAMILY | TYPECACHE_HASH_PROC |
																   TYPECACHE_HASH_EXTENDED_PROC);
	StringInfoData statement;

	if (!OidIsValid(entry->hash_proc) || !OidIsValid(entry->hash_extended_proc) ||
		entry->hash_opintype != type->oid ||
		OidIsValid(GetDefaultOpClass(type->oid, get_index_am_oid("gpu_hash", false))))
		return;
	begin_class(&statement, type->oid, "gpu_hash");
	appendStringInfo(&statement, "OPERATOR 1 %s, FUNCTION 1 %s, FUNCTION %d %s",
					 operator_name(
						 get_opfamily_member(entry->hash_opf, type->oid, type->oid, HTEqualStrategyNumber)),
					 format_procedure_qualified(entry->hash_proc), GPUDS_LONG_HASH_PROC,
					 format_procedure_qualified(entry->hash_extended_proc));
	execute(&statement);
}

/*
 * gpuds_accept_type(regtype): makes operator classes of all access methods whose keys have an order and,
 * if the type can be hashed, gpu_hash, as far as they are missing, in the type's schema.  Returns the
 * type that it orders like. For superusers, as CREATE OPERATOR CLASS is.  Raises an error if it can be a
 * key already or orders like no type of its length, and what its comparison raises of any bytes.
 */
Datum
gpuds_accept_type(PG_FUNCTION_ARGS)
{
	const GpudsAlike *alike;
	Type type = { .oid = InvalidOid };

	if (!superuser())
		ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("permission denied to accept a type"),
						errdetail("Only superusers may create operator classes.")));
	open_type(PG_GETARG_OID(0), &type);
	alike = find_alike(&type);
	SPI_connect();
	for (const GpudsMethod *m = gpuds_methods; m->name; m++)
	{
		if (m->ordered)
			make_ordered_class(&type, alike, m->name);
	}
	make_hash_class(&type);
	SPI_finish();
	PG_RETURN_OID(alike->type);
}
