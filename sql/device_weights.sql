-- Paths of least cost, by the session's device, against the CPU device and plain SQL.
\set test test_device_weights
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude
SET client_min_messages = warning;
CREATE TABLE e (src int, dst int, w int, n numeric(9,2));
CREATE INDEX e_out ON e USING gpu_btree (src, dst) INCLUDE (w);
CREATE INDEX e_in ON e USING gpu_btree (dst DESC, src, w DESC);
CREATE INDEX n_out ON e USING gpu_btree (src, dst, n);

-- Pairs of vertices: few and many of one source, of a vertex with itself, with what is no vertex
CREATE VIEW pairs AS SELECT array_agg(s) AS s, array_agg(t) AS t FROM (
	SELECT 1 AS s, t FROM generate_series(-3, 20) t UNION ALL SELECT s, 70 - s FROM generate_series(8, 40) s
	UNION ALL VALUES (2, 2), (-99, -99), (-99, 2), (2, -99), (NULL, 1), (1, NULL)) x;
CREATE VIEW paths AS
	SELECT 'out' AS what, p.* FROM pairs, gpuds_shortest_paths('e_out', s, t, 'w') p
	UNION ALL SELECT 'ends', p.* FROM pairs, gpuds_shortest_paths('e_out', s, t, 'w', 'e_in') p
	UNION ALL SELECT 'either', p.* FROM pairs, gpuds_shortest_paths('e_out', t, s, 'w', 'e_in', false) p
	UNION ALL SELECT 'back', p.* FROM pairs, gpuds_shortest_paths('e_in', t, s, 'w', 'e_out') p
	UNION ALL SELECT 'most', p.* FROM pairs, gpuds_shortest_paths('e_out', s, t, 'w', max_cost => 40) p
	UNION ALL SELECT 'numbers', p.* FROM pairs, gpuds_shortest_paths('n_out', s, t, 'n') p
	UNION ALL SELECT 'few', p.* FROM pairs, gpuds_shortest_paths('n_out', s, t, 'n', max_cost => 30.5) p;
-- What they cost, whichever of several it is
CREATE VIEW answers AS SELECT what, pair, round(max(cost)::numeric, 6) AS cost FROM paths GROUP BY 1, 2;
-- Steps that are no edges of such a cost
CREATE VIEW strays AS
	SELECT what, pair FROM (SELECT *, lead(vertex) OVER v AS next, round((lead(cost) OVER v - cost)::numeric, 6) AS costs,
			lead(step, 1, step + 1) OVER v AS further FROM paths WINDOW v AS (PARTITION BY what, pair ORDER BY step)) p
	WHERE further <> step + 1 OR step = 0 AND cost <> 0 OR next IS NOT NULL AND NOT EXISTS (
		SELECT FROM e WHERE (src = vertex AND dst = next AND what <> 'back' OR src = next AND dst = vertex AND what IN ('back', 'either'))
			AND costs = CASE WHEN what IN ('numbers', 'few') THEN n ELSE w END);
-- The costs of all paths from a vertex, by plain SQL
CREATE FUNCTION plain(source int) RETURNS TABLE (vertex int, cost bigint) LANGUAGE plpgsql AS $$
BEGIN
	CREATE TEMP TABLE c ON COMMIT DROP AS SELECT source AS v, 0::bigint AS k;
	LOOP
		CREATE TEMP TABLE better ON COMMIT DROP AS SELECT dst AS v, min(k + w) AS k FROM c JOIN e ON src = v WHERE dst IS NOT NULL GROUP BY dst;
		DELETE FROM better b USING c WHERE c.v = b.v AND c.k <= b.k;
		IF NOT EXISTS (SELECT FROM better) THEN
			EXIT;
		END IF;
		DELETE FROM c USING better b WHERE c.v = b.v;
		INSERT INTO c SELECT * FROM better;
		DROP TABLE better;
	END LOOP;
	DROP TABLE better;
	RETURN QUERY SELECT * FROM c;
	DROP TABLE c;
END $$;
CREATE FUNCTION wrong() RETURNS TABLE (what text, wrong bigint) LANGUAGE plpgsql AS $$
DECLARE
	given text = current_setting('gpuds.device');
BEGIN
	CREATE TEMP TABLE device ON COMMIT DROP AS TABLE answers;
	SET LOCAL gpuds.device = cpu;
	CREATE TEMP TABLE cpu ON COMMIT DROP AS TABLE answers;
	PERFORM set_config('gpuds.device', given, true);
	RETURN QUERY SELECT x.what, count(*) FROM ((TABLE cpu EXCEPT ALL TABLE device) UNION ALL (TABLE device EXCEPT ALL TABLE cpu)) x GROUP BY 1;
	RETURN QUERY SELECT 'strays', count(*) FROM strays HAVING count(*) > 0;
	RETURN QUERY SELECT 'plain', count(*) FROM (SELECT t[pair] AS v, p.cost FROM pairs JOIN device p ON p.what = 'out' WHERE s[pair] = 1) d
		FULL JOIN (SELECT p.vertex AS v, p.cost FROM plain(1) p WHERE p.vertex BETWEEN -3 AND 20) p USING (v)
		WHERE d.cost <> p.cost OR (d.cost IS NULL OR p.cost IS NULL) AND v <> 1 HAVING count(*) > 0;
	DROP TABLE device, cpu;
END $$;
-- Weights from low to low + width - 1, with NULLs among the vertices
CREATE PROCEDURE fill(vertices int, edges int, low int, width int, seed float8) LANGUAGE sql AS $$
	SELECT setseed(seed);
	INSERT INTO e SELECT nullif((random() * random() * vertices)::int, 7), nullif((random() * vertices)::int, 9), w, w * 0.37
	FROM (SELECT low + (random() * random() * (width - 1))::int AS w, i FROM generate_series(1, edges) i) x $$;

-- nothing, NULLs, loops, one edge, equal edges of other weights
SELECT * FROM wrong();
INSERT INTO e VALUES (NULL, 1, 1, 1), (2, NULL, 1, 1), (NULL, NULL, NULL, NULL), (1, 1, 0, 0), (1, 1, 5, 5);
SELECT * FROM wrong();
INSERT INTO e VALUES (2147483647, -2147483648, 3, 3), (1, 2147483647, 4, 4), (1, 2147483647, 2, 2), (1, 5, 9, 9), (1, 5, 0, 0), (1, 5, 7, 7);
SELECT * FROM wrong();
-- weights from 1 on, sparse and dense, of rows that are visible to all and of others
CALL fill(5000, 4000, 1, 50, 0.1);
SELECT * FROM wrong();
CALL fill(300, 6000, 1, 90, 0.2);
VACUUM e;
SELECT * FROM wrong();
UPDATE e SET w = w + 3, n = n / 2 WHERE src % 40 = 0;
DELETE FROM e WHERE src % 50 = 3;
SELECT * FROM wrong();
-- many that cost nothing
UPDATE e SET w = 0, n = 0 WHERE dst % 3 = 0;
SELECT * FROM wrong();
VACUUM e;
SELECT * FROM wrong();
-- a transaction's own changes, and those that it has taken back
BEGIN;
DELETE FROM e WHERE src % 3 = 0;
SELECT * FROM wrong();
SAVEPOINT s;
CALL fill(800, 1000, 0, 9, 0.3);
SELECT * FROM wrong();
ROLLBACK TO s;
UPDATE e SET w = w + 1 WHERE dst % 4 = 0;
SELECT * FROM wrong();
ROLLBACK;
SELECT * FROM wrong();
-- an older snapshot
BEGIN ISOLATION LEVEL REPEATABLE READ;
CREATE TEMP TABLE before ON COMMIT DROP AS TABLE answers;
DECLARE c CURSOR FOR SELECT count(*) FROM ((TABLE answers EXCEPT ALL TABLE before) UNION ALL (TABLE before EXCEPT ALL TABLE answers)) x;
UPDATE e SET w = w + 2 WHERE src % 2 = 0;
FETCH c;
ROLLBACK;
-- a path that is longer than a device goes at a time
TRUNCATE e;
INSERT INTO e SELECT i, i + 1, i % 3, 0.01 FROM generate_series(1, 3000) i;
INSERT INTO e SELECT i, i + 1, 5, 0.01 FROM generate_series(1, 3000) i;
VACUUM e;
SELECT count(*), max(vertex), max(cost) FROM gpuds_shortest_path('e_out', 1, 2999, 'w');
SELECT count(*), max(vertex), round(max(cost)::numeric, 6) FROM gpuds_shortest_path('n_out', 1, 2999, 'n');
SELECT count(*) FROM gpuds_shortest_path('e_out', 2999, 1, 'w');
SELECT count(*) FROM gpuds_shortest_path('e_out', 1, 2999, 'w', max_cost => 2996);
SELECT count(*) FROM gpuds_shortest_path('e_out', 1, 2999, 'w', max_cost => 'NaN');
SELECT count(*) FROM gpuds_shortest_path('e_out', 1, 2999, 'w', max_cost => 'Infinity');
SELECT count(*) FROM gpuds_shortest_path('e_out', 1, 1, 'w', max_cost => -1);
-- weights that no path can have
INSERT INTO e VALUES (1500, 0, NULL, 'NaN');
SELECT count(*) FROM gpuds_shortest_path('e_out', 1, 2999, 'w');
SELECT count(*) FROM gpuds_shortest_path('n_out', 1, 2999, 'n');
UPDATE e SET w = -1, n = -1 WHERE dst = 0;
SELECT count(*) FROM gpuds_shortest_path('e_out', 1, 2999, 'w');
SELECT count(*) FROM gpuds_shortest_path('n_out', 1, 2999, 'n');
DELETE FROM e WHERE dst = 0;
SELECT count(*) FROM gpuds_shortest_path('e_out', 1, 2999, 'w');

-- Paths whose weights are as much, of which one is rounded to less
TRUNCATE e;
INSERT INTO e SELECT 1, -i, 0, 0.1 FROM generate_series(1, 60) i UNION ALL SELECT -i, 2, 0, 0.2 FROM generate_series(1, 60) i
	UNION ALL VALUES (1, 2, 0, 0.3);
VACUUM e;
SELECT * FROM gpuds_shortest_path('n_out', 1, 2, 'n', max_cost => 0.3);

-- Large weights, and those of other types; vertices of 64 bits leave no room for them
CREATE TABLE t (a smallint, b smallint, c bigint, d bigint, w bigint, r real, s smallint);
CREATE INDEX t_w ON t USING gpu_btree (a, b) INCLUDE (w);
CREATE INDEX t_r ON t USING gpu_btree (a, b) INCLUDE (r);
CREATE INDEX t_s ON t USING gpu_btree (c, d DESC) INCLUDE (s);
INSERT INTO t SELECT i, i + 1, i, i + 1, 9007199254740000 / 100, 0.5, i FROM generate_series(1, 200) i;
INSERT INTO t VALUES (1, 3, 1, 3, 9223372036854775807, 9, 7), (3, 4, 3, 4, 9223372036854775806, 0, 0);
VACUUM t;
SELECT count(*), max(cost) FROM gpuds_shortest_path('t_w', 1::smallint, 90::smallint, 'w');
SELECT count(*), max(cost) FROM gpuds_shortest_path('t_w', 1::smallint, 190::smallint, 'w');
SELECT count(*), max(cost) FROM gpuds_shortest_path('t_r', 1::smallint, 190::smallint, 'r');
SELECT count(*), max(cost) FROM gpuds_shortest_path('t_s', 1::bigint, 190::bigint, 's');
-- together too much for a device, though each end's part is not: both look at few edges at a time, as most cost little
TRUNCATE t;
INSERT INTO t (a, b, w) SELECT i % 500, i * 7919 % 503, 4503599627370496 FROM generate_series(1, 6000) i
	UNION ALL SELECT 1000 + i % 500, 1000 + i * 7919 % 503, 1 FROM generate_series(1, 8000) i;
VACUUM t;
SELECT count(DISTINCT pair), sum(cost) FROM
	gpuds_shortest_paths('t_w', array_fill(1::smallint, ARRAY[100]), (SELECT array_agg(i::smallint) FROM generate_series(1, 100) i), 'w');

SET client_min_messages = warning;
DROP SCHEMA :test CASCADE;
