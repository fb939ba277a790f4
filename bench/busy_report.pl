#!/usr/bin/perl
#
# busy_report.pl DIR: what bench/busy measured, of what it left in DIR, as tables on standard output, and as
# busy.md, busy.json and the plot busy.svg in DIR.
#
# Sections of raw.tsv are states of a table, items are works; "WORK first" is the first query after the table
# has come into the state.  The sides are bt (btree), gp (the other access method), and off (the same without
# page states).
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Report;

my ($dir) = @ARGV;
my $machine = read_machine($dir);
my ($runs) = read_runs($dir);
my $am = $machine->{access_method};
my $keys = commas($machine->{keys});
my %name = (bt => 'btree', gp => $am, off => "$am, no page states");
my @sides = grep {
	my $side = $_;
	grep { $_->{$side} } map { values %$_ } values %$runs
} qw(bt gp off);
my @ours = grep { $_ ne 'bt' } @sides;

my @works = (
	[ days => 'count and sum of all by day' ],
	[ days_10 => 'the same of 10 %, neighbours in the table' ],
	[ count_10 => 'count of 10 %, all over the table' ],
	[ any => "count of `= ANY` ($keys)" ],
	[ semi => "semi-join of $keys, counted" ],
	[ contains => "gpuds_contains of $keys (btree: `EXISTS`)" ],
	[ between => 'gpuds_count of 10 % (btree: `count(*)`)' ],
	[ four => 'count of four keys, prepared' ],
);
my @states = (
	[ rest => 'at rest' ],
	[ few => '0.05 % updated' ],
	[ more => '0.55 % updated' ],
	[ writers => 'beside 2 writers' ],
	[ old => 'older than 0.05 %' ],
	[ standby_rest => 'standby, at rest' ],
	[ standby_writers => 'standby, 2 writers' ],
);
# States in which nothing was measured are not shown.
@states = grep { $runs->{ $_->[0] }{days} } @states;

sub value { my ($state, $item, $side) = @_; return $runs->{$state}{$item}{$side}{median}; }

# ratio(A, B): undefined without both
sub ratio { my ($x, $y) = @_; return defined $x && defined $y && $y > 0 ? $x / $y : undef; }

sub multiple { my ($ratio) = @_; return defined $ratio ? figure($ratio) . 'x' : ''; }

# What is known of each work in each state.  Beside writers there is no first query: each meets new changes.
my @lines;
for my $work (@works)
{
	for my $state (@states)
	{
		my ($item, $where) = ($work->[0], $state->[0]);
		my %line = (work => $work->[1], state => $state->[1]);

		for my $side (@sides)
		{
			my $ms = value($where, $item, $side);
			next unless defined $ms;
			$line{$side} = {
				ms => $ms,
				first_ms => $where =~ /^(few|more|old)$/ ? value($where, "$item first", $side) : undef,
				to_rest => ratio($ms, value($where =~ /^standby/ ? 'standby_rest' : 'rest', $item, $side)),
				to_btree => $side eq 'bt' ? undef : ratio(value($where, $item, 'bt'), $ms)
			};
		}
		push @lines, \%line if $line{bt} || $line{gp};
	}
}

# The table in short: milliseconds, with btree's beside them
sub grid
{
	my ($side) = @_;
	my @rows = ([ "$name{$side}, ms (btree)", map { $_->[1] } @states ]);

	for my $work (@works)
	{
		my @cells = map {
			my $line = $_;
			!$line || !$line->{$side}
			  ? ''
			  : figure($line->{$side}{ms}) . ' ('
			  . figure($line->{bt}{ms}) . ')'
		  }
		  map {
			my $state = $_->[1];
			my @found = grep { $_->{work} eq $work->[1] && $_->{state} eq $state } @lines;
			$found[0]
		  } @states;
		push @rows, [ $work->[1], @cells ] if grep { $_ ne '' } @cells;
	}
	return @rows > 1 ? table('l' . 'r' x @states, @rows) . "\n" : '';
}

my $text = join '', map { grid($_) } @ours;
if (@lines)
{
	my @rows =
	  ([ 'work', 'state', 'btree', map({ ($name{$_}, 'ratio', 'to rest') } @ours), 'btree to rest' ]);

	for my $line (@lines)
	{
		push @rows,
		  [
			@$line{qw(work state)},
			figure($line->{bt}{ms}, 'ms'),
			map({ (
						figure($line->{$_}{ms}, 'ms'),
						multiple($line->{$_}{to_btree}),
						multiple($line->{$_}{to_rest})
			) } @ours),
			multiple($line->{bt}{to_rest})
		  ];
	}
	$text .= "*ratio*: btree's time over the index's; *to rest*: a time over the one at rest.\n\n"
	  . table('llr' . 'rrr' x @ours . 'r', @rows) . "\n";
}

my @firsts = grep { defined $_->{gp}{first_ms} || defined $_->{off}{first_ms} } @lines;
if (@firsts)
{
	my @rows =
	  ([ 'first query after the change', 'state', 'btree', map { ($name{$_}, 'those after it') } @ours ]);

	for my $line (@firsts)
	{
		push @rows,
		  [
			@$line{qw(work state)},
			figure($line->{bt}{first_ms}, 'ms'),
			map({ (figure($line->{$_}{first_ms}, 'ms'), figure($line->{$_}{ms}, 'ms')) } @ours)
		  ];
	}
	$text .=
		paragraph('Works run in this order, so what a work has learned of a page is known to those below.')
	  . "\n"
	  . table('llr' . 'rr' x @ours, @rows) . "\n";
}

my @updates;
for my $item ('alone', 'with a reader')
{
	my @values = map { value('writers', $item, $_) } @sides;
	push @updates, { reader => bool($item ne 'alone'), map { $sides[$_] => $values[$_] } 0 .. $#sides }
	  if grep { defined } @values;
}
if (@updates)
{
	$text .= table(
		'l' . 'r' x @sides,
		[ 'updates of 2 writers, a second', map { $name{$_} } @sides ],
		map {
			my $line = $_;
			[ $line->{reader} ? 'with a reader' : 'alone', map { figure($line->{$_}) } @sides ]
		} @updates
	) . "\n";
}

my %answers;
for my $side (@ours)
{
	my %count = map { $_ => value('answers', $_, $side) } qw(transactions compared wrong);
	next unless defined $count{compared};
	$answers{$side} = \%count;
	$text .= paragraph(
		sprintf
		  '%s: %s answers compared in %s transactions beside writers that insert, update, delete and '
		  . 'roll back, and VACUUM; %s wrong.',
		$name{$side}, commas($count{compared}), commas($count{transactions}), $count{wrong}
	) . "\n";
}

my $states_memory = $machine->{settings}{'gpuds.visibility_memory'} // 'none';
$text .= foot($machine,
		commas($machine->{rows})
	  . " rows, device $machine->{device}, page states: $states_memory, "
	  . "medians of $machine->{rounds} alternating rounds");
publish($dir, 'busy', $text,
	{ machine => $machine, works => \@lines, updates => \@updates, answers => \%answers });

plot_bars(
	"$dir/busy.svg",
	{
		title => "$am and btree on tables that change",
		x => 'milliseconds',
		log => 1,
		series => [
			map { [ $name{$_}, { bt => $colour{bt}, gp => $colour{gp}, off => $colour{cuda} }->{$_} ] }
			  @sides
		],
		groups => [
			map {
				my $line = $_;
				[ "$line->{work}, $line->{state}" =~ tr/`//dr, undef, map { $line->{$_}{ms} } @sides ]
			} @lines
		]
	}
) if @lines;
