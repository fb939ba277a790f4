# Predicate locks on cells of the key space: of two SERIALIZABLE transactions of which one has read by an
# index what the other writes, one fails, whatever the types, the conditions and the plans are; of those on
# keys that have nothing to do with each other, none fails.

use strict;
use warnings;

use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;

random_seed();
my $node = new_node('predicate', conf => "max_pred_locks_per_transaction = 128\n");
my ($reader, $writer, $cleaner) = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 3;

$node->safe_psql('postgres', 'CREATE TABLE other (a int); CREATE TABLE many (k int)');
$_->query_safe('SET enable_seqscan = off') for $reader, $writer;

# fails(read, write): the reader reads, the writer writes and commits, the reader writes what the writer has
# read.  So it must fail if it has read what the writer has written, and must not otherwise.
sub fails
{
	my ($read, $write) = @_;
	my $answer;

	$reader->query_safe("BEGIN ISOLATION LEVEL SERIALIZABLE; $read");
	$writer->query_safe("BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*) FROM other; $write; COMMIT");
	$reader->query('INSERT INTO other VALUES (1)');
	$reader->query('COMMIT');
	$answer = $reader->{stderr} =~ /could not serialize/ ? 1 : 0;
	die $reader->{stderr} if $reader->{stderr} =~ /ERROR/ && !$answer;
	$reader->{stderr} = '';
	return $answer;
}

# A node of gpuds is in the plan of what the reader reads: no others may be chosen, or they cost a multiple
sub plan_has
{
	my ($read, $name) = @_;
	like(scalar $reader->query_safe("EXPLAIN (COSTS OFF) $read"), qr/\b$name\b/, "$name: $read");
	return;
}

# Each: a table's columns, an index's, conditions that nothing meets, a row that meets all of them, and one
# that meets none and shares no cell with them.
my @cases = (
	[ 'a int', 'a', [ 'a = 5', 'a IN (5, 900)', 'a BETWEEN 2 AND 9', 'a = 5::bigint', 'a > 4 AND a < 260' ],
		'5', '70000' ],
	[ 'a int', 'a DESC NULLS LAST', [ 'a = -1', 'a BETWEEN -5 AND 3' ], '-1', '1000' ],
	[ 'a int', 'a', ['a IS NULL'], 'NULL', '0' ],
	[ 'a int', 'a NULLS FIRST', ['a IS NULL'], 'NULL', '0' ],
	[ 'a smallint', 'a', [ 'a = 7', 'a BETWEEN 0 AND 300' ], '7', '-9000' ],
	[ 'a bigint', 'a', [ 'a = 5', 'a BETWEEN 1 AND 1000000' ], '5', '1::bigint << 40' ],
	[ 'a float8', 'a', [ 'a = 0', 'a = -0.0::float8', 'a = 0::float4' ], "'-0'", '1' ],
	[ 'a float4', 'a', ["a = 'NaN'"], "'NaN'", "'Infinity'" ],
	[ 'a numeric(8,2)', 'a', [ 'a = 1', 'a = 1.000', 'a BETWEEN 0.995 AND 1.005' ], '1.00', '1.01' ],
	[ 'a date', 'a', [ "a = '2026-03-01'::timestamp", "a BETWEEN '2026-02-20' AND '2026-04-10'" ],
		"'2026-03-01'", "'2028-03-01'" ],
	[ 'a timestamptz', 'a', ["a >= '2026-03-01 12:00+00' AND a < '2026-03-01 13:00+00'"],
		"'2026-03-01 14:30+02'", "'2026-04-01 12:00+00'" ],
	[ 'a interval', 'a', ["a = '1 month'"], "'30 days'", "'31 days'" ],
	[ 'a uuid', 'a', ["a = 'deadbeef-0000-0000-0000-000000000001'"],
		"'{DEADBEEF-0000-0000-0000-000000000001}'", "'deadbeef-0000-0000-0000-000000000002'" ],
	[ 'a bool', 'a', ['a > false'], 'true', 'false' ],
	# of several columns all, or the first ones
	[ 'a int, b int', 'a, b',
		[ 'a = 3', 'a = 3 AND b = 4', 'a = 3 AND b BETWEEN 1 AND 7', 'a IN (3, 8) AND b = 4' ],
		'3, 4', '300, 4' ],
	[ 'a int, b int', 'a, b', [ 'a = 3 AND b = 4', 'a = 3 AND b BETWEEN 1 AND 7' ], '3, 4', '3, 5000' ],
	[ 'a int, b int', 'a, b DESC', [ 'a IS NULL', 'a IS NULL AND b IS NULL', 'b IS NULL AND a IS NULL' ],
		'NULL, NULL', '3, NULL' ],
	[ 'a uuid, b bool', 'a, b', ["a = 'deadbeef-0000-0000-0000-000000000001'"],
		"'deadbeef-0000-0000-0000-000000000001', true", "'deadbeef-0000-0000-0000-000000000002', true" ],
	[ 'a bool, b uuid', 'a, b', ["a > false AND b = 'deadbeef-0000-0000-0000-000000000001'"],
		"true, 'deadbeef-0000-0000-0000-000000000001'", "false, 'deadbeef-0000-0000-0000-000000000001'" ],
	# included columns are not of the key
	[ 'a int, b bigint', 'a) INCLUDE (b', [ 'a = 3', 'a = 3 AND b = 4' ], '3, 4', '4, 4' ],
	[ 'a text', '-a', [ "a = 'x'", "a = ANY ('{x,y}')" ], "'x'", "'z'" ],
	[ 'a numeric', '-a', [ 'a = 1.0', 'a IN (1.00, 3)' ], '1.000', '2' ],
	[ 'a char(5)', '-a', [ "a = 'x'", "a = 'x  '" ], "'x '", "'z'" ],
	[ 'a int, b text', '-a, b', [ "a = 1 AND b = 'x'", 'a = 1' ], "1, 'x'", "2, 'x'" ],
	[ 'a int', '-a', [ 'a = 5', 'a IN (5, 6)' ], '5', '7' ]);

my @plans =
  map { "SET enable_indexscan = $_->[0]; SET enable_bitmapscan = $_->[1]; SET gpuds.enable_scan = $_->[2]" }
  [ 'on', 'off', 'off' ], [ 'off', 'on', 'off' ], [ 'on', 'on', 'on' ];

# What is locked depends on keys, not on structures, so gpu_skiplist is as gpu_btree
for my $am (qw(gpu_btree gpu_hash))
{
	my (@missed, @false);

	for my $case (@cases)
	{
		my ($columns, $index, $conditions, $meets, $other) = @$case;

		# A minus marks indexes of gpu_hash alone, which has no order
		next if $index =~ /^-/ && $am ne 'gpu_hash';
		next
		  if $index !~ /^-/ && $am eq 'gpu_hash' && "$index@$conditions" =~ /DESC|NULLS|BETWEEN|[<>]|INCLUDE/;
		$index =~ s/^-//;
		$cleaner->query_safe("SET client_min_messages = warning; DROP TABLE IF EXISTS t;
			CREATE TABLE t ($columns); CREATE INDEX ON t USING $am ($index)");
		for my $condition (@$conditions)
		{
			$reader->query_safe($plans[ int(rand(@plans)) ]);
			my $read = (int(rand(2)) ? 'SELECT *' : 'SELECT count(*)') . " FROM t WHERE $condition";

			push @missed, $read unless fails($read, "INSERT INTO t VALUES ($meets)");
			$cleaner->query_safe('DELETE FROM t; VACUUM t');
			push @false, $read if fails($read, "INSERT INTO t VALUES ($other)");
			$cleaner->query_safe('DELETE FROM t; VACUUM t');
		}
	}
	is(join("\n", @missed), '', "$am: who has read a key fails if another inserts it");
	is(join("\n", @false), '', "$am: nobody fails for another key");
}

# Keys that plan nodes and functions look for in batches; rows of many
$node->safe_psql('postgres', <<'END');
DROP TABLE t;
CREATE TABLE t (k int, v int);
INSERT INTO t SELECT i * 100, i FROM generate_series(1, 5000) i;
CREATE INDEX t_k ON t USING gpu_btree (k) INCLUDE (v);
INSERT INTO many VALUES (150), (250);
VACUUM ANALYZE t, many;
END
$reader->query_safe('RESET enable_indexscan; RESET enable_bitmapscan; SET enable_hashjoin = off');
$reader->query_safe('SET enable_mergejoin = off; SET enable_nestloop = off');
my $reset = 'DELETE FROM t WHERE k % 100 <> 0;
	INSERT INTO t SELECT 5000, 50 WHERE NOT EXISTS (SELECT FROM t WHERE k = 5000); VACUUM t';
my %reads = (
	'a semijoin' => 'SELECT count(*) FROM many m WHERE EXISTS (SELECT FROM t WHERE t.k = m.k)',
	'an antijoin' => 'SELECT count(*) FROM many m WHERE NOT EXISTS (SELECT FROM t WHERE t.k = m.k)',
	'a join' => 'SELECT m.k, t.v FROM many m JOIN t ON t.k = m.k',
	'gpuds_contains' => q{SELECT gpuds_contains('t_k', ARRAY[150, 250])},
	'gpuds_lookup' => q{SELECT count(*) FROM gpuds_lookup('t_k', ARRAY[150, 250])},
	'gpuds_count' => q{SELECT gpuds_count('t_k', 110, 280)},
	'a sum' => 'SELECT sum(v) FROM t WHERE k BETWEEN 110 AND 280',
	'groups' => 'SELECT k, count(*) FROM t WHERE k BETWEEN 110 AND 280 GROUP BY k');

plan_has($reads{$_}, 'GpudsJoin') for 'a semijoin', 'an antijoin', 'a join';
for my $name (sort keys %reads)
{
	my $inserted = fails($reads{$name}, 'INSERT INTO t VALUES (150, 1)');
	$cleaner->query_safe($reset);
	my $moved = fails($reads{$name}, 'UPDATE t SET k = 250 WHERE k = 5000');
	$cleaner->query_safe($reset);
	my $far =
	  fails($reads{$name}, 'INSERT INTO t VALUES (90050, 1); UPDATE t SET v = v + 1 WHERE k = 400000');
	$cleaner->query_safe($reset);
	is("$inserted $moved $far", '1 1 0', "$name: phantoms, and no others");
}

# Rows that are there, of pages that are all-visible: few of them, and more than are locked one by one
for my $read (
	'k BETWEEN 4950 AND 5100', 'k BETWEEN 100 AND 10000', 'k > 0')
{
	for my $what ('count(*)', 'sum(v)', 'k, v', 'k')
	{
		my @failed = map {
			my $failed = fails("SELECT $what FROM t WHERE $read", $_);
			$cleaner->query_safe($reset);
			$failed;
		} 'DELETE FROM t WHERE k = 5000', 'UPDATE t SET v = -1 WHERE k = 5000';

		is("@failed", '1 1', "$what of $read: rows that another changes");
	}
}

plan_has("SELECT $_ FROM t WHERE k > 0", 'GpudsAggregate') for 'count(*)', 'sum(v)';

# Few rows, asked of functions, whatever the planner says: of pages that are all-visible, and of one that is
# not, but has a state
for my $call (q{gpuds_count('t_k', 4950, 5100)}, q{gpuds_contains('t_k', ARRAY[5000, 5100])})
{
	my $few = "SELECT $call";

	for my $pages ('VACUUM t', join('; ', 'UPDATE t SET v = v WHERE k = 5000', ($few) x 3))
	{
		$cleaner->query_safe($pages);
		is(fails($few, 'DELETE FROM t WHERE k = 5000'), '1', "$call after $pages: a deleted row");
		$cleaner->query_safe($reset);
	}
}

# Who counts a few rows locks these, or core their pages, or a GPU the table: another row's writer is in the
# way only if a lock covers that row
my $few = 'SELECT count(*), sum(v) FROM t WHERE k BETWEEN 4950 AND 5100';
my $row = $node->safe_psql('postgres', "SELECT translate(ctid::text, '()', '') FROM t WHERE k = 400000");
my ($page, $tuple) = split /,/, $row;
$reader->query_safe("BEGIN ISOLATION LEVEL SERIALIZABLE; $few");
my $covered = $reader->query_safe("SELECT count(*) > 0 FROM pg_locks
	WHERE relation = 't'::regclass AND mode = 'SIReadLock' AND pid = pg_backend_pid()
		AND (page IS NULL OR page = $page) AND (tuple IS NULL OR tuple = $tuple)");
$reader->query_safe('COMMIT');
is(fails($few, 'DELETE FROM t WHERE k = 400000'), $covered eq 't' ? '1' : '0', 'few rows, and another row');

# Entries of two indexes, which the writer appends by one record if it knows the pages
$node->safe_psql('postgres', 'CREATE TABLE two (a int, b int);
	CREATE INDEX ON two USING gpu_btree (a); CREATE INDEX ON two USING gpu_btree (b)');
$writer->query_safe('INSERT INTO two VALUES (1, 1); INSERT INTO two VALUES (1, 1)');
is(fails("SELECT * FROM two WHERE $_ = 5", 'INSERT INTO two VALUES (5, 5)'), '1', "$_ of two indexes")
  for qw(a b);
$node->safe_psql('postgres', 'CREATE TABLE excluding (a int, EXCLUDE USING gpu_btree (a WITH =))');
is(fails('SELECT * FROM excluding WHERE a = 5', 'INSERT INTO excluding VALUES (5)'),
	'1', 'an entry that is appended at once');

# One row of several that a statement inserts, by each index that the table has
my $rows = 'INSERT INTO two VALUES (-70000, 0), (5, 70000), (70000, 5), (3, 3)';
is(fails("SELECT * FROM two WHERE $_ = 5", $rows), '1', "$_: one of the rows of a statement") for qw(a b);

# Rows that are counted or joined where they are not given: phantoms, and rows that another deletes
$node->safe_psql('postgres', <<'END');
CREATE TABLE p (k int, v int);
CREATE TABLE p_1 () INHERITS (p);
CREATE TABLE p_2 () INHERITS (p);
CREATE INDEX ON p USING gpu_btree (k) INCLUDE (v);
CREATE INDEX ON p_1 USING gpu_btree (k) INCLUDE (v);
CREATE INDEX ON p_2 USING gpu_btree (k) INCLUDE (v);
INSERT INTO p_1 SELECT 2 * i, i % 7 FROM generate_series(1, 5000) i;
INSERT INTO p_2 SELECT 2 * i + 1, i % 7 FROM generate_series(1, 5000) i;
CREATE TABLE e (a int, b int);
INSERT INTO e SELECT i, i + 1 FROM generate_series(1, 2000) i;
CREATE INDEX e_ab ON e USING gpu_btree (a, b);
VACUUM ANALYZE p, p_1, p_2, e;
SELECT gpuds_index_load('e_ab');
END
my @child = ('INSERT INTO p_1 VALUES (-5, 0)', 'DELETE FROM p_2 WHERE k = 11');
my @edge = ('INSERT INTO e VALUES (1, 5000)', 'DELETE FROM e WHERE a = 700');

for (
	[ 'GpudsOffset', 'SELECT k FROM p ORDER BY k OFFSET 6000 LIMIT 1', @child ],
	[ 'GpudsPercentile', 'SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY k) FROM p', @child ],
	[ 'GpudsAggregate', 'SELECT v, count(*) FROM p_2 WHERE k < 9000 GROUP BY v',
		'INSERT INTO p_2 VALUES (-5, 0)', 'DELETE FROM p_2 WHERE k = 13' ],
	[ 'gpuds_components', q{SELECT count(*) FROM gpuds_components('e_ab')}, @edge ],
	[ 'gpuds_triangles', q{SELECT gpuds_triangles('e_ab')}, @edge ],
	[ 'gpuds_bfs', q{SELECT count(*) FROM gpuds_bfs('e_ab', '{1}'::int[])}, @edge ])
{
	my ($name, $read, @writes) = @$_;

	plan_has($read, $name) if $name =~ /^G/;
	is(join(' ', map { fails($read, $_) } @writes), '1 1', "$name: phantoms, and rows that another deletes");
	# The next ones find them as they were
	$cleaner->query_safe("DELETE FROM p WHERE k = -5; DELETE FROM e WHERE b = 5000;
		INSERT INTO p_2 SELECT k, 0 FROM (VALUES (11), (13)) q(k)
		WHERE NOT EXISTS (SELECT FROM p_2 WHERE p_2.k = q.k);
		INSERT INTO e SELECT 700, 701 WHERE NOT EXISTS (SELECT FROM e WHERE a = 700);
		VACUUM p_1; VACUUM p_2; VACUUM e");
}

# Searches of many edges, on a CPU, lock what they have followed only
$node->safe_psql('postgres', 'CREATE TABLE h (a int, b int);
	INSERT INTO h SELECT 1, i FROM generate_series(1, 3000) i;
	INSERT INTO h SELECT i, 1 FROM generate_series(10001, 30000) i;
	CREATE INDEX h_ab ON h USING gpu_btree (a, b); VACUUM (FREEZE, ANALYZE) h');
for my $search (
	q{gpuds_bfs('h_ab', '{1}'::int[], 1)}, q{gpuds_shortest_path('h_ab', 1, 77777, max_cost => 1)})
{
	my $locks = $node->safe_psql('postgres', "SET gpuds.device = cpu;
		SELECT count(*) FROM gpuds_neighbors('h_ab', '{1}'::int[]);
		BEGIN ISOLATION LEVEL SERIALIZABLE;
		SELECT count(*) FROM $search;
		SELECT count(*) FROM pg_locks
		WHERE mode = 'SIReadLock' AND locktype = 'relation' AND relation = 'h_ab'::regclass;
		COMMIT");

	like($locks, qr/^3000\n\d+\n0$/, "$search: not the whole index");
}

# Ranges that are too large for cells, and transactions that have too many of them: the whole index
is(fails('SELECT * FROM t WHERE k < 0', 'INSERT INTO t VALUES (-2000000000, 0)'),
	'1', 'a range without an end');
my $many = join('; ', map { "SELECT * FROM t WHERE k = $_ * 100 + 1" } 1 .. 80);
is(fails($many, 'INSERT INTO t VALUES (3701, 0)'), '1', 'many cells');
$_->quit for $reader, $writer, $cleaner;
check_all_indexes($node, 'the indexes are whole');
done_testing();
