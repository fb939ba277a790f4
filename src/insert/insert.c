/*-------------------------------------------------------------------------
 *
 * insert.c
 *	  Index inserts, collected in the statement.
 *
 * A statement's new entries are kept in backend memory and appended to the journal
 * together.  They live in a scope.  A scope surrounds the run of a plan that changes
 * tables, and COPY FROM (hooks.c).  Nothing outlives its scope:
 *
 *	- If the scope ends normally, everything in it is appended.
 *	- If it ends by an error, what is left in it is dropped.  The (sub)transaction that
 *	  made the rows ends with the same error.  That is not taken on trust: if the
 *	  (sub)transaction wants to commit nevertheless, it is refused.
 *
 * Scopes nest as statements do.  aminsert collects only in the innermost one, and only in
 * the subtransaction that opened it.  So all entries of a scope belong to one
 * subtransaction, and none of them can be rolled back unless an error leaves the scope.
 * A utility statement sets up a barrier: nothing is collected while it runs, whatever it
 * calls.  An insert without a scope (logical replication, other libraries) appends at
 * once.
 *
 * A buffer belongs to a relation file, not to an index.  It holds a lock on the index, so
 * that no other session moves the file.  If our own session moved it, the append looks up
 * which index has the file now.  Entries are dropped only if the scope ends and no index
 * has it.  A build empties the buffers of its file, because it has read the rows itself.
 *
 * A row inserted speculatively (ON CONFLICT) may lose.  It is dead then, and after VACUUM
 * its TID may belong to another row: an entry appended after that would be wrong.  So
 * such a row is undecided until the next row comes or the entries are wanted.  Until then
 * the scope holds a pin on the row's page of the table, taken before the row can lose.
 * Without a cleanup lock nobody prunes the page, VACUUM frees only items that were pruned,
 * and so no other row gets the TID.  Then the row itself tells what to do: if it was
 * killed, drop the entries; if it was confirmed, they are like others; if neither has
 * happened yet, append them at once.  Every row is looked at when it comes, whatever the
 * plan is, so it does not matter which node inserts speculatively.  Rows that follow each
 * other are mostly on one page, which stays pinned, as in COPY.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"

#include "index/index.h"
#include "insert/insert.h"
#include "journal/journal.h"
#include "side/side.h"

/* Entries a buffer holds at most: 1.5 MB. */
#define MAX_BUFFER_ENTRIES 65536
#define FIRST_BUFFER_ENTRIES 32

/* Entries that all buffers together have room for at most: 24 MB. */
#define MAX_TOTAL_ENTRIES 1048576

struct GpudsInsertBuffer
{
	GpudsInsertBuffer *next;  /* of the scope */
	GpudsInsertBuffer *chain; /* of the hash bucket */
	GpudsInsertBuffer *also_undecided;
	GpudsInsertScope *scope;
	RelFileLocator locator;
	bool temp;                     /* of a temporary index: its locator may be a permanent one's, too */
	bool undecided;                /* the last entry is of the scope's undecided row */
	const GpudsInsertCheck *check; /* of a unique index; NULL: the index is none */
	int64 first_command;           /* of a unique index's rows: the least; -1: they may be seen by any */
	Oid index_oid;
	int nwords;
	int n;
	int nagain; /* the first ones, which have been appended and are to be checked again */
	int size;
	GpudsEntry *entries;
};

/* Innermost scope. */
static GpudsInsertScope *scopes = NULL;

/* Names a scope as long as the backend lives. */
static uint64 scope_serial = 0;

/* All buffers by their file; of those of one file the innermost scope's comes first. */
#define NBUCKETS 1024
static GpudsInsertBuffer *buckets[NBUCKETS];

/* Entries in all buffers, and for how many there is room. */
static int64 total_entries = 0;
static int64 total_size = 0;

/* Searches of the unique indexes whose files are in a bucket, by this session's scans. */
static uint64 searches[NBUCKETS];

/* A check searches: no search appends anything. */
static bool held = false;

/* The outermost subtransaction whose entries an error has dropped; it must roll back. */
static SubTransactionId dropped_in = InvalidSubTransactionId;

static uint32
bucket_number(const RelFileLocator *locator)
{
	return murmurhash32(locator->relNumber) % NBUCKETS;
}

static GpudsInsertBuffer **
bucket_of(const RelFileLocator *locator)
{
	return &buckets[bucket_number(locator)];
}

static bool
has_file(Relation index, const GpudsInsertBuffer *buffer)
{
	return RelFileLocatorEquals(RelationLocator(index), buffer->locator) &&
		   RelationUsesLocalBuffers(index) == buffer->temp;
}

/* Takes or releases a buffer's lock for its scope, whatever resource owner is current. */
static void
scope_lock(GpudsInsertScope *scope, Oid index_oid, bool take)
{
	ResourceOwner old = CurrentResourceOwner;

	CurrentResourceOwner = scope->owner;
	if (take)
		LockRelationOid(index_oid, RowExclusiveLock);
	else
		UnlockRelationOid(index_oid, RowExclusiveLock);
	CurrentResourceOwner = old;
}

static GpudsInsertBuffer *
make_buffer(GpudsInsertScope *scope, Relation index, int nwords)
{
	GpudsInsertBuffer **bucket = bucket_of(&RelationLocator(index));
	GpudsInsertBuffer *buffer;

	scope_lock(scope, RelationGetRelid(index), true);
	if (scope->context == NULL)
		scope->context = AllocSetContextCreate(TopTransactionContext, "gpuds inserts",
											   ALLOCSET_DEFAULT_SIZES);
	buffer = MemoryContextAllocZero(scope->context, sizeof(GpudsInsertBuffer));
	buffer->scope = scope;
	buffer->locator = RelationLocator(index);
	buffer->temp = RelationUsesLocalBuffers(index);
	buffer->index_oid = RelationGetRelid(index);
	buffer->nwords = nwords;
	buffer->first_command = PG_INT64_MAX;
	if (scope->last_buffer)
		scope->last_buffer->next = buffer;
	else
		scope->buffers = buffer;
	scope->last_buffer = buffer;
	buffer->chain = *bucket;
	*bucket = buffer;
	return buffer;
}

/* What a statement's inserts into an index remember from one row to the next. */
GpudsInsertCache *
gpuds_insert_cache(IndexInfo *indexInfo)
{
	if (indexInfo->ii_AmCache == NULL)
		indexInfo->ii_AmCache = MemoryContextAllocZero(indexInfo->ii_Context, sizeof(GpudsInsertCache));
	return indexInfo->ii_AmCache;
}

/* The buffer that an index has in the innermost scope; NULL: it has none. */
static GpudsInsertBuffer *
find_buffer(Relation index, const GpudsInsertCache *cache)
{
	GpudsInsertBuffer *buffer;

	if (cache->serial == scopes->serial && has_file(index, cache->buffer))
		return cache->buffer;

	/* those of other scopes that have the same file come behind ours */
	buffer = *bucket_of(&RelationLocator(index));
	while (buffer && !has_file(index, buffer))
		buffer = buffer->chain;
	return buffer && buffer->scope == scopes ? buffer : NULL;
}

/* The buffer of an index in the innermost scope. */
static GpudsInsertBuffer *
scope_buffer(Relation index, int nwords, IndexInfo *indexInfo)
{
	GpudsInsertCache *cache = gpuds_insert_cache(indexInfo);
	GpudsInsertBuffer *buffer = find_buffer(index, cache);

	if (buffer == NULL)
		buffer = make_buffer(scopes, index, nwords);
	cache->buffer = buffer;
	cache->serial = scopes->serial;
	return buffer;
}

/*
 * The index of our database that has a buffer's file; InvalidOid if there is none.
 */
static Oid
find_file(const GpudsInsertBuffer *buffer)
{
	Oid tablespace = buffer->locator.spcOid;
	Oid found = InvalidOid;
	Relation classes = table_open(RelationRelationId, AccessShareLock);
	SysScanDesc scan;
	ScanKeyData key[2];
	HeapTuple tuple;

	/* as pg_class has it */
	if (tablespace == MyDatabaseTableSpace)
		tablespace = InvalidOid;
	ScanKeyInit(&key[0], Anum_pg_class_reltablespace, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(tablespace));
	ScanKeyInit(&key[1], Anum_pg_class_relfilenode, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(buffer->locator.relNumber));
	scan = systable_beginscan(classes, ClassTblspcRelfilenodeIndexId, true, NULL, 2, key);
	while (!OidIsValid(found) && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_class class = (Form_pg_class) GETSTRUCT(tuple);

		if (class->relkind != RELKIND_INDEX)
			continue;
		if (buffer->temp ? isTempNamespace(class->relnamespace)
						 : class->relpersistence != RELPERSISTENCE_TEMP)
			found = class->oid;
	}
	systable_endscan(scan);
	table_close(classes, AccessShareLock);
	return found;
}

/*
 * Opens the index that has a buffer's file, to be closed without giving up its
 * lock; NULL if there is none.
 */
static Relation
open_file(const GpudsInsertBuffer *buffer)
{
	Relation index = try_relation_open(buffer->index_oid, NoLock); /* the buffer has locked it */
	Oid oid;

	if (index && has_file(index, buffer))
		return index;
	if (index)
		relation_close(index, NoLock);

	/* our own session gave the file to another index, by whatever way */
	while (OidIsValid(oid = find_file(buffer)))
	{
		CHECK_FOR_INTERRUPTS();
		index = try_relation_open(oid, RowExclusiveLock);
		if (index && has_file(index, buffer))
			return index;
		if (index)
			relation_close(index, RowExclusiveLock);
	}
	return NULL;
}

/*
 * Looks for serializable transactions that have read the index before entries of a scope were appended.  One
 * that reads it later sees them.  If that fails, so must the scope, whoever catches the error.
 */
static void
check_conflicts(GpudsInsertScope *scope, Relation index, const GpudsEntry *entries, int n)
{
	const bool unchecked = scope->unchecked;

	scope->unchecked = true;
	gpuds_index_check_keys(index, &gpuds_index_info(index)->layout, entries, n);
	scope->unchecked = unchecked;
}

static void
empty_buffer(GpudsInsertBuffer *buffer)
{
	total_entries -= buffer->n;
	buffer->n = buffer->nagain = 0;
}

/*
 * Has n entries of a unique index's buffer checked, from one on, which may call functions of index
 * expressions: as the user whose statement it is.  Returns as the check does.
 */
static int
check_entries(Relation index, const GpudsInsertBuffer *buffer, int first, int *nagain, bool decide,
			  void **state)
{
	const bool outer = gpuds_insert_hold(true);
	int left;
	Oid user;
	int security;

	GetUserIdAndSecContext(&user, &security);
	PG_TRY();
	{
		SetUserIdAndSecContext(buffer->scope->user, buffer->scope->security);
		left = buffer->check->check(index, buffer->entries + first, buffer->n - first, nagain, decide, state);
	}
	PG_FINALLY();
	{
		SetUserIdAndSecContext(user, security);
		(void) gpuds_insert_hold(outer);
	}
	PG_END_TRY();
	return left;
}

/*
 * Appends entries of a buffer from one on, whose index has the buffer's file; keep: so many before them, and
 * perhaps themselves, stay in the buffer.  state: of their check, which ends; NULL: there was none.  What is
 * in the journal is not to be appended again, whatever fails then.
 */
static void
append_from(Relation index, GpudsInsertBuffer *buffer, int first, int keep, void *state)
{
	const int n = buffer->n - first;

	if (n > 0)
	{
		gpuds_injection_point("insert-buffered-flush");
		gpuds_journal_append(index, buffer->nwords, buffer->entries + first, n);
	}
	total_entries -= buffer->n - keep;
	buffer->n = keep;
	if (state)
		buffer->check->end(state);
	if (n > 0)
		check_conflicts(buffer->scope, index, buffer->entries + first, n);
}

/*
 * Appends a unique index's entries in a subtransaction of their scope's, which may roll back.  Then another
 * row that it removed has its key again, or the row itself that it removed.  So they are checked again later,
 * and nothing is appended that need not be.
 */
static void
append_within(Relation index, GpudsInsertBuffer *buffer, bool decide)
{
	const int first = buffer->nagain;
	void *state = NULL;
	int nagain = 0;

	if (!decide || buffer->n == first)
		return;
	(void) check_entries(index, buffer, first, &nagain, true, &state);
	buffer->nagain = buffer->n;
	append_from(index, buffer, first, buffer->n, state);
}

/*
 * index has the buffer's file.  Entries of a unique index stay in the buffer where another row has the key,
 * unless that is to be decided now.
 */
static void
append_to(Relation index, GpudsInsertBuffer *buffer, bool decide)
{
	int nagain = buffer->nagain;
	int left = 0;
	void *state = NULL;

	if (buffer->n == 0)
		return;
	if (buffer->check && buffer->scope->subid != GetCurrentSubTransactionId())
	{
		append_within(index, buffer, decide);
		return;
	}
	if (buffer->check)
		left = check_entries(index, buffer, 0, &nagain, decide, &state);

	/* behind those that stay are the ones that have been appended, and passed */
	append_from(index, buffer, left + buffer->nagain - nagain, left, state);
	buffer->nagain = nagain;
}

/*
 * append_to the index that has the file.  If none has: the entries stay as long as
 * the file may come back, by rollback of a subtransaction; last says that there
 * is none any more.
 */
static void
append_buffer(GpudsInsertBuffer *buffer, bool decide, bool last)
{
	Relation index;

	if (buffer->n == 0)
		return;
	index = open_file(buffer);
	if (index)
	{
		append_to(index, buffer, decide);
		relation_close(index, NoLock);
	}
	else if (last)
		empty_buffer(buffer);
}

/* Buffers of a scope that may be appended together; append_scope appends a full one before it goes on. */
typedef struct BufferGroup
{
	GpudsInsertBuffer *buffer[GPUDS_GROUP_INDEXES];
	Relation index[GPUDS_GROUP_INDEXES];
	int n;
} BufferGroup;

/*
 * Appends what is in a group by one record, if it is little.  False: nothing has been appended.
 * What is in the journal is not to be appended again, whatever fails then.
 */
static bool
append_together(const BufferGroup *group)
{
	GpudsAppend appends[GPUDS_GROUP_INDEXES];

	for (int i = 0; i < group->n; i++)
	{
		const GpudsInsertBuffer *buffer = group->buffer[i];

		appends[i] = (GpudsAppend){
			.index = group->index[i], .entries = buffer->entries, .n = buffer->n, .nwords = buffer->nwords
		};
	}
	gpuds_injection_point("insert-buffered-flush");
	if (!gpuds_journal_append_group(appends, group->n))
		return false;
	for (int i = 0; i < group->n; i++)
		empty_buffer(group->buffer[i]);
	for (int i = 0; i < group->n; i++)
		check_conflicts(group->buffer[i]->scope, group->index[i], appends[i].entries, appends[i].n);
	return true;
}

/* Appends what is in a group, together or not.  last: as for append_buffer. */
static void
append_group(BufferGroup *group, bool last)
{
	bool together = group->n > 1;
	int nopen = 0;

	for (; together && nopen < group->n; nopen++)
	{
		GpudsInsertBuffer *buffer = group->buffer[nopen];

		group->index[nopen] = buffer->n <= GPUDS_GROUP_ENTRIES ? open_file(buffer) : NULL;
		together = group->index[nopen] != NULL;
		if (!together)
			break;
	}
	together = together && append_together(group);
	while (nopen > 0)
		relation_close(group->index[--nopen], NoLock);
	for (int i = 0; i < group->n && !together; i++)
		append_buffer(group->buffer[i], true, last);
	group->n = 0;
}

/* Appends what is in a scope that has no undecided row, that of unique indexes first, which may fail. */
static void
append_scope(GpudsInsertScope *scope, bool decide, bool last)
{
	BufferGroup group;

	for (GpudsInsertBuffer *buffer = scope->buffers; buffer; buffer = buffer->next)
	{
		if (buffer->check)
			append_buffer(buffer, decide, last);
	}
	group.n = 0;
	for (GpudsInsertBuffer *buffer = scope->buffers; buffer; buffer = buffer->next)
	{
		if (buffer->n == 0 || buffer->check)
			continue;
		group.buffer[group.n++] = buffer;
		if (group.n == GPUDS_GROUP_INDEXES)
			append_group(&group, last);
	}
	append_group(&group, last);
}

static void
release_page(GpudsInsertScope *scope)
{
	ResourceOwner old = CurrentResourceOwner;

	if (!BufferIsValid(scope->page))
		return;
	CurrentResourceOwner = scope->owner;
	ReleaseBuffer(scope->page);
	CurrentResourceOwner = old;
	scope->page = InvalidBuffer;
	scope->row_heap = InvalidOid;
}

/* Pins the page of a table's row for the scope, instead of the one that it has. */
static void
hold_page(GpudsInsertScope *scope, Relation heap, BlockNumber block)
{
	ResourceOwner old = CurrentResourceOwner;

	if (BufferIsValid(scope->page) && scope->page_block == block &&
		scope->page_heap == RelationGetRelid(heap) &&
		RelFileLocatorEquals(scope->page_locator, RelationLocator(heap)))
		return;
	release_page(scope);
	CurrentResourceOwner = scope->owner;
	scope->page = ReadBuffer(heap, block);
	CurrentResourceOwner = old;
	scope->page_heap = RelationGetRelid(heap);
	scope->page_block = block;
	scope->page_locator = RelationLocator(heap);

	/* a process that was pruning it is through after this, and none can begin to */
	LockBuffer(scope->page, BUFFER_LOCK_SHARE);
	LockBuffer(scope->page, BUFFER_LOCK_UNLOCK);
}

/*
 * The header of the scope's row, on the page that it holds.  Needs no lock: only we
 * change what we look at, and while we have the pin nobody moves it.
 */
static HeapTupleHeader
row_header(const GpudsInsertScope *scope)
{
	Page page = BufferGetPage(scope->page);
	ItemId item = PageGetItemId(page, ItemPointerGetOffsetNumber(&scope->row));

	if (!ItemIdIsNormal(item))
		elog(ERROR, "row (%u,%u) is gone while its index entries are inserted",
			 ItemPointerGetBlockNumber(&scope->row), ItemPointerGetOffsetNumber(&scope->row));
	return (HeapTupleHeader) PageGetItem(page, item);
}

/*
 * After it the scope has no undecided row.  If it fails the row is as undecided as before, but for
 * buffers that have been emptied: somebody may catch the error and go on.
 */
static void
decide_row(GpudsInsertScope *scope)
{
	GpudsInsertBuffer *buffer;
	HeapTupleHeader row;
	bool killed;
	bool speculative;

	if (scope->undecided == NULL)
		return;
	row = row_header(scope);
	killed = !TransactionIdIsValid(HeapTupleHeaderGetRawXmin(row));
	speculative = HeapTupleHeaderIsSpeculative(row);
	while ((buffer = scope->undecided) != NULL)
	{
		if (killed && buffer->n > buffer->nagain)
		{
			buffer->n--;
			total_entries--;
		}
		else if (speculative)
		{
			append_buffer(buffer, true, false);
			if (buffer->n > buffer->nagain)
				elog(ERROR, "index %u has lost its file while a row is inserted", buffer->index_oid);
		}
		scope->undecided = buffer->also_undecided;
		buffer->undecided = false;
	}
	scope->row_heap = InvalidOid;
}

/*
 * Is the row that is being inserted, which is the scope's from now on, a speculative
 * one?
 */
static bool
is_speculative(GpudsInsertScope *scope, Relation heap, ItemPointer tid)
{
	/* not seen for another index just now */
	if (scope->row_heap != RelationGetRelid(heap) || !ItemPointerEquals(&scope->row, tid))
	{
		hold_page(scope, heap, ItemPointerGetBlockNumber(tid));
		scope->row_heap = RelationGetRelid(heap);
		scope->row = *tid;
		scope->speculative = HeapTupleHeaderIsSpeculative(row_header(scope));
	}
	return scope->speculative;
}

/* Appends what all buffers have and need not keep, and gives its memory back. */
static void
flush_all(bool decide)
{
	if (held)
		return;
	for (GpudsInsertScope *scope = scopes; scope && total_size > 0; scope = scope->outer)
	{
		decide_row(scope);
		release_page(scope);
		append_scope(scope, decide, false);
		for (GpudsInsertBuffer *buffer = scope->buffers; buffer; buffer = buffer->next)
		{
			if (buffer->n > 0 || buffer->entries == NULL)
				continue;
			pfree(buffer->entries);
			buffer->entries = NULL;
			total_size -= buffer->size;
			buffer->size = 0;
		}
	}
}

/*
 * Makes room for an entry; index has the buffer's file.  The limits are of what need not be kept: what a
 * unique index's buffer has to keep until the statement ends makes it grow.
 */
static void
ensure_capacity(GpudsInsertBuffer *buffer, Relation index)
{
	int64 size = Max(2 * (int64) buffer->size, FIRST_BUFFER_ENTRIES);

	if (size > MAX_BUFFER_ENTRIES)
	{
		append_to(index, buffer, false);
		if (buffer->n <= buffer->size / 2)
			return;
	}
	else if (total_size + size - buffer->size > MAX_TOTAL_ENTRIES)
	{
		append_to(index, buffer, false);
		flush_all(false);
		size = Max(2 * (int64) buffer->n, FIRST_BUFFER_ENTRIES);
	}
	if (size > INT_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("too many rows of one statement have keys of other rows in unique index \"%s\"",
						RelationGetRelationName(index)),
				 errhint("Change the rows by several statements.")));
	if (buffer->entries == NULL)
		buffer->entries = MemoryContextAllocHuge(buffer->scope->context, size * sizeof(GpudsEntry));
	else
		buffer->entries = repalloc_huge(buffer->entries, size * sizeof(GpudsEntry));
	total_size += size - buffer->size;
	buffer->size = size;
}

/* Puts a row's side values into the index's store, if that has the row's page (S1 in side/side.h). */
static void
put_side_values(Relation index, const GpudsKeyLayout *layout, const Datum *values, const bool *isnull,
				ItemPointer tid)
{
	uint8 side[GPUDS_SIDE_BYTES];
	GpudsSideRef ref;
	GpudsFile file;

	if (!gpuds_side_is_used() || !gpuds_side_file(index, &file))
		return;
	gpuds_key_side_encode(layout, values, isnull, side);
	gpuds_side_enter();
	if (gpuds_side_find(&file, true, &ref))
		(void) gpuds_side_put(&ref, gpuds_tid_bits(tid), side);
	gpuds_side_leave();
}

/* The layout of an index's keys, and the entry of a row.  Raises what encoding a key may raise. */
void
gpuds_insert_encode(Relation index, const Datum *values, const bool *isnull, ItemPointer tid,
					GpudsKeyLayout *layout, GpudsEntry *entry)
{
	GpudsKeyScratch hashes = { 0 };
	MemoryContext old;

	*layout = gpuds_index_info(index)->layout; /* encoding may look into catalogs */
	old = gpuds_key_scratch_enter(&hashes, layout);
	gpuds_key_encode(layout, values, isnull, tid, entry);
	MemoryContextSwitchTo(old);
	gpuds_key_scratch_end(&hashes);
}

/* Appends the entry of a row, which gpuds_insert_encode has made, at once. */
void
gpuds_insert_now(Relation index, const GpudsKeyLayout *layout, const Datum *values, const bool *isnull,
				 const GpudsEntry *entry)
{
	ItemPointerData tid;

	gpuds_entry_tid(entry, &tid);
	if (layout->side_bytes > 0)
		put_side_values(index, layout, values, isnull, &tid);
	gpuds_journal_append(index, layout->nwords, entry, 1);
	gpuds_index_check_keys(index, layout, entry, 1);
}

/*
 * Are a row's entries collected?
 *
 * For a constraint that looks for conflicting rows of other, uncommitted
 * transactions the entry is appended at once.  For tables of other access methods,
 * too: what is said above about speculative rows is heap's.
 */
bool
gpuds_insert_collects(Relation heap, const IndexInfo *indexInfo)
{
	return scopes != NULL && !scopes->barred && scopes->subid == GetCurrentSubTransactionId() &&
		   indexInfo->ii_ExclusionOps == NULL && heap->rd_tableam == GetHeapamTableAmRoutine();
}

/*
 * Is a row, whose entry could be collected, the first one of its statement for a unique index, or since this
 * session has searched the index last, so that nothing is collected?  To be called once for each row.  A WITH
 * query of the statement may have collected rows by an IndexInfo of its own.
 */
bool
gpuds_insert_is_first(Relation index, IndexInfo *indexInfo)
{
	GpudsInsertCache *cache = gpuds_insert_cache(indexInfo);
	const uint64 now = searches[bucket_number(&RelationLocator(index))] + 1;
	const GpudsInsertBuffer *buffer;

	if (cache->searches == now)
		return false;
	cache->searches = now;
	buffer = find_buffer(index, cache);
	return buffer == NULL || buffer->n == buffer->nagain;
}

/* Searches append nothing (true) until they may again (false).  Returns what held before. */
bool
gpuds_insert_hold(bool hold)
{
	const bool before = held;

	held = hold;
	return before;
}

/* The command that a row is of, which is on the scope's page; -1: others may see it, too. */
static int64
command_of(const GpudsInsertScope *scope)
{
	const HeapTupleHeader row = row_header(scope);

	if (HeapTupleHeaderXminFrozen(row) || (row->t_infomask & HEAP_COMBOCID))
		return -1;
	return HeapTupleHeaderGetRawCommandId(row);
}

/*
 * Inserts the entry of a row.  Always returns false, as aminsert does if a key need not be unique.  check:
 * what an entry that is collected passes before it is appended; NULL: nothing.
 */
bool
gpuds_insert(Relation index, const Datum *values, const bool *isnull, ItemPointer tid, Relation heap,
			 IndexInfo *indexInfo, const GpudsInsertCheck *check)
{
	GpudsInsertScope *scope = scopes;
	GpudsInsertBuffer *buffer;
	GpudsKeyLayout layout;
	GpudsEntry entry;

	gpuds_insert_encode(index, values, isnull, tid, &layout, &entry);
	if (!gpuds_insert_collects(heap, indexInfo))
	{
		gpuds_insert_now(index, &layout, values, isnull, &entry);
		return false;
	}

	if (layout.side_bytes > 0)
		put_side_values(index, &layout, values, isnull, tid);
	buffer = scope_buffer(index, layout.nwords, indexInfo);
	if (scope->undecided && (buffer->undecided || scope->row_heap != RelationGetRelid(heap) ||
							 !ItemPointerEquals(&scope->row, tid)))
		decide_row(scope);
	if (buffer->n == buffer->size)
		ensure_capacity(buffer, index);
	if (is_speculative(scope, heap, tid))
	{
		buffer->undecided = true;
		buffer->also_undecided = scope->undecided;
		scope->undecided = buffer;
	}
	buffer->check = check;
	if (check)
		buffer->first_command = Min(buffer->first_command, command_of(scope));
	buffer->entries[buffer->n++] = entry;
	total_entries++;
	return false;
}

/* Is there no row of a buffer's that a snapshot sees?  Only asked of unique indexes, which save a check. */
static bool
sees_none(Snapshot snapshot, const GpudsInsertBuffer *buffer)
{
	return buffer->check && snapshot && snapshot->snapshot_type == SNAPSHOT_MVCC &&
		   snapshot->curcid <= buffer->first_command;
}

/* Appends what is collected for the index's file in all scopes, and a snapshot may see (NULL: all). */
static void
flush_file(Relation index, Snapshot snapshot)
{
	if (total_entries == 0 || held)
		return;
	for (GpudsInsertBuffer *buffer = *bucket_of(&RelationLocator(index)); buffer; buffer = buffer->chain)
	{
		if (!has_file(index, buffer) || sees_none(snapshot, buffer))
			continue;
		if (buffer->undecided)
			decide_row(buffer->scope);
		append_to(index, buffer, true);
	}
}

/*
 * Appends what is collected for the index's file, in all scopes.  The caller has the index open and locked.
 * Raises an error if a key is not unique.
 */
void
gpuds_insert_flush(Relation index)
{
	flush_file(index, NULL);
}

/*
 * The same before a search of the index with a snapshot, which is not to miss what it sees of it.
 */
void
gpuds_insert_before_search(Relation index, Snapshot snapshot)
{
	if (index->rd_index->indisunique && !held)
		searches[bucket_number(&RelationLocator(index))]++;
	flush_file(index, snapshot);
}

/*
 * Appends everything, of all scopes, and gives its memory back.  Raises an error if a key is not unique.
 */
void
gpuds_insert_flush_all(void)
{
	flush_all(true);
}

/*
 * The index is about to be built in its file, from the rows that there are: what is
 * collected for the file is of no more use, or of rows that are gone.
 */
void
gpuds_insert_discard(Relation index)
{
	for (GpudsInsertBuffer *buffer = *bucket_of(&RelationLocator(index)); buffer; buffer = buffer->chain)
	{
		GpudsInsertBuffer **link = &buffer->scope->undecided;

		if (!has_file(index, buffer))
			continue;
		while (*link && *link != buffer)
			link = &(*link)->also_undecided;
		if (*link)
			*link = buffer->also_undecided;
		buffer->undecided = false;
		empty_buffer(buffer);
	}
}

/*
 * Opens a scope; a barrier is one in which, and in whose inner ones, nothing is
 * collected.  scope is the caller's memory.  The caller calls gpuds_insert_end
 * however what it is opened for ends.
 */
void
gpuds_insert_begin(GpudsInsertScope *scope, bool barrier)
{
	memset(scope, 0, sizeof(*scope));
	scope->outer = scopes;
	scope->barred = barrier || (scopes && scopes->barred);
	scope->serial = ++scope_serial;
	scope->subid = GetCurrentSubTransactionId();
	scope->owner = CurrentResourceOwner;
	GetUserIdAndSecContext(&scope->user, &scope->security);
	scopes = scope;
}

/*
 * What the innermost scope was opened for has ended normally: appends what is in
 * it and releases its locks.
 */
void
gpuds_insert_append(GpudsInsertScope *scope)
{
	Assert(scopes == scope);

	decide_row(scope);
	release_page(scope);
	append_scope(scope, true, true);
	if (scope->unchecked)
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access due to read/write dependencies among transactions"),
				 errdetail("A conflict of rows of this statement was found while it called a function."),
				 errhint("The transaction might succeed if retried.")));
	for (GpudsInsertBuffer *buffer = scope->buffers; buffer; buffer = buffer->next)
		scope_lock(scope, buffer->index_oid, false);
}

/*
 * Closes the innermost scope.  What is left in it is dropped: an error came before
 * the end of gpuds_insert_append.  Locks and pins are then those of the transaction's
 * cleanup.  Raises no error.
 */
void
gpuds_insert_end(GpudsInsertScope *scope)
{
	bool dropped = false;

	Assert(scopes == scope);

	for (GpudsInsertBuffer *buffer = scope->buffers; buffer; buffer = buffer->next)
	{
		GpudsInsertBuffer **link = bucket_of(&buffer->locator);

		while (*link != buffer)
			link = &(*link)->chain;
		*link = buffer->chain;
		dropped |= buffer->n > 0;
		total_entries -= buffer->n;
		total_size -= buffer->size;
	}
	if (scope->context)
		MemoryContextDelete(scope->context);
	scopes = scope->outer;

	if (dropped && (dropped_in == InvalidSubTransactionId || scope->subid < dropped_in))
		dropped_in = scope->subid;
}

/*
 * A subtransaction, or with TopSubTransactionId the transaction, is about to commit.
 * Raises an error if entries of its rows are not in the journal, which takes somebody
 * who catches errors and goes on as if nothing had happened.
 */
void
gpuds_insert_before_commit(SubTransactionId subid)
{
	if (dropped_in != InvalidSubTransactionId && dropped_in >= subid)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				 errmsg("cannot commit rows of a statement that failed"),
				 errdetail("Their index entries were dropped with the statement."),
				 errhint("Roll the transaction back, or the subtransaction that the statement was in.")));
	if (subid != TopSubTransactionId)
		return;
	for (GpudsInsertScope *scope = scopes; scope; scope = scope->outer)
	{
		if (scope->buffers)
			elog(ERROR, "transaction ends within a statement that inserts");
	}
}

/*
 * A subtransaction has rolled back, or with TopSubTransactionId the transaction is
 * over.
 */
void
gpuds_insert_after_end(SubTransactionId subid)
{
	if (dropped_in >= subid)
		dropped_in = InvalidSubTransactionId;
	if (subid != TopSubTransactionId)
		return;

	/* scopes that are left: the process ends without going back through their callers */
	for (GpudsInsertScope *scope = scopes; scope; scope = scope->outer)
	{
		scope->context = NULL;
		scope->buffers = scope->last_buffer = NULL;
		scope->undecided = NULL;
		scope->page = InvalidBuffer;
	}
	if (total_size > 0)
		memset(buckets, 0, sizeof(buckets));
	total_entries = total_size = 0;
}
