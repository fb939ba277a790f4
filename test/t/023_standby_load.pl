# Loads on a standby, where nobody counts what is appended: loaders work there as well,
# and who waits is let go by positions.

use strict;
use warnings;

use GpudsPoints;
use GpudsTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_node('primary', streaming => 1);

plan(skip_all => 'not built with INJECTION_POINTS=1') unless injection_points($primary);
$primary->safe_psql('postgres', <<'END');
CREATE TABLE t (k bigint, v int);
INSERT INTO t SELECT i, i FROM generate_series(1, 300000) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
END
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf',
	"max_standby_streaming_delay = -1\ngpuds.wait_at = 'catch-up-read, load-base-read'\n");
$standby->start;
device_ready($standby) if on_cuda();

my $free = "SET gpuds.wait_at = ''; SET enable_seqscan = off; SET enable_bitmapscan = off;";
my $query = 'SELECT count(*), sum(v) FROM t WHERE k > 299000';
my $up = "
	SELECT state = 'loaded' AND applied_position = journal_position FROM gpuds_indexes
	WHERE indexrelid = 't_k'::regclass";

# A loader outlives the query
my $gate = gate($standby, 'load-base-read');
my $session = $standby->background_psql('postgres', on_error_stop => 0);
my $pid = $session->query_safe('SELECT pg_backend_pid()');
$session->query_until(qr/go/, "$free\n\\echo go\n$query;\n");
ok($standby->poll_query_until('postgres', "
	SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'gpuds loader'
		AND wait_event_type = 'Lock'"),
	'a loader is at it');
$standby->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
$session->query('SELECT 1');
like($session->{stderr}, qr/canceling statement due to user request/,
	'a query does not wait for longer than it may');
$session->quit;
open_points($gate, 'load-base-read');
ok($standby->poll_query_until('postgres', $up), 'the load goes on without it');
is($standby->safe_psql('postgres', "$free $query"), $primary->safe_psql('postgres', scan_sql($query)),
	'right answer');

# Waiters are let go together, though replay goes on meanwhile
$primary->safe_psql('postgres', 'INSERT INTO t SELECT 300000 + i, 1 FROM generate_series(1, 100) i');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
close_points($gate, 'catch-up-read mirror-acquired');
my $applier = $standby->background_psql('postgres');
$applier->query_until(qr/go/, "SET enable_seqscan = off;\n\\echo go\n$query;\n");
held_at($standby, 'catch-up-read', 'an applier is held');
my @waiting = map { $standby->background_psql('postgres') } 1 .. 5;
$_->query_until(qr/go/, "
	SET gpuds.wait_at = 'mirror-acquired'; SET enable_seqscan = off;
	\\echo go
	$query;\n") for @waiting;
ok($standby->poll_query_until('postgres', "
	SELECT count(*) = 5 FROM pg_stat_activity WHERE query LIKE 'SELECT count%k > 299000%'
		AND wait_event_type = 'Extension'"),
	'others wait for it');
$primary->safe_psql('postgres', 'INSERT INTO t SELECT 400000 + i, 1 FROM generate_series(1, 100) i');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
open_points($gate, 'catch-up-read');
ok($standby->poll_query_until('postgres', "
	SELECT count(*) = 0 FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT count%k > 299000%'
		AND pid <> pg_backend_pid() AND wait_event_type = 'Extension'"),
	'all are let go');
is($standby->safe_psql('postgres', "
	SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"),
	'0', 'and none had to become applier to look');
$gate->quit;
$_->quit for ($applier, @waiting);
is($standby->safe_psql('postgres', "$free $query"), $primary->safe_psql('postgres', scan_sql($query)),
	'right answer at the end');
check_index($primary, 't_k');
$standby->stop;
$primary->stop;

done_testing();
