# A streaming standby gives the primary's answers during and after load, VACUUM
# and compaction, and goes on with them once promoted.

use strict;
use warnings;

use GpudsTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

random_seed();
# Replay compares every page it changes with an image of what it should be
my $primary = new_node('primary', streaming => 1, conf => "
	bgwriter_lru_maxpages = 100
	wal_consistency_checking = 'generic'\n");

$primary->safe_psql('postgres', <<'END');
CREATE TABLE t (id bigserial, k bigint, v int);
INSERT INTO t (k, v) SELECT i * 7919 % 50000, i % 100 FROM generate_series(1, 30000) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
CREATE INDEX t_v_k ON t USING gpu_btree (v, k DESC);
CREATE INDEX t_id ON t (id);
-- texts that begin alike, in an index that has stems
CREATE TABLE x (s text COLLATE "C");
INSERT INTO x SELECT format('/usr/share/doc/package-%s/changelog.%s', i % 300, i)
  FROM generate_series(1, 6000) i;
CREATE INDEX x_s ON x USING gpu_btree (s);
END
$primary->backup('base');

my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', "hot_standby_feedback = on\nmax_standby_streaming_delay = -1\n");
$standby->start;

my @queries = (
	'SELECT count(*), sum(id), sum(v) FROM t WHERE k >= 0',
	'SELECT count(*), sum(id) FROM t WHERE k BETWEEN 1000 AND 2000',
	"SELECT count(*), sum(id) FROM t WHERE k = ANY ('{1,7919,15838,23757,31676,39595,47514}')",
	'SELECT count(*), sum(id) FROM t WHERE v = 17 AND k > 20000',
	'SELECT v, k FROM t WHERE v < 5 ORDER BY v, k DESC LIMIT 100',
	'SELECT s FROM x ORDER BY s',
	"SELECT count(*) FROM x WHERE s > '/usr/share/doc/package-11' AND s < '/usr/share/doc/package-12/c'");

# What functions find, beside what a sequential scan finds
sub right_functions
{
	my ($node, $name) = @_;

	is($node->safe_psql('postgres', <<'END'), 't|t|t', $name);
SELECT gpuds_count('t_k', 1000, 20000) = (SELECT count(*) FROM t WHERE k + 0 BETWEEN 1000 AND 20000),
	gpuds_contains('t_k', keys) = (SELECT array_agg(key IN (SELECT k + 0 FROM t) ORDER BY n)
		FROM unnest(keys) WITH ORDINALITY u (key, n)),
	(SELECT count(*) FROM gpuds_lookup('t_k', keys) l JOIN t ON t.ctid = l.ctid AND t.k = keys[l.ordinality])
		= (SELECT count(*) FROM t JOIN unnest(keys) key ON t.k + 0 = key)
FROM (SELECT array_agg(i * 31 % 50500 ORDER BY i % 100) AS keys FROM generate_series(1, 3000) i) q
END
	return;
}

# Same on both sides, given that the standby is level
sub compare_sides
{
	my ($name) = @_;

	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	my $sql = join("\n", map { index_sql($_) } @queries);
	is($standby->safe_psql('postgres', $sql), $primary->safe_psql('postgres', $sql), $name);
	right_functions($standby, "$name: functions, too");
	return;
}

# Built by several processes at once
$primary->safe_psql('postgres', <<'END');
ALTER TABLE t SET (parallel_workers = 3);
SET max_parallel_maintenance_workers = 3;
CREATE INDEX t_parallel ON t USING gpu_btree (v, id);
END
push @queries, 'SELECT v, id FROM t WHERE v = 42 ORDER BY v, id LIMIT 50';
# Made anew, by workers, while the standby has another in memory
$primary->safe_psql('postgres', <<'END');
SET min_parallel_table_scan_size = 0;
SET max_parallel_maintenance_workers = 3;
INSERT INTO x SELECT format('https://example.org/page/%s/%s', i % 70, i) FROM generate_series(1, 6000) i;
REINDEX INDEX x_s;
INSERT INTO x SELECT format('https://example.org/page/%s/more of it', i) FROM generate_series(1, 300) i;
END
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
same_answers($standby, 'standby: right from the start', @queries);
compare_sides('primary and standby agree from the start');

my @scripts = (
	[ script_file('insert', <<'END'), 6 ],
\set k random(1, 50000)
BEGIN;
INSERT INTO t (k, v) SELECT :k + i * 31 % 500, i % 100 FROM generate_series(1, 50) i;
SAVEPOINT a;
INSERT INTO t (k, v) SELECT -i, i FROM generate_series(1, 50) i;
ROLLBACK TO a;
COMMIT;
END
	[ script_file('update', <<'END'), 4 ],
\set id random(1, 60000)
UPDATE t SET k = k + 1 WHERE id BETWEEN :id AND :id + 20 AND id % 3 = :client_id;
END
	[ script_file('delete', <<'END'), 3 ],
\set id random(1, 60000)
DELETE FROM t WHERE id BETWEEN :id AND :id + 60 AND id % 3 = :client_id;
END
	[ script_file('vacuum', "VACUUM (INDEX_CLEANUP ON) t;\n"), 1 ]);

for my $round (1 .. 3)
{
	my $bench = start_pgbench($primary, '-c 3 -j 2 -T 4', @scripts);
	for my $i (1 .. 6)
	{
		same_answers($standby, "standby: right in mid-load ($round, $i)", @queries);
		right_functions($standby, "standby: functions right in mid-load ($round, $i)");
		usleep(int(rand(400_000)));
	}
	ok(finish_pgbench($bench), "load $round ran through") or diag($bench->{out});
	compare_sides("primary and standby agree after load $round");

	# Enough garbage for a compaction
	$primary->safe_psql('postgres', "DELETE FROM t WHERE id % 2 = $round % 2; ");
	$primary->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) t');
	same_answers($standby, "standby: right around VACUUM $round", @queries);
	$primary->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) t');
	compare_sides("primary and standby agree after VACUUM $round");
	$primary->safe_psql('postgres',
		'INSERT INTO t (k, v) SELECT i * 7919 % 50000, i % 100 FROM generate_series(1, 15000) i');
	compare_sides("primary and standby agree after TIDs were reused $round");
}

# A snapshot that is older than what is replayed meanwhile
my $reader = $standby->background_psql('postgres');
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
my $before = $reader->query_safe('SELECT count(*), sum(id) FROM t');
$primary->safe_psql('postgres',
	"INSERT INTO t (k, v) SELECT i, 1 FROM generate_series(1, 5000) i; DELETE FROM t WHERE v = 3");
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
$reader->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off');
is($reader->query_safe('SELECT count(*), sum(id) FROM t WHERE k IS NOT NULL'), $before,
	'an old snapshot on the standby sees what it saw');
$reader->query_safe('COMMIT');
$reader->quit;

# Structures that come and go
$primary->safe_psql('postgres', '
	REINDEX INDEX t_k; CREATE INDEX t_k2 ON t USING gpu_btree (k) WHERE v > 50; TRUNCATE t;
	INSERT INTO t (k, v) SELECT i, i % 100 FROM generate_series(1, 3000) i');
compare_sides('primary and standby agree after REINDEX and TRUNCATE');
same_answers($standby, 'standby: right after REINDEX and TRUNCATE', @queries);
check_all_indexes($standby, 'indexes on the standby are whole');

# In mid-load the primary goes away and the standby takes over
my $bench = start_pgbench($primary, '-c 3 -j 2 -T 60', @scripts);
usleep(1_500_000);
$primary->stop('immediate');
finish_pgbench($bench);
$standby->promote;
same_answers($standby, 'right after promotion', @queries);
right_functions($standby, 'functions right after promotion');
check_all_indexes($standby, 'indexes are whole after promotion');

$bench = start_pgbench($standby, '-c 3 -j 2 -T 4', @scripts);
ok(finish_pgbench($bench), 'load on the promoted server ran through') or diag($bench->{out});
$standby->safe_psql('postgres', 'DELETE FROM t WHERE id % 3 = 0');
$standby->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) t');
same_answers($standby, 'right after load and VACUUM on the promoted server', @queries);
check_all_indexes($standby, 'indexes are whole at the end');
$standby->stop;

done_testing();
