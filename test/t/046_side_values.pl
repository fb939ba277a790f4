# Included columns that entries have no room for, whose values are in a store by TID: while sessions
# insert, update, delete, VACUUM and give TIDs away; with less memory than they take; after crashes; on a
# standby and over a promotion; and where their memory goes.

use strict;
use warnings;

use GpudsTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

random_seed();
my $node = new_node('primary', streaming => 1, conf => "gpuds.include_memory = 1MB\nmax_connections = 40\n");

# What a row has in other columns is told by its v, so that a value of another row shows.  by_index answers
# by GpudsAggregate, index-only scans and GpudsJoin; by_table by a sequential scan.
my $query = <<'END';
SELECT format('%s %s %s %s %s %s', count(*), sum(v), sum(w), min(x), max(y), count(z))
	FROM t WHERE k BETWEEN lo AND hi
END
my $rows = <<'END';
SELECT format('%s %s',
		count(*) FILTER (WHERE w <> 3 * v OR x <> v + 1 OR y <> -v OR z <> v % 1000), sum(hashint8(v # z)))
	FROM t WHERE k BETWEEN lo AND hi
END
my $join = <<'END';
SELECT format('%s %s %s', count(*), sum(t.w), sum(t.z)) FROM o JOIN t USING (k) WHERE o.k BETWEEN lo AND hi
END
my $functions = '';
for my $way ('index', 'table')
{
	my $set = $way eq 'index'
		? 'SET enable_seqscan = off SET enable_bitmapscan = off SET gpuds.enable_scan = off
			SET enable_hashjoin = off SET enable_mergejoin = off SET enable_nestloop = off'
		: 'SET enable_indexscan = off SET enable_indexonlyscan = off SET enable_bitmapscan = off
			SET gpuds.enable_aggregate = off SET gpuds.enable_join = off SET gpuds.enable_scan = off';
	my $n = 0;

	$functions .= "CREATE FUNCTION by_${way}_" . ++$n
	  . "(lo int, hi int) RETURNS text LANGUAGE plpgsql STABLE $set AS \$\$ BEGIN RETURN ($_); END \$\$;\n"
	  for $query, $rows, $join;
	$functions .= "CREATE FUNCTION by_$way(lo int, hi int) RETURNS text LANGUAGE sql STABLE AS '
		SELECT by_${way}_1(lo, hi) || ''; '' || by_${way}_2(lo, hi) || ''; '' || by_${way}_3(lo, hi)';\n";
}
$node->safe_psql('postgres', <<"END");
CREATE TABLE t (id bigserial, k int, v bigint, w bigint, x bigint, y bigint, z bigint) WITH (fillfactor = 70);
CREATE FUNCTION fill(n int, most int) RETURNS void LANGUAGE sql AS \$\$
	INSERT INTO t (k, v, w, x, y, z)
		SELECT random() * 5000, v, 3 * v, v + 1, -v, v % 1000
		FROM (SELECT (random() * most)::bigint v FROM generate_series(1, n)) r \$\$;
SELECT fill(20000, 1000000);
CREATE INDEX t_k ON t USING gpu_btree (k) INCLUDE (v, w, x, y, z);
CREATE INDEX t_id ON t (id);
CREATE TABLE o AS SELECT i * 17 % 5000 AS k FROM generate_series(1, 300) i;
VACUUM ANALYZE t, o;
$functions
CREATE FUNCTION compare(lo int, hi int) RETURNS text LANGUAGE plpgsql AS \$\$
DECLARE
	a text := by_index(lo, hi);
	b text := by_table(lo, hi);
BEGIN
	IF a IS DISTINCT FROM b THEN
		RAISE 'by index %, by table %', a, b;
	END IF;
	RETURN a;
END \$\$;
END

sub same
{
	my ($on, $name) = @_;
	my ($rc, $out, $err) = $on->psql('postgres', "
		BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT compare(0, 5000); SELECT compare(100, 200); COMMIT");

	is($rc == 0 ? $err : "$rc $err", '', $name);
	return;
}

my $some = $query =~ s/lo AND hi/0 AND 5000/r;
like($node->safe_psql('postgres', "SET enable_seqscan = off; EXPLAIN (VERBOSE, COSTS OFF) $some"),
	qr/GpudsAggregate.*Index Only Scan/s, 'the index answers');
same($node, 'with less memory than all take');
same($node, 'and again');
is($node->safe_psql('postgres', '
	SELECT stores, memory_used BETWEEN 1 AND memory_total, memory_total FROM gpuds_included'),
	'1|t|1048576', 'memory is used');

# Writers, VACUUM and readers; readers are on a part of the table that is in memory, too
for my $round (1, 2)
{
	my $bench = start_pgbench($node, '-c 10 -T 5',
		[ script_file('insert', "SELECT fill(20, 1000000);\n"), 3 ],
		[ script_file('update', "
			\\set id random(1, 30000)
			UPDATE t SET v = v + 1, w = w + 3, x = x + 1, y = y - 1, z = (v + 1) % 1000
			WHERE id BETWEEN :id AND :id + 5;\n"), 3 ],
		[ script_file('move', "\\set id random(1, 30000)\nUPDATE t SET k = k + 1 WHERE id = :id;\n"), 3 ],
		[ script_file('roll_back', "
			\\set id random(1, 30000)
			BEGIN;
			SELECT fill(5, 1000000);
			SAVEPOINT s;
			UPDATE t SET v = 0, w = 0, x = 1, y = 0, z = 0 WHERE id = :id;
			ROLLBACK TO s;
			SELECT fill(5, 1000000);
			ROLLBACK;\n"), 1 ],
		[ script_file('delete', "
			\\set id random(1, 30000)
			DELETE FROM t WHERE id BETWEEN :id AND :id + 20;\n"), 3 ],
		[ script_file('vacuum', "
			SELECT pg_try_advisory_lock(1) AS got \\gset
			\\if :got
			VACUUM (INDEX_CLEANUP ON) t;
			SELECT pg_advisory_unlock(1);
			\\endif\n"), 1 ],
		[ script_file('read', "
			\\set k random(0, 4900)
			BEGIN ISOLATION LEVEL REPEATABLE READ;
			SELECT compare(:k, :k + 50);
			SELECT pg_sleep(0.05);
			SELECT compare(:k + 20, :k + 100);
			COMMIT;\n"), 8 ]);
	ok(finish_pgbench($bench), "sessions agree: round $round");
	same($node, "afterwards: round $round");
	check_index($node, 't_k');
	next if $round == 2;
	$node->stop('immediate');
	$node->append_conf('postgresql.conf', "gpuds.include_memory = 64MB\n");
	$node->start;
	same($node, 'after a crash');
}

# Sessions that do not know yet that the database's row has changed: one that inserts, one that reads
my $slow = start_pgbench($node, '-c 1 -t 1', [ script_file('slow', <<'END'), 1 ]);
INSERT INTO t (k, v, w, x, y, z)
	SELECT i, v, 3 * v, v + 1, -v, v % 1000
	FROM (SELECT i, 900000 + i AS v, pg_sleep(0.1) FROM generate_series(1, 20) i OFFSET 0) r;
END
sleep 1;
$node->safe_psql('postgres', 'GRANT CONNECT ON DATABASE postgres TO PUBLIC');
same($node, 'while a session inserts that does not know of a GRANT');
ok(finish_pgbench($slow), 'it has inserted');
same($node, 'and its rows are right');
check_index($node, 't_k');
my $reader = $node->background_psql('postgres');
my $all = 'SELECT count(*), sum(w), sum(z), max(x) FROM t WHERE k >= 0';
$reader->query_safe("
	BEGIN; SET enable_seqscan = off; SET enable_bitmapscan = off; SET gpuds.enable_scan = off;
	PREPARE s AS $all; EXECUTE s");
$node->safe_psql('postgres', 'GRANT CONNECT ON DATABASE postgres TO PUBLIC');
$node->safe_psql('postgres', 'SELECT fill(20, 1000000)');
my $right = $node->safe_psql('postgres', "
	SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off;
	SET gpuds.enable_aggregate = off; SET gpuds.enable_scan = off; $all");
like($reader->query_safe('EXECUTE s'), qr/^\Q$right\E$/m, 'a session that does not know of it reads');
$reader->quit;

# A standby has no store, and a promoted one makes its own
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
$node->safe_psql('postgres', 'SELECT fill(500, 1000000)');
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
same($standby, 'on a standby');
is($standby->safe_psql('postgres', 'SELECT stores FROM gpuds_included'), '0', 'which has no store');
$standby->promote;
same($standby, 'promoted');
$standby->safe_psql('postgres', 'SELECT fill(500, 1000000)');
same($standby, 'and changed');
is($standby->safe_psql('postgres', 'SELECT stores FROM gpuds_included'), '1', 'with a store');
$standby->stop;

# On demand.  The table is rewritten: VACUUM leaves a page with a dead line pointer as it is if there are
# few of them, and rows far above a page's average are not stored.
$node->safe_psql('postgres', 'VACUUM FULL t');
same($node, 'a rewritten table');
ok($node->poll_query_until('postgres', 'SELECT stores = 1 FROM gpuds_included'),
	'whose former file loses its store');
is($node->safe_psql('postgres', "
	SELECT gpuds_index_evict('t_k'); SELECT stores, memory_used FROM gpuds_included"),
	"t\n0|0", 'evicted');
is($node->safe_psql('postgres', "
	SELECT gpuds_index_load('t_k'); SELECT stores, memory_used > 0 FROM gpuds_included"),
	"t\n1|t", 'loaded');
unlike($node->safe_psql('postgres', '
	VACUUM t; SET enable_seqscan = off; SET enable_bitmapscan = off; SET gpuds.enable_scan = off;
	EXPLAIN (ANALYZE, TIMING OFF) SELECT sum(z) FROM t WHERE k >= 0'),
	qr/Heap Fetches: [1-9]/, 'no row is visited then');
check_index($node, 't_k');

# Memory comes back: of a dropped table, of one that was emptied, of a rolled-back file
my $used = $node->safe_psql('postgres', 'SELECT memory_used FROM gpuds_included');
$node->safe_psql('postgres',
	'CREATE TABLE u AS TABLE t; CREATE INDEX u_k ON u USING gpu_btree (k) INCLUDE (v, w, x, y, z)');
my $sum = '
	SET enable_seqscan = off; SET enable_bitmapscan = off; SET gpuds.enable_scan = off;
	SELECT sum(z) FROM u WHERE k >= 0';
$node->safe_psql('postgres', $sum);
cmp_ok($node->safe_psql('postgres', 'SELECT memory_used FROM gpuds_included'), '>', $used,
	'another table takes memory');
$node->safe_psql('postgres', 'DROP TABLE u');
ok($node->poll_query_until('postgres', "SELECT memory_used = $used AND stores = 1 FROM gpuds_included"),
	'which comes back when it is dropped');
$node->safe_psql('postgres', 'TRUNCATE t; SELECT fill(100, 10)');
ok($node->poll_query_until('postgres', 'SELECT memory_used = 0 AND stores = 0 FROM gpuds_included'),
	'or emptied');
same($node, 'an emptied table');

# How many rows are visited for their values
sub fetches
{
	my ($plan) = $node->safe_psql('postgres',
		$sum =~ s/SELECT sum/EXPLAIN (ANALYZE, TIMING OFF) SELECT sum/r) =~ /Heap Fetches: (\d+)/;
	return $plan;
}

# A table whose pages become fuller after its store was made
$node->safe_psql('postgres', '
	CREATE TABLE u AS TABLE t LIMIT 3; CREATE INDEX u_k ON u USING gpu_btree (k) INCLUDE (v, w, x, y, z);
	VACUUM ANALYZE u');
$node->safe_psql('postgres', $sum);
$node->safe_psql('postgres',
	'INSERT INTO u SELECT i, i, i, i, i, i, i FROM generate_series(1, 10000) i; VACUUM ANALYZE u');
$node->safe_psql('postgres', $sum);
is(fetches(), '0', 'rows of fuller pages find their place');
$node->safe_psql('postgres', 'DROP TABLE u');

# No memory at all; and a store that makes room for another one
$node->append_conf('postgresql.conf', "gpuds.include_memory = 0\n");
$node->restart;
same($node, 'without memory');
is($node->safe_psql('postgres', 'SELECT stores, memory_total FROM gpuds_included'), '0|0', 'there is none');
$node->append_conf('postgresql.conf', "gpuds.include_memory = 1MB\n");
$node->restart;
$node->safe_psql('postgres', '
	SELECT fill(40000, 1000000); CREATE TABLE u AS TABLE t;
	CREATE INDEX u_k ON u USING gpu_btree (k) INCLUDE (v, w, x, y, z); VACUUM t, u');
same($node, 'one table fills the memory');

is(fetches(), '40100', 'another one has to wait');
is($node->safe_psql('postgres', 'SELECT stores FROM gpuds_included'), '1', 'and has no store');
my $fetches;
for (1 .. 60)
{
	$fetches = fetches();
	last if $fetches < 40100;
	sleep 1;
}
cmp_ok($fetches, '<', 40100, 'until the first one was not read for a while');
$node->stop;
done_testing();
