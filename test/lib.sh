# test/lib.sh: what test/run is made of.  Sourced, never run.
#
# Globals that the functions set and share:
#   here      the checkout, set by the caller
#   work      directory of this run, removed at the end
#   build     copy of the tree in which everything is built
#   pg_config of the server that we build for
#   pg_root   prefix under which the server's installation was copied
#   bindir    programs of that copy
#   pgxs      its lib/pgxs/src
#   user      user that builds and tests, "postgres" if we are root

die()
{
	echo "test: $*" >&2
	exit 1
}

note()
{
	echo "== $*"
}

# Runs a command as the user of the tests.
as_user()
{
	if [ -n "$user" ]; then
		setpriv --reuid="$user" --regid="$user" --init-groups -- env HOME="$work" PATH="$bindir:$PATH" "$@"
	else
		env PATH="$bindir:$PATH" "$@"
	fi
}

#
# Preparation
#

installed()
{
	dpkg-query -W -f '${Status}\n' "$1" 2>/dev/null | grep -q 'ok installed'
}

# The names of those packages, of the given ones, that can be installed.
available()
{
	apt-cache policy "$@" 2>/dev/null | awk '/^[^ ]/ {p = $1} /Candidate:/ && $2 != "(none)" {sub(":$", "", p); print p}'
}

# As root on Debian: installs what the tests need and the machine lacks.  The
# server is the system's own version unless PG_CONFIG names another.
install_packages()
{
	local wanted=(gcc make perl libipc-run-perl libc6-dev util-linux) missing=() p major
	local no_cluster=/etc/postgresql-common/createcluster.d/gpuds-test.conf

	user=
	[ "$(id -u)" = 0 ] || return 0
	user=postgres
	command -v apt-get >/dev/null || return 0
	if wants static; then
		wanted+=(clang-format-14 clang-tidy-14)
	fi
	if wants kernels; then
		wanted+=(g++)
	fi
	if [ -z "${PG_CONFIG-}" ]; then
		major=$(ls -d /usr/lib/postgresql/*/lib/pgxs 2>/dev/null | sort -V | tail -1 | cut -d/ -f5)
		if [ -z "$major" ]; then
			[ -n "$(available postgresql)" ] || apt-get update -qq || die "apt-get update failed"
			major=$(apt-cache depends postgresql | sed -n 's/.*Depends: postgresql-\([0-9]*\)$/\1/p' | head -1)
			[ -n "$major" ] || die "no package of a PostgreSQL server found"
		fi
		wanted+=("postgresql-$major" "postgresql-server-dev-$major")
	fi
	for p in "${wanted[@]}"; do
		installed "$p" || missing+=("$p")
	done
	if [ ${#missing[@]} -gt 0 ]; then
		note "installing ${missing[*]}"
		if [ "$(available "${missing[@]}" | wc -l)" != ${#missing[@]} ]; then
			apt-get update -qq || die "apt-get update failed"
		fi
		# What this release of Debian does not have is skipped later on, or missed
		mapfile -t missing < <(available "${missing[@]}")
		# No cluster of Debian's making: nobody would use it
		mkdir -p "$(dirname "$no_cluster")"
		echo 'create_main_cluster = false' > "$no_cluster"
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" \
			>/dev/null </dev/null || { rm -f "$no_cluster"; die "installing packages failed"; }
		rm -f "$no_cluster"
	fi
	getent passwd $user >/dev/null || useradd --system --home-dir / --shell /bin/sh $user
}

find_postgres()
{
	if [ -n "${PG_CONFIG-}" ]; then
		pg_config=$PG_CONFIG
	else
		pg_config=$(ls -d /usr/lib/postgresql/*/bin/pg_config 2>/dev/null | sort -V | tail -1)
		[ -n "$pg_config" ] || pg_config=$(command -v pg_config)
	fi
	"$pg_config" --version >/dev/null || die "no pg_config, set PG_CONFIG"
	[ -e "$("$pg_config" --pgxs)" ] || die "$pg_config: the server's development files are not installed"
	version=$("$pg_config" --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/')
	note "$("$pg_config" --version)"
}

make_workplace()
{
	work=$(mktemp -d "${TMPDIR:-/tmp}/gpuds-test.XXXXXX") || die "cannot create a directory"
	build=$work/build
	mkdir "$build" "$work/log"
	chmod 755 "$work"
}

# What git knows or would know, so that a build in the checkout does no harm here.
copy_tree()
{
	if command -v git >/dev/null && git -C "$here" -c safe.directory='*' rev-parse 2>/dev/null; then
		(cd "$here" && git -c safe.directory='*' ls-files -co --exclude-standard -z |
			tar --null -T - --ignore-failed-read -cf - 2>/dev/null) | tar -xf - -C "$build"
	else
		tar -C "$here" --exclude=.git --exclude='*.o' --exclude='*.so' --exclude='*.bc' -cf - . | tar -xf - -C "$build"
	fi
}

# A server finds its files relative to its programs, so a copy of an installation
# works wherever it lies.  Programs are copied, the rest are links to the files.
copy_postgres()
{
	local dir option

	pg_root=$work/pg
	bindir=$pg_root$("$pg_config" --bindir)
	for option in --pkglibdir --sharedir; do
		dir=$("$pg_config" $option)
		mkdir -p "$pg_root$dir"
		cp -as "$dir/." "$pg_root$dir/"
	done
	dir=$("$pg_config" --libdir)
	if [ ! -e "$pg_root$dir" ] && [ -e "$dir/libpq.so" ] && [[ $dir != /usr/* ]]; then
		mkdir -p "$(dirname "$pg_root$dir")"
		ln -s "$dir" "$pg_root$dir"
	fi
	mkdir -p "$bindir"
	cp -a "$("$pg_config" --bindir)/." "$bindir/"
	pgxs=$(dirname "$(dirname "$("$pg_config" --pgxs)")")
	[ -z "$user" ] || chown -R -h "$user:" "$work"
}

# Both forms are built, the one without stop points to see that it compiles; the
# other one is tested.
build_all()
{
	local make=(make -s -C "$build" -j2 WERROR=1 with_llvm=no PG_CONFIG="$pg_config")

	note "building"
	if [ -x "$(command -v nvcc)" ]; then :; else make+=(CUDA=no); fi
	(
		as_user "${make[@]}" && as_user "${make[@]}" clean && as_user "${make[@]}" STOP_POINTS=1 &&
			as_user "${make[@]}" STOP_POINTS=1 install DESTDIR="$pg_root"
	) >"$work/log/build" 2>&1 </dev/null
	local rc=$?
	if [ $rc != 0 ]; then
		cat "$work/log/build"
		echo "build 0 1" >> "$work/results"
	else
		echo "build 1 0" >> "$work/results"
	fi
	return $rc
}

#
# Servers
#

# start_server NAME [setting ...]: sets port and PGHOST for the caller, starts a
# server with gpuds that leave() stops.
start_server()
{
	local name=$1 data=$work/$1/data setting

	shift
	as_user mkdir -p "$work/$name/sockets"
	as_user initdb -D "$data" -A trust -U postgres --no-sync --no-locale -E UTF8 >"$work/log/$name.initdb" 2>&1 ||
		{ cat "$work/log/$name.initdb"; return 1; }
	{
		cat <<-END
			listen_addresses = ''
			unix_socket_directories = '$work/$name/sockets'
			shared_preload_libraries = 'gpuds'
			fsync = off
			max_prepared_transactions = 10
			max_connections = 60
			shared_buffers = 64MB
			log_line_prefix = '%m %p %q%a '
			log_statement = 'none'
		END
		for setting in "$@"; do
			echo "$setting"
		done
	} | as_user tee -a "$data/postgresql.conf" >/dev/null
	as_user pg_ctl -D "$data" -l "$work/log/$name.server" -w -t 60 start >/dev/null ||
		{ tail -20 "$work/log/$name.server"; return 1; }
	export PGHOST=$work/$name/sockets PGPORT=5432 PGUSER=postgres PGDATABASE=postgres
}

stop_server()
{
	as_user pg_ctl -D "$work/$1/data" -m fast -w -t 60 stop >/dev/null 2>&1
}

#
# Parts
#

# run_part NAME: calls part_NAME, shows what it wrote when it is through, and
# notes its counts.  A part writes "N passed, N failed" as its last line.
run_part()
{
	local name=$1 log=$work/log/$1 began=$SECONDS counts rc

	(part_"$name") >"$log" 2>&1 </dev/null
	rc=$?
	counts=$(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$log" | tail -1)
	if [ -z "$counts" ]; then
		counts="0 1"
		[ $rc != 0 ] || counts="1 0"
	elif [ $rc != 0 ] && [ "${counts#* }" = 0 ]; then
		counts="${counts% *} 1"
	fi
	echo "$name $counts" >> "$work/results"
	{
		echo "== $name ($((SECONDS - began)) s)"
		cat "$log"
	} > "$log.shown"
	cat "$log.shown"
}

# Tells from pg_regress's output, in the form of 15 or in TAP, what passed.
count_regress()
{
	awk '/^not ok / || /\.\.\. FAILED/ {failed++; next}
		/^ok / || /\.\.\. ok/ {passed++}
		END {printf "%d passed, %d failed\n", passed, failed}' "$1"
}

# pg_regress NAME PROGRAM SCHEDULE_DIR test ...
regress_with()
{
	local name=$1 program=$2 dir=$3 rc

	shift 3
	as_user mkdir -p "$work/$name/out"
	(cd "$work/$name" && as_user "$program" --bindir="$bindir" --inputdir="$dir" --outputdir="$work/$name/out" \
		--dlpath="$pg_root$("$pg_config" --pkglibdir)" --host="$PGHOST" --port=5432 --user=postgres \
		--dbname="${name}_test" "$@") >"$work/$name/output" 2>&1
	rc=$?
	cat "$work/$name/output"
	if [ $rc != 0 ]; then
		head -${GPUDS_TEST_DIFF_LINES:-400} "$work/$name/out/regression.diffs" 2>/dev/null
	fi
	count_regress "$work/$name/output"
	return $rc
}

# Names of the files of $1 with ending $2, as many as REGRESS lets through.
chosen()
{
	local file name

	for file in "$1"/*."$2"; do
		[ -e "$file" ] || continue
		name=$(basename "$file" ".$2")
		[ -z "${REGRESS-}" ] || [[ " $REGRESS " = *" $name "* ]] || continue
		echo "$name"
	done
}

part_regress()
{
	local tests rc

	mapfile -t tests < <(chosen "$build/sql" sql)
	[ ${#tests[@]} -gt 0 ] || { echo "0 passed, 0 failed"; return 0; }
	start_server regress || return 1
	regress_with regress "$pgxs/test/regress/pg_regress" "$build" "${tests[@]}"
	rc=$?
	crash_check regress || rc=1
	stop_server regress
	return $rc
}

part_isolation()
{
	local tests rc

	mapfile -t tests < <(chosen "$build/test/isolation/specs" spec)
	[ ${#tests[@]} -gt 0 ] || { echo "0 passed, 0 failed"; return 0; }
	start_server isolation 'autovacuum = off' || return 1
	regress_with isolation "$pgxs/test/isolation/pg_isolation_regress" "$build/test/isolation" \
		--load-extension=gpuds "${tests[@]}"
	rc=$?
	crash_check isolation || rc=1
	stop_server isolation
	return $rc
}

# A crash that the tests did not notice, or an assertion, is a failure too.
crash_check()
{
	if grep -E 'was terminated by signal|TRAP:|PANIC' "$work/log/$1.server"; then
		return 1
	fi
}

# One TAP file; called with the test's environment set up.
tap_one()
{
	local file=$1 name

	name=$(basename "$file" .pl)
	mkdir -p "$work/tap/$name"
	cd "$work/tap/$name" || exit 1
	local began=$SECONDS rc passed failed
	TESTDIR=$PWD TESTDATADIR=$PWD/data TESTLOGDIR=$PWD/log \
		perl -I "$pgxs/test/perl" -I "$build/test/t" "$file" >out 2>&1 </dev/null
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

part_tap()
{
	local file files=() total

	for file in "$build"/test/t/*.pl; do
		[ -z "${TESTS-}" ] || [[ " $TESTS " = *" $(basename "$file" | cut -c1-3) "* ]] || continue
		files+=("$file")
	done
	perl -MIPC::Run -e 1 2>/dev/null || { echo "Perl's IPC::Run is missing"; return 1; }
	export work build pgxs bindir
	export PG_REGRESS=$pgxs/test/regress/pg_regress PG_TEST_PORT_DIR=$work/ports
	export -f tap_one
	# Two at a time, as the machine of the tests has two cores
	as_user mkdir -p "$work/tap"
	printf '%s\n' "${files[@]}" | as_user env GPUDS_TEST_KEEP="${GPUDS_TEST_KEEP-}" xargs -P 2 -I{} bash -c 'tap_one {}'
	total=$(cat "$work"/tap/*/counts | awk '{p += $1; f += $2} END {print p + 0, f + 0}')
	echo "${total% *} passed, ${total#* } failed"
	[ "${total#* }" = 0 ]
}

part_differential()
{
	local rc

	start_server differential 'gpuds.host_memory = 256' "autovacuum = off" || return 1
	as_user env GPUDS_TEST_SERVER=1 perl "$build/test/differential" --keep "$work/differential/failed" \
		${differential_args[@]+"${differential_args[@]}"}
	rc=$?
	crash_check differential || rc=1
	stop_server differential
	if [ -d "$work/differential/failed" ]; then
		local kept

		kept=$(mktemp -d "${TMPDIR:-/tmp}/gpuds-differential.XXXXXX")
		cp -r "$work/differential/failed/." "$kept/"
		echo "the scripts that failed are in $kept"
	fi
	return $rc
}

part_kernels()
{
	[ -x "$build/test/kernels/run" ] || { echo "0 passed, 0 failed"; return 0; }
	as_user "$build/test/kernels/run"
}

part_static()
{
	local passed=0 failed=0 files=() sources=() format tidy flags file

	cd "$build" || return 1
	mapfile -t files < <(find kernels src test -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' | sort)
	mapfile -t sources < <(find src -name '*.c' | sort)

	result()
	{
		if [ "$2" = 0 ]; then
			passed=$((passed + 1))
		else
			failed=$((failed + 1))
			echo "static: $1 failed"
		fi
	}

	# Layout of the sources; another version of clang-format lays out differently
	format=$(command -v clang-format-14 || true)
	if [ -n "$format" ]; then
		as_user "$format" --dry-run -Werror "${files[@]}"
		result formatting $?
	else
		echo "static: clang-format-14 not found, formatting not checked"
	fi

	# test/clang-tidy.yaml says which checks, and why not the others
	tidy=$(command -v clang-tidy-14 || true)
	if [ -n "$tidy" ]; then
		flags=(-std=gnu11 -D_GNU_SOURCE -DGPUDS_STOP_POINTS -I. -Isrc "-I$("$pg_config" --includedir-server)")
		if printf '%s\n' "${sources[@]}" | as_user xargs -P 2 -n 4 sh -c '
			tidy=$1 config=$2 flags=$3
			shift 3
			"$tidy" --quiet --config-file="$config" --warnings-as-errors="*" "$@" -- $flags 2>&1' \
			static "$tidy" "$build/test/clang-tidy.yaml" "${flags[*]}" >"$work/log/tidy"; then
			result clang-tidy 0
		else
			# Only the findings; the paths that lead to them are in the log
			sed "s|$build/||" "$work/log/tidy" | grep -E ' (error|warning): ' | sort -u
			result clang-tidy 1
		fi
	else
		echo "static: clang-tidy-14 not found"
	fi

	# Shell and Perl that at least parse
	for file in test/run test/lib.sh test/versions .ci/run bench/run bench/demo test/kernels/run; do
		[ -e "$file" ] || continue
		case $(head -1 "$file") in
			*perl*) perl -c "$file" 2>&1 | grep -v 'syntax OK'; perl -c "$file" 2>/dev/null ;;
			*python*) python3 -m py_compile "$file" ;;
			*) bash -n "$file" ;;
		esac
		result "$file" $?
	done
	perl -c test/differential 2>/dev/null
	result test/differential $?

	# The structures are one source for gcc and nvcc
	if command -v nvcc >/dev/null; then
		for file in $(find kernels test/kernels -name '*.cu' | sort); do
			as_user nvcc -c -I. -std=c++17 -Werror all-warnings -o "$work/nvcc.o" "$file"
			result "nvcc $file" $?
		done
	else
		echo "static: nvcc not found, CUDA sources not compiled"
	fi

	echo "$passed passed, $failed failed"
	[ $failed = 0 ]
}

#
# The end
#

finish()
{
	local total

	echo
	awk '{printf "%-14s %5d passed %4d failed\n", $1, $2, $3}' "$work/results"
	total=$(awk '{p += $2; f += $3} END {print p + 0, f + 0}' "$work/results")
	echo "${total% *} passed, ${total#* } failed"
	exit $([ "${total#* }" = 0 ] && echo 0 || echo 1)
}

tracks=()

# Runs a function in the background, in a process group of its own.
start_track()
{
	set -m
	"$1" &
	tracks+=($!)
	set +m
}

# Waits for all of them; unlike a command in the foreground, signals interrupt it.
# Returns the last one's status.
wait_tracks()
{
	local rc

	wait "${tracks[@]}"
	rc=$?
	tracks=()
	return $rc
}

# Runs on every exit.  Our processes are the tracks' groups, and servers whose
# data directory is below $work.
leave()
{
	local rc=$? pidfile pid

	trap - EXIT INT TERM HUP
	for pid in "${tracks[@]}"; do
		kill -TERM -- -"$pid" 2>/dev/null
	done
	[ ${#tracks[@]} = 0 ] || sleep 1
	while read -r pidfile; do
		pid=$(head -1 "$pidfile" 2>/dev/null)
		[ -n "$pid" ] && kill -QUIT "$pid" 2>/dev/null
	done < <(find "$work" -name postmaster.pid 2>/dev/null)
	if [ -n "${GPUDS_TEST_KEEP-}" ]; then
		echo "kept: $work" >&2
	else
		rm -rf "$work" 2>/dev/null || { sleep 1; rm -rf "$work"; }
	fi
	exit $rc
}
