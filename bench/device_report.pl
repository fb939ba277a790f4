#!/usr/bin/perl
#
# device_report.pl DIR: what bench/device measured, of DIR/device.tsv, as a table on standard output, and as
# device.md, device.json and device.svg in DIR.
#
# Lines of device.tsv have work, value, unit, target (0: none), "most" or "least", ms, bytes, answers checked;
# those about the machine have #name and value.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Report;

my ($dir) = @ARGV;
my (%machine, @rows);

for (lines("$dir/device.tsv"))
{
	my ($work, $value, $unit, $target, $bound, $ms, $bytes, $checked) = split /\t/;

	if ($work =~ s/^#//)
	{
		$machine{$work} = $work =~ /^(card|driver|runtime|seed)$/ ? $value : $value + 0;
		next;
	}
	my %row = (work => $work, value => $value + 0, unit => $unit);
	if ($target > 0)
	{
		$row{target} = $target + 0;
		$row{target_is} = $bound eq 'most' ? 'at most' : 'at least';
		$row{reached} = bool($bound eq 'most' ? $value <= $target : $value >= $target);
	}
	$row{ms} = $ms + 0 if $ms > 0;
	@row{qw(bytes tb_s)} = ($bytes + 0, $bytes / $ms / 1e9) if $bytes > 0 && $ms > 0;
	$row{answers_checked} = $checked + 0 if $checked > 0;
	push @rows, \%row;
}

my @lines = ([ 'work', 'figure', 'target', 'reached', 'TB/s' ]);
for (@rows)
{
	push @lines,
	  [
		$_->{work},
		figure($_->{value}, $_->{unit}),
		defined $_->{target}
		? ("$_->{target_is} $_->{target} $_->{unit}", $_->{reached} ? 'yes' : 'no')
		: ('', ''),
		defined $_->{tb_s} ? sprintf('%.2f', $_->{tb_s}) : ''
	  ];
}
my $foot =
	"$machine{card}, driver for CUDA $machine{driver}, built with CUDA $machine{runtime}; "
  . commas($machine{entries})
  . ' entries, '
  . commas($machine{probes})
  . " probes, medians of $machine{rounds} runs, seed $machine{seed}. "
  . "Every answer was compared with the CPU's. TB/s: bytes that the work must at least move, each line read "
  . "once a probe, over its time; a copy inside the device gets $machine{copy_tb_s} TB/s (read and written).";
publish(
	$dir, 'device',
	table('lrllr', @lines) . "\n" . paragraph($foot),
	{ machine => \%machine, figures => \@rows }
);
plot_bars(
	"$dir/device.svg",
	{
		title => "$machine{card}, "
		  . commas($machine{entries})
		  . ' entries: billions a second (red: the target)',
		log => 1,
		series => [ [ 'device', $colour{cpu} ] ],
		groups => [ map { [ $_->{work}, $_->{target}, $_->{value} ] } grep { $_->{unit} eq 'G/s' } @rows ]
	}
);
