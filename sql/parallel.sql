-- Parallel plans over the index, and parallel builds.
\set test test_parallel
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

CREATE TABLE t (id int, k bigint, d date) WITH (parallel_workers = 2, autovacuum_enabled = off);
INSERT INTO t SELECT i, CASE WHEN i % 50 <> 0 THEN (i::bigint * 7919) % 60013 END, date '2000-01-01' + i % 3000
FROM generate_series(1, 60000) i;
DELETE FROM t WHERE id % 11 = 0;
CREATE TABLE o (id int, k bigint) WITH (parallel_workers = 2);
INSERT INTO o SELECT i, i * 3 FROM generate_series(1, 8000) i;

-- builds with and without workers hold the same
SET min_parallel_table_scan_size = 0;
SET max_parallel_maintenance_workers = 2;
CREATE INDEX t_k ON t USING gpu_btree (k);
ANALYZE t, o;
SELECT same('SELECT * FROM t WHERE k BETWEEN 1000 AND 30000', 't_k');
SELECT same('SELECT k FROM t ORDER BY k', 't_k', true);
SET max_parallel_maintenance_workers = 0;
REINDEX INDEX t_k;
SELECT same('SELECT k FROM t ORDER BY k', 't_k', true);
-- Of a table without dead rows, which any old snapshot would bring into one of the two.  Each
-- of the three that write together may leave its last page half empty.
CREATE INDEX o_k ON o USING gpu_btree (k);
SET max_parallel_maintenance_workers = 2;
CREATE INDEX o_k2 ON o USING gpu_btree (k);
SELECT (pg_relation_size('o_k2') - pg_relation_size('o_k')) / 8192 BETWEEN 0 AND 2 AS same_size;
DROP INDEX o_k, o_k2;
CREATE INDEX t_dk ON t USING gpu_btree (d DESC, k) WHERE id % 2 = 0;
SELECT same('SELECT d, k FROM t WHERE id % 2 = 0 ORDER BY d, k DESC', 't_dk', true);
DROP INDEX t_dk;
-- of rows that the same transaction changed; concurrently; an error in a worker
BEGIN;
DELETE FROM t WHERE id % 7 = 0;
INSERT INTO t SELECT -i, i FROM generate_series(1, 1000) i;
CREATE INDEX t_k2 ON t USING gpu_btree (k);
DROP INDEX t_k;
SELECT same('SELECT k FROM t ORDER BY k', 't_k2', true);
ROLLBACK;
CREATE INDEX CONCURRENTLY t_k3 ON t USING gpu_btree (k DESC);
DROP INDEX t_k;
SELECT same('SELECT k FROM t ORDER BY k', 't_k3', true);
\set VERBOSITY terse
CREATE INDEX t_bad ON t USING gpu_btree ((1 / (id - 30001)));
\set VERBOSITY default
DROP INDEX t_k3;
CREATE INDEX t_k ON t USING gpu_btree (k);

-- the inner side of a join, in each of the workers
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET max_parallel_workers_per_gather = 2;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_bitmapscan = off;
SET enable_memoize = off;
SET enable_material = off;
EXPLAIN (COSTS OFF) SELECT count(*), sum(t.id), sum(o.id) FROM o JOIN t USING (k);
SELECT count(*), sum(t.id), sum(o.id) FROM o JOIN t USING (k);
SELECT count(*), sum(t.id), sum(o.id) FROM o LEFT JOIN t ON t.k = o.k AND t.id % 2 = 0;
SELECT count(*), sum(o.id) FROM o WHERE NOT EXISTS (SELECT FROM t WHERE t.k = o.k);
-- with rows of this very transaction
BEGIN;
INSERT INTO t SELECT -i, i * 3 FROM generate_series(1, 100) i;
SELECT count(*), sum(t.id), sum(o.id) FROM o JOIN t USING (k);
SAVEPOINT a;
INSERT INTO t SELECT -1000, i * 3 FROM generate_series(1, 100) i;
ROLLBACK TO a;
SELECT count(*), sum(t.id), sum(o.id) FROM o JOIN t USING (k);
-- and from a function that such a statement calls while it inserts
CREATE FUNCTION joined() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	RETURN (SELECT count(*) FILTER (WHERE t.id < 0) FROM o JOIN t USING (k));
END $$;
INSERT INTO t SELECT -joined(), i * 3 FROM generate_series(101, 105) i;
SELECT id FROM t WHERE k IN (303, 306, 309, 312, 315) AND id < 0 ORDER BY id DESC;
ROLLBACK;
SET max_parallel_workers_per_gather = 0;
SET enable_indexscan = off;
SET enable_hashjoin = on;
SELECT count(*), sum(t.id), sum(o.id) FROM o JOIN t USING (k);
SELECT count(*), sum(t.id), sum(o.id) FROM o LEFT JOIN t ON t.k = o.k AND t.id % 2 = 0;
SELECT count(*), sum(o.id) FROM o WHERE NOT EXISTS (SELECT FROM t WHERE t.k = o.k);
BEGIN;
INSERT INTO t SELECT -i, i * 3 FROM generate_series(1, 100) i;
SELECT count(*), sum(t.id), sum(o.id) FROM o JOIN t USING (k);
ROLLBACK;
RESET enable_indexscan;

-- a bitmap filled by the leader and read by all
SET max_parallel_workers_per_gather = 2;
SET enable_bitmapscan = on;
SET enable_seqscan = off;
SET enable_indexscan = off;
SET min_parallel_index_scan_size = 0;
EXPLAIN (COSTS OFF) SELECT count(*), sum(id) FROM t WHERE k BETWEEN 10000 AND 20000;
SELECT count(*), sum(id) FROM t WHERE k BETWEEN 10000 AND 20000;
SELECT count(*), sum(id) FROM t WHERE k + 0 BETWEEN 10000 AND 20000;
RESET enable_indexscan;
RESET enable_seqscan;

-- forced: a scan in a worker although the leader could do it
SELECT set_config(name, '1', false) IS NOT NULL AS forced FROM pg_settings
WHERE name IN ('force_parallel_mode', 'debug_parallel_query');
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT count(*), sum(id) FROM t WHERE k BETWEEN 10000 AND 20000;
SELECT k FROM t WHERE k < 20 ORDER BY k DESC;
BEGIN;
INSERT INTO t VALUES (1, 5);
SELECT k FROM t WHERE k < 8 ORDER BY k;
ROLLBACK;
SELECT same('SELECT k FROM t WHERE k BETWEEN 10000 AND 20000 ORDER BY k', 't_k', true);
