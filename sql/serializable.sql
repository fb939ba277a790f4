-- SERIALIZABLE: predicate locks are on cells of the keys, or on the whole index.
\set test test_serializable
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

CREATE TABLE t (id int, k bigint);
INSERT INTO t SELECT i, i FROM generate_series(1, 1000) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
ANALYZE t;
SET default_transaction_isolation = serializable;
SET enable_seqscan = off;

CREATE VIEW locks AS SELECT locktype, count(*) FROM pg_locks
WHERE mode = 'SIReadLock' AND pid = pg_backend_pid() AND relation = 't_k'::regclass GROUP BY 1;
BEGIN;
SELECT * FROM t WHERE k = 42;
SELECT * FROM locks;
SELECT count(*) FROM t WHERE k IN (2000, 3000);
SELECT count(*) FROM t WHERE k BETWEEN 2100 AND 2105;
SELECT * FROM locks;
SELECT count(*) FROM t WHERE k > 2000;
SELECT * FROM locks;
SELECT count(*) FROM t WHERE k BETWEEN 10 AND 20;
INSERT INTO t VALUES (0, 15);
SELECT count(*) FROM t WHERE k BETWEEN 10 AND 20;
COMMIT;

BEGIN READ ONLY DEFERRABLE;
SELECT count(*) FROM t WHERE k BETWEEN 10 AND 20;
COMMIT;

BEGIN;
UPDATE t SET k = k + 10000 WHERE k > 990;
SAVEPOINT a;
DELETE FROM t WHERE k > 10000;
ROLLBACK TO a;
SELECT same('SELECT * FROM t WHERE k > 900', 't_k');
COMMIT;
SELECT same('SELECT * FROM t WHERE k > 900', 't_k');
RESET default_transaction_isolation;
