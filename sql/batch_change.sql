-- GpudsJoin in statements that change or lock rows.  What it does when others change them is in isolation/join-recheck.
\set test test_batch_change
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

CREATE TABLE t (id int, k int, v int, note text) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, nullif(i, 77), i % 100, 'note ' || i FROM generate_series(1, 3000) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
CREATE TABLE b (id int, k int, v int) WITH (autovacuum_enabled = off);
INSERT INTO b SELECT i, nullif(i * 7 % 5000, 70), i FROM generate_series(1, 1200) i;
CREATE INDEX b_k ON b USING gpu_btree (k);
CREATE TABLE twice (k int) WITH (autovacuum_enabled = off);
INSERT INTO twice SELECT i % 500 FROM generate_series(1, 1000) i;
CREATE TABLE divided (k int, v int) PARTITION BY RANGE (k);
CREATE TABLE divided_1 PARTITION OF divided FOR VALUES FROM (0) TO (1000);
CREATE TABLE divided_2 PARTITION OF divided FOR VALUES FROM (1000) TO (4000);
INSERT INTO divided SELECT i, i FROM generate_series(0, 3999) i;
CREATE INDEX ON divided USING gpu_btree (k);
CREATE TABLE pieces (k int, w int) PARTITION BY RANGE (k);
CREATE TABLE pieces_1 PARTITION OF pieces FOR VALUES FROM (0) TO (1000);
CREATE TABLE pieces_2 PARTITION OF pieces FOR VALUES FROM (1000) TO (4000);
INSERT INTO pieces SELECT i * 3, i FROM generate_series(0, 1300) i;
VACUUM ANALYZE t, b, twice, divided, pieces;

\set ECHO none
-- What a statement leaves of all tables, or fails with, and its plan.
CREATE FUNCTION left_by(statement text, OUT digest text, OUT plan text) LANGUAGE plpgsql AS $$
DECLARE
	changed bigint;
BEGIN
	plan := plan_of(statement);
	EXECUTE statement;
	GET DIAGNOSTICS changed = ROW_COUNT;
	SELECT changed || ' rows ' || md5(string_agg(r, E'\n' ORDER BY r)) INTO digest
	FROM (SELECT t::text FROM t UNION ALL SELECT b::text FROM b UNION ALL SELECT p::text FROM divided p) q (r);
	RAISE EXCEPTION 'undo';
EXCEPTION WHEN raise_exception THEN
	NULL;
END $$;

-- The same with GpudsJoin and without?
CREATE FUNCTION changed(statement text, small bool DEFAULT false) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	right_answer record;
	answer record;
BEGIN
	right_answer := left_by(statement);
	SET LOCAL gpuds.enable_join = on;
	SET LOCAL enable_hashjoin = off;
	SET LOCAL enable_mergejoin = off;
	SET LOCAL enable_nestloop = off;
	IF small THEN
		SET LOCAL work_mem = '64kB';
	END IF;
	answer := left_by(statement);
	SET LOCAL work_mem TO DEFAULT;
	SET LOCAL gpuds.enable_join = off;
	SET LOCAL enable_hashjoin = on;
	SET LOCAL enable_mergejoin = on;
	SET LOCAL enable_nestloop = on;
	IF answer.digest IS DISTINCT FROM right_answer.digest THEN
		RETURN format(E'%s, right: %s\n%s', answer.digest, right_answer.digest, answer.plan);
	END IF;
	RETURN split_part(answer.digest, ' rows', 1) || ' rows' || CASE WHEN answer.plan LIKE '%GpudsJoin%'
		THEN ', ' || substring(answer.plan FROM 'Join Type: (\w+)') ELSE '' END;
END $$;
\set ECHO all

SET gpuds.enable_join = on;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_nestloop = off;
EXPLAIN (VERBOSE, COSTS OFF) UPDATE t SET v = b.v FROM b WHERE t.k = b.k AND t.id <> b.id;
EXPLAIN (VERBOSE, COSTS OFF) DELETE FROM b WHERE NOT EXISTS (SELECT FROM t WHERE t.k = b.k);
EXPLAIN (VERBOSE, COSTS OFF) SELECT b.id FROM b WHERE EXISTS (SELECT FROM t WHERE t.k = b.k) FOR UPDATE;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_nestloop;
SET gpuds.enable_join = off;

-- the inner table is changed, the outer one, by each kind of join
SELECT changed('UPDATE t SET v = b.v FROM b WHERE t.k = b.k');
SELECT changed('UPDATE t SET v = b.v FROM b WHERE t.k = b.k', true);
SELECT changed('UPDATE t SET v = b.v, k = t.k + 1 FROM b WHERE t.k = b.k');
SELECT changed('UPDATE t SET v = b.v FROM b WHERE t.k = b.k AND t.v < b.v');
SELECT changed('UPDATE t SET v = v + 1 FROM twice WHERE t.k = twice.k');
SELECT changed('UPDATE t SET v = t.v + 1 FROM b, twice WHERE t.k = b.k AND twice.k = b.k');
SELECT changed('UPDATE b SET v = t.v FROM t WHERE t.k = b.k');
SELECT changed('UPDATE b SET v = t.v FROM b o LEFT JOIN t ON t.k = o.k WHERE o.id = b.id');
SELECT changed('DELETE FROM t USING b WHERE t.k = b.k');
SELECT changed('DELETE FROM b USING t WHERE t.k = b.k AND t.v > 50');
-- either side may be the outer one
SELECT changed('DELETE FROM t WHERE EXISTS (SELECT FROM b WHERE t.k = b.k)') ~ '^854 rows, (Semi|Inner)$' AS joins,
	changed('DELETE FROM t WHERE k IN (SELECT k FROM b)') ~ '^854 rows, (Semi|Inner)$' AS joins_in;
SELECT changed('DELETE FROM t WHERE EXISTS (SELECT FROM twice WHERE t.k = twice.k)');
SELECT changed('DELETE FROM t WHERE k IN (SELECT k FROM twice)');
SELECT changed('DELETE FROM t WHERE NOT EXISTS (SELECT FROM b WHERE t.k = b.k)');
SELECT changed('DELETE FROM t WHERE NOT EXISTS (SELECT FROM b WHERE t.k = b.k AND b.v > t.v)');
SELECT changed('UPDATE t SET v = 0 WHERE EXISTS (SELECT FROM b WHERE t.k = b.k AND b.v > t.v)');
SELECT changed('UPDATE b SET k = k + 1 WHERE EXISTS (SELECT FROM t WHERE t.k = b.k AND t.v % 2 = 0)');

-- MERGE
SELECT changed('MERGE INTO t USING b ON t.k = b.k WHEN MATCHED AND b.v % 3 = 0 THEN DELETE
	WHEN MATCHED THEN UPDATE SET v = b.v WHEN NOT MATCHED THEN INSERT VALUES (b.id, b.k, b.v)');
SELECT changed('MERGE INTO t USING b ON t.k = b.k WHEN MATCHED THEN UPDATE SET v = b.v');
SELECT changed('MERGE INTO t USING (SELECT k, count(*) AS n FROM twice GROUP BY k) c ON t.k = c.k WHEN MATCHED THEN UPDATE SET v = c.n');

-- from all sorts of places
SELECT changed('UPDATE t SET v = x.v FROM (VALUES (1, 1000), (2, 2000), (NULL, 3000)) x (k, v) WHERE t.k = x.k');
SELECT changed('UPDATE t SET v = x.v FROM unnest(''{5,7,9}''::int[], ''{50,70,90}''::int[]) x (k, v) WHERE t.k = x.k');
SELECT changed('UPDATE t SET v = -x.k FROM (SELECT DISTINCT k FROM twice OFFSET 0) x WHERE t.k = x.k');
SELECT changed('WITH x AS (DELETE FROM b WHERE v % 2 = 0 RETURNING *) UPDATE t SET v = x.v FROM x WHERE t.k = x.k');
-- a partitioned table that is changed is no outer side, unless each partition is
SELECT changed('UPDATE divided SET v = b.v FROM b WHERE divided.k = b.k');
SELECT changed('UPDATE t SET v = divided.v FROM divided WHERE t.k = divided.k');
SELECT changed('UPDATE divided SET v = divided.v + t.v, k = (divided.k + 1000) % 4000 FROM t WHERE t.k = divided.k');
SET enable_partitionwise_join = on;
SELECT changed('UPDATE divided SET v = pieces.w FROM pieces WHERE divided.k = pieces.k');
SELECT changed('DELETE FROM divided USING pieces WHERE divided.k = pieces.k AND divided.tableoid = ''divided_1''::regclass');
RESET enable_partitionwise_join;

-- locks, whole rows of what is outside, and system columns
SELECT changed('INSERT INTO t (id, note) SELECT t.id, b::text FROM t JOIN b ON t.k = b.k FOR UPDATE');
SELECT changed('INSERT INTO t (id, note) SELECT t.id, b::text FROM t JOIN b ON t.k = b.k FOR NO KEY UPDATE OF t');
SELECT changed('INSERT INTO t (id, note) SELECT t.id, b::text FROM t JOIN b ON t.k = b.k FOR SHARE OF b');
SELECT changed('INSERT INTO t (id, note) SELECT t.id, b::text FROM b LEFT JOIN t ON t.k = b.k FOR SHARE OF b');
SELECT changed('INSERT INTO t (id, note) SELECT q.id, q::text FROM (SELECT b.* FROM b JOIN t ON t.k = b.k AND t.v > 30 FOR UPDATE) q');
SET gpuds.enable_join = on;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_nestloop = off;
SELECT count(*), count(DISTINCT o.ctid) FROM b JOIN t ON t.k = b.k JOIN t o ON o.ctid = t.ctid AND o.id = t.id AND o.xmin = t.xmin
WHERE t.tableoid = 't'::regclass AND t.cmin IS NOT NULL;
BEGIN;
UPDATE t SET note = note || ' changed' WHERE id < 100;
UPDATE t SET note = note || ' again' WHERE id < 50;
SELECT count(*), bool_and(o.id = t.id AND o.note = t.note) FROM b JOIN t ON t.k = b.k JOIN t o ON o.ctid = t.ctid WHERE t.id < 200;
ROLLBACK;

-- triggers see what they should; a changed row is not changed again
CREATE FUNCTION twist() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	NEW.note := OLD.note || ' by ' || TG_OP;
	INSERT INTO t (id, k, v) SELECT 10000 + NEW.id, NEW.k, 0 WHERE NEW.id % 100 = 0;
	RETURN NEW;
END $$;
CREATE TRIGGER twist BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION twist();
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_nestloop;
SET gpuds.enable_join = off;
SELECT changed('UPDATE t SET v = b.v FROM b WHERE t.k = b.k');
DROP TRIGGER twist ON t;

-- a view that is a barrier is left to core
CREATE VIEW guarded WITH (security_barrier) AS SELECT * FROM t WHERE v < 50;
SELECT changed('UPDATE guarded SET v = 1 FROM b WHERE guarded.k = b.k');
SELECT gpuds_index_check('t_k', true), gpuds_index_check('b_k', true);
