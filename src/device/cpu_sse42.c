/*-------------------------------------------------------------------------
 *
 * cpu_sse42.c
 *	  The CPU device's loops with SSE4.2.
 *
 *-------------------------------------------------------------------------
 */
#if defined(__x86_64__)

#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("sse4.2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("sse4.2")
#endif

#define SIMD_SSE42
#define CPU_SET sse42
#include "device/cpu_loops.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#else

#include "device/cpu_dispatch.h"

const GpudsCpuKernels gpuds_cpu_sse42 = { 0 };

#endif
