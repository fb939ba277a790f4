-- GpudsAggregate: which counts it answers, and that it answers them right.
\set test test_batch_count
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

CREATE TABLE t (id int, k int NOT NULL, v int, at timestamp, f float8, note text) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, i % 1000, nullif(i % 7, 3), timestamp '2000-01-01' + i * interval '1 h', i / 8.0, 'note'
FROM generate_series(1, 20000) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
CREATE INDEX t_v ON t USING gpu_btree (v);
CREATE INDEX t_at ON t USING gpu_btree (at);
CREATE INDEX t_f ON t USING gpu_btree (f);
CREATE INDEX t_k_id ON t USING gpu_btree (v, id DESC);
CREATE INDEX t_part ON t USING gpu_btree (id) WHERE k < 10;
VACUUM ANALYZE t;

\set ECHO none
-- What a query counts with and without the node, and whether it has one.
CREATE FUNCTION counted(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	right_answer text;
	answer text;
	plan text;
BEGIN
	SET LOCAL enable_seqscan = on;
	SET LOCAL enable_indexscan = off;
	SET LOCAL enable_indexonlyscan = off;
	SET LOCAL enable_bitmapscan = off;
	EXECUTE format('SELECT string_agg(q::text, E''\n'' ORDER BY q::text) FROM (%s) q', query) INTO right_answer;
	SET LOCAL enable_seqscan = off;
	SET LOCAL enable_indexscan = on;
	SET LOCAL enable_indexonlyscan = on;
	SET LOCAL gpuds.enable_aggregate = on;
	plan := plan_of(query);
	EXECUTE format('SELECT string_agg(q::text, E''\n'' ORDER BY q::text) FROM (%s) q', query) INTO answer;
	SET LOCAL gpuds.enable_aggregate = off;
	RETURN CASE WHEN answer IS DISTINCT FROM right_answer THEN 'wrong: ' || answer || ', right: ' || right_answer
		ELSE coalesce(answer, 'nothing') || CASE WHEN plan LIKE '%GpudsAggregate%' THEN ', GpudsAggregate' ELSE '' END END;
END $$;

CREATE FUNCTION analyzed(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY EXECUTE 'EXPLAIN ANALYZE ' || query;
END $$;
\set ECHO all

SET gpuds.enable_aggregate = on;
EXPLAIN (COSTS OFF, VERBOSE) SELECT count(*) FROM t WHERE k BETWEEN 10 AND 20;
EXPLAIN (COSTS OFF) SELECT count(*) FROM t WHERE f > 100;
EXPLAIN (COSTS OFF) SELECT 1 + count(*), count(k) FROM t WHERE k = ANY ('{1,2,3}') HAVING count(*) > 0;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT count(*) FROM t WHERE k < 100;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT count(*) FROM t WHERE k < 10 AND now() IS NULL;
SET gpuds.enable_aggregate = off;

-- what it counts
SELECT counted('SELECT count(*) FROM t');
SELECT counted('SELECT count(*) FROM t WHERE k = 5');
SELECT counted('SELECT count(*) FROM t WHERE k = -5');
SELECT counted('SELECT count(*), count(k), count(1), 2 * count(*) AS twice FROM t WHERE k > 5 AND k <= 99');
SELECT counted('SELECT count(*) FROM t WHERE k = ANY (''{5,7,5,NULL,999,1000}'')');
SELECT counted('SELECT count(*) FROM t WHERE k IN (SELECT 5)');
SELECT counted('SELECT count(*) FROM t WHERE k = 5::bigint');
SELECT counted('SELECT count(*) FROM t WHERE f = 12.5::float4');
SELECT counted('SELECT count(*) FROM t WHERE f BETWEEN 0 AND 100');
SELECT counted('SELECT count(*) FROM t WHERE v IS NULL');
SELECT counted('SELECT count(*), count(v) FROM t WHERE v IS NOT NULL');
SELECT counted('SELECT count(v) FROM t WHERE v < 3');
SELECT counted('SELECT count(v), count(*) FROM t');
SELECT counted('SELECT count(id) FROM t WHERE v = 2 AND id BETWEEN 100 AND 10000');
SELECT counted('SELECT count(*) FROM t WHERE v > 2 AND id = 100');
SELECT counted('SELECT count(*) FROM t WHERE k < 10 AND id > 1000');
SELECT counted('SELECT count(*) FROM t HAVING count(*) > 20000');
SELECT counted('SELECT count(*) FROM t WHERE k < 0 HAVING count(*) = 0');
SELECT counted('SELECT count(*) FROM t WHERE k < 0 LIMIT 0');
SELECT counted('SELECT count(*) FROM t WHERE k < 9 UNION ALL SELECT count(*) FROM t WHERE k > 9 ORDER BY 1');
SELECT counted('SELECT i, (SELECT count(*) FROM t WHERE k = i) FROM generate_series(997, 1002) i');
SELECT counted('SELECT i, c FROM generate_series(1, 3) i, LATERAL (SELECT count(*) AS c FROM t WHERE k < i) l');

-- what it leaves to core; a comparison in the session's time zone would want a recheck
SET TimeZone = 'Europe/Berlin';
SELECT counted('SELECT count(*) FROM t WHERE at < timestamptz ''2000-03-26 02:30+01''');
SELECT counted('SELECT count(*) FROM t WHERE at < timestamp ''2000-03-26 02:30''');
RESET TimeZone;
SELECT counted('SELECT count(*) FROM t WHERE k = 5 AND note = ''note''');
SELECT counted('SELECT count(*) FILTER (WHERE v = 1) FROM t WHERE k = 5');
SELECT counted('SELECT count(DISTINCT k), count(*) FROM t WHERE k < 5');
SELECT counted('SELECT count(*), max(f) FROM t WHERE f < 5');
SELECT counted('SELECT f, count(*) FROM t WHERE f < 0.3 GROUP BY f');
SELECT counted('SELECT count(*) FROM t WHERE k < 5 OR id = 3');
SELECT counted('SELECT count(*) FROM t WHERE k = 5 AND random() < 2');
SELECT counted('SELECT count(*) FROM t TABLESAMPLE SYSTEM (100) WHERE k = 5');
SELECT counted('SELECT count(*) OVER () FROM t WHERE k = 5 AND id < 2000');

-- rows that the map does not know of: deleted, updated, of this transaction, of a savepoint that is gone
DELETE FROM t WHERE k = 6;
UPDATE t SET v = v + 1 WHERE k = 7;
SELECT counted('SELECT count(*) FROM t WHERE k BETWEEN 5 AND 8');
BEGIN;
INSERT INTO t SELECT i, 6 FROM generate_series(1, 50) i;
SELECT counted('SELECT count(*) FROM t WHERE k BETWEEN 5 AND 8');
SAVEPOINT s;
DELETE FROM t WHERE k = 5;
INSERT INTO t SELECT i, 6 FROM generate_series(1, 50) i;
SELECT counted('SELECT count(*) FROM t WHERE k BETWEEN 5 AND 8');
ROLLBACK TO s;
SELECT counted('SELECT count(*) FROM t WHERE k BETWEEN 5 AND 8');
ROLLBACK;
SELECT counted('SELECT count(*) FROM t WHERE k BETWEEN 5 AND 8');
VACUUM t;
SELECT counted('SELECT count(*) FROM t WHERE k BETWEEN 5 AND 8');

-- a scan of the whole index that filters is not taken for a short one
SELECT counted('SELECT count(*) FROM t WHERE id = 100');
CREATE TABLE wide (a int NOT NULL, b int NOT NULL) WITH (autovacuum_enabled = off);
INSERT INTO wide SELECT i, i % 1000 FROM generate_series(1, 20000) i;
CREATE INDEX wide_a_b ON wide USING gpu_btree (a, b);
CREATE INDEX wide_b ON wide (b);
VACUUM ANALYZE wide;
SET gpuds.enable_aggregate = on;
EXPLAIN (COSTS OFF) SELECT count(*) FROM wide WHERE b = 5;
EXPLAIN (COSTS OFF) SELECT count(*) FROM wide WHERE a > 5 AND a < 20 AND b = 5;
SET gpuds.enable_aggregate = off;

-- EXPLAIN ANALYZE measures each of many
SET gpuds.enable_aggregate = on;
SELECT regexp_replace(line, '\(cost.*(actual).*rows=(\d+)(?:\.00)? loops=(\d+)\)', '\1 rows=\2 loops=\3') AS line
FROM analyzed('SELECT i, (SELECT count(*) FROM t WHERE k = i) FROM generate_series(1, 5) i') line
WHERE line ~ 'actual';
SET gpuds.enable_aggregate = off;

-- rows that are dead for all are not looked up for ever
-- unlogged, so that page states do not save visits
CREATE UNLOGGED TABLE queue (k int) WITH (autovacuum_enabled = off);
INSERT INTO queue SELECT generate_series(1, 2000);
CREATE INDEX queue_k ON queue USING gpu_btree (k);
VACUUM ANALYZE queue;
DELETE FROM queue WHERE k <= 1500;
CALL wait_for_snapshots();
SET gpuds.enable_aggregate = on;
SET enable_seqscan = off;
SELECT count(*) FROM queue WHERE k <= 1501;
DO $$
DECLARE
	fetches int;
BEGIN
	FOR i IN 1..600 LOOP
		SELECT substring(line FROM 'Heap Fetches: (\d+)')::int INTO fetches
		FROM analyzed('SELECT count(*) FROM queue WHERE k <= 1501') line WHERE line ~ 'Heap Fetches';
		EXIT WHEN fetches = 1;
		PERFORM pg_sleep(0.05);
	END LOOP;
	RAISE NOTICE 'heap fetches: %', fetches;
END $$;
SELECT count(*) FROM queue WHERE k <= 1501;
-- nor by a join that visits rows
DELETE FROM queue WHERE k <= 1700;
CALL wait_for_snapshots();
SET gpuds.enable_join = on;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_nestloop = off;
DO $$
DECLARE
	query text := 'SELECT count(q.ctid) FROM generate_series(1501, 1701) g JOIN queue q ON q.k = g';
	nodes text;
	fetches int;
BEGIN
	FOR i IN 1..600 LOOP
		SELECT string_agg(substring(line FROM 'GpudsJoin'), ''), max(substring(line FROM 'Heap Fetches: (\d+)')::int)
		INTO nodes, fetches FROM analyzed(query) line;
		EXIT WHEN fetches = 1;
		PERFORM pg_sleep(0.05);
	END LOOP;
	RAISE NOTICE '%, heap fetches: %', nodes, fetches;
END $$;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_nestloop;
SET gpuds.enable_join = off;
RESET enable_seqscan;
SET gpuds.enable_aggregate = off;

-- prepared, in a cursor, in a function's loop
SET gpuds.enable_aggregate = on;
SET enable_seqscan = off;
SET plan_cache_mode = force_generic_plan;
PREPARE p (int, int[]) AS SELECT count(*) FROM t WHERE k >= $1 AND k = ANY ($2);
EXPLAIN (COSTS OFF) EXECUTE p (1, '{1,2}');
EXECUTE p (1, '{1,2}');
EXECUTE p (2, '{1,2,NULL}');
EXECUTE p (NULL, '{1,2}');
DROP INDEX t_k;
EXECUTE p (1, '{1,2}');
CREATE INDEX t_k ON t USING gpu_btree (k);
EXECUTE p (1, '{1,2}');
RESET plan_cache_mode;
BEGIN;
DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT count(*) FROM t WHERE k = 5;
FETCH c;
FETCH c;
FETCH BACKWARD c;
INSERT INTO t VALUES (0, 5);
COMMIT;
FETCH ABSOLUTE 1 FROM c;
CLOSE c;
DO $$
DECLARE
	n bigint := 0;
BEGIN
	FOR i IN 1..20 LOOP
		INSERT INTO t VALUES (i, 2000);
		n := n + (SELECT count(*) FROM t WHERE k = 2000);
	END LOOP;
	RAISE NOTICE '%', n;
END $$;

-- more keys than are sorted for a device, some of them twice, of rows that the transaction has changed as well
CREATE TABLE many (k bigint, v int) WITH (autovacuum_enabled = off);
INSERT INTO many SELECT i * 2654435761 % 4294967291, i FROM generate_series(1, 30000) i;
INSERT INTO many SELECT k, -v FROM many WHERE v % 7 = 0;
CREATE INDEX many_k ON many USING gpu_btree (k) INCLUDE (v);
VACUUM ANALYZE many;
CREATE VIEW wanted AS SELECT (i * 3 % 40000) * 2654435761 % 4294967291 AS k FROM generate_series(1, 20000) i;
CREATE VIEW compared AS
SELECT c.found = o.found AS counted, s.found = o.found AND s.sum = o.sum AND s.highest = o.highest AS added_up
FROM (SELECT count(*) AS found FROM many WHERE k = ANY (ARRAY(SELECT k FROM wanted))) c,
	(SELECT count(*) AS found, sum(v), max(k) AS highest FROM many WHERE k = ANY (ARRAY(SELECT k FROM wanted))) s,
	(SELECT count(*) AS found, sum(v), max(k) AS highest FROM many WHERE k + 0 IN (SELECT k FROM wanted)) o;
TABLE compared;
BEGIN;
DELETE FROM many WHERE v % 11 = 0;
INSERT INTO many SELECT k, 1 FROM many WHERE v BETWEEN 1 AND 3000;
UPDATE many SET v = v + 1 WHERE v % 13 = 0;
UPDATE many SET k = k + 1 WHERE v % 17 = 0;
TABLE compared;
ROLLBACK;
TABLE compared;

-- partitions, one by one
CREATE TABLE pieces (k int, v int) PARTITION BY RANGE (k);
CREATE TABLE pieces_1 PARTITION OF pieces FOR VALUES FROM (0) TO (100);
CREATE TABLE pieces_2 PARTITION OF pieces FOR VALUES FROM (100) TO (200);
CREATE INDEX ON pieces USING gpu_btree (k);
INSERT INTO pieces SELECT i % 200 FROM generate_series(1, 2000) i;
VACUUM ANALYZE pieces;
SELECT count(*) FROM pieces WHERE k BETWEEN 50 AND 149;
SET enable_partitionwise_aggregate = on;
SELECT count(*) FROM pieces WHERE k BETWEEN 50 AND 149;
SELECT k, count(*) FROM pieces WHERE k BETWEEN 98 AND 101 GROUP BY k ORDER BY k;
RESET enable_partitionwise_aggregate;
SELECT count(*) FROM pieces_1 WHERE k BETWEEN 50 AND 149;

-- whom rows are hidden from, they are not counted for
CREATE TABLE secret (k int, owner name DEFAULT current_user) WITH (autovacuum_enabled = off);
INSERT INTO secret SELECT i % 10, CASE WHEN i % 4 = 0 THEN 'batch_reader' ELSE 'nobody' END FROM generate_series(1, 400) i;
CREATE INDEX secret_k ON secret USING gpu_btree (k);
VACUUM ANALYZE secret;
CREATE ROLE batch_reader;
GRANT USAGE ON SCHEMA test_batch_count TO batch_reader;
SET ROLE batch_reader;
SELECT count(*) FROM secret WHERE k = 2;
RESET ROLE;
GRANT SELECT (k) ON secret TO batch_reader;
SET ROLE batch_reader;
SELECT count(*) FROM secret WHERE k = 2;
RESET ROLE;
GRANT SELECT ON secret TO batch_reader;
ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON secret USING (owner = current_user);
SET ROLE batch_reader;
SELECT count(*) FROM secret WHERE k = 2;
EXPLAIN (COSTS OFF) SELECT count(*) FROM secret WHERE k = 2;
RESET ROLE;
DROP TABLE secret;
DROP OWNED BY batch_reader;
DROP ROLE batch_reader;
