# wal_level = minimal: relation files made in a transaction are not logged but
# synced at its end, and are all there after a crash.

use strict;
use warnings;

use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;

for my $threshold ('0', '1GB')
{
	my $node = new_node("minimal_$threshold", conf => "
		wal_level = minimal
		max_wal_senders = 0
		wal_skip_threshold = $threshold
		fsync = on\n");

	$node->safe_psql('postgres', <<'END');
CREATE TABLE old (k bigint);
INSERT INTO old SELECT i FROM generate_series(1, 5000) i;
CREATE TABLE trunc (k bigint);
CREATE INDEX trunc_k ON trunc USING gpu_btree (k);
INSERT INTO trunc SELECT i FROM generate_series(1, 5000) i;
CHECKPOINT;

BEGIN;
CREATE TABLE fresh (k bigint);
CREATE INDEX fresh_k ON fresh USING gpu_btree (k);
INSERT INTO fresh SELECT i FROM generate_series(1, 7000) i;
SAVEPOINT a;
INSERT INTO fresh SELECT -i FROM generate_series(1, 100) i;
ROLLBACK TO a;
INSERT INTO fresh VALUES (8000);
COMMIT;

BEGIN;
CREATE INDEX old_k ON old USING gpu_btree (k);
INSERT INTO old SELECT i FROM generate_series(5001, 6000) i;
COMMIT;

BEGIN;
TRUNCATE trunc;
INSERT INTO trunc SELECT i FROM generate_series(1, 300) i;
SAVEPOINT a;
TRUNCATE trunc;
INSERT INTO trunc SELECT i FROM generate_series(1, 400) i;
ROLLBACK TO a;
INSERT INTO trunc SELECT i FROM generate_series(301, 350) i;
COMMIT;

BEGIN;
CREATE TABLE undone (k bigint);
CREATE INDEX undone_k ON undone USING gpu_btree (k);
INSERT INTO undone SELECT i FROM generate_series(1, 100) i;
ROLLBACK;
END
	$node->stop('immediate');
	$node->start;

	is($node->safe_psql('postgres', index_sql('
		SELECT count(*), min(k), max(k) FROM fresh WHERE k IS NOT NULL')),
		'7001|1|8000', "$threshold: table and index of one transaction");
	is($node->safe_psql('postgres', index_sql('SELECT count(*), sum(k) FROM old WHERE k > 4000')),
		'2000|10001000', "$threshold: index of an older table");
	is($node->safe_psql('postgres', index_sql('SELECT count(*), max(k) FROM trunc WHERE k > 0')), '350|350',
		"$threshold: truncated table");
	check_all_indexes($node, "$threshold: indexes are whole");

	$node->safe_psql('postgres', <<'END');
INSERT INTO fresh SELECT i FROM generate_series(9001, 9500) i;
REINDEX INDEX old_k;
BEGIN;
CLUSTER trunc USING trunc_k;
INSERT INTO trunc VALUES (1000);
COMMIT;
END
	$node->stop('immediate');
	$node->start;
	same_answers($node, "$threshold: after more of it and another crash",
		'SELECT count(*), sum(k) FROM fresh WHERE k > 100', 'SELECT count(*), sum(k) FROM old WHERE k > 100',
		'SELECT count(*), sum(k) FROM trunc WHERE k > 100');
	check_all_indexes($node, "$threshold: indexes are whole again");
	$node->stop;
}

done_testing();
