-- GpudsOffset and GpudsPercentile of tables with children: the rows of several indexes are merged, or follow each other.
\set test test_children_order
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

-- Partitions whose rows have to be merged: by hashes, one with other columns, two that are alike but for an index.
CREATE TABLE h (id int NOT NULL, k int, f float8, n int2, pad text) PARTITION BY HASH (id);
CREATE TABLE h_0 PARTITION OF h FOR VALUES WITH (MODULUS 4, REMAINDER 0);
CREATE TABLE h_1 (gone int, pad text, n int2, f float8, id int NOT NULL, k int);
ALTER TABLE h_1 DROP COLUMN gone;
ALTER TABLE h ATTACH PARTITION h_1 FOR VALUES WITH (MODULUS 4, REMAINDER 1);
CREATE TABLE h_2 PARTITION OF h FOR VALUES WITH (MODULUS 4, REMAINDER 2) PARTITION BY LIST (n);
CREATE TABLE h_2_1 PARTITION OF h_2 FOR VALUES IN (0, 1);
CREATE TABLE h_2_2 PARTITION OF h_2 DEFAULT;
CREATE TABLE h_3 PARTITION OF h FOR VALUES WITH (MODULUS 4, REMAINDER 3);
INSERT INTO h SELECT i, nullif(i * 7919 % 5003, 5), CASE i % 5 WHEN 0 THEN '-0'::float8 WHEN 1 THEN 0 WHEN 2 THEN 'NaN' WHEN 3 THEN NULL ELSE i % 1000 - 500 END,
	i % 3, 'row ' || i FROM generate_series(1, 20000) i;
INSERT INTO h (id, k) SELECT i, NULL FROM generate_series(20001, 23000) i;
-- one value of many rows
INSERT INTO h (id, k, n) SELECT i, 4000, 3 FROM generate_series(23001, 33000) i;
CREATE INDEX h_id ON h USING gpu_btree (id);
CREATE INDEX h_k ON h USING gpu_btree (k);
CREATE INDEX h_k_id ON h USING gpu_btree (k DESC, id);
CREATE INDEX h_f ON h USING gpu_skiplist (f);
CREATE INDEX h_n_k ON h USING gpu_btree (n, k) INCLUDE (id);
CREATE INDEX h_0_first ON h_0 USING gpu_btree (k NULLS FIRST, id);
VACUUM ANALYZE h;
-- Partitions in the order of rows, two of them empty.
CREATE TABLE r (at timestamp, v int) PARTITION BY RANGE (at);
CREATE TABLE r_0 PARTITION OF r FOR VALUES FROM ('2025-01-01') TO ('2025-01-04');
CREATE TABLE r_1 PARTITION OF r FOR VALUES FROM ('2025-01-04') TO ('2025-01-05');
CREATE TABLE r_2 PARTITION OF r FOR VALUES FROM ('2025-01-05') TO ('2025-02-01');
CREATE TABLE r_3 PARTITION OF r FOR VALUES FROM ('2025-02-01') TO ('2025-03-01');
INSERT INTO r SELECT CASE WHEN i < 9000 THEN timestamp '2025-01-01' ELSE '2025-01-05' END + i % 9000 * interval '20 s', i FROM generate_series(0, 20000) i;
CREATE INDEX r_at ON r USING gpu_btree (at);
VACUUM ANALYZE r;
-- tables that inherit
CREATE TABLE i (k int, v int);
CREATE TABLE i_1 (more int) INHERITS (i);
CREATE TABLE i_2 () INHERITS (i);
CREATE TABLE i_3 () INHERITS (i_1, i_2);
INSERT INTO i SELECT j % 100, j FROM generate_series(1, 3000) j;
INSERT INTO i_1 SELECT j % 90, j FROM generate_series(1, 3000) j;
INSERT INTO i_3 SELECT j % 80, j FROM generate_series(1, 3000) j;
CREATE INDEX i_k ON i USING gpu_btree (k, v);
CREATE INDEX i_1_k ON i_1 USING gpu_btree (k, v);
CREATE INDEX i_2_k ON i_2 USING gpu_btree (k, v);
CREATE INDEX i_3_k ON i_3 USING gpu_btree (k, v);
VACUUM ANALYZE i, i_1, i_2, i_3;
SET cpu_operator_cost = 0;
SET seq_page_cost = 0;
SET random_page_cost = 0;
SET enable_bitmapscan = off;

\set ECHO none
-- Has a query the same answer, in sequence, with a node and by sequential scans?
CREATE FUNCTION same_rows(query text) RETURNS text LANGUAGE plpgsql AS $$
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
		ELSE split_part(answer, ' ', 1) || ' rows agree' || coalesce(', ' || substring(plan FROM 'Gpuds(?:Offset|Percentile)'), '') END;
END $$;
\set ECHO all
CREATE TABLE query (place serial, query text);
INSERT INTO query (query) VALUES
	('SELECT * FROM h ORDER BY id OFFSET 20000 LIMIT 20'),
	('SELECT id, upper(pad), tableoid::regclass, ctid FROM h ORDER BY id DESC OFFSET 20000 LIMIT 20'),
	('SELECT h FROM h ORDER BY id DESC OFFSET 20000 LIMIT 20'),
	('SELECT id FROM h ORDER BY id OFFSET 32990'),
	('SELECT id FROM h ORDER BY id OFFSET 33000 LIMIT 3'),
	('SELECT id FROM h ORDER BY id OFFSET 100000 LIMIT 3'),
	('SELECT id FROM h ORDER BY id OFFSET 20000 LIMIT 0'),
	('SELECT id FROM h WHERE id BETWEEN 5000 AND 20000 ORDER BY id DESC OFFSET 10000 LIMIT 3'),
	('SELECT id FROM h WHERE id > 5000 AND id < 4000 ORDER BY id OFFSET 9000 LIMIT 7'),
	-- NULLs, one value of many rows, equal values that look different
	('SELECT k FROM h ORDER BY k OFFSET 18000 LIMIT 9000'),
	('SELECT k FROM h ORDER BY k DESC OFFSET 12000 LIMIT 900'),
	('SELECT k, id FROM h ORDER BY k, id DESC OFFSET 19000 LIMIT 9'),
	('SELECT k FROM h WHERE k = 4000 ORDER BY k OFFSET 9000 LIMIT 3'),
	('SELECT f + 0 FROM h ORDER BY f OFFSET 10000 LIMIT 1000'),
	('SELECT f = 0 FROM h ORDER BY f DESC OFFSET 20000 LIMIT 4000'),
	-- several columns, some of them fixed
	('SELECT n, k FROM h ORDER BY n, k OFFSET 15000 LIMIT 10'),
	('SELECT n FROM h ORDER BY n DESC OFFSET 25000 LIMIT 10'),
	('SELECT k FROM h WHERE n = 3 ORDER BY k OFFSET 5000 LIMIT 10'),
	('SELECT n, k FROM h WHERE n = ANY (ARRAY[2, 0, 7]) ORDER BY n, k OFFSET 10000 LIMIT 10'),
	('SELECT n, k FROM h WHERE n > 0 AND k > 2000 ORDER BY n, k OFFSET 5000 LIMIT 10'),
	-- one after the other
	('SELECT * FROM r ORDER BY at, v OFFSET 15000 LIMIT 3'),
	('SELECT at FROM r ORDER BY at OFFSET 8999 LIMIT 3'),
	('SELECT at FROM r ORDER BY at DESC OFFSET 15000 LIMIT 300'),
	('SELECT at FROM r ORDER BY at OFFSET 9001 LIMIT 3'),
	('SELECT at FROM r ORDER BY at OFFSET 20000 LIMIT 3'),
	('SELECT at FROM r WHERE at > ''2025-01-02'' AND at < ''2025-01-06'' ORDER BY at OFFSET 7000 LIMIT 3'),
	('SELECT k, v FROM i ORDER BY k, v OFFSET 6000 LIMIT 300'),
	('SELECT k FROM i WHERE k < 50 ORDER BY k DESC OFFSET 3000 LIMIT 3'),
	-- computed, and several times
	('SELECT id FROM h ORDER BY id OFFSET (SELECT 20000) LIMIT (SELECT 3)'),
	('SELECT o.o, q.id FROM (VALUES (0), (63), (2049), (10000), (32999), (33001), (NULL)) o (o), LATERAL (SELECT id FROM h ORDER BY id OFFSET o.o LIMIT 2) q'),
	('SELECT o.o, q.id FROM (VALUES (0), (20000), (100)) o (o), LATERAL (SELECT id FROM h WHERE id > o.o ORDER BY id DESC OFFSET 5000 LIMIT 2) q'),
	('SELECT o.o, q.at FROM (VALUES (''2025-01-03''), (''2025-01-05''::timestamp)) o (o), LATERAL (SELECT at FROM r WHERE at < o.o ORDER BY at OFFSET 3000 LIMIT 2) q'),
	-- percentiles
	('SELECT percentile_disc(ARRAY[0, 0.2, 0.5, NULL, 0.9, 1]) WITHIN GROUP (ORDER BY k), count(k), min(k), max(k) FROM h'),
	('SELECT percentile_disc(0.3) WITHIN GROUP (ORDER BY k DESC), percentile_cont(0.77) WITHIN GROUP (ORDER BY id), count(*) FROM h'),
	('SELECT percentile_cont(ARRAY[0.1, 0.5]) WITHIN GROUP (ORDER BY k) FROM h WHERE n = 2'),
	('SELECT percentile_disc(0.9) WITHIN GROUP (ORDER BY f) FROM h'),
	('SELECT percentile_disc(ARRAY[0.1, 0.5, 0.6]) WITHIN GROUP (ORDER BY at), max(at) FROM r WHERE at > ''2025-01-02'''),
	('SELECT percentile_cont(0.4) WITHIN GROUP (ORDER BY k) FROM i'),
	('SELECT percentile_disc(0.4) WITHIN GROUP (ORDER BY k) FROM h WHERE id < 0'),
	('SELECT o, percentile_disc(o) WITHIN GROUP (ORDER BY id) FROM h, (VALUES (0.1), (0.8)) o (o) GROUP BY o ORDER BY o'),
	('SELECT o, (SELECT percentile_disc(o) WITHIN GROUP (ORDER BY id) FROM h WHERE id > 10000 * o) FROM (VALUES (0.1), (0.8)) o (o)'),
	-- core's nodes: orders that no index has, few rows, conditions that do not bound scans, other aggregates, groups
	('SELECT id FROM h ORDER BY id + 1 OFFSET 20000 LIMIT 3'),
	('SELECT id FROM h ORDER BY id OFFSET 2000 LIMIT 3'),
	('SELECT id FROM h WHERE pad LIKE ''%7%'' ORDER BY id OFFSET 3000 LIMIT 3'),
	('SELECT id, random() < 2 FROM h ORDER BY id OFFSET 3000 LIMIT 3'),
	('SELECT id FROM h TABLESAMPLE SYSTEM (100) ORDER BY id OFFSET 3000 LIMIT 3'),
	('SELECT percentile_disc(0.4) WITHIN GROUP (ORDER BY k), sum(id) FROM h'),
	('SELECT n, percentile_disc(0.4) WITHIN GROUP (ORDER BY k) FROM h GROUP BY n ORDER BY n');
SELECT place, same_rows(query) FROM query ORDER BY place;
-- a partition without an index, which then gets one of another kind, and one that is attached and detached
DROP INDEX h_k_id;
CREATE INDEX ON h_0 USING gpu_btree (k DESC, id);
CREATE INDEX ON h_1 USING gpu_btree (k, id DESC);
CREATE INDEX ON h_2_1 USING gpu_btree (k DESC, id);
CREATE INDEX ON h_2_2 USING gpu_btree (k DESC, id);
SELECT same_rows('SELECT k, id FROM h ORDER BY k DESC, id OFFSET 9000 LIMIT 9');
CREATE INDEX ON h_3 USING gpu_btree (k DESC, id);
SELECT same_rows('SELECT k, id FROM h ORDER BY k DESC, id OFFSET 9000 LIMIT 9');
CREATE INDEX ON h_1 USING gpu_btree (k DESC, id);
SELECT same_rows('SELECT k, id FROM h ORDER BY k DESC, id OFFSET 9000 LIMIT 9');
ALTER TABLE r DETACH PARTITION r_2;
SELECT same_rows('SELECT at FROM r ORDER BY at OFFSET 8000 LIMIT 9');
ALTER TABLE r ATTACH PARTITION r_2 DEFAULT;
SELECT same_rows('SELECT at FROM r ORDER BY at OFFSET 8000 LIMIT 9');

-- Pages make up the table, whatever their size: rows of equal keys come in one order.
\set ECHO none
CREATE FUNCTION pages(query text, size int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	rows text[];
	row text;
	n int := 0;
	plan text;
BEGIN
	SET LOCAL gpuds.enable_aggregate = on;
	SET LOCAL enable_seqscan = off;
	SET LOCAL enable_sort = off;
	SET LOCAL plan_cache_mode = force_generic_plan;
	EXECUTE format('PREPARE page (int, int) AS SELECT row::text FROM (%s OFFSET $1 LIMIT $2) row', query);
	plan := plan_of('EXECUTE page (1, 1)');
	LOOP
		FOR row IN EXECUTE format('EXECUTE page (%s, %s)', n * size, size) LOOP
			rows := rows || row;
		END LOOP;
		EXIT WHEN coalesce(array_length(rows, 1), 0) <= n * size;
		n := n + 1;
	END LOOP;
	DEALLOCATE page;
	RETURN (SELECT format('%s pages, %s rows, %s of them different%s', n, count(*), count(DISTINCT r), CASE WHEN plan LIKE '%GpudsOffset%' THEN ', GpudsOffset' END)
		FROM unnest(rows) r);
END $$;
\set ECHO all
SELECT pages('SELECT tableoid, ctid FROM h ORDER BY k', 4999);
SELECT pages('SELECT tableoid, ctid FROM h ORDER BY k DESC', 2777);
SELECT pages('SELECT tableoid, ctid FROM h ORDER BY n', 3000);
SELECT pages('SELECT tableoid, ctid FROM h ORDER BY f', 7000);

SET gpuds.enable_aggregate = on;
SET enable_seqscan = off;
SET enable_sort = off;
-- a generic plan, whose partitions are pruned as it starts, and while it runs
EXPLAIN (COSTS OFF) SELECT id, upper(pad) FROM h ORDER BY id OFFSET 20000 LIMIT 20;
ALTER TABLE r DETACH PARTITION r_2;
SET plan_cache_mode = force_generic_plan;
PREPARE page (timestamp, int, int) AS SELECT * FROM r WHERE at < $1 ORDER BY at OFFSET $2 LIMIT $3;
EXPLAIN (COSTS OFF) EXECUTE page ('2025-01-03', 100, 3);
EXECUTE page ('2025-01-03', 5000, 2);
EXECUTE page ('2025-03-03', 8998, 3);
EXECUTE page ('2024-03-03', 5000, 2);
EXECUTE page (NULL, NULL, 2);
EXECUTE page ('2025-03-03', -1, 2);
PREPARE middle (timestamp, float8) AS SELECT percentile_disc($2) WITHIN GROUP (ORDER BY at), count(at) FROM r WHERE at < $1;
EXECUTE middle ('2025-01-02', 0.5);
EXECUTE middle ('2024-01-02', 0.5);
EXECUTE middle ('2025-01-04', 1);
RESET plan_cache_mode;

-- cursors, of which one is read again and backward
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM h ORDER BY id OFFSET 20000 LIMIT 4;
DECLARE s SCROLL CURSOR FOR SELECT id FROM h ORDER BY id DESC OFFSET 20000 LIMIT 4;
FETCH 2 FROM c;
INSERT INTO h (id) VALUES (20003);
DELETE FROM h WHERE id = 20004;
FETCH ALL FROM c;
FETCH ALL FROM s;
FETCH BACKWARD 2 FROM s;
FETCH ABSOLUTE 1 FROM s;
ROLLBACK;

-- privileges are those of the parent, and of columns; security of rows
CREATE ROLE regress_children;
GRANT USAGE ON SCHEMA :test TO regress_children;
GRANT SELECT (id) ON h TO regress_children;
SET ROLE regress_children;
SELECT id FROM h ORDER BY id OFFSET 20000 LIMIT 2;
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY id) FROM h;
SELECT id FROM h ORDER BY k OFFSET 20000 LIMIT 2;
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY k) FROM h;
SELECT id FROM h_1 ORDER BY id OFFSET 5000 LIMIT 2;
RESET ROLE;
CREATE POLICY higher ON h USING (id > 10000);
ALTER TABLE h ENABLE ROW LEVEL SECURITY;
SET ROLE regress_children;
SELECT id FROM h ORDER BY id OFFSET 20000 LIMIT 2;
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY id) FROM h;
RESET ROLE;
ALTER TABLE h DISABLE ROW LEVEL SECURITY;
DROP OWNED BY regress_children;
DROP ROLE regress_children;

-- settings, temporary tables, isolation
SET enable_indexonlyscan = off;
SELECT plan_of('SELECT id FROM h ORDER BY id OFFSET 20000') LIKE '%Gpuds%' AS by_offset,
	plan_of('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY id) FROM h') LIKE '%Gpuds%' AS by_percentile;
RESET enable_indexonlyscan;
CREATE TEMPORARY TABLE temp (k int) PARTITION BY LIST (k);
CREATE TEMPORARY TABLE temp_1 PARTITION OF temp FOR VALUES IN (1, 3, 5);
CREATE TEMPORARY TABLE temp_2 PARTITION OF temp DEFAULT;
INSERT INTO temp SELECT j % 7 FROM generate_series(1, 7000) j;
CREATE INDEX temp_k ON temp USING gpu_btree (k);
ANALYZE temp;
SELECT same_rows('SELECT k FROM temp ORDER BY k OFFSET 2998 LIMIT 4');
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT id FROM h ORDER BY id OFFSET 20000 LIMIT 1;
SELECT DISTINCT relation::regclass FROM pg_locks WHERE mode = 'SIReadLock' AND relation::regclass::text ~ '^h_[0-9_]*$' ORDER BY 1;
COMMIT;

-- Rows that have changed since VACUUM, and by the transaction itself.
RESET enable_seqscan;
RESET enable_sort;
CREATE VIEW all_queries AS SELECT count(*) AS queries, count(*) FILTER (WHERE answer LIKE '%rows agree%') AS agree, count(*) FILTER (WHERE answer LIKE '%Gpuds%') > 30 AS by_nodes
FROM (SELECT same_rows(query) AS answer FROM query) q;
DELETE FROM h WHERE id % 10 = 3;
UPDATE h SET k = k + 10, f = -f WHERE id % 10 = 4;
DELETE FROM i WHERE v % 3 = 0;
SELECT * FROM all_queries;
BEGIN;
DELETE FROM h WHERE id BETWEEN 5000 AND 15000;
INSERT INTO r SELECT timestamp '2025-01-04 12:00' + j * interval '1 s', j FROM generate_series(1, 2000) j;
SAVEPOINT a;
DELETE FROM h WHERE n = 3;
SELECT * FROM all_queries;
ROLLBACK TO a;
SELECT * FROM all_queries;
ROLLBACK;
SELECT * FROM all_queries;

DROP SCHEMA :test CASCADE;
