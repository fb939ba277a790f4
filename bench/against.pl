#!/usr/bin/perl
#
# against.pl DIR TIMES TOLERANCE: what bench/against prints.  DIR has folders
# old1, new1, old2, ... with a summary.json each.
use strict;
use warnings;
use JSON::PP;
use Text::Wrap qw(wrap);

$Text::Wrap::columns = 101;    # lines of up to 100

my ($dir, $times, $tolerance) = @ARGV;
my (%values, %kind, %unit, @works, $machine);

sub median
{
	my @sorted = sort { $a <=> $b } @_;
	return @sorted % 2 ? $sorted[ @sorted / 2 ] : ($sorted[ @sorted / 2 - 1 ] + $sorted[ @sorted / 2 ]) / 2;
}

# What bench/mixed writes, as the others do: a work on a device; where it was compared with itself
# without writers, the figure beside them.
sub figures_of_mixed
{
	my ($summary) = @_;
	my @figures;

	push @figures, { %$_, work => "$_->{work} ($_->{device})", btree => $_->{first}, gpu_btree => $_->{second} }
	  for @{ $summary->{against_btree} };
	push @figures, { %$_, work => "$_->{work} ($_->{device}), beside writers", gpu_btree => $_->{second} }
	  for @{ $summary->{against_no_writers} };
	return \@figures;
}

for my $tree (qw(old new))
{
	for my $i (1 .. $times)
	{
		my $file = "$dir/$tree$i/summary.json";
		open my $in, '<', $file or die "$file: $!\n";
		my $summary = decode_json(do { local $/; <$in> });
		close $in;
		$machine //= $summary->{machine};
		for my $figure (@{ $summary->{figures} // figures_of_mixed($summary) })
		{
			my $work = $figure->{work};
			push @works, $work unless exists $kind{$work};
			$kind{$work} = $figure->{kind};
			$unit{$work} = $figure->{unit};
			for my $side (qw(btree gpu_btree))
			{
				push @{ $values{$work}{$tree}{$side} }, $figure->{$side} if defined $figure->{$side};
			}
		}
		if ($summary->{load})
		{
			my $work = 'first query after a restart';
			push @works, $work unless exists $kind{$work};
			@kind{$work} = 'faster';
			@unit{$work} = 'ms';
			push @{ $values{$work}{$tree}{gpu_btree} }, $summary->{load}{first_query_ms};
			push @{ $values{$work}{$tree}{btree} }, $summary->{load}{btree_first_query_ms};
		}
	}
}

# How many times better the new tree is on a side; undef: not known.
sub gain
{
	my ($work, $side) = @_;
	my ($old, $new) = map { $values{$work}{$_}{$side} } qw(old new);
	return undef unless $old && $new;
	($old, $new) = (median(@$old), median(@$new));
	return undef unless $old > 0 && $new > 0;
	return $kind{$work} =~ /^(rate|above)$/ ? $new / $old : $old / $new;
}

my @worse;
my $text = sprintf("| %-72s | %12s | %12s | %6s | %6s | |\n", 'work', 'old', 'new', 'gain', 'btree');
$text .= '|' . '-' x 74 . '|' . ('-' x 13 . ':|') x 2 . ('-' x 7 . ':|') x 2 . "---|\n";
for my $work (@works)
{
	my ($gain, $noise) = map { gain($work, $_) } qw(gpu_btree btree);
	next unless defined $gain;
	my $mark = $gain < 1 - $tolerance / 100 ? 'worse' : '';
	push @worse, $work if $mark;
	$text .= sprintf("| %-72s | %12s | %12s | %6s | %6s | %s |\n", $work,
		(map { sprintf('%.4g %s', median(@{ $values{$work}{$_}{gpu_btree} }), $unit{$work}) } qw(old new)),
		sprintf('%.2fx', $gain), defined $noise ? sprintf('%.2fx', $noise) : '', $mark);
}
print $text;
print "\n",
  wrap('', '',
	sprintf("%s, %d CPUs, PostgreSQL %s, %s rows; medians of %d runs each, alternating. Worse by more than %g %%: %d.\n",
		@$machine{qw(cpu cpus postgresql rows)}, $times, $tolerance, scalar @worse));
