/*-------------------------------------------------------------------------
 *
 * accepted.c
 *	  Types of extensions that order as a type of PostgreSQL's does.
 *
 * The operator class of such a type says so: its support function is the comparison of the other type
 * (gpuds_accept_type makes it).  Values of both have the same length, and their codes are the same.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_opclass.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "utils/fmgroids.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "key/code.h"
#include "methods.h"

static const GpudsAlike alikes[] = {
	{ INT2OID, F_BTINT2CMP, GPUDS_KIND_INT2 },      { INT4OID, F_BTINT4CMP, GPUDS_KIND_INT4 },
	{ OIDOID, F_BTOIDCMP, GPUDS_KIND_OID },         { INT8OID, F_BTINT8CMP, GPUDS_KIND_INT8 },
	{ PG_LSNOID, F_PG_LSN_CMP, GPUDS_KIND_PG_LSN }, { UUIDOID, F_UUID_CMP, GPUDS_KIND_UUID },
};

typedef struct Known
{
	Oid type;
	GpudsKeyKind kind; /* GPUDS_KIND_NONE: it has no such operator class */
} Known;

static HTAB *known;    /* by type; NULL: nothing is known */
static uint64 changes; /* how often it has been forgotten */
static bool watching;

/* What a type may be like, the i-th; NULL: there are no more. */
const GpudsAlike *
gpuds_alike(int i)
{
	return i < lengthof(alikes) ? &alikes[i] : NULL;
}

/* Have values of a type the length of another's, and are they passed alike? */
bool
gpuds_is_as_long(Oid type, const GpudsAlike *alike)
{
	int16 lengths[2];
	bool by_value[2];

	get_typlenbyval(type, &lengths[0], &by_value[0]);
	get_typlenbyval(alike->type, &lengths[1], &by_value[1]);
	return lengths[0] == lengths[1] && by_value[0] == by_value[1];
}

/* Might a type that is no key be accepted?  If it is a base type that has an order and the length of one. */
bool
gpuds_can_be_alike(Oid type)
{
	const TypeCacheEntry *entry = lookup_type_cache(type, TYPECACHE_CMP_PROC);

	if (get_typtype(type) != TYPTYPE_BASE || !OidIsValid(entry->cmp_proc) || entry->btree_opintype != type)
		return false;
	for (int i = 0; i < lengthof(alikes); i++)
	{
		if (gpuds_is_as_long(type, &alikes[i]))
			return true;
	}
	return false;
}

/* What a comparison function stands for, for values of a type; NULL: nothing. */
const GpudsAlike *
gpuds_alike_of(Oid comparison, Oid type)
{
	for (int i = 0; i < lengthof(alikes); i++)
	{
		if (alikes[i].comparison == comparison)
			return gpuds_is_as_long(type, &alikes[i]) ? &alikes[i] : NULL;
	}
	return NULL;
}

/*
 * The kind that the default operator class of an access method gives a type; GPUDS_KIND_NONE: it has none.
 * Takes no locks but those of catalog lookups; in a transaction.
 */
GpudsKeyKind
gpuds_accepted_by(const char *method, Oid type)
{
	const Oid am = get_index_am_oid(method, true);
	const Oid class = OidIsValid(am) ? GetDefaultOpClass(type, am) : InvalidOid;
	const GpudsAlike *alike;

	if (!OidIsValid(class) || get_opclass_input_type(class) != type)
		return GPUDS_KIND_NONE;
	alike = gpuds_alike_of(get_opfamily_proc(get_opclass_family(class), type, type, GPUDS_ORDER_PROC), type);
	return alike ? alike->kind : GPUDS_KIND_NONE;
}

/* Operator classes or their functions have changed. */
static void
forget(Datum arg, int cache, uint32 hash)
{
	HTAB *table = known;

	changes++;
	known = NULL;
	if (table)
		hash_destroy(table);
}

static HTAB *
make_table(void)
{
	HASHCTL ctl = { .keysize = sizeof(Oid), .entrysize = sizeof(Known), .hcxt = CacheMemoryContext };

	if (!watching)
	{
		CacheRegisterSyscacheCallback(CLAOID, forget, 0);
		CacheRegisterSyscacheCallback(AMPROCNUM, forget, 0);
		watching = true;
	}
	return hash_create("gpuds accepted types", 16, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/*
 * The kind of a type that has been accepted, GPUDS_KIND_NONE of any other.  Takes no locks but those of
 * catalog lookups; in a transaction.
 */
GpudsKeyKind
gpuds_accepted_kind(Oid type)
{
	Known *entry = known ? hash_search(known, &type, HASH_FIND, NULL) : NULL;
	GpudsKeyKind kind = GPUDS_KIND_NONE;
	uint64 before;

	if (entry)
		return entry->kind;
	if (known == NULL)
		known = make_table();
	before = changes;
	for (const GpudsMethod *m = gpuds_methods; m->name && kind == GPUDS_KIND_NONE; m++)
	{
		if (m->ordered)
			kind = gpuds_accepted_by(m->name, type);
	}
	/* The lookups may have let in an invalidation; then it is not known whether they saw the change. */
	if (changes == before)
	{
		entry = hash_search(known, &type, HASH_ENTER, NULL);
		entry->kind = kind;
	}
	return kind;
}
