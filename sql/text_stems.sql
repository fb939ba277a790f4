-- Stems: an index that is made of texts that begin alike has codes that leave these beginnings out.
\set test test_text_stems
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude
SET enable_sort = off;

-- 20,000 texts of 400 directories, mail addresses, numbers that count up, words; stems for all of them
CREATE TABLE t (id int, s text COLLATE "C", n bigint, v varchar COLLATE "C", c char(110) COLLATE "C") WITH (autovacuum_enabled = off);
CREATE FUNCTION text_of(i int) RETURNS text LANGUAGE sql IMMUTABLE RETURN CASE
	WHEN i % 10 < 7 THEN '/usr/share/documentation/package-' || (i * 7919) % 400 || '/a longer name of a file ' || md5(i::text)
	WHEN i % 10 = 7 THEN 'org.example.mailing-list/' || left(md5((i % 900)::text), 8) || '@' || i % 50
	WHEN i % 10 = 8 THEN 'ORDER-2026-' || lpad(i::text, 7, '0') ELSE left(md5(i::text), i % 20) END;
INSERT INTO t SELECT i, CASE WHEN i % 400 = 0 THEN NULL ELSE text_of(i) END, i % 3, text_of(i * 31 % 20011), text_of(i * 17 % 5003) FROM generate_series(1, 20000) i;
CREATE TABLE m AS SELECT * FROM t;
ALTER TABLE m SET (autovacuum_enabled = off);
CREATE INDEX t_s ON t USING gpu_btree (s);
CREATE INDEX m_n ON m USING gpu_skiplist (n, s DESC NULLS LAST);
CREATE INDEX m_v ON m USING gpu_avl (v DESC, s, id);
CREATE INDEX m_c ON m USING gpu_btree (c NULLS FIRST) INCLUDE (n);
CREATE INDEX m_e ON m USING gpu_btree (lower(s) COLLATE "C", v COLLATE "C" DESC) WHERE n = 1;
VACUUM ANALYZE t, m;
SELECT gpuds_index_check(i::regclass, true) FROM unnest('{t_s,m_n,m_v,m_c,m_e}'::text[]) i;
SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'gpuds stems of an index';

-- rows by all scans
CREATE FUNCTION all_same() RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY SELECT same(query, index, true) FROM (VALUES ('SELECT s FROM t ORDER BY s', 't_s'), ('SELECT s FROM t ORDER BY s DESC', 't_s'), ('SELECT n, s FROM m ORDER BY n, s DESC NULLS LAST', 'm_n'),
		('SELECT v, s, id FROM m ORDER BY v DESC, s, id', 'm_v'), ('SELECT v, s, id FROM m ORDER BY v, s DESC, id DESC', 'm_v'), ('SELECT c FROM m ORDER BY c NULLS FIRST', 'm_c'),
		('SELECT lower(s) COLLATE "C", v FROM m WHERE n = 1 ORDER BY lower(s) COLLATE "C", v DESC', 'm_e'),
		('SELECT s FROM t WHERE s > ''/usr/share/documentation/package-1'' AND s < ''/usr/share/documentation/package-2'' ORDER BY s DESC', 't_s')) q (query, index);
	RETURN QUERY SELECT same('SELECT id FROM t WHERE s ' || condition, 't_s') FROM unnest(ARRAY['= text_of(4711)', '= text_of(4711) || ''x''', '= ''/usr/share/documentation/package-''', '> text_of(19998)', '<= text_of(19998)',
		'LIKE ''/usr/share/documentation/package-39%''', 'LIKE ''/usr/share/documentation/package-390/a longer name%''', '^@ ''ORDER-2026-00''', '~ ''^org.example''', '< ''/usr/share/documentation/''',
		'>= ''ORDER-2026-0010000'' AND s < ''ORDER-2026-0011''', '= ANY (ARRAY(SELECT text_of(i) FROM generate_series(1, 30000, 7) i))', '< ANY (ARRAY[text_of(4), text_of(10), NULL])', 'IS NULL']) condition;
	RETURN QUERY SELECT same('SELECT id FROM m WHERE ' || condition, index) FROM (VALUES ('n = 2 AND s >= text_of(2000) AND s < text_of(3001)', 'm_n'),
		('n IN (0, 2) AND s = ANY (ARRAY(SELECT text_of(i) FROM generate_series(1, 9000, 9) i))', 'm_n'), ('v = text_of(4000) AND s > ''/usr''', 'm_v'), ('v < text_of(4000) AND v > text_of(4001)', 'm_v'),
		('c = text_of(4000)::bpchar', 'm_c'), ('c > ''ORDER-2026-0000000'' AND c < ''ORDER-2026-0000500''', 'm_c')) q (condition, index);
END $$;
SELECT all_same();
-- the planner knows that runs are short
RESET enable_sort;
EXPLAIN (COSTS OFF) SELECT s FROM t ORDER BY s LIMIT 5;
EXPLAIN (COSTS OFF) SELECT id FROM t WHERE s LIKE '/usr/share/documentation/package-390/a longer name of a file 7%';
CREATE TABLE k AS SELECT ('the same beginning ' || i) COLLATE "C" AS s, i FROM generate_series(1, 10000) i;
CREATE INDEX k_s ON k USING gpu_btree (s);
VACUUM ANALYZE k;
EXPLAIN (COSTS OFF) SELECT i FROM k ORDER BY s LIMIT 3;
EXPLAIN (COSTS OFF) SELECT i FROM k ORDER BY s;
EXPLAIN (COSTS OFF) SELECT i FROM k WHERE s LIKE 'the same beginning 9999%';
EXPLAIN (COSTS OFF) SELECT i FROM k WHERE s BETWEEN 'the same beginning 77'::varchar AND 'the same beginning 778';
SET enable_sort = off;

-- texts that come later: below all stems, above them, between; stems themselves, their beginnings, and what is next to them
INSERT INTO m SELECT 30000 + row_number() OVER (), CASE k WHEN 0 THEN left(s, 1 + id % 60) WHEN 1 THEN left(s, id % 30) || '~' WHEN 2 THEN left(s, 20 + id % 40) || E'\x01' WHEN 3 THEN s || 'x' WHEN 4 THEN left(s, -1 - id % 9)
	WHEN 5 THEN '' WHEN 6 THEN E'\x01' || s WHEN 7 THEN '~~' || s WHEN 8 THEN left(s, 33) || chr(ascii(substr(s, 34)) + 1) ELSE repeat(s, 30) END, k % 3, left(s, id % 44) || '|', left(s, id % 50)
FROM t, generate_series(0, 9) k WHERE id % 97 = 0;
INSERT INTO m SELECT 40000 + i, 'ORDER-2026-' || lpad((20000 + i)::text, 7, '0'), 1, 'ORDER-2027-' || i, 'zz' FROM generate_series(1, 500) i;
INSERT INTO t SELECT * FROM m WHERE id > 30000;
UPDATE t SET s = v, v = s WHERE id % 101 = 3;
UPDATE m SET s = v, v = s WHERE id % 101 = 3;
DELETE FROM t WHERE id % 5 = 3;
DELETE FROM m WHERE id % 5 = 3;
SELECT all_same();
SELECT gpuds_index_check(i::regclass, true) FROM unnest('{t_s,m_n,m_v,m_c,m_e}'::text[]) i;
-- compaction writes the base anew, and leaves the stems
VACUUM t, m;
DELETE FROM t WHERE id % 5 IN (1, 2);
DELETE FROM m WHERE id % 5 IN (1, 2);
VACUUM t, m;
SELECT all_same();
SELECT gpuds_index_check(i::regclass, true) FROM unnest('{t_s,m_n,m_v,m_c,m_e}'::text[]) i;
SELECT min(s) = (SELECT min(s || '') FROM t), max(s) = (SELECT max(s || '') FROM t) FROM t;

-- an index has the stems of its file: other rows, other files, and back; whoever has looked before
CREATE FUNCTION right_order() RETURNS text LANGUAGE sql AS $$ SELECT same('SELECT s FROM f ORDER BY s', 'f_s', true) || '; ' || same('SELECT s FROM f WHERE s = ANY (SELECT text_of(i) FROM generate_series(1, 3000) i)', 'f_s') $$;
CREATE TABLE f (s text COLLATE "C") WITH (autovacuum_enabled = off);
CREATE INDEX f_s ON f USING gpu_btree (s);
INSERT INTO f SELECT text_of(i) FROM generate_series(1, 3000) i;
SELECT right_order();
REINDEX INDEX f_s;
SELECT right_order();
BEGIN;
TRUNCATE f;
INSERT INTO f SELECT 'the same beginning ' || i FROM generate_series(1, 500) i;
SELECT right_order();
SAVEPOINT a;
REINDEX INDEX f_s;
SELECT right_order();
INSERT INTO f SELECT text_of(i) FROM generate_series(1, 1000) i;
SELECT right_order();
ROLLBACK TO a;
SELECT right_order();
REINDEX INDEX f_s;
TRUNCATE f;
INSERT INTO f SELECT text_of(i) FROM generate_series(1, 400) i;
SELECT right_order();
ROLLBACK;
SELECT right_order();
INSERT INTO f SELECT 'the same beginning ' || i FROM generate_series(1, 500) i;
SELECT right_order();
REINDEX INDEX CONCURRENTLY f_s;
SELECT right_order();
VACUUM FULL f;
SELECT right_order();
ALTER TABLE f ALTER s TYPE varchar COLLATE "C";
SELECT right_order();
DELETE FROM f WHERE s LIKE 'the same%';
TRUNCATE f;
INSERT INTO f SELECT text_of(i) FROM generate_series(1, 500) i;
SELECT right_order();
BEGIN;
DROP INDEX f_s;
CREATE INDEX f_s ON f USING gpu_btree (s);
SELECT right_order();
ROLLBACK;
SELECT right_order();
DROP INDEX f_s;
CREATE INDEX CONCURRENTLY f_s ON f USING gpu_btree (s);
SELECT right_order(), gpuds_index_check('f_s', true);
-- a table that is new in its transaction keeps its file's number
BEGIN;
CREATE UNLOGGED TABLE u (s text COLLATE "C");
INSERT INTO u SELECT text_of(i) FROM generate_series(1, 3000) i;
CREATE INDEX u_s ON u USING gpu_btree (s);
SELECT same('SELECT s FROM u ORDER BY s', 'u_s', true);
TRUNCATE u;
INSERT INTO u SELECT 'the same beginning ' || i FROM generate_series(1, 500) i;
SELECT same('SELECT s FROM u ORDER BY s', 'u_s', true);
COMMIT;
CREATE TEMPORARY TABLE d (s text COLLATE "C") ON COMMIT DELETE ROWS;
BEGIN;
INSERT INTO d SELECT text_of(i) FROM generate_series(1, 3000) i;
CREATE INDEX d_s ON d USING gpu_btree (s);
SELECT same('SELECT s FROM d ORDER BY s', 'd_s', true);
COMMIT;
BEGIN;
INSERT INTO d SELECT 'the same beginning ' || i FROM generate_series(1, 500) i;
SELECT same('SELECT s FROM d ORDER BY s', 'd_s', true);
COMMIT;

-- bytes of all sorts, in trees of beginnings: zeros, highest bytes, beginnings of each other, long ones
CREATE TABLE b (b bytea, n int, m smallint) WITH (autovacuum_enabled = off);
CREATE FUNCTION hostile(i int) RETURNS bytea LANGUAGE sql IMMUTABLE RETURN (SELECT string_agg((ARRAY['\x', '\x00', '\xff', '\x000000000000000000000000', '\xffffffffffffffffffffffff', '\x61', '\x6161616161616161', '\xfe',
	decode(repeat('61', 100), 'hex'), '\x01', '\x62', '\x0000']::bytea[])[1 + (hashint8extended(l, i / greatest(1, 4096 >> (2 * l))) & 1023) % CASE WHEN l < 3 THEN 3 ELSE 12 END], '' ORDER BY l) FROM generate_series(0, 4 + i % 11) l);
INSERT INTO b SELECT hostile(i), i % 4, i % 2 FROM generate_series(1, 6000) i;
INSERT INTO b SELECT '\xffffffffffffffffffffffffffffffff', i % 4, i % 2 FROM generate_series(1, 300) i;
INSERT INTO b SELECT decode(repeat('00', 1000) || lpad(to_hex(i), 6, '0') || repeat('00', 10) || lpad(to_hex(i % 7), 4, '0'), 'hex'), i % 4, i % 2 FROM generate_series(1, 300) i;
INSERT INTO b SELECT decode(repeat('0102', 700) || lpad(to_hex(i), 6, '0'), 'hex'), i % 4, i % 2 FROM generate_series(1, 300) i;
CREATE INDEX b_b ON b USING gpu_btree (b);
CREATE INDEX b_d ON b USING gpu_btree (b DESC NULLS LAST, n);
CREATE INDEX b_n ON b USING gpu_btree (n, m, b) INCLUDE (n, m);
INSERT INTO b SELECT hostile(i), i % 4, i % 2 FROM generate_series(6001, 9000) i;
INSERT INTO b SELECT substr(hostile(i), 1, i % 30) || substr(hostile(i + 4000), i % 17), i % 4, i % 2 FROM generate_series(1, 3000) i;
ANALYZE b;
SELECT same('SELECT b FROM b ORDER BY b', 'b_b', true), same('SELECT b, n FROM b ORDER BY b DESC NULLS LAST, n', 'b_d', true), same('SELECT n, m, b FROM b ORDER BY n, m, b', 'b_n', true);
SELECT gpuds_index_check(i::regclass, true) FROM unnest('{b_b,b_d,b_n}'::text[]) i;
-- how many bounds of ranges, and constants, have an answer that is not right
SELECT count(*) FILTER (WHERE gpuds_count('b_b', lo, hi) <> (SELECT count(*) FROM b WHERE b >= lo AND b <= hi)) AS wrong, count(*) > 80 FROM
	(SELECT substr(hostile(i * 61), 1, i % 40) AS lo, hostile(i * 67) || CASE i % 3 WHEN 0 THEN '\x00'::bytea WHEN 1 THEN '\xff' ELSE '' END AS hi FROM generate_series(1, 99) i) q;
DROP INDEX b_d;
SELECT same('SELECT b, n FROM b WHERE b = ANY (SELECT hostile(i) || CASE i % 5 WHEN 0 THEN ''\x00''::bytea ELSE '''' END FROM generate_series(1, 9000, 2) i)', 'b_b');

-- one text in most rows, all rows alike, empty ones, none
CREATE TABLE o (s text COLLATE "C") WITH (autovacuum_enabled = off);
INSERT INTO o SELECT CASE WHEN i % 10 > 0 THEN 'the text that nine rows of ten have, and it is long' ELSE 'the text that ' || i END FROM generate_series(1, 3000) i;
CREATE INDEX o_s ON o USING gpu_btree (s);
SELECT same('SELECT s FROM o ORDER BY s', 'o_s', true), same('SELECT s FROM o WHERE s > ''the text that nine rows''', 'o_s');
DELETE FROM o WHERE s NOT LIKE '%long';
REINDEX TABLE o;
INSERT INTO o SELECT left('the text that nine rows of ten have, and it is long', i) || j FROM generate_series(1, 51) i, generate_series(1, 3) j;
SELECT same('SELECT s FROM o ORDER BY s', 'o_s', true), same('SELECT s FROM o WHERE s > ''the text that nine rows''', 'o_s');
UPDATE o SET s = '';
VACUUM o;
REINDEX TABLE o;
SELECT same('SELECT s FROM o ORDER BY s', 'o_s', true);
UPDATE o SET s = NULL;
VACUUM o;
REINDEX TABLE o;
INSERT INTO o VALUES ('a');
SELECT same('SELECT s FROM o ORDER BY s', 'o_s', true);

-- joins of an index with stems and one without, and others' nodes
CREATE TABLE j (s text COLLATE "C") WITH (autovacuum_enabled = off);
CREATE INDEX j_s ON j USING gpu_btree (s);
INSERT INTO j SELECT s FROM t WHERE id % 2 = 0;
VACUUM ANALYZE j;
SELECT same('SELECT t.s FROM t JOIN j ON t.s = j.s', 't_s'), same('SELECT s FROM t WHERE EXISTS (SELECT FROM j WHERE j.s = t.s)', 'j_s');
SET gpuds.enable_join = on;
SET gpuds.enable_scan = on;
SET gpuds.enable_aggregate = on;
SELECT digest_of(query, false) = right_digest_of(query, false) FROM unnest(ARRAY['SELECT count(*) FROM t JOIN j USING (s)', 'SELECT s FROM j WHERE NOT EXISTS (SELECT FROM t WHERE t.s = j.s)',
	'SELECT t.id, i FROM generate_series(1, 3000) i JOIN t ON t.s = text_of(i)', 'SELECT id FROM t WHERE s = ANY (SELECT text_of(i) FROM generate_series(1, 9000) i)', 'SELECT count(*) FROM t WHERE s > ''ORDER''',
	'SELECT n, count(*) FROM t WHERE s IS NOT NULL GROUP BY n']) query;
SELECT count(*) = (SELECT count(*) FROM t JOIN generate_series(1, 3000) i ON s = text_of(i)) FROM gpuds_lookup('t_s', (SELECT array_agg(text_of(i)) FROM generate_series(1, 3000) i));

-- workers encode as their leader does
SET min_parallel_table_scan_size = 0;
SET max_parallel_maintenance_workers = 2;
DROP INDEX t_s;
INSERT INTO t SELECT 50000 + i, text_of(i), i % 3, text_of(i + 1), 'c' FROM generate_series(1, 20000) i;
ALTER TABLE t SET (parallel_workers = 2);
CREATE INDEX t_s ON t USING gpu_btree (s);
SELECT gpuds_index_check('t_s', true), same('SELECT s FROM t ORDER BY s', 't_s', true);
SET client_min_messages = warning;
DROP SCHEMA :test CASCADE;
