-- What a role learns that has no privileges, or too few: the same whatever is in the table.
\set test test_unprivileged
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

SET client_min_messages = warning;
DROP ROLE IF EXISTS regress_gpuds_curious;
DROP ROLE IF EXISTS regress_gpuds_keeper;
RESET client_min_messages;
CREATE ROLE regress_gpuds_keeper;
CREATE ROLE regress_gpuds_curious;
CREATE SCHEMA kept AUTHORIZATION regress_gpuds_keeper;
GRANT USAGE ON SCHEMA test_unprivileged TO regress_gpuds_keeper, regress_gpuds_curious;

SET ROLE regress_gpuds_keeper;
CREATE TABLE kept.t (tenant int, k int, at timestamp, note int DEFAULT 1) WITH (autovacuum_enabled = off);
CREATE FUNCTION kept.code(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1 * 7919 % 10007; END';
CREATE FUNCTION kept.inner_code(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1 * 7919 % 10007; END';
CREATE FUNCTION kept.outer_code(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT kept.inner_code($1)';
CREATE INDEX t_k ON kept.t USING gpu_btree (k) INCLUDE (note);
CREATE INDEX t_tenant_k ON kept.t USING gpu_btree (tenant, k);
CREATE INDEX t_at_tenant ON kept.t USING gpu_btree (at, tenant);
CREATE INDEX t_code ON kept.t USING gpu_btree (kept.code(k));
CREATE INDEX t_outer ON kept.t USING gpu_btree (kept.outer_code(k));
CREATE INDEX t_part ON kept.t USING gpu_btree (k) WHERE note > 0;
RESET ROLE;

\set ECHO none
-- The statements whose answers are looked at: each function of the extension for an index, or for its table if it takes
-- names of columns, the views, and queries.  Devices and memtables are for everybody: what they show are sums over all
-- indexes.
CREATE FUNCTION argument(type oid, index oid) RETURNS text LANGUAGE sql AS $$
	SELECT CASE type::regtype::text WHEN 'regclass' THEN index || '::regclass' WHEN 'oid' THEN index::text WHEN 'boolean' THEN 'true'
		WHEN 'anyarray' THEN '''{1,2,3000}''::int[]' WHEN 'anycompatible' THEN '1' WHEN 'name[]' THEN '''{k}'''
		WHEN 'name' THEN '''gpu_btree''' WHEN 'anyelement' THEN '1' WHEN 'integer' THEN '2' WHEN 'double precision' THEN '0.5' END
$$;
CREATE FUNCTION relation_for(types oidvector, index oid) RETURNS oid LANGUAGE sql AS $$
	SELECT CASE WHEN 'name[]'::regtype = ANY (types) THEN (SELECT indrelid FROM pg_index WHERE indexrelid = index) ELSE index END
$$;
\set ECHO all
CREATE VIEW functions AS
	SELECT p.oid, p.proname, p.proargtypes FROM pg_proc p
		JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
		JOIN pg_extension e ON e.oid = d.refobjid AND d.refclassid = 'pg_extension'::regclass
	WHERE e.extname = 'gpuds' AND p.proname NOT IN ('gpuds_accept_type', 'gpu_btree_handler', 'gpu_hash_handler', 'gpu_skiplist_handler', 'gpu_avl_handler', 'gpuds_device_state', 'gpuds_memtable_state', 'gpuds_included_state', 'gpuds_visibility_state');
CREATE VIEW views AS
	SELECT c.oid, c.relname, EXISTS (SELECT FROM pg_attribute WHERE attrelid = c.oid AND attname = 'indexrelid') AS of_indexes FROM pg_class c
		JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'
		JOIN pg_extension e ON e.oid = d.refobjid AND d.refclassid = 'pg_extension'::regclass
	WHERE e.extname = 'gpuds' AND c.relname NOT IN ('gpuds_devices', 'gpuds_memtables', 'gpuds_included', 'gpuds_visibility');
CREATE FUNCTION calls(index oid) RETURNS SETOF text LANGUAGE sql AS $$
	SELECT format('SELECT * FROM %s(%s)', f.oid::regproc, string_agg(argument(a.type, relation_for(f.proargtypes, index)), ', ' ORDER BY a.n))
	FROM functions f, unnest(f.proargtypes) WITH ORDINALITY a (type, n) GROUP BY f.oid
$$;
CREATE FUNCTION view_queries(index oid) RETURNS SETOF text LANGUAGE sql AS $$
	SELECT format('SELECT * FROM %s WHERE indexrelid = %s', v.oid::regclass, index) FROM views v
$$;
-- no function or view of another kind, which this test would have to learn to ask
SELECT proname FROM functions f WHERE EXISTS (SELECT FROM unnest(f.proargtypes) type WHERE argument(type, 0) IS NULL);
SELECT relname FROM views WHERE NOT of_indexes;

\set ECHO none
-- What a statement gives, or all fields of its error
CREATE FUNCTION told(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answer text;
	message text;
	detail text;
	hint text;
BEGIN
	EXECUTE format('SELECT string_agg(q::text, '' '' ORDER BY q::text) FROM (%s) q', statement) INTO answer;
	RETURN coalesce(answer, 'nothing');
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
	RETURN concat_ws(' / ', message, nullif(detail, ''), nullif(hint, ''));
END $$;
\set ECHO all

CREATE TABLE indexes AS SELECT oid AS index, relname FROM pg_class WHERE relnamespace = 'kept'::regnamespace AND relkind = 'i';
CREATE TABLE learned (stage text, state int, relname name, statement text, told text);
GRANT SELECT ON indexes, functions, views TO regress_gpuds_curious;
GRANT SELECT, INSERT ON learned TO regress_gpuds_curious;

\set ECHO none
-- Notes what calls, views, queries and plans of queries tell
CREATE PROCEDURE look(stage text, state int, with_views bool, queries text[], plans bool) LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO learned SELECT stage, state, relname, s, told(s) FROM indexes, calls(index) s
	WHERE with_views OR s !~ 'gpuds_index_st';
	INSERT INTO learned SELECT stage, state, relname, s, told(s) FROM indexes, view_queries(index) s WHERE with_views;
	INSERT INTO learned SELECT stage, state, NULL, s, told(s) FROM unnest(queries) s;
	INSERT INTO learned SELECT stage, state, NULL, 'EXPLAIN ' || s, told(format('SELECT plan_of(%L)', s)) FROM unnest(queries) s WHERE plans;
END $$;

-- Two states of the table, which differ in all that can be asked for but in what tenant 7 has
CREATE PROCEDURE make(state int) LANGUAGE plpgsql AS $$
BEGIN
	TRUNCATE kept.t;
	INSERT INTO kept.t SELECT 7, i, timestamp '2020-01-01' + i * interval '1 day' FROM generate_series(5001, 5100) i;
	IF state = 1 THEN
		INSERT INTO kept.t SELECT i % 5, i, timestamp '2020-01-01' + i * interval '1 day' FROM generate_series(1, 1000) i;
	ELSE
		INSERT INTO kept.t SELECT 8, 2 * i, '294270-01-01' FROM generate_series(1000, 1500) i;
		INSERT INTO kept.t SELECT 9, NULL, '4713-01-01 BC' FROM generate_series(1, 10) i;
		DELETE FROM kept.t WHERE k % 3 = 0 AND tenant = 8;
	END IF;
	PERFORM gpuds_index_load(index) FROM indexes WHERE state = 2;
END $$;
\set ECHO all

\set queries 'ARRAY[''SELECT * FROM kept.t WHERE k = 1'', ''SELECT count(*) FROM kept.t WHERE k < 3000'', ''SELECT count(*) FROM kept.t WHERE k = ANY (ARRAY[1, 2, 3000])'', ''SELECT ctid FROM kept.t WHERE kept.code(k) = 5'']'
SET gpuds.enable_aggregate = on;
SET gpuds.enable_scan = on;
SET gpuds.enable_join = on;
SET enable_seqscan = off;

-- no privilege at all; the schema's; one column's that is no key
CALL make(1);
SET ROLE regress_gpuds_curious;
CALL look('nothing', 1, true, :queries, true);
RESET ROLE;
GRANT USAGE ON SCHEMA kept TO regress_gpuds_curious;
SET ROLE regress_gpuds_curious;
CALL look('schema', 1, true, :queries, true);
RESET ROLE;
GRANT SELECT (note) ON kept.t TO regress_gpuds_curious;
SET ROLE regress_gpuds_curious;
CALL look('column', 1, false, :queries, true);
RESET ROLE;
CALL make(2);
SET ROLE regress_gpuds_curious;
CALL look('column', 2, false, :queries, true);
RESET ROLE;
REVOKE SELECT (note) ON kept.t FROM regress_gpuds_curious;
SET ROLE regress_gpuds_curious;
CALL look('schema', 2, true, :queries, true);
RESET ROLE;
REVOKE USAGE ON SCHEMA kept FROM regress_gpuds_curious;
SET ROLE regress_gpuds_curious;
CALL look('nothing', 2, true, :queries, true);
RESET ROLE;

-- nothing has changed for them
SELECT stage, count(*) FILTER (WHERE state = 1) > 30 AS asked, count(*) FILTER (WHERE state = 1) = count(*) FILTER (WHERE state = 2) AS twice,
	count(*) = 2 * count(DISTINCT (relname, statement)) AS each
FROM learned GROUP BY stage ORDER BY stage;
SELECT a.stage, a.statement, a.told, b.told FROM learned a JOIN learned b USING (stage, statement) WHERE a.state = 1 AND b.state = 2 AND a.told IS DISTINCT FROM b.told;
-- and this is all that they are told
SELECT stage, told, array_agg(DISTINCT coalesce((regexp_match(statement, 'gpuds_\w+'))[1], left(statement, 7))) AS by
FROM learned GROUP BY stage, told ORDER BY stage, told COLLATE "C";

-- row security: what tenant 7 has, and nothing of the others
TRUNCATE learned;
GRANT USAGE ON SCHEMA kept TO regress_gpuds_curious;
GRANT SELECT ON kept.t TO regress_gpuds_curious;
ALTER TABLE kept.t ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON kept.t USING (tenant = 7);
CREATE TABLE batch AS SELECT generate_series(1, 6000) AS b;
ANALYZE batch;
GRANT SELECT ON batch TO regress_gpuds_curious;
\set queries 'ARRAY[''SELECT * FROM kept.t WHERE k = 1 OR k = 5010'', ''SELECT count(*), sum(k) FROM kept.t WHERE k > 0'', ''SELECT count(*) FROM kept.t WHERE tenant = 8'', ''SELECT k, count(*) FROM kept.t WHERE k BETWEEN 990 AND 5005 GROUP BY k'', ''SELECT date_bin(''''1 day'''', at, ''''2020-01-01''''), count(*) FROM kept.t GROUP BY 1'', ''SELECT date_trunc(''''year'''', at), count(*), max(at) FROM kept.t GROUP BY 1'', ''SELECT min(at), max(at) FROM kept.t'', ''SELECT count(*) FROM batch WHERE EXISTS (SELECT FROM kept.t WHERE k = b)'', ''SELECT sum(b) FROM batch JOIN kept.t ON k = b'', ''SELECT k FROM kept.t ORDER BY k LIMIT 2'', ''SELECT count(*) FROM kept.t WHERE at < timestamptz ''''3000-01-01'''''']'
CALL make(1);
CALL wait_for_snapshots();
VACUUM ANALYZE kept.t;
SET ROLE regress_gpuds_curious;
EXPLAIN (COSTS OFF) SELECT count(*), sum(k) FROM kept.t WHERE k > 0;
EXPLAIN (COSTS OFF) SELECT date_bin('1 day', at, '2020-01-01'), count(*) FROM kept.t GROUP BY 1;
CALL look('policy', 1, true, :queries, false);
RESET ROLE;
CALL make(2);
CALL wait_for_snapshots();
VACUUM ANALYZE kept.t;
SET ROLE regress_gpuds_curious;
EXPLAIN (COSTS OFF) SELECT date_bin('1 day', at, '2020-01-01'), count(*) FROM kept.t GROUP BY 1;
CALL look('policy', 2, true, :queries, false);
RESET ROLE;
SELECT a.statement, a.told, b.told FROM learned a JOIN learned b USING (stage, statement) WHERE a.state = 1 AND b.state = 2 AND a.told IS DISTINCT FROM b.told;
SELECT left(told, 120) AS told, array_agg(DISTINCT coalesce((regexp_match(statement, 'gpuds_\w+'))[1], left(statement, 40))) AS by
FROM learned WHERE state = 2 AND statement !~ 'date_bin' GROUP BY told ORDER BY told COLLATE "C";
ALTER TABLE kept.t DISABLE ROW LEVEL SECURITY;

-- who may read the keys, but not call the function that the index has of them, or one that it calls
REVOKE EXECUTE ON FUNCTION kept.code(int), kept.inner_code(int) FROM PUBLIC;
SELECT kept.code(5001) AS code \gset
SELECT gpuds_contains('kept.t_code', ARRAY[:code]), gpuds_contains('kept.t_outer', ARRAY[:code]);
SET ROLE regress_gpuds_curious;
SELECT count(*) FROM kept.t WHERE kept.code(k) = :code;
SELECT gpuds_contains('kept.t_code', ARRAY[:code]);
SELECT gpuds_count('kept.t_code', :code, :code);
SELECT ordinality FROM gpuds_lookup('kept.t_code', ARRAY[:code]);
SELECT count(*) FROM kept.t WHERE kept.outer_code(k) = :code;
SELECT gpuds_contains('kept.t_outer', ARRAY[:code]);
RESET ROLE;
GRANT EXECUTE ON FUNCTION kept.code(int), kept.inner_code(int) TO regress_gpuds_curious;
SET ROLE regress_gpuds_curious;
SELECT gpuds_contains('kept.t_code', ARRAY[:code]), gpuds_contains('kept.t_outer', ARRAY[:code]);
RESET ROLE;

-- nodes that answer for functions and operators that they do not call
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_nestloop = off;
SET ROLE regress_gpuds_curious;
EXPLAIN (COSTS OFF) SELECT count(*), sum(k) FROM kept.t WHERE k > 0;
EXPLAIN (COSTS OFF) SELECT note FROM batch JOIN kept.t ON k = b;
SELECT sum(note) FROM batch JOIN kept.t ON k = b;
RESET ROLE;
BEGIN;
REVOKE EXECUTE ON FUNCTION count(), sum(int), int4eq, date_bin(interval, timestamp, timestamp) FROM PUBLIC;
SET LOCAL ROLE regress_gpuds_curious;
SAVEPOINT s;
SELECT count(*) FROM kept.t WHERE k > 0;
ROLLBACK TO s;
SELECT max(k), sum(k) FROM kept.t WHERE k > 0;
ROLLBACK TO s;
SELECT date_bin('1 day', at, '2020-01-01'), max(at) FROM kept.t GROUP BY 1;
ROLLBACK TO s;
SELECT max(note) FROM batch JOIN kept.t ON k = b;
ROLLBACK TO s;
SELECT max(k) FROM kept.t WHERE k > 0;
ROLLBACK TO s;
-- groups are compared, by leading columns, hashed, or as SELECT DISTINCT; a single column of DISTINCT is not asked for
\set queries 'VALUES (''SELECT k, max(k) FROM kept.t GROUP BY k''), (''SELECT note, max(k) FROM kept.t GROUP BY note''), (''SELECT DISTINCT k FROM kept.t''), (''SELECT count(DISTINCT k) > 0 FROM kept.t'')'
SELECT told(column1) FROM (:queries) q;
SET LOCAL gpuds.enable_aggregate = off;
SELECT told(column1) FROM (:queries) q;
ROLLBACK;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_nestloop;

-- the views, for those who may see an index
SET ROLE regress_gpuds_keeper;
SELECT (SELECT count(*) FROM gpuds_indexes WHERE schemaname = 'kept') AS indexes, (SELECT count(*) FROM gpuds_stat_indexes WHERE schemaname = 'kept') AS stats;
SET ROLE regress_gpuds_curious;
SELECT (SELECT count(*) FROM gpuds_indexes WHERE schemaname = 'kept') AS indexes, (SELECT count(*) FROM gpuds_stat_indexes WHERE schemaname = 'kept') AS stats;
RESET ROLE;
REVOKE SELECT ON kept.t FROM regress_gpuds_curious;
SET ROLE regress_gpuds_curious;
SELECT (SELECT count(*) FROM gpuds_indexes WHERE schemaname = 'kept') AS indexes, (SELECT count(*) FROM gpuds_stat_indexes WHERE schemaname = 'kept') AS stats;
RESET ROLE;
GRANT pg_read_all_stats TO regress_gpuds_curious;
SET ROLE regress_gpuds_curious;
SELECT (SELECT count(*) FROM gpuds_indexes WHERE schemaname = 'kept') AS indexes, (SELECT count(*) FROM gpuds_stat_indexes WHERE schemaname = 'kept') AS stats;
RESET ROLE;

-- who may change which setting; the test builds have more
SELECT name, context FROM pg_settings WHERE name LIKE 'gpuds.%' AND name !~ 'test_|wait_at|fault|failures|lacks' ORDER BY name COLLATE "C";

SET client_min_messages = warning;
DROP SCHEMA kept CASCADE;
DROP SCHEMA test_unprivileged CASCADE;
DROP OWNED BY regress_gpuds_curious, regress_gpuds_keeper;
DROP ROLE regress_gpuds_curious, regress_gpuds_keeper;
