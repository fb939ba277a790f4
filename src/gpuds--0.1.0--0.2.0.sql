/* src/gpuds--0.1.0--0.2.0.sql */

\echo Use "ALTER EXTENSION gpuds UPDATE TO '0.2.0'" to load this file. \quit

-- Whatever 0.2.0 has and 0.1.0 has not.  test/t/039_upgrade.pl compares what this leads to with
-- what gpuds--0.2.0.sql makes; both are changed in one commit.

ALTER FUNCTION gpu_btree_handler(internal) PARALLEL SAFE;

-- Those who may not see an index have no row of it.
CREATE OR REPLACE VIEW gpuds_stat_indexes AS
	SELECT x.indrelid AS relid, x.indexrelid, n.nspname AS schemaname, t.relname, i.relname AS indexrelname,
		s.scans, s.batches, s.probes, s.entries_returned, s.applied_operations, s.loads, s.device_time,
		s.fallbacks, s.launches, s.mean_batch, s.bus_bytes
	FROM pg_catalog.pg_index x
		JOIN pg_catalog.pg_class t ON t.oid OPERATOR(pg_catalog.=) x.indrelid
		JOIN pg_catalog.pg_class i ON i.oid OPERATOR(pg_catalog.=) x.indexrelid
		JOIN pg_catalog.pg_am a ON a.oid OPERATOR(pg_catalog.=) i.relam
		LEFT JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) t.relnamespace
		CROSS JOIN LATERAL gpuds_index_stats(x.indexrelid) s
	WHERE a.amname OPERATOR(pg_catalog.=) 'gpu_btree' AND i.relkind OPERATOR(pg_catalog.=) 'i' AND s.scans IS NOT NULL;

-- For those who may read the columns, as with pg_stats.
CREATE FUNCTION gpuds_index_estimate(relation regclass, columns name[], included name[] DEFAULT '{}',
		OUT entries bigint, OUT journal_bytes bigint, OUT host_bytes bigint, OUT device_bytes bigint)
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION gpuds_index_estimate(regclass, name[], name[]) IS
	'what a gpu_btree index on these columns would take: entries, bytes on disk, in shared memory, on a GPU';
