# VACUUM where an index's tablespace is full: it marks entries in place, and every mirror, here and on a
# standby, that may have them is loaded anew before a TID is used again.

use strict;
use warnings;

use GpudsPoints;
use GpudsTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_node('primary', streaming => 1, damage => 1,
	conf => "
		wal_consistency_checking = 'generic'
		max_parallel_maintenance_workers = 2
		min_parallel_index_scan_size = 0\n");

plan(skip_all => 'not built with INJECTION_POINTS=1') unless injection_points($primary);
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;
device_ready($standby) if on_cuda();

my $full = 'SET gpuds.test_disk_full = on;';
my $in_place = qr/index "\w+" cannot grow, VACUUM marks its entries in place/;

sub value { return $primary->safe_psql('postgres', $_[0]); }

# A vacuum; what it says
sub vacuum
{
	my ($options, $table, $settings) = @_;
	my ($rc, $out, $err) = $primary->psql('postgres', "$settings VACUUM ($options) $table");

	is($rc, 0, "VACUUM of $table passes") or diag($err);
	return $err;
}

# A table of 2,000 rows whose index has no page to spare, and mirrors of it
sub make_table
{
	my ($table) = @_;

	value(<<"SQL");
CREATE TABLE $table (k bigint, v int);
INSERT INTO $table SELECT i, 1 FROM generate_series(1, 2000) i;
CREATE INDEX ${table}_k ON $table USING gpu_btree (k);
CREATE TABLE ${table}_was AS SELECT k, ctid AS tid FROM $table WHERE k % 2 = 0;
SQL
	load_mirrors($table);
	return;
}

sub caught_up
{
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	return;
}

sub load_mirrors
{
	my ($table) = @_;

	caught_up();
	$_->safe_psql('postgres', index_sql("SELECT count(*) FROM $table WHERE k > 0")) for $primary, $standby;
	return;
}

# Rows with other keys take the places of those that were deleted; every answer is right
sub use_again
{
	my ($table, $name) = @_;
	my @queries = ("SELECT count(*), sum(v) FROM $table WHERE k BETWEEN 1 AND 2000",
		"SELECT count(*), sum(v) FROM $table WHERE k > 0");

	value("INSERT INTO $table SELECT 10000 + i, 7 FROM generate_series(1, 1000) i");
	cmp_ok(value("SELECT count(*) FROM $table JOIN ${table}_was ON $table.ctid = tid WHERE v = 7"), '>', 100,
		"$name: TIDs are used again");
	same_answers($primary, "$name: answers", @queries);
	check_index($primary, "${table}_k", "$name: the index is whole");
	caught_up();
	same_answers($standby, "$name: answers on the standby", @queries);
	check_index($standby, "${table}_k", "$name: the index is whole on the standby");
	return;
}

# There are mirrors everywhere, and a memtable here
make_table('m');
value('DELETE FROM m WHERE k % 2 = 0');
like(vacuum('INDEX_CLEANUP ON', 'm', $full), $in_place, 'VACUUM says what it does');
use_again('m', 'a full disk');

# An applier that has read records of a stripe before they are marked has old ones
make_table('a');
value('SET gpuds.test_without_memtables = on; INSERT INTO a SELECT i, 2 FROM generate_series(2001, 2400) i');
# No snapshot sees the rows any more, else VACUUM would leave them
value('INSERT INTO a_was SELECT k, ctid FROM a WHERE v = 2; DELETE FROM a WHERE k % 2 = 0 OR v = 2');
my $gate = gate($primary, 'catch-up-read');
my $applier = $primary->background_psql('postgres');
$applier->query_until(qr/go/, "
	SET gpuds.wait_at = 'catch-up-read'; SET gpuds.test_without_memtables = on; SET enable_seqscan = off;
	\\echo go
	SELECT count(*) FROM a WHERE k = 1;\n");
held_at($primary, 'catch-up-read', 'an applier is held that has read');
like(vacuum('INDEX_CLEANUP ON', 'a', $full), $in_place, 'meanwhile VACUUM marks the records');
open_points($gate, 'catch-up-read');
$applier->quit;
$gate->quit;
use_again('a', 'records read before');

# A crash between the marks and the note that they are there.  VACUUM comes again, and has space
make_table('c');
value('DELETE FROM c WHERE k % 2 = 0');
$gate = gate($primary, 'epoch-due');
my $vacuum = $primary->background_psql('postgres', on_error_stop => 0);
$vacuum->query_until(qr/go/,
	"$full SET gpuds.wait_at = 'epoch-due';\n\\echo go\nVACUUM (INDEX_CLEANUP ON) c;\n");
held_at($primary, 'epoch-due', 'VACUUM is held behind the marks');
value('CHECKPOINT');
caught_up();
same_answers($standby, 'answers on the standby between marks and note',
	'SELECT count(*), sum(v) FROM c WHERE k > 0');
$primary->stop('immediate');
eval { $_->quit } for $vacuum, $gate;
$primary->start;
device_ready($primary) if on_cuda();
unlike(vacuum('INDEX_CLEANUP ON', 'c', ''), $in_place, 'VACUUM has space for tombstones');
use_again('c', 'a crash');

# A file that was made before the metapage had an epoch
make_table('o');
my $path = file_of($primary, 'o_k');
$primary->stop;
open my $file, '+<:raw', $path or die "cannot open $path: $!";
sysseek($file, 12, 0);
syswrite($file, pack('S', 24 + 576));
sysseek($file, 24 + 576, 0);
syswrite($file, "\0" x 16);
close $file;
$primary->start;
device_ready($primary) if on_cuda();
load_mirrors('o');
value('DELETE FROM o WHERE k % 2 = 0');
like(vacuum('INDEX_CLEANUP ON', 'o', $full), $in_place, 'an older file is marked in place, too');
use_again('o', 'an older file');

# One that is left out gives the free pages back, so that inserts find them
value(<<'SQL');
CREATE TABLE w (k bigint);
INSERT INTO w SELECT i FROM generate_series(1, 100000) i;
CREATE INDEX w_k ON w USING gpu_btree (k);
DELETE FROM w WHERE k % 2 > 0;
VACUUM (INDEX_CLEANUP ON) w;
INSERT INTO w SELECT i FROM generate_series(200000, 340000) i;
SQL
my $left_out = vacuum('INDEX_CLEANUP ON', 'w', $full);
like($left_out, qr/index "w_k" cannot grow, VACUUM does not compact it/,
	'VACUUM leaves a large compaction out');
is(value("$full INSERT INTO w SELECT -i FROM generate_series(1, 5000) i; SELECT count(*) FROM w WHERE k < 0"),
	'5000', 'and an INSERT has the free pages');

# A compaction that has not the pages is left out, and made up for
value(<<'SQL');
CREATE TABLE g (k bigint, v int);
CREATE INDEX g_k ON g USING gpu_btree (k);
INSERT INTO g SELECT i, 1 FROM generate_series(1, 60000) i;
SQL
my $said = vacuum('INDEX_CLEANUP ON', 'g', $full);
like($said, qr/index "g_k" cannot grow, VACUUM does not compact it/, 'VACUUM does without a compaction');
unlike($said, $in_place, 'and has marked nothing');
check_index($primary, 'g_k', 'the index is whole without it');
my ($rc, $out, $err) = $primary->psql('postgres', "
	$full INSERT INTO g SELECT i, 1 FROM generate_series(60001, 120000) i");
like($err, qr/could not extend index/, 'an INSERT that needs pages fails');
is(value(index_sql('SELECT count(*), max(k) FROM g WHERE k > 0')), '60000|60000', 'and leaves nothing');
unlike(vacuum('INDEX_CLEANUP ON', 'g', ''), qr/cannot grow/, 'with space, VACUUM says nothing');
cmp_ok(value("SELECT pg_relation_size('g_k', 'fsm')"), '>', 0, 'and has compacted');
check_index($primary, 'g_k', 'the index is whole after it');

# Workers, and a full disk before each batch and each index
value(<<'SQL');
CREATE TABLE p (k bigint, v int);
INSERT INTO p SELECT i, 1 FROM generate_series(1, 150000) i;
CREATE INDEX p_k ON p USING gpu_btree (k);
CREATE INDEX p_v ON p USING gpu_btree (v, k);
SET enable_seqscan = off;
SELECT count(*) FROM p WHERE k > 0;
SELECT count(*) FROM p WHERE v = 1;
DELETE FROM p WHERE k % 3 > 0;
SQL
$said = vacuum('PARALLEL 2, INDEX_CLEANUP ON', 'p', $full);
like($said,
	qr/index "p_k" cannot grow.*index "p_v" cannot grow|index "p_v" cannot grow.*index "p_k" cannot grow/s,
	'both indexes are marked in place');
value('INSERT INTO p SELECT -i, 1 FROM generate_series(1, 100000) i');
same_answers($primary, 'workers: answers', 'SELECT count(*), sum(k) FROM p WHERE k > 0',
	'SELECT count(*), sum(k) FROM p WHERE v = 1 AND k > 0');
check_index($primary, $_, "workers: $_ is whole") for qw(p_k p_v);

# Temporary indexes, whose mirrors are their session's
is(value(<<"SQL"), '1000|1000', 'temporary indexes');
SET client_min_messages = error;
CREATE TEMP TABLE y (k bigint, v int);
INSERT INTO y SELECT i, 1 FROM generate_series(1, 2000) i;
CREATE INDEX y_k ON y USING gpu_btree (k);
SET enable_seqscan = off;
DO 'BEGIN PERFORM count(*) FROM y WHERE k > 0; END';
DELETE FROM y WHERE k % 2 = 0;
$full
VACUUM (INDEX_CLEANUP ON) y;
RESET gpuds.test_disk_full;
INSERT INTO y SELECT 10000 + i, 7 FROM generate_series(1, 1000) i;
SELECT count(*), sum(v) FROM y WHERE k BETWEEN 1 AND 2000;
SQL

$standby->stop;
$primary->stop;
done_testing();
