/*-------------------------------------------------------------------------
 *
 * sessions.c
 *	  Sessions that write and look up rows by gpu_btree indexes, and record what
 *	  they did and saw.
 *
 * The keys are few, and half of the time a session asks for what another one has
 * just written: a read that is a little too early or too late for its snapshot is
 * then likely to show it.
 *
 *-------------------------------------------------------------------------
 */
#include "sessions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEEN_IDS 32
#define MAX_ANY 40
#define MAX_INSERT 60
#define MAX_BULK 3000
#define MAX_LARGE 1500 /* keys of a large = ANY */
#define TEXT 16384

typedef enum Isolation
{
	AUTOCOMMIT,
	READ_COMMITTED,
	REPEATABLE_READ,
	SERIALIZABLE
} Isolation;

typedef struct Session
{
	int number;
	PGconn *connection;
	uint64_t random;
	Isolation isolation;
	uint32_t step;
	uint32_t savepoint; /* its step, 0: there is none */
	bool has_snapshot;  /* the transaction's, if it has one from REPEATABLE READ on */
	bool broken;        /* the transaction has failed */
	bool must_undo;     /* it is not to commit */
	int64_t sent, returned;
	int64_t seen_ids[SEEN_IDS]; /* rows of the last read */
	int nseen;
	int ninserted, ndeleted; /* by this transaction */
} Session;

#define COLUMNS "version, previous, id, stripe, key"

static const char *const statements[][2] = {
	{ "by_id", "SELECT " COLUMNS " FROM h WHERE id = $1::bigint" },
	{ "by_key", "SELECT " COLUMNS " FROM h WHERE key = $1::int" },
	{ "by_any", "SELECT " COLUMNS " FROM h WHERE key = ANY ($1::int[])" },
	{ "by_range", "SELECT " COLUMNS " FROM h WHERE key BETWEEN $1::int AND $2::int ORDER BY key" },
	{ "by_stripe", "SELECT " COLUMNS " FROM h WHERE stripe = $1::bigint AND key = ANY ($2::int[])" },
	{ "insert", "INSERT INTO h (version, previous, id, stripe, key) SELECT v, 0, v, l, k FROM "
				"unnest($1::bigint[], $2::bigint[], $3::int[]) AS n(v, l, k)" },
	{ "bulk",
	  "INSERT INTO h (version, previous, id, stripe, key) SELECT $1::bigint + i, 0, $1::bigint + i, i "
	  "% 4, i % $3::int "
	  "FROM generate_series(0, $2::int - 1) i" },
	{ "update", "UPDATE h SET previous = version, version = $2::bigint, stripe = $3::bigint, key = $4::int "
				"WHERE id = $1::bigint RETURNING " COLUMNS },
	{ "touch",
	  "UPDATE h SET previous = version, version = $2::bigint WHERE id = $1::bigint RETURNING " COLUMNS },
	{ "delete", "DELETE FROM h WHERE id = $1::bigint RETURNING " COLUMNS },
};

PGconn *
connect_to_server(void)
{
	PGconn *connection = PQconnectdb("application_name=histories");

	if (PQstatus(connection) != CONNECTION_OK ||
		!execute(connection, "SET client_min_messages = error; SET statement_timeout = '2min'"))
	{
		fprintf(stderr, "histories: %s", PQerrorMessage(connection));
		exit(2);
	}
	return connection;
}

void
prepare_statements(PGconn *connection)
{
	for (size_t i = 0; i < sizeof(statements) / sizeof(*statements); i++)
	{
		PGresult *answer = PQprepare(connection, statements[i][0], statements[i][1], 0, NULL);

		if (PQresultStatus(answer) != PGRES_COMMAND_OK)
			fail("%s: %s", statements[i][1], PQerrorMessage(connection));
		PQclear(answer);
	}
}

bool
execute(PGconn *connection, const char *sql)
{
	PGresult *answer = PQexec(connection, sql);
	bool ok = PQresultStatus(answer) == PGRES_COMMAND_OK || PQresultStatus(answer) == PGRES_TUPLES_OK;

	if (!ok)
		fail("%s: %s", sql, PQerrorMessage(connection));
	PQclear(answer);
	return ok;
}

/*
 * What to ask for
 */

/* A number below n, the smaller ones more often. */
static unsigned
skewed(Session *session, unsigned n)
{
	unsigned a = draw(&session->random, n);
	unsigned b = draw(&session->random, n);

	return a < b ? a : b;
}

/* Which of the last rows written; false: none of them. */
static bool
choose_recent(Session *session, unsigned *slot)
{
	unsigned written = __atomic_load_n(&run.recent, __ATOMIC_RELAXED);
	unsigned back = 1 + skewed(session, 12);

	*slot = (written - back) % RECENT;
	return written >= RECENT && draw(&session->random, 2) == 0;
}

static int32_t
choose_key(Session *session)
{
	unsigned slot;

	if (choose_recent(session, &slot))
		return __atomic_load_n(&run.recent_keys[slot], __ATOMIC_RELAXED);
	return (int32_t) skewed(session, (unsigned) run.nkeys);
}

static int64_t
choose_id(Session *session)
{
	unsigned known = __atomic_load_n(&run.known, __ATOMIC_RELAXED);
	unsigned slot;

	if (session->nseen > 0 && draw(&session->random, 3) != 0)
		return session->seen_ids[draw(&session->random, (unsigned) session->nseen)];
	if (choose_recent(session, &slot))
		return __atomic_load_n(&run.recent_ids[slot], __ATOMIC_RELAXED);
	known = known < KNOWN ? known : KNOWN;
	return known > 0 ? __atomic_load_n(&run.known_ids[draw(&session->random, known)], __ATOMIC_RELAXED) : 0;
}

/* Lets the other sessions ask for a row. */
static void
make_recent(const Row *row)
{
	unsigned slot = __atomic_fetch_add(&run.recent, 1, __ATOMIC_RELAXED) % RECENT;

	__atomic_store_n(&run.recent_keys[slot], row->key, __ATOMIC_RELAXED);
	__atomic_store_n(&run.recent_ids[slot], row->id, __ATOMIC_RELAXED);
}

static void
make_known(int64_t id)
{
	unsigned slot = __atomic_fetch_add(&run.known, 1, __ATOMIC_RELAXED) % KNOWN;

	__atomic_store_n(&run.known_ids[slot], id, __ATOMIC_RELAXED);
}

/*
 * Statements
 */

/* Looks at an answer, and notes when it came; NULL: it is an error, which may be expected. */
static PGresult *
received(Session *session, PGresult *answer, const char *what)
{
	ExecStatusType status = PQresultStatus(answer);
	const char *state = PQresultErrorField(answer, PG_DIAG_SQLSTATE);

	session->returned = now();
	if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK)
		return answer;
	if (state && (strcmp(state, "40001") == 0 || strcmp(state, "40P01") == 0))
		count(CONFLICTS);
	else
		fail("%s: %s", what, PQerrorMessage(session->connection));
	session->broken = true;
	PQclear(answer);
	return NULL;
}

static PGresult *
ask(Session *session, const char *sql)
{
	session->sent = now();
	return received(session, PQexec(session->connection, sql), sql);
}

static PGresult *
ask_prepared(Session *session, const char *name, int nvalues, const char *const *values)
{
	session->sent = now();
	return received(session, PQexecPrepared(session->connection, name, nvalues, values, NULL, NULL, 0), name);
}

/* A statement without an answer that matters. */
static void
command(Session *session, const char *sql)
{
	PQclear(ask(session, sql));
}

static Row
row_of(const PGresult *answer, int i)
{
	Row row;

	row.version = strtoll(PQgetvalue(answer, i, 0), NULL, 10);
	row.previous = strtoll(PQgetvalue(answer, i, 1), NULL, 10);
	row.id = strtoll(PQgetvalue(answer, i, 2), NULL, 10);
	row.stripe = strtoll(PQgetvalue(answer, i, 3), NULL, 10);
	row.key = (int32_t) strtol(PQgetvalue(answer, i, 4), NULL, 10);
	return row;
}

/* Records the snapshot of the statement that was just answered. */
static void
note_snapshot(Session *session)
{
	if (session->isolation >= REPEATABLE_READ && session->has_snapshot)
		return;
	(void) history_snapshot(&run.history, session->number, session->sent, session->returned);
	session->has_snapshot = true;
}

static void
note_rows(Session *session, const PGresult *answer)
{
	for (int i = 0; i < PQntuples(answer); i++)
	{
		Row row = row_of(answer, i);

		history_row(&run.history, session->number, &row);
		if (session->nseen < SEEN_IDS)
			session->seen_ids[session->nseen++] = row.id;
	}
}

/* Records a read that was just answered, and forgets the answer. */
static void
note_read(Session *session, const Condition *condition, bool ordered, PGresult *answer)
{
	note_snapshot(session);
	history_read(&run.history, session->number, session->step, condition)->ordered = ordered;
	session->nseen = 0;
	note_rows(session, answer);
	PQclear(answer);
	count(LOOKUPS);
}

/*
 * Reads
 */

/* Most sets are small; a large one has many keys that no row has. */
static Condition
some_keys(Session *session, char *text)
{
	Condition condition = { .kind = BY_KEYS, .stripe = ANY_STRIPE };
	bool large = draw(&session->random, 30) == 0;
	unsigned nkeys = 1 + skewed(session, draw(&session->random, 4) ? 6 : MAX_ANY);
	char *end = text;

	if (large)
		nkeys = MAX_ANY + draw(&session->random, MAX_LARGE - MAX_ANY);
	for (unsigned i = 0; i < nkeys; i++)
	{
		bool any = large && draw(&session->random, 3) != 0;
		int32_t key = any ? (int32_t) draw(&session->random, (unsigned) run.nkeys * 20) : choose_key(session);
		size_t at = history_key(&run.history, session->number, key);

		if (i == 0)
			condition.first_key = at;
		end += sprintf(end, "%c%d", i == 0 ? '{' : ',', key);
	}
	strcpy(end, "}");
	condition.nkeys = nkeys;
	return condition;
}

static Condition
some_range(Session *session)
{
	Condition condition = { .kind = BY_RANGE, .stripe = ANY_STRIPE };

	condition.low = choose_key(session);
	condition.high = condition.low + (int32_t) skewed(session, draw(&session->random, 8) ? 12 : 150);
	return condition;
}

static void
read_id(Session *session)
{
	Condition condition = { .kind = BY_ID, .stripe = ANY_STRIPE, .id = choose_id(session) };
	char text[32];
	const char *values[1] = { text };
	PGresult *answer;

	sprintf(text, "%lld", (long long) condition.id);
	answer = ask_prepared(session, "by_id", 1, values);
	if (answer)
		note_read(session, &condition, false, answer);
}

static void
read_key(Session *session)
{
	Condition condition = { .kind = BY_RANGE, .stripe = ANY_STRIPE };
	char text[32];
	const char *values[1] = { text };
	PGresult *answer;

	condition.low = condition.high = choose_key(session);
	sprintf(text, "%d", condition.low);
	answer = ask_prepared(session, "by_key", 1, values);
	if (answer)
		note_read(session, &condition, false, answer);
}

static void
read_any(Session *session)
{
	char text[TEXT];
	const char *values[1] = { text };
	Condition condition = some_keys(session, text);
	PGresult *answer = ask_prepared(session, "by_any", 1, values);

	if (answer)
		note_read(session, &condition, false, answer);
}

static void
read_stripe(Session *session)
{
	char stripe[32], text[TEXT];
	const char *values[2] = { stripe, text };
	Condition condition = some_keys(session, text);
	PGresult *answer;

	condition.stripe = draw(&session->random, NSTRIPES);
	sprintf(stripe, "%lld", (long long) condition.stripe);
	answer = ask_prepared(session, "by_stripe", 2, values);
	if (answer)
		note_read(session, &condition, false, answer);
}

static void
read_range(Session *session)
{
	Condition condition = some_range(session);
	char low[32], high[32];
	const char *values[2] = { low, high };
	PGresult *answer;

	sprintf(low, "%d", condition.low);
	sprintf(high, "%d", condition.high);
	answer = ask_prepared(session, "by_range", 2, values);
	if (answer)
		note_read(session, &condition, true, answer);
}

/*
 * Writes
 */

/* Inserts n rows in one statement. */
static void
insert_rows(Session *session, unsigned n)
{
	char versions[TEXT], stripes[TEXT], keys[TEXT];
	char *end[3] = { versions, stripes, keys };
	const char *values[3] = { versions, stripes, keys };
	size_t first = run.history.sessions[session->number].writes.used;
	PGresult *answer;

	for (unsigned i = 0; i < n; i++)
	{
		Write *write = history_write(&run.history, session->number, session->step);
		char before = i == 0 ? '{' : ',';

		write->row.id = write->row.version;
		write->row.stripe = draw(&session->random, NSTRIPES);
		write->row.key = (int32_t) skewed(session, (unsigned) run.nkeys);
		end[0] += sprintf(end[0], "%c%lld", before, (long long) write->row.version);
		end[1] += sprintf(end[1], "%c%lld", before, (long long) write->row.stripe);
		end[2] += sprintf(end[2], "%c%d", before, write->row.key);
	}
	for (int i = 0; i < 3; i++)
		strcpy(end[i], "}");
	answer = ask_prepared(session, "insert", 3, values);
	if (answer == NULL)
		return;
	for (size_t i = first; i < first + n; i++)
	{
		Write *write = &run.history.sessions[session->number].writes.items[i];

		write->kind = WRITE_INSERT;
		make_known(write->row.id);
	}
	session->ninserted += (int) n;
	note_snapshot(session);
	PQclear(answer);
}

/* Inserts many rows, which nobody but this transaction will see. */
static void
insert_in_bulk(Session *session)
{
	unsigned n = 500 + draw(&session->random, MAX_BULK - 500);
	size_t first = run.history.sessions[session->number].writes.used;
	char texts[3][32];
	const char *values[3] = { texts[0], texts[1], texts[2] };
	PGresult *answer;

	for (unsigned i = 0; i < n; i++)
	{
		Write *write = history_write(&run.history, session->number, session->step);

		write->row.id = write->row.version;
		write->row.stripe = i % NSTRIPES;
		write->row.key = (int32_t) i % run.nkeys;
	}
	sprintf(texts[0], "%lld",
			(long long) run.history.sessions[session->number].writes.items[first].row.version);
	sprintf(texts[1], "%u", n);
	sprintf(texts[2], "%d", run.nkeys);
	answer = ask_prepared(session, "bulk", 3, values);
	if (answer == NULL)
		return;
	for (size_t i = first; i < first + n; i++)
		run.history.sessions[session->number].writes.items[i].kind = WRITE_INSERT;
	session->must_undo = true;
	note_snapshot(session);
	PQclear(answer);
	count(BULKS);
}

/*
 * Records what an UPDATE or DELETE of one row found.  Without a row it was a read
 * that found nothing: a snapshot taken after sending sees none, or it went on to a
 * later version that was gone when the answer came.
 */
static void
note_write(Session *session, WriteKind kind, Write *write, int64_t id, PGresult *answer)
{
	Condition condition = { .kind = BY_ID, .stripe = ANY_STRIPE, .id = id };
	int64_t version = write->row.version;

	if (PQntuples(answer) == 0)
	{
		note_read(session, &condition, false, answer);
		return;
	}
	note_snapshot(session);
	write->kind = kind;
	write->row = row_of(answer, 0);
	if (PQntuples(answer) > 1)
		fail("row %llx was written %d times by one statement", (unsigned long long) id, PQntuples(answer));
	if (write->row.id != id || (kind == WRITE_UPDATE && write->row.version != version))
		fail("row %llx was asked for, row %llx version %llx written", (unsigned long long) id,
			 (unsigned long long) write->row.id, (unsigned long long) write->row.version);
	if (kind == WRITE_DELETE)
	{
		write->row.previous = write->row.version;
		write->row.version = version;
		session->ndeleted++;
	}
	PQclear(answer);
}

static void
update_row(Session *session, bool keys_too)
{
	Write *write = history_write(&run.history, session->number, session->step);
	int64_t id = choose_id(session);
	char texts[4][32];
	const char *values[4] = { texts[0], texts[1], texts[2], texts[3] };
	PGresult *answer;

	sprintf(texts[0], "%lld", (long long) id);
	sprintf(texts[1], "%lld", (long long) write->row.version);
	sprintf(texts[2], "%u", draw(&session->random, NSTRIPES));
	sprintf(texts[3], "%u", skewed(session, (unsigned) run.nkeys));
	answer = ask_prepared(session, keys_too ? "update" : "touch", keys_too ? 4 : 2, values);
	if (answer)
		note_write(session, WRITE_UPDATE, write, id, answer);
}

static void
delete_row(Session *session)
{
	Write *write = history_write(&run.history, session->number, session->step);
	int64_t id = choose_id(session);
	char text[32];
	const char *values[1] = { text };
	PGresult *answer;

	sprintf(text, "%lld", (long long) id);
	answer = ask_prepared(session, "delete", 1, values);
	if (answer)
		note_write(session, WRITE_DELETE, write, id, answer);
}

static void
write_something(Session *session)
{
	bool full = __atomic_load_n(&run.nlive, __ATOMIC_RELAXED) > run.nrows;

	switch (draw(&session->random, 10))
	{
		case 0:
		case 1:
		case 2:
			if (full)
				delete_row(session);
			else
				insert_rows(session,
							1 + (draw(&session->random, 12) ? 0 : draw(&session->random, MAX_INSERT)));
			break;
		case 3:
			insert_rows(session, 1);
			break;
		case 4:
		case 5:
			delete_row(session);
			break;
		case 6:
			update_row(session, false);
			break;
		default:
			update_row(session, true);
			break;
	}
}

static void
read_something(Session *session)
{
	switch (draw(&session->random, 10))
	{
		case 0:
			read_id(session);
			break;
		case 1:
		case 2:
			read_any(session);
			break;
		case 3:
		case 4:
			read_range(session);
			break;
		case 5:
			read_stripe(session);
			break;
		default:
			read_key(session);
			break;
	}
}

/*
 * Cursors: fetched in two parts with something else between them, then backward.
 * All of it is read in the snapshot, and by the step, in which the cursor was declared.
 */
static void
read_by_cursor(Session *session)
{
	Condition condition = some_range(session);
	const SessionLog *log = &run.history.sessions[session->number];
	uint32_t declared = session->step;
	PGresult *parts[3] = { NULL, NULL, NULL };
	size_t snapshot;
	char text[256];

	sprintf(text,
			"DECLARE c SCROLL CURSOR FOR SELECT " COLUMNS " FROM h WHERE key BETWEEN %d AND %d ORDER BY key",
			condition.low, condition.high);
	command(session, text);
	if (session->broken)
		return;
	note_snapshot(session);
	snapshot = log->snapshots.used - 1;
	sprintf(text, "FETCH %u FROM c", 1 + draw(&session->random, 5));
	parts[0] = ask(session, text);
	session->step++;
	if (!session->broken)
		write_something(session);
	session->step++;
	if (!session->broken)
		read_something(session);
	if (!session->broken)
		parts[1] = ask(session, "FETCH ALL FROM c");
	if (!session->broken)
		parts[2] = ask(session, "FETCH BACKWARD ALL FROM c");
	if (!session->broken)
		command(session, "CLOSE c");
	for (int backward = 0; backward < 2 && !session->broken; backward++)
	{
		Read *read = history_read(&run.history, session->number, declared, &condition);

		read->snapshot = snapshot;
		read->ordered = !backward;
		session->nseen = 0;
		for (int i = backward ? 2 : 0; i < (backward ? 3 : 2); i++)
			note_rows(session, parts[i]);
		count(CURSORS);
	}
	for (int i = 0; i < 3; i++)
		PQclear(parts[i]);
}

/*
 * Transactions
 */

static void
use_savepoint(Session *session)
{
	if (session->savepoint == 0)
	{
		command(session, "SAVEPOINT s");
		session->savepoint = session->step;
	}
	else if (draw(&session->random, 3) == 0)
	{
		command(session, "RELEASE s");
		session->savepoint = 0;
	}
	else
	{
		command(session, "ROLLBACK TO s");
		if (!session->broken)
			history_undo(&run.history, session->number, session->savepoint, session->step);
	}
}

static void
do_step(Session *session)
{
	unsigned what = draw(&session->random, 20);

	if (session->isolation != AUTOCOMMIT && what == 0)
		read_by_cursor(session);
	else if (session->isolation != AUTOCOMMIT && what <= 2)
		use_savepoint(session);
	else if (session->isolation != AUTOCOMMIT && what == 3 && draw(&session->random, 40) == 0)
		insert_in_bulk(session);
	else if (what <= 11)
		read_something(session);
	else
		write_something(session);
	session->step++;
}

/* What has committed others may ask for. */
static void
committed(Session *session)
{
	const SessionLog *log = &run.history.sessions[session->number];
	Transaction *transaction = &log->transactions.items[log->transactions.used - 1];

	transaction->commit_sent = session->sent;
	transaction->commit_returned = session->returned;
	transaction->committed = true;
	__atomic_fetch_add(&run.nlive, session->ninserted - session->ndeleted, __ATOMIC_RELAXED);
	for (size_t i = transaction->first_write; i < log->writes.used; i++)
	{
		if (log->writes.items[i].kind != WRITE_NONE)
			make_recent(&log->writes.items[i].row);
	}
	count(COMMITS);
}

static void
end_transaction(Session *session)
{
	bool commit = !session->broken && !session->must_undo && draw(&session->random, 7) != 0;
	PGresult *answer;

	session->broken = false;
	answer = ask(session, commit ? "COMMIT" : "ROLLBACK");
	if (answer && commit && strcmp(PQcmdStatus(answer), "COMMIT") == 0)
		committed(session);
	else
		count(ROLLBACKS);
	PQclear(answer);
}

static void
run_transaction(Session *session)
{
	static const char *const begin[] = { NULL, "BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ",
										 "BEGIN ISOLATION LEVEL SERIALIZABLE" };
	unsigned steps = 1 + skewed(session, 8);
	Transaction *transaction;

	session->isolation = (Isolation) draw(&session->random, 4);
	session->step = 1;
	session->savepoint = 0;
	session->has_snapshot = false;
	session->broken = false;
	session->must_undo = false;
	session->ninserted = session->ndeleted = 0;
	transaction = history_transaction(&run.history, session->number);
	transaction->began = now();
	transaction->serializable = session->isolation == SERIALIZABLE;
	if (session->isolation == AUTOCOMMIT)
	{
		do_step(session);
		if (!session->broken)
			committed(session);
		return;
	}
	command(session, begin[session->isolation]);
	for (unsigned i = 0; i < steps && !session->broken; i++)
		do_step(session);
	end_transaction(session);
}

/* Another way to scan, and on a server with a GPU perhaps another device. */
static void
change_settings(Session *session)
{
	static const char *const scans[] = {
		"SET enable_bitmapscan = off; SET enable_indexscan = on",
		"SET enable_bitmapscan = on; SET enable_indexscan = off",
		"SET enable_bitmapscan = on; SET enable_indexscan = on",
		"SET gpuds.enable_scan = off",
		"SET gpuds.enable_scan = on",
	};
	static const char *const devices[] = { "cuda", "cuda", "auto", "cpu" };
	char text[300];

	snprintf(text, sizeof(text), "SET enable_seqscan = off; SET plan_cache_mode = %s; %s; DISCARD PLANS",
			 draw(&session->random, 4) ? "force_generic_plan" : "auto", scans[draw(&session->random, 5)]);
	command(session, text);
	if (run.cuda)
	{
		snprintf(text, sizeof(text), "SET gpuds.device = %s", devices[draw(&session->random, 4)]);
		command(session, text);
	}
}

static void
start_session(Session *session, int number, PGconn *connection)
{
	memset(session, 0, sizeof(*session));
	session->number = number;
	session->connection = connection;
	session->random = run.seed * 1000 + (uint64_t) number;
}

void *
session_thread(void *number)
{
	Session session;

	start_session(&session, (int) (intptr_t) number, connect_to_server());
	prepare_statements(session.connection);
	for (unsigned i = 0; !stopping() && PQstatus(session.connection) == CONNECTION_OK; i++)
	{
		if (i % 40 == 0)
			change_settings(&session);
		run_transaction(&session);
	}
	if (PQstatus(session.connection) != CONNECTION_OK)
		fail("session %d lost its connection", session.number);
	PQfinish(session.connection);
	return NULL;
}

void
insert_first_rows(PGconn *connection)
{
	Session session;

	start_session(&session, 0, connection);
	session.isolation = AUTOCOMMIT;
	for (int i = 0; i < run.nrows && run.failures == 0; i += MAX_INSERT)
	{
		(void) history_transaction(&run.history, 0);
		session.ninserted = 0;
		insert_rows(&session, MAX_INSERT);
		committed(&session);
	}
}

void
read_all_rows(PGconn *connection)
{
	Condition condition = { .kind = BY_RANGE, .stripe = ANY_STRIPE, .low = 0, .high = run.nkeys };
	Session session;
	char text[32];
	const char *values[2] = { "0", text };
	PGresult *answer;

	start_session(&session, 0, connection);
	session.isolation = AUTOCOMMIT;
	(void) history_transaction(&run.history, 0);
	sprintf(text, "%d", run.nkeys);
	answer = ask_prepared(&session, "by_range", 2, values);
	if (answer)
		note_read(&session, &condition, true, answer);
}
