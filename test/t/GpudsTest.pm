# What the TAP tests of gpuds share.

package GpudsTest;

use strict;
use warnings;

use Exporter 'import';
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(
  new_node same_answers check_index check_all_indexes scan_sql index_sql
  start_pgbench finish_pgbench script_file random_seed
  on_cuda need_cuda device_state device_ready device_memory forget_mirrors
  lossy_tables served_again new_log in_log
  file_of of_mirror of_statistics
);

# The timeout of a background psql is for each query, not for all of them.  Older minor versions leave
# something of their mark in an answer: a newline behind the last row, or all of it where there is no row.
{
	no warnings 'redefine';
	my $query = \&PostgreSQL::Test::BackgroundPsql::query;

	*PostgreSQL::Test::BackgroundPsql::query = sub {
		my $session = $_[0];

		$session->set_query_timer_restart;
		my ($answer, @more) = $query->(@_);
		$answer =~ s/(?:^background_psql: QUERY_SEPARATOR)?\n?\z//m;
		return wantarray ? ($answer, @more) : $answer;
	};
}

# A node with gpuds preloaded, started, with the extension in database postgres.
# conf: further lines of postgresql.conf; streaming: for standbys; damage: pages have no checksums,
# so that the test can change them.  Nobody but the test cleans rows, or pins pages that VACUUM wants
# to clean.
sub new_node
{
	my ($name, %opt) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	# Since 18, pages have them unless initdb is told otherwise
	my @extra = $opt{damage} && $node->pg_version->major >= 18 ? ('--no-data-checksums') : ();
	$node->init(allows_streaming => $opt{streaming} // 0, extra => \@extra);
	$node->append_conf('postgresql.conf', "wal_level = replica\nmax_wal_senders = 4\n")
	  unless $opt{streaming};
	$node->append_conf('postgresql.conf', <<'END');
shared_preload_libraries = 'gpuds'
gpuds.host_memory = 256MB
max_prepared_transactions = 20
max_connections = 40
autovacuum = off
bgwriter_lru_maxpages = 0
checkpoint_timeout = 1h
max_wal_size = 512MB
log_statement = none
END
	if (on_cuda())
	{
		$node->append_conf('postgresql.conf',
			"gpuds.device = cuda\ngpuds.device_ids = '0'\ngpuds.device_memory = 256MB\n"
			  . "gpuds.staging_memory = 64MB\n");
	}
	$node->append_conf('postgresql.conf', $opt{conf}) if $opt{conf};
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION gpuds') unless $opt{no_extension};
	device_ready($node) if on_cuda() && !$opt{no_extension};
	return $node;
}

# Whether the tests are run for the CUDA device
sub on_cuda
{
	return ($ENV{GPUDS_TEST_DEVICE} // 'cpu') eq 'cuda';
}

# At the head of a test that is about the CUDA device
sub need_cuda
{
	plan(skip_all => 'only with gpuds.device = cuda') unless on_cuda();
	return;
}

# Takes a node, and a database with the extension if postgres has none; waits until a worker serves the
# device.
sub device_ready
{
	my ($node, $database) = @_;
	my $state = "SELECT state FROM gpuds_devices WHERE kind = 'cuda'";

	for my $try (1 .. 1200)
	{
		my ($rc, $out) = eval { $node->psql($database // 'postgres', $state) };
		return if defined $rc && $rc == 0 && $out eq 'ready';
		select(undef, undef, undef, 0.1);
	}
	die 'the device does not get ready';
}

# What gpuds_devices says of the CUDA device
sub device_state
{
	my ($node, $columns) = @_;
	return $node->safe_psql('postgres', "SELECT $columns FROM gpuds_devices WHERE kind = 'cuda'");
}

# What trees hold of the GPU's memory
sub device_memory
{
	my ($node) = @_;
	return device_state($node, 'memory_used');
}

# Tables for tests that lose the device: t, of so many rows, and s, of 1,000
sub lossy_tables
{
	my ($node, $rows) = @_;

	$node->safe_psql('postgres', <<"END");
CREATE TABLE t (k bigint, v int);
INSERT INTO t SELECT i::bigint * 7919 % $rows, i FROM generate_series(1, $rows) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
CREATE TABLE s (k bigint);
INSERT INTO s SELECT i FROM generate_series(1, 1000) i;
CREATE INDEX s_k ON s USING gpu_btree (k);
END
	return;
}

# The GPU has the mirror of t_k again, and what it holds is right
sub served_again
{
	my ($node, $name, @queries) = @_;

	device_ready($node);
	same_answers($node, "$name: right answers", @queries);
	is($node->safe_psql('postgres', "
		SELECT count(*) FROM gpuds_indexes WHERE indexrelid = 't_k'::regclass AND device = 'cuda'
			AND state IN ('loaded', 'applying')"),
		'1', "$name: from the GPU");
	check_index($node, 't_k', "$name: the index is whole");
	forget_mirrors($node, $name);
	$node->safe_psql('postgres', "SELECT gpuds_index_load('t_k')");
	return;
}

# What a node's log says since the last call
my %log_read;

sub new_log
{
	my ($node) = @_;
	my $log = substr(slurp_file($node->logfile), $log_read{ $node->name } // 0);

	$log_read{ $node->name } += length $log;
	return $log;
}

# Waits until that is there: views may show what is logged a moment later.  Returns what new_log would.
# One test.
sub in_log
{
	my ($node, $line, $name) = @_;
	my $log = new_log($node);

	for (my $try = 0; $try < 600 && $log !~ $line; $try++)
	{
		select(undef, undef, undef, 0.1);
		$log .= new_log($node);
	}
	like($log, $line, $name);
	return $log;
}

# Takes a node, a relation, and a database if it is not postgres; returns the path of the relation's file.
sub file_of
{
	my ($node, $relation, $database) = @_;
	my $path = $node->safe_psql($database // 'postgres', "SELECT pg_relation_filepath('$relation')");

	return $node->data_dir . "/$path";
}

# Takes a node, an index, columns of gpuds_indexes, and a device if only its mirror is meant; returns what
# the view says there, a row for each device.
sub of_mirror
{
	my ($node, $index, $columns, $device) = @_;

	return $node->safe_psql('postgres',
		"SELECT $columns FROM gpuds_indexes WHERE indexrelid = '$index'::regclass"
		  . (defined $device ? " AND device = '$device'" : '') . ' ORDER BY device');
}

# Takes a node, an index and columns of gpuds_stat_indexes; returns what the view says there.
sub of_statistics
{
	my ($node, $index, $columns) = @_;
	return $node->safe_psql('postgres',
		"SELECT $columns FROM gpuds_stat_indexes WHERE indexrelid = '$index'::regclass");
}

# Evicts every mirror; then the device's memory is at its baseline.  One test.
sub forget_mirrors
{
	my ($node, $name) = @_;

	$node->safe_psql('postgres', <<'END');
SELECT gpuds_index_evict(c.oid::regclass) FROM pg_class c JOIN pg_am a ON a.oid = c.relam
 WHERE a.amname = 'gpu_btree' AND c.relkind = 'i'
END
	is(device_memory($node), '0', "$name: device memory is back at the baseline");
	return;
}

# A query as planner settings make it: without indexes, or with nothing but
sub scan_sql
{
	my ($query) = @_;
	return "
		SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off;
		SET enable_seqscan = on; $query;";
}

sub index_sql
{
	my ($query, $how) = @_;
	my $bitmap = ($how // 'index') eq 'bitmap' ? 'on' : 'off';
	my $plain = $bitmap eq 'on' ? 'off' : 'on';
	return "
		SET enable_seqscan = off; SET enable_sort = off; SET enable_bitmapscan = $bitmap;
		SET enable_indexscan = $plain; $query;";
}

# Every query gives the same by sequential scan, index scan and bitmap scan, in one
# snapshot.  Queries with ORDER BY are not tried as bitmap scans.  One test.
sub same_answers
{
	my ($node, $name, @queries) = @_;
	my @wrong;

	for my $query (@queries)
	{
		my $sql = "BEGIN ISOLATION LEVEL REPEATABLE READ;\n\\echo == seq\n" . scan_sql($query);
		my @ways = $query =~ /ORDER BY/ && $query !~ /string_agg/ ? ('index') : ('index', 'bitmap');
		for my $how (@ways)
		{
			$sql .= "\n\\echo == $how\n" . index_sql($query, $how);
		}
		$sql .= "\n\\echo == plan\n" . index_sql("EXPLAIN (COSTS OFF) $query");
		my $out = $node->safe_psql('postgres', "$sql\nCOMMIT;");
		my %answer;
		my $at;
		for my $line (split /\n/, $out)
		{
			if ($line =~ /^== (\w+)$/) { $at = $1; $answer{$at} = ''; }
			else { $answer{$at} .= "$line\n"; }
		}
		for my $how (@ways)
		{
			push @wrong, "$query\n  seq:    $answer{seq}  $how:  $answer{$how}"
			  if $answer{$how} ne $answer{seq};
		}
		push @wrong, "$query\n  does not use an index:\n$answer{plan}" if $answer{plan} !~ /Index Scan/;
	}
	ok(!@wrong, $name) or diag(join("\n", @wrong));
	return;
}

# gpuds_index_check with the heap.  One test.
sub check_index
{
	my ($node, $index, $name) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', "SELECT gpuds_index_check('$index', true)");

	ok($rc == 0, $name // "$index passes the check") or diag($err);
	return;
}

# All gpu_btree indexes of the database.  One test.
sub check_all_indexes
{
	my ($node, $name, $db) = @_;
	my ($rc, $out, $err) = $node->psql($db // 'postgres', <<'END');
SELECT count(gpuds_index_check(c.oid::regclass, true)::text)
  FROM pg_class c JOIN pg_am a ON a.oid = c.relam JOIN pg_index i ON i.indexrelid = c.oid
 WHERE a.amname = 'gpu_btree' AND c.relkind = 'i' AND i.indisvalid
END

	ok($rc == 0, $name) or diag($err);
	return;
}

# A file with the text of a pgbench script
sub script_file
{
	my ($name, $text) = @_;
	my $file = PostgreSQL::Test::Utils::tempdir() . "/$name.sql";

	append_to_file($file, $text);
	return $file;
}

# start_pgbench(node, options, [file, weight] ...): runs in the background, as long as -T says, or
# GPUDS_TEST_TIMES times as long
sub start_pgbench
{
	my ($node, $options, @files) = @_;

	$options =~ s/-T \K(\d+)/$1 * ($ENV{GPUDS_TEST_TIMES} \/\/ 1)/e;
	my @command = ('pgbench', '-n', '-h', $node->host, '-p', $node->port, split(/ /, $options),
		(map { ('-f', "$_->[0]\@$_->[1]") } @files), 'postgres');
	my $bench = { out => '', in => '' };

	$bench->{harness} = IPC::Run::start(\@command, '<', \$bench->{in}, '>', \$bench->{out}, '2>&1');
	return $bench;
}

# Waits for its end; returns whether no client failed
sub finish_pgbench
{
	my ($bench) = @_;

	my $ok = $bench->{harness}->finish;
	$ok = 0 if $bench->{out} =~ /ERROR|aborted in command|number of failed transactions: [1-9]/;
	return $ok;
}

# Tests that draw random numbers say which, and take them from GPUDS_TEST_SEED
sub random_seed
{
	my $seed = $ENV{GPUDS_TEST_SEED} // int(rand(1 << 30));

	srand($seed);
	note("GPUDS_TEST_SEED=$seed");
	return $seed;
}

1;
