#!/usr/bin/perl
#
# What test/fdw runs, in Perl's TAP.  Server "near" has the partitioned table; "east" and "west" have
# the tables of its foreign partitions.  The table "plain" of near has the same rows in one heap,
# without an index: what is done to one is done to the other, and answers must be the same.
#
#   GPUDS_FDW_MEASURE   rows of the table to measure with, instead of testing; or empty

use strict;
use warnings;

use GpudsTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $measure = $ENV{GPUDS_FDW_MEASURE};
my %node;

# What each server needs beside gpuds.  auto_explain writes the plans of what the others send.
sub conf
{
	return <<'END';
session_preload_libraries = 'auto_explain'
auto_explain.log_min_duration = 0
auto_explain.log_nested_statements = on
jit = off
END
}

# A server of near's for a node, with libpq options of postgres_fdw's
sub make_foreign_server
{
	my ($name, $node, $options) = @_;
	my ($host, $port) = ($node->host, $node->port);

	$node{near}->safe_psql('postgres', <<"END");
CREATE SERVER $name FOREIGN DATA WRAPPER postgres_fdw
  OPTIONS (host '$host', port '$port', dbname 'postgres',
	fetch_size '10000', batch_size '1000', async_capable 'true'$options);
CREATE USER MAPPING FOR CURRENT_USER SERVER $name;
END
	return;
}

# Plans that a node has logged since the last time
sub plans_of
{
	my ($node) = @_;

	return new_log($node);
}

# How near speaks to east: options of a server of postgres_fdw's
my @ways = (
	[ 'no options', "fetch_size '10000'" ],
	[ 'cursor_tuple_fraction=1', "fetch_size '10000', options '-c cursor_tuple_fraction=1'" ],
	[ 'enable_seqscan=off', "fetch_size '10000', options '-c enable_seqscan=off'" ],
	[ 'cursor_tuple_fraction=1, fetch_size 100', "fetch_size '100', options '-c cursor_tuple_fraction=1'" ]);

if ($measure)
{
	measure();
	done_testing();
	exit;
}

#
# The servers and the table
#

$node{$_} = new_node($_, conf => conf()) for qw(near east west);
$node{near}->safe_psql('postgres', 'CREATE EXTENSION postgres_fdw');
# The tables are so small that half of the rows are found faster without an index
make_foreign_server($_, $node{$_}, ", options '-c enable_seqscan=off'") for qw(east west);

my $columns = 'id bigint NOT NULL, k bigint NOT NULL, at timestamptz, v int';

for my $name (qw(east west))
{
	$node{$name}->safe_psql('postgres', <<"END");
CREATE TABLE events ($columns, CONSTRAINT v_is_small CHECK (v < 1000000));
CREATE INDEX events_id ON events USING gpu_btree (id);
CREATE INDEX events_k ON events USING gpu_btree (k) INCLUDE (v);
CREATE INDEX events_at ON events USING gpu_btree (at);
CREATE TABLE names (k bigint, name text);
INSERT INTO names SELECT i, 'name ' || i FROM generate_series(1, 3000) i;
CREATE INDEX names_k ON names USING gpu_btree (k);
ANALYZE names;
END
}
$node{near}->safe_psql('postgres', <<"END");
CREATE TABLE events ($columns) PARTITION BY RANGE (id);
CREATE TABLE events_near PARTITION OF events FOR VALUES FROM (0) TO (10000);
CREATE INDEX events_near_k ON events_near USING gpu_btree (k) INCLUDE (v);
CREATE INDEX events_near_id ON events_near USING gpu_btree (id);
CREATE FOREIGN TABLE events_east PARTITION OF events FOR VALUES FROM (10000) TO (20000)
  SERVER east OPTIONS (table_name 'events');
CREATE FOREIGN TABLE events_west PARTITION OF events FOR VALUES FROM (20000) TO (30000)
  SERVER west OPTIONS (table_name 'events');
CREATE FOREIGN TABLE names_east (k bigint, name text) SERVER east OPTIONS (table_name 'names');
CREATE TABLE plain ($columns);
CREATE TABLE batch (k bigint, note text);
INSERT INTO batch SELECT i * 5, 'note ' || i FROM generate_series(1, 700) i;
ANALYZE batch;
END
my $settled = 0;

# A statement about TABLE, done to both; both must fare alike.  One test.
sub both
{
	my ($name, $sql, %opt) = @_;
	my @rc;
	my @err;

	for my $table (qw(events plain))
	{
		my ($rc, $out, $err) = $node{near}->psql('postgres', $sql =~ s/\bTABLE\b/$table/gr);
		push @rc, $rc;
		push @err, $err;
	}
	ok($opt{fails} ? $rc[0] != 0 && $rc[1] != 0 : $rc[0] == 0 && $rc[1] == 0, $name)
	  or diag(join("\n", @err));
	return;
}

# What is asked of both tables.  Each is a query of TABLE, with one parameter of type bigint[].
my @queries = (
	'SELECT id, k, at, v FROM TABLE WHERE k = ANY ($1) ORDER BY id, v, k, at',
	'SELECT id, v FROM TABLE WHERE id = ANY ($1) ORDER BY id, v',
	'SELECT count(*), sum(v), min(k), max(id) FROM TABLE WHERE k = ANY ($1)',
	'SELECT v % 7, count(*), sum(k) FROM TABLE WHERE k = ANY ($1) GROUP BY 1 ORDER BY 1',
	'SELECT count(*) FROM TABLE WHERE k BETWEEN 100 AND 100 + cardinality($1)',
	'SELECT id, count(*), sum(v) FROM TABLE WHERE k = ANY ($1) GROUP BY id ORDER BY id LIMIT 100',
	'SELECT e.id, e.v, b.note FROM TABLE e JOIN batch b ON b.k = e.k WHERE b.k = ANY ($1) ORDER BY 1, 2, 3',
	'SELECT count(*) FROM TABLE e WHERE k = ANY ($1) AND NOT EXISTS (SELECT FROM batch b WHERE b.k = e.k)',
	'SELECT count(*) FROM batch b WHERE k = ANY ($1) AND EXISTS (SELECT FROM TABLE e WHERE e.k = b.k)',
	'SELECT count(*), sum(v) FROM TABLE WHERE cardinality($1) > 0');
my $keys = 'ARRAY(SELECT (i * 7) % 4500 FROM generate_series(0, 1999) i)';

# The first lines that only one of two answers has
sub differences
{
	my ($one, $other) = @_;
	my %count;
	my @lines;

	$count{$_}++ for split /\n/, $one;
	$count{$_}-- for split /\n/, $other;
	@lines = grep { $count{$_} != 0 } sort keys %count;
	@lines = map { ($count{$_} > 0 ? '> ' : '< ') . substr($_, 0, 200) } @lines;
	return join("\n", splice(@lines, 0, 10));
}

# Which queries have other answers from the parent than from the plain table, by custom and by generic
# plans, all partitions at once and one by one.  A query that fails is among them.
sub wrong_answers
{
	my @wrong;

	for my $how ([qw(force_custom_plan on)], [qw(force_generic_plan on)], [qw(force_generic_plan off)])
	{
		my ($mode, $async) = @$how;

		for my $query (@queries)
		{
			my %answer;

			for my $table (qw(events plain))
			{
				my $of = $query =~ s/\bTABLE\b/$table/gr;
				my ($rc, $out, $err) = $node{near}->psql('postgres', <<"END");
SET plan_cache_mode = $mode;
SET enable_async_append = $async;
SET enable_partitionwise_aggregate = on;
SET enable_partitionwise_join = on;
PREPARE q(bigint[]) AS $of;
SELECT $keys AS keys \\gset
EXECUTE q(:'keys');
EXECUTE q('{}');
EXECUTE q('{3,NULL,3,4499}');
END
				$answer{$table} = $rc == 0 ? $out : "failed: $err";
			}
			push @wrong, "$mode, async $async: $query\n" . differences(@answer{qw(events plain)})
			  if $answer{events} ne $answer{plain} || $answer{events} =~ /^failed/;
		}
	}
	return @wrong;
}

# One test
sub same_as_plain
{
	my ($name) = @_;
	my @wrong = wrong_answers();

	ok(!@wrong, "$name: the same answers") or diag(join("\n", @wrong));
	return;
}

# One test a server
sub all_checked
{
	my ($name) = @_;

	check_all_indexes($node{$_}, "$name: the indexes of $_ pass the check") for qw(near east west);
	return;
}

both('INSERT', '
	INSERT INTO TABLE SELECT i, (i * 13) % 5000, \'2026-01-01\'::timestamptz + i * interval \'1 min\', i % 999
	FROM generate_series(0, 29999, 3) i');
my $copied = join('', map { "$_\t" . ($_ * 11 % 5000) . "\t2026-02-03 04:05:06+00\t" . ($_ % 100)
		  . "\n" } map { $_ * 10 + 1 } 0 .. 2999);
both('COPY', "COPY TABLE FROM STDIN;\n$copied\\.\n");
$node{$_}->safe_psql('postgres', 'VACUUM ANALYZE') for qw(east west near);
$node{near}->safe_psql('postgres', 'ANALYZE events');
my @counts = map {
	$node{$_}->safe_psql('postgres', 'SELECT count(*) FROM ' . ($_ eq 'near' ? 'events_near' : 'events'))
} qw(near east west);
is(join(' ', @counts),
	'4334 4333 4333', 'each server has its rows');
same_as_plain('after INSERT and COPY');
all_checked('after INSERT and COPY');

#
# What the remote servers do
#

# The plans of a query with all keys on east.  One test: each pattern is found, in near's plan or in east's.
sub plans_like
{
	my ($name, $mode, $query, $near, $east, $settings) = @_;

	$settings //= '';
	plans_of($node{east});
	my $out = $node{near}->safe_psql('postgres', <<"END");
SET plan_cache_mode = $mode;
$settings
PREPARE q(bigint[]) AS $query;
SELECT $keys AS keys \\gset
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE q(:'keys');
\\o /dev/null
EXECUTE q(:'keys');
END
	my $log = plans_of($node{east});
	my $text = substr($out =~ s/'\{[^']*\}'/'{...}'/gr, 0, 3000) . "\n--\n"
	  . ($log =~ s/'\{[^']*\}'/'{...}'/gr);
	ok($out =~ $near && $log =~ $east, $name) or diag(substr($text, 0, 6000));
	return;
}

for my $mode (qw(force_custom_plan force_generic_plan))
{
	plans_like("$mode: an array goes to the remote index as a whole", $mode,
		'SELECT id, at FROM events_east WHERE k = ANY ($1)', qr/Remote SQL: .*\(k = ANY \(/,
		qr/(GpudsScan|Bitmap Heap Scan|Index Scan).*events_k/s);
	plans_like("$mode: an aggregate is pushed down and done by the index", $mode,
		'SELECT count(*), sum(v) FROM events_east WHERE k = ANY ($1)',
		qr/Remote SQL: SELECT count\(\*\), sum\(v\)/, qr/GpudsAggregate/);
	plans_like("$mode: partitions are asked at once", $mode,
		'SELECT id, at FROM events WHERE k = ANY ($1)', qr/Async Foreign Scan.*Async Foreign Scan/s,
		qr/events_k/);
	plans_like("$mode: so do keys of a subquery", $mode,
		'SELECT id, at FROM events_east WHERE k = ANY (ARRAY(SELECT k FROM batch)) AND v < cardinality($1)',
		qr/Remote SQL: .*\(k = ANY \(\$\d::bigint\[\]\)\)/, qr/events_k/);
	plans_like("$mode: a join of two tables of one server is the server's", $mode,
		'SELECT e.id, n.name FROM events_east e JOIN names_east n ON n.k = e.k WHERE e.k = ANY ($1)',
		qr/Remote SQL: .* INNER JOIN /, qr/(events|names)_k/,
		'SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_nestloop = off;');
}

#
# Changes
#

both('UPDATE of a column that is indexed',
	'UPDATE TABLE SET at = at + interval \'1 day\', v = v + 1 WHERE k % 10 = 3');
both('UPDATE of the key', 'UPDATE TABLE SET k = k + 1 WHERE id % 4 = 1');
both('UPDATE by a join', 'UPDATE TABLE e SET v = e.v + 2 FROM batch b WHERE b.k = e.k AND b.k % 3 = 0');
both('UPDATE by an array', "UPDATE TABLE SET v = v + 5 WHERE k = ANY ($keys)");
both('DELETE', 'DELETE FROM TABLE WHERE k % 17 = 4');
both('DELETE by an array',
	"DELETE FROM TABLE WHERE id = ANY (ARRAY(SELECT i * 9 FROM generate_series(1, 3000) i))");
same_as_plain('after UPDATE and DELETE');
all_checked('after UPDATE and DELETE');
$node{$_}->safe_psql('postgres', 'VACUUM') for qw(east west);
both('rows in the places of deleted ones',
	'INSERT INTO TABLE SELECT i, i % 5000, now()::date, i % 11 FROM generate_series(2, 29999, 7) i');
same_as_plain('after VACUUM');

#
# What ends before its end
#

both('ROLLBACK', <<'END');
BEGIN;
INSERT INTO TABLE SELECT i, i % 5000, NULL, 3 FROM generate_series(4, 29999, 5) i;
DELETE FROM TABLE WHERE k % 3 = 0;
ROLLBACK
END
both('savepoints', <<'END');
BEGIN;
INSERT INTO TABLE SELECT i, 77, NULL, 4 FROM generate_series(5, 29999, 50) i;
SAVEPOINT a;
UPDATE TABLE SET k = 78 WHERE k = 77;
SELECT count(*) FROM TABLE WHERE k = 78;
ROLLBACK TO a;
DELETE FROM TABLE WHERE k = 77 AND id % 100 = 5;
COMMIT
END
$node{near}->safe_psql('postgres', 'ALTER TABLE plain ADD CONSTRAINT v_is_small CHECK (v < 1000000)');
both('a row that the last server refuses', '
	INSERT INTO TABLE SELECT i, i % 5000, NULL, CASE WHEN i > 25000 THEN 1000000 ELSE 1 END
	FROM generate_series(6, 29999, 6) i',
	fails => 1);
# A constraint that near looks at when the transaction ends, after all that went to the others
$node{near}->safe_psql('postgres', <<'END');
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused at the end'; END $$;
CREATE TABLE last_word (i int);
CREATE CONSTRAINT TRIGGER t AFTER INSERT ON last_word
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse();
END
both('COMMIT that fails', <<'END', fails => 1);
BEGIN;
UPDATE TABLE SET k = 79 WHERE id % 3 = 0;
INSERT INTO last_word VALUES (1);
COMMIT
END
my ($rc, $out, $err) = $node{near}->psql('postgres', '
	BEGIN; UPDATE events SET k = 80 WHERE id % 3 = 0; PREPARE TRANSACTION \'p\'');
like($err, qr/cannot PREPARE a transaction that has operated on postgres_fdw foreign tables/,
	'nothing can be prepared for two phases');
same_as_plain('after what came to nothing');
all_checked('after what came to nothing');

#
# A server that crashes
#

$node{east}->stop('immediate');
($rc, $out, $err) = $node{near}->psql('postgres', '
	INSERT INTO events SELECT i, i % 5000, NULL, 5 FROM generate_series(7, 29999, 7) i');
isnt($rc, 0, 'nothing can be inserted while a server is down');
($rc, $out, $err) = $node{near}->psql('postgres', 'SELECT count(*) FROM events');
isnt($rc, 0, 'nor counted');
is($node{near}->safe_psql('postgres', 'SELECT count(*) > 0 FROM events WHERE id >= 20000'), 't',
	'the others answer');
$node{east}->start;
same_as_plain('after a crash');

# In the middle of a transaction: near has sent rows to all, and cannot end
my $session = $node{near}->background_psql('postgres', on_error_stop => 0);

$session->query_safe('
	BEGIN; INSERT INTO events SELECT i, i % 5000, NULL, 6 FROM generate_series(8, 29999, 8) i');
$node{east}->stop('immediate');
$session->query('UPDATE events SET v = v + 1 WHERE k % 100 = 1');
$session->query('COMMIT');
$session->quit;
$node{east}->start;
same_as_plain('after a crash in a transaction');
both('what comes afterwards',
	'INSERT INTO TABLE SELECT i, i % 5000, NULL, 7 FROM generate_series(9, 29999, 9) i');
same_as_plain('and afterwards');
all_checked('after crashes');

#
# An index that is wrong
#

my $path = file_of($node{east}, 'events_k');

$node{east}->stop;
PostgreSQL::Test::Utils::system_or_bail('cp', $path, "$path.former");
$node{east}->start;
both('rows that an index will lack',
	'INSERT INTO TABLE SELECT i, 3, NULL, 8 FROM generate_series(10000, 19999, 10) i');
same_as_plain('before an index is broken');
$node{east}->stop;
PostgreSQL::Test::Utils::system_or_bail('mv', "$path.former", $path);
$node{east}->start;
cmp_ok(scalar wrong_answers(), '>', 0, 'answers by an index that lacks rows are found to be wrong');
($rc, $out, $err) = $node{east}->psql('postgres', "SELECT gpuds_index_check('events_k', true)");
isnt($rc, 0, 'so does the check of the index');
$node{east}->safe_psql('postgres', 'REINDEX INDEX events_k');
same_as_plain('after REINDEX');
all_checked('at the end');

done_testing();

#
# Measuring
#

# The fastest of nine executions of a prepared query on a node with 100,000 keys, in milliseconds, and the
# first node of east's plan that says how rows are found
sub fastest_ms
{
	my ($on, $mode, $query) = @_;

	plans_of($node{east});
	my $sql = "
		SET plan_cache_mode = $mode;
		PREPARE q(bigint[]) AS $query;
		SELECT keys FROM wanted \\gset
		\\o /dev/null
		EXECUTE q(:'keys');
		\\timing on\n";
	my $out = $node{$on}->safe_psql('postgres', $sql . "EXECUTE q(:'keys');\n" x 9);
	my @ms = sort { $a <=> $b } $out =~ /Time: ([0-9.]+) ms/g;
	my $scan = qr/Custom\ Scan\ \(Gpuds\w+\)|Bitmap\ Heap\ Scan|
		Index\ Only\ Scan|Index\ Scan|(?:Parallel\ )?Seq\ Scan/x;
	my ($how) = plans_of($node{east}) =~ /^.*events.*\n\t(?:.*\n\t)*? *(?:->  )?($scan)/m;
	return ($ms[0], $how // 'unknown');
}

sub measure
{
	my ($host, $port);

	$node{near} = new_node('near', conf => "jit = off\n");
	$node{east} = new_node('east', conf => conf() . "shared_buffers = 1GB\n");
	($host, $port) = ($node{east}->host, $node{east}->port);
	$node{east}->safe_psql('postgres', <<"END");
CREATE TABLE events (k bigint, v int, note text);
INSERT INTO events SELECT (i * 7919) % ($measure * 4::bigint), i, 'a note of some length ' || i
  FROM generate_series(1::bigint, $measure) i;
VACUUM ANALYZE events;
END
	$node{near}->safe_psql('postgres', 'CREATE EXTENSION postgres_fdw');
	for my $number (0 .. $#ways)
	{
		$node{near}->safe_psql('postgres', <<"END");
CREATE SERVER s$number FOREIGN DATA WRAPPER postgres_fdw
  OPTIONS (host '$host', port '$port', dbname 'postgres', $ways[$number][1]);
CREATE USER MAPPING FOR CURRENT_USER SERVER s$number;
CREATE FOREIGN TABLE events_$number (k bigint, v int, note text)
  SERVER s$number OPTIONS (table_name 'events');
END
	}
	$node{$_}->safe_psql('postgres', <<"END") for qw(near east);
CREATE TABLE wanted AS
  SELECT array_agg((i * 104729) % ($measure * 4::bigint))::text AS keys
  FROM generate_series(1::bigint, 100000) i
END
	note('| index of the remote table | asked by near | plan of near | query | plan of the remote | ms |');
	note('|---|---|---|---|---|--:|');
	for my $index ('btree', 'gpu_btree')
	{
		$node{east}->safe_psql('postgres',
			"DROP INDEX IF EXISTS events_k; CREATE INDEX events_k ON events USING $index (k) INCLUDE (v)");
		$node{east}->safe_psql('postgres', 'VACUUM ANALYZE events');
		for my $query ('SELECT sum(v) FROM TABLE WHERE k = ANY ($1)',
			'SELECT k, note FROM TABLE WHERE k = ANY ($1)')
		{
			my @rows = ([ 'the remote asked directly', 'east', 'events', 'force_custom_plan' ]);

			for my $number (0 .. $#ways)
			{
				push @rows, [ $ways[$number][0], 'near', "events_$number", $_ ]
				  for qw(force_custom_plan force_generic_plan);
			}
			for my $row (@rows)
			{
				my ($way, $on, $table, $mode) = @$row;
				my ($ms, $how) = fastest_ms($on, $mode, $query =~ s/TABLE/$table/r);
				note(sprintf('| %s | %s | %s | %s | %s | %.1f |', $index, $way,
						$mode =~ s/force_(\w+)_plan/$1/r, $query =~ s/ FROM.*//r, $how, $ms));
			}
		}
	}
	ok(1, 'measured');
	return;
}
