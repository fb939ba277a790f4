-- Collected entries: none is lost when files change hands under a transaction or a
-- statement, none is of another row, and their memory is bounded.
\set test test_collecting
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

-- a change of type without rewrite gives the file to another index
CREATE TABLE v (k int);
CREATE INDEX v_k ON v USING gpu_btree (k);
SELECT pg_relation_filenode('v_k') AS file, 'v_k'::regclass::oid AS oid \gset
BEGIN;
INSERT INTO v VALUES (1);
ALTER TABLE v ALTER k TYPE int;
SELECT pg_relation_filenode('v_k') = :file AS same_file, 'v_k'::regclass::oid = :oid AS same_index;
INSERT INTO v VALUES (2);
COMMIT;
SELECT same('SELECT * FROM v WHERE k > 0', 'v_k');
BEGIN;
INSERT INTO v VALUES (3);
SAVEPOINT a;
ALTER TABLE v ALTER k TYPE int;
INSERT INTO v VALUES (4);
ROLLBACK TO a;
INSERT INTO v VALUES (5);
SAVEPOINT a;
INSERT INTO v VALUES (6);
ALTER TABLE v ALTER k TYPE int;
INSERT INTO v VALUES (7);
RELEASE a;
INSERT INTO v VALUES (8);
COMMIT;
SELECT same('SELECT * FROM v WHERE k > 0', 'v_k');
SELECT gpuds_index_check('v_k', true);

-- other ways to replace files in mid-transaction, and to get the old ones back
BEGIN;
INSERT INTO v VALUES (10);
REINDEX INDEX v_k;
INSERT INTO v VALUES (11);
SAVEPOINT a;
CLUSTER v USING v_k;
INSERT INTO v VALUES (12);
ROLLBACK TO a;
INSERT INTO v VALUES (13);
SAVEPOINT b;
TRUNCATE v;
INSERT INTO v VALUES (14);
TRUNCATE v;
INSERT INTO v VALUES (15);
SELECT same('SELECT * FROM v WHERE k > 0', 'v_k');
ROLLBACK TO b;
INSERT INTO v VALUES (16);
ALTER TABLE v ALTER k TYPE bigint;
INSERT INTO v VALUES (17);
COMMIT;
SELECT same('SELECT * FROM v WHERE k > 0', 'v_k');
SELECT gpuds_index_check('v_k', true);

-- an event trigger inserts while the index's file is being moved
SET allow_in_place_tablespaces = on;
SET client_min_messages = warning;
DROP TABLESPACE IF EXISTS gpuds_elsewhere;
RESET client_min_messages;
CREATE TABLESPACE gpuds_elsewhere LOCATION '';
CREATE TABLE moved (k int);
CREATE INDEX moved_k ON moved USING gpu_btree (k);
CREATE FUNCTION insert_meanwhile() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO test_collecting.moved VALUES (1), (2);
END $$;
CREATE EVENT TRIGGER gpuds_meanwhile ON ddl_command_start WHEN TAG IN ('ALTER INDEX')
	EXECUTE FUNCTION insert_meanwhile();
ALTER INDEX moved_k SET TABLESPACE gpuds_elsewhere;
SELECT same('SELECT * FROM moved WHERE k > 0', 'moved_k');
BEGIN;
ALTER INDEX moved_k SET TABLESPACE pg_default;
INSERT INTO moved VALUES (3);
ALTER INDEX moved_k SET TABLESPACE gpuds_elsewhere;
COMMIT;
SELECT same('SELECT * FROM moved WHERE k > 0', 'moved_k');
DROP EVENT TRIGGER gpuds_meanwhile;
SELECT gpuds_index_check('moved_k', true);
DROP TABLE moved;
DROP TABLESPACE gpuds_elsewhere;

-- so may an expression of an index, called by a statement that makes one
CREATE TABLE noted (k int);
CREATE INDEX noted_k ON noted USING gpu_btree (k);
CREATE FUNCTION note_it(k int) RETURNS void LANGUAGE sql AS
'INSERT INTO test_collecting.noted VALUES (k)';
CREATE FUNCTION note(k int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	PERFORM test_collecting.note_it(k);
	RETURN k;
END $$;
CREATE TABLE n (k int);
INSERT INTO n SELECT generate_series(1, 20);
CREATE INDEX n_note ON n USING gpu_btree (note(k));
SELECT same('SELECT * FROM noted WHERE k > 0', 'noted_k');
INSERT INTO n SELECT generate_series(21, 40);
UPDATE n SET k = k + 100 WHERE k > 35;
REINDEX TABLE n;
SELECT same('SELECT * FROM noted WHERE k > 0', 'noted_k');

-- functions that insert, in a statement that inserts: into the same index, into
-- another, in subtransactions that come to nothing, and with a look between
CREATE TABLE inner_rows (k int);
CREATE INDEX inner_rows_k ON inner_rows USING gpu_btree (k);
CREATE TABLE outer_rows (k int, n bigint);
CREATE INDEX outer_rows_k ON outer_rows USING gpu_btree (k);
\set ECHO none
CREATE FUNCTION add_rows(i int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	found bigint;
BEGIN
	INSERT INTO inner_rows VALUES (i);
	INSERT INTO outer_rows VALUES (1000 + i, -1);
	BEGIN
		INSERT INTO inner_rows SELECT 2000 + i FROM generate_series(1, 10);
		INSERT INTO outer_rows VALUES (2000 + i, -1);
		IF i % 2 = 0 THEN
			PERFORM 1 / 0;
		END IF;
	EXCEPTION WHEN division_by_zero THEN
		NULL;
	END;
	IF i % 3 = 0 THEN
		SELECT count(*) INTO found FROM outer_rows WHERE k > 0;
	END IF;
	RETURN found;
END $$;
\set ECHO all
SET enable_seqscan = off;
INSERT INTO outer_rows SELECT i, add_rows(i) FROM generate_series(1, 50) i;
SELECT k, n FROM outer_rows WHERE n > 0 ORDER BY k;
RESET enable_seqscan;
SELECT same('SELECT * FROM outer_rows WHERE k > 0', 'outer_rows_k');
SELECT same('SELECT * FROM inner_rows WHERE k > 0', 'inner_rows_k');
SELECT gpuds_index_check('outer_rows_k', true), gpuds_index_check('inner_rows_k', true);

-- the whole statement fails, in a subtransaction and not; the next ones are right
BEGIN;
INSERT INTO outer_rows VALUES (3000, 0);
SAVEPOINT a;
INSERT INTO outer_rows SELECT 3000 + i, 1 / (10 - i) FROM generate_series(1, 20) i;
ROLLBACK TO a;
INSERT INTO outer_rows VALUES (3100, 0);
RELEASE a;
COMMIT;
SELECT same('SELECT * FROM outer_rows WHERE k >= 3000', 'outer_rows_k');

-- WITH queries that insert: run in parts, some of them behind the main query
WITH a AS (INSERT INTO inner_rows SELECT 4000 + i FROM generate_series(1, 30) i RETURNING k),
	b AS (INSERT INTO outer_rows SELECT k, k FROM a RETURNING k),
	c AS (UPDATE v SET k = k + 4000 WHERE k < 10 RETURNING k)
SELECT count(*) FROM b WHERE k > 4010;
WITH a AS (INSERT INTO inner_rows SELECT 4100 + i FROM generate_series(1, 30) i)
INSERT INTO outer_rows SELECT 4100 + i, i FROM generate_series(1, 30) i;
WITH a AS (INSERT INTO inner_rows SELECT 4200 + i FROM generate_series(1, 30) i RETURNING k)
SELECT k FROM a LIMIT 2;
SELECT same('SELECT * FROM inner_rows WHERE k > 4000', 'inner_rows_k');
SELECT same('SELECT * FROM outer_rows WHERE k > 4000', 'outer_rows_k');
SELECT same('SELECT * FROM v WHERE k > 4000', 'v_k');
-- with triggers that look, too
CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	new.n := (SELECT count(*) FROM outer_rows WHERE k > 5000);
	RETURN new;
END $$;
CREATE TRIGGER look BEFORE INSERT ON outer_rows FOR EACH ROW EXECUTE FUNCTION look();
SET enable_seqscan = off;
WITH a AS (INSERT INTO outer_rows SELECT 5100 + i FROM generate_series(1, 3) i RETURNING k, n)
INSERT INTO outer_rows SELECT 5000 + i FROM generate_series(1, 3) i;
SELECT k, n FROM outer_rows WHERE k > 5000 ORDER BY k;
RESET enable_seqscan;
DROP TRIGGER look ON outer_rows;

\set ECHO none
-- RETURNING in a loop that fetches a few rows at a time, and leaves early
CREATE FUNCTION returning_loop(from_key int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	r record;
	n int := 0;
BEGIN
	FOR r IN INSERT INTO inner_rows SELECT from_key + i FROM generate_series(1, 200) i RETURNING k LOOP
		n := n + (SELECT count(*) FROM inner_rows WHERE k = r.k);
		INSERT INTO outer_rows VALUES (r.k, n);
		EXIT WHEN n = 70;
	END LOOP;
	RETURN n;
END $$;
\set ECHO all
SET enable_seqscan = off;
SELECT returning_loop(6000);
RESET enable_seqscan;
SELECT same('SELECT * FROM inner_rows WHERE k > 6000', 'inner_rows_k');
SELECT same('SELECT * FROM outer_rows WHERE k > 6000', 'outer_rows_k');
-- the same from functions in SQL, all rows at once and one at a time
CREATE FUNCTION insert_set(lo int) RETURNS SETOF int LANGUAGE sql AS
'INSERT INTO test_collecting.inner_rows SELECT lo + i FROM generate_series(1, 20) i RETURNING k';
CREATE FUNCTION insert_one(lo int) RETURNS int LANGUAGE sql AS
'INSERT INTO test_collecting.inner_rows SELECT lo + i FROM generate_series(1, 20) i RETURNING k';
SELECT count(*) FROM insert_set(6300);
SELECT insert_set(6400) LIMIT 2;
INSERT INTO outer_rows SELECT insert_one(6500 + i * 20), i FROM generate_series(1, 4) i;
SELECT same('SELECT * FROM inner_rows WHERE k > 6300', 'inner_rows_k');
SELECT same('SELECT * FROM outer_rows WHERE k > 6300', 'outer_rows_k');

\set ECHO none
-- procedures that end transactions between, and in loops over, statements that insert
CREATE PROCEDURE ends_transactions() LANGUAGE plpgsql AS $$
DECLARE
	added int;
BEGIN
	FOR i IN 7001..7020 LOOP
		INSERT INTO inner_rows VALUES (i) RETURNING k INTO added;
		INSERT INTO outer_rows VALUES (added, 0), (added, 1);
		IF i % 3 = 0 THEN
			ROLLBACK;
		ELSIF i % 3 = 1 THEN
			COMMIT;
		END IF;
	END LOOP;
END $$;
\set ECHO all
CALL ends_transactions();
SELECT count(*) FROM outer_rows WHERE k > 7000;
SELECT same('SELECT * FROM inner_rows WHERE k > 7000', 'inner_rows_k');
SELECT same('SELECT * FROM outer_rows WHERE k > 7000', 'outer_rows_k');

-- functions of a trigger that run utility statements: on other tables' indexes, and,
-- which is refused, on those in use
CREATE TABLE scratch (k int);
CREATE INDEX scratch_k ON scratch USING gpu_btree (k);
CREATE TABLE fired (k int);
CREATE INDEX fired_k ON fired USING gpu_btree (k);
\set ECHO none
CREATE FUNCTION fire() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO scratch SELECT new.k * 10 + i FROM generate_series(1, 5) i;
	CASE new.k % 5
		WHEN 0 THEN TRUNCATE scratch;
		WHEN 1 THEN REINDEX INDEX scratch_k;
		WHEN 2 THEN ALTER TABLE scratch ALTER k TYPE int;
		WHEN 3 THEN
			BEGIN
				TRUNCATE scratch;
				INSERT INTO scratch VALUES (-new.k);
				RAISE 'back';
			EXCEPTION WHEN raise_exception THEN
				INSERT INTO scratch VALUES (new.k);
			END;
		ELSE
			BEGIN
				TRUNCATE fired;
			EXCEPTION WHEN object_in_use THEN
				NULL;
			END;
	END CASE;
	INSERT INTO scratch VALUES (new.k);
	RETURN new;
END $$;
\set ECHO all
CREATE TRIGGER fire_before BEFORE INSERT ON fired FOR EACH ROW EXECUTE FUNCTION fire();
CREATE TRIGGER fire_after AFTER INSERT ON fired FOR EACH ROW EXECUTE FUNCTION fire();
INSERT INTO fired SELECT generate_series(1, 49);
SELECT same('SELECT * FROM fired WHERE k > 0', 'fired_k');
SELECT same('SELECT * FROM scratch WHERE k IS NOT NULL', 'scratch_k');
COPY fired FROM stdin;
53
54
51
52
53
\.
SELECT same('SELECT * FROM fired WHERE k > 0', 'fired_k');
SELECT same('SELECT * FROM scratch WHERE k IS NOT NULL', 'scratch_k');
SELECT gpuds_index_check('fired_k', true), gpuds_index_check('scratch_k', true);

-- EXPLAIN ANALYZE, EXECUTE, DO and COPY (query) TO run statements like any other
PREPARE fill(int) AS INSERT INTO inner_rows SELECT $1 + i FROM generate_series(1, 20) i;
EXECUTE fill(8000);
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) EXECUTE fill(8020);
DO 'BEGIN INSERT INTO test_collecting.inner_rows SELECT 8100 + i FROM generate_series(1, 20) i; END';
COPY (INSERT INTO inner_rows VALUES (8200), (8201) RETURNING k) TO stdout;
SELECT same('SELECT * FROM inner_rows WHERE k > 8000', 'inner_rows_k');

-- ON CONFLICT: rows that lose to others, to rows of their own statement, and none
CREATE TABLE up (id int PRIMARY KEY, k int, n int DEFAULT 0);
CREATE INDEX up_k ON up USING gpu_btree (k);
CREATE INDEX up_n ON up USING gpu_btree (n, k) WHERE n > 0;
INSERT INTO up SELECT i, i FROM generate_series(1, 1000) i
	ON CONFLICT (id) DO NOTHING;
INSERT INTO up SELECT i, i + 10000 FROM generate_series(501, 1500) i
	ON CONFLICT (id) DO UPDATE SET k = excluded.k, n = up.n + 1;
INSERT INTO up SELECT i % 50 + 2000, i + 20000 FROM generate_series(1, 200) i
	ON CONFLICT DO NOTHING;
SELECT same('SELECT * FROM up WHERE k > 0', 'up_k');
SELECT same('SELECT * FROM up WHERE n > 0 AND k > 0', 'up_n');
-- looked at by a function of the same statement, and inserted into by it
CREATE FUNCTION up_look(i int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO up VALUES (4000 + i, 40000 + i, 1) ON CONFLICT (id) DO UPDATE SET n = up.n + 1;
	RETURN (SELECT count(*) FROM up WHERE k > 30000);
END $$;
SET enable_seqscan = off;
INSERT INTO up SELECT 3000 + i % 4, 30000 + i, up_look(i % 5) FROM generate_series(1, 10) i
	ON CONFLICT (id) DO NOTHING;
SELECT id, k, n FROM up WHERE k > 30000 ORDER BY k;
RESET enable_seqscan;
SELECT same('SELECT * FROM up WHERE k > 30000', 'up_k');
SELECT same('SELECT * FROM up WHERE n > 0 AND k > 0', 'up_n');
SELECT gpuds_index_check('up_k', true), gpuds_index_check('up_n', true);
-- an index expression's function that looks, while the row is neither in nor out
CREATE TABLE half (id int, k int);
CREATE FUNCTION half_seen(k int) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	RETURN (SELECT count(*) FROM test_collecting.half h WHERE h.k = half_seen.k);
END $$;
CREATE INDEX half_k ON half USING gpu_btree (k);
CREATE INDEX half_expression ON half USING gpu_btree (half_seen(k));
CREATE UNIQUE INDEX half_id ON half (id);
SET enable_seqscan = off;
INSERT INTO half SELECT i / 2, i FROM generate_series(1, 40) i ON CONFLICT DO NOTHING;
RESET enable_seqscan;
SELECT same('SELECT * FROM half WHERE k > 0', 'half_k');
SELECT gpuds_index_check('half_k', true);
-- its values are none that a check could find again
DROP INDEX half_expression;
-- one that makes the row lose, by inserting another in its place: the loser has no entry
CREATE TABLE lost (id int, k int);
\set ECHO none
CREATE FUNCTION lost_to(id int, k int) RETURNS void LANGUAGE sql AS
'INSERT INTO test_collecting.lost VALUES (id, -k)';
CREATE FUNCTION lost_maybe(id int, k int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF k > 0 AND k % 2 = 0 THEN
		PERFORM test_collecting.lost_to(id, k);
	END IF;
	RETURN k;
END $$;
\set ECHO all
CREATE INDEX lost_k ON lost USING gpu_btree (k);
CREATE INDEX lost_expression ON lost USING gpu_btree (lost_maybe(id, k));
CREATE INDEX lost_part ON lost USING gpu_btree (id, k) WHERE k > 0;
CREATE UNIQUE INDEX lost_id ON lost (id);
INSERT INTO lost SELECT i, i FROM generate_series(1, 40) i ON CONFLICT DO NOTHING;
INSERT INTO lost SELECT i, i FROM generate_series(31, 60) i ON CONFLICT DO NOTHING;
SELECT same('SELECT * FROM lost WHERE k IS NOT NULL', 'lost_k');
SELECT same('SELECT * FROM lost WHERE id > 0 AND k > 0', 'lost_part');
SELECT count(*), count(*) FILTER (WHERE k > 0) AS positive FROM lost;
SELECT gpuds_index_check('lost_k', true), gpuds_index_check('lost_part', true);
SELECT indexrelname, entries FROM gpuds_indexes WHERE indexrelname IN ('lost_k', 'lost_part') ORDER BY 1;
-- temporary tables, where nobody else is
CREATE TEMP TABLE up_temp (id int PRIMARY KEY, k int);
CREATE INDEX up_temp_k ON up_temp USING gpu_btree (k);
BEGIN;
INSERT INTO up_temp SELECT i % 300, i FROM generate_series(1, 1000) i ON CONFLICT (id) DO NOTHING;
INSERT INTO up_temp SELECT i, i FROM generate_series(200, 400) i ON CONFLICT (id) DO UPDATE SET k = excluded.k;
INSERT INTO up_temp VALUES (1000, 1000) ON CONFLICT DO NOTHING;
COMMIT;
BEGIN;
INSERT INTO up_temp VALUES (1001, 1001);
ALTER TABLE up_temp ALTER k TYPE int;
INSERT INTO up_temp VALUES (1002, 1002);
COMMIT;
SELECT same('SELECT * FROM up_temp WHERE k > 0', 'up_temp_k');

-- two indexes change files under a statement, by nothing that we watch
CREATE TABLE swapped (a int, b int);
CREATE INDEX swapped_a ON swapped USING gpu_btree (a);
CREATE INDEX swapped_b ON swapped USING gpu_btree (b);
CREATE FUNCTION swap_files() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	UPDATE pg_class c SET relfilenode = o.relfilenode FROM pg_class o
	WHERE c.oid IN ('swapped_a'::regclass, 'swapped_b'::regclass)
		AND o.oid IN ('swapped_a'::regclass, 'swapped_b'::regclass) AND o.oid <> c.oid;
	RETURN 0;
END $$;
SET allow_system_table_mods = on;
INSERT INTO swapped SELECT i, i + CASE WHEN i IN (100, 150) THEN swap_files() ELSE 0 END
FROM generate_series(1, 200) i;
INSERT INTO swapped SELECT i, i + CASE WHEN i = 250 THEN swap_files() ELSE 0 END
FROM generate_series(201, 300) i;
\set ECHO none
-- for a moment only, in which a scan wants the entries
CREATE FUNCTION swap_and_back() RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	found int;
BEGIN
	PERFORM swap_files();
	SELECT count(*) INTO found FROM swapped WHERE a > 300;
	INSERT INTO swapped VALUES (-1, -1);
	RAISE 'back';
EXCEPTION WHEN raise_exception THEN
	PERFORM 1 FROM swapped WHERE a = 0; -- core looks at open indexes again
	RETURN found;
END $$;
\set ECHO all
SET enable_seqscan = off;
INSERT INTO swapped SELECT i, i - CASE WHEN i = 350 THEN swap_and_back() ELSE 0 END
FROM generate_series(301, 400) i;
RESET enable_seqscan;
RESET allow_system_table_mods;
SELECT b FROM swapped WHERE a = 350;
SELECT same('SELECT * FROM swapped WHERE a > 0', 'swapped_a');
SELECT same('SELECT * FROM swapped WHERE b > 0', 'swapped_b');
SELECT gpuds_index_check('swapped_a', true), gpuds_index_check('swapped_b', true);

-- memory: bounded over all indexes of a statement, and gone with it
CREATE TABLE many (part int, k int, n int) PARTITION BY LIST (part);
SELECT format('CREATE TABLE many_%s PARTITION OF many FOR VALUES IN (%s)', i, i) FROM generate_series(1, 10) i \gexec
CREATE INDEX ON many USING gpu_btree (k);
CREATE INDEX ON many USING gpu_btree (n);
CREATE FUNCTION collected_mb() RETURNS int LANGUAGE sql VOLATILE AS $$
	SELECT (coalesce(sum(total_bytes), 0) / 1048576)::int FROM pg_backend_memory_contexts
	WHERE name IN ('gpuds inserts', 'TopTransactionContext');
$$;
BEGIN;
INSERT INTO many
	SELECT p, i, CASE WHEN i < 66000 THEN i ELSE collected_mb() END
	FROM generate_series(1, 10) p, generate_series(1, 66000) i;
SELECT max(n) <= 25 AS bounded FROM many WHERE k = 66000;
SELECT collected_mb() = 0 AS released;
COMMIT;
SELECT same('SELECT count(*) FROM many_1 WHERE k BETWEEN 1000 AND 2000', 'many_1_k_idx');
SELECT same('SELECT count(*), sum(k) FROM many_10 WHERE k > 65000', 'many_10_k_idx');
-- rows that come by turns
TRUNCATE many;
INSERT INTO many SELECT i % 10 + 1, i, i FROM generate_series(1, 30000) i;
SELECT same('SELECT * FROM many_7 WHERE k > 25000', 'many_7_k_idx');
SELECT count(gpuds_index_check(indexrelid::regclass, true)::text) FROM pg_index
WHERE indrelid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = 'many'::regclass);

-- locks on indexes go with the statement, as btree's do
BEGIN;
INSERT INTO many SELECT i % 10 + 1, -i, i FROM generate_series(1, 300) i;
COPY many FROM stdin;
1	-1	1
2	-1	1
\.
SELECT count(*) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
WHERE l.pid = pg_backend_pid() AND c.relkind IN ('i', 'I') AND c.relname LIKE 'many%';
COMMIT;
SELECT same('SELECT * FROM many_1 WHERE k < 0', 'many_1_k_idx');
