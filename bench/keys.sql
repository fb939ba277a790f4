--
-- keys.sql: keys for tables with indexes, and for the tables that they are joined with
--
-- Keys are numbered from 1; bench.key(number) looks random.  A table of uniform keys has as many keys as rows.
-- Of one of skewed keys, a third of the rows have a key each (uniques), a third are runs of 100 neighbours with
-- the same key, and a third (powers) have 10,000 keys whose frequencies follow a power law; but a twentieth of
-- all rows, and at most a million (hot), have one and the same key.
--

-- The fifth power is a permutation of the numbers below that prime.  pgbench can compute it, too.
CREATE FUNCTION bench.key(n bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (n * n % 2147483647) * (n * n % 2147483647) % 2147483647 * n % 2147483647 * 2147483629;

-- The numbers of a table of so many rows
CREATE FUNCTION bench.uniques(of_rows bigint, skewed bool) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN skewed THEN of_rows / 3 ELSE of_rows END;
CREATE FUNCTION bench.powers(of_rows bigint, skewed bool) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN skewed THEN of_rows - of_rows / 3 * 2 ELSE 0 END;
CREATE FUNCTION bench.hot(of_rows bigint, skewed bool) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN skewed THEN least(1000000, of_rows / 20) ELSE 0 END;
CREATE FUNCTION bench.hot_number(of_rows bigint, skewed bool) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN bench.uniques(of_rows, skewed) + bench.uniques(of_rows, skewed) / 100 + 2;
CREATE FUNCTION bench.absent(of_rows bigint, skewed bool) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN bench.hot_number(of_rows, skewed) + 10000 + 1;

-- What part of the outer rows asks for which keys of a skewed table: the matches of each kind of duplicates are at
-- most 4 or 1 times as many as there are outer rows.
CREATE FUNCTION bench.power_share(of_rows bigint, skewed bool) RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN skewed THEN least(0.04, 4 * 10000.0 / (bench.powers(of_rows, skewed) - bench.hot(of_rows, skewed)))::float8
	ELSE 0 END;
CREATE FUNCTION bench.hot_share(of_rows bigint, skewed bool) RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN skewed THEN 1.0::float8 / bench.hot(of_rows, skewed) ELSE 0 END;

-- Numbers from 0 to 1, spread evenly over any range of i
CREATE FUNCTION bench.spread(i bigint) RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (i * 2654435761 % 4294967291) / 4294967291.0::float8;

-- A rank from 1 to 10,000; its frequency falls with its power of 1.1, as by Zipf's law.
CREATE FUNCTION bench.rank(i bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN least(10000, floor(power(1 - bench.spread(i) * (1 - power(10001::float8, -0.1::float8)), -10)))::bigint;

-- The number of the key of row i of a table of so many rows
CREATE FUNCTION bench.number_of_row(i bigint, of_rows bigint, skewed bool) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
	WHEN i <= bench.uniques(of_rows, skewed) THEN i
	WHEN i <= bench.uniques(of_rows, skewed) * 2
		THEN bench.uniques(of_rows, skewed) + 1 + (i - bench.uniques(of_rows, skewed) - 1) / 100
	WHEN i * bench.hot(of_rows, skewed) / greatest(bench.powers(of_rows, skewed), 1)
		<> (i - 1) * bench.hot(of_rows, skewed) / greatest(bench.powers(of_rows, skewed), 1)
		THEN bench.hot_number(of_rows, skewed)
	ELSE bench.hot_number(of_rows, skewed) + bench.rank(i)
END;

-- The number of the key of row j of a table that is joined with it; half of them are not in it.
CREATE FUNCTION bench.number_of_outer(j bigint, of_rows bigint, skewed bool) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
	WHEN bench.spread(j) < 0.5 THEN bench.absent(of_rows, skewed) + abs(hashint8extended(j, 1) % of_rows)
	WHEN skewed AND bench.spread(j) < 0.54
		THEN bench.uniques(of_rows, skewed) + 1 + abs(hashint8extended(j, 1) % greatest(bench.uniques(of_rows, skewed) / 100, 1))
	WHEN bench.spread(j) < 0.54 + bench.power_share(of_rows, skewed) AND skewed
		THEN bench.hot_number(of_rows, skewed) + 1 + abs(hashint8extended(j, 1) % 10000)
	WHEN bench.spread(j) < 0.54 + bench.power_share(of_rows, skewed) + bench.hot_share(of_rows, skewed) AND skewed
		THEN bench.hot_number(of_rows, skewed)
	ELSE 1 + abs(hashint8extended(j, 1) % bench.uniques(of_rows, skewed))
END;
