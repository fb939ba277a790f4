-- EXPLAIN ANALYZE of GpudsJoin and GpudsAggregate: what it shows of their scans, on whatever device.
\set test test_batch_explain
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

CREATE TABLE t (id int, k int, v int) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, i % 5000, i % 10 FROM generate_series(1, 20000) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
CREATE TABLE o (id int, k int) WITH (autovacuum_enabled = off);
INSERT INTO o SELECT i, i FROM generate_series(4001, 6000) i;
VACUUM ANALYZE t, o;
SET gpuds.enable_join = on;
SET gpuds.enable_aggregate = on;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_nestloop = off;

\set ECHO none
-- Is it the device that is set?
CREATE FUNCTION is_right(device text) RETURNS bool LANGUAGE sql AS $$
	SELECT current_setting('gpuds.device') IN (split_part(device, ':', 1), 'auto')
$$;

-- Lines of EXPLAIN ANALYZE.  A GPU is the only device that has a bus.
CREATE FUNCTION analyzed(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	device text;
	has_bus bool := false;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		device := coalesce(substring(line FROM 'Device: (.*)'), device);
		IF line ~ 'Bus Bytes: [1-9]' THEN
			has_bus := true;
		ELSE
			RETURN NEXT CASE WHEN device IS NOT NULL AND is_right(device) THEN replace(line, 'Device: ' || device, 'Device: as set') ELSE line END;
		END IF;
	END LOOP;
	IF has_bus <> (device ~ 'cuda') THEN
		RETURN NEXT 'Device and Bus Bytes do not fit';
	END IF;
END $$;

-- What JSON has of each node of ours.
CREATE FUNCTION figures(query text, timing text DEFAULT 'off') RETURNS SETOF jsonb LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE format('EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING %s, SUMMARY OFF, FORMAT JSON) %s', timing, query) INTO plan;
	RETURN QUERY SELECT jsonb_path_query(plan, 'strict $.** ? (@."Node Type" == "Custom Scan")');
END $$;
\set ECHO all

-- one scan: from the index, from pages that the map does not vouch for, from the heap
SELECT analyzed('SELECT o.id, t.k FROM o JOIN t ON t.k = o.k');
SELECT analyzed('SELECT count(*) FROM t WHERE k < 100');
SELECT analyzed('SELECT o.id FROM o WHERE EXISTS (SELECT FROM t WHERE t.k = o.k)');
SELECT analyzed('SELECT o.id, t.v FROM o LEFT JOIN t ON t.k = o.k');
-- unlogged, so that page states do not save visits
CREATE UNLOGGED TABLE changing WITH (autovacuum_enabled = off) AS SELECT * FROM t;
CREATE INDEX changing_k ON changing USING gpu_btree (k);
VACUUM ANALYZE changing;
UPDATE changing SET v = v + 1 WHERE id = 5;
SELECT f ->> 'Matches' AS matches, f ->> 'All-Visible Matches' AS all_visible, f ->> 'Heap Fetches' AS fetches
FROM figures('SELECT count(*) FROM changing') f;

-- what is not asked for is not shown
EXPLAIN (COSTS OFF) SELECT count(*) FROM t WHERE k < 100;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT count(*) FROM t WHERE k < 100;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT o.id, t.k FROM o JOIN t ON t.k = o.k;

-- in JSON; device time where times are wanted
SELECT key, jsonb_typeof(value) FROM figures('SELECT o.id, t.k FROM o JOIN t ON t.k = o.k', 'off') f, jsonb_each(f)
WHERE key ~ 'Device|Batches|Probes|Matches|Fetches' ORDER BY key;
SELECT is_right(f ->> 'Device') AS device, ((f ->> 'Bus Bytes')::bigint > 0) IS TRUE = (f ->> 'Device' ~ 'cuda') AS bus,
	((f ->> 'Device Time')::float > 0) IS TRUE = (f ->> 'Device' ~ 'cuda') AS device_time
FROM figures('SELECT o.id, t.k FROM o JOIN t ON t.k = o.k', 'on') f;
SELECT is_right(f ->> 'Device') AS device, ((f ->> 'Bus Bytes')::bigint > 0) IS TRUE = (f ->> 'Device' ~ 'cuda') AS bus,
	((f ->> 'Device Time')::float > 0) IS TRUE = (f ->> 'Device' ~ 'cuda') AS device_time
FROM figures('SELECT count(*) FROM t WHERE k < 2000', 'on') f;

-- figures of loops add up
SELECT f ->> 'Actual Loops' AS loops, f ->> 'Batches' AS batches, f ->> 'Probes' AS probes, f ->> 'Matches' AS matches,
	f ->> 'All-Visible Matches' AS all_visible, f ->> 'Heap Fetches' AS fetches
FROM figures('SELECT i, (SELECT count(*) FROM t WHERE k = i) FROM generate_series(1, 5) i') f;
SELECT f ->> 'Actual Loops' AS loops, f ->> 'Batches' AS batches, f ->> 'Probes' AS probes, f ->> 'Matches' AS matches,
	f ->> 'All-Visible Matches' AS all_visible, f ->> 'Heap Fetches' AS fetches
FROM figures('SELECT i, (SELECT sum(t.v) FROM o JOIN t ON t.k = o.k AND o.id > 4005 + i * 0) FROM generate_series(1, 3) i') f;
-- of a node that was not executed, and of one that had nothing to look for
SELECT f ->> 'Actual Loops' AS loops, f ->> 'Device' AS device, f ->> 'Batches' AS batches, f ->> 'Heap Fetches' AS fetches
FROM figures('SELECT CASE WHEN i > 9 THEN (SELECT count(*) FROM t WHERE k = i) END FROM generate_series(1, 5) i') f;
SELECT f ->> 'Actual Loops' AS loops, f ->> 'Device' AS device, f ->> 'Batches' AS batches, f ->> 'Heap Fetches' AS fetches
FROM figures('SELECT o.id, t.k FROM o JOIN t ON t.k = o.k WHERE o.id < 0') f;

-- where the index does not fit, its pages answer, if that was not known before
SET client_min_messages = error;
SET log_min_messages = error;
CREATE TEMPORARY TABLE small AS SELECT id, k FROM t, generate_series(1, 5);
CREATE INDEX small_k ON small USING gpu_btree (k);
ANALYZE small;
SET plan_cache_mode = force_generic_plan;
PREPARE p AS SELECT o.id, small.k FROM o JOIN small ON small.k = o.k;
SELECT plan_of('EXECUTE p') ~ 'GpudsJoin' AS has_node;
SET gpuds.temp_memory = '1MB';
SELECT f ->> 'Device' AS device, f ->> 'Matches' AS matches, f ->> 'All-Visible Matches' AS all_visible, f ->> 'Heap Fetches' AS fetches
FROM figures('EXECUTE p') f;
RESET gpuds.temp_memory;
RESET plan_cache_mode;
RESET client_min_messages;
RESET log_min_messages;

-- workers hand theirs in, also those that are started again, and those whose rows nobody wanted
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET parallel_leader_participation = off;
SET max_parallel_workers_per_gather = 2;
SELECT f ->> 'Parallel Aware' AS parallel, (f ->> 'Batches')::int > 0 AS batches, f ->> 'Probes' AS probes,
	f ->> 'Matches' AS matches, f ->> 'All-Visible Matches' AS all_visible, f ->> 'Heap Fetches' AS fetches,
	is_right(f ->> 'Device') AS device
FROM figures('SELECT count(t.k) FROM o JOIN t ON t.k = o.k') f;
SET enable_nestloop = on;
SET enable_material = off;
SELECT (f ->> 'Batches')::int > 0 AS batches, f ->> 'Probes' AS probes, f ->> 'Matches' AS matches,
	f ->> 'All-Visible Matches' AS all_visible, f ->> 'Heap Fetches' AS fetches
FROM figures('SELECT * FROM (VALUES (1), (2), (3)) i (i) LEFT JOIN (SELECT count(t.k) AS n FROM o JOIN t ON t.k = o.k) q ON q.n > i') f;
RESET enable_material;
SET enable_nestloop = off;
SELECT (f ->> 'Probes')::int > 0 AS probes, (f ->> 'Matches')::int > 0 AS matches
FROM figures('SELECT t.k FROM o JOIN t ON t.k = o.k LIMIT 1') f;
-- a node that a worker runs by itself hands nothing in, and none of it is shown
SET parallel_leader_participation = on;
SELECT set_config(name, 'on', false) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query');
RESET min_parallel_table_scan_size;
SELECT f ->> 'Parallel Aware' AS parallel, f ->> 'Actual Loops' AS loops, f ? 'Batches' AS shown
FROM figures('SELECT count(t.k) FROM o JOIN t ON t.k = o.k') f;

-- a plan that is explained and not executed, for those who ask for more
SELECT set_config(name, 'off', false) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query');
SET max_parallel_workers_per_gather = 0;
LOAD 'auto_explain';
SET auto_explain.log_min_duration = 0;
SET auto_explain.log_analyze = on;
EXPLAIN (BUFFERS, COSTS OFF) SELECT count(t.k) FROM o JOIN t ON t.k = o.k;
SET auto_explain.log_min_duration = -1;
