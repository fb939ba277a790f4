# The worker is killed, its GPU is lost, or there is none: the answers stay right,
# the log says what happened, and the device serves again with nothing leaked.

use strict;
use warnings;

use GpudsPoints;
use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;

need_cuda();
my $node = new_node('lost', conf => "restart_after_crash = on\n");
my $rows = 100_000;
my @queries = (
	'SELECT count(*), sum(v) FROM t WHERE k >= 0',
	'SELECT count(*), sum(v) FROM t WHERE k BETWEEN 500 AND 900',
	"SELECT count(*), sum(v) FROM t WHERE k = ANY ('{1,10,100,1000,10000}')",
	'SELECT k FROM t WHERE k > 100 ORDER BY k LIMIT 20');

lossy_tables($node, $rows);

served_again($node, 'at first', @queries);
in_log($node, qr/LOG:  gpuds uses /, 'the log names the GPU');

# Killed: the postmaster restarts all, with a new worker
my $pid = device_state($node, 'worker_pid');
my $session = $node->background_psql('postgres', on_error_stop => 0);
$session->query(index_sql($queries[0]));
kill 'KILL', $pid;
eval { $session->quit };
for my $try (1 .. 300)
{
	my ($rc, $now) =
	  eval { $node->psql('postgres', "SELECT worker_pid FROM gpuds_devices WHERE kind = 'cuda'") };
	last if defined $rc && $rc == 0 && $now ne '' && $now ne $pid;
	select(undef, undef, undef, 0.1);
}
device_ready($node);
is(device_memory($node), '0', 'killed: nothing is loaded after the restart');
isnt(device_state($node, 'worker_pid'), $pid, 'killed: there is another worker');
served_again($node, 'killed', @queries);
my $log = in_log($node, qr/gpuds device worker.* was terminated by signal 9/, 'killed: the log says so');
like($log, qr/gpuds uses /, 'killed: and that the GPU is in use again');

# Told to end: it is started again, sessions go on
$pid = device_state($node, 'worker_pid');
$session = $node->background_psql('postgres', on_error_stop => 0);
my $before = $session->query(index_sql($queries[0]));
kill 'TERM', $pid;
is($session->query(index_sql($queries[0])), $before, 'ended: a session has its answer');
ok($node->poll_query_until('postgres', "
	SELECT worker_pid IS NOT NULL AND worker_pid <> $pid FROM gpuds_devices WHERE kind = 'cuda'"),
	'ended: there is another worker');
$session->quit;
served_again($node, 'ended', @queries);

SKIP:
{
	skip 'not built with INJECTION_POINTS=1', 1 unless injection_points($node);

	# The GPU goes away under a request of each kind; the session has its answer anyway
	my $fault = "SET client_min_messages = error; SET gpuds.device_fault = 'sticky';";
	my %case = (
		'one-key scan' => [ "SELECT gpuds_index_load('s_k')", 'SELECT count(*) FROM s WHERE k = 7', '1' ],
		'long scan' => [ "SELECT gpuds_index_load('t_k')", 'SELECT count(*) FROM t WHERE k >= 0', $rows ],
		'load' => [ "SELECT gpuds_index_evict('s_k')", 'SELECT count(*) FROM s WHERE k <= 500', '500' ],
		'catch-up' => [ "
			SELECT gpuds_index_load('s_k'); INSERT INTO s SELECT 100000 + i FROM generate_series(1, 5000) i",
			'SELECT count(*) FROM s WHERE k BETWEEN 100001 AND 200000', '5000' ]);
	for my $name (sort keys %case)
	{
		my ($prepare, $query, $expected) = @{ $case{$name} };

		$pid = device_state($node, 'worker_pid');
		new_log($node);
		$node->safe_psql('postgres', $prepare);
		is($node->safe_psql('postgres', "$fault " . index_sql($query)), $expected,
			"lost in a $name: right answer");
		ok($node->poll_query_until('postgres', "
			SELECT coalesce(worker_pid <> $pid, true) FROM gpuds_devices WHERE kind = 'cuda'"),
			"lost in a $name: the worker has gone");
		in_log($node, qr/LOG:  gpuds lost its CUDA device: \w/, "lost in a $name: the log says why");
		served_again($node, "lost in a $name", @queries);
		is($node->safe_psql('postgres', index_sql($query)), $expected,
			"lost in a $name: right answer from the next worker");
	}
	check_index($node, 's_k');

	# Again and again under load: every look agrees with a sequential scan
	$node->safe_psql('postgres', <<'END');
CREATE FUNCTION look(query text) RETURNS void LANGUAGE plpgsql SET client_min_messages = error AS $$
DECLARE
	expected text;
	answer text;
BEGIN
	SET LOCAL enable_seqscan = on;
	SET LOCAL enable_indexscan = off;
	SET LOCAL enable_bitmapscan = off;
	EXECUTE query INTO expected;
	SET LOCAL enable_seqscan = off;
	SET LOCAL enable_indexscan = on;
	EXECUTE query INTO answer;
	IF answer IS DISTINCT FROM expected THEN
		RAISE EXCEPTION 'got %, not %, for: %', answer, expected, query;
	END IF;
END $$;
END
	my @scripts = (
		[ script_file('look', <<'END'), 20 ],
\set k random(1, 90000)
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT look('SELECT (count(*), sum(v))::text FROM t WHERE k BETWEEN ' || :k || ' AND ' || :k + 300);
SELECT look('SELECT count(*)::text FROM s WHERE k = ' || :k % 2000);
COMMIT;
END
		[ script_file('insert', "\\set k random(1, 2000)\nINSERT INTO s VALUES (:k), (:k + 1);\n"), 5 ],
		[ script_file('fault', "
			SET client_min_messages = error;
			SET gpuds.device_fault = 'sticky';
			SET enable_seqscan = off;
			SELECT count(*) FROM t WHERE k = 5;
			RESET ALL;\n"), 1 ]);
	my $losses = 0;
	# A second and more goes by before there is another worker: a slow machine takes more than one round
	for (my $round = 1; $round <= 5 && $losses < 3; $round++)
	{
		my $bench = start_pgbench($node, '-c 6 -j 2 -T 12', @scripts);
		ok(finish_pgbench($bench), "lost under load: every look agreed ($round)") or diag($bench->{out});
		$losses += () = new_log($node) =~ /gpuds lost its CUDA device/g;
	}
	cmp_ok($losses, '>', 2, 'lost under load: more than once');
	served_again($node, 'lost under load', @queries);
	check_all_indexes($node, 'lost under load: the indexes are whole');
}

# No GPU after a restart, and one again after the next
$node->stop;
{
	local $ENV{CUDA_VISIBLE_DEVICES} = '';
	$node->start;
}
$node->poll_query_until('postgres', "SELECT state = 'absent' FROM gpuds_devices WHERE kind = 'cuda'");
new_log($node);
my ($rc, $out, $err) = $node->psql('postgres', '
	SET enable_seqscan = off; SELECT count(*) FROM t WHERE k >= 0; SELECT count(*) FROM t WHERE k = 5');
is($out, "$rows\n1", 'no GPU: right answers');
my $warnings = () = $err =~ /WARNING:  there is no CUDA device to use, using the CPU device instead/g;
is($warnings, 1, 'no GPU: one WARNING a session') or diag($err);
like($err, qr/HINT:.*gpuds\.device/, 'no GPU: that names the setting');
ok($node->wait_for_log(qr/LOG:  gpuds found no CUDA device it can use: \w/), 'no GPU: one line in the log');
($rc, $out, $err) = $node->psql('postgres', '
	SET gpuds.device = auto; SET enable_seqscan = off; SELECT count(*) FROM t WHERE k >= 0');
is("$out $err", "$rows ", 'no GPU: auto says nothing');
is($node->safe_psql('postgres', "
	SELECT worker_pid IS NULL, detail <> '' FROM gpuds_devices WHERE kind = 'cuda'"),
	't|t', 'no GPU: the view says why');

# The worker has ended for good, also if the server crashes
$node->append_conf('postgresql.conf', "restart_after_crash = on\n");
$node->reload;
my $victim = $node->background_psql('postgres', on_error_stop => 0);
my $victim_pid = $victim->query_safe('SELECT pg_backend_pid()');
kill 'KILL', $victim_pid;
$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $victim_pid");
eval { $victim->quit };
is($node->safe_psql('postgres', "
	SELECT state, worker_pid IS NULL, detail <> '' FROM gpuds_devices WHERE kind = 'cuda'"),
	'absent|t|t', 'no GPU, after a crash: the view says so');
$node->restart;
served_again($node, 'a GPU again', @queries);
$node->stop;

done_testing();
