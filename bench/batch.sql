--
-- batch.sql: tables and functions of bench/batch
--
-- Variables: rows, outer (rows of t and o), keys (an array's size), sets (arrays of
-- keys), shape.  Keys are numbered from 1; bench.key(number) looks random, so that
-- the order of an index and that of the heap have nothing in common.
--
\ir common.sql

\ir keys.sql

SELECT :'shape' = 'skewed' AS skewed \gset
SELECT bench.hot_number(:rows, :'skewed') AS hot_number, bench.absent(:rows, :'skewed') AS absent \gset

-- Arrays of different keys, all of them in t, chosen as those of o are.  In the shape "skewed" each has the key with
-- the most rows.
CREATE UNLOGGED TABLE bench.keyset (id int, keys bigint[]);
ALTER TABLE bench.keyset ALTER keys SET STORAGE external;
SELECT setseed(0.5);
INSERT INTO bench.keyset
SELECT s, (SELECT array_agg(bench.key(number) ORDER BY random())
		   FROM (SELECT :hot_number::bigint AS number WHERE :'skewed'
				 UNION ALL
				 (SELECT DISTINCT bench.number_of_outer(j, :rows, :'skewed')
				  FROM generate_series(s * 4 * :keys::bigint, (s + 1) * 4 * :keys::bigint - 1) j
				  WHERE bench.number_of_outer(j, :rows, :'skewed') < :hot_number
					 OR bench.number_of_outer(j, :rows, :'skewed') BETWEEN :hot_number + 1 AND :absent - 1)
				 LIMIT :keys) p)
FROM generate_series(1, :sets) s;

-- The statements.  $1 is an array of keys.  Tables are found by search_path, so that both sides have the same text.
CREATE TABLE bench.work (place int, section text, name text, type text, statement text);
INSERT INTO bench.work VALUES
	(1, 'any', 'any_count', 'bigint', 'SELECT count(*) FROM t WHERE k = ANY ($1)'),
	(2, 'any', 'any_sum', 'numeric', 'SELECT sum(v) FROM t WHERE k = ANY ($1)'),
	(3, 'any', 'any_contains', 'bigint', 'SELECT array_length(present($1), 1)::bigint'),
	(3, 'semi', 'exists', 'bigint', 'SELECT count(*) FROM o WHERE EXISTS (SELECT FROM t WHERE t.k = o.k)'),
	(4, 'semi', 'not_exists', 'bigint', 'SELECT count(*) FROM o WHERE NOT EXISTS (SELECT FROM t WHERE t.k = o.k)'),
	(5, 'join', 'inner', 'numeric', 'SELECT sum(t.v) FROM o JOIN t ON t.k = o.k'),
	(6, 'join', 'left', 'bigint', 'SELECT count(t.v) FROM o LEFT JOIN t ON t.k = o.k'),
	(10, 'semi', 'in_outer', 'bigint', 'SELECT count(*) FROM t WHERE k IN (SELECT k FROM o)'),
	(11, 'dedup', 'dedup', 'bigint',
	 'INSERT INTO target SELECT o.k, o.w FROM o WHERE NOT EXISTS (SELECT FROM t WHERE t.k = o.k)');
-- All keys lie between 0 and 2147483647 * 2147483629.
INSERT INTO bench.work
SELECT 6 + place, 'range', 'range_' || part, 'bigint',
	'SELECT count(*) FROM t' || CASE WHEN part < 100 THEN format(' WHERE k BETWEEN %s AND %s',
		2147483647::bigint * 2147483629 / 100 * 30, 2147483647::bigint * 2147483629 / 100 * (30 + part)) ELSE '' END
FROM unnest('{1,10,100}'::int[]) WITH ORDINALITY u (part, place);
-- With indexes that include v
INSERT INTO bench.work VALUES
	(20, 'sums', 'sums_any', 'numeric', 'SELECT sum(v) FROM t WHERE k = ANY ($1)'),
	(21, 'sums', 'sums_10', 'numeric', format('SELECT sum(v) FROM t WHERE k BETWEEN %s AND %s',
		2147483647::bigint * 2147483629 / 100 * 30, 2147483647::bigint * 2147483629 / 100 * 40)),
	(22, 'sums', 'sums_100', 'numeric', 'SELECT sum(v) FROM t WHERE k >= 0'),
	(23, 'sums', 'sums_days', 'numeric',
	 'SELECT sum(c * s) FROM (SELECT date_trunc(''day'', at), count(*) AS c, sum(v) AS s FROM t GROUP BY 1) q');
-- With indexes that include at and v
INSERT INTO bench.work
SELECT place + 10, 'wide', replace(name, 'sums', 'wide'), type, statement FROM bench.work WHERE name IN ('sums_any', 'sums_10', 'sums_100');
INSERT INTO bench.work SELECT 33, 'wide', 'wide_join', type, statement FROM bench.work WHERE name = 'inner';

/*
 * Each statement as a function, which leaves its milliseconds in the setting bench.ms.
 * RETURN QUERY may use parallel workers; SELECT INTO never does.
 */
DO
$$
DECLARE
	work bench.work;
	body text;
BEGIN
	FOR work IN SELECT * FROM bench.work LOOP
		IF work.statement LIKE 'INSERT%' THEN
			body := work.statement || '; GET DIAGNOSTICS changed = ROW_COUNT; RETURN NEXT changed';
		ELSE
			body := 'RETURN QUERY ' || work.statement;
		END IF;
		EXECUTE format($f$
			CREATE FUNCTION bench.work_%s(bigint[]) RETURNS SETOF %s LANGUAGE plpgsql AS
			$_$
			DECLARE
				started timestamptz := clock_timestamp();
				changed bigint;
			BEGIN
				%s;
				PERFORM set_config('bench.ms', (extract(epoch FROM clock_timestamp() - started) * 1000)::text, false);
			END
			$_$ $f$, work.name, work.type, body);
	END LOOP;
END
$$;

CREATE TABLE bench.answer (name text, round int, answer numeric);

-- Milliseconds of up to five runs in half a second, after one that warms up; the answer must be that of the others.
CREATE FUNCTION bench.measure(work text, of_round int) RETURNS SETOF float8 LANGUAGE plpgsql AS
$$
DECLARE
	wanted bigint[] := (SELECT keys FROM bench.keyset WHERE id = of_round);
	found_answer numeric;
	expected numeric;
	ms float8;
	spent float8 := 0;
BEGIN
	FOR i IN 0 .. 5 LOOP
		EXIT WHEN spent > 500;
		IF work = 'dedup' THEN
			TRUNCATE target;
		END IF;
		EXECUTE format('SELECT * FROM bench.work_%s($1)', work) INTO found_answer USING wanted;
		ms := current_setting('bench.ms')::float8;
		SELECT a.answer INTO expected FROM bench.answer a WHERE a.name = work AND a.round = of_round;
		IF NOT FOUND THEN
			INSERT INTO bench.answer VALUES (work, of_round, found_answer);
		ELSIF found_answer IS DISTINCT FROM expected THEN
			RAISE EXCEPTION 'round %, %: % instead of %', of_round, work, found_answer, expected;
		END IF;
		IF i > 0 THEN
			RETURN NEXT ms;
			spent := spent + ms;
		END IF;
	END LOOP;
END
$$;

--
-- The section "devices": sets of n keys
--

CREATE TABLE bench.answer_of_set (name text, round int, n int, place int, answer numeric,
	PRIMARY KEY (name, round, n, place));

-- The statement that is meant
CREATE FUNCTION bench.work_of(name text) RETURNS text LANGUAGE sql IMMUTABLE
RETURN CASE name WHEN 'count' THEN 'any_count' ELSE 'any_sum' END;

/*
 * Reads what the session's statements may read.  A page of shared memory that a process has not touched before costs
 * it more than a lookup does, and a session is new for every figure.
 */
CREATE FUNCTION bench.touch(wanted bigint[]) RETURNS void LANGUAGE plpgsql AS
$$
DECLARE
	device text := current_setting('gpuds.device');
BEGIN
	PERFORM set_config('gpuds.device', CASE device WHEN 'auto' THEN 'cpu' ELSE device END, false);
	EXECUTE 'SELECT sum(v) FROM t WHERE k = ANY ($1)' USING wanted[1 : 200000];
	PERFORM set_config('gpuds.device', device, false);
END
$$;

/*
 * Milliseconds of a statement with n keys: the mean of the middle half of several, after one that warms up, because
 * the clock counts microseconds.  Each has other keys of the round's, as far as there are so many.  The answer must be
 * that of the other sides.
 */
CREATE FUNCTION bench.measure_set(name text, of_round int, n int) RETURNS float8 LANGUAGE plpgsql AS
$$
DECLARE
	statement text := format('SELECT * FROM bench.work_%s($1)', bench.work_of(name));
	wanted bigint[] := (SELECT keys FROM bench.keyset WHERE id = of_round);
	times int := CASE WHEN n <= 100 THEN 60 WHEN n <= 10000 THEN 20 ELSE 6 END;
	sets int := array_length(wanted, 1) / n;
	first int;
	ms float8[];
	found_answer numeric;
	expected numeric;
BEGIN
	PERFORM bench.touch(wanted);
	FOR i IN 0 .. times LOOP
		first := i % sets * n + 1;
		EXECUTE statement INTO found_answer USING wanted[first : first + n - 1];
		SELECT a.answer INTO expected FROM bench.answer_of_set a
		WHERE a.name = measure_set.name AND a.round = of_round AND a.n = measure_set.n AND a.place = i;
		IF NOT FOUND THEN
			INSERT INTO bench.answer_of_set VALUES (name, of_round, n, i, found_answer);
		ELSIF found_answer IS DISTINCT FROM expected THEN
			RAISE EXCEPTION 'round %, % of % keys: % instead of %', of_round, name, n, found_answer, expected;
		END IF;
		IF i > 0 THEN
			ms[i] := current_setting('bench.ms')::float8;
		END IF;
	END LOOP;
	RETURN (SELECT avg(u) FROM (SELECT u, ntile(4) OVER (ORDER BY u) AS quarter FROM unnest(ms) u) q WHERE quarter IN (2, 3));
END
$$;
