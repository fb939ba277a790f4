# Mirrors that do not all fit into gpuds.host_memory, and one that does not fit at
# all: answers stay right, clients are told once a session.

use strict;
use warnings;

use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;

# 014 does the like for the memory of a GPU
plan(skip_all => 'about the CPU device') if on_cuda();
my $node = new_node('eviction', conf => "gpuds.host_memory = 8MB\n");
my $rows = 120_000;

# Every key of 0 .. rows / 4 - 1 is there four times
for my $i (1 .. 5)
{
	$node->safe_psql('postgres', <<"END");
CREATE TABLE t$i (id int, k bigint, v int) WITH (fillfactor = 70);
INSERT INTO t$i SELECT i, i::bigint * 7919 % ($rows / 4), 0 FROM generate_series(0, $rows - 1) i;
CREATE INDEX t${i}_k ON t$i USING gpu_btree (k);
CREATE INDEX t${i}_id ON t$i (id);
CREATE INDEX t${i}_v ON t$i (v);
END
}
$node->safe_psql('postgres', <<'END');
CREATE FUNCTION look(t text, key bigint) RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off SET client_min_messages = error AS $$
DECLARE
	n bigint;
BEGIN
	EXECUTE format('SELECT count(*) FROM %I WHERE k = %s', t, key) INTO n;
	IF n <> 4 THEN
		RAISE EXCEPTION 'table %: % rows of key %', t, n, key;
	END IF;
	EXECUTE format('SELECT count(*) FROM %I WHERE k BETWEEN %s AND %s', t, key, key + 9) INTO n;
	IF n <> 40 THEN
		RAISE EXCEPTION 'table %: % rows of keys % and on', t, n, key;
	END IF;
END $$;
END

my $last = $rows / 4 - 10;
my @scripts = (
	[ script_file('look', <<"END"), 8 ],
\\set t random(1, 5)
\\set k random(0, $last)
SELECT look('t:t', :k);
END
	# Rows stay, their places and index entries change
	[ script_file('move', <<"END"), 3 ],
\\set t random(1, 5)
\\set k random(0, $last)
UPDATE t:t SET k = k, v = v + 1 WHERE id = 4 * :k + :client_id % 4;
END
	[ script_file('evict', <<"END"), 1 ],
\\set t random(1, 5)
SELECT gpuds_index_evict('t:t' || '_k');
END
);

my $bench = start_pgbench($node, '-c 6 -j 2 -T 10', @scripts);
for my $i (1 .. 5)
{
	$node->psql('postgres', "VACUUM (INDEX_CLEANUP ON) t$i");
}
ok(finish_pgbench($bench), 'clients under eviction pressure got what they asked for') or diag($bench->{out});
for my $i (1 .. 5)
{
	same_answers($node, "answers of t$i", "SELECT count(*), sum(id) FROM t$i WHERE k >= 0",
		"SELECT count(*), sum(id) FROM t$i WHERE k BETWEEN 700 AND 800");
}
check_all_indexes($node, 'indexes are whole');
cmp_ok($node->safe_psql('postgres', q{SELECT sum(bytes) FROM gpuds_indexes WHERE state = 'loaded'}), '<=',
	8 * 1024 * 1024, 'mirrors keep to the memory');
cmp_ok($node->safe_psql('postgres', q{SELECT sum(loads) FROM gpuds_stat_indexes}), '>', 5,
	'mirrors were loaded again and again');

# An index that is larger than all of the memory
$node->safe_psql('postgres', <<'END');
CREATE TABLE big (k bigint, v int);
INSERT INTO big SELECT i::bigint * 7919 % 1000000, i FROM generate_series(1, 1000000) i;
CREATE INDEX big_k ON big USING gpu_btree (k);
END
my ($rc, $out, $err) = $node->psql('postgres', <<'END');
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT count(*) FROM big WHERE k = 4711;
SELECT count(*) FROM big WHERE k BETWEEN 100 AND 199;
SELECT k FROM big WHERE k > 500000 ORDER BY k LIMIT 3;
SELECT k FROM big WHERE k < 500000 ORDER BY k DESC LIMIT 3;
SELECT count(*) FROM big WHERE k = ANY ('{1,2,3,4,5}');
END
is($rc, 0, 'an index too large for the memory is scanned');
is($out, "1\n100\n500001\n500002\n500003\n499999\n499998\n499997\n5", 'and gives the right answers');
my $warnings = () = $err =~ /WARNING:/g;
is($warnings, 1, 'with one WARNING in the session') or diag($err);
like($err, qr/HINT:.*gpuds\.host_memory/, 'that names the setting');
cmp_ok(of_statistics($node, 'big_k', 'fallbacks'), '>', 0, 'fall-backs are counted');

# The others still have theirs
same_answers($node, 'beside it the small ones work',
	'SELECT count(*), sum(id) FROM t1 WHERE k BETWEEN 10 AND 20');
$node->safe_psql('postgres', 'DELETE FROM big WHERE v % 100 <> 0');
$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) big');
$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) big');
($rc, $out, $err) = $node->psql('postgres',
	'SET enable_seqscan = off; SELECT count(*) FROM big WHERE k >= 0');
is($out, '10000', 'after VACUUM made it small');
unlike($err, qr/WARNING/, 'it fits, without a warning');
check_index($node, 'big_k');
$node->stop;

done_testing();
