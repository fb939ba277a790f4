# Scripts of test/differential in which statement_timeout ends queries, changes and
# maintenance wherever it falls.  A query that was ended is asked again without; a
# change is rolled back, or was of both twins in one transaction.

package Differential::Timeouts;

use strict;
use warnings;

use Differential::Output qw(_for_table _index_settings);
use Differential::Random;
use parent 'Differential::Script';

sub name { return 'timeouts'; }

sub _choose_shape
{
	my ($self) = @_;

	$self->SUPER::_choose_shape;
	@$self{qw(temporary partitioned)} = (_chance(0.1), 0);
	if (delete $self->{exclusion})
	{
		$_->{domain} = 1000 for @{ $self->{columns} };
	}
	return;
}

sub _row_count { return _int(500, 1500); }
sub _step_count { return _int(6, 10); }

# Enough rows that a load takes milliseconds
sub _fill
{
	my ($self) = @_;

	$self->SUPER::_fill;
	$self->_multiply(_int(2, 4));
	return;
}

sub _multiply
{
	my ($self, $times) = @_;
	my $keys = join('', map { ", $_->{name}" } @{ $self->{base} });

	for (1 .. $times)
	{
		my $offset = 10000000 * ++$self->{copies};
		$self->_both("INSERT INTO {T} (id, v$keys) SELECT id % 10000000 + $offset, v$keys FROM {T} "
			  . "WHERE id < 50000000");
	}
	return;
}

# A statement that has so many milliseconds
sub _timed
{
	my ($self, $sql, $milliseconds) = @_;
	my $number = ++$self->{number};
	my $name = 's' . ++$self->{statements};

	$milliseconds //= _weighted(4, _int(1, 3), 3, _int(3, 10), 1, _int(10, 50));
	$self->_say("SAVEPOINT $name;") if $self->{in_block};
	# What ends the time can be cancelled, too: so it is said again.  ROLLBACK TO takes the setting back.
	$self->_say("SET statement_timeout = $milliseconds;", "\\echo @@ $number gpu timed", "$sql;",
		($self->{in_block} ? ("ROLLBACK TO $name;") x 5 : ('SET statement_timeout = 0;') x 5), '\echo @@');
	return;
}

sub _evict_some
{
	my ($self) = @_;

	$self->_say("SELECT gpuds_index_evict(oid::regclass) FROM pg_class WHERE relkind = 'i' "
		  . "AND relname = 'tg_idx' AND pg_table_is_visible(oid);")
	  if $self->{am} =~ /^gpu_/;
	return;
}

# Twice under a timeout, then as ever
sub _query
{
	my ($self, $template, %opt) = @_;

	if (_chance(0.6))
	{
		$self->_settings(_index_settings($opt{kind} // 'any'));
		$self->_evict_some if _chance(0.5) && !$self->{temporary};
		$self->_timed('SELECT FROM (' . _for_table($template, 'g') . ') x') for 1 .. _int(1, 4);
	}
	$self->SUPER::_query($template, %opt);
	return;
}

# Rows are many, answers few
sub _random_query
{
	my ($self) = @_;
	my $where = $self->_where(usable => 1);

	if (_chance(0.3)) { $self->SUPER::_random_query; }
	elsif (_chance(0.3))
	{
		my $n = _int(1, scalar @{ $self->{columns} });
		my $keys = join(', ', map { $_->{expr} } @{ $self->{columns} }[ 0 .. $n - 1 ]);
		$self->_query(
			"SELECT $keys FROM {T} WHERE $where ORDER BY " . $self->_order_by($n) . ' LIMIT ' . _int(1, 50),
			mode => 'list', kind => 'ordered');
	}
	else { $self->_query("SELECT count(*), sum(v), min(id), max(id) FROM {T} WHERE $where"); }
	return;
}

sub _step
{
	my ($self) = @_;
	my $kind = _weighted(
		6, 'query', 4, 'change', 4, 'ended', 2, 'commit', 3, 'maintain', 3, 'block', 1, 'plain',
		1, 'multiply');
	my $keys = join('', map { ", $_->{name}" } @{ $self->{base} });

	$self->_settings;
	if ($kind eq 'change') { $self->_change; }
	elsif ($kind eq 'block') { $self->_block; }
	elsif ($kind eq 'plain') { $self->SUPER::_step; }
	elsif ($kind eq 'multiply') { $self->_multiply(1); }
	elsif ($kind eq 'ended')
	{
		$self->_say('BEGIN;');
		$self->{in_block} = 1;
		my $statement = _one(
			"INSERT INTO {T} (id, v$keys) SELECT -id, v$keys FROM {T}",
			'UPDATE {T} SET v = v + 1',
			'DELETE FROM {T} WHERE v > 40',
			'REINDEX INDEX {I}',
			'TRUNCATE {T}',
			$self->{predicate} || $self->_unordered ? () : 'CLUSTER {T} USING {I}');
		$self->_timed(_for_table($statement, 'g'), _int(1, 40));
		$self->{in_block} = 0;
		$self->_say('ROLLBACK;');
	}
	elsif ($kind eq 'commit')
	{
		# Either both twins have the rows or none
		my $offset = 10000000 * ++$self->{copies};
		my $number = ++$self->{number};

		$self->_say('\set ON_ERROR_ROLLBACK off', 'BEGIN;',
			"SET LOCAL statement_timeout = " . _int(5, 30) . ';',
			"\\echo @@ $number gpu timed",
			"INSERT INTO tb (id, v$keys) SELECT id % 10000000 + $offset, v$keys FROM tb "
			  . 'WHERE id < 20000000;');
		$self->_say("INSERT INTO tg (id, v$keys) SELECT id, v$keys FROM tb "
			  . "WHERE id BETWEEN $offset AND $offset + 9999999;",
			('COMMIT;') x 5, "\\set ON_ERROR_ROLLBACK $self->{goes_on}", '\echo @@');
	}
	elsif ($kind eq 'maintain')
	{
		$self->_both('DELETE FROM {T} WHERE ' . $self->_some_rows) if _chance(0.5);
		my $statement = _one(
			'VACUUM (INDEX_CLEANUP ON) {T}', 'VACUUM (INDEX_CLEANUP ON) {T}', 'VACUUM FULL {T}',
			'REINDEX TABLE {T}', 'ANALYZE {T}');
		$self->_timed(_for_table($statement, 'g'), _int(1, 40));
		$self->_maintain if _chance(0.5);
	}
	$self->_random_query for 1 .. _int(1, 2);
	return;
}

1;
