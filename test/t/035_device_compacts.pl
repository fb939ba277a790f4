# What deletes leave thin on the GPU is built anew there: its memory goes back, without a
# load.

use strict;
use warnings;

use GpudsPoints;
use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;

need_cuda();
my $node = new_node('compacts');
plan(skip_all => 'not built with INJECTION_POINTS=1') unless injection_points($node);

my @queries = (
	'SELECT count(*), sum(v) FROM t WHERE k BETWEEN 1000 AND 1999',
	'SELECT count(*), sum(v) FROM t WHERE k > 100000',
	'SELECT k FROM t WHERE k < 300000 ORDER BY k DESC LIMIT 10');

$node->safe_psql('postgres', <<'END');
CREATE TABLE t (k bigint, v int);
INSERT INTO t SELECT i::bigint * 7919 % 400000, i FROM generate_series(1, 400000) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
SELECT gpuds_index_load('t_k');
END

my $bytes = of_mirror($node, 't_k', 'bytes');
is(of_mirror($node, 't_k', 'device'), 'cuda', 'it is on the GPU');

# The mirror catches up before VACUUM's cleanup, which would make it load again
my $gate = gate($node, 'bulk-delete-done');
$node->safe_psql('postgres', 'DELETE FROM t WHERE v % 8 <> 0');
my $vacuum = $node->background_psql('postgres', on_error_stop => 0);
$vacuum->query_until(qr/begun/, "SET gpuds.wait_at = 'bulk-delete-done';\n\\echo begun\nVACUUM t;\n");
held_at($node, 'bulk-delete-done', 'VACUUM gets to its cleanup');
$node->safe_psql('postgres', "SELECT gpuds_index_load('t_k')");
is(of_mirror($node, 't_k', 'entries'), '50000', 'the deletes are applied');
is(of_statistics($node, 't_k', 'loads'), '1', 'without another load');
# A skip list keeps what it has reserved for the last batch, if that is less than three times what it needs.
my $method = $node->safe_psql('postgres', "
	SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE relname = 't_k'");
my $most = $method eq 'gpu_skiplist' ? $bytes - 1 : $bytes / 2;
cmp_ok(of_mirror($node, 't_k', 'bytes'), '<=', $most, 'and the memory is given back');
cmp_ok(device_memory($node), '<=', $most, 'by the device, too');
check_index($node, 't_k');
same_answers($node, 'what is left', @queries);

$gate->quit;
$vacuum->quit;
$node->safe_psql('postgres',
	"INSERT INTO t SELECT i::bigint * 7919 % 400000, i FROM generate_series(400001, 800000) i");
same_answers($node, 'grown again', @queries);
check_index($node, 't_k');
forget_mirrors($node, 'at the end');
$node->stop;
done_testing();
