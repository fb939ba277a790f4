/*-------------------------------------------------------------------------
 *
 * simd.h
 *	  Comparing eight words with one and making entries of them, by vector instructions, and what else
 *	  depends on the processor.
 *
 *-------------------------------------------------------------------------
 */
#ifndef KERNELS_SIMD_H
#define KERNELS_SIMD_H

#include "kernels/core/entry.h"

/*
 * One of SIMD_PLAIN, _AVX512, _AVX2, _SSE42, _NEON may be defined before;
 * else the target decides.
 */
#if !defined(SIMD_PLAIN) && !defined(SIMD_AVX512) && !defined(SIMD_AVX2) && !defined(SIMD_SSE42) && \
	!defined(SIMD_NEON)
#if defined(__CUDACC__)
#define SIMD_PLAIN
#elif defined(__AVX512F__)
#define SIMD_AVX512
#elif defined(__AVX2__)
#define SIMD_AVX2
#elif defined(__SSE4_2__)
#define SIMD_SSE42
#elif defined(__aarch64__) && defined(__ARM_NEON)
#define SIMD_NEON
#else
#define SIMD_PLAIN
#endif
#endif

#if defined(SIMD_AVX512) || defined(SIMD_AVX2) || defined(SIMD_SSE42)
#include <immintrin.h>
#elif defined(SIMD_NEON)
#include <arm_neon.h>
#endif

/* How many ones a mask has before its first zero, counted from bit 0. */
#ifdef __CUDA_ARCH__
#define SIMD_LOW_ONES(mask) (__ffs((int) ~(mask)) - 1)
#define SIMD_PREFETCH(p) ((void) (p))
#else
#define SIMD_LOW_ONES(mask) __builtin_ctz(~(mask))
#define SIMD_PREFETCH(p) __builtin_prefetch(p)
#endif

/*
 * Bit i of *lt: p[i] < x; bit i of *eq: p[i] == x.  p is aligned to 64 bytes.
 * Vector instructions up to AVX2 compare signed numbers: flipping the highest
 * bit of both sides makes that the same.
 */
KERNEL_INLINE void
simd_compare8(const uint64_t *p, uint64_t x, unsigned *lt, unsigned *eq)
{
#if defined(SIMD_AVX512)
	__m512i v = _mm512_load_si512((const void *) p);
	__m512i key = _mm512_set1_epi64((long long) x);

	*lt = _mm512_cmplt_epu64_mask(v, key);
	*eq = _mm512_cmpeq_epi64_mask(v, key);
#elif defined(SIMD_AVX2)
	const __m256i sign = _mm256_set1_epi64x(INT64_MIN);
	__m256i a = _mm256_load_si256((const __m256i *) p);
	__m256i b = _mm256_load_si256((const __m256i *) p + 1);
	__m256i key = _mm256_set1_epi64x((long long) x);
	__m256i high = _mm256_xor_si256(key, sign);

	*eq = (unsigned) _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(a, key))) |
		  (unsigned) _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(b, key))) << 4;
	*lt = (unsigned) _mm256_movemask_pd(
			  _mm256_castsi256_pd(_mm256_cmpgt_epi64(high, _mm256_xor_si256(a, sign)))) |
		  (unsigned) _mm256_movemask_pd(
			  _mm256_castsi256_pd(_mm256_cmpgt_epi64(high, _mm256_xor_si256(b, sign))))
			  << 4;
#elif defined(SIMD_SSE42)
	const __m128i sign = _mm_set1_epi64x(INT64_MIN);
	__m128i key = _mm_set1_epi64x((long long) x);
	__m128i high = _mm_xor_si128(key, sign);
	unsigned l = 0;
	unsigned e = 0;

	for (int i = 0; i < 4; i++)
	{
		__m128i v = _mm_load_si128((const __m128i *) p + i);

		e |= (unsigned) _mm_movemask_pd(_mm_castsi128_pd(_mm_cmpeq_epi64(v, key))) << (2 * i);
		l |= (unsigned) _mm_movemask_pd(_mm_castsi128_pd(_mm_cmpgt_epi64(high, _mm_xor_si128(v, sign))))
			 << (2 * i);
	}
	*lt = l;
	*eq = e;
#elif defined(SIMD_NEON)
	static const uint64_t bits[8] = { 1, 2, 4, 8, 16, 32, 64, 128 };
	uint64x2_t key = vdupq_n_u64(x);
	uint64x2_t l = vdupq_n_u64(0);
	uint64x2_t e = vdupq_n_u64(0);

	for (int i = 0; i < 8; i += 2)
	{
		uint64x2_t v = vld1q_u64(p + i);
		uint64x2_t bit = vld1q_u64(bits + i);

		l = vorrq_u64(l, vandq_u64(vcltq_u64(v, key), bit));
		e = vorrq_u64(e, vandq_u64(vceqq_u64(v, key), bit));
	}
	*lt = (unsigned) vaddvq_u64(l);
	*eq = (unsigned) vaddvq_u64(e);
#else
	unsigned l = 0;
	unsigned e = 0;

	for (int i = 0; i < 8; i++)
	{
		l |= (unsigned) (p[i] < x) << i;
		e |= (unsigned) (p[i] == x) << i;
	}
	*lt = l;
	*eq = e;
#endif
}

/*
 * Makes eight entries of three arrays of words, of which w1 is NULL if it has zeros.  Arrays are aligned to
 * 64 bytes.
 */
KERNEL_INLINE void
simd_entries8(const uint64_t *w0, const uint64_t *w1, const uint64_t *t, GpudsEntry *out)
{
#if defined(SIMD_AVX512)
	/* Places of words in two vectors: below 8 in the first one. */
	const __m512i words_a = _mm512_setr_epi64(0, 8, 0, 1, 9, 0, 2, 10);
	const __m512i words_b = _mm512_setr_epi64(0, 3, 11, 0, 4, 12, 0, 5);
	const __m512i words_c = _mm512_setr_epi64(13, 0, 6, 14, 0, 7, 15, 0);
	const __m512i ties_a = _mm512_setr_epi64(0, 1, 8, 3, 4, 9, 6, 7);
	const __m512i ties_b = _mm512_setr_epi64(10, 1, 2, 11, 4, 5, 12, 7);
	const __m512i ties_c = _mm512_setr_epi64(0, 13, 2, 3, 14, 5, 6, 15);
	const __m512i high = _mm512_load_si512((const void *) w0);
	const __m512i low = w1 ? _mm512_load_si512((const void *) w1) : _mm512_setzero_si512();
	const __m512i ties = _mm512_load_si512((const void *) t);
	uint64_t *to = (uint64_t *) out;

	_mm512_storeu_si512((void *) to, _mm512_permutex2var_epi64(_mm512_permutex2var_epi64(high, words_a, low),
															   ties_a, ties));
	_mm512_storeu_si512((void *) (to + 8),
						_mm512_permutex2var_epi64(_mm512_permutex2var_epi64(high, words_b, low), ties_b,
												  ties));
	_mm512_storeu_si512((void *) (to + 16),
						_mm512_permutex2var_epi64(_mm512_permutex2var_epi64(high, words_c, low), ties_c,
												  ties));
#else
	for (int i = 0; i < 8; i++)
	{
		out[i].w0 = w0[i];
		out[i].w1 = w1 ? w1[i] : 0;
		out[i].t = t[i];
	}
#endif
}

#endif /* KERNELS_SIMD_H */
