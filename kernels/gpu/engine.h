/*-------------------------------------------------------------------------
 *
 * engine.h
 *	  A GPU as its worker process sees it: trees, and requests that change or
 *	  read them.  Plain C; what is behind it is C++ and CUDA.
 *
 * The library gpuds_cuda.so exports one function, gpuds_gpu_engine.  Its
 * emulation for tests, the same sources compiled for the CPU, exports the
 * same.
 *
 * Requests lie in the staging memory, which the GPU can read and write too.
 * The sender of a request sets the fields of its first part and done = 0, hands
 * it over, and leaves it and all that it refers to alone until done is 1.
 *
 * Ways to hand a request over:
 *	  - submit: any request; threads of the engine do the work.  Loads, applies,
 *		drops and checks are done one after the other in the order of submission;
 *		scans beside them and beside each other.
 *	  - small: several small scans (gpu_is_small) of any sessions at once, to a
 *		resident kernel.
 *		They are done when done says so, which the GPU itself sets.
 * Both return at once and are to be called by one thread.
 *
 * A scan sees the tree's version that was current when it was handed over or a
 * later one.  Versions that scans still use are kept.
 *
 * A request is answered (done = 1) only when nothing on the GPU reads or writes
 * its memory any more.  So when the device is lost (lost says so), requests that
 * are under way, and all that are handed over later, are not answered: the sender
 * has them back when close has returned true.  If it returns false, only the end
 * of the process stops the GPU.
 *
 * No function of the engine throws.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_ENGINE_H
#define GPU_ENGINE_H

#include "kernels/core/entry.h"
#include "kernels/core/measure.h"

#define GPU_ENGINE_ABI 7

/* Trees are named by numbers below this. */
#define GPU_MAX_TREES 65536

/* A tree has no more entries: their ranks are numbers of 32 bits. */
#define GPU_MAX_ENTRIES UINT64_C(0xFFFFFFFE)

/* Scans of no more intervals and entries are small. */
#define GPU_SMALL_INTERVALS 32
#define GPU_SMALL_ENTRIES 256

/* Columns that a scan adds up. */
#define GPU_MEASURES 4

/* Words of a Measured. */
#define GPU_MEASURED_WORDS ((int) (sizeof(Measured) / sizeof(uint64_t)))

/* Requests handed over in one call of small. */
#define GPU_SMALL_BATCH 64

typedef enum GpuRequestKind
{
	GPU_SCAN, /* the next entries of a scan */
	/*
	 * drops the tree, if there is one or a part of one, and begins a new one.  n: entries that will
	 * come at least, 0: not known
	 */
	GPU_LOAD_BEGIN,
	GPU_LOAD_ADD, /* input: GpudsEntry[n], strictly ascending over all calls */
	GPU_LOAD_END, /* publish */
	/* input: GpudsOp[n] in any order; the highest order of an entry has the last word */
	GPU_APPLY,
	/* withdraw the tree, wait for its scans, give all memory back; whatever has been done of its load */
	GPU_DROP,
	GPU_VERIFY /* check the structure; output: text of cap bytes */
} GpuRequestKind;

/* What a scan's output consists of. */
typedef enum GpuForm
{
	GPU_ENTRIES,     /* GpudsEntry, in the scan's order */
	GPU_SORTED_TIDS, /* uint64_t, entry's t & ENTRY_TID_MASK, ascending */
	GPU_COUNT,       /* the same, of entries that are not counted: see GpuRequest */
	GPU_MEASURE      /* results, then entries that are not in them: likewise */
} GpuForm;

typedef enum GpuStatus
{
	GPU_OK,
	GPU_WITHDRAWN,    /* there is no such tree, or *guard is not what was expected */
	GPU_NO_MEMORY,    /* of the device, or of the process; nothing was changed, or what may be done again */
	GPU_TOO_LARGE,    /* the tree would have more than GPU_MAX_ENTRIES; nothing was changed */
	GPU_NO_STRUCTURE, /* GPU_LOAD_BEGIN: this engine does not have that structure */
	GPU_NO_REQUEST,   /* there is no such kind */
	GPU_DAMAGED,      /* GPU_VERIFY found something; output says what */
	GPU_DEVICE_LOST   /* not the engine's answer: the sender's to all that it gets back from close */
} GpuStatus;

/*
 * One request.  input, output and map are offsets in bytes into the staging memory,
 * multiples of 8.
 *
 * GPU_COUNT counts entries by the heap page that they point to, TID >> 16.  The map has
 * two bits a page, page 0 in the lowest bits of the first byte; the lower bit says that
 * all rows of the page are visible to everybody.  Pages behind the end of the map are
 * not all-visible.  Entries on all-visible pages are counted, the TIDs of the others are
 * the output.  Such a scan is a forward one, and is done as a whole or not at all:
 * found above cap says for how many TIDs the output should have had room.
 * The output is undefined then, and the scan has not moved.
 *
 * GPU_MEASURE does the same, and adds up what the counted entries have in some columns.
 * The output has a result for each interval, in the order of the input, or one for all: the
 * number of entries counted, and a Measured of each measure.  Behind the results
 * are the other entries, as GpudsEntry, in no order; cap is the room for them.  Such a
 * scan begins with its first interval.
 */
typedef struct GpuRequest
{
	/* set by the sender */
	uint32_t kind; /* GpuRequestKind */
	uint32_t tree;
	uint32_t form;         /* GpuForm of a scan's output */
	uint32_t nwords;       /* GPU_LOAD_BEGIN: key words, 1 or 2 */
	uint32_t structure;    /* GPU_LOAD_BEGIN: number in kernels/structures.h */
	uint32_t fill_percent; /* GPU_LOAD_BEGIN: 50 to 100 */
	bool forward;          /* scans */
	/* input: one GpudsInterval, then uint64_t[n] to be or'ed into w0 of its ends; else GpudsInterval[n] */
	bool points;
	bool guarded;
	uint64_t input;
	uint64_t output;
	int64_t n;             /* intervals, entries or operations */
	int64_t cap;           /* scans: entries that output has room for, at least 1 */
	uint64_t map;          /* GPU_COUNT, GPU_MEASURE: see above ... */
	uint64_t map_bytes;    /* ... and its length, maybe 0 */
	uint64_t measures;     /* GPU_MEASURE: Measure[nmeasures] in the staging memory */
	uint32_t nmeasures;    /* 0 to GPU_MEASURES */
	bool each;             /* GPU_MEASURE: a result for each interval */
	const uint64_t *guard; /* atomic; if guarded, a scan is only done while ... */
	uint64_t expected;     /* ... *guard has this value */

	/* a scan's progress as in GpudsScan, taken and handed back */
	int64_t next;
	GpudsEntry at;
	bool inside;

	/* set by the engine */
	uint32_t status; /* GpuStatus */
	/*
	 * scans: entries in output, less than cap: the scan is at its end.  GPU_COUNT, GPU_MEASURE:
	 * entries not counted, not above cap: the same.  GPU_APPLY: entries inserted
	 */
	int64_t found;
	int64_t counted;    /* GPU_COUNT, GPU_MEASURE: entries on all-visible pages */
	int64_t deleted;    /* GPU_APPLY */
	uint64_t entries;   /* of the tree: after GPU_LOAD_*, GPU_APPLY, GPU_DROP */
	uint64_t bytes;     /* of device memory that the tree holds: likewise */
	uint32_t launches;  /* kernels launched for this request; small: 0 */
	uint32_t batch;     /* requests that were handed over with it; else than small: 1 */
	uint64_t device_ns; /* time on the device */
	uint64_t bus_bytes; /* to and from it */
	uint32_t done;      /* atomic; set last */

	/* the engine's, from the handing over until done is 1 */
	struct GpuRequest *next_queued;
} GpuRequest;

/* Words of a result: the entries counted, and what has been measured of them. */
KERNEL_FN int64_t
gpu_result_words(int64_t nmeasures)
{
	return 1 + GPU_MEASURED_WORDS * nmeasures;
}

/* Bytes of all results of a request. */
KERNEL_FN size_t
gpu_result_bytes(const GpuRequest *request)
{
	return (size_t) ((request->each ? request->n : 1) * gpu_result_words(request->nmeasures)) *
		   sizeof(uint64_t);
}

/* May a scan go together with others in one launch? */
KERNEL_FN bool
gpu_is_small(const GpuRequest *request)
{
	return request->kind == GPU_SCAN && request->form == GPU_ENTRIES && request->n <= GPU_SMALL_INTERVALS &&
		   request->cap <= GPU_SMALL_ENTRIES;
}

typedef struct GpuEngine GpuEngine;

typedef struct GpuEngineOptions
{
	int ordinal; /* which GPU */
	/*
	 * bytes of the pool, 0: three quarters of what is free; taken from the card at the first
	 * GPU_LOAD_BEGIN
	 */
	size_t memory;
	void *staging; /* page-aligned */
	size_t staging_bytes;
	size_t piece_bytes;    /* no request's input, with its map, or output is longer than this */
	bool emulate_failures; /* test builds: inject is allowed */
	uint32_t lacking;      /* test builds: structures to do without, as in GpuEngineApi */
} GpuEngineOptions;

typedef struct GpuEngineInfo
{
	char name[128]; /* of the card */
	int major;      /* compute capability */
	int minor;
	int driver;          /* CUDA version that the driver supports, 13000 for 13.0 */
	size_t memory_total; /* of the pool; before it is there, what it would be */
	size_t memory_used;  /* atomic snapshot: held by trees */
} GpuEngineInfo;

typedef enum GpuInjection
{
	GPU_INJECT_STICKY,    /* a kernel that faults: the context is lost for good */
	GPU_INJECT_NO_MEMORY, /* the next allocation of tree memory fails */
	GPU_INJECT_BAD_ALLOC, /* the next allocation of the process's memory for a tree fails */
	GPU_INJECT_HANG       /* the next request that is handed over never comes to an end */
} GpuInjection;

typedef struct GpuEngineApi
{
	uint32_t abi;        /* GPU_ENGINE_ABI */
	uint32_t structures; /* that the library has: a bit for each number of kernels/structures.h */
	/*
	 * NULL: why says what is missing, in words for the server's log; *hopeless is set
	 * if it is nothing that comes back: no driver, no card, one that is too old.
	 */
	GpuEngine *(*open)(const GpuEngineOptions *options, bool *hopeless, char *why, size_t whylen);
	/*
	 * Requests in flight are given up without an answer.  Waits for the GPU to come
	 * to an end with them, for at most so long (0: it is known to hang).  True: nothing
	 * writes to the staging memory any more, and all is released.  False: the GPU
	 * is left to itself; the requests' memory can be used again only when this process
	 * has ended, which is to be by _exit: exit handlers wait for the GPU, too.
	 */
	bool (*close)(GpuEngine *engine, uint64_t patience_ns);
	void (*info)(GpuEngine *engine, GpuEngineInfo *info);
	/* Readable when a submitted request has been done since the last poll. */
	int (*wake_fd)(GpuEngine *engine);
	void (*submit)(GpuEngine *engine, GpuRequest *request);
	/* Takes the first ones, up to GPU_SMALL_BATCH, for which there is room now; how many. */
	int (*small)(GpuEngine *engine, GpuRequest *const *requests, int n);
	/* Frees room and versions no longer in use, empties wake_fd. */
	void (*poll)(GpuEngine *engine);
	/* Small requests whose room is not free yet. */
	int (*in_flight)(GpuEngine *engine);
	/*
	 * False while all is well; else why says what happened, in words.  Then nothing is
	 * answered any more: close.
	 */
	bool (*lost)(GpuEngine *engine, char *why, size_t whylen);
	/*
	 * For how long the GPU has had the oldest request that it has not come to an end
	 * with; 0: it has none.  Requests that wait for others to be begun do not count.
	 */
	uint64_t (*oldest_ns)(GpuEngine *engine);
	void (*inject)(GpuEngine *engine, GpuInjection what);
} GpuEngineApi;

#ifdef __cplusplus
extern "C" const GpuEngineApi *gpuds_gpu_engine(void);
#else
extern const GpuEngineApi *gpuds_gpu_engine(void);
#endif

#endif /* GPU_ENGINE_H */
