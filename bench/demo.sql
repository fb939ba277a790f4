--
-- demo.sql: events in two schemas, the same statements on both (see bench/demo)
--
-- Variable am: the access method compared with btree.

CREATE SCHEMA demo;

CREATE TABLE demo.result (
	n int GENERATED ALWAYS AS IDENTITY,
	name text NOT NULL,
	btree_ms float8,
	gpu_ms float8,
	same bool,
	remark text					-- what was wrong
);

CREATE TABLE demo.pgbench (who text, ms float8);

CREATE FUNCTION demo.ms(ms float8) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT to_char(ms, CASE WHEN ms < 10 THEN 'FM9990.000' ELSE 'FM999990.0' END) $$;

-- The set of keys that a client would send: an array parameter.
CREATE TABLE demo.wanted (keys bigint[]);
CREATE FUNCTION demo.wanted() RETURNS bigint[] LANGUAGE plpgsql STABLE AS
$$ BEGIN RETURN (SELECT keys FROM demo.wanted); END $$;

-- Which scans the planner may choose.
CREATE FUNCTION demo.allow(seq bool) RETURNS void LANGUAGE sql AS
$$
	SELECT set_config('enable_seqscan', seq::text, false),
		set_config(s, (NOT seq)::text, false)
	FROM unnest('{enable_indexscan,enable_indexonlyscan,enable_bitmapscan}'::text[]) s;
$$;

/*
 * Run a query on both sides, alternating, and on a sequential scan, and note
 * the medians.  $1 in the query is the array of wanted keys.
 */
CREATE PROCEDURE demo.compare(what text, query text, index text, runs int DEFAULT 5) LANGUAGE plpgsql AS
$$
DECLARE
	side text;
	call text := 'EXECUTE q' || CASE WHEN query LIKE '%$1%' THEN '(demo.wanted())' ELSE '' END;
	kind text := CASE WHEN query LIKE '%$1%' THEN '(bigint[])' ELSE '' END;
	started timestamptz;
	plan json;
	answer text;
	truth text;
	ok bool := true;
	trouble text;
	times jsonb := '{"btree": [], "gpu": []}';
BEGIN
	-- The truth.  Planned with the array's value, so that it is hashed.
	PERFORM demo.allow(true);
	SET LOCAL plan_cache_mode = force_custom_plan;
	FOREACH side IN ARRAY '{btree,gpu}'::text[] LOOP
		PERFORM set_config('search_path', side, true);
		EXECUTE format('PREPARE q%s AS SELECT r::text FROM (%s) r', kind, query);
		EXECUTE 'EXPLAIN (FORMAT JSON) ' || call INTO plan;
		EXECUTE call INTO answer;
		DEALLOCATE q;
		IF plan::text NOT LIKE '%"Seq Scan"%' OR plan::text LIKE '%"Index Name"%' THEN
			ok := false;
			trouble := 'the check was no sequential scan';
		ELSIF side = 'gpu' AND answer IS DISTINCT FROM truth THEN
			ok := false;
			trouble := 'the tables differ';
		END IF;
		truth := answer;
	END LOOP;

	PERFORM demo.allow(false);
	SET LOCAL plan_cache_mode = force_generic_plan;
	FOREACH side IN ARRAY '{btree,gpu}'::text[] LOOP
		PERFORM set_config('search_path', side, true);
		EXECUTE format('PREPARE q_%s%s AS SELECT r::text FROM (%s) r', side, kind, query);
		EXECUTE 'EXPLAIN (FORMAT JSON) ' || replace(call, 'EXECUTE q', 'EXECUTE q_' || side) INTO plan;
		IF plan::text NOT LIKE format('%%"Index Name": "%s"%%', index) THEN
			ok := false;
			trouble := side || ' did not use ' || index;
		END IF;
	END LOOP;
	FOR run IN 0 .. runs LOOP
		FOREACH side IN ARRAY '{btree,gpu}'::text[] LOOP
			PERFORM set_config('search_path', side, true);
			started := clock_timestamp();
			EXECUTE replace(call, 'EXECUTE q', 'EXECUTE q_' || side) INTO answer;
			IF run > 0 THEN
				times := jsonb_insert(times, ARRAY[side, '0'],
									  to_jsonb(extract(epoch FROM clock_timestamp() - started) * 1000));
			END IF;
			IF answer IS DISTINCT FROM truth THEN
				ok := false;
				trouble := format('%s says %s, a sequential scan %s', side, left(answer, 60), left(truth, 60));
			END IF;
		END LOOP;
	END LOOP;
	DEALLOCATE q_btree;
	DEALLOCATE q_gpu;
	PERFORM set_config('search_path', 'public', true);

	INSERT INTO demo.result (name, btree_ms, gpu_ms, same, remark)
	SELECT what,
		(SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY t::float8) FROM jsonb_array_elements_text(times->'btree') t),
		(SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY t::float8) FROM jsonb_array_elements_text(times->'gpu') t),
		ok, trouble;
	COMMIT;
END
$$;

/*
 * Run a changing statement once on each side and note the times.  The same
 * answer here is the same number of rows; the rows are looked at afterwards.
 */
CREATE PROCEDURE demo.change(what text, statement text) LANGUAGE plpgsql AS
$$
DECLARE
	side text;
	started timestamptz;
	rows bigint;
	rows_before bigint;
	ms float8[];
BEGIN
	PERFORM demo.allow(false);
	FOREACH side IN ARRAY '{btree,gpu}'::text[] LOOP
		PERFORM set_config('search_path', side, true);
		started := clock_timestamp();
		EXECUTE statement;
		GET DIAGNOSTICS rows = ROW_COUNT;
		COMMIT;
		ms := ms || extract(epoch FROM clock_timestamp() - started)::float8 * 1000;
		IF side = 'btree' THEN
			rows_before := rows;
		END IF;
	END LOOP;
	PERFORM set_config('search_path', 'public', true);
	INSERT INTO demo.result (name, btree_ms, gpu_ms, same, remark)
	VALUES (what, ms[1], ms[2], rows = rows_before,
			CASE WHEN rows <> rows_before THEN format('%s rows and %s rows', rows_before, rows) END);
	COMMIT;
END
$$;

-- The events: a random key, a time, an account, an amount.
CREATE TABLE btree.events (key bigint, at timestamptz, account int, amount int, note text);
INSERT INTO btree.events
SELECT hashint8extended(i, 1), '2026-01-01 00:00Z'::timestamptz + i * interval '5 s' + random() * interval '1 min',
	1 + (hashint8extended(i, 2) & 2147483647) % 2000000, hashint8extended(i, 3) % 1000, 'event ' || i
FROM generate_series(1, 2000000) i;
CREATE TABLE gpu.events (LIKE btree.events);
INSERT INTO gpu.events TABLE btree.events;
INSERT INTO demo.wanted
SELECT array_agg(k) FROM (SELECT hashint8extended(i * 19, 1) FROM generate_series(1, 100000) i
						  ORDER BY hashint8extended(i, 4)) AS w(k);

CREATE INDEX pgbench_accounts_aid ON gpu.pgbench_accounts USING :am (aid);
ALTER INDEX btree.pgbench_accounts_pkey RENAME TO pgbench_accounts_aid;
CREATE INDEX ON btree.pgbench_tellers (tid);
CHECKPOINT;

-- DDL as "changes": the number of rows is 0 on both sides.
SELECT set_config('demo.am', :'am', false);
DO
$$
DECLARE
	side text;
	ms float8[];
	i text[];
	started timestamptz;
BEGIN
	FOREACH i SLICE 1 IN ARRAY '{{events_key,key},{events_at,at},{events_account_at,"account, at"}}'::text[] LOOP
		ms := '{}';
		FOREACH side IN ARRAY '{btree,gpu}'::text[] LOOP
			started := clock_timestamp();
			EXECUTE format('CREATE INDEX %I ON %I.events USING %I (%s)', i[1], side,
						   CASE side WHEN 'btree' THEN 'btree' ELSE current_setting('demo.am') END, i[2]);
			COMMIT;
			ms := ms || extract(epoch FROM clock_timestamp() - started)::float8 * 1000;
		END LOOP;
		INSERT INTO demo.result (name, btree_ms, gpu_ms, same)
		VALUES (format('CREATE INDEX ON events (%s)', i[2]), ms[1], ms[2], true);
		COMMIT;
	END LOOP;
END
$$;
VACUUM ANALYZE btree.events;
VACUUM ANALYZE gpu.events;
VACUUM ANALYZE btree.pgbench_accounts;
VACUUM ANALYZE gpu.pgbench_accounts;

CALL demo.compare('account by number', 'SELECT * FROM pgbench_accounts WHERE aid = 1234567', 'pgbench_accounts_aid', 21);
SELECT keys[1] AS key FROM demo.wanted \gset
CALL demo.compare('event by key', 'SELECT * FROM events WHERE key = ' || :'key', 'events_key', 21);
CALL demo.compare('key that is not there', 'SELECT count(*) FROM events WHERE key = 42', 'events_key', 21);
CALL demo.compare('key = ANY of 100 keys', 'SELECT count(*), sum(amount) FROM events WHERE key = ANY ($1[1:100])',
				  'events_key', 21);
CALL demo.compare('key = ANY of 10,000 keys', 'SELECT count(*), sum(amount) FROM events WHERE key = ANY ($1[1:10000])',
				  'events_key');
CALL demo.compare('key = ANY of 100,000 keys', 'SELECT count(*), sum(amount) FROM events WHERE key = ANY ($1)',
				  'events_key');
CALL demo.compare('range: a day of events', $q$SELECT count(*), sum(amount) FROM events
	WHERE at >= '2026-02-10 00:00Z' AND at < '2026-02-11 00:00Z'$q$, 'events_at');
CALL demo.compare('range: 1 % of the random keys', 'SELECT count(*), sum(amount) FROM events
	WHERE key BETWEEN 1000000000000000000 AND 1184467440737095516', 'events_key');
CALL demo.compare('the latest 20 events', 'SELECT string_agg(e::text, $s$, $s$) FROM
	(SELECT * FROM events ORDER BY at DESC, key LIMIT 20) e', 'events_at');
CALL demo.compare('the 1,000 smallest keys', 'SELECT count(*), sum(amount), max(key) FROM
	(SELECT * FROM events ORDER BY key LIMIT 1000) e', 'events_key');
CALL demo.compare('latest 3 events of one account', 'SELECT string_agg(e::text, $s$, $s$) FROM
	(SELECT * FROM events WHERE account = 4711 ORDER BY account DESC, at DESC LIMIT 3) e', 'events_account_at', 21);

CALL demo.change('INSERT 100,000 events', $q$INSERT INTO events
	SELECT hashint8extended(i, 1), '2026-05-01 00:00Z'::timestamptz + i * interval '1 s', i, i % 1000, 'late event ' || i
	FROM generate_series(2000001, 2100000) i$q$);
CALL demo.change('UPDATE the events of a day (key changes)', $q$UPDATE events SET key = -key, amount = amount + 1
	WHERE at >= '2026-02-10 00:00Z' AND at < '2026-02-11 00:00Z'$q$);
CALL demo.change('DELETE 100,000 events by key', 'DELETE FROM events WHERE key = ANY (demo.wanted())');
CALL demo.compare('after it: key = ANY of the deleted keys', 'SELECT count(*), sum(amount) FROM events
	WHERE key = ANY ($1)', 'events_key');
CALL demo.compare('after it: the day of the update', $q$SELECT count(*), sum(amount), sum(key::numeric) FROM events
	WHERE at >= '2026-02-10 00:00Z' AND at < '2026-02-11 00:00Z'$q$, 'events_at');
CALL demo.compare('after it: range of keys', 'SELECT count(*), sum(amount) FROM events
	WHERE key BETWEEN 1000000000000000000 AND 1184467440737095516', 'events_key');

-- VACUUM runs in no function.
SELECT clock_timestamp() AS t0 \gset
VACUUM btree.events;
SELECT clock_timestamp() AS t1 \gset
VACUUM gpu.events;
INSERT INTO demo.result (name, btree_ms, gpu_ms, same)
SELECT 'VACUUM events', extract(epoch FROM :'t1'::timestamptz - :'t0') * 1000,
	extract(epoch FROM clock_timestamp() - :'t1') * 1000, true;

-- New rows take the places of the deleted ones.
CALL demo.change('INSERT 100,000 events in their place', $q$INSERT INTO events
	SELECT hashint8extended(i, 5), '2026-05-03 00:00Z'::timestamptz + i * interval '1 s', i, i % 1000, 'new event ' || i
	FROM generate_series(1, 100000) i$q$);
CALL demo.compare('after it: key = ANY of the deleted keys', 'SELECT count(*), sum(amount) FROM events
	WHERE key = ANY ($1)', 'events_key');
CALL demo.compare('after it: range of keys', 'SELECT count(*), sum(amount) FROM events
	WHERE key BETWEEN 1000000000000000000 AND 1184467440737095516', 'events_key');
CALL demo.compare('after it: the latest 20 events', 'SELECT string_agg(e::text, $s$, $s$) FROM
	(SELECT * FROM events ORDER BY at DESC, key LIMIT 20) e', 'events_at');
