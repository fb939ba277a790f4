/*-------------------------------------------------------------------------
 *
 * sessions.h
 *	  What the threads of a run share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SESSIONS_H
#define SESSIONS_H

#include <libpq-fe.h>

#include "history.h"

#define RECENT 64  /* rows that were written last */
#define KNOWN 4096 /* ids of rows that were inserted, perhaps gone */
#define NSTRIPES 4

/* What was done, to show that all of it was. */
typedef enum Counter
{
	COMMITS,
	ROLLBACKS,
	CONFLICTS, /* transactions that failed as they may: serialization, deadlock */
	LOOKUPS,
	CURSORS,
	BULKS,
	VACUUMS,
	LOADS,
	EVICTIONS,
	DDL,
	CHECKS,
	FAULTS,
	NCOUNTERS
} Counter;

typedef struct Run
{
	History history;
	int nkeys;
	int nrows; /* that the table is kept at */
	bool cuda;
	bool faults; /* the server can be told that the device fails */
	uint64_t seed;
	int64_t began;
	bool stopping;
	int nlive;
	unsigned recent; /* written so far */
	int32_t recent_keys[RECENT];
	int64_t recent_ids[RECENT];
	unsigned known;
	int64_t known_ids[KNOWN];
	uint64_t counters[NCOUNTERS];
	unsigned failures;
} Run;

extern Run run;

/* Nanoseconds since the run began. */
extern int64_t now(void);

/* A number below n. */
extern unsigned draw(uint64_t *state, unsigned n);

/* Waits for about so many milliseconds, less if the run ends. */
extern void pause_ms(unsigned ms);

/* Notes that something went wrong that must not; the first few are shown. */
extern void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

extern bool stopping(void);
extern void count(Counter counter);

/* A connection, or the end of the program. */
extern PGconn *connect_to_server(void);

/* Prepares what sessions execute; the table must be there. */
extern void prepare_statements(PGconn *connection);

/* Executes statements, whose errors are failures unless it is said that they may fail; returns success. */
extern bool execute(PGconn *connection, const char *sql);

/* Inserts the first rows, as session 0. */
extern void insert_first_rows(PGconn *connection);

/* Reads all rows in the way the connection is set to, as session 0. */
extern void read_all_rows(PGconn *connection);

/* A session's thread; the argument is its number. */
extern void *session_thread(void *number);

/* The threads that do something to the indexes; the argument is the number of what they do. */
extern void *maintenance_thread(void *what);
extern const int maintenance_threads;

#endif
