-- pg_stat_all_indexes and pg_stat_all_tables count what our nodes and functions read as they count core's index scans.
\set test test_batch_core_stats
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

SET track_counts = on;
CREATE TABLE o AS SELECT i * 3 AS k FROM generate_series(1, 1500) i;
-- Unlogged, so that rows are visited, and not known by page states
CREATE UNLOGGED TABLE of_core (k int, v int, w int, s bigint) WITH (autovacuum_enabled = off);
CREATE UNLOGGED TABLE of_ours (LIKE of_core) WITH (autovacuum_enabled = off);
CREATE UNLOGGED TABLE of_hash (LIKE of_core) WITH (autovacuum_enabled = off);
INSERT INTO of_core SELECT i, i % 100, i, i FROM generate_series(1, 9000) i;
INSERT INTO of_ours TABLE of_core;
INSERT INTO of_hash TABLE of_core;
CREATE INDEX of_core_i ON of_core USING btree (k, v) INCLUDE (s);
CREATE INDEX of_ours_i ON of_ours USING gpu_btree (k, v) INCLUDE (s);
CREATE INDEX of_hash_i ON of_hash USING gpu_hash (k);
CALL wait_for_snapshots();
VACUUM ANALYZE of_core, of_ours, of_hash, o;
-- From here on some pages are not all-visible, and rows are dead, though not for everybody.
BEGIN;
UPDATE of_core SET w = 0 WHERE k BETWEEN 3000 AND 3200;
UPDATE of_ours SET w = 0 WHERE k BETWEEN 3000 AND 3200;
UPDATE of_hash SET w = 0 WHERE k BETWEEN 3000 AND 3200;
DELETE FROM of_core WHERE k BETWEEN 4000 AND 4100;
DELETE FROM of_ours WHERE k BETWEEN 4000 AND 4100;
DELETE FROM of_hash WHERE k BETWEEN 4000 AND 4100;

SET LOCAL enable_seqscan = off;
SET LOCAL enable_hashjoin = off;
SET LOCAL enable_mergejoin = off;
SET LOCAL enable_material = off;
SET LOCAL enable_memoize = off;

\set ECHO none
-- What one execution of a query adds to the counters of a table and its index: what idx_tup_read and idx_tup_fetch
-- of the index, and idx_tup_fetch of the table, are made of.
CREATE FUNCTION counts(query text, tab text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	t oid := tab::regclass;
	i oid := (tab || '_i')::regclass;
	reads bigint;
	fetches bigint;
	scans bigint;
	of_table bigint;
	plan text;
	node text;
BEGIN
	query := replace(query, 'TAB', tab);
	plan := plan_of(query);
	node := coalesce(substring(plan FROM 'Gpuds\w+'), substring(plan FROM 'Bitmap Heap Scan|Index Only Scan|Index Scan'), 'function');
	reads := pg_stat_get_xact_tuples_returned(i);
	fetches := pg_stat_get_xact_tuples_fetched(i);
	of_table := pg_stat_get_xact_tuples_fetched(t);
	scans := pg_stat_get_xact_numscans(i);
	EXECUTE query;
	RETURN format('%s: %s read, %s fetched%s%s', node, pg_stat_get_xact_tuples_returned(i) - reads,
		pg_stat_get_xact_tuples_fetched(i) - fetches + pg_stat_get_xact_tuples_fetched(t) - of_table,
		CASE WHEN pg_stat_get_xact_tuples_fetched(t) > of_table THEN ' (the table''s)' END,
		CASE WHEN pg_stat_get_xact_numscans(i) = scans THEN ', no scan' END);
END $$;

-- The same by core's btree and by ours.
CREATE FUNCTION both_count(query text, other text DEFAULT 'of_ours') RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
	RETURN NEXT counts(query, 'of_core');
	RETURN NEXT counts(query, other);
END $$;
\set ECHO all

-- rows that are fetched
SET LOCAL enable_bitmapscan = off;
SELECT both_count('SELECT * FROM TAB WHERE k BETWEEN 2900 AND 4200');
SELECT both_count('SELECT * FROM TAB WHERE k = 3100', 'of_hash');
SET LOCAL enable_bitmapscan = on;
SET LOCAL enable_indexscan = off;
SELECT both_count('SELECT * FROM TAB WHERE k BETWEEN 2900 AND 4200');
SELECT both_count('SELECT * FROM TAB WHERE k = ANY (ARRAY(SELECT generate_series(2900, 4200)))', 'of_hash');
SET LOCAL gpuds.enable_scan = on;
SELECT both_count('SELECT * FROM TAB WHERE k BETWEEN 2900 AND 4200');
SELECT both_count('SELECT * FROM TAB WHERE k = ANY (ARRAY(SELECT generate_series(2900, 4200)))', 'of_hash');
SET LOCAL enable_indexscan = on;
SET LOCAL enable_bitmapscan = off;

-- rows that are not fetched where the page is all-visible
SELECT both_count('SELECT k, v FROM TAB WHERE k BETWEEN 2900 AND 4200');
SELECT both_count('SELECT s FROM TAB WHERE k BETWEEN 2900 AND 4200');
SELECT both_count('SELECT k, v FROM TAB WHERE k BETWEEN 100 AND 700');
SET LOCAL gpuds.enable_aggregate = on;
SET LOCAL random_page_cost = 0;
SET LOCAL seq_page_cost = 0;
SELECT both_count('SELECT count(*) FROM TAB WHERE k BETWEEN 2900 AND 4200');
SELECT both_count('SELECT sum(v) FROM TAB WHERE k BETWEEN 2900 AND 4200');
SELECT both_count('SELECT sum(s) FROM TAB WHERE k BETWEEN 2900 AND 4200');
SELECT both_count('SELECT k / 10, count(*), max(v) FROM TAB WHERE k BETWEEN 2900 AND 4200 GROUP BY 1');
SELECT both_count('SELECT k / 1000, count(*), max(v) FROM TAB WHERE k BETWEEN 500 AND 8500 GROUP BY 1');
SELECT both_count('SELECT sum(v) FROM TAB WHERE k BETWEEN 500 AND 8500');
SELECT both_count('SELECT count(*) FROM TAB WHERE k BETWEEN 500 AND 8500');
SELECT both_count('SELECT count(*) FROM TAB WHERE k BETWEEN 100 AND 700');
SET LOCAL random_page_cost TO DEFAULT;
SET LOCAL seq_page_cost TO DEFAULT;

-- joins
SET LOCAL gpuds.enable_join = on;
SET LOCAL enable_nestloop = off;
SELECT both_count('SELECT count(*) FROM o JOIN TAB USING (k)');
SELECT both_count('SELECT count(w) FROM o JOIN TAB USING (k)');
SELECT both_count('SELECT count(w) FROM o LEFT JOIN TAB USING (k)');
SELECT both_count('SELECT count(*) FROM o WHERE EXISTS (SELECT FROM TAB WHERE TAB.k = o.k)');
SELECT both_count('SELECT count(*) FROM o WHERE NOT EXISTS (SELECT FROM TAB WHERE TAB.k = o.k)');
SELECT both_count('SELECT count(w) FROM o JOIN TAB USING (k)', 'of_hash');

-- functions
SELECT counts('SELECT gpuds_contains(''TAB_i'', ARRAY(SELECT k FROM o))', 'of_ours');
SELECT counts('SELECT count(*) FROM gpuds_lookup(''TAB_i'', ARRAY(SELECT k FROM o))', 'of_ours');
SELECT counts('SELECT gpuds_count(''TAB_i'', 2900, 4200)', 'of_ours');
SELECT counts('SELECT gpuds_contains(''TAB_i'', ARRAY(SELECT k FROM o))', 'of_hash');

-- enable_indexonlyscan says of all nodes whether the heap may be left out
SET LOCAL enable_indexonlyscan = off;
SELECT both_count('SELECT count(*) FROM TAB WHERE k BETWEEN 100 AND 700');
SELECT both_count('SELECT count(*) FROM o JOIN TAB USING (k)');
SELECT both_count('SELECT count(*) FROM o WHERE NOT EXISTS (SELECT FROM TAB WHERE TAB.k = o.k)');
EXPLAIN (COSTS OFF) SELECT count(*) FROM o JOIN of_ours USING (k);
EXPLAIN (COSTS OFF) SELECT k, count(*) FROM of_ours WHERE k BETWEEN 100 AND 700 GROUP BY k;
COMMIT;
