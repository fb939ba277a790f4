/*-------------------------------------------------------------------------
 *
 * views.c
 *	  The functions behind the views gpuds_devices, gpuds_indexes and
 *	  gpuds_stat_indexes.
 *
 * Anybody may call them: they tell no more of an index than its size and its
 * statistics, as pg_relation_size and pg_stat_all_indexes do.  They wait for
 * nobody.  A mirror's fields are read without being its applier: each is one
 * word, but they may be of different moments.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "admin/admin.h"
#include "journal/internal.h"

PG_FUNCTION_INFO_V1(gpuds_device_state);
PG_FUNCTION_INFO_V1(gpuds_index_state);
PG_FUNCTION_INFO_V1(gpuds_index_stats);

/* What there is to tell of a mirror. */
typedef struct MirrorReport
{
	uint64 file_id;
	bool loaded;
	bool has_applier;
	uint64 entries;
	uint64 bytes;
	uint64 position; /* records applied, of all lanes */
	uint64 stats[GPUDS_NSTATS];
} MirrorReport;

static Datum
make_row(FunctionCallInfo fcinfo, Datum *values, bool *isnull)
{
	TupleDesc desc;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, isnull));
}

/*
 * gpuds_device_state(): the CPU device.
 */
Datum
gpuds_device_state(PG_FUNCTION_ARGS)
{
	Datum values[6];
	bool isnull[6] = { false };

	gpuds_require_preload();
	values[0] = CStringGetTextDatum("cpu");
	values[1] = CStringGetTextDatum("cpu");
	values[2] = Int64GetDatum(gpuds_device_memory_size(GPUDS_ON_CPU));
	values[3] = Int64GetDatum(gpuds_device_memory_used(GPUDS_ON_CPU));
	isnull[4] = true; /* backends do its work themselves */
	values[5] = CStringGetTextDatum("ready");
	PG_RETURN_DATUM(make_row(fcinfo, values, isnull));
}

/* Copies what a mirror says of itself.  False: it has been given to another file. */
static bool
read_mirror(GpudsMirror *mirror, const RelFileLocator *locator, MirrorReport *report)
{
	uint64 serial = pg_atomic_read_u64(&mirror->serial);
	bool same;

	pg_read_barrier();
	same = serial != 0 && RelFileLocatorEquals(mirror->locator, *locator);
	report->file_id = mirror->file_id;
	report->loaded = mirror->loaded;
	report->has_applier = mirror->applier != 0;
	report->entries = gpuds_device_entries(&mirror->tree);
	report->bytes = gpuds_device_bytes(&mirror->tree);
	report->position = 0;
	for (int lane = 0; lane < GPUDS_LANES; lane++)
		report->position += mirror->pos.count[lane];
	for (int i = 0; i < GPUDS_NSTATS; i++)
		report->stats[i] = pg_atomic_read_u64((pg_atomic_uint64 *) &mirror->stats + i);
	pg_read_barrier();
	return same && pg_atomic_read_u64(&mirror->serial) == serial;
}

/*
 * Opens an index of ours if that is possible at once, and if its file is there
 * and has been built.  NULL if not.
 */
static Relation
open_if_free(Oid indexid)
{
	Relation index;

	if (!ConditionalLockRelationOid(indexid, AccessShareLock))
		return NULL;
	index = try_relation_open(indexid, NoLock);
	if (index == NULL)
	{
		UnlockRelationOid(indexid, AccessShareLock);
		return NULL;
	}
	if (gpuds_admin_is_ours(index) && !RELATION_IS_OTHER_TEMP(index) && index->rd_index->indisready &&
		gpuds_admin_has_file(index))
		return index;
	relation_close(index, AccessShareLock);
	return NULL;
}

/*
 * The mirror of an index, NULL if there is none that we could see.  index is
 * NULL if it could not be opened; then only a shared mirror can be found, by
 * what the catalog says of the file.
 */
static GpudsMirror *
find_mirror(Oid indexid, Relation index, RelFileLocator *locator)
{
	HeapTuple tuple;
	Form_pg_class class;

	if (index)
	{
		*locator = RelationLocator(index);
		if (RelationUsesLocalBuffers(index))
		{
			GpudsMirrorRef ref;

			gpuds_mirror_lookup(index, gpuds_index_info(index)->file_id, false, &ref);
			return ref.mirror;
		}
	}
	else
	{
		tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(indexid));
		if (!HeapTupleIsValid(tuple))
			return NULL;
		class = (Form_pg_class) GETSTRUCT(tuple);
		locator->spcOid = OidIsValid(class->reltablespace) ? class->reltablespace : MyDatabaseTableSpace;
		locator->dbOid = MyDatabaseId;
		locator->relNumber = class->relfilenode;
		ReleaseSysCache(tuple);
	}
	return gpuds_mirror_find(*locator);
}

/*
 * gpuds_index_state(oid): device, state, entries, bytes, position of the
 * journal, applied position.  Positions count the records that the journal's
 * lanes ever had; NULL if the index is locked right now, or is another
 * session's.
 */
Datum
gpuds_index_state(PG_FUNCTION_ARGS)
{
	Oid indexid = PG_GETARG_OID(0);
	Relation index;
	RelFileLocator locator;
	GpudsMirror *mirror;
	MirrorReport report;
	const char *state = "not loaded";
	bool known = false;
	Datum values[6];
	bool isnull[6] = { true, false, true, false, true, true };

	gpuds_require_preload();
	index = open_if_free(indexid);
	mirror = find_mirror(indexid, index, &locator);
	if (mirror)
		known = read_mirror(mirror, &locator, &report);

	if (index)
	{
		GpudsMetaData meta;
		GpudsJournalPos end;
		uint64 position = 0;

		gpuds_journal_read_meta(index, &meta);
		gpuds_journal_end(index, &meta, &end);
		for (int lane = 0; lane < GPUDS_LANES; lane++)
			position += end.count[lane];
		values[4] = Int64GetDatum(position);
		isnull[4] = false;
		/* A mirror of a file that once had this number. */
		if (known && report.file_id != meta.file_id)
			known = false;
		relation_close(index, AccessShareLock);
	}

	if (known)
	{
		if (report.loaded)
		{
			values[0] = CStringGetTextDatum("cpu");
			values[2] = Int64GetDatum(report.entries);
			values[5] = Int64GetDatum(report.position);
			isnull[0] = isnull[2] = isnull[5] = false;
			state = report.has_applier ? "applying" : "loaded";
		}
		else if (report.has_applier)
			state = "loading";
	}
	values[3] = Int64GetDatum(known ? report.bytes : 0);
	values[1] = CStringGetTextDatum(state);
	PG_RETURN_DATUM(make_row(fcinfo, values, isnull));
}

/*
 * gpuds_index_stats(oid): scans, batches, probes, entries returned, operations
 * applied, loads, device time, fall-backs, since the mirror was first asked for.
 */
Datum
gpuds_index_stats(PG_FUNCTION_ARGS)
{
	Oid indexid = PG_GETARG_OID(0);
	Relation index;
	RelFileLocator locator;
	GpudsMirror *mirror;
	MirrorReport report;
	Datum values[8];
	bool isnull[8] = { false };

	gpuds_require_preload();
	gpuds_mirror_count_flush();
	index = open_if_free(indexid);
	mirror = find_mirror(indexid, index, &locator);
	if (index)
		relation_close(index, AccessShareLock);
	if (!mirror || !read_mirror(mirror, &locator, &report))
		memset(&report, 0, sizeof(report));

	StaticAssertStmt(GPUDS_NSTATS == 7, "gpuds_stat_indexes shows all counters");
	for (int i = 0; i < 6; i++)
		values[i] = Int64GetDatum(report.stats[i]);
	isnull[6] = true; /* the CPU device does not measure its time */
	values[7] = Int64GetDatum(report.stats[6]);
	PG_RETURN_DATUM(make_row(fcinfo, values, isnull));
}
