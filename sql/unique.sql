-- Unique indexes: since PostgreSQL 18.
\set test test_unique
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude
SELECT current_setting('server_version_num')::int >= 180000 AS since_18 \gset
SELECT count(*) FROM pg_am WHERE amname LIKE 'gpu\_%' AND pg_indexam_has_property(oid, 'can_unique');

CREATE TABLE t (id int, k bigint, s text);
CREATE UNIQUE INDEX t_k ON t USING gpu_btree (k);
CREATE UNIQUE INDEX t_s ON t USING gpu_hash (s);
\if :since_18
\else
\quit
\endif
CREATE UNIQUE INDEX t_id ON t USING gpu_skiplist (id) WHERE id > 0;

INSERT INTO t SELECT i, i, 'text ' || i FROM generate_series(1, 1000) i;
INSERT INTO t VALUES (0, 500, 'new');
INSERT INTO t VALUES (0, 5000, 'text 7');
INSERT INTO t VALUES (7, 5000, 'new');
INSERT INTO t VALUES (0, 2000, 'a'), (0, 2000, 'b');
INSERT INTO t VALUES (0, NULL, NULL), (0, NULL, NULL);
UPDATE t SET k = 7 WHERE k = 8;
UPDATE t SET k = 8 WHERE k = 8;
UPDATE t SET id = -1 WHERE k = 8;
UPDATE t SET s = 'text 9' WHERE k = 8;
SELECT same('SELECT * FROM t WHERE k > 500', 't_k');

-- freed by a delete, by a rolled back savepoint, in the same transaction, by VACUUM
BEGIN;
DELETE FROM t WHERE k = 500;
INSERT INTO t VALUES (0, 500, 'five');
SAVEPOINT a;
INSERT INTO t VALUES (0, 500, 'six');
ROLLBACK TO a;
DELETE FROM t WHERE k = 500;
SAVEPOINT b;
INSERT INTO t VALUES (1001, 500, 'five');
ROLLBACK TO b;
INSERT INTO t VALUES (1002, 500, 'five');
COMMIT;
SELECT * FROM t WHERE k = 500;
DELETE FROM t WHERE k BETWEEN 100 AND 199;
VACUUM t;
INSERT INTO t SELECT i, i, 'text ' || i FROM generate_series(150, 199) i;
INSERT INTO t VALUES (0, 150, 'new');

-- ON CONFLICT
INSERT INTO t VALUES (2001, 1, 'x1'), (2002, 3001, 'x2'), (2003, 3001, 'x3') ON CONFLICT (k) DO NOTHING RETURNING *;
INSERT INTO t VALUES (2004, 1, 'x1'), (2005, 3002, 'text 2') ON CONFLICT DO NOTHING RETURNING *;
INSERT INTO t VALUES (2006, 1, 'text 2') ON CONFLICT (k) DO UPDATE SET s = 'changed ' || excluded.id RETURNING *;
INSERT INTO t VALUES (2007, 9000, 'text 2') ON CONFLICT (k) DO NOTHING;
INSERT INTO t VALUES (2008, 1, 'y'), (2009, 1, 'z') ON CONFLICT (k) DO UPDATE SET s = excluded.s;
INSERT INTO t VALUES (3, 9000, 'y') ON CONFLICT (id) WHERE id > 0 DO UPDATE SET s = 'by id' RETURNING *;
INSERT INTO t VALUES (2010, 9000, 'text 4') ON CONFLICT (s) DO UPDATE SET s = 'by text' RETURNING *;
MERGE INTO t USING (VALUES (5, 'merged'), (9001, 'inserted')) v (k, s) ON t.k = v.k
	WHEN MATCHED THEN UPDATE SET s = v.s WHEN NOT MATCHED THEN INSERT VALUES (0, v.k, v.s);
SELECT count(*), count(DISTINCT k), count(DISTINCT s) FROM t;

-- NULLs that are not distinct
CREATE TABLE n (a int, b numeric(10, 2));
CREATE UNIQUE INDEX n_ab ON n USING gpu_btree (a DESC, b NULLS FIRST) NULLS NOT DISTINCT;
INSERT INTO n VALUES (1, NULL), (NULL, 1), (NULL, NULL), (1, 1.10);
INSERT INTO n VALUES (1, NULL);
INSERT INTO n VALUES (NULL, 1.00);
INSERT INTO n VALUES (NULL, NULL);
INSERT INTO n VALUES (1, 1.1);
INSERT INTO n VALUES (1, NULL), (2, 2) ON CONFLICT (a, b) DO NOTHING RETURNING *;
DROP INDEX n_ab;
CREATE UNIQUE INDEX n_ab ON n USING gpu_btree (a, b);
INSERT INTO n VALUES (1, NULL), (NULL, NULL);
CREATE UNIQUE INDEX n_all ON n USING gpu_btree (a, b) NULLS NOT DISTINCT;

-- values that are equal but not alike; hashes of 16 bits, which collide
CREATE TABLE v (f float8, j jsonb, a text, b text, c text, d text, e text, g text, h text, i int);
CREATE UNIQUE INDEX v_f ON v USING gpu_btree (f);
CREATE UNIQUE INDEX v_j ON v USING gpu_hash (j);
CREATE UNIQUE INDEX v_all ON v USING gpu_hash (a, b, c, d, e, g, h, i);
INSERT INTO v (f) VALUES (0), ('NaN');
INSERT INTO v (f) VALUES (-0.0);
INSERT INTO v (f) VALUES ('nan');
INSERT INTO v (j) VALUES ('{"a": 1}'), ('{"a": 2}');
INSERT INTO v (j) VALUES ('{"a": 1.0}');
INSERT INTO v (a, b, c, d, e, g, h, i) SELECT 'x', 'x', 'x', 'x', 'x', 'x', 'x' || i, 1 FROM generate_series(1, 2000) i;
INSERT INTO v (a, b, c, d, e, g, h, i) VALUES ('x', 'x', 'x', 'x', 'x', 'x', 'x777', 1);
REINDEX INDEX v_all;

-- built where there are rows; included columns are no part of the key
CREATE TABLE late (k int, v int);
INSERT INTO late SELECT i % 50, i FROM generate_series(1, 51) i;
CREATE UNIQUE INDEX late_k ON late USING gpu_btree (k) INCLUDE (v);
CREATE UNIQUE INDEX late_k ON late USING gpu_btree ((k + 0)) INCLUDE (v);
CREATE UNIQUE INDEX CONCURRENTLY late_k ON late USING gpu_btree (k) INCLUDE (v);
SELECT indisvalid FROM pg_index WHERE indexrelid = 'late_k'::regclass;
DELETE FROM late WHERE v = 51;
REINDEX INDEX CONCURRENTLY late_k;
SELECT indisvalid FROM pg_index WHERE indexrelid = 'late_k'::regclass;
INSERT INTO late VALUES (1, 99);
UPDATE late SET v = v + 1;
REINDEX TABLE late;
INSERT INTO late VALUES (1, 99);
CREATE UNIQUE INDEX late_e ON late USING gpu_btree (abs(k)) WHERE v > 10;
INSERT INTO late VALUES (-20, 11);
INSERT INTO late VALUES (-20, 1);
UPDATE late SET v = 11 WHERE k = -20;
BEGIN;
TRUNCATE late;
INSERT INTO late VALUES (1, 1);
SAVEPOINT a;
INSERT INTO late VALUES (1, 1);
ROLLBACK TO a;
COMMIT;
COPY late FROM stdin;
2	2
1	1
\.
SELECT * FROM late;

-- partitions, foreign keys, replica identity, a materialized view
CREATE TABLE p (a int, b int) PARTITION BY LIST (a);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2, 3);
\set VERBOSITY sqlstate
CREATE UNIQUE INDEX p_b ON p USING gpu_btree (b);
\set VERBOSITY default
CREATE UNIQUE INDEX p_ab ON p USING gpu_btree (a, b);
INSERT INTO p SELECT 1 + i % 3, i / 3 FROM generate_series(0, 29) i;
INSERT INTO p VALUES (2, 4);
INSERT INTO p VALUES (2, 4), (2, 10) ON CONFLICT (a, b) DO UPDATE SET b = 100 RETURNING *;
UPDATE p SET a = 3 WHERE a = 2 AND b = 5;
CREATE TABLE ref (b bigint REFERENCES t (k) ON UPDATE CASCADE ON DELETE SET NULL);
INSERT INTO ref VALUES (10), (11);
INSERT INTO ref VALUES (-5);
UPDATE t SET k = 10010 WHERE k = 10;
DELETE FROM t WHERE k = 11;
SELECT * FROM ref ORDER BY b;
ALTER TABLE late ALTER k SET NOT NULL;
ALTER TABLE late REPLICA IDENTITY USING INDEX late_k;
CREATE MATERIALIZED VIEW m AS SELECT k, s FROM t WHERE k < 10;
CREATE UNIQUE INDEX m_k ON m USING gpu_btree (k);
UPDATE t SET s = 'refreshed' WHERE k = 3;
REFRESH MATERIALIZED VIEW CONCURRENTLY m;
SELECT * FROM m WHERE k IN (2, 3, 4) ORDER BY k;

-- what remains btree's
ALTER TABLE t ADD PRIMARY KEY USING INDEX t_k;

-- rows are checked when their statement ends, whatever its plan, and whether they fit into a buffer
CREATE TABLE u (k int, v int);
CREATE UNIQUE INDEX u_k ON u USING gpu_btree (k);
CREATE UNIQUE INDEX u_v ON u USING gpu_hash (v) NULLS NOT DISTINCT;
INSERT INTO u SELECT i, -i FROM generate_series(1, 70000) i;
UPDATE u SET k = k + 1, v = 1 - v;
UPDATE u SET k = 70002 - k;
SELECT same('SELECT * FROM u WHERE k BETWEEN 100 AND 200', 'u_k');
UPDATE u SET k = u.k + 1 FROM generate_series(60000, 70001) i WHERE u.k = i;
SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = off;
UPDATE u SET k = u.k - 1 FROM generate_series(60001, 70002) i WHERE u.k = i;
RESET enable_hashjoin; RESET enable_mergejoin; RESET enable_seqscan;
INSERT INTO u SELECT 80000 + i % 69999, i FROM generate_series(1, 70000) i;
INSERT INTO u SELECT 80000 + i, i % 69999 + 2 FROM generate_series(1, 70000) i;
UPDATE u SET v = v + 1 WHERE k <= 100;
UPDATE u SET k = k + 1 WHERE k BETWEEN 20 AND 30;
WITH d AS (DELETE FROM u WHERE k <= 20 RETURNING *) INSERT INTO u SELECT k + 1, v FROM d WHERE k < 20;
WITH i AS (INSERT INTO u VALUES (90000, 90000), (90001, 90001) RETURNING k) INSERT INTO u SELECT k + 1, k + 1 FROM i;
BEGIN;
WITH a AS (UPDATE u SET k = 139991 - k WHERE k > 69990 RETURNING k) INSERT INTO u SELECT k + 200000, k + 200000 FROM a;
ROLLBACK;
SELECT count(*), count(DISTINCT k), min(k), max(k), min(v), max(v) FROM u;
-- a search meanwhile: its error is the statement's, too, if somebody catches it
CREATE FUNCTION search() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM FROM u WHERE k = new.k;
	RETURN new;
EXCEPTION WHEN unique_violation THEN
	RETURN new;
END $$;
CREATE TRIGGER search BEFORE INSERT ON u FOR EACH ROW EXECUTE FUNCTION search();
SET enable_seqscan = off;
INSERT INTO u SELECT 90000 + i % 4, 90000 + i FROM generate_series(0, 4) i;
INSERT INTO u SELECT 90000 + i, 90000 + i FROM generate_series(0, 4) i RETURNING k;
-- what it removes comes back
CREATE OR REPLACE FUNCTION search() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF new.v % 3 = 0 THEN
		DELETE FROM u WHERE v = new.v - 2;
		PERFORM FROM u WHERE k = new.k;
		RAISE division_by_zero;
	END IF;
	RETURN new;
EXCEPTION WHEN division_by_zero THEN
	RETURN new;
END $$;
INSERT INTO u VALUES (90010, 90010), (90004, 90004 + 100000), (90005, 90006);
INSERT INTO u VALUES (90010, 90011), (90020, 90012), (90021, 90015), (90021, 90016), (90022, 90018);
INSERT INTO u VALUES (90010, 90011), (90020, 90012), (90021, 90015), (90022, 90018) RETURNING k;
RESET enable_seqscan;
DELETE FROM u WHERE k BETWEEN 90010 AND 90022;
BEGIN;
INSERT INTO u VALUES (95000, 95000), (95001, 95001);
SAVEPOINT a;
INSERT INTO u VALUES (95002, 95002), (95003, 95003), (95000, 95004);
ROLLBACK TO a;
INSERT INTO u VALUES (95002, 95002), (95003, 95003), (95004, 95004);
COMMIT;
SELECT count(*), sum(k) FROM u WHERE k >= 90000;

-- temporary, unlogged; with a prepared plan; functions that look into the table meanwhile
CREATE TEMP TABLE tmp (k int);
CREATE UNIQUE INDEX tmp_k ON tmp USING gpu_btree (k);
INSERT INTO tmp SELECT generate_series(1, 100);
INSERT INTO tmp VALUES (50);
INSERT INTO tmp SELECT generate_series(91, 110) ON CONFLICT DO NOTHING;
SELECT count(*) FROM tmp;
CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	new.s := (SELECT 'seen ' || new.k || ' ' || count(*) FROM t WHERE k BETWEEN new.k - 1 AND new.k);
	RETURN new;
END $$;
CREATE TRIGGER look BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION look();
INSERT INTO t SELECT 0, i FROM generate_series(60000, 60003) i RETURNING s;
INSERT INTO t SELECT 0, i FROM generate_series(60003, 60005) i ON CONFLICT (k) DO NOTHING RETURNING s;

SELECT gpuds_index_check(indexrelid::regclass, true)
FROM pg_index JOIN pg_class ON oid = indexrelid
WHERE relnamespace = 'test_unique'::regnamespace AND relkind = 'i' AND indisvalid;
