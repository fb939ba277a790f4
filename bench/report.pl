#!/usr/bin/perl
#
# report.pl RAW MACHINE OUT: medians of what bench/run or bench/gpu measured, as
# a table on standard output and as JSON, Markdown and, where gnuplot is found, SVG
# in the folder OUT.
#
# RAW has lines of section, item, side, round, value, unit; the sides are bt
# (btree), gp (gpu_btree) and plain (no index).  MACHINE has names and values.
use strict;
use warnings;
use JSON::PP;
use List::Util qw(min max);
use Text::Wrap qw(wrap);

$Text::Wrap::columns = 101;    # lines of up to 100

my ($raw, $machine_file, $out) = @ARGV;
my (%runs, %unit, %machine);
my $json = JSON::PP->new->canonical->pretty->indent_length(2);

open my $in, '<', $raw or die "$raw: $!\n";
while (<$in>)
{
	chomp;
	my ($section, $item, $side, $round, $value, $unit) = split /\t/;
	push @{ $runs{$section}{$item}{$side} }, $value + 0;
	$unit{$section}{$item} = $unit;
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
	return undef unless @sorted;
	return @sorted % 2 ? $sorted[ @sorted / 2 ] : ($sorted[ @sorted / 2 - 1 ] + $sorted[ @sorted / 2 ]) / 2;
}

sub runs_of
{
	my ($section, $item, $side) = @_;
	return () unless exists $runs{$section} && exists $runs{$section}{$item};
	return @{ $runs{$section}{$item}{$side} || [] };
}

# Median of an item on one side; of several items the smallest.
sub value
{
	my ($section, $side, @items) = @_;
	return min(grep { defined } map { median(runs_of($section, $_, $side)) } @items);
}

sub commas { my $n = shift; 1 while $n =~ s/^(\d+)(\d{3})/$1,$2/; return $n; }

sub number
{
	my $v = shift;
	return '0' if $v == 0;
	return $v >= 1000 ? commas(sprintf('%.0f', $v)) : sprintf($v >= 100 ? '%.0f' : $v >= 10 ? '%.1f' : '%.3g', $v);
}

my ($keys, $bulk, $rows) = map { commas($machine{$_}) } qw(keys bulk rows);
my @table;

# A line of the table.  kind "faster": time of btree / ours; "rate": ours / btree's; "part": ours / btree's, to be small;
# "below", "above": what counts is that ours is below or above the target.
sub line
{
	my ($work, $unit, $bt, $gp, $kind, $target) = @_;
	return unless defined $gp && ($kind =~ /^(below|above)$/ || defined $bt && $bt > 0);
	$gp = max($gp, 0);    # a difference within the noise
	my $ratio = !defined $bt ? undef : $kind eq 'faster' || $kind eq 'below' ? $bt / $gp : $gp / $bt;
	my $reached =
		!defined $target ? undef
	  : $kind eq 'below' ? $gp < $target
	  : $kind eq 'above' ? $gp > $target
	  : $kind eq 'part' ? $ratio <= $target
	  :                   $ratio >= $target;
	push @table,
	  {
		work => $work, unit => $unit, btree => $bt, gpu_btree => $gp, ratio => $ratio, kind => $kind,
		target => $target, reached => defined $reached ? ($reached ? JSON::PP::true : JSON::PP::false) : undef
	  };
}

sub less_plain
{
	my ($item, $side) = @_;
	my ($with, $without) = (value('insert', $side, $item), value('insert', 'plain', $item));
	return defined $with && defined $without ? $with - $without : undef;
}

line("`= ANY` of $keys keys, rows returned", 'ms', value('any', 'bt', "$machine{keys} index", "$machine{keys} bitmap"),
	value('any', 'gp', "$machine{keys} auto"), 'faster', 2.0);
line("index side alone of $keys keys (btree: index-only count)", 'ms', value('index_side', 'bt', 'count'),
	value('index_side', 'gp', 'bitmap'), 'faster', 8);
line("index side alone of $keys keys (btree: bitmap)", 'ms', value('index_side', 'bt', 'bitmap'),
	value('index_side', 'gp', 'bitmap'), 'faster');
line("prepared lookup by pgbench, $_ client" . ($_ > 1 ? 's' : ''), 'tps', value('lookup', 'bt', "$_ clients"),
	value('lookup', 'gp', "$_ clients"), 'rate', 0.9)
  for 1, 4;
line('range of 1 %, rows returned', 'ms', value('range', 'bt', 'range index', 'range bitmap'),
	value('range', 'gp', 'range auto'), 'faster', 1.2);
line('range of 1 %, rows counted (btree: index-only)', 'ms', value('range', 'bt', 'count index', 'count bitmap'),
	value('range', 'gp', 'count auto'), 'faster');
line('next 1,000 rows in key order', 'ms', value('range', 'bt', 'next 1000'), value('range', 'gp', 'next 1000'), 'faster');
for (['steady', ''], ['after checkpoint', ', right after a checkpoint'])
{
	my ($item, $words) = @$_;
	line("INSERT ... SELECT of $bulk rows$words, index tax", 'ms', less_plain($item, 'bt'), less_plain($item, 'gp'),
		'part', 0.25);
	line("WAL of its index entries$words", 'MB', map({ my $v = less_plain("$item wal", $_); defined $v ? $v / 1e6 : undef }
			'bt', 'gp'), 'part', 0.4);
	line("WAL of it in all$words", 'MB', map({ my $v = value('insert', $_, "$item wal"); defined $v ? $v / 1e6 : undef }
			'bt', 'gp'), 'part');
}
{
	my @both = map { my ($tax, $next) = (less_plain('steady', $_), value('insert', $_, 'next query'));
		defined $tax && defined $next ? $tax + $next : undef } qw(bt gp);
	line('index tax and the next query, which catches up', 'ms', @both, 'part');
}
line("single-row transactions, $_ client" . ($_ > 1 ? 's' : ''), 'tps', value('single_row', 'bt', "$_ clients"),
	value('single_row', 'gp', "$_ clients"), 'rate', 1.0)
  for 1, 4;
line('CREATE INDEX', 'ms', value('build', 'bt', 'CREATE INDEX'), value('build', 'gp', 'CREATE INDEX'), 'faster', 1.5);
line('VACUUM after deleting 20 %', 'ms', value('vacuum', 'bt', 'VACUUM'), value('vacuum', 'gp', 'VACUUM'), 'faster', 1.0);
line('size on disk', 'MB', map({ my $v = value('build', $_, 'size'); defined $v ? $v / 1e6 : undef } 'bt', 'gp'),
	'part', 0.85);

# bench/gpu
line('one-key lookup in the executor, median', 'us', map({ value('round_trip', $_, 'median') } 'bt', 'gp'), 'below', 25);
line('one-key lookup in the executor, 99 %', 'us', map({ value('round_trip', $_, 'p99') } 'bt', 'gp'), 'faster');
line('one-key lookup in a nested loop, mean', 'us', map({ value('round_trip', $_, 'nested loop') } 'bt', 'gp'), 'faster');
line("prepared lookup by pgbench, $_ clients", 'tps', value('gpu_lookup', 'bt', "$_ clients"),
	value('gpu_lookup', 'gp', "$_ clients"), 'rate', 0.6)
  for 16, 64;
line("scans that go together, $_ clients", '', undef, value('gpu_lookup', 'gp', "$_ clients, scans a launch"), 'above',
	$_ == 64 ? 4 : undef)
  for 16, 64;
line("`= ANY` of $keys keys, rows returned", 'ms', value('gpu_any', 'bt', 'index', 'bitmap'), value('gpu_any', 'gp', 'auto'),
	'faster', 2.5);
line("index side alone of $keys keys (bitmap)", 'ms', map({ value('gpu_index_side', $_, 'bitmap') } 'bt', 'gp'), 'faster', 30);
line("index side alone of $keys keys (btree: index-only count)", 'ms', value('gpu_index_side', 'bt', 'count'),
	value('gpu_index_side', 'gp', 'bitmap'), 'faster');
line('CREATE INDEX, 8 workers', 'ms', map({ value('gpu_build', $_, 'CREATE INDEX') } 'bt', 'gp'), 'faster', 2.5);
line("load of $rows entries after a restart", 'ms', undef, value('gpu_load', 'gp', 'load'), 'below', 1000);

my %more;
my ($cold, $cold_bt) = (value('restart', 'gp', 'first'), value('restart', 'bt', 'first'));
if (defined $cold)
{
	$more{load} = {
		first_query_ms => $cold, btree_first_query_ms => $cold_bt, ns_per_entry => ($cold - $cold_bt) * 1e6 / $machine{rows},
		target_ns_per_entry => 100
	};
}
my $memory = value('memory', 'gp', 'structure');
$more{memory} = { bytes => $memory, bytes_per_entry => $memory / $machine{rows} } if defined $memory;
my @sizes = sort { $a <=> $b } map { /^(\d+) index$/ ? $1 : () } keys %{ $runs{break_even} || {} };
for my $n (@sizes)
{
	my %point = (keys => $n);
	for my $side (qw(bt gp))
	{
		$point{ $side . "_$_" } = value('break_even', $side, "$n $_") for qw(index bitmap);
		$point{$side} = min(@point{ $side . '_index', $side . '_bitmap' });
	}
	push @{ $more{break_even}{points} }, \%point;
}
if (@sizes)
{
	# The size from which on gpu_btree is always the faster one.
	for my $point (reverse @{ $more{break_even}{points} })
	{
		last if $point->{gp} > $point->{bt};
		$more{break_even}{keys} = $point->{keys};
	}
}

sub write_file
{
	my ($name, $text) = @_;
	open my $fh, '>', "$out/$name" or die "$out/$name: $!\n";
	print $fh $text;
	close $fh or die "$out/$name: $!\n";
}

for my $section (sort keys %runs)
{
	my %items;
	for my $item (keys %{ $runs{$section} })
	{
		for my $side (keys %{ $runs{$section}{$item} })
		{
			my $values = $runs{$section}{$item}{$side};
			$items{$item}{ { bt => 'btree', gp => 'gpu_btree', plain => 'no index' }->{$side} } =
			  { median => median(@$values), runs => $values, unit => $unit{$section}{$item} };
		}
	}
	write_file("$section.json", $json->encode({ section => $section, items => \%items }));
}
write_file('summary.json', $json->encode({ machine => \%machine, figures => \@table, %more }));

# The table, as Markdown that reads as plain text too.
my @lines = ([ 'work', 'btree', $machine{access_method}, 'ratio', 'target', 'reached' ]);
for (@table)
{
	my $sign = $_->{kind} eq 'part' ? 'at most' : 'at least';
	my $target = !defined $_->{target} ? '' : $_->{kind} eq 'below' ? sprintf('under %d %s', @$_{qw(target unit)})
	  : $_->{kind} eq 'above' ? sprintf('above %d', $_->{target})
	  : sprintf('%s %.3gx', $sign, $_->{target});
	push @lines,
	  [
		$_->{work}, defined $_->{btree} ? number($_->{btree}) . " $_->{unit}" : '', number($_->{gpu_btree}) . " $_->{unit}",
		defined $_->{ratio} ? sprintf('%.2fx', $_->{ratio}) : '', $target,
		defined $_->{reached} ? ($_->{reached} ? 'yes' : 'no') : ''
	  ];
}
if ($more{load})
{
	push @lines,
	  [
		'first query after a restart, more than btree\'s', number($cold_bt) . ' ms', number($cold) . ' ms',
		sprintf('%.0f ns an entry', $more{load}{ns_per_entry}), 'under 100 ns', $more{load}{ns_per_entry} < 100 ? 'yes' : 'no'
	  ];
}
my @width = map { my $c = $_; max(map { length $_->[$c] } @lines) } 0 .. 5;
my $text = '';
for my $i (0 .. $#lines)
{
	my @cells = map { sprintf($_ >= 1 && $_ <= 3 ? '%*s' : '%-*s', $width[$_], $lines[$i][$_]) } 0 .. 5;
	$text .= '| ' . join(' | ', @cells) . " |\n";
	$text .= '|' . join('|', map { '-' x ($width[$_] + 1) . ($_ >= 1 && $_ <= 3 ? ':' : '-') } 0 .. 5) . "|\n" if $i == 0;
}
my $foot = "$machine{cpu}, $machine{cpus} CPUs, $machine{memory_mb} MB, $machine{system}, PostgreSQL $machine{postgresql}; "
  . "$rows rows, medians of $machine{rounds} alternating runs, $machine{date}.";
if (@sizes)
{
	$foot .= defined $more{break_even}{keys}
	  ? " `= ANY`: $machine{access_method} is the faster one from $more{break_even}{keys} keys on."
	  : " `= ANY`: btree is the faster one at every size up to $sizes[-1] keys.";
}
$foot .= sprintf(" The structure in memory takes %.1f bytes an entry.", $more{memory}{bytes_per_entry}) if $more{memory};
$foot = wrap('', '', "$foot\n");
write_file('figures.md', "$text\n$foot");
print "\n$text\n$foot\nWritten to $out.\n";

# Plots.
sub plot
{
	my ($script, %data) = @_;
	return unless grep { -x "$_/gnuplot" } split /:/, $ENV{PATH};
	my $blocks = join '', map { "\$$_ << EOD\n$data{$_}EOD\n" } sort keys %data;
	open my $gnuplot, '|-', 'gnuplot' or die "gnuplot: $!\n";
	print $gnuplot "set encoding utf8\n$blocks$script";
	close $gnuplot or die "gnuplot failed\n";
}

if (@sizes)
{
	my $data = '';
	for (@{ $more{break_even}{points} })
	{
		$data .= join(' ', $_->{keys}, map { $_ * 1000 } @$_{qw(bt_index bt_bitmap gp_index gp_bitmap)}) . "\n";
	}
	plot(<<END, data => $data);
set terminal svg size 760,480 font "sans,12" background "white"
set output "$out/break_even.svg"
set title "sum(v) where k = ANY(n keys), $rows rows, warm"
set xlabel "keys n"
set ylabel "microseconds a key"
set logscale xy
set format x "10^{%L}"
set key top right
set grid
plot \$data using 1:(\$2/\$1) with linespoints lc rgb "#9aa5b1" dt 2 pt 7 ps 0.5 title "btree, index scan", \\
     \$data using 1:(\$3/\$1) with linespoints lc rgb "#52606d" pt 7 ps 0.5 title "btree, bitmap scan", \\
     \$data using 1:(\$4/\$1) with linespoints lc rgb "#8fcb9b" dt 2 pt 7 ps 0.5 title "gpu\\\\_btree, index scan", \\
     \$data using 1:(\$5/\$1) with linespoints lc rgb "#2f8f4e" pt 7 ps 0.5 title "gpu\\\\_btree, bitmap scan"
END
}
if (grep { defined $_->{ratio} } @table)
{
	my ($data, $n) = ('', 0);
	for (reverse grep { defined $_->{ratio} } @table)
	{
		my $gain = $_->{kind} eq 'part' ? 1 / max($_->{ratio}, 0.01) : $_->{ratio};
		my $goal = !defined $_->{target} || $_->{kind} =~ /^(below|above)$/ ? 'NaN' : $_->{kind} eq 'part' ? 1 / $_->{target} : $_->{target};
		(my $label = $_->{work}) =~ s/[`"]//g;
		$data .= sprintf("%d %.4f %s \"%s\"\n", ++$n, $gain, $goal, $label);
	}
	my $height = 110 + 26 * $n;
	plot(<<END, data => $data);
set terminal svg size 1060,$height font "sans,12" background "white" noenhanced
set output "$out/figures.svg"
set title "$machine{access_method} against btree: times better (red: the target)"
set logscale x
set yrange [0.3:$n.7]
set rmargin 4
set xrange [0.1:*]
set xtics (0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 100)
set grid x
set arrow from 1,0.3 to 1,$n.7 nohead lc rgb "#000000"
unset key
set boxwidth 0.6
plot \$data using (1):1:(1):2:(\$1-0.3):(\$1+0.3):yticlabels(4) with boxxyerror fs solid 0.8 lc rgb "#2f8f4e", \\
     \$data using 3:1:(\$3*0.985):(\$3*1.015):(\$1-0.4):(\$1+0.4) with boxxyerror fs solid noborder lc rgb "#c53030"
END
}
