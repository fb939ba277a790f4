/*-------------------------------------------------------------------------
 *
 * views.c
 *	  The functions behind the views gpuds_devices, gpuds_memtables, gpuds_included,
 *	  gpuds_visibility, gpuds_indexes and gpuds_stat_indexes, and the one that resets the last.
 *
 * Every role may call those behind views.  Of devices and memtables they show sums over all indexes; of
 * an index they show something only to those who may see it (gpuds_admin_may_see).  They wait for nothing but
 * the memtables' lock, which nobody holds for long.  They read a mirror's fields without
 * being its applier: each field is one word, but the fields may be from different moments.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include <math.h>

#include "access/htup_details.h"
#include "access/relation.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/tuplestore.h"

#include "admin/admin.h"
#include "index/index.h"
#include "reader/reader.h"
#include "side/side.h"
#include "states/states.h"
#include "structure.h"

PG_FUNCTION_INFO_V1(gpuds_device_state);
PG_FUNCTION_INFO_V1(gpuds_memtable_state);
PG_FUNCTION_INFO_V1(gpuds_included_state);
PG_FUNCTION_INFO_V1(gpuds_visibility_state);
PG_FUNCTION_INFO_V1(gpuds_index_state);
PG_FUNCTION_INFO_V1(gpuds_index_structure);
PG_FUNCTION_INFO_V1(gpuds_index_stats);
PG_FUNCTION_INFO_V1(gpuds_index_stats_reset);

/* What there is to tell of a mirror. */
typedef struct MirrorReport
{
	uint64 file_id;
	bool loaded;
	bool has_applier;
	bool is_lacking; /* memory */
	uint32 cards;    /* by bits */
	uint64 entries;
	uint64 bytes;
	uint64 position; /* records applied, of all stripes */
} MirrorReport;

/*
 * Raises an error if the function has been declared with more columns than this library has.  The
 * extension's SQL objects may be of another version than the library.  Columns are only ever added
 * at the end, so an older declaration gets those that it knows.
 */
static void
check_columns(FunctionCallInfo fcinfo, TupleDesc desc, int ncolumns)
{
	if (desc->natts > ncolumns)
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("function %s has %d columns, but the library of gpuds has %d",
							   get_func_name(fcinfo->flinfo->fn_oid), desc->natts, ncolumns),
						errdetail("The server runs an older library than the one that the extension's "
								  "version belongs to."),
						errhint("Install the library of that version, and restart the server.")));
}

static Datum
make_row(FunctionCallInfo fcinfo, Datum *values, bool *isnull, int ncolumns)
{
	TupleDesc desc;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	check_columns(fcinfo, desc, ncolumns);
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, isnull));
}

static void
add_row(FunctionCallInfo fcinfo, Datum *values, bool *isnull, int ncolumns)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	check_columns(fcinfo, result->setDesc, ncolumns);
	tuplestore_putvalues(result->setResult, result->setDesc, values, isnull);
}

#define DEVICE_COLUMNS 10

/* A card's name, and its number where there are several. */
static Datum
card_name(int card, const GpudsCudaInfo *info)
{
	const char *number = gpuds_device_card_name(GPUDS_ON_CUDA, card);

	if (info->name[0] == '\0')
		return CStringGetTextDatum(number);
	return CStringGetTextDatum(gpuds_cards == 1 ? info->name : psprintf("%s (%s)", info->name, number));
}

static void
add_card(FunctionCallInfo fcinfo, int card)
{
	Datum values[DEVICE_COLUMNS];
	bool isnull[DEVICE_COLUMNS] = { false };
	GpudsCudaInfo info;

	gpuds_queue_info(card, &info);
	values[0] = card_name(card, &info);
	values[1] = CStringGetTextDatum("cuda");
	values[2] = Int64GetDatum(info.memory_total);
	values[3] = Int64GetDatum(info.memory_used);
	values[4] = Int32GetDatum(info.pid);
	isnull[4] = info.pid == 0;
	values[5] = CStringGetTextDatum(info.state == CUDA_READY      ? "ready"
									: info.state == CUDA_STARTING ? "starting"
																  : "absent");
	if (info.state == CUDA_READY && gpuds_queue_stalls(card))
		strlcpy(info.detail, "it has been at one request for more than two seconds", sizeof(info.detail));
	values[6] = CStringGetTextDatum(info.detail);
	isnull[6] = info.detail[0] == '\0';
	values[7] = TimestampTzGetDatum(info.since);
	values[8] = Int64GetDatum(info.losses);
	values[9] = Int64GetDatum(gpuds_staging_used(card));
	add_row(fcinfo, values, isnull, lengthof(values));
}

/*
 * gpuds_device_state(): the CPU device, and each card of the CUDA device if its library is
 * installed.
 */
Datum
gpuds_device_state(PG_FUNCTION_ARGS)
{
	Datum values[DEVICE_COLUMNS];
	bool isnull[DEVICE_COLUMNS] = { false };

	gpuds_require_preload();
	InitMaterializedSRF(fcinfo, 0);
	values[0] = CStringGetTextDatum("cpu");
	values[1] = CStringGetTextDatum("cpu");
	values[2] = Int64GetDatum(gpuds_device_memory_size(GPUDS_ON_CPU, 0));
	values[3] = Int64GetDatum(gpuds_device_memory_used(GPUDS_ON_CPU, 0));
	isnull[4] = true; /* backends do its work themselves */
	values[5] = CStringGetTextDatum("ready");
	isnull[6] = true;
	isnull[7] = true; /* it was always there */
	isnull[8] = true;
	isnull[9] = true; /* nothing goes anywhere */
	add_row(fcinfo, values, isnull, lengthof(values));

	for (int card = 0; card < gpuds_cards; card++)
		add_card(fcinfo, card);
	return (Datum) 0;
}

/*
 * gpuds_memtable_state(): process of the flusher, NULL if it does not run; memory of
 * memtables in bytes and what they hold; operations flushed and overflows since the server
 * was started.
 */
Datum
gpuds_memtable_state(PG_FUNCTION_ARGS)
{
	Datum values[7];
	bool isnull[7] = { false };
	GpudsMemtableReport report;

	gpuds_require_preload();
	gpuds_memtable_report(&report);
	values[0] = Int32GetDatum(report.flusher_pid);
	isnull[0] = report.flusher_pid == 0;
	values[1] = Int64GetDatum(report.memory_total);
	values[2] = Int64GetDatum(report.memory_used);
	values[3] = Int64GetDatum(report.memtables);
	values[4] = Int64GetDatum(report.operations);
	values[5] = Int64GetDatum(report.flushed);
	values[6] = Int64GetDatum(report.overflows);
	PG_RETURN_DATUM(make_row(fcinfo, values, isnull, lengthof(values)));
}

/* Copies of side values on a GPU: how many mirrors have one, and their memory in bytes. */
static int64
count_copies(size_t *bytes)
{
	GpudsMirror *mirror;
	int64 copies = 0;

	*bytes = 0;
	for (int i = 0; (mirror = gpuds_mirror_slot(i)) != NULL; i++)
	{
		copies += gpuds_device_side(&mirror->tree) != 0;
		*bytes += gpuds_device_side_bytes(&mirror->tree);
	}
	return copies;
}

/*
 * gpuds_included_state(): stores of side values and their memory in bytes, and the same of copies on a GPU.
 */
Datum
gpuds_included_state(PG_FUNCTION_ARGS)
{
	Datum values[5];
	bool isnull[5] = { false };
	GpudsSideReport report;
	size_t device_bytes;

	gpuds_require_preload();
	gpuds_side_report(&report);
	values[0] = Int64GetDatum(report.stores);
	values[1] = Int64GetDatum((int64) report.memory_total);
	values[2] = Int64GetDatum((int64) report.memory_used);
	values[3] = Int64GetDatum(count_copies(&device_bytes));
	values[4] = Int64GetDatum((int64) device_bytes);
	PG_RETURN_DATUM(make_row(fcinfo, values, isnull, lengthof(values)));
}

/* gpuds_visibility_state(): page states, their memory in bytes, and what scans have done with them. */
Datum
gpuds_visibility_state(PG_FUNCTION_ARGS)
{
	Datum values[7];
	bool isnull[7] = { false };
	GpudsStatesReport report;

	gpuds_require_preload();
	gpuds_states_report(&report);
	values[0] = Int64GetDatum((int64) report.memory_total);
	values[1] = Int64GetDatum((int64) report.memory_used);
	values[2] = Int64GetDatum(report.pages);
	values[3] = Int64GetDatum((int64) report.use.hits);
	values[4] = Int64GetDatum((int64) report.use.made);
	values[5] = Int64GetDatum((int64) report.use.stale);
	values[6] = Int64GetDatum((int64) report.evicted);
	PG_RETURN_DATUM(make_row(fcinfo, values, isnull, lengthof(values)));
}

/* Copies what a mirror says of itself.  False: it has been given to another file. */
static bool
read_mirror(GpudsMirror *mirror, const RelFileLocator *locator, MirrorReport *report)
{
	uint64 serial = pg_atomic_read_u64(&mirror->serial);
	bool same;

	pg_read_barrier();
	same = serial != 0 && RelFileLocatorEquals(mirror->file.locator, *locator);
	report->file_id = mirror->file.file_id;
	report->loaded = gpuds_mirror_is_loaded(mirror);
	report->has_applier = mirror->applier != 0;
	report->is_lacking = gpuds_memory_is_lacking(mirror);
	report->cards = gpuds_device_places(&mirror->tree);
	report->entries = gpuds_device_entries(&mirror->tree);
	report->bytes = gpuds_device_bytes(&mirror->tree) + gpuds_device_side_bytes(&mirror->tree);
	report->position = 0;
	for (int stripe = 0; stripe < GPUDS_STRIPES; stripe++)
		report->position += mirror->pos.count[stripe];
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
	if (gpuds_is_ours(index) && !RELATION_IS_OTHER_TEMP(index) && index->rd_index->indisready &&
		gpuds_admin_has_file(index))
		return index;
	relation_close(index, AccessShareLock);
	return NULL;
}

/* The mirrors of an index, as far as we can see them. */
typedef struct Mirrors
{
	RelFileLocator locator;
	GpudsMirror *mirror[GPUDS_FILE_MIRRORS]; /* NULL: there is none */
} Mirrors;

/*
 * index is NULL if it could not be opened; then only shared mirrors can be found,
 * by what the catalog says of the file.
 */
static void
find_mirrors(Oid indexid, Relation index, Mirrors *mirrors)
{
	HeapTuple tuple;
	Form_pg_class class;

	memset(mirrors, 0, sizeof(Mirrors));
	if (index)
	{
		mirrors->locator = RelationLocator(index);
		if (RelationUsesLocalBuffers(index))
		{
			GpudsMirrorRef ref;

			gpuds_mirror_lookup(index, gpuds_index_info(index)->file_id, GPUDS_MIRROR_ON_CPU, false, &ref);
			mirrors->mirror[GPUDS_MIRROR_ON_CPU] = ref.mirror;
			return;
		}
	}
	else
	{
		tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(indexid));
		if (!HeapTupleIsValid(tuple))
			return;
		class = (Form_pg_class) GETSTRUCT(tuple);
		/* Another session's, whose file may have the number of one that has mirrors here. */
		if (class->relpersistence == RELPERSISTENCE_TEMP)
		{
			ReleaseSysCache(tuple);
			return;
		}
		mirrors->locator.spcOid = OidIsValid(class->reltablespace) ? class->reltablespace
																   : MyDatabaseTableSpace;
		mirrors->locator.dbOid = MyDatabaseId;
		mirrors->locator.relNumber = class->relfilenode;
		ReleaseSysCache(tuple);
	}
	for (int number = 0; number < GPUDS_FILE_MIRRORS; number++)
		mirrors->mirror[number] = gpuds_mirror_find(mirrors->locator, number);
}

/* What a mirror is doing, NULL: nothing that there is to tell. */
static const char *
mirror_state(const MirrorReport *report)
{
	if (report->has_applier)
		return report->loaded ? "applying" : "loading";
	if (report->is_lacking)
		return "no memory";
	return report->loaded ? "loaded" : NULL;
}

/*
 * Is the index, which has no mirror, larger than the memory of each device that could have one?  Scans would
 * read its journal, and the planner avoids them, so that nothing is ever refused.
 */
static bool
fits_nowhere(Relation index)
{
	int fillfactor = GpudsGetFillfactor(index);

	if (RelationUsesLocalBuffers(index))
		return !gpuds_mirror_fits(index, fillfactor, GPUDS_ON_CPU_PRIVATE);
	for (int kind = 0; kind < GPUDS_SHARED_KINDS; kind++)
	{
		if (gpuds_mirror_fits(index, fillfactor, kind))
			return false;
	}
	return true;
}

/*
 * gpuds_index_state(oid): device, state, entries, bytes, position of the journal, applied position.  A row
 * for each device, and each card, that has the index, is loading it, or had no memory for it when it was
 * wanted last; one without a device if there is none.  Positions count the records that the journal's
 * stripes ever had; NULL if the index is locked right now, or is another session's.  An index of another
 * format has one row that says so, with NULLs: after a change of versions this shows which indexes are to be
 * rebuilt.  No row if the user may not see the index.
 */
Datum
gpuds_index_state(PG_FUNCTION_ARGS)
{
	Oid indexid = PG_GETARG_OID(0);
	Relation index;
	Mirrors mirrors;
	uint64 file_id = 0;
	Datum values[6];
	bool isnull[6] = { true, false, true, false, true, true };
	int nrows = 0;

	gpuds_require_preload();
	InitMaterializedSRF(fcinfo, 0);
	if (!gpuds_admin_may_see(indexid))
		return (Datum) 0;
	index = open_if_free(indexid);
	if (index && !gpuds_journal_has_our_format(index))
	{
		values[1] = CStringGetTextDatum("other format");
		isnull[3] = true;
		add_row(fcinfo, values, isnull, lengthof(values));
		relation_close(index, AccessShareLock);
		return (Datum) 0;
	}
	find_mirrors(indexid, index, &mirrors);

	if (index)
	{
		GpudsMetaData meta;
		GpudsJournalPos end;
		uint64 position = 0;

		gpuds_journal_read_meta(index, &meta);
		gpuds_journal_end(index, &meta, &end);
		for (int stripe = 0; stripe < GPUDS_STRIPES; stripe++)
			position += end.count[stripe];
		values[4] = Int64GetDatum(position);
		isnull[4] = false;
		file_id = meta.file_id;
	}

	for (int number = 0; number < GPUDS_FILE_MIRRORS; number++)
	{
		const GpudsDeviceKind kind = gpuds_mirror_kind(number);
		const char *state;
		MirrorReport report;

		if (!mirrors.mirror[number] || !read_mirror(mirrors.mirror[number], &mirrors.locator, &report))
			continue;
		/* A mirror of a file that once had this number. */
		if (index && report.file_id != file_id)
			continue;
		state = mirror_state(&report);
		if (state == NULL)
			continue;
		values[0] = CStringGetTextDatum(report.loaded ? gpuds_device_cards_name(kind, report.cards)
													  : gpuds_device_name(kind));
		values[1] = CStringGetTextDatum(state);
		values[2] = Int64GetDatum(report.entries);
		values[3] = Int64GetDatum(report.bytes);
		values[5] = Int64GetDatum(report.position);
		isnull[0] = !report.loaded && report.has_applier;
		isnull[2] = isnull[5] = !report.loaded;
		add_row(fcinfo, values, isnull, lengthof(values));
		nrows++;
	}
	if (nrows == 0)
	{
		values[1] = CStringGetTextDatum(index && fits_nowhere(index) ? "no memory" : "not loaded");
		values[3] = Int64GetDatum(0);
		isnull[0] = isnull[2] = isnull[5] = true;
		add_row(fcinfo, values, isnull, lengthof(values));
	}
	if (index)
		relation_close(index, AccessShareLock);
	return (Datum) 0;
}

/*
 * gpuds_index_structure(oid): what structure the index has.  NULL where gpuds_index_state has no
 * position of the journal, and if the user may not see the index.
 */
Datum
gpuds_index_structure(PG_FUNCTION_ARGS)
{
	Oid indexid = PG_GETARG_OID(0);
	const char *title = NULL;
	Relation index;

	gpuds_require_preload();
	index = gpuds_admin_may_see(indexid) ? open_if_free(indexid) : NULL;
	if (index)
	{
		GpudsMetaData meta;

		if (gpuds_journal_has_our_format(index))
		{
			gpuds_journal_read_meta(index, &meta);
			title = gpuds_structure(meta.structure)->title;
		}
		relation_close(index, AccessShareLock);
	}
	if (title == NULL)
		PG_RETURN_NULL();
	PG_RETURN_DATUM(CStringGetTextDatum(title));
}

/*
 * gpuds_index_stats(oid): scans, batches, probes, entries returned, operations
 * applied, loads, device time in ms, fall-backs, launches, mean number of scans
 * in the launches of small scans, bytes to and from the device, all devices together; since
 * when, mirror/stats.h says.  NULL if the user may not see the index.
 */
Datum
gpuds_index_stats(PG_FUNCTION_ARGS)
{
	Oid indexid = PG_GETARG_OID(0);
	Relation index;
	Mirrors mirrors;
	GpudsIndexStats stats;
	double small_launches;
	Datum values[11];
	bool isnull[11] = { false };

	gpuds_require_preload();
	if (!gpuds_admin_may_see(indexid))
		PG_RETURN_NULL();
	gpuds_mirror_count_flush();
	index = open_if_free(indexid);
	find_mirrors(indexid, index, &mirrors);
	if (index)
		relation_close(index, AccessShareLock);
	gpuds_stats_fetch(indexid, &mirrors.locator, mirrors.mirror, &stats);

	small_launches = (double) stats.small_shares / GPUDS_LAUNCH_SHARES;
	values[0] = Int64GetDatum(stats.scans);
	values[1] = Int64GetDatum(stats.batches);
	values[2] = Int64GetDatum(stats.probes);
	values[3] = Int64GetDatum(stats.entries);
	values[4] = Int64GetDatum(stats.applied);
	values[5] = Int64GetDatum(stats.loads);
	/* The CPU device does not measure its time. */
	values[6] = Float8GetDatum(stats.device_ns / 1e6);
	isnull[6] = mirrors.mirror[GPUDS_MIRROR_ON_GPU(0)] == NULL && stats.bus_bytes == 0;
	values[7] = Int64GetDatum(stats.fallbacks);
	values[8] = Int64GetDatum(stats.launches + (int64) rint(small_launches));
	values[9] = Float8GetDatum(small_launches > 0 ? stats.small / small_launches : 0);
	isnull[9] = stats.small == 0;
	values[10] = Int64GetDatum(stats.bus_bytes);
	PG_RETURN_DATUM(make_row(fcinfo, values, isnull, lengthof(values)));
}

/*
 * gpuds_index_stats_reset(index regclass): sets what gpuds_index_stats shows to 0.  For the owner of the
 * table.
 */
Datum
gpuds_index_stats_reset(PG_FUNCTION_ARGS)
{
	Relation heap;
	Relation index = gpuds_admin_open(PG_GETARG_OID(0), &heap);
	Mirrors mirrors;

	gpuds_mirror_count_flush();
	memset(&mirrors, 0, sizeof(mirrors));
	if (gpuds_admin_has_file(index))
		find_mirrors(RelationGetRelid(index), index, &mirrors);
	gpuds_stats_reset(RelationGetRelid(index), &mirrors.locator, mirrors.mirror);
	gpuds_admin_close(index, heap);
	PG_RETURN_VOID();
}
