# Several GPUs: each has a worker, and indexes of its own.  The loss of one costs the indexes that are
# there a load on another, and the others nothing.

use strict;
use warnings;

use GpudsCards;
use GpudsPoints;
use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = several_cards('cards');

# A list that is wrong keeps the server from starting.
$node->stop;
for my $wrong ('0,0', '1,', 'all', '-1', join(',', 0 .. 16))
{
	$node->append_conf('postgresql.conf', "gpuds.device_ids = '$wrong'\n");
	ok(!$node->start(fail_ok => 1), "no server uses GPUs $wrong");
}
in_log($node, qr/FATAL:  invalid value for parameter "gpuds.device_ids": "0,0"\n.*DETAIL:  A GPU is named/,
	'the log says why');

sub value { return $node->safe_psql('postgres', $_[0]) }

# Where the indexes of so many tables are
sub devices
{
	my ($n) = @_;
	return value("SELECT string_agg(coalesce(device, '-'), ' ' ORDER BY indexrelname COLLATE \"C\")
		FROM gpuds_indexes WHERE indexrelname < 'k_' || chr(97 + $n)");
}

# A query of a table
sub query_of { return "SELECT count(*), sum(v) FROM t_$_[0] WHERE k BETWEEN 500 AND 900" }

# answers(name, tables): indexes give what tables have
sub answers
{
	my ($name, @tables) = @_;
	answers_agree($node, $name, map { query_of($_) } @tables);
	return;
}

# As many as CUDA would see by the variable.  Tables a to l are all alike, and cards take turns, since another
# one has more room after a load.
my @all = 'a' .. 'l';
{
	local $ENV{CUDA_VISIBLE_DEVICES} = '0,1,2,3';
	$node->append_conf('postgresql.conf', "gpuds.device_ids = ''\n");
	$node->start;
	cards_are($node, 'all that are seen', ('ready') x 4);
	is(value("SELECT string_agg(name, ', ' ORDER BY name) FROM gpuds_devices WHERE kind = 'cuda'"),
		join(', ', map { "emulated GPU (cuda:$_)" } 0 .. 3), 'each has its number');
	value(join('', map { "CREATE TABLE t_$_ (k bigint, v int);
		INSERT INTO t_$_ SELECT i::bigint * 7919 % 20000, i + ascii('$_') FROM generate_series(1, 20000) i;
		CREATE INDEX k_$_ ON t_$_ USING gpu_btree (k); VACUUM (FREEZE, ANALYZE) t_$_;" } @all));
	value("SELECT gpuds_index_load('k_$_')") for ('a' .. 'e');
	is(devices(5), 'cuda:0 cuda:1 cuda:2 cuda:3 cuda:0', 'each load is where there is more room');
	answers('all that are seen', 'a' .. 'e');

	# One that is not seen is absent, and the other serves.
	$node->append_conf('postgresql.conf', "gpuds.device_ids = '7, 2'\n");
	$node->restart;
	cards_are($node, 'one that is not there', 'absent', 'ready');
	answers('one that is not there', 'a', 'b');
	is(devices(2), 'cuda:2 cuda:2', 'what is loaded is on the one that is');
}

# Two cards
$node->append_conf('postgresql.conf', "gpuds.device_ids = '0,2'\n");
$node->restart;
cards_are($node, 'two cards', 'ready', 'ready');
value("SELECT gpuds_index_load('k_$_')") for ('a' .. 'd');
is(devices(4), 'cuda:0 cuda:2 cuda:0 cuda:2', 'two cards: they take turns');
like(value('EXPLAIN (ANALYZE, VERBOSE, COSTS OFF) SELECT count(*) FROM t_b WHERE k < 15000'),
	qr/Device: cuda:2$/m, 'EXPLAIN says which');
answers('two cards', 'a' .. 'd');

# What is to be joined comes to be on one card.
my $join = index_sql('SELECT count(*) FROM t_k JOIN t_l USING (k)');
my $where = "SELECT string_agg(device, ' ' ORDER BY device) FROM gpuds_indexes
	WHERE indexrelname ~ '^k_[kl]'";
value("SELECT gpuds_index_load('k_$_')") for ('k', 'l');
is(value($where), 'cuda:0 cuda:2', 'indexes on two cards');
is(value($join), '20000', 'a join of what is on both');
for (1 .. 300)
{
	last if value($where) =~ /^cuda:(\d) cuda:\1$/;
	select(undef, undef, undef, 0.1);
	value($join);
}
like(value($where), qr/^cuda:(\d) cuda:\1$/, 'one has moved to the other');
is(value($join), '20000', 'a join of what is on one');
like(value($join =~ s/SELECT count/EXPLAIN (ANALYZE, COSTS OFF) SELECT count/r), qr/Keys Left by Device: 0$/m,
	'the device makes it');
value("SELECT gpuds_index_evict('k_$_')") for ('k', 'l');
value("SELECT gpuds_index_load('k_l'); CREATE INDEX k_l2 ON t_l USING gpu_btree (v)");
value("SELECT gpuds_index_load('k_$_')") for ('k', 'l2');
like(value("$where OR indexrelname = 'k_l2'"), qr/^cuda:(\d) cuda:\1 cuda:\1$/,
	'indexes of a table, and what it was joined with, are loaded on one card');
value("SELECT gpuds_index_evict('k_$_')") for ('k', 'l', 'l2');
value('DROP INDEX k_l2');

# One moves although another index of its table stays, and there is more room there.
value('CREATE TABLE t_m AS SELECT k, v FROM t_l, generate_series(1, 15);
	CREATE INDEX k_m ON t_m USING gpu_btree (k);
	CREATE INDEX k_k2 ON t_k USING gpu_btree (v); VACUUM (FREEZE, ANALYZE) t_m');
value("SELECT gpuds_index_load('k_$_')") for ('k', 'm', 'k2');
$join = index_sql('SELECT count(*) FROM t_k JOIN t_m USING (k)');
$where = "SELECT string_agg(device, ' ' ORDER BY indexrelname) FROM gpuds_indexes
	WHERE indexrelname ~ '^k_[km]'";
for (1 .. 300)
{
	value($join);
	last if value($where) =~ /^cuda:(\d) cuda:\d cuda:\1$/;
	select(undef, undef, undef, 0.1);
}
like(value($where), qr/^cuda:(\d) cuda:(?!\1)\d cuda:\1$/,
	'one has moved from its kin to what it is joined with');
value('DROP TABLE t_m; DROP INDEX k_k2');
value("SELECT gpuds_index_evict('k_k')");

# More indexes than both cards can have
answers('more indexes than there is memory for', @all);
is(value("SELECT count(*) FROM gpuds_devices WHERE kind = 'cuda'
	AND (memory_used > memory_total OR memory_used < 2 * 6 * 1024 * 1024)"), '0',
	'both are used, within their memory');
value("SELECT gpuds_index_evict('k_$_')") for @all;
is(value("SELECT sum(memory_used) FROM gpuds_devices WHERE kind = 'cuda'"), '0',
	'both give their memory back');

SKIP:
{
	skip 'not built with INJECTION_POINTS=1', 1 unless injection_points($node);

	sub worker_of { return value("SELECT worker_pid FROM gpuds_devices WHERE name ~ 'cuda:$_[0]'") }

	# A drop that is given up is left to the worker of the card.
	value("SELECT gpuds_index_load('k_$_')") for ('a', 'b');
	value("SET client_min_messages = error; SET gpuds.device_fault = 'hold_drop';
		SELECT gpuds_index_evict('k_b')");
	ok($node->poll_query_until('postgres', "SELECT memory_used = 0 FROM gpuds_devices WHERE name ~ 'cuda:2'"),
		'given up: the memory comes back');
	value("SELECT gpuds_index_load('k_b'); SELECT gpuds_index_evict('k_$_')") for ('a', 'b');

	# One that has no memory, whatever it has said, is not the only one.
	value("SET gpuds.device_fault = 'no_memory'; SELECT gpuds_index_load('k_a')");
	is(devices(1), 'cuda:2', 'no memory on the first: on the other');
	value("SELECT gpuds_index_evict('k_a')");

	# One is lost, and cannot be opened for a while.
	value("SELECT gpuds_index_load('k_$_')") for ('a' .. 'd');
	is(devices(4), 'cuda:0 cuda:2 cuda:0 cuda:2', 'loaded again');
	my $other = worker_of(0);
	fail_to_open($node, 1000);
	is(lose_card($node, query_of('b')), value(scan_sql(query_of('b'))), 'lost under a query: right answer');
	cards_are($node, 'one is lost', 'ready', 'starting');
	answers('one is lost', 'a' .. 'd');
	is(devices(4), 'cuda:0 cuda:0 cuda:0 cuda:0', 'its indexes are loaded on the other');
	is(worker_of(0) . value("SELECT losses FROM gpuds_devices WHERE name ~ 'cuda:0'"), "${other}0",
		'the other has served all the time');
	answers('one is lost, and more indexes than the other has memory for', @all);
	memory_is_kept($node, 'one is lost');
	like(new_log($node), qr/gpuds lost its CUDA device.*\n(?:.*\n)*?.*CONTEXT:  GPU 2/,
		'the log says which was lost');

	# An index that was on it is dropped meanwhile, and it comes back.
	value("DROP INDEX k_d;
		SELECT gpuds_index_evict('k_' || chr(c)) FROM generate_series(97, 108) c WHERE c <> 100");
	value("SELECT gpuds_index_load('k_$_')") for ('a', 'b');
	fail_to_open($node, 0);
	cards_are($node, 'opened again', 'ready', 'ready');
	value("SELECT gpuds_index_load('k_c')");
	is(devices(3), 'cuda:0 cuda:0 cuda:2', 'what is loaded then has its room');
	value('CREATE INDEX k_d ON t_d USING gpu_btree (k)');
	answers('opened again', @all);

	# One hangs: the other answers meanwhile.
	$node->append_conf('postgresql.conf', "gpuds.device_timeout = 300s\n");
	$node->reload;
	value("SELECT gpuds_index_evict('k_$_')") for @all;
	value("SELECT gpuds_index_load('k_$_')") for ('a', 'b');
	my $hangs = $node->background_psql('postgres', on_error_stop => 0);
	$hangs->query_until(qr/go/,
		"SET client_min_messages = error; SET gpuds.device_fault = 'hang';\n\\echo go\n"
		  . index_sql(query_of('b')) . "\n");
	ok($node->poll_query_until('postgres',
			"SELECT detail ~ 'two seconds' FROM gpuds_devices WHERE name ~ 'cuda:2'"),
		'one hangs: it says so');
	answers('one hangs', 'a', 'c', 'd');
	is(devices(4), 'cuda:0 cuda:2 cuda:0 cuda:0', 'loads go to the other');
	$node->append_conf('postgresql.conf', "gpuds.device_timeout = 3s\n");
	$node->reload;
	ok($node->poll_query_until('postgres', "SELECT losses = 2 FROM gpuds_devices WHERE name ~ 'cuda:2'"),
		'it counts as lost');
	is(worker_of(0), $other, 'the other does not');
	$hangs->quit;
	cards_are($node, 'after a hang', 'ready', 'ready');
	answers('after a hang', 'a', 'b');

	# Sessions on all indexes while one card after the other is lost, again and again
	my %right = map { $_ => value("SELECT sum(v) FROM t_$_ WHERE k < 9000") } @all;
	my @scripts = map { [ script_file("at_$_", "SET client_min_messages = error;
		SELECT 1 / (count(*) = 9000 AND sum(v) = $right{$_})::int FROM t_$_ WHERE k < 9000;
		SELECT 1 / (count(*) = 1)::int FROM t_$_ WHERE k = 7;
		BEGIN; UPDATE t_$_ SET v = v WHERE k = (random() * 1000)::int; ROLLBACK;\n"), 1 ] } @all;
	my $bench = start_pgbench($node, '-c 16 -j 2 -T 12', @scripts);
	for (1 .. 10)
	{
		lose_card($node, query_of($all[ int(rand(@all)) ]));
		select(undef, undef, undef, 0.5);
	}
	ok(finish_pgbench($bench), 'lost again and again: right answers') or diag($bench->{out});
	cards_are($node, 'at the end', 'ready', 'ready');
	answers('at the end', @all);
	check_all_indexes($node, 'at the end: all indexes are whole');

	# All are lost: the CPU answers, and the server can be stopped.
	fail_to_open($node, 1000);
	value("SELECT gpuds_index_evict('k_$_')") for @all;
	value("SELECT gpuds_index_load('k_a')");
	lose_card($node, query_of('a')) for 1 .. 2;
	cards_are($node, 'all are lost', 'starting', 'starting');
	is(value('SET gpuds.device = auto; ' . index_sql(query_of('a'))),
		value(scan_sql(query_of('a'))), 'all are lost: right answer');
}

$node->stop('fast');
unlike(slurp_file($node->logfile), qr/was terminated by signal|PANIC/, 'nothing crashed');

done_testing();
