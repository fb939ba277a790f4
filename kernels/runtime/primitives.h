/*-------------------------------------------------------------------------
 *
 * primitives.h
 *	  Sorts and exclusive sums by the whole device: CUB's, or the emulation's.
 *
 * All of them work on device memory, and have at most GPU_MAX_ITEMS items.  Their
 * working memory is s->temp, of which the stream's owner provides at least
 * gpu_temp_bytes of the number of items.  Errors stay with the stream (runtime.h).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_PRIMITIVES_H
#define GPU_PRIMITIVES_H

#ifdef GPU_EMULATED
#include <algorithm>
#else
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#endif

#include "kernels/runtime/runtime.h"

/* Items that one sort or sum can have. */
#define GPU_MAX_ITEMS INT32_MAX

/* How much working memory n items take at most. */
static inline size_t gpu_temp_bytes(int64_t n);

/*
 * Sort by bits low .. high - 1 of the keys, each value going with its key;
 * equal keys stay in order.  The result is in *keys and *values, which are
 * exchanged with the others as needed.
 */
static inline void gpu_sort_pairs(GpuStream *s, uint64_t **keys, uint64_t **other_keys, uint32_t **values,
								  uint32_t **other_values, int64_t n, int low, int high);

/* The same without values. */
static inline void gpu_sort_keys(GpuStream *s, uint64_t **keys, uint64_t **other_keys, int64_t n, int low,
								 int high);

/* Set each of n numbers to the sum of those before it; T is uint32_t or uint64_t, out may be in. */
template <typename T> static inline void gpu_exclusive_sum(GpuStream *s, const T *in, T *out, int64_t n);

#ifdef GPU_EMULATED

static inline size_t
gpu_temp_bytes(int64_t n)
{
	return 256 + (size_t) n * sizeof(uint32_t);
}

/* Bits low .. high - 1. */
static inline uint64_t
gpu_emulated_bits(int low, int high)
{
	return (high - low >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << (high - low)) - 1) << low;
}

static inline void
gpu_sort_pairs(GpuStream *s, uint64_t **keys, uint64_t **other_keys, uint32_t **values,
			   uint32_t **other_values, int64_t n, int low, int high)
{
	uint64_t mask = gpu_emulated_bits(low, high);
	uint32_t *order = (uint32_t *) s->temp;

	if (n <= 1 || low >= high)
		return;
	s->launches++;
	if (!gpu_usable(s))
		return;
	for (int64_t i = 0; i < n; i++)
		order[i] = (uint32_t) i;
	std::stable_sort(order, order + n,
					 [&](uint32_t a, uint32_t b) { return ((*keys)[a] & mask) < ((*keys)[b] & mask); });
	for (int64_t i = 0; i < n; i++)
	{
		(*other_keys)[i] = (*keys)[order[i]];
		(*other_values)[i] = (*values)[order[i]];
	}
	std::swap(*keys, *other_keys);
	std::swap(*values, *other_values);
}

static inline void
gpu_sort_keys(GpuStream *s, uint64_t **keys, uint64_t **other_keys, int64_t n, int low, int high)
{
	uint64_t mask = gpu_emulated_bits(low, high);

	(void) other_keys;
	if (n <= 1 || low >= high)
		return;
	s->launches++;
	if (gpu_usable(s))
		std::stable_sort(*keys, *keys + n, [&](uint64_t a, uint64_t b) { return (a & mask) < (b & mask); });
}

template <typename T>
static inline void
gpu_exclusive_sum(GpuStream *s, const T *in, T *out, int64_t n)
{
	T sum = 0;

	if (n <= 0)
		return;
	s->launches++;
	if (!gpu_usable(s))
		return;
	for (int64_t i = 0; i < n; i++)
	{
		T v = in[i];

		out[i] = sum;
		sum += v;
	}
}

#else

/* Each is called with temp NULL to learn how much working memory it takes. */
static inline cudaError_t
gpu_cub_sort_pairs(void *temp, size_t *bytes, cub::DoubleBuffer<uint64_t> *keys,
				   cub::DoubleBuffer<uint32_t> *values, int64_t n, int low, int high, cudaStream_t stream)
{
	return cub::DeviceRadixSort::SortPairs(temp, *bytes, *keys, *values, (int) n, low, high, stream);
}

static inline cudaError_t
gpu_cub_sort(void *temp, size_t *bytes, cub::DoubleBuffer<uint64_t> *keys, int64_t n, int low, int high,
			 cudaStream_t stream)
{
	return cub::DeviceRadixSort::SortKeys(temp, *bytes, *keys, (int) n, low, high, stream);
}

template <typename T>
static inline cudaError_t
gpu_cub_exclusive_sum(void *temp, size_t *bytes, const T *in, T *out, int64_t n, cudaStream_t stream)
{
	return cub::DeviceScan::ExclusiveSum(temp, *bytes, in, out, (int) n, stream);
}

static inline size_t
gpu_temp_bytes(int64_t n)
{
	cub::DoubleBuffer<uint64_t> keys(NULL, NULL);
	cub::DoubleBuffer<uint32_t> values(NULL, NULL);
	size_t most = 256;
	size_t bytes[4] = { 0, 0, 0, 0 };

	gpu_cub_sort_pairs(NULL, &bytes[0], &keys, &values, n, 0, 64, NULL);
	gpu_cub_sort(NULL, &bytes[1], &keys, n, 0, 64, NULL);
	gpu_cub_exclusive_sum(NULL, &bytes[2], (const uint32_t *) NULL, (uint32_t *) NULL, n, NULL);
	gpu_cub_exclusive_sum(NULL, &bytes[3], (const uint64_t *) NULL, (uint64_t *) NULL, n, NULL);
	for (int i = 0; i < 4; i++)
		most = bytes[i] > most ? bytes[i] : most;
	return most;
}

static inline void
gpu_sort_pairs(GpuStream *s, uint64_t **keys, uint64_t **other_keys, uint32_t **values,
			   uint32_t **other_values, int64_t n, int low, int high)
{
	cub::DoubleBuffer<uint64_t> k(*keys, *other_keys);
	cub::DoubleBuffer<uint32_t> v(*values, *other_values);

	if (n <= 1 || low >= high)
		return;
	s->launches++;
	if (!gpu_ok(s) ||
		!gpu_check(s, "sort", gpu_cub_sort_pairs(s->temp, &s->temp_bytes, &k, &v, n, low, high, s->stream)))
		return;
	*keys = k.Current();
	*other_keys = k.Alternate();
	*values = v.Current();
	*other_values = v.Alternate();
}

static inline void
gpu_sort_keys(GpuStream *s, uint64_t **keys, uint64_t **other_keys, int64_t n, int low, int high)
{
	cub::DoubleBuffer<uint64_t> k(*keys, *other_keys);

	if (n <= 1 || low >= high)
		return;
	s->launches++;
	if (!gpu_ok(s) ||
		!gpu_check(s, "sort", gpu_cub_sort(s->temp, &s->temp_bytes, &k, n, low, high, s->stream)))
		return;
	*keys = k.Current();
	*other_keys = k.Alternate();
}

template <typename T>
static inline void
gpu_exclusive_sum(GpuStream *s, const T *in, T *out, int64_t n)
{
	if (n <= 0)
		return;
	s->launches++;
	if (gpu_ok(s))
		gpu_check(s, "exclusive sum", gpu_cub_exclusive_sum(s->temp, &s->temp_bytes, in, out, n, s->stream));
}

#endif

#endif /* GPU_PRIMITIVES_H */
