#!/usr/bin/perl
#
# batch_report.pl DIR: what bench/batch measured, of what it left in DIR, as tables on standard output, and as
# batch.md, batch.json and batch.svg in DIR; and batch-devices.svg, if the section "devices" was measured.
#
# The sides are bt (btree) and the devices of the other access method.  An item is "NAME WORKERS", in the
# section "devices" "NAME KEYS".  The section "data" describes the tables.
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
my $data = delete $runs->{data};
my $meeting = delete $runs->{devices};
my %data = (
	rows => $data->{rows}{t}{median},
	outer_rows => $data->{rows}{o}{median},
	join_rows => $data->{rows}{join}{median},
	shape => $data->{shape}{t}{text}
);
my @workers = do
{
	my %n;
	$n{$_} = 1 for map { / (\d+)$/ } map { keys %$_ } values %$runs;
	numerically(keys %n);
};

# The devices that some of the values are of
sub devices_of
{
	my (@sections) = @_;
	my %seen = map { $_ => 1 } map { keys %$_ } map { values %$_ } @sections;
	return grep { $seen{$_} } qw(cpu cuda auto);
}

my @devices = devices_of(values %$runs);

# The works, in the order of the table: section, name, words, a short title for the plot
my $keys = commas($machine->{keys});
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
	[ 'lookup', 'one_count', 'prepared count(*) of one key, 1 client', 'count of one' ]
);

# What we set out to reach: lookups, which have no batches, are as in bench/run.
sub target
{
	my ($section, $device) = @_;
	return $section ne 'lookup' ? undef : $device eq 'cuda' ? 0.6 : 0.9;
}

# The rows of the table.  The ratio is above 1 where the other access method is faster.
my @rows;
for my $work (@works)
{
	my ($section, $name, $words) = @$work;

	for my $n (@workers)
	{
		my $sides = $runs->{$section}{"$name $n"} // {};
		my $btree = $sides->{bt} or next;

		for my $device (@devices)
		{
			my $ours = $sides->{$device} or next;
			my $ratio =
				$btree->{unit} eq 'tps'
			  ? $ours->{median} / $btree->{median}
			  : $btree->{median} / $ours->{median};
			my $target = target($section, $device);

			push @rows,
			  {
				work => $words,
				name => $name,
				workers => $n + 0,
				device => $device,
				unit => $btree->{unit},
				btree => $btree->{median},
				gpu_btree => $ours->{median},
				ratio => $ratio,
				btree_plan => $btree->{plan},
				gpu_btree_plan => $ours->{plan},
				target => $target,
				reached => defined $target ? bool($ratio >= $target) : undef
			  };
		}
	}
}

sub against_btree
{
	my @cells = (
		[
			'work', 'workers', 'device', 'btree', $am, 'ratio',
			'plan of btree', "plan of $am", 'target', 'reached'
		]
	);

	for (@rows)
	{
		push @cells,
		  [
			@$_{qw(work workers device)},
			figure($_->{btree}, $_->{unit}),
			figure($_->{gpu_btree}, $_->{unit}),
			sprintf('%.2fx', $_->{ratio}),
			@$_{qw(btree_plan gpu_btree_plan)},
			defined $_->{target}  ? sprintf('at least %.3gx', $_->{target}) : '',
			defined $_->{reached} ? ($_->{reached} ? 'yes' : 'no')          : ''
		  ];
	}
	return table('lrlrrrllll', @cells) . "\n";
}

#
# The section "devices": each number of keys on each device
#

my @alone = ([ 'count', 'count(*)' ], [ 'rows', 'rows with a column of the table' ]);
my @their_devices = devices_of($meeting // {});
my @ns = do
{
	my %n;
	$n{$_} = 1 for map { /(\d+)$/ } keys %{ $meeting // {} };
	numerically(keys %n);
};

sub time_of { my ($work, $n, $device) = @_; return $meeting->{"$work $n"}{$device}{median}; }
sub percent { my ($share) = @_;             return sprintf('%.0f %%', 100 * $share) =~ s/^-0 /0 /r; }

# The times, the better device, and what auto takes longer than it, as a part of that one's time.
my @times;
for my $work (@alone)
{
	for my $n (@ns)
	{
		my %time = map { ($_ => time_of($work->[0], $n, $_)) } @their_devices;
		my $best = defined $time{cpu} && defined $time{cuda} ? min(@time{qw(cpu cuda)}) : undef;

		push @times,
		  {
			work => $work->[0],
			words => $work->[1],
			keys => $n + 0,
			ms => \%time,
			better => defined $best ? ($time{cpu} <= $time{cuda} ? 'cpu' : 'cuda') : undef,
			auto_loses => defined $best && defined $time{auto} ? $time{auto} / $best - 1 : undef
		  };
	}
}

# Where the GPU becomes the better device for good, between two numbers of keys: straight lines on logarithmic
# scales meet there.  Undefined: nowhere among those that were measured.
sub meeting_of
{
	my ($work) = @_;
	my @mine = grep { $_->{work} eq $work && defined $_->{better} } @times;
	my $last = -1;

	for my $i (0 .. $#mine) { $last = $i if $mine[$i]{better} eq 'cpu'; }
	return undef if !@mine || $last == $#mine;
	return { from => 1, to => $mine[0]{keys}, about => $mine[0]{keys} } if $last < 0;
	my ($before, $after) = @mine[ $last, $last + 1 ];
	my ($d0, $d1) = map { log($_->{ms}{cuda} / $_->{ms}{cpu}) } $before, $after;
	my $about = exp(log($before->{keys}) + log($after->{keys} / $before->{keys}) * $d0 / ($d0 - $d1));
	return { from => $before->{keys}, to => $after->{keys}, about => int($about + 0.5) };
}

# What is to be said of where the devices meet, and of what auto loses
sub said_of_meeting
{
	my ($work, $words) = @_;
	my $meets = meeting_of($work);
	my ($worst) = sort { $b->{auto_loses} <=> $a->{auto_loses} }
	  grep { $_->{work} eq $work && defined $_->{auto_loses} } @times;
	my $said =
	   !$meets              ? 'the CPU device is the faster one for all these numbers of keys.'
	  : $meets->{from} == 1 ? 'the GPU is the faster one from the first key on.'
	  : sprintf('the devices meet at about %s keys, between %s and %s.',
		map { commas($_) } @$meets{qw(about from to)});
	$said .= sprintf(
		' auto loses most at %s keys: %s, %s.',
		commas($worst->{keys}),
		percent($worst->{auto_loses}),
		figure(abs($worst->{ms}{auto} - $worst->{ms}{ $worst->{better} }), 'ms')
	) if $worst;
	return paragraph("$words: $said") . "\n";
}

sub of_devices
{
	my $two = grep({ $_ ne 'auto' } @their_devices) == 2;
	my $three = $two && @their_devices == 3;
	my @cells = ([ 'work', 'keys', @their_devices, $two ? 'better' : (), $three ? 'auto loses' : () ]);

	for my $row (@times)
	{
		push @cells,
		  [
			$row->{words},
			commas($row->{keys}),
			map({ figure($row->{ms}{$_}, 'ms') } @their_devices),
			$two   ? $row->{better}              : (),
			$three ? percent($row->{auto_loses}) : ()
		  ];
	}
	return table('lr' . 'r' x @their_devices . ($two ? 'l' : '') . ($three ? 'r' : ''), @cells) . "\n"
	  . join('', $two ? map { said_of_meeting(@$_) } @alone : ());
}

my $words = commas($data{rows}) . " rows with $data{shape} keys, ";
$words .= commas($data{outer_rows}) . ' outer rows, whose join has ' . commas($data{join_rows}) . ' rows; '
  if defined $data{join_rows};
$words .= "medians of $machine->{rounds} alternating rounds";
my $text = (@rows ? against_btree() : '') . (@times ? of_devices() : '') . foot($machine, $words);
my %meets = map { ($_->[0] => meeting_of($_->[0])) } @alone;
publish(
	$dir, 'batch', $text,
	{
		machine => $machine,
		data => \%data,
		against_btree => \@rows,
		@times ? (meets => \%meets, times => \@times) : ()
	}
);

# Plots: milliseconds of each work and number of workers; and times against keys
my %title = (bt => 'btree', map { $_ => "$am, $_" } @devices);
my @groups;
for my $work (grep { $_->[0] ne 'lookup' } @works)
{
	for my $n (grep { $runs->{ $work->[0] }{"$work->[1] $_"}{bt} } @workers)
	{
		my $sides = $runs->{ $work->[0] }{"$work->[1] $n"};
		push @groups,
		  [ $work->[3] . ($n ? ", $n workers" : ''), undef, map { $sides->{$_}{median} } 'bt', @devices ];
	}
}
plot_bars(
	"$dir/batch.svg",
	{
		title => 'milliseconds' . (join(' ', @workers) eq '0' ? ', no parallel workers' : ''),
		log => 1,
		series => [ map { [ $title{$_}, $colour{$_} ] } 'bt', @devices ],
		groups => \@groups
	}
) if @groups;

sub device_curve
{
	my ($work, $device) = @_;
	my @points = map { my $ms = time_of($work, $_, $device); defined $ms ? [ $_, $ms ] : () } @ns;
	return { name => $device, colour => $colour{$device}, dashed => $device eq 'auto', points => \@points };
}

plot_lines(
	"$dir/batch-devices.svg",
	map {
		my ($work, $words) = @$_;
		{
			title => $words,
			x => 'keys in = ANY',
			y => 'milliseconds',
			log_x => 1,
			log_y => 1,
			curves => [ map { device_curve($work, $_) } @their_devices ]
		}
	} @alone
) if @times;
