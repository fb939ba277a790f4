# Queries of test/differential's scripts: of one statement, by functions, prepared, and by cursors.

package Differential::Queries;

use strict;
use warnings;

use Differential::Groups;
use Differential::Output qw(_for_table _index_settings);
use Differential::Random;
use Differential::Types;
use Differential::Values qw(_literal _sql_type);

# Percentiles of an expression, with what is often beside them.
sub _percentiles
{
	my ($expr) = @_;
	my $fraction = _one(0, 0.5, 1, 'NULL', rand(), 'ARRAY[0.5, 0.95, 0.99]',
		'ARRAY[1, NULL, 0.3, ' . rand() . ', 0.3]');
	my $direction = _one('', '', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST');
	my $order = "WITHIN GROUP (ORDER BY $expr$direction)";

	return "percentile_disc($fraction) $order"
	  . _one('', ', count(*)', ", count(*), min($expr), max($expr), count($expr)",
		', percentile_disc(' . rand() . ") $order");
}

sub _random_query
{
	my ($self) = @_;
	my $first = $self->{columns}[0];
	my $kind = _weighted(
		30, 'rows', 10, 'count', 16, 'ordered', $TYPES{ $first->{type} }{minmax} ? 6 : 0, 'minmax',
		8, 'nestloop', 3, 'nothing', 5, 'merge', 5, 'exists', 4, 'lateral', 4, 'distinct',
		5, 'prepared', 3, 'self', $self->_has_functions ? 8 : 0, 'function', 6, 'groups', 10, 'dashboard');
	my $where = $self->_where;
	my $noplan = !$self->_usable($where);
	my $predicate = $self->{predicate};
	my $e = $first->{expr};

	if ($kind eq 'rows')
	{
		# Conditions that bound nothing, which GpudsScan tests in entries
		my $tested = _chance(0.4) ? ' AND ' . $self->_condition_tree(2) : '';
		$self->_query('SELECT ' . $self->_row_list . " FROM {T} WHERE ($where)$tested",
			noplan => $noplan || $tested);
	}
	elsif ($kind eq 'count')
	{
		my $list = $self->_has_included && _chance(0.7) ? measures_of($self->_returned) : 'count(*), sum(v)';
		$self->_query("SELECT $list FROM {T} WHERE $where", noplan => $noplan);
	}
	elsif ($kind eq 'ordered')
	{
		my $n = _int(1, scalar @{ $self->{columns} });
		my $keys = join(', ', map { $_->{expr} } @{ $self->{columns} }[ 0 .. $n - 1 ]);
		my $limit = _weighted(
			3, '', 5, ' LIMIT ' . _int(1, 30), 2, ' LIMIT ' . _int(0, 200) . ' OFFSET ' . _int(0, 100));
		my $filter = _chance(0.6) ? " WHERE $where" : $predicate ? " WHERE $predicate" : '';
		$self->_query("SELECT $keys FROM {T}$filter ORDER BY " . $self->_order_by($n) . $limit,
			mode => 'list', kind => 'ordered', noplan => $noplan || $self->{partitioned});
	}
	elsif ($kind eq 'minmax')
	{
		my $filter = _chance(0.3) ? " WHERE $where" : $predicate ? " WHERE $predicate" : '';
		my $list = _one("min($e), max($e)", "max($e)", "min($e)", _percentiles($e));
		$self->_query("SELECT $list FROM {T}$filter", kind => 'ordered', noplan => 1);
	}
	elsif ($kind eq 'nestloop' || $kind eq 'merge')
	{
		my $extra = ($predicate ? " AND $predicate" : '')
		  . (_chance(0.3) ? ' AND ' . $self->_condition($self->{columns}[-1]) : '')
		  . (_chance(0.3) ? ' AND ' . $self->_condition_tree(1) : '');
		my $join = _weighted(5, 'JOIN', 3, 'LEFT JOIN', $kind eq 'merge' ? 1 : 0, 'RIGHT JOIN');
		my $list = _chance(0.5) ? 'count(*), sum({T}.v)' : 'p.n, {T}.id';
		if ($self->_has_included && _chance(0.7))
		{
			my $columns = join(', ', 'p.n', $self->_key_list, map { $_->{name} } @{ $self->{included} });
			$list = _chance(0.5) ? measures_of($self->_returned) : $columns;
		}
		$self->_query("SELECT $list FROM {P} p $join {T} ON $e = p.k$extra",
			kind => $kind, noplan => $kind eq 'merge' || $join eq 'RIGHT JOIN');
	}
	elsif ($kind eq 'nothing')
	{
		# No column is asked for: core would take an index-only scan for possible
		my $filter = $predicate ? " WHERE $predicate" : '';
		my $query = _one(
			"SELECT count(*) FROM {T}$filter",
			"SELECT 1 FROM {T}$filter LIMIT 7",
			"SELECT EXISTS (SELECT FROM {T}$filter)");
		$self->_query($query, noplan => 1);
	}
	elsif ($kind eq 'exists' && _chance(0.4))
	{
		my $list = _one('count(*)', 'count(*), sum(v)', 'id', $e);
		$self->_query("SELECT $list FROM {T} WHERE $e IN (SELECT p.k FROM {P} p"
			  . (_chance(0.3) ? ' WHERE p.n > ' . _int(0, 5) : '') . ')'
			  . ($predicate ? " AND $predicate" : '') . (_chance(0.3) ? ' AND v > ' . _int(0, 90) : ''),
			kind => 'nestloop', noplan => 1);
	}
	elsif ($kind eq 'exists')
	{
		my $not = _one('', 'NOT ');
		$self->_query("SELECT p.n FROM {P} p WHERE ${not}EXISTS (SELECT FROM {T} WHERE $e = p.k"
			  . ($predicate ? " AND $predicate" : '') . (_chance(0.4) ? ' AND v > ' . _int(0, 90) : '')
			  . (_chance(0.3) ? ' AND ' . $self->_condition_tree(1) : '') . ')',
			kind => 'nestloop');
	}
	elsif ($kind eq 'lateral')
	{
		my $back = _chance(0.5);
		$self->_query("SELECT p.n, x.k FROM {P} p, LATERAL (SELECT $e AS k FROM {T} WHERE $e "
			  . ($back ? '<=' : '>=') . ' p.k' . ($predicate ? " AND $predicate" : '')
			  . " ORDER BY $e" . ($back ? ' DESC' : '') . ' LIMIT ' . _int(1, 4) . ') x',
			kind => 'nestloop');
	}
	elsif ($kind eq 'distinct')
	{
		$self->_query(_one("SELECT DISTINCT $e FROM {T}", "SELECT $e, count(*) FROM {T}") . " WHERE $where"
			  . ' GROUP BY 1', kind => 'ordered', noplan => 1);
	}
	elsif ($kind eq 'self')
	{
		my $same = $e =~ /^k\d+$/ ? "b.$e = a.$e" : 'b.id = a.id';
		$self->_query("SELECT count(*) FROM (SELECT * FROM {T} WHERE $where ORDER BY id LIMIT 40) a, "
			  . "LATERAL (SELECT id FROM {T} b WHERE $same" . ($predicate ? " AND $predicate" : '') . ') c',
			kind => 'nestloop', noplan => 1);
	}
	elsif ($kind eq 'groups')
	{
		my $filter = _chance(0.5) ? " WHERE $where" : $predicate ? " WHERE $predicate" : '';
		$self->_query('SELECT ' . ($e =~ /^k\d+$/ ? bucket_of($first->{type}, $e) : $e) . ', '
			  . measures_of($self->_returned) . " FROM {T}$filter GROUP BY 1",
			kind => 'ordered', noplan => 1);
	}
	elsif ($kind eq 'dashboard')
	{
		my $filter = _chance(0.8) ? ' WHERE ' . $self->_condition_tree(2) : '';
		$filter = ($filter ? "$filter AND" : ' WHERE') . " ($where)" if _chance(0.3) || $predicate;
		$self->_query($self->_dashboard($filter), kind => 'ordered', noplan => 1);
	}
	elsif ($kind eq 'function')
	{
		$self->_function;
	}
	else
	{
		$self->_prepared;
	}
	return;
}

# A condition on any column of the index, included ones as well, or AND, OR and NOT of some
sub _condition_tree
{
	my ($self, $depth) = @_;
	my $column = _one(@{ $self->{columns} }, @{ $self->{included} });
	my $kind = $depth > 0 ? _weighted(4, 'leaf', 3, 'AND', 3, 'OR', 2, 'NOT') : 'leaf';

	return 'NOT (' . $self->_condition_tree($depth - 1) . ')' if $kind eq 'NOT';
	return '(' . join(" $kind ", map { $self->_condition_tree($depth - 1) } 1 .. _int(2, 3)) . ')'
	  if $kind ne 'leaf';
	return "$column->{expr} <> " . $self->_constant($column) if _chance(0.2);
	return "$column->{expr} <> ALL (" . $self->_array($column, _int(1, 9)) . ')' if _chance(0.1);
	return $self->_condition($column);
}

# An aggregate by a condition of its own
sub _on_condition
{
	my ($self, $measure) = @_;
	my $condition = $self->_condition_tree(1);

	return "$measure FILTER (WHERE $condition)" if $measure =~ /\*/ || _chance(0.7);
	return $measure =~ s/\((.*)\)/(CASE WHEN $condition THEN $1 END)/r if _chance(0.5);
	return "sum(CASE WHEN $condition THEN " . _int(-3, 3) . ' ELSE ' . _int(-3, 3) . ' END)';
}

# What rows are grouped by: columns, or sets of them
sub _sets
{
	my $all = join(', ', @_);

	return _weighted(6, $all, 2, "ROLLUP ($all)", 1, "CUBE ($all)", 1, "GROUPING SETS (($all), ($_[0]), ())",
		1, 'GROUPING SETS (' . join(', ', @_) . ')');
}

# What is added up of rows in groups of any columns, by conditions of the aggregates' own
sub _dashboard
{
	my ($self, $filter) = @_;
	my @returned = $self->_returned;
	my $first = $self->{columns}[0];
	my @all = grep { $_->[0] =~ /^(int|date|timestamp|bool|oid|uuid|decimal)/ } @returned;
	my @groups = map { _one(@all)->[1] } 1 .. (@all ? _int(0, 2) : 0);
	my @measures = split(/, /, measures_of(@returned));

	push @groups, bucket_of($first->{type}, $first->{expr}) if $first->{expr} =~ /^k\d+$/ && _chance(0.3);
	@measures = map { _chance(0.4) ? $self->_on_condition($_) : $_ } @measures;
	if (_chance(0.3))
	{
		@measures = map { _chance(0.7) ? $_ : s/^(count|sum|min|avg)\((?!CASE|\*)/$1(DISTINCT /r } @measures;
	}
	return 'SELECT ' . join(', ', @groups, @measures) . " FROM {T}$filter"
	  . (@groups ? ' GROUP BY ' . _sets(1 .. @groups) : '')
	  . (@groups && _chance(0.2) ? ' HAVING count(*) > ' . _int(0, 3) : '');
}

# Does the index return more than it searches?
sub _has_included { my ($self) = @_; return @{ $self->{included} } > 0; }

# May functions be asked?  They find all rows in one index, or raise an error.
sub _has_functions
{
	my ($self) = @_;
	return ref $self eq 'Differential::Script' && $self->{am} =~ /^gpu_/ && !$self->_unordered
	  && !$self->{predicate} && !$self->{partitioned};
}

# What a function says of n keys, if that is given, in place of a query
sub _function
{
	my ($self, $n) = @_;
	my $first = $self->{columns}[0];
	my $e = $first->{expr};
	# in a session's time zone, such columns compare with others' constants inexactly
	my @same = (same => $first->{type} =~ /^(date|timestamp)$/ ? 1 : 0);
	my $keys = $self->_array($first, $n // _weighted(6, _int(0, 5), 4, _int(5, 400)), @same);
	my $number = ++$self->{number};
	my ($lo, $hi) = map { _chance(0.8) ? $self->_constant($first, @same) : undef } 1 .. 2;
	my @bounds = ("$e IS NOT NULL", defined $lo ? "$e >= $lo" : (), defined $hi ? "$e <= $hi" : ());
	my ($query, $call) = _one(
		[ "SELECT n, CASE WHEN key IS NOT NULL THEN EXISTS (SELECT FROM {T} WHERE $e = key) END "
			  . "FROM unnest($keys) WITH ORDINALITY u (key, n)",
			"SELECT n, found FROM unnest(gpuds_contains('{I}', $keys)) WITH ORDINALITY u (found, n)" ],
		[ "SELECT n, id FROM unnest($keys) WITH ORDINALITY u (key, n) JOIN {T} ON $e = key",
			"SELECT ordinality, id FROM gpuds_lookup('{I}', $keys) l JOIN {T} ON {T}.ctid = l.ctid" ],
		[ 'SELECT count(*) FROM {T} WHERE ' . join(' AND ', @bounds),
			"SELECT gpuds_count('{I}', " . ($lo // 'NULL') . ', ' . ($hi // 'NULL') . ')' ])->@*;

	$self->_seqscan_settings;
	$self->_say("\\echo @@ $number seq set", _for_table($query, 'g') . ';', "\\echo @@");
	# an exclusion constraint may have found a conflict, and there is no index; or it cannot be used yet
	$self->_say('\set there true',
		'SELECT count(*) > 0 AS there FROM pg_index '
		  . "WHERE indexrelid = to_regclass('tg_idx') AND NOT indcheckxmin \\gset",
		'SET work_mem = ' . _one("'64kB'", "'4MB'") . ';');
	$self->_say("\\echo @@ $number gpu set",
		'\if :there', _for_table($call, 'g') . ';', '\else', _for_table($query, 'g') . ';', '\endif',
		"\\echo @@");
	$self->_say('RESET work_mem;');
	return;
}

# A prepared statement run several times, with changes in between
sub _prepared
{
	my ($self) = @_;
	my $first = $self->{columns}[0];
	my $others = $TYPES{ $first->{type} }{others};
	my $type = $others ? _one(@$others) : $first->{type};
	my $sql_type = _sql_type($type);
	my $array = _chance(0.5);
	my $name = 'q' . ++$self->{statements};
	my $predicate = $self->{predicate} ? " AND $self->{predicate}" : '';
	my %settings = _index_settings('any');
	my $condition = $first->{expr} . ($array ? ' = ANY ($1)' : ' ' . _one('=', '=', '<=', '>') . ' $1');
	my $value = sub { return $self->_convert($self->_value($first), $first->{type}, $type); };

	$self->_say('SET plan_cache_mode = ' . _one('auto', 'force_generic_plan', 'force_custom_plan') . ';');
	for my $variant (qw(seq btree gpu))
	{
		my $twin = $variant eq 'btree' ? 'b' : 'g';
		my $query = 'SELECT id, v, ' . $self->_key_list . " FROM {T} WHERE $condition$predicate";
		$self->_say("PREPARE ${name}_$variant ($sql_type" . ($array ? '[]' : '') . ') AS '
			  . _for_table($query, $twin) . ';');
	}
	for my $round (1 .. _int(2, 5))
	{
		my @values = map { $value->() } 1 .. ($array ? _int(0, 30) : 1);
		my $argument = _literal($values[0], $type);
		$argument = "'{" . join(',', map { defined $_ ? "\"$_\"" : 'NULL' } @values) . "}'" if $array;
		my $number = ++$self->{number};
		for my $variant (qw(seq btree gpu))
		{
			$variant eq 'seq' ? $self->_seqscan_settings : $self->_settings(%settings);
			$self->_say("\\echo @@ $number $variant set", "EXECUTE ${name}_$variant ($argument);",
				"\\echo @@");
		}
		$self->_change if _chance(0.6);
	}
	$self->_say("DEALLOCATE ${name}_$_;") for qw(seq btree gpu);
	$self->_say('RESET plan_cache_mode;');
	return;
}

# Three cursors stepped alike, with changes that they must not see
sub _cursors
{
	my ($self) = @_;
	my $n = scalar @{ $self->{columns} };
	my $order = $self->_order_by($n);
	my $where = $self->_where(usable => 1);
	my $filter = _chance(0.6) ? " WHERE $where" : $self->{predicate} ? " WHERE $self->{predicate}" : '';
	my $template = 'SELECT ' . $self->_key_list . " FROM {T}$filter ORDER BY $order";
	my $hold = !$self->{in_block} && _chance(0.15);
	my $own = !$self->{in_block};
	my $name = 'c' . ++$self->{statements};

	$self->_say('BEGIN;') if $own;
	local $self->{in_block} = 1;
	for my $variant (qw(seq btree gpu))
	{
		$variant eq 'seq' ? $self->_seqscan_settings : $self->_settings(_index_settings('ordered'));
		$self->_say("DECLARE ${name}_$variant SCROLL CURSOR" . ($hold ? ' WITH HOLD' : '') . ' FOR '
			  . _for_table($template, $variant eq 'btree' ? 'b' : 'g') . ';');
	}
	for my $step (1 .. _int(4, 14))
	{
		if (_chance(0.25))
		{
			$self->_change;
			next;
		}
		my $count = _int(1, 40);
		my $fetch = _weighted(
			8, "FETCH FORWARD $count", 6, "FETCH BACKWARD $count", 3, 'FETCH NEXT', 3, 'FETCH PRIOR',
			2, 'FETCH FIRST', 2, 'FETCH LAST', 3, 'FETCH ABSOLUTE ' . _int(-50, 50),
			2, 'FETCH RELATIVE ' . _int(-20, 20),
			2, 'FETCH ALL', 1, 'FETCH BACKWARD ALL', 3, "MOVE FORWARD $count", 3, "MOVE BACKWARD $count",
			1, 'MOVE ALL', 1, 'MOVE ABSOLUTE 0');
		my $number = ++$self->{number};
		for my $variant (qw(seq btree gpu))
		{
			$self->_say("\\echo @@ $number $variant list", "$fetch FROM ${name}_$variant;", "\\echo @@");
		}
	}
	if ($hold)
	{
		$self->_say('COMMIT;');
		$self->_change;
		my $number = ++$self->{number};
		for my $variant (qw(seq btree gpu))
		{
			$self->_say("\\echo @@ $number $variant list", "FETCH ALL FROM ${name}_$variant;", "\\echo @@",
				"CLOSE ${name}_$variant;");
		}
	}
	elsif ($own)
	{
		$self->_say(_one('COMMIT;', 'COMMIT;', 'ROLLBACK;'));
	}
	else
	{
		$self->_say("CLOSE ${name}_$_;") for qw(seq btree gpu);
	}
	return;
}

1;
