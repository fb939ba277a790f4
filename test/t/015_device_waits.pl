# Backends that are cancelled, time out or are terminated while they wait for the
# GPU, and servers that are stopped meanwhile: nobody hangs, nothing is leaked,
# neither memory of the GPU nor staging memory.

use strict;
use warnings;

use GpudsPoints;
use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

need_cuda();
# Of the staging memory one large scan takes half
my $node = new_node('waits', conf => "gpuds.staging_memory = 32MB\n");
my $rows = 200_000;

$node->safe_psql('postgres', <<"END");
CREATE TABLE t (k bigint, v int);
INSERT INTO t SELECT i::bigint * 7919 % $rows, i FROM generate_series(1, $rows) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
CREATE TABLE keys AS SELECT array_agg(i) AS keys FROM generate_series(0, $rows - 1, 2) i;
END

my $small = 'SELECT count(*), sum(v) FROM t WHERE k BETWEEN 100 AND 109';
my $large = 'SELECT count(*), sum(v) FROM t WHERE k = ANY ((SELECT keys FROM keys)::bigint[])';
my $even = 'SELECT count(*), sum(v) FROM t WHERE k % 2 = 0';
my %right = map {
	$_ => $node->safe_psql('postgres', "SET enable_indexscan = off; SET enable_bitmapscan = off; $_")
} ($small, $even);
$right{$large} = $right{$even};

# All works: with all of the staging memory, several times
sub intact
{
	my ($name) = @_;

	for my $query ($small, $large, $large, $large)
	{
		is($node->safe_psql('postgres', index_sql($query, 'bitmap')), $right{$query}, "$name: right answer");
	}
	check_index($node, 't_k', "$name: the index is whole");
	forget_mirrors($node, $name);
	$node->safe_psql('postgres', "SELECT gpuds_index_load('t_k')");
	return;
}

intact('at first');

SKIP:
{
	skip 'not built with INJECTION_POINTS=1', 1 unless injection_points($node);

	# The worker holds the request; the backend's wait ends one way or the other
	for my $case ([ 'a small scan', $small ], [ 'a large scan', $large ])
	{
		my ($name, $query) = @$case;
		my $held = "SET enable_seqscan = off; SET enable_indexscan = off; SET gpuds.device_fault = 'hold'";

		my $began = time;
		my ($rc, $out, $err) = $node->psql('postgres', "$held; SET statement_timeout = 300; $query");
		like($err, qr/canceling statement due to statement timeout/,
			"$name: statement_timeout ends the wait");
		# not only when the device counts as lost, after a minute
		cmp_ok(time - $began, '<', 40, "$name: before the device's time is over");
		intact("$name, statement_timeout");

		for my $way ('pg_cancel_backend', 'pg_terminate_backend')
		{
			# More often than there is staging memory for
			for my $round (1 .. 4)
			{
				my $victim = $node->background_psql('postgres', on_error_stop => 0);
				my $pid = $victim->query_safe('SELECT pg_backend_pid()');

				$victim->query_until(qr/go/, "$held;\n\\echo go\n$query;\n");
				ok(waits_for($node, $pid, 'Extension'),
					"$name: waits for the GPU ($round)");
				is($node->safe_psql('postgres', index_sql($small, 'bitmap')), $right{$small},
					"$name: others do not ($round)");
				$node->safe_psql('postgres', "SELECT $way($pid)");
				if ($way eq 'pg_cancel_backend')
				{
					is($victim->query(index_sql($query, 'bitmap')) =~ s/^\s+|\s+$//gr, $right{$query},
						"$name: the same session's next query works ($round)");
					$victim->quit;
				}
				else
				{
					ok($node->poll_query_until('postgres', "
						SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $pid"),
						"$name: it ends ($round)");
					eval { $victim->quit };
				}
			}
			intact("$name, $way");
		}
	}

	# At the injection point between posting a request and waiting for it
	my $gate = $node->background_psql('postgres');
	for my $way ('pg_cancel_backend', 'pg_terminate_backend')
	{
		close_points($gate, 'device-waiting');
		my $victim = $node->background_psql('postgres', on_error_stop => 0);
		my $pid = $victim->query_safe('SELECT pg_backend_pid()');
		$victim->query_until(qr/go/,
			"SET gpuds.wait_at = 'device-waiting'; SET enable_seqscan = off;\n\\echo go\n$large;\n");
		ok(waits_for($node, $pid, 'Lock'), "$way: held");
		$node->safe_psql('postgres', "SELECT $way($pid)");
		ok(let_go($node, $pid), "$way: lets it go");
		open_points($gate, 'device-waiting');
		eval { $victim->quit };
		intact("$way behind the posting");
	}
	$gate->quit;

	# The server is stopped while a request is under way
	for my $mode ('fast', 'immediate')
	{
		my $victim = $node->background_psql('postgres', on_error_stop => 0);
		my $pid = $victim->query_safe('SELECT pg_backend_pid()');
		$victim->query_until(qr/go/,
			"SET enable_seqscan = off; SET gpuds.device_fault = 'hold';\n\\echo go\n$large;\n");
		waits_for($node, $pid, 'Extension');
		my $began = time;
		$node->stop($mode);
		cmp_ok(time - $began, '<', 40, "stopped $mode in mid-request: no hang");
		eval { $victim->quit };
		$node->start;
		device_ready($node);
		is(device_memory($node), '0', "stopped $mode: nothing is loaded at the start");
		intact("stopped $mode");
	}
}

# Timeouts wherever they fall: loads, catch-ups, scans
random_seed();
for my $round (1 .. 25)
{
	my $sql = "SET enable_seqscan = off; SET enable_bitmapscan = " . ($round % 2 ? 'on' : 'off') . ";\n";

	$sql .= "SELECT gpuds_index_evict('t_k');\n" if $round % 3 == 0;
	$sql .= "INSERT INTO t SELECT 1000000 + i, -i FROM generate_series(1, 20000) i;\n" if $round % 4 == 0;
	$sql .= 'SET statement_timeout = ' . (1 + int(rand($round % 3 == 0 ? 60 : 20))) . ";\n";
	$sql .= ($round % 2 ? $large : 'SELECT count(*), sum(v) FROM t WHERE k >= 0') . ";\n";
	$node->psql('postgres', $sql);
}
$node->safe_psql('postgres', 'DELETE FROM t WHERE k >= 1000000');
intact('after timeouts');

# Many clients, little staging memory; some give up
my $bench = start_pgbench($node, '-c 16 -j 2 -T 6',
	[ script_file('large', "
		SET enable_seqscan = off;
		SET enable_indexscan = off;
		SELECT 1 / (count(*) = $rows / 2)::int FROM t WHERE k = ANY ((SELECT keys FROM keys)::bigint[]);\n"),
		2 ],
	[ script_file('small', "
		\\set k random(0, $rows - 20)
		SET enable_seqscan = off;
		SELECT 1 / (count(*) = 10)::int FROM t WHERE k BETWEEN :k AND :k + 9;\n"), 10 ],
	[ script_file('range', "
		SET enable_seqscan = off;
		SELECT 1 / (count(*) = 50000)::int FROM t WHERE k BETWEEN 1000 AND 50999;\n"), 1 ]);
for my $round (1 .. 20)
{
	$node->psql('postgres', 'SET statement_timeout = ' . (5 + int(rand(100)))
		  . "; SET enable_seqscan = off; SET enable_indexscan = off; $large");
}
ok(finish_pgbench($bench), 'many clients, little staging memory: right answers') or diag($bench->{out});
like($bench->{out}, qr/number of transactions actually processed: [1-9]/, 'many clients: they got on');
cmp_ok(of_statistics($node, 't_k', 'mean_batch'), '>=', 1, 'batches are counted');
intact('many clients');
$node->stop;

done_testing();
