# What the tests of upgrades share: the objects of the extension as text, and tables that have an
# index of each kind.

package GpudsUpgrade;

use strict;
use warnings;

use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(extension_objects same_objects metapage_format set_metapage_format
  make_tables change_tables index_names use_indexes);

# Everything that the extension has in a database, one object a line, all of its properties with it.
sub extension_objects
{
	my ($node, $database) = @_;

	return $node->safe_psql($database, <<'END');
WITH member AS (
	SELECT d.classid, d.objid FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
	 WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND e.extname = 'gpuds'),
privilege AS (
	SELECT classoid, objoid, initprivs::text AS initial FROM pg_init_privs WHERE objsubid = 0)
SELECT replace(line, E'\n', ' ') FROM (
SELECT 'object ' || pg_describe_object(classid, objid, 0) ||
	' comment ' || coalesce(obj_description(objid, classid::regclass::text::name), '-') AS line
  FROM member
UNION ALL
SELECT 'function ' || pg_get_functiondef(p.oid) || ' symbol ' || prosrc || ' rows ' || prorows ||
	' leakproof ' || proleakproof ||
	' privileges ' || coalesce(proacl::text, '-') || ' initially ' || coalesce(i.initial, '-')
  FROM member JOIN pg_proc p ON p.oid = objid
	LEFT JOIN privilege i ON i.classoid = classid AND i.objoid = objid
 WHERE classid = 'pg_proc'::regclass
UNION ALL
SELECT 'relation ' || relname || ' kind ' || relkind::text ||
	' options ' || coalesce(reloptions::text, '-') || ' columns ' ||
	(SELECT string_agg(
			attname || ' ' || format_type(atttypid, atttypmod) || coalesce(' ' || attacl::text, ''),
			', ' ORDER BY attnum)
	   FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0) ||
	' is ' || coalesce(pg_get_viewdef(c.oid), '-') || ' privileges ' || coalesce(relacl::text, '-') ||
	' initially ' || coalesce(i.initial, '-')
  FROM member JOIN pg_class c ON c.oid = objid
	LEFT JOIN privilege i ON i.classoid = classid AND i.objoid = objid
 WHERE classid = 'pg_class'::regclass
UNION ALL
SELECT 'access method ' || amname || ' type ' || amtype::text || ' handler ' || amhandler
  FROM member JOIN pg_am a ON a.oid = objid WHERE classid = 'pg_am'::regclass
UNION ALL
SELECT format('class %s of %s family %s type %s default %s key %s', opcname, amname, opfname,
	opcintype::regtype, opcdefault, opckeytype::regtype)
  FROM member JOIN pg_opclass c ON c.oid = objid JOIN pg_opfamily f ON f.oid = opcfamily
	JOIN pg_am a ON a.oid = opcmethod
 WHERE classid = 'pg_opclass'::regclass
UNION ALL
SELECT format('operator of %s family %s %s for %s, %s is %s, purpose %s, sorts by %s, depends %s',
	amname, opfname, amopstrategy,
	amoplefttype::regtype, amoprighttype::regtype, amopopr::regoperator, amoppurpose, amopsortfamily,
	(SELECT string_agg(pg_describe_object(refclassid, refobjid, 0) || ' ' || deptype::text, ', '
			ORDER BY pg_describe_object(refclassid, refobjid, 0))
	   FROM pg_depend d WHERE d.classid = 'pg_amop'::regclass AND d.objid = o.oid))
  FROM member JOIN pg_amop o ON o.amopfamily = objid JOIN pg_opfamily f ON f.oid = objid
	JOIN pg_am a ON a.oid = opfmethod
 WHERE classid = 'pg_opfamily'::regclass
UNION ALL
SELECT format('support of %s family %s %s for %s, %s is %s', amname, opfname, amprocnum,
	amproclefttype::regtype, amprocrighttype::regtype, amproc::regprocedure)
  FROM member JOIN pg_amproc s ON s.amprocfamily = objid JOIN pg_opfamily f ON f.oid = objid
	JOIN pg_am a ON a.oid = opfmethod
 WHERE classid = 'pg_opfamily'::regclass
UNION ALL
SELECT format('extension version %s schema %s relocatable %s tables %s', extversion,
	extnamespace::regnamespace, extrelocatable, extconfig)
  FROM pg_extension WHERE extname = 'gpuds') lines
ORDER BY 1
END
}

# Two databases have the same objects.  One test.
sub same_objects
{
	my ($node, $name, $is, $should_be) = @_;
	my %is = map { $_ => 1 } split /\n/, extension_objects($node, $is);
	my %should_be = map { $_ => 1 } split /\n/, extension_objects($node, $should_be);
	my @wrong = ((map { "has: $_" } grep { !$should_be{$_} } sort keys %is),
		(map { "lacks: $_" } grep { !$is{$_} } sort keys %should_be));

	# More objects than a query that finds nothing shows
	ok(@wrong == 0 && keys %is > 100, $name) or diag(join("\n", scalar(keys %is) . ' objects', @wrong));
	return;
}

# The page header has 24 bytes; then there are the magic number (4) and the format's number (2).
# pd_lower, which says where the page's data end, is at byte 12.
sub metapage_format
{
	my ($path) = @_;
	my $bytes;

	open(my $fh, '<:raw', $path) or die "$path: $!";
	seek($fh, 28, 0);
	read($fh, $bytes, 2) == 2 or die "$path: $!";
	close $fh;
	return unpack('S', $bytes);
}

# Makes an index file of a stopped server one of another format; lower: where its metapage's data end
sub set_metapage_format
{
	my ($path, $format, $lower) = @_;

	open(my $fh, '+<:raw', $path) or die "$path: $!";
	seek($fh, 28, 0);
	print $fh pack('S', $format);
	if (defined $lower)
	{
		seek($fh, 12, 0);
		print $fh pack('S', $lower);
	}
	close($fh) or die "$path: $!";
	return;
}

# The columns of the table of types, and what they hold in row i.
my @COLUMNS = (
	[ 'k_int2', 'int2', '(i * 37 % 60000 - 30000)' ],
	[ 'k_int4', 'int4', '(i - 2000) * 400001' ],
	[ 'k_int8', 'int8', '(i - 2000) * 1000000000000001' ],
	[ 'k_oid', 'oid', 'i::bigint * 429000' ],
	[ 'k_char', '"char"', 'chr(i % 90 + 33)' ],
	[ 'k_bool', 'bool', 'i % 200 = 0' ],
	[ 'k_float4', 'float4',
		"CASE i % 40 WHEN 0 THEN '-0'::float8 WHEN 1 THEN 'NaN' WHEN 2 THEN '-Infinity' ELSE i / 7.0 END" ],
	[ 'k_float8', 'float8',
		"CASE i % 40 WHEN 0 THEN '-0'::float8 WHEN 1 THEN 'NaN' WHEN 2 THEN 'Infinity' ELSE i / -7.0 END" ],
	[ 'k_date', 'date', "date '2000-01-01' + (i - 2000) * 77" ],
	[ 'k_time', 'time', "time '00:00' + i * interval '8 s'" ],
	[ 'k_timetz', 'timetz', "timetz '00:00+03' + i * interval '8 s'" ],
	[ 'k_timestamp', 'timestamp', "timestamp '2000-01-01' + (i - 2000) * interval '7 days 1 us'" ],
	[ 'k_timestamptz', 'timestamptz', "timestamptz '2000-01-01+00' + (i - 2000) * interval '7 days 1 us'" ],
	[ 'k_interval', 'interval', "(i - 2000) * interval '1 day 3 hours'" ],
	[ 'k_uuid', 'uuid', 'md5(i::text)' ],
	[ 'k_macaddr', 'macaddr', 'substr(md5(i::text), 1, 12)' ],
	[ 'k_macaddr8', 'macaddr8', 'substr(md5(i::text), 1, 16)' ],
	[ 'k_money', 'money', '((i - 2000) * 1234567.89)::numeric' ],
	[ 'k_pg_lsn', 'pg_lsn', "(i::numeric * 429000000 + '0/0'::pg_lsn)" ],
	[ 'k_xid8', 'xid8', 'i' ],
	[ 'k_enum', 'mood', "('{sad,ok,happy,angry}'::mood[])[i % 4 + 1]" ],
	[ 'k_domain', 'positive', 'i' ],
	[ 'a', 'int4', 'i % 30' ],
	[ 'b', 'int8', 'i * 7919 % 1000' ],
	[ 'c', 'int2', 'i % 100' ],
	[ 'd', 'timestamptz', "timestamptz '2020-01-01+00' + i * interval '1 hour'" ],
	[ 'e', 'int4', 'i % 2000' ],
	[ 'f', 'int8', 'i * 31 % 5000' ]);

# An INSERT of rows from..to; every eleventh value of a column is NULL
sub insert_sql
{
	my ($from, $to) = @_;
	my @values;

	for my $n (0 .. $#COLUMNS)
	{
		my ($name, $type, $value) = @{ $COLUMNS[$n] };
		push @values, "CASE WHEN (i + $n) % 11 = 0 THEN NULL ELSE ($value)::text::$type END";
	}
	return "INSERT INTO types SELECT i, " . join(', ', @values) . " FROM generate_series($from, $to) i;\n";
}

# Tables with an index of each type of keys, of each kind of index, and of each kind of table
sub make_tables
{
	my ($node, $database) = @_;
	my $sql = "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');\nALTER TYPE mood ADD VALUE 'angry';\n"
	  . "CREATE DOMAIN positive AS int CHECK (value > 0);\n"
	  . 'CREATE TABLE types (id int, ' . join(', ', map { "$_->[0] $_->[1]" } @COLUMNS) . ");\n";

	$node->safe_psql($database, $sql);
	my $can_include = $node->safe_psql($database,
		"SELECT pg_indexam_has_property(oid, 'can_include') FROM pg_am WHERE amname = 'gpu_btree'");
	my $include = $can_include eq 't' ? 'INCLUDE (c)' : '';
	$sql = insert_sql(1, 3000);
	for my $column (@COLUMNS)
	{
		$sql .= "CREATE INDEX types_$column->[0] ON types USING gpu_btree ($column->[0]);\n"
		  if $column->[0] =~ /^k_/;
	}
	$sql .= <<"END";
CREATE INDEX types_multi ON types USING gpu_btree (a DESC NULLS LAST, b) WITH (fillfactor = 60);
CREATE INDEX types_partial ON types USING gpu_btree (c) WHERE id % 2 = 0;
CREATE INDEX types_include ON types USING gpu_btree (d) $include;
CREATE INDEX types_expression ON types USING gpu_btree ((e % 1000 + 1));
CREATE INDEX types_two_words ON types USING gpu_btree (f, b);

CREATE TABLE parts (k int8, v int) PARTITION BY RANGE (k);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (5000);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (5000) TO (100000);
CREATE INDEX parts_k ON parts USING gpu_btree (k);
INSERT INTO parts SELECT i * 7919 % 10000, i FROM generate_series(1, 4000) i;

CREATE UNLOGGED TABLE fleeting (k int4, v int);
CREATE INDEX fleeting_k ON fleeting USING gpu_btree (k);
INSERT INTO fleeting SELECT i, i FROM generate_series(1, 1000) i;

CREATE TABLE excluded (k int4, v int, EXCLUDE USING gpu_btree (k WITH =));
INSERT INTO excluded SELECT i, i FROM generate_series(1, 1000) i;

CREATE TABLE empty (k int8);
CREATE INDEX empty_k ON empty USING gpu_btree (k);
END
	$node->safe_psql($database, $sql);
	return;
}

# Changes that reach base and stripes: rows numbered from..from + 999 come, others go
sub change_tables
{
	my ($node, $database, $from) = @_;

	$node->safe_psql($database, insert_sql($from, $from + 999) . <<"END");
DELETE FROM types WHERE id % 13 = $from % 13;
UPDATE types SET k_int8 = k_int8 + 1, k_date = k_date + 1, c = c + 1 WHERE id % 17 = $from % 17;
BEGIN;
INSERT INTO types SELECT * FROM types WHERE id % 5 = 0;
ROLLBACK;
INSERT INTO parts SELECT i * 31 % 10000, i FROM generate_series($from, $from + 999) i;
INSERT INTO fleeting SELECT i, i FROM generate_series($from, $from + 99) i;
INSERT INTO excluded SELECT i, i FROM generate_series(100000 + $from, 100000 + $from + 99) i
	ON CONFLICT DO NOTHING;
END
	return;
}

# All indexes of gpuds in a database that have files
sub index_names
{
	my ($node, $database) = @_;

	return split /\n/, $node->safe_psql($database, <<'END');
SELECT c.relname FROM pg_class c JOIN pg_am a ON a.oid = c.relam
 WHERE a.amname = 'gpu_btree' AND c.relkind = 'i' ORDER BY 1
END
}

# Settings that make plans use indexes, or not
sub _settings
{
	my ($indexes) = @_;
	my ($with, $without) = $indexes ? ('on', 'off') : ('off', 'on');

	my @by_index = qw(enable_indexscan enable_indexonlyscan enable_bitmapscan
	  gpuds.enable_aggregate gpuds.enable_scan);

	return ("SET enable_seqscan = $without", map { "SET $_ = $with" } @by_index);
}

# Each index is whole, is used, and answers as a sequential scan does: equality, sets, a range, NULLs
# and, as an index scan, order.  Two tests an index.
sub use_indexes
{
	my ($node, $database, $name) = @_;

	for my $index (index_names($node, $database))
	{
		my ($rc, $out, $err) = $node->psql($database, "SELECT gpuds_index_check('$index', true)");
		ok($rc == 0, "$name: $index is whole") or diag($err);

		my ($table, $column, $where) = split /\|/, $node->safe_psql($database, <<"END");
SELECT indrelid::regclass, pg_get_indexdef(indexrelid, 1, false),
	coalesce(pg_get_expr(indpred, indrelid), 'true')
  FROM pg_index WHERE indexrelid = '$index'::regclass
END
		$column = "($column)";
		my $some = sub { "SELECT $column FROM $table WHERE $column IS NOT NULL AND $where ORDER BY ctid" };
		my @conditions = (
			"$column = (" . $some->() . ' LIMIT 1)',
			"$column = ANY (ARRAY(" . $some->() . ' LIMIT 300))',
			"$column > (" . $some->() . " LIMIT 1) AND $column <= (
				SELECT $column FROM $table WHERE $column IS NOT NULL AND $where ORDER BY 1 DESC LIMIT 1)",
			"$column IS NULL");
		my $rows = "FROM $table t WHERE $where AND";
		my @queries = map { ("SELECT count(*), sum(hashtext(r::text)) FROM (SELECT $column $rows $_) r",
				"SELECT count(*) $rows $_",
			"SELECT md5(string_agg(t::text, ' ' ORDER BY t::text)) $rows $_") } @conditions;
		push @queries, "
			SELECT md5(string_agg(k::text, ' '))
			FROM (SELECT $column AS k $rows $column IS NOT NULL ORDER BY $column) o";
		my %answers = map { $_ => $node->safe_psql($database, join(";\n", _settings($_), @queries)) } (0, 1);
		my @wrong = $answers{0} eq $answers{1} ? () : ("sequential scans: $answers{0}", "index: $answers{1}");

		for my $query (@queries)
		{
			my $plan = $node->safe_psql($database, join(";\n", _settings(1), "EXPLAIN (COSTS OFF) $query"));
			push @wrong, "$query\n$plan" unless $plan =~ /\b$index\b/;
		}
		ok(!@wrong, "$name: $index is used and answers") or diag(join("\n", @wrong));
	}
	return;
}

1;
