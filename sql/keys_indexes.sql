-- Partial indexes, indexes on expressions, smallest and largest values.
\set test test_keys_indexes
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude
SET DateStyle = 'ISO, MDY';

CREATE TABLE t (id int, a int, b bigint, f float8, ts timestamp, x text);
INSERT INTO t SELECT i, CASE WHEN i % 10 > 0 THEN i * 7 % 1000 END, -i, CASE i % 5 WHEN 0 THEN 'NaN' ELSE i / 3.0 END,
	timestamp '2020-01-01' + i * interval '1 hour', 'row ' || i
FROM generate_series(1, 2000) i;
ANALYZE t;

-- partial
CREATE INDEX t_part ON t USING gpu_btree (b) WHERE a IS NULL;
SELECT same('SELECT * FROM t WHERE a IS NULL AND b < -1000', 't_part');
UPDATE t SET a = 5 WHERE id = 1990;
UPDATE t SET a = NULL WHERE id = 1991;
SELECT same('SELECT * FROM t WHERE a IS NULL AND b < -1000', 't_part');
DROP INDEX t_part;

-- expressions
CREATE INDEX t_expr ON t USING gpu_btree ((a % 10), (length(x)) DESC);
ANALYZE t;
SELECT same('SELECT * FROM t WHERE a % 10 = 3 AND length(x) = 7', 't_expr');
SELECT same('SELECT * FROM t WHERE a % 10 = 3 AND length(x) > 6', 't_expr');
SELECT same('SELECT a % 10, length(x) FROM t WHERE a % 10 >= 8 ORDER BY a % 10, length(x) DESC', 't_expr', true);
DROP INDEX t_expr;
CREATE INDEX t_lower ON t USING gpu_btree ((a > 500));
ANALYZE t;
SELECT same('SELECT * FROM t WHERE (a > 500) >= true', 't_lower');
DROP INDEX t_lower;

-- smallest and largest, past NULLs and NaN
CREATE INDEX t_a ON t USING gpu_btree (a);
CREATE INDEX t_f ON t USING gpu_btree (f DESC NULLS LAST);
CREATE INDEX t_ts ON t USING gpu_btree (ts);
SET enable_seqscan = off;
SELECT plan_of('SELECT min(a), max(a) FROM t') LIKE '%Index Only Scan using t_a on t%Index Only Scan Backward using t_a on t%' AS by_index;
SELECT min(a), max(a) FROM t;
SELECT min(a), max(a) FROM t WHERE a BETWEEN 100 AND 200;
SELECT min(f), max(f) FROM t;
SELECT min(ts), max(ts) FROM t;
SELECT a FROM t ORDER BY a DESC NULLS FIRST OFFSET 198 LIMIT 4;
SELECT a FROM t ORDER BY a LIMIT 3;
SELECT f FROM t ORDER BY f DESC NULLS LAST OFFSET 398 LIMIT 4;
RESET enable_seqscan;

-- the same column twice
CREATE INDEX t_twice ON t USING gpu_btree (a, a DESC);
DROP INDEX t_a;
SELECT same('SELECT * FROM t WHERE a > 100 AND a < 105', 't_twice');
DROP INDEX t_twice;

-- cast columns and columns of a type that is another one inside
CREATE TABLE r (id int, c regclass);
INSERT INTO r SELECT row_number() OVER (), oid FROM pg_class ORDER BY oid LIMIT 100;
CREATE INDEX r_c ON r USING gpu_btree (c);
ANALYZE r;
SELECT same('SELECT * FROM r WHERE c = ''pg_class''::regclass', 'r_c');
SELECT same('SELECT * FROM r WHERE c < 5000', 'r_c');

-- keys that are known at run time only, one after the other
CREATE TABLE s (id int, k smallint, d date);
INSERT INTO s SELECT i, i % 500 - 250, date '2021-11-01' + i % 20 FROM generate_series(1, 2000) i;
CREATE INDEX s_k ON s USING gpu_btree (k);
CREATE INDEX s_d ON s USING gpu_btree (d DESC);
ANALYZE s;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SET TimeZone = 'America/New_York';
SELECT same('SELECT s.id, x FROM (VALUES (NULL::bigint), (-250), (100000), (7), (-4294967289), (NULL), (7)) v(x) JOIN s ON k = x', 's_k');
SELECT same('SELECT x, count(id) FROM (VALUES (NULL::bigint), (-250), (100000), (7), (-100000), (249)) v(x) LEFT JOIN s ON k > x GROUP BY x', 's_k');
SELECT same('SELECT x, count(id) FROM (VALUES (NULL::int[]), (''{}''), (''{NULL}''), (''{7,NULL,9,100000}''), (''{1}'')) v(x) LEFT JOIN s ON k = ANY (x) GROUP BY x', 's_k');
SELECT same('SELECT x, count(id) FROM (VALUES (''2021-11-07 00:00-04''::timestamptz), (''2021-11-08 00:00-05''), (''infinity''), (''2021-11-08 00:00-04'')) v(x) LEFT JOIN s ON d = x GROUP BY x', 's_d');
