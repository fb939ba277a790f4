# Scripts of test/differential whose statements are wide: hundreds of conditions, elements,
# tables, columns, aggregates, parameters, subqueries or partitions.  Nothing that a query
# decides has a bound but memory, or an error that says so.

package Differential::Wide;

use strict;
use warnings;

use Differential::Groups;
use Differential::Output qw(_for_table _index_settings);
use Differential::Random;
use Differential::Types;
use Differential::Values qw(_literal _sql_type);
use parent 'Differential::Partitions';

sub name { return 'wide'; }

sub _wanted_columns { return _weighted(2, 1, 2, 2, 2, _int(3, 7), 4, 8); }
sub _row_count { return _int(200, 1500); }
sub _step_count { return _int(6, 9); }

# The columns w1, w2, ... follow from the others, so that statements need not name them.
sub _choose_shape
{
	my ($self) = @_;

	# In an index without order often all columns have hashes, whose rows are compared
	$self->{typenames} = [ grep { $TYPES{$_}{varies} } @{ $self->{typenames} } ]
	  if $self->_unordered && _chance(0.6);
	$self->SUPER::_choose_shape;
	$self->{partitioned} = _chance(0.15) ? 1 : 0;
	$self->{parts} = _int(80, 160);
	$self->{beside} = [ map { "w$_" } 1 .. _weighted(4, _int(1, 10), 3, _int(20, 60), 1, _int(200, 500)) ];
	return;
}

sub _tables
{
	my ($self) = @_;
	return $self->{partitioned} ? $self->SUPER::_tables : $self->Differential::Script::_tables;
}

sub _column_list
{
	my ($self) = @_;
	my $n = 0;

	return $self->SUPER::_column_list . join('',
		map { ", $_ int GENERATED ALWAYS AS ((id % 1000 * " . ++$n . ' + v) % ' . ($n % 90 + 2)
			  . ') STORED' } @{ $self->{beside} });
}

# Beside the index under test there are others, which the planner may combine with it.
sub _fill
{
	my ($self) = @_;

	$self->SUPER::_fill;
	return if $self->{partitioned};
	for my $n (1 .. _int(0, 6))
	{
		my %columns = map { _one(@{ $self->{beside} }) => 1 } 1 .. _int(1, 4);
		$self->_both_ams("CREATE INDEX {T}_${n}_idx ON {T} USING {AM} (" . join(', ', sort keys %columns)
			  . ')');
	}
	return;
}

# How many of something there are in a statement; planning a table of many partitions takes a while for each
sub _many
{
	my ($self) = @_;

	return _int(2, 40) if $self->{partitioned};
	return _weighted(3, _int(30, 60), 4, _int(60, 200), 2, _int(200, 400));
}

# How many tables; the same
sub _tables_in_query { my ($self) = @_; return $self->{partitioned} ? _int(2, 3) : _int(4, 12); }

sub _predicate { my ($self) = @_; return $self->{predicate} ? " AND $self->{predicate}" : ''; }

# A date or timestamp at its type's end is an error if it is compared with another of these types, and how
# a query is executed decides whether it is.  Among so many conditions one is sure to.
sub _same_type
{
	my ($column) = @_;
	return $column->{type} =~ /^(?:date|timestamp)/ ? (same => 1) : ();
}

sub _constant
{
	my ($self, $column, %opt) = @_;
	return $self->Differential::Script::_constant($column, %opt, _same_type($column));
}

sub _array
{
	my ($self, $column, $n, %opt) = @_;
	return $self->Differential::Script::_array($column, $n, %opt, _same_type($column));
}

# A column of the index that has a name, so that it can be asked of several tables; undef: none has
sub _named
{
	my ($self) = @_;
	my @columns = grep { $_->{expr} =~ /^k\d+$/ } @{ $self->{columns} };
	return @columns ? _one($columns[0], @columns) : undef;
}

# A value of a column that is not NULL
sub _known
{
	my ($self, $column) = @_;
	my $value;

	do { $value = $self->_value($column) } while (!defined $value);
	return $value;
}

# An array that has a value, and n others
sub _array_with
{
	my ($self, $column, $value, $n) = @_;
	my @values = map { $self->_value($column) } 1 .. $n;

	splice(@values, _int(0, scalar @values), 0, $value);
	return "'{" . join(',', map { defined $_ ? "\"$_\"" : 'NULL' } @values) . "}'::"
	  . _sql_type($column->{type}) . '[]';
}

# A condition that a value meets.  btree of 15 goes through all combinations of the elements of its
# arrays, which \$left limits.
sub _met_by
{
	my ($self, $column, $value, $left) = @_;
	my $others = _weighted(3, 0, 5, _int(1, 5), 1, _int(6, 30));
	my $e = $column->{expr};
	my $literal = _literal($value, $column->{type});
	my $ranges = $self->_unordered ? 0 : 2;

	$others = 0 if $others + 1 > $$left;
	$$left = int($$left / ($others + 1));
	my $kind = _weighted(8, 'any', 2, 'equal', $others ? 2 : 0, 'in', $ranges, 'range', $ranges, 'between',
		1, 'notnull', 1, 'param');

	return "$e = ANY (" . $self->_array_with($column, $value, $others) . ')' if $kind eq 'any';
	return "$e = $literal" if $kind eq 'equal';
	return "$e IN ($literal, " . $self->_constant($column, same => 1) . ')' if $kind eq 'in';
	return "$e " . _one('<=', '>=') . " $literal" if $kind eq 'range';
	return "$e BETWEEN $literal AND $literal" if $kind eq 'between';
	return "$e IS NOT NULL" if $kind eq 'notnull';
	return "$e = (SELECT $literal)";
}

# Many conditions of one column, or of several, that some row may meet
sub _ands
{
	my ($self) = @_;
	my @columns = _chance(0.6) ? _one(@{ $self->{columns} }) : @{ $self->{columns} };
	my @values = map { $self->_known($_) } @columns;
	my $left = 5000;
	my @conditions;

	for (1 .. $self->_many)
	{
		my $at = _int(0, $#columns);
		push @conditions, $self->_met_by($columns[$at], $values[$at], \$left);
	}
	push @conditions, $self->_condition($columns[0]) if _chance(0.1);
	return join(' AND ', @conditions) . $self->_predicate;
}

sub _ors
{
	my ($self) = @_;
	my @conditions;

	for (1 .. $self->_many)
	{
		my $column = _one(@{ $self->{columns} });
		my $condition = $self->_met_by($column, $self->_known($column), \(my $left = 50));

		$condition = "($condition AND " . $self->_condition(_one(@{ $self->{columns} })) . ')'
		  if _chance(0.2);
		push @conditions, $condition;
	}
	return '(' . join(' OR ', @conditions) . ')' . $self->_predicate;
}

# An array for each of some columns; of the elements of all, as many combinations as btree can go through
sub _arrays
{
	my ($self) = @_;
	my $left = _one(3000, 50000);
	my @conditions;

	for my $column (@{ $self->{columns} }[ 0 .. _int(0, $#{ $self->{columns} }) ])
	{
		my $n = _weighted(1, 0, 4, _int(1, 8), 3, _int(10, 60), 2, _int(500, 3000));

		$n = $left if $n > $left;
		$left = int($left / ($n || 1));
		push @conditions, "$column->{expr} = ANY (" . $self->_array($column, $n) . ')';
	}
	return join(' AND ', @conditions) . $self->_predicate;
}

# Values that the executor computes first
sub _subplans
{
	my ($self) = @_;
	my $column = $self->{columns}[0];
	my @values = map { '(SELECT ' . $self->_constant($column, same => 1, null => 1) . ')' } 1 .. $self->_many;

	return _one("$column->{expr} = ANY (ARRAY[" . join(', ', @values) . '])',
		"$column->{expr} IN (" . join(', ', @values) . ')',
		"$column->{expr} = ANY (ARRAY(SELECT k FROM {P}" . join('', map { " UNION ALL SELECT $_" } @values)
		  . '))') . $self->_predicate;
}

# What is asked of the rows that meet a condition
sub _ask
{
	my ($self, $where, %opt) = @_;
	my @named = ((map { $_->[1] } $self->_returned), @{ $self->{beside} });
	my $list = _weighted(
		4, $self->_row_list, 2, 'count(*), sum(v)',
		$self->_has_included ? 3 : 1, measures_of($self->_returned),
		1, join(', ', map { _one(@named) } 1 .. _int(50, 800)));

	$self->_query("SELECT $list FROM {T} WHERE $where", %opt);
	return;
}

# A table joined with itself by a key, and by what limits the rows
sub _joins
{
	my ($self) = @_;
	my $column = $self->_named;
	my $e = $column ? $column->{expr} : 'id';
	my $n = $self->_tables_in_query;
	my $from = '{T} a0';

	for my $i (1 .. $n)
	{
		my $to = _int(0, $i - 1);

		if ($column && $column == $self->{columns}[0] && _chance(0.2))
		{
			$from .= ' ' . _one('JOIN', 'LEFT JOIN')
			  . " (SELECT DISTINCT k AS $e, 0 AS id FROM {P}) a$i ON a$i.$e = a$to.$e";
			next;
		}
		$from .= ' ' . _weighted(3, 'JOIN', 2, 'LEFT JOIN')
		  . " {T} a$i ON a$i.$e = a$to.$e AND a$i.id = a0.id";
	}
	$self->_query("SELECT count(*), sum(a0.v), " . join(', ', map { "count(a$_.$e)" } 1 .. $n)
		  . " FROM $from WHERE a0.id < " . _int(20, 400),
		kind => 'nestloop', noplan => 1);
	return;
}

# EXISTS and NOT EXISTS, one after the other, or some in each other with few rows: there a nested loop
# looks at all combinations of them
sub _nests
{
	my ($self) = @_;
	my $column = $self->{columns}[0];
	my $e = $column->{expr};
	my ($where, $closing, $outer) = ('', '', "x0.$e");
	my $deep = _chance(0.5);

	return unless $e =~ /^k\d+$/;
	for my $i (1 .. ($deep ? _int(2, 4) : $self->_tables_in_query))
	{
		my ($table, $key) = _one([ '{T}', $e ], [ '{T}', $e ], [ '{P}', 'k' ])->@*;
		my $begin = ' AND ' . _one('', 'NOT ') . "EXISTS (SELECT FROM $table x$i WHERE x$i.$key = $outer"
		  . ($deep && $table eq '{T}' ? " AND x$i.id < 30" : '')
		  . (_chance(0.5) ? " AND x$i." . ($table eq '{T}' ? 'v > ' : 'n > ') . _int(0, 20) : '');

		$where .= $begin . ($deep ? '' : ')');
		$closing .= ')' if $deep;
		$outer = "x$i.$key" if $deep;
	}
	$self->_query('SELECT ' . _one('count(*), sum(v)', "id, $e")
		  . " FROM {T} x0 WHERE x0.id < 300$where$closing", kind => 'nestloop', noplan => 1);
	return;
}

sub _aggregates
{
	my ($self) = @_;
	my @named = ($self->_returned, map { [ 'int4', $_ ] } @{ $self->{beside} });
	my @measures = map { measures_of(_one(@named))
		  . (_chance(0.1) ? ', count(*) FILTER (WHERE ' . $self->_condition($self->{columns}[0]) . ')'
			  : '') } 1 .. _int(20, 150);
	my %by = map { _one(@named)->[1] => 1 } 1 .. _weighted(2, 0, 2, 1, 3, _int(2, 30));
	my $where = _one('v >= 0' . $self->_predicate, $self->_where, $self->_ands, $self->_arrays);

	$self->_query('SELECT ' . join(', ', (sort keys %by), @measures) . " FROM {T} WHERE $where"
		  . (%by ? ' GROUP BY ' . join(', ', sort keys %by) : ''),
		kind => _one('ordered', 'any'), noplan => 1);
	return;
}

# A subquery in a subquery, in FROM or by IN
sub _nested
{
	my ($self) = @_;
	my $column = $self->_named;
	my $names = join(', ', 'id', 'v', map { $_->{name} } @{ $self->{base} });
	my $query = "SELECT $names FROM {T} WHERE " . _one($self->_where, $self->_arrays);

	if ($column && _chance(0.5))
	{
		my $e = $column->{expr};

		$query = "SELECT $names FROM {T} WHERE $e IN (SELECT $e FROM ($query) s$_) AND id < " . _int(20, 200)
		  . $self->_predicate for 1 .. $self->_tables_in_query;
	}
	else
	{
		$query = "SELECT $names FROM ($query" . _one('', ' OFFSET 0', ' ORDER BY id') . ") s$_ WHERE "
		  . _one('v >= 0', 'id > ' . _int(0, 9), 'v IS NOT NULL OR id IS NULL')
		  for 1 .. _int(5, 60);
	}
	$self->_query($query, noplan => 1);
	return;
}

sub _unions
{
	my ($self) = @_;
	my $list = 'id, v, ' . $self->_key_list;

	$self->_query(join(' UNION ALL ', map { "SELECT $list FROM {T} WHERE "
				  . $self->_where } 1 .. ($self->{partitioned} ? 3 : _int(20, 80))), noplan => 1);
	return;
}

sub _order
{
	my ($self) = @_;
	my $all = scalar @{ $self->{columns} };
	my @beside = map { _one(@{ $self->{beside} }) } 1 .. _int(1, 60);

	# id makes the order one that all agree on
	$self->_query('SELECT ' . join(', ', $self->_key_list, @beside) . ' FROM {T} WHERE '
		  . _one($self->_ands, $self->_arrays, 'v > 5' . $self->_predicate) . ' ORDER BY '
		  . join(', ', $self->_order_by($all), @beside, 'id')
		  . _one('', ' LIMIT ' . _int(1, 50)),
		mode => 'list', kind => _one('ordered', 'any'), noplan => 1);
	return;
}

# As many parameters as there are elements
sub _parameters
{
	my ($self) = @_;
	my $column = $self->{columns}[0];
	my $type = _sql_type($column->{type});
	my $n = $self->_many;
	my $name = 'q' . ++$self->{statements};
	my $condition = _one(
		"$column->{expr} IN (" . join(', ', map { "\$$_" } 1 .. $n) . ')',
		join(' OR ', map { "$column->{expr} = \$$_" } 1 .. $n),
		join(' AND ', map { "$column->{expr} = ANY (ARRAY[\$$_" . ($_ < 10 ? ", \$1" : '') . '])' } 1 .. $n));
	my %settings = _index_settings('any');

	$self->_say('SET plan_cache_mode = ' . _one('auto', 'force_generic_plan', 'force_custom_plan') . ';');
	for my $variant (qw(seq btree gpu))
	{
		$self->_say("PREPARE ${name}_$variant (" . join(', ', ($type) x $n) . ') AS '
			  . _for_table("SELECT id, v, " . $self->_key_list . " FROM {T} WHERE ($condition)"
				  . $self->_predicate, $variant eq 'btree' ? 'b' : 'g') . ';');
	}
	for (1 .. 2)
	{
		my $arguments = join(', ', map { _literal($self->_value($column), $column->{type}) } 1 .. $n);
		my $number = ++$self->{number};

		for my $variant (qw(seq btree gpu))
		{
			$variant eq 'seq' ? $self->_seqscan_settings : $self->_settings(%settings);
			$self->_say("\\echo @@ $number $variant set", "EXECUTE ${name}_$variant ($arguments);",
				'\echo @@');
		}
	}
	$self->_say("DEALLOCATE ${name}_$_;") for qw(seq btree gpu);
	$self->_say('RESET plan_cache_mode;');
	return;
}

# Functions find all rows in one index, or raise an error.
sub _has_functions
{
	my ($self) = @_;
	return $self->{am} =~ /^gpu_/ && !$self->_unordered && !$self->{predicate} && !$self->{partitioned};
}

sub _wide_query
{
	my ($self) = @_;
	my $kind = _weighted(
		8, 'ands', 3, 'ors', 4, 'arrays', 2, 'subplans', 3, 'joins', 3, 'nests', 3, 'aggregates', 2, 'nested',
		2, 'unions',
		2, 'order', 2, 'parameters', $self->_has_functions ? 2 : 0, 'function');

	if ($kind eq 'ands') { $self->_ask($self->_ands); }
	elsif ($kind eq 'ors') { $self->_ask($self->_ors, noplan => 1); }
	elsif ($kind eq 'arrays') { $self->_ask($self->_arrays); }
	elsif ($kind eq 'subplans') { $self->_ask($self->_subplans, noplan => 1); }
	elsif ($kind eq 'function') { $self->_function(_int(500, 5000)); }
	else
	{
		my $query = "_$kind";
		$self->$query;
	}
	return;
}

sub _wide_change
{
	my ($self) = @_;
	my $where = _one($self->_ands, $self->_ors, $self->_arrays);

	$self->_settings(_chance(0.7) ? _index_settings('any') : ());
	$self->_both(_one("UPDATE {T} SET v = (v + 7) % 100 WHERE $where",
			"DELETE FROM {T} WHERE $where AND v % 4 = 1"));
	return;
}

sub _step
{
	my ($self) = @_;
	my $kind = _weighted(10, 'query', 3, 'wide', 2, 'change', 2, 'block', 2, 'maintain');

	if ($kind eq 'wide') { $self->_wide_change; }
	elsif ($kind eq 'change') { $self->_change; }
	elsif ($kind eq 'block') { $self->_block; }
	elsif ($kind eq 'maintain') { $self->_maintain; }
	$self->_wide_query for 1 .. 3;
	return;
}

sub _final_queries
{
	my ($self) = @_;

	$self->_ask($self->_ands, kind => $_) for 'any', 'ordered';
	$self->SUPER::_final_queries;
	return;
}

1;
