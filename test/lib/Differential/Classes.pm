# The classes of test/differential's scripts, and of which class a seed is.

package Differential::Classes;

use strict;
use warnings;

use Differential::Databases;
use Differential::Events;
use Differential::Memory;
use Differential::Partitions;
use Differential::Points;
use Differential::Replication;
use Differential::Script;
use Differential::Serializable;
use Differential::Temporary;
use Differential::Timeouts;
use Differential::Upserts;
use Differential::Utility;
use Differential::Wide;

my %package = (
	plain => 'Differential::Script',
	utility => 'Differential::Utility',
	events => 'Differential::Events',
	temporary => 'Differential::Temporary',
	timeouts => 'Differential::Timeouts',
	upserts => 'Differential::Upserts',
	partitions => 'Differential::Partitions',
	points => 'Differential::Points',
	databases => 'Differential::Databases',
	memory => 'Differential::Memory',
	replication => 'Differential::Replication',
	serializable => 'Differential::Serializable',
	wide => 'Differential::Wide');

# Every so many seeds one of these, in turn; all others are plain
my @cycle = qw(utility serializable events temporary utility replication upserts utility
  databases events wide temporary points timeouts utility serializable memory partitions);

sub names { return ('plain', sort grep { $_ ne 'plain' } keys %package); }

# script(name of a class or undef, argument of Differential::Script::new ...)
sub script
{
	my ($name, %args) = @_;

	$name //= $args{seed} % 2 ? 'plain' : $cycle[ $args{seed} / 2 % @cycle ];
	die "no class is called \"$name\", there are: " . join(', ', names()) . "\n" unless $package{$name};
	return $package{$name}->new(%args);
}

1;
