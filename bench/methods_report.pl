#!/usr/bin/perl
#
# methods_report.pl DIR: what bench/methods measured, of what it left in DIR, as a table on standard output,
# and as methods.md, methods.json and methods.svg in DIR.
#
# A section is a type of keys, the sides are the access methods, and plain where there is no index.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Report;

my ($dir) = @ARGV;
my $machine = read_machine($dir);
my ($runs, @items) = read_runs($dir);
my @methods = split /,/, delete $machine->{access_method};
my @types = grep { $runs->{$_} } qw(text point bigint);

# A row is the medians of an item by access methods.  The first of several runs is not counted.
my @rows;
for (@items)
{
	my ($type, $item) = @$_;
	my $sides = $runs->{$type}{$item};
	my %row = (work => @types > 1 ? "$item, $type" : $item, type => $type, unit => (values %$sides)[0]{unit});
	my %median = map {
		my @all = @{ $sides->{$_}{runs} };
		($_ => median(@all > 1 ? @all[ 1 .. $#all ] : @all))
	} keys %$sides;
	my $plain = delete $median{plain} // 0;

	$median{$_} -= $plain for keys %median;
	push @rows, { %row, %median };
}

my @cells = ([ 'work', @methods ]);
for my $row (@rows)
{
	push @cells, [ $row->{work}, map { figure($row->{$_}, $row->{unit}) } @methods ];
}
my $clock = $machine->{clock} eq 'cpu' ? 'time on a processor' : 'time';
my $words = commas($machine->{rows}) . " rows, $clock, medians of $machine->{rounds} rounds";
publish(
	$dir, 'methods',
	table('l' . 'r' x @methods, @cells) . "\n" . foot($machine, $words),
	{ machine => $machine, figures => \@rows }
);
my @timed = grep { $_->{unit} eq 'ms' || $_->{unit} eq 'us' } @rows;
plot_bars(
	"$dir/methods.svg",
	{
		title => 'milliseconds, or microseconds (us)',
		log => 1,
		series => [ map { [ $_, $colour{$_} ] } @methods ],
		groups => [
			map {
				my $row = $_;
				[
					$row->{work} . ($row->{unit} eq 'us' ? ' (us)' : ''),
					undef,
					map { defined $row->{$_} && $row->{$_} > 0 ? $row->{$_} : undef } @methods
				]
			} @timed
		]
	}
) if @timed;
