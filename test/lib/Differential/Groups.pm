# Groups of test/differential's queries: functions of a column that never descend, and
# what is added up of a group.

package Differential::Groups;

use strict;
use warnings;

use Differential::Random;

use Exporter 'import';

our @EXPORT = qw(bucket_of measures_of);

sub _thresholds
{
	my ($type, @values) = @_;
	return "'{" . join(',', map { "\"$_\"" } @values) . "}'::${type}[]";
}

# The bounds of width_bucket may be the wrong way round, which core answers.
sub _of_integers
{
	my ($e, $type) = @_;
	my ($low, $high) = (_int(-40, 40), _int(-40, 200));
	my @sorted = sort { $a <=> $b } map { _int(-100, 300) } 1 .. _int(0, 9);

	$high++ if $high == $low;
	return _one(
		"$e / " . _int(1, 90), "$e >> " . _int(0, 9), "${e}::bigint / " . _int(1, 90),
		"width_bucket($e, $low, $high, " . _int(1, 30) . ')',
		"width_bucket(${e}::numeric, $low, $high, " . _int(1, 30) . ')',
		"width_bucket($e, " . _thresholds($type, @sorted) . ')',
		"width_bucket($e / 2, " . _thresholds($type eq 'bigint' ? 'bigint' : 'integer', @sorted) . ')');
}

my @DAYS = ('1999-12-31', '2000-01-01', '2000-01-15', '2001-02-28', '2010-06-01');

my %OF_TYPE = (
	int2 => sub { _of_integers($_[0], 'smallint') },
	int4 => sub { _of_integers($_[0], 'integer') },
	int8 => sub { _of_integers($_[0], 'bigint') },
	date => sub {
		return _one("width_bucket($_[0], " . _thresholds('date', @DAYS[ 0 .. _int(-1, $#DAYS) ]) . ')',
			"extract(year FROM $_[0])");
	},
	timestamp => sub {
		return _one(
			"date_trunc('" . _one(qw(hour day week month year)) . "', $_[0])", "$_[0]::date",
			"date_trunc('" . _one(qw(day month)) . "', $_[0])::date",
			"width_bucket($_[0], " . _thresholds('timestamp', @DAYS) . ')');
	},
	timestamptz => sub {
		return _one(
			"date_trunc('" . _one(qw(hour day week month year)) . "', $_[0])", "$_[0]::date",
			"date_trunc('" . _one(qw(hour day month)) . "', $_[0])::date",
			"extract(" . _one(qw(year decade)) . " FROM $_[0])");
	},);

# What to group a column of a type by: a function of it if one is known, or the column itself
sub bucket_of
{
	my ($type, $e) = @_;
	return $OF_TYPE{$type} && _chance(0.8) ? $OF_TYPE{$type}->($e) : $e;
}

# What is to be told of each group's columns, which are pairs of a type and an expression
sub measures_of
{
	my @list = ('count(*)');

	for (@_)
	{
		my ($type, $e) = @$_;
		my @sums = $type =~ /^int\d/ ? qw(sum avg stddev var_pop) : $type eq 'decimal' ? qw(sum avg) : ();
		my @functions = (qw(count min max), @sums);

		# callers take the list apart at its blanks
		$e = _one('COALESCE', 'NULLIF') . "($e," . _int(-9, 9) . ')' if $type =~ /^int\d/ && _chance(0.1);
		push @list, _one(@functions) . "($e)"
		  if $type =~ /^(int|date|timestamp|decimal)/;
	}
	return join(', ', @list);
}

1;
