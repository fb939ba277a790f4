-- What VACUUM's cleanup does, and what it need not do: compaction of stripes that
-- have grown long, pages read once, the mirror kept.
\set test test_compaction
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

-- The records of an index's base, as its metapage has it on disk.
CREATE FUNCTION in_base(index regclass) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	CHECKPOINT;
	RETURN (SELECT sum(get_byte(page, 24 + 32 + i)::bigint << 8 * i)
			FROM pg_read_binary_file(pg_relation_filepath(index), 0, 8192) page, generate_series(0, 7) i);
END $$;

-- an index that only grows: from nothing, and by more than a quarter
CREATE TABLE t (id int, k bigint) WITH (autovacuum_enabled = off);
CREATE INDEX t_k ON t USING gpu_btree (k);
INSERT INTO t SELECT i, (i::bigint * 7919) % 100003 FROM generate_series(1, 60000) i;
SELECT in_base('t_k');
VACUUM t;
SELECT in_base('t_k');
SELECT gpuds_index_check('t_k', true);
SELECT same('SELECT * FROM t WHERE k BETWEEN 500 AND 50000', 't_k');
INSERT INTO t SELECT i, (i::bigint * 7919) % 100003 FROM generate_series(60001, 100000) i;
SELECT in_base('t_k');
VACUUM t;
SELECT in_base('t_k');
SELECT same('SELECT * FROM t WHERE k BETWEEN 500 AND 50000', 't_k');

-- a little more is left alone
INSERT INTO t SELECT i, (i::bigint * 7919) % 100003 FROM generate_series(100001, 103000) i;
VACUUM t;
SELECT in_base('t_k');

-- with the bulk delete, too
INSERT INTO t SELECT i, (i::bigint * 7919) % 100003 FROM generate_series(103001, 160000) i;
DELETE FROM t WHERE id = 5;
CALL wait_for_snapshots();
VACUUM (INDEX_CLEANUP on) t;
SELECT in_base('t_k');
SELECT gpuds_index_check('t_k', true);

-- what was compacted is not sorted in memory all at once
INSERT INTO t SELECT i, (i::bigint * 7919) % 100003 FROM generate_series(160001, 260000) i;
SET maintenance_work_mem = '1MB';
VACUUM t;
RESET maintenance_work_mem;
SELECT in_base('t_k');
SELECT gpuds_index_check('t_k', true);

-- no cleanup was asked for
INSERT INTO t SELECT i, (i::bigint * 7919) % 100003 FROM generate_series(260001, 360000) i;
VACUUM (INDEX_CLEANUP off) t;
SELECT in_base('t_k');

-- a mirror that was up to date before the compaction is so behind it
SELECT same('SELECT * FROM t WHERE k BETWEEN 500 AND 50000', 't_k');
SELECT loads FROM gpuds_stat_indexes WHERE indexrelid = 't_k'::regclass \gset before_
VACUUM t;
SELECT in_base('t_k');
SELECT same('SELECT * FROM t WHERE k BETWEEN 500 AND 50000', 't_k');
INSERT INTO t SELECT i, 200000 FROM generate_series(1, 100) i;
SELECT same('SELECT * FROM t WHERE k BETWEEN 100000 AND 300000', 't_k');
SELECT loads - :before_loads AS loads FROM gpuds_stat_indexes WHERE indexrelid = 't_k'::regclass;

-- a bulk delete reads every page, the cleanup behind it none again
DELETE FROM t WHERE id IN (7, 7000);
SELECT pg_stat_force_next_flush();
SELECT pg_stat_get_blocks_fetched('t_k'::regclass) AS before \gset
VACUUM (INDEX_CLEANUP on) t;
SELECT pg_stat_force_next_flush();
SELECT fetched BETWEEN pages / 2 AND 1.2 * pages AS once
FROM (SELECT pg_stat_get_blocks_fetched('t_k'::regclass) - :before AS fetched, pg_relation_size('t_k') / 8192 AS pages) s;
SELECT gpuds_index_check('t_k', true);

-- temporary tables
CREATE TEMP TABLE tmp (k int);
CREATE INDEX tmp_k ON tmp USING gpu_btree (k);
INSERT INTO tmp SELECT generate_series(1, 60000);
VACUUM tmp;
SELECT gpuds_index_check('tmp_k', true);
SELECT same('SELECT * FROM tmp WHERE k BETWEEN 500 AND 50000', 'tmp_k');
SELECT pg_relation_size('tmp_k') > 2 * 60000 * 16 AS was_rewritten;
