--
-- methods.sql: functions of bench/methods.  Schemas named for access methods have a table t(k, v) each, and search_path
-- says which is meant.  bigint keys are k = hashint8extended(v, 1).
--

/*
 * Milliseconds so far, by the clock of the setting bench.clock: "cpu" is time on a processor, of this session, and of
 * the drainer when it has applied what there is; "wall" is time.  Before work is begun, both wait for the drainer.
 */
CREATE FUNCTION spent(done bool) RETURNS float8 LANGUAGE plpgsql AS
$$
DECLARE
	cpu bool := current_setting('bench.clock') = 'cpu';
	ns float8;
	drainer int;
BEGIN
	FOR i IN 1 .. 1000 LOOP
		EXIT WHEN done AND NOT cpu OR (SELECT coalesce(operations, 0) = 0 FROM public.gpuds_memtables);
		PERFORM pg_sleep(0.02);
	END LOOP;
	IF NOT cpu THEN
		RETURN extract(epoch FROM clock_timestamp()) * 1000;
	END IF;
	SELECT drainer_pid INTO drainer FROM public.gpuds_memtables;
	ns := split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)::float8;
	IF drainer > 0 THEN
		ns := ns + split_part(pg_read_file('/proc/' || drainer || '/schedstat'), ' ', 1)::float8;
	END IF;
	RETURN ns / 1e6;
END
$$;

-- Looks up keys one by one; returns what their rows' values add up to.
CREATE FUNCTION lookups(keys anyarray) RETURNS numeric LANGUAGE plpgsql AS
$$
DECLARE
	found bigint;
	total numeric := 0;
BEGIN
	FOR i IN 1 .. cardinality(keys) LOOP
		SELECT v INTO found FROM t WHERE k = keys[i];
		total := total + found;
	END LOOP;
	RETURN total;
END
$$;

-- A point in the square from (0,0) to (1,1), by a number.
CREATE FUNCTION random_point(i bigint) RETURNS point LANGUAGE sql IMMUTABLE AS
$$
SELECT point((hashint8extended(i, 1) >> 12 & (1::bigint << 40) - 1) / (2.0 ^ 40)::float8,
	(hashint8extended(i, 2) >> 12 & (1::bigint << 40) - 1) / (2.0 ^ 40)::float8)
$$;

-- The same of the rows in boxes.
CREATE FUNCTION boxes(keys box[]) RETURNS numeric LANGUAGE plpgsql AS
$$
DECLARE
	found numeric;
	total numeric := 0;
BEGIN
	FOR i IN 1 .. cardinality(keys) LOOP
		SELECT sum(v) INTO found FROM t WHERE k <@ keys[i];
		total := total + coalesce(found, 0);
	END LOOP;
	RETURN total;
END
$$;

-- The same of the rows nearest to points, of which boxes have their upper corners.
CREATE FUNCTION nearest(keys box[], wanted int) RETURNS numeric LANGUAGE plpgsql AS
$$
DECLARE
	found numeric;
	total numeric := 0;
BEGIN
	FOR i IN 1 .. cardinality(keys) LOOP
		SELECT sum(v) INTO found FROM (SELECT v FROM t ORDER BY k <-> (keys[i])[0] LIMIT wanted) x;
		total := total + coalesce(found, 0);
	END LOOP;
	RETURN total;
END
$$;

-- So many transactions: each inserts rows and counts keys, or, if no keys are counted, updates so many keys.
CREATE PROCEDURE change(n int, inserts int, counted int, there int) LANGUAGE plpgsql AS
$$
DECLARE
	answer bigint;
	first int;
BEGIN
	FOR i IN 1 .. n LOOP
		first := nextval('public.fresh')::bigint * 7919 % (there - 1000);
		IF counted = 0 THEN
			UPDATE t SET k = k # 1
			WHERE k = ANY (ARRAY(SELECT hashint8extended(first + o, 1) FROM generate_series(1, inserts) o));
		ELSE
			INSERT INTO t SELECT hashint8extended(nextval('public.fresh'), 1), 0 FROM generate_series(1, inserts);
			SELECT count(v) INTO answer FROM t
			WHERE k = ANY (ARRAY(SELECT hashint8extended(first + o, 1) FROM generate_series(1, counted) o));
		END IF;
		COMMIT;
	END LOOP;
END
$$;
