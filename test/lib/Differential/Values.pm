# Values of the columns of test/differential's tables, and constants to compare them with.

package Differential::Values;

use strict;
use warnings;

use Differential::Random;
use Differential::Types;

use Exporter 'import';
our @EXPORT_OK = qw(_literal _sql_type);

sub _sql_type { my ($type) = @_; return $TYPES{$type}{sql} // $type; }

# A value's text, undef for NULL
sub _value
{
	my ($self, $column) = @_;
	my $type = $TYPES{ $column->{type} };

	return undef if _chance($column->{nulls});
	return _one(@{ $type->{special} }) if _chance($column->{specials});
	return '' . $type->{value}->(_int(0, $column->{domain} - 1) * $column->{stride} - $column->{origin});
}

sub _literal
{
	my ($value, $type) = @_;
	return defined $value ? "'$value'::" . _sql_type($type) : 'NULL::' . _sql_type($type);
}

# A constant to compare a column with, often of another type of the family
sub _constant
{
	my ($self, $column, %opt) = @_;
	my $others = $TYPES{ $column->{type} }{others};
	my $type = $column->{type};
	my $value;

	if ($others && !$opt{same} && _chance(0.4))
	{
		$type = _one(@$others);
		# also what the column's type cannot hold
		return _literal(_one(@{ $TYPES{$type}{special} }), $type) if _chance(0.15);
	}
	do { $value = $self->_value($column); } while (!defined $value && !$opt{null});
	$value = $self->_convert($value, $column->{type}, $type);
	return _literal($value, $type);
}

# The text of a value as input of another type of its family
sub _convert
{
	my ($self, $value, $from, $to) = @_;

	return $value if $from eq $to || !defined $value;
	if ($to eq 'int2' && ($value < -32768 || $value > 32767)) { return '7'; }
	if ($to eq 'int4' && ($value < -2147483648 || $value > 2147483647)) { return '7'; }
	if ($to eq 'float4' && $value =~ /e-?3\d\d|e308/) { return '0'; }
	if ($from eq 'timestamp' && $to eq 'date' && $value =~ /^294276/) { return '2001-01-01'; }
	if ($from eq 'timestamp' && $to eq 'timestamptz' && $value =~ /^294276|BC/) { return '2001-01-01'; }
	if ($from eq 'date' && $to eq 'timestamptz' && $value =~ /BC/) { return '2001-01-01'; }
	return $value;
}

sub _array
{
	my ($self, $column, $n, %opt) = @_;
	my $others = $TYPES{ $column->{type} }{others};
	my $type = $others && !$opt{same} && _chance(0.3) ? _one(@$others) : $column->{type};
	my @values;

	for (1 .. $n)
	{
		my $value = _chance(0.03) ? undef : $self->_value($column);
		$value = $self->_convert($value, $column->{type}, $type);
		push @values, defined $value ? '"' . $value =~ s/\\/\\\\/gr . '"' : 'NULL';
	}
	return "'{" . join(',', @values) . "}'::" . _sql_type($type) . '[]';
}

1;
