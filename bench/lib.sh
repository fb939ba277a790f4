# shellcheck shell=bash
#
# bench/lib.sh: what the scripts of bench share: a private build
# of the extension, a throw-away server with it, and ways to measure.  Sourced,
# never run.
#
# Packages, the copies of the tree and of PostgreSQL's programs, and the user
# that owns the server (postgres, if we are root) are test/lib.sh's.  Neither
# the clone nor the system's PostgreSQL is touched; everything lies in $work,
# which is gone at the end unless keep_work=1.
#
#   PG_CONFIG        the PostgreSQL to use (default: Debian's newest)
#   GPUDS_BENCH_AM   access method to measure (default gpu_btree); "btree"
#                    compares btree with itself, without the extension

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=test/lib.sh
. "$here/test/lib.sh"

am=${GPUDS_BENCH_AM:-gpu_btree}
keep_work=0
work=
out=

# The command, as figures name it: without the places of files on this machine.
command=bench/$(basename "$0")
for argument in "$@"; do
	case ${skipped:-}$argument in
		--out | --bundle | --built | --strings) skipped=skip: ;;
		skip:*) skipped='' ;;
		*) command+=" $argument" ;;
	esac
done
unset skipped argument

say()
{
	printf '%s\n' "$*" >&2
}

die()
{
	say "$(basename "$0"): $*"
	exit 1
}

# usage: what the program's header says, for --help.
usage()
{
	sed -n '3,/^[^#]/s/^# \{0,1\}//p' "$0"
	exit 0
}

# unknown OPTION: the end of a program that has no such option.
unknown()
{
	die "unknown option $1 (see --help)"
}

# check WHAT LIST CHOICE ...: each word of the list, which has commas, is one of the choices.
check()
{
	local what=$1 word list=$2

	shift 2
	for word in ${list//,/ }; do
		[[ " $* " = *" $word "* ]] || die "there is no $what \"$word\" (see --help)"
	done
}

# wanted SECTION: is it among those of --only, or is everything wanted?
wanted() { [ -z "$only" ] || [[ ",$only," == *",$1,"* ]]; }

# results: the directory of what is measured, which --out names, or a new one outside of the tree.  Sets out
# and raw.
results()
{
	[ -n "$out" ] || out=$(mktemp -d "${TMPDIR:-/tmp}/gpuds-$(basename "$0").XXXXXX") ||
		die "cannot create a directory"
	mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 1
	raw=$out/raw.tsv
	: >"$raw"
	say "results go to $out"
}

# No part of the tests is wanted (asked by install_packages).
wants()
{
	return 1
}

# Packages that only the bench needs.
need_packages()
{
	local p missing=()

	command -v dpkg-query >/dev/null || return 0
	for p in "$@"; do
		installed "$p" || missing+=("$p")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	[ "$(id -u)" = 0 ] || die "please install: ${missing[*]}"
	say "installing ${missing[*]}"
	[ -n "$(available "${missing[@]}")" ] || apt-get update -qq || die "apt-get update failed"
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" \
		>/dev/null </dev/null || die "apt-get install failed"
}

make_workplace()
{
	work=$(mktemp -d "${TMPDIR:-/tmp}/gpuds-bench.XXXXXX") || die "cannot create a directory"
	build=$work/build
	mkdir "$build" "$work/log"
	chmod 755 "$work"
}

# make_copies: the working directory, with copies of the tree and of PostgreSQL's programs.
make_copies()
{
	find_postgres >&2
	make_workplace
	trap clean_up EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	copy_tree
	copy_postgres
}

# prepare: packages, working directory, a private PostgreSQL with the extension built into it, or with the
# library that is in $built.
prepare()
{
	install_packages >&2
	make_copies
	[ "$am" != btree ] || return 0
	if [ -n "${built-}" ]; then
		cp --remove-destination "$built/gpuds.so" "$pg_root$("$pg_config" --pkglibdir)/" &&
			cp --remove-destination "$build"/gpuds.control "$build"/src/gpuds--*.sql \
				"$pg_root$("$pg_config" --sharedir)/extension/" || die "there is no built library in $built"
		return
	fi
	say "building gpuds"
	if ! { as_user make -C "$build" -j2 with_llvm=no PG_CONFIG="$pg_config" &&
		as_user make -C "$build" with_llvm=no PG_CONFIG="$pg_config" install DESTDIR="$pg_root"; } \
		>"$work/log/build" 2>&1 </dev/null; then
		tail -30 "$work/log/build" >&2
		die "the build failed"
	fi
}

# prepare_host DEVICES: the same on any host, with the GPU's library if there is a GPU.  Sets gpu, what
# figures add to the processor's name; it is empty if there is none, and DEVICES must be "cpu" then.  The
# caller has sourced test/gpu.sh, and set what options say of bundle and built.
prepare_host()
{
	gpu=''
	if ! command -v nvidia-smi >/dev/null; then
		[ "$1" = cpu ] || die "there is no GPU here"
		export CUDA=no
		prepare
		return
	fi
	prepare_gpu_host >&2
	make_copies
	say "building gpuds"
	install_extension >"$work/log/build" 2>&1 </dev/null || die "$(tail -30 "$work/log/build")"
	gpu="; $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1)"
}

# new_server [setting ...]: a server of a size that fits the machine, whose shared buffers have $buffers MB,
# 6,144 if that is not set, or a quarter of the memory if that is less.
new_server()
{
	local memory setting most=${buffers:-6144}

	memory=$(awk '/^MemTotal/ { print int($2 / 1024) }' /proc/meminfo)
	export PGDATA=$work/data PGHOST=$work PGPORT=5432 PGUSER=postgres PGDATABASE=postgres PGOPTIONS=
	as_user initdb -D "$PGDATA" -U postgres -A trust -E UTF8 --no-locale >"$work/log/initdb" 2>&1 ||
		die "initdb failed:
$(cat "$work/log/initdb")"
	{
		cat <<-END
			listen_addresses = ''
			unix_socket_directories = '$work'
			shared_buffers = $((memory / 4 < most ? memory / 4 : most))MB
			maintenance_work_mem = $((memory / 16 < 1024 ? memory / 16 : 1024))MB
			work_mem = 64MB
			effective_cache_size = $((memory / 2))MB
			max_wal_size = 16GB
			min_wal_size = 2GB
			checkpoint_timeout = 1h
			max_connections = 100
			jit = off
			log_min_messages = warning
		END
		if [ "$am" != btree ]; then
			echo "shared_preload_libraries = 'gpuds'"
			echo "gpuds.host_memory = $((memory / 8 < 3072 ? memory / 8 : 3072))MB"
			echo "gpuds.include_memory = $((memory / 8 < 2048 ? memory / 8 : 2048))MB"
		fi
		for setting in "$@"; do
			echo "$setting"
		done
	} | as_user tee -a "$PGDATA/postgresql.conf" >/dev/null
	server_up
	[ "$am" = btree ] || sql -c "CREATE EXTENSION gpuds" || exit 1
}

server_up()
{
	as_user pg_ctl -D "$PGDATA" -l "$work/log/server" -w -t 300 start >"$work/log/pg_ctl" 2>&1 ||
		die "the server did not start:
$(tail -20 "$work/log/server")"
}

# Waits until all GPUs serve; the driver may take a while.
wait_for_cuda()
{
	local i

	for ((i = 0; i < 300; i++)); do
		[ "$(sql -At -c "SELECT DISTINCT state FROM gpuds_devices WHERE kind = 'cuda'")" != ready ] || return 0
		sleep 0.1
	done
	die "the device is not ready:
$(tail -20 "$work/log/server")"
}

server_down()
{
	as_user pg_ctl -D "$PGDATA" -m fast -w -t 300 stop >"$work/log/pg_ctl" 2>&1 ||
		die "the server did not stop"
}

# sql [psql argument ...]: psql without the user's settings, stops at the first error.
sql()
{
	"$bindir/psql" -X -q -v ON_ERROR_STOP=1 "$@"
}

#
# Measuring: every value goes to $raw, a line of section, item, side, round, value
# and unit.  Sides are the schemas bt (btree), gp (the other access method) and plain (no index).
#

record()
{
	printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$@" >>"$raw"
}

run()
{
	sql "$@" >"$work/log/run" 2>&1 || die "$(tail -15 "$work/log/run")
$(tail -5 "$work/log/server")"
}

# collect: the values that functions left in bench.raw.
collect()
{
	sql -At -F $'\t' -c "SELECT * FROM bench.raw" >>"$raw" || exit 1
	run -c "TRUNCATE bench.raw"
}

# timed SECTION ITEM SIDE ROUND SQL: milliseconds and bytes of WAL of one statement, in a session of its own.
timed()
{
	local values

	values=$(sql -At -F ' ' <<-END
		SELECT clock_timestamp() AS t0, pg_current_wal_insert_lsn() AS l0 \gset
		$5;
		SELECT extract(epoch FROM clock_timestamp() - :'t0') * 1000, pg_current_wal_insert_lsn() - :'l0';
	END
	) || exit 1
	values=${values##*$'\n'}
	record "$1" "$2" "$3" "$4" "${values% *}" ms
	record "$1" "$2 wal" "$3" "$4" "${values#* }" bytes
}

# tps SECTION ITEM SIDE ROUND CLIENTS SCRIPT: transactions a second of pgbench, for $seconds
tps()
{
	local value threads

	threads=$(nproc)
	[ "$threads" -lt "$5" ] || threads=$5
	value=$(PGOPTIONS="-c search_path=$3 -c synchronous_commit=off" "$bindir/pgbench" -n -M prepared \
		-c "$5" -j "$threads" -T "$seconds" -D n="$rows" -f "$work/$6" 2>"$work/log/run" |
		sed -n 's/^tps = \([0-9.]*\) (without.*/\1/p')
	[ -n "$value" ] || die "pgbench: $(tail -5 "$work/log/run")"
	record "$1" "$2" "$3" "$4" "$value" tps
}

method() { if [ "$1" = bt ]; then echo btree; else echo "$am"; fi; }

# sides ROUND: both, each first in every second round.
sides() { if [ $(($1 % 2)) = 0 ]; then echo bt gp; else echo gp bt; fi; }

# figures: what figures depend on, as machine.tsv, and the report of all that is in $out.
figures()
{
	local cpu settings

	cpu=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -1)
	settings=$(sql -At -c "SELECT json_object_agg(name, current_setting(name)) FROM pg_settings WHERE name IN
		('shared_buffers', 'maintenance_work_mem', 'max_parallel_maintenance_workers', 'fsync',
		 'synchronous_commit', 'gpuds.device', 'gpuds.host_memory', 'gpuds.device_memory',
		 'gpuds.staging_memory', 'gpuds.visibility_memory')")
	printf '%s\t%s\n' cpu "$cpu${gpu:-}" cpus "$(nproc)" \
		memory_mb "$(awk '/^MemTotal/ { print int($2 / 1024) }' /proc/meminfo)" \
		system "$(. /etc/os-release && echo "$PRETTY_NAME")" kernel "$(uname -sr | sed "s/-.*//")" \
		postgresql "$(sql -At -c "SHOW server_version" | sed 's/ .*//')" access_method "$am" \
		gpuds "$(sed -n "s/^default_version = '\(.*\)'/\1/p" "$here/gpuds.control")" \
		date "$(date -u +%F)" rows "${rows:-}" rounds "${rounds:-}" keys "${keys:-}" bulk "${bulk:-}" \
		device "${device:-cpu}" clock "${clock:-wall}" command "$command" \
		settings "$settings" >"$out/machine.tsv"
	perl "$here/bench/$(basename "$0")_report.pl" "$out" || die "the report failed"
}

# Runs on every exit.
clean_up()
{
	local status=$? data

	trap - EXIT INT TERM HUP
	if [ -n "$work" ] && [ "$keep_work" != 1 ]; then
		for data in "$work/data" "$work/standby"; do
			[ ! -f "$data/postmaster.pid" ] ||
				as_user pg_ctl -D "$data" -m immediate -w stop >/dev/null 2>&1
		done
		cd / && rm -rf "$work"
	fi
	exit $status
}
