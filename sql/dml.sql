-- Rows that come, change and go; each step is checked three ways.
\set test test_dml
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

CREATE TABLE t (id int, k bigint, v int) WITH (fillfactor = 60);
CREATE INDEX t_k ON t USING gpu_btree (k);
INSERT INTO t SELECT i, i * 10, 0 FROM generate_series(1, 3000) i;
SELECT same('SELECT * FROM t WHERE k > 100', 't_k');

-- one row at a time, and several
INSERT INTO t VALUES (3001, 5, 0);
SELECT same('SELECT * FROM t WHERE k < 30', 't_k');
INSERT INTO t VALUES (3002, 5, 0), (3003, 15, 0), (3004, NULL, 0) RETURNING id, k;
SELECT same('SELECT * FROM t WHERE k < 30', 't_k');
SELECT same('SELECT * FROM t WHERE k IS NULL', 't_k');
INSERT INTO t (id) VALUES (3005);
SELECT same('SELECT * FROM t WHERE k IS NULL', 't_k');

-- an update that leaves the key makes no new entry; one that changes it does
UPDATE t SET v = v + 1 WHERE k = 50;
UPDATE t SET v = v + 1 WHERE k = 50;
SELECT * FROM t WHERE k = 50;
SELECT same('SELECT * FROM t WHERE k = 50', 't_k');
UPDATE t SET k = 55 WHERE k = 50 RETURNING *;
SELECT same('SELECT * FROM t WHERE k BETWEEN 40 AND 60', 't_k');
UPDATE t SET k = 50 WHERE k = 55;
SELECT same('SELECT * FROM t WHERE k BETWEEN 40 AND 60', 't_k');
UPDATE t SET k = NULL WHERE k = 60;
UPDATE t SET k = 61 WHERE k IS NULL;
SELECT same('SELECT * FROM t WHERE k BETWEEN 40 AND 80', 't_k');
SELECT same('SELECT * FROM t WHERE k IS NULL', 't_k');

-- chains of HOT updates with a key change in the middle
DO $$
BEGIN
	FOR i IN 1..30 LOOP
		UPDATE t SET v = v + 1 WHERE id BETWEEN 100 AND 110;
		IF i % 10 = 0 THEN
			UPDATE t SET k = k + 1 WHERE id BETWEEN 105 AND 107;
		END IF;
	END LOOP;
END $$;
SELECT id, k, v FROM t WHERE k BETWEEN 1000 AND 1103 ORDER BY k;
SELECT same('SELECT * FROM t WHERE k BETWEEN 1000 AND 1103', 't_k');

-- the same values back and forth: no row twice
UPDATE t SET k = -k;
SELECT same('SELECT * FROM t WHERE k < 0', 't_k');
SELECT same('SELECT * FROM t WHERE k > 0', 't_k');
UPDATE t SET k = -k;
SELECT same('SELECT * FROM t WHERE k < 0', 't_k');
SELECT same('SELECT * FROM t WHERE k > 0', 't_k');
-- an update driven by the index that it changes: every row once
SET enable_seqscan = off;
UPDATE t SET k = k + 100000, v = -1 WHERE k > 20000;
RESET enable_seqscan;
SELECT same('SELECT * FROM t WHERE k > 20000', 't_k');
SELECT count(*), min(k), max(k) FROM t WHERE v = -1;

-- deletes
DELETE FROM t WHERE k = 70 RETURNING *;
SELECT same('SELECT * FROM t WHERE k = 70', 't_k');
DELETE FROM t WHERE k > 500 AND k < 900;
SELECT same('SELECT * FROM t WHERE k > 400 AND k < 1000', 't_k');
DELETE FROM t WHERE k = ANY ('{1000,1010,1020}');
SELECT same('SELECT * FROM t WHERE k > 990 AND k < 1050', 't_k');

-- data-modifying WITH, all on one snapshot
WITH gone AS (DELETE FROM t WHERE k BETWEEN 1500 AND 1600 RETURNING *),
	come AS (INSERT INTO t SELECT id, k + 1, 7 FROM gone RETURNING *)
SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM come), (SELECT count(*) FROM t WHERE k BETWEEN 1500 AND 1601);
SELECT same('SELECT * FROM t WHERE k BETWEEN 1500 AND 1601', 't_k');

-- MERGE
MERGE INTO t USING generate_series(1601, 1640) s ON t.k = s
	WHEN MATCHED AND s % 20 = 0 THEN DELETE
	WHEN MATCHED THEN UPDATE SET k = t.k + 3
	WHEN NOT MATCHED THEN INSERT VALUES (9000 + s, s, 9);
SELECT same('SELECT * FROM t WHERE k BETWEEN 1600 AND 1650', 't_k');

-- ON CONFLICT: by a btree's uniqueness, and by any conflict at all
CREATE UNIQUE INDEX t_id ON t (id);
INSERT INTO t VALUES (5, 77, 0), (50000, 78, 0) ON CONFLICT (id) DO NOTHING;
SELECT same('SELECT * FROM t WHERE k IN (77, 78)', 't_k');
INSERT INTO t VALUES (5, 77, 0), (50001, 79, 0) ON CONFLICT (id) DO UPDATE SET k = excluded.k;
SELECT same('SELECT * FROM t WHERE k BETWEEN 70 AND 79', 't_k');
INSERT INTO t VALUES (50002, 88, 0), (5, 89, 0) ON CONFLICT DO NOTHING;
SELECT same('SELECT * FROM t WHERE k IN (88, 89)', 't_k');
-- a failed statement leaves nothing behind
INSERT INTO t VALUES (50003, 91, 0), (5, 92, 0);
SELECT same('SELECT * FROM t WHERE k IN (91, 92)', 't_k');
DROP INDEX t_id;

-- COPY
COPY t FROM stdin;
60001	-1	0
60002	\N	0
60003	-3	0
\.
SELECT same('SELECT * FROM t WHERE k < 0', 't_k');
SELECT same('SELECT * FROM t WHERE k IS NULL', 't_k');
COPY t FROM stdin;
60004	-4	0
60005	x	0
\.
SELECT same('SELECT * FROM t WHERE k < 0', 't_k');

-- many rows, more than any buffer holds, beside a twin that is only heap
CREATE TABLE big (k bigint, id int);
CREATE INDEX big_k ON big USING gpu_btree (k);
INSERT INTO big SELECT (i::bigint * 7919) % 200003, i FROM generate_series(1, 200000) i;
SELECT same('SELECT * FROM big WHERE k BETWEEN 1000 AND 60000', 'big_k');
DELETE FROM big WHERE k % 3 = 0;
UPDATE big SET k = k + 200000 WHERE k % 7 = 0;
INSERT INTO big SELECT i, -i FROM generate_series(1, 30000) i;
SELECT same('SELECT * FROM big WHERE k BETWEEN 1000 AND 60000', 'big_k');
SELECT same('SELECT k FROM big ORDER BY k', 'big_k', true);

-- generated columns and rules that move the key
CREATE TABLE g (a int, k int GENERATED ALWAYS AS (a * 2) STORED);
CREATE INDEX g_k ON g USING gpu_btree (k);
INSERT INTO g SELECT generate_series(1, 1000);
UPDATE g SET a = a + 1000 WHERE a % 2 = 0;
SELECT same('SELECT * FROM g WHERE k > 500', 'g_k');

-- foreign keys whose referencing side only has this index
CREATE TABLE parent (id int PRIMARY KEY);
CREATE TABLE child (id int, parent int REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE);
CREATE INDEX child_parent ON child USING gpu_btree (parent);
INSERT INTO parent SELECT generate_series(1, 200);
INSERT INTO child SELECT i, i % 200 + 1 FROM generate_series(1, 2000) i;
SET enable_seqscan = off;
DELETE FROM parent WHERE id % 10 = 0;
UPDATE parent SET id = id + 1000 WHERE id % 10 = 1;
RESET enable_seqscan;
SELECT count(*), count(*) FILTER (WHERE parent > 1000), count(*) FILTER (WHERE parent % 10 = 0) FROM child;
SELECT same('SELECT * FROM child WHERE parent > 100', 'child_parent');
