# Report.pm: what the report programs of bench share: reading a run's values, medians, numbers for
# people, tables as Markdown, JSON, and plots as SVG.
#
# A run leaves two files in a directory: raw.tsv, whose lines are section, item, side, round, value and
# unit, and machine.tsv, whose lines are a name and a value.  A report adds its Markdown, its JSON and
# plots to them.  The SVG is made here, so that a report needs nothing but Perl.
package Report;

use strict;
use warnings;
use Exporter qw(import);
use JSON::PP;
use List::Util qw(max min);
use Text::Wrap ();

our @EXPORT = qw(lines read_machine read_runs read_json median commas figure megabytes bool numerically
  table paragraph foot write_file write_json publish plot_lines plot_bars %colour);

# The colours of the sides, in all plots
our %colour = (
	bt => '#52606d',
	btree => '#52606d',
	hash => '#9aa5b1',
	gist => '#52606d',
	cpu => '#2f8f4e',
	gp => '#2f8f4e',
	gpu_btree => '#2f8f4e',
	auto => '#2b6cb0',
	gpu_skiplist => '#2b6cb0',
	cuda => '#b7791f',
	gpu_hash => '#b7791f',
	gpu_avl => '#805ad5',
	target => '#c53030'
);

#
# Reading
#

# lines(FILE): its lines, without their ends.
sub lines
{
	my ($file) = @_;
	open my $in, '<', $file or die "$file: $!\n";
	chomp(my @lines = <$in>);
	close $in;
	return @lines;
}

# read_machine(DIR): what machine.tsv says.  Whole numbers are numbers, and what begins with a brace is JSON.
sub read_machine
{
	my ($dir) = @_;
	my %machine;

	for (lines("$dir/machine.tsv"))
	{
		my ($name, $value) = split /\t/, $_, 2;
		$machine{$name} = $value =~ /^\d+$/ ? $value + 0 : $value =~ /^\{/ ? decode_json($value) : $value;
	}
	return \%machine;
}

# read_runs(DIR): the values of raw.tsv as {section}{item}{side}, each with runs, median and unit.  A value of
# the unit "plan" is the side's plan, and one of the unit "text" its text.  Also the items, in their order.
sub read_runs
{
	my ($dir) = @_;
	my (%runs, @items, %seen);

	for (lines("$dir/raw.tsv"))
	{
		my ($section, $item, $side, undef, $value, $unit) = split /\t/;
		my $entry = $runs{$section}{$item}{$side} //= {};

		push @items, [ $section, $item ] unless $seen{$section}{$item}++;
		if ($unit eq 'plan' || $unit eq 'text') { $entry->{$unit} = $value; next; }
		push @{ $entry->{runs} }, $value + 0;
		$entry->{unit} = $unit;
	}
	for my $entry (map { values %$_ } map { values %$_ } values %runs)
	{
		$entry->{median} = median(@{ $entry->{runs} }) if $entry->{runs};
	}
	return (\%runs, @items);
}

# read_json(FILE): its value.
sub read_json
{
	my ($file) = @_;
	return decode_json(join "\n", lines($file));
}

#
# Numbers
#

# median(NUMBER ...): undefined if there are none.
sub median
{
	my @sorted = numerically(@_);
	return undef unless @sorted;
	return @sorted % 2 ? $sorted[ $#sorted / 2 ] : ($sorted[ @sorted / 2 - 1 ] + $sorted[ @sorted / 2 ]) / 2;
}

# commas(NUMBER): 1234567 as 1,234,567.
sub commas
{
	my ($n) = @_;
	1 while $n =~ s/^(-?\d+)(\d{3})/$1,$2/;
	return $n;
}

# figure(NUMBER, UNIT): three digits, or all before the point, and the unit; nothing for what is undefined.
sub figure
{
	my ($v, $unit) = @_;
	return '' unless defined $v;
	my $text =
		$v == 0    ? '0'
	  : $v >= 1000 ? commas(sprintf('%.0f', $v))
	  : sprintf($v >= 100 ? '%.0f' : $v >= 10 ? '%.1f' : '%.3g', $v);
	return defined $unit && $unit ne '' ? "$text $unit" : $text;
}

# megabytes(BYTES): undefined for what is undefined.
sub megabytes { my ($bytes) = @_; return defined $bytes ? $bytes / 1e6 : undef; }

# bool(CONDITION): for JSON; undefined stays so.
sub bool { my ($is) = @_; return defined $is ? ($is ? JSON::PP::true : JSON::PP::false) : undef; }

# numerically(NUMBER ...): sorted.
sub numerically
{
	return sort { $a <=> $b } @_;
}

#
# Writing
#

# table(ALIGNMENT, ROW ...): a Markdown table that reads as plain text, too.  A row is a reference to its
# cells, the first has the headings; the alignment has an "l" or an "r" for each column.
sub table
{
	my ($alignment, @rows) = @_;
	my @left = map { $_ eq 'l' } split //, $alignment;
	my @columns = 0 .. $#left;
	my @width = map {
		my $c = $_;
		max(3, map { length($_->[$c] // '') } @rows)
	} @columns;
	my $text = '';

	for my $i (0 .. $#rows)
	{
		my @cells = map { sprintf($left[$_] ? '%-*s' : '%*s', $width[$_], $rows[$i][$_] // '') } @columns;
		$text .= '| ' . join(' | ', @cells) . " |\n";
		$text .= '|' . join('|', map { '-' x ($width[$_] + 1) . ($left[$_] ? '-' : ':') } @columns) . "|\n"
		  if $i == 0;
	}
	return $text;
}

# paragraph(TEXT): in lines of up to 100 columns.
sub paragraph
{
	my ($text) = @_;
	local $Text::Wrap::columns = 101;
	return Text::Wrap::wrap('', '', "$text\n");
}

# foot(MACHINE, WORDS): the paragraph below each table: the machine, the words, the date and the command.
sub foot
{
	my ($m, $words) = @_;
	my $by = defined $m->{command} ? " By `$m->{command}`." : '';
	return paragraph(
		"$m->{cpu}, $m->{cpus} CPUs, $m->{memory_mb} MB, $m->{system}, PostgreSQL $m->{postgresql}; $words, "
		  . "$m->{date}.$by");
}

# write_file(FILE, TEXT): the text is all that the file has.
sub write_file
{
	my ($file, $text) = @_;
	open my $out, '>', $file or die "$file: $!\n";
	print $out $text;
	close $out or die "$file: $!\n";
	return;
}

# write_json(FILE, VALUE): a hash, of which each element of a list or a hash has a line, so that files are
# short.
sub write_json
{
	my ($file, $value) = @_;
	my $json = JSON::PP->new->canonical->allow_nonref;
	my @members;

	for my $name (sort keys %$value)
	{
		my $member = $value->{$name};
		my ($open, $close, @elements) =
			ref $member eq 'ARRAY' ? ('[', ']', map { $json->encode($_) } @$member)
		  : ref $member eq 'HASH'
		  ? ('{', '}', map { "\"$_\": " . $json->encode($member->{$_}) } sort keys %$member)
		  : ('', '', $json->encode($member));
		push @members, "\"$name\": "
		  . (@elements > 1 ? "$open\n  " . join(",\n  ", @elements) . "\n $close" : "$open@elements$close");
	}
	write_file($file, "{\n " . join(",\n ", @members) . "\n}\n");
	return;
}

# publish(DIR, NAME, TEXT, VALUE): the Markdown file NAME has the text, which is also printed, and the JSON
# file the value.
sub publish
{
	my ($dir, $name, $text, $value) = @_;
	write_file("$dir/$name.md", $text);
	write_json("$dir/$name.json", $value);
	print "\n$text\nWritten to $dir: $name.md, $name.json and what they are made of.\n";
	return;
}

#
# Plots
#

# escaped(TEXT): for XML.
sub escaped
{
	my ($text) = @_;
	my %entity = ('&' => '&amp;', '<' => '&lt;', '>' => '&gt;');
	return $text =~ s/([&<>])/$entity{$1}/gr;
}

# svg_text(X, Y, ANCHOR, TEXT, MORE): one text; the anchor is start, middle or end, MORE further attributes.
sub svg_text
{
	my ($x, $y, $anchor, $text, $more) = @_;
	return sprintf(
		qq{<text x="%g" y="%g" text-anchor="%s"%s>%s</text>\n},
		$x, $y, $anchor, $more // '',
		escaped($text)
	);
}

# svg_document(WIDTH, HEIGHT, BODY): the file.
sub svg_document
{
	my ($width, $height, $body) = @_;
	return
	  qq{<svg xmlns="http://www.w3.org/2000/svg" width="$width" height="$height" }
	  . qq{font-family="sans-serif" font-size="12">\n}
	  . qq{<rect width="$width" height="$height" fill="white"/>\n$body</svg>\n};
}

# axis(LOG, START, VALUE ...): an axis from the least to the largest of the values.  Returns a function that
# says where a value lies, as a part of the axis, and the values that are written at it.  LOG: it is
# logarithmic, and then values are above zero.  START: a value that the axis has, too, or undefined.
sub axis
{
	my ($log, $start, @values) = @_;
	my ($low, $high) = (min(@values, $start // ()), max(@values, $start // ()));
	my @ticks;

	if ($log)
	{
		my @steps = log($high / $low) / log(10) > 3 ? (1) : (1, 2, 5);
		for my $power (floor(log($low) / log(10)) .. floor(log($high) / log(10)) + 1)
		{
			push @ticks, map { $_ * 10**$power } @steps;
		}
		($low) = grep { $_ <= $low * 1.000001 } reverse @ticks;
		($high) = grep { $_ >= $high * 0.999999 } @ticks;
		$high *= 10 if $high == $low;
	}
	else
	{
		$low = 0 unless defined $start;
		my $step = 10**floor(log(($high - $low) || 1) / log(10));
		$step /= ($high - $low) / $step < 2 ? 5 : ($high - $low) / $step < 5 ? 2 : 1;
		$high = $step * (floor(($high - $low) / $step * 0.999999) + 1) + $low;
		@ticks = map { $low + $step * $_ } 0 .. ($high - $low) / $step + 0.5;
	}
	@ticks = grep { $_ >= $low * 0.999999 && $_ <= $high * 1.000001 } @ticks;
	my $place =
	  $log ? sub { log($_[0] / $low) / log($high / $low) } : sub { ($_[0] - $low) / ($high - $low) };
	return ($place, @ticks);
}

# floor(NUMBER): the whole number that is not above it.
sub floor { my ($v) = @_; my $i = int($v); return $i > $v ? $i - 1 : $i; }

# tick_label(NUMBER): as it is written at an axis.
sub tick_label { my ($v) = @_; return $v >= 1000 ? commas($v) : sprintf('%g', $v); }

# plot_lines(FILE, PANEL ...): panels below each other.  A panel has title, x and y (labels), log_x and log_y,
# and curves; a curve has name, colour, points (a list of [x, y]), and dashed.  x values are written at the
# axis if they are few.
sub plot_lines
{
	my ($file, @panels) = @_;
	my ($width, $panel_height, $left, $top, $plot_width, $plot_height, $body, $n) =
	  (760, 340, 80, 34, 470, 250, '', 0);

	for my $panel (@panels)
	{
		my @curves = grep { @{ $_->{points} } } @{ $panel->{curves} } or next;
		my @points = map { @{ $_->{points} } } @curves;
		my %x = map { $_->[0] => 1 } @points;
		my ($x_of, @x_ticks) = axis($panel->{log_x}, $panel->{log_x} ? undef : 0, keys %x);
		my ($y_of, @y_ticks) = axis($panel->{log_y}, undef, map { $_->[1] } @points);
		my $y0 = $n++ * $panel_height + $top;
		my ($x, $y) =
		  (sub { $left + $plot_width * $x_of->($_[0]) }, sub { $y0 + $plot_height * (1 - $y_of->($_[0])) });

		@x_ticks = numerically(keys %x) if keys %x <= 8;
		$body .=
		  svg_text($left + $plot_width / 2, $y0 - 12, 'middle', $panel->{title}, ' font-weight="bold"');
		$body .= sprintf(
			qq{<path d="%s" stroke="#dddddd" fill="none"/>\n},
			join ' ',
			map({ sprintf 'M%.1f %gV%g', $x->($_), $y0, $y0 + $plot_height } @x_ticks),
			map({ sprintf 'M%g %.1fH%g', $left, $y->($_), $left + $plot_width } @y_ticks)
		);
		$body .= svg_text($x->($_), $y0 + $plot_height + 16, 'middle', tick_label($_)) for @x_ticks;
		$body .= svg_text($left - 6, $y->($_) + 4, 'end', tick_label($_))              for @y_ticks;
		$body .= svg_text($left + $plot_width / 2, $y0 + $plot_height + 34, 'middle', $panel->{x});
		$body .= svg_text(
			0, 0, 'middle', $panel->{y},
			sprintf ' transform="translate(14,%g) rotate(-90)"',
			$y0 + $plot_height / 2
		);

		for my $i (0 .. $#curves)
		{
			my $curve = $curves[$i];
			my @at = map { sprintf '%.1f %.1f', $x->($_->[0]), $y->($_->[1]) }
			  sort { $a->[0] <=> $b->[0] } @{ $curve->{points} };
			my $dash = $curve->{dashed} ? ' stroke-dasharray="5 4"' : '';
			my $line = sprintf 'stroke="%s" fill="none"', $curve->{colour};
			my ($key_x, $key_y) = ($left + $plot_width + 14, $y0 + 10 + 18 * $i);

			$body .= sprintf(qq{<path d="M%s" %s stroke-width="1.5"%s/>\n}, join('L', @at), $line, $dash);
			$body .= sprintf(qq{<path d="%s" %s stroke-width="6" stroke-linecap="round"/>\n},
				join('', map { "M${_}h0" } @at), $line);
			$body .=
			  sprintf(qq{<path d="M%g %gh24" %s stroke-width="2"%s/>\n}, $key_x, $key_y - 4, $line, $dash);
			$body .= svg_text($key_x + 30, $key_y, 'start', $curve->{name});
		}
	}
	write_file($file, svg_document($width, $n * $panel_height, $body)) if $n;
	return;
}

# plot_bars(FILE, PANEL): bars that lie, groups below each other.  A panel has title, x (label), log, from
# (where bars begin; without log 0), series (a list of [name, colour]; no key if there is one) and groups (a
# list of [label, target, value of each series]).  A value that is undefined, or has no place on a logarithmic
# axis, has no bar.
sub plot_bars
{
	my ($file, $panel) = @_;
	my @series = @{ $panel->{series} };
	my @groups = @{ $panel->{groups} } or return;
	my $thick = @series > 1 ? 9 : 14;
	my $pitch = $thick * @series + 9;
	my ($left, $top, $plot_width) = (12 + 6.6 * max(map { length $_->[0] } @groups), 34, 560);
	my $plot_height = $pitch * @groups;
	my $can_show = sub { my ($v) = @_; return defined $v && ($v > 0 || !$panel->{log}); };
	my @values = grep { $can_show->($_) } map { @$_[ 1 .. $#$_ ] } @groups or return;
	my $from = $panel->{from} // ($panel->{log} ? undef : 0);
	my ($x_of, @ticks) = axis($panel->{log}, $from, @values);
	my $x = sub { $left + $plot_width * $x_of->($_[0]) };
	my $begin = defined $from ? $x->($from) : $left;
	my $key = @series > 1 ? 20 : 0;
	my $body = svg_text(($left + $plot_width) / 2, 18, 'middle', $panel->{title}, ' font-weight="bold"');

	$top += $key;
	my $key_x = $left;
	for (@series > 1 ? @series : ())
	{
		$body .= sprintf(qq{<rect x="%g" y="30" width="10" height="10" fill="%s"/>\n}, $key_x, $_->[1]);
		$body .= svg_text($key_x + 14, 40, 'start', $_->[0]);
		$key_x += 34 + 7 * length $_->[0];
	}
	$body .= sprintf(qq{<path d="%s" stroke="#dddddd" fill="none"/>\n},
		join ' ', map { sprintf 'M%.1f %gv%g', $x->($_), $top, $plot_height } @ticks);
	$body .= svg_text($x->($_), $top + $plot_height + 16, 'middle', tick_label($_)) for @ticks;
	$body .= svg_text($left + $plot_width / 2, $top + $plot_height + 34, 'middle', $panel->{x})
	  if $panel->{x};
	for my $i (0 .. $#groups)
	{
		my ($label, $target, @bars) = @{ $groups[$i] };
		my $y = $top + $pitch * $i + 5;

		$body .= svg_text($left - 6, $y + $thick * @series / 2 + 4, 'end', $label);
		for my $s (grep { $can_show->($bars[$_]) } 0 .. $#series)
		{
			my ($x0, $x1) = numerically($begin, $x->($bars[$s]));
			$body .= sprintf(
				qq{<rect x="%.1f" y="%g" width="%.1f" height="%g" fill="%s"/>\n},
				$x0,
				$y + $thick * $s,
				max($x1 - $x0, 0.5),
				$thick - 1, $series[$s][1]
			);
		}
		$body .= sprintf(
			qq{<path d="M%.1f %gv%g" stroke="%s" stroke-width="3"/>\n},
			$x->($target), $y - 2, $thick * @series + 3,
			$colour{target}
		) if defined $target;
	}
	$body .= sprintf(qq{<path d="M%.1f %gv%g" stroke="black"/>\n}, $begin, $top, $plot_height);
	write_file($file,
		svg_document($left + $plot_width + 24, $top + $plot_height + ($panel->{x} ? 44 : 26), $body));
	return;
}

1;
