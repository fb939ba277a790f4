/*-------------------------------------------------------------------------
 *
 * libpq.c
 *	  Sends a batch of keys from C: as a binary array, as text, and to gpuds_contains.
 *
 * An array on the wire has a header of five numbers of 4 bytes (dimensions, whether there are NULLs, the
 * elements' type, how many, the first one's index), and each element is its length and its bytes.  All
 * numbers are in network order.
 *
 *	  libpq NKEYS		connects as PGHOST, PGPORT, ... say; prints "form answer milliseconds"
 *
 *-------------------------------------------------------------------------
 */
#include <arpa/inet.h>
#include <endian.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <libpq-fe.h>

#define INT8_OID 20
#define INT8_ARRAY_OID 1016

#define ARRAY_HEADER 20
#define ARRAY_ELEMENT 12

#define EXECUTIONS 10

static void
fail(PGconn *conn)
{
	fprintf(stderr, "%s", PQerrorMessage(conn));
	exit(1);
}

static double
now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static char *
put_int4(char *to, uint32_t value)
{
	value = htonl(value);
	memcpy(to, &value, sizeof(value));
	return to + sizeof(value);
}

/* The keys as PostgreSQL takes a bigint[] in binary; *size: its bytes. */
static char *
binary_array(const int64_t *keys, int n, int *size)
{
	char *array = malloc(ARRAY_HEADER + (size_t) n * ARRAY_ELEMENT);
	char *at = array;

	at = put_int4(at, 1); /* dimension */
	at = put_int4(at, 0); /* no NULLs */
	at = put_int4(at, INT8_OID);
	at = put_int4(at, n);
	at = put_int4(at, 1); /* number of the first element */
	for (int i = 0; i < n; i++)
	{
		uint64_t key = htobe64((uint64_t) keys[i]);

		at = put_int4(at, sizeof(key));
		memcpy(at, &key, sizeof(key));
		at += sizeof(key);
	}
	*size = (int) (at - array);
	return array;
}

/* The same as text: {1,2,3}. */
static char *
text_array(const int64_t *keys, int n)
{
	char *array = malloc((size_t) n * 21 + 3);
	char *at = array;

	for (int i = 0; i < n; i++)
		at += sprintf(at, "%c%lld", i == 0 ? '{' : ',', (long long) keys[i]);
	strcpy(at, "}");
	return array;
}

/* The result of a statement; *ms: the time of the fastest of some executions. */
static PGresult *
run(PGconn *conn, const char *statement, const char *value, int size, int binary, double *ms)
{
	PGresult *result = NULL;

	for (int i = 0; i < EXECUTIONS; i++)
	{
		const double began = now_ms();
		double took;

		PQclear(result);
		result = PQexecPrepared(conn, statement, 1, &value, &size, &binary, binary);
		took = now_ms() - began;
		if (i == 0 || took < *ms)
			*ms = took;
		if (PQresultStatus(result) != PGRES_TUPLES_OK)
			fail(conn);
	}
	return result;
}

/* A number of 8 bytes of a binary answer. */
static long long
int8_at(const PGresult *result, int column)
{
	uint64_t value;

	memcpy(&value, PQgetvalue(result, 0, column), sizeof(value));
	return (long long) be64toh(value);
}

/* How many elements of a binary boolean[] are true. */
static int
count_true(const PGresult *result)
{
	const char *array = PQgetvalue(result, 0, 0);
	uint32_t n;
	int count = 0;

	memcpy(&n, array + 12, sizeof(n));
	for (uint32_t i = 0; i < ntohl(n); i++)
		count += array[ARRAY_HEADER + i * 5 + 4];
	return count;
}

int
main(int argc, char **argv)
{
	const int n = atoi(argc > 1 ? argv[1] : "100000");
	const Oid type = INT8_ARRAY_OID;
	int64_t *keys = malloc(n * sizeof(int64_t));
	PGconn *conn = PQconnectdb("");
	PGresult *result;
	char *array;
	int size;
	double ms;

	if (PQstatus(conn) != CONNECTION_OK)
		fail(conn);
	for (int i = 0; i < n; i++)
		keys[i] = (int64_t) i * 3;
	result = PQprepare(conn, "lookup", "SELECT count(*), sum(v) FROM items WHERE key = ANY ($1)", 1, &type);
	if (PQresultStatus(result) != PGRES_COMMAND_OK)
		fail(conn);
	PQclear(result);
	result = PQprepare(conn, "contains", "SELECT gpuds_contains('items_key_idx', $1)", 1, &type);
	if (PQresultStatus(result) != PGRES_COMMAND_OK)
		fail(conn);
	PQclear(result);

	array = binary_array(keys, n, &size);
	result = run(conn, "lookup", array, size, 1, &ms);
	printf("binary %lld|%lld %.1f\n", int8_at(result, 0), int8_at(result, 1), ms);
	PQclear(result);
	result = run(conn, "contains", array, size, 1, &ms);
	printf("contains %d %.1f\n", count_true(result), ms);
	PQclear(result);
	free(array);

	array = text_array(keys, n);
	result = run(conn, "lookup", array, 0, 0, &ms);
	printf("text %s|%s %.1f\n", PQgetvalue(result, 0, 0), PQgetvalue(result, 0, 1), ms);
	PQclear(result);
	free(array);
	free(keys);
	PQfinish(conn);
	return 0;
}
