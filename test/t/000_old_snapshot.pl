# With old_snapshot_threshold, which there is until PostgreSQL 16, VACUUM removes rows that old
# snapshots see.  A scan with such a snapshot fails as btree's does, or its answer is right.
#
# The first file, because it sleeps for more than a minute while others run.

use strict;
use warnings;

use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;

plan(skip_all => 'the same on both devices, and it takes its time') if on_cuda();

# A server that does not know the setting would not start with it.
my $node = new_node('old_snapshot');
my $setting = "SELECT count(*) FROM pg_settings WHERE name = 'old_snapshot_threshold'";
if ($node->safe_psql('postgres', $setting) == 0)
{
	$node->stop;
	plan(skip_all => 'snapshots do not expire');
}
$node->append_conf('postgresql.conf', "old_snapshot_threshold = 1\n");
$node->restart;

my $core = 'SET gpuds.enable_aggregate = off; SET gpuds.enable_scan = off';
my %ways = (
	'index-only scan' => "SET enable_bitmapscan = off; $core",
	'index scan' => "SET enable_bitmapscan = off; SET enable_indexonlyscan = off; $core",
	'bitmap scan' => "SET enable_indexscan = off; SET enable_indexonlyscan = off; $core",
	'GpudsScan' => '
		SET enable_indexscan = off; SET enable_indexonlyscan = off; SET gpuds.enable_aggregate = off',
	'GpudsAggregate' => 'SET enable_bitmapscan = off');
my %nodes = ('index-only scan' => 'Index Only Scan', 'index scan' => 'Index Scan',
	'bitmap scan' => 'Bitmap Index Scan',
	'GpudsScan' => 'GpudsScan', 'GpudsAggregate' => 'GpudsAggregate');
my $query = 'SELECT count(*), sum(k) FROM t WHERE k BETWEEN 1 AND 5000';
my $too_old = 0;

$node->safe_psql('postgres', <<'END');
CREATE TABLE t (k bigint);
CREATE INDEX t_k ON t USING gpu_btree (k);
INSERT INTO t SELECT generate_series(1, 1000);
END
$node->safe_psql('postgres', 'VACUUM ANALYZE t');

my %sessions;
for my $way (sort keys %ways)
{
	my $session = $sessions{$way} = $node->background_psql('postgres', on_error_stop => 0);

	like($session->query("SET enable_seqscan = off; $ways{$way}; EXPLAIN (COSTS OFF) $query"),
		qr/$nodes{$way}/, "$way: the plan");
	is($session->query("BEGIN ISOLATION LEVEL REPEATABLE READ; $query"), '1000|500500', "$way: before");
}

$node->safe_psql('postgres', 'DELETE FROM t WHERE k > 500');
$node->safe_psql('postgres', 'INSERT INTO t SELECT generate_series(2001, 2400)');

# A minute is over when two or three have begun; time goes on with transactions.
my $removed = 0;
for (1 .. 40)
{
	sleep 5;
	$node->safe_psql('postgres', 'SELECT pg_current_xact_id()');
	$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) t');
	last if ($removed = $node->safe_psql('postgres', "
		SELECT n_dead_tup = 0 FROM pg_stat_user_tables WHERE relname = 't'")) eq 't';
}
is($removed, 't', 'VACUUM has removed what old snapshots see');
$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) t');
for my $way (sort keys %ways)
{
	my $session = $sessions{$way};
	my $answer = $session->query($query);
	my $error = $session->{stderr};

	ok($answer eq '1000|500500' || ($answer eq '' && $error =~ /snapshot too old/), "$way: afterwards")
		or diag("\"$answer\" $error");
	$too_old++ if $error =~ /snapshot too old/;
	$session->quit;
	is($node->safe_psql('postgres', "SET enable_seqscan = off; $ways{$way}; $query"), '900|1005450',
		"$way: with a new snapshot");
}
cmp_ok($too_old, '>', 0, 'snapshots have expired');
check_index($node, 't_k');
$node->stop;

done_testing();
