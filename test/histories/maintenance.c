/*-------------------------------------------------------------------------
 *
 * maintenance.c
 *	  What happens to the indexes while sessions use them: VACUUM, loads and
 *	  evictions, new files, checks, and the loss of the device.
 *
 *-------------------------------------------------------------------------
 */
#include "sessions.h"

#include <stdio.h>
#include <string.h>

typedef struct Maintenance
{
	PGconn *connection;
	uint64_t random;
} Maintenance;

static const char *const indexes[] = { "h_id", "h_key", "h_stripe_key" };

static const char *
some_index(Maintenance *maintenance)
{
	return indexes[draw(&maintenance->random, 3)];
}

/*
 * Errors that are nobody's fault: a deadlock with sessions that write and then read, and an index whose file
 * or name another thread changes at this moment.  The one that REINDEX CONCURRENTLY has just replaced is
 * there for a while, and not valid.
 */
static bool
is_expected(const PGresult *answer)
{
	const char *state = PQresultErrorField(answer, PG_DIAG_SQLSTATE);
	const char *message = PQresultErrorField(answer, PG_DIAG_MESSAGE_PRIMARY);

	return state &&
		   (strcmp(state, "40P01") == 0 || strcmp(state, "42P01") == 0 || strcmp(state, "42704") == 0 ||
			strcmp(state, "42P07") == 0 || strncmp(message, "could not open relation with OID", 32) == 0 ||
			(strcmp(state, "55000") == 0 && strstr(message, "\" is not valid")));
}

/* Executes a statement; returns whether it succeeded.  Unexpected errors are failures. */
static bool
attempt(Maintenance *maintenance, const char *sql)
{
	PGresult *answer = PQexec(maintenance->connection, sql);
	bool ok = PQresultStatus(answer) == PGRES_COMMAND_OK || PQresultStatus(answer) == PGRES_TUPLES_OK;

	if (!ok && !is_expected(answer))
		fail("%s: %s", sql, PQerrorMessage(maintenance->connection));
	PQclear(answer);
	return ok;
}

/* Dead rows go from the indexes each time, however few: their TIDs are used again at once. */
static void
vacuum(Maintenance *maintenance)
{
	if (attempt(maintenance, "VACUUM (INDEX_CLEANUP on, TRUNCATE off) h"))
		count(VACUUMS);
	pause_ms(draw(&maintenance->random, 60));
}

static void
load_or_evict(Maintenance *maintenance)
{
	bool load = draw(&maintenance->random, 2) == 0;
	char sql[100];

	if (run.cuda)
		(void) attempt(maintenance,
					   draw(&maintenance->random, 3) ? "SET gpuds.device = cuda" : "SET gpuds.device = cpu");
	snprintf(sql, sizeof(sql), "SELECT gpuds_index_%s('%s')", load ? "load" : "evict",
			 some_index(maintenance));
	if (attempt(maintenance, sql))
		count(load ? LOADS : EVICTIONS);
	pause_ms(draw(&maintenance->random, 120));
}

/* What a deadlock has left of CREATE INDEX or REINDEX CONCURRENTLY. */
static void
drop_invalid_indexes(Maintenance *maintenance)
{
	PGresult *answer = PQexec(maintenance->connection,
							  "SELECT format('DROP INDEX CONCURRENTLY IF EXISTS %I', indexrelid::regclass) "
							  "FROM pg_index WHERE indrelid = 'h'::regclass AND NOT indisvalid");

	for (int i = 0; i < PQntuples(answer); i++)
		(void) attempt(maintenance, PQgetvalue(answer, i, 0));
	PQclear(answer);
}

static void
make_index(Maintenance *maintenance)
{
	static const char *const forms[] = {
		"REINDEX INDEX %s",
		"REINDEX INDEX CONCURRENTLY %s",
		"CREATE INDEX CONCURRENTLY h_more ON h USING gpu_btree (key)",
		"DROP INDEX CONCURRENTLY IF EXISTS h_more",
	};
	char sql[100];

	/* The others have no place for the name */
	snprintf(sql, sizeof(sql), forms[draw(&maintenance->random, 4)], some_index(maintenance));
	if (attempt(maintenance, sql))
		count(DDL);
	else
		drop_invalid_indexes(maintenance);
	pause_ms(200 + draw(&maintenance->random, 600));
}

static void
check_index(Maintenance *maintenance)
{
	char sql[100];

	snprintf(sql, sizeof(sql), "SELECT gpuds_index_check('%s', true)", some_index(maintenance));
	if (attempt(maintenance, sql))
		count(CHECKS);
	pause_ms(300 + draw(&maintenance->random, 500));
}

/* The device is lost under this session's lookup; another worker opens it again. */
static void
lose_device(Maintenance *maintenance)
{
	pause_ms(2000 + draw(&maintenance->random, 2500));
	if (!run.cuda || !run.faults || stopping())
		return;
	if (attempt(maintenance,
				"SET gpuds.device = cuda; SET enable_seqscan = off; SET gpuds.device_fault = sticky") &&
		attempt(maintenance, "SELECT count(*) FROM h WHERE key = 1"))
		count(FAULTS);
}

typedef void (*Task)(Maintenance *maintenance);

static const Task tasks[] = { vacuum, load_or_evict, make_index, check_index, lose_device };
const int maintenance_threads = sizeof(tasks) / sizeof(*tasks);

void *
maintenance_thread(void *what)
{
	int number = (int) (intptr_t) what;
	Maintenance maintenance = { .connection = connect_to_server(),
								.random = run.seed * 77 + (uint64_t) number };

	while (!stopping())
		tasks[number](&maintenance);
	PQfinish(maintenance.connection);
	return NULL;
}
