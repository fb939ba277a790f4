/*-------------------------------------------------------------------------
 *
 * cpu_neon.c
 *	  The CPU device's loops with NEON.
 *
 *-------------------------------------------------------------------------
 */
#if defined(__aarch64__)

#define SIMD_NEON
#define CPU_SET neon
#include "device/cpu_loops.h"

#else

#include "device/cpu_dispatch.h"

const GpudsCpuKernels gpuds_cpu_neon = { 0 };

#endif
