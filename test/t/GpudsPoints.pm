# Injection points (src/injection.c) in TAP tests: what holds sessions at them, and sees that they are held.

package GpudsPoints;

use strict;
use warnings;

use Exporter 'import';
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(injection_points gate close_points open_points held_at nobody_held waits_for let_go);

# In the order of src/injection.c, which numbers them from 1
my @points = qw(
  insert-buffered-flush bulk-delete-tombstoned bulk-delete-done compact-sealed compact-written
  compact-switched catch-up-read load-base-read scan-probed scan-before-probe device-waiting
  check-entries-read journal-scan-stripes load-begun mirror-acquired compact-begun check-stripes-read
  memtable-attaching memtable-collected flush-apply flush-applied append-paged epoch-due
  page-states-looked unique-looked);
my %number = map { $points[$_] => $_ + 1 } 0 .. $#points;

# The number of a point
sub _number
{
	my ($point) = @_;
	return $number{$point} // die "no point is called $point";
}

# Calls of a function of SQL for the locks of points, whose names have spaces between
sub _of_each
{
	my ($function, $points) = @_;
	return join(', ', map { "$function(7160, " . _number($_) . ')' } split(/ /, $points));
}

# Takes a node; returns whether the library was built with INJECTION_POINTS=1.
sub injection_points
{
	my ($node) = @_;
	return $node->safe_psql('postgres',
		"LOAD 'gpuds'; SELECT count(*) FROM pg_settings WHERE name = 'gpuds.wait_at'") eq '1';
}

# Takes a node, points, and a database if it is not postgres; returns a session that holds all who come to
# these points in that database, and are told to stop there, until it opens them or ends.
sub gate
{
	my ($node, $points, $database) = @_;
	my $gate = $node->background_psql($database // 'postgres');

	close_points($gate, $points);
	return $gate;
}

# Takes a gate's session and points, which it closes from here on.
sub close_points
{
	my ($gate, $points) = @_;

	$gate->query_safe('SELECT ' . _of_each('pg_advisory_lock', $points));
	return;
}

# Takes a gate's session and points that it has closed, and lets everybody go on who is held there.
sub open_points
{
	my ($gate, $points) = @_;

	$gate->query_safe('SELECT ' . _of_each('pg_advisory_unlock', $points));
	return;
}

# Takes a node, a point and a name; waits until somebody is held at the point.  One test, whose result is
# returned.
sub held_at
{
	my ($node, $point, $name) = @_;
	my $number = _number($point);

	return ok($node->poll_query_until('postgres', "
		SELECT count(*) > 0 FROM pg_locks
		WHERE locktype = 'advisory' AND classid = 7160 AND objid = $number AND NOT granted"),
		$name);
}

# Takes a node and a name; waits until nobody is held at any point.  One test, whose result is returned.
sub nobody_held
{
	my ($node, $name) = @_;

	return ok($node->poll_query_until('postgres', "
		SELECT count(*) = 0 FROM pg_locks WHERE locktype = 'advisory' AND classid = 7160 AND NOT granted"),
		$name);
}

# Takes a node, the PID of a backend and a type of wait events: 'Lock' at a point, 'Extension' where gpuds
# waits.  Returns whether the backend comes to wait for one.
sub waits_for
{
	my ($node, $pid, $type) = @_;
	return $node->poll_query_until('postgres',
		"SELECT wait_event_type = '$type' FROM pg_stat_activity WHERE pid = $pid");
}

# Takes a node and the PID of a backend; returns whether it ends, or waits for no lock any more.
sub let_go
{
	my ($node, $pid) = @_;
	return $node->poll_query_until('postgres',
		"SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $pid AND wait_event_type = 'Lock'");
}

1;
