# Two indexes that each fit the memory, but not together, and both are in use: every
# query ends with the right answer, and loads stay few.

use strict;
use warnings;

use GpudsPoints;
use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;

# Each takes more than half of the memory; on a GPU chunks are large
my $rows = on_cuda() ? 150_000 : 230_000;
my $node = new_node('working_set', conf => "gpuds.host_memory = 8MB\ngpuds.device_memory = 16MB\n");

for my $t ('a', 'b')
{
	$node->safe_psql('postgres', <<"END");
CREATE TABLE $t (k bigint, v int);
INSERT INTO $t SELECT i::bigint * 7919 % $rows, i FROM generate_series(0, $rows - 1) i;
CREATE INDEX ${t}_k ON $t USING gpu_btree (k);
END
}

sub loads
{
	return $node->safe_psql('postgres',
		"SELECT sum(loads) FROM gpuds_stat_indexes WHERE indexrelid IN ('a_k'::regclass, 'b_k'::regclass)");
}

sub state
{
	my ($index) = @_;
	return $node->safe_psql('postgres',
		"SELECT state FROM gpuds_indexes WHERE indexrelid = '$index'::regclass ORDER BY device LIMIT 1");
}

# On a GPU what has no room there goes to the CPU's memory; this is about one device
if (!on_cuda())
{
	$node->safe_psql('postgres', "SELECT gpuds_index_load('$_')") for ('a_k', 'b_k');
	is(state('a_k') . ', ' . state('b_k'), 'not loaded, loaded', 'each fits, not both');
	$node->safe_psql('postgres', "SELECT gpuds_index_evict('b_k')");

	SKIP:
	{
		skip 'not built with INJECTION_POINTS=1', 6 unless injection_points($node);

		# A load has what it needs from its beginning on
		my $gate = gate($node, 'load-base-read');
		my $loader = $node->background_psql('postgres');
		my $pid = $loader->query_safe('SELECT pg_backend_pid()');
		$loader->query_until(qr/go/, "
			SET gpuds.wait_at = 'load-base-read'; SET enable_seqscan = off;
			\\echo go
			SELECT count(*) FROM a WHERE k < 100;\n");
		ok(waits_for($node, $pid, 'Lock'), 'a load is held');
		my $before = loads();
		is($node->safe_psql('postgres', 'SET client_min_messages = error; '
				  . index_sql('SELECT count(*) FROM b WHERE k < 100')), '100', 'another does without');
		is(loads(), $before, 'and does not load');
		is(state('b_k'), 'no memory', 'which the view says');
		my ($rc, $out, $err) = $node->psql('postgres', "
			SET client_min_messages = error; SELECT gpuds_index_load('b_k')");
		like($err,
			qr/ERROR:  could not load the in-memory copy of index "b_k".*DETAIL:.*HINT:.*gpuds\.host_memory/s,
			'not even by name');
		open_points($gate, 'load-base-read');
		$loader->quit;
		is(state('a_k'), 'loaded', 'the first one gets through');
		$gate->quit;
	}
}

my $before = loads();
my $last = $rows - 10;
my @bench = map { start_pgbench($node, "-c 1 -T 5", [ script_file("use_$_", <<"END"), 1 ]) } ('a', 'b');
\\set k random(0, $last)
SET client_min_messages = error;
SET enable_seqscan = off;
SET statement_timeout = '60s';
SELECT 1 / (count(*) = 10)::int FROM $_ WHERE k BETWEEN :k AND :k + 9;
END
my @ok = map { finish_pgbench($_) ? 1 : 0 } @bench;
is("@ok", '1 1', 'two sessions get what they ask for') or diag($_->{out}) for @bench;
my $loads = loads() - $before;
my $queries = 0;
$queries += $_->{out} =~ /number of transactions actually processed: (\d+)/ ? $1 : 0 for @bench;
note("$loads loads, $queries queries");
cmp_ok($loads, '<=', $queries / 4, 'there are much less loads than queries');
{
	local $ENV{PGOPTIONS} = '-c client_min_messages=error';
	same_answers($node, "answers of $_", "SELECT count(*), sum(v) FROM $_ WHERE k BETWEEN 700 AND 900")
	  for ('a', 'b');
	check_all_indexes($node, 'indexes are whole');
}

# Left alone, the one that is used gets the memory
my $device = on_cuda() ? 'cuda' : 'cpu';
for my $t ('b', 'a')
{
	my $got = 0;

	for my $try (1 .. 600)
	{
		$node->safe_psql('postgres', 'SET client_min_messages = error; '
			  . index_sql("SELECT count(*) FROM $t WHERE k < 10"));
		$got = $node->safe_psql('postgres', "
			SELECT count(*) FROM gpuds_indexes
			WHERE indexrelid = '${t}_k'::regclass AND state = 'loaded' AND device = '$device'") eq '1';
		last if $got;
		select(undef, undef, undef, 0.1);
	}
	ok($got, "$t is loaded when the other is not used");
}
$node->stop;

done_testing();
