-- Rows of pages that the visibility map is silent about, by the states of the pages: the same answers as the
-- table's, and no visits once the states are made
\set test test_page_states
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude
SET gpuds.enable_aggregate = on;
SET gpuds.enable_scan = on;
SET gpuds.enable_join = on;
SET enable_bitmapscan = off;

CREATE TABLE states (k int, v int, w int) WITH (autovacuum_enabled = off, fillfactor = 70);
INSERT INTO states SELECT i * 7919 % 6007, i % 100, 0 FROM generate_series(1, 6000) i;
CREATE INDEX states_k ON states USING gpu_btree (k) INCLUDE (v);
VACUUM ANALYZE states;

\set ECHO none
-- What EXPLAIN says of the heap, and of states; rows are whole, as before 18
CREATE FUNCTION visits(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	inside boolean := false;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) ' || query LOOP
		inside := line ~ 'Custom Scan' OR inside AND line !~ '->';
		IF inside AND line ~ 'Custom Scan|Heap Fetches|Page States' THEN
			RETURN NEXT btrim(regexp_replace(line, '(actual rows=\d+)\.\d+', '\1'));
		END IF;
	END LOOP;
END $$;
\set ECHO all

-- Questions of all shapes, and how a table is asked what only an index can be asked
CREATE TABLE questions (query text, of_table text);
INSERT INTO questions VALUES
	('SELECT count(*), sum(v), min(k), max(k) FROM states WHERE k >= 0', NULL),
	('SELECT count(*) FROM states WHERE k BETWEEN 1000 AND 3000', NULL),
	('SELECT k / 1000, count(*), sum(v) FROM states WHERE k >= 0 GROUP BY k / 1000', NULL),
	('SELECT count(*) FROM states WHERE k = ANY (ARRAY(SELECT i * 3 FROM generate_series(1, 2100) i))', NULL),
	('SELECT count(*) FROM generate_series(1, 6010, 3) i WHERE EXISTS (SELECT FROM states s WHERE s.k = i)', NULL),
	('SELECT count(*) FROM generate_series(1, 6010, 3) i WHERE NOT EXISTS (SELECT FROM states s WHERE s.k = i)', NULL),
	('SELECT count(*), sum(s.v) FROM generate_series(1, 6010, 3) i JOIN states s ON s.k = i', NULL),
	('SELECT count(*) FROM unnest(gpuds_contains(''states_k'', ARRAY(SELECT i * 3 FROM generate_series(1, 2100) i))) c WHERE c',
		'SELECT count(*) FROM generate_series(1, 2100) i WHERE i * 3 IN (SELECT k FROM states)'),
	('SELECT gpuds_count(''states_k'', 500, 1500)', 'SELECT count(*) FROM states WHERE k BETWEEN 500 AND 1500');

-- To so many of them, index and table have different answers
CREATE FUNCTION differences() RETURNS bigint LANGUAGE sql VOLATILE
	SET enable_seqscan = off SET gpuds.enable_aggregate = on SET gpuds.enable_join = on SET gpuds.enable_scan = on AS $$
	SELECT count(*) FROM questions WHERE digest_of(query, false) <> right_digest_of(coalesce(of_table, query), false)
$$;

SELECT differences();
SET enable_seqscan = off;
SELECT visits('SELECT count(*), sum(v) FROM states WHERE k >= 0');

-- Changes of all kinds, committed
UPDATE states SET w = w + 1 WHERE k % 50 = 0;
UPDATE states SET v = v + 1 WHERE k % 70 = 0;
UPDATE states SET k = k + 30000 WHERE k % 90 = 0;
DELETE FROM states WHERE k % 110 = 0;
INSERT INTO states SELECT i, 5, 0 FROM generate_series(40000, 40100) i;
SELECT differences();
SELECT differences();
SELECT visits('SELECT count(*), sum(v) FROM states WHERE k >= 0') FROM generate_series(1, 1);
SELECT visits('SELECT count(*) FROM states WHERE k >= 0');
SELECT visits('SELECT k / 1000, count(*) FROM states WHERE k >= 0 GROUP BY 1');
-- keys of all pages, because a GPU is told of all; a CPU may look at one of the 48 twice, depending on how its table grows
SELECT regexp_replace(v, '4[89]$', 'of all pages')
FROM visits('SELECT count(*) FROM generate_series(1, 40100, 3) i WHERE EXISTS (SELECT FROM states s WHERE s.k = i)') v;

-- Of one row, the second look at an unchanged page makes the state; a look may prune the page
UPDATE states SET w = w + 1 WHERE k = 17;
SELECT visits('SELECT count(*) FROM states WHERE k = 17');
SELECT count(*) FROM states WHERE k = 17;
SELECT count(*) FROM states WHERE k = 17;
SELECT visits('SELECT count(*) FROM states WHERE k = 17');

-- Changes of the transaction at hand, in subtransactions that come and go
BEGIN;
UPDATE states SET w = w + 1 WHERE k % 51 = 0;
SELECT differences();
SAVEPOINT one;
DELETE FROM states WHERE k % 71 = 0;
SELECT differences();
ROLLBACK TO one;
SELECT differences();
UPDATE states SET k = k + 30000 WHERE k % 91 = 0;
SAVEPOINT two;
INSERT INTO states SELECT i, 5, 0 FROM generate_series(50000, 50100) i;
UPDATE states SET w = w + 1 WHERE k >= 50000;
RELEASE two;
SELECT differences();
DELETE FROM states WHERE k BETWEEN 50000 AND 50050;
SELECT differences();
COMMIT;
SELECT differences();
SELECT differences();
BEGIN;
UPDATE states SET w = w + 1 WHERE k % 3 = 0;
DELETE FROM states WHERE k % 5 = 0;
INSERT INTO states SELECT i, 5, 0 FROM generate_series(60000, 60500) i;
SELECT differences();
ROLLBACK;
SELECT differences();
SELECT differences();

-- An old row of a cursor, and rows that are locked
BEGIN;
DECLARE c CURSOR FOR SELECT count(*), sum(v) FROM states WHERE k >= 0;
DELETE FROM states WHERE k % 13 = 0;
SELECT count(*) FROM (SELECT FROM states WHERE k % 17 = 0 FOR UPDATE) x;
SELECT count(*) FROM (SELECT FROM states WHERE k % 19 = 0 FOR KEY SHARE) x;
SELECT differences();
CREATE TEMP TABLE of_cursor (c bigint, s bigint);
FETCH c \gset of_
ROLLBACK;
SELECT count(*) = :of_count AND sum(v) = :of_sum FROM states WHERE k >= 0;
SELECT differences();

-- Frozen, pruned, vacuumed, rewritten
VACUUM states;
SELECT differences();
DELETE FROM states WHERE k % 23 = 0;
SELECT differences();
VACUUM (FREEZE, INDEX_CLEANUP ON) states;
INSERT INTO states SELECT i, 6, 0 FROM generate_series(70000, 70500) i;
SELECT differences();
SELECT differences();
VACUUM FULL states;
SELECT differences();
UPDATE states SET w = 0 WHERE k % 29 = 0;
SELECT differences();
TRUNCATE states;
INSERT INTO states SELECT i, 6, 0 FROM generate_series(0, 500) i;
SELECT differences();
SELECT differences();

-- In SERIALIZABLE, what others may have changed beside the reader is visited; these have all ended
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT differences();
COMMIT;

-- Tables that have none
CREATE UNLOGGED TABLE stateless (k int) WITH (autovacuum_enabled = off);
CREATE INDEX ON stateless USING gpu_btree (k);
INSERT INTO stateless SELECT generate_series(1, 100);
SELECT visits('SELECT count(*) FROM stateless WHERE k >= 0') FROM generate_series(1, 2);
CREATE TEMP TABLE temporary (k int);
CREATE INDEX ON temporary USING gpu_btree (k);
INSERT INTO temporary SELECT generate_series(1, 100);
SELECT visits('SELECT count(*) FROM temporary WHERE k >= 0') FROM generate_series(1, 2);

SELECT memory_used BETWEEN 1 AND memory_total AS memory, pages > 0 AS pages, hits > 0 AS hits, made > stale AS made, stale > 0 AS stale FROM gpuds_visibility;
