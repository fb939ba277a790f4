# test/sanitize.sh: the library under the address and undefined behaviour sanitizers,
# with GPUDS_TEST_SANITIZE=1.  Sourced after test/lib.sh, never run.
#
# gpuds.so and the emulated engine are built with both sanitizers.  The server is not:
# a script starts it with their libraries loaded first, because malloc's and longjmp's place
# must be taken before anybody calls them.  Each process writes what is found into a file of
# its own, and every report is a failure.
#
# An address error ends its process, for memory is wrong from then on.  Undefined behaviour
# does not, so that a run shows all that it finds.

# Parts, separated by blanks, that have a server to run so: those that begin it by
# start_tested
sanitize_parts='regress isolation differential structure soak histories regress_cuda isolation_cuda differential_cuda
	structure_cuda soak_cuda histories_cuda core'

# Frame pointers: the stack of a report is found by them
sanitize_flags='-fsanitize=address,undefined -fno-omit-frame-pointer -O1 -g'

# Says what cannot be done: nothing may seem to have run so that has not.
sanitize_refuse()
{
	local part

	[ -z "${GPUDS_TEST_VALGRIND-}" ] || die "GPUDS_TEST_SANITIZE and GPUDS_TEST_VALGRIND exclude each other"
	for part in "$@"; do
		[[ " ${sanitize_parts//[$'\t\n']/ } " = *" $part "* ]] || die "GPUDS_TEST_SANITIZE is for these parts only: $sanitize_parts"
	done
}

# needed_library LIBRARY NAME: the file of a library that another needs
needed_library()
{
	ldd "$1" | awk -v name="$2" 'index($1, name) == 1 {print $3}'
}

# use_sanitizers NAME: the next server to start is NAME, with the sanitizers.
#
#   detect_leaks                    the server frees by contexts, or by its end
#   detect_stack_use_after_return   puts locals into memory that the server's check of its
#                                   stack's depth takes for another stack
#   allocator_may_return_null       running out of memory is an error of the server's own
#   quarantine_size_mb              a server has a hundred processes
#   detect_odr_violation            the kernels are in gpuds.so and in the engine's library
use_sanitizers()
{
	local dir=$work/$1/sanitize library=$pg_root$("$pg_config" --pkglibdir)/gpuds.so

	as_user mkdir -p "$dir" "$work/reports"
	as_user gcc -Wall -Wextra -Werror -DREPORTS="\"$work/reports/report\"" -shared -fPIC -Wl,-z,initfirst \
		"$build/test/sanitizers/first.c" -o "$dir/first.so" || return 1
	program=$dir/postgres
	as_user tee "$program" >/dev/null <<-END
		#!/bin/sh
		export LD_PRELOAD='$(needed_library "$library" libasan) $dir/first.so $(needed_library "$library" libubsan)'
		export ASAN_OPTIONS="log_path='$work/reports/report':abort_on_error=1:detect_leaks=0:detect_stack_use_after_return=0:\\
		allocator_may_return_null=1:quarantine_size_mb=16:detect_odr_violation=0"
		exec '$bindir/postgres' "\$@"
	END
	as_user chmod +x "$program"
}

# Has the server NAME, which is running, both libraries, because gpuds.so needs them?
sanitizers_are_there()
{
	local maps

	maps=$(as_user cat "/proc/$(head -1 "$work/$1/data/postmaster.pid")/maps")
	[[ $maps = *libasan* && $maps = *libubsan* ]] || { echo "the server runs without the sanitizers"; return 1; }
}

# Shows what the servers of a part have reported, each place once, and forgets it.
sanitize_check()
{
	local reports=() report

	for report in "$work"/reports/*; do
		[ ! -s "$report" ] || reports+=("$report")
	done
	[ ${#reports[@]} -gt 0 ] || return 0
	awk '
		function done() {
			if (key != "" && !times[key]++) { shown[key] = text; order[++n] = key }
			key = text = ""
			lines = 0
		}
		FNR == 1 { done() }
		/: runtime error: / { done(); key = $1 }
		/^SUMMARY: AddressSanitizer/ { key = $0 }
		lines++ < 60 { text = text "\n" $0 }
		END {
			done()
			for (i = 1; i <= n; i++)
				print "sanitizers, " times[order[i]] " times:" shown[order[i]]
			if (!n) print "sanitizers: reports without an error"
		}' "${reports[@]}"
	rm -f "${reports[@]}"
	return 1
}

# planted FUNCTION TEXT: a function of test/sanitizers/planted.c must be reported with these
# words; without any, it must not be.  What it did may end the server, which comes back.
planted()
{
	local found

	as_user psql -XAtq -c "CREATE FUNCTION $1() RETURNS int LANGUAGE c AS '$work/sanitizers/planted'" -c "SELECT $1()" >/dev/null 2>&1
	until as_user psql -XAtqc 'SELECT 1' >/dev/null 2>&1; do sleep 0.1; done
	found=$(sanitize_check)
	# newer reports of undefined behaviour name the file, but not the function
	if [ -n "${2-}" ] && [[ $found = *"$2"* && ( $found = *"$1"* || $found = *planted.c* ) ]]; then return 0; fi
	if [ -z "${2-}${found}" ]; then return 0; fi
	echo "$1: expected \"${2:-no report}\", found: ${found:-no report}"
	return 1
}

# Planted faults are found, and errors that leave functions are none.
part_sanitizers()
{
	local passed=0 failed=0 pair

	start_tested sanitizers || return 1
	as_user gcc -std=gnu11 -shared -fPIC $sanitize_flags -I"$("$pg_config" --includedir-server)" \
		"$build/test/sanitizers/planted.c" -o "$work/sanitizers/planted.so" || return 1
	for pair in planted_stack:stack-buffer-overflow planted_global:global-buffer-overflow planted_block:heap-buffer-overflow \
		planted_freed:heap-use-after-free planted_index:'out of bounds' planted_overflow:'signed integer overflow' planted_nothing:; do
		if planted "${pair%%:*}" "${pair#*:}"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
	done
	stop_server sanitizers
	echo "$passed passed, $failed failed"
	[ $failed = 0 ]
}
