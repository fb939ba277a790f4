# More indexes than there may be mirrors, hundreds of small ones, and a device that
# does not answer: who looks for a mirror finds one, and does not wait for others.

use strict;
use warnings;

use GpudsTest;
use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('few', conf => "gpuds.max_mirrors = 16\n");
my $partitions = 50;

# partitioned(node, table, number of partitions, rows of each)
sub partitioned
{
	my ($on, $table, $n, $rows) = @_;

	$on->safe_psql('postgres', <<"END");
CREATE TABLE $table (p int, k int, v int) PARTITION BY LIST (p);
SELECT format('CREATE TABLE ${table}_%s PARTITION OF $table FOR VALUES IN (%s)', i, i)
	FROM generate_series(1, $n) i \\gexec
INSERT INTO $table SELECT p, i * 7919 % $rows, i FROM generate_series(1, $n) p, generate_series(1, $rows) i;
CREATE INDEX ${table}_k ON $table USING gpu_btree (k);
ANALYZE $table;
END
	return;
}

partitioned($node, 't', $partitions, 100);
same_answers($node, 'more indexes than mirrors', '
	SELECT count(*), sum(p), sum(v) FROM t WHERE k BETWEEN 10 AND 19',
	'SELECT count(*), sum(p) FROM t WHERE k = ANY (\'{1,5,50,99}\')',
	'SELECT k, p FROM t WHERE k < 50 ORDER BY k, p LIMIT 100');
my $loaded = q{SELECT count(*) FROM gpuds_indexes WHERE state = 'loaded'};
cmp_ok($node->safe_psql('postgres', $loaded), '<=', 16, 'no more mirrors than there may be');
cmp_ok($node->safe_psql('postgres', $loaded), '>', 8, 'but not much fewer');

# Scans that are open on all of them at once
my ($rc, $out, $err) = $node->psql('postgres', <<'END');
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;
SET cursor_tuple_fraction = 0;
BEGIN;
DECLARE c CURSOR FOR SELECT k, count(*) FROM t WHERE k >= 0 GROUP BY k ORDER BY k;
FETCH 3 FROM c;
FETCH 2 FROM c;
COMMIT;
END
is($out, "0|$partitions\n1|$partitions\n2|$partitions\n3|$partitions\n4|$partitions", 'scans of all at once');
unlike($err, qr/ERROR/, 'without an error') or diag($err);

# Many sessions, files that come and go
$node->safe_psql('postgres', q{
	CREATE FUNCTION rebuild(p int) RETURNS void LANGUAGE plpgsql AS $$BEGIN
	EXECUTE format('REINDEX INDEX t_%s_k_idx', p); END$$});
my $bench = start_pgbench($node, '-c 8 -j 2 -T 6', [ script_file('look', <<"END"), 8 ],
\\set p random(1, $partitions)
\\set k random(0, 99)
SET client_min_messages = error;
SET enable_seqscan = off;
SELECT 1 / (count(*) = 1)::int FROM t WHERE p = :p AND k = :k;
END
	[ script_file('build', <<"END"), 1 ]);
\\set p random(1, $partitions)
SELECT rebuild(:p);
END
ok(finish_pgbench($bench), 'clients that take slots from each other have right answers')
  or diag($bench->{out});
check_all_indexes($node, 'indexes are whole');
forget_mirrors($node, 'at the end') if on_cuda();
$node->stop;

# Small mirrors are small
$node = new_node('many', conf => "
	gpuds.host_memory = 8MB
	gpuds.device = cpu
	max_locks_per_transaction = 256\n");
partitioned($node, 't', 600, 40);
same_answers($node, 'hundreds of partitions',
	'SELECT count(*), sum(p), sum(v) FROM t WHERE k BETWEEN 10 AND 19');
is($node->safe_psql('postgres', $loaded), '600', 'their mirrors are in memory, all of them');
($rc, $out, $err) = $node->psql('postgres', '
	DROP TABLE t; SELECT memory_used FROM gpuds_devices WHERE kind = \'cpu\'');
is($out, '0', 'and give it back');
$node->stop;

SKIP:
{
	skip 'only with gpuds.device = cuda', 1 unless on_cuda();

	# A drop waits for seconds for a worker that is stopped; others find and make mirrors meanwhile
	$node = new_node('waits');
	$node->safe_psql('postgres', <<'END');
CREATE TABLE other (k int);
INSERT INTO other SELECT generate_series(1, 100);
END
	my $overtaken = 0;
	for my $try (1 .. 5)
	{
		$node->safe_psql('postgres', <<'END');
CREATE TABLE waits (k int);
INSERT INTO waits SELECT generate_series(1, 100);
CREATE INDEX waits_k ON waits USING gpu_btree (k);
SELECT gpuds_index_load('waits_k');
CREATE INDEX other_k ON other USING gpu_btree (k);
END
		my $worker = $node->safe_psql('postgres', "SELECT worker_pid FROM gpuds_devices WHERE kind = 'cuda'");
		kill('STOP', $worker) or die 'the worker is not there';
		my $said = '';
		my @drop = ('-c', "SET application_name = 'dropper'", '-c', 'DROP TABLE waits');
		my $dropper = IPC::Run::start([ 'psql', '-X', '-d', $node->connstr('postgres'), @drop ],
			'<', \undef, '>', \$said, '2>&1');
		my $waiting = q{
			SELECT count(*) FROM pg_stat_activity WHERE application_name = 'dropper'
				AND wait_event_type IS NOT NULL AND query LIKE 'DROP%'};
		$node->poll_query_until('postgres', $waiting, '1') or die 'the drop does not wait';
		$out = $node->safe_psql('postgres',
			'SET gpuds.device = cpu; ' . index_sql('SELECT count(*) FROM other WHERE k > 50') . " $waiting");
		kill('CONT', $worker);
		$dropper->finish;
		is($said, "SET\nDROP TABLE\n", 'the drop is not the worse for it');
		$node->safe_psql('postgres', 'DROP INDEX other_k');
		$overtaken = 1 if $out eq "50\n1";
		last if $overtaken;
	}
	ok($overtaken, 'a new mirror is made and asked while another one is being dropped');
	$node->stop;
}

done_testing();
