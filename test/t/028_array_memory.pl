# Arrays of millions of keys: what a scan makes of them stays near work_mem, and can
# be cancelled.

use strict;
use warnings;

use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('array_memory');

$node->safe_psql('postgres', <<'END');
CREATE TABLE two (a bigint, b int, v int);
INSERT INTO two SELECT i::bigint * 7919 % 100003 * 30, i % 3, i FROM generate_series(1, 100000) i;
CREATE INDEX two_a_b ON two USING gpu_btree (a, b);
CREATE TABLE one (a bigint, v int);
INSERT INTO one SELECT a, v FROM two;
CREATE INDEX one_a ON one USING gpu_btree (a);
VACUUM ANALYZE;
CREATE TABLE many AS SELECT array_agg(i::bigint * 1299721 % 3000017 ORDER BY i) AS keys FROM generate_series(1, 3000000) i;
CREATE FUNCTION key_bytes() RETURNS numeric LANGUAGE sql VOLATILE AS
	$$ SELECT sum(total_bytes) FROM pg_backend_memory_contexts WHERE name = 'gpuds scan keys' $$;
END

my $plain = "SET work_mem = '16MB'; SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off;";
my $bitmap = "SET work_mem = '16MB'; SET enable_seqscan = off; SET enable_indexscan = off; SET jit = off;";
my $keys = '(SELECT keys FROM many)::bigint[]';
my $unnested = 'IN (SELECT unnest(keys) FROM many)';

# The keys as such are 23 MB, as intervals they would be 144
for my $query ("FROM two WHERE a = ANY ($keys) AND b = 1", "FROM two WHERE a = ANY ($keys) AND b = ANY ('{0,2}')", "FROM one WHERE a = ANY ($keys)")
{
	(my $right = $query) =~ s/= ANY \(\Q$keys\E\)/$unnested/;
	$right = $node->safe_psql('postgres', "SET enable_indexscan = off; SET enable_bitmapscan = off; SELECT count(*), sum(v) $right");
	is($node->safe_psql('postgres', "$plain SELECT count(*), sum(v) $query"), $right, "$query: index scan");
	is($node->safe_psql('postgres', "$bitmap SELECT count(*), sum(v) $query"), $right, "$query: bitmap scan");
	cmp_ok($node->safe_psql('postgres', "$plain SELECT key_bytes() $query LIMIT 1"), '<', 3 * 16 * 1024 * 1024, "$query: memory");
}

# The work of many such conditions is all in the making of intervals
my $conditions = join(' AND ', ("a = ANY ($keys)") x 15);
for my $table ('one', 'two')
{
	my ($rc, $out, $err) = $node->psql('postgres', "$plain SET statement_timeout = 300; SELECT count(*) FROM $table WHERE $conditions");
	like($err, qr/canceling statement due to statement timeout/, "cancelled while keys of $table are sorted");
	is($node->safe_psql('postgres', "$plain SELECT count(*) FROM $table WHERE a = 30"), '1', 'and the next query works');
}
$node->stop;

done_testing();
