-- Index-only scans: what they return, and when they visit the heap.
\set test test_index_only
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude
SET TimeZone = 'America/New_York';

-- The only plan that may be chosen is an index-only scan, if the index can return what is asked for.
SET enable_bitmapscan = off;
SET enable_seqscan = off;

-- every type whose values can be told from the index, and those whose cannot
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN positive AS int CHECK (value > 0);
CREATE TABLE w WITH (autovacuum_enabled = off) AS
SELECT i AS id,
	i % 2 = 0 AS bool,
	chr(i % 90 + 33)::"char" AS "char",
	(i * 37 - 18500)::int2 AS int2,
	(i - 500) * 4000001 AS int4,
	(i - 500) * 9000000000000001 AS int8,
	(i::bigint * 4290000)::oid AS oid,
	date '2000-01-01' + (i - 500) * 777 AS date,
	time '00:00' + i * interval '86 s' AS "time",
	timetz '00:00+03' + i * interval '86 s' AS timetz,
	timestamp '2000-01-01' + (i - 500) * interval '77 days 1 us' AS "timestamp",
	timestamptz '2000-01-01' + (i - 500) * interval '77 days 1 us' AS timestamptz,
	md5(i::text)::uuid AS uuid,
	substr(md5(i::text), 1, 12)::macaddr AS macaddr,
	substr(md5(i::text), 1, 16)::macaddr8 AS macaddr8,
	('{sad,ok,happy}'::mood[])[i % 3 + 1] AS mood,
	((i - 500) * 1234567.89)::numeric::money AS money,
	(i::bigint * 4290000000 + '0/0'::pg_lsn) AS pg_lsn,
	(i::bigint * 4290000000)::text::xid8 AS xid8,
	i::positive AS positive,
	(i - 500) * 1.5::float4 AS float4,
	(i - 500) * 1.5::float8 AS float8,
	(i - 500) * interval '1 month -3 days 1 us' AS interval
FROM generate_series(1, 1000) i;
DO $$
DECLARE
	col text;
BEGIN
	FOR col IN SELECT attname FROM pg_attribute WHERE attrelid = 'w'::regclass AND attnum > 1 LOOP
		EXECUTE format('UPDATE w SET %I = NULL WHERE id %% 50 = 7', col);
		EXECUTE format('CREATE INDEX %I ON w USING gpu_btree (%I)', 'w_' || col, col);
		EXECUTE format('CREATE INDEX %I ON w USING gpu_btree (%I DESC NULLS LAST)', 'w_desc_' || col, col);
	END LOOP;
	UPDATE w SET "date" = 'infinity', "timestamp" = '-infinity', timestamptz = 'infinity', "time" = '24:00' WHERE id = 11;
END $$;

\set ECHO none
-- what a column's index returns: right, wrong, or nothing
CREATE FUNCTION returned(col text, direction text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	query text := format('SELECT array_agg(%I::text) FROM (SELECT %1$I FROM w ORDER BY %1$I %s) s', col, direction);
	answer text;
	plan text;
	right_answer text;
BEGIN
	plan := plan_of(query);
	IF plan NOT LIKE '%Index Only Scan%' THEN
		RETURN 'no index-only scan';
	END IF;
	EXECUTE query INTO answer;
	PERFORM set_config('enable_indexscan', 'off', true), set_config('enable_indexonlyscan', 'off', true), set_config('enable_seqscan', 'on', true);
	EXECUTE query INTO right_answer;
	PERFORM set_config('enable_indexscan', 'on', true), set_config('enable_indexonlyscan', 'on', true), set_config('enable_seqscan', 'off', true);
	RETURN CASE WHEN plan_of(query) <> plan THEN 'other plan' WHEN answer = right_answer THEN 'right' ELSE 'wrong' END;
END $$;
\set ECHO all
-- before VACUUM every row is looked up in the heap, afterwards none
SELECT attname, returned(attname, 'ASC'), returned(attname, 'DESC NULLS LAST'), returned(attname, 'DESC')
FROM pg_attribute WHERE attrelid = 'w'::regclass AND attnum > 1 ORDER BY attnum;
CALL wait_for_snapshots();
VACUUM ANALYZE w;
SELECT attname, returned(attname, 'ASC'), returned(attname, 'DESC NULLS LAST'), returned(attname, 'DESC')
FROM pg_attribute WHERE attrelid = 'w'::regclass AND attnum > 1 ORDER BY attnum;

-- several columns, one of them not to be told
CREATE TABLE m (id int, f float8, k int8, b bool) WITH (autovacuum_enabled = off);
INSERT INTO m SELECT i, CASE WHEN i % 10 = 0 THEN -0.0 ELSE i % 10 END, nullif(i % 100, 50), i % 3 = 0 FROM generate_series(1, 10000) i;
CREATE INDEX m_fkb ON m USING gpu_btree (f, k DESC, b);
CREATE INDEX m_bk ON m USING gpu_btree (b, k NULLS FIRST);
CREATE INDEX m_expr ON m USING gpu_btree ((k * 2), (k::int2)) WHERE id > 5000;
CALL wait_for_snapshots();
VACUUM ANALYZE m;
EXPLAIN (COSTS OFF) SELECT b, k FROM m WHERE b IS NOT NULL AND k BETWEEN 20 AND 30;
SELECT same('SELECT b, k FROM m WHERE b = (SELECT true) AND k BETWEEN 20 AND 30', 'm_bk');
SELECT same('SELECT b, k FROM m WHERE b IS NOT NULL AND k IS NULL', 'm_bk');
SET enable_seqscan = off;
SET enable_bitmapscan = off;
DROP INDEX m_bk;
EXPLAIN (COSTS OFF) SELECT k, b FROM m WHERE k = 7;
SELECT count(*), sum(k), count(*) FILTER (WHERE b) FROM (SELECT k, b FROM m WHERE k = 7) s;
EXPLAIN (COSTS OFF) SELECT k, b FROM m WHERE f = 0 AND k = 30;
SELECT k, b, f, count(*) FROM m WHERE f = 0 AND k = 30 GROUP BY k, b, f::text, f ORDER BY b;

-- heap fetches: none after VACUUM, those of changed pages, none again
CREATE FUNCTION heap_fetches(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, FORMAT json, TIMING off, SUMMARY off) ' || query INTO plan;
	RETURN (regexp_match(plan::text, '"Heap Fetches": (\d+)'))[1];
END $$;
CREATE TABLE t (id int, k int) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, i * 3 FROM generate_series(1, 20000) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
CALL wait_for_snapshots();
VACUUM ANALYZE t;
SELECT heap_fetches('SELECT count(*) FROM t WHERE k BETWEEN 1 AND 30000');
UPDATE t SET k = k + 1 WHERE id = 5000;
SELECT heap_fetches('SELECT count(*) FROM t WHERE k BETWEEN 1 AND 30000') BETWEEN 100 AND 500 AS page;
SELECT count(*), sum(k) FROM t WHERE k BETWEEN 1 AND 30000;
DELETE FROM t WHERE id BETWEEN 3001 AND 6000;
SELECT count(*), sum(k) FROM t WHERE k BETWEEN 1 AND 30000;
CALL wait_for_snapshots();
VACUUM (INDEX_CLEANUP on) t;
SELECT heap_fetches('SELECT count(*) FROM t WHERE k BETWEEN 1 AND 30000');
SELECT count(*), sum(k) FROM t WHERE k BETWEEN 1 AND 30000;

-- own changes, savepoints, cursors
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT k FROM t WHERE k BETWEEN 1 AND 30 ORDER BY k;
FETCH 3 FROM c;
DELETE FROM t WHERE k IN (3, 12, 15);
INSERT INTO t VALUES (0, 10);
SAVEPOINT a;
DELETE FROM t WHERE k = 21;
SELECT array_agg(k) FROM (SELECT k FROM t WHERE k BETWEEN 1 AND 30 ORDER BY k) s;
ROLLBACK TO a;
SELECT array_agg(k) FROM (SELECT k FROM t WHERE k BETWEEN 1 AND 30 ORDER BY k) s;
FETCH ALL FROM c;
FETCH BACKWARD 4 FROM c;
ROLLBACK;
BEGIN;
DECLARE c CURSOR WITH HOLD FOR SELECT k FROM t WHERE k BETWEEN 1 AND 30 ORDER BY k DESC;
COMMIT;
DELETE FROM t WHERE k = 9;
FETCH ALL FROM c;
CLOSE c;
SELECT array_agg(k) FROM (SELECT k FROM t WHERE k BETWEEN 1 AND 30 ORDER BY k) s;

-- inner sides: rescans with parameters, mark and restore
CREATE TABLE o (k int);
INSERT INTO o SELECT i % 500 FROM generate_series(1, 2000) i;
ANALYZE o;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_memoize = off;
EXPLAIN (COSTS OFF) SELECT count(*), sum(t.k) FROM o, t WHERE t.k = o.k;
SELECT count(*), sum(t.k) FROM o, t WHERE t.k = o.k;
SELECT count(*) FROM o WHERE EXISTS (SELECT FROM t WHERE t.k = o.k);
SELECT count(*) FROM o WHERE NOT EXISTS (SELECT FROM t WHERE t.k = o.k);
RESET enable_mergejoin;
SET enable_nestloop = off;
CREATE TABLE twice (k int);
INSERT INTO twice SELECT i / 4 FROM generate_series(1, 8000) i;
CREATE INDEX twice_k ON twice USING gpu_btree (k);
VACUUM ANALYZE twice;
SET enable_material = off;
EXPLAIN (COSTS OFF) SELECT count(*), sum(a.k) FROM twice a JOIN twice b USING (k);
SELECT count(*), sum(a.k) FROM twice a JOIN twice b USING (k);
RESET enable_nestloop;
RESET enable_hashjoin;
RESET enable_memoize;
RESET enable_material;

-- many keys, no rows, and none of the columns
SELECT count(*), sum(k) FROM t WHERE k = ANY (ARRAY(SELECT i * 2 FROM generate_series(1, 30000) i));
SELECT count(*) FROM t WHERE k = ANY ('{}');
SELECT count(*) FROM t WHERE k = 1;
SELECT count(*) FROM t;
SELECT min(k), max(k) FROM t;

-- a temporary table
CREATE TEMPORARY TABLE s (k int);
INSERT INTO s SELECT i % 1000 FROM generate_series(1, 5000) i;
CREATE INDEX s_k ON s USING gpu_btree (k);
VACUUM ANALYZE s;
SELECT heap_fetches('SELECT count(*) FROM s WHERE k < 100');
DELETE FROM s WHERE k % 2 = 0;
SELECT count(*) FROM s WHERE k < 100;
VACUUM s;
SELECT count(*) FROM s WHERE k < 100;
SELECT gpuds_index_check('t_k', true);
