-- Who may check, load and evict an index, and who may look at the views.
\set test test_admin_privileges
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

SET client_min_messages = warning;
DROP ROLE IF EXISTS regress_gpuds_owner;
DROP ROLE IF EXISTS regress_gpuds_other;
DROP ROLE IF EXISTS regress_gpuds_member;
RESET client_min_messages;
CREATE ROLE regress_gpuds_owner;
CREATE ROLE regress_gpuds_other;
CREATE ROLE regress_gpuds_member IN ROLE regress_gpuds_owner;
GRANT ALL ON SCHEMA test_admin_privileges TO regress_gpuds_owner, regress_gpuds_other;

SET ROLE regress_gpuds_owner;
CREATE TABLE t (k int);
INSERT INTO t SELECT generate_series(1, 1000);
CREATE INDEX t_k ON t USING gpu_btree (k);
CREATE TABLE p (k int) PARTITION BY RANGE (k);
CREATE INDEX p_k ON p USING gpu_btree (k);
GRANT ALL ON t TO regress_gpuds_other;

-- the owner, members of the owning role, superusers
SELECT gpuds_index_check('t_k', true);
SELECT gpuds_index_load('t_k');
SELECT gpuds_index_evict('t_k');
SET ROLE regress_gpuds_member;
SELECT gpuds_index_check('t_k', true);
SELECT gpuds_index_load('t_k');
SELECT gpuds_index_evict('t_k');
RESET ROLE;
SELECT gpuds_index_check('t_k', true);
SELECT gpuds_index_load('t_k');

-- nobody else, whatever else they may do
SET ROLE regress_gpuds_other;
SELECT gpuds_index_check('t_k');
SELECT gpuds_index_check('t_k', true);
SELECT gpuds_index_load('t_k');
SELECT gpuds_index_evict('t_k');
SELECT gpuds_index_stats_reset('t_k');
SELECT gpuds_index_check('p_k');

-- the views are for all
SELECT relname, indexrelname, state, entries FROM gpuds_indexes WHERE schemaname = 'test_admin_privileges';
SELECT relname, indexrelname, loads FROM gpuds_stat_indexes WHERE schemaname = 'test_admin_privileges';
SELECT name, state FROM gpuds_devices WHERE kind = 'cpu';
SELECT memory_total > 0 AS total FROM gpuds_memtables;
SELECT memory_total > 0 AS total FROM gpuds_included;
RESET ROLE;

-- functions of the index run as the owner, with what the owner may do only
SET ROLE regress_gpuds_other;
CREATE FUNCTION whoami_of(i int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	RAISE NOTICE 'as %', current_user;
	RETURN i;
END $$;
CREATE TABLE o (k int);
SET client_min_messages = warning;
INSERT INTO o VALUES (1);
CREATE INDEX o_k ON o USING gpu_btree (test_admin_privileges.whoami_of(k));
RESET client_min_messages;
RESET ROLE;
SELECT gpuds_index_check('o_k', true);
SELECT current_user = session_user AS same;
SELECT gpuds_index_check('o_k', false);

SET client_min_messages = warning;
DROP SCHEMA test_admin_privileges CASCADE;
DROP ROLE regress_gpuds_member, regress_gpuds_owner, regress_gpuds_other;
