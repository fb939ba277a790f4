/*-------------------------------------------------------------------------
 *
 * new_pages.c
 *	  New pages, and a reserve of them for VACUUM, which is not to fail where there is no space for more.
 *
 * VACUUM frees space, so it must get by without any.  A page that a buffer is made for cannot be asked
 * for in this way: if the file does not grow, the error leaves locks and pins to the end of the transaction.
 * So VACUUM takes pages into a reserve first, holding no lock, and hears of it if there are none; from then
 * on it works with these.  A page gets into the reserve from the free space map, which does not offer it to
 * others any more, or because the file is made longer by it, past the buffers.
 *
 * A reserve is a list of blocks, and nothing on disk knows of it.  Whoever takes a page out looks, under the
 * page's lock, whether it is free still: the map may have been wrong, and have offered it to another.  What
 * an error leaves behind is found by a sweep.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/freespace.h"
#include "storage/fsm_internals.h"
#include "storage/indexfsm.h"
#include "storage/lmgr.h"
#include "storage/smgr.h"

#include "journal/journal_internal.h"

/* Pages that the free space map proposes and that are looked at for one new page. */
#define MAX_CANDIDATES 8

/* Levels of the free space map's tree, as core's freespace.c has them. */
#define MAP_LEVELS (SlotsPerFSMPage >= 1626 ? 3 : 4)

/* An empty reserve.  Its memory comes from the present memory context. */
void
gpuds_reserve_init(GpudsReserve *reserve)
{
	memset(reserve, 0, sizeof(*reserve));
}

static void
add_block(GpudsReserve *reserve, BlockNumber blkno)
{
	if (reserve->n == reserve->size)
	{
		reserve->size = Max(2 * reserve->size, 64);
		reserve->blocks = reserve->blocks == NULL
							  ? MemoryContextAllocHuge(CurrentMemoryContext,
													   reserve->size * sizeof(BlockNumber))
							  : repalloc_huge(reserve->blocks, reserve->size * sizeof(BlockNumber));
	}
	reserve->blocks[reserve->n++] = blkno;
}

/* Notes the error that is being handled, and ends its handling. */
static void
note_why(GpudsReserve *reserve)
{
	ErrorData *error = CopyErrorData();

	FlushErrorState();
	strlcpy(reserve->why, error->message, sizeof(reserve->why));
	reserve->why_code = error->sqlerrcode;
	FreeErrorData(error);
}

/*
 * Makes a fork longer by a page of zeros; false: the file does not grow, and the reserve says why.
 *
 * An error is caught here without a subtransaction, which a parallel worker cannot have.  Nothing is held
 * when it is raised but the lock for extension, and what raises it is the writing of a block past the
 * buffers, which neither takes a lock nor looks for interrupts.
 */
static bool
grow(Relation index, ForkNumber fork, GpudsReserve *reserve, BlockNumber *blkno)
{
	static const GpudsIOBlock zeros;
	const bool local = RELATION_IS_LOCAL(index);
	MemoryContext context = CurrentMemoryContext;
	volatile bool done = false;

	if (!local)
		LockRelationForExtension(index, ExclusiveLock);
	Assert(InterruptHoldoffCount == 0);
	PG_TRY();
	{
		SMgrRelation file = RelationGetSmgr(index);

		if (fork == FSM_FORKNUM && !smgrexists(file, fork))
			smgrcreate(file, fork, false);
		*blkno = smgrnblocks(file, fork);
		gpuds_injection_extend(index);
		smgrextend(file, fork, *blkno, (char *) zeros.data, false);
		done = true;
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		note_why(reserve);
	}
	PG_END_TRY();
	if (!local)
		UnlockRelationForExtension(index, ExclusiveLock);
	return done;
}

/* Takes a free page from the free space map; invalid: it has none. */
static BlockNumber
take_free(Relation index)
{
	for (;;)
	{
		BlockNumber blkno = GetFreeIndexPage(index);
		Buffer buffer;
		bool is_free;

		if (blkno == InvalidBlockNumber)
			return InvalidBlockNumber;
		if (blkno == GPUDS_META_BLKNO || blkno >= RelationGetNumberOfBlocks(index))
			continue;
		CHECK_FOR_INTERRUPTS();
		buffer = ReadBuffer(index, blkno);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		is_free = gpuds_page_is_free(BufferGetPage(buffer));
		UnlockReleaseBuffer(buffer);
		if (is_free)
			return blkno;
	}
}

/* Descending: blocks are taken from the end, so a chain that is made of them ascends in the file. */
static int
compare_blocks(const void *a, const void *b)
{
	const BlockNumber x = *(const BlockNumber *) a;
	const BlockNumber y = *(const BlockNumber *) b;

	return x > y ? -1 : x < y ? 1 : 0;
}

/*
 * Puts the reserve's blocks in order, and leaves one of each.  The map may give a page twice: who found it
 * busy, because we were looking at it, has put it back.
 */
static void
put_in_order(GpudsReserve *reserve)
{
	int64 n = 0;

	qsort(reserve->blocks, reserve->n, sizeof(BlockNumber), compare_blocks);
	for (int64 i = 0; i < reserve->n; i++)
	{
		if (n == 0 || reserve->blocks[n - 1] != reserve->blocks[i])
			reserve->blocks[n++] = reserve->blocks[i];
	}
	reserve->n = n;
}

/* Adds a page to the reserve; false: there is no space. */
static bool
add_page(Relation index, GpudsReserve *reserve, bool *map_has_more)
{
	BlockNumber blkno = InvalidBlockNumber;

	if (*map_has_more)
		blkno = take_free(index);
	*map_has_more = blkno != InvalidBlockNumber;
	CHECK_FOR_INTERRUPTS();
	if (!*map_has_more && !grow(index, MAIN_FORKNUM, reserve, &blkno))
		return false;
	add_block(reserve, blkno);
	return true;
}

/*
 * Sees to it that the reserve has n pages.  False: there is no space for so many; it has those that there
 * were, and says why there are no more.  The caller holds no page lock.
 */
bool
gpuds_reserve_pages(Relation index, GpudsReserve *reserve, int64 n)
{
	bool map_has_more = true;
	bool more = true;

	while (more && reserve->n < n)
	{
		while (more && reserve->n < n)
			more = add_page(index, reserve, &map_has_more);
		if (reserve->n > 0)
			put_in_order(reserve);
	}
	return reserve->n >= n;
}

/*
 * Takes a page out of the reserve: its buffer, locked exclusively, of a page as gpuds_page_new gives it.
 * InvalidBuffer: there is none.
 *
 * May be called with pages locked.  Who holds the lock of a page that is in no chain waits for no page's, so
 * it is waited for.
 */
static Buffer
take_reserved(Relation index, GpudsReserve *reserve)
{
	while (reserve->n > 0)
	{
		Buffer buffer = ReadBuffer(index, reserve->blocks[--reserve->n]);

		LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
		if (gpuds_page_is_free(BufferGetPage(buffer)))
			return buffer;
		UnlockReleaseBuffer(buffer);
	}
	return InvalidBuffer;
}

/*
 * Finds or makes a page that belongs to no chain, if there is a reserve (not NULL) one of its pages
 * first.  Returns its buffer pinned and exclusively locked; the page is all zeros or of kind
 * GPUDS_PAGE_FREE and the caller must initialize it with a full image.  Until it is linked nothing but
 * the sweep of a later VACUUM knows of it.
 *
 * May be called with pages locked: a page found in the free space map is taken
 * only if its lock is free, and nobody can wait for us behind a new page's.
 *
 * The map is not WAL-logged: after a crash, or on a server that was a standby, it
 * may say anything.  Asking for a candidate takes it out of the map, so a wrong
 * one costs one look, ever; but the caller may hold the lock that all inserting
 * backends want, so the number of looks is limited, and then the file grows.
 */
Buffer
gpuds_page_new(Relation index, GpudsReserve *reserve)
{
	BlockNumber busy[MAX_CANDIDATES];
	int nbusy = 0;
	Buffer found = reserve ? take_reserved(index, reserve) : InvalidBuffer;

	for (int i = 0; i < MAX_CANDIDATES && found == InvalidBuffer; i++)
	{
		BlockNumber blkno = GetFreeIndexPage(index);
		Buffer buffer;

		if (blkno == InvalidBlockNumber)
			break;
		if (blkno == GPUDS_META_BLKNO || blkno >= RelationGetNumberOfBlocks(index))
			continue;

		buffer = ReadBuffer(index, blkno);
		if (!ConditionalLockBuffer(buffer))
			busy[nbusy++] = blkno;
		else if (gpuds_page_is_free(BufferGetPage(buffer)))
			found = buffer;
		else
			LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		if (found == InvalidBuffer)
			ReleaseBuffer(buffer);
	}

	/* somebody is only writing or checking them, as far as we know: the next one may look again */
	for (int i = 0; i < nbusy; i++)
		RecordFreeIndexPage(index, busy[i]);

	if (found != InvalidBuffer)
		return found;
	gpuds_injection_extend(index);
	return gpuds_extend(index);
}

/*
 * Gives the pages that are left to the free space map, and frees the reserve's memory.  The caller holds no
 * page lock.
 */
void
gpuds_reserve_release(Relation index, GpudsReserve *reserve)
{
	GpudsMapReach reach = { 0, false };
	const bool some = reserve->n > 0;

	while (reserve->n > 0)
		gpuds_record_free_page(index, reserve->blocks[--reserve->n], &reach);
	/* Without this, searches that begin at the map's top do not find them. */
	if (some)
		IndexFreeSpaceMapVacuum(index);
	if (reserve->blocks)
		pfree(reserve->blocks);
	reserve->blocks = NULL;
	reserve->size = 0;
}

/* Blocks that the map has at least if it reaches a block of the main fork. */
static BlockNumber
map_blocks(BlockNumber blkno)
{
	BlockNumber page = blkno / SlotsPerFSMPage;
	BlockNumber n = 0;

	for (int level = 0; level < MAP_LEVELS; level++)
	{
		n += page + 1;
		page /= SlotsPerFSMPage;
	}
	return n;
}

/* Makes the free space map long enough for a block; false: it does not grow. */
static bool
extend_map(Relation index, BlockNumber blkno)
{
	SMgrRelation file = RelationGetSmgr(index);
	BlockNumber have = smgrexists(file, FSM_FORKNUM) ? smgrnblocks(file, FSM_FORKNUM) : 0;
	BlockNumber last;
	GpudsReserve why;

	gpuds_reserve_init(&why);
	for (; have < map_blocks(blkno); have = last + 1)
	{
		if (!grow(index, FSM_FORKNUM, &why, &last))
			return false;
	}
	return true;
}

/*
 * Tells the free space map of a free page.  If the map would have to grow for that, and cannot, it does not
 * hear of the page, which then is lost until a sweep.  *reach, of all zeros at first, is for the next call.
 */
void
gpuds_record_free_page(Relation index, BlockNumber blkno, GpudsMapReach *reach)
{
	if (blkno >= reach->end)
	{
		if (reach->full || !extend_map(index, blkno))
		{
			reach->full = true;
			return;
		}
		reach->end = (blkno / SlotsPerFSMPage + 1) * SlotsPerFSMPage;
	}
	RecordFreeIndexPage(index, blkno);
}
