-- GpudsMerge: two indexes joined, or set against each other, by what their entries have.
\set test test_index_join
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude
-- 19 aggregates before joins itself
DO $$ BEGIN PERFORM set_config(name, 'off', false) FROM pg_settings WHERE name = 'enable_eager_aggregate'; END $$;

CREATE DOMAIN number AS int;
CREATE TABLE a (k int, k2 int2, v int, big bigint, u uuid, f float8, n numeric(10,2), d number, t date NOT NULL, yes bool)
WITH (autovacuum_enabled = off);
CREATE TABLE b (k int, k2 int2, v int, big bigint, u uuid, f float8, n numeric(12,2), d number, t date NOT NULL, yes bool)
WITH (autovacuum_enabled = off);
CREATE TABLE nothing (k int);
-- keys of one table, of the other, of both, and NULLs; -0 and 0, and NaN
INSERT INTO a SELECT nullif(i % 201, 13), nullif(i % 7, 3), nullif(i % 31, 5) - 10, (i % 101) * bigint '90000000000000', md5((i % 111)::text)::uuid,
	CASE i % 5 WHEN 0 THEN 'NaN'::float8 WHEN 1 THEN '-0'::float8 WHEN 2 THEN 0 ELSE i % 9 END, nullif(i % 100, 7) / 4.0, i % 50,
	date '2000-01-01' + i % 90, i % 3 = 0
FROM generate_series(1, 2000) i;
INSERT INTO b SELECT nullif(i % 297, 13) + 100, nullif(i % 5, 3), nullif(i % 37, 6) - 10, (i % 71) * bigint '90000000000000', md5((i % 80)::text)::uuid,
	CASE i % 5 WHEN 0 THEN 'NaN'::float8 WHEN 1 THEN '-0'::float8 WHEN 2 THEN 0 ELSE i % 9 END, nullif(i % 80, 7) / 2.0, i % 60,
	date '2000-01-20' + i % 90, i % 2 = 0
FROM generate_series(1, 1500) i;
CREATE INDEX a_k ON a USING gpu_btree (k) INCLUDE (v, yes);
CREATE INDEX a_kk ON a USING gpu_btree (k, k2) INCLUDE (v);
CREATE INDEX a_vk ON a USING gpu_btree (v, k);
CREATE INDEX a_big ON a USING gpu_skiplist (big) INCLUDE (v);
CREATE INDEX a_u ON a USING gpu_btree (u);
CREATE INDEX a_f ON a USING gpu_btree (f);
CREATE INDEX a_n ON a USING gpu_btree (n, v);
CREATE INDEX a_d ON a USING gpu_btree (d);
CREATE INDEX a_t ON a USING gpu_btree (t);
CREATE INDEX b_k ON b USING gpu_btree (k, v) INCLUDE (yes);
CREATE INDEX b_kk ON b USING gpu_skiplist (k, k2, v);
CREATE INDEX b_big ON b USING gpu_btree (big);
CREATE INDEX b_u ON b USING gpu_btree (u);
CREATE INDEX b_f ON b USING gpu_btree (f);
CREATE INDEX b_n ON b USING gpu_btree (n);
CREATE INDEX b_d ON b USING gpu_btree (d DESC);
CREATE INDEX b_t ON b USING gpu_btree (t);
CREATE INDEX nothing_k ON nothing USING gpu_btree (k);
VACUUM ANALYZE a;
VACUUM ANALYZE b;
-- rows that the visibility map says nothing of, and such as nobody sees
DELETE FROM a WHERE v = 3;
UPDATE b SET yes = NOT yes WHERE v = 4;
BEGIN;
SAVEPOINT s;
DELETE FROM b WHERE v = 7;
INSERT INTO a (k, t) SELECT i, date '2000-01-01' FROM generate_series(100, 110) i;
ROLLBACK TO s;
COMMIT;

-- Plans, without a GPU, which says more and has costs of its own.
SET gpuds.device = cpu;
SET gpuds.enable_aggregate = on;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM a JOIN b USING (k);
EXPLAIN (COSTS OFF, VERBOSE) SELECT a.k, count(*), sum(b.v) FROM a JOIN b USING (k) WHERE b.yes GROUP BY a.k HAVING count(*) > 3 ORDER BY 2 DESC, 1 LIMIT 3;
EXPLAIN (COSTS OFF) SELECT count(*) FROM b WHERE NOT EXISTS (SELECT FROM a WHERE a.k = b.k);
SELECT node_of('SELECT count(*) FROM a JOIN b USING (t)');
-- a few keys are looked up
CREATE TABLE few (k bigint PRIMARY KEY, v int) WITH (autovacuum_enabled = off);
INSERT INTO few SELECT i * 50, i FROM generate_series(1, 5) i;
CREATE INDEX few_k ON few USING gpu_btree (k);
VACUUM ANALYZE few;
EXPLAIN (COSTS OFF) SELECT count(*) FROM few JOIN a USING (k);
EXPLAIN (COSTS OFF) SELECT count(*) FROM a WHERE EXISTS (SELECT FROM few WHERE few.k = a.k);
-- ... unless one of them may be NULL, and be equal to one of the other side
CREATE TABLE gaps (k bigint) WITH (autovacuum_enabled = off);
INSERT INTO gaps SELECT nullif(i, 3) * 40 FROM generate_series(1, 5) i, generate_series(1, 2);
CREATE INDEX gaps_k ON gaps USING gpu_btree (k);
CREATE TABLE whole (k bigint NOT NULL) WITH (autovacuum_enabled = off);
INSERT INTO whole SELECT i FROM generate_series(1, 1000) i;
CREATE INDEX whole_k ON whole USING gpu_btree (k);
VACUUM ANALYZE gaps;
VACUUM ANALYZE whole;
SELECT coalesce(substring(plan_of(query) FROM 'Probes: \w+'), 'no probes'), query FROM (VALUES
	('SELECT k FROM few EXCEPT SELECT big FROM a'),
	('SELECT big FROM a INTERSECT ALL SELECT k FROM few'),
	('SELECT big FROM a EXCEPT SELECT k FROM few'),
	('SELECT big FROM a WHERE big < 1000 EXCEPT SELECT t.big FROM a t'),
	('SELECT k FROM gaps EXCEPT SELECT k FROM whole'),
	('SELECT k FROM whole INTERSECT SELECT k FROM gaps'),
	('SELECT k FROM gaps EXCEPT SELECT big FROM a')) q(query);
RESET enable_seqscan;
RESET enable_bitmapscan;
RESET gpuds.device;
SET gpuds.enable_aggregate = off;

\set ECHO none
-- How a query is planned where nothing else costs less, and is the answer the one that core has?
CREATE FUNCTION same_join(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	right_answer text := right_digest_of(query, false);
	answer text;
	plan text;
BEGIN
	SET LOCAL gpuds.enable_aggregate = on;
	SET LOCAL enable_seqscan = off;
	SET LOCAL enable_bitmapscan = off;
	SET LOCAL enable_hashjoin = off;
	SET LOCAL enable_mergejoin = off;
	SET LOCAL enable_nestloop = off;
	SET LOCAL enable_sort = off;
	plan := plan_of(query);
	answer := digest_of(query, false);
	SET LOCAL gpuds.enable_aggregate = off;
	RETURN CASE WHEN answer <> right_answer THEN 'wrong: ' || answer || ', right: ' || right_answer
		ELSE split_part(answer, ' ', 1) || ' rows agree' || CASE WHEN plan LIKE '%GpudsMerge%' THEN ', GpudsMerge' ELSE '' END END;
END $$;
\set ECHO all

CREATE TABLE query (place serial, query text);
INSERT INTO query (query) VALUES
	('SELECT count(*) FROM a JOIN b USING (k)'),
	('SELECT count(*), sum(a.v), avg(a.v), min(b.v), max(b.v), count(b.v), count(a.k), sum(b.v) FROM a JOIN b USING (k)'),
	('SELECT count(*) FROM a JOIN b USING (k, k2)'),
	('SELECT count(*) FROM a JOIN b ON a.k = b.k AND a.k2 = b.k2 WHERE a.v > 3'),
	('SELECT count(*) FROM a WHERE EXISTS (SELECT FROM b WHERE b.k = a.k)'),
	('SELECT count(*), sum(v) FROM a WHERE k IN (SELECT k FROM b WHERE v = 5)'),
	('SELECT count(*) FROM a WHERE NOT EXISTS (SELECT FROM b WHERE b.k = a.k)'),
	('SELECT count(*), sum(b.v), count(b.k), max(b.k) FROM b WHERE NOT EXISTS (SELECT FROM a WHERE b.k = a.k)'),
	('SELECT count(*), count(b.k), sum(b.v), sum(a.v), max(b.v) FROM a LEFT JOIN b USING (k)'),
	('SELECT count(*) FROM a LEFT JOIN b USING (k) WHERE b.k IS NULL'),
	('SELECT count(*) FROM b RIGHT JOIN a USING (k)'),
	('SELECT count(1), count(a.t), count(b.t) FROM a LEFT JOIN b USING (k)'),
	('SELECT count(*) FILTER (WHERE b.v > 3), sum(b.v) FILTER (WHERE b.v IS NULL OR b.v > 3), count(*) FILTER (WHERE a.v IS NULL) FROM a LEFT JOIN b USING (k)'),
	('SELECT k, count(*), sum(a.v), sum(b.v) FROM a JOIN b USING (k) GROUP BY k'),
	('SELECT a.k, b.k, count(*) FROM a JOIN b ON a.k = b.k GROUP BY a.k, b.k'),
	('SELECT a.k, count(*), sum(b.v), count(b.k) FROM a LEFT JOIN b USING (k) GROUP BY a.k'),
	('SELECT a.k, count(*) FROM a WHERE NOT EXISTS (SELECT FROM b WHERE b.k = a.k) GROUP BY a.k'),
	('SELECT a.k2, a.k, count(*) FROM a JOIN b USING (k, k2) GROUP BY a.k2, a.k HAVING a.k2 > 2'),
	('SELECT count(*) FROM a JOIN b USING (k) WHERE a.k BETWEEN 150 AND 170'),
	('SELECT count(*) FROM a JOIN b USING (k) WHERE b.k BETWEEN 150 AND 170 AND a.v IN (1, 2, 3) AND b.yes'),
	('SELECT count(*) FROM a JOIN b USING (k) WHERE a.v = 2 AND b.v = 5'),
	('SELECT count(*) FILTER (WHERE a.yes), sum(CASE WHEN b.v > 3 THEN b.v ELSE 0 END) FROM a JOIN b USING (k)'),
	('SELECT count(*), sum(big), min(a.big), sum(a.v) FROM a JOIN b USING (big)'),
	('SELECT count(*) FROM a JOIN b ON a.big = b.k'),
	('SELECT count(*) FROM a JOIN b ON a.k = b.big'),
	('SELECT u, count(*) FROM a JOIN b USING (u) GROUP BY u'),
	('SELECT count(*), sum(a.n), sum(b.n) FROM a JOIN b USING (n)'),
	('SELECT count(*) FROM a JOIN b USING (t)'),
	('SELECT count(*) FROM a JOIN b ON a.d = b.k'),
	('SELECT count(*) FROM a x JOIN a y USING (k)'),
	('SELECT count(*) FROM a JOIN nothing USING (k)'),
	('SELECT count(*) FROM a WHERE NOT EXISTS (SELECT FROM nothing WHERE nothing.k = a.k)'),
	('SELECT count(*), sum(k) FROM nothing WHERE NOT EXISTS (SELECT FROM a WHERE nothing.k = a.k)'),
	('SELECT count(*) FROM a JOIN few USING (k)'),
	('SELECT count(*), sum(a.v) FROM few LEFT JOIN a USING (k)'),
	('SELECT count(*) FROM a JOIN b USING (k) HAVING count(*) > 1000000'),
	('SELECT p.*, (SELECT count(*) FROM a JOIN b USING (k) WHERE a.k > p.v) FROM (VALUES (100), (150), (NULL), (190)) p(v)'),
	('SELECT p.*, (SELECT count(*) FROM a JOIN b USING (k) WHERE b.v > p.v) FROM (VALUES (100), (4), (NULL), (2)) p(v)'),
	('SELECT i, count(*) FROM generate_series(1, 3) i, LATERAL (SELECT k FROM a JOIN b USING (k) GROUP BY k HAVING count(*) > i LIMIT 3) x GROUP BY i'),
	('SELECT k FROM a INTERSECT SELECT k FROM b'),
	('SELECT k FROM a INTERSECT SELECT k FROM b ORDER BY 1 DESC LIMIT 3'),
	('SELECT k FROM a INTERSECT ALL SELECT k FROM b'),
	('SELECT k FROM a EXCEPT SELECT k FROM b'),
	('SELECT k FROM b EXCEPT ALL SELECT k FROM a'),
	('SELECT k, k2 FROM a INTERSECT ALL SELECT k, k2 FROM b'),
	('SELECT k2, k FROM a EXCEPT ALL SELECT k2, k FROM b'),
	('SELECT k, k2 FROM a WHERE k > 150 AND v > 2 EXCEPT SELECT k, k2 FROM b WHERE v IS NOT NULL'),
	('SELECT u FROM a INTERSECT SELECT u FROM b'),
	('SELECT t FROM a WHERE t < ''2000-01-25'' INTERSECT ALL SELECT t FROM b'),
	('SELECT t FROM a WHERE t < ''2000-01-25'' EXCEPT SELECT t FROM b'),
	('SELECT t FROM a INTERSECT SELECT t FROM b WHERE t > ''2000-03-28'''),
	('SELECT big FROM a WHERE big IS NOT NULL INTERSECT SELECT k FROM few'),
	('SELECT big FROM a EXCEPT SELECT big FROM b'),
	('SELECT k FROM gaps EXCEPT SELECT k FROM whole'),
	('SELECT k FROM gaps EXCEPT ALL SELECT k FROM whole'),
	('SELECT k FROM whole INTERSECT SELECT k FROM gaps'),
	('SELECT k FROM gaps EXCEPT ALL SELECT big FROM a'),
	('(SELECT k FROM a INTERSECT SELECT k FROM b) EXCEPT SELECT k2 FROM a'),
	('(SELECT k FROM a INTERSECT SELECT k FROM b) UNION ALL (SELECT k FROM a EXCEPT SELECT k FROM b)'),
	('(SELECT k FROM a INTERSECT SELECT k FROM b) UNION SELECT big FROM a'),
	('SELECT * FROM (SELECT k FROM a INTERSECT SELECT k FROM b) x WHERE k > 150'),
	('SELECT count(*), sum(k) FROM (SELECT k FROM a INTERSECT SELECT k FROM b) x'),
	('SELECT k FROM nothing EXCEPT SELECT k FROM b'),
	('SELECT k FROM a EXCEPT SELECT k FROM nothing'),
	('SELECT k FROM a WHERE v = (SELECT 5) EXCEPT SELECT k FROM b'),
	('SELECT p.*, (SELECT count(*) FROM (SELECT k FROM a WHERE k > p.v EXCEPT SELECT k FROM b) x) FROM (VALUES (100), (150), (NULL), (190)) p(v)'),
	('SELECT count(*) FROM a WHERE k IN (SELECT k FROM b EXCEPT SELECT k FROM nothing)');
SELECT place, query, same_join(query) FROM query ORDER BY place;

-- Not by this way: conditions that are no equality of columns, columns that are equal in several ways or have no exact
-- codes, an order that is not the other's, groups of something else, other aggregates, other joins.
TRUNCATE query;
INSERT INTO query (query) VALUES
	('SELECT count(*) FROM a JOIN b ON a.k = b.k AND a.v > b.v'),
	('SELECT count(*) FROM a JOIN b ON a.k = b.k + 1'),
	('SELECT count(*) FROM a JOIN b ON a.k = b.k AND a.k = b.k2'),
	('SELECT count(*) FROM a JOIN b USING (f)'),
	('SELECT count(*) FROM a JOIN b USING (d)'),
	('SELECT count(*) FROM a JOIN b USING (k) WHERE a.k = 150'),
	('SELECT count(*) FROM a JOIN b USING (k) WHERE a.v + 1 = 5'),
	('SELECT count(*) FROM a LEFT JOIN b USING (k) WHERE b.v IS NULL'),
	('SELECT count(*) FROM a FULL JOIN b USING (k)'),
	('SELECT count(*) FROM b WHERE k NOT IN (SELECT k FROM a)'),
	('SELECT count(*) FROM a JOIN b USING (k) JOIN nothing USING (k)'),
	('SELECT a.k, count(*) FROM a JOIN b USING (k, k2) GROUP BY a.k'),
	('SELECT a.yes, count(*) FROM a JOIN b USING (k) GROUP BY a.yes'),
	('SELECT k, count(*) FROM a JOIN b USING (k) GROUP BY ROLLUP (k)'),
	('SELECT variance(a.v) FROM a JOIN b USING (k)'),
	('SELECT count(DISTINCT a.k) FROM a JOIN b USING (k)'),
	('SELECT sum(a.v + b.v) FROM a JOIN b USING (k)'),
	('SELECT sum(a.v) FILTER (WHERE b.yes) FROM a JOIN b USING (k)'),
	('SELECT f FROM a INTERSECT SELECT f FROM b'),
	('SELECT d FROM a INTERSECT SELECT d FROM b'),
	('SELECT k FROM a INTERSECT SELECT big FROM b'),
	('SELECT k + 1 FROM a EXCEPT SELECT k FROM b'),
	('SELECT k, k FROM a EXCEPT SELECT k, k2 FROM b'),
	('SELECT DISTINCT k FROM a INTERSECT SELECT k FROM b'),
	('SELECT k FROM a WHERE random() < 2 INTERSECT SELECT k FROM b'),
	('(SELECT k FROM a LIMIT 0) EXCEPT SELECT k FROM b'),
	-- these count the NULLs of a row that is joined with none
	('SELECT count(*) FILTER (WHERE b.v IS NULL) FROM a LEFT JOIN b USING (k)'),
	('SELECT a.k, count(1) FILTER (WHERE b.yes IS NOT TRUE) FROM a LEFT JOIN b USING (k) GROUP BY a.k'),
	('SELECT sum(CASE WHEN b.v > 3 THEN b.v ELSE 1 END) FROM a LEFT JOIN b USING (k)'),
	('SELECT a.k, avg(CASE WHEN b.v > 3 THEN 0 ELSE 1 END) FROM a LEFT JOIN b USING (k) GROUP BY a.k'),
	('SELECT count(CASE WHEN b.v IS NULL THEN 1 END) FROM a LEFT JOIN b USING (k)');
SELECT place, query, same_join(query) FROM query ORDER BY place;

\set ECHO none
-- Any of these at random; those that differ are shown.
CREATE FUNCTION any_of(VARIADIC choices text[]) RETURNS text LANGUAGE sql VOLATILE AS $$
	SELECT choices[1 + floor(random() * cardinality(choices))::int]
$$;
CREATE FUNCTION random_join() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	keys text := any_of('k', 'k', 'k, k2', 'big', 'u', 'n', 't', 'd');
	k text := split_part(keys, ',', 1);
	of_a text := any_of('true', 'true', 'a.v > 2', 'a.k BETWEEN 120 AND 180', 'a.yes', 'a.v IN (1, 2, NULL)', 'a.k2 IS NULL', 'a.k < 103');
	of_b text := any_of('true', 'true', 'b.v < 20', 'b.k > 150', 'NOT b.yes', 'b.v IS NOT NULL', 'b.k2 = 2', 'b.k < 103');
	aggregates text := any_of('count(*)', 'count(*), sum(a.v)', 'count(*), min(b.v), avg(b.v)', 'count(b.k), sum(a.v), max(b.k)', 'count(1), sum(b.v) FILTER (WHERE b.v > 3)',
		'count(*) FILTER (WHERE b.v IS NULL)', 'sum(CASE WHEN b.v > 3 THEN 1 ELSE 0 END)');
	left_only text := any_of('count(*)', 'count(*), sum(a.v), min(a.v)', 'count(a.k)');
	grouped text := CASE WHEN random() < 0.4 THEN 'a.' || replace(keys, ', ', ', a.') END;
	condition text := 'a.' || k || ' = b.' || k || CASE WHEN keys LIKE '%,%' THEN ' AND a.k2 = b.k2' ELSE '' END;
	from_where text;
BEGIN
	CASE floor(random() * 6)::int
		WHEN 0 THEN
			RETURN format('SELECT %s FROM a WHERE %s %s SELECT %s FROM b WHERE %s', keys, of_a,
				any_of('INTERSECT', 'INTERSECT ALL', 'EXCEPT', 'EXCEPT ALL'), keys, of_b);
		WHEN 1 THEN
			from_where := format('%s FROM a LEFT JOIN b ON %s AND %s WHERE %s', aggregates, condition, of_b, of_a);
		WHEN 2 THEN
			from_where := format('%s FROM a WHERE %s AND %sEXISTS (SELECT FROM b WHERE %s AND %s)', left_only, of_a, any_of('', 'NOT '), condition, of_b);
		WHEN 3 THEN
			from_where := format('%s FROM a WHERE %s AND (%s) IN (SELECT %s FROM b WHERE %s)', left_only, of_a, keys, keys, of_b);
		ELSE
			from_where := format('%s FROM a JOIN b ON %s WHERE %s AND %s', aggregates, condition, of_a, of_b);
	END CASE;
	RETURN 'SELECT ' || coalesce(grouped || ', ', '') || from_where || coalesce(' GROUP BY ' || grouped, '');
END $$;
CREATE FUNCTION compare_random(n int, OUT query text, OUT what text) RETURNS SETOF record LANGUAGE plpgsql AS $$
DECLARE
	used int := 0;
BEGIN
	FOR i IN 1..n LOOP
		query := random_join();
		what := same_join(query);
		IF what LIKE 'wrong%' THEN
			RETURN NEXT;
		END IF;
		used := used + (what LIKE '%GpudsMerge%')::int;
	END LOOP;
	what := CASE WHEN used > n / 5 THEN 'GpudsMerge in many' ELSE used || ' of GpudsMerge' END;
	query := '';
	RETURN NEXT;
END $$;
\set ECHO all
SELECT setseed(0.5);
SELECT * FROM compare_random(100);

-- A cursor that goes on while rows change, in a snapshot of its own.
SET gpuds.enable_aggregate = on;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_nestloop = off;
SET enable_sort = off;
BEGIN ISOLATION LEVEL REPEATABLE READ;
DECLARE c CURSOR FOR SELECT k, count(*) FROM few JOIN a USING (k) GROUP BY k;
FETCH 1 FROM c;
DELETE FROM a WHERE k = 100;
INSERT INTO few VALUES (199, 1);
FETCH ALL FROM c;
SELECT count(*) FROM few JOIN a USING (k);
ROLLBACK;
SELECT count(*) FROM few JOIN a USING (k);

-- Row security on either side, and privileges on columns, aggregates and operators.
CREATE ROLE regress_index_join;
GRANT USAGE ON SCHEMA test_index_join TO regress_index_join;
GRANT SELECT (k, v) ON a TO regress_index_join;
GRANT SELECT ON b TO regress_index_join;
ALTER TABLE b ENABLE ROW LEVEL SECURITY;
CREATE POLICY part ON b USING (v < 5);
\set ECHO none
CREATE FUNCTION count_as_user(query text, OUT plan text, OUT answer text) LANGUAGE plpgsql AS $$
BEGIN
	SET LOCAL ROLE regress_index_join;
	plan := CASE WHEN plan_of(query) LIKE '%GpudsMerge%' THEN 'GpudsMerge' ELSE 'core' END;
	EXECUTE query INTO answer;
	SET LOCAL gpuds.enable_aggregate = off;
	EXECUTE 'SELECT CASE WHEN ' || quote_nullable(answer) || ' IS NOT DISTINCT FROM (' || query || ')::text THEN ''same'' ELSE ''not the same'' END' INTO answer;
	RESET ROLE;
	SET LOCAL gpuds.enable_aggregate = on;
EXCEPTION WHEN insufficient_privilege THEN
	answer := SQLERRM;
END $$;
\set ECHO all
GRANT EXECUTE ON FUNCTION count_as_user, plan_of TO regress_index_join;
SELECT * FROM count_as_user('SELECT count(*) FROM a JOIN b USING (k)');
SELECT * FROM count_as_user('SELECT count(*) FROM a WHERE NOT EXISTS (SELECT FROM b WHERE b.k = a.k)');
SELECT * FROM count_as_user('SELECT count(*) FROM (SELECT k FROM a EXCEPT SELECT k FROM b) x');
SELECT * FROM count_as_user('SELECT count(*) FROM a JOIN b USING (k) WHERE a.yes');
DROP POLICY part ON b;
CREATE POLICY part ON b USING (v IN (SELECT few.v FROM few));
GRANT SELECT ON few TO regress_index_join;
SELECT * FROM count_as_user('SELECT count(*) FROM a JOIN b USING (k)');
SELECT * FROM count_as_user('SELECT count(*) FROM (SELECT k FROM a EXCEPT SELECT k FROM b) x');
REVOKE EXECUTE ON FUNCTION int4eq FROM public;
SELECT * FROM count_as_user('SELECT count(*) FROM a JOIN few USING (k)');
ALTER TABLE b DISABLE ROW LEVEL SECURITY;
SELECT * FROM count_as_user('SELECT count(*) FROM a JOIN b USING (k)');
SELECT * FROM count_as_user('SELECT count(*) FROM (SELECT k FROM a EXCEPT SELECT k FROM b) x');
GRANT EXECUTE ON FUNCTION int4eq TO public;
REVOKE EXECUTE ON FUNCTION count() FROM public;
SELECT * FROM count_as_user('SELECT count(*) FROM a JOIN b USING (k)');
GRANT EXECUTE ON FUNCTION count() TO public;
SELECT * FROM count_as_user('SELECT count(*) FROM a JOIN b USING (k)');
REVOKE SELECT ON b FROM regress_index_join;
SELECT * FROM count_as_user('SELECT count(*) FROM (SELECT k FROM a EXCEPT SELECT k FROM b) x');

SET client_min_messages = warning;
DROP OWNED BY regress_index_join;
DROP ROLE regress_index_join;
DROP SCHEMA :test CASCADE;
