# shellcheck shell=bash
#
# lib.sh: what bench/demo and bench/run share: the packages they need, a private
# build of the extension, and a throw-away server.
#
# Nothing but Debian packages is installed on the machine.  The extension is
# built in a copy of the source tree and installed into a copy of PostgreSQL's
# own program tree (PostgreSQL finds its files relative to its programs), so
# that neither the clone nor the system's PostgreSQL is touched, no root is
# needed where the packages are there, and several runs do not meet.
#
# Everything lives in $WORK, which goes away at exit unless KEEP=1.  As root
# the server runs as user postgres.
#
#   PG_CONFIG        the PostgreSQL to use (default: Debian's newest)
#   GPUDS_BENCH_AM   access method to measure (default gpu_btree); "btree"
#                    compares btree with itself, without the extension

SOURCE=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
AM=${GPUDS_BENCH_AM:-gpu_btree}
KEEP=${KEEP:-0}
WORK=
BINDIR=

say() { printf '%s\n' "$*" >&2; }
die() { say "$(basename "$0"): $*"; exit 1; }

# as_server COMMAND...: run as the user that owns the server.
as_server()
{
	if [ "$(id -u)" -eq 0 ]; then
		runuser -u postgres -- "$@"
	else
		"$@"
	fi
}

# newest_pg_config: the newest Debian PostgreSQL that has server and headers.
newest_pg_config()
{
	local dir

	while read -r dir; do
		if [ -x "$dir/bin/initdb" ] && [ -x "$dir/bin/pg_config" ] && [ -f "$dir/lib/pgxs/src/makefiles/pgxs.mk" ]; then
			echo "$dir/bin/pg_config"
			return
		fi
	done < <(printf '%s\n' /usr/lib/postgresql/* | sort -rV)
}

# need_packages PACKAGE...: install what is missing (Debian, root).
need_packages()
{
	local p missing=()

	for p in "$@"; do
		dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$p")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	[ "$(id -u)" -eq 0 ] || die "please install: ${missing[*]}"
	say "installing ${missing[*]}"
	export DEBIAN_FRONTEND=noninteractive
	[ -n "${APT_UPDATED:-}" ] || apt-get update -qq >"$WORK/apt.log" 2>&1 || die "apt-get update failed, see below
$(tail -5 "$WORK/apt.log")"
	APT_UPDATED=1
	apt-get install -y -qq --no-install-recommends "${missing[@]}" >>"$WORK/apt.log" 2>&1 ||
		die "apt-get install failed:
$(tail -5 "$WORK/apt.log")"
}

# need_postgres: a PostgreSQL to copy; sets PG_CONFIG.
need_postgres()
{
	local version conf=/etc/postgresql-common/createcluster.conf

	PG_CONFIG=${PG_CONFIG:-$(newest_pg_config)}
	if [ -z "$PG_CONFIG" ]; then
		command -v apt-get >/dev/null || die "no PostgreSQL with server headers found; set PG_CONFIG"
		need_packages postgresql-common
		version=$(apt-cache depends postgresql | sed -n 's/.*Depends: postgresql-\([0-9]*\)$/\1/p' | head -1)
		[ -n "$version" ] || die "this system offers no postgresql package; set PG_CONFIG"

		# The package would start a server of its own; none is wanted here.
		if [ -f "$conf" ]; then
			cp -p "$conf" "$WORK/createcluster.conf"
			echo 'create_main_cluster = false' >>"$conf"
		fi
		need_packages "postgresql-$version" "postgresql-server-dev-$version"
		[ ! -f "$WORK/createcluster.conf" ] || cp -p "$WORK/createcluster.conf" "$conf"
		PG_CONFIG=$(newest_pg_config)
		[ -n "$PG_CONFIG" ] || die "PostgreSQL is installed but not found under /usr/lib/postgresql"
	fi
	if [ "$AM" != btree ]; then
		need_packages make gcc libc6-dev
	fi
}

# build_extension: private copy of PostgreSQL's program tree with the extension in it; sets BINDIR.
build_extension()
{
	local kind from to incdir

	to=$WORK/pg
	for kind in bindir sharedir pkglibdir; do
		from=$("$PG_CONFIG" --$kind)
		mkdir -p "$to$from"
		cp -a "$from/." "$to$from/"
	done
	incdir=$("$PG_CONFIG" --includedir)
	mkdir -p "$(dirname "$to$incdir")"
	ln -sfn "$incdir" "$to$incdir"
	BINDIR=$to$("$PG_CONFIG" --bindir)
	[ "$AM" != btree ] || return 0

	mkdir -p "$WORK/source"
	tar -C "$SOURCE" --exclude=.git --exclude='*.o' --exclude='*.so' --exclude='*.bc' --exclude=./bench/results \
		-cf - . | tar -C "$WORK/source" -xf -
	if ! make -C "$WORK/source" -j2 with_llvm=no PG_CONFIG="$BINDIR/pg_config" >"$WORK/build.log" 2>&1 ||
		! make -C "$WORK/source" with_llvm=no PG_CONFIG="$BINDIR/pg_config" install >>"$WORK/build.log" 2>&1; then
		tail -30 "$WORK/build.log" >&2
		die "the build failed"
	fi
}

# init_server [setting]...: initdb and start; sets PGHOST, PGPORT, PGUSER, PGDATABASE, PGDATA.
init_server()
{
	local memory_mb buffers_mb s

	memory_mb=$(awk '/^MemTotal/ { print int($2 / 1024) }' /proc/meminfo)
	buffers_mb=$((memory_mb / 4 < 6144 ? memory_mb / 4 : 6144))
	PGDATA=$WORK/data
	PGHOST=$WORK
	PGPORT=5432
	PGUSER=postgres
	PGDATABASE=postgres
	export PGDATA PGHOST PGPORT PGUSER PGDATABASE PGOPTIONS=
	as_server "$BINDIR/initdb" -D "$PGDATA" -U postgres -A trust -E UTF8 --locale=C >"$WORK/initdb.log" 2>&1 ||
		die "initdb failed:
$(cat "$WORK/initdb.log")"
	{
		echo "listen_addresses = ''"
		echo "unix_socket_directories = '$WORK'"
		echo "shared_buffers = ${buffers_mb}MB"
		echo "maintenance_work_mem = $((memory_mb / 16 < 1024 ? memory_mb / 16 : 1024))MB"
		echo "work_mem = 64MB"
		echo "max_wal_size = 16GB"
		echo "min_wal_size = 2GB"
		echo "checkpoint_timeout = 1h"
		echo "max_connections = 40"
		echo "jit = off"
		echo "random_page_cost = 1.1"
		echo "effective_cache_size = $((memory_mb / 2))MB"
		echo "log_min_messages = warning"
		if [ "$AM" != btree ]; then
			echo "shared_preload_libraries = 'gpuds'"
			echo "gpuds.host_memory = $((memory_mb / 8 < 3072 ? memory_mb / 8 : 3072))"
		fi
		for s in "$@"; do
			echo "$s"
		done
	} >"$WORK/settings.conf"
	as_server tee -a "$PGDATA/postgresql.conf" <"$WORK/settings.conf" >/dev/null
	start_server
}

start_server()
{
	as_server "$BINDIR/pg_ctl" -D "$PGDATA" -l "$WORK/server.log" -w -t 300 start >"$WORK/pg_ctl.log" 2>&1 || {
		tail -20 "$WORK/server.log" >&2
		die "the server did not start"
	}
}

stop_server()
{
	as_server "$BINDIR/pg_ctl" -D "$PGDATA" -m fast -w -t 300 stop >"$WORK/pg_ctl.log" 2>&1
}

# sql [psql argument]...: psql without the user's settings, stop at the first error.
sql()
{
	"$BINDIR/psql" -X -q -v ON_ERROR_STOP=1 "$@"
}

clean_up()
{
	local status=$?

	trap - EXIT INT TERM
	[ -n "$WORK" ] || exit $status
	if [ "$KEEP" != 1 ]; then
		[ ! -f "$WORK/data/postmaster.pid" ] ||
			as_server "$BINDIR/pg_ctl" -D "$WORK/data" -m immediate -w stop >/dev/null 2>&1
		cd / && rm -rf "$WORK"
	fi
	exit $status
}

# begin: the working directory and its end.
begin()
{
	WORK=$(mktemp -d "${TMPDIR:-/tmp}/gpuds.XXXXXX") || exit 1
	trap clean_up EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	chmod 755 "$WORK"
}

# hand_over: let the server's user write in $WORK (after the packages brought that user).
hand_over()
{
	[ "$(id -u)" -ne 0 ] || chown postgres "$WORK"
}
