-- gpu_hash: equality of any type, by codes that may be hashes.
\set test test_hash
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

-- A class with three hashes for all values.
CREATE FUNCTION few_hashes(text, bigint) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS
	'SELECT (length($1) % 3)::bigint << 62';
CREATE OPERATOR CLASS few_ops FOR TYPE text USING gpu_hash AS OPERATOR 1 =, FUNCTION 2 few_hashes(text, bigint);
SELECT amvalidate(oid) FROM pg_opclass WHERE opcname = 'few_ops';
SELECT opcname FROM pg_opclass c JOIN pg_am a ON a.oid = c.opcmethod WHERE amname = 'gpu_hash' AND NOT amvalidate(c.oid);

-- Each default class finds what is equal, and nothing else.
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
ALTER TYPE mood ADD VALUE 'so so' BEFORE 'ok';
CREATE TABLE v (i int, v_bool bool, v_bpchar char(12), v_bytea bytea, v_char "char", v_date date, v_mood mood, v_float4 float4,
	v_float8 float8, v_inet inet, v_cidr cidr, v_int2 int2, v_int4 int4, v_int8 int8, v_interval interval, v_jsonb jsonb,
	v_macaddr macaddr, v_macaddr8 macaddr8, v_money money, v_range int4range, v_multirange int4multirange, v_name name,
	v_numeric numeric, v_oid oid, v_pg_lsn pg_lsn, v_array int[], v_texts text[], v_text text, v_varchar varchar(20),
	v_time time, v_timetz timetz, v_timestamp timestamp, v_timestamptz timestamptz, v_uuid uuid, v_xid8 xid8)
	WITH (autovacuum_enabled = off);
INSERT INTO v SELECT i, n % 2 = 0, 'char ' || n, decode(md5(n::text), 'hex'), chr(65 + n % 26)::"char", date '2000-01-01' + n,
	(enum_range(NULL::mood))[n % 4 + 1], n / 4.0, CASE n WHEN 0 THEN '-0' WHEN 1 THEN 'NaN' ELSE n / 8.0 END, ('10.0.' || n || '.1/' || 24 + n % 8)::inet,
	('10.1.' || n || '.0/24')::cidr, n, n, n * 10000000000, n * interval '7 h', jsonb_build_object('n', n, 'even', n % 2 = 0),
	('08:00:2b:01:02:' || lpad(to_hex(n), 2, '0'))::macaddr, ('08:00:2b:01:02:03:04:' || lpad(to_hex(n), 2, '0'))::macaddr8,
	n::money, int4range(n, n + 5), int4multirange(int4range(n, n + 1), int4range(n + 3, n + 5)), 'name ' || n, n / 7.0, n,
	('0/' || to_hex(n))::pg_lsn, ARRAY[n, n + 1], ARRAY['a' || n, NULL], repeat('text ', n % 5) || n, 'v' || n,
	time '00:00' + n * interval '1 s', timetz '00:00+01' + n * interval '1 s', timestamp '2000-01-01' + n * interval '1 h',
	timestamptz '2000-01-01 UTC' + n * interval '1 h', md5(n::text)::uuid, n::text::xid8
FROM generate_series(1, 800) i, LATERAL (SELECT i % 200 AS n) x;
-- Equal values that look different.
INSERT INTO v (i, v_float8, v_interval, v_numeric, v_bpchar, v_jsonb) VALUES (801, 0, '7:00', 1.0, 'char 1      ', '{"even": false,   "n": 1.00}'),
	(802, 'NaN', '1 day -17 h', 1.000, 'char 1', '{"n": 1, "even": false}');
INSERT INTO v DEFAULT VALUES;
\set ECHO none
CREATE FUNCTION try_types() RETURNS TABLE (col name, one text, many text, nulls text, plan text) LANGUAGE plpgsql AS $$
BEGIN
	FOR col IN SELECT attname FROM pg_attribute WHERE attrelid = 'v'::regclass AND attnum > 1 AND NOT attisdropped ORDER BY attnum LOOP
		EXECUTE format('CREATE INDEX v_i ON v USING gpu_hash (%I)', col);
		one := same(format('SELECT i FROM v WHERE %1$I = (SELECT %1$I FROM v WHERE i = 57)', col), 'v_i');
		IF col IN ('v_array', 'v_texts') THEN
			many := 'an array of arrays is one array';
		ELSE
			many := same(format('SELECT i FROM v WHERE %1$I = ANY (ARRAY(SELECT %1$I FROM v WHERE i %% 7 = 1 OR i > 798))', col), 'v_i');
		END IF;
		nulls := same(format('SELECT i FROM v WHERE %I IS NULL', col), 'v_i');
		PERFORM gpuds_index_check('v_i', true);
		SET LOCAL enable_seqscan = off;
		plan := CASE WHEN plan_of(format('SELECT %1$I FROM v WHERE %1$I = (SELECT %1$I FROM v WHERE i = 57)', col)) ~ 'Index Only' THEN 'index-only' ELSE 'heap' END;
		SET LOCAL enable_seqscan = on;
		RETURN NEXT;
		DROP INDEX v_i;
	END LOOP;
END $$;
\set ECHO all
VACUUM ANALYZE v;
SELECT * FROM try_types();

-- Three hashes for everything: every way to an answer looks at the values.
CREATE TABLE t (id int, s text, k int, note text) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, CASE WHEN i % 97 > 0 THEN repeat('x', i % 5) || i % 700 END, i % 50, 'note ' || i FROM generate_series(1, 3000) i;
CREATE INDEX t_few ON t USING gpu_hash (s few_ops);
CREATE INDEX t_few_k ON t USING gpu_hash (k, s few_ops);
CREATE INDEX t_lower ON t USING gpu_hash (lower(s) few_ops) WHERE k > 10;
VACUUM ANALYZE t;
SELECT same('SELECT * FROM t WHERE s = ''xx17''', 't_few');
SELECT same('SELECT * FROM t WHERE s = ''no such''', 't_few');
SELECT same('SELECT * FROM t WHERE s = ANY (ARRAY(SELECT repeat(''x'', i % 5) || i FROM generate_series(1, 900, 3) i))', 't_few');
SELECT same('SELECT * FROM t WHERE s = ANY (ARRAY[''xx17'', ''xx17'', NULL, ''xxx18''])', 't_few');
SELECT same('SELECT * FROM t WHERE s = ANY (''{}'')', 't_few');
SELECT same('SELECT * FROM t WHERE s IS NULL', 't_few');
SELECT same('SELECT * FROM t WHERE k = 17 AND s = ANY (ARRAY(SELECT repeat(''x'', i % 5) || i FROM generate_series(1, 900, 3) i))', 't_few_k');
SELECT same('SELECT * FROM t WHERE k = ANY (''{17,18,19}'') AND s = ''xx17''', 't_few_k');
SELECT same('SELECT * FROM t WHERE k > 10 AND lower(s) = ANY (ARRAY(SELECT repeat(''x'', i % 5) || i FROM generate_series(1, 900, 3) i))', 't_lower');

-- The array may be another one at each rescan, and is not searched from end to end for each row.
SET enable_seqscan = off; SET enable_sort = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off; SET enable_memoize = off;
SELECT n, (SELECT count(*) FROM t WHERE s = ANY (ARRAY(SELECT repeat('x', i % 5) || i FROM generate_series(n, 600, 7 * n) i))) AS scan FROM generate_series(1, 4) n;
SET gpuds.enable_scan = on;
SELECT n, (SELECT count(*) FROM t WHERE s = ANY (ARRAY(SELECT repeat('x', i % 5) || i FROM generate_series(n, 600, 7 * n) i))) AS scan FROM generate_series(1, 4) n;
EXPLAIN (COSTS OFF) SELECT count(*) FROM t WHERE s = ANY (ARRAY(SELECT repeat('x', i % 5) || i FROM generate_series(1, 600, 7) i));
PREPARE many AS SELECT count(*), sum(id) FROM t WHERE s = ANY ($1);
SET plan_cache_mode = force_generic_plan;
EXECUTE many ('{xx17,xxx18}');
EXECUTE many ('{xx17,xxx18,xx17,no}');
EXECUTE many (NULL);
RESET plan_cache_mode;
-- in parallel
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = 2;
EXPLAIN (COSTS OFF) SELECT count(*), sum(id) FROM t WHERE s = ANY (ARRAY(SELECT repeat('x', i % 5) || i FROM generate_series(1, 600, 7) i));
SELECT count(*), sum(id) FROM t WHERE s = ANY (ARRAY(SELECT repeat('x', i % 5) || i FROM generate_series(1, 600, 7) i));
RESET parallel_setup_cost; RESET parallel_tuple_cost; RESET min_parallel_table_scan_size; SET max_parallel_workers_per_gather = 0;
RESET enable_seqscan; RESET enable_sort; RESET enable_hashjoin; RESET enable_mergejoin; RESET enable_material; RESET enable_memoize;
SET gpuds.enable_scan = off;

-- Joins look at each pair.
CREATE TABLE o (id int, s text, k int);
INSERT INTO o SELECT i, repeat('x', i % 5) || i * 3 % 900, i % 60 FROM generate_series(1, 400) i;
INSERT INTO o VALUES (-1, NULL, 1);
ANALYZE o;
\set ECHO none
CREATE FUNCTION joined(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	right_answer text := right_digest_of(query, false);
	answer text;
	plan text;
BEGIN
	SET LOCAL gpuds.enable_join = on;
	SET LOCAL enable_hashjoin = off;
	SET LOCAL enable_mergejoin = off;
	SET LOCAL enable_nestloop = off;
	plan := plan_of(query);
	answer := digest_of(query, false);
	SET LOCAL gpuds.enable_join = off;
	SET LOCAL enable_hashjoin = on;
	SET LOCAL enable_mergejoin = on;
	SET LOCAL enable_nestloop = on;
	IF answer <> right_answer THEN
		RETURN answer || ', right: ' || right_answer || E'\n' || plan;
	END IF;
	RETURN split_part(answer, ' rows', 1) || ' rows' || coalesce(', ' || substring(plan FROM 'Join Type: (\w+)') || ' by ' || substring(plan FROM 'Index Name: (\w+)'), '');
END $$;
\set ECHO all
SELECT joined('SELECT o.id, t.id FROM o JOIN t ON t.s = o.s');
SELECT joined('SELECT o.id, t.id FROM o LEFT JOIN t ON t.s = o.s AND t.note <> ''note 7''');
SELECT joined('SELECT o.id, t.id FROM o JOIN t ON t.s = o.s AND t.k = o.k');
SELECT joined('SELECT o.id FROM o WHERE EXISTS (SELECT FROM t WHERE t.s = o.s)');
SELECT joined('SELECT o.id FROM o WHERE NOT EXISTS (SELECT FROM t WHERE t.s = o.s)');
SELECT joined('SELECT t.id FROM t WHERE t.s IN (SELECT s FROM o)');
SELECT joined('SELECT o.id, t.id FROM o JOIN t ON t.s = o.s COLLATE "C"');
BEGIN;
SET LOCAL gpuds.enable_join = on; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SET LOCAL enable_nestloop = off;
-- (PostgreSQL 15 has the filter the other way round than later ones)
SELECT replace(plan_of('UPDATE t SET note = ''joined'' FROM o WHERE t.s = o.s AND o.k < 20'), '(o.s = t.s)', '(t.s = o.s)') AS plan;
UPDATE t SET note = 'joined' FROM o WHERE t.s = o.s AND o.k < 20;
SELECT count(*), count(*) FILTER (WHERE s NOT IN (SELECT s FROM o WHERE k < 20)) FROM t WHERE note = 'joined';
ROLLBACK;

-- Changes of the table.
DELETE FROM t WHERE id % 3 = 0;
UPDATE t SET s = 'xx17' WHERE id % 50 = 1;
INSERT INTO t SELECT 10000 + i, 'xx' || i, i, 'new' FROM generate_series(1, 500) i;
SELECT same('SELECT * FROM t WHERE s = ''xx17''', 't_few');
VACUUM t;
SELECT same('SELECT * FROM t WHERE s = ANY (ARRAY(SELECT ''xx'' || i FROM generate_series(1, 900) i))', 't_few');
SELECT gpuds_index_check('t_few', true), gpuds_index_check('t_few_k', true), gpuds_index_check('t_lower', true);
-- a cursor, and rows that the cursor's snapshot sees although they have gone
BEGIN;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
DECLARE c SCROLL CURSOR FOR SELECT id FROM t WHERE s = ANY ('{xx17,xx18}') AND id > 10000;
FETCH 1 FROM c;
DELETE FROM t WHERE s IN ('xx17', 'xx18');
FETCH 2 FROM c;
FETCH BACKWARD 2 FROM c;
ROLLBACK;

-- Exclusion constraints, where equal is what the constraint says.
CREATE TABLE x (s text, EXCLUDE USING gpu_hash (s WITH =));
INSERT INTO x VALUES ('a'), ('b'), (NULL), (NULL);
INSERT INTO x VALUES ('a');
CREATE TABLE y (s text, EXCLUDE USING gpu_hash (s few_ops WITH =));
INSERT INTO y SELECT i::text FROM generate_series(1, 200) i;
INSERT INTO y VALUES ('17');
INSERT INTO y VALUES ('17') ON CONFLICT DO NOTHING;

-- Collations that call different strings equal.
CREATE COLLATION no_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE n (i int, s text COLLATE no_case);
INSERT INTO n SELECT i, CASE i % 3 WHEN 0 THEN 'Abc' WHEN 1 THEN 'aBC' ELSE 'abcd' END || i % 20 FROM generate_series(1, 300) i;
CREATE INDEX n_s ON n USING gpu_hash (s);
ANALYZE n;
SELECT same('SELECT * FROM n WHERE s = ''ABC5''', 'n_s');
SELECT same('SELECT * FROM n WHERE s = ANY (''{ABC5,abc6,ABCD7}'')', 'n_s');
SELECT joined('SELECT a.i, b.i FROM n a JOIN n b ON a.s = b.s');
SELECT joined('SELECT a.i, b.i FROM n a JOIN n b ON a.s = b.s COLLATE "C"');

-- Wide keys: what does not fit as it is becomes a hash.
CREATE TABLE w (a uuid, b uuid, c text, d text, e text, f bigint, g bigint, h text);
INSERT INTO w SELECT md5((i % 40)::text)::uuid, md5((i % 41)::text)::uuid, 'c' || i % 3, 'd' || i % 5, 'e' || i % 7, i % 11, i % 13, 'h' || i FROM generate_series(1, 1000) i;
CREATE INDEX w_ab ON w USING gpu_hash (a, b);
CREATE INDEX w_c ON w USING gpu_hash (c) INCLUDE (f);
ANALYZE w;
SELECT same('SELECT * FROM w WHERE a = md5(''7'')::uuid AND b = ANY (ARRAY(SELECT md5(i::text)::uuid FROM generate_series(1, 30) i))', 'w_ab');
SELECT same('SELECT * FROM w WHERE a = md5(''7'')::uuid', 'w_ab');
CREATE INDEX w_all ON w USING gpu_hash (a, b, c, d, e, f, g, h);
SELECT same('SELECT * FROM w WHERE (a, b, c, d, e, f, g, h) = (md5(''7'')::uuid, md5(''6'')::uuid, ''c2'', ''d2'', ''e5'', 3, 8, ''h47'')', 'w_all');
SELECT gpuds_index_check('w_ab', true), gpuds_index_check('w_all', true), gpuds_index_check('w_c', true);

-- Many rows of one key.
CREATE TABLE d (s text);
INSERT INTO d SELECT CASE WHEN i % 3 = 0 THEN 'often' ELSE 'rare ' || i END FROM generate_series(1, 30000) i;
CREATE INDEX d_s ON d USING gpu_hash (s);
ANALYZE d;
SELECT same('SELECT * FROM d WHERE s = ANY (''{often,rare 4,rare 5}'')', 'd_s');
DELETE FROM d WHERE s = 'often';
VACUUM d;
SELECT same('SELECT * FROM d WHERE s = ANY (''{often,rare 4,rare 5}'')', 'd_s');
SELECT gpuds_index_check('d_s', true);

-- What it cannot do.
-- (PostgreSQL 19 says where)
\set VERBOSITY sqlstate
CREATE INDEX ON t USING gpu_hash (s DESC);
CREATE INDEX ON t USING gpu_hash (note NULLS FIRST);
\set VERBOSITY default
CREATE TABLE nohash (p point, x xml);
CREATE INDEX ON nohash USING gpu_hash (p);
CREATE INDEX w_too_wide ON w USING gpu_hash (a) INCLUDE (b, f, b, b, b, b, b);
CREATE OPERATOR CLASS none_ops FOR TYPE text USING gpu_hash AS OPERATOR 1 =, FUNCTION 1 hashtext(text);
CREATE INDEX ON t USING gpu_hash (s none_ops);
SELECT amvalidate(oid) FROM pg_opclass WHERE opcname = 'none_ops';
CREATE OPERATOR CLASS wrong_ops FOR TYPE text USING gpu_hash AS OPERATOR 1 =, FUNCTION 1 hashtextextended(text, bigint);
SELECT amvalidate(oid) FROM pg_opclass WHERE opcname = 'wrong_ops';
CREATE OPERATOR CLASS less_ops FOR TYPE text USING gpu_hash AS OPERATOR 2 <, FUNCTION 1 hashtext(text);
CLUSTER t USING t_few;
SELECT gpuds_count('t_few', 'a'::text, 'b'::text);
SELECT gpuds_contains('t_few', ARRAY[1, 2]);

\set ECHO none
-- Functions that are given keys.
CREATE FUNCTION functions_agree(index regclass, col name, keys anyarray) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	found boolean[] := gpuds_contains(index, keys);
	tab regclass := (SELECT indrelid FROM pg_index WHERE indexrelid = index);
	right_found boolean[];
	rows bigint;
	right_rows bigint;
BEGIN
	SET LOCAL enable_indexscan = off; SET LOCAL enable_bitmapscan = off;
	EXECUTE format('SELECT array_agg(CASE WHEN u.key IS NOT NULL THEN EXISTS (SELECT FROM %1$s x WHERE x.%2$I = u.key) END ORDER BY u.n) FROM unnest($1) WITH ORDINALITY u (key, n)', tab, col)
		USING keys INTO right_found;
	EXECUTE format('SELECT count(*) FROM unnest($1) WITH ORDINALITY u (key, n) JOIN %1$s x ON x.%2$I = u.key', tab, col)
		USING keys INTO right_rows;
	SELECT count(*) INTO rows FROM gpuds_lookup(index, keys);
	IF found IS DISTINCT FROM coalesce(right_found, '{}') OR rows <> right_rows THEN
		RETURN format('%s, right: %s; %s rows, right: %s', found, right_found, rows, right_rows);
	END IF;
	EXECUTE format('SELECT count(*) FROM gpuds_lookup($1, $2) l JOIN %1$s x ON x.ctid = l.ctid WHERE x.%2$I = ($2)[l.ordinality]', tab, col)
		USING index, keys INTO right_rows;
	RETURN format('%s keys found, %s rows, %s of them right', cardinality(array_positions(found, true)), rows, right_rows);
END $$;
\set ECHO all
SELECT functions_agree('t_few', 's', ARRAY['xx17', 'no', NULL, 'xx17', 'xxx18', '']);
SELECT functions_agree('t_few', 's', ARRAY(SELECT 'xx' || i FROM generate_series(1, 900) i));
SELECT functions_agree('t_few', 's', '{}'::text[]);
SELECT functions_agree('t_few', 's', ARRAY['xx17', 'no']::varchar[]);
SELECT functions_agree('t_few', 's', ARRAY['xx17', 'no']::name[]);
DROP INDEX t_few;
CREATE INDEX t_text ON t USING gpu_hash (s);
SELECT functions_agree('t_text', 's', ARRAY['xx17', 'no']::name[]);
SELECT functions_agree('t_text', 's', ARRAY(SELECT 'xx' || i FROM generate_series(1, 900) i));
SELECT same('SELECT * FROM t WHERE s = ANY (ARRAY(SELECT ''xx'' || i FROM generate_series(1, 900) i))', 't_text');
SELECT functions_agree('n_s', 's', ARRAY['ABC5', 'abc5', 'AbCd7']);
SELECT functions_agree('w_ab', 'a', ARRAY[md5('7'), md5('no')]::uuid[]);
CREATE INDEX v_n ON v USING gpu_hash (v_numeric);
SELECT functions_agree('v_n', 'v_numeric', ARRAY[1, 1.0, 1.00, 7]);
CREATE INDEX v_k ON v USING gpu_hash (v_int8);
SELECT functions_agree('v_k', 'v_int8', ARRAY[10000000000, 5, 20000000000]);

CREATE DOMAIN feeling AS mood;
CREATE TABLE f (d feeling, r numrange, b bit(3)[]);
INSERT INTO f SELECT 'so so', numrange(i, i + 1) FROM generate_series(1, 20) i;
CREATE INDEX f_d ON f USING gpu_hash (d);
CREATE INDEX f_r ON f USING gpu_hash (r);
SELECT gpuds_contains('f_d', ARRAY['so so', 'ok']::feeling[]), gpuds_contains('f_d', ARRAY['so so', 'ok']::mood[]);
SELECT gpuds_contains('f_r', ARRAY[numrange(3, 4), 'empty']);
SELECT gpuds_contains('f_r', ARRAY['empty'::int4range]);
CREATE INDEX ON f USING gpu_hash (b);

-- Other columns of an index are not evaluated.
CREATE FUNCTION secret(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END';
CREATE INDEX t_secret ON t USING gpu_hash (s, secret(k));
REVOKE EXECUTE ON FUNCTION secret FROM public;
CREATE ROLE test_hash_reader;
GRANT USAGE ON SCHEMA test_hash TO test_hash_reader;
GRANT SELECT ON t TO test_hash_reader;
DROP INDEX t_text, t_few_k, t_lower;
SET ROLE test_hash_reader;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM t WHERE s = ANY ('{xx17,xx18}');
SELECT count(*) FROM t WHERE s = ANY ('{xx17,xx18}');
SET gpuds.enable_scan = on;
SELECT count(*) FROM t WHERE s = ANY ('{xx17,xx18}');
RESET gpuds.enable_scan; RESET enable_seqscan;
RESET ROLE;

-- An equality that says NULL says no.
CREATE FUNCTION odd_equal(text, text) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT CASE WHEN $1 <> ''xx18'' THEN $1 = $2 END';
CREATE OPERATOR =%= (FUNCTION = odd_equal, LEFTARG = text, RIGHTARG = text, COMMUTATOR = =%=);
CREATE OPERATOR CLASS odd_ops FOR TYPE text USING gpu_hash AS OPERATOR 1 =%=, FUNCTION 2 hashtextextended(text, bigint);
CREATE INDEX t_odd ON t USING gpu_hash (s odd_ops);
SET gpuds.enable_scan = off;
SELECT same('SELECT * FROM t WHERE s =%= ANY (''{xx17,xx18,xx19}'')', 't_odd');

SET client_min_messages = warning;
DROP SCHEMA test_hash CASCADE;
DROP ROLE test_hash_reader;
