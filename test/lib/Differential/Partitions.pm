# Scripts of test/differential with tables of about a hundred partitions, which
# are filled through their root, attached and detached.

package Differential::Partitions;

use strict;
use warnings;

use Differential::Groups;
use Differential::Random;
use parent 'Differential::Script';

sub name { return 'partitions'; }

sub _choose_shape
{
	my ($self) = @_;

	$self->SUPER::_choose_shape;
	@$self{qw(temporary unlogged partitioned)} = (0, 0, 1);
	delete $self->{exclusion};
	$self->{parts} = _int(80, 120);
	$self->{by} = _one('HASH', 'LIST');
	return;
}

sub _row_count { return _int(500, 3000); }
sub _step_count { return _int(4, 6); }

sub _bounds
{
	my ($self, $part) = @_;
	return "FOR VALUES IN ($part)" if $self->{by} eq 'LIST';
	return "FOR VALUES WITH (MODULUS $self->{parts}, REMAINDER $part)";
}

sub _tables
{
	my ($self) = @_;
	my $last = $self->{parts} - 1;
	my $key = $self->{by} eq 'HASH' ? 'id' : "(abs(id % $self->{parts}))";
	(my $bounds = $self->_bounds('%1$s')) =~ s/%/%/g;

	for my $twin (qw(g b))
	{
		$self->_say("CREATE TABLE t$twin (" . $self->_column_list . ") PARTITION BY $self->{by} ($key);");
		$self->_say("DO \$\$ BEGIN FOR i IN 0 .. $last LOOP "
			  . "EXECUTE format('CREATE TABLE t${twin}_p%1\$s PARTITION OF t$twin $bounds', i); "
			  . "END LOOP; END \$\$;");
	}
	return;
}

# What a transaction keeps locked of the index's partitions after it wrote to all:
# btree keeps nothing
sub _locks
{
	my ($self) = @_;
	my $number = ++$self->{number};

	$self->_say("\\echo @@ $number seq list", '\echo few', '\echo @@', "\\echo @@ $number gpu list",
		"SELECT CASE WHEN count(*) < 64 THEN 'few' ELSE count(*) || ' locks' END FROM pg_locks l "
		  . "JOIN pg_class c ON c.oid = l.relation WHERE l.pid = pg_backend_pid() AND c.relkind = 'i' "
		  . "AND c.relname ~ '^tg' AND l.mode = 'RowExclusiveLock';",
		'\echo @@');
	return;
}

sub _detach
{
	my ($self) = @_;
	my $part = _int(0, $self->{parts} - 1);
	my $bounds = $self->_bounds($part);
	my $inside = _chance(0.5);

	$self->_say('BEGIN;') if $inside;
	$self->_both("ALTER TABLE {T} DETACH PARTITION {T}_p$part"
		  . (!$inside && _chance(0.3) ? ' CONCURRENTLY' : ''));
	$self->_both("DELETE FROM {T}_p$part WHERE v % 3 = 1") if _chance(0.5);
	$self->_both("TRUNCATE {T}_p$part") if _chance(0.3);
	$self->_both("INSERT INTO {T}_p$part (id, v) SELECT id, v + 1 FROM {T}_p$part") if _chance(0.5);
	$self->_both("UPDATE {T}_p$part SET pad = 'detached' WHERE v % 2 = 1") if _chance(0.5);
	$self->_random_query if _chance(0.3);
	$self->_both("ALTER TABLE {T} ATTACH PARTITION {T}_p$part $bounds");
	if ($inside)
	{
		$self->_insert(_int(1, 100)) if _chance(0.5);
		$self->_say(_one('COMMIT;', 'ROLLBACK;'));
	}
	return;
}

# Of a query's rows in all partitions, and of their groups: what partitions have is put together
sub _aggregate
{
	my ($self) = @_;
	my @columns = grep { $_->{expr} =~ /^k\d+$/ } @{ $self->{columns} };
	my $by = @columns ? _one(@columns) : undef;
	my $filter = $self->{predicate} ? " WHERE $self->{predicate}" : '';
	my $measures = measures_of(map { [ $_->{type}, $_->{expr} ] } @columns);

	$self->_query("SELECT $measures FROM {T}$filter", kind => 'ordered', noplan => 1);
	$self->_query('SELECT ' . bucket_of($by->{type}, $by->{expr}) . ", $measures FROM {T}$filter GROUP BY 1",
		kind => 'ordered', noplan => 1)
	  if $by;
	return;
}

sub _step
{
	my ($self) = @_;
	my $kind = _weighted(4, 'bulk', 3, 'detach', 3, 'block', 2, 'change', 2, 'maintain');
	my $part = _int(0, $self->{parts} - 1);

	if ($kind eq 'bulk')
	{
		my $savepoint = 's' . ++$self->{statements};

		$self->_say('BEGIN;');
		$self->_insert(_int(200, 1000));
		$self->_say("SAVEPOINT $savepoint;");
		$self->_insert_select;
		$self->_insert(_int(200, 1000));
		$self->_locks;
		$self->_say("ROLLBACK TO $savepoint;") if _chance(0.5);
		$self->_insert_select if _chance(0.5);
		$self->_say(_weighted(4, 'COMMIT;', 1, 'ROLLBACK;'));
	}
	elsif ($kind eq 'detach') { $self->_detach; }
	elsif ($kind eq 'block') { $self->_block; }
	elsif ($kind eq 'change') { $self->_change; }
	elsif ($kind eq 'maintain')
	{
		$self->_both(_one("REINDEX TABLE {T}_p$part", "VACUUM (INDEX_CLEANUP ON) {T}_p$part",
				"VACUUM FULL {T}_p$part", "TRUNCATE {T}_p$part", 'VACUUM (INDEX_CLEANUP ON) {T}'));
	}
	$self->_random_query;
	$self->_aggregate;
	return;
}

1;
