# test/lib.sh: what test/run, test/gpu and the bench are made of: a copy of the
# tree, copies of the server, servers, parts side by side, and the end.  Sourced,
# never run.
#
# Globals that the functions set and share:
#   here      the checkout, set by the caller
#   work      directory of this run, removed at the end
#   build     copy of the tree in which everything is built
#   pg_config of the server that we build for
#   pg_root   prefix under which the server's installation was copied (use_root)
#   bindir    programs of that copy
#   pgxs      its lib/pgxs/src
#   program   what pg_ctl starts in the place of postgres; empty: that copy's
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

program=

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
	if wants kernels || wants '*_cuda'; then
		wanted+=(g++)
	fi
	if [ -n "${GPUDS_TEST_VALGRIND-}" ]; then
		wanted+=(valgrind libc6-dbg)
	fi
	if [ -z "${PG_CONFIG-}" ]; then
		major=$(ls -d /usr/lib/postgresql/*/lib/pgxs 2>/dev/null | sort -V | tail -1 | cut -d/ -f5)
		if [ -z "$major" ]; then
			[ -n "$(available postgresql)" ] || apt-get update -qq || die "apt-get update failed"
			major=$(apt-cache depends postgresql | sed -n 's/.*Depends: postgresql-\([0-9]*\)$/\1/p' | head -1)
			[ -n "$major" ] || die "no package of a PostgreSQL server found"
		fi
		wanted+=("postgresql-$major" "postgresql-server-dev-$major")
		if wants 'tap*'; then
			wanted+=("postgresql-$major-repack")
		fi
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
		tar -C "$here" --exclude='./.*' --exclude='*.o' --exclude='*.so' --exclude='*.bc' -cf - . | tar -xf - -C "$build"
		cp -r "$here"/.clang-format "$here"/.clang-tidy "$here"/.githooks "$build/"
	fi
}

# use_root NAME: which copy of the server's installation is meant from here on.
use_root()
{
	pg_root=$work/$1
	bindir=$pg_root$("$pg_config" --bindir)
}

# A server finds its files relative to its programs, so a copy of an installation
# works wherever it lies.  Programs are copied, the rest are links to the files.
# copy_postgres [NAME]: a copy to use from here on; "pg" if no name is given.
copy_postgres()
{
	local dir option

	use_root "${1:-pg}"
	for option in --pkglibdir --sharedir; do
		dir=$("$pg_config" $option)
		mkdir -p "$pg_root$dir"
		cp -as "$dir/." "$pg_root$dir/"
		# What is installed of gpuds itself would be tested, or found by a library that has no engine.
		find "$pg_root$dir" -mindepth 1 -name 'gpuds*' -prune -exec rm -r {} +
	done
	dir=$("$pg_config" --libdir)
	if [ ! -e "$pg_root$dir" ] && [ -e "$dir/libpq.so" ] && [[ $dir != /usr/* ]]; then
		mkdir -p "$(dirname "$pg_root$dir")"
		ln -s "$dir" "$pg_root$dir"
	fi
	mkdir -p "$bindir"
	cp -a "$("$pg_config" --bindir)/." "$bindir/"
	mv "$bindir/initdb" "$bindir/initdb.first"
	cp "$here/test/initdb" "$bindir/"
	pgxs=$(dirname "$(dirname "$("$pg_config" --pgxs)")")
	[ -z "$user" ] || chown -R -h "$user:" "$work"
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
	as_user pg_ctl ${program:+-p "$program"} -D "$data" -l "$work/log/$name.server" -w -t 300 start >/dev/null ||
		{ tail -20 "$work/log/$name.server"; return 1; }
	export PGHOST=$work/$name/sockets PGPORT=5432 PGUSER=postgres PGDATABASE=postgres
}

stop_server()
{
	as_user pg_ctl -D "$work/$1/data" -m fast -w -t 300 stop >/dev/null 2>&1
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
	[ -z "${GPUDS_TEST_SANITIZE-}" ] || sanitize_check >>"$log" 2>&1 || rc=1
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

#
# The end
#

finish()
{
	local total

	echo
	awk '{printf "%-14s %5d passed %4d failed\n", $1, $2, $3}' "$work/results"
	total=$(awk '{p += $2; f += $3} END {print p + 0, f + 0}' "$work/results")
	# Whoever keeps only the end of the output sees what has failed, and what was said before.
	if [ "${total#* }" != 0 ]; then
		echo
		# A TAP file that ended early has no line of its own; what it said follows its counts.
		{
			grep -E -B 8 '^(NOT OK|not ok)|FAILED|Failed test' "$work"/log/*.shown
			grep -E -A 20 '^[0-9a-z_]+: [0-9]+ passed, [1-9][0-9]* failed' "$work"/log/*.shown
			grep -E -A 40 '^diff -U3 ' "$work"/log/*.shown
		} | sed "s,^$work/log/,," | tail -n 100
	fi
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
