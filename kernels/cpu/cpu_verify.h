/*-------------------------------------------------------------------------
 *
 * cpu_verify.h
 *	  Checking the memory of a tree in an arena, beside what the structure checks of it.
 *
 * That memory is neither lost nor used twice is checked by marking every unit that the tree, its queue
 * of replaced pieces and its free lists hold, and comparing with the chunks of its
 * space.
 *
 *-------------------------------------------------------------------------
 */
#ifndef KERNELS_CPU_VERIFY_H
#define KERNELS_CPU_VERIFY_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/cpu_versioned.h"

typedef struct CpuVerify
{
	const Arena *arena;
	const CpuTree *tree;
	uint64_t *owned;  /* a bit a unit: belongs to the tree's chunks */
	uint64_t *marked; /* a bit a unit: found in use or free */
	uint64_t nmarked;
	char *why;
	size_t whylen;
} CpuVerify;

/* Say what is wrong; returns false. */
__attribute__((format(printf, 2, 3))) HOST_FN bool
cpu_verify_wrong(CpuVerify *v, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(v->why, v->whylen, format, args);
	va_end(args);
	return false;
}

/* Note that units are used, for the first time and inside the tree's memory. */
HOST_FN bool
cpu_verify_mark(CpuVerify *v, ArenaRef ref, int units, const char *what)
{
	uint64_t limit = v->arena->nchunks * ARENA_CHUNK_UNITS;

	for (int i = 0; i < units; i++)
	{
		uint64_t unit = (uint64_t) ref + (uint64_t) i;

		if (unit >= limit || (v->owned[unit / 64] >> (unit % 64) & 1) == 0)
			return cpu_verify_wrong(v, "%s at unit %llu is outside the tree's memory", what,
									(unsigned long long) unit);
		if (v->marked[unit / 64] >> (unit % 64) & 1)
			return cpu_verify_wrong(v, "%s at unit %llu is used twice", what, (unsigned long long) unit);
		v->marked[unit / 64] |= UINT64_C(1) << (unit % 64);
		v->nmarked++;
	}
	return true;
}

/* The pieces of memory that wait to be freed, and those that are free. */
HOST_FN bool
cpu_verify_free(CpuVerify *v)
{
	const ArenaSpace *space = &v->tree->space;
	uint64_t version = 0;
	ArenaRef tail = 0;

	for (ArenaRef ref = v->tree->retired.head; ref != 0;)
	{
		const CpuQueueUnit *unit = (const CpuQueueUnit *) arena_at(v->arena, ref);

		if (!cpu_verify_mark(v, ref, 1, "queue"))
			return false;
		if (unit->version < version || unit->version > v->tree->version)
			return cpu_verify_wrong(v, "queue at unit %u is of version %llu, out of order", ref,
									(unsigned long long) unit->version);
		if (unit->n > CPU_QUEUE_ITEMS)
			return cpu_verify_wrong(v, "queue at unit %u has %u items", ref, unit->n);
		version = unit->version;
		for (uint32_t i = 0; i < unit->n; i++)
		{
			uint64_t units = unit->item[i] >> 32;

			if (units < 1 || (units > ARENA_MAX_UNITS && units != ARENA_CHUNK_UNITS))
				return cpu_verify_wrong(v, "queue at unit %u holds a piece of %u units", ref,
										(unsigned) units);
			if (!cpu_verify_mark(v, (ArenaRef) unit->item[i], (int) units, "replaced node"))
				return false;
		}
		tail = ref;
		ref = unit->next;
	}
	if (tail != v->tree->retired.tail)
		return cpu_verify_wrong(v, "the queue's end is at unit %u, not at %u", tail, v->tree->retired.tail);
	for (int list = 0; list <= ARENA_MAX_UNITS; list++)
	{
		for (ArenaRef ref = space->free[list]; ref != 0; ref = *(const ArenaRef *) arena_at(v->arena, ref))
		{
			if (!cpu_verify_mark(v, ref, list > 0 ? list : ARENA_CHUNK_UNITS, "free piece"))
				return false;
		}
	}
	if (space->bump < space->bump_end &&
		!cpu_verify_mark(v, space->bump, (int) (space->bump_end - space->bump), "unused rest of a chunk"))
		return false;
	return true;
}

/* The chunks that the tree's space has. */
HOST_FN bool
cpu_verify_chunks(CpuVerify *v)
{
	const ArenaSpace *space = &v->tree->space;
	uint32_t nchunks = 0;

	for (uint64_t chunk = space->chunks; chunk != 0; nchunks++)
	{
		if (chunk < v->arena->first || chunk >= v->arena->nchunks || nchunks >= space->nchunks)
			return cpu_verify_wrong(v, "the list of chunks is broken at chunk %llu",
									(unsigned long long) chunk);
		if (v->owned[chunk * (ARENA_CHUNK_UNITS / 64)] != 0)
			return cpu_verify_wrong(v, "chunk %llu is twice in the list of chunks",
									(unsigned long long) chunk);
		memset(&v->owned[chunk * (ARENA_CHUNK_UNITS / 64)], 0xFF, ARENA_CHUNK_UNITS / 8);
		chunk = arena_links(v->arena)[chunk];
	}
	if (nchunks != space->nchunks)
		return cpu_verify_wrong(v, "%u chunks instead of %u", nchunks, space->nchunks);
	return true;
}

/* Every unit of the chunks was found. */
HOST_FN bool
cpu_verify_found(CpuVerify *v)
{
	uint64_t units = (uint64_t) v->tree->space.nchunks * ARENA_CHUNK_UNITS;

	if (v->nmarked != units)
		return cpu_verify_wrong(v, "%llu units are lost", (unsigned long long) (units - v->nmarked));
	return true;
}

/* Memory for the marks.  False: there is none. */
HOST_FN bool
cpu_verify_begin(CpuVerify *v, const Arena *arena, const CpuTree *tree, char *why, size_t whylen)
{
	size_t words = (size_t) arena->nchunks * (ARENA_CHUNK_UNITS / 64);

	v->arena = arena;
	v->tree = tree;
	v->nmarked = 0;
	v->why = why;
	v->whylen = whylen;
	v->owned = (uint64_t *) calloc(words, sizeof(uint64_t));
	v->marked = (uint64_t *) calloc(words, sizeof(uint64_t));
	if (v->owned == NULL || v->marked == NULL)
		return cpu_verify_wrong(v, "out of memory while checking");
	return true;
}

/*
 * Checks a tree: its memory, and if it is there (it was not withdrawn) all that check knows of it, which
 * marks what the structure uses.  The caller keeps others from changing it.  False: why says what is wrong.
 * Takes two bits of process memory for every unit of the arena.
 */
HOST_FN bool
cpu_verify(CpuVerify *v, const Arena *arena, const CpuTree *tree, bool (*check)(CpuVerify *v), char *why,
		   size_t whylen)
{
	const bool there = tree->head != 0;
	bool ok = cpu_verify_begin(v, arena, tree, why, whylen);

	ok = ok && cpu_verify_chunks(v);
	ok = ok && (!there || check(v));
	ok = ok && cpu_verify_free(v);
	ok = ok && (!there || cpu_verify_found(v));
	free(v->owned);
	free(v->marked);
	return ok;
}

#endif /* KERNELS_CPU_VERIFY_H */
