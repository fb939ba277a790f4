/*-------------------------------------------------------------------------
 *
 * vertex_map.h
 *	  Numbers for the vertices that a search of a graph comes to.
 *
 * A vertex has a code of one or two words.  The vertices are numbered from 0 on in the order in which they
 * are added, so what a search keeps of each is an array.  The table has a slot of 8 bytes for each: 32 bits
 * of hash, which also say where its search begins, and the number.  It is searched linearly from there on.
 *
 * The hash is a bijection of the code's low 32 bits, for codes that are alike in all other bits.  As long as
 * all are (narrow), equal hashes are equal codes, and the codes themselves need not be looked at.
 *
 * The caller provides the memory, and more of it when there is no room.
 *
 *-------------------------------------------------------------------------
 */
#ifndef KERNELS_VERTEX_MAP_H
#define KERNELS_VERTEX_MAP_H

#include "kernels/core/entry.h"

/* No vertex has this number. */
#define VERTEX_NONE UINT32_MAX

typedef struct VertexMap
{
	int words;       /* of a code: 1 or 2 */
	bool narrow;     /* codes differ in their low 32 bits only */
	uint64_t *slots; /* hash << 32 | number; UINT64_MAX: empty */
	uint64_t nslots; /* at most 2^32 */
	uint64_t *codes; /* of each number */
	uint32_t n;
	uint32_t most; /* vertices that there is room for, less than slots */
} VertexMap;

#pragma GCC visibility push(hidden)

extern void vertex_map_rebuild(VertexMap *map);
extern void vertex_map_clear(VertexMap *map);
extern int64_t vertex_map_add(VertexMap *map, const uint64_t *codes, int64_t n, uint32_t *numbers);
extern void vertex_map_find(const VertexMap *map, const uint64_t *codes, int64_t n, uint32_t *numbers);

#pragma GCC visibility pop

#endif /* KERNELS_VERTEX_MAP_H */
