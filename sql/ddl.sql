-- Commands that replace, copy, move, rename or drop the index or its table.
\set test test_ddl
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

CREATE TABLE t (id int, k int);
INSERT INTO t SELECT i, (i * 7919) % 5003 FROM generate_series(1, 10000) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
SELECT pg_get_indexdef('t_k'::regclass);

-- TRUNCATE: alone, rolled back, with rows before and after it
BEGIN;
INSERT INTO t VALUES (0, -1);
TRUNCATE t;
INSERT INTO t VALUES (0, -2);
SELECT same('SELECT * FROM t WHERE k < 100', 't_k');
ROLLBACK;
SELECT same('SELECT * FROM t WHERE k < 100', 't_k');
BEGIN;
INSERT INTO t VALUES (0, -1);
SAVEPOINT a;
INSERT INTO t VALUES (0, -2);
TRUNCATE t;
INSERT INTO t VALUES (0, -3);
SELECT same('SELECT * FROM t WHERE k < 100', 't_k');
ROLLBACK TO a;
INSERT INTO t VALUES (0, -4);
SELECT same('SELECT * FROM t WHERE k < 100', 't_k');
SELECT k FROM t WHERE k < 0 ORDER BY k;
COMMIT;
SELECT same('SELECT * FROM t WHERE k < 100', 't_k');
SELECT k FROM t WHERE k < 0 ORDER BY k;
DELETE FROM t WHERE k < 0;
CREATE TABLE copy AS SELECT * FROM t;
BEGIN;
TRUNCATE t;
INSERT INTO t VALUES (1, 1);
TRUNCATE t;
TRUNCATE t;
INSERT INTO t SELECT i, i FROM generate_series(1, 10) i;
SELECT same('SELECT * FROM t WHERE k < 100', 't_k');
COMMIT;
SELECT same('SELECT * FROM t WHERE k < 100', 't_k');
TRUNCATE t;
SELECT same('SELECT * FROM t WHERE k < 100', 't_k');
INSERT INTO t TABLE copy;
SELECT same('SELECT * FROM t WHERE k < 100', 't_k');

-- a table made, indexed, filled and emptied in one transaction: its file is
-- truncated in place
BEGIN;
CREATE TABLE fresh (id int, k int);
INSERT INTO fresh SELECT i, i FROM generate_series(1, 2000) i;
CREATE INDEX fresh_k ON fresh USING gpu_btree (k);
INSERT INTO fresh SELECT i, i FROM generate_series(2001, 3000) i;
SELECT same('SELECT * FROM fresh WHERE k > 1000', 'fresh_k');
TRUNCATE fresh;
SELECT same('SELECT * FROM fresh WHERE k > 1000', 'fresh_k');
INSERT INTO fresh SELECT i, i + 1500 FROM generate_series(1, 1000) i;
SELECT same('SELECT * FROM fresh WHERE k > 1000', 'fresh_k');
INSERT INTO fresh VALUES (0, 5000);
TRUNCATE fresh;
INSERT INTO fresh VALUES (0, 6000);
SELECT same('SELECT * FROM fresh WHERE k > 1000', 'fresh_k');
SAVEPOINT a;
INSERT INTO fresh VALUES (0, 7000);
TRUNCATE fresh;
INSERT INTO fresh VALUES (0, 8000);
SELECT k FROM fresh WHERE k > 1000;
ROLLBACK TO a;
SELECT k FROM fresh WHERE k > 1000;
COMMIT;
SELECT same('SELECT * FROM fresh WHERE k > 1000', 'fresh_k');
INSERT INTO fresh SELECT i, i FROM generate_series(1, 3000) i;
SELECT same('SELECT * FROM fresh WHERE k > 1000', 'fresh_k');

-- and one that never comes to be
BEGIN;
CREATE TABLE never (k int);
CREATE INDEX never_k ON never USING gpu_btree (k);
INSERT INTO never SELECT generate_series(1, 1000);
SELECT same('SELECT * FROM never WHERE k > 500', 'never_k');
INSERT INTO never SELECT generate_series(1, 1000);
ROLLBACK;

-- REINDEX, also after inserts of the same transaction, and rolled back
REINDEX INDEX t_k;
SELECT same('SELECT * FROM t WHERE k < 100', 't_k');
BEGIN;
INSERT INTO t VALUES (0, 50);
REINDEX INDEX t_k;
INSERT INTO t VALUES (0, 51);
SELECT same('SELECT * FROM t WHERE k < 100', 't_k');
SAVEPOINT a;
REINDEX TABLE t;
INSERT INTO t VALUES (0, 52);
ROLLBACK TO a;
INSERT INTO t VALUES (0, 53);
SELECT same('SELECT * FROM t WHERE k < 100', 't_k');
COMMIT;
SELECT same('SELECT * FROM t WHERE k < 100', 't_k');
BEGIN;
INSERT INTO t VALUES (0, 54);
REINDEX INDEX t_k;
INSERT INTO t VALUES (0, 55);
ROLLBACK;
SELECT same('SELECT * FROM t WHERE k < 100', 't_k');
REINDEX INDEX CONCURRENTLY t_k;
SELECT same('SELECT * FROM t WHERE k < 100', 't_k');
REINDEX TABLE CONCURRENTLY t;
INSERT INTO t VALUES (0, 56);
SELECT same('SELECT * FROM t WHERE k < 100', 't_k');

-- CREATE INDEX CONCURRENTLY, with dead rows about
DELETE FROM t WHERE k % 10 = 3;
UPDATE t SET k = k + 1 WHERE k % 10 = 4;
CREATE INDEX CONCURRENTLY t_k2 ON t USING gpu_btree (k DESC);
DROP INDEX t_k;
SELECT same('SELECT * FROM t WHERE k < 100', 't_k2');
SELECT indisvalid, indisready FROM pg_index WHERE indexrelid = 't_k2'::regclass;
DROP INDEX CONCURRENTLY t_k2;
CREATE INDEX t_k ON t USING gpu_btree (k);
CREATE INDEX IF NOT EXISTS t_k ON t USING gpu_btree (k);

-- an index made after changes of the same transaction
BEGIN;
DELETE FROM t WHERE k = 30;
SAVEPOINT a;
DELETE FROM t WHERE k < 20;
INSERT INTO t VALUES (0, 15);
CREATE INDEX t_k3 ON t USING gpu_btree (k, id);
DROP INDEX t_k;
SELECT same('SELECT * FROM t WHERE k < 100', 't_k3');
INSERT INTO t VALUES (0, 16);
SELECT same('SELECT * FROM t WHERE k < 100', 't_k3');
ROLLBACK TO a;
SELECT same('SELECT * FROM t WHERE k < 100', 't_k');
COMMIT;
SELECT same('SELECT * FROM t WHERE k < 100', 't_k');

-- and one whose rows have HOT chains that it must not trust (whether it may be
-- used soon depends on other sessions, so look at it only)
CREATE TABLE hot (id int, k int) WITH (fillfactor = 30);
INSERT INTO hot SELECT i, i FROM generate_series(1, 500) i;
BEGIN;
UPDATE hot SET k = k + 1000 WHERE k % 3 = 0;
CREATE INDEX hot_k ON hot USING gpu_btree (k);
COMMIT;
UPDATE hot SET id = -id WHERE k % 2 = 0;
SELECT indcheckxmin FROM pg_index WHERE indexrelid = 'hot_k'::regclass;

-- CLUSTER puts the rows in order and keeps every one
SELECT digest_of('SELECT * FROM t', false) AS before \gset
CLUSTER t USING t_k;
SELECT digest_of('SELECT * FROM t', false) = :'before' AS same_rows;
SELECT count(*) FROM (SELECT k, lag(k) OVER (ORDER BY ctid) AS before FROM t) s WHERE k < before;
SELECT same('SELECT * FROM t WHERE k < 100', 't_k');
SELECT indisclustered FROM pg_index WHERE indexrelid = 't_k'::regclass;
BEGIN;
INSERT INTO t VALUES (0, 17);
DELETE FROM t WHERE k = 18;
UPDATE t SET k = 5 WHERE k = 25;
SELECT digest_of('SELECT * FROM t', false) AS before \gset
SET LOCAL enable_sort = off;
CLUSTER t;
SELECT digest_of('SELECT * FROM t', false) = :'before' AS same_rows;
INSERT INTO t VALUES (0, 18);
SELECT same('SELECT * FROM t WHERE k < 100', 't_k');
ROLLBACK;
SELECT same('SELECT * FROM t WHERE k < 100', 't_k');
-- once by scan of the index and once by sort
SET enable_sort = off;
UPDATE t SET k = 5003 - k WHERE id % 3 = 0;
CLUSTER t;
SELECT count(*) FROM (SELECT k, lag(k) OVER (ORDER BY ctid) AS before FROM t) s WHERE k < before;
RESET enable_sort;
SET enable_indexscan = off;
UPDATE t SET k = 5003 - k WHERE id % 3 = 0;
CLUSTER t;
SELECT count(*) FROM (SELECT k, lag(k) OVER (ORDER BY ctid) AS before FROM t) s WHERE k < before;
RESET enable_indexscan;
SELECT same('SELECT * FROM t WHERE k < 100', 't_k');
ALTER TABLE t SET WITHOUT CLUSTER;

-- VACUUM FULL
DELETE FROM t WHERE k BETWEEN 1000 AND 4000;
VACUUM FULL t;
SELECT same('SELECT * FROM t WHERE k < 5000', 't_k');
INSERT INTO t SELECT i, i FROM generate_series(1000, 1999) i;
SELECT same('SELECT * FROM t WHERE k < 5000', 't_k');

-- rewrites, and type changes with and without one
ALTER TABLE t ADD COLUMN added int DEFAULT 7;
SELECT same('SELECT * FROM t WHERE k < 100', 't_k');
ALTER TABLE t ADD COLUMN volatile float DEFAULT random();
SELECT same('SELECT * FROM t WHERE k < 100', 't_k');
ALTER TABLE t ALTER k TYPE bigint;
SELECT same('SELECT * FROM t WHERE k < 100', 't_k');
SELECT opcname FROM pg_opclass o JOIN pg_index x ON o.oid = x.indclass[0] WHERE indexrelid = 't_k'::regclass;
BEGIN;
INSERT INTO t VALUES (0, 60);
ALTER TABLE t ALTER k TYPE int USING -k;
INSERT INTO t VALUES (0, -61);
SELECT same('SELECT * FROM t WHERE k > -100', 't_k');
ROLLBACK;
SELECT same('SELECT * FROM t WHERE k < 100', 't_k');
ALTER TABLE t ALTER k TYPE float8;
SELECT same('SELECT * FROM t WHERE k < 100', 't_k');
ALTER TABLE t ALTER k TYPE jsonb USING to_jsonb(k);
ALTER TABLE t ALTER k TYPE int;
ALTER TABLE t DROP COLUMN id;
SELECT same('SELECT * FROM t WHERE k < 100', 't_k');
ALTER TABLE t SET UNLOGGED;
INSERT INTO t VALUES (62);
SELECT same('SELECT * FROM t WHERE k < 100', 't_k');
ALTER TABLE t SET LOGGED;
INSERT INTO t VALUES (63);
SELECT same('SELECT * FROM t WHERE k < 100', 't_k');

-- another tablespace, with rows of the same transaction before and after
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE regress_gpuds LOCATION '';
RESET allow_in_place_tablespaces;
BEGIN;
INSERT INTO t VALUES (64);
ALTER INDEX t_k SET TABLESPACE regress_gpuds;
INSERT INTO t VALUES (65);
SELECT same('SELECT * FROM t WHERE k < 100', 't_k');
ROLLBACK;
SELECT same('SELECT * FROM t WHERE k < 100', 't_k');
BEGIN;
INSERT INTO t VALUES (66);
SAVEPOINT a;
INSERT INTO t VALUES (67);
ALTER INDEX t_k SET TABLESPACE regress_gpuds;
INSERT INTO t VALUES (68);
ROLLBACK TO a;
INSERT INTO t VALUES (69);
ALTER INDEX t_k SET TABLESPACE regress_gpuds;
INSERT INTO t VALUES (70);
COMMIT;
SELECT same('SELECT * FROM t WHERE k < 100', 't_k');
ALTER INDEX t_k SET TABLESPACE pg_default;
INSERT INTO t VALUES (71);
SELECT same('SELECT * FROM t WHERE k < 100', 't_k');
REINDEX (TABLESPACE regress_gpuds) INDEX t_k;
SELECT same('SELECT * FROM t WHERE k < 100', 't_k');
REINDEX (TABLESPACE pg_default) INDEX t_k;
DROP TABLESPACE regress_gpuds;

-- DROP, with rows of the same transaction, kept and rolled back
BEGIN;
INSERT INTO t VALUES (72);
DROP INDEX t_k;
INSERT INTO t VALUES (73);
SELECT count(*) FROM t WHERE k IN (72, 73);
ROLLBACK;
SELECT same('SELECT * FROM t WHERE k < 100', 't_k');
BEGIN;
INSERT INTO t VALUES (74);
SAVEPOINT a;
INSERT INTO t VALUES (75);
DROP INDEX t_k;
INSERT INTO t VALUES (76);
ROLLBACK TO a;
INSERT INTO t VALUES (77);
COMMIT;
SELECT same('SELECT * FROM t WHERE k < 100', 't_k');
SELECT k FROM t WHERE k BETWEEN 74 AND 77 AND added IS NOT NULL AND volatile IS NOT NULL GROUP BY k ORDER BY k;
BEGIN;
INSERT INTO fresh VALUES (0, 9000);
DROP TABLE fresh;
COMMIT;

-- names
ALTER INDEX t_k RENAME TO t_renamed;
ALTER TABLE t RENAME COLUMN k TO key;
ALTER TABLE t RENAME TO renamed;
INSERT INTO renamed VALUES (78);
SELECT pg_get_indexdef('t_renamed'::regclass);
SELECT same('SELECT * FROM renamed WHERE key < 100', 't_renamed');
CREATE SCHEMA test_ddl_other;
ALTER TABLE renamed SET SCHEMA test_ddl_other;
SELECT same('SELECT * FROM test_ddl_other.renamed WHERE key < 100', 't_renamed');

-- options
CREATE TABLE f (k int);
INSERT INTO f SELECT generate_series(1, 5000);
CREATE INDEX f_k ON f USING gpu_btree (k) WITH (fillfactor = 50);
SELECT same('SELECT * FROM f WHERE k > 4000', 'f_k');
SELECT reloptions FROM pg_class WHERE oid = 'f_k'::regclass;
ALTER INDEX f_k SET (fillfactor = 100);
REINDEX INDEX f_k;
INSERT INTO f SELECT generate_series(1, 5000);
SELECT same('SELECT * FROM f WHERE k > 4000', 'f_k');
ALTER INDEX f_k RESET (fillfactor);
SELECT reloptions FROM pg_class WHERE oid = 'f_k'::regclass;
CREATE INDEX f_min ON f USING gpu_btree (k) WITH (fillfactor = 50);
CREATE INDEX f_bad ON f USING gpu_btree (k) WITH (fillfactor = 49);
CREATE INDEX f_bad ON f USING gpu_btree (k) WITH (fillfactor = 101);
CREATE INDEX f_bad ON f USING gpu_btree (k) WITH (fillfactor = full);
CREATE INDEX f_bad ON f USING gpu_btree (k) WITH (colour = 1);
ALTER INDEX f_k SET (fillfactor = 0);

-- partial and expression indexes
CREATE TABLE p (id int, a int, b int);
INSERT INTO p SELECT i, nullif(i % 500, 7), i % 4 FROM generate_series(1, 8000) i;
CREATE INDEX p_a_0 ON p USING gpu_btree (a) WHERE b = 0;
CREATE INDEX p_sum ON p USING gpu_btree ((a + b), (a IS NULL));
CREATE INDEX p_date ON p USING gpu_btree ((date '2000-01-01' + a));
ANALYZE p;
SELECT same('SELECT * FROM p WHERE a BETWEEN 100 AND 200 AND b = 0', 'p_a_0');
SELECT same('SELECT * FROM p WHERE a + b BETWEEN 100 AND 110', 'p_sum');
SELECT same('SELECT a + b FROM p ORDER BY a + b', 'p_sum', true);
SELECT same('SELECT * FROM p WHERE date ''2000-01-01'' + a = ''2000-03-01''', 'p_date');
UPDATE p SET b = 0 WHERE a % 10 = 1;
UPDATE p SET b = 1 WHERE a % 10 = 4;
UPDATE p SET a = NULL WHERE a % 10 = 8;
DELETE FROM p WHERE a % 10 = 5;
SELECT same('SELECT * FROM p WHERE a BETWEEN 100 AND 200 AND b = 0', 'p_a_0');
SELECT same('SELECT * FROM p WHERE a + b BETWEEN 100 AND 110', 'p_sum');
SELECT same('SELECT * FROM p WHERE a + b IS NULL AND (a IS NULL) = true', 'p_sum');
SELECT same('SELECT * FROM p WHERE date ''2000-01-01'' + a = ''2000-03-01''', 'p_date');
-- an expression that fails leaves neither index nor row
CREATE INDEX p_bad ON p USING gpu_btree ((100 / (a - 100)));
CREATE INDEX p_div ON p USING gpu_btree ((100 / (a - 1000)));
INSERT INTO p VALUES (1, 50, 0), (2, 1000, 0);
SELECT same('SELECT * FROM p WHERE 100 / (a - 1000) = 0', 'p_div');
SELECT same('SELECT * FROM p WHERE a = 50 AND b = 0', 'p_a_0');

-- unlogged and temporary tables
CREATE UNLOGGED TABLE un (id int, k int);
CREATE INDEX un_k ON un USING gpu_btree (k);
INSERT INTO un SELECT i, i FROM generate_series(1, 1000) i;
SELECT same('SELECT * FROM un WHERE k > 500', 'un_k');
CREATE TEMP TABLE tmp (id int, k int);
CREATE INDEX tmp_k ON tmp USING gpu_btree (k);
INSERT INTO tmp SELECT i, i FROM generate_series(1, 1000) i;
SELECT same('SELECT * FROM tmp WHERE k > 500', 'tmp_k');
TRUNCATE tmp;
INSERT INTO tmp VALUES (1, 600);
SELECT same('SELECT * FROM tmp WHERE k > 500', 'tmp_k');
CREATE TEMP TABLE tmp_rows (k int) ON COMMIT DELETE ROWS;
CREATE INDEX tmp_rows_k ON tmp_rows USING gpu_btree (k);
BEGIN;
INSERT INTO tmp_rows SELECT generate_series(1, 1000);
SELECT same('SELECT * FROM tmp_rows WHERE k > 500', 'tmp_rows_k');
INSERT INTO tmp_rows SELECT generate_series(1001, 1100);
COMMIT;
SELECT same('SELECT * FROM tmp_rows WHERE k > 0', 'tmp_rows_k');
BEGIN;
INSERT INTO tmp_rows SELECT generate_series(2001, 2010);
SELECT same('SELECT * FROM tmp_rows WHERE k > 0', 'tmp_rows_k');
COMMIT;
BEGIN;
CREATE TEMP TABLE tmp_drop (k int) ON COMMIT DROP;
CREATE INDEX tmp_drop_k ON tmp_drop USING gpu_btree (k);
INSERT INTO tmp_drop SELECT generate_series(1, 1000);
SELECT same('SELECT * FROM tmp_drop WHERE k > 500', 'tmp_drop_k');
INSERT INTO tmp_drop SELECT generate_series(1, 1000);
COMMIT;
BEGIN;
INSERT INTO tmp VALUES (2, 700);
DISCARD TEMP;
COMMIT;
INSERT INTO tmp VALUES (2, 700);
DISCARD TEMP;

-- partitions
CREATE TABLE parted (id int, k int, g int) PARTITION BY LIST (g);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
CREATE INDEX parted_k ON parted USING gpu_btree (k);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES IN (2);
CREATE TABLE parted_3 (id int, k int, g int);
CREATE INDEX parted_3_own ON parted_3 USING gpu_btree (k);
CREATE TABLE parted_4 (g int, k int, id int);
INSERT INTO parted_3 SELECT i, i, 3 FROM generate_series(1, 500) i;
INSERT INTO parted_4 SELECT 4, i, i FROM generate_series(1, 500) i;
ALTER TABLE parted ATTACH PARTITION parted_3 FOR VALUES IN (3);
ALTER TABLE parted ATTACH PARTITION parted_4 FOR VALUES IN (4);
INSERT INTO parted SELECT i, i, i % 4 + 1 FROM generate_series(501, 2500) i;
SELECT inhrelid::regclass, amname FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid JOIN pg_am a ON a.oid = relam
WHERE inhparent = 'parted_k'::regclass ORDER BY inhrelid::regclass::text;
SELECT same('SELECT * FROM parted WHERE k BETWEEN 400 AND 700', 'parted_1_k_idx');
SELECT same('SELECT k FROM parted ORDER BY k', 'parted_2_k_idx', true);
SELECT same('SELECT * FROM parted WHERE k BETWEEN 400 AND 700 AND g = 3', 'parted_3_own');
CREATE INDEX parted_desc ON ONLY parted USING gpu_btree (k DESC);
CREATE INDEX parted_1_desc ON parted_1 USING gpu_btree (k DESC);
ALTER INDEX parted_desc ATTACH PARTITION parted_1_desc;
ALTER INDEX parted_desc ATTACH PARTITION parted_2_k_idx;
SELECT indisvalid FROM pg_index WHERE indexrelid = 'parted_desc'::regclass;
DROP INDEX parted_desc;
UPDATE parted SET g = g % 4 + 1 WHERE k % 5 = 0;
SELECT same('SELECT * FROM parted WHERE k BETWEEN 400 AND 700', 'parted_4_k_idx');
ALTER TABLE parted DETACH PARTITION parted_2;
SELECT same('SELECT * FROM parted_2 WHERE k BETWEEN 400 AND 700', 'parted_2_k_idx');
ALTER TABLE parted DETACH PARTITION parted_1 CONCURRENTLY;
SELECT same('SELECT * FROM parted WHERE k BETWEEN 400 AND 700', 'parted_3_own');
TRUNCATE parted;
SELECT same('SELECT * FROM parted WHERE k BETWEEN 400 AND 700', 'parted_4_k_idx');
REINDEX INDEX parted_k;
DROP INDEX parted_k;
SELECT count(*) FROM pg_class WHERE relname LIKE 'parted\_%' AND relkind = 'i';

-- inheritance, LIKE, and materialized views
CREATE TABLE mother (id int, k int);
CREATE TABLE daughter (extra text) INHERITS (mother);
CREATE INDEX mother_k ON mother USING gpu_btree (k);
CREATE INDEX daughter_k ON daughter USING gpu_btree (k);
INSERT INTO mother SELECT i, i FROM generate_series(1, 1000) i;
INSERT INTO daughter SELECT i, i, 'x' FROM generate_series(1, 1000) i;
ANALYZE mother, daughter;
SELECT same('SELECT * FROM mother WHERE k BETWEEN 400 AND 700', 'daughter_k');
SELECT same('SELECT k FROM mother ORDER BY k DESC', 'daughter_k', true);
CREATE TABLE twin (LIKE mother INCLUDING ALL);
INSERT INTO twin TABLE mother;
SELECT same('SELECT * FROM twin WHERE k BETWEEN 400 AND 700', 'twin_k_idx');
CREATE MATERIALIZED VIEW view AS SELECT id, k / 2 AS k FROM mother;
CREATE INDEX view_k ON view USING gpu_btree (k);
SELECT same('SELECT * FROM view WHERE k BETWEEN 400 AND 700', 'view_k');
DELETE FROM mother WHERE k > 900;
REFRESH MATERIALIZED VIEW view;
SELECT same('SELECT * FROM view WHERE k BETWEEN 400 AND 700', 'view_k');

-- the extension stays while somebody needs it
\set VERBOSITY terse
DROP EXTENSION gpuds;
DROP ACCESS METHOD gpu_btree;
\set VERBOSITY default
