# Hundreds of partitions and few locks: what fits with btree indexes fits with
# gpu_btree ones.

use strict;
use warnings;

use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $partitions = 500;
my $node = new_node('partitions', conf => "
	max_locks_per_transaction = 14
	max_connections = 20
	max_prepared_transactions = 2\n");

# Everything is done in pieces, each of which fits
for my $method ('btree', 'gpu_btree')
{
	my $table = "t_$method";

	$node->safe_psql('postgres', "CREATE TABLE $table (id int, k int, v int) PARTITION BY LIST (id)");
	for (my $first = 0; $first < $partitions; $first += 50)
	{
		my $last = $first + 49;
		$node->safe_psql('postgres', <<"END");
DO \$\$
BEGIN
	FOR i IN $first .. $last LOOP
		EXECUTE format('CREATE TABLE ${table}_%s PARTITION OF $table FOR VALUES IN (%s)', i, i);
		EXECUTE format('CREATE INDEX ON ${table}_%s USING $method (k)', i);
		EXECUTE format('CREATE INDEX ON ${table}_%s USING $method (v, k)', i);
		EXECUTE format('CREATE INDEX ON ${table}_%s USING $method (v)', i);
	END LOOP;
END \$\$;
END
	}
}

# One transaction writes to all of them, some with each statement
for my $method ('btree', 'gpu_btree')
{
	my $table = "t_$method";
	my $sql = "BEGIN;\n";

	for (my $first = 0; $first < $partitions; $first += 50)
	{
		my $last = $first + 49;
		$sql .= "
			INSERT INTO $table SELECT i, i, j
			FROM generate_series($first, $last) i, generate_series(1, 3) j;\n";
		$sql .= "COPY $table FROM stdin (DELIMITER ',');\n" . join('', map { "$_,$_,4\n" } $first .. $last)
		  . "\\.\n";
	}
	my ($rc, $out, $err) = $node->psql('postgres',
		"${sql}SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND relation >= 16384;\nCOMMIT;");
	ok($rc == 0, "a transaction writes to $partitions partitions with $method indexes") or diag($err);
	cmp_ok($out, '<=', $partitions + 1, 'and holds locks on tables only') if $method eq 'gpu_btree';
}
for my $method ('btree', 'gpu_btree')
{
	my $out = $node->safe_psql('postgres', join(' ', map { "
		SELECT count(*) FROM t_$method WHERE id IN ($_, $_ + 100) AND k = id;" } (0 .. 99)));
	my $rows = 0;

	$rows += $_ foreach split /\n/, $out;
	is($rows, 800, "rows of 200 partitions with $method indexes");
}
same_answers($node, 'answers of some partitions',
	map { "SELECT k, v FROM t_gpu_btree_$_ WHERE k = $_" } (0, 333, $partitions - 1));
check_index($node, "t_gpu_btree_${_}_k_idx") foreach (0, 333, $partitions - 1);
$node->stop;

done_testing();
