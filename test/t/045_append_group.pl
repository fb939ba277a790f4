# Entries of a row for several indexes are appended by one record of WAL, whatever order the
# indexes come in; and where that cannot be, one index after the other.

use strict;
use warnings;

use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;

# Recovery compares every page it changes with an image of what it should be
my $node = new_node('group', conf => "wal_consistency_checking = 'generic'\n");

$node->safe_psql('postgres', <<'END');
CREATE EXTENSION pg_walinspect;
CREATE TABLE t (id bigint, k bigint, v int, at timestamptz, note text);
CREATE INDEX t_id ON t USING gpu_btree (id);
CREATE INDEX t_k ON t USING gpu_btree (k) INCLUDE (v);
CREATE INDEX t_note ON t USING gpu_hash (note);
CREATE INDEX t_v_at ON t USING gpu_btree (v DESC, at);
CREATE INDEX t_part ON t USING gpu_btree (k) WHERE v < 50;
CREATE UNLOGGED TABLE u (id bigint, k bigint);
CREATE INDEX u_id ON u USING gpu_btree (id);
CREATE INDEX u_k ON u USING gpu_btree (k);
-- a row has entries in indexes of both tables, in the one order or in the other
CREATE TABLE a (k bigint, v bigint);
CREATE INDEX a_k ON a USING gpu_btree (k);
CREATE INDEX a_v ON a USING gpu_btree (v);
CREATE TABLE b (k bigint, v bigint);
CREATE INDEX b_v ON b USING gpu_btree (v);
CREATE INDEX b_k ON b USING gpu_btree (k);
END

# Runs statements in one session that knows the tails; the number of generic records that the last one made.
sub generic_records
{
	my ($before, $statement) = @_;
	my $out = $node->safe_psql('postgres', <<"END");
$before
SELECT pg_current_wal_insert_lsn() AS began \\gset
$statement
SELECT 1 FROM pg_logical_emit_message(true, 'all before is flushed', '');
SELECT pg_current_wal_flush_lsn() AS ended \\gset
SELECT count(*) FROM pg_get_wal_records_info(:'began', :'ended') WHERE resource_manager = 'Generic';
END
	my @lines = split /\n/, $out;
	return $lines[-1];
}

# Whether so few records are made, in one of several tries: where a session has been told to forget tails,
# indexes are appended to one after the other.  One test.
sub makes_records
{
	my ($before, $statement, $wanted, $name) = @_;
	my $n;

	for (1 .. 10)
	{
		$n = generic_records($before, $statement);
		last if $n <= $wanted;
	}
	is($n, $wanted, $name);
	return;
}

my $row = "INSERT INTO t VALUES (1, 10, 60, '2026-01-01', 'one');";
my $both = "INSERT INTO t VALUES (2, 20, 5, '2026-01-02', 'two');";
makes_records("$row $row", $row, 1, 'a row: four indexes, one record');
makes_records("$both $both", $both, 2, 'a row: five indexes, two records');
makes_records("$both $both", "INSERT INTO t SELECT i, i, 60, now(), 'x' FROM generate_series(1, 5) i;", 1,
	'five rows of a page: one record');
makes_records("$both $both", "
	UPDATE t SET k = k + 1 WHERE id = 1 AND ctid = (SELECT min(ctid) FROM t WHERE id = 1);",
	1, 'an update: one record');
cmp_ok(generic_records("$both $both", "
	INSERT INTO t SELECT i, i, 60, now(), 'x' FROM generate_series(1, 500) i;"),
	'>', 4, 'rows of many pages: a record for each stripe and index');

# However many indexes a table has, the session remembers the tails of all
my @many = map { "CREATE INDEX many_$_ ON many USING gpu_btree (k) WHERE v < " . (100 + $_) . ';' } 1 .. 40;
$node->safe_psql('postgres', "CREATE TABLE many (k bigint, v int); @many");
makes_records('INSERT INTO many VALUES (1, 1); INSERT INTO many VALUES (1, 1);',
	'INSERT INTO many VALUES (2, 2);', 10, 'a row: forty indexes, ten records');

# ... and not those of indexes that are gone
my $kept = $node->safe_psql('postgres', <<'SQL');
DO $$
BEGIN
	FOR i IN 1..1000 LOOP
		CREATE TEMP TABLE gone (k int);
		CREATE INDEX ON gone USING gpu_btree (k);
		INSERT INTO gone VALUES (1);
		DROP TABLE gone;
	END LOOP;
END
$$;
SELECT total_bytes FROM pg_backend_memory_contexts WHERE name = 'gpuds tails';
SQL
cmp_ok($kept, '<', 200_000, 'memory for tails');

# Nothing of an index without WAL is in a record of others
is(generic_records('INSERT INTO u VALUES (1, 1); INSERT INTO u VALUES (1, 1);',
		'INSERT INTO u VALUES (2, 2);'), 0, 'unlogged indexes: no record');
is(generic_records('
	CREATE TEMP TABLE m (a int, b int); CREATE INDEX ON m USING gpu_btree (a);
	CREATE INDEX ON m USING gpu_btree (b); INSERT INTO m VALUES (1, 1);',
	'INSERT INTO m VALUES (2, 2);'), 0, 'temporary indexes: no record');

# Full pages, one by one
$node->safe_psql('postgres',
	'DO $$ BEGIN FOR i IN 1 .. 3000 LOOP INSERT INTO t VALUES (i, -i, i % 100, now(), i::text); '
	  . 'INSERT INTO u VALUES (i, -i); END LOOP; END $$');
check_all_indexes($node, 'pages that get full');
same_answers($node, 'answers',
	'SELECT count(*), sum(k) FROM t WHERE id BETWEEN 1 AND 3000',
	'SELECT count(*), sum(id) FROM t WHERE k < 0',
	"SELECT count(*), sum(id) FROM t WHERE note = ANY ('{1,2,3,x}')",
	'SELECT count(*), sum(id) FROM t WHERE k BETWEEN -3000 AND 0 AND v < 50',
	'SELECT count(*), sum(id) FROM u WHERE k BETWEEN -3000 AND 0');

# Sessions that want the same pages in different orders do not wait for each other in a circle: rows of a
# and b go into the same scope by partitions of one statement
$node->safe_psql('postgres', <<'END');
CREATE TABLE p (k bigint, v bigint) PARTITION BY LIST (k);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2);
CREATE INDEX ON p USING gpu_btree (k);
CREATE INDEX ON p USING gpu_btree (v);
END
my @scripts = (
	[ script_file('forth', "\\set n random(1, 1000)\nINSERT INTO p VALUES (1, :n), (2, :n);\n"), 4 ],
	[ script_file('back', "\\set n random(1, 1000)\nINSERT INTO p VALUES (2, :n), (1, :n);\n"), 4 ],
	[ script_file('single', "
		\\set n random(1, 1000)
		INSERT INTO a VALUES (:n, :n);
		INSERT INTO b VALUES (:n, :n);\n"), 4 ],
	[ script_file('failed', "
		\\set n random(1, 1000)
		BEGIN;
		INSERT INTO a VALUES (:n, :n);
		INSERT INTO p VALUES (1, :n), (2, :n);
		ROLLBACK;\n"), 1 ],
	[ script_file('vacuum', "DELETE FROM p WHERE v % 10 = 3;\nVACUUM (INDEX_CLEANUP ON) p;\n"), 1 ],
	[ script_file('look', "
		\\set n random(1, 1000)
		SELECT count(*) FROM p WHERE v = :n;
		SELECT count(*) FROM a WHERE k = :n AND v = :n;\n"), 4 ]);
my $bench = start_pgbench($node, '-c 8 -j 2 -T 5', @scripts);
ok(finish_pgbench($bench), 'sessions with different orders') or diag($bench->{out});
check_all_indexes($node, 'indexes are whole');

# Recovery
$node->safe_psql('postgres', "CHECKPOINT; $both");
$bench = start_pgbench($node, '-c 8 -j 2 -T 30', @scripts[ 0 .. 3 ], [ script_file('row', $both), 4 ]);
select(undef, undef, undef, 2);
$node->stop('immediate');
finish_pgbench($bench);
$node->start;
device_ready($node) if on_cuda();
check_all_indexes($node, 'after a crash');
is($node->safe_psql('postgres', 'SELECT count(*) FROM u'), 0, 'unlogged tables are empty after it');
same_answers($node, 'answers after it', 'SELECT count(*), sum(v) FROM p WHERE v BETWEEN 100 AND 500',
	'SELECT count(*), sum(k) FROM t WHERE id = 2');
unlike(slurp_file($node->logfile), qr/inconsistent page found/, 'replay makes the pages that there were');
$node->stop;

done_testing();
