-- GpudsAggregate below a join: a table's rows are aggregated before they are joined with others, and core puts the parts
-- together.
\set test test_dimensions
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude
-- 19 aggregates before joins itself
DO $$ BEGIN PERFORM set_config(name, 'off', false) FROM pg_settings WHERE name = 'enable_eager_aggregate'; END $$;

CREATE DOMAIN number AS int;
CREATE TABLE e (at timestamp, account int, v int, kind int2, c number, f float8, big bigint NOT NULL, yes bool, other text)
WITH (autovacuum_enabled = off);
INSERT INTO e SELECT timestamp '2000-01-01' + i * interval '17 minutes', nullif(i % 97, 11), nullif(i * 31 % 1009, 5), nullif(i % 5, 4), i % 13,
	CASE i % 4 WHEN 0 THEN '-0'::float8 WHEN 1 THEN 0 WHEN 2 THEN 'NaN' ELSE i % 10 END,
	i % 50 * bigint '90000000000', i % 3 = 0, 'name ' || i % 10
FROM generate_series(1, 8000) i;
CREATE INDEX e_at ON e USING gpu_btree (at) INCLUDE (account, v, kind);
CREATE INDEX e_account ON e USING gpu_btree (account, kind) INCLUDE (v);
CREATE INDEX e_c ON e USING gpu_btree (c) INCLUDE (v, yes);
CREATE INDEX e_f ON e USING gpu_btree (f) INCLUDE (v);
CREATE INDEX e_big ON e USING gpu_btree (big) INCLUDE (account, kind);
-- accounts that come once, twice, and not at all, and two that are NULL
CREATE TABLE a (account int, region text, active bool, kind int2, rank bigint, f float8, since timestamp);
INSERT INTO a SELECT i, 'region ' || i % 7, i % 3 <> 0, i % 4, i * bigint '90000000000', CASE i WHEN 1 THEN 0 WHEN 2 THEN '-0'::float8 WHEN 3 THEN 'NaN' ELSE i END,
	timestamp '2000-01-01' + i * interval '1 day' FROM generate_series(1, 80) i;
INSERT INTO a SELECT account, 'region 9', active, kind, rank, f, since FROM a WHERE account % 10 = 0;
INSERT INTO a (account, region, active) VALUES (NULL, 'none', true), (NULL, NULL, NULL), (5000, 'region 5000', true);
CREATE TABLE a_key (account int PRIMARY KEY, name text, region text);
INSERT INTO a_key SELECT i, 'name ' || i, 'region ' || i % 7 FROM generate_series(1, 80) i;
CREATE TABLE a_types (i2 int2, i8 int8, n numeric, x text);
INSERT INTO a_types SELECT i, i, i, i FROM generate_series(1, 80) i;
CREATE TABLE r (region text, continent text, account int);
INSERT INTO r SELECT 'region ' || i, 'continent ' || i % 3, i FROM generate_series(0, 9) i;
CREATE TABLE k (kind int2 PRIMARY KEY, name text);
INSERT INTO k SELECT i, 'kind ' || i FROM generate_series(0, 4) i;
CREATE TABLE nothing (account int, region text);
VACUUM ANALYZE e;
ANALYZE a, a_key, a_types, r, k, nothing;
SET cpu_operator_cost = 0;
SET random_page_cost = 0.1;

-- Plans.
SET gpuds.enable_aggregate = on;
SET enable_mergejoin = off;
SET enable_nestloop = off;
EXPLAIN (COSTS OFF) SELECT region, count(*), sum(v) FROM e JOIN a USING (account) WHERE at < '2000-02-01' AND active GROUP BY region HAVING count(*) > 3 ORDER BY 2 DESC, 1 LIMIT 3;
EXPLAIN (COSTS OFF, VERBOSE) SELECT a.region, avg(e.v) FILTER (WHERE e.kind = 1) FROM e JOIN a USING (account) WHERE e.at < '2000-02-01' GROUP BY a.region;
EXPLAIN (COSTS OFF) SELECT date_trunc('day', e.at), a.region, count(*) FROM e LEFT JOIN a USING (account) WHERE at < '2000-02-01' GROUP BY 1, 2;
EXPLAIN (COSTS OFF) SELECT count(*) FROM e WHERE at < '2000-02-01' AND account IN (SELECT account FROM a WHERE active);
EXPLAIN (COSTS OFF) SELECT continent, name, count(*) FROM e JOIN a USING (account) JOIN r USING (region) JOIN k ON k.kind = e.kind WHERE at < '2000-02-01' GROUP BY 1, 2;
RESET enable_nestloop;
SET enable_hashjoin = off;
EXPLAIN (COSTS OFF) SELECT region, count(*) FROM e JOIN a_key USING (account) WHERE at < '2000-01-03' GROUP BY region;
SET enable_mergejoin = on;
SET enable_nestloop = off;
EXPLAIN (COSTS OFF) SELECT region, count(*) FROM e JOIN a USING (account) WHERE at < '2000-02-01' GROUP BY region;
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_mergejoin;
-- core's plan is better if there are as many groups as rows
RESET cpu_operator_cost;
RESET random_page_cost;
SET enable_nestloop = off;
SET enable_mergejoin = off;
EXPLAIN (COSTS OFF) SELECT a.region, count(*) FROM e JOIN a ON a.since = e.at GROUP BY a.region;
RESET enable_nestloop;
RESET enable_mergejoin;
SET cpu_operator_cost = 0;
SET random_page_cost = 0.1;
SET gpuds.enable_aggregate = off;

CREATE TABLE query (place serial, query text);
INSERT INTO query (query) VALUES
	('SELECT region, count(*), sum(v), avg(v), min(v), max(v), stddev(v), var_pop(e.kind), count(v), count(e.kind) FROM e JOIN a USING (account) WHERE at > ''2000-02-01'' GROUP BY region'),
	('SELECT region, sum(big), avg(big) FROM e JOIN a USING (account) WHERE big > 5 GROUP BY region'),
	('SELECT count(*), sum(v), stddev(v) FROM e JOIN a USING (account) WHERE at > ''2000-02-01'' AND active'),
	('SELECT region, bool_and(yes), bool_or(yes), count(yes), sum(v) FROM e JOIN a ON a.account = e.c GROUP BY region'),
	('SELECT region FROM e JOIN a USING (account) WHERE at > ''2000-02-01'' GROUP BY region'),
	('SELECT count(*) FROM e JOIN a ON a.account = e.account AND a.kind = e.kind WHERE at > ''2000-02-01'''),
	('SELECT a.region, e.kind, count(*) FROM e, a WHERE e.account = a.account AND at BETWEEN ''2000-02-01'' AND ''2000-02-15'' AND a.region LIKE ''%3'' GROUP BY 1, 2'),
	-- groups: of the key, of columns of either side, of what is computed
	('SELECT account, count(*) FROM e JOIN a USING (account) GROUP BY account'),
	('SELECT e.account, a.region, e.kind, count(*), sum(v) FROM e JOIN a USING (account) WHERE at > ''2000-02-01'' GROUP BY 1, 2, 3'),
	('SELECT upper(region) || ''!'', length(region), count(*) + sum(v) FROM e JOIN a USING (account) WHERE at > ''2000-02-01'' GROUP BY 1, 2'),
	('SELECT date_trunc(''day'', at)::date, region, sum(v) FROM e JOIN a USING (account) WHERE at > ''2000-02-01'' GROUP BY date_trunc(''day'', at), region'),
	('SELECT extract(hour FROM at) + 1, sum(v), date_trunc(''week'', since) FROM e JOIN a USING (account) WHERE at > ''2000-02-01'' GROUP BY extract(hour FROM at), 3'),
	('SELECT name, k.account, count(*) FROM e JOIN a_key k USING (account) WHERE at > ''2000-02-01'' GROUP BY k.account'),
	('SELECT region, 1, count(*) FROM e JOIN a USING (account) WHERE at > ''2000-02-01'' GROUP BY 1, 2'),
	('SELECT count(*) FROM e JOIN a USING (account) WHERE at > ''2000-02-01'' GROUP BY e.kind + 1, region'),
	-- conditions, HAVING, ORDER BY, LIMIT, FILTER, CASE
	('SELECT region, count(*) FROM e JOIN a USING (account) WHERE at > ''2000-02-01'' AND v > 100 GROUP BY region HAVING sum(v) > 10000 AND region > ''region 2'' ORDER BY count(*) DESC, region LIMIT 2'),
	('SELECT region, sum(v) FILTER (WHERE e.kind = 2), count(*) FILTER (WHERE v > 500), sum(CASE WHEN e.kind = 1 THEN v ELSE 0 END) FROM e JOIN a USING (account) WHERE at > ''2000-02-01'' GROUP BY region'),
	('SELECT region, sum(n) OVER (ORDER BY region) FROM (SELECT region, count(*) AS n FROM e JOIN a USING (account) WHERE at > ''2000-02-01'' GROUP BY region) q'),
	('SELECT region, count(*), sum(count(*)) OVER (ORDER BY region), rank() OVER (ORDER BY sum(v)) FROM e JOIN a USING (account) WHERE at > ''2000-02-01'' GROUP BY region'),
	('SELECT DISTINCT count(*) FROM e JOIN a USING (account) WHERE at > ''2000-02-01'' GROUP BY region'),
	-- a column that is the same for all rows
	('SELECT region, count(*) FROM e JOIN a USING (account) WHERE e.account = 20 AND at > ''2000-02-01'' GROUP BY region'),
	('SELECT region, count(*) FROM e JOIN a USING (account) WHERE a.account = 79 AND at < ''1999-02-01'' GROUP BY region'),
	('SELECT count(*), sum(v) FROM e JOIN a_key k USING (account) WHERE k.account = 11 AND at > ''2000-02-01'''),
	('SELECT e.kind, region, count(*) FROM e JOIN a USING (account) WHERE e.kind = 3 AND at > ''2000-02-01'' GROUP BY e.kind, region'),
	('SELECT region, count(*) FROM e, a WHERE e.account = 7 AND a.account = 20 AND at > ''2000-02-01'' GROUP BY region'),
	('SELECT count(*) FROM e, nothing WHERE at > ''2000-02-01'''),
	('SELECT count(*), max(v) FROM e, a WHERE at < ''1999-02-01'''),
	('SELECT region, count(*) FROM e, a WHERE at > ''2000-02-01'' GROUP BY region'),
	-- sides without rows
	('SELECT region, count(*) FROM e JOIN nothing USING (account) WHERE at > ''2000-02-01'' GROUP BY region'),
	('SELECT count(*), sum(v), avg(v) FROM e JOIN nothing USING (account) WHERE at > ''2000-02-01'''),
	('SELECT region, count(*), sum(v) FROM e LEFT JOIN nothing USING (account) WHERE at > ''2000-02-01'' GROUP BY region'),
	('SELECT region, count(*) FROM e JOIN a USING (account) WHERE at < ''1999-02-01'' GROUP BY region'),
	-- types: of one operator family, or not; equal values that differ in bytes
	('SELECT x, count(*) FROM e JOIN a_types ON i8 = account WHERE at > ''2000-02-01'' GROUP BY x'),
	('SELECT x, count(*) FROM e JOIN a_types ON account = i2 WHERE at > ''2000-02-01'' GROUP BY x'),
	('SELECT x, sum(e.kind) FROM e JOIN a_types ON i2 = account AND i8 = account WHERE at > ''2000-02-01'' GROUP BY x'),
	('SELECT region, count(*) FROM e JOIN a ON a.rank = e.big GROUP BY region'),
	('SELECT region, count(*) FROM e JOIN a ON a.account = e.big / 90000000000 GROUP BY region'),
	('SELECT region, count(*), sum(v) FROM e JOIN a USING (f) GROUP BY region'),
	('SELECT x, count(*) FROM e JOIN a_types ON n = account WHERE at > ''2000-02-01'' GROUP BY x'),
	('SELECT x, count(*) FROM e JOIN a_types ON x = account::text WHERE at > ''2000-02-01'' GROUP BY x'),
	('SELECT count(*) FROM e JOIN a ON a.account + 1 = e.account WHERE at > ''2000-02-01'''),
	('SELECT count(*) FROM e JOIN a ON a.account = e.account + 1 WHERE at > ''2000-02-01'''),
	-- outer joins and semijoins
	('SELECT region, count(*), sum(v) FROM e LEFT JOIN a USING (account) WHERE at > ''2000-02-01'' GROUP BY region'),
	('SELECT region, count(*), sum(v) FROM a RIGHT JOIN e ON e.account = a.account AND active WHERE at > ''2000-02-01'' GROUP BY region'),
	('SELECT region, count(*) FROM e LEFT JOIN a ON a.account = e.account AND e.v > 100 WHERE at > ''2000-02-01'' GROUP BY region'),
	('SELECT region, count(*) FROM e LEFT JOIN a USING (account) WHERE at > ''2000-02-01'' AND coalesce(region, ''x'') <> ''region 2'' GROUP BY region'),
	('SELECT count(*) FROM e LEFT JOIN a USING (account) WHERE at > ''2000-02-01'' AND a.account IS NULL'),
	('SELECT count(*), sum(v) FROM e LEFT JOIN a USING (account) WHERE at > ''2000-02-01'''),
	('SELECT region, count(*) FROM a LEFT JOIN e USING (account) GROUP BY region'),
	('SELECT region, count(*) FROM a FULL JOIN e USING (account) GROUP BY region'),
	('SELECT count(*), sum(v) FROM e WHERE at > ''2000-02-01'' AND EXISTS (SELECT FROM a WHERE a.account = e.account AND active)'),
	('SELECT kind, sum(v) FROM e WHERE at > ''2000-02-01'' AND NOT EXISTS (SELECT FROM a WHERE a.account = e.account) GROUP BY kind'),
	('SELECT kind, sum(v) FROM e WHERE at > ''2000-02-01'' AND EXISTS (SELECT FROM a WHERE a.account = e.account AND a.kind > e.kind) GROUP BY kind'),
	('SELECT sum(v) FROM e WHERE at > ''2000-02-01'' AND account NOT IN (SELECT account FROM a WHERE account IS NOT NULL)'),
	('SELECT region, count(*) FROM e JOIN (a LEFT JOIN r USING (region)) ON e.account = a.account WHERE at > ''2000-02-01'' GROUP BY region'),
	('SELECT continent, count(*) FROM e JOIN a USING (account) LEFT JOIN r USING (region) WHERE at > ''2000-02-01'' GROUP BY continent'),
	('SELECT continent, count(*) FROM e LEFT JOIN (a JOIN r USING (region)) ON e.account = a.account WHERE at > ''2000-02-01'' GROUP BY continent'),
	('SELECT continent, count(*) FROM e LEFT JOIN a USING (account) LEFT JOIN r USING (region) WHERE at > ''2000-02-01'' GROUP BY continent'),
	('SELECT region, count(*) FROM e JOIN a USING (account) WHERE at > ''2000-02-01'' AND EXISTS (SELECT FROM r WHERE r.region = a.region) GROUP BY region'),
	('SELECT region, count(*) FROM e JOIN a USING (account) WHERE at > ''2000-02-01'' AND EXISTS (SELECT FROM r WHERE r.account = e.account) GROUP BY region'),
	-- several tables: a chain, a star, both, some by one column, some without a condition
	('SELECT continent, count(*), sum(v) FROM e JOIN a USING (account) JOIN r USING (region) WHERE at > ''2000-02-01'' GROUP BY continent'),
	('SELECT region, name, count(*), sum(v) FROM e JOIN a USING (account) JOIN k ON k.kind = e.kind WHERE at > ''2000-02-01'' GROUP BY region, name'),
	('SELECT continent, name, avg(v) FROM e JOIN a USING (account) JOIN r USING (region) JOIN k ON k.kind = e.kind WHERE at > ''2000-02-01'' GROUP BY 1, 2'),
	('SELECT a.region, r.region, count(*) FROM e JOIN a USING (account) JOIN r USING (account) WHERE at > ''2000-02-01'' GROUP BY 1, 2'),
	('SELECT name, count(*) FROM e JOIN a USING (account) JOIN k ON k.kind = e.kind AND k.kind = a.kind WHERE at > ''2000-02-01'' GROUP BY name'),
	('SELECT continent, count(*) FROM e JOIN a USING (account), r WHERE at > ''2000-02-01'' GROUP BY continent'),
	('SELECT name, count(*) FROM e JOIN a USING (account) JOIN k ON k.kind = e.kind WHERE at > ''2000-02-01'' AND k.kind + a.kind > 2 GROUP BY name'),
	-- the table with itself, in a subquery, with what is no table
	('SELECT x.kind, count(*), sum(x.v) FROM e x JOIN e y USING (account) WHERE x.at < ''2000-01-20'' AND y.at < ''2000-01-04'' GROUP BY x.kind'),
	('SELECT region, n FROM (SELECT region, count(*) AS n FROM e JOIN a USING (account) GROUP BY region) q WHERE n > 500'),
	('SELECT region, (SELECT count(*) FROM e JOIN a USING (account) WHERE a.region = r.region AND at > ''2000-02-01'') FROM r'),
	('SELECT region, n, s FROM r, LATERAL (SELECT count(*) AS n, sum(v) AS s FROM e JOIN a USING (account) WHERE e.at > timestamp ''2000-01-01'' + r.account * interval ''9 days'' AND a.region = r.region OFFSET 0) q'),
	('SELECT region, (SELECT max(continent) FROM r WHERE r.region = a.region), count(*) FROM e JOIN a USING (account) WHERE at > ''2000-02-01'' GROUP BY 1, 2 HAVING count(*) > (SELECT count(*) FROM r)'),
	('SELECT region, (SELECT max(continent) FROM r WHERE r.account < count(v)) FROM e JOIN a USING (account) WHERE at > ''2000-02-01'' GROUP BY region'),
	('SELECT region, count(*) FROM e JOIN a ON a.account = e.account AND a.account > (SELECT min(account) + 5 FROM r) WHERE at > ''2000-02-01'' AND (SELECT true) GROUP BY region'),
	('SELECT count(a), a.ctid FROM e JOIN a USING (account) WHERE at > ''2000-02-01'' GROUP BY a.ctid'),
	('SELECT a, sum(v) FROM e JOIN a USING (account) WHERE at > ''2000-02-01'' GROUP BY a'),
	('SELECT e.ctid, count(*) FROM e JOIN a USING (account) WHERE at > ''2000-05-01'' GROUP BY e.ctid'),
	('SELECT count(*) FROM e JOIN a ON a.ctid = e.ctid'),
	('SELECT x, count(*) FROM e JOIN (VALUES (1, ''one''), (2, ''two''), (2, ''deux''), (NULL, ''null'')) q (account, x) USING (account) WHERE at > ''2000-02-01'' GROUP BY x'),
	('SELECT x % 3, count(*), sum(v) FROM e JOIN generate_series(1, 50) x ON x = account WHERE at > ''2000-02-01'' GROUP BY 1'),
	('WITH q AS MATERIALIZED (SELECT * FROM a WHERE active) SELECT region, count(*) FROM e JOIN q USING (account) WHERE at > ''2000-02-01'' GROUP BY region'),
	('SELECT q.n, sum(v) FROM e JOIN (SELECT account, count(*) AS n FROM a GROUP BY account) q USING (account) WHERE at > ''2000-02-01'' GROUP BY q.n'),
	('SELECT count(*) FROM e, LATERAL (SELECT e.v + a.kind AS s FROM a WHERE a.account = e.account) q WHERE at > ''2000-02-01'''),
	('SELECT region, count(*) FROM e JOIN a_key USING (account) WHERE at > ''2000-02-01'' GROUP BY ROLLUP (region)'),
	-- core's plan: an aggregate of both sides, or of the other one, what no index has, other conditions, and other aggregates
	('SELECT region, sum(v + a.kind) FROM e JOIN a USING (account) WHERE at > ''2000-02-01'' GROUP BY region'),
	('SELECT region, sum(v) FILTER (WHERE v > a.kind) FROM e JOIN a USING (account) WHERE at > ''2000-02-01'' GROUP BY region'),
	('SELECT region, max(since), count(*) FROM e JOIN a USING (account) WHERE at > ''2000-02-01'' GROUP BY region'),
	('SELECT region, count(*) FROM e JOIN a USING (account) WHERE at > ''2000-02-01'' AND other <> ''x'' GROUP BY region'),
	('SELECT region, count(*) FROM e JOIN a ON e.account < a.account WHERE at > ''2000-12-01'' GROUP BY region'),
	('SELECT region, count(*) FROM e JOIN a USING (account) WHERE at > ''2000-02-01'' AND a.kind > e.kind GROUP BY region'),
	('SELECT region, count(*) FROM e JOIN a ON e.account = a.account AND e.v = a.account GROUP BY region'),
	('SELECT region, count(DISTINCT v) FROM e JOIN a USING (account) WHERE at > ''2000-02-01'' GROUP BY region'),
	('SELECT region, array_agg(v ORDER BY v) FROM e JOIN a USING (account) WHERE at > ''2000-02-01'' GROUP BY region'),
	('SELECT e.kind + a.kind, count(*) FROM e JOIN a USING (account) WHERE at > ''2000-02-01'' GROUP BY 1'),
	('SELECT generate_series(1, 2), region, count(*) FROM e JOIN a USING (account) WHERE at > ''2000-02-01'' GROUP BY 1, 2'),
	('SELECT region, count(*) FROM e JOIN a USING (account) WHERE at > ''2000-02-01'' AND random() >= 0 GROUP BY region'),
	('SELECT region, count(*) FROM e JOIN a USING (account) WHERE at > ''2000-02-01'' GROUP BY region, random() < 0'),
	('SELECT region, sum(v) FROM e TABLESAMPLE BERNOULLI (100) JOIN a USING (account) WHERE at > ''2000-02-01'' GROUP BY region');
SELECT place, same_aggregate(query) FROM query ORDER BY place;

-- the other ways to join
SET enable_hashjoin = off;
SELECT place, same_aggregate(query) FROM query WHERE same_aggregate(query) LIKE 'wrong%' ORDER BY place;
SET enable_mergejoin = off;
SELECT place, same_aggregate(query) FROM query WHERE same_aggregate(query) LIKE 'wrong%' AND query NOT LIKE '%FULL%' ORDER BY place;
SET enable_nestloop = off;
SET enable_mergejoin = on;
SELECT place, same_aggregate(query) FROM query WHERE same_aggregate(query) LIKE 'wrong%' ORDER BY place;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_nestloop;
-- with little memory, groups come in parts, and a hash join in batches
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT place, same_aggregate(query) FROM query WHERE same_aggregate(query) LIKE 'wrong%' ORDER BY place;
RESET work_mem;
RESET hash_mem_multiplier;

-- rows that have changed since VACUUM, by transactions of others and by the own one
DELETE FROM e WHERE account % 5 = 2;
UPDATE e SET v = v + 1, account = account + 1 WHERE kind = 1;
SELECT place, same_aggregate(query) FROM query WHERE same_aggregate(query) LIKE 'wrong%' ORDER BY place;
BEGIN;
INSERT INTO e (at, account, v, big) SELECT '2000-03-01', 20, 1, 0 FROM generate_series(1, 10);
UPDATE e SET account = 30 WHERE account = 31;
SAVEPOINT s;
DELETE FROM e WHERE account = 20;
ROLLBACK TO s;
SELECT place, same_aggregate(query) FROM query WHERE same_aggregate(query) LIKE 'wrong%' ORDER BY place;
SELECT same_aggregate(query) FROM query WHERE place = 1;
ROLLBACK;

-- parameters, by custom and by generic plans
SET gpuds.enable_aggregate = on;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
PREPARE p (timestamp, bool, int) AS SELECT region, count(*), sum(v) FILTER (WHERE e.kind = $3) FROM e JOIN a USING (account) WHERE at > $1 AND active = $2 GROUP BY region ORDER BY region LIMIT 3;
SET plan_cache_mode = force_generic_plan;
EXECUTE p ('2000-02-01', true, 1);
EXECUTE p ('2000-03-01', false, 2);
EXECUTE p (NULL, false, 2);
SET plan_cache_mode = force_custom_plan;
EXECUTE p ('2000-02-01', true, 1);
EXECUTE p ('2000-03-01', false, 2);
RESET plan_cache_mode;
BEGIN;
DECLARE cursor SCROLL CURSOR FOR SELECT region, count(*) FROM e JOIN a USING (account) WHERE at > '2000-02-01' GROUP BY region ORDER BY region;
FETCH 2 FROM cursor;
MOVE BACKWARD ALL FROM cursor;
FETCH 1 FROM cursor;
COMMIT;
RESET enable_seqscan;
RESET enable_bitmapscan;
SET gpuds.enable_aggregate = off;

-- partitions, tables that inherit, and partitions that are joined one by one
CREATE TABLE p (at timestamp, account int, v int) PARTITION BY RANGE (at);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (MINVALUE) TO ('2000-02-01');
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM ('2000-02-01') TO ('2000-03-01');
CREATE TABLE p3 (v int, account int, at timestamp);
ALTER TABLE p ATTACH PARTITION p3 FOR VALUES FROM ('2000-03-01') TO (MAXVALUE);
INSERT INTO p SELECT at, account, v FROM e;
CREATE INDEX ON p USING gpu_btree (at) INCLUDE (account, v);
CREATE TABLE pa (account int, region text) PARTITION BY HASH (account);
CREATE TABLE pa1 PARTITION OF pa FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE pa2 PARTITION OF pa FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO pa SELECT account, region FROM a;
CREATE INDEX ON pa (account) INCLUDE (region);
CREATE TABLE pe (account int, v int) PARTITION BY HASH (account);
CREATE TABLE pe1 PARTITION OF pe FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE pe2 PARTITION OF pe FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO pe SELECT account, v FROM e;
CREATE INDEX ON pe USING gpu_btree (account) INCLUDE (v);
VACUUM ANALYZE p, pe;
ANALYZE pa;
TRUNCATE query RESTART IDENTITY;
INSERT INTO query (query) VALUES
	('SELECT region, count(*), sum(v), avg(v), stddev(v) FROM p JOIN a USING (account) WHERE at > ''2000-01-15'' GROUP BY region'),
	('SELECT region, sum(v) FROM p JOIN pa USING (account) WHERE at > ''2000-02-15'' GROUP BY region'),
	('SELECT count(*) FROM p JOIN pa USING (account) JOIN r USING (region)'),
	('SELECT date_trunc(''day'', at), region, count(*) FROM p LEFT JOIN pa USING (account) WHERE at > ''2000-02-15'' GROUP BY 1, 2'),
	('SELECT region, count(*), sum(v) FROM pe JOIN pa USING (account) GROUP BY region'),
	('SELECT account, count(*), sum(v) FROM pe JOIN pa USING (account) GROUP BY account'),
	('SELECT region, sum(v) FROM e JOIN pa USING (account) WHERE at > ''2000-02-15'' GROUP BY region');
SELECT place, same_aggregate(query) FROM query ORDER BY place;
SET enable_partitionwise_join = on;
SET enable_partitionwise_aggregate = on;
SELECT place, same_aggregate(query) FROM query WHERE same_aggregate(query) LIKE 'wrong%' ORDER BY place;
RESET enable_partitionwise_join;
RESET enable_partitionwise_aggregate;
SET gpuds.enable_aggregate = on;
SET enable_mergejoin = off;
SET enable_nestloop = off;
EXPLAIN (COSTS OFF) SELECT region, count(*), sum(v) FROM p JOIN a USING (account) WHERE at > '2000-02-15' GROUP BY region;
RESET enable_mergejoin;
RESET enable_nestloop;
SET gpuds.enable_aggregate = off;

-- GpudsJoin is not asked to join groups, also if its index would do
CREATE TABLE d (account int, region text);
INSERT INTO d SELECT account, region FROM a;
CREATE INDEX ON d USING gpu_btree (account);
ANALYZE d;
SET gpuds.enable_join = on;
SELECT same_aggregate('SELECT region, count(*), sum(v) FROM e JOIN d USING (account) WHERE at > ''2000-02-01'' GROUP BY region');
SET gpuds.enable_join = off;

\set ECHO none
-- random queries
CREATE FUNCTION pick(VARIADIC choices text[]) RETURNS text LANGUAGE sql VOLATILE AS
	'SELECT choices[1 + floor(random() * cardinality(choices))]';
CREATE FUNCTION random_query() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	groups text := pick('a.region', 'a.kind', 'a.region, e.account', 'e.kind, active', 'extract(dow FROM at), a.kind', '', 'upper(a.region), e.kind', 'a.account', 'date_trunc(''day'', at)');
BEGIN
	RETURN 'SELECT ' || coalesce(nullif(groups, '') || ', ', '') || pick('count(*)', 'sum(v)', 'count(*), avg(v), max(e.kind)', 'stddev(v)', 'sum(v) FILTER (WHERE e.kind > 0), count(v)', 'min(at), count(*)')
		|| ' FROM e ' || pick('JOIN a', 'JOIN a', 'LEFT JOIN a', 'JOIN (a JOIN r USING (region)', 'JOIN (SELECT * FROM a WHERE active) a', 'LEFT JOIN nothing n ON n.account = e.v JOIN a', 'JOIN k x ON x.kind = e.kind JOIN a');
END $$;
CREATE FUNCTION compare_random(n int) RETURNS TABLE (what text, query text) LANGUAGE plpgsql AS $$
DECLARE
	used int := 0;
	same text;
BEGIN
	FOR i IN 1..n LOOP
		query := random_query();
		IF query LIKE '%JOIN (a JOIN r%' THEN
			query := query || ')';
		END IF;
		query := query || ' ON ' || pick('e.account = a.account', 'e.account = a.account AND e.kind = a.kind', 'a.kind = e.kind AND active', 'a.account = e.v', 'a.account = e.account AND a.account < 40')
			|| ' WHERE at ' || pick('> ''2000-01-20''', 'BETWEEN ''2000-01-10'' AND ''2000-01-20''', '< ''1999-01-01''', 'IS NOT NULL')
			|| pick('', ' AND v < 300', ' AND a.region <> ''region 3''', ' AND e.account = 20', ' AND e.kind = 1', ' AND a.kind IN (1, 2)', ' AND a.account IS NULL');
		IF query ~ '^SELECT (count|sum|min|stddev)' THEN
			query := query || pick('', ' HAVING count(*) > 10');
		ELSE
			query := query || ' GROUP BY ' || pick((regexp_match(query, '^SELECT (.*?), (?:count|sum|min|stddev)\('))[1])
				|| pick('', ' HAVING count(*) > 10', ' HAVING max(v) > 20');
		END IF;
		PERFORM set_config('enable_hashjoin', pick('on', 'off'), true), set_config('enable_nestloop', pick('on', 'off'), true),
			set_config('enable_hashagg', pick('on', 'off'), true), set_config('work_mem', pick('64kB', '4MB'), true);
		same := same_aggregate(query);
		IF same LIKE '%GpudsAggregate%' THEN
			used := used + 1;
		END IF;
		IF same LIKE 'wrong%' THEN
			what := same;
			RETURN NEXT;
		END IF;
	END LOOP;
	what := CASE WHEN used > n / 2 THEN 'GpudsAggregate in most' ELSE used || ' of GpudsAggregate' END;
	query := '';
	RETURN NEXT;
END $$;
\set ECHO all
SELECT setseed(0.5);
SELECT * FROM compare_random(150);

-- Row security on either side, and privileges on columns.
CREATE ROLE regress_dimensions;
GRANT USAGE ON SCHEMA test_dimensions TO regress_dimensions;
GRANT SELECT ON a, r TO regress_dimensions;
GRANT SELECT (at, account, v) ON e TO regress_dimensions;
ALTER TABLE e ENABLE ROW LEVEL SECURITY;
CREATE POLICY part ON e USING (account < 50);
\set ECHO none
CREATE FUNCTION count_as_user(query text, OUT plan text, OUT answer text) LANGUAGE plpgsql AS $$
BEGIN
	SET LOCAL gpuds.enable_aggregate = on;
	SET LOCAL enable_seqscan = off;
	SET LOCAL enable_bitmapscan = off;
	SET LOCAL ROLE regress_dimensions;
	plan := CASE WHEN plan_of(query) LIKE '%GpudsAggregate%' THEN 'GpudsAggregate' ELSE 'core' END;
	EXECUTE query INTO answer;
	SET LOCAL gpuds.enable_aggregate = off;
	EXECUTE 'SELECT CASE WHEN ' || quote_nullable(answer) || ' IS NOT DISTINCT FROM (' || query || ')::text THEN ''same'' ELSE ''not the same'' END' INTO answer;
	RESET ROLE;
EXCEPTION WHEN insufficient_privilege THEN
	answer := SQLERRM;
END $$;
\set ECHO all
GRANT EXECUTE ON FUNCTION count_as_user, plan_of TO regress_dimensions;
\set count 'SELECT jsonb_object_agg(coalesce(region, ''-''), n) FROM (SELECT region, count(*) + sum(v) AS n FROM e JOIN a USING (account) WHERE at > ''2000-02-01'' GROUP BY region) q'
SELECT * FROM count_as_user(:'count');
ALTER TABLE a ENABLE ROW LEVEL SECURITY;
CREATE POLICY part ON a USING (active AND account > 10);
SELECT * FROM count_as_user(:'count');
DROP POLICY part ON a;
SELECT * FROM count_as_user(:'count');
CREATE POLICY part ON a USING (region IN (SELECT r.region FROM r WHERE continent = 'continent 1'));
SELECT * FROM count_as_user(:'count');
DROP POLICY part ON e;
CREATE POLICY part ON e USING (account IN (SELECT r.account FROM r));
SELECT * FROM count_as_user(:'count');
ALTER TABLE e DISABLE ROW LEVEL SECURITY;
SELECT * FROM count_as_user(:'count');
SELECT * FROM count_as_user('SELECT count(*) FROM e JOIN a USING (account) WHERE e.kind = 1');
REVOKE SELECT ON a FROM regress_dimensions;
SELECT * FROM count_as_user(:'count');
GRANT SELECT (account, region) ON a TO regress_dimensions;
ALTER TABLE a DISABLE ROW LEVEL SECURITY;
SELECT * FROM count_as_user(:'count');
CREATE VIEW v WITH (security_barrier) AS SELECT account, region FROM a WHERE account > 7;
GRANT SELECT ON v TO regress_dimensions;
SELECT * FROM count_as_user(replace(:'count', 'JOIN a ', 'JOIN v AS a '));

SET client_min_messages = warning;
DROP OWNED BY regress_dimensions;
DROP ROLE regress_dimensions;
DROP SCHEMA :test CASCADE;
