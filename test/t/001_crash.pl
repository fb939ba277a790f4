# Crashes at random moments of a mixed load: after every recovery the indexes
# hold every row of their tables, and nothing that is not theirs.

use strict;
use warnings;

use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

random_seed();
my $rounds = $ENV{GPUDS_TEST_CRASHES} // 10;
# Recovery compares every page it changes with an image of what it should be
my $node = new_node('crash', conf => "
	bgwriter_lru_maxpages = 100
	max_wal_size = 64MB
	wal_consistency_checking = 'generic'\n");

$node->safe_psql('postgres', <<'END');
CREATE TABLE t (id bigserial, k bigint, at timestamptz, v int, pad text DEFAULT 'x');
CREATE INDEX t_k ON t USING gpu_btree (k);
CREATE INDEX t_v_at ON t USING gpu_btree (v DESC, at);
CREATE INDEX t_part ON t USING gpu_btree (k) WHERE v < 50;
CREATE INDEX t_id ON t (id);
CREATE UNLOGGED TABLE u (k bigint);
CREATE INDEX u_k ON u USING gpu_btree (k);
INSERT INTO t (k, at, v) SELECT i * 7919 % 100000, timestamptz '2026-01-01' + i * interval '1 second', i % 100
  FROM generate_series(1, 20000) i;
-- texts that begin alike, in indexes that have stems; one is made anew by the load
CREATE TABLE x (s text COLLATE "C");
INSERT INTO x SELECT format('/usr/share/doc/package-%s/changelog.%s', i % 300, i)
  FROM generate_series(1, 6000) i;
CREATE INDEX x_s ON x USING gpu_btree (s);
CREATE INDEX x_d ON x USING gpu_btree (s DESC);
CREATE UNLOGGED TABLE y AS SELECT s FROM x;
CREATE INDEX y_s ON y USING gpu_btree (s);
END

my @scripts = (
	[ script_file('insert', <<'END'), 6 ],
\set k random(1, 100000)
\set n random(1, 200)
BEGIN;
INSERT INTO t (k, at, v) SELECT :k + i * 37 % 1000, now(), i % 100 FROM generate_series(1, :n) i;
SAVEPOINT a;
INSERT INTO t (k, at, v) SELECT -i, now(), i % 100 FROM generate_series(1, :n) i;
ROLLBACK TO a;
INSERT INTO t (k, at, v) VALUES (:k, now(), :n % 100);
COMMIT;
END
	[ script_file('single', <<'END'), 8 ],
\set k random(1, 100000)
INSERT INTO t (k, at, v) VALUES (:k, now(), :k % 100);
END
	[ script_file('update', <<'END'), 6 ],
\set id random(1, 40000)
UPDATE t SET k = k + 1 WHERE id BETWEEN :id AND :id + 40 AND id % 4 = :client_id;
END
	[ script_file('delete', <<'END'), 4 ],
\set id random(1, 40000)
DELETE FROM t WHERE id BETWEEN :id AND :id + 60 AND id % 4 = :client_id;
END
	[ script_file('abort', <<'END'), 2 ],
\set k random(1, 100000)
BEGIN;
INSERT INTO t (k, at, v) SELECT :k + i, now(), i % 100 FROM generate_series(1, 100) i;
DELETE FROM t WHERE k = :k;
ROLLBACK;
END
	[ script_file('texts', <<'END'), 3 ],
\set k random(1, 100000)
INSERT INTO x SELECT format('/usr/share/doc/package-%s/copyright.%s.%s', i * 7, :k, i)
  FROM generate_series(1, 40) i;
DELETE FROM x WHERE s > format('/usr/share/doc/package-%s/', :k % 300)
  AND s < format('/usr/share/doc/package-%s/changelog.2', :k % 300);
END
	[ script_file('reindex', "REINDEX INDEX x_d;\n"), 1 ],
	[ script_file('query', <<'END'), 4 ],
\set k random(1, 100000)
SET enable_seqscan = off;
SELECT count(*) FROM t WHERE k BETWEEN :k AND :k + 500;
INSERT INTO u VALUES (:k);
END
	[ script_file('vacuum', "VACUUM (INDEX_CLEANUP ON) t;\n"), 1 ],
	[ script_file('checkpoint', "CHECKPOINT;\n"), 1 ]);

for my $round (1 .. $rounds)
{
	# Sometimes much garbage, so that VACUUM compacts
	$node->safe_psql('postgres', 'DELETE FROM t WHERE id % 3 = ' . $round % 3) if $round % 4 == 0;
	my $bench = start_pgbench($node, '-c 4 -j 2 -T 60', @scripts);
	usleep(50_000 + int(rand(1_000_000)));
	$node->stop('immediate');
	finish_pgbench($bench);
	$node->start;

	check_all_indexes($node, "indexes are whole after crash $round");
	my $k = int(rand(100000));
	same_answers($node, "answers are right after crash $round",
		"SELECT count(*), sum(id), sum(v) FROM t WHERE k >= 0",
		"SELECT count(*), sum(id) FROM t WHERE k BETWEEN $k AND $k + 3000",
		"SELECT count(*), sum(id) FROM t WHERE k < 0",
		"SELECT count(*), sum(id) FROM t WHERE v = " . $k % 100,
		"SELECT v, at FROM t WHERE v > 90 ORDER BY v DESC, at LIMIT 50",
		'SELECT s FROM x ORDER BY s', 'SELECT s FROM x ORDER BY s DESC LIMIT 500',
		"SELECT s FROM x WHERE s LIKE '/usr/share/doc/package-2%' ORDER BY s");
	$node->safe_psql('postgres', "INSERT INTO y SELECT s FROM x LIMIT 3000");
	same_answers($node, "an unlogged index without its stems is right after crash $round",
		'SELECT s FROM y ORDER BY s');
}

is($node->safe_psql('postgres', 'SELECT count(*) FROM t WHERE k < 0'), '0',
	'nothing of rolled-back savepoints is there');
is($node->safe_psql('postgres', index_sql('SELECT count(*) FROM u WHERE k > 0')), '0',
	'the unlogged table is empty, and so is its index');
$node->stop;

done_testing();
