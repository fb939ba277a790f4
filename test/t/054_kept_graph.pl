# A graph that the GPU has made of an index is kept as the base of others, of any snapshot, whatever has
# changed since, and it makes room for what needs memory.

use strict;
use warnings;

use GpudsPoints;
use GpudsTest;
use Test::More;
use Time::HiRes qw(usleep);

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

# What is said of the four calls if the graph is made, has changed, is as it was kept, is that by changes
# alone, or has edges beside it that are in no mirror or not committed.  The last call's leads both ways, and
# lies over what was kept: it is kept itself if enough has changed, once nobody waits.  What has just been
# made may have edges that are in no mirror yet.
my %origins = (
	made => 'made (changed|kept) (changed|kept) made',
	changed => 'changed kept kept (changed|kept)',
	kept => 'kept kept kept (changed|kept)',
	same => 'same same same (changed|same)',
	beside => 'changed changed changed changed');

# What was inserted is in the mirror, or on its way there for good.
sub settle
{
	$node->poll_query_until('postgres', "
		SELECT applied_position = journal_position OR (SELECT operations = 0 FROM gpuds_memtables)
		FROM gpuds_indexes WHERE indexrelid = 'e_out'::regclass AND device = 'cuda'");
	return;
}

sub flusher_waits_at
{
	$node->safe_psql('postgres', "ALTER SYSTEM SET gpuds.wait_at = '$_[0]'");
	$node->reload;
	return;
}

# compare(session, what, how): a session, in a transaction of its own or without, gets the CPU's answers; how:
# what becomes of what is kept; empty: anything.
sub compare
{
	my ($session, $what, $how) = @_;
	settle() if $how && $how ne 'made';
	my $cpu = $session->query_safe('SET gpuds.device = cpu; ' . of_all());
	my $gpu = $session->query(
		'SET gpuds.device = cuda; SET client_min_messages = debug1; ' .
		  of_all() . '; RESET client_min_messages');
	my @found = map { /kept.*by changes/ ? 'same' : /, (\w+), used/ }
	  $session->{stderr} =~ /graph of index "e_out" .*/g;
	@found = map { s/same/kept/r } @found unless $how && $how eq 'same';

	$session->{stderr} = '';
	is($gpu, $cpu, $what);
	like("@found", qr/^$origins{$how}$/, "$what: $how") if $how;
}

my $rounds = 6;
my $now = $node->background_psql('postgres', on_error_stop => 0);
my $old = $node->background_psql('postgres', on_error_stop => 0);

for my $method ('gpu_btree', 'gpu_skiplist')
{
	$node->safe_psql('postgres', sprintf($make, $method));
	compare($now, "$method: nothing is kept", 'made');
	# Edges that lead to and fro are there twice at first.
	compare($now, "$method: what is kept", '');
	compare($old, "$method: for all sessions", 'same');

	# The version of the structure stays, and rows are not seen any more.
	$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
	$node->safe_psql('postgres', 'DELETE FROM e WHERE src = 3');
	compare($now, "$method: rows that are deleted", 'changed');
	compare($now, "$method: the same ones are not seen", 'same');
	compare($old, "$method: a snapshot that sees them", 'changed');
	$old->query_safe('COMMIT');

	# The version changes; only a newer snapshot sees what is new.
	$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
	$node->safe_psql('postgres', 'INSERT INTO e VALUES (1, 5), (5000, 1), (NULL, 1), (1, NULL), (5000, 1)');
	$node->safe_psql('postgres', 'VACUUM e');
	compare($now, "$method: new rows", 'changed');
	compare($old, "$method: a snapshot that does not see them", 'changed');
	$old->query_safe('COMMIT');
	$node->safe_psql('postgres', 'VACUUM (FREEZE) e');
	compare($now, "$method: new rows are kept", 'changed');
	compare($old, "$method: for all sessions", 'kept');

	# Own changes, and their end
	$old->query_safe('BEGIN; DELETE FROM e WHERE src = 7');
	compare($old, "$method: own deletes", 'changed');
	compare($now, "$method: not seen by others", 'changed');
	$old->query_safe('ROLLBACK; BEGIN; INSERT INTO e VALUES (7, 2000)');
	compare($old, "$method: own inserts", 'beside');
	$old->query_safe('SAVEPOINT s; INSERT INTO e VALUES (7, 2001)');
	compare($old, "$method: of a subtransaction", 'beside');
	$old->query_safe('ROLLBACK TO s');
	compare($old, "$method: that has been rolled back", 'beside');
	compare($now, "$method: not seen by others", 'kept');
	$old->query_safe('ROLLBACK');
	$node->safe_psql('postgres', 'VACUUM (FREEZE) e');
	compare($now, "$method: after a rollback", 'kept');

	# As many rows that are not seen, but not the same
	$old->query_safe("BEGIN; DELETE FROM e WHERE ctid = '(0,1)'");
	compare($old, "$method: without a row", 'changed');
	$now->query_safe("BEGIN; DELETE FROM e WHERE ctid = '(0,2)'");
	compare($now, "$method: without another one", 'changed');
	$_->query_safe('ROLLBACK') for $old, $now;

	# Vertices that go and come, and TIDs that are given away again
	$node->safe_psql('postgres', 'DELETE FROM e WHERE src % 5 = 2 OR dst % 5 = 2');
	$node->safe_psql('postgres', 'VACUUM e');
	compare($now, "$method: without some vertices", 'changed');
	$node->safe_psql('postgres', 'INSERT INTO e SELECT -i, -i % 100 FROM generate_series(1, 3000) i');
	compare($now, "$method: with others in their place", 'changed');
	$node->safe_psql('postgres', 'UPDATE e SET dst = dst + 1 WHERE src % 7 = 0');
	$node->safe_psql('postgres', 'UPDATE e SET note = 1 WHERE src % 7 = 1');
	compare($now, "$method: updates", 'changed');

	# Another file, and another structure
	$node->safe_psql('postgres', 'REINDEX INDEX e_out');
	compare($now, "$method: REINDEX", '');
	$node->safe_psql('postgres',
		'TRUNCATE e; INSERT INTO e SELECT i, i + 1 FROM generate_series(1, 20000) i; VACUUM (FREEZE) e');
	compare($now, "$method: TRUNCATE", 'made');
	$node->safe_psql('postgres', 'DROP TABLE e; ' . sprintf($make, $method) .
		'; UPDATE e SET dst = dst + 1 WHERE src = 3; VACUUM (FREEZE) e');
	compare($now, "$method: a new table", 'made');

	SKIP:
	{
		skip('not built with INJECTION_POINTS=1', 5) unless injection_points($node);

		# The mirror has entries that VACUUM has removed: only the memtable says so.
		settle();
		compare($now, "$method: what is kept", '');
		compare($now, "$method: once more", 'same');
		flusher_waits_at('flush-apply');
		my $gate = gate($node, 'flush-apply');
		$node->safe_psql('postgres', 'DELETE FROM e WHERE src = 11; VACUUM (INDEX_CLEANUP ON) e');
		compare($now, "$method: rows that VACUUM has removed", '');
		$gate->quit;
		flusher_waits_at('');

		# Memory that a load needs
		my (undef, $loaded, $err) = $node->psql('postgres', "
			CREATE TABLE o AS SELECT i AS k FROM generate_series(1, 50000) i;
			CREATE INDEX ON o USING $method (k);
			SET gpuds.device = cuda; SET gpuds.device_fault = 'no_memory';
			SELECT gpuds_index_load('o_k_idx')");
		is("$loaded$err", 't', "$method: a load finds memory");
		$node->safe_psql('postgres', 'DROP TABLE o');
		compare($now, "$method: what it took is made again", '');
		compare($now, "$method: and kept", 'kept');
	}
	$node->safe_psql('postgres', 'DROP TABLE e');
}

# Two sessions change edges at random, each in transactions of its own, and a third one outside of any.
$node->safe_psql('postgres', sprintf($make, 'gpu_btree'));
srand(54);
my @changes = (
	'INSERT INTO e SELECT (random() * 1500)::int, (random() * 1500)::int FROM generate_series(1, %d)',
	'DELETE FROM e WHERE src % 97 = %d', 'UPDATE e SET src = src + 1 WHERE dst % 89 = %d AND src % 5 = 1',
	'UPDATE e SET note = %d WHERE src % 50 = 9');
my @sessions = ($now, $old);
my @inside = (0, 0);
for my $round (1 .. $rounds)
{
	for my $s (0, 1)
	{
		my $what = int(rand(8));
		my $sql =
			$what < 4 ? $changes[$what] =~ s/%d/int(rand(90))/er
			: !$inside[$s] ? 'BEGIN ISOLATION LEVEL ' . (rand() < 0.5 ? 'READ COMMITTED' : 'REPEATABLE READ')
			: ('COMMIT', 'ROLLBACK', 'SAVEPOINT s; DELETE FROM e WHERE src % 3 = 0; ROLLBACK TO s',
				'SAVEPOINT s; UPDATE e SET dst = dst + 1 WHERE src % 41 = 0; RELEASE s')[ $what - 4 ];

		$sessions[$s]->query("SET lock_timeout = '1s'; $sql");
		$inside[$s] = $sql =~ /^BEGIN/ || ($inside[$s] && $sql !~ /^(COMMIT|ROLLBACK)/);
		# after an error
		if ($sessions[$s]->query('SELECT 1') ne '1')
		{
			$sessions[$s]->query('ROLLBACK');
			$inside[$s] = 0;
		}
		$sessions[$s]->{stderr} = '';
		$node->safe_psql('postgres', 'VACUUM e; INSERT INTO e VALUES (1, ' . (2000 + $round) . ')')
		  if rand() < 0.3;
		compare($sessions[$s], "round $round: $sql", '');
	}
}
$_->query('ROLLBACK') for $now, $old;
$_->{stderr} = '' for $now, $old;

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
$now->query("SELECT gpuds_triangles('w_out')");
for my $change ('kept', 'changed')
{
	$now->{stderr} = '';
	is($now->query($walk), $few, "the same: $change");
	like($now->{stderr}, qr/w_out" on a device: \d+ vertices, $change, used/, "by a graph that is $change");
	$node->safe_psql('postgres', 'INSERT INTO w SELECT i % 300, 30000 + i FROM generate_series(1, 100000) i');
	$few = $node->safe_psql('postgres', "SET gpuds.device = cpu; $walk");
}

# Over fewer, it takes what was kept only if nothing has changed since.
my $fewer = $walk =~ s/1, 100\)\), 2/301, 400)), 1/r;
$few = $node->safe_psql('postgres', "SET gpuds.device = cpu; $fewer");
settle();
for my $how ('', 'kept')
{
	$now->{stderr} = '';
	is($now->query($fewer), $few, 'a walk over fewer edges');
	is(join(' ', $now->{stderr} =~ /vertices, (\w+), used/g), $how, $how ? 'by the same graph' : 'by none');
	# What lies over a base takes its place when nobody waits.
	for (1 .. 100)
	{
		$now->{stderr} = '';
		$now->query($walk);
		last if $now->{stderr} =~ /kept, used/;
		usleep(100_000);
	}
}

# So does a search for a path, which makes the edges that lead back for the next one, too.
for my $path (map { "SELECT count(*) FROM gpuds_shortest_path('w_out', $_, 19999)" } 1, 2)
{
	my $steps = $node->safe_psql('postgres', "SET gpuds.device = cpu; $path");
	$now->{stderr} = '';
	is($now->query($path), $steps, 'a path');
	like($now->{stderr}, qr/kept, used/, 'by the same graph');
}

# Few changes lie over what was kept, for an older snapshot, too.
$now->{stderr} = '';
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
my @few = (
	'INSERT INTO w SELECT i, 50000 + i FROM generate_series(1, 50) i; INSERT INTO w VALUES (50001, 60000)',
	'DELETE FROM w WHERE src = 301; UPDATE w SET dst = dst + 1 WHERE src = 302',
	'VACUUM w',
	'INSERT INTO w SELECT 303, i FROM generate_series(40001, 40020) i; DELETE FROM w WHERE src = 304');
for my $few (@few)
{
	$node->safe_psql('postgres', $few);
	for my $s ($now, $old)
	{
		for my $asked ($walk, $fewer, "SELECT max(step) FROM gpuds_shortest_path('w_out', 50, 60000)",
			"SELECT max(step) FROM gpuds_shortest_path('w_out', 302, 19999)")
		{
			my $cpu = $s->query_safe("SET gpuds.device = cpu; $asked; SET gpuds.device = cuda");

			$s->query_safe('SET client_min_messages = debug1');
			is($s->query($asked), $cpu, "beside: $few");
			unlike($s->{stderr}, qr/used$/m, 'by changes alone, or by the host');
			$s->{stderr} = '';
		}
	}
}
$old->query_safe('COMMIT');

# A graph with weights is another one.  Few changes lie over it, and edges that differ in their weight are
# different ones; it is of one column of weights.
$node->safe_psql('postgres', 'CREATE TABLE r (src int, dst int, w int, x smallint);
	INSERT INTO r SELECT i % 20000, i::bigint * 7919 % 20011, 1 + i % 97, i % 3
	FROM generate_series(1, 200000) i;
	CREATE INDEX r_out ON r USING gpu_btree (src, dst) INCLUDE (w, x);
	CREATE INDEX r_in ON r USING gpu_btree (dst, src) INCLUDE (w, x); VACUUM (FREEZE, ANALYZE) r');
my @pairs = ("ARRAY(SELECT generate_series(1, 12))", "ARRAY(SELECT generate_series(19988, 19999))");
my $costs = "SELECT string_agg(pair || ':' || cost, ' ' ORDER BY pair) FROM (
	SELECT pair, max(cost) AS cost FROM gpuds_shortest_paths('r_out', $pairs[0], $pairs[1], %s)
	GROUP BY 1) p";

# routes(session, arguments, what, how): a session's answer is the CPU's; how a graph was had for it
sub routes
{
	my ($session, $arguments, $what, $how) = @_;
	my $asked = sprintf($costs, $arguments);
	my $cpu = $session->query_safe("SET gpuds.device = cpu; $asked; SET gpuds.device = cuda");

	$session->query_safe('SET client_min_messages = debug1');
	is($session->query($asked), $cpu, $what);
	my @found = map { /, (\w+), used(.*)/ ? $1 . ($2 ? ' alone' : '') : () }
	  $session->{stderr} =~ /graph of index "r_out" .*/g;
	like("@found", $how, "$what: as it should be had");
	$session->{stderr} = '';
	return;
}

routes($now, "'w'", 'weights', qr/^made$/);
routes($now, "'w'", 'the same weights', qr/^kept alone$/);
routes($now, "'w', 'r_in', false", 'both ways', qr/^made$/);
routes($now, "'w', 'r_in', false", 'both ways again', qr/^kept alone$/);
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
for my $few (
	'INSERT INTO r SELECT src, dst, 0, 2 FROM r WHERE src < 20',
	'UPDATE r SET w = w + 40 WHERE src BETWEEN 5 AND 9',
	'DELETE FROM r WHERE src BETWEEN 1 AND 4 AND w > 20',
	'INSERT INTO r VALUES (3, 30000, 1, 1), (30000, 19990, 1, 1)',
	'VACUUM r')
{
	$node->safe_psql('postgres', $few);
	for my $s ($now, $old)
	{
		routes($s, "'w'", "beside: $few", qr/^(changed|kept) alone$/);
		routes($s, "'w', 'r_in', false, 60", "beside, both ways: $few", qr/^(changed|kept) alone$/);
	}
}
$old->query_safe('DELETE FROM r WHERE src = 12; INSERT INTO r VALUES (6, 19993, 0, 0)');
routes($old, "'w'", 'own changes', qr/^changed alone$/);
routes($now, "'w'", 'without those of others', qr/^(changed|kept) alone$/);
$old->query_safe('ROLLBACK');
routes($now, "'x'", 'another column', qr/^made$/);
routes($now, "'w'", 'the first one again', qr/^made$/);
$node->safe_psql('postgres', 'UPDATE r SET w = w + 1 WHERE src % 2 = 0');
$node->safe_psql('postgres', 'INSERT INTO r VALUES (40000, 40001, NULL, 0)');
routes($now, "'w'", 'an edge without a weight that no path comes to', qr/^$/);

# A version that comes after a graph has been begun has edges on pages that the map's copy calls all-visible.
SKIP:
{
	skip('not built with INJECTION_POINTS=1', 2) unless injection_points($node);

	my $components = "SELECT count(*), sum(component) FROM gpuds_components('e_out')";
	$node->safe_psql('postgres', 'DROP TABLE e; ' . sprintf($make, 'gpu_btree'));
	$now->query($components);
	$node->safe_psql('postgres', 'DELETE FROM e WHERE src BETWEEN 12 AND 30');
	$node->safe_psql('postgres', 'VACUUM e');
	$now->query($components);
	$node->safe_psql('postgres', 'INSERT INTO e VALUES (13, 14)');
	settle();
	my $wanted = $node->safe_psql('postgres', "SET gpuds.device = cpu; $components");
	my $held = gate($node, 'memtable-collected');
	$now->query("SET gpuds.wait_at = 'memtable-collected'");
	$now->query_until(qr/go/, "\\echo go\n$components;\n");
	held_at($node, 'memtable-collected', 'a call is held');
	$node->safe_psql('postgres', 'INSERT INTO e SELECT -9000 - i, 900 + i FROM generate_series(1, 400) i');
	settle();
	$held->quit;
	is($now->query('RESET gpuds.wait_at'), $wanted, 'it does not see what has come meanwhile');
}

# Searches that are short have a graph made together, unless they are of serializable transactions.
$node->safe_psql('postgres', 'CREATE TABLE s (src int, dst int);
	INSERT INTO s SELECT i, i + 1 FROM generate_series(1, 100000) i;
	CREATE INDEX s_out ON s USING gpu_btree (src, dst); VACUUM (FREEZE, ANALYZE) s');
is($now->query(q{SELECT gpuds_index_load('s_out')}), 't', 'an index of one long path');
for my $calls ([ 'serializable', '' ], [ 'read committed', 'made kept kept kept kept' ])
{
	$now->query("SET default_transaction_isolation = '$calls->[0]'; SET client_min_messages = debug1");
	$now->{stderr} = '';
	is($now->query("SELECT count(*) FROM gpuds_shortest_path('s_out', 1, 2000)"), '2000', "$calls->[0]: $_")
	  for 1 .. 5;
	is(join(' ', $now->{stderr} =~ /100001 vertices, (\w+), used/g), $calls->[1], "$calls->[0]: graphs");
}
$now->query('RESET default_transaction_isolation; RESET client_min_messages');

# Where no graph is kept, a walk that looks for one locks no more of the index than it reads.
$node->safe_psql('postgres', 'CREATE TABLE h (src int, dst int);
	INSERT INTO h SELECT 1, i FROM generate_series(1, 10000) i;
	INSERT INTO h SELECT i, 1 FROM generate_series(2, 300000) i;
	CREATE INDEX h_out ON h USING gpu_btree (src, dst); VACUUM (FREEZE, ANALYZE) h');
is($now->query("SELECT gpuds_index_load('h_out'); BEGIN ISOLATION LEVEL SERIALIZABLE;
	SELECT count(*) FROM gpuds_bfs('h_out', '{1}'::int[], 1);
	SELECT count(*) FROM pg_locks
	WHERE mode = 'SIReadLock' AND locktype = 'relation' AND relation = 'h_out'::regclass;
	COMMIT"), "t\n10000\n0", 'a walk that finds no graph');
$_->quit for $now, $old;
$node->stop;

done_testing();
