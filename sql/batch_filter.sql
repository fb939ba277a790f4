-- GpudsAggregate: conditions on any column of the index, FILTER, and groups in any order.
\set test test_batch_filter
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

CREATE DOMAIN age AS int;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE t (at timestamp, account int, status int2, v bigint, f float8, f4 float4, yes bool, u uuid, d date, m mood, tz timestamptz, a age, o oid, c "char")
	WITH (autovacuum_enabled = off);
INSERT INTO t SELECT timestamp '2000-01-01' + i * interval '7 minutes', i % 97, nullif(i % 5, 4), (i - 9000) * 800000000000000,
	CASE i % 9 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' WHEN 2 THEN 0 WHEN 3 THEN 'infinity' WHEN 4 THEN '-infinity' WHEN 5 THEN NULL ELSE i / 7.0 END,
	CASE i % 9 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' WHEN 2 THEN 0 WHEN 3 THEN '-1e-45' WHEN 4 THEN '1e-45' WHEN 5 THEN NULL ELSE i / 7.0 END,
	CASE i % 3 WHEN 0 THEN true WHEN 1 THEN false END, md5((i % 50)::text)::uuid, date '2000-01-01' + i % 400, (enum_range(NULL::mood))[1 + i % 3],
	timestamptz '2000-03-20 12:00+00' + i * interval '11 minutes', i % 13, i % 7, chr(65 + i % 4)::"char"
FROM generate_series(1, 20000) i;
INSERT INTO t (account) SELECT i FROM generate_series(95, 99) i;
CREATE INDEX t_at ON t USING gpu_btree (at) INCLUDE (account, status, yes);
CREATE INDEX t_wide ON t USING gpu_btree (at DESC) INCLUDE (v, f, u, d, status, yes);
CREATE INDEX t_account ON t USING gpu_btree (account, status DESC NULLS LAST, d);
CREATE INDEX t_f4 ON t USING gpu_btree (account) INCLUDE (f4, a, o, c);
CREATE INDEX t_f ON t USING gpu_btree (f, account);
CREATE INDEX t_m ON t USING gpu_btree (m, account) INCLUDE (status);
CREATE INDEX t_tz ON t USING gpu_btree (tz) INCLUDE (status, v);
CREATE INDEX t_part ON t USING gpu_btree (account) INCLUDE (v) WHERE status = 2;
VACUUM ANALYZE t;

SET gpuds.enable_aggregate = on;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF, VERBOSE) SELECT count(*), sum(account) FILTER (WHERE NOT yes) FROM t WHERE at < '2000-02-01' AND status = 2;
EXPLAIN (COSTS OFF) SELECT status, date_trunc('month', at), count(*) FROM t WHERE account <> 5 GROUP BY 1, 2 HAVING count(*) > 1 ORDER BY 1, 2 LIMIT 5;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT count(*) FROM t WHERE at < '2000-03-05' AND status IN (1, 3);
-- days of 70 days: few groups, so that the sort costs little
EXPLAIN (COSTS OFF) SELECT date_trunc('day', at), count(*) FROM t WHERE at BETWEEN '2000-01-11' AND '2000-03-20' GROUP BY 1 ORDER BY 1;
SET gpuds.enable_aggregate = off;

-- the node wherever it can be, even where it costs more than core's plan
SET cpu_operator_cost = 0;

-- conditions on included columns
SELECT same_aggregate(format('SELECT count(*), sum(account), min(at), max(status) FROM t WHERE at < ''2000-03-01'' AND %s', condition)) AS agrees, condition
FROM unnest(ARRAY['status = 2', 'status <> 2', 'status < 2', 'status >= 2::bigint', 'status > 70000', 'status < 70000', 'status = 70000', 'NOT status = 70000',
	'2 > status', 'status BETWEEN 1 AND 2', 'NOT (status BETWEEN 1 AND 2)', 'status IN (0, 3)', 'status NOT IN (0, 3)', 'status = ANY (''{1,NULL,2}'')',
	'status <> ALL (''{1,NULL,2}'')', 'NOT (status = ANY (''{1,NULL,2}''))', 'status = ANY (''{}'')', 'NOT (status = ANY (''{}''))', 'status <> ALL (''{}''::int2[])',
	'status = ANY (NULL::int2[])', 'status < ANY (''{1,2}'')', 'NOT (status < ANY (''{1,2}''))', 'status <= ALL (''{1,2}'')', 'status > ALL (''{0,NULL}'')', 'status < ALL (''{}''::int2[])', 'status = ALL (''{1,1}'')', 'status <> ANY (''{1,2}'')', 'status IS NULL', 'status IS NOT NULL', 'NOT (status IS NULL)',
	'yes', 'NOT yes', 'yes IS TRUE', 'yes IS NOT TRUE', 'yes IS FALSE', 'yes IS NOT FALSE', 'yes IS UNKNOWN', 'yes IS NOT UNKNOWN', 'NOT (yes IS TRUE)',
	'NOT (yes IS NOT FALSE)', 'NOT (yes IS UNKNOWN)', 'yes = false', 'yes <> true', '(status = 1 OR yes)', 'NOT (status = 1 OR yes)', 'NOT (status = 1 AND yes)',
	'(status = 1 AND yes OR account < 10 AND NOT (status = 2 OR yes IS NULL))', 'account = 3 + 4', 'account <= (SELECT 20)', 'account = NULL', 'account <> NULL',
	'(account < 10 OR NULL)', 'account = ANY (ARRAY(SELECT i FROM generate_series(1, 80, 3) i))', 'account::bigint = 5', 'account + 1 = 5', 'account < status',
	'account < random() * 0', 'account = 1 AND account = 2']) condition;

-- of floating-point values, dates and others
SELECT same_aggregate(format('SELECT count(*), sum(v), min(d), count(yes) FROM t WHERE %s', condition)) AS agrees, condition
FROM unnest(ARRAY['f = 0', 'f <> 0', 'f > 0', 'f >= 0', 'f < 0', 'f <= 0', 'f = ''-0''', 'f < ''-0''', 'f > ''-0''', 'f = ''NaN''', 'f <> ''NaN''', 'f < ''NaN''', 'f >= ''NaN''',
	'f > ''infinity''', 'f <= ''-infinity''', 'f IN (0, ''NaN'')', 'f NOT IN (0, ''NaN'')', 'f > 1.5::float4', 'f IS NULL', 'NOT f > 100', 'v > 0', 'v = 800000000000000',
	'd = ''2000-02-02''', 'd < timestamp ''2000-02-02 12:00''', 'd < timestamptz ''2000-02-02 12:00''', 'd = ''infinity''', 'u = ''00000000-0000-0000-0000-000000000000''',
	'd IN (''2000-02-02'', ''2000-03-03'') AND status = 1 OR v < 0 AND NOT yes', 'status = 1 AND (v > 0 OR d < ''2000-02-02'')']) condition;
SELECT same_aggregate(format('SELECT count(*), sum(account) FROM t WHERE %s', condition)) AS agrees, condition
FROM unnest(ARRAY['f4 = 0', 'f4 <> 0', 'f4 > 0', 'f4 >= 0', 'f4 < 0', 'f4 <= 0', 'f4 > ''-1e-45''::float4', 'f4 < ''1e-45''::float4', 'f4 > -1e-60', 'f4 < 1e-60', 'f4 > 1e-60', 'f4 = 1e-60',
	'f4 = ''NaN''', 'f4 <> ''NaN''', 'f4 >= ''NaN''::float8', 'f4 NOT IN (0, ''NaN'')', 'f4 > 1e300', 'a = 5', 'a IS NULL', 'o = 3', 'o > 3', 'c = ''B''', 'f4 > 100 AND account < 5']) condition;

-- on columns of the key that do not bound the scan
SELECT same_aggregate(format('SELECT count(*), sum(account), count(status) FROM t WHERE %s', condition)) AS agrees, condition
FROM unnest(ARRAY['status = 2', 'status <> 2', 'status <> ALL (''{2,3}'')', 'status IS NULL OR d > ''2000-06-01''', 'account <> 5', 'account <> 5 AND status = 2', 'd <> ''2000-02-02''',
	'NOT (status > 1 AND d < ''2000-02-02'')', 'account = 5 OR account = 7', 'account > 90 AND (status = 1 OR status IS NULL)']) condition;
SELECT same_aggregate(format('SELECT count(*), sum(account) FROM t WHERE f > 0 AND %s', condition)) AS agrees, condition
FROM unnest(ARRAY['account <> 5', 'f <> ''NaN''', '(f < 100 OR f = ''infinity'')']) condition;
-- labels of an enum have no place in an order, but NULL tests need none
SELECT same_aggregate('SELECT count(*), sum(status) FROM t WHERE m <> ''sad''');
SELECT same_aggregate('SELECT count(*), sum(status) FROM t WHERE m > ''sad'' AND status = 1');
SELECT same_aggregate('SELECT count(*), sum(v) FROM t WHERE status = 2 AND v > 0 AND account <> 3');

-- FILTER
SELECT same_aggregate('SELECT count(*) FILTER (WHERE status = 2), count(*), count(*) FILTER (WHERE yes), sum(account) FILTER (WHERE status = 2), sum(account), max(account) FILTER (WHERE NOT yes),
	count(status) FILTER (WHERE account < 10), count(*) FILTER (WHERE false), count(*) FILTER (WHERE true), count(*) FILTER (WHERE NULL), sum(account) FILTER (WHERE status = 70000) FROM t WHERE at < ''2000-02-01''');
SELECT same_aggregate('SELECT date_trunc(''day'', at), count(*) FILTER (WHERE status = 2), sum(v) FILTER (WHERE v > 0 AND d < ''2000-05-05''), min(f) FILTER (WHERE f <> 0) FROM t GROUP BY 1');
SELECT same_aggregate('SELECT account, count(*) FILTER (WHERE status = 2), max(d) FILTER (WHERE status IS NULL) FROM t GROUP BY account HAVING count(*) FILTER (WHERE status = 2) > 3');
SELECT same_aggregate('SELECT count(*) FILTER (WHERE at < now()) FROM t WHERE at > ''2000-02-01''');
SELECT same_aggregate('SELECT x, (SELECT count(*) FILTER (WHERE status = x) FROM t WHERE at < ''2000-02-01'') FROM generate_series(-1, 5) x');
SELECT same_aggregate('SELECT x, (SELECT count(*) FROM t WHERE at < ''2000-02-01'' AND account <> x) FROM generate_series(-1, 5) x');
SELECT same_aggregate('SELECT x, s.* FROM generate_series(0, 5) x, LATERAL (SELECT status, count(*) FILTER (WHERE account > x * 10) FROM t WHERE at < ''2000-02-01'' AND account <> x GROUP BY status) s');
SELECT same_aggregate('SELECT count(*) FILTER (WHERE account + 1 = 2) FROM t WHERE at > ''2000-02-01''');

-- values of filters are not compiled for each rescan
SET jit = on;
SET jit_above_cost = 0;
SELECT same_aggregate('SELECT sum(n) FROM generate_series(1, 3000) x, LATERAL (SELECT count(*) FILTER (WHERE account > x) AS n FROM t WHERE at < ''2000-01-02'' AND status <> x % 5) s');
SET jit = off;
RESET jit_above_cost;
-- a nest that is deep
SELECT same_aggregate('SELECT count(*) FROM t WHERE at < ''2000-01-02'' AND ' || (SELECT string_agg('(account <> ' || i || CASE i % 2 WHEN 0 THEN ' OR ' ELSE ' AND ' END, '') FROM generate_series(1, 300) i)
	|| 'yes' || repeat(')', 300));

-- CASE
SELECT same_aggregate(format('SELECT %s FROM t WHERE at < ''2000-02-01'' AND account > 3', aggregates)) AS agrees, aggregates
FROM unnest(ARRAY['sum(CASE WHEN status = 2 THEN 1 ELSE 0 END)', 'sum(CASE WHEN status = 2 THEN 1 END), count(CASE WHEN status = 2 THEN 1 END), count(CASE WHEN status = 2 THEN ''x'' END)',
	'sum(CASE WHEN yes THEN account ELSE 0 END), avg(CASE WHEN yes THEN account ELSE 0 END), avg(CASE WHEN yes THEN account END), min(CASE WHEN yes THEN account ELSE 50 END), max(CASE WHEN yes THEN account ELSE -7 END)',
	'sum(CASE WHEN status = 70000 THEN 1 END), sum(CASE WHEN status = 70000 THEN 1 ELSE 0 END), sum(CASE WHEN status = 70000 THEN account ELSE NULL END)', 'count(CASE WHEN yes THEN status END)',
	'sum(CASE WHEN yes THEN 5000000000 ELSE -1 END)', 'sum(CASE WHEN yes THEN 1 ELSE 0 END) FILTER (WHERE status = 1)', 'sum(CASE WHEN yes THEN 1 END) FILTER (WHERE status = 1)',
	'sum(CASE status WHEN 2 THEN 1 ELSE 0 END)', 'sum(CASE WHEN yes THEN 1 WHEN status = 2 THEN 2 ELSE 0 END)', 'sum(CASE WHEN yes THEN account + 1 ELSE 0 END)', 'sum(CASE WHEN yes THEN 1 ELSE account END)',
	'max(CASE WHEN yes THEN at END)', 'sum(CASE WHEN yes THEN 0.5 ELSE 0 END)', 'sum(CASE WHEN NOT yes THEN 1::smallint END), sum(CASE WHEN NOT yes THEN 1 END), sum(CASE WHEN NOT yes THEN 1::bigint END), count(*)']) aggregates;
SELECT same_aggregate('SELECT status, sum(CASE WHEN v > 0 THEN 1 ELSE 0 END), sum(CASE WHEN v > 0 THEN v ELSE 0 END), avg(CASE WHEN yes THEN v END) FROM t WHERE at < ''2000-03-01'' GROUP BY status');
SELECT same_aggregate('SELECT account, sum(CASE WHEN status > 1 THEN 1 ELSE 0 END), max(CASE WHEN d > ''2000-05-05'' THEN status ELSE 9::smallint END) FROM t GROUP BY account');
SELECT same_aggregate('SELECT x, (SELECT sum(CASE WHEN status = x THEN account ELSE 0 END) FROM t WHERE at < ''2000-02-01'') FROM generate_series(-1, 5) x');

-- groups by any columns
SELECT same_aggregate(format('SELECT %1$s, count(*), sum(account), min(at), avg(account) FROM t WHERE at >= ''2000-02-01'' GROUP BY %1$s', groups)) AS agrees, groups
FROM unnest(ARRAY['status', 'yes', 'status, yes', 'account', 'account, status', 'at, status', 'date_trunc(''day'', at), status', 'status, date_trunc(''month'', at), yes', 'at::date, account',
	'at, date_trunc(''day'', at)', 'date_trunc(''day'', at), date_trunc(''month'', at)', 'account + 1']) groups;
SELECT same_aggregate(format('SELECT %1$s, count(*), sum(v), max(f) FROM t WHERE %2$s GROUP BY %1$s', groups, condition)) AS agrees, groups, condition
FROM unnest(ARRAY['u', 'd', 'status, u', 'd, yes', 'f', 'v', 'extract(year FROM d)']) groups, unnest(ARRAY['v > 0', 'status = 1', 'true']) condition;
SELECT same_aggregate(format('SELECT %1$s, count(*), count(account) FROM t %2$s GROUP BY %1$s', groups, condition)) AS agrees, groups
FROM unnest(ARRAY['status', 'd', 'd, status', 'account, d', 'm', 'status, m', 'a', 'o, c']) groups, unnest(ARRAY['', 'WHERE account > 50']) condition;
SELECT same_aggregate('SELECT status, tz::date, count(*), sum(v) FROM t WHERE v > 0 GROUP BY 1, 2');
SET TimeZone = 'America/St_Johns';
SELECT same_aggregate('SELECT status, tz::date, count(*), sum(v) FROM t WHERE v > 0 GROUP BY 1, 2');
SELECT same_aggregate('SELECT date_trunc(''day'', tz), count(*), sum(v) FROM t WHERE v > 0 GROUP BY 1');
RESET TimeZone;
-- by expressions of a column, of which some come again and again, and some are evaluated for each value
SELECT same_aggregate(format('SELECT %1$s, count(*), count(status), sum(v) FROM t WHERE %2$s GROUP BY 1', expression, condition)) AS agrees, expression
FROM unnest(ARRAY['extract(hour FROM tz)', 'extract(minute FROM tz)::int', 'extract(dow FROM tz)', 'extract(isodow FROM tz)', 'extract(doy FROM tz)', 'extract(day FROM tz)', 'extract(week FROM tz)',
	'extract(isoyear FROM tz)', 'extract(month FROM tz)', 'extract(quarter FROM tz) + 1', 'extract(decade FROM tz)', 'date_part(''hour'', tz)', 'extract(second FROM tz)', 'extract(epoch FROM tz)',
	'to_char(tz, ''YYYY-MM'')', 'to_char(tz, ''Dy DD Mon IYYY-IW'')', 'to_char(tz, ''YYYY-MM-DD HH24'')', 'to_char(tz, ''TZ'')', 'date_trunc(''day'', tz AT TIME ZONE ''America/New_York'')',
	'(tz AT TIME ZONE ''Europe/Berlin'')::date', 'extract(hour FROM tz AT TIME ZONE ''Australia/Lord_Howe'')', 'to_char(tz AT TIME ZONE ''Asia/Tehran'', ''YYYY-MM-DD'')',
	'date_trunc(''day'', tz, ''America/St_Johns'')', 'date_trunc(''hour'', tz, ''UTC'')', 'date_trunc(''day'', tz AT TIME ZONE ''EST'')', 'date_trunc(''day'', tz AT TIME ZONE interval ''3 hours'')',
	'extract(dow FROM tz) = extract(isodow FROM tz)', 'extract(hour FROM tz) + extract(dow FROM tz)', 'CASE WHEN extract(hour FROM tz) < 12 THEN ''am'' ELSE ''pm'' END', 'date_trunc(''day'', tz)::date::text',
	'tz - interval ''1 day''', 'tz > ''2000-04-01''', 'tz IS NULL', 'coalesce(extract(month FROM tz), -1)', 'date_trunc(''month'', tz) + random() * interval ''0''']) expression,
	unnest(ARRAY['true', 'tz BETWEEN ''2000-03-25'' AND ''2000-11-02'' AND status > 0']) condition;
SET TimeZone = 'America/St_Johns';
SELECT same_aggregate(format('SELECT %1$s, count(*), count(status), sum(v) FROM t GROUP BY 1', expression)) AS agrees, expression
FROM unnest(ARRAY['extract(hour FROM tz)', 'extract(dow FROM tz)', 'to_char(tz, ''YYYY-MM-DD'')', 'date_trunc(''day'', tz AT TIME ZONE ''America/New_York'')', 'tz::date - 1']) expression;
RESET TimeZone;
-- of a column of the key behind others, and of any type
SELECT same_aggregate(format('SELECT %1$s, count(*), sum(account) FROM t GROUP BY 1', expression)) AS agrees, expression
FROM unnest(ARRAY['account % 10', 'account % 10 = 3', 'd - 1', 'extract(month FROM d)', 'to_char(d, ''Mon'')', 'status * 2', '-status', 'coalesce(status, 7)', 'd > ''2000-06-01''',
	'extract(year FROM d)', 'm::text', 'upper(m::text)', '100 / (account + 1)']) expression;
-- expressions with values of their own in them, and such as hand the column's value on
CREATE TABLE own (k int, u uuid, z timetz, v int, ts timestamp);
INSERT INTO own SELECT i % 30, md5((i % 5)::text)::uuid, ('10:00:00+0' || (i % 5))::timetz, i, '2000-01-01'::timestamp + i * interval '5 h' FROM generate_series(1, 2000) i;
INSERT INTO own (ts) VALUES ('4714-11-24 00:00 BC'), ('-infinity'), ('294276-12-31 23:59:59.999999'), ('infinity');
CREATE INDEX ON own USING gpu_btree (k);
CREATE INDEX ON own USING gpu_btree (u);
CREATE INDEX ON own USING gpu_btree (z);
CREATE INDEX ON own USING gpu_btree (ts);
VACUUM ANALYZE own;
SELECT same_aggregate(format('SELECT %s, count(*) FROM own GROUP BY 1', expression)) AS agrees, expression
FROM unnest(ARRAY['CASE k % 3 WHEN k % 2 THEN 1 ELSE 0 END', 'CASE length(u::text) WHEN ascii(u::text) THEN 1 ELSE 0 END', 'CASE extract(hour FROM ts) WHEN extract(minute FROM ts) THEN 1 ELSE 0 END',
	'CASE date_trunc(''day'', ts) WHEN ts THEN 1 ELSE 0 END', 'coalesce(z, ''00:00+00'')', 'coalesce(u, ''00000000-0000-0000-0000-000000000000'')', 'greatest(u, ''80000000-0000-0000-0000-000000000000'')',
	'nullif(u, ''80000000-0000-0000-0000-000000000000'')', 'extract(month FROM ts)', 'extract(quarter FROM ts)', 'extract(week FROM ts)', 'extract(hour FROM ts)', 'to_char(ts, ''YYYY BC'')']) expression;
SET plan_cache_mode = force_generic_plan;
SET gpuds.enable_aggregate = on;
-- what no row needs is not evaluated
PREPARE fz (int) AS SELECT count(*), count(*) FILTER (WHERE v > 10 / $1) FROM t WHERE at < '1999-01-01';
EXPLAIN (COSTS OFF) EXECUTE fz (0);
EXECUTE fz (0);
PREPARE fy (int) AS SELECT sum(CASE WHEN status = 700 AND account > 10 / $1 THEN account ELSE 0 END) FROM t WHERE at < '2000-02-01';
EXECUTE fy (0);
PREPARE fx (int) AS SELECT sum(CASE WHEN status = 2 AND account > 10 / $1 THEN account ELSE 0 END) FROM t WHERE at < '2000-02-01';
EXECUTE fx (0);
DEALLOCATE ALL;
SET gpuds.enable_aggregate = off;
RESET plan_cache_mode;
SELECT same_aggregate('SELECT extract(month FROM d), account, count(*) FROM t WHERE account = ANY (''{3,5,7,5}'') GROUP BY 1, 2');
SELECT same_aggregate('SELECT extract(month FROM d), count(*) FROM t WHERE account = ANY (''{3,5,7,5}'') GROUP BY 1');
SELECT same_aggregate('SELECT x, s.* FROM generate_series(0, 3) x, LATERAL (SELECT account % (x + 2) AS m, count(*) FROM t WHERE account > 5 GROUP BY 1) s');
SELECT same_aggregate('SELECT at::date, extract(month FROM at), count(*) FROM t GROUP BY 1, 2');
-- more groups than there is memory for come in parts
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT same_aggregate('SELECT account, status, yes, count(*), sum(account), min(at) FROM t WHERE at >= ''2000-01-02'' GROUP BY account, status, yes');
SELECT same_aggregate('SELECT at, status, count(*), max(account) FROM t WHERE at >= ''2000-01-02'' GROUP BY 1, 2');
SELECT same_aggregate('SELECT date_trunc(''hour'', at), account, count(*) FROM t WHERE at >= ''2000-01-02'' GROUP BY 1, 2');
SELECT same_aggregate('SELECT extract(year FROM at), account, count(*) FROM t WHERE at >= ''2000-01-02'' GROUP BY 1, 2');
SELECT same_aggregate('SELECT at::time, count(*) FROM t GROUP BY 1');
-- of a type without a hash, which core groups
SELECT same_aggregate('SELECT account::money, count(*) FROM t GROUP BY 1');
SELECT same_aggregate('SELECT repeat(md5(account::text), 30), count(*) FROM t GROUP BY 1');
SELECT same_aggregate('SELECT extract(year FROM d), count(*) FROM t GROUP BY 1');
RESET work_mem;
RESET hash_mem_multiplier;
-- above them
SELECT same_aggregate('SELECT status, count(*) AS n, rank() OVER (ORDER BY count(*) DESC) FROM t WHERE at >= ''2000-02-01'' GROUP BY status HAVING sum(account) > 10');
SELECT same_aggregate('SELECT DISTINCT status FROM t WHERE at >= ''2000-02-01''');
SELECT same_aggregate('SELECT * FROM (SELECT status, count(*) FROM t WHERE at >= ''2000-02-01'' GROUP BY status) a JOIN (SELECT status, max(account) FROM t WHERE at < ''2000-02-01'' GROUP BY status) b USING (status)');

-- pages that are not all-visible
UPDATE t SET status = 9 WHERE account = 7;
DELETE FROM t WHERE account = 8;
INSERT INTO t (at, account, status, v) SELECT timestamp '2000-02-02' + i * interval '1 s', i % 5, 8, i FROM generate_series(1, 500) i;
SELECT same_aggregate('SELECT status, yes, count(*), sum(account) FROM t WHERE at >= ''2000-01-02'' AND account < 50 GROUP BY 1, 2');
SELECT same_aggregate('SELECT count(*), sum(v) FROM t WHERE at >= ''2000-01-02'' AND v > 100 AND status IN (8, 9)');
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT same_aggregate('SELECT status, count(*) FILTER (WHERE yes), sum(account) FROM t WHERE at >= ''2000-01-02'' AND account < 50 GROUP BY 1');
COMMIT;

-- parameters of generic plans, and of a cursor that is read again
SET plan_cache_mode = force_generic_plan;
SET gpuds.enable_aggregate = on;
PREPARE p (int, int[]) AS SELECT status, count(*), count(*) FILTER (WHERE account = ANY ($2)) FROM t WHERE at < '2000-02-01' AND account <> $1 GROUP BY status ORDER BY 1;
EXPLAIN (COSTS OFF) EXECUTE p (5, '{1,2}');
EXECUTE p (5, '{1,2}');
EXECUTE p (NULL, '{1,2}');
EXECUTE p (5, NULL);
EXECUTE p (5, '{}');
DEALLOCATE p;
RESET plan_cache_mode;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT status, count(*) FROM t WHERE at < '2000-02-01' AND yes GROUP BY status ORDER BY 1;
FETCH 2 FROM c;
MOVE BACKWARD ALL FROM c;
FETCH ALL FROM c;
COMMIT;

-- who may not see a row is not told of it, nor may he choose a condition that is looked at before the policy's
CREATE TABLE secret (k int, owner int, v int);
INSERT INTO secret SELECT i, i % 3, i FROM generate_series(1, 3000) i;
CREATE INDEX secret_k ON secret USING gpu_btree (k) INCLUDE (owner, v);
ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON secret USING (owner = current_setting('test.owner')::int);
VACUUM ANALYZE secret;
CREATE ROLE test_batch_filter_reader;
GRANT SELECT ON secret TO test_batch_filter_reader;
GRANT USAGE ON SCHEMA :test TO test_batch_filter_reader;
SET ROLE test_batch_filter_reader;
SET test.owner = 1;
EXPLAIN (COSTS OFF) SELECT count(*), sum(v) FROM secret WHERE k > 10 AND v <> 22;
SELECT owner, count(*), sum(v) FROM secret WHERE k > 10 AND v <> 22 GROUP BY owner;
SET test.owner = 2;
SELECT owner, count(*), sum(v) FROM secret WHERE k > 10 AND v <> 22 GROUP BY owner;
RESET ROLE;
DROP OWNED BY test_batch_filter_reader;
DROP ROLE test_batch_filter_reader;

-- partitions
CREATE TABLE parts (at date, status int, v int) PARTITION BY RANGE (at);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
CREATE TABLE parts_2 (v int, status int, at date);
ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
INSERT INTO parts SELECT date '2000-01-01' + i % 730, i % 5, i FROM generate_series(1, 5000) i;
CREATE INDEX ON parts USING gpu_btree (at) INCLUDE (status, v);
VACUUM ANALYZE parts;
SELECT same_aggregate('SELECT count(*), sum(v) FILTER (WHERE status = 2) FROM parts WHERE at > ''2000-06-01'' AND status <> 3');
SELECT same_aggregate('SELECT status, count(*), sum(v) FROM parts WHERE at > ''2000-06-01'' AND status <> 3 GROUP BY status');
SELECT same_aggregate('SELECT extract(year FROM at), status, count(*) FILTER (WHERE v > 99), avg(v), sum(CASE WHEN v < 99 THEN v ELSE 0 END) FROM parts GROUP BY 1, 2');

DROP SCHEMA :test CASCADE;
