-- What the planner expects of an index, and what it asks the index for that.
\set test test_estimates
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude
SELECT current_setting('server_version_num')::int >= 180000 AS since_18 \gset

CREATE FUNCTION expected_rows(query text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN plan -> 0 -> 'Plan' ->> 'Plan Rows';
END $$;

-- Since 18, the planner asks an index of any kind for its ends if a constant is near those that
-- ANALYZE has seen.  Nothing is loaded for that.
CREATE TABLE t (k int, v int) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, i FROM generate_series(1, 10000) i;
ANALYZE t;
INSERT INTO t SELECT i, i FROM generate_series(10001, 30000) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
SELECT expected_rows('SELECT * FROM t WHERE k > 20000') < 50 AS few;
SELECT state FROM gpuds_indexes WHERE indexrelid = 't_k'::regclass;
SELECT gpuds_index_load('t_k');
SELECT (expected_rows('SELECT * FROM t WHERE k > 20000') > 50) = :'since_18' AS asks;
SELECT same('SELECT * FROM t WHERE k > 29990', 't_k');
-- rows that are dead, or not committed, at the end
DELETE FROM t WHERE k > 25000;
SELECT expected_rows('SELECT * FROM t WHERE k > 24000') < 1000 AS few;
VACUUM t;
BEGIN;
INSERT INTO t VALUES (100000, 1);
SELECT (expected_rows('SELECT * FROM t WHERE k > 50000') > 50) = :'since_18' AS asks;
ROLLBACK;
SELECT (expected_rows('SELECT * FROM t WHERE k < -5') < 50) AS few;
DELETE FROM t;
VACUUM t;
SELECT expected_rows('SELECT * FROM t WHERE k > 20000') < 50 AS few;

-- A condition on the second column alone: all entries are looked at, which costs less than to look at
-- all rows.  Since 18, btree skips from one value of the first column to the next.
CREATE TABLE s (a int, b int, note text) WITH (autovacuum_enabled = off);
INSERT INTO s SELECT i % 10, i, repeat('x', 50) FROM generate_series(1, 50000) i;
CREATE INDEX s_ab ON s USING gpu_btree (a, b);
VACUUM ANALYZE s;
SELECT plan_of('SELECT * FROM s WHERE b = 17') LIKE '%Index Scan using s_ab on %' AS by_index;
SELECT same('SELECT * FROM s WHERE b BETWEEN 17 AND 40', 's_ab');
CREATE INDEX s_btree ON s (a, b);
SELECT (plan_of('SELECT * FROM s WHERE b = 17') LIKE '%Index Scan using s_btree on %') = :'since_18' AS skips;
DROP INDEX s_btree;

-- With many values of the first column, nobody skips: all entries are looked at by us, at less cost than by btree.
CREATE TABLE many (a int, b int, c int, note text) WITH (autovacuum_enabled = off);
INSERT INTO many SELECT nullif(i % 9973, 5), i % 1009, i, repeat('x', 50) FROM generate_series(1, 50000) i;
CREATE INDEX many_abc ON many USING gpu_btree (a, b, c);
CREATE INDEX many_btree ON many (a, b, c);
VACUUM ANALYZE many;
SELECT plan_of('SELECT * FROM many WHERE b = 17') LIKE '%many_abc%' AS by_index;
SELECT plan_of('SELECT * FROM many WHERE b > 100') LIKE '%Seq Scan%' AS by_table;
-- on any columns but the first, or with a gap
DROP INDEX many_btree;
SELECT condition, same('SELECT * FROM many WHERE ' || condition, 'many_abc') FROM (VALUES ('b = 17'), ('c = 17'), ('b = 17 AND c < 20000'),
	('b IN (17, 18, 2000)'), ('c IN (17, 18)'), ('a = 17 AND c > 20000'), ('a IN (17, 18) AND c > 20000'), ('a < 100 AND b = 17'),
	('a IS NULL AND c < 20000'), ('a IS NOT NULL AND b = 17'), ('b IS NULL')) q (condition);
