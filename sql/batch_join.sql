-- GpudsJoin: which joins it does, and that their rows are right.
\set test test_batch_join
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE t (id int, k int, k2 smallint, b bigint, f float8, d date, ts timestamp, u uuid, m mood, v int, note text)
	WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, nullif(i % 1500, 7), i % 10, (i % 900)::bigint * 10000000000, (i % 700) / 4.0 - 10,
	date '2000-01-01' + i % 500, timestamp '2000-01-01' + i % 500 * interval '12 h', md5((i % 1000)::text)::uuid,
	('{sad,ok,happy}'::mood[])[i % 3 + 1], i % 100, 'note ' || i
FROM generate_series(1, 6000) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
CREATE INDEX t_k2_k ON t USING gpu_btree (k2, k DESC);
CREATE INDEX t_b ON t USING gpu_btree (b DESC NULLS LAST);
CREATE INDEX t_f ON t USING gpu_btree (f);
CREATE INDEX t_d ON t USING gpu_btree (d);
CREATE INDEX t_ts ON t USING gpu_btree (ts);
CREATE INDEX t_u ON t USING gpu_btree (u);
CREATE INDEX t_m_id ON t USING gpu_btree (m, id);
CREATE INDEX t_expr ON t USING gpu_btree ((v + 1));
CREATE INDEX t_part ON t USING gpu_btree (v, id) WHERE k2 = 3;
VACUUM ANALYZE t;
CREATE TABLE o (id int, k int, s smallint, b bigint, f float4, d date, ts timestamp, tz timestamptz, u uuid, m mood, w text)
	WITH (autovacuum_enabled = off);
INSERT INTO o SELECT i, nullif(i * 3 % 2000, 6), i % 300, (i % 1100)::bigint * 10000000000, (i % 700) / 4.0,
	date '2000-01-01' + i % 300, timestamp '2000-01-01' + i % 300 * interval '1 day', timestamptz '2000-01-01' + i % 300 * interval '1 day',
	md5((i % 1200)::text)::uuid, ('{sad,ok,happy}'::mood[])[i % 3 + 1], repeat('w', i % 50)
FROM generate_series(1, 2000) i;
INSERT INTO o VALUES (-1, -1, -1, -1, '-0', '-infinity', 'infinity', 'infinity'), (-2, NULL, NULL, NULL, 'NaN', 'infinity', '-infinity', '-infinity'),
	(-3, 5, 5, 5, 'infinity', NULL, NULL, NULL);
UPDATE t SET f = 'NaN', d = 'infinity', ts = 'infinity' WHERE id = 11;
UPDATE t SET f = 0 WHERE id = 12;
VACUUM ANALYZE t, o;

\set ECHO none
-- The answer with GpudsJoin, by an index of that name, and without.
CREATE FUNCTION joined(query text, index text DEFAULT '', small bool DEFAULT false) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	right_answer text;
	answer text;
	plan text;
	has_node bool;
BEGIN
	right_answer := digest_of(query, false);
	SET LOCAL gpuds.enable_join = on;
	SET LOCAL enable_hashjoin = off;
	SET LOCAL enable_mergejoin = off;
	SET LOCAL enable_nestloop = off;
	IF small THEN
		SET LOCAL work_mem = '64kB';
	END IF;
	plan := plan_of(query);
	answer := digest_of(query, false);
	SET LOCAL work_mem TO DEFAULT;
	SET LOCAL gpuds.enable_join = off;
	SET LOCAL enable_hashjoin = on;
	SET LOCAL enable_mergejoin = on;
	SET LOCAL enable_nestloop = on;
	IF answer <> right_answer THEN
		RETURN answer || ', right: ' || right_answer || E'\n' || plan;
	END IF;
	has_node := plan LIKE '%GpudsJoin%';
	IF has_node AND plan NOT LIKE '%Index Name: ' || index || '%' THEN
		RETURN 'another index: ' || plan;
	END IF;
	RETURN split_part(answer, ' rows', 1) || ' rows' || CASE WHEN has_node THEN ', '
		|| substring(plan FROM 'Join Type: (\w+)') || ', columns from '
		|| lower(substring(plan FROM 'Inner Columns From: (\w+)')) ELSE '' END;
END $$;
\set ECHO all

SET gpuds.enable_join = on;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_nestloop = off;
EXPLAIN (COSTS OFF, VERBOSE) SELECT o.id, t.note FROM o JOIN t ON t.k2 = 3 AND t.k = o.k AND t.v < o.s;
EXPLAIN (COSTS OFF, VERBOSE) SELECT count(*) FROM o WHERE NOT EXISTS (SELECT FROM t WHERE t.b = o.b);
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT o.w, t.k FROM o LEFT JOIN t ON t.k = o.k;
SELECT node_of('SELECT FROM o WHERE id > 0 AND EXISTS (SELECT FROM t WHERE t.k = o.k)');
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_nestloop;
SET gpuds.enable_join = off;

-- a row of many duplicates is not looked at again for each of them
SET gpuds.enable_join = on;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_nestloop = off;
CREATE TABLE same (k int, id int) WITH (autovacuum_enabled = off);
INSERT INTO same SELECT 7, i FROM generate_series(1, 50000) i;
CREATE INDEX same_k ON same USING gpu_btree (k);
VACUUM ANALYZE same;
SELECT count(*) FROM same a WHERE EXISTS (SELECT FROM same b WHERE b.k = a.k AND b.id >= 0 * a.id);
SELECT count(*) FROM same a WHERE NOT EXISTS (SELECT FROM same b WHERE b.k = a.k AND b.id >= 0 * a.id);
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_nestloop;
SET gpuds.enable_join = off;

-- kinds of joins, with the inner columns from the index and from the heap
SELECT joined('SELECT o.id, t.k FROM o JOIN t ON t.k = o.k', 't_k');
SELECT joined('SELECT o.*, t.* FROM o JOIN t ON t.k = o.k', 't_k');
SELECT joined('SELECT o.*, t.k FROM o LEFT JOIN t ON t.k = o.k', 't_k');
SELECT joined('SELECT o.*, t.note FROM o LEFT JOIN t ON t.k = o.k', 't_k');
SELECT joined('SELECT o.*, t.note FROM o LEFT JOIN t ON t.k = o.k AND t.v = 3 AND o.s > 20', 't_k');
SELECT joined('SELECT o.*, t.note FROM o LEFT JOIN t ON t.k = o.k WHERE t.v IS NULL OR t.v = 3', 't_k');
SELECT joined('SELECT * FROM o WHERE EXISTS (SELECT FROM t WHERE t.k = o.k)', 't_k');
SELECT joined('SELECT * FROM o WHERE EXISTS (SELECT FROM t WHERE t.k = o.k AND t.v < o.s)', 't_k');
SELECT joined('SELECT * FROM o WHERE NOT EXISTS (SELECT FROM t WHERE t.k = o.k)', 't_k');
SELECT joined('SELECT * FROM o WHERE NOT EXISTS (SELECT FROM t WHERE t.k = o.k AND t.v < o.s)', 't_k');
SELECT joined('SELECT t.id FROM t WHERE k IN (SELECT k FROM o)', 't_k');
SELECT joined('SELECT * FROM o WHERE k NOT IN (SELECT k FROM t WHERE k IS NOT NULL)');
SELECT joined('SELECT * FROM o FULL JOIN t ON t.k = o.k');
SELECT joined('SELECT * FROM o JOIN t ON t.k > o.k WHERE o.id < 10');

-- types
SELECT joined('SELECT o.id, t.id FROM o JOIN t ON t.k = o.s', 't_k');
SELECT joined('SELECT o.id, t.id FROM o JOIN t ON t.k = o.b', 't_k');
SELECT joined('SELECT o.id, t.id FROM o JOIN t ON t.b = o.b', 't_b');
SELECT joined('SELECT o.id, t.id FROM o JOIN t ON t.b = o.s', 't_b');
SELECT joined('SELECT o.id, t.id FROM o JOIN t ON t.f = o.f', 't_f');
SELECT joined('SELECT o.id, t.id FROM o JOIN t ON t.d = o.d', 't_d');
SELECT joined('SELECT o.id, t.id FROM o JOIN t ON t.d = o.ts', 't_d');
SELECT joined('SELECT o.id, t.id FROM o JOIN t ON t.ts = o.d', 't_ts');
SELECT joined('SELECT o.id, t.id FROM o JOIN t ON t.ts = o.tz');
SELECT joined('SELECT o.id, t.id FROM o JOIN t ON t.u = o.u', 't_u');
SELECT joined('SELECT o.id, t.u FROM o JOIN t ON t.u = o.u', 't_u');
SELECT joined('SELECT o.id, t.id, t.m FROM o JOIN t ON t.m = o.m AND t.id = o.id', 't_m_id');
SELECT joined('SELECT o.id, t.id, t.m FROM o JOIN t ON t.m = o.m WHERE o.id < 20', 't_m_id');
SELECT joined('SELECT o.id, t.id FROM o JOIN t ON t.v + 1 = o.s', 't_expr');
SELECT joined('SELECT o.id, t.id FROM o JOIN t ON t.v = o.s AND t.k2 = 3', 't_part');
SELECT joined('SELECT o.id, t.k, t.k2 FROM o JOIN t ON t.k2 = o.s AND t.k = o.k', 't_k2_k');
SELECT joined('SELECT o.id, t.k, t.k2 FROM o JOIN t ON t.k2 = 4 AND t.k = o.k');
SELECT joined('SELECT o.id, t.k, t.k2 FROM o JOIN t ON t.k2 = o.k', 't_k2_k');
SELECT joined('SELECT o.id, t.k, t.k2 FROM o JOIN t ON t.k2 = o.k AND t.k = o.k + 10', 't_k2_k');

-- several joins, and others above and below
SELECT joined('SELECT o.id, a.id, b.k FROM o JOIN t a ON a.k = o.k JOIN t b ON b.k = a.v WHERE o.id < 300');
SELECT joined('SELECT o.id, a.id, b.k FROM o LEFT JOIN t a ON a.k = o.k AND a.v < 50 LEFT JOIN t b ON b.k = a.id');
SELECT joined('SELECT o.id, x.c FROM o LEFT JOIN (SELECT coalesce(t.k, -7) AS c, t.k FROM t) x ON x.k = o.k');
SELECT joined('SELECT t, o.id FROM o JOIN t ON t.k = o.k WHERE o.id < 100');
SELECT joined('SELECT t.ctid, o.id FROM o JOIN t ON t.k = o.k WHERE o.id < 100');
SELECT joined('SELECT count(*), sum(t.v) FROM o JOIN t ON t.k = o.k WHERE t.ctid <> ''(0,1)''');
SELECT joined('SELECT count(*), sum(t.v) FROM o JOIN t ON t.k = o.k WHERE t IS NOT NULL');
SELECT joined('SELECT count(*), sum(t.v) FROM o JOIN t ON t.k = o.k AND t::text LIKE ''%1%''');
SELECT joined('SELECT s.g, o.id, t.v FROM generate_series(1, 3) s(g), LATERAL (SELECT * FROM o WHERE o.id % 3 = s.g OFFSET 0) o JOIN t ON t.k = o.k');
SELECT joined('SELECT o.id, (SELECT sum(t.v) FROM o x JOIN t ON t.k = x.k WHERE x.id = o.id) FROM o WHERE o.id < 50');
SELECT joined('SELECT s, sum(v) FROM (SELECT o.s, t.v FROM o JOIN t ON t.k = o.k OFFSET 0) q GROUP BY s');
SELECT joined('WITH w AS MATERIALIZED (SELECT k FROM o) SELECT count(*), sum(t.v) FROM w JOIN t USING (k)');
SELECT joined('SELECT * FROM (SELECT k FROM o UNION ALL SELECT s FROM o) q JOIN t USING (k)', 't_k');

-- more matches than memory, duplicates on both sides
CREATE TABLE many (k int, v int) WITH (autovacuum_enabled = off);
INSERT INTO many SELECT 1, i FROM generate_series(1, 70000) i;
INSERT INTO many SELECT i, i FROM generate_series(1, 1000) i;
CREATE INDEX many_k ON many USING gpu_btree (k);
VACUUM ANALYZE many;
SELECT joined('SELECT sum(v), count(*) FROM (VALUES (1), (1), (NULL), (5), (2000)) o (k) LEFT JOIN many USING (k)', 'many_k', true);
SELECT joined('SELECT count(*) FROM (VALUES (1), (1), (NULL), (5), (2000)) o (k) LEFT JOIN many USING (k)', 'many_k', true);
SELECT joined('SELECT o.*, t.* FROM o JOIN t ON t.k = o.k', 't_k', true);
SELECT joined('SELECT * FROM o WHERE EXISTS (SELECT FROM many WHERE many.k = o.k AND many.v > 69998)', 'many_k', true);
SELECT joined('SELECT * FROM many a WHERE NOT EXISTS (SELECT FROM many b WHERE b.k = a.k AND a.v <> b.v)', 'many_k', true);

-- rows that the map does not know of
BEGIN;
DELETE FROM t WHERE id % 3 = 0;
UPDATE t SET k = k + 1 WHERE id % 7 = 0;
INSERT INTO t (id, k) SELECT i, i FROM generate_series(1, 500) i;
SELECT joined('SELECT o.id, t.k FROM o JOIN t ON t.k = o.k', 't_k');
SELECT joined('SELECT o.id, t.id FROM o LEFT JOIN t ON t.k = o.k', 't_k');
SELECT joined('SELECT * FROM o WHERE NOT EXISTS (SELECT FROM t WHERE t.k = o.k)', 't_k');
SAVEPOINT s;
DELETE FROM t;
SELECT joined('SELECT * FROM o WHERE NOT EXISTS (SELECT FROM t WHERE t.k = o.k)', 't_k');
ROLLBACK TO s;
SELECT joined('SELECT * FROM o WHERE EXISTS (SELECT FROM t WHERE t.k = o.k)', 't_k');
-- an inner table that is proved empty
SELECT joined('SELECT o.id, t.id FROM o LEFT JOIN t ON t.k = o.k AND t.k = NULL');
SELECT joined('SELECT o.id, t.id FROM o LEFT JOIN (SELECT * FROM t WHERE false) t ON t.k = o.k');
SELECT joined('SELECT id FROM o WHERE NOT EXISTS (SELECT FROM (SELECT * FROM t WHERE v = NULL) t WHERE t.k = o.k)');
ALTER TABLE t ADD CONSTRAINT t_k_check CHECK (k < 5000);
SET constraint_exclusion = on;
SELECT joined('SELECT o.id, t.id FROM o LEFT JOIN (SELECT * FROM t WHERE k > 6000) t ON t.k = o.k');
RESET constraint_exclusion;
ALTER TABLE t DROP CONSTRAINT t_k_check;
ROLLBACK;

-- what a statement adds, it does not join with
SET gpuds.enable_join = on;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_nestloop = off;
EXPLAIN (COSTS OFF) INSERT INTO many SELECT k, id FROM o WHERE NOT EXISTS (SELECT FROM many WHERE many.k = o.k);
INSERT INTO many SELECT k, id FROM o WHERE NOT EXISTS (SELECT FROM many WHERE many.k = o.k);
INSERT INTO many SELECT k, id FROM o WHERE NOT EXISTS (SELECT FROM many WHERE many.k = o.k) AND k IS NOT NULL;
SELECT count(*), count(DISTINCT v) FROM many WHERE v <= 70000 AND k > 1000;

-- rows that are locked or changed; batch_change has more of it
EXPLAIN (COSTS OFF) SELECT * FROM o JOIN t ON t.k = o.k FOR UPDATE OF o;
EXPLAIN (COSTS OFF) UPDATE o SET w = t.note FROM t WHERE t.k = o.k;
EXPLAIN (COSTS OFF) DELETE FROM o USING t WHERE t.k = o.k;

-- prepared, in a cursor, with LIMIT
SET plan_cache_mode = force_generic_plan;
PREPARE p (int) AS SELECT count(*), sum(t.v) FROM o JOIN t ON t.k = o.k AND t.k2 = $1;
EXECUTE p (3);
EXECUTE p (NULL);
EXECUTE p (4);
RESET plan_cache_mode;
-- unlogged, so that page states do not save visits
CREATE UNLOGGED TABLE stateless AS SELECT k FROM t;
CREATE INDEX stateless_k ON stateless USING gpu_btree (k);
EXPLAIN (COSTS OFF, ANALYZE, TIMING OFF, SUMMARY OFF) SELECT o.id FROM o JOIN stateless t ON t.k = o.k LIMIT 1;
DROP TABLE stateless;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT o.id FROM o JOIN t ON t.k = o.k WHERE t.id < 3;
FETCH ALL FROM c;
FETCH BACKWARD 2 FROM c;
COMMIT;
-- an error in the outer plan
SELECT 1 / (o.id - 500) FROM o JOIN t ON t.k = o.k WHERE 1 / (o.id - 600) < 2;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_nestloop;

-- whoever gets a row may make it its own
SET gpuds.enable_join = on;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_nestloop = off;
CREATE TABLE kept AS SELECT o.id, o.s, o.w, t.k, t.v, t.note FROM o JOIN t ON t.k = o.s;
CREATE VIEW seen AS SELECT id, s, w, k, v, note FROM kept;
CREATE TABLE changed (LIKE kept);
CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	NEW.note := NEW.note || ' changed';
	NEW.v := -NEW.v;
	INSERT INTO changed SELECT NEW.*;
	RETURN NEW;
END $$;
CREATE TRIGGER change INSTEAD OF INSERT ON seen FOR EACH ROW EXECUTE FUNCTION change();
INSERT INTO seen SELECT o.id, o.s, o.w, t.k, t.v, t.note FROM o LEFT JOIN t ON t.k = o.s WHERE o.id < 900;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_nestloop;
SET gpuds.enable_join = off;
SELECT count(*) FROM (TABLE kept EXCEPT ALL SELECT o.id, o.s, o.w, t.k, t.v, t.note FROM o JOIN t ON t.k = o.s) q;
SELECT count(*), sum(v), count(note) FROM changed;
SELECT count(*), -sum(t.v), count(note) FROM o LEFT JOIN t ON t.k = o.s WHERE o.id < 900;

-- a plan that has begun holds its tables
SET gpuds.enable_join = on;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_nestloop = off;
BEGIN;
DECLARE c CURSOR FOR SELECT o.id, t.note FROM o JOIN t ON t.k = o.k;
SAVEPOINT s;
DROP INDEX t_k;
ROLLBACK TO s;
TRUNCATE t;
ROLLBACK;

-- in parallel
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_nestloop = off;
EXPLAIN (COSTS OFF) SELECT count(*), sum(t.v), sum(o.id) FROM o JOIN t ON t.k = o.k;
SELECT count(*), sum(t.v), sum(o.id) FROM o JOIN t ON t.k = o.k;
SELECT count(*), sum(o.id) FROM o WHERE NOT EXISTS (SELECT FROM t WHERE t.k = o.k);
SET gpuds.enable_join = off;
SET max_parallel_workers_per_gather = 0;
SELECT count(*), sum(t.v), sum(o.id) FROM o JOIN t ON t.k = o.k;
SELECT count(*), sum(o.id) FROM o WHERE NOT EXISTS (SELECT FROM t WHERE t.k = o.k);
