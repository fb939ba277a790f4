# Changes of test/differential's twin tables: rows, transactions, and maintenance.

package Differential::Changes;

use strict;
use warnings;

use Differential::Output qw(_index_settings);
use Differential::Random;
use Differential::Types;
use Differential::Values qw(_literal);

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
		my @lines = map { join("\t", map { defined $_ ? s/\\/\\\\/gr : '\N' } $self->_row) } 1 .. $n;
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

	$self->_both("INSERT INTO {T} (id, v$keys) "
		  . "SELECT id + $offset, v$keys FROM {T} WHERE id <= $n ORDER BY id"
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
			3, "$target->{name} = CASE WHEN id % 3 = 0 THEN "
			  . _literal($self->_value($target), $target->{type}) . ' ELSE '
			  . _literal($self->_value($target), $target->{type}) . ' END',
			2, "$target->{name} = $target->{name}",
			$TYPES{ $target->{type} }{add} && $target->{type} !~ /float/ ? 3 : 0,
			"$target->{name} = $target->{name} " . _one('+', '-') . ' 1',
			1, 'v = (v + 13) % 100');
		$self->_both("UPDATE {T} SET $set WHERE " . $self->_some_rows);
	}
	elsif ($kind eq 'join')
	{
		my $e = $self->{columns}[0]{expr};
		my $on = "p.k = $e" . ($self->{predicate} ? " AND $self->{predicate}" : '');

		$self->_settings(_index_settings('nestloop'));
		$self->_both(_one(
			"UPDATE {T} SET v = (v + 17) % 100 FROM {P} p WHERE $on",
			"DELETE FROM {T} USING {P} p WHERE $on AND v < 30",
			"MERGE INTO {T} USING (SELECT DISTINCT k FROM {P}) p ON $on "
			  . "WHEN MATCHED AND v < 20 THEN DELETE WHEN MATCHED THEN UPDATE SET v = v - 1"));
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

	$self->_say(_one('BEGIN;', 'BEGIN;', 'BEGIN ISOLATION LEVEL REPEATABLE READ;',
			'BEGIN ISOLATION LEVEL SERIALIZABLE;'));
	$self->{in_block} = 1;
	$self->_begun;
	for my $step (1 .. _int(2, 9))
	{
		my $kind = _weighted(
			12, 'change', 8, 'query', 5, 'savepoint', 4, 'rollback', 2, 'release', 1, 'cursor', 1, 'truncate',
			1, 'reindex', $self->_block_kinds);
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
	my @kinds = (
		14, 'vacuum', 3, 'reindex', 3, 'evict', 2, 'load', 1, 'rewrite', 1, 'rebuild', 1, 'truncate',
		2, 'analyze');

	push @kinds, (1, 'vacuumfull');
	push @kinds, (2, 'reindexc') unless $self->{temporary} || $self->{exclusion} || defined $self->{unique};
	push @kinds, (2, 'cluster') unless $self->{predicate} || $self->{partitioned};
	push @kinds, (1, 'logged') unless $self->{temporary} || $self->{partitioned};
	my $kind = _weighted(@kinds);

	if ($kind eq 'vacuum')
	{
		$self->_both(_weighted(6, 'VACUUM (INDEX_CLEANUP ON) {T}', 1, 'VACUUM {T}',
				2, 'VACUUM (INDEX_CLEANUP ON, FREEZE, ANALYZE) {T}',
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
	elsif ($kind eq 'rewrite')
	{
		$self->_both('ALTER TABLE {T} ALTER pad TYPE ' . _one('varchar(40)', 'text') . " USING pad || ''");
	}
	elsif ($kind eq 'truncate')
	{
		$self->_both('TRUNCATE {T}');
		$self->_insert(_int(0, 200));
	}
	elsif ($kind eq 'rebuild' && !$self->{exclusion} && !defined $self->{unique})
	{
		$self->_both('DROP INDEX {I}');
		$self->_create_index;
	}
	elsif (($kind eq 'evict' || $kind eq 'load') && $self->{am} =~ /^gpu_/)
	{
		$self->_say("SELECT gpuds_index_$kind(oid::regclass) FROM pg_class WHERE relkind = 'i' "
			  . "AND relam IN (SELECT oid FROM pg_am WHERE amname ~ '^gpu_') AND pg_table_is_visible(oid);");
	}
	return;
}

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
