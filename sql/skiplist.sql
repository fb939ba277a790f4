-- gpu_skiplist and gpu_avl: what they share with gpu_btree, and what they have of their own.  All that queries do with
-- them is tested by GPUDS_TEST_AM=gpu_skiplist test/run, and by GPUDS_TEST_AM=gpu_avl.
\set test test_skiplist
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

SELECT a.amname, pg_indexam_has_property(a.oid, p.name) AS value, p.name
FROM pg_am a, unnest('{can_order,can_multi_col,can_exclude,can_include}'::text[]) WITH ORDINALITY p (name, n)
WHERE a.amname IN ('gpu_btree', 'gpu_skiplist', 'gpu_avl') ORDER BY p.n, a.amname;

-- Families, classes and operators are gpu_btree's, and depend on the same things.
CREATE VIEW parts AS
SELECT a.amname, format('family %s.%s', f.opfnamespace::regnamespace, f.opfname) AS part
FROM pg_opfamily f JOIN pg_am a ON a.oid = f.opfmethod
UNION ALL
SELECT a.amname, format('class %s.%s of %s for %s, default %s, key %s', c.opcnamespace::regnamespace, c.opcname, f.opfname, c.opcintype::regtype, c.opcdefault,
	c.opckeytype::regtype)
FROM pg_opclass c JOIN pg_opfamily f ON f.oid = c.opcfamily JOIN pg_am a ON a.oid = c.opcmethod
UNION ALL
SELECT a.amname, format('operator %s %s of %s for %s, %s, depends %s', o.amopstrategy, o.amopopr::regoperator, f.opfname, o.amoplefttype::regtype, o.amoprighttype::regtype,
	(SELECT string_agg(format('%s %s', d.deptype, d.refclassid::regclass), ', ' ORDER BY d.deptype, d.refclassid) FROM pg_depend d
	 WHERE d.classid = 'pg_amop'::regclass AND d.objid = o.oid))
FROM pg_amop o JOIN pg_opfamily f ON f.oid = o.amopfamily JOIN pg_am a ON a.oid = f.opfmethod;
SELECT (SELECT count(*) FROM parts WHERE amname = 'gpu_btree') > 200 AS parts;
SELECT m AS method, p.part AS lacks
FROM unnest('{gpu_skiplist,gpu_avl}'::name[]) m, LATERAL (SELECT part FROM parts WHERE amname = 'gpu_btree' EXCEPT SELECT part FROM parts WHERE amname = m) p;
SELECT m AS method, p.part AS has
FROM unnest('{gpu_skiplist,gpu_avl}'::name[]) m, LATERAL (SELECT part FROM parts WHERE amname = m EXCEPT SELECT part FROM parts WHERE amname = 'gpu_btree') p;
SELECT a.amname, count(*) > 20 AS classes, bool_and(amvalidate(c.oid)) AS valid
FROM pg_opclass c JOIN pg_am a ON a.oid = c.opcmethod WHERE a.amname IN ('gpu_skiplist', 'gpu_avl') GROUP BY 1 ORDER BY 1;
-- all of them the extension's
SELECT count(*) FROM pg_opclass c JOIN pg_am a ON a.oid = c.opcmethod
WHERE a.amname IN ('gpu_skiplist', 'gpu_avl') AND NOT EXISTS (SELECT FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
	WHERE d.classid = 'pg_opclass'::regclass AND d.objid = c.oid AND d.deptype = 'e' AND e.extname = 'gpuds');

-- Both on one table; changes reach both.
CREATE TABLE t (id int, k int8, at timestamptz, u uuid) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, hashint8extended(i, 0) % 5000, timestamptz '2026-01-01 UTC' + i * interval '1 min', md5(i::text)::uuid FROM generate_series(1, 20000) i;
CREATE INDEX t_tree ON t USING gpu_btree (k);
CREATE INDEX t_list ON t USING gpu_skiplist (k);
CREATE INDEX t_wide ON t USING gpu_skiplist (u) WITH (fillfactor = 60);
CREATE INDEX t_incl ON t USING gpu_skiplist (at DESC) INCLUDE (id);
ANALYZE t;
SELECT gpuds_index_load(i) FROM unnest('{t_tree,t_list,t_wide,t_incl}'::regclass[]) i;
SELECT indexrelname, structure, entries FROM gpuds_indexes WHERE relid = 't'::regclass ORDER BY 1;
UPDATE t SET k = k + 1, at = at + interval '1 s' WHERE id % 7 = 0;
DELETE FROM t WHERE id % 11 = 0;
INSERT INTO t SELECT i, hashint8extended(i, 0) % 5000, timestamptz '2026-01-01 UTC' + i * interval '1 min', md5(i::text)::uuid FROM generate_series(20001, 40000) i;
VACUUM t;
DROP INDEX t_tree;
SELECT same('SELECT * FROM t WHERE k = ANY (''{1,2,3,-4,4999,7}'')', 't_list');
SELECT same('SELECT * FROM t WHERE k BETWEEN 100 AND 200', 't_list');
SELECT same('SELECT k FROM t WHERE k > 4900 ORDER BY k', 't_list', true);
SELECT same('SELECT k FROM t ORDER BY k DESC', 't_list', true);
SELECT same('SELECT * FROM t WHERE u > ''80000000-0000-0000-0000-000000000000''', 't_wide');
SELECT same('SELECT at, id FROM t WHERE at > ''2026-01-20 UTC'' ORDER BY at DESC', 't_incl', true);
SELECT gpuds_index_check(i, true) FROM unnest('{t_list,t_wide,t_incl}'::regclass[]) i;
SELECT gpuds_count('t_list', 1, 10) = (SELECT count(*) FROM t WHERE k BETWEEN 1 AND 10) AS count,
	gpuds_contains('t_list', '{1,2,100000}'::int8[]);
SELECT gpuds_index_evict('t_list');

-- Equal keys are entries like others: one key many times, deleted again.
CREATE TABLE same_key (id int, k int8) WITH (autovacuum_enabled = off);
INSERT INTO same_key SELECT i, 7 FROM generate_series(1, 20000) i;
CREATE INDEX same_key_k ON same_key USING gpu_skiplist (k);
ANALYZE same_key;
SELECT gpuds_index_load('same_key_k');
INSERT INTO same_key SELECT i, 7 + i % 3 - 1 FROM generate_series(20001, 40000) i;
SELECT same('SELECT * FROM same_key WHERE k = 7', 'same_key_k');
DELETE FROM same_key WHERE id % 100 <> 0;
CALL wait_for_snapshots();
VACUUM same_key;
SELECT same('SELECT * FROM same_key WHERE k = 7', 'same_key_k');
SELECT gpuds_index_check('same_key_k', true);

-- The same with an AVL tree
CREATE INDEX t_avl ON t USING gpu_avl (k, id) INCLUDE (u);
SELECT gpuds_index_load('t_avl');
SELECT structure, device LIKE current_setting('gpuds.device') || '%' OR current_setting('gpuds.device') = 'auto' AS device FROM gpuds_indexes WHERE indexrelid = 't_avl'::regclass;
DROP INDEX t_list;
UPDATE t SET k = k - 1 WHERE id % 5 = 0;
DELETE FROM t WHERE id % 13 = 0;
CALL wait_for_snapshots();
VACUUM t;
INSERT INTO t SELECT i, i % 9 - 4, now(), md5(i::text)::uuid FROM generate_series(40001, 42000) i;
SELECT same('SELECT * FROM t WHERE k = ANY (''{1,2,3,-4,4999,7}'')', 't_avl');
SELECT same('SELECT k, id, u FROM t WHERE k BETWEEN -100 AND 200 ORDER BY k, id', 't_avl', true);
SELECT same('SELECT k, id, u FROM t ORDER BY k DESC, id DESC LIMIT 5000 OFFSET 100', 't_avl', true);
SELECT gpuds_count('t_avl', 1, 10) = (SELECT count(*) FROM t WHERE k BETWEEN 1 AND 10) AS count;
SELECT gpuds_index_check('t_avl', true);
SELECT fallbacks FROM gpuds_stat_indexes WHERE indexrelid = 't_avl'::regclass;

-- What it takes, before it is there
SELECT m AS method, e.entries = b.entries AS entries, e.journal_bytes = b.journal_bytes AS disk, e.host_bytes BETWEEN b.host_bytes * 0.85 AND b.host_bytes * 1.1 AS host,
	e.device_bytes BETWEEN b.device_bytes * 0.7 AND b.device_bytes * 1.4 AS device
FROM unnest('{gpu_btree,gpu_skiplist}'::name[]) m, gpuds_index_estimate('t', '{k}', '{}', m) e, gpuds_index_estimate('t', '{k}') b;
SELECT gpuds_index_estimate('t', '{k}', '{}', 'gpu_hash');
SELECT gpuds_index_estimate('t', '{k}', method => 'btree');

SELECT e.host_bytes > b.host_bytes AS host, e.device_bytes > b.device_bytes AS device
FROM gpuds_index_estimate('t', '{k}', '{}', 'gpu_avl') e, gpuds_index_estimate('t', '{k}') b;

-- Enums are keys as long as their labels sort by their OIDs, here, too.
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE moods (m mood);
CREATE INDEX moods_m ON moods USING gpu_skiplist (m);
ALTER TYPE mood ADD VALUE 'so so' BEFORE 'ok';
DROP TABLE moods;
ALTER TYPE mood ADD VALUE 'so so' BEFORE 'ok';
CREATE TABLE moods (m mood);
-- (Servers since 17 make an index with another search_path, so the type's name is shown as that path has it.)
SET search_path = public;
CREATE INDEX ON test_skiplist.moods USING gpu_skiplist (m);
SET search_path = test_skiplist, public;

-- What it does not do
CREATE INDEX ON t USING gpu_skiplist ((ARRAY[id]));
DROP ACCESS METHOD gpu_skiplist;

SET client_min_messages = warning;
DROP SCHEMA test_skiplist CASCADE;
