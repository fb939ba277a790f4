# An engine that lacks a structure: its indexes use the CPU device, with one WARNING, and
# push no other index off the GPU; the others use the GPU as ever.

use strict;
use warnings;

use GpudsPoints;
use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;

need_cuda();
my $node = new_node('structure', conf => "gpuds.device_memory = 16MB\n");
plan(skip_all => 'not built with INJECTION_POINTS=1') unless injection_points($node);

# The memory is not enough for both
my $rows = 150_000;
$node->safe_psql('postgres', <<"END");
CREATE TABLE t (k bigint, v int);
INSERT INTO t SELECT i::bigint * 7919 % $rows, i FROM generate_series(0, $rows - 1) i;
CREATE TABLE a AS SELECT * FROM t;
CREATE INDEX t_k ON t USING gpu_btree (k);
SET gpuds.test_structure = 'array';
CREATE INDEX a_k ON a USING gpu_btree (k);
END
my $right = $node->safe_psql('postgres',
	scan_sql('SELECT count(*), sum(v) FROM a WHERE k BETWEEN 100 AND 199'));

sub devices_of
{
	my ($index) = @_;
	return $node->safe_psql('postgres', "
		SELECT string_agg(device, ',' ORDER BY device) FROM gpuds_indexes
		WHERE indexrelid = '$index'::regclass AND state IN ('loaded', 'applying')");
}

# The array is number 15
my $log = -s $node->logfile;
$node->append_conf('postgresql.conf', "gpuds.device_lacks_structure = 15\n");
$node->restart;
device_ready($node);
like(slurp_file($node->logfile, $log),
	qr/LOG:  library "gpuds_cuda" lacks structures of gpuds: "sorted array"/, 'the log names the structure');

for my $device ('auto', 'cuda')
{
	$node->safe_psql('postgres', "SELECT gpuds_index_load('t_k')");
	my $query = 'SELECT count(*), sum(v) FROM a WHERE k BETWEEN 100 AND 199;';
	my ($rc, $out, $err) = $node->psql('postgres', "
		SET gpuds.device = $device; SET enable_seqscan = off;
		$query $query SELECT gpuds_index_load('a_k')");
	is($out, "$right\n$right\nt", "$device: right answers");
	my $warnings = () =
	  $err =~ /WARNING:  the CUDA device lacks the structure of index "a_k", using the CPU device instead/g;
	is($warnings, 1, "$device: with one WARNING in the session") or diag($err);
	like($err, qr/DETAIL:.*different builds.*HINT:.*same build/s, "$device: that says what to do");
	is(devices_of('a_k'), 'cpu', "$device: the CPU device has it");
	is(devices_of('t_k'), 'cuda', "$device: the other index stays on the GPU");
}
check_all_indexes($node, 'indexes are whole');
my ($rc, $out, $err) = $node->psql('postgres',
	index_sql('SELECT count(*) FROM t WHERE k BETWEEN 100 AND 199'));
is("$out$err", '100', 'the other index: from the GPU, without a word');

# With a library that has it
$log = -s $node->logfile;
$node->append_conf('postgresql.conf', "gpuds.device_lacks_structure = 0\n");
$node->restart;
device_ready($node);
($rc, $out, $err) = $node->psql('postgres', index_sql('
	SELECT count(*), sum(v) FROM a WHERE k BETWEEN 100 AND 199'));
is("$out$err", $right, 'an engine that has it: right answer, without a word');
is(devices_of('a_k'), 'cuda', 'an engine that has it: from the GPU');
unlike(slurp_file($node->logfile, $log), qr/lacks/, 'an engine that has it: the log does not complain');
$node->stop;

done_testing();
