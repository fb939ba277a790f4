/*-------------------------------------------------------------------------
 *
 * histories.c
 *	  Many sessions write and look up by gpu_btree indexes; is every answer one that
 *	  a snapshot explains?
 *
 *	  usage: histories [--seconds N] [--sessions N] [--seed N] [--keys N] [--rows N]
 *	                   [--device cpu|cuda]
 *
 * Connects as the environment says (PGHOST, PGPORT, PGUSER), to a database in which
 * it makes the table h anew.  The seed says what each session does; what they meet
 * depends on timing.
 *
 *-------------------------------------------------------------------------
 */
#include <getopt.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "checker.h"
#include "sessions.h"

#define MAX_SESSIONS 200
#define SHOWN_FAILURES 10

Run run;

static unsigned passed, failed;

static int64_t
clock_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (int64_t) time.tv_sec * 1000000000 + time.tv_nsec;
}

int64_t
now(void)
{
	return clock_ns() - run.began;
}

unsigned
draw(uint64_t *state, unsigned n)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned) (*state >> 33) % n;
}

bool
stopping(void)
{
	return __atomic_load_n(&run.stopping, __ATOMIC_RELAXED);
}

void
pause_ms(unsigned ms)
{
	struct timespec slice = { .tv_nsec = 10000000 };

	for (unsigned slept = 0; slept < ms && !stopping(); slept += 10)
		nanosleep(&slice, NULL);
}

void
count(Counter counter)
{
	__atomic_fetch_add(&run.counters[counter], 1, __ATOMIC_RELAXED);
}

void
fail(const char *format, ...)
{
	va_list arguments;

	if (__atomic_fetch_add(&run.failures, 1, __ATOMIC_RELAXED) >= SHOWN_FAILURES)
		return;
	flockfile(stdout);
	printf("  at %.3f ms: ", (double) now() / 1e6);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
	funlockfile(stdout);
}

static void
result(bool ok, const char *what)
{
	if (ok)
		passed++;
	else
		failed++;
	printf("%s: %s\n", ok ? "ok" : "NOT OK", what);
}

/*
 * Before
 */

static void
make_table(PGconn *connection)
{
	/* an id is one row's; before 18 there are no unique indexes */
	const char *by_id = PQserverVersion(connection) >= 180000
							? "CREATE UNIQUE INDEX h_id ON h USING gpu_btree (id)"
							: "CREATE INDEX h_id ON h USING gpu_btree (id)";

	if (!execute(connection, "CREATE EXTENSION IF NOT EXISTS gpuds") ||
		!execute(connection, "DROP TABLE IF EXISTS h") ||
		!execute(connection,
				 "CREATE TABLE h (id bigint, key int, stripe bigint, version bigint, previous bigint) "
				 "WITH (fillfactor = 70, autovacuum_enabled = off)") ||
		!execute(connection, by_id) ||
		!execute(connection, "CREATE INDEX h_key ON h USING gpu_btree (key)") ||
		!execute(connection, "CREATE INDEX h_stripe_key ON h USING gpu_btree (stripe, key)"))
		exit(2);
}

/* The statements must use the indexes, by each kind of scan: nothing else is tested here. */
static void
check_plans(PGconn *connection)
{
	static const char *const calls[] = {
		"by_id(1)",           "by_key(1)",   "by_any('{1,2,3}')", "by_range(1, 5)", "by_stripe(1, '{1,2}')",
		"update(1, 1, 1, 1)", "touch(1, 1)", "delete(1)",
	};
	static const char *const kinds[][2] = {
		{ "SET enable_bitmapscan = off", "Index Scan using h_" },
		{ "SET enable_indexscan = off; SET gpuds.enable_scan = off", "Bitmap Index Scan on h_" },
		{ "SET enable_indexscan = off", "Custom Scan (GpudsScan)" },
	};
	bool ok = true;

	for (size_t kind = 0; kind < sizeof(kinds) / sizeof(*kinds); kind++)
	{
		(void) execute(connection, "SET enable_seqscan = off");
		(void) execute(connection, kinds[kind][0]);
		for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		{
			char sql[100], plan[2000] = "";
			PGresult *answer;

			snprintf(sql, sizeof(sql), "EXPLAIN (COSTS off) EXECUTE %s", calls[i]);
			answer = PQexec(connection, sql);
			for (int line = 0; line < PQntuples(answer); line++)
				strncat(plan, PQgetvalue(answer, line, 0), 150);
			if (!strstr(plan, kinds[kind][1]))
			{
				ok = false;
				printf("  %s: %s %s\n", sql, plan, PQerrorMessage(connection));
			}
			PQclear(answer);
		}
		(void) execute(connection, "RESET ALL; SET client_min_messages = error; DISCARD PLANS");
	}
	result(ok, "all statements use gpu_btree, by index scans, bitmap scans and GpudsScan");
}

/* Can this server be told that its device fails? */
static bool
has_faults(PGconn *connection)
{
	PGresult *answer = PQexec(connection, "SELECT 1 FROM pg_settings WHERE name = 'gpuds.device_fault'");
	bool has = PQntuples(answer) == 1;

	PQclear(answer);
	return has;
}

/*
 * Afterwards
 */

/* All rows, in three ways: what is there in the end is part of the history. */
static void
read_in_the_end(PGconn *connection)
{
	static const char *const ways[] = {
		"SET enable_indexscan = off; SET enable_bitmapscan = off",
		"SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexscan = on",
		"SET enable_seqscan = off; SET enable_indexscan = off; SET enable_bitmapscan = on",
	};

	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
	{
		(void) execute(connection, ways[i]);
		(void) execute(connection, "DISCARD PLANS");
		read_all_rows(connection);
	}
}

static void
judge(void)
{
	Verdict verdict;
	char what[300] = "every read is explained by a snapshot, SERIALIZABLE transactions by an order";

	check_history(&run.history, stdout, 5, &verdict);
	printf("%llu reads, %llu rows; %llu rows judged, %llu of them while they changed; %llu dependencies\n",
		   (unsigned long long) verdict.reads, (unsigned long long) verdict.rows,
		   (unsigned long long) verdict.judged, (unsigned long long) verdict.changing,
		   (unsigned long long) verdict.dependencies);
	for (int i = 0; i < NVIOLATIONS; i++)
	{
		if (verdict.found[i] > 0)
			snprintf(what + strlen(what), sizeof(what) - strlen(what), ", %llu %s",
					 (unsigned long long) verdict.found[i], violation_names[i]);
	}
	result(violations(&verdict) == 0, what);
	result(verdict.dependencies > 0, "SERIALIZABLE transactions depended on each other");
}

/* Has everything been done that this server can do?  Conflicts come as they like. */
static bool
all_done(void)
{
	for (int i = 0; i < NCOUNTERS; i++)
	{
		if (__atomic_load_n(&run.counters[i], __ATOMIC_RELAXED) == 0 && i != CONFLICTS &&
			(i != FAULTS || (run.cuda && run.faults)))
			return false;
	}
	return true;
}

static void
show_counters(int sessions)
{
	static const char *const names[NCOUNTERS] = {
		"commits", "rollbacks", "conflicts", "lookups", "reads by cursor", "bulk inserts",
		"VACUUM",  "loads",     "evictions", "DDL",     "checks",          "device lost",
	};

	printf("%d sessions:", sessions);
	for (int i = 0; i < NCOUNTERS; i++)
		printf("%s %llu %s", i > 0 ? "," : "", (unsigned long long) run.counters[i], names[i]);
	printf("\n");
	result(all_done(), "everything was done at least once");
}

static void
run_threads(int sessions, unsigned seconds)
{
	pthread_t threads[MAX_SESSIONS + 16];
	int n = 0;

	for (int i = 0; i < sessions; i++)
		pthread_create(&threads[n++], NULL, session_thread, (void *) (intptr_t) (i + 1));
	for (int i = 0; i < maintenance_threads; i++)
		pthread_create(&threads[n++], NULL, maintenance_thread, (void *) (intptr_t) i);
	pause_ms(seconds * 1000);
	/* A slow machine gets to what is rare later. */
	for (unsigned more = 0; more < 4 * seconds && !all_done(); more++)
		pause_ms(1000);
	__atomic_store_n(&run.stopping, true, __ATOMIC_RELAXED);
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
}

static unsigned
number(const char *text, unsigned low, unsigned high)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*end != '\0' || value < low || value > high)
	{
		fprintf(stderr, "histories: \"%s\" is not a number from %u to %u\n", text, low, high);
		exit(2);
	}
	return (unsigned) value;
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seconds", required_argument, NULL, 's' },
		{ "sessions", required_argument, NULL, 'n' },
		{ "seed", required_argument, NULL, 'e' },
		{ "keys", required_argument, NULL, 'k' },
		{ "rows", required_argument, NULL, 'r' },
		{ "device", required_argument, NULL, 'd' },
		{ NULL, 0, NULL, 0 },
	};
	unsigned seconds = 40;
	int sessions = 12;
	int option;
	PGconn *connection;

	run.seed = 1;
	run.nkeys = 200;
	run.nrows = 1200;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
	{
		switch (option)
		{
			case 's':
				seconds = number(optarg, 1, 100000);
				break;
			case 'n':
				sessions = (int) number(optarg, 1, MAX_SESSIONS);
				break;
			case 'e':
				run.seed = number(optarg, 0, UINT32_MAX);
				break;
			case 'k':
				run.nkeys = (int) number(optarg, 1, 1000000);
				break;
			case 'r':
				run.nrows = (int) number(optarg, 1, 1000000);
				break;
			case 'd':
				run.cuda = strcmp(optarg, "cuda") == 0;
				break;
			default:
				return 2;
		}
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	run.began = clock_ns();
	history_init(&run.history, sessions + 1, run.nkeys);
	connection = connect_to_server();
	make_table(connection);
	prepare_statements(connection);
	run.faults = has_faults(connection);
	insert_first_rows(connection);
	check_plans(connection);
	printf("seed %llu, %u s\n", (unsigned long long) run.seed, seconds);
	run_threads(sessions, seconds);
	read_in_the_end(connection);
	result(
		execute(
			connection,
			"SELECT gpuds_index_check(i::regclass, true) FROM unnest('{h_id,h_key,h_stripe_key}'::text[]) i"),
		"the indexes pass gpuds_index_check");
	show_counters(sessions);
	judge();
	result(run.failures == 0, "no unexpected errors");
	PQfinish(connection);
	history_free(&run.history);
	printf("%u passed, %u failed\n", passed, failed);
	return failed != 0;
}
