/*-------------------------------------------------------------------------
 *
 * chain.c
 *	  The walk along a chain of the journal: the base, or a stripe.
 *
 * The walk copies a page's records out under a share lock and holds no lock and no pin between pages.
 * Compaction may replace chains under it.  A page belongs to the chain exactly if its kind, its stripe or
 * generation, and the number of its first record are the expected ones.  If they are not, the metapage tells
 * why: another generation means that a compaction was at work (GPUDS_READ_STALE).  The same generation means
 * that the chain is damaged.  Numbers grow with each page, so no walk goes in circles.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"

#include "journal/chain.h"

/*
 * Prepares for a walk by a metapage that the caller has read and keeps.  strategy: the ring of buffers to
 * read through, or NULL.
 */
void
gpuds_chain_init(GpudsChain *chain, Relation index, const GpudsMetaData *meta, BufferAccessStrategy strategy)
{
	chain->index = index;
	chain->meta = meta;
	chain->strategy = strategy;
	chain->nblocks = RelationGetNumberOfBlocks(index);
	chain->next = InvalidBlockNumber;
}

static void
begin(GpudsChain *chain, int stripe, BlockNumber head, uint64 first)
{
	chain->stripe = stripe;
	chain->from = GPUDS_META_BLKNO;
	chain->next = head;
	chain->expect = first;
	chain->guessed = false;
}

/* Begins at the base's head. */
void
gpuds_chain_begin_base(GpudsChain *chain)
{
	begin(chain, GPUDS_CHAIN_BASE, chain->meta->base_head, 0);
	chain->want = 0;
}

/*
 * Begins at a stripe's head.  Records numbered below want are not copied, and if the stripe ends below it,
 * the walk is stale.
 */
void
gpuds_chain_begin_stripe(GpudsChain *chain, int stripe, uint64 want)
{
	begin(chain, stripe, chain->meta->stripe[stripe].head, chain->meta->stripe[stripe].first);
	chain->want = want;
}

/*
 * Begins at the block where the record numbered want was expected once.  It may be anything by now: if it is
 * no page of the stripe that leads to the record, the walk begins at the head.
 */
void
gpuds_chain_begin_at(GpudsChain *chain, int stripe, uint64 want, BlockNumber block)
{
	gpuds_chain_begin_stripe(chain, stripe, want);
	if (block < chain->nblocks && block != chain->next)
	{
		chain->next = block;
		chain->guessed = true;
	}
}

/* Does the metapage by which a chain is walked still lead to it? */
static bool
is_replaced(Relation index, const GpudsMetaData *meta)
{
	GpudsMetaData now;

	gpuds_journal_read_meta(index, &now);
	return now.generation != meta->generation || now.file_id != meta->file_id;
}

/*
 * Something is not what it should be by the metapage that the caller has read.  GPUDS_READ_STALE if a
 * compaction has changed the metapage meanwhile, otherwise raises ERRCODE_INDEX_CORRUPTED as gpuds_corrupted.
 * The caller holds no page lock.
 */
GpudsReadResult
gpuds_stale_or_corrupted(Relation index, const GpudsMetaData *meta, BlockNumber blkno, const char *fmt, ...)
{
	char detail[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(detail, sizeof(detail), fmt, args);
	va_end(args);
	if (!is_replaced(index, meta))
		gpuds_corrupted(index, blkno, "%s", detail);
	return GPUDS_READ_STALE;
}

/* Is the next block one of the file's? */
static bool
is_in_file(GpudsChain *chain)
{
	if (chain->next >= chain->nblocks)
		chain->nblocks = RelationGetNumberOfBlocks(chain->index);
	return chain->next != GPUDS_META_BLKNO && chain->next < chain->nblocks;
}

/* Is the present page one that the chain goes on with? */
static bool
belongs(const GpudsChain *chain)
{
	const GpudsPageOpaqueData *opaque = &chain->opaque;

	if (chain->stripe == GPUDS_CHAIN_BASE)
		return opaque->kind == GPUDS_PAGE_BASE && opaque->generation == chain->meta->generation &&
			   opaque->first == chain->expect;
	if (opaque->kind != GPUDS_PAGE_STRIPE || opaque->stripe != chain->stripe)
		return false;
	return chain->guessed ? opaque->first <= chain->want : opaque->first == chain->expect;
}

/* Does the chain end before the record from which it is wanted? */
static bool
ends_early(const GpudsChain *chain)
{
	return chain->opaque.next == InvalidBlockNumber && chain->opaque.first + chain->count < chain->want;
}

/* Makes the next block the present page and copies what is wanted of it, if it belongs to the chain. */
static bool
copy_next(GpudsChain *chain)
{
	const int nwords = chain->meta->nwords;
	Buffer buffer = ReadBufferExtended(chain->index, MAIN_FORKNUM, chain->next, RBM_NORMAL, chain->strategy);
	Page page = BufferGetPage(buffer);
	bool found;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	gpuds_page_check(chain->index, buffer, nwords);
	chain->blkno = chain->next;
	chain->opaque = *GpudsPageGetOpaque(page);
	chain->count = GpudsPageCount(page, nwords);
	found = belongs(chain);
	if (found)
	{
		chain->skipped = chain->want > chain->opaque.first
							 ? (int) Min(chain->want - chain->opaque.first, (uint64) chain->count)
							 : 0;
		memcpy(chain->records.data, GpudsPageRecord(page, chain->skipped, nwords),
			   (chain->count - chain->skipped) * GpudsRecordSize(nwords));
	}
	UnlockReleaseBuffer(buffer);
	return found;
}

/* Says what is wrong with a page that belongs to the chain, NULL: nothing. */
static const char *
fault_of(const GpudsChain *chain)
{
	if (chain->stripe == GPUDS_CHAIN_BASE)
		return chain->count == 0 || chain->opaque.first + chain->count > chain->meta->base_records
				   ? "The page has a wrong number of records."
				   : NULL;
	return chain->count == 0 && chain->opaque.next != InvalidBlockNumber
			   ? "The page is empty but not the last of its stripe."
			   : NULL;
}

/*
 * Goes to the chain's next page, which *chain has then.  GPUDS_READ_END: there is none.  GPUDS_READ_STALE: a
 * compaction has replaced the chain, or the stripe ends below the record from which it is wanted, which was
 * another file's.  Takes a share lock on one page at a time.  Interruptible.  Raises ERRCODE_INDEX_CORRUPTED.
 */
GpudsReadResult
gpuds_chain_next(GpudsChain *chain)
{
	while (chain->next != InvalidBlockNumber)
	{
		const char *fault;
		bool found;

		CHECK_FOR_INTERRUPTS();
		if (!is_in_file(chain))
			return gpuds_stale_or_corrupted(chain->index, chain->meta, chain->from,
											"It links to block %u, but the index has %u blocks.", chain->next,
											chain->nblocks);
		found = copy_next(chain);
		if (chain->guessed && (!found || ends_early(chain)))
		{
			gpuds_chain_begin_stripe(chain, chain->stripe, chain->want);
			continue;
		}
		if (!found)
			return gpuds_stale_or_corrupted(chain->index, chain->meta, chain->blkno,
											"The page is not the one that the %s goes on with.",
											chain->stripe == GPUDS_CHAIN_BASE ? "base" : "stripe");
		if (ends_early(chain))
			return GPUDS_READ_STALE;
		fault = fault_of(chain);
		if (fault)
			return gpuds_stale_or_corrupted(chain->index, chain->meta, chain->blkno, "%s", fault);

		chain->guessed = false;
		chain->expect = chain->opaque.first + chain->count;
		chain->from = chain->blkno;
		chain->next = chain->opaque.next;
		return GPUDS_READ_PAGE;
	}
	if (chain->stripe == GPUDS_CHAIN_BASE && chain->expect != chain->meta->base_records)
		return gpuds_stale_or_corrupted(chain->index, chain->meta, GPUDS_META_BLKNO,
										"The base ends before all of its records were found.");
	return GPUDS_READ_END;
}
