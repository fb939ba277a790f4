/*-------------------------------------------------------------------------
 *
 * checker_test.c
 *	  Does the checker find what is wrong, and nothing else?
 *
 * First histories made by hand, each right in one form and wrong in another.  Then
 * random histories of a database that is simulated here: snapshots are right by
 * construction, so the checker must not complain.  Each history is then falsified in
 * one place, in a way that no snapshot explains, and the checker must find it.
 *
 *	  usage: checker_test [histories [seed]]
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "checker.h"

static int passed, failed;

static void
result(bool ok, const char *what)
{
	if (ok)
		passed++;
	else
	{
		failed++;
		printf("NOT OK: %s\n", what);
	}
}

/* Judges a history: what is found, NVIOLATIONS for nothing, and whether it is all of that kind. */
static Violation
judged(History *history, bool *pure)
{
	Violation found = NVIOLATIONS;
	Verdict verdict;

	check_history(history, stdout, 0, &verdict);
	for (int i = NVIOLATIONS - 1; i >= 0; i--)
	{
		if (verdict.found[i] > 0)
			found = (Violation) i;
	}
	if (pure)
		*pure = found == NVIOLATIONS || verdict.found[found] == violations(&verdict);
	return found;
}

/*
 * By hand: session 0 and 1 write, session 2 reads; times are small numbers
 */

static History hand;

/* A transaction of one write by a session; returns the version.  returned = 0: rolled back. */
static int64_t
wrote(int session, WriteKind kind, const Row *before, int32_t key, int64_t sent, int64_t returned)
{
	Transaction *transaction = history_transaction(&hand, session);
	Write *write = history_write(&hand, session, 1);

	transaction->committed = returned != 0;
	transaction->commit_sent = sent;
	transaction->commit_returned = returned;
	write->kind = kind;
	write->row.key = key;
	write->row.previous = before ? before->version : 0;
	write->row.id = before ? before->id : write->row.version;
	return write->row.version;
}

static Row
row_of(int64_t version)
{
	return history_find(&hand, version)->row;
}

/* The transaction goes on with another write. */
static int64_t
wrote_too(int session, uint32_t step, int32_t key)
{
	Write *write = history_write(&hand, session, step);

	write->kind = WRITE_INSERT;
	write->row.key = key;
	write->row.id = write->row.version;
	return write->row.version;
}

static void
asked(int64_t sent, int64_t returned, int32_t low, int32_t high)
{
	Condition condition = { .kind = BY_RANGE, .stripe = ANY_STRIPE, .low = low, .high = high };

	if (sent >= 0)
	{
		(void) history_transaction(&hand, 2);
		(void) history_snapshot(&hand, 2, sent, returned);
	}
	(void) history_read(&hand, 2, 1, &condition);
}

static void
saw(int64_t version)
{
	Row row = row_of(version);

	history_row(&hand, 2, &row);
}

/* The history so far must be judged so; a new one begins. */
static void
expect(Violation wanted, const char *what)
{
	bool pure;

	result(judged(&hand, &pure) == wanted && pure, what);
	history_free(&hand);
	history_init(&hand, 3, 10);
}

static void
by_hand_simple(void)
{
	int64_t a, b;
	Row row;

	/* One row, committed from 10 to 20 */
	wrote(0, WRITE_INSERT, NULL, 5, 10, 20);
	asked(21, 30, 5, 5);
	expect(MISSING, "a row committed before is missing");
	wrote(0, WRITE_INSERT, NULL, 5, 10, 20);
	asked(19, 30, 5, 5);
	expect(NVIOLATIONS, "a row whose commit was under way may be missing");
	a = wrote(0, WRITE_INSERT, NULL, 5, 10, 20);
	asked(1, 9, 5, 5);
	saw(a);
	expect(PREMATURE, "a row is shown before its commit was sent");
	a = wrote(0, WRITE_INSERT, NULL, 5, 10, 20);
	asked(1, 11, 5, 5);
	saw(a);
	expect(NVIOLATIONS, "a row whose commit was under way may be shown");
	a = wrote(0, WRITE_INSERT, NULL, 5, 10, 0);
	asked(21, 30, 5, 5);
	saw(a);
	expect(ROLLED_BACK, "a row that was rolled back is shown");
	wrote(0, WRITE_INSERT, NULL, 5, 10, 0);
	asked(21, 30, 5, 5);
	expect(NVIOLATIONS, "a row that was rolled back is not shown");

	/* The wrong row */
	a = wrote(0, WRITE_INSERT, NULL, 5, 10, 20);
	asked(21, 30, 6, 6);
	saw(a);
	expect(UNASKED, "a row with another key is shown");
	a = wrote(0, WRITE_INSERT, NULL, 5, 10, 20);
	asked(21, 30, 5, 5);
	saw(a);
	saw(a);
	expect(DUPLICATE, "a row is shown twice");
	a = wrote(0, WRITE_INSERT, NULL, 5, 10, 20);
	asked(21, 30, 4, 6);
	row = row_of(a);
	row.key = 6;
	history_row(&hand, 2, &row);
	expect(ALTERED, "a row is shown with another key than it has");
	a = wrote(0, WRITE_INSERT, NULL, 5, 10, 20);
	asked(21, 30, 4, 6);
	row = row_of(a);
	row.version += 1;
	history_row(&hand, 2, &row);
	expect(UNKNOWN_ROW, "a row is shown that nobody wrote");
	a = wrote(0, WRITE_INSERT, NULL, 5, 10, 20);
	b = wrote(0, WRITE_INSERT, NULL, 4, 30, 40);
	asked(50, 60, 4, 6);
	saw(a);
	saw(b);
	hand.sessions[2].reads.items[0].ordered = true;
	expect(UNORDERED, "keys must ascend");
}

static void
by_hand_chains(void)
{
	int64_t a, b;
	Row row;

	/* Updated from key 5 to 6, committed from 30 to 40 */
	for (int wrong = 0; wrong < 2; wrong++)
	{
		a = wrote(0, WRITE_INSERT, NULL, 5, 10, 20);
		row = row_of(a);
		wrote(1, WRITE_UPDATE, &row, 6, 30, 40);
		asked(wrong ? 41 : 39, 50, 5, 5);
		saw(a);
		expect(wrong ? STALE : NVIOLATIONS, "a version that was replaced");

		a = wrote(0, WRITE_INSERT, NULL, 5, 10, 20);
		row = row_of(a);
		wrote(1, WRITE_DELETE, &row, 0, 30, 40);
		asked(wrong ? 41 : 39, 50, 5, 5);
		saw(a);
		expect(wrong ? STALE : NVIOLATIONS, "a row that was deleted");

		/* While the update commits: the old one or the new one, not none and not both */
		a = wrote(0, WRITE_INSERT, NULL, 5, 10, 20);
		row = row_of(a);
		b = wrote(1, WRITE_UPDATE, &row, 6, 30, 40);
		asked(35, 36, 5, 6);
		if (!wrong)
			saw(b);
		expect(wrong ? MISSING : NVIOLATIONS, "one of the versions must be shown");
		a = wrote(0, WRITE_INSERT, NULL, 5, 10, 20);
		row = row_of(a);
		b = wrote(1, WRITE_UPDATE, &row, 6, 30, 40);
		asked(35, 36, 5, 6);
		saw(a);
		if (wrong)
			saw(b);
		expect(wrong ? DUPLICATE : NVIOLATIONS, "both versions must not be shown");

		/* Two rows of one transaction that is under way */
		a = wrote(0, WRITE_INSERT, NULL, 5, 10, 20);
		b = wrote_too(0, 2, 6);
		asked(15, 16, 5, 6);
		saw(a);
		if (!wrong)
			saw(b);
		expect(wrong ? INCONSISTENT : NVIOLATIONS, "half of a transaction is shown");

		/* The earlier of two is missing, the later is shown */
		a = wrote(0, WRITE_INSERT, NULL, 5, 10, 20);
		b = wrote(1, WRITE_INSERT, NULL, 6, 21, 30);
		asked(15, 25, 5, 6);
		if (!wrong)
			saw(a);
		saw(b);
		expect(wrong ? INCONSISTENT : NVIOLATIONS, "a later commit is shown without an earlier one");

		/* REPEATABLE READ: two reads in one snapshot */
		a = wrote(0, WRITE_INSERT, NULL, 5, 10, 20);
		asked(15, 16, 5, 5);
		if (wrong)
			saw(a);
		asked(-1, -1, 5, 5);
		if (!wrong)
			hand.sessions[2].reads.items[1].nrows = 0;
		expect(wrong ? INCONSISTENT : NVIOLATIONS, "two reads in one snapshot disagree");

		/* Lost update */
		a = wrote(0, WRITE_INSERT, NULL, 5, 10, 20);
		row = row_of(a);
		wrote(1, WRITE_UPDATE, &row, 6, 30, 40);
		wrote(0, WRITE_UPDATE, &row, 7, 50, wrong ? 60 : 0);
		expect(wrong ? LOST_UPDATE : NVIOLATIONS, "a version was replaced twice");
	}
}

/* A SERIALIZABLE transaction begins: it reads the keys from low to high at sent, and commits. */
static void
reads(int session, int32_t low, int32_t high, int64_t sent, int64_t commit_sent)
{
	Condition condition = { .kind = BY_RANGE, .stripe = ANY_STRIPE, .low = low, .high = high };
	Transaction *transaction = history_transaction(&hand, session);

	transaction->serializable = transaction->committed = true;
	transaction->began = sent;
	transaction->commit_sent = commit_sent;
	transaction->commit_returned = commit_sent + 1;
	(void) history_snapshot(&hand, session, sent, sent + 1);
	(void) history_read(&hand, session, 1, &condition);
}

/* One that reads a key, of which there is no row, and inserts another. */
static int64_t
reads_and_writes(int session, int32_t key, int64_t sent, int32_t written, int64_t commit_sent)
{
	reads(session, key, key, sent, commit_sent);
	return wrote_too(session, 2, written);
}

/*
 * One reads a row and inserts a key; another looks for that key, in vain, and writes the row.  A third has
 * written the row between the two.
 */
static void
written_between(bool serializable)
{
	const Row first = row_of(wrote(0, WRITE_INSERT, NULL, 5, 1, 2));
	Write *last;

	reads(2, 5, 5, 10, 40);
	saw(first.version);
	wrote_too(2, 2, 1);
	wrote(0, WRITE_UPDATE, &first, 5, 15, 16);
	hand.sessions[0].transactions.items[1].serializable = serializable;
	reads(1, 1, 1, 20, 30);
	last = history_write(&hand, 1, 2);
	last->kind = WRITE_UPDATE;
	last->row.id = first.id;
	last->row.key = 5;
	last->row.previous = hand.sessions[0].writes.items[1].row.version;
}

static void
by_hand_serializable(void)
{
	reads_and_writes(0, 1, 10, 2, 20);
	reads_and_writes(1, 2, 11, 1, 21);
	expect(CYCLE, "two that each insert what the other looked for");

	reads_and_writes(0, 1, 10, 2, 20);
	reads_and_writes(1, 2, 11, 1, 21);
	hand.sessions[1].transactions.items[0].serializable = false;
	expect(NVIOLATIONS, "one of them is not SERIALIZABLE");

	reads_and_writes(0, 1, 10, 2, 20);
	reads_and_writes(1, 2, 11, 1, 21);
	hand.sessions[1].transactions.items[0].committed = false;
	expect(NVIOLATIONS, "one of them is rolled back");

	reads_and_writes(0, 1, 10, 2, 20);
	reads_and_writes(1, 3, 11, 1, 21);
	expect(NVIOLATIONS, "one inserts what the other looked for");

	reads_and_writes(0, 1, 10, 2, 20);
	reads_and_writes(1, 2, 11, 3, 21);
	reads_and_writes(2, 3, 12, 1, 22);
	expect(CYCLE, "three in a circle");

	reads_and_writes(0, 1, 10, 2, 30);
	reads(1, 3, 3, 10, 12);
	reads(2, 1, 2, 20, 22);
	saw(wrote_too(1, 2, 1));
	expect(CYCLE, "a reader sees an order that was not");

	reads_and_writes(0, 1, 10, 2, 30);
	reads(1, 3, 3, 10, 12);
	reads(2, 1, 1, 20, 22);
	saw(wrote_too(1, 2, 1));
	expect(NVIOLATIONS, "a reader cannot tell the order");

	written_between(true);
	expect(CYCLE, "a circle of three by one row and a key");

	written_between(false);
	expect(NVIOLATIONS, "who came between two is not SERIALIZABLE");
}

static void
by_hand_own(void)
{
	Condition condition = { .kind = BY_RANGE, .stripe = ANY_STRIPE, .low = 5, .high = 5 };
	int64_t a;

	/* A transaction's own rows, before it commits and beside a savepoint */
	for (int form = 0; form < 4; form++)
	{
		bool undone = form >= 2;
		bool shown = form % 2 != 0;
		Row row;

		a = wrote(0, WRITE_INSERT, NULL, 5, 90, 99);
		row = row_of(a);
		if (undone)
			history_undo(&hand, 0, 0, 2);
		(void) history_snapshot(&hand, 0, 10, 20);
		(void) history_read(&hand, 0, 3, &condition);
		if (shown)
			history_row(&hand, 0, &row);
		expect(shown != undone ? NVIOLATIONS : undone ? ROLLED_BACK : MISSING, "a transaction's own row");
	}
}

/*
 * A simulated database
 */

#define SESSIONS 6
#define KEYS 12
#define ROWS 300
#define OWN 8

static uint64_t random_state;

static unsigned
draw(unsigned n)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned) (random_state >> 33) % n;
}

/* By row: its version that is committed, with kind WRITE_NONE where there is none. */
typedef struct State
{
	int64_t version[ROWS];
} State;

typedef struct Simulated
{
	enum
	{
		IDLE,
		RUNNING,
		READING,
		COMMITTING,
		COMMITTED
	} doing;
	bool repeatable;
	bool has_snapshot;
	State snapshot;
	State own; /* 0: not touched, else the version, negative if deleted */
	uint32_t step;
	uint32_t savepoint;
	int64_t sent;
	State own_at_savepoint;
} Simulated;

typedef struct Simulation
{
	History history;
	State committed;
	int locked_by[ROWS]; /* session + 1 */
	int nrows;
	int64_t clock;
	Simulated sessions[SESSIONS];
} Simulation;

static Transaction *
last_transaction(Simulation *simulation, int me)
{
	SessionLog *log = &simulation->history.sessions[me];

	return &log->transactions.items[log->transactions.used - 1];
}

static void
simulate_write(Simulation *simulation, int me)
{
	Simulated *session = &simulation->sessions[me];
	int row = (int) draw(ROWS);
	int64_t before;
	Write *write;

	if (draw(3) == 0 && simulation->nrows < ROWS)
		row = simulation->nrows++;
	else if (row >= simulation->nrows)
		return;
	if (simulation->locked_by[row] != 0 && simulation->locked_by[row] != me + 1)
		return;
	before = session->own.version[row] ? session->own.version[row] : simulation->committed.version[row];
	if (session->has_snapshot && session->repeatable && session->own.version[row] == 0 &&
		session->snapshot.version[row] != simulation->committed.version[row])
		return;
	if (before < 0 || (before == 0 && row != simulation->nrows - 1))
		return;
	simulation->locked_by[row] = me + 1;
	write = history_write(&simulation->history, me, session->step++);
	write->kind = before == 0 ? WRITE_INSERT : draw(4) == 0 ? WRITE_DELETE : WRITE_UPDATE;
	write->row.previous = before;
	write->row.id = before ? history_find(&simulation->history, before)->row.id : write->row.version;
	write->row.key = (int32_t) draw(KEYS);
	session->own.version[row] = write->kind == WRITE_DELETE ? -write->row.version : write->row.version;
}

/* The read takes effect now; its answer arrives later. */
static void
simulate_read(Simulation *simulation, int me)
{
	Simulated *session = &simulation->sessions[me];
	Condition condition = { .kind = BY_RANGE, .stripe = ANY_STRIPE };

	condition.low = (int32_t) draw(KEYS);
	condition.high = condition.low + (int32_t) draw(4);
	if (!session->repeatable || !session->has_snapshot)
	{
		session->snapshot = simulation->committed;
		(void) history_snapshot(&simulation->history, me, session->sent, 0);
		session->has_snapshot = true;
	}
	(void) history_read(&simulation->history, me, session->step++, &condition);
	for (int row = 0; row < simulation->nrows; row++)
	{
		int64_t version = session->own.version[row] ? session->own.version[row]
													: session->snapshot.version[row];

		if (version > 0 && history_matches(&simulation->history, me, &condition,
										   &history_find(&simulation->history, version)->row))
			history_row(&simulation->history, me, &history_find(&simulation->history, version)->row);
	}
}

static void
unlock_rows(Simulation *simulation, int me)
{
	for (int row = 0; row < simulation->nrows; row++)
	{
		if (simulation->locked_by[row] == me + 1)
			simulation->locked_by[row] = 0;
	}
}

static void
simulate_savepoint(Simulation *simulation, int me)
{
	Simulated *session = &simulation->sessions[me];

	if (draw(2) == 0)
	{
		session->savepoint = session->step++;
		session->own_at_savepoint = session->own;
	}
	else
	{
		history_undo(&simulation->history, me, session->savepoint, session->step++);
		session->own = session->own_at_savepoint;
	}
}

static void
simulate_begin(Simulation *simulation, int me)
{
	Simulated *session = &simulation->sessions[me];

	memset(session, 0, sizeof(*session));
	session->repeatable = draw(2) != 0;
	session->step = 2;
	session->savepoint = 1;
	session->doing = RUNNING;
	(void) history_transaction(&simulation->history, me);
}

static void
simulate_commit(Simulation *simulation, int me)
{
	Simulated *session = &simulation->sessions[me];

	for (int row = 0; row < simulation->nrows; row++)
	{
		if (session->own.version[row])
			simulation->committed.version[row] = session->own.version[row];
	}
	unlock_rows(simulation, me);
}

/* One session does one thing that others may see apart. */
static void
simulate_step(Simulation *simulation, int me)
{
	Simulated *session = &simulation->sessions[me];
	SessionLog *log = &simulation->history.sessions[me];
	Transaction *transaction;

	simulation->clock++;
	switch (session->doing)
	{
		case IDLE:
			simulate_begin(simulation, me);
			break;
		case RUNNING:
			switch (draw(9))
			{
				case 0:
					last_transaction(simulation, me)->commit_sent = simulation->clock;
					session->doing = COMMITTING;
					break;
				case 1:
					if (draw(3) == 0)
					{
						unlock_rows(simulation, me);
						session->doing = IDLE;
					}
					break;
				case 2:
					simulate_savepoint(simulation, me);
					break;
				case 3:
				case 4:
					simulate_write(simulation, me);
					break;
				default:
					session->sent = simulation->clock;
					session->doing = READING;
					break;
			}
			break;
		case READING:
			simulate_read(simulation, me);
			if (log->snapshots.items[log->snapshots.used - 1].returned == 0)
				log->snapshots.items[log->snapshots.used - 1].returned = ++simulation->clock;
			session->doing = RUNNING;
			break;
		case COMMITTING:
			simulate_commit(simulation, me);
			session->doing = COMMITTED;
			break;
		case COMMITTED:
			transaction = last_transaction(simulation, me);
			transaction->commit_returned = simulation->clock;
			transaction->committed = true;
			session->doing = IDLE;
			break;
	}
}

/* A right history of that seed. */
static void
simulate(Simulation *simulation, uint64_t seed)
{
	random_state = seed;
	memset(simulation, 0, sizeof(*simulation));
	history_init(&simulation->history, SESSIONS, KEYS);
	for (int i = 0; i < 4000; i++)
		simulate_step(simulation, (int) draw(SESSIONS));
	/* A commit that took effect must be known to have */
	for (int me = 0; me < SESSIONS; me++)
	{
		while (simulation->sessions[me].doing == COMMITTING || simulation->sessions[me].doing == COMMITTED)
			simulate_step(simulation, me);
	}
}

/*
 * Falsified
 */

static Read *
random_read(History *history)
{
	SessionLog *log;

	do
		log = &history->sessions[draw(SESSIONS)];
	while (log->reads.used == 0);
	return &log->reads.items[draw((unsigned) log->reads.used)];
}

static bool
committed(const History *history, const Write *write)
{
	return write->kind != WRITE_NONE && write->undone == NO_STEP && history_writer(history, write)->committed;
}

/* What replaced a version and committed, NULL if nothing did. */
static const Write *
replaced_by(const History *history, const Write *write)
{
	for (int session = 0; session < SESSIONS; session++)
	{
		for (size_t i = 0; i < history->sessions[session].writes.used; i++)
		{
			const Write *other = &history->sessions[session].writes.items[i];

			if (other->kind != WRITE_INSERT && other->row.previous == write->row.version &&
				committed(history, other))
				return other;
		}
	}
	return NULL;
}

static bool
same_transaction(const Read *read, const Write *write)
{
	return read->session == write->session && read->transaction == write->transaction;
}

/* Puts a row in the place of the first one that the read shows; false: it shows none. */
static bool
show_instead(History *history, const Read *read, const Row *row)
{
	if (read->nrows == 0)
		return false;
	history->sessions[read->session].rows.items[read->first_row] = *row;
	return true;
}

/* A row that must be shown is not; false: there is none in this read. */
static bool
drop_row(History *history, Read *read)
{
	const SessionLog *log = &history->sessions[read->session];
	const Snapshot *snapshot = &log->snapshots.items[read->snapshot];
	Row *last;
	const Write *write;
	const Write *next;

	if (read->nrows == 0)
		return false;
	last = &log->rows.items[read->first_row + read->nrows - 1];
	write = history_find(history, last->version);
	next = replaced_by(history, write);
	if (!same_transaction(read, write) &&
		(history_writer(history, write)->commit_returned > snapshot->sent ||
		 (next && (same_transaction(read, next) ||
				   history_writer(history, next)->commit_sent <= snapshot->returned))))
		return false;
	read->nrows--;
	return true;
}

/* A row that must not be shown is, for this reason; false: there is none. */
static bool
show_wrong_row(History *history, const Read *read, Violation reason)
{
	const Snapshot *snapshot = &history->sessions[read->session].snapshots.items[read->snapshot];

	for (int session = 0; session < SESSIONS; session++)
	{
		for (size_t i = 0; i < history->sessions[session].writes.used; i++)
		{
			const Write *write = &history->sessions[session].writes.items[i];
			const Write *next;
			bool fits = false;

			if (write->kind == WRITE_NONE || write->kind == WRITE_DELETE || same_transaction(read, write) ||
				!history_matches(history, read->session, &read->condition, &write->row))
				continue;
			next = replaced_by(history, write);
			if (reason == ROLLED_BACK)
				fits = !committed(history, write);
			else if (reason == PREMATURE)
				fits = committed(history, write) &&
					   history_writer(history, write)->commit_sent > snapshot->returned;
			else if (reason == STALE)
				fits = committed(history, write) && next &&
					   history_writer(history, next)->commit_returned < snapshot->sent;
			if (fits && draw(3) == 0)
				return show_instead(history, read, &write->row);
		}
	}
	return false;
}

static bool
falsify(History *history, Read *read, Violation reason)
{
	SessionLog *log = &history->sessions[read->session];
	Row row;

	switch (reason)
	{
		case MISSING:
			return drop_row(history, read);
		case DUPLICATE:
			if (read->nrows < 2)
				return false;
			row = log->rows.items[read->first_row + 1];
			return show_instead(history, read, &row);
		case ALTERED:
			if (read->nrows == 0)
				return false;
			row = log->rows.items[read->first_row];
			row.previous++;
			return show_instead(history, read, &row);
		default:
			return show_wrong_row(history, read, reason);
	}
}

/* One random history, as it is and falsified; returns how many falsifications were made. */
static int
random_history(uint64_t seed)
{
	static const Violation reasons[] = { MISSING, STALE, PREMATURE, ROLLED_BACK, DUPLICATE, ALTERED };
	static Simulation simulation;
	char what[80];
	int made = 0;

	simulate(&simulation, seed);
	snprintf(what, sizeof(what), "seed %llu: a right history", (unsigned long long) seed);
	result(judged(&simulation.history, NULL) == NVIOLATIONS, what);
	history_free(&simulation.history);
	for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
	{
		bool done = false;

		simulate(&simulation, seed);
		for (int attempt = 0; attempt < 200 && !done; attempt++)
			done = falsify(&simulation.history, random_read(&simulation.history), reasons[i]);
		if (done)
		{
			made++;
			snprintf(what, sizeof(what), "seed %llu: %s is not found", (unsigned long long) seed,
					 violation_names[reasons[i]]);
			result(judged(&simulation.history, NULL) != NVIOLATIONS, what);
		}
		history_free(&simulation.history);
	}
	return made;
}

int
main(int argc, char **argv)
{
	int histories = argc > 1 ? atoi(argv[1]) : 60;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	int made = 0;

	history_init(&hand, 3, 10);
	by_hand_simple();
	by_hand_chains();
	by_hand_own();
	by_hand_serializable();
	history_free(&hand);
	for (int i = 0; i < histories; i++)
		made += random_history(seed + (uint64_t) i);
	result(made >= histories * 4, "too few histories could be falsified");
	printf("%d histories, %d falsified\n", histories, made);
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
