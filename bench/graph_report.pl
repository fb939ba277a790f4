#!/usr/bin/perl
#
# graph_report.pl DIR: what bench/graph measured, of what it left in DIR, as a table on standard output, and
# as graph.md, graph.json and graph.svg in DIR.
#
# A section is a graph, and an item a question about it; the sides are gp (gpuds), counted (the rows of its
# answer), beside (the same while edges are written), cpu (gpuds without the GPU), bt (SQL over btree) and
# pgrouting.  A value of the unit "differences" says how many rows a side's answer and that of gp have not in
# common.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Report;

my ($dir) = @ARGV;
my $machine = read_machine($dir);
my (%ms, %differences, @items, %seen);

for (lines("$dir/raw.tsv"))
{
	my ($graph, $question, $side, undef, $value, $unit) = split /\t/;

	push @items, [ $graph, $question ] unless $seen{$graph}{$question}++;
	if ($unit eq 'differences') { $differences{$graph}{$question}{$side} = $value; }
	else { push @{ $ms{$graph}{$question}{$side} }, $value; }
}
delete @$machine{qw(keys bulk)};

my @rows;
for (@items)
{
	my ($graph, $question) = @$_;
	my %median = map { ($_ => median(@{ $ms{$graph}{$question}{$_} })) } keys %{ $ms{$graph}{$question} };
	my @others = values %{ $differences{$graph}{$question} // {} };

	push @rows,
	  {
		graph => $graph,
		question => $question,
		%median,
		$median{bt} ? (ratio => $median{bt} / $median{gp}) : (),
		same => @others ? bool(!grep { $_ > 0 } @others) : undef
	  };
}

my %title = (
	gp => 'gpuds',
	counted => 'counted',
	beside => 'beside writers',
	cpu => 'gpuds, CPU',
	bt => 'SQL over btree',
	pgrouting => 'pgRouting'
);
my %plotted = (
	%colour,
	counted => $colour{hash},
	beside => $colour{target},
	cpu => $colour{cuda},
	pgrouting => $colour{auto}
);
my @sides = grep { my $side = $_; grep { defined $_->{$side} } @rows } qw(gp counted beside cpu bt pgrouting);
my @cells = ([ 'graph', 'question', @title{@sides}, 'ratio', 'same answer' ]);
for my $row (@rows)
{
	push @cells,
	  [
		@$row{qw(graph question)},
		map({ $_ eq 'bt' && !defined $row->{bt} ? 'too long' : figure($row->{$_}, 'ms') } @sides),
		figure($row->{ratio}),
		defined $row->{same} ? $row->{same} ? 'yes' : 'NO' : ''
	  ];
}
my $clock = $machine->{clock} eq 'cpu' ? 'time on a processor' : 'time';
my $words = "$clock, medians of up to $machine->{rounds} rounds";
$words = commas($machine->{rows}) . " edges in the R-MAT graph, $words"
  if grep { $_->{graph} eq 'rmat' } @rows;
publish(
	$dir, 'graph',
	table('ll' . 'r' x (@sides + 1) . 'l', @cells) . "\n" . foot($machine, $words),
	{ machine => $machine, figures => \@rows }
);
plot_bars(
	"$dir/graph.svg",
	{
		title => 'milliseconds',
		log => 1,
		series => [ map { [ $title{$_}, $plotted{$_} ] } @sides ],
		groups => [ map { [ "$_->{question}, $_->{graph}", undef, @$_{@sides} ] } @rows ]
	}
);
