# Scripts of test/differential with a column of points: boxes, circles, points that are nearly the same, and
# arrays of them.  The twin has no index, for no other index finds points that are no numbers.

package Differential::Points;

use strict;
use warnings;

use Differential::Output qw(_index_settings);
use Differential::Random;
use parent 'Differential::Script';

sub name { return 'points'; }

sub _coordinate
{
	my ($self) = @_;

	return _one('NaN', 'Infinity', '-Infinity', '-0', '0', '1e300', '-1e300', '1e-300', '5e-324')
	  if _chance($self->{specials});
	my $n = _int(-$self->{domain}, $self->{domain});
	return _weighted(6, $n, 3, $n / 10, 1, $n + _one(1e-6, -1e-6, 9.9e-7, 1.1e-6, 1e-9));
}

sub _point { my ($self) = @_; return '(' . $self->_coordinate . ',' . $self->_coordinate . ')'; }

# What is around a place: a box or a circle, small mostly
sub _shape
{
	my ($self, $kind) = @_;
	my $size = _weighted(3, 0, 6, $self->{domain} / 20, 3, $self->{domain} / 3, 1, 3 * $self->{domain});

	return $self->_point . ',' . $self->_point if $kind eq 'box' && _chance(0.2);
	if ($kind eq 'box')
	{
		my ($x, $y) = (_int(-$self->{domain}, $self->{domain}), _int(-$self->{domain}, $self->{domain}));

		return "($x,$y),(" . ($x + $size * rand()) . ',' . ($y + $size * rand()) . ')';
	}
	return '<' . $self->_point . ",$size>";
}

# An array's elements, of which those of boxes have another delimiter
sub _shapes
{
	my ($self, $kind, $n) = @_;
	my @all = map { _chance(0.05) ? 'NULL' : '"' . $self->_shape($kind) . '"' } 1 .. $n;

	return "'{" . join($kind eq 'box' ? ';' : ',', @all) . "}'::${kind}[]";
}

sub _condition
{
	my ($self) = @_;
	my $kind = _one('box', 'box', 'circle');
	my $way = _weighted(8, 'within', 4, 'any', 2, 'same', 1, 'null', 1, 'notnull', 1, 'param');

	return 'at <@ ANY (' . $self->_shapes($kind, _weighted(6, _int(1, 8), 1, _int(0, 300))) . ')'
	  if $way eq 'any';
	return "at ~= '" . $self->_point . "'" if $way eq 'same';
	return 'at IS NULL' if $way eq 'null';
	return 'at IS NOT NULL' if $way eq 'notnull';
	return "at <@ (SELECT '" . $self->_shape($kind) . "'::$kind)" if $way eq 'param';
	return _chance(0.7)
	  ? "at <@ '" . $self->_shape($kind) . "'::$kind"
	  : "'" . $self->_shape($kind) . "'::$kind @> at";
}

sub _where
{
	my ($self) = @_;
	my $where = $self->_condition;

	$where .= ' AND ' . $self->_condition if _chance(0.2);
	$where = "($where OR " . $self->_condition . ')' if _chance(0.1);
	$where .= ' AND v ' . _one('<', '>=', '<>') . ' ' . _int(0, 99) if _chance(0.3);
	return $where . ($self->{predicate} ? " AND $self->{predicate}" : '');
}

sub _random_query
{
	my ($self) = @_;
	my $kind = _weighted(5, 'rows', 5, 'count', 2, 'groups', 3, 'join', 1, 'limit');

	if ($kind eq 'join')
	{
		my $type = _one('box', 'circle');
		my $on = "{T}.at <@ q.$type" . ($self->{predicate} ? " AND $self->{predicate}" : '');

		$self->_query(_one(
				"SELECT q.n, {T}.id FROM q JOIN {T} ON $on",
				"SELECT q.n, count({T}.id), sum(v) FROM q LEFT JOIN {T} ON $on GROUP BY 1",
				"SELECT n FROM q WHERE EXISTS (SELECT FROM {T} WHERE $on)",
				"SELECT q.n, s.id, s.at FROM q, LATERAL (SELECT id, at FROM {T} WHERE $on OFFSET 0) s"),
			kind => 'nestloop', noplan => 1);
		return;
	}
	my $list = $kind eq 'count' ? 'count(*), sum(v)' : $kind eq 'groups' ? 'v % 3, count(*), max(v)'
	  : $kind eq 'limit' ? 'count(*) FROM (SELECT id' : _one('id, at', 'at', 'id, v', 'at, v');
	my $rest = $kind eq 'groups' ? ' GROUP BY 1' : $kind eq 'limit' ? ' LIMIT ' . _int(1, 50) . ') s' : '';

	$self->_query("SELECT $list FROM {T} WHERE " . $self->_where . $rest);
	return;
}

sub _insert
{
	my ($self, $n) = @_;
	my @rows;

	for (1 .. $n)
	{
		my $at = _chance(0.04) ? 'NULL' : "'" . $self->_point . "'";
		push @rows, '(' . ++$self->{id} . ', ' . _int(0, 99) . ", $at)";
	}

	$self->_both('INSERT INTO {T} (id, v, at) VALUES ' . join(', ', @rows)) if @rows;
	return;
}

sub _change
{
	my ($self) = @_;
	my $kind = _weighted(5, 'insert', 3, 'move', 1, 'shift', 1, 'hot', 3, 'delete');
	my $where = _one($self->_where, 'id % ' . _int(2, 9) . ' = 1', 'id > ' . _int(0, $self->{id}));

	$self->_settings(_index_settings('any'));
	if ($kind eq 'insert') { $self->_insert(_one(1, _int(1, 30), _int(30, 300))); }
	elsif ($kind eq 'move') { $self->_both("UPDATE {T} SET at = '" . $self->_point . "' WHERE $where"); }
	elsif ($kind eq 'shift')
	{
		$self->_both("UPDATE {T} SET at = at + point(1, 0), v = (v + 7) % 100 WHERE $where");
	}
	elsif ($kind eq 'hot') { $self->_both("UPDATE {T} SET pad = id::text WHERE $where"); }
	else { $self->_both("DELETE FROM {T} WHERE $where"); }
	return;
}

sub _maintain
{
	my ($self) = @_;

	my @kinds = (6, 'VACUUM (INDEX_CLEANUP ON) tg;', 2, 'VACUUM (FREEZE, ANALYZE) tg;', 1, 'VACUUM FULL tg;');

	push @kinds, (2, 'REINDEX INDEX tg_idx;', 1, 'REINDEX INDEX CONCURRENTLY tg_idx;',
		$self->{predicate} ? 0 : 1, 'CLUSTER tg USING tg_idx;',
		3, "SELECT gpuds_index_evict('tg_idx') \\g /dev/null",
		2, "SELECT gpuds_index_load('tg_idx') \\g /dev/null") if $self->{am} =~ /^gpu_/;
	$self->_say(_weighted(@kinds));
	return;
}

# A transaction with savepoints
sub _block
{
	my ($self) = @_;
	my $savepoints = 0;

	$self->_say('BEGIN ISOLATION LEVEL ' . _one('READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE') . ';');
	for (1 .. _int(2, 6))
	{
		my $kind = _weighted(4, 'change', 3, 'query', 2, 'savepoint', 2, 'rollback');

		if ($kind eq 'query') { $self->_random_query; }
		elsif ($kind eq 'savepoint') { $self->_say('SAVEPOINT s' . ++$savepoints . ';'); }
		elsif ($kind eq 'rollback' && $savepoints)
		{
			$savepoints = _int(1, $savepoints);
			$self->_say("ROLLBACK TO s$savepoints;");
		}
		else { $self->_change; }
	}
	$self->_say(_weighted(3, 'COMMIT;', 2, 'ROLLBACK;'));
	return;
}

sub _step
{
	my ($self) = @_;
	my $kind = _weighted(5, 'query', 4, 'change', 3, 'block', 3, 'maintain');

	if ($kind eq 'change') { $self->_change; }
	elsif ($kind eq 'block') { $self->_block; }
	elsif ($kind eq 'maintain') { $self->_maintain; }
	$self->_random_query for 1 .. 2;
	return;
}

sub _make_tables
{
	my ($self) = @_;
	my $persistence = _weighted(6, '', 1, 'UNLOGGED ', 1, 'TEMP ');
	my $included = _one('', ' INCLUDE (v)', ' INCLUDE (id, v)');
	my $index = "CREATE INDEX tg_idx ON tg USING $self->{am} (at" . _one('', '', ' DESC', ' NULLS FIRST')
	  . ")$included" . ($self->{predicate} ? " WHERE $self->{predicate};" : ';');
	my $before = _chance(0.4);

	$self->_say("CREATE ${persistence}TABLE t$_ (id int, v int, at point, pad text);") for qw(g b);
	$index = '' unless $self->{am} =~ /^gpu_/;
	$self->_say($index) if $before;
	$self->_insert(_one(0, _int(1, 100), _int(300, 2000)));
	$self->_say($index) unless $before;
	$self->_say('CREATE TABLE q (n int, box box, circle circle);');
	for my $n (1 .. _int(1, 40))
	{
		my @shapes = map { "'" . $self->_shape($_) . "'" } qw(box circle);
		$self->_say("INSERT INTO q VALUES ($n, " . join(', ', @shapes) . ');');
	}
	$self->_say('ANALYZE;') if _chance(0.7);
	return;
}

sub _generate
{
	my ($self) = @_;

	# hashes are of values that are equal, of which there are none
	$self->{am} = 'gpu_btree' if $self->_unordered;
	$self->{domain} = _one(3, 100, 100, 100000);
	$self->{specials} = _weighted(3, 0.01, 1, 0, 1, 0.2);
	$self->{predicate} = _chance(0.1) ? 'v > 30' : '';
	$self->{goes_on} = 'off';
	$self->_preamble;
	$self->_make_tables;
	$self->_step for 1 .. _int(12, 24);
	$self->_random_query for 1 .. 5;
	$self->_check;
	$self->_end;
	return;
}

1;
