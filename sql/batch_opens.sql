-- What core's nodes check when they open a table, nodes and functions of ours check as well.
\set test test_batch_opens
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

CREATE TABLE source AS SELECT i AS k, i % 10 AS v FROM generate_series(1, 5000) i;
CREATE TABLE o AS SELECT i AS k FROM generate_series(1, 100) i;
CREATE TABLE nothing (k int);
CREATE TABLE plain (k int, v int) WITH (autovacuum_enabled = off);
INSERT INTO plain SELECT k, v FROM source;
CREATE INDEX plain_k ON plain USING gpu_btree (k);
CREATE MATERIALIZED VIEW viewed AS SELECT k, v FROM source WITH NO DATA;
CREATE INDEX viewed_k ON viewed USING gpu_btree (k);
CREATE INDEX viewed_v ON viewed USING gpu_btree (v, k);
CREATE INDEX viewed_h ON viewed USING gpu_hash (k);
CREATE INDEX viewed_i ON viewed USING gpu_btree (k) INCLUDE (v);
ANALYZE source, o, nothing, plain;

SET enable_seqscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_nestloop = off;
-- no page is all-visible here, and looking rows up one by one would leave GpudsAggregate out
SET cpu_operator_cost = 0.0001;
SET gpuds.enable_aggregate = on;
SET gpuds.enable_scan = on;
SET gpuds.enable_join = on;

\set ECHO none
-- The node of ours that a query's plan has, by EXPLAIN, which reads nothing.
CREATE FUNCTION node_in(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan text := plan_of(query);
BEGIN
	RETURN coalesce(substring(plan FROM '(Gpuds\w+)'), 'no node') || coalesce(', ' || substring(plan FROM 'Join Type: (\w+( Semi)?)'), '');
END $$;

-- That, and what the query answers or raises.
CREATE FUNCTION outcome(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	node text := node_in(query);
	answer text;
	hint text;
BEGIN
	EXECUTE query INTO answer;
	RETURN node || ': ' || coalesce(answer, 'done');
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
	RETURN node || ': ' || sqlstate || ' ' || sqlerrm || '. ' || hint;
END $$;

-- All ways to read a table, of one name.
CREATE FUNCTION outcomes(name text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	query text;
BEGIN
	FOREACH query IN ARRAY ARRAY[
		'SELECT count(*) FROM o JOIN T USING (k)',
		'SELECT count(v) FROM o JOIN T USING (k)',
		'SELECT count(*) FROM o LEFT JOIN T USING (k)',
		'SELECT count(*) FROM o WHERE EXISTS (SELECT FROM T WHERE T.k = o.k)',
		'SELECT count(*) FROM o WHERE NOT EXISTS (SELECT FROM T WHERE T.k = o.k)',
		'SELECT count(*) FROM T WHERE k IN (SELECT k FROM o)',
		'SELECT count(*) FROM nothing WHERE NOT EXISTS (SELECT FROM T WHERE T.k = nothing.k)',
		'WITH gone AS (DELETE FROM o WHERE NOT EXISTS (SELECT FROM T WHERE T.k = o.k) RETURNING *) SELECT count(*) FROM gone',
		'WITH changed AS (UPDATE o SET k = o.k FROM T WHERE T.k = o.k RETURNING *) SELECT count(*) FROM changed',
		'SELECT count(*) FROM T',
		'SELECT count(*) FROM T WHERE k < 50',
		'SELECT sum(v) FROM T WHERE v < 5',
		'SELECT string_agg(r::text, '' '') FROM (SELECT v, count(*) FROM T GROUP BY v) r',
		'SELECT string_agg(v::text, '''') FROM (SELECT v FROM T WHERE k = ANY (''{1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18}'') OFFSET 0) r',
		'SELECT gpuds_contains(''T_k'', ''{1,-1}''::int[])',
		'SELECT gpuds_contains(''T_h'', ''{1,-1}''::int[])',
		'SELECT count(*) FROM gpuds_lookup(''T_k'', ''{1,-1}''::int[])',
		'SELECT count(*) FROM gpuds_lookup(''T_h'', ''{1,-1}''::int[])',
		'SELECT gpuds_count(''T_k'', 1, 10)',
		'SELECT gpuds_index_check(''T_k'', true)']
	LOOP
		RETURN NEXT outcome(regexp_replace(query, '\mT(_[kh])?\M', name || '\1', 'g'));
	END LOOP;
END $$;
\set ECHO all

-- a materialized view without data is not empty: reading it is an error
SELECT outcomes('viewed');
SELECT count(*) FROM o;

-- what does not read it is none
SELECT node_in('DELETE FROM o WHERE NOT EXISTS (SELECT FROM viewed WHERE viewed.k = o.k)');
\set ECHO none
CREATE FUNCTION nodes_made(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	plan text := '';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || command LOOP
		plan := plan || line || E'\n';
	END LOOP;
	RETURN substring(plan FROM 'Gpuds\w+');
END $$;
\set ECHO all
SELECT nodes_made('CREATE TABLE made AS SELECT k FROM o JOIN viewed USING (k) WITH NO DATA');
SELECT nodes_made('CREATE MATERIALIZED VIEW made_too AS SELECT count(*) FROM viewed WITH NO DATA');
SELECT * FROM made;
SELECT * FROM made_too;
SELECT gpuds_index_check('viewed_k');
SELECT gpuds_index_load('viewed_k'), gpuds_index_load('viewed_i'), gpuds_index_evict('viewed_k');

-- nor are permissions lost in the order of checks
CREATE ROLE regress_gpuds_reader;
GRANT USAGE ON SCHEMA test_batch_opens TO regress_gpuds_reader;
SET ROLE regress_gpuds_reader;
SELECT gpuds_contains('viewed_k', '{1}'::int[]);
SELECT count(*) FROM viewed WHERE k < 50;
RESET ROLE;

-- with data
REFRESH MATERIALIZED VIEW viewed;
SELECT outcomes('viewed');

-- with data and without, in turns, under prepared plans
SET plan_cache_mode = force_generic_plan;
PREPARE missing AS SELECT count(*) FROM o WHERE NOT EXISTS (SELECT FROM viewed WHERE viewed.k = o.k);
PREPARE counted AS SELECT count(*) FROM viewed WHERE k < 50;
PREPARE fetched AS SELECT v FROM viewed WHERE k = ANY ('{1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18}') ORDER BY k;
EXECUTE missing;
EXECUTE counted;
REFRESH MATERIALIZED VIEW viewed WITH NO DATA;
EXECUTE missing;
EXECUTE counted;
EXECUTE fetched;
SELECT node_in('EXECUTE missing');
REFRESH MATERIALIZED VIEW viewed;
EXECUTE missing;
EXECUTE counted;
-- while it is read, in this session
BEGIN;
DECLARE c CURSOR FOR SELECT k FROM o WHERE NOT EXISTS (SELECT FROM viewed WHERE viewed.k = o.k);
REFRESH MATERIALIZED VIEW viewed WITH NO DATA;
ROLLBACK;
RESET plan_cache_mode;

-- materialized views whose own queries have our nodes
SELECT node_in('SELECT k, count(*) AS n FROM o JOIN plain USING (k) GROUP BY k'), node_in('SELECT v, count(*) FROM viewed GROUP BY v');
CREATE MATERIALIZED VIEW joined AS SELECT k, count(*) AS n FROM o JOIN plain USING (k) GROUP BY k;
CREATE UNIQUE INDEX joined_u ON joined (k);
CREATE INDEX joined_k ON joined USING gpu_btree (k) INCLUDE (n);
CREATE MATERIALIZED VIEW totals AS SELECT v, count(*) FROM viewed GROUP BY v WITH NO DATA;
SELECT outcome('SELECT count(*) FROM totals');
REFRESH MATERIALIZED VIEW totals;
SELECT count(*), sum(count) FROM totals;
SELECT count(*), sum(n) FROM joined WHERE k BETWEEN 0 AND 1000;
DELETE FROM plain WHERE k <= 10;
INSERT INTO plain SELECT k, 0 FROM generate_series(11, 20) k;
REFRESH MATERIALIZED VIEW CONCURRENTLY joined;
SELECT count(*), sum(n) FROM joined WHERE k BETWEEN 0 AND 1000;
SELECT gpuds_index_check('joined_k', true);
REFRESH MATERIALIZED VIEW joined;
SELECT count(*), sum(n) FROM joined WHERE k BETWEEN 0 AND 1000;
SELECT gpuds_index_check('joined_k', true);
-- one that is made of another without data
REFRESH MATERIALIZED VIEW viewed WITH NO DATA;
REFRESH MATERIALIZED VIEW totals;
SELECT count(*), sum(count) FROM totals;
REFRESH MATERIALIZED VIEW viewed;

-- a child that is no table of ours counts, too: here by its error
CREATE TABLE pieces (k int, v int) PARTITION BY RANGE (k);
CREATE TABLE pieces_1 PARTITION OF pieces FOR VALUES FROM (0) TO (100);
CREATE INDEX pieces_1_k ON pieces_1 USING gpu_btree (k);
INSERT INTO pieces SELECT i, i FROM generate_series(0, 99) i;
SELECT outcome('SELECT count(*) FROM pieces');
CREATE FOREIGN DATA WRAPPER regress_gpuds_wrapper;
CREATE SERVER regress_gpuds_server FOREIGN DATA WRAPPER regress_gpuds_wrapper;
CREATE FOREIGN TABLE pieces_2 PARTITION OF pieces FOR VALUES FROM (100) TO (200) SERVER regress_gpuds_server;
SELECT count(*) FROM pieces;
SELECT count(*) FROM o JOIN pieces USING (k);
SELECT outcome('SELECT count(*) FROM pieces_1');
SET client_min_messages = warning;
DROP FOREIGN DATA WRAPPER regress_gpuds_wrapper CASCADE;
RESET client_min_messages;

-- an index that is being built anew, by what its own expression calls
CREATE TABLE self (k int);
INSERT INTO self SELECT generate_series(1, 10);
CREATE FUNCTION looked_up(k int) RETURNS int LANGUAGE plpgsql IMMUTABLE SET search_path FROM CURRENT AS $$
BEGIN
	EXECUTE coalesce(nullif(current_setting('regress.looks_up', true), ''), 'SELECT 1');
	RETURN k;
END $$;
CREATE INDEX self_k ON self USING gpu_btree (looked_up(k));
SET regress.looks_up = $$SELECT gpuds_contains('test_batch_opens.self_k', '{1}'::int[])$$;
REINDEX INDEX self_k;
SET regress.looks_up = $$SELECT gpuds_index_check('test_batch_opens.self_k')$$;
REINDEX INDEX self_k;
RESET regress.looks_up;

-- an index that is not valid answers nothing
CREATE TABLE broken AS SELECT i AS k FROM generate_series(1, 1000) i;
CREATE INDEX broken_k ON broken USING gpu_btree (k);
ANALYZE broken;
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'broken_k'::regclass;
SELECT outcome('SELECT count(*) FROM broken WHERE k < 500');
SELECT outcome('SELECT gpuds_contains(''broken_k'', ''{1}''::int[])');
SET enable_nestloop = on;
SELECT outcome('SELECT count(*) FROM o WHERE NOT EXISTS (SELECT FROM broken WHERE broken.k = o.k)');
DROP TABLE broken;

-- a join that is not executed locks nothing for SERIALIZABLE
SET plan_cache_mode = force_generic_plan;
PREPARE perhaps(bool) AS SELECT CASE WHEN $1 THEN (SELECT count(*) FROM o JOIN plain USING (k)) END;
SELECT node_in('EXECUTE perhaps(true)');
BEGIN ISOLATION LEVEL SERIALIZABLE;
EXECUTE perhaps(false);
SELECT relation::regclass FROM pg_locks WHERE mode = 'SIReadLock' AND pid = pg_backend_pid() AND relation IN ('plain'::regclass, 'plain_k'::regclass) ORDER BY 1;
EXECUTE perhaps(true);
SELECT relation::regclass FROM pg_locks WHERE mode = 'SIReadLock' AND pid = pg_backend_pid() AND relation IN ('plain'::regclass, 'plain_k'::regclass) ORDER BY 1;
COMMIT;

REVOKE USAGE ON SCHEMA test_batch_opens FROM regress_gpuds_reader;
DROP ROLE regress_gpuds_reader;
