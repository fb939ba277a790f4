#!/usr/bin/perl
#
# planner_report.pl RAW MACHINE OUT: what the planner's choices of bench/planner cost, as
# grids on standard output, and as JSON and Markdown in the folder OUT.
#
# RAW has lines of place, statement, rows, n, workers, plan, milliseconds, chosen.  MACHINE
# has names and values.
use strict;
use warnings;
use JSON::PP;
use List::Util qw(max min sum);
use Text::Wrap qw(wrap);

$Text::Wrap::columns = 101;    # lines of up to 100

my ($raw, $machine_file, $out) = @ARGV;
my (%cell, %machine, @shapes, %seen);
my $json = JSON::PP->new->canonical->pretty->indent_length(2);

open my $in, '<', $raw or die "$raw: $!\n";
while (<$in>)
{
	chomp;
	my ($place, $shape, $rows, $n, $workers, $plan, $ms, $chosen) = split /\t/;
	push @shapes, [ $shape, $workers ] unless $seen{"$shape\t$workers"}++;
	push @{ $cell{"$shape\t$workers"}{$rows}{$n} }, { plan => $plan, ms => $ms + 0, chosen => $chosen ? JSON::PP::true : JSON::PP::false };
}
close $in;
open $in, '<', $machine_file or die "$machine_file: $!\n";
while (<$in>)
{
	chomp;
	my ($name, $value) = split /\t/, $_, 2;
	$machine{$name} = $value =~ /^\d+$/ ? $value + 0 : $value;
}
close $in;

sub commas { my $n = shift; 1 while $n =~ s/^(\d+)(\d{3})/$1,$2/; return $n; }
sub numerically { return sort { $a <=> $b } @_; }

# Time of the plan that was chosen over that of the best one.  Of times below 50 us nothing can be said.
sub regret
{
	my ($plans) = @_;
	my ($chosen) = grep { $_->{chosen} } @$plans;
	my $best = min(map { $_->{ms} } @$plans);
	my ($first) = grep { $_->{ms} == $best } @$plans;

	return ($chosen, $first, max($chosen->{ms}, 0.05) / max($best, 0.05));
}

my ($text, @wrong, @regrets, @all) = ('');
for (@shapes)
{
	my ($shape, $workers) = @$_;
	my $grid = $cell{"$shape\t$workers"};
	my @n = do { my %n; $n{$_} = 1 for map { keys %$_ } values %$grid; numerically(keys %n) };

	$text .= "**$shape**" . ($workers ? ", up to $workers workers" : '') . "\n\n| rows | " . join(' | ', map { commas($_) } @n) . " |\n|--:" . '|--:' x @n . "|\n";
	for my $rows (numerically(keys %$grid))
	{
		my @line;

		for my $n (@n)
		{
			my $plans = $grid->{$rows}{$n};
			if (!$plans) { push @line, ''; next; }
			my ($chosen, $best, $regret) = regret($plans);
			my $one = {
				statement => $shape, rows => $rows + 0, n => $n + 0, workers => $workers + 0, chosen => $chosen->{plan}, best => $best->{plan},
				ms => $chosen->{ms}, best_ms => $best->{ms}, regret => $regret, plans => $plans
			};
			push @all, $one;
			push @wrong, $one if $regret > 1.2;
			push @regrets, $regret;
			push @line, sprintf($regret > 1.2 ? '**%.2f**' : '%.2f', $regret);
		}
		$text .= '| ' . commas($rows) . ' | ' . join(' | ', @line) . " |\n";
	}
	$text .= "\n";
}

my $summary = wrap('', '', sprintf("%d of %d choices are within 20 %% of the best plan; the geometric mean is %.3f, the worst %.2f.\n",
	@regrets - @wrong, scalar @regrets, exp(sum(map { log } @regrets) / @regrets), max(@regrets)));
if (@wrong)
{
	$summary .= "\n| statement | rows | n | workers | chosen | ms | best | ms | ratio |\n|---|--:|--:|--:|---|--:|---|--:|--:|\n";
	$summary .= join('', map {
			sprintf("| %s | %s | %s | %d | %s | %.3g | %s | %.3g | %.2f |\n", $_->{statement}, commas($_->{rows}), commas($_->{n}), $_->{workers},
				$_->{chosen}, $_->{ms}, $_->{best}, $_->{best_ms}, $_->{regret})
		} sort { $b->{regret} <=> $a->{regret} } @wrong);
}
my $foot = wrap('', '', "$machine{cpu}, $machine{cpus} CPUs, $machine{memory_mb} MB, $machine{system}, PostgreSQL $machine{postgresql}; "
  . "device $machine{device}, $machine{date}.\n");

sub write_file
{
	my ($name, $content) = @_;
	open my $fh, '>', "$out/$name" or die "$out/$name: $!\n";
	print $fh $content;
	close $fh or die "$out/$name: $!\n";
	return;
}

write_file('summary.json', $json->encode({ machine => \%machine, cells => \@all }));
write_file('figures.md', "Time of the chosen plan over that of the best one, by the table's rows and by n.\n\n$text$summary\n$foot");
print "$text$summary\n$foot\nWritten to $out.\n";
