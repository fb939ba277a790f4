# Replicas: an index on several GPUs.  Each has all changes, the one with the fewest requests is asked, the
# loss of one costs no load, and what gives an index's memory back gives back that of all.

use strict;
use warnings;

use GpudsCards;
use GpudsPoints;
use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = several_cards('replicas');
$node->append_conf('postgresql.conf', "gpuds.device_ids = '0,1,2,3'\n");
$node->restart;

sub value { return $node->safe_psql('postgres', $_[0]) }

my $used = "SELECT count(*) FROM gpuds_devices WHERE kind = 'cuda' AND memory_used > 0";

# How many copies an index has, and on how many GPUs; and the same, after a scan of it
sub copies_of
{
	return "SELECT count(*) || ' ' || count(DISTINCT device) FROM gpuds_indexes
		WHERE indexrelname = '$_[0]' AND state = 'loaded'";
}
sub after_scan { return "SELECT CASE WHEN (SELECT count(v) FROM t WHERE k = 20) >= 0 THEN ($_[0]) END" }
sub scanned { return after_scan(copies_of('i')) }

# Queries of table t by its index, and the same without
my @queries = ('SELECT count(*), sum(v) FROM t WHERE k BETWEEN 500 AND 900',
	'SELECT k, v FROM t WHERE k = 7 ORDER BY v', 'SELECT min(k), max(k), count(*) FROM t WHERE k > 19000',
	'SELECT k % 10 AS g, count(*) FROM t WHERE k < 300 GROUP BY g ORDER BY g');

sub answers { return answers_agree($node, $_[0], @queries) }

sub fails { return ($node->psql('postgres', $_[0]))[2] }

cards_are($node, 'all serve', ('ready') x 4);
value('CREATE TABLE t (k bigint, v int);
	INSERT INTO t SELECT i::bigint * 7919 % 20000, i FROM generate_series(1, 20000) i;
	CREATE INDEX i ON t USING gpu_btree (k); VACUUM (FREEZE, ANALYZE) t');

# How many there can be
like(fails("SELECT gpuds_index_load('i', $_)"), qr/must be between 1 and 4/, "not $_") for (-1, 0, 5);
like(fails("SET gpuds.device = cpu; SELECT gpuds_index_load('i', 2)"), qr/must be between 1 and 1/,
	'not without a GPU');
like(fails('CREATE TEMP TABLE x (k int); CREATE INDEX xi ON x USING gpu_btree (k);
	SELECT gpuds_index_load(\'xi\', 2)'), qr/must be between 1 and 1/, 'not of a temporary index');

value("SELECT gpuds_index_load('i', 3)");
is(value(copies_of('i')), '3 3', 'three copies on three GPUs');
value("SELECT gpuds_index_load('i')");
is(value(copies_of('i')), '3 3', 'the number stays');
answers('three copies');

# A change goes to all of them, and to what is not all-visible.
value('UPDATE t SET k = k + 5 WHERE k % 7 = 0; DELETE FROM t WHERE k % 11 = 0;
	INSERT INTO t SELECT NULL, i FROM generate_series(1, 10) i;
	INSERT INTO t SELECT 700, i FROM generate_series(1, 3000) i');
answers('changed');
check_index($node, 'i', 'each copy agrees with table and index');

# Fewer, and none
value("SELECT gpuds_index_load('i', 2)");
is(value(copies_of('i')) . value($used), '2 22', 'two of them');
value("SELECT gpuds_index_evict('i')");
is(value($used), '0', 'evicted: all memory is back');
answers('evicted');
becomes($node, 'loaded by scans: both come back', scanned(), '2 2');

# What is joined is asked where both are.
value('CREATE TABLE u (k bigint); INSERT INTO u SELECT i FROM generate_series(1, 9000) i;
	CREATE INDEX iu ON u USING gpu_btree (k); VACUUM (FREEZE, ANALYZE) u');
value("SELECT gpuds_index_load('iu', 4)");
is(value(index_sql('SELECT count(*) FROM t JOIN u USING (k)')),
	value(scan_sql('SELECT count(*) FROM t JOIN u USING (k)')), 'a join of copies');

# Files that go
value('CREATE INDEX j ON t USING gpu_skiplist (k); CREATE INDEX h ON t USING gpu_hash (k)');
value("SELECT gpuds_index_load('$_', 4)") for ('j', 'h');
is(value(copies_of('j')) . ' ' . value(copies_of('h')), '4 4 4 4', 'other access methods');
value('DROP INDEX j; REINDEX INDEX h; DROP TABLE u');
becomes($node, 'dropped and made anew: only the other index has memory', $used, '2');
value('BEGIN; TRUNCATE t; ROLLBACK');
answers('truncated and rolled back');
is(value(scanned()), '2 2', 'it has its copies');
value('CREATE TABLE w AS SELECT * FROM t; TRUNCATE t');
becomes($node, 'truncated: all memory is back', $used, '0');
value('INSERT INTO t SELECT * FROM w; DROP INDEX h');
value('VACUUM (FREEZE, ANALYZE) t');
answers('filled again');
is(value(copies_of('i')), '1 1', 'another file: one copy until more are asked for');

# A loader that comes after fewer were asked for has nothing to do.  It waits for a catalog that the session
# has locked.
value("SELECT gpuds_index_load('i', 2); SELECT gpuds_index_evict('i'); SET enable_seqscan = off;
	BEGIN; LOCK TABLE pg_catalog.pg_index IN ACCESS EXCLUSIVE MODE;
	DO \$\$ BEGIN
		WHILE NOT EXISTS (SELECT FROM pg_locks WHERE relation = 'pg_index'::regclass AND NOT granted) LOOP
			PERFORM count(v) FROM t WHERE k = 20; PERFORM pg_sleep(0.01);
		END LOOP;
	END \$\$; SELECT gpuds_index_load('i', 1); COMMIT");
my $loaders = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'gpuds loader'";
becomes($node, 'no loader', $loaders, '0');
is(value(copies_of('i')), '1 1', 'fewer: none comes back');

# More of them than there is room for: the others keep theirs
value("SELECT gpuds_index_load('i', 4)");
# (an entry of an AVL tree takes 64 bytes, others 23 to 28)
my $rows = value("SELECT CASE amname WHEN 'gpu_avl' THEN 300000 ELSE 500000 END
	FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE relname = 'i'");
value("CREATE TABLE b (k bigint, v int); INSERT INTO b SELECT i, i FROM generate_series(1, $rows) i;
	CREATE INDEX bi ON b USING gpu_btree (k); CREATE INDEX bj ON b USING gpu_btree (v);
	VACUUM (FREEZE, ANALYZE) b");
value("SELECT gpuds_index_load('$_', 4)") for ('bi', 'bj');
isnt(value(copies_of('i')), '4 4', 'indexes that need the room evict copies');
memory_is_kept($node, 'more copies than there is room for');
answers('more copies than there is room for');
value('DROP TABLE b');
becomes($node, 'room again: all come back', scanned(), '4 4');

SKIP:
{
	skip 'not built with INJECTION_POINTS=1', 1 unless injection_points($node);

	# A loader ends before it has applied what the load has left: another one does it.
	value("SELECT gpuds_index_load('i', 2); INSERT INTO t VALUES (1, 1);
		ALTER SYSTEM SET gpuds.wait_at = 'catch-up-read'");
	$node->reload;
	becomes($node, 'all who begin will wait', 'SHOW gpuds.wait_at', 'catch-up-read');
	my $gate = gate($node, 'catch-up-read');
	{
		local $ENV{PGOPTIONS} = "-c gpuds.wait_at=";
		value("SELECT gpuds_index_evict('i')");
		becomes($node, 'a loader is there', after_scan($loaders), '1');
	}
	held_at($node, 'catch-up-read', 'it is held');
	value('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = \'gpuds loader\'');
	becomes($node, 'it ends', $loaders, '0');
	value('ALTER SYSTEM RESET gpuds.wait_at');
	$node->reload;
	$gate->quit;
	becomes($node, 'both copies have all', after_scan("SELECT count(*) FROM gpuds_indexes
		WHERE indexrelname = 'i' AND applied_position = journal_position"), '2');

	sub losses { return "SELECT sum(losses) FROM gpuds_devices WHERE kind = 'cuda'" }
	sub loads { return value("SELECT loads FROM gpuds_stat_indexes WHERE indexrelname = 'i'") }
	sub device_of_scan
	{
		return value('EXPLAIN (ANALYZE, VERBOSE, COSTS OFF) SELECT count(*) FROM t WHERE k < 15000') =~
		  /Device: (cuda:\d)$/m ? $1 : '';
	}
	# One has a request that does not come to an end: others are asked.
	value("SELECT gpuds_index_load('i', 1); SELECT gpuds_index_load('i', 2)");
	my $busy = $node->background_psql('postgres', on_error_stop => 0);
	my $pid = $busy->query('SELECT pg_backend_pid()');
	$busy->query_until(qr/go/, "SET gpuds.device_fault = 'hold';\n\\echo go\n"
		  . 'SELECT count(*) FROM t WHERE k < 15000;' . "\n");
	$node->poll_query_until('postgres',
		"SELECT wait_event_type = 'Extension' FROM pg_stat_activity WHERE pid = $pid");
	my %asked = map { $_ => 1 } map { device_of_scan() } 1 .. 6;
	is(scalar keys %asked, 1, 'the card without requests is asked');
	value("SELECT pg_cancel_backend($pid)");
	$busy->quit;

	# One copy after the other is lost: no load, as long as one is there.
	value("SELECT gpuds_index_load('i', 3)");
	value('UPDATE t SET v = v + 1 WHERE k % 3 = 0');
	answers('changed again');
	my $loads = loads();
	fail_to_open($node, 1000);
	for my $lost (1, 2)
	{
		is(lose_card($node, $queries[0]), value(scan_sql($queries[0])),
			"lost under a query ($lost): right answer");
		becomes($node, "$lost lost", losses(), $lost);
		answers("$lost lost");
	}
	becomes($node, 'the free card has taken one', scanned(), '2 2');
	is(loads(), $loads + 1, "no other load");
	check_index($node, 'i', 'all that are left agree');
	fail_to_open($node, 0);
	cards_are($node, 'all serve again', ('ready') x 4);
	answers('all serve again');
	becomes($node, 'three copies again', scanned(), '3 3');

	# Readers and writers while one card after the other is lost
	value("SELECT gpuds_index_load('i', 4)");
	value('DELETE FROM t WHERE k BETWEEN 1500 AND 1501; INSERT INTO t VALUES (1500, 0)');
	my $right = value('SELECT sum(v) FROM t WHERE k BETWEEN 1000 AND 9000');
	my $reads = script_file('reads', "SET client_min_messages = error;
		SELECT 1 / (sum(v) = $right)::int FROM t WHERE k BETWEEN 1000 AND 9000;\n");
	my $writes = script_file('writes', "SET client_min_messages = error;
		BEGIN; UPDATE t SET v = v + 1 WHERE k = 1500; UPDATE t SET k = k + 1, v = v - 1 WHERE k = 1500;
		UPDATE t SET k = k - 1 WHERE k = 1501; COMMIT;
		BEGIN; INSERT INTO t SELECT 2000, 1 FROM generate_series(1, 20); ROLLBACK;\n");
	my $bench = start_pgbench($node, '-c 8 -j 2 -T 10', [ $reads, 3 ], [ $writes, 1 ]);
	for (1 .. 8)
	{
		lose_card($node, $queries[0]);
		select(undef, undef, undef, 0.5);
	}
	ok(finish_pgbench($bench), 'lost again and again: right answers') or diag($bench->{out});
	cards_are($node, 'at the end all serve', ('ready') x 4);
	answers('at the end');
	check_all_indexes($node, 'at the end: all copies are whole');
}

$node->stop('fast');
unlike(slurp_file($node->logfile), qr/was terminated by signal|PANIC/, 'nothing crashed');

done_testing();
