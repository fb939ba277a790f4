# One random script of test/differential, made from a seed.
#
# This is the class "plain"; the other classes of Classes.pm are derived from it.
# They override its steps, whose names begin with an underscore: _choose_shape,
# _preamble, _tables, _step, _block_step, _maintain.
#
# What a script consists of is in the modules that this one is derived from; they
# are parts of it and of no use alone.

package Differential::Script;

use strict;
use warnings;

use Differential::Random;
use Differential::Types;

use parent qw(
  Differential::Output Differential::Values Differential::Conditions
  Differential::Queries Differential::Changes Differential::Tables);

# new(seed => N, am => NAME, types => [ names of indexable types ], version => of the server)
sub new
{
	my ($class, %args) = @_;
	my $self = bless {
		seed => $args{seed}, am => $args{am}, version => $args{version} // 15,
		out => [], number => 0, id => 0, statements => 0, in_block => 0, stages => [], included => []
	}, $class;
	my %known = map { $_ => 1 } @{ $args{types} // [ map { $_->{name} } values %TYPES ] };

	my @usable = grep { $self->_unordered || !$TYPES{$_}{hashed} } sort keys %TYPES;
	$self->{typenames} = [ grep { $known{ $TYPES{$_}{name} } } @usable ];
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
sub harmless
{
	my $errors = join('|',
		'current transaction is aborted',
		'division by zero',
		'must not be prepared',
		'(?:savepoint|cursor) .* does not exist');

	return qr/$errors/;
}

# Has the index under test no order?
sub _unordered { my ($self) = @_; return $self->{am} eq 'gpu_hash'; }

# May its index be unique?  Other classes do what a constraint of the btree twin does not allow.
sub _may_be_unique { my ($self) = @_; return $self->{version} >= 18 && $self->name eq 'plain'; }

# What a session needs to be told, also after a \connect
sub _session
{
	my ($self) = @_;

	$self->_say('SET client_min_messages = error;', "SET TimeZone = 'Europe/Athens';",
		'SET extra_float_digits = 1;', 'SET search_path = diff, public;',
		# As soon as a query may have workers, it has them
		'SET parallel_setup_cost = 0;', 'SET parallel_tuple_cost = 0;',
		'SET min_parallel_table_scan_size = 0;', 'SET max_parallel_workers_per_gather = 0;');
	return;
}

sub _preamble
{
	my ($self) = @_;

	$self->_say('-- ' . $self->name . ", seed $self->{seed}");
	$self->_session;
	# where errors are part of the game a transaction goes on after them
	$self->_say("\\set ON_ERROR_ROLLBACK $self->{goes_on}", 'DROP SCHEMA IF EXISTS diff CASCADE;',
		'CREATE SCHEMA diff;');
	$self->_types;
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
	$self->_query('SELECT ' . $self->_key_list . ' FROM {T}'
		  . ($self->{predicate} ? " WHERE $self->{predicate}" : '')
		  . ' ORDER BY ' . $self->_order_by(scalar @{ $self->{columns} }),
		mode => 'list', kind => 'ordered', noplan => $self->{partitioned});
	return;
}

sub _check
{
	my ($self) = @_;

	return unless $self->{am} =~ /^gpu_/;
	$self->_say("SELECT gpuds_index_check(oid::regclass, true) FROM pg_class WHERE relkind = 'i' "
		  . "AND relam IN (SELECT oid FROM pg_am WHERE amname ~ '^gpu_') AND pg_table_is_visible(oid);");
	return;
}

sub _end
{
	my ($self) = @_;

	# Partitions one at a time: core's time to drop objects together grows with the square of their number
	$self->_say('SET client_min_messages = error;',
		"SELECT format('DROP TABLE %s', oid::regclass) FROM pg_class WHERE relkind = 'r' AND relispartition "
		  . "AND pg_table_is_visible(oid) \\gexec",
		'DROP SCHEMA diff CASCADE;', '\echo @@ 0 end list', '\echo @@');
	return;
}

# The class's name
sub name { return 'plain'; }

sub _generate
{
	my ($self) = @_;

	$self->_choose_shape;
	$self->{goes_on} = $self->{exclusion} || defined $self->{unique} || _chance(0.3) ? 'on' : 'off';
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

1;
