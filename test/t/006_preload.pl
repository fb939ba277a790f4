# Without the library in shared_preload_libraries everything that needs it says so; and in a database
# without the extension an index says what makes its access method.

use strict;
use warnings;

use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('preload');

$node->safe_psql('postgres', <<'END');
CREATE TABLE t (k bigint);
INSERT INTO t SELECT i FROM generate_series(1, 1000) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
DELETE FROM t WHERE k <= 100;
END
$node->stop;
$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "''");
$node->adjust_conf('postgresql.conf', 'gpuds.host_memory', undef);
$node->start;

my $message = qr{
	ERROR:\ \ gpuds\ must\ be\ loaded\ via\ shared_preload_libraries\n
	(?:.*\n)*?
	HINT:\ \ .*shared_preload_libraries.*
}x;

for my $case (
	[ 'CREATE INDEX', 'CREATE INDEX t_k2 ON t USING gpu_btree (k)' ],
	[ 'index scan', 'SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT * FROM t WHERE k = 500' ],
	[ 'bitmap scan', 'SET enable_seqscan = off; SET enable_indexscan = off; SELECT * FROM t WHERE k = 500' ],
	[ 'INSERT', 'INSERT INTO t VALUES (5000)' ],
	[ 'UPDATE', 'UPDATE t SET k = 5000 WHERE k = 500' ],
	[ 'VACUUM', 'VACUUM (INDEX_CLEANUP ON) t' ],
	[ 'gpuds_index_check', "SELECT gpuds_index_check('t_k')" ],
	[ 'gpuds_index_load', "SELECT gpuds_index_load('t_k')" ],
	[ 'gpuds_index_evict', "SELECT gpuds_index_evict('t_k')" ],
	[ 'gpuds_contains', "SELECT gpuds_contains('t_k', '{500}'::int[])" ],
	[ 'gpuds_lookup', "SELECT gpuds_lookup('t_k', '{500}'::int[])" ],
	[ 'gpuds_count', "SELECT gpuds_count('t_k', 1, 500)" ])
{
	my ($name, $sql) = @$case;
	my ($rc, $out, $err) = $node->psql('postgres', $sql);

	isnt($rc, 0, "$name fails");
	like($err, $message, "$name says why and what to do");
}

is($node->safe_psql('postgres', scan_sql('SELECT count(*) FROM t')), '900', 'the table can be read');
is($node->safe_psql('postgres', "SELECT entries > 0, host_bytes > 0 FROM gpuds_index_estimate('t', '{k}')"),
	't|t', 'sizes can be estimated, by which the settings are made');
is($node->safe_psql('postgres', "LOAD 'gpuds'; SHOW gpuds.device"), on_cuda() ? 'cuda' : 'auto',
	'SHOW works');
is($node->safe_psql('postgres', 'DROP INDEX t_k; INSERT INTO t VALUES (1); SELECT count(*) FROM t'), '901',
	'the index can be dropped');

$node->safe_psql('postgres', 'DROP EXTENSION gpuds');
my ($rc, $out, $err) = $node->psql('postgres', 'CREATE EXTENSION gpuds');
is($rc, 0, 'the extension can be made');
like($err, qr/WARNING:  gpuds is not in shared_preload_libraries\nDETAIL:  .*\nHINT:  .*restart/,
	'with a warning');

$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "'gpuds'");
$node->restart;
$node->safe_psql('postgres', 'DROP EXTENSION gpuds');
($rc, $out, $err) = $node->psql('postgres', 'CREATE INDEX t_k ON t USING gpu_btree (k)');
like($err, qr/ERROR:  access method "gpu_btree" does not exist\nHINT:  CREATE EXTENSION gpuds makes it/,
	'without the extension, how to get it is said');
($rc, $out, $err) = $node->psql('postgres', 'CREATE EXTENSION gpuds');
is($err, '', 'no warning with the library preloaded');
$node->safe_psql('postgres', 'CREATE INDEX t_k ON t USING gpu_btree (k)');
same_answers($node, 'preloaded again, all is well', 'SELECT count(*), sum(k) FROM t WHERE k < 500');
$node->stop;

done_testing();
