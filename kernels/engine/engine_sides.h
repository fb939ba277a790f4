/*-------------------------------------------------------------------------
 *
 * engine_sides.h
 *	  Copies of side values as the engine has them: one for a tree at most.
 *
 * The changer makes, changes and drops them, so that is done in the order of submission.  A copy is no
 * version of its tree: it changes in place (side_pages.h).
 *
 * A scanner says which copy it is going to read, and then looks whether the tree still has it.  The changer
 * takes a copy away from its tree, and then waits until no scanner says that it reads it.  So either the
 * scanner sees that it is gone, or the changer sees the scanner.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_ENGINE_SIDES_H
#define GPU_ENGINE_SIDES_H

#include "kernels/engine/engine_state.h"

/* Nanoseconds between two looks at scanners that a drop waits for. */
#define GPU_SIDE_WAIT_NS 20000

/* The copy that a request names, if the tree has it; NULL: it has not. */
static inline GpuSideCopy *
gpu_engine_side(GpuEngine *engine, const GpuRequest *request)
{
	GpuSideCopy *copy = engine->side[request->tree];

	return copy != NULL && copy->name == request->side ? copy : NULL;
}

/*
 * Lets a scanner's stream read the copy that its request names; false: the tree does not have it.
 * gpu_scanner_leave_side follows in any case.
 */
static inline bool
gpu_scanner_use_side(GpuEngine *engine, int number, const GpuRequest *request)
{
	GpuScanStream *stream = &engine->scan_stream[number];
	GpuSideCopy *copy = engine->side[request->tree];

	stream->side = GpuSide();
	if (request->form != GPU_GROUPS || request->side == 0)
		return true;
	if (copy == NULL)
		return false;
	engine->side_used[number] = copy;
	if (engine->side[request->tree] != copy || copy->name != request->side)
		return false;
	stream->side = copy->side;
	return true;
}

/* The scanner's stream is through with it. */
static inline void
gpu_scanner_leave_side(GpuEngine *engine, int number)
{
	engine->side_used[number] = NULL;
}

/* Gives the memory of a tree's copy back, if it has one; false: the engine came to its end before. */
static inline bool
gpu_engine_drop_side(GpuEngine *engine, uint32_t tree)
{
	GpuSideCopy *copy = engine->side[tree].exchange(NULL);

	if (copy == NULL)
		return true;
	for (int i = 0; i < GPU_SCANNERS; i++)
	{
		while (engine->side_used[i] == copy)
		{
			/* its memory ends with the pool's */
			if (engine->lost || engine->closing)
				return false;
			std::this_thread::sleep_for(std::chrono::nanoseconds(GPU_SIDE_WAIT_NS));
		}
	}
	gpu_side_copy_close(&engine->pool, copy);
	return true;
}

/* Begins a copy for a tree that is there as the sender expects, in place of the one that it has. */
static inline uint32_t
gpu_changer_begin_side(GpuEngine *engine, const GpuRequest *request)
{
	GpuSideCopy *copy;

	if (request->side == 0 || request->cap <= 0 || request->cap % (int64_t) sizeof(uint64_t) != 0 ||
		request->cap > GROUP_SIDE_WORDS * (int64_t) sizeof(uint64_t) || request->n <= 0 ||
		request->n > (int64_t) GPU_CHUNK_BYTES / request->cap)
		return GPU_NO_REQUEST;
	if (request->guarded && __atomic_load_n(request->guard, __ATOMIC_ACQUIRE) != request->expected)
		return GPU_WITHDRAWN;
	if (!gpu_engine_drop_side(engine, request->tree))
		return GPU_DEVICE_LOST;
	copy = gpu_side_copy_open(&engine->pool, request->side, (uint32_t) request->n, (uint32_t) request->cap);
	if (copy == NULL)
		return GPU_NO_MEMORY;
	engine->side[request->tree] = copy;
	return GPU_OK;
}

/* Puts pages into the copy that a request names. */
static inline uint32_t
gpu_changer_put_side(GpuEngine *engine, const GpuRequest *request)
{
	GpuSideCopy *copy = gpu_engine_side(engine, request);
	const uint64_t most = engine->options.piece_bytes;

	if (copy == NULL)
		return GPU_WITHDRAWN;
	if (request->n < 0 || (uint64_t) request->n > most / copy->side.page_bytes ||
		!gpu_staging_has(engine->options.staging_bytes, request->input,
						 gpu_side_blocks_bytes(request->n) + (uint64_t) request->n * copy->side.page_bytes))
		return GPU_NO_REQUEST;
	if (!gpu_side_copy_put(&engine->change.stream, &engine->pool, copy,
						   (const uint32_t *) ((unsigned char *) engine->options.staging + request->input),
						   engine->device_staging + request->input, request->n))
		return GPU_NO_MEMORY;
	return GPU_OK;
}

/* Bytes of device memory that a tree's copy holds.  The caller is the changer. */
static inline uint64_t
gpu_engine_side_bytes(GpuEngine *engine, uint32_t tree)
{
	const GpuSideCopy *copy = engine->side[tree];

	return copy != NULL ? gpu_side_copy_bytes(copy) : 0;
}

/* Deletes the copies of an engine that nobody uses any more; the pool's memory is gone. */
static inline void
gpu_engine_delete_sides(GpuEngine *engine)
{
	for (std::atomic<GpuSideCopy *> &copy : engine->side)
		delete copy.load();
}

#endif /* GPU_ENGINE_SIDES_H */
