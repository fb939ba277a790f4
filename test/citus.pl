#!/usr/bin/perl
#
# What test/citus runs, in Perl's TAP.  "coord" is the coordinator, "east" and "west" are workers.  The
# schema dist has tables of Citus', and the schema plain has their twins: tables of the coordinator
# alone, without an index.  What is done in one schema is done in the other, and answers must be the
# same.  Schemas that Citus shards are called tenant_a and tenant_b; their twins are plain_a, plain_b.
#
#   GPUDS_CITUS_MEASURE   rows of the table to measure with, instead of testing; or empty

use strict;
use warnings;

use GpudsTest;
use List::Util qw(min sum);
use POSIX ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $measure = $ENV{GPUDS_CITUS_MEASURE};
my @names = qw(coord east west);
my %node;

#
# The servers
#

# What each server needs.  Citus wants to be the first library; logical replication and the splits of
# shards need their output plugins allowed, where the server asks for that.  Nothing is recovered but when
# the test says so.
sub conf
{
	my ($stdout) = run_command([ 'postgres', '--describe-config' ]);
	my $has_setting = $stdout =~ /^output_plugin_libraries\t/m;
	my $plugins = $has_setting ? "output_plugin_libraries = 'pgoutput, citus'\n" : '';

	return $plugins . <<'END';
shared_preload_libraries = 'citus,gpuds'
listen_addresses = 'localhost'
max_connections = 120
max_prepared_transactions = 120
max_worker_processes = 40
max_logical_replication_workers = 20
max_sync_workers_per_subscription = 4
max_replication_slots = 40
max_wal_senders = 40
shared_buffers = 128MB
jit = off
citus.recover_2pc_interval = -1
citus.node_connection_timeout = 300000
citus.enable_repartition_joins = on
citus.repartition_join_bucket_count_per_node = 1
END
}

# A coordinator and two workers.  The extension is made on the coordinator alone.
sub make_cluster
{
	my (%more) = @_;

	for my $name (@names)
	{
		$node{$name} = new_node($name, streaming => 'logical', no_extension => 1,
			conf => conf() . ($more{$name} // ''));
		$node{$name}->safe_psql('postgres', 'CREATE EXTENSION citus');
	}
	$node{coord}->safe_psql('postgres',
		"SELECT citus_set_coordinator_host('localhost', " . $node{coord}->port . ')');
	$node{coord}->safe_psql('postgres', "SELECT citus_add_node('localhost', " . $node{$_}->port . ')')
	  for qw(east west);
	$node{coord}->safe_psql('postgres', 'CREATE EXTENSION gpuds');
	return;
}

# A server that crashes, and comes back
sub crash
{
	my ($name) = @_;

	$node{$name}->stop('immediate');
	$node{$name}->start;
	return;
}

# Commands of Citus' that are to succeed, on the coordinator.  One test; returns what they print.
sub citus_ok
{
	my ($name, $sql) = @_;
	my ($rc, $out, $err) = $node{coord}->psql('postgres', $sql, on_error_stop => 1);

	ok($rc == 0, $name) or diag("$sql\n$err");
	return $out;
}

if ($measure)
{
	measure();
	done_testing();
	exit;
}

# The tables are so small that half of the rows are found faster without an index
make_cluster(map { $_ => "enable_seqscan = off\n" } qw(east west));
my $installed = "SELECT extname, extversion FROM pg_extension WHERE extname = 'gpuds'";
my $offered = $node{coord}->safe_psql('postgres',
	"SELECT 'gpuds|' || default_version FROM pg_available_extensions WHERE name = 'gpuds'");
is(join(' ', map { $node{$_}->safe_psql('postgres', $installed) } @names), join(' ', ($offered) x 3),
	'CREATE EXTENSION reaches the workers');

#
# Doing things twice
#

# A statement in the words of one side
sub words
{
	my ($side, $sql) = @_;

	$sql =~ s/\btenant_([ab])\b/plain_$1/g if $side eq 'plain';
	return "SET search_path = $side;\n$sql";
}

# Statements, done on both sides; both must fare alike.  One test.
sub both
{
	my ($name, $sql, %opt) = @_;
	my @rc;
	my @err;

	for my $side (qw(dist plain))
	{
		my ($rc, $out, $err) = $node{coord}->psql('postgres', words($side, $sql), on_error_stop => 1);
		push @rc, $rc;
		push @err, $err;
	}
	ok($opt{fails} ? $rc[0] != 0 && $rc[1] != 0 : $rc[0] == 0 && $rc[1] == 0, $name)
	  or diag("$sql\n" . join("\n", @err));
	return;
}

# What is asked of both sides.  Each is a query with one parameter of type bigint[].
my @queries = (
	'SELECT id, k, at, v, name FROM events WHERE k = ANY ($1) ORDER BY id, k, v, at',
	'SELECT id, k, v FROM events WHERE id = ANY ($1) ORDER BY id, k, v',
	'SELECT count(*), sum(v), min(k), max(k) FROM events WHERE k = ANY ($1)',
	'SELECT v % 7, count(*), sum(k) FROM events WHERE k = ANY ($1) GROUP BY 1 ORDER BY 1',
	'SELECT count(*), sum(v) FROM events WHERE k BETWEEN 100 AND 100 + cardinality($1)',
	'SELECT at::date, count(*) FROM events WHERE at >= \'2026-01-05\' AND cardinality($1) > 0
		GROUP BY 1 ORDER BY 1',
	'SELECT k, count(*), sum(v) FROM events WHERE k = ANY ($1) GROUP BY k ORDER BY k LIMIT 100',
	'SELECT id, k, name FROM events WHERE k = ($1)[1] ORDER BY id',
	'SELECT count(DISTINCT v), count(*) FROM events WHERE k = ANY ($1)',
	'SELECT id, k FROM events WHERE name = ANY (ARRAY(SELECT \'name \' || unnest($1))) ORDER BY id, k',
	'WITH keys AS MATERIALIZED (SELECT unnest($1) AS k) SELECT id, k, v FROM events
		WHERE k = ANY (ARRAY(SELECT k FROM keys)) ORDER BY id, k, v',
	'SELECT count(*), sum(v) FROM events WHERE k IN (SELECT unnest($1))',
	'SELECT count(*), sum(e.v) FROM unnest($1) u JOIN events e ON e.k = u',
	'SELECT e.id, e.v, l.label FROM events e JOIN labels l ON l.k = e.k WHERE l.k = ANY ($1)
		ORDER BY 1, 2, 3',
	'SELECT l.k, l.label, e.id FROM labels l LEFT JOIN events e ON e.k = l.k AND e.v > 5
		WHERE l.k = ANY ($1) ORDER BY 1, 2, 3',
	'SELECT count(*) FROM events e WHERE k = ANY ($1) AND NOT EXISTS (SELECT FROM labels l WHERE l.k = e.k)',
	'SELECT count(*) FROM labels l WHERE k = ANY ($1) AND EXISTS (SELECT FROM events e WHERE e.k = l.k)',
	'SELECT e.id, s.size FROM events e JOIN sizes s ON s.v = e.v WHERE e.k = ANY ($1) ORDER BY 1, 2',
	'SELECT s.v, s.size FROM sizes s WHERE s.v = ANY ($1) OR s.size = \'size 3\' ORDER BY 1, 2',
	'SELECT count(*), sum(e.v), sum(o.n) FROM events e JOIN other o ON o.k = e.k WHERE o.k = ANY ($1)',
	'SELECT count(*), sum(e.v), sum(o.n) FROM events e JOIN other o ON o.k = e.id WHERE cardinality($1) > 0',
	'SELECT d.k, count(*), sum(d.v) FROM days d
		WHERE d.day BETWEEN \'2026-01-10\' AND \'2026-02-20\' AND d.k = ANY ($1) GROUP BY 1 ORDER BY 1',
	'SELECT d.day, d.id, e.id FROM days d JOIN events e ON e.k = d.k
		WHERE d.k = ANY ($1) AND e.id % 5 = 0 ORDER BY 1, 2, 3',
	'SELECT count(*) FROM days WHERE name = \'name 77\' OR k = ANY ($1)',
	'SELECT id, label FROM tenant_a.items WHERE id = ANY ($1) ORDER BY 1, 2',
	'SELECT count(*) FROM tenant_b.items i JOIN tenant_b.more m ON m.id = i.id WHERE i.id = ANY ($1)',
	'SELECT id FROM tenant_b.items WHERE label = ANY (ARRAY(SELECT \'label \' || unnest($1))) ORDER BY 1',
	'SELECT e.id, b.note FROM batch b JOIN events e ON e.k = b.k WHERE b.k = ANY ($1) ORDER BY 1, 2',
	'SELECT (SELECT count(*) FROM events), (SELECT count(*) FROM labels), (SELECT count(*) FROM days),
			cardinality($1)');
my $keys = 'ARRAY(SELECT ((i * 7) % 4500)::bigint FROM generate_series(0, 799) i)';

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

# How queries are run.  Citus refuses generic plans, so plans are custom ones.  Shards are joined as the
# workers plan it, or by an index.
my %settings = (
	'any joins' => '',
	'joins by an index' => "
		BEGIN;
		SET LOCAL citus.propagate_set_commands = 'local';
		SET LOCAL enable_hashjoin = off;
		SET LOCAL enable_mergejoin = off;\n");

# The answers to all queries, an array, as one side gives them when a node is asked with some settings
sub answers
{
	my ($on, $side, $mode) = @_;
	my $sql = "$settings{$mode}SELECT $keys AS keys \\gset\n";

	for my $number (0 .. $#queries)
	{
		# Joins that repartition take seconds, and are by hashes in any case
		my $repartitions = $queries[$number] =~ /\bother\b/;
		next if $repartitions && $mode ne 'any joins';
		# A local table, which only the coordinator has
		next if $on ne 'coord' && $queries[$number] =~ /\bbatch\b/;
		$sql .= "\\echo == $number\nPREPARE q$number(bigint[]) AS $queries[$number];\n"
		  . join('',
			map { "EXECUTE q$number($_);\n" }
			  ":'keys'", $repartitions ? () : ("'{3,NULL,3,4499}'", "'{}'"));
	}
	my ($rc, $out, $err) = $node{$on}->psql('postgres', words($side, $sql), on_error_stop => 0);
	my @answers;
	my $at = 0;
	for my $line (split /\n/, $out)
	{
		if ($line =~ /^== (\d+)$/) { $at = $1; $answers[$at] = ''; }
		else { $answers[$at] .= "$line\n"; }
	}
	# psql goes on after an error, and the answer is then too short
	my @errors = $err =~ /^.*(?:ERROR|FATAL|DETAIL|lost).*$/mg;
	$answers[$at] .= 'failed: ' . join("\n", splice(@errors, 0, 5)) if $err =~ /ERROR|FATAL|lost/;
	return @answers;
}

# Which queries have other answers from Citus than from plain tables.
# A query that fails is among them.  A worker may be asked, too.
sub wrong_answers
{
	my ($on) = @_;
	my @wrong;
	my @right = answers('coord', 'plain', 'any joins');

	for my $mode (sort keys %settings)
	{
		my @answers = answers($on, 'dist', $mode);

		for my $number (0 .. $#queries)
		{
			next if $mode ne 'any joins' && $queries[$number] =~ /\bother\b/;
			next if $on ne 'coord' && $queries[$number] =~ /\bbatch\b/;
			my ($one, $other) = ($answers[$number] // 'none', $right[$number] // 'none');
			push @wrong, "$on, $mode: $queries[$number]\n" . differences($one, $other)
			  if $one ne $other || $one =~ /^failed/m;
		}
	}
	return @wrong;
}

# One test
sub same_as_plain
{
	my ($name, $on) = @_;
	my @wrong = wrong_answers($on // 'coord');

	ok(!@wrong, "$name: the same answers") or diag(join("\n", splice(@wrong, 0, 6)));
	return;
}

# Indexes of all nodes, as rows of node, OID, access method, name, and whether it is that of a shard
sub indexes_of
{
	my ($name) = @_;

	return map { [ $name, split /\|/ ] } split /\n/, $node{$name}->safe_psql('postgres', <<'END');
SET citus.override_table_visibility = off;
SELECT c.oid, a.amname, c.oid::regclass, c.relname ~ '_\d{6}$'
  FROM pg_class c JOIN pg_am a ON a.oid = c.relam JOIN pg_index i ON i.indexrelid = c.oid
 WHERE a.amname IN ('gpu_btree', 'gpu_hash') AND c.relkind = 'i' AND i.indisvalid
END
}

# gpuds_index_check, with the heap, of each index of each placement, and of what Citus has beside them.
# One test; the number of shards' indexes is returned.
sub all_checked
{
	my ($name) = @_;
	my @bad;
	my $count = 0;

	for my $on (@names)
	{
		my @indexes = indexes_of($on);
		my $sql = "SET citus.override_table_visibility = off;\n"
		  . join('', map { "SELECT gpuds_index_check($_->[1]::oid::regclass, true);\n" } @indexes);
		my ($rc, $out, $err) = $node{$on}->psql('postgres', $sql, on_error_stop => 0);
		push @bad, "$on: $err" if $rc != 0 || $err =~ /ERROR/;
		$count += grep { $_->[4] eq 't' } @indexes;
	}
	ok(!@bad && $count > 0, "$name: all $count indexes of shards pass the check") or diag(join("\n", @bad));
	return $count;
}

# Shards of a table, and their indexes, by node: what pg_dist_shard says, and what is there
sub placements_have_indexes
{
	my ($name, $table, @indexes) = @_;
	my @wrong;

	for my $row (split /\n/, $node{coord}->safe_psql('postgres', "
		SELECT shardid, nodeport FROM citus_shards WHERE table_name = '$table'::regclass"))
	{
		my ($shard, $port) = split /\|/, $row;
		my ($on) = grep { $node{$_}->port == $port } @names;
		my %there = map { ($_->[3] =~ s/^\w+\.//r) => 1 } indexes_of($on);
		push @wrong, map { "$on: ${_}_$shard" } grep { !$there{"${_}_$shard"} } @indexes;
	}
	ok(!@wrong, $name) or diag('missing: ' . join(', ', @wrong));
	return;
}

#
# The tables.  Some indexes are there before a table is distributed, others are made afterwards.
#

for my $side (qw(dist plain))
{
	my $gpuds = $side eq 'dist';
	my @index = map { $gpuds ? "$_;" : '' } (
		'CREATE INDEX events_k ON events USING gpu_btree (k) INCLUDE (v)',
		'CREATE INDEX events_name ON events USING gpu_hash (name)',
		'CREATE INDEX labels_k ON labels USING gpu_btree (k)',
		'CREATE INDEX sizes_v ON sizes USING gpu_btree (v)',
		'CREATE INDEX days_k ON days USING gpu_btree (k) INCLUDE (v)');
	$node{coord}->safe_psql('postgres', <<"END");
CREATE SCHEMA $side;
SET search_path = $side;
CREATE TABLE events (id bigint NOT NULL, k bigint NOT NULL, at timestamp,
	v int CONSTRAINT v_is_small CHECK (v < 1000000), name text, PRIMARY KEY (k, id));
$index[0] $index[1]
CREATE TABLE labels (k bigint, label text);
$index[2]
CREATE TABLE sizes (v int, size text);
$index[3]
CREATE TABLE other (o bigint, k bigint, n int);
CREATE TABLE days (day date NOT NULL, id bigint, k bigint, v int, name text) PARTITION BY RANGE (day);
CREATE TABLE days_1 PARTITION OF days FOR VALUES FROM ('2026-01-01') TO ('2026-02-01');
CREATE TABLE days_2 PARTITION OF days FOR VALUES FROM ('2026-02-01') TO ('2026-03-01');
$index[4]
CREATE TABLE batch (k bigint, note text);
CREATE TABLE empty (k bigint, v int);
END
}
$node{coord}->safe_psql('postgres', '
	INSERT INTO dist.labels SELECT i, \'label \' || i FROM generate_series(1, 2000) i;
	INSERT INTO plain.labels SELECT * FROM dist.labels');
citus_ok('tables are distributed', <<'END');
SET search_path = dist;
SET citus.shard_count = 6;
SELECT create_distributed_table('events', 'k');
SELECT create_distributed_table('labels', 'k', colocate_with => 'events');
SELECT create_distributed_table('other', 'o', colocate_with => 'none', shard_count => 3);
SELECT create_distributed_table('days', 'k', colocate_with => 'events');
SELECT create_distributed_table('empty', 'k', colocate_with => 'events');
SELECT create_reference_table('sizes');
CREATE INDEX sizes_size ON sizes USING gpu_hash (size);
CREATE INDEX other_k ON other USING gpu_btree (k);
CREATE INDEX days_name ON days USING gpu_hash (name);
CREATE INDEX empty_k ON empty USING gpu_btree (k, v);
SET citus.enable_schema_based_sharding = on;
CREATE SCHEMA tenant_a;
CREATE SCHEMA tenant_b;
CREATE TABLE tenant_a.items (id bigint, label text);
CREATE TABLE tenant_b.items (id bigint, label text);
CREATE TABLE tenant_b.more (id bigint, label text);
CREATE INDEX ON tenant_a.items USING gpu_btree (id);
CREATE INDEX ON tenant_b.items USING gpu_btree (id);
CREATE INDEX ON tenant_b.items USING gpu_hash (label);
CREATE INDEX ON tenant_b.more USING gpu_btree (id);
END
$node{coord}->safe_psql('postgres', <<'END');
CREATE SCHEMA plain_a;
CREATE SCHEMA plain_b;
CREATE TABLE plain_a.items (id bigint, label text);
CREATE TABLE plain_b.items (id bigint, label text);
CREATE TABLE plain_b.more (id bigint, label text);
END

both('INSERT', <<'END');
INSERT INTO events
	SELECT i, (i * 13) % 5000, '2026-01-01'::timestamp + i * interval '1 min', i % 999, 'name ' || i % 3000
	FROM generate_series(0, 11999, 3) i;
INSERT INTO sizes SELECT i, 'size ' || i % 50 FROM generate_series(0, 998) i;
INSERT INTO other SELECT i, (i * 3) % 5000, i % 100 FROM generate_series(1, 3000) i;
INSERT INTO days SELECT '2026-01-01'::date + i % 59, i, (i * 11) % 5000, i % 999, 'name ' || i % 500
	FROM generate_series(1, 6000) i;
INSERT INTO tenant_a.items SELECT i, 'label ' || i FROM generate_series(1, 2000) i;
INSERT INTO tenant_b.items SELECT i * 2, 'label ' || i FROM generate_series(1, 2000) i;
INSERT INTO tenant_b.more SELECT i * 3, 'label ' || i FROM generate_series(1, 2000) i;
INSERT INTO batch SELECT i * 5, 'note ' || i FROM generate_series(1, 700) i;
END
citus_ok('an index of a table that has rows', 'CREATE INDEX events_id ON dist.events USING gpu_btree (id)');
citus_ok('CREATE INDEX CONCURRENTLY',
	'CREATE INDEX CONCURRENTLY events_at ON dist.events USING gpu_btree (at)');
my $copied = join('', map { "$_\t" . ($_ * 11 % 5000) . "\t2026-02-03 04:05:06\t" . ($_ % 100)
		  . "\tname $_\n" } map { $_ * 10 + 12000 } 0 .. 1999);
both('COPY', "COPY events FROM STDIN;\n$copied\\.\n");
both('INSERT ... SELECT', <<'END');
INSERT INTO labels SELECT k, 'more ' || id FROM events WHERE id % 20 = 3;
INSERT INTO other SELECT k, id, v FROM events WHERE id % 30 = 6;
INSERT INTO events SELECT o + 100000, k, now()::date, n, 'other ' || o FROM other WHERE o % 10 = 1
	ON CONFLICT DO NOTHING;
INSERT INTO events SELECT k + 200000, k, '2026-05-05', 9, note FROM batch;
END
$node{coord}->safe_psql('postgres',
	'VACUUM ANALYZE dist.events, dist.labels, dist.other, dist.days, dist.sizes; ANALYZE');
placements_have_indexes('every shard of a distributed table has every index', 'dist.events',
	qw(events_k events_name events_id events_at));
same_as_plain('after INSERT and COPY');
same_as_plain('after INSERT and COPY, as a worker answers', 'east');
all_checked('after INSERT and COPY');

#
# What the workers do
#

# The plan of the first task of a query.  One test.
sub plan_like
{
	my ($name, $query, $pattern, $settings) = @_;
	my $out = $node{coord}->safe_psql('postgres', <<"END");
SET search_path = dist;
BEGIN;
SET LOCAL citus.propagate_set_commands = 'local';
$settings
SELECT $keys AS keys \\gset
PREPARE q(bigint[]) AS $query;
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE q(:'keys');
COMMIT;
END
	like($out =~ s/'\{[^']*\}'/'{...}'/gr, $pattern, $name);
	return;
}

plan_like('an array goes to the indexes of the shards', 'SELECT id, at FROM events WHERE k = ANY ($1)',
	qr/(GpudsScan|Bitmap Heap Scan|Index Scan).*events_k_\d+/s, '');
plan_like('aggregates of shards are those of their indexes',
	'SELECT count(*), sum(v) FROM events WHERE k = ANY ($1)', qr/GpudsAggregate.*events_k_\d+/s, '');
plan_like('text is looked up by gpu_hash', '
	SELECT id FROM events WHERE name = ANY (ARRAY(SELECT \'name \' || unnest($1)))',
	qr/(GpudsScan|Bitmap Heap Scan|Index Scan).*events_name_\d+/s, '');
plan_like('a join of colocated tables is one of shards by their indexes',
	'SELECT e.id, l.label FROM labels l JOIN events e ON e.k = l.k WHERE l.k = ANY ($1)',
	qr/GpudsJoin.*(events|labels)_k_\d+/s,
	'SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SET LOCAL enable_nestloop = off;');
plan_like('keys of a CTE go to the shards as rows', $queries[10],
	qr/(?=.*read_intermediate_result).*events_k_\d+/s, '');

# Scans of each index, as all nodes count them.  Citus hides shards from sessions of users, but not from
# commands that it runs for them.
sub scans_of
{
	return map { split /\|/ } split /\n/, $node{coord}->safe_psql('postgres', <<'END');
SELECT regexp_replace(i->>'indexrelname', '_\d{6}$', ''), sum((i->>'scans')::bigint)
  FROM run_command_on_all_nodes($$
	SELECT json_agg(i) FROM gpuds_stat_indexes i WHERE relname ~ '_\d{6}$'$$) r,
	json_array_elements(r.result::json) i
 GROUP BY 1
END
}
my %scans = scans_of();
my @unused = grep { !($scans{$_} // 0) } qw(events_k events_id events_at events_name labels_k sizes_v
  sizes_size other_k days_1_k_v_idx days_1_name_idx items_id_idx items_label_idx more_id_idx);
is("@unused", '', 'every index was used');

# What a user sees of shards in our views
my $view = 'SELECT count(*) FROM gpuds_indexes WHERE relname ~ \'_\d{6}$\'';
my $shards = grep { $_->[4] eq 't' } indexes_of('east');
is($node{east}->safe_psql('postgres', $view), '0', 'the views hide shards as Citus wants it');
is($node{east}->safe_psql('postgres', "SET citus.override_table_visibility = off; $view"), $shards,
	'and show them without that');
is($node{east}->safe_psql('postgres', "
	SET application_name = 'exporter'; SET citus.show_shards_for_app_name_prefixes = 'exporter'; $view"),
	$shards, 'and to programs that are named');
is($node{coord}->safe_psql('postgres', 'SELECT result FROM run_command_on_workers($$' . $view
		  . '$$) WHERE nodeport = ' . $node{east}->port), $shards, 'and to commands for workers');

# Functions of ours, by shard
citus_ok('gpuds_index_load of all shards', <<'END');
SELECT 1 / (bool_and(success AND result = '4'))::int FROM run_command_on_placements('dist.events',
  $$SELECT count(gpuds_index_load(i.indexrelid::regclass)::text)
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
  WHERE i.indrelid = '%s'::regclass AND a.amname LIKE 'gpu\_%%'$$)
END

#
# Changes
#

both('UPDATE of columns that are indexed',
	'UPDATE events SET at = at + interval \'1 day\', v = v + 1, name = name || \' again\' WHERE k % 10 = 3');
both('UPDATE by an array', "UPDATE events SET v = v + 5 WHERE k = ANY ($keys)");
both('UPDATE by another index',
	"UPDATE events SET name = 'name ' || (id % 100)::text WHERE id = ANY ($keys)");
both('UPDATE by a join with a colocated table',
	'UPDATE events e SET v = e.v + 2 FROM labels l WHERE l.k = e.k AND l.k % 3 = 0');
both('UPDATE by a join with a reference table',
	'UPDATE events e SET name = s.size FROM sizes s WHERE s.v = e.v AND s.v % 50 = 9');
both('UPDATE of one shard', 'UPDATE events SET v = v + 100 WHERE k = 26');
both('UPDATE of a reference table', '
	UPDATE sizes SET v = v + 1000, size = size || \'!\' WHERE v % 10 = 1; DELETE FROM sizes WHERE v % 10 = 2;
	INSERT INTO sizes SELECT v + 5000, size FROM sizes');
both('DELETE', 'DELETE FROM events WHERE k % 17 = 4');
both('DELETE by an array',
	'DELETE FROM events WHERE id = ANY (ARRAY(SELECT i * 9 FROM generate_series(1, 900) i))');
both('DELETE by a join', 'DELETE FROM labels l USING events e WHERE e.k = l.k AND e.k % 23 = 5');
both('INSERT ... ON CONFLICT', <<'END');
INSERT INTO events SELECT i, (i * 13) % 5000, '2026-03-03', i % 10, 'conflict ' || i
FROM generate_series(0, 6000, 2) i
ON CONFLICT (k, id) DO UPDATE SET v = events.v + excluded.v, name = excluded.name
END
both('MERGE', <<'END');
MERGE INTO events e
USING (SELECT k, max(label) AS label FROM labels GROUP BY k) l ON l.k = e.k AND e.id % 7 = 2
WHEN MATCHED AND e.v % 2 = 0 THEN DELETE
WHEN MATCHED THEN UPDATE SET name = l.label
WHEN NOT MATCHED THEN INSERT (id, k, v, name) VALUES (300000 + l.k, l.k, 3, l.label)
END
both('a CTE that deletes', '
	WITH gone AS (DELETE FROM events WHERE k % 19 = 2 RETURNING id, k, v) INSERT INTO other SELECT id, k, v
	FROM gone');
both('changes of partitions', <<'END');
UPDATE days SET v = v + 1, name = 'name ' || v::text WHERE k % 7 = 1;
UPDATE days SET v = v + 1 WHERE day BETWEEN '2026-01-25' AND '2026-02-05';
DELETE FROM days WHERE name = 'name 77' OR k % 31 = 8;
INSERT INTO days SELECT '2026-02-20', i, i % 5000, i, 'name ' || i FROM generate_series(1, 2000) i
END
both('changes of tenants', <<'END');
UPDATE tenant_a.items SET id = id + 1 WHERE id % 3 = 0;
DELETE FROM tenant_b.items WHERE label = 'label 9' OR id % 5 = 0;
INSERT INTO tenant_b.items SELECT id, label FROM tenant_b.more WHERE id % 7 = 0;
UPDATE tenant_b.more m SET id = m.id + 2 FROM tenant_b.items i WHERE i.id = m.id;
END
both('SELECT ... FOR UPDATE', '
	BEGIN; SELECT count(*) FROM (SELECT id FROM events WHERE k = 39 ORDER BY id FOR UPDATE) s;
	UPDATE events SET v = v + 1 WHERE k = 39; COMMIT');
same_as_plain('after UPDATE and DELETE');
all_checked('after UPDATE and DELETE');
both('VACUUM', $_) for 'VACUUM events', 'VACUUM (ANALYZE) labels, other, days, sizes';
both('rows in the places of deleted ones', '
	INSERT INTO events SELECT i, i % 5000, now()::date, i % 11, \'name \' || i
	FROM generate_series(400000, 403999) i');
both('VACUUM FULL', 'VACUUM FULL labels');
same_as_plain('after VACUUM');
same_as_plain('after VACUUM, as a worker answers', 'west');

#
# What ends before its end
#

both('ROLLBACK', <<'END');
BEGIN;
INSERT INTO events SELECT i, i % 5000, NULL, 3 FROM generate_series(500000, 502000) i;
DELETE FROM events WHERE k % 3 = 0;
UPDATE sizes SET v = v + 1;
ROLLBACK
END
both('savepoints', <<'END');
BEGIN;
INSERT INTO events SELECT i, 77 + i % 2, NULL, 4 FROM generate_series(500000, 500300) i;
SAVEPOINT a;
UPDATE events SET id = id + 100000 WHERE k = 77 AND id >= 500000;
SELECT count(*) FROM events WHERE k = 77;
ROLLBACK TO a;
DELETE FROM events WHERE k = 77 AND id % 100 = 5;
COMMIT
END
both('a row that one worker refuses', '
	INSERT INTO events SELECT i, i % 5000, NULL, CASE WHEN i = 512000 THEN 1000000 ELSE 1 END
	FROM generate_series(510000, 513000) i',
	fails => 1);
# A constraint that the coordinator looks at when the transaction ends, after all that went to the workers
$node{coord}->safe_psql('postgres', <<'END');
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused at the end'; END $$;
CREATE TABLE last_word (i int);
CREATE CONSTRAINT TRIGGER t AFTER INSERT ON last_word
	DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse();
END
both('COMMIT that fails', <<'END', fails => 1);
BEGIN;
UPDATE events SET v = 79 WHERE id % 3 = 0;
INSERT INTO public.last_word VALUES (1);
COMMIT
END
same_as_plain('after what came to nothing');
all_checked('after what came to nothing');

#
# DDL
#

# For both sides, and what only the side with indexes gets
citus_ok('a wrong index is refused', <<'END');
SET client_min_messages = error;
DO $$
BEGIN
	CREATE INDEX bad ON dist.events USING gpu_btree (name);
	RAISE EXCEPTION 'not refused' USING errcode = 'XX000';
EXCEPTION WHEN undefined_object OR feature_not_supported THEN
END $$
END
both('ADD COLUMN', 'ALTER TABLE events ADD COLUMN extra int DEFAULT 7');
both('a column gets another type', 'ALTER TABLE events ALTER COLUMN v TYPE bigint');
citus_ok('indexes on the new column, partial and on expressions', <<'END');
SET search_path = dist;
CREATE INDEX events_extra ON events USING gpu_btree (extra);
CREATE INDEX events_part ON events USING gpu_btree (id) WHERE v < 100;
CREATE INDEX events_mod ON events USING gpu_btree ((k % 100));
CREATE INDEX events_kat ON events USING gpu_btree (k, at DESC NULLS LAST);
END
both('changes of the new column',
	'UPDATE events SET extra = k % 50 WHERE k % 4 = 1; UPDATE events SET v = 50 WHERE id % 40 = 2');
push @queries, 'SELECT id, k FROM events WHERE extra = ANY ($1) ORDER BY 1, 2',
  'SELECT id FROM events WHERE k % 100 = ANY ($1) AND v < 100 ORDER BY 1',
  'SELECT id FROM events WHERE id = ANY ($1) AND v < 100 ORDER BY 1',
  'SELECT k, at FROM events WHERE k = ANY ($1) AND at > \'2026-01-06\' ORDER BY 1, 2 DESC';
placements_have_indexes('new indexes reach the shards', 'dist.events',
	qw(events_k events_extra events_part events_mod events_kat));
same_as_plain('after ALTER TABLE');
both('RENAME', 'ALTER TABLE events RENAME COLUMN extra TO other_name');
$queries[-4] =~ s/extra/other_name/;
citus_ok('ALTER INDEX, REINDEX, DROP INDEX', <<'END');
SET search_path = dist;
ALTER INDEX events_k SET (fillfactor = 60);
ALTER INDEX events_at RENAME TO events_when;
REINDEX INDEX events_k;
REINDEX TABLE labels;
DROP INDEX events_id;
CREATE INDEX events_id ON events USING gpu_btree (id) INCLUDE (v);
END
citus_ok('REINDEX CONCURRENTLY', 'REINDEX INDEX CONCURRENTLY dist.events_when');
citus_ok('DROP INDEX CONCURRENTLY', 'DROP INDEX CONCURRENTLY dist.events_mod');
both('a partition more', <<'END');
CREATE TABLE days_3 PARTITION OF days FOR VALUES FROM ('2026-03-01') TO ('2026-04-01');
CREATE TABLE days_4 (LIKE days);
INSERT INTO days_4 SELECT '2026-04-02', i, i % 5000, i, 'name ' || i FROM generate_series(1, 2000) i;
ALTER TABLE days ATTACH PARTITION days_4 FOR VALUES FROM ('2026-04-01') TO ('2026-05-01');
INSERT INTO days SELECT '2026-03-05'::date + i % 20, i, i % 5000, i, 'name ' || i
FROM generate_series(1, 2000) i
END
both('a partition less', '
	ALTER TABLE days DETACH PARTITION days_2; DROP TABLE days_2; TRUNCATE days_1;
	INSERT INTO days_1 SELECT \'2026-01-15\', i, i, i, \'name \' || i FROM generate_series(1, 500) i');
placements_have_indexes('a partition that was attached gets the indexes', 'dist.days_4',
	qw(days_4_k_v_idx days_4_name_idx));
both('TRUNCATE', '
	TRUNCATE other; INSERT INTO other SELECT i, i % 4000, i % 70 FROM generate_series(1, 2500) i;
	INSERT INTO empty SELECT i, i FROM generate_series(1, 100) i; TRUNCATE empty');
both('TRUNCATE that is undone',
	'BEGIN; TRUNCATE events, labels, sizes; INSERT INTO events VALUES (1, 1); ROLLBACK');
both('TRUNCATE and rows in one transaction', '
	BEGIN; TRUNCATE labels; INSERT INTO labels SELECT i, \'label \' || i FROM generate_series(1, 2000) i;
	COMMIT');
$node{coord}->safe_psql('postgres', 'ALTER TABLE plain.empty ADD CONSTRAINT one UNIQUE (k, v)');
citus_ok('an exclusion constraint',
	'ALTER TABLE dist.empty ADD CONSTRAINT one EXCLUDE USING gpu_btree (k WITH =, v WITH =)');
both('rows that it allows', 'INSERT INTO empty SELECT i, i % 3 FROM generate_series(1, 300) i');
both('a row that it refuses', 'INSERT INTO empty VALUES (1000, 3), (30, 0)', fails => 1);
both('DROP COLUMN', 'ALTER TABLE events DROP COLUMN other_name');
splice(@queries, -4, 1);
same_as_plain('after DDL');
all_checked('after DDL');

citus_ok('a distributed table becomes a local one, and distributed again', <<'END');
SET client_min_messages = warning;
SELECT undistribute_table('dist.other');
SELECT create_distributed_table_concurrently('dist.other', 'o', colocate_with => 'none', shard_count => 2);
END
placements_have_indexes('its indexes came along', 'dist.other', 'other_k');
citus_ok('another number of shards', '
	SET client_min_messages = warning;
	SELECT alter_distributed_table(\'dist.events\', shard_count := 4, cascade_to_colocated := true)');
placements_have_indexes('indexes came along', 'dist.events',
	qw(events_k events_id events_name events_when events_part events_kat));
same_as_plain('after other distributions');
all_checked('after other distributions');

#
# Moves, splits and rebalancing under a load that is checked
#

# Each client has keys of its own, writes to both sides in one transaction, and then reads both sides by
# each index.  A difference is a division by zero, which ends pgbench.
$node{coord}->safe_psql('postgres', <<'END');
CREATE TABLE dist.load (k bigint, id bigint, v int, name text, PRIMARY KEY (k, id));
CREATE TABLE plain.load (LIKE dist.load INCLUDING ALL);
CREATE INDEX load_k ON dist.load USING gpu_btree (k) INCLUDE (v);
CREATE INDEX load_id ON dist.load USING gpu_btree (id);
CREATE INDEX load_name ON dist.load USING gpu_hash (name);
CREATE INDEX ON plain.load (name);
CREATE INDEX ON plain.load (id);
SELECT create_distributed_table('dist.load', 'k', colocate_with => 'none', shard_count => 4);
INSERT INTO plain.load SELECT i % 800, i, i % 5, 'name ' || i % 1000 FROM generate_series(1, 8000) i;
INSERT INTO dist.load SELECT * FROM plain.load;
ANALYZE dist.load, plain.load;
END
my $load = script_file('load', <<'END');
\set k random(0, 199) * 4 + :client_id
\set j random(0, 199) * 4 + :client_id
\set id random(1, 100000000) * 10
\set n random(0, 999)
BEGIN;
INSERT INTO dist.load
	SELECT :k::bigint, :id::bigint + i, i, 'name ' || ((:n::bigint + i) % 1000)::text
	FROM generate_series(1, 5) i ON CONFLICT DO NOTHING;
INSERT INTO plain.load
	SELECT :k::bigint, :id::bigint + i, i, 'name ' || ((:n::bigint + i) % 1000)::text
	FROM generate_series(1, 5) i ON CONFLICT DO NOTHING;
UPDATE dist.load SET v = v + 1, name = 'name ' || :n::text WHERE k = :j::bigint;
UPDATE plain.load SET v = v + 1, name = 'name ' || :n::text WHERE k = :j::bigint;
UPDATE dist.load SET v = v + 1 WHERE name = 'name ' || :n::text AND k % 4 = :client_id::bigint;
UPDATE plain.load SET v = v + 1 WHERE name = 'name ' || :n::text AND k % 4 = :client_id::bigint;
DELETE FROM dist.load WHERE k = ANY (ARRAY[:k::bigint, :j::bigint]) AND v > 6;
DELETE FROM plain.load WHERE k = ANY (ARRAY[:k::bigint, :j::bigint]) AND v > 6;
END;
SELECT count(*) AS n, coalesce(sum(v), 0) AS v FROM dist.load
	WHERE k = ANY (ARRAY[:k::bigint, :j::bigint, :k::bigint + 4, :k::bigint + 8, :j::bigint + 40]) \gset d_
SELECT count(*) AS n, coalesce(sum(v), 0) AS v FROM plain.load
	WHERE k = ANY (ARRAY[:k::bigint, :j::bigint, :k::bigint + 4, :k::bigint + 8, :j::bigint + 40]) \gset p_
SELECT 1 / (:d_n::bigint = :p_n::bigint AND :d_v::bigint = :p_v::bigint)::int AS by_key;
SELECT count(*) AS n, coalesce(sum(v), 0) AS v FROM dist.load
	WHERE name = ANY (ARRAY['name ' || :n::text, 'name 1', 'name 500'])
		AND k % 4 = :client_id::bigint \gset d_
SELECT count(*) AS n, coalesce(sum(v), 0) AS v FROM plain.load
	WHERE name = ANY (ARRAY['name ' || :n::text, 'name 1', 'name 500'])
		AND k % 4 = :client_id::bigint \gset p_
SELECT 1 / (:d_n::bigint = :p_n::bigint AND :d_v::bigint = :p_v::bigint)::int AS by_name;
SELECT count(*) AS n, coalesce(sum(v), 0) AS v FROM dist.load
	WHERE id BETWEEN :id::bigint AND :id::bigint + 9 AND k % 4 = :client_id::bigint \gset d_
SELECT count(*) AS n, coalesce(sum(v), 0) AS v FROM plain.load
	WHERE id BETWEEN :id::bigint AND :id::bigint + 9 AND k % 4 = :client_id::bigint \gset p_
SELECT 1 / (:d_n::bigint = :p_n::bigint AND :d_v::bigint = :p_v::bigint)::int AS by_id;
END

# pgbench by pgbench, until it is told to end.  A transaction that a split has made fail is rolled back on
# both sides; Citus says that there is no "valid entry" for the shard.  Nothing else may end pgbench.
my $load_dir = PostgreSQL::Test::Utils::tempdir();

sub start_load
{
	unlink "$load_dir/output";
	append_to_file("$load_dir/$_", '') for 'output', 'goes on';
	my $coord = $node{coord};
	return IPC::Run::start([ 'sh', '-c', <<'END', 'load', $load_dir, $coord->host, $coord->port, $load ]);
cd "$1"
while [ -e 'goes on' ]
do
	pgbench -n -M prepared -h "$2" -p "$3" -c 4 -j 2 -t 10 -f "$4" postgres >once 2>&1 </dev/null
	rc=$?
	cat once >>output
	[ $rc = 0 ] || grep -q 'could not find valid entry for shard' once || exit
done
END
}

# Ends the load.  Returns what went wrong with it, and how many transactions it did.
sub end_load
{
	my ($harness) = @_;
	my $done = 0;

	unlink "$load_dir/goes on";
	$harness->finish;
	my $out = slurp_file("$load_dir/output");
	$done += $1 while $out =~ /transactions actually processed: (\d+)/g;
	return (join("\n", grep { /ERROR|FATAL|error|failed transactions: [1-9]/
				  && !/could not find valid entry for shard|Run was aborted/ } split /\n/, $out), $done);
}

# One test
sub load_is_right
{
	my ($name, $harness) = @_;
	my ($wrong, $done) = end_load($harness);

	ok($wrong eq '' && $done > 0, "$name: $done transactions found no wrong answer")
	  or diag(substr($wrong, 0, 3000));
	return;
}

# Both sides have the same rows, by a scan of all and by each index.  One test.
sub load_is_same
{
	my ($name) = @_;
	my $sql = join(' UNION ALL ',
		map { "SELECT count(*), sum(v), sum(id), max(name) FROM load WHERE $_" } 'true', 'k >= 0', 'id >= 0',
		'name = ANY (ARRAY(SELECT \'name \' || i FROM generate_series(0, 999) i))');
	my ($dist, $plain) =
	  map { $node{coord}->safe_psql('postgres', "SET search_path = $_; $sql") } qw(dist plain);

	is($dist, $plain, "$name: the same rows");
	return;
}

# Shards of a table on a node
sub shards_on
{
	my ($table, $on) = @_;
	return split /\n/, $node{coord}->safe_psql('postgres',
		"SELECT shardid FROM citus_shards WHERE table_name = '$table'::regclass AND nodeport = "
		  . $node{$on}->port . ' ORDER BY 1');
}

# One test
sub move
{
	my ($table, $from, $to, $mode) = @_;
	my ($shard) = shards_on($table, $from);

	citus_ok("a shard of $table goes from $from to $to, $mode",
		"SELECT citus_move_shard_placement($shard, 'localhost', " . $node{$from}->port . ", 'localhost', "
		  . $node{$to}->port . ", shard_transfer_mode := '$mode')");
	return;
}

my $harness = start_load();
move('dist.load', 'east', 'west', 'force_logical');
move('dist.load', 'west', 'east', 'force_logical');
move('dist.load', 'east', 'west', 'block_writes');
move('dist.events', 'west', 'east', 'force_logical');
# While a shard is split without blocking writes, Citus 13.2 repeats an UPDATE for ever if a part stays on the
# same node: it reads the WAL with a catalog in which the part has no primary key yet.  That is so with any
# indexes.  So these parts go to the other node.
my ($shard) = shards_on('dist.load', 'west');
my %id = map { split /\|/ } split /\n/,
		$node{coord}->safe_psql('postgres', 'SELECT nodeport, nodeid FROM pg_dist_node');
my ($east, $west) = map { $id{ $node{$_}->port } } qw(east west);

sub split_sql
{
	my ($of, $mode, @targets) = @_;

	return "
		SELECT citus_split_shard_by_split_points($of,
			ARRAY[((shardminvalue::bigint + shardmaxvalue::bigint) / 2)::text], ARRAY[" . join(', ', @targets)
	  . "], '$mode') FROM pg_dist_shard WHERE shardid = $of";
}

citus_ok('a shard is split', split_sql($shard, 'force_logical', $east, $east));
($shard) = shards_on('dist.load', 'east');
citus_ok('a shard is split while nobody can write to it', split_sql($shard, 'block_writes', $east, $west));
citus_ok('a key gets a shard of its own',
	'SELECT isolate_tenant_to_new_shard(\'dist.load\', 401, shard_transfer_mode := \'block_writes\')');
load_is_right('moves and splits under load', $harness);
load_is_same('moves and splits under load');
placements_have_indexes('moved and split shards have every index', 'dist.load', qw(load_k load_id load_name));

$harness = start_load();
citus_ok('shards go to the coordinator, too', <<'END');
SELECT citus_set_node_property('localhost', current_setting('port')::int, 'shouldhaveshards', true);
SELECT citus_rebalance_start(shard_transfer_mode := 'force_logical');
SELECT citus_rebalance_wait()
END
is($node{coord}->safe_psql('postgres', 'SELECT bool_and(state = \'finished\') FROM pg_dist_background_job'),
	't', 'the rebalancing was finished');
cmp_ok(scalar(my @moved = shards_on('dist.load', 'coord')), '>', 0, 'the coordinator has shards');
load_is_right('rebalancing under load', $harness);
load_is_same('rebalancing under load');
same_as_plain('with shards on the coordinator');
$harness = start_load();
citus_ok('the coordinator is drained',
	'SELECT citus_drain_node(\'localhost\', current_setting(\'port\')::int, \'force_logical\')');
load_is_right('flushing under load', $harness);
load_is_same('flushing under load');
is(join(' ', shards_on('dist.load', 'coord')), '', 'the coordinator has no shards any more');
my ($tenant) = grep { shards_on('tenant_a.items', $_) } qw(east west);
citus_ok('a schema moves', 'SELECT citus_schema_move(\'tenant_a\', \'localhost\', '
	  . $node{ $tenant eq 'east' ? 'west' : 'east' }->port . ', \'force_logical\')');
citus_ok('nothing is left over', 'CALL citus_cleanup_orphaned_resources()');
same_as_plain('after moves');
same_as_plain('after moves, as a worker answers', 'east');
all_checked('after moves');

#
# Crashes between PREPARE and COMMIT
#

# A session of psql on the coordinator that nobody waits for
sub start_session
{
	my ($sql) = @_;

	return IPC::Run::start([ 'psql', '-Xq', '-h', $node{coord}->host, '-p', $node{coord}->port, '-f',
			script_file('session', $sql), 'postgres' ],
		'>', \my $out, '2>', \my $err);
}

# From its next reload or start on, a node's commits and PREPAREs wait, after they are in its WAL, for a
# standby that there is not; or wait no more
sub hold_commits
{
	my ($on, $hold) = @_;

	$node{$on}->append_conf('postgresql.conf', 'synchronous_standby_names = \'' . ($hold ? 'nobody' : '')
		  . "'");
	return;
}

# How many transactions are in doubt, on both workers
sub in_doubt
{
	return join(' ',
		map { $node{$_}->safe_psql('postgres', 'SELECT count(*) FROM pg_prepared_xacts') } qw(east west));
}

# Rows of a transaction, as two indexes find them
sub count_of
{
	my ($mark) = @_;

	return join(' ', map { $node{coord}->safe_psql('postgres', "
		SELECT count(*) FROM dist.events WHERE name = '$mark' AND $_") }
		'k = ANY (ARRAY(SELECT i::bigint FROM generate_series(0, 4999) i))', 'true');
}

# A transaction that writes to all shards, and to the twin
sub marked_insert
{
	my ($mark, $first) = @_;

	return "BEGIN;\n"
	  . join('', map { "
		INSERT INTO $_.events (id, k, v, name) SELECT i, i % 5000, 5, '$mark'
		FROM generate_series($first, $first + 1999) i;\n" } qw(dist plain))
	  . "DELETE FROM dist.events WHERE name = 'before $mark';
		DELETE FROM plain.events WHERE name = 'before $mark';
		COMMIT;\n";
}

# One that has rows to delete, in a session that hangs between PREPARE and COMMIT on a node; the others
# are prepared
sub start_marked
{
	my ($mark, $first, $where) = @_;
	my $before = join('', map { "
		INSERT INTO $_.events (id, k, v, name) SELECT i, i % 5000, 5, 'before $mark'
		FROM generate_series($first + 5000, $first + 5099) i;\n" }
		  qw(dist plain));

	$node{coord}->safe_psql('postgres', $before);
	hold_commits($where, 1);
	$node{$where}->reload;
	my $session = start_session(marked_insert($mark, $first));
	for my $on (qw(east west))
	{
		$node{$on}->poll_query_until('postgres', 'SELECT count(*) > 0 FROM pg_prepared_xacts')
		  or die "nothing is prepared on $on";
	}
	hold_commits($where, 0);
	return $session;
}

# Three tests
sub still_in_doubt
{
	my ($mark) = @_;

	unlike(in_doubt(), qr/\b0\b/, "$mark: transactions are in doubt on both workers");
	is(count_of($mark) . ' ' . count_of("before $mark"), '0 0 100 100',
		"$mark: what is in doubt is not seen");
	all_checked("$mark: in doubt");
	return;
}

# Five tests
sub recovered
{
	my ($mark, $counts) = @_;

	cmp_ok($node{coord}->safe_psql('postgres', 'SELECT recover_prepared_transactions()'), '>', 0,
		"$mark: Citus recovers");
	is(in_doubt(), '0 0', "$mark: nothing is in doubt any more");
	is(count_of($mark) . ' ' . count_of("before $mark"), $counts, "$mark: the rows are what was decided");
	same_as_plain($mark);
	all_checked($mark);
	return;
}

# The COMMIT is in the coordinator's WAL when a worker crashes
my $session = start_marked('a worker crashes', 700000, 'coord');
crash('east');
still_in_doubt('a worker crashes');
$node{coord}->reload;
$session->finish;
like(in_doubt(), qr/^[1-9]\d* 0$/, 'the other worker has committed');
recovered('a worker crashes', '2000 2000 0 0');

# The COMMIT is in the coordinator's WAL when it crashes
$session = start_marked('the coordinator crashes', 710000, 'coord');
crash('coord');
$session->finish;
still_in_doubt('the coordinator crashes');
recovered('the coordinator crashes', '2000 2000 0 0');

# One worker hangs in its PREPARE when the coordinator crashes, and it crashes, too
$session = start_marked('both crash', 720000, 'west');
crash('coord');
crash('west');
$session->finish;
still_in_doubt('both crash');
recovered('both crash', '0 0 100 100');

#
# Crashes in the middle of something
#

$session = $node{coord}->background_psql('postgres', on_error_stop => 0);
$session->query_safe('
	BEGIN; INSERT INTO dist.events (id, k, v) SELECT i, i % 5000, 6 FROM generate_series(730000, 732000) i');
crash('west');
$session->query('UPDATE dist.events SET v = v + 1 WHERE k % 100 = 1');
$session->query('COMMIT');
$session->quit;
same_as_plain('after a crash in a transaction');
both('what comes afterwards',
	'INSERT INTO events (id, k, v) SELECT i, i % 5000, 7 FROM generate_series(740000, 741000) i');

for my $round (1 .. 3)
{
	my $victim = $round == 2 ? 'west' : 'east';

	$harness = start_load();
	select(undef, undef, undef, 4);
	crash($victim);
	my ($wrong, $done) = end_load($harness);
	unlike($wrong, qr/division by zero/, "$victim crashes under load: no wrong answer before it")
	  or diag(substr($wrong, 0, 3000));
	$node{coord}->safe_psql('postgres', 'SELECT recover_prepared_transactions()');
	is(in_doubt(), '0 0', "$victim crashes under load: nothing is in doubt");
	load_is_same("$victim crashes under load");
}

# The target of a move crashes while rows are being copied
($shard) = shards_on('dist.events', 'east');
$session = start_session("SELECT citus_move_shard_placement($shard, 'localhost', " . $node{east}->port
	  . ", 'localhost', " . $node{west}->port . ", shard_transfer_mode := 'force_logical')");
$node{west}->poll_query_until('postgres', 'SELECT count(*) > 0 FROM pg_subscription');
crash('west');
$session->finish;
$node{coord}->safe_psql('postgres',
	'SELECT recover_prepared_transactions(); CALL citus_cleanup_orphaned_resources()');
same_as_plain('after a crash in a move');
move('dist.events', 'east', 'west', 'force_logical');
same_as_plain('after another move');
all_checked('after crashes');

#
# An index that is wrong
#

my ($broken) = shards_on('dist.events', 'east');
my $path = file_of($node{east}, "dist.events_k_$broken");

$node{east}->stop;
PostgreSQL::Test::Utils::system_or_bail('cp', $path, "$path.former");
$node{east}->start;
both('rows that an index will lack',
	'INSERT INTO events (id, k, v) SELECT i, i % 4500, 8 FROM generate_series(800000, 804499) i');
same_as_plain('before an index is broken');
$node{east}->stop;
PostgreSQL::Test::Utils::system_or_bail('mv', "$path.former", $path);
$node{east}->start;
cmp_ok(scalar wrong_answers('coord'), '>', 0, 'answers by an index that lacks rows are found to be wrong');
my ($rc, $out, $err) = $node{east}->psql('postgres',
	"SELECT gpuds_index_check('dist.events_k_$broken', true)");
isnt($rc, 0, 'so does the check of the index');
citus_ok('REINDEX through the coordinator', 'REINDEX INDEX dist.events_k');
same_as_plain('after REINDEX');
all_checked('at the end');

done_testing();

#
# Measuring
#

# Forms in which 100,000 keys ($1) are looked up in a distributed table TABLE, whose column k it is
# distributed by.  COLUMNS are what is wanted.  A form is one statement, or several, of which each has a
# name; the time is that of all.
sub forms
{
	return (
		[ 'plain: k = ANY ($1)', [ q => 'SELECT COLUMNS FROM TABLE WHERE k = ANY ($1)' ] ],
		[ 'k = ANY (ARRAY(SELECT unnest($1)))', [ q => '
			SELECT COLUMNS FROM TABLE WHERE k = ANY (ARRAY(SELECT unnest($1)))' ] ],
		[ 'CTE, k = ANY (ARRAY(...))', [ q => '
			WITH keys AS MATERIALIZED (SELECT unnest($1) AS k) SELECT COLUMNS FROM TABLE
			WHERE k = ANY (ARRAY(SELECT k FROM keys))' ] ],
		[ 'CTE, joined', [ q => '
			WITH keys AS MATERIALIZED (SELECT DISTINCT unnest($1) AS k) SELECT COLUMNS FROM keys JOIN TABLE
			USING (k)' ] ],
		[ 'own keys: staged, joined', [ i => 'INSERT INTO staged_TABLE SELECT DISTINCT unnest($1)' ], [ q => '
			SELECT COLUMNS FROM staged_TABLE JOIN TABLE USING (k) WHERE $1 IS NOT NULL' ] ],
		[ 'own keys: a command for each shard', [ q => <<'END' ] ]);
WITH parts AS MATERIALIZED (
  SELECT shardid, array_agg(k) AS keys
  FROM (SELECT get_shard_id_for_distribution_column('TABLE', k) AS shardid, k FROM unnest($1) k) s
  GROUP BY 1),
commands AS MATERIALIZED (
  SELECT array_agg(n.nodename) AS names, array_agg(n.nodeport) AS ports,
    array_agg(format('COMMAND', shard_name('TABLE', p.shardid), p.keys)) AS texts
  FROM parts p JOIN pg_dist_placement l USING (shardid) JOIN pg_dist_node n USING (groupid))
SELECT TEXT_COLUMNS FROM commands, LATERAL master_run_on_worker(names, ports, texts, true) r
END
}

# What the processors have done for all servers so far: their processes, and those that have ended.  Unlike
# elapsed time it depends little on what else the machine does.
sub cpu_script
{
	my @postmasters = map { slurp_file($node{$_}->data_dir . '/postmaster.pid') =~ /^(\d+)/ } @names;
	my $of = "-v of=' @postmasters '";
	my $file = script_file('cpu', "cat /proc/[0-9]*/stat 2>/dev/null | awk $of " . <<'END');
'{
	sub(/\(.*\)/, "x")
	if (index(of, " " $1 " "))
		t += $14 + $15 + $16 + $17
	else if (index(of, " " $4 " "))
		t += $14 + $15
}
END { print "Cpu: " t }'
END

	return "\\! sh $file\n";
}

# The fastest of so many executions of a form, in milliseconds; what the processors did in one, on
# average; and what finds rows in the plan of a shard
sub fastest_ms
{
	my ($table, $columns, $times, @statements) = @_;
	my $sum = $columns =~ /^sum/;
	my $sql = "SELECT keys FROM wanted \\gset\n";
	my $once = '';
	my $how = '';

	for my $statement (@statements)
	{
		my ($name, $text) = @$statement;
		if ($sum)
		{
			$text =~ s/SELECT TEXT_COLUMNS FROM (.*)/SELECT sum(r.result::bigint) FROM $1/;
			$text =~ s/COMMAND/SELECT sum(v) FROM %s WHERE k = ANY (%L)/;
		}
		else
		{
			my $rows = 'json_to_recordset(r.result::json) j(k bigint, note text)';

			$text =~ s/SELECT TEXT_COLUMNS FROM (.*)/SELECT j.k, j.note FROM $1, $rows/;
			$text =~ s/COMMAND/SELECT json_agg(r) FROM (SELECT k, note FROM %s WHERE k = ANY (%L)) r/;
		}
		$text =~ s/COLUMNS/$columns/;
		$text =~ s/TABLE/$table/g;
		$sql .= "PREPARE $name(bigint[]) AS $text;\n";
		$once .= "EXECUTE $name(:'keys');\n";
	}
	$once = "BEGIN;\n${once}ROLLBACK;\n" if @statements > 1;
	my $explained = $once =~ s/EXECUTE q/EXPLAIN (COSTS OFF) EXECUTE q/r;
	my $out = $node{coord}->safe_psql('postgres', $sql . $explained . "\\o /dev/null\n\\timing on\n"
		  . cpu_script() . $once x $times . cpu_script());
	($how) = $out =~ /Custom Scan \((Gpuds\w+)\)/;
	my $scan = qr/Bitmap Heap Scan|Index Only Scan|Index Scan|(?:Parallel )?Seq Scan/;
	($how) = $out =~ /($scan)[^\n]* (?:on|using) (?:\w+\.)?$table/ unless $how;
	my @times = $out =~ /^Time: ([0-9.]+) ms/mg;
	my @ms;

	while (@times)
	{
		push @ms, sum(splice(@times, 0, @statements > 1 ? @statements + 2 : 1));
	}
	my ($before, $after) = $out =~ /^Cpu: (\d+)/mg;
	return (min(@ms), ($after - $before) / $times * 1000 / POSIX::sysconf(POSIX::_SC_CLK_TCK()), $how // '');
}

sub measure
{
	make_cluster(map { $_ => "shared_buffers = 1GB\nmax_wal_size = 4GB\n" } @names);
	$node{coord}->safe_psql('postgres', <<"END");
CREATE TABLE wanted AS
  SELECT array_agg((i * 104729) % ($measure * 4::bigint))::text AS keys
  FROM generate_series(1::bigint, 100000) i
END
	note('| shards | index | form | columns | a shard finds rows by | ms | processor ms |');
	note('|--:|---|---|---|---|--:|--:|');
	for my $shards (2, 8, 32)
	{
		my $table = "events$shards";

		$node{coord}->safe_psql('postgres', <<"END");
CREATE TABLE $table (k bigint, v int, note text);
SELECT create_distributed_table('$table', 'k', shard_count => $shards, colocate_with => 'none');
CREATE UNLOGGED TABLE staged_$table (k bigint);
SELECT create_distributed_table('staged_$table', 'k', colocate_with => '$table');
INSERT INTO $table SELECT (i * 7919) % ($measure * 4::bigint), i, 'a note of some length ' || i
	FROM generate_series(1::bigint, $measure) i;
END
		for my $index (qw(btree gpu_btree))
		{
			$node{coord}->safe_psql('postgres', "
				DROP INDEX IF EXISTS ${table}_k;
				CREATE INDEX ${table}_k ON $table USING $index (k) INCLUDE (v)");
			$node{coord}->safe_psql('postgres', "VACUUM ANALYZE $table");
			for my $columns ('k, note', 'sum(v)')
			{
				for my $form (forms())
				{
					my ($name, @statements) = @$form;
					# The plain form takes ten times as long as others
					my ($ms, $cpu, $how) =
					  fastest_ms($table, $columns, $name =~ /^plain/ ? 2 : 5, @statements);
					note(sprintf('| %d | %s | %s | %s | %s | %.0f | %.0f |', $shards, $index, $name, $columns,
							$how, $ms, $cpu));
					$node{coord}->safe_psql('postgres', "TRUNCATE staged_$table");
				}
			}
		}
		$node{coord}->safe_psql('postgres', "DROP TABLE $table, staged_$table");
	}
	ok(1, 'measured');
	return;
}
