-- Rows by the distances of points: ORDER BY point <-> point (GpudsNearest).
\set test test_nearest
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude
SET client_min_messages = warning;
SET gpuds.enable_nearest = on;

-- Points of numbers that are special, random ones, clusters far from each other, and many at the same places
CREATE TABLE numbers AS SELECT v::float8 AS v, row_number() OVER () AS n FROM unnest('{0,-0,1,-1,1e-6,1.000001,5e-324,-1e-310,inf,-inf,nan,1e154,
	12345.678,2}'::text[]) v;
CREATE FUNCTION random_of(i int, seed int) RETURNS float8 LANGUAGE sql IMMUTABLE AS
	'SELECT (hashint4extended(i, seed) & 1048575) / 1048575.0::float8';
CREATE TABLE t (id int, p point, note text) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT row_number() OVER (), point(a.v, b.v), 'special' FROM numbers a, numbers b;
INSERT INTO t SELECT 500 + row_number() OVER (), point(x * 5e-324::float8, y * 5e-324::float8), 'tiny' FROM generate_series(-9, 9) x, generate_series(-9, 9, 2) y;
INSERT INTO t SELECT 1000 + i, point(random_of(i, 1) * 200 - 100, random_of(i, 2) * 200 - 100) FROM generate_series(1, 1500) i;
INSERT INTO t SELECT 3000 + i, point(1e6 + random_of(i, 3), -1e9 - random_of(i, 4)) FROM generate_series(1, 300) i;
INSERT INTO t SELECT 4000 + i, point(i % 3, i % 5) FROM generate_series(1, 200) i;
INSERT INTO t VALUES (0, NULL), (-1, NULL), (-2, NULL);
CREATE INDEX t_p ON t USING gpu_btree (p);
CALL wait_for_snapshots();
VACUUM ANALYZE t;

-- Distances in order, and which rows they are of; of rows of one distance those before a LIMIT are anybody's
\set ECHO none
CREATE TABLE queries (query text, answer text);
INSERT INTO queries
	SELECT format('SELECT p <-> %1$L::point AS d, id FROM t ORDER BY p <-> %1$L::point LIMIT %2$s', point(a.v, b.v), 1 + (a.n * 7 + b.n * 5) % 23)
	FROM numbers a, numbers b WHERE (a.n * 3 + b.n * 5) % 4 = 0
	UNION ALL SELECT format('SELECT p <-> %1$L::point AS d, id FROM t WHERE %2$s ORDER BY %1$L::point <-> p LIMIT %3$s', c, condition, wanted)
	FROM (SELECT point(random_of(i, 5) * 300 - 150, random_of(i, 6) * 300 - 150) AS c FROM generate_series(1, 6) i
		UNION ALL VALUES (point '(1e6,-1e9)'), ('(2,4)'), ('(0,0)'), ('(-1e200,3)'), ('(1e300,1e300)'), ('(5e-324,-1e-323)')) c,
		unnest(ARRAY['true', 'id % 50 = 0', 'p <@ box ''(60,60),(-60,-60)''', 'note = ''special''', 'p IS NULL'], ARRAY[10, 20, 2000, 150, 2]) x (condition, wanted);
INSERT INTO queries VALUES
	('SELECT p <-> (SELECT NULL::point) AS d, id FROM t ORDER BY p <-> (SELECT NULL::point)'),
	('SELECT p <-> point(1, 1) AS d, id FROM t ORDER BY p <-> point(1, 1)'),
	('SELECT p <-> point(0, 0) AS d, id FROM t ORDER BY p <-> point(0, 0) LIMIT 330'),
	('SELECT p <-> point(1, 1) AS d, id FROM t ORDER BY p <-> point(1, 1) OFFSET 1990 LIMIT 500'),
	('SELECT p <-> point(1, 1) AS d, id FROM t ORDER BY p <-> point(1, 1), id DESC LIMIT 300'),
	('SELECT p <-> point(1, 1) AS d, id FROM t WHERE p <-> point(1, 1) < 20 ORDER BY p <-> point(1, 1), id LIMIT 300'),
	('SELECT x.d, 0 AS id FROM (SELECT point(v, n) AS c FROM numbers WHERE v BETWEEN -2 AND 20000 OFFSET 0) n,
		LATERAL (SELECT p <-> c AS d FROM t ORDER BY p <-> c LIMIT 7) x'),
	('SELECT (SELECT max(d) FROM (SELECT p <-> o.p AS d FROM t WHERE id <> o.id ORDER BY p <-> o.p LIMIT 3) x) AS d, id FROM t AS o WHERE id % 20 = 0 ORDER BY id');
CREATE FUNCTION nearest(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answer text;
BEGIN
	EXECUTE format('WITH q AS MATERIALIZED (SELECT d, id, row_number() OVER () AS n FROM (%s) x), last AS (SELECT d FROM q ORDER BY n DESC LIMIT 1)
		SELECT md5(string_agg(d::text, '','' ORDER BY n)) || md5(string_agg(id::text, '','' ORDER BY d, id) FILTER (WHERE d IS DISTINCT FROM (SELECT d FROM last)))
			|| count(*) || count(DISTINCT id) FROM q', query) INTO answer;
	RETURN coalesce(answer, 'none');
END $$;
CREATE FUNCTION right_nearest(query text) RETURNS text LANGUAGE plpgsql
SET enable_seqscan = on SET gpuds.enable_nearest = off SET enable_indexscan = off SET enable_bitmapscan = off SET enable_indexonlyscan = off
AS 'BEGIN RETURN nearest(query); END';
-- Those that are answered otherwise with and without the node
CREATE FUNCTION differ() RETURNS SETOF text LANGUAGE sql AS 'SELECT query FROM queries WHERE nearest(query) <> answer';
\set ECHO all
UPDATE queries SET answer = right_nearest(query);
SELECT count(*), count(DISTINCT answer) FROM queries;
SET enable_seqscan = off;
SET enable_sort = off;
SET enable_bitmapscan = off;
SELECT query FROM queries WHERE plan_of(query) NOT LIKE '%GpudsNearest%' AND query NOT LIKE '%<@%' AND query NOT LIKE '%p IS NULL%';
SELECT plan_of('SELECT id FROM t WHERE id > 5 ORDER BY p <-> point(1, 2) LIMIT 5');
SELECT plan_of('SELECT id FROM t ORDER BY point(1, 2) <-> p, id LIMIT 5');
SELECT differ();

-- For SERIALIZABLE, in squares of Z-order from the beginning
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT differ();
COMMIT;
-- Few of the entries near a ring are in it, or none; more points of one place than a square is looked at for
CREATE TABLE c (id int, p point) WITH (autovacuum_enabled = off);
INSERT INTO c SELECT i, point(10 + i * 1e-6, 10 + i % 141 * 1e-6) FROM generate_series(1, 20000) i;
INSERT INTO c SELECT 20000 + i, point(cos(i), sin(i)) FROM generate_series(1, 6) i;
INSERT INTO c SELECT 30000 + i, point(-3, -30) FROM generate_series(1, 600) i;
CREATE INDEX c_p ON c USING gpu_btree (p);
ANALYZE c;
CREATE TABLE far AS SELECT format('SELECT p <-> %1$L::point AS d, id FROM c ORDER BY p <-> %1$L::point LIMIT %2$s', point(x, y), wanted) AS query
	FROM unnest('{0,0.1,-1,9.99,1000}'::float8[]) x, unnest('{0,-0.2,10.0001,1e9}'::float8[]) y, unnest('{3,9,700,22000}'::int[]) wanted WHERE wanted < 1000 OR x = 0;
SELECT count(*), count(*) FILTER (WHERE plan_of(query) LIKE '%GpudsNearest%') FROM far;
SELECT query FROM far WHERE nearest(query) <> right_nearest(query);

-- Not these orders
SELECT query, plan_of(query) LIKE '%GpudsNearest%' FROM unnest(ARRAY['SELECT id FROM t ORDER BY p <-> point(1, 2) DESC LIMIT 5',
	'SELECT id FROM t ORDER BY p <-> point(1, 2) NULLS FIRST LIMIT 5', 'SELECT id FROM t ORDER BY -(p <-> point(1, 2)) LIMIT 5',
	'SELECT id FROM t ORDER BY p <-> box ''(1,1),(0,0)'' LIMIT 5', 'SELECT id FROM t ORDER BY p <-> point(id, 2) LIMIT 5',
	'SELECT id FROM t ORDER BY p <-> point(random(), 2) LIMIT 5', 'SELECT id FROM t ORDER BY id, p <-> point(1, 2) LIMIT 5',
	'SELECT id FROM t ORDER BY (p <-> point(1, 2)) USING >, id LIMIT 5', 'SELECT id FROM t ORDER BY p <-> p LIMIT 5',
	'SELECT id FROM t WHERE false ORDER BY p <-> point(1, 2) LIMIT 5']) query;
SET gpuds.enable_nearest = off;
SELECT plan_of('SELECT id FROM t ORDER BY p <-> point(1, 2) LIMIT 5') LIKE '%GpudsNearest%';
SET gpuds.enable_nearest = on;

-- By other indexes; of rows that a transaction has just made; of dead rows
DROP INDEX t_p;
CREATE INDEX t_p ON t USING gpu_skiplist (p DESC NULLS FIRST) INCLUDE (id);
SELECT plan_of('SELECT id FROM t ORDER BY p <-> point(1, 2) LIMIT 5');
SELECT differ();
BEGIN;
DELETE FROM t WHERE id % 3 = 0;
INSERT INTO t SELECT id + 10000, p + point(1, 0), 'new' FROM t WHERE id % 5 = 0;
UPDATE t SET p = p + point(0, 0.5) WHERE id % 7 = 0;
UPDATE t SET note = 'other' WHERE id % 11 = 0;
UPDATE queries SET answer = right_nearest(query);
SELECT differ();
COMMIT;
SELECT differ();
DROP INDEX t_p;
CREATE INDEX t_p ON t USING gpu_btree ((p + point(1, 1))) WHERE id > 2000;
SELECT plan_of('SELECT id FROM t WHERE id > 2000 ORDER BY (p + point(1, 1)) <-> point(1, 2) LIMIT 5');
SELECT nearest(query) = right_nearest(query)
FROM (VALUES ('SELECT (p + point(1, 1)) <-> point(1, 2) AS d, id FROM t WHERE id > 2000 ORDER BY (p + point(1, 1)) <-> point(1, 2) LIMIT 50')) v (query);
DROP INDEX t_p;
CREATE INDEX t_p ON t USING gpu_avl (p);
SELECT differ();
DROP INDEX t_p;
CREATE INDEX t_p ON t USING gpu_btree (p);

-- Parameters, cursors, rows that are locked and changed, joins
PREPARE near(point, int) AS SELECT array_agg(id) FROM (SELECT id FROM t WHERE id > 1000 AND id < 2500 ORDER BY p <-> $1 LIMIT $2) x;
SET plan_cache_mode = force_generic_plan;
SELECT plan_of('EXECUTE near(''(3,4)'', 9)');
CREATE TABLE near AS EXECUTE near('(3,4)', 9);
EXECUTE near(NULL, 0);
SET gpuds.enable_nearest = off;
CREATE TABLE near_too AS EXECUTE near('(3,4)', 9);
SET gpuds.enable_nearest = on;
SELECT count(*) FROM near NATURAL JOIN near_too;
SELECT plan_of('DECLARE d SCROLL CURSOR FOR SELECT p FROM t ORDER BY p <-> point(0, 0)');
SELECT plan_of('DECLARE d CURSOR FOR SELECT p FROM t ORDER BY p <-> point(0, 0)');
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT p FROM t WHERE p ~= '(0,0)' IS FALSE AND id BETWEEN 4001 AND 4015 ORDER BY p <-> point(0, 0.25);
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH LAST FROM c;
FETCH PRIOR FROM c;
DECLARE d CURSOR FOR SELECT p FROM t WHERE id BETWEEN 4001 AND 4015 ORDER BY p <-> point(0, 0.25);
FETCH 1 FROM d;
UPDATE t SET note = 'current' WHERE CURRENT OF d;
SELECT p FROM t WHERE note = 'current';
FETCH BACKWARD 1 FROM d;
ROLLBACK;
SELECT tableoid::regclass, (SELECT o.id FROM t o WHERE o.ctid = x.ctid) = id AS is_row, xmin IS NOT NULL AS has_xmin
FROM (SELECT tableoid, ctid, xmin, id FROM t ORDER BY p <-> point(50, 50) LIMIT 1) x;
SELECT plan_of('SELECT id FROM t WHERE note = ''new'' ORDER BY p <-> point(0, 0) LIMIT 3 FOR UPDATE');
SELECT id FROM t WHERE note = 'new' AND id % 10 = 5 ORDER BY p <-> point(50, 50) LIMIT 3 FOR UPDATE;
UPDATE t SET note = 'near' WHERE id IN (SELECT id FROM t WHERE id BETWEEN 1000 AND 2500 ORDER BY p <-> point(0, 0) LIMIT 20);
SELECT count(*) FROM t WHERE note = 'near';
SELECT plan_of('SELECT t.id FROM t JOIN numbers ON n = t.id ORDER BY p <-> point(0, 0) LIMIT 3') LIKE '%GpudsNearest%';

-- Tables with children are merged
CREATE TABLE parted (id int, p point, note text) PARTITION BY HASH (id);
CREATE TABLE parted_0 PARTITION OF parted FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE parted_1 (p point, note text, id int);
ALTER TABLE parted ATTACH PARTITION parted_1 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE INDEX parted_p ON parted USING gpu_btree (p);
INSERT INTO parted SELECT id, p, note FROM t;
CALL wait_for_snapshots();
VACUUM ANALYZE parted;
SELECT plan_of('SELECT id FROM parted ORDER BY p <-> point(1, 2) LIMIT 5');
UPDATE queries SET query = replace(query, 'FROM t ', 'FROM parted ');
UPDATE queries SET answer = right_nearest(query);
SELECT differ();

-- Rings of too many points end in their midst; points that are equal are no such ring
CREATE TABLE many (id int, p point) WITH (autovacuum_enabled = off);
INSERT INTO many SELECT i, point(random_of(i, 1), random_of(i, 2)) FROM generate_series(1, 15000) i;
INSERT INTO many SELECT i, point(0.75, 0.75) FROM generate_series(15001, 25000) i;
CREATE INDEX many_p ON many USING gpu_btree (p);
ANALYZE many;
DELETE FROM queries;
INSERT INTO queries SELECT format('SELECT p <-> %1$L::point AS d, id FROM many ORDER BY p <-> %1$L::point', c)
FROM unnest('{"(0,0)","(0.75,0.75)","(1e9,-20)","(nan,1)"}'::point[]) c;
UPDATE queries SET answer = right_nearest(query);
SELECT bool_and(plan_of(query) LIKE '%GpudsNearest%') FROM queries;
SET work_mem = '64kB';
SELECT differ();
RESET work_mem;
-- a sort is cheaper where all are wanted
RESET enable_sort;
RESET enable_seqscan;
SELECT query, plan_of(query) LIKE '%GpudsNearest%' FROM unnest(ARRAY['SELECT id FROM many ORDER BY p <-> point(0, 0)',
	'SELECT id FROM many ORDER BY p <-> point(0, 0) LIMIT 10', 'SELECT id FROM many WHERE id < 20 ORDER BY p <-> point(0, 0) LIMIT 10']) query;
SET enable_sort = off;
SET enable_seqscan = off;

-- Distances that are too large are core's error, if it comes to such a row and has not removed it
INSERT INTO t VALUES (9999, '(1.7e308,0)'), (9998, '(1.2e308,1.2e308)'), (9997, '(1e308,1e308)'), (9996, '(1.1e308,1.1e308)'), (9995, '(1e308,-1e308)'),
	(9994, '(1.2e308,0)');
SELECT count(*) FROM (SELECT id FROM t ORDER BY p <-> point(-1, 0) LIMIT 10) x;
SELECT count(*) FROM (SELECT id FROM t ORDER BY p <-> point(-1.7e308, 0)) x;
SELECT id, p <-> point(0, 0) FROM t WHERE id IN (9994, 9996, 9997, 9999) ORDER BY p <-> point(0, 0);
-- and infinity on PostgreSQL 19
CREATE FUNCTION distance_by(nearest text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	distance text;
BEGIN
	PERFORM set_config('gpuds.enable_nearest', nearest, true);
	EXECUTE 'SELECT p <-> point(-0.5e308, 0) FROM t WHERE id = 9997 ORDER BY p <-> point(-0.5e308, 0)' INTO distance;
	RETURN distance;
EXCEPTION WHEN numeric_value_out_of_range THEN
	RETURN 'too large';
END $$;
SELECT distance_by('on') = distance_by('off');

-- A policy's conditions are looked at first
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
ALTER TABLE t FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON t USING (id NOT BETWEEN 9000 AND 9999);
CREATE ROLE regress_nearest;
GRANT SELECT ON t TO regress_nearest;
GRANT USAGE ON SCHEMA test_nearest TO regress_nearest;
SET ROLE regress_nearest;
SELECT plan_of('SELECT p <-> point(-1.7e308, 0) FROM t WHERE p <-> point(-1.7e308, 0) > 0 ORDER BY p <-> point(-1.7e308, 0)');
SELECT count(*), max(d) FROM (SELECT p <-> point(-1.7e308, 0) AS d FROM t WHERE p <-> point(-1.7e308, 0) > 0 AND note = 'new' ORDER BY p <-> point(-1.7e308, 0)) x;
RESET ROLE;
DROP SCHEMA test_nearest CASCADE;
DROP ROLE regress_nearest;
