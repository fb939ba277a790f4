--
-- gpu.sql: tables and functions of bench/gpu
--
-- Variables: rows, sets (arrays of keys), keys (a set's size).  Row i has the key
-- bench.key(i), which looks random; pgbench can compute it too.  (The fifth power is
-- a permutation of the numbers below that prime.)
--
\ir common.sql

CREATE FUNCTION bench.key(i bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS
$$ SELECT (i * i % 2147483647) * (i * i % 2147483647) % 2147483647 * i % 2147483647 * 2147483629 $$;

CREATE UNLOGGED TABLE bench.keyset (id int, keys bigint[]);
ALTER TABLE bench.keyset ALTER keys SET STORAGE external;
SELECT setseed(0.5);
INSERT INTO bench.keyset
SELECT s, (SELECT array_agg(bench.key(s + j * (:rows / :keys)) ORDER BY random()) FROM generate_series(0, :keys - 1) j)
FROM generate_series(1, :sets) s;

/*
 * Statements as functions, one a side and a way to scan: a plan is made at the
 * first call, under the settings of that moment, and kept.
 */
DO
$$
DECLARE
	side text;
	way text;
BEGIN
	FOREACH side IN ARRAY '{bt,gp}'::text[] LOOP
		FOREACH way IN ARRAY '{index,bitmap,auto}'::text[] LOOP
			EXECUTE format($f$
				CREATE FUNCTION %1$I.any_%2$s(keys bigint[], OUT ms float8, OUT answer numeric) LANGUAGE plpgsql AS
				$_$
				DECLARE
					started timestamptz := clock_timestamp();
				BEGIN
					SELECT sum(v) INTO answer FROM %1$I.t WHERE k = ANY (keys);
					ms := extract(epoch FROM clock_timestamp() - started) * 1000;
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
				RETURN extract(epoch FROM clock_timestamp() - started) * 1000;
			END
			$_$ $f$, side);
	END LOOP;
END
$$;

-- All keys of a set, both sides and all ways alternating; the answers must agree.
CREATE PROCEDURE bench.any(rounds int) LANGUAGE plpgsql AS
$$
DECLARE
	way text;
	side text;
	keys bigint[];
	ms float8;
	answer numeric;
	expected numeric;
BEGIN
	FOR round IN 0 .. rounds LOOP
		SELECT s.keys INTO keys FROM bench.keyset s WHERE id = round + 1;
		expected := NULL;
		FOREACH way IN ARRAY '{index,bitmap,auto}'::text[] LOOP
			PERFORM bench.allow(way);
			FOREACH side IN ARRAY '{bt,gp}'::text[] LOOP
				EXECUTE format('SELECT * FROM %I.any_%s($1)', side, way) INTO ms, answer USING keys;
				IF answer <> expected THEN
					RAISE EXCEPTION 'round %, %, %: % instead of %', round, side, way, answer, expected;
				END IF;
				expected := answer;
				IF round > 0 THEN
					INSERT INTO bench.raw VALUES ('gpu_any', way, side, round, ms, 'ms');
				END IF;
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
BEGIN
	FOR round IN 0 .. rounds LOOP
		SELECT s.keys INTO keys FROM bench.keyset s WHERE id = round + 1;
		FOREACH side IN ARRAY '{bt,gp}'::text[] LOOP
			PERFORM bench.allow('bitmap');
			EXECUTE format('EXPLAIN (ANALYZE, FORMAT JSON) SELECT count(*) FROM %I.t WHERE k = ANY ($1)', side)
				INTO plan USING keys;
			IF round > 0 THEN
				INSERT INTO bench.raw VALUES
					('gpu_index_side', 'bitmap', side, round, bench.node_ms(plan, 'Bitmap Index Scan'), 'ms');
			END IF;
		END LOOP;
		PERFORM bench.allow('index');
		IF round > 0 THEN
			INSERT INTO bench.raw VALUES ('gpu_index_side', 'count', 'bt', round, bt.any_count(keys), 'ms');
		ELSE
			PERFORM bt.any_count(keys);
		END IF;
		COMMIT;
	END LOOP;
END
$$;

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
