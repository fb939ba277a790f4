# test/gpu.sh: what test/gpu and the bench need of a host with an NVIDIA GPU.
# Sourced after test/lib.sh, never run.
#
# Set by options of the callers:
#   bundle    tarball with a server to unpack at /, or empty
#   built     folder with built libraries and programs, or empty
# Set here:
#   arch      how the first GPU's machine code is called: "90" for 9.0
#   nvcc      the CUDA compiler, if there is one

bundle='' built='' arch='' nvcc=''

# Shows the GPU, unpacks the server, makes the user who runs it.
prepare_gpu_host()
{
	nvidia-smi --query-gpu=name,driver_version,memory.total,compute_cap --format=csv,noheader ||
		die "nvidia-smi finds no GPU"
	arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d '. ')
	nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
	PATH=$PATH:/usr/local/cuda/bin
	if [ -n "$bundle" ]; then
		tar -xzf "$bundle" -C / || die "cannot unpack $bundle"
	fi
	if [ -d /opt/pglibs ]; then export LD_LIBRARY_PATH=/opt/pglibs; fi
	export LC_ALL=C
	user=
	if [ "$(id -u)" = 0 ]; then
		user=postgres
		getent passwd $user >/dev/null || useradd --system --home-dir / --shell /bin/sh $user ||
			die "cannot make user $user"
	fi
}

# install_extension [make argument ...]: takes the libraries from $built or builds
# them, and installs into the copy of the server.
install_extension()
{
	local make=(make -s -C "$build" -j"$(nproc)" with_llvm=no CUDA_ARCHS="$arch" PG_CONFIG="$pg_config" "$@")

	if [ -n "$built" ] && [ -e "$built/gpuds.so" ] && [ -e "$built/gpuds_cuda.so" ]; then
		cp --remove-destination "$built"/gpuds.so "$built"/gpuds_cuda.so "$pg_root$("$pg_config" --pkglibdir)/" &&
			cp --remove-destination "$build"/gpuds.control "$build"/src/gpuds--*.sql "$pg_root$("$pg_config" --sharedir)/extension/"
	else
		as_user "${make[@]}" && as_user "${make[@]}" install DESTDIR="$pg_root"
	fi
}
