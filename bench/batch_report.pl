#!/usr/bin/perl
#
# batch_report.pl RAW MACHINE OUT: medians of what bench/batch measured, as a table on
# standard output and as JSON, Markdown and, where gnuplot is found, SVG in the folder
# OUT.
#
# RAW has lines of section, item, side, round, value, unit.  The sides are bt (btree)
# and the devices of gpu_btree; an item is "NAME WORKERS".  Lines with the unit "plan"
# have a plan's node, those of the section "data" describe the tables.  MACHINE has
# names and values.
use strict;
use warnings;
use JSON::PP;
use List::Util qw(max);
use Text::Wrap qw(wrap);

$Text::Wrap::columns = 101;    # lines of up to 100

my ($raw, $machine_file, $out) = @ARGV;
my (%runs, %plan, %data, %machine, %seen, @workers);
my $json = JSON::PP->new->canonical->pretty->indent_length(2);

open my $in, '<', $raw or die "$raw: $!\n";
while (<$in>)
{
	chomp;
	my ($section, $item, $side, $round, $value, $unit) = split /\t/;
	if ($section eq 'data')
	{
		$data{"$item $side"} = $unit eq 'text' ? $value : $value + 0;
		next;
	}
	if ($unit eq 'plan')
	{
		$plan{$section}{$item}{$side} = $value;
		next;
	}
	push @{ $runs{$section}{$item}{$side}{runs} }, $value + 0;
	$runs{$section}{$item}{$side}{unit} = $unit;
	$seen{$1} = 1 if $item =~ / (\d+)$/;
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

@workers = sort { $a <=> $b } keys %seen;
my @devices = grep { my $d = $_; grep { exists $_->{$d} } map { values %$_ } values %runs } qw(cpu auto cuda);

sub median
{
	my @sorted = sort { $a <=> $b } @_;
	return @sorted % 2 ? $sorted[ @sorted / 2 ] : ($sorted[ @sorted / 2 - 1 ] + $sorted[ @sorted / 2 ]) / 2;
}

for my $section (keys %runs)
{
	for my $item (keys %{ $runs{$section} })
	{
		for my $side (keys %{ $runs{$section}{$item} })
		{
			my $side_runs = $runs{$section}{$item}{$side};

			$side_runs->{median} = median(@{ $side_runs->{runs} });
			$side_runs->{plan} = $plan{$section}{$item}{$side};
		}
	}
}

sub commas { my $n = shift; 1 while $n =~ s/^(\d+)(\d{3})/$1,$2/; return $n; }

sub number
{
	my ($v, $unit) = @_;
	my $text = $v >= 1000 ? commas(sprintf('%.0f', $v)) : sprintf($v >= 100 ? '%.0f' : $v >= 10 ? '%.1f' : '%.3g', $v);
	return "$text $unit";
}

# The works, in the order of the table: section, name, words, a short title for the plot
my $keys = commas($machine{keys});
my @works = (
	[ 'any', 'any_count', "count(*) of `= ANY` of $keys keys", 'count = ANY' ],
	[ 'any', 'any_sum', "sum(v) of `= ANY` of $keys keys", 'sum = ANY' ],
	[ 'any', 'any_contains', "which of $keys keys are there, as an array", 'contains' ],
	[ 'semi', 'exists', 'outer rows with a match (EXISTS)', 'EXISTS' ],
	[ 'semi', 'not_exists', 'outer rows without one (NOT EXISTS)', 'NOT EXISTS' ],
	[ 'join', 'inner', 'join, sum(t.v)', 'join' ],
	[ 'join', 'left', 'left join, count(t.v)', 'left join' ],
	[ 'range', 'range_1', 'count(*) of 1 % of the keys', 'count 1 %' ],
	[ 'range', 'range_10', 'count(*) of 10 % of the keys', 'count 10 %' ],
	[ 'range', 'range_100', 'count(*) without WHERE', 'count all' ],
	[ 'semi', 'in_outer', 'count(*) of `k IN (SELECT k FROM o)`', 'IN (SELECT)' ],
	[ 'dedup', 'dedup', 'INSERT of outer rows without a match', 'dedup' ],
	[ 'sums', 'sums_any', "sum(v), included, of `= ANY` of $keys keys", 'sum = ANY, incl.' ],
	[ 'sums', 'sums_10', 'sum(v), included, of 10 % of the keys', 'sum 10 %' ],
	[ 'sums', 'sums_100', 'sum(v), included, of all keys', 'sum all' ],
	[ 'sums', 'sums_days', 'count(*) and sum(v) by date_trunc of a timestamptz', 'by days' ],
	[ 'wide', 'wide_any', "sum(v), included second, of `= ANY` of $keys keys", 'sum = ANY, 2nd' ],
	[ 'wide', 'wide_10', 'sum(v), included second, of 10 % of the keys', 'sum 10 %, 2nd' ],
	[ 'wide', 'wide_100', 'sum(v), included second, of all keys', 'sum all, 2nd' ],
	[ 'wide', 'wide_join', 'join, sum(t.v), included second', 'join, 2nd' ],
	[ 'lookup', 'one_row', 'prepared lookup, 1 client', 'lookup' ],
	[ 'lookup', 'one_count', 'prepared count(*) of one key, 1 client', 'count of one' ]);

# What we set out to reach: lookups, which have no batches, are as in bench/run and bench/gpu.
sub target
{
	my ($section, $device) = @_;
	return $section ne 'lookup' ? undef : $device eq 'cuda' ? 0.6 : 0.9;
}

# The rows of the table.  The ratio is above 1 where gpu_btree is faster.
my @rows;
for my $work (@works)
{
	my ($section, $name, $words) = @$work;

	for my $n (@workers)
	{
		my $sides = ($runs{$section} || {})->{"$name $n"} || {};
		my $btree = $sides->{bt};

		next unless $btree;
		for my $device (@devices)
		{
			my $ours = $sides->{$device} or next;
			my $rate = $btree->{unit} eq 'tps';
			my $ratio = $rate ? $ours->{median} / $btree->{median} : $btree->{median} / $ours->{median};
			my $target = target($section, $device);

			push @rows,
			  {
				work => $words, name => $name, workers => $n + 0, device => $device, unit => $btree->{unit},
				btree => $btree->{median}, gpu_btree => $ours->{median}, ratio => $ratio, btree_plan => $btree->{plan},
				gpu_btree_plan => $ours->{plan}, target => $target,
				reached => defined $target ? ($ratio >= $target ? JSON::PP::true : JSON::PP::false) : undef
			  };
		}
	}
}

sub write_file
{
	my ($name, $text) = @_;
	open my $fh, '>', "$out/$name" or die "$out/$name: $!\n";
	print $fh $text;
	close $fh or die "$out/$name: $!\n";
	return;
}

write_file("$_.json", $json->encode({ section => $_, items => $runs{$_} })) for keys %runs;
write_file('summary.json', $json->encode({ machine => \%machine, data => \%data, against_btree => \@rows }));

# Markdown that reads as plain text too.
sub markdown
{
	my @cells =
	  ([ 'work', 'workers', 'device', 'btree', $machine{access_method}, 'ratio', 'plan of btree', "plan of $machine{access_method}", 'target', 'reached' ]);
	my $text = '';

	for (@_)
	{
		push @cells,
		  [
			$_->{work}, $_->{workers}, $_->{device}, number($_->{btree}, $_->{unit}), number($_->{gpu_btree}, $_->{unit}),
			sprintf('%.2fx', $_->{ratio}), $_->{btree_plan} // '', $_->{gpu_btree_plan} // '',
			defined $_->{target} ? sprintf('at least %.3gx', $_->{target}) : '',
			defined $_->{reached} ? ($_->{reached} ? 'yes' : 'no') : ''
		  ];
	}
	my %right = map { $_ => 1 } 1, 3, 4, 5;
	my @width = map { my $c = $_; max(map { length $_->[$c] } @cells) } 0 .. 9;
	for my $i (0 .. $#cells)
	{
		my @padded = map { sprintf($right{$_} ? '%*s' : '%-*s', $width[$_], $cells[$i][$_]) } 0 .. 9;
		$text .= '| ' . join(' | ', @padded) . " |\n";
		$text .= '|' . join('|', map { '-' x ($width[$_] + 1) . ($right{$_} ? ':' : '-') } 0 .. 9) . "|\n" if $i == 0;
	}
	return $text;
}

my $text = markdown(@rows);
my $foot = wrap('', '', "$machine{cpu}, $machine{cpus} CPUs, $machine{memory_mb} MB, $machine{system}, PostgreSQL $machine{postgresql}; "
  . commas($data{'rows t'}) . " rows with $data{'shape t'} keys, " . commas($data{'rows o'}) . " outer rows, whose join has "
  . commas($data{'rows join'}) . " rows; medians of $machine{rounds} alternating rounds, $machine{date}.\n");
write_file('figures.md', "$text\n$foot");
print "\n$text\n$foot\nWritten to $out.\n";

# Plot: milliseconds of each work, a panel for each number of workers
my %colour = (bt => '#52606d', cpu => '#2f8f4e', auto => '#2b6cb0', cuda => '#b7791f');
my %title = (bt => 'btree', map { $_ => "$machine{access_method}, $_" } @devices);

sub panel
{
	my $n = shift;
	my @sides = ('bt', @devices);
	my $block = '';

	for my $work (@works)
	{
		my ($section, $name, $words, $short) = @$work;
		my $values = ($runs{$section} || {})->{"$name $n"} || {};

		next unless $values->{bt} && $values->{bt}{unit} eq 'ms';
		$block .= join(' ', "\"$short\"", map { $values->{$_} ? $values->{$_}{median} : 'NaN' } @sides) . "\n";
	}
	return '' unless $block;
	my @plots = map {
		my $side = $sides[$_];
		"\$ms$n using " . ($_ + 2) . ($_ ? '' : ':xtic(1)') . " lc rgb \"$colour{$side}\" title \"$title{$side}\""
	} 0 .. $#sides;
	return "\$ms$n << EOD\n${block}EOD\nset title \"" . ($n ? "up to $n parallel workers" : 'no parallel workers')
	  . "\"\nplot " . join(", \\\n  ", @plots) . "\n";
}

my @panels = grep { $_ } map { panel($_) } @workers;
if (@panels && grep { -x "$_/gnuplot" } split /:/, $ENV{PATH})
{
	open my $gnuplot, '|-', 'gnuplot' or die "gnuplot: $!\n";
	print $gnuplot 'set encoding utf8
set terminal svg size 1000,' . 420 * @panels . ' font "sans,12" background "white" noenhanced
set output "' . "$out/batch.svg" . '"
set multiplot layout ' . @panels . ',1
set style data histogram
set style histogram clustered gap 1
set style fill solid 0.9 noborder
set grid ytics
set key top left
set xtics rotate by -25 nomirror
set logscale y
set yrange [*:*]
set ylabel "milliseconds"
', @panels, "unset multiplot\n";
	close $gnuplot or die "gnuplot failed\n";
}
