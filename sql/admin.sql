-- gpuds_index_check, _load and _evict, and the views.
\set test test_admin
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

CREATE TABLE t (id int, k bigint);
INSERT INTO t SELECT i, (i * 7919) % 10007 FROM generate_series(1, 10000) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
ALTER TABLE t SET (autovacuum_enabled = false);

-- what a mirror's life looks like; the flusher may be at it at any moment
CREATE VIEW s AS SELECT indexrelname, structure, split_part(device, ':', 1) IN ('cpu', 'cuda') AS on_device, replace(state, 'applying', 'loaded') AS state, entries,
	bytes > 0 AS has_bytes, journal_position, applied_position FROM gpuds_indexes WHERE schemaname = 'test_admin' ORDER BY indexrelname;
SELECT * FROM s;
SELECT gpuds_index_evict('t_k');
SELECT gpuds_index_load('t_k');
SELECT * FROM s;
-- the flusher applies this some time later, a load at once
INSERT INTO t SELECT i, i FROM generate_series(1, 500) i;
SELECT state, journal_position FROM s;
SELECT gpuds_index_load('t_k');
SELECT * FROM s;
SELECT gpuds_index_evict('t_k');
SELECT gpuds_index_evict('t_k');
SELECT * FROM s;

-- a scan loads, too; what is not committed is not in the journal yet
SET enable_seqscan = off;
SELECT count(*) FROM t WHERE k = 7919;
BEGIN;
INSERT INTO t VALUES (0, 0);
SELECT state, journal_position FROM s;
SELECT gpuds_index_check('t_k', true);
SELECT state, entries, journal_position, applied_position FROM s;
ROLLBACK;

-- counters; what flusher and load find at the same time is applied twice
CREATE VIEW c AS SELECT scans, batches > 0 AS batches, probes, entries_returned, applied_operations >= 501 AS applied, loads,
	(device_time IS NULL) = (coalesce(bus_bytes, 0) = 0) AS timed_on_gpu, fallbacks FROM gpuds_stat_indexes WHERE indexrelid = 't_k'::regclass;
SELECT * FROM c;
SELECT count(*) FROM t WHERE k IN (1, 2, 3);
SELECT count(*) FROM t WHERE k BETWEEN 501 AND 510;
SELECT scans, probes, entries_returned, loads FROM c;
SELECT relid::regclass, schemaname, relname, indexrelname FROM gpuds_stat_indexes
WHERE indexrelid = 't_k'::regclass;
SELECT gpuds_index_stats_reset('t_k');
SELECT scans, probes, entries_returned, loads FROM c;
SELECT count(*) FROM t WHERE k IN (1, 2, 3);
SELECT scans, probes, entries_returned, loads FROM c;
RESET enable_seqscan;

-- the check at all times
SELECT gpuds_index_check('t_k');
SELECT gpuds_index_check('t_k', true);
SELECT gpuds_index_check('t_k', NULL);
SELECT gpuds_index_check(NULL);
DELETE FROM t WHERE id % 3 = 0;
SELECT gpuds_index_check('t_k', true);
VACUUM t;
SELECT gpuds_index_check('t_k', true);
SELECT gpuds_index_evict('t_k');
SELECT gpuds_index_check('t_k', true);
UPDATE t SET k = k + 1 WHERE id % 2 = 0;
UPDATE t SET id = id + 1;
SELECT gpuds_index_check('t_k', true);
DELETE FROM t WHERE k > 100;
VACUUM t;
SELECT gpuds_index_check('t_k', true);
INSERT INTO t SELECT i, -i FROM generate_series(1, 3000) i;
SELECT gpuds_index_check('t_k', true);
TRUNCATE t;
SELECT gpuds_index_check('t_k', true);
INSERT INTO t SELECT i, -i FROM generate_series(1, 3000) i;
REINDEX INDEX t_k;
SELECT gpuds_index_check('t_k', true);
VACUUM FULL t;
SELECT gpuds_index_check('t_k', true);
SELECT entries, journal_position, applied_position FROM s;

-- what is sorted does not fit in memory: several windows of the stripes, several runs of rows
SET maintenance_work_mem = '1MB';
INSERT INTO t SELECT i, (i * 7919) % 10007 FROM generate_series(1, 60000) i;
DELETE FROM t WHERE id % 5 = 0;
SELECT gpuds_index_check('t_k', true);
VACUUM t;
SELECT gpuds_index_check('t_k', true);
RESET maintenance_work_mem;

-- inside a transaction that has changed the table
BEGIN;
INSERT INTO t SELECT i, i FROM generate_series(1, 100) i;
SAVEPOINT a;
INSERT INTO t SELECT i, i FROM generate_series(1, 100) i;
ROLLBACK TO a;
DELETE FROM t WHERE id < 50;
SELECT gpuds_index_check('t_k', true);
ROLLBACK;
SELECT gpuds_index_check('t_k', true);
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM t WHERE k = 0;
SELECT gpuds_index_check('t_k', true);
COMMIT;

-- other kinds of indexes: two words, NULLs, DESC, partial, of expressions, in a constraint
CREATE TABLE u (a int, b timestamp, c bool, d uuid, e smallint);
INSERT INTO u SELECT nullif(i % 100, 0), timestamp '2020-01-01' + i * interval '1 minute', i % 3 = 0,
	md5(i::text)::uuid, i % 7
FROM generate_series(1, 3000) i;
CREATE INDEX u_ab ON u USING gpu_btree (a DESC NULLS LAST, b);
CREATE INDEX u_ca ON u USING gpu_btree (c, e NULLS FIRST);
CREATE INDEX u_d ON u USING gpu_btree (d);
CREATE INDEX u_partial ON u USING gpu_btree (a) WHERE c;
CREATE INDEX u_expression ON u USING gpu_btree ((a * 2 + e), (b::date)) WHERE a > 50;
ALTER TABLE u ADD EXCLUDE USING gpu_btree (b WITH =);
INSERT INTO u SELECT i % 60, timestamp '2030-01-01' + i * interval '1 minute', i % 2 = 0, NULL, NULL
FROM generate_series(1, 1000) i;
DELETE FROM u WHERE a % 5 = 1;
VACUUM u;
INSERT INTO u SELECT i % 60, timestamp '2040-01-01' + i * interval '1 minute', i % 2 = 0, NULL, NULL
FROM generate_series(1, 1000) i;
SELECT indexrelid::regclass, gpuds_index_check(indexrelid, true) FROM pg_index
WHERE indrelid = 'u'::regclass ORDER BY 1;

-- temporary and unlogged tables
CREATE TEMP TABLE tmp (k int);
INSERT INTO tmp SELECT generate_series(1, 1000);
CREATE INDEX tmp_k ON tmp USING gpu_btree (k);
SELECT state, entries FROM gpuds_indexes WHERE indexrelid = 'tmp_k'::regclass;
SELECT gpuds_index_check('tmp_k', true);
SELECT state, entries FROM gpuds_indexes WHERE indexrelid = 'tmp_k'::regclass;
SELECT loads FROM gpuds_stat_indexes WHERE indexrelid = 'tmp_k'::regclass;
SELECT gpuds_index_evict('tmp_k');
SELECT gpuds_index_load('tmp_k');
CREATE UNLOGGED TABLE unlogged (k int);
INSERT INTO unlogged SELECT generate_series(1, 1000);
CREATE INDEX unlogged_k ON unlogged USING gpu_btree (k);
SELECT gpuds_index_check('unlogged_k', true);
SELECT gpuds_index_load('unlogged_k');

-- devices
SELECT name, kind, memory_total > 0 AS total, memory_used >= 0 AS used, worker_pid, state, detail
FROM gpuds_devices WHERE kind = 'cpu';
SELECT count(*) FROM gpuds_devices WHERE kind NOT IN ('cpu', 'cuda') OR memory_used > memory_total
	OR state NOT IN ('ready', 'starting', 'absent');

-- memtables
SELECT coalesce(drainer_pid <> pg_backend_pid(), true) AS flusher, memory_total > 0 AS total, memory_used BETWEEN 0 AND memory_total AS used,
	memtables >= 0 AS memtables, operations >= 0 AS operations, drained >= 0 AS drained, overflows >= 0 AS overflows
FROM gpuds_memtables;

-- values of included columns
SELECT stores >= 0 AS stores, memory_total > 0 AS total, memory_used BETWEEN 0 AND memory_total AS used FROM gpuds_included;

-- wrong objects
CREATE INDEX t_btree ON t (k);
CREATE TABLE p (k int) PARTITION BY RANGE (k);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (100);
CREATE INDEX p_k ON p USING gpu_btree (k);
INSERT INTO p SELECT generate_series(1, 99);
SELECT gpuds_index_check('p1_k_idx', true);
SELECT indexrelname FROM gpuds_indexes WHERE schemaname = 'test_admin' AND relname LIKE 'p%';
SELECT gpuds_index_check('t');
SELECT gpuds_index_check('t_btree');
SELECT gpuds_index_check('p_k');
SELECT gpuds_index_check(0);
SELECT gpuds_index_load('t');
SELECT gpuds_index_load('t_btree');
SELECT gpuds_index_load('p_k');
SELECT gpuds_index_evict('t');
SELECT gpuds_index_evict('t_btree');
SELECT gpuds_index_evict('p_k');
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'u_d'::regclass;
SELECT gpuds_index_check('u_d');
SELECT gpuds_index_load('u_d');
SELECT gpuds_index_evict('u_d');
SELECT count(*) FROM gpuds_indexes WHERE indexrelid = 'u_d'::regclass;
REINDEX INDEX u_d;
SELECT gpuds_index_check('u_d', true);

-- the functions behind the views, called for what they are not made for
SELECT * FROM gpuds_index_state('t'::regclass) \g (tuples_only=off footer=off)
SELECT * FROM gpuds_index_state('t_btree'::regclass) \g (tuples_only=off footer=off)
SELECT * FROM gpuds_index_state(0) \g (tuples_only=off footer=off)
SELECT * FROM gpuds_index_stats('t_btree'::regclass) \g (tuples_only=off footer=off)
