--
-- dashboards.sql: tables, shapes and functions of bench/dashboards
--
-- Variables: rows, method.
--
-- An event comes every 6.3 seconds from 2024 on.  Accounts and statuses are skewed a little, as they are:
-- an account of low number has many events.

CREATE SCHEMA bt;
CREATE SCHEMA gp;
SELECT setseed(0.5);
CREATE TABLE bt.t (at timestamptz NOT NULL, account int NOT NULL, status int2, amount numeric(12,2), v float8, note text);
INSERT INTO bt.t
SELECT '2024-01-01'::timestamptz + i * interval '6.3 s', (random() * random() * 5000)::int, nullif((random() * 5)::int, 5),
	(random() * 100000)::numeric(12,2), random() * 100, 'some words that take room'
FROM generate_series(1, :rows) i;
CREATE TABLE gp.t (LIKE bt.t);
INSERT INTO gp.t SELECT * FROM bt.t;
CREATE TABLE bt.accounts AS SELECT i AS account, i % 20 AS region FROM generate_series(0, 5000) i;
CREATE TABLE gp.accounts AS SELECT * FROM bt.accounts;
-- What belongs to an event in twenty; of a tenth of it the event is missing.
CREATE TABLE bt.parts AS SELECT '2024-01-01'::timestamptz + i * interval '6.3 s' + CASE WHEN i % 200 = 0 THEN interval '1 s' ELSE '0' END AS at
	FROM generate_series(20, :rows, 20) i;
CREATE TABLE gp.parts AS SELECT * FROM bt.parts;
CREATE INDEX t_at ON bt.t (at) INCLUDE (account, status, amount, v);
CREATE INDEX t_account ON bt.t (account, at);
CREATE INDEX parts_at ON bt.parts (at);
CREATE INDEX t_at ON gp.t USING :method (at) INCLUDE (account, status, amount, v);
CREATE INDEX t_account ON gp.t USING :method (account, at);
CREATE INDEX parts_at ON gp.parts USING :method (at);
VACUUM (ANALYZE) bt.t;
VACUUM (ANALYZE) gp.t;
VACUUM (ANALYZE) bt.parts;
VACUUM (ANALYZE) gp.parts;
ANALYZE bt.accounts;
ANALYZE gp.accounts;
CHECKPOINT;

-- {TENTH} is a tenth of the time, in its middle.
CREATE TABLE bench.shape (place serial, name text, title text, statement text);
INSERT INTO bench.shape (name, title, statement) VALUES
	('count', 'count', 'SELECT count(*) FROM t WHERE {TENTH}'),
	('days', 'count and sum by day', 'SELECT date_trunc(''day'', at), count(*), sum(amount) FROM t WHERE {TENTH} GROUP BY 1'),
	('days_order', 'the same, ordered', 'SELECT date_trunc(''day'', at), count(*), sum(amount) FROM t WHERE {TENTH} GROUP BY 1 ORDER BY 1'),
	('days_all', 'the same of all', 'SELECT date_trunc(''day'', at), count(*), sum(amount) FROM t GROUP BY 1 ORDER BY 1'),
	('status_is', 'count by a condition on an included column', 'SELECT count(*) FROM t WHERE {TENTH} AND status = 2'),
	('status_is_all', 'the same of all', 'SELECT count(*) FROM t WHERE status = 2'),
	('conditions', 'sum by conditions with OR and IN', 'SELECT count(*), sum(amount) FROM t WHERE {TENTH} AND (status IN (1, 3) OR amount > 90000 AND account <> 7)'),
	('account_is', 'sum of one account by day', 'SELECT date_trunc(''day'', at), count(*) FROM t WHERE account = 77 GROUP BY 1'),
	('accounts_are', 'count of ten accounts by month', 'SELECT date_trunc(''month'', at), count(*) FROM t WHERE account = ANY (''{1,2,3,5,8,13,21,34,55,89}'') GROUP BY 1'),
	('status', 'count and sum by status', 'SELECT status, count(*), sum(amount) FROM t WHERE {TENTH} GROUP BY status'),
	('status_all', 'the same of all', 'SELECT status, count(*), sum(amount) FROM t GROUP BY status'),
	('day_status', 'by day and status', 'SELECT date_trunc(''day'', at), status, count(*) FROM t WHERE {TENTH} GROUP BY 1, 2'),
	('day_status_all', 'the same of all', 'SELECT date_trunc(''day'', at), status, count(*) FROM t GROUP BY 1, 2 ORDER BY 1, 2'),
	('accounts', 'by account', 'SELECT account, count(*), sum(amount) FROM t WHERE {TENTH} GROUP BY account'),
	('accounts_top', 'the ten first accounts', 'SELECT account, sum(amount) FROM t WHERE {TENTH} GROUP BY account ORDER BY 2 DESC, 1 LIMIT 10'),
	('accounts_all', 'count by account of all', 'SELECT account, count(*) FROM t GROUP BY account'),
	('filter', 'by day, three counts with FILTER', 'SELECT date_trunc(''day'', at), count(*) FILTER (WHERE status = 1), count(*) FILTER (WHERE status = 2), count(*) FILTER (WHERE amount > 50000) FROM t WHERE {TENTH} GROUP BY 1'),
	('case', 'by day, sum of CASE', 'SELECT date_trunc(''day'', at), sum(CASE WHEN status = 1 THEN amount ELSE 0 END), sum(CASE WHEN status = 2 THEN 1 ELSE 0 END) FROM t WHERE {TENTH} GROUP BY 1'),
	('hour', 'by hour of the day', 'SELECT extract(hour FROM at), count(*) FROM t WHERE {TENTH} GROUP BY 1'),
	('hour_all', 'the same of all', 'SELECT extract(hour FROM at), count(*) FROM t GROUP BY 1'),
	('dow_status', 'by day of the week and status', 'SELECT extract(dow FROM at), status, sum(amount) FROM t WHERE {TENTH} GROUP BY 1, 2'),
	('zone', 'by day in another zone', 'SELECT date_trunc(''day'', at AT TIME ZONE ''America/New_York''), count(*), sum(amount) FROM t WHERE {TENTH} GROUP BY 1'),
	('zone3', 'by date_trunc with a zone', 'SELECT date_trunc(''day'', at, ''Asia/Tokyo''), count(*) FROM t WHERE {TENTH} GROUP BY 1'),
	('months', 'by to_char', 'SELECT to_char(at, ''YYYY-MM''), count(*) FROM t GROUP BY 1'),
	('avg', 'averages and extremes of all by status', 'SELECT status, avg(amount), min(at), max(at), max(v) FROM t GROUP BY status'),
	('region', 'by a column of a joined table', 'SELECT region, count(*) FROM t JOIN accounts USING (account) WHERE {TENTH} GROUP BY region'),
	('distinct', 'count of distinct accounts', 'SELECT count(DISTINCT account) FROM t WHERE {TENTH}'),
	('distinct_count', 'the same, and count', 'SELECT count(*), count(DISTINCT account) AS accounts FROM t WHERE {TENTH}'),
	('distinct_status', 'the same by status', 'SELECT status, count(*), count(DISTINCT account) AS accounts FROM t WHERE {TENTH} GROUP BY status'),
	('distinct_filter', 'distinct accounts with FILTER', 'SELECT count(DISTINCT account) FILTER (WHERE status = 1) AS ones, count(DISTINCT account) AS accounts FROM t WHERE {TENTH}'),
	('accounts_count', 'count by account', 'SELECT account, count(*) FROM t WHERE {TENTH} GROUP BY account'),
	('rollup', 'ROLLUP of status', 'SELECT status, count(*) FROM t WHERE {TENTH} GROUP BY ROLLUP (status)'),
	('median', 'the median of all', 'SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY at) FROM t'),
	('percentiles', 'three percentiles of a tenth', 'SELECT count(*), min(at), percentile_disc(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY at) FROM t WHERE {TENTH}'),
	('accounts_median', 'medians by account', 'SELECT account, count(*), percentile_disc(0.5) WITHIN GROUP (ORDER BY at) FROM t GROUP BY account'),
	('account_median', 'the median of one account', 'SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY at) FROM t WHERE account = 77'),
	('rollup2', 'ROLLUP of day and status', 'SELECT date_trunc(''day'', at), status, count(*), sum(amount) FROM t WHERE {TENTH} GROUP BY ROLLUP (1, 2)'),
	('rollup2_all', 'the same of all', 'SELECT date_trunc(''day'', at), status, count(*), sum(amount) FROM t GROUP BY ROLLUP (1, 2)'),
	('cube', 'CUBE of account and status', 'SELECT account, status, count(*) FROM t WHERE {TENTH} GROUP BY CUBE (account, status)'),
	('pairs', 'count of a join by an index of each table', 'SELECT count(*) FROM t JOIN parts USING (at)'),
	('without', 'rows of a twentieth without others', 'SELECT count(*) FROM parts WHERE NOT EXISTS (SELECT FROM t WHERE t.at = parts.at)'),
	('without_all', 'rows of all without a twentieth''s', 'SELECT count(*) FROM t WHERE NOT EXISTS (SELECT FROM parts WHERE parts.at = t.at)'),
	('both', 'INTERSECT of the two', 'SELECT count(*) FROM (SELECT at FROM parts INTERSECT SELECT at FROM t) q'),
	('only', 'EXCEPT of the two', 'SELECT count(*) FROM (SELECT at FROM parts EXCEPT SELECT at FROM t) q'),
	('twice', 'values that come twice', 'SELECT count(*) FROM (SELECT at FROM t GROUP BY at HAVING count(*) > 1) q'),
	('page', 'a page far behind', 'SELECT at FROM t ORDER BY at OFFSET {HALF} LIMIT 20');
UPDATE bench.shape SET statement = replace(replace(statement, '{HALF}', (:rows / 2)::text), '{TENTH}',
	format('at >= %L AND at < %L', '2024-01-01'::timestamptz + :rows * 0.45 * interval '6.3 s', '2024-01-01'::timestamptz + :rows * 0.55 * interval '6.3 s'));

CREATE FUNCTION bench.plan(shape text, options text) RETURNS SETOF text LANGUAGE plpgsql AS
$$
BEGIN
	RETURN QUERY EXECUTE format('EXPLAIN (%s) ', options) || (SELECT s.statement FROM bench.shape s WHERE s.name = shape);
END
$$;

-- The time of the faster of two runs, after one that is not counted, and what they answer.  The answer is made of the
-- rows after the time has been taken.
CREATE FUNCTION bench.times(shape text, OUT ms float8, OUT answer text) LANGUAGE plpgsql AS
$$
DECLARE
	query text := (SELECT s.statement FROM bench.shape s WHERE s.name = shape);
	started timestamptz;
BEGIN
	EXECUTE format('SELECT count(*) || '' '' || coalesce(sum(hashtextextended(q::text, 0))::text, '''') FROM (%s) q', query) INTO answer;
	FOR i IN 1 .. 2 LOOP
		started := clock_timestamp();
		EXECUTE query;
		ms := least(ms, extract(epoch FROM clock_timestamp() - started) * 1000);
	END LOOP;
END
$$;
