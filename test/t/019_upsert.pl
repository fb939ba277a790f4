# Clients upsert the same keys in bulk, so that rows lose at every moment, while VACUUM
# frees the losers' places and other rows take them.

use strict;
use warnings;

use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('upsert');

$node->safe_psql('postgres', <<'END');
CREATE TABLE t (id int PRIMARY KEY, k int, v int DEFAULT 0);
CREATE INDEX t_k ON t USING gpu_btree (k);
CREATE INDEX t_v ON t USING gpu_btree (v, k) WHERE v % 2 = 1;
CREATE TABLE x (k int, EXCLUDE USING gpu_btree (k WITH =));
CREATE INDEX x_k ON x USING gpu_btree (k);
END

# Fresh keys of a narrow range, the same ones for all clients at a time
my @scripts = (
	[ script_file('nothing', <<'END'), 4 ],
INSERT INTO t SELECT s + i, (random() * 1e6)::int, i FROM (SELECT (extract(epoch FROM now()) * 10)::bigint % 100000 * 20 AS s) s, generate_series(1, 60) i
	ON CONFLICT (id) DO NOTHING;
END
	[ script_file('update', <<'END'), 4 ],
INSERT INTO t SELECT s + i, (random() * 1e6)::int, i FROM (SELECT (extract(epoch FROM now()) * 10)::bigint % 100000 * 20 AS s) s, generate_series(1, 60) i
	ON CONFLICT (id) DO UPDATE SET k = excluded.k, v = t.v + 1;
END
	[ script_file('delete', <<'END'), 2 ],
DELETE FROM t WHERE id IN (SELECT id FROM t WHERE k BETWEEN (random() * 1e6)::int AND 1000000 LIMIT 60 FOR UPDATE SKIP LOCKED);
END
	[ script_file('exclude', <<'END'), 1 ],
INSERT INTO x SELECT s + i FROM (SELECT (extract(epoch FROM now()) * 10)::bigint % 100000 * 4 AS s) s, generate_series(1, 10) i
	ON CONFLICT DO NOTHING;
END
	[ script_file('steps', <<'END'), 2 ],
BEGIN;
INSERT INTO t SELECT s + i, (random() * 1e6)::int, i FROM (SELECT (extract(epoch FROM now()) * 10)::bigint % 100000 * 20 AS s) s, generate_series(1, 30) i
	ON CONFLICT (id) DO NOTHING;
SAVEPOINT a;
INSERT INTO t SELECT s + i, (random() * 1e6)::int, i FROM (SELECT (extract(epoch FROM now()) * 10)::bigint % 100000 * 20 AS s) s, generate_series(31, 60) i
	ON CONFLICT (id) DO UPDATE SET v = t.v + 1;
ROLLBACK TO a;
COMMIT;
END
);
my @queries = (
	'SELECT count(*), sum(id), sum(k) FROM t WHERE k >= 0',
	'SELECT count(*), sum(id) FROM t WHERE k BETWEEN 1000 AND 200000',
	'SELECT count(*), sum(id) FROM t WHERE v > 0 AND v % 2 = 1',
	'SELECT count(*), sum(k) FROM x WHERE k > 0');
my $bench = start_pgbench($node, '-c 8 -j 2 -T 12 --max-tries=1000', @scripts);

for my $round (1 .. 10)
{
	$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) t, x');
	same_answers($node, "answers of round $round", @queries) if $round % 3 == 0;
	select(undef, undef, undef, 0.4);
}
ok(finish_pgbench($bench), 'clients ran through') or diag($bench->{out});
same_answers($node, 'answers at the end', @queries);
check_all_indexes($node, 'indexes are whole');
$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) t, x');
$node->safe_psql('postgres', "INSERT INTO t SELECT -i, 2000000 + i, 1 FROM generate_series(1, 20000) i");
is($node->safe_psql('postgres', index_sql('SELECT count(*) FROM t WHERE k < 2000000 AND id < 0')), '0', 'no new row under an old key');
check_all_indexes($node, 'indexes are whole at the end');
$node->stop;

done_testing();
