# gpuds_index_check finds entries of rows that have another key, on the primary and on a
# standby, and raises no false alarm while everything goes on.

use strict;
use warnings;

use GpudsTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

random_seed();
my $primary = new_node('primary', damage => 1, streaming => 1);
my $block_size = $primary->safe_psql('postgres', 'SHOW block_size');

# Takes an index's tombstones back, as if VACUUM had not come to them: entries of TIDs
# that other rows have by now come to life.  Returns how many there were.
sub lose_tombstones
{
	my ($path, $record_size) = @_;
	my $special = $block_size - 32;
	my $lost = 0;

	open(my $fh, '+<:raw', $path) or die "$path: $!";
	for my $block (1 .. (-s $path) / $block_size - 1)
	{
		my $page;

		seek($fh, $block * $block_size, 0);
		read($fh, $page, $block_size);
		next if unpack('C', substr($page, $special + 22, 1)) != 3;
		my $lower = unpack('S', substr($page, 12, 2));
		for (my $at = 24; $at < $lower; $at += $record_size)
		{
			next if unpack('C', substr($page, $at, 1)) != 1;
			substr($page, $at, 1) = "\0";
			$lost++;
		}
		seek($fh, $block * $block_size, 0);
		print $fh $page;
	}
	close($fh) or die "$path: $!";
	return $lost;
}

sub check
{
	my ($node, $index, $heap) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', "
		\\set VERBOSITY verbose
		SELECT gpuds_index_check('$index', $heap)");

	return $rc == 0 ? 'good' : $err;
}

# Every hundredth row goes; others come to their places
$primary->safe_psql('postgres', <<'END');
CREATE FUNCTION twice(bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN 2 * $1; END';
CREATE TABLE t (id int, k bigint, active bool);
CREATE INDEX t_one ON t USING gpu_btree (k);
CREATE INDEX t_two ON t USING gpu_btree (k DESC, id);
CREATE INDEX t_expression ON t USING gpu_btree (twice(k));
CREATE INDEX t_partial ON t USING gpu_btree (k) WHERE active;
INSERT INTO t SELECT i, i, true FROM generate_series(1, 2000) i;
DELETE FROM t WHERE k % 100 = 0;
VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) t;
END

# One case: what is done to the table before the tombstones are lost, and which
# indexes have wrong entries then
sub case
{
	my ($name, $sql, %wrong) = @_;
	my @indexes = qw(t_one t_two t_expression t_partial);

	$primary->safe_psql('postgres', "$sql; CHECKPOINT");
	my %path = map { $_ => file_of($primary, $_) } @indexes;
	is(check($primary, $_, 'true'), 'good', "$name: $_ is good before") for @indexes;

	$primary->stop;
	my %kept = map { $_ => slurp_file($path{$_}) } @indexes;
	for my $index (@indexes)
	{
		is(lose_tombstones($path{$index}, $index eq 't_two' ? 24 : 16), 20,
			"$name: $index has lost its tombstones");
	}
	$primary->start;
	for my $index (@indexes)
	{
		is(check($primary, $index, 'false'), 'good', "$name: $index itself looks good");
		if ($wrong{$index})
		{
			my $row = qr/row \(\d+,\d+\) of table "t"/;

			like(check($primary, $index, 'true'),
				qr/ERROR:  XX002: index "$index" has an entry for $row that is not of this row/,
				"$name: wrong entries of $index are found");
		}
		else
		{
			is(check($primary, $index, 'true'), 'good', "$name: $index may have such entries");
		}
	}

	$primary->stop;
	for my $index (@indexes)
	{
		open(my $fh, '>:raw', $path{$index}) or die;
		print $fh $kept{$index};
		close($fh) or die;
	}
	$primary->start;
	return;
}

my %all = map { $_ => 1 } qw(t_one t_two t_expression t_partial);
case('unused line pointers', 'SELECT 1');
case('rows of other keys', 'INSERT INTO t SELECT i, -i, true FROM generate_series(1, 10) i', %all);
case('a row that does not satisfy the predicate',
	"UPDATE t SET active = active WHERE k = -1; UPDATE t SET active = false WHERE k = -2", %all);
# An open transaction keeps them from being pruned
case('deleted rows', "BEGIN; SELECT txid_current(); PREPARE TRANSACTION 'hold'; DELETE FROM t WHERE k < 0",
	t_one => 1, t_two => 1, t_partial => 1);
$primary->safe_psql('postgres', "COMMIT PREPARED 'hold'; VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) t");

# Entries of rows of older definitions, aborted ones, HOT chains
$primary->safe_psql('postgres', <<'END');
CREATE TABLE h (id int, k bigint, v text) WITH (fillfactor = 50);
INSERT INTO h SELECT i, i, 'a' FROM generate_series(1, 500) i;
UPDATE h SET k = k + 1000 WHERE id % 2 = 0;
UPDATE h SET v = 'b' WHERE id % 3 = 0;
BEGIN;
UPDATE h SET k = -k;
ROLLBACK;
CREATE INDEX h_k ON h USING gpu_btree (k);
UPDATE h SET v = 'c' WHERE id % 5 = 0;
BEGIN;
UPDATE h SET v = 'd', k = k + 1 WHERE id % 7 = 0;
INSERT INTO h SELECT i, i, repeat('x', 100) FROM generate_series(1, 500) i;
ROLLBACK;
END
check_index($primary, 'h_k', 'HOT chains that began before the index');
# one that is broken: a snapshot keeps the old version, whose key is another
my $old = $primary->background_psql('postgres');
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t');
$primary->safe_psql('postgres', 'UPDATE h SET k = k + 5000 WHERE id % 4 = 0');
$primary->safe_psql('postgres', 'DROP INDEX h_k; UPDATE h SET k = k + 1 WHERE id % 4 = 0');
$primary->safe_psql('postgres', 'CREATE INDEX h_k ON h USING gpu_btree (k)');
check_index($primary, 'h_k', 'HOT chains with keys from before the index');
$primary->safe_psql('postgres', 'DELETE FROM h WHERE id % 4 = 0');
check_index($primary, 'h_k', 'deleted HOT chains with keys from before the index');
$old->quit;

# Beside everything else, here and on a standby
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', "max_standby_streaming_delay = -1\n");
$standby->start;
$primary->safe_psql('postgres', <<'END');
CREATE FUNCTION length_of(text) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN length($1); END';
CREATE TABLE b (id int, k bigint, v int, long text) WITH (fillfactor = 80);
ALTER TABLE b ALTER long SET STORAGE external;
CREATE INDEX b_one ON b USING gpu_btree (k);
CREATE INDEX b_two ON b USING gpu_btree (k, id);
CREATE INDEX b_long ON b USING gpu_btree (length_of(long)) WHERE length_of(long) > 2000;
INSERT INTO b SELECT i, i, i, repeat('x', 1980 + i % 50) FROM generate_series(1, 2000) i;
END
my @scripts = (
	[ script_file('change', <<'END'), 20 ],
\set k random(1, 2000)
\set n random(1, 1000000)
UPDATE b SET k = :n WHERE id BETWEEN :k AND :k + 10 AND id % 3 = :client_id;
UPDATE b SET v = v + 1 WHERE id BETWEEN :k AND :k + 10 AND id % 3 = :client_id;
DELETE FROM b WHERE id BETWEEN :k AND :k + 3 AND id % 3 = :client_id;
INSERT INTO b SELECT :k + i, :n + i, i, repeat('y', 1990 + i) FROM generate_series(1, 4) i
	WHERE (:k + i) % 3 = :client_id;
BEGIN;
INSERT INTO b SELECT :k + i, -:n, i, repeat('z', 2000 + i) FROM generate_series(1, 5) i;
SAVEPOINT a;
UPDATE b SET k = -:n WHERE id = :k AND id % 3 = :client_id;
ROLLBACK;
END
	[ script_file('vacuum', "VACUUM (INDEX_CLEANUP ON) b;\n"), 4 ]);
my $bench = start_pgbench($primary, '-c 3 -j 2 -T 12', @scripts);
for my $round (1 .. 8)
{
	check_index($primary, $_, "$_ beside changes and VACUUM ($round)") for qw(b_one b_two b_long);
	check_index($standby, $_, "$_ on a standby ($round)") for qw(b_one b_two b_long);
	usleep(200_000);
}
ok(finish_pgbench($bench), 'the changes ran through') or diag($bench->{out});

# A wrong entry is found on a standby too: one that its files alone have
$primary->safe_psql('postgres', 'INSERT INTO t SELECT i, -i, true FROM generate_series(1, 10) i; CHECKPOINT');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
# so that it does not begin with replay that mends the file
$standby->safe_psql('postgres', 'CHECKPOINT');
check_all_indexes($standby, 'indexes on the standby are good');
my $path = file_of($standby, 't_one');
$standby->stop;
lose_tombstones($path, 16);
$standby->start;
is(check($standby, 't_one', 'false'), 'good', 'the index on the standby looks good');
like(check($standby, 't_one', 'true'), qr/ERROR:  XX002: index "t_one" has an entry for row/,
	'a wrong entry on a standby is found');
$standby->stop;
$primary->stop;

done_testing();
