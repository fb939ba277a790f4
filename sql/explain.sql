-- Which index the planner takes where a table has both kinds.
\set test test_explain
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

CREATE TABLE t (id int, k bigint, v int);
INSERT INTO t SELECT i, (i::bigint * 7919) % 100003, i % 10 FROM generate_series(1, 100000) i;
CREATE INDEX t_btree ON t (k);
CREATE INDEX t_gpu ON t USING gpu_btree (k);
VACUUM ANALYZE t;

-- the indexes that a plan names
CREATE FUNCTION indexes_of(query text) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(DISTINCT m[1], ', ') FROM regexp_matches(plan_of(query), 't_(btree|gpu)\y', 'g') m
$$;

-- one key stays with btree
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE k = 42;
EXPLAIN (COSTS OFF) SELECT v FROM t WHERE k = 42 AND v = 1;
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE k > 42 ORDER BY k LIMIT 1;
-- what btree answers from the index alone, too
EXPLAIN (COSTS OFF) SELECT k FROM t WHERE k = 42;

-- sets of keys come to the gpu
SELECT indexes_of(format('SELECT * FROM t WHERE k = ANY (%L)', (SELECT array_agg(i) FROM generate_series(1, 1000) i)));
SELECT indexes_of(format('SELECT sum(v) FROM t WHERE k = ANY (%L)', (SELECT array_agg(i * 7) FROM generate_series(1, 5000) i)));
PREPARE p(bigint[]) AS SELECT sum(v) FROM t WHERE k = ANY ($1);
SELECT array_agg(i * 3) AS keys FROM generate_series(1, 1000) i \gset
SELECT indexes_of(format('EXECUTE p(%L)', :'keys'));
DEALLOCATE p;

-- alone, it serves every query that btree would
DROP INDEX t_btree;
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE k = 42;
SELECT plan_of('SELECT * FROM t WHERE k BETWEEN 42 AND 50 AND v = 3') LIKE '%Index Scan%t_gpu%' AS used;
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE k > 42 ORDER BY k LIMIT 1;
EXPLAIN (COSTS OFF) SELECT * FROM t ORDER BY k DESC LIMIT 10;
SELECT plan_of('SELECT max(k) FROM t') LIKE '%Index Only Scan Backward using t_gpu%' AS used;
EXPLAIN (COSTS OFF) SELECT * FROM generate_series(1, 3) g, t WHERE k = g;
-- but not one for which a sequential scan is better
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE k > 42;
EXPLAIN (COSTS OFF) SELECT sum(v) FROM t;

-- a condition bounds a scan only if those of the columns before it do
CREATE TABLE events (account int, at int, v int);
INSERT INTO events SELECT (i * 7919) % 1009, i, i % 10 FROM generate_series(1, 50000) i;
CREATE INDEX events_account_at ON events USING gpu_btree (account, at);
CREATE INDEX events_at ON events USING gpu_btree (at);
VACUUM ANALYZE events;
SELECT substring(plan_of('SELECT sum(v) FROM events WHERE at BETWEEN 1000 AND 1100') FROM 'events_(\w+)');
SELECT substring(plan_of('SELECT sum(v) FROM events WHERE account = 5 AND at BETWEEN 1000 AND 30000') FROM 'events_(\w+)');
SELECT substring(plan_of('SELECT * FROM events WHERE account = 5 ORDER BY at LIMIT 3') FROM 'events_(\w+)');
SELECT substring(plan_of('SELECT * FROM events ORDER BY at LIMIT 3') FROM 'events_(\w+)');

-- estimates follow the statistics
CREATE FUNCTION estimated_rows(query text) RETURNS float LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
	RETURN plan -> 0 -> 'Plan' ->> 'Plan Rows';
END $$;
SET enable_seqscan = off;
SELECT estimated_rows('SELECT * FROM t WHERE k = 42'),
	estimated_rows('SELECT * FROM t WHERE k < 50000') BETWEEN 48000 AND 52000 AS half,
	estimated_rows('SELECT * FROM t WHERE k IN (1, 2, 3, 4)'),
	estimated_rows('SELECT * FROM t WHERE k IS NULL');

-- scans are counted where btree's are; what a transaction has counted is kept to its end
BEGIN;
SELECT count(*) FROM t WHERE k = 42;
SELECT count(*) FROM t WHERE k IN (42, 43);
SET enable_indexscan = off;
SELECT count(*) FROM t WHERE k = 42;
SELECT pg_stat_get_xact_numscans('t_gpu'::regclass) >= 3 AS scans,
	pg_stat_get_xact_tuples_returned('t_gpu'::regclass) >= 4 AS tuples;
COMMIT;
RESET enable_seqscan;
RESET enable_indexscan;

-- a partial index serves where no column is needed
CREATE TABLE jobs (id int, k int, active bool, late bool, pad text);
INSERT INTO jobs SELECT i, (i * 7919) % 20011, i % 1000 = 999, i % 50 = 0, repeat('x', 200) FROM generate_series(1, 20000) i;
CREATE INDEX jobs_active ON jobs USING gpu_btree (k) WHERE active;
CREATE INDEX jobs_late ON jobs USING gpu_btree (k) WHERE late;
VACUUM ANALYZE jobs;
EXPLAIN (COSTS OFF) SELECT count(*) FROM jobs WHERE late;
SELECT count(*) FROM jobs WHERE late;
EXPLAIN (COSTS OFF) SELECT 1 FROM jobs WHERE active LIMIT 1;
SELECT 1 FROM jobs WHERE active LIMIT 1;
EXPLAIN (COSTS OFF) SELECT EXISTS (SELECT FROM jobs WHERE active);
SELECT EXISTS (SELECT FROM jobs WHERE active);
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM jobs WHERE active;
SELECT count(*) FROM jobs WHERE active;
RESET enable_bitmapscan;
-- and an index of the whole table, if no sequential scan is to be had
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM events;
RESET enable_seqscan;
