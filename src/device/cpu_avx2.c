/*-------------------------------------------------------------------------
 *
 * cpu_avx2.c
 *	  The CPU device's loops with AVX2.
 *
 *-------------------------------------------------------------------------
 */
#if defined(__x86_64__)

#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,bmi,popcnt"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,bmi,popcnt")
#endif

#define SIMD_AVX2
#define CPU_SET avx2
#include "device/cpu_loops.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#else

#include "device/cpu_dispatch.h"

const GpudsCpuKernels gpuds_cpu_avx2 = { 0 };

#endif
