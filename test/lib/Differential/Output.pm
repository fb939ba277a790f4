# What a script of test/differential says to psql.
#
# The script works on twin tables, tg with the index under test and tb with a
# btree one.  In templates {T} is the table, {I} the index, {P} the table of
# probe values and {AM} the access method.  The output is cut into blocks by
# echoed lines:
#
#   @@ NUMBER VARIANT MODE     begins a block, VARIANT is seq, btree or gpu
#   @@                         ends it
#
# Blocks of one number must be equal: line by line (MODE list) or as multisets
# (MODE set).  MODE plan is an EXPLAIN in which the index is looked for, MODE timed
# a statement that may run into statement_timeout: no answer is expected of it.

package Differential::Output;

use strict;
use warnings;

use Differential::Random;

use Exporter 'import';
our @EXPORT_OK = qw(_for_table _index_settings _without_order);

sub _say { my ($self, @lines) = @_; push @{ $self->{out} }, @lines; return; }

sub _for_table
{
	my ($template, $twin) = @_;
	$template =~ s/\{T\}/t$twin/g;
	$template =~ s/\{I\}/t${twin}_idx/g;
	$template =~ s/\{P\}/p/g;
	return $template;
}

# A statement that changes both twins alike: its command tag, rows and errors must agree
sub _both
{
	my ($self, $template, @copy) = @_;
	my $number;

	# Only what is ordered can be clustered by.
	return if $self->_unordered && $template =~ /^CLUSTER/;
	$number = ++$self->{number};

	for my $pair ([ 'btree', 'b' ], [ 'gpu', 'g' ])
	{
		$self->_say("\\echo @@ $number $pair->[0] set", _for_table($template, $pair->[1]) . ';', @copy,
			"\\echo @@");
	}
	return;
}

# Planner settings of a variant, in one message to the server
sub _settings
{
	my ($self, %on) = @_;
	my @all = qw(seqscan indexscan indexonlyscan bitmapscan sort incremental_sort hashjoin mergejoin nestloop
	  hashagg material memoize);

	$self->_say(join('\; ', (map { "SET enable_$_=" . (($on{$_} // 1) ? 'on' : 'off') } @all),
			'SET gpuds.enable_scan=' . _one('on', 'off'),
			'SET max_parallel_workers_per_gather=' . _one(0, 0, 2)) . ';');
	return;
}

sub _seqscan_settings
{
	my ($self) = @_;
	$self->_settings(indexscan => 0, indexonlyscan => 0, bitmapscan => 0);
	return;
}

# How a query may be made to use the index: its ordered form, a join form, or any
sub _index_settings
{
	my ($kind) = @_;

	return (seqscan => 0, bitmapscan => 0, sort => 0, incremental_sort => 0, hashagg => 0)
	  if $kind eq 'ordered';
	return (seqscan => 0, hashjoin => 0, mergejoin => 0, material => 0, memoize => _int(0, 1))
	  if $kind eq 'nestloop';
	return (seqscan => 0, hashjoin => 0, nestloop => 0, bitmapscan => 0) if $kind eq 'merge';
	return (seqscan => 0, _one([ bitmapscan => 0 ], [ bitmapscan => 0 ],
			[ indexscan => 0, indexonlyscan => 0 ], [])->@*);
}

# A query in all three ways
sub _query
{
	my ($self, $template, %opt) = @_;
	my $mode = $opt{mode} // 'set';
	my $number = ++$self->{number};
	my %settings = _index_settings($opt{kind} // 'any');

	$self->_seqscan_settings;
	$self->_say("\\echo @@ $number seq $mode", _for_table($template, 'g') . ';', "\\echo @@");
	$self->_settings(%settings);
	$self->_say("\\echo @@ $number btree $mode", _for_table($template, 'b') . ';', "\\echo @@");
	if (!$opt{noplan})
	{
		$self->_say("\\echo @@ $number gpu plan", 'EXPLAIN (COSTS OFF) ' . _for_table($template, 'g') . ';',
			"\\echo @@");
	}
	$self->_say("\\echo @@ $number gpu $mode", _for_table($template, 'g') . ';', "\\echo @@");
	return;
}

sub _both_ams
{
	my ($self, $template) = @_;
	my $number = ++$self->{number};

	for my $pair ([ 'btree', 'b', 'btree' ], [ 'gpu', 'g', $self->{am} ])
	{
		(my $text = _for_table($template, $pair->[1])) =~ s/\{AM\}/$pair->[2]/;
		$text = _without_order($text) if $pair->[2] eq 'gpu_hash';
		$self->_say("\\echo @@ $number $pair->[0] set", "$text;", "\\echo @@");
	}
	return;
}

# The columns of an index that has no order
sub _without_order
{
	my ($text) = @_;
	return $text =~ s/ DESC\b| NULLS (?:FIRST|LAST)//gr;
}

1;
