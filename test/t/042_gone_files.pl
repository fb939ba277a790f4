# Mirrors of files that are gone give their memory back, although nobody asks for it.

use strict;
use warnings;

use GpudsPoints;
use GpudsTest;
use Test::More;

my $node = new_node('gone');
my $kind = on_cuda() ? 'cuda' : 'cpu';
my $used = "SELECT memory_used FROM gpuds_devices WHERE kind = '$kind'";

# make_table(name): with a mirror
sub make_table
{
	my ($name) = @_;
	$node->safe_psql('postgres', "
		CREATE TABLE $name (k bigint); CREATE INDEX ${name}_k ON $name USING gpu_btree (k);
		INSERT INTO $name SELECT i FROM generate_series(1, 1000) i; SELECT gpuds_index_load('${name}_k')");
	return;
}

# Of a transaction that is rolled back; and of an index that is not scanned any more
$node->safe_psql('postgres', <<'END');
BEGIN;
CREATE TABLE t (k bigint);
INSERT INTO t SELECT i FROM generate_series(1, 1000) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
SELECT gpuds_index_load('t_k');
ROLLBACK;
END
make_table('s');
$node->safe_psql('postgres', 'REINDEX INDEX s_k');

SKIP:
{
	skip 'not built with INJECTION_POINTS=1', 1 unless injection_points($node);

	# Of an index that is dropped while the flusher is at its mirror, for longer than it is waited for
	my $gate = gate($node, 'flush-apply');

	make_table('d');
	$node->safe_psql('postgres', "ALTER SYSTEM SET gpuds.wait_at = 'flush-apply'");
	$node->reload;
	$node->safe_psql('postgres', 'INSERT INTO d VALUES (0)');
	held_at($node, 'flush-apply', 'the flusher is held');
	$node->safe_psql('postgres', 'DROP TABLE d');
	cmp_ok($node->safe_psql('postgres', $used), '>', 0, 'memory is in use');
	$node->safe_psql('postgres', 'ALTER SYSTEM RESET gpuds.wait_at');
	$node->reload;
	$gate->quit;
}

# One whose file is there stays
make_table('u');
ok($node->poll_query_until('postgres', "
	SELECT memory_used <= (SELECT sum(bytes) FROM gpuds_indexes) FROM gpuds_devices WHERE kind = '$kind'"),
	'the memory of files that are gone comes back');
is($node->safe_psql('postgres', "
	SELECT string_agg(indexrelid::regclass::text, ' ') FROM gpuds_indexes WHERE bytes > 0"),
	'u_k', 'what is not gone stays');
$node->safe_psql('postgres', "SELECT gpuds_index_evict('u_k')");
is($node->safe_psql('postgres', $used), '0', 'and nothing else was left');
$node->stop;

done_testing();
