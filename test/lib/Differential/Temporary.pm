# Scripts of test/differential with temporary tables, whose mirrors are the
# session's own: files that come and go with ON COMMIT, TRUNCATE and REINDEX, and
# cursors that are open meanwhile.

package Differential::Temporary;

use strict;
use warnings;

use Differential::Output qw(_for_table _index_settings);
use Differential::Random;
use Differential::Values qw(_literal);
use parent 'Differential::Utility';

sub name { return 'temporary'; }

sub _choose_shape
{
	my ($self) = @_;

	$self->SUPER::_choose_shape;
	$self->{temporary} = 1;
	$self->{unlogged} = 0;
	delete $self->{exclusion};
	$self->{on_commit} = _weighted(5, undef, 3, 'DELETE ROWS', 2, 'DROP');
	return;
}

# With ON COMMIT DROP every transaction makes the tables for itself
sub _tables
{
	my ($self) = @_;

	$self->SUPER::_tables unless ($self->{on_commit} // '') eq 'DROP';
	return;
}

sub _fill
{
	my ($self) = @_;

	$self->SUPER::_fill unless ($self->{on_commit} // '') eq 'DROP';
	return;
}

sub _begun
{
	my ($self) = @_;

	if (($self->{on_commit} // '') eq 'DROP')
	{
		$self->Differential::Script::_tables;
		$self->SUPER::_fill;
	}
	elsif ($self->{on_commit})
	{
		$self->_insert(_int(0, 200));
	}
	return;
}

sub _step
{
	my ($self) = @_;

	if (($self->{on_commit} // '') eq 'DROP') { $self->_block; }
	elsif ($self->{on_commit} && _chance(0.6)) { $self->_block; }
	elsif (!$self->{on_commit} && _chance(0.12)) { $self->_rounds; }
	else { $self->SUPER::_step; }
	return;
}

# File after file: the session may not grow by a mirror each
sub _rounds
{
	my ($self) = @_;
	my $first = $self->{columns}[0]{expr};
	my $rounds = _int(20, 30);
	my $file = _one('', 'REINDEX INDEX {I}; ', 'REINDEX TABLE {T}; ');
	my $value = join('', map { ', ' . _literal($self->_value($_), $_->{type}) } @{ $self->{base} });
	my $keys = join('', map { ", $_->{name}" } @{ $self->{base} });
	my $where = $self->{predicate} ? " WHERE $self->{predicate}" : '';
	my $memory = "SELECT substring(pg_read_file('/proc/self/status') from 'RssAnon:\\s*(\\d+)')::int AS rss";
	my $round = "TRUNCATE {T}; "
	  . "INSERT INTO {T} (id, v$keys) SELECT -i, i % 100$value FROM generate_series(1, 20000) i; "
	  . "${file}PERFORM $first FROM {T}$where ORDER BY $first; COMMIT;";
	my $number;

	$self->_settings(seqscan => 0);
	$self->_both("DO \$\$ BEGIN FOR r IN 1 .. 3 LOOP $round END LOOP; END \$\$");
	$self->_say("$memory \\gset before_");
	$self->_both("DO \$\$ BEGIN FOR r IN 1 .. $rounds LOOP $round END LOOP; END \$\$");
	$self->_say("$memory \\gset after_");
	$number = ++$self->{number};
	$self->_say("\\echo @@ $number seq list", '\echo few', '\echo @@',
		"\\echo @@ $number gpu list",
		"SELECT CASE WHEN :after_rss - :before_rss < 6000 THEN 'few' "
		  . "ELSE (:after_rss - :before_rss) || ' kB for $rounds files' END;",
		'\echo @@');
	$self->_random_query;
	return;
}

sub _block_kinds { return (Differential::Utility::_block_kinds(), 3, 'drop'); }

# What a cursor reads must stay, whatever happens to the index
sub _block_step
{
	my ($self, $kind) = @_;

	return $self->SUPER::_block_step($kind) unless $kind eq 'drop';
	# Whether a cursor holds an index depends on whether it has a use for it.
	return if $self->_unordered;
	my $order = $self->_order_by(scalar @{ $self->{columns} });
	my $filter = $self->{predicate} ? " WHERE $self->{predicate}" : '';
	my $name = 'c' . ++$self->{statements};
	my $file = _one('TRUNCATE {T}', 'REINDEX INDEX {I}', 'DROP INDEX {I}', 'CLUSTER {T} USING {I}',
		'DROP TABLE {T}', 'DISCARD TEMP');
	my @steps = (_int(1, 5), undef, _int(1, 20), undef, _int(1, 400));

	$self->_say("SAVEPOINT $name;");
	$self->_utility if _chance(0.4);
	for my $variant (qw(seq btree gpu))
	{
		$variant eq 'seq' ? $self->_seqscan_settings : $self->_settings(_index_settings('ordered'));
		my $query = 'SELECT ' . $self->_key_list . " FROM {T}$filter ORDER BY $order";
		$query = _for_table($query, $variant eq 'btree' ? 'b' : 'g');
		$self->_say("DECLARE ${name}_$variant CURSOR FOR $query;");
	}
	for my $count (@steps)
	{
		if (!defined $count)
		{
			$self->_say("SAVEPOINT ${name}_file;");
			$self->_both($file eq 'DISCARD TEMP' && _chance(0.7) ? 'REINDEX TABLE {T}' : $file);
			$self->_say("ROLLBACK TO ${name}_file;");
			next;
		}
		my $number = ++$self->{number};
		$self->_say("\\echo @@ $number $_ list", "FETCH FORWARD $count FROM ${name}_$_;", '\echo @@')
		  for qw(seq btree gpu);
	}
	$self->_say(_one("ROLLBACK TO $name;", "RELEASE $name;"));
	return 1;
}

sub _final_queries
{
	my ($self) = @_;

	if (($self->{on_commit} // '') eq 'DROP')
	{
		$self->_say('BEGIN;');
		$self->Differential::Script::_tables;
		$self->{in_block} = 1;
		$self->Differential::Script::_fill;
		$self->Differential::Script::_final_queries;
		$self->_check;
		$self->_say('COMMIT;');
		return;
	}
	if ($self->{on_commit})
	{
		$self->_say('BEGIN;');
		$self->{in_block} = 1;
		$self->_create_index(1);
		$self->_insert(200);
		$self->Differential::Script::_final_queries;
		$self->_check;
		$self->_say('COMMIT;');
		return;
	}
	$self->SUPER::_final_queries;
	return;
}

1;
