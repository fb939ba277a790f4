-- Ordered scans: both directions, LIMIT, merge joins, min and max.
\set test test_ordering
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

CREATE TABLE t (id int, k int);
INSERT INTO t SELECT i, CASE WHEN i % 50 <> 0 THEN (i * 7919) % 4001 END
FROM generate_series(1, 10000) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
ANALYZE t;

-- four orders are one index
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT k FROM t ORDER BY k;
EXPLAIN (COSTS OFF) SELECT k FROM t ORDER BY k DESC;
EXPLAIN (COSTS OFF) SELECT k FROM t ORDER BY k LIMIT 3;
RESET enable_seqscan;
RESET enable_bitmapscan;
SELECT same('SELECT k FROM t ORDER BY k', 't_k', true);
SELECT same('SELECT k FROM t ORDER BY k DESC', 't_k', true);
SELECT same('SELECT k FROM t WHERE k > 100 AND k <= 3000 ORDER BY k', 't_k', true);
SELECT same('SELECT k FROM t WHERE k > 100 AND k <= 3000 ORDER BY k DESC', 't_k', true);
SELECT same('SELECT k FROM t WHERE k IS NULL ORDER BY k', 't_k', true);
SELECT same('SELECT k FROM t WHERE k IS NOT NULL ORDER BY k DESC', 't_k', true);
-- NULLS FIRST is not this index's order
SELECT plan_of('SELECT k FROM t ORDER BY k NULLS FIRST') LIKE '%Sort%' AS sorts;

-- LIMIT and OFFSET
SELECT same('SELECT k FROM t ORDER BY k LIMIT 1', 't_k', true);
SELECT same('SELECT k FROM t ORDER BY k DESC LIMIT 300', 't_k', true);
SELECT same('SELECT k FROM t ORDER BY k LIMIT 10 OFFSET 9795', 't_k', true);
SELECT same('SELECT k FROM t WHERE k >= 2000 ORDER BY k LIMIT 7', 't_k', true);
SELECT same('SELECT k FROM t WHERE k <= 2000 ORDER BY k DESC LIMIT 7', 't_k', true);
SELECT same('SELECT k FROM t WHERE k <= 2000 AND id % 1000 = 1 ORDER BY k DESC LIMIT 7', 't_k', true);

-- min and max
SET enable_seqscan = off;
SELECT plan_of('SELECT min(k) FROM t') LIKE '%Index Only Scan using t_k%' AS first,
	plan_of('SELECT max(k) FROM t') LIKE '%Index Only Scan Backward using t_k%' AS last;
SELECT min(k), max(k) FROM t;
SELECT min(k), max(k) FROM t WHERE k > 1234 AND k < 4000;
SELECT min(k), max(k) FROM t WHERE k > 5000;
RESET enable_seqscan;

-- an array gives no order in every version of the planner, but sorted it is
-- right all the same
SELECT k FROM t WHERE k IN (3000, 5, 17, 5, NULL) ORDER BY k DESC;
SELECT digest_of('SELECT k FROM t WHERE k = ANY (''{7,3,3,900,12,4000}'') ORDER BY k', true)
	= digest_of('SELECT k FROM t WHERE k + 0 = ANY (''{7,3,3,900,12,4000}'') ORDER BY k', true) AS same;

-- the other orders of an index
CREATE INDEX t_k_desc ON t USING gpu_btree (k DESC);
DROP INDEX t_k;
SELECT same('SELECT k FROM t ORDER BY k', 't_k_desc', true);
SELECT same('SELECT k FROM t ORDER BY k DESC', 't_k_desc', true);
SELECT same('SELECT k FROM t WHERE k < 40 ORDER BY k DESC LIMIT 5', 't_k_desc', true);
SELECT same('SELECT k FROM t WHERE k > 40 ORDER BY k LIMIT 5', 't_k_desc', true);
CREATE INDEX t_k_nulls_first ON t USING gpu_btree (k NULLS FIRST);
DROP INDEX t_k_desc;
SELECT same('SELECT k FROM t ORDER BY k NULLS FIRST', 't_k_nulls_first', true);
SELECT same('SELECT k FROM t ORDER BY k DESC NULLS LAST LIMIT 20', 't_k_nulls_first', true);
SELECT same('SELECT k FROM t ORDER BY k NULLS FIRST LIMIT 250', 't_k_nulls_first', true);
SELECT same('SELECT k FROM t WHERE k IS NULL', 't_k_nulls_first');
SELECT same('SELECT k FROM t WHERE k < 100', 't_k_nulls_first');
CREATE INDEX t_k_desc_nulls_last ON t USING gpu_btree (k DESC NULLS LAST);
DROP INDEX t_k_nulls_first;
SELECT same('SELECT k FROM t ORDER BY k DESC NULLS LAST', 't_k_desc_nulls_last', true);
SELECT same('SELECT k FROM t ORDER BY k NULLS FIRST', 't_k_desc_nulls_last', true);
SELECT same('SELECT k FROM t WHERE k > 3900', 't_k_desc_nulls_last');
SELECT same('SELECT k FROM t WHERE k IS NOT NULL', 't_k_desc_nulls_last');
DROP INDEX t_k_desc_nulls_last;

-- several columns, mixed directions, and a prefix of the order
CREATE TABLE m (id int, a int, b int, c bigint);
INSERT INTO m SELECT i, nullif(i % 13, 0), nullif((i * 31) % 101, 7), i FROM generate_series(1, 4000) i;
CREATE INDEX m_abc ON m USING gpu_btree (a, b DESC NULLS LAST, c) WITH (fillfactor = 70);
ANALYZE m;
SELECT same('SELECT * FROM m ORDER BY a, b DESC NULLS LAST, c', 'm_abc', true);
SELECT same('SELECT * FROM m ORDER BY a DESC, b NULLS FIRST, c DESC', 'm_abc', true);
SELECT same('SELECT a FROM m ORDER BY a', 'm_abc', true);
SELECT same('SELECT a, b FROM m WHERE a = 3 ORDER BY b DESC NULLS LAST', 'm_abc', true);
SELECT same('SELECT a, b, c FROM m WHERE a = 3 AND b = 30 ORDER BY c', 'm_abc', true);
SELECT same('SELECT a, b, c FROM m WHERE a = 3 AND b < 30 ORDER BY b NULLS FIRST, c DESC LIMIT 17', 'm_abc', true);
SELECT same('SELECT a, b FROM m WHERE a IS NULL ORDER BY a DESC, b NULLS FIRST', 'm_abc', true);
-- a condition on a later column filters within the order
SELECT same('SELECT a, b, c FROM m WHERE c BETWEEN 1000 AND 1500 ORDER BY a, b DESC NULLS LAST, c', 'm_abc', true);
SELECT same('SELECT a, b, c FROM m WHERE a > 4 AND c BETWEEN 1000 AND 1500 ORDER BY a DESC, b NULLS FIRST, c DESC LIMIT 30', 'm_abc', true);
SELECT same('SELECT DISTINCT a FROM m ORDER BY a', 'm_abc', true);

-- arrays within the order, whether the planner relies on it or not
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT digest_of('SELECT a, b, c FROM m WHERE a IN (9, 3, 5) AND b IN (70, 1, 30) ORDER BY a, b DESC NULLS LAST, c', true)
	= digest_of('SELECT a, b, c FROM m WHERE a + 0 IN (9, 3, 5) AND b + 0 IN (70, 1, 30) ORDER BY a, b DESC NULLS LAST, c', true) AS same;
SELECT digest_of('SELECT a, b, c FROM m WHERE a = 3 AND b IN (70, 1, 30) ORDER BY a DESC, b NULLS FIRST, c DESC', true)
	= digest_of('SELECT a, b, c FROM m WHERE a + 0 = 3 AND b + 0 IN (70, 1, 30) ORDER BY a DESC, b NULLS FIRST, c DESC', true) AS same;
SELECT digest_of('SELECT a, b, c FROM m WHERE a > 2 AND b IN (70, 1, 30) AND c % 2 = 0 ORDER BY a, b DESC NULLS LAST, c LIMIT 20', true)
	= digest_of('SELECT a, b, c FROM m WHERE a + 0 > 2 AND b + 0 IN (70, 1, 30) AND c % 2 = 0 ORDER BY a, b DESC NULLS LAST, c LIMIT 20', true) AS same;
RESET enable_seqscan;
RESET enable_bitmapscan;

-- merge joins: duplicates on both sides make the inner scan go back to a mark
CREATE TABLE o (id int, k int);
INSERT INTO o SELECT i, i % 400 * 10 FROM generate_series(1, 1200) i;
CREATE INDEX o_k ON o USING gpu_btree (k);
CREATE INDEX t_k ON t USING gpu_btree (k);
ANALYZE o;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;
SET enable_material = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM o JOIN t ON o.k = t.k;
SELECT count(*), sum(o.id), sum(t.id) FROM o JOIN t ON o.k = t.k;
SELECT count(*), sum(o.id), sum(t.id) FROM (SELECT * FROM t ORDER BY k DESC) t JOIN (SELECT * FROM o ORDER BY k DESC) o ON o.k = t.k;
SELECT count(*), sum(t.id), sum(u.id) FROM t JOIN t u USING (k);
SELECT count(*), sum(o.id), sum(t.id) FROM o FULL JOIN t ON o.k = t.k;
SELECT count(*), sum(o.id), sum(t.id) FROM o LEFT JOIN t ON o.k = t.k AND t.id % 3 = 0;
-- groups longer than any chunk that a scan reads at once
CREATE TABLE wide (id int, k int);
INSERT INTO wide SELECT i, i % 2 FROM generate_series(1, 6000) i;
CREATE INDEX wide_k ON wide USING gpu_btree (k);
CREATE TABLE few (id int, k int);
INSERT INTO few SELECT i, i % 4 FROM generate_series(1, 12) i;
CREATE INDEX few_k ON few USING gpu_btree (k);
ANALYZE wide, few;
EXPLAIN (COSTS OFF) SELECT count(*) FROM few JOIN wide USING (k);
SELECT count(*), sum(few.id), sum(wide.id) FROM few JOIN wide USING (k);
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_seqscan;
RESET enable_bitmapscan;
RESET enable_sort;
RESET enable_material;
-- the same by hash joins over sequential scans
SET enable_indexscan = off;
SET enable_bitmapscan = off;
SET enable_mergejoin = off;
SELECT count(*), sum(o.id), sum(t.id) FROM o JOIN t ON o.k = t.k;
SELECT count(*), sum(o.id), sum(t.id) FROM (SELECT * FROM t ORDER BY k DESC) t JOIN (SELECT * FROM o ORDER BY k DESC) o ON o.k = t.k;
SELECT count(*), sum(t.id), sum(u.id) FROM t JOIN t u USING (k);
SELECT count(*), sum(o.id), sum(t.id) FROM o FULL JOIN t ON o.k = t.k;
SELECT count(*), sum(o.id), sum(t.id) FROM o LEFT JOIN t ON o.k = t.k AND t.id % 3 = 0;
SELECT count(*), sum(few.id), sum(wide.id) FROM few JOIN wide USING (k);
RESET enable_indexscan;
RESET enable_bitmapscan;
RESET enable_mergejoin;

-- groups, windows and distinct values from the order alone
SELECT same('SELECT k, count(*) FROM t GROUP BY k ORDER BY k', 't_k', true);
SELECT same('SELECT k, row_number() OVER (ORDER BY k DESC) FROM t', 't_k', true);
SELECT same('SELECT DISTINCT k FROM t ORDER BY k', 't_k', true);
SELECT same('SELECT k, id FROM t ORDER BY k, id LIMIT 500', 't_k');

-- a merge append over two ordered scans
SET enable_seqscan = off;
SET enable_sort = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT k FROM t UNION ALL SELECT k FROM o ORDER BY k LIMIT 5;
SELECT k FROM t UNION ALL SELECT k FROM o ORDER BY k LIMIT 5;
SELECT k FROM t WHERE k IS NOT NULL UNION ALL SELECT k FROM o ORDER BY k DESC LIMIT 5;
RESET enable_seqscan;
RESET enable_sort;
RESET enable_bitmapscan;

-- duplicates without end: order and count of one value
CREATE TABLE d (id int, k smallint);
INSERT INTO d SELECT i, i % 3 FROM generate_series(1, 30000) i;
CREATE INDEX d_k ON d USING gpu_btree (k);
ANALYZE d;
SELECT same('SELECT k FROM d ORDER BY k', 'd_k', true);
SELECT same('SELECT k FROM d WHERE k > 0 ORDER BY k DESC', 'd_k', true);
SELECT same('SELECT id FROM d WHERE k = 1', 'd_k');
-- entries of one key come in the heap's order, and in reverse backwards
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT count(*) FROM (SELECT ctid, lag(ctid) OVER () AS before FROM d WHERE k = 1) s WHERE before >= ctid;
SELECT count(*) FROM (SELECT ctid, lag(ctid) OVER () AS before, k FROM (SELECT ctid, k FROM d WHERE k >= 1 AND k <= 1 ORDER BY k DESC) i) s
WHERE before <= ctid;
