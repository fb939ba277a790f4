/*-------------------------------------------------------------------------
 *
 * append.c
 *	  Appends records to the stripes, and seals the stripes for a compaction.
 *
 * The tail of a stripe is its page without a next page.  Only the holder of the tail's
 * exclusive lock may append or link.  A page that has a next page does not change again
 * except for dead marks.  The first record of a linked page is numbered one above the
 * last record of the page before.  Locks are taken in the order tail, new page, metapage;
 * a stripe's first page is made under the metapage's lock.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"

#include "journal/journal_internal.h"

/* Entries that are grouped by stripe at a time. */
#define APPEND_CHUNK 32768
#define APPEND_SMALL 64

/* The metapage's tail hint is renewed each time a stripe has grown by this many pages. */
#define TAIL_HINT_PAGES 64

/*
 * Makes the first page of an empty stripe.  Returns it locked, or InvalidBuffer if
 * somebody else was faster.
 */
static Buffer
create_stripe(Relation index, int stripe, GpudsReserve *reserve)
{
	Buffer metabuf = ReadBuffer(index, GPUDS_META_BLKNO);
	Buffer buffer = InvalidBuffer;
	GpudsMetaData *meta;

	LockBuffer(metabuf, BUFFER_LOCK_EXCLUSIVE);
	gpuds_meta_check(index, metabuf);
	if (GpudsPageGetMeta(BufferGetPage(metabuf))->stripe[stripe].head == InvalidBlockNumber)
	{
		GenericXLogState *state;

		buffer = gpuds_page_new(index, reserve);
		state = GenericXLogStart(index);
		meta = GpudsPageGetMeta(GenericXLogRegisterBuffer(state, metabuf, 0));
		gpuds_page_init(GenericXLogRegisterBuffer(state, buffer, GENERIC_XLOG_FULL_IMAGE), GPUDS_PAGE_STRIPE,
						stripe, meta->generation, meta->stripe[stripe].first);
		meta->stripe[stripe].head = BufferGetBlockNumber(buffer);
		meta->stripe[stripe].tail_hint = BufferGetBlockNumber(buffer);
		GenericXLogFinish(state);
	}
	UnlockReleaseBuffer(metabuf);
	return buffer;
}

/*
 * Locks the tail page of a stripe and returns its buffer.  Looks where this
 * backend last saw it, then at the metapage's hint, then at the stripe's head,
 * and walks from there.  Makes the stripe if it is empty and create is set, else
 * returns InvalidBuffer.  nwords 0: not known, not checked.  reserve: as of gpuds_page_new.
 */
static Buffer
lock_tail(Relation index, int nwords, int stripe, int mode, bool create, GpudsReserve *reserve)
{
	GpudsTails *tails = gpuds_tails_of(index);
	BlockNumber blkno = tails->tail[stripe];
	BlockNumber from = GPUDS_META_BLKNO;
	uint64 expect = 0;
	uint64 generation = 0;
	int looked = 0;

	for (;;)
	{
		Buffer buffer;
		GpudsPageOpaque opaque;

		CHECK_FOR_INTERRUPTS();

		if (blkno == InvalidBlockNumber)
		{
			GpudsMetaData meta;

			gpuds_journal_read_meta(index, &meta);
			if (nwords > 0 && meta.nwords != nwords)
				gpuds_corrupted(index, GPUDS_META_BLKNO, "The index has %u key words, its definition %d.",
								meta.nwords, nwords);
			if (meta.stripe[stripe].head == InvalidBlockNumber)
			{
				if (!create)
					return InvalidBuffer;
				buffer = create_stripe(index, stripe, reserve);
				if (buffer == InvalidBuffer)
					continue;
				tails->tail[stripe] = BufferGetBlockNumber(buffer);
				return buffer;
			}

			/* the hint first; when that was no good the head; that must be good, as long as it is the head */
			if (meta.generation != generation)
				looked = 0;
			generation = meta.generation;
			if (looked >= 2)
				gpuds_corrupted(index, GPUDS_META_BLKNO, "Block %u is not the head of stripe %d.",
								meta.stripe[stripe].head, stripe);
			blkno = looked == 0 ? meta.stripe[stripe].tail_hint : meta.stripe[stripe].head;
			looked++;
			from = GPUDS_META_BLKNO;
			gpuds_block_check(index, from, blkno);
		}

		buffer = ReadBuffer(index, blkno);
		LockBuffer(buffer, mode);
		gpuds_page_check(index, buffer, nwords);
		opaque = GpudsPageGetOpaque(BufferGetPage(buffer));
		if (opaque->kind != GPUDS_PAGE_STRIPE || opaque->stripe != stripe ||
			(from != GPUDS_META_BLKNO && opaque->first < expect))
		{
			/* compaction has freed it: start again */
			UnlockReleaseBuffer(buffer);
			blkno = InvalidBlockNumber;
			continue;
		}

		if (opaque->next == InvalidBlockNumber)
		{
			tails->tail[stripe] = blkno;
			return buffer;
		}

		/* numbers must grow, or a damaged link could lead us round for ever */
		if (((PageHeader) BufferGetPage(buffer))->pd_lower <= MAXALIGN(SizeOfPageHeaderData))
			gpuds_corrupted(index, blkno, "The page is empty but not the last of its stripe.");
		expect = opaque->first + 1;
		from = blkno;
		blkno = opaque->next;
		UnlockReleaseBuffer(buffer);
		gpuds_block_check(index, from, blkno);
	}
}

/* Notes in the metapage where a stripe's tail was a moment ago. */
static void
renew_tail_hint(Relation index, int stripe, BlockNumber tail)
{
	Buffer buffer = ReadBuffer(index, GPUDS_META_BLKNO);
	GenericXLogState *state;

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	gpuds_meta_check(index, buffer);
	state = GenericXLogStart(index);
	GpudsPageGetMeta(GenericXLogRegisterBuffer(state, buffer, 0))->stripe[stripe].tail_hint = tail;
	GenericXLogFinish(state);
	UnlockReleaseBuffer(buffer);
}

/*
 * Puts records of a stripe that have been appended into the memtable of a file of the append
 * (gpuds_memtable_begin), if it has one.
 */
void
gpuds_append_remember(int file, int nwords, int stripe, const char *records, int64 n, uint64 number,
					  BlockNumber block)
{
	for (int64 i = 0; i < n; i++)
	{
		const GpudsRecord *record = (const GpudsRecord *) (records + i * GpudsRecordSize(nwords));
		GpudsEntry entry;

		gpuds_record_entry(record, nwords, &entry);
		if (!gpuds_memtable_add(file, stripe, number + i, block, &entry,
								(record->flags & GPUDS_RECORD_TOMBSTONE) != 0))
			break;
	}
}

/* The same for an index that is appended to alone. */
static void
remember(Relation index, int nwords, int stripe, const char *records, int64 n, uint64 number,
		 BlockNumber block)
{
	if (!RelationUsesLocalBuffers(index))
		gpuds_append_remember(0, nwords, stripe, records, n, number, block);
}

/*
 * Appends to a tail page, and to up to GPUDS_MAX_NEW_PAGES pages that it links behind it,
 * what there is room for of n finished records.  *tail: the tail's buffer, locked, before
 * and afterwards.  *number: that of the first record.  Returns how many were appended.
 */
static int64
append_pages(Relation index, int nwords, int stripe, const char *records, int64 n, GpudsReserve *reserve,
			 Buffer *tail, uint64 *number)
{
	const int size = GpudsRecordSize(nwords);
	const int capacity = GpudsPageCapacity(nwords);
	const int64 before = n;
	Page page = BufferGetPage(*tail);
	GpudsPageOpaque opaque = GpudsPageGetOpaque(page);
	int here = Min(n, capacity - GpudsPageCount(page, nwords));
	Buffer fresh[GPUDS_MAX_NEW_PAGES];
	int nfresh = 0;
	GpudsPageDelta delta;
	uint64 first;

	if (n > here)
	{
		int64 pages = (n - here + capacity - 1) / capacity;

		nfresh = Min(pages, GPUDS_MAX_NEW_PAGES);
		for (int i = 0; i < nfresh; i++)
			fresh[i] = gpuds_page_new(index, reserve);
	}

	*number = opaque->first + GpudsPageCount(page, nwords);
	first = *number + here;
	delta.length = 0;

	START_CRIT_SECTION();
	if (here > 0)
	{
		int lower = ((PageHeader) page)->pd_lower;

		gpuds_page_store(page, records, here, nwords);
		gpuds_page_delta_add(&delta, page, offsetof(PageHeaderData, pd_lower), sizeof(LocationIndex));
		gpuds_page_delta_add(&delta, page, lower, here * size);
		records += (Size) here * size;
		n -= here;
	}
	for (int i = 0; i < nfresh; i++)
	{
		opaque->next = BufferGetBlockNumber(fresh[i]);
		if (i == 0)
			gpuds_page_delta_add(&delta, page, GPUDS_NEXT_OFFSET, sizeof(BlockNumber));
		here = Min(n, capacity);
		page = BufferGetPage(fresh[i]);
		gpuds_page_init(page, GPUDS_PAGE_STRIPE, stripe, opaque->generation, first);
		gpuds_page_store(page, records, here, nwords);
		opaque = GpudsPageGetOpaque(page);
		first += here;
		records += (Size) here * size;
		n -= here;
	}
	gpuds_log_pages(index, *tail, &delta, fresh, nfresh);
	END_CRIT_SECTION();

	if (nfresh > 0)
	{
		UnlockReleaseBuffer(*tail);
		for (int i = 0; i < nfresh - 1; i++)
			UnlockReleaseBuffer(fresh[i]);
		*tail = fresh[nfresh - 1];
	}
	return before - n;
}

/* Pages that n records need of a stripe whose tail, locked, that is; InvalidBuffer: it has none. */
static int64
pages_needed(int nwords, int64 n, Buffer tail)
{
	const int capacity = GpudsPageCapacity(nwords);

	if (tail != InvalidBuffer)
		n -= Min(n, capacity - GpudsPageCount(BufferGetPage(tail), nwords));
	return (n + capacity - 1) / capacity;
}

/*
 * Locks the tail of a stripe, which is made if need be, for an append of n records.  With a reserve (not
 * NULL), that has the pages that the append needs, whoever else appends; InvalidBuffer: there is no space for
 * them.
 */
static Buffer
lock_tail_for(Relation index, int nwords, int stripe, int64 n, GpudsReserve *reserve)
{
	for (;;)
	{
		Buffer tail = lock_tail(index, nwords, stripe, BUFFER_LOCK_EXCLUSIVE, reserve == NULL, NULL);
		int64 need;

		if (reserve == NULL)
			return tail;
		need = pages_needed(nwords, n, tail);
		if (need <= reserve->n)
			return tail != InvalidBuffer
					   ? tail
					   : lock_tail(index, nwords, stripe, BUFFER_LOCK_EXCLUSIVE, true, reserve);
		if (tail != InvalidBuffer)
			UnlockReleaseBuffer(tail);
		if (!gpuds_reserve_pages(index, reserve, need))
			return InvalidBuffer;
	}
}

/*
 * Appends n finished records to one stripe.  What is in pages is put into the memtable
 * before anything that may raise an error: other records of the stripe may already have
 * been, and a mirror's position is one number.  False: the reserve (NULL: there is none) has not the pages
 * that it takes, and nothing was appended.
 */
static bool
append_stripe(Relation index, int nwords, int stripe, const char *records, int64 n, GpudsReserve *reserve)
{
	const int size = GpudsRecordSize(nwords);
	const uint64 step = (uint64) TAIL_HINT_PAGES * GpudsPageCapacity(nwords);
	Buffer buffer = lock_tail_for(index, nwords, stripe, n, reserve);
	uint64 before;
	uint64 after;
	BlockNumber block;
	uint64 number;
	int64 done;

	if (buffer == InvalidBuffer)
		return false;
	before = GpudsPageGetOpaque(BufferGetPage(buffer))->first;
	while ((done = append_pages(index, nwords, stripe, records, n, reserve, &buffer, &number)) < n)
	{
		remember(index, nwords, stripe, records, done, number, BufferGetBlockNumber(buffer));
		records += done * size;
		n -= done;
	}
	block = BufferGetBlockNumber(buffer);
	after = GpudsPageGetOpaque(BufferGetPage(buffer))->first;
	UnlockReleaseBuffer(buffer);
	gpuds_injection_point("append-paged");
	remember(index, nwords, stripe, records, n, number, block);

	/* looked up now: a relcache message may have come while we waited for locks */
	gpuds_tails_of(index)->tail[stripe] = block;
	if (before / step != after / step)
		renew_tail_hint(index, stripe, block);
	return true;
}

/* An append's work on pages and in the memtable.  False: not all was appended, as of append_stripe. */
static bool
append_all(Relation index, int nwords, const GpudsEntry *entries, int64 n, uint8 flags, GpudsReserve *reserve)
{
	const int size = GpudsRecordSize(nwords);
	union
	{
		char bytes[APPEND_SMALL * GpudsRecordSize(2)];
		uint64 align;
	} small;
	char *records = small.bytes;
	bool done = true;

	if (n == 1)
	{
		gpuds_record_form((GpudsRecord *) records, entries, nwords, flags);
		return append_stripe(index, nwords, gpuds_stripe_of(entries), records, 1, reserve);
	}

	if (n > APPEND_SMALL)
		records = palloc(Min(n, APPEND_CHUNK) * size);

	while (done && n > 0)
	{
		int chunk = Min(n, APPEND_CHUNK);
		int count[GPUDS_STRIPES] = { 0 };
		int start[GPUDS_STRIPES];
		int place[GPUDS_STRIPES];
		int sum = 0;

		for (int i = 0; i < chunk; i++)
			count[gpuds_stripe_of(&entries[i])]++;
		for (int stripe = 0; stripe < GPUDS_STRIPES; stripe++)
		{
			start[stripe] = place[stripe] = sum;
			sum += count[stripe];
		}
		for (int i = 0; i < chunk; i++)
		{
			int at = place[gpuds_stripe_of(&entries[i])]++;

			gpuds_record_form((GpudsRecord *) (records + (Size) at * size), &entries[i], nwords, flags);
		}

		/* backends that append much at a time start with different stripes */
		for (int i = 0; done && i < GPUDS_STRIPES; i++)
		{
			int stripe = (i + MyProcPid) % GPUDS_STRIPES;

			if (count[stripe] > 0)
				done = append_stripe(index, nwords, stripe, records + (Size) start[stripe] * size,
									 count[stripe], reserve);
		}
		entries += chunk;
		n -= chunk;
	}

	if (records != small.bytes)
		pfree(records);
	return done;
}

static bool
append(Relation index, int nwords, const GpudsEntry *entries, int64 n, uint8 flags, GpudsReserve *reserve)
{
	bool done;

	if (n <= 0)
		return true;
	if (!RelationUsesLocalBuffers(index))
		gpuds_memtable_begin(&RelationLocator(index), 1, n);
	done = append_all(index, nwords, entries, n, flags, reserve);
	gpuds_journal_count_change(index);
	gpuds_memtable_end();
	return done;
}

/*
 * Appends entries, in any order, as inserts.  Several
 * entries of one TID keep their order.  When it returns everything is in WAL
 * (not flushed) and the change counter has moved.  Locks one stripe's tail at a
 * time; an error may leave part of the entries appended.
 */
void
gpuds_journal_append(Relation index, int nwords, const GpudsEntry *entries, int64 n)
{
	(void) append(index, nwords, entries, n, 0, NULL);
}

/*
 * The same as tombstones, on pages of the reserve, which gets those that are missing.  False: there is no
 * space for them, and not all tombstones have been appended.
 */
bool
gpuds_journal_append_tombstones(Relation index, int nwords, const GpudsEntry *entries, int64 n,
								GpudsReserve *reserve)
{
	return append(index, nwords, entries, n, GPUDS_RECORD_TOMBSTONE, reserve);
}

/*
 * Where the stripes end now: everything appended before the call is below.  Share
 * locks, one page at a time.
 */
void
gpuds_journal_end(Relation index, const GpudsMetaData *meta, GpudsJournalPos *end)
{
	end->epoch = meta->epoch;
	for (int stripe = 0; stripe < GPUDS_STRIPES; stripe++)
	{
		Buffer buffer = lock_tail(index, meta->nwords, stripe, BUFFER_LOCK_SHARE, false, NULL);

		end->count[stripe] = 0;
		end->block[stripe] = InvalidBlockNumber;
		if (buffer != InvalidBuffer)
		{
			Page page = BufferGetPage(buffer);

			end->count[stripe] = GpudsPageGetOpaque(page)->first + GpudsPageCount(page, meta->nwords);
			end->block[stripe] = BufferGetBlockNumber(buffer);
			UnlockReleaseBuffer(buffer);
		}
	}
}

/*
 * Makes every stripe go on on a fresh page.  *sealed: the numbers where the fresh
 * pages begin; fresh: what the stripes' entries in the metapage will be when
 * everything before is gone (head invalid: the stripe was empty).  The metapage
 * stays as it is.  Only VACUUM calls it, so that there is one at a time.  Takes pages of the reserve first.
 */
void
gpuds_journal_seal(Relation index, int nwords, GpudsReserve *reserve, GpudsJournalPos *sealed,
				   GpudsStripeMeta fresh[GPUDS_STRIPES])
{
	GpudsMetaData meta;

	gpuds_journal_read_meta(index, &meta);
	sealed->epoch = meta.epoch;
	for (int stripe = 0; stripe < GPUDS_STRIPES; stripe++)
	{
		Buffer buffer = lock_tail(index, nwords, stripe, BUFFER_LOCK_EXCLUSIVE, false, NULL);
		Page page;
		uint64 first;

		sealed->count[stripe] = 0;
		sealed->block[stripe] = InvalidBlockNumber;
		fresh[stripe].head = InvalidBlockNumber;
		fresh[stripe].tail_hint = InvalidBlockNumber;
		fresh[stripe].first = 0;
		if (buffer == InvalidBuffer)
			continue;

		/* an empty tail is as good as a fresh page */
		page = BufferGetPage(buffer);
		first = GpudsPageGetOpaque(page)->first + GpudsPageCount(page, nwords);
		if (GpudsPageCount(page, nwords) > 0)
		{
			Buffer next = gpuds_page_new(index, reserve);
			GpudsPageDelta delta;

			delta.length = 0;
			START_CRIT_SECTION();
			GpudsPageGetOpaque(page)->next = BufferGetBlockNumber(next);
			gpuds_page_delta_add(&delta, page, GPUDS_NEXT_OFFSET, sizeof(BlockNumber));
			gpuds_page_init(BufferGetPage(next), GPUDS_PAGE_STRIPE, stripe, meta.generation + 1, first);
			gpuds_log_pages(index, buffer, &delta, &next, 1);
			END_CRIT_SECTION();
			UnlockReleaseBuffer(buffer);
			buffer = next;
		}
		sealed->count[stripe] = first;
		sealed->block[stripe] = BufferGetBlockNumber(buffer);
		fresh[stripe].head = BufferGetBlockNumber(buffer);
		fresh[stripe].tail_hint = BufferGetBlockNumber(buffer);
		fresh[stripe].first = first;
		UnlockReleaseBuffer(buffer);
	}
}
