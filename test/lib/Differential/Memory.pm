# Scripts of test/differential with indexes that each fit the server's memory but
# not all of them, while other sessions ask for them in turn.

package Differential::Memory;

use strict;
use warnings;

use Differential::Output qw(_index_settings);
use Differential::Random;
use Differential::Upserts;
use parent 'Differential::Script';

sub name { return 'memory'; }
sub server { return 'other'; }

# Small changes to large tables; each query says how long it may take
sub _generate
{
	my ($self) = @_;
	my $tables = 5;
	my $most = "SET statement_timeout = '60s';";

	$self->{goes_on} = 'off';
	$self->_say('-- memory, seed ' . $self->{seed});
	$self->_session;
	$self->_say('DROP SCHEMA IF EXISTS diff CASCADE;', 'CREATE SCHEMA diff;');
	for my $t (1 .. $tables)
	{
		my $rows = _int(60000, 120000);
		my $keys = _one(5000, 50000, 1000000);

		$self->_say("CREATE TABLE tg_$t (id int, k bigint, v int);",
			_weighted(1, "CREATE INDEX tg_${t}_idx ON tg_$t USING $self->{am} (k);", 3, ''),
			"INSERT INTO tg_$t SELECT i, i::bigint * 7919 % $keys, i % 100 FROM generate_series(1, $rows) i;",
			"CREATE INDEX IF NOT EXISTS tg_${t}_idx ON tg_$t USING $self->{am} (k);",
			"CREATE INDEX tg_${t}_id ON tg_$t (id);", "ANALYZE tg_$t;");
		$self->{rows}[$t] = $rows;
		$self->{keys}[$t] = $keys;
	}
	$self->_end_stage;
	$self->_session;
	$self->_say($most);
	for (1 .. _int(20, 30)) { $self->_look(_int(1, $tables)); }
	my @beside;
	for (1 .. 2)
	{
		my @lines = ('SET client_min_messages = error;', 'SET search_path = diff, public;', $most);

		for (1 .. _int(30, 50))
		{
			my $t = _int(1, $tables);
			my $k = _int(0, $self->{keys}[$t]);
			my $low = $k - 50;
			my $keys = join(',', map { _int(0, $self->{keys}[$t]) } 1 .. 50);
			my $where = _weighted(3, "k = $k", 2, "k BETWEEN $low AND $k", 1, "k = ANY (''{$keys}'')");
			push @lines, Differential::Upserts::_agreement("tg_$t", $where);
		}
		push @beside, join("\n", @lines) . "\n";
	}
	$self->_end_stage(@beside);
	$self->_session;
	$self->_say($most);
	for my $t (1 .. $tables) { $self->_look($t); }
	$self->_check;
	$self->_end;
	return;
}

# A change now and then, and a query without and with the index
sub _look
{
	my ($self, $t) = @_;
	my $k = _int(0, $self->{keys}[$t]);
	my $id = ++$self->{id} + 1000000;
	my $number;

	$self->_settings;
	if (_chance(0.4))
	{
		my $rows = _weighted(3, 1, 3, 100, 1, 5000);
		my ($first, $last) = ($k % 1000, $k % 1000 + _int(0, 50));
		my $changed = _int(1, 10000);

		$self->_say(_weighted(
				2, "INSERT INTO tg_$t SELECT $id, $k + i, i FROM generate_series(1, $rows) i;",
				1, "DELETE FROM tg_$t WHERE id BETWEEN $first AND $last;",
				1, "UPDATE tg_$t SET k = k + 1 WHERE id = $changed;",
				1, "VACUUM (INDEX_CLEANUP ON) tg_$t;"));
	}
	my $low = $k - _int(0, 200);
	my $high = $k + _int(0, 200);
	my ($query, $mode) = @{ _weighted(
			4, [ "SELECT id, k, v FROM {Q} WHERE k = $k", 'set' ],
			3, [ "SELECT count(*), sum(id) FROM {Q} WHERE k BETWEEN $low AND $high", 'list' ],
			3, [ "SELECT count(*), sum(id), sum(v) FROM {Q} WHERE k = ANY ('{"
				  . join(',', map { _int(0, $self->{keys}[$t]) } 1 .. _int(2, 200)) . "}')", 'list' ],
			2, [ "SELECT k FROM {Q} WHERE k >= $k ORDER BY k LIMIT " . _int(1, 500), 'list' ],
			1, [ 'SELECT count(*), sum(k) FROM {Q} WHERE k >= 0', 'list' ],
			1, [ 'SELECT count(*), sum(hashint8(k)::bigint * n) '
				  . 'FROM (SELECT k, row_number() OVER (ORDER BY k) AS n FROM {Q}) x', 'list' ]) };
	$query =~ s/\{Q\}/tg_$t/;
	$number = ++$self->{number};
	$self->_seqscan_settings;
	$self->_say("\\echo @@ $number seq $mode", "$query;", '\echo @@');
	$self->_settings(_index_settings($query =~ /ORDER BY/ ? 'ordered' : 'any'));
	$self->_say("\\echo @@ $number gpu $mode", "$query;", '\echo @@');
	return;
}

1;
