#!/usr/bin/perl
#
# bytes_report.pl DIR: what bench/bytes measured, of what it left in DIR, as a table on standard output, and
# as bytes.md and bytes.json in DIR.
#
# Lines of raw.tsv have a history, "as it is" or "loaded anew", and a side: btree, or an access method and a
# device.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use List::Util qw(max);
use Report;

my ($dir) = @ARGV;
my $machine = read_machine($dir);
my ($runs, @items) = read_runs($dir);
my (@histories, @sides, %bytes, %seen);

delete @$machine{qw(rounds keys bulk access_method)};
for (@items)
{
	my ($history, $when) = @$_;

	push @histories, $history unless $seen{$history}++;
	# Of several rounds the largest
	$bytes{$history}{$_}{ $when =~ tr/ /_/r } = max(@{ $runs->{$history}{$when}{$_}{runs} })
	  for keys %{ $runs->{$history}{$when} };
}
for (lines("$dir/raw.tsv"))
{
	my $side = (split /\t/)[2];
	push @sides, $side unless $seen{"\t$side"}++;
}

# What it takes, and behind a slash after a load, if that differs by more than rounding
sub shown
{
	my ($cell) = @_;
	return '' unless $cell;
	my ($is, $anew) = map { sprintf '%.1f', $cell->{$_} } qw(as_it_is loaded_anew);
	return abs($is - $anew) < 0.15 ? $is : "$is / $anew";
}

my @rows = ([ 'bytes an entry', map { $_ eq 'btree' ? 'btree (disk)' : $_ } @sides ]);
push @rows, [ $_, map { shown($_) } @{ $bytes{$_} }{@sides} ] for @histories;
my $words =
  commas($machine->{rows}) . ' rows; behind a slash: loaded anew (btree: after REINDEX), where that differs';
publish(
	$dir, 'bytes',
	table('l' . 'r' x @sides, @rows) . "\n" . foot($machine, $words),
	{ machine => $machine, bytes => \%bytes }
);
