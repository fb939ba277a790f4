#!/usr/bin/perl
#
# hash_report.pl RAW MACHINE OUT: medians of what bench/hash measured, as a table on standard
# output and as JSON, Markdown and, where gnuplot is found, SVG in the folder OUT.
#
# RAW has lines of section, item, side, round, value, unit; sides are the access methods, and plain.
use strict;
use warnings;
use JSON::PP;

my ($raw, $machine_file, $out) = @ARGV;
my @methods = qw(hash btree gpu_hash);
my (%runs, @items, %machine);

sub lines
{
	my ($file) = @_;
	open my $in, '<', $file or die "$file: $!\n";
	chomp(my @lines = <$in>);
	return @lines;
}

sub median
{
	my @sorted = sort { $a <=> $b } @_;
	return @sorted % 2 ? $sorted[ @sorted / 2 ] : ($sorted[ @sorted / 2 - 1 ] + $sorted[ @sorted / 2 ]) / 2;
}

for (lines($raw))
{
	my ($section, $item, $side, $round, $value, $unit) = split /\t/;
	next if $item =~ / wal$/;
	push @items, $item unless $runs{$item};
	$runs{$item}{unit} = $unit;
	push @{ $runs{$item}{runs}{$side} }, $value + 0;
}
for (lines($machine_file))
{
	my ($name, $value) = split /\t/, $_, 2;
	$machine{$name} = $value =~ /^\d+$/ ? $value + 0 : $value =~ /^\{/ ? decode_json($value) : $value;
}

my %median;
for my $item (@items)
{
	$median{$item}{$_} = median(@{ $runs{$item}{runs}{$_} }) for keys %{ $runs{$item}{runs} };
	# What an index adds
	next unless defined(my $plain = delete $median{$item}{plain});
	$median{$item}{$_} -= $plain for keys %{ $median{$item} };
}

my %titles = (
	any_path => 'set of text keys, = ANY', join_path => 'set of text keys, join with unnest', any_b => 'set of bigint keys, = ANY',
	join_b => 'set of bigint keys, join with unnest', one_path => 'single text keys', one_b => 'single bigint keys');

sub title
{
	my ($item) = @_;
	my $title = $titles{$item} // $item;

	$title =~ s/, path$/, text/;
	$title =~ s/, b$/, bigint/;
	$title =~ s/^INSERT of a tenth/added to INSERT/;
	return $title;
}

sub shown
{
	my ($value, $unit) = @_;

	return '' unless defined $value;
	return sprintf('%.1f MB', $value / 1048576) if $unit eq 'bytes';
	return sprintf($value >= 100 ? '%.0f ms' : $value >= 10 ? '%.1f ms' : '%.2f ms', $value);
}

# How many times the best of an item's forms by an access method gpu_hash's best is worth
sub ratio
{
	my ($item, $method) = @_;
	my @forms = $item =~ /^(?:any|join)_(.*)/ ? ("any_$1", "join_$1") : ($item);
	my ($theirs) = sort { $a <=> $b } grep { defined } map { $median{$_}{$method} } @forms;

	return defined $theirs && $median{$item}{gpu_hash} > 0 ? $theirs / $median{$item}{gpu_hash} : undef;
}

my @rows = ([ 'work', @methods, 'hash / gpu_hash', 'btree / gpu_hash' ]);
my %summary;
for my $item (@items)
{
	my $unit = $runs{$item}{unit};

	push @rows, [ title($item), (map { shown($median{$item}{$_}, $unit) } @methods), map { defined $_ ? sprintf('%.2f', $_) : '' } map { ratio($item, $_) } qw(hash btree) ];
	$summary{$item} = { unit => $unit, runs => $runs{$item}{runs}, median => $median{$item}, ratios => { map { $_ => ratio($item, $_) } qw(hash btree) } };
}

open my $md, '>', "$out/figures.md" or die "$out/figures.md: $!\n";
for my $to (*STDOUT, $md)
{
	print $to "$machine{cpu}, $machine{cpus} CPUs, $machine{memory_mb} MB; $machine{system}; PostgreSQL $machine{postgresql}; gpuds $machine{gpuds};\n$machine{date}. "
	  . "$machine{rows} rows, sets of $machine{keys} keys, $machine{bulk} rows inserted, medians of\n$machine{rounds} rounds. "
	  . "A ratio above 1 means that gpu_hash is faster, or smaller; sets are compared\nwith the better of the two forms. "
	  . "Single keys: a hundredth of a set, in a loop.\n\n";
	for my $i (0 .. $#rows)
	{
		print $to '| ', join(' | ', @{ $rows[$i] }), " |\n";
		print $to '|---|', '--:|' x (@{ $rows[0] } - 1), "\n" if $i == 0;
	}
}
close $md;

open my $js, '>', "$out/hash.json" or die "$out/hash.json: $!\n";
print $js JSON::PP->new->canonical->pretty->indent_length(2)->encode({ machine => \%machine, work => \%summary });
close $js;

my @plotted = grep { $runs{$_}{unit} eq 'ms' } @items;
if (grep { -x "$_/gnuplot" } split /:/, $ENV{PATH})
{
	open my $gnuplot, '|-', 'gnuplot' or die "gnuplot: $!\n";
	print $gnuplot "set encoding utf8\nset terminal svg size 1000,480 font 'sans,12' background 'white'\nset output '$out/hash.svg'\n",
	  "set style data histograms\nset style fill solid 0.8\nset logscale y\nset ylabel 'ms'\nset grid ytics\nset xtics rotate by -30\nset key top right\n",
	  "\$data << END\n", (map { my $item = $_; join("\t", '"' . title($item) . '"', map { defined $median{$item}{$_} && $median{$item}{$_} > 0 ? $median{$item}{$_} : 'NaN' } @methods) . "\n" } @plotted), "END\n",
	  'plot ', join(', ', map { "\$data using " . ($_ + 2) . ($_ == 0 ? ':xtic(1)' : '') . " title '" . ($methods[$_] =~ s/_/ /r) . "'" } 0 .. 2), "\n";
	close $gnuplot or die "gnuplot failed\n";
}
