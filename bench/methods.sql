--
-- methods.sql: functions of bench/methods.  Schemas named for access methods have a table t(k, v) each, with
-- k = hashint8extended(v, 1), and search_path says which is meant.
--

-- Milliseconds on a processor: of this session, and of the drainer, when it has applied what there is.
CREATE FUNCTION cpu() RETURNS float8 LANGUAGE plpgsql AS
$$
DECLARE
	spent float8;
	drainer int;
BEGIN
	FOR i IN 1 .. 1000 LOOP
		EXIT WHEN (SELECT coalesce(operations, 0) = 0 FROM public.gpuds_memtables);
		PERFORM pg_sleep(0.02);
	END LOOP;
	SELECT drainer_pid INTO drainer FROM public.gpuds_memtables;
	spent := split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)::float8;
	IF drainer > 0 THEN
		spent := spent + split_part(pg_read_file('/proc/' || drainer || '/schedstat'), ' ', 1)::float8;
	END IF;
	RETURN spent / 1e6;
END
$$;

CREATE PROCEDURE lookups(n int) LANGUAGE plpgsql AS
$$
DECLARE
	answer bigint;
BEGIN
	FOR i IN 1 .. n LOOP
		SELECT v INTO answer FROM t WHERE k = hashint8extended(i * 7, 1);
	END LOOP;
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
			UPDATE t SET k = k # 1 WHERE k = ANY (ARRAY(SELECT hashint8extended(first + o, 1) FROM generate_series(1, inserts) o));
		ELSE
			INSERT INTO t SELECT hashint8extended(nextval('public.fresh'), 1), 0 FROM generate_series(1, inserts);
			SELECT count(v) INTO answer FROM t WHERE k = ANY (ARRAY(SELECT hashint8extended(first + o, 1) FROM generate_series(1, counted) o));
		END IF;
		COMMIT;
	END LOOP;
END
$$;
