# The twin tables of test/differential's scripts: their shape, their indexes, and how they are made.

package Differential::Tables;

use strict;
use warnings;

use Differential::Output qw(_for_table _without_order);
use Differential::Random;
use Differential::Types;
use Differential::Values qw(_literal _sql_type);

# A column of the tables, whose values are drawn alike
sub _column
{
	my ($name, $type, $domain) = @_;
	my $column = {
		name => $name, type => $type, domain => $domain,
		stride =>
		  _weighted(4, 1, 1, 7, $type eq 'int8' ? 2 : 0, 9223372036854, $type eq 'int4' ? 1 : 0, 20011),
		nulls => _weighted(4, 0, 3, 0.05, 1, 0.5), specials => _weighted(4, 0.02, 1, 0, 1, 0.3) };

	$column->{origin} = _chance(0.5) ? int($domain / 2) * $column->{stride} : 0;
	return $column;
}

# What the index returns beside its key: columns of their own, or those that all tables have.  Some have
# room beside the key, others do not.  An entry has a bit for each, and there are eight columns at most,
# with 32 bytes beside.
sub _choose_included
{
	my ($self, $key_bits) = @_;
	my $keys = @{ $self->{columns} };
	my $room = 136 - $key_bits - $keys;
	my $bytes = 32;

	$room = 8 - $keys if 8 - $keys < $room;
	return if $key_bits > 128;
	for my $name (_chance(0.5) ? ('id') : (), _chance(0.5) ? ('v') : (), map { "i$_" } 1 .. _int(0, 3))
	{
		my $type = $name =~ /^i\d/ ? _one(grep { !$TYPES{$_}{varies} } @{ $self->{typenames} }) : 'int4';

		last if @{ $self->{included} } == $room;
		# All types may be such as cannot be included
		next unless defined $type;
		next if $bytes < ($TYPES{$type}{bits} + 7) / 8;
		$bytes -= int(($TYPES{$type}{bits} + 7) / 8);
		push @{ $self->{included} }, { %{ _column($name, $type, _one(5, 1000, 100000)) }, expr => $name };
		push @{ $self->{base} }, $self->{included}[-1] if $name =~ /^i\d/;
	}
	return;
}

# How often a type is chosen
sub _weight
{
	my ($type) = @_;
	return $type =~ /^int/ ? 4 : $type =~ /^(?:timestamptz|float8|date|uuid|decimal)$/ ? 2 : 1;
}

# How many columns the index shall have
sub _wanted_columns { return _weighted(6, 1, 4, 2, 2, 3, 1, 5); }

sub _choose_shape
{
	my ($self) = @_;
	my $bits = 0;
	my $wanted = $self->_wanted_columns;

	$self->{temporary} = _chance(0.12);
	$self->{unlogged} = !$self->{temporary} && _chance(0.15);
	$self->{partitioned} = !$self->{temporary} && !$self->{unlogged} && _chance(0.08);
	for my $try (1 .. 20)
	{
		my $type = _weighted(map { (_weight($_), $_) } @{ $self->{typenames} });
		# What does not fit into a key as it is becomes a hash, if there is no order.
		next if $bits + $TYPES{$type}{bits} > 128 && !$self->_unordered;
		$bits += $TYPES{$type}{bits};
		my $domain = _weighted(3, _int(1, 6), 5, _int(10, 300), 3, 100000);
		push @{ $self->{base} }, _column('k' . (1 + @{ $self->{base} // [] }), $type, $domain);
		last if @{ $self->{base} } >= $wanted;
	}
	$self->{columns} = [ map { { %$_, expr => $_->{name} } } @{ $self->{base} } ];
	if (_chance(0.1))
	{
		my ($expr) = _one('(v % 7)', '(abs(v - 50))', '(- v)');
		$self->{columns} = [ {
				name => 'v', expr => $expr, type => 'int4', domain => 60, stride => 1, origin => 10,
				nulls => 0.02, specials => 0.05 } ];
		$self->{expression} = 1;
	}
	for my $column (@{ $self->{columns} })
	{
		$column->{descending} = _chance(0.3) ? 1 : 0;
		$column->{nulls_first} = _chance(0.3) ? 1 - $column->{descending} : $column->{descending};
	}
	if (!$self->{partitioned} && !$self->{expression} && _chance(0.06))
	{
		$self->{exclusion} = 1;
	}
	# Not asked where there are none, so that a seed's script stays what it was there
	elsif ($self->_may_be_unique && !$self->{partitioned} && !$self->{expression} && _chance(0.15))
	{
		$self->{unique} = _one('', '', ' NULLS NOT DISTINCT');
	}
	elsif (_chance(0.12))
	{
		$self->{predicate} = _one('v > 30', 'v % 3 <> 0', "$self->{base}[0]{name} IS NOT NULL", 'id > 40');
	}
	$self->_choose_included($self->{expression} ? 32 : $bits) if !$self->{exclusion} && _chance(0.35);
	return unless $self->{exclusion} || defined $self->{unique};
	for my $list ($self->{base}, $self->{columns})
	{
		$_->{domain} = 1000000 for @$list;
		$_->{descending} = $_->{nulls_first} = 0 for @$list;
	}
	return;
}

# The index's columns, as CREATE INDEX has them
sub _index_columns
{
	my ($self) = @_;
	my @keys = map {
		$_->{expr} . ($_->{descending} ? ' DESC' : '') . ($_->{nulls_first} ? ' NULLS FIRST' : ' NULLS LAST')
	} @{ $self->{columns} };
	my $included = join(', ', map { $_->{name} } @{ $self->{included} });

	return '(' . join(', ', @keys) . ')' . ($included ? " INCLUDE ($included)" : '');
}

# A unique index, and a constraint of btree's that is checked when a statement ends, too
sub _create_unique
{
	my ($self, $list) = @_;
	my $number = ++$self->{number};

	# without the names of the two commands
	$self->_say('\set QUIET on', "\\echo @@ $number btree set",
		"ALTER TABLE tb ADD CONSTRAINT tb_idx UNIQUE$self->{unique} "
		  . ($list =~ s/ NULLS LAST//gr)
		  . ' DEFERRABLE;',
		"\\echo @@", "\\echo @@ $number gpu set",
		"CREATE UNIQUE INDEX tg_idx ON tg USING $self->{am} "
		  . ($self->_unordered ? _without_order($list) : $list)
		  . "$self->{unique};",
		"\\echo @@", '\set QUIET off');
	return;
}

# Makes it only if it is not there when that is asked for
sub _create_index
{
	my ($self, $if_missing) = @_;
	my $missing = $if_missing ? ' IF NOT EXISTS' : '';
	my $may_wait = !$self->{temporary} && !$self->{in_block} && !$self->{partitioned};
	my $concurrently = $may_wait && _chance(0.2) ? ' CONCURRENTLY' : '';
	my $options = _chance(0.2) ? ' WITH (fillfactor = ' . _int(50, 100) . ')' : '';
	my $list = $self->_index_columns;
	my $where = $self->{predicate} ? " WHERE $self->{predicate}" : '';

	if ($self->{exclusion})
	{
		my $with = join(', ', map { "$_->{expr} WITH =" } @{ $self->{columns} });
		$self->_both_ams("ALTER TABLE {T} ADD CONSTRAINT {I} EXCLUDE USING {AM} ($with)$where");
		return;
	}
	if (defined $self->{unique})
	{
		$self->_create_unique($list);
		return;
	}
	$self->_both_ams("CREATE INDEX$concurrently$missing {I} ON {T} USING {AM} $list$options$where");
	return;
}

# Columns of the tables, as CREATE TABLE has them
sub _column_list
{
	my ($self) = @_;
	my @keys = map { ", $_->{name} " . _sql_type($_->{type}) } @{ $self->{base} };

	return 'id int, v int' . join('', @keys) . ', pad text';
}

sub _types
{
	my ($self) = @_;

	$self->_say("CREATE TYPE diff_enum AS ENUM ('label3', 'label0', 'label5', 'label1', 'label2');",
		"ALTER TYPE diff_enum ADD VALUE 'label4';");
	return;
}

# The twins, without indexes
sub _tables
{
	my ($self) = @_;
	my $persistence = $self->{temporary} ? 'TEMP ' : $self->{unlogged} ? 'UNLOGGED ' : '';
	my $options = $self->{on_commit} ? " ON COMMIT $self->{on_commit}" : '';

	for my $twin (qw(g b))
	{
		$self->_say("CREATE ${persistence}TABLE t$twin (" . $self->_column_list . ')'
			  . ($self->{partitioned} ? ' PARTITION BY HASH (id)' : '') . "$options;");
		if ($self->{partitioned})
		{
			$self->_say("CREATE TABLE t${twin}_p$_ PARTITION OF t$twin "
				  . "FOR VALUES WITH (MODULUS 3, REMAINDER $_);")
			  for 0 .. 2;
		}
	}
	return;
}

# The table of probe values
sub _probes
{
	my ($self) = @_;
	my $first = $self->{columns}[0];

	$self->_say('CREATE TABLE p (n int, k ' . _sql_type($first->{type}) . ');');
	my @rows = map { "($_, " . _literal($self->_value($first), $first->{type}) . ')' } 1 .. _int(1, 30);
	$self->_say('INSERT INTO p VALUES ' . join(', ', @rows) . ';');
	return;
}

sub _row_count { return _weighted(2, _int(0, 3), 3, _int(10, 100), 5, _int(200, 1500), 1, _int(3000, 8000)); }

# Rows and index, in either order
sub _fill
{
	my ($self) = @_;
	my $rows = $self->_row_count;

	if (_chance(0.4))
	{
		$self->_create_index;
		$self->_load($rows);
	}
	else
	{
		$self->_load($rows);
		$self->_create_index;
	}
	$self->_both('ANALYZE {T}') if _chance(0.7);
	return;
}

1;
