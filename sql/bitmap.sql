-- Bitmap scans: alone, and combined with other indexes of either kind.
\set test test_bitmap
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

CREATE TABLE t (id int, a int, b bigint, c int, pad text);
INSERT INTO t SELECT i, (i * 7919) % 1009, (i * 104729) % 2003, nullif(i % 251, 0), repeat('x', 100)
FROM generate_series(1, 20000) i;
CREATE INDEX t_a ON t USING gpu_btree (a);
CREATE INDEX t_b ON t USING gpu_btree (b);
CREATE INDEX t_c ON t USING btree (c);
ANALYZE t;

SET enable_seqscan = off;
SET enable_indexscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE a < 100;
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE a < 10 OR b < 10;
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE a IN (1, 2, 3);
RESET enable_seqscan;
RESET enable_indexscan;

\set ECHO none
-- the answer of a query as a bitmap scan with certain nodes, and sequentially
CREATE FUNCTION same_bitmap(query text, VARIADIC parts text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan text;
	part text;
	answer text;
	right_answer text;
BEGIN
	SET LOCAL enable_indexscan = off;
	SET LOCAL enable_bitmapscan = off;
	SET LOCAL enable_seqscan = on;
	right_answer := digest_of(query, false);
	SET LOCAL enable_bitmapscan = on;
	SET LOCAL enable_seqscan = off;
	plan := plan_of(query);
	FOREACH part IN ARRAY parts LOOP
		IF position(part IN plan) = 0 THEN
			RETURN 'no ' || part || ': ' || plan;
		END IF;
	END LOOP;
	answer := digest_of(query, false);
	SET LOCAL enable_indexscan = on;
	SET LOCAL enable_seqscan = on;
	RETURN CASE WHEN answer = right_answer THEN split_part(answer, ' rows', 1) || ' rows agree'
		ELSE answer || ', right: ' || right_answer END;
END $$;
\set ECHO all

SELECT same_bitmap('SELECT * FROM t WHERE a < 100', 't_a');
SELECT same_bitmap('SELECT * FROM t WHERE a < 100 AND b < 300', 'BitmapAnd', 't_a', 't_b');
SELECT same_bitmap('SELECT * FROM t WHERE a < 100 AND c = 7', 'BitmapAnd', 't_a', 't_c');
SELECT same_bitmap('SELECT * FROM t WHERE a < 100 OR b < 300', 'BitmapOr', 't_a', 't_b');
SELECT same_bitmap('SELECT * FROM t WHERE a = 17 OR c = 17 OR b = 17', 'BitmapOr', 't_a', 't_b', 't_c');
SELECT same_bitmap('SELECT * FROM t WHERE c IS NULL OR a = 5', 'BitmapOr', 't_a', 't_c');
SELECT same_bitmap('SELECT * FROM t WHERE a > 5000 OR c = 17', 'BitmapOr', 't_a', 't_c');
SELECT same_bitmap('SELECT * FROM t WHERE a > 5000 AND b < 300', 't_a');
-- the same TIDs from both sides
SELECT same_bitmap('SELECT * FROM t WHERE (a >= 10 AND a < 200) OR a IN (11, 12, 199, 200) OR b = 5', 'BitmapOr', 't_a', 't_b');

-- a bitmap that does not fit its memory turns lossy, and rechecks
SET work_mem = '64kB';
SELECT same_bitmap('SELECT * FROM t WHERE a < 900', 't_a');
SELECT same_bitmap('SELECT * FROM t WHERE a < 500 OR b < 300', 'BitmapOr', 't_a', 't_b');
SELECT same_bitmap('SELECT * FROM t WHERE a < 500 AND b < 1500', 't_a');
RESET work_mem;

-- arrays: unsorted, duplicates, and many
SELECT same_bitmap('SELECT * FROM t WHERE a = ANY (ARRAY(SELECT (i * 31) % 2000 FROM generate_series(1, 5000) i))', 't_a');
SELECT same_bitmap(format('SELECT * FROM t WHERE b = ANY (%L::bigint[])',
	(SELECT array_agg((i * 31) % 4000) FROM generate_series(1, 5000) i)), 't_b');
SELECT same_bitmap(format('SELECT * FROM t WHERE b = ANY (%L::bigint[]) AND a < 500',
	(SELECT array_agg((i * 31) % 4000) FROM generate_series(1, 300) i)), 't_b', 'BitmapAnd');

-- a bitmap rescanned for every outer row
SET enable_indexscan = off;
SET enable_seqscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_memoize = off;
EXPLAIN (COSTS OFF) SELECT count(*), sum(t.id) FROM generate_series(1, 500) v JOIN t ON a = v;
SELECT count(*), sum(t.id) FROM generate_series(1, 500) v JOIN t ON a = v;
RESET enable_indexscan;
RESET enable_seqscan;
RESET enable_hashjoin;
RESET enable_mergejoin;
SELECT count(*), sum(t.id) FROM t WHERE a + 0 BETWEEN 1 AND 500;

-- after deletes and updates
DELETE FROM t WHERE id % 3 = 0;
UPDATE t SET a = a + 1000 WHERE id % 5 = 0;
SELECT same_bitmap('SELECT * FROM t WHERE a > 300 AND a < 1300', 't_a');
SELECT same_bitmap('SELECT * FROM t WHERE a > 1900 OR b < 30', 'BitmapOr', 't_a', 't_b');
