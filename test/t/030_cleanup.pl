# VACUUM's cleanup: in parallel workers, after a crash or a cancel in the middle of a
# compaction, and when blocks or the free space map are lost.

use strict;
use warnings;

use GpudsPoints;
use GpudsTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

random_seed();
my $node = new_node('cleanup', streaming => 1, conf => "
	max_parallel_maintenance_workers = 2
	min_parallel_index_scan_size = 0\n");
my $block_size = $node->safe_psql('postgres', 'SHOW block_size');

sub value { return $node->safe_psql('postgres', $_[0]); }

# Blocks that are neither in a chain nor free, as gpuds_index_check counts them
sub orphans
{
	my ($index) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', "
		SET client_min_messages = debug1; SELECT gpuds_index_check('$index', true)");

	die $err if $rc != 0;
	return $err =~ /has (\d+) blocks that are neither free nor in a chain/ ? $1 : 0;
}

# Parallel workers: bulk delete and compaction, of three indexes
$node->safe_psql('postgres', <<'END');
CREATE TABLE p (id int, k bigint, v int);
CREATE INDEX p_k ON p USING gpu_btree (k);
CREATE INDEX p_v ON p USING gpu_btree (v, k);
CREATE INDEX p_id ON p USING gpu_btree (id) WHERE v > 10;
INSERT INTO p SELECT i, i * 7919 % 100003, i % 100 FROM generate_series(1, 60000) i;
SET enable_seqscan = off;
SELECT count(*) FROM p WHERE k > 0;
END
my ($rc, $out, $err) = $node->psql('postgres', 'VACUUM (PARALLEL 2, VERBOSE) p');
like($err, qr/index cleanup \(planned: 2\)/, 'cleanup without bulk delete is for workers');
check_index($node, $_, "$_ after a compaction by a worker") for qw(p_k p_v p_id);
$node->safe_psql('postgres', 'DELETE FROM p WHERE id % 3 <> 0');
($rc, $out, $err) = $node->psql('postgres', "
	SET maintenance_work_mem = '1MB'; VACUUM (PARALLEL 2, VERBOSE, INDEX_CLEANUP ON) p");
like($err, qr/index vacuuming \(planned: 2\)/, 'so is bulk delete');
like($err, qr/index cleanup \(planned: 2\)/, 'and cleanup behind it, which compacts');
for my $index (qw(p_k p_v p_id))
{
	check_index($node, $index, "$index after bulk delete and compaction by a worker");
	is(orphans($index), 0, "$index has no orphans");
}
$node->safe_psql('postgres', 'INSERT INTO p SELECT i, -i, 50 FROM generate_series(1, 40000) i');
same_answers($node, 'answers after TIDs were reused', 'SELECT count(*), sum(k) FROM p WHERE k > 50',
	'SELECT count(*), sum(k) FROM p WHERE v = 50 AND k < 0');

# A compaction that comes to nothing leaves pages, and the next VACUUM frees them, with or
# without anything to delete
SKIP:
{
	skip 'built without INJECTION_POINTS', 7 unless injection_points($node);

	for my $way ('cancel', 'crash')
	{
		$node->safe_psql('postgres', "INSERT INTO p SELECT i, -i, 50 FROM generate_series(1, 60000) i");
		my $gate = gate($node, 'compact-written');
		my $vacuum = $node->background_psql('postgres', on_error_stop => 0);
		$vacuum->query_until(qr/begun/,
			"SET gpuds.wait_at = 'compact-written';\n\\echo begun\nVACUUM (PARALLEL 0) p;\n");
		held_at($node, 'compact-written', "$way: VACUUM gets to its compaction");
		if ($way eq 'cancel')
		{
			value("SELECT pg_cancel_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted");
			$vacuum->quit;
			$gate->quit;
		}
		else
		{
			value('SELECT txid_current()');
			$node->stop('immediate');
			eval { $vacuum->quit; };
			eval { $gate->quit; };
			$node->start;
		}
		my ($some) = grep { orphans($_) > 0 } qw(p_k p_v p_id);
		ok($some, "$way: there are orphans") or next;
		my $size = value("SELECT pg_relation_size('$some')");
		value('VACUUM (PARALLEL 0) p');
		is(orphans($_), 0, "$way: VACUUM has freed those of $_") for qw(p_k p_v p_id);
		cmp_ok(value("SELECT pg_relation_size('$some')"), '<=', 1.1 * $size, "$way: and used them");
	}
}

# Extensions that came to nothing: blocks of zeros
$node->stop;
my $path = $node->data_dir;
$node->start;
$path = file_of($node, 'p_k');
$node->stop;
append_to_file($path, "\0" x (5 * $block_size));
$node->start;
is(orphans('p_k'), 5, 'blocks of zeros are orphans');
value('DELETE FROM p WHERE id = 3; VACUUM (INDEX_CLEANUP ON) p');
is(orphans('p_k'), 0, 'VACUUM frees them');

# A free space map that is lost, as on a server that was a standby
$node->safe_psql('postgres', <<'END');
CREATE TABLE f (id int, k bigint);
CREATE INDEX f_k ON f USING gpu_btree (k);
INSERT INTO f SELECT i, i FROM generate_series(1, 60000) i;
VACUUM f;
INSERT INTO f SELECT i, i FROM generate_series(1, 60000) i;
VACUUM f;
END
my $size = value("SELECT pg_relation_size('f_k')");
$path = file_of($node, 'f_k');
$node->stop;
unlink("${path}_fsm") or die "${path}_fsm: $!";
$node->start;
value('VACUUM f');
value('INSERT INTO f SELECT i, i FROM generate_series(1, 20000) i');
is(value("SELECT pg_relation_size('f_k')"), $size, 'free pages are found again');
check_index($node, 'f_k');
$node->stop;

done_testing();
