/*-------------------------------------------------------------------------
 *
 * cuda_requests.h
 *	  What the files of the CUDA device share: a call of device_ops.h becomes requests.
 *
 * A session has at most one request to a card, in its mailbox there, and at most one span
 * of the card's staging memory, which it holds while the request runs and its answer is read.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_CUDA_REQUESTS_H
#define GPUDS_CUDA_REQUESTS_H

#include "device/device_ops.h"

/* How a tree is divided, as who sends a request has seen it before. */
typedef struct GpudsCudaLayout
{
	uint64 version;
	int n;                             /* parts */
	GpudsEntry last[GPUDS_MOST_CARDS]; /* of each, if there are several */
} GpudsCudaLayout;

/* What a call of device.h is about. */
typedef struct GpudsCudaPlace
{
	GpudsDeviceTree *tree;
	const GpudsCudaLayout *layout;
	pg_atomic_uint64 *guard;
	uint64 expected;
} GpudsCudaPlace;

/* What is the same for all requests of a scan of one part. */
typedef struct GpudsCudaCall
{
	GpudsDeviceTree *tree;
	GpudsCudaPart *part;
	uint64 layout;
	GpudsDeviceTree *other; /* that a count joins it with, or NULL */
	uint64 other_layout;
	pg_atomic_uint64 *guard;
	uint64 expected;
	uint64 epoch;
	GpuForm form;
	bool forward;
	size_t item_bytes;
} GpudsCudaCall;

/* A request to a card, one of several that may be under way at once; what it is for is around it. */
typedef struct GpudsCudaSend
{
	GpudsSent sent; /* its mailbox is to be closed when there is an answer; NULL: there is none */
	uint64 epoch;
	size_t least; /* bytes of staging memory that it takes; most 0: the mailbox has room */
	size_t most;
	void (*fill)(struct GpudsCudaSend *send); /* puts the request in the mailbox, raises no error */
} GpudsCudaSend;

/* A piece of a scan that a part is asked for. */
typedef struct GpudsCudaAsk
{
	GpudsCudaSend send;
	const GpudsCudaCall *call;
	GpudsScan *scan;
	int64 n;   /* intervals */
	int64 cap; /* items */
	GpudsStagingSpan span;
} GpudsCudaAsk;

/* Where the parts of a count are in its staging memory, in bytes. */
typedef struct GpudsCountLayout
{
	size_t items; /* behind the results: TIDs or entries */
	size_t map;
	size_t row_places;
	size_t row_pages;
	size_t agg_columns;
	size_t groups;
	size_t join; /* and what belongs to it: */
	size_t join_map;
	size_t join_row_places;
	size_t join_row_pages;
	size_t touched;
	size_t edges;
	size_t input;
} GpudsCountLayout;

/* What an attempt at a count has room for. */
typedef struct GpudsCountAttempt
{
	int64 others;    /* entries or TIDs */
	uint32 spread;   /* of the table of groups */
	int64 entries;   /* to go through, of groups in order; else 0 */
	int64 intervals; /* that go with the request, at most */
} GpudsCountAttempt;

/* A piece of a scan that a part is to count. */
typedef struct GpudsCudaCounting
{
	GpudsCudaSend send;
	GpudsCudaCall *call;
	GpudsScan *scan;
	const GpudsCountSpec *spec;
	GpudsCount *count;
	GpudsCountAttempt attempt;
	GpudsCountLayout layout;
	int64 n; /* intervals */
} GpudsCudaCounting;

/* What a part is asked next: the scan, but for the intervals before low and others that do not reach it. */
typedef struct GpudsCudaTurn
{
	int part;
	int64 low;
	GpudsScan scan;
} GpudsCudaTurn;

/* What a part is asked about, of what all are. */
typedef struct GpudsCudaShare
{
	GpudsScan scan;
	/* If intervals are in no order, copies of the part's, and their places among all, if these matter: */
	uint64 *points; /* or else: */
	GpudsInterval *intervals;
	uint32 *places;
	int64 size; /* intervals that there is room for */
	/* Otherwise a place is the number in the scan, less this: */
	int64 base;
} GpudsCudaShare;

typedef struct GpudsCudaShares
{
	GpudsCudaCall calls[GPUDS_MOST_CARDS];
	GpudsCudaShare share[GPUDS_MOST_CARDS];
	int n;
} GpudsCudaShares;

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

/* cuda_layout.c */
extern GpudsCudaPart *gpuds_cuda_part(GpudsDeviceTree *tree, int part);
extern int gpuds_cuda_part_card(const GpudsDeviceTree *tree, int part);
extern bool gpuds_cuda_read_layout(GpudsDeviceTree *tree, GpudsCudaLayout *layout);
extern void gpuds_cuda_begin_layout(GpudsDeviceTree *tree);
extern void gpuds_cuda_end_layout(GpudsDeviceTree *tree);

/* The part, from one on, that a number belongs to, which is in none before. */
static inline int
gpuds_cuda_part_from(const GpudsCudaLayout *layout, int from, const GpudsEntry *e)
{
	int part = from;

	while (part < layout->n - 1 && entry_less(&layout->last[part], e))
		part++;
	return part;
}

/* cuda_parts.c */
extern int gpuds_cuda_all_turns(const GpudsCudaLayout *layout, const GpudsScan *scan, bool forward,
								GpudsCudaTurn turns[GPUDS_MOST_CARDS]);
extern int64 gpuds_cuda_parts_scan(GpudsDeviceTree *tree, pg_atomic_uint64 *guard, uint64 expected,
								   GpudsScan *scan, bool forward, GpudsEntry *out, int64 cap);
extern bool gpuds_cuda_parts_tids(GpudsDeviceTree *tree, pg_atomic_uint64 *guard, uint64 expected,
								  GpudsScan *scan, int64 cap, GpudsTids *tids);
extern bool gpuds_cuda_parts_rank(GpudsDeviceTree *tree, pg_atomic_uint64 *guard, uint64 expected,
								  const GpudsInterval *intervals, const uint64 *ranks, int64 n,
								  GpudsRanked *ranked);
extern GpudsCountStatus gpuds_cuda_parts_count(GpudsDeviceTree *tree, pg_atomic_uint64 *guard,
											   uint64 expected, GpudsScan *scan, const GpudsCountSpec *spec,
											   GpudsCount *count);

/* Is a tree divided as it was then, and no load has begun since?  What was answered meanwhile is of that. */
static inline bool
gpuds_cuda_is_layout(GpudsDeviceTree *tree, uint64 version)
{
	/* pairs with that of gpuds_cuda_begin_layout */
	pg_read_barrier();
	return pg_atomic_read_u64(&tree->cuda.layout) == version;
}

/* cuda.c */
extern GpudsDeviceStatus gpuds_cuda_status(uint32 status);
extern void gpuds_cuda_count_work(const GpuRequest *request);
extern void gpuds_cuda_side_gone(GpudsDeviceTree *tree, uint64 name);

/* cuda_send.c */
extern bool gpuds_cuda_send(GpudsCudaSend **sends, int n);
extern void gpuds_cuda_give_back(GpudsCudaSend *send);

/* cuda_scan.c, of a part */
extern void gpuds_cuda_begin_call(GpudsCudaCall *call, GpudsDeviceTree *tree, const GpudsCudaLayout *layout,
								  int part, pg_atomic_uint64 *guard, uint64 expected, bool forward);
extern void gpuds_cuda_set_scan(const GpudsCudaCall *call, GpuRequest *request, const GpudsScan *scan,
								int64 n, int64 cap, char *input, char *output);
extern bool gpuds_cuda_accept(const GpudsCudaCall *call, const GpuRequest *request, GpudsScan *scan, int64 n,
							  int64 cap);
extern void gpuds_cuda_begin_entries(GpudsCudaAsk *ask, GpudsCudaCall *call, GpudsScan *scan, int64 cap);
extern void gpuds_cuda_begin_tids(GpudsCudaAsk *ask, GpudsCudaCall *call, GpudsScan *scan, int64 cap);
extern int64 gpuds_cuda_take_answer(GpudsCudaAsk *ask, void *out);
extern int64 gpuds_cuda_scan(GpudsCudaCall *call, GpudsScan *scan, GpudsEntry *out, int64 cap);
extern bool gpuds_cuda_scan_tids(GpudsCudaCall *call, GpudsScan *scan, int64 cap, GpudsTids *tids);
extern bool gpuds_cuda_rank(const GpudsCudaCall *call, const GpudsInterval *intervals, const uint64 *ranks,
							int64 n, GpudsRanked *ranked);

/* cuda_count.c, likewise */
extern GpudsCountStatus gpuds_cuda_begin_count(GpudsCudaCounting *counting, GpudsCudaCall *call,
											   GpudsScan *scan, const GpudsCountSpec *spec, GpudsCount *count,
											   GpudsStagingSpan *span);
extern GpudsCountStatus gpuds_cuda_take_count(GpudsCudaCounting *counting, bool *again);
extern GpudsCountStatus gpuds_cuda_count(GpudsCudaCall *call, GpudsScan *scan, const GpudsCountSpec *spec,
										 GpudsCount *count);
extern int64 gpuds_cuda_most_unsorted(const GpudsCountSpec *spec);

/* cuda_shares.c */
extern void *gpuds_cuda_resize(void *memory, int64 items, size_t bytes);
extern void gpuds_cuda_divide(GpudsCudaShares *all, const GpudsCudaPlace *place, const GpudsScan *scan,
							  int64 n, bool places);
extern void gpuds_cuda_divide_ascending(GpudsCudaShares *all, const GpudsCudaPlace *place,
										const GpudsScan *scan, int64 n);
extern void gpuds_cuda_free_shares(GpudsCudaShares *all);

/* cuda_together.c */
extern GpudsCountStatus gpuds_cuda_count_together(const GpudsCudaPlace *place, GpudsScan *scan,
												  const GpudsCountSpec *spec, GpudsCount *all);
extern bool gpuds_cuda_tids_together(const GpudsCudaPlace *place, GpudsScan *scan, int64 cap, GpudsTids *all,
									 bool *many);

/* cuda_side.c */
extern GpudsDeviceStatus gpuds_cuda_side_begin(GpudsDeviceTree *tree, pg_atomic_uint64 *guard,
											   uint64 expected, uint64 name, int rows, int row_bytes);
extern GpudsDeviceStatus gpuds_cuda_side_put(GpudsDeviceTree *tree, uint64 name, const GpudsSidePut *put);
extern bool gpuds_cuda_side_drop(GpudsDeviceTree *tree);

/* cuda_graph.c */
extern uint64 gpuds_cuda_owner(void);
extern GpudsDeviceStatus gpuds_cuda_step_graph(uint64 epoch, GpudsGraphStep *step, bool patient);

#endif /* GPUDS_CUDA_REQUESTS_H */
