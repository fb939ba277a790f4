/*-------------------------------------------------------------------------
 *
 * page.c
 *	  Pages and records of the journal: layout and checks.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "journal/journal_internal.h"

/*
 * Raises ERRCODE_INDEX_CORRUPTED for a block of an index.  The format and its
 * arguments make the detail: what is wrong, a full sentence.
 */
void
gpuds_corrupted(Relation index, BlockNumber blkno, const char *fmt, ...)
{
	char detail[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(detail, sizeof(detail), fmt, args);
	va_end(args);

	ereport(ERROR, (errcode(ERRCODE_INDEX_CORRUPTED),
					errmsg("index \"%s\" is corrupted at block %u", RelationGetRelationName(index), blkno),
					errdetail_internal("%s", detail), errhint("Please REINDEX it.")));
}

/*
 * Makes an empty page.  stripe is 0 unless the kind is GPUDS_PAGE_STRIPE; first is
 * the number that the first record to be stored will have.
 */
void
gpuds_page_init(Page page, uint8 kind, int stripe, uint64 generation, uint64 first)
{
	GpudsPageOpaque opaque;

	PageInit(page, BLCKSZ, sizeof(GpudsPageOpaqueData));
	opaque = GpudsPageGetOpaque(page);
	opaque->first = first;
	opaque->generation = generation;
	opaque->next = InvalidBlockNumber;
	opaque->kind = kind;
	opaque->stripe = stripe;
	opaque->page_id = GPUDS_PAGE_ID;
}

/*
 * Raises ERRCODE_INDEX_CORRUPTED unless the buffer, which the caller has locked,
 * holds a page of ours whose header is sane; nwords 0 leaves out the check that
 * the records fit the record size.
 */
void
gpuds_page_check(Relation index, Buffer buffer, int nwords)
{
	Page page = BufferGetPage(buffer);
	PageHeader header = (PageHeader) page;
	BlockNumber blkno = BufferGetBlockNumber(buffer);
	GpudsPageOpaque opaque;

	if (PageIsNew(page))
		gpuds_corrupted(index, blkno, "The page is all zeros.");
	if (header->pd_special != BLCKSZ - MAXALIGN(sizeof(GpudsPageOpaqueData)))
		gpuds_corrupted(index, blkno, "The special space starts at byte %u.", header->pd_special);
	if (header->pd_lower < MAXALIGN(SizeOfPageHeaderData) || header->pd_lower > header->pd_upper ||
		header->pd_upper > header->pd_special)
		gpuds_corrupted(index, blkno, "The page header has lower %u and upper %u.", header->pd_lower,
						header->pd_upper);

	opaque = GpudsPageGetOpaque(page);
	if (opaque->page_id != GPUDS_PAGE_ID)
		gpuds_corrupted(index, blkno, "The page id is 0x%04X instead of 0x%04X.", opaque->page_id,
						GPUDS_PAGE_ID);
	if (opaque->kind < GPUDS_PAGE_META || opaque->kind > GPUDS_PAGE_STEMS)
		gpuds_corrupted(index, blkno, "The page is of unknown kind %u.", opaque->kind);
	if ((opaque->kind == GPUDS_PAGE_META) != (blkno == GPUDS_META_BLKNO))
		gpuds_corrupted(index, blkno, "A page of kind %u cannot be here.", opaque->kind);
	if (opaque->stripe >= GPUDS_STRIPES)
		gpuds_corrupted(index, blkno, "The page belongs to stripe %u.", opaque->stripe);
	if (opaque->next == GPUDS_META_BLKNO)
		gpuds_corrupted(index, blkno, "The next page of the chain would be the metapage.");
	if (nwords > 0 && (opaque->kind == GPUDS_PAGE_BASE || opaque->kind == GPUDS_PAGE_STRIPE) &&
		(header->pd_lower - MAXALIGN(SizeOfPageHeaderData)) % GpudsRecordSize(nwords) != 0)
		gpuds_corrupted(index, blkno, "The records end at byte %u, which is not a multiple of their size.",
						header->pd_lower);
}

/* Raises ERRCODE_INDEX_CORRUPTED if the link from one block to another leads out of the file. */
void
gpuds_block_check(Relation index, BlockNumber from, BlockNumber blkno)
{
	if (blkno == GPUDS_META_BLKNO || blkno >= RelationGetNumberOfBlocks(index))
		gpuds_corrupted(index, from, "It links to block %u, which is not a page of records.", blkno);
}

/* Does a page, which the caller has locked, say that it is free? */
bool
gpuds_page_is_free(Page page)
{
	if (PageIsNew(page))
		return true;
	return PageGetSpecialSize(page) == MAXALIGN(sizeof(GpudsPageOpaqueData)) &&
		   GpudsPageGetOpaque(page)->page_id == GPUDS_PAGE_ID &&
		   GpudsPageGetOpaque(page)->kind == GPUDS_PAGE_FREE;
}

/* Puts n records behind those of a page; the caller has seen that they fit. */
void
gpuds_page_store(Page page, const char *records, int n, int nwords)
{
	PageHeader header = (PageHeader) page;
	Size size = n * GpudsRecordSize(nwords);

	Assert(header->pd_lower + size <= header->pd_special);
	memcpy(page + header->pd_lower, records, size);
	header->pd_lower += size;
}
