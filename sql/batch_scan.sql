-- GpudsScan: which scans it does, and that it gives their rows.
\set test test_batch_scan
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

CREATE TABLE t (id int, k int, v int, at timestamptz, note text) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, i * 7919 % 20011, nullif(i % 11, 3), timestamptz '2000-01-01' + i * interval '1 h', repeat('x', 60)
FROM generate_series(1, 20000) i;
INSERT INTO t SELECT i, NULL, i, NULL, 'null' FROM generate_series(20001, 20050) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
CREATE INDEX t_v_id ON t USING gpu_btree (v, id DESC);
CREATE INDEX t_at ON t USING gpu_btree (at);
CREATE INDEX t_part ON t USING gpu_btree (id) WHERE v > 5;
CREATE INDEX t_expr ON t USING gpu_btree ((k % 100));
VACUUM ANALYZE t;

\set ECHO none
-- The rows of a query by the node, which the plan must have with the index that is named, and by a sequential scan.
CREATE FUNCTION scanned(query text, index text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	right_answer text := right_digest_of(query, false);
	answer text;
	plan text;
BEGIN
	SET LOCAL enable_seqscan = off;
	SET LOCAL enable_indexscan = off;
	SET LOCAL enable_indexonlyscan = off;
	SET LOCAL gpuds.enable_scan = on;
	plan := plan_of(query);
	answer := digest_of(query, false);
	SET LOCAL enable_seqscan = on;
	SET LOCAL enable_indexscan = on;
	SET LOCAL enable_indexonlyscan = on;
	SET LOCAL gpuds.enable_scan = off;
	IF plan !~ ('GpudsScan.*' || index || ' on ') THEN
		RETURN plan;
	END IF;
	RETURN CASE WHEN answer = right_answer THEN split_part(answer, ' rows', 1) || ' rows agree'
		ELSE answer || ', right: ' || right_answer END;
END $$;

-- An array of numbers that look random, some of them twice, as text
CREATE FUNCTION numbers(n int, below int) RETURNS text LANGUAGE sql AS $$
	SELECT array_agg(i * i % below)::text FROM generate_series(1, n) i
$$;
\set ECHO all

-- which plans
SET gpuds.enable_scan = on;
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE k BETWEEN 10 AND 500;
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE k BETWEEN 10 AND 500 AND id % 7 = 3 AND note LIKE 'x%';
SELECT plan_of(format('SELECT note FROM t WHERE k = ANY (%L)', numbers(200, 10007))) ~ 'GpudsScan' AS used;
PREPARE p (int[]) AS SELECT note FROM t WHERE k = ANY ($1);
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE p (NULL);
-- few keys stay with index scans, and so does what wants an order
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE k = 10;
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE k BETWEEN 10 AND 5000 ORDER BY k LIMIT 5;
EXPLAIN (COSTS OFF) SELECT k FROM t WHERE k BETWEEN 10 AND 500;
-- it takes the place of bitmap heap scans
DEALLOCATE p;
SET enable_bitmapscan = off;
PREPARE p (int[]) AS SELECT note FROM t WHERE k = ANY ($1);
SELECT plan_of('EXECUTE p (NULL)') ~ 'GpudsScan' AS used;
RESET enable_bitmapscan;
SET gpuds.enable_scan = off;
DEALLOCATE p;
PREPARE p (int[]) AS SELECT note FROM t WHERE k = ANY ($1);
SELECT plan_of('EXECUTE p (NULL)') ~ 'Bitmap Heap Scan' AS bitmap;
DEALLOCATE p;
RESET plan_cache_mode;

-- what it shows
SET gpuds.enable_scan = on;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT note FROM t WHERE k BETWEEN 10 AND 500 AND id % 7 = 3;
EXPLAIN (COSTS OFF, VERBOSE) SELECT ctid, id FROM t WHERE k BETWEEN 10 AND 500 AND id > 5;

-- it reads what index scans read, and is counted where they are
CREATE FUNCTION analyzed(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query;
END $$;
SET enable_indexscan = off;
BEGIN;
SELECT count(note) FROM t WHERE at < '2000-02-01';
SELECT pg_stat_get_xact_numscans('t_at'::regclass) AS scans, pg_stat_get_xact_tuples_returned('t_at'::regclass) AS entries,
	pg_stat_get_xact_tuples_fetched('t_at'::regclass) AS rows;
COMMIT;
RESET enable_indexscan;
SET gpuds.enable_scan = off;

-- conditions
SELECT scanned('SELECT * FROM t WHERE k BETWEEN 10 AND 500', 't_k');
SELECT scanned('SELECT * FROM t WHERE k BETWEEN 10 AND 500 AND id % 11 = 4', 't_k');
SELECT scanned('SELECT * FROM t WHERE k < 0', 't_k');
SELECT scanned('SELECT * FROM t WHERE k > 9000::bigint', 't_k');
SELECT scanned('SELECT * FROM t WHERE k IS NULL', 't_k');
SELECT scanned('SELECT id FROM t WHERE k IS NOT NULL', 't_k');
SELECT scanned('SELECT id, note FROM t WHERE k = 17', 't_k');
SELECT scanned('SELECT * FROM t WHERE k = (SELECT NULL::int) AND id + 0 > 0', 't_k');
SELECT scanned(format('SELECT * FROM t WHERE k = ANY (%L)', numbers(300, 10007)), 't_k');
SELECT scanned(format('SELECT * FROM t WHERE k = ANY (%L) AND v <> 4', numbers(6000, 10007)), 't_k');
SELECT scanned(format('SELECT * FROM t WHERE k = ANY (%L)', '{5,7,5,NULL,999,100000,5}'), 't_k');
SELECT scanned('SELECT * FROM t WHERE k = ANY (''{}'')', 't_k');
SELECT scanned('SELECT * FROM t WHERE k = ANY (''{NULL}'')', 't_k');
SELECT scanned('SELECT * FROM t WHERE k = ANY (ARRAY(SELECT i * 3 % 2000 FROM generate_series(1, 9000) i))', 't_k');
SELECT scanned(format('SELECT * FROM t WHERE v = ANY (%L) AND id = ANY (%L)', '{0,1,2,4,NULL,4}', numbers(500, 20000)), 't_v_id');
SELECT scanned('SELECT * FROM t WHERE v = 4 AND id BETWEEN 100 AND 9000', 't_v_id');
SELECT scanned('SELECT * FROM t WHERE v IS NULL AND id > 9000', 't_v_id');
SELECT scanned('SELECT id, note FROM t WHERE v > 5', 't_part');
SELECT scanned('SELECT id, note FROM t WHERE v > 5 AND id < 3000', 't_part');
SELECT scanned('SELECT * FROM t WHERE k % 100 IN (7, 8, 9, 50)', 't_expr');
SELECT scanned('SELECT * FROM t WHERE k % 100 BETWEEN 7 AND 9 AND id % 3 = 1', 't_expr');
SELECT scanned('SELECT * FROM t WHERE k < 100 AND (SELECT count(*) FROM generate_series(1, id % 3)) = 2', 't_k');
SELECT scanned('SELECT id, (SELECT max(i) FROM generate_series(1, t.v) i) FROM t WHERE k < 100', 't_k');
SELECT scanned('SELECT * FROM t WHERE k < 100 AND now() IS NOT NULL AND (SELECT true)', 't_k');

-- comparisons that depend on the time zone are made again
SET TimeZone = 'America/New_York';
SELECT scanned('SELECT * FROM t WHERE at < date ''2000-04-03'' AND at >= date ''2000-04-02''', 't_at');
SELECT scanned('SELECT * FROM t WHERE at BETWEEN timestamp ''2000-04-02 00:30'' AND timestamp ''2000-04-04 03:30''', 't_at');
SELECT scanned('SELECT * FROM t WHERE at = ANY (ARRAY(SELECT timestamp ''2000-10-28'' + i * interval ''1 h'' FROM generate_series(1, 100) i))', 't_at');
SET gpuds.enable_scan = on;
SET enable_indexscan = off;
SELECT line FROM analyzed('SELECT note FROM t WHERE at >= date ''2000-04-02'' AND at < timestamp ''2000-04-03 02:30''') line
WHERE line !~ 'Heap Blocks';
RESET enable_indexscan;
SET gpuds.enable_scan = off;
RESET TimeZone;

-- pieces: with little memory there are some
SET work_mem = '64kB';
SELECT scanned('SELECT * FROM t WHERE k < 18000', 't_k');
SELECT scanned('SELECT * FROM t WHERE k = ANY (ARRAY(SELECT i * i % 20011 FROM generate_series(1, 25000) i))', 't_k');
SELECT scanned('SELECT * FROM t WHERE v = ANY (''{0,1,2,4}'') AND id = ANY (ARRAY(SELECT i * i % 20011 FROM generate_series(1, 12000) i))', 't_v_id');
-- arrays in no order, some keys twice, whose rows are many more than the keys
CREATE TABLE many (k int, v int);
INSERT INTO many SELECT i % 6000, i FROM generate_series(1, 24000) i;
CREATE INDEX many_k ON many USING gpu_btree (k);
ANALYZE many;
SET work_mem = '128kB';
SELECT scanned('SELECT * FROM many WHERE k = ANY (ARRAY(SELECT i * 7 % 6000 FROM generate_series(1, 8000) i))', 'many_k');
SET work_mem = '256kB';
SELECT scanned('SELECT * FROM many WHERE k = ANY (ARRAY(SELECT i * 7 % 6000 FROM generate_series(1, 8000) i))', 'many_k');
SET work_mem = '64kB';
-- rows that have just come
INSERT INTO many SELECT i * 7 % 6000, i FROM generate_series(1, 12000) i;
SELECT scanned('SELECT * FROM many WHERE k = ANY (ARRAY(SELECT i * 7 % 6000 FROM generate_series(1, 8000) i))', 'many_k');
SELECT scanned('SELECT * FROM many WHERE k < 5000', 'many_k');
DELETE FROM many WHERE v % 5 = 0;
SELECT scanned('SELECT * FROM many WHERE k = ANY (ARRAY(SELECT i * 7 % 6000 FROM generate_series(1, 8000) i))', 'many_k');
SET gpuds.enable_scan = on;
SET enable_seqscan = off;
SELECT line FROM analyzed('SELECT note FROM t WHERE k < 18000') line WHERE line ~ 'Batches: 1$';
RESET enable_seqscan;
SET gpuds.enable_scan = off;
RESET work_mem;

-- system columns, whole rows, and columns that come later
SELECT scanned('SELECT ctid, tableoid::regclass, xmin, cmin, xmax, id FROM t WHERE k < 100', 't_k');
SELECT scanned('SELECT t, t.* FROM t WHERE k < 100', 't_k');
SELECT scanned('SELECT t FROM t WHERE k < 100 AND t IS NOT NULL AND ctid > ''(1,1)''', 't_k');
ALTER TABLE t ADD COLUMN later int DEFAULT 5, DROP COLUMN at;
SELECT scanned('SELECT later, t, note FROM t WHERE k < 100 AND later = 5', 't_k');

-- parameters and rescans
SET gpuds.enable_scan = on;
SET enable_seqscan = off;
SET enable_indexscan = off;
CREATE TABLE sets (n int, keys int[]);
INSERT INTO sets SELECT s, (SELECT array_agg((s * i) % 500) FROM generate_series(1, 100) i) FROM generate_series(1, 20) s;
INSERT INTO sets VALUES (21, NULL), (22, '{}'), (23, '{5,NULL}');
ANALYZE sets;
EXPLAIN (COSTS OFF) SELECT n, (SELECT sum(id) FROM t WHERE k = ANY (sets.keys) AND v < n) FROM sets;
SELECT n, (SELECT sum(id) FROM t WHERE k = ANY (sets.keys) AND v < n),
	(SELECT sum(id) FROM t WHERE k + 0 = ANY (sets.keys) AND v < n) FROM sets ORDER BY n;
-- the same rows once more, of a scan that was not read to its end as well
SELECT count(*), sum(s.id) FROM generate_series(1, 3) g, LATERAL (SELECT id FROM t WHERE k < 50 * g AND k < 100 LIMIT 130) s;
SELECT count(*) FROM t a WHERE k < 10 AND EXISTS (SELECT FROM t b WHERE b.k BETWEEN a.k AND a.k + 40 AND b.id > a.id);
RESET enable_indexscan;
RESET enable_seqscan;
SET plan_cache_mode = force_generic_plan;
PREPARE p (int, int[]) AS SELECT count(note), sum(id) FROM t WHERE k >= $1 AND k = ANY ($2);
EXPLAIN (COSTS OFF) EXECUTE p (1, '{1,2}');
EXECUTE p (1, '{1,2}');
EXECUTE p (2, '{1,2,NULL,2}');
EXECUTE p (NULL, '{1,2}');
EXECUTE p (1, NULL);
ALTER INDEX t_k RENAME TO t_k_renamed;
EXECUTE p (1, '{1,2}');
ALTER INDEX t_k_renamed RENAME TO t_k;
DROP INDEX t_k;
EXECUTE p (1, '{1,2}');
CREATE INDEX t_k ON t USING gpu_btree (k);
EXECUTE p (1, '{1,2}');
RESET plan_cache_mode;
SET gpuds.enable_scan = off;

-- rows that the statement's own transaction has changed
CREATE TABLE mine (id int, k int, v int) WITH (fillfactor = 50, autovacuum_enabled = off);
CREATE INDEX mine_k ON mine USING gpu_btree (k);
INSERT INTO mine SELECT i, i, 0 FROM generate_series(1, 2000) i;
ANALYZE mine;
BEGIN;
UPDATE mine SET v = 1 WHERE id % 3 = 0;
UPDATE mine SET k = k + 1 WHERE id % 5 = 0;
SAVEPOINT a;
DELETE FROM mine WHERE id % 7 = 0;
INSERT INTO mine SELECT i, i % 100, 2 FROM generate_series(2001, 2300) i;
UPDATE mine SET k = k - 1 WHERE k % 2 = 0;
SELECT scanned('SELECT *, ctid FROM mine WHERE k BETWEEN 1 AND 1500', 'mine_k');
ROLLBACK TO a;
SELECT scanned('SELECT *, ctid FROM mine WHERE k BETWEEN 1 AND 1500', 'mine_k');
COMMIT;
SELECT scanned('SELECT *, ctid FROM mine WHERE k BETWEEN 1 AND 1500', 'mine_k');
-- versions of one row with entries of their own, and some that were removed, whose TIDs are used again
UPDATE mine SET k = -k WHERE k BETWEEN 100 AND 600;
UPDATE mine SET k = -k WHERE k < 0 AND id % 2 = 0;
SELECT scanned('SELECT *, ctid FROM mine WHERE k BETWEEN -400 AND 1500', 'mine_k');
VACUUM mine;
INSERT INTO mine SELECT i, i % 700, 3 FROM generate_series(3000, 3600) i;
SELECT scanned('SELECT *, ctid FROM mine WHERE k BETWEEN -400 AND 1500', 'mine_k');

-- rows that are changed and locked as they are found
SET gpuds.enable_scan = on;
SET enable_indexscan = off;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) UPDATE mine SET k = k + 1, v = v + 1 WHERE k BETWEEN 200 AND 500;
SELECT count(*), sum(k), sum(v) FROM mine WHERE k + 0 BETWEEN 200 AND 500;
WITH changed AS (UPDATE mine SET k = k + 1, v = v + 1 WHERE k BETWEEN 200 AND 500 RETURNING *)
SELECT count(*), sum(k), sum(v) FROM changed;
EXPLAIN (COSTS OFF) SELECT * FROM mine WHERE k BETWEEN 200 AND 500 FOR UPDATE;
SELECT count(*), sum(k) FROM (SELECT * FROM mine WHERE k BETWEEN 200 AND 500 FOR UPDATE SKIP LOCKED) s;
EXPLAIN (COSTS OFF) MERGE INTO mine USING (SELECT i FROM generate_series(1, 600) i) s ON mine.k = s.i AND mine.k BETWEEN 250 AND 400
WHEN MATCHED THEN DELETE;
MERGE INTO mine USING (SELECT i FROM generate_series(1, 600) i) s ON mine.k = s.i AND mine.k BETWEEN 250 AND 400
WHEN MATCHED AND v > 1 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 9 WHEN NOT MATCHED AND i < 3 THEN INSERT VALUES (5000, i, 0);
DELETE FROM mine WHERE k = ANY (ARRAY(SELECT i FROM generate_series(210, 230) i)) AND v = 1;
SELECT count(*), sum(k), sum(v) FROM mine;
RESET enable_indexscan;
RESET enable_seqscan;
SET gpuds.enable_scan = off;
SELECT scanned('SELECT *, ctid FROM mine WHERE k BETWEEN 1 AND 1500', 'mine_k');

-- a function that changes rows of the page that the scan is on
CREATE FUNCTION touch(which int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	UPDATE mine SET v = v + 100, k = k + 1 WHERE ctid = (SELECT ctid FROM mine WHERE id = which LIMIT 1);
	INSERT INTO mine VALUES (which + 10000, 301, 0);
	RETURN which;
END $$;
SET gpuds.enable_scan = on;
SET enable_indexscan = off;
SET enable_seqscan = off;
SELECT count(*) FROM mine WHERE k + 0 BETWEEN 301 AND 440;
SELECT count(*), count(DISTINCT touch(id)) FROM mine WHERE k BETWEEN 301 AND 440;
SELECT count(*) FROM mine WHERE v >= 100;
RESET enable_indexscan;
RESET enable_seqscan;
SET gpuds.enable_scan = off;

-- cursors: their snapshot stays, whatever is changed meanwhile; they hold their index
SET gpuds.enable_scan = on;
SET enable_indexscan = off;
SET enable_seqscan = off;
\set ECHO none
CREATE FUNCTION rest_of(c refcursor) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	n int := 0;
	ids bigint := 0;
	r record;
BEGIN
	LOOP
		FETCH c INTO r;
		EXIT WHEN NOT FOUND;
		n := n + 1;
		ids := ids + r.id;
	END LOOP;
	RETURN format('%s rows, %s', n, ids);
END $$;
\set ECHO all
EXPLAIN (COSTS OFF) SELECT id, k FROM t WHERE k < 16000;
SELECT count(*), sum(id) FROM t WHERE k + 0 < 16000;
BEGIN;
SET LOCAL work_mem = '64kB';
DECLARE c CURSOR FOR SELECT id, k FROM t WHERE k < 16000;
DECLARE d CURSOR FOR SELECT id, k FROM t WHERE k < 16000;
DECLARE s SCROLL CURSOR FOR SELECT id, k FROM t WHERE k < 16000;
MOVE 1 FROM d;
MOVE 1 FROM s;
SAVEPOINT a;
UPDATE t SET k = k + 1 WHERE k < 16000;
DELETE FROM t WHERE k BETWEEN 1000 AND 1200;
SELECT rest_of('c');
ROLLBACK TO a;
DELETE FROM t WHERE k BETWEEN 1000 AND 1200;
SELECT split_part(rest_of('d'), ',', 1) AS d, split_part(rest_of('s'), ',', 1) AS s;
MOVE ABSOLUTE 0 FROM s;
SELECT rest_of('s');
SAVEPOINT a;
DROP INDEX t_k;
ROLLBACK TO a;
TRUNCATE t;
ROLLBACK;
BEGIN;
SET LOCAL work_mem = '64kB';
DECLARE c CURSOR WITH HOLD FOR SELECT id, k FROM t WHERE k < 16000;
MOVE 1 FROM c;
COMMIT;
SELECT split_part(rest_of('c'), ',', 1) AS c;
CLOSE c;
-- the row that a cursor is on
BEGIN;
DECLARE c CURSOR FOR SELECT id, k FROM t WHERE k < 16000;
FETCH 3 FROM c;
UPDATE t SET note = 'this one' WHERE CURRENT OF c;
SELECT id, k, note FROM t WHERE note = 'this one';
DECLARE u CURSOR FOR SELECT id, k FROM t WHERE k < 16000 FOR UPDATE;
FETCH 1 FROM u;
DELETE FROM t WHERE CURRENT OF u;
SELECT id FROM t WHERE id = 3;
ROLLBACK;
RESET enable_seqscan;
RESET enable_indexscan;

-- the outer side of joins, EXCEPT, INSERT
SET enable_indexscan = off;
SELECT count(*), sum(a.id) FROM t a JOIN t b ON a.id = b.k WHERE b.k < 300 AND a.k < 5000;
SELECT count(*) FROM (SELECT * FROM t WHERE k < 500 EXCEPT ALL SELECT * FROM t WHERE k + 0 < 500) d;
CREATE TABLE copied AS SELECT * FROM t WHERE k < 500;
SELECT count(*) FROM (SELECT * FROM copied EXCEPT ALL SELECT * FROM t WHERE k + 0 < 500) d;
RESET enable_indexscan;
SET gpuds.enable_scan = off;

-- partitions, children, temporary tables
CREATE TABLE pieces (k int, v int) PARTITION BY RANGE (k);
CREATE TABLE pieces_1 PARTITION OF pieces FOR VALUES FROM (0) TO (100);
CREATE TABLE pieces_2 (v int, k int);
ALTER TABLE pieces ATTACH PARTITION pieces_2 FOR VALUES FROM (100) TO (200);
CREATE INDEX pieces_k ON pieces USING gpu_btree (k);
INSERT INTO pieces SELECT i % 200, i FROM generate_series(1, 4000) i;
ANALYZE pieces;
SET gpuds.enable_scan = on;
SET enable_indexscan = off;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM pieces WHERE k BETWEEN 80 AND 120 AND v > 5;
RESET enable_seqscan;
RESET enable_indexscan;
SET gpuds.enable_scan = off;
SELECT scanned('SELECT tableoid::regclass, * FROM pieces WHERE k BETWEEN 80 AND 120 AND v > 5', 'pieces_2_k_idx');
CREATE TABLE parent (k int, v int);
CREATE TABLE child (more text) INHERITS (parent);
CREATE INDEX parent_k ON parent USING gpu_btree (k);
CREATE INDEX child_k ON child USING gpu_btree (k);
INSERT INTO parent SELECT i % 100, i FROM generate_series(1, 1000) i;
INSERT INTO child SELECT i % 100, i, 'more' FROM generate_series(1, 1000) i;
ANALYZE parent, child;
SELECT scanned('SELECT tableoid::regclass, parent FROM parent WHERE k < 20', 'child_k');
SET gpuds.enable_scan = on;
SET enable_indexscan = off;
SET enable_seqscan = off;
UPDATE parent SET v = -1 WHERE k < 20;
SELECT tableoid::regclass, count(*) FROM parent WHERE v = -1 GROUP BY 1 ORDER BY 1;
RESET enable_seqscan;
RESET enable_indexscan;
SET gpuds.enable_scan = off;
CREATE TEMP TABLE temporary (k int, v int);
CREATE INDEX temporary_k ON temporary USING gpu_btree (k);
INSERT INTO temporary SELECT i % 100, i FROM generate_series(1, 3000) i;
ANALYZE temporary;
SELECT scanned('SELECT * FROM temporary WHERE k < 20', 'temporary_k');
CREATE MATERIALIZED VIEW viewed AS SELECT i % 100 AS k, i AS v FROM generate_series(1, 3000) i;
CREATE INDEX viewed_k ON viewed USING gpu_btree (k);
ANALYZE viewed;
SELECT scanned('SELECT * FROM viewed WHERE k < 20', 'viewed_k');
-- domains, and an index that has no statistics
CREATE DOMAIN small AS int CHECK (VALUE < 1000000);
CREATE TABLE domains (k small, v int);
INSERT INTO domains SELECT i % 100, i FROM generate_series(1, 3000) i;
CREATE INDEX domains_k ON domains USING gpu_btree (k);
SELECT scanned('SELECT * FROM domains WHERE k < 20::small', 'domains_k');
SELECT scanned('SELECT * FROM domains WHERE k = ANY (''{1,2,3}''::small[])', 'domains_k');

-- What may not be seen is not given to functions that could tell.
CREATE TABLE secret (id int, k int, owner name) WITH (autovacuum_enabled = off);
INSERT INTO secret SELECT i, i % 100, CASE WHEN i % 4 = 0 THEN 'batch_scanner' ELSE 'nobody' END FROM generate_series(1, 2000) i;
CREATE INDEX secret_k ON secret USING gpu_btree (k);
ANALYZE secret;
CREATE FUNCTION tells(which int, of name) RETURNS bool LANGUAGE plpgsql COST 0.0001 AS $$
BEGIN
	IF of <> 'batch_scanner' THEN
		RAISE NOTICE 'row % is of %', which, of;
	END IF;
	RETURN true;
END $$;
CREATE VIEW own WITH (security_barrier) AS SELECT * FROM secret WHERE owner = 'batch_scanner';
SET gpuds.enable_scan = on;
SET enable_indexscan = off;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM own WHERE k < 20 AND tells(id, owner);
SELECT count(*), sum(id) FROM own WHERE k < 20 AND tells(id, owner);
CREATE ROLE batch_scanner;
GRANT USAGE ON SCHEMA test_batch_scan TO batch_scanner;
SET ROLE batch_scanner;
SELECT count(id) FROM secret WHERE k < 20;
RESET ROLE;
GRANT SELECT, UPDATE ON secret TO batch_scanner;
ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON secret USING (owner = current_user);
SET ROLE batch_scanner;
EXPLAIN (COSTS OFF) SELECT count(id) FROM secret WHERE k < 20 AND tells(id, owner);
SELECT count(id) FROM secret WHERE k < 20 AND tells(id, owner);
UPDATE secret SET id = -id WHERE k < 20 AND tells(id, owner);
RESET ROLE;
SELECT owner, count(*) FROM secret WHERE id < 0 GROUP BY owner;
RESET enable_seqscan;
RESET enable_indexscan;
SET gpuds.enable_scan = off;
DROP VIEW own;
DROP TABLE secret;
DROP OWNED BY batch_scanner;
DROP ROLE batch_scanner;

-- under a parallel worker
SET gpuds.enable_scan = on;
SET enable_indexscan = off;
DO $$
BEGIN
	PERFORM set_config(name, 'on', false) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query');
END $$;
SET max_parallel_workers_per_gather = 2;
EXPLAIN (COSTS OFF) SELECT note FROM t WHERE k BETWEEN 10 AND 500;
SELECT count(note), sum(id) FROM t WHERE k BETWEEN 10 AND 500;
SELECT count(note), sum(id) FROM t WHERE k + 0 BETWEEN 10 AND 500;
