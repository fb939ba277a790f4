--
-- batch.sql: tables and functions of bench/batch
--
-- Variables: rows, outer (rows of t and o), keys (an array's size), sets (arrays of
-- keys), shape.  Keys are numbered from 1; bench.key(number) looks random, so that
-- the order of an index and that of the heap have nothing in common.
--
\ir common.sql

-- The fifth power is a permutation of the numbers below that prime.  pgbench can compute it, too.
CREATE FUNCTION bench.key(n bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (n * n % 2147483647) * (n * n % 2147483647) % 2147483647 * n % 2147483647 * 2147483629;

/*
 * The shape "uniform" has as many keys as rows.  In the shape "skewed", one third of
 * the rows have a key each (:uniques), one third are runs of 100 neighbours with the
 * same key, and one third (:powers) have 10,000 keys whose frequencies follow a power
 * law; but :hot of these have one and the same key.
 */
SELECT CASE :'shape' WHEN 'skewed' THEN :rows / 3 ELSE :rows END AS uniques,
	CASE :'shape' WHEN 'skewed' THEN :rows - :rows / 3 * 2 ELSE 0 END AS powers,
	CASE :'shape' WHEN 'skewed' THEN least(1000000, :rows / 20) ELSE 0 END AS hot \gset
SELECT :uniques + :uniques / 100 + 2 AS hot_number \gset
SELECT :hot_number + 10000 + 1 AS absent \gset

-- What part of the outer rows asks for which keys of the shape "skewed": the matches of
-- each kind of duplicates are at most 4 or 1 times as many as there are outer rows.
SELECT round(CASE :hot WHEN 0 THEN 0 ELSE 0.04 END, 9) AS run_share,
	round(CASE :hot WHEN 0 THEN 0 ELSE least(0.04, 4 * 10000.0 / (:powers - :hot)) END, 9) AS power_share,
	round(CASE :hot WHEN 0 THEN 0 ELSE 1.0 / :hot END, 9) AS hot_share \gset

-- Numbers from 0 to 1, spread evenly over any range of i
CREATE FUNCTION bench.spread(i bigint) RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (i * 2654435761 % 4294967291) / 4294967291.0::float8;

-- A rank from 1 to 10,000; its frequency falls with its power of 1.1, as by Zipf's law.
CREATE FUNCTION bench.rank(i bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN least(10000, floor(power(1 - bench.spread(i) * (1 - power(10001::float8, -0.1::float8)), -10)))::bigint;

-- The number of the key of row i of t
CREATE FUNCTION bench.number_of_row(i bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
	WHEN i <= :uniques THEN i
	WHEN i <= :uniques * 2 THEN :uniques + 1 + (i - :uniques - 1) / 100
	WHEN i * :hot / greatest(:powers, 1) <> (i - 1) * :hot / greatest(:powers, 1) THEN :hot_number
	ELSE :hot_number + bench.rank(i)
END;

-- The number of the key of row j of o; half of them are not in t.
CREATE FUNCTION bench.number_of_outer(j bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
	WHEN bench.spread(j) < 0.5 THEN :absent + abs(hashint8extended(j, 1) % :rows)
	WHEN bench.spread(j) < 0.5 + :run_share THEN :uniques + 1 + abs(hashint8extended(j, 1) % (:uniques / 100))
	WHEN bench.spread(j) < 0.5 + :run_share + :power_share THEN :hot_number + 1 + abs(hashint8extended(j, 1) % 10000)
	WHEN bench.spread(j) < 0.5 + :run_share + :power_share + :hot_share THEN :hot_number
	ELSE 1 + abs(hashint8extended(j, 1) % :uniques)
END;

-- Arrays of different keys, all of them in t, chosen as those of o are.  In the shape "skewed" each has the key with
-- the most rows.
CREATE UNLOGGED TABLE bench.keyset (id int, keys bigint[]);
ALTER TABLE bench.keyset ALTER keys SET STORAGE external;
SELECT setseed(0.5);
INSERT INTO bench.keyset
SELECT s, (SELECT array_agg(bench.key(number) ORDER BY random())
		   FROM (SELECT :hot_number::bigint AS number WHERE :hot > 0
				 UNION ALL
				 (SELECT DISTINCT bench.number_of_outer(j)
				  FROM generate_series(s * 4 * :keys::bigint, (s + 1) * 4 * :keys::bigint - 1) j
				  WHERE bench.number_of_outer(j) < :hot_number
					 OR bench.number_of_outer(j) BETWEEN :hot_number + 1 AND :absent - 1)
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

-- The plan that a statement has there.
CREATE FUNCTION bench.plan(work text) RETURNS SETOF text LANGUAGE plpgsql AS
$$
BEGIN
	EXECUTE 'PREPARE shown(bigint[]) AS ' || (SELECT w.statement FROM bench.work w WHERE w.name = work);
	RETURN QUERY EXECUTE 'EXPLAIN (COSTS OFF) EXECUTE shown(NULL)';
	DEALLOCATE shown;
END
$$;
