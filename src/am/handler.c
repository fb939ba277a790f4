/*-------------------------------------------------------------------------
 *
 * handler.c
 *	  Access method handlers.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "commands/vacuum.h"
#include "fmgr.h"

#include "am/am.h"
#include "am/shared_scan.h"
#include "build/build.h"
#include "index/index.h"
#include "methods.h"
#include "reader/reader.h"
#include "structure.h"
#include "unique/unique.h"

/*
 * What all access methods of gpuds share, but for the structure of new indexes.  ordered: scans give keys in
 * order.
 *
 * amcanunique depends on the version (compat.h).
 * ampredlocks is true: for SERIALIZABLE, scans lock what they read, and inserts look for that
 * (index/predicate.c).
 */
static IndexAmRoutine *
make_routine(bool ordered)
{
	static IndexAmRoutine kept[2];
	IndexAmRoutine *routine = GPUDS_CORE_KEEPS_ROUTINES ? &kept[ordered] : palloc0(sizeof(IndexAmRoutine));

	routine->type = T_IndexAmRoutine;
	routine->amstrategies = ordered ? GPUDS_MOST_STRATEGY : GPUDS_NHASH_STRATEGIES;
	routine->amsupport = ordered ? GPUDS_NORDER_PROCS : GPUDS_NPROCS;
	routine->amoptsprocnum = 0;
	routine->amcanorder = ordered;
	routine->amcanorderbyop = false;
	routine->amcanbackward = ordered;
	routine->amcanunique = GPUDS_CORE_TAKES_UNIQUE;
	routine->amcanmulticol = true;
	routine->amoptionalkey = ordered;
	routine->amsearcharray = true;
	routine->amsearchnulls = true;
	routine->amstorage = false;
	routine->amclusterable = ordered;
	routine->ampredlocks = true;
	routine->amcanparallel = ordered;
	routine->amcaninclude = true;
	routine->amusemaintenanceworkmem = true;
	/* Compaction is cleanup's, also after a bulk delete: so not only the conditional kind. */
	routine->amparallelvacuumoptions = VACUUM_OPTION_PARALLEL_BULKDEL | VACUUM_OPTION_PARALLEL_CLEANUP;
	routine->amkeytype = InvalidOid;

	routine->aminsert = gpuds_unique_insert;
	routine->ambulkdelete = gpuds_bulk_delete;
	routine->amvacuumcleanup = gpuds_vacuum_cleanup;
	routine->amcanreturn = gpuds_can_return;
	routine->amcostestimate = gpuds_cost_estimate;
	routine->amoptions = gpuds_options;
	routine->amproperty = NULL;
	routine->ambuildphasename = gpuds_build_phase_name;
	routine->amvalidate = gpuds_validate;
	routine->amadjustmembers = NULL;
	routine->ambeginscan = gpuds_beginscan;
	routine->amrescan = gpuds_rescan;
	routine->amgettuple = gpuds_gettuple;
	routine->amgetbitmap = gpuds_getbitmap;
	routine->amendscan = gpuds_endscan;
	routine->ammarkpos = ordered ? gpuds_markpos : NULL;
	routine->amrestrpos = ordered ? gpuds_restrpos : NULL;
	routine->amestimateparallelscan = gpuds_shared_scan_size;
	routine->aminitparallelscan = gpuds_shared_scan_init;
	routine->amparallelrescan = gpuds_shared_scan_rescan;
	GpudsSetInsertCleanup(routine, gpuds_unique_cleanup);
	GpudsSetLaterProperties(routine);
	return routine;
}

/* An access method's handler, and its ambuild and ambuildempty. */
#define METHOD_HANDLER(name, STRUCTURE, ordered)                                          \
	static IndexBuildResult *name##_build(Relation heap, Relation index, IndexInfo *info) \
	{                                                                                     \
		return gpuds_build(heap, index, info, GPUDS_STRUCTURE_##STRUCTURE);               \
	}                                                                                     \
                                                                                          \
	static void name##_build_empty(Relation index)                                        \
	{                                                                                     \
		gpuds_build_empty(index, GPUDS_STRUCTURE_##STRUCTURE);                            \
	}                                                                                     \
                                                                                          \
	PG_FUNCTION_INFO_V1(name##_handler);                                                  \
                                                                                          \
	Datum name##_handler(PG_FUNCTION_ARGS)                                                \
	{                                                                                     \
		IndexAmRoutine *routine = make_routine(ordered);                                  \
                                                                                          \
		routine->ambuild = name##_build;                                                  \
		routine->ambuildempty = name##_build_empty;                                       \
		PG_RETURN_POINTER(routine);                                                       \
	}

GPUDS_METHOD_ROWS(METHOD_HANDLER)
