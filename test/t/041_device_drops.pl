# Whatever a load or a drop meets, the GPU's memory comes back, although no index, no load and no
# eviction asks for it.

use strict;
use warnings;

use GpudsPoints;
use GpudsTest;
use Test::More;

need_cuda();
my $node = new_node('drops');
plan(skip_all => 'not built with INJECTION_POINTS=1') unless injection_points($node);

# A base without entries: a load sends its end right after its begin.  What was inserted follows.
sub make_table
{
	$node->safe_psql('postgres', <<'END');
CREATE TABLE t (k bigint);
CREATE INDEX t_k ON t USING gpu_btree (k);
INSERT INTO t SELECT i FROM generate_series(1, 1000) i;
END
	return;
}

# The load is given up when its last request has been posted: by then the engine has a whole tree
for my $way ('pg_cancel_backend', 'pg_terminate_backend')
{
	make_table();
	my $gate = gate($node, 'load-begun');
	my $victim = $node->background_psql('postgres', on_error_stop => 0);
	my $pid = $victim->query_safe('SELECT pg_backend_pid()');

	$victim->query_until(qr/go/,
		"SET gpuds.wait_at = 'load-begun, device-waiting';\n\\echo go\nSELECT gpuds_index_load('t_k');\n");
	held_at($node, 'load-begun', "$way: the load has begun");
	close_points($gate, 'device-waiting');
	open_points($gate, 'load-begun');
	held_at($node, 'device-waiting', "$way: its end is posted");
	$node->safe_psql('postgres', "SELECT $way($pid)");
	nobody_held($node, "$way: lets it go");
	eval { $victim->quit };
	$gate->quit;
	$node->safe_psql('postgres', 'DROP TABLE t');
	is(device_memory($node), '0', "$way: the load's memory is back");
}

# The GPU is not done with a drop when the session has waited for long enough
sub comes_back
{
	my ($name) = @_;
	return ok($node->poll_query_until('postgres', "
		SELECT memory_used = 0 FROM gpuds_devices WHERE kind = 'cuda'"),
		"$name: the memory comes back");
}

make_table();
$node->safe_psql('postgres', "SELECT gpuds_index_load('t_k')");
cmp_ok(device_memory($node), '>', 0, 'a table that is to be dropped: it has a mirror');
$node->safe_psql('postgres', "SET gpuds.device_fault = 'hold_drop'; DROP TABLE t");
comes_back('a table that was dropped');

make_table();
my $gate = gate($node, 'load-begun');
my $victim = $node->background_psql('postgres', on_error_stop => 0);
my $pid = $victim->query_safe('SELECT pg_backend_pid()');
$victim->query_until(qr/go/, "
	SET gpuds.device_fault = 'hold_drop'; SET gpuds.wait_at = 'load-begun';
	\\echo go
	SELECT gpuds_index_load('t_k');\n");
held_at($node, 'load-begun', 'a load that is to be cancelled: it has begun');
cmp_ok(device_memory($node), '>', 0, 'a load that is to be cancelled: it has memory');
$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
comes_back('a load that was cancelled');
open_points($gate, 'load-begun');
# In a session that has been through all this
is($victim->query("SELECT gpuds_index_load('t_k');") =~ s/\s//gr, 't', 'the next load works');
same_answers($node, 'right answers', 'SELECT count(*) FROM t WHERE k BETWEEN 100 AND 199');
check_index($node, 't_k');
$_->quit for $gate, $victim;
forget_mirrors($node, 'at the end');

$node->stop;
done_testing();
