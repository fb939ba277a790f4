# One random script of test/differential, made from a seed.
#
# The script works on twin tables, tg with the index under test and tb with a
# btree one.  In templates {T} is the table, {I} the index and {P} the table of
# probe values.  The output is cut into blocks by echoed lines:
#
#   @@ NUMBER VARIANT MODE     begins a block, VARIANT is seq, btree or gpu
#   @@                         ends it
#
# Blocks of one number must be equal: line by line (MODE list) or as multisets
# (MODE set).  MODE plan is an EXPLAIN in which the index is looked for, MODE timed
# a statement that may run into statement_timeout: no answer is expected of it.
#
# This is the class "plain"; the other classes of DifferentialClasses.pm are
# derived from it.  They override its steps, whose names begin with an underscore:
# _choose_shape, _preamble, _tables, _step, _block_step, _maintain, _finish.

package DifferentialScript;

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use DifferentialGroups;
use DifferentialRandom;
use DifferentialTypes;

use Exporter 'import';
our @EXPORT_OK = qw(_int _one _chance _weighted _literal _sql_type _for_table);

# new(seed => N, am => NAME, types => [ names of indexable types ], version => of the server)
sub new
{
	my ($class, %args) = @_;
	my $self = bless {
		seed => $args{seed}, am => $args{am}, version => $args{version} // 15,
		out => [], number => 0, id => 0, statements => 0, in_block => 0, stages => [], included => []
	}, $class;
	my %known = map { $_ => 1 } @{ $args{types} // [ map { $_->{name} } values %TYPES ] };

	$self->{typenames} = [ grep { $known{ $TYPES{$_}{name} } && ($self->_unordered || !$TYPES{$_}{hashed}) } sort keys %TYPES ];
	srand($self->{seed} * 7919 + 17);
	$self->_generate;
	return $self;
}

# What is run, as a list of stages that follow each other: each is a list of texts,
# for psql sessions side by side.  The first of them has the blocks that are
# compared; of the others only their errors count.
sub stages
{
	my ($self) = @_;
	my @out = @{ $self->{out} };

	return [ @{ $self->{stages} }, [ join("\n", @out) . "\n" ] ];
}

# Ends a stage; the given texts are run beside it
sub _end_stage
{
	my ($self, @beside) = @_;

	push @{ $self->{stages} }, [ join("\n", splice(@{ $self->{out} })) . "\n", @beside ];
	return;
}

# The whole script to read; with one session and one stage it is what psql gets
sub text
{
	my ($self) = @_;
	my $stages = $self->stages;
	my $text = '';
	my $stage = 0;

	return $stages->[0][0] if @$stages == 1 && @{ $stages->[0] } == 1;
	for my $sessions (@$stages)
	{
		my $session = 0;

		$stage++;
		$text .= "-- stage $stage, session " . ++$session . "\n$_" for @$sessions;
	}
	return $text;
}

# Where it runs: the server "main", or "other", which has little memory
sub server { return 'main'; }

# Messages of errors outside of blocks that mean nothing
sub harmless { return qr/current transaction is aborted|division by zero|must not be prepared|(?:savepoint|cursor) .* does not exist/; }

#
# Output
#

sub _say { my ($self, @lines) = @_; push @{ $self->{out} }, @lines; return; }

sub _for_table
{
	my ($template, $twin) = @_;
	$template =~ s/\{T\}/t$twin/g;
	$template =~ s/\{I\}/t${twin}_idx/g;
	$template =~ s/\{P\}/p/g;
	return $template;
}

# A statement that changes both twins alike: its command tag, rows and errors must agree
sub _both
{
	my ($self, $template, @copy) = @_;
	my $number;

	# Only what is ordered can be clustered by.
	return if $self->_unordered && $template =~ /^CLUSTER/;
	$number = ++$self->{number};

	for my $pair ([ 'btree', 'b' ], [ 'gpu', 'g' ])
	{
		$self->_say("\\echo @@ $number $pair->[0] set", _for_table($template, $pair->[1]) . ';', @copy, "\\echo @@");
	}
	return;
}

# Planner settings of a variant, in one message to the server
sub _settings
{
	my ($self, %on) = @_;
	my @all = qw(seqscan indexscan indexonlyscan bitmapscan sort incremental_sort hashjoin mergejoin nestloop hashagg material memoize);

	$self->_say(join('\; ', (map { "SET enable_$_=" . (($on{$_} // 1) ? 'on' : 'off') } @all), 'SET gpuds.enable_scan=' . _one('on', 'off'),
			'SET max_parallel_workers_per_gather=' . _one(0, 0, 2)) . ';');
	return;
}

sub _seqscan_settings
{
	my ($self) = @_;
	$self->_settings(indexscan => 0, indexonlyscan => 0, bitmapscan => 0);
	return;
}

# Has the index under test no order?
sub _unordered { my ($self) = @_; return $self->{am} eq 'gpu_hash'; }

# How a query may be made to use the index: its ordered form, a join form, or any
sub _index_settings
{
	my ($kind) = @_;

	return (seqscan => 0, bitmapscan => 0, sort => 0, incremental_sort => 0, hashagg => 0) if $kind eq 'ordered';
	return (seqscan => 0, hashjoin => 0, mergejoin => 0, material => 0, memoize => _int(0, 1)) if $kind eq 'nestloop';
	return (seqscan => 0, hashjoin => 0, nestloop => 0, bitmapscan => 0) if $kind eq 'merge';
	return (seqscan => 0, _one([ bitmapscan => 0 ], [ bitmapscan => 0 ], [ indexscan => 0, indexonlyscan => 0 ], [])->@*);
}

# A query in all three ways
sub _query
{
	my ($self, $template, %opt) = @_;
	my $mode = $opt{mode} // 'set';
	my $number = ++$self->{number};
	my %settings = _index_settings($opt{kind} // 'any');

	$self->_seqscan_settings;
	$self->_say("\\echo @@ $number seq $mode", _for_table($template, 'g') . ';', "\\echo @@");
	$self->_settings(%settings);
	$self->_say("\\echo @@ $number btree $mode", _for_table($template, 'b') . ';', "\\echo @@");
	if (!$opt{noplan})
	{
		$self->_say("\\echo @@ $number gpu plan", 'EXPLAIN (COSTS OFF) ' . _for_table($template, 'g') . ';', "\\echo @@");
	}
	$self->_say("\\echo @@ $number gpu $mode", _for_table($template, 'g') . ';', "\\echo @@");
	return;
}

#
# Values
#

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
		push @values, defined $value ? "\"$value\"" : 'NULL';
	}
	return "'{" . join(',', @values) . "}'::" . _sql_type($type) . '[]';
}

#
# Conditions
#

sub _condition
{
	my ($self, $column) = @_;
	my $c = $column->{expr};
	my $ranges = $self->_unordered ? 1 : 10;
	my $kind = _weighted(
		20, 'eq', 12, 'any', 5, 'in', $ranges, 'less', $ranges, 'greater', $ranges, 'between', 4, 'null', 3, 'notnull',
		1, 'empty', 1, 'eqnull', 4, 'param', $ranges / 3, 'anyless', $ranges / 5, 'redundant');

	return "$c = " . $self->_constant($column) if $kind eq 'eq';
	return "$c = ANY (" . $self->_array($column, _weighted(6, _int(1, 5), 3, _int(5, 60), 1, _int(60, 400))) . ')' if $kind eq 'any';
	return "$c IN (" . join(', ', map { $self->_constant($column, same => 1) } 1 .. _int(1, 8)) . ')' if $kind eq 'in';
	return "$c " . _one('<', '<=') . ' ' . $self->_constant($column) if $kind eq 'less';
	return "$c " . _one('>', '>=') . ' ' . $self->_constant($column) if $kind eq 'greater';
	return "$c " . _one('>', '>=') . ' ' . $self->_constant($column) . " AND $c " . _one('<', '<=') . ' ' . $self->_constant($column)
	  if $kind eq 'between';
	return "$c IS NULL" if $kind eq 'null';
	return "$c IS NOT NULL" if $kind eq 'notnull';
	return "$c = ANY ('{}'::" . _sql_type($column->{type}) . '[])' if $kind eq 'empty';
	return "$c = NULL::" . _sql_type($column->{type}) if $kind eq 'eqnull';
	return "$c " . _one('=', '>=', '<') . ' (SELECT ' . $self->_constant($column, null => 1) . ')' if $kind eq 'param';
	return "$c " . _one('<', '<=', '>', '>=') . ' ANY (' . $self->_array($column, _int(1, 6)) . ')' if $kind eq 'anyless';
	return "$c > " . $self->_constant($column) . " AND $c >= " . $self->_constant($column) . " AND $c <= " . $self->_constant($column);
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
		$where = "($where) AND (" . $self->_condition($columns[0]) . ' OR ' . $self->_condition($columns[0]) . ')';
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
	return map { [ $_->{type}, $_->{expr} ] } grep { $_->{expr} =~ /^k\d+$/ } @{ $self->{columns} }, @{ $self->{included} };
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
		push @order, $column->{expr} . ($descending ? ' DESC' : ' ASC') . ($first ? ' NULLS FIRST' : ' NULLS LAST');
	}
	return join(', ', @order);
}

#
# Queries
#

sub _random_query
{
	my ($self) = @_;
	my $first = $self->{columns}[0];
	my $kind = _weighted(
		30, 'rows', 10, 'count', 16, 'ordered', $TYPES{ $first->{type} }{minmax} ? 6 : 0, 'minmax',
		8, 'nestloop', 3, 'nothing', 5, 'merge', 5, 'exists', 4, 'lateral', 4, 'distinct', 5, 'prepared', 3, 'self',
		$self->_has_functions ? 8 : 0, 'function', 6, 'groups');
	my $where = $self->_where;
	my $noplan = !$self->_usable($where);
	my $predicate = $self->{predicate};
	my $e = $first->{expr};

	if ($kind eq 'rows')
	{
		$self->_query('SELECT ' . $self->_row_list . " FROM {T} WHERE $where", noplan => $noplan);
	}
	elsif ($kind eq 'count')
	{
		$self->_query('SELECT ' . ($self->_has_included && _chance(0.7) ? measures_of($self->_returned) : 'count(*), sum(v)') . " FROM {T} WHERE $where",
			noplan => $noplan);
	}
	elsif ($kind eq 'ordered')
	{
		my $n = _int(1, scalar @{ $self->{columns} });
		my $keys = join(', ', map { $_->{expr} } @{ $self->{columns} }[ 0 .. $n - 1 ]);
		my $limit = _weighted(3, '', 5, ' LIMIT ' . _int(1, 30), 2, ' LIMIT ' . _int(0, 200) . ' OFFSET ' . _int(0, 100));
		my $filter = _chance(0.6) ? " WHERE $where" : $predicate ? " WHERE $predicate" : '';
		$self->_query("SELECT $keys FROM {T}$filter ORDER BY " . $self->_order_by($n) . $limit,
			mode => 'list', kind => 'ordered', noplan => $noplan || $self->{partitioned});
	}
	elsif ($kind eq 'minmax')
	{
		my $filter = _chance(0.3) ? " WHERE $where" : $predicate ? " WHERE $predicate" : '';
		$self->_query('SELECT ' . _one("min($e), max($e)", "max($e)", "min($e)") . " FROM {T}$filter",
			kind => 'ordered', noplan => 1);
	}
	elsif ($kind eq 'nestloop' || $kind eq 'merge')
	{
		my $extra = ($predicate ? " AND $predicate" : '') . (_chance(0.3) ? ' AND ' . $self->_condition($self->{columns}[-1]) : '');
		my $join = _weighted(5, 'JOIN', 3, 'LEFT JOIN', $kind eq 'merge' ? 1 : 0, 'RIGHT JOIN');
		my $list = _chance(0.5) ? 'count(*), sum({T}.v)' : 'p.n, {T}.id';
		$list = _chance(0.5) ? measures_of($self->_returned) : join(', ', 'p.n', $self->_key_list, map { $_->{name} } @{ $self->{included} })
		  if $self->_has_included && _chance(0.7);
		$self->_query("SELECT $list FROM {P} p $join {T} ON $e = p.k$extra", kind => $kind, noplan => $kind eq 'merge' || $join eq 'RIGHT JOIN');
	}
	elsif ($kind eq 'nothing')
	{
		# No column is asked for: core would take an index-only scan for possible
		my $filter = $predicate ? " WHERE $predicate" : '';
		$self->_query(_one("SELECT count(*) FROM {T}$filter", "SELECT 1 FROM {T}$filter LIMIT 7", "SELECT EXISTS (SELECT FROM {T}$filter)"), noplan => 1);
	}
	elsif ($kind eq 'exists' && _chance(0.4))
	{
		my $list = _one('count(*)', 'count(*), sum(v)', 'id', $e);
		$self->_query("SELECT $list FROM {T} WHERE $e IN (SELECT p.k FROM {P} p" . (_chance(0.3) ? ' WHERE p.n > ' . _int(0, 5) : '') . ')'
			  . ($predicate ? " AND $predicate" : '') . (_chance(0.3) ? ' AND v > ' . _int(0, 90) : ''),
			kind => 'nestloop', noplan => 1);
	}
	elsif ($kind eq 'exists')
	{
		my $not = _one('', 'NOT ');
		$self->_query("SELECT p.n FROM {P} p WHERE ${not}EXISTS (SELECT FROM {T} WHERE $e = p.k"
			  . ($predicate ? " AND $predicate" : '') . (_chance(0.4) ? ' AND v > ' . _int(0, 90) : '') . ')',
			kind => 'nestloop');
	}
	elsif ($kind eq 'lateral')
	{
		my $back = _chance(0.5);
		$self->_query("SELECT p.n, x.k FROM {P} p, LATERAL (SELECT $e AS k FROM {T} WHERE $e " . ($back ? '<=' : '>=') . ' p.k'
			  . ($predicate ? " AND $predicate" : '') . " ORDER BY $e" . ($back ? ' DESC' : '') . ' LIMIT ' . _int(1, 4) . ') x',
			kind => 'nestloop');
	}
	elsif ($kind eq 'distinct')
	{
		$self->_query(_one("SELECT DISTINCT $e FROM {T}", "SELECT $e, count(*) FROM {T}") . " WHERE $where"
			  . ' GROUP BY 1', kind => 'ordered', noplan => 1);
	}
	elsif ($kind eq 'self')
	{
		$self->_query("SELECT count(*) FROM (SELECT * FROM {T} WHERE $where ORDER BY id LIMIT 40) a, LATERAL (SELECT id FROM {T} b WHERE "
			  . ($e =~ /^k\d+$/ ? "b.$e = a.$e" : "b.id = a.id") . ($predicate ? " AND $predicate" : '') . ') c', kind => 'nestloop', noplan => 1);
	}
	elsif ($kind eq 'groups')
	{
		my $filter = _chance(0.5) ? " WHERE $where" : $predicate ? " WHERE $predicate" : '';
		$self->_query('SELECT ' . ($e =~ /^k\d+$/ ? bucket_of($first->{type}, $e) : $e) . ', '
			  . measures_of($self->_returned) . " FROM {T}$filter GROUP BY 1", kind => 'ordered', noplan => 1);
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

# Does the index return more than it searches?
sub _has_included { my ($self) = @_; return @{ $self->{included} } > 0; }

# May functions be asked?  They find all rows in one index, or raise an error.
sub _has_functions
{
	my ($self) = @_;
	return ref $self eq __PACKAGE__ && $self->{am} =~ /^gpu_/ && !$self->_unordered && !$self->{predicate} && !$self->{partitioned};
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
		[ "SELECT n, CASE WHEN key IS NOT NULL THEN EXISTS (SELECT FROM {T} WHERE $e = key) END FROM unnest($keys) WITH ORDINALITY u (key, n)",
			"SELECT n, found FROM unnest(gpuds_contains('{I}', $keys)) WITH ORDINALITY u (found, n)" ],
		[ "SELECT n, id FROM unnest($keys) WITH ORDINALITY u (key, n) JOIN {T} ON $e = key",
			"SELECT ordinality, id FROM gpuds_lookup('{I}', $keys) l JOIN {T} ON {T}.ctid = l.ctid" ],
		[ 'SELECT count(*) FROM {T} WHERE ' . join(' AND ', @bounds),
			"SELECT gpuds_count('{I}', " . ($lo // 'NULL') . ', ' . ($hi // 'NULL') . ')' ])->@*;

	$self->_seqscan_settings;
	$self->_say("\\echo @@ $number seq set", _for_table($query, 'g') . ';', "\\echo @@");
	# an exclusion constraint may have found a conflict, and there is no index; or it cannot be used yet
	$self->_say('\set there true', "SELECT count(*) > 0 AS there FROM pg_index WHERE indexrelid = to_regclass('tg_idx') AND NOT indcheckxmin \\gset", 'SET work_mem = ' . _one("'64kB'", "'4MB'") . ';');
	$self->_say("\\echo @@ $number gpu set", '\if :there', _for_table($call, 'g') . ';', '\else', _for_table($query, 'g') . ';', '\endif', "\\echo @@");
	$self->_say('RESET work_mem;');
	return;
}

# A prepared statement run several times, with changes in between
sub _prepared
{
	my ($self) = @_;
	my $first = $self->{columns}[0];
	my $type = $TYPES{ $first->{type} }{others} ? _one(@{ $TYPES{ $first->{type} }{others} }) : $first->{type};
	my $sql_type = _sql_type($type);
	my $array = _chance(0.5);
	my $name = 'q' . ++$self->{statements};
	my $predicate = $self->{predicate} ? " AND $self->{predicate}" : '';
	my %settings = _index_settings('any');
	my $condition = $array ? "$first->{expr} = ANY (\$1)" : "$first->{expr} " . _one('=', '=', '<=', '>') . ' $1';

	$self->_say('SET plan_cache_mode = ' . _one('auto', 'force_generic_plan', 'force_custom_plan') . ';');
	for my $variant (qw(seq btree gpu))
	{
		my $twin = $variant eq 'btree' ? 'b' : 'g';
		$self->_say("PREPARE ${name}_$variant ($sql_type" . ($array ? '[]' : '') . ') AS '
			  . _for_table("SELECT id, v, " . $self->_key_list . " FROM {T} WHERE $condition$predicate", $twin) . ';');
	}
	for my $round (1 .. _int(2, 5))
	{
		my $argument = $array ? "'{" . join(',', map { my $x = $self->_convert($self->_value($first), $first->{type}, $type); defined $x ? "\"$x\"" : 'NULL' } 1 .. _int(0, 30)) . "}'"
		  : _literal($self->_convert($self->_value($first), $first->{type}, $type), $type);
		my $number = ++$self->{number};
		for my $variant (qw(seq btree gpu))
		{
			$variant eq 'seq' ? $self->_seqscan_settings : $self->_settings(%settings);
			$self->_say("\\echo @@ $number $variant set", "EXECUTE ${name}_$variant ($argument);", "\\echo @@");
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
			2, 'FETCH FIRST', 2, 'FETCH LAST', 3, 'FETCH ABSOLUTE ' . _int(-50, 50), 2, 'FETCH RELATIVE ' . _int(-20, 20),
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
			$self->_say("\\echo @@ $number $variant list", "FETCH ALL FROM ${name}_$variant;", "\\echo @@", "CLOSE ${name}_$variant;");
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

#
# Changes
#

sub _row
{
	my ($self) = @_;
	return (++$self->{id}, _int(0, 99), map { $self->_value($_) } @{ $self->{base} });
}

sub _insert
{
	my ($self, $n) = @_;
	my @columns = ('id', 'v', map { $_->{name} } @{ $self->{base} });
	my $conflict = $self->{exclusion} && _chance(0.8) ? ' ON CONFLICT DO NOTHING' : '';

	return unless $n;
	# In an aborted transaction psql would take the data of a COPY for statements
	if (!$self->{exclusion} && (!$self->{in_block} || $self->{goes_on} eq 'on') && _chance(0.4))
	{
		my @lines = map { join("\t", map { $_ // '\N' } $self->_row) } 1 .. $n;
		$self->_both('COPY {T} (' . join(', ', @columns) . ') FROM stdin', @lines, '\.');
		return;
	}
	my @rows;
	for (1 .. $n)
	{
		my ($id, $v, @keys) = $self->_row;
		push @rows, "($id, $v" . join('', map { ', ' . (defined $_ ? "'$_'" : 'NULL') } @keys) . ')';
	}
	$self->_both('INSERT INTO {T} (' . join(', ', @columns) . ') VALUES ' . join(', ', @rows) . $conflict);
	return;
}

# Rows with new ids made of rows that there are, in one statement
sub _insert_select
{
	my ($self) = @_;
	my $offset = 10000000 * ++$self->{copies};
	my $keys = join('', map { ", $_->{name}" } @{ $self->{base} });
	my $n = _int(1, 400);

	$self->_both("INSERT INTO {T} (id, v$keys) SELECT id + $offset, v$keys FROM {T} WHERE id <= $n ORDER BY id"
		  . ($self->{exclusion} ? ' ON CONFLICT DO NOTHING' : ''));
	return;
}

sub _some_rows
{
	my ($self) = @_;
	return _weighted(
		5, $self->_where, 3, 'id % ' . _int(2, 12) . ' = ' . _int(0, 3),
		2, 'id BETWEEN ' . _int(0, $self->{id}) . ' AND ' . _int(0, $self->{id}), 1, 'v < ' . _int(0, 60));
}

# INSERT, UPDATE or DELETE
sub _change
{
	my ($self) = @_;
	my $kind = _weighted(10, 'insert', 4, 'select', 8, 'update', 4, 'hot', 6, 'delete', 3, 'join');
	my $target = _one(@{ $self->{base} });

	if (_chance(0.5)) { $self->_settings(_index_settings('any')); }
	else { $self->_settings; }
	if ($kind eq 'insert')
	{
		$self->_insert(_weighted(4, 1, 4, _int(1, 20), 2, _int(20, 300)));
	}
	elsif ($kind eq 'select')
	{
		$self->_insert_select;
	}
	elsif ($kind eq 'update')
	{
		my $set = _weighted(
			5, "$target->{name} = " . _literal($self->_value($target), $target->{type}),
			3, "$target->{name} = CASE WHEN id % 3 = 0 THEN " . _literal($self->_value($target), $target->{type}) . ' ELSE '
			  . _literal($self->_value($target), $target->{type}) . ' END',
			2, "$target->{name} = $target->{name}",
			$TYPES{ $target->{type} }{add} && $target->{type} !~ /float/ ? 3 : 0, "$target->{name} = $target->{name} " . _one('+', '-') . ' 1',
			1, 'v = (v + 13) % 100');
		$self->_both("UPDATE {T} SET $set WHERE " . $self->_some_rows);
	}
	elsif ($kind eq 'join')
	{
		my $e = $self->{columns}[0]{expr};
		my $on = "p.k = $e" . ($self->{predicate} ? " AND $self->{predicate}" : '');

		$self->_settings(_index_settings('nestloop'));
		$self->_both(_one(
			"UPDATE {T} SET v = (v + 17) % 100 FROM {P} p WHERE $on", "DELETE FROM {T} USING {P} p WHERE $on AND v < 30",
			"MERGE INTO {T} USING (SELECT DISTINCT k FROM {P}) p ON $on WHEN MATCHED AND v < 20 THEN DELETE WHEN MATCHED THEN UPDATE SET v = v - 1")
		);
	}
	elsif ($kind eq 'hot')
	{
		$self->_both('UPDATE {T} SET pad = id::text WHERE ' . $self->_some_rows);
	}
	else
	{
		my $using = _chance(0.15) && $self->{columns}[0]{expr} =~ /^k/;
		$self->_both($using ? "DELETE FROM {T} USING {P} p WHERE p.k = $self->{columns}[0]{expr} AND p.n < 4"
			: 'DELETE FROM {T} WHERE ' . $self->_some_rows);
	}
	return;
}

# What else there may be in a transaction: pairs weight, kind; and to do it, which
# returns whether the kind is known
sub _begun { return; }
sub _block_kinds { return (); }
sub _block_step { return 0; }

# A transaction: changes, queries, savepoints, and an end of some kind
sub _block
{
	my ($self) = @_;
	my @savepoints;
	my $changed_file = 0;

	$self->_say(_one('BEGIN;', 'BEGIN;', 'BEGIN ISOLATION LEVEL REPEATABLE READ;', 'BEGIN ISOLATION LEVEL SERIALIZABLE;'));
	$self->{in_block} = 1;
	$self->_begun;
	for my $step (1 .. _int(2, 9))
	{
		my $kind = _weighted(12, 'change', 8, 'query', 5, 'savepoint', 4, 'rollback', 2, 'release', 1, 'cursor', 1, 'truncate', 1, 'reindex',
			$self->_block_kinds);
		if ($self->_block_step($kind)) { }
		elsif ($kind eq 'change') { $self->_change; }
		elsif ($kind eq 'query') { $self->_random_query; }
		elsif ($kind eq 'savepoint')
		{
			push @savepoints, 's' . ++$self->{statements};
			$self->_say("SAVEPOINT $savepoints[-1];");
			$self->_change;
		}
		elsif ($kind eq 'rollback' && @savepoints)
		{
			splice(@savepoints, _int(1, scalar @savepoints));
			$self->_say("ROLLBACK TO $savepoints[-1];");
			$self->_random_query if _chance(0.6);
		}
		elsif ($kind eq 'release' && @savepoints)
		{
			splice(@savepoints, 1) if _chance(0.3);
			$self->_say('RELEASE ' . pop(@savepoints) . ';');
		}
		elsif ($kind eq 'cursor') { $self->_cursors; }
		elsif ($kind eq 'truncate' && _chance(0.5))
		{
			$self->_both('TRUNCATE {T}');
			$self->_insert(_int(0, 50));
		}
		elsif ($kind eq 'reindex' && _chance(0.5) && !$self->{partitioned})
		{
			$self->_both('REINDEX INDEX {I}');
		}
	}
	$self->{in_block} = 0;
	if (!$self->{temporary} && _chance(0.12))
	{
		# An aborted transaction cannot be prepared: then there is nothing to commit
		my $name = "diff_$self->{seed}_" . ++$self->{statements};
		my $end = _one('COMMIT', 'COMMIT', 'ROLLBACK');
		$self->_say("PREPARE TRANSACTION '$name';",
			"SELECT format('$end PREPARED %L', gid) FROM pg_prepared_xacts WHERE gid = '$name' \\gexec");
	}
	else
	{
		$self->_say(_weighted(6, 'COMMIT;', 3, 'ROLLBACK;', 1, 'SELECT 1/0; ROLLBACK;'));
	}
	return;
}

# What is not done in a transaction, or rarely
sub _maintain
{
	my ($self) = @_;
	my @kinds = (14, 'vacuum', 3, 'reindex', 3, 'evict', 2, 'load', 1, 'rewrite', 1, 'rebuild', 1, 'truncate', 2, 'analyze');

	push @kinds, (1, 'vacuumfull');
	push @kinds, (2, 'reindexc') unless $self->{temporary} || $self->{exclusion};
	push @kinds, (2, 'cluster') unless $self->{predicate} || $self->{partitioned};
	push @kinds, (1, 'logged') unless $self->{temporary} || $self->{partitioned};
	my $kind = _weighted(@kinds);

	if ($kind eq 'vacuum')
	{
		$self->_both(_weighted(6, 'VACUUM (INDEX_CLEANUP ON) {T}', 1, 'VACUUM {T}', 2, 'VACUUM (INDEX_CLEANUP ON, FREEZE, ANALYZE) {T}',
				1, 'VACUUM (INDEX_CLEANUP OFF) {T}'));
		$self->_insert(_int(1, 60)) if _chance(0.6);
	}
	elsif ($kind eq 'analyze') { $self->_both('ANALYZE {T}'); }
	elsif ($kind eq 'vacuumfull') { $self->_both('VACUUM FULL {T}'); }
	elsif ($kind eq 'reindex') { $self->_both(_one('REINDEX INDEX {I}', 'REINDEX TABLE {T}')); }
	elsif ($kind eq 'reindexc') { $self->_both('REINDEX INDEX CONCURRENTLY {I}'); }
	elsif ($kind eq 'cluster') { $self->_both('CLUSTER {T} USING {I}') }
	elsif ($kind eq 'logged')
	{
		$self->{unlogged} = !$self->{unlogged};
		$self->_both('ALTER TABLE {T} SET ' . ($self->{unlogged} ? 'UNLOGGED' : 'LOGGED'));
	}
	elsif ($kind eq 'rewrite') { $self->_both('ALTER TABLE {T} ALTER pad TYPE ' . _one('varchar(40)', 'text') . " USING pad || ''"); }
	elsif ($kind eq 'truncate')
	{
		$self->_both('TRUNCATE {T}');
		$self->_insert(_int(0, 200));
	}
	elsif ($kind eq 'rebuild' && !$self->{exclusion})
	{
		$self->_both('DROP INDEX {I}');
		$self->_create_index;
	}
	elsif (($kind eq 'evict' || $kind eq 'load') && $self->{am} =~ /^gpu_/)
	{
		$self->_say("SELECT gpuds_index_$kind(oid::regclass) FROM pg_class WHERE relkind = 'i' AND relam IN (SELECT oid FROM pg_am WHERE amname ~ '^gpu_') AND pg_table_is_visible(oid);");
	}
	return;
}

#
# The tables
#

# A column of the tables, whose values are drawn alike
sub _column
{
	my ($name, $type, $domain) = @_;
	my $column = {
		name => $name, type => $type, domain => $domain,
		stride => _weighted(4, 1, 1, 7, $type eq 'int8' ? 2 : 0, 9223372036854, $type eq 'int4' ? 1 : 0, 20011),
		nulls => _weighted(4, 0, 3, 0.05, 1, 0.5), specials => _weighted(4, 0.02, 1, 0, 1, 0.3) };

	$column->{origin} = _chance(0.5) ? int($domain / 2) * $column->{stride} : 0;
	return $column;
}

# What the index returns beside its key: columns of their own, or those that all tables have.  Some have room beside the
# key, others do not.  An entry has a bit for each, and there are eight columns at most, with 32 bytes beside.
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
		my $type = $name =~ /^i\d/ ? _one(grep { !$TYPES{$_}{hashed} } @{ $self->{typenames} }) : 'int4';

		last if @{ $self->{included} } == $room;
		next if $bytes < ($TYPES{$type}{bits} + 7) / 8;
		$bytes -= int(($TYPES{$type}{bits} + 7) / 8);
		push @{ $self->{included} }, { %{ _column($name, $type, _one(5, 1000, 100000)) }, expr => $name };
		push @{ $self->{base} }, $self->{included}[-1] if $name =~ /^i\d/;
	}
	return;
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
		my $type = _weighted(map { my $t = $_; ($t =~ /^int/ ? 4 : $t =~ /^(timestamptz|float8|date|uuid)$/ ? 2 : 1), $t } @{ $self->{typenames} });
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
		$self->{columns} = [ { name => 'v', expr => $expr, type => 'int4', domain => 60, stride => 1, origin => 10, nulls => 0.02, specials => 0.05 } ];
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
		for my $list ($self->{base}, $self->{columns})
		{
			$_->{domain} = 1000000 for @$list;
			$_->{descending} = $_->{nulls_first} = 0 for @$list;
		}
	}
	elsif (_chance(0.12))
	{
		$self->{predicate} = _one('v > 30', 'v % 3 <> 0', "$self->{base}[0]{name} IS NOT NULL", 'id > 40');
	}
	$self->_choose_included($self->{expression} ? 32 : $bits) if !$self->{exclusion} && _chance(0.35);
	return;
}

# The index's columns, as CREATE INDEX has them
sub _index_columns
{
	my ($self) = @_;
	my $keys = join(', ', map { $_->{expr} . ($_->{descending} ? ' DESC' : '') . ($_->{nulls_first} ? ' NULLS FIRST' : ' NULLS LAST') } @{ $self->{columns} });
	my $included = join(', ', map { $_->{name} } @{ $self->{included} });

	return "($keys)" . ($included ? " INCLUDE ($included)" : '');
}

# Makes it only if it is not there when that is asked for
sub _create_index
{
	my ($self, $if_missing) = @_;
	my $missing = $if_missing ? ' IF NOT EXISTS' : '';
	my $concurrently = !$self->{temporary} && !$self->{in_block} && !$self->{partitioned} && _chance(0.2) ? ' CONCURRENTLY' : '';
	my $options = _chance(0.2) ? ' WITH (fillfactor = ' . _int(50, 100) . ')' : '';
	my $list = $self->_index_columns;
	my $where = $self->{predicate} ? " WHERE $self->{predicate}" : '';

	if ($self->{exclusion})
	{
		my $with = join(', ', map { "$_->{expr} WITH =" } @{ $self->{columns} });
		$self->_both_ams("ALTER TABLE {T} ADD CONSTRAINT {I} EXCLUDE USING {AM} ($with)$where");
		return;
	}
	$self->_both_ams("CREATE INDEX$concurrently$missing {I} ON {T} USING {AM} $list$options$where");
	return;
}

sub _both_ams
{
	my ($self, $template) = @_;
	my $number = ++$self->{number};

	for my $pair ([ 'btree', 'b', 'btree' ], [ 'gpu', 'g', $self->{am} ])
	{
		(my $text = _for_table($template, $pair->[1])) =~ s/\{AM\}/$pair->[2]/;
		$text = _without_order($text) if $pair->[2] eq 'gpu_hash';
		$self->_say("\\echo @@ $number $pair->[0] set", "$text;", "\\echo @@");
	}
	return;
}

# The columns of an index that has no order
sub _without_order
{
	my ($text) = @_;
	return $text =~ s/ DESC\b| NULLS (?:FIRST|LAST)//gr;
}

# Columns of the tables, as CREATE TABLE has them
sub _column_list
{
	my ($self) = @_;
	return 'id int, v int' . join('', map { ", $_->{name} " . _sql_type($_->{type}) } @{ $self->{base} }) . ', pad text';
}

# What a session needs to be told, also after a \connect
sub _session
{
	my ($self) = @_;

	$self->_say('SET client_min_messages = error;', "SET TimeZone = 'Europe/Athens';", 'SET extra_float_digits = 1;', 'SET search_path = diff, public;',
		# As soon as a query may have workers, it has them
		'SET parallel_setup_cost = 0;', 'SET parallel_tuple_cost = 0;', 'SET min_parallel_table_scan_size = 0;', 'SET max_parallel_workers_per_gather = 0;');
	return;
}

sub _preamble
{
	my ($self) = @_;

	$self->_say('-- ' . $self->name . ", seed $self->{seed}");
	$self->_session;
	# where errors are part of the game a transaction goes on after them
	$self->_say("\\set ON_ERROR_ROLLBACK $self->{goes_on}", 'DROP SCHEMA IF EXISTS diff CASCADE;', 'CREATE SCHEMA diff;');
	$self->_types;
	return;
}

sub _types
{
	my ($self) = @_;

	$self->_say("CREATE TYPE diff_enum AS ENUM ('label3', 'label0', 'label5', 'label1', 'label2');", "ALTER TYPE diff_enum ADD VALUE 'label4';");
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
		$self->_say("CREATE ${persistence}TABLE t$twin (" . $self->_column_list . ')' . ($self->{partitioned} ? ' PARTITION BY HASH (id)' : '') . "$options;");
		if ($self->{partitioned})
		{
			$self->_say("CREATE TABLE t${twin}_p$_ PARTITION OF t$twin FOR VALUES WITH (MODULUS 3, REMAINDER $_);") for 0 .. 2;
		}
	}
	return;
}

# The table of probe values
sub _probes
{
	my ($self) = @_;
	my $first = $self->{columns}[0];
	my $n = 0;

	$self->_say('CREATE TABLE p (n int, k ' . _sql_type($first->{type}) . ');');
	$self->_say('INSERT INTO p VALUES ' . join(', ', map { '(' . ++$n . ', ' . _literal($self->_value($first), $first->{type}) . ')' } 1 .. _int(1, 30)) . ';');
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

sub _step
{
	my ($self) = @_;
	my $kind = _weighted(10, 'query', 8, 'change', 6, 'block', 7, 'maintain', 2, 'cursors');

	if ($kind eq 'query') { $self->_random_query for 1 .. 2; }
	elsif ($kind eq 'change') { $self->_change; $self->_random_query if _chance(0.7); }
	elsif ($kind eq 'block') { $self->_block; $self->_random_query if _chance(0.6); }
	elsif ($kind eq 'maintain') { $self->_maintain; $self->_random_query; }
	else { $self->_cursors; }
	return;
}

# Everything is looked at once more
sub _final_queries
{
	my ($self) = @_;

	$self->_query('SELECT * FROM {T}', noplan => 1);
	$self->_query('SELECT ' . $self->_row_list . ' FROM {T} WHERE ' . $self->_where(usable => 1)) for 1 .. 2;
	$self->_query('SELECT ' . $self->_key_list . ' FROM {T}' . ($self->{predicate} ? " WHERE $self->{predicate}" : '') . ' ORDER BY '
		  . $self->_order_by(scalar @{ $self->{columns} }), mode => 'list', kind => 'ordered', noplan => $self->{partitioned});
	return;
}

sub _check
{
	my ($self) = @_;

	return unless $self->{am} =~ /^gpu_/;
	$self->_say("SELECT gpuds_index_check(oid::regclass, true) FROM pg_class WHERE relkind = 'i' AND relam IN (SELECT oid FROM pg_am WHERE amname ~ '^gpu_') AND pg_table_is_visible(oid);");
	return;
}

sub _end
{
	my ($self) = @_;

	$self->_say('SET client_min_messages = error;', 'DROP SCHEMA diff CASCADE;', '\echo @@ 0 end list', '\echo @@');
	return;
}

# The class's name
sub name { return 'plain'; }

sub _generate
{
	my ($self) = @_;

	$self->_choose_shape;
	$self->{goes_on} = $self->{exclusion} || _chance(0.3) ? 'on' : 'off';
	$self->_preamble;
	$self->_tables;
	$self->_probes;
	$self->_fill;
	$self->_step for 1 .. $self->_step_count;
	$self->_final_queries;
	$self->_check;
	$self->_end;
	return;
}

sub _step_count { return _int(10, 22); }

sub _load
{
	my ($self, $rows) = @_;

	while ($rows > 0)
	{
		my $n = $rows < 1000 ? $rows : 1000;
		$self->_insert($n);
		$rows -= $n;
	}
	return;
}

1;
