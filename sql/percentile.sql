-- GpudsPercentile: percentiles by the ranks of an index's entries.
\set test test_percentile
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

CREATE TABLE t (id int NOT NULL, k int, s int2, b bigint, r real, f float8, m numeric(12,2), i interval, h time, at timestamptz, n int2, pad text)
	WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, nullif(i * 7919 % 5003, 5), i % 300 - 100, (i % 70) * 100000000000000001, i % 700 * 0.1,
	CASE i % 50 WHEN 0 THEN '-0'::float8 WHEN 1 THEN 0 WHEN 2 THEN 'NaN' WHEN 3 THEN NULL WHEN 4 THEN 'Infinity' WHEN 5 THEN '-Infinity' ELSE i % 1000 / 7.0 - 60 END,
	CASE WHEN i % 99 = 0 THEN 'NaN' ELSE i % 3000 / 7.0 END, i % 1000 * interval '1 hour 3 minutes', time '00:00' + i % 900 * interval '97 seconds',
	timestamptz '2000-01-01 UTC' + i * interval '1 hour', i % 3, 'row ' || i
FROM generate_series(1, 30000) i;
INSERT INTO t (id, k) SELECT i, NULL FROM generate_series(30001, 33000) i;
-- one value of most rows
INSERT INTO t (id, k) SELECT i, 4000 FROM generate_series(33001, 40000) i;
CREATE INDEX t_id ON t USING gpu_btree (id);
CREATE INDEX t_k ON t USING gpu_btree (k);
CREATE INDEX t_s ON t USING gpu_skiplist (s DESC);
CREATE INDEX t_b ON t USING gpu_btree (b NULLS FIRST);
CREATE INDEX t_r ON t USING gpu_btree (r DESC NULLS LAST);
CREATE INDEX t_f ON t USING gpu_btree (f);
CREATE INDEX t_m ON t USING gpu_btree (m);
CREATE INDEX t_i ON t USING gpu_btree (i);
CREATE INDEX t_h ON t USING gpu_btree (h);
CREATE INDEX t_n_at ON t USING gpu_btree (n, at) INCLUDE (k);
VACUUM ANALYZE t;
-- Groups of one row, of many, with NULLs and of NULLs only; keys that descend, and put NULLs first.  Few enough rows for
-- ANALYZE to look at all, so that the number of groups, and with it the plan, is the same each time.
CREATE TABLE g (g int, h int2, v float8, w int) WITH (autovacuum_enabled = off);
INSERT INTO g SELECT nullif(i % 20, 19), nullif(i % 7, 2), CASE WHEN i % 11 > 0 THEN i % 1000 + 0.5 END, CASE WHEN i % 20 <> 4 THEN nullif(i % 5000, 7) END FROM generate_series(1, 28000) i;
INSERT INTO g SELECT i, 1, i, i FROM generate_series(2000, 2020) i;
CREATE INDEX g_g_h_v ON g USING gpu_btree (g DESC, h, v);
CREATE INDEX g_g_w ON g USING gpu_skiplist (g, w NULLS FIRST);
CREATE INDEX g_g_h ON g USING gpu_btree (g, h);
VACUUM ANALYZE g;
SET cpu_operator_cost = 0;
SET seq_page_cost = 0;
SET random_page_cost = 0;

\set ECHO none
-- Has a query the same answer with GpudsPercentile and by a sequential scan?  Zeros of both signs, and intervals of other
-- units, are equal, and any of them may be the answer.
CREATE FUNCTION same_percentile(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	right_answer text := right_digest_of(query, true);
	answer text;
	plan text;
BEGIN
	SET LOCAL gpuds.enable_aggregate = on;
	SET LOCAL enable_seqscan = off;
	plan := plan_of(query);
	answer := digest_of(query, true);
	SET LOCAL gpuds.enable_aggregate = off;
	RETURN CASE WHEN answer <> right_answer THEN 'wrong: ' || answer || ', right: ' || right_answer
		ELSE split_part(answer, ' ', 1) || ' rows agree' || CASE WHEN plan LIKE '%GpudsPercentile%' THEN ', GpudsPercentile' ELSE '' END
			|| CASE WHEN plan LIKE '%GpudsAggregate%' THEN ', GpudsAggregate' ELSE '' END END;
END $$;
\set ECHO all

CREATE TABLE query (place serial, query text);
INSERT INTO query (query) VALUES
	-- of all rows, of all types
	('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY id) FROM t'),
	('SELECT percentile_disc(0) WITHIN GROUP (ORDER BY id), percentile_disc(1) WITHIN GROUP (ORDER BY id) FROM t'),
	('SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY id) FROM t'),
	('SELECT percentile_cont(0.123) WITHIN GROUP (ORDER BY id DESC), percentile_disc(0.123) WITHIN GROUP (ORDER BY id DESC) FROM t'),
	('SELECT percentile_cont(0.3) WITHIN GROUP (ORDER BY k) FROM t'),
	('SELECT percentile_disc(0.3) WITHIN GROUP (ORDER BY k DESC NULLS LAST) FROM t'),
	('SELECT percentile_disc(0.3) WITHIN GROUP (ORDER BY k NULLS FIRST) FROM t'),
	('SELECT percentile_cont(array[0, 0.1, 0.35, 1]) WITHIN GROUP (ORDER BY s) FROM t'),
	('SELECT percentile_disc(array[0, 0.1, 0.35, 1]) WITHIN GROUP (ORDER BY s DESC) FROM t'),
	('SELECT percentile_cont(array[0, 0.1, 0.35, 1]) WITHIN GROUP (ORDER BY b) FROM t'),
	('SELECT percentile_disc(array[0, 0.1, 0.35, 1]) WITHIN GROUP (ORDER BY b) FROM t'),
	('SELECT percentile_cont(array[0, 0.1, 0.35, 1]) WITHIN GROUP (ORDER BY r) FROM t'),
	('SELECT percentile_disc(0.77) WITHIN GROUP (ORDER BY r DESC) FROM t'),
	('SELECT percentile_cont(0.71) WITHIN GROUP (ORDER BY f) FROM t'),
	('SELECT percentile_cont(array[0, 0.01, 0.015, 0.5, 0.51, 0.9, 0.96, 0.99, 1]) WITHIN GROUP (ORDER BY f) FROM t'),
	('SELECT percentile_cont(array[0, 0.01, 0.015, 0.5, 0.51, 0.9, 0.96, 0.99, 1]) WITHIN GROUP (ORDER BY f DESC) FROM t'),
	('SELECT percentile_cont(0.4) WITHIN GROUP (ORDER BY m), percentile_disc(0.4) WITHIN GROUP (ORDER BY m) FROM t'),
	('SELECT percentile_disc(array[0.1, 0.99, 0.9999]) WITHIN GROUP (ORDER BY m DESC) FROM t'),
	('SELECT percentile_cont(0.4) WITHIN GROUP (ORDER BY i), percentile_disc(0.4) WITHIN GROUP (ORDER BY i) FROM t'),
	('SELECT percentile_cont(array[0.33333, 0.9]) WITHIN GROUP (ORDER BY i DESC) FROM t'),
	('SELECT percentile_cont(array[0.33333, 0.9]) WITHIN GROUP (ORDER BY h), percentile_disc(0.2) WITHIN GROUP (ORDER BY h) FROM t'),
	-- fractions
	('SELECT percentile_disc(NULL::float8) WITHIN GROUP (ORDER BY id) FROM t'),
	('SELECT percentile_cont(NULL::float8[]) WITHIN GROUP (ORDER BY id) FROM t'),
	('SELECT percentile_cont(array[]::float8[]) WITHIN GROUP (ORDER BY id), percentile_disc(array[]::float8[]) WITHIN GROUP (ORDER BY id) FROM t'),
	('SELECT percentile_cont(array[NULL, 0.5, NULL, 0.1, 0.1]) WITHIN GROUP (ORDER BY id), percentile_disc(array[NULL, 0.5, NULL]) WITHIN GROUP (ORDER BY id) FROM t'),
	('SELECT percentile_disc(''[2:3][5:6]={{0.1,0.9},{NULL,0.5}}''::float8[]) WITHIN GROUP (ORDER BY k) FROM t'),
	('SELECT percentile_disc(1e-300) WITHIN GROUP (ORDER BY id), percentile_cont(1e-300) WITHIN GROUP (ORDER BY id) FROM t'),
	('SELECT percentile_disc((SELECT 0.25)) WITHIN GROUP (ORDER BY id) FROM t'),
	('SELECT percentile_disc((SELECT array_agg(x) FROM generate_series(0.0, 1, 0.01) x)::float8[]) WITHIN GROUP (ORDER BY id) FROM t'),
	('SELECT x.x, (SELECT percentile_cont(x.x) WITHIN GROUP (ORDER BY k) FROM t) FROM (VALUES (0.1), (NULL), (0.9), (1)) x (x)'),
	('SELECT x.x, q.* FROM (VALUES (10), (NULL), (30000), (50000)) x (x), LATERAL (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY id), count(*), max(id) FROM t WHERE id > x.x) q'),
	-- ranges, equality, and none at all
	('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY id) FROM t WHERE id BETWEEN 1000 AND 20000'),
	('SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY id) FROM t WHERE id BETWEEN 1000 AND 1003'),
	('SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY id) FROM t WHERE id = 7'),
	('SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY id), percentile_disc(array[0.5]) WITHIN GROUP (ORDER BY id), min(id), count(id) FROM t WHERE id > 50000'),
	('SELECT percentile_cont(array[0.5]) WITHIN GROUP (ORDER BY k), percentile_disc(0.5) WITHIN GROUP (ORDER BY k), max(k), count(k), count(*) FROM t WHERE k IS NULL'),
	('SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY k), percentile_disc(0.5) WITHIN GROUP (ORDER BY k) FROM t WHERE k = 4000'),
	('SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY k) FROM t WHERE k = ANY (ARRAY[7, 9, 11, 4001])'),
	('SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY f) FROM t WHERE f < 0'),
	('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY at) FROM t WHERE n = 1'),
	('SELECT count(*), percentile_disc(array[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY at), min(at), max(at) FROM t WHERE n = 1 AND at > ''2001-01-01 00:00+00'''),
	('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY n) FROM t'),
	('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY n) FROM t WHERE n = 2'),
	-- beside others
	('SELECT count(*), min(id), percentile_cont(0.5) WITHIN GROUP (ORDER BY id), max(id), percentile_disc(array[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY id) FROM t'),
	('SELECT count(*), count(k), min(k), max(k), percentile_disc(0.5) WITHIN GROUP (ORDER BY k), percentile_cont(0.5) WITHIN GROUP (ORDER BY k DESC) FROM t'),
	('SELECT sum(k), avg(k), percentile_disc(0.5) WITHIN GROUP (ORDER BY k) FROM t'),
	('SELECT count(*) FILTER (WHERE k > 10), percentile_disc(0.5) WITHIN GROUP (ORDER BY k) FROM t'),
	('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY k), percentile_disc(0.5) WITHIN GROUP (ORDER BY f) + 0, percentile_disc(0.5) WITHIN GROUP (ORDER BY at), percentile_cont(0.1) WITHIN GROUP (ORDER BY m) FROM t WHERE id > 0'),
	('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY k), percentile_disc(0.5) WITHIN GROUP (ORDER BY b), percentile_cont(0.1) WITHIN GROUP (ORDER BY m) FROM t'),
	('SELECT round(percentile_cont(0.5) WITHIN GROUP (ORDER BY k)::numeric) + count(*) FROM t HAVING percentile_cont(0.5) WITHIN GROUP (ORDER BY k) > 10'),
	('SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY k) FROM t HAVING count(*) < 10'),
	('SELECT count(DISTINCT k), percentile_cont(0.5) WITHIN GROUP (ORDER BY k) FROM t'),
	('SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY k) AS p FROM t ORDER BY 1 LIMIT 1'),
	('SELECT id FROM t WHERE id = (SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY id) FROM t)'),
	-- groups of leading columns
	('SELECT n, percentile_disc(0.5) WITHIN GROUP (ORDER BY at) FROM t GROUP BY n ORDER BY n'),
	('SELECT n, count(*), percentile_disc(array[0.1, 0.9, NULL]) WITHIN GROUP (ORDER BY at DESC), percentile_disc(0.01) WITHIN GROUP (ORDER BY at), max(at), count(at) FROM t GROUP BY n ORDER BY n'),
	('SELECT g, h, percentile_cont(0.5) WITHIN GROUP (ORDER BY v), percentile_disc(0.3) WITHIN GROUP (ORDER BY v DESC), count(*), count(v) FROM g GROUP BY g, h ORDER BY g, h'),
	('SELECT g, h, percentile_cont(array[0.1, 0.2, 0.9]) WITHIN GROUP (ORDER BY v) FROM g WHERE g = 3 GROUP BY g, h ORDER BY g, h'),
	('SELECT h, percentile_cont(0.5) WITHIN GROUP (ORDER BY v) FROM g WHERE g = 3 AND h > 4 GROUP BY h ORDER BY h'),
	('SELECT h, percentile_cont(0.5) WITHIN GROUP (ORDER BY v) FROM g WHERE g IS NULL GROUP BY h ORDER BY h'),
	('SELECT h, percentile_cont(0.5) WITHIN GROUP (ORDER BY v) FROM g WHERE g = 1000 GROUP BY h'),
	('SELECT g, h FROM g GROUP BY g, h HAVING percentile_disc(0.5) WITHIN GROUP (ORDER BY v) > 400 ORDER BY g, h'),
	('SELECT g, percentile_disc(0.5) WITHIN GROUP (ORDER BY w), sum(w) FROM g GROUP BY g ORDER BY g'),
	('SELECT g, percentile_disc(0.5) WITHIN GROUP (ORDER BY h) FROM g GROUP BY g ORDER BY g'),
	('SELECT h, percentile_disc(0.5) WITHIN GROUP (ORDER BY v) FROM g WHERE g IN (1, 2) GROUP BY g, h ORDER BY g, h'),
	('SELECT q.g, q.p FROM (VALUES (1), (NULL), (5)) x (x), LATERAL (SELECT g, percentile_cont(x.x / 7.0) WITHIN GROUP (ORDER BY v) AS p FROM g WHERE g > x.x GROUP BY g, h) q ORDER BY q::text'),
	('SELECT sum(p) FROM (SELECT percentile_disc(0.25) WITHIN GROUP (ORDER BY v) AS p FROM g GROUP BY g, h ORDER BY g, h LIMIT 7) q'),
	-- the scan begins with the first row of the first group
	('SELECT g, h, percentile_disc(0) WITHIN GROUP (ORDER BY v) FROM g GROUP BY g, h ORDER BY g, h'),
	-- core's
	('SELECT g, percentile_disc(0.5) WITHIN GROUP (ORDER BY v) FROM g GROUP BY g ORDER BY g'),
	('SELECT g, percentile_disc(g / 10.0) WITHIN GROUP (ORDER BY w) FROM g WHERE g < 10 GROUP BY g ORDER BY g'),
	('SELECT g, percentile_disc(0.5) WITHIN GROUP (ORDER BY w), percentile_disc(0.5) WITHIN GROUP (ORDER BY h) FROM g GROUP BY g ORDER BY g'),
	('SELECT g, percentile_disc(0.5) WITHIN GROUP (ORDER BY w) FROM g GROUP BY ROLLUP (g) ORDER BY g'),
	('SELECT date_trunc(''month'', at), percentile_disc(0.5) WITHIN GROUP (ORDER BY at) FROM t WHERE n = 1 GROUP BY 1 ORDER BY 1'),
	('SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY k) FILTER (WHERE k > 10) FROM t'),
	('SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY k + 1) FROM t'),
	('SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY -k) FROM t'),
	('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY pad) FROM t'),
	('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY at) FROM t'),
	('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY at) FROM t WHERE n IN (1, 2)'),
	('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY id) FROM t WHERE pad LIKE ''%7'''),
	('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY at) FROM t WHERE n = 1 AND k > 7'),
	('SELECT mode() WITHIN GROUP (ORDER BY k) FROM t'),
	('SELECT rank(7) WITHIN GROUP (ORDER BY k) FROM t'),
	('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY a.id) FROM t a JOIN t b USING (id)'),
	('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY id) FROM (SELECT id FROM t UNION ALL SELECT id FROM t) q'),
	('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY id) FROM (SELECT id FROM t OFFSET 0) q');
SELECT place, same_percentile(query) FROM query ORDER BY place;

-- EXPLAIN
SET gpuds.enable_aggregate = on;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY id) FROM t WHERE id > 100;
EXPLAIN (COSTS OFF, VERBOSE) SELECT count(*), percentile_cont(0.5) WITHIN GROUP (ORDER BY k) + 1 AS p, percentile_disc(array[0.5, 0.9]) WITHIN GROUP (ORDER BY k DESC) FROM t;
EXPLAIN (COSTS OFF) SELECT sum(k), max(k), percentile_cont(0.5) WITHIN GROUP (ORDER BY k), percentile_disc(0.5) WITHIN GROUP (ORDER BY m DESC) FROM t HAVING count(*) > 10;
EXPLAIN (COSTS OFF, VERBOSE) SELECT g, sum(w), percentile_cont(0.5) WITHIN GROUP (ORDER BY w) FROM g GROUP BY g HAVING count(*) > 2;
SELECT node_of('SELECT percentile_disc(array[0.25, 0.5]) WITHIN GROUP (ORDER BY id) FROM t');

-- core's errors
SELECT percentile_disc(1.5) WITHIN GROUP (ORDER BY id) FROM t;
SELECT percentile_cont(-0.1) WITHIN GROUP (ORDER BY id) FROM t;
SELECT percentile_cont('NaN') WITHIN GROUP (ORDER BY id) FROM t;
SELECT percentile_cont(array[0.1, NULL, 7]) WITHIN GROUP (ORDER BY id) FROM t;
-- of one fraction also without rows
SELECT percentile_cont(7) WITHIN GROUP (ORDER BY id) FROM t WHERE id < 0;
SELECT percentile_cont(array[7]) WITHIN GROUP (ORDER BY id) FROM t WHERE id < 0;
SELECT percentile_cont((SELECT 2)) WITHIN GROUP (ORDER BY id) FROM t;

-- parameters of prepared statements, of a generic plan
SET plan_cache_mode = force_generic_plan;
PREPARE p (float8, int) AS SELECT percentile_cont($1) WITHIN GROUP (ORDER BY id), count(*) FROM t WHERE id > $2;
EXPLAIN (COSTS OFF) EXECUTE p (0.5, 10);
EXECUTE p (0.5, 10);
EXECUTE p (NULL, 10);
EXECUTE p (0.25, NULL);
EXECUTE p (1.25, 10);
DEALLOCATE p;
PREPARE p (float8[]) AS SELECT percentile_disc($1) WITHIN GROUP (ORDER BY k), $1 AS again FROM t;
EXECUTE p ('{0.5,0.1,NULL}');
EXECUTE p ('{}');
EXECUTE p (NULL);
DEALLOCATE p;
RESET plan_cache_mode;

-- The transaction's own changes, and those of its subtransactions; cursors.
BEGIN;
DELETE FROM t WHERE id <= 10000;
INSERT INTO t (id) SELECT -i FROM generate_series(1, 500) i;
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY id), count(*) FROM t;
SAVEPOINT a;
DELETE FROM t WHERE id < 0;
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY id), count(*) FROM t;
DECLARE c SCROLL CURSOR FOR SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY id), count(*) FROM t;
DELETE FROM t WHERE id < 30000;
FETCH ALL FROM c;
FETCH BACKWARD ALL FROM c;
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY id), count(*) FROM t;
ROLLBACK TO a;
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY id), count(*) FROM t;
ROLLBACK;
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY id), count(*) FROM t;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY id) FROM t;
SELECT relation::regclass, page, tuple FROM pg_locks WHERE mode = 'SIReadLock' AND locktype = 'relation' ORDER BY 1;
COMMIT;

-- privileges of columns and functions, and security of rows
CREATE ROLE regress_percentile;
GRANT USAGE ON SCHEMA :test TO regress_percentile;
GRANT SELECT (id) ON t TO regress_percentile;
SET ROLE regress_percentile;
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY id) FROM t;
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY k) FROM t;
RESET ROLE;
CREATE POLICY higher ON t USING (id > 20000);
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
SET ROLE regress_percentile;
EXPLAIN (COSTS OFF) SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY id) FROM t;
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY id) FROM t;
RESET ROLE;
ALTER TABLE t DISABLE ROW LEVEL SECURITY;
DROP POLICY higher ON t;
REVOKE EXECUTE ON FUNCTION percentile_disc(float8, anyelement) FROM PUBLIC;
SET ROLE regress_percentile;
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY id) FROM t;
RESET ROLE;
GRANT EXECUTE ON FUNCTION percentile_disc(float8, anyelement) TO PUBLIC;
-- Groups are counted where the query does not.
GRANT SELECT (g, w) ON g TO regress_percentile;
REVOKE EXECUTE ON FUNCTION count(), count("any") FROM PUBLIC;
SET ROLE regress_percentile;
EXPLAIN (COSTS OFF) SELECT g, percentile_disc(0.5) WITHIN GROUP (ORDER BY w) FROM g GROUP BY g;
SELECT g, percentile_disc(0.5) WITHIN GROUP (ORDER BY w) FROM g GROUP BY g HAVING g < 3 ORDER BY g;
SELECT g, percentile_disc(0.5) WITHIN GROUP (ORDER BY w), count(*) FROM g GROUP BY g;
SELECT g, percentile_disc(0.5) WITHIN GROUP (ORDER BY w), count(w) FROM g GROUP BY g;
RESET ROLE;
GRANT EXECUTE ON FUNCTION count(), count("any") TO PUBLIC;
DROP OWNED BY regress_percentile;
DROP ROLE regress_percentile;

-- It takes the place of an index-only scan, and can be turned off.
SET enable_indexonlyscan = off;
EXPLAIN (COSTS OFF) SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY id) FROM t;
RESET enable_indexonlyscan;
SET gpuds.enable_aggregate = off;
EXPLAIN (COSTS OFF) SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY id) FROM t;
SET gpuds.enable_aggregate = on;

-- partitions, and one of them
CREATE TABLE p (k int) PARTITION BY RANGE (k);
CREATE TABLE p_1 PARTITION OF p FOR VALUES FROM (0) TO (1000);
CREATE TABLE p_2 PARTITION OF p FOR VALUES FROM (1000) TO (2000);
INSERT INTO p SELECT i % 2000 FROM generate_series(1, 5000) i;
CREATE INDEX p_k ON p USING gpu_btree (k);
VACUUM ANALYZE p;
SELECT same_percentile('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY k) FROM p');
SELECT same_percentile('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY k) FROM p_2');

-- a temporary table, a partial index, a domain, an empty table
CREATE DOMAIN small AS int CHECK (VALUE < 100000);
CREATE TEMPORARY TABLE temp AS SELECT i::small AS k, i % 2 AS n FROM generate_series(1, 10000) i;
CREATE INDEX temp_k ON temp USING gpu_btree (k);
CREATE INDEX temp_n ON temp USING gpu_skiplist (n) WHERE n > 0;
VACUUM ANALYZE temp;
SELECT same_percentile('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY k), percentile_cont(0.5) WITHIN GROUP (ORDER BY k) FROM temp');
SELECT same_percentile('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY n) FROM temp WHERE n > 0');
TRUNCATE temp;
SELECT same_percentile('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY k), percentile_cont(0.5) WITHIN GROUP (ORDER BY k), count(k), min(k) FROM temp');

\set ECHO none
-- Rows that have changed since VACUUM: some, runs of them, nearly all.  Fractions and orders at random.
CREATE FUNCTION random_percentiles(n int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	names text[] := ARRAY['id', 'k', 's', 'b', 'r', 'm', 'i', 'h'];
	conditions text[] := ARRAY['', '', ' WHERE id > 7000', ' WHERE n = 1', ' WHERE n = 1 AND at > ''2000-06-01'''];
	name text;
	condition text;
	query text;
	answer text;
	used int := 0;
BEGIN
	FOR i IN 1..n LOOP
		condition := conditions[1 + i % array_length(conditions, 1)];
		name := CASE WHEN condition = '' THEN names[1 + (random() * 7)::int] WHEN condition ~ 'id' THEN 'id' ELSE 'at' END;
		query := format('SELECT percentile_disc(%s) WITHIN GROUP (ORDER BY %s%s), percentile_disc(ARRAY[%4$s, %5$s, %6$s]::float8[]) WITHIN GROUP (ORDER BY %2$s)%7$s FROM t%8$s',
			random(), name, CASE WHEN random() < 0.5 THEN ' DESC' ELSE '' END, random() ^ 3, random(), random() ^ 0.3,
			CASE WHEN name <> 'at' THEN format(', percentile_cont(%s) WITHIN GROUP (ORDER BY %s), count(%2$s), count(*)', random(), name) ELSE ', count(*), min(at)' END, condition);
		answer := same_percentile(query);
		IF answer NOT LIKE '%rows agree%' THEN
			RETURN 'of ' || query || ': ' || answer;
		END IF;
		used := used + (answer LIKE '%GpudsPercentile%')::int;
	END LOOP;
	RETURN 'all agree' || CASE WHEN used < n / 2 THEN ', few by GpudsPercentile' ELSE '' END;
END $$;
\set ECHO all
SELECT random_percentiles(60);
-- The rows of many groups' ranks are found at once, by structures that have ranks.
CREATE FUNCTION found_by_rank(query text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	line text;
	found bool := false;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF) ' || query LOOP
		found := found OR line LIKE '%Rows Found by Rank%';
	END LOOP;
	RETURN found;
END $$;
CREATE FUNCTION has_ranks(amname name) RETURNS bool LANGUAGE sql
	RETURN amname = 'gpu_' || 'btree' OR (amname = 'gpu_' || 'avl' AND current_setting('gpuds.device') = 'cuda');
SELECT found_by_rank('SELECT g, percentile_disc(0.5) WITHIN GROUP (ORDER BY h) FROM g GROUP BY g') = has_ranks(amname)
FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE c.oid = 'g_g_h'::regclass;
CREATE TABLE h AS SELECT * FROM g;
CREATE INDEX h_g_h ON h USING gpu_avl (g, h);
VACUUM ANALYZE h;
SELECT found_by_rank('SELECT g, percentile_disc(0.5) WITHIN GROUP (ORDER BY h) FROM h GROUP BY g') = has_ranks('gpu_avl');
DROP TABLE h;
-- ... and those of some ranks of a table; so many take memory, and a scan of all rows does not
CREATE TABLE h AS SELECT i AS k FROM generate_series(1, 66000) i;
CREATE INDEX h_k ON h USING gpu_btree (k);
VACUUM ANALYZE h;
SELECT found_by_rank('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY k) FROM h') = has_ranks(amname)
FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE c.oid = 'h_k'::regclass;
CREATE VIEW many AS SELECT 'SELECT percentile_disc((SELECT array_agg(i / 66000.0) FROM generate_series(1, 66000) i)::float8[]) WITHIN GROUP (ORDER BY k) FROM h' AS query;
SELECT found_by_rank(query), same_percentile(query) FROM many;
DROP TABLE h;
CREATE VIEW grouped AS SELECT same_percentile(query) FROM query WHERE query ~ 'FROM g .*GROUP BY';
DELETE FROM g WHERE w % 9 = 4;
UPDATE g SET v = v + 1 WHERE h = 3;
SELECT * FROM grouped;
DELETE FROM g WHERE w % 9 > 2 OR g BETWEEN 2005 AND 2015;
SELECT * FROM grouped;
VACUUM g;
SELECT * FROM grouped;
DELETE FROM t WHERE id % 10 = 3;
UPDATE t SET k = k + 10, f = -f WHERE id % 10 = 4;
SELECT random_percentiles(60);
DELETE FROM t WHERE id BETWEEN 5000 AND 25000;
SELECT random_percentiles(40);
VACUUM t;
UPDATE t SET k = k - 1 WHERE id < 2000;
SELECT random_percentiles(40);
DELETE FROM t WHERE id % 50 > 0;
SELECT random_percentiles(20);
INSERT INTO t (id, k, n) SELECT i, i % 100, 1 FROM generate_series(1, 20000) i;
SELECT random_percentiles(40);

DROP SCHEMA :test CASCADE;
