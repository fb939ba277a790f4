-- = ANY (array): NULLs, duplicates, no elements, many, other types.
\set test test_arrays
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

CREATE TABLE t (id int, k bigint, v int);
INSERT INTO t SELECT i, CASE WHEN i % 1000 <> 0 THEN (i::bigint * 7919) % 100003 END, i % 97
FROM generate_series(1, 50000) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
ANALYZE t;

SELECT same('SELECT * FROM t WHERE k = ANY (''{}'')', 't_k') LIKE 'no index scan%' AS folded_by_the_planner;
SELECT same('SELECT * FROM t WHERE k = ANY (''{NULL}'')', 't_k');
SELECT same('SELECT * FROM t WHERE k = ANY (''{NULL,NULL,7,NULL,4}'')', 't_k');
SELECT same('SELECT * FROM t WHERE k = ANY (''{7,7,7,7,4,4,7}'')', 't_k');
SELECT same('SELECT * FROM t WHERE k = ANY (''{99999999,-1,-99999999}'')', 't_k');
SELECT same('SELECT * FROM t WHERE k = ANY (''{9223372036854775807,-9223372036854775808,0}'')', 't_k');

-- arrays of two dimensions, and with other bounds
SELECT same('SELECT * FROM t WHERE k = ANY (''{{7,4},{NULL,12}}'')', 't_k');
SELECT same('SELECT * FROM t WHERE k = ANY (''[5:7]={7,12,4}'')', 't_k');

-- arrays of the family's other types, and values that the column cannot hold
SELECT same('SELECT * FROM t WHERE k = ANY (''{7,4,-3,NULL}''::int[])', 't_k');
SELECT same('SELECT * FROM t WHERE k = ANY (''{7,4,-3}''::smallint[])', 't_k');
CREATE TABLE s (id int, k smallint);
INSERT INTO s SELECT i, i - 5000 FROM generate_series(1, 10000) i;
CREATE INDEX s_k ON s USING gpu_btree (k);
ANALYZE s;
SELECT same('SELECT * FROM s WHERE k = ANY (''{-32769,7,32768,65543,100000,-4000}''::int[])', 's_k');
SELECT same('SELECT * FROM s WHERE k = ANY (''{4294967303,7,-9223372036854775808,12}''::bigint[])', 's_k');
SELECT same('SELECT * FROM s WHERE k < ANY (''{-100000,-4990}''::int[])', 's_k');
SELECT same('SELECT * FROM s WHERE k > 100000', 's_k');
SELECT same('SELECT * FROM s WHERE k < 100000', 's_k');
SELECT same('SELECT * FROM s WHERE k >= -32769 AND k <= -4998', 's_k');

-- as a parameter, where nothing is known of the elements at planning time
SET plan_cache_mode = force_generic_plan;
PREPARE by_array(bigint[]) AS SELECT count(*), sum(id) FROM t WHERE k = ANY ($1);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT array_agg(i) AS thousand FROM generate_series(1, 1000) i \gset
SELECT array_agg(i ORDER BY i DESC) AS hundred_thousand FROM generate_series(1, 100000) i \gset
EXPLAIN (COSTS OFF) EXECUTE by_array('{1}');
EXECUTE by_array('{}');
EXECUTE by_array(NULL);
EXECUTE by_array('{NULL}');
EXECUTE by_array('{5,NULL,5,17,100002,NULL,-6}');
EXECUTE by_array(:'thousand');
EXECUTE by_array(:'hundred_thousand');
EXECUTE by_array('{5}');
RESET enable_bitmapscan;
SET enable_indexscan = off;
DISCARD PLANS;
EXPLAIN (COSTS OFF) EXECUTE by_array('{1}');
EXECUTE by_array('{}');
EXECUTE by_array(NULL);
EXECUTE by_array('{NULL}');
EXECUTE by_array('{5,NULL,5,17,100002,NULL,-6}');
EXECUTE by_array(:'thousand');
EXECUTE by_array(:'hundred_thousand');
RESET enable_indexscan;
RESET enable_seqscan;
RESET plan_cache_mode;
DEALLOCATE by_array;
SELECT count(*), sum(id) FROM t WHERE k + 0 = ANY ('{5,NULL,5,17,100002,NULL,-6}');
SELECT count(*), sum(id) FROM t WHERE k + 0 BETWEEN 1 AND 1000;
SELECT count(*), sum(id) FROM t WHERE k + 0 BETWEEN 1 AND 100000;

-- 100,000 keys with duplicates, in no order
CREATE TABLE many AS SELECT array_agg(((i::bigint * 104729) % 150001) - 20000) AS keys FROM generate_series(1, 100000) i;
SET enable_seqscan = off;
SELECT count(*), sum(id), sum(v) FROM t WHERE k = ANY ((SELECT keys FROM many)::bigint[]);
SET enable_bitmapscan = off;
SELECT count(*), sum(id), sum(v) FROM t WHERE k = ANY ((SELECT keys FROM many)::bigint[]);
RESET enable_bitmapscan;
RESET enable_seqscan;
SELECT count(*), sum(id), sum(v) FROM t WHERE k + 0 IN (SELECT unnest(keys) FROM many);
-- and with the values on an array column's side
CREATE TABLE fifty AS SELECT keys[1:50] AS keys FROM many;
SELECT count(*), sum(id) FROM fifty JOIN t ON k = ANY (keys);
SELECT count(*), sum(id) FROM fifty JOIN t ON k + 0 = ANY (keys);

-- arrays rescanned in a nested loop: another array for each outer row
CREATE TABLE groups (g int, keys bigint[]);
INSERT INTO groups SELECT g, array_agg(g * 50 + i * 7 % 400) FROM generate_series(1, 200) g, generate_series(1, 40) i GROUP BY g;
INSERT INTO groups VALUES (201, NULL), (202, '{}'), (203, '{NULL}'), (204, '{NULL,50,50}');
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT g, t.id FROM groups JOIN t ON k = ANY (keys);
CREATE TABLE by_index AS SELECT g, t.id, k FROM groups JOIN t ON k = ANY (keys);
SELECT g, count(*) FROM by_index WHERE g > 200 GROUP BY g ORDER BY g;
SET enable_bitmapscan = on;
SET enable_indexscan = off;
CREATE TABLE by_bitmap AS SELECT g, t.id, k FROM groups JOIN t ON k = ANY (keys);
RESET enable_seqscan;
RESET enable_bitmapscan;
RESET enable_indexscan;
CREATE TABLE by_hash AS SELECT g, t.id, k FROM (SELECT DISTINCT g, unnest(keys) u FROM groups) g JOIN t ON k + 0 = u;
SELECT count(*) FROM by_index;
(TABLE by_index EXCEPT ALL TABLE by_hash) UNION ALL (TABLE by_hash EXCEPT ALL TABLE by_index);
(TABLE by_bitmap EXCEPT ALL TABLE by_hash) UNION ALL (TABLE by_hash EXCEPT ALL TABLE by_bitmap);

-- arrays on several columns multiply
CREATE TABLE m (id int, a int, b int, c int);
INSERT INTO m SELECT i, i % 40, i / 40 % 40, i % 3 FROM generate_series(0, 9999) i;
CREATE INDEX m_abc ON m USING gpu_btree (a, b, c);
ANALYZE m;
SELECT same('SELECT * FROM m WHERE a IN (1, 30, 2, 77) AND b IN (5, 5, 39, 0)', 'm_abc');
SELECT same('SELECT * FROM m WHERE a = 4 AND b IN (9, 3, 40) AND c IN (0, 2)', 'm_abc');
SELECT same('SELECT * FROM m WHERE a IN (4, 5, 6) AND c IN (0, 2)', 'm_abc');
SELECT same('SELECT * FROM m WHERE a IN (4, 5, 6) AND b > 30 AND c = 1', 'm_abc');
SELECT same('SELECT * FROM m WHERE a >= 38 AND b IN (1, 2, 3)', 'm_abc');
SELECT same('SELECT * FROM m WHERE b IN (1, 2, 3)', 'm_abc');
SELECT same('SELECT * FROM m WHERE a IN (4, NULL, 6) AND b IN (NULL, 5)', 'm_abc');
SELECT same('SELECT * FROM m WHERE a IN (4, 6) AND b IN (NULL, NULL)', 'm_abc');
SELECT same(format('SELECT * FROM m WHERE a = ANY (%L) AND b = ANY (%L) AND c = ANY (%L)',
	(SELECT array_agg(i) FROM generate_series(-200, 200) i),
	(SELECT array_agg(i) FROM generate_series(-200, 200) i),
	(SELECT array_agg(i) FROM generate_series(-200, 200) i)), 'm_abc');
-- a product of arrays too large to be written out still answers
SELECT same(format('SELECT * FROM m WHERE a = ANY (%L) AND b = ANY (%L) AND c = ANY (%L)',
	(SELECT array_agg(i) FROM generate_series(1, 2000) i),
	(SELECT array_agg(i) FROM generate_series(1, 2000) i),
	(SELECT array_agg(i) FROM generate_series(1, 2000) i)), 'm_abc');

-- an index in descending order
CREATE INDEX s_k_desc ON s USING gpu_btree (k DESC);
DROP INDEX s_k;
SELECT same('SELECT * FROM s WHERE k = ANY (''{-7,7,32768,100000,-4000,NULL}''::int[])', 's_k_desc');
SELECT same('SELECT * FROM s WHERE k > ANY (''{4990,4995}''::int[])', 's_k_desc');

-- what work_mem does not hold goes in batches, which join at their ends
SET work_mem = '64kB';
CREATE TABLE mn AS SELECT i AS id, nullif(i % 40, 7) AS a, i / 40 % 40 AS b FROM generate_series(0, 10200) i;
CREATE INDEX mn_bai ON mn USING gpu_btree (b DESC, a NULLS FIRST, id);
ANALYZE mn;
SELECT array_agg(i) AS ids FROM generate_series(10200, 1, -1) i \gset
SELECT array_agg((i * 7919) % 30011) AS scattered FROM generate_series(1, 9000) i \gset
SELECT same(format('SELECT * FROM mn WHERE b IN (0, 37, 39) AND a IN (1, 2, 3) AND id = ANY (%L)', :'ids'), 'mn_bai');
SELECT same(format('SELECT * FROM mn WHERE b IN (39, 38, 37, 3) AND a IS NULL AND id = ANY (%L)', :'ids'), 'mn_bai');
SELECT same(format('SELECT * FROM mn WHERE b = 39 AND a = 1 AND id = ANY (%L)', :'scattered'), 'mn_bai');
SELECT same(format('SELECT * FROM mn WHERE b = ANY (%L) AND a = 1 AND id < 5000', :'scattered'), 'mn_bai');
CREATE TABLE pairs (a bigint, b bigint, c int);
INSERT INTO pairs SELECT (i * 7919) % 30011, i % 3, i FROM generate_series(1, 30000) i;
CREATE INDEX pairs_a_b ON pairs USING gpu_btree (a DESC, b);
ANALYZE pairs;
SELECT same(format('SELECT * FROM pairs WHERE a = ANY (%L) AND b = 1 ORDER BY a DESC', :'scattered'), 'pairs_a_b', true);
SELECT same(format('SELECT * FROM pairs WHERE a = ANY (%L) AND b = 1 ORDER BY a', :'scattered'), 'pairs_a_b', true);
SELECT same(format('SELECT * FROM pairs WHERE a = ANY (%L) AND b IN (0, 1)', :'scattered'), 'pairs_a_b');
SELECT same(format('SELECT * FROM pairs WHERE a = ANY (%L) AND b IN (0, 1) AND a = ANY (%L)', :'scattered', :'ids'), 'pairs_a_b');
SELECT same(format('SELECT * FROM pairs WHERE a = ANY (%L) AND a BETWEEN 100 AND 25000 AND b = 2', :'scattered'), 'pairs_a_b');
\set ECHO none
-- to and fro over the ends
CREATE FUNCTION walk(keys bigint[], plain bool) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	c SCROLL CURSOR FOR SELECT a, b, c FROM pairs WHERE a = ANY (keys) AND b = 1 ORDER BY a DESC;
	step int;
	r record;
	answer text := '';
BEGIN
	PERFORM set_config('enable_indexscan', (NOT plain)::text, true), set_config('enable_seqscan', plain::text, true),
		set_config('enable_bitmapscan', 'off', true), set_config('enable_sort', plain::text, true);
	OPEN c;
	FOREACH step IN ARRAY '{1, 330, 20, -25, 400, -380, 1500, -700, 10, 2000, -1, -3000, -1, 1, 1023, 1024, -1024, 1025, -1}'::int[] LOOP
		MOVE RELATIVE step FROM c;
		FETCH RELATIVE 0 FROM c INTO r;
		answer := answer || step || ':' || coalesce(r::text, 'none') || ' ';
	END LOOP;
	CLOSE c;
	PERFORM set_config('enable_indexscan', 'on', true), set_config('enable_seqscan', 'on', true),
		set_config('enable_bitmapscan', 'on', true), set_config('enable_sort', 'on', true);
	RETURN answer;
END $$;
\set ECHO all
SET plan_cache_mode = force_custom_plan;
SELECT walk(:'scattered', false) = walk(:'scattered', true) AS same, length(walk(:'scattered', true)) > 300 AS long;
RESET plan_cache_mode;
-- marks of a merge join, in batches other than the present one
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_material = off;
CREATE TABLE outer_side AS SELECT i, i * 3 / 10 AS a FROM generate_series(1, 90000) i;
ANALYZE outer_side;
SELECT plan_of(format('SELECT count(*), sum(i), sum(c) FROM outer_side o JOIN pairs p ON p.a = o.a WHERE p.a = ANY (%L) AND b = 1', :'scattered')) ~ 'Merge Join.*pairs_a_b' AS marks;
SELECT count(*), sum(i), sum(c) FROM outer_side o JOIN pairs p ON p.a = o.a WHERE p.a = ANY (:'scattered') AND b = 1;
RESET enable_hashjoin;
SET enable_mergejoin = off;
SET enable_indexscan = off;
RESET enable_seqscan;
SELECT count(*), sum(i), sum(c) FROM outer_side o JOIN pairs p ON p.a = o.a WHERE p.a = ANY (:'scattered') AND b = 1;
