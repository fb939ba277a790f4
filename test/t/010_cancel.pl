# Backends that are cancelled, time out or are terminated in the middle of a load,
# of applying, of a scan or of an insert leave nothing behind: the next one works,
# and the mirror can be evicted, so nobody holds a pin.

use strict;
use warnings;

use GpudsPoints;
use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;

random_seed();
my $node = new_node('cancel');
my $rows = 200_000;

$node->safe_psql('postgres', <<"END");
CREATE TABLE t (k bigint, v int);
INSERT INTO t SELECT i::bigint * 7919 % $rows, i FROM generate_series(1, $rows) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
END

# Evicting takes out a mirror that nobody pins
sub intact
{
	my ($name) = @_;

	same_answers($node, "$name: the next query works",
		'SELECT count(*), sum(v) FROM t WHERE k BETWEEN 100 AND 5000', 'SELECT count(*) FROM t WHERE k >= 0');
	is($node->safe_psql('postgres', "SELECT gpuds_index_evict('t_k')"), 't',
		"$name: the mirror can be evicted");
	is(of_mirror($node, 't_k', 'state'), 'not loaded', "$name: and is gone");
	$node->safe_psql('postgres', "SELECT gpuds_index_load('t_k')");
	return;
}

# Timeouts wherever they fall: loads, catch-ups after much was inserted, long scans
for my $round (1 .. 30)
{
	my $timeout = 1 + int(rand($round % 3 == 0 ? 60 : 15));
	my $sql = "SET enable_seqscan = off; SET enable_bitmapscan = " . ($round % 2 ? 'on' : 'off') . ";\n";

	$sql .= "SELECT gpuds_index_evict('t_k');\n" if $round % 3 != 1;
	$sql .= "INSERT INTO t SELECT 1000000 + i, -i FROM generate_series(1, 20000) i;\n" if $round % 4 == 0;
	$sql .= "SET statement_timeout = $timeout;\n";
	$sql .= ($round % 5 == 0 ? 'DELETE FROM t WHERE k >= 1000000'
		  : 'SELECT count(*), sum(v) FROM t WHERE k >= 0') . ";\n";
	$sql .= "INSERT INTO t SELECT 2000000 + i, -i FROM generate_series(1, 30000) i;\n";
	$node->psql('postgres', $sql);
}
intact('after timeouts');
check_index($node, 't_k', 'after timeouts the index is whole');

# VACUUM and CREATE INDEX too
$node->safe_psql('postgres', 'DELETE FROM t WHERE v < 0 OR v % 10 = 0');
for my $round (1 .. 10)
{
	my $timeout = 5 + int(rand(80));
	$node->psql('postgres', "SET statement_timeout = $timeout; VACUUM (INDEX_CLEANUP ON) t");
	$node->psql('postgres', "SET statement_timeout = $timeout; REINDEX INDEX t_k");
}
intact('after interrupted VACUUMs');
$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) t');
check_index($node, 't_k', 'after interrupted VACUUMs the index is whole');

# At exact places
SKIP:
{
	skip 'not built with INJECTION_POINTS=1', 1 unless injection_points($node);

	my $gate = $node->background_psql('postgres');
	my $query = 'SELECT count(*) FROM t WHERE k BETWEEN 1000 AND 1999';
	my $expected = $node->safe_psql('postgres', scan_sql($query));
	# point, what brings a backend there
	for my $case (
		[ 'insert-buffered-flush', 'INSERT INTO t SELECT 5000000 + i, i FROM generate_series(1, 100) i' ],
		[ 'catch-up-read', $query, '
			SET gpuds.test_without_memtables = on;
			INSERT INTO t SELECT 3000000 + i, i FROM generate_series(1, 100) i' ],
		[ 'load-base-read', $query, "SELECT gpuds_index_evict('t_k')" ],
		[ 'scan-before-probe', $query ],
		[ 'scan-probed', $query ])
	{
		my ($point, $sql, $prepare) = @$case;

		for my $way ('pg_cancel_backend', 'pg_terminate_backend')
		{
			$node->safe_psql('postgres', $prepare) if $prepare;
			close_points($gate, $point);
			my $victim = $node->background_psql('postgres', on_error_stop => 0);
			my $pid = $victim->query_safe('SELECT pg_backend_pid()');
			$victim->query_until(qr/go/, "
				SET gpuds.wait_at = '$point'; SET enable_seqscan = off; SET enable_bitmapscan = off;
				\\echo go
				$sql;\n");
			ok(waits_for($node, $pid, 'Lock'), "$point: held");

			# Somebody else is not held up by a reader, nor fails
			if ($point =~ /^scan/)
			{
				is($node->safe_psql('postgres', index_sql($query)), $expected,
					"$point: others read meanwhile");
			}
			$node->safe_psql('postgres', "SELECT $way($pid)");
			ok(let_go($node, $pid), "$point: $way lets it go");
			is($node->safe_psql('postgres', index_sql($query)), $expected, "$point: right answer after $way");
			$way eq 'pg_cancel_backend' ? $victim->quit : eval { $victim->quit };
			open_points($gate, $point);
			intact("$point, $way");
		}
	}
	$gate->quit;
}
check_index($node, 't_k', 'the index is whole at the end');

# A backend that dies takes the server's shared memory with it; all is set up anew
$node->append_conf('postgresql.conf', 'restart_after_crash = on');
$node->reload;
for my $round (1 .. 3)
{
	my $victim = $node->background_psql('postgres', on_error_stop => 0);
	my $pid = $victim->query_safe('SELECT pg_backend_pid()');

	$victim->query_until(qr/go/, "
		SET enable_seqscan = off;
		\\echo go
		INSERT INTO t SELECT 4000000 + i, i FROM generate_series(1, 50000) i;
		SELECT count(*) FROM t WHERE k > 0;\n");
	select(undef, undef, undef, 0.05 * $round);
	my $offset = -s $node->logfile;
	kill 'KILL', $pid;
	eval { $victim->quit };
	# Before the postmaster has noticed, it lets others in, which end soon
	$node->wait_for_log(qr/all server processes terminated; reinitializing/, $offset);
	# psql that cannot connect may be gone before it was told what to do: EPIPE
	my $back;
	for my $try (1 .. 600)
	{
		$back = eval { $node->psql('postgres', 'SELECT 1') };
		last if defined $back && $back == 0;
		select(undef, undef, undef, 0.1);
	}
	is($back, 0, "the server comes back after a kill ($round)");
	same_answers($node, "answers after a kill ($round)",
		'SELECT count(*), sum(v) FROM t WHERE k BETWEEN 100 AND 5000', 'SELECT count(*) FROM t WHERE k >= 0');
	check_index($node, 't_k', "the index is whole after a kill ($round)");
}
$node->stop;

done_testing();
