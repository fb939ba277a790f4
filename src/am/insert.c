/*-------------------------------------------------------------------------
 *
 * insert.c
 *	  Index inserts, buffered in the transaction.
 *
 * A transaction's new entries are kept in backend memory and appended to the
 * journal together: before the transaction's own scans of the index, before
 * commit and prepare, before a plan that may start workers, before a utility
 * statement that may look at or replace the file, and when the buffer is full.
 * Until then no other session can want them: their rows are not committed.
 *
 * A buffer belongs to a relation file, not to an index: entries made for a file
 * that was replaced meanwhile must not go to the new one.  The index stays
 * locked until the end of the (sub)transaction, as long as it has entries in
 * a buffer, so that nobody else moves the file.
 *
 * Entries of a subtransaction that rolls back are dropped at once: from then
 * on VACUUM may give their TIDs to other rows.  Marks say which entries belong
 * to which subtransaction; they nest, so they are a stack.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/relation.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"

#include "am/am.h"
#include "journal/journal.h"
#include "mirror/mirror.h"

/* Entries a buffer holds at most: 1.5 MB. */
#define BUFFER_LIMIT 65536
#define BUFFER_START 32

/* Entries that all buffers together hold before they are all appended: 24 MB. */
#define TOTAL_LIMIT 1048576

typedef struct BufferMark
{
	SubTransactionId subid;
	int start; /* number of its first entry */
} BufferMark;

typedef struct InsertBuffer
{
	struct InsertBuffer *next;
	RelFileLocator locator;
	Oid index_oid;
	int nwords;
	int n;
	int size;
	GkEntry *entries;
	int nmarks;
	int marks_size;
	BufferMark *marks; /* strictly ascending starts, the last one is
								 * the current subtransaction's if it has any */
} InsertBuffer;

/* This transaction's buffers, last used first; in TopTransactionContext. */
static InsertBuffer *buffers = NULL;

/* Entries in all of them. */
static int64 total_buffered = 0;

/* For the rest of the transaction nothing is buffered. */
static bool append_at_once = false;

/* Counts the transactions that had buffers: tells what was remembered in which. */
static uint64 buffers_serial = 0;

/* What a statement remembers in IndexInfo.ii_AmCache, so as not to search. */
typedef struct BufferRef
{
	InsertBuffer *buffer;
	uint64 serial;
} BufferRef;

static InsertBuffer *
find_buffer(const RelFileLocator *locator)
{
	InsertBuffer **link;

	for (link = &buffers; *link; link = &(*link)->next)
	{
		InsertBuffer *buffer = *link;

		if (RelFileLocatorEquals(buffer->locator, *locator))
		{
			*link = buffer->next;
			buffer->next = buffers;
			buffers = buffer;
			return buffer;
		}
	}
	return NULL;
}

static InsertBuffer *
make_buffer(Relation index, int nwords)
{
	MemoryContext old = MemoryContextSwitchTo(TopTransactionContext);
	InsertBuffer *buffer = palloc0(sizeof(InsertBuffer));

	buffer->locator = RelationLocator(index);
	buffer->index_oid = RelationGetRelid(index);
	buffer->nwords = nwords;
	buffer->size = BUFFER_START;
	buffer->entries = palloc(buffer->size * sizeof(GkEntry));
	buffer->marks_size = 4;
	buffer->marks = palloc(buffer->marks_size * sizeof(BufferMark));
	buffer->next = buffers;
	buffers = buffer;
	MemoryContextSwitchTo(old);
	return buffer;
}

/* The buffer of an index for a statement that inserts into it. */
static InsertBuffer *
statement_buffer(Relation index, int nwords, IndexInfo *indexInfo)
{
	BufferRef *ref = indexInfo->ii_AmCache;

	if (ref && ref->serial == buffers_serial &&
		RelFileLocatorEquals(ref->buffer->locator, RelationLocator(index)))
		return ref->buffer;
	if (ref == NULL)
		ref = indexInfo->ii_AmCache = MemoryContextAlloc(indexInfo->ii_Context, sizeof(BufferRef));
	ref->buffer = find_buffer(&RelationLocator(index));
	if (ref->buffer == NULL)
		ref->buffer = make_buffer(index, nwords);
	ref->serial = buffers_serial;
	return ref->buffer;
}

/* Makes the entries that follow the current subtransaction's. */
static void
mark_current(InsertBuffer *buffer)
{
	SubTransactionId subid = GetCurrentSubTransactionId();

	if (buffer->nmarks > 0 && buffer->marks[buffer->nmarks - 1].subid == subid)
		return;
	LockRelationOid(buffer->index_oid, RowExclusiveLock);
	if (buffer->nmarks == buffer->marks_size)
	{
		buffer->marks_size *= 2;
		buffer->marks = repalloc(buffer->marks, buffer->marks_size * sizeof(BufferMark));
	}
	buffer->marks[buffer->nmarks].subid = subid;
	buffer->marks[buffer->nmarks].start = buffer->n;
	buffer->nmarks++;
}

static void
empty_buffer(InsertBuffer *buffer)
{
	total_buffered -= buffer->n;
	buffer->n = 0;
	buffer->nmarks = 0;
}

/* Gives back what an empty buffer grew to; a transaction may have many. */
static void
shrink_buffer(InsertBuffer *buffer)
{
	if (buffer->size == BUFFER_START)
		return;
	pfree(buffer->entries);
	buffer->size = BUFFER_START;
	buffer->entries = MemoryContextAlloc(TopTransactionContext, buffer->size * sizeof(GkEntry));
}

static void
append_buffer(Relation index, InsertBuffer *buffer)
{
	if (buffer->n == 0)
		return;
	gpuds_stop_point("insert-buffered-flush");
	gpuds_journal_append(index, buffer->nwords, buffer->entries, buffer->n, 0);
	empty_buffer(buffer);
}

/*
 * The transaction inserts speculatively (ON CONFLICT).  A row that loses to a
 * conflicting one is dead at once, and VACUUM may give its TID to another row
 * while we go on: its entry must be in the journal before that.
 */
void
gpuds_insert_speculative(void)
{
	append_at_once = true;
}

/*
 * aminsert.  Always returns false: the index is never unique.
 *
 * For a constraint that looks for conflicting rows of other, uncommitted
 * transactions the entry is appended at once.
 */
bool
gpuds_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid, Relation heap,
			 IndexUniqueCheck checkUnique, bool indexUnchanged, IndexInfo *indexInfo)
{
	GpudsKeyLayout layout = gpuds_index_info(index)->layout; /* encoding may look into catalogs */
	InsertBuffer *buffer;
	GkEntry entry;

	gpuds_key_encode(&layout, values, isnull, tid, &entry);
	if (append_at_once || indexInfo->ii_ExclusionOps != NULL)
	{
		gpuds_journal_append(index, layout.nwords, &entry, 1, 0);
		return false;
	}

	buffer = statement_buffer(index, layout.nwords, indexInfo);
	if (buffer->n == BUFFER_LIMIT)
		append_buffer(index, buffer);
	else if (total_buffered >= TOTAL_LIMIT)
		gpuds_insert_flush_all(false);
	if (buffer->n == buffer->size)
	{
		buffer->entries = repalloc(buffer->entries, 2 * buffer->size * sizeof(GkEntry));
		buffer->size *= 2;
	}
	mark_current(buffer);
	buffer->entries[buffer->n++] = entry;
	total_buffered++;
	return false;
}

/*
 * Appends what the transaction has buffered for the index's current file.
 * The caller has the index open and locked.
 */
void
gpuds_insert_flush(Relation index)
{
	InsertBuffer *buffer;

	if (total_buffered == 0)
		return;
	buffer = find_buffer(&RelationLocator(index));
	if (buffer)
		append_buffer(index, buffer);
}

/*
 * Appends everything the transaction has buffered.  Entries for a file that is
 * not its index's current one are kept if the replacement may still be rolled
 * back, and dropped at the end of the transaction.
 */
void
gpuds_insert_flush_all(bool final)
{
	/* Other libraries may insert when they are told of the end after us. */
	if (final)
		append_at_once = true;
	if (total_buffered == 0)
		return;
	for (InsertBuffer *buffer = buffers; buffer; buffer = buffer->next)
	{
		Relation index;

		if (buffer->n == 0)
			continue;
		/* Locked since the entries came; NULL if dropped by ourselves. */
		index = try_relation_open(buffer->index_oid, NoLock);
		if (index && RelFileLocatorEquals(RelationLocator(index), buffer->locator))
		{
			append_buffer(index, buffer);
			shrink_buffer(buffer);
		}
		else if (final)
			empty_buffer(buffer);
		if (index)
			relation_close(index, NoLock);
	}
}

/*
 * The transaction is over; its memory goes with it.
 */
void
gpuds_insert_forget(void)
{
	buffers_serial++;
	buffers = NULL;
	total_buffered = 0;
	append_at_once = false;
}

/*
 * A subtransaction's entries become its parent's.
 */
void
gpuds_insert_subcommit(SubTransactionId subid, SubTransactionId parent)
{
	if (total_buffered == 0)
		return;
	for (InsertBuffer *buffer = buffers; buffer; buffer = buffer->next)
	{
		BufferMark *last;

		if (buffer->nmarks == 0)
			continue;
		last = &buffer->marks[buffer->nmarks - 1];
		if (last->subid != subid)
			continue;
		if (buffer->nmarks > 1 && last[-1].subid == parent)
			buffer->nmarks--;
		else
			last->subid = parent;
	}
}

/*
 * A rolled-back subtransaction's entries are dropped.  Those already appended
 * are dead entries like others; VACUUM finds them in the journal.
 */
void
gpuds_insert_subabort(SubTransactionId subid)
{
	if (total_buffered == 0)
		return;
	for (InsertBuffer *buffer = buffers; buffer; buffer = buffer->next)
	{
		/* Children that were never committed go with their parent. */
		while (buffer->nmarks > 0 && buffer->marks[buffer->nmarks - 1].subid >= subid)
		{
			buffer->nmarks--;
			total_buffered -= buffer->n - buffer->marks[buffer->nmarks].start;
			buffer->n = buffer->marks[buffer->nmarks].start;
		}
	}
}
