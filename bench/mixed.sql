--
-- mixed.sql: functions of bench/mixed
--
-- Variables: rows, keys (how many = ANY asks for), sides (schemas, with commas between).
--
\ir common.sql

CREATE UNLOGGED TABLE bench.keyset (keys bigint[]);
ALTER TABLE bench.keyset ALTER keys SET STORAGE external;
SELECT setseed(0.5);
INSERT INTO bench.keyset
SELECT array_agg(j * (:rows / :keys) * 2654435761 % 4294967291 ORDER BY random()) FROM generate_series(1, :keys) j;

-- any_ms: milliseconds that = ANY of all keys takes, in each schema; the plan is made at the first call.
SELECT format($f$
	CREATE FUNCTION %1$I.any_ms(again int) RETURNS float8 LANGUAGE plpgsql AS
	$_$
	DECLARE
		wanted bigint[] := (SELECT keys FROM bench.keyset);
		started timestamptz := clock_timestamp();
		answer numeric;
	BEGIN
		SELECT sum(v) INTO answer FROM %1$I.t WHERE k = ANY (wanted);
		RETURN extract(epoch FROM clock_timestamp() - started) * 1000;
	END
	$_$ $f$, side)
FROM unnest(string_to_array(:'sides', ',')) side \gexec

-- Buffers that a lookup of one key visits, mean of n lookups in a table of the search path.
CREATE FUNCTION bench.visits(relation text, n int, rows bigint) RETURNS float8 LANGUAGE plpgsql AS
$$
DECLARE
	plan jsonb;
	visited bigint := 0;
BEGIN
	PERFORM set_config('enable_seqscan', 'off', false), set_config('enable_bitmapscan', 'off', false);
	FOR i IN 0 .. n - 1 LOOP
		EXECUTE format('EXPLAIN (ANALYZE, BUFFERS, FORMAT json) SELECT v FROM %I WHERE k = %s', relation,
			(21 + i * ((rows - 21) / n)) * 2654435761 % 4294967291) INTO plan;
		visited := visited + (plan->0->'Plan'->>'Shared Hit Blocks')::bigint + (plan->0->'Plan'->>'Shared Read Blocks')::bigint;
	END LOOP;
	RETURN visited::float8 / n;
END
$$;
