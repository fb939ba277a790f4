# States of pages that the visibility map is silent about: on a standby and over its promotion, in exported
# snapshots, for prepared transactions, with too little memory or none, and after a crash.  Each answer is a
# sequential scan's in the same snapshot, and the states are seen to be used.

use strict;
use warnings;

use GpudsTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

random_seed();
my $node = new_node('primary', streaming => 1);

# What one session sees by the index, and by the table
my @queries = (
	'SELECT count(*), sum(v) FROM t WHERE k >= 0',
	'SELECT count(*) FROM t WHERE k BETWEEN 100 AND 900',
	'SELECT k / 100, count(*), sum(v) FROM t WHERE k >= 0 GROUP BY 1 ORDER BY 1',
	'SELECT count(*) FROM generate_series(0, 3000, 3) i WHERE EXISTS (SELECT FROM t WHERE t.k = i)');
my $by_index = 'SET enable_seqscan = off; SET enable_bitmapscan = off;
	SET max_parallel_workers_per_gather = 0';
my $by_table = 'SET enable_seqscan = on; SET enable_indexscan = off; SET enable_indexonlyscan = off;
	SET enable_bitmapscan = off; SET gpuds.enable_aggregate = off; SET gpuds.enable_join = off;
	SET gpuds.enable_scan = off';
my $back = 'RESET enable_indexscan; RESET enable_indexonlyscan; RESET gpuds.enable_aggregate;
	RESET gpuds.enable_join; RESET gpuds.enable_scan';

# hits(node): looks at pages whose states held
sub hits
{
	my ($at) = @_;
	return $at->safe_psql('postgres', 'SELECT hits FROM gpuds_visibility');
}

# begin_reader(node): a session with a snapshot, and that snapshot exported
sub begin_reader
{
	my ($at, $snapshot) = @_;
	my $reader = $at->background_psql('postgres');

	$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
	$reader->query_safe("SET TRANSACTION SNAPSHOT '$snapshot'") if $snapshot;
	$reader->query_safe('SELECT 1');
	return $reader;
}

# answers(session, way): all answers in the session's snapshot
sub answers
{
	my ($session, $way) = @_;

	$session->query_safe($way);
	my $answers = join("\n--\n", map { $session->query_safe($_) } @queries);
	$session->query_safe($back) if $way eq $by_table;
	return $answers;
}

# sees_its_own(session, name): twice by the index and once by the table, the same.  One test.
sub sees_its_own
{
	my ($session, $name) = @_;
	my $first = answers($session, $by_index);
	my $second = answers($session, $by_index);
	my $table = answers($session, $by_table);

	is("$first\n==\n$second", "$table\n==\n$table", $name);
	return $table;
}

$node->safe_psql('postgres', <<'END');
CREATE TABLE t (k int, v int, w int) WITH (fillfactor = 80);
INSERT INTO t SELECT i * 7919 % 3001, i % 50, 0 FROM generate_series(1, 6000) i;
CREATE INDEX t_k ON t USING gpu_btree (k) INCLUDE (v);
VACUUM ANALYZE t;
END
my $change = '
	UPDATE t SET w = w + 1 WHERE k % 7 = :n; UPDATE t SET v = v + 1 WHERE k % 11 = :n;
	UPDATE t SET k = (k + 1500) % 3001 WHERE k % 13 = :n; DELETE FROM t WHERE k % 17 = :n;
	INSERT INTO t SELECT i * 7, 3, 0 FROM generate_series(:n, 400, 5) i';

# change(n): a transaction that changes all over the table
sub change
{
	my ($n) = @_;
	(my $sql = $change) =~ s/:n/$n/g;
	$node->safe_psql('postgres', $sql);
	return;
}

# One snapshot in two sessions, beside writers and a VACUUM
change(0);
my $first = begin_reader($node);
my $snapshot = $first->query_safe('SELECT pg_export_snapshot()');
my $second = begin_reader($node, $snapshot);
my $was = sees_its_own($first, 'a snapshot');
my $before = hits($node);
for my $n (1 .. 4)
{
	change($n);
	$node->safe_psql('postgres', 'VACUUM t') if $n == 3;
	is(answers($second, $by_index), $was, "round $n: the session that was given the snapshot sees the same");
	is(answers($first, $by_index), $was, "round $n: and so does its owner");
}
cmp_ok(hits($node), '>', $before, 'states were used');
my $newest = begin_reader($node);
isnt(sees_its_own($newest, 'a newer snapshot'), $was, 'is another');
$_->quit for $first, $second, $newest;

# A transaction that is prepared is neither committed nor aborted
$node->safe_psql('postgres', "BEGIN; DELETE FROM t WHERE k % 5 = 0; INSERT INTO t VALUES (1, 1, 1);
	SAVEPOINT s; DELETE FROM t WHERE k % 5 = 1; ROLLBACK TO s; PREPARE TRANSACTION 'one'");
my $reader = begin_reader($node);
$was = sees_its_own($reader, 'beside a prepared transaction');
$node->safe_psql('postgres', "COMMIT PREPARED 'one'");
is(sees_its_own($reader, 'after it has committed'), $was, 'the snapshot does not see it');
$reader->quit;
$reader = begin_reader($node);
isnt(sees_its_own($reader, 'a newer snapshot'), $was, 'sees it');
$reader->quit;
$node->safe_psql('postgres', "BEGIN; DELETE FROM t WHERE k % 3 = 0; PREPARE TRANSACTION 'two'");
$reader = begin_reader($node);
$was = sees_its_own($reader, 'beside another one');
$node->safe_psql('postgres', "ROLLBACK PREPARED 'two'");
is(sees_its_own($reader, 'after it was rolled back'), $was, 'nothing has changed');
$reader->quit;

# A standby has states of its own, which last over its promotion
$node->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->append_conf('postgresql.conf', "hot_standby_feedback = on\nwal_receiver_status_interval = 1s\n");
$standby->start;
change(5);
$node->wait_for_catchup($standby);
$first = begin_reader($standby);
$was = sees_its_own($first, 'on a standby');
$before = hits($standby);
$reader = begin_reader($standby);
sees_its_own($reader, 'another session there');
$reader->quit;
cmp_ok(hits($standby), '>', $before, 'uses the states of the first');
$node->poll_query_until('postgres', 'SELECT backend_xmin IS NOT NULL FROM pg_stat_replication');
change(6);
$node->safe_psql('postgres', "BEGIN; DELETE FROM t WHERE k % 3 = 1; PREPARE TRANSACTION 'three'");
$node->wait_for_catchup($standby);
$reader = begin_reader($standby);
isnt(sees_its_own($reader, 'after a replay'), $was, 'there is more to see');
$reader->quit;
is(sees_its_own($first, 'the older snapshot there'), $was, 'sees what it saw');
$first->quit;
$standby->promote;
$standby->safe_psql('postgres', "COMMIT PREPARED 'three'; UPDATE t SET w = w + 1 WHERE k % 4 = 0");
$reader = begin_reader($standby);
sees_its_own($reader, 'after the promotion');
$reader->quit;
$standby->stop;
$node->safe_psql('postgres', "ROLLBACK PREPARED 'three'");

# A crash loses the states
change(7);
$reader = begin_reader($node);
$was = sees_its_own($reader, 'before a crash');
$reader->quit;
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', 'SELECT pages, hits, made FROM gpuds_visibility'),
	'0|0|0', 'no state is left');
$reader = begin_reader($node);
is(sees_its_own($reader, 'after the crash'), $was, 'nothing has changed');
$reader->quit;

# Memory for eight pages, then for none
for my $memory ('1kB', '0')
{
	$node->append_conf('postgresql.conf', "gpuds.visibility_memory = $memory\n");
	$node->restart;
	change(8);
	$reader = begin_reader($node);
	sees_its_own($reader, "with $memory for states");
	$reader->quit;
	is($node->safe_psql('postgres',
			'SELECT memory_used <= memory_total, pages <= 8, evicted > 0, made > 0 FROM gpuds_visibility'),
		$memory eq '0' ? 't|t|f|f' : 't|t|t|t', 'which is not exceeded');
}
my ($rc, $out, $err) = $node->psql('postgres', "$by_index; EXPLAIN (ANALYZE, VERBOSE) $queries[0]");
like($out, qr/Heap Fetches: [1-9]/, 'without memory rows are visited');
unlike($out, qr/Page States/, 'and there are no states');
check_index($node, 't_k');
done_testing();
