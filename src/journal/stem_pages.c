/*-------------------------------------------------------------------------
 *
 * stem_pages.c
 *	  Pages of stems (key/stems.h): the blocks behind the metapage, written with it and never changed.
 *
 * The build logs them with the metapage (gpuds_journal_finish_build).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"

#include "journal/journal_internal.h"

/* Bytes of stems that a page has, at most. */
#define PAGE_BYTES (BLCKSZ - MAXALIGN(SizeOfPageHeaderData) - MAXALIGN(sizeof(GpudsPageOpaqueData)))

/* How many pages so many bytes take. */
BlockNumber
gpuds_stem_pages(Size size)
{
	const BlockNumber n = (size + PAGE_BYTES - 1) / PAGE_BYTES;

	if (n > GPUDS_MOST_STEM_PAGES)
		elog(ERROR, "stems take %u pages", n);
	return n;
}

/* Writes an index's stems behind its metapage, which is all that there is yet. */
void
gpuds_journal_write_stems(Relation index, const char *stems, Size size)
{
	for (Size at = 0; at < size; at += PAGE_BYTES)
	{
		const Size here = Min(size - at, PAGE_BYTES);
		Buffer buffer = gpuds_extend(index);
		Page page = BufferGetPage(buffer);

		if (BufferGetBlockNumber(buffer) != GPUDS_META_BLKNO + 1 + at / PAGE_BYTES)
			elog(ERROR, "index \"%s\" already contains data", RelationGetRelationName(index));
		START_CRIT_SECTION();
		gpuds_page_init(page, GPUDS_PAGE_STEMS, 0, 1, 0);
		memcpy(PageGetContents(page), stems + at, here);
		((PageHeader) page)->pd_lower += here;
		MarkBufferDirty(buffer);
		END_CRIT_SECTION();
		UnlockReleaseBuffer(buffer);
	}
}

/* Copies a page of stems, which is not the last one unless said so; false: it is none. */
static bool
copy_page(Relation index, BlockNumber blkno, bool last, char *stems, Size *size)
{
	Buffer buffer = ReadBuffer(index, blkno);
	Page page = BufferGetPage(buffer);
	const Size lower = ((PageHeader) page)->pd_lower;
	bool sound;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	sound = !PageIsNew(page) && PageGetSpecialSize(page) == MAXALIGN(sizeof(GpudsPageOpaqueData)) &&
			GpudsPageGetOpaque(page)->page_id == GPUDS_PAGE_ID &&
			GpudsPageGetOpaque(page)->kind == GPUDS_PAGE_STEMS && lower > MAXALIGN(SizeOfPageHeaderData) &&
			lower <= MAXALIGN(SizeOfPageHeaderData) + PAGE_BYTES &&
			(last || lower == MAXALIGN(SizeOfPageHeaderData) + PAGE_BYTES);
	*size = sound ? lower - MAXALIGN(SizeOfPageHeaderData) : 0;
	memcpy(stems, PageGetContents(page), *size);
	UnlockReleaseBuffer(buffer);
	return sound;
}

/*
 * Reads the stems of an index that has some into the current memory context; NULL: its pages are not what the
 * metapage says.
 */
char *
gpuds_journal_read_stems(Relation index, const GpudsMetaData *meta, Size *size)
{
	const BlockNumber end = GPUDS_META_BLKNO + 1 + meta->stem_pages;
	char *stems;

	*size = 0;
	if (end > RelationGetNumberOfBlocks(index))
		return NULL;
	stems = palloc(meta->stem_pages * PAGE_BYTES);
	for (BlockNumber blkno = GPUDS_META_BLKNO + 1; blkno < end; blkno++)
	{
		Size here;

		if (!copy_page(index, blkno, blkno == end - 1, stems + *size, &here))
			return NULL;
		*size += here;
	}
	return stems;
}
