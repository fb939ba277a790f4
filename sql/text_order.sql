-- Texts in the order of bytes: values of which an entry has the first bytes, and runs of those that begin alike.
\set test test_text_order
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude
\set keys :srcdir '/sql/include/keys.inc'
\i :keys
CREATE DOMAIN bytes_text AS text COLLATE "C";
CREATE DOMAIN bytes_char AS bpchar COLLATE "C";

-- All operators with values at the edges: what fits into a code of 13 bytes, or just does not, equal prefixes, zeros, highest bytes
INSERT INTO edge SELECT 'bytes_text', v FROM unnest(ARRAY['', ' ', 'a', 'ab', 'b', E'\x01', E'\x7f', 'abcdefghijklm', 'abcdefghijkl', 'abcdefghijklmn', 'abcdefghijklma',
	'abcdefghijklmno', 'abcdefghijklmnop', 'abcdefghijklmnopq', 'abcdefghijklmnoq', 'abcdefghijkln', E'abcdefghijklm\x01', repeat('abcdefghijklm', 200),
	repeat('abcdefghijklm', 200) || 'x', repeat(E'\x7f', 14), repeat(E'\x7f', 13), 'ABCDEFGHIJKLMNOP', 'abcdefghijkl ']) v;
INSERT INTO edge SELECT 'bytea', v::text FROM unnest(ARRAY['\x', '\x00', '\x0000', '\x61', '\x6100', '\x610000', '\x6101', '\xff',
	'\x00000000000000000000000000', '\x0000000000000000000000000000', '\x0000000000000000000000000001', '\x000000000000000000000000000000',
	'\xffffffffffffffffffffffffff', '\xffffffffffffffffffffffffffff', '\xffffffffffffffffffffffffffffff', '\xffffffffffffffffffffffff',
	'\x6162636465666768696a6b6c6d', '\x6162636465666768696a6b6c6d00', '\x6162636465666768696a6b6c6d0000', '\x6162636465666768696a6b6c00', '\x6162636465666768696a6b6c']::bytea[]) v;
INSERT INTO edge SELECT 'bytes_char', v FROM unnest(ARRAY['', ' ', 'a', 'a  ', 'ab', E'a\x01', 'abcdefghijklm', 'abcdefghijklm  ', 'abcdefghijklmn', 'abcdefghijklmn ',
	E'abcdefghijklm\x01', 'abcdefghijkl', 'abcdefghijklmo', 'abc' || repeat(' ', 2000), 'abc' || repeat(' ', 2000) || 'd', 'abc' || repeat(' ', 2000) || 'c']) v;
INSERT INTO edge SELECT 'name', val FROM edge WHERE typ = 'bytes_text' AND length(val) < 20;
SELECT * FROM check_type('bytes_text', '{bytes_text,name}');
SELECT * FROM check_type('name', '{name,bytes_text}');
SELECT * FROM check_type('bytea', '{bytea}');
SELECT * FROM check_type('bytes_char', '{bytes_char}');

-- Thousands of values that begin alike, in keys of one column and of several, in all directions; here and below
-- indexes are older than rows, so that their codes have no stems, and runs are long
DROP TABLE t;
CREATE TABLE t (id int, s text COLLATE "C", v varchar(80) COLLATE "C", b bytea, c char(30) COLLATE "C", n int, x text COLLATE "C") WITH (autovacuum_enabled = off);
CREATE INDEX t_s ON t USING gpu_btree (s);
CREATE INDEX t_v ON t USING gpu_btree (v DESC, n);
CREATE INDEX t_b ON t USING gpu_skiplist (b NULLS FIRST, c DESC);
CREATE INDEX t_n ON t USING gpu_avl (n, s DESC NULLS LAST, x, id);
CREATE INDEX t_x ON t USING gpu_btree (x, v) INCLUDE (n);
CREATE INDEX t_e ON t USING gpu_btree (upper(s) COLLATE "C", upper(v) COLLATE "C") WHERE n < 3;
INSERT INTO t SELECT i, CASE WHEN i % 50 = 0 THEN NULL WHEN i % 7 = 0 THEN left(md5(i::text), i % 20) ELSE '/usr/share/doc/' || md5((i % 1700)::text) END,
	'abcdefghijkl' || substr('mmmnno', i % 6 + 1, i % 3) || repeat('x', i % 4) || (i % 90), decode(repeat('00', i % 17) || substr(md5((i % 13)::text), 1, 2 * (i % 5)), 'hex'),
	repeat('c', 12 + i % 5) || i % 11, i % 5, CASE WHEN i % 9 = 0 THEN NULL ELSE 'tail of the key ' || (i % 31) END
FROM generate_series(1, 6000) i;
ANALYZE t;
SELECT gpuds_index_check(i::regclass, true) FROM unnest('{t_s,t_v,t_b,t_n,t_x,t_e}'::text[]) i;
SET enable_sort = off; -- which the planner would take for what begins alike
SELECT same('SELECT s FROM t ORDER BY s', 't_s', true);
SELECT same('SELECT s FROM t ORDER BY s DESC', 't_s', true);
SELECT same('SELECT v, n FROM t ORDER BY v DESC, n', 't_v', true);
SELECT same('SELECT v, n FROM t ORDER BY v, n DESC', 't_v', true);
SELECT same('SELECT b, c FROM t ORDER BY b NULLS FIRST, c DESC', 't_b', true);
SELECT same('SELECT b, c FROM t ORDER BY b DESC NULLS LAST, c', 't_b', true);
SELECT same('SELECT n, s, x, id FROM t ORDER BY n, s DESC NULLS LAST, x, id', 't_n', true);
SELECT same('SELECT n, s, x, id FROM t ORDER BY n DESC, s NULLS FIRST, x DESC, id DESC', 't_n', true);
SELECT same('SELECT n, s, x, id FROM t WHERE n IN (1, 3) ORDER BY n, s DESC NULLS LAST, x, id', 't_n', true);
SELECT same('SELECT x, v FROM t ORDER BY x, v', 't_x', true);
SELECT same('SELECT x, v FROM t WHERE x IS NULL ORDER BY x DESC, v DESC', 't_x', true);
SELECT same('SELECT upper(s) COLLATE "C", upper(v) COLLATE "C" FROM t WHERE n < 3 ORDER BY upper(s) COLLATE "C", upper(v) COLLATE "C"', 't_e', true);

RESET enable_sort;

-- conditions within runs, between them, and on columns behind
SELECT same('SELECT id FROM t WHERE s ' || condition, 't_s', false) FROM unnest(ARRAY['= ''/usr/share/doc/'' || md5(''7'')', '= ''/usr/share/doc/''', '= ''/usr/share/doc/x''',
	'< ''/usr/share/doc/8''', '<= ''/usr/share/doc/'' || md5(''7'')', '> ''/usr/share/doc/'' || md5(''7'')', '>= ''/usr/share/doc/8''', 'BETWEEN ''/usr/share/do'' AND ''/usr/share/doc/9''',
	'> ''/usr/share/do''', '< ''/usr/share/dn''', 'LIKE ''/usr/share/doc/8%''', 'LIKE ''/usr/%''', '^@ ''/usr/share/doc/f''', '~ ''^/usr/share/doc/[0-3]''', 'LIKE ''/usr/share/doc/%a''',
	'IS NULL', 'IS NOT NULL', '= ''''', '> ''/usr/share/doc/8'' AND s < ''/usr/share/doc/9''', '< ANY (ARRAY[''/usr/share/doc/3'', ''b'', NULL])',
	'= ANY (SELECT ''/usr/share/doc/'' || md5(i::text) FROM generate_series(1, 3) i)']) condition;
BEGIN;
DROP INDEX t_n;
SELECT same('SELECT id FROM t WHERE v > ''abcdefghijklmx1'' AND v <= ''abcdefghijklmxxx2'' AND n = 3', 't_v', false);
ROLLBACK;
SELECT same('SELECT v, n FROM t WHERE v = ''abcdefghijklmx1'' ORDER BY n', 't_v', true);
SELECT same('SELECT id FROM t WHERE b = ''\x0000000000000000000000000000'' || ''\xc4ca''::bytea AND c > ''cccccccccccccc''', 't_b', false);
SELECT same('SELECT id FROM t WHERE b >= ''\x0000000000000000000000000000'' AND c IN (''ccccccccccccccc3'', ''cccccccccccc1  '', ''c'')', 't_b', false);
SELECT same('SELECT id FROM t WHERE b LIKE ''\000\000\000\000\000\000\000\000\000\000\000\000\000\000%''::bytea', 't_b', false);
BEGIN;
DROP INDEX t_x;
SELECT same('SELECT n, s, x, id FROM t WHERE n = 2 AND s >= ''/usr/share/doc/8'' AND x = ''tail of the key 3'' ORDER BY s DESC NULLS LAST, x, id', 't_n', true);
ROLLBACK;
SELECT same('SELECT n, s, x, id FROM t WHERE n = 2 AND s = ANY (ARRAY[''/usr/share/doc/'' || md5(''7''), ''e4'']) AND x > ''tail of the key 2''', 't_n', false);
SELECT same('SELECT id FROM t WHERE upper(s) COLLATE "C" > ''/USR/SHARE/DOC/8'' AND n < 3', 't_e', false);

SET enable_sort = off;

-- rows that change: entries that are not in the structure yet, dead rows, HOT updates, an aborted change
INSERT INTO t SELECT 10000 + i, '/usr/share/doc/' || md5((i % 300)::text), 'abcdefghijklm' || md5(i::text), decode(repeat('00', 15) || md5(i::text), 'hex'), repeat('c', 29), i % 3, 'tail of the key'
	FROM generate_series(1, 700) i;
UPDATE t SET s = s || 'x' WHERE id % 40 = 1;
UPDATE t SET id = id WHERE id % 40 = 2;
DELETE FROM t WHERE id % 40 = 3;
BEGIN;
UPDATE t SET s = '/usr/share/doc/' || md5(id::text), v = v || 'y' WHERE id % 3 = 0;
SELECT same('SELECT s FROM t ORDER BY s', 't_s', true), same('SELECT v, n FROM t ORDER BY v, n DESC', 't_v', true);
ROLLBACK;
SELECT same('SELECT s FROM t ORDER BY s', 't_s', true), same('SELECT s FROM t WHERE s > ''/usr/share/doc/4'' ORDER BY s DESC', 't_s', true);
SELECT same('SELECT n, s, x, id FROM t ORDER BY n, s DESC NULLS LAST, x, id', 't_n', true), same('SELECT b, c FROM t ORDER BY b DESC NULLS LAST, c', 't_b', true);
VACUUM t;
SELECT gpuds_index_check(i::regclass, true) FROM unnest('{t_s,t_v,t_b,t_n,t_x,t_e}'::text[]) i;
SELECT same('SELECT s FROM t ORDER BY s', 't_s', true), same('SELECT x, v FROM t ORDER BY x DESC, v DESC', 't_x', true);

-- runs that work_mem does not hold
SET work_mem = '64kB';
SELECT same('SELECT s FROM t ORDER BY s DESC', 't_s', true), same('SELECT v, n FROM t ORDER BY v, n DESC', 't_v', true);
SELECT same('SELECT id FROM t WHERE s = ANY (SELECT ''/usr/share/doc/'' || md5(i::text) FROM generate_series(1, 5000) i)', 't_s', false);

-- cursors that go back and forth, in runs and over their ends
CREATE TABLE steps AS SELECT i, (ARRAY['FORWARD 1', 'FORWARD 13', 'BACKWARD 1', 'BACKWARD 7', 'FORWARD 400', 'BACKWARD 390', 'ABSOLUTE 0', 'FORWARD ALL', 'BACKWARD ALL', 'LAST', 'RELATIVE -3', 'RELATIVE 5'])
	[1 + (hashint4extended(i, 7) & 1023) % 12] AS step FROM generate_series(1, 120) i;
CREATE FUNCTION walk(query text, index bool) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	of_rows refcursor := 'of_rows';
	r record;
	s record;
	seen text := '';
BEGIN
	PERFORM set_config('enable_seqscan', (NOT index)::text, true), set_config('enable_indexscan', index::text, true), set_config('enable_bitmapscan', 'off', true),
		set_config('enable_sort', (NOT index)::text, true);
	EXECUTE 'DECLARE of_rows SCROLL CURSOR FOR ' || query;
	FOR s IN SELECT * FROM steps ORDER BY i + 0 LOOP
		EXECUTE 'MOVE ' || s.step || ' IN of_rows';
		FETCH RELATIVE 0 FROM of_rows INTO r;
		seen := md5(seen || coalesce(r::text, 'none'));
	END LOOP;
	CLOSE of_rows;
	RETURN seen;
END $$;
SELECT walk(query, true) = walk(query, false) FROM unnest(ARRAY['SELECT s FROM t WHERE s > ''/usr/share/doc/3'' ORDER BY s', 'SELECT v, n FROM t ORDER BY v DESC, n', 'SELECT b, c FROM t ORDER BY b NULLS FIRST, c DESC',
	'SELECT n, s, x, id FROM t ORDER BY n DESC, s NULLS FIRST, x DESC, id DESC']) query;
RESET work_mem;

-- short runs, which take no sort, and those that are just too long for that: 256 rows, 32 kB
CREATE TABLE q (s text COLLATE "C", c bpchar COLLATE "C", n int) WITH (autovacuum_enabled = off);
CREATE INDEX q_s ON q USING gpu_btree (s, n DESC);
CREATE INDEX q_c ON q USING gpu_avl (c, n);
INSERT INTO q SELECT format('%s rows that are alike: %s', lpad(size::text, 3, '0'), left(md5((j % (size - 3))::text), 1 + j % 9)),
	format('%s rows alike %s%s', lpad(size::text, 3, '0'), left(md5((j % 5)::text), 1 + j % 9), repeat(' ', j % 4)), j % 7 - 1
FROM unnest('{4,5,9,30,255,256,257,258,600}'::int[]) size, generate_series(1, size) j;
INSERT INTO q SELECT format('%s bytes of rows alike: %s', size, repeat(left(md5((j % 5)::text), 30), 135) || left(md5(j::text), size - 4076)), NULL, NULLIF(j % 3, 0)
FROM unnest('{4094,4095,4096,4097}'::int[]) size, generate_series(1, 8) j;
SELECT sum(length(s)) FROM q WHERE s LIKE '% bytes %' GROUP BY left(s, 4) ORDER BY 1;
SELECT same('SELECT s, n FROM q ORDER BY s, n DESC', 'q_s', true), same('SELECT s, n FROM q ORDER BY s DESC, n', 'q_s', true);
SELECT same('SELECT c || ''.'', n FROM q ORDER BY c, n', 'q_c', true), same('SELECT c || ''.'', n FROM q ORDER BY c DESC, n DESC', 'q_c', true);
SELECT walk(query, true) = walk(query, false) FROM unnest(ARRAY['SELECT s, n FROM q ORDER BY s, n DESC', 'SELECT s, n FROM q ORDER BY s DESC, n',
	'SELECT s, n FROM q WHERE s > ''009 rows that are alike: a'' AND s <= ''256 rows that are alike: 8'' ORDER BY s, n DESC']) query;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_material = off;
SELECT same('SELECT r.s, r.n FROM q r JOIN q ON r.s = q.s', 'q_s', false), same('SELECT r.s, r.n, q.n FROM q r LEFT JOIN q ON r.s = q.s AND r.n = q.n ORDER BY r.s, r.n DESC', 'q_s', true);
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_material;
DROP INDEX q_s;
CREATE INDEX q_d ON q USING gpu_skiplist (s DESC);
SELECT same('SELECT s FROM q ORDER BY s', 'q_d', true), same('SELECT s FROM q WHERE s < ''256 rows that are alike: 8'' ORDER BY s DESC', 'q_d', true);
-- others change rows of a run while a cursor stands in it
BEGIN;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
DECLARE c SCROLL CURSOR FOR SELECT s FROM q WHERE s LIKE '00%' ORDER BY s;
MOVE 6 IN c;
DELETE FROM q WHERE s LIKE '005%';
UPDATE q SET s = s || 'x' WHERE s LIKE '004%';
FETCH ALL FROM c;
FETCH BACKWARD ALL FROM c;
ROLLBACK;

-- the planner: what begins like the first row is looked up before it
CREATE TABLE k (alike text COLLATE "C", other text COLLATE "C");
CREATE INDEX k_a ON k USING gpu_btree (alike);
CREATE INDEX k_o ON k USING gpu_btree (other);
INSERT INTO k SELECT 'the same beginning ' || i, md5(i::text) || i FROM generate_series(1, 10000) i;
VACUUM ANALYZE k;
BEGIN;
SET LOCAL enable_sort = on;
EXPLAIN (COSTS OFF) SELECT alike FROM k ORDER BY alike LIMIT 3;
EXPLAIN (COSTS OFF) SELECT other FROM k ORDER BY other LIMIT 3;
COMMIT;
-- and all that begins like a bound of a range is
EXPLAIN (COSTS OFF) SELECT other FROM k WHERE alike LIKE 'the same beginning 9999%';
EXPLAIN (COSTS OFF) SELECT other FROM k WHERE alike BETWEEN 'the same beginning 77'::varchar AND 'the same beginning 778';
EXPLAIN (COSTS OFF) SELECT other FROM k WHERE alike > 'the same end';
EXPLAIN (COSTS OFF) SELECT alike FROM k WHERE other LIKE '7aa%';

-- entries that come to runs, and to texts that were alone, are passed over where a cursor comes back to them
CREATE TABLE g (s text COLLATE "C", n int) WITH (autovacuum_enabled = off);
CREATE INDEX g_s ON g USING gpu_btree (s);
INSERT INTO g SELECT 'the same beginning ' || i, i FROM generate_series(1, 9) i;
INSERT INTO g VALUES ('before the others', 0), ('what was the only one 1', 10), ('z', 11);
BEGIN;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
SET LOCAL enable_sort = off;
DECLARE c SCROLL CURSOR FOR SELECT n FROM g ORDER BY s;
MOVE 4 IN c;
MOVE BACKWARD 6 IN c;
INSERT INTO g SELECT 'the same beginning ' || i, i FROM generate_series(100, 130) i;
INSERT INTO g SELECT 'what was the only one ' || i, i FROM generate_series(100, 130) i;
SELECT gpuds_index_evict('g_s');
FETCH ALL FROM c;
FETCH BACKWARD ALL FROM c;
FETCH 10 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH ALL FROM c;
COMMIT;

-- many runs, by one column and the other in turn, take the memory of two
CREATE TABLE h (s text COLLATE "C", v text COLLATE "C") WITH (autovacuum_enabled = off);
CREATE INDEX h_s ON h USING gpu_btree (s, v);
INSERT INTO h SELECT lpad(i::text, 4, '0') || CASE WHEN i % 2 = 0 THEN ' and more' ELSE '' END, 'a text that is longer ' || j FROM generate_series(1, 6000) i, generate_series(1, 2) j;
BEGIN;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
SET LOCAL enable_sort = off;
DECLARE c CURSOR FOR SELECT * FROM h ORDER BY s, v;
MOVE ALL IN c;
SELECT sum(total_bytes) < 2000000 FROM pg_backend_memory_contexts WHERE name IN ('ExecutorState', 'gpuds run', 'TupleSort main', 'TupleSort sort');
COMMIT;

-- of a run, what is outside of the range is not sorted
CREATE TABLE w (s text COLLATE "C") WITH (autovacuum_enabled = off);
CREATE INDEX w_s ON w USING gpu_btree (s);
INSERT INTO w SELECT 'all begin with this, and go on ' || i || repeat(' and on', 20) FROM generate_series(1, 20000) i;
BEGIN;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
SET LOCAL enable_sort = off;
DECLARE c SCROLL CURSOR FOR SELECT left(s, 36) FROM w WHERE s > 'all begin with this, and go on 199' AND s <= 'all begin with this, and go on 1991' ORDER BY s DESC;
FETCH 2 FROM c;
SELECT sum(total_bytes) < 1000000 FROM pg_backend_memory_contexts WHERE name = 'Caller tuples';
FETCH BACKWARD ALL FROM c;
MOVE ABSOLUTE 3 IN c;
FETCH ALL FROM c;
COMMIT;
DROP TABLE w;

-- merge joins, which go back to a mark, over runs and duplicates
CREATE TABLE o (s text COLLATE "C", v varchar(80) COLLATE "C") WITH (autovacuum_enabled = off);
CREATE INDEX o_s ON o USING gpu_btree (s DESC, v);
INSERT INTO o SELECT s, v FROM t WHERE id % 3 = 0 OR id > 10500;
ANALYZE o;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_material = off;
SELECT same('SELECT t.s FROM t JOIN o ON t.s = o.s ORDER BY t.s', 't_s', true), same('SELECT t.s FROM t LEFT JOIN o ON t.s = o.s', 't_s', false);
SELECT same('SELECT t.v, o.s FROM t FULL JOIN o ON t.v = o.v', 't_v', false);
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_material;

-- in a parallel plan one process reads what is in order, and several what needs no order
ALTER TABLE t SET (parallel_workers = 3);
BEGIN;
SET LOCAL max_parallel_workers_per_gather = 3;
SET LOCAL min_parallel_table_scan_size = 0;
SET LOCAL min_parallel_index_scan_size = 0;
SET LOCAL parallel_setup_cost = 0;
SET LOCAL parallel_tuple_cost = 0;
SET LOCAL cpu_tuple_cost = 1;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT s FROM t WHERE s > '/usr/share/doc/1' ORDER BY s;
SELECT digest_of(query, true) = right_digest_of(query, true) FROM (VALUES ('SELECT s FROM t WHERE s > ''/usr/share/doc/1'' ORDER BY s')) v (query);
EXPLAIN (COSTS OFF) SELECT count(v) FROM t WHERE s = '/usr/share/doc/' || md5('7');
SELECT count(v) FROM t WHERE s = '/usr/share/doc/' || md5('7');
COMMIT;
ALTER TABLE t RESET (parallel_workers);

-- ends of indexes, limits, groups and distinct values in order, windows
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT regexp_replace(plan_of('SELECT min(s), max(s) FROM t'), '\n *Replaces: MinMaxAggregate', '');
SELECT min(s) = (SELECT min(s || '') FROM t), max(s) = (SELECT max(s || '') FROM t), min(v), max(x) FROM t;
EXPLAIN (COSTS OFF) SELECT s FROM t WHERE s > '/usr/share/doc/8' ORDER BY s LIMIT 3;
SELECT s FROM t WHERE s > '/usr/share/doc/8' ORDER BY s LIMIT 3;
SELECT s FROM t WHERE s < '/usr/share/doc/8' ORDER BY s DESC LIMIT 3;
RESET enable_seqscan;
RESET enable_bitmapscan;
SELECT same('SELECT s, count(*) FROM t GROUP BY s ORDER BY s', 't_s', true), same('SELECT DISTINCT v FROM t ORDER BY v', 't_v', true);
SELECT same('SELECT s, rank() OVER (ORDER BY s) FROM t WHERE s IS NOT NULL', 't_s', true), same('SELECT DISTINCT ON (n) n, s FROM t ORDER BY n, s DESC NULLS LAST', 't_n', true);

RESET enable_sort;

-- nodes of ours: those that take codes for values leave texts to core, the others look at values
SET gpuds.enable_aggregate = on;
SET gpuds.enable_scan = on;
SET gpuds.enable_join = on;
CREATE FUNCTION same_node(query text) RETURNS text LANGUAGE plpgsql SET enable_seqscan = off SET enable_sort = off AS $$
DECLARE
	plan text := plan_of(query);
	answer text := digest_of(query, query LIKE '%ORDER BY%');
BEGIN
	RETURN CASE WHEN answer = right_digest_of(query, query LIKE '%ORDER BY%') THEN coalesce((regexp_match(plan, 'Gpuds[A-Z][a-z]+'))[1], 'core') || ' agrees' ELSE 'wrong: ' || plan END;
END $$;
SELECT query, same_node(query) FROM unnest(ARRAY['SELECT count(*) FROM t', 'SELECT count(s) FROM t', 'SELECT count(*) FROM t WHERE s > ''/usr/share/doc/8''', 'SELECT count(*) FROM t WHERE s IS NULL',
	'SELECT min(s), max(s), count(n) FROM t', 'SELECT s, count(*) FROM t GROUP BY s', 'SELECT n, count(*) FROM t GROUP BY n', 'SELECT n, max(s) FROM t GROUP BY n', 'SELECT count(DISTINCT s) FROM t',
	'SELECT count(*) FILTER (WHERE s > ''/usr/share/doc/8''), count(*) FILTER (WHERE x IS NULL) FROM t', 'SELECT count(*) FROM t WHERE n = 2 AND x IS NULL', 'SELECT s FROM t ORDER BY s OFFSET 3000 LIMIT 20',
	'SELECT n, s FROM t ORDER BY n, s DESC NULLS LAST OFFSET 3000 LIMIT 20', 'SELECT percentile_disc(0.4) WITHIN GROUP (ORDER BY s) FROM t', 'SELECT count(*) FROM t JOIN o USING (s)',
	'SELECT count(*) FROM t WHERE EXISTS (SELECT FROM o WHERE o.s = t.s)', 'SELECT s FROM o EXCEPT SELECT v FROM t', 'SELECT v FROM o INTERSECT SELECT v FROM t',
	'SELECT id FROM t WHERE s = ANY (SELECT ''/usr/share/doc/'' || md5(i::text) FROM generate_series(1, 900) i)', 'SELECT count(*) FROM t WHERE s = ANY (ARRAY[''/usr/share/doc/'' || md5(''8''), ''e4'', NULL])',
	'SELECT t.id, k.i FROM generate_series(1, 2000) k (i) JOIN t ON t.s = ''/usr/share/doc/'' || md5(k.i::text)', 'SELECT k.i FROM generate_series(1, 2000) k (i) WHERE NOT EXISTS (SELECT FROM t WHERE t.s = ''/usr/share/doc/'' || md5(k.i::text))']) query;
-- orders by constants, and by a column before the text, are left to core, too: nodes that pass over entries would go on by another order
CREATE TABLE p (a int, n int, s text COLLATE "C") PARTITION BY LIST (a);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1) WITH (autovacuum_enabled = off);
CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2) WITH (autovacuum_enabled = off);
CREATE INDEX ON p USING gpu_btree (n, s);
INSERT INTO p SELECT i % 2 + 1, i % 7, 'the same beginning ' || i FROM generate_series(1, 6000) i;
VACUUM ANALYZE p;
SET enable_bitmapscan = off;
SELECT query, same_node(query) FROM unnest(ARRAY['SELECT n FROM p1 WHERE n = 1 ORDER BY n OFFSET 300 LIMIT 3', 'SELECT n FROM p WHERE n = 1 ORDER BY n OFFSET 600 LIMIT 3',
	'SELECT percentile_disc(0.3) WITHIN GROUP (ORDER BY n) FROM p', 'SELECT percentile_disc(0.3) WITHIN GROUP (ORDER BY n) FROM p1', 'SELECT percentile_disc(0.3) WITHIN GROUP (ORDER BY n) FROM p WHERE n = 3']) query;
RESET enable_bitmapscan;
RESET gpuds.enable_aggregate;
RESET gpuds.enable_scan;
RESET gpuds.enable_join;

-- functions
CREATE TABLE keys AS SELECT array_agg(CASE i % 500 WHEN 0 THEN NULL WHEN 1 THEN left(md5(i::text), 3) ELSE '/usr/share/doc/' || md5(i::text) END ORDER BY i) AS k FROM generate_series(1, 2500) i;
SELECT count(*), sum(ordinality), (SELECT (count(*), sum(i)) FROM keys, unnest(k) WITH ORDINALITY u (e, i) JOIN t ON t.s = u.e) FROM keys, gpuds_lookup('t_s', k);
SELECT count(*) FILTER (WHERE c), (SELECT count(*) FROM keys, unnest(k) e WHERE EXISTS (SELECT FROM t WHERE t.s = e)) FROM keys, unnest(gpuds_contains('t_s', k)) c;
SELECT gpuds_count('t_s', NULL, NULL::text) = count(s) FROM t;
SELECT count(*), count(*) FILTER (WHERE gpuds_count('t_s', lo, hi) = (SELECT count(*) FROM t WHERE (s >= lo OR lo IS NULL) AND (s <= hi OR hi IS NULL) AND s IS NOT NULL))
FROM (VALUES ('a', 'b'), ('/usr/share/doc/4', '/usr/share/doc/8'), ('/usr/share/doc/' || md5('7'), '/usr/share/doc/' || md5('7')), (NULL, '/usr/share/doc/8'), ('/usr/share/doc/8', NULL), ('b', 'a')) v (lo, hi);
SELECT gpuds_lookup('t_s', '{1}'::int[]);
SELECT entries FROM gpuds_index_estimate('t', '{s}') e;

-- who compares rows by dirty snapshots: an exclusion constraint
CREATE TABLE e (s text COLLATE "C", n int, EXCLUDE USING gpu_btree (s WITH =, n WITH =));
INSERT INTO e SELECT 'the same beginning ' || i, 1 FROM generate_series(1, 50) i;
INSERT INTO e VALUES ('the same beginning 51', 1), ('the same beginning 50', 2), ('short', 1), ('short', 2), (NULL, 1), (NULL, 1);
INSERT INTO e VALUES ('the same beginning 49', 1);
INSERT INTO e VALUES ('short', 2);
INSERT INTO e VALUES ('the same beginning 49', 1) ON CONFLICT DO NOTHING;

-- long values: in line and compressed, or elsewhere
CREATE TABLE l (s text COLLATE "C", b bytea) WITH (autovacuum_enabled = off);
INSERT INTO l SELECT repeat('long value ', i % 3 * 900) || i, NULL FROM generate_series(1, 60) i;
INSERT INTO l SELECT (SELECT string_agg(md5((j % 70 + i % 4)::text), '') FROM generate_series(1, 300) j) || i, decode(repeat('ab', 3000) || lpad(to_hex(i % 5), 2, '0'), 'hex') FROM generate_series(1, 60) i;
CREATE INDEX l_s ON l USING gpu_btree (s);
CREATE INDEX l_b ON l USING gpu_btree (b, s DESC);
SELECT same('SELECT s FROM l ORDER BY s', 'l_s', true), same('SELECT b, s FROM l ORDER BY b, s DESC', 'l_b', true), same('SELECT s FROM l WHERE s = (SELECT max(s) FROM l)', 'l_s', false);
SELECT gpuds_index_check('l_s', true), gpuds_index_check('l_b', true);

-- expressions are those of the table's owner, whoever reads
CREATE FUNCTION whose(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE NOTICE '%', current_user; RETURN repeat('x', 20); END $$;
CREATE TABLE w (a int, s text COLLATE "C");
INSERT INTO w VALUES (1, 'one');
CREATE ROLE test_text_owner;
ALTER TABLE w OWNER TO test_text_owner;
SET client_min_messages = warning;
CREATE INDEX w_s ON w USING gpu_btree (a, whose(s) COLLATE "C");
INSERT INTO w VALUES (1, 'two');
RESET client_min_messages;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
GRANT USAGE ON SCHEMA :test TO test_text_owner;
SELECT s FROM w WHERE a = 1 ORDER BY a, s;
RESET enable_seqscan;
RESET enable_bitmapscan;
DROP TABLE w;
REVOKE ALL ON SCHEMA :test FROM test_text_owner;
DROP ROLE test_text_owner;

-- collations that do not compare bytes, and classes of other orders
CREATE COLLATION other (provider = icu, locale = 'und');
CREATE COLLATION loose (provider = icu, locale = 'und', deterministic = false);
CREATE TABLE f (s text, c char(5));
CREATE INDEX f_s ON f USING gpu_btree (s COLLATE other);
CREATE INDEX f_s ON f USING gpu_skiplist (s COLLATE loose);
CREATE INDEX f_c ON f USING gpu_avl (c COLLATE other);
CREATE INDEX f_s ON f USING gpu_btree (s COLLATE "POSIX");
CREATE INDEX f_h ON f USING gpu_hash (s COLLATE other);
CREATE INDEX f_p ON f USING gpu_btree (s text_pattern_ops);
SELECT opcname, amvalidate(c.oid) FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod WHERE amname = 'gpu_btree' AND opcname IN ('text_ops', 'name_ops', 'bpchar_ops', 'bytea_ops') ORDER BY 1;
-- a length that changes keeps the file
CREATE TABLE v (s varchar(20) COLLATE "C");
INSERT INTO v SELECT 'varchar of length ' || i FROM generate_series(1, 30) i;
CREATE INDEX v_s ON v USING gpu_btree (s);
SELECT pg_relation_filenode('v_s') AS file \gset
ALTER TABLE v ALTER s TYPE varchar(40) COLLATE "C";
ALTER TABLE v ALTER s TYPE text COLLATE "C";
SELECT pg_relation_filenode('v_s') = :file, same('SELECT s FROM v ORDER BY s', 'v_s', true);
ALTER TABLE v ALTER s TYPE text COLLATE other;

SET client_min_messages = warning;
DROP SCHEMA :test CASCADE;
