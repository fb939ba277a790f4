-- INCLUDE: columns that the index returns but does not search.
\set test test_include_columns
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

\set ECHO none
-- The digest of a query by an index-only scan, and by a sequential one.
CREATE FUNCTION returned(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan text;
	answer text;
	right_answer text := right_digest_of(query, false);
BEGIN
	SET LOCAL enable_seqscan = off;
	SET LOCAL enable_bitmapscan = off;
	plan := plan_of(query);
	answer := digest_of(query, false);
	RETURN CASE WHEN answer <> right_answer THEN 'wrong: ' || answer || ', right: ' || right_answer
		ELSE split_part(answer, ' ', 1) || ' rows agree' || CASE WHEN plan LIKE '%Index Only Scan%' THEN ', index-only' ELSE '' END END;
END $$;
\set ECHO all

-- every type of fixed length, with NULLs, behind keys of several widths
CREATE TYPE mood AS ENUM ('sad', 'happy');
ALTER TYPE mood ADD VALUE 'ok' BEFORE 'happy';
CREATE DOMAIN positive AS int CHECK (value > 0);
CREATE TABLE w WITH (autovacuum_enabled = off) AS
SELECT (i * 7919 % 1000)::int8 AS k, (i % 50)::int2 AS small, i % 3 = 0 AS tiny,
	i % 2 = 0 AS bool,
	chr(i % 90 + 33)::"char" AS "char",
	(i * 37 - 18500)::int2 AS int2,
	(i - 500) * 4000001 AS int4,
	(i - 500) * 9000000000000001 AS int8,
	(i::bigint * 4290000)::oid AS oid,
	'pg_class'::regclass AS regclass,
	CASE i % 4 WHEN 0 THEN -0.0 WHEN 1 THEN 'NaN' WHEN 2 THEN '-Infinity' ELSE i / 7.0 END::float4 AS float4,
	CASE i % 4 WHEN 0 THEN '-0' WHEN 1 THEN 'NaN' WHEN 2 THEN 'Infinity' ELSE i / -7.0 END::float8 AS float8,
	date '2000-01-01' + (i - 500) * 777 AS date,
	time '00:00' + i * interval '86 s' AS "time",
	timetz '00:00+03' + i * interval '86 s' AS timetz,
	timestamp '2000-01-01' + (i - 500) * interval '77 days 1 us' AS "timestamp",
	timestamptz '2000-01-01' + (i - 500) * interval '77 days 1 us' AS timestamptz,
	substr(md5(i::text), 1, 12)::macaddr AS macaddr,
	substr(md5(i::text), 1, 16)::macaddr8 AS macaddr8,
	('{sad,ok,happy}'::mood[])[i % 3 + 1] AS mood,
	((i - 500) * 1234567.89)::numeric::money AS money,
	(i::bigint * 4290000000 + '0/0'::pg_lsn) AS pg_lsn,
	format('(%s,%s)', i, i % 10 + 1)::tid AS tid,
	i::positive AS positive
FROM generate_series(1, 1000) i;
CREATE TABLE x WITH (autovacuum_enabled = off) AS
SELECT i % 3 = 0 AS tiny, md5(i::text)::uuid AS uuid, (i - 500) * interval '1 month -3 days 1 us' AS interval, point(i, -i) AS point
FROM generate_series(1, 1000) i;
INSERT INTO w (k, small, tiny) SELECT nullif(i, 3), i, i = 4 FROM generate_series(1, 5) i;
INSERT INTO x (tiny) VALUES (true), (NULL);
\set ECHO none
CREATE FUNCTION all_types(tab regclass, key text) RETURNS TABLE (col name, result text) LANGUAGE plpgsql AS $$
BEGIN
	FOR col IN SELECT attname FROM pg_attribute WHERE attrelid = tab AND attnum > 0 AND attname NOT IN ('k', 'small', 'tiny') AND (key, attname) <> ('k', 'timetz') ORDER BY attnum LOOP
		EXECUTE format('CREATE INDEX including ON %s USING gpu_btree (%I) INCLUDE (%I)', tab, key, col);
		result := returned(format('SELECT %1$I, %2$I::text FROM %3$s WHERE %1$I >= %4$L', key, col, tab, 0)) || '; ' ||
			returned(format('SELECT %1$I, %2$I::text FROM %3$s WHERE %1$I IS NULL', key, col, tab));
		RETURN NEXT;
		EXECUTE 'DROP INDEX including';
	END LOOP;
END $$;
\set ECHO all
VACUUM w, x;
SELECT * FROM all_types('w', 'k');
SELECT * FROM all_types('w', 'small');
SELECT * FROM all_types('x', 'tiny');

-- several key columns, several included ones, DESC, NULLS FIRST, expressions, a predicate
CREATE INDEX w_1 ON w USING gpu_btree (small DESC NULLS FIRST, tiny) INCLUDE (int4, float4);
CREATE INDEX w_2 ON w USING gpu_btree ((k + 1)) INCLUDE (int4, bool, tiny) WHERE small < 40;
CREATE INDEX w_3 ON w USING gpu_btree (int4) INCLUDE (int4, positive);
SELECT returned('SELECT small, tiny, int4, float4::text FROM w WHERE small = 3 AND tiny');
SELECT returned('SELECT small, tiny, int4, float4::text FROM w WHERE small IN (3, 7, 20) AND NOT tiny');
SELECT returned('SELECT small, tiny, int4, float4::text FROM w WHERE small IS NULL OR small > 10');
SELECT returned('SELECT k + 1, int4, bool, tiny FROM w WHERE k + 1 < 100 AND small < 40');
SELECT returned('SELECT int4, positive FROM w WHERE int4 > 0');
-- searched by the key, filtered by what is included
SELECT same('SELECT * FROM w WHERE small = 3 AND tiny AND int4 > 0', 'w_1');
SELECT same('SELECT * FROM w WHERE small = ANY (''{3,5,49}'') AND float4 = 0', 'w_1');
SELECT same('SELECT small, tiny FROM w ORDER BY small DESC, tiny LIMIT 100', 'w_1', true);
EXPLAIN (COSTS OFF, VERBOSE) SELECT small, int4 FROM w WHERE small = 3 AND int4 > 0;

-- they follow the table
UPDATE w SET int4 = -int4 WHERE small = 3;
DELETE FROM w WHERE small = 7;
INSERT INTO w (small, tiny, int4) VALUES (3, true, 42), (3, true, NULL);
SELECT returned('SELECT small, tiny, int4, float4::text FROM w WHERE small IN (3, 7)');
VACUUM w;
SELECT returned('SELECT small, tiny, int4, float4::text FROM w WHERE small IN (3, 7)');
SELECT gpuds_index_check(indexrelid, true) FROM pg_index WHERE indrelid = 'w'::regclass ORDER BY indexrelid::regclass::text;

-- joins take them for the table's columns
CREATE TABLE batch AS SELECT i::int2 AS small FROM generate_series(0, 60) i;
ANALYZE w, batch;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_nestloop = off;
SET enable_seqscan = off;
SET gpuds.enable_join = on;
EXPLAIN (COSTS OFF, VERBOSE) SELECT b.small, w.int4, w.float4 FROM batch b JOIN w ON w.small = b.small;
SELECT count(*), sum(w.int4), count(w.float4) FROM batch b JOIN w ON w.small = b.small;
SET gpuds.enable_join = off;
RESET enable_nestloop;
RESET enable_seqscan;
SELECT count(*), sum(w.int4), count(w.float4) FROM batch b JOIN w ON w.small = b.small;
RESET enable_hashjoin;
RESET enable_mergejoin;

-- functions
CREATE INDEX w_4 ON w USING gpu_btree (k) INCLUDE (int8);
SELECT gpuds_count('w_4', 10::bigint, 500::bigint) = count(*) AS right FROM w WHERE k BETWEEN 10 AND 500;
SELECT gpuds_count('w_1', 3::int2, 7::int2) = count(*) AS right FROM w WHERE small BETWEEN 3 AND 7;
SELECT (SELECT array_agg(l ORDER BY l) FROM gpuds_lookup('w_4', ARRAY(SELECT i FROM generate_series(-5, 1005::bigint) i)) l) =
	(SELECT array_agg(r ORDER BY r) FROM (SELECT i + 6 AS ordinality, w.ctid FROM generate_series(-5, 1005::bigint) i JOIN w ON k = i) r) AS right;
SELECT (SELECT array_agg(l ORDER BY l) FROM gpuds_lookup('w_1', ARRAY(SELECT i::int2 FROM generate_series(-5, 60) i)) l) =
	(SELECT array_agg(r ORDER BY r) FROM (SELECT (i + 6)::bigint AS ordinality, w.ctid FROM generate_series(-5, 60) i JOIN w ON small = i) r) AS right;
SELECT gpuds_contains('w_1', '{3,7,49,50,NULL}'::int2[]), gpuds_contains('w_4', '{3,7,999,1000}'::int8[]);

-- included columns that entries have no room for: behind a key of 129 bits, none has
CREATE TABLE s WITH (autovacuum_enabled = off) AS SELECT md5(i::text)::uuid AS id, w.* FROM w, LATERAL (SELECT row_number() OVER () AS i) r;
UPDATE s SET id = md5(ctid::text)::uuid;
VACUUM FULL s;
VACUUM ANALYZE s;
\set ECHO none
CREATE FUNCTION all_side_types() RETURNS TABLE (col name, result text) LANGUAGE plpgsql AS $$
BEGIN
	FOR col IN SELECT attname FROM pg_attribute WHERE attrelid = 's'::regclass AND attnum > 1 ORDER BY attnum LOOP
		EXECUTE format('CREATE INDEX including ON s USING gpu_btree (id) INCLUDE (%I, int8)', col);
		result := returned(format('SELECT id, %I::text, int8 FROM s WHERE id >= ''80000000-0000-0000-0000-000000000000''', col));
		RETURN NEXT;
		EXECUTE 'DROP INDEX including';
	END LOOP;
END $$;
\set ECHO all
SELECT * FROM all_side_types();
-- 32 bytes of them; the first included column may lie in the key
CREATE INDEX s_id ON s USING gpu_btree (id) INCLUDE (int8, float8, "timestamp", int4, int2, bool, "char");
CREATE INDEX s_k ON s USING gpu_btree (k) INCLUDE (int8, float4, float8, "timestamp", oid, date, int2);
CREATE INDEX s_small ON s USING gpu_btree (small DESC, tiny) INCLUDE (positive, int8, money, float8, macaddr, "time");
SELECT returned('SELECT id, int8, float8::text, "timestamp", int4, int2, bool, "char" FROM s WHERE id > ''40000000-0000-0000-0000-000000000000''');
SELECT returned('SELECT k, int8, float4::text, float8::text, "timestamp", oid, date, int2 FROM s WHERE k BETWEEN 100 AND 900');
SELECT returned('SELECT k, int8, date, int2 FROM s WHERE k IS NULL');
SELECT returned('SELECT small, tiny, positive, int8, money, float8::text, macaddr, "time" FROM s WHERE small < 40 AND tiny');
SELECT same('SELECT * FROM s WHERE k BETWEEN 100 AND 900 AND int8 > 0', 's_k');

-- added up, with and without groups, all of a table and a part of it
SET gpuds.enable_aggregate = on;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF, VERBOSE) SELECT sum(int8), max(oid) FROM s WHERE k BETWEEN 100 AND 900;
CREATE VIEW sums AS
SELECT 1 AS part, count(*), sum(int8) AS sum_8, avg(int8)::text AS avg_8, min(float8)::text, max(float8)::text AS max_f8, sum(oid::int8) AS no, max(date) AS max_date, min("timestamp") AS min_ts, count(int2) AS count_2, sum(int2) AS sum_2 FROM s WHERE k BETWEEN 100 AND 900
UNION ALL
SELECT 2, count(int8), sum(int8), NULL, min(float4)::text, max(float4)::text, count(oid), max(date), max("timestamp"), count(int2), min(int2) FROM s WHERE k >= 0
UNION ALL
SELECT 3, count(int4), sum(int4), avg(int2)::text, min("char"::text), NULL, count(bool), NULL, max("timestamp"), sum(int4), bool_or(bool)::int FROM s WHERE id < 'c0000000-0000-0000-0000-000000000000';
SELECT digest_of('SELECT * FROM sums', false) = right_digest_of('SELECT * FROM sums', false) AS right;
SELECT digest_of(query, false) = right_digest_of(query, false) AS right, plan_of(query) LIKE '%GpudsAggregate%' AS by_aggregate
FROM unnest('{"SELECT k, sum(int8), max(float8)::text, count(int2), avg(int2) FROM s WHERE k > 50 GROUP BY k",
	"SELECT sum(int8), sum(int2), count(date), max(date) FROM s WHERE k = ANY (ARRAY(SELECT i * 3 FROM generate_series(0, 400::bigint) i))",
	"SELECT small, count(int8), sum(int8), min(money), max(money) FROM s WHERE small BETWEEN 5 AND 45 GROUP BY small",
	"SELECT bool_and(bool), bool_or(bool), sum(int4) FROM s WHERE id < ''c0000000-0000-0000-0000-000000000000''"}'::text[]) query;

-- they follow the table: values that change, TIDs that are used again, rows that the snapshot does not see
UPDATE s SET int8 = int8 + 1 WHERE k % 3 = 0;
UPDATE s SET int2 = NULL WHERE k % 5 = 0;
DELETE FROM s WHERE k % 7 = 0;
SELECT digest_of('SELECT * FROM sums', false) = right_digest_of('SELECT * FROM sums', false) AS right;
VACUUM s;
INSERT INTO s (id, k, int8, float8, int2) SELECT md5(i::text)::uuid, i, -i, i / 3.0, i FROM generate_series(1, 1000) i;
BEGIN;
INSERT INTO s (id, k, int8, float8, int2) SELECT md5(i::text)::uuid, i, 7 * i, NULL, i FROM generate_series(1, 100) i;
SAVEPOINT a;
UPDATE s SET int8 = 11 WHERE k BETWEEN 1 AND 200;
SELECT digest_of('SELECT * FROM sums', false) = right_digest_of('SELECT * FROM sums', false) AS right;
ROLLBACK TO a;
SELECT digest_of('SELECT * FROM sums', false) = right_digest_of('SELECT * FROM sums', false) AS right;
ROLLBACK;
VACUUM s;
SELECT digest_of('SELECT * FROM sums', false) = right_digest_of('SELECT * FROM sums', false) AS right;
SELECT returned('SELECT k, int8, float4::text, float8::text, "timestamp", oid, date, int2 FROM s WHERE k BETWEEN 100 AND 900');
SELECT gpuds_index_check(indexrelid, true) FROM pg_index WHERE indrelid = 's'::regclass ORDER BY indexrelid::regclass::text;

-- a chain of HOT updates that is older than the index: what it begins with is not what the index was built of
CREATE TABLE hot (k int, a uuid, v bigint) WITH (autovacuum_enabled = off, fillfactor = 50);
INSERT INTO hot SELECT i, md5(i::text)::uuid, i FROM generate_series(1, 300) i;
CREATE INDEX hot_k ON hot USING gpu_btree (k) INCLUDE (a);
UPDATE hot SET v = -v;
CREATE INDEX hot_v ON hot USING gpu_btree (a) INCLUDE (v);
SELECT returned('SELECT a, v FROM hot WHERE a > ''10000000-0000-0000-0000-000000000000''');
SELECT sum(v) FROM hot WHERE a > '10000000-0000-0000-0000-000000000000';
UPDATE hot SET k = k WHERE k > 100;
SELECT returned('SELECT a, v FROM hot WHERE a > ''10000000-0000-0000-0000-000000000000''');
VACUUM hot;
SELECT returned('SELECT a, v FROM hot WHERE a > ''10000000-0000-0000-0000-000000000000''');
UPDATE hot SET v = v + 1;
SELECT returned('SELECT a, v FROM hot WHERE a > ''10000000-0000-0000-0000-000000000000''');

-- columns that were added later, to rows that do not have them
ALTER TABLE hot ADD late bigint DEFAULT 42, ADD later bigint;
CREATE INDEX hot_late ON hot USING gpu_btree (a) INCLUDE (late, later);
INSERT INTO hot VALUES (0, md5('0')::uuid, 0, 1, 2);
SELECT sum(late), count(later) FROM hot WHERE a > '00000000-0000-0000-0000-000000000000';
VACUUM hot;
SELECT returned('SELECT a, late, later FROM hot WHERE a > ''10000000-0000-0000-0000-000000000000''');

-- temporary and unlogged tables; a table that is emptied in the transaction that made it
CREATE TEMP TABLE temp AS SELECT * FROM hot;
CREATE INDEX temp_a ON temp USING gpu_btree (a) INCLUDE (v, late);
VACUUM temp;
SELECT returned('SELECT a, v, late FROM temp WHERE a > ''10000000-0000-0000-0000-000000000000''');
CREATE UNLOGGED TABLE unlogged AS SELECT * FROM hot;
CREATE INDEX unlogged_a ON unlogged USING gpu_btree (a) INCLUDE (v, late);
SELECT returned('SELECT a, v, late FROM unlogged WHERE a > ''10000000-0000-0000-0000-000000000000''');
BEGIN;
CREATE TABLE emptied AS SELECT * FROM hot;
CREATE INDEX emptied_a ON emptied USING gpu_btree (a) INCLUDE (v, late);
SELECT sum(v) FROM emptied WHERE a > '10000000-0000-0000-0000-000000000000';
TRUNCATE emptied;
INSERT INTO emptied SELECT k, a, 1, late FROM hot;
SELECT sum(v), count(*) FROM emptied WHERE a > '00000000-0000-0000-0000-000000000000';
COMMIT;
TRUNCATE unlogged;
INSERT INTO unlogged SELECT k, a, 1, late FROM hot;
SELECT sum(v), count(*) FROM unlogged WHERE a > '00000000-0000-0000-0000-000000000000';

-- joins
CREATE TABLE keys AS SELECT i::bigint AS k FROM generate_series(0, 1500) i;
ANALYZE keys, s;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_nestloop = off;
SET gpuds.enable_join = on;
EXPLAIN (COSTS OFF) SELECT count(*), sum(s.int8), max(s.date), count(s.int2) FROM keys JOIN s USING (k);
SELECT count(*), sum(s.int8), max(s.date), count(s.int2) FROM keys JOIN s USING (k);
SELECT count(*), sum(s.int8), max(s.date), count(s.int2) FROM keys LEFT JOIN s ON s.k = keys.k AND s.int8 > 0;
SELECT count(*) FROM keys WHERE EXISTS (SELECT FROM s WHERE s.k = keys.k AND s.int2 > 100);
SET gpuds.enable_join = off;
SET gpuds.enable_aggregate = off;
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_seqscan;
SELECT count(*), sum(s.int8), max(s.date), count(s.int2) FROM keys JOIN s USING (k);
SELECT count(*), sum(s.int8), max(s.date), count(s.int2) FROM keys LEFT JOIN s ON s.k = keys.k AND s.int8 > 0;
SELECT count(*) FROM keys WHERE EXISTS (SELECT FROM s WHERE s.k = keys.k AND s.int2 > 100);
RESET enable_mergejoin;
RESET enable_bitmapscan;

-- by parallel workers, who fill the store together; with the leader and without
ALTER TABLE s SET (parallel_workers = 2);
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET min_parallel_index_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_nestloop = off;
\set ECHO none
CREATE FUNCTION by_workers(query text, node text, leader bool) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answer text;
	plan text;
BEGIN
	PERFORM gpuds_index_evict('s_k');
	PERFORM set_config('parallel_leader_participation', leader::text, true), set_config('gpuds.enable_join', 'on', true);
	plan := plan_of(query);
	answer := digest_of(query, false);
	PERFORM set_config('gpuds.enable_join', 'off', true), set_config('enable_hashjoin', 'on', true);
	RETURN CASE WHEN plan NOT LIKE '%Parallel ' || node || '%' THEN plan WHEN answer = right_digest_of(query, false) THEN 'right' ELSE 'wrong' END;
END $$;
\set ECHO all
SELECT leader, by_workers('SELECT sum(int8), max(oid), count(int2), sum(int2), min(date), max(float8)::text FROM s WHERE k BETWEEN 100 AND 900', 'Index Only Scan using s_k', leader),
	by_workers('SELECT k, int8, float4::text, float8::text, "timestamp", oid, date, int2 FROM s WHERE k > 50 AND int2 > 10', 'Index Only Scan using s_k', leader),
	by_workers('SELECT count(*), sum(s.int8), max(s.date), count(s.int2) FROM (SELECT k FROM s WHERE k < 800) a JOIN s USING (k)', 'Custom Scan (GpudsJoin)', leader)
FROM (VALUES (true), (false)) l (leader);
RESET enable_seqscan;
RESET enable_bitmapscan;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_nestloop;
RESET min_parallel_table_scan_size;
RESET min_parallel_index_scan_size;
SET max_parallel_workers_per_gather = 0;

-- equality only
CREATE INDEX s_hash ON s USING gpu_hash (id, k) INCLUDE (int8, float8, "timestamp");
SELECT count(*), sum(s.int8) FROM s WHERE id = ANY (ARRAY(SELECT id FROM s)) AND k = 500;
SELECT gpuds_index_check('s_hash', true);

-- a type changes to one of the same bytes: the file stays, and is right
CREATE TABLE y (k int, v int) WITH (autovacuum_enabled = off);
INSERT INTO y SELECT i, -i FROM generate_series(1, 100) i;
CREATE INDEX y_k ON y USING gpu_btree (k) INCLUDE (v);
VACUUM y;
SELECT pg_relation_filenode('y_k') AS file \gset
SELECT returned('SELECT k, v FROM y WHERE k > 50');
ALTER TABLE y ALTER v TYPE oid;
SELECT pg_relation_filenode('y_k') = :file AS same_file;
SELECT returned('SELECT k, v FROM y WHERE k > 50');
SELECT k, v FROM y WHERE k = 100;
ALTER TABLE y ALTER v TYPE bigint;
SELECT returned('SELECT k, v FROM y WHERE k > 50');
ALTER TABLE y ALTER v TYPE text;
CREATE TABLE z (k uuid, v int) WITH (autovacuum_enabled = off);
INSERT INTO z SELECT md5(i::text)::uuid, -i FROM generate_series(1, 100) i;
CREATE INDEX z_k ON z USING gpu_btree (k) INCLUDE (v);
VACUUM z;
SELECT pg_relation_filenode('z_k') AS file \gset
SELECT returned('SELECT k, v FROM z WHERE k > ''80000000-0000-0000-0000-000000000000''');
ALTER TABLE z ALTER v TYPE oid;
SELECT pg_relation_filenode('z_k') = :file AS same_file;
SELECT returned('SELECT k, v FROM z WHERE k > ''80000000-0000-0000-0000-000000000000''');
SELECT max(v) FROM z WHERE k > '80000000-0000-0000-0000-000000000000';

-- what cannot be included
CREATE TABLE u (k bigint, a bigint, b bigint, n numeric, t text, name name, id uuid, i1 int2, i2 int2, i3 int2, i4 int2, i5 int2, i6 int2, i7 int2, i8 int2);
CREATE INDEX u_k ON u USING gpu_btree (k) INCLUDE (n);
CREATE INDEX u_k ON u USING gpu_btree (k) INCLUDE (a, t);
CREATE INDEX u_k ON u USING gpu_btree (k) INCLUDE (name);
CREATE INDEX u_k ON u USING gpu_btree (id) INCLUDE (a, b, k, a, i1);
CREATE INDEX u_k ON u USING gpu_btree (id) INCLUDE (id, id, i1);
CREATE INDEX u_k ON u USING gpu_btree (id, i1) INCLUDE (a);
CREATE INDEX u_k ON u USING gpu_btree (i1) INCLUDE (i2, i3, i4, i5, i6, i7, i8, k);
SELECT gpuds_index_estimate('u', '{id}', '{a,b,k,a,i1}');
SELECT gpuds_index_estimate('u', '{id,i1}', '{a}');
SELECT e.entries FROM gpuds_index_estimate('u', '{k}', '{a,b,id}') e;
-- (PostgreSQL 19 says where)
\set VERBOSITY sqlstate
CREATE INDEX u_k ON u USING gpu_btree (k) INCLUDE ((a + 1));
\set VERBOSITY default

SET client_min_messages = warning;
DROP SCHEMA test_include_columns CASCADE;
