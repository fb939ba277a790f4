# What is in memtables and not yet in mirrors: scans find it while the flusher is held,
# gone or in a crash; memtables that are full; mirrors that leave and join; rows that
# are dead for everybody.

use strict;
use warnings;

use GpudsPoints;
use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('memtable', conf => "
	gpuds.memtable_memory = 1MB
	max_connections = 60
	max_logical_replication_workers = 0\n");

plan(skip_all => 'not built with INJECTION_POINTS=1') unless injection_points($node);

my $device = on_cuda() ? 'cuda' : 'cpu';

sub flusher_waits_at
{
	$node->safe_psql('postgres', "ALTER SYSTEM SET gpuds.wait_at = '$_[0]'");
	$node->reload;
	return;
}

# The mirror has all that the journal has.  Its position may be behind: a memtable's end is noted while
# appends are under way, whose records go with it all the same.
sub drained
{
	my ($name, $index) = @_;

	$index //= 't_k';
	ok($node->poll_query_until('postgres', "
		SELECT applied_position = journal_position OR (SELECT operations = 0 FROM gpuds_memtables)
		FROM gpuds_indexes WHERE indexrelid = '$index'::regclass AND device = '$device'"),
		"$name: drained");
	return;
}

my @queries = (
	'SELECT count(*), sum(v) FROM t WHERE k BETWEEN 100 AND 5000',
	'SELECT count(*), sum(v) FROM t WHERE k = ANY (ARRAY(SELECT i FROM generate_series(1, 3000, 7) i))',
	'SELECT k, v FROM t WHERE k BETWEEN 10 AND 60 ORDER BY k, v',
	'SELECT k, v FROM t WHERE k BETWEEN 10 AND 60 ORDER BY k DESC, v',
	'SELECT count(*), sum(v) FROM t WHERE k IN (1, 20001, 20003, 4)',
	'SELECT count(*), sum(v) FROM t WHERE k >= 0');

$node->safe_psql('postgres', <<'END');
CREATE TABLE t (k bigint, v int) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, i FROM generate_series(1, 20000) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
SELECT gpuds_index_load('t_k');
END

# The flusher is held: what is inserted, updated and removed is seen
flusher_waits_at('flush-apply');
my $gate = gate($node, 'flush-apply');
$node->safe_psql('postgres', 'INSERT INTO t SELECT 20000 + i, i FROM generate_series(1, 500) i');
held_at($node, 'flush-apply', 'the flusher is held');
$node->safe_psql('postgres', 'UPDATE t SET k = k + 1, v = v + 1 WHERE k % 50 = 0');
same_answers($node, 'a flusher that is held', @queries);
$node->safe_psql('postgres', '
	DELETE FROM t WHERE k BETWEEN 1000 AND 1500; VACUUM (INDEX_CLEANUP ON) t;
	INSERT INTO t SELECT 3000, -i FROM generate_series(1, 400) i');
same_answers($node, 'and TIDs of removed rows have other rows', @queries);
my $cursor = $node->background_psql('postgres');
$cursor->query_safe('
	SET enable_seqscan = off; SET enable_sort = off; SET enable_bitmapscan = off; BEGIN;
	DECLARE c SCROLL CURSOR FOR SELECT k FROM t WHERE k > 19990 ORDER BY k');
is($cursor->query_safe('FETCH 3 FROM c'), "19991\n19992\n19993", 'a cursor');
$gate->quit;
drained('the flusher goes on');
is($cursor->query_safe('MOVE 20 FROM c; FETCH 2 FROM c'), "20014\n20015", 'a cursor over the flush');
is($cursor->query_safe('FETCH BACKWARD 2 FROM c'), "20014\n20013", 'and back');
$cursor->quit;
same_answers($node, 'after the flush', @queries);
is($node->safe_psql('postgres', "
	SELECT memtables > 0, drained >= 500, memory_used > 0 AND memory_used <= memory_total,
		(SELECT backend_type FROM pg_stat_activity WHERE pid = drainer_pid) FROM gpuds_memtables"),
	't|t|t|gpuds flusher', 'the view of memtables');
check_index($node, 't_k');

# The flusher is terminated, and a crash comes, with a generation in the mirror that is not dropped
flusher_waits_at('flush-applied');
$gate = gate($node, 'flush-applied');
$node->safe_psql('postgres', 'INSERT INTO t SELECT 30000 + i, i FROM generate_series(1, 100) i');
held_at($node, 'flush-applied', 'the flusher is held behind an apply');
$node->safe_psql('postgres',
	"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'gpuds flusher'");
$gate->quit;
$node->safe_psql('postgres', 'INSERT INTO t SELECT 30100 + i, i FROM generate_series(1, 100) i');
same_answers($node, 'a flusher that was terminated', @queries);
drained('another flusher goes on');
check_index($node, 't_k');
$gate = gate($node, 'flush-applied');
$node->safe_psql('postgres', 'INSERT INTO t SELECT 30200 + i, i FROM generate_series(1, 100) i');
held_at($node, 'flush-applied', 'the flusher is held before a crash');
$node->stop('immediate');
$node->start;
same_answers($node, 'after a crash', @queries);
check_index($node, 't_k');
flusher_waits_at('');

# A record that is in its page and not in the memtable yet, when the memtable becomes full: others
# of its stripe are in the memtable already
$node->safe_psql('postgres', 'TRUNCATE t; INSERT INTO t VALUES (1, 1)');
$node->safe_psql('postgres', "SELECT gpuds_index_load('t_k')");
$gate = gate($node, 'append-paged');
my $slow = $node->background_psql('postgres');
$slow->query_until(qr/go/, "SET gpuds.wait_at = 'append-paged';\n\\echo go\nINSERT INTO t VALUES (2, 2);\n");
held_at($node, 'append-paged', 'an append is held');
$node->safe_psql('postgres', 'INSERT INTO t VALUES (3, 3)');
$node->safe_psql('postgres', 'SET gpuds.test_without_memtables = on; INSERT INTO t VALUES (4, 4)');
$gate->quit;
$slow->quit;
sleep(1);
is($node->safe_psql('postgres', index_sql('SELECT array_agg(k ORDER BY k) FROM t WHERE k > 0')), '{1,2,3,4}',
	'a memtable that became full');
check_index($node, 't_k');

# A mirror goes, or leaves its memtable, between the two looks of a scan
$node->safe_psql('postgres', 'INSERT INTO t SELECT i, i FROM generate_series(5, 3000) i');
for my $event ("SELECT gpuds_index_evict('t_k')", "SELECT gpuds_index_check('t_k')",
	'SET gpuds.test_without_memtables = on; INSERT INTO t VALUES (0, 0)')
{
	for my $kind ('enable_bitmapscan', 'enable_indexscan')
	{
		my $scan = $node->background_psql('postgres');

		$node->safe_psql('postgres', index_sql('SELECT count(*) FROM t WHERE k > 0'));
		$node->safe_psql('postgres', 'INSERT INTO t VALUES (7, 7)');
		my $right = $node->safe_psql('postgres', scan_sql('SELECT count(*) FROM t WHERE k > 0'));
		$gate = gate($node, 'memtable-collected');
		$scan->query_until(qr/go/, "
			SET gpuds.wait_at = 'memtable-collected'; SET enable_seqscan = off; SET $kind = off;
			\\echo go
			SELECT 'count ' || count(*) FROM t WHERE k > 0;\n");
		held_at($node, 'memtable-collected', "a scan is held: $event, $kind");
		$node->safe_psql('postgres', $event);
		$gate->quit;
		is($scan->query_safe('SELECT 1'), "count $right\n1", "$event, $kind");
		$scan->quit;
	}
}

# A crash at each step of an append, of a scan, of a mirror's attaching and of the flusher; what has
# committed is in the journal
$node->safe_psql('postgres', 'TRUNCATE t; INSERT INTO t SELECT i, i FROM generate_series(1, 3000) i');
my %step = (
	'append-paged' => 'VACUUM (INDEX_CLEANUP ON) t',
	'memtable-collected' => index_sql('SELECT count(*) FROM t WHERE k > 0'),
	'memtable-attaching' => index_sql("SELECT gpuds_index_evict('t_k'); SELECT count(*) FROM t WHERE k > 0"),
	'flush-apply' => undef,
	'flush-applied' => undef);
for my $point (sort keys %step)
{
	$node->safe_psql('postgres', index_sql('SELECT count(*) FROM t WHERE k > 0')) for 1 .. 2;
	flusher_waits_at($step{$point} ? '' : $point);
	$node->safe_psql('postgres', 'DELETE FROM t WHERE k % 100 = 7; INSERT INTO t VALUES (50, 0)');
	$gate = gate($node, $point);
	my $session = $node->background_psql('postgres');
	$session->query_until(qr/go/, "SET gpuds.wait_at = '$point';\n\\echo go\n"
		  . ($step{$point} // 'INSERT INTO t VALUES (51, 0)') . ";\n");
	held_at($node, $point, "held at $point");
	$node->safe_psql('postgres', 'INSERT INTO t VALUES (52, 0)');
	$node->stop('immediate');
	$_->{run}->finish for $session, $gate;
	$node->start;
	same_answers($node, "after a crash at $point", 'SELECT count(*), sum(k) FROM t WHERE k > 0',
		'SELECT k, v FROM t WHERE k BETWEEN 40 AND 60 ORDER BY k, v');
	check_index($node, 't_k');
}
flusher_waits_at('');

# Little memory, many writers: memtables are full again and again, because of more indexes than it
# has room for
$node->safe_psql('postgres', 'CREATE SEQUENCE s START 100000');
$node->safe_psql('postgres', "
	CREATE INDEX t_more_$_ ON t USING gpu_btree (v); SELECT gpuds_index_load('t_more_$_')") for 1 .. 8;
$node->safe_psql('postgres', 'INSERT INTO t SELECT 500000 + i, i FROM generate_series(1, 8000) i');
my $writers = start_pgbench($node, '-c 12 -j 2 -T 5', [ script_file('write', "
	\\set n random(1, 40)
	INSERT INTO t SELECT nextval('s'), i FROM generate_series(1, :n) i;
	DELETE FROM t WHERE k = (SELECT last_value - 50 FROM s);\n"), 3 ],
	[ script_file('read', "SELECT 1 / (count(*) >= 2900)::int FROM t WHERE k > 0;\n"), 1 ]);
ok(finish_pgbench($writers), 'writers and readers with little memory') or diag($writers->{out});
is($node->safe_psql('postgres', 'SELECT overflows > 0 FROM gpuds_memtables'), 't', 'overflows are counted');
check_index($node, 't_more_3');
$node->safe_psql('postgres', "DROP INDEX t_more_$_") for 1 .. 8;
same_answers($node, 'afterwards', 'SELECT count(*), sum(k) FROM t WHERE k >= 0',
	'SELECT count(*) FROM t WHERE k > 99000');
check_index($node, 't_k');

# Rows that are dead for everybody leave the mirror once a scan has been there, be it the one that has
# loaded it
$node->safe_psql('postgres', 'TRUNCATE t; INSERT INTO t SELECT i, i FROM generate_series(1, 1000) i');
$node->safe_psql('postgres', 'UPDATE t SET k = k + 1') for 1 .. 5;
my $entries = "SELECT entries FROM gpuds_indexes WHERE indexrelid = 't_k'::regclass AND device = '$device'";
my $all = index_sql('SELECT count(*), sum(k) FROM t WHERE k > 0');
$all =~ s/SELECT count/SET enable_bitmapscan = off; SELECT count/;
is($node->safe_psql('postgres', $all), '1000|505500', 'rows after updates');
ok($node->poll_query_until('postgres', "SELECT 1000 = ($entries)"), 'what is dead has left the mirror')
  or diag($node->safe_psql('postgres', $entries));
is($node->safe_psql('postgres', $all), '1000|505500', 'and the rows are there');
check_index($node, 't_k');
$node->safe_psql('postgres',
	'VACUUM (INDEX_CLEANUP ON) t; INSERT INTO t SELECT i, i FROM generate_series(1, 5000) i');
same_answers($node, 'TIDs are used again', 'SELECT count(*), sum(k) FROM t WHERE k > 0',
	'SELECT count(*) FROM t WHERE k BETWEEN 1 AND 100');
check_index($node, 't_k');

# The heap gives a killed entry's TID to a row with the same key: while a scan goes on that has asked
# its memtable before VACUUM came, and one that has none because it has loaded the mirror itself
for my $loads (0, 1)
{
	my $name = $loads ? 'a scan that has loaded the mirror' : 'a scan that keeps what the memtable said';
	my $lookup = index_sql('SELECT count(*) FROM t WHERE k = 980');

	$node->safe_psql('postgres', 'TRUNCATE t; INSERT INTO t VALUES (0, 0)');
	$node->safe_psql('postgres', index_sql('SELECT count(*) FROM t WHERE k >= 0'));
	flusher_waits_at('flush-apply');
	$gate = gate($node, 'flush-apply');
	# the cursor's first rows are in another page, whose pin keeps VACUUM from it
	$node->safe_psql('postgres', 'INSERT INTO t SELECT 1000 - i, i FROM generate_series(0, 999) i');
	held_at($node, 'flush-apply', "$name: the flusher is held");
	$node->safe_psql('postgres', 'DELETE FROM t WHERE k = 980 OR k BETWEEN 900 AND 950');
	$gate->quit if $loads;
	drained($name) if $loads;
	$node->safe_psql('postgres', "SELECT gpuds_index_evict('t_k')") if $loads;
	$cursor = $node->background_psql('postgres');
	$cursor->query_safe('
		SET enable_seqscan = off; SET enable_sort = off; SET enable_bitmapscan = off; BEGIN;
		DECLARE c CURSOR FOR SELECT k FROM t WHERE k > 0 ORDER BY k');
	$cursor->query_safe('FETCH 1 FROM c');
	$gate = gate($node, 'flush-apply') if $loads;
	$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) t');
	$cursor->query_safe('MOVE 940 FROM c');
	is($node->safe_psql('postgres', "INSERT INTO t VALUES (980, -1) RETURNING ctid"), '(0,22)',
		"$name: the TID is used again");
	$cursor->query_safe('MOVE ALL FROM c; COMMIT');
	$cursor->quit;
	flusher_waits_at('');
	$gate->quit;
	$node->safe_psql('postgres', 'INSERT INTO t VALUES (0, 0)');
	drained($name);
	is($node->safe_psql('postgres', $lookup), '1', "$name: the row is found");
	check_index($node, 't_k');
}

# A count by ranks, of a table all of whose pages are all-visible and full (226 rows): rows that come behind
# its look at the map, to further pages or to room that others have left, and get into the mirror before it
# is searched, are not among those that it counts
for my $room ('further pages', 'the same pages')
{
	my $same = $room eq 'the same pages';
	my $scan = $node->background_psql('postgres');

	$node->safe_psql('postgres', '
		CREATE TABLE g (k bigint) WITH (autovacuum_enabled = off);
		INSERT INTO g SELECT i % 200 FROM generate_series(1, 90 * 226 - 1) i;
		CREATE INDEX g_k ON g USING gpu_btree (k)');
	# the first change is what makes a memtable
	$node->safe_psql('postgres', "SELECT gpuds_index_load('g_k'); INSERT INTO g VALUES (0)");
	$node->safe_psql('postgres', 'DELETE FROM g WHERE k = 7') if $same;
	$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) g');
	is($node->safe_psql('postgres', "SELECT relallvisible = relpages FROM pg_class WHERE relname = 'g'"), 't',
		"$room: all pages are all-visible");
	my $right = $node->safe_psql('postgres', 'SELECT count(*) FROM g');
	my $size = $node->safe_psql('postgres', "SELECT pg_relation_size('g')");
	$gate = gate($node, 'memtable-collected');
	$scan->query_until(qr/go/, "
		SET gpuds.wait_at = 'memtable-collected'; SET enable_seqscan = off;
		\\echo go
		SELECT 'count ' || count(*) FROM g
		WHERE k = ANY (ARRAY(SELECT i FROM generate_series(0, 199) i));\n");
	held_at($node, 'memtable-collected', "$room: a count is held");
	$node->safe_psql('postgres', 'INSERT INTO g SELECT i % 200 FROM generate_series(1, 80) i');
	is($node->safe_psql('postgres', "SELECT pg_relation_size('g') = $size"), $same ? 't' : 'f', $room);
	drained($room, 'g_k');
	$gate->quit;
	is($scan->query_safe('SELECT 1'), "count $right\n1", "$room: the count has no new rows");
	$scan->quit;
	check_index($node, 'g_k');
	$node->safe_psql('postgres', 'DROP TABLE g');
}

# Which of many keys have rows: a GPU is asked about them as they come, by a copy of the map (membership.c)
my $found = "count(*) FILTER (WHERE found) "
  . "FROM unnest(gpuds_contains('h_k', ARRAY(SELECT i * 7919 % 2003 FROM generate_series(1, 2002) i))) found";

# Keys have an entry that the memtable says is gone and the mirror has, on a page that is all-visible, and
# one on another page
$node->safe_psql('postgres', '
	CREATE TABLE h (k bigint, n int) WITH (autovacuum_enabled = off);
	INSERT INTO h SELECT i, n FROM generate_series(1, 2) n, generate_series(1, 2002) i;
	CREATE INDEX h_k ON h USING gpu_btree (k)');
$node->safe_psql('postgres', "SELECT gpuds_index_load('h_k'); INSERT INTO h VALUES (0, 0)");
drained('keys that are there twice', 'h_k');
flusher_waits_at('flush-apply');
$gate = gate($node, 'flush-apply');
$node->safe_psql('postgres', 'INSERT INTO h VALUES (0, 0)');
held_at($node, 'flush-apply', 'keys that are there twice: the flusher is held');
$node->safe_psql('postgres', 'DELETE FROM h WHERE n = 1');
$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) h');
is($node->safe_psql('postgres', "SELECT $found"), '2002', 'keys that are there once');
$node->safe_psql('postgres', 'DELETE FROM h WHERE n = 2 AND k % 2 = 0');
is($node->safe_psql('postgres', "SELECT $found"), '1001', 'every other key');
flusher_waits_at('');
$gate->quit;

# Rows come to pages that the copy calls all-visible, and into the mirror, before it is searched
{
	my $scan = $node->background_psql('postgres');

	$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) h');
	is($node->safe_psql('postgres', "SELECT relallvisible = relpages FROM pg_class WHERE relname = 'h'"), 't',
		'all pages are all-visible again');
	drained('free room', 'h_k');
	$gate = gate($node, 'memtable-collected');
	$scan->query_until(qr/go/,
		"SET gpuds.wait_at = 'memtable-collected';\n\\echo go\nSELECT 'found ' || $found;\n");
	held_at($node, 'memtable-collected', 'a search for many keys is held');
	$node->safe_psql('postgres', 'INSERT INTO h SELECT i, 3 FROM generate_series(2, 2002, 2) i');
	drained('keys that come', 'h_k');
	$gate->quit;
	is($scan->query_safe('SELECT 1'), "found 1001\n1", 'the search does not find them');
	$scan->quit;
	is($node->safe_psql('postgres', "SELECT $found"), '2002', 'the next one does');
	check_index($node, 'h_k');
}

$node->stop;
done_testing();
