/*-------------------------------------------------------------------------
 *
 * simd.h
 *	  Comparing eight words with one, by the vector instructions of the
 *	  translation unit's target, and what else depends on the machine.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GK_SIMD_H
#define GK_SIMD_H

#include "kernels/gk.h"

/* How many ones a mask has before its first zero, counted from bit 0. */
#ifdef __CUDA_ARCH__
#define GK_LOW_ONES(mask) (__ffs((int) ~(mask)) - 1)
#define GK_PREFETCH(p) ((void) (p))
#else
#define GK_LOW_ONES(mask) __builtin_ctz(~(mask))
#define GK_PREFETCH(p) __builtin_prefetch(p)
#endif

/*
 * Bit i of *lt: p[i] < x; bit i of *eq: p[i] == x.  p is aligned to 64 bytes.
 */
GK_INLINE void
gk_compare8(const uint64_t *p, uint64_t x, unsigned *lt, unsigned *eq)
{
	unsigned l = 0;
	unsigned e = 0;

	for (int i = 0; i < 8; i++)
	{
		l |= (unsigned) (p[i] < x) << i;
		e |= (unsigned) (p[i] == x) << i;
	}
	*lt = l;
	*eq = e;
}

#endif /* GK_SIMD_H */
