/*-------------------------------------------------------------------------
 *
 * cpu_dispatch.c
 *	  Chooses the loops of the CPU device for the machine it runs on.
 *
 *-------------------------------------------------------------------------
 */
#include "device/cpu_dispatch.h"

#define CPU_VARIANTS 5

static const GpudsCpuKernels *variants[CPU_VARIANTS];
static int nvariants = 0;

static void
add_variant(const GpudsCpuKernels *kernels, bool runs_here)
{
	if (runs_here && kernels->name)
		variants[nvariants++] = kernels;
}

const GpudsCpuKernels *const *
gpuds_cpu_variants(int *n)
{
	if (nvariants == 0)
	{
#if defined(__x86_64__)
		bool bits;

		__builtin_cpu_init();
		bits = __builtin_cpu_supports("bmi") && __builtin_cpu_supports("popcnt");
		add_variant(&gpuds_cpu_avx512, bits && __builtin_cpu_supports("avx512f"));
		add_variant(&gpuds_cpu_avx2, bits && __builtin_cpu_supports("avx2"));
		add_variant(&gpuds_cpu_sse42, __builtin_cpu_supports("sse4.2"));
#endif
		add_variant(&gpuds_cpu_neon, true);
		add_variant(&gpuds_cpu_plain, true);
	}
	*n = nvariants;
	return variants;
}

const GpudsCpuKernels *
gpuds_cpu_kernels(void)
{
	int n;

	return gpuds_cpu_variants(&n)[0];
}
