# Scripts of test/differential with two or three SERIALIZABLE transactions at a time,
# interleaved as the seed says, on a table with the index under test.  Whichever
# of them commit: there must be an order in which the same transactions, one after the
# other on a table without indexes, read and leave the same.

package Differential::Serializable;

use strict;
use warnings;

use Differential::Random;
use Differential::Sessions;

sub name { return 'serializable'; }

# new(seed => N, am => NAME): as Script.pm has it
sub new
{
	my ($class, %args) = @_;
	my $self = bless { seed => $args{seed}, am => $args{am}, id => 1000000, rounds => [] }, $class;

	srand($self->{seed} * 7919 + 17);
	$self->{filler} = _one(0, 0, 300, 3000);
	$self->{second} = _chance(0.3);
	$self->{partitions} = _chance(0.2);
	# Keys may be neighbours, or far from each other
	$self->{step} = _one(1, 1, 300, 70000);
	$self->{key} = $self->{am} eq 'gpu_hash' ? _one('k', 'k, id', 'k) INCLUDE (v')
	  : _one('k', 'k DESC', 'k NULLS FIRST', 'k, id', 'k) INCLUDE (v', 'k) INCLUDE (v');
	$self->_make_round for 1 .. _int(12, 20);
	return $self;
}

sub _make_round
{
	my ($self) = @_;
	my $sessions = _weighted(4, 2, 1, 3);
	my $keys = _int(2, 5);
	my (@transactions, @schedule);

	for my $session (1 .. $sessions)
	{
		my $read_only = _chance(0.1);
		my @steps = ('BEGIN ISOLATION LEVEL SERIALIZABLE' . ($read_only ? ' READ ONLY' : ''));
		my $savepoint = 0;

		for (1 .. _int(1, 4))
		{
			push @steps, $read_only || _chance(0.4) ? $self->_read($keys) : $self->_write($keys);
			if (!$savepoint && _chance(0.12))
			{
				push @steps, 'SAVEPOINT s', $self->_write($keys), _one('ROLLBACK TO s', 'RELEASE s')
				  unless $read_only;
				$savepoint = 1;
			}
		}
		if (_chance(0.15))
		{
			my $name = "serializable_$self->{seed}_" . ++$self->{id};
			push @steps, "PREPARE TRANSACTION '$name'", "COMMIT PREPARED '$name'";
		}
		else { push @steps, 'COMMIT'; }
		push @transactions, \@steps;
		push @schedule, ($session - 1) x @steps;
	}
	# Any order of the sessions' steps, but often one in which all have begun before one ends
	for my $i (reverse 1 .. $#schedule)
	{
		my $j = int(rand($i + 1));
		@schedule[ $i, $j ] = @schedule[ $j, $i ];
	}
	push @{ $self->{rounds} }, {
		rows => [ map { [ $_, $self->_key($keys), _int(0, 3) ] } 1 .. _int(0, 6) ],
		plans => [ map { _plans() } 1 .. $sessions ], vacuum => _chance(0.5),
		transactions => \@transactions, schedule => \@schedule };
	return;
}

# Settings of a session that choose among plans, all of them
sub _plans
{
	my $parallel = _chance(0.2);

	return {
		enable_bitmapscan => _one('on', 'off'), 'gpuds.enable_aggregate' => _one('on', 'on', 'off'),
		'gpuds.enable_join' => _one('on', 'on', 'off'), cpu_tuple_cost => _one(0.01, 1, 1),
		max_parallel_workers_per_gather => $parallel ? 2 : 0,
		map { $_ => $parallel ? 0 : 1000 } qw(parallel_setup_cost parallel_tuple_cost) };
}

# Keys of rows that are not filler are below
my $limit = 1000000;

sub _key
{
	my ($self, $keys) = @_;
	return _chance(0.05) ? 'NULL' : _int(1, $keys) * $self->{step};
}

sub _condition
{
	my ($self, $keys) = @_;
	my ($k, $other) = map { _int(1, $keys) * $self->{step} } 1 .. 2;

	return _weighted(4, "k = $k", 2, "k BETWEEN $k AND $k + " . _one(1, 5, 600), 1, "k = ANY ('{$k,$other}')",
		1, "k > $k AND k < $limit", 1, "k >= $k AND v = " . _int(0, 3) . " AND k < $limit", 1, 'k IS NULL',
		1, "k = (SELECT min(i) FROM generate_series($k, $k + 3) i)",
		$self->{second} ? 2 : 0, 'v = ' . _int(0, 3));
}

sub _read
{
	my ($self, $keys) = @_;
	my $of = _one(('count(*), coalesce(sum(v), 0)') x 2, 'count(*)', 'count(DISTINCT id)');

	return $self->_call($keys) if !$self->{partitions} && _chance(0.15);
	return _weighted(
		# Filler, too: more rows than are locked one by one
		1, "SELECT 'many', $of FROM {T} WHERE k > " . _int(1, $keys) * $self->{step},
		1, "SELECT 'least', min(k), max(k) FROM {T} WHERE k < $limit",
		1, "SELECT 'groups', k, count(*) FROM {T} WHERE " . $self->_condition($keys)
		  . ' GROUP BY k ORDER BY k',
		4, "SELECT 'read', $of FROM {T} WHERE " . $self->_condition($keys),
		1, "SELECT 'joined', count(*), sum(v) FROM generate_series(1, $keys) i "
		  . "JOIN {T} ON k = i * $self->{step}",
		1, "SELECT 'absent', count(*) FROM generate_series(1, $keys) i WHERE "
		  . _one('', 'NOT ') . "EXISTS (SELECT FROM {T} WHERE k = i * $self->{step})");
}

# A call of a function that takes the index, and a query of the table without one that says the same
sub _call
{
	my ($self, $keys) = @_;
	my @k = map { _int(1, $keys + 1) * $self->{step} } 1 .. 2;
	my $array = "ARRAY[$k[0], $k[1]]";

	return _weighted(
		1, "SELECT 'contains', <<gpuds_contains('tg_idx', $array)|"
		  . "array(SELECT EXISTS (SELECT FROM tb WHERE k = i) FROM unnest($array) i)>>",
		1, "SELECT 'lookup', count(*) FROM <<gpuds_lookup('tg_idx', $array)|"
		  . "unnest($array) i JOIN tb ON k = i>>",
		$self->{am} eq 'gpu_hash' ? 0 : 1, "SELECT 'count', <<gpuds_count('tg_idx', $k[0], $k[1])|"
		  . "(SELECT count(*) FROM tb WHERE k BETWEEN $k[0] AND $k[1])>>");
}

sub _write
{
	my ($self, $keys) = @_;
	my $k = $self->_key($keys);
	my $id = ++$self->{id};

	return _weighted(
		5, "INSERT INTO {T} VALUES ($id, $k, " . _int(0, 3) . ')',
		1, "INSERT INTO {T} VALUES ($id, $k, 2) ON CONFLICT (id) DO NOTHING",
		1, "COPY {T} (id, k, v) FROM PROGRAM 'echo $id,$k,1' (FORMAT csv, NULL 'NULL')",
		1, 'MERGE INTO {T} t USING (SELECT count(*) n FROM {T} WHERE ' . $self->_condition($keys)
		  . ") s ON t.k = $k WHEN MATCHED THEN UPDATE SET v = n "
		  . "WHEN NOT MATCHED THEN INSERT VALUES ($id, $k, n)",
		1, 'UPDATE {T} SET w = w + 1 WHERE ' . $self->_condition($keys),
		3, "INSERT INTO {T} SELECT $id, $k, count(*) FROM {T} WHERE " . $self->_condition($keys),
		3, "INSERT INTO {T} SELECT $id, $k, 1 WHERE NOT EXISTS (SELECT FROM {T} WHERE k = $k)",
		3, 'UPDATE {T} SET v = v + 1 WHERE ' . $self->_condition($keys),
		3, 'UPDATE {T} SET v = (SELECT count(*) + coalesce(sum(v), 0) FROM {T} WHERE '
		  . $self->_condition($keys) . ") WHERE k = $k",
		2, "UPDATE {T} SET k = $k WHERE " . $self->_condition($keys),
		2, 'DELETE FROM {T} WHERE ' . $self->_condition($keys));
}

sub _set_up
{
	my ($self) = @_;
	my @sql = ('SET client_min_messages = error', 'DROP SCHEMA IF EXISTS diff CASCADE', 'CREATE SCHEMA diff',
		'SET search_path = diff, public');

	push @sql, map { "CREATE TABLE $_ (id int PRIMARY KEY, k int, v int, w int DEFAULT 0)" } qw(tb tg)
	  unless $self->{partitions};
	push @sql, 'CREATE TABLE tb (id int PRIMARY KEY, k int, v int, w int DEFAULT 0)',
	  'CREATE TABLE tg (id int PRIMARY KEY, k int, v int, w int DEFAULT 0) PARTITION BY HASH (id)',
	  map { "CREATE TABLE tg$_ PARTITION OF tg FOR VALUES WITH (MODULUS 2, REMAINDER $_)" } 0 .. 1
	  if $self->{partitions};
	push @sql, "CREATE INDEX tg_idx ON tg USING $self->{am} ($self->{key})";
	push @sql, "CREATE INDEX tg_v_idx ON tg USING $self->{am} (v, k)" if $self->{second};
	return @sql;
}

sub _reset
{
	my ($self, $round) = @_;
	my @rows = map { '(' . join(', ', @$_) . ')' } @{ $round->{rows} };
	my @sql = ('TRUNCATE tb, tg');

	push @sql, 'INSERT INTO tb VALUES ' . join(', ', @rows) if @rows;
	push @sql, "INSERT INTO tb SELECT -i, $limit + i, 100 FROM generate_series(1, $self->{filler}) i"
	  if $self->{filler};
	push @sql, 'INSERT INTO tg SELECT * FROM tb';
	push @sql, 'VACUUM tg' if $round->{vacuum};
	return @sql;
}

sub text
{
	my ($self) = @_;
	my @lines = ("-- serializable, seed $self->{seed}", map { "$_;" } $self->_set_up);
	my $n = 0;

	for my $round (@{ $self->{rounds} })
	{
		my @at = (0) x @{ $round->{transactions} };

		push @lines, '-- round ' . ++$n, map { "$_;" } $self->_reset($round);
		for my $session (0 .. $#{ $round->{plans} })
		{
			push @lines, '/* ' . ($session + 1) . ' */ ' . _settings($round->{plans}[$session]);
		}
		for my $session (@{ $round->{schedule} })
		{
			push @lines, '/* ' . ($session + 1) . " */ $round->{transactions}[$session][ $at[$session]++ ];";
		}
	}
	return join("\n", @lines) . "\n";
}

sub _settings
{
	my ($settings) = @_;
	return join(' ', map { "SET $_ = $settings->{$_};" } sort keys %$settings);
}

# A statement for a table; where it has <<this|that>>, the table with the index gets this
sub _on
{
	my ($sql, $table) = @_;

	$sql =~ s/\{T\}/$table/g;
	$sql =~ s/<<(.*)\|(.*)>>/$table eq 'tg' ? $1 : $2/e;
	return "$sql;";
}

my $state = "SELECT string_agg(concat_ws('|', id, coalesce(k::text, '-'), v, w), ' ' ORDER BY id, k, v) "
  . 'FROM {T} WHERE id > 0';

# run(psql's command, worker, file for the output): what is wrong, and counts
sub run
{
	my ($self, $psql, $worker, $out) = @_;
	my @command = (@$psql, '-q', '-d', "differential_$worker");
	my $control = Differential::Sessions->new(@command);
	my @sessions = map { Differential::Sessions->new(@command) } 1 .. 3;
	my (@wrong, $n);

	open(my $log, '>', $out) or die "$out: $!";
	$control->query("SELECT format('ROLLBACK PREPARED %L', gid) FROM pg_prepared_xacts "
		  . "WHERE database = current_database() \\gexec");
	$control->query(join('', map { "$_;\n" } $self->_set_up));
	$_->query("SET search_path = diff, public; SET enable_seqscan = off; SET deadlock_timeout = '100ms';")
	  for @sessions;
	for my $round (@{ $self->{rounds} })
	{
		my $complaint;

		$n++;
		$complaint = $control->query(join('', map { "$_;\n" } $self->_reset($round)));
		my ($answers, $committed, $error) = $self->_interleave($round, $control, \@sessions, $log, $n);
		$complaint .= $error;
		my $reached = $control->query(_on($state, 'tg'));
		my $indexed = $control->query('SET enable_seqscan = off; '
			  . _on($state =~ s/WHERE id > 0/WHERE (k < $limit OR k IS NULL) AND id > 0/r, 'tg')
			  . ' RESET enable_seqscan;');

		print $log "round $n: committed: @{[ map { $_ + 1 } @$committed ]}\n$reached\n";
		push @wrong, "round $n: $complaint" if $complaint ne '';
		push @wrong, "round $n: by index '$indexed', by sequential scan '$reached'" if $indexed ne $reached;
		push @wrong,
		  "round $n: no serial order of the committed transactions explains what they read and left"
		  unless $self->_explained($round, $control, $answers, $committed, $reached, $log);
	}
	if ($self->{am} =~ /^gpu_/)
	{
		my $answer = $control->query("
			SELECT count(gpuds_index_check(oid::regclass, true)::text) FROM pg_class
			WHERE relkind = 'i' AND relam IN (SELECT oid FROM pg_am WHERE amname ~ '^gpu_')
				AND pg_table_is_visible(oid);");
		push @wrong, $answer if $answer =~ /ERROR/;
	}
	$control->query('DROP SCHEMA diff CASCADE;');
	close $log;
	return (\@wrong, { compared => $n });
}

# Runs a round.  Returns what each transaction read, which committed, and errors
# that are none of serialization.
sub _interleave
{
	my ($self, $round, $control, $sessions, $log, $n) = @_;
	my @transactions = @{ $round->{transactions} };
	my @left = map { [@$_] } @transactions;
	my @answers = ('') x @transactions;
	my @aborted = (0) x @transactions;
	my @sent;
	my $error = '';
	my $backends = join(',', map { $_->backend } @$sessions);

	# Takes in the answer of a session's statement if there is one; false: it waits for another session
	my $collect = sub {
		my ($i) = @_;
		my $answer;

		while (!defined($answer = $sessions->[$i]->answer(0.01)))
		{
			# Also by a prepared transaction, which has no session
			my $pid = $sessions->[$i]->backend;
			my $waits = $control->query("
				SELECT cardinality(pg_blocking_pids($pid)) > 0
					OR pg_isolation_test_session_is_blocked($pid, '{$backends}');");
			return 0 if $waits eq 't';
		}
		print $log "round $n, session ", $i + 1, ": $sent[$i]\n", $answer eq '' ? '' : "$answer\n";
		if ($answer =~ /ERROR/)
		{
			$aborted[$i] = 1;
			@{ $left[$i] } = ();
			$error .= "session " . ($i + 1) . ": $answer "
			  unless $answer =~ /could not serialize|deadlock detected/;
			$sessions->[$i]->query('ROLLBACK;');
		}
		$answers[$i] .= "$answer\n" if $sent[$i] =~ /^SELECT/;
		return 1;
	};
	my $step = sub {
		my ($i) = @_;

		return 0 if $sessions->[$i]->pending && !$collect->($i);
		return 1 unless @{ $left[$i] };
		$sent[$i] = _on(shift @{ $left[$i] }, 'tg');
		$sessions->[$i]->send($sent[$i]);
		$collect->($i);
		return 1;
	};

	$sessions->[$_]->query(_settings($round->{plans}[$_])) for 0 .. $#transactions;
	# Who waits for another loses its turn; what is left over goes on in turn
	$step->($_) for @{ $round->{schedule} };
	while (grep { $sessions->[$_]->pending || @{ $left[$_] } } 0 .. $#transactions)
	{
		$step->($_) for 0 .. $#transactions;
	}
	return (\@answers, [ grep { !$aborted[$_] } 0 .. $#transactions ], $error);
}

sub _permutations
{
	my (@list) = @_;
	my @all;

	return ([]) unless @list;
	for my $i (0 .. $#list)
	{
		my @rest = @list;
		my ($first) = splice(@rest, $i, 1);

		push @all, map { [ $first, @$_ ] } _permutations(@rest);
	}
	return @all;
}

sub _explained
{
	my ($self, $round, $control, $answers, $committed, $reached, $log) = @_;
	my $tried = '';

	for my $order (_permutations(@$committed))
	{
		my $same = 1;

		$control->query('BEGIN;');
		for my $i (@$order)
		{
			my $got = '';

			for my $sql (@{ $round->{transactions}[$i] })
			{
				next if $sql =~ /^(BEGIN|COMMIT|PREPARE)/;
				my $answer = $control->query(_on($sql, 'tb'));
				$got .= "$answer\n" if $sql =~ /^SELECT/;
			}
			$same = 0 if $got ne $answers->[$i];
		}
		my $left = $control->query(_on($state, 'tb'));
		$control->query('ROLLBACK;');
		return 1 if $same && $left eq $reached;
		$tried .= 'order ' . join(', ', map { $_ + 1 } @$order) . " leaves $left"
		  . ($same ? '' : ' and reads otherwise') . "\n";
	}
	print $log $tried;
	return 0;
}

1;
