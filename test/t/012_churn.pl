# Space is given back: files and mirrors of tables that change all the time stay
# bounded, and mirrors of files that are gone go too.

use strict;
use warnings;

use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('churn', conf => "gpuds.host_memory = 512MB\n");

sub value { return $node->safe_psql('postgres', $_[0]); }
sub memory_used { return value("SELECT memory_used FROM gpuds_devices WHERE kind = 'cpu'"); }

# Every round replaces every row
$node->safe_psql('postgres', <<'END');
CREATE TABLE t (k bigint, v int);
CREATE INDEX t_k ON t USING gpu_btree (k);
INSERT INTO t SELECT i, 0 FROM generate_series(1, 20000) i;
END
my (@file, @mirror);
for my $round (1 .. 16)
{
	$node->safe_psql('postgres', 'UPDATE t SET k = (k * 7919 + 13) % 1000003');
	$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) t');
	same_answers($node, "answers in round $round", 'SELECT count(*), sum(k) FROM t WHERE k >= 0')
	  if $round % 4 == 0;
	value(index_sql('SELECT count(*) FROM t WHERE k > 0'));
	push @file, value("SELECT pg_relation_size('t_k')");
	push @mirror, value("SELECT bytes FROM gpuds_indexes WHERE indexrelid = 't_k'::regclass");
}
note("file: @file");
note("mirror: @mirror");
cmp_ok($file[15], '<=', 1.5 * $file[5], 'the file stopped growing');
cmp_ok($mirror[15], '<=', 1.5 * $mirror[5], 'so did the mirror');
check_index($node, 't_k');

# Garbage in small portions, from many transactions
my @scripts = (
	[ script_file('change', <<'END'), 20 ],
\set k random(1, 1000000)
UPDATE t SET k = k + 1 WHERE k BETWEEN :k AND :k + 500;
END
	[ script_file('vacuum', "VACUUM (INDEX_CLEANUP ON) t;\n"), 1 ]);
my $bench = start_pgbench($node, '-c 1 -t 3000', @scripts);
ok(finish_pgbench($bench), 'small changes ran through') or diag($bench->{out});
$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) t');
cmp_ok(value("SELECT pg_relation_size('t_k')"), '<=', 3 * $file[5],
	'the file is bounded under small changes too');
check_index($node, 't_k', 't_k after small changes');

# What the mirrors of dropped, truncated, rebuilt and rolled-back files held comes back
$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) t; ');
value(index_sql('SELECT count(*) FROM t WHERE k > 0'));
my $before = memory_used();
for my $round (1 .. 5)
{
	$node->safe_psql('postgres', <<'END');
SET enable_seqscan = off;
CREATE TABLE d (k bigint);
INSERT INTO d SELECT i FROM generate_series(1, 30000) i;
CREATE INDEX d_k ON d USING gpu_btree (k);
SELECT count(*) FROM d WHERE k > 0;
REINDEX INDEX d_k;
SELECT count(*) FROM d WHERE k > 0;
TRUNCATE d;
INSERT INTO d SELECT i FROM generate_series(1, 30000) i;
SELECT count(*) FROM d WHERE k > 0;
CLUSTER d USING d_k;
SELECT count(*) FROM d WHERE k > 0;
DROP TABLE d;
BEGIN;
CREATE TABLE d (k bigint);
CREATE INDEX d_k ON d USING gpu_btree (k);
INSERT INTO d SELECT i FROM generate_series(1, 30000) i;
SELECT count(*) FROM d WHERE k > 0;
ROLLBACK;
CREATE TEMP TABLE d (k bigint);
CREATE INDEX d_k ON d USING gpu_btree (k);
INSERT INTO d SELECT i FROM generate_series(1, 30000) i;
SELECT count(*) FROM d WHERE k > 0;
END
}
cmp_ok(memory_used(), '<=', $before + 12 * 1024 * 1024, 'mirrors of files that are gone went with them');
$node->safe_psql('postgres', 'CREATE DATABASE other');
for my $round (1 .. 3)
{
	$node->safe_psql('postgres', 'DROP DATABASE other');
	$node->safe_psql('postgres', 'CREATE DATABASE other');
	$node->safe_psql('other', <<'END');
CREATE EXTENSION gpuds;
CREATE TABLE d (k bigint);
CREATE INDEX d_k ON d USING gpu_btree (k);
INSERT INTO d SELECT i FROM generate_series(1, 100000) i;
SET enable_seqscan = off;
SELECT count(*) FROM d WHERE k > 0;
END
}
same_answers($node, 'after all that', 'SELECT count(*), sum(k) FROM t WHERE k >= 0');

# More indexes than there are places for mirrors
$node->safe_psql('postgres', <<'END');
DO $$
BEGIN
	FOR t IN 1 .. 42 LOOP
		EXECUTE format(
			'CREATE TABLE many_%s AS SELECT i %% 50 AS k, i AS v FROM generate_series(1, 100) i', t);
		FOR i IN 1 .. 100 LOOP
			EXECUTE format('CREATE INDEX ON many_%s USING gpu_btree (k) WHERE v <> %s', t, -i);
		END LOOP;
		COMMIT;
	END LOOP;
END $$;
CREATE FUNCTION look_at_all() RETURNS bigint LANGUAGE plpgsql
	SET enable_seqscan = off SET client_min_messages = error AS $$
DECLARE
	n bigint;
	wrong bigint := 0;
BEGIN
	FOR t IN 1 .. 42 LOOP
		FOR i IN 1 .. 100 LOOP
			EXECUTE format('SELECT count(*) FROM many_%s WHERE k = 7 AND v <> %s', t, -i) INTO n;
			IF n <> 2 THEN
				wrong := wrong + 1;
			END IF;
		END LOOP;
	END LOOP;
	RETURN wrong;
END $$;
END
is(value('SELECT look_at_all()'), '0', 'more indexes than mirrors: all answer');
is(value('SELECT look_at_all()'), '0', 'and once more');
# GPU memory is given out by the megabyte, so that there fewer fit
cmp_ok(value(q{SELECT count(*) FROM gpuds_indexes WHERE state = 'loaded'}), '>', on_cuda() ? 30 : 4000,
	'many of them have mirrors');
same_answers($node, 'beside them the first one', 'SELECT count(*), sum(k) FROM t WHERE k >= 0');
$node->safe_psql('postgres',
	q{DO $$ BEGIN FOR t IN 1 .. 42 LOOP EXECUTE format('DROP TABLE many_%s', t); COMMIT; END LOOP; END $$});
check_all_indexes($node, 'indexes are whole');
$node->stop;

done_testing();
