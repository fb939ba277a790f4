# Who waits for a mirror needs what was there when he began, and no more: all go at
# once.  And a mirror that has no room to grow stays as it is.

use strict;
use warnings;

use GpudsPoints;
use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('waiters', conf => "
	max_connections = 120
	gpuds.memtable_memory = 0
	gpuds.host_memory = 8MB
	gpuds.device_memory = 16MB\n");

$node->safe_psql('postgres', <<'END');
CREATE TABLE t (k bigint, v int);
INSERT INTO t SELECT i, i FROM generate_series(1, 50000) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
SELECT gpuds_index_load('t_k');
INSERT INTO t VALUES (0, 0);
END

SKIP:
{
	skip 'not built with INJECTION_POINTS=1', 1 unless injection_points($node);

	my $sessions = 60;
	my $gate = gate($node, 'catch-up-read mirror-acquired');

	# One brings the mirror up, the others wait for it; none of them needs to be applier
	my $applier = $node->background_psql('postgres');
	my $pid = $applier->query_safe('SELECT pg_backend_pid()');
	$applier->query_until(qr/go/, "
		SET gpuds.wait_at = 'catch-up-read'; SET enable_seqscan = off;
		\\echo go
		SELECT count(*) FROM t WHERE k = 0;\n");
	ok(waits_for($node, $pid, 'Lock'), 'an applier is held');
	local $ENV{PGOPTIONS} = "-c gpuds.wait_at=mirror-acquired -c enable_seqscan=off";
	my $herd = start_pgbench($node, "-c $sessions -j 2 -t 1", [ script_file('look', "
		SELECT 1 / (count(*) = 1)::int FROM t WHERE k = 0;\n"), 1 ]);
	$ENV{PGOPTIONS} = '';
	ok($node->poll_query_until('postgres', "
		SELECT count(*) = $sessions FROM pg_stat_activity WHERE query LIKE 'SELECT 1 / %'
			AND wait_event_type = 'Extension'"),
		"$sessions sessions wait for it");
	open_points($gate, 'catch-up-read');
	ok($node->poll_query_until('postgres', "
		SELECT count(*) = 0 FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT 1 / %'
			AND wait_event_type = 'Extension'"),
		'all are let go');
	my $appliers = $node->safe_psql('postgres', "
		SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted");
	is($appliers, '0', 'and none had to become applier to look');
	open_points($gate, 'mirror-acquired');
	ok(finish_pgbench($herd), 'all have the right answer') or diag($herd->{out});
	$applier->quit;
	$gate->quit;
}

# Grown beyond the memory
my $cursor = $node->background_psql('postgres');
$cursor->query_safe('
	SET enable_seqscan = off; SET enable_sort = off; BEGIN;
	DECLARE c CURSOR FOR SELECT k FROM t WHERE k > 0 ORDER BY k');
is($cursor->query_safe('FETCH 1 FROM c'), '1', 'a cursor');
$node->safe_psql('postgres', "INSERT INTO t SELECT 1000000 + i, i FROM generate_series(1, 900000) i");
my ($rc, $out, $err) = $node->psql('postgres', index_sql('SELECT count(*) FROM t WHERE k > 1899990'));
is($out, '10', 'a mirror without room to grow: right answer');
like($err, qr/WARNING/, 'and a warning');
my $device = on_cuda() ? 'cuda' : 'cpu';
my $kept = "
	SELECT state IN ('loaded', 'applying', 'no memory'), entries >= 50000,
		applied_position < journal_position,
		loads FROM gpuds_indexes i JOIN gpuds_stat_indexes s USING (indexrelid)
	WHERE i.indexrelid = 't_k'::regclass AND device = '$device'";
is($node->safe_psql('postgres', $kept), 't|t|t|1', 'it stays');
is($cursor->query_safe('FETCH 2 FROM c'), "2\n3", 'for those who need no more');
for my $round (1 .. 5)
{
	$node->safe_psql('postgres', 'SET client_min_messages = error; '
		  . index_sql('SELECT count(*) FROM t WHERE k > 1899990'));
}
is($node->safe_psql('postgres', $kept), 't|t|t|1', 'further queries do not load it again');
$cursor->quit;
{
	local $ENV{PGOPTIONS} = '-c client_min_messages=error';
	same_answers($node, 'answers', 'SELECT count(*), sum(v) FROM t WHERE k BETWEEN 49000 AND 1001000');
	check_index($node, 't_k');
}
$node->stop;

done_testing();
