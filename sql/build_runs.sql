-- CREATE INDEX with more entries than maintenance_work_mem holds, without workers and with them.
\set test test_build_runs
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

CREATE TABLE t (id int, k int, g int) WITH (autovacuum_enabled = off, fillfactor = 60);
INSERT INTO t SELECT i, i::bigint * 7919 % 100003, i % 10 FROM generate_series(1, 100000) i;
-- versions in HOT chains give the same entries
BEGIN;
UPDATE t SET g = g + 1 WHERE id % 3 = 0;
UPDATE t SET g = g + 1 WHERE id % 9 = 0;
COMMIT;
SET maintenance_work_mem = '1MB';
SET max_parallel_maintenance_workers = 0;
CREATE INDEX t_k ON t USING gpu_btree (k);
CREATE INDEX t_g ON t USING gpu_btree (g, id);
SELECT gpuds_index_check('t_k', true), gpuds_index_check('t_g', true);
SET max_parallel_maintenance_workers = 2;
ALTER TABLE t SET (parallel_workers = 2);
REINDEX TABLE t;
SELECT gpuds_index_check('t_k', true), gpuds_index_check('t_g', true);
RESET maintenance_work_mem;
SET enable_seqscan = off;
SELECT count(*), sum(id), min(k), max(k) FROM t WHERE k >= 0;
SELECT count(*), sum(id) FROM t WHERE g = 5;
RESET enable_seqscan;
SELECT count(*), sum(id), min(k), max(k) FROM t WHERE k + 0 >= 0;
SELECT count(*), sum(id) FROM t WHERE g + 0 = 5;
