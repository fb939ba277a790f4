#!/usr/bin/perl
#
# device_report.pl RAW OUT: what bench/device measured, as a table on standard
# output, and as device.json, device.md and device.svg in the folder OUT.
#
# RAW has lines of work, value, unit, target (0: none), "most" or "least", ms, bytes,
# answers checked; and lines of #name, value about the machine.
use strict;
use warnings;
use JSON::PP;
use List::Util qw(max);
use Text::Wrap qw(wrap);

$Text::Wrap::columns = 101;    # lines of up to 100

my ($raw, $out) = @ARGV;
my (%machine, @rows);

open my $in, '<', $raw or die "$raw: $!\n";
while (<$in>)
{
	chomp;
	my @field = split /\t/;
	if ((my $name = $field[0]) =~ s/^#//)
	{
		$machine{$name} = $name =~ /^(card|driver|runtime|seed)$/ ? $field[1] : $field[1] + 0;
		next;
	}
	my %row = (work => $field[0], value => $field[1] + 0, unit => $field[2]);
	if ($field[3] > 0)
	{
		$row{target} = $field[3] + 0;
		$row{target_is} = $field[4] eq 'most' ? 'at most' : 'at least';
		$row{reached} = ($field[4] eq 'most' ? $row{value} <= $row{target} : $row{value} >= $row{target})
		  ? JSON::PP::true : JSON::PP::false;
	}
	$row{ms} = $field[5] + 0 if $field[5] > 0;
	if ($field[6] > 0 && $field[5] > 0)
	{
		$row{bytes} = $field[6] + 0;
		$row{tb_s} = $field[6] / $field[5] / 1e9;
	}
	$row{answers_checked} = $field[7] + 0 if $field[7] > 0;
	push @rows, \%row;
}
close $in;

sub number
{
	my $v = shift;
	return sprintf($v == 0 ? '%.0f' : abs($v) >= 100 ? '%.0f' : abs($v) >= 10 ? '%.1f' : '%.2f', $v);
}

sub commas { my $n = shift; 1 while $n =~ s/^(\d+)(\d{3})/$1,$2/; return $n; }

sub write_file
{
	my ($name, $text) = @_;
	open my $fh, '>', "$out/$name" or die "$out/$name: $!\n";
	print $fh $text;
	close $fh or die "$out/$name: $!\n";
}

write_file('device.json',
	JSON::PP->new->canonical->pretty->indent_length(2)->encode({ machine => \%machine, figures => \@rows }));

my @lines = ([ 'work', 'figure', 'target', 'reached', 'TB/s' ]);
for (@rows)
{
	push @lines,
	  [
		$_->{work}, number($_->{value}) . " $_->{unit}",
		defined $_->{target} ? "$_->{target_is} $_->{target} $_->{unit}" : '',
		defined $_->{target} ? ($_->{reached} ? 'yes' : 'no') : '', defined $_->{tb_s} ? sprintf('%.2f', $_->{tb_s}) : ''
	  ];
}
my @width = map { my $c = $_; max(map { length $_->[$c] } @lines) } 0 .. 4;
my $text = '';
for my $i (0 .. $#lines)
{
	my @cells = map { sprintf($_ == 1 || $_ == 4 ? '%*s' : '%-*s', $width[$_], $lines[$i][$_]) } 0 .. 4;
	$text .= '| ' . join(' | ', @cells) . " |\n";
	$text .= '|' . join('|', map { '-' x ($width[$_] + 1) . ($_ == 1 || $_ == 4 ? ':' : '-') } 0 .. 4) . "|\n" if $i == 0;
}
my $foot = wrap('', '', "$machine{card}, driver for CUDA $machine{driver}, built with CUDA $machine{runtime}; " . commas($machine{entries})
  . ' entries, ' . commas($machine{probes}) . " probes, medians of $machine{rounds} runs, seed $machine{seed}. "
  . "Every answer was compared with the CPU's. TB/s: bytes that the work must at least move, each line read once "
  . "a probe, over its time; a copy inside the device gets $machine{copy_tb_s} TB/s (read and written).\n");
write_file('device.md', "$text\n$foot");
print "\n$text\n$foot\nWritten to $out.\n";

exit 0 unless grep { -x "$_/gnuplot" } split /:/, $ENV{PATH};
my ($data, $n) = ('', 0);
for (reverse grep { $_->{unit} eq 'G/s' } @rows)
{
	$data .= sprintf("%d %.4f %s \"%s\"\n", ++$n, $_->{value}, $_->{target} // 'NaN', $_->{work});
}
my $height = 110 + 26 * $n;
open my $gnuplot, '|-', 'gnuplot' or die "gnuplot: $!\n";
print $gnuplot <<END;
set encoding utf8
\$data << EOD
${data}EOD
set terminal svg size 1060,$height font "sans,12" background "white" noenhanced
set output "$out/device.svg"
set tmargin 3
set label "$machine{card}, @{[commas($machine{entries})]} entries: billions a second (red: the target)" at screen 0.5, graph 1 center offset 0, 1.2
set yrange [0.3:$n.7]
set xrange [0:*]
set rmargin 4
set grid x
unset key
set boxwidth 0.6
plot \$data using (0):1:(0):2:(\$1-0.3):(\$1+0.3):yticlabels(4) with boxxyerror fs solid 0.8 lc rgb "#2f8f4e", \\
     \$data using 3:1:(\$3-0.06):(\$3+0.06):(\$1-0.4):(\$1+0.4) with boxxyerror fs solid noborder lc rgb "#c53030"
END
close $gnuplot or die "gnuplot failed\n";
