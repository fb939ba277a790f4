/*-------------------------------------------------------------------------
 *
 * page_state.c
 *	  Makes the state of a page, and says what a snapshot sees by it.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/heapam.h"
#include "access/multixact.h"
#include "access/subtrans.h"
#include "access/transam.h"
#include "access/xact.h"
#include "storage/bufmgr.h"
#include "storage/procarray.h"
#include "utils/snapmgr.h"

#include "states/states.h"

/* So many transactions that have committed take longer to ask about again and again than a new state does. */
#define SLOW_WRITERS 4

/* What is known of a transaction that has written a row. */
typedef enum Fate
{
	FATE_NEVER,     /* it has aborted, or there is none */
	FATE_RUNNING,   /* nobody knows; the snapshot at hand does not see it */
	FATE_COMMITTED, /* but not before the horizon */
	FATE_SETTLED    /* committed before the horizon */
} Fate;

/* A page whose state is being made. */
typedef struct Making
{
	Relation heap;
	Buffer buffer;
	Page page;
	Snapshot snapshot;
	GlobalVisState *horizon;
	GpudsPageState *state;
} Making;

/* The lower one of the bits of each row in a word. */
#define LOW_BITS UINT32_C(0x55555555)

/* A chain of versions. */
typedef struct Chain
{
	HeapTupleHeader first;
	HeapTupleHeader last;
	bool changed; /* by a transaction that is not settled */
	bool strange; /* it has what only core should judge */
} Chain;

/* P2: may a table's pages have states? */
bool
gpuds_page_has_states(Relation heap)
{
	return heap->rd_tableam == GetHeapamTableAmRoutine() &&
		   heap->rd_rel->relpersistence == RELPERSISTENCE_PERMANENT && RelationNeedsWAL(heap);
}

static TransactionId
newer(TransactionId a, TransactionId b)
{
	return !TransactionIdIsNormal(b) || (TransactionIdIsValid(a) && TransactionIdFollows(a, b)) ? a : b;
}

/* Is a transaction before the horizon, and does P6 let the snapshot at hand through? */
static bool
is_settled(GlobalVisState *horizon, Snapshot snapshot, TransactionId xid)
{
	return TransactionIdPrecedes(xid, snapshot->xmin) && GpudsIsRemovableXid(horizon, xid);
}

static Fate
fate_of_committed(const Making *making, TransactionId xid)
{
	if (is_settled(making->horizon, making->snapshot, xid))
		return FATE_SETTLED;
	making->state->unsettled = newer(making->state->unsettled, xid);
	return FATE_COMMITTED;
}

/*
 * A transaction that the snapshot does not see may end at any time.  One that it sees has ended, so that it
 * has aborted if it has not committed.
 */
static Fate
fate_of(const Making *making, TransactionId xid)
{
	if (!TransactionIdIsNormal(xid))
		return TransactionIdIsValid(xid) ? FATE_SETTLED : FATE_NEVER;
	if (TransactionIdIsCurrentTransactionId(xid) || XidInMVCCSnapshot(xid, making->snapshot))
	{
		making->state->unsettled = newer(making->state->unsettled, xid);
		return FATE_RUNNING;
	}
	return TransactionIdDidCommit(xid) ? fate_of_committed(making, xid) : FATE_NEVER;
}

/* The fate of who inserted a version. */
static Fate
fate_of_insert(const Making *making, HeapTupleHeader tuple)
{
	if (HeapTupleHeaderXminFrozen(tuple))
		return FATE_SETTLED;
	if (HeapTupleHeaderXminInvalid(tuple))
		return FATE_NEVER;
	if (HeapTupleHeaderXminCommitted(tuple))
		return TransactionIdIsNormal(HeapTupleHeaderGetRawXmin(tuple))
				   ? fate_of_committed(making, HeapTupleHeaderGetRawXmin(tuple))
				   : FATE_SETTLED;
	return fate_of(making, HeapTupleHeaderGetRawXmin(tuple));
}

/* Who deleted or updated a version; invalid: nobody has. */
static TransactionId
deleter_of(HeapTupleHeader tuple)
{
	if ((tuple->t_infomask & HEAP_XMAX_INVALID) || HEAP_XMAX_IS_LOCKED_ONLY(tuple->t_infomask))
		return InvalidTransactionId;
	return HeapTupleHeaderGetUpdateXid(tuple);
}

static Fate
fate_of_delete(const Making *making, HeapTupleHeader tuple, TransactionId xid)
{
	if (TransactionIdIsNormal(xid) && (tuple->t_infomask & HEAP_XMAX_COMMITTED) &&
		!(tuple->t_infomask & HEAP_XMAX_IS_MULTI))
		return fate_of_committed(making, xid);
	return fate_of(making, xid);
}

/* Has core set the hint bits, if they can be set by now: they save the next one a look at who committed. */
static void
set_hints(const Making *making, ItemId id, OffsetNumber offset)
{
	HeapTupleHeader header = (HeapTupleHeader) PageGetItem(making->page, id);
	HeapTupleData tuple;

	if ((header->t_infomask & (HEAP_XMIN_COMMITTED | HEAP_XMIN_INVALID)) &&
		(header->t_infomask & (HEAP_XMAX_COMMITTED | HEAP_XMAX_INVALID | HEAP_XMAX_IS_MULTI)))
		return;
	tuple.t_data = header;
	tuple.t_len = ItemIdGetLength(id);
	tuple.t_tableOid = RelationGetRelid(making->heap);
	ItemPointerSet(&tuple.t_self, BufferGetBlockNumber(making->buffer), offset);
	(void) HeapTupleSatisfiesVisibility(&tuple, making->snapshot, making->buffer);
}

/* The tuple at a line pointer; NULL: there is none. */
static HeapTupleHeader
tuple_at(const Making *making, OffsetNumber offset)
{
	ItemId id;

	if (offset < FirstOffsetNumber || offset > PageGetMaxOffsetNumber(making->page))
		return NULL;
	id = PageGetItemId(making->page, offset);
	if (!ItemIdIsNormal(id))
		return NULL;
	set_hints(making, id, offset);
	return (HeapTupleHeader) PageGetItem(making->page, id);
}

/* Where a root's chain begins; NULL: there is no tuple, or the line pointer is no root. */
static HeapTupleHeader
first_of_chain(const Making *making, OffsetNumber root)
{
	ItemId id = PageGetItemId(making->page, root);
	HeapTupleHeader tuple;

	if (ItemIdIsRedirected(id))
		return tuple_at(making, ItemIdGetRedirect(id));
	tuple = tuple_at(making, root);
	return tuple && HeapTupleHeaderIsHeapOnly(tuple) ? NULL : tuple;
}

/* Follows a chain as a scan of core's does (heap_hot_search_buffer). */
static void
follow(const Making *making, Chain *chain)
{
	HeapTupleHeader tuple = chain->first;

	chain->changed = chain->strange = false;
	for (int i = 0; i < MaxHeapTuplesPerPage; i++)
	{
		TransactionId updater;

		chain->last = tuple;
		if (tuple->t_infomask & HEAP_MOVED)
			chain->strange = true;
		if (chain->strange || !HeapTupleHeaderIsHotUpdated(tuple))
			return;
		updater = deleter_of(tuple);
		tuple = tuple_at(making, ItemPointerGetOffsetNumber(&tuple->t_ctid));
		if (tuple == NULL || updater != HeapTupleHeaderGetXmin(tuple))
			return;
		if (fate_of_delete(making, chain->last, updater) != FATE_SETTLED)
			chain->changed = true;
	}
	chain->strange = true;
}

/* The run of rows of a transaction that ends before a row, which has two writers at most; NULL: none does. */
static GpudsRowWriter *
find_run(GpudsPageState *state, OffsetNumber root, bool deletes, TransactionId xid)
{
	for (int i = state->nwriters - 1; i >= Max(state->nwriters - 2, 0); i--)
	{
		GpudsRowWriter *writer = &state->writers[i];

		if (writer->deletes == deletes && writer->xid == xid && writer->offset + writer->nrows == root)
			return writer;
	}
	return NULL;
}

/* Adds a row to a transaction's run, or begins one. */
static void
add_writer(GpudsPageState *state, GpudsRowWriter *run, OffsetNumber root, bool deletes, TransactionId xid,
		   Fate fate)
{
	if (run == NULL)
	{
		run = &state->writers[state->nwriters++];
		*run = (GpudsRowWriter){ .offset = root, .deletes = deletes, .xid = xid };
	}
	run->nrows++;
	run->committed |= fate == FATE_COMMITTED;
}

/* Adds an OPEN row to the runs of the transactions that decide about it, if there is room for both. */
static void
add_writers(GpudsPageState *state, OffsetNumber root, TransactionId inserter, Fate insert,
			TransactionId deleter, Fate delete)
{
	const bool inserts = insert != FATE_SETTLED;
	const bool deletes = delete != FATE_NEVER;
	GpudsRowWriter *insert_run = inserts ? find_run(state, root, false, inserter) : NULL;
	GpudsRowWriter *delete_run = deletes ? find_run(state, root, true, deleter) : NULL;
	const int more = (inserts && !insert_run) + (deletes && !delete_run);

	if (state->nwriters + more > GPUDS_STATE_WRITERS)
		return;
	if (inserts)
		add_writer(state, insert_run, root, false, inserter, insert);
	if (deletes)
		add_writer(state, delete_run, root, true, deleter, delete);
}

/* P3 to P5 for a chain. */
static GpudsRowState
judge(const Making *making, OffsetNumber root, const Chain *chain)
{
	GpudsPageState *state = making->state;
	const TransactionId inserter = HeapTupleHeaderGetRawXmin(chain->first);
	const TransactionId deleter = deleter_of(chain->last);
	const Fate insert = fate_of_insert(making, chain->first);
	const Fate delete = fate_of_delete(making, chain->last, deleter);

	if (chain->strange)
		return GPUDS_ROW_OPEN;
	if (insert == FATE_NEVER)
		return GPUDS_ROW_NONE;
	if (delete == FATE_SETTLED)
	{
		state->settled = newer(state->settled, deleter);
		return GPUDS_ROW_NONE;
	}
	if (insert == FATE_SETTLED && !HeapTupleHeaderXminFrozen(chain->first))
		state->settled = newer(state->settled, inserter);
	if (insert == FATE_SETTLED && delete == FATE_NEVER)
		return chain->changed ? GPUDS_ROW_CHANGED : GPUDS_ROW_ALL;
	add_writers(state, root, inserter, insert, deleter, delete);
	return GPUDS_ROW_OPEN;
}

/*
 * Makes the state of a page of a table that has states.  The caller holds the buffer's share lock, and has an
 * MVCC snapshot.  May set hint bits, which may give the page another LSN.  state->lsn is invalid if the page
 * has none; then the state must not be kept.
 */
void
gpuds_page_state_make(Relation heap, Buffer buffer, Snapshot snapshot, GpudsPageState *state)
{
	const Page page = BufferGetPage(buffer);
	const Making making = { heap, buffer, page, snapshot, GlobalVisTestFor(heap), state };
	const OffsetNumber n = PageGetMaxOffsetNumber(page);

	state->buffer = buffer;
	state->settled = state->unsettled = InvalidTransactionId;
	state->nrows = n <= MaxHeapTuplesPerPage ? n : 0;
	state->nwriters = 0;
	memset(state->rows, 0, sizeof(state->rows));
	for (OffsetNumber root = FirstOffsetNumber; root <= state->nrows; root++)
	{
		const int i = root - FirstOffsetNumber;
		Chain chain = { .first = first_of_chain(&making, root) };
		GpudsRowState row = GPUDS_ROW_NONE;

		if (chain.first)
		{
			follow(&making, &chain);
			row = judge(&making, root, &chain);
		}
		state->rows[i / PAGE_ROWS_A_WORD] |= (uint32) row << i % PAGE_ROWS_A_WORD * 2;
	}
	state->lsn = BufferGetLSNAtomic(buffer);
}

/* Does it take as long to resolve a state as it is worth to make a new one? */
static bool
is_slow(const GpudsPageState *state)
{
	if (state->nwriters >= SLOW_WRITERS)
		return true;
	for (int i = 0; i < state->nwriters; i++)
	{
		if (!state->writers[i].committed)
			return true;
	}
	return false;
}

/*
 * Should a state that holds be made again?  If a new one, made with a snapshot, has no transactions any more,
 * and this one has many, or does not know that they have committed, or leaves rows to SERIALIZABLE.
 */
bool
gpuds_page_state_is_ripe(const GpudsPageState *state, Relation heap, Snapshot snapshot, bool serializable)
{
	return TransactionIdIsValid(state->unsettled) && (serializable || is_slow(state)) &&
		   is_settled(GlobalVisTestFor(heap), snapshot, state->unsettled);
}

/* Does a snapshot see what a writer has done? */
static bool
sees(Snapshot snapshot, const GpudsRowWriter *writer)
{
	return !XidInMVCCSnapshot(writer->xid, snapshot) &&
		   (writer->committed || TransactionIdDidCommit(writer->xid));
}

/* Sets the low bits of a writer's rows. */
static void
mark_run(const GpudsRowWriter *writer, uint32 *bits)
{
	int at = writer->offset - FirstOffsetNumber;

	for (int left = writer->nrows, n; left > 0; left -= n, at += n)
	{
		const int place = at % PAGE_ROWS_A_WORD;

		n = Min(left, PAGE_ROWS_A_WORD - place);
		bits[at / PAGE_ROWS_A_WORD] |= (LOW_BITS >> (PAGE_ROWS_A_WORD - n) * 2) << place * 2;
	}
}

/* What is known of rows that writers decide about: they are seen unless one of these says otherwise. */
static void
decide_open_rows(const GpudsPageState *state, Snapshot snapshot, uint32 *rows)
{
	uint32 decided[GPUDS_STATE_WORDS] = { 0 };
	uint32 unseen[GPUDS_STATE_WORDS] = { 0 };
	uint32 own[GPUDS_STATE_WORDS] = { 0 };

	StaticAssertStmt(PAGE_ROW_UNKNOWN == 0 && PAGE_ROW_SEEN == 1 && PAGE_ROW_UNSEEN == 2,
					 "a row that is seen has the low bit, one that is not the high one");
	if (state->nwriters == 0)
		return;
	for (int i = 0; i < state->nwriters; i++)
	{
		const GpudsRowWriter *writer = &state->writers[i];

		mark_run(writer, decided);
		if (TransactionIdIsCurrentTransactionId(writer->xid))
			mark_run(writer, own); /* P7 */
		else if (sees(snapshot, writer) == writer->deletes)
			mark_run(writer, unseen);
	}
	for (int i = 0; i < GPUDS_STATE_WORDS; i++)
		rows[i] |= (decided[i] & ~unseen[i] & ~own[i]) | (unseen[i] & ~own[i]) << 1;
}

/*
 * What an MVCC snapshot sees of a page's rows, by a state that holds: sets rows[GPUDS_STATE_WORDS], two bits
 * a row as in PageRows.  serializable: rows that a transaction has changed that may run beside the reader
 * stay unknown, so that core sees the conflict when they are visited.  False: the state says nothing.
 */
bool
gpuds_page_state_resolve(const GpudsPageState *state, Snapshot snapshot, bool serializable, uint32 *rows)
{
	if (state->nrows == 0)
		return false;
	/* P6 */
	if (TransactionIdIsValid(state->settled) && !TransactionIdPrecedes(state->settled, snapshot->xmin))
		return false;
	for (int i = 0; i < GPUDS_STATE_WORDS; i++)
	{
		const uint32 low = state->rows[i] & LOW_BITS;
		const uint32 high = state->rows[i] >> 1 & LOW_BITS;
		const uint32 none = ~(low | high) & LOW_BITS;
		const uint32 seen = serializable ? low & ~high : low ^ high;

		StaticAssertStmt(PAGE_ROW_UNKNOWN == 0 && PAGE_ROW_SEEN == 1 && PAGE_ROW_DEAD == 3,
						 "a row that is ALL or CHANGED has the low bit, one that is NONE both");
		rows[i] = seen | none | none << 1;
	}
	if (!serializable)
		decide_open_rows(state, snapshot, rows);
	return true;
}
