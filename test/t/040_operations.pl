# What docs/OPERATIONS.md tells users to run to watch a server, and the queries for postgres_exporter: each
# runs as a role that may monitor the server and nothing else, and gives the columns that it should.

use strict;
use warnings;

use CPAN::Meta::YAML;
use File::Basename qw(dirname);
use GpudsTest;
use JSON::PP qw(decode_json);
use PostgreSQL::Test::Utils;
use Test::More;

my $root = dirname(__FILE__) . '/../..';
my $node = new_node('operations');

$node->safe_psql('postgres', <<'END');
CREATE ROLE watcher LOGIN;
GRANT pg_monitor TO watcher;
CREATE TABLE t (k bigint);
REVOKE ALL ON t FROM PUBLIC;
INSERT INTO t SELECT generate_series(1, 1000);
CREATE INDEX t_k ON t USING gpu_btree (k);
CREATE INDEX t_unused ON t USING gpu_btree (k);
SELECT gpuds_index_load('t_k');
SELECT gpuds_contains('t_k', '{1,2}'::bigint[]);
END

# The rows of a query as hashes, and the error if there is one
sub run_as_watcher
{
	my ($sql) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', "SELECT json_agg(q) FROM ($sql) q",
		extra_params => [ '-U', 'watcher' ]);

	return (undef, $err) if $rc != 0;
	return ($out eq '' ? [] : decode_json($out), '');
}

#
# postgres_exporter
#

my $queries = CPAN::Meta::YAML->read("$root/src/admin/postgres_exporter.yml")->[0];
my %expected = (gpuds_device => on_cuda() ? 2 : 1, gpuds_memtable => 1, gpuds_index => 2,
	gpuds_index_use => 2);

is(join(' ', sort keys %$queries), join(' ', sort keys %expected), 'these are the queries');
for my $name (sort keys %$queries)
{
	my ($rows, $error) = run_as_watcher($queries->{$name}{query});
	my %usage =
	  map { my ($column) = keys %$_; ($column => $_->{$column}{usage}) } @{ $queries->{$name}{metrics} };
	my @wrong;

	ok($rows, "$name runs") or diag($error);
	is(scalar @{ $rows // [] }, $expected{$name}, "$name has as many rows as there are");
	for my $row (@{ $rows // [] })
	{
		push @wrong, "columns @{[ sort keys %$row ]}"
		  if join(' ', sort keys %$row) ne join(' ', sort keys %usage);
		for my $column (sort keys %usage)
		{
			my $value = $row->{$column};
			my $right =
				!defined $value ? 0
			  : $usage{$column} eq 'LABEL' ? $value =~ /\S/
			  : $usage{$column} =~ /^(?:GAUGE|COUNTER)$/ && $value =~ /^\d+(?:\.\d+)?$/;

			push @wrong, "$column: " . ($value // 'null') unless $right;
		}
	}
	is("@wrong", '', "$name has a metric for each column, and a value for each metric");
	is(scalar(grep { !(values %$_)[0]{description} } @{ $queries->{$name}{metrics} }), 0,
		"$name describes them");
}

#
# The chapter on watching
#

my ($chapter) = slurp_file("$root/docs/OPERATIONS.md") =~ /^## Watching\n(.*?)^## /ms;
my @statements = $chapter =~ /((?:^    .*\n)+)/gm;

cmp_ok(scalar @statements, '>', 3, 'there are queries in the chapter on watching');
for my $statement (@statements)
{
	my ($rows, $error) = run_as_watcher($statement =~ s/;\s*\z//r);
	my ($first) = $statement =~ /^\s*(.*)/;

	is($error, '', "runs: $first");
	is(scalar @{ $rows // [] }, 0, "and nothing is to be done: $first");
	($rows) = run_as_watcher($statement =~ s/\bWHERE\b.*//sr);
	cmp_ok(scalar @{ $rows // [] }, '>', 0, "of what there is: $first");
}

# A server with too little memory and no background workers
$node->append_conf('postgresql.conf',
	"gpuds.host_memory = 8MB\ngpuds.device = cpu\nmax_worker_processes = 0\n");
$node->restart;
$node->safe_psql('postgres', <<'END');
SELECT gpuds_index_load('t_k'), gpuds_index_evict('t_k') FROM generate_series(1, 4);
CREATE TABLE large (k bigint);
INSERT INTO large SELECT generate_series(1, 500000);
CREATE INDEX large_k ON large USING gpu_btree (k);
SET client_min_messages = error;
SELECT gpuds_contains('large_k', '{1,2}'::bigint[]);
END
for my $case ([ qr/'no memory'/, 'large_k' ], [ qr/loads >/, 't_k' ], [ qr/fallbacks >/, 'large_k' ],
	[ qr/drainer_pid IS NULL/, undef ])
{
	my ($which, $index) = @$case;
	my ($statement) = grep { $_ =~ $which } @statements;
	my ($rows) = run_as_watcher($statement =~ s/;\s*\z//r);

	is(join(' ', map { $_->{indexrelname} // 'none' } @{ $rows // [] }), $index // 'none',
		"what is wrong is found: $which");
}
$node->stop;

done_testing();
