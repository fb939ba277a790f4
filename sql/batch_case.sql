-- Aggregates of CASE, and of what says the same: COALESCE and NULLIF.
\set test test_batch_case
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

CREATE TABLE t (at timestamp, account int, status int2, yes bool, amount numeric(12, 2), v bigint, w int, d float8) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT timestamp '2000-01-01' + i * interval '7 minutes', i % 97, nullif(i % 5, 4), CASE i % 3 WHEN 0 THEN true WHEN 1 THEN false END,
	nullif(i % 100, 7) / 100.0, nullif(i % 1000, 5), nullif(i % 11, 0) - 5, i % 8
FROM generate_series(1, 20000) i;
CREATE INDEX t_at ON t USING gpu_btree (at) INCLUDE (account, status, yes, amount, v, w, d);
CREATE TABLE parted (LIKE t) PARTITION BY LIST (status);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
CREATE TABLE parted_others PARTITION OF parted DEFAULT;
INSERT INTO parted SELECT * FROM t WHERE at < '2000-02-01';
UPDATE parted SET amount = 'NaN' WHERE status = 2;
CREATE INDEX parted_at ON parted USING gpu_btree (at) INCLUDE (account, status, yes, amount, v, w, d);
VACUUM ANALYZE t, parted;
SET cpu_operator_cost = 0;
SET random_page_cost = 0.1;

CREATE TABLE measure (place serial, measure text);
INSERT INTO measure (measure) VALUES
	('sum(CASE status WHEN 1 THEN v ELSE 0 END)'),
	('sum(CASE status WHEN 1 THEN v END), avg(CASE status WHEN 2 THEN w ELSE 7 END)'),
	('count(CASE status WHEN 1 THEN 1 END), count(CASE WHEN yes THEN v END)'),
	('sum(CASE yes WHEN true THEN 1 ELSE 0 END)'),
	('sum(CASE WHEN yes THEN amount END), avg(CASE status WHEN 3 THEN amount END)'),
	('sum(COALESCE(v, 0)), avg(COALESCE(v, -3)), min(COALESCE(w, -100)), max(COALESCE(w, 100))'),
	('sum(COALESCE(w, 1)), stddev(COALESCE(w, 2))'),
	('count(NULLIF(status, 0)), sum(NULLIF(v, 10)), avg(NULLIF(w, 3)), min(NULLIF(w, -5))'),
	('sum(NULLIF(amount, 0)), avg(NULLIF(amount, 0.5))'),
	('sum(NULLIF(v, 10)) FILTER (WHERE yes)'),
	('sum(NULLIF(v, NULL))'),
	-- as many digits as what is met has: the column's, or the constants'
	('sum(CASE WHEN yes THEN amount ELSE 0 END), avg(CASE WHEN yes THEN amount ELSE 0.000 END)'),
	('sum(CASE WHEN v < 0 THEN amount ELSE 0 END), sum(CASE WHEN v < 0 THEN amount ELSE 0.125 END)'),
	('sum(CASE WHEN status IS NULL THEN amount ELSE -1.5 END), sum(COALESCE(amount, 0)), avg(COALESCE(amount, 7))'),
	('avg(CASE WHEN yes THEN 1.0 ELSE 0 END), sum(CASE status WHEN 1 THEN 0.25 END), sum(CASE WHEN yes THEN 2 ELSE 0.50 END)'),
	('max(CASE WHEN yes THEN at END), avg(CASE WHEN yes THEN d ELSE 0 END), sum(CASE status WHEN 1 THEN d END)'),
	-- core's nodes: no number, least of equal numbers, several WHEN, expressions, columns
	('sum(CASE WHEN yes THEN amount ELSE ''NaN'' END)'),
	('min(COALESCE(amount, 1000))'),
	('sum(CASE status WHEN 1 THEN v WHEN 2 THEN w END)'),
	('sum(CASE status WHEN 1 THEN v + 1 END)'),
	('sum(COALESCE(v, w))'),
	('sum(NULLIF(v, w))'),
	('count(COALESCE(v, w))'),
	('sum(CASE CASE status WHEN 1 THEN 2 END WHEN 2 THEN v END)');
SELECT place, same_aggregate('SELECT ' || measure || ' FROM t WHERE at > ''2000-02-01'''),
	same_aggregate('SELECT status, ' || measure || ' FROM t WHERE at > ''2000-02-01'' GROUP BY status'),
	same_aggregate('SELECT ' || measure || ' FROM parted')
FROM measure ORDER BY place;
-- of no rows, by whatever plan
SELECT split_part(same_aggregate('SELECT sum(CASE status WHEN 1 THEN v ELSE 0 END), sum(COALESCE(w, 1)), sum(COALESCE(amount, 1)), count(NULLIF(status, 0)) FROM t WHERE at > ''2100-01-01'''), ',', 1);
DROP SCHEMA :test CASCADE;
