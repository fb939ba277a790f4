# The types of test/differential's keys: what a column of them holds.

package Differential::Types;

use strict;
use warnings;

use Exporter 'import';
use POSIX qw(strftime);

our @EXPORT = qw(%TYPES);

# What is known of a type: bits of a key column (at least), whether it can be a key only by its hash, whether
# its values vary in length, so that it cannot be included, the types that its operators take on the right, a
# function from integers to values, and values that are special.
my $INTEGERS = [qw(int2 int4 int8)];
my $FLOATS = [qw(float4 float8)];
my $DATES = [qw(date timestamp timestamptz)];
our %TYPES = (
	int2 => {
		name => 'smallint', bits => 16, others => $INTEGERS, minmax => 1, add => 1,
		low => -32768, high => 32767,
		value => sub { _wrap($_[0], 32768) },
		special => [ '-32768', '32767', '0', '-1' ] },
	int4 => {
		name => 'integer', bits => 32, others => $INTEGERS, minmax => 1, add => 1,
		value => sub { _wrap($_[0], 2147483648) },
		special => [ '-2147483648', '2147483647', '0', '-1', '65536' ] },
	int8 => {
		name => 'bigint', bits => 64, others => $INTEGERS, minmax => 1, add => 1,
		value => sub { $_[0] },
		special => [ '-9223372036854775808', '9223372036854775807', '0', '-1', '4294967296' ] },
	oid => {
		name => 'oid', bits => 32, minmax => 1, value => sub { $_[0] % 4294967296 },
		special => [ '0', '4294967295', '2147483648' ] },
	char => {
		name => '"char"', sql => '"char"', bits => 8, value => sub { chr(65 + $_[0] % 26) },
		special => ['z', '0'] },
	bool => {
		name => 'boolean', bits => 1, value => sub { $_[0] % 2 ? 'true' : 'false' }, special => ['true'] },
	float4 => {
		name => 'real', bits => 32, others => $FLOATS, minmax => 1, add => 1, value => sub { $_[0] / 4 },
		special => [ 'NaN', 'Infinity', '-Infinity', '-0', '0', '1e-30', '-3.4e38' ] },
	float8 => {
		name => 'double precision', bits => 64, others => $FLOATS, minmax => 1, add => 1,
		value => sub { $_[0] / 10 },
		special => [ 'NaN', 'Infinity', '-Infinity', '-0', '0', '1e-300', '-1.7e308' ] },
	date => {
		name => 'date', bits => 32, others => $DATES, minmax => 1,
		value => sub { strftime('%Y-%m-%d', gmtime(946684800 + 86400 * ($_[0] % 20000 - 5000))) },
		special => [ 'infinity', '-infinity', '4713-01-01 BC', '2000-01-01', '1999-12-31' ] },
	time => {
		name => 'time without time zone', bits => 64, minmax => 1,
		value => sub { sprintf('%02d:%02d:%02d.%d', $_[0] / 7 % 24, $_[0] % 60, $_[0] / 3 % 60, $_[0] % 10) },
		special => [ '00:00:00', '24:00:00', '23:59:59.999999' ] },
	timetz => {
		name => 'time with time zone', bits => 96, minmax => 1,
		value => sub { sprintf('%02d:%02d:00%+03d', $_[0] / 60 % 24, $_[0] % 60, $_[0] % 7 - 3) },
		special => [ '00:00:00+00', '24:00:00-12', '12:00:00+05:30' ] },
	timestamp => {
		name => 'timestamp without time zone', bits => 64, others => $DATES, minmax => 1,
		value => sub { _hour($_[0]) . '.' . $_[0] % 7 },
		special => [
			'infinity', '-infinity', '4713-01-01 00:00:00 BC', '294276-12-31 23:59:59.999999',
			'2000-01-01' ] },
	timestamptz => {
		name => 'timestamp with time zone', bits => 64, others => $DATES, minmax => 1,
		value => sub { _hour($_[0]) . '+0' . $_[0] % 4 },
		special => [ 'infinity', '-infinity', '4713-02-01 00:00:00+00 BC', '2000-01-01 00:00:00+00' ] },
	interval => {
		name => 'interval', bits => 128, minmax => 1,
		value => sub { ($_[0] % 50) . ' days ' . ($_[0] % 13) . ' hours' },
		special => [ '1 month', '30 days', '720 hours', '-1 second', '0' ] },
	uuid => {
		name => 'uuid', bits => 128,
		value => sub { _uuid($_[0] & 0xffffffff) },
		special => [ '00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff' ] },
	macaddr => {
		name => 'macaddr', bits => 48,
		value => sub { _macaddr($_[0] & 0xffffff) },
		special => [ '00:00:00:00:00:00', 'ff:ff:ff:ff:ff:ff' ] },
	enum => {
		name => 'anyenum', sql => 'diff_enum', bits => 32, minmax => 1, value => sub { 'label' . $_[0] % 6 },
		special => ['label3'] },
	text => {
		name => 'text', bits => 32, varies => 1, minmax => 1,
		value => sub { ('/a/path/of/many/', '', '/a/path/of/m')[ $_[0] % 3 ] . $_[0] },
		special => [ '', 'a', '/a/path/of/many/', '/a/path/of/many/1', '/a/path/of/ma' ] },
	# without backslashes, a bytea is written as its bytes are
	bytea => {
		name => 'bytea', bits => 32, varies => 1,
		value => sub { ('bytes of a long', '', 'bytes of a lo')[ $_[0] % 3 ] . $_[0] },
		special => [ '', 'b', '\\000', '\\000\\000', 'bytes of a lo\\000', 'bytes of a lo\\377', '\\377' ] },
	numeric => {
		name => 'numeric', bits => 64, hashed => 1, varies => 1, minmax => 1, value => sub { $_[0] / 8 },
		special => [ 'NaN', 'Infinity', '-Infinity', '0', '1e50' ] },
	decimal => {
		name => 'numeric', sql => 'numeric(12,2)', bits => 64, others => [qw(decimal numeric)],
		minmax => 1, add => 1,
		value => sub { $_[0] % 40000000000 / 4 - 5000000000 },
		special => [ 'NaN', '9999999999.99', '-9999999999.99', '0', '0.01', '-0.01' ] },
	bpchar => {
		name => 'character', sql => 'char(20)', bits => 32, varies => 1,
		value => sub { ('c', 'character of c')[ $_[0] % 2 ] . $_[0] % 1000000 },
		special => [ 'c1', '', 'character of c' ] },);

sub _wrap
{
	my ($n, $half) = @_;
	return ($n + $half) % (2 * $half) - $half;
}

# An hour of some twenty years
sub _hour
{
	my ($n) = @_;
	return strftime('%Y-%m-%d %H:%M:%S', gmtime(946684800 + 3600 * ($n % 200000)));
}

sub _uuid
{
	my ($n) = @_;
	my @parts = (($n * 2654435761) & 0xffffffff, $n & 0xffff, $n & 0xfff, $n & 0xfff, $n);
	return sprintf('%08x-%04x-4%03x-8%03x-%012x', @parts);
}

sub _macaddr
{
	my ($n) = @_;
	return sprintf('08:00:%02x:%02x:%02x:%02x', $n & 0xff, $n >> 16 & 0xff, $n >> 8 & 0xff, $n & 0xff);
}

1;
