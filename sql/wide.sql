-- Queries with more of everything than anybody expects: conditions, aggregates, columns, groups, joins, partitions.
\set test test_wide
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

\set ECHO none
CREATE FUNCTION listed(n int, item text, separator text) RETURNS text LANGUAGE sql AS
	'SELECT string_agg(replace(item, ''%'', i::text), separator) FROM generate_series(1, n) i';
-- Does a query answer as by sequential scans, and by which of our nodes?
CREATE FUNCTION agrees(query text, OUT answer text) LANGUAGE plpgsql AS $$
DECLARE
	right_answer text := right_digest_of(query, false);
BEGIN
	SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SET LOCAL enable_nestloop = off;
	SET LOCAL gpuds.enable_aggregate = on; SET LOCAL gpuds.enable_join = on; SET LOCAL gpuds.enable_scan = on;
	answer := split_part(digest_of(query, false), ' rows', 1) || ' rows' ||
		coalesce(' by ' || (SELECT string_agg(DISTINCT node[1], ', ' ORDER BY node[1]) FROM regexp_matches(plan_of(query), 'Gpuds\w+', 'g') node), '') ||
		CASE WHEN digest_of(query, false) = right_answer THEN '' ELSE ', which is wrong' END;
	RESET enable_seqscan; RESET enable_hashjoin; RESET enable_mergejoin; RESET enable_nestloop;
	SET LOCAL gpuds.enable_aggregate = off; SET LOCAL gpuds.enable_join = off; SET LOCAL gpuds.enable_scan = off;
END $$;
\set ECHO all

CREATE TABLE w (a int, b int, c int2, d int2, e "char", f "char", g bool, h bool, note text) WITH (autovacuum_enabled = off);
INSERT INTO w SELECT i, i % 7, i % 5, i % 3, chr(65 + i % 4)::"char", chr(65 + i % 3)::"char", i % 2 = 0, i % 3 = 0, 'note ' || i FROM generate_series(1, 20000) i;
CREATE INDEX w_a ON w USING gpu_btree (a);
CREATE INDEX w_all ON w USING gpu_btree (a, b, c, d, e, f, g, h);
CREATE INDEX w_hash ON w USING gpu_hash (a, b, c, d, e, f, g, h);
CREATE TABLE o AS SELECT * FROM w WHERE a % 10 = 0;
VACUUM ANALYZE w, o;

-- conditions on one column, and on all
SELECT n, agrees('SELECT note FROM w WHERE ' || listed(n, 'a > %', ' AND ') || ' AND a < 700') FROM (VALUES (33), (300)) v (n);
SELECT n, agrees('SELECT count(*) FROM w WHERE ' || listed(n, 'a = ANY (''{600,%}'')', ' AND ')) FROM (VALUES (2), (20)) v (n);
SELECT n, agrees('SELECT count(*) FROM w WHERE ' || listed(n, 'a < 5000 + % AND b < 10 + % AND c < 10 + % AND d < 10 + %', ' AND ')) FROM (VALUES (9), (100)) v (n);
SELECT n, agrees('SELECT note FROM w WHERE a = ANY (''{600,1200}'') AND ' || listed(n, 'b < 10 + % AND g >= false AND h IS NOT NULL AND e IS NOT NULL AND f > ''@''', ' AND ')) FROM (VALUES (9), (100)) v (n);
SELECT agrees('SELECT note FROM w WHERE ' || listed(300, '(a = % AND b < 10)', ' OR '));
-- aggregates, of which a device adds up four
SELECT n, agrees('SELECT ' || listed(n, 'sum(b + 0 * %), sum(b), max(c), min(d), count(e), avg(b), bool_and(g), bool_or(h), count(*)', ', ') || ' FROM w WHERE a < 15000') FROM (VALUES (1), (60)) v (n);
SELECT n, agrees('SELECT ' || listed(n, 'sum(b), max(c), min(d), count(e), avg(b), bool_and(g), bool_or(h), count(*), sum(a)', ', ') || ' FROM w WHERE a < 15000') FROM (VALUES (1), (60)) v (n);
SELECT n, agrees('SELECT a, ' || listed(n, 'sum(b), max(c), min(d), count(e), avg(b)', ', ') || ' FROM w WHERE a < 15000 GROUP BY a') FROM (VALUES (1), (60)) v (n);
SELECT agrees('SELECT a, b, c, d, e, f, g, h, count(*), sum(a) FROM w GROUP BY a, b, c, d, e, f, g, h');
-- joins by all columns, and by one many times
SELECT agrees('SELECT o.a, w.note FROM o JOIN w USING (a, b, c, d, e, f, g, h)');
SELECT n, agrees('SELECT o.a, w.note FROM o JOIN w ON ' || listed(n, 'w.a = o.a + 0 * %', ' AND ')) FROM (VALUES (9), (33), (300)) v (n);
SELECT n, agrees('SELECT o.a FROM o WHERE EXISTS (SELECT FROM w WHERE ' || listed(n, 'w.a = o.a + 0 * % AND w.b = o.b + 0 * % AND w.c = o.c AND w.d = o.d', ' AND ') || ')') FROM (VALUES (9), (33)) v (n);
SELECT agrees('SELECT count(*) FROM ' || listed(7, 'w w%', ', ') || ' WHERE w1.a < 100 AND ' || listed(6, 'w%.a = w7.a', ' AND '));
-- columns of a result
SELECT agrees('SELECT ' || listed(1600, 'w.a + % AS c%', ', ') || ' FROM w WHERE a < 50');
SELECT agrees('SELECT ' || listed(800, 'w.a + % AS c%, o.b AS b%', ', ') || ' FROM o JOIN w ON w.a = o.a WHERE o.a < 500');
-- arrays and dimensions
SELECT agrees('SELECT note FROM w WHERE a = ANY (''{{{{{{1,2},{3,4}}}}}}'') AND b = ANY (''{1,2,3,4}'')');
SELECT agrees('SELECT note FROM w WHERE a = ANY (ARRAY(SELECT generate_series(1, 3000))) AND b = ANY (ARRAY(SELECT generate_series(1, 3000))) AND c = ANY (ARRAY(SELECT generate_series(1, 3000)))');
SELECT gpuds_contains('w_a', '{{{{{{1,2},{3,40000}}}}}}'::int[]);
-- partitions
CREATE TABLE p (k int, v int) PARTITION BY RANGE (k);
DO $$ BEGIN FOR i IN 0..99 LOOP EXECUTE format('CREATE TABLE p%s PARTITION OF p FOR VALUES FROM (%s) TO (%s)', i, i * 100, i * 100 + 100); END LOOP; END $$;
INSERT INTO p SELECT i, i % 17 FROM generate_series(0, 9999) i;
CREATE INDEX ON p USING gpu_btree (k, v);
VACUUM ANALYZE p;
SELECT agrees('SELECT k % 10, count(*) FROM p WHERE k > 50 GROUP BY 1');
SELECT agrees('SELECT ' || listed(40, 'sum(v), max(k), count(*)', ', ') || ' FROM p WHERE k > 50');
SELECT agrees('SELECT p.k, p.v FROM o JOIN p ON p.k = o.a');
\set ECHO none
-- statements in statements, each with a scan
CREATE FUNCTION nested(depth int) RETURNS bigint LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
	total bigint := 0;
	row record;
BEGIN
	FOR row IN SELECT a FROM w WHERE a IN (depth, depth + 1) ORDER BY a LOOP
		total := total + row.a;
		IF depth > 0 AND row.a = depth THEN
			total := total + nested(depth - 1);
		END IF;
	END LOOP;
	RETURN total;
END $$;
\set ECHO all
SELECT nested(200);

SET client_min_messages = warning;
DROP SCHEMA test_wide CASCADE;
