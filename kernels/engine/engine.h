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
 * Ways to hand a request (request.h) over:
 *	  - submit: any request; threads of the engine do the work.  Loads, applies,
 *		drops and checks are done one after the other in the order of submission;
 *		scans beside them and beside each other.
 *	  - small: several small scans (gpu_is_small) of any sessions at once, to a
 *		persistent kernel.
 *		They are done when done says so, which the GPU itself sets.
 * Both return at once and are to be called by one thread.
 *
 * A scan sees the tree's version that was current when it was handed over or a
 * later one.  Versions that scans still use are kept.
 *
 * A tree may have a copy of its rows' side values, which comes and goes by requests of its own, and goes with
 * the tree.
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

#include "kernels/runtime/request.h"

#define GPU_ENGINE_ABI 19

/* Trees are named by numbers below this. */
#define GPU_MAX_TREES 65536

/* Requests handed over in one call of small. */
#define GPU_SMALL_BATCH 64

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
	size_t piece_bytes;    /* no request's input, nor its map and rows, nor its output is longer than this */
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
	size_t memory_used;  /* atomic snapshot: held by trees, and by graphs that are not just kept */
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
	uint32_t ranked;     /* those of them that have ranks */
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
