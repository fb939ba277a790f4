# Scripts of test/differential in databases that are copies of one template, so that
# files in them have the same numbers, and that are dropped and made again with
# the same OID.

package Differential::Databases;

use strict;
use warnings;

use Differential::Random;
use parent 'Differential::Script';

sub name { return 'databases'; }

sub _choose_shape
{
	my ($self) = @_;

	$self->SUPER::_choose_shape;
	@$self{qw(temporary partitioned)} = (0, 0);
	delete $self->{exclusion};
	$self->{oid} = { a => 100000 + 2 * _int(0, 40000), b => 100001 + 2 * _int(0, 40000) };
	return;
}

sub _row_count { return _int(20, 400); }

sub _generate
{
	my ($self) = @_;

	$self->_choose_shape;
	$self->{goes_on} = 'on';
	$self->_say('-- databases, seed ' . $self->{seed}, 'SET client_min_messages = error;');
	for my $database (qw(t a b))
	{
		$self->_say("\\set $database differential_:worker _$database",
			"DROP DATABASE IF EXISTS :\"$database\";");
	}
	$self->_say('CREATE DATABASE :"t";', '\c :t');
	$self->_session;
	$self->_say("\\set ON_ERROR_ROLLBACK on", 'CREATE EXTENSION IF NOT EXISTS gpuds;', 'CREATE SCHEMA diff;');
	$self->_types;
	$self->_tables;
	$self->_probes;
	$self->_fill;
	my $template = { number => $self->{number}, id => $self->{id} };
	my %exists;

	for my $round (1 .. _int(4, 7))
	{
		my $database = _one(qw(a a b));

		$self->_say('\c differential_:worker', 'SET client_min_messages = error;');
		if ($exists{$database} && _chance(0.8))
		{
			$self->_say("DROP DATABASE :\"$database\"" . _one('', ' WITH (FORCE)') . ';');
			$exists{$database} = 0;
		}
		if (!$exists{$database})
		{
			$self->_say("SELECT $self->{oid}{$database} + 80002 * :worker AS oid \\gset",
				"CREATE DATABASE :\"$database\" TEMPLATE :\"t\" OID = :oid"
				  . (_chance(0.3) ? ' STRATEGY file_copy' : '') . ';');
			$exists{$database} = 1;
		}
		$self->_say("\\c :$database");
		$self->_session;
		# The first thing may be a look at what the template has
		$self->_final_queries if _chance(0.6);
		$self->_change if _chance(0.5);
		$self->_step for 1 .. _int(1, 3);
		$self->_final_queries;
		$self->_check;
	}
	if (_chance(0.5))
	{
		# The template itself went on unharmed
		$self->_say('\c :t');
		$self->_session;
		$self->_final_queries;
		$self->_check;
	}
	$self->_say('\c differential_:worker', 'SET client_min_messages = error;',
		map { "DROP DATABASE IF EXISTS :\"$_\";" } qw(a b t));
	$self->_say('\echo @@ 0 end list', '\echo @@');
	return;
}

1;
