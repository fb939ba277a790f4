/*-------------------------------------------------------------------------
 *
 * visible.c
 *	  Visibility of rows by the visibility map, and by the heap where the map is not enough.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/tableam.h"
#include "access/visibilitymap.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/predicate.h"
#include "utils/spccache.h"
#include "utils/timestamp.h"

#include "journal/journal.h"
#include "kernels/core/sort.h"
#include "memtable/memtable.h"
#include "reader/reader.h"
#include "reader/visible.h"

/* Bytes of a page of the visibility map, and heap pages that it is about. */
#define MAP_PAGE_BYTES ((uint32) (BLCKSZ - MAXALIGN(SizeOfPageHeaderData)))
#define MAP_PAGE_BLOCKS (MAP_PAGE_BYTES * 4)

/* If no more than a part in so many of a table's pages is all-visible, a device may do without the map. */
#define FEW_VISIBLE 8

/* A byte of the map of four pages that are all-visible, without its other bits. */
#define ALL_VISIBLE_BITS                                                                           \
	(VISIBILITYMAP_ALL_VISIBLE | VISIBILITYMAP_ALL_VISIBLE << 2 | VISIBILITYMAP_ALL_VISIBLE << 4 | \
	 VISIBILITYMAP_ALL_VISIBLE << 6)

/* The same of a word. */
#define ALL_VISIBLE_WORD (UINT64CONST(0x0101010101010101) * ALL_VISIBLE_BITS)

/* I4: rows that are locked one by one, at most.  Core locks the table for a transaction that has some 30. */
#define MOST_LOCKED_ROWS 32

/* Rows to be looked up that there is room for at first. */
#define FIRST_ORDER 64

/* For so long after a table's map has changed under a device it is taken for one that others write to. */
#define WRITERS_MS 5000

/* The table whose map changed last under a device that counted for this session, and when. */
static struct
{
	Oid table;
	TimestampTz at;
} map_change;

/*
 * For a scan that may look at the heap; its memory is the current context's.  Counts of one key begin here as
 * well, so that there is nothing yet that only some need.
 */
void
gpuds_visible_begin(GpudsVisible *visible, IndexScanDesc scan)
{
	memset(visible, 0, offsetof(GpudsVisible, killed));
	visible->scan = scan;
	visible->context = CurrentMemoryContext;
	gpuds_known_begin(&visible->known, scan);
}

/* The scan's answer is one without rows, so for SERIALIZABLE there must be locks (I4). */
void
gpuds_visible_lock(GpudsVisible *visible)
{
	visible->locks_rows = IsolationIsSerializable();
}

static void
lock_table(GpudsVisible *visible)
{
	if (visible->locks_rows)
		PredicateLockRelation(visible->scan->heapRelation, visible->scan->xs_snapshot);
	visible->locks_rows = false;
}

/* Locks the table if so many more rows are too many to be locked one by one. */
static void
lock_if_many(GpudsVisible *visible, int64 n)
{
	visible->locked += n;
	if (visible->locked > MOST_LOCKED_ROWS)
		lock_table(visible);
}

/* To be called before the scan's barrier. */
void
gpuds_visible_before_barrier(GpudsVisible *visible)
{
	visible->counts = !RecoveryInProgress() && !GpudsSnapshotsExpire();
	visible->bulk_deletes = gpuds_journal_bulk_deletes(visible->scan->indexRelation);
}

/* Is the counter what it was before the barrier?  To be asked after the map. */
static bool
still_counts(const GpudsVisible *visible)
{
	pg_read_barrier();
	return gpuds_journal_bulk_deletes(visible->scan->indexRelation) == visible->bulk_deletes;
}

/* The map's bits for a piece of the heap; NULL: it has none. */
static const unsigned char *
map_bits(GpudsVisible *visible, uint32 number)
{
	GpudsMapPage *page = &visible->map[number % GPUDS_MAP_PAGES];

	if (BufferIsValid(page->buffer) && page->number == number)
		return page->bits;
	/* Reads the map's page and pins it, in place of the one before. */
	(void) visibilitymap_get_status(visible->scan->heapRelation, number * MAP_PAGE_BLOCKS, &page->buffer);
	if (!BufferIsValid(page->buffer))
		return NULL;
	page->number = number;
	page->bits = (const unsigned char *) PageGetContents(BufferGetPage(page->buffer));
	return page->bits;
}

/* I1 for the page of a TID: is its row visible to all? */
bool
gpuds_visible_to_all(GpudsVisible *visible, uint64 tid)
{
	uint32 block = (uint32) (tid >> 16);

	if (!visible->counts)
		return false;
	/* The entry was read before the map, the map before the counter. */
	pg_read_barrier();
	return gpuds_map_is_set(map_bits(visible, block / MAP_PAGE_BLOCKS), block % MAP_PAGE_BLOCKS) &&
		   still_counts(visible);
}

/* Which of a batch's entries does the visibility map vouch for (I1)? */
static void
mark_by_map(GpudsVisible *visible, const GpudsScanBatch *batch, bool *to_all)
{
	const GpudsEntry *entries = batch->entries;
	const int64 n = batch->n;
	const unsigned char *bits = NULL;
	uint32 first = 0;

	if (!visible->counts || !batch->from_mirror)
	{
		memset(to_all, false, n * sizeof(bool));
		return;
	}
	pg_read_barrier();
	for (int64 i = 0; i < n; i++)
	{
		const uint32 block = (uint32) ((entries[i].t & ENTRY_TID_MASK) >> 16);

		if (bits == NULL || block - first >= MAP_PAGE_BLOCKS)
		{
			first = block - block % MAP_PAGE_BLOCKS;
			bits = map_bits(visible, block / MAP_PAGE_BLOCKS);
		}
		to_all[i] = gpuds_map_is_set(bits, block - first);
	}
	if (n > 0 && !still_counts(visible))
		memset(to_all, false, n * sizeof(bool));
}

/*
 * For the entries that the scan has just been given: which rows does the snapshot see, by the visibility map,
 * or by what is known of their pages?  Looks at no page.  May lock the table (I4).
 */
void
gpuds_visible_mark(GpudsVisible *visible, const GpudsScanBatch *batch, bool *to_all)
{
	lock_if_many(visible, batch->n);
	if (visible->locks_rows)
	{
		memset(to_all, false, batch->n * sizeof(bool));
		return;
	}
	mark_by_map(visible, batch, to_all);
	if (visible->known.rows.slots == 0)
		return;
	for (int64 i = 0; i < batch->n; i++)
	{
		if (!to_all[i])
			to_all[i] = gpuds_known_row(&visible->known, batch->entries[i].t & ENTRY_TID_MASK) ==
						PAGE_ROW_SEEN;
	}
}

/* Does a map call all of the first pages of the heap all-visible? */
static bool
all_are_visible(const unsigned char *map, BlockNumber blocks)
{
	const uint32 whole = blocks / 4 / sizeof(uint64) * sizeof(uint64);

	for (uint32 i = 0; i < whole; i += sizeof(uint64))
	{
		uint64 bits;

		memcpy(&bits, map + i, sizeof(bits));
		if ((bits & ALL_VISIBLE_WORD) != ALL_VISIBLE_WORD)
			return false;
	}
	for (BlockNumber block = 4 * whole; block < blocks; block++)
	{
		if (!gpuds_map_is_set(map, block))
			return false;
	}
	return true;
}

/*
 * A copy of the visibility map as it is now, without page headers, in palloc'd memory.  *full: it calls
 * all pages of the heap all-visible.
 */
static unsigned char *
copy_map(GpudsVisible *visible, size_t *bytes, bool *full)
{
	const BlockNumber blocks = RelationGetNumberOfBlocks(visible->scan->heapRelation);
	const uint32 pages = blocks / MAP_PAGE_BLOCKS + (blocks % MAP_PAGE_BLOCKS != 0);
	unsigned char *map;

	*bytes = (size_t) pages * MAP_PAGE_BYTES;
	map = MemoryContextAllocHuge(CurrentMemoryContext, Max(*bytes, 1));
	for (uint32 i = 0; i < pages; i++)
	{
		const unsigned char *bits = map_bits(visible, i);

		CHECK_FOR_INTERRUPTS();
		if (bits)
			memcpy(map + (size_t) i * MAP_PAGE_BYTES, bits, MAP_PAGE_BYTES);
		else
			memset(map + (size_t) i * MAP_PAGE_BYTES, 0, MAP_PAGE_BYTES);
	}
	pg_read_barrier();
	visible->blocks = blocks;
	*full = all_are_visible(map, blocks);
	return map;
}

/*
 * Has the table's map changed under a device, of this scan or shortly before it?  Where it matters only if a
 * new version comes as well (I5), it will not the next time.
 */
static bool
map_changes(const GpudsVisible *visible, const GpudsCountSpec *spec)
{
	return visible->map_changed ||
		   (!spec->edges && map_change.table == RelationGetRelid(visible->scan->heapRelation) &&
			!TimestampDifferenceExceeds(map_change.at, GetCurrentTimestamp(), WRITERS_MS));
}

/*
 * Is it better to learn of all pages, and to do without a copy of the map?  Beside writers, some page that it
 * calls all-visible will soon not be so, and then all that was counted by it is lost (I2).
 */
static bool
does_without_map(const GpudsVisible *visible, const GpudsCountSpec *spec, double rows, size_t room)
{
	const uint64 few = visible->blocks / FEW_VISIBLE;

	return (map_changes(visible, spec) ||
			visible->blocks - gpuds_known_count_others(spec->map, visible->blocks) <= few) &&
		   gpuds_known_may_learn_all(&visible->known, visible->blocks, rows, room);
}

/*
 * Tells a device that is to look at about so many rows what there is to know of them: makes a copy of the
 * map, which the caller frees, and learns what it can of the pages that the map does not vouch for.  Locks
 * the table before (I4).
 */
void
gpuds_visible_tell_device(GpudsVisible *visible, double rows, GpudsCountSpec *spec)
{
	GpudsKnownRows *known = &visible->known;
	size_t room;

	lock_table(visible);
	spec->map = copy_map(visible, &spec->map_bytes, &spec->full);
	memset(&spec->rows, 0, sizeof(spec->rows));
	visible->no_map = false;
	if (spec->full || spec->map_bytes + gpuds_count_side_bytes(spec) > GPUDS_COUNT_MAP_BYTES)
		return;
	room = GPUDS_COUNT_MAP_BYTES - spec->map_bytes - gpuds_count_side_bytes(spec);
	visible->no_map = does_without_map(visible, spec, rows, room);
	if (visible->no_map)
		memset((unsigned char *) spec->map, 0, spec->map_bytes);
	gpuds_known_begin_list(known);
	gpuds_known_learn_pages(known, spec->map, visible->blocks, rows, room);
	if (gpuds_count_rows_bytes(&known->rows) <= room)
		spec->rows = known->rows;
}

/* Is a part of the map still all-visible where a copy of it says so? */
static bool
part_holds(const unsigned char *bits, const unsigned char *copy)
{
	StaticAssertStmt(MAP_PAGE_BYTES % sizeof(uint64) == 0, "pages of the map are compared by words");
	for (uint32 i = 0; i < MAP_PAGE_BYTES; i += sizeof(uint64))
	{
		uint64 was;
		uint64 is;

		memcpy(&was, copy + i, sizeof(was));
		memcpy(&is, bits + i, sizeof(is));
		if ((was & ~is & ALL_VISIBLE_WORD) != 0)
			return false;
	}
	return true;
}

/* Is a map still all-visible where a copy of it says so? */
static bool
all_parts_hold(GpudsVisible *visible, const unsigned char *map, size_t bytes)
{
	static const unsigned char nothing[MAP_PAGE_BYTES] = { 0 };

	for (uint32 i = 0; i < bytes / MAP_PAGE_BYTES; i++)
	{
		const unsigned char *bits = map_bits(visible, i);

		if (!part_holds(bits ? bits : nothing, map + (size_t) i * MAP_PAGE_BYTES))
			return false;
	}
	return true;
}

/*
 * I2 for a copy of the map that was made after the barrier, and for all entries that were read since;
 * if it is full, I3.  If it does not hold, the next copy may be done without.
 */
bool
gpuds_visible_map_holds(GpudsVisible *visible, const unsigned char *map, size_t bytes, bool full)
{
	bool holds;

	if (visible->no_map)
		return true;
	pg_read_barrier();
	holds = all_parts_hold(visible, map, bytes) &&
			(!full || RelationGetNumberOfBlocks(visible->scan->heapRelation) == visible->blocks) &&
			still_counts(visible);
	if (!holds)
	{
		visible->map_changed = true;
		map_change.table = RelationGetRelid(visible->scan->heapRelation);
		map_change.at = GetCurrentTimestamp();
	}
	return holds;
}

/* I5 for such a copy of the map. */
bool
gpuds_visible_version_holds(const GpudsVisible *visible)
{
	return visible->no_map || still_counts(visible);
}

/* The slot of rows that are looked up, of the table's own kind. */
TupleTableSlot *
gpuds_visible_slot(GpudsVisible *visible)
{
	if (visible->slot == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(visible->context);

		visible->slot = table_slot_create(visible->scan->heapRelation, NULL);
		MemoryContextSwitchTo(old);
	}
	return visible->slot;
}

/*
 * Does the heap have a row at a TID that the scan's snapshot sees?  It is in visible->slot then, until the
 * next one.  *dead: it is dead for everybody.  The visit is not counted in core's statistics: core counts
 * those that its own nodes make.
 *
 * An MVCC snapshot sees one row of a chain at most, so nobody asks for another.
 */
bool
gpuds_visible_in_heap(GpudsVisible *visible, uint64 tid, bool *dead)
{
	IndexScanDesc scan = visible->scan;
	ItemPointerData at;
	bool again = false;
	bool seen;

	CHECK_FOR_INTERRUPTS();
	ItemPointerSet(&at, (BlockNumber) (tid >> 16), (OffsetNumber) (tid & 0xFFFF));
	*dead = false;
	seen = table_index_fetch_tuple(scan->xs_heapfetch, &at, scan->xs_snapshot, gpuds_visible_slot(visible),
								   &again, dead);
	visible->fetches++;
	return seen;
}

/* The same for a node or a function that takes the place of core's index scan, which counts its rows. */
static bool
fetch_row(GpudsVisible *visible, uint64 tid, bool *dead)
{
	const bool seen = gpuds_visible_in_heap(visible, tid, dead);

	if (seen)
		pgstat_count_heap_fetch(visible->scan->indexRelation);
	return seen;
}

/*
 * Has pages read ahead for rows that will be looked up in the order of n words, whose high 48 bits are
 * TIDs shifted by shift: the i-th is next.
 */
static void
read_ahead(GpudsVisible *visible, const uint64 *words, int64 n, int64 i, int shift)
{
	Relation heap = visible->scan->heapRelation;
	GpudsReadAhead *ahead = &visible->ahead;
	const int block_shift = 16 + shift;

	if (!ahead->begun)
	{
		ahead->begun = true;
		ahead->distance = get_tablespace_io_concurrency(heap->rd_rel->reltablespace);
		ahead->next = ahead->last = i;
		ahead->pages = 0;
	}
	/* Some rows may have been passed over, and their pages. */
	for (; ahead->last < i; ahead->last++)
	{
		if (ahead->pages > 0 && words[ahead->last + 1] >> block_shift != words[ahead->last] >> block_shift)
			ahead->pages--;
	}
	for (ahead->next = Max(ahead->next, i + 1); ahead->pages < ahead->distance && ahead->next < n;
		 ahead->next++)
	{
		if (words[ahead->next] >> block_shift == words[ahead->next - 1] >> block_shift)
			continue;
		PrefetchBuffer(heap, MAIN_FORKNUM, (BlockNumber) (words[ahead->next] >> block_shift));
		ahead->pages++;
	}
}

/*
 * What is known of a row by its page's state: the i-th of n words, ascending, whose high 48 bits are TIDs
 * shifted by shift.  Rows of a list are asked about in order; some may be passed over.
 */
static PageRow
find_known(GpudsVisible *visible, const uint64 *words, int64 n, int64 i, int shift)
{
	GpudsKnownRows *known = &visible->known;

	if (!known->usable || visible->locks_rows)
		return PAGE_ROW_UNKNOWN;
	if (i >= visible->learned)
	{
		if (i > visible->learned)
			gpuds_known_pass_over(known);
		visible->learned = i + gpuds_known_learn(known, words + i, n - i, shift);
	}
	return gpuds_known_row(known, words[i] >> shift);
}

/*
 * K5: a row is dead by what was known of its page before its entry was read; looks at the page again.  word:
 * its TID, shifted by shift.
 */
static PageRow
look_again(GpudsVisible *visible, uint64 word, int shift)
{
	gpuds_known_look_again(&visible->known, word, shift);
	return gpuds_known_row(&visible->known, word >> shift);
}

/* The same as find_known for a row whose entry is to be killed if the row is dead for everybody. */
static PageRow
find_known_or_dead(GpudsVisible *visible, const uint64 *words, int64 n, int64 i, int shift)
{
	const PageRow row = find_known(visible, words, n, i, shift);

	if (row == PAGE_ROW_DEAD && !gpuds_known_is_of_list(&visible->known, words[i] >> shift))
		return look_again(visible, words[i], shift);
	return row;
}

/* What is known of the row at a place in the order; looks again only if its entry can be killed. */
static PageRow
row_in_order(GpudsVisible *visible, int64 place)
{
	if (visible->kill_mark.memtable == 0)
		return find_known(visible, visible->order, visible->norder, place, GPUDS_PIECE_BITS);
	return find_known_or_dead(visible, visible->order, visible->norder, place, GPUDS_PIECE_BITS);
}

/* A list of rows begins whose entries have been read. */
static void
begin_list(GpudsVisible *visible)
{
	visible->learned = 0;
	visible->ahead.begun = false;
	gpuds_known_begin_list(&visible->known);
}

/* Does the state of a row's page say whether it is seen?  *dead: it is dead for everybody. */
bool
gpuds_visible_is_known(GpudsVisible *visible, uint64 tid, bool *seen, bool *dead)
{
	PageRow row;

	begin_list(visible);
	row = find_known_or_dead(visible, &tid, 1, 0, 0);
	*seen = row == PAGE_ROW_SEEN;
	*dead = row == PAGE_ROW_DEAD;
	return row != PAGE_ROW_UNKNOWN;
}

static void
sort_words(uint64 *words, int64 n)
{
	uint64 *scratch;

	if (n < 2)
		return;
	scratch = MemoryContextAllocHuge(CurrentMemoryContext, n * sizeof(uint64));
	sort_u64(words, scratch, n);
	pfree(scratch);
}

/* Hands on what is known of dead entries. */
static void
hand_on_killed(GpudsVisible *visible)
{
	if (visible->nkilled > 0)
		gpuds_memtable_kill(visible->kill_mark.memtable, visible->kill_mark.stamp, visible->killed,
							visible->nkilled);
	visible->nkilled = 0;
}

/* The row of an entry of the piece is dead for everybody. */
void
gpuds_visible_note_dead(GpudsVisible *visible, const GpudsEntry *entry)
{
	if (visible->kill_mark.memtable == 0)
		return;
	if (visible->nkilled == GPUDS_MAX_KILLED)
		hand_on_killed(visible);
	visible->killed[visible->nkilled++] = *entry;
}

void
gpuds_visible_begin_piece(GpudsVisible *visible)
{
	visible->norder = 0;
	visible->has_mark = false;
	visible->kill_mark.memtable = 0;
}

/*
 * The piece has entries of this batch.  Its dead entries are killed only if all its batches have the same
 * kill mark, and not if the transaction began in recovery.
 */
void
gpuds_visible_add_to_piece(GpudsVisible *visible, const GpudsScanBatch *batch)
{
	const GpudsKillMark *mark = &batch->kill_mark;

	if (!visible->has_mark)
		visible->kill_mark = *mark;
	else if (mark->memtable != visible->kill_mark.memtable || mark->stamp != visible->kill_mark.stamp)
		visible->kill_mark.memtable = 0;
	visible->has_mark = true;
	if (visible->scan->xactStartedInRecovery)
		visible->kill_mark.memtable = 0;
}

/* The row of the piece's entry of a number is to be looked up. */
void
gpuds_visible_order(GpudsVisible *visible, uint64 tid, int64 number)
{
	if (visible->norder == visible->order_size)
	{
		visible->order_size = Max(FIRST_ORDER, 2 * visible->order_size);
		if (visible->order)
			visible->order = repalloc(visible->order, visible->order_size * sizeof(uint64));
		else
			visible->order = MemoryContextAlloc(visible->context, visible->order_size * sizeof(uint64));
	}
	visible->order[visible->norder++] = tid << GPUDS_PIECE_BITS | (uint64) number;
}

/* Puts the rows that are to be looked up in the order of the heap, so that each page is visited once. */
void
gpuds_visible_sort_order(GpudsVisible *visible)
{
	sort_words(visible->order, visible->norder);
	begin_list(visible);
}

/* Has pages read ahead for rows that are looked up in order, the one at a place next. */
void
gpuds_visible_read_ahead(GpudsVisible *visible, int64 place)
{
	read_ahead(visible, visible->order, visible->norder, place, GPUDS_PIECE_BITS);
}

/*
 * As gpuds_visible_in_heap for an entry at a place in the order, which is killed if its row is dead.  Counts
 * the row as core's index scan does.
 */
bool
gpuds_visible_look_up(GpudsVisible *visible, int64 place, const GpudsEntry *entry)
{
	bool dead;
	bool seen;

	gpuds_visible_read_ahead(visible, place);
	seen = fetch_row(visible, entry->t & ENTRY_TID_MASK, &dead);
	if (dead)
		gpuds_visible_note_dead(visible, entry);
	return seen;
}

/* The same without the row: it is visited only if the state of its page does not say whether it is seen. */
bool
gpuds_visible_sees(GpudsVisible *visible, int64 place, const GpudsEntry *entry)
{
	switch (row_in_order(visible, place))
	{
		case PAGE_ROW_SEEN:
			return true;
		case PAGE_ROW_DEAD:
			gpuds_visible_note_dead(visible, entry);
			return false;
		case PAGE_ROW_UNSEEN:
			return false;
		default:
			return gpuds_visible_look_up(visible, place, entry);
	}
}

/* Ends a piece: hands on its dead entries, and lets the row that was looked up last go. */
void
gpuds_visible_end_piece(GpudsVisible *visible)
{
	hand_on_killed(visible);
	gpuds_visible_forget_row(visible);
}

/*
 * How many of the rows at n TIDs does the scan's snapshot see?  Sorts the TIDs, so that each page is
 * looked at or visited once.
 */
int64
gpuds_visible_count_in_heap(GpudsVisible *visible, uint64 *tids, int64 n)
{
	int64 seen = 0;

	sort_words(tids, n);
	begin_list(visible);
	for (int64 i = 0; i < n; i++)
	{
		const PageRow row = find_known(visible, tids, n, i, 0);
		bool dead;

		if (row == PAGE_ROW_UNKNOWN)
		{
			read_ahead(visible, tids, n, i, 0);
			seen += fetch_row(visible, tids[i], &dead);
		}
		else
			seen += row == PAGE_ROW_SEEN;
	}
	gpuds_visible_forget_row(visible);
	return seen;
}

/* Lets the map's pages go. */
void
gpuds_visible_reset(GpudsVisible *visible)
{
	for (int i = 0; i < GPUDS_MAP_PAGES; i++)
	{
		if (BufferIsValid(visible->map[i].buffer))
			ReleaseBuffer(visible->map[i].buffer);
		visible->map[i].buffer = InvalidBuffer;
	}
}

/* Frees what *visible has, pins included, but neither itself nor the scan. */
void
gpuds_visible_end(GpudsVisible *visible)
{
	gpuds_visible_reset(visible);
	gpuds_known_end(&visible->known);
	if (visible->order)
		pfree(visible->order);
	if (visible->slot)
		ExecDropSingleTupleTableSlot(visible->slot);
}
