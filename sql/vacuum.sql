-- VACUUM: dead entries go, their TIDs come back with other keys, the file
-- does not grow without end.
\set test test_vacuum
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

CREATE TABLE t (id int, k bigint) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, (i * 7919) % 20011 FROM generate_series(1, 20000) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
ANALYZE t;

-- nothing to do
VACUUM t;
SELECT same('SELECT * FROM t WHERE k > 100', 't_k');

-- some rows go, and new ones with other keys take their places in the heap
DELETE FROM t WHERE id % 5 = 0;
CALL wait_for_snapshots();
VACUUM t;
SELECT same('SELECT * FROM t WHERE k > 100', 't_k');
INSERT INTO t SELECT i, 50000 + i FROM generate_series(1, 4000) i;
SELECT same('SELECT * FROM t WHERE k > 100', 't_k');
SELECT same('SELECT * FROM t WHERE k > 50000', 't_k');
-- the old keys of reused TIDs find nothing
SELECT same(format('SELECT * FROM t WHERE k = ANY (%L)',
	(SELECT array_agg((i * 7919) % 20011) FROM generate_series(5, 20000, 5) i)), 't_k');

-- the same key on the same TID again
DELETE FROM t WHERE k > 50000;
CALL wait_for_snapshots();
VACUUM t;
INSERT INTO t SELECT i, 50000 + i FROM generate_series(1, 4000) i;
SELECT same('SELECT * FROM t WHERE k > 50000', 't_k');
DELETE FROM t WHERE k > 50000;
CALL wait_for_snapshots();
VACUUM t;
SELECT same('SELECT * FROM t WHERE k > 50000', 't_k');

-- all rows go
DELETE FROM t;
CALL wait_for_snapshots();
VACUUM t;
SELECT same('SELECT * FROM t WHERE k > 0', 't_k');
INSERT INTO t SELECT i, -i FROM generate_series(1, 10000) i;
SELECT same('SELECT * FROM t WHERE k < 0', 't_k');
SELECT same('SELECT * FROM t WHERE k > 0', 't_k');

-- many rounds: the journal is compacted on the way and the file stays small
CREATE TABLE rounds (id int, k int) WITH (autovacuum_enabled = off);
CREATE INDEX rounds_k ON rounds USING gpu_btree (k);
INSERT INTO rounds SELECT i, i FROM generate_series(1, 10000) i;
CALL wait_for_snapshots();
VACUUM rounds;
SELECT pg_relation_size('rounds_k') AS first_size \gset
UPDATE rounds SET k = k + 10000 WHERE id % 2 = 0;
CALL wait_for_snapshots();
VACUUM rounds;
SELECT same('SELECT * FROM rounds WHERE k > 0', 'rounds_k');
UPDATE rounds SET k = k + 10000 WHERE id % 2 = 1;
CALL wait_for_snapshots();
VACUUM rounds;
SELECT same('SELECT * FROM rounds WHERE k > 0', 'rounds_k');
UPDATE rounds SET k = k - 5000;
CALL wait_for_snapshots();
VACUUM rounds;
SELECT same('SELECT * FROM rounds WHERE k > 0', 'rounds_k');
DELETE FROM rounds WHERE id > 5000;
INSERT INTO rounds SELECT i, 2 * i FROM generate_series(5001, 10000) i;
CALL wait_for_snapshots();
VACUUM rounds;
SELECT same('SELECT * FROM rounds WHERE k > 0', 'rounds_k');
UPDATE rounds SET k = -k;
CALL wait_for_snapshots();
VACUUM rounds;
UPDATE rounds SET k = 1 - k;
CALL wait_for_snapshots();
VACUUM rounds;
UPDATE rounds SET k = -k;
CALL wait_for_snapshots();
VACUUM rounds;
UPDATE rounds SET k = 1 - k;
CALL wait_for_snapshots();
VACUUM rounds;
UPDATE rounds SET k = -k;
CALL wait_for_snapshots();
VACUUM rounds;
SELECT same('SELECT * FROM rounds WHERE k < 0', 'rounds_k');
SELECT same('SELECT k FROM rounds ORDER BY k DESC', 'rounds_k', true);
-- ten rewrites of 10,000 entries would have been 1.6 MB
SELECT pg_relation_size('rounds_k') <= 5 * :first_size AS bounded;

-- a cursor that was opened before all this goes on
CREATE TABLE held (id int, k int) WITH (autovacuum_enabled = off);
INSERT INTO held SELECT i, i FROM generate_series(1, 5000) i;
CREATE INDEX held_k ON held USING gpu_btree (k);
SET enable_seqscan = off;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT k FROM held WHERE k > 0 ORDER BY k;
FETCH 2 FROM c;
DELETE FROM held WHERE k % 2 = 0;
INSERT INTO held SELECT i, i FROM generate_series(1, 5000) i;
MOVE 2000 IN c;
FETCH 2 FROM c;
FETCH BACKWARD 2 FROM c;
COMMIT;
RESET enable_seqscan;

-- VACUUM options, and one that only cleans indexes partly
DELETE FROM held WHERE k < 100;
VACUUM (INDEX_CLEANUP off) held;
SELECT same('SELECT * FROM held WHERE k < 200', 'held_k');
INSERT INTO held SELECT i, -i FROM generate_series(1, 300) i;
VACUUM (FREEZE, INDEX_CLEANUP on, PARALLEL 0) held;
INSERT INTO held SELECT i, -i FROM generate_series(301, 600) i;
SELECT same('SELECT * FROM held WHERE k < 200', 'held_k');

-- temporary tables, where no other session's snapshot counts: two indexes, one
-- of them partial
CREATE TEMP TABLE tmp (id int, k int);
CREATE INDEX tmp_k ON tmp USING gpu_btree (k);
CREATE INDEX tmp_id ON tmp USING gpu_btree (id DESC) WHERE k % 2 = 0;
INSERT INTO tmp SELECT i, i FROM generate_series(1, 10000) i;
DELETE FROM tmp WHERE k % 2 = 0;
VACUUM tmp;
INSERT INTO tmp SELECT i, 2 * i FROM generate_series(1, 5000) i;
SELECT count(DISTINCT ctid), pg_relation_size('tmp') <= 2 * 8192 + 10000 * 36 AS reused FROM tmp;
SELECT same('SELECT * FROM tmp WHERE k BETWEEN 1000 AND 5000', 'tmp_k');
SELECT same('SELECT id FROM tmp WHERE id BETWEEN 1000 AND 2000 AND k % 2 = 0 ORDER BY id', 'tmp_id', true);
DELETE FROM tmp;
VACUUM tmp;
SELECT pg_relation_size('tmp');
SELECT same('SELECT * FROM tmp WHERE k > 0', 'tmp_k');
INSERT INTO tmp SELECT i, i FROM generate_series(1, 100) i;
SELECT same('SELECT * FROM tmp WHERE k > 0', 'tmp_k');

-- several indexes cleaned by several workers, in more than one pass where the
-- server remembers dead rows as an array
CREATE TABLE many (id int, k int, d date) WITH (autovacuum_enabled = off);
CREATE INDEX many_id ON many USING gpu_btree (id);
CREATE INDEX many_k ON many USING gpu_btree (k DESC);
CREATE INDEX many_kd ON many USING gpu_btree (k, d);
INSERT INTO many SELECT i, i % 1000, date '2000-01-01' + i % 500 FROM generate_series(1, 200000) i;
DELETE FROM many WHERE id % 100 <> 0;
SET maintenance_work_mem = '1MB';
SET min_parallel_index_scan_size = 0;
SET vacuum_cost_delay = '1ms';
SET vacuum_cost_limit = 10000;
CALL wait_for_snapshots();
VACUUM (PARALLEL 2) many;
RESET maintenance_work_mem;
RESET min_parallel_index_scan_size;
RESET vacuum_cost_delay;
RESET vacuum_cost_limit;
INSERT INTO many SELECT -i, i % 3000, date '2010-01-01' + i % 500 FROM generate_series(1, 30000) i;
SELECT same('SELECT * FROM many WHERE id BETWEEN -500 AND 5000', 'many_id');
SELECT same('SELECT * FROM many WHERE k = 400 AND d > ''2001-01-01''', 'many_kd');
SELECT relname, reltuples FROM pg_class WHERE relname LIKE 'many\__%' AND relnamespace = 'test_vacuum'::regnamespace ORDER BY relname;
DROP INDEX many_kd;
SELECT same('SELECT k FROM many WHERE k < 1200 ORDER BY k DESC', 'many_k', true);

-- what VACUUM and ANALYZE leave in the catalog
VACUUM ANALYZE rounds;
SELECT reltuples, relpages = pg_relation_size(oid) / 8192 AS pages FROM pg_class WHERE oid = 'rounds_k'::regclass;
