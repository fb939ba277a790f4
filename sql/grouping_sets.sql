-- GROUPING SETS, ROLLUP and CUBE: core puts parts of GpudsAggregate together for each of the sets.
\set test test_grouping_sets
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

CREATE TABLE t (at timestamptz, account int, status int2, yes bool, amount numeric(12, 2), v bigint, f float8, name text) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT timestamptz '2000-01-01' + i * interval '7 minutes', nullif(i % 97, 11), nullif(i % 5, 4), CASE i % 3 WHEN 0 THEN true WHEN 1 THEN false END,
	i % 1000 / 100.0, i, i % 64, 'name ' || i % 17
FROM generate_series(1, 20000) i;
INSERT INTO t (account) VALUES (1000), (1000), (NULL);
CREATE INDEX t_at ON t USING gpu_btree (at) INCLUDE (account, status, yes, amount, v, f);
CREATE INDEX t_account ON t USING gpu_btree (account, status);
VACUUM ANALYZE t;
SET cpu_operator_cost = 0;
SET random_page_cost = 0.1;

CREATE TABLE query (place serial, query text);
INSERT INTO query (query) VALUES
	('SELECT status, count(*), sum(amount), avg(v), min(at), stddev(v), sum(f) FROM t WHERE at > ''2000-02-01'' GROUP BY ROLLUP (status)'),
	('SELECT status, yes, GROUPING(status, yes), count(*) FROM t WHERE at > ''2000-02-01'' GROUP BY CUBE (status, yes)'),
	('SELECT account, status, count(*) FROM t GROUP BY ROLLUP (account, status)'),
	('SELECT date_trunc(''month'', at) AS m, status, sum(v) FROM t WHERE at > ''2000-02-01'' GROUP BY GROUPING SETS ((1), (1, 2), (), ())'),
	('SELECT extract(hour FROM at) + 1, coalesce(status, 9), count(*) FILTER (WHERE yes) FROM t WHERE at > ''2000-02-01'' GROUP BY CUBE (extract(hour FROM at), status)'),
	('SELECT status, yes, account, GROUPING(yes) * 2 + GROUPING(account), avg(amount) FROM t WHERE at > ''2000-02-01'' GROUP BY status, ROLLUP (yes, account)'),
	('SELECT status, count(*) FROM t WHERE at > ''2000-02-01'' GROUP BY ROLLUP (status) HAVING GROUPING(status) = 0 AND count(*) > 10'),
	('SELECT status, sum(v) AS s FROM t WHERE at > ''2000-02-01'' GROUP BY ROLLUP (status) ORDER BY GROUPING(status), s DESC LIMIT 4'),
	('SELECT status, sum(count(*)) OVER (PARTITION BY GROUPING(status)) FROM t WHERE at > ''2000-02-01'' GROUP BY ROLLUP (status)'),
	('SELECT status, yes FROM t WHERE at > ''2000-02-01'' GROUP BY CUBE (status, yes)'),
	('SELECT status, count(*) FROM t WHERE at > ''2000-02-01'' GROUP BY GROUPING SETS ((status), (status))'),
	('SELECT DISTINCT GROUPING(status) FROM t WHERE at > ''2000-02-01'' GROUP BY ROLLUP (status)'),
	-- no set without columns, and no rows
	('SELECT status, yes, count(*) FROM t WHERE at > ''2000-02-01'' GROUP BY GROUPING SETS ((status), (yes))'),
	('SELECT status, count(*), sum(v), max(amount) FROM t WHERE at > ''2100-02-01'' AND v > 3 GROUP BY ROLLUP (status)'),
	-- core's nodes: sets without columns only, what is not combined, two functions, what the index has not
	('SELECT count(*) FROM t WHERE at > ''2000-02-01'' GROUP BY GROUPING SETS ((), ())'),
	('SELECT status, count(DISTINCT account) FROM t WHERE at > ''2000-02-01'' GROUP BY ROLLUP (status)'),
	('SELECT status, array_agg(account ORDER BY at) FROM t WHERE at > ''2000-02-01'' GROUP BY ROLLUP (status)'),
	('SELECT name, count(*) FROM t WHERE at > ''2000-02-01'' GROUP BY ROLLUP (name)'),
	('SELECT GROUPING(status), status, count(*) FROM t WHERE at > ''2000-02-01'' GROUP BY status'),
	('SELECT yes, yes, count(*) FROM t WHERE at > ''2000-02-01'' GROUP BY ROLLUP (1, 2)');
SELECT place, same_aggregate(query) FROM query WHERE place <> 14 ORDER BY place;
-- of nothing, by whatever plan
SELECT split_part(same_aggregate(query), ',', 1) FROM query WHERE place = 14;

-- a table of groups that is full many times
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT same_aggregate('SELECT status, account, yes, count(*), sum(v) FROM t WHERE at > ''2000-02-01'' GROUP BY ROLLUP (status, account, yes)');
RESET work_mem;
RESET hash_mem_multiplier;

-- rows that have changed since VACUUM
DELETE FROM t WHERE account % 10 = 3;
UPDATE t SET status = status + 1 WHERE account % 10 = 4;
SELECT place, same_aggregate(query) FROM query WHERE place <= 13 ORDER BY place;

SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET gpuds.enable_aggregate = on;
EXPLAIN (COSTS OFF, VERBOSE) SELECT status, GROUPING(status), count(*) + 1 FROM t WHERE at > '2000-02-01' GROUP BY ROLLUP (status) HAVING sum(v) > 3;
-- a subquery that is executed again, and a cursor
EXPLAIN (COSTS OFF) SELECT d, (SELECT max(n) FROM (SELECT status, count(*) AS n FROM t WHERE at < d GROUP BY ROLLUP (status)) q)
FROM (VALUES (timestamptz '2000-01-02'), ('2000-02-01'), ('1999-01-01')) x (d);
SELECT d, (SELECT max(n) FROM (SELECT status, count(*) AS n FROM t WHERE at < d GROUP BY ROLLUP (status)) q)
FROM (VALUES (timestamptz '2000-01-02'), ('2000-02-01'), ('1999-01-01')) x (d);
BEGIN;
DECLARE c CURSOR FOR SELECT status, count(*) FROM t WHERE at < '2000-02-01' GROUP BY ROLLUP (status) ORDER BY 1, 2;
FETCH 2 FROM c;
DELETE FROM t;
FETCH ALL FROM c;
ROLLBACK;
-- a prepared statement
PREPARE p (timestamptz) AS SELECT status, count(*) FROM t WHERE at < $1 GROUP BY ROLLUP (status) ORDER BY 1, 2;
SET plan_cache_mode = force_generic_plan;
EXECUTE p ('2000-01-10');
EXECUTE p ('2000-01-05');
RESET plan_cache_mode;
-- privileges are those of the query's columns
CREATE ROLE regress_sets;
GRANT USAGE ON SCHEMA :test TO regress_sets;
GRANT SELECT (at, status) ON t TO regress_sets;
SET ROLE regress_sets;
SELECT status, sum(v) FROM t WHERE at < '2000-02-01' GROUP BY ROLLUP (status);
SELECT count(*) > 3 FROM (SELECT status, count(*) FROM t WHERE at < '2000-02-01' GROUP BY ROLLUP (status)) q;
RESET ROLE;
RESET enable_seqscan;

-- partitions, and joins
CREATE TABLE p (k int, v bigint, w int) PARTITION BY RANGE (k);
CREATE TABLE p_1 PARTITION OF p FOR VALUES FROM (0) TO (100);
CREATE TABLE p_2 PARTITION OF p FOR VALUES FROM (100) TO (200);
CREATE TABLE p_3 PARTITION OF p FOR VALUES FROM (200) TO (300);
INSERT INTO p SELECT i % 200, i % 77, i % 9 FROM generate_series(1, 5000) i;
CREATE INDEX p_k ON p USING gpu_btree (k) INCLUDE (v, w);
CREATE TABLE d AS SELECT i AS k, i % 3 AS kind FROM generate_series(0, 250) i;
CREATE INDEX d_k ON d (k) INCLUDE (kind);
VACUUM ANALYZE p, d;
SELECT same_aggregate('SELECT w, count(*), sum(v) FROM p WHERE k >= 50 GROUP BY ROLLUP (w)');
SELECT same_aggregate('SELECT k, w, GROUPING(k), sum(v) FROM p WHERE k >= 50 GROUP BY CUBE (k, w)');
SELECT same_aggregate('SELECT kind, w, sum(v), GROUPING(w) FROM p_1 JOIN d USING (k) WHERE k >= 5 GROUP BY ROLLUP (kind, w)');
SELECT same_aggregate('SELECT kind, w, sum(v) FROM p JOIN d USING (k) WHERE k >= 5 GROUP BY CUBE (kind, w)');
-- a scan that is disabled stays so if it is the only one of an Append
SET enable_indexscan = off;
SELECT plan_of('SELECT sum(v) FROM p WHERE k BETWEEN 110 AND 150') LIKE '%Index%' AS disabled;
RESET enable_indexscan;

DROP OWNED BY regress_sets;
DROP ROLE regress_sets;
DROP SCHEMA :test CASCADE;
