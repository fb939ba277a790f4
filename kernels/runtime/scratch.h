/*-------------------------------------------------------------------------
 *
 * scratch.h
 *	  Working memory of one piece of work, laid out in one span of the pool.
 *
 * A layout is a function that asks for each array in turn.  It is called twice:
 * first with at NULL, to learn how many bytes it takes, and again when
 * gpu_scratch_take has taken them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_SCRATCH_H
#define GPU_SCRATCH_H

#include "kernels/runtime/pool.h"
#include "kernels/runtime/primitives.h"

struct GpuScratch
{
	unsigned char *at; /* NULL: only to be counted */
	size_t used_bytes;
};

/* The next n things of the layout; NULL if they are only counted. */
template <typename T>
GPU_FN T *
gpu_scratch(GpuScratch *scratch, int64_t n)
{
	size_t at = scratch->used_bytes;

	scratch->used_bytes += ((size_t) n * sizeof(T) + 15) / 16 * 16;
	return scratch->at ? (T *) (scratch->at + at) : NULL;
}

/* Takes the memory that a layout has counted; false: there is not so much. */
static inline bool
gpu_scratch_take(GpuPool *pool, GpuSpan *span, GpuScratch *scratch)
{
	if (!gpu_span_take(pool, span, scratch->used_bytes))
		return false;
	scratch->at = (unsigned char *) span->at;
	scratch->used_bytes = 0;
	return true;
}

/* Memory for the stream's sorts and exclusive sums of up to n items (primitives.h). */
static inline void
gpu_scratch_temp(GpuScratch *scratch, GpuStream *s, int64_t n)
{
	if (s->temp_items != n)
		s->temp_bytes = gpu_temp_bytes(n);
	s->temp_items = n;
	s->temp = gpu_scratch<unsigned char>(scratch, (int64_t) s->temp_bytes);
}

#endif /* GPU_SCRATCH_H */
