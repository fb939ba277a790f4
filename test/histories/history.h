/*-------------------------------------------------------------------------
 *
 * history.h
 *	  What sessions did to one table, and when: recorded by sessions.c or made up
 *	  by checker_test.c, judged by checker.c.
 *
 * Every session has a log of its own, which only its thread writes.  A row of the
 * table describes itself: its version is a number that no other row version has,
 * previous is the version that it replaced (0: none), and its id is the version
 * number under which the row was inserted.  A version number says where its write
 * is recorded: the session + 1 in the upper half, the index in the session's
 * writes in the lower half.  Deletes have version numbers too.
 *
 * Times are nanoseconds of one clock.  A transaction takes effect for others
 * between sending its commit and receiving the answer.  A snapshot is taken
 * between sending a statement and receiving its answer.  Steps number what a
 * transaction does.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HISTORY_H
#define HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NO_STEP UINT32_MAX
#define ANY_STRIPE (-1)

typedef struct Row
{
	int64_t version;
	int64_t previous;
	int64_t id;
	int64_t stripe;
	int32_t key;
} Row;

typedef struct Transaction
{
	int64_t began;
	int64_t commit_sent;
	int64_t commit_returned;
	bool committed;
	bool serializable;
	size_t first_write;

	/* the checker's: does the snapshot of that number see it?  And its number among dependencies. */
	uint64_t snapshot;
	int sight;
	uint32_t number;
} Transaction;

typedef enum WriteKind
{
	WRITE_NONE, /* found no row */
	WRITE_INSERT,
	WRITE_UPDATE,
	WRITE_DELETE
} WriteKind;

typedef struct Write
{
	Row row; /* of a delete: version, previous and id */
	WriteKind kind;
	int session;
	uint32_t transaction; /* index in the session's */
	uint32_t step;
	uint32_t undone; /* step of the ROLLBACK TO that undid it, or NO_STEP */

	/* the checker's: what replaced it, and on the write that inserted a row the state of the row's check */
	struct Write *next;
	uint64_t read;
	const Row *shown;
	struct Write *own;
} Write;

typedef struct Snapshot
{
	int64_t sent;
	int64_t returned;

	/* the checker's: the span in which it was taken, as far as reads have told, and its number */
	int64_t low;
	int64_t high;
	uint64_t number;
} Snapshot;

typedef enum ConditionKind
{
	BY_ID,
	BY_KEYS,
	BY_RANGE
} ConditionKind;

typedef struct Condition
{
	ConditionKind kind;
	int64_t id;
	int64_t stripe; /* or ANY_STRIPE */
	int32_t low, high;
	size_t first_key, nkeys; /* in the session's keys */
} Condition;

typedef struct Read
{
	Condition condition;
	int session;
	uint32_t transaction;
	uint32_t step; /* sees the transaction's own writes of lower steps */
	size_t snapshot;
	size_t first_row, nrows; /* in the session's rows, as they came */
	bool ordered;            /* the keys must ascend */
} Read;

/* An array that grows. */
#define LIST(type)         \
	struct                 \
	{                      \
		type *items;       \
		size_t used, size; \
	}

/* Memory for one more item, all zeros: the array, perhaps moved. */
extern void *grown(void *items, size_t used, size_t *size, size_t item_size);

/* A new item of a list. */
#define ADD(list)                                                                          \
	((list).items = grown((list).items, (list).used, &(list).size, sizeof(*(list).items)), \
	 &(list).items[(list).used++])

typedef struct SessionLog
{
	LIST(Transaction) transactions;
	LIST(Write) writes;
	LIST(Snapshot) snapshots;
	LIST(Read) reads;
	LIST(Row) rows;
	LIST(int32_t) keys;
} SessionLog;

typedef struct History
{
	int nsessions;
	int nkeys; /* keys are from 0 to nkeys - 1 */
	SessionLog *sessions;
} History;

extern void history_init(History *history, int nsessions, int nkeys);
extern void history_free(History *history);

/* Each adds to the session's log.  Pointers are good until the next call of the same function. */
extern Transaction *history_transaction(History *history, int session);
extern Write *history_write(History *history, int session, uint32_t step);
extern Snapshot *history_snapshot(History *history, int session, int64_t sent, int64_t returned);
extern Read *history_read(History *history, int session, uint32_t step, const Condition *condition);
extern void history_row(History *history, int session, const Row *row);
extern size_t history_key(History *history, int session, int32_t key);

/* Notes that a transaction's writes of steps above after were undone in step step. */
extern void history_undo(History *history, int session, uint32_t after, uint32_t step);

/* The write with this version number, NULL if there is none. */
extern Write *history_find(const History *history, int64_t version);

/* The transaction of a write. */
static inline Transaction *
history_writer(const History *history, const Write *write)
{
	return &history->sessions[write->session].transactions.items[write->transaction];
}

extern bool history_matches(const History *history, int session, const Condition *condition, const Row *row);

#endif
