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
CREATE TABLE many AS
	SELECT array_agg(i::bigint * 1299721 % 3000017 ORDER BY i) AS keys FROM generate_series(1, 3000000) i;
CREATE TABLE hits AS SELECT a FROM one WHERE a IN (SELECT unnest(keys) FROM many);
CREATE FUNCTION key_bytes() RETURNS numeric LANGUAGE sql VOLATILE AS
	$$ SELECT sum(total_bytes) FROM pg_backend_memory_contexts WHERE name = 'gpuds scan keys' $$;
END

my $plain = "SET work_mem = '16MB'; SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off;";
my $bitmap = "SET work_mem = '16MB'; SET enable_seqscan = off; SET enable_indexscan = off; SET jit = off;";
my $keys = '(SELECT keys FROM many)::bigint[]';
my $hits = 'IN (SELECT a FROM hits)';

# The keys as such are 23 MB, as intervals they would be 144
for my $query ("FROM two WHERE a = ANY ($keys) AND b = 1",
	"FROM two WHERE a = ANY ($keys) AND b = ANY ('{0,2}')", "FROM one WHERE a = ANY ($keys)")
{
	(my $right = $query) =~ s/= ANY \(\Q$keys\E\)/$hits/;
	$right = $node->safe_psql('postgres', "
		SET enable_indexscan = off; SET enable_bitmapscan = off; SELECT count(*), sum(v) $right");
	is($node->safe_psql('postgres', "$plain SELECT count(*), sum(v) $query"), $right, "$query: index scan");
	is($node->safe_psql('postgres', "$bitmap SELECT count(*), sum(v) $query"), $right, "$query: bitmap scan");
	cmp_ok($node->safe_psql('postgres', "$plain SELECT key_bytes() $query LIMIT 1"), '<',
		3 * 16 * 1024 * 1024, "$query: memory");
}

# A session that does little else than make intervals of arrays is cancelled there
for my $table ('one', 'two')
{
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	$session->query_safe("$plain SET plan_cache_mode = force_generic_plan");
	$session->query_until(qr/go/, <<"END");
\\echo go
DO \$\$
DECLARE
	keys bigint[] := (SELECT keys FROM many);
	n bigint;
BEGIN
	PERFORM pg_advisory_xact_lock(28);
	LOOP
		SELECT count(*) INTO n FROM $table WHERE a = ANY (keys) AND a = ANY (keys) AND a < 0;
	END LOOP;
END \$\$;
END
	ok($node->poll_query_until('postgres', "
		SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = 28 AND granted"),
		"keys of $table are being sorted");
	$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
	ok($node->poll_query_until('postgres', "SELECT state = 'idle' FROM pg_stat_activity WHERE pid = $pid"),
		'the query ends');
	is($session->query("SELECT count(*) FROM $table WHERE a = 30"), '1', 'and the next one works');
	like($session->{stderr}, qr/canceling statement due to user request/, 'it was cancelled');
	$session->{stderr} = '';
	$session->quit;
}
$node->stop;

done_testing();
