-- Functions over graphs, by the session's device, against the CPU device and plain SQL.
\set test test_device_graph
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude
SET client_min_messages = warning;
CREATE TABLE e (src int, dst int);
CREATE INDEX e_out ON e USING gpu_btree (src, dst);
CREATE INDEX e_in ON e USING gpu_btree (dst DESC, src);

-- Pairs of vertices: few and many of one source, of a vertex with itself, with what is no vertex
CREATE VIEW pairs AS SELECT array_agg(s) AS s, array_agg(t) AS t FROM (
	SELECT 1 AS s, t FROM generate_series(-3, 40) t UNION ALL SELECT s, 70 - s FROM generate_series(8, 60) s
	UNION ALL VALUES (2, 2), (-99, -99), (-99, 2), (2, -99), (NULL, 1), (1, NULL)) x;
-- What the functions say, in a form that does not depend on which of several parents a walk has come from
CREATE VIEW answers AS
	SELECT 'triangles' AS what, gpuds_triangles('e_out') AS a, 0::bigint AS b, 0 AS c
	UNION ALL SELECT 'components', vertex, component, 0 FROM gpuds_components('e_out')
	UNION ALL SELECT 'sizes', component, vertices, 0 FROM gpuds_component_sizes('e_out')
	UNION ALL SELECT 'against', vertex, component, 0 FROM gpuds_components('e_in')
	UNION ALL SELECT 'degrees', vertex, out_degree, in_degree::int FROM gpuds_degrees('e_out')
	UNION ALL SELECT 'turned', vertex, in_degree, out_degree::int FROM gpuds_degrees('e_in')
	UNION ALL SELECT 'bfs', vertex, NULL, depth FROM gpuds_bfs('e_out', '{1,2,NULL,2,-99}'::int[])
	UNION ALL SELECT 'three', vertex, NULL, depth FROM gpuds_bfs('e_out', '{1,5,77}'::int[], 3)
	UNION ALL SELECT 'both', vertex, NULL, depth FROM gpuds_bfs('e_out', '{3}'::int[], NULL, 'e_in', false)
	UNION ALL SELECT 'back', vertex, NULL, depth FROM gpuds_bfs('e_in', '{4}'::int[], 40)
	UNION ALL SELECT 'counts', vertices, NULL, depth FROM gpuds_bfs_counts('e_out', '{1,2,NULL,2,-99}'::int[])
	UNION ALL SELECT 'few', vertices, NULL, depth FROM gpuds_bfs_counts('e_out', '{3,4}'::int[], 2, 'e_in', false)
	UNION ALL SELECT 'paths', pair, NULL, max(step) FROM pairs, gpuds_shortest_paths('e_out', s, t) GROUP BY pair
	UNION ALL SELECT 'either', pair, NULL, max(step) FROM pairs, gpuds_shortest_paths('e_out', t, s, NULL, 'e_in', false) GROUP BY pair
	UNION ALL SELECT 'short', pair, NULL, max(step) FROM pairs, gpuds_shortest_paths('e_out', s, t, reverse_index => 'e_in', max_cost => 3.5)
		GROUP BY pair;
-- A vertex that a walk has reached has a parent of the depth before, from which an edge leads to it.
CREATE VIEW orphans AS
	WITH w AS MATERIALIZED (SELECT * FROM gpuds_bfs('e_out', '{1,2}'::int[]))
	SELECT * FROM w WHERE (depth = 0) <> (parent IS NULL) OR depth > 0 AND NOT EXISTS (
		SELECT FROM e JOIN w p ON p.vertex = e.src WHERE e.src = w.parent AND e.dst = w.vertex AND p.depth = w.depth - 1);
-- Steps of paths that are no edges, and ends that were not asked for; counts that are not those of a walk
CREATE VIEW strays AS
	SELECT pair::text FROM (SELECT *, lead(vertex) OVER w AS next, lead(step, 1, step + 1) OVER w AS further,
			min(step) OVER w AS least, last_value(vertex) OVER (w ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS last
		FROM pairs, gpuds_shortest_paths('e_out', s, t) WINDOW w AS (PARTITION BY pair ORDER BY step)) p
	WHERE cost <> step OR further <> step + 1 OR step = least AND (least > 0 OR vertex <> s[pair]) OR last <> t[pair]
		OR next IS NOT NULL AND NOT EXISTS (SELECT FROM e WHERE src = vertex AND dst = next)
	UNION ALL SELECT 'counts' FROM gpuds_bfs_counts('e_out', '{1,5}'::int[]) c
	FULL JOIN (SELECT depth, count(*) FROM gpuds_bfs('e_out', '{1,5}'::int[]) GROUP BY 1) w USING (depth) WHERE vertices IS DISTINCT FROM count;
CREATE VIEW ranks AS SELECT * FROM gpuds_pagerank('e_out', tolerance => 0, max_iterations => 40);
CREATE FUNCTION wrong() RETURNS TABLE (what text, wrong bigint) LANGUAGE plpgsql AS $$
DECLARE
	given text = current_setting('gpuds.device');
BEGIN
	CREATE TEMP TABLE device ON COMMIT DROP AS TABLE answers;
	CREATE TEMP TABLE rank_device ON COMMIT DROP AS TABLE ranks;
	SET LOCAL gpuds.device = cpu;
	CREATE TEMP TABLE cpu ON COMMIT DROP AS TABLE answers;
	CREATE TEMP TABLE rank_cpu ON COMMIT DROP AS TABLE ranks;
	PERFORM set_config('gpuds.device', given, true);
	RETURN QUERY SELECT x.what, count(*) FROM ((TABLE cpu EXCEPT ALL TABLE device) UNION ALL (TABLE device EXCEPT ALL TABLE cpu)) x GROUP BY 1;
	RETURN QUERY SELECT 'orphans', count(*) FROM orphans HAVING count(*) > 0;
	RETURN QUERY SELECT 'strays', count(*) FROM strays HAVING count(*) > 0;
	RETURN QUERY SELECT 'ranks', count(*) FROM rank_cpu c FULL JOIN rank_device d USING (vertex)
		WHERE abs(c.rank - d.rank) < 1e-13 IS NOT TRUE HAVING count(*) > 0;
	DROP TABLE device, cpu, rank_device, rank_cpu;
END $$;
CREATE PROCEDURE fill(vertices int, edges int, seed float8) LANGUAGE sql AS $$
	SELECT setseed(seed);
	INSERT INTO e SELECT nullif((random() * random() * vertices)::int, 7), nullif((random() * vertices)::int, 9) FROM generate_series(1, edges) $$;

-- nothing, NULLs, loops, one edge
SELECT * FROM wrong();
INSERT INTO e VALUES (NULL, 1), (2, NULL), (NULL, NULL), (1, 1), (1, 1);
SELECT * FROM wrong();
INSERT INTO e VALUES (2147483647, -2147483648), (1, 2147483647);
SELECT * FROM wrong();
-- sparse and dense, rows that are visible to all, and some that are not
CALL fill(20000, 15000, 0.1);
SELECT * FROM wrong();
CALL fill(300, 20000, 0.2);
VACUUM e;
SELECT * FROM wrong();
UPDATE e SET dst = dst + 1 WHERE src % 40 = 0;
DELETE FROM e WHERE src % 50 = 3;
SELECT * FROM wrong();
-- a transaction's own changes, and those that it has taken back
BEGIN;
DELETE FROM e WHERE src % 3 = 0;
SELECT * FROM wrong();
SAVEPOINT s;
CALL fill(800, 1000, 0.3);
SELECT * FROM wrong();
ROLLBACK TO s;
SELECT * FROM wrong();
ROLLBACK;
SELECT * FROM wrong();
-- an older snapshot
BEGIN ISOLATION LEVEL REPEATABLE READ;
CREATE TEMP TABLE before ON COMMIT DROP AS TABLE answers;
DECLARE c CURSOR FOR SELECT count(*) FROM ((TABLE answers EXCEPT ALL TABLE before) UNION ALL (TABLE before EXCEPT ALL TABLE answers)) x;
DELETE FROM e WHERE src % 2 = 0;
FETCH c;
ROLLBACK;
-- a path that is longer than a device goes at a time, and seeds that no edge begins at
TRUNCATE e;
INSERT INTO e SELECT i, i + 1 FROM generate_series(1, 2000) i;
VACUUM e;
SELECT * FROM wrong();
SELECT max(depth), count(*), count(DISTINCT parent) FROM gpuds_bfs('e_out', '{1,2001,5000}'::int[]);
SELECT max(depth), count(*) FROM gpuds_bfs('e_out', '{1}'::int[], 777);
SELECT count(*), max(component) FROM gpuds_components('e_out');
SELECT count(*), max(vertex), max(cost) FROM gpuds_shortest_path('e_out', 1, 1999);
SELECT pair, count(*), max(cost) FROM gpuds_shortest_paths('e_out', '{5,5,5,5,5,5,7,7}'::int[], '{600,4,5,2001,305,306,407,408}'::int[], max_cost => 300)
	GROUP BY 1 ORDER BY 1;
-- the complete graph of 60 vertices
TRUNCATE e;
INSERT INTO e SELECT a, b FROM generate_series(1, 60) a, generate_series(1, 60) b;
SELECT gpuds_triangles('e_out') = 60 * 59 * 58 / 6;

-- The ends of other types; a target that is not in the key; vertices of two words
CREATE TABLE t (a smallint, b smallint, c bigint, d bigint, u uuid, v uuid);
CREATE INDEX t_ab ON t USING gpu_btree (a DESC, b DESC);
CREATE INDEX t_cd ON t USING gpu_btree (c, d);
CREATE INDEX t_side ON t USING gpu_btree (c) INCLUDE (d);
CREATE INDEX t_uv ON t USING gpu_btree (u) INCLUDE (v);
INSERT INTO t SELECT a, b, c, d, lpad(to_hex(a + 32768), 32, '0')::uuid, lpad(to_hex(b + 32768), 32, '0')::uuid
FROM (VALUES (-32768, 32767, 9223372036854775807, -9223372036854775808), (32767, 0, -9223372036854775808, 0),
	(0, -32768, 0, 9223372036854775807), (5, 6, 5, 6), (8, 8, -1, -1)) x (a, b, c, d);
VACUUM t;
SELECT gpuds_triangles('t_ab'), gpuds_triangles('t_cd'), gpuds_triangles('t_side'), gpuds_triangles('t_uv');
SELECT * FROM gpuds_components('t_ab') ORDER BY 1;
SELECT * FROM gpuds_components('t_cd') ORDER BY 1;
SELECT * FROM gpuds_bfs('t_ab', '{0}'::smallint[]) ORDER BY 2;
SELECT * FROM gpuds_bfs('t_cd', '{9223372036854775807}'::bigint[]) ORDER BY 2;
SELECT * FROM gpuds_bfs('t_cd', '{-1}'::bigint[]) ORDER BY 2;
SELECT * FROM gpuds_shortest_path('t_ab', 32767::smallint, 32767::smallint);
SELECT * FROM gpuds_shortest_path('t_ab', 32767::smallint, '-32768'::smallint);

SET client_min_messages = warning;
DROP SCHEMA :test CASCADE;
