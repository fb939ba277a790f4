#!/usr/bin/perl
#
# auto_report.pl RAW MACHINE OUT: medians of what bench/auto measured, as a table on standard
# output and as JSON, Markdown and, where gnuplot is found, SVG in the folder OUT.
#
# RAW has lines of work, keys, device, round, milliseconds, unit; those of the section "data"
# describe the table.  MACHINE has names and values.
use strict;
use warnings;
use JSON::PP;
use List::Util qw(max min);
use Text::Wrap qw(wrap);

$Text::Wrap::columns = 101;    # lines of up to 100

my ($raw, $machine_file, $out) = @ARGV;
my (%runs, %data, %machine);
my $json = JSON::PP->new->canonical->pretty->indent_length(2);

open my $in, '<', $raw or die "$raw: $!\n";
while (<$in>)
{
	chomp;
	my ($work, $n, $device, $round, $value, $unit) = split /\t/;
	if ($work eq 'data')
	{
		$data{$n} = $unit eq 'text' ? $value : $value + 0;
		next;
	}
	push @{ $runs{$work}{$n}{$device}{runs} }, $value + 0;
}
close $in;
open $in, '<', $machine_file or die "$machine_file: $!\n";
while (<$in>)
{
	chomp;
	my ($name, $value) = split /\t/, $_, 2;
	$machine{$name} = $value =~ /^\d+$/ ? $value + 0 : $value =~ /^\{/ ? decode_json($value) : $value;
}
close $in;

sub median
{
	my @sorted = sort { $a <=> $b } @_;
	return @sorted % 2 ? $sorted[ @sorted / 2 ] : ($sorted[ @sorted / 2 - 1 ] + $sorted[ @sorted / 2 ]) / 2;
}

for my $side (map { values %$_ } map { values %$_ } values %runs)
{
	$side->{median} = median(@{ $side->{runs} });
}

my @works = ([ 'count', 'count(*)' ], [ 'rows', 'rows with a column of the table' ]);
my @ns = sort { $a <=> $b } keys %{ $runs{count} };
my @devices = grep { exists $runs{count}{ $ns[0] }{$_} } qw(cpu cuda auto);

sub commas { my $n = shift; 1 while $n =~ s/^(\d+)(\d{3})/$1,$2/; return $n; }
sub ms { my $v = shift; return defined $v ? sprintf($v >= 100 ? '%.0f ms' : $v >= 10 ? '%.1f ms' : '%.3g ms', $v) : ''; }
sub percent { my $share = shift; return sprintf('%.0f %%', 100 * $share) =~ s/^-0 /0 /r; }
sub time_of { my ($work, $n, $device) = @_; my $side = $runs{$work}{$n}{$device}; return $side ? $side->{median} : undef; }

# A row of the table: the times, the better device's, and what auto takes longer than it, of the better one's time.
my @rows;
for my $work (@works)
{
	for my $n (@ns)
	{
		my %time = map { ($_ => time_of($work->[0], $n, $_)) } @devices;
		my @alone = grep { defined } @time{qw(cpu cuda)};
		my $best = @alone == 2 ? min(@alone) : undef;

		push @rows,
		  {
			work => $work->[0], words => $work->[1], keys => $n + 0, ms => \%time,
			better => defined $best ? ($time{cpu} <= $time{cuda} ? 'cpu' : 'cuda') : undef,
			auto_loses => defined $best && defined $time{auto} ? $time{auto} / $best - 1 : undef
		  };
	}
}

# Where the GPU becomes the better device for good, between two numbers of keys: straight lines on logarithmic scales
# meet there.  Undefined: nowhere among those that were measured.
sub meeting
{
	my ($work) = @_;
	my @mine = grep { $_->{work} eq $work && defined $_->{better} } @rows;
	my $last = -1;

	for my $i (0 .. $#mine) { $last = $i if $mine[$i]{better} eq 'cpu'; }
	return undef if !@mine || $last == $#mine;
	return { from => 1, to => $mine[0]{keys}, about => $mine[0]{keys} } if $last < 0;
	my ($before, $after) = @mine[ $last, $last + 1 ];
	my ($d0, $d1) = map { log($_->{ms}{cuda} / $_->{ms}{cpu}) } $before, $after;
	my $about = exp(log($before->{keys}) + log($after->{keys} / $before->{keys}) * $d0 / ($d0 - $d1));
	return { from => $before->{keys}, to => $after->{keys}, about => int($about + 0.5) };
}

sub write_file
{
	my ($name, $text) = @_;
	open my $fh, '>', "$out/$name" or die "$out/$name: $!\n";
	print $fh $text;
	close $fh or die "$out/$name: $!\n";
	return;
}

my %meets = map { ($_->[0] => meeting($_->[0])) } @works;
write_file("$_.json", $json->encode({ work => $_, keys => $runs{$_} })) for keys %runs;
write_file('summary.json', $json->encode({ machine => \%machine, data => \%data, meets => \%meets, times => \@rows }));

# Markdown that reads as plain text too.
my @headings = ('work', 'keys', @devices);
push @headings, 'better' if 2 == grep { $_ ne 'auto' } @devices;
push @headings, 'auto loses' if @devices == 3;
my @cells = (\@headings);
for (@rows)
{
	my $row = $_;
	my @row = ($row->{words}, commas($row->{keys}), map { ms($row->{ms}{$_}) } @devices);
	push @row, $row->{better} if defined $row->{better};
	push @row, percent($row->{auto_loses}) if defined $row->{auto_loses};
	push @cells, \@row;
}
my @columns = 0 .. $#headings;
my %left = map { ($_ => 1) } grep { $headings[$_] =~ /^(?:work|better)$/ } @columns;
my @width = map { my $c = $_; max(map { length $_->[$c] } @cells) } @columns;
my $text = '';
for my $i (0 .. $#cells)
{
	$text .= '| ' . join(' | ', map { sprintf($left{$_} ? '%-*s' : '%*s', $width[$_], $cells[$i][$_]) } @columns) . " |\n";
	$text .= '|' . join('|', map { '-' x ($width[$_] + 1) . ($left{$_} ? '-' : ':') } @columns) . "|\n" if $i == 0;
}

my @said;
for my $work (grep { defined time_of($_->[0], $ns[0], 'cpu') && defined time_of($_->[0], $ns[0], 'cuda') } @works)
{
	my $meets = $meets{ $work->[0] };
	my @lost = sort { $b->{auto_loses} <=> $a->{auto_loses} } grep { $_->{work} eq $work->[0] && defined $_->{auto_loses} } @rows;

	push @said, "$work->[1]: " . (!$meets ? 'the CPU device is the faster one for all these numbers of keys.'
		: $meets->{to} == $meets->{about} && $meets->{from} == 1 ? 'the GPU is the faster one from the first key on.'
		: 'the devices meet at about ' . commas($meets->{about}) . ' keys, between ' . commas($meets->{from}) . ' and ' . commas($meets->{to}) . '.')
	  . (@lost ? sprintf(' auto loses most at %s keys: %s, %s.', commas($lost[0]{keys}), percent($lost[0]{auto_loses}),
		  ms(abs($lost[0]{ms}{auto} - $lost[0]{ms}{ $lost[0]{better} }))) : '');
}
my $foot = wrap('', '', "$machine{cpu}, $machine{cpus} CPUs, $machine{memory_mb} MB, $machine{system}, PostgreSQL $machine{postgresql}; "
  . commas($data{rows}) . " rows with $data{shape} keys; medians of $machine{rounds} rounds, $machine{date}.\n");
my $said = join '', map { wrap('', '', "$_\n") . "\n" } @said;
write_file('figures.md', "$text\n$said$foot");
print "\n$text\n$said$foot\nWritten to $out.\n";

# Plot: a panel for each work, times against keys
my %colour = (cpu => '#2f8f4e', auto => '#2b6cb0', cuda => '#b7791f');
my %style = (cpu => 'lw 2', cuda => 'lw 2', auto => 'lw 2 dt 2');

sub panel
{
	my ($work) = @_;
	my $name = $work->[0];
	my $block = join '', map { my $n = $_; join(' ', $n, map { time_of($name, $n, $_) // 'NaN' } @devices) . "\n" } @ns;
	my @plots = map {
		"\$$name using 1:" . ($_ + 2) . " with linespoints pt 7 ps 0.5 $style{$devices[$_]} lc rgb \"$colour{$devices[$_]}\" title \"$devices[$_]\""
	} 0 .. $#devices;
	return "\$$name << EOD\n${block}EOD\nset title \"$work->[1]\"\nplot " . join(", \\\n  ", @plots) . "\n";
}

if (grep { -x "$_/gnuplot" } split /:/, $ENV{PATH})
{
	open my $gnuplot, '|-', 'gnuplot' or die "gnuplot: $!\n";
	print $gnuplot 'set encoding utf8
set terminal svg size 1000,840 font "sans,12" background "white" noenhanced
set output "' . "$out/auto.svg" . '"
set multiplot layout 2,1
set grid
set key top left
set logscale xy
set format x "%.0f"
set xlabel "keys in = ANY"
set ylabel "milliseconds"
', (map { panel($_) } @works), "unset multiplot\n";
	close $gnuplot or die "gnuplot failed\n";
}
