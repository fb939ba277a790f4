-- Cursors: both directions, moves, holds, and changes under an open cursor.
\set test test_cursors
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude
-- of plain index scans; those of index-only scans are in index_only.sql
SET enable_indexonlyscan = off;

CREATE TABLE t (id int, k int);
INSERT INTO t SELECT i, (i * 7919) % 10007 FROM generate_series(1, 10000) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
ANALYZE t;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;

-- to and fro over a range
BEGIN;
EXPLAIN (COSTS OFF) DECLARE c SCROLL CURSOR FOR SELECT k FROM t WHERE k >= 100 AND k < 110 ORDER BY k;
DECLARE c SCROLL CURSOR FOR SELECT k FROM t WHERE k >= 100 AND k < 110 ORDER BY k;
FETCH BACKWARD 1 FROM c;
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH FORWARD ALL FROM c;
FETCH 1 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH FIRST FROM c;
FETCH LAST FROM c;
FETCH ABSOLUTE 4 FROM c;
FETCH RELATIVE -2 FROM c;
FETCH ABSOLUTE -3 FROM c;
MOVE ABSOLUTE 0 IN c;
FETCH 0 FROM c;
FETCH NEXT FROM c;
FETCH 0 FROM c;
MOVE FORWARD ALL IN c;
FETCH BACKWARD ALL FROM c;
FETCH BACKWARD 1 FROM c;
FETCH 1 FROM c;
COMMIT;

-- a scan that starts backwards
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT k FROM t WHERE k < 2000 ORDER BY k DESC;
FETCH 2 FROM c;
FETCH BACKWARD 3 FROM c;
FETCH 1 FROM c;
MOVE 500 IN c;
FETCH 2 FROM c;
FETCH BACKWARD 3 FROM c;
MOVE LAST IN c;
FETCH BACKWARD 2 FROM c;
COMMIT;

-- moves across the whole index, far beyond a chunk
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT k FROM t ORDER BY k;
MOVE 7000 IN c;
FETCH 1 FROM c;
MOVE BACKWARD 6500 IN c;
FETCH 1 FROM c;
MOVE RELATIVE 9000 IN c;
FETCH 1 FROM c;
MOVE FORWARD ALL IN c;
MOVE BACKWARD ALL IN c;
FETCH 1 FROM c;
-- every step to and fro agrees with the position
DO $$
DECLARE
	c refcursor;
	forward int[];
	backward int[] := '{}';
	v int;
BEGIN
	OPEN c SCROLL FOR SELECT k FROM t WHERE k < 700 ORDER BY k;
	FOR n IN 1..3 LOOP
		forward := '{}';
		LOOP
			FETCH c INTO v;
			EXIT WHEN NOT FOUND;
			forward := forward || v;
			-- a step back and one forward again return to the same row
			IF v % 50 = 0 THEN
				FETCH BACKWARD FROM c INTO v;
				FETCH FORWARD FROM c INTO v;
				ASSERT v = forward[cardinality(forward)], 'lost its place';
			END IF;
		END LOOP;
		ASSERT forward = (SELECT array_agg(k ORDER BY k + 0) FROM t WHERE k + 0 < 700), 'forward differs';
		backward := '{}';
		LOOP
			FETCH BACKWARD FROM c INTO v;
			EXIT WHEN NOT FOUND;
			backward := v || backward;
		END LOOP;
		ASSERT forward = backward, 'backward differs';
	END LOOP;
END $$;
COMMIT;

-- an array, both ways
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT k FROM t WHERE k IN (900, 3, 14, 3, 15, 92, 99999);
MOVE FORWARD ALL IN c;
MOVE BACKWARD ALL IN c;
FETCH ALL FROM c;
FETCH BACKWARD 2 FROM c;
FETCH ALL FROM c;
COMMIT;

-- rows that come and go after the cursor was opened are not its business
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id, k FROM t WHERE k >= 3000 AND k < 3010 ORDER BY k;
FETCH 2 FROM c;
INSERT INTO t VALUES (0, 3002), (0, 3005), (0, 3009);
DELETE FROM t WHERE k = 3006;
UPDATE t SET k = 3003 WHERE k = 3008;
FETCH ALL FROM c;
FETCH BACKWARD ALL FROM c;
SELECT id, k FROM t WHERE k >= 3000 AND k < 3010 ORDER BY k, id;
ROLLBACK;

\set ECHO none
-- enough of them to make the index much larger under the cursor
CREATE FUNCTION walk(c refcursor, backward bool) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	n int := 0;
	v int;
	before int;
BEGIN
	LOOP
		IF backward THEN
			FETCH BACKWARD FROM c INTO v;
		ELSE
			FETCH FORWARD FROM c INTO v;
		END IF;
		EXIT WHEN NOT FOUND;
		IF n > 0 AND v <> before AND (v < before) <> backward THEN
			RETURN format('%s after %s', v, before);
		END IF;
		n := n + 1;
		before := v;
	END LOOP;
	RETURN n || ' rows in order';
END $$;
\set ECHO all
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT k FROM t ORDER BY k;
MOVE 100 IN c;
INSERT INTO t SELECT i, i FROM generate_series(1, 20000) i;
DECLARE d SCROLL CURSOR FOR SELECT k FROM t ORDER BY k;
DELETE FROM t WHERE id % 2 = 0;
SELECT walk('c', false), walk('c', true), walk('d', false), walk('d', true);
DECLARE e SCROLL CURSOR FOR SELECT k FROM t ORDER BY k DESC;
SELECT count(*) FROM t WHERE k + 0 IS NOT NULL;
SELECT walk('e', true), walk('e', false) LIKE '% after %' AS descends, walk('c', false);
ROLLBACK;

-- changes through the cursor
BEGIN;
DECLARE c CURSOR FOR SELECT id, k FROM t WHERE k < 10 ORDER BY k FOR UPDATE;
FETCH 2 FROM c;
UPDATE t SET k = k + 5 WHERE CURRENT OF c;
FETCH 1 FROM c;
DELETE FROM t WHERE CURRENT OF c;
FETCH ALL FROM c;
SELECT k FROM t WHERE k < 10 ORDER BY k;
ROLLBACK;

-- held beyond the transaction, beside changes and the index's end
BEGIN;
DECLARE h SCROLL CURSOR WITH HOLD FOR SELECT k FROM t WHERE k BETWEEN 50 AND 55 ORDER BY k;
FETCH 2 FROM h;
COMMIT;
DELETE FROM t WHERE k = 54;
FETCH ALL FROM h;
FETCH BACKWARD 2 FROM h;
REINDEX INDEX t_k;
FETCH BACKWARD 2 FROM h;
CLOSE h;
INSERT INTO t VALUES (0, 54);

-- two cursors over one index, interleaved, and one left open by an error
BEGIN;
DECLARE a CURSOR FOR SELECT k FROM t WHERE k > 400 ORDER BY k;
DECLARE b CURSOR FOR SELECT k FROM t WHERE k < 400 ORDER BY k DESC;
FETCH 1 FROM a;
FETCH 1 FROM b;
FETCH 1 FROM a;
FETCH 1 FROM b;
SAVEPOINT s;
DECLARE e CURSOR FOR SELECT k / 0 FROM t WHERE k > 400 ORDER BY k;
FETCH 1 FROM e;
ROLLBACK TO s;
FETCH 1 FROM a;
FETCH 1 FROM b;
COMMIT;

-- rescans of an inner side by a moving cursor
BEGIN;
SET LOCAL enable_hashjoin = off;
SET LOCAL enable_mergejoin = off;
DECLARE c SCROLL CURSOR FOR SELECT v, k FROM (VALUES (11), (5), (7)) l (v) LEFT JOIN t ON k = v;
FETCH ALL FROM c;
FETCH BACKWARD ALL FROM c;
FETCH 2 FROM c;
COMMIT;
