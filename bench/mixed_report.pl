#!/usr/bin/perl
#
# mixed_report.pl DIR: what bench/mixed measured, of what it left in DIR, as tables on standard output, and as
# mixed.md, mixed.json and a plot for each section, mixed-SECTION.svg, in DIR.
#
# The sides are bt (btree), the devices of the other access method, and none where there is no index.  Items
# of runs by pgbench are "NAME tps CLIENTS", p50 and p99.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use List::Util qw(min);
use Report;

my ($dir) = @ARGV;
my $machine = read_machine($dir);
my ($runs, @items) = read_runs($dir);
my $am = $machine->{access_method};
my %clients;
$_->[1] =~ /tps (\d+)$/ and $clients{ $_->[0] }{$1} = 1 for @items;
my %sides = map { $_ => 1 } map { keys %$_ } map { values %$_ } values %$runs;
my @devices = grep { $sides{$_} } qw(cpu auto cuda);
my $small = $machine->{cpus} <= 4;

sub value      { my ($section, $item, $side) = @_; return $runs->{$section}{$item}{$side}{median}; }
sub clients    { my ($n) = @_;                     return $n == 1 ? '1 client' : "$n clients"; }
sub clients_of { my ($section) = @_;               return numerically(keys %{ $clients{$section} // {} }); }

# The rows of the table.  kind "rate": gpu_btree's over btree's is to be large; "faster": btree's over
# gpu_btree's is; "cost": the ratio of the second of two values of one side, such as times with and without
# writers, is to be small.
my @table;

sub line
{
	my ($work, $device, $unit, $first, $second, $kind, $target) = @_;
	return unless defined $first && defined $second && $first > 0 && $second > 0;
	my $ratio = $kind eq 'faster' ? $first / $second : $second / $first;
	my $reached = !defined $target ? undef : $kind eq 'cost' ? $ratio <= $target : $ratio >= $target;
	push @table,
	  {
		work => $work,
		device => $device,
		unit => $unit,
		first => $first,
		second => $second,
		ratio => $ratio,
		kind => $kind,
		target => $target,
		reached => bool($reached)
	  };
	return;
}

# What we set out to reach, as a ratio of btree
sub target
{
	my ($work, $device, $n) = @_;
	my $gpu = $device eq 'cuda';

	return $gpu    ? ($n == 1 ? 0.8 : 1.0) : $small ? 1.1 : $n == 1 ? 1.0 : 1.2 if $work eq 'mixed';
	return $n < 16 ? undef : $gpu ? 1.1 : 1.3 if $work eq 'both';
	return $gpu    ? 0.7   : 1.1 if $work eq 'beside';
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
	line($work, $device, $unit, value($section, $item, 'bt'), value($section, $item, $device), $kind,
		$target);
	return;
}

for my $n (clients_of('meet'))
{
	compare("insert a row, no index, " . clients($n), 'meet', "insert tps $n", 'tps', 'none', 'rate');
	compare("count that reads no table, " . clients($n), 'meet', "count tps $n", 'tps', 'none', 'rate');
	compare("both in a transaction, " . clients($n), 'meet', "both tps $n", 'tps', 'none', 'rate');
}
for my $device (@devices)
{
	for my $n (clients_of('mixed'))
	{
		compare(
			"mixed transactions, " . clients($n),
			'mixed', "transaction tps $n",
			'tps', $device, 'rate', target('mixed', $device, $n)
		);
		compare(
			"99 % of mixed transactions, " . clients($n),
			'mixed', "transaction p99 $n",
			'us', $device, 'faster'
		);
	}
	for my $n (clients_of('meet'))
	{
		compare("insert a row, " . clients($n), 'meet', "insert tps $n", 'tps', $device, 'rate');
		compare("count by four keys, " . clients($n), 'meet', "count tps $n", 'tps', $device, 'rate');
		compare("both in a transaction, " . clients($n),
			'meet', "both tps $n", 'tps', $device, 'rate', target('both', $device, $n));
		line(
			"what the two add up to, " . clients($n),
			$device, 'tps',
			map({
					my $side = $_;
					together(map { value('meet', "$_ tps $n", $side) } qw(insert count))
				} 'bt',
				$device),
			'rate'
		);
	}
	for my $n (clients_of('beside'))
	{
		compare("lookups without writers, " . clients($n), 'beside', "alone tps $n", 'tps', $device, 'rate');
		compare(
			"lookups beside 2 writers, " . clients($n),
			'beside', "writers tps $n",
			'tps', $device, 'rate', target('beside', $device, $n)
		);
		compare(
			"99 % of lookups beside 2 writers, " . clients($n),
			'beside', "writers p99 $n",
			'us', $device, 'faster'
		);
	}
	for my $n (clients_of('tpcb'))
	{
		compare(
			"TPC-B-like, " . clients($n),
			'tpcb', "transaction tps $n",
			'tps', $device, 'rate', target('tpcb', $device, $n)
		);
	}
	compare("visits a lookup after 20 updates, first",
		'updates', 'first visits', 'buffers', $device, 'faster');
	compare(
		"visits a lookup after 20 updates, second",
		'updates', 'second visits',
		'buffers', $device, 'faster', 0.95
	);
	for my $n (clients_of('updates'))
	{
		compare(
			"lookups after 20 updates, " . clients($n),
			'updates', "lookup tps $n",
			'tps', $device, 'rate'
		);
	}
	line(
		'an update of all ' . commas(value('updates', 'rows', 'bt') // 0) . ' rows',
		$device, 'ms',
		value('updates', 'update', 'bt'),
		value('updates', 'update', $device), 'faster'
	);
	for ([ 'alone', 'without writers' ], [ 'writers', 'beside 2 writers' ])
	{
		my ($item, $words) = @$_;
		my @btree = grep { defined } map { value('any', "$item $_", 'bt') } qw(index bitmap);

		line("`= ANY` of " . commas($machine->{keys}) . " keys $words",
			$device, 'ms', min(@btree), value('any', "$item auto", $device), 'faster')
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

	for my $n (clients_of('beside'))
	{
		line("median of lookups, " . clients($n),
			$name, 'us', (map { value('beside', "$_ p50 $n", $side) } qw(alone writers)), 'cost');
		line(
			"99 % of lookups, " . clients($n),
			$name, 'us', (map { value('beside', "$_ p99 $n", $side) } qw(alone writers)),
			'cost', $ours ? 2 : undef
		);
	}
	for my $way ($ours ? 'auto' : ('index', 'bitmap'))
	{
		line(
			'`= ANY` of ' . commas($machine->{keys}) . ' keys' . ($ours ? '' : " ($way scan)"),
			$name, 'ms', (map { value('any', "$_ $way", $side) } qw(alone writers)),
			'cost', $ours ? 1.1 : undef
		);
	}
}
my @costs = @table;

# A table of the lines, with the headings of their two values
sub markdown
{
	my ($first, $second, $lines) = @_;
	my @cells = ([ 'work', 'device', $first, $second, 'ratio', 'target', 'reached' ]);

	for (@$lines)
	{
		my $target =
		  defined $_->{target}
		  ? sprintf('%s %.3gx', $_->{kind} eq 'cost' ? 'at most' : 'at least', $_->{target})
		  : '';
		push @cells,
		  [
			$_->{work},
			$_->{device},
			figure($_->{first}, $_->{unit}),
			figure($_->{second}, $_->{unit}),
			sprintf('%.2fx', $_->{ratio}),
			$target,
			defined $_->{reached} ? ($_->{reached} ? 'yes' : 'no') : ''
		  ];
	}
	return table('llrrrll', @cells);
}

my $text = markdown('btree', $am, \@rows) . "\n";
$text .=
  "The same side beside two writers, against without:\n\n"
  . markdown('without', 'beside writers', \@costs) . "\n"
  if @costs;
$text .= foot($machine, commas($machine->{rows}) . " rows, medians of $machine->{rounds} alternating runs");
publish($dir, 'mixed', $text,
	{ machine => $machine, against_btree => \@rows, against_no_writers => \@costs });

# Plots: transactions a second, and latencies, against clients
my %title = (bt => 'btree', map { $_ => "$am, $_" } @devices);

sub curve
{
	my ($section, $item, $side, $more) = @_;
	my @points = map { my $v = value($section, "$item $_", $side); defined $v && $v > 0 ? [ $_, $v ] : () }
	  clients_of($section);
	return {
		name => $title{$side} . ($more // ''),
		colour => $colour{$side},
		dashed => defined $more,
		points => \@points
	};
}

sub plot
{
	my ($section, $title, $item) = @_;
	my @all = ('bt', @devices);
	my %x = (x => 'clients', log_x => 1);

	return if keys %{ $clients{$section} // {} } < 2;    # no curves
	plot_lines(
		"$dir/mixed-$section.svg",
		{
			%x,
			title => $title,
			y => 'transactions a second',
			curves => [ map { curve($section, "$item tps", $_) } @all ]
		},
		{
			%x,
			title => 'latency: median and 99 % (dashed)',
			y => 'microseconds',
			log_y => 1,
			curves => [
				map({ curve($section, "$item p50", $_) } @all),
				map({ curve($section, "$item p99", $_, ', 99 %') } @all)
			]
		}
	);
	return;
}

plot('mixed', 'insert, update, delete, count by four keys', 'transaction');
plot('meet', 'insert and count in a transaction', 'both');
plot('beside', 'lookups beside two writers', 'writers');
plot('tpcb', 'TPC-B-like, index on accounts(abalance)', 'transaction');
plot('updates', 'lookups after 20 updates of each row', 'lookup');
