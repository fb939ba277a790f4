/*-------------------------------------------------------------------------
 *
 * avl_structure_cpu.h
 *	  The AVL tree as a structure of the CPU device.
 *
 * It is changed in place, so a reader may see some of a batch's operations and others not.  What it
 * promises: a scan returns, in order, each entry of its intervals that is there from the beginning of the
 * call to its end, and none that was not there at any moment of it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef AVL_STRUCTURE_CPU_H
#define AVL_STRUCTURE_CPU_H

#include "kernels/avl/avl_apply_cpu.h"
#include "kernels/avl/avl_scan_cpu.h"
#include "kernels/avl/avl_verify_cpu.h"

#define avl_cpu_pack cpu_tree_pack_nothing
#define avl_cpu_rank NULL

#endif /* AVL_STRUCTURE_CPU_H */
