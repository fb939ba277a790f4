/*-------------------------------------------------------------------------
 *
 * version.h
 *	  One version of a structure: the word that publishes it, and the view that readers take of it.
 *
 * A structure has a head, which is one word, so that a reader gets root, height and width of one and the same
 * version:
 *
 *	  bit 63		there is a tree
 *	  bit 48		the structure's (cpu_versioned.h)
 *	  bits 47..40	key words
 *	  bits 39..32	height
 *	  bits 31..0	root
 *
 * What root and height mean is the structure's affair.  A root is the number of a unit of memory, from
 * the arena's or the pool's base.
 *
 *-------------------------------------------------------------------------
 */
#ifndef KERNELS_VERSION_H
#define KERNELS_VERSION_H

#include "kernels/core/entry.h"

#define HEAD_VALID (UINT64_C(1) << 63)

/* A version as its readers see it. */
typedef struct GpudsView
{
	const unsigned char *base; /* the GPU's pool or the CPU's arena */
	uint64_t entries;
	uint32_t structure; /* on a GPU: number in kernels/structures.h, less than 2^8 */
	uint32_t root;
	int height;      /* less than 2^8 */
	int nwords;      /* key words */
	uint64_t serial; /* on a GPU: no two views of a structure's object that differ have the same */
} GpudsView;

HOST_FN uint64_t
head_make(uint32_t nwords, int height, uint32_t root)
{
	return HEAD_VALID | (uint64_t) nwords << 40 | (uint64_t) height << 32 | root;
}

HOST_FN uint32_t
head_root(uint64_t head)
{
	return (uint32_t) head;
}

HOST_FN int
head_height(uint64_t head)
{
	return (int) (head >> 32 & 0xFF);
}

HOST_FN int
head_nwords(uint64_t head)
{
	return (int) (head >> 40 & 0xFF);
}

/* What a head says of its version; false: there is no tree. */
HOST_FN bool
head_view(uint64_t head, GpudsView *view)
{
	view->root = head_root(head);
	view->height = head_height(head);
	view->nwords = head_nwords(head);
	return (head & HEAD_VALID) != 0;
}

#endif /* KERNELS_VERSION_H */
