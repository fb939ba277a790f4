#!/usr/bin/perl
#
# test/soak.pl --dir DIR [--seconds N] [--sessions N] [--rows N] [--restart SECONDS]
#              [--latency-ms N] [--device cpu|cuda] [--seed N]
#
# The sessions of test/soak, on a server that is there (PGHOST, PGPORT, PGUSER):
# lookups and writers by pgbench, whose logs have a latency for every transaction;
# DDL, evictions, statements that are cancelled, and now and then the end of the
# device worker.  Every lookup compares the answer of gpu_btree with that of a btree
# index over the same column, in one snapshot.
#
# A lookup may wait for a load: those are excluded that overlap with a time in which
# the mirror of their table's index was not there, or was loaded, or the worker was
# another, as a watching session saw it, or with a statement of ours that makes
# that so.  Of the others none may take longer than --latency-ms, if that is given.
#
# At the end all is evicted: the views must be back at what they were at the start.

use strict;
use warnings;

use FindBin;
use Getopt::Long;
use List::Util qw(min max sum);
use POSIX qw(:sys_wait_h);
use Time::HiRes qw(time sleep);
use lib "$FindBin::RealBin/lib";

use Differential::Sessions;

my ($dir, $seconds, $sessions, $rows, $restart, $latency_ms, $device, $seed, $log) =
  (undef, 60, 16, 100000, 15, undef, 'cpu', 1, undef);
GetOptions(
	'dir=s' => \$dir,
	'seconds=i' => \$seconds,
	'sessions=i' => \$sessions,
	'rows=i' => \$rows,
	'restart=i' => \$restart,
	'latency-ms=i' => \$latency_ms,
	'device=s' => \$device,
	'seed=i' => \$seed,
	'log=s' => \$log) or die "usage: see the head of $0\n";
die "--dir says where the logs go\n" unless $dir;
die "there are at least 8 sessions\n" if $sessions < 8;
srand($seed);
$| = 1;

my $tables = 4;
my @psql = ('psql', '-X', '-q', '-A', '-t', '-d', 'soak');

# How the sessions are divided
my %number = (ddl => 1, evict => 1, cancel => $sessions >= 12 ? 3 : 2, watch => 1);
$number{write} = max(1, int(($sessions - sum(values %number)) / 4));
$number{look} = $sessions - sum(values %number);

my ($passed, $failed) = (0, 0);

sub result
{
	my ($ok, $what) = @_;
	$ok ? $passed++ : $failed++;
	print(($ok ? 'ok' : 'NOT OK'), ": $what\n");
	return;
}

sub random_int { my ($low, $high) = @_; return $low + int(rand($high - $low + 1)); }
sub one { return $_[ int(rand(@_)) ]; }

sub write_file
{
	my ($name, $text) = @_;
	open(my $fh, '>', "$dir/$name") or die "$dir/$name: $!";
	print $fh $text;
	close $fh;
	return "$dir/$name";
}

#
# What is looked at
#

# Of a column k there is a copy b with a btree index
my $schema = <<'END';
CREATE EXTENSION IF NOT EXISTS gpuds;
CREATE SEQUENCE ids START 100000000;
CREATE TABLE wrong (at timestamptz DEFAULT clock_timestamp(), what text);
END
for my $t (1 .. $tables)
{
	$schema .= <<"END";
CREATE TABLE t$t (id int, k bigint, v int, b bigint GENERATED ALWAYS AS (k) STORED)
	WITH (fillfactor = 80, vacuum_truncate = off);
INSERT INTO t$t (id, k, v) SELECT i, i::bigint * 7919 % $rows, i % 100 FROM generate_series(1, $rows) i;
CREATE INDEX t${t}_k ON t$t USING gpu_btree (k);
CREATE INDEX t${t}_b ON t$t (b);
CREATE INDEX t${t}_id ON t$t (id);
-- Both in the snapshot of the statement that calls.  A wrong answer goes on: it is reported
CREATE FUNCTION look$t(low bigint, high bigint) RETURNS bigint LANGUAGE plpgsql STABLE
	SET enable_seqscan = off AS \$\$
DECLARE
	ours text;
	theirs text;
BEGIN
	SELECT concat_ws(' ', count(*), sum(id), sum(v)) FROM t$t WHERE k BETWEEN low AND high INTO ours;
	SELECT concat_ws(' ', count(*), sum(id), sum(v)) FROM t$t WHERE b BETWEEN low AND high INTO theirs;
	IF ours <> theirs THEN
		RAISE WARNING 'wrong answer: t$t, % to %: %, not %', low, high, ours, theirs;
	END IF;
	RETURN 1;
END \$\$;
CREATE FUNCTION look$t(keys bigint[]) RETURNS bigint LANGUAGE plpgsql STABLE SET enable_seqscan = off AS \$\$
DECLARE
	ours text;
	theirs text;
BEGIN
	SELECT concat_ws(' ', count(*), sum(id), sum(v)) FROM t$t WHERE k = ANY (keys) INTO ours;
	SELECT concat_ws(' ', count(*), sum(id), sum(v)) FROM t$t WHERE b = ANY (keys) INTO theirs;
	IF ours <> theirs THEN
		RAISE WARNING 'wrong answer: t$t, %: %, not %', keys, ours, theirs;
	END IF;
	RETURN 1;
END \$\$;
CREATE TABLE side$t (k bigint, v int);
CREATE INDEX side${t}_k ON side$t USING gpu_btree (k);
INSERT INTO side$t SELECT i, i FROM generate_series(1, 10000) i;
END
}

#
# pgbench's scripts; of a lookup the name begins with the number of its table
#

my @lookups;
for my $t (1 .. $tables)
{
	my $keys = join(',', map { ":k$_" } 1 .. 40);
	my $draw = join('', map { "\\set k$_ random(0, $rows)\n" } 1 .. 40);

	push @lookups,
	  [ $t, 10, write_file("${t}_key.sql", "\\set k random(0, $rows)\nSELECT look$t(:k, :k);\n") ];
	push @lookups,
	  [ $t, 4, write_file("${t}_any.sql", "${draw}SELECT look$t(ARRAY[$keys]::bigint[]);\n") ];
	push @lookups,
	  [ $t, 2, write_file("${t}_range.sql", "\\set k random(0, $rows)\nSELECT look$t(:k, :k + 300);\n") ];
}
my @writers;
for my $t (1 .. $tables)
{
	my $head = "\\set k random(0, $rows)\n\\set n random(1, 100)\n";

	push @writers, [ 10, write_file("w${t}_insert.sql",
			"${head}INSERT INTO t$t (id, k, v) VALUES (nextval('ids'), :k, :n);\n") ];
	push @writers,
	  [ 6, write_file("w${t}_update.sql", "${head}UPDATE t$t SET k = k + :n WHERE id = 1 + :k % $rows;\n") ];
	push @writers,
	  [ 4, write_file("w${t}_delete.sql", "${head}DELETE FROM t$t WHERE b = :k AND id % 3 = :n % 3;\n") ];
	push @writers,
	  [ 2, write_file("w${t}_bulk.sql",
			"${head}INSERT INTO t$t (id, k, v) SELECT nextval('ids'), :k + i % 777, i "
			  . "FROM generate_series(1, 20 * :n) i;\n") ];
	push @writers, [ 2, write_file("w${t}_shrink.sql",
			"${head}DELETE FROM t$t WHERE id >= 100000000 AND b BETWEEN :k AND :k + 20 * :n;\n") ];
	push @writers, [ 3, write_file("w${t}_block.sql", <<"END") ];
${head}BEGIN;
INSERT INTO t$t (id, k, v) VALUES (nextval('ids'), :k, 1);
SELECT look$t(:k, :k + 5);
SAVEPOINT s;
INSERT INTO t$t (id, k, v) VALUES (nextval('ids'), :k + 1, 2);
ROLLBACK TO s;
INSERT INTO t$t (id, k, v) VALUES (nextval('ids'), :k + 2, 3);
SELECT look$t(:k, :k + 5);
COMMIT;
END
}

sub start
{
	my ($out, @command) = @_;
	my $pid = fork() // die "fork: $!";

	return $pid if $pid;
	open(STDIN, '<', '/dev/null');
	open(STDOUT, '>>', "$dir/$out");
	open(STDERR, '>&', \*STDOUT);
	exec @command;
	die "$command[0]: $!";
}

sub start_pgbench
{
	my ($name, $clients, @files) = @_;
	return start("$name.out", 'pgbench', '-n', '-M', 'prepared', '-c', $clients, '-j', min(4, $clients), '-T',
		$seconds, '--random-seed', $seed,
		'-l', "--log-prefix=$dir/$name", '--failures-detailed', '--max-tries=20',
		(map { ('-f', "$_->[1]\@$_->[0]") } @files), 'soak');
}

# Runs code in a process of its own until the time is over
my $over;

sub start_loop
{
	my ($out, $code) = @_;
	my $pid = fork() // die "fork: $!";

	return $pid if $pid;
	srand($seed * 1000 + $$);
	open(my $fh, '>', "$dir/$out") or die "$dir/$out: $!";
	$fh->autoflush(1);
	my $session = Differential::Sessions->new(@psql);
	while (time < $over)
	{
		$code->($session, $fh);
	}
	undef $session;
	close $fh;
	POSIX::_exit(0);
}

# Errors that the sessions are meant to have: of cancelled statements and their parallel workers,
# of an index that went or was replaced while somebody was about to evict it, of a session that ended
# before it was cancelled, and of a ROLLBACK whose BEGIN was cancelled
my $expected = join('|',
	'canceling (?:statement due to|autovacuum task)',
	'current transaction is aborted',
	'deadlock detected',
	'is being used by active',
	'terminating (?:connection|background worker)',
	'could not map dynamic shared memory segment',
	'could not attach to dynamic shared area',
	'could not attach to a SharedFileSet that is already destroyed',
	'could not open relation with OID',
	'index "\w+" is not valid',
	'is not a PostgreSQL backend process',
	'there is no transaction in progress');

# Statements, and a line of each error that is not expected
sub say_sql
{
	my ($session, $fh, $sql) = @_;
	my $answer = $session->query($sql);
	print $fh "$sql\n$answer\n" if $answer =~ /ERROR|FATAL|PANIC|WARNING/ && $answer !~ $expected;
	return $answer;
}

# A statement that takes a mirror away: lookups of the table from its begin until the mirror is
# loaded again wait for that.  The watcher sees the rest.
sub away
{
	my ($session, $fh, $t, $sql) = @_;
	my $began = time;

	say_sql($session, $fh, $sql);
	printf $fh "away %d %.6f %.6f\n", $t, $began, time;
	return;
}

sub ddl
{
	my ($session, $fh) = @_;
	my $t = random_int(1, $tables);
	my $s = random_int(1, $tables);

	away($session, $fh, $t, "REINDEX INDEX CONCURRENTLY t${t}_k;") if rand() < 0.1;
	say_sql($session, $fh, one(
			"TRUNCATE side$s; INSERT INTO side$s SELECT i, i FROM generate_series(1, 10000) i;",
			"REINDEX INDEX side${s}_k;",
			"BEGIN; DROP INDEX side${s}_k; CREATE INDEX side${s}_k ON side$s USING gpu_btree (k); COMMIT;",
			"BEGIN; TRUNCATE side$s; INSERT INTO side$s SELECT i, i FROM generate_series(1, 500) i;
				ROLLBACK;",
			"CREATE INDEX CONCURRENTLY extra ON t$t USING gpu_btree (v, k);
				SELECT count(*) FROM t$t WHERE v = 5 AND k < 1000; DROP INDEX CONCURRENTLY extra;",
			"CREATE TABLE fresh (k bigint); CREATE INDEX ON fresh USING gpu_btree (k);
				INSERT INTO fresh SELECT i FROM generate_series(1, 3000) i; SET enable_seqscan = off;
				SELECT count(*) FROM fresh WHERE k < 100; RESET enable_seqscan; DROP TABLE fresh;",
			"CREATE TEMP TABLE mine (k bigint); CREATE INDEX ON mine USING gpu_btree (k);
				INSERT INTO mine SELECT i FROM generate_series(1, 3000) i; SET enable_seqscan = off;
				SELECT count(*) FROM mine WHERE k < 100; RESET enable_seqscan; DROP TABLE mine;",
			"VACUUM (INDEX_CLEANUP ON) t$t;", "VACUUM (INDEX_CLEANUP ON) side$s;",
			"ALTER TABLE side$s ALTER k TYPE bigint;"));
	my $answer = say_sql($session, $fh, "
		SET enable_seqscan = off; SELECT count(*) FROM side$s WHERE k > 0; SET enable_seqscan = on;
		SET enable_indexscan = off; SET enable_bitmapscan = off; SELECT count(*) FROM side$s WHERE k > 0;
		RESET ALL;");
	my ($ours, $theirs) = split /\n/, $answer;
	# One that was cancelled gave no answer
	print $fh "wrong answer: side$s: $ours, not $theirs\n"
	  if ($ours // '') ne ($theirs // '') && $answer !~ $expected;
	sleep(0.2);
	return;
}

sub evict
{
	my ($session, $fh) = @_;
	my $t = random_int(1, $tables);

	away($session, $fh, $t, "SELECT gpuds_index_evict('t${t}_k');");
	say_sql($session, $fh, "SELECT gpuds_index_evict('side${t}_k');");
	sleep(1.5);
	return;
}

# Long statements under a timeout, now and then on the other device; somebody cancels them, too
sub cancelled
{
	my ($session, $fh) = @_;
	my $t = random_int(1, $tables);
	my $timeout = one(1, 2, 5, 10, 50, 200);

	say_sql($session, $fh, "SET enable_seqscan = off; SET statement_timeout = $timeout;\n"
		  . ($device ne 'cpu' && rand() < 0.2 ? "SET gpuds.device = cpu;\n" : '')
		  . one("SELECT count(*), sum(v) FROM t$t WHERE k >= 0;", "SELECT look$t(0, $rows);", "
			BEGIN;
			INSERT INTO t$t (id, k, v) SELECT nextval('ids'), i, i FROM generate_series(1, 20000) i;
			SELECT look$t(0, 100);
			ROLLBACK;\n",
			"SELECT look$t(" . random_int(0, $rows) . ', ' . ($rows + 10) . ');',
			"SELECT count(*) FROM side$t WHERE k > 100;", "VACUUM (INDEX_CLEANUP ON) t$t;")
		  . "\nRESET ALL;");
	return;
}

# Every 20 ms: which main indexes are loaded, how often they were, and who the worker is
sub watch
{
	my ($session, $fh) = @_;
	my $began = time;
	my $there = $device eq 'cpu' ? '' : "AND i.device IS DISTINCT FROM 'cpu'";
	my $answer = $session->query("
		SELECT i.indexrelname, coalesce(bool_and(i.state IN ('loaded', 'applying')), false), max(s.loads),
			(SELECT max(worker_pid) FROM gpuds_devices)
		FROM gpuds_indexes i JOIN gpuds_stat_indexes s USING (indexrelid)
		WHERE i.relname ~ '^t\\d+\$' AND i.indexrelname ~ '_k\$' $there GROUP BY 1 ORDER BY 1;");

	for my $line (split /\n/, $answer)
	{
		if ($line =~ /^t(\d+)_k\|([tf])\|(\d*)\|(\d*)$/)
		{
			printf $fh "seen %d %.6f %.6f %s %s %s\n", $1, $began, time, $2, $3 || 0, $4 || 0;
		}
		else { print $fh "$line\n" if $line =~ /ERROR|FATAL/; }
	}
	sleep(0.02);
	return;
}

#
# The run
#

sub devices
{
	my ($session) = @_;
	my $has_staging = $session->query("
		SELECT count(*) FROM pg_attribute
		WHERE attrelid = 'gpuds_devices'::regclass AND attname = 'staging_used';");
	my $columns = $has_staging ? ", 'staging ' || coalesce(staging_used, 0)" : '';
	my $devices = $session->query("
		SELECT concat_ws(' ', kind, 'memory', memory_used$columns) FROM gpuds_devices ORDER BY kind;");

	return $devices =~ s/\n/, /gr;
}

# Evicts all there is, and gives background work the time to end
sub quiet
{
	my ($session, $baseline) = @_;
	my $now;

	for my $try (1 .. 600)
	{
		$session->query("
			SELECT count(gpuds_index_evict(c.oid::regclass)) FROM pg_class c JOIN pg_am a ON a.oid = c.relam
			WHERE a.amname = 'gpu_btree' AND c.relkind = 'i';");
		$now = devices($session);
		last if !defined $baseline || $now eq $baseline;
		sleep(0.1);
	}
	return $now;
}

$ENV{PGOPTIONS} = '-c client_min_messages=warning';
system('psql', '-X', '-q', '-d', 'postgres', '-c', 'DROP DATABASE IF EXISTS soak', '-c',
	'CREATE DATABASE soak') == 0 or exit 1;
system(@psql, '-v', 'ON_ERROR_STOP=1', '-f', write_file('schema.sql', $schema)) == 0 or exit 1;
my $main = Differential::Sessions->new(@psql);
$main->query('SET client_min_messages = error;');
$main->query("VACUUM (ANALYZE) t$_;") for 1 .. $tables;
my $baseline = quiet($main);
$main->query("SELECT gpuds_index_load('t${_}_k');") for 1 .. $tables;

printf "%d s, %d sessions: %s; %d tables of %d rows, device %s, seed %d\n", $seconds, $sessions,
  join(', ', map { "$number{$_} $_" } qw(look write ddl evict cancel watch)), $tables, $rows, $device, $seed;
my $began = time;
$over = $began + $seconds;
my %pid;
$pid{"look"} = start_pgbench('look', $number{look}, map { [ $_->[1], $_->[2] ] } @lookups);
$pid{"write"} = start_pgbench('write', $number{write}, @writers);
$pid{"ddl"} = start_loop('ddl.out', \&ddl);
$pid{"evict"} = start_loop('evict.out', \&evict);
$pid{"watch"} = start_loop('watch.out', \&watch);
$pid{"cancel$_"} = start_loop("cancel$_.out", \&cancelled) for 1 .. $number{cancel};

# The main process cancels, and ends the worker
my ($restarts, $cancels) = (0, 0);
my $next_restart = $began + $restart;
my @away;
while (time < $over)
{
	$cancels += $main->query("
		SELECT count(pg_cancel_backend(pid))
		FROM (SELECT pid FROM pg_stat_activity WHERE datname = 'soak' AND state = 'active'
			AND query ~ '^SET enable_seqscan|sum\\(v\\)|^INSERT INTO t.*20000|look.*$rows'
			AND application_name = 'psql' AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1) x;");
	if ($device ne 'cpu' && $restart && time >= $next_restart && time < $over - 3)
	{
		my $at = time;
		my $old =
		  $main->query("SELECT worker_pid FROM gpuds_devices WHERE kind = 'cuda' AND state = 'ready';");

		if ($old =~ /^\d+$/)
		{
			# pg_terminate_backend knows no process without a database
			kill 'TERM', $old;
			for my $try (1 .. 600)
			{
				last if $main->query("
					SELECT count(*) FROM gpuds_devices WHERE kind = 'cuda' AND state = 'ready'
						AND worker_pid <> $old;") eq '1';
				sleep(0.05);
			}
			push @away, [ $_, $at, time ] for 1 .. $tables;
			my $still = $main->query("
				SELECT count(*) FROM gpuds_devices WHERE kind = 'cuda' AND worker_pid = $old;");
			$restarts++ if $still eq '0';
			$next_restart = time + $restart;
		}
	}
	sleep(0.1);
}

# Whoever does not end now hangs
my %status;
my $deadline = time + 300;
while (%pid && time < $deadline)
{
	for my $name (keys %pid)
	{
		if (waitpid($pid{$name}, WNOHANG) == $pid{$name})
		{
			$status{$name} = $?;
			delete $pid{$name};
		}
	}
	sleep(0.05);
}
result(!%pid, 'all sessions came to their end' . (%pid ? ', but for ' . join(' ', sort keys %pid) : ''));
kill 'KILL', values %pid;

#
# What the logs say
#

sub lines
{
	my ($file) = @_;
	open(my $fh, '<', $file) or return ();
	my @lines = <$fh>;
	close $fh;
	chomp @lines;
	return @lines;
}

# Times of each table in which lookups may wait for a load
my @waits = map { [] } 0 .. $tables;
push @{ $waits[ $_->[0] ] }, [ $_->[1], $_->[2] ] for @away;
my (@before, $watched);
for my $line (lines("$dir/watch.out"))
{
	my ($t, $from, $to, $loaded, $loads, $worker) = $line =~ /^seen (\d+) (\S+) (\S+) (\w) (\d+) (\d+)$/
	  or next;
	my $last = $before[$t] // [ $from, $loaded, $loads, $worker ];

	$watched++;
	push @{ $waits[$t] }, [ $last->[0], $to ]
	  if $loaded eq 'f' || $last->[1] eq 'f' || $loads ne $last->[2] || $worker ne $last->[3];
	$before[$t] = [ $from, $loaded, $loads, $worker ];
}
my @unexpected;
for my $file (glob("$dir/{ddl,evict,watch,cancel*}.out"))
{
	for my $line (lines($file))
	{
		if ($line =~ /^away (\d+) (\S+) (\S+)$/) { push @{ $waits[$1] }, [ $2, $3 ]; }
		elsif ($line !~ /^seen/ && $line =~ /ERROR|FATAL|PANIC|WARNING|wrong answer/)
		{
			push @unexpected, ($file =~ s/.*\///r) . ": $line";
		}
	}
}
for my $t (1 .. $tables)
{
	my @sorted = sort { $a->[0] <=> $b->[0] } @{ $waits[$t] };
	my @merged;

	for my $wait (@sorted)
	{
		if (@merged && $wait->[0] <= $merged[-1][1]) { $merged[-1][1] = max($merged[-1][1], $wait->[1]); }
		else { push @merged, [@$wait]; }
	}
	$waits[$t] = \@merged;
}

# pgbench's lines: client, transaction, latency in us, script, seconds, microseconds of its end
my (@quiet, @loading, @slow);
my %all = (look => [], write => []);
for my $kind (qw(look write))
{
	for my $line (map { lines($_) } glob("$dir/$kind.[0-9]*"))
	{
		my ($client, $transaction, $us, $script, $s, $micro) = split / /, $line;

		next unless $us =~ /^\d+$/;
		push @{ $all{$kind} }, $us;
		next if $kind ne 'look';
		my $end = $s + $micro / 1e6;
		my $from = $end - $us / 1e6;
		my $t = $lookups[$script][0];
		if (grep { $_->[0] <= $end && $_->[1] >= $from } @{ $waits[$t] }) { push @loading, $us; }
		else
		{
			push @quiet, $us;
			push @slow, [ $us, $t, $from - $began ] if $us > 1000 * ($latency_ms // 50);
		}
	}
}

sub spread
{
	my @sorted = sort { $a <=> $b } @_;
	my $at = sub { return sprintf('%.2f', $sorted[ min($#sorted, int($_[0] * @sorted)) ] / 1000); };

	return 'none' unless @sorted;
	return scalar(@sorted) . ', ms: median ' . $at->(0.5) . ', 99 % ' . $at->(0.99) . ', 99.9 % '
	  . $at->(0.999) . ', max ' . $at->(1);
}

print 'lookups: ', spread(@quiet), "\n";
print 'lookups beside a load, an eviction or a restart: ', spread(@loading), "\n";
print 'writing transactions: ', spread(@{ $all{write} }), "\n";
my @restarted = map { sprintf('%.1f s', $_->[2] - $_->[1]) } grep { $_->[0] == 1 } @away;
print "$restarts restarts of the worker" . (@away ? ' (' . join(', ', @restarted) . ')' : '')
  . ", $cancels statements cancelled, " . ($watched // 0) . " looks at the views\n";
my @slowest = (sort { $b->[0] <=> $a->[0] } @slow)[ 0 .. min(4, $#slow) ];
my @told = map { sprintf('%.0f ms of t%d at %.1f s', $_->[0] / 1000, $_->[1], $_->[2]) } @slowest;
printf "%d lookups over %d ms that waited for no load%s\n", scalar @slow, $latency_ms // 50,
  @slow ? ': ' . join(', ', @told) : '';

result(@{ $all{look} } > 0 && @quiet > 0 && @{ $all{write} } > 0 && ($watched // 0) > 0,
	'lookups, writers and the watcher got to work');
for my $kind (qw(look write))
{
	my $said = join("\n", lines("$dir/$kind.out"));
	my @wrong = grep { /wrong answer|ERROR|FATAL|aborted/ } split /\n/, $said;

	result($status{$kind} // 1 ? 0 : !@wrong, "$kind: no client failed" . (@wrong ? ": $wrong[0]" : ''));
}
result(!@unexpected, 'no unexpected errors'
	  . (@unexpected ? ', ' . scalar(@unexpected) . ": $unexpected[0]" : ''));
if ($log)
{
	my @server = lines($log);
	my @answers = grep { /wrong answer/ } @server;
	my @other = grep { /(ERROR|FATAL|PANIC|WARNING): /
		  && !/$expected|wrong answer|instead$|no memory|does not exist|already exists/ } @server;

	result(!@answers, 'wrong answers: ' . scalar(@answers) . (@answers ? ", $answers[0]" : ''));
	result(!@other, 'the server log has nothing unexpected'
		  . (@other ? ', ' . scalar(@other) . ": $other[0]" : ''));
}
result(!@slow, "no lookup over $latency_ms ms that waited for no load") if defined $latency_ms;
result($device eq 'cpu' || !$restart || $seconds < 2 * $restart || $restarts > 0,
	"the worker was restarted $restarts times") if $device ne 'cpu';

# Whole, and nothing is left
my @looks;
for my $t (1 .. $tables)
{
	push @looks, "SELECT look$t(0, 1000000000);",
	  map { "SELECT look$t($_, $_ + 5000);" } map { random_int(0, $rows) } 1 .. 3;
}
for my $query (@looks)
{
	my $answer = $main->query("SET client_min_messages = warning; $query");
	result($answer eq '1', "$query $answer") if $answer ne '1';
}
my $check = $main->query("
	SELECT count(gpuds_index_check(c.oid::regclass, true)::text) FROM pg_class c
	JOIN pg_am a ON a.oid = c.relam JOIN pg_index i ON i.indexrelid = c.oid WHERE a.amname = 'gpu_btree'
		AND c.relkind = 'i' AND i.indisvalid;");
result($check !~ /ERROR/, 'all indexes pass gpuds_index_check' . ($check =~ /ERROR/ ? ": $check" : ''));
my $end = quiet($main, $baseline);
result($end eq $baseline, "after everything was evicted: $end"
	  . ($end eq $baseline ? '' : ", at the start $baseline"));
my $bytes = $main->query("SELECT coalesce(sum(bytes), 0) FROM gpuds_indexes WHERE indexrelname ~ '_k\$';");
result($bytes eq '0', "bytes of mirrors by gpuds_indexes: $bytes");
if ($device ne 'cpu')
{
	my $worker =
	  $main->query("SELECT worker_pid FROM gpuds_devices WHERE kind = 'cuda' AND state = 'ready';");
	result($worker =~ /^\d+$/, "the device is ready");
	my $status = $worker =~ /^\d+$/ ? $main->query("SELECT pg_read_file('/proc/$worker/status');") : '';
	print "memory of the worker: $1\n" if $status =~ /^RssAnon:.*?(\d+ kB)/m;
}

print "$passed passed, $failed failed\n";
exit($failed ? 1 : 0);
