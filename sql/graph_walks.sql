-- Functions over an index on the edges of a graph, compared with queries.
\set test test_graph_walks
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude
SET client_min_messages = warning;
DROP ROLE IF EXISTS regress_gpuds_walker;
RESET client_min_messages;

-- How many rows do two queries not share?
CREATE FUNCTION differ(a text, b text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	n bigint;
BEGIN
	EXECUTE format('SELECT count(*) FROM ((%1$s EXCEPT ALL %2$s) UNION ALL (%2$s EXCEPT ALL %1$s)) d',
		'(' || a || ')', '(' || b || ')') INTO n;
	RETURN n;
END $$;

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
SELECT * FROM gpuds_neighbors('edges_out', '{1,NULL,1,99}'::bigint[]) WHERE neighbor = 1;
SELECT * FROM gpuds_neighbors('edges_out', '{}'::bigint[]);

-- own changes, deletes and subtransactions
BEGIN;
INSERT INTO edges VALUES (1, 5, 100), (-7, -8, 3);
DELETE FROM edges WHERE km = 4;
SAVEPOINT s;
DELETE FROM edges WHERE km = 5;
INSERT INTO edges VALUES (1, 6, 100);
ROLLBACK TO s;
SELECT differ('TABLE neighbors', 'TABLE by_index');
ROLLBACK;
DELETE FROM edges WHERE km = 9;
SELECT differ('TABLE neighbors', 'TABLE by_index');
VACUUM edges;
SELECT differ('TABLE neighbors', 'TABLE by_index');

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
SELECT * FROM gpuds_neighbors('parent_out', '{1}'::bigint[]);
SELECT * FROM gpuds_neighbors('edges_out', '{1}'::int[]);
SELECT * FROM gpuds_neighbors('edges_out', '{1}'::bigint[], 'length');
SELECT * FROM gpuds_neighbors('typed_uuid', '{}'::uuid[], 'f');

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
