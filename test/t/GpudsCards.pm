# What TAP tests of several GPUs share, which are emulated.

package GpudsCards;

use strict;
use warnings;

use Exporter 'import';
use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(several_cards structure_memory becomes cards_are fail_to_open lose_card answers_agree
  memory_is_kept);

# A setting of memory for structures that is so many megabytes for a B+tree.  An AVL tree in its place takes
# more than twice as much.
sub structure_memory
{
	my ($megabytes) = @_;
	return $megabytes * (($ENV{GPUDS_TEST_AM} // '') eq 'gpu_avl' ? 2.2 : 1) . 'MB';
}

# Takes a name, lines of postgresql.conf, and what else new_node takes.  Returns a node on which a GPU has
# little memory, so that GPUs fill up; the caller says how many there are to be.  Skips all tests where GPUs
# are not emulated.
sub several_cards
{
	my ($name, $conf, %opt) = @_;
	need_cuda();
	my $node = new_node($name, %opt,
		conf => "restart_after_crash = off\nmax_worker_processes = 24\ngpuds.device_memory = "
		  . structure_memory(40) . "\ngpuds.staging_memory = 16MB\n" . ($conf // ''));

	plan(skip_all => 'only the emulated GPU is as many as one likes')
	  unless device_state($node, 'name') =~ /emulated/;
	return $node;
}

# The answer to a query becomes what it should.  One test.
sub becomes
{
	my ($node, $name, $query, $answer) = @_;

	ok($node->poll_query_until('postgres', $query, $answer), $name)
	  or diag($node->safe_psql('postgres', $query));
	return;
}

# What gpuds_devices says of GPUs becomes these states, in the order of their numbers.  One test.
sub cards_are
{
	my ($node, $name, @states) = @_;

	becomes($node, "$name: @states",
		"SELECT string_agg(state, ' ' ORDER BY name) FROM gpuds_devices WHERE kind = 'cuda'", "@states");
	return;
}

# A GPU that is lost cannot be opened so many times.
sub fail_to_open
{
	my ($node, $times) = @_;

	$node->append_conf('postgresql.conf', "gpuds.device_open_failures = $times\n");
	$node->reload;
	return;
}

# Returns the answer of a query, by an index, under which the GPU is lost that it asks first.
sub lose_card
{
	my ($node, $query) = @_;
	return $node->safe_psql('postgres',
		"SET client_min_messages = error; SET gpuds.device_fault = 'sticky'; " . index_sql($query));
}

# Queries give by index what they give without.  One test.
sub answers_agree
{
	my ($node, $name, @queries) = @_;
	my $right = $node->safe_psql('postgres', join("\n\\echo --\n", map { scan_sql($_) } @queries));
	my $found = $node->safe_psql('postgres',
		join("\n\\echo --\n", map { 'SET client_min_messages = error; ' . index_sql($_) } @queries));
	my @rights = split(/^--$/m, $right, -1);
	my @founds = split(/^--$/m, $found, -1);
	my @wrong = grep { ($founds[$_] // '') ne $rights[$_] } 0 .. $#queries;

	ok(!@wrong, "$name: answers") or diag(map { "$queries[$_]: $founds[$_], not $rights[$_]\n" } @wrong);
	return;
}

# No GPU uses more memory than it has.  One test.
sub memory_is_kept
{
	my ($node, $name) = @_;

	is($node->safe_psql('postgres',
			"SELECT count(*) FROM gpuds_devices WHERE kind = 'cuda' AND memory_used > memory_total"), '0',
		"$name: within the memory");
	return;
}

1;
