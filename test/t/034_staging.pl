# Staging memory is shared: loads that wait for a disk stop nobody, and who needs a
# long run of it comes to its turn, however many others need short ones.

use strict;
use warnings;

use GpudsPoints;
use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;

need_cuda();
my $node = new_node('staging', conf => "gpuds.staging_memory = 64MB\nmax_parallel_workers_per_gather = 0\n");
plan(skip_all => 'not built with INJECTION_POINTS=1') unless injection_points($node);

my $rows = 400_000;
my $loads = 8;

$node->safe_psql('postgres', <<"END");
CREATE TABLE t (k bigint, v int);
INSERT INTO t SELECT i::bigint * 7919 % $rows, i FROM generate_series(1, $rows) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
CREATE TABLE s (k bigint, v int);
INSERT INTO s SELECT i, i FROM generate_series(1, 1000) i;
CREATE INDEX s_k ON s USING gpu_btree (k);
CREATE TABLE keys AS
	SELECT n, array_agg(i::bigint) AS keys FROM (VALUES (100000), (320000)) q (n), generate_series(0, n - 1) i
	GROUP BY n;
SELECT gpuds_index_load('t_k'), gpuds_index_load('s_k');
END
for my $i (1 .. $loads)
{
	$node->safe_psql('postgres', "
		CREATE TABLE l$i (k bigint); INSERT INTO l$i SELECT generate_series(1, 1000 * $i);
		CREATE INDEX l${i}_k ON l$i USING gpu_btree (k)");
}

# Takes 16 bytes a key of staging memory
sub any_of
{
	my ($n) = @_;
	return "SELECT count(*), sum(v) FROM t WHERE k = ANY ((SELECT keys FROM keys WHERE n = $n)::bigint[])";
}

# More rows than a request without staging memory has room for
my $short = 'SELECT count(*), sum(v) FROM t WHERE k BETWEEN 100 AND 1099';
my %right = (
	$short => $node->safe_psql('postgres', scan_sql($short)),
	map {
		any_of($_) => $node->safe_psql('postgres', scan_sql("SELECT count(*), sum(v) FROM t WHERE k < $_"))
	} (100000, 320000));

# A session with a query under way
sub start_query
{
	my ($query, $settings) = @_;
	my $session = { psql => $node->background_psql('postgres', on_error_stop => 0) };

	$session->{pid} = $session->{psql}->query_safe('SELECT pg_backend_pid()');
	$session->{psql}->query_until(qr/go/, "SET client_min_messages = error; $settings;\n\\echo go\n"
		  . index_sql($query, 'bitmap') . "\n");
	return $session;
}

sub waits
{
	my ($session, $type) = @_;
	return 1 if $node->poll_query_until('postgres', "
		SELECT wait_event_type = '$type' FROM pg_stat_activity WHERE pid = $session->{pid}");
	diag($node->safe_psql('postgres',
			'SELECT pid, state, wait_event_type, wait_event, query FROM pg_stat_activity'));
	return 0;
}

sub answer_of
{
	my ($session) = @_;
	my $answer = $session->{psql}->query("\\echo -\n") =~ s/\s*-\s*$//r;

	$session->{psql}->quit;
	return $answer =~ s/^\s+//r;
}

sub cancel
{
	$node->safe_psql('postgres', "SELECT pg_cancel_backend($_->{pid})") for @_;
	return;
}

# Two scans that hold so much of 16 MB that 8 MB in a row are not to be had
sub hold_staging
{
	my @holding = map { start_query(any_of(320000), "SET gpuds.device_fault = 'hold'") } 1 .. 2;

	ok(waits($_, 'Extension'), 'a scan is held') for @holding;
	return @holding;
}

# A change of that length, and not so long that a loader makes it
sub start_change
{
	my ($from) = @_;

	$node->safe_psql('postgres', "INSERT INTO s SELECT $from + i, 1 FROM generate_series(1, 260000) i");
	my $change = start_query("SELECT count(*) FROM s WHERE k > $from", 'SET work_mem = DEFAULT');
	ok(waits($change, 'Extension'), 'a large change waits for staging memory');
	return $change;
}

# Loads held up between two pieces, as if by their disk.  Nobody else stops at a point.
my $gate = gate($node, 'load-begun');
my @loading =
  map { start_query("SELECT count(*) FROM l$_ WHERE k > 0", "SET gpuds.wait_at = 'load-begun'") } 1 .. $loads;
ok(waits($_, 'Lock'), 'a load waits') for @loading;
for my $query (any_of(100000), any_of(320000), $short)
{
	my ($rc, $out, $err) = $node->psql('postgres',
		"SET statement_timeout = '100s'; " . index_sql($query, 'bitmap'));
	is($out, $right{$query}, 'beside loads that wait: right answer') or diag($err);
}
$node->safe_psql('postgres', 'INSERT INTO s SELECT 2000 + i, i FROM generate_series(1, 300000) i');
my ($rc, $out, $err) = $node->psql('postgres',
	"SET statement_timeout = '100s'; " . index_sql('SELECT count(*) FROM s WHERE k > 2000', 'bitmap'));
is($out, '300000', 'beside loads that wait: a large change gets there') or diag($err);
# One of them gives up
cancel($loading[3]);
open_points($gate, 'load-begun');
for my $i (1 .. $loads)
{
	my $answer = answer_of($loading[$i - 1]);
	is($answer, 1000 * $i, "load $i: right answer") if $i != 4;
}
$gate->quit;
check_all_indexes($node, 'loads: the indexes are whole');
forget_mirrors($node, 'loads');

# First come, first served
$node->append_conf('postgresql.conf', "gpuds.staging_memory = 16MB\n");
$node->restart;
device_ready($node);
$node->safe_psql('postgres', "SELECT gpuds_index_load('t_k'), gpuds_index_load('s_k')");
my @holding = hold_staging();
my $change = start_change(400000);
# What comes later needs little, but does not go first
($rc, $out, $err) = $node->psql('postgres', "SET statement_timeout = '3s'; " . index_sql($short, 'bitmap'));
like($err, qr/canceling statement due to statement timeout/, 'a later request does not overtake')
  or diag($out);
my ($waiting, $leaving, $last) = map { start_query($short, 'SET work_mem = DEFAULT') } 1 .. 3;
ok(waits($_, 'Extension'), 'another one waits') for ($waiting, $leaving, $last);
$node->safe_psql('postgres', "SELECT pg_terminate_backend($leaving->{pid})");
ok($node->poll_query_until('postgres', "
	SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $leaving->{pid}"),
	'one that waits is terminated');
cancel(@holding);
is(answer_of($change), '260000', 'the large change gets there');
is(answer_of($_), $right{$short}, 'the others, too') for ($waiting, $last);
eval { $_->{psql}->quit } for (@holding, $leaving);
for my $round (1 .. 3)
{
	is($node->safe_psql('postgres', index_sql(any_of(320000), 'bitmap')), $right{ any_of(320000) },
		"nothing of the staging memory is lost ($round)");
}

# The first in line gives up: the next ones are served
@holding = hold_staging();
$change = start_change(800000);
$waiting = start_query($short, 'SET work_mem = DEFAULT');
ok(waits($waiting, 'Extension'), 'one waits behind it');
cancel($change);
is(answer_of($waiting), $right{$short}, 'the first gave up: the next is served');
cancel(@holding);
eval { $_->{psql}->quit } for (@holding, $change);
is($node->safe_psql('postgres', index_sql('SELECT count(*) FROM s WHERE k > 800000')), '260000',
	'what it would have changed is there');
check_all_indexes($node, 'the indexes are whole');
forget_mirrors($node, 'at the end');
$node->stop;

done_testing();
