# Functions over graphs have the GPU do the work where it has the index, and say so at DEBUG1.  What that
# took of its memory comes back, but for a graph that is kept (054_kept_graph.pl).

use strict;
use warnings;

use GpudsPoints;
use GpudsTest;
use Test::More;

need_cuda();
my $node = new_node('graph');
device_ready($node);
$node->safe_psql('postgres', <<'END');
CREATE TABLE e (src int, dst int);
INSERT INTO e SELECT i % 1009, i * 7919 % 1013 FROM generate_series(1, 20000) i;
CREATE INDEX e_out ON e USING gpu_btree (src, dst);
VACUUM e;
SET gpuds.device = cuda;
SELECT gpuds_index_load('e_out');
END

for my $call (
	"gpuds_triangles('e_out')", "gpuds_components('e_out')", "gpuds_degrees('e_out')",
	"(SELECT vertex, round(rank::numeric, 9) FROM gpuds_pagerank('e_out'))",
	"gpuds_bfs('e_out', '{1}'::int[])", "gpuds_bfs_counts('e_out', '{1}'::int[])",
	"(SELECT pair, max(step) FROM gpuds_shortest_paths('e_out', '{1,2,3}'::int[], '{-1,604,605}'::int[]) "
	  . 'GROUP BY 1)',
	"(SELECT pair, max(step) FROM gpuds_shortest_paths('e_out', array_fill(1, '{99}'), "
	  . 'array(SELECT generate_series(601, 699))) GROUP BY 1)')
{
	my $query = "
		SELECT md5(string_agg(f::text, ' ' ORDER BY f::text))
		FROM (SELECT to_jsonb(g) - 'parent' AS f FROM (SELECT * FROM $call c) g) q";
	my ($rc, $out, $err) = $node->psql('postgres', "
		SET gpuds.device = cuda; SET client_min_messages = debug1; $query");
	like($err, qr/graph of index "e_out" on a device: \d+ vertices, \w+, used/, "$call: on the GPU");
	is($out, $node->safe_psql('postgres', "SET gpuds.device = cpu; $query"), "$call: the CPU's answer");
}

# The GPU is not done with a drop when the session has waited for long enough
SKIP:
{
	skip('not built with INJECTION_POINTS=1', 2) unless injection_points($node);
	my $used = device_memory($node);
	cmp_ok($used, '>', 0, 'the index has a mirror');
	$node->safe_psql('postgres', "
		SET gpuds.device = cuda; SET gpuds.device_fault = 'hold_drop'; SELECT gpuds_triangles('e_out')");
	ok($node->poll_query_until('postgres', "
		SELECT memory_used <= $used FROM gpuds_devices WHERE kind = 'cuda'"),
		'a graph that was not dropped in time: its memory comes back');
}
$node->stop;

done_testing();
