# Scripts of test/differential with utility statements in transactions: files are
# swapped, rebuilt, moved and handed from one index to another, with savepoints and
# rollbacks around, and with rows that are inserted in unusual ways.

package Differential::Utility;

use strict;
use warnings;

use Differential::Random;
use Differential::Values qw(_literal _sql_type);
use parent 'Differential::Script';

sub name { return 'utility'; }

sub harmless { return qr/pending trigger events|${\ Differential::Script::harmless() }/; }

sub _choose_shape
{
	my ($self) = @_;

	$self->SUPER::_choose_shape;
	@$self{qw(temporary partitioned)} = (0, 0);
	return;
}

sub _row_count { return _weighted(3, _int(0, 3), 4, _int(10, 100), 3, _int(200, 800)); }
sub _step_count { return _int(8, 16); }

sub _preamble
{
	my ($self) = @_;

	$self->SUPER::_preamble;
	$self->_say('SET allow_in_place_tablespaces = on;') unless $self->{temporary};
	$self->_say('CREATE FUNCTION five() RETURNS int LANGUAGE plpgsql VOLATILE AS $$ BEGIN RETURN 5; END $$;');
	return;
}

# Triggers that insert at the end of a transaction, and around TRUNCATE
sub _tables
{
	my ($self) = @_;
	my $keys = join('', map { ", $_->{name}" } @{ $self->{base} });
	my $values = join('', map { ", NEW.$_->{name}" } @{ $self->{base} });

	$self->SUPER::_tables;
	return if $self->{exclusion};
	if (_chance($self->{events} ? 0 : 0.25))
	{
		for my $twin (qw(g b))
		{
			$self->_say("CREATE FUNCTION t${twin}_late() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN "
				  . "INSERT INTO t$twin (id, v$keys) VALUES (-NEW.id, NEW.v$values); RETURN NULL; END \$\$;",
				"CREATE CONSTRAINT TRIGGER late AFTER INSERT ON t$twin DEFERRABLE INITIALLY DEFERRED "
				  . "FOR EACH ROW WHEN (NEW.id > 0 AND NEW.v % 10 = 3) EXECUTE FUNCTION t${twin}_late();");
		}
	}
	if (_chance(0.4))
	{
		my $n = 0;
		my @row = map { _literal($self->_value($_), $_->{type}) } @{ $self->{base} };

		for my $twin (qw(g b))
		{
			$self->_say("CREATE FUNCTION t${twin}_truncated() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN "
				  . "INSERT INTO t$twin (id, v$keys) VALUES (" . join(', ', -1000000, 7, @row)
				  . '); RETURN NULL; END $$;');
			$self->_say("CREATE TRIGGER $_->[0] $_->[1] TRUNCATE ON t$twin "
				  . "EXECUTE FUNCTION t${twin}_truncated();")
			  for [ 'before', 'BEFORE' ], [ 'after', 'AFTER' ];
		}
	}
	return;
}

# A statement that swaps, rebuilds or moves files; what is on the right is equal for both twins
sub _utility_statement
{
	my ($self) = @_;
	my $column = _one(@{ $self->{base} });
	my $type = _sql_type($column->{type});
	my @list = (
		5, "ALTER TABLE {T} ALTER $column->{name} TYPE $type",
		2, "ALTER TABLE {T} ALTER $column->{name} TYPE $type "
		  . "USING coalesce($column->{name}, $column->{name})",
		2, "ALTER TABLE {T} ALTER pad TYPE " . _one('varchar(40)', 'text') . " USING pad || ''",
		1, 'ALTER TABLE {T} ALTER pad TYPE ' . _one('text', 'varchar'),
		4, 'TRUNCATE {T}',
		3, 'REINDEX INDEX {I}',
		1, 'REINDEX TABLE {T}',
		2, 'ALTER TABLE {T} ADD COLUMN IF NOT EXISTS x1 int DEFAULT ' . _one('7', 'five()'),
		1, 'ALTER TABLE {T} DROP COLUMN IF EXISTS x1',
		2, 'ALTER INDEX {I} SET (fillfactor = ' . _int(50, 100) . ')',
		1, 'ALTER TABLE {T} ALTER v SET NOT NULL, ALTER v DROP NOT NULL',
		1, 'CREATE INDEX {T}_v ON {T} (v)\; DROP INDEX {T}_v',
		$self->{exclusion} ? 0 : 2, 'DROP INDEX IF EXISTS {I}',
		# The index goes with its column; nothing else in the script knows how to do without
		1, "ALTER TABLE {T} DROP COLUMN $column->{name}\\; "
		  . 'INSERT INTO {T} (id, v) VALUES (-5, 5)\; SELECT 1/0');

	push @list, (2, 'CLUSTER {T} USING {I}') unless $self->{predicate} || $self->_unordered;
	push @list, (4, 'ALTER INDEX {I} SET TABLESPACE ' . _one('gpuds_differential', 'pg_default'),
		# Rows that a transaction then inserts into the moved table and rolls back leave entries in any
		# index: their places are given to others.  That is PostgreSQL's own defect
		$self->{alone} && !$self->{events} ? 3 : 0,
		'ALTER TABLE {T} SET TABLESPACE ' . _one('gpuds_differential', 'pg_default'),
		2, 'ALTER TABLE {T} SET ' . _one('LOGGED', 'UNLOGGED')) unless $self->{temporary};
	return _weighted(@list);
}

# An INSERT as a function, EXPLAIN, COPY or PREPARE run it
sub _wrapped_insert
{
	my ($self, $n) = @_;
	my @columns = ('id', 'v', map { $_->{name} } @{ $self->{base} });
	my @rows;

	for (1 .. $n)
	{
		my ($id, $v, @keys) = $self->_row;
		push @rows, "($id, $v" . join('', map { ', ' . (defined $_ ? "'$_'" : 'NULL') } @keys) . ')';
	}
	my $insert = 'INSERT INTO {T} (' . join(', ', @columns) . ') VALUES ' . join(', ', @rows);
	my $other = $self->_utility_statement;
	$other =~ s/\\;/;/g;

	$self->_both(_weighted(
			2, "DO \$\$ BEGIN $insert; END \$\$",
			2, "DO \$\$ BEGIN $insert; BEGIN DELETE FROM {T} WHERE id % 5 = 2; RAISE division_by_zero; "
			  . "EXCEPTION WHEN division_by_zero THEN NULL; END; END \$\$",
			2, "DO \$\$ BEGIN BEGIN $insert; RAISE division_by_zero; "
			  . "EXCEPTION WHEN division_by_zero THEN NULL; END; END \$\$",
			4, "DO \$\$ BEGIN BEGIN $insert; $other; EXCEPTION WHEN OTHERS THEN NULL; END; END \$\$",
			4, "DO \$\$ BEGIN $insert; BEGIN $other; INSERT INTO {T} (id, v) VALUES (-9, 9); "
			  . "RAISE division_by_zero; EXCEPTION WHEN OTHERS THEN NULL; END; END \$\$",
			1, "EXPLAIN (ANALYZE, BUFFERS OFF, COSTS OFF, TIMING OFF, SUMMARY OFF) $insert",
			2, "COPY ($insert RETURNING id) TO STDOUT",
			1, "WITH w AS ($insert RETURNING id, v) SELECT count(*) FROM w",
			1, "CREATE TABLE {T}_made AS WITH w AS (SELECT 1 AS a) SELECT * FROM w\\; $insert\\; "
			  . "DROP TABLE {T}_made"));
	return;
}

sub _utility
{
	my ($self) = @_;

	$self->_both($self->_utility_statement);
	$self->_create_index if $self->{out}[-2] =~ /^DROP INDEX/ && _chance(0.8);
	$self->_change if _chance(0.6);
	return;
}

sub _block_kinds { return (14, 'utility', 5, 'wrapped', 4, 'nested'); }

sub _block_step
{
	my ($self, $kind) = @_;

	if ($kind eq 'utility') { $self->_utility; }
	elsif ($kind eq 'wrapped') { $self->_wrapped_insert(_int(1, 30)); }
	elsif ($kind eq 'nested')
	{
		# Rows before, a file that is given back, rows after
		my $name = 's' . ++$self->{statements};

		$self->_insert(_int(1, 40)) if _chance(0.7);
		$self->_say("SAVEPOINT $name;");
		$self->_utility for 1 .. _int(1, 2);
		$self->_insert(_int(1, 40)) if _chance(0.8);
		$self->_say(_weighted(3, "ROLLBACK TO $name;", 1, "RELEASE $name;"));
		$self->_insert(_int(1, 20)) if _chance(0.6);
	}
	else { return 0; }
	return 1;
}

sub _step
{
	my ($self) = @_;
	my $kind = _weighted(14, 'block', 3, 'maintain', 3, 'wrapped', 3, 'utility', 2, 'query', 2, 'change');

	if ($kind eq 'block') { $self->_block; }
	elsif ($kind eq 'maintain') { $self->_maintain; }
	elsif ($kind eq 'wrapped') { $self->_wrapped_insert(_int(1, 60)); }
	elsif ($kind eq 'utility')
	{
		local $self->{alone} = 1;
		$self->_utility;
	}
	elsif ($kind eq 'query') { $self->_random_query; }
	else { $self->_change; }
	$self->_random_query if _chance(0.7);
	return;
}

# The twins' indexes may have gone
sub _final_queries
{
	my ($self) = @_;

	if (!$self->{exclusion})
	{
		$self->_both('DROP INDEX IF EXISTS {I}') if _chance(0.2);
		$self->_create_index(1);
	}
	$self->SUPER::_final_queries;
	return;
}

1;
