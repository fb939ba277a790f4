/*-------------------------------------------------------------------------
 *
 * structures.h
 *	  The table of structures: a row for each kind of index.
 *
 * A row is ROW(number, NAME, name, Name, capabilities):
 *
 *	  number		stored in the metapage of every index, so it is never given away again;
 *					1 .. STRUCTURE_NUMBERS - 1
 *	  NAME			GPUDS_STRUCTURE_NAME is the number
 *	  name			prefix of its functions on a CPU device: name_cpu_build_begin etc.
 *					(kernels/cpu/structure.h says which)
 *	  Name			NameOnGpu is the class of its functions on a GPU
 *					(kernels/gpu/structure.h)
 *	  capabilities	StructureCapability
 *
 * Beside its row the table says where a structure's functions are.  A file that needs
 * them defines STRUCTURES_ON_CPU or STRUCTURES_ON_GPU before it includes this one.
 *
 *-------------------------------------------------------------------------
 */
#ifndef KERNELS_STRUCTURES_H
#define KERNELS_STRUCTURES_H

/*
 * What a structure can do.  The access method asks for STRUCTURE_ORDERED.  A structure without
 * STRUCTURE_RANGES answers intervals of several keys, too, but only by going through all that it has.
 */
typedef enum StructureCapability
{
	STRUCTURE_ORDERED = 1 << 0,    /* scans go through the entries in order, forward and backward */
	STRUCTURE_RANGES = 1 << 1,     /* an interval may hold many keys */
	STRUCTURE_RANKS = 1 << 2,      /* it knows how many entries are before another */
	STRUCTURE_DUPLICATES = 1 << 3, /* entries of one key cost no more than others */
	STRUCTURE_SNAPSHOTS = 1 << 4,  /* readers see one version, whatever is changed meanwhile */
	STRUCTURE_IN_PLACE = 1 << 5    /* changes overwrite what readers may be reading */
} StructureCapability;

#define STRUCTURE_NUMBERS 16

/* Structures that are there for tests only. */
#ifdef GPUDS_INJECTION_POINTS
#define STRUCTURE_TEST_ROWS(ROW) \
	ROW(15, ARRAY, array, Array, \
		STRUCTURE_ORDERED | STRUCTURE_RANGES | STRUCTURE_RANKS | STRUCTURE_DUPLICATES | STRUCTURE_SNAPSHOTS)
#else
#define STRUCTURE_TEST_ROWS(ROW)
#endif

#define STRUCTURE_ROWS(ROW)                                                                                  \
	ROW(1, BTREE, btree, Btree,                                                                              \
		STRUCTURE_ORDERED | STRUCTURE_RANGES | STRUCTURE_RANKS | STRUCTURE_DUPLICATES | STRUCTURE_SNAPSHOTS) \
	ROW(2, HASH, hash, Hash, STRUCTURE_DUPLICATES | STRUCTURE_IN_PLACE)                                      \
	ROW(3, SKIPLIST, skiplist, Skiplist,                                                                     \
		STRUCTURE_ORDERED | STRUCTURE_RANGES | STRUCTURE_DUPLICATES | STRUCTURE_IN_PLACE)                    \
	STRUCTURE_TEST_ROWS(ROW)

enum GpudsStructureNumber
{
#define STRUCTURE_NUMBER(number, NAME, name, Name, capabilities) GPUDS_STRUCTURE_##NAME = number,
	STRUCTURE_ROWS(STRUCTURE_NUMBER)
#undef STRUCTURE_NUMBER
};

/* The structures that a GPU's engine of this build has: a bit for each number. */
#define STRUCTURE_BIT(number, NAME, name, Name, capabilities) | UINT32_C(1) << (number)
#define STRUCTURE_BITS (UINT32_C(0) STRUCTURE_ROWS(STRUCTURE_BIT))

#endif /* KERNELS_STRUCTURES_H */

#ifdef STRUCTURES_ON_CPU
#include "kernels/btree/structure_cpu.h"
#include "kernels/hash/structure_cpu.h"
#include "kernels/skiplist/structure_cpu.h"
#ifdef GPUDS_INJECTION_POINTS
#include "test/structures/array_cpu.h"
#endif
#endif

#ifdef STRUCTURES_ON_GPU
#include "kernels/btree/structure_gpu.h"
#include "kernels/hash/structure_gpu.h"
#include "kernels/skiplist/structure_gpu.h"
#ifdef GPUDS_INJECTION_POINTS
#include "test/structures/array_gpu.h"
#endif
#endif
