#!/usr/bin/perl
#
# run_report.pl DIR: what bench/run measured, of what it left in DIR, as a table on standard output, and as
# run.md, run.json, run.svg and, where sizes of sets were measured, run-sizes.svg in DIR.
#
# The sides are bt (btree), gp (the other access method) and plain (no index).
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use List::Util qw(max min);
use Report;

my ($dir) = @ARGV;
my $machine = read_machine($dir);
my ($runs) = read_runs($dir);
my $am = $machine->{access_method};
my $cuda = $machine->{device} eq 'cuda';
my ($keys, $bulk, $rows) = map { commas($machine->{$_}) } qw(keys bulk rows);

# value(SECTION, SIDE, ITEM ...): the median of the best of the items.
sub value
{
	my ($section, $side, @items) = @_;
	return min(grep { defined } map { $runs->{$section}{$_}{$side}{median} } @items);
}

# both(SECTION, ITEM): of the two sides.
sub both
{
	my ($section, $item) = @_;
	return map { value($section, $_, $item) } qw(bt gp);
}

# tax(ITEM): what the index adds to the time or the WAL of an INSERT, of the two sides.
sub tax
{
	my ($item) = @_;
	my $without = value('insert', 'plain', $item);
	return map {
		my $with = value('insert', $_, $item);
		defined $with && defined $without ? $with - $without : undef
	} qw(bt gp);
}

# A line of the table.  kind "faster": time of btree / ours; "rate": ours / btree's; "part": ours / btree's,
# to be small; "below", "above": what counts is that ours is below or above the target.
my @table;

sub line
{
	my ($work, $unit, $bt, $gp, $kind, $target) = @_;
	my $alone = $kind eq 'below' || $kind eq 'above';
	return unless defined $gp && ($alone || defined $bt && $bt > 0);
	$gp = max($gp, 0);    # a difference within the noise
	my $ratio = !defined $bt ? undef : $kind eq 'faster'
	  || $kind eq 'below' ? ($gp > 0 ? $bt / $gp : undef) : $gp / $bt;
	my $reached =
		!defined $target ? undef
	  : $kind eq 'below' ? $gp < $target
	  : $kind eq 'above' ? $gp > $target
	  : !defined $ratio  ? undef
	  : $kind eq 'part'  ? $ratio <= $target
	  :                    $ratio >= $target;
	push @table,
	  {
		work => $work,
		unit => $unit,
		btree => $bt,
		gpu_btree => $gp,
		ratio => $ratio,
		kind => $kind,
		target => $target,
		reached => bool($reached)
	  };
	return;
}

# The numbers of clients that a section was measured with
sub clients_of
{
	my ($section) = @_;
	return numerically(map { /^(\d+) clients$/ ? $1 : () } keys %{ $runs->{$section} });
}
sub clients { my ($n) = @_; return $n == 1 ? '1 client' : "$n clients"; }

line('one-key lookup in the executor, median', 'us', both('round_trip', 'median'), 'below', 25);
line('one-key lookup in the executor, 99 %', 'us', both('round_trip', 'p99'), 'faster');
line('one-key lookup in a nested loop, mean', 'us', both('round_trip', 'nested loop'), 'faster');
line(
	"`= ANY` of $keys keys, rows returned",
	'ms',
	value('any', 'bt', "$machine->{keys} index", "$machine->{keys} bitmap"),
	value('any', 'gp', "$machine->{keys} auto"),
	'faster', $cuda ? 2.5 : 2
);
line(
	"index side alone of $keys keys (btree: index-only count)",
	'ms',
	value('index_side', 'bt', 'count'),
	value('index_side', 'gp', 'bitmap'),
	'faster', $cuda ? undef : 8
);
line(
	"index side alone of $keys keys (btree: bitmap)",
	'ms', both('index_side', 'bitmap'),
	'faster', $cuda ? 30 : undef
);

for my $n (clients_of('lookup'))
{
	line(
		"prepared lookup by pgbench, " . clients($n),
		'tps', both('lookup', "$n clients"),
		'rate', $cuda ? 0.6 : 0.9
	);
	line(
		"scans that go together, $n clients",
		'', undef, value('lookup', 'gp', "$n clients, scans a launch"),
		'above', $n == 64 ? 4 : undef
	);
}
line(
	'range of 1 %, rows returned',
	'ms',
	value('range', 'bt', 'range index', 'range bitmap'),
	value('range', 'gp', 'range auto'),
	'faster', 1.2
);
line(
	'range of 1 %, rows counted (btree: index-only)',
	'ms',
	value('range', 'bt', 'count index', 'count bitmap'),
	value('range', 'gp', 'count auto'), 'faster'
);
line('next 1,000 rows in key order', 'ms', both('range', 'next 1000'), 'faster');
for my $workers (0, 2, 4)
{
	line("index-only scan of all rows, $workers workers",
		'ms', both('parallel', "keys of all rows, $workers workers"), 'faster');
	line("index scan of a tenth of the rows, $workers workers",
		'ms', both('parallel', "a tenth of the rows, $workers workers"), 'faster');
}
for ([ 'steady', '' ], [ 'after checkpoint', ', right after a checkpoint' ])
{
	my ($item, $words) = @$_;
	line("INSERT ... SELECT of $bulk rows$words, index tax", 'ms', tax($item), 'part', 0.25);
	line("WAL of its index entries$words", 'MB', map({ megabytes($_) } tax("$item wal")), 'part', 0.4);
	line("WAL of it in all$words", 'MB', map({ megabytes($_) } both('insert', "$item wal")), 'part');
}
{
	my @next = both('insert', 'next query');
	my @sums = map { defined $_ && defined $next[0] ? $_ + shift @next : undef } tax('steady');
	line('index tax and the next query, which catches up', 'ms', @sums, 'part');
}
line("single-row transactions, " . clients($_), 'tps', both('single_row', "$_ clients"), 'rate', 1)
  for clients_of('single_row');
line(
	$cuda ? 'CREATE INDEX, 8 workers' : 'CREATE INDEX',
	'ms', both('build', 'CREATE INDEX'),
	'faster', $cuda ? 2.5 : 1.5
);
line('VACUUM after deleting 20 %', 'ms', both('vacuum', 'VACUUM'), 'faster', 1);
line('size on disk', 'MB', map({ megabytes($_) } both('build', 'size')), 'part', 0.85);
line("load of $rows entries after a restart", 'ms', undef, value('load', 'gp', 'load'), 'below', 1000);

# What has no line of that kind: the first query, the memory, and sets of all sizes
my %more;
my ($cold_bt, $cold) = both('restart', 'first');
$more{load} = {
	first_query_ms => $cold,
	btree_first_query_ms => $cold_bt,
	ns_per_entry => ($cold - $cold_bt) * 1e6 / $machine->{rows},
	target_ns_per_entry => 100
  }
  if defined $cold;
my $memory = value('memory', 'gp', 'structure');
$more{memory} = { bytes => $memory, bytes_per_entry => $memory / $machine->{rows} } if defined $memory;
my @sizes = numerically(map { /^(\d+) index$/ ? $1 : () } keys %{ $runs->{break_even} });
for my $n (@sizes)
{
	my %point = (keys => $n);

	for my $side (qw(bt gp))
	{
		$point{"${side}_$_"} = value('break_even', $side, "$n $_") for qw(index bitmap);
		$point{$side} = value('break_even', $side, "$n index", "$n bitmap");
	}
	push @{ $more{break_even}{points} }, \%point;
}
# The size from which on ours is always the faster one
for my $point (reverse @{ $more{break_even}{points} // [] })
{
	last if $point->{gp} > $point->{bt};
	$more{break_even}{keys} = $point->{keys};
}

my @lines = ([ 'work', 'btree', $am, 'ratio', 'target', 'reached' ]);
for (@table)
{
	my $target =
		!defined $_->{target} ? ''
	  : $_->{kind} eq 'below' ? "under $_->{target} $_->{unit}"
	  : $_->{kind} eq 'above' ? "above $_->{target}"
	  : sprintf('%s %.3gx', $_->{kind} eq 'part' ? 'at most' : 'at least', $_->{target});
	push @lines,
	  [
		$_->{work},
		figure($_->{btree}, $_->{unit}),
		figure($_->{gpu_btree}, $_->{unit}),
		defined $_->{ratio} ? sprintf('%.2fx', $_->{ratio}) : '',
		$target,
		defined $_->{reached} ? ($_->{reached} ? 'yes' : 'no') : ''
	  ];
}
if ($more{load})
{
	my $ns = $more{load}{ns_per_entry};
	push @lines,
	  [
		'first query after a restart, more than btree\'s',
		figure($cold_bt, 'ms'),
		figure($cold, 'ms'),
		sprintf('%.0f ns an entry', $ns),
		'under 100 ns', $ns < 100 ? 'yes' : 'no'
	  ];
}
my $foot = '';
if (@sizes)
{
	my $from = $more{break_even}{keys};
	$foot .=
	  defined $from
	  ? "`= ANY`: $am is the faster one from $from keys on. "
	  : "`= ANY`: btree is the faster one at every size up to $sizes[-1] keys. ";
}
$foot .= sprintf('The structure in memory takes %.1f bytes an entry.', $more{memory}{bytes_per_entry})
  if $more{memory};
my $text =
	table('lrrrll', @lines) . "\n"
  . ($foot ? paragraph($foot) . "\n" : '')
  . foot($machine, "$rows rows, device $machine->{device}, medians of $machine->{rounds} alternating runs");
publish($dir, 'run', $text, { machine => $machine, figures => \@table, %more });

# Curve of a side and a way, in microseconds a key
sub curve
{
	my ($name, $which, $side, $dashed) = @_;
	my @points = map { [ $_->{keys}, $_->{$which} * 1000 / $_->{keys} ] } @{ $more{break_even}{points} };
	return { name => $name, colour => $colour{$side}, dashed => $dashed, points => \@points };
}

plot_lines(
	"$dir/run-sizes.svg",
	{
		title => "sum(v) where k = ANY(n keys), $rows rows, warm",
		x => 'keys n',
		y => 'microseconds a key',
		log_x => 1,
		log_y => 1,
		curves => [
			curve('btree, index scan', 'bt_index', 'bt', 1),
			curve('btree, bitmap scan', 'bt_bitmap', 'bt', 0),
			curve("$am, index scan", 'gp_index', 'gp', 1),
			curve("$am, bitmap scan", 'gp_bitmap', 'gp', 0)
		]
	}
) if @sizes;

# Times better: what is to be small the other way round
my @groups;
for (grep { defined $_->{ratio} } @table)
{
	my ($ratio, $target) = ($_->{ratio}, $_->{kind} =~ /^(?:below|above)$/ ? undef : $_->{target});
	($ratio, $target) = (1 / max($ratio, 0.01), defined $target ? 1 / $target : undef)
	  if $_->{kind} eq 'part';
	push @groups, [ $_->{work} =~ s/`//gr, $target, $ratio ];
}
plot_bars(
	"$dir/run.svg",
	{
		title => "$am against btree: times better (red: the target)",
		log => 1,
		from => 1,
		series => [ [ $am, $colour{gp} ] ],
		groups => \@groups
	}
) if @groups;
