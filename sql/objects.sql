-- The extension in a schema that somebody else has prepared: none of its objects takes a stranger for one of
-- pg_catalog's or its own.
\set test test_objects
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

BEGIN;
SET LOCAL client_min_messages = warning;
DROP EXTENSION gpuds CASCADE;
CREATE SCHEMA hostile;

\set ECHO none
-- functions that fit calls in the views, and fit them better if types are not looked at
CREATE FUNCTION hostile.caught() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'a stranger is called'; END $$;
CREATE FUNCTION hostile.substr(text, int) RETURNS text LANGUAGE sql AS 'SELECT hostile.caught()';
CREATE FUNCTION hostile.substr(anyelement, int) RETURNS text LANGUAGE sql AS 'SELECT hostile.caught()';
CREATE FUNCTION hostile.gpuds_included_state(VARIADIC int[]) RETURNS text LANGUAGE sql AS 'SELECT hostile.caught()';
CREATE FUNCTION hostile.gpuds_memtable_state(VARIADIC int[]) RETURNS text LANGUAGE sql AS 'SELECT hostile.caught()';
CREATE FUNCTION hostile.gpuds_index_state(anyelement) RETURNS text LANGUAGE sql AS 'SELECT hostile.caught()';
CREATE FUNCTION hostile.gpuds_index_stats(regclass) RETURNS text LANGUAGE sql AS 'SELECT hostile.caught()';
CREATE FUNCTION hostile.gpu_btree_handler(text) RETURNS index_am_handler LANGUAGE c AS '$libdir/gpuds';
CREATE FUNCTION hostile.gpu_hash_handler(text) RETURNS index_am_handler LANGUAGE c AS '$libdir/gpuds';
CREATE FUNCTION hostile.gpu_skiplist_handler(text) RETURNS index_am_handler LANGUAGE c AS '$libdir/gpuds';
-- and those that fit calls in DO blocks
CREATE FUNCTION hostile.format(text, VARIADIC name[]) RETURNS text LANGUAGE sql AS 'SELECT hostile.caught()';
CREATE FUNCTION hostile.format_type(oid, int4) RETURNS text LANGUAGE sql AS 'SELECT hostile.caught()';
\set ECHO all

-- operators for all types of keys, and those of the views' conditions
DO $$
DECLARE
	types text;
	operator text;
BEGIN
	FOR types IN
		SELECT DISTINCT oprleft::regtype || ', ' || oprright::regtype FROM pg_operator
		WHERE oprname = '<' AND oprresult = 'bool'::regtype AND oprleft <> 0
	LOOP
		CONTINUE WHEN types ~ '^any' AND types <> 'anyenum, anyenum';
		EXECUTE format('CREATE FUNCTION hostile.compare(%s) RETURNS bool LANGUAGE plpgsql AS ''BEGIN RAISE EXCEPTION ''''a stranger compares''''; END''', types);
		FOREACH operator IN ARRAY ARRAY['<', '<=', '=', '>=', '>'] LOOP
			EXECUTE format('CREATE OPERATOR hostile.%s (FUNCTION = hostile.compare, LEFTARG = %s, RIGHTARG = %s)', operator,
				split_part(types, ', ', 1), split_part(types, ', ', 2));
		END LOOP;
	END LOOP;
END $$;
SELECT count(*) > 200 AS operators FROM pg_operator WHERE oprnamespace = 'hostile'::regnamespace;

-- types and relations
CREATE DOMAIN hostile.regclass AS text;
CREATE DOMAIN hostile.oid AS text;
CREATE DOMAIN hostile.tid AS text;
CREATE DOMAIN hostile.text AS pg_catalog.int4;
CREATE DOMAIN hostile.int2 AS pg_catalog.text;
CREATE DOMAIN hostile.uuid AS pg_catalog.text;
CREATE VIEW hostile.pg_class AS SELECT hostile.caught() AS oid;
CREATE VIEW hostile.pg_index AS SELECT hostile.caught() AS indexrelid;

-- whoever creates the extension has the schema before pg_catalog
SET LOCAL search_path = hostile, pg_catalog;
CREATE EXTENSION gpuds SCHEMA hostile;
SET LOCAL search_path = test_objects, public;

-- What do its objects, and the parts of these, depend on?  What pg_catalog has is pinned, and not listed.
WITH RECURSIVE own AS (
	SELECT d.classid, d.objid FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid AND d.refclassid = 'pg_extension'::regclass
	WHERE d.deptype = 'e' AND e.extname = 'gpuds'
	UNION
	SELECT d.classid, d.objid FROM own JOIN pg_depend d ON d.refclassid = own.classid AND d.refobjid = own.objid
	WHERE d.deptype IN ('i', 'a'))
SELECT (SELECT count(*) FROM own) > 150 AS own, pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid) AS of, array_agg(DISTINCT d.deptype) AS as
FROM own JOIN pg_depend d USING (classid, objid)
WHERE (d.refclassid, d.refobjid) NOT IN (SELECT classid, objid FROM own)
GROUP BY 2 ORDER BY 2;

-- and they work
CREATE TABLE t (k int8);
INSERT INTO t SELECT generate_series(1, 100);
CREATE INDEX t_k ON t USING gpu_btree (k);
SELECT hostile.gpuds_index_load('t_k');
SELECT relname, indexrelname, structure, entries FROM hostile.gpuds_indexes WHERE indexrelid = 't_k'::regclass;
SELECT relname, loads FROM hostile.gpuds_stat_indexes WHERE indexrelid = 't_k'::regclass;
SELECT count(*) > 0 AS devices FROM hostile.gpuds_devices;
SELECT memory_total > 0 AS memtables FROM hostile.gpuds_memtables;
SELECT memory_total > 0 AS included FROM hostile.gpuds_included;
SELECT hostile.gpuds_contains('t_k', '{7,1000}'::int8[]);
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE k = 7;
SELECT * FROM t WHERE k = 7;
ROLLBACK;

SELECT count(*) FROM pg_extension WHERE extname = 'gpuds';
SET client_min_messages = warning;
DROP SCHEMA test_objects CASCADE;
