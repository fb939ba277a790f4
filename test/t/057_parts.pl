# Parts: an index that is larger than a GPU's memory is divided among several by ranges of keys, and so is
# one that is asked to be.  It answers as others do, is brought up, evicted and loaded as a whole, and the
# loss of one GPU costs a load.

use strict;
use warnings;

use GpudsCards;
use GpudsPoints;
use GpudsTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = several_cards('parts', '', streaming => 1);
$node->append_conf('postgresql.conf',
	"gpuds.device_ids = '0,1,2,3'\ngpuds.device_memory = " . structure_memory(20) . "\n");
$node->restart;

sub value { return $node->safe_psql('postgres', $_[0]) }
sub fails { return ($node->psql('postgres', $_[0]))[2] }

# On how many GPUs each copy of an index is that is loaded, and how many GPUs have memory in use
sub parts_of
{
	return "SELECT string_agg((length(device) / 2 - 2)::text, ' ') FROM gpuds_indexes
		WHERE indexrelname = '$_[0]' AND state = 'loaded' AND device ~ '^cuda:'";
}
my $used = "SELECT count(*) FROM gpuds_devices WHERE kind = 'cuda' AND memory_used > 0";

# Queries of table t: ranges and sets within a part and over several, in both directions, and what is counted,
# grouped, skipped and joined
my @queries = (
	'SELECT count(*), sum(v) FROM t WHERE k BETWEEN 500 AND 19000',
	'SELECT count(*), sum(v), min(v), max(v) FROM t WHERE k >= 10000',
	'SELECT k, v FROM t WHERE k = 700 ORDER BY k, v LIMIT 5',
	'SELECT min(k), max(k), count(*) FROM t WHERE k > 19000',
	'SELECT k % 10 AS g, count(*) FROM t WHERE k < 15000 GROUP BY g ORDER BY g',
	'SELECT k, count(*) FROM t WHERE k BETWEEN 0 AND 19999 GROUP BY k ORDER BY k OFFSET 6000 LIMIT 3000',
	'SELECT count(DISTINCT k) FROM t WHERE k < 19900',
	'SELECT sum(k), sum(v) FROM t WHERE k = ANY (ARRAY(SELECT i * 30 FROM generate_series(1, 600) i))',
	'SELECT array_agg(k) FROM (SELECT k FROM t WHERE k BETWEEN 500 AND 19000 ORDER BY k) s',
	'SELECT array_agg(k) FROM (SELECT k FROM t WHERE k BETWEEN 500 AND 19000 ORDER BY k DESC) s',
	'SELECT array_agg(k) FROM (SELECT k FROM t ORDER BY k DESC OFFSET 9000 LIMIT 2000) s',
	'SELECT array_agg(k) FROM (SELECT k FROM t ORDER BY k OFFSET 12000 LIMIT 20) s',
	'SELECT percentile_disc(ARRAY[0.1, 0.5, 0.9]) WITHIN GROUP (ORDER BY k) FROM t WHERE k < 19500',
	'SELECT count(*) FROM t JOIN u USING (k)',
	'SELECT count(*) FROM t WHERE EXISTS (SELECT FROM u WHERE u.k = t.k)',
	'SELECT count(*) FROM u WHERE NOT EXISTS (SELECT FROM t WHERE u.k = t.k)');

sub answers { return answers_agree($node, $_[0], @queries) }

# Functions that ask the index itself, against the table
sub functions_agree
{
	my ($name) = @_;
	my $keys = 'ARRAY(SELECT i * 7919 % 25000 FROM generate_series(1, 20000) i)::bigint[]';
	my $right = value("SELECT count(*), sum(k), sum(v) FROM w WHERE k IN (SELECT unnest($keys))");

	for my $how ('index', 'bitmap')
	{
		is(value(index_sql("SELECT count(*), sum(k), sum(v) FROM t WHERE k = ANY ($keys)", $how)), $right,
			"$name: many keys, $how");
		is(value(index_sql("SELECT count(*) FROM t WHERE k = ANY ($keys)", $how)), $right =~ s/\|.*//r,
			"$name: a count of many keys, $how");
	}

	is(value("SELECT count(*) FROM unnest($keys, gpuds_contains('i', $keys)) AS a (k, found)
			WHERE found <> EXISTS (SELECT FROM w WHERE w.k = a.k)"), '0', "$name: gpuds_contains");
	is(value("SELECT count(*) FROM gpuds_lookup('i', $keys)"),
		value("SELECT count(*) FROM w JOIN unnest($keys) a (k) USING (k)"), "$name: gpuds_lookup");
	is(value("SELECT gpuds_count('i', 100, 19900)"),
		value('SELECT count(*) FROM w WHERE k BETWEEN 100 AND 19900'), "$name: gpuds_count");
	return;
}

cards_are($node, 'all serve', ('ready') x 4);
value('CREATE TABLE t (k bigint, v int);
	INSERT INTO t SELECT i::bigint * 7919 % 20000, i FROM generate_series(1, 20000) i;
	CREATE TABLE u AS SELECT i::bigint AS k FROM generate_series(1, 9000) i;
	CREATE INDEX i ON t USING gpu_btree (k); CREATE INDEX ui ON u USING gpu_btree (k);
	VACUUM (FREEZE, ANALYZE) t, u; CREATE TABLE w AS SELECT * FROM t');

# How many there can be
like(fails("SELECT gpuds_index_load('i', 1, $_)"), qr/parts of index "i" must be between 1 and 4/, "not $_")
  for (-1, 0, 5);
like(fails("SELECT gpuds_index_load('i', 2, 3)"), qr/parts of index "i" must be between 1 and 2/,
	'not three of two copies');

# As many as are asked for
for my $parts (4, 2, 1, 3)
{
	value("SELECT gpuds_index_evict('ui'); SELECT gpuds_index_load('i', 1, $parts)");
	is(value(parts_of('i')) . ' ' . value($used), "$parts $parts", "divided by $parts");
	answers("$parts parts");
	functions_agree("$parts parts");
}
value("SELECT gpuds_index_load('i')");
is(value(parts_of('i')), '3', 'the number stays');
is(value("SELECT entries FROM gpuds_indexes WHERE indexrelname = 'i'"), '20000', 'entries of all parts');
like(value('EXPLAIN (ANALYZE, VERBOSE, COSTS OFF) SELECT count(*) FROM t WHERE k < 15000'),
	qr/Device: cuda:\d, cuda:\d, cuda:\d$/m, 'EXPLAIN says where');
check_index($node, 'i', 'the parts are whole');

# Changes go to the part of their key.
value('UPDATE t SET k = 20000 - k WHERE k % 7 = 0; DELETE FROM t WHERE k % 11 = 0;
	INSERT INTO t SELECT NULL, i FROM generate_series(1, 10) i;
	INSERT INTO t SELECT 700, i FROM generate_series(1, 3000) i;
	INSERT INTO t SELECT 10000 + i % 3, i FROM generate_series(1, 2000) i;
	TRUNCATE w; INSERT INTO w SELECT * FROM t');
answers('changed');
functions_agree('changed');
check_index($node, 'i', 'changed: the parts are whole');
value('VACUUM t');
answers('cleaned');

# With replicas
value("SELECT gpuds_index_evict('ui'); SELECT gpuds_index_load('i', 2, 2)");
is(value(parts_of('i')) . ' ' . value($used), '2 2 4', 'two copies of two parts');
answers('two copies of two parts');
check_index($node, 'i', 'two copies: all parts are whole');
value("SELECT gpuds_index_evict('$_')") for ('i', 'ui');
is(value($used), '0', 'evicted: all memory is back');
answers('evicted');
is(value(parts_of('i')) =~ s/ .*//r, '2', 'loaded by scans: in parts again');
value("SELECT gpuds_index_load('i', 1, 1)");

# All access methods, keys of two words, many equal keys, and none; bounds within the entries of a key, which
# differ in the first word by an INCLUDE column
value('CREATE TABLE x AS
		SELECT md5(i::text)::uuid AS g, i % 3 AS few, i::text AS s, i % 1300 AS k, (i % 300)::smallint AS v
		FROM generate_series(1, 30000) i;
	CREATE INDEX xg ON x USING gpu_btree (g); CREATE INDEX xl ON x USING gpu_skiplist (g);
	CREATE INDEX xf ON x USING gpu_btree (few); CREATE INDEX xh ON x USING gpu_hash (s);
	CREATE INDEX xk ON x USING gpu_btree (k) INCLUDE (v);
	CREATE TABLE e (k int); CREATE INDEX ei ON e USING gpu_btree (k);
	VACUUM (FREEZE, ANALYZE) x, e');
my @others = ("SELECT count(*) FROM x WHERE g > '40000000-0000-0000-0000-000000000000'",
	"SELECT s FROM x WHERE g BETWEEN '30000000-0000-0000-0000-000000000000'
		AND 'c0000000-0000-0000-0000-000000000000' ORDER BY g DESC",
	'SELECT few, count(*) FROM x WHERE few < 2 GROUP BY few ORDER BY few',
	'SELECT count(*) FROM x WHERE few = 1',
	"SELECT count(*) FROM x WHERE s = ANY (ARRAY(SELECT (i * 50)::text FROM generate_series(1, 500) i))",
	'SELECT count(*), sum(v) FROM x WHERE k = ANY (ARRAY(SELECT i % 1500 FROM generate_series(1, 5000) i))',
	'SELECT count(*) FROM e WHERE k > 0');
for my $index ('xg', 'xl', 'xf', 'xh', 'xk', 'ei')
{
	value("SELECT gpuds_index_evict(indexrelid) FROM gpuds_indexes;
		SELECT gpuds_index_load('$index', 1, 4)");
	is(value(parts_of($index)), '4', "$index has four parts");
	answers_agree($node, $index, @others);
	check_index($node, $index, "$index: all parts are whole");
}
value('INSERT INTO e SELECT i * 3 % 10007 FROM generate_series(1, 10000) i');
answers_agree($node, 'filled', @others,
	'SELECT array_agg(k) FROM (SELECT k FROM e WHERE k > 99 ORDER BY k DESC) s');
value("SELECT gpuds_index_evict('ei'); SELECT gpuds_index_load('ei')");
is(value(parts_of('ei')), '4', 'from stripes: four parts');
check_index($node, 'ei', 'from stripes: all parts are whole');
value('DROP TABLE x, e');

# An index that is larger than a GPU's memory needs not be asked for.
value('CREATE TABLE b (k bigint, v int);
	INSERT INTO b SELECT i::bigint * 7919 % 700001, i FROM generate_series(1, 700000) i;
	CREATE INDEX bi ON b USING gpu_btree (k); VACUUM (FREEZE, ANALYZE) b');
my @large = ('SELECT count(*), sum(v) FROM b WHERE k BETWEEN 1000 AND 690000',
	'SELECT count(*) FROM b WHERE k = ANY (ARRAY(SELECT i * 4999 FROM generate_series(1, 100) i))',
	'SELECT k, v FROM b WHERE k BETWEEN 499990 AND 500010 ORDER BY k');
answers_agree($node, 'larger than a GPU', @large);
is(value(parts_of('bi')), '2', 'larger than a GPU: two parts');
like(value(index_sql('EXPLAIN (ANALYZE, VERBOSE, COSTS OFF) SELECT count(*) FROM b WHERE k > 1000')),
	qr/Device: cuda:\d, cuda:\d$/m, 'both answer');
memory_is_kept($node, 'larger than a GPU');

# It grows in its last part, and others need the room.
value('INSERT INTO b SELECT 700001 + i, i FROM generate_series(1, 50000) i');
answers_agree($node, 'grown', @large, 'SELECT count(*), sum(v) FROM b WHERE k > 600000');
value('CREATE INDEX bv ON b USING gpu_btree (v)');
value("SELECT gpuds_index_load('bv', 1, 4)");
is(value(parts_of('bv')), '4', 'another, in more parts');
memory_is_kept($node, 'another, in more parts');
value("SELECT gpuds_index_load('bi')");
answers_agree($node, 'loaded again', @large);
memory_is_kept($node, 'loaded again');

# It grows beyond what the last part has room for: it answers, and is divided among more when it is made anew.
value("DROP INDEX bv; SELECT gpuds_index_evict('bi'); SELECT gpuds_index_load('bi')");
is(value(parts_of('bi')), '2', 'about to grow: two parts');
value('INSERT INTO b SELECT 800000 + i, i FROM generate_series(1, 600000) i');
my @grown = (@large, 'SELECT count(*), sum(v) FROM b WHERE k > 600000',
	'SELECT count(*) FROM b WHERE k = ANY (ARRAY(SELECT i * 997 FROM generate_series(1, 1400) i))');
answers_agree($node, 'grown beyond a GPU', @grown);
memory_is_kept($node, 'grown beyond a GPU');
value('REINDEX INDEX bi');
answers_agree($node, 'made anew', @grown);
cmp_ok(value(parts_of('bi')) || 0, '>', 2, 'made anew: divided among more');
check_index($node, 'bi', 'made anew: the parts are whole');
value('DROP TABLE b');

# A GPU has room for what is expected of an index, but not for the changes that the load leaves to catch-up:
# it is loaded once more, in parts.
my $code = 'i * 2654435761 % 4294967291';
value("CREATE TABLE c (k bigint); INSERT INTO c SELECT $code FROM generate_series(1, 20000) i;
	CREATE INDEX ci ON c USING gpu_btree (k)");
value("SELECT gpuds_index_load('ci'); SELECT gpuds_index_evict('ci')");
value("INSERT INTO c SELECT $code FROM generate_series(20001, 600000) i; ANALYZE c");
answers_agree($node, 'no room for changes', 'SELECT count(*), sum(k) FROM c WHERE k > 5000',
	"SELECT count(*) FROM c WHERE k = ANY (ARRAY(SELECT $code FROM generate_series(1, 900) i))");
cmp_ok(value(parts_of('ci')) || 0, '>', 1, 'no room for changes: it is divided');
memory_is_kept($node, 'no room for changes');

# Where much of it is gone, one GPU will do.
value('DELETE FROM c WHERE k % 2 = 0; VACUUM c');
value("SELECT gpuds_index_evict('ci'); SELECT gpuds_index_load('ci')");
like(value("SELECT device FROM gpuds_indexes WHERE indexrelname = 'ci' AND state = 'loaded'"),
	qr/^cuda:\d$/, 'much is gone: on one GPU');
answers_agree($node, 'much is gone', 'SELECT count(*), sum(k) FROM c WHERE k > 5000');
value('DROP TABLE c');
is(value($used), '0', 'dropped: all memory is back');

SKIP:
{
	skip 'not built with INJECTION_POINTS=1', 1 unless injection_points($node);

	sub loads { return value("SELECT loads FROM gpuds_stat_indexes WHERE indexrelname = 'i'") }
	sub losses { return "SELECT sum(losses) FROM gpuds_devices WHERE kind = 'cuda'" }

	# A load that is given up gives back what each GPU has.
	like(fails("SET gpuds.device_fault = 'sticky'; SELECT gpuds_index_load('i', 1, 4)"),
		qr/^$|could not load/, 'a GPU is lost under a load');
	cards_are($node, 'lost under a load', ('ready') x 4);
	value("SELECT gpuds_index_evict('i'); SELECT gpuds_index_load('i', 1, 4)");
	is(value(parts_of('i')), '4', 'loaded afterwards');

	# A request is held by the GPU of the first keys, or of the last ones, and cancelled.
	for my $keys ('k < 10', 'k BETWEEN 19990 AND 30000', 'k > 0')
	{
		like(fails("SET gpuds.device_fault = 'hold'; SET statement_timeout = '500ms'; "
				  . index_sql("SELECT count(*) FROM t WHERE $keys")),
			qr/statement timeout/, "cancelled: $keys");
	}
	answers('cancelled');

	# The GPU of the last keys is lost: a load on those that are left, which gives their parts back before.
	fail_to_open($node, 1000);
	my $loads = loads();
	is(lose_card($node, 'SELECT count(*) FROM t WHERE k > 19000'),
		value(scan_sql('SELECT count(*) FROM t WHERE k > 19000')), 'lost under a query: right answer');
	becomes($node, 'one is lost', losses(), 2);
	answers('one is lost');
	is(value(parts_of('i')), '3', 'divided among the others');
	is(loads(), $loads + 1, 'by one load');
	check_index($node, 'i', 'one is lost: the parts are whole');

	# What the others still have of one that is lost, and that nobody asks for, makes room.
	lose_card($node, 'SELECT count(*) FROM t WHERE k > 19000');
	becomes($node, 'two are lost', losses(), 3);
	value('CREATE TABLE b (k bigint); INSERT INTO b SELECT i FROM generate_series(1, 800000) i;
		CREATE INDEX bi ON b USING gpu_btree (k); VACUUM (FREEZE, ANALYZE) b');
	value("SELECT gpuds_index_evict('i'); SELECT gpuds_index_load('bi', 1, 2)");
	is(value(parts_of('bi')), '2', 'two are lost: on the two that are left');
	value('DROP TABLE b');
	fail_to_open($node, 0);
	cards_are($node, 'all serve again', ('ready') x 4);
	value("SELECT gpuds_index_load('i', 1, 3)");
	is(value(parts_of('i')), '3', 'all serve again: three parts');

	# Readers and writers, who move keys from part to part, while GPUs are lost and the index is evicted
	value('DELETE FROM t WHERE k < 0 OR k > 20000; INSERT INTO t VALUES (5, 0)');
	my $right = value('SELECT sum(v) FROM t WHERE k BETWEEN 0 AND 20000');
	my $first = value('SELECT k FROM t WHERE k BETWEEN 0 AND 20000 ORDER BY k LIMIT 1');
	my $reads = script_file('reads', "SET client_min_messages = error; SET enable_seqscan = off;
		SELECT 1 / (sum(v) = $right)::int FROM t WHERE k BETWEEN 0 AND 20000;
		SELECT 1 / (count(*) = 5000)::int
		FROM (SELECT k FROM t WHERE k <= 20000 ORDER BY k DESC LIMIT 5000) s;\n");
	my $writes = script_file('writes', "\\set a random(0, 20000)
		SET client_min_messages = error; SET enable_seqscan = off;
		BEGIN; UPDATE t SET k = 20000 - k WHERE k = :a; COMMIT;
		BEGIN; INSERT INTO t SELECT :a, 1 FROM generate_series(1, 20); ROLLBACK;\n");
	my $evicts = script_file('evicts', "\\set parts random(1, 4)
		SET client_min_messages = error; SELECT gpuds_index_evict('i');
		DO \$\$ BEGIN PERFORM gpuds_index_load('i', 1, :parts);
			EXCEPTION WHEN out_of_memory OR insufficient_resources THEN NULL; END \$\$;
		SELECT pg_sleep(0.3);\n");
	my $bench = start_pgbench($node, '-c 8 -j 2 -T 12', [ $reads, 3 ], [ $writes, 2 ], [ $evicts, 1 ]);
	for (1 .. 6)
	{
		lose_card($node, $queries[ int(rand(2)) ]);
		select(undef, undef, undef, 1);
	}
	ok(finish_pgbench($bench), 'lost again and again: right answers') or diag($bench->{out});
	cards_are($node, 'at the end', ('ready') x 4);
	value('TRUNCATE w; INSERT INTO w SELECT * FROM t');
	answers('at the end');
	functions_agree('at the end');
	check_all_indexes($node, 'at the end: all parts are whole');
}

# A standby divides as its own GPUs allow, follows changes of all parts, and goes on when it is promoted.
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;

sub standby_agrees
{
	my ($name, $parts) = @_;

	$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
	answers_agree($standby, $name, @queries);
	is($standby->safe_psql('postgres', parts_of('i')), $parts, "$name: $parts parts");
	return;
}

cards_are($standby, 'standby', ('ready') x 4);
$standby->safe_psql('postgres', "SELECT gpuds_index_load('i', 1, 4)");
value("SELECT gpuds_index_load('i', 1, 2)");
standby_agrees('standby', '4');
value('UPDATE t SET k = 20000 - k WHERE k % 5 = 0; DELETE FROM t WHERE k % 13 = 0; VACUUM t;
	INSERT INTO t SELECT i * 17 % 20000, i FROM generate_series(1, 4000) i');
standby_agrees('standby, changed', '4');
value("REINDEX INDEX i; INSERT INTO t SELECT 10000, i FROM generate_series(1, 500) i");
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
$standby->safe_psql('postgres', "SELECT gpuds_index_load('i', 1, 3)");
standby_agrees('standby, made anew', '3');
$node->stop('fast');
$standby->promote;
$standby->safe_psql('postgres',
	'DELETE FROM t WHERE k % 3 = 0; VACUUM t; INSERT INTO t SELECT k + 1, v FROM t');
answers_agree($standby, 'promoted', @queries);
check_index($standby, 'i', 'promoted: all parts are whole');
$standby->stop('fast');
unlike(slurp_file($standby->logfile), qr/was terminated by signal|PANIC/, 'nothing crashed on the standby');
unlike(slurp_file($node->logfile), qr/was terminated by signal|PANIC/, 'nothing crashed');

done_testing();
