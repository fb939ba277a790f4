-- GpudsAggregate on a GPU: filters and groups that its kernels add up, and those that they leave to the host.  The answers
-- are the same on a CPU.
\set test test_device_groups
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

\set ECHO none
-- Does a query have the same answer with and without the node?  And do its entries not cross the bus, where there is one?
-- They do once if the worker changes what the device has at that moment, but not each time.
CREATE FUNCTION agrees(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	right_answer text := right_digest_of(query, false);
	answer text;
	line text;
	plan text := '';
	bus bigint := 0;
BEGIN
	SET LOCAL enable_seqscan = off;
	SET LOCAL enable_bitmapscan = off;
	SET LOCAL gpuds.enable_aggregate = on;
	answer := digest_of(query, false);
	FOR attempt IN 1..5 LOOP
		plan := '';
		bus := 0;
		FOR line IN EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
			plan := plan || line;
			bus := bus + coalesce(substring(line FROM 'Bus Bytes: (\d+)')::bigint, 0);
		END LOOP;
		EXIT WHEN bus <= 500000 OR query LIKE '%/* host */%';
		PERFORM pg_sleep(0.1);
	END LOOP;
	SET LOCAL gpuds.enable_aggregate = off;
	RETURN CASE WHEN answer <> right_answer THEN 'wrong: ' || answer || ', right: ' || right_answer
		ELSE split_part(answer, ' ', 1) || ' rows agree' || CASE WHEN plan NOT LIKE '%GpudsAggregate%' AND query NOT LIKE '%/* host */%' THEN ', another plan' ELSE '' END END
		|| CASE WHEN plan LIKE '%Device: cuda%' AND bus > 500000 AND query NOT LIKE '%/* host */%' THEN ', entries cross the bus: ' || bus ELSE '' END;
END $$;
\set ECHO all

CREATE TABLE t (at timestamp, account int, status int2, yes bool, many int NOT NULL, f float8) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT timestamp '2000-01-01' + i * interval '7 minutes', i % 97, nullif(i % 5, 4), CASE i % 3 WHEN 0 THEN true WHEN 1 THEN false END,
	i % 12000, CASE i % 9 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0'::float8 WHEN 2 THEN 0 WHEN 3 THEN 'infinity' WHEN 5 THEN NULL ELSE i % 100 END
FROM generate_series(1, 30000) i;
INSERT INTO t (account, many) SELECT i, i FROM generate_series(95, 99) i;
CREATE INDEX t_at ON t USING gpu_btree (at) INCLUDE (account, status, yes);
CREATE INDEX t_many ON t USING gpu_btree (many, account) INCLUDE (status);
CREATE INDEX t_f ON t USING gpu_btree (account) INCLUDE (f, yes);
CREATE INDEX t_down ON t USING gpu_btree (status DESC NULLS LAST, account DESC, many);
VACUUM ANALYZE t;
SET cpu_operator_cost = 0;
SET random_page_cost = 0.1;

CREATE TABLE query (place serial, query text);
INSERT INTO query (query) VALUES
	('SELECT count(*) FROM t WHERE at > ''2000-02-01'' AND status = 2'),
	('SELECT count(*), sum(account), min(at), max(status) FROM t WHERE status IS NULL OR account IN (3, 5, 8) AND NOT yes'),
	('SELECT count(*) FROM t WHERE at > ''2000-02-01'' AND account <> ALL (ARRAY[1, 2, 3, NULL])'),
	('SELECT count(*) FROM t WHERE at > ''2000-02-01'' AND status > 2 AND status < 2'),
	('SELECT count(*) FROM t WHERE at > ''2000-02-01'' AND (false OR status > 70000)'),
	-- filters of aggregates, and more columns than a sum without filters may have
	('SELECT count(*) FILTER (WHERE yes), sum(account) FILTER (WHERE status = 1 OR yes IS NULL), sum(CASE WHEN status = 3 THEN account ELSE 7 END), sum(CASE WHEN yes THEN 1 END) FROM t WHERE at > ''2000-02-01'''),
	('SELECT count(at), sum(account), sum(status), count(yes), min(account), bool_and(yes), avg(status), max(at) FROM t WHERE at > ''2000-02-01'''),
	('SELECT count(*) FILTER (WHERE account = 1), count(*) FILTER (WHERE account = 2), count(*) FILTER (WHERE account = 3), count(*) FILTER (WHERE account = 4), count(*) FILTER (WHERE account = 5), count(*) FILTER (WHERE account = 6), count(*) FILTER (WHERE account = 7), count(*) FILTER (WHERE account = 8) FROM t WHERE at > ''2000-02-01'''),
	('/* host */ SELECT count(*) FILTER (WHERE account = 1), count(*) FILTER (WHERE account = 2), count(*) FILTER (WHERE account = 3), count(*) FILTER (WHERE account = 4), count(*) FILTER (WHERE account = 5), count(*) FILTER (WHERE account = 6), count(*) FILTER (WHERE account = 7), count(*) FILTER (WHERE account = 8), count(*) FILTER (WHERE account = 9) FROM t WHERE at > ''2000-02-01'''),
	('SELECT count(*), sum(f), avg(f), min(f) FROM t WHERE account < 60 AND (f > 3 OR f = ''NaN'')'),
	-- groups without order
	('SELECT status, count(*), sum(account) FROM t GROUP BY status'),
	('SELECT yes, status, account, count(*), min(at) FROM t WHERE at IS NOT NULL GROUP BY 1, 2, 3'),
	('SELECT status, yes, count(*) FROM t WHERE at > ''2000-02-01'' AND account > 20 GROUP BY 1, 2 HAVING count(*) > 10'),
	-- groups of leading columns, in order
	('SELECT account, count(*), sum(f), count(f) FILTER (WHERE yes) FROM t GROUP BY account'),
	('SELECT account, count(*) FROM t WHERE account > 5 AND f > 3 GROUP BY account ORDER BY account'),
	('SELECT status, account, count(*), max(many) FROM t GROUP BY status, account ORDER BY status DESC NULLS LAST, account DESC'),
	('SELECT status, account, count(*) FROM t WHERE status > 0 AND many <> 7 GROUP BY status, account ORDER BY status DESC NULLS LAST, account DESC'),
	('/* host */ SELECT many, count(*), sum(account) FROM t GROUP BY many'),
	('/* host */ SELECT many, status, count(*) FROM t WHERE account > 3 GROUP BY many, status'),
	-- buckets, with filters
	('SELECT date_trunc(''day'', at), count(*), sum(account) FROM t WHERE status = 1 GROUP BY 1'),
	('SELECT date_trunc(''month'', at), count(*) FILTER (WHERE yes), sum(CASE WHEN status = 1 THEN 1 ELSE 0 END) FROM t GROUP BY 1'),
	-- buckets, hashed
	('SELECT date_trunc(''day'', at), status, count(*) FROM t GROUP BY 1, 2'),
	('SELECT extract(hour FROM at), count(*), sum(account) FROM t GROUP BY 1'),
	('SELECT extract(dow FROM at), yes, count(*) FROM t WHERE at > ''2000-02-01'' AND status IS NOT NULL GROUP BY 1, 2'),
	('SELECT to_char(at, ''YYYY Mon''), count(*) FROM t WHERE account <> 5 GROUP BY 1'),
	('SELECT extract(month FROM at), count(*) FROM t WHERE at > ''2000-03-05'' AND account = 7 AND status = 1 GROUP BY 1'),
	-- what fails for some values only, that no row has
	('/* host */ SELECT 10 / (extract(hour FROM at) - 40), count(*) FROM t GROUP BY 1'),
	('/* host */ SELECT 10 / (account - 1000), count(*) FROM t GROUP BY 1');
SELECT place, agrees(query) FROM query ORDER BY place;

-- less memory than groups take
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT place, agrees('/* host */' || query) FROM query WHERE query LIKE '%GROUP BY%' ORDER BY place;
RESET work_mem;
RESET hash_mem_multiplier;

-- rows of which nothing is known, and those of this transaction
BEGIN;
UPDATE t SET status = 3, account = account + 1 WHERE account % 10 = 5;
INSERT INTO t SELECT timestamp '2000-03-01' + i * interval '1 hour', i % 3, i % 5, i % 2 = 0, i, i FROM generate_series(1, 500) i;
DELETE FROM t WHERE account = 6;
SELECT place, agrees('/* host */' || query) FROM query ORDER BY place;
SAVEPOINT s;
DELETE FROM t WHERE account < 50;
SELECT place, agrees('/* host */' || query) FROM query WHERE place % 3 = 0 ORDER BY place;
ROLLBACK TO s;
COMMIT;
SELECT place, agrees('/* host */' || query) FROM query WHERE place % 3 = 1 ORDER BY place;
VACUUM t;
SELECT place, agrees(query) FROM query ORDER BY place;

-- parameters, and the same node again
SET gpuds.enable_aggregate = on;
SET enable_seqscan = off;
SET plan_cache_mode = force_generic_plan;
PREPARE by_status (int, timestamp) AS SELECT status, count(*), sum(account) FROM t WHERE at > $2 AND account <> $1 GROUP BY status ORDER BY 1;
EXECUTE by_status (5, '2000-05-01');
EXECUTE by_status (7, '2000-08-01');
SELECT n, q.* FROM generate_series(1, 3) n, LATERAL (SELECT status, count(*) FROM t WHERE at > '2000-05-01' AND account <> n GROUP BY status) q ORDER BY 1, 2;
SELECT n, q.* FROM generate_series(1, 3) n, LATERAL (SELECT account, count(*) FROM t WHERE account BETWEEN n AND n + 1 GROUP BY account OFFSET 0) q ORDER BY 1, 2;

-- some groups only: those behind the first piece are not added up for them
SELECT account, count(*) FROM t GROUP BY account ORDER BY account LIMIT 3;

-- so many groups of leading columns that a device gives them in several pieces
SET gpuds.enable_aggregate = off;
CREATE TABLE m (k int, at timestamp, name text, v bigint) WITH (autovacuum_enabled = off);
INSERT INTO m SELECT nullif(i % 80000 - 20000, 7), timestamp '2000-01-01' + i * interval '1 minute', 'n' || i % 50000, i % 1000 FROM generate_series(1, 150000) i;
INSERT INTO m SELECT 12345, timestamp '2010-01-01' + i * interval '1 minute', 'many', i FROM generate_series(1, 20000) i;
CREATE INDEX m_k ON m USING gpu_btree (k, at);
CREATE INDEX m_down ON m USING gpu_skiplist (k DESC NULLS LAST, v);
CREATE INDEX m_v ON m USING gpu_btree (v, k) INCLUDE (at);
VACUUM ANALYZE m;
CREATE TABLE many (place serial, query text);
INSERT INTO many (query) VALUES
	('/* host */ SELECT k, count(*), min(at), max(at) FROM m GROUP BY k'),
	('/* host */ SELECT k, count(*) FROM m WHERE at > ''2000-01-20'' AND k IS NOT NULL GROUP BY k'),
	('/* host */ SELECT k, count(*), sum(v) FILTER (WHERE v % 2 = 0) FROM m GROUP BY k'),
	('/* host */ SELECT k, sum(v), avg(v), count(*) FILTER (WHERE v > 500) FROM m WHERE v <> 3 GROUP BY k ORDER BY k DESC NULLS LAST'),
	('/* host */ SELECT v, k, count(*), min(at) FROM m WHERE v BETWEEN 10 AND 900 GROUP BY v, k'),
	('/* host */ SELECT v, k, count(*) FROM m WHERE v = ANY (ARRAY(SELECT 3 * i FROM generate_series(1, 300) i)) GROUP BY v, k'),
	('/* host */ SELECT v, k, count(*) FROM m WHERE v IN (1, 2, 3, 500, 501) AND k > 100 GROUP BY v, k');
SELECT place, agrees(query) FROM many ORDER BY place;
BEGIN;
UPDATE m SET v = v + 1 WHERE k % 1000 = 5;
DELETE FROM m WHERE k BETWEEN 20 AND 40;
INSERT INTO m SELECT i, '2020-01-01', 'new', 5 FROM generate_series(-30000, 70000, 10) i;
SELECT place, agrees(query) FROM many ORDER BY place;
ROLLBACK;
SELECT place, agrees(query) FROM many ORDER BY place;
DELETE FROM m WHERE k % 3 = 0;
SELECT place, agrees(query) FROM many ORDER BY place;
SET work_mem = '64kB';
SELECT place, agrees(query) FROM many WHERE place < 5 ORDER BY place;
BEGIN;
DELETE FROM m WHERE k % 7 = 0 AND k < 3000;
INSERT INTO m SELECT i, '2020-01-01', 'new', 5 FROM generate_series(-3000, 90000, 100) i;
SELECT place, agrees(query) FROM many ORDER BY place;
ROLLBACK;
RESET work_mem;

-- far more groups than are expected
ALTER TABLE m ALTER k SET (n_distinct = 10);
ANALYZE m;
SELECT place, agrees(query) FROM many WHERE place < 5 ORDER BY place;
SET work_mem = '64kB';
SELECT place, agrees(query) FROM many WHERE place < 5 ORDER BY place;
RESET work_mem;
ALTER TABLE m ALTER k RESET (n_distinct);
ANALYZE m;

-- groups in no order that take a large table
INSERT INTO many (query) VALUES
	('/* host */ SELECT v, at, count(*), sum(k) FROM m WHERE k IS NOT NULL GROUP BY v, at'),
	('/* host */ SELECT at, count(*) FROM m WHERE k > 0 GROUP BY at'),
	('/* host */ SELECT at, count(*), max(k) FROM m WHERE k BETWEEN 100 AND 12000 GROUP BY at');
SELECT place, agrees(query) FROM many WHERE place > 7 ORDER BY place;

-- as many buckets as there is memory for, so that none is left for a row that comes back
RESET plan_cache_mode;
RESET enable_seqscan;
SET gpuds.enable_aggregate = off;
CREATE TABLE b (at timestamptz NOT NULL, st int) WITH (autovacuum_enabled = off);
INSERT INTO b SELECT timestamptz '2020-01-01 01:00+00' + i % 1366 * interval '1 day', i % 7 FROM generate_series(1, 20000) i;
CREATE INDEX b_at ON b USING gpu_btree (at) INCLUDE (st);
VACUUM ANALYZE b;
SET timezone = 'UTC';
SET work_mem = '64kB';
SET hash_mem_multiplier = 2;
BEGIN;
INSERT INTO b SELECT timestamptz '2021-01-01 00:00+00' + i * interval '1 hour', 77 FROM generate_series(1, 500) i;
SELECT agrees('SELECT date_trunc(''day'', at), st, count(*) FROM b WHERE st = 77 AND at >= ''2020-01-01'' GROUP BY 1, 2');
ROLLBACK;
SELECT agrees(format('/* host */ SELECT date_trunc(''day'', at), st, count(*) FROM b WHERE at >= timestamptz ''2020-01-01'' + %s * interval ''1 day'' GROUP BY 1, 2', n)) FROM generate_series(0, 300, 100) n;
RESET work_mem;
RESET hash_mem_multiplier;

-- A device is told of all pages that have changed, wherever they are: of their rows it hands back those only that have.
CREATE TABLE spread (k int, filler text) WITH (autovacuum_enabled = off, fillfactor = 90);
INSERT INTO spread SELECT i, repeat('x', 900) FROM generate_series(1, 20000) i;
CREATE INDEX spread_k ON spread USING gpu_btree (k);
VACUUM ANALYZE spread;
UPDATE spread SET filler = filler || 'y' WHERE hashint4(k) % 50 = 0;
\set ECHO none
CREATE FUNCTION handed_back(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan text := '';
	line text;
	matches int;
	counted int;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		plan := plan || line || E'\n';
	END LOOP;
	matches := substring(plan FROM ' Matches: (\d+)');
	counted := substring(plan FROM 'All-Visible Matches: (\d+)');
	RETURN CASE WHEN plan NOT LIKE '%Device: cuda%' OR matches - counted < 100 THEN 'few' ELSE plan END;
END $$;
\set ECHO all
SET gpuds.enable_aggregate = on;
SELECT count(*) FROM spread WHERE k > 0;
CALL wait_for_snapshots();
SELECT count(*) FROM spread WHERE k > 0;
SELECT handed_back('SELECT count(*) FROM spread WHERE k > 0');
SET gpuds.enable_aggregate = off;

-- side columns, of which a device has a copy when the store has them
CREATE TABLE w (at timestamp, big bigint, account int, status int2, amount numeric(12,2), f float8, yes bool) WITH (autovacuum_enabled = off);
INSERT INTO w SELECT timestamp '2000-01-01' + i * interval '7 minutes', i, i % 97, nullif(i % 5, 4), CASE i % 11 WHEN 0 THEN NULL WHEN 1 THEN 'NaN' ELSE i / 7.0 END,
	CASE i % 9 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0'::float8 WHEN 2 THEN 0 WHEN 3 THEN 'infinity' WHEN 5 THEN NULL ELSE i % 100 END, CASE i % 3 WHEN 0 THEN true WHEN 1 THEN false END
FROM generate_series(1, 30000) i;
CREATE INDEX w_at ON w USING gpu_btree (at, big) INCLUDE (account, status, amount, f, yes);
CREATE INDEX w_account ON w USING gpu_skiplist (account, big) INCLUDE (at, amount, yes);
VACUUM ANALYZE w;
CREATE TABLE side (place serial, query text);
INSERT INTO side (query) VALUES
	('SELECT sum(account) FROM w WHERE at > ''2000-01-10'''),
	('SELECT count(*), sum(amount), avg(amount), min(amount), max(account), sum(status) FROM w WHERE at > ''2000-01-10'' AND amount <> ''NaN'''),
	('SELECT count(*), sum(f), min(f) FILTER (WHERE f <> 0), max(f), avg(f), variance(account), bool_or(yes) FROM w WHERE at > ''2000-01-10'''),
	('SELECT count(*) FROM w WHERE at > ''2000-01-10'' AND status = 2 AND (account > 50 OR amount < 300)'),
	('SELECT count(*) FROM w WHERE at > ''2000-01-10'' AND (status IS NULL OR yes) AND NOT (f > 3 AND f < 50)'),
	('SELECT count(*) FILTER (WHERE yes), sum(amount) FILTER (WHERE status IN (1, 3) AND amount > 10), sum(CASE WHEN status = 3 THEN account ELSE 7 END) FROM w WHERE at > ''2000-01-10'''),
	('SELECT status, count(*), sum(amount), min(at) FROM w GROUP BY status'),
	('SELECT status, yes, account, count(*), sum(f) FROM w WHERE account <> 3 GROUP BY 1, 2, 3'),
	('/* host */ SELECT amount, count(*) FROM w GROUP BY amount'),
	('SELECT date_trunc(''day'', at), count(*), sum(account) FROM w WHERE status = 1 GROUP BY 1'),
	('SELECT date_trunc(''month'', at), sum(amount), count(*) FILTER (WHERE yes) FROM w GROUP BY 1'),
	('SELECT date_trunc(''day'', at), status, sum(amount) FROM w GROUP BY 1, 2'),
	('SELECT extract(hour FROM at), yes, count(*), sum(account) FROM w WHERE amount > 5 GROUP BY 1, 2'),
	('SELECT account, count(*), sum(amount), bool_and(yes) FROM w GROUP BY account ORDER BY account'),
	('SELECT account, count(*) FROM w WHERE amount > 100 GROUP BY account');
SELECT gpuds_index_load('w_at') AS w_at, gpuds_index_load('w_account') AS w_account;
SELECT place, agrees(query) FROM side ORDER BY place;
BEGIN;
UPDATE w SET amount = amount + 1, status = 3 WHERE account % 10 = 5;
INSERT INTO w SELECT timestamp '2000-03-01' + i * interval '1 hour', i, i % 3, i % 5, i, i, i % 2 = 0 FROM generate_series(1, 500) i;
DELETE FROM w WHERE account = 6;
SELECT place, agrees('/* host */' || query) FROM side ORDER BY place;
COMMIT;
SELECT place, agrees('/* host */' || query) FROM side WHERE place % 2 = 0 ORDER BY place;
VACUUM w;
SELECT place, agrees(query) FROM side WHERE place % 2 = 1 ORDER BY place;
-- rows in the places of others
INSERT INTO w SELECT timestamp '2000-04-01' + i * interval '1 minute', i, i % 7, i % 4, -i, i % 10, i % 2 = 1 FROM generate_series(1, 3000) i;
VACUUM w;
SELECT place, agrees(query) FROM side ORDER BY place;

-- groups of one row, which HAVING does not want
CREATE TABLE once (k int, v int) WITH (autovacuum_enabled = off);
INSERT INTO once SELECT i, i % 7 FROM generate_series(1, 30000) i;
INSERT INTO once SELECT i, i % 5 FROM generate_series(1000, 30000, 1000) i, generate_series(1, 2);
CREATE INDEX once_k ON once USING gpu_btree (k) INCLUDE (v);
VACUUM ANALYZE once;
CREATE TABLE repeated (place serial, query text);
INSERT INTO repeated (query) VALUES
	('SELECT k, count(*), sum(v) FROM once GROUP BY k HAVING count(*) > 1'),
	('SELECT k, count(*) FROM once WHERE k BETWEEN 1000 AND 20000 GROUP BY k HAVING count(*) > 1'),
	('/* host */ SELECT k, count(*) FROM once WHERE k < 9000 OR k >= 10000 GROUP BY k HAVING count(*) > 1'),
	('/* host */ SELECT k, count(*), max(v) FROM once WHERE v <> 3 GROUP BY k HAVING count(*) > 1'),
	('SELECT k, count(*) FROM once GROUP BY k HAVING count(*) >= 3'),
	('SELECT k FROM once GROUP BY k HAVING count(*) = 2 AND k > 5000'),
	('/* host */ SELECT count(*) FROM (SELECT k FROM once GROUP BY k HAVING count(*) = 1) x'),
	('/* host */ SELECT count(*) FROM (SELECT k, v FROM once GROUP BY k, v HAVING count(*) > 1) x');
SELECT gpuds_index_load('once_k') AS once_k;
SELECT place, agrees(query) FROM repeated ORDER BY place;
-- ... one of each here and there, some of which are gone
BEGIN;
INSERT INTO once SELECT i, 1 FROM generate_series(1, 30000, 301) i;
DELETE FROM once WHERE k % 3000 = 0 AND v % 5 = 0;
UPDATE once SET v = v + 1 WHERE k % 4000 = 0;
SELECT place, agrees(query) FROM repeated ORDER BY place;
COMMIT;
SELECT place, agrees(query) FROM repeated ORDER BY place;
VACUUM once;
SELECT place, agrees(query) FROM repeated ORDER BY place;

-- buckets behind a column that has several values
CREATE TABLE visit (account int, at timestamp, v int) WITH (autovacuum_enabled = off);
INSERT INTO visit SELECT i % 30, CASE WHEN i % 50 > 0 THEN timestamp '2000-01-01' + i * interval '7 minutes' END, i % 11 FROM generate_series(1, 60000) i;
CREATE INDEX visit_up ON visit USING gpu_btree (account, at) INCLUDE (v);
VACUUM ANALYZE visit;
CREATE TABLE several (place serial, query text);
INSERT INTO several (query) VALUES
	('SELECT date_trunc(''month'', at), count(*) FROM visit WHERE account IN (1, 2, 3, 5, 8, 13, 14, 15, 16, 17, 18, 19, 21, 25) GROUP BY 1'),
	('SELECT date_trunc(''week'', at), sum(v), count(at) FROM visit WHERE account = ANY (''{-1,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,77}'') GROUP BY 1'),
	('SELECT extract(dow FROM at), account, count(*) FROM visit WHERE account IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 28, 29) AND at > ''2000-02-02'' GROUP BY 1, 2'),
	('SELECT extract(dow FROM at), count(*), min(v) FROM visit WHERE account = ANY (''{3,4,5,6,7,8,9,10,11,12,13}'') AND v <> 4 GROUP BY 1'),
	-- no row: which plan is cheapest is by chance
	('/* host */ SELECT date_trunc(''month'', at), count(*) FROM visit WHERE account = ANY (''{55,66}'') GROUP BY 1'),
	('/* host */ SELECT date_trunc(''minute'', at), count(*) FROM visit WHERE account = ANY (''{3,4,5,6,7,8,9,10,11,12,13}'') GROUP BY 1');
SELECT gpuds_index_load('visit_up') AS visit_up;
SELECT place, agrees(query) FROM several ORDER BY place;
BEGIN;
INSERT INTO visit SELECT i % 20, timestamp '2001-01-01' - i * interval '4 hours', i % 5 FROM generate_series(1, 900) i;
DELETE FROM visit WHERE account = 13 AND v < 6;
SELECT place, agrees(query) FROM several ORDER BY place;
COMMIT;
DROP INDEX visit_up;
CREATE INDEX visit_first ON visit USING gpu_btree (account, at NULLS FIRST) INCLUDE (v);
VACUUM visit;
SELECT gpuds_index_load('visit_first') AS visit_first;
SELECT place, agrees(query) FROM several ORDER BY place;
DROP SCHEMA :test CASCADE;
