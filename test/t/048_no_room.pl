# Memory that is set too small: the view shows the indexes that have none, also those that the planner avoids,
# and a setting below its minimum is an error when the server starts, not the default.

use strict;
use warnings;

use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;

#
# The states of gpuds_indexes
#

plan(skip_all => 'about the CPU device') if on_cuda();
my $node = new_node('no_room', conf => "gpuds.host_memory = 8MB\ngpuds.temp_memory = 1MB\n");

sub state
{
	my ($index) = @_;
	return of_mirror($node, $index, "state || ', ' || coalesce(device, 'none')");
}

$node->safe_psql('postgres', <<'END');
CREATE TABLE large (k bigint);
INSERT INTO large SELECT generate_series(1, 600000);
CREATE INDEX large_k ON large USING gpu_btree (k);
CREATE TABLE small (k bigint);
INSERT INTO small SELECT generate_series(1, 1000);
CREATE INDEX small_k ON small USING gpu_btree (k);
ANALYZE large, small;
END
is(state('large_k'), 'no memory, none', 'an index that is larger than all of the memory is shown');
is(state('small_k'), 'not loaded, none', 'one that fits is not loaded yet');
unlike($node->safe_psql('postgres', 'EXPLAIN SELECT count(*) FROM large WHERE k < 300000'), qr/large_k/,
	'the planner avoids it');
is(of_statistics($node, 'large_k', 'fallbacks'), '0', 'so no scan has fallen back');
is($node->safe_psql('postgres', "
	SELECT host_bytes > 8 * 1024 * 1024 FROM gpuds_index_estimate('large', '{k}')"),
	't', 'the estimate says so, too');

# Asked for all the same
my ($rc, $out, $err) = $node->psql('postgres', "SELECT gpuds_contains('large_k', '{1,2,3}'::bigint[])");
is($out, '{t,t,t}', 'functions use it');
like($err, qr/WARNING:.*HINT:.*gpuds\.host_memory/s, 'with a WARNING');
is(state('large_k'), 'no memory, cpu', 'and then the view says which device has refused it');

# A temporary index is its session's
is($node->safe_psql('postgres', <<'END'),
SET client_min_messages = error;
CREATE TEMP TABLE t AS SELECT g::bigint AS k FROM generate_series(1, 100000) g;
CREATE INDEX t_k ON t USING gpu_btree (k);
SELECT state FROM gpuds_indexes WHERE indexrelid = 't_k'::regclass;
SET gpuds.temp_memory = '64MB';
SELECT state FROM gpuds_indexes WHERE indexrelid = 't_k'::regclass;
END
	"no memory\nnot loaded", 'a temporary index: no room, then more memory');

# Evicted by hand, and with fewer rows
$node->safe_psql('postgres', "SELECT gpuds_index_load('small_k'), gpuds_index_evict('small_k')");
is(state('small_k'), 'not loaded, none', 'evicted by hand');
$node->safe_psql('postgres', 'DELETE FROM large WHERE k > 1000');
$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) large') for 1 .. 2;
is(state('large_k'), 'not loaded, none', 'an index that VACUUM has made small');
$node->safe_psql('postgres', "SELECT gpuds_index_load('large_k')");
like(state('large_k'), qr/^(?:loaded|applying), cpu$/, 'and is loaded');
$node->stop;

#
# Settings
#

my $conf = slurp_file($node->data_dir . '/postgresql.conf');

# The server does not start; what its log says
sub refused
{
	my ($line) = @_;

	new_log($node);
	$node->append_conf('postgresql.conf', $line);
	my $started = $node->start(fail_ok => 1);
	$node->stop if $started;
	open my $fh, '>', $node->data_dir . '/postgresql.conf' or die $!;
	print $fh $conf;
	close $fh;
	return $started ? 'started' : new_log($node);
}

# setting, a value that it may not have, what the log has to say of the values that it may have
for my $case (
	[ 'gpuds.host_memory', '7MB', qr/\b8\b/ ],
	[ 'gpuds.staging_memory', '1MB', qr/\b16\b/ ],
	[ 'gpuds.temp_memory', '0', qr/\b1\b/ ],
	[ 'gpuds.memtable_memory', '-1', qr/\b0\b/ ],
	[ 'gpuds.include_memory', '-1', qr/\b0\b/ ],
	[ 'gpuds.visibility_memory', '-1', qr/\b0\b/ ],
	[ 'gpuds.device_memory', '-1', qr/\b0\b/ ],
	[ 'gpuds.device_timeout', '-1', qr/\b0\b/ ],
	[ 'gpuds.max_mirrors', '15', qr/\b16\b/ ],
	[ 'gpuds.max_mirrors', '100000000', qr/\b16\b/ ],
	[ 'gpuds.host_memory', 'much', qr/much/ ],
	[ 'gpuds.device', 'abacus', qr/auto/ ],
	[ 'gpuds.enable_join', 'perhaps', qr/Boolean/ ])
{
	my ($name, $value, $allowed) = @$case;
	my $log = refused("$name = '$value'\n");

	like($log, qr/FATAL: [^\n]*\Q$name\E/,
		"$name = $value: the server does not start, and names the setting");
	like($log, qr/FATAL:.*$allowed/s, "$name = $value: and what it may be");
}
$node->append_conf('postgresql.conf', "
	gpuds.host_memory = 8MB
	gpuds.staging_memory = 16MB
	gpuds.temp_memory = 1MB
	gpuds.memtable_memory = 0
	gpuds.include_memory = 0
	gpuds.device_memory = 0
	gpuds.device_timeout = 0
	gpuds.max_mirrors = 16\n");
$node->start;
is($node->safe_psql('postgres', 'SHOW gpuds.host_memory'), '8MB',
	'with each at its minimum the server starts');
for my $statement ("ALTER SYSTEM SET gpuds.host_memory = '7MB'", "ALTER SYSTEM SET gpuds.max_mirrors = 1",
	"SET gpuds.temp_memory = '0'", "ALTER DATABASE postgres SET gpuds.temp_memory = '0'",
	"ALTER ROLE ALL SET gpuds.device = 'abacus'")
{
	($rc, $out, $err) = $node->psql('postgres', $statement);
	like($err, qr/ERROR:.*gpuds\.\w+/, "refused: $statement");
}
$node->stop;

done_testing();
