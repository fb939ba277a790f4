#!/usr/bin/perl
#
# dashboards_report.pl DIR: what bench/dashboards measured, of what it left in DIR, as a table on standard
# output, and as dashboards.md, dashboards.json and the plot dashboards.svg in DIR.
#
# Items of raw.tsv are shapes, which shapes.tsv has the titles of.  The sides are bt (btree), gp (the other
# access method), and seq (parallel sequential scans).
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use List::Util qw(min);
use Report;

my ($dir) = @ARGV;
my $machine = read_machine($dir);
my ($runs) = read_runs($dir);
my $am = $machine->{access_method};

my @lines;
for (lines("$dir/shapes.tsv"))
{
	my ($name, $title) = split /\t/;
	my %ms = map { $_ => $runs->{shapes}{$name}{$_}{median} } qw(bt gp seq);

	next unless defined $ms{gp};
	push @lines,
	  {
		shape => $name,
		title => $title,
		node => $runs->{plans}{$name}{gp}{plan},
		%ms,
		to_btree => $ms{bt} / $ms{gp},
		to_best => min($ms{bt}, $ms{seq}) / $ms{gp}
	  };
}

my $text = table(
	'llrrrrr',
	[ 'shape', "$am by", 'btree', 'sequential', $am, 'to btree', 'to the better' ],
	map {
		[
			$_->{title}, $_->{node},
			map({ figure($_, 'ms') } @$_{qw(bt seq gp)}),
			map { figure($_) . 'x' } @$_{qw(to_btree to_best)}
		]
	} @lines
) . "\n";
$text .= foot($machine,
	commas($machine->{rows})
	  . " rows, device $machine->{device}, medians of $machine->{rounds} alternating rounds");
publish($dir, 'dashboards', $text, { machine => $machine, shapes => \@lines });

plot_bars(
	"$dir/dashboards.svg",
	{
		title => "$am, btree and sequential scans on dashboards",
		x => 'milliseconds',
		log => 1,
		series => [ [ btree => $colour{bt} ], [ sequential => $colour{hash} ], [ $am => $colour{gp} ] ],
		groups => [ map { [ $_->{title}, undef, @$_{qw(bt seq gp)} ] } @lines ]
	}) if @lines;
