-- Functions on all edges of a graph: degrees, components, triangles, PageRank, against plain SQL.
\set test test_graph_whole
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude
SET client_min_messages = warning;
CREATE TABLE e (src int, dst int);
CREATE INDEX e_i ON e USING gpu_btree (src, dst);

-- What the functions should say
CREATE VIEW edge AS SELECT src, dst FROM e WHERE src IS NOT NULL AND dst IS NOT NULL;
CREATE VIEW vertex AS SELECT src AS v FROM edge UNION SELECT dst FROM edge;
CREATE VIEW pair AS SELECT DISTINCT least(src, dst) AS a, greatest(src, dst) AS b FROM edge WHERE src <> dst;
CREATE VIEW triangle AS SELECT x.a, x.b, y.b AS c FROM pair x JOIN pair y ON y.a = x.b JOIN pair z ON z.a = x.a AND z.b = y.b;
CREATE VIEW degrees (vertex, out_degree, in_degree) AS
	SELECT v::bigint, (SELECT count(*) FROM edge WHERE src = v), (SELECT count(*) FROM edge WHERE dst = v) FROM vertex;
CREATE VIEW components AS
	WITH RECURSIVE reached (v, w) AS (
		SELECT v, v FROM vertex
		UNION SELECT v, CASE WHEN src = w THEN dst ELSE src END FROM reached JOIN edge ON w IN (src, dst))
	SELECT v::bigint, min(w)::bigint FROM reached GROUP BY v;
CREATE VIEW component_sizes AS SELECT min, count(*) FROM components GROUP BY 1;
CREATE VIEW triangles AS SELECT count(*) FROM triangle;
CREATE VIEW vertex_triangles AS SELECT v::bigint, (SELECT count(*) FROM triangle WHERE v IN (a, b, c)) FROM vertex;

\set ECHO none
-- Which functions say something else?  PageRank is right if one more iteration changes nothing.
CREATE FUNCTION wrong() RETURNS SETOF text LANGUAGE plpgsql
	SET gpuds.enable_aggregate = off SET gpuds.enable_join = off SET gpuds.enable_scan = off
	SET enable_indexscan = off SET enable_indexonlyscan = off SET enable_bitmapscan = off AS $$
DECLARE
	name text;
	bad bigint;
BEGIN
	FOREACH name IN ARRAY ARRAY['degrees', 'components', 'component_sizes', 'triangles', 'vertex_triangles'] LOOP
		EXECUTE format('SELECT count(*) FROM ((TABLE %1$s EXCEPT ALL SELECT * FROM gpuds_%1$s(''e_i'')) UNION ALL
			(SELECT * FROM gpuds_%1$s(''e_i'') EXCEPT ALL TABLE %1$s)) x', name) INTO bad;
		IF bad > 0 THEN RETURN NEXT name; END IF;
	END LOOP;
	CREATE TEMP TABLE p ON COMMIT DROP AS SELECT r.*, (SELECT count(*) FROM edge WHERE src = vertex) AS out
		FROM gpuds_pagerank('e_i', tolerance => 1e-13, max_iterations => 1000) r;
	SELECT count(*) INTO bad FROM p CROSS JOIN (SELECT count(*) AS n, sum(rank) AS sum, coalesce(sum(rank) FILTER (WHERE out = 0), 0) AS lost FROM p) s
	WHERE abs(sum - 1) > 1e-9 OR abs(p.rank - (0.15 + 0.85 * lost) / n -
		0.85 * coalesce((SELECT sum(q.rank / q.out) FROM edge JOIN p q ON q.vertex = src WHERE dst = p.vertex), 0)) > 1e-11;
	IF bad > 0 OR (SELECT count(*) FROM p) <> (SELECT count(*) FROM vertex) THEN RETURN NEXT 'pagerank'; END IF;
	DROP TABLE p;
END $$;
CREATE PROCEDURE fill(vertices int, edges int, seed float8) LANGUAGE sql AS $$
	SELECT setseed(seed);
	INSERT INTO e SELECT nullif((random() * vertices)::int, 7) - vertices / 2,
		nullif((random() * random() * vertices)::int, 7) - vertices / 2 FROM generate_series(1, edges) $$;
\set ECHO all

-- no edge, one vertex, NULLs only
SELECT * FROM wrong();
INSERT INTO e VALUES (NULL, 1), (2, NULL), (NULL, NULL);
SELECT * FROM wrong();
SELECT * FROM gpuds_degrees('e_i');
INSERT INTO e VALUES (5, 5), (5, 5);
SELECT * FROM wrong();
SELECT * FROM gpuds_degrees('e_i'), gpuds_components('e_i'), gpuds_vertex_triangles('e_i'), gpuds_pagerank('e_i');
-- sparse, dense, with duplicates and loops
CALL fill(60, 40, 0.1);
SELECT * FROM wrong();
CALL fill(30, 300, 0.2);
SELECT * FROM wrong();
VACUUM e;
SELECT * FROM wrong();
-- a transaction's own changes, and those that it has taken back
BEGIN;
DELETE FROM e WHERE src % 3 = 0;
SELECT * FROM wrong();
SAVEPOINT s;
CALL fill(80, 100, 0.3);
SELECT * FROM wrong();
ROLLBACK TO s;
UPDATE e SET dst = dst + 1 WHERE dst % 5 = 0;
SELECT * FROM wrong();
ROLLBACK;
SELECT * FROM wrong();
DELETE FROM e WHERE src % 2 = 0;
SELECT * FROM wrong();
-- a snapshot, by a cursor
BEGIN;
DECLARE c CURSOR FOR SELECT count(*), sum(out_degree) = (SELECT count(*) FROM edge) FROM gpuds_degrees('e_i');
CREATE TEMP TABLE before ON COMMIT DROP AS SELECT count(*) FROM vertex;
DELETE FROM e;
FETCH c;
SELECT * FROM before;
SELECT * FROM gpuds_components('e_i');
ROLLBACK;

-- Types of vertices: as they are, or integers as bigint
CREATE TABLE typed (a smallint, b smallint, c uuid, d uuid);
CREATE INDEX typed_ab ON typed USING gpu_btree (a, b);
CREATE INDEX typed_cd ON typed USING gpu_btree (c) INCLUDE (d);
INSERT INTO typed SELECT a, b, ('00000000-0000-0000-0000-00000000000' || -a)::uuid, ('f0000000-0000-0000-0000-00000000000' || -b)::uuid
FROM (VALUES (-1, -2), (-2, -3), (-4, -4)) v (a, b);
SELECT *, pg_typeof(component) FROM gpuds_components('typed_ab') ORDER BY 1;
SELECT *, pg_typeof(component) FROM gpuds_components('typed_ab', NULL::smallint) ORDER BY 1;
SELECT gpuds_pagerank('typed_ab', vertex_type => NULL::int);
SELECT gpuds_degrees('typed_cd');
SELECT * FROM gpuds_component_sizes('typed_cd', NULL::uuid) ORDER BY 1;

-- Arguments
SELECT * FROM gpuds_degrees(NULL);
SELECT gpuds_triangles(NULL) IS NULL;
SELECT gpuds_pagerank('e_i', damping => 1.5);
SELECT gpuds_pagerank('e_i', tolerance => 'NaN');
SELECT gpuds_pagerank('e_i', max_iterations => 0);
SELECT gpuds_pagerank('e_i', damping => NULL);
SET client_min_messages = notice;
SELECT count(*) > 0 FROM gpuds_pagerank('e_i', tolerance => 0, max_iterations => 1);
SET client_min_messages = warning;

-- Memory is bounded, for vertices and for edges, where a device does not keep them
TRUNCATE e;
INSERT INTO e SELECT i, i + 1 FROM generate_series(1, 20000) i;
SELECT component, count(*) FROM gpuds_components('e_i') GROUP BY 1;
SET gpuds.device = cpu;
SET work_mem = '64kB';
SET hash_mem_multiplier = 2;
\set VERBOSITY terse
SELECT count(*) FROM gpuds_components('e_i');
\set VERBOSITY default
TRUNCATE e;
INSERT INTO e SELECT i % 100, i % 101 FROM generate_series(1, 50000) i;
SELECT count(*) FROM gpuds_components('e_i');
SELECT gpuds_triangles('e_i');
SELECT gpuds_pagerank('e_i');
RESET work_mem;
RESET gpuds.device;
SELECT gpuds_triangles('e_i') = (TABLE triangles);

-- Who may not see the edges
CREATE ROLE regress_graph_whole;
GRANT USAGE ON SCHEMA :test TO regress_graph_whole;
GRANT SELECT (src) ON e TO regress_graph_whole;
SET ROLE regress_graph_whole;
SELECT gpuds_triangles('e_i');
RESET ROLE;
GRANT SELECT (dst) ON e TO regress_graph_whole;
SET ROLE regress_graph_whole;
SELECT count(*) FROM gpuds_degrees('e_i');
RESET ROLE;
ALTER TABLE e ENABLE ROW LEVEL SECURITY;
SET ROLE regress_graph_whole;
SELECT gpuds_components('e_i');
RESET ROLE;
DROP OWNED BY regress_graph_whole;
DROP ROLE regress_graph_whole;
