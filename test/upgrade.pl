#!/usr/bin/perl
#
# What test/upgrade runs, in Perl's TAP: steps from an installation of a former gpuds to one of this
# one, on one server and from one server to the next.  test/upgrade builds the installations and names them:
#
#   GPUDS_OLD, GPUDS_NEW   directories with bin/, the same server with the former gpuds and with this;
#                          GPUDS_OLD is empty if the former cannot be built for the server
#   GPUDS_OTHER            one of an older server with the former gpuds, or empty
#   GPUDS_OLD_FORMAT       format number of the former gpuds' indexes
#   GPUDS_OLD_OBJECTS      1 if its SQL objects are those of the script that this gpuds ships

use strict;
use warnings;

use GpudsTest;
use GpudsUpgrade;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my ($old, $new, $other) = @ENV{qw(GPUDS_OLD GPUDS_NEW GPUDS_OTHER)};
my @settings = (
	"shared_preload_libraries = 'gpuds'", 'gpuds.host_memory = 256MB', 'autovacuum = off',
	'max_prepared_transactions = 10',
	'max_connections = 40', 'checkpoint_timeout = 1h', 'wal_level = replica', 'log_statement = none');

# A node of an installation, not started.  initdb's further options follow.
sub node_of
{
	my ($name, $installation, @extra) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name, install_path => $installation);

	$node->init(extra => [ '--no-locale', '-E', 'UTF8', @extra ]);
	$node->append_conf('postgresql.conf', join("\n", @settings, ''));
	return $node;
}

# The same data directory, from now on with another installation's programs and library
sub switch
{
	my ($node, $installation) = @_;

	$node->{_install_path} = $installation;
	return;
}

sub version
{
	my ($node) = @_;
	return $node->safe_psql('postgres', "SELECT extversion FROM pg_extension WHERE extname = 'gpuds'");
}

# Two nodes, one of the older server and one of this, that pg_upgrade may be run between
sub pair
{
	my ($name) = @_;
	my $from = node_of("from$name", $other);
	# From 18 on, initdb turns checksums on, and pg_upgrade wants them alike
	my ($major) = `"$new/bin/postgres" --version` =~ / (\d+)/;
	my $differ = $from->pg_version->major < 18 && $major >= 18;

	return ($from, node_of("to$name", $new, $differ ? '--no-data-checksums' : ()));
}

# Runs pg_upgrade; returns '' or what it says
sub pg_upgrade
{
	my ($from, $to, $mode) = @_;

	# It leaves its files in the current directory
	my $dir = PostgreSQL::Test::Utils::tempdir();
	chdir $dir or die "$dir: $!";
	my ($out, $err) = run_command([ "$new/bin/pg_upgrade", '--no-sync', '-d', $from->data_dir, '-D',
			$to->data_dir, '-b', "$other/bin", '-B', "$new/bin",
			'-s', $from->host, '-p', $from->port, '-P', $to->port, $mode ]);
	return '' if $out =~ /^Upgrade Complete/m;
	for my $file (glob($to->data_dir . '/pg_upgrade_output.d/*/log/pg_upgrade_dump_*.log'))
	{
		my ($error) = slurp_file($file) =~ /^pg_restore: error: (.*)/m;
		$err .= "$error\n" if defined $error;
	}
	return "$out\n$err";
}

# Why pg_upgrade cannot even do a table without gpuds; '': it can
sub plain_failure
{
	my ($from, $to) = pair('plain');

	$from->start;
	$from->safe_psql('postgres', 'CREATE TABLE t (k bigint)');
	$from->stop;
	my ($error) = (split(/\n/, pg_upgrade($from, $to, '--copy')))[-1];
	return $error // '';
}

# Ends the server as a crash does, while sessions write
sub crash
{
	my ($node) = @_;
	my $bench = start_pgbench($node, '-c 2 -T 60', [ script_file('write' . $node->name, <<'END'), 1 ]);
INSERT INTO parts SELECT random() * 9999, i FROM generate_series(1, 10) i;
UPDATE types SET k_int4 = k_int4 - 1, b = b + 1 WHERE id = (random() * 3000)::int;
END

	$node->poll_query_until('postgres', 'SELECT count(*) > 4500 FROM parts') or die 'nobody writes';
	$node->stop('immediate');
	finish_pgbench($bench);
	return;
}

#
# A former gpuds, a crash, this gpuds
#

my $node = node_of('library', $old || $new);

$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION gpuds');
note('from ' . version($node) . ' on ' . $node->safe_psql('postgres', 'SELECT version()'));
make_tables($node, 'postgres');
$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON)');
change_tables($node, 'postgres', 3001);
my @indexes = index_names($node, 'postgres');
cmp_ok(scalar @indexes, '>', 30, 'there are indexes of all kinds');

SKIP:
{
	skip 'the former gpuds does not know this server', 1 unless $old;

	$node->safe_psql('postgres', 'CHECKPOINT');
	is(metapage_format(file_of($node, 'types_k_int8')), $ENV{GPUDS_OLD_FORMAT},
		'in the format that was expected');
	$node->safe_psql('postgres', "
		BEGIN; INSERT INTO types (id, k_int8) SELECT i, i FROM generate_series(900001, 900100) i;
		PREPARE TRANSACTION 'over the crash'");
	crash($node);

	switch($node, $new);
	$node->start;
	my $same_format = $ENV{GPUDS_OLD_FORMAT} == $node->safe_psql('postgres',
		"CREATE TABLE f (k int); CREATE INDEX f_k ON f USING gpu_btree (k); CHECKPOINT;
			SELECT get_byte(pg_read_binary_file(pg_relation_filepath('f_k'), 28, 1), 0); DROP TABLE f");
	if (!$same_format)
	{
		my $refused = 0;

		for my $index (@indexes)
		{
			my ($rc, $out, $err) = $node->psql('postgres', "SELECT gpuds_index_check('$index', true)");
			# The crash has emptied the unlogged index; it, too, is of the former format
			$refused++ if $rc != 0 && $err =~ /has format version $ENV{GPUDS_OLD_FORMAT}, but.*REINDEX/s;
		}
		is($refused, scalar @indexes, 'all indexes of the former format are refused');
		my ($rc, $out, $err) = $node->psql('postgres', 'INSERT INTO empty VALUES (1)');
		like($err, qr/has format version $ENV{GPUDS_OLD_FORMAT}, but/, 'and not written to');
		# REINDEX would wait for the prepared transaction
		$node->safe_psql('postgres', "COMMIT PREPARED 'over the crash'");
		$node->safe_psql('postgres', 'REINDEX DATABASE postgres');
		pass('REINDEX goes through');
	}
	else
	{
		# Before the update, and before the prepared transaction is known to have ended
		use_indexes($node, 'postgres', 'after recovery');
		$node->safe_psql('postgres', "COMMIT PREPARED 'over the crash'");
	}
	change_tables($node, 'postgres', 4001);

	SKIP:
	{
		skip 'the former SQL objects are not those of a version', 2 unless $ENV{GPUDS_OLD_OBJECTS};
		$node->safe_psql('postgres', 'ALTER EXTENSION gpuds UPDATE');
		$node->safe_psql('postgres', 'CREATE DATABASE fresh');
		$node->safe_psql('fresh', 'CREATE EXTENSION gpuds');
		is(version($node), $node->safe_psql('postgres', "
			SELECT default_version FROM pg_available_extensions WHERE name = 'gpuds'"),
			'ALTER EXTENSION UPDATE leads to this version');
		same_objects($node, 'and to the same objects as a new installation', 'postgres', 'fresh');
	}
	use_indexes($node, 'postgres', 'after the update');
	$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON)');
	change_tables($node, 'postgres', 5001);
	use_indexes($node, 'postgres', 'after VACUUM and changes');
	# What the former gpuds wrote, replayed once more, is what this one goes on from
	$node->stop('immediate');
	$node->start;
	use_indexes($node, 'postgres', 'after a second crash');
}

#
# pg_dump and restore
#

my $dump = $node->backup_dir . '/dump';
mkdir $node->backup_dir;
$node->command_ok([ 'pg_dump', '-Fc', '-f', $dump, 'postgres' ], 'pg_dump');
$node->safe_psql('postgres', 'CREATE DATABASE restored');
$node->command_ok([ 'pg_restore', '--exit-on-error', '-d', 'restored', $dump ], 'pg_restore');
is(join(' ', index_names($node, 'restored')), join(' ', @indexes), 'the indexes are there');
# A dump names no version of an extension
is($node->safe_psql('restored', "SELECT extversion FROM pg_extension WHERE extname = 'gpuds'"),
	$node->safe_psql('postgres', "SELECT default_version FROM pg_available_extensions WHERE name = 'gpuds'"),
	'and the extension, in this version');
SKIP:
{
	skip 'the former SQL objects are not those of a version', 1 if $old && !$ENV{GPUDS_OLD_OBJECTS};
	same_objects($node, 'with the same objects', 'restored', 'postgres');
}
is($node->safe_psql('restored', "SELECT reloptions FROM pg_class WHERE relname = 'types_multi'"),
	'{fillfactor=60}', 'and storage parameters');
use_indexes($node, 'restored', 'restored');
$node->stop;

#
# pg_upgrade
#

SKIP:
{
	skip 'no older server was named', 1 unless $other;
	skip 'the former SQL objects are not those of a version', 1 unless $ENV{GPUDS_OLD_OBJECTS};

	my $plain = plain_failure();
	skip "pg_upgrade fails for a table without gpuds, too: $plain", 1 if $plain;
	for my $mode ('--copy', '--link')
	{
		my ($from, $to) = pair($mode);

		$from->start;
		$from->safe_psql('postgres', 'CREATE EXTENSION gpuds');
		make_tables($from, 'postgres');
		$from->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON)');
		change_tables($from, 'postgres', 3001);
		note("pg_upgrade $mode from " . $from->safe_psql('postgres', 'SELECT version()'));
		$from->stop;
		is(pg_upgrade($from, $to, $mode), '', "pg_upgrade $mode");
		$to->start;
		is(join(' ', index_names($to, 'postgres')), join(' ', @indexes),
			"pg_upgrade $mode: the indexes are there");
		use_indexes($to, 'postgres', "pg_upgrade $mode");
		$to->safe_psql('postgres', 'ALTER EXTENSION gpuds UPDATE');
		$to->safe_psql('postgres', 'CREATE DATABASE fresh');
		$to->safe_psql('fresh', 'CREATE EXTENSION gpuds');
		same_objects($to, "pg_upgrade $mode: the SQL objects are whole", 'postgres', 'fresh');
		change_tables($to, 'postgres', 4001);
		$to->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON)');
		change_tables($to, 'postgres', 5001);
		$to->stop('immediate');
		$to->start;
		use_indexes($to, 'postgres', "pg_upgrade $mode, changes, a crash");
		$to->stop;
	}
}

done_testing();
