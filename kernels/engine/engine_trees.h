/*-------------------------------------------------------------------------
 *
 * engine_trees.h
 *	  The engine's trees: their structures and their readers.
 *
 * A reader of a tree first pins its version (pins.h), then tests the guard,
 * then takes a view; and unpins when the GPU is through: a scanner after its
 * request, a slot when it has been acknowledged.  The changer frees what no pin
 * protects.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_ENGINE_TREES_H
#define GPU_ENGINE_TREES_H

#include <new>

#include "kernels/engine/engine_sides.h"
#define STRUCTURES_ON_GPU
#include "kernels/structures.h"

/* Nanoseconds between two looks at pins that a change waits for. */
#define GPU_PIN_WAIT_NS 20000

/* Is there such a structure in this build?  A test may ask the engine to do without. */
static inline bool
gpu_engine_has_structure(const GpuEngine *engine, uint32_t number)
{
	return number < STRUCTURE_NUMBERS && (STRUCTURE_BITS & ~engine->options.lacking) >> number & 1;
}

/* The structures that have ranks, by bits. */
static inline uint32_t
gpu_engine_ranked(void)
{
#define STRUCTURE_RANKED(number, NAME, name, Name, title) \
	| (uint32_t) Name##OnGpu::Probe::has_ranks << (number)
	return UINT32_C(0) STRUCTURE_ROWS(STRUCTURE_RANKED);
#undef STRUCTURE_RANKED
}

/* A new object for trees of a structure, which is one of this build; NULL: no memory. */
static inline GpuStructure *
gpu_engine_new_tree(uint32_t structure)
{
	switch (structure)
	{
#define STRUCTURE_CASE(number, NAME, name, Name, title) \
	case number:                                        \
		return new (std::nothrow) Name##OnGpu(structure);
		STRUCTURE_ROWS(STRUCTURE_CASE)
#undef STRUCTURE_CASE
	}
	return NULL;
}

/* The tree of a number; NULL: nothing was ever loaded under it. */
static inline GpuStructure *
gpu_engine_tree(GpuEngine *engine, uint32_t number)
{
	return engine->tree[number].load(std::memory_order_acquire);
}

/*
 * Makes the tree under the request's number one of the structure that is to be loaded;
 * there is no tree now.  NULL: out of memory.  A reader may still look at the object
 * that was there, so it stays until the engine is closed, unless it is used again.
 */
static inline GpuStructure *
gpu_engine_choose_structure(GpuEngine *engine, const GpuRequest *request)
{
	GpuStructure **made = &engine->made[request->tree];
	GpuStructure *tree = *made;

	while (tree != NULL && tree->number != request->structure)
		tree = tree->other;
	if (tree == NULL)
	{
		tree = gpu_engine_new_tree(request->structure);
		if (tree == NULL)
			return NULL;
		tree->other = *made;
		*made = tree;
	}
	engine->tree[request->tree].store(tree, std::memory_order_release);
	return tree;
}

/*
 * Pins a tree and takes a view of it.  NULL: it is not what the sender expects.  guard: NULL, if there is
 * none.  The pin is the caller's to take back either way.
 */
static inline const GpuStructure *
gpu_engine_pin_tree(GpuEngine *engine, PinSlot *pin, uint32_t number, const uint64_t *guard,
					uint64_t expected, GpudsView *view)
{
	const GpuStructure *tree = gpu_engine_tree(engine, number);

	if (tree == NULL)
		return NULL;
	pin_version(pin, (uint64_t) number + 1, tree->version());
	if (guard != NULL && __atomic_load_n(guard, __ATOMIC_ACQUIRE) != expected)
		return NULL;
	return tree->view(&engine->pool, view) ? tree : NULL;
}

/* The same of a request's tree. */
static inline const GpuStructure *
gpu_engine_pin_view(GpuEngine *engine, PinSlot *pin, const GpuRequest *request, GpudsView *view)
{
	return gpu_engine_pin_tree(engine, pin, request->tree, request->guarded ? request->guard : NULL,
							   request->expected, view);
}

/*
 * Takes the pool from the card when the first tree comes: a server that has none
 * leaves the card's memory to others.  False: the card has not so much.
 */
static inline bool
gpu_engine_open_pool(GpuEngine *engine)
{
	GpuCard card;
	char why[200];

	if (engine->pool.base != NULL)
		return true;
	if (engine->options.memory == 0)
	{
		/* Others may have taken or left memory since the engine was opened. */
		if (!gpu_card(engine->options.ordinal, &card, why, sizeof(why)))
			return false;
		engine->memory = card.memory_free / 4 * 3;
	}
	if (!gpu_pool_open(&engine->pool, engine->memory))
		return false;
	engine->memory = gpu_pool_total(&engine->pool);
	return true;
}

/* The oldest version of a tree that is pinned, UINT64_MAX: none. */
static inline uint64_t
gpu_engine_oldest_pin(GpuEngine *engine, uint32_t number)
{
	return pin_oldest(engine->pin, GPU_ENGINE_PINS, (uint64_t) number + 1);
}

/*
 * Takes a tree out of service, and its memory and that of its copy of side values back when its readers are
 * through.  False: the engine came to its end before they were.
 */
static inline bool
gpu_engine_drop_tree(GpuEngine *engine, uint32_t number)
{
	GpuStructure *tree = engine->tree[number];
	uint64_t version;

	if (tree == NULL)
		return true;
	tree->withdraw();
	version = __atomic_load_n(tree->version(), __ATOMIC_SEQ_CST);
	while (gpu_engine_oldest_pin(engine, number) < version)
	{
		/* who closes does not poll, so some pins may stay */
		if (engine->lost || engine->closing)
			return false;
		std::this_thread::sleep_for(std::chrono::nanoseconds(GPU_PIN_WAIT_NS));
	}
	(void) tree->drop(&engine->change);
	return gpu_engine_drop_side(engine, number);
}

/*
 * A tree has given way to another one, which may be loaded: its log begins anew.  Without memory it has none,
 * and its graphs are always compared.
 */
static inline void
gpu_engine_begin_log(GpuEngine *engine, uint32_t number, bool dropped)
{
	GpuChangeLog *log = engine->log[number].load(std::memory_order_acquire);

	if (log != NULL)
		gpu_log_forget(log, dropped);
	else if (!dropped)
		engine->log[number].store(new (std::nothrow) GpuChangeLog(), std::memory_order_release);
}

/* Deletes the trees of an engine that nobody uses any more, and their logs. */
static inline void
gpu_engine_delete_trees(GpuEngine *engine)
{
	for (const auto &place : engine->log)
	{
		GpuChangeLog *log = place.load();

		if (log != NULL)
			gpu_log_forget(log, true);
		delete log;
	}
	for (GpuStructure *tree : engine->made)
	{
		while (tree != NULL)
		{
			GpuStructure *other = tree->other;

			delete tree;
			tree = other;
		}
	}
}

#endif /* GPU_ENGINE_TREES_H */
