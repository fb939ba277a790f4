# Random choices of test/differential's scripts.

package Differential::Random;

use strict;
use warnings;

use Exporter 'import';

our @EXPORT = qw(_int _one _chance _weighted);

sub _int { my ($low, $high) = @_; return $low + int(rand($high - $low + 1)); }
sub _one { return $_[ int(rand(@_)) ]; }
sub _chance { return rand() < $_[0]; }

# An element of a list of pairs weight, value
sub _weighted
{
	my @pairs = @_;
	my $sum = 0;
	my $at;

	$sum += $pairs[ 2 * $_ ] for 0 .. @pairs / 2 - 1;
	$at = rand($sum);
	while (@pairs > 2)
	{
		return $pairs[1] if $at < $pairs[0];
		$at -= $pairs[0];
		splice(@pairs, 0, 2);
	}
	return $pairs[1];
}

1;
