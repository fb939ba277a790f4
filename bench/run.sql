--
-- run.sql: tables and functions of bench/run
--
-- Variables: rows, keys (of a set), sets (of keys).  Row i has the key bench.key(i), which looks random, and which
-- pgbench can compute, too, so that its scripts can ask for keys that are there.
--
\ir common.sql
\ir keys.sql

CREATE UNLOGGED TABLE bench.keyset (id int, keys bigint[]);
ALTER TABLE bench.keyset ALTER keys SET STORAGE external;
SELECT setseed(0.5);
INSERT INTO bench.keyset
SELECT s, (SELECT array_agg(bench.key(s + j * (:rows::bigint / :keys)) ORDER BY random())
		   FROM generate_series(0, :keys - 1) j)
FROM generate_series(1, :sets) s;

/*
 * Statements as functions, one a side and a way to scan: a plan is made at the
 * first call, under the settings of that moment (see bench.allow), and kept.
 */
DO
$$
DECLARE
	side text;
	way text;
BEGIN
	FOREACH side IN ARRAY '{bt,gp}'::text[] LOOP
		FOREACH way IN ARRAY '{index,bitmap,auto}'::text[] LOOP
			-- average ms of reps statements with n keys each, and what they add up to
			EXECUTE format($f$
				CREATE FUNCTION %1$I.any_%2$s(keys bigint[], n int, reps int, OUT ms float8, OUT answer numeric)
				LANGUAGE plpgsql AS
				$_$
				DECLARE
					part bigint[];
					started timestamptz;
					spent interval := '0';
					found numeric;
					first int;
				BEGIN
					answer := 0;
					FOR rep IN 0 .. reps - 1 LOOP
						first := rep * n %% (array_length(keys, 1) - n + 1);
						part := keys[first + 1 : first + n];
						started := clock_timestamp();
						SELECT sum(v) INTO found FROM %1$I.t WHERE k = ANY (part);
						spent := spent + (clock_timestamp() - started);
						answer := answer + found;
					END LOOP;
					ms := extract(epoch FROM spent)::float8 * 1000 / reps;
				END
				$_$ $f$, side, way);
			EXECUTE format($f$
				CREATE FUNCTION %1$I.range_%2$s(lo bigint, hi bigint) RETURNS float8 LANGUAGE plpgsql AS
				$_$
				DECLARE
					started timestamptz := clock_timestamp();
					answer numeric;
				BEGIN
					SELECT sum(v) INTO answer FROM %1$I.t WHERE k BETWEEN lo AND hi;
					RETURN extract(epoch FROM clock_timestamp() - started)::float8 * 1000;
				END
				$_$ $f$, side, way);
			EXECUTE format($f$
				CREATE FUNCTION %1$I.count_%2$s(lo bigint, hi bigint) RETURNS float8 LANGUAGE plpgsql AS
				$_$
				DECLARE
					started timestamptz := clock_timestamp();
					answer bigint;
				BEGIN
					SELECT count(*) INTO answer FROM %1$I.t WHERE k BETWEEN lo AND hi;
					RETURN extract(epoch FROM clock_timestamp() - started)::float8 * 1000;
				END
				$_$ $f$, side, way);
		END LOOP;
		-- keys counted without other columns: btree's index-only scan
		EXECUTE format($f$
			CREATE FUNCTION %1$I.any_count(keys bigint[]) RETURNS float8 LANGUAGE plpgsql AS
			$_$
			DECLARE
				started timestamptz := clock_timestamp();
				answer bigint;
			BEGIN
				SELECT count(*) INTO answer FROM %1$I.t WHERE k = ANY (keys);
				RETURN extract(epoch FROM clock_timestamp() - started)::float8 * 1000;
			END
			$_$ $f$, side);
		EXECUTE format($f$
			CREATE FUNCTION %1$I.top(lo bigint) RETURNS float8 LANGUAGE plpgsql AS
			$_$
			DECLARE
				started timestamptz := clock_timestamp();
				answer numeric;
			BEGIN
				SELECT sum(v) INTO answer FROM (SELECT v FROM %1$I.t WHERE k > lo ORDER BY k LIMIT 1000) s;
				RETURN extract(epoch FROM clock_timestamp() - started)::float8 * 1000;
			END
			$_$ $f$, side);
	END LOOP;
END
$$;

-- One statement with sets of every size, both sides and all ways alternating; the answers must agree.
CREATE PROCEDURE bench.any(section text, sizes int[], ways text[], rounds int, work int) LANGUAGE plpgsql AS
$$
DECLARE
	n int;
	way text;
	side text;
	keys bigint[];
	ms float8;
	answer numeric;
	expected numeric;
BEGIN
	FOR round IN 0 .. rounds LOOP
		SELECT s.keys INTO keys FROM bench.keyset s WHERE id = round + 1;
		FOREACH n IN ARRAY sizes LOOP
			expected := NULL;
			FOREACH way IN ARRAY ways LOOP
				PERFORM bench.allow(way);
				FOREACH side IN ARRAY '{bt,gp}'::text[] LOOP
					EXECUTE format('SELECT * FROM %I.any_%s($1, $2, $3)', side, way) INTO ms, answer
						USING keys, n, greatest(1, least(2000, work / n));
					IF answer <> expected THEN
						RAISE EXCEPTION 'round %, %, %: % instead of %', round, side, way, answer, expected;
					END IF;
					expected := answer;
					IF round > 0 THEN
						INSERT INTO bench.raw VALUES (section, format('%s %s', n, way), side, round, ms, 'ms');
					END IF;
				END LOOP;
			END LOOP;
		END LOOP;
		COMMIT;
	END LOOP;
END
$$;

-- The index side alone: the bitmap's node for all keys, and btree's index-only count.
CREATE PROCEDURE bench.index_side(rounds int) LANGUAGE plpgsql AS
$$
DECLARE
	side text;
	keys bigint[];
	plan jsonb;
	ms float8;
BEGIN
	FOR round IN 0 .. rounds LOOP
		SELECT s.keys INTO keys FROM bench.keyset s WHERE id = round + 1;
		FOREACH side IN ARRAY '{bt,gp}'::text[] LOOP
			PERFORM bench.allow('bitmap');
			EXECUTE format('EXPLAIN (ANALYZE, FORMAT JSON) SELECT count(*) FROM %I.t WHERE k = ANY ($1)', side)
				INTO plan USING keys;
			PERFORM bench.allow('index');
			EXECUTE format('SELECT %I.any_count($1)', side) INTO ms USING keys;
			IF round > 0 THEN
				INSERT INTO bench.raw VALUES
					('index_side', 'bitmap', side, round, bench.node_ms(plan, 'Bitmap Index Scan'), 'ms'),
					('index_side', 'count', side, round, ms, 'ms');
			END IF;
		END LOOP;
		COMMIT;
	END LOOP;
END
$$;

-- Ranges of one percent, rows returned and rows counted; the next 1,000 rows in order.  Keys lie between 0 and
-- 2147483647 * 2147483629.
CREATE PROCEDURE bench.ranges(rounds int) LANGUAGE plpgsql AS
$$
DECLARE
	side text;
	way text;
	what text;
	ms float8;
	width constant bigint := 2147483647::bigint * 2147483629 / 100;
	lo bigint;
BEGIN
	FOR round IN 0 .. rounds LOOP
		lo := abs(hashint8extended(round, 7) % (width * 90));
		FOREACH way IN ARRAY '{index,bitmap,auto}'::text[] LOOP
			PERFORM bench.allow(way);
			FOREACH what IN ARRAY '{range,count}'::text[] LOOP
				FOREACH side IN ARRAY '{bt,gp}'::text[] LOOP
					EXECUTE format('SELECT %I.%s_%s($1, $2)', side, what, way) INTO ms USING lo, lo + width;
					IF round > 0 THEN
						INSERT INTO bench.raw VALUES ('range', what || ' ' || way, side, round, ms, 'ms');
					END IF;
				END LOOP;
			END LOOP;
		END LOOP;
		FOREACH side IN ARRAY '{bt,gp}'::text[] LOOP
			EXECUTE format('SELECT %I.top($1)', side) INTO ms USING lo;
			IF round > 0 THEN
				INSERT INTO bench.raw VALUES ('range', 'next 1000', side, round, ms, 'ms');
			END IF;
		END LOOP;
	END LOOP;
END
$$;

-- A key that is there.
CREATE FUNCTION bench.a_key(i bigint) RETURNS bigint LANGUAGE sql STABLE AS
$$ SELECT keys[1 + i % 1000] FROM bench.keyset WHERE id = 1 $$;

/*
 * One-key lookups in the executor's own timing: statements of one lookup each,
 * and the inner side of a nested loop, averaged over its loops.
 */
CREATE PROCEDURE bench.round_trip(n int, rounds int) LANGUAGE plpgsql AS
$$
DECLARE
	side text;
	keys bigint[];
	key bigint;
	plan jsonb;
	times float8[];
BEGIN
	PERFORM bench.allow('index');
	PERFORM set_config('enable_hashjoin', 'off', false), set_config('enable_mergejoin', 'off', false),
		set_config('enable_material', 'off', false), set_config('enable_memoize', 'off', false);
	FOREACH side IN ARRAY '{bt,gp}'::text[] LOOP
		EXECUTE format('PREPARE one_%1$s(bigint) AS SELECT v FROM %1$I.t WHERE k = $1', side);
	END LOOP;
	FOR round IN 0 .. rounds LOOP
		FOREACH side IN ARRAY '{bt,gp}'::text[] LOOP
			times := '{}';
			SELECT s.keys[round * n + 1 : (round + 1) * n] INTO keys FROM bench.keyset s WHERE id = 1;
			FOREACH key IN ARRAY keys LOOP
				EXECUTE format('EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE one_%s(%s)', side, key) INTO plan;
				times := times || bench.node_ms(plan, 'Index Scan') * 1000;
			END LOOP;
			EXECUTE format('EXPLAIN (ANALYZE, FORMAT JSON) SELECT sum(v) FROM unnest($1) x JOIN %I.t ON k = x', side)
				INTO plan USING (SELECT s.keys[1 : 10 * n] FROM bench.keyset s WHERE id = round + 1);
			IF round > 0 THEN
				INSERT INTO bench.raw
				SELECT 'round_trip', p.name, side, round, percentile_cont(p.part) WITHIN GROUP (ORDER BY x), 'us'
				FROM unnest(times) x, (VALUES ('median', 0.5), ('p90', 0.9), ('p99', 0.99)) p (name, part)
				GROUP BY p.name, p.part;
				INSERT INTO bench.raw
				VALUES ('round_trip', 'nested loop', side, round, bench.node_ms(plan, 'Index Scan') * 1000, 'us');
			END IF;
		END LOOP;
		COMMIT;
	END LOOP;
	DEALLOCATE ALL;
	RESET ALL;
END
$$;
