-- GpudsAggregate of tables with children: partitions, and tables that inherit.
\set test test_batch_partitions
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

-- Partitions by time whose columns have other places, with indexes of their own; one has partitions itself.
CREATE TABLE p (at timestamptz, k int, s int2, b bigint, f float8, f4 float4, yes bool, d date, note text) PARTITION BY RANGE (at);
CREATE TABLE p_jan PARTITION OF p FOR VALUES FROM ('2020-01-01') TO ('2020-02-01');
CREATE TABLE p_feb (gone int, note text, d date, yes bool, f4 float4, f float8, b bigint, s int2, k int, at timestamptz);
ALTER TABLE p_feb DROP COLUMN gone;
ALTER TABLE p ATTACH PARTITION p_feb FOR VALUES FROM ('2020-02-01') TO ('2020-03-01');
CREATE TABLE p_mar (LIKE p) PARTITION BY LIST (s);
CREATE TABLE p_mar_1 PARTITION OF p_mar FOR VALUES IN (1, 2, NULL);
CREATE TABLE p_mar_2 (yes bool, d date, s int2, k int, b bigint, f4 float4, note text, f float8, at timestamptz);
ALTER TABLE p_mar ATTACH PARTITION p_mar_2 DEFAULT;
ALTER TABLE p ATTACH PARTITION p_mar FOR VALUES FROM ('2020-03-01') TO ('2020-04-01');
CREATE TABLE p_none PARTITION OF p FOR VALUES FROM ('2021-01-01') TO ('2021-02-01');
CREATE TABLE p_rest PARTITION OF p DEFAULT;
INSERT INTO p SELECT timestamptz '2019-12-25' + i * interval '7 min', i % 50, nullif(i % 5, 4), (i - 10000) * 900000000000000, i / 8.0, i / 4.0, i % 11 = 0, date '2020-01-01' + i % 100
FROM generate_series(1, 20000) i;
INSERT INTO p (at, k) VALUES ('infinity', 7), ('-infinity', NULL), (NULL, 3), ('2020-02-03', NULL);
CREATE INDEX p_at_k ON p USING gpu_btree (at, k);
CREATE INDEX p_at_b ON p USING gpu_btree (at) INCLUDE (b);
CREATE INDEX p_k_f ON p USING gpu_btree (k) INCLUDE (f, s);
CREATE INDEX p_k_f4 ON p USING gpu_btree (k) INCLUDE (f4, yes);
CREATE INDEX p_d ON p USING gpu_btree (d);
-- s and k: leading columns, the other way round, descending, or included
CREATE INDEX p_jan_s_k ON p_jan USING gpu_btree (s, k);
CREATE INDEX p_feb_s_k ON p_feb USING gpu_btree (s DESC, k NULLS FIRST);
CREATE INDEX p_mar_s_k ON p_mar USING gpu_btree (s) INCLUDE (k);
CREATE INDEX p_none_s_k ON p_none USING gpu_btree (s) INCLUDE (yes, k);
CREATE INDEX p_rest_s_k ON p_rest USING gpu_btree (s NULLS FIRST, k DESC);
VACUUM ANALYZE p;

SET gpuds.enable_aggregate = on;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF, VERBOSE) SELECT count(*), sum(b) + 1, avg(b) FROM p WHERE at >= '2020-02-15' AND at < '2020-03-15' HAVING max(b) > 0;
EXPLAIN (COSTS OFF) SELECT date_trunc('day', at) AS day, count(*), max(k) FROM p WHERE at > '2020-03-01' GROUP BY 1 HAVING count(*) > 2;
EXPLAIN (COSTS OFF) SELECT sum(b) FROM p WHERE at = '2020-02-15';
RESET enable_seqscan;
SET gpuds.enable_aggregate = off;

-- one group
SELECT same_aggregate('SELECT count(*) FROM p');
SELECT same_aggregate('SELECT count(*), sum(k), avg(k), min(k), max(k), count(k) FROM p WHERE at BETWEEN ''2020-01-15'' AND ''2020-03-15''');
SELECT same_aggregate('SELECT sum(b), avg(b), min(b), max(b), count(b), count(at), min(at), max(at) FROM p');
SELECT same_aggregate('SELECT sum(b), avg(b), count(*) FROM p WHERE at > ''2020-02-02''');
SELECT same_aggregate('SELECT sum(b), avg(b), count(*) FROM p WHERE at = ''2020-01-02 00:01''');
SELECT same_aggregate('SELECT sum(b), avg(b), count(*) FROM p WHERE at IS NULL');
SELECT same_aggregate('SELECT sum(f), avg(f), min(f), max(f), sum(s), avg(s), min(s), max(s), count(s) FROM p WHERE k IN (1, 5, 5, NULL, 49, 77)');
SELECT same_aggregate('SELECT avg(f4), min(f4), max(f4), bool_and(yes), bool_or(yes), every(yes) FROM p WHERE k < 9');
SELECT same_aggregate('SELECT min(d), max(d), count(d) FROM p WHERE d > ''2020-02-02''');
SELECT same_aggregate('SELECT sum(k), min(k), max(s), count(*) FROM p WHERE s >= 1');
SELECT same_aggregate('SELECT sum(k) + 1, -min(k) FROM p WHERE s >= 1 HAVING max(k) > 3');
SELECT same_aggregate('SELECT sum(k) + 1, -min(k) FROM p WHERE s >= 1 HAVING max(k) > 300');
SELECT same_aggregate('SELECT count(*), sum(b), avg(b), max(b) FROM p WHERE at >= ''2021-01-01'' AND at < ''2021-02-01''');
SELECT same_aggregate('SELECT count(*), sum(k) FROM p WHERE at > ''2020-01-01'' AND false');
SELECT same_aggregate('SELECT i, (SELECT avg(b) FROM p WHERE at = timestamptz ''2020-01-30'' + i * interval ''7 min'') FROM generate_series(-1, 104) i');
SELECT same_aggregate('SELECT o.i, q.* FROM generate_series(-1, 104, 7) o (i), LATERAL (SELECT sum(f), avg(s) FROM p WHERE k < o.i) q');
SELECT same_aggregate('SELECT (SELECT count(*) FROM p a WHERE a.k > 3), (SELECT sum(k) FROM p b WHERE b.k < 3)');

-- more groups
SELECT same_aggregate('SELECT date_trunc(''day'', at), count(*), sum(b), avg(b), min(b), max(b) FROM p GROUP BY 1');
SELECT same_aggregate('SELECT date_trunc(''day'', at), date_trunc(''day'', at), count(*) FROM p GROUP BY 1, 2');
SELECT same_aggregate('SELECT date_trunc(''month'', at) + ''1 h'', count(*) FROM p WHERE at > ''2020-01-15'' GROUP BY date_trunc(''month'', at)');
SELECT same_aggregate('SELECT at::date, avg(k), count(k) FROM p WHERE at BETWEEN ''2020-01-15'' AND ''2020-03-15'' GROUP BY 1 HAVING avg(k) > 25 ORDER BY 1 DESC');
SELECT same_aggregate('SELECT k, count(*), sum(s), avg(s), sum(f), avg(f) FROM p GROUP BY k');
SELECT same_aggregate('SELECT at, k, count(*) FROM p WHERE at IN (''2019-12-25 07:00'', ''2020-02-03'') GROUP BY k, at');
SELECT same_aggregate('SELECT count(*) FROM p GROUP BY k');
SELECT same_aggregate('SELECT k FROM p WHERE k > 10 GROUP BY k');
SELECT same_aggregate('SELECT s, count(*), sum(k), max(k) FROM p WHERE s IN (1, 3) GROUP BY s');
SELECT same_aggregate('SELECT s, count(*), sum(k) FROM p WHERE s IS NULL GROUP BY s');
SELECT same_aggregate('SELECT k / 7, count(*), max(s) FROM p GROUP BY 1');
SELECT same_aggregate('SELECT * FROM (SELECT k, sum(s) AS x FROM p GROUP BY k) a JOIN (SELECT k, min(f) AS y FROM p GROUP BY k) b USING (k)');
SET enable_hashagg = off;
SELECT same_aggregate('SELECT k, count(*), sum(f) FROM p WHERE k = 5 GROUP BY k');
SELECT same_aggregate('SELECT date_trunc(''day'', at), count(*), sum(b), avg(b), min(b), max(b) FROM p GROUP BY 1');
SELECT same_aggregate('SELECT k, count(*), sum(s), avg(s), sum(f), avg(f) FROM p GROUP BY k');
RESET enable_hashagg;
SET work_mem = '64kB';
SELECT same_aggregate('SELECT at, count(*), sum(b), avg(b) FROM p GROUP BY 1');
RESET work_mem;

-- partition by partition
SET enable_partitionwise_aggregate = on;
SET gpuds.enable_aggregate = on;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT at, count(*), sum(b) FROM p WHERE at BETWEEN '2020-01-15' AND '2020-02-15' GROUP BY at HAVING count(*) > 0;
RESET enable_seqscan;
SET gpuds.enable_aggregate = off;
SELECT same_aggregate('SELECT at, count(*), sum(b), avg(b) FROM p WHERE at BETWEEN ''2020-01-15'' AND ''2020-02-15'' GROUP BY at HAVING count(*) > 0');
SELECT same_aggregate('SELECT at, count(*), sum(b), avg(b) FROM p GROUP BY at');
SELECT same_aggregate('SELECT at, k, count(*) FROM p GROUP BY k, at');
SELECT same_aggregate('SELECT date_trunc(''day'', at), count(*), sum(b), avg(b) FROM p GROUP BY 1');
SELECT same_aggregate('SELECT count(*), sum(b), avg(b) FROM p WHERE at > ''2020-02-02''');
SELECT same_aggregate('SELECT at, s, count(*) FROM p WHERE at > ''2020-02-28'' GROUP BY at, s');
RESET enable_partitionwise_aggregate;

-- partitions that a plan's parameters leave out
SET gpuds.enable_aggregate = on;
SET enable_seqscan = off;
SET plan_cache_mode = force_generic_plan;
PREPARE since (timestamptz) AS SELECT count(*), avg(b) FROM p WHERE at >= $1;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) EXECUTE since ('2020-03-15');
EXECUTE since ('2020-03-15');
EXECUTE since ('2020-01-15');
EXECUTE since (NULL);
PREPARE days (timestamptz, timestamptz) AS SELECT at::date, count(*) FROM p WHERE at BETWEEN $1 AND $2 GROUP BY 1 ORDER BY 1;
EXECUTE days ('2020-01-31', '2020-02-01 23:00');
EXECUTE days ('2020-02-02', '2020-02-01');
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)
SELECT month, (SELECT count(*) FROM p WHERE at >= month AND at < month + interval '1 month') FROM generate_series(timestamptz '2020-02-01', '2020-03-01', '1 month') month;
SELECT month, (SELECT count(*) FROM p WHERE at >= month AND at < month + interval '1 month') FROM generate_series(timestamptz '2019-12-01', '2020-04-01', '1 month') month;
RESET plan_cache_mode;
BEGIN;
DECLARE c CURSOR FOR SELECT k, count(*) FROM p GROUP BY k ORDER BY k;
FETCH 2 FROM c;
DELETE FROM p WHERE k < 10;
FETCH 2 FROM c;
SELECT count(*) FROM p;
ROLLBACK;
RESET enable_seqscan;
SET gpuds.enable_aggregate = off;

-- changes that no mirror has yet
UPDATE p SET k = k + 1 WHERE k BETWEEN 10 AND 20;
DELETE FROM p WHERE k = 30;
BEGIN;
INSERT INTO p SELECT timestamptz '2021-01-01' + i * interval '1 min', i % 60, i % 4, i FROM generate_series(1, 500) i;
SELECT same_aggregate('SELECT k, count(*), sum(s), avg(s) FROM p GROUP BY k');
SAVEPOINT s;
DELETE FROM p WHERE at < '2020-02-10';
SELECT same_aggregate('SELECT count(*), sum(b), avg(b) FROM p WHERE at > ''2020-01-05''');
ROLLBACK TO s;
SELECT same_aggregate('SELECT count(*), sum(b), avg(b) FROM p WHERE at > ''2020-01-05''');
ROLLBACK;
SELECT same_aggregate('SELECT k, count(*), sum(s), avg(s) FROM p GROUP BY k');
VACUUM p;
SELECT same_aggregate('SELECT k, count(*), sum(s), avg(s) FROM p GROUP BY k');

-- parts that are large, negative, nothing, and no numbers
CREATE TABLE ends (g int, b bigint, f float8, i int) PARTITION BY LIST (g);
SELECT format('CREATE TABLE ends_%s PARTITION OF ends FOR VALUES IN (%1$s)', g) FROM generate_series(0, 9) g \gexec
INSERT INTO ends SELECT g, CASE g WHEN 0 THEN 9223372036854775807 WHEN 1 THEN -9223372036854775808 WHEN 2 THEN 0 WHEN 3 THEN -10000 WHEN 4 THEN NULL ELSE g END,
	CASE g WHEN 5 THEN 'infinity'::float8 WHEN 6 THEN 'nan' WHEN 7 THEN '-infinity' WHEN 8 THEN 2::float8 ^ 665 WHEN 9 THEN '-0' ELSE 0.5 END, 2147483647 - g
FROM generate_series(0, 9) g, generate_series(1, 300);
CREATE INDEX ends_b ON ends USING gpu_btree (g) INCLUDE (b);
CREATE INDEX ends_f ON ends USING gpu_btree (g) INCLUDE (f);
CREATE INDEX ends_i ON ends USING gpu_btree (g) INCLUDE (i);
VACUUM ANALYZE ends;
SELECT same_aggregate('SELECT sum(b), avg(b) FROM ends WHERE g IN (0, 1)');
SELECT same_aggregate('SELECT sum(b), avg(b) FROM ends WHERE g IN (0, 2)');
SELECT same_aggregate('SELECT sum(b), avg(b) FROM ends WHERE g IN (1, 3)');
SELECT same_aggregate('SELECT sum(b), avg(b) FROM ends WHERE g IN (2, 4)');
SELECT same_aggregate('SELECT sum(b), avg(b), count(b), count(*) FROM ends WHERE g = 4');
SELECT same_aggregate('SELECT sum(b), avg(b) FROM ends');
SELECT same_aggregate('SELECT g, sum(b), avg(b) FROM ends GROUP BY g');
SELECT same_aggregate('SELECT sum(i), avg(i) FROM ends');
SELECT same_aggregate('SELECT sum(f), avg(f) FROM ends WHERE g IN (5, 0, 9)');
SELECT same_aggregate('SELECT sum(f), avg(f) FROM ends WHERE g IN (5, 6, 7)');
SELECT same_aggregate('SELECT sum(f), avg(f) FROM ends WHERE g IN (5, 7)');
SELECT same_aggregate('SELECT sum(f), avg(f) FROM ends WHERE g IN (9, 4)');
SELECT same_aggregate('SELECT sum(f), avg(f)::text FROM ends WHERE g = 9');
SET gpuds.enable_aggregate = on;
SET enable_seqscan = off;
SELECT avg(f) FROM ends WHERE g IN (8, 0);
RESET enable_seqscan;
SET gpuds.enable_aggregate = off;

-- tables that inherit
CREATE TABLE parent (k int, v int) WITH (autovacuum_enabled = off);
SET client_min_messages = warning;
CREATE TABLE child (more text, CHECK (k >= 1000)) INHERITS (parent) WITH (autovacuum_enabled = off);
CREATE TABLE other (v int, x int, k int) WITH (autovacuum_enabled = off);
ALTER TABLE other INHERIT parent;
CREATE TABLE grandchild (y int) INHERITS (child, other) WITH (autovacuum_enabled = off);
RESET client_min_messages;
INSERT INTO parent SELECT i, i % 7 FROM generate_series(1, 1000) i;
INSERT INTO child SELECT i, i % 7, 'x' FROM generate_series(1000, 2000) i;
INSERT INTO other SELECT i % 7, 1, i FROM generate_series(500, 2500) i;
INSERT INTO grandchild SELECT i, i % 7 FROM generate_series(1200, 3000) i;
CREATE INDEX parent_k ON parent USING gpu_btree (k) INCLUDE (v);
CREATE INDEX child_k ON child USING gpu_btree (k, v);
CREATE INDEX other_k ON other USING gpu_btree (k DESC) INCLUDE (v);
SELECT same_aggregate('SELECT count(*), sum(v) FROM parent WHERE k < 1500');
CREATE INDEX grandchild_k ON grandchild USING gpu_btree (k) INCLUDE (v);
VACUUM ANALYZE parent, child, other, grandchild;
SELECT same_aggregate('SELECT count(*), sum(v) FROM parent WHERE k < 1500');
SELECT same_aggregate('SELECT count(*), sum(v) FROM parent WHERE k < 900');
SELECT same_aggregate('SELECT count(*), sum(v) FROM ONLY parent WHERE k < 1500');
SELECT same_aggregate('SELECT count(*), avg(v) FROM child WHERE k < 1500');
SELECT same_aggregate('SELECT k / 100, count(*), sum(v) FROM child GROUP BY 1');

-- whose rows may be seen: the parent's privileges and policies count
CREATE ROLE test_batch_partitions_user;
GRANT USAGE ON SCHEMA test_batch_partitions TO test_batch_partitions_user;
GRANT SELECT (at, k) ON p TO test_batch_partitions_user;
GRANT SELECT ON parent TO test_batch_partitions_user;
CREATE POLICY few ON parent USING (k < 700);
ALTER TABLE parent ENABLE ROW LEVEL SECURITY;
CREATE VIEW barrier WITH (security_barrier) AS SELECT * FROM parent WHERE k BETWEEN 600 AND 1100;
SET gpuds.enable_aggregate = on;
SET enable_seqscan = off;
SET ROLE test_batch_partitions_user;
SELECT count(*), sum(k) FROM p WHERE at >= '2020-02-15' AND at < '2020-03-15';
SELECT count(*), sum(b) FROM p WHERE at >= '2020-02-15' AND at < '2020-03-15';
EXPLAIN (COSTS OFF) SELECT count(*), sum(v) FROM parent WHERE k > 650;
SELECT count(*), sum(v) FROM parent WHERE k > 650;
RESET ROLE;
SELECT count(*), sum(v) FROM parent WHERE k BETWEEN 651 AND 699;
RESET enable_seqscan;
SET gpuds.enable_aggregate = off;

-- what core does
SELECT same_aggregate('SELECT sum(v) FROM (SELECT k, v FROM parent UNION ALL SELECT k, v FROM other) q WHERE k < 1500');
SELECT same_aggregate('SELECT count(*), sum(v) FROM barrier WHERE k > 650');
SELECT same_aggregate('SELECT k / 100, count(*), sum(v) FROM parent GROUP BY 1');
SELECT same_aggregate('SELECT count(*) FROM p TABLESAMPLE SYSTEM (100) WHERE k < 5');
SELECT same_aggregate('SELECT sum(f4) FROM p WHERE k = 3');
SELECT same_aggregate('SELECT sum(DISTINCT k) FROM p WHERE k < 10');
SELECT same_aggregate('SELECT k, s, count(*) FROM p GROUP BY ROLLUP (k, s)');
SELECT same_aggregate('SELECT count(*) FROM p WHERE note IS NULL AND k < 5');
SELECT same_aggregate('SELECT array_agg(k ORDER BY k) FROM p WHERE k < 10');
SELECT same_aggregate('SELECT count(*) FROM p a JOIN p b USING (at) WHERE a.k < 3 AND b.k < 3');
SELECT same_aggregate('SELECT tableoid::regclass, count(*) FROM p GROUP BY 1');
SELECT same_aggregate('SELECT s, count(*), max(yes::int) FROM p WHERE s IN (1, 3) GROUP BY s');
DROP INDEX p_feb_s_k;
SELECT same_aggregate('SELECT s, count(*), sum(k) FROM p WHERE s IN (1, 3) GROUP BY s');
SET client_min_messages = warning;
DROP OWNED BY test_batch_partitions_user;
DROP ROLE test_batch_partitions_user;
DROP SCHEMA test_batch_partitions CASCADE;
