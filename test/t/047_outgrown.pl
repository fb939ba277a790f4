# A structure that random inserts have made larger than the memory, while a new load of it would fit: scans
# come back to it by themselves.  One whose entries have become too many does without, and says so; nobody
# loads it in vain.

use strict;
use warnings;

use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $device = on_cuda() ? 'cuda' : 'cpu';
my $node = new_node('outgrown', conf => on_cuda() ? "gpuds.device_memory = 28MB\n"
	  : "gpuds.host_memory = 16MB\n");

# Adds rows with random keys and looks for as many, in so many transactions; %d: the number of a row
sub insert_and_look
{
	my ($rounds, $rows) = @_;

	$node->safe_psql('postgres', <<"END");
SET client_min_messages = error;
DO \$\$
BEGIN
	FOR i IN 1 .. $rounds LOOP
		INSERT INTO t SELECT hashint8extended(nextval('n'), 1) FROM generate_series(1, $rows);
		PERFORM gpuds_contains('t_k', ARRAY(SELECT hashint8extended(g, 0) FROM generate_series(1, 3000) g));
		COMMIT;
	END LOOP;
END \$\$;
END
	return;
}

# Looks, and tells what the view and the counters say then
sub look
{
	my $before = of_statistics($node, 't_k', 'fallbacks');
	my $found = $node->safe_psql('postgres', "
		SET client_min_messages = error;
		SELECT count(*)
		FROM unnest(gpuds_contains('t_k', ARRAY(SELECT hashint8extended(g, 0)
			FROM generate_series(1, 3000) g))) f WHERE f");

	my $fallbacks = of_statistics($node, 't_k', 'fallbacks') - $before;
	return ($found, $fallbacks, of_mirror($node, 't_k', 'state', $device));
}

# A GPU changes a structure that it has loaded by what the base lacks, so that only VACUUM makes a skip
# list small there
for my $am ('gpu_btree', 'gpu_hash', on_cuda() ? () : 'gpu_skiplist')
{
	my ($found, $fallbacks, $state) = (0, 1, '');

	$node->safe_psql('postgres', <<"END");
DROP TABLE IF EXISTS t;
DROP SEQUENCE IF EXISTS n;
CREATE SEQUENCE n CACHE 1000;
CREATE TABLE t (k bigint);
INSERT INTO t SELECT hashint8extended(g, 0) FROM generate_series(1, 520000) g;
CREATE INDEX t_k ON t USING $am (k);
SELECT gpuds_index_load('t_k');
END
	is(of_mirror($node, 't_k', 'state', $device), 'loaded', "$am: loaded");
	# Loaded, these take nine tenths of the memory; grown by random inserts, more than all of it
	insert_and_look(150, 800);
	for my $try (1 .. 1800)
	{
		($found, $fallbacks, $state) = look();
		last if $fallbacks == 0 && $state eq 'loaded';
		select(undef, undef, undef, 0.1);
	}
	is($found, '3000', "$am: the right answer");
	is("$fallbacks $state", '0 loaded', "$am: it has come back by itself");
	cmp_ok(of_mirror($node, 't_k', 'bytes', $device), '>', 0, "$am: with its structure");
	# The CPU device packs a B+tree in its place
	is(of_statistics($node, 't_k', 'loads, fallbacks'), '1|0', "$am: no scan has noticed")
	  if !on_cuda() && $am ne 'gpu_skiplist';
	check_index($node, 't_k', "$am: the index is whole");
}

# More entries than there is memory for, in any form
insert_and_look(60, 8000);
my ($found, $fallbacks, $state) = look();
is($found, '3000', 'too many entries: the right answer');
cmp_ok($fallbacks, '>', 0, 'too many entries: the scan did without');
is($state, 'no memory', 'too many entries: and the view says why');
my $loads = of_statistics($node, 't_k', 'loads');
look() for 1 .. 20;
is(of_statistics($node, 't_k', 'loads'), $loads, 'too many entries: nobody loads it in vain');
check_index($node, 't_k', 'too many entries: the index is whole');

# Fewer again
$node->safe_psql('postgres', "DELETE FROM t WHERE k > 0");
$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) t') for 1 .. 2;
for my $try (1 .. 1800)
{
	($found, $fallbacks, $state) = look();
	last if $fallbacks == 0 && $state eq 'loaded';
	select(undef, undef, undef, 0.1);
}
is("$fallbacks $state", '0 loaded', 'after VACUUM it has come back');
check_index($node, 't_k', 'after VACUUM the index is whole');

# A temporary index has the same rule; nothing but this session moves it on
my $session = $node->background_psql('postgres', on_error_stop => 0);
$session->query(q{SET client_min_messages = error; SET gpuds.temp_memory = '8MB';});
$session->query(<<'END');
CREATE TEMP TABLE u (k bigint);
INSERT INTO u SELECT hashint8extended(g, 0) FROM generate_series(1, 290000) g;
CREATE INDEX u_k ON u USING gpu_btree (k);
SELECT gpuds_contains('u_k', '{1}'::bigint[]);
END
for my $round (1 .. 40)
{
	$session->query("INSERT INTO u SELECT hashint8extended(g, $round) FROM generate_series(1, 1000) g;");
	$session->query("SELECT gpuds_contains('u_k', '{1}'::bigint[]);");
}
for my $try (1 .. 1800)
{
	my $before = $session->query("
		SELECT fallbacks FROM gpuds_stat_indexes WHERE indexrelid = 'u_k'::regclass;");

	$session->query("SELECT gpuds_contains('u_k', '{1}'::bigint[]);");
	$fallbacks = $session->query("
		SELECT fallbacks FROM gpuds_stat_indexes WHERE indexrelid = 'u_k'::regclass;") - $before;
	last if $fallbacks == 0;
	select(undef, undef, undef, 0.1);
}
is($fallbacks, 0, 'a temporary index has come back');
is($session->query("SELECT state FROM gpuds_indexes WHERE indexrelid = 'u_k'::regclass;"), 'loaded',
	'and the view says so');
$session->quit;
$node->stop;

done_testing();
