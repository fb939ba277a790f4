# A graph that the GPU has made of an index is kept for the next call, and used by calls that would make the
# same: no other snapshot gets it, whatever has changed, and it makes room for what needs memory.

use strict;
use warnings;

use GpudsPoints;
use GpudsTest;
use Test::More;

need_cuda();
my $node = new_node('kept', "autovacuum = off\n");
device_ready($node);

# The edges of two tables differ in one
my $make = 'CREATE TABLE e (src int, dst int, note int);
	INSERT INTO e SELECT i % 1009, i * 7919 % 1013 FROM generate_series(1, 20000) i;
	CREATE INDEX e_out ON e USING %s (src, dst); CREATE INDEX e_in ON e USING %1$s (dst, src);
	VACUUM (FREEZE, ANALYZE) e';
my @calls = (
	"gpuds_triangles('e_out')", "gpuds_components('e_out')",
	"gpuds_bfs('e_out', '{1}'::int[])",
	"gpuds_bfs('e_out', '{1}'::int[], reverse_index => 'e_in', directed => false)");
my $answer = "SELECT md5(string_agg(f::text, ' ' ORDER BY f::text)) FROM (
	SELECT to_jsonb(g) - 'parent' AS f FROM (SELECT * FROM %s) g) q";

# of_all(): SQL for the answers to all calls in one row
sub of_all { return 'SELECT ' . join(', ', map { '(' . sprintf($answer, $_) . ')' } @calls) }

# compare(session, what, how): a session, in a transaction of its own or without, gets the CPU's answers; how:
# whether graphs must have been "kept" or "made"; empty: either.
sub compare
{
	my ($session, $what, $how) = @_;
	my $cpu = $session->query_safe('SET gpuds.device = cpu; ' . of_all());

	for (my $attempt = 0;; $attempt++)
	{
		my $gpu = $session->query('SET gpuds.device = cuda; SET client_min_messages = debug1; ' . of_all() .
			'; RESET client_min_messages');
		my $said = $session->{stderr};
		$session->{stderr} = '';
		my @found = $said =~ /graph of index "e_out" on a device: \d+ vertices, (\w+), used/g;

		if ($gpu ne $cpu)
		{
			is($gpu, $cpu, $what);
			return;
		}
		# What was made has to be kept, once the memtable is empty.
		if ($how eq 'kept' && "@found" ne 'kept kept kept kept' && $attempt < 300)
		{
			select(undef, undef, undef, 0.1);
			next;
		}
		is("@found", join(' ', ($how) x 4), $what) if $how;
		pass($what) unless $how;
		return;
	}
}

my $now = $node->background_psql('postgres', on_error_stop => 0);
my $old = $node->background_psql('postgres', on_error_stop => 0);

for my $method ('gpu_btree', 'gpu_skiplist')
{
	$node->safe_psql('postgres', sprintf($make, $method));
	compare($now, "$method: the next call gets what is kept", 'kept');

	# The version of the structure stays, and rows are not seen any more.
	$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
	$node->safe_psql('postgres', 'DELETE FROM e WHERE src = 3');
	compare($now, "$method: rows that are deleted", 'made');
	compare($old, "$method: a snapshot that sees them", '');
	$old->query_safe('COMMIT');

	# The version changes; only a newer snapshot sees what is new.
	$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
	$node->safe_psql('postgres', 'INSERT INTO e VALUES (1, 5), (5000, 1), (NULL, 1), (1, NULL)');
	$node->safe_psql('postgres', 'VACUUM e');
	compare($now, "$method: new rows", '');
	compare($old, "$method: a snapshot that does not see them", 'made');
	$old->query_safe('COMMIT');
	$node->safe_psql('postgres', 'VACUUM (FREEZE) e');
	compare($now, "$method: new rows are kept", 'kept');
	compare($old, "$method: for all sessions", 'kept');

	# Own changes, and their end
	$old->query_safe('BEGIN; DELETE FROM e WHERE src = 7');
	compare($old, "$method: own deletes", 'made');
	compare($now, "$method: not seen by others", '');
	$old->query_safe('ROLLBACK; BEGIN; INSERT INTO e VALUES (7, 8)');
	compare($old, "$method: own inserts", 'made');
	compare($now, "$method: not seen by others", '');
	$old->query_safe('ROLLBACK');
	$node->safe_psql('postgres', 'VACUUM (FREEZE) e');
	compare($now, "$method: after a rollback", 'kept');

	# Another file, and another structure
	$node->safe_psql('postgres', 'REINDEX INDEX e_out');
	compare($now, "$method: REINDEX", 'kept');
	$node->safe_psql('postgres',
		'TRUNCATE e; INSERT INTO e SELECT i, i + 1 FROM generate_series(1, 20000) i; VACUUM (FREEZE) e');
	compare($now, "$method: TRUNCATE", '');
	$node->safe_psql('postgres', 'DROP TABLE e; ' . sprintf($make, $method) .
		'; UPDATE e SET dst = dst + 1 WHERE src = 3; VACUUM (FREEZE) e');
	compare($now, "$method: a new table", 'kept');

	# Memory that a load needs
	SKIP:
	{
		skip('not built with INJECTION_POINTS=1', 2) unless injection_points($node);
		my (undef, $loaded, $err) = $node->psql('postgres', "
			CREATE TABLE o AS SELECT i AS k FROM generate_series(1, 50000) i;
			CREATE INDEX ON o USING $method (k);
			SET gpuds.device = cuda; SET gpuds.device_fault = 'no_memory';
			SELECT gpuds_index_load('o_k_idx')");
		is("$loaded$err", 't', "$method: a load finds memory");
		$node->safe_psql('postgres', 'DROP TABLE o');
		compare($now, "$method: what it took is made and kept again", 'kept');
	}
	$node->safe_psql('postgres', 'DROP TABLE e');
}

# A walk over few of the edges takes what was kept, in the middle of a depth, and makes nothing.
$node->safe_psql('postgres', 'CREATE TABLE w (src int, dst int);
	INSERT INTO w SELECT i % 20000, i::bigint * 7919 % 20011 FROM generate_series(1, 500000) i;
	CREATE INDEX w_out ON w USING gpu_btree (src, dst); VACUUM (FREEZE, ANALYZE) w');
my $walk = "SELECT count(*), sum(vertex), sum(depth)
	FROM gpuds_bfs('w_out', ARRAY(SELECT generate_series(1, 100)), 2)";
my $few = $now->query_safe("SET gpuds.device = cpu; $walk; SET gpuds.device = cuda");
$now->query_safe('SET client_min_messages = debug1');
is($now->query($walk), $few, 'a walk over few edges');
unlike($now->{stderr}, qr/on a device/, 'it makes no graph');
for (1 .. 300)
{
	# What this makes is kept, once the memtable is empty.
	$now->query("SELECT gpuds_triangles('w_out')");
	$now->{stderr} = '';
	is($now->query($walk), $few, 'the same') or last;
	last if $now->{stderr} =~ /on a device/;
	select(undef, undef, undef, 0.1);
}
like($now->{stderr}, qr/w_out" on a device: \d+ vertices, kept, used/, 'it takes the one that was kept');
$_->quit for $now, $old;
$node->stop;

done_testing();
