/*-------------------------------------------------------------------------
 *
 * structures.h
 *	  The table of structures: a row for each kind of index.
 *
 * A row is ROW(number, NAME, name, Name, title):
 *
 *	  number		stored in the metapage of every index, so it is never given away again;
 *					1 .. STRUCTURE_NUMBERS - 1 but for 2, which a hash table had
 *	  NAME			GPUDS_STRUCTURE_NAME is the number
 *	  name			prefix of its functions on a CPU device: name_cpu_build_begin etc.
 *					(kernels/cpu/cpu_structure.h says which)
 *	  Name			NameOnGpu is the class of its functions on a GPU (kernels/runtime/gpu_structure.h)
 *	  title			what users read
 *
 * Beside its row the table says where a structure's functions are.  A file that needs
 * them defines STRUCTURES_ON_CPU or STRUCTURES_ON_GPU before it includes this one.
 *
 *-------------------------------------------------------------------------
 */
#ifndef KERNELS_STRUCTURES_H
#define KERNELS_STRUCTURES_H

#define STRUCTURE_NUMBERS 16

/* Structures that are there for tests only. */
#ifdef GPUDS_INJECTION_POINTS
#define STRUCTURE_TEST_ROWS(ROW) ROW(15, ARRAY, array, Array, "sorted array")
#else
#define STRUCTURE_TEST_ROWS(ROW)
#endif

#define STRUCTURE_ROWS(ROW)                           \
	ROW(1, BTREE, btree, Btree, "B+tree")             \
	ROW(3, SKIPLIST, skiplist, Skiplist, "skip list") \
	ROW(4, AVL, avl, Avl, "AVL tree")                 \
	STRUCTURE_TEST_ROWS(ROW)

enum GpudsStructureNumber
{
#define STRUCTURE_NUMBER(number, NAME, name, Name, title) GPUDS_STRUCTURE_##NAME = number,
	STRUCTURE_ROWS(STRUCTURE_NUMBER)
#undef STRUCTURE_NUMBER
};

/* The structures that a GPU's engine of this build has: a bit for each number. */
#define STRUCTURE_BIT(number, NAME, name, Name, title) | UINT32_C(1) << (number)
#define STRUCTURE_BITS (UINT32_C(0) STRUCTURE_ROWS(STRUCTURE_BIT))

#endif /* KERNELS_STRUCTURES_H */

#ifdef STRUCTURES_ON_CPU
#include "kernels/avl/avl_structure_cpu.h"
#include "kernels/btree/btree_structure_cpu.h"
#include "kernels/skiplist/skiplist_structure_cpu.h"

#ifdef GPUDS_INJECTION_POINTS
#include "test/structures/array_cpu.h"
#endif
#endif

#ifdef STRUCTURES_ON_GPU
#include "kernels/avl/avl_structure_gpu.h"
#include "kernels/btree/btree_structure_gpu.h"
#include "kernels/skiplist/skiplist_structure_gpu.h"

#ifdef GPUDS_INJECTION_POINTS
#include "test/structures/array_gpu.h"
#endif
#endif
