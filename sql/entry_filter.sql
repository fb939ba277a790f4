-- GpudsScan and GpudsJoin: conditions that are tested in entries, before any row is visited.
\set test test_entry_filter
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

CREATE TABLE t (id int, k int, s int2, yes bool, f float4, v bigint, b bigint, note text) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, nullif(i % 1500, 7), nullif(i % 5, 4), CASE i % 3 WHEN 0 THEN true WHEN 1 THEN false END,
	CASE i % 9 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' WHEN 2 THEN 0 WHEN 3 THEN '-1e-45' WHEN 4 THEN NULL ELSE i / 7.0 END, i % 100 * 10000000000, nullif(i % 20, 3), 'note ' || i
FROM generate_series(1, 6000) i;
CREATE INDEX t_k ON t USING gpu_btree (k) INCLUDE (s, yes, f);
CREATE INDEX t_side ON t USING gpu_btree (id) INCLUDE (v, s, b);
CREATE TABLE o (id int, k int, w int) WITH (autovacuum_enabled = off);
INSERT INTO o SELECT i, nullif(i * 3 % 2000, 6), i % 10 FROM generate_series(1, 2000) i;
VACUUM ANALYZE t, o;
-- with some rows that others have changed, by HOT updates as well
UPDATE t SET s = 3, yes = NOT yes WHERE id % 70 = 0;
UPDATE t SET note = note || 'x' WHERE id % 110 = 0;
DELETE FROM t WHERE id % 130 = 0;

\set ECHO none
-- The answer by a plan that has what a pattern says, and by sequential scans.
CREATE FUNCTION filtered(query text, pattern text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	right_answer text := right_digest_of(query, false);
	answer text;
	plan text;
BEGIN
	SET LOCAL enable_seqscan = off;
	SET LOCAL enable_indexscan = off;
	SET LOCAL enable_hashjoin = off;
	SET LOCAL enable_mergejoin = off;
	SET LOCAL enable_nestloop = off;
	SET LOCAL gpuds.enable_scan = on;
	SET LOCAL gpuds.enable_join = on;
	plan := plan_of(query);
	answer := digest_of(query, false);
	SET LOCAL enable_seqscan = on;
	SET LOCAL enable_indexscan = on;
	SET LOCAL enable_hashjoin = on;
	SET LOCAL enable_mergejoin = on;
	SET LOCAL enable_nestloop = on;
	SET LOCAL gpuds.enable_scan = off;
	SET LOCAL gpuds.enable_join = off;
	IF plan !~ pattern THEN
		RETURN plan;
	END IF;
	RETURN CASE WHEN answer = right_answer THEN 'agrees' ELSE answer || ', right: ' || right_answer END;
END $$;
\set ECHO all

-- what EXPLAIN shows
SET gpuds.enable_scan = on;
SET gpuds.enable_join = on;
EXPLAIN (ANALYZE, BUFFERS OFF, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT note FROM t WHERE k BETWEEN 10 AND 200 AND s = 2 AND yes AND note <> 'x';
SET enable_hashjoin = off;
SET enable_nestloop = off;
EXPLAIN (ANALYZE, BUFFERS OFF, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT o.id, t.note FROM o JOIN t USING (k) WHERE s = 2 AND yes AND note <> 'x';
RESET enable_hashjoin;
RESET enable_nestloop;
-- a scan that nothing bounds pays if few entries pass
SELECT plan_of('SELECT note FROM t WHERE f > 856') ~ 'GpudsScan.*Index Scan using t_k on t\s+Filter' AS used;
-- side values are not in entries, but their NULL bits are
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT note FROM t WHERE id BETWEEN 10 AND 2000 AND v = 0 AND b IS NOT NULL AND b > 5;
RESET enable_seqscan;
SET gpuds.enable_scan = off;
SET gpuds.enable_join = off;

-- conditions on included columns
CREATE TABLE conditions (condition text);
INSERT INTO conditions SELECT unnest(ARRAY['t.s = 2', 't.s <> 2', 't.s > 70000', 'NOT t.s = 70000', '2 > t.s', 't.s IN (0, 3)', 't.s <> ALL (''{1,NULL,2}'')',
	't.s IS NULL', 't.yes', 'NOT t.yes', 't.yes IS NOT TRUE', 't.yes IS UNKNOWN', '(t.s = 1 OR t.yes)', 'NOT (t.s = 1 AND t.yes)', 't.f = 0', 't.f <> ''NaN''', 't.f < ''-0''',
	't.f > -1e-60', 't.s = (SELECT 2)', 't.s = (SELECT NULL::int)', 't.k <> 50', '(t.k < 40 OR t.k > 60 AND t.f IS NULL)', 't.s = ANY (ARRAY(SELECT i FROM generate_series(1, 3, 2) i))']);
SELECT filtered('SELECT ctid, * FROM t WHERE k BETWEEN 10 AND 400 AND ' || condition, 'GpudsScan.*Index Scan using t_k on t.*Filter') AS scan,
	filtered('SELECT o.*, t.* FROM o JOIN t ON t.k = o.k WHERE ' || condition, 'GpudsJoin.*Index Filter') AS "join",
	filtered('SELECT o.id, t.k FROM o LEFT JOIN t ON t.k = o.k AND ' || condition, 'GpudsJoin.*Type: Left.*Index Filter.*From: Index') AS "left",
	filtered('SELECT * FROM o WHERE EXISTS (SELECT FROM t WHERE t.k = o.k AND ' || condition || ')', 'GpudsJoin.*Type: Semi.*Index Filter') AS semi,
	filtered('SELECT id FROM o WHERE NOT EXISTS (SELECT FROM t WHERE t.k = o.k AND t.id > o.w AND ' || condition || ')', 'GpudsJoin.*Type: Anti.*Index Filter') AS anti,
	condition
FROM conditions;
SELECT filtered('SELECT t.id FROM t WHERE k IN (SELECT k FROM o WHERE w < 3) AND s = 2', 'GpudsJoin.*Right Semi.*Index Filter');
SELECT filtered('SELECT note FROM t WHERE yes AND f > 800', 'GpudsScan.*t_k on t\s+(Disabled: true\s+)?Filter');
-- what cannot be tested stays with the rows
SELECT filtered('SELECT note FROM t WHERE k < 100 AND s < id AND s + 1 = 2 AND yes', 'GpudsScan.*Filter.*s < id.*Filter: yes');
SELECT filtered('SELECT note FROM t WHERE id < 900 AND b > 5 AND v > 5 AND s = 1', 'GpudsScan\) on t\s+Filter: .b > .*Filter: ..v > .*s = 1');
SELECT filtered('SELECT o.id, t.note FROM o JOIN t ON t.id = o.id WHERE t.b > 5 AND s = 1', 'GpudsJoin.*Index Filter: .t.s = 1.*Join Filter: .t.b >');

CREATE INDEX t_part ON t USING gpu_btree (k DESC) INCLUDE (v) WHERE s = 2;
SELECT filtered('SELECT note FROM t WHERE s = 2 AND k < 100 AND v > 5', 'GpudsScan.*t_part.*Filter: .v > ');
DROP INDEX t_part;

-- parameters, and rescans with others
SELECT filtered('SELECT x, q.* FROM generate_series(-1, 6) x, LATERAL (SELECT id, note FROM t WHERE k BETWEEN 10 * x AND 90 AND s <> x AND yes OFFSET 0) q', 'GpudsScan.*Filter: .yes AND .s <> x.x');
SELECT filtered('SELECT x, q.* FROM generate_series(-1, 6) x, LATERAL (SELECT o.id, t.note FROM o LEFT JOIN t ON t.k = o.k AND t.s <> x WHERE o.w = x OFFSET 0) q', 'GpudsJoin.*Index Filter: .t.s <> x.x');
SET plan_cache_mode = force_generic_plan;
SET gpuds.enable_scan = on;
PREPARE p (int, int2[]) AS SELECT count(note) FROM t WHERE k BETWEEN $1 AND 300 AND s = ANY ($2);
EXPLAIN (COSTS OFF) EXECUTE p (1, NULL);
EXECUTE p (1, '{2,3}');
EXECUTE p (100, '{NULL}');
EXECUTE p (100, NULL);
DEALLOCATE p;
RESET plan_cache_mode;
-- what a column is compared with is not evaluated if there is no entry
SELECT note FROM t WHERE k BETWEEN 5000 AND 6000 AND s = (SELECT 1 / (count(*) - count(*)) FROM o);
SELECT note FROM t WHERE k BETWEEN 10 AND 600 AND s = (SELECT 1 / (count(*) - count(*)) FROM o);

-- cursors, and the transaction's own changes
BEGIN;
UPDATE t SET s = 9 WHERE k = 30;
INSERT INTO t (k, s, note) VALUES (31, 9, 'new');
DECLARE c SCROLL CURSOR FOR SELECT id, k, note FROM t WHERE k BETWEEN 10 AND 100 AND s = 9;
FETCH 2 FROM c;
MOVE BACKWARD ALL FROM c;
FETCH ALL FROM c;
SAVEPOINT a;
DELETE FROM t WHERE k BETWEEN 10 AND 100 AND s = 9 AND id > 100;
SELECT count(*), count(note) FROM t WHERE k BETWEEN 10 AND 100 AND s = 9;
ROLLBACK TO a;
SELECT count(*), count(note) FROM t WHERE k BETWEEN 10 AND 100 AND s = 9;
UPDATE t SET s = 8 WHERE k BETWEEN 10 AND 100 AND s = 9;
SELECT k, count(note) FROM t WHERE k BETWEEN 10 AND 100 AND s = 8 GROUP BY k ORDER BY k;
ROLLBACK;

-- parallel plans: one process asks and tests
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT filtered('SELECT count(note), sum(id) FROM t WHERE k BETWEEN 10 AND 900 AND s = 2', 'Parallel Custom Scan \(GpudsScan.*Filter');
SET max_parallel_workers_per_gather = 0;

-- partitions, whose columns have other places
CREATE TABLE parts (at date, status int, v int) PARTITION BY RANGE (at);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
CREATE TABLE parts_2 (note text, v int, status int, at date);
ALTER TABLE parts_2 DROP COLUMN note;
ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
INSERT INTO parts SELECT date '2000-01-01' + i % 730, i % 5, i FROM generate_series(1, 5000) i;
CREATE INDEX ON parts USING gpu_btree (at) INCLUDE (status);
VACUUM ANALYZE parts;
SELECT filtered('SELECT * FROM parts WHERE at > ''2000-06-01'' AND status NOT IN (3, 4)', 'GpudsScan.*Filter.*GpudsScan.*Filter');

-- who may not see a row is not told of it; nor may he who may not call an operator's function have it tested
CREATE TABLE secret (k int, owner int, v int, note text);
INSERT INTO secret SELECT i, i % 3, i, 'note' FROM generate_series(1, 3000) i;
CREATE INDEX secret_k ON secret USING gpu_btree (k) INCLUDE (owner, v);
ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON secret USING (owner = current_setting('test.owner')::int);
CREATE VIEW guarded WITH (security_barrier) AS SELECT * FROM t WHERE s = 2;
CREATE FUNCTION tell(text) RETURNS bool LANGUAGE plpgsql COST 0.0001 AS $$ BEGIN RAISE NOTICE '%', $1; RETURN true; END $$;
VACUUM ANALYZE secret;
CREATE ROLE test_entry_filter_reader;
GRANT SELECT ON secret, guarded TO test_entry_filter_reader;
GRANT SELECT (k, note) ON t TO test_entry_filter_reader;
GRANT USAGE ON SCHEMA :test TO test_entry_filter_reader;
SET enable_seqscan = off;
SET ROLE test_entry_filter_reader;
SET test.owner = 1;
EXPLAIN (COSTS OFF) SELECT * FROM secret WHERE k BETWEEN 10 AND 30 AND v > 22 AND v <> 25 AND tell(note);
SELECT * FROM secret WHERE k BETWEEN 10 AND 30 AND v > 22 AND v <> 25 AND tell(note);
SET test.owner = 2;
SELECT * FROM secret WHERE k BETWEEN 10 AND 30 AND v > 22 AND v <> 25 AND tell(note);
SELECT k, s FROM guarded WHERE k BETWEEN 10 AND 40 AND yes AND tell(note);
SELECT note FROM t WHERE k BETWEEN 10 AND 20 AND s = 2;
RESET ROLE;
REVOKE EXECUTE ON FUNCTION int24eq(int2, int4) FROM public;
SET ROLE test_entry_filter_reader;
SELECT count(note) FROM guarded WHERE k BETWEEN 10 AND 300 AND s = 2;
RESET ROLE;
GRANT SELECT ON o, t TO test_entry_filter_reader;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_nestloop = off;
SET enable_indexscan = off;
SET gpuds.enable_join = on;
SET ROLE test_entry_filter_reader;
SELECT count(note) FROM o JOIN t ON t.k = o.k WHERE s = 2;
RESET ROLE;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_nestloop;
RESET enable_indexscan;
RESET gpuds.enable_join;
GRANT EXECUTE ON FUNCTION int24eq(int2, int4) TO public;
SELECT filtered('SELECT count(note) FROM o JOIN t ON t.k = o.k WHERE s = 2', 'GpudsJoin.*Index Filter');
RESET enable_seqscan;
DROP OWNED BY test_entry_filter_reader;
DROP ROLE test_entry_filter_reader;

DROP SCHEMA :test CASCADE;
