/*-------------------------------------------------------------------------
 *
 * states.h
 *	  Page states: what a snapshot sees on pages of tables, without a visit to the rows.
 *
 * The visibility map says of a page that all its rows are visible to all, until any of them changes, and then
 * nothing before VACUUM has been there.  A page state says it row by row, of the page as it was at an LSN.
 * It lies in shared memory, is made by who reads the page (page_state.c), and may be lost at any time
 * (state_cache.c).
 *
 * A row is named by the line pointer that an index entry has: the root of a chain of HOT updates.  At most
 * one version of a chain is visible to an MVCC snapshot.
 *
 *	  P1	A state is made under the page's share lock, of what the page has at its LSN then.
 *
 *	  P2	While a page has the LSN of its state, it has the same tuples and line pointers.  Hint bits may
 *			differ, and decide nothing.
 *
 *			Whatever changes a page's tuples gives it a new LSN, of a WAL record that nobody else has had, and
 *			LSNs of a page only rise.  This is so for permanent tables, unless the transaction at hand has
 *			given the table a new file and does without WAL.  So other tables have no states, and pages
 *			without an LSN have none.  A recycled file number, or a database that has the number of
 *			another one, has pages with other LSNs, or copies of the same pages.  A restart of the server, a
 *			crash included, begins without states.
 *
 *	  P3	A row is ALL or CHANGED if the first version of its chain was inserted by a transaction that
 *			committed before the horizon (that all snapshots' xmin have passed), and the last version is not
 *			deleted.  Every snapshot sees one version of it.
 *
 *			Let T be who made the next version.  A snapshot that sees T sees that version, or a later one, and
 *			one that does not sees the version before, whether T runs, has committed, or has aborted.  So T's
 *			fate need not be known.  CHANGED is what P3 says of a row that has such a T above the horizon.
 *
 *	  P4	A row is NONE if no snapshot sees a version of it: there is no tuple, its line pointer is not a
 *			root, who inserted it has aborted, or who deleted it committed before the horizon.
 *
 *	  P5	A row is OPEN otherwise.  It has the transaction that inserted the first version, unless that is
 *			before the horizon, and the one that deleted the last version.  A snapshot sees the row if it
 *			sees the one, and not the other.  Transactions in between do not matter, by the argument of P3:
 *			who sees a later one sees those before it, which had ended when it took over the row.
 *
 *			Of an OPEN row that has none of the two, nothing is known: there was no room for them.
 *
 *	  P6	A snapshot believes a state only if its xmin is above the state's `settled`, the newest
 *			transaction that ALL, CHANGED and NONE rely on.
 *
 *			The horizon for a table's rows leaves out what only other databases' snapshots and VACUUM wait
 *			for, so it may be above the xmin of a snapshot.  P3 and P4 hold for those that P6 lets through.
 *
 *	  P7	Rows that the transaction at hand has inserted or deleted itself are not decided by a state:
 *			command numbers matter for them, which it does not have.  P3 holds for rows that it has updated.
 *
 * When a page's LSN is looked at, and why without a lock, is said in reader/known_rows.h.
 *
 * The cache.  Memory is divided into sets of slots.  A state takes a slot, or some if it has many
 * transactions; any of them may be lost, and then the state is.  Who writes a slot makes its sequence odd
 * meanwhile; who reads one copies it, and looks at the sequence before and after.  Nobody waits: who finds a
 * slot being written does without.  Of a set, what was used longest ago makes room.
 *
 * Locks: none is taken here.  The maker of a state holds the page's share lock.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_STATES_H
#define GPUDS_STATES_H

#include "access/htup_details.h"
#include "access/xlogdefs.h"
#include "storage/buf.h"
#include "utils/rel.h"
#include "utils/snapshot.h"

#include "gpuds.h"
#include "kernels/core/page_rows.h"

/* What is said of a row; two bits. */
typedef enum GpudsRowState
{
	GPUDS_ROW_NONE,
	GPUDS_ROW_ALL,
	GPUDS_ROW_CHANGED,
	GPUDS_ROW_OPEN
} GpudsRowState;

/* Words that so many rows have, and all rows that a page can have. */
#define GpudsRowWords(rows) (((rows) + PAGE_ROWS_A_WORD - 1) / PAGE_ROWS_A_WORD)
#define GPUDS_STATE_WORDS GpudsRowWords(MaxHeapTuplesPerPage)

/* A transaction that decides about OPEN rows, which follow each other. */
typedef struct GpudsRowWriter
{
	uint16 offset; /* of the first row */
	uint16 nrows;
	bool deletes;
	bool committed; /* it is known to have */
	TransactionId xid;
} GpudsRowWriter;

/*
 * Runs of rows of a transaction that a state has room for; rows of further ones are OPEN without any
 * (page_state.c, judge).
 */
#define GPUDS_STATE_WRITERS 64

typedef struct GpudsPageState
{
	XLogRecPtr lsn;
	Buffer buffer;         /* that the page was in last */
	TransactionId settled; /* P6; invalid: none is relied on */
	/*
	 * the newest transaction that was not before the horizon; when it is, a new state says more; or invalid
	 */
	TransactionId unsettled;
	uint16
		nrows; /* line pointers, as many as a page can have; 0: the page was visited at this LSN, no more */
	uint16 nwriters;
	uint32 rows[GPUDS_STATE_WORDS];
	GpudsRowWriter writers[GPUDS_STATE_WRITERS]; /* a row has one of each kind at most */
} GpudsPageState;

/* page_state.c */
extern bool gpuds_page_has_states(Relation heap);
extern void gpuds_page_state_make(Relation heap, Buffer buffer, Snapshot snapshot, GpudsPageState *state);
extern bool gpuds_page_state_is_ripe(const GpudsPageState *state, Relation heap, Snapshot snapshot,
									 bool serializable);
extern bool gpuds_page_state_resolve(const GpudsPageState *state, Snapshot snapshot, bool serializable,
									 uint32 *rows);

/* Pages whose states are asked for together, at most. */
#define GPUDS_STATES_AHEAD 32

/* state_cache.c */
extern Size gpuds_states_shmem_size(void);
extern void gpuds_states_shmem_init(void);
extern void gpuds_states_prefetch(const RelFileLocator *locator, const BlockNumber *blocks, int n);
extern bool gpuds_states_find(const RelFileLocator *locator, BlockNumber block, uint32 now,
							  GpudsPageState *state);
extern void gpuds_states_store(const RelFileLocator *locator, BlockNumber block, uint32 now,
							   const GpudsPageState *state);

/* What scans have done with states. */
typedef struct GpudsStateUse
{
	uint64 hits;  /* looks at pages whose states held */
	uint64 made;  /* states made */
	uint64 stale; /* of these, in place of one that did not hold */
} GpudsStateUse;

extern void gpuds_states_count(const GpudsStateUse *use);

/* What there is to tell of all states. */
typedef struct GpudsStatesReport
{
	size_t memory_total; /* bytes; 0: there are no states */
	size_t memory_used;
	int64 pages; /* that have states, or were visited once */
	GpudsStateUse use;
	uint64 evicted; /* states that made room for others */
} GpudsStatesReport;

extern void gpuds_states_report(GpudsStatesReport *report);

#endif /* GPUDS_STATES_H */
