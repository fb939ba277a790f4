-- GpudsAggregate below core's aggregates of distinct values, which has each value of a group once, or some times;
-- and SELECT DISTINCT.
\set test test_distinct
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

CREATE DOMAIN code AS int;
CREATE TABLE t (at timestamp, account int, status int2, yes bool, c code, f float8, price numeric, name text) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT timestamp '2000-01-01' + i * interval '7 minutes', nullif(i % 97, 11), nullif(i % 5, 4), CASE i % 3 WHEN 0 THEN true WHEN 1 THEN false END,
	i % 13, CASE i % 4 WHEN 0 THEN '-0'::float8 WHEN 1 THEN 0 WHEN 2 THEN 'NaN' ELSE i % 10 END, i % 7 * 1.50, 'name ' || i % 17
FROM generate_series(1, 20000) i;
INSERT INTO t (account) VALUES (1000), (1000), (NULL);
CREATE INDEX t_at ON t USING gpu_btree (at) INCLUDE (account, status, yes, c);
CREATE INDEX t_account ON t USING gpu_btree (account, status);
CREATE INDEX t_f ON t USING gpu_btree (f) INCLUDE (status);
CREATE INDEX t_name ON t USING gpu_hash (name) INCLUDE (account);
VACUUM ANALYZE t;
SET cpu_operator_cost = 0;
SET random_page_cost = 0.1;

CREATE TABLE query (place serial, query text);
INSERT INTO query (query) VALUES
	-- of all rows, of leading columns and of others
	('SELECT count(DISTINCT account) FROM t WHERE at > ''2000-02-01'''),
	('SELECT count(DISTINCT account), sum(DISTINCT account), avg(DISTINCT account), min(account), max(account), stddev(DISTINCT account) FROM t WHERE account IS NOT NULL'),
	('SELECT array_agg(DISTINCT status), count(DISTINCT status) FROM t WHERE at > ''2000-02-01'''),
	('SELECT count(DISTINCT at), max(at) FROM t WHERE at > ''2000-02-01'''),
	('SELECT bool_or(DISTINCT yes), count(DISTINCT yes) FROM t WHERE at > ''2000-02-01'' AND account > 3'),
	('SELECT count(DISTINCT c) FROM t WHERE at > ''2000-02-01'''),
	-- by groups: those of the index's order, hashed, and of what is computed
	('SELECT account, count(DISTINCT status) FROM t GROUP BY account'),
	('SELECT status, count(DISTINCT account) FROM t WHERE at > ''2000-02-01'' GROUP BY status'),
	('SELECT status, yes, count(DISTINCT account), max(account) FROM t WHERE at > ''2000-02-01'' GROUP BY status, yes HAVING count(DISTINCT account) > 3'),
	('SELECT date_trunc(''day'', at), count(DISTINCT account) FROM t WHERE at > ''2000-02-01'' GROUP BY 1'),
	('SELECT date_trunc(''day'', at) AS d, count(DISTINCT status) + 1 FROM t WHERE at > ''2000-02-01'' GROUP BY 1 ORDER BY d DESC LIMIT 5'),
	('SELECT extract(hour FROM at), status, sum(DISTINCT account) FROM t WHERE at > ''2000-02-01'' GROUP BY 1, 2'),
	('SELECT account, count(DISTINCT account), sum(DISTINCT account) FROM t GROUP BY account'),
	('SELECT count(DISTINCT account) FROM t WHERE at > ''2000-02-01'' HAVING max(account) > 20'),
	('SELECT q.n FROM (SELECT count(DISTINCT account) AS n FROM t WHERE at > ''2000-02-01'') q'),
	-- several columns, other aggregates, and conditions
	('SELECT count(DISTINCT account), count(DISTINCT status) FROM t WHERE at > ''2000-02-01'''),
	('SELECT count(DISTINCT account), count(*) FROM t WHERE at > ''2000-02-01'''),
	('SELECT count(DISTINCT account) + 1, sum(account), stddev(account), min(at), count(*) FILTER (WHERE yes) FROM t WHERE at > ''2000-02-01'' HAVING sum(account) > 3'),
	('SELECT count(DISTINCT account) FILTER (WHERE status = 1) FROM t WHERE at > ''2000-02-01'''),
	('SELECT count(DISTINCT account) FILTER (WHERE status = 1), count(DISTINCT account) FILTER (WHERE status IS NULL OR account < 30), count(DISTINCT account) FROM t WHERE at > ''2000-02-01'''),
	('SELECT status, count(*), sum(DISTINCT account), count(DISTINCT yes) FROM t WHERE at > ''2000-02-01'' GROUP BY status'),
	('SELECT status, yes, coalesce(status, 7) + count(*), count(DISTINCT account) FILTER (WHERE account > 90) FROM t WHERE at > ''2000-02-01'' GROUP BY status, yes HAVING count(DISTINCT c) > 3'),
	('SELECT account, count(*), count(DISTINCT status) FROM t GROUP BY account'),
	('SELECT date_trunc(''day'', at) AS d, count(*), count(DISTINCT status), avg(account) FROM t WHERE at > ''2000-02-01'' GROUP BY 1 ORDER BY 3 DESC, 1 LIMIT 7'),
	('SELECT extract(hour FROM at), status, max(at), count(DISTINCT yes), array_agg(DISTINCT status) FROM t WHERE at > ''2000-02-01'' GROUP BY 1, 2'),
	('SELECT status, count(*), count(DISTINCT account) FROM t WHERE at > ''2000-02-01'' AND status = 2 GROUP BY status'),
	-- core's nodes: what is ordered, computed, or what an index does not have by its bytes
	('SELECT array_agg(DISTINCT account ORDER BY account DESC) FROM t WHERE at > ''2000-02-01'''),
	('SELECT count(DISTINCT account + 1) FROM t WHERE at > ''2000-02-01'''),
	('SELECT count(DISTINCT price) FROM t WHERE at > ''2000-02-01'''),
	('SELECT status, count(DISTINCT f) FROM t WHERE f IS NOT NULL GROUP BY status'),
	('SELECT date_trunc(''day'', at), count(DISTINCT at) FROM t WHERE at > ''2000-02-01'' GROUP BY 1'),
	('SELECT status, count(DISTINCT account) FROM t WHERE at > ''2000-02-01'' GROUP BY ROLLUP (status)'),
	('SELECT string_agg(DISTINCT status::text, '','') FROM t WHERE at > ''2000-02-01''');
SELECT place, same_aggregate(query) FROM query ORDER BY place;

-- SELECT DISTINCT: of leading columns, of others, of what is computed
CREATE TABLE selects (place serial, query text);
INSERT INTO selects (query) VALUES
	('SELECT DISTINCT account FROM t'),
	('SELECT DISTINCT account FROM t WHERE account > 20 ORDER BY account DESC LIMIT 7'),
	('SELECT DISTINCT account, status FROM t WHERE account IS NOT NULL'),
	('SELECT DISTINCT status, account FROM t WHERE at > ''2000-02-01'''),
	('SELECT DISTINCT yes FROM t WHERE at > ''2000-02-01'' AND status <> 2'),
	('SELECT DISTINCT date_trunc(''day'', at) FROM t WHERE at > ''2000-02-01'''),
	('SELECT DISTINCT extract(hour FROM at), status FROM t WHERE at > ''2000-02-01'' ORDER BY 2, 1'),
	('SELECT count(*) FROM (SELECT DISTINCT account FROM t) q'),
	('SELECT DISTINCT account FROM t WHERE account > 900'),
	('SELECT account FROM t WHERE account < 5 UNION SELECT DISTINCT account FROM t WHERE account < 9'),
	('SELECT DISTINCT date_trunc(''day'', at), status, date_trunc(''day'', at) AS again FROM t WHERE at > ''2000-02-01'''),
	-- core's nodes: DISTINCT ON, what an index does not have, expressions of several columns, windows, sets
	('SELECT DISTINCT ON (account) account, status FROM t WHERE account > 20 ORDER BY account, status'),
	('SELECT DISTINCT price FROM t WHERE at > ''2000-02-01'''),
	('SELECT DISTINCT account + status FROM t WHERE account > 20'),
	('SELECT DISTINCT account, count(*) OVER () FROM t WHERE account > 20'),
	('SELECT DISTINCT account, generate_series(1, 2) FROM t WHERE account > 20'),
	('SELECT DISTINCT account, 1 FROM t WHERE account > 20'),
	('SELECT DISTINCT f FROM t WHERE f > 3 AND status = 1'),
	('SELECT DISTINCT account, status FROM t GROUP BY account, status HAVING count(f) > 3');
SELECT place, same_aggregate(query) FROM selects ORDER BY place;
-- of nothing, and of next to nothing, by whatever plan
SELECT split_part(same_aggregate('SELECT count(DISTINCT account) FROM t WHERE at > ''2100-01-01'''), ',', 1);
SELECT split_part(same_aggregate('SELECT count(*), count(DISTINCT account), count(DISTINCT status) FROM t WHERE at > ''2100-01-01'''), ',', 1);
SELECT split_part(same_aggregate('SELECT status, count(*), count(DISTINCT account) FROM t WHERE at > ''2100-01-01'' AND status = 2 GROUP BY status'), ',', 1);
SELECT split_part(same_aggregate('SELECT DISTINCT status, status AS again FROM t WHERE status = 2 AND account = 5'), ',', 1);

-- A table of groups that is full many times gives them in parts.
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT same_aggregate('SELECT status, count(DISTINCT at) FROM t WHERE at > ''2000-02-01'' GROUP BY status');
SELECT same_aggregate('SELECT DISTINCT status, account, yes FROM t WHERE at > ''2000-02-01''');
SELECT same_aggregate('SELECT status, count(*), count(DISTINCT at) FILTER (WHERE account = 5), count(DISTINCT yes) FROM t WHERE at > ''2000-02-01'' GROUP BY status');
RESET work_mem;
RESET hash_mem_multiplier;

-- rows that have changed since VACUUM
DELETE FROM t WHERE account % 10 = 3;
UPDATE t SET account = account + 1000 WHERE account % 10 = 4;
SELECT place, same_aggregate(query) FROM query WHERE place <= 26 ORDER BY place;
SELECT place, same_aggregate(query) FROM selects WHERE place <= 11 AND place NOT IN (2, 9) ORDER BY place;

SET enable_seqscan = off;
SET gpuds.enable_aggregate = on;
EXPLAIN (COSTS OFF) SELECT DISTINCT account FROM t ORDER BY account;
EXPLAIN (COSTS OFF) SELECT DISTINCT status, yes FROM t WHERE at > '2000-02-01';
EXPLAIN (COSTS OFF, VERBOSE) SELECT status, count(*), count(DISTINCT account) FILTER (WHERE yes) FROM t WHERE at > '2000-02-01' GROUP BY status;
-- parameters: of a subquery that is executed again, and of a prepared statement
EXPLAIN (COSTS OFF) SELECT d, (SELECT count(*) * 1000 + count(DISTINCT status) FILTER (WHERE account < d + 2) FROM t WHERE account > d) FROM generate_series(80, 84) d;
SELECT d, (SELECT count(*) * 1000 + count(DISTINCT status) FILTER (WHERE account < d + 2) FROM t WHERE account > d) FROM generate_series(80, 84) d;
PREPARE q (int) AS SELECT count(*), count(DISTINCT status) FILTER (WHERE account < $1) FROM t WHERE account > 80;
SET plan_cache_mode = force_generic_plan;
EXECUTE q (70);
EXECUTE q (90);
RESET plan_cache_mode;
-- a function that breaks its promise has one answer for all aggregates, as in core's plan, unless it is asked only once
CREATE SEQUENCE answers;
CREATE FUNCTION breaks() RETURNS int STABLE LANGUAGE sql AS 'SELECT 80 + nextval(''answers'')::int % 7';
ALTER FUNCTION breaks() SET search_path FROM CURRENT;
EXPLAIN (COSTS OFF) SELECT account, count(*), count(DISTINCT status) FROM t WHERE account > breaks() GROUP BY account;
EXPLAIN (COSTS OFF) SELECT account, count(*), count(DISTINCT status) FROM t WHERE account > (SELECT breaks()) GROUP BY account;
-- privileges are those of the query's columns
CREATE ROLE regress_distinct;
GRANT USAGE ON SCHEMA :test TO regress_distinct;
GRANT SELECT (at) ON t TO regress_distinct;
SET ROLE regress_distinct;
SELECT count(DISTINCT account) FROM t WHERE at > '2000-02-01';
SELECT DISTINCT account FROM t WHERE at > '2000-02-01';
RESET ROLE;
-- and of the functions that it calls
GRANT SELECT ON t TO regress_distinct;
BEGIN;
REVOKE EXECUTE ON FUNCTION count() FROM PUBLIC;
SET LOCAL ROLE regress_distinct;
SELECT count(DISTINCT account) FILTER (WHERE account > 90), count(DISTINCT status) FROM t WHERE account > 80;
SELECT count(DISTINCT account), count(*) FROM t WHERE account > 80;
ROLLBACK;
RESET enable_seqscan;

-- partitions
CREATE TABLE p (k int, v bigint, w int) PARTITION BY RANGE (k);
CREATE TABLE p_1 PARTITION OF p FOR VALUES FROM (0) TO (100);
CREATE TABLE p_2 PARTITION OF p FOR VALUES FROM (100) TO (200);
CREATE TABLE p_3 PARTITION OF p FOR VALUES FROM (200) TO (300);
INSERT INTO p SELECT i % 200, i % 77, i % 9 FROM generate_series(1, 5000) i;
CREATE INDEX p_k ON p USING gpu_btree (k) INCLUDE (v, w);
VACUUM ANALYZE p;
SELECT same_aggregate('SELECT count(DISTINCT v) FROM p WHERE k >= 0');
SELECT same_aggregate('SELECT w, count(DISTINCT v) FROM p WHERE k >= 50 GROUP BY w');
SELECT same_aggregate('SELECT k, sum(DISTINCT w) FROM p WHERE k >= 50 GROUP BY k');
SELECT same_aggregate('SELECT count(DISTINCT v) FROM p WHERE k >= 200');
SELECT same_aggregate('SELECT w, count(*), count(DISTINCT v), count(DISTINCT v) FILTER (WHERE v > 30) FROM p WHERE k >= 50 GROUP BY w');
SELECT same_aggregate('SELECT DISTINCT v FROM p WHERE k >= 50');
SELECT same_aggregate('SELECT DISTINCT w, k, w AS again FROM p WHERE k >= 50 ORDER BY 1, 2 LIMIT 30');
SELECT same_aggregate('SELECT DISTINCT v FROM p WHERE k >= 200');

-- How many values groups have is not estimated as a tenth of the rows at most, but if statistics say so.
CREATE TABLE pairs (k int, a int, b int) WITH (autovacuum_enabled = off);
INSERT INTO pairs SELECT i, i % 300, i * 7 % 211 FROM generate_series(1, 20000) i;
CREATE INDEX pairs_k ON pairs USING gpu_btree (k) INCLUDE (a, b);
VACUUM ANALYZE pairs;
CREATE FUNCTION estimate(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN jsonb_path_query_first(plan, '$.**?(@."Custom Plan Provider" == "GpudsAggregate")."Plan Rows"');
END $$;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_indexscan = off;
SELECT estimate('SELECT a, count(DISTINCT b) FROM pairs WHERE k > 0 GROUP BY a') BETWEEN 15000 AND 19000 AS drawn,
	estimate('SELECT count(DISTINCT b) FROM pairs WHERE k > 0') AS of_all;
CREATE STATISTICS pairs_ab (ndistinct) ON a, b FROM pairs;
UPDATE pairs SET b = a % 211;
VACUUM ANALYZE pairs;
SELECT estimate('SELECT a, count(DISTINCT b) FROM pairs WHERE k > 0 GROUP BY a') AS by_statistics;

DROP OWNED BY regress_distinct;
DROP ROLE regress_distinct;
DROP SCHEMA :test CASCADE;
