#!/usr/bin/perl
#
# against.pl DIR PROGRAM TIMES TOLERANCE: what bench/against prints.  DIR has folders old1, new1, old2, ...
# with the figures of the program: PROGRAM.json, or summary.json, as it was called in former commits.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Report;

my ($dir, $program, $times, $tolerance) = @ARGV;
my (%values, %kind, %unit, @works, $machine);

# The figures of a run, each with work, kind, unit, btree and gpu_btree, whatever the program calls them.
# bench/mixed has works on devices, of which some are compared with themselves without writers; bench/batch
# has works on devices by workers.
sub figures_of
{
	my ($summary) = @_;
	my @figures = @{ $summary->{figures} // [] };

	for (@{ $summary->{against_btree} // [] })
	{
		my %figure = (
			%$_,
			work => "$_->{work} ($_->{device})",
			kind => $_->{kind} // ($_->{unit} eq 'tps' ? 'rate' : 'faster')
		);

		$figure{work} .= ", $_->{workers} workers" if $_->{workers};
		@figure{qw(btree gpu_btree)} = @$_{qw(first second)} if defined $_->{first};
		push @figures, \%figure;
	}
	push @figures, { %$_, work => "$_->{work} ($_->{device}), beside writers", gpu_btree => $_->{second} }
	  for @{ $summary->{against_no_writers} // [] };
	push @figures,
	  {
		work => 'first query after a restart',
		kind => 'faster',
		unit => 'ms',
		gpu_btree => $summary->{load}{first_query_ms},
		btree => $summary->{load}{btree_first_query_ms}
	  }
	  if $summary->{load};
	# As bench/gpu called it
	s/^(index side .*) \(bitmap\)$/$1 (btree: bitmap)/ for map { $_->{work} } @figures;
	return @figures;
}

for my $tree (qw(old new))
{
	for my $i (1 .. $times)
	{
		# Former commits have a file for each section, too, and one of bench/mixed's is "mixed".
		my ($file) = grep { -e $_ } map { "$dir/$tree$i/$_.json" } 'summary', $program;
		die "$dir/$tree$i has no figures\n" unless $file;
		my $summary = read_json($file);

		$machine //= $summary->{machine};
		for my $figure (figures_of($summary))
		{
			my $work = $figure->{work};

			push @works, $work unless exists $kind{$work};
			($kind{$work}, $unit{$work}) = @$figure{qw(kind unit)};
			for my $side (grep { defined $figure->{$_} } qw(btree gpu_btree))
			{
				push @{ $values{$work}{$tree}{$side} }, $figure->{$side};
			}
		}
	}
}

# How many times better the new tree is on a side; undefined: not known.
sub gain
{
	my ($work, $side) = @_;
	my ($old, $new) = map { median(@{ $values{$work}{$_}{$side} // [] }) } qw(old new);

	return undef unless $old && $new && $old > 0 && $new > 0;
	return $kind{$work} =~ /^(rate|above)$/ ? $new / $old : $old / $new;
}

my @rows = ([ 'work', 'old', 'new', 'gain', 'btree', '' ]);
for my $work (@works)
{
	my ($gain, $noise) = map { gain($work, $_) } qw(gpu_btree btree);

	next unless defined $gain;
	push @rows,
	  [
		$work,
		map({ figure(median(@{ $values{$work}{$_}{gpu_btree} }), $unit{$work}) } qw(old new)),
		map({ defined $_ ? sprintf('%.2fx', $_) : '' } $gain, $noise),
		$gain < 1 - $tolerance / 100 ? 'worse' : ''
	  ];
}
print table('lrrrrl', @rows), "\n",
  paragraph(
	sprintf(
		'%s, %d CPUs, PostgreSQL %s, %s rows; medians of %d runs each, alternating. '
		  . 'Worse by more than %g %%: %d.',
		@$machine{qw(cpu cpus postgresql rows)}, $times,
		$tolerance, scalar grep { $_->[5] eq 'worse' } @rows
	)
  );
