-- Equality, ranges, arrays and NULLs on one and several columns.
\set test test_basics
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

CREATE TABLE t (id int, k bigint);
INSERT INTO t SELECT i, CASE WHEN i % 100 <> 0 THEN (i * 7919) % 5003 - 2500 END
FROM generate_series(1, 10000) i;
INSERT INTO t VALUES (10001, -9223372036854775808), (10002, 9223372036854775807), (10003, 0);
CREATE INDEX t_k ON t USING gpu_btree (k);
ANALYZE t;

SELECT amname, opcname FROM pg_index x
	JOIN pg_opclass o ON o.oid = x.indclass[0] JOIN pg_am a ON a.oid = o.opcmethod
WHERE indexrelid = 't_k'::regclass;

-- the index is used, as plain and as bitmap scan
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE k = 42;
SELECT * FROM t WHERE k = 42 ORDER BY id;
SELECT * FROM t WHERE k IN (1, 42, -2501) ORDER BY id;
SET enable_bitmapscan = on;
SET enable_indexscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE k = 42;
SELECT * FROM t WHERE k = 42 ORDER BY id;
SELECT * FROM t WHERE k IN (1, 42, -2501) ORDER BY id;
RESET enable_seqscan;
RESET enable_indexscan;

-- equality, also with values of the other integer types and of no row
SELECT same('SELECT * FROM t WHERE k = 42', 't_k');
SELECT same('SELECT * FROM t WHERE k = 42::int', 't_k');
SELECT same('SELECT * FROM t WHERE k = -42::smallint', 't_k');
SELECT same('SELECT * FROM t WHERE 42 = k', 't_k');
SELECT same('SELECT * FROM t WHERE k = 2503', 't_k');
SELECT same('SELECT * FROM t WHERE k = -9223372036854775808', 't_k');
SELECT same('SELECT * FROM t WHERE k = 9223372036854775807', 't_k');

-- ranges
SELECT same('SELECT * FROM t WHERE k BETWEEN 10 AND 20', 't_k');
SELECT same('SELECT * FROM t WHERE k BETWEEN 20 AND 10', 't_k');
SELECT same('SELECT * FROM t WHERE k > 2490', 't_k');
SELECT same('SELECT * FROM t WHERE k >= 2490', 't_k');
SELECT same('SELECT * FROM t WHERE k < -2490', 't_k');
SELECT same('SELECT * FROM t WHERE k <= -2490', 't_k');
SELECT same('SELECT * FROM t WHERE k > 10 AND k < 12', 't_k');
SELECT same('SELECT * FROM t WHERE k > 10 AND k < 11', 't_k');
SELECT same('SELECT * FROM t WHERE k > 9223372036854775807', 't_k');
SELECT same('SELECT * FROM t WHERE k >= 9223372036854775807', 't_k');
SELECT same('SELECT * FROM t WHERE k < -9223372036854775808', 't_k');
SELECT same('SELECT * FROM t WHERE k <= -9223372036854775808', 't_k');
SELECT same('SELECT * FROM t WHERE k >= -9223372036854775808 AND k <= 9223372036854775807', 't_k');
SELECT same('SELECT * FROM t WHERE 2490 < k', 't_k');

-- several conditions on one column: the narrowest decides
SELECT same('SELECT * FROM t WHERE k > 5 AND k > 10::smallint AND k >= 7 AND k < 40 AND k < 30::int AND k <= 50', 't_k');
SELECT same('SELECT * FROM t WHERE k >= 10 AND k > 10 AND k < 20 AND k <= 20', 't_k');
SELECT same('SELECT * FROM t WHERE k = 5 AND k = 5::int', 't_k');
SELECT same('SELECT * FROM t WHERE k IN (5, 7) AND k = 6::int', 't_k');
SELECT same('SELECT * FROM t WHERE k = 5 AND k > 5::int', 't_k');
SELECT same('SELECT * FROM t WHERE k = 5 AND k >= 5::int', 't_k');
SELECT same('SELECT * FROM t WHERE k IN (1, 5, 9, 12) AND k > 4 AND k < 12', 't_k');
SELECT same('SELECT * FROM t WHERE k IN (1, 5, 9) AND k IN (5, 9, 10)', 't_k');
SELECT same('SELECT * FROM t WHERE k IN (1, 5) AND k IN (9, 10)', 't_k');

-- lists
SELECT same('SELECT * FROM t WHERE k IN (7)', 't_k');
SELECT same('SELECT * FROM t WHERE k IN (9, 7, 8, 7, -2000, 2502)', 't_k');
SELECT same('SELECT * FROM t WHERE k = ANY (''{100,200,300,99999}'')', 't_k');
SELECT same('SELECT * FROM t WHERE k < ANY (''{-2499,-2495,-2600}'')', 't_k');
SELECT same('SELECT * FROM t WHERE k >= ANY (''{2499,2495,2600}'')', 't_k');

-- NULLs: found by IS NULL only
SELECT same('SELECT * FROM t WHERE k IS NULL', 't_k');
SELECT same('SELECT * FROM t WHERE k IS NOT NULL', 't_k');
SELECT same('SELECT * FROM t WHERE k IS NOT NULL AND k < -2400', 't_k');
SELECT count(*) FROM t WHERE k IS NULL AND k = 5;
PREPARE by_key(bigint) AS SELECT * FROM t WHERE k = $1 ORDER BY id;
SET plan_cache_mode = force_generic_plan;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) EXECUTE by_key(NULL);
EXECUTE by_key(NULL);
EXECUTE by_key(-2500);
EXECUTE by_key(NULL);
PREPARE by_range(bigint, int) AS SELECT count(*), sum(id) FROM t WHERE k >= $1 AND k < $2;
EXECUTE by_range(0, 10);
EXECUTE by_range(NULL, 10);
EXECUTE by_range(0, NULL);
EXECUTE by_range(10, 0);
RESET plan_cache_mode;
RESET enable_seqscan;
DEALLOCATE ALL;

-- an index on nothing, on one row, on NULLs alone; rows that come later
CREATE TABLE e (k int);
CREATE INDEX e_k ON e USING gpu_btree (k);
SELECT same('SELECT * FROM e WHERE k = 1', 'e_k');
SELECT same('SELECT * FROM e WHERE k IS NULL', 'e_k');
INSERT INTO e VALUES (1);
SELECT same('SELECT * FROM e WHERE k = 1', 'e_k');
SELECT same('SELECT * FROM e WHERE k < 1', 'e_k');
INSERT INTO e SELECT 2 * i FROM generate_series(1, 3000) i;
SELECT same('SELECT * FROM e WHERE k > 100 AND k < 4000', 'e_k');
CREATE TABLE n (k int);
INSERT INTO n SELECT NULL FROM generate_series(1, 500);
CREATE INDEX n_k ON n USING gpu_btree (k);
SELECT same('SELECT * FROM n WHERE k IS NULL', 'n_k');
SELECT same('SELECT * FROM n WHERE k < 5', 'n_k');
SELECT same('SELECT * FROM n WHERE k IS NOT NULL', 'n_k');

-- the conditions that name no value still want the column
SELECT same('SELECT id FROM t WHERE k = id', 't_k') LIKE 'no index scan%' AS not_indexable;

-- several columns
CREATE TABLE m (id int, a int, b int, c smallint, d bool);
INSERT INTO m SELECT i, nullif(i % 20, 0), nullif((i * 31) % 47, 1), i % 7, i % 3 = 0
FROM generate_series(1, 6000) i;
CREATE INDEX m_abcd ON m USING gpu_btree (a, b DESC, c NULLS FIRST, d);
ANALYZE m;
SELECT same('SELECT * FROM m WHERE a = 5', 'm_abcd');
SELECT same('SELECT * FROM m WHERE a = 5 AND b = 10', 'm_abcd');
SELECT same('SELECT * FROM m WHERE a = 5 AND b > 10', 'm_abcd');
SELECT same('SELECT * FROM m WHERE a = 5 AND b BETWEEN 10 AND 20 AND c = 3', 'm_abcd');
SELECT same('SELECT * FROM m WHERE a = 5 AND b = 10 AND c = 4 AND d', 'm_abcd');
SELECT same('SELECT * FROM m WHERE a > 5 AND b = 10', 'm_abcd');
SELECT same('SELECT * FROM m WHERE a > 5 AND a <= 9 AND c IN (1, 2)', 'm_abcd');
SELECT same('SELECT * FROM m WHERE b = 10', 'm_abcd');
SELECT same('SELECT * FROM m WHERE c = 3 AND d = false', 'm_abcd');
SELECT same('SELECT * FROM m WHERE a IN (3, 7, 9) AND b IN (4, 5, 6, 40)', 'm_abcd');
SELECT same('SELECT * FROM m WHERE a IN (3, 7, 9) AND b < 8', 'm_abcd');
SELECT same('SELECT * FROM m WHERE a = 4 AND b IN (4, 5, 6, 40) AND c > 2', 'm_abcd');
SELECT same('SELECT * FROM m WHERE a IS NULL', 'm_abcd');
SELECT same('SELECT * FROM m WHERE a IS NULL AND b = 7', 'm_abcd');
SELECT same('SELECT * FROM m WHERE a IS NULL AND b IS NULL', 'm_abcd');
SELECT same('SELECT * FROM m WHERE a = 3 AND b IS NULL', 'm_abcd');
SELECT same('SELECT * FROM m WHERE a = 3 AND b IS NOT NULL', 'm_abcd');
SELECT same('SELECT * FROM m WHERE a IS NOT NULL AND b IS NULL', 'm_abcd');
SELECT same('SELECT * FROM m WHERE b IS NULL', 'm_abcd');
SELECT same('SELECT * FROM m WHERE a <= 3 AND b >= 40 AND c < 3 AND d', 'm_abcd');
SELECT same('SELECT * FROM m WHERE (a, b) = (17, 20)', 'm_abcd');
SELECT same('SELECT * FROM m WHERE a = 3 AND b = ANY (''{1,NULL,30}'')', 'm_abcd');
-- comparing rows is btree's alone
SELECT same('SELECT * FROM m WHERE (a, b) > (17, 20)', 'm_abcd') LIKE 'no index scan%' AS not_indexable;
