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
#include "index/index_stems.h"
#include "journal/journal.h"
#include "side/side.h"

/* What a backend remembers of an index, if that is still good; else NULL. */
static const GpudsIndexInfo *
remembered(Relation index)
{
	const GpudsIndexInfo *info = index->rd_amcache;

	return info && info->stems_age == gpuds_index_stems_age() ? info : NULL;
}

/* Reads what is to be remembered of an index, and raises an error if its file and the catalogs differ. */
static void
read_info(Relation index, GpudsIndexInfo *info)
{
	GpudsMetaData meta;

	gpuds_require_preload();
	gpuds_key_layout(index, &info->layout);
	gpuds_journal_read_meta(index, &meta);
	if (meta.nwords != info->layout.nwords || meta.key_bits != info->layout.nbits)
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("index \"%s\" has keys of %d bits in its pages but %d in the catalogs",
						RelationGetRelationName(index), meta.key_bits, info->layout.nbits),
				 errdetail("The metapage is damaged, or a type has changed since the index was built."),
				 errhint("Please REINDEX it.")));
	if (!gpuds_index_set_stems(index, &meta, &info->layout))
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("index \"%s\" is corrupted at its pages of stems", RelationGetRelationName(index)),
				 errhint("Please REINDEX it.")));
	info->file_id = meta.file_id;
	info->stems_age = gpuds_index_stems_age();
}

/*
 * What is derived once per relcache entry.  The pointer is good until the next
 * invalidation: copy what has to live longer, which is good until the transaction ends.  The index file must
 * exist.
 */
const GpudsIndexInfo *
gpuds_index_info(Relation index)
{
	if (remembered(index) == NULL)
	{
		GpudsIndexInfo info;

		gpuds_index_forget_info(index);
		read_info(index, &info);
		index->rd_amcache = MemoryContextAlloc(index->rd_indexcxt, sizeof(GpudsIndexInfo));
		*(GpudsIndexInfo *) index->rd_amcache = info;
	}
	return index->rd_amcache;
}

/* Forgets what was remembered: the index has got another file under the same name. */
void
gpuds_index_forget_info(Relation index)
{
	if (index->rd_amcache)
		pfree(index->rd_amcache);
	index->rd_amcache = NULL;
}

/*
 * The layout of an index for the planner, by which texts can be encoded, too.  False: its file says nothing
 * that could be used, which is for whoever reads the index to complain of.
 */
bool
gpuds_index_planned_layout(Relation index, GpudsKeyLayout *layout)
{
	const GpudsIndexInfo *info = remembered(index);
	GpudsMetaData meta;

	if (info)
	{
		*layout = info->layout;
		return true;
	}
	gpuds_key_layout(index, layout);
	if (!gpuds_key_may_have_stems(layout))
		return true;
	return gpuds_journal_peek_meta(index, &meta) && gpuds_index_set_stems(index, &meta, layout);
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
