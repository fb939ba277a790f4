-- gpuds.* settings.
\set test test_settings
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

SELECT name, vartype, context, enumvals, unit FROM pg_settings
WHERE name IN ('gpuds.device', 'gpuds.device_memory', 'gpuds.device_timeout', 'gpuds.host_memory', 'gpuds.staging_memory') ORDER BY name;

CREATE TABLE t (id int, k bigint);
INSERT INTO t SELECT i, i FROM generate_series(1, 1000) i;
CREATE INDEX t_k ON t USING gpu_btree (k);

-- the same answers whatever the device; where there is no GPU, cuda warns once and the CPU answers
SET client_min_messages = error;
SET gpuds.device = cuda;
SELECT same('SELECT * FROM t WHERE k > 500', 't_k');
SELECT gpuds_index_load('t_k');
SELECT gpuds_index_check('t_k', true);
RESET client_min_messages;
SET gpuds.device = cpu;
SELECT same('SELECT * FROM t WHERE k > 500', 't_k');
SET gpuds.device = auto;
SELECT same('SELECT * FROM t WHERE k > 500', 't_k');
BEGIN;
SET LOCAL gpuds.device = 'CPU';
INSERT INTO t VALUES (0, 501);
SELECT same('SELECT * FROM t WHERE k > 500', 't_k');
COMMIT;
SHOW gpuds.device;

-- bad values
SET gpuds.device = 'tpu';
SET gpuds.device = '';
SET gpuds.device = 1;
SHOW gpuds.device;
SET gpuds.host_memory = '1GB';
SET gpuds.device_memory = '1GB';
SET gpuds.staging_memory = '1GB';
\set VERBOSITY sqlstate
ALTER SYSTEM SET gpuds.host_memory = -1;
ALTER SYSTEM SET gpuds.host_memory = 'much';
ALTER SYSTEM SET gpuds.device_memory = -1;
ALTER SYSTEM SET gpuds.device_memory = '1 byte too many';
ALTER SYSTEM SET gpuds.staging_memory = 0;
ALTER SYSTEM SET gpuds.device_timeout = -1;
\set VERBOSITY default

-- the prefix is ours
SET gpuds.no_such_setting = 1;
