-- A transaction's own changes, savepoints, and code that runs in mid-statement.
\set test test_transactions
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

CREATE TABLE t (id int, k bigint);
INSERT INTO t SELECT i, i FROM generate_series(1, 1000) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
ANALYZE t;

-- what was inserted is seen at once
BEGIN;
INSERT INTO t VALUES (1, 5000);
SELECT same('SELECT * FROM t WHERE k = 5000', 't_k');
INSERT INTO t SELECT i, i + 5000 FROM generate_series(1, 1000) i;
SELECT same('SELECT * FROM t WHERE k > 4000', 't_k');
UPDATE t SET k = k + 10000 WHERE k > 5990;
SELECT same('SELECT * FROM t WHERE k > 4000', 't_k');
DELETE FROM t WHERE k > 15000;
SELECT same('SELECT * FROM t WHERE k > 4000', 't_k');
COMMIT;
SELECT same('SELECT * FROM t WHERE k > 4000', 't_k');

-- and gone after a rollback
BEGIN;
INSERT INTO t SELECT i, i + 20000 FROM generate_series(1, 500) i;
SELECT same('SELECT * FROM t WHERE k > 20000', 't_k');
ROLLBACK;
SELECT same('SELECT * FROM t WHERE k > 20000', 't_k');
BEGIN;
INSERT INTO t VALUES (1, 20001);
SELECT 1 / 0;
INSERT INTO t VALUES (2, 20002);
COMMIT;
SELECT same('SELECT * FROM t WHERE k > 20000', 't_k');

-- savepoints: released, rolled back, nested, and used again
BEGIN;
INSERT INTO t VALUES (1, 30001);
SAVEPOINT a;
INSERT INTO t VALUES (2, 30002);
SAVEPOINT b;
INSERT INTO t VALUES (3, 30003);
RELEASE b;
SAVEPOINT c;
INSERT INTO t VALUES (4, 30004);
ROLLBACK TO c;
INSERT INTO t VALUES (5, 30005);
SELECT same('SELECT * FROM t WHERE k > 30000', 't_k');
SELECT k FROM t WHERE k > 30000 ORDER BY k;
ROLLBACK TO a;
SELECT k FROM t WHERE k > 30000 ORDER BY k;
INSERT INTO t VALUES (6, 30006);
SAVEPOINT a;
INSERT INTO t VALUES (7, 30007);
ROLLBACK TO a;
ROLLBACK TO a;
INSERT INTO t VALUES (8, 30008);
COMMIT;
SELECT same('SELECT * FROM t WHERE k > 30000', 't_k');
SELECT k FROM t WHERE k > 30000 ORDER BY k;

-- the TIDs of a rolled-back subtransaction are used again in the same one
CREATE TABLE s (k int);
CREATE INDEX s_k ON s USING gpu_btree (k);
BEGIN;
SAVEPOINT a;
INSERT INTO s SELECT generate_series(1, 500);
SELECT same('SELECT * FROM s WHERE k > 0', 's_k');
ROLLBACK TO a;
INSERT INTO s SELECT generate_series(1001, 1200);
COMMIT;
VACUUM s;
INSERT INTO s SELECT generate_series(2001, 2400);
SELECT same('SELECT * FROM s WHERE k > 0', 's_k');
SELECT same('SELECT * FROM s WHERE k <= 500', 's_k');

\set ECHO none
-- subtransactions of exception blocks, deep and many
CREATE FUNCTION keep_even(n int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	kept int := 0;
BEGIN
	FOR i IN 1..n LOOP
		BEGIN
			INSERT INTO t VALUES (i, 40000 + i);
			IF i % 2 = 1 THEN
				RAISE 'odd';
			END IF;
			kept := kept + 1;
		EXCEPTION WHEN raise_exception THEN
			-- what the outer levels inserted is there, and only that
			IF i % 50 = 1 THEN
				ASSERT kept = (SELECT count(*) FROM t WHERE k > 40000), 'wrong count';
			END IF;
		END;
	END LOOP;
	RETURN kept;
END $$;
\set ECHO all
SET enable_seqscan = off;
SELECT keep_even(400);
RESET enable_seqscan;
SELECT same('SELECT * FROM t WHERE k > 40000', 't_k');
\set ECHO none
CREATE FUNCTION deep(level int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO t VALUES (level, 50000 + level);
	IF level < 40 THEN
		PERFORM deep(level + 1);
	END IF;
	IF level = 20 THEN
		RAISE 'back to %', level;
	END IF;
EXCEPTION WHEN raise_exception THEN
	INSERT INTO t VALUES (level, 50100 + level);
END $$;
\set ECHO all
SELECT deep(1);
SELECT k FROM t WHERE k > 50000 ORDER BY k;
SELECT same('SELECT * FROM t WHERE k > 50000', 't_k');

-- a volatile function sees the rows that its calling statement has inserted so
-- far, a stable one those of before the statement
CREATE FUNCTION seen(lo bigint) RETURNS bigint LANGUAGE sql VOLATILE AS
'SELECT count(*) FROM test_transactions.t WHERE k > lo';
CREATE FUNCTION seen_stable(lo bigint) RETURNS bigint LANGUAGE sql STABLE AS
'SELECT count(*) FROM test_transactions.t WHERE k > lo';
SET enable_seqscan = off;
BEGIN;
INSERT INTO t SELECT seen(60000)::int, 60000 + i FROM generate_series(1, 5) i;
INSERT INTO t SELECT seen_stable(60000)::int, 60010 + i FROM generate_series(1, 5) i;
SELECT id, k FROM t WHERE k > 60000 ORDER BY k;
COMMIT;
\set ECHO none
-- the same with a function that inserts, too
CREATE FUNCTION add_and_count(v bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	n bigint;
BEGIN
	INSERT INTO t VALUES (-1, 70000 + v);
	SELECT count(*) INTO n FROM t WHERE k > 70000;
	RETURN n;
END $$;
\set ECHO all
SELECT add_and_count(i) FROM generate_series(1, 5) i;
INSERT INTO t SELECT add_and_count(10 + i)::int, 70100 + i FROM generate_series(1, 3) i;
SELECT id, k FROM t WHERE k > 70000 ORDER BY k;
RESET enable_seqscan;
SELECT same('SELECT * FROM t WHERE k > 60000', 't_k');

-- triggers that query and insert
CREATE TABLE audit (k bigint, found bigint);
CREATE INDEX audit_k ON audit USING gpu_btree (k);
CREATE TABLE watched (k bigint);
CREATE INDEX watched_k ON watched USING gpu_btree (k);
CREATE FUNCTION watch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO audit VALUES (new.k, (SELECT count(*) FROM watched WHERE k = new.k));
	IF new.k = 13 THEN
		RAISE 'unlucky';
	END IF;
	RETURN new;
END $$;
CREATE TRIGGER watch_before BEFORE INSERT ON watched FOR EACH ROW EXECUTE FUNCTION watch();
CREATE TRIGGER watch_after AFTER INSERT OR UPDATE ON watched FOR EACH ROW EXECUTE FUNCTION watch();
SET enable_seqscan = off;
INSERT INTO watched VALUES (1), (2), (1);
SELECT * FROM audit WHERE k IN (1, 2) ORDER BY k, found;
INSERT INTO watched VALUES (3), (13);
SELECT * FROM audit WHERE k IN (3, 13);
UPDATE watched SET k = k + 100;
SELECT * FROM audit WHERE k > 100 ORDER BY k, found;
RESET enable_seqscan;
SELECT same('SELECT * FROM watched WHERE k > 0', 'watched_k');
SELECT same('SELECT * FROM audit WHERE k > 0', 'audit_k');
-- deferred ones run at commit and still see everything
CREATE CONSTRAINT TRIGGER watch_late AFTER INSERT ON watched DEFERRABLE INITIALLY DEFERRED
	FOR EACH ROW EXECUTE FUNCTION watch();
SET enable_seqscan = off;
BEGIN;
INSERT INTO watched VALUES (200);
INSERT INTO watched VALUES (200);
SELECT count(*) FROM audit WHERE k = 200;
COMMIT;
SELECT found FROM audit WHERE k = 200 ORDER BY found;
RESET enable_seqscan;
SELECT same('SELECT * FROM audit WHERE k > 0', 'audit_k');

-- cursors over rows of the own transaction, insensitive to later ones
BEGIN;
INSERT INTO t SELECT i, 80000 + i FROM generate_series(1, 10) i;
SET LOCAL enable_seqscan = off;
DECLARE c SCROLL CURSOR FOR SELECT k FROM t WHERE k > 80000 ORDER BY k;
FETCH 2 FROM c;
SAVEPOINT a;
INSERT INTO t SELECT i, 80005 FROM generate_series(1, 3) i;
DELETE FROM t WHERE k = 80003;
FETCH 3 FROM c;
ROLLBACK TO a;
FETCH 3 FROM c;
INSERT INTO t VALUES (11, 80011);
FETCH ALL FROM c;
SELECT count(*) FROM t WHERE k > 80000;
COMMIT;
SELECT same('SELECT * FROM t WHERE k > 80000', 't_k');

-- COPY in a transaction with savepoints
BEGIN;
COPY t FROM stdin;
1	90001
2	90002
\.
SAVEPOINT a;
COPY t FROM stdin;
3	90003
\.
SELECT same('SELECT * FROM t WHERE k > 90000', 't_k');
ROLLBACK TO a;
COPY t FROM stdin;
4	90004
oops	90005
\.
ROLLBACK TO a;
SELECT same('SELECT * FROM t WHERE k > 90000', 't_k');
COMMIT;
SELECT same('SELECT * FROM t WHERE k > 90000', 't_k');
COPY (SELECT k FROM t WHERE k > 90000 ORDER BY k) TO stdout;

-- several tables and indexes filled by turns
CREATE TABLE u (a int, b bigint, c date);
CREATE INDEX u_b ON u USING gpu_btree (b DESC);
CREATE INDEX u_ac ON u USING gpu_btree (a, c);
BEGIN;
INSERT INTO u SELECT i, i * 3, date '2020-01-01' + i FROM generate_series(1, 300) i;
INSERT INTO t SELECT i, 100000 + i FROM generate_series(1, 300) i;
SAVEPOINT a;
INSERT INTO u SELECT i, i * 3, date '2020-01-01' + i FROM generate_series(301, 400) i;
SAVEPOINT b;
INSERT INTO t SELECT i, 100000 + i FROM generate_series(301, 400) i;
ROLLBACK TO b;
SELECT same('SELECT * FROM u WHERE a > 250', 'u_ac');
COMMIT;
SELECT same('SELECT b FROM u WHERE b > 900 ORDER BY b', 'u_b', true);
SELECT same('SELECT a, c FROM u WHERE a > 250 ORDER BY a, c', 'u_ac', true);
SELECT same('SELECT * FROM t WHERE k > 100000', 't_k');

\set ECHO none
-- procedures that commit within
CREATE PROCEDURE in_steps() LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1..6 LOOP
		INSERT INTO t VALUES (i, 110000 + i);
		IF i % 3 = 0 THEN
			ROLLBACK;
		ELSE
			COMMIT;
		END IF;
		ASSERT (SELECT count(*) FROM t WHERE k > 110000) = i - i / 3, 'wrong count';
	END LOOP;
END $$;
\set ECHO all
SET enable_seqscan = off;
CALL in_steps();
RESET enable_seqscan;
SELECT same('SELECT * FROM t WHERE k > 110000', 't_k');

\set ECHO none
-- a loop over the index that commits under way, and changes what it reads
CREATE PROCEDURE in_a_loop() LANGUAGE plpgsql AS $$
DECLARE
	r record;
	n int := 0;
BEGIN
	FOR r IN SELECT k FROM t WHERE k > 111000 ORDER BY k LOOP
		n := n + 1;
		INSERT INTO t VALUES (n, r.k + 1000);
		DELETE FROM t WHERE k = r.k;
		IF n % 4 = 0 THEN
			COMMIT;
		ELSIF n % 6 = 1 THEN
			ROLLBACK;
		END IF;
	END LOOP;
END $$;
\set ECHO all
INSERT INTO t SELECT i, 111000 + i FROM generate_series(1, 20) i;
SET enable_seqscan = off;
CALL in_a_loop();
RESET enable_seqscan;
SELECT k FROM t WHERE k > 111000 ORDER BY k;
SELECT same('SELECT * FROM t WHERE k > 111000', 't_k');

-- repeatable read sees its own rows and no others
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM t WHERE k > 120000;
INSERT INTO t VALUES (1, 120001);
SELECT same('SELECT * FROM t WHERE k > 120000', 't_k');
COMMIT;

-- two-phase commit, where the server allows it
SELECT current_setting('max_prepared_transactions')::int > 0 AS can_prepare \gset
\if :can_prepare
BEGIN;
INSERT INTO t SELECT i, 130000 + i FROM generate_series(1, 10) i;
SAVEPOINT a;
INSERT INTO t SELECT i, 131000 + i FROM generate_series(1, 10) i;
ROLLBACK TO a;
PREPARE TRANSACTION 'gpuds_one';
BEGIN;
INSERT INTO t SELECT i, 132000 + i FROM generate_series(1, 10) i;
PREPARE TRANSACTION 'gpuds_two';
BEGIN;
CREATE TABLE p (k int);
CREATE INDEX p_k ON p USING gpu_btree (k);
INSERT INTO p SELECT generate_series(1, 1000);
DO 'BEGIN ASSERT (SELECT count(*) FROM p WHERE k > 900) = 100; END';
INSERT INTO p SELECT generate_series(1001, 2000);
PREPARE TRANSACTION 'gpuds_three';
BEGIN;
CREATE INDEX s_k_desc ON s USING gpu_btree (k DESC);
DROP INDEX s_k;
INSERT INTO s VALUES (2500);
PREPARE TRANSACTION 'gpuds_four';
\else
CREATE TABLE p (k int);
CREATE INDEX p_k ON p USING gpu_btree (k);
INSERT INTO p SELECT generate_series(1, 2000);
\endif
SELECT same('SELECT * FROM t WHERE k > 130000', 't_k');
\if :can_prepare
COMMIT PREPARED 'gpuds_one';
ROLLBACK PREPARED 'gpuds_two';
COMMIT PREPARED 'gpuds_three';
ROLLBACK PREPARED 'gpuds_four';
\else
INSERT INTO t SELECT i, 130000 + i FROM generate_series(1, 10) i;
\endif
SELECT same('SELECT * FROM t WHERE k > 130000', 't_k');
SELECT same('SELECT * FROM p WHERE k > 900', 'p_k');
SELECT same('SELECT * FROM s WHERE k > 0', 's_k');
