# Loads and catch-ups that take longer than the query that asked for them: a loader
# goes on when the query is cancelled, and backends do without it where it cannot help.

use strict;
use warnings;

use GpudsPoints;
use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $node = new_node('loader');
my $rows = 300_000;

plan(skip_all => 'not built with INJECTION_POINTS=1') unless injection_points($node);

$node->safe_psql('postgres', <<"END");
CREATE TABLE t (k bigint, v int);
INSERT INTO t SELECT i::bigint * 7919 % $rows, i FROM generate_series(0, $rows - 1) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
END

# Everybody stops at these points while a gate holds their locks, but for the sessions
# that say they do not
$node->safe_psql('postgres', "ALTER SYSTEM SET gpuds.wait_at = 'catch-up-read, load-base-read'");
$node->reload;
my $free = "SET gpuds.wait_at = ''; SET enable_seqscan = off; SET enable_bitmapscan = off;";
my $query = 'SELECT count(*), sum(v) FROM t WHERE k BETWEEN 100 AND 1999';
my $right = $node->safe_psql('postgres', scan_sql($query));

# The pid of the loader, once it is held
sub held_loader
{
	my ($name, $db) = @_;

	ok($node->poll_query_until('postgres', "
		SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'gpuds loader'
			AND wait_event_type = 'Lock'"),
		"$name: a loader is at it");
	return $node->safe_psql('postgres',
		"SELECT pid FROM pg_stat_activity WHERE backend_type = 'gpuds loader'");
}

# A query that asks for a loader and is cancelled when the loader is held, however long it took to start
sub cancelled
{
	my ($name, $db) = @_;
	my $session = $node->background_psql($db // 'postgres', on_error_stop => 0);
	my $pid = $session->query_safe('SELECT pg_backend_pid()');

	$session->query_until(qr/go/, "$free\n\\echo go\n$query;\n");
	held_loader($name, $db);
	$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
	$session->query('SELECT 1');
	like($session->{stderr}, qr/canceling statement due to user request/,
		"$name: a query does not wait for longer than it may");
	$session->quit;
	return;
}

# Lets a loader go on that somebody waits for.  It looks twice a second whether somebody does, so the load
# must not be through before it is time to look again.
sub open_for
{
	my ($gate) = @_;

	usleep(600_000);
	$gate->quit;
	return;
}

sub no_loader
{
	my ($name) = @_;

	ok($node->poll_query_until('postgres', "
		SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'gpuds loader'"),
		"$name: the loader ends");
	return;
}

sub is_up
{
	my ($name) = @_;
	ok($node->poll_query_until('postgres', "
		SELECT state = 'loaded' AND applied_position = journal_position FROM gpuds_indexes
		WHERE indexrelid = 't_k'::regclass"), $name);
	return;
}

my ($rc, $out, $err);

# A load
my $gate = gate($node, 'load-base-read');
cancelled('load');
$gate->quit;
is_up('the load goes on without the query');
is(of_statistics($node, 't_k', 'loads'), '1', 'one load');
no_loader('load');
is($node->safe_psql('postgres', "$free $query"), $right, 'right answer');
is(of_statistics($node, 't_k', 'loads'), '1', 'without another load');

# A catch-up: the query leaves all of it
$node->safe_psql('postgres', "INSERT INTO t SELECT 1000000 + i, 1 FROM generate_series(1, 700000) i");
my $before = of_mirror($node, 't_k', 'applied_position');
$gate = gate($node, 'catch-up-read');
cancelled('catch-up');
is(of_mirror($node, 't_k', 'applied_position'), $before, 'the query has applied nothing');
$gate->quit;
is_up('it is applied without the query');
no_loader('catch-up');
is(of_statistics($node, 't_k', 'loads'), '1', 'without another load');
is($node->safe_psql('postgres', "$free SELECT count(*), sum(v) FROM t WHERE k > 1000000"), '700000|700000',
	'right answer');

# A loader that is terminated: the query does the work
$node->safe_psql('postgres', "SELECT gpuds_index_evict('t_k')");
$gate = gate($node, 'load-base-read');
my $asker = $node->background_psql('postgres');
$asker->query_until(qr/go/, "$free\n\\echo go\n$query;\n");
my $pid = held_loader('terminated');
$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
is_up('the query loads instead of a loader that was terminated');
$gate->quit;
$asker->quit;
no_loader('terminated');

# Somebody wants the table for himself: the loader gives way
$node->safe_psql('postgres', "SELECT gpuds_index_evict('t_k')");
$gate = gate($node, 'load-base-read');
cancelled('in the way');
my $alter = $node->background_psql('postgres');
$alter->query_until(qr/go/, "\\echo go\nALTER TABLE t ADD w int;\n");
ok($node->poll_query_until('postgres', "
	SELECT count(*) = 1 FROM pg_locks WHERE relation = 't'::regclass AND NOT granted"),
	'ALTER TABLE waits');
my $offset = -s $node->logfile;
open_for($gate);
no_loader('in the way');
$alter->quit;
like(slurp_file($node->logfile, $offset), qr/canceling load of the in-memory copy of index/,
	'a loader gives way to ALTER TABLE');

# DROP DATABASE
for my $force ('', ' WITH (FORCE)')
{
	$node->safe_psql('postgres', "CREATE DATABASE d");
	$node->safe_psql('d', <<"END");
CREATE EXTENSION gpuds;
CREATE TABLE t (k bigint, v int);
INSERT INTO t SELECT i, i FROM generate_series(1, $rows) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
END
	$gate = gate($node, 'load-base-read', 'd');
	cancelled("DROP DATABASE$force", 'd');
	if ($force)
	{
		($rc, $out, $err) = $node->psql('postgres', "DROP DATABASE d$force");
		is($rc, 0, "DROP DATABASE$force") or diag($err);
		eval { $gate->quit };
	}
	else
	{
		# It waits for 5 s; the loader has begun before, and ends when it may go on
		my $drop = $node->background_psql('postgres');
		$drop->query_until(qr/go/, "\\echo go\nDROP DATABASE d;\n");
		ok($node->poll_query_until('postgres', "
			SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'object' AND classid = 'pg_database'::regclass
				AND mode = 'AccessExclusiveLock' AND granted"),
			'DROP DATABASE waits');
		$offset = -s $node->logfile;
		open_for($gate);
		no_loader('DROP DATABASE');
		$drop->quit;
		like(slurp_file($node->logfile, $offset), qr/canceling load of the in-memory copy of index/,
			'a loader gives way to DROP DATABASE');
		is($node->safe_psql('postgres', "SELECT count(*) FROM pg_database WHERE datname = 'd'"), '0',
			'DROP DATABASE');
	}
}

# Nobody else can see the index, or have a lock on it
is($node->safe_psql('postgres', <<"END"), $right, 'an index of the same transaction');
$free
BEGIN;
CREATE TABLE same (k bigint, v int);
INSERT INTO same SELECT k, v FROM t WHERE k < 1000000;
CREATE INDEX same_k ON same USING gpu_btree (k);
SELECT count(*), sum(v) FROM same WHERE k BETWEEN 100 AND 1999;
COMMIT;
END
$node->safe_psql('postgres', "SELECT gpuds_index_evict('t_k')");
is($node->safe_psql('postgres', "$free BEGIN; LOCK TABLE t IN ACCESS EXCLUSIVE MODE; $query; COMMIT"), $right,
	'a table that the transaction has locked');
is($node->safe_psql('postgres', "$free BEGIN; REINDEX INDEX t_k; $query; ROLLBACK"), $right,
	'a file that the transaction has made');
is($node->safe_psql('postgres', "$free $query"), $right, 'and the one from before');

# The loader cannot even connect, for it waits for a lock that the transaction has on a catalog
$node->safe_psql('postgres', "SELECT gpuds_index_evict('t_k')");
is($node->safe_psql('postgres', "
	$free SET statement_timeout = '60s'; BEGIN; REINDEX INDEX pg_class_oid_index; $query; COMMIT"),
	$right, 'a catalog that the transaction has locked');
no_loader('at the end');

# A server that is stopped
$node->safe_psql('postgres', "SELECT gpuds_index_evict('t_k')");
$gate = gate($node, 'load-base-read');
cancelled('stopped');
ok($node->stop('fast', fail_ok => 1), 'the server stops while a loader is at work');
eval { $gate->quit };

# Without room for another process
$node->append_conf('postgresql.conf',
	"max_logical_replication_workers = 0\nmax_parallel_workers = 0\nmax_worker_processes = "
	  . (on_cuda() ? 1 : 0));
$node->start;
device_ready($node) if on_cuda();
my $loads = of_statistics($node, 't_k', 'loads');
is($node->safe_psql('postgres', "$free $query"), $right, 'without a worker slot the query loads');
is(of_statistics($node, 't_k', 'loads'), $loads + 1, 'itself');
check_index($node, 't_k');
$node->stop;

done_testing();
