-- GpudsJoin as a right semijoin: rows of a table that have a match, by the keys of the other side.
\set test test_batch_semi
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

CREATE TABLE t (id int, k int, a smallint, b bigint, u uuid, v int, note text) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, nullif(i % 1500, 7), i % 10, i % 900, md5((i % 1000)::text)::uuid, i % 100, 'note ' || i
FROM generate_series(1, 6000) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
CREATE INDEX t_a_b ON t USING gpu_btree (a, b DESC);
CREATE INDEX t_u ON t USING gpu_btree (u);
CREATE INDEX t_expr ON t USING gpu_btree ((v + 1));
VACUUM ANALYZE t;
CREATE TABLE o (id int, k int, s smallint, b bigint, u uuid) WITH (autovacuum_enabled = off);
INSERT INTO o SELECT i, nullif(i * 3 % 900, 6), i % 30, CASE i WHEN 5 THEN 5000000000 ELSE i % 400 END, md5((i % 1200)::text)::uuid
FROM generate_series(1, 2000) i;
INSERT INTO o SELECT NULL, NULL FROM generate_series(1, 50);
VACUUM ANALYZE o;
-- more keys than 64 kB hold
CREATE TABLE keys (k int, n int) WITH (autovacuum_enabled = off);
INSERT INTO keys SELECT i % 40000 - 20000, i FROM generate_series(1, 60000) i;
VACUUM ANALYZE keys;

\set ECHO none
-- The answer by GpudsJoin, whether it is a right semijoin, and without.
CREATE FUNCTION semi(query text, memory text DEFAULT '4MB') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	right_answer text := right_digest_of(query, false);
	answer text;
	plan text;
BEGIN
	PERFORM set_config('gpuds.enable_join', 'on', true), set_config('enable_hashjoin', 'off', true),
		set_config('enable_mergejoin', 'off', true), set_config('enable_nestloop', 'off', true),
		set_config('work_mem', memory, true);
	plan := plan_of(query);
	answer := digest_of(query, false);
	PERFORM set_config('gpuds.enable_join', 'off', true), set_config('enable_hashjoin', 'on', true),
		set_config('enable_mergejoin', 'on', true), set_config('enable_nestloop', 'on', true),
		set_config('work_mem', '4MB', true);
	IF answer <> right_answer THEN
		RETURN answer || ', right: ' || right_answer || E'\n' || plan;
	END IF;
	RETURN split_part(answer, ' rows', 1) || ' rows, ' || coalesce(lower(substring(plan FROM 'Join Type: ([^\n]+)'))
		|| ', columns from ' || lower(substring(plan FROM 'Inner Columns From: (\w+)')), 'no GpudsJoin');
END $$;
\set ECHO all

SET gpuds.enable_join = on;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_nestloop = off;
EXPLAIN (COSTS OFF, VERBOSE) SELECT count(*) FROM t WHERE k IN (SELECT k FROM o);
EXPLAIN (COSTS OFF, VERBOSE) SELECT t.note FROM t WHERE (a, b) IN (SELECT s, b FROM o) AND v < 50;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT k FROM t WHERE k IN (SELECT k FROM o);
SELECT node_of('SELECT id FROM t WHERE k IN (SELECT k FROM o)');
-- what is locked or changed may be looked at again, with the outer row
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE k IN (SELECT k FROM o) FOR UPDATE OF t;
EXPLAIN (COSTS OFF) DELETE FROM t WHERE k IN (SELECT k FROM o);
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_nestloop;
SET gpuds.enable_join = off;

-- duplicates on both sides, NULLs, columns from the index, from the heap, and none
SELECT semi('SELECT FROM t WHERE k IN (SELECT k FROM o)');
SELECT semi('SELECT k FROM t WHERE k IN (SELECT k FROM o)');
SELECT semi('SELECT * FROM t WHERE k IN (SELECT k FROM o)');
SELECT semi('SELECT * FROM t WHERE k = ANY (SELECT k FROM o WHERE id < 100) AND v <> 3');
SELECT semi('SELECT * FROM t WHERE EXISTS (SELECT FROM o WHERE o.k = t.k AND o.s > 3)');
SELECT semi('SELECT k FROM t WHERE k IN (SELECT NULL::int FROM o)');
SELECT semi('SELECT k FROM t WHERE k IN (SELECT k FROM o WHERE id < 0)');
SELECT semi('SELECT count(*), sum(v) FROM t WHERE k IN (SELECT k FROM keys)');
-- types, several columns, expressions
SELECT semi('SELECT id FROM t WHERE k IN (SELECT s FROM o)');
SELECT semi('SELECT id FROM t WHERE k IN (SELECT b FROM o)');
SELECT semi('SELECT id FROM t WHERE u IN (SELECT u FROM o)');
SELECT semi('SELECT id FROM t WHERE (a, b) IN (SELECT s, b FROM o)');
SELECT semi('SELECT id FROM t WHERE (b, a) IN (SELECT b, s FROM o)');
SELECT semi('SELECT a, b FROM t WHERE a = 3 AND b IN (SELECT k FROM o)');
SELECT semi('SELECT id FROM t WHERE v + 1 IN (SELECT s FROM o)');
SELECT semi('SELECT id FROM t WHERE k IN (SELECT k + s FROM o)');
SELECT semi('SELECT id FROM t WHERE k IN (SELECT abs(k) FROM o)');
-- sides that are joins, and semijoins in joins
SELECT semi('SELECT id FROM t WHERE k IN (SELECT o.k FROM o JOIN keys ON keys.n = o.id)');
SELECT semi('SELECT t.id, p.n FROM t JOIN keys p ON p.n = t.id WHERE t.k IN (SELECT k FROM o)');
SELECT semi('SELECT t.id, p.id FROM t JOIN o p ON p.id = t.id WHERE (t.k, p.s) IN (SELECT k, s FROM o)');
SELECT semi('SELECT p.id, x.id FROM o p LEFT JOIN (SELECT * FROM t WHERE k IN (SELECT k FROM o)) x ON x.id = p.id');
SELECT semi('SELECT id FROM t WHERE k IN (SELECT k FROM t WHERE v < 3)');
-- no right semijoins
SELECT semi('SELECT id FROM t WHERE k IN (SELECT k FROM o WHERE o.s > t.v)');
SELECT semi('SELECT id FROM t WHERE (k, v) IN (SELECT k, s FROM o)');
SELECT semi('SELECT id FROM t WHERE k NOT IN (SELECT k FROM o WHERE k IS NOT NULL)');

-- keys that do not fit in memory; few keys that are many rows
SELECT semi('SELECT k FROM t WHERE k IN (SELECT k FROM keys)', '64kB');
SELECT semi('SELECT * FROM t WHERE k IN (SELECT k FROM keys)', '64kB');
SELECT semi('SELECT * FROM t WHERE k IN (SELECT k % 300 FROM keys)', '64kB');
SELECT semi('SELECT id FROM t WHERE (a, b) IN (SELECT k % 20, k % 700 FROM keys)', '64kB');
SELECT semi('SELECT id FROM t WHERE u IN (SELECT md5(k::text)::uuid FROM keys)', '64kB');

-- rows that the map does not know of
BEGIN;
DELETE FROM t WHERE id % 3 = 0;
UPDATE t SET k = k + 1 WHERE id % 7 = 0;
UPDATE t SET note = 'again' WHERE id % 5 = 0;
INSERT INTO t (id, k) SELECT i, i FROM generate_series(1, 500) i;
SELECT semi('SELECT k FROM t WHERE k IN (SELECT k FROM o)');
SELECT semi('SELECT * FROM t WHERE k IN (SELECT k FROM o)');
SELECT semi('SELECT count(*) FROM t WHERE k IN (SELECT k FROM o)', '64kB');
ROLLBACK;

-- rows that are locked or changed
BEGIN;
SET LOCAL gpuds.enable_join = on;
SELECT count(*) FROM (SELECT FROM t WHERE k IN (SELECT k FROM o) FOR UPDATE OF t) q;
UPDATE t SET v = -1 WHERE k IN (SELECT k FROM o);
DELETE FROM t WHERE k IN (SELECT k FROM o) AND v = -1;
SET LOCAL gpuds.enable_join = off;
SELECT count(*) FILTER (WHERE v = -1), count(*) FROM t;
SELECT count(*) FROM t WHERE k IN (SELECT k FROM o);
ROLLBACK;

-- prepared, rescanned with parameters, in cursors, with LIMIT, with an error in the outer plan
SET gpuds.enable_join = on;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_nestloop = off;
SET plan_cache_mode = force_generic_plan;
PREPARE p (int) AS SELECT count(*), sum(v) FROM t WHERE k IN (SELECT k FROM o WHERE s = $1);
EXECUTE p (3);
EXECUTE p (NULL);
EXECUTE p (0);
RESET plan_cache_mode;
EXPLAIN (COSTS OFF) SELECT g, (SELECT sum(v) FROM t WHERE k IN (SELECT k FROM o WHERE o.s = g)) FROM generate_series(1, 4) g;
SELECT g, (SELECT sum(v) FROM t WHERE k IN (SELECT k FROM o WHERE o.s = g)) FROM generate_series(1, 4) g;
SET work_mem = '64kB';
SELECT g, (SELECT sum(v) FROM t WHERE k IN (SELECT k FROM keys WHERE n % 2 < g)) FROM generate_series(0, 2) g;
BEGIN;
DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT k FROM t WHERE k IN (SELECT k FROM keys WHERE n > 20000);
DECLARE d CURSOR FOR SELECT k FROM t WHERE k IN (SELECT k FROM keys);
SAVEPOINT s;
MOVE 100 FROM d;
ROLLBACK TO s;
MOVE 5000 FROM d;
MOVE ALL FROM c;
MOVE BACKWARD 10 FROM c;
CLOSE d;
COMMIT;
MOVE 5 FROM c;
CLOSE c;
RESET work_mem;
SELECT count(*) FROM (SELECT k FROM t WHERE k IN (SELECT k FROM o) LIMIT 5) q;
SELECT k FROM t WHERE k IN (SELECT 1 / (id - 500) FROM o);
SELECT g, (SELECT sum(v) FROM t WHERE k IN (SELECT k FROM o WHERE o.s = g)) FROM generate_series(1, 4) g;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_nestloop;
SET gpuds.enable_join = off;
SELECT g, (SELECT sum(v) FROM t WHERE k IN (SELECT k FROM o WHERE o.s = g)) FROM generate_series(1, 4) g;
SELECT g, (SELECT sum(v) FROM t WHERE k IN (SELECT k FROM keys WHERE n % 2 < g)) FROM generate_series(0, 2) g;
SELECT count(*), sum(v) FROM t WHERE k IN (SELECT k FROM o WHERE s = 3);
SELECT count(*), sum(v) FROM t WHERE k IN (SELECT k FROM o WHERE s = 0);

-- other joins of which nothing is wanted but the inner side
SET gpuds.enable_join = on;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_nestloop = off;
SELECT count(*), sum(t.v) FROM o JOIN t ON t.k = o.k;
SELECT count(*), count(t.v) FROM o LEFT JOIN t ON t.k = o.k;
SELECT count(*) FROM o WHERE EXISTS (SELECT FROM t WHERE t.k = o.k);
SELECT count(*) FROM o WHERE NOT EXISTS (SELECT FROM t WHERE t.k = o.k);
SELECT count(*) FROM o WHERE EXISTS (SELECT FROM t WHERE t.k = o.k AND t.v > 50);
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_nestloop;
SET gpuds.enable_join = off;
SELECT count(*), sum(t.v) FROM o JOIN t ON t.k = o.k;
SELECT count(*), count(t.v) FROM o LEFT JOIN t ON t.k = o.k;
SELECT count(*) FROM o WHERE EXISTS (SELECT FROM t WHERE t.k = o.k);
SELECT count(*) FROM o WHERE NOT EXISTS (SELECT FROM t WHERE t.k = o.k);
SELECT count(*) FROM o WHERE EXISTS (SELECT FROM t WHERE t.k = o.k AND t.v > 50);
