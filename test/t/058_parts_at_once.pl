# Parts at once: a session asks all GPUs that have parts of an index before it waits for one.  So what is lost
# later does not matter to it, and what is lost, held up or cancelled before that leaves nothing behind.

use strict;
use warnings;

use GpudsCards;
use GpudsPoints;
use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = several_cards('parts_at_once', "gpuds.device_timeout = 3s\n");
plan(skip_all => 'not built with INJECTION_POINTS=1') unless injection_points($node);

sub value { return $node->safe_psql('postgres', $_[0]) }

my $used = "SELECT count(*) FROM gpuds_devices WHERE kind = 'cuda' AND staging_used > 0";
my $keys = 'ARRAY(SELECT i * 7919 % 25000 FROM generate_series(1, 2000) i)::bigint[]';

# What asks all parts at once, with few keys and with many
my %asks = (
	'a count' => "SELECT gpuds_count('i', 100, 19900)",
	'sums' => 'SELECT count(*), sum(v), min(v), max(k) FROM t WHERE k BETWEEN 500 AND 19000',
	'groups' => 'SELECT v % 3, count(*), sum(v) FROM t WHERE k BETWEEN 500 AND 19000 GROUP BY 1 ORDER BY 1',
	'which keys have rows' => "SELECT count(*), sum(k)
		FROM unnest($keys, gpuds_contains('i', $keys)) a (k, found) WHERE found",
	'rows of few keys' => 'SELECT k, v FROM t WHERE k IN (7, 19990, 4711, 10001, 15000, 25000)
		ORDER BY k DESC, v',
	'rows of many keys' => "SELECT count(*), sum(length(w)) FROM t WHERE k = ANY ($keys)");

# The same of the table, where it is a function of the index
my %of_table = (
	'a count' => 'SELECT count(*) FROM t WHERE k BETWEEN 100 AND 19900',
	'which keys have rows' => "SELECT count(*), sum(k) FROM unnest($keys) k WHERE k IN (SELECT k FROM t)");

# How a session is asked, whose plans are made before it stops anywhere
my $settings = 'SET client_min_messages = error; SET enable_seqscan = off;
	SET plan_cache_mode = force_generic_plan';

# Takes a name of %asks; returns a session that has a plan for it, and its PID.
sub prepare
{
	my ($name) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	my $pid = $session->query_safe("$settings; PREPARE ask AS $asks{$name}; SELECT pg_backend_pid()");

	$session->query_safe('EXECUTE ask');
	return ($session, $pid);
}

# Takes such a session and settings; returns when it has begun to ask.
sub begin
{
	my ($session, $set) = @_;

	$session->query_until(qr/go/, "$set;\n\\echo go\nEXECUTE ask;\n");
	return;
}

sub answer_of
{
	my ($session) = @_;
	my $answer = $session->query("\\echo -\n") =~ s/\s*-\s*$//r;

	$session->quit;
	return $answer =~ s/^\s+//r;
}

sub loads { return value("SELECT loads FROM gpuds_stat_indexes WHERE indexrelname = 'i'") }
sub worker_of { return value("SELECT worker_pid FROM gpuds_devices WHERE name ~ 'cuda:$_[0]'") }

# The index in so many parts, when all GPUs are there
sub load_parts
{
	my ($name, $parts) = @_;

	cards_are($node, $name, ('ready') x $parts);
	value("SELECT gpuds_index_evict('i'); SELECT gpuds_index_load('i', 1, $parts)");
	return;
}

value('CREATE TABLE t (k bigint, v int, w text); INSERT INTO t
		SELECT i::bigint * 7919 % 20000, i, repeat(\'w\', i % 7) FROM generate_series(1, 20000) i;
	CREATE INDEX i ON t USING gpu_btree (k) INCLUDE (v); VACUUM (FREEZE, ANALYZE) t');
my %right = map { $_ => value(scan_sql($of_table{$_} // $asks{$_})) } keys %asks;

for my $cards (2, 4)
{
	my $last = $cards - 1;

	$node->append_conf('postgresql.conf', 'gpuds.device_ids = \'' . join(',', 0 .. $last) . "'\n");
	$node->restart;

	# When a session waits for the first one, all have been asked: it needs none that is lost then.  (Others
	# look at the first entries before, which are one GPU's.)
	for my $name ('rows of few keys', 'rows of many keys', 'which keys have rows')
	{
		load_parts("$cards, $name", $cards);
		my ($session) = prepare($name);
		my $gate = gate($node, 'device-waiting');
		my $worker = worker_of($last);
		my $loads = loads();

		begin($session, "SET gpuds.wait_at = 'device-waiting'");
		held_at($node, 'device-waiting', "$cards, $name: held");
		value("SELECT gpuds_count('i', 0, 20000)");
		kill('TERM', $worker);
		becomes($node, "$cards, $name: the last one is lost",
			"SELECT worker_pid IS DISTINCT FROM $worker FROM gpuds_devices WHERE name ~ 'cuda:$last'", 't');
		$gate->quit;
		is(answer_of($session), $right{$name}, "$cards, $name: the answer");
		is(loads(), $loads, "$cards, $name: without another load");
	}

	# One is lost while the session waits for it.
	for my $part (0, $last)
	{
		load_parts("$cards, $part hangs", $cards);
		my ($session, $pid) = prepare('a count');
		my ($stuck, $stuck_pid) = prepare('a count');
		my $worker = worker_of($part);
		my $key = $part == 0 ? 7 : 19990;

		$stuck->query_until(qr/go/, "SET gpuds.device_fault = 'stuck';\n\\echo go\n"
			  . "SELECT gpuds_count('i', $key, $key);\n");
		ok(waits_for($node, $stuck_pid, 'Extension'), "$cards, $part hangs: a session has come upon it");
		begin($session, 'SET gpuds.wait_at = \'\'');
		ok(waits_for($node, $pid, 'Extension'), "$cards, $part hangs: another one asks all");
		becomes($node, "$cards, $part hangs: it counts as lost",
			"SELECT worker_pid IS DISTINCT FROM $worker FROM gpuds_devices WHERE name ~ 'cuda:$part'", 't');
		is(answer_of($session), $right{'a count'}, "$cards, $part hangs: the answer");
		is(answer_of($stuck), '1', "$cards, $part hangs: the answer of the other");
	}

	# The session is cancelled while it waits for the first one, or for the last one, which stands still.
	load_parts("$cards, to be cancelled", $cards);
	for my $name (sort keys %asks)
	{
		my ($session, $pid) = prepare($name);
		my $worker = worker_of($last);

		kill('STOP', $worker);
		begin($session, 'SET gpuds.wait_at = \'\'');
		ok(waits_for($node, $pid, 'Extension'), "$cards, $name: waits for the last one");
		value("SELECT pg_cancel_backend($pid)");
		like($session->query("\\echo -\n"), qr/^-$/m, "$cards, $name: cancelled");
		kill('CONT', $worker);
		is($session->query('EXECUTE ask'), $right{$name}, "$cards, $name: cancelled: the answer afterwards");
		$session->quit;

		my ($rc, $out, $err) = $node->psql('postgres', "$settings; SET statement_timeout = '300ms';
			SET gpuds.device_fault = 'hold'; $asks{$name}");
		like($err, qr/statement timeout/, "$cards, $name: out of time");
		becomes($node, "$cards, $name: nothing is left", $used, '0');
	}

	# The last one has no staging memory for a while: it is asked when the others have answered.
	my $many = 'ARRAY(SELECT 19990 + i FROM generate_series(1, 1000000) i)::bigint[]';
	my ($session, $pid) = prepare('a count');
	my @holders = map { [ prepare('a count') ] } 1 .. 2;
	for my $holder (@holders)
	{
		$holder->[0]->query_until(qr/go/, "SET gpuds.device_fault = 'hold'; SET work_mem = '1GB';
			SET enable_indexscan = off;\n\\echo go\nSELECT count(w) FROM t WHERE k = ANY ($many);\n");
		ok(waits_for($node, $holder->[1], 'Extension'), "$cards: one has staging memory");
	}
	begin($session, 'SET gpuds.wait_at = \'\'');
	ok(waits_for($node, $pid, 'Extension'), "$cards: who asks all waits");
	value("SELECT pg_cancel_backend($_->[1])") for @holders;
	is(answer_of($session), $right{'a count'}, "$cards: the answer");
	$_->[0]->quit for @holders;
	becomes($node, "$cards: no staging memory is left", $used, '0');
}

$node->stop('fast');
unlike(slurp_file($node->logfile), qr/was terminated by signal|PANIC/, 'nothing crashed');

done_testing();
