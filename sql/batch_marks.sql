-- Semijoins and antijoins of which it is enough to know which outer rows have a match: a GPU answers for probes as they
-- come, but for rows of pages that are not all-visible, and those that the memtable knows of.
\set test test_batch_marks
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

CREATE TABLE t (id int, k int, v bigint, at timestamptz)
WITH (autovacuum_enabled = off, fillfactor = 60);
INSERT INTO t SELECT i, i * 7919 % 9001, i % 3001 * 1000000000000, timestamptz '2000-01-01' + i * interval '1 h'
FROM generate_series(1, 12000) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
CREATE INDEX t_v_k ON t USING gpu_btree (v, k DESC);
CREATE INDEX t_at ON t USING gpu_btree (at);
-- some outer rows without a key, many with the same one, some with one that t has not
CREATE TABLE o (id int, k int, v bigint, at timestamptz) WITH (autovacuum_enabled = off);
INSERT INTO o SELECT i, nullif(i * 31 % 12007, 55), i % 3500 * 1000000000000, timestamptz '2000-02-01' + i * interval '20 min'
FROM generate_series(1, 20000) i;
INSERT INTO o SELECT i, 17, 2000000000000, '2000-03-03' FROM generate_series(20001, 23000) i;
VACUUM ANALYZE t, o;
SET gpuds.enable_join = on;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_nestloop = off;

\set ECHO none
-- The rows of a query by a GpudsJoin, whose plan has some words, and by core.
CREATE FUNCTION marked(query text, words text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answer text;
	right_answer text;
	plan text := plan_of(query);
BEGIN
	IF plan NOT LIKE '%' || words || '%' THEN
		RETURN plan;
	END IF;
	answer := digest_of(query, false);
	SET LOCAL gpuds.enable_join = off;
	SET LOCAL enable_hashjoin = on;
	right_answer := digest_of(query, false);
	SET LOCAL enable_hashjoin = off;
	SET LOCAL gpuds.enable_join = on;
	RETURN CASE WHEN answer = right_answer THEN split_part(answer, ' rows', 1) || ' rows agree'
		ELSE answer || ', right: ' || right_answer END;
END $$;
-- The rows of o that conditions on t leave, and how many they are.
CREATE FUNCTION all_marked() RETURNS SETOF text LANGUAGE sql AS $$
	SELECT c.n || ': ' || marked('SELECT o.id FROM o WHERE ' || replace(c.condition, 'EXISTS', s.which), 'GpudsJoin')
		|| replace(marked('SELECT count(*) FROM o WHERE ' || replace(c.condition, 'EXISTS', s.which), 'Rows Counted'), '1 rows agree', '')
	FROM (VALUES (1, 'EXISTS (SELECT FROM t WHERE t.k = o.k)'),
		(2, 'EXISTS (SELECT FROM t WHERE t.v = o.v)'),
		(3, 'EXISTS (SELECT FROM t WHERE t.v = o.v AND t.k = o.k)'),
		(4, 'EXISTS (SELECT FROM t WHERE t.at = o.at)'),
		(5, 'EXISTS (SELECT FROM t WHERE t.v = o.k * 1000000000000)')) c (n, condition),
		(VALUES (1, 'EXISTS'), (2, 'NOT EXISTS')) s (m, which)
	ORDER BY c.n, s.m
$$;
\set ECHO all
EXPLAIN (COSTS OFF) SELECT o.id FROM o WHERE NOT EXISTS (SELECT FROM t WHERE t.v = o.v AND t.k = o.k);
SELECT all_marked();

-- rows that the memtable has: new ones, changed ones, deleted ones; of other transactions, and of this one
INSERT INTO t SELECT i, 9001 + i, i * 3, NULL FROM generate_series(1, 1500) i;
UPDATE t SET k = k + 5000 WHERE id % 50 = 0;
DELETE FROM t WHERE id % 41 = 0;
SELECT all_marked();
BEGIN;
INSERT INTO t SELECT i, 11000 + i % 500, i * 3, NULL FROM generate_series(1, 900) i;
UPDATE t SET v = v + 7000000000000 WHERE id % 60 = 0;
SAVEPOINT a;
DELETE FROM t WHERE id % 3 = 0;
SELECT all_marked();
ROLLBACK TO a;
SELECT all_marked();
ROLLBACK;
SELECT all_marked();
-- rows of pages that are not all-visible
SELECT gpuds_index_evict('t_k'), gpuds_index_evict('t_v_k'), gpuds_index_evict('t_at');
SELECT all_marked();
VACUUM t;
SELECT all_marked();
-- none of the pages is
UPDATE t SET id = -id;
SELECT gpuds_index_evict('t_k'), gpuds_index_evict('t_v_k'), gpuds_index_evict('t_at');
SELECT all_marked();
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT all_marked();
COMMIT;
VACUUM t;

-- once for each of several rows, and not all of them
SELECT g, (SELECT count(*) FROM o WHERE o.id % 4 = g AND EXISTS (SELECT FROM t WHERE t.k = o.k)),
	(SELECT count(*) FROM o WHERE o.id % 4 = g AND o.k + 0 IN (SELECT k + 0 FROM t)) FROM generate_series(0, 3) g;
SELECT count(*) FROM (SELECT FROM o WHERE EXISTS (SELECT FROM t WHERE t.k = o.k) LIMIT 5000) s;
-- rows that are only counted are one request to a GPU
SELECT batches AS before FROM gpuds_stat_indexes WHERE indexrelid = 't_k'::regclass \gset
SELECT count(*) FROM o WHERE EXISTS (SELECT FROM t WHERE t.k = o.k);
SELECT current_setting('gpuds.device') <> 'cuda' OR batches - :before = 1 AS few_requests
FROM gpuds_stat_indexes WHERE indexrelid = 't_k'::regclass;
-- the rows come in the order of the outer plan
SELECT bool_and(id > before) FROM (SELECT id, lag(id, 1, 0) OVER () AS before FROM o WHERE EXISTS (SELECT FROM t WHERE t.k = o.k)) s;
-- counts beside others, of some of the rows, in parallel, once for each of several rows
SELECT query, marked(query, 'Rows Counted') FROM (VALUES
	('SELECT count(*) + 1 AS a, 2 * count(*) AS b FROM o WHERE EXISTS (SELECT FROM t WHERE t.k = o.k) HAVING count(*) > 3'),
	('SELECT count(*) FROM o WHERE o.id % 3 = 0 AND NOT EXISTS (SELECT FROM t WHERE t.k = o.k AND t.v > 5)'),
	('SELECT count(*) FROM o WHERE EXISTS (SELECT FROM t WHERE t.k = o.k AND t.id % 2 = 0)'),
	('SELECT g, (SELECT count(*) + g FROM o WHERE EXISTS (SELECT FROM t WHERE t.k = o.k)) FROM generate_series(1, 3) g'),
	('SELECT g, (SELECT count(*) FROM o WHERE NOT EXISTS (SELECT FROM t WHERE t.k = o.k AND t.v > g * 1000000000000000)) FROM generate_series(1, 3) g')) q (query);
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SELECT marked('SELECT count(*) FROM o WHERE EXISTS (SELECT FROM t WHERE t.k = o.k)', 'Gather%Rows Counted');
RESET max_parallel_workers_per_gather;
-- by columns that the outer table has got later, behind one that it has no more
CREATE TABLE late (x text, y int) WITH (autovacuum_enabled = off);
INSERT INTO late SELECT i, i FROM generate_series(1, 1000) i;
ALTER TABLE late DROP x, ADD k int DEFAULT 17, ADD w int;
INSERT INTO late SELECT i, i FROM generate_series(1, 1000) i;
ANALYZE late;
SELECT marked('SELECT count(*) FROM late WHERE EXISTS (SELECT FROM t WHERE t.k = late.k)', 'Rows Counted'),
	marked('SELECT count(*) FROM late WHERE NOT EXISTS (SELECT FROM t WHERE t.k = late.w)', 'Rows Counted'),
	marked('SELECT t.id FROM t WHERE t.k IN (SELECT k FROM late)', 'Right Semi');
-- NULLs first: the bits that say so are in all keys, behind the first word of long ones
CREATE TABLE f WITH (autovacuum_enabled = off) AS SELECT id, k::bigint AS k, v FROM t;
CREATE INDEX f_k ON f USING gpu_btree (k NULLS FIRST);
VACUUM ANALYZE f;
DELETE FROM f WHERE id % 50 = 0;
INSERT INTO f SELECT id, k, v FROM t WHERE id % 50 = 0;
SELECT marked('SELECT count(*) FROM o WHERE EXISTS (SELECT FROM f WHERE f.k = o.k)', 'Rows Counted'),
	marked('SELECT count(*) FROM o WHERE NOT EXISTS (SELECT FROM f WHERE f.k = o.k)', 'Rows Counted'),
	marked('SELECT count(*), sum(f.v) FROM o LEFT JOIN f ON f.k = o.k', 'Left');
SELECT gpuds_contains('f_k', k::bigint[]) = gpuds_contains('t_k', k) FROM (SELECT array_agg(k) AS k FROM o WHERE k IS NOT NULL) s;
SELECT gpuds_contains('f_k', k::bigint[]) = gpuds_contains('t_k', k) FROM (SELECT array_agg(k) AS k FROM o) s;
-- of temporary tables
CREATE TEMP TABLE mine AS SELECT * FROM t;
CREATE INDEX ON mine USING gpu_btree (k);
ANALYZE mine;
SELECT (SELECT count(*) FROM o WHERE EXISTS (SELECT FROM mine WHERE mine.k = o.k)) = (SELECT count(*) FROM o WHERE EXISTS (SELECT FROM t WHERE t.k = o.k));
SELECT gpuds_index_check('t_k', true), gpuds_index_check('t_v_k', true), gpuds_index_check('t_at', true);
