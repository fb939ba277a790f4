--
-- auto.sql: functions of bench/auto, beside those of bench/batch
--
-- Variables: those of batch.sql.
--
\ir batch.sql

CREATE TABLE bench.answer_of_set (name text, round int, n int, place int, answer numeric,
	PRIMARY KEY (name, round, n, place));

-- What bench/batch calls the statement
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
