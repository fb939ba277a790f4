/*-------------------------------------------------------------------------
 *
 * group_parts.c
 *	  Parts of hashed groups that are put aside when their table is full, and put together in the end.
 *
 * PostgreSQL sorts them, in work_mem and temporary files, by their bytes: a hash, the group's key, and what
 * has been aggregated.  So parts of one group follow each other, in whatever order groups come.  The number
 * of a run is no part of the key, because runs are numbered anew when the table is.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/tuplesort.h"

#include "reader/group_parts.h"

struct GpudsGroupParts
{
	Tuplesortstate *sort;
	int nagg;
	size_t key_bytes; /* of a part: its hash, entry, and side values */
	bytea *part;      /* made for the sort; then the one that others are put together with */
	bytea *next;      /* NULL: no group is left */
	MemoryContext context;
};

static size_t
bytes_of_part(const GpudsGroupParts *parts)
{
	return parts->key_bytes + sizeof(int64) + parts->nagg * sizeof(PartialAgg);
}

/* For parts of the groups of a table, in the table's memory context. */
static GpudsGroupParts *
begin(const GpudsHashGroups *groups)
{
	MemoryContext old = MemoryContextSwitchTo(groups->context);
	GpudsGroupParts *parts = palloc0(sizeof(GpudsGroupParts));

	parts->context = groups->context;
	parts->nagg = groups->nagg;
	parts->key_bytes = sizeof(uint32) + sizeof(GpudsEntry) + groups->nside * sizeof(uint64);
	parts->part = palloc(VARHDRSZ + bytes_of_part(parts));
	SET_VARSIZE(parts->part, VARHDRSZ + bytes_of_part(parts));
	parts->sort = tuplesort_begin_datum(BYTEAOID, ByteaLessOperator, InvalidOid, false, work_mem, NULL,
										TUPLESORT_NONE);
	MemoryContextSwitchTo(old);
	return parts;
}

/* Sets parts->part to what the table has of a group. */
static void
form(const GpudsGroupParts *parts, const GpudsHashGroups *groups, int64 number)
{
	const GpudsHashGroup *group = &groups->groups[number];
	const uint32 hash = gpuds_hash_groups_hash(groups, &group->key);
	const size_t side = sizeof(hash) + sizeof(GpudsEntry);
	char *to = VARDATA(parts->part);

	Assert(group->key.run == 0);
	memcpy(to, &hash, sizeof(hash));
	memcpy(to + sizeof(hash), &group->key.entry, sizeof(GpudsEntry));
	memcpy(to + side, group->key.side, parts->key_bytes - side);
	memcpy(to + parts->key_bytes, &group->rows, sizeof(int64));
	memcpy(to + parts->key_bytes + sizeof(int64), groups->partial + number * parts->nagg,
		   parts->nagg * sizeof(PartialAgg));
}

/*
 * Puts the groups of a table aside, and takes them away from there.  *parts: those that have been put aside
 * before; NULL: none.  They must not be used when the table has ended.  Groups must be without runs.
 */
void
gpuds_group_parts_add(GpudsGroupParts **parts, GpudsHashGroups *groups)
{
	if (*parts == NULL)
		*parts = begin(groups);
	for (int64 i = 0; i < groups->n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		form(*parts, groups, i);
		tuplesort_putdatum((*parts)->sort, PointerGetDatum((*parts)->part), false);
	}
	gpuds_hash_groups_clear(groups);
}

/* Goes on to the next part. */
static void
advance(GpudsGroupParts *parts)
{
	MemoryContext old = MemoryContextSwitchTo(parts->context);
	Datum value;
	bool isnull;

	if (parts->next)
		pfree(parts->next);
	parts->next = GpudsSortedDatum(parts->sort, &value, &isnull) ? (bytea *) DatumGetPointer(value) : NULL;
	MemoryContextSwitchTo(old);
}

/* Puts all that have been added together: none may be added any more. */
void
gpuds_group_parts_sort(GpudsGroupParts *parts)
{
	tuplesort_performsort(parts->sort);
	advance(parts);
}

/* Adds the part at hand to a group. */
static void
merge(const GpudsGroupParts *parts, GpudsHashGroup *group, PartialAgg *partial)
{
	const char *from = VARDATA(parts->next) + parts->key_bytes;
	PartialAgg part;
	int64 rows;

	memcpy(&rows, from, sizeof(rows));
	group->rows += rows;
	from += sizeof(rows);
	for (int i = 0; i < parts->nagg; i++)
	{
		memcpy(&part, from + i * sizeof(part), sizeof(part));
		partial_agg_merge(&partial[i], &part);
	}
}

/*
 * Sets *group and its partial aggregates, as many as the table has, to the next group; false: there is none.
 */
bool
gpuds_group_parts_next(GpudsGroupParts *parts, GpudsHashGroup *group, PartialAgg *partial)
{
	const size_t side = sizeof(uint32) + sizeof(GpudsEntry);
	const char *key = VARDATA(parts->part);

	if (parts->next == NULL)
		return false;
	memcpy(VARDATA(parts->part), VARDATA(parts->next), parts->key_bytes);
	memset(group, 0, sizeof(*group));
	memcpy(&group->key.entry, key + sizeof(uint32), sizeof(GpudsEntry));
	memcpy(group->key.side, key + side, parts->key_bytes - side);
	for (int i = 0; i < parts->nagg; i++)
		partial[i] = partial_agg_empty();
	do
	{
		merge(parts, group, partial);
		advance(parts);
	} while (parts->next && memcmp(VARDATA(parts->next), key, parts->key_bytes) == 0);
	return true;
}

/* Frees what there is, with temporary files; to be called before the table ends. */
void
gpuds_group_parts_end(GpudsGroupParts **parts)
{
	if (*parts)
		tuplesort_end((*parts)->sort);
	*parts = NULL;
}
