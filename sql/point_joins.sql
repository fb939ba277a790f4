-- Joins of points with boxes, circles and points that are the same, in batches (GpudsJoin).
\set test test_point_joins
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude
SET client_min_messages = warning;

-- Points of numbers that are special, random ones, and many at the same places; shapes of the same
CREATE TABLE numbers AS SELECT v::float8 AS v, row_number() OVER () AS n FROM unnest('{0,-0,1,-1,1e-6,-1e-6,1.000001,5e-324,-1e-310,inf,-inf,nan,1e154,
	12345.678,0.5,2}'::text[]) v;
CREATE FUNCTION random_of(i int, seed int) RETURNS float8 LANGUAGE sql IMMUTABLE AS
	'SELECT (hashint4extended(i, seed) & 1048575) / 1048575.0::float8';
CREATE TABLE t (id int, p point, note text) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT row_number() OVER (), point(a.v, b.v), 'special' FROM numbers a, numbers b;
INSERT INTO t SELECT 1000 + i, point(random_of(i, 1) * 200 - 100, random_of(i, 2) * 200 - 100), i FROM generate_series(1, 500) i;
INSERT INTO t SELECT 3000 + i, point(i % 3, i % 5) FROM generate_series(1, 200) i;
INSERT INTO t VALUES (0, NULL), (-1, NULL);
CREATE INDEX t_p ON t USING gpu_btree (p);
CREATE TABLE o (id int, b box, c circle, q point, n int) WITH (autovacuum_enabled = off);
INSERT INTO o SELECT i, box(point(px, py), point(px + size, py + size * 2)), circle(point(py, px), size), point(px, py), i % 7
	FROM (SELECT i, random_of(i, 3) * 220 - 110 AS px, random_of(i, 4) * 220 - 110 AS py, 10 ^ (random_of(i, 5) * 4 - 2.5) AS size
		FROM generate_series(1, 120) i) r;
INSERT INTO o SELECT 1000 + row_number() OVER (), box(point(a.v, b.v), point(b.v, c.v)), circle(point(a.v, c.v), abs(b.v)), point(c.v, b.v), 3
	FROM numbers a, numbers b, numbers c WHERE (a.n * 5 + b.n * 3 + c.n) % 71 = 0;
INSERT INTO o SELECT 2000 + i, box '(2,4),(0,0)', circle '<(1,1),1>', p, 1 FROM generate_series(1, 40) i, t WHERE t.id = 3001 + i;
INSERT INTO o VALUES (3000, NULL, NULL, NULL, 1), (3001, NULL, '<(0,0),0>', NULL, 2), (3002, '(Infinity,Infinity),(-Infinity,-Infinity)', NULL, '(NaN,NaN)', 3),
	(3003, '(1,1),(1,1)', '<(0,0),Infinity>', '(0,0)', 4), (3004, '(NaN,1),(0,NaN)', '<(0,0),NaN>', '(1,1)', 5);
CALL wait_for_snapshots();
VACUUM ANALYZE t, o;

CREATE TABLE queries (number serial, query text);
INSERT INTO queries (query) VALUES
	('SELECT o.id, t.id AS inner_id, note FROM o JOIN t ON t.p <@ o.b'),
	('SELECT o.id, encode(point_send(t.p), ''hex'') FROM o JOIN t ON o.b @> t.p'),
	('SELECT o.id, t.id AS inner_id FROM o JOIN t ON t.p <@ o.c'),
	('SELECT o.id, t.id AS inner_id FROM o JOIN t ON t.p ~= o.q'),
	('SELECT o.id, t.id AS inner_id FROM o JOIN t ON o.q ~= t.p WHERE o.n < 4 AND t.note IS NULL'),
	('SELECT o.id, t.id AS inner_id FROM o JOIN t ON t.p <@ box(o.q, o.q + point(0.5, n))'),
	('SELECT o.id, t.id AS inner_id FROM o JOIN t ON t.p <@ o.b AND t.p <@ o.c AND t.id % 7 >= o.n'),
	('SELECT o.id, t.id AS inner_id FROM o LEFT JOIN t ON t.p <@ o.b'),
	('SELECT o.id, t.id AS inner_id FROM o LEFT JOIN t ON t.p <@ o.b AND t.id % 7 = o.n'),
	('SELECT o.id, t.id AS inner_id FROM o LEFT JOIN t ON t.p <@ o.c WHERE t.id IS NULL OR t.id % 2 = 0'),
	('SELECT o.id FROM o WHERE EXISTS (SELECT FROM t WHERE t.p <@ o.b)'),
	('SELECT o.id FROM o WHERE EXISTS (SELECT FROM t WHERE t.p <@ o.b AND t.id % 7 = o.n)'),
	('SELECT o.id FROM o WHERE EXISTS (SELECT FROM t WHERE t.p <@ o.c AND t.note > ''5'')'),
	('SELECT o.id FROM o WHERE NOT EXISTS (SELECT FROM t WHERE t.p <@ o.b)'),
	('SELECT o.id FROM o WHERE NOT EXISTS (SELECT FROM t WHERE t.p <@ o.b AND t.id % 7 = o.n)'),
	('SELECT count(*) FROM o WHERE EXISTS (SELECT FROM t WHERE t.p <@ o.b)'),
	('SELECT count(*) FROM o WHERE NOT EXISTS (SELECT FROM t WHERE o.c @> t.p)'),
	('SELECT o.id, count(*) FROM o JOIN t ON t.p <@ o.b GROUP BY o.id'),
	('SELECT o.id, count(t.id) FROM o LEFT JOIN t ON t.p <@ o.b GROUP BY o.id'),
	('SELECT a.id, t.id AS inner_id FROM t a JOIN t ON t.p ~= a.p WHERE a.id > 2000'),
	('SELECT x.n, y.id FROM (SELECT n FROM numbers WHERE n < 4) x, LATERAL (SELECT o.id FROM o JOIN t ON t.p <@ o.b WHERE o.n = x.n OFFSET 0) y'),
	('SELECT o.id, t.id AS inner_id FROM o JOIN t ON t.p <@ o.b WHERE t.id < 2000 AND t.p <@ box ''(60,60),(-1,-60)'''),
	('SELECT o.id, x.id AS inner_id FROM o LEFT JOIN (SELECT p, id, 1 AS one FROM t) x ON x.p <@ o.b AND x.one = o.n'),
	-- points in up to 236 shapes of a batch
	('SELECT x.n, t.id FROM (SELECT n, box(point(0, 0), point(n, n)) AS b FROM generate_series(1, 300) n OFFSET 0) x JOIN t ON t.p <@ x.b'),
	('SELECT count(*) FROM o WHERE (SELECT count(*) FROM o i JOIN t ON t.p <@ i.b WHERE i.n = o.n) > 5');
ALTER TABLE queries ADD digest text;
UPDATE queries SET digest = right_digest_of(query, false);
CREATE FUNCTION differ() RETURNS SETOF text LANGUAGE sql AS 'SELECT query FROM queries WHERE digest_of(query, false) <> digest';
SELECT count(*), count(DISTINCT digest) > 18 FROM queries;

SET enable_seqscan = off;
SET enable_nestloop = off;
SET gpuds.enable_join = on;
SELECT query FROM queries WHERE plan_of(query) NOT LIKE '%GpudsJoin%';
SELECT plan_of(query) FROM queries WHERE number IN (1, 2, 5, 7);
SELECT differ();
-- Several batches, and shapes in parts that are not in one batch of intervals
SET work_mem = '64kB';
SELECT differ();
RESET work_mem;

-- By other indexes: descending, with an included column; of rows that a transaction has just made; of dead rows
DROP INDEX t_p;
CREATE INDEX t_p ON t USING gpu_skiplist (p DESC NULLS FIRST) INCLUDE (id);
SELECT plan_of('SELECT o.id, t.id FROM o JOIN t ON t.p <@ o.b WHERE t.id < 2000');
SELECT differ();
BEGIN;
DELETE FROM t WHERE id % 3 = 0;
INSERT INTO t SELECT id, q, 'new' FROM o WHERE id % 2 = 0;
UPDATE t SET p = p + point(1, 0) WHERE id % 5 = 0;
UPDATE queries SET digest = right_digest_of(query, false);
SELECT differ();
COMMIT;
SELECT differ();
DROP INDEX t_p;
CREATE INDEX t_p ON t USING gpu_btree ((p + point(0, 0)));
SELECT plan_of('SELECT o.id, t.id FROM o JOIN t ON t.p + point(0, 0) <@ o.b');
SELECT digest_of('SELECT o.id, t.id AS inner_id FROM o JOIN t ON t.p + point(0, 0) <@ o.b', false) =
	right_digest_of('SELECT o.id, t.id AS inner_id FROM o JOIN t ON t.p + point(0, 0) <@ o.b', false);
DROP INDEX t_p;
CREATE INDEX t_p ON t USING gpu_btree (p);

-- Rows are changed by such joins; parameters; cursors; parallel plans
UPDATE t SET note = o.id FROM o WHERE t.p <@ o.b AND o.id = 2003;
SELECT count(*) > 100 AND count(*) = (SELECT count(*) FROM t WHERE p <@ box '(2,4),(0,0)') FROM t WHERE note = '2003';
SELECT count(*) FROM (SELECT t.id FROM o JOIN t ON t.p <@ o.b WHERE o.id > 2000 FOR UPDATE OF t) x;
PREPARE near(float8) AS SELECT count(*) FROM o JOIN t ON t.p <@ circle(o.q, $1) WHERE o.id < 1000;
SET plan_cache_mode = force_generic_plan;
EXECUTE near(2);
EXECUTE near(NULL);
EXECUTE near(-1);
SET gpuds.enable_join = off;
SET enable_nestloop = on;
EXECUTE near(2);
EXECUTE near(NULL);
EXECUTE near(-1);
SET gpuds.enable_join = on;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET enable_seqscan = on;
SET enable_nestloop = off;
UPDATE queries SET digest = right_digest_of(query, false);
SELECT differ();
SET max_parallel_workers_per_gather = 0;
BEGIN;
DECLARE c CURSOR FOR SELECT o.id FROM o JOIN t ON t.p <@ o.b WHERE o.id = 2003 ORDER BY t.id;
FETCH 2 FROM c;
COMMIT;
-- Distances that are too large are core's error
INSERT INTO t VALUES (9999, '(1.7e308,0)');
SELECT count(*) FROM (VALUES (circle '<(-1.7e308,0),1.7e308>')) v (c) JOIN t ON t.p <@ v.c;
DELETE FROM t WHERE id = 9999;

DROP SCHEMA test_point_joins CASCADE;
