# Parts of test/differential's queries: what is asked of which rows, in what order.

package Differential::Conditions;

use strict;
use warnings;

use Differential::Random;
use Differential::Types;
use Differential::Values qw(_sql_type);

sub _condition
{
	my ($self, $column) = @_;
	my $c = $column->{expr};
	my $ranges = $self->_unordered ? 1 : 10;
	my $kind = _weighted(
		20, 'eq', 12, 'any', 5, 'in', $ranges, 'less', $ranges, 'greater', $ranges, 'between',
		4, 'null', 3, 'notnull', 1, 'empty', 1, 'eqnull', 4, 'param',
		$ranges / 3, 'anyless', $ranges / 5, 'redundant',
		$column->{type} eq 'text' ? 2 * $ranges : 0, 'like');

	return "$c = " . $self->_constant($column) if $kind eq 'eq';
	my $constant = sub { return $self->_constant($column); };

	if ($kind eq 'any')
	{
		my $n = _weighted(6, _int(1, 5), 3, _int(5, 60), 1, _int(60, 400));
		return "$c = ANY (" . $self->_array($column, $n) . ')';
	}
	return "$c IN (" . join(', ', map { $self->_constant($column, same => 1) } 1 .. _int(1, 8)) . ')'
	  if $kind eq 'in';
	return "$c " . _one('<', '<=') . ' ' . $self->_constant($column) if $kind eq 'less';
	return "$c " . _one('>', '>=') . ' ' . $self->_constant($column) if $kind eq 'greater';
	return "$c " . _one('>', '>=') . ' ' . $constant->() . " AND $c " . _one('<', '<=') . ' ' . $constant->()
	  if $kind eq 'between';
	return "$c LIKE '" . substr($TYPES{text}{value}->(_int(0, 100000)), 0, _int(1, 20)) . "%'"
	  if $kind eq 'like';
	return "$c IS NULL" if $kind eq 'null';
	return "$c IS NOT NULL" if $kind eq 'notnull';
	return "$c = ANY ('{}'::" . _sql_type($column->{type}) . '[])' if $kind eq 'empty';
	return "$c = NULL::" . _sql_type($column->{type}) if $kind eq 'eqnull';
	return "$c " . _one('=', '>=', '<') . ' (SELECT ' . $self->_constant($column, null => 1) . ')'
	  if $kind eq 'param';
	return "$c " . _one('<', '<=', '>', '>=') . ' ANY (' . $self->_array($column, _int(1, 6)) . ')'
	  if $kind eq 'anyless';
	return "$c > " . $constant->() . " AND $c >= " . $constant->() . " AND $c <= " . $constant->();
}

sub _where
{
	my ($self, %opt) = @_;
	my @columns = @{ $self->{columns} };
	my @parts = ($self->_condition($columns[0]));
	my $where;

	if (@columns > 1)
	{
		@parts = () if _chance(0.1);
		for my $column (@columns[ 1 .. $#columns ])
		{
			push @parts, $self->_condition($column) if _chance(0.5) || !@parts;
		}
	}
	push @parts, 'v % ' . _int(2, 5) . ' <> 0' if _chance(0.1);
	$where = join(' AND ', map { "($_)" } @parts);
	if (_chance(0.08))
	{
		$where = "($where) OR (" . $self->_condition($columns[0]) . ')';
	}
	if (_chance(0.06))
	{
		my @either = map { $self->_condition($columns[0]) } 1 .. 2;
		$where = "($where) AND (" . join(' OR ', @either) . ')';
	}
	$where = "($where) AND $self->{predicate}" if $self->{predicate} && ($opt{usable} || _chance(0.85));
	return $where;
}

# Whether the query text lets the planner use the index at all
sub _usable
{
	my ($self, $where) = @_;
	return !$self->{predicate} || index($where, $self->{predicate}) >= 0;
}

sub _key_list { my ($self, $alias) = @_; return join(', ', map { $_->{expr} } @{ $self->{columns} }); }

# Columns of the index, pairs of a type and an expression: what can be looked up in the index alone
sub _returned
{
	my ($self) = @_;
	my @all = (@{ $self->{columns} }, @{ $self->{included} });
	return map { [ $_->{type}, $_->{expr} ] } grep { $_->{expr} =~ /^k\d+$/ } @all;
}

# What is asked of rows: often only what the index returns
sub _row_list
{
	my ($self) = @_;
	my @included = map { $_->{name} } @{ $self->{included} };

	return join(', ', @included, $self->_key_list) if @included && _chance(0.7);
	return join(', ', 'id', 'v', $self->_key_list);
}

# The index's own order, or its reverse; of the first columns only, or of all
sub _order_by
{
	my ($self, $columns) = @_;
	my $backward = _chance(0.5) ? 1 : 0;
	my @order;

	for my $column (@{ $self->{columns} }[ 0 .. $columns - 1 ])
	{
		my $descending = $column->{descending} != $backward;
		my $first = $column->{nulls_first} != $backward;
		push @order, $column->{expr} . ($descending ? ' DESC' : ' ASC')
		  . ($first ? ' NULLS FIRST' : ' NULLS LAST');
	}
	return join(', ', @order);
}

1;
