-- Numbers with a declared precision: as keys, as included columns, and added up.
\set test test_numeric
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

CREATE DOMAIN price AS numeric(9, 3);
CREATE TABLE t (id int, n numeric(12, 2), fraction numeric(18, 18), whole numeric(18, 0), odd numeric(5, 3), p price,
	one numeric(1, 0), below numeric(2, 5), kind int) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i,
	CASE WHEN i % 101 = 0 THEN 'NaN' WHEN i % 97 = 0 THEN NULL ELSE round(sin(i)::numeric * 10::numeric ^ (i % 11), 2) END,
	CASE WHEN i % 89 = 0 THEN NULL ELSE round(cos(i)::numeric * 0.99, 18) END, i * 49999999999991 - 250000000000000000,
	CASE WHEN i % 211 = 0 THEN 'NaN' ELSE round(cos(i)::numeric * 99, 3) END, i * 1.001, i % 10, i % 100 * 0.00001, i % 7
FROM generate_series(1, 10000) i;
-- ends, zeros, and numbers around a change of digits to the base of 10,000
INSERT INTO t SELECT 20000 + row_number() OVER (), n, f, w, o, o, 0, 0, 9
FROM (VALUES (9999999999.99, 0.999999999999999999, 999999999999999999, 99.999), (-9999999999.99, -0.999999999999999999, -999999999999999999, -99.999),
	(0, 0, 0, 0), (0.01, 0.000000000000000001, 1, 0.001), (-0.01, -0.000000000000000001, -1, -0.001), (9999.99, 0.0001, 9999, 10),
	(10000, 0.00009999, 10000, 9.999), (10000.01, 0.0001000000001, 100000000, 0.1), (99999999, 0.5, 99999999, 50), (-10000, -0.0001, -10000, -10),
	(NULL, NULL, NULL, NULL), ('NaN'::numeric, 'NaN'::numeric, 'NaN'::numeric, 'NaN'::numeric)) v (n, f, w, o);
CREATE INDEX t_n ON t USING gpu_btree (n) INCLUDE (fraction, whole, odd, kind);
CREATE INDEX t_down ON t USING gpu_btree (whole DESC, odd);
CREATE INDEX t_skip ON t USING gpu_skiplist (fraction, kind) INCLUDE (n, one);
CREATE INDEX t_p ON t USING gpu_btree (p) INCLUDE (below);
CREATE INDEX t_odd ON t USING gpu_btree (kind, odd) INCLUDE (p, below);
CREATE INDEX t_expr ON t USING gpu_btree (((n * 2)::numeric(14, 1))) WHERE n < 5;
VACUUM ANALYZE t;

-- comparisons with constants that the column may have, or not
SELECT same('SELECT n, fraction, whole, odd FROM t WHERE n ' || condition, 't_n', false)
FROM unnest('{= 0,= 0.0000,= 10000.01,= 10000.011,> 9999.989,>= 9999.99,< -0.001,<= -0.01,> 9999999999.985,> 9999999999.99,>= 1e30,< 1e30,
	> -1e30,< -9999999999.989,= 1e10,= ''NaN'',< ''NaN'',> ''NaN'',>= ''NaN'',> ''Infinity'',< ''Infinity'',= ''Infinity'',> ''-Infinity'',
	<= ''-Infinity'',IS NULL,IS NOT NULL,= 1e-30,> 1e-30,< 0.0001,= 123456789012345678901234567890.5}'::text[]) condition;
SELECT same('SELECT n FROM t WHERE n = ANY (''{0,0.00,NULL,0.001,NaN,Infinity,-Infinity,10000.01,1e1000,-1e1000,9999999999.99}''::numeric[])', 't_n', false);
SELECT same('SELECT n FROM t WHERE n > ANY (''{5,1e6,NaN}''::numeric[]) AND n < 1e8', 't_n', false);
SELECT same('SELECT whole, odd FROM t WHERE whole <= 10000.5 AND whole > -1e18', 't_down', false);
SELECT same('SELECT whole, odd FROM t WHERE whole = 1 AND odd < 0.0015', 't_down', false);
SELECT same('SELECT fraction, kind, n, one FROM t WHERE fraction BETWEEN -0.0000000000000000015 AND 0.0001', 't_skip', false);
SELECT same('SELECT id FROM t WHERE p BETWEEN 100 AND 200.5', 't_p', false);
SELECT same('SELECT id FROM t WHERE (n * 2)::numeric(14, 1) > 1.25 AND n < 5', 't_expr', false);
SELECT same('SELECT n FROM t WHERE n > 5.5 ORDER BY n', 't_n', true);
SELECT same('SELECT n FROM t WHERE n IS NOT NULL ORDER BY n DESC', 't_n', true);
SELECT same('SELECT whole, odd FROM t WHERE whole < 1e17 ORDER BY whole DESC, odd', 't_down', true);

-- what comes from the index is what the table has, to the last zero
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT n, fraction, whole, odd FROM t WHERE n >= -1e10 ORDER BY n;
SELECT n, fraction, whole, odd FROM t WHERE n >= -1e10 AND kind = 9 ORDER BY n, whole;
SELECT p, below FROM t WHERE p >= 9 AND p < 9.02;
SELECT min(n), max(n), max(n) FILTER (WHERE n < 'NaN') FROM t;
RESET enable_seqscan;
RESET enable_bitmapscan;

-- values of all widths, made of rows and of entries
CREATE TABLE s (v numeric(18, 6)) WITH (autovacuum_enabled = off);
INSERT INTO s SELECT sign * (10::numeric ^ e + d) / 1000000 FROM generate_series(0, 17) e, generate_series(-2, 2) d, unnest('{-1,1}'::int[]) sign;
CREATE INDEX s_v ON s USING gpu_btree (v);
VACUUM ANALYZE s;
SELECT same('SELECT v::text FROM s WHERE v > -1e12', 's_v', false);
SET enable_seqscan = off;
SELECT count(*) FROM s r, LATERAL (SELECT count(*) FROM s WHERE s.v = r.v) c;
SELECT bool_and(pg_column_size(v) > 0 AND scale(v) = 6 AND v = v::text::numeric) FROM s WHERE v IS NOT NULL;
RESET enable_seqscan;
-- bytes of a value that the index gives are those of PostgreSQL's own
SET enable_seqscan = off;
SET enable_bitmapscan = off;
CREATE TEMP TABLE of_index AS SELECT v FROM s WHERE v > -1e12;
SET enable_indexonlyscan = off;
SET enable_seqscan = on;
SET enable_indexscan = off;
SELECT count(*), count(*) FILTER (WHERE o.v::text = s.v::text AND numeric_send(o.v) = numeric_send(s.v) AND pg_column_size(o.v) = pg_column_size(s.v)) FROM of_index o JOIN s ON o.v = s.v;
RESET enable_seqscan;
RESET enable_indexscan;
RESET enable_bitmapscan;
RESET enable_indexonlyscan;
DROP TABLE of_index;

-- aggregates
SET cpu_operator_cost = 0;
SET random_page_cost = 0.1;
CREATE TABLE query (place serial, query text);
INSERT INTO query (query) VALUES
	('SELECT sum(n), avg(n), min(n), max(n), count(n), count(*) FROM t WHERE n < ''NaN'''),
	('SELECT sum(n), avg(n), min(n), max(n), count(n) FROM t WHERE n > 5'),
	('SELECT sum(fraction), avg(fraction), sum(whole), avg(whole), sum(odd), avg(odd), max(odd), min(odd) FROM t WHERE n < 1e6'),
	('SELECT sum(fraction), avg(fraction), sum(whole), avg(whole), sum(odd), avg(odd), max(odd), min(odd) FROM t WHERE n > -1e30'),
	('SELECT sum(n), avg(n), max(n) FROM t WHERE n > 1e20'),
	('SELECT sum(n), avg(n), min(n) FROM t WHERE n = 0'),
	('SELECT sum(n), avg(n), min(n), count(n) FROM t WHERE n = 0.001'),
	('SELECT sum(whole), sum(odd) FROM t WHERE whole < 0'),
	('SELECT kind, sum(odd), avg(odd), min(odd), max(odd), count(odd) FROM t GROUP BY kind'),
	('SELECT kind, odd, count(*) FROM t WHERE kind < 3 GROUP BY kind, odd'),
	('SELECT n, count(*), sum(whole) FROM t WHERE n > -1e30 GROUP BY n'),
	('SELECT fraction, sum(n), count(one), sum(one) FROM t WHERE fraction > 0.1 GROUP BY fraction'),
	('SELECT kind, sum(n), avg(fraction) FROM t WHERE n > -1e30 GROUP BY kind HAVING sum(n) IS NOT NULL'),
	('SELECT odd, count(*), sum(n), avg(n) FROM t WHERE n > -1e30 GROUP BY odd'),
	('SELECT one, kind, sum(n), sum(fraction) FROM t WHERE fraction > -1 GROUP BY one, kind'),
	('SELECT sum(n) FILTER (WHERE odd > 5.0005), sum(n) FILTER (WHERE kind = 2), sum(whole) FILTER (WHERE odd <> ''NaN'' AND fraction < 0.25) FROM t WHERE n < 1e30'),
	('SELECT kind, sum(CASE WHEN odd > 5 THEN n END), avg(CASE WHEN odd < 0.0001 THEN whole END), count(CASE WHEN odd = 1 THEN 1.5 END) FROM t WHERE n < 1e30 GROUP BY kind'),
	('SELECT sum(n), count(*) FROM t WHERE n > -1e30 AND odd IN (1.5, 2.25, 3.0001, 44.4, ''NaN'', ''Infinity'')'),
	('SELECT sum(n), count(*) FROM t WHERE n > -1e30 AND NOT odd BETWEEN -50.0001 AND 50.0001 AND whole <> 1'),
	('SELECT sum(n), count(*) FROM t WHERE n > -1e30 AND odd < ''Infinity'' AND fraction > ''-Infinity'' AND whole > -1e40'),
	('SELECT count(DISTINCT odd), sum(DISTINCT odd), avg(DISTINCT odd) FROM t WHERE n > -1e30'),
	('SELECT DISTINCT odd FROM t WHERE n > -1e30'),
	('SELECT sum(below), max(below) FROM t WHERE p > 0'),
	('SELECT kind, sum(below), count(*) FROM t WHERE kind < 5 GROUP BY kind');
SELECT place, same_aggregate(query) FROM query ORDER BY place;
-- core's: variances and expressions
SELECT place, same_aggregate(query) FROM (VALUES (1, 'SELECT stddev(n) FROM t WHERE n < 1e30'),
	(2, 'SELECT sum(n + 1) FROM t WHERE n < 1e30')) v (place, query) ORDER BY place;

-- rows that have changed since VACUUM, and the transaction's own
UPDATE t SET n = n + 1, odd = -odd WHERE id % 50 = 0;
DELETE FROM t WHERE id % 60 = 0;
SELECT place, same_aggregate(query) FROM query WHERE place IN (1, 3, 9, 13, 16, 18) ORDER BY place;
BEGIN;
INSERT INTO t SELECT * FROM t WHERE id % 77 = 1;
UPDATE t SET whole = -whole WHERE id % 78 = 1;
SELECT place, same_aggregate(query) FROM query WHERE place IN (1, 3, 9, 13, 16, 18) ORDER BY place;
SELECT same('SELECT whole, odd FROM t WHERE whole <= 10000.5 AND whole > -1e18', 't_down', false);
ROLLBACK;
SELECT name, gpuds_index_check(name::regclass, true) FROM unnest('{t_n,t_down,t_skip,t_p,t_odd,t_expr,s_v}'::text[]) name;

-- joins and functions
SET gpuds.enable_join = on;
CREATE TABLE o (n numeric, exact numeric(12, 2)) WITH (autovacuum_enabled = off);
INSERT INTO o SELECT n + d, n FROM t, (VALUES (0::numeric), (0.001)) v (d) WHERE id % 9 = 0;
INSERT INTO o VALUES ('Infinity', 'NaN'), ('-Infinity', 0), (1e100, 0), (-1e100, 0), (NULL, NULL), (0.000, 0), (repeat('9', 3000)::numeric, 0);
ANALYZE o;
SET enable_nestloop = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM o JOIN t USING (n);
CREATE TEMP TABLE answers AS SELECT
	(SELECT count(*) || ' ' || sum(whole) FROM o JOIN t USING (n)) AS joined, (SELECT count(*) FROM o WHERE EXISTS (SELECT FROM t WHERE t.n = o.n)) AS there,
	(SELECT count(*) FROM o WHERE NOT EXISTS (SELECT FROM t WHERE t.n = o.n)) AS missing, (SELECT count(*) FROM t WHERE n IN (SELECT exact FROM o)) AS known;
SET gpuds.enable_join = off;
RESET enable_nestloop;
RESET enable_hashjoin;
RESET enable_mergejoin;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SET enable_bitmapscan = off;
SELECT joined = (SELECT count(*) || ' ' || sum(whole) FROM o JOIN t USING (n)) AS joined, there = (SELECT count(*) FROM o WHERE EXISTS (SELECT FROM t WHERE t.n = o.n)) AS there,
	missing = (SELECT count(*) FROM o WHERE NOT EXISTS (SELECT FROM t WHERE t.n = o.n)) AS missing, known = (SELECT count(*) FROM t WHERE n IN (SELECT exact FROM o)) AS known FROM answers;
RESET enable_indexscan;
RESET enable_indexonlyscan;
RESET enable_bitmapscan;
SELECT gpuds_contains('t_n', '{0,0.0,0.001,10000.01,NaN,Infinity,1e50}'::numeric[]);
SELECT count(*) = (SELECT count(*) FROM t WHERE n IN (0, 'NaN')) FROM gpuds_lookup('t_n', '{0,0.001,NaN}'::numeric[]);

-- columns whose type changes: the scale stays, or the index is built again
SELECT pg_relation_filenode('t_n') AS file \gset
ALTER TABLE t ALTER n TYPE numeric(15, 2);
SELECT pg_relation_filenode('t_n') = :file AS kept;
INSERT INTO t (id, n, kind) VALUES (30000, 9999999999999.99, 8);
SELECT same('SELECT n FROM t WHERE n > 1e10', 't_n', false);
ALTER TABLE t ALTER n TYPE numeric(16, 3);
SELECT pg_relation_filenode('t_n') = :file AS kept;
SELECT same('SELECT n, odd FROM t WHERE n > 100', 't_n', false);
ALTER TABLE t ALTER n TYPE numeric(20, 3);
ALTER TABLE t ALTER odd TYPE numeric;
ALTER TABLE s ALTER v TYPE numeric;
CREATE INDEX ON o USING gpu_btree (n);
CREATE INDEX ON o USING gpu_btree (exact) INCLUDE (n);
CREATE INDEX ON t USING gpu_btree ((n + 1));
CREATE TABLE u (a numeric(19, 2), b numeric(2, -3), c numeric(3, 20), d numeric(10), h numeric);
CREATE INDEX ON u USING gpu_btree (a);
CREATE INDEX ON u USING gpu_skiplist (b);
CREATE INDEX ON u USING gpu_btree (c);
CREATE INDEX u_d ON u USING gpu_btree (d);
CREATE INDEX u_h ON u USING gpu_hash (h, a) INCLUDE (d);
CREATE INDEX ON u USING gpu_hash (h) INCLUDE (a);
ALTER TABLE u ALTER h TYPE numeric(40, 2), ALTER a TYPE numeric;
ALTER TABLE u ALTER d TYPE numeric(17);
ALTER TABLE u ALTER d TYPE numeric;
SELECT gpuds_index_check('u_h', true), gpuds_index_check('u_d', true);
-- partitions: what they add up is put together
CREATE TABLE p (k int, v numeric(10, 4)) PARTITION BY RANGE (k);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (100);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (100) TO (200);
CREATE TABLE p3 PARTITION OF p FOR VALUES FROM (200) TO (300);
INSERT INTO p SELECT i % 290, CASE WHEN i % 290 < 195 THEN i / 3.0 ELSE 'NaN' END FROM generate_series(1, 10000) i;
INSERT INTO p VALUES (250, NULL), (299, NULL);
CREATE INDEX p_k ON p USING gpu_btree (k) INCLUDE (v);
VACUUM ANALYZE p;
SELECT same_aggregate('SELECT sum(v), avg(v), min(v), max(v), count(v) FROM p WHERE k < ' || k) FROM unnest('{0,50,150,190,250}'::int[]) k;
SELECT same_aggregate('SELECT k, sum(v), avg(v), min(v), max(v), count(v) FROM p WHERE k > 80 GROUP BY k');
SELECT same_aggregate('SELECT sum(v), avg(v) FROM p WHERE k > 298');

-- a cast's function that is told the typmod may show other digits than the column's type: no index has such a value
CREATE TYPE amount AS (value numeric);
CREATE FUNCTION as_number(amount, int) RETURNS numeric IMMUTABLE LANGUAGE sql AS 'SELECT $1.value';
CREATE CAST (amount AS numeric) WITH FUNCTION as_number(amount, int) AS ASSIGNMENT;
CREATE TABLE shown (key numeric(12, 2), included numeric(9, 1), a bigint, b bigint, side numeric(10, 3));
INSERT INTO shown (key) VALUES (row(1.5)::amount);
CREATE INDEX shown_key ON shown USING gpu_btree (key);
SELECT key FROM shown;
TRUNCATE shown;
CREATE INDEX shown_key ON shown USING gpu_btree (key) INCLUDE (included);
CREATE INDEX shown_side ON shown USING gpu_skiplist (a, b) INCLUDE (side);
INSERT INTO shown VALUES (row(1.5)::amount, 2, 1, 1, 1);
INSERT INTO shown VALUES (1, row(2.00)::amount, 1, 1, 1);
INSERT INTO shown VALUES (1, 2, 1, 1, row(3)::amount);
INSERT INTO shown VALUES (1, 2, 1, 1, row(3.0001)::amount);
INSERT INTO shown VALUES (row(1.50)::amount, row(2.0)::amount, 1, 1, row('NaN')::amount), (row('NaN')::amount, NULL, 1, 1, row(0.000)::amount);
SELECT * FROM shown;
-- nor is one put aside, and what a refused row leaves on its page does not hinder scans
VACUUM (INDEX_CLEANUP off) shown;
INSERT INTO shown VALUES (2, 2, 2, 1, row(4)::amount);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT a, b, side FROM shown WHERE a > 0;
SELECT a, b, side FROM shown WHERE a > 0 ORDER BY side;
RESET enable_seqscan;
RESET enable_bitmapscan;
DROP INDEX shown_side;
INSERT INTO shown VALUES (2, 2, 2, 1, row(4)::amount);
CREATE INDEX shown_side ON shown USING gpu_skiplist (a, b) INCLUDE (side);

DROP SCHEMA :test CASCADE;
