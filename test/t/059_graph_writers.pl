# Graphs on a GPU while others write without a pause: whatever a call finds in the graph that is kept, it has
# the answer of the edges that its snapshot sees, which a sequential scan reads.

use strict;
use warnings;

use Digest::MD5 qw(md5_hex);
use GpudsTest;
use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;

need_cuda();
my $node = new_node('writers', "autovacuum = off\nsynchronous_commit = off\n");
device_ready($node);

# Edges with negative sources are nobody's but the readers'.
$node->safe_psql('postgres', 'CREATE TABLE e (src int, dst int, note int);
	INSERT INTO e SELECT 1 + random() * 15000, 1 + random() * 15000 FROM generate_series(1, 30000);
	INSERT INTO e SELECT -i, i FROM generate_series(1, 100) i;
	CREATE INDEX e_out ON e USING gpu_btree (src, dst); CREATE INDEX e_in ON e USING gpu_btree (dst, src);
	VACUUM (FREEZE, ANALYZE) e');

# Changes of all kinds, in transactions of which some are rolled back, until the session ends
$node->safe_psql('postgres', <<'SQL');
CREATE PROCEDURE change(pause float8) LANGUAGE plpgsql AS $$
DECLARE
	n int;
BEGIN
	LOOP
		n := 1 + random() * 15000;
		INSERT INTO e SELECT 1 + random() * 15100, 1 + random() * 15100 FROM generate_series(1, 8);
		INSERT INTO e SELECT src, dst FROM e WHERE src = n;
		DELETE FROM e WHERE src BETWEEN n + 1 AND n + 4;
		UPDATE e SET dst = dst % 15000 + 1 WHERE src = n + 5;
		UPDATE e SET note = 1 WHERE src = n + 6;
		IF random() < 0.2 THEN
			ROLLBACK;
		ELSE
			COMMIT;
		END IF;
		PERFORM pg_sleep(pause);
	END LOOP;
END
$$;
SQL

# another(name, statements): a session that does them again and again beside the test
my @others;
sub another
{
	my ($name, $statements) = @_;
	my $script = $node->basedir . "/$name.sql";

	append_to_file($script, $statements);
	push @others,
	  IPC::Run::start([ 'pgbench', '-n', '-T', '600', '-f', $script, $node->connstr('postgres') ],
		'>&', $node->basedir . "/$name.log");
	return;
}
another("change$_", "CALL change(0.00$_);\n") for 2, 7;
another('vacuum', "VACUUM e;\n\\sleep 700 ms\n");

# snapshot(session): the edges that it sees, as lists of targets
my $file = $node->basedir . '/edges';
sub snapshot
{
	my $session = shift;
	my %targets;

	$session->{stderr} = '';
	$session->query_safe("SET gpuds.enable_scan = off; SET enable_indexscan = off;
		SET enable_bitmapscan = off;
		SET enable_indexonlyscan = off; COPY (SELECT src, dst FROM e) TO '$file'; RESET gpuds.enable_scan;
		RESET enable_indexscan; RESET enable_bitmapscan; RESET enable_indexonlyscan");
	open(my $edges, '<', $file) or die "$file: $!";
	while (<$edges>)
	{
		my ($src, $dst) = split;
		push @{ $targets{$src} }, $dst;
		$targets{$dst} //= [];
	}
	close($edges);
	return \%targets;
}

sub turned
{
	my $targets = shift;
	my %both = map { ($_ => [ @{ $targets->{$_} } ]) } keys %$targets;

	for my $src (keys %$targets) { push @{ $both{$_} }, $src for @{ $targets->{$src} } }
	return \%both;
}

# depths(targets, source): of each vertex that can be reached
sub depths
{
	my ($targets, $source) = @_;
	my %depth = ($source => 0);
	my @queue = ($source);

	while (defined(my $v = shift @queue))
	{
		for my $w (@{ $targets->{$v} // [] })
		{
			next if defined $depth{$w};
			$depth{$w} = $depth{$v} + 1;
			push @queue, $w;
		}
	}
	return \%depth;
}

# components(targets both ways): of each vertex the least one that it is connected with
sub components
{
	my $both = shift;
	my %least;

	for my $v (sort { $a <=> $b } keys %$both)
	{
		next if defined $least{$v};
		$least{$_} = $v for keys %{ depths($both, $v) };
	}
	return \%least;
}

# Does each vertex of a path lead to the next one?
sub has_edges
{
	my ($targets, @path) = @_;

	for my $i (1 .. $#path)
	{
		return 0 unless grep { $_ == $path[$i] } @{ $targets->{ $path[ $i - 1 ] } };
	}
	return 1;
}

sub counted
{
	my %n;
	$n{$_}++ for @_;
	return \%n;
}

# digest(hash): of pairs in the order of keys, as $digest has it of two columns
sub digest
{
	my $of = shift;
	return md5_hex(join(',', map { "$_:$of->{$_}" } sort { $a <=> $b } keys %$of));
}
my $digest = "SELECT md5(string_agg(a || ':' || b, ',' ORDER BY a)) FROM (SELECT * FROM %s) AS q (a, b)";

my ($by_changes, $changed) = (0, 0);

# ask(session, what is called, which answer): on the GPU
sub ask
{
	my ($session, $call, $expected, $what) = @_;

	is($session->query(sprintf($digest, $call)), digest($expected), "$what: $call");
	$by_changes += () = $session->{stderr} =~ /by changes alone/g;
	$changed += () = $session->{stderr} =~ /changed, used, by changes alone/g;
	$session->{stderr} = '';
	return;
}

# compare(session, what): all answers with those of the edges that the session's snapshot sees
sub compare
{
	my ($session, $what) = @_;
	my $targets = snapshot($session);
	my $both = turned($targets);
	my $least = components($both);
	my ($from, $to) = (sort { $a <=> $b } grep { $_ > 0 && @{ $targets->{$_} } } keys %$targets)[ 0, 5000 ];
	my $depth = depths($targets, $from);
	my $around = depths($both, $from);

	for my $again (1, 2)
	{
		ask($session, "gpuds_bfs_counts('e_out', '{$from}'::int[])", counted(values %$depth), $what);
		ask($session, "(SELECT vertex, depth FROM gpuds_bfs('e_out', '{$from}'::int[])) b", $depth, $what);
		ask(
			$session, "(SELECT vertex, depth FROM gpuds_bfs('e_out', '{$from}'::int[],
			reverse_index => 'e_in', directed => false)) b", $around, $what);
		ask($session, "gpuds_components('e_out')", $least, $what);
		ask($session, "gpuds_component_sizes('e_out')", counted(values %$least), $what);
		my @path = split /,/, $session->query("SELECT string_agg(vertex::text, ',' ORDER BY step)
			FROM gpuds_shortest_path('e_out', $from, $to)");
		$session->{stderr} = '';
		is($#path, $depth->{$to} // -1, "$what: edges of a path");
		ok(has_edges($targets, @path), "$what: they are there");
	}
	return;
}

my $session = $node->background_psql('postgres', on_error_stop => 0);
$session->query_safe('SET client_min_messages = debug1; SET jit = off');
for my $round (1 .. 4)
{
	$session->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
	compare($session, "round $round");
	if ($round % 2)
	{
		$session->query_safe('DELETE FROM e WHERE src < -50;
			INSERT INTO e SELECT -i, -i - 1 FROM generate_series(45, 60) i;
			INSERT INTO e VALUES (1, -45), (-61, 1)');
		compare($session, "round $round, with own changes");
	}
	$session->query_safe($round % 4 == 3 ? 'COMMIT' : 'ROLLBACK');
}
cmp_ok($by_changes, '>', 20, 'most graphs are had by changes alone');
cmp_ok($changed, '>', 5, 'and differ from what is kept');
$session->quit;
# without the workers that a VACUUM may have
my $ended = $node->safe_psql('postgres', "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
	WHERE backend_type = 'client backend' AND query ~ '^(CALL change|VACUUM e)'");
is($ended, 3, 'the others were there to the end');
$_->kill_kill for @others;
is($node->safe_psql('postgres', "SELECT gpuds_index_check('e_out', true)"), '', 'the index is right');
$node->stop;

done_testing();
