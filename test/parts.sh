# test/parts.sh: the parts that test/run and test/gpu put together, and what only
# they need.  Sourced after test/lib.sh, never run.
#
# The parts named *_cuda run what the part of that name does with gpuds.device =
# cuda, on the installation that has the engine library.
#
# Globals beside those of test/lib.sh:
#   device    cpu, or cuda in the parts that say so
#   jobs      processors to keep busy
#   tests     where the tests are that run on a server; empty: $build
#   differential_args   arguments for test/differential
#   soak_args           arguments for test/soak.pl
#   histories_args      arguments for the program of test/histories

device=cpu
jobs=2
tests=
differential_args=()
soak_args=()
histories_args=()

# For the rest of this part: the installation with the engine library.
on_cuda()
{
	device=cuda
	use_root engine
}

# start_tested NAME [setting ...]: a server for a part, with the part's device.
start_tested()
{
	local name=$1 state='' tries=0 cards=("gpuds.device_ids = '0'")

	shift
	[ -z "${GPUDS_TEST_PARTS-}" ] || cards=("gpuds.device_ids = '$(seq -s, 0 $((GPUDS_TEST_PARTS - 1)))'"
		"gpuds.test_parts = $GPUDS_TEST_PARTS" 'max_worker_processes = 24')
	[ $device = cpu ] || set -- 'gpuds.device_memory = 1GB' "${cards[@]}" "$@"
	[ -z "${GPUDS_TEST_VALGRIND-}" ] || use_valgrind "$name"
	[ -z "${GPUDS_TEST_SANITIZE-}" ] || use_sanitizers "$name" || return 1
	start_server "$name" "gpuds.device = $device" "$@" || return 1
	[ -z "${GPUDS_TEST_SANITIZE-}" ] || sanitizers_are_there "$name" || return 1
	[ $device = cuda ] || return 0
	while [ "$state" != ready ]; do
		state=$(as_user env PGOPTIONS='-c client_min_messages=error' psql -XAtq -c 'CREATE EXTENSION IF NOT EXISTS gpuds' \
			-c "SELECT DISTINCT state FROM gpuds_devices WHERE kind = 'cuda'" 2>&1)
		[ $((tries += 1)) -lt 1200 ] || { echo "the device is not ready: $state"; tail -20 "$work/log/$name.server"; return 1; }
		sleep 0.1
	done
}

# TAP files that are about access methods of one version, or about one access method: no other takes its place.
of_their_own='039_upgrade'

# check_method PART...: whether these parts can have GPUDS_TEST_AM in gpu_btree's place.
check_method()
{
	local part

	case ${GPUDS_TEST_AM-} in
		'' | gpu_btree) unset GPUDS_TEST_AM ;;
		gpu_skiplist | gpu_avl) ;;
		gpu_hash)
			for part in "$@"; do
				[[ $part = differential* ]] || die "gpu_hash has no order: of the parts, only differential and differential_cuda are for it"
			done
			;;
		*) die "GPUDS_TEST_AM is \"$GPUDS_TEST_AM\", no access method of gpuds" ;;
	esac
}

# check_names: whether REGRESS and TESTS name files that there are: a part that runs nothing has not failed.
check_names()
{
	local name

	for name in ${REGRESS-}; do
		[ -e "$here/sql/$name.sql" ] || [ -e "$here/test/isolation/specs/$name.spec" ] ||
			die "REGRESS names \"$name\", which is no file of sql/ or of the specs"
	done
	for name in ${TESTS-}; do
		compgen -G "$here/test/t/${name}_*.pl" >/dev/null || die "TESTS names \"$name\", with which no file of test/t begins"
	done
}

# Puts GPUDS_TEST_AM in gpu_btree's place, for all parts that follow; the random scripts do that themselves.
replace_method()
{
	case ${GPUDS_TEST_AM-} in gpu_skiplist | gpu_avl) tests_over "$GPUDS_TEST_AM" ;; esac
}

# tests_over METHOD: from here on the tests that run on a server are copies of those in $build, with indexes of
# METHOD in the place of gpu_btree's.  Expected output stays, but where it names METHOD: test/plans gives gpu_btree its
# place back, by GPUDS_TEST_AM.
tests_over()
{
	export GPUDS_TEST_AM=$1
	tests=$work/over_$1
	[ ! -d "$tests" ] || return 0
	as_user mkdir -p "$tests"
	tar -C "$build" -cf - sql expected test src/admin docs/OPERATIONS.md | as_user tar -C "$tests" -xf -
	# One compares them, the other has what the planner is told by ranks, which they lack on CPUs
	as_user rm "$tests/sql/skiplist.sql" "$tests/sql/estimates.sql"
	# The memory that they give structures is for entries of 20 to 40 bytes
	[ "$1" != gpu_avl ] || as_user rm "$tests"/test/t/{014_device_memory,020_working_set,026_temporary,036_device_structure,047_outgrown}.pl
	(cd "$tests" || exit
	grep -rl gpu_btree sql test | grep -vE "/($of_their_own)\.pl$|/expected/" |
		as_user xargs perl -pi -e "s/gpu_btree(?!_handler)/$1/g"
	grep -rlw "$1" expected | as_user xargs -r perl -pi -e "s/\\b$1\\b/gpu_btree/g")
}

# A crash that the tests did not notice, or an assertion, is a failure too.
crash_check()
{
	if grep -E 'was terminated by signal|TRAP:|PANIC' "$work/log/$1.server"; then
		return 1
	fi
}

# Ends a part's server; an unnoticed crash, loss of the device or answer by another
# device is a failure.
end_tested()
{
	local name=$1 rc=0

	if [ $device = cuda ]; then
		as_user psql -XAtq -c "SELECT string_agg(DISTINCT state, ' ') FROM gpuds_devices WHERE kind = 'cuda'" 2>&1 |
			grep -qx ready ||
			{ echo "the device is not ready any more"; tail -20 "$work/log/$name.server"; rc=1; }
		if grep -E 'instead$|lost its CUDA device' "$work/log/$name.server"; then rc=1; fi
	fi
	crash_check "$name" || rc=1
	stop_server "$name"
	[ -z "${GPUDS_TEST_VALGRIND-}" ] || valgrind_check "$name" || rc=1
	return $rc
}

#
# pg_regress and the isolation tester
#

# Tells from pg_regress's output, in the form of 15 or in TAP, what passed.
count_regress()
{
	awk '/^not ok / || /\.\.\. FAILED/ {failed++; next}
		/^ok / || /\.\.\. ok/ {passed++}
		END {printf "%d passed, %d failed\n", passed, failed}' "$1"
}

# regress_with NAME PROGRAM DIR TEST ...
regress_with()
{
	local name=$1 program=$2 dir=$3 rc

	shift 3
	as_user mkdir -p "$work/$name/out"
	(cd "$work/$name" && as_user "$program" --launcher="$build/test/plans" --bindir="$bindir" --inputdir="$dir" --outputdir="$work/$name/out" \
		--dlpath="$pg_root$("$pg_config" --pkglibdir)" --host="$PGHOST" --port=5432 --user=postgres \
		--dbname="${name%_cuda}_test" "$@") >"$work/$name/output" 2>&1
	rc=$?
	cat "$work/$name/output"
	if [ $rc != 0 ]; then
		head -${GPUDS_TEST_DIFF_LINES:-400} "$work/$name/out/regression.diffs" 2>/dev/null
	fi
	count_regress "$work/$name/output"
	return $rc
}

# Tests of what an index that is divided does not do on GPUs, or of the memory that one takes
one_card_tests='device_groups device_join estimate_size'

# Names of the files of $1 with ending $2, as many as REGRESS lets through.  One that says "# Since PostgreSQL N."
# is left out where the server is older.
chosen()
{
	local file name since

	for file in "$1"/*."$2"; do
		[ -e "$file" ] || continue
		name=$(basename "$file" ".$2")
		[ -z "${REGRESS-}" ] || [[ " $REGRESS " = *" $name "* ]] || continue
		[ -z "${GPUDS_TEST_PARTS-}" ] || [[ " $one_card_tests " != *" $name "* ]] || continue
		since=$(sed -n 's/^# Since PostgreSQL \([0-9]*\)\.$/\1/p' "$file")
		[ "${since:-0}" -le "$version" ] || continue
		echo "$name"
	done
}

# Expected output shows plans and counts that depend on what VACUUM and ANALYZE have done when they are
# asked to.  So nobody else does it, no other process pins a page that VACUUM wants to clean, or has a
# snapshot that keeps rows: no autovacuum, no checkpoint or write by the background writer behind the
# test's back, no launcher that looks at catalogs.  The soak has all of them.
quiet=('autovacuum = off' 'checkpoint_timeout = 1h' 'max_wal_size = 4GB' 'bgwriter_lru_maxpages = 0' 'max_logical_replication_workers = 0')

regress_part()
{
	local name=$1 files rc

	mapfile -t files < <(chosen "${tests:-$build}/sql" sql)
	[ ${#files[@]} -gt 0 ] || { echo "0 passed, 0 failed"; return 0; }
	start_tested "$name" "${quiet[@]}" || return 1
	regress_with "$name" "$pgxs/test/regress/pg_regress" "${tests:-$build}" "${files[@]}"
	rc=$?
	end_tested "$name" || rc=1
	return $rc
}

part_regress()
{
	regress_part regress
}

# The output must be that of the CPU device, if the part regress has been run too.
part_regress_cuda()
{
	local rc

	on_cuda
	regress_part regress_cuda
	rc=$?
	if [ -d "$work/regress/out/results" ]; then
		diff -r "$work/regress/out/results" "$work/regress_cuda/out/results" || rc=1
	fi
	return $rc
}

# The same statements over another structure, the sorted array of test/structures, and with other access methods: those
# whose output does not show how large a structure is, or how it does its work.
structure_tests='arrays basics bitmap ddl dml ordering transactions vacuum'

# The number of the structure that new indexes of a method get in a database.
new_structure()
{
	as_user psql -XAtq -d "$2" -c 'CREATE TABLE structure_of (k int)' -c "CREATE INDEX structure_of_k ON structure_of USING $1 (k)" \
		-c CHECKPOINT -c "SELECT get_byte(pg_read_binary_file(pg_relation_filepath('structure_of_k'), 30, 1), 0)" 2>&1
}

# structure_part NAME METHOD STRUCTURE NUMBER SEED: over an access method, whose indexes get a structure of that
# number; STRUCTURE: its name, or "default"
structure_part()
{
	local name=$1 method=$2 setting="gpuds.test_structure = $3" without=() files number rc

	[ "$method" = gpu_btree ] || tests_over "$method"
	mapfile -t files < <(REGRESS=$structure_tests chosen "${tests:-$build}/sql" sql)
	start_tested "$name" "$setting" "${quiet[@]}" || return 1
	regress_with "$name" "$pgxs/test/regress/pg_regress" "${tests:-$build}" "${files[@]}"
	rc=$?
	number=$(new_structure "$method" "${name%_cuda}_test")
	[ "$number" = "$4" ] || { echo "indexes got the structure: $number"; rc=1; }
	end_tested "$name" || rc=1
	# one of the structures does without page states
	[ "$3" != array ] || without=('gpuds.visibility_memory = 0')
	differential_part "${name}_differential" "$setting" ${without[@]+"${without[@]}"} -- --seed "$5" --scripts 8 \
		>"$work/log/$name.differential" 2>&1 || rc=1
	cat "$work/log/$name.differential"
	{ count_regress "$work/$name/output"; cat "$work/log/$name.differential"; } |
		sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' |
		awk '{p += $1; f += $2} END {printf "%d passed, %d failed\n", p, f}'
	return $rc
}

# structure_parts NAME METHOD STRUCTURE NUMBER SEED ...: one after the other
structure_parts()
{
	local logs=() rc=0

	while [ $# -gt 0 ]; do
		logs+=("$work/log/part_$1")
		(structure_part "${@:1:5}") >"$work/log/part_$1" 2>&1 || rc=1
		shift 5
	done
	cat "${logs[@]}"
	tail -q -n 1 "${logs[@]}" | awk '{p += $1; f += $3} END {printf "%d passed, %d failed\n", p, f}'
	return $rc
}

part_structure()
{
	structure_parts structure gpu_btree array 15 2017 structure_skiplist gpu_skiplist default 3 5001 \
		structure_avl gpu_avl default 4 7001
}

part_structure_cuda()
{
	on_cuda
	structure_parts structure_cuda gpu_btree array 15 3001 structure_skiplist_cuda gpu_skiplist default 3 6001 \
		structure_avl_cuda gpu_avl default 4 8001
}

#
# PostgreSQL's own tests
#

# The server has gpuds loaded, and the database has the extension.  No table there has an index of ours, so plans and
# answers are those that PostgreSQL expects; but for tests that list all access methods or their operators, which are left
# out.  GPUDS_TEST_SOURCE is the source tree that the server was built in.
part_core()
{
	local tree=$work/core/source rc

	[ -d "${GPUDS_TEST_SOURCE-}/src/test/regress" ] || { echo "GPUDS_TEST_SOURCE names no source tree of PostgreSQL"; return 1; }
	start_tested core || return 1
	as_user cp -r "$GPUDS_TEST_SOURCE" "$tree"
	as_user sed -i -E '/^test:/s/ (amutils|opr_sanity|psql)\b//g' "$tree/src/test/regress/parallel_schedule"
	as_user make -s -C "$tree/src/test/regress" installcheck-parallel \
		EXTRA_REGRESS_OPTS="--host=$PGHOST --port=5432 --user=postgres --load-extension=gpuds" >"$work/core/output" 2>&1
	rc=$?
	cat "$work/core/output"
	if [ $rc != 0 ]; then
		head -${GPUDS_TEST_DIFF_LINES:-400} "$tree/src/test/regress/regression.diffs" 2>/dev/null
	fi
	count_regress "$work/core/output"
	end_tested core || rc=1
	return $rc
}

isolation_part()
{
	local name=$1 files rc

	mapfile -t files < <(chosen "${tests:-$build}/test/isolation/specs" spec)
	[ ${#files[@]} -gt 0 ] || { echo "0 passed, 0 failed"; return 0; }
	start_tested "$name" "${quiet[@]}" || return 1
	regress_with "$name" "$pgxs/test/isolation/pg_isolation_regress" "${tests:-$build}/test/isolation" \
		--load-extension=gpuds "${files[@]}"
	rc=$?
	end_tested "$name" || rc=1
	return $rc
}

part_isolation()
{
	isolation_part isolation
}

part_isolation_cuda()
{
	on_cuda
	isolation_part isolation_cuda
}

#
# TAP
#

# One TAP file; called with the test's environment set up.
tap_one()
{
	local file=$1 name

	name=$(basename "$file" .pl)
	mkdir -p "$tap_dir/$name"
	cd "$tap_dir/$name" || exit 1
	local began=$SECONDS rc passed failed
	TESTDIR=$PWD TESTDATADIR=$PWD/data TESTLOGDIR=$PWD/log \
		perl -I "$pgxs/test/perl" -I "$(dirname "$file")" "$file" >out 2>&1 </dev/null
	rc=$?
	passed=$(grep -c '^ok ' out)
	failed=$(grep -c '^not ok ' out)
	if [ $rc != 0 ] && [ "$failed" = 0 ]; then failed=1; fi
	echo "$passed $failed" > counts
	if [ "$failed" = 0 ]; then
		echo "$name: $passed passed ($((SECONDS - began)) s)"
		[ -n "${GPUDS_TEST_KEEP-}" ] || rm -rf tmp_check data
	else
		echo "$name: $passed passed, $failed failed ($((SECONDS - began)) s)"
		grep -v '^ok ' out | tail -60
		for log in tmp_check/log/*.log log/*.log; do
			[ -e "$log" ] || continue
			grep -E 'was terminated by signal|TRAP:|PANIC' "$log" | head -5
		done
	fi
}

# Files that take longest, which begin first
slow_tap='000_old_snapshot 009_concurrent 032_device_hangs 046_side_values'

# Files about what never reaches a device: catalogs, preloading, the journal's pages, files on disk, values beside
# entries.  The part tap has them; with a GPU they say nothing new, so that tap_cuda runs them only where tap does not
# run, or if TESTS names them.
host_tap='006_preload 007_minimal_wal 008_template 011_corrupt 016_logical 017_repack 018_partitions 019_upsert
	024_identity 028_array_memory 029_check_entries 030_cleanup 031_free_space 039_upgrade 045_append_group
	049_full_disk'

# on_device_too NAME: does this part run the file?
on_device_too()
{
	[ $device = cpu ] || [ -n "${TESTS-}" ] || ! wants tap || [[ " $(echo $host_tap) " != *" $1 "* ]]
}

# One file more at a time than there are processors: they wait often.
tap_part()
{
	local file files=() total

	export tap_dir=$work/$1
	for file in $(cd "${tests:-$build}/test/t" && ls ${slow_tap// /.pl }.pl && ls -- *.pl); do
		[[ " ${files[*]-} " != *"/$file "* ]] || continue
		on_device_too "${file%.pl}" || continue
		file=${tests:-$build}/test/t/$file
		[ -z "${TESTS-}" ] || [[ " $TESTS " = *" $(basename "$file" | cut -c1-3) "* ]] || continue
		files+=("$file")
	done
	perl -MIPC::Run -e 1 2>/dev/null || { echo "Perl's IPC::Run is missing"; return 1; }
	export work build pgxs bindir pg_config
	export PG_REGRESS=$pgxs/test/regress/pg_regress PG_TEST_PORT_DIR=$work/ports
	export -f tap_one
	as_user mkdir -p "$tap_dir"
	printf '%s\n' "${files[@]}" | as_user env GPUDS_TEST_KEEP="${GPUDS_TEST_KEEP-}" GPUDS_TEST_DEVICE=$device \
		xargs -P $((jobs + 1)) -I{} bash -c 'tap_one {}'
	total=$(cat "$tap_dir"/*/counts | awk '{p += $1; f += $2} END {print p + 0, f + 0}')
	echo "${total% *} passed, ${total#* } failed"
	[ "${total#* }" = 0 ]
}

part_tap()
{
	tap_part tap
}

part_tap_cuda()
{
	on_cuda
	tap_part tap_cuda
}

#
# Random scripts
#

# start_differential NAME [setting ...]: the two servers of test/differential.  The second has memory for a few
# indexes only, and subscribes to the first.
start_differential()
{
	# Dropping hundreds of partitions with many generated columns locks each of their objects.
	local settings=('autovacuum = off' 'max_connections = 200' 'max_locks_per_transaction = 512' 'max_prepared_transactions = 64'
		'max_worker_processes = 64' 'max_replication_slots = 40' 'max_logical_replication_workers = 40'
		'jit = off' 'max_sync_workers_per_subscription = 2' 'wal_retrieve_retry_interval = 100ms' 'allow_in_place_tablespaces = on')

	settings+=("${@:2}")
	start_tested "$1_other" 'gpuds.host_memory = 8' 'gpuds.device_memory = 24' 'gpuds.visibility_memory = 2kB' "${settings[@]}" || return 1
	other=$PGHOST
	# Room on the GPU for the indexes of all partitions: what goes to the CPU is a failure here
	start_tested "$1" 'gpuds.host_memory = 256' 'gpuds.device_memory = 8GB' 'wal_level = logical' 'max_wal_senders = 40' 'logical_decoding_work_mem = 64kB' "${settings[@]}"
}

# differential_part NAME [setting ... --] [argument of test/differential ...]
differential_part()
{
	local name=$1 rc kept other settings=()

	shift
	if [[ " $* " = *" -- "* ]]; then
		while [ "$1" != -- ]; do
			settings+=("$1")
			shift
		done
		shift
	fi
	start_differential "$name" ${settings[@]+"${settings[@]}"} || return 1
	as_user env GPUDS_TEST_SERVER=1 GPUDS_TEST_OTHER="$other" perl "$build/test/differential" --jobs "$jobs" --keep "$work/$name/failed" \
		${GPUDS_TEST_AM:+--am "$GPUDS_TEST_AM"} "$@" ${differential_args[@]+"${differential_args[@]}"}
	rc=$?
	end_tested "$name" || rc=1
	# There indexes are meant not to fit
	crash_check "${name}_other" || rc=1
	stop_server "${name}_other"
	if [ -d "$work/$name/failed" ]; then
		kept=$(mktemp -d "${TMPDIR:-/tmp}/gpuds-differential.XXXXXX")
		cp -r "$work/$name/failed/." "$kept/"
		echo "the scripts that failed are in $kept"
	fi
	return $rc
}

part_differential()
{
	differential_part differential
}

part_differential_cuda()
{
	on_cuda
	differential_part differential_cuda --seed 1001 --scripts 34
}

#
# A while of everything at once
#

# soak_part NAME [argument of test/soak.pl ...]
soak_part()
{
	local name=$1 rc

	shift
	start_tested "$name" 'gpuds.host_memory = 512' 'jit = off' 'shared_buffers = 256MB' "max_wal_size = 4GB" || return 1
	as_user mkdir -p "$work/$name/output"
	as_user perl "${tests:-$build}/test/soak.pl" --dir "$work/$name/output" --log "$work/log/$name.server" --device "$device" \
		"$@" ${soak_args[@]+"${soak_args[@]}"}
	rc=$?
	crash_check "$name" || rc=1
	stop_server "$name"
	return $rc
}

part_soak()
{
	soak_part soak --seconds 15
}

part_soak_cuda()
{
	on_cuda
	soak_part soak_cuda --seconds 20 --restart 5
}

#
# Recorded histories
#

# histories_program NAME FILE...: builds a program of test/histories.  libpq is found where the server's
# installation has it, or where a server that was unpacked (test/gpu) has its libraries.
histories_program()
{
	local name=$1 libdir

	shift
	libdir=$("$pg_config" --libdir)
	as_user mkdir -p "$work/$name"
	as_user gcc -std=gnu11 -O2 -g -Wall -Wextra -Werror -I"$("$pg_config" --includedir)" "$@" \
		-L"$libdir" -L/opt/pglibs -Wl,-rpath,"$libdir" -l:libpq.so.5 -pthread -o "$work/$name/program"
}

# histories_part NAME
histories_part()
{
	local name=$1 dir=${tests:-$build}/test/histories counts rc

	histories_program "${name}_checker" "$dir"/{history,dependencies,checker,checker_test}.c || return 1
	histories_program "$name" "$dir"/{history,dependencies,checker,sessions,maintenance,histories}.c || return 1
	as_user "$work/${name}_checker/program" >"$work/log/$name.checker"
	rc=$?
	cat "$work/log/$name.checker"
	start_tested "$name" 'autovacuum = off' 'deadlock_timeout = 100ms' 'jit = off' 'max_wal_size = 4GB' "${@:2}" || return 1
	as_user "$work/$name/program" --device $device --seconds 20 ${histories_args[@]+"${histories_args[@]}"} >"$work/log/$name.program" || rc=1
	cat "$work/log/$name.program"
	# On the emulated GPU the device is lost on purpose
	crash_check "$name" || rc=1
	stop_server "$name"
	counts=$(cat "$work/log/$name.checker" "$work/log/$name.program" |
		awk '/^[0-9]+ passed, [0-9]+ failed$/ {p += $1; f += $3} END {printf "%d passed, %d failed\n", p, f}')
	echo "$counts"
	return $rc
}

part_histories()
{
	histories_part histories
}

part_histories_cuda()
{
	on_cuda
	# states of a few pages, which give way to each other
	histories_part histories_cuda 'gpuds.visibility_memory = 2kB'
}

#
# Without a server
#

part_kernels()
{
	as_user "$build/test/kernels/run"
}

part_static()
{
	local passed=0 failed=0 files=() sources=() perl=() flags includes file limit

	cd "$build" || return 1
	mapfile -t files < <(find kernels src test bench -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' | sort)
	mapfile -t sources < <(find src kernels -name '*.c' | sort)
	mapfile -t perl < <({ find test -name '*.p[lm]'; grep -lsE '^#!.*\bperl\b' test/*; } | sort -u)

	result()
	{
		if [ "$2" = 0 ]; then
			passed=$((passed + 1))
		else
			failed=$((failed + 1))
			echo "static: $1 failed"
		fi
	}

	# tidy_result NAME STATUS: says what was found, without the paths that lead to it
	tidy_result()
	{
		if [ "$2" != 0 ]; then
			sed "s|$build/||" "$work/log/tidy" | grep -E ' (error|warning): ' | sort -u
		fi
		result "$1" "$2"
	}

	# Layout of the sources; another version of clang-format lays out differently.
	# A check that cannot be made has failed.
	if command -v clang-format-14 >/dev/null; then
		as_user clang-format-14 --dry-run -Werror "${files[@]}"
		result formatting $?
	else
		result "formatting (clang-format-14 is missing)" 1
	fi

	# narrow FILE...: names the lines that are wider than code may be, if there are any
	narrow()
	{
		perl -MText::Tabs -ne '
			BEGIN { $tabstop = 4; $limit = shift }
			chomp;
			if (length(expand($_)) > $limit) { print "$ARGV:$.: wider than $limit columns\n"; $wide = 1 }
			close ARGV if eof;
			END { exit($wide // 0) }' "$limit" "$@"
	}

	# clang-format leaves comments as wide as they are, and nothing lays out Perl
	limit=$(sed -n 's/^ColumnLimit: //p' .clang-format)
	narrow "${files[@]}"
	result "width of lines" $?
	narrow "${perl[@]}"
	result "width of lines of Perl" $?

	# .clang-tidy says which checks, and why not the others.  Headers of kernels/ are
	# analyzed through the files of src/ and the engine that include them.  The analyzer
	# gives a function up after 60,000 steps; its own limit is 225,000, at which the files
	# that take longest take three times as long.
	if command -v clang-tidy-14 >/dev/null; then
		flags=(-std=gnu11 -D_GNU_SOURCE -DGPUDS_INJECTION_POINTS -I. -Isrc "-I$("$pg_config" --includedir-server)"
			-Xclang -analyzer-config -Xclang max-nodes=60000)
		printf '%s\n' "${sources[@]}" | as_user xargs -P 2 -n 4 sh -c '
			flags=$1
			shift
			clang-tidy-14 --quiet --warnings-as-errors="*" "$@" -- $flags 2>&1' \
			static "${flags[*]}" >"$work/log/tidy"
		tidy_result clang-tidy $?
		# The analyzer cannot know that the engine's requests lie in staging memory, which is never null
		as_user clang-tidy-14 --quiet --warnings-as-errors='*' --checks=-clang-analyzer-core.NonNullParamChecker \
			kernels/engine/engine.cu -- -x c++ -std=c++17 -DGPU_EMULATED -I. >"$work/log/tidy" 2>&1
		tidy_result "clang-tidy of the engine" $?
	else
		result "clang-tidy (clang-tidy-14 is missing)" 1
	fi

	# Shell and Perl that at least parse
	for file in .githooks/* test/run test/gpu test/soak test/initdb test/*.sh test/versions test/upgrade test/kernels/run \
		test/package test/arm64 test/fdw test/citus test/clients/run "${perl[@]}" \
		bench/run bench/mixed bench/batch bench/methods bench/planner bench/bytes bench/busy bench/dashboards bench/graph bench/device bench/cards \
		bench/demo bench/against bench/*.sh bench/*.pl bench/*.pm; do
		case $file:$(head -1 "$file") in
			*.p[lm]:* | *perl*)
				includes="-Itest/lib -Itest/t -I$pgxs/test/perl"
				perl $includes -c "$file" 2>&1 | grep -v 'syntax OK'
				[ "${PIPESTATUS[0]}" = 0 ] ;;
			*) bash -n "$file" ;;
		esac
		result "$file" $?
	done

	# Directories call only those that the READMEs let them call, and no files need each other in a circle
	as_user test/floors
	result "test/floors" $?

	# What documents and comments name is there
	as_user test/links
	result "test/links" $?

	# The SQL objects cannot be turned against others, and violations are found
	as_user test/objects
	result "test/objects" $?

	# The structures are one source for gcc and nvcc.  Of tests and benchmarks, which have the engine's sources in them
	# once more, no machine code is made: that takes twice as long, and gives no more warnings.
	if command -v nvcc >/dev/null; then
		for file in $(find kernels test/kernels bench -name '*.cu' | sort); do
			as_user nvcc $(case $file in kernels/*) echo -c ;; *) echo -ptx -Xcicc -O0 ;; esac) -arch=sm_90 -I. -Itest/kernels \
				-std=c++17 -Werror all-warnings -o "$work/nvcc.o" "$file"
			result "nvcc $file" $?
		done
	else
		echo "static: nvcc not found, CUDA sources not compiled"
	fi

	echo "$passed passed, $failed failed"
	[ $failed = 0 ]
}
