#!/usr/bin/perl
#
# mixed_report.pl RAW MACHINE OUT: medians of what bench/mixed measured, as a table
# on standard output and as JSON, Markdown and, where gnuplot is found, SVG in the
# folder OUT.
#
# RAW has lines of section, item, side, round, value, unit.  The sides are bt (btree),
# the devices of gpu_btree, and none where there is no index.  Items of runs by pgbench
# are "NAME tps CLIENTS", p50 and p99.  MACHINE has names and values.
use strict;
use warnings;
use JSON::PP;
use List::Util qw(max min);
use Text::Wrap qw(wrap);

$Text::Wrap::columns = 101;    # lines of up to 100

my ($raw, $machine_file, $out) = @ARGV;
my (%runs, %machine, %clients);
my $json = JSON::PP->new->canonical->pretty->indent_length(2);

open my $in, '<', $raw or die "$raw: $!\n";
while (<$in>)
{
	chomp;
	my ($section, $item, $side, $round, $value, $unit) = split /\t/;
	push @{ $runs{$section}{$item}{$side}{runs} }, $value + 0;
	$runs{$section}{$item}{$side}{unit} = $unit;
	$clients{$section}{$1} = 1 if $item =~ /tps (\d+)$/;
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

my @devices = grep { my $d = $_; grep { exists $_->{$d} } map { values %$_ } values %runs } qw(cpu auto cuda);
my $small = $machine{cpus} <= 4;

sub median
{
	my @sorted = sort { $a <=> $b } @_;
	return undef unless @sorted;
	return @sorted % 2 ? $sorted[ @sorted / 2 ] : ($sorted[ @sorted / 2 - 1 ] + $sorted[ @sorted / 2 ]) / 2;
}

for my $items (values %runs)
{
	$_->{median} = median(@{ $_->{runs} }) for map { values %$_ } values %$items;
}

sub value
{
	my ($section, $item, $side) = @_;
	my $runs = ($runs{$section} || {})->{$item} || {};
	return $runs->{$side} ? $runs->{$side}{median} : undef;
}

sub commas { my $n = shift; 1 while $n =~ s/^(\d+)(\d{3})/$1,$2/; return $n; }

sub number
{
	my ($v, $unit) = @_;
	return '' unless defined $v;
	my $text = $v >= 1000 ? commas(sprintf('%.0f', $v)) : sprintf($v >= 100 ? '%.0f' : $v >= 10 ? '%.1f' : '%.3g', $v);
	return "$text $unit";
}

sub numerically { return sort { $a <=> $b } @_; }
sub clients { my $n = shift; return $n == 1 ? '1 client' : "$n clients"; }

# The rows of the table.  kind "rate": gpu_btree's over btree's is to be large; "faster": btree's over gpu_btree's is;
# "cost": the ratio of the second of two values of one side, such as times with and without writers, is to be small.
my @table;

sub line
{
	my ($work, $device, $unit, $first, $second, $kind, $target) = @_;
	return unless defined $first && defined $second && $first > 0 && $second > 0;
	my $ratio = $kind eq 'faster' ? $first / $second : $second / $first;
	my $reached = !defined $target ? undef : $kind eq 'cost' ? $ratio <= $target : $ratio >= $target;
	push @table,
	  {
		work => $work, device => $device, unit => $unit, first => $first, second => $second, ratio => $ratio, kind => $kind,
		target => $target, reached => defined $reached ? ($reached ? JSON::PP::true : JSON::PP::false) : undef
	  };
	return;
}

# What we set out to reach, as a ratio of btree
sub target
{
	my ($work, $device, $n) = @_;
	my $gpu = $device eq 'cuda';

	return $gpu ? ($n == 1 ? 0.8 : 1.0) : $small ? 1.1 : $n == 1 ? 1.0 : 1.2 if $work eq 'mixed';
	return $n < 16 ? undef : $gpu ? 1.1 : 1.3 if $work eq 'both';
	return $gpu ? 0.7 : 1.1 if $work eq 'beside';
	return 1.1 if $work eq 'tpcb';
	return undef;
}

# What two works add up to, one after the other, in transactions a second
sub together
{
	my ($a, $b) = @_;
	return defined $a && defined $b && $a > 0 && $b > 0 ? 1 / (1 / $a + 1 / $b) : undef;
}

sub compare
{
	my ($work, $section, $item, $unit, $device, $kind, $target) = @_;
	line($work, $device, $unit, value($section, $item, 'bt'), value($section, $item, $device), $kind, $target);
	return;
}

for my $n (numerically(keys %{ $clients{meet} || {} }))
{
	compare("insert a row, no index, " . clients($n), 'meet', "insert tps $n", 'tps', 'none', 'rate');
	compare("count that reads no table, " . clients($n), 'meet', "count tps $n", 'tps', 'none', 'rate');
	compare("both in a transaction, " . clients($n), 'meet', "both tps $n", 'tps', 'none', 'rate');
}
for my $device (@devices)
{
	for my $n (numerically(keys %{ $clients{mixed} || {} }))
	{
		compare("mixed transactions, " . clients($n), 'mixed', "transaction tps $n", 'tps', $device, 'rate', target('mixed', $device, $n));
		compare("99 % of mixed transactions, " . clients($n), 'mixed', "transaction p99 $n", 'us', $device, 'faster');
	}
	for my $n (numerically(keys %{ $clients{meet} || {} }))
	{
		compare("insert a row, " . clients($n), 'meet', "insert tps $n", 'tps', $device, 'rate');
		compare("count by four keys, " . clients($n), 'meet', "count tps $n", 'tps', $device, 'rate');
		compare("both in a transaction, " . clients($n), 'meet', "both tps $n", 'tps', $device, 'rate', target('both', $device, $n));
		line("what the two add up to, " . clients($n), $device, 'tps',
			map({ my $side = $_; together(map { value('meet', "$_ tps $n", $side) } qw(insert count)) } 'bt', $device), 'rate');
	}
	for my $n (numerically(keys %{ $clients{beside} || {} }))
	{
		compare("lookups without writers, " . clients($n), 'beside', "alone tps $n", 'tps', $device, 'rate');
		compare("lookups beside 2 writers, " . clients($n), 'beside', "writers tps $n", 'tps', $device, 'rate', target('beside', $device, $n));
		compare("99 % of lookups beside 2 writers, " . clients($n), 'beside', "writers p99 $n", 'us', $device, 'faster');
	}
	for my $n (numerically(keys %{ $clients{tpcb} || {} }))
	{
		compare("TPC-B-like, " . clients($n), 'tpcb', "transaction tps $n", 'tps', $device, 'rate', target('tpcb', $device, $n));
	}
	compare("visits a lookup after 20 updates, first", 'updates', 'first visits', 'buffers', $device, 'faster');
	compare("visits a lookup after 20 updates, second", 'updates', 'second visits', 'buffers', $device, 'faster', 0.95);
	for my $n (numerically(keys %{ $clients{updates} || {} }))
	{
		compare("lookups after 20 updates, " . clients($n), 'updates', "lookup tps $n", 'tps', $device, 'rate');
	}
	line('an update of all ' . commas(value('updates', 'rows', 'bt') // 0) . ' rows', $device, 'ms',
		value('updates', 'update', 'bt'), value('updates', 'update', $device), 'faster');
	for (['alone', 'without writers'], ['writers', 'beside 2 writers'])
	{
		my ($item, $words) = @$_;
		my @btree = grep { defined } map { value('any', "$item $_", 'bt') } qw(index bitmap);

		line("`= ANY` of " . commas($machine{keys}) . " keys $words", $device, 'ms', min(@btree), value('any', "$item auto", $device), 'faster')
		  if @btree;
	}
}

# Beside writers against without, of one side
my @rows = @table;
@table = ();
for my $side ('bt', @devices)
{
	my $name = $side eq 'bt' ? 'btree' : $side;
	my $ours = $side ne 'bt';

	for my $n (numerically(keys %{ $clients{beside} || {} }))
	{
		line("median of lookups, " . clients($n), $name, 'us', (map { value('beside', "$_ p50 $n", $side) } qw(alone writers)), 'cost');
		line("99 % of lookups, " . clients($n), $name, 'us', (map { value('beside', "$_ p99 $n", $side) } qw(alone writers)), 'cost', $ours ? 2 : undef);
	}
	for my $way ($ours ? 'auto' : ('index', 'bitmap'))
	{
		line('`= ANY` of ' . commas($machine{keys}) . ' keys' . ($ours ? '' : " ($way scan)"), $name, 'ms',
			(map { value('any', "$_ $way", $side) } qw(alone writers)), 'cost', $ours ? 1.1 : undef);
	}
}
my @costs = @table;

sub write_file
{
	my ($name, $text) = @_;
	open my $fh, '>', "$out/$name" or die "$out/$name: $!\n";
	print $fh $text;
	close $fh or die "$out/$name: $!\n";
	return;
}

write_file("$_.json", $json->encode({ section => $_, items => $runs{$_} })) for keys %runs;
write_file('summary.json', $json->encode({ machine => \%machine, against_btree => \@rows, against_no_writers => \@costs }));

# Markdown that reads as plain text too.
sub markdown
{
	my ($first, $second, $lines) = @_;
	my @cells = ([ 'work', 'device', $first, $second, 'ratio', 'target', 'reached' ]);

	for (@$lines)
	{
		push @cells,
		  [
			$_->{work}, $_->{device}, number($_->{first}, $_->{unit}), number($_->{second}, $_->{unit}), sprintf('%.2fx', $_->{ratio}),
			defined $_->{target} ? sprintf('%s %.3gx', $_->{kind} eq 'cost' ? 'at most' : 'at least', $_->{target}) : '',
			defined $_->{reached} ? ($_->{reached} ? 'yes' : 'no') : ''
		  ];
	}
	my @width = map { my $c = $_; max(map { length $_->[$c] } @cells) } 0 .. 6;
	my $text = '';
	for my $i (0 .. $#cells)
	{
		my @padded = map { sprintf($_ >= 2 && $_ <= 4 ? '%*s' : '%-*s', $width[$_], $cells[$i][$_]) } 0 .. 6;
		$text .= '| ' . join(' | ', @padded) . " |\n";
		$text .= '|' . join('|', map { '-' x ($width[$_] + 1) . ($_ >= 2 && $_ <= 4 ? ':' : '-') } 0 .. 6) . "|\n" if $i == 0;
	}
	return $text;
}

my $text = markdown('btree', $machine{access_method}, \@rows);
$text .= "\nThe same side beside two writers, against without:\n\n" . markdown('without', 'beside writers', \@costs) if @costs;
my $foot = wrap('', '', "$machine{cpu}, $machine{cpus} CPUs, $machine{memory_mb} MB, $machine{system}, PostgreSQL $machine{postgresql}; "
  . commas($machine{rows}) . " rows, medians of $machine{rounds} alternating runs, $machine{date}.\n");
write_file('figures.md', "$text\n$foot");
print "\n$text\n$foot\nWritten to $out.\n";

# Plots: transactions a second, and latencies, against clients
my %colour = (bt => '#52606d', cpu => '#2f8f4e', auto => '#2b6cb0', cuda => '#b7791f');
my %title = (bt => 'btree', map { $_ => "$machine{access_method}, $_" } @devices);

# Lines of one panel: curves of [title, dash, colour, item], item without its clients
sub panel
{
	my ($section, $label, $title, @curves) = @_;
	my ($blocks, @plots) = ('');

	for my $i (0 .. $#curves)
	{
		my ($name, $dash, $side, $item) = @{ $curves[$i] };
		my @points = map { my $v = value($section, "$item $_", $side); defined $v && $v > 0 ? "$_ $v\n" : () }
		  numerically(keys %{ $clients{$section} });

		next unless @points;
		my $block = "\$" . join('_', $section, $item =~ s/\W/_/gr, $side);
		$blocks .= "$block << EOD\n" . join('', @points) . "EOD\n";
		push @plots, "$block using 1:2 with linespoints lc rgb \"$colour{$side}\" dt $dash pt 7 ps 0.5 title \"$name\"";
	}
	return @plots ? "${blocks}set title \"$title\"\nset ylabel \"$label\"\nplot " . join(", \\\n  ", @plots) . "\n" : '';
}

sub plot
{
	my ($section, $title, $item) = @_;
	my @sides = ('bt', @devices);

	return unless $clients{$section} && grep { -x "$_/gnuplot" } split /:/, $ENV{PATH};
	open my $gnuplot, '|-', 'gnuplot' or die "gnuplot: $!\n";
	print $gnuplot <<"END";
set encoding utf8
set terminal svg size 1000,420 font "sans,12" background "white" noenhanced
set output "$out/$section.svg"
set multiplot layout 1,2
set grid
set key below
set xlabel "clients"
set logscale x 2
set yrange [0:*]
END
	print $gnuplot panel($section, 'transactions a second', $title, map { [ $title{$_}, 1, $_, "$item tps" ] } @sides);
	print $gnuplot "set logscale y\nset yrange [*:*]\n";
	print $gnuplot panel($section, 'microseconds', 'latency: median and 99 % (dashed)',
		map({ [ $title{$_}, 1, $_, "$item p50" ] } @sides), map({ [ "$title{$_}, 99 %", 2, $_, "$item p99" ] } @sides));
	print $gnuplot "unset multiplot\n";
	close $gnuplot or die "gnuplot failed\n";
	return;
}

plot('mixed', 'insert, update, delete, count by four keys', 'transaction');
plot('meet', 'insert and count in a transaction', 'both');
plot('beside', 'lookups beside two writers', 'writers');
plot('tpcb', 'TPC-B-like, index on accounts(abalance)', 'transaction');
plot('updates', 'lookups after 20 updates of each row', 'lookup');
