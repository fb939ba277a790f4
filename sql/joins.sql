-- Joins that rescan the index for every outer row.
\set test test_joins
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

CREATE TABLE t (id int, k int, v int);
INSERT INTO t SELECT i, CASE WHEN i % 100 <> 0 THEN (i * 7919) % 6007 END, i % 10 FROM generate_series(1, 12000) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
CREATE TABLE o (id int, k bigint, n smallint);
INSERT INTO o SELECT i, nullif(i * 3 % 9001, 6), i % 300 FROM generate_series(1, 4000) i;
ANALYZE t, o;

\set ECHO none
-- the answer with the index on the inner side, and by hash join without it; and by GpudsJoin, if it has a plan
CREATE FUNCTION same_join(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan text;
	answer text;
	right_answer text;
BEGIN
	SET LOCAL enable_indexscan = off;
	SET LOCAL enable_bitmapscan = off;
	right_answer := digest_of(query, false);
	SET LOCAL enable_indexscan = on;
	SET LOCAL enable_hashjoin = off;
	SET LOCAL enable_mergejoin = off;
	SET LOCAL enable_hashagg = off;
	SET LOCAL enable_seqscan = off;
	SET LOCAL enable_material = off;
	SET LOCAL enable_memoize = off;
	plan := plan_of(query);
	IF plan NOT LIKE '%Nested Loop%Index%Scan%using t_k%' AND plan NOT LIKE '%SubPlan%Index%Scan%using t_k%' THEN
		RETURN 'no nested loop over the index: ' || plan;
	END IF;
	answer := digest_of(query, false);
	SET LOCAL gpuds.enable_join = on;
	SET LOCAL enable_nestloop = off;
	plan := plan_of(query);
	IF plan LIKE '%GpudsJoin%' AND answer = right_answer THEN
		answer := digest_of(query, false);
	END IF;
	SET LOCAL gpuds.enable_join = off;
	SET LOCAL enable_nestloop = on;
	SET LOCAL enable_hashjoin = on;
	SET LOCAL enable_mergejoin = on;
	SET LOCAL enable_hashagg = on;
	SET LOCAL enable_seqscan = on;
	SET LOCAL enable_bitmapscan = on;
	SET LOCAL enable_material = on;
	SET LOCAL enable_memoize = on;
	RETURN CASE WHEN answer = right_answer THEN split_part(answer, ' rows', 1) || ' rows agree'
			|| CASE WHEN plan LIKE '%GpudsJoin%' THEN ', GpudsJoin too' ELSE '' END
		ELSE answer || ', right: ' || right_answer END;
END $$;
\set ECHO all

SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_memoize = off;
EXPLAIN (COSTS OFF) SELECT * FROM o JOIN t USING (k);
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_seqscan;
RESET enable_bitmapscan;
RESET enable_memoize;

SELECT same_join('SELECT * FROM o JOIN t USING (k)');
SELECT same_join('SELECT * FROM o JOIN t ON t.k = o.n');
SELECT same_join('SELECT * FROM o LEFT JOIN t USING (k)');
SELECT same_join('SELECT * FROM o LEFT JOIN t ON t.k = o.k AND t.v = 3');
SELECT same_join('SELECT * FROM o JOIN t ON t.k = o.k AND t.k > 1000');
SELECT same_join('SELECT * FROM o JOIN t ON t.k = o.k WHERE t.v = 4 AND o.n < 100');
-- ranges that depend on the outer row
SELECT same_join('SELECT o.id, t.id FROM o JOIN t ON t.k BETWEEN o.n AND o.n + 2 WHERE o.id <= 100');
SELECT same_join('SELECT o.id, t.id FROM o JOIN t ON t.k > o.k AND t.k < o.k + 3 WHERE o.id <= 100');
SELECT same_join('SELECT o.id, t.id FROM o JOIN t ON t.k = ANY (ARRAY[o.n, o.k, o.id]::bigint[]) WHERE o.id <= 100');

-- semi and anti joins
SELECT same_join('SELECT * FROM o WHERE EXISTS (SELECT FROM t WHERE t.k = o.k)');
SELECT same_join('SELECT * FROM o WHERE NOT EXISTS (SELECT FROM t WHERE t.k = o.k)');
SELECT same_join('SELECT * FROM o WHERE o.k IN (SELECT k FROM t WHERE v < 5)');
SELECT same_join('SELECT * FROM o WHERE EXISTS (SELECT FROM t WHERE t.k = o.k AND t.v = o.n % 10)');
SELECT same_join('SELECT * FROM o WHERE EXISTS (SELECT FROM t WHERE t.k = o.k) OR o.n = 7');

-- lateral and correlated subqueries
SELECT same_join('SELECT o.id, l.k FROM o, LATERAL (SELECT k FROM t WHERE t.k >= o.k ORDER BY k LIMIT 3) l WHERE o.id <= 200');
SELECT same_join('SELECT o.id, l.k FROM o LEFT JOIN LATERAL (SELECT k FROM t WHERE t.k < o.n ORDER BY k DESC LIMIT 1) l ON true WHERE o.id <= 200');
SELECT same_join('SELECT o.id, (SELECT max(k) FROM t WHERE t.k < o.n) FROM o WHERE o.id <= 200');
SELECT same_join('SELECT o.id, (SELECT min(k) FROM t WHERE t.k > o.k) FROM o WHERE o.id <= 200');
SELECT same_join('SELECT o.id, (SELECT count(*) FROM t WHERE t.k = o.k) FROM o WHERE o.id <= 200');

-- self join and three ways
SELECT same_join('SELECT a.id, b.id FROM t a JOIN t b ON b.k = a.k + 1 WHERE a.id <= 2000');
SELECT same_join('SELECT o.id, a.id, b.id FROM o JOIN t a ON a.k = o.k JOIN t b ON b.k = a.id WHERE o.n < 60');

-- a recursive walk
SET enable_seqscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
WITH RECURSIVE walk(step, k) AS (
	SELECT 1, 1
	UNION ALL
	SELECT step + 1, t.id % 6007 FROM walk JOIN t ON t.k = walk.k WHERE step < 6
)
SELECT step, count(*), sum(k) FROM walk GROUP BY step ORDER BY step;
SET enable_indexscan = off;
SET enable_bitmapscan = off;
SET enable_seqscan = on;
SET enable_hashjoin = on;
WITH RECURSIVE walk(step, k) AS (
	SELECT 1, 1
	UNION ALL
	SELECT step + 1, t.id % 6007 FROM walk JOIN t ON t.k = walk.k WHERE step < 6
)
SELECT step, count(*), sum(k) FROM walk GROUP BY step ORDER BY step;
RESET enable_indexscan;
RESET enable_bitmapscan;
RESET enable_mergejoin;

-- rescans with arguments of NULL between others, in a function's loop
CREATE FUNCTION probe(wanted int) RETURNS bigint LANGUAGE sql STABLE AS
'SELECT count(*) FROM test_joins.t WHERE k = wanted';
SELECT sum(probe(CASE WHEN i % 3 <> 0 THEN i END)) FROM generate_series(1, 3000) i;
SELECT count(*) FROM t WHERE k + 0 BETWEEN 1 AND 3000 AND k % 3 <> 0;
-- outer rows change while the scan is under way
SELECT count(*) - count(*) FILTER (WHERE k + 0 IN (SELECT k FROM t WHERE v = 5 AND id < 6000)) AS left_over,
	count(*) FILTER (WHERE k + 0 IN (SELECT k FROM t WHERE id < 6000)
		AND k + 0 NOT IN (SELECT k FROM t WHERE v = 5 AND id < 6000 AND k IS NOT NULL)) AS changed
FROM o;
SET enable_seqscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
UPDATE o SET n = -1 FROM t WHERE t.k = o.k AND t.id < 6000;
DELETE FROM o USING t WHERE t.k = o.k AND t.v = 5 AND t.id < 6000;
RESET enable_seqscan;
RESET enable_hashjoin;
RESET enable_mergejoin;
SELECT count(*) AS left_over, count(*) FILTER (WHERE n = -1) AS changed FROM o;
