#!/usr/bin/perl
#
# planner_report.pl DIR: what the planner's choices of bench/planner cost, of what it left in DIR, as grids on
# standard output, and as planner.md and planner.json in DIR.
#
# Lines of raw.tsv have place, statement, rows, n, workers, plan, milliseconds, chosen.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use List::Util qw(max min sum);
use Report;

my ($dir) = @ARGV;
my $machine = read_machine($dir);
my (%cell, @statements, %seen);

for (lines("$dir/raw.tsv"))
{
	my (undef, $statement, $rows, $n, $workers, $plan, $ms, $chosen) = split /\t/;
	push @statements, [ $statement, $workers ] unless $seen{$statement}{$workers}++;
	push @{ $cell{$statement}{$workers}{$rows}{$n} }, { plan => $plan, ms => $ms + 0, chosen => $chosen };
}

# What is known of a cell: the regret is the time of the plan that was chosen over that of the best one.  Of
# times below 50 us nothing can be said.
sub known
{
	my ($statement, $workers, $rows, $n) = @_;
	my $plans = $cell{$statement}{$workers}{$rows}{$n} or return;
	my ($chosen) = grep { $_->{chosen} } @$plans;
	my ($best) = sort { $a->{ms} <=> $b->{ms} } @$plans;

	return {
		statement => $statement,
		rows => $rows + 0,
		n => $n + 0,
		workers => $workers + 0,
		chosen => $chosen->{plan},
		best => $best->{plan},
		ms => $chosen->{ms},
		best_ms => $best->{ms},
		regret => max($chosen->{ms}, 0.05) / max($best->{ms}, 0.05)
	};
}

my ($text, @all) = ("Time of the chosen plan over that of the best one, by the table's rows and by n.\n\n");
for (@statements)
{
	my ($statement, $workers) = @$_;
	my $grid = $cell{$statement}{$workers};
	my @n = do
	{
		my %n;
		$n{$_} = 1 for map { keys %$_ } values %$grid;
		numerically(keys %n);
	};
	my @table = ([ 'rows', map { commas($_) } @n ]);

	for my $rows (numerically(keys %$grid))
	{
		my @cells = map { known($statement, $workers, $rows, $_) // undef } @n;

		push @all, grep { defined } @cells;
		push @table,
		  [
			commas($rows),
			map { !$_ ? '' : sprintf($_->{regret} > 1.2 ? '**%.2f**' : '%.2f', $_->{regret}) } @cells
		  ];
	}
	$text .=
		"**$statement**"
	  . ($workers ? ", up to $workers workers" : '') . "\n\n"
	  . table('r' x @{ $table[0] }, @table) . "\n";
}

my @wrong = sort { $b->{regret} <=> $a->{regret} } grep { $_->{regret} > 1.2 } @all;
my @regrets = map { $_->{regret} } @all;
my %summary = (
	choices => scalar @all,
	good => @all - @wrong,
	geometric_mean => exp(sum(map { log } @regrets) / @regrets),
	worst => max(@regrets)
);
$text .= paragraph(
	sprintf('%d of %d choices are within 20 %% of the best plan; the geometric mean is %.3f, the worst %.2f.',
		@summary{qw(good choices geometric_mean worst)})
) . "\n";
$text .= table(
	'lrrrlrlrr',
	[qw(statement rows n workers chosen ms best ms ratio)],
	map {
		[
			$_->{statement}, commas($_->{rows}),
			commas($_->{n}), $_->{workers},
			$_->{chosen}, sprintf('%.3g', $_->{ms}),
			$_->{best}, sprintf('%.3g', $_->{best_ms}),
			sprintf('%.2f', $_->{regret})
		]
	} @wrong
  )
  . "\n"
  if @wrong;
$text .= foot($machine, "device $machine->{device}");
publish($dir, 'planner', $text, { machine => $machine, summary => \%summary, worse_than_best => \@wrong });
