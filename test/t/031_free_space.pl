# A free space map that is out of date proposes pages that are not free: inserts look
# at a few of them, not at all, and the map gets right.

use strict;
use warnings;

use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('free_space', damage => 1, conf => "restart_after_crash = off\n");

sub value { return $node->safe_psql('postgres', $_[0]); }

# Buffers of the index that a statement asks for
sub accesses
{
	my ($sql) = @_;

	my ($before, $after) = split /\n/, value(<<"END");
SET stats_fetch_consistency = none;
SELECT pg_stat_get_blocks_fetched('t_k'::regclass);
$sql;
SELECT pg_stat_force_next_flush() \\g /dev/null
SELECT pg_stat_get_blocks_fetched('t_k'::regclass);
END
	return $after - $before;
}

# The old base of 400,000 entries is free space
$node->safe_psql('postgres', <<'END');
CREATE TABLE t (k bigint, v int);
INSERT INTO t SELECT i, i FROM generate_series(1, 400000) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
DELETE FROM t WHERE k > 50;
VACUUM (INDEX_CLEANUP ON) t;
END
my $path = file_of($node, 't_k');
my $pages = value("SELECT pg_relation_size('t_k') / current_setting('block_size')::int");
$node->stop;
my $map = slurp_file("${path}_fsm");
$node->start;

# All of it is used; then the map is what it was
value('INSERT INTO t SELECT i, i FROM generate_series(1, 390000) i');
my $full = value("SELECT pg_relation_size('t_k') / current_setting('block_size')::int");
cmp_ok($full, '<=', $pages + 8, 'free pages are used');
$node->stop;
open(my $fh, '>:raw', "${path}_fsm") or die;
print $fh $map;
close($fh) or die;
$node->start;

# Some pages
my $first = accesses('INSERT INTO t SELECT i, i FROM generate_series(1, 1000) i');
note("$pages pages, $full in use, $first accesses");
cmp_ok($first, '<', $pages / 2, 'a load does not look at all pages that the map proposes');

# What was looked at is not proposed again: all is through in the end
my $rounds = 0;
my $last;
do
{
	value('INSERT INTO t SELECT i, i FROM generate_series(1, 20000) i');
	$last = accesses('INSERT INTO t SELECT i, i FROM generate_series(1, 1000) i');
	$rounds++;
} while ($last > $first / 4 && $rounds < 20);
cmp_ok($rounds, '<', 20, 'the map gets right');
check_index($node, 't_k');
$node->stop;

done_testing();
