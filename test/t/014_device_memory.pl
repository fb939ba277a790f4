# Too little GPU memory: the least recently used mirrors make room, what does not fit
# is answered by the CPU device with one WARNING, and nothing is leaked.

use strict;
use warnings;

use GpudsPoints;
use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;

need_cuda();
my $node = new_node('memory', conf => "gpuds.device_memory = 16MB\n");
my $rows = 150_000;

for my $i (1 .. 6)
{
	$node->safe_psql('postgres', <<"END");
CREATE TABLE t$i (k bigint, v int);
INSERT INTO t$i SELECT j::bigint * 7919 % $rows, j FROM generate_series(0, $rows - 1) j;
CREATE INDEX t${i}_k ON t$i USING gpu_btree (k);
END
}
forget_mirrors($node, 'at first');

sub on_gpu
{
	my ($index) = @_;
	return $node->safe_psql('postgres', "
		SELECT count(*) FROM gpuds_indexes WHERE indexrelid = '$index'::regclass AND device = 'cuda'
			AND state IN ('loaded', 'applying')");
}

# In turn: each gets onto the GPU when it is asked for, as soon as the others have been
# there for long enough, and the one that was asked first is not there any more
my ($rc, $out, $err);
for my $i (1 .. 6, 1 .. 6)
{
	my $right = $node->safe_psql('postgres', scan_sql("
		SELECT count(*), sum(v) FROM t$i WHERE k BETWEEN 1000 AND 1999"));
	my ($there, $wrong) = (0, 0);

	for my $try (1 .. 600)
	{
		($rc, $out, $err) = $node->psql('postgres', index_sql("
			SELECT count(*), sum(v) FROM t$i WHERE k BETWEEN 1000 AND 1999"));
		$wrong++ if $out ne $right;
		$there = on_gpu("t${i}_k");
		last if $there && $err eq '';
		select(undef, undef, undef, 0.1);
	}
	is($wrong, 0, "t$i: right answers");
	is("$there$err", '1', "t$i: from the GPU, without a word");
}
is(on_gpu('t1_k'), '0', 'the first one had to make room');
cmp_ok(device_memory($node), '<=', 16 * 1024 * 1024, 'the memory is not exceeded');
check_all_indexes($node, 'indexes are whole');
forget_mirrors($node, 'after evictions');

# Larger than all of the memory
$node->safe_psql('postgres', <<'END');
CREATE TABLE big (k bigint, v int);
INSERT INTO big SELECT i::bigint * 7919 % 1000000, i FROM generate_series(1, 1000000) i;
CREATE INDEX big_k ON big USING gpu_btree (k);
SELECT gpuds_index_load('t1_k');
END
($rc, $out, $err) = $node->psql('postgres', <<'END');
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT count(*) FROM big WHERE k = 4711;
SELECT count(*) FROM big WHERE k BETWEEN 100 AND 199;
SELECT k FROM big WHERE k > 500000 ORDER BY k LIMIT 3;
SELECT k FROM big WHERE k < 500000 ORDER BY k DESC LIMIT 3;
SELECT count(*) FROM big WHERE k = ANY ('{1,2,3,4,5}');
END
is($rc, 0, 'an index too large for the GPU is scanned');
is($out, "1\n100\n500001\n500002\n500003\n499999\n499998\n499997\n5", 'and gives the right answers');
my $warnings = () =
  $err =~ /WARNING:  no GPU memory for the in-memory copy of index "big_k", using the CPU device instead/g;
is($warnings, 1, 'with one WARNING in the session') or diag($err);
like($err, qr/HINT:.*gpuds\.device_memory/, 'that names the setting');
is($node->safe_psql('postgres', "
	SELECT device FROM gpuds_indexes WHERE indexrelid = 'big_k'::regclass AND state <> 'no memory'"),
	'cpu', 'the CPU device has it');
is($node->safe_psql('postgres', "
	SELECT device FROM gpuds_indexes WHERE indexrelid = 'big_k'::regclass AND state = 'no memory'"),
	'cuda', 'and the view says who has no room');
$node->psql('postgres', "SELECT gpuds_index_load('big_k')");
is(on_gpu('big_k'), '0', 'asking for it does not bring it onto the GPU');
check_index($node, 'big_k');
same_answers($node, 'beside it the small ones work',
	'SELECT count(*), sum(v) FROM t1 WHERE k BETWEEN 10 AND 20');
forget_mirrors($node, 'after it did not fit');

# Grown until it does not fit any more
$node->safe_psql('postgres', "SELECT gpuds_index_load('t2_k')");
is(on_gpu('t2_k'), '1', 'one that fits');
for my $i (1 .. 8)
{
	$node->safe_psql('postgres',
		"INSERT INTO t2 SELECT $i * 1000000 + j, j FROM generate_series(1, 100000) j");
	($rc, $out, $err) = $node->psql('postgres', index_sql("SELECT count(*) FROM t2 WHERE k > $i * 1000000"));
	is($out, '100000', "grown by $i x 100,000 entries: right answer");
}
like($err, qr/no GPU memory/, 'and does not fit in the end');
same_answers($node, 'it is all there', 'SELECT count(*), sum(v) FROM t2 WHERE k >= 0');
check_index($node, 't2_k');
$node->safe_psql('postgres', 'DELETE FROM t2 WHERE k > 1000000');
$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) t2') for 1 .. 2;
is($node->safe_psql('postgres', "SELECT gpuds_index_load('t2_k')"), 't', 'after VACUUM it fits again');
is(on_gpu('t2_k'), '1', 'and is back on the GPU');
same_answers($node, 'with the right answers', 'SELECT count(*), sum(v) FROM t2 WHERE k >= 0');
forget_mirrors($node, 'after growing');

SKIP:
{
	skip 'not built with INJECTION_POINTS=1', 1 unless injection_points($node);

	# The allocation that fails is that of a load, and of a catch-up; the memory the GPU's or the worker's
	my $pid = $node->safe_psql('postgres', "SELECT worker_pid FROM gpuds_devices WHERE kind = 'cuda'");
	for my $kind ('no_memory', 'bad_alloc')
	{
		my $fault = "SET client_min_messages = error; SET gpuds.device_fault = '$kind';";
		is($node->safe_psql('postgres', "$fault " . index_sql('SELECT count(*) FROM t3 WHERE k < 1000')),
			'1000', "a load, $kind: right answer");
		is($node->safe_psql('postgres', "SELECT gpuds_index_load('t3_k')"), 't',
			"a load, $kind: the next one works");
		$node->safe_psql('postgres', 'INSERT INTO t3 SELECT 2000000 + j, j FROM generate_series(1, 30000) j');
		is($node->safe_psql('postgres', "$fault " . index_sql('SELECT count(*) FROM t3 WHERE k > 2000000')),
			'30000', "a catch-up, $kind: right answer");
		is($node->safe_psql('postgres', "SELECT gpuds_index_load('t3_k')"), 't',
			"a catch-up, $kind: the next one works");
		same_answers($node, "$kind: right answers", 'SELECT count(*), sum(v) FROM t3 WHERE k >= 0');
		check_index($node, 't3_k');
		forget_mirrors($node, $kind);
		$node->safe_psql('postgres', 'DELETE FROM t3 WHERE k > 2000000');
	}
	is($node->safe_psql('postgres', "SELECT worker_pid FROM gpuds_devices WHERE kind = 'cuda'"), $pid,
		'without memory: the worker goes on');
}

# Everybody wants it at once
my @scripts = map { [ script_file("look$_", <<"END"), 1 ] } 1 .. 6;
\\set k random(0, 140000)
SET client_min_messages = error;
SET enable_seqscan = off;
SELECT 1 / (count(*) = 50)::int FROM t$_ WHERE k BETWEEN :k AND :k + 49;
END
my $bench = start_pgbench($node, '-c 8 -j 2 -T 8', @scripts);
ok(finish_pgbench($bench), 'clients that push each other out have right answers') or diag($bench->{out});
check_all_indexes($node, 'indexes are whole at the end');
forget_mirrors($node, 'at the end');
$node->stop;

done_testing();
