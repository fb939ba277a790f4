# Scripts of test/differential whose transactions go to a second server by logical
# replication: the publisher's table has a btree index, the subscriber's the index
# under test.  After each few transactions, when the subscriber has them all, both
# answer the same queries.

package Differential::Replication;

use strict;
use warnings;

use Differential::Output qw(_for_table _index_settings _without_order);
use Differential::Random;
use parent 'Differential::Script';

sub name { return 'replication'; }

sub _choose_shape
{
	my ($self) = @_;

	$self->SUPER::_choose_shape;
	@$self{qw(temporary unlogged partitioned)} = (0, 0, 0);
	delete $self->{exclusion};
	return;
}

sub _step_count { return _int(8, 14); }

# The publisher's table alone is changed
sub _both
{
	my ($self, $template, @copy) = @_;
	my $number = ++$self->{number};

	$self->_say("\\echo @@ $number btree set", _for_table($template, 'b') . ';', @copy, '\echo @@');
	return;
}

# In a transaction only the publisher answers; else queries wait for _compare_sides
sub _query
{
	my ($self, $template, %opt) = @_;
	my $number = ++$self->{number};
	my $mode = $opt{mode} // 'set';
	my $query = _for_table($template, 'b');

	$self->_seqscan_settings;
	$self->_say("\\echo @@ $number seq $mode", "$query;", '\echo @@');
	$self->_settings(_index_settings($opt{kind} // 'any'));
	$self->_say("\\echo @@ $number btree $mode", "$query;", '\echo @@');
	push @{ $self->{waiting} }, { number => $number, query => $query, mode => $mode, %opt }
	  if $self->{comparing};
	return;
}

# These change what the queries see
sub _prepared { return; }
sub _cursors { return; }

sub _go
{
	my ($self, $side) = @_;

	$self->_say("\\c :$side");
	$self->_session;
	return;
}

# Waits until the subscriber, which is where we are, has all that was committed
sub _catch_up
{
	my ($self) = @_;

	$self->_say('DO $$ BEGIN FOR i IN 1 .. 12000 LOOP '
		  . "EXIT WHEN EXISTS (SELECT FROM mark WHERE n = $self->{mark}) "
		  . "AND NOT EXISTS (SELECT FROM pg_subscription_rel WHERE srsubstate <> 'r'); "
		  . "IF i = 12000 THEN RAISE 'the subscriber does not catch up'; END IF; "
		  . 'PERFORM pg_sleep(0.005); END LOOP; END $$;');
	return;
}

sub _compare_sides
{
	my ($self, @more) = @_;

	$self->{waiting} = [];
	$self->{comparing} = 1;
	$self->_random_query for 1 .. 3;
	$_->() for @more;
	$self->{comparing} = 0;
	$self->_say('INSERT INTO mark VALUES (' . ++$self->{mark} . ');');
	$self->_go('other');
	$self->_catch_up;
	for my $waiting (@{ $self->{waiting} })
	{
		my ($number, $query, $mode) = @$waiting{qw(number query mode)};

		$self->_seqscan_settings;
		$self->_say("\\echo @@ $number sub $mode", "$query;", '\echo @@');
		$self->_settings(_index_settings($waiting->{kind} // 'any'));
		$self->_say("\\echo @@ $number gpu plan", "EXPLAIN (COSTS OFF) $query;", '\echo @@')
		  unless $waiting->{noplan};
		$self->_say("\\echo @@ $number gpu $mode", "$query;", '\echo @@');
	}
	$self->_say(_weighted(2, 'VACUUM (INDEX_CLEANUP ON) tb;', 1, 'REINDEX INDEX tb_idx;',
			1, 'REINDEX INDEX CONCURRENTLY tb_idx;',
			$self->{am} =~ /^gpu_/ ? 3 : 0, "SELECT gpuds_index_evict('tb_idx');",
			1, "DELETE FROM mark WHERE n < $self->{mark};")) if _chance(0.6);
	$self->_go('main');
	return;
}

sub _block_kinds { return (5, 'truncate_twice', 3, 'truncate'); }

sub _block_step
{
	my ($self, $kind) = @_;

	return 0 unless $kind eq 'truncate_twice';
	for (1 .. 2)
	{
		$self->_both('TRUNCATE {T}' . _one('', ' RESTART IDENTITY'));
		$self->_insert(_int(0, 30));
	}
	return 1;
}

sub _step
{
	my ($self) = @_;
	my $kind = _weighted(10, 'block', 6, 'change', 1, 'truncate');

	if ($kind eq 'block') { $self->_block; }
	elsif ($kind eq 'change') { $self->_change; }
	else { $self->_both('TRUNCATE {T}'); }
	$self->_compare_sides if _chance(0.5);
	return;
}

# What a script that did not come to its end has left
sub _drop
{
	my ($self) = @_;
	my $ours = "FROM pg_subscription WHERE subname = :'ours'";

	$self->_say('\c :other', 'SET client_min_messages = error;', "\\set ours 'differential_' :worker");
	$self->_say("SELECT format('ALTER SUBSCRIPTION %I $_', subname) $ours \\gexec")
	  for 'DISABLE', 'SET (slot_name = NONE)';
	$self->_say("SELECT format('DROP SUBSCRIPTION %I', subname) $ours \\gexec",
		'DROP SCHEMA IF EXISTS diff CASCADE;', '\c :main', 'SET client_min_messages = error;',
		# pg_drop_replication_slot does not wait for its sender to end
		"SELECT count(pg_terminate_backend(active_pid, 5000)) FROM pg_replication_slots "
		  . "WHERE slot_name = :'ours' AND active_pid IS NOT NULL;",
		"SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = :'ours';",
		'DROP PUBLICATION IF EXISTS differential;', 'DROP SCHEMA IF EXISTS diff CASCADE;');
	return;
}

sub _generate
{
	my ($self) = @_;
	my $identity = _one(
		'ALTER TABLE tb REPLICA IDENTITY FULL;',
		'ALTER TABLE tb ADD PRIMARY KEY (id);',
		'ALTER TABLE tb ADD PRIMARY KEY (id);');

	$self->_choose_shape;
	$self->{goes_on} = 'off';
	$self->{mark} = 0;
	$self->_say('-- replication, seed ' . $self->{seed});
	$self->_drop;
	for my $side (qw(main other))
	{
		$self->_say("\\c :$side", 'SET client_min_messages = error;', 'CREATE SCHEMA diff;');
		$self->_session;
		$self->_types;
		$self->_say('CREATE TABLE tb (' . $self->_column_list . ');', $identity,
			'CREATE TABLE mark (n int PRIMARY KEY);');
		srand($self->{seed});
		$self->_probes;
		my $method = $side eq 'main' ? 'btree' : $self->{am};
		my $columns = $method eq 'gpu_hash' ? _without_order($self->_index_columns) : $self->_index_columns;
		$self->_say("CREATE INDEX tb_idx ON tb USING $method $columns"
			  . ($self->{predicate} ? " WHERE $self->{predicate}" : '') . ';');
	}
	my $options = join(', ', (_chance(0.4) ? 'two_phase = true' : ()),
		(_chance(0.5) ? 'streaming = true' : ()));

	$self->_go('main');
	$self->_load(_int(0, 300));
	$self->_say('CREATE PUBLICATION differential FOR TABLE tb, mark;',
		'INSERT INTO mark VALUES (' . ++$self->{mark} . ');');
	$self->_go('other');
	$self->_say("CREATE SUBSCRIPTION :\"ours\" CONNECTION :'main' PUBLICATION differential"
		  . ($options ? " WITH ($options)" : '') . ';');
	$self->_catch_up;
	$self->_go('main');
	$self->_step for 1 .. $self->_step_count;
	$self->_compare_sides(sub { $self->_final_queries; });
	$self->_go('other');
	$self->_say("SELECT gpuds_index_check('tb_idx', true);") if $self->{am} =~ /^gpu_/;
	$self->_say('DROP SUBSCRIPTION :"ours";');
	$self->_drop;
	$self->_say('\echo @@ 0 end list', '\echo @@');
	return;
}

1;
