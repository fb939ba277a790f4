# CREATE DATABASE ... TEMPLATE copies indexes as files, by both strategies: the
# copy has mirrors of its own.

use strict;
use warnings;

use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('template', no_extension => 1);

$node->safe_psql('postgres', 'CREATE DATABASE source');
$node->safe_psql('source', <<'END');
CREATE EXTENSION gpuds;
CREATE TABLE t (k bigint, v int);
CREATE INDEX t_k ON t USING gpu_btree (k);
INSERT INTO t SELECT i, 1 FROM generate_series(1, 10000) i;
DELETE FROM t WHERE k % 10 = 0;
CREATE UNLOGGED TABLE u (k int);
CREATE INDEX u_k ON u USING gpu_btree (k);
INSERT INTO u SELECT i FROM generate_series(1, 100) i;
END
my $query = index_sql('SELECT count(*), min(k), max(k), sum(v) FROM t WHERE k > 0');
is($node->safe_psql('source', $query), '9000|1|9999|9000', 'source, and its mirror is loaded');

for my $strategy ('wal_log', 'file_copy')
{
	$node->safe_psql('postgres', "CREATE DATABASE copy_$strategy TEMPLATE source STRATEGY $strategy");
	is($node->safe_psql("copy_$strategy", $query), '9000|1|9999|9000', "$strategy: the copy answers");
	is($node->safe_psql("copy_$strategy", index_sql('SELECT count(*) FROM u WHERE k > 0')), '100',
		"$strategy: so does the unlogged table");
	$node->safe_psql("copy_$strategy",
		'INSERT INTO t SELECT i, 2 FROM generate_series(20001, 20100) i; DELETE FROM t WHERE k <= 50');
	$node->safe_psql('source', 'INSERT INTO t VALUES (30000, 3)');
	is($node->safe_psql("copy_$strategy", $query), '9055|51|20100|9155',
		"$strategy: its changes are its own");
	is($node->safe_psql('source', $query), '9001|1|30000|9003', "$strategy: and the source's the source's");
	$node->safe_psql('source', 'DELETE FROM t WHERE k = 30000');
	check_all_indexes($node, "$strategy: indexes of the copy are whole", "copy_$strategy");
	check_all_indexes($node, "$strategy: those of the source too", 'source');
}

$node->stop('immediate');
$node->start;
for my $strategy ('wal_log', 'file_copy')
{
	is($node->safe_psql("copy_$strategy", $query), '9055|51|20100|9155', "$strategy: after a crash");
	check_all_indexes($node, "$strategy: indexes are whole after a crash", "copy_$strategy");
}

# The same names and numbers again
$node->safe_psql('postgres', 'DROP DATABASE copy_wal_log');
$node->safe_psql('postgres', 'CREATE DATABASE copy_wal_log TEMPLATE source');
is($node->safe_psql('copy_wal_log', $query), '9000|1|9999|9000', 'dropped and made again');
$node->safe_psql('postgres', 'ALTER DATABASE source SET TABLESPACE pg_default');
is($node->safe_psql('source', $query), '9000|1|9999|9000', 'source is as it was');
$node->stop;

done_testing();
