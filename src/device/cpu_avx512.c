/*-------------------------------------------------------------------------
 *
 * cpu_avx512.c
 *	  The CPU device's loops with AVX-512.
 *
 *-------------------------------------------------------------------------
 */
#if defined(__x86_64__)

#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx2,bmi,popcnt"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx2,bmi,popcnt")
#endif

#define SIMD_AVX512
#define CPU_SET avx512
#include "device/cpu_loops.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#else

#include "device/cpu_dispatch.h"

const GpudsCpuKernels gpuds_cpu_avx512 = { 0 };

#endif
