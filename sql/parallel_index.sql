-- Parallel index scans and index-only scans: participants divide the entries, and each gives its share in order.
\set test test_parallel_index
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

CREATE TABLE t (id int, k int, v int, at timestamptz, note text)
WITH (autovacuum_enabled = off, parallel_workers = 4);
INSERT INTO t SELECT i, nullif(i * 7919 % 9001, 77), nullif(i % 11, 3), timestamptz '2000-01-01' + i * interval '1 h', repeat('x', 60)
FROM generate_series(1, 20000) i;
CREATE INDEX t_k ON t USING gpu_btree (k) INCLUDE (id);
CREATE INDEX t_v_id ON t USING gpu_btree (v, id DESC);
CREATE INDEX t_at ON t USING gpu_btree (at);
VACUUM ANALYZE t;

-- few rows are not worth a worker
SET max_parallel_workers_per_gather = 4;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE k < 500 ORDER BY k;
SET min_parallel_table_scan_size = 0;
SET min_parallel_index_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET cpu_tuple_cost = 1;
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE k < 5000 ORDER BY k;
EXPLAIN (COSTS OFF) SELECT k, id FROM t WHERE k > 10 ORDER BY k DESC;
-- keys that are known when it runs; versions differ in how their plans show them
SELECT plan_of('SELECT count(note) FROM t WHERE k = ANY (ARRAY(SELECT i FROM generate_series(1, 9000, 3) i))')
	LIKE '%Parallel Index Scan using t_k on t%' AS parallel;

RESET cpu_tuple_cost;

\set ECHO none
-- The rows of a query by a parallel plan of a kind, by some numbers of workers, and by a sequential scan.  If ordered,
-- the sequence counts, and the scan must come without a sort.
CREATE FUNCTION shared(query text, index text, ordered bool DEFAULT false, kind text DEFAULT 'Index Scan', numbers int[] DEFAULT '{1,4}')
RETURNS text LANGUAGE plpgsql SET cpu_tuple_cost = 0.01 SET max_parallel_workers_per_gather = 4 AS $$
DECLARE
	workers int;
	right_answer text := right_digest_of(query, ordered);
	answer text;
	plan text;
BEGIN
	SET LOCAL cpu_tuple_cost = 1;
	plan := plan_of(query);
	IF plan !~ ('Parallel ' || kind || '( Backward)? using ' || index || ' on ') OR (ordered AND plan ~ E'Sort\n') THEN
		RETURN plan;
	END IF;
	FOREACH workers IN ARRAY numbers LOOP
		PERFORM set_config('max_parallel_workers_per_gather', workers::text, true);
		answer := digest_of(query, ordered);
		EXIT WHEN answer <> right_answer;
	END LOOP;
	RETURN CASE WHEN answer = right_answer THEN split_part(answer, ' rows', 1) || ' rows agree'
		ELSE answer || ', right: ' || right_answer END;
END $$;
\set ECHO all

SELECT shared('SELECT k, ctid FROM t WHERE k < 8000', 't_k');
SELECT shared('SELECT * FROM t WHERE k BETWEEN 100 AND 8000 AND v <> 4', 't_k');
SELECT shared('SELECT k, id, note FROM t ORDER BY k, id', 't_k', false);
SELECT shared('SELECT v, id, note FROM t ORDER BY v, id DESC', 't_v_id', true);
SELECT shared('SELECT v, id, note FROM t ORDER BY v DESC, id', 't_v_id', true);
SELECT shared('SELECT v, id, note FROM t WHERE v IN (1, 4, 7) AND id % 2 = 0 ORDER BY v, id DESC', 't_v_id', false);
SELECT shared('SELECT v, id, note FROM t WHERE v = 4 AND id < 15000 ORDER BY id', 't_v_id', true);
SELECT shared('SELECT * FROM t WHERE id BETWEEN 5000 AND 15000 AND v IS NULL', 't_v_id');
SELECT shared('SELECT * FROM t WHERE id BETWEEN 5000 AND 15000', 't_v_id');
SELECT shared('SELECT v, id FROM t ORDER BY v, id DESC', 't_v_id', true, 'Index Only Scan');
SELECT shared('SELECT v, id FROM t ORDER BY v DESC, id', 't_v_id', true, 'Index Only Scan');
SELECT shared('SELECT k, id FROM t WHERE k > 10', 't_k', false, 'Index Only Scan');
SELECT shared('SELECT at FROM t WHERE at >= timestamptz ''2000-02-01'' ORDER BY at', 't_at', true, 'Index Only Scan');
SELECT shared('SELECT note, id FROM t WHERE k = ANY (ARRAY(SELECT i * i % 9001 FROM generate_series(1, 9000) i))', 't_k');
SELECT shared('SELECT k, id, note FROM t WHERE k = ANY (ARRAY(SELECT i FROM generate_series(1, 9000) i)) ORDER BY k', 't_k', false);
SELECT shared('SELECT note, id FROM t WHERE v = ANY (ARRAY(SELECT i FROM generate_series(0, 9) i)) AND id = ANY (ARRAY(SELECT i FROM generate_series(1, 19000, 2) i))', 't_v_id');
SELECT shared('SELECT * FROM t WHERE k = ANY ((SELECT ''{}''::int[])::int[])', 't_k');
SELECT shared('SELECT * FROM t WHERE k BETWEEN 30000 AND 40000', 't_k');
SELECT shared('SELECT * FROM t WHERE k >= 5 AND k < (SELECT NULL::int)', 't_k');
SET max_parallel_workers = 0;
SELECT shared('SELECT v, id FROM t ORDER BY v, id DESC', 't_v_id', true, 'Index Only Scan');
RESET max_parallel_workers;
SET parallel_leader_participation = off;
SELECT shared('SELECT v, id, note FROM t ORDER BY v, id DESC', 't_v_id', true);
RESET parallel_leader_participation;

SET cpu_tuple_cost = 1;
-- not all of the rows
SELECT v, id FROM t ORDER BY v, id DESC LIMIT 3;
SELECT count(*) FROM (SELECT note FROM t WHERE k < 8000 LIMIT 15000) s;
BEGIN;
DECLARE c CURSOR FOR SELECT v, id FROM t ORDER BY v, id DESC;
FETCH 2 FROM c;
MOVE 5000 FROM c;
FETCH 1 FROM c;
CLOSE c;
SELECT v, id FROM t ORDER BY v, id DESC OFFSET 5002 LIMIT 1;
COMMIT;

-- the same rows once more, of scans that were read to their end, and of scans that were not
SET enable_material = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT count(*), sum(id), sum(length(note)) FROM t WHERE k + 0 < 8000;
SELECT plan_of('SELECT x, s.* FROM (SELECT count(*), sum(id), sum(length(note)) FROM t WHERE k < 8000) s RIGHT JOIN (VALUES (1), (2), (3)) g (x) ON true') ~ 'Parallel Index Scan' AS parallel;
SELECT x, s.* FROM (SELECT count(*), sum(id), sum(length(note)) FROM t WHERE k < 8000) s RIGHT JOIN (VALUES (1), (2), (3)) g (x) ON true;
SELECT x, count(s.id) FROM (SELECT id, note FROM t WHERE k < 8000 LIMIT 7000) s RIGHT JOIN (VALUES (1), (2), (3)) g (x) ON true GROUP BY x ORDER BY x;
RESET enable_material;
RESET enable_hashjoin;
-- and the outer side of a merge join
EXPLAIN (COSTS OFF) SELECT count(*), sum(a.id), sum(b.v) FROM t a JOIN t b ON a.k = b.k AND a.note = b.note;
SET enable_mergejoin = on;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT count(*), sum(a.id), sum(b.v) FROM t a JOIN t b USING (k) WHERE a.v = 4;
SET max_parallel_workers_per_gather = 0;
SELECT count(*), sum(a.id), sum(b.v) FROM t a JOIN t b ON a.k + 0 = b.k + 0 WHERE a.v + 0 = 4;
SET max_parallel_workers_per_gather = 4;
RESET enable_hashjoin;
RESET enable_nestloop;

-- rows of the statement's own transaction
BEGIN;
UPDATE t SET v = -1 WHERE id % 3 = 0;
UPDATE t SET k = k + 1 WHERE id % 5 = 0;
SAVEPOINT a;
DELETE FROM t WHERE id % 7 = 0;
INSERT INTO t SELECT i, i % 100, 2 FROM generate_series(30001, 30300) i;
SELECT shared('SELECT *, ctid FROM t WHERE k BETWEEN 1 AND 8000', 't_k');
SELECT shared('SELECT v, id FROM t ORDER BY v, id DESC', 't_v_id', true, 'Index Only Scan');
ROLLBACK TO a;
SELECT shared('SELECT *, ctid FROM t WHERE k BETWEEN 1 AND 8000', 't_k');
ROLLBACK;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT shared('SELECT *, ctid FROM t WHERE k BETWEEN 1 AND 8000', 't_k');
COMMIT;
-- of a statement that has not ended: what the leader has collected is there for workers, too
CREATE FUNCTION seen(n int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	RETURN (SELECT count(note) FROM t WHERE k BETWEEN 1 AND 8999);
END $$;
SELECT count(note) FROM t WHERE k BETWEEN 1 AND 8999;
CREATE TABLE seen_rows (n int);
WITH i AS (INSERT INTO t SELECT i, i, i, NULL, 'new' FROM generate_series(1, 100) i RETURNING id)
INSERT INTO seen_rows SELECT seen(id) FROM i;
SELECT count(DISTINCT n), min(n), max(n) FROM seen_rows;
SELECT count(note) FROM t WHERE k BETWEEN 1 AND 8999;
-- and rows whose TIDs are used again
UPDATE t SET k = -k WHERE k BETWEEN 100 AND 6000;
UPDATE t SET k = -k WHERE k < 0 AND id % 2 = 0;
VACUUM t;
INSERT INTO t SELECT i, i % 7000, 3 FROM generate_series(40000, 43000) i;
SELECT shared('SELECT *, ctid FROM t WHERE k BETWEEN -4000 AND 15000', 't_k');
SELECT shared('SELECT v, id FROM t ORDER BY v, id DESC', 't_v_id', true, 'Index Only Scan');
-- the index without a structure, which is loaded by whoever comes first
SELECT gpuds_index_evict('t_k');
SELECT shared('SELECT *, ctid FROM t WHERE k BETWEEN -4000 AND 15000', 't_k');

-- an error in whichever process reads entries, or visits the heap
\set VERBOSITY terse
SELECT sum(1 / (id - 777)) FROM t WHERE k < 18000 AND note IS NOT NULL;
DO $$
BEGIN
	PERFORM sum(1 / (id - 777)) FROM t WHERE k < 18000 AND note IS NOT NULL;
EXCEPTION WHEN division_by_zero THEN
	RAISE NOTICE 'caught';
END $$;
\set VERBOSITY default
SELECT gpuds_index_check('t_k', true), gpuds_index_check('t_v_id', true);
