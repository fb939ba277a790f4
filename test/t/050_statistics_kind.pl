# Another library has taken the number of our statistics' kind: gpuds counts as it does before 18.

use strict;
use warnings;

use File::Basename qw(dirname);
use GpudsTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan(skip_all => 'servers before 18 do not keep statistics of extensions')
  if PostgreSQL::Test::Cluster->new('version')->pg_version->major < 18;

my $node = new_node('kind');
my $source = dirname(__FILE__) . '/../modules/other_kind.c';
my $library = PostgreSQL::Test::Utils::tempdir() . '/other_kind.so';
# The server that is tested is a copy without headers, so test/run names the one that has them
my ($headers) = run_command([ $ENV{pg_config} // 'pg_config', '--includedir-server' ]);

is(system('cc', '-shared', '-fPIC', '-D_GNU_SOURCE', "-I$headers", '-o', $library, $source), 0,
	'the other library is built');

sub value { return $node->safe_psql('postgres', $_[0]); }

# What is counted of an index after a query, and after it is set to 0
sub counts
{
	my ($name) = @_;
	my $figures = "SELECT scans, entries_returned FROM gpuds_stat_indexes WHERE indexrelname = 't_k'";

	value("SELECT gpuds_index_stats_reset('t_k')");
	is(value($figures), '0|0', "$name: nothing is counted yet");
	value(index_sql('SELECT count(v) FROM t WHERE k <= 3'));
	is(value($figures), '1|3', "$name: a scan is counted");
	like(value(index_sql('EXPLAIN (ANALYZE, GPUDS, COSTS OFF) SELECT count(v) FROM t WHERE k <= 3')),
		qr/Index Scan/, "$name: EXPLAIN shows a scan");
	value("SELECT gpuds_index_stats_reset('t_k')");
	is(value($figures), '0|0', "$name: and set to 0");
	value(index_sql('SELECT count(v) FROM t WHERE k <= 3'));
	return;
}

value('
	CREATE TABLE t (k bigint, v int); INSERT INTO t SELECT i, i FROM generate_series(1, 100) i;
	CREATE INDEX t_k ON t USING gpu_btree (k)');
counts('core keeps them');
unlike(new_log($node), qr/another library has taken number/, 'the log says nothing');

$node->append_conf('postgresql.conf', "shared_preload_libraries = '$library, gpuds'\n");
$node->restart;
device_ready($node) if on_cuda();
in_log($node, qr/gpuds counts in shared memory .* because another library has taken number 30/,
	'the log says why');
value(index_sql('SELECT count(*) FROM t WHERE k > 0'));
counts('mirrors have them');
value('
	CREATE TABLE u (k bigint); CREATE INDEX u_k ON u USING gpu_btree (k); REINDEX INDEX CONCURRENTLY u_k;
	DROP TABLE u; REINDEX INDEX CONCURRENTLY t_k');
counts('after REINDEX CONCURRENTLY');
value('VACUUM t');
check_index($node, 't_k', 'the index is whole');
is(value("SELECT pg_stat_have_stats('other_kind', 1, 1)"), 'f', 'the other library has its kind');

# The other way round, the other one is refused
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'gpuds, $library'\n");
$node->stop;
is($node->start(fail_ok => 1), 0, 'who comes behind gpuds may not take its number');
like(new_log($node),
	qr/custom cumulative statistics.*"other_kind"|failed to register custom cumulative statistics/s,
	'core says so');
done_testing();
