# Scans of an index that has no room for a mirror: right in every direction, by
# a bounded number of passes over the journal, in bounded memory, and the planner
# knows what they cost.

use strict;
use warnings;

use GpudsPoints;
use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;

# What a GPU has no room for goes to the CPU device; so the journal is about that one
plan(skip_all => 'about the CPU device') if on_cuda();
my $node = new_node('journal_scans', conf => "gpuds.host_memory = 8MB\ntrack_io_timing = off\n");
my $n = 600_000;

# Keys are different from each other, g has runs of equal ones.  A part of the entries
# is in the base, a part in the stripes, some are deleted there
$node->safe_psql('postgres', <<"END");
CREATE TABLE big (id int, k bigint, g int);
INSERT INTO big SELECT i, i::bigint * 7919 % 600011, i % 1000 FROM generate_series(1, $n / 2) i;
CREATE INDEX big_k ON big USING gpu_btree (k);
CREATE INDEX big_g ON big USING gpu_btree (g);
INSERT INTO big SELECT i, i::bigint * 7919 % 600011, i % 1000 FROM generate_series($n / 2 + 1, $n) i;
DELETE FROM big WHERE id % 50 = 0;
VACUUM (INDEX_CLEANUP ON) big;
INSERT INTO big SELECT i, 600011 + i, 1000 FROM generate_series(1, 5000) i;
VACUUM ANALYZE big;
END
my $pages = $node->safe_psql('postgres', "SELECT pg_relation_size('big_k') / 8192");
my $only = "
	SET client_min_messages = error; SET enable_seqscan = off; SET enable_sort = off;
	SET enable_bitmapscan = off;";

# Runs SQL in a session of its own; returns what it printed, and how many blocks of the
# index big_k, or another one, were asked for meanwhile
sub with_blocks
{
	my ($sql, $index) = @_;
	my $count = "SELECT idx_blks_hit + idx_blks_read FROM pg_statio_user_indexes WHERE indexrelname = '"
	  . ($index // 'big_k') . "'";

	my $before = $node->safe_psql('postgres', $count);
	my $out = $node->safe_psql('postgres', "
		SET client_min_messages = error; $sql; SELECT pg_stat_force_next_flush();");
	$out =~ s/\n?\z//;
	return ($out, $node->safe_psql('postgres', $count) - $before);
}

# All rows by index, forward and backward
for my $work_mem ('64kB', '64MB')
{
	for my $order ('k', 'k DESC')
	{
		my $query = "
			SELECT count(*), md5(string_agg(k || ':' || id, ','))
			FROM (SELECT k, id FROM big ORDER BY $order) q";
		my $right = $node->safe_psql('postgres', scan_sql($query));
		my ($out, $blocks) = with_blocks("SET work_mem = '$work_mem'; $only $query");

		is($out, $right, "ORDER BY $order with $work_mem: rows");
		cmp_ok($blocks, '<', 1.2 * $pages, "ORDER BY $order with $work_mem: one pass over the journal");
	}
}
my ($out, $blocks) = with_blocks("
	$only SELECT string_agg(k::text, ',') FROM (SELECT k FROM big WHERE k > 1000 ORDER BY k LIMIT 3) q");
is($out, $node->safe_psql('postgres', '
	SELECT string_agg(k::text, \',\') FROM (SELECT k FROM big WHERE k + 0 > 1000 ORDER BY k LIMIT 3) q'),
	'LIMIT: rows');
cmp_ok($blocks, '<', 1.2 * $pages, 'LIMIT: one pass');

# Ranges, conditions, bitmaps
same_answers($node, 'conditions',
	'SELECT count(*), sum(id) FROM big WHERE k BETWEEN 1000 AND 300000',
	'SELECT count(*), sum(id) FROM big WHERE k < 1000',
	'SELECT count(*), sum(id) FROM big WHERE g = 7',
	'SELECT count(*), sum(id) FROM big WHERE g > 990',
	"SELECT count(*), sum(id) FROM big
		WHERE k = ANY (ARRAY(SELECT i * 1999 FROM generate_series(1, 200) i)::bigint[])",
	'SELECT count(*), sum(id) FROM big WHERE k IS NULL');
($out, $blocks) = with_blocks('
	SET enable_seqscan = off; SET enable_indexscan = off; SELECT count(*), sum(id) FROM big WHERE k >= 0');
is($out, $node->safe_psql('postgres', scan_sql('SELECT count(*), sum(id) FROM big WHERE k >= 0')),
	'bitmap of all rows: rows');
cmp_ok($blocks, '<', 1.2 * $pages, 'bitmap of all rows: one pass over the journal');

# Many keys, in order and not
my $right = $node->safe_psql('postgres', scan_sql('
	SELECT count(*), sum(id) FROM big WHERE k % 7 = 0 AND k BETWEEN 7 AND 630000'));
for my $how ('enable_bitmapscan', 'enable_indexscan')
{
	($out, $blocks) = with_blocks("
		SET enable_seqscan = off; SET $how = off;
		SELECT count(*), sum(id) FROM big
		WHERE k = ANY (ARRAY(SELECT i * 7 FROM generate_series(1, 90000) i ORDER BY i % 100)::bigint[])");
	is($out, $right, "many keys with $how off: rows");
	cmp_ok($blocks, '<', 3 * $pages, "many keys with $how off: passes over the journal");
}

# Functions take keys in batches, of which work_mem has room for few
my $keys = '(SELECT array_agg(i * 61 ORDER BY i % 100, i) AS keys FROM generate_series(1, 10000) i) q';
($out, $blocks) = with_blocks("
	SET work_mem = '64kB'; SELECT md5(gpuds_contains('big_k', keys)::text) FROM $keys");
is($out, $node->safe_psql('postgres', "
	SELECT md5(array_agg(k IS NOT NULL ORDER BY n)::text) FROM $keys, unnest(keys) WITH ORDINALITY u (key, n)
	LEFT JOIN big ON k + 0 = key"),
	'gpuds_contains: right');
cmp_ok($blocks, '<', 5 * $pages, 'gpuds_contains: passes over the journal');
is($node->safe_psql('postgres', "
	SET client_min_messages = error;
	SELECT count(*), sum(big.id)
	FROM gpuds_lookup('big_k', ARRAY(SELECT i * 61 FROM generate_series(1, 10000) i)) l
	JOIN big ON big.ctid = l.ctid"),
	$node->safe_psql('postgres', '
		SELECT count(*), sum(id) FROM big WHERE (k + 0) % 61 = 0 AND k BETWEEN 61 AND 610000'),
	'gpuds_lookup');
is($node->safe_psql('postgres', "SET client_min_messages = error; SELECT gpuds_count('big_k', 1000, 300000)"),
	$node->safe_psql('postgres', 'SELECT count(*) FROM big WHERE k + 0 BETWEEN 1000 AND 300000'),
	'gpuds_count');

# The inner side of a nested loop
my $join = '
	SELECT count(*), sum(big.id), sum(g.g) FROM generate_series(1, 3000) g JOIN big ON big.k = g.g * 203';
$right = $node->safe_psql('postgres', scan_sql("SET enable_nestloop = off; $join"));
for my $how ('enable_bitmapscan', 'enable_indexscan')
{
	($out, $blocks) = with_blocks("
		SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = off;
		SET enable_memoize = off; SET $how = off; $join");
	is($out, $right, "nested loop with $how off: rows");
	cmp_ok($blocks, '<', 2.4 * $pages, "nested loop with $how off: two passes over the journal");
}
# for the same keys again and again
my $same = 'SELECT count(*), sum(big.id), sum(g.g)
	FROM generate_series(1, 5) g, big WHERE big.k BETWEEN 5000 AND 9000';
$right = $node->safe_psql('postgres', scan_sql($same));
($out, $blocks) = with_blocks("SET enable_material = off; $only $same");
is($out, $right, 'rescans for the same keys: rows');
cmp_ok($blocks, '<', 1.2 * $pages, 'rescans for the same keys: one pass over the journal');
# with ranges, of which each takes several chunks
my $ranges = '
	SELECT count(*), sum(big.id), sum(g.g)
	FROM generate_series(1, 50) g JOIN big ON big.k BETWEEN g.g * 5000 AND g.g * 5000 + 9000';
$right = $node->safe_psql('postgres', scan_sql("SET enable_indexscan = off; $ranges"));
is($node->safe_psql('postgres', "SET enable_material = off; $only $ranges"), $right,
	'ranges in a nested loop');

# Merge joins go back to marks
my $merge = '
	SELECT count(*), sum(big.id), sum(d.i)
	FROM (SELECT i, i % 400 AS g FROM generate_series(1, 1000) i OFFSET 0) d JOIN big ON big.g = d.g';
$right = $node->safe_psql('postgres', scan_sql("SET enable_mergejoin = off; $merge"));
my $merged = "
	SET client_min_messages = error; SET enable_seqscan = off; SET enable_bitmapscan = off;
	SET enable_hashjoin = off; SET enable_nestloop = off; SET enable_material = off;";
like($node->safe_psql('postgres', "$merged EXPLAIN (COSTS OFF) $merge"),
	qr/Merge Join.*Index Scan using big_g/s, 'a merge join over the index');
($out, $blocks) = with_blocks("$merged $merge", 'big_g');
is($out, $right, 'marks: rows');
cmp_ok($blocks, '<', 2.4 * $pages, 'marks: passes over the journal');

# Cursors turn around, near and far
my $moves = join("\n", map { "FETCH $_ FROM c;" } ('5', 'BACKWARD 3', '2', 'BACKWARD 10', '1'));
my @far = ('1000', '99000', 'BACKWARD 70000', 'BACKWARD 10', '200000', 'ABSOLUTE -5', 'BACKWARD 300000',
	'1000000', 'ABSOLUTE 7');
$moves .= join("\n", map { "MOVE $_ FROM c; FETCH 3 FROM c; FETCH BACKWARD 5 FROM c;" } @far);
for my $order ('k', 'k DESC')
{
	my $cursor = "BEGIN; DECLARE c SCROLL CURSOR FOR SELECT k, id FROM big ORDER BY $order; $moves COMMIT;";
	for my $work_mem ('64kB', '64MB')
	{
		is($node->safe_psql('postgres', "SET work_mem = '$work_mem'; $only $cursor"),
			$node->safe_psql('postgres', "SET enable_indexscan = off; $cursor"),
			"a cursor ORDER BY $order goes to and fro with $work_mem");
	}
}

# Memory and files of a scan that is under way
my $memory = "
	SELECT coalesce(sum(total_bytes), 0) FROM pg_backend_memory_contexts WHERE name = 'gpuds journal scan'";
my $session = $node->background_psql('postgres');
$session->query_safe("SET work_mem = '1MB'; $only");
$session->query_safe('
	BEGIN; DECLARE c SCROLL CURSOR FOR SELECT k, id FROM big ORDER BY k; MOVE 300000 FROM c');
cmp_ok($session->query_safe($memory), '>', 0, 'a scan under way has memory');
cmp_ok($session->query_safe($memory), '<=', 1024 * 1024, 'and that is within work_mem');
is($node->safe_psql('postgres', 'SELECT count(*) > 0 FROM pg_ls_tmpdir()'), 't', 'the rest is in a file');
$session->query_safe('CLOSE c');
is($session->query_safe($memory), '0', 'closed, it has none');
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_ls_tmpdir()'), '0', 'and no file');

# Subtransactions come and go around a cursor; a held one outlives the transaction
$session->query_safe('
	DECLARE c SCROLL CURSOR FOR SELECT k, id FROM big ORDER BY k; SAVEPOINT s; MOVE 100000 FROM c;
	ROLLBACK TO s; SAVEPOINT s');
my $at = $session->query_safe('FETCH 2 FROM c');
is($at, $node->safe_psql('postgres', 'SELECT k, id FROM big ORDER BY k OFFSET 100000 LIMIT 2'),
	'a cursor survives a subtransaction in which it was read');
$session->query_safe('
	COMMIT; BEGIN; DECLARE h CURSOR WITH HOLD FOR SELECT k, id FROM big ORDER BY k; FETCH 1 FROM h; COMMIT;
	MOVE 99999 FROM h');
is($session->query_safe('FETCH 2 FROM h'), $at, 'a held cursor');
$session->query_safe('CLOSE h');

# A mirror that goes away under a scan and cannot come back
$node->safe_psql('postgres', <<'END');
CREATE TABLE s (id int, k bigint);
INSERT INTO s SELECT i, i::bigint * 7919 % 100003 FROM generate_series(1, 100000) i;
CREATE INDEX s_k ON s USING gpu_btree (k);
END
for my $order ('k', 'k DESC')
{
	my $rest = 'FETCH 50000 FROM c';
	my $right = $node->safe_psql('postgres', "
		SET enable_indexscan = off; BEGIN;
		DECLARE c CURSOR FOR SELECT k, id FROM s WHERE id <= 100000 ORDER BY $order;
		MOVE 30000 FROM c; $rest; COMMIT");

	$node->safe_psql('postgres', 'SELECT gpuds_index_load(\'s_k\')');
	$session->query_safe("
		BEGIN; DECLARE c CURSOR FOR SELECT k, id FROM s WHERE id <= 100000 ORDER BY $order;
		MOVE 30000 FROM c");
	$node->safe_psql('postgres', "
		INSERT INTO s SELECT i, i::bigint * 31 % 100003 FROM generate_series(100001, $n) i;
		SELECT gpuds_index_evict('s_k')");
	is($session->query_safe($rest), $right, "ORDER BY $order: the scan goes on when its mirror is gone");
	$session->query_safe('COMMIT');
	$node->safe_psql('postgres', "DELETE FROM s WHERE id > 100000");
	$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) s');
	$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) s');
}

# Cancelled at it, nothing is left
my $all = 'SELECT count(*), sum(id), sum(k) FROM (SELECT k, id FROM big ORDER BY k) q';
$right = $node->safe_psql('postgres', scan_sql($all));
for my $timeout (1, 5, 20, 50, 100, 150)
{
	my ($rc, $out, $err) = $node->psql('postgres', "
		$only SET work_mem = '1MB'; SET statement_timeout = $timeout; $all");
	ok($rc == 0 ? $out eq $right : $err =~ /statement timeout/, "stopped after $timeout ms or done");
}
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_ls_tmpdir()'), '0', 'no file is left');

# A compaction replaces the journal under a scan
SKIP:
{
	skip 'not built with INJECTION_POINTS=1', 1 unless injection_points($node);

	$node->safe_psql('postgres', '
		CREATE TABLE c AS SELECT id, k FROM big WHERE id <= 500000; CREATE INDEX c_k ON c USING gpu_btree (k);
		DELETE FROM c WHERE id % 2 = 0');
	my $query = "
		SELECT count(*), md5(string_agg(k || ':' || id, ',')) FROM (SELECT k, id FROM c ORDER BY k) q";
	my $right = $node->safe_psql('postgres', scan_sql($query));
	close_points($session, 'journal-scan-stripes');
	my $scan = $node->background_psql('postgres');
	$scan->query_until(qr/go/, "
		SET gpuds.wait_at = 'journal-scan-stripes'; SET work_mem = '1MB'; $only
		\\echo go
		$query;
		\\echo done\n");
	held_at($node, 'journal-scan-stripes', 'a scan is held in the middle of its sort');
	$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) c');
	my $generation = $node->safe_psql('postgres', q{SELECT count(*) FROM c});
	$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) c');
	open_points($session, 'journal-scan-stripes');
	$scan->{stdin} .= "\n";
	like($scan->query_until(qr/done/, ''), qr/\Q$right\E/, 'and starts again when it finds the base gone');
	$scan->quit;

	# What rows by distances have read for a hint, without locks, is read once more with them: in between,
	# another transaction inserts a nearer row, and does not see what this one is about to insert
	$node->safe_psql('postgres', 'CREATE TABLE near (id int, p point); CREATE TABLE other (a int);
		CREATE INDEX near_p ON near USING gpu_btree (p)');
	my $reader = $node->background_psql('postgres', on_error_stop => 0);
	$reader->query_safe("SET client_min_messages = error; SET plan_cache_mode = force_generic_plan; $only
		PREPARE nearest AS SELECT id FROM near ORDER BY p <-> point(0, 0) LIMIT 1; EXECUTE nearest");
	$node->safe_psql('postgres', "INSERT INTO near SELECT i, NULL FROM generate_series(1, $n) i;
		INSERT INTO near SELECT -i, point(i, i) FROM generate_series(10, 100) i");
	like($reader->query_safe('EXPLAIN EXECUTE nearest'), qr/GpudsNearest/, 'a plan from when there was room');
	close_points($session, 'scan-probed');
	$reader->query_until(qr/go/, "
		BEGIN ISOLATION LEVEL SERIALIZABLE; SET LOCAL gpuds.wait_at = 'scan-probed';
		\\echo go
		EXECUTE nearest; INSERT INTO other VALUES (1); COMMIT;
		\\echo done\n");
	held_at($node, 'scan-probed', 'a serializable transaction is held before it takes locks');
	$node->safe_psql('postgres', 'BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*) FROM other;
		INSERT INTO near VALUES (0, point(1, 1)); COMMIT');
	open_points($session, 'scan-probed');
	$reader->{stdin} .= "\n";
	$reader->query_until(qr/done/, '');
	like($reader->{stderr}, qr/could not serialize/, 'and fails, as a nearer row has come');
	$reader->quit;
}
$session->quit;

# The planner knows.  The index is a third of the table, but not free
my ($startup) = $node->safe_psql('postgres', '
	SET enable_seqscan = off; SET enable_bitmapscan = off;
	EXPLAIN SELECT * FROM big WHERE k = 5') =~ /cost=([0-9.]+)/;
cmp_ok($startup, '>=', $pages, 'a scan costs a pass over the journal to start');
my ($mirrored) = $node->safe_psql('postgres', '
	SET enable_seqscan = off; SET enable_bitmapscan = off;
	EXPLAIN SELECT * FROM s WHERE k = 5') =~ /cost=([0-9.]+)/;
cmp_ok($mirrored, '<', 20, 'that of an index that has a mirror, or will have one, does not');
my $set = "EXPLAIN (COSTS OFF) SELECT sum(id) FROM big WHERE k = ANY ('{"
  . join(',', map { $_ * 7 } 1 .. 1000) . "}')";
like($node->safe_psql('postgres', "SET enable_seqscan = off; $set"), qr/big_k/,
	'a set of keys goes to gpu_btree alone');
$node->safe_psql('postgres', 'CREATE INDEX big_btree ON big (k)');
like($node->safe_psql('postgres', $set), qr/big_btree/, 'but not where btree is faster');
$node->stop;

done_testing();
