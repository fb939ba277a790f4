-- Points in Z-order: boxes, circles, points that are the same, and arrays of them.
\set test test_points
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude
SET client_min_messages = warning;

-- All pairs of numbers that are special somewhere; random points, and many that are close to each other.
CREATE TABLE numbers AS SELECT v::float8 AS v, row_number() OVER () AS n FROM unnest('{0,-0,1,-1,1e-6,-1e-6,1.000001,0.999999,5e-324,-5e-324,
	1e-310,inf,-inf,nan,1e154,-1e154,1.7976931348623157e308,-1.7976931348623157e308,12345.678,0.5,2,2.000001}'::text[]) v;
CREATE FUNCTION random_of(i int, seed int) RETURNS float8 LANGUAGE sql IMMUTABLE AS
	'SELECT (hashint4extended(i, seed) & 1048575) / 1048575.0::float8';
CREATE TABLE t (id int, p point) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT row_number() OVER (), point(a.v, b.v) FROM numbers a, numbers b
WHERE a.v NOT IN ('1.7976931348623157e308', '-1.7976931348623157e308') OR abs(b.v) < 1e300; -- others are too far from anything for core
INSERT INTO t SELECT 1000 + i, point(random_of(i, 1) * 200 - 100, random_of(i, 2) * 200 - 100) FROM generate_series(1, 1000) i;
INSERT INTO t SELECT 5000 + i, point(50 + random_of(i, 3) * 1e-5, 50 + random_of(i, 4) * 1e-5) FROM generate_series(1, 300) i;
INSERT INTO t VALUES (0, NULL), (-1, NULL);
CREATE INDEX t_p ON t USING gpu_btree (p);
CALL wait_for_snapshots();
VACUUM ANALYZE t;
SELECT gpuds_index_check('t_p', true);

-- Conditions: boxes and circles between the special numbers, and random ones of all sizes
CREATE TABLE conditions AS
	SELECT format('p <@ box %L', box(point(a.v, b.v), point(c.v, d.v))) AS condition
	FROM numbers a, numbers b, numbers c, numbers d WHERE (a.n * 7 + b.n * 5 + c.n * 3 + d.n) % 2401 = 0
	UNION SELECT format('p <@ circle %L', circle(point(a.v, b.v), abs(c.v)))
	FROM numbers a, numbers b, numbers c WHERE (a.n * 7 + b.n * 5 + c.n) % 171 = 0
	UNION SELECT format('p ~= point %L', point(a.v, b.v)) FROM numbers a, numbers b WHERE (a.n * 3 + b.n) % 17 = 0;
INSERT INTO conditions
	SELECT format(x.form, point(px, py), size) FROM (SELECT i, random_of(i, 5) * 220 - 110 AS px, random_of(i, 6) * 220 - 110 AS py,
		10 ^ (random_of(i, 7) * 6 - 3) AS size FROM generate_series(1, 25) i) r,
		unnest(ARRAY['p <@ circle(point %L, %s)', 'box(point %1$L, point %1$L + point(%2$s, %2$s / 2)) @> p']) x (form);
INSERT INTO conditions
	SELECT format('p <@ box(point(50, 50), point(50, 50) + point(%s, %s))', random_of(i, 8) * 1e-5, random_of(i, 9) * 1e-5) FROM generate_series(1, 10) i
	UNION ALL SELECT format('p ~= %L', p) FROM t WHERE id % 300 = 0 AND p IS NOT NULL;
CREATE TABLE boxes AS SELECT box(point(px, py), point(px + size, py + size)) AS b
	FROM (SELECT random_of(i, 10) * 200 - 100 AS px, random_of(i, 11) * 200 - 100 AS py, random_of(i, 12) * 8 AS size FROM generate_series(1, 200) i) r;
INSERT INTO conditions VALUES ($$p <@ ANY ((SELECT array_agg(b) FROM boxes)::box[])$$), ($$p <@ ANY ('{(1,1),(0,0);NULL;(0.5,2),(0,1)}'::box[])$$),
	($$p <@ ANY ('{(100,1),(-100,0.5);(100,50.000001),(-100,50);(60,0.7),(-60,-5)}'::box[])$$), ($$p <@ ANY ('{}'::box[])$$), ($$p <@ ANY ('{NULL}'::box[])$$), ($$p ~= ANY ('{"(0,0)","(NaN,1)",NULL,"(inf,-inf)"}'::point[])$$),
	($$p <@ ANY ('{"<(0,0),1>","<(2,2),1.5>","<(50,50),0.000005>"}'::circle[])$$), ($$p <@ NULL::box$$),
	($$p <@ box '(40,40),(-40,-40)' AND p <@ circle '<(30,0),20>' AND p <@ ANY ('{(35,35),(0,-35);(60,1),(-60,-1)}'::box[])$$),
	-- many, some of them equal, some within others
	($$p <@ ANY ((SELECT array_agg(box(point(-i % 70, -i % 70), point(i % 70, i % 35))) FROM generate_series(1, 300, 7) i)::box[])$$),
	($$p <@ ANY ((SELECT array_agg(circle(b)) || array_agg(circle(center(b), 1e-5)) || circle '<(-60,60),30>' FROM boxes)::circle[])$$),
	($$p <@ ANY ((SELECT array_agg(box(point(a.v, b.v), point(b.v, c.v))) FROM numbers a, numbers b, numbers c WHERE (a.n + b.n + c.n) % 31 = 0)::box[])$$),
	($$p <@ ANY ((SELECT array_agg(box(q, q)) FROM (SELECT p AS q FROM t WHERE id % 3 = 0) x)::box[])$$),
	($$p IS NULL OR p <@ box '(1,1),(0,0)'$$), ($$p IS NOT NULL AND p <@ box '(1,1),(0,0)'$$), ($$p IS NULL AND p <@ box '(1,1),(0,0)'$$);

-- An answer is the ids and the points with their bytes; or that core raises an error, of rows that an index need not look at
CREATE FUNCTION answer(tab text, columns text, condition text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r text;
BEGIN
	EXECUTE format('SELECT md5(coalesce(string_agg(x, '';'' ORDER BY x), '''')) FROM (SELECT %s AS x FROM %s WHERE %s) q', columns, tab, condition) INTO r;
	RETURN r;
EXCEPTION WHEN numeric_value_out_of_range THEN RETURN NULL;
END $$;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SET enable_bitmapscan = off;
CREATE TABLE answers AS SELECT condition, answer('t', 'id || encode(point_send(p), ''hex'')', condition) AS whole,
	answer('t', 'encode(point_send(p), ''hex'')', condition) AS points, answer('t', 'count(*)::text', condition) AS number FROM conditions;
CREATE FUNCTION differ(tab text) RETURNS SETOF text LANGUAGE sql AS $$
	SELECT condition FROM answers
	WHERE whole <> coalesce(answer(tab, 'id || encode(point_send(p), ''hex'')', condition), 'error')
		OR points <> coalesce(answer(tab, 'encode(point_send(p), ''hex'')', condition), 'error')
		OR number <> coalesce(answer(tab, 'count(*)::text', condition), 'error') $$;
SELECT count(*), count(whole) > 120, count(DISTINCT whole) > 80 FROM answers;
SET enable_seqscan = off;
RESET enable_bitmapscan;
SELECT differ('t');
RESET enable_indexscan;
RESET enable_indexonlyscan;
SET enable_bitmapscan = off;
SELECT plan_of('SELECT id FROM t WHERE p <@ circle ''<(0,0),1>''');
SELECT plan_of('SELECT p FROM t WHERE box ''(1,1),(0,0)'' @> p');
SELECT differ('t');
SET gpuds.enable_scan = on;
SET gpuds.enable_aggregate = on;
SELECT plan_of('SELECT count(*) FROM t WHERE p <@ ANY (''{(1,1),(0,0);(3,3),(2,2)}''::box[])');
SELECT differ('t');

-- The same rows by other indexes, and as they come
CREATE TABLE u (LIKE t, b bool) WITH (autovacuum_enabled = off);
CREATE INDEX u_p ON u USING gpu_skiplist (p DESC NULLS FIRST) INCLUDE (id);
INSERT INTO u SELECT * FROM t WHERE id % 2 = 0;
SELECT gpuds_index_load('u_p');
SELECT plan_of('SELECT id FROM u WHERE p <@ box ''(1,1),(0,0)''');
BEGIN;
INSERT INTO u SELECT * FROM t WHERE id % 2 <> 0;
SELECT differ('u');
ROLLBACK;
INSERT INTO u SELECT * FROM t WHERE id % 2 <> 0;
DROP INDEX u_p;
CREATE INDEX u_p ON u USING gpu_btree ((p + point '(0,0)'));
SELECT plan_of('SELECT id FROM u WHERE p + point ''(0,0)'' <@ box ''(1,1),(0,0)''');
SELECT count(*), sum(id) FROM u WHERE p + point '(0,0)' <@ box '(1,1),(0,0)';
SELECT count(*), sum(id) FROM t WHERE p <@ box '(1,1),(0,0)';
DROP INDEX u_p;
CREATE INDEX u_p ON u USING gpu_btree (p);
CLUSTER u USING u_p;
SELECT differ('u');

-- Parameters, joins with boxes
PREPARE inside(box) AS SELECT count(*) FROM t WHERE p <@ $1;
SET plan_cache_mode = force_generic_plan;
EXECUTE inside('(10,10),(0,0)');
EXECUTE inside(NULL);
SELECT count(*), sum(id) FROM boxes JOIN t ON p <@ b;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SET enable_seqscan = on;
SET gpuds.enable_scan = off;
SET gpuds.enable_aggregate = off;
SELECT count(*) FROM t WHERE p <@ box '(10,10),(0,0)';
SELECT count(*), sum(id) FROM boxes JOIN t ON p <@ b;
RESET enable_indexscan;
RESET enable_indexonlyscan;

-- No order, no equality
SELECT count(*) FROM (SELECT p FROM t WHERE p <@ box '(1,1),(0,0)' ORDER BY p <-> point '(0,0)' LIMIT 3) x;
SELECT gpuds_count('t_p', NULL::point, NULL), (SELECT count(p) FROM t);
SELECT gpuds_count('t_p', point '(0,0)', NULL);
SELECT gpuds_contains('t_p', ARRAY[point '(0,0)']);
CREATE TABLE once (p point, EXCLUDE USING gpu_btree (p WITH ~=));
INSERT INTO once VALUES ('1,1'), ('1,1.00001'), (NULL), (NULL), ('NaN,1');
INSERT INTO once VALUES ('1.0000005,1');
INSERT INTO once VALUES ('NaN,1');
INSERT INTO once VALUES ('1,1.00003');
CREATE INDEX ON u USING gpu_btree (p, id);
CREATE INDEX ON u USING gpu_btree (b, p);
CREATE OPERATOR CLASS wrong FOR TYPE point USING gpu_btree AS OPERATOR 6 ~=, OPERATOR 8 <<;
SET client_min_messages = info;
SELECT amvalidate(oid) FROM pg_opclass WHERE opcname = 'wrong';
CREATE INDEX ON t USING gpu_btree (p wrong);
CREATE OPERATOR CLASS far FOR TYPE int USING gpu_btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, OPERATOR 6 <>;
CREATE INDEX ON t USING gpu_btree (id far);
DROP OPERATOR CLASS far USING gpu_btree;
DROP OPERATOR FAMILY far USING gpu_btree;
CREATE FUNCTION far(point, box) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT NOT $1 <@ $2';
CREATE OPERATOR <@@ (FUNCTION = far, LEFTARG = point, RIGHTARG = box);
CREATE OPERATOR CLASS far FOR TYPE point USING gpu_btree AS OPERATOR 8 <@@ (point, box);
SELECT amvalidate(oid) FROM pg_opclass WHERE opcname = 'far';
CREATE INDEX ON t USING gpu_btree (p far);
SET client_min_messages = warning;
-- Distances that are too large are core's error
SET enable_seqscan = off;
SELECT count(*) FROM t WHERE p <@ circle '<(-1.7e308,0),1.7e308>';

DROP SCHEMA test_points CASCADE;
