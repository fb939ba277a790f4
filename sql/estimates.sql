-- What the planner expects of an index, and what it asks the index for that.
\set test test_estimates
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude
SELECT current_setting('server_version_num')::int >= 180000 AS since_18 \gset
-- A structure on a GPU is not asked
SET gpuds.device = cpu;

\set ECHO none
CREATE FUNCTION expected_rows(query text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN plan -> 0 -> 'Plan' ->> 'Plan Rows';
END $$;

-- Is what is expected of a query what it gives, within a share of it and 100 rows?
CREATE FUNCTION close(query text, share float8 DEFAULT 0.1) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	expected float8 := expected_rows(query);
	found float8;
BEGIN
	EXECUTE format('SELECT count(*) FROM (%s) q', query) INTO found;
	RETURN CASE WHEN abs(expected - found) <= share * found + 100 THEN 'close' ELSE format('%s rows, %s expected', found, expected) END;
END $$;
\set ECHO all

-- Rows behind the end that ANALYZE has seen are counted in the index, if its structure is there.  Nothing is loaded for
-- that.
CREATE TABLE t (k int, v int) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, i FROM generate_series(1, 10000) i;
ANALYZE t;
INSERT INTO t SELECT i, i FROM generate_series(10001, 30000) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
SELECT expected_rows('SELECT * FROM t WHERE k > 20000') < 50 AS few;
SELECT state FROM gpuds_indexes WHERE indexrelid = 't_k'::regclass;
SELECT gpuds_index_load('t_k');
SELECT condition, close('SELECT * FROM t WHERE ' || condition) FROM (VALUES ('k > 20000'), ('k > 12345'), ('k < 5000'), ('k > 35000'),
	('k BETWEEN 9000 AND 11000'), ('k BETWEEN 25000 AND 26000'), ('k < -5'), ('k >= 30000')) q (condition);
SELECT same('SELECT * FROM t WHERE k > 29990', 't_k');
-- where there are no rows any more, and where all are gone
DELETE FROM t WHERE k > 25000 OR k < 2000;
VACUUM t;
SELECT gpuds_index_load('t_k');
SELECT condition, close('SELECT * FROM t WHERE ' || condition, 0.15) FROM (VALUES ('k > 24000'), ('k < 2000'), ('k < 4000'), ('k < 20000')) q (condition);
BEGIN;
INSERT INTO t VALUES (100000, 1);
SELECT close('SELECT * FROM t WHERE k < 20000');
ROLLBACK;
DELETE FROM t;
VACUUM t;
SELECT expected_rows('SELECT * FROM t WHERE k > 20000') < 50 AS few;

-- both ends, of each order, with NULLs, common values and other columns behind; ends of a type
CREATE TABLE e (a bigint, d date, s smallint, u timestamptz, p int) WITH (autovacuum_enabled = off);
INSERT INTO e SELECT nullif(i % 7, 3) * 1000 + i, '2024-01-01'::date + i / 10, nullif(i / 50, 20), '2024-01-01'::timestamptz + i * interval '1 min',
	CASE WHEN i % 2 = 0 THEN 5000 ELSE i END FROM generate_series(1, 10000) i;
ANALYZE e;
INSERT INTO e SELECT CASE WHEN i = 20000 THEN 9223372036854775807 WHEN i = 19999 THEN -9223372036854775808 ELSE i END, '2024-01-01'::date + i / 10 - 2500, i / 50 - 250,
	'2024-01-01'::timestamptz + i * interval '1 min', i - 20000 FROM generate_series(10001, 20000) i;
CREATE INDEX e_a ON e USING gpu_btree (a);
CREATE INDEX e_d ON e USING gpu_btree (d DESC);
CREATE INDEX e_s ON e USING gpu_btree (s NULLS FIRST, a);
CREATE INDEX e_u ON e USING gpu_btree (u DESC NULLS LAST) INCLUDE (p);
CREATE INDEX e_p ON e USING gpu_btree (p, s);
SELECT count(gpuds_index_load(indexrelid)::text) FROM pg_index WHERE indrelid = 'e'::regclass;
SELECT condition, close('SELECT * FROM e WHERE ' || condition) FROM (VALUES ('d > ''2025-05-01'''), ('d < ''2024-01-01'''),
	('s < 0'), ('s < -20'), ('u > ''2024-01-08'''), ('u < ''2024-01-02'''), ('u BETWEEN ''2024-01-10'' AND ''2024-01-11'''),
	('p < 0'), ('p < -5000'), ('p > 6000'), ('p = 5000')) q (condition);
-- an end far away, with one row
SELECT expected_rows('SELECT * FROM e WHERE a > 1000000000') < 12000 AS bounded;

-- A structure that lacks most of what ANALYZE has seen is not believed
CREATE TABLE behind (k int) WITH (autovacuum_enabled = off);
INSERT INTO behind SELECT i FROM generate_series(1, 1000) i;
CREATE INDEX behind_k ON behind USING gpu_btree (k);
SELECT gpuds_index_load('behind_k');
INSERT INTO behind SELECT i FROM generate_series(1001, 100000) i;
ANALYZE behind;
SELECT close('SELECT * FROM behind WHERE k > 50000');
-- a row far away leaves the others where they are
INSERT INTO behind VALUES (2000000000);
INSERT INTO behind SELECT i FROM generate_series(100001, 150000) i;
SELECT gpuds_index_load('behind_k');
SELECT close('SELECT * FROM behind WHERE k BETWEEN 110000 AND 120000'), close('SELECT * FROM behind WHERE k > 1000000', 2500);

-- Partitions have their own
CREATE TABLE parts (k int, v int) PARTITION BY LIST (v);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES IN (2);
INSERT INTO parts SELECT i, 1 + i % 2 FROM generate_series(1, 10000) i;
CREATE INDEX parts_k ON parts USING gpu_btree (k);
ANALYZE parts;
INSERT INTO parts SELECT i, 1 FROM generate_series(10001, 20000) i;
SELECT gpuds_index_load('parts_1_k_idx');
SELECT close('SELECT * FROM parts_1 WHERE k > 15000'), close('SELECT * FROM parts WHERE k > 15000 AND v = 1');

-- Who may not see all rows is not told by estimates what the index knows
CREATE ROLE gpuds_estimates_reader;
GRANT USAGE ON SCHEMA :test TO gpuds_estimates_reader;
INSERT INTO t SELECT i, i FROM generate_series(1, 10000) i;
ANALYZE t;
INSERT INTO t SELECT i, i FROM generate_series(10001, 30000) i;
SELECT gpuds_index_load('t_k');
GRANT SELECT (k) ON t TO gpuds_estimates_reader;
SET ROLE gpuds_estimates_reader;
SELECT expected_rows('SELECT k FROM t WHERE k > 15000') < 5000 AS as_core;
RESET ROLE;
GRANT SELECT ON t TO gpuds_estimates_reader;
SET ROLE gpuds_estimates_reader;
SELECT close('SELECT k FROM t WHERE k > 15000');
RESET ROLE;
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
CREATE POLICY even ON t USING (k % 2 = 0);
SET ROLE gpuds_estimates_reader;
SELECT expected_rows('SELECT k FROM t WHERE k > 15000') < 5000 AS as_core;
RESET ROLE;
-- of a child, the table that the query names decides
CREATE TABLE par (k int);
CREATE TABLE child () INHERITS (par);
INSERT INTO child SELECT i FROM generate_series(1, 1000) i;
ANALYZE child;
INSERT INTO child SELECT i FROM generate_series(1001, 3000) i;
CREATE INDEX child_k ON child USING gpu_btree (k);
SELECT gpuds_index_load('child_k');
CREATE FUNCTION tells(int, int) RETURNS bool LANGUAGE plpgsql COST 0.0001 AS
	'BEGIN RAISE WARNING ''%'', $1; RETURN $1 < $2; END';
CREATE OPERATOR <<<< (FUNCTION = tells, LEFTARG = int, RIGHTARG = int, RESTRICT = scalarltsel);
GRANT SELECT ON child TO gpuds_estimates_reader;
ALTER TABLE child ENABLE ROW LEVEL SECURITY;
SET ROLE gpuds_estimates_reader;
SELECT * FROM par WHERE k <<<< 100;
SELECT * FROM child WHERE k <<<< 100;
RESET ROLE;
DROP TABLE par CASCADE;
DROP TABLE t;
REVOKE ALL ON SCHEMA :test FROM gpuds_estimates_reader;
DROP ROLE gpuds_estimates_reader;

-- Joins: the index is asked about the keys that ANALYZE has seen.  Half of the outer rows' keys are in the table, which has
-- some keys with very many rows; core expects three times as many rows.
SET gpuds.enable_join = on;
CREATE TABLE inner_rows (k bigint, v int, note text) WITH (autovacuum_enabled = off);
INSERT INTO inner_rows SELECT CASE WHEN i <= 20000 THEN i ELSE 1000000 + i % 3 END, i, 'note' FROM generate_series(1, 60000) i;
CREATE INDEX inner_k ON inner_rows USING gpu_btree (k);
CREATE TABLE outer_rows (k bigint, w int, common int) WITH (autovacuum_enabled = off);
INSERT INTO outer_rows SELECT CASE WHEN i % 2 = 0 THEN i ELSE -i END, i, CASE WHEN i % 10 = 0 THEN i ELSE 7 + i % 2 END FROM generate_series(1, 20000) i;
VACUUM ANALYZE inner_rows, outer_rows;
SELECT gpuds_index_load('inner_k');
SELECT query, close(query, 0.35), plan_of(query) LIKE '%GpudsJoin%' AS node FROM (VALUES
	('SELECT v FROM outer_rows o JOIN inner_rows USING (k)'),
	('SELECT v FROM outer_rows o LEFT JOIN inner_rows USING (k)'),
	('SELECT w FROM outer_rows o WHERE EXISTS (SELECT FROM inner_rows i WHERE i.k = o.k)'),
	('SELECT w FROM outer_rows o WHERE NOT EXISTS (SELECT FROM inner_rows i WHERE i.k = o.k)'),
	('SELECT v FROM outer_rows o JOIN inner_rows i ON i.k = o.common'),
	('SELECT v FROM outer_rows o JOIN inner_rows USING (k) WHERE note LIKE ''n%'''),
	('SELECT v FROM (SELECT k FROM outer_rows WHERE w > 10000) o JOIN inner_rows USING (k)')) q (query);
-- a constant in front of the key, and a hash
CREATE INDEX inner_note_k ON inner_rows USING gpu_hash (note, k);
DROP INDEX inner_k;
SELECT gpuds_index_load('inner_note_k');
SELECT close('SELECT v FROM outer_rows o JOIN inner_rows USING (k) WHERE note = ''note''', 0.35);

-- What the index has not said is core's estimate: its structure is not there, or the key is an expression.
CREATE TABLE few_keys (k bigint) WITH (autovacuum_enabled = off);
INSERT INTO few_keys SELECT 2 * (i % 500) FROM generate_series(1, 30000) i;
CREATE INDEX few_keys_k ON few_keys USING gpu_btree (k);
VACUUM ANALYZE few_keys;
SELECT query, close(query, 0.35), plan_of(query) LIKE '%GpudsJoin%' AS node FROM (VALUES
	('SELECT w FROM outer_rows o WHERE EXISTS (SELECT FROM few_keys i WHERE i.k = o.k)'),
	('SELECT w FROM outer_rows o WHERE NOT EXISTS (SELECT FROM few_keys i WHERE i.k = o.k)')) q (query);
SELECT gpuds_index_load('few_keys_k');
SELECT query, close(query, 0.35), plan_of(query) LIKE '%GpudsJoin%' AS node FROM (VALUES
	('SELECT w FROM outer_rows o WHERE EXISTS (SELECT FROM few_keys i WHERE i.k = o.k)'),
	('SELECT w FROM outer_rows o WHERE NOT EXISTS (SELECT FROM few_keys i WHERE i.k = o.k)')) q (query);
-- one key that most inner rows have, and one outer row
CREATE TABLE sentinel (k bigint) WITH (autovacuum_enabled = off);
INSERT INTO sentinel SELECT -19999 FROM generate_series(1, 50000) i;
CREATE INDEX sentinel_k ON sentinel USING gpu_btree (k);
VACUUM ANALYZE sentinel;
SELECT gpuds_index_load('sentinel_k');
SELECT close('SELECT w FROM outer_rows o JOIN sentinel USING (k)', 0.5);

-- A row leaves a semijoin with its first match, and an entry is visited once for all outer rows with its key
CREATE TABLE big (c int, v int, pad text) WITH (autovacuum_enabled = off);
INSERT INTO big SELECT i % 1000, i, repeat('x', 60) FROM generate_series(1, 100000) i;
CREATE INDEX big_c ON big USING gpu_btree (c);
CREATE TABLE few (c int, id int) WITH (autovacuum_enabled = off);
INSERT INTO few SELECT i % 10, i FROM generate_series(1, 2000) i;
VACUUM ANALYZE big, few;
SELECT query, plan_of(query) LIKE '%GpudsJoin%' AS node FROM (VALUES
	('SELECT count(*) FROM few WHERE EXISTS (SELECT FROM big WHERE big.c = few.c AND big.pad <> '''')'),
	('SELECT count(*) FROM few WHERE NOT EXISTS (SELECT FROM big WHERE big.c = few.c AND big.pad <> '''')')) q (query);
SET gpuds.enable_join = off;

-- Counts where no page is all-visible are left to what visits a page once, unless pages have states
SET gpuds.enable_aggregate = on;
SET gpuds.enable_scan = on;
CREATE UNLOGGED TABLE unmapped (k bigint, pad text) WITH (autovacuum_enabled = off);
INSERT INTO unmapped SELECT hashint8extended(i, 0), repeat('x', 60) FROM generate_series(1, 100000) i;
CREATE INDEX unmapped_k ON unmapped USING gpu_btree (k);
ANALYZE unmapped;
SELECT plan_of('SELECT count(*) FROM unmapped') LIKE '%GpudsAggregate%' AS all_rows,
	plan_of('SELECT count(*) FROM unmapped WHERE k > 0') LIKE '%GpudsAggregate%' AS half;
ALTER TABLE unmapped SET LOGGED;
SELECT plan_of('SELECT count(*) FROM unmapped WHERE k > 0') LIKE '%GpudsAggregate%' AS half;
-- twice, since there may be pages at the end that have never been used
VACUUM unmapped;
VACUUM unmapped;
SELECT plan_of('SELECT count(*) FROM unmapped') LIKE '%GpudsAggregate%' AS all_rows,
	plan_of('SELECT count(*) FROM unmapped WHERE k > 0') LIKE '%GpudsAggregate%' AS half;
SET gpuds.enable_aggregate = off;
SET gpuds.enable_scan = off;

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

-- A function of the second column is evaluated anew for each value of the first one: of ten, or of a tenth of all, and
-- not of as many as the rows might have
CREATE TABLE events (account int, at timestamptz) WITH (autovacuum_enabled = off);
INSERT INTO events SELECT i * 7919::bigint % 1009, '2024-01-01'::timestamptz + i * interval '1 min' FROM generate_series(1, 200000) i;
CREATE INDEX events_account ON events USING gpu_btree (account, at);
VACUUM ANALYZE events;
SET gpuds.enable_aggregate = on;
SELECT condition, plan_of(format('SELECT date_trunc(''month'', at), count(*) FROM events WHERE %s GROUP BY 1', condition)) LIKE '%GpudsAggregate%' AS by_index
FROM (VALUES ('account = 5'), ('account = ANY (''{1,2,3,5,8,13,21,34,55,89}'')'), ('account BETWEEN 5 AND 12')) q (condition);
