-- Hashed groups of one table, which GpudsAggregate gives whole, also those that there was no memory for.
\set test test_hashed_groups
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

-- Without statistics the planner expects 200 values of each column.
CREATE TABLE t (at int, k int, kind int2, big int8, u uuid, amount numeric(12, 2), f float8) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, nullif(i % 6007, 5), nullif(i % 3, 2), CASE WHEN i % 2 = 0 THEN 9000000000000000000 + i % 50 END, md5((i % 4001)::text)::uuid,
	CASE WHEN i % 9000 = 77 THEN 'NaN' ELSE nullif(i % 700, 3) / 100.0 END, CASE i % 10 WHEN 3 THEN '-0' ELSE i % 10 END
FROM generate_series(1, 20000) i;
CREATE INDEX t_at ON t USING gpu_btree (at) INCLUDE (k, kind, big, amount, f);
CREATE INDEX t_at_u ON t USING gpu_btree (at) INCLUDE (u, k, kind, f);
VACUUM t;
SET cpu_operator_cost = 0;
SET random_page_cost = 0.1;
CREATE TABLE query (place serial, query text);
INSERT INTO query (query) VALUES
	('SELECT k, count(*) FROM t WHERE at > 0 GROUP BY k'),
	('SELECT k, count(amount), sum(amount), avg(amount), min(amount), max(amount), sum(big), avg(kind) FROM t WHERE at > 0 GROUP BY k'),
	('SELECT u, count(*), sum(f), avg(f), max(f), min(at), sum(k) FILTER (WHERE kind = 1) FROM t WHERE at > 0 GROUP BY u'),
	('SELECT k, sum(CASE WHEN kind = 1 THEN amount ELSE 0 END) FROM t WHERE at > 0 AND kind < 2 GROUP BY k HAVING count(*) > 1'),
	('SELECT * FROM (SELECT k, sum(big) FROM t WHERE at > 0 GROUP BY k ORDER BY 2 DESC NULLS LAST, 1 LIMIT 10) q'),
	('SELECT DISTINCT u FROM t WHERE at > 0'),
	('SELECT x, q.* FROM generate_series(0, 2) x, LATERAL (SELECT k, count(*), max(u::text) FROM (SELECT k, u, count(*) FROM t WHERE at > x * 5000 GROUP BY k, u) w GROUP BY k) q');
SELECT place, same_aggregate(query) FROM query ORDER BY place;
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT place, same_aggregate(query) FROM query ORDER BY place;
-- rows that have changed since VACUUM
UPDATE t SET k = k + 1 WHERE at BETWEEN 5000 AND 5100;
DELETE FROM t WHERE at BETWEEN 7000 AND 7100;
SELECT place, same_aggregate(query) FROM query ORDER BY place;

SET gpuds.enable_aggregate = on;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT k, sum(big) FROM t WHERE at > 0 GROUP BY k HAVING count(*) > 1;
CREATE FUNCTION writes_files(query text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ' || query INTO plan;
	RETURN (plan -> 0 -> 'Plan' ->> 'Temp Written Blocks')::int > 0;
END $$;
SELECT writes_files('SELECT k, count(*) FROM t WHERE at > 0 GROUP BY k'), writes_files('SELECT kind, count(*) FROM t WHERE at > 0 GROUP BY kind');
-- files are given back, whether all groups are taken or not, and in a scan that begins anew
BEGIN;
DECLARE c CURSOR FOR SELECT k, count(*) FROM t WHERE at > 0 GROUP BY k;
MOVE 100 FROM c;
SAVEPOINT s;
DECLARE d CURSOR FOR SELECT k, count(*) FROM t WHERE at > 0 GROUP BY k;
MOVE 100 FROM d;
ROLLBACK TO s;
MOVE ALL FROM c;
CLOSE c;
COMMIT;
SELECT count(*), sum((SELECT sum(n) FROM (SELECT count(*) AS n FROM t WHERE at > x AND at < x + 10000 GROUP BY k) q)) FROM generate_series(0, 2) x;
SELECT count(*) FROM pg_ls_tmpdir() WHERE name LIKE '%' || pg_backend_pid() || '.%';
-- more groups than there is memory for, as the statistics say, are core's to put together
ANALYZE t;
SELECT same_aggregate('SELECT k, count(*) FROM t WHERE at > 0 GROUP BY k');
RESET work_mem;
SELECT same_aggregate('SELECT kind, count(*) FROM t WHERE at > 0 GROUP BY kind');
