-- Functions over an index on the edges of a graph, compared with queries.
\set test test_graph_walks
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude
SET client_min_messages = warning;
DROP ROLE IF EXISTS regress_gpuds_walker;
RESET client_min_messages;

\set ECHO none
-- How many rows do two queries not share?
CREATE FUNCTION differ(a text, b text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	n bigint;
BEGIN
	EXECUTE format('SELECT count(*) FROM ((%1$s EXCEPT ALL %2$s) UNION ALL (%2$s EXCEPT ALL %1$s)) d',
		'(' || a || ')', '(' || b || ')') INTO n;
	RETURN n;
END $$;
\set ECHO all

-- About 60 vertices and 150 edges: loops, equal edges, NULLs, cycles, vertices that nothing leads to
CREATE TABLE edges (src bigint, dst bigint, km int);
INSERT INTO edges SELECT (i * 7919 % 61) - 30, (i * 104729 % 67) - 30, i % 10 FROM generate_series(1, 150) i;
INSERT INTO edges VALUES (1, 1, 4), (1, 1, 4), (2, NULL, 1), (NULL, 2, 1), (NULL, NULL, 1), (3, 4, NULL);
CREATE INDEX edges_out ON edges USING gpu_btree (src, dst) INCLUDE (km);
CREATE INDEX edges_in ON edges USING gpu_btree (dst DESC NULLS LAST, src) INCLUDE (km);

-- neighbours
CREATE VIEW neighbors AS SELECT src AS vertex, dst AS neighbor, km::float8 AS weight FROM edges
	WHERE src IS NOT NULL AND dst IS NOT NULL;
CREATE VIEW by_index AS SELECT * FROM gpuds_neighbors('edges_out', (SELECT array_agg(v) FROM generate_series(-40, 40) v)::bigint[], 'km');
SELECT differ('TABLE neighbors', 'TABLE by_index');
SELECT differ('SELECT neighbor, vertex, NULL::float8 FROM neighbors',
	$$SELECT * FROM gpuds_neighbors('edges_in', ARRAY(SELECT dst FROM edges))$$);
SELECT * FROM gpuds_neighbors('edges_out', '{1,NULL,1,99}'::bigint[]) WHERE neighbor = 1 \g (tuples_only=off footer=off)
SELECT * FROM gpuds_neighbors('edges_out', '{}'::bigint[]);

-- depths and costs, by recursive queries: of all pairs, as far as a limit
CREATE VIEW reached AS WITH RECURSIVE r AS (
	SELECT v AS vertex, 0 AS depth FROM generate_series(-3::bigint, 3) v
	UNION SELECT n.neighbor, r.depth + 1 FROM r JOIN neighbors n USING (vertex) WHERE r.depth < 5)
	SELECT vertex, min(depth) AS depth FROM r GROUP BY vertex;
CREATE VIEW costs AS WITH RECURSIVE r AS (
	SELECT v AS source, v AS vertex, 0::float8 AS cost FROM generate_series(-30::bigint, 36) v
	UNION SELECT r.source, n.neighbor, r.cost + n.weight FROM r JOIN neighbors n USING (vertex) WHERE r.cost + n.weight <= 9)
	SELECT source, vertex, min(cost) AS cost FROM r GROUP BY source, vertex;
CREATE VIEW pairs AS SELECT array_agg(s) AS sources, array_agg(t) AS targets
	FROM generate_series(-30::bigint, 36) s, generate_series(-30::bigint, 36) t;
CREATE VIEW bfs AS SELECT vertex, depth FROM gpuds_bfs('edges_out', '{-3,-2,-1,0,1,2,3,1,NULL}'::bigint[], 5);
CREATE FUNCTION ends(weight name, reverse regclass, directed bool, max_cost float8)
	RETURNS TABLE (source bigint, vertex bigint, cost float8) LANGUAGE sql AS $$
	SELECT sources[pair], (array_agg(p.vertex ORDER BY step DESC))[1], max(p.cost)
	FROM pairs, gpuds_shortest_paths('edges_out', sources, targets, weight, reverse, directed, max_cost) p GROUP BY pair, sources
$$;
UPDATE edges SET km = 7 WHERE km IS NULL;
SELECT differ('TABLE reached', 'TABLE bfs');
SELECT differ('TABLE costs', $$SELECT * FROM ends('km', NULL, true, 9)$$),
	differ('TABLE costs', $$SELECT * FROM ends('km', 'edges_in', true, 9)$$);

SELECT differ('SELECT depth, count(*) FROM reached GROUP BY 1',
	$$SELECT * FROM gpuds_bfs_counts('edges_out', '{-3,-2,-1,0,1,2,3,1,NULL}'::bigint[], 5)$$),
	differ('SELECT depth, count(*) FROM gpuds_bfs(''edges_in'', ''{5,99}''::bigint[], NULL, ''edges_out'', false) GROUP BY 1',
	$$SELECT * FROM gpuds_bfs_counts('edges_in', '{5,99}'::bigint[], NULL, 'edges_out', false)$$);
SELECT * FROM gpuds_bfs_counts('edges_out', '{}'::bigint[]);
SELECT * FROM gpuds_bfs_counts(NULL, '{1}'::bigint[]);

-- against their direction, and both ways, with parents and paths that are edges
SELECT differ('SELECT * FROM gpuds_bfs(''edges_out'', ''{5}''::bigint[], 3)', 'SELECT * FROM gpuds_bfs(''edges_out'', ''{5}''::bigint[])
	WHERE depth <= 3'),
	(SELECT count(*) FROM gpuds_bfs('edges_in', '{5}'::bigint[]) b JOIN gpuds_bfs('edges_in', '{5}'::bigint[]) p ON b.parent = p.vertex
		WHERE b.depth <> p.depth + 1 OR NOT EXISTS (SELECT FROM neighbors n WHERE n.vertex = b.vertex AND n.neighbor = p.vertex)) AS wrong;
CREATE VIEW both_ways AS SELECT vertex, neighbor, weight FROM neighbors UNION ALL SELECT neighbor, vertex, weight FROM neighbors;
SELECT count(*) AS wrong FROM (SELECT *, lead(vertex) OVER w AS next, lead(cost) OVER w - cost AS step_cost
	FROM pairs, gpuds_shortest_paths('edges_out', sources, targets, 'km', 'edges_in', false) WINDOW w AS (PARTITION BY pair ORDER BY step)) p
	WHERE next IS NOT NULL AND NOT EXISTS (SELECT FROM both_ways b
		WHERE b.vertex = p.vertex AND b.neighbor = next AND b.weight = step_cost);
SELECT differ($$SELECT 9::bigint, vertex, depth::float8 FROM gpuds_bfs('edges_out', '{9}'::bigint[], NULL, 'edges_in', false)
	WHERE vertex BETWEEN -30 AND 36$$, $$SELECT * FROM ends(NULL, 'edges_in', false, NULL) WHERE source = 9$$);
SELECT * FROM gpuds_shortest_path('edges_out', 99::bigint, 99::bigint);
SELECT * FROM gpuds_shortest_path('edges_out', 99::bigint, 1::bigint);

-- own changes, deletes and subtransactions
BEGIN;
INSERT INTO edges VALUES (1, 5, 100), (-7, -8, 3);
DELETE FROM edges WHERE km = 4;
SAVEPOINT s;
DELETE FROM edges WHERE km = 5;
INSERT INTO edges VALUES (1, 6, 100);
ROLLBACK TO s;
SELECT differ('TABLE neighbors', 'TABLE by_index'), differ('TABLE reached', 'TABLE bfs'),
	differ('TABLE costs', $$SELECT * FROM ends('km', 'edges_in', true, 9)$$);
ROLLBACK;
DELETE FROM edges WHERE km = 9;
SELECT differ('TABLE neighbors', 'TABLE by_index');
VACUUM edges;
SELECT differ('TABLE neighbors', 'TABLE by_index');

BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT count(*) > 0 FROM gpuds_bfs('edges_out', '{1}'::bigint[]);
SELECT relation::regclass, locktype FROM pg_locks WHERE mode = 'SIReadLock' ORDER BY 1;
COMMIT;

-- a long path; memory that is not enough
CREATE TABLE chain AS SELECT i AS src, i + 1 AS dst, 0.5::float8 AS km FROM generate_series(1, 3000) i;
CREATE INDEX chain_out ON chain USING gpu_btree (src, dst) INCLUDE (km);
SELECT count(*), max(step), max(cost) FROM gpuds_shortest_path('chain_out', 1, 3001, 'km');
BEGIN;
SET LOCAL gpuds.device = cpu;
SET LOCAL work_mem = 64;
SET LOCAL hash_mem_multiplier = 1;
SELECT count(*) FROM gpuds_bfs('chain_out', '{1}'::int[]);
ROLLBACK;

-- weights that no path can have
INSERT INTO chain VALUES (-1, -2, -1), (-3, -4, 'NaN'), (-5, -6, NULL), (-7, -8, 'Infinity');
SELECT * FROM gpuds_shortest_path('chain_out', -1, -2, 'km');
SELECT * FROM gpuds_shortest_path('chain_out', -3, -4, 'km');
SELECT * FROM gpuds_shortest_path('chain_out', -5, -6, 'km');
SELECT * FROM gpuds_shortest_path('chain_out', -7, -8, 'km');
SELECT * FROM gpuds_shortest_path('chain_out', -1, -2);

-- all types of vertices; weights in a key, of any type of number, beside entries
CREATE TABLE typed (a smallint, b smallint, c int, d int, e uuid, f uuid, g numeric(8,2), h real, i double precision);
INSERT INTO typed SELECT src, dst, src, dst, md5(src::text)::uuid, md5(dst::text)::uuid, km / 4.0, km / 4.0, km / 4.0
	FROM edges WHERE src IS NOT NULL OR km = 0;
CREATE INDEX typed_small ON typed USING gpu_skiplist (a DESC, b, g);
CREATE INDEX typed_int ON typed USING gpu_btree (c) INCLUDE (d, h);
CREATE INDEX typed_uuid ON typed USING gpu_btree (e) INCLUDE (f, i);
SELECT differ('SELECT a, b, g::float8 FROM typed WHERE a > 0 AND b IS NOT NULL',
	$$SELECT * FROM gpuds_neighbors('typed_small', ARRAY(SELECT a FROM typed WHERE a > 0), 'g')$$),
	differ('SELECT c, d, h::float8 FROM typed WHERE c > 0 AND d IS NOT NULL',
	$$SELECT * FROM gpuds_neighbors('typed_int', ARRAY(SELECT c FROM typed WHERE c > 0), 'h')$$),
	differ('SELECT e, f, i FROM typed WHERE c > 0 AND f IS NOT NULL',
	$$SELECT * FROM gpuds_neighbors('typed_uuid', ARRAY(SELECT e FROM typed WHERE c > 0), 'i')$$);

-- weights of more digits than double precision are rounded as by a cast
CREATE TABLE precise (src int, dst int, w numeric(18,4));
CREATE INDEX precise_out ON precise USING gpu_btree (src) INCLUDE (dst, w);
INSERT INTO precise SELECT 1, i, i * -98765432109.8767 FROM generate_series(-999, 999) i;
SELECT count(*) FROM precise JOIN gpuds_neighbors('precise_out', '{1}'::int[], 'w') ON neighbor = dst WHERE weight <> w::float8;

-- max_cost is for what is added up from the source on, wherever both sides meet
CREATE TABLE tenths (src int, dst int, w float8);
INSERT INTO tenths VALUES (1, 2, 0.1), (2, 3, 0.2), (3, 4, 0.3), (-1, -2, 0.3), (-2, -3, 0.2), (-3, -4, 0.1);
INSERT INTO tenths SELECT s, i, 0.5 FROM generate_series(5, 9) i, (VALUES (1), (-1)) v (s);
CREATE INDEX tenths_out ON tenths USING gpu_btree (src, dst) INCLUDE (w);
CREATE INDEX tenths_in ON tenths USING gpu_btree (dst, src) INCLUDE (w);
SELECT r, pair, max(cost) FROM (VALUES (NULL), ('tenths_in'::regclass)) v (r),
	gpuds_shortest_paths('tenths_out', '{1,-1,4}'::int[], '{4,-4,4}'::int[], 'w', r, true, 0.6) GROUP BY r, pair ORDER BY r, pair;

-- what is no index of edges, or has not all of them
CREATE INDEX lone ON edges USING gpu_btree (src);
CREATE INDEX other ON edges USING gpu_btree (src, km);
CREATE INDEX computed ON edges USING gpu_btree (src, (dst + 0));
CREATE INDEX partial ON edges USING gpu_btree (src, dst) WHERE km > 3;
CREATE INDEX core ON edges (src, dst);
CREATE TABLE parted (src bigint, dst bigint) PARTITION BY RANGE (src);
CREATE INDEX parted_out ON parted USING gpu_btree (src, dst);
CREATE TABLE parent (src bigint, dst bigint);
CREATE INDEX parent_out ON parent USING gpu_btree (src, dst);
CREATE TABLE child () INHERITS (parent);
SELECT * FROM gpuds_neighbors('lone', '{1}'::bigint[]);
SELECT * FROM gpuds_neighbors('other', '{1}'::bigint[]);
SELECT * FROM gpuds_neighbors('computed', '{1}'::bigint[]);
SELECT * FROM gpuds_neighbors('partial', '{1}'::bigint[]);
SELECT * FROM gpuds_neighbors('core', '{1}'::bigint[]);
SELECT * FROM gpuds_neighbors('parted_out', '{1}'::bigint[]);
SELECT * FROM gpuds_neighbors('parent_out', '{1}'::bigint[]);
DROP TABLE child;
SELECT * FROM gpuds_bfs('edges_out', '{1}'::bigint[], directed => false);
SELECT * FROM gpuds_shortest_path('edges_out', 1::bigint, 2::bigint, reverse_index => 'edges_out');
SELECT * FROM gpuds_shortest_paths('edges_out', '{1}'::bigint[], '{}'::bigint[]);
SELECT * FROM gpuds_neighbors('parent_out', '{1}'::bigint[]);
SELECT * FROM gpuds_neighbors('edges_out', '{1}'::int[]);
SELECT * FROM gpuds_neighbors('edges_out', '{1}'::bigint[], 'length');
SELECT * FROM gpuds_neighbors('typed_uuid', '{}'::uuid[], 'f');

-- patterns of as many edges as a query says: each hop is a join by its index
CREATE TABLE towns (id bigint, name text);
INSERT INTO towns SELECT i, 'town ' || i FROM generate_series(-30, 30) i;
INSERT INTO towns VALUES (NULL, 'nowhere'), (1, 'another 1');
CREATE INDEX towns_id ON towns USING gpu_btree (id);
VACUUM ANALYZE edges, towns;
\set ECHO none
CREATE FUNCTION hops(query text) RETURNS text LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_nestloop = off SET gpuds.enable_join = on AS $$
BEGIN
	RETURN (SELECT count(*) FROM regexp_matches(plan_of(query), 'GpudsJoin', 'g')) || ' joins, '
		|| CASE WHEN digest_of(query, false) = right_digest_of(query, false) THEN 'right' ELSE 'wrong' END;
END $$;
\set ECHO all
SELECT hops('SELECT c.name, d.dst FROM towns a JOIN edges b ON b.src = a.id JOIN towns c ON c.id = b.dst JOIN edges d ON d.src = c.id WHERE a.name < ''town 2''');
SELECT hops('SELECT b.src, d.src, f.dst FROM edges b JOIN edges d ON d.src = b.dst JOIN edges f ON f.src = d.dst WHERE b.km > 5 AND f.km < 7');
SELECT hops('SELECT b.src, count(*), sum(d.km) FROM edges b JOIN edges d ON d.dst = b.src WHERE b.src <> d.src GROUP BY b.src');
SELECT hops('SELECT b.src, d.src, f.src FROM edges b JOIN edges d ON d.src = b.dst JOIN edges f ON f.src = d.dst AND f.dst = b.src');
BEGIN;
DELETE FROM edges WHERE km = 3;
INSERT INTO edges SELECT i, i + 1, 8 FROM generate_series(-30, 30) i;
SELECT hops('SELECT b.src, d.src, f.dst FROM edges b JOIN edges d ON d.src = b.dst JOIN edges f ON f.src = d.dst WHERE b.km > 5 AND f.km < 7');
ROLLBACK;

-- privileges on each column, and row security
CREATE ROLE regress_gpuds_walker;
GRANT USAGE ON SCHEMA test_graph_walks TO regress_gpuds_walker;
GRANT SELECT (src) ON edges TO regress_gpuds_walker;
SET ROLE regress_gpuds_walker;
SELECT count(*) FROM gpuds_neighbors('edges_out', '{1}'::bigint[]);
RESET ROLE;
GRANT SELECT (dst) ON edges TO regress_gpuds_walker;
SET ROLE regress_gpuds_walker;
SELECT count(*) > 0 FROM gpuds_neighbors('edges_out', '{1}'::bigint[]);
SELECT count(*) FROM gpuds_neighbors('edges_out', '{1}'::bigint[], 'km');
RESET ROLE;
ALTER TABLE edges ENABLE ROW LEVEL SECURITY;
SET ROLE regress_gpuds_walker;
SELECT count(*) FROM gpuds_neighbors('edges_out', '{1}'::bigint[]);
RESET ROLE;

SET client_min_messages = warning;
DROP SCHEMA test_graph_walks CASCADE;
DROP ROLE regress_gpuds_walker;
