# Scripts of test/differential in which event triggers insert into both twins, so
# that there are new rows in the middle of every utility statement.

package Differential::Events;

use strict;
use warnings;

use Differential::Random;
use Differential::Values qw(_literal);
use parent 'Differential::Utility';

sub name { return 'events'; }

sub _choose_shape
{
	my ($self) = @_;

	$self->SUPER::_choose_shape;
	delete $self->{exclusion};
	$self->{events} = 1;
	return;
}

sub _preamble
{
	my ($self) = @_;

	# Of a script that did not come to its end
	$self->_say('SET client_min_messages = error;', "DROP EVENT TRIGGER IF EXISTS diff_$_;")
	  for qw(start end drop);
	$self->SUPER::_preamble;
	return;
}

sub _fill
{
	my ($self) = @_;
	my $row = sub { return map { _literal($self->_value($_), $_->{type}) } @{ $self->{base} } };
	my @rows = map { "WHEN $_ THEN ROW(" . join(', ', $row->()) . ')' } 0 .. 3;
	my $keys = join(', ', map { $_->{name} } @{ $self->{base} });
	my $values = '';
	for my $column (@{ $self->{base} })
	{
		my @cases = map { "WHEN $_ THEN " . _literal($self->_value($column), $column->{type}) } 0 .. 3;
		$values .= ', (CASE n % 4 ' . join(' ', @cases) . ' END)';
	}
	my $n = _int(1, 3);
	my $insert = "(id, v, $keys) "
	  . "SELECT 5000000 + 10 * n + i, n % 100$values FROM generate_series(1, $n) i";

	$self->SUPER::_fill;
	$self->_say('CREATE SEQUENCE notes;',
		'CREATE FUNCTION note() RETURNS event_trigger LANGUAGE plpgsql SET search_path = diff, public '
		  . "AS \$\$ DECLARE n int := nextval('notes'); "
		  . "BEGIN INSERT INTO tb $insert; INSERT INTO tg $insert; END \$\$;");
	my @on = ([ 'start', 'ddl_command_start' ], [ 'end', 'ddl_command_end' ], [ 'drop', 'sql_drop' ]);
	splice(@on, int(rand(3)), 1) if _chance(0.4);
	$self->_say("CREATE EVENT TRIGGER diff_$_->[0] ON $_->[1] EXECUTE FUNCTION note();") for @on;
	return;
}

sub _check
{
	my ($self) = @_;

	$self->_say("DROP EVENT TRIGGER IF EXISTS diff_$_;") for qw(start end drop);
	$self->SUPER::_check;
	return;
}

1;
