--
-- hash.sql: what bench/hash is made with
--
CREATE UNLOGGED TABLE bench.strings (i bigserial PRIMARY KEY, path text);
CREATE UNLOGGED TABLE bench.keys (round int, path text[], b bigint[]);
CREATE UNLOGGED TABLE bench.answers (work text, round int, side text, answer text);

-- A row's bigint: no two rows have the same, and their order says nothing.
CREATE FUNCTION bench.number(i bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
	RETURN (i * 2654435761) % 4294967291 * 2147483629;

CREATE FUNCTION bench.make_keys(of_rows bigint, n bigint, rounds int) RETURNS void LANGUAGE plpgsql AS
$$
BEGIN
	PERFORM setseed(0.5);
	INSERT INTO bench.keys SELECT round, array_agg(path), array_agg(bench.number(i))
	FROM generate_series(1, rounds) round,
		LATERAL (SELECT path, i FROM bench.strings WHERE i <= of_rows ORDER BY hashint8extended(i, round) LIMIT n) k
	GROUP BY round;
	CREATE UNLOGGED TABLE bench.more AS SELECT i AS id, path, bench.number(i) AS b, 'note ' || i AS note FROM bench.strings WHERE i > of_rows;
END
$$;

-- A table, and the work that is done with it; plans are cached, for any keys.
CREATE FUNCTION bench.make_table(side text, of_rows bigint) RETURNS void LANGUAGE plpgsql AS
$$
DECLARE
	col text;
	type text;
BEGIN
	EXECUTE format('CREATE SCHEMA %I', side);
	EXECUTE format('CREATE TABLE %I.t (id bigint, path text, b bigint, note text)', side);
	EXECUTE format('INSERT INTO %I.t SELECT i, path, bench.number(i), ''note '' || i FROM bench.strings WHERE i <= %s ORDER BY i', side, of_rows);
	FOR col, type IN VALUES ('path', 'text'), ('b', 'bigint') LOOP
		EXECUTE format('CREATE FUNCTION %1$I.any_%2$s(keys %3$s[]) RETURNS text LANGUAGE plpgsql AS ''BEGIN
			RETURN (SELECT row(count(*), sum(id))::text FROM %1$I.t WHERE %2$s = ANY (keys)); END''', side, col, type);
		EXECUTE format('CREATE FUNCTION %1$I.join_%2$s(keys %3$s[]) RETURNS text LANGUAGE plpgsql AS ''BEGIN
			RETURN (SELECT row(count(*), sum(id))::text FROM unnest(keys) u (key) JOIN %1$I.t ON t.%2$s = u.key); END''', side, col, type);
		-- a hundredth of the keys, one by one
		EXECUTE format('CREATE FUNCTION %1$I.one_%2$s(keys %3$s[]) RETURNS text LANGUAGE plpgsql AS ''
			DECLARE
				total numeric := 0;
				n bigint;
			BEGIN
				FOR i IN 1..cardinality(keys) / 100 LOOP
					SELECT id INTO n FROM %1$I.t WHERE %2$s = keys[i];
					total := total + n;
				END LOOP;
				RETURN total;
			END''', side, col, type);
	END LOOP;
END
$$;

-- Milliseconds of a function of the side's schema with a round's keys, when it is called the second time.
CREATE FUNCTION bench.measure(side text, work text, of_round int) RETURNS float8 LANGUAGE plpgsql AS
$$
DECLARE
	col text := split_part(work, '_', 2);
	began timestamptz;
	took float8;
	answer text;
BEGIN
	FOR i IN 1..2 LOOP
		-- The keys are read before.
		EXECUTE format('CREATE TEMP TABLE IF NOT EXISTS arrays_%1$s AS SELECT %1$I AS keys FROM bench.keys WHERE round = %2$s', col, of_round);
		EXECUTE format('SELECT clock_timestamp() FROM arrays_%s WHERE cardinality(keys) > 0', col) INTO began;
		EXECUTE format('SELECT %I.%I(keys) FROM arrays_%s', side, work, col) INTO answer;
		took := extract(epoch FROM clock_timestamp() - began) * 1000;
	END LOOP;
	INSERT INTO bench.answers VALUES (work, of_round, side, answer);
	RETURN took;
END
$$;
