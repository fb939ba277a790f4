# The classes of test/differential's scripts, and of which class a seed is.

package DifferentialClasses;

use strict;
use warnings;

use DifferentialDatabases;
use DifferentialEvents;
use DifferentialMemory;
use DifferentialPartitions;
use DifferentialReplication;
use DifferentialScript;
use DifferentialSerializable;
use DifferentialTemporary;
use DifferentialTimeouts;
use DifferentialUpserts;
use DifferentialUtility;
use DifferentialWide;

my %package = (
	plain => 'DifferentialScript',
	utility => 'DifferentialUtility',
	events => 'DifferentialEvents',
	temporary => 'DifferentialTemporary',
	timeouts => 'DifferentialTimeouts',
	upserts => 'DifferentialUpserts',
	partitions => 'DifferentialPartitions',
	databases => 'DifferentialDatabases',
	memory => 'DifferentialMemory',
	replication => 'DifferentialReplication',
	serializable => 'DifferentialSerializable',
	wide => 'DifferentialWide');

# Every so many seeds one of these, in turn; all others are plain
my @cycle = qw(utility serializable events temporary utility replication upserts utility
  databases events wide temporary timeouts utility serializable memory partitions);

sub names { return ('plain', sort grep { $_ ne 'plain' } keys %package); }

# script(name of a class or undef, argument of DifferentialScript::new ...)
sub script
{
	my ($name, %args) = @_;

	$name //= $args{seed} % 2 ? 'plain' : $cycle[ $args{seed} / 2 % @cycle ];
	die "no class is called \"$name\", there are: " . join(', ', names()) . "\n" unless $package{$name};
	return $package{$name}->new(%args);
}

1;
