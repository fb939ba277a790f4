# A database that is dropped and made again with the same OID from the same template
# has files with the same names and identities as before, but it has mirrors of its
# own: on the primary and on a standby, however its files are copied.  So has one
# whose files were moved.

use strict;
use warnings;

use GpudsTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $oid = 54321;
my $primary = new_node('primary', streaming => 1, no_extension => 1,
	conf => "allow_in_place_tablespaces = on\n");

$primary->safe_psql('postgres', 'CREATE DATABASE source');
$primary->safe_psql('source', <<'END');
CREATE EXTENSION gpuds;
CREATE TABLE t (k bigint, v int);
CREATE INDEX t_k ON t USING gpu_btree (k);
INSERT INTO t SELECT i, 0 FROM generate_series(1, 10) i;
END
device_ready($primary, 'source') if on_cuda();
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;
device_ready($standby, 'source') if on_cuda();

# What both sides say of the keys from $first to $last; and the mirrors are loaded then
sub answers
{
	my ($name, $first, $last) = @_;
	my $query = "SELECT count(*), min(k), max(k) FROM t WHERE k BETWEEN $first AND $last";
	my $right = ($last - $first + 1) . "|$first|$last";

	is($primary->safe_psql('w', index_sql($query)), $right, "$name: the primary's answer");
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	is($standby->safe_psql('w', index_sql($query)), $right, "$name: the standby's answer");
	for my $node ($primary, $standby)
	{
		is($node->safe_psql('w', "
			SELECT count(*) FROM gpuds_indexes WHERE indexrelid = 't_k'::regclass
				AND state IN ('loaded', 'applying')"),
			'1', "$name: by a mirror of the " . $node->name);
	}
	return;
}

sub make
{
	my ($strategy) = @_;

	$primary->safe_psql('postgres', "CREATE DATABASE w OID = $oid TEMPLATE source STRATEGY $strategy");
	return;
}

for my $strategy ('wal_log', 'file_copy')
{
	# As many rows in the same places, fewer, more: positions in the journal that fit and such that do not
	make($strategy);
	answers("$strategy: as it was copied", 1, 10);
	for my $case ([ 'first life', 1000, 1999 ], [ 'other rows', 5000, 5999 ], [ 'fewer rows', 7000, 7099 ],
		[ 'more rows', 9000, 13999 ])
	{
		my ($name, $first, $last) = @$case;

		$primary->safe_psql('w', "INSERT INTO t SELECT i, 1 FROM generate_series($first, $last) i");
		answers("$strategy, $name", $first, $last);
		is($primary->safe_psql('w', index_sql('SELECT count(*) FROM t WHERE k > 0')), $last - $first + 1 + 10,
			"$strategy, $name: no row of another life");
		check_all_indexes($primary, "$strategy, $name: indexes are whole", 'w');
		$primary->safe_psql('postgres', 'DROP DATABASE w');
		make($strategy);
	}
	answers("$strategy: as it was copied, in the end", 1, 10);
	$primary->safe_psql('postgres', 'DROP DATABASE w');
}

# What goes with the database is known to be gone where it was dropped
make('wal_log');
answers('a last one', 1, 10);
my $used = q{SELECT count(*) > 0 FROM gpuds_devices WHERE memory_used > 0};
is($primary->safe_psql('source', $used), 't', 'its mirror has memory');
$primary->safe_psql('postgres', 'DROP DATABASE w');
is($primary->safe_psql('source', $used), 'f', 'which comes back when it is dropped');

# Files that are moved, and moved back
make('wal_log');
$primary->safe_psql('postgres', "CREATE TABLESPACE elsewhere LOCATION ''");
answers('before it moves', 1, 10);
for my $where ('elsewhere', 'pg_default', 'elsewhere')
{
	my $first = 1000 * (1 + $primary->safe_psql('w', 'SELECT count(*) FROM t'));

	$primary->safe_psql('postgres', "ALTER DATABASE w SET TABLESPACE $where");
	answers("moved to $where", 1, 10);
	$primary->safe_psql('w', "INSERT INTO t SELECT i, 2 FROM generate_series($first, $first + 99) i");
	answers("changed in $where", $first, $first + 99);
}
check_all_indexes($primary, 'indexes are whole at the end', 'w');

# A session keeps its mirrors when the database's row changes, or loads them again
my $session = $primary->background_psql('w');
my $count = 'SELECT count(*) FROM t WHERE k > 0;';
$session->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off;');
is($session->query_safe($count), '310', 'before the row of the database changes');
$primary->safe_psql('postgres', 'ALTER DATABASE w CONNECTION LIMIT 50');
is($primary->safe_psql('w', index_sql('SELECT count(*) FROM t WHERE k > 0')), '310',
	'another session after that');
is($session->query_safe($count), '310', 'the same session after that');
my $loads = $primary->safe_psql('w', 'SELECT sum(loads) FROM gpuds_stat_indexes');
is($session->query_safe($count), '310', 'once more');
is($primary->safe_psql('w', index_sql('SELECT count(*) FROM t WHERE k > 0')), '310', 'and another session');
is($primary->safe_psql('w', 'SELECT sum(loads) FROM gpuds_stat_indexes'), $loads,
	'sessions do not take the mirror from each other');
$session->quit;

$standby->stop;
$primary->stop;

done_testing();
