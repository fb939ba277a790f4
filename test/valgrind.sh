# test/valgrind.sh: servers under valgrind's memcheck, with GPUDS_TEST_VALGRIND=1.
# Sourced after test/lib.sh, never run.
#
# Every process of a server writes what memcheck finds into a log of its own.  All
# that valgrind.supp does not name is a failure.  valgrind takes more options from
# VALGRIND_OPTS, for instance --track-origins=yes.

# Parts, separated by blanks, whose server may run so
valgrind_parts=regress

# What an error begins and ends with in a log
valgrind_begin=memcheck-error-begins
valgrind_end=memcheck-error-ends

# Says what cannot be done: nothing may seem to have run under valgrind that has not.
valgrind_refuse()
{
	local part

	command -v valgrind >/dev/null || die "GPUDS_TEST_VALGRIND: valgrind is not installed"
	for part in "$@"; do
		[[ " $valgrind_parts " = *" $part "* ]] || die "GPUDS_TEST_VALGRIND is for this part only: $valgrind_parts"
	done
}

# use_valgrind NAME: the next server to start is NAME, under valgrind.  Stacks are long
# because planner and executor are between a hook and what it leads to.
use_valgrind()
{
	local dir=$work/$1/valgrind

	as_user mkdir -p "$dir/logs"
	program=$dir/postgres
	as_user tee "$program" >/dev/null <<-END
		#!/bin/sh
		exec valgrind --quiet --error-limit=no --num-callers=40 --fullpath-after='$build/' \\
			--error-markers=$valgrind_begin,$valgrind_end --suppressions='$build/test/valgrind.supp' \\
			--log-file='$dir/logs/%p' '$bindir/postgres' "\$@"
	END
	as_user chmod +x "$program"
}

# valgrind_check NAME: shows the errors in the logs of a server that has ended, each
# stack once, those with a frame of gpuds first.
valgrind_check()
{
	local logs=("$work/$1"/valgrind/logs/*)

	# The postmaster, what it starts at once, and a session
	[ ${#logs[@]} -ge 5 ] || { echo "valgrind wrote ${#logs[@]} logs: the server has not run under it"; return 1; }
	awk -v begin=$valgrind_begin -v end=$valgrind_end '
		{ sub(/^==[0-9]+==/, "") }
		index($0, begin) { inside = 1; text = key = ""; ours = 0; next }
		index($0, end) {
			inside = 0
			if (!times[key]++) { shown[key] = text; own[key] = ours; order[++n] = key }
			next
		}
		inside {
			text = text "\n" $0
			if (/\((src|kernels)\// || /gpuds\.so\)/) ours = 1
			gsub(/0x[0-9A-F]+/, "")
			key = key $0
			next
		}
		NF { stray = stray "\n" $0 }
		function show(which, title,  i) {
			for (i = 1; i <= n; i++)
				if (own[order[i]] == which)
					print title ", " times[order[i]] " times:" shown[order[i]]
		}
		END {
			show(1, "valgrind, in gpuds")
			show(0, "valgrind, not in gpuds")
			if (stray) print "valgrind says:" stray
			exit n || stray != ""
		}' "${logs[@]}"
}
