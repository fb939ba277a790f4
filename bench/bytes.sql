--
-- bytes.sql: functions of bench/bytes.  There is one table at a time, t (i, k) with an index t_k on k.
--

-- A key of an access method: ascending with i, or in no order.  gpu_hash gets text.
CREATE FUNCTION key_sql(method text, ascending bool) RETURNS text LANGUAGE sql AS
$$
	SELECT CASE WHEN method = 'gpu_hash' THEN CASE WHEN ascending THEN 'lpad(i::text, 20)' ELSE 'md5(i::text)' END
		ELSE CASE WHEN ascending THEN 'i' ELSE 'hashint8extended(i, 0)' END END
$$;

-- A table of so many rows, and its index.
CREATE PROCEDURE make(method text, ascending bool, n bigint) LANGUAGE plpgsql AS
$$
BEGIN
	DROP TABLE IF EXISTS t;
	EXECUTE format('CREATE TABLE t AS SELECT i, %s AS k FROM generate_series(1, $1::bigint) i', key_sql(method, ascending)) USING n;
	EXECUTE format('CREATE INDEX t_k ON t USING %I (k)', method);
	ANALYZE t;
END
$$;

-- Inserts rows first to last, so many in a transaction.  The index is asked for a key after each.
CREATE PROCEDURE fill(method text, ascending bool, first bigint, last bigint, batch int) LANGUAGE plpgsql AS
$$
DECLARE
	key text := key_sql(method, ascending);
	found bigint;
BEGIN
	WHILE first <= last LOOP
		EXECUTE format('INSERT INTO t SELECT i, %s FROM generate_series($1, $2) i', key) USING first, least(first + batch - 1, last);
		COMMIT;
		EXECUTE format('SELECT count(*) FROM t WHERE k = (SELECT %s FROM (SELECT $1::bigint AS i) s)', key) INTO found USING first;
		first := first + batch;
	END LOOP;
END
$$;

CREATE FUNCTION bytes_an_entry(device text) RETURNS numeric LANGUAGE sql AS
$$
	SELECT round(x.bytes / x.entries::numeric, 2) FROM gpuds_indexes x
	WHERE x.indexrelname = 't_k' AND x.device = bytes_an_entry.device
$$;

-- Waits until the structure has all that was inserted, and keeps its size for so many seconds.
CREATE PROCEDURE settle(device text, seconds int) LANGUAGE plpgsql AS
$$
DECLARE
	before numeric := -1;
	now_has numeric;
	quiet int := 0;
BEGIN
	FOR i IN 1 .. 600 LOOP
		PERFORM gpuds_index_load('t_k');
		COMMIT;
		SELECT sum(x.bytes) INTO now_has FROM gpuds_indexes x
		WHERE x.indexrelname = 't_k' AND x.device = settle.device AND x.state = 'loaded' AND x.applied_position = x.journal_position;
		quiet := CASE WHEN now_has = before THEN quiet + 1 ELSE 0 END;
		EXIT WHEN quiet >= seconds;
		before := now_has;
		PERFORM pg_sleep(1);
	END LOOP;
	IF quiet < seconds THEN
		RAISE EXCEPTION 'the size does not settle';
	END IF;
END
$$;
