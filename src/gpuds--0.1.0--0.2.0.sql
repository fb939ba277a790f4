/* src/gpuds--0.1.0--0.2.0.sql */

\echo Use "ALTER EXTENSION gpuds UPDATE TO '0.2.0'" to load this file. \quit

-- Whatever 0.2.0 has and 0.1.0 has not.  test/t/039_upgrade.pl compares what this leads to with
-- what gpuds--0.2.0.sql makes; both are changed in one commit.

ALTER FUNCTION gpu_btree_handler(internal) PARALLEL SAFE;

-- ---------------------------------------------------------------------------
-- Access method gpu_hash and operator classes
--
-- Families, classes, strategy and support numbers are hash's. Functions whose arguments are declared with
-- another type than the class's are those that hash has for it.
-- ---------------------------------------------------------------------------

CREATE FUNCTION gpu_hash_handler(internal) RETURNS index_am_handler
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL SAFE;

CREATE ACCESS METHOD gpu_hash TYPE INDEX HANDLER gpu_hash_handler;

COMMENT ON ACCESS METHOD gpu_hash IS 'equality of any type that has a hash function, on a device';

CREATE OPERATOR FAMILY array_ops USING gpu_hash;

CREATE OPERATOR CLASS array_ops DEFAULT FOR TYPE anyarray USING gpu_hash FAMILY array_ops AS
	OPERATOR 1 =, FUNCTION 1 pg_catalog.hash_array(anyarray), FUNCTION 2 pg_catalog.hash_array_extended(anyarray, int8);

CREATE OPERATOR FAMILY bool_ops USING gpu_hash;

CREATE OPERATOR CLASS bool_ops DEFAULT FOR TYPE bool USING gpu_hash FAMILY bool_ops AS
	OPERATOR 1 =, FUNCTION 1 pg_catalog.hashchar("char"), FUNCTION 2 pg_catalog.hashcharextended("char", int8);

CREATE OPERATOR FAMILY bpchar_ops USING gpu_hash;

CREATE OPERATOR CLASS bpchar_ops DEFAULT FOR TYPE bpchar USING gpu_hash FAMILY bpchar_ops AS
	OPERATOR 1 =, FUNCTION 1 pg_catalog.hashbpchar(bpchar), FUNCTION 2 pg_catalog.hashbpcharextended(bpchar, int8);

CREATE OPERATOR FAMILY bytea_ops USING gpu_hash;

CREATE OPERATOR CLASS bytea_ops DEFAULT FOR TYPE bytea USING gpu_hash FAMILY bytea_ops AS
	OPERATOR 1 =, FUNCTION 1 pg_catalog.hashvarlena(internal), FUNCTION 2 pg_catalog.hashvarlenaextended(internal, int8);

CREATE OPERATOR FAMILY char_ops USING gpu_hash;

CREATE OPERATOR CLASS char_ops DEFAULT FOR TYPE "char" USING gpu_hash FAMILY char_ops AS
	OPERATOR 1 =, FUNCTION 1 pg_catalog.hashchar("char"), FUNCTION 2 pg_catalog.hashcharextended("char", int8);

CREATE OPERATOR FAMILY date_ops USING gpu_hash;

CREATE OPERATOR CLASS date_ops DEFAULT FOR TYPE date USING gpu_hash FAMILY date_ops AS
	OPERATOR 1 =, FUNCTION 1 pg_catalog.hashint4(int4), FUNCTION 2 pg_catalog.hashint4extended(int4, int8);

CREATE OPERATOR FAMILY enum_ops USING gpu_hash;

CREATE OPERATOR CLASS enum_ops DEFAULT FOR TYPE anyenum USING gpu_hash FAMILY enum_ops AS
	OPERATOR 1 =, FUNCTION 1 pg_catalog.hashenum(anyenum), FUNCTION 2 pg_catalog.hashenumextended(anyenum, int8);

CREATE OPERATOR FAMILY float_ops USING gpu_hash;

CREATE OPERATOR CLASS float4_ops DEFAULT FOR TYPE float4 USING gpu_hash FAMILY float_ops AS
	OPERATOR 1 =, FUNCTION 1 pg_catalog.hashfloat4(float4), FUNCTION 2 pg_catalog.hashfloat4extended(float4, int8);

CREATE OPERATOR CLASS float8_ops DEFAULT FOR TYPE float8 USING gpu_hash FAMILY float_ops AS
	OPERATOR 1 =, FUNCTION 1 pg_catalog.hashfloat8(float8), FUNCTION 2 pg_catalog.hashfloat8extended(float8, int8);

ALTER OPERATOR FAMILY float_ops USING gpu_hash ADD
	OPERATOR 1 = (float4, float8), OPERATOR 1 = (float8, float4);

CREATE OPERATOR FAMILY integer_ops USING gpu_hash;

CREATE OPERATOR CLASS int2_ops DEFAULT FOR TYPE int2 USING gpu_hash FAMILY integer_ops AS
	OPERATOR 1 =, FUNCTION 1 pg_catalog.hashint2(int2), FUNCTION 2 pg_catalog.hashint2extended(int2, int8);

CREATE OPERATOR CLASS int4_ops DEFAULT FOR TYPE int4 USING gpu_hash FAMILY integer_ops AS
	OPERATOR 1 =, FUNCTION 1 pg_catalog.hashint4(int4), FUNCTION 2 pg_catalog.hashint4extended(int4, int8);

CREATE OPERATOR CLASS int8_ops DEFAULT FOR TYPE int8 USING gpu_hash FAMILY integer_ops AS
	OPERATOR 1 =, FUNCTION 1 pg_catalog.hashint8(int8), FUNCTION 2 pg_catalog.hashint8extended(int8, int8);

ALTER OPERATOR FAMILY integer_ops USING gpu_hash ADD
	OPERATOR 1 = (int2, int4), OPERATOR 1 = (int2, int8), OPERATOR 1 = (int4, int2), OPERATOR 1 = (int4, int8), OPERATOR 1 = (int8, int2), OPERATOR 1 = (int8, int4);

CREATE OPERATOR FAMILY interval_ops USING gpu_hash;

CREATE OPERATOR CLASS interval_ops DEFAULT FOR TYPE interval USING gpu_hash FAMILY interval_ops AS
	OPERATOR 1 =, FUNCTION 1 pg_catalog.interval_hash(interval), FUNCTION 2 pg_catalog.interval_hash_extended(interval, int8);

CREATE OPERATOR FAMILY jsonb_ops USING gpu_hash;

CREATE OPERATOR CLASS jsonb_ops DEFAULT FOR TYPE jsonb USING gpu_hash FAMILY jsonb_ops AS
	OPERATOR 1 =, FUNCTION 1 pg_catalog.jsonb_hash(jsonb), FUNCTION 2 pg_catalog.jsonb_hash_extended(jsonb, int8);

CREATE OPERATOR FAMILY macaddr8_ops USING gpu_hash;

CREATE OPERATOR CLASS macaddr8_ops DEFAULT FOR TYPE macaddr8 USING gpu_hash FAMILY macaddr8_ops AS
	OPERATOR 1 =, FUNCTION 1 pg_catalog.hashmacaddr8(macaddr8), FUNCTION 2 pg_catalog.hashmacaddr8extended(macaddr8, int8);

CREATE OPERATOR FAMILY macaddr_ops USING gpu_hash;

CREATE OPERATOR CLASS macaddr_ops DEFAULT FOR TYPE macaddr USING gpu_hash FAMILY macaddr_ops AS
	OPERATOR 1 =, FUNCTION 1 pg_catalog.hashmacaddr(macaddr), FUNCTION 2 pg_catalog.hashmacaddrextended(macaddr, int8);

-- No hash function: values are keys as they are.
CREATE OPERATOR FAMILY money_ops USING gpu_hash;

CREATE OPERATOR CLASS money_ops DEFAULT FOR TYPE money USING gpu_hash FAMILY money_ops AS
	OPERATOR 1 =;

CREATE OPERATOR FAMILY multirange_ops USING gpu_hash;

CREATE OPERATOR CLASS multirange_ops DEFAULT FOR TYPE anymultirange USING gpu_hash FAMILY multirange_ops AS
	OPERATOR 1 =, FUNCTION 1 pg_catalog.hash_multirange(anymultirange), FUNCTION 2 pg_catalog.hash_multirange_extended(anymultirange, int8);

CREATE OPERATOR FAMILY name_ops USING gpu_hash;

CREATE OPERATOR CLASS name_ops DEFAULT FOR TYPE name USING gpu_hash FAMILY name_ops AS
	OPERATOR 1 =, FUNCTION 1 pg_catalog.hashname(name), FUNCTION 2 pg_catalog.hashnameextended(name, int8);

CREATE OPERATOR FAMILY network_ops USING gpu_hash;

CREATE OPERATOR CLASS inet_ops DEFAULT FOR TYPE inet USING gpu_hash FAMILY network_ops AS
	OPERATOR 1 =, FUNCTION 1 pg_catalog.hashinet(inet), FUNCTION 2 pg_catalog.hashinetextended(inet, int8);

CREATE OPERATOR FAMILY numeric_ops USING gpu_hash;

CREATE OPERATOR CLASS numeric_ops DEFAULT FOR TYPE numeric USING gpu_hash FAMILY numeric_ops AS
	OPERATOR 1 =, FUNCTION 1 pg_catalog.hash_numeric(numeric), FUNCTION 2 pg_catalog.hash_numeric_extended(numeric, int8);

CREATE OPERATOR FAMILY oid_ops USING gpu_hash;

CREATE OPERATOR CLASS oid_ops DEFAULT FOR TYPE oid USING gpu_hash FAMILY oid_ops AS
	OPERATOR 1 =, FUNCTION 1 pg_catalog.hashoid(oid), FUNCTION 2 pg_catalog.hashoidextended(oid, int8);

CREATE OPERATOR FAMILY pg_lsn_ops USING gpu_hash;

CREATE OPERATOR CLASS pg_lsn_ops DEFAULT FOR TYPE pg_lsn USING gpu_hash FAMILY pg_lsn_ops AS
	OPERATOR 1 =, FUNCTION 1 pg_catalog.pg_lsn_hash(pg_lsn), FUNCTION 2 pg_catalog.pg_lsn_hash_extended(pg_lsn, int8);

CREATE OPERATOR FAMILY range_ops USING gpu_hash;

CREATE OPERATOR CLASS range_ops DEFAULT FOR TYPE anyrange USING gpu_hash FAMILY range_ops AS
	OPERATOR 1 =, FUNCTION 1 pg_catalog.hash_range(anyrange), FUNCTION 2 pg_catalog.hash_range_extended(anyrange, int8);

CREATE OPERATOR FAMILY text_ops USING gpu_hash;

CREATE OPERATOR CLASS text_ops DEFAULT FOR TYPE text USING gpu_hash FAMILY text_ops AS
	OPERATOR 1 =, FUNCTION 1 pg_catalog.hashtext(text), FUNCTION 2 pg_catalog.hashtextextended(text, int8);

CREATE OPERATOR FAMILY time_ops USING gpu_hash;

CREATE OPERATOR CLASS time_ops DEFAULT FOR TYPE time USING gpu_hash FAMILY time_ops AS
	OPERATOR 1 =, FUNCTION 1 pg_catalog.time_hash(time), FUNCTION 2 pg_catalog.time_hash_extended(time, int8);

CREATE OPERATOR FAMILY timestamp_ops USING gpu_hash;

CREATE OPERATOR CLASS timestamp_ops DEFAULT FOR TYPE timestamp USING gpu_hash FAMILY timestamp_ops AS
	OPERATOR 1 =, FUNCTION 1 pg_catalog.timestamp_hash(timestamp), FUNCTION 2 pg_catalog.timestamp_hash_extended(timestamp, int8);

CREATE OPERATOR FAMILY timestamptz_ops USING gpu_hash;

CREATE OPERATOR CLASS timestamptz_ops DEFAULT FOR TYPE timestamptz USING gpu_hash FAMILY timestamptz_ops AS
	OPERATOR 1 =, FUNCTION 1 pg_catalog.timestamp_hash(timestamp), FUNCTION 2 pg_catalog.timestamp_hash_extended(timestamp, int8);

CREATE OPERATOR FAMILY timetz_ops USING gpu_hash;

CREATE OPERATOR CLASS timetz_ops DEFAULT FOR TYPE timetz USING gpu_hash FAMILY timetz_ops AS
	OPERATOR 1 =, FUNCTION 1 pg_catalog.timetz_hash(timetz), FUNCTION 2 pg_catalog.timetz_hash_extended(timetz, int8);

CREATE OPERATOR FAMILY uuid_ops USING gpu_hash;

CREATE OPERATOR CLASS uuid_ops DEFAULT FOR TYPE uuid USING gpu_hash FAMILY uuid_ops AS
	OPERATOR 1 =, FUNCTION 1 pg_catalog.uuid_hash(uuid), FUNCTION 2 pg_catalog.uuid_hash_extended(uuid, int8);

CREATE OPERATOR FAMILY xid8_ops USING gpu_hash;

CREATE OPERATOR CLASS xid8_ops DEFAULT FOR TYPE xid8 USING gpu_hash FAMILY xid8_ops AS
	OPERATOR 1 =, FUNCTION 1 pg_catalog.hashint8(int8), FUNCTION 2 pg_catalog.hashint8extended(int8, int8);

-- ---------------------------------------------------------------------------
-- Numbers, texts and points as keys of gpu_btree
-- ---------------------------------------------------------------------------

CREATE OPERATOR FAMILY numeric_ops USING gpu_btree;

CREATE OPERATOR CLASS numeric_ops DEFAULT FOR TYPE numeric USING gpu_btree FAMILY numeric_ops AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >;

CREATE OPERATOR FAMILY text_ops USING gpu_btree;

CREATE OPERATOR CLASS text_ops DEFAULT FOR TYPE text USING gpu_btree FAMILY text_ops AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >;

CREATE OPERATOR CLASS name_ops DEFAULT FOR TYPE name USING gpu_btree FAMILY text_ops AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >;

ALTER OPERATOR FAMILY text_ops USING gpu_btree ADD
	OPERATOR 1 < (text, name), OPERATOR 2 <= (text, name), OPERATOR 3 = (text, name), OPERATOR 4 >= (text, name), OPERATOR 5 > (text, name),
	OPERATOR 1 < (name, text), OPERATOR 2 <= (name, text), OPERATOR 3 = (name, text), OPERATOR 4 >= (name, text), OPERATOR 5 > (name, text);

CREATE OPERATOR FAMILY bpchar_ops USING gpu_btree;

CREATE OPERATOR CLASS bpchar_ops DEFAULT FOR TYPE bpchar USING gpu_btree FAMILY bpchar_ops AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >;

CREATE OPERATOR FAMILY bytea_ops USING gpu_btree;

CREATE OPERATOR CLASS bytea_ops DEFAULT FOR TYPE bytea USING gpu_btree FAMILY bytea_ops AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >;

CREATE OPERATOR FAMILY point_ops USING gpu_btree;

-- No order, and no equality: ~= is true of what is near enough. Strategy numbers are GiST's.
CREATE OPERATOR CLASS point_ops DEFAULT FOR TYPE point USING gpu_btree FAMILY point_ops AS
	OPERATOR 6 ~=;

ALTER OPERATOR FAMILY point_ops USING gpu_btree ADD
	OPERATOR 8 <@ (point, box), OPERATOR 8 <@ (point, circle);

-- ---------------------------------------------------------------------------
-- Access methods gpu_skiplist and gpu_avl, and their operator classes
--
-- Families and classes are those of gpu_btree, with the same names in the same schema and the same
-- operators.  What users have added to gpu_btree is theirs, and stays there.
-- ---------------------------------------------------------------------------

CREATE FUNCTION gpu_skiplist_handler(internal) RETURNS index_am_handler
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL SAFE;

CREATE ACCESS METHOD gpu_skiplist TYPE INDEX HANDLER gpu_skiplist_handler;

COMMENT ON ACCESS METHOD gpu_skiplist IS 'skip list on a device, changed in place and probed in batches';

CREATE FUNCTION gpu_avl_handler(internal) RETURNS index_am_handler
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL SAFE;

CREATE ACCESS METHOD gpu_avl TYPE INDEX HANDLER gpu_avl_handler;

COMMENT ON ACCESS METHOD gpu_avl IS 'AVL tree on a device, changed and probed in batches';

DO $$
DECLARE
	statement pg_catalog.text;
BEGIN
	FOR statement IN
		WITH own AS (
			SELECT d.classid, d.objid
			FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_extension e ON e.oid OPERATOR(pg_catalog.=) d.refobjid
			WHERE d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass
				AND d.deptype OPERATOR(pg_catalog.=) 'e' AND e.extname OPERATOR(pg_catalog.=) 'gpuds'),
		family AS (
			SELECT f.oid, pg_catalog.format('%I.%I', n.nspname, f.opfname) AS name
			FROM own o JOIN pg_catalog.pg_opfamily f ON f.oid OPERATOR(pg_catalog.=) o.objid
				JOIN pg_catalog.pg_am a ON a.oid OPERATOR(pg_catalog.=) f.opfmethod
				JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) f.opfnamespace
			WHERE o.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_opfamily'::pg_catalog.regclass
				AND a.amname OPERATOR(pg_catalog.=) 'gpu_btree'),
		class AS (
			SELECT f.oid AS family, f.name AS family_name, c.opcintype AS type, pg_catalog.format('%I.%I', n.nspname, c.opcname) AS name
			FROM own o JOIN pg_catalog.pg_opclass c ON c.oid OPERATOR(pg_catalog.=) o.objid
				JOIN family f ON f.oid OPERATOR(pg_catalog.=) c.opcfamily
				JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.opcnamespace
			WHERE o.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_opclass'::pg_catalog.regclass),
		operators AS (
			SELECT l.family_name, l.name, l.type, l.type OPERATOR(pg_catalog.=) r.type AS of_class,
				pg_catalog.string_agg(pg_catalog.format('OPERATOR %s pg_catalog.%s (%s, %s)', o.amopstrategy, p.oprname,
					pg_catalog.format_type(l.type, NULL), pg_catalog.format_type(r.type, NULL)), ', ' ORDER BY o.amopstrategy) AS list
			FROM class l JOIN class r ON r.family OPERATOR(pg_catalog.=) l.family
				JOIN pg_catalog.pg_amop o ON o.amopfamily OPERATOR(pg_catalog.=) l.family
					AND o.amoplefttype OPERATOR(pg_catalog.=) l.type AND o.amoprighttype OPERATOR(pg_catalog.=) r.type
				JOIN pg_catalog.pg_operator p ON p.oid OPERATOR(pg_catalog.=) o.amopopr
			GROUP BY l.family_name, l.name, l.type, r.type),
		methods AS (
			SELECT pg_catalog.unnest('{gpu_skiplist,gpu_avl}'::pg_catalog.name[]) AS name)
		SELECT s.text
		FROM (SELECT 1 AS step, f.name, pg_catalog.format('CREATE OPERATOR FAMILY %s USING %s', f.name, m.name) AS text
			FROM family f CROSS JOIN methods m
			UNION ALL
			SELECT 2, o.name, pg_catalog.format('CREATE OPERATOR CLASS %s DEFAULT FOR TYPE %s USING %s FAMILY %s AS %s',
				o.name, pg_catalog.format_type(o.type, NULL), m.name, o.family_name, o.list)
			FROM operators o CROSS JOIN methods m WHERE o.of_class
			UNION ALL
			SELECT 3, o.name, pg_catalog.format('ALTER OPERATOR FAMILY %s USING %s ADD %s', o.family_name, m.name, o.list)
			FROM operators o CROSS JOIN methods m WHERE NOT o.of_class) s
		ORDER BY s.step, s.name
	LOOP
		EXECUTE statement;
	END LOOP;
END $$;

-- Boxes and circles have no operator class here.
ALTER OPERATOR FAMILY point_ops USING gpu_skiplist ADD
	OPERATOR 8 <@ (point, box), OPERATOR 8 <@ (point, circle);

ALTER OPERATOR FAMILY point_ops USING gpu_avl ADD
	OPERATOR 8 <@ (point, box), OPERATOR 8 <@ (point, circle);

CREATE FUNCTION gpuds_index_structure(indexrelid oid) RETURNS text
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

-- The collation of structure is that of 0.1.0, which a view cannot change.
CREATE OR REPLACE VIEW gpuds_indexes AS
	SELECT x.indrelid AS relid, x.indexrelid, n.nspname AS schemaname, t.relname, i.relname AS indexrelname,
		gpuds_index_structure(x.indexrelid) COLLATE pg_catalog."C" AS structure,
		s.device, s.state, s.entries, s.bytes, s.journal_position, s.applied_position
	FROM pg_catalog.pg_index x
		JOIN pg_catalog.pg_class t ON t.oid OPERATOR(pg_catalog.=) x.indrelid
		JOIN pg_catalog.pg_class i ON i.oid OPERATOR(pg_catalog.=) x.indexrelid
		JOIN pg_catalog.pg_am a ON a.oid OPERATOR(pg_catalog.=) i.relam
		LEFT JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) t.relnamespace
		CROSS JOIN LATERAL gpuds_index_state(x.indexrelid) s
	WHERE a.amname OPERATOR(pg_catalog.=) ANY ('{gpu_btree,gpu_hash,gpu_skiplist,gpu_avl}'::pg_catalog.name[]) AND i.relkind OPERATOR(pg_catalog.=) 'i';

-- Those who may not see an index have no row of it.
CREATE OR REPLACE VIEW gpuds_stat_indexes AS
	SELECT x.indrelid AS relid, x.indexrelid, n.nspname AS schemaname, t.relname, i.relname AS indexrelname,
		s.scans, s.batches, s.probes, s.entries_returned, s.applied_operations, s.loads, s.device_time,
		s.fallbacks, s.launches, s.mean_batch, s.bus_bytes
	FROM pg_catalog.pg_index x
		JOIN pg_catalog.pg_class t ON t.oid OPERATOR(pg_catalog.=) x.indrelid
		JOIN pg_catalog.pg_class i ON i.oid OPERATOR(pg_catalog.=) x.indexrelid
		JOIN pg_catalog.pg_am a ON a.oid OPERATOR(pg_catalog.=) i.relam
		LEFT JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) t.relnamespace
		CROSS JOIN LATERAL gpuds_index_stats(x.indexrelid) s
	WHERE a.amname OPERATOR(pg_catalog.=) ANY ('{gpu_btree,gpu_hash,gpu_skiplist,gpu_avl}'::pg_catalog.name[]) AND i.relkind OPERATOR(pg_catalog.=) 'i' AND s.scans IS NOT NULL;

-- For superusers, as CREATE OPERATOR CLASS is.
CREATE FUNCTION gpuds_accept_type(type regtype) RETURNS regtype
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION gpuds_accept_type(regtype) IS
	'make keys of a type that orders as an integer or uuid does; returns what it is like';

-- For those who may read the columns, as with pg_stats.
CREATE FUNCTION gpuds_index_estimate(relation regclass, columns name[], included name[] DEFAULT '{}',
		method name DEFAULT 'gpu_btree',
		OUT entries bigint, OUT journal_bytes bigint, OUT host_bytes bigint, OUT device_bytes bigint)
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION gpuds_index_estimate(regclass, name[], name[], name) IS
	'what an index on these columns would take: entries, bytes on disk, in shared memory, on a GPU';

-- For the owner of the table, as those below.
CREATE FUNCTION gpuds_index_load(index regclass, replicas integer, parts integer DEFAULT 1) RETURNS boolean
	AS 'MODULE_PATHNAME', 'gpuds_index_load_replicas' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION gpuds_index_load(regclass, integer, integer) IS
	'load an index onto so many GPUs, each time in so many parts; an error if there is no room';

CREATE FUNCTION gpuds_index_stats_reset(index regclass) RETURNS void
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION gpuds_index_stats_reset(regclass) IS 'set the figures of an index in gpuds_stat_indexes to 0';

-- For everybody: what it shows are sums over all indexes.
CREATE FUNCTION gpuds_included_state(OUT stores bigint, OUT memory_total bigint, OUT memory_used bigint,
		OUT device_copies bigint, OUT device_memory_used bigint)
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

CREATE VIEW gpuds_included AS
	SELECT i.stores, i.memory_total, i.memory_used, i.device_copies, i.device_memory_used
	FROM gpuds_included_state() i;

GRANT SELECT ON gpuds_included TO PUBLIC;

-- For everybody: what it shows are sums over all tables.
CREATE FUNCTION gpuds_visibility_state(OUT memory_total bigint, OUT memory_used bigint, OUT pages bigint,
		OUT hits bigint, OUT made bigint, OUT stale bigint, OUT evicted bigint)
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

CREATE VIEW gpuds_visibility AS
	SELECT v.memory_total, v.memory_used, v.pages, v.hits, v.made, v.stale, v.evicted
	FROM gpuds_visibility_state() v;

GRANT SELECT ON gpuds_visibility TO PUBLIC;

-- ---------------------------------------------------------------------------
-- Graphs
--
-- The first two columns of an index are the vertices of edges.  What is said of lookups holds here.
-- ---------------------------------------------------------------------------

-- Not STRICT: what has a default may be null.
CREATE FUNCTION gpuds_neighbors(index regclass, vertices anyarray, weight_column name DEFAULT NULL)
	RETURNS TABLE (vertex anyelement, neighbor anyelement, weight double precision)
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000;

COMMENT ON FUNCTION gpuds_neighbors(regclass, anyarray, name) IS 'edges that lead out of vertices';

-- Not STRICT: what has a default may be null.
CREATE FUNCTION gpuds_bfs(index regclass, seeds anyarray, max_depth integer DEFAULT NULL, reverse_index regclass DEFAULT NULL,
		directed boolean DEFAULT true)
	RETURNS TABLE (vertex anyelement, depth integer, parent anyelement)
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000;

COMMENT ON FUNCTION gpuds_bfs(regclass, anyarray, integer, regclass, boolean) IS 'vertices that can be reached, breadth first';

-- Not STRICT: what has a default may be null.
CREATE FUNCTION gpuds_bfs_counts(index regclass, seeds anyarray, max_depth integer DEFAULT NULL,
		reverse_index regclass DEFAULT NULL, directed boolean DEFAULT true)
	RETURNS TABLE (depth integer, vertices bigint)
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000;

COMMENT ON FUNCTION gpuds_bfs_counts(regclass, anyarray, integer, regclass, boolean) IS
	'number of vertices that can be reached, by depth';

-- Not STRICT: what has a default may be null.
CREATE FUNCTION gpuds_shortest_path(index regclass, source anyelement, target anyelement, weight_column name DEFAULT NULL,
		reverse_index regclass DEFAULT NULL, directed boolean DEFAULT true, max_cost double precision DEFAULT NULL)
	RETURNS TABLE (step integer, vertex anyelement, cost double precision)
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000;

COMMENT ON FUNCTION gpuds_shortest_path(regclass, anyelement, anyelement, name, regclass, boolean, double precision) IS
	'vertices of a shortest path';

-- Not STRICT: what has a default may be null.
CREATE FUNCTION gpuds_shortest_paths(index regclass, sources anyarray, targets anyarray, weight_column name DEFAULT NULL,
		reverse_index regclass DEFAULT NULL, directed boolean DEFAULT true, max_cost double precision DEFAULT NULL)
	RETURNS TABLE (pair bigint, step integer, vertex anyelement, cost double precision)
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000;

COMMENT ON FUNCTION gpuds_shortest_paths(regclass, anyarray, anyarray, name, regclass, boolean, double precision) IS
	'vertices of the shortest paths of many pairs';

-- Vertices are returned as bigint, or as values of vertex_type, of which only the type counts.
-- Not STRICT: a function that materializes its rows says itself that there are none.
CREATE FUNCTION gpuds_degrees(index regclass)
	RETURNS TABLE (vertex bigint, out_degree bigint, in_degree bigint)
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000;

COMMENT ON FUNCTION gpuds_degrees(regclass) IS 'how many edges begin and end at each vertex';

-- Not STRICT: of vertex_type only the type counts.
CREATE FUNCTION gpuds_degrees(index regclass, vertex_type anyelement)
	RETURNS TABLE (vertex anyelement, out_degree bigint, in_degree bigint)
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000;

COMMENT ON FUNCTION gpuds_degrees(regclass, anyelement) IS
	'how many edges begin and end at each vertex';

-- Not STRICT: a function that materializes its rows says itself that there are none.
CREATE FUNCTION gpuds_components(index regclass)
	RETURNS TABLE (vertex bigint, component bigint)
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000;

COMMENT ON FUNCTION gpuds_components(regclass) IS 'the least vertex that each vertex is connected with';

-- Not STRICT: of vertex_type only the type counts.
CREATE FUNCTION gpuds_components(index regclass, vertex_type anyelement)
	RETURNS TABLE (vertex anyelement, component anyelement)
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000;

COMMENT ON FUNCTION gpuds_components(regclass, anyelement) IS
	'the least vertex that each vertex is connected with';

-- Not STRICT: a function that materializes its rows says itself that there are none.
CREATE FUNCTION gpuds_component_sizes(index regclass)
	RETURNS TABLE (component bigint, vertices bigint)
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000;

COMMENT ON FUNCTION gpuds_component_sizes(regclass) IS
	'the least vertex of each component, and how many it has';

-- Not STRICT: of vertex_type only the type counts.
CREATE FUNCTION gpuds_component_sizes(index regclass, vertex_type anyelement)
	RETURNS TABLE (component anyelement, vertices bigint)
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000;

COMMENT ON FUNCTION gpuds_component_sizes(regclass, anyelement) IS
	'the least vertex of each component, and how many it has';

CREATE FUNCTION gpuds_triangles(index regclass) RETURNS bigint
	AS 'MODULE_PATHNAME' LANGUAGE C STRICT STABLE PARALLEL RESTRICTED COST 1000;

COMMENT ON FUNCTION gpuds_triangles(regclass) IS 'number of triangles of a graph';

-- Not STRICT: a function that materializes its rows says itself that there are none.
CREATE FUNCTION gpuds_vertex_triangles(index regclass)
	RETURNS TABLE (vertex bigint, triangles bigint)
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000;

COMMENT ON FUNCTION gpuds_vertex_triangles(regclass) IS 'number of triangles that each vertex is in';

-- Not STRICT: of vertex_type only the type counts.
CREATE FUNCTION gpuds_vertex_triangles(index regclass, vertex_type anyelement)
	RETURNS TABLE (vertex anyelement, triangles bigint)
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000;

COMMENT ON FUNCTION gpuds_vertex_triangles(regclass, anyelement) IS
	'number of triangles that each vertex is in';

-- Not STRICT: a function that materializes its rows says itself that there are none.
CREATE FUNCTION gpuds_pagerank(index regclass, damping double precision DEFAULT 0.85,
		tolerance double precision DEFAULT 1e-6, max_iterations integer DEFAULT 100)
	RETURNS TABLE (vertex bigint, rank double precision)
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000;

COMMENT ON FUNCTION gpuds_pagerank(regclass, double precision, double precision, integer) IS
	'PageRank of each vertex; the sum is 1';

-- Not STRICT: of vertex_type only the type counts.
CREATE FUNCTION gpuds_pagerank(index regclass, vertex_type anyelement, damping double precision DEFAULT 0.85,
		tolerance double precision DEFAULT 1e-6, max_iterations integer DEFAULT 100)
	RETURNS TABLE (vertex anyelement, rank double precision)
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000;

COMMENT ON FUNCTION gpuds_pagerank(regclass, anyelement, double precision, double precision, integer) IS
	'PageRank of each vertex; the sum is 1';
