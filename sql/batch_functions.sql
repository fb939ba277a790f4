-- gpuds_lookup, gpuds_contains and gpuds_count: what they find, and for whom.
\set test test_batch_functions
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude
SET client_min_messages = warning;
DROP ROLE IF EXISTS regress_gpuds_caller;
RESET client_min_messages;

CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE other_mood AS ENUM ('sad', 'ok');
CREATE DOMAIN natural_number AS int CHECK (VALUE >= 0);
CREATE DOMAIN moment AS timestamptz;
CREATE TABLE t (id int, k int, s smallint, b bigint, o oid, f4 real, f8 float8, c "char", y boolean, d date, ts timestamp,
	tz timestamptz, ti time, zt timetz, iv interval, u uuid, ma macaddr, m8 macaddr8, mo money, l pg_lsn, x xid8, m mood,
	nn natural_number, note text) WITH (autovacuum_enabled = off, fillfactor = 70);
INSERT INTO t SELECT i, nullif(i % 1500, 7), i % 300 - 100, (i % 900)::bigint * 10000000000 - 10, i % 700, (i % 500) / 4.0 - 10,
	(i % 700) / 4.0 - 10, (i % 100 + 27)::"char", i % 3 = 0, date '2000-01-01' + i % 500, timestamp '2000-01-01' + i % 500 * interval '12 h',
	timestamptz '2000-01-01 00:00+00' + i % 500 * interval '12 h', time '00:00' + i % 1000 * interval '1 min',
	(time '00:00' + i % 1000 * interval '1 min') AT TIME ZONE '+02', (i % 400) * interval '13 h', md5((i % 1000)::text)::uuid,
	('08:00:2b:01:02:' || lpad(to_hex(i % 200), 2, '0'))::macaddr, ('08:00:2b:01:02:03:04:' || lpad(to_hex(i % 200), 2, '0'))::macaddr8,
	(i % 600)::money, ('0/' || to_hex(i % 800))::pg_lsn, (i % 650)::text::xid8, ('{sad,ok,happy}'::mood[])[i % 3 + 1], i % 450, 'note ' || i
FROM generate_series(1, 6000) i;
INSERT INTO t (id, f4, f8, d, ts, tz, iv) VALUES (-1, 'NaN', 'NaN', 'infinity', 'infinity', 'infinity', '1 month'),
	(-2, '-infinity', '-infinity', '-infinity', '-infinity', '-infinity', '30 days'), (-3, '-0', '-0', NULL, NULL, NULL, NULL);
CREATE INDEX t_k ON t USING gpu_btree (k);
CREATE INDEX t_k_desc ON t USING gpu_btree (k DESC);
CREATE INDEX t_k_first ON t USING gpu_btree (k NULLS FIRST);
CREATE INDEX t_k_last ON t USING gpu_btree (k DESC NULLS LAST);
CREATE INDEX t_k_s ON t USING gpu_btree (k, s);
CREATE INDEX t_s_k ON t USING gpu_btree (s DESC, k, y);
CREATE INDEX t_u_k ON t USING gpu_btree (m, k, s);
CREATE INDEX t_expr ON t USING gpu_btree ((k % 50), id);
CREATE INDEX t_part ON t USING gpu_btree (k) WHERE s > 0;
SELECT format('CREATE INDEX t_%1$s ON t USING gpu_btree (%1$s)', column_name)
FROM unnest('{s,b,o,f4,f8,c,y,d,ts,tz,ti,zt,iv,u,ma,m8,mo,l,x,m,nn}'::text[]) column_name \gexec
VACUUM ANALYZE t;

\set ECHO none
-- What the functions say of an array of keys, and of the range from its first to its last, beside what queries of
-- the table say.  NULL if they agree about something, else what is wrong.
CREATE FUNCTION differs(index regclass, expr text, keys text, type text, "table" text DEFAULT 't') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	query text;
	wrong text := '';
	bad bigint;
BEGIN
	query := format('SELECT count(*) FROM ((SELECT u.n, x.ctid FROM unnest(%1$L::%2$s[]) WITH ORDINALITY u (key, n) JOIN %3$s x ON x.%4$s = u.key)
		EXCEPT ALL SELECT * FROM gpuds_lookup(%5$L, %1$L::%2$s[])) missing', keys, type, "table", expr, index);
	EXECUTE query INTO bad;
	IF bad > 0 THEN wrong := wrong || ' missing: ' || bad; END IF;
	query := format('SELECT count(*) FROM (SELECT * FROM gpuds_lookup(%5$L, %1$L::%2$s[])
		EXCEPT ALL (SELECT u.n, x.ctid FROM unnest(%1$L::%2$s[]) WITH ORDINALITY u (key, n) JOIN %3$s x ON x.%4$s = u.key)) surplus',
		keys, type, "table", expr, index);
	EXECUTE query INTO bad;
	IF bad > 0 THEN wrong := wrong || ' surplus: ' || bad; END IF;
	query := format('SELECT count(*) FROM unnest(%1$L::%2$s[], gpuds_contains(%5$L, %1$L::%2$s[])) u (key, found)
		WHERE found IS DISTINCT FROM CASE WHEN key IS NULL THEN NULL ELSE EXISTS (SELECT FROM %3$s x WHERE x.%4$s = key) END',
		keys, type, "table", expr, index);
	EXECUTE query INTO bad;
	IF bad > 0 THEN wrong := wrong || ' contains: ' || bad; END IF;
	query := format('SELECT sum((gpuds_count(%5$L, lo, hi)
			<> (SELECT count(*) FROM %3$s x WHERE x.%4$s IS NOT NULL AND (lo IS NULL OR x.%4$s >= lo) AND (hi IS NULL OR x.%4$s <= hi)))::int)
		FROM (SELECT key AS lo, lead(key, 3) OVER () AS hi FROM unnest((%1$L::%2$s[])[:40]) key UNION ALL SELECT NULL, NULL) bounds', keys, type, "table", expr, index);
	EXECUTE query INTO bad;
	IF bad > 0 THEN wrong := wrong || ' counts: ' || bad; END IF;
	RETURN nullif(wrong, '');
END $$;

-- The same for keys that a column has, keys beside them, a NULL and duplicates, in an order that looks random.
CREATE FUNCTION agrees(index regclass, expr text, type text, more text DEFAULT '{}', "table" text DEFAULT 't') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	keys text;
	wrong text;
BEGIN
	PERFORM set_config('enable_seqscan', 'on', true), set_config('enable_indexscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
		set_config('enable_indexonlyscan', 'off', true);
	EXECUTE format('SELECT (SELECT array_agg(key ORDER BY md5(n || key)) FROM
		(SELECT v::text AS key, id AS n FROM (SELECT DISTINCT ON (%1$s) %1$s AS v, id FROM %2$s WHERE id %% 3 > 0) q
		 UNION ALL SELECT * FROM (SELECT %1$s::text, -id FROM %2$s WHERE id %% 50 = 7) q WHERE q IS NOT NULL
		 UNION ALL SELECT key, -n FROM unnest(%3$L::text[]) WITH ORDINALITY u (key, n)) q)', expr, "table", more) INTO keys;
	wrong := differs(index, expr, keys, type, "table");
	PERFORM set_config('work_mem', '64kB', true);
	wrong := coalesce(wrong || ' ', '') || coalesce('in batches: ' || differs(index, expr, keys, type, "table"), '');
	PERFORM set_config('work_mem', '4MB', true), set_config('enable_indexscan', 'on', true), set_config('enable_bitmapscan', 'on', true),
		set_config('enable_indexonlyscan', 'on', true);
	RETURN format('%s of %s: %s', index, type, coalesce(nullif(wrong, ''), cardinality(keys::text[]) || ' keys agree'));
END $$;
\set ECHO all

-- types, and orders of the index
SELECT agrees('t_k', 'k', 'int', '{-1,2147483647,-2147483648}');
SELECT agrees('t_k_desc', 'k', 'int', '{-1,2147483647,-2147483648}');
SELECT agrees('t_k_first', 'k', 'int', '{-1,2147483647,-2147483648}');
SELECT agrees('t_k_last', 'k', 'int', '{-1,2147483647,-2147483648}');
SELECT agrees('t_k_s', 'k', 'int', '{-1}');
SELECT agrees('t_s_k', 's', 'smallint', '{-1000}');
SELECT agrees('t_u_k', 'm', 'mood');
SELECT agrees('t_s', 's', 'smallint', '{-32768,32767}');
SELECT agrees('t_b', 'b', 'bigint', '{9223372036854775807,-9223372036854775808,0}');
SELECT agrees('t_o', 'o', 'oid', '{4294967295}');
SELECT agrees('t_f4', 'f4', 'real', '{0,-0,1e-40,infinity}');
SELECT agrees('t_f8', 'f8', 'float8', '{0,-0,1e-320,infinity}');
SELECT agrees('t_c', 'c', '"char"', '{z}');
SELECT agrees('t_y', 'y', 'boolean', '{t,f,f}');
SELECT agrees('t_d', 'd', 'date', '{1999-12-31,4713-01-01 BC}');
SELECT agrees('t_ts', 'ts', 'timestamp', '{1999-12-31}');
SELECT agrees('t_tz', 'tz', 'timestamptz', '{1999-12-31}');
SELECT agrees('t_ti', 'ti', 'time', '{24:00}');
SELECT agrees('t_zt', 'zt', 'timetz', '{24:00+00,01:00+01,02:00+02}');
SELECT agrees('t_iv', 'iv', 'interval', '{1 mon,30 days,720 h,-1 y}');
SELECT agrees('t_u', 'u', 'uuid', '{00000000-0000-0000-0000-000000000000}');
SELECT agrees('t_ma', 'ma', 'macaddr', '{ff:ff:ff:ff:ff:ff}');
SELECT agrees('t_m8', 'm8', 'macaddr8', '{ff:ff:ff:ff:ff:ff:ff:ff}');
SELECT agrees('t_mo', 'mo', 'money', '{-1}');
SELECT agrees('t_l', 'l', 'pg_lsn', '{FFFFFFFF/FFFFFFFF}');
SELECT agrees('t_x', 'x', 'xid8', '{18446744073709551615}');
SELECT agrees('t_m', 'm', 'mood');
SELECT agrees('t_nn', 'nn', 'natural_number', '{1000}');
SELECT agrees('t_nn', 'nn', 'int', '{-1}');

-- without NULLs, in both directions
SELECT differs(index, 'k', '{5,-1,8,8,2147483647,7,-2147483648,0}', type) FROM unnest('{t_k,t_k_desc,t_k_last,t_k_s}'::text[]) index,
	unnest('{int,bigint}'::text[]) type;
SELECT differs('t_k_desc', 'k', '{32767,5,-1,8,8,-32768}', 'smallint');

-- expressions; comparable types, values out of range and inexact ones among them
CREATE VIEW te AS SELECT ctid, id, k % 50 AS e FROM t;
SELECT agrees('t_expr', 'e', 'int', '{70}', 'te');
SELECT agrees('t_k', 'k', 'bigint', '{2147483648,-2147483649}');
SELECT agrees('t_s', 's', 'bigint', '{32768,9223372036854775807}');
SELECT differs('t_b', 'b', '{-10,2000000000,NULL,5}', 'int');
SELECT differs('t_b', 'b', '{-10,32767}', 'smallint');
SELECT agrees('t_f4', 'f4', 'float8', '{0.1,1e300,-1e-300,NaN}');
SELECT agrees('t_f8', 'f8', 'real', '{0.1}');
SELECT agrees('t_d', 'd', 'timestamp', '{2000-01-02 00:00:01,294276-12-31,4713-01-01 BC}');
SELECT agrees('t_ts', 'ts', 'date', '{5874897-12-31}');
SET TimeZone = 'Europe/Berlin';
SELECT agrees('t_tz', 'tz', 'timestamp', '{2000-03-26 02:30,2000-10-29 02:30}');
SELECT agrees('t_tz', 'tz', 'date');
SELECT agrees('t_tz', 'tz', 'moment');
RESET TimeZone;

-- arrays
SELECT gpuds_contains('t_k', '{}'::int[]), (SELECT count(*) FROM gpuds_lookup('t_k', '{}'::int[]));
SELECT gpuds_contains('t_k', NULL::int[]), (SELECT count(*) FROM gpuds_lookup('t_k', NULL::int[])), gpuds_contains(NULL, '{1}'::int[]);
SELECT gpuds_contains('t_k', '{NULL,NULL}'::int[]), gpuds_contains('t_k', '{7,8,1499,1500,NULL,8}'::int[]);
SELECT gpuds_contains('t_k', '[0:1][-1:1]={{8,NULL,7},{0,9,NULL}}'::int[]);
SELECT gpuds_contains('t_k', '{{{1,-1}},{{-1,1}}}'::int[]);
SELECT ordinality, count(*) FROM gpuds_lookup('t_k', '[5:6][1:2]={{8,NULL},{7,8}}'::int[]) GROUP BY 1 ORDER BY 1;
SELECT array_agg(found ORDER BY n) = (SELECT array_agg(CASE WHEN i % 3 > 0 THEN i % 2000 < 1500 AND i % 2000 <> 7 END ORDER BY i) FROM generate_series(1, 100000) i)
FROM unnest(gpuds_contains('t_k', ARRAY(SELECT CASE WHEN i % 3 > 0 THEN i % 2000 END FROM generate_series(1, 100000) i))) WITH ORDINALITY u (found, n);
SELECT gpuds_contains('t_k', array_fill(8, '{3000}')) = array_fill(true, '{3000}');
SELECT count(*), count(DISTINCT ordinality), count(DISTINCT ctid) FROM gpuds_lookup('t_k', array_fill(8, '{3000}'));

-- bounds
SELECT gpuds_count('t_k', NULL, NULL), count(k) FROM t;
SELECT gpuds_count('t_k', NULL::int, 10), gpuds_count('t_k', 1490, NULL), gpuds_count('t_k', 10, 9), gpuds_count('t_k', 7, 7), gpuds_count(NULL, 1, 2);
SELECT gpuds_count('t_k', 0, 5000000000), gpuds_count('t_k_desc', NULL, 10::smallint), gpuds_count('t_k_first', 0, NULL), gpuds_count('t_k_last', 0, 3);
SELECT gpuds_count('t_f8', 'NaN'::float8, NULL), gpuds_count('t_iv', '30 days'::interval, '1 month'::interval), gpuds_count('t_y', false, true);
SELECT gpuds_count('t_m', 'ok'::mood, NULL), gpuds_count('t_nn', 3::natural_number, 4::natural_number), gpuds_count('t_expr', 48, NULL);

-- many rows of a key, more than a piece of matches
CREATE TABLE many (id int, k int) WITH (autovacuum_enabled = off);
INSERT INTO many SELECT i, CASE WHEN i <= 120000 THEN 1 ELSE i END FROM generate_series(1, 121000) i;
CREATE INDEX many_k ON many USING gpu_btree (k);
SELECT differs('many_k', 'k', '{1,2,120001,1,NULL}', 'int', 'many');
VACUUM ANALYZE many;
SELECT differs('many_k', 'k', '{1,2,120001,1,NULL}', 'int', 'many');
DELETE FROM many WHERE id % 2 = 0 OR k = 120001;
SELECT differs('many_k', 'k', '{1,2,120001,1,NULL}', 'int', 'many');
DELETE FROM many WHERE k = 1;
SELECT differs('many_k', 'k', '{1,2,120001,1,NULL}', 'int', 'many');
CALL wait_for_snapshots();
VACUUM many;
SELECT differs('many_k', 'k', '{1,2,120001,1,NULL}', 'int', 'many');

-- many keys at once, most of them of rows that all see: a device answers for these as they come, in several pieces
CREATE TABLE large (k bigint, u uuid) WITH (autovacuum_enabled = off, fillfactor = 50);
INSERT INTO large SELECT i * 3, md5(i::text)::uuid FROM generate_series(1, 20000) i;
CREATE INDEX large_k ON large USING gpu_btree (k);
CREATE INDEX large_u ON large USING gpu_btree (u);
CALL wait_for_snapshots();
VACUUM ANALYZE large;
\set ECHO none
CREATE FUNCTION large_keys(shift int) RETURNS bigint[] LANGUAGE sql AS $$
	SELECT array_agg(CASE WHEN i % 1000 <> 5 THEN i::bigint * 7919 % 60100 - shift END ORDER BY i) FROM generate_series(1, 80000) i $$;
CREATE FUNCTION wrong_of_large(shift int DEFAULT 0) RETURNS TABLE (elements bigint, wrong bigint, found bigint) LANGUAGE sql AS $$
	WITH given AS MATERIALIZED (SELECT large_keys(shift) AS keys),
	answer AS MATERIALIZED (SELECT u.* FROM given, unnest(keys, gpuds_contains('large_k', keys)) u (key, found)),
	there AS MATERIALIZED (SELECT DISTINCT k + 0 AS k FROM large)
	SELECT count(*), count(*) FILTER (WHERE found IS DISTINCT FROM CASE WHEN key IS NOT NULL THEN k IS NOT NULL END), count(*) FILTER (WHERE found)
	FROM answer LEFT JOIN there ON k = key $$;
CREATE FUNCTION bus_bytes(index regclass) RETURNS bigint LANGUAGE sql AS 'SELECT coalesce(sum(bus_bytes), 0)::bigint FROM gpuds_stat_indexes WHERE indexrelid = index';
\set ECHO all
SELECT * FROM wrong_of_large();
SELECT bus_bytes('large_k') AS before \gset
SELECT bool_and(found) FROM unnest(gpuds_contains('large_k', ARRAY(SELECT (i::bigint * 7919 % 20000 + 1) * 3 FROM generate_series(1, 70000) i))) found;
-- a key takes a word to a GPU once, and a bit back, and then there is the visibility map, once
SELECT bus_bytes('large_k') - :before <= 70000 * 9 AS few_bus_bytes;
SELECT bus_bytes('large_k') AS before \gset
SELECT count(*) FILTER (WHERE found) FROM unnest(gpuds_contains('large_k', ARRAY(SELECT generate_series(1, 70000)::bigint))) found;
SELECT bus_bytes('large_k') - :before <= 70000 * 9 AS few_bus_bytes;
SET work_mem = '64kB';
SELECT * FROM wrong_of_large();
RESET work_mem;
-- rows on pages that are not all-visible, fresh ones, dead ones, and those that VACUUM has removed from the index
INSERT INTO large SELECT i * 3 + 1, md5(i::text)::uuid FROM generate_series(1, 500) i;
SELECT * FROM wrong_of_large();
DELETE FROM large WHERE k % 700 = 0;
SELECT * FROM wrong_of_large();
UPDATE large SET k = k + 1 WHERE k % 1100 = 0;
SELECT * FROM wrong_of_large();
CALL wait_for_snapshots();
VACUUM large;
SELECT * FROM wrong_of_large();
INSERT INTO large SELECT 7 * i, md5((-i)::text)::uuid FROM generate_series(1, 700) i;
SELECT * FROM wrong_of_large(1);
-- many fresh ones
INSERT INTO large SELECT 2 * i, md5((2 * i)::text)::uuid FROM generate_series(1, 20000) i;
SELECT * FROM wrong_of_large(1);
SELECT count(*), count(*) FILTER (WHERE found IS DISTINCT FROM EXISTS (SELECT FROM large WHERE u = key)) AS wrong, count(*) FILTER (WHERE found)
FROM (SELECT array_agg(md5((i * 7 % 1000 - 100)::text)::uuid) AS keys FROM generate_series(1, 1500) i) a, unnest(keys, gpuds_contains('large_u', keys)) u (key, found);
-- own rows, deleted ones, and those of savepoints
BEGIN;
INSERT INTO large SELECT i FROM generate_series(1, 301, 3) i;
DELETE FROM large WHERE k BETWEEN 3000 AND 4000;
SELECT * FROM wrong_of_large();
SAVEPOINT a;
DELETE FROM large WHERE k BETWEEN 1 AND 300;
INSERT INTO large SELECT 60000 + i FROM generate_series(1, 60) i;
SELECT * FROM wrong_of_large();
ROLLBACK TO a;
SELECT * FROM wrong_of_large();
ROLLBACK;
SELECT * FROM wrong_of_large();
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT * FROM wrong_of_large(2);
COMMIT;
SELECT (array_dims(found), array_dims(found[1:1][2:2]), found[1][1:3]) FROM gpuds_contains('large_k', ARRAY(SELECT ARRAY[3, i, NULL, 4] FROM generate_series(1, 60) i)) found;
CREATE TEMP TABLE tmp_large AS SELECT k FROM large;
CREATE INDEX tmp_large_k ON tmp_large USING gpu_btree (k);
SELECT count(*) FILTER (WHERE found) FROM unnest(gpuds_contains('tmp_large_k', large_keys(0))) found;
SELECT count(*) FILTER (WHERE found) FROM unnest(gpuds_contains('large_k', large_keys(0))) found;

-- deleted, updated, moved within the page, before and after VACUUM; TIDs are those of the rows
DELETE FROM t WHERE id % 7 = 0;
UPDATE t SET note = note || '!' WHERE id % 5 = 0;
UPDATE t SET k = k + 1 WHERE id % 11 = 0;
SELECT agrees('t_k', 'k', 'int');
SELECT agrees('t_k_s', 'k', 'int');
CALL wait_for_snapshots();
VACUUM t;
SELECT agrees('t_k', 'k', 'int');
SELECT count(*), count(t.id), bool_and(t.k = 10 * l.ordinality) FROM gpuds_lookup('t_k', '{10,20,30,40}'::int[]) l LEFT JOIN t ON t.ctid = l.ctid;
INSERT INTO t (id, k) SELECT i, i FROM generate_series(2000, 3000) i;
SELECT agrees('t_k', 'k', 'int');
CREATE TABLE chained (id int, k int) WITH (autovacuum_enabled = off);
INSERT INTO chained VALUES (1, 5), (2, 6);
CREATE INDEX chained_k ON chained USING gpu_btree (k);
UPDATE chained SET id = 3 WHERE k = 5;
SELECT * FROM gpuds_lookup('chained_k', '{6,5}'::int[]) ORDER BY 1;
CALL wait_for_snapshots();
VACUUM chained;
SELECT * FROM gpuds_lookup('chained_k', '{6,5}'::int[]) ORDER BY 1;
SELECT ctid, * FROM chained ORDER BY k DESC;

-- own rows: of the transaction, of savepoints, of the same statement
BEGIN;
INSERT INTO t (id, k) SELECT i, 5000 + i FROM generate_series(1, 50) i;
SELECT gpuds_count('t_k', 5001, 5100), gpuds_contains('t_k', '{5001,5050,5051}'::int[]);
SAVEPOINT a;
INSERT INTO t (id, k) SELECT i, 5000 + i FROM generate_series(51, 60) i;
DELETE FROM t WHERE k = 5001;
SELECT gpuds_count('t_k', 5001, 5100), gpuds_contains('t_k', '{5001,5050,5051}'::int[]);
ROLLBACK TO a;
SELECT gpuds_count('t_k', 5001, 5100), gpuds_contains('t_k', '{5001,5050,5051}'::int[]);
INSERT INTO t (id, k) SELECT -i, 5001 + gpuds_count('t_k', 5001, 5100) FROM generate_series(1, 5) i;
SELECT id, k FROM t WHERE id BETWEEN -5 AND -1 AND k > 5000 ORDER BY id;
WITH new AS (INSERT INTO t (id, k) SELECT i, 6000 + i FROM generate_series(1, 3) i RETURNING k)
SELECT k, gpuds_contains('t_k', ARRAY[k, 5001]) FROM new ORDER BY k;
SELECT gpuds_contains('t_k', '{6001,6002,6003,6004}'::int[]);
ROLLBACK;

\set ECHO none
-- in functions: what they wrote is seen by the next statement of a volatile one
CREATE FUNCTION add_new(ks int[]) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	known bool[];
	added int := 0;
BEGIN
	FOR i IN 1..cardinality(ks) LOOP
		known := gpuds_contains('t_k', ks[i:i]);
		IF NOT known[1] THEN
			INSERT INTO t (id, k) VALUES (0, ks[i]);
			added := added + 1;
		END IF;
		PERFORM FROM gpuds_lookup('t_k', ks[i:i]) l JOIN t ON t.ctid = l.ctid WHERE t.k = ks[i];
		ASSERT FOUND;
		ASSERT gpuds_count('t_k', ks[i], ks[i]) = (SELECT count(*) FROM t WHERE k = ks[i]);
	END LOOP;
	RETURN added;
END $$;
\set ECHO all
SELECT add_new('{7001,7002,7001,8,7003,7002}');
\set ECHO none
CREATE FUNCTION count_in_loop(ks int[]) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
	n bigint := 0;
	l record;
BEGIN
	FOR l IN SELECT * FROM gpuds_lookup('t_k', ks) LOOP
		n := n + gpuds_count('t_k', ks[l.ordinality], ks[l.ordinality]);
	END LOOP;
	RETURN n;
END $$;
\set ECHO all
SELECT count_in_loop('{7001,8,8,NULL}');

-- parameters, plans, cursors
PREPARE p (bigint[], bigint) AS SELECT gpuds_contains('t_k', $1), gpuds_count('t_k', $2, $1[1]),
	(SELECT count(*) FROM gpuds_lookup('t_k', $1));
SET plan_cache_mode = force_generic_plan;
EXECUTE p ('{8,9,-1}', 3);
EXECUTE p ('{1000000000000}', NULL);
DROP INDEX t_k;
EXECUTE p ('{8,9,-1}', 3);
CREATE INDEX t_k ON t USING gpu_btree (k);
SELECT gpuds_contains('t_k', '{8,9,-1}'::bigint[]);
RESET plan_cache_mode;
BEGIN ISOLATION LEVEL REPEATABLE READ;
DECLARE c CURSOR FOR SELECT i, gpuds_count('t_k', 9000, i), gpuds_contains('t_k', ARRAY[i]) FROM generate_series(9001, 9003) i;
FETCH 1 FROM c;
INSERT INTO t (id, k) SELECT i, 9000 + i FROM generate_series(1, 3) i;
FETCH 1 FROM c;
SELECT gpuds_count('t_k', 9000, 9003);
CREATE INDEX t_id ON t USING gpu_btree (id);
SAVEPOINT a;
DROP TABLE t CASCADE;
ROLLBACK TO a;
FETCH 1 FROM c;
COMMIT;
SELECT l.ordinality, i FROM generate_series(1, 2) i, gpuds_lookup('chained_k', ARRAY[5, i * 3]) l ORDER BY 2, 1;

-- every row of a query may ask; SERIALIZABLE
SELECT count(*), sum(c) FROM (SELECT gpuds_count('t_k', k, k + 10) AS c FROM t WHERE id < 100) q;
SELECT sum((SELECT count(*) FROM t x WHERE x.k BETWEEN t.k AND t.k + 10)) FROM t WHERE id < 100 AND k IS NOT NULL;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT gpuds_contains('t_k', '{1}'::int[]);
SELECT gpuds_count('t_s', 1, 2) > 0;
SELECT locktype, relation::regclass FROM pg_locks WHERE mode = 'SIReadLock' AND pid = pg_backend_pid() ORDER BY 1, 2;
SELECT relation::regclass, mode FROM pg_locks WHERE relation::regclass::text IN ('t', 't_k', 't_s') AND mode <> 'SIReadLock' AND pid = pg_backend_pid() ORDER BY 1;
COMMIT;

-- temporary, unlogged and partitioned tables, materialized views
CREATE TEMP TABLE tmp (k int, v int);
INSERT INTO tmp SELECT i % 100, i FROM generate_series(1, 1000) i;
CREATE INDEX tmp_k ON tmp USING gpu_btree (k);
SELECT differs('tmp_k', 'k', '{1,1,99,100,NULL}', 'int', 'tmp');
CREATE UNLOGGED TABLE unlogged (k int);
INSERT INTO unlogged SELECT i % 100 FROM generate_series(1, 1000) i;
CREATE INDEX unlogged_k ON unlogged USING gpu_btree (k);
SELECT differs('unlogged_k', 'k', '{1,1,99,100,NULL}', 'int', 'unlogged');
CREATE TABLE pieces (k int, v int) PARTITION BY RANGE (k);
CREATE TABLE pieces_1 PARTITION OF pieces FOR VALUES FROM (0) TO (100);
CREATE INDEX pieces_k ON pieces USING gpu_btree (k);
INSERT INTO pieces SELECT i % 100 FROM generate_series(1, 1000) i;
SELECT gpuds_contains('pieces_k', '{1}'::int[]);
SELECT differs('pieces_1_k_idx', 'k', '{1,1,99,100,NULL}', 'int', 'pieces_1');
CREATE MATERIALIZED VIEW seen AS SELECT k FROM unlogged WITH NO DATA;
CREATE INDEX seen_k ON seen USING gpu_btree (k);
SELECT gpuds_count('seen_k', 1, 2);
REFRESH MATERIALIZED VIEW seen;
SELECT differs('seen_k', 'k', '{1,1,99,100,NULL}', 'int', 'seen');

-- what is refused
SELECT gpuds_contains('t_k', '{1,2}'::text[]);
SELECT * FROM gpuds_lookup('t_k', '{1,2}'::numeric[]);
SELECT gpuds_count('t_d', '2000-01-01', '2000-02-01');
SELECT gpuds_count('t_k', 1.5, 2);
SELECT gpuds_contains('t_ts', ARRAY[timestamptz '2000-01-01']);
SELECT gpuds_contains('t_ts', ARRAY[timestamptz '2000-01-01'::moment]);
SELECT gpuds_count('t_d', timestamptz '2000-01-01', NULL);
SELECT gpuds_contains('t_m', '{ok}'::other_mood[]);
SELECT gpuds_contains('t_m', '{1}'::oid[]);
SELECT gpuds_contains('t_k', '{}'::text[]);
SELECT gpuds_contains('t', '{1}'::int[]);
SELECT gpuds_contains(0, '{1}'::int[]);
CREATE INDEX t_btree ON t (k);
SELECT gpuds_count('t_btree', 1, 2);
SELECT * FROM gpuds_lookup('t_part', '{1}'::int[]);
BEGIN;
CREATE TABLE broken (id int, k int);
INSERT INTO broken VALUES (1, 1);
UPDATE broken SET k = 2;
CREATE INDEX broken_k ON broken USING gpu_btree (k);
SELECT gpuds_contains('broken_k', '{1,2}'::int[]);
ROLLBACK;
SELECT gpuds_index_evict('t_k') IS NOT NULL AS evicted;
SELECT agrees('t_k', 'k', 'int');

-- privileges: those that a query needs
CREATE ROLE regress_gpuds_caller;
GRANT USAGE ON SCHEMA test_batch_functions TO regress_gpuds_caller;
GRANT SELECT (id) ON t TO regress_gpuds_caller;
SET ROLE regress_gpuds_caller;
SELECT gpuds_contains('t_k', '{1}'::int[]);
SELECT gpuds_count('t_k', 1, 2);
SELECT * FROM gpuds_lookup('t_k', '{-1}'::int[]);
RESET ROLE;
GRANT SELECT (k) ON t TO regress_gpuds_caller;
SET ROLE regress_gpuds_caller;
SELECT gpuds_contains('t_k', '{-1}'::int[]), gpuds_count('t_k', -2, -1), gpuds_contains('t_k_s', '{-1}'::int[]), gpuds_contains('t_expr', '{-1}'::int[]);
SELECT gpuds_contains('t_s_k', '{-1000}'::smallint[]);
SELECT * FROM gpuds_lookup('t_k', '{-1}'::int[]);
SELECT ctid FROM t WHERE k = -1;
RESET ROLE;
GRANT SELECT (ctid) ON t TO regress_gpuds_caller;
SET ROLE regress_gpuds_caller;
SELECT * FROM gpuds_lookup('t_k', '{-1}'::int[]);
SELECT ctid FROM t WHERE k = -1;
RESET ROLE;
-- and the schema's, however the index is named
SELECT 't_k'::regclass::oid AS t_k \gset
REVOKE USAGE ON SCHEMA test_batch_functions FROM regress_gpuds_caller;
SET ROLE regress_gpuds_caller;
SELECT gpuds_count(:t_k, -2, -1);
RESET ROLE;
GRANT USAGE ON SCHEMA test_batch_functions TO regress_gpuds_caller;
-- of whole rows, and of no column at all
CREATE TABLE odd (a int, b int);
INSERT INTO odd VALUES (1, 2);
CREATE FUNCTION sum_of(odd) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1.a + $1.b';
CREATE INDEX odd_row ON odd USING gpu_btree (test_batch_functions.sum_of(odd));
CREATE INDEX odd_none ON odd USING gpu_btree ((5));
SET ROLE regress_gpuds_caller;
SELECT gpuds_contains('odd_none', '{5}'::int[]);
RESET ROLE;
GRANT SELECT (a) ON odd TO regress_gpuds_caller;
SET ROLE regress_gpuds_caller;
SELECT gpuds_contains('odd_none', '{5}'::int[]);
SELECT gpuds_contains('odd_row', '{3}'::int[]);
RESET ROLE;
GRANT SELECT (b) ON odd TO regress_gpuds_caller;
SET ROLE regress_gpuds_caller;
SELECT gpuds_contains('odd_row', '{3}'::int[]);
RESET ROLE;
-- row security
GRANT SELECT ON t TO regress_gpuds_caller;
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
SELECT gpuds_contains('t_k', '{-1}'::int[]);
SET ROLE regress_gpuds_caller;
SELECT gpuds_contains('t_k', '{-1}'::int[]);
SELECT gpuds_count('t_k', 1, 2);
SELECT * FROM gpuds_lookup('t_k', '{-1}'::int[]);
SET row_security = off;
SELECT gpuds_contains('t_k', '{-1}'::int[]);
RESET row_security;
RESET ROLE;
ALTER TABLE t DISABLE ROW LEVEL SECURITY;
SET ROLE regress_gpuds_caller;
SELECT * FROM gpuds_lookup('t_k', '{-1}'::int[]);
RESET ROLE;
DROP OWNED BY regress_gpuds_caller;
DROP ROLE regress_gpuds_caller;
