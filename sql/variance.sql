-- GpudsAggregate: variances and standard deviations of integers, which core makes of sums and sums of squares.
\set test test_variance
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

CREATE DOMAIN amount AS bigint;
CREATE TABLE t (k int, day date, kind int2, small int2, middle int, large bigint, far bigint NOT NULL, price amount)
WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i % 500, date '2020-01-01' + i % 300, i % 7, nullif(i % 65536 - 32768, 77), nullif((i * 7919) % 100000 - 50000, 3),
	i * bigint '1000003' * 5 - 7777777777, CASE i % 3 WHEN 0 THEN 9223372036854775807 WHEN 1 THEN -9223372036854775808 ELSE i - 20000 END, i % 13
FROM generate_series(1, 20000) i;
-- groups with one row, with NULLs only, and with one value
INSERT INTO t (k, day, far) VALUES (1000, '2021-01-01', -1), (1001, '2021-01-02', 0), (1001, '2021-01-02', 0), (NULL, NULL, 5);
INSERT INTO t (k, day, far, small, middle, large) SELECT 1002, '2021-01-03', 4, 5, -6, -7 FROM generate_series(1, 3);
INSERT INTO t (k, day, far, small, middle, large) VALUES (1003, '2021-01-04', 1, -32768, -2147483648, -9223372036854775808),
	(1003, '2021-01-04', 1, 32767, 2147483647, 9223372036854775807), (1003, '2021-01-04', 1, 0, 0, 0);
CREATE INDEX t_k ON t USING gpu_btree (k) INCLUDE (small, middle, kind);
CREATE INDEX t_large ON t USING gpu_btree (large);
CREATE INDEX t_down ON t USING gpu_btree (far DESC, kind);
CREATE INDEX t_day ON t USING gpu_btree (day) INCLUDE (large, kind, price);
VACUUM ANALYZE t;
SET cpu_operator_cost = 0;
SET random_page_cost = 0.1;

CREATE TABLE query (place serial, query text);
INSERT INTO query (query) VALUES
	('SELECT stddev(small), stddev_pop(small), stddev_samp(small), variance(small), var_pop(small), var_samp(small) FROM t WHERE k >= 0'),
	('SELECT stddev(middle), stddev_pop(middle), stddev_samp(middle), variance(middle), var_pop(middle), var_samp(middle) FROM t WHERE k >= 0'),
	('SELECT stddev(large), stddev_pop(large), stddev_samp(large), variance(large), var_pop(large), var_samp(large) FROM t WHERE large IS NOT NULL'),
	('SELECT stddev(far), variance(far), sum(far), avg(far), count(*) FROM t WHERE far IS NOT NULL'),
	('SELECT stddev(far), var_pop(far) FROM t WHERE far < -5'),
	-- of nothing, and of one row
	('SELECT stddev(middle), var_pop(middle), count(*) FROM t WHERE k = 77777'),
	('SELECT stddev(middle), var_pop(middle), count(*) FROM t WHERE k = 1000'),
	('SELECT stddev(large), var_pop(large), var_samp(large) FROM t WHERE large = 42 OR large = 9223372036854775807'),
	-- beside each other, in either order, and in expressions
	('SELECT sum(middle), stddev(middle), sum(middle), max(middle), avg(middle), var_pop(middle), count(middle), count(*) FROM t WHERE k < 300'),
	('SELECT stddev(small) / nullif(avg(small), 0), 2 * stddev(middle) FROM t WHERE k < 300 HAVING stddev(middle) > 1'),
	-- groups of leading columns, of others, and of what is computed
	('SELECT k, stddev(small), variance(middle) FROM t GROUP BY k'),
	('SELECT k, stddev(small) FROM t WHERE k > 400 GROUP BY k ORDER BY k'),
	('SELECT kind, stddev(small), var_pop(middle), count(*) FROM t WHERE k >= 0 GROUP BY kind'),
	('SELECT kind, k, stddev(small) FROM t WHERE k > 200 GROUP BY kind, k HAVING stddev(small) > 5000'),
	('SELECT date_trunc(''month'', day::timestamp), stddev(large), sum(large) FROM t WHERE day > ''2020-01-05'' GROUP BY 1'),
	('SELECT extract(dow FROM day), kind, stddev(large) FROM t WHERE day > ''2020-01-05'' GROUP BY 1, 2'),
	('SELECT far, stddev(kind), stddev(far) FROM t WHERE far > 0 GROUP BY far'),
	-- with conditions
	('SELECT stddev(middle) FILTER (WHERE kind = 3), stddev(middle), sum(middle) FILTER (WHERE kind = 3) FROM t WHERE k >= 0'),
	('SELECT stddev(CASE WHEN kind = 2 THEN small END), stddev(CASE WHEN kind = 2 THEN middle ELSE 5 END), var_pop(CASE WHEN kind > 3 THEN 1 ELSE -1 END) FROM t WHERE k >= 0'),
	('SELECT kind, var_samp(large) FILTER (WHERE large > 0) FROM t WHERE day > ''2020-01-05'' GROUP BY kind');
SELECT place, same_aggregate(query) FROM query ORDER BY place;

-- of a domain, and core's nodes: of what is not an integer
INSERT INTO query (query) VALUES
	('SELECT stddev(price) FROM t WHERE day > ''2020-01-05'''),
	('SELECT stddev(middle::float8) FROM t WHERE k >= 0');
SELECT place, same_aggregate(query) FROM query WHERE place > 20 ORDER BY place;

-- rows that have changed since VACUUM
DELETE FROM t WHERE k % 10 = 3;
UPDATE t SET middle = middle + 1, large = large - 1 WHERE k % 10 = 4;
SELECT place, same_aggregate(query) FROM query WHERE place <= 20 ORDER BY place;

SET enable_seqscan = off;
SET gpuds.enable_aggregate = on;
EXPLAIN (COSTS OFF) SELECT stddev(middle) FROM t WHERE k >= 0;
EXPLAIN (COSTS OFF) SELECT kind, stddev(middle) FROM t WHERE k >= 0 GROUP BY kind;
RESET enable_seqscan;

-- partitions
CREATE TABLE p (k int, v bigint, w int) PARTITION BY RANGE (k);
CREATE TABLE p_1 PARTITION OF p FOR VALUES FROM (0) TO (100);
CREATE TABLE p_2 PARTITION OF p FOR VALUES FROM (100) TO (200);
CREATE TABLE p_3 PARTITION OF p FOR VALUES FROM (200) TO (300);
INSERT INTO p SELECT i % 200, i * 12345678901, i FROM generate_series(1, 5000) i;
CREATE INDEX p_k ON p USING gpu_btree (k) INCLUDE (v, w);
VACUUM ANALYZE p;
SELECT same_aggregate('SELECT stddev(v), stddev(w), var_pop(w), sum(w) FROM p WHERE k >= 0');
SELECT same_aggregate('SELECT k, stddev(v), stddev(w) FROM p WHERE k >= 50 GROUP BY k');
SELECT same_aggregate('SELECT stddev(v), count(*) FROM p WHERE k >= 200');

DROP SCHEMA :test CASCADE;
