/*-------------------------------------------------------------------------
 *
 * known_rows.c
 *	  What a scan knows of rows by the states of their pages.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/heapam.h"
#include "access/relscan.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/spccache.h"

#include "reader/fetch.h"
#include "reader/known_rows.h"
#include "reader/reader.h"

/* Slots that the table has at first, and how many times as many when it grows; the pages likewise. */
#define FIRST_SLOTS 16
#define SLOTS_GROWTH 4
#define FIRST_PAGES 16
#define PAGES_GROWTH 2

/*
 * Slots for each page that is learnt of for a device.  Of n pages in m slots, about n^2 / 2m give way to
 * others, and all rows of such a page come back from the device: here those of a page in 64.
 */
#define DEVICE_SLOTS 32

/* Pages that are looked at together, at most, so that the processor finds their memory meanwhile. */
#define LOOK_PAGES GPUDS_STATES_AHEAD

/* Of these, so many are pinned: the server has eight pins of a process at hand without a hash table. */
#define PINNED_PAGES 4

/* Pages that a word of the visibility map is about. */
#define MAP_WORD_BLOCKS 32

/* Rows of a page that are worth a state: it takes about as long as visits to them. */
#define WORTH_ROWS 2

/* Rows that a device is to look at for each page that is learnt of for it. */
#define ROWS_A_PAGE 4

/*
 * K3: WAL between a state and now, in bytes.  The rest of 4 GB is more than a record that is being replayed.
 */
#define YOUNG_WAL (UINT64CONST(3) << 30)

/* A page that is being looked at. */
typedef struct Look
{
	BlockNumber block;
	int64 wanted; /* rows */
	bool found;   /* a state */
	bool holds;
	Buffer buffer;
	XLogRecPtr lsn; /* that the page has */
	GpudsPageState state;
} Look;

/* For a scan with an MVCC snapshot; the current memory context is the table's.  Takes no memory yet. */
void
gpuds_known_begin(GpudsKnownRows *known, IndexScanDesc scan)
{
	memset(known, 0, sizeof(*known));
	known->scan = scan;
	known->context = CurrentMemoryContext;
	known->usable = gpuds_visibility_memory_kb > 0 && scan->heapRelation &&
					scan->xs_snapshot->snapshot_type == SNAPSHOT_MVCC && !GpudsSnapshotsExpire() &&
					gpuds_page_has_states(scan->heapRelation);
	known->serializable = IsolationIsSerializable();
	known->now = (uint32) (GetCurrentStatementStartTimestamp() / USECS_PER_SEC);
	known->at_a_time = 1;
	known->least_slots = FIRST_SLOTS;
	known->least_pages = FIRST_PAGES;
}

/* Another list of rows begins, whose entries have been read. */
void
gpuds_known_begin_list(GpudsKnownRows *known)
{
	known->list++;
	known->at_a_time = 1;
}

/* Rows of the list were passed over, so those that come next may not be wanted either. */
void
gpuds_known_pass_over(GpudsKnownRows *known)
{
	known->at_a_time = 1;
}

/* Bytes that the table may take. */
static uint64
table_limit(void)
{
	return Min(get_hash_memory_limit(), MaxAllocHugeSize);
}

/* Slots that the table may have: a power of two.  A quarter of its memory is for them. */
static uint32
slot_limit(const GpudsKnownRows *known)
{
	const uint64 pages = RelationGetNumberOfBlocks(known->scan->heapRelation);
	const uint64 fit = table_limit() / 4 / sizeof(uint32);
	uint64 slots = FIRST_SLOTS;

	while (slots * 2 <= fit && slots < pages)
		slots *= 2;
	return (uint32) Min(slots, UINT32_C(1) << 31);
}

/* Pages of so many words that the table may have. */
static uint32
page_limit(uint32 words)
{
	const uint64 fit = table_limit() / 4 * 3 / ((2 + words) * sizeof(uint32));

	return (uint32) Min(Max(fit, FIRST_PAGES), PG_INT32_MAX);
}

/* What the table has of a page. */
static inline uint32 *
page_at(const GpudsKnownRows *known, uint32 place)
{
	return known->pages + (size_t) place * (1 + known->rows.words);
}

/* The place of a slot's page, or of one that is none any more; -1: none, or another slot has it. */
static int64
place_in_slot(const GpudsKnownRows *known, uint32 slot)
{
	const int64 place = (int64) known->places[slot] - 1;
	uint32 block;

	if (place < 0)
		return -1;
	block = page_at(known, (uint32) place)[0];
	return block == 0 || ((block - 1) & (known->rows.slots - 1)) == slot ? place : -1;
}

/* A place for a page that comes in. */
static uint32
take_place(GpudsKnownRows *known)
{
	if (known->rows.npages < known->size)
		return known->rows.npages++;
	/* The slot of the page that was there will not find it there. */
	if (++known->next_lost >= known->size)
		known->next_lost = 0;
	return known->next_lost;
}

/* Puts a page in its slot; words: that it has, no more than the table's pages. */
static void
put_page(GpudsKnownRows *known, BlockNumber block, uint32 list, const uint32 *bits, uint32 words)
{
	const uint32 slot = block & (known->rows.slots - 1);
	const int64 had = place_in_slot(known, slot);
	const uint32 place = had >= 0 ? (uint32) had : take_place(known);
	uint32 *to = page_at(known, place);

	known->places[slot] = place + 1;
	known->lists[place] = list;
	to[0] = block + 1;
	memcpy(to + 1, bits, words * sizeof(uint32));
	/* Of rows that smaller pages had no words for, nothing is known. */
	memset(to + 1 + words, 0, (known->rows.words - words) * sizeof(uint32));
}

static void
free_table(uint32 *places, uint32 *pages, uint32 *lists)
{
	if (places == NULL)
		return;
	pfree(places);
	pfree(pages);
	pfree(lists);
}

/* Gives the table so many slots, and room for so many pages of so many words; what it has moves. */
static void
set_table(GpudsKnownRows *known, uint32 slots, uint32 size, uint32 words)
{
	const PageRows old = known->rows;
	uint32 *places = known->places;
	uint32 *pages = known->pages;
	uint32 *lists = known->lists;

	known->places = MemoryContextAllocHuge(known->context, (size_t) slots * sizeof(uint32));
	known->lists = MemoryContextAllocHuge(known->context, (size_t) size * sizeof(uint32));
	known->pages = MemoryContextAllocHuge(known->context, page_rows_pages_bytes(size, words));
	memset(known->places, 0, (size_t) slots * sizeof(uint32));
	known->rows = (PageRows){
		.places = known->places, .pages = known->pages, .slots = slots, .words = words
	};
	known->size = size;
	for (uint32 i = 0; i < old.npages; i++)
	{
		const uint32 *page = pages + (size_t) i * (1 + old.words);

		if (page[0] != 0)
			put_page(known, page[0] - 1, lists[i], page + 1, old.words);
	}
	free_table(places, pages, lists);
}

/* Makes the table large enough for one more page, of so many words, if it may have the memory. */
static void
ensure_capacity(GpudsKnownRows *known, uint32 words)
{
	uint64 slots = Max(known->rows.slots, known->least_slots);
	uint64 size = Max(known->size, known->least_pages);

	words = Max(known->rows.words, words);
	if (words > known->rows.words)
	{
		known->max_slots = slot_limit(known);
		known->max_pages = page_limit(words);
	}
	if (known->rows.npages >= slots / 2)
		slots *= SLOTS_GROWTH;
	if (known->rows.npages >= size)
		size *= PAGES_GROWTH;
	slots = Min(slots, known->max_slots);
	size = Min(size, known->max_pages);
	if (slots != known->rows.slots || size > known->size || words > known->rows.words)
		set_table(known, (uint32) slots, (uint32) size, words);
}

/* Notes what the state of a page says, which has so many rows. */
static void
note_rows(GpudsKnownRows *known, BlockNumber block, const uint32 *bits, int nrows)
{
	ensure_capacity(known, GpudsRowWords(nrows));
	put_page(known, block, known->list, bits, known->rows.words);
}

static inline bool
knows_page(const GpudsKnownRows *known, BlockNumber block)
{
	uint32 place;

	if (known->rows.slots == 0)
		return false;
	place = known->places[block & (known->rows.slots - 1)];
	return place > 0 && page_at(known, place - 1)[0] == block + 1;
}

/* Was the page of a TID, which is known, looked at for the list at hand (K5)? */
bool
gpuds_known_is_of_list(const GpudsKnownRows *known, uint64 tid)
{
	return known->lists[known->places[(uint32) (tid >> 16) & (known->rows.slots - 1)] - 1] == known->list;
}

/*
 * Which pages of an ascending list are looked at next, of those that nothing is known of yet; returns how
 * many words of the list are about these and the ones between.
 */
static int64
choose_pages(const GpudsKnownRows *known, const uint64 *words, int64 n, int shift, Look *looks, int *nlooks)
{
	int64 i = 0;

	*nlooks = 0;
	while (i < n)
	{
		const BlockNumber block = (BlockNumber) (words[i] >> (16 + shift));
		const int64 first = i;

		if (*nlooks == known->at_a_time)
			break;
		while (i < n && words[i] >> (16 + shift) == block)
			i++;
		if (knows_page(known, block))
			continue;
		looks[*nlooks].block = block;
		looks[(*nlooks)++].wanted = i - first;
	}
	return i;
}

/*
 * Finds the states of pages; the memory of the buffers that they name is on its way then.  It is asked for in
 * a loop of its own, because what is asked for does not let the processor go on before it has the address,
 * and it looks for few addresses at a time unless they are close together in the program.
 */
static void
find_states(const GpudsKnownRows *known, Look *looks, int n)
{
	const Relation heap = known->scan->heapRelation;
	BlockNumber blocks[LOOK_PAGES];

	for (int i = 0; i < n; i++)
		blocks[i] = looks[i].block;
	gpuds_states_prefetch(&RelationLocator(heap), blocks, n);
	for (int i = 0; i < n; i++)
	{
		looks[i].found = gpuds_states_find(&RelationLocator(heap), looks[i].block, known->now,
										   &looks[i].state);
	}
	for (int i = 0; i < n; i++)
	{
		if (!looks[i].found)
			continue;
		__builtin_prefetch(BufferGetBlock(looks[i].state.buffer));
		__builtin_prefetch(GetBufferDescriptor(looks[i].state.buffer - 1), 1);
	}
}

/* Pins the pages that are in the buffers that their states name. */
static void
pin_pages(const GpudsKnownRows *known, Look *looks, int n)
{
	const Relation heap = known->scan->heapRelation;

	for (int i = 0; i < n; i++)
	{
		Look *look = &looks[i];

		look->buffer = InvalidBuffer;
		if (look->found &&
			ReadRecentBuffer(RelationLocator(heap), MAIN_FORKNUM, look->block, look->state.buffer))
			look->buffer = look->state.buffer;
	}
}

/* Pins the other pages; all of them are asked for before the first is waited for. */
static void
read_others(const GpudsKnownRows *known, Look *looks, int n)
{
	const Relation heap = known->scan->heapRelation;
	const int distance = get_tablespace_io_concurrency(heap->rd_rel->reltablespace);
	int asked = -1;

	for (int i = 0; i < n; i++)
	{
		if (!BufferIsValid(looks[i].buffer) && ++asked > 0 && asked <= distance)
			PrefetchBuffer(heap, MAIN_FORKNUM, looks[i].block);
	}
	for (int i = 0; i < n; i++)
	{
		if (!BufferIsValid(looks[i].buffer))
			looks[i].buffer = ReadBuffer(heap, looks[i].block);
	}
}

/* Looks at the LSNs of pages, which are pinned. */
static void
look_at(Look *looks, int n)
{
	/*
	 * What the snapshot sees was written before it was taken: pairs with the locks by which transactions end.
	 */
	pg_read_barrier();
	for (int i = 0; i < n; i++)
	{
		looks[i].lsn = gpuds_unlocked_lsn(BufferGetPage(looks[i].buffer));
		looks[i].holds = looks[i].found && looks[i].lsn == looks[i].state.lsn;
	}
}

/* Where WAL ends, or what was replayed of it; not before any LSN that a page has got by now, by much. */
static XLogRecPtr
end_of_wal(void)
{
	return RecoveryInProgress() ? GetXLogReplayRecPtr(NULL) : GetXLogInsertRecPtr();
}

/* K3, K4: looks again under the page's lock where the LSN as it was read is not enough. */
static void
look_carefully(const GpudsKnownRows *known, Look *looks, int n)
{
	XLogRecPtr end = InvalidXLogRecPtr;

	for (int i = 0; i < n; i++)
	{
		Look *look = &looks[i];

		if (!look->holds)
			continue;
		if (GPUDS_LSN_IS_TWO_WORDS && end == InvalidXLogRecPtr)
			end = end_of_wal();
		if (!known->serializable && end < look->lsn + YOUNG_WAL)
			continue;
		LockBuffer(look->buffer, BUFFER_LOCK_SHARE);
		look->lsn = BufferGetLSNAtomic(look->buffer);
		LockBuffer(look->buffer, BUFFER_LOCK_UNLOCK);
		look->holds = look->lsn == look->state.lsn;
	}
}

/*
 * Makes the state of a pinned page.  Pruning would take longer than that, and change the page, for a state
 * that says the same; who changes rows prunes.  It is worth while where it sets the visibility map.
 */
static void
make_state(GpudsKnownRows *known, Look *look)
{
	const Relation heap = known->scan->heapRelation;

	if (GPUDS_PRUNING_SETS_MAP)
		GpudsPrunePage(known->scan, look->buffer);
	LockBuffer(look->buffer, BUFFER_LOCK_SHARE);
	gpuds_page_state_make(heap, look->buffer, known->scan->xs_snapshot, &look->state);
	LockBuffer(look->buffer, BUFFER_LOCK_UNLOCK);
	/* Without an LSN it is good for this scan only (K1: it was made after the snapshot was taken). */
	if (!XLogRecPtrIsInvalid(look->state.lsn))
		gpuds_states_store(&RelationLocator(heap), look->block, known->now, &look->state);
	known->use.made++;
	known->use.stale += look->found && !look->holds;
	look->holds = true;
}

/* Remembers that a page is visited at its LSN, and where it is: the next visit to it makes its state. */
static void
note_visit(const GpudsKnownRows *known, Look *look)
{
	if (XLogRecPtrIsInvalid(look->lsn))
		return;
	look->state.lsn = look->lsn;
	look->state.buffer = look->buffer;
	look->state.settled = look->state.unsettled = InvalidTransactionId;
	look->state.nrows = look->state.nwriters = 0;
	gpuds_states_store(&RelationLocator(known->scan->heapRelation), look->block, known->now, &look->state);
}

/* Has a state rows, and would a new one say no more? */
static bool
is_good(const GpudsKnownRows *known, const GpudsPageState *state)
{
	return state->nrows > 0 && !gpuds_page_state_is_ripe(state, known->scan->heapRelation,
														 known->scan->xs_snapshot, known->serializable);
}

/* Learns what a state says that holds. */
static void
use_state(GpudsKnownRows *known, const Look *look)
{
	uint32 bits[GPUDS_STATE_WORDS];

	if (!gpuds_page_state_resolve(&look->state, known->scan->xs_snapshot, known->serializable, bits))
		return;
	note_rows(known, look->block, bits, look->state.nrows);
	gpuds_scan_counters(known->scan)->page_states++;
}

/* Learns what a page's state says, or makes the state, or lets the page be visited. */
static void
learn_page(GpudsKnownRows *known, Look *look)
{
	if (look->holds && is_good(known, &look->state))
	{
		known->use.hits++;
		if (look->state.buffer != look->buffer)
		{
			look->state.buffer = look->buffer;
			gpuds_states_store(&RelationLocator(known->scan->heapRelation), look->block, known->now,
							   &look->state);
		}
	}
	else if (look->holds || look->wanted >= WORTH_ROWS)
		make_state(known, look);
	else
	{
		note_visit(known, look);
		look->holds = false;
	}
	ReleaseBuffer(look->buffer);
	if (look->holds)
		use_state(known, look);
}

/*
 * Looks at the LSNs of pages where their states say that they are, without a pin: K6.  Most states hold, and
 * nothing else is needed of their pages.
 */
static void
look_in_buffers(const GpudsKnownRows *known, Look *looks, int n)
{
	/* pairs with the locks by which transactions end, as in look_at */
	pg_read_barrier();
	for (int i = 0; i < n; i++)
	{
		Look *look = &looks[i];

		look->holds = false;
		if (!look->found || !is_good(known, &look->state))
			continue;
		look->lsn = gpuds_lsn_in_buffer(&RelationLocator(known->scan->heapRelation), look->block,
										look->state.buffer);
		look->holds = look->lsn == look->state.lsn;
	}
}

/*
 * Learns what the states say that hold by a look without a pin; returns how many looks are left, which come
 * first then.
 */
static int
learn_in_buffers(GpudsKnownRows *known, Look *looks, int n)
{
	XLogRecPtr end;
	int left = 0;

	look_in_buffers(known, looks, n);
	end = GPUDS_LSN_IS_TWO_WORDS ? end_of_wal() : InvalidXLogRecPtr;
	gpuds_injection_point("page-states-looked");
	for (int i = 0; i < n; i++)
	{
		if (looks[i].holds && end < looks[i].lsn + YOUNG_WAL)
		{
			known->use.hits++;
			use_state(known, &looks[i]);
		}
		else if (left++ < i)
			looks[left - 1] = looks[i];
	}
	return left;
}

/* Learns what there is to know of some pages, as many as are pinned at a time. */
static void
look_pinned(GpudsKnownRows *known, Look *looks, int n)
{
	pin_pages(known, looks, n);
	read_others(known, looks, n);
	look_at(looks, n);
	look_carefully(known, looks, n);
	gpuds_injection_point("page-states-looked");
	for (int i = 0; i < n; i++)
		learn_page(known, &looks[i]);
}

/* Learns what there is to know of some pages; the next time, it may be of twice as many. */
static void
look_together(GpudsKnownRows *known, Look *looks, int n)
{
	const int pins = Max(gpuds_fetch_pins(known->scan->heapRelation, PINNED_PAGES), 1);

	CHECK_FOR_INTERRUPTS();
	find_states(known, looks, n);
	if (!known->serializable)
		n = learn_in_buffers(known, looks, n);
	for (int i = 0; i < n; i += pins)
		look_pinned(known, looks + i, Min(pins, n - i));
	known->at_a_time = Min(2 * known->at_a_time, LOOK_PAGES);
}

/*
 * Learns what there is to know of the next pages of a list: n words, ascending, whose high 48 bits are TIDs
 * shifted by shift.  Returns for how many words of the list that was; more than none, unless n is 0.  Takes
 * and releases pins and share locks of the pages; may wait for them to be read.
 */
int64
gpuds_known_learn(GpudsKnownRows *known, const uint64 *words, int64 n, int shift)
{
	Look looks[LOOK_PAGES];
	int nlooks;
	const int64 done = choose_pages(known, words, n, shift, looks, &nlooks);

	look_together(known, looks, nlooks);
	return done;
}

/* Looks again at a page that is known, for the list at hand (K5); EXPLAIN shows it once.  word: as above. */
void
gpuds_known_look_again(GpudsKnownRows *known, uint64 word, int shift)
{
	GpudsScanCounters *counters = gpuds_scan_counters(known->scan);
	const uint64 page_states = counters->page_states;

	page_at(known, known->places[(uint32) (word >> (16 + shift)) & (known->rows.slots - 1)] - 1)[0] = 0;
	(void) gpuds_known_learn(known, &word, 1, shift);
	counters->page_states = page_states;
}

/*
 * May so many pages of a table be known, which has so many, within so many bytes?  Only if there is room for
 * them, and no page has to be read in, more or less.
 */
static bool
may_know(const GpudsKnownRows *known, BlockNumber blocks, uint64 pages, size_t bytes)
{
	const uint32 words = Max(known->rows.words, GPUDS_STATE_WORDS / 2 + 1);
	const uint32 slots = slot_limit(known);

	return Min(blocks, pages * DEVICE_SLOTS) <= slots && pages <= page_limit(words) &&
		   blocks <= (BlockNumber) NBuffers && page_rows_bytes(slots, (uint32) pages, words) <= bytes;
}

/* The same of all its pages; and are they worth it all for a device that looks at about so many rows? */
bool
gpuds_known_may_learn_all(const GpudsKnownRows *known, BlockNumber blocks, double rows, size_t bytes)
{
	return known->usable && may_know(known, blocks, blocks, bytes) && (double) blocks * ROWS_A_PAGE <= rows;
}

/*
 * The pages that a copy of the visibility map, of whole words, does not call all-visible, among those that
 * the word with the first one's bits is about: two bits a page, the lower one set.  blocks: of the table.
 */
static inline uint64
others_of_word(const unsigned char *map, BlockNumber first, BlockNumber blocks)
{
	const uint64 all_visible = UINT64CONST(0x5555555555555555) * VISIBILITYMAP_ALL_VISIBLE;
	uint64 word;

	memcpy(&word, map + first / 4, sizeof(word));
#ifdef WORDS_BIGENDIAN
	word = pg_bswap64(word);
#endif
	word = ~word & all_visible;
	return blocks - first < MAP_WORD_BLOCKS ? word & ((UINT64CONST(1) << 2 * (blocks - first)) - 1) : word;
}

/* How many pages of a table a copy of its map does not vouch for. */
uint64
gpuds_known_count_others(const unsigned char *map, BlockNumber blocks)
{
	uint64 others = 0;

	for (BlockNumber first = 0; first < blocks; first += MAP_WORD_BLOCKS)
		others += pg_popcount64(others_of_word(map, first, blocks));
	return others;
}

/* So many pages are to be known at once: the table gets memory for them when the first one comes. */
static void
spread_pages(GpudsKnownRows *known, uint64 pages)
{
	while (known->least_slots < pages * DEVICE_SLOTS)
		known->least_slots *= 2;
	known->least_pages = Max(known->least_pages, pages);
}

/*
 * Learns of the pages that a copy of the visibility map, of whole words, does not call all-visible, if that
 * is worth while for a device that looks at about so many rows, and has room for so many bytes of what is
 * known.
 */
void
gpuds_known_learn_pages(GpudsKnownRows *known, const unsigned char *map, BlockNumber blocks, double rows,
						size_t bytes)
{
	Look looks[LOOK_PAGES];
	uint64 others;
	int n = 0;

	known->waits = false;
	if (!known->usable)
		return;
	others = gpuds_known_count_others(map, blocks);
	if (!may_know(known, blocks, Max(known->rows.npages, others), bytes))
		return;
	/* The rows may lie on few of the pages. */
	known->waits = (double) others * ROWS_A_PAGE > rows;
	if (known->waits)
		return;
	spread_pages(known, others);
	for (BlockNumber first = 0; first < blocks; first += MAP_WORD_BLOCKS)
	{
		for (uint64 word = others_of_word(map, first, blocks); word != 0; word &= word - 1)
		{
			const BlockNumber block = first + pg_rightmost_one_pos64(word) / 2;

			if (knows_page(known, block))
				continue;
			looks[n].block = block;
			looks[n++].wanted = WORTH_ROWS;
			if (n < known->at_a_time)
				continue;
			look_together(known, looks, n);
			n = 0;
		}
	}
	look_together(known, looks, n);
}

/* Ends the scan's use of states, and frees the table. */
void
gpuds_known_end(GpudsKnownRows *known)
{
	gpuds_states_count(&known->use);
	memset(&known->use, 0, sizeof(known->use));
	free_table(known->places, known->pages, known->lists);
	known->places = NULL;
	memset(&known->rows, 0, sizeof(known->rows));
	known->size = 0;
}
