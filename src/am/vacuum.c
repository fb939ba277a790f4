/*-------------------------------------------------------------------------
 *
 * vacuum.c
 *	  VACUUM's two calls, handed on to the journal.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "am/am.h"
#include "index/index.h"
#include "journal/journal.h"
#include "mirror/mirror.h"

/*
 * ambulkdelete.  When it returns, the tombstones of everything removed are in
 * the journal, or all positions are stale: no scan that starts later meets a TID that the heap reuses.
 */
IndexBulkDeleteResult *
gpuds_bulk_delete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats, IndexBulkDeleteCallback callback,
				  void *state)
{
	gpuds_require_preload();
	if (stats == NULL)
		stats = palloc0(sizeof(IndexBulkDeleteResult));
	gpuds_journal_bulk_delete(info, stats, gpuds_index_info(info->index)->layout.nwords, callback, state);
	return stats;
}

/* amvacuumcleanup: compaction if it pays, and statistics. */
IndexBulkDeleteResult *
gpuds_vacuum_cleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats)
{
	gpuds_require_preload();
	if (info->analyze_only)
		return stats;

	/* no bulk delete has counted: what cleanup finds in the metapage is an estimate */
	if (stats == NULL)
	{
		stats = palloc0(sizeof(IndexBulkDeleteResult));
		stats->estimated_count = true;
	}
	gpuds_journal_cleanup(info, stats, gpuds_index_info(info->index)->layout.nwords);
	gpuds_memory_ask_again(info->index);
	return stats;
}
