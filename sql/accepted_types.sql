-- Types of extensions that order as integers and uuids do.
\set test test_accepted
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude
SET client_min_messages = warning;

-- A type with the functions of another: as h3index, s2cell, snowflake and ulid are made.
CREATE PROCEDURE make_type(name text, base text, input text, output text, prefix text, cmp text, hash text,
	swapped bool DEFAULT false)
LANGUAGE plpgsql AS $$
DECLARE
	op text[];
	ops text[] := ARRAY['<', '<=', '=', '>=', '>'];
	names text[] := CASE WHEN swapped THEN ARRAY['gt', 'ge', 'eq', 'le', 'lt'] ELSE ARRAY['lt', 'le', 'eq', 'ge', 'gt'] END;
	commutators text[] := ARRAY['>', '>=', '=', '<=', '<'];
BEGIN
	EXECUTE format('CREATE TYPE %I', name);
	EXECUTE format('CREATE FUNCTION %I(cstring) RETURNS %I LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS %L', name || '_in', name, input);
	EXECUTE format('CREATE FUNCTION %I(%I) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS %L', name || '_out', name, output);
	EXECUTE format('CREATE TYPE %I (INPUT = %I, OUTPUT = %I, LIKE = %s)', name, name || '_in', name || '_out', base);
	EXECUTE format('CREATE CAST (%I AS %s) WITHOUT FUNCTION', name, base);
	EXECUTE format('CREATE CAST (%s AS %I) WITHOUT FUNCTION', base, name);
	EXECUTE format('CREATE FUNCTION %I(%I, %I) RETURNS bool LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS %L',
		name || '_6', name, name, prefix || 'ne');
	FOR i IN 1..5 LOOP
		EXECUTE format('CREATE FUNCTION %I(%I, %I) RETURNS bool LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS %L',
			name || '_' || i, name, name, prefix || names[i]);
		EXECUTE format('CREATE OPERATOR %s (FUNCTION = %I, LEFTARG = %I, RIGHTARG = %I, COMMUTATOR = %s%s)',
			ops[i], name || '_' || i, name, name, commutators[i],
			CASE i WHEN 3 THEN ', HASHES, MERGES, RESTRICT = eqsel, JOIN = eqjoinsel'
				WHEN 1 THEN ', RESTRICT = scalarltsel' WHEN 2 THEN ', RESTRICT = scalarlesel'
				WHEN 4 THEN ', RESTRICT = scalargesel' ELSE ', RESTRICT = scalargtsel' END);
	END LOOP;
	EXECUTE format('CREATE OPERATOR <> (FUNCTION = %I, LEFTARG = %I, RIGHTARG = %I, COMMUTATOR = <>, NEGATOR = =)',
		name || '_6', name, name);
	EXECUTE format('CREATE FUNCTION %I(%I, %I) RETURNS int LANGUAGE %s IMMUTABLE STRICT PARALLEL SAFE AS %L', name || '_cmp',
		name, name, CASE WHEN swapped THEN 'sql' ELSE 'internal' END,
		CASE WHEN swapped THEN format('SELECT %s($2::%s, $1::%s)', cmp, base, base) ELSE cmp END);
	EXECUTE format('CREATE OPERATOR CLASS %I DEFAULT FOR TYPE %I USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, '
		'OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 %I(%I, %I)', name || '_btree', name, name || '_cmp', name, name);
	EXECUTE format('CREATE FUNCTION %I(%I) RETURNS int LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS %L', name || '_hash', name, hash);
	EXECUTE format('CREATE FUNCTION %I(%I, bigint) RETURNS bigint LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS %L',
		name || '_hash2', name, hash || CASE WHEN hash LIKE '%\_%' THEN '_extended' ELSE 'extended' END);
	EXECUTE format('CREATE OPERATOR CLASS %I DEFAULT FOR TYPE %I USING hash AS OPERATOR 1 =, FUNCTION 1 %I(%I), '
		'FUNCTION 2 %I(%I, bigint)', name || '_hash', name, name || '_hash', name, name || '_hash2', name);
END $$;

CALL make_type('snowflake', 'bigint', 'int8in', 'int8out', 'int8', 'btint8cmp', 'hashint8');
CALL make_type('cell', 'pg_lsn', 'pg_lsn_in', 'pg_lsn_out', 'pg_lsn_', 'pg_lsn_cmp', 'pg_lsn_hash');
CALL make_type('ulid', 'uuid', 'uuid_in', 'uuid_out', 'uuid_', 'uuid_cmp', 'uuid_hash');
CALL make_type('small id', 'integer', 'int4in', 'int4out', 'int4', 'btint4cmp', 'hashint4');
CALL make_type('backward', 'bigint', 'int8in', 'int8out', 'int8', 'btint8cmp', 'hashint8', true);
CALL make_type('fraction', 'float8', 'float8in', 'float8out', 'float8', 'btfloat8cmp', 'hashfloat8');
CALL make_type('span', 'interval', 'interval_in', 'interval_out', 'interval_', 'interval_cmp', 'interval_hash');
CALL make_type('station', 'macaddr', 'macaddr_in', 'macaddr_out', 'macaddr_', 'macaddr_cmp', 'hashmacaddr');
CALL make_type('fussy', 'bigint', 'int8in', 'int8out', 'int8', 'btint8cmp', 'hashint8');
CREATE OR REPLACE FUNCTION fussy_cmp(a fussy, b fussy) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS
	$$BEGIN IF a < '0'::fussy THEN RAISE 'no such value'; END IF; RETURN btint8cmp(a::bigint, b::bigint); END$$;

-- Before: a hint.
CREATE TABLE t (id int, s snowflake, c cell, u ulid, m "small id", b backward);
CREATE INDEX ON t USING gpu_btree (c);
-- a gpu_hash index that was made before goes on
CREATE OPERATOR CLASS u_ops DEFAULT FOR TYPE ulid USING gpu_hash AS OPERATOR 1 =, FUNCTION 1 ulid_hash(ulid),
	FUNCTION 2 ulid_hash2(ulid, bigint);
INSERT INTO t SELECT i, (hashint8extended(i, 1))::snowflake, ('0/0'::pg_lsn + (i * 1844674407370::numeric * 5000))::cell,
	md5(i::text)::uuid::ulid, (hashint4(i))::"small id", i::bigint::backward FROM generate_series(1, 2000) i;
INSERT INTO t SELECT * FROM t WHERE id % 10 = 0;
INSERT INTO t VALUES (0);
INSERT INTO t VALUES (-1, '-9223372036854775808', '0/0', '00000000-0000-0000-0000-000000000000', '-2147483648', '0'),
	(-2, '9223372036854775807', 'FFFFFFFF/FFFFFFFF', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '2147483647', '1'), (-3, '-1', '0/1', NULL, '-1', '2'),
	(-4, '0', '80000000/0', NULL, '0', '3'), (-5, '1', '7FFFFFFF/FFFFFFFF', NULL, '1', '4');
CREATE INDEX t_u_old ON t USING gpu_hash (u);

SELECT gpuds_accept_type('snowflake'), gpuds_accept_type('cell'), gpuds_accept_type('ulid'), gpuds_accept_type('"small id"');
SELECT opcname, count(*) AS methods, bool_and(opcdefault AND amvalidate(c.oid)) AS valid
FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod
WHERE opcnamespace = 'test_accepted'::regnamespace AND amname LIKE 'gpu%' GROUP BY 1 ORDER BY 1;

-- What is refused
SELECT gpuds_accept_type('cell');
SELECT gpuds_accept_type('bigint');
SELECT gpuds_accept_type('backward');
SELECT gpuds_accept_type('fraction');
SELECT gpuds_accept_type('text');
SELECT gpuds_accept_type('cell[]');
SELECT gpuds_accept_type('t');
-- of the length of a uuid, of no key's length, a domain; a comparison that raises errors
SELECT gpuds_accept_type('span');
SELECT gpuds_accept_type('station');
CREATE DOMAIN part AS fraction;
SELECT gpuds_accept_type('part');
SELECT gpuds_accept_type('fussy');
SELECT gpuds_accept_type(0);
CREATE ROLE test_accepted_user;
SET ROLE test_accepted_user;
SELECT gpuds_accept_type('pg_catalog.text');
RESET ROLE;
DROP ROLE test_accepted_user;

-- Answers are those of a sequential scan
CREATE DOMAIN place AS cell CHECK (VALUE <> 'FFFFFFFF/0'::cell);
ALTER TABLE t ADD d place;
UPDATE t SET d = c;
CREATE INDEX ON t USING gpu_btree (s);
CREATE INDEX ON t USING gpu_btree (c DESC NULLS LAST, m);
CREATE INDEX ON t USING gpu_btree (u);
CREATE INDEX ON t USING gpu_skiplist (m, s);
CREATE INDEX ON t USING gpu_btree (d) INCLUDE (id, s);
CREATE INDEX ON t USING gpu_hash (s, c);
VACUUM ANALYZE t;

CREATE TABLE queries (query text);
INSERT INTO queries SELECT q FROM unnest(ARRAY[
	$$SELECT id FROM t WHERE c > '80000000/0'$$,
	$$SELECT id FROM t WHERE c BETWEEN '7FFFFFFF/FFFFFFFF' AND '90000000/0'$$,
	$$SELECT id FROM t WHERE s < '-1'$$,
	$$SELECT id FROM t WHERE s = ANY ((SELECT array_agg(s) FROM t WHERE id % 3 = 0)::snowflake[])$$,
	$$SELECT id FROM t WHERE u >= '80000000-0000-0000-0000-000000000000'$$,
	$$SELECT id FROM t WHERE u = ANY ((SELECT array_agg(u) FROM t WHERE id < 100)::ulid[])$$,
	$$SELECT id FROM t WHERE m < '0' AND s > '0'$$,
	$$SELECT id FROM t WHERE d > '80000000/0' AND id % 2 = 0$$,
	$$SELECT count(*), count(s) FROM t WHERE d > '10000000/0'$$,
	$$SELECT d, count(*), sum(id) FROM t GROUP BY d$$,
	$$SELECT c, count(*) FROM t WHERE c > '80000000/0' GROUP BY c$$,
	$$SELECT count(DISTINCT c) FROM t$$,
	$$SELECT DISTINCT m FROM t$$,
	$$SELECT (array_agg(c ORDER BY c))[1:5], (array_agg(s ORDER BY s))[1:5] FROM t$$,
	$$SELECT c FROM (SELECT c FROM t ORDER BY c LIMIT 50) x$$,
	$$SELECT a.id, b.id FROM t a JOIN t b USING (c) WHERE a.id < 500$$,
	$$SELECT a.id FROM t a WHERE EXISTS (SELECT 1 FROM t b WHERE b.s = a.s AND b.id > a.id)$$,
	$$SELECT id FROM t WHERE s = '1' AND c = '7FFFFFFF/FFFFFFFF'$$,
	$$SELECT sum(c::pg_lsn - '0/0') FROM t WHERE c > '70000000/0'$$,
	$$SELECT sum(s::bigint) FROM t WHERE s > '0'$$,
	$$SELECT count(*) FROM t WHERE s::bigint > 5 AND d > '0/5'$$,
	$$SELECT id FROM t WHERE c IS NULL OR c = '0/0'$$]) q;

CREATE FUNCTION answer(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r text;
BEGIN
	EXECUTE format('SELECT md5(coalesce(string_agg(q::text, '';'' ORDER BY q::text), '''')) FROM (%s) q', query) INTO r;
	RETURN r;
END $$;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SET enable_bitmapscan = off;
CREATE TABLE answers AS SELECT query, answer(query) AS a FROM queries;
SET enable_seqscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
RESET enable_bitmapscan;
SELECT query FROM answers WHERE answer(query) <> a;
RESET enable_indexscan;
RESET enable_indexonlyscan;
SELECT query FROM answers WHERE answer(query) <> a;
SET gpuds.enable_aggregate = on;
SET gpuds.enable_scan = on;
SET gpuds.enable_join = on;
SELECT query FROM answers WHERE answer(query) <> a;

-- They are answered by the indexes, in their order, and without the table
EXPLAIN (COSTS OFF) SELECT c FROM t ORDER BY c DESC NULLS LAST LIMIT 3;
SELECT c FROM t ORDER BY c DESC NULLS LAST LIMIT 3;
EXPLAIN (COSTS OFF) SELECT d, count(*) FROM t GROUP BY d;
SELECT gpuds_contains('t_s_idx', ARRAY['1', '5', NULL, '-9223372036854775808']::snowflake[]);
SELECT gpuds_count('t_d_id_s_idx', '80000000/0'::cell, NULL::cell), (SELECT count(*) FROM t WHERE d >= '80000000/0');
SELECT gpuds_index_check(i, true) FROM unnest('{t_s_idx,t_c_m_idx,t_u_idx,t_m_s_idx,t_d_id_s_idx,t_s_c_idx,t_u_old}'::regclass[]) i;

-- Exclusion
CREATE TABLE once (c cell, u ulid, EXCLUDE USING gpu_btree (c WITH =), EXCLUDE USING gpu_hash (u WITH =));
INSERT INTO once SELECT DISTINCT ON (c) c FROM t;
INSERT INTO once VALUES ('7FFFFFFF/FFFFFFFF');
INSERT INTO once VALUES (NULL, 'ffffffff-ffff-ffff-ffff-ffffffffffff'), (NULL, 'ffffffff-ffff-ffff-ffff-ffffffffffff');

-- An index keeps its operator class
DROP OPERATOR CLASS cell_ops USING gpu_btree;
-- one that says it is like a type of another length
CREATE OPERATOR FAMILY wrong USING gpu_btree;
CREATE OPERATOR CLASS wrong FOR TYPE fraction USING gpu_btree FAMILY wrong AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =,
	OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 (fraction, fraction) btint4cmp(int, int);
SELECT amvalidate(oid) FROM pg_opclass WHERE opcname = 'wrong';

-- One that is dropped is made again, beside the other
DROP OPERATOR CLASS cell_ops USING gpu_btree CASCADE;
SELECT gpuds_accept_type('cell');
SELECT gpuds_accept_type('cell');

-- An operator of the type's family may compare it with its like otherwise than by their bits
CREATE FUNCTION later(m "small id", days int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN m::int - 1000 > days; END';
CREATE OPERATOR > (FUNCTION = later, LEFTARG = "small id", RIGHTARG = int);
ALTER OPERATOR FAMILY "small id_btree" USING btree ADD OPERATOR 5 > ("small id", int);
CREATE TABLE days AS SELECT i AS id, i::"small id" AS m FROM generate_series(1, 2000) i;
CREATE INDEX ON days USING gpu_btree (id, m);
VACUUM ANALYZE days;
SELECT count(*) FROM days WHERE id > 0 AND m > 500;
CREATE FUNCTION same("small id", snowflake) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1::int - 1000 = $2::bigint; END';
CREATE FUNCTION same(snowflake, "small id") RETURNS bool LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN same($2, $1); END';
CREATE OPERATOR = (FUNCTION = same, LEFTARG = "small id", RIGHTARG = snowflake, COMMUTATOR = =, MERGES);
CREATE OPERATOR = (FUNCTION = same, LEFTARG = snowflake, RIGHTARG = "small id", COMMUTATOR = =, MERGES);
ALTER OPERATOR FAMILY "small id_btree" USING btree ADD OPERATOR 3 = ("small id", snowflake), OPERATOR 3 = (snowflake, "small id");
ALTER OPERATOR FAMILY snowflake_btree USING btree ADD OPERATOR 3 = ("small id", snowflake), OPERATOR 3 = (snowflake, "small id");
CREATE TABLE flakes AS SELECT i::bigint::snowflake AS s FROM generate_series(951, 1050) i;
CREATE INDEX ON days USING gpu_btree (m);
CREATE INDEX ON flakes USING gpu_btree (s);
VACUUM ANALYZE flakes;
SELECT count(*) FROM days JOIN flakes ON m = s;
SELECT gpuds_contains('days_m_idx', ARRAY['1000']::snowflake[]);

-- The operator class of a type that it can be cast to orders otherwise
CREATE CAST (cell AS bigint) WITHOUT FUNCTION AS IMPLICIT;
CREATE INDEX ON t USING gpu_btree (c int8_ops) INCLUDE (id);
SELECT count(*), sum(id) FROM t WHERE c::bigint < 0 AND c > '90000000/0';
SET enable_seqscan = on;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SET enable_bitmapscan = off;
SELECT count(*), sum(id) FROM t WHERE c::bigint < 0 AND c > '90000000/0';

-- A type takes its operator classes with it
DROP TYPE ulid CASCADE;
SELECT count(*) FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod WHERE amname LIKE 'gpu%' AND opcname IN ('ulid_ops', 'u_ops');

DROP SCHEMA test_accepted CASCADE;
