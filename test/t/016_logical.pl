# Logical replication to a server with gpu_btree indexes: its apply worker inserts,
# truncates and rolls back without any statement.

use strict;
use warnings;

use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;

random_seed();

my $tables = <<'END';
CREATE TABLE t (id int PRIMARY KEY, k int, v text);
CREATE TABLE p (id int, part int, k int, PRIMARY KEY (id, part)) PARTITION BY LIST (part);
CREATE TABLE p_1 PARTITION OF p FOR VALUES IN (1);
CREATE TABLE p_2 PARTITION OF p FOR VALUES IN (2);
END
my $publisher = new_node('publisher', streaming => 'logical', conf => "logical_decoding_work_mem = 64kB\n");
my $subscriber = new_node('subscriber', streaming => 'logical');

$publisher->safe_psql('postgres', "$tables CREATE PUBLICATION pub FOR TABLE t, p");
$subscriber->safe_psql('postgres', <<"END");
$tables
CREATE INDEX t_k ON t USING gpu_btree (k);
CREATE INDEX t_kid ON t USING gpu_btree (k, id) WHERE k > 10;
CREATE INDEX p_k ON p USING gpu_btree (k);
CREATE TABLE log (k int);
CREATE INDEX log_k ON log USING gpu_btree (k);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS \$\$
BEGIN
	INSERT INTO public.log SELECT new.k FROM generate_series(1, 3);
	RETURN new;
END \$\$;
CREATE TRIGGER note AFTER INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION note();
ALTER TABLE t ENABLE ALWAYS TRIGGER note;
END

# Rows that are there before come by the initial copy
$publisher->safe_psql('postgres', '
	INSERT INTO t SELECT -i, i, i FROM generate_series(1, 1000) i;
	INSERT INTO p SELECT i, 1 + i % 2, i FROM generate_series(1, 1000) i');
my $connection = $publisher->connstr . ' dbname=postgres';
$subscriber->safe_psql('postgres',
	"CREATE SUBSCRIPTION sub CONNECTION '$connection' PUBLICATION pub WITH (streaming = on)");
$subscriber->wait_for_subscription_sync($publisher, 'sub');
same_answers($subscriber, 'rows of the initial copy', 'SELECT count(*), sum(id) FROM t WHERE k > 0');

my @queries = (
	'SELECT id, k, v FROM t WHERE k = 1 ORDER BY id',
	'SELECT count(*), sum(k), sum(id) FROM t WHERE k > 0',
	'SELECT count(*), sum(k) FROM log WHERE k > 0',
	'SELECT count(*), sum(k) FROM p_1 WHERE k > 0');

# What both servers say must be the same, and on the subscriber any way it is asked
sub compare
{
	my ($name) = @_;

	$publisher->wait_for_catchup('sub');
	my $sums = 'SELECT count(*), sum(id), sum(k) FROM t UNION ALL SELECT count(*), sum(id), sum(k) FROM p';
	is($subscriber->safe_psql('postgres', $sums), $publisher->safe_psql('postgres', $sums),
		"$name: rows are replicated");
	same_answers($subscriber, "$name: answers", @queries);
	check_all_indexes($subscriber, "$name: indexes are whole");
	return;
}

# Two TRUNCATEs in one transaction: the second builds in the file of the first
$publisher->safe_psql('postgres', <<'END');
BEGIN;
INSERT INTO t VALUES (1, 1, 'before');
TRUNCATE t;
INSERT INTO t VALUES (1, 1, 'between');
TRUNCATE t;
INSERT INTO t VALUES (2, 2, 'after');
COMMIT;
END
compare('two TRUNCATEs');
is($subscriber->safe_psql('postgres', index_sql('SELECT count(*) FROM t WHERE k = 1')), '0',
	'no row of before');
is($subscriber->safe_psql('postgres', index_sql('SELECT id, k, v FROM t WHERE k = 2')), '2|2|after',
	'the row of after');

$publisher->safe_psql('postgres', <<'END');
BEGIN;
TRUNCATE t, p;
INSERT INTO t SELECT i, i % 100, 'first' FROM generate_series(1, 5000) i;
INSERT INTO p SELECT i, 1 + i % 2, i FROM generate_series(1, 2000) i;
SAVEPOINT a;
TRUNCATE t, p;
INSERT INTO t SELECT i, i % 50, 'second' FROM generate_series(1, 5000) i;
ROLLBACK TO a;
INSERT INTO t SELECT i, i % 70, 'third' FROM generate_series(5001, 6000) i;
TRUNCATE p;
INSERT INTO p SELECT i, 1 + i % 2, i FROM generate_series(1, 1000) i;
COMMIT;
END
compare('savepoints');

# Random transactions, small ones and such as are streamed in pieces
my $next = 10000;
for my $round (1 .. 6)
{
	my $sql = '';

	for my $transaction (1 .. 6)
	{
		my $depth = 0;

		$sql .= "BEGIN;\n";
		for my $step (1 .. 2 + int(rand(8)))
		{
			my $n = rand() < 0.3 ? 2000 : 1 + int(rand(20));
			my $what = int(rand(9));

			if ($what <= 2)
			{
				$sql .= "
					INSERT INTO t SELECT i, i % 1000, 'r$round' FROM generate_series($next, $next + $n) i;
					INSERT INTO p SELECT i, 1 + i % 2, i % 500 FROM generate_series($next, $next + $n) i;\n";
				$next += $n + 1;
			}
			elsif ($what == 3) { $sql .= "UPDATE t SET k = k + 1 WHERE id % 7 = $step;\n"; }
			elsif ($what == 4)
			{
				$sql .= "
					DELETE FROM t WHERE id % 11 = $step;
					UPDATE p SET part = 3 - part WHERE id % 13 = $step;\n";
			}
			elsif ($what == 5) { $sql .= "TRUNCATE t;\n"; }
			elsif ($what == 6) { $sql .= "TRUNCATE p;\n"; }
			elsif ($what == 7) { $sql .= "SAVEPOINT s$depth;\n"; $depth++; }
			elsif ($depth > 0)
			{
				$depth--;
				$sql .= (rand() < 0.6 ? 'ROLLBACK TO' : 'RELEASE') . " s$depth;\n";
			}
		}
		$sql .= rand() < 0.85 ? "COMMIT;\n" : "ROLLBACK;\n";
	}
	$publisher->safe_psql('postgres', $sql);
	compare("random transactions $round");
	$subscriber->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) t, p, log') if $round % 2 == 0;
}

# Since 18, the replica identity may be a unique index of ours: core then takes the row that it finds, and
# hashes of seven columns have few bits
SKIP: {
	my $columns = join(', ', (map { "$_ text NOT NULL" } 'a' .. 'g'), 'h int NOT NULL');
	my $sums = 'SELECT count(*), sum(v::bigint), md5(string_agg(g, NULL ORDER BY g)) FROM identity';

	skip('unique indexes need PostgreSQL 18', 1) if $publisher->pg_version < 18;
	for ([ $publisher, 'btree' ], [ $subscriber, 'gpu_hash' ])
	{
		my ($node, $method) = @$_;

		$node->safe_psql('postgres', <<"END");
CREATE TABLE identity ($columns, v int);
CREATE UNIQUE INDEX identity_key ON identity USING $method (a, b, c, d, e, f, g, h);
ALTER TABLE identity REPLICA IDENTITY USING INDEX identity_key;
END
	}
	$publisher->safe_psql('postgres', 'ALTER PUBLICATION pub ADD TABLE identity');
	$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION sub REFRESH PUBLICATION WITH (copy_data = false)');
	$publisher->safe_psql('postgres', <<'END');
INSERT INTO identity SELECT 'x', 'x', 'x', 'x', 'x', 'x', 'x' || i, 1, i FROM generate_series(10001, 30000) i;
DELETE FROM identity WHERE v % 2 = 0;
END
	$publisher->wait_for_catchup('sub');
	is( $subscriber->safe_psql('postgres', $sums),
		$publisher->safe_psql('postgres', $sums),
		'rows are found by values');
}

$subscriber->stop;
$publisher->stop;

done_testing();
