-- GpudsOffset: OFFSET skips rows that are counted, and core reads on from there.
\set test test_offset
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

CREATE TABLE t (id int, k int, f float8, at timestamptz, n int2, pad text) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, nullif(i * 7919 % 5003, 5), CASE i % 5 WHEN 0 THEN '-0'::float8 WHEN 1 THEN 0 WHEN 2 THEN 'NaN' WHEN 3 THEN NULL ELSE i % 1000 - 500 END,
	timestamptz '2000-01-01 UTC' + i * interval '1 hour', i % 3, 'row ' || i
FROM generate_series(1, 30000) i;
INSERT INTO t (id, k) SELECT i, NULL FROM generate_series(30001, 33000) i;
-- one value of most rows
INSERT INTO t (id, k) SELECT i, 4000 FROM generate_series(33001, 40000) i;
CREATE INDEX t_id ON t USING gpu_btree (id);
CREATE INDEX t_k ON t USING gpu_btree (k) INCLUDE (n);
CREATE INDEX t_f ON t USING gpu_btree (f);
CREATE INDEX t_at ON t USING gpu_btree (at);
CREATE INDEX t_n_k ON t USING gpu_btree (n, k);
CREATE INDEX t_part ON t USING gpu_btree (id, n) WHERE n = 2;
VACUUM ANALYZE t;
SET cpu_operator_cost = 0;
SET enable_bitmapscan = off;

\set ECHO none
-- Has a query the same answer, in sequence, with GpudsOffset and by a sequential scan?
CREATE FUNCTION same_page(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	right_answer text := right_digest_of(query, true);
	answer text;
	plan text;
BEGIN
	SET LOCAL enable_seqscan = off;
	SET LOCAL enable_sort = off;
	SET LOCAL gpuds.enable_aggregate = on;
	plan := plan_of(query);
	answer := digest_of(query, true);
	SET LOCAL gpuds.enable_aggregate = off;
	RETURN CASE WHEN answer <> right_answer THEN 'wrong: ' || answer || ', right: ' || right_answer
		ELSE split_part(answer, ' ', 1) || ' rows agree'
			|| CASE WHEN plan LIKE '%GpudsOffset%' THEN ', GpudsOffset, ' || substring(plan FROM 'using (\S+)') ELSE '' END END;
END $$;
\set ECHO all

CREATE TABLE query (place serial, query text);
INSERT INTO query (query) VALUES
	-- the whole table, in both directions
	('SELECT * FROM t ORDER BY id OFFSET 20000 LIMIT 20'),
	('SELECT * FROM t ORDER BY id DESC OFFSET 20000 LIMIT 20'),
	('SELECT id FROM t ORDER BY id OFFSET 39990'),
	('SELECT id FROM t ORDER BY id OFFSET 39990 LIMIT ALL'),
	('SELECT id FROM t ORDER BY id OFFSET 39990 LIMIT NULL'),
	('SELECT id FROM t ORDER BY id OFFSET 39999'),
	('SELECT id FROM t ORDER BY id OFFSET 40000 LIMIT 10'),
	('SELECT id FROM t ORDER BY id OFFSET 1000000 LIMIT 10'),
	('SELECT id FROM t ORDER BY id OFFSET 20000 LIMIT 0'),
	('SELECT id FROM t ORDER BY id OFFSET 65 LIMIT 3'),
	('SELECT ctid, tableoid::regclass, id + 1, upper(pad) FROM t ORDER BY id OFFSET 20000 LIMIT 5'),
	-- ranges, at both ends and beyond them
	('SELECT id FROM t WHERE id BETWEEN 10000 AND 30000 ORDER BY id OFFSET 15000 LIMIT 7'),
	('SELECT id FROM t WHERE id BETWEEN 10000 AND 30000 ORDER BY id DESC OFFSET 15000 LIMIT 7'),
	('SELECT id FROM t WHERE id BETWEEN 10000 AND 30000 ORDER BY id OFFSET 20000 LIMIT 7'),
	('SELECT id FROM t WHERE id BETWEEN 10000 AND 30000 ORDER BY id OFFSET 20001 LIMIT 7'),
	('SELECT id FROM t WHERE id > 5000 AND id < 4000 ORDER BY id OFFSET 100 LIMIT 7'),
	-- many rows of a value, and NULLs
	('SELECT k, k + 1 FROM t ORDER BY k OFFSET 27000 LIMIT 1000'),
	('SELECT k FROM t ORDER BY k OFFSET 36900 LIMIT 300'),
	('SELECT k FROM t ORDER BY k DESC OFFSET 2900 LIMIT 300'),
	('SELECT k FROM t ORDER BY k DESC OFFSET 5000 LIMIT 3000'),
	('SELECT k FROM t WHERE k IS NULL ORDER BY k OFFSET 1000 LIMIT 3'),
	('SELECT k FROM t WHERE k IS NOT NULL ORDER BY k DESC OFFSET 10000 LIMIT 3'),
	('SELECT k FROM t WHERE k = 4000 ORDER BY k OFFSET 3500 LIMIT 3'),
	('SELECT k FROM t WHERE k >= 4000 ORDER BY k OFFSET 6990 LIMIT 100'),
	-- -0, 0 and NaN
	('SELECT f + 0 FROM t ORDER BY f OFFSET 1000 LIMIT 10000'),
	('SELECT f = 0 FROM t ORDER BY f DESC OFFSET 23000 LIMIT 4000'),
	('SELECT f FROM t WHERE f > 0 ORDER BY f OFFSET 3000 LIMIT 100'),
	-- several columns, equality and lists on the first one
	('SELECT n, k FROM t ORDER BY n, k OFFSET 15000 LIMIT 10'),
	('SELECT n, k FROM t ORDER BY n DESC, k DESC OFFSET 15000 LIMIT 10'),
	('SELECT n FROM t ORDER BY n OFFSET 15000 LIMIT 10'),
	('SELECT n, k FROM t WHERE n = 1 ORDER BY k OFFSET 5000 LIMIT 10'),
	('SELECT n, k FROM t WHERE n = 1 ORDER BY k DESC OFFSET 5000 LIMIT 10'),
	('SELECT n, k FROM t WHERE n = 1 AND k > 2000 ORDER BY k OFFSET 5000 LIMIT 10'),
	('SELECT n, k FROM t WHERE n > 0 AND k > 2000 ORDER BY n, k OFFSET 5000 LIMIT 10'),
	('SELECT k FROM t WHERE k = ANY (ARRAY[7, 9, 4000, 4001]) ORDER BY k OFFSET 3000 LIMIT 10'),
	('SELECT id FROM t WHERE n = 2 AND id > 1000 ORDER BY id OFFSET 5000 LIMIT 10'),
	('SELECT n, k FROM t WHERE n = ANY (ARRAY[2, 0]) ORDER BY n, k OFFSET 15000 LIMIT 10'),
	('SELECT n, k FROM t WHERE n = ANY (ARRAY[2, 0]) ORDER BY n DESC, k DESC OFFSET 9999 LIMIT 10'),
	('SELECT n, k FROM t WHERE n = ANY (ARRAY[2, 0, 7]) ORDER BY n, k OFFSET 10000 LIMIT 10'),
	('SELECT n, k FROM t WHERE n = ANY (ARRAY[2, 0, 1]) AND k > 1000 ORDER BY n, k OFFSET 17000 LIMIT 10'),
	('SELECT n, k FROM t WHERE n = ANY (ARRAY[2, 0]) ORDER BY n, k OFFSET 20001 LIMIT 10'),
	-- OFFSET that is computed
	('SELECT id FROM t ORDER BY id OFFSET (SELECT 20000) LIMIT (SELECT 3)'),
	('SELECT id FROM t ORDER BY id OFFSET NULL LIMIT 3'),
	('SELECT id FROM t ORDER BY id OFFSET 100 + 20000.4 LIMIT 2.6'),
	('SELECT o.o, q.id FROM (VALUES (0), (63), (64), (65), (2049), (10000), (39999), (40001), (NULL)) o (o), LATERAL (SELECT id FROM t ORDER BY id OFFSET o.o LIMIT 2) q'),
	('SELECT o.o, q.id FROM (VALUES (0), (20000), (100)) o (o), LATERAL (SELECT id FROM t WHERE id > o.o ORDER BY id DESC OFFSET 5000 LIMIT 2) q'),
	('SELECT o.o, (SELECT id FROM t WHERE id > o.o ORDER BY id OFFSET 5000 LIMIT 1) FROM (VALUES (0), (20000), (39000)) o (o)'),
	('SELECT * FROM (SELECT id FROM t ORDER BY id OFFSET 20000 LIMIT 20) q WHERE id % 3 = 0'),
	('SELECT at AT TIME ZONE ''UTC'' FROM t WHERE at > ''2001-01-01 00:00+00'' ORDER BY at OFFSET 5000 LIMIT 3'),
	-- core's nodes: few rows, no order of an index, conditions that do not bound the scan, what is to be called for each
	-- row, groups, windows, sets, ties, joins
	('SELECT id FROM t ORDER BY id OFFSET 64 LIMIT 3'),
	('SELECT id FROM t ORDER BY id LIMIT 3'),
	('SELECT n, id FROM t ORDER BY n DESC, id OFFSET 10000 LIMIT 3'),
	('SELECT k, n FROM t WHERE n <> 1 ORDER BY k, n OFFSET 10000 LIMIT 3'),
	('SELECT id FROM t WHERE pad LIKE ''%7%'' ORDER BY id OFFSET 1000 LIMIT 3'),
	('SELECT id, random() < 2 FROM t ORDER BY id OFFSET 1000 LIMIT 3'),
	('SELECT id, (SELECT random() < 2 WHERE id > 0) FROM t ORDER BY id OFFSET 1000 LIMIT 3'),
	('SELECT id, (SELECT (SELECT random() < 2 WHERE x > 0) FROM (SELECT id AS x) q) FROM t ORDER BY id OFFSET 1000 LIMIT 3'),
	('SELECT id, (SELECT max(x) FROM unnest(ARRAY[1, id]) x) FROM t ORDER BY id OFFSET 1000 LIMIT 3'),
	('SELECT id, generate_series(1, 2) AS s FROM t ORDER BY id, s OFFSET 1000 LIMIT 3'),
	('SELECT DISTINCT id FROM t ORDER BY id OFFSET 1000 LIMIT 3'),
	('SELECT id, count(*) FROM t GROUP BY id ORDER BY id OFFSET 1000 LIMIT 3'),
	('SELECT id, row_number() OVER (ORDER BY id) FROM t ORDER BY id OFFSET 1000 LIMIT 3'),
	('SELECT id FROM t UNION ALL SELECT id FROM t ORDER BY id OFFSET 1000 LIMIT 3'),
	('SELECT n FROM t ORDER BY n OFFSET 10000 FETCH FIRST 3 ROWS WITH TIES'),
	('SELECT a.id FROM t a JOIN t b USING (id) ORDER BY a.id OFFSET 1000 LIMIT 3');
SELECT place, same_page(query) FROM query ORDER BY place;

\set ECHO none
-- Pages make up the table, whatever their size, and none has a row of another.
CREATE FUNCTION pages(query text, size int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	tids tid[];
	page tid[];
	n int := 0;
BEGIN
	SET LOCAL gpuds.enable_aggregate = on;
	SET LOCAL enable_seqscan = off;
	LOOP
		EXECUTE format('SELECT array_agg(ctid) FROM (%s OFFSET %s LIMIT %s) q', query, n * size, size) INTO page;
		EXIT WHEN page IS NULL;
		tids := tids || page;
		n := n + 1;
	END LOOP;
	RETURN (SELECT format('%s pages, %s rows, %s of them different', n, count(*), count(DISTINCT tid)) FROM unnest(tids) tid);
END $$;
\set ECHO all
SELECT pages('SELECT ctid FROM t ORDER BY k', 4999);
SELECT pages('SELECT ctid FROM t ORDER BY k DESC', 777);
SELECT pages('SELECT ctid FROM t WHERE n = 1 ORDER BY k', 1000);

-- EXPLAIN
SET gpuds.enable_aggregate = on;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM t ORDER BY id DESC OFFSET 20000 LIMIT 20;
EXPLAIN (COSTS OFF, VERBOSE) SELECT k, n + 1 AS m FROM t WHERE k > 100 ORDER BY k OFFSET 20000 LIMIT 20;
-- an order by constants only
EXPLAIN (COSTS OFF) SELECT k, n FROM t WHERE k = 4000 ORDER BY k OFFSET 3000 LIMIT 3;

-- core's errors
SELECT id FROM t ORDER BY id OFFSET (SELECT -1) LIMIT 3;
SELECT id FROM t ORDER BY id OFFSET (SELECT 1000) LIMIT (SELECT -1);
SELECT id FROM t ORDER BY id OFFSET (SELECT -1) LIMIT (SELECT -1);
SELECT id FROM t ORDER BY id OFFSET (SELECT -1) LIMIT 0;

-- parameters of prepared statements, of a generic plan
SET plan_cache_mode = force_generic_plan;
PREPARE page (bigint, bigint) AS SELECT id FROM t ORDER BY id OFFSET $1 LIMIT $2;
EXPLAIN (COSTS OFF) EXECUTE page (10, 2);
EXECUTE page (0, 2);
EXECUTE page (64, 2);
EXECUTE page (66, 2);
EXECUTE page (30000, 2);
EXECUTE page (NULL, 1);
EXECUTE page (39998, NULL);
EXECUTE page (50000, 2);
EXECUTE page (-1, 2);
EXECUTE page (1000, -2);
DEALLOCATE page;
RESET plan_cache_mode;

-- What the rows have in common with OFFSET and LIMIT is not taken from a row, of which there is none yet.
SET plan_cache_mode = force_generic_plan;
PREPARE page (bigint) AS SELECT id, $1 AS o FROM t ORDER BY id OFFSET $1 LIMIT 2;
EXPLAIN (COSTS OFF) EXECUTE page (10);
EXECUTE page (20000);
DEALLOCATE page;
PREPARE page (bigint) AS SELECT id, $1 + 1 AS o FROM t ORDER BY id OFFSET 20000 LIMIT abs($1 + 1);
EXECUTE page (1);
DEALLOCATE page;
RESET plan_cache_mode;
SELECT o.o, q.* FROM (VALUES (0), (20000)) o (o), LATERAL (SELECT id, o.o AS again FROM t ORDER BY id OFFSET o.o LIMIT 1) q;
SELECT id, bigint '20000' AS o FROM t ORDER BY id OFFSET 20000 LIMIT 1;

-- cursors
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM t ORDER BY id OFFSET 20000 LIMIT 4;
FETCH 2 FROM c;
-- what comes meanwhile is not seen
INSERT INTO t (id) VALUES (20003);
DELETE FROM t WHERE id = 20004;
FETCH ALL FROM c;
FETCH ALL FROM c;
DECLARE s SCROLL CURSOR FOR SELECT id FROM t ORDER BY id DESC OFFSET 20000 LIMIT 4;
FETCH ALL FROM s;
FETCH BACKWARD 2 FROM s;
FETCH ABSOLUTE 1 FROM s;
FETCH ABSOLUTE -1 FROM s;
FETCH BACKWARD ALL FROM s;
FETCH 1 FROM s;
ROLLBACK;
-- Without SCROLL, too: back from behind the count, from the end, from rows within, and from before the first.
BEGIN;
EXPLAIN (COSTS OFF) DECLARE c SCROLL CURSOR FOR SELECT id FROM t ORDER BY id OFFSET 20000 LIMIT 4;
DECLARE c CURSOR FOR SELECT id FROM t ORDER BY id OFFSET 20000 LIMIT 4;
FETCH BACKWARD 1 FROM c;
FETCH 3 FROM c;
FETCH BACKWARD 1 FROM c;
FETCH BACKWARD ALL FROM c;
FETCH BACKWARD 1 FROM c;
FETCH ALL FROM c;
FETCH 1 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH RELATIVE 0 FROM c;
FETCH 1 FROM c;
FETCH 1 FROM c;
FETCH LAST FROM c;
FETCH FIRST FROM c;
FETCH ABSOLUTE 3 FROM c;
DECLARE e CURSOR FOR SELECT id FROM t ORDER BY id DESC OFFSET 39998 LIMIT 10;
FETCH ALL FROM e;
FETCH BACKWARD ALL FROM e;
FETCH ALL FROM e;
FETCH BACKWARD 1 FROM e;
FETCH 1 FROM e;
DECLARE n CURSOR FOR SELECT id FROM t ORDER BY id OFFSET 40000 LIMIT 10;
FETCH ALL FROM n;
FETCH BACKWARD ALL FROM n;
FETCH ALL FROM n;
DECLARE z CURSOR FOR SELECT id FROM t ORDER BY id OFFSET 20000 LIMIT 0;
FETCH ALL FROM z;
FETCH BACKWARD ALL FROM z;
DECLARE l CURSOR FOR SELECT n, k FROM t WHERE n IN (0, 2) ORDER BY n, k OFFSET 15000 LIMIT 3;
FETCH ALL FROM l;
FETCH BACKWARD ALL FROM l;
ROLLBACK;
BEGIN;
DECLARE h CURSOR WITH HOLD FOR SELECT id FROM t ORDER BY id OFFSET 30000 LIMIT 2;
COMMIT;
FETCH ALL FROM h;
CLOSE h;

-- The transaction's own changes, and those of its subtransactions.
BEGIN;
DELETE FROM t WHERE id <= 1000;
INSERT INTO t (id) SELECT -i FROM generate_series(1, 500) i;
UPDATE t SET k = k + 1 WHERE id BETWEEN 5000 AND 6000;
SELECT id FROM t ORDER BY id OFFSET 10000 LIMIT 2;
SAVEPOINT a;
DELETE FROM t WHERE id < 0;
SELECT id FROM t ORDER BY id OFFSET 10000 LIMIT 2;
ROLLBACK TO a;
SELECT id FROM t ORDER BY id OFFSET 10000 LIMIT 2;
SELECT id FROM t ORDER BY id DESC OFFSET 36000 LIMIT 2;
ROLLBACK;
SELECT id FROM t ORDER BY id OFFSET 10000 LIMIT 2;

-- isolation levels
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT id FROM t ORDER BY id OFFSET 10000 LIMIT 2;
SELECT relation::regclass, page, tuple FROM pg_locks WHERE mode = 'SIReadLock' AND locktype = 'relation' ORDER BY 1;
COMMIT;
BEGIN READ ONLY;
SELECT id FROM t ORDER BY id OFFSET 10000 LIMIT 2;
COMMIT;

-- No rows of it are locked, and none changed.
BEGIN;
EXPLAIN (COSTS OFF) SELECT id FROM t ORDER BY id OFFSET 10000 LIMIT 2 FOR UPDATE;
SELECT plan_of('UPDATE t SET n = 5 WHERE id IN (SELECT id FROM t ORDER BY id OFFSET 10000 LIMIT 2)') LIKE '%GpudsOffset%' AS by_offset;
UPDATE t SET n = 5 WHERE id IN (SELECT id FROM t ORDER BY id OFFSET 10000 LIMIT 2) RETURNING id, n;
ROLLBACK;

-- privileges of columns, and security of rows
CREATE ROLE regress_offset;
GRANT USAGE ON SCHEMA :test TO regress_offset;
GRANT SELECT (id) ON t TO regress_offset;
SET ROLE regress_offset;
SELECT id FROM t ORDER BY id OFFSET 20000 LIMIT 2;
SELECT id FROM t ORDER BY k OFFSET 20000 LIMIT 2;
RESET ROLE;
CREATE POLICY higher ON t USING (id > 10000);
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
SET ROLE regress_offset;
EXPLAIN (COSTS OFF) SELECT id FROM t ORDER BY id OFFSET 20000 LIMIT 2;
SELECT id FROM t ORDER BY id OFFSET 20000 LIMIT 2;
RESET ROLE;
DROP POLICY higher ON t;
CREATE POLICY others ON t USING (pad IS NULL);
SET ROLE regress_offset;
EXPLAIN (COSTS OFF) SELECT id FROM t ORDER BY id OFFSET 5000 LIMIT 2;
SELECT id FROM t ORDER BY id OFFSET 5000 LIMIT 2;
RESET ROLE;
ALTER TABLE t DISABLE ROW LEVEL SECURITY;
DROP POLICY others ON t;
DROP OWNED BY regress_offset;
DROP ROLE regress_offset;

-- It takes the place of an index-only scan, and can be turned off.
SET enable_indexonlyscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM t ORDER BY id OFFSET 20000 LIMIT 2;
RESET enable_indexonlyscan;
SET gpuds.enable_aggregate = off;
EXPLAIN (COSTS OFF) SELECT id FROM t ORDER BY id OFFSET 20000 LIMIT 2;
SET gpuds.enable_aggregate = on;

-- a temporary table, and one that has gone
CREATE TEMPORARY TABLE temp AS SELECT i AS k FROM generate_series(1, 10000) i;
CREATE INDEX temp_k ON temp USING gpu_btree (k);
ANALYZE temp;
SELECT k FROM temp ORDER BY k OFFSET 5000 LIMIT 2;
SELECT k FROM temp ORDER BY k DESC OFFSET 5000 LIMIT 2;
TRUNCATE temp;
SELECT k FROM temp ORDER BY k OFFSET 5000 LIMIT 2;

-- an index that descends, and puts NULLs first or last
CREATE INDEX t_k_desc ON t USING gpu_btree (k DESC NULLS LAST);
CREATE INDEX t_k_first ON t USING gpu_btree (k NULLS FIRST, n DESC);
RESET enable_seqscan;
SELECT same_page('SELECT k FROM t ORDER BY k DESC NULLS LAST OFFSET 20000 LIMIT 20');
SELECT same_page('SELECT k FROM t ORDER BY k NULLS FIRST OFFSET 2990 LIMIT 100');
SELECT same_page('SELECT k, n FROM t ORDER BY k NULLS FIRST, n DESC OFFSET 20000 LIMIT 100');
SELECT same_page('SELECT k, n FROM t ORDER BY k DESC NULLS LAST, n OFFSET 20000 LIMIT 100');
DROP INDEX t_k_desc, t_k_first;

-- gpu_skiplist, whose structure has no ranks on a CPU; gpu_hash has no order
CREATE TABLE s AS SELECT i AS k, i % 10 AS n FROM generate_series(1, 20000) i;
CREATE INDEX s_k ON s USING gpu_skiplist (k);
CREATE INDEX s_n ON s USING gpu_hash (n);
VACUUM ANALYZE s;
SELECT same_page('SELECT k FROM s ORDER BY k OFFSET 15000 LIMIT 3');
SELECT same_page('SELECT k FROM s WHERE k > 100 ORDER BY k DESC OFFSET 15000 LIMIT 3');
SELECT same_page('SELECT n FROM s WHERE n = 5 ORDER BY n OFFSET 1500 LIMIT 3');

-- Entries at a scan's end that a condition on another column leaves out: it does not begin again.
CREATE TABLE e (n int, k int);
INSERT INTO e SELECT i % 3, CASE WHEN i % 3 = 1 THEN i ELSE -i END FROM generate_series(1, 30000) i;
CREATE INDEX e_n_k ON e USING gpu_btree (n, k);
VACUUM ANALYZE e;
SELECT same_page('SELECT n, k FROM e WHERE n > 0 AND k > 0 ORDER BY n, k OFFSET 9990 LIMIT 20');
SELECT same_page('SELECT n, k FROM e WHERE n > 0 AND k > 0 ORDER BY n, k OFFSET 15000 LIMIT 3');
SELECT same_page('SELECT n, k FROM e WHERE n < 2 AND k > 0 ORDER BY n DESC, k DESC OFFSET 9990 LIMIT 20');
SELECT same_page('SELECT n, k FROM e WHERE n < 2 AND k > 0 ORDER BY n DESC, k DESC OFFSET 15000 LIMIT 3');

-- partitions, and one of them
CREATE TABLE p (k int) PARTITION BY RANGE (k);
CREATE TABLE p_1 PARTITION OF p FOR VALUES FROM (0) TO (1000);
CREATE TABLE p_2 PARTITION OF p FOR VALUES FROM (1000) TO (2000);
INSERT INTO p SELECT i % 2000 FROM generate_series(1, 5000) i;
CREATE INDEX p_k ON p USING gpu_btree (k);
VACUUM ANALYZE p;
SELECT same_page('SELECT k FROM p ORDER BY k OFFSET 3000 LIMIT 3');
SELECT same_page('SELECT k FROM p_2 ORDER BY k OFFSET 1000 LIMIT 3');

\set ECHO none
-- Rows that have changed since VACUUM: some, runs of them, nearly all.  Offsets and orders at random.
CREATE FUNCTION random_pages(n int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	orders text[] := ARRAY['SELECT id FROM t ORDER BY id', 'SELECT id FROM t ORDER BY id DESC', 'SELECT k FROM t ORDER BY k', 'SELECT k FROM t ORDER BY k DESC',
		'SELECT f + 0 FROM t ORDER BY f', 'SELECT f + 0 FROM t ORDER BY f DESC', 'SELECT n, k FROM t ORDER BY n, k', 'SELECT n, k FROM t ORDER BY n DESC, k DESC',
		'SELECT k FROM t WHERE n = 1 ORDER BY k', 'SELECT id FROM t WHERE id BETWEEN 3000 AND 36000 ORDER BY id DESC', 'SELECT k FROM t WHERE k > 2000 ORDER BY k',
		'SELECT n, k FROM t WHERE n IN (0, 1) ORDER BY n, k', 'SELECT n, k FROM t WHERE n IN (0, 2) AND k > 700 ORDER BY n DESC, k DESC'];
	query text;
	answer text;
	used int := 0;
BEGIN
	FOR i IN 1..n LOOP
		query := format('%s OFFSET %s LIMIT %s', orders[1 + i % array_length(orders, 1)], 65 + (random() ^ 2 * 40000)::int, (random() * 200)::int);
		answer := same_page(query);
		IF answer NOT LIKE '%rows agree%' THEN
			RETURN 'of ' || query || ': ' || answer;
		END IF;
		used := used + (answer LIKE '%GpudsOffset%')::int;
	END LOOP;
	RETURN 'all agree' || CASE WHEN used < n / 2 THEN ', few by GpudsOffset' ELSE '' END;
END $$;
\set ECHO all
SELECT random_pages(60);
DELETE FROM t WHERE id % 10 = 3;
UPDATE t SET k = k + 10, f = -f WHERE id % 10 = 4;
SELECT random_pages(60);
SELECT pages('SELECT ctid FROM t ORDER BY k', 2999);
DELETE FROM t WHERE id BETWEEN 5000 AND 25000;
SELECT random_pages(40);
VACUUM t;
UPDATE t SET k = k - 1 WHERE id < 2000;
SELECT random_pages(40);
DELETE FROM t WHERE id % 50 > 0;
SELECT random_pages(20);
SELECT pages('SELECT ctid FROM t ORDER BY k', 99);
INSERT INTO t (id, k, n) SELECT i, i % 100, 1 FROM generate_series(1, 20000) i;
SELECT random_pages(40);

DROP SCHEMA :test CASCADE;
