# Many clients at once insert, update, delete, vacuum and look: every look agrees
# with a sequential scan of the same snapshot.

use strict;
use warnings;

use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('concurrent', conf => "synchronous_commit = off\n");

$node->safe_psql('postgres', <<'END');
CREATE TABLE t (id bigserial, k int, d date, v int);
INSERT INTO t (k, d, v)
	SELECT i * 7919 % 3000, date '2026-01-01' + i % 50, i % 10 FROM generate_series(1, 6000) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
CREATE INDEX t_d_v ON t USING gpu_btree (d, v DESC);
CREATE INDEX t_id ON t (id);
CREATE TABLE x (k int, EXCLUDE USING gpu_btree (k WITH =));

-- In a transaction of one snapshot: both ways must give the same
CREATE FUNCTION look(query text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	expected text;
	answer text;
	way text;
BEGIN
	SET LOCAL enable_seqscan = on;
	SET LOCAL enable_indexscan = off;
	SET LOCAL enable_bitmapscan = off;
	EXECUTE query INTO expected;
	SET LOCAL enable_seqscan = off;
	FOREACH way IN ARRAY '{index,bitmap}'::text[] LOOP
		PERFORM set_config('enable_indexscan', CASE way WHEN 'index' THEN 'on' ELSE 'off' END, true);
		PERFORM set_config('enable_bitmapscan', CASE way WHEN 'bitmap' THEN 'on' ELSE 'off' END, true);
		EXECUTE query INTO answer;
		IF answer IS DISTINCT FROM expected THEN
			RAISE EXCEPTION '% scan gave %, not %, for: %', way, answer, expected, query;
		END IF;
	END LOOP;
END $$;
END

my @scripts = (
	[ script_file('insert', <<'END'), 8 ],
\set k random(1, 3000)
\set n random(1, 20)
BEGIN;
INSERT INTO t (k, d, v) SELECT :k + i, date '2026-01-01' + i, i % 10 FROM generate_series(1, :n) i;
SAVEPOINT a;
INSERT INTO t (k, d, v) SELECT -i, date '2020-01-01', i FROM generate_series(1, :n) i;
SELECT count(*) FROM t WHERE k < 0;
ROLLBACK TO a;
COMMIT;
END
	[ script_file('update', <<'END'), 6 ],
\set id random(1, 20000)
UPDATE t SET k = k + 1, d = d + 1 WHERE id BETWEEN :id AND :id + 10 AND id % 8 = :client_id;
END
	[ script_file('delete', <<'END'), 6 ],
\set id random(1, 20000)
DELETE FROM t WHERE id BETWEEN :id AND :id + 100 AND id % 8 = :client_id;
END
	[ script_file('look', <<'END'), 10 ],
\set k random(1, 3000)
\set v random(0, 9)
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT look('SELECT (count(*), sum(id), sum(v))::text FROM t WHERE k BETWEEN ' || :k || ' AND ' || :k + 100);
SELECT look('SELECT (count(*), sum(id))::text FROM t WHERE k = ' || :k);
SELECT look('SELECT (count(*), sum(id))::text FROM t WHERE d = date ''2026-01-20'' AND v = ' || :v);
COMMIT;
END
	[ script_file('vacuum', "VACUUM (INDEX_CLEANUP ON) t;\n"), 1 ],
	[ script_file('exclude', <<'END'), 3 ],
\set k random(1, 2000)
INSERT INTO x VALUES (:k) ON CONFLICT DO NOTHING;
DELETE FROM x WHERE k = (:k * 7) % 2000;
END
);

my $bench = start_pgbench($node, '-c 8 -j 2 -T 10', @scripts);
ok(finish_pgbench($bench), 'every look of every client agreed') or diag($bench->{out});
note($bench->{out});
check_all_indexes($node, 'indexes are whole');
is($node->safe_psql('postgres', 'SELECT count(*) - count(DISTINCT k) FROM x'), '0',
	'the exclusion constraint held');
same_answers($node, 'answers at rest',
	'SELECT count(*), sum(id) FROM t WHERE k >= 0', 'SELECT count(*), sum(id) FROM t WHERE k < 0',
	"SELECT count(*), sum(id) FROM t WHERE d > date '2026-01-10'",
	'SELECT k FROM t WHERE k > 10 ORDER BY k LIMIT 100');

# Autovacuum has its hands in it too from here on
$node->append_conf('postgresql.conf', "
	autovacuum = on
	autovacuum_naptime = 1s
	autovacuum_vacuum_threshold = 20
	autovacuum_vacuum_scale_factor = 0.01\n");
$node->reload;

# The same, with the mirror thrown away and loaded by whoever comes next
push @scripts,
  [ script_file('evict', "SELECT gpuds_index_evict('t_k'); SELECT gpuds_index_evict('t_d_v');\n"), 2 ],
  [ script_file('load', "SELECT gpuds_index_load('t_k');\n"), 1 ],
  [ script_file('reindex', "REINDEX INDEX t_d_v;\n"), 1 ];
$bench = start_pgbench($node, '-c 8 -j 2 -T 6', @scripts);
ok(finish_pgbench($bench), 'also while mirrors come and go') or diag($bench->{out});
check_all_indexes($node, 'indexes are whole at the end');
$node->stop;

done_testing();
