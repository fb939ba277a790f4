--
-- run.sql: tables and functions of bench/run
--
-- Variables: am, sets (arrays of keys), keys (a set's size).  bench.src(i, k)
-- is filled: k is a random-looking bigint, a function of i that pgbench has
-- too (hash_murmur2), so that its scripts can ask for keys that are there.
--
\ir common.sql

CREATE UNLOGGED TABLE bench.keyset (id int, keys bigint[]);
ALTER TABLE bench.keyset ALTER keys SET STORAGE external;
SELECT setseed(0.5);
INSERT INTO bench.keyset
SELECT s, (SELECT array_agg(k ORDER BY random())
		   FROM (SELECT k FROM bench.src WHERE (i + s) % ((SELECT max(i) FROM bench.src) / :keys) = 0 LIMIT :keys) p)
FROM generate_series(1, :sets) s;

/*
 * Statements as functions, one a side and a way to scan: a plan is made at the
 * first call, under the settings of that moment (see bench.warm), and kept.
 */
DO
$$
DECLARE
	side text;
	way text;
BEGIN
	FOREACH side IN ARRAY '{bt,gp}'::text[] LOOP
		FOREACH way IN ARRAY '{index,bitmap,auto}'::text[] LOOP
			-- average ms of reps statements with n keys each
			EXECUTE format($f$
				CREATE FUNCTION %1$I.any_%2$s(keys bigint[], n int, reps int) RETURNS float8 LANGUAGE plpgsql AS
				$_$
				DECLARE
					part bigint[];
					started timestamptz;
					spent interval := '0';
					answer numeric;
					first int;
				BEGIN
					FOR rep IN 0 .. reps - 1 LOOP
						first := rep * n %% (array_length(keys, 1) - n + 1);
						part := keys[first + 1 : first + n];
						started := clock_timestamp();
						SELECT sum(v) INTO answer FROM %1$I.t WHERE k = ANY (part);
						spent := spent + (clock_timestamp() - started);
					END LOOP;
					RETURN extract(epoch FROM spent)::float8 * 1000 / reps;
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

/*
 * One statement with every size of key set, both sides and ways alternating.
 */
CREATE PROCEDURE bench.any(section text, sizes int[], ways text[], rounds int, work int) LANGUAGE plpgsql AS
$$
DECLARE
	n int;
	way text;
	side text;
	keys bigint[];
	ms float8;
BEGIN
	FOR round IN 0 .. rounds LOOP
		SELECT s.keys INTO keys FROM bench.keyset s WHERE id = round + 1;
		FOREACH n IN ARRAY sizes LOOP
			FOREACH way IN ARRAY ways LOOP
				PERFORM bench.allow(way);
				FOREACH side IN ARRAY '{bt,gp}'::text[] LOOP
					EXECUTE format('SELECT %I.any_%s($1, $2, $3)', side, way) INTO ms
						USING keys, n, greatest(1, least(2000, work / n));
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
	PERFORM bench.allow('bitmap');
	FOREACH side IN ARRAY '{bt,gp}'::text[] LOOP
		EXECUTE format('PREPARE side_%1$s(int) AS SELECT count(*) FROM %1$I.t WHERE k = ANY '
					   '((SELECT s.keys FROM bench.keyset s WHERE id = $1)::bigint[])', side);
	END LOOP;
	FOR round IN 0 .. rounds LOOP
		SELECT s.keys INTO keys FROM bench.keyset s WHERE id = round + 1;
		FOREACH side IN ARRAY '{bt,gp}'::text[] LOOP
			PERFORM bench.allow('bitmap');
			EXECUTE format('EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE side_%s(%s)', side, round + 1) INTO plan;
			PERFORM bench.allow('index');
			EXECUTE format('SELECT %I.any_count($1)', side) INTO ms USING keys;
			IF round > 0 THEN
				INSERT INTO bench.raw VALUES
					('index_side', 'bitmap', side, round, bench.node_ms(plan, 'Bitmap Index Scan')
					 - coalesce(bench.node_ms(plan, 'Seq Scan'), 0), 'ms'),
					('index_side', 'count', side, round, ms, 'ms');
			END IF;
		END LOOP;
	END LOOP;
	DEALLOCATE side_bt;
	DEALLOCATE side_gp;
END
$$;

-- Ranges of one percent, rows returned and rows counted; the next 1,000 rows in order.
CREATE PROCEDURE bench.ranges(rounds int) LANGUAGE plpgsql AS
$$
DECLARE
	side text;
	way text;
	what text;
	ms float8;
	width constant bigint := 184467440737095516;
	lo bigint;
BEGIN
	FOR round IN 0 .. rounds LOOP
		lo := hashint8extended(round, 7) / 2;
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
