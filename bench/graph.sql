--
-- graph.sql: graphs of bench/graph, and what SQL without gpuds has for questions about them.  A graph is a schema with
-- tables of edges (src, dst), those of roads with a cost; search_path says which is meant.
--
CREATE SCHEMA bench;

-- Milliseconds so far: of time, or of this session on a processor.
CREATE FUNCTION bench.spent(clock text) RETURNS float8 LANGUAGE sql AS
$$
	SELECT CASE clock WHEN 'cpu' THEN split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)::float8 / 1e6
		ELSE extract(epoch FROM clock_timestamp()) * 1000 END
$$;

-- Indexes of a graph's edges: g has one of gpuds; and with SQL, e, which has the same edges, one of btree.
CREATE PROCEDURE bench.make_indexes(graph text, am text, with_sql bool) LANGUAGE plpgsql AS
$$
BEGIN
	EXECUTE format('CREATE INDEX i_gp ON %I.g USING %I (src, dst) %s', graph, am,
		CASE graph WHEN 'roads' THEN 'INCLUDE (cost)' END);
	EXECUTE format('CREATE TABLE %1$I.seed AS SELECT array_agg(v) AS v
		FROM (SELECT src AS v FROM %1$I.g WHERE src < 16384 INTERSECT SELECT dst FROM %1$I.g WHERE dst < 16384
			ORDER BY v LIMIT 1000) x', graph);
	PERFORM gpuds_index_load(format('%I.i_gp', graph)::regclass);
	IF with_sql THEN
		EXECUTE format('CREATE UNLOGGED TABLE %1$I.e AS TABLE %1$I.g', graph);
		EXECUTE format('CREATE INDEX i_bt ON %I.e (src, dst)', graph);
	END IF;
END
$$;

-- The time for the number of rows of a query, so many times, after it has been asked once.
CREATE FUNCTION bench.count_again(query text, times int, clock text) RETURNS SETOF float8 LANGUAGE plpgsql AS
$$
DECLARE
	before float8;
	n bigint;
BEGIN
	FOR i IN 0 .. times LOOP
		before := bench.spent(clock);
		EXECUTE format('SELECT count(*) FROM (%s) x', query) INTO n;
		IF i > 0 THEN
			RETURN NEXT bench.spent(clock) - before;
		END IF;
	END LOOP;
END
$$;

-- Writes so many edges a second, in 50 transactions, until it is stopped.
CREATE PROCEDURE bench.write_edges(rate int, vertices int) LANGUAGE plpgsql AS
$$
DECLARE
	due timestamptz := clock_timestamp();
BEGIN
	LOOP
		INSERT INTO g (src, dst) SELECT random() * (vertices - 1), random() * (vertices - 1)
			FROM generate_series(1, greatest(rate / 50, 1));
		COMMIT;
		due := due + interval '20 ms';
		PERFORM pg_sleep_for(due - clock_timestamp());
	END LOOP;
END
$$;

-- How many rows one table has and not the other one; numbers that are not whole may differ by rounding.
CREATE FUNCTION bench.differences(a text, b text) RETURNS bigint LANGUAGE plpgsql AS
$$
DECLARE
	n bigint;
BEGIN
	IF a LIKE 'pagerank%' THEN
		EXECUTE format('SELECT count(*) FROM %I a (v, r) FULL JOIN %I b (v, r) USING (v)
			WHERE abs(a.r - b.r) < 1e-12 IS NOT TRUE', a, b) INTO n;
	ELSE
		EXECUTE format('SELECT count(*) FROM ((TABLE %1$I EXCEPT TABLE %2$I) UNION ALL (TABLE %2$I EXCEPT TABLE %1$I)) x',
			a, b) INTO n;
	END IF;
	RETURN n;
END
$$;

CREATE FUNCTION bench.degrees() RETURNS TABLE (v bigint, out_degree bigint, in_degree bigint) LANGUAGE plpgsql AS
$$
BEGIN
	RETURN QUERY SELECT x.v::bigint, sum(o)::bigint, sum(i)::bigint
	FROM (SELECT src AS v, 1 AS o, 0 AS i FROM e UNION ALL SELECT dst, 0, 1 FROM e) x GROUP BY x.v;
END
$$;

-- Random contraction: in each round vertices get other numbers at random, and each becomes one with the
-- least of its neighbours.  A constant part of the vertices is left on the average.
CREATE FUNCTION bench.components() RETURNS TABLE (v bigint, component bigint) LANGUAGE plpgsql AS
$$
DECLARE
	prime CONSTANT bigint := 2147483647;
	a bigint;
	b bigint;
	n bigint;
BEGIN
	CREATE TEMP TABLE pair AS SELECT src::bigint AS x, dst::bigint AS y FROM e WHERE src <> dst UNION SELECT dst, src FROM e WHERE src <> dst;
	CREATE TEMP TABLE place AS SELECT src::bigint AS v, src::bigint AS c FROM e UNION SELECT dst, dst FROM e;
	ANALYZE pair;
	ANALYZE place;
	LOOP
		a := 1 + floor(random() * (prime - 1));
		b := floor(random() * prime);
		CREATE TEMP TABLE joined AS SELECT x, least((a * x + b) % prime, min((a * y + b) % prime)) AS c FROM pair GROUP BY x;
		GET DIAGNOSTICS n = ROW_COUNT;
		EXIT WHEN n = 0;
		ANALYZE joined;
		CREATE TEMP TABLE next_place AS
			SELECT p.v, coalesce(j.c, (a * p.c + b) % prime) AS c FROM place p LEFT JOIN joined j ON j.x = p.c;
		CREATE TEMP TABLE next_pair AS
			SELECT DISTINCT f.c AS x, t.c AS y FROM pair p JOIN joined f ON f.x = p.x JOIN joined t ON t.x = p.y WHERE f.c <> t.c;
		DROP TABLE pair, place, joined;
		ALTER TABLE next_place RENAME TO place;
		ALTER TABLE next_pair RENAME TO pair;
		ANALYZE place;
		ANALYZE pair;
	END LOOP;
	RETURN QUERY SELECT p.v, min(p.v) OVER (PARTITION BY c) FROM place p;
	DROP TABLE pair, place, joined;
END
$$;

CREATE FUNCTION bench.triangles() RETURNS bigint LANGUAGE plpgsql AS
$$
DECLARE
	answer bigint;
BEGIN
	CREATE TEMP TABLE ranked AS SELECT v, row_number() OVER (ORDER BY count(*)) AS r
		FROM (SELECT src AS v FROM e UNION ALL SELECT dst FROM e) x GROUP BY v;
	CREATE TEMP TABLE oriented AS SELECT DISTINCT least(s.r, d.r) AS x, greatest(s.r, d.r) AS y
		FROM e JOIN ranked s ON s.v = src JOIN ranked d ON d.v = dst WHERE src <> dst;
	ANALYZE oriented;
	SELECT count(*) INTO answer FROM oriented a JOIN oriented b ON b.x = a.y JOIN oriented c ON c.x = a.x AND c.y = b.y;
	DROP TABLE ranked, oriented;
	RETURN answer;
END
$$;

CREATE FUNCTION bench.pagerank(iterations int) RETURNS TABLE (v bigint, r float8) LANGUAGE plpgsql AS
$$
DECLARE
	n float8;
	lost float8;
BEGIN
	CREATE TEMP TABLE rank AS SELECT x.v, sum(o) AS edges, 0::float8 AS r
		FROM (SELECT src AS v, 1 AS o FROM e UNION ALL SELECT dst, 0 FROM e) x GROUP BY x.v;
	SELECT count(*) INTO n FROM rank;
	UPDATE rank SET r = 1 / n;
	FOR i IN 1 .. iterations LOOP
		SELECT coalesce(sum(k.r), 0) INTO lost FROM rank k WHERE edges = 0;
		CREATE TEMP TABLE next_rank AS
			SELECT k.v, edges, (0.15 + 0.85 * lost) / n + 0.85 * coalesce(g.r, 0) AS r
			FROM rank k LEFT JOIN (SELECT dst, sum(k.r / edges) AS r FROM e JOIN rank k ON k.v = src GROUP BY dst) g ON g.dst = k.v;
		DROP TABLE rank;
		ALTER TABLE next_rank RENAME TO rank;
		ANALYZE rank;
	END LOOP;
	RETURN QUERY SELECT k.v::bigint, k.r FROM rank k;
	DROP TABLE rank;
END
$$;

-- Vertices with the fewest steps to them, a level at a time, which a recursive query cannot tell.  target: the only one that
-- is wanted, or NULL.
CREATE FUNCTION bench.reach(seeds int[], most int, target int DEFAULT NULL) RETURNS TABLE (v int, depth int) LANGUAGE plpgsql AS
$$
#variable_conflict use_column
DECLARE
	n bigint;
BEGIN
	CREATE TEMP TABLE seen (v int PRIMARY KEY, depth int);
	CREATE TEMP TABLE level AS SELECT DISTINCT unnest(seeds) AS v;
	FOR d IN 0 .. most LOOP
		INSERT INTO seen SELECT v, d FROM level;
		EXIT WHEN EXISTS (SELECT FROM level WHERE v = target);
		CREATE TEMP TABLE next_level AS
			SELECT DISTINCT dst AS v FROM level JOIN e ON src = level.v WHERE NOT EXISTS (SELECT FROM seen WHERE seen.v = dst);
		GET DIAGNOSTICS n = ROW_COUNT;
		DROP TABLE level;
		ALTER TABLE next_level RENAME TO level;
		EXIT WHEN n = 0;
		IF n > 1000 THEN
			ANALYZE seen;
			ANALYZE level;
		END IF;
	END LOOP;
	RETURN QUERY SELECT v, depth FROM seen WHERE target IS NULL OR v = target;
	DROP TABLE seen, level;
END
$$;

-- What the best path from a vertex to another one costs: edges of the vertices whose cost has become less are followed, all
-- at once, while it is less than the path that is known.
CREATE FUNCTION bench.route(source int, target int) RETURNS float8 LANGUAGE plpgsql AS
$$
DECLARE
	best bigint;
	n bigint;
BEGIN
	CREATE TEMP TABLE seen (v int PRIMARY KEY, cost bigint);
	CREATE TEMP TABLE level AS SELECT source AS v, 0::bigint AS cost;
	INSERT INTO seen TABLE level;
	LOOP
		SELECT s.cost INTO best FROM seen s WHERE s.v = target;
		CREATE TEMP TABLE next_level AS
			SELECT dst AS v, min(l.cost + e.cost) AS cost FROM level l JOIN e ON src = l.v GROUP BY 1;
		DELETE FROM next_level x USING seen s WHERE s.v = x.v AND s.cost <= x.cost;
		DELETE FROM next_level x WHERE x.cost >= best;
		INSERT INTO seen AS s TABLE next_level ON CONFLICT (v) DO UPDATE SET cost = excluded.cost;
		GET DIAGNOSTICS n = ROW_COUNT;
		DROP TABLE level;
		ALTER TABLE next_level RENAME TO level;
		EXIT WHEN n = 0;
	END LOOP;
	DROP TABLE seen, level;
	RETURN best;
END
$$;
