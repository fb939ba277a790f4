# Scripts of test/differential with INSERT ... ON CONFLICT on a unique btree index
# beside the index under test, in bulk and mixed with other changes; and with other
# sessions that upsert the same rows of a table at the same time.

package Differential::Upserts;

use strict;
use warnings;

use Differential::Random;
use parent 'Differential::Script';

sub name { return 'upserts'; }

sub _choose_shape
{
	my ($self) = @_;

	$self->SUPER::_choose_shape;
	delete $self->{exclusion};
	return;
}

sub _tables
{
	my ($self) = @_;

	$self->SUPER::_tables;
	$self->_say("CREATE UNIQUE INDEX t${_}_id ON t$_ (id);") for qw(g b);
	$self->_say('CREATE TABLE tg_many (id int PRIMARY KEY, k bigint, v int);',
		"CREATE INDEX tg_many_idx ON tg_many USING $self->{am} (k);",
		"CREATE INDEX tg_many_v_idx ON tg_many USING $self->{am} (v, k);");
	return;
}

# New rows and such as collide, with each other as well
sub _insert
{
	my ($self, $n) = @_;
	my @columns = ('id', 'v', map { $_->{name} } @{ $self->{base} });
	my @rows;

	return $self->SUPER::_insert($n) if _chance(0.25) || $n == 0;
	for (1 .. $n)
	{
		my ($id, $v, @keys) = $self->_row;
		$id = _int(1, $self->{id}) if _chance(0.5);
		push @rows, "($id, $v" . join('', map { ', ' . (defined $_ ? "'$_'" : 'NULL') } @keys) . ')';
	}
	my $key = _one(@{ $self->{base} })->{name};
	my $action = _weighted(
		4, 'DO NOTHING', 3, "DO UPDATE SET v = EXCLUDED.v, $key = EXCLUDED.$key",
		1, 'DO UPDATE SET v = EXCLUDED.v + {T}.v',
		2, "DO UPDATE SET $key = EXCLUDED.$key WHERE {T}.v % 3 <> EXCLUDED.v % 3");
	my $values = join(', ', map { "($_->[0])" } map { [ substr($_, 1, -1) ] } @rows);

	# Unless it may hit no row twice, DO UPDATE takes the last of each id
	if ($action =~ /UPDATE/ && _chance(0.85))
	{
		my %last;
		for my $row (@rows) { my ($id) = $row =~ /^\((-?\d+)/; $last{$id} = $row; }
		$values = join(', ', map { $last{$_} } sort { $a <=> $b } keys %last);
	}
	$self->_both('INSERT INTO {T} (' . join(', ', @columns) . ") VALUES $values ON CONFLICT "
		  . ($action eq 'DO NOTHING' && _chance(0.5) ? '' : '(id) ') . $action);
	return;
}

sub _insert_select
{
	my ($self) = @_;
	my $keys = join('', map { ", $_->{name}" } @{ $self->{base} });
	my $n = _int(1, 400);

	$self->_both("INSERT INTO {T} (id, v$keys) SELECT id + " . _int(0, 300)
		  . ", v$keys FROM {T} WHERE id <= $n ORDER BY id ON CONFLICT (id) "
		  . _one('DO NOTHING', 'DO UPDATE SET v = EXCLUDED.v'));
	return;
}

# Others upsert a hundred ids against each other, and look
sub _others
{
	my ($self) = @_;
	my @texts;

	for my $session (1 .. 2)
	{
		my @lines = ('SET client_min_messages = error;', 'SET search_path = diff, public;',
			'SET enable_seqscan = off;', 'SET enable_sort = off;');
		for my $step (1 .. _int(60, 100))
		{
			my ($low, $n) = (_int(1, 80), _int(1, 40));
			my $upsert = "INSERT INTO tg_many SELECT i, " . _int(0, 500) . " + i, " . _int(0, 9)
			  . " FROM generate_series($low, $low + $n) i ON CONFLICT "
			  . _weighted(3, 'DO NOTHING', 3, '(id) DO UPDATE SET k = EXCLUDED.k',
				2, '(id) DO UPDATE SET k = EXCLUDED.k, v = EXCLUDED.v') . ';';
			my $kind = _weighted(6, 'upsert', 3, 'delete', 3, 'block', 1, 'vacuum', 3, 'look');

			if ($kind eq 'upsert') { push @lines, $upsert; }
			elsif ($kind eq 'delete')
			{
				push @lines, 'DELETE FROM tg_many WHERE id IN ('
				  . "SELECT id FROM tg_many WHERE id BETWEEN $low AND $low + $n ORDER BY id FOR UPDATE);";
			}
			elsif ($kind eq 'block')
			{
				push @lines, 'BEGIN;', "INSERT INTO tg_many VALUES (nextval('others'), $low, $n);", $upsert,
				  "INSERT INTO tg_many VALUES (nextval('others'), $low, $n);",
				  _weighted(3, 'COMMIT;', 2, 'ROLLBACK;');
			}
			elsif ($kind eq 'vacuum') { push @lines, 'VACUUM (INDEX_CLEANUP ON) tg_many;'; }
			else { push @lines, _agreement('tg_many', "k BETWEEN $low AND " . ($low + 300)); }
		}
		push @texts, join("\n", @lines) . "\n";
	}
	return @texts;
}

# A look at a table by index and without must give the same in one snapshot
sub _agreement
{
	my ($table, $where) = @_;
	my $sums = "EXECUTE 'SELECT row(count(*), sum(id), sum(v), sum(k))::text FROM $table WHERE $where'";

	return 'BEGIN ISOLATION LEVEL REPEATABLE READ; DO $$ DECLARE x text; y text; BEGIN '
	  . 'SET LOCAL enable_seqscan = on; SET LOCAL enable_indexscan = off; SET LOCAL enable_bitmapscan = off; '
	  . "$sums INTO x; "
	  . 'SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = on; '
	  . "$sums INTO y; "
	  . "IF x IS DISTINCT FROM y THEN RAISE 'the index gives %, not %, for $where', y, x; END IF; "
	  . 'END $$; COMMIT;';
}

sub harmless { return qr/deadlock detected|${\ Differential::Script::harmless() }/; }

sub _generate
{
	my ($self) = @_;

	$self->_choose_shape;
	$self->{temporary} = 0;
	$self->{goes_on} = _chance(0.4) ? 'on' : 'off';
	$self->_preamble;
	$self->_say('CREATE SEQUENCE others START 1000;');
	$self->_tables;
	$self->_probes;
	$self->_fill;
	$self->_end_stage;
	$self->_session;
	$self->_say("\\set ON_ERROR_ROLLBACK $self->{goes_on}");
	$self->_step for 1 .. $self->_step_count;
	$self->_end_stage($self->_others);
	$self->_session;
	$self->_final_queries;
	$self->_say(_agreement('tg_many', $_)) for 'k >= 0', 'v = 3', 'k = 77 OR k = 100';
	$self->_check;
	$self->_end;
	return;
}

1;
