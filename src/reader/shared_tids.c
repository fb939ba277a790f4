/*-------------------------------------------------------------------------
 *
 * shared_tids.c
 *	  The TIDs of one scan, shared by the participants of a parallel plan (shared_tids.h).
 *
 * All TIDs that may be given are numbered, those in memory first.  A chunk is a range of numbers, cut
 * by a counter without regard to pages.  Then both of its ends move on to the next page by one and the
 * same rule, so chunks meet.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"
#include "storage/condition_variable.h"
#include "storage/dsm.h"
#include "storage/sharedfileset.h"
#include "storage/spin.h"
#include "utils/wait_event.h"

#include "key/set.h"
#include "reader/shared_tids.h"

/*
 * TIDs of a chunk.  Each participant gets some chunks of what is left, so that all are through at about
 * the same time.
 */
#define LEAST_CHUNK_TIDS 64
#define MOST_CHUNK_TIDS 4096
#define CHUNKS_OF_PARTICIPANT 4

/* TIDs that a chunk's end looks ahead, at most, to find the next page. */
#define MOST_OF_PAGE MaxHeapTuplesPerPage

/* Memory that a TID of a piece takes: room for it that was doubled (tids.c), and the copy that is shared. */
#define BYTES_OF_TID (3 * sizeof(uint64))

typedef enum ShareStage
{
	SHARE_NEW,    /* nobody has asked the index */
	SHARE_ASKING, /* somebody does */
	SHARE_ASKED   /* all TIDs are there */
} ShareStage;

struct GpudsSharedTids
{
	int participants; /* that are planned */
	dsm_handle segment;
	SharedFileSet files;
	uint32 round; /* of rescans; names the file */
	ConditionVariable changed;
	slock_t mutex; /* protects what follows */
	ShareStage stage;
	bool recheck;
	dsa_pointer list; /* the first piece; invalid: there is none */
	int64 listed;     /* TIDs in it */
	int64 filed;      /* TIDs in the file; 0 until it is complete */
	int64 next;       /* TID to give */
};

/* A range of the TIDs' numbers, and where they are. */
typedef struct Range
{
	dsa_pointer list; /* invalid: in the file */
	int64 begin;      /* in the list, or the file */
	int64 end;
	int64 n; /* of the list, or the file */
} Range;

/* Shared memory that gpuds_shared_tids_create wants. */
Size
gpuds_shared_tids_size(void)
{
	return sizeof(GpudsSharedTids);
}

static void
begin_round(GpudsSharedTids *shared)
{
	shared->round++;
	shared->stage = SHARE_NEW;
	shared->recheck = false;
	shared->list = InvalidDsaPointer;
	shared->listed = shared->filed = shared->next = 0;
}

/*
 * In the leader, before workers start: the scan's TIDs will be shared.  Without a segment there is
 * nobody to share them with.
 */
void
gpuds_shared_tids_create(GpudsTidShare *share, const ParallelContext *context, void *memory)
{
	GpudsSharedTids *shared = memory;

	share->shared = NULL;
	if (context->seg == NULL)
		return;
	share->shared = shared;
	share->context = CurrentMemoryContext;
	shared->participants = context->nworkers + 1;
	shared->segment = dsm_segment_handle(context->seg);
	SharedFileSetInit(&shared->files, context->seg);
	shared->round = 0;
	ConditionVariableInit(&shared->changed);
	SpinLockInit(&shared->mutex);
	begin_round(shared);
}

/* In a worker. */
void
gpuds_shared_tids_attach(GpudsTidShare *share, void *shared)
{
	share->shared = shared;
	share->context = CurrentMemoryContext;
	SharedFileSetAttach(&share->shared->files, dsm_find_mapping(share->shared->segment));
}

static void
file_name(const GpudsSharedTids *shared, char *name)
{
	snprintf(name, MAXPGPATH, "tids.%u", shared->round);
}

/* In the leader, when all workers have ended, and before others start: the scan begins anew. */
void
gpuds_shared_tids_renew(GpudsTidShare *share, dsa_area *area)
{
	GpudsSharedTids *shared = share->shared;
	char name[MAXPGPATH];

	if (shared == NULL)
		return;
	if (shared->filed > 0)
	{
		file_name(shared, name);
		BufFileDeleteFileSet(&shared->files.fs, name, true);
	}
	if (DsaPointerIsValid(shared->list))
		dsa_free(area, shared->list);
	begin_round(shared);
}

/* Lets go what this process has of the TIDs; to be called before the scan begins anew, and at its end. */
void
gpuds_shared_tids_leave(GpudsTidShare *share)
{
	if (share->file)
		BufFileClose(share->file);
	share->file = NULL;
	if (share->read)
		pfree(share->read);
	share->read = NULL;
}

/* How many TIDs a piece may have: together, the participants may use as much memory as one by one. */
int64
gpuds_shared_tids_most(const GpudsTidShare *share)
{
	return (int64) share->shared->participants * work_mem * 1024 / (int64) BYTES_OF_TID;
}

/* Takes a range of the TIDs that may be given; false: there are none. */
static bool
take(GpudsSharedTids *shared, Range *range)
{
	const int64 given = shared->listed + shared->filed;
	const int64 size = (given - shared->next) / ((int64) shared->participants * CHUNKS_OF_PARTICIPANT);
	const bool listed = shared->next < shared->listed;
	const int64 before = listed ? 0 : shared->listed;

	if (shared->next >= given)
		return false;
	range->list = listed ? shared->list : InvalidDsaPointer;
	range->n = listed ? shared->listed : shared->filed;
	range->begin = shared->next - before;
	range->end = Min(range->begin + Min(Max(size, LEAST_CHUNK_TIDS), MOST_CHUNK_TIDS), range->n);
	shared->next = range->end + before;
	return true;
}

/* What to do next; false: wait for the participant that asks the index. */
static bool
find_step(GpudsSharedTids *shared, GpudsShareStep *step, Range *range, bool *recheck)
{
	bool known = true;

	SpinLockAcquire(&shared->mutex);
	*recheck = shared->recheck;
	if (take(shared, range))
		*step = GPUDS_SHARE_CHUNK;
	else if (shared->stage == SHARE_NEW)
	{
		shared->stage = SHARE_ASKING;
		*step = GPUDS_SHARE_ASK;
	}
	else if (shared->stage == SHARE_ASKED)
		*step = GPUDS_SHARE_END;
	else
		known = false;
	SpinLockRelease(&shared->mutex);
	return known;
}

static inline bool
is_same_page(uint64 a, uint64 b)
{
	return a >> 16 == b >> 16;
}

/*
 * Where a chunk ends, or the next one begins, if it is cut before one of n TIDs: before the first one
 * from there on that is of another page than its predecessor.  With more TIDs of one page than a page
 * has, which no heap gives, it ends somewhere.
 */
static int64
cut_at_page(const uint64 *tids, int64 at, int64 n)
{
	const int64 most = Min(at + MOST_OF_PAGE, n);

	while (at > 0 && at < most && is_same_page(tids[at - 1], tids[at]))
		at++;
	return at;
}

static void
chunk_of_list(dsa_area *area, const Range *range, GpudsTidChunk *chunk)
{
	const uint64 *tids = dsa_get_address(area, range->list);
	const int64 begin = cut_at_page(tids, range->begin, range->n);

	chunk->tids = tids + begin;
	chunk->n = cut_at_page(tids, range->end, range->n) - begin;
}

/* Reads TIDs from the file, from one of a number on. */
static void
read_tids(GpudsTidShare *share, int64 first, int64 n)
{
	GpudsSharedTids *shared = share->shared;
	MemoryContext old = MemoryContextSwitchTo(share->context);
	char name[MAXPGPATH];

	if (share->file == NULL)
	{
		file_name(shared, name);
		share->file = BufFileOpenFileSet(&shared->files.fs, name, O_RDONLY, false);
	}
	if (share->read == NULL)
		share->read = palloc((1 + MOST_CHUNK_TIDS + MOST_OF_PAGE) * sizeof(uint64));
	if (BufFileSeek(share->file, 0, (off_t) (first * sizeof(uint64)), SEEK_SET) != 0)
		ereport(ERROR, (errcode_for_file_access(), errmsg("could not seek in temporary file: %m")));
	gpuds_buffile_read(share->file, share->read, n * sizeof(uint64));
	MemoryContextSwitchTo(old);
}

static void
chunk_of_file(GpudsTidShare *share, const Range *range, GpudsTidChunk *chunk)
{
	/* with the one before, and those that the end may move over */
	const int64 first = Max(range->begin - 1, 0);
	const int64 n = Min(range->end + MOST_OF_PAGE, range->n) - first;
	int64 begin;
	int64 end;

	read_tids(share, first, n);
	begin = cut_at_page(share->read, range->begin - first, n);
	end = cut_at_page(share->read, range->end - first, n);
	chunk->tids = share->read + begin;
	/* It may have the end of one piece and the beginning of the next. */
	chunk->n = gpuds_sort_unique_words(share->read + begin, end - begin);
}

/* Gets the next chunk, or says what else there is to do.  Waits while another process asks the index. */
GpudsShareStep
gpuds_shared_tids_next(GpudsTidShare *share, dsa_area *area, GpudsTidChunk *chunk)
{
	GpudsSharedTids *shared = share->shared;
	GpudsShareStep step;
	Range range;

	do
	{
		while (!find_step(shared, &step, &range, &chunk->recheck))
			ConditionVariableSleep(&shared->changed, GpudsWaitEvent("GpudsSharedTids"));
		ConditionVariableCancelSleep();
		if (step != GPUDS_SHARE_CHUNK)
			break;
		if (DsaPointerIsValid(range.list))
			chunk_of_list(area, &range, chunk);
		else
			chunk_of_file(share, &range, chunk);
	} while (chunk->n == 0);
	return step;
}

/* Puts the first piece where all find it. */
static void
add_list(GpudsSharedTids *shared, dsa_area *area, const GpudsTidList *piece)
{
	const Size size = piece->n * sizeof(uint64);
	const dsa_pointer list = dsa_allocate_extended(area, size, DSA_ALLOC_HUGE);

	memcpy(dsa_get_address(area, list), piece->tids, size);
	SpinLockAcquire(&shared->mutex);
	shared->recheck = piece->scan->xs_recheck;
	shared->list = list;
	shared->listed = piece->n;
	SpinLockRelease(&shared->mutex);
	ConditionVariableBroadcast(&shared->changed);
}

static void
add_to_file(GpudsTidShare *share, const GpudsTidList *piece)
{
	MemoryContext old = MemoryContextSwitchTo(share->context);
	char name[MAXPGPATH];

	if (share->file == NULL)
	{
		file_name(share->shared, name);
		share->file = BufFileCreateFileSet(&share->shared->files.fs, name);
	}
	BufFileWrite(share->file, piece->tids, piece->n * sizeof(uint64));
	MemoryContextSwitchTo(old);
}

/* In the process that asks the index: adds a piece of TIDs, one at least. */
void
gpuds_shared_tids_add(GpudsTidShare *share, dsa_area *area, const GpudsTidList *piece)
{
	if (!DsaPointerIsValid(share->shared->list))
		add_list(share->shared, area, piece);
	else
		add_to_file(share, piece);
}

/* There: all pieces have been added. */
void
gpuds_shared_tids_added(GpudsTidShare *share)
{
	GpudsSharedTids *shared = share->shared;
	int64 filed = 0;

	if (share->file)
	{
		BufFileExportFileSet(share->file);
		filed = BufFileSize(share->file) / (int64) sizeof(uint64);
		BufFileClose(share->file);
		share->file = NULL;
	}
	SpinLockAcquire(&shared->mutex);
	shared->filed = filed;
	shared->stage = SHARE_ASKED;
	SpinLockRelease(&shared->mutex);
	ConditionVariableBroadcast(&shared->changed);
}
