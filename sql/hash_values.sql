-- gpu_hash: values that are looked at because their codes are hashes, many of them, and equal ones that differ.
\set test test_hash_values
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

CREATE COLLATION no_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);

-- As many conditions on a column as a query has.
CREATE TABLE m (a text, b int, c text);
INSERT INTO m SELECT 'k' || i, i, 'c' || i % 10 FROM generate_series(1, 5000) i;
CREATE INDEX m_a ON m USING gpu_hash (a);
CREATE INDEX m_ac ON m USING gpu_hash (a, c);
CREATE TABLE o AS SELECT 'k' || i AS a FROM generate_series(1, 40) i;
VACUUM ANALYZE m, o;
\set ECHO none
CREATE FUNCTION conditions(n int, condition text) RETURNS text LANGUAGE sql AS
	'SELECT string_agg(format(condition, i), '' AND '') FROM generate_series(1, n) i';
CREATE FUNCTION counted(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	n bigint;
BEGIN
	EXECUTE query INTO n;
	RETURN n || CASE WHEN plan_of(query) ~ '(Scan using|Index Scan on|Index Name:|Index:) m_' THEN ' by an index' ELSE '' END;
END $$;
\set ECHO all
SET enable_seqscan = off;
SELECT n, kind, counted('SELECT count(b) FROM m WHERE ' || conditions(n, condition)) FROM (VALUES (32), (33), (65), (300)) v (n),
	(VALUES ('arrays', 'a = ANY (''{k7}'')'), ('constants', 'a = ''k7'''), ('both', 'a = ANY (''{k7}'') AND a = ''k7'''),
	('two columns', 'a = ANY (''{k7}'') AND c = ANY (''{c7}'')')) k (kind, condition) ORDER BY kind, n;
SET enable_bitmapscan = off;
SELECT n, counted('SELECT count(b) FROM m WHERE ' || conditions(n, 'a = ANY (''{k7}'')')) FROM (VALUES (33), (300)) v (n);
SET gpuds.enable_scan = on;
SELECT n, counted('SELECT count(b) FROM m WHERE ' || conditions(n, 'a = ANY (''{k7}'')')) FROM (VALUES (33), (300)) v (n);
SET gpuds.enable_join = on; SET enable_hashjoin = off; SET enable_mergejoin = off;
SELECT n, counted('SELECT count(b) FROM o JOIN m ON ' || conditions(n, 'm.a = o.a || left(''%s'', 0)')) FROM (VALUES (8), (9), (33), (300)) v (n);
RESET enable_hashjoin; RESET enable_mergejoin; SET gpuds.enable_join = off; SET gpuds.enable_scan = off;
RESET enable_seqscan; RESET enable_bitmapscan;

-- Blanks at the end, which a hash function of PostgreSQL 15 looks at.
CREATE TABLE b (k char(8) COLLATE no_case, v bpchar COLLATE no_case, i int);
INSERT INTO b SELECT 'k' || i, 'v' || i || repeat(' ', i % 5), i FROM generate_series(1, 1000) i;
CREATE INDEX b_k ON b USING gpu_hash (k);
CREATE INDEX b_v ON b USING gpu_hash (v);
CREATE TABLE p AS SELECT ('K' || i)::char(5) COLLATE no_case AS k, ('V' || i)::char(9) COLLATE no_case AS v FROM generate_series(1, 50) i;
ANALYZE b, p;
SELECT same('SELECT * FROM b WHERE k = ''k77''', 'b_k');
SELECT same('SELECT * FROM b WHERE k = ''K77     ''', 'b_k');
SELECT same('SELECT * FROM b WHERE k = ANY (''{k77,"K78     ",k79  }''::bpchar[])', 'b_k');
SELECT same('SELECT * FROM b WHERE v = ''V77''', 'b_v');
SELECT same('SELECT * FROM b WHERE v = ANY (''{v77,"V78     ",v79 ,"v80 "}''::bpchar[])', 'b_v');
SELECT gpuds_contains('b_k', '{k77,"K78 ",K1001}'::bpchar[]), gpuds_contains('b_v', '{v77,"V78       ",v1001}'::bpchar[]);
SET gpuds.enable_join = on; SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_nestloop = off;
SELECT count(*) FROM p JOIN b ON b.k = p.k;
SELECT count(*) FROM p JOIN b ON b.v = p.v;
RESET enable_hashjoin; RESET enable_mergejoin; RESET enable_nestloop; SET gpuds.enable_join = off;
SELECT gpuds_index_check('b_k', true), gpuds_index_check('b_v', true);

-- Names, whose hash function does not know of collations.
CREATE TABLE na (n name COLLATE no_case, i int);
INSERT INTO na SELECT CASE i % 2 WHEN 0 THEN 'Name' ELSE 'nAME' END || i % 100, i FROM generate_series(1, 1000) i;
CREATE INDEX na_n ON na USING gpu_hash (n);
ANALYZE na;
SELECT same('SELECT * FROM na WHERE n = ''NAME77'' COLLATE no_case', 'na_n');
SELECT same('SELECT * FROM na WHERE n = ANY (''{NAME77,name78,x}''::name[] COLLATE no_case)', 'na_n');
SELECT gpuds_index_check('na_n', true);

-- Nothing can stand in for hashes of parts.
CREATE TYPE pair AS (i int, n name COLLATE no_case);
CREATE TYPE names AS RANGE (subtype = name, collation = no_case, multirange_type_name = multinames);
CREATE TABLE parts (a name[] COLLATE no_case, p pair[], r names, m multinames, t text[] COLLATE no_case);
CREATE INDEX ON parts USING gpu_hash (a);
-- 17 and later name the schema of such types
\set VERBOSITY sqlstate
CREATE INDEX ON parts USING gpu_hash (p);
CREATE INDEX ON parts USING gpu_hash (r);
CREATE INDEX ON parts USING gpu_hash (m);
\set VERBOSITY default
CREATE INDEX ON parts USING gpu_hash (a COLLATE "C");
CREATE INDEX parts_t ON parts USING gpu_hash (t);
INSERT INTO parts (t) SELECT ARRAY['A' || i, 'b'] FROM generate_series(1, 100) i;
ANALYZE parts;
SELECT same('SELECT t FROM parts WHERE t = ''{a7,B}''', 'parts_t');
-- Since PostgreSQL 16, blanks at the end are no trouble.
CREATE TABLE blanks (a char(5)[] COLLATE no_case);
INSERT INTO blanks VALUES ('{a,b}');
DO $$ BEGIN CREATE INDEX blanks_a ON blanks USING gpu_hash (a); EXCEPTION WHEN feature_not_supported THEN NULL; END $$;
SET enable_seqscan = off;
SELECT a FROM blanks WHERE a = '{A,"B  "}'::bpchar[];
RESET enable_seqscan;

-- Elements that are equal but not the same: in less time than a comparison of each with each would take.
CREATE TABLE ci (a text COLLATE no_case, i int);
INSERT INTO ci SELECT md5(i::text), i FROM generate_series(1, 2000) i;
INSERT INTO ci SELECT CASE WHEN i % 2 = 0 THEN 'Abcdefghijklmnopq' ELSE 'abcdefghijklmnopQ' END, -i FROM generate_series(1, 20) i;
CREATE INDEX ci_a ON ci USING gpu_hash (a);
VACUUM ANALYZE ci;
CREATE TABLE spellings AS
	WITH RECURSIVE s (t, n) AS (
		SELECT '', 0
		UNION ALL
		SELECT t || CASE c WHEN 0 THEN letter ELSE upper(letter) END, n + 1
		FROM s, substr('abcdefghijklmnopq', n + 1, 1) letter, generate_series(0, 1) c WHERE n < 17)
	SELECT array_agg(t) AS a FROM s WHERE n = 17;
SET statement_timeout = '120s';
SET enable_seqscan = off;
SELECT count(i), sum(i) FROM ci WHERE a = ANY ((SELECT a FROM spellings)::text[]);
SELECT cardinality(array_positions(gpuds_contains('ci_a', a || 'no'::text), true)) FROM spellings;
SELECT count(*), count(DISTINCT ordinality), count(DISTINCT l.ctid) FROM spellings, gpuds_lookup('ci_a', a[1:1000]) l;
RESET enable_seqscan;
RESET statement_timeout;

-- Unequal elements of one hash: a row is not compared with each of them.
CREATE SEQUENCE compared;
CREATE FUNCTION counting_cmp(text, text) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT SET search_path FROM CURRENT AS
	'BEGIN PERFORM nextval(''compared''); RETURN bttextcmp($1 COLLATE no_case, $2 COLLATE no_case); END';
CREATE FUNCTION counting_eq(text, text) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT SET search_path FROM CURRENT AS
	'BEGIN PERFORM nextval(''compared''); RETURN $1 COLLATE no_case = $2 COLLATE no_case; END';
CREATE FUNCTION counting_lt(text, text) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT SET search_path FROM CURRENT AS
	'BEGIN RETURN $1 COLLATE no_case < $2 COLLATE no_case; END';
CREATE FUNCTION two_hashes(text, bigint) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT AS
	'SELECT (length($1) % 2)::bigint << 62';
CREATE OPERATOR === (FUNCTION = counting_eq, LEFTARG = text, RIGHTARG = text, COMMUTATOR = ===, MERGES, HASHES);
CREATE OPERATOR ~== (FUNCTION = counting_eq, LEFTARG = text, RIGHTARG = text, COMMUTATOR = ~==);
CREATE OPERATOR <<< (FUNCTION = counting_lt, LEFTARG = text, RIGHTARG = text);
CREATE OPERATOR CLASS counting_ops FOR TYPE text USING btree AS OPERATOR 1 <<<, OPERATOR 3 ===, FUNCTION 1 counting_cmp(text, text);
CREATE OPERATOR CLASS ordered_ops FOR TYPE text USING gpu_hash AS OPERATOR 1 ===, FUNCTION 2 two_hashes(text, bigint);
CREATE OPERATOR CLASS unordered_ops FOR TYPE text USING gpu_hash AS OPERATOR 1 ~==, FUNCTION 2 two_hashes(text, bigint);
CREATE TABLE h (s text, i int);
INSERT INTO h SELECT 'S' || i % 50, i FROM generate_series(1, 200) i;
VACUUM h;
CREATE INDEX h_ordered ON h USING gpu_hash (s ordered_ops);
CREATE INDEX h_unordered ON h USING gpu_hash (s unordered_ops);
ANALYZE h;
CREATE FUNCTION comparisons(query text, at_most int, OUT answer bigint, OUT few bool) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM setval('compared', 1);
	EXECUTE query INTO answer;
	few := currval('compared') < at_most;
END $$;
CREATE TABLE words AS SELECT array_agg(c || i) AS many, array_agg(c || i) FILTER (WHERE i < 5) AS few
	FROM generate_series(0, 999) i, unnest('{s,S}'::text[]) c;
-- other spellings of four words
UPDATE words SET few = few || ARRAY(SELECT left(upper(t), n) || substr(lower(t), n + 1) FROM generate_series(1, 500) n,
	(SELECT repeat('w', 500 + i) AS t FROM generate_series(1, 4) i) t);
SET enable_seqscan = off;
SELECT * FROM comparisons('SELECT count(i) FROM h WHERE s === ANY ((SELECT many FROM words)::text[])', 60000);
SELECT * FROM comparisons('SELECT cardinality(array_positions(gpuds_contains(''h_ordered'', many), true)) FROM words', 60000);
SELECT * FROM comparisons('SELECT count(*) FROM words, gpuds_lookup(''h_ordered'', many)', 60000);
SELECT * FROM comparisons('SELECT count(i) FROM h WHERE s ~== ANY ((SELECT few FROM words)::text[])', 40000);
SELECT * FROM comparisons('SELECT cardinality(array_positions(gpuds_contains(''h_unordered'', few), true)) FROM words', 40000);
RESET enable_seqscan;

-- The check finds a hash function that does not agree with equality.
CREATE OPERATOR CLASS odd_ops FOR TYPE text USING gpu_hash AS OPERATOR 1 ===, FUNCTION 2 hashtextextended(text, bigint);
CREATE TABLE odd (i int, s text);
INSERT INTO odd SELECT i, 'word ' || i FROM generate_series(1, 100) i;
INSERT INTO odd VALUES (101, 'word 7'), (102, NULL), (103, NULL);
CREATE INDEX odd_s ON odd USING gpu_hash (i, s odd_ops);
SELECT gpuds_index_check('odd_s', true);
INSERT INTO odd VALUES (104, 'WORD 55');
SELECT gpuds_index_check('odd_s', true);
SELECT gpuds_index_check('odd_s', false);
CREATE FUNCTION bytes_hash(text, bigint) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT AS 'SELECT hashtextextended($1 COLLATE "C", $2)';
CREATE OPERATOR CLASS bytes_ops FOR TYPE text USING gpu_hash AS OPERATOR 1 =, FUNCTION 2 bytes_hash(text, bigint);
CREATE INDEX odd_bytes ON odd USING gpu_hash (s bytes_ops);
CREATE INDEX odd_nocase ON odd USING gpu_hash ((s COLLATE no_case) bytes_ops);
SELECT gpuds_index_check('odd_bytes', true);
SELECT gpuds_index_check('odd_nocase', true);
SELECT gpuds_index_check('h_ordered', true), gpuds_index_check('h_unordered', true), gpuds_index_check('ci_a', true), gpuds_index_check('parts_t', true);
CREATE TABLE mixed (n numeric, j jsonb, a numeric[], r numrange);
INSERT INTO mixed SELECT i / 1.0, to_jsonb(i), ARRAY[i / 1.00], numrange(i, i + 1) FROM generate_series(1, 200) i;
INSERT INTO mixed SELECT i, to_jsonb(i * 1.0), ARRAY[i], numrange(i * 1.00, i + 1.0) FROM generate_series(1, 200) i;
CREATE INDEX mixed_all ON mixed USING gpu_hash (n, j, a, r);
SELECT gpuds_index_check('mixed_all', true);

-- A row that nobody sees may have lost what its table keeps of it elsewhere.
CREATE TABLE elsewhere (i int, s text) WITH (autovacuum_enabled = off, toast.autovacuum_enabled = off);
ALTER TABLE elsewhere ALTER s SET STORAGE external;
INSERT INTO elsewhere SELECT i, repeat(md5(i::text), 300) FROM generate_series(1, 200) i;
CREATE INDEX elsewhere_s ON elsewhere USING gpu_hash (s);
DELETE FROM elsewhere WHERE i % 2 = 0;
SELECT gpuds_index_check('elsewhere_s', true);
UPDATE elsewhere SET s = s || 'x' WHERE i % 3 = 0;
SELECT gpuds_index_check('elsewhere_s', true);

SET client_min_messages = warning;
DROP SCHEMA test_hash_values CASCADE;
