#!/usr/bin/perl
#
# bytes_report.pl RAW MACHINE OUT: what bench/bytes measured, as a table on standard output and as JSON and
# Markdown in the folder OUT.
#
# RAW has lines of history, "as it is" or "loaded anew", side, round, value, unit; a side is btree, or an access
# method and a device.
use strict;
use warnings;
use JSON::PP;

my ($raw, $machine_file, $out) = @ARGV;
my (%bytes, @histories, @sides, %machine, %summary);

sub lines
{
	my ($file) = @_;
	open my $in, '<', $file or die "$file: $!\n";
	chomp(my @lines = <$in>);
	return @lines;
}

for (lines($raw))
{
	my ($history, $when, $side, undef, $value) = split /\t/;
	push @histories, $history unless grep { $_ eq $history } @histories;
	push @sides, $side unless grep { $_ eq $side } @sides;
	# Of several rounds the largest
	next if ($bytes{$history}{$side}{$when} // 0) > $value;
	$bytes{$history}{$side}{$when} = $value;
	$summary{$history}{$side}{ $when =~ tr/ /_/r } = $value + 0;
}
for (lines($machine_file))
{
	my ($name, $value) = split /\t/, $_, 2;
	$machine{$name} = $value =~ /^\d+$/ ? $value + 0 : $value =~ /^\{/ ? decode_json($value) : $value;
}
delete @machine{qw(rounds keys bulk access_method)};

# What it takes, and behind a slash after a load, if that differs by more than rounding
sub shown
{
	my ($cell) = @_;
	return '' unless $cell;
	my ($is, $anew) = map { sprintf '%.1f', $cell->{$_} } 'as it is', 'loaded anew';
	return abs($is - $anew) < 0.15 ? $is : "$is / $anew";
}

open my $md, '>', "$out/figures.md" or die "$out/figures.md: $!\n";
for my $to (*STDOUT, $md)
{
	print $to '| bytes an entry | ', join(' | ', map { $_ eq 'btree' ? 'btree (disk)' : $_ } @sides), " |\n|---|", '--:|' x @sides, "\n";
	print $to "| $_ | ", join(' | ', map { shown($_) } @{ $bytes{$_} }{@sides}), " |\n" for @histories;
	print $to "\n$machine{cpu}, $machine{cpus} CPUs, $machine{memory_mb} MB, $machine{system},\nPostgreSQL $machine{postgresql}, gpuds $machine{gpuds}; "
	  . "$machine{rows} rows, $machine{date}. Behind a slash: loaded anew\n(btree: after REINDEX), where that differs.\n";
}
close $md;

open my $js, '>', "$out/bytes.json" or die "$out/bytes.json: $!\n";
print $js JSON::PP->new->canonical->pretty->indent_length(2)->encode({ machine => \%machine, bytes => \%summary });
close $js;
