/*-------------------------------------------------------------------------
 *
 * cuda_requests.h
 *	  What the files of the CUDA device share: a call of device_ops.h becomes requests.
 *
 * A session has at most one request, in its mailbox, and at most one span of staging
 * memory, which it holds while a request runs and its answer is read.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_CUDA_REQUESTS_H
#define GPUDS_CUDA_REQUESTS_H

#include "device/device_ops.h"

/* What is the same for all requests of a scan. */
typedef struct GpudsCudaCall
{
	GpudsDeviceTree *tree;
	GpudsDeviceTree *other; /* that a count joins it with, or NULL */
	pg_atomic_uint64 *guard;
	uint64 expected;
	uint64 epoch;
	GpuForm form;
	bool forward;
	size_t item_bytes;
} GpudsCudaCall;

/* Bytes that n intervals of a scan take in a request. */
static inline size_t
gpuds_cuda_input_bytes(const GpudsScan *scan, int64 n)
{
	return scan->points ? sizeof(GpudsInterval) + n * sizeof(uint64) : n * sizeof(GpudsInterval);
}

/* How many intervals of a scan so many bytes have room for. */
static inline int64
gpuds_cuda_most_intervals(const GpudsScan *scan, size_t bytes)
{
	return scan->points ? (bytes - sizeof(GpudsInterval)) / sizeof(uint64) : bytes / sizeof(GpudsInterval);
}

/* Intervals that are not answered yet. */
static inline int64
gpuds_cuda_left(const GpudsCudaCall *call, const GpudsScan *scan)
{
	return call->forward ? scan->n - scan->next : scan->next;
}

/* cuda.c */
extern GpudsDeviceStatus gpuds_cuda_status(uint32 status);
extern void gpuds_cuda_count_work(const GpuRequest *request);
extern void gpuds_cuda_side_gone(GpudsDeviceTree *tree, uint64 name);

/* cuda_scan.c */
extern void gpuds_cuda_begin_call(GpudsCudaCall *call, GpudsDeviceTree *tree, pg_atomic_uint64 *guard,
								  uint64 expected, bool forward);
extern GpuRequest *gpuds_cuda_ask(const GpudsCudaCall *call, GpudsMailbox *mailbox, GpudsStagingSpan *span,
								  GpudsScan *scan, int64 n, int64 cap, char *input, char *output);
extern int64 gpuds_cuda_scan(GpudsDeviceTree *tree, pg_atomic_uint64 *guard, uint64 expected, GpudsScan *scan,
							 bool forward, GpudsEntry *out, int64 cap);
extern bool gpuds_cuda_scan_tids(GpudsDeviceTree *tree, pg_atomic_uint64 *guard, uint64 expected,
								 GpudsScan *scan, int64 cap, GpudsTids *tids);
extern bool gpuds_cuda_rank(GpudsDeviceTree *tree, pg_atomic_uint64 *guard, uint64 expected,
							const GpudsInterval *intervals, const uint64 *ranks, int64 n,
							GpudsRanked *ranked);

/* cuda_count.c */
extern GpudsCountStatus gpuds_cuda_count(GpudsDeviceTree *tree, pg_atomic_uint64 *guard, uint64 expected,
										 GpudsScan *scan, const GpudsCountSpec *spec, GpudsCount *count);
extern int64 gpuds_cuda_most_unsorted(const GpudsCountSpec *spec);

/* cuda_side.c */
extern GpudsDeviceStatus gpuds_cuda_side_begin(GpudsDeviceTree *tree, pg_atomic_uint64 *guard,
											   uint64 expected, uint64 name, int rows, int row_bytes);
extern GpudsDeviceStatus gpuds_cuda_side_put(GpudsDeviceTree *tree, uint64 name, const GpudsSidePut *put);
extern bool gpuds_cuda_side_drop(GpudsDeviceTree *tree);

/* cuda_graph.c */
extern uint64 gpuds_cuda_owner(void);
extern GpudsDeviceStatus gpuds_cuda_step_graph(uint64 epoch, GpudsGraphStep *step, bool patient);

#endif /* GPUDS_CUDA_REQUESTS_H */
