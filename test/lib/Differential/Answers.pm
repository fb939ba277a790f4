# Reads what psql answered to a script of Script.pm, and compares.

package Differential::Answers;

use strict;
use warnings;

# What is the same but reads differently: names of the twins, equal values of a type, places in the script
sub _normal
{
	my ($line) = @_;

	$line =~ s/^psql:[^ ]*?:\d+: //;
	$line =~ s/\bt[gb](_\w+)?\b/'t' . ($1 \/\/ '')/ge;
	$line =~ s/(^|\|)-0(?=$|\|)/${1}0/g;
	$line =~ s/(^|\|)(?:1 mon|720:00:00)(?=$|\|)/${1}30 days/g;
	$line =~ s/ at character \d+$//;
	$line =~ s/\b([cq]\d+)_(?:seq|btree|gpu)\b/$1/g;
	return $line;
}

# Errors that no statement may have, whatever its twin has
my $never = qr/(?:ERROR|PANIC|FATAL):\ .*(?:gpuds|corrupt|could\ not\ read|cache\ lookup\ failed|index_check)|
	server\ closed|lost/x;

# PostgreSQL can lose the file of a table in a transaction that rewrites it several times in subtransactions
# (15.20 does, without gpuds, too).  What a script says after a table without an index of ours has lost
# its file says nothing.
my $file_lost = qr/ERROR: .*could not open file "base\//;

# What a statement may say that may run into statement_timeout
my $timed_out =
  qr/canceling statement due to (?:statement timeout|user request)|current transaction is aborted/;

# Lines of psql's output, outside of blocks, with an error that is not harmless
sub _wrong_line
{
	my ($line, $harmless) = @_;
	return $line =~ /(ERROR|FATAL|PANIC): |server closed/ && $line !~ $harmless;
}

# The same for the output of a session whose answers nobody compares
sub errors
{
	my ($file, $harmless) = @_;

	open(my $fh, '<', $file) or return "cannot read $file";
	my @wrong = grep { _wrong_line($_, $harmless) } <$fh>;
	close $fh;
	return map { "beside: $_" } @wrong;
}

# A timeout just when a statement goes from being parsed to being run reads as a user's
# request.  Reads psql's output.  Returns a line for everything that is wrong, and the counts
# compared (answers), asked (queries that could use the index), planned (did), and cut: 1 if
# only what was before PostgreSQL lost a file was compared.
# Errors outside of blocks are wrong unless they look like $harmless.
sub compare
{
	my ($file, $harmless) = @_;
	my %counts = (compared => 0, asked => 0, planned => 0, cut => 0);
	my (%blocks, @order, $block, @wrong, $finished);

	open(my $fh, '<', $file) or return (["cannot read $file"], \%counts);
	while (my $line = <$fh>)
	{
		chomp $line;
		if ($line =~ /^@@ (\d+) (\w+) (\w+)$/)
		{
			$finished = 1 if $2 eq 'end';
			$block = { number => $1, variant => $2, mode => $3, lines => [] };
			push @order, $1 unless $blocks{$1};
			push @{ $blocks{$1} }, $block;
		}
		elsif ($line eq '@@')
		{
			undef $block;
		}
		elsif ($block && $block->{variant} ne 'gpu' && $line =~ $file_lost)
		{
			$counts{cut} = $finished = 1;
			@order = grep { $_ != $block->{number} } @order;
			last;
		}
		elsif ($block)
		{
			push @{ $block->{lines} }, _normal($line);
			push @wrong, "block $block->{number} $block->{variant}: $line"
			  if $line =~ $never || $block->{mode} eq 'timed' && _wrong_line($line, qr/$timed_out|$harmless/);
		}
		elsif (_wrong_line($line, $harmless))
		{
			push @wrong, $line;
		}
	}
	close $fh;
	push @wrong, 'the script did not come to its end' unless $finished;

	for my $number (@order)
	{
		my @answers = grep { $_->{mode} !~ /plan|timed/ } @{ $blocks{$number} };
		for my $plan (grep { $_->{mode} eq 'plan' } @{ $blocks{$number} })
		{
			my $text = join("\n", @{ $plan->{lines} });
			next if $text =~ /ERROR|One-Time Filter: false|never executed/;
			$counts{asked}++;
			$counts{planned}++ if $text =~ /\bt\w*_idx\b/;
		}
		my $reference = shift @answers // next;
		my $expected = _answer($reference);
		for my $answer (@answers)
		{
			$counts{compared}++;
			my $got = _answer($answer);
			next if $got eq $expected;
			# The first twin's error ended the transaction for both
			next if $expected =~ /^ERROR/m && $got eq 'aborted';
			push @wrong, "block $number: $answer->{variant} differs from $reference->{variant}: "
			  . _difference($expected, $got);
		}
	}
	return (\@wrong, \%counts);
}

sub _answer
{
	my ($block) = @_;
	my @lines = @{ $block->{lines} };

	return 'aborted' if grep { /ERROR:  current transaction is aborted/ } @lines;
	@lines = sort @lines if $block->{mode} eq 'set';
	return join("\n", @lines);
}

sub _difference
{
	my ($expected, $got) = @_;
	my @expected = split /\n/, $expected;
	my @got = split /\n/, $got;
	my $i = 0;

	$i++ while $i < @expected && $i < @got && $expected[$i] eq $got[$i];
	return sprintf('%d lines, expected %d; line %d is "%s", expected "%s"',
		scalar @got, scalar @expected, $i + 1, $got[$i] // '(none)', $expected[$i] // '(none)');
}

1;
