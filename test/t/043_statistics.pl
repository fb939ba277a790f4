# What gpuds_stat_indexes shows is kept by core since 18: it outlives a restart and changes of the file,
# and goes with the index, its transaction or its database, on standbys, too.

use strict;
use warnings;

use GpudsTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan(skip_all => 'servers before 18 do not keep statistics of extensions')
  if PostgreSQL::Test::Cluster->new('version')->pg_version->major < 18;

my $node = new_node('primary', streaming => 1);

# A value of the view; sessions hand over what they have counted at their end, at the latest
sub figure
{
	my ($column, $index, $on, $database) = @_;
	return ($on // $node)->safe_psql($database // 'postgres',
		"SELECT $column FROM gpuds_stat_indexes WHERE indexrelid = '$index'::regclass");
}

# Whether core has counters of an index, by its number
sub has_counters
{
	my ($oid, $on, $database) = @_;
	return ($on // $node)->safe_psql('postgres',
		"SELECT pg_stat_have_stats('gpuds', (SELECT oid FROM pg_database
				WHERE datname = '@{[ $database // 'postgres' ]}'), $oid)") eq 't';
}

# Polls until it is so, and says whether it came
sub comes
{
	my ($sql, $on) = @_;
	return ($on // $node)->poll_query_until('postgres', $sql);
}

sub oid_of
{
	my ($index, $database) = @_;
	return $node->safe_psql($database // 'postgres', "SELECT '$index'::regclass::oid");
}

# Scans an index in a session of its own, and waits for its figures
sub scan
{
	my ($index, $on) = @_;
	my $before = figure('scans', $index, $on);

	($on // $node)->safe_psql('postgres', "SELECT gpuds_contains('$index', '{1,2,3}'::int[])");
	return comes("SELECT scans > $before FROM gpuds_stat_indexes WHERE indexrelid = '$index'::regclass", $on);
}

$node->safe_psql('postgres', <<'END');
CREATE TABLE t (k int, v int);
INSERT INTO t SELECT i, i FROM generate_series(1, 20000) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
CREATE INDEX t_v ON t USING gpu_btree (v);
END
ok(scan('t_k'), 'scans are counted');
is(figure('loads', 't_k'), 1, 'and loads');
is(figure('scans + loads + probes', 't_v'), 0, 'an index that was not scanned has figures of 0');

#
# A session's own figures, and those of others
#

is($node->safe_psql('postgres', <<'END'), "t\nt", 'a session sees what it has counted itself at once');
SET enable_seqscan = off;
SELECT scans AS before FROM gpuds_stat_indexes WHERE indexrelid = 't_k'::regclass \gset
SELECT count(*) = 1 FROM t WHERE k = 7;
SELECT scans = :before + 1 FROM gpuds_stat_indexes WHERE indexrelid = 't_k'::regclass;
END
my $other = $node->background_psql('postgres');
my $before = figure('scans', 't_k');
$other->query_safe("SELECT gpuds_contains('t_k', '{1}'::int[])");
$other->query_safe('SELECT pg_stat_force_next_flush()');
is(figure('scans', 't_k'), $before + 1, 'and those of others when core flushes them');

# What the flusher applies
comes("SELECT operations = 0 FROM gpuds_memtables");
$before = figure('applied_operations', 't_k');
$node->safe_psql('postgres', 'INSERT INTO t SELECT i, i FROM generate_series(30001, 31000) i');
ok(comes("
	SELECT applied_operations >= $before + 1000 FROM gpuds_stat_indexes WHERE indexrelid = 't_k'::regclass"),
	'what the flusher applies is counted');

#
# A restart keeps them, a crash does not
#

$before = $node->safe_psql('postgres', "
	SELECT scans, batches, probes, entries_returned, applied_operations, loads FROM gpuds_stat_indexes
	WHERE indexrelid = 't_k'::regclass");
$other->quit;
$node->restart;
is($node->safe_psql('postgres', "
	SELECT scans, batches, probes, entries_returned, applied_operations, loads FROM gpuds_stat_indexes
	WHERE indexrelid = 't_k'::regclass"),
	$before, 'figures outlive a restart');
ok(scan('t_k'), 'and go on');
is(figure('loads', 't_k'), (split(/\|/, $before))[5] + 1, 'a load after the restart is added');
$node->stop('immediate');
$node->start;
is(figure('scans + loads', 't_k'), 0, 'after a crash they begin anew, as all statistics do');

#
# The index gets another file, or another number
#

scan('t_k');
$before = figure('scans', 't_k');
my $oid = oid_of('t_k');
$node->safe_psql('postgres', 'REINDEX INDEX t_k');
$node->safe_psql('postgres', 'VACUUM FULL t');
$node->safe_psql('postgres', 'BEGIN; TRUNCATE t; ROLLBACK');
is(figure('scans', 't_k'), $before, 'figures stay with an index that gets other files');
$node->safe_psql('postgres', 'REINDEX INDEX CONCURRENTLY t_k');
my $new = oid_of('t_k');
isnt($new, $oid, 'REINDEX CONCURRENTLY makes another index');
is(figure('scans', 't_k'), $before, 'which has the figures of the former');
ok(!has_counters($oid), 'while that one has none any more');
$oid = $new;
scan('t_v');
$before = figure('scans', 't_k') . ' ' . figure('scans', 't_v');
$node->safe_psql('postgres', 'REINDEX TABLE CONCURRENTLY t');
is(figure('scans', 't_k') . ' ' . figure('scans', 't_v'), $before, 'also with several indexes at once');
$node->safe_psql('postgres', 'TRUNCATE t; INSERT INTO t SELECT i, i FROM generate_series(1, 20000) i');
is(figure('scans', 't_k') . ' ' . figure('scans', 't_v'), $before, 'and after TRUNCATE');

# ALTER TABLE makes an index anew that keeps its file
$node->safe_psql('postgres', '
	CREATE TABLE same_bytes (k varchar(10)); INSERT INTO same_bytes SELECT i FROM generate_series(1, 1000) i;
	CREATE INDEX same_k ON same_bytes USING gpu_hash (k)');
my $scan_same = q{SET enable_seqscan = off; SELECT count(*) FROM same_bytes WHERE k = ANY ('{1,2,3}')};
$node->safe_psql('postgres', $scan_same);
$oid = oid_of('same_k');
my $file = $node->safe_psql('postgres', "SELECT pg_relation_filenode('same_k')");
$node->safe_psql('postgres', 'ALTER TABLE same_bytes ALTER k TYPE varchar(20)');
is($node->safe_psql('postgres', "SELECT pg_relation_filenode('same_k')"), $file, 'the file is kept');
if (oid_of('same_k') ne $oid)
{
	ok(!has_counters($oid), 'an index that ALTER TABLE replaces has no figures any more');
}
$node->safe_psql('postgres', $scan_same);
ok(comes("SELECT scans > 0 FROM gpuds_stat_indexes WHERE indexrelid = 'same_k'::regclass"),
	'and the other one is counted');
$node->safe_psql('postgres', "INSERT INTO same_bytes VALUES ('x')");
ok(comes("SELECT applied_operations > 0 FROM gpuds_stat_indexes WHERE indexrelid = 'same_k'::regclass"),
	'by the flusher, too');
ok(!has_counters($oid), 'nobody counts for the former') if oid_of('same_k') ne $oid;

#
# Indexes that go or do not come
#

$oid = oid_of('t_v');
$node->safe_psql('postgres', 'BEGIN; DROP INDEX t_v; ROLLBACK');
ok(has_counters($oid), 'a drop that is rolled back leaves the figures');
$node->safe_psql('postgres', 'BEGIN; SAVEPOINT s; DROP INDEX t_v; ROLLBACK TO s; COMMIT');
ok(has_counters($oid), 'so does one in a subtransaction');
$node->safe_psql('postgres', "BEGIN; SELECT gpuds_contains('t_v', '{1}'::int[]); DROP INDEX t_v; COMMIT");
ok(!has_counters($oid), 'a drop takes them along');

$node->safe_psql('postgres', 'CREATE INDEX t_v ON t USING gpu_btree (v)');
$oid = oid_of('t_v');
scan('t_v');
my $holder = $node->background_psql('postgres');
$holder->query_safe("BEGIN; SELECT gpuds_contains('t_v', '{1}'::int[])");
my $dropper = $node->background_psql('postgres');
$dropper->query_until(qr//, "DROP INDEX CONCURRENTLY t_v;\n\\echo dropped\n");
ok(comes("SELECT NOT indisvalid FROM pg_index WHERE indexrelid = $oid"),
	'DROP INDEX CONCURRENTLY waits for a session');
$holder->query_safe("SELECT gpuds_contains('t_k', '{1}'::int[]); SELECT pg_stat_force_next_flush(); COMMIT");
$dropper->query_until(qr/dropped/, '');
$dropper->quit;
$holder->quit;
ok(!has_counters($oid), 'what that one has counted goes with the index');

# Entries that nobody would ever drop
my $created = 'CREATE INDEX t_x ON t USING gpu_btree (v)';
my $count = "SELECT gpuds_contains('t_x', '{1,2}'::int[])";
my ($x) = $node->safe_psql('postgres', "
	BEGIN; $created; SELECT 'oid ' || 't_x'::regclass::oid; $count; ROLLBACK") =~ /oid (\d+)/;
ok(!has_counters($x), 'an index whose creation is rolled back leaves none');
($x) = $node->safe_psql('postgres', "
	BEGIN; SAVEPOINT s; $created; SELECT 'oid ' || 't_x'::regclass::oid; $count;
	ROLLBACK TO s; COMMIT") =~ /oid (\d+)/;
ok(!has_counters($x), 'nor in a subtransaction');
($x) = $node->safe_psql('postgres', "
	BEGIN; $created; SELECT 'oid ' || 't_x'::regclass::oid; $count; PREPARE TRANSACTION 'p'") =~ /oid (\d+)/;
ok(has_counters($x), 'a prepared transaction keeps them');
$node->safe_psql('postgres', "ROLLBACK PREPARED 'p'");
ok(!has_counters($x), 'until it is rolled back');
$node->safe_psql('postgres', "$created; $count");
$x = oid_of('t_x');
$node->safe_psql('postgres', "BEGIN; DROP INDEX t_x; PREPARE TRANSACTION 'p'");
ok(has_counters($x), 'and those of an index that it drops');
$node->safe_psql('postgres', "COMMIT PREPARED 'p'");
ok(!has_counters($x), 'until it is committed');
my $temporary = $node->background_psql('postgres');
$x = $temporary->query_safe("
	CREATE TEMPORARY TABLE tt AS SELECT * FROM t; CREATE INDEX tt_k ON tt USING gpu_btree (k);
	SELECT gpuds_contains('tt_k', '{1}'::int[]) IS NULL; SELECT 'tt_k'::regclass::oid");
$x =~ s/.*\n//s;
ok(has_counters($x), 'a temporary index has figures');
$temporary->quit;
ok(comes("
	SELECT NOT pg_stat_have_stats('gpuds', (SELECT oid FROM pg_database WHERE datname = 'postgres'), $x)"),
	'until the session ends');

$node->safe_psql('postgres', 'CREATE DATABASE d');
$node->safe_psql('d', "
	CREATE EXTENSION gpuds; CREATE TABLE t AS SELECT generate_series(1, 100) k;
	CREATE INDEX t_k ON t USING gpu_btree (k); SELECT gpuds_contains('t_k', '{1}'::int[])");
my $database = $node->safe_psql('postgres', "SELECT oid FROM pg_database WHERE datname = 'd'");
$x = oid_of('t_k', 'd');
ok(has_counters($x, $node, 'd'), 'another database has figures of its own');
$node->safe_psql('postgres', 'DROP DATABASE d');
is($node->safe_psql('postgres', "SELECT pg_stat_have_stats('gpuds', $database, $x)"), 'f',
	'and they go with it');

#
# Resets
#

$node->safe_psql('postgres', 'CREATE INDEX t_v ON t USING gpu_btree (v)');
scan($_) for qw(t_k t_v);
$node->safe_psql('postgres', "SELECT gpuds_index_stats_reset('t_k')");
is(figure('scans + loads + probes', 't_k'), 0, 'gpuds_index_stats_reset sets figures to 0');
cmp_ok(figure('scans', 't_v'), '>', 0, 'of that index');
scan('t_k');
$node->safe_psql('postgres', 'SELECT pg_stat_reset()');
is(figure('scans + loads + probes', $_), 0, "pg_stat_reset sets those of $_ to 0") for qw(t_k t_v);

#
# A standby
#

$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
$node->wait_for_catchup($standby);
scan($_, $standby) for qw(t_k t_v);
cmp_ok(figure('scans', 't_v', $standby), '>', 0, 'a standby counts its own scans');
is(figure('scans', 't_v'), 0, 'of which the primary knows nothing');
$oid = oid_of('t_v');
$node->safe_psql('postgres', 'DROP INDEX t_v');
$node->wait_for_catchup($standby);
ok(comes("
	SELECT NOT pg_stat_have_stats('gpuds', (SELECT oid FROM pg_database WHERE datname = 'postgres'), $oid)",
	$standby), 'a drop takes figures along there');
$before = figure('scans', 't_k', $standby);
$standby->restart;
is(figure('scans', 't_k', $standby), $before, 'a restart keeps them there');
$standby->promote;
is(figure('scans', 't_k', $standby), $before, 'so does promotion');
check_all_indexes($_, $_->name . ' has good indexes') for $standby, $node;
$standby->stop;

$node->stop;
unlike(slurp_file($node->logfile), qr/trying to drop stats entry|resetting existing statistics/,
	'core has found no entry where there should be none');

# What docs/OPERATIONS.md warns of: core discards a file that has figures of a library that is gone
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\n");
$node->start;
like(slurp_file($node->logfile), qr/could not find information of kind/,
	'a server without the library does not know what to do with them');
is($node->safe_psql('postgres', "SELECT n_tup_ins FROM pg_stat_user_tables WHERE relname = 't'"), 0,
	'and discards all statistics');
$node->stop;
done_testing();
