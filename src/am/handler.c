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
#include "structure.h"

PG_FUNCTION_INFO_V1(gpu_btree_handler);

/*
 * Handler of gpu_btree.
 *
 * amcanunique is false: a duplicate check would have to be synchronous with
 * all other sessions, which is what appending to a journal avoids.
 * ampredlocks is false: core locks the whole index for SERIALIZABLE.
 */
Datum
gpu_btree_handler(PG_FUNCTION_ARGS)
{
	IndexAmRoutine *routine = makeNode(IndexAmRoutine);

	routine->amstrategies = GPUDS_NSTRATEGIES;
	routine->amsupport = 0;
	routine->amoptsprocnum = 0;
	routine->amcanorder = gpuds_structure_can(GPUDS_STRUCTURE_BTREE, STRUCTURE_ORDERED);
	routine->amcanorderbyop = false;
	routine->amcanbackward = gpuds_structure_can(GPUDS_STRUCTURE_BTREE, STRUCTURE_ORDERED);
	routine->amcanunique = false;
	routine->amcanmulticol = true;
	routine->amoptionalkey = true;
	routine->amsearcharray = true;
	routine->amsearchnulls = true;
	routine->amstorage = false;
	routine->amclusterable = gpuds_structure_can(GPUDS_STRUCTURE_BTREE, STRUCTURE_ORDERED);
	routine->ampredlocks = false;
	routine->amcanparallel = true;
	routine->amcaninclude = true;
	routine->amusemaintenanceworkmem = true;
	/* Compaction is cleanup's, also after a bulk delete: so not only the conditional kind. */
	routine->amparallelvacuumoptions = VACUUM_OPTION_PARALLEL_BULKDEL | VACUUM_OPTION_PARALLEL_CLEANUP;
	routine->amkeytype = InvalidOid;

	routine->ambuild = gpuds_build;
	routine->ambuildempty = gpuds_build_empty;
	routine->aminsert = gpuds_insert;
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
	routine->ammarkpos = gpuds_markpos;
	routine->amrestrpos = gpuds_restrpos;
	routine->amestimateparallelscan = gpuds_shared_scan_size;
	routine->aminitparallelscan = gpuds_shared_scan_init;
	routine->amparallelrescan = gpuds_shared_scan_rescan;
	GpudsSetLaterProperties(routine);

	PG_RETURN_POINTER(routine);
}
