--
-- demo-end.sql: the last rows of the table, after pgbench's transactions (see bench/demo)
--

INSERT INTO demo.result (name, btree_ms, gpu_ms, same)
SELECT 'pgbench: 20,000 transactions, 2 clients, ms each',
	(SELECT ms FROM demo.pgbench WHERE who = 'btree'), (SELECT ms FROM demo.pgbench WHERE who = 'gpu'),
	(SELECT sum(abalance) FROM btree.pgbench_accounts) = (SELECT sum(delta) FROM btree.pgbench_history) AND
	(SELECT sum(abalance) FROM gpu.pgbench_accounts) = (SELECT sum(delta) FROM gpu.pgbench_history);
CALL demo.compare('account by number', 'SELECT * FROM pgbench_accounts WHERE aid = 1234567', 'pgbench_accounts_aid', 21);
CALL demo.compare('accounts of one branch', 'SELECT count(*), count(DISTINCT aid) FROM pgbench_accounts
	WHERE aid BETWEEN 700001 AND 800000', 'pgbench_accounts_aid');

-- The extension's own check: pages, structure, every visible row.
SELECT to_regprocedure('gpuds_index_check(regclass, boolean)') IS NOT NULL AS check \gset
\if :check
SELECT clock_timestamp() AS t0 \gset
SELECT gpuds_index_check(c.oid::regclass, true)
FROM pg_class c JOIN pg_am a ON a.oid = c.relam
WHERE c.relkind = 'i' AND a.amname = :'am';
INSERT INTO demo.result (name, gpu_ms, same)
SELECT 'gpuds_index_check(index, true), all indexes', extract(epoch FROM clock_timestamp() - :'t0') * 1000, true;
\endif
