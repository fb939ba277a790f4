-- What an index would take, before it is there: gpuds_index_estimate.
\set test test_estimate_size
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

-- Beside indexes that are there: different keys, two columns, few keys, and what is included
CREATE TABLE t (id bigint NOT NULL, twice bigint, few bigint, a int, b int, half int, at timestamptz, u uuid, note text) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT hashint8extended(i, 0), i / 2, i % 100, i % 500, i, CASE WHEN i % 2 = 0 THEN i END, '2026-01-01'::timestamptz + i * interval '1 s',
	md5(i::text)::uuid, 'some text'
FROM generate_series(1, 300000) i;
VACUUM ANALYZE t;

\set ECHO none
-- What is estimated, in percent of what is there
CREATE FUNCTION in_percent(columns name[], included name[] DEFAULT '{}', OUT entries numeric, OUT disk numeric, OUT structure numeric)
LANGUAGE plpgsql AS $$
DECLARE
	estimate record;
BEGIN
	SELECT * INTO estimate FROM gpuds_index_estimate('t', columns, included, 'gpu_btree');
	EXECUTE format('CREATE INDEX t_real ON t USING gpu_btree (%s) %s', array_to_string(columns, ', '),
		CASE WHEN included <> '{}' THEN format('INCLUDE (%s)', array_to_string(included, ', ')) END);
	PERFORM gpuds_index_load('t_real');
	SELECT round(100.0 * estimate.entries / i.entries), round(100.0 * estimate.journal_bytes / pg_relation_size('t_real')),
		round(100.0 * CASE i.device WHEN 'cpu' THEN estimate.host_bytes ELSE estimate.device_bytes END / i.bytes)
	INTO entries, disk, structure FROM gpuds_indexes i WHERE i.indexrelid = 't_real'::regclass;
	DROP INDEX t_real;
END $$;
\set ECHO all
CREATE VIEW kinds (columns, included) AS VALUES ('{id}'::name[], '{}'::name[]), ('{twice}', '{}'), ('{few}', '{}'), ('{a,b}', '{}'), ('{id,few}', '{}'),
	('{few,id}', '{}'), ('{half}', '{}'), ('{u}', '{}'), ('{at}', '{a,b}');
-- On the CPU device
SELECT current_setting('gpuds.device') AS device \gset
SET gpuds.device = cpu;
SELECT k.columns, k.included, e.entries, e.disk, e.structure BETWEEN 99 AND 116 AS structure FROM kinds k, in_percent(k.columns, k.included) e;
-- On the server's device.  A GPU's chunks are larger, and not all of them are filled.
SET gpuds.device = :device;
SELECT k.columns, k.included, e.entries, e.disk, e.structure BETWEEN 98 AND 140 AS structure FROM kinds k, in_percent(k.columns, k.included) e;

-- What docs/OPERATIONS.md says is enough after as many random inserts as there were rows, and what a load after VACUUM leaves of it
CREATE INDEX t_id ON t USING gpu_btree (id);
SELECT gpuds_index_load('t_id');
INSERT INTO t SELECT hashint8extended(i, 0) FROM generate_series(300001, 600000) i;
ANALYZE t;
SELECT gpuds_index_load('t_id');
SELECT i.bytes > e.bytes * CASE WHEN i.structure LIKE 'AVL%' THEN 0.9 ELSE 1.2 END AS grown, i.bytes <= e.bytes * CASE WHEN i.device <> 'cpu' THEN 2.2 WHEN i.structure = 'B+tree' THEN 1.5 ELSE 1.6 END AS enough
FROM gpuds_indexes i, LATERAL (SELECT CASE i.device WHEN 'cpu' THEN host_bytes ELSE device_bytes END AS bytes FROM gpuds_index_estimate('t', '{id}', '{}', 'gpu_btree')) e
WHERE i.indexrelid = 't_id'::regclass;
VACUUM t;
SELECT gpuds_index_evict('t_id'), gpuds_index_load('t_id');
SELECT i.bytes > e.bytes * 1.01 AS grown
FROM gpuds_indexes i, LATERAL (SELECT CASE i.device WHEN 'cpu' THEN host_bytes ELSE device_bytes END AS bytes FROM gpuds_index_estimate('t', '{id}', '{}', 'gpu_btree')) e
WHERE i.indexrelid = 't_id'::regclass;
DROP INDEX t_id;
DELETE FROM t WHERE note IS NULL;
VACUUM ANALYZE t;

-- A key of one word, and of two; with few different keys the structure takes more of the host's memory, but not of a GPU's
SELECT gpuds_index_estimate('t', '{id}') = gpuds_index_estimate('t', '{id}', '{}') AS same,
	(gpuds_index_estimate('t', '{id}')).journal_bytes < (gpuds_index_estimate('t', '{id,few}')).journal_bytes AS wider,
	(gpuds_index_estimate('t', '{few}')).host_bytes > (gpuds_index_estimate('t', '{id}')).host_bytes AS larger,
	(gpuds_index_estimate('t', '{few}')).device_bytes = (gpuds_index_estimate('t', '{id}')).device_bytes AS same_there,
	(gpuds_index_estimate('t', ARRAY['a', 'b'])).journal_bytes = (gpuds_index_estimate('t', '{id}')).journal_bytes AS as_texts;
-- tables that nobody has looked at yet, and one that has grown since
CREATE TABLE unseen (k bigint) WITH (autovacuum_enabled = off);
INSERT INTO unseen SELECT generate_series(1, 10000);
SELECT entries BETWEEN 5000 AND 20000 AS entries, host_bytes / entries BETWEEN 24 AND 32 AS bytes FROM gpuds_index_estimate('unseen', '{k}');
ANALYZE unseen;
SELECT entries, host_bytes / entries BETWEEN 20 AND 28 AS bytes FROM gpuds_index_estimate('unseen', '{k}');
INSERT INTO unseen SELECT generate_series(10001, 20000);
SELECT entries BETWEEN 19000 AND 21000 AS entries FROM gpuds_index_estimate('unseen', '{k}');
CREATE TABLE empty (k bigint) WITH (autovacuum_enabled = off);
VACUUM empty;
SELECT entries < 10000 AS entries FROM gpuds_index_estimate('empty', '{k}');
CREATE MATERIALIZED VIEW viewed AS SELECT id FROM t LIMIT 1000;
CREATE TEMP TABLE mine AS SELECT id FROM t LIMIT 1000;
ANALYZE viewed, mine;
SELECT (gpuds_index_estimate('viewed', '{id}')).entries, (gpuds_index_estimate('mine', '{id}')).entries;
-- of domains and enums
CREATE DOMAIN number AS bigint;
CREATE TYPE colour AS ENUM ('red', 'green');
CREATE TYPE mixed AS ENUM ('a', 'c');
ALTER TYPE mixed ADD VALUE 'b' BEFORE 'c';
CREATE TABLE typed (n number, c colour, m mixed, d numeric, j jsonb, r real[], i interval);
SELECT entries > 0 AS n FROM gpuds_index_estimate('typed', '{n,c}');

-- what cannot be an index
SELECT gpuds_index_estimate('t', '{note}');
SELECT gpuds_index_estimate('t', '{id}', '{note}');
SELECT gpuds_index_estimate('typed', '{d}');
SELECT gpuds_index_estimate('typed', '{r}');
SELECT gpuds_index_estimate('typed', '{m}');
SELECT gpuds_index_estimate('t', '{id,at,few}');
SELECT (gpuds_index_estimate('t', '{id}', '{at,few}')).entries;
SELECT gpuds_index_estimate('t', '{a,b,a,b,a,b,a,b,a}');
SELECT gpuds_index_estimate('t', '{}');
SELECT gpuds_index_estimate('t', '{id,NULL}');
SELECT gpuds_index_estimate('t', '{other}');
SELECT gpuds_index_estimate('t', '{ctid}');
SELECT gpuds_index_estimate('t', NULL) IS NULL AS is_null;
SELECT gpuds_index_estimate(1::regclass, '{id}');
CREATE VIEW seen AS SELECT * FROM t;
SELECT gpuds_index_estimate('seen', '{id}');
CREATE TABLE parted (k bigint) PARTITION BY RANGE (k);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (10);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (10) TO (20);
SELECT gpuds_index_estimate('parted', '{k}');
SELECT count(*), sum(e.journal_bytes) > 0 AS bytes FROM pg_partition_tree('parted') p, gpuds_index_estimate(p.relid, '{k}') e WHERE p.isleaf;

-- It is for those who may read the columns, as pg_stats is
SET client_min_messages = warning;
DROP ROLE IF EXISTS regress_gpuds_estimates;
RESET client_min_messages;
CREATE ROLE regress_gpuds_estimates;
SET ROLE regress_gpuds_estimates;
SELECT gpuds_index_estimate('test_estimate_size.t'::regclass, '{id}');
RESET ROLE;
SELECT 't'::regclass::oid AS t \gset
SET ROLE regress_gpuds_estimates;
SELECT gpuds_index_estimate(:t, '{id}');
RESET ROLE;
GRANT USAGE ON SCHEMA test_estimate_size TO regress_gpuds_estimates;
GRANT SELECT (id, a) ON t TO regress_gpuds_estimates;
SET ROLE regress_gpuds_estimates;
SELECT (gpuds_index_estimate('t', '{id,a}')).entries;
SELECT gpuds_index_estimate('t', '{id,b}');
SELECT gpuds_index_estimate('t', '{id}', '{b}');
RESET ROLE;
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
SET ROLE regress_gpuds_estimates;
SELECT gpuds_index_estimate('t', '{id}');
RESET ROLE;
SET client_min_messages = warning;
DROP SCHEMA test_estimate_size CASCADE;
DROP ROLE regress_gpuds_estimates;
