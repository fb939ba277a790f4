# CREATE INDEX CONCURRENTLY and REINDEX CONCURRENTLY while clients write, with
# two-phase commit too: no row is missing in the new index.

use strict;
use warnings;

use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('cic');

$node->safe_psql('postgres', <<'END');
CREATE TABLE t (id bigserial, k bigint, v int);
INSERT INTO t (k, v) SELECT i * 7919 % 20000, i % 100 FROM generate_series(1, 10000) i;
CREATE INDEX t_id ON t (id);
CREATE INDEX t_keep ON t USING gpu_btree (k);
END

my @scripts = (
	[ script_file('insert', <<'END'), 6 ],
\set k random(1, 20000)
BEGIN;
INSERT INTO t (k, v) SELECT :k + i, i % 100 FROM generate_series(1, 5) i;
SAVEPOINT a;
INSERT INTO t (k, v) VALUES (-1, 1);
ROLLBACK TO a;
COMMIT;
END
	[ script_file('update', <<'END'), 4 ],
\set id random(1, 20000)
UPDATE t SET k = k + 1 WHERE id = :id AND id % 4 = :client_id;
UPDATE t SET v = v + 1 WHERE id = :id + 1 AND (id + 1) % 4 = :client_id;
END
	[ script_file('delete', <<'END'), 2 ],
\set id random(1, 20000)
DELETE FROM t WHERE id BETWEEN :id AND :id + 3 AND id % 4 = :client_id;
END
	[ script_file('abort', <<'END'), 1 ],
\set k random(1, 20000)
BEGIN;
INSERT INTO t (k, v) SELECT :k + i, i % 100 FROM generate_series(1, 20) i;
ROLLBACK;
END
	[ script_file('twophase', <<'END'), 3 ],
\set k random(1, 20000)
\set gid random(1, 1000000000)
BEGIN;
INSERT INTO t (k, v) SELECT :k + i, i % 100 FROM generate_series(1, 3) i;
PREPARE TRANSACTION 'c:client_id.:gid';
COMMIT PREPARED 'c:client_id.:gid';
END
);

my @queries = (
	'SELECT count(*), sum(id) FROM t WHERE k >= 0',
	'SELECT count(*), sum(id) FROM t WHERE k BETWEEN 100 AND 400');

# With these clients at work all the time, the index comes and goes
my $bench = start_pgbench($node, '-c 4 -j 2 -T 25', @scripts);
for my $round (1 .. 6)
{
	my ($rc, $out, $err) = $node->psql('postgres', '
		CREATE INDEX CONCURRENTLY t_new ON t USING gpu_btree (k, v)');
	ok($rc == 0, "CREATE INDEX CONCURRENTLY $round") or diag($err);
	check_index($node, 't_new', "t_new is whole after it was made ($round)");
	($rc, $out, $err) = $node->psql('postgres', 'REINDEX INDEX CONCURRENTLY t_keep');
	ok($rc == 0, "REINDEX INDEX CONCURRENTLY $round") or diag($err);
	check_index($node, 't_keep', "t_keep is whole after it was remade ($round)");
	same_answers($node, "answers after round $round", @queries);
	if ($round % 2 == 0)
	{
		$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) t');
		check_all_indexes($node, "indexes are whole after VACUUM ($round)");
	}
	$node->safe_psql('postgres', 'DROP INDEX CONCURRENTLY t_new');
}
ok(finish_pgbench($bench), 'clients ran through') or diag($bench->{out});
check_all_indexes($node, 'indexes are whole at the end');
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_index WHERE NOT indisvalid'), '0',
	'no invalid index is left');

# A prepared transaction holds the build up; what it wrote must be in the index
$node->safe_psql('postgres', <<'END');
CREATE TABLE p (k int);
INSERT INTO p SELECT i FROM generate_series(1, 1000) i;
BEGIN;
INSERT INTO p SELECT i FROM generate_series(1001, 1200) i;
DELETE FROM p WHERE k <= 100;
PREPARE TRANSACTION 'held';
END
my $cic = $node->background_psql('postgres');
$cic->query_until(qr/started/, "\\echo started\nCREATE INDEX CONCURRENTLY p_k ON p USING gpu_btree (k);\n");
ok($node->poll_query_until('postgres', q{
	SELECT count(*) > 0 FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX CONCURRENTLY p_k%'
		AND wait_event_type = 'Lock'}),
	'the build waits for the prepared transaction');
$node->safe_psql('postgres', "COMMIT PREPARED 'held'");
ok($cic->quit, 'the build ends');
is($node->safe_psql('postgres', index_sql('SELECT count(*), min(k), max(k) FROM p WHERE k > 0')),
	'1100|101|1200', 'and has the rows of the prepared transaction');
check_index($node, 'p_k');
$node->stop;

done_testing();
