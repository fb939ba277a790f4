# psql processes that scripts of test/differential talk to statement by statement,
# for what happens between sessions.

package Differential::Sessions;

use strict;
use warnings;

use IO::Select;
use IPC::Open2;

# new(command of psql as a list): connected, with what it prints on both of its outputs
sub new
{
	my ($class, @psql) = @_;
	my $self = bless { number => 0, buffer => '', pending => 0 }, $class;

	$self->{pid} = open2($self->{from}, $self->{to}, 'sh', '-c', 'exec "$@" 2>&1', 'psql', @psql);
	$self->{to}->autoflush(1);
	$self->{select} = IO::Select->new($self->{from});
	$self->{backend} = $self->query('SELECT pg_backend_pid();');
	return $self;
}

# Sends statements; the answer is fetched by answer()
sub send
{
	my ($self, $sql) = @_;

	die "a session is asked while it works\n" if $self->{pending};
	$self->{pending} = ++$self->{number};
	print { $self->{to} } "$sql\n\\echo ## $self->{number}\n" or die "psql has ended\n";
	return;
}

# What was printed, if the statements are through within so many seconds; else undef
sub answer
{
	my ($self, $seconds) = @_;
	my $end = "## $self->{pending}\n";
	my $at;

	while (($at = index($self->{buffer}, $end)) < 0)
	{
		return undef unless $self->{select}->can_read($seconds);
		sysread($self->{from}, $self->{buffer}, 65536, length $self->{buffer})
		  or die "psql has ended: $self->{buffer}\n";
	}
	my $answer = substr($self->{buffer}, 0, $at);

	$self->{buffer} = '';
	$self->{pending} = 0;
	chomp $answer;
	return $answer;
}

sub pending { my ($self) = @_; return $self->{pending} != 0; }
sub backend { my ($self) = @_; return $self->{backend}; }

sub query
{
	my ($self, $sql) = @_;

	$self->send($sql);
	return $self->answer(undef);
}

sub DESTROY
{
	my ($self) = @_;
	local ($?, $!);

	close $self->{to};
	close $self->{from};
	kill 'TERM', $self->{pid};
	waitpid($self->{pid}, 0);
	return;
}

1;
