# EXPLAIN (ANALYZE, GPUDS), since 18: what scans of indexes of gpuds have done, in core's nodes and in ours.

use strict;
use warnings;

use GpudsPoints;
use GpudsTest;
use JSON::PP qw(decode_json);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan(skip_all => 'EXPLAIN has no options of extensions before 18')
  if PostgreSQL::Test::Cluster->new('version')->pg_version->major < 18;

my $node = new_node('explain', conf => "gpuds.temp_memory = 1MB\n");

my $device = on_cuda() ? 'cuda' : 'cpu';

$node->safe_psql('postgres', <<'END');
CREATE TABLE t (id int, k int, v int) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, i % 5000, i % 10 FROM generate_series(1, 20000) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
CREATE INDEX t_btree ON t (id);
CREATE TABLE o (id int, k int) WITH (autovacuum_enabled = off);
INSERT INTO o SELECT i, i FROM generate_series(4001, 6000) i;
VACUUM ANALYZE t, o;
SELECT gpuds_index_load('t_k');
END

# What disables all ways to plan but one
my %way = (
	'Index Scan'        => '
		SET enable_seqscan = off; SET enable_bitmapscan = off; SET gpuds.enable_scan = off;
		SET enable_indexonlyscan = off;',
	'Index Only Scan'   => '
		SET enable_seqscan = off; SET enable_bitmapscan = off; SET gpuds.enable_scan = off;
		SET gpuds.enable_aggregate = off;',
	'Bitmap Index Scan' => '
		SET enable_seqscan = off; SET enable_indexscan = off; SET enable_indexonlyscan = off;
		SET gpuds.enable_scan = off;',
	'GpudsScan'         => 'SET enable_seqscan = off; SET enable_indexscan = off;',
	'GpudsAggregate'    => '',
	'GpudsJoin'         => '
		SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_nestloop = off;');

sub explained
{
	my ($way, $options, $query) = @_;
	return $node->safe_psql('postgres',
		"SET max_parallel_workers_per_gather = 0; $way{$way} EXPLAIN ($options) $query");
}

my @queries = (
	[ 'Index Scan', 'SELECT v FROM t WHERE k = ANY (\'{1,2,3,9999}\')',
		{ Scans => 1, Probes => 4, Entries => 12 } ],
	[ 'Index Only Scan', 'SELECT k FROM t WHERE k BETWEEN 10 AND 19',
		{ Scans => 1, Probes => 1, Entries => 40 } ],
	[ 'Bitmap Index Scan', 'SELECT v FROM t WHERE k BETWEEN 10 AND 19',
		{ Scans => 1, Probes => 1, Entries => 40 } ],
	[ 'GpudsScan', 'SELECT v FROM t WHERE k BETWEEN 100 AND 199',
		{ Scans => 1, Probes => 1, Entries => 400 } ],
	[ 'GpudsAggregate', 'SELECT count(*) FROM t WHERE k BETWEEN 100 AND 199',
		{ Scans => 1, Probes => 1, Entries => 400 } ],
	[ 'GpudsJoin', 'SELECT o.id, t.v FROM o JOIN t ON t.k = o.k', { Probes => 2000, Entries => 3996 } ],
);

# Every group of ours in a plan, with what its node is called
sub groups
{
	my ($plan) = @_;
	my @found = map { groups($_) } @{ $plan->{Plans} // [] };

	unshift @found, [ $plan->{'Custom Plan Provider'} // $plan->{'Node Type'}, $plan->{Gpuds} ]
	  if $plan->{Gpuds};
	return @found;
}

for my $case (@queries)
{
	my ($way, $query, $expected) = @$case;
	my $text = explained($way, 'ANALYZE, GPUDS, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF', $query);
	my $entries = $expected->{Entries};

	like($text, qr/\b\Q$way\E\b/, "$way is planned");
	my @lines = $text =~ /^ *(Gpuds: .*)$/mg;
	is(scalar @lines, 1, "$way: one node shows figures") or diag($text);
	like($lines[0], qr/^Gpuds: device=$device scans=\d+ probes=\d+ calls=\d+ entries=$entries( bus=\d+kB)?$/,
		"$way: and those");
	unlike(explained($way, 'ANALYZE, COSTS OFF', $query), qr/Gpuds:/,
		"$way: without the option there are none");
	unlike(explained($way, 'ANALYZE, GPUDS off, COSTS OFF', $query), qr/Gpuds:/, "$way: nor if it is off");

	my $json = decode_json(explained($way, 'ANALYZE, GPUDS, FORMAT JSON', $query));
	my @groups = groups($json->[0]{Plan});
	is(join(' ', map { $_->[0] } @groups), $way, "$way: JSON has a group of the node");
	is($groups[0][1]{Device}, $device, "$way: with the device");
	is($groups[0][1]{$_}, $expected->{$_}, "$way: $_ in JSON") for sort keys %$expected;
	is_deeply([ map { $groups[0][1]{$_} } 'Fallbacks', 'Fallback Reasons', 'Memtable Operations' ],
		[ 0, [], 0 ], "$way: nothing else happened");
	ok(!$groups[0][1]{'Leader Alone'}, "$way: all processes are in it");
}

# What is not ours, and what was not executed
unlike($node->safe_psql('postgres', '
	SET enable_seqscan = off; EXPLAIN (ANALYZE, GPUDS) SELECT * FROM t WHERE id = 5'),
	qr/Gpuds:/, 'an index of another kind shows nothing');
unlike(explained('Index Scan', 'ANALYZE, GPUDS', 'SELECT v FROM t WHERE k = 5 AND (SELECT false)'),
	qr/Gpuds:/, 'a node that was not executed shows nothing');
my ($rc, $out, $err) = $node->psql('postgres', 'EXPLAIN (GPUDS) SELECT 1');
like($err, qr/EXPLAIN option GPUDS requires ANALYZE/, 'the option is about what was done');
($rc, $out, $err) = $node->psql('postgres', 'EXPLAIN (GPUDS 7, ANALYZE) SELECT 1');
like($err, qr/requires a Boolean value/i, 'and is a Boolean');
like($node->safe_psql('postgres', 'EXPLAIN (GPUDS, ANALYZE) SELECT 1'), qr/Result/, 'in any order');

# Loops add up, and what the memtable had for them
like(explained('Index Scan', 'ANALYZE, GPUDS, COSTS OFF', '
	SELECT (SELECT sum(v) FROM t WHERE k = i) FROM generate_series(1, 5) i'),
	qr/scans=5 probes=5 /, 'figures of loops add up');
SKIP:
{
	skip('not built with INJECTION_POINTS=1', 1) unless injection_points($node);

	# The flusher is held before it takes them away
	my $gate = gate($node, 'flush-apply');
	$node->safe_psql('postgres', "ALTER SYSTEM SET gpuds.wait_at = 'flush-apply'");
	$node->reload;
	$node->safe_psql('postgres', 'INSERT INTO t SELECT i, 78, 0 FROM generate_series(1, 50) i');
	like(explained('Index Scan', 'ANALYZE, GPUDS, COSTS OFF', 'SELECT v FROM t WHERE k = 78'),
		qr/entries=54 memtable=50\b/,
		'entries of the memtable are among the others, and it is said how many it had');
	$node->safe_psql('postgres', 'ALTER SYSTEM RESET gpuds.wait_at');
	$node->reload;
	$gate->quit;
}

# Why a device was done without
my $fallback = $node->safe_psql('postgres', <<"END");
SET client_min_messages = error;
CREATE TEMPORARY TABLE small AS SELECT i AS k, i AS v FROM generate_series(1, 100000) i;
CREATE INDEX small_k ON small USING gpu_btree (k);
$way{'Index Scan'}
EXPLAIN (ANALYZE, GPUDS) SELECT v FROM small WHERE k = 5;
EXPLAIN (ANALYZE, GPUDS, FORMAT JSON) SELECT v FROM small WHERE k = 5;
END
like($fallback, qr/Gpuds: device=journal /, 'pages answer if there is no memory');
like($fallback, qr/Gpuds Fallbacks: 1 \(cpu: no memory\)/, 'and it is said why');
like($fallback, qr/"Fallback Reasons": \["cpu: no memory"\]/, 'in JSON, too');

# Workers
my $parallel = <<'END';
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0; SET min_parallel_index_scan_size = 0;
SET enable_seqscan = off; SET enable_bitmapscan = off; SET gpuds.enable_aggregate = off;
END
my $core = $node->safe_psql('postgres', "
	$parallel SET gpuds.enable_scan = off;
	EXPLAIN (ANALYZE, GPUDS, COSTS OFF) SELECT sum(v) FROM t WHERE k < 4000");
SKIP:
{
	skip('there was no worker', 1) unless $core =~ /Parallel Index Scan/ && $core =~ /Workers Launched: [12]/;
	like($core, qr/Gpuds: .*\(leader alone\)/, "figures of a parallel scan of core's are the leader's");
}
my $join = $node->safe_psql('postgres',
	"$parallel $way{GpudsJoin} SET parallel_leader_participation = off; EXPLAIN (ANALYZE, GPUDS, COSTS OFF) "
	  . "SELECT count(t.v) FROM o JOIN t ON t.k = o.k");
like($join, qr/Gpuds: device=$device scans=\d+ probes=2000 calls=\d+ entries=3996/,
	'workers of our nodes hand theirs in') if $join =~ /Parallel Custom Scan/;

# auto_explain, which knows nothing of the option, within EXPLAIN with it
my $auto = $node->safe_psql('postgres', <<"END");
LOAD 'auto_explain';
SET auto_explain.log_min_duration = 0;
SET auto_explain.log_analyze = on;
SET auto_explain.log_nested_statements = on;
SET client_min_messages = log;
$way{'Index Scan'}
CREATE FUNCTION f() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT sum(v) FROM t WHERE k = 5); END';
EXPLAIN (ANALYZE, GPUDS) SELECT f(), v FROM t WHERE k = 7;
EXPLAIN SELECT v FROM t WHERE k = 7;
END
is(scalar(() = $auto =~ /Gpuds:/g), 1, 'auto_explain shows plans without figures of ours');
unlike(slurp_file($node->logfile), qr/Gpuds:.*\n.*auto_explain/, 'in the log, too');

$node->stop;
done_testing();
