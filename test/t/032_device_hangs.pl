# A GPU that hangs: after gpuds.device_timeout it counts as lost.  Sessions have their
# answers from the CPU, the worker ends without a crash although it cannot wait for
# the GPU, and the device serves again.  A server with a GPU that hangs can be stopped.

use strict;
use warnings;

use GpudsPoints;
use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

need_cuda();
my $node = new_node('hangs', conf => "gpuds.device_timeout = 2s\nrestart_after_crash = off\n");
plan(skip_all => 'not built with INJECTION_POINTS=1') unless injection_points($node);

my $rows = 100_000;
my @queries = (
	'SELECT count(*), sum(v) FROM t WHERE k BETWEEN 500 AND 900',
	"SELECT count(*), sum(v) FROM t WHERE k = ANY ('{1,10,100,1000,10000}')",
	'SELECT count(*), sum(v) FROM t WHERE k >= 0');

lossy_tables($node, $rows);

# A session with a query under way
sub start_query
{
	my ($settings, $query) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => 0);

	$session->query_until(qr/go/, "SET client_min_messages = error; $settings;\n\\echo go\n"
		  . index_sql($query) . "\n");
	return $session;
}

sub answer_of
{
	my ($session) = @_;
	my $answer = $session->query("\\echo -\n") =~ s/\s*-\s*$//r;

	$session->quit;
	return $answer =~ s/^\s+//r;
}

served_again($node, 'at first', @queries);

# What hangs is the GPU, in a request of each kind; or the worker, in a call of the driver
my $losses = 0;
for my $case (
	[ 'one-key scan', 'hang', "SELECT gpuds_index_load('s_k')", 'SELECT count(*) FROM s WHERE k = 7', '1' ],
	[ 'long scan', 'hang', "SELECT gpuds_index_load('t_k')", 'SELECT count(*) FROM t WHERE k >= 0', $rows ],
	[ 'load', 'hang', "SELECT gpuds_index_evict('s_k')", 'SELECT count(*) FROM s WHERE k <= 500', '500' ],
	[ 'catch-up', 'hang',
		"SELECT gpuds_index_load('s_k'); INSERT INTO s SELECT 100000 + i FROM generate_series(1, 5000) i",
		'SELECT count(*) FROM s WHERE k BETWEEN 100001 AND 200000', '5000' ],
	[ 'call', 'stuck', "SELECT gpuds_index_load('s_k')", 'SELECT count(*) FROM s WHERE k = 7', '1' ])
{
	my ($name, $fault, $prepare, $query, $expected) = @$case;
	my $pid = device_state($node, 'worker_pid');

	new_log($node);
	$node->safe_psql('postgres', $prepare);

	# Somebody else waits already, and somebody asks meanwhile
	my $right = $node->safe_psql('postgres', scan_sql($queries[0]));
	my $held = start_query("SET gpuds.device_fault = 'hold'", $queries[0]);
	my $victim = start_query("SET gpuds.device_fault = '$fault'", $query);
	my $answer = $node->safe_psql('postgres', 'SET client_min_messages = error; ' . index_sql($queries[0]));
	is($answer, $right, "$name hangs: another session has its answer");
	ok($node->poll_query_until('postgres', "SELECT losses > $losses FROM gpuds_devices WHERE kind = 'cuda'"),
		"$name hangs: the device counts as lost");
	is(answer_of($victim), $expected, "$name hangs: right answer");
	is(answer_of($held), $right, "$name hangs: right answer for one who waited");
	ok($node->poll_query_until('postgres', "
		SELECT worker_pid <> $pid FROM gpuds_devices WHERE kind = 'cuda'"),
		"$name hangs: there is another worker");
	like(new_log($node), $fault eq 'hang' ? qr/LOG:  gpuds lost its CUDA device: .*gpuds\.device_timeout/
		  : qr/LOG:  gpuds lost its CUDA device: the driver does not come back/,
		"$name hangs: the log says why");
	served_again($node, "$name hangs", @queries);
	is($node->safe_psql('postgres', index_sql($query)), $expected,
		"$name hangs: right answer from the next worker");
	# one more, unless the machine stood still for so long as well
	$losses = device_state($node, 'losses');
}
check_index($node, 's_k');

# Who gets the mailbox of a session that ended while its request hung waits for that
# request, and is woken up: although it is another process, and the second to leave
# gives the next session its place among processes.
$node->append_conf('postgresql.conf', "gpuds.device_timeout = 15s\n");
$node->reload;
$node->safe_psql('postgres', "SELECT gpuds_index_load('s_k')");
my @leaving = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 2;
my @pids = map { $_->query_safe('SELECT pg_backend_pid()') } @leaving;
$leaving[0]->query_until(qr/go/, "SET gpuds.device_fault = 'hang';\n\\echo go\n"
	  . index_sql('SELECT count(*) FROM s WHERE k = 7') . "\n");
ok($node->poll_query_until('postgres', "
	SELECT wait_event_type = 'Extension' FROM pg_stat_activity WHERE pid = $pids[0]"),
	'a request hangs');
for my $pid (@pids)
{
	kill 'TERM', $pid;
	for (my $try = 0; $try < 1000 && kill(0, $pid); $try++)
	{
		select(undef, undef, undef, 0.01);
	}
}
my ($late_rc, $late, $late_err) = $node->psql('postgres',
	"SET statement_timeout = '60s'; SET client_min_messages = error; "
	  . index_sql('SELECT count(*) FROM s WHERE k = 7'));
is($late, '1', 'the next owner of its mailbox is woken up') or diag($late_err);
eval { $_->quit } for @leaving;
# A server that gives places out in another order has not waited for that
for (my $try = 0; $try < 600 && device_state($node, 'losses') <= $losses; $try++)
{
	select(undef, undef, undef, 0.1);
}
cmp_ok(device_state($node, 'losses'), '>', $losses, 'because the device counts as lost');
served_again($node, 'a mailbox changed hands', @queries);

# Without a deadline sessions wait, and can be cancelled; the server can be stopped
for my $fault ('hang', 'stuck')
{
	$node->append_conf('postgresql.conf', "gpuds.device_timeout = 0\n");
	$node->reload;
	$node->safe_psql('postgres', "SELECT gpuds_index_load('s_k')");
	ok($node->poll_query_until('postgres', "
		SELECT setting = '0' FROM pg_settings WHERE name = 'gpuds.device_timeout'"),
		"$fault: no deadline");
	$losses = device_state($node, 'losses');
	my ($rc, $out, $err) = $node->psql('postgres',
		"SET gpuds.device_fault = '$fault'; SET statement_timeout = '4s'; "
		  . index_sql('SELECT count(*) FROM s WHERE k = 7'));
	like($err, qr/canceling statement due to statement timeout/,
		"$fault without a deadline: a statement can be cancelled");
	is(device_state($node, 'losses'), $losses, "$fault without a deadline: nothing is given up");
	my $began = time;
	$node->stop('fast');
	cmp_ok(time - $began, '<', 50, "$fault: the server can be stopped");
	$node->start;
	served_again($node, "$fault, restarted", @queries);
}

# If the postmaster dies, the worker does not stay: another server could not start
for my $fault ('hang', 'stuck')
{
	$node->safe_psql('postgres', "SELECT gpuds_index_load('s_k')");
	my $pid = device_state($node, 'worker_pid');
	$node->psql('postgres', "SET gpuds.device_fault = '$fault'; SET statement_timeout = '1s'; "
		  . index_sql('SELECT count(*) FROM s WHERE k = 7'));
	$node->kill9;
	my $started = 0;
	for (my $try = 0; $try < 20 && !$started; $try++)
	{
		sleep 1;
		$started = $node->start(fail_ok => 1);
		$node->kill9 unless $started; # it is said to have started all the same
	}
	ok($started, "$fault: the worker ends with the postmaster");
	kill('KILL', $pid) && sleep(1) && $node->start unless $started;
	served_again($node, "$fault, postmaster died", @queries);
}
$node->stop;
unlike(slurp_file($node->logfile), qr/was terminated by signal|terminating any other active server processes/,
	'nothing crashed');

done_testing();
