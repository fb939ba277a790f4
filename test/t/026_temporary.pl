# Mirrors of temporary indexes: their memory comes back whatever becomes of the
# index, keeps to gpuds.temp_memory, and is not taken from under a cursor.

use strict;
use warnings;

use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;

plan(skip_all => 'no /proc here') unless -r '/proc/self/status';

my $node = new_node('temporary', conf => "gpuds.temp_memory = 256MB\ntemp_buffers = 1MB\n");
my $rows = 200_000;    # of which a mirror takes more than 4 MB
my $fill = "INSERT INTO t SELECT i * 7919 % $rows, i FROM generate_series(1, $rows) i;";
my $query = 'SELECT count(*) FROM t WHERE k BETWEEN 1000 AND 1999;';
my $session;

sub begin_session
{
	$session = $node->background_psql('postgres', on_error_stop => 0);
	$session->query('
		SET enable_seqscan = off; SET enable_bitmapscan = off; SET client_min_messages = error;');
	return;
}

# Private memory of the session's process in kB, without what malloc may keep
sub memory
{
	my $pid = $session->query('SELECT pg_backend_pid();');
	return slurp_file("/proc/$pid/status") =~ /^RssAnon:\s+(\d+) kB/m ? $1 : die;
}

# Two rounds, then eight more that must not take more memory: a leak of eight
# mirrors is 32 MB and more.  round: SQL that ends with $query, or a sub
sub stays_bounded
{
	my ($name, $round) = @_;
	my $wrong = 0;
	my $before;

	for my $i (1 .. 10)
	{
		for my $statement (split(/(?<=;)\s*/, $round))
		{
			my $got = $session->query($statement);
			$wrong++ if $statement eq $query && $got ne '1000';
		}
		$before = memory() if $i == 2;
	}
	is($wrong, 0, "$name: right answers");
	cmp_ok(memory() - $before, '<', 12 * 1024, "$name: memory is bounded");
	return;
}

begin_session();
$session->query("CREATE TEMP TABLE t (k int, v int); CREATE INDEX t_k ON t USING gpu_btree (k);");
stays_bounded('TRUNCATE', "TRUNCATE t; $fill $query");
stays_bounded('REINDEX', "REINDEX INDEX t_k; $query");
stays_bounded('TRUNCATE that is rolled back', "BEGIN; TRUNCATE t; $fill $query ROLLBACK; $query");
stays_bounded('REINDEX in a savepoint that is rolled back',
	"BEGIN; SAVEPOINT s; REINDEX INDEX t_k; $query ROLLBACK TO s; $query COMMIT;");
stays_bounded('rewritten', "ALTER TABLE t ALTER v TYPE bigint; ALTER TABLE t ALTER v TYPE int; $query");
stays_bounded('dropped', "DROP INDEX t_k; CREATE INDEX t_k ON t USING gpu_btree (k); $query");
$session->query('DROP TABLE t;');
stays_bounded('created and rolled back', "
	BEGIN; CREATE TEMP TABLE t (k int, v int); CREATE INDEX t_k ON t USING gpu_btree (k);
	$fill $query ROLLBACK;");
stays_bounded('created and dropped', "
	CREATE TEMP TABLE t (k int, v int); CREATE INDEX t_k ON t USING gpu_btree (k);
	$fill $query DROP TABLE t;");
stays_bounded('ON COMMIT DROP', "
	BEGIN; CREATE TEMP TABLE t (k int, v int) ON COMMIT DROP; CREATE INDEX t_k ON t USING gpu_btree (k);
	$fill $query COMMIT;");
stays_bounded('DISCARD TEMP', "
	CREATE TEMP TABLE t (k int, v int); CREATE INDEX t_k ON t USING gpu_btree (k);
	$fill $query DISCARD TEMP;");
$session->query('
	CREATE TEMP TABLE t (k int, v int) ON COMMIT DELETE ROWS; CREATE INDEX t_k ON t USING gpu_btree (k);');
stays_bounded('ON COMMIT DELETE ROWS', "BEGIN; $fill $query COMMIT;");
$session->query('DROP TABLE t;');
my $made = '';
for my $n (1 .. 3)
{
	$made .= "
		BEGIN; CREATE TEMP TABLE t (k int, v int); CREATE INDEX ON t USING gpu_btree (k);
		$fill $query COMMIT; ALTER TABLE t RENAME TO t$n; TRUNCATE t$n;";
}
stays_bounded('many tables, one after the other', "$made DROP TABLE t1, t2, t3;");
$session->quit;

# A mirror that goes gives its memory back at once, beside others that stay
begin_session();
$session->query("
	CREATE TEMP TABLE small (k int); CREATE INDEX small_k ON small USING gpu_btree (k);
	INSERT INTO small SELECT generate_series(1, 100);");
$session->query("CREATE TEMP TABLE t (k int, v int); CREATE INDEX t_k ON t USING gpu_btree (k); $fill");
my $before = memory();
is($session->query($query), '1000', 'a large one');
is($session->query('SELECT count(*) FROM small WHERE k > 50;'), '50', 'a small one beside it');
my $with = memory();
cmp_ok($with - $before, '>', 3 * 1024, 'the large one takes memory');
$session->query("SELECT gpuds_index_evict('t_k');");
cmp_ok($with - memory(), '>', 3 * 1024, 'which is the system\'s again when it goes');
is($session->query('SELECT count(*) FROM small WHERE k > 50;'), '50', 'the small one is still there');
is($session->query("SELECT state FROM gpuds_indexes WHERE indexrelid = 'small_k'::regclass;"), 'loaded',
	'and loaded');
is($session->query($query), '1000', 'the large one comes back');

# The limit: they push each other out; what is larger than it is read from the journal
$session->query('
	CREATE TEMP TABLE u AS SELECT * FROM t; CREATE INDEX u_k ON u USING gpu_btree (k);
	SET client_min_messages = warning;');
$session->query("SET gpuds.temp_memory = '8MB';");
for my $round (1 .. 3)
{
	is($session->query($query), '1000', 'in turn: one');
	is($session->query('SELECT count(*) FROM u WHERE k BETWEEN 1000 AND 1999;'), '1000',
		'in turn: the other');
}
is($session->query("
	SELECT count(*) FROM gpuds_indexes WHERE state = 'loaded'
		AND indexrelid IN ('t_k'::regclass, 'u_k'::regclass);"),
	'1', 'one of them fits');
$session->quit;

my ($rc, $out, $err) = $node->psql('postgres', <<"END");
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET gpuds.temp_memory = '2MB';
CREATE TEMP TABLE t (k int, v int);
CREATE INDEX t_k ON t USING gpu_btree (k);
$fill
$query
$query
SET gpuds.temp_memory = '64MB';
$query
SELECT state FROM gpuds_indexes WHERE indexrelid = 't_k'::regclass;
END
is($out, "1000\n1000\n1000\nloaded", 'too large for the limit, then the limit is raised');
my $warnings = () = $err =~ /WARNING:/g;
is($warnings, 1, 'one WARNING') or diag($err);
like($err, qr/HINT:.*gpuds\.temp_memory/, 'that names the setting');

# A cursor that is open when its index is about to be dropped, and when it is in the memory of others
($rc, $out, $err) = $node->psql('postgres', <<"END", on_error_stop => 0);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET client_min_messages = error;
CREATE TEMP TABLE t (k int, v int);
CREATE INDEX t_k ON t USING gpu_btree (k);
$fill
BEGIN;
DECLARE c CURSOR FOR SELECT k FROM t WHERE k >= 5 ORDER BY k;
FETCH 1 FROM c;
SAVEPOINT s;
DROP INDEX t_k;
ROLLBACK TO s;
DROP TABLE t;
ROLLBACK TO s;
CREATE TEMP TABLE u AS SELECT k + 1000000 AS k FROM t;
CREATE INDEX u_k ON u USING gpu_btree (k);
SELECT count(*) FROM u WHERE k >= 1000000;
FETCH 2 FROM c;
MOVE 10000 IN c;
FETCH 1 FROM c;
ROLLBACK TO s;
FETCH 1 FROM c;
REINDEX INDEX t_k;
ROLLBACK TO s;
FETCH 1 FROM c;
MOVE 20000 IN c;
FETCH 1 FROM c;
COMMIT;
SELECT gpuds_index_check('t_k', true) IS NULL;
END
is($out, "5\n$rows\n6\n7\n10008\n10009\n10010\n30011\nf",
	'a cursor goes on when the drop of its index has failed');

# Indexes of one statement that do not fit together: they do not evict each other at every turn
$out = $node->safe_psql('postgres', <<'END');
SET enable_seqscan = off;
SET enable_hashjoin = off;
SET enable_material = off;
SET enable_mergejoin = off;
SET client_min_messages = error;
SET gpuds.temp_memory = '4MB';
CREATE TEMP TABLE a AS SELECT g AS x FROM generate_series(1, 100000) g;
CREATE TEMP TABLE b AS SELECT g AS x FROM generate_series(1, 100000) g;
CREATE TEMP TABLE o AS SELECT g * 7919 % 100000 + 1 AS x FROM generate_series(1, 1000) g;
CREATE INDEX a_x ON a USING gpu_btree (x);
CREATE INDEX b_x ON b USING gpu_btree (x);
ANALYZE a, b, o;
SELECT count(*) FROM o JOIN a USING (x) JOIN b USING (x);
SELECT sum(loads) < 200, sum(fallbacks) > 0 FROM gpuds_stat_indexes WHERE indexrelname IN ('a_x', 'b_x');
END
is($out, "1000\nt|t", 'indexes of one statement that do not fit together');

# Cursors of joins that are at different pages of a temporary table: the session has pages for all of them
$out = $node->safe_psql('postgres', <<'END');
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_nestloop = off;
SET gpuds.device = cpu;
SET client_min_messages = error;
CREATE TEMP TABLE t AS SELECT i AS k, repeat('x', 500) AS f FROM generate_series(1, 5000) i;
CREATE TEMP TABLE o AS SELECT i AS k FROM generate_series(1, 3000) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
ANALYZE t, o;
CREATE FUNCTION plan_of(query text) RETURNS SETOF text LANGUAGE plpgsql AS
	'BEGIN RETURN QUERY EXECUTE ''EXPLAIN '' || query; END';
SELECT count(*) FROM plan_of('SELECT f FROM o JOIN t USING (k)') line WHERE line ~ 'GpudsJoin';
DO $$
DECLARE
	c refcursor;
BEGIN
	FOR i IN 1 .. 30 LOOP
		c := NULL;
		OPEN c FOR SELECT f FROM o JOIN t USING (k) WHERE k > i * 80;
		MOVE c;
	END LOOP;
END $$;
SELECT count(*), sum(length(f)) FROM o JOIN t USING (k);
END
is($out, "1\n3000|1500000", 'many cursors of joins with few temporary buffers');
$node->stop;

done_testing();
