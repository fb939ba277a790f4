# The SQL objects of a former version and this library: they work, and ALTER EXTENSION UPDATE makes
# of them what CREATE EXTENSION makes.  Indexes of another format are refused and left alone, and
# REINDEX rebuilds them.  (test/upgrade has a former version's library, too.)

use strict;
use warnings;

use Digest::MD5;
use GpudsTest;
use GpudsUpgrade;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('upgrade', damage => 1, no_extension => 1);
my $block_size = $node->safe_psql('postgres', 'SHOW block_size');
my $version = $node->safe_psql('postgres', "
	SELECT default_version FROM pg_available_extensions WHERE name = 'gpuds'");

#
# SQL objects
#

# In a schema of its own: what a script does must not depend on where the extension is
for my $database ('fresh', 'former')
{
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, 'CREATE SCHEMA elsewhere; CREATE EXTENSION gpuds SCHEMA elsewhere'
		  . ($database eq 'former' ? " VERSION '0.1.0'" : ''));
	$node->safe_psql('postgres', "ALTER DATABASE $database SET search_path = public, elsewhere");
}
is($node->safe_psql('former', "SELECT extversion FROM pg_extension WHERE extname = 'gpuds'"), '0.1.0',
	'the former version can be installed');
device_ready($node, 'former') if on_cuda();

$node->safe_psql('former', <<'END');
CREATE TABLE t (k bigint, v int) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i * 7919 % 10007, i FROM generate_series(1, 5000) i;
CREATE INDEX t_k ON t USING gpu_btree (k) INCLUDE (v);
INSERT INTO t SELECT i, i FROM generate_series(10001, 11000) i;
CREATE VIEW of_a_user AS SELECT indexrelname, structure FROM gpuds_indexes;
CREATE OPERATOR CLASS of_a_user_ops FOR TYPE int8 USING gpu_btree AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >;
END
is($node->safe_psql('former', "
	SELECT gpuds_contains('t_k', '{7919,20000,11000}'::bigint[]), gpuds_count('t_k', 10501, NULL),
		(SELECT count(*) FROM gpuds_lookup('t_k', '{7919,10501}'::bigint[]))"),
	'{t,f,t}|500|2', 'its functions are served');
is($node->safe_psql('former', '
	SELECT (SELECT count(*) > 0 FROM gpuds_devices), (SELECT memory_total > 0 FROM gpuds_memtables),
		(SELECT count(*) FROM gpuds_indexes), (SELECT count(*) FROM gpuds_stat_indexes)'),
	't|t|1|1', 'and its views');
is($node->safe_psql('former', "SELECT gpuds_index_evict('t_k'), gpuds_index_load('t_k')"), 't|t',
	'and what administrates');

$node->safe_psql('former', 'ALTER EXTENSION gpuds UPDATE');
is($node->safe_psql('former', "SELECT extversion FROM pg_extension WHERE extname = 'gpuds'"), $version,
	"the update leads to $version");
same_objects($node, 'and to the same objects as a new installation', 'former', 'fresh');
is($node->safe_psql('former', 'SELECT * FROM of_a_user'), 't_k|B+tree', "users' views stay");
my $classes = "
	SELECT string_agg(opcname, ' ' ORDER BY opcname) FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod
	WHERE amname = 'gpu_skiplist'";
is($node->safe_psql('former', $classes), $node->safe_psql('fresh', $classes),
	"users' operator classes stay where they were made");
is($node->safe_psql('former', <<'END'), "t_s|skip list\n\n500", 'what is new works');
CREATE INDEX t_s ON t USING gpu_skiplist (k);
SELECT gpuds_index_load('t_s') \gset
SELECT * FROM of_a_user WHERE indexrelname = 't_s';
SELECT gpuds_index_check('t_s', true);
SELECT gpuds_count('t_s', 10501, NULL);
END
{
	my $dump = $node->data_dir . '/../former.sql';

	# a type that orders as pg_lsn, with functions of the same
	$node->safe_psql('former', <<'END');
CREATE TYPE cell;
CREATE FUNCTION cell_in(cstring) RETURNS cell LANGUAGE internal IMMUTABLE STRICT AS 'pg_lsn_in';
CREATE FUNCTION cell_out(cell) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'pg_lsn_out';
CREATE TYPE cell (INPUT = cell_in, OUTPUT = cell_out, LIKE = pg_lsn);
CREATE FUNCTION cell_cmp(cell, cell) RETURNS int LANGUAGE internal IMMUTABLE STRICT AS 'pg_lsn_cmp';
SELECT format('CREATE FUNCTION cell_%1$s(cell, cell) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS %2$L;
	CREATE OPERATOR %3$s (FUNCTION = cell_%1$s, LEFTARG = cell, RIGHTARG = cell)', f, 'pg_lsn_' || f, o)
FROM (VALUES ('lt', '<'), ('le', '<='), ('eq', '='), ('ge', '>='), ('gt', '>')) v (f, o) \gexec
CREATE OPERATOR CLASS cell_order DEFAULT FOR TYPE cell USING btree AS OPERATOR 1 <, OPERATOR 2 <=,
	OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 cell_cmp(cell, cell);
SELECT gpuds_accept_type('cell');
CREATE TABLE cells AS SELECT ('0/0'::pg_lsn + i)::text::cell AS c FROM generate_series(1, 100) i;
CREATE INDEX cells_c ON cells USING gpu_btree (c);
END
	$node->command_ok([ 'pg_dump', '-f', $dump, 'former' ], 'it is dumped');
	unlike(slurp_file($dump), qr/OPERATOR (?:CLASS|FAMILY) elsewhere\./,
		"without the extension's operator classes");
	$node->safe_psql('postgres', $_) for 'CREATE DATABASE restored',
	  'ALTER DATABASE restored SET search_path = public, elsewhere';
	$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', 'restored', '-f', $dump ],
		'and restored');
	same_objects($node, 'with the same objects', 'restored', 'fresh');
	is($node->safe_psql('restored', "
		SELECT elsewhere.gpuds_index_check(i, true) FROM unnest('{t_s,cells_c}'::regclass[]) i;
		SELECT amvalidate(oid), pg_describe_object('pg_opclass'::regclass, oid, 0) FROM pg_opclass
		WHERE opcname = 'cell_ops' ORDER BY 2;
		DROP EXTENSION gpuds CASCADE;
		SELECT count(*) FROM pg_opfamily f LEFT JOIN pg_am a ON a.oid = opfmethod
		WHERE a.oid IS NULL OR amname LIKE 'gpu%'"),
		"\n\nt|operator class cell_ops for access method gpu_avl\n"
		  . "t|operator class cell_ops for access method gpu_btree\n"
		  . "t|operator class cell_ops for access method gpu_skiplist\n0",
		'with types that were accepted, and DROP EXTENSION leaves nothing');
	$node->safe_psql('former', 'DROP INDEX t_s');
}
is($node->safe_psql('former', "
	SELECT gpuds_index_check('t_k', true); SET enable_seqscan = off;
	SELECT count(*), sum(v) FROM t WHERE k > 10000"),
	"\n" . $node->safe_psql('former', '
		SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off;
		SET gpuds.enable_aggregate = off; SET gpuds.enable_scan = off;
		SELECT count(*), sum(v) FROM t WHERE k > 10000'),
	'and so do indexes');

# Objects that are newer than the library: as many columns as there are, and one more
my @columns = map { "OUT c$_ bigint" } 1 .. 7;
my $state = "AS '\$libdir/gpuds', 'gpuds_memtable_state' LANGUAGE C";
my ($rc, $out, $err) = $node->psql('former',
	'CREATE FUNCTION newer(' . join(', ', @columns, 'OUT more bigint') . ") $state; SELECT * FROM newer()");
like($err, qr/ERROR:  function newer has 8 columns, but the library of gpuds has 7\n/,
	'a newer function is refused');
like($err, qr/older library.*\n.*restart the server/s, 'with what to do about it');
$node->safe_psql('former', 'CREATE FUNCTION older(' . join(', ', @columns[0 .. 2]) . ") $state");
is($node->safe_psql('former', 'SELECT c2 FROM older()'), $node->safe_psql('former',
		'SELECT memory_total FROM gpuds_memtables'), 'an older one gets the columns that it knows');

#
# Formats
#

sub digest
{
	my ($path) = @_;

	open(my $fh, '<:raw', $path) or die "$path: $!";
	return Digest::MD5->new->addfile($fh)->hexdigest;
}

$node->safe_psql('former', <<'END');
CREATE TABLE u (k int, v int) WITH (autovacuum_enabled = off);
INSERT INTO u SELECT i, i % 1000 FROM generate_series(1, 3000) i;
CREATE INDEX u_k ON u USING gpu_btree (k);
CREATE INDEX u_v ON u USING gpu_btree (v);
INSERT INTO u SELECT i, i % 1000 FROM generate_series(3001, 4000) i;
CHECKPOINT;
END
my $present = metapage_format(file_of($node, 'u_k', 'former'));

# The metapage of format 1 was shorter
for my $other ([ 1, 152, 'older' ], [ $present - 1, undef, 'older' ], [ $present + 1, undef, 'newer' ],
	[ $present + 1, 8000, 'newer' ])
{
	my ($format, $lower, $age) = @$other;
	my $path = file_of($node, 'u_k', 'former');
	my $name = "format $format, $age" . (defined $lower ? ", data end at $lower" : '');

	$node->stop;
	set_metapage_format($path, $format, $lower);
	my $before = digest($path);
	$node->start;
	device_ready($node, 'former') if on_cuda();

	my $only_k = 'SET enable_seqscan = off; SET client_min_messages = error; ';
	for my $statement (
		[ 'index scan', "$only_k SET gpuds.enable_scan = off; SELECT v FROM u WHERE k = 17" ],
		[ 'bitmap scan', "
			$only_k SET enable_indexscan = off; SET gpuds.enable_scan = off; SELECT v FROM u WHERE k < 17" ],
		[ 'index-only scan',
			"$only_k SET gpuds.enable_aggregate = off; SELECT count(k) FROM u WHERE k < 17" ],
		[ 'scan in a batch',
			"$only_k SELECT v FROM u WHERE k = ANY (ARRAY(SELECT generate_series(1, 1000)))" ],
		[ 'count', "$only_k SELECT count(*) FROM u WHERE k > 17" ],
		[ 'contains', "SELECT gpuds_contains('u_k', '{1,2}'::int[])" ],
		[ 'INSERT', 'INSERT INTO u VALUES (1, 1)' ],
		[ 'COPY', "COPY u FROM PROGRAM 'echo 1,1' (FORMAT csv)" ],
		[ 'VACUUM', 'DELETE FROM u WHERE v = 999; VACUUM (INDEX_CLEANUP ON) u' ],
		[ 'check', "SELECT gpuds_index_check('u_k', true)" ],
		[ 'load', "SELECT gpuds_index_load('u_k')" ])
	{
		my ($what, $sql) = @$statement;

		($rc, $out, $err) = $node->psql('former', "\\set VERBOSITY verbose\n$sql;");
		my $version = qr/format version $format, but this version of gpuds reads only $present/;

		like($err, qr/ERROR:  XX002: index "u_k" has $version\nDETAIL:  An? $age version/,
			"$name: $what says so");
		like($err, qr/HINT:  Please REINDEX it\./, "$name: $what says what to do");
	}
	is($node->safe_psql('former', "
		SELECT string_agg(indexrelname, ' ') FILTER (WHERE state = 'other format'), count(*)
		FROM gpuds_indexes WHERE relname = 'u'"),
		'u_k|2', "$name: the view shows which");
	is($node->safe_psql('former', 'SET enable_seqscan = off; SELECT count(*) FROM u WHERE v = 500'), '4',
		"$name: other indexes serve");

	$node->stop;
	is(digest($path), $before, "$name: the file is as it was");
	$node->start;
	device_ready($node, 'former') if on_cuda();
	$node->safe_psql('former',
		'REINDEX INDEX u_k; INSERT INTO u VALUES (5000, 999); VACUUM (INDEX_CLEANUP ON) u; CHECKPOINT');
	is(metapage_format(file_of($node, 'u_k', 'former')), $present, "$name: REINDEX mends it");
	is($node->safe_psql('former', "SELECT gpuds_index_check('u_k', true)"), '',
		"$name: and the index is whole");
	is($node->safe_psql('former', 'SET enable_seqscan = off; SELECT count(*) FROM u WHERE k > 3990'),
		$node->safe_psql('former', '
			SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off;
			SET gpuds.enable_aggregate = off; SET gpuds.enable_scan = off;
			SELECT count(*) FROM u WHERE k > 3990'),
		"$name: and answers are right");
}
$node->stop;

done_testing();
