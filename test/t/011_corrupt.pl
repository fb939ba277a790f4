# Damaged pages give ERRCODE_INDEX_CORRUPTED with the block, never a crash, and
# REINDEX repairs the index.

use strict;
use warnings;

use GpudsTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('corrupt', damage => 1, conf => "restart_after_crash = off\n");
my $block_size = $node->safe_psql('postgres', 'SHOW block_size');

# The index has a base of several pages and, after it was built, stripes too
$node->safe_psql('postgres', <<'END');
CREATE TABLE t (k bigint, v int);
INSERT INTO t SELECT i, i FROM generate_series(1, 5000) i;
CREATE INDEX t_k ON t USING gpu_btree (k);
INSERT INTO t SELECT i, i FROM generate_series(5001, 6000) i;
END

sub damage
{
	my ($path, $block, $offset, $bytes) = @_;

	open(my $fh, '+<:raw', $path) or die "$path: $!";
	seek($fh, $block * $block_size + $offset, 0);
	print $fh $bytes;
	close($fh) or die "$path: $!";
	return;
}

sub bytes_at
{
	my ($path, $block, $offset, $n) = @_;
	my $bytes;

	open(my $fh, '<:raw', $path) or die "$path: $!";
	seek($fh, $block * $block_size + $offset, 0);
	read($fh, $bytes, $n);
	close $fh;
	return $bytes;
}

# Page header 24 bytes, metapage data behind it, opaque data in the last 32 bytes:
# first (8), generation (8), next (4), spare (2), kind (1), stripe (1), spare (6), page id (2)
my $special = $block_size - 32;

# The first stripe page: kind 3
sub stripe_block
{
	my ($path) = @_;

	for my $block (1 .. (-s $path) / $block_size - 1)
	{
		return $block if unpack('C', bytes_at($path, $block, $special + 22, 1)) == 3;
	}
	die 'no stripe page';
}

my @cases = (
	# name, block (or undef: a stripe's), offset, bytes, is it seen by scans
	[ 'magic of the metapage', 0, 24, "\xDE\xAD\xBE\xEF", 1 ],
	[ 'format version of the metapage', 0, 28, "\xFF\x7F", 1 ],
	[ 'structure of the metapage', 0, 30, "\x63", 1 ],
	[ 'key words of the metapage', 0, 31, "\x05", 1 ],
	[ 'base head of the metapage', 0, 48, "\xF0\xFF\xFF\x00", 1 ],
	[ 'page id of the metapage', 0, $special + 30, "\0\0", 1 ],
	[ 'page id of the base', 1, $special + 30, "\0\0", 1 ],
	[ 'kind of a base page', 1, $special + 22, "\x09", 1 ],
	[ 'lower end of a base page', 1, 12, "\x01\x00", 1 ],
	[ 'special space of a base page', 1, 16, "\x00\x10", 1 ],
	[ 'records of a base page that end in mid-record', 1, 12, "\x1F\x01", 1 ],
	[ 'link of a base page', 1, $special + 16, "\xF0\xFF\xFF\x00", 1 ],
	[ 'link of a base page to itself', 1, $special + 16, "\x01\0\0\0", 1 ],
	[ 'zeroed base page', 1, 0, "\0" x $block_size, 1 ],
	[ 'noise in a base page', 1, 0, join('', map { chr($_ * 37 % 251 + 1) } 1 .. $block_size), 1 ],
	[ 'order of the base', 1, 24 + 16 * 10, "\xFF" x 16, 0 ],
	[ 'page id of a stripe', undef, $special + 30, "\0\0", 1 ],
	[ 'stripe number of a stripe', undef, $special + 23, "\x09", 1 ],
	[ 'zeroed stripe page', undef, 0, "\0" x $block_size, 1 ],
	[ 'a TID of a stripe that no heap has', undef, 26, "\xFF\xFF\xFF\xFF\xFF\x7F", 0 ],
	[ 'flags of a record', undef, 24, "\xF0", 0 ]);

for my $case (@cases)
{
	my ($name, $block, $offset, $bytes, $scans) = @$case;
	# what core finds in a page's header when it reads the page
	my $core = $name =~ /special space|noise/;
	my $ours = $name =~ /format version/ ? qr/ERROR:  XX002: .*format version 32767/
	  : qr/ERROR:  XX002: .*block \d+/;
	my $path = file_of($node, 't_k');

	$node->stop;
	$block //= stripe_block($path);
	damage($path, $block, $offset, $bytes);
	$node->start;

	my $verbose = "\\set VERBOSITY verbose\nSET enable_seqscan = off; SET statement_timeout = '60s';\n";
	for my $statement (
		[ 'scan', 'SELECT count(*) FROM t WHERE k > 0' ],
		[ 'check', "SELECT gpuds_index_check('t_k', true)" ],
		[ 'INSERT', 'INSERT INTO t VALUES (7000, 1)' ],
		[ 'VACUUM', 'DELETE FROM t WHERE k = 50; VACUUM (INDEX_CLEANUP ON) t' ])
	{
		my ($what, $sql) = @$statement;
		my ($rc, $out, $err) = $node->psql('postgres', "$verbose$sql;");

		# What must be noticed, and by whom; an insert may go where the damage is not
		if ($what eq 'check' || ($what eq 'scan' && $scans))
		{
			like($err, $core ? qr/ERROR:  XX001: invalid page in block $block / : $ours,
				"$name: $what notices");
		}
		else
		{
			unlike($err, qr/ERROR:  (?!XX002|XX001: invalid page)/, "$name: $what works or notices");
		}
		is($node->safe_psql('postgres', 'SELECT 1'), '1', "$name: the server lives after $what")
		  or BAIL_OUT('server down');
	}

	my ($rc, $out, $err) = $node->psql('postgres', 'REINDEX INDEX t_k');
	is($rc, 0, "$name: REINDEX works") or diag($err);
	check_index($node, 't_k', "$name: and repairs it");
	is($node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM t WHERE k > 5999'),
		$node->safe_psql('postgres', scan_sql('SELECT count(*) FROM t WHERE k > 5999')),
		"$name: answers are right again");
	# stripes and base for the next one
	$node->safe_psql('postgres', '
		TRUNCATE t; INSERT INTO t SELECT i, i FROM generate_series(1, 5000) i; REINDEX INDEX t_k;
		INSERT INTO t SELECT i, i FROM generate_series(5001, 6000) i');
}

# Pages of stems, behind the metapage: kind 5.  The planner looks at them, and leaves the complaint to scans
$node->safe_psql('postgres', <<'END');
CREATE TABLE x (s text COLLATE "C", v int);
INSERT INTO x SELECT format('/usr/share/doc/package-%s/changelog.%s', i % 300, i), i
  FROM generate_series(1, 6000) i;
CREATE INDEX x_s ON x USING gpu_btree (s);
CREATE INDEX x_v ON x (v);
ANALYZE x;
END
for my $case (
	[ 'kind of a page of stems', 1, $special + 22, "\x02" ],
	[ 'zeroed page of stems', 1, 0, "\0" x $block_size ],
	[ 'lower end of a page of stems', 1, 12, "\x1E\x00" ],
	[ 'column of stems', 1, 24, "\x03\x00" ],
	[ 'bits of stems', 1, 26, "\x0F\x00" ],
	[ 'number of stems', 1, 28, "\xFF\xFF\xFF\xFF" ],
	[ 'bytes of stems', 1, 32, "\xFF\xFF\x01\x00" ],
	[ 'children of the root of stems', 1, 38, "\x00\x00" ],
	[ 'length of a stem', 1, 40, "\xFF\xFF" ],
	[ 'number of pages of stems', 0, 24 + 586, "\xFF\x03" ])
{
	my ($name, $block, $offset, $bytes) = @$case;
	my $path = file_of($node, 'x_s');

	$node->stop;
	is(unpack('C', bytes_at($path, 1, $special + 22, 1)), 5, "$name: there is a page of stems");
	damage($path, $block, $offset, $bytes);
	$node->start;
	for my $sql ("SELECT count(*) FROM x WHERE s > '/usr/share/doc/package-2'",
		'SELECT s FROM x ORDER BY s LIMIT 3',
		"SELECT gpuds_index_check('x_s', true)", "INSERT INTO x VALUES ('/usr/share/doc', 0)")
	{
		my ($rc, $out, $err) = $node->psql('postgres',
			"\\set VERBOSITY verbose\nSET enable_seqscan = off; SET enable_sort = off; $sql");
		like($err, qr/ERROR:  XX002: index "x_s" is corrupted/, "$name: noticed by $sql");
	}
	is($node->safe_psql('postgres', "SELECT count(*) FROM x WHERE v = 7 AND s > '/usr/share/doc'"), '1',
		"$name: other plans work");
	$node->safe_psql('postgres', 'REINDEX INDEX x_s');
	check_index($node, 'x_s', "$name: and repaired");
}

# A file cut short, as by a lost write of its length
my $path = file_of($node, 't_k');
$node->stop;
truncate($path, 2 * $block_size);
$node->start;
my ($rc, $out, $err) = $node->psql('postgres', "
	\\set VERBOSITY verbose
	SET enable_seqscan = off; SELECT count(*) FROM t WHERE k > 0");
like($err, qr/ERROR:  XX00[12]/, 'a file cut short is noticed');
$node->safe_psql('postgres', 'REINDEX INDEX t_k');
check_index($node, 't_k', 'and repaired');
$node->stop;

done_testing();
