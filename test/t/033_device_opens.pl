# A device that cannot be opened for a while is tried again, at the server's start and
# after a fault, and serves when it can be had.

use strict;
use warnings;

use GpudsPoints;
use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

need_cuda();
my $node = new_node('opens', no_extension => 1);
plan(skip_all => 'not built with INJECTION_POINTS=1') unless injection_points($node);

sub set_failures
{
	my ($n) = @_;

	$node->append_conf('postgresql.conf', "gpuds.device_open_failures = $n\n");
	return;
}

sub device_is
{
	my ($name, $condition) = @_;

	ok($node->poll_query_until('postgres', "SELECT $condition FROM gpuds_devices WHERE kind = 'cuda'"),
		$name);
	return;
}

# From the server's start on it cannot be had
set_failures(1000);
$node->restart;
$node->safe_psql('postgres', <<'END');
CREATE EXTENSION gpuds;
CREATE TABLE t (k bigint, v int);
SET gpuds.device = auto;
INSERT INTO t SELECT i::bigint * 7919 % 100000, i FROM generate_series(1, 100000) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
END
my $query = 'SELECT count(*), sum(v) FROM t WHERE k BETWEEN 500 AND 900';
# the same rows by many keys, of which most have none: for these "auto" takes the GPU
my $keys = 'SELECT count(*), sum(v) FROM t WHERE k = ANY (ARRAY('
  . 'SELECT generate_series(-3000, -1) UNION ALL SELECT generate_series(500, 900)))';
my $right = $node->safe_psql('postgres', scan_sql($query));
device_is('cannot be opened: the view says so', "state = 'starting' AND detail ~ 'attempt that was to fail'");
my ($rc, $out, $err) = $node->psql('postgres', 'SET gpuds.device = auto; ' . index_sql($query));
is("$out $err", "$right ", 'cannot be opened: auto has the answer, without a word');
ok($node->wait_for_log(qr/LOG:  gpuds could not open its CUDA device: an attempt/),
	'cannot be opened: the log says so');
device_is('cannot be opened: it is tried again', "worker_pid IS NOT NULL AND state = 'starting'");

# As soon as it can be had
set_failures(0);
$node->reload;
device_ready($node);
is($node->safe_psql('postgres', index_sql($query)), $right, 'can be opened: right answer');
is(of_mirror($node, 't_k', 'state', 'cuda'), 'loaded', 'can be opened: from the GPU');
device_is('can be opened: nothing was lost',
	"losses = 0 AND since > pg_postmaster_start_time() AND detail IS NULL");

# A fault, and twice it cannot be opened
for my $round (1 .. 2)
{
	set_failures(2);
	$node->reload;
	is($node->safe_psql('postgres',
			"SET client_min_messages = error; SET gpuds.device = auto; SET gpuds.device_fault = 'sticky'; "
			  . index_sql($keys)),
		$right, "lost, cannot be opened: right answer ($round)");
	device_is("lost, cannot be opened: it is counted ($round)", "losses = $round");
	device_ready($node);
	is($node->safe_psql('postgres', index_sql($query)), $right, "lost, opened later: right answer ($round)");
	is(of_mirror($node, 't_k', 'state', 'cuda'), 'loaded', "lost, opened later: from the GPU ($round)");
}
check_index($node, 't_k');

# A server whose worker waits for its next attempt can be stopped
set_failures(1000);
$node->reload;
$node->psql('postgres',
	"SET client_min_messages = error; SET gpuds.device = auto; SET gpuds.device_fault = 'sticky'; "
	  . index_sql($keys));
device_is('stopped: it cannot be opened',
	"state = 'starting' AND detail ~ 'attempt that was to fail' AND worker_pid IS NOT NULL");
my $began = time;
$node->stop('fast');
cmp_ok(time - $began, '<', 40, 'stopped: no hang');
unlike(slurp_file($node->logfile), qr/gpuds found no CUDA device/, 'it was never taken for absent');
unlike(slurp_file($node->logfile), qr/was terminated by signal|terminating any other active server processes/,
	'nothing crashed');

done_testing();
