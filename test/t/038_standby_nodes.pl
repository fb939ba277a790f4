# GpudsAggregate, GpudsJoin, GpudsScan and the functions on a hot standby, while the primary
# inserts, deletes, VACUUMs and gives TIDs away, and over a promotion: each answer is that of a
# sequential scan in the same snapshot, or the query is cancelled because of recovery.

use strict;
use warnings;

use GpudsPoints;
use GpudsTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

random_seed();
my $primary = new_node('primary', streaming => 1);

# A way is a function that answers a query by the node named, or fails; seqscan does without index.
# While rows come and go without ANALYZE, the planner may find others cheaper (test.any_plan).
my %settings = (
	seqscan => [ [], [qw(indexscan indexonlyscan bitmapscan)] ],
	GpudsAggregate => [ ['gpuds.enable_aggregate'], [qw(seqscan bitmapscan sort hashagg)],
		'SET cpu_tuple_cost = 1' ],
	GpudsJoin => [ ['gpuds.enable_join'], [qw(hashjoin mergejoin nestloop)] ],
	GpudsScan => [ ['gpuds.enable_scan'], [qw(seqscan indexscan indexonlyscan)] ]);
my $ways = '';
for my $way (sort keys %settings)
{
	my ($on, $off, $more) = @{ $settings{$way} };
	# Keys are random, and for some of them a plan with workers is the cheapest.
	my $set = join("\n", 'SET max_parallel_workers_per_gather = 0',
		(map { "SET gpuds.enable_$_ = off" } grep { "@$on" !~ /$_/ } qw(aggregate join scan)),
		(map { "SET enable_$_ = off" } @$off), $more // ());

	$ways .= <<"END";
CREATE FUNCTION by_\L$way\E(query text) RETURNS text LANGUAGE plpgsql $set AS \$\$
DECLARE
	line text;
	plan text := '';
	answer text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		plan := plan || line || E'\\n';
	END LOOP;
	IF (('$way' = 'seqscan') = (plan ~ 'Index|Gpuds') OR '$way' <> 'seqscan' AND plan !~ '$way')
		AND current_setting('test.any_plan', true) IS DISTINCT FROM 'on' THEN
		RAISE 'no $way: % %', query, plan;
	END IF;
	EXECUTE query INTO answer;
	RETURN answer;
END \$\$;
END
}

# Rows of t have keys of a narrow range, so that those that take a TID often have the key that was there.
$primary->safe_psql('postgres', <<"END");
CREATE TABLE t (id bigserial, k int, v int, note text DEFAULT 'note') WITH (fillfactor = 50);
INSERT INTO t (k, v) SELECT i * 7919 % 5000, i % 50 FROM generate_series(1, 10000) i;
CREATE INDEX t_k ON t USING gpu_btree (k) INCLUDE (v);
CREATE INDEX t_v_k ON t USING gpu_btree (v, k);
CREATE INDEX t_id ON t (id);
CREATE TABLE o (id int, k int);
INSERT INTO o SELECT i, i * 61 % 6000 FROM generate_series(1, 300) i;
VACUUM ANALYZE t, o;
$ways
CREATE FUNCTION agree(way text, query text) RETURNS void LANGUAGE plpgsql AS \$\$
DECLARE
	right_answer text := by_seqscan(query);
	answer text;
BEGIN
	EXECUTE format('SELECT %I(%L)', 'by_' || lower(way), query) INTO answer;
	IF answer IS DISTINCT FROM right_answer THEN
		RAISE 'wrong answer of %: %, right: %, query: %', way, answer, right_answer, query;
	END IF;
END \$\$;
-- what the functions say of keys from one on, beside what a sequential scan says
CREATE FUNCTION by_functions(low int) RETURNS text LANGUAGE sql AS \$\$
	SELECT row(gpuds_count('t_k', low, low + 500), gpuds_contains('t_k', keys),
			(SELECT array_agg((l.ordinality, t.id, t.k, t.v)::text ORDER BY l.ordinality, t.id)
				FROM gpuds_lookup('t_k', keys) l LEFT JOIN t ON t.ctid = l.ctid))::text
	FROM (SELECT array_agg(low + i * 7 % 300 ORDER BY i) AS keys FROM generate_series(1, 200) i) q
\$\$;
CREATE FUNCTION functions_agree(low int) RETURNS void LANGUAGE plpgsql AS \$\$
DECLARE
	right_answer text := by_seqscan(format(\$q\$
		SELECT row((SELECT count(*) FROM t WHERE k BETWEEN %1\$s AND %1\$s + 500),
			(SELECT array_agg(key IN (SELECT k FROM t) ORDER BY n)
				FROM unnest(keys) WITH ORDINALITY u (key, n)),
			(SELECT array_agg((n, t.id, t.k, t.v)::text ORDER BY n, t.id)
				FROM unnest(keys) WITH ORDINALITY u (key, n) JOIN t ON t.k = key))
		FROM (SELECT array_agg(%1\$s + i * 7 %% 300 ORDER BY i) AS keys FROM generate_series(1, 200) i) q
		\$q\$, low));
	answer text := by_functions(low);
BEGIN
	IF answer IS DISTINCT FROM right_answer THEN
		RAISE 'wrong answer of functions: %, right: %', answer, right_answer;
	END IF;
END \$\$;
END
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', "hot_standby_feedback = off\nmax_standby_streaming_delay = 300ms\n");
$standby->start;
device_ready($standby) if on_cuda();

# Queries by name, with :k for a key; each has a way, and gives one row
my %queries = (
	'sums' => [ 'GpudsAggregate', '
		SELECT (count(*), sum(v), avg(k), min(k), max(v))::text FROM t WHERE k BETWEEN :k AND :k + 1000' ],
	'sums of many keys' => [ 'GpudsAggregate', '
		SELECT (count(*), sum(v))::text FROM t
		WHERE k = ANY (ARRAY(SELECT :k + i * 3 FROM generate_series(1, 500) i))' ],
	'groups' => [ 'GpudsAggregate', q{
		SELECT string_agg(q::text, ' ' ORDER BY q::text)
		FROM (SELECT v, count(*), sum(k) FROM t WHERE v < :k / 100 + 1 GROUP BY v) q} ],
	'buckets' => [ 'GpudsAggregate', q{
		SELECT string_agg(q::text, ' ' ORDER BY q::text)
		FROM (SELECT k / 300, count(*), sum(v) FROM t GROUP BY 1) q} ],
	'inner join' => [ 'GpudsJoin',
		'SELECT (count(*), sum(t.v), sum(o.id))::text FROM o JOIN t ON t.k = o.k' ],
	'inner join with rows' => [ 'GpudsJoin', '
		SELECT (count(t.note), sum(t.id), sum(o.id))::text FROM o JOIN t ON t.k = o.k AND o.k > :k' ],
	'left join' => [ 'GpudsJoin', '
		SELECT (count(*), count(t.k), sum(t.v))::text
		FROM o LEFT JOIN t ON t.k = o.k AND o.id % 7 <> :k % 7' ],
	'semijoin' => [ 'GpudsJoin', '
		SELECT (count(*), sum(o.id))::text FROM o WHERE EXISTS (SELECT FROM t WHERE t.k = o.k)' ],
	'antijoin' => [ 'GpudsJoin', '
		SELECT (count(*), sum(o.id))::text FROM o
		WHERE NOT EXISTS (SELECT FROM t WHERE t.k = o.k AND t.v <> :k % 50)' ],
	'range' => [ 'GpudsScan', '
		SELECT (count(note), sum(id), sum(v))::text FROM t WHERE k BETWEEN :k AND :k + 700' ],
	'many keys' => [ 'GpudsScan', '
		SELECT (count(note), sum(id))::text FROM t
		WHERE k = ANY (ARRAY(SELECT :k + i * 3 FROM generate_series(1, 300) i))' ]);

# Every query with a key, in one session; a conflict with recovery is no fault
sub all_agree
{
	my ($node, $name) = @_;
	my @wrong;

	for my $query (sort keys %queries)
	{
		my ($way, $sql) = @{ $queries{$query} };
		$sql =~ s/:k/int(rand(4000))/ge;
		my ($rc, $out, $err) = $node->psql('postgres', "
			SET default_transaction_isolation = 'repeatable read'; SELECT agree('$way', \$q\$$sql\$q\$)");
		push @wrong, "$query: $err" if $rc != 0 && $err !~ /due to conflict with recovery/;
	}
	my ($rc, $out, $err) = $node->psql('postgres',
		"SET default_transaction_isolation = 'repeatable read'; "
		  . 'SELECT functions_agree(' . int(rand(4000)) . ')');
	push @wrong, "functions: $err" if $rc != 0 && $err !~ /due to conflict with recovery/;
	ok(!@wrong, $name) or diag(@wrong);
	return;
}

sub level
{
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	return;
}

level();
all_agree($standby, 'from the start');

# Each node is held when the index has answered.  Rows that were dead before its snapshot are removed
# then, and their pages become all-visible; on some of these pages, rows with the same keys and other
# values take the TIDs.
SKIP:
{
	skip 'not built with INJECTION_POINTS=1', 1 unless injection_points($primary);

	$primary->safe_psql('postgres', 'DELETE FROM t WHERE k % 3 = 1');
	level();
	my $gate = gate($standby, 'scan-probed');
	my %session;
	for my $query (sort keys %queries, 'functions')
	{
		my ($way, $sql) = $query eq 'functions' ? () : map { s/:k/100/gr } @{ $queries{$query} };
		my $session = $session{$query} =
		  { psql => $standby->background_psql('postgres', on_error_stop => 0) };

		$session->{pid} = $session->{psql}->query_safe('SELECT pg_backend_pid()');
		my $call = $way ? "SELECT agree('$way', \$q\$$sql\$q\$)" : 'SELECT functions_agree(100)';
		$session->{psql}->query_until(qr/go/, "
			SET default_transaction_isolation = 'repeatable read'; SET gpuds.wait_at = 'scan-probed';
			\\echo go
			$call;\n");
		ok(waits_for($standby, $session->{pid}, 'Lock'), "$query: held");
	}
	$primary->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) t');
	my $pages = $primary->safe_psql('postgres', "SELECT pg_relation_size('t')");
	$primary->safe_psql('postgres',
		'INSERT INTO t (k, v) SELECT k, 10000 + k FROM generate_series(1, 4999, 3) k');
	is($primary->safe_psql('postgres', "SELECT pg_relation_size('t')"), $pages, 'TIDs are used again');
	level();
	open_points($gate, 'scan-probed');
	for my $query (sort keys %session)
	{
		my $psql = $session{$query}{psql};

		$psql->query('SELECT 1');
		is($psql->{stderr}, '', "$query: right answer although its TIDs have other rows");
		$psql->quit;
	}
	$gate->quit;
	all_agree($standby, 'afterwards');
}

my @writers = (
	[ script_file('insert', <<'END'), 6 ],
\set k random(1, 5000)
BEGIN;
INSERT INTO t (k, v) SELECT :k + i, i FROM generate_series(1, 40) i;
SAVEPOINT a;
INSERT INTO t (k, v) SELECT :k + i, 1000 FROM generate_series(1, 40) i;
ROLLBACK TO a;
COMMIT;
END
	[ script_file('update', <<'END'), 4 ],
\set id random(1, 20000)
UPDATE t SET v = v + 1 WHERE id BETWEEN :id AND :id + 20 AND id % 3 = :client_id;
UPDATE t SET k = k + 1 WHERE id BETWEEN :id AND :id + 20 AND id % 3 = :client_id;
END
	[ script_file('delete', <<'END'), 4 ],
\set id random(1, 20000)
DELETE FROM t WHERE id BETWEEN :id AND :id + 100 AND id % 3 = :client_id;
END
	[ script_file('vacuum', "VACUUM (INDEX_CLEANUP ON, PARALLEL 0) t;\n"), 1 ]);

# One statement is one transaction, so that what conflicts with recovery is cancelled and tried again.
my @readers = map {
	my ($way, $sql) = @{ $queries{$_} };
	[ script_file('read_' . s/ /_/gr, "\\set k random(0, 4500)\nSELECT agree('$way', \$q\$$sql\$q\$);\n"), 1 ]
} sort keys %queries;
push @readers, [ script_file('read_functions', "\\set k random(0, 4500)\nSELECT functions_agree(:k);\n"), 1 ];

# So many looks, however long they take
sub start_readers
{
	my ($looks) = @_;

	local $ENV{PGOPTIONS} = "-c default_transaction_isolation=repeatable\\ read -c test.any_plan=on";
	return start_pgbench($standby, "-c 3 -j 2 -t $looks --max-tries=10000", @readers);
}

# A client that is idle by the time its conflict is noticed is disconnected, which ends its looks.  One test.
sub readers_end
{
	my ($readers, $name) = @_;

	$readers->{harness}->finish;
	my @lines = split /\n/, $readers->{out};
	my @wrong = grep { /(?:ERROR|FATAL|PANIC):/ && !/due to conflict with recovery/ } @lines;
	ok(!@wrong && $readers->{out} =~ /number of transactions actually processed: [1-9]/, $name)
	  or diag($readers->{out});
	return;
}

my $bench = start_pgbench($primary, '-c 3 -j 2 -t 100', @writers);
my $readers = start_readers(60);
ok(finish_pgbench($bench), 'writers ran through') or diag($bench->{out});
readers_end($readers, 'right answers beside writers');
$primary->safe_psql('postgres', 'VACUUM ANALYZE t');
level();
all_agree($standby, 'at rest');
check_all_indexes($standby, 'indexes on the standby are whole');

# The standby takes over while it is asked
$bench = start_pgbench($primary, '-c 3 -j 2 -T 600', @writers);
$readers = start_readers(100);
select(undef, undef, undef, 1);
$primary->stop('immediate');
finish_pgbench($bench);
$standby->promote;
$bench = start_pgbench($standby, '-c 3 -j 2 -t 100', @writers);
ok(finish_pgbench($bench), 'writers on the promoted server ran through') or diag($bench->{out});
readers_end($readers, 'right answers over a promotion');
$standby->safe_psql('postgres', 'VACUUM ANALYZE t');
all_agree($standby, 'in the end');
check_all_indexes($standby, 'indexes are whole in the end');
$standby->stop;

done_testing();
