# pg_repack beside clients that insert: it applies its log of their changes and swaps
# the table's and the indexes' files in one transaction, all by functions of its own.

use strict;
use warnings;

use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('repack');
my ($rc) = $node->psql('postgres', 'CREATE EXTENSION pg_repack');

plan(skip_all => 'pg_repack is not installed') if $rc != 0;

$node->safe_psql('postgres', <<'END');
CREATE TABLE t (id bigserial PRIMARY KEY, k int, v int);
CREATE INDEX t_k ON t USING gpu_btree (k);
CREATE INDEX t_kv ON t USING gpu_btree (v, k);
INSERT INTO t (k, v) SELECT i % 1000, i FROM generate_series(1, 20000) i;
END

my @scripts = (
	[ script_file('insert', <<'END'), 6 ],
\set k random(1, 100000)
INSERT INTO t (k, v) SELECT :k + i, i FROM generate_series(1, 5) i;
END
	[ script_file('steps', <<'END'), 3 ],
\set k random(1, 100000)
BEGIN;
INSERT INTO t (k, v) VALUES (:k, 1);
SAVEPOINT a;
INSERT INTO t (k, v) VALUES (:k, 2);
ROLLBACK TO a;
UPDATE t SET v = v + 1 WHERE id = :k % 20000 AND id % 2 = :client_id;
COMMIT;
END
	[ script_file('delete', <<'END'), 1 ],
\set id random(1, 40000)
DELETE FROM t WHERE id = :id AND id % 2 = :client_id;
END
);
my @queries = (
	'SELECT count(*), sum(id), sum(k) FROM t WHERE k > 0',
	'SELECT count(*), sum(id) FROM t WHERE v > 0');

for my $round (1 .. 3)
{
	my $bench = start_pgbench($node, '-c 2 -j 2 -T 6', @scripts);
	my $repacked = 0;

	while ($bench->{harness}->pumpable && $repacked < 2)
	{
		my @options = $round == 2 ? ('--only-indexes') : ('--no-order');
		my $result = IPC::Run::run([ 'pg_repack', '-h', $node->host, '-p', $node->port, '-d', 'postgres',
			'-t', 't', '--no-kill-backend', @options ], '<', \undef, '>', \my $out, '2>', \my $err);

		ok($result, "pg_repack @options") or diag($err);
		$repacked++;
	}
	ok(finish_pgbench($bench), "clients ran through ($round)") or diag($bench->{out});
	check_all_indexes($node, "indexes are whole after round $round");
	same_answers($node, "answers after round $round", @queries);
	$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) t');
}
check_all_indexes($node, 'indexes are whole at the end');
$node->stop;

done_testing();
