/*-------------------------------------------------------------------------
 *
 * index_info.c
 *	  What a backend remembers of an index.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/xlog.h"
#include "utils/memutils.h"

#include "index/index.h"
#include "journal/journal.h"
#include "side/side.h"

/*
 * What is derived once per relcache entry.  The pointer is good until the next
 * invalidation: copy what has to live longer.  The index file must exist.
 */
const GpudsIndexInfo *
gpuds_index_info(Relation index)
{
	GpudsIndexInfo *info = index->rd_amcache;

	if (info == NULL)
	{
		GpudsMetaData meta;
		GpudsKeyLayout layout;

		gpuds_require_preload();
		gpuds_key_layout(index, &layout);
		gpuds_journal_read_meta(index, &meta);
		if (meta.nwords != layout.nwords || meta.key_bits != layout.nbits)
			ereport(ERROR,
					(errcode(ERRCODE_INDEX_CORRUPTED),
					 errmsg("index \"%s\" has keys of %d bits in its pages but %d in the catalogs",
							RelationGetRelationName(index), meta.key_bits, layout.nbits),
					 errdetail("The metapage is damaged, or a type has changed since the index was built."),
					 errhint("Please REINDEX it.")));

		info = MemoryContextAlloc(index->rd_indexcxt, sizeof(GpudsIndexInfo));
		info->layout = layout;
		info->file_id = meta.file_id;
		index->rd_amcache = info;
	}
	return info;
}

/* The file of an index as stores know it; false: it has none. */
bool
gpuds_side_file(Relation index, GpudsFile *file)
{
	if (gpuds_include_memory_mb == 0 || RecoveryInProgress() || RelationUsesLocalBuffers(index))
		return false;
	file->locator = RelationLocator(index);
	file->file_id = gpuds_index_info(index)->file_id;
	file->incarnation = gpuds_database_incarnation();
	return true;
}
