/*-------------------------------------------------------------------------
 *
 * unique_batch.c
 *	  The check of a statement's rows in one batch, before their entries are appended.
 *
 * A statement's entries are collected (insert/insert.c).  Before they are appended, other rows of their keys
 * are looked for among them, and in the index, by one scan for all keys:
 *
 *	  U6	An entry is appended only if no other row that is alive or in progress had its key under the lock,
 *			whoever made it; or if its own row is not alive any more.
 *
 *			Rows of the batch itself, of which none has an entry yet, are compared with each other: the first
 *			one of a key that is alive may pass, the others may not.  What has an entry is found by the scan
 *			(U1).  What has none yet, of this session or of another one, is checked later, under the lock, and
 *			finds this entry (U1, U3).
 *
 *	  U7	What is not appended stays in the statement's memory, and is checked again.  When the statement
 *			ends or the index is searched, it must pass, or there is an error.
 *
 *			So what another row of the statement removes or changes before it ends is no conflict, and nothing
 *			is committed unchecked: insert.c drops entries only with the (sub)transaction of their rows, and a
 *			check that fails has removed none.
 *
 *			What passes in a subtransaction of the rows' own is checked again, in theirs: if the inner one
 *			rolls back, rows that it removed are alive.  Nothing that a check in their own rests on is rolled
 *			back without the rows.
 *
 *	  U8	Before the statement ends, what is in progress is not waited for.  When it ends, all that is found
 *			is waited for without the locks, and then all begins anew (U2).
 *
 * Rows are looked at as U4 says.  A row of the batch is read from the table, where it is the last version
 * that its TID leads to: a HOT update changes no key.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/relscan.h"
#include "access/table.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "index/index.h"
#include "kernels/core/sort.h"
#include "reader/reader.h"
#include "unique/unique.h"

/* Entries of the index that are asked for at once. */
#define MAX_FOUND 4096

/* Transactions that are waited for before all begins anew, at most. */
#define MAX_WAITS 64

/* Entries of dead rows that are handed on at once. */
#define MAX_DEAD 64

/* What it takes to look at rows of the table. */
typedef struct RowReader
{
	IndexFetchTableData *fetch;
	TupleTableSlot *slot;
	GpudsRowKey key; /* of the row in the slot */
} RowReader;

typedef struct Batch
{
	MemoryContext context; /* of this */
	Relation heap;
	Relation index;
	GpudsKeyLayout layout;
	GpudsKeyProbe probe;
	GpudsKeyLocks locks;
	GpudsEntry *entries; /* of new rows; insert.c's */
	int n;
	bool decide;
	bool *stays; /* of entries: it does not pass */
	int nstay;

	/* keys that are to be unique, with the numbers of their entries in place of TIDs, in order */
	GpudsEntry *keys;
	int nkeys;
	GpudsEntry *probes; /* each key once */
	int nprobes;

	/* to look at rows; not begun before there is one to look at */
	bool reads;
	GpudsUniqueKey key;
	RowReader own;   /* of new rows */
	RowReader found; /* of others */
	SnapshotData dirty;

	/* entries of the scan's batch whose rows are dead for everybody */
	GpudsEntry dead[MAX_DEAD];
	int ndead;

	GpudsUniqueWait waits[MAX_WAITS];
	int nwaits;
} Batch;

static GpudsEntry
code_of(const Batch *batch, const GpudsEntry *entry)
{
	const GpudsEntry *rest = &batch->probe.rest;

	return (GpudsEntry){ entry->w0 & ~rest->w0, entry->w1 & ~rest->w1, entry->t & ~rest->t };
}

/* Compares the codes of two keys. */
static int
compare(const Batch *batch, const GpudsEntry *a, const GpudsEntry *b)
{
	const GpudsEntry x = code_of(batch, a);
	const GpudsEntry y = code_of(batch, b);

	return entry_less(&x, &y) ? -1 : !entry_equal(&x, &y);
}

/* The number of the entry that a key of the batch is of. */
static int
number_of(const GpudsEntry *key)
{
	return (int) (key->t & ENTRY_TID_MASK);
}

/* Sets the keys that are to be unique, and the probes for them. */
static void
sort_keys(Batch *batch)
{
	const bool nulls_distinct = !batch->index->rd_index->indnullsnotdistinct;

	batch->keys = palloc_extended(batch->n * sizeof(GpudsEntry), MCXT_ALLOC_HUGE);
	batch->probes = palloc_extended(batch->n * sizeof(GpudsEntry), MCXT_ALLOC_HUGE);
	for (int i = 0; i < batch->n; i++)
	{
		const GpudsEntry *entry = &batch->entries[i];

		if (nulls_distinct && gpuds_key_has_null(&batch->layout, entry))
			continue;
		batch->keys[batch->nkeys] = code_of(batch, entry);
		batch->keys[batch->nkeys++].t |= i;
	}
	sort_entries(batch->keys, batch->probes, batch->nkeys);
	for (int i = 0; i < batch->nkeys; i++)
	{
		if (i == 0 || compare(batch, &batch->keys[i - 1], &batch->keys[i]) != 0)
			batch->probes[batch->nprobes++] = code_of(batch, &batch->keys[i]);
	}
}

static int
compare_locks(const void *a, const void *b)
{
	const BlockNumber x = *(const BlockNumber *) a;
	const BlockNumber y = *(const BlockNumber *) b;

	return (x > y) - (x < y);
}

/* Chooses the locks on the keys; on all of the index's if there are many. */
static void
choose_locks(Batch *batch)
{
	GpudsKeyLocks *locks = &batch->locks;
	int n = 0;

	if (batch->nprobes > GPUDS_MAX_KEY_LOCKS)
		return;
	for (int i = 0; i < batch->nprobes; i++)
		locks->lock[i] = gpuds_key_lock_of(&batch->layout, &batch->probes[i]);
	qsort(locks->lock, batch->nprobes, sizeof(BlockNumber), compare_locks);
	for (int i = 0; i < batch->nprobes; i++)
	{
		if (i == 0 || locks->lock[i] != locks->lock[n - 1])
			locks->lock[n++] = locks->lock[i];
	}
	locks->n = n;
}

/* Begins with a batch in a memory context of its own, which is the current one from here on. */
static Batch *
begin(Relation index, GpudsEntry *entries, int n, bool decide)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpuds unique batch",
												  ALLOCSET_DEFAULT_SIZES);
	Oid types[GPUDS_KEY_MAX_COLUMNS];
	Batch *batch;

	MemoryContextSwitchTo(context);
	batch = palloc0(sizeof(Batch));
	batch->context = context;
	batch->heap = table_open(index->rd_index->indrelid, AccessShareLock);
	batch->index = index;
	batch->layout = gpuds_index_info(index)->layout;
	batch->entries = entries;
	batch->n = n;
	batch->decide = decide;
	for (int i = 0; i < batch->layout.nkeys; i++)
		types[i] = batch->layout.column[i].type;
	gpuds_key_probe_init(&batch->probe, &batch->layout, batch->layout.nkeys, types);
	if (index->rd_index->indnullsnotdistinct)
		batch->probe.words = false;
	batch->stays = palloc(n * sizeof(bool));
	InitDirtySnapshot(batch->dirty);
	return batch;
}

static void
begin_reader(RowReader *reader, const Batch *batch)
{
	reader->fetch = GpudsIndexFetchBegin(batch->heap);
	reader->slot = table_slot_create(batch->heap, NULL);
	gpuds_row_key_begin(&reader->key, batch->index);
}

static void
end_reader(RowReader *reader)
{
	gpuds_row_key_end(&reader->key);
	ExecDropSingleTupleTableSlot(reader->slot);
	table_index_fetch_end(reader->fetch);
}

static void
begin_reading(Batch *batch)
{
	if (batch->reads)
		return;
	gpuds_unique_key(batch->index, &batch->key);
	begin_reader(&batch->own, batch);
	begin_reader(&batch->found, batch);
	batch->reads = true;
}

/* Reads the row that an entry leads to, and its key.  False: the snapshot sees none that has one. */
static bool
read_row(RowReader *reader, const GpudsEntry *entry, Snapshot snapshot, bool *dead)
{
	ItemPointerData tid;
	bool again = false;

	gpuds_entry_tid(entry, &tid);
	return table_index_fetch_tuple(reader->fetch, &tid, snapshot, reader->slot, &again, dead) &&
		   gpuds_row_key_of(&reader->key, reader->slot);
}

/* Reads a new row, if it is alive. */
static bool
read_own(Batch *batch, int number)
{
	return read_row(&batch->own, &batch->entries[number], SnapshotSelf, NULL);
}

static void
let_stay(Batch *batch, int number)
{
	if (!batch->stays[number])
		batch->nstay++;
	batch->stays[number] = true;
}

/* Of n new rows whose keys have the same code, lets those stay whose key another one has that came before. */
static void
compare_new(Batch *batch, const GpudsEntry *keys, int n, GpudsKnownKeys *known)
{
	begin_reading(batch);
	for (int i = 0; i < n; i++)
	{
		const int number = number_of(&keys[i]);

		CHECK_FOR_INTERRUPTS();
		if (!read_own(batch, number))
			continue;
		if (gpuds_known_keys_have(known, &batch->key, batch->index, &batch->own.key))
			let_stay(batch, number);
		else
			gpuds_known_keys_add(known, &batch->key, batch->index, &batch->own.key);
	}
	gpuds_known_keys_forget(known);
}

/* Compares the batch's rows with each other. */
static void
compare_all_new(Batch *batch)
{
	GpudsKnownKeys known = { NULL, NIL };
	int end;

	if (batch->nprobes == batch->nkeys)
		return;
	gpuds_known_keys_begin(&known);
	for (int i = 0; i < batch->nkeys; i = end)
	{
		for (end = i + 1; end < batch->nkeys; end++)
		{
			if (compare(batch, &batch->keys[i], &batch->keys[end]) != 0)
				break;
		}
		if (end > i + 1)
			compare_new(batch, &batch->keys[i], end - i, &known);
	}
	MemoryContextDelete(known.context);
}

/* The batch waits for a transaction, unless it does already. */
static void
add_wait(Batch *batch, GpudsUniqueWait wait)
{
	for (int i = 0; i < batch->nwaits; i++)
	{
		if (batch->waits[i].xid == wait.xid && batch->waits[i].token == wait.token)
			return;
	}
	if (batch->nwaits < MAX_WAITS)
		batch->waits[batch->nwaits++] = wait;
}

/* What a row that the reader of others has read means for a new one, whose key has the same code. */
static void
judge(Batch *batch, int number)
{
	ItemPointerData tid;

	if (batch->stays[number] || !read_own(batch, number) ||
		!gpuds_unique_same(&batch->key, batch->index, batch->own.key.values, batch->own.key.isnull,
						   batch->found.key.values, batch->found.key.isnull))
		return;
	gpuds_entry_tid(&batch->entries[number], &tid);
	if (batch->decide && (TransactionIdIsValid(batch->dirty.xmin) || TransactionIdIsValid(batch->dirty.xmax)))
		add_wait(batch, gpuds_unique_in_progress(&batch->dirty, &tid));
	else
		let_stay(batch, number);
}

static void
hand_on_dead(Batch *batch, IndexScanDesc scan)
{
	gpuds_scan_kill(scan, batch->dead, batch->ndead);
	batch->ndead = 0;
}

/* Looks at the row of an entry that the index has; n new rows have keys of the same code. */
static void
look_at(Batch *batch, IndexScanDesc scan, const GpudsEntry *entry, const GpudsEntry *keys, int n)
{
	bool dead = false;

	begin_reading(batch);
	if (!read_row(&batch->found, entry, &batch->dirty, &dead))
	{
		if (dead)
			batch->dead[batch->ndead++] = *entry;
		if (batch->ndead == MAX_DEAD)
			hand_on_dead(batch, scan);
		return;
	}
	for (int i = 0; i < n; i++)
	{
		const int number = number_of(&keys[i]);

		if (((entry->t ^ batch->entries[number].t) & ENTRY_TID_MASK) != 0)
			judge(batch, number);
	}
}

/* Looks at the rows of entries of the index, which are in order; *at: the first key that may be theirs. */
static void
look_at_all(Batch *batch, IndexScanDesc scan, const GpudsScanBatch *found, int *at)
{
	for (int64 i = 0; i < found->n; i++)
	{
		const GpudsEntry *entry = &found->entries[i];
		int end;

		CHECK_FOR_INTERRUPTS();
		while (*at < batch->nkeys && compare(batch, &batch->keys[*at], entry) < 0)
			(*at)++;
		for (end = *at; end < batch->nkeys && compare(batch, &batch->keys[end], entry) == 0;)
			end++;
		if (end > *at)
			look_at(batch, scan, entry, &batch->keys[*at], end - *at);
	}
	hand_on_dead(batch, scan);
}

/* Looks for other rows of the keys.  The caller has the locks. */
static void
look(Batch *batch)
{
	GpudsScanBatch found;
	IndexScanDesc scan;
	int at = 0;

	memset(batch->stays, 0, batch->n * sizeof(bool));
	batch->nstay = batch->nwaits = 0;
	if (batch->nkeys == 0)
		return;
	compare_all_new(batch);
	scan = GpudsIndexBeginscan(batch->heap, batch->index, &batch->dirty, 0, false);
	gpuds_scan_set_probes(scan, &batch->probe, batch->probes, batch->nprobes);
	gpuds_scan_begin_batches(scan, batch->nprobes);
	while (gpuds_scan_has_more(scan))
	{
		gpuds_scan_next_batch(scan, MAX_FOUND, &found);
		look_at_all(batch, scan, &found, &at);
	}
	index_endscan(scan);

	/* no pins are kept */
	if (batch->reads)
	{
		ExecClearTuple(batch->own.slot);
		ExecClearTuple(batch->found.slot);
		table_index_fetch_reset(batch->own.fetch);
		table_index_fetch_reset(batch->found.fetch);
	}
}

/* Looks until nothing is to be waited for; returns with the locks. */
static void
look_under_locks(Batch *batch)
{
	for (;;)
	{
		gpuds_lock_keys(batch->index, &batch->locks);
		look(batch);
		if (batch->nwaits == 0)
			return;
		gpuds_unlock_keys(batch->index, &batch->locks);
		for (int i = 0; i < batch->nwaits; i++)
			gpuds_unique_wait(batch->index, &batch->waits[i]);
	}
}

/* Moves the entries that stay to the front; their order, and that of the others, stays. */
static void
set_aside(Batch *batch, int *nagain)
{
	const int first = *nagain;
	GpudsEntry *others = batch->probes;
	int nstay = 0;
	int nothers = 0;

	*nagain = 0;
	if (batch->nstay == 0)
		return;
	for (int i = 0; i < batch->n; i++)
	{
		if (!batch->stays[i])
		{
			others[nothers++] = batch->entries[i];
			continue;
		}
		batch->entries[nstay++] = batch->entries[i];
		*nagain += i < first;
	}
	memcpy(batch->entries + nstay, others, nothers * sizeof(GpudsEntry));
}

/* Ends a batch: gpuds_unique_check.end. */
static void
end(void *state)
{
	Batch *batch = state;

	gpuds_unlock_keys(batch->index, &batch->locks);
	if (batch->reads)
	{
		end_reader(&batch->own);
		end_reader(&batch->found);
	}
	table_close(batch->heap, NoLock);
	MemoryContextDelete(batch->context);
}

/* gpuds_unique_check.check (insert/insert.h) */
static int
check(Relation index, GpudsEntry *entries, int n, int *nagain, bool decide, void **state)
{
	MemoryContext old = CurrentMemoryContext;
	Batch *batch = begin(index, entries, n, decide);

	sort_keys(batch);
	choose_locks(batch);
	look_under_locks(batch);
	gpuds_injection_point("unique-looked");
	set_aside(batch, nagain);
	if (decide && batch->nstay > 0)
	{
		gpuds_unlock_keys(index, &batch->locks);
		(void) read_own(batch, 0);
		gpuds_unique_report(batch->heap, index, &entries[0], batch->own.key.values, batch->own.key.isnull);
	}
	MemoryContextSwitchTo(old);
	*state = batch;
	return batch->nstay;
}

const GpudsInsertCheck gpuds_unique_check = { .check = check, .end = end };
