-- GpudsScan in parallel plans: whichever process asks the index and whichever visits the heap, the rows are those of a
-- sequential scan.
\set test test_batch_parallel
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

CREATE TABLE t (id int, k int, v int, at timestamptz, note text)
WITH (autovacuum_enabled = off, parallel_workers = 4);
INSERT INTO t SELECT i, i * 7919 % 20011, nullif(i % 11, 3), timestamptz '2000-01-01' + i * interval '1 h', repeat('x', 60)
FROM generate_series(1, 20000) i;
INSERT INTO t SELECT i, NULL, i, NULL, 'null' FROM generate_series(20001, 20050) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
CREATE INDEX t_v_id ON t USING gpu_btree (v, id DESC);
CREATE INDEX t_at ON t USING gpu_btree (at);
VACUUM ANALYZE t;

-- few rows are not worth a worker
SET gpuds.enable_scan = on;
SET max_parallel_workers_per_gather = 4;
EXPLAIN (COSTS OFF) SELECT sum(v) FROM t WHERE k BETWEEN 10 AND 500;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET enable_seqscan = off;
SET enable_indexscan = off;
EXPLAIN (COSTS OFF) SELECT sum(v) FROM t WHERE k BETWEEN 10 AND 500;
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE k < 18000 ORDER BY v, id;
SET gpuds.enable_scan = off;
EXPLAIN (COSTS OFF) SELECT sum(v) FROM t WHERE k BETWEEN 10 AND 500;

\set ECHO none
-- The rows of a query by a parallel plan with the node, and by a sequential scan.
CREATE FUNCTION shared(query text, index text, ordered bool DEFAULT false, numbers int[] DEFAULT '{3}')
RETURNS text LANGUAGE plpgsql
SET gpuds.enable_scan = off SET cpu_tuple_cost = 0.01 SET max_parallel_workers_per_gather = 4 AS $$
DECLARE
	workers int;
	right_answer text := right_digest_of(query, ordered);
	answer text;
	plan text;
BEGIN
	-- As much as possible of what a scan costs is shared by workers
	SET LOCAL cpu_tuple_cost = 1;
	SET LOCAL gpuds.enable_scan = on;
	plan := plan_of(query);
	IF plan !~ ('Parallel Custom Scan \(GpudsScan\).*' || index || ' on ') THEN
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

-- conditions, first with memory for all TIDs, then with little, which leaves most of them to a file; then by the leader
-- alone, and by workers alone
CREATE TABLE queries (n int GENERATED ALWAYS AS IDENTITY, query text, index text);
INSERT INTO queries (query, index) VALUES
	('SELECT * FROM t WHERE k BETWEEN 10 AND 500', 't_k'),
	('SELECT *, ctid FROM t WHERE k < 19000', 't_k'),
	('SELECT * FROM t WHERE k < 19000 AND id % 11 = 4', 't_k'),
	('SELECT * FROM t WHERE k > 9000::bigint', 't_k'),
	('SELECT * FROM t WHERE k IS NULL', 't_k'),
	('SELECT id, note FROM t WHERE k IS NOT NULL', 't_k'),
	('SELECT * FROM t WHERE k BETWEEN 30000 AND 40000 AND id + 0 > 0', 't_k'),
	('SELECT * FROM t WHERE k >= 5 AND k < (SELECT NULL::int)', 't_k'),
	('SELECT * FROM t WHERE k = ANY (ARRAY(SELECT i * i % 20011 FROM generate_series(1, 25000) i))', 't_k'),
	('SELECT * FROM t WHERE k = ANY (ARRAY(SELECT i FROM generate_series(1, 25000) i)) AND v <> 4', 't_k'),
	('SELECT * FROM t WHERE k = ANY ((SELECT ''{5,7,5,NULL,999,100000,5}''::int[])::int[])', 't_k'),
	('SELECT * FROM t WHERE k = ANY ((SELECT ''{}''::int[])::int[])', 't_k'),
	('SELECT * FROM t WHERE k = ANY ((SELECT ''{NULL}''::int[])::int[])', 't_k'),
	('SELECT * FROM t WHERE k = ANY ((SELECT NULL::int[])::int[])', 't_k'),
	('SELECT * FROM t WHERE v = ANY (''{0,1,2,4,NULL,4}'') AND id = ANY (ARRAY(SELECT i * i % 20011 FROM generate_series(1, 12000) i))', 't_v_id'),
	('SELECT * FROM t WHERE v = 4 AND id BETWEEN 100 AND 9000', 't_v_id'),
	('SELECT * FROM t WHERE at < timestamp ''2001-06-01''', 't_at'),
	('SELECT * FROM t WHERE at < date ''2000-04-03'' AND at >= date ''2000-04-02''', 't_at'),
	('SELECT * FROM t WHERE at = ANY (ARRAY(SELECT timestamp ''2000-10-28'' + i * interval ''1 h'' FROM generate_series(1, 9000) i))', 't_at');
SET TimeZone = 'America/New_York';
SELECT n, shared(query, index) FROM queries ORDER BY n;
SET work_mem = '64kB';
SELECT n, shared(query, index) FROM queries WHERE n IN (1, 2, 3, 6, 9, 10, 15, 19) ORDER BY n;
SET max_parallel_workers = 0;
SELECT n, shared(query, index) FROM queries WHERE n IN (1, 2, 9, 12, 19) ORDER BY n;
RESET max_parallel_workers;
SET parallel_leader_participation = off;
SELECT n, shared(query, index) FROM queries WHERE n IN (1, 2, 9, 12, 19) ORDER BY n;
RESET parallel_leader_participation;

-- rows in an order: the leader waits for rows of each of the workers
SELECT shared('SELECT * FROM t WHERE k < 19000 ORDER BY v, id', 't_k', true, '{1,2,3,4}');
SELECT shared('SELECT * FROM t WHERE k = ANY (ARRAY(SELECT i FROM generate_series(1, 25000) i)) ORDER BY note, id', 't_k', true);
RESET work_mem;
SELECT shared('SELECT * FROM t WHERE k < 19000 ORDER BY v, id', 't_k', true);

-- what it shows: the work of all processes, whoever has done it
CREATE FUNCTION figures(query text, name text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, FORMAT json) ' || query INTO plan;
	RETURN (SELECT string_agg(m[1], ' ') FROM regexp_matches(plan::text, '"' || name || '": "?([^,"\n]*)', 'g') m);
END $$;
SET gpuds.enable_scan = on;
SELECT figures('SELECT sum(v) FROM t WHERE k < 18000', 'Batches') AS batches,
	figures('SELECT sum(v) FROM t WHERE k < 18000', 'Heap Blocks')::int
		= (SELECT count(DISTINCT (ctid::text::point)[0]) FROM t WHERE k + 0 < 18000) AS each_page_once;
SET work_mem = '64kB';
SELECT figures('SELECT sum(v) FROM t WHERE k < 18000', 'Batches')::int > 1 AS pieces;
SELECT figures('SELECT sum(v) FROM t WHERE at < timestamp ''2001-06-01''', 'Rows Removed by Index Recheck') IS NOT NULL AS shown;
RESET work_mem;
SET gpuds.enable_scan = off;

-- not all of the rows
SET gpuds.enable_scan = on;
SELECT plan_of('SELECT id FROM t WHERE k < 18000 LIMIT 15000') ~ 'Parallel Custom' AS parallel;
SELECT count(*) FROM (SELECT id FROM t WHERE k < 18000 LIMIT 15000) s;
SELECT v, id FROM t WHERE k < 18000 ORDER BY v, id LIMIT 3;
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM t WHERE k < 18000;
MOVE 100 FROM c;
MOVE ALL FROM c;
CLOSE c;
COMMIT;

-- the same rows once more, of scans that were read to their end, and of scans that were not
SET enable_material = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
EXPLAIN (COSTS OFF) SELECT x, s.* FROM (SELECT count(*), sum(id), sum(v) FROM t WHERE k < 18000) s RIGHT JOIN (VALUES (1), (2), (3)) g (x) ON true;
SELECT count(*), sum(id), sum(v) FROM t WHERE k + 0 < 18000;
SELECT x, s.* FROM (SELECT count(*), sum(id), sum(v) FROM t WHERE k < 18000) s RIGHT JOIN (VALUES (1), (2), (3)) g (x) ON true;
SET work_mem = '64kB';
SELECT x, s.* FROM (SELECT count(*), sum(id), sum(v) FROM t WHERE k < 18000) s RIGHT JOIN (VALUES (1), (2), (3)) g (x) ON true;
SELECT plan_of('SELECT x, count(s.id) FROM (SELECT id FROM t WHERE k < 18000 LIMIT 17000) s RIGHT JOIN (VALUES (1), (2), (3)) g (x) ON true GROUP BY x') ~ 'Parallel Custom' AS parallel;
SELECT x, count(s.id) FROM (SELECT id FROM t WHERE k < 18000 LIMIT 17000) s RIGHT JOIN (VALUES (1), (2), (3)) g (x) ON true GROUP BY x ORDER BY x;
RESET work_mem;
RESET enable_material;
RESET enable_mergejoin;

-- the outer side of joins
RESET enable_hashjoin;
EXPLAIN (COSTS OFF) SELECT count(*), sum(a.id), sum(b.v) FROM t a JOIN t b ON a.id = b.k WHERE a.k < 9000 AND b.k < 15000;
SELECT count(*), sum(a.id), sum(b.v) FROM t a JOIN t b ON a.id = b.k WHERE a.k < 9000 AND b.k < 15000;
SET gpuds.enable_join = on;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_nestloop = off;
EXPLAIN (COSTS OFF) SELECT count(*), sum(a.id), sum(b.v) FROM t a JOIN t b ON a.id = b.k WHERE a.k < 9000 AND b.k < 15000;
SELECT count(*), sum(a.id), sum(b.v) FROM t a JOIN t b ON a.id = b.k WHERE a.k < 9000 AND b.k < 15000;
RESET enable_nestloop;
RESET enable_mergejoin;
RESET enable_hashjoin;
SET gpuds.enable_join = off;
SET gpuds.enable_scan = off;
SELECT count(*), sum(a.id), sum(b.v) FROM t a JOIN t b ON a.id = b.k WHERE a.k + 0 < 9000 AND b.k + 0 < 15000;

-- partitions, side by side
CREATE TABLE p (id int, k int, v int) PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (8000) WITH (parallel_workers = 2);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (8000) TO (9000);
CREATE TABLE p3 PARTITION OF p FOR VALUES FROM (9000) TO (20000) WITH (parallel_workers = 2);
INSERT INTO p SELECT i, i * 7 % 10007, i FROM generate_series(1, 15000) i;
CREATE INDEX p_k ON p USING gpu_btree (k);
ANALYZE p;
SET gpuds.enable_scan = on;
SELECT count(*) FROM regexp_matches(plan_of('SELECT v FROM p WHERE k < 8000'), 'Parallel Append|Parallel Custom Scan \(GpudsScan\)', 'g');
SET gpuds.enable_scan = off;
SELECT shared('SELECT v FROM p WHERE k < 8000', 'p1_k_idx');
SELECT shared('SELECT v FROM p WHERE k = ANY (ARRAY(SELECT i * 3 FROM generate_series(1, 3000) i)) ORDER BY v', 'p1_k_idx', true);

-- rows of the statement's own transaction
BEGIN;
UPDATE t SET v = -1 WHERE id % 3 = 0;
UPDATE t SET k = k + 1 WHERE id % 5 = 0;
SAVEPOINT a;
DELETE FROM t WHERE id % 7 = 0;
INSERT INTO t SELECT i, i % 100, 2 FROM generate_series(30001, 30300) i;
SELECT shared('SELECT *, ctid FROM t WHERE k BETWEEN 1 AND 15000', 't_k');
ROLLBACK TO a;
SELECT shared('SELECT *, ctid FROM t WHERE k BETWEEN 1 AND 15000', 't_k');
ROLLBACK;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT shared('SELECT *, ctid FROM t WHERE k BETWEEN 1 AND 15000', 't_k');
COMMIT;
-- and rows whose TIDs are used again
UPDATE t SET k = -k WHERE k BETWEEN 100 AND 6000;
UPDATE t SET k = -k WHERE k < 0 AND id % 2 = 0;
SELECT shared('SELECT *, ctid FROM t WHERE k BETWEEN -4000 AND 15000', 't_k');
VACUUM t;
INSERT INTO t SELECT i, i % 7000, 3 FROM generate_series(40000, 43000) i;
SET work_mem = '64kB';
SELECT shared('SELECT *, ctid FROM t WHERE k BETWEEN -4000 AND 15000', 't_k');
RESET work_mem;
-- the index without a structure, which is loaded by whoever asks first
SELECT gpuds_index_evict('t_k');
SELECT shared('SELECT *, ctid FROM t WHERE k BETWEEN -4000 AND 15000', 't_k');

-- an error in whichever process asks the index, or visits the heap
\set VERBOSITY terse
SET gpuds.enable_scan = on;
CREATE FUNCTION fails(i int) RETURNS int LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
BEGIN
	RAISE EXCEPTION 'no key %', i;
END $$;
SET cpu_tuple_cost = 1;
SELECT plan_of('SELECT sum(v) FROM t WHERE k BETWEEN 5 AND fails((SELECT 7))') ~ 'Parallel Custom Scan' AS parallel;
SELECT sum(v) FROM t WHERE k BETWEEN 5 AND fails((SELECT 7));
SET parallel_leader_participation = off;
SELECT sum(v) FROM t WHERE k BETWEEN 5 AND fails((SELECT 7));
RESET parallel_leader_participation;
SELECT sum(1 / (id - 777)) FROM t WHERE k < 18000;
DO $$
BEGIN
	PERFORM sum(v) FROM t WHERE k BETWEEN 5 AND fails((SELECT 7));
EXCEPTION WHEN raise_exception THEN
	RAISE NOTICE 'caught';
END $$;
RESET cpu_tuple_cost;
\set VERBOSITY default
SET temp_file_limit = '8kB';
SET work_mem = '64kB';
\set VERBOSITY sqlstate
SELECT sum(v) FROM t WHERE k < 18000;
\set VERBOSITY default
RESET temp_file_limit;
SELECT sum(v) = (SELECT sum(v) FROM t WHERE k + 0 < 18000) AS same FROM t WHERE k < 18000;
RESET work_mem;

-- tables that only their session sees have no workers
CREATE TEMP TABLE mine (k int, v int) WITH (parallel_workers = 4);
INSERT INTO mine SELECT i, i FROM generate_series(1, 5000) i;
CREATE INDEX mine_k ON mine USING gpu_btree (k);
ANALYZE mine;
EXPLAIN (COSTS OFF) SELECT sum(v) FROM mine WHERE k < 3000;
SELECT sum(v) FROM mine WHERE k < 3000;
SELECT gpuds_index_check('t_k', true), gpuds_index_check('t_v_id', true);
