/*-------------------------------------------------------------------------
 *
 * methods.h
 *	  The table of access methods: a row for each.
 *
 * A row is ROW(name, STRUCTURE, ordered):
 *
 *	  name			as in pg_am; its handler is the C function name_handler
 *	  STRUCTURE		GPUDS_STRUCTURE_STRUCTURE is what its new indexes have (kernels/structures.h)
 *	  ordered		keys have an order, and operator classes are those of btree; else they know equality
 *					only, and are those of hash
 *
 * Nobody else names an access method, or asks which one an index has.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_METHODS_H
#define GPUDS_METHODS_H

#include "postgres.h"

#define GPUDS_METHOD_ROWS(ROW)        \
	ROW(gpu_btree, BTREE, true)       \
	ROW(gpu_hash, BTREE, false)       \
	ROW(gpu_skiplist, SKIPLIST, true) \
	ROW(gpu_avl, AVL, true)

typedef struct GpudsMethod
{
	const char *name;
	uint8 structure;
	bool ordered;
} GpudsMethod;

/* All of them; the name behind the last one is NULL. */
extern const GpudsMethod gpuds_methods[];

#endif /* GPUDS_METHODS_H */
