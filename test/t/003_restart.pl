# Restarts: mirrors are loaded again, unlogged tables are reset after a crash, and
# prepared transactions keep their index entries.

use strict;
use warnings;

use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('restart');
my @queries = (
	'SELECT count(*), sum(k) FROM t WHERE k >= 0',
	'SELECT count(*), sum(k) FROM t WHERE k BETWEEN 500 AND 600',
	'SELECT k FROM t WHERE k > 100 ORDER BY k LIMIT 20');

$node->safe_psql('postgres', <<'END');
CREATE TABLE t (k bigint, v int);
CREATE INDEX t_k ON t USING gpu_btree (k);
INSERT INTO t SELECT i * 7919 % 20000, i FROM generate_series(1, 20000) i;
DELETE FROM t WHERE v % 5 = 0;
CREATE UNLOGGED TABLE u (k int);
INSERT INTO u SELECT i FROM generate_series(1, 1000) i;
CREATE INDEX u_k ON u USING gpu_btree (k);
END
same_answers($node, 'before', @queries);

$node->restart;
same_answers($node, 'after a clean restart', @queries);
check_all_indexes($node, 'indexes are whole after a clean restart');
is($node->safe_psql('postgres', index_sql('SELECT count(*) FROM u WHERE k BETWEEN 1 AND 100')), '100',
	'the unlogged table lives through a clean restart');

$node->safe_psql('postgres', 'VACUUM t');
$node->safe_psql('postgres', 'INSERT INTO t SELECT i, -i FROM generate_series(1, 3000) i');
$node->restart;
same_answers($node, 'after VACUUM, more rows and a restart', @queries);

$node->stop('immediate');
$node->start;
same_answers($node, 'after a crash', @queries);
check_all_indexes($node, 'indexes are whole after a crash');
is($node->safe_psql('postgres', index_sql('SELECT count(*) FROM u WHERE k BETWEEN 1 AND 100')), '0',
	'the unlogged table is reset by a crash');
$node->safe_psql('postgres', 'INSERT INTO u SELECT i FROM generate_series(1, 500) i');
is($node->safe_psql('postgres', index_sql('SELECT count(*) FROM u WHERE k BETWEEN 1 AND 100')), '100',
	'its index works after the reset');
check_index($node, 'u_k', 'the index of the unlogged table is whole');

# An index that several processes have written
$node->safe_psql('postgres', <<'END');
CREATE TABLE p AS SELECT i * 7919 % 100000 AS k FROM generate_series(0, 99999) i;
ALTER TABLE p SET (parallel_workers = 3);
SET max_parallel_maintenance_workers = 3;
CHECKPOINT;
CREATE INDEX p_k ON p USING gpu_btree (k);
END
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', index_sql('SELECT count(*), sum(k) FROM p WHERE k >= 0')),
	'100000|4999950000', 'an index built in parallel survives a crash');
check_index($node, 'p_k', 'and is whole');

# An unlogged table truncated and rebuilt, then reset again
$node->safe_psql('postgres',
	'TRUNCATE u; INSERT INTO u SELECT i FROM generate_series(1, 50) i; REINDEX TABLE u');
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', index_sql('SELECT count(*) FROM u WHERE k > 0')), '0',
	'reset after TRUNCATE and REINDEX');
check_index($node, 'u_k', 'the index is whole after that reset');

# Prepared transactions over restarts of both kinds
for my $mode ('fast', 'immediate')
{
	$node->safe_psql('postgres', <<'END');
BEGIN;
INSERT INTO t SELECT 100000 + i, i FROM generate_series(1, 300) i;
SAVEPOINT a;
INSERT INTO t SELECT 200000 + i, i FROM generate_series(1, 300) i;
ROLLBACK TO a;
INSERT INTO t SELECT 300000 + i, i FROM generate_series(1, 30) i;
PREPARE TRANSACTION 'keep';
BEGIN;
INSERT INTO t SELECT 400000 + i, i FROM generate_series(1, 300) i;
UPDATE t SET k = k + 1000000 WHERE k BETWEEN 1000 AND 1100;
PREPARE TRANSACTION 'drop';
END
	is($node->safe_psql('postgres', index_sql('SELECT count(*) FROM t WHERE k > 90000')), '0',
		"$mode: prepared rows are not seen");
	$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) t');
	$node->stop($mode);
	$node->start;
	is($node->safe_psql('postgres', index_sql('SELECT count(*) FROM t WHERE k > 90000')), '0',
		"$mode: nor after a restart");
	$node->safe_psql('postgres', "COMMIT PREPARED 'keep'");
	$node->safe_psql('postgres', "ROLLBACK PREPARED 'drop'");
	is($node->safe_psql('postgres', index_sql('SELECT count(*) FROM t WHERE k > 90000')), '330',
		"$mode: all of them");
	same_answers($node, "$mode: after two-phase commits", @queries);
	$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) t');
	check_all_indexes($node, "$mode: indexes are whole");
	$node->safe_psql('postgres', 'DELETE FROM t WHERE k > 90000');
}
$node->stop;

done_testing();
