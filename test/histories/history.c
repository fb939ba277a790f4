/*-------------------------------------------------------------------------
 *
 * history.c
 *	  The logs of sessions.
 *
 *-------------------------------------------------------------------------
 */
#include "history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *
grown(void *items, size_t used, size_t *size, size_t item_size)
{
	if (used == *size)
	{
		*size = *size ? *size * 2 : 64;
		items = realloc(items, *size * item_size);
		if (items == NULL)
		{
			perror("histories");
			exit(2);
		}
	}
	memset((char *) items + used * item_size, 0, item_size);
	return items;
}

void
history_init(History *history, int nsessions, int nkeys)
{
	history->nsessions = nsessions;
	history->nkeys = nkeys;
	history->sessions = calloc((size_t) nsessions, sizeof(SessionLog));
	if (history->sessions == NULL)
	{
		perror("histories");
		exit(2);
	}
}

void
history_free(History *history)
{
	for (int i = 0; i < history->nsessions; i++)
	{
		SessionLog *log = &history->sessions[i];

		free(log->transactions.items);
		free(log->writes.items);
		free(log->snapshots.items);
		free(log->reads.items);
		free(log->rows.items);
		free(log->keys.items);
	}
	free(history->sessions);
}

/* A transaction that has not committed yet. */
Transaction *
history_transaction(History *history, int session)
{
	SessionLog *log = &history->sessions[session];
	Transaction *transaction = ADD(log->transactions);

	transaction->first_write = log->writes.used;
	return transaction;
}

/* A write of the session's last transaction, which has found no row so far. */
Write *
history_write(History *history, int session, uint32_t step)
{
	SessionLog *log = &history->sessions[session];
	int64_t version = ((int64_t) session + 1) << 32 | (int64_t) log->writes.used;
	Write *write = ADD(log->writes);

	write->row.version = version;
	write->kind = WRITE_NONE;
	write->session = session;
	write->transaction = (uint32_t) (log->transactions.used - 1);
	write->step = step;
	write->undone = NO_STEP;
	return write;
}

Snapshot *
history_snapshot(History *history, int session, int64_t sent, int64_t returned)
{
	SessionLog *log = &history->sessions[session];
	Snapshot *snapshot = ADD(log->snapshots);

	snapshot->sent = sent;
	snapshot->returned = returned;
	return snapshot;
}

/* A read by the session's last transaction in its last snapshot; its rows follow. */
Read *
history_read(History *history, int session, uint32_t step, const Condition *condition)
{
	SessionLog *log = &history->sessions[session];
	Read *read = ADD(log->reads);

	read->condition = *condition;
	read->session = session;
	read->transaction = (uint32_t) (log->transactions.used - 1);
	read->step = step;
	read->snapshot = log->snapshots.used - 1;
	read->first_row = log->rows.used;
	return read;
}

/* A row of the session's last read. */
void
history_row(History *history, int session, const Row *row)
{
	SessionLog *log = &history->sessions[session];

	*ADD(log->rows) = *row;
	log->reads.items[log->reads.used - 1].nrows++;
}

/* A key that a condition to come names; where it is. */
size_t
history_key(History *history, int session, int32_t key)
{
	SessionLog *log = &history->sessions[session];

	*ADD(log->keys) = key;
	return log->keys.used - 1;
}

void
history_undo(History *history, int session, uint32_t after, uint32_t step)
{
	SessionLog *log = &history->sessions[session];
	size_t first = log->transactions.items[log->transactions.used - 1].first_write;

	for (size_t i = first; i < log->writes.used; i++)
	{
		Write *write = &log->writes.items[i];

		if (write->step > after && write->undone == NO_STEP)
			write->undone = step;
	}
}

Write *
history_find(const History *history, int64_t version)
{
	int64_t session = (version >> 32) - 1;
	int64_t index = version & 0xffffffff;

	if (session < 0 || session >= history->nsessions ||
		index >= (int64_t) history->sessions[session].writes.used)
		return NULL;
	return &history->sessions[session].writes.items[index];
}

bool
history_matches(const History *history, int session, const Condition *condition, const Row *row)
{
	const int32_t *keys;

	if (condition->kind == BY_ID)
		return row->id == condition->id;
	if (condition->stripe != ANY_STRIPE && row->stripe != condition->stripe)
		return false;
	if (condition->kind == BY_RANGE)
		return row->key >= condition->low && row->key <= condition->high;
	keys = &history->sessions[session].keys.items[condition->first_key];
	for (size_t i = 0; i < condition->nkeys; i++)
	{
		if (keys[i] == row->key)
			return true;
	}
	return false;
}
