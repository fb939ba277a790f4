/*-------------------------------------------------------------------------
 *
 * btree_cpu.h
 *	  The B+tree on a CPU: copy-on-write over GpudsEntry, changed in batches.
 *
 *	  btree_tree_cpu.h	cpu_btree_init; the rest of a tree's life is in cpu_versioned.h
 *	  btree_probe_cpu.h	cpu_btree_scan
 *	  btree_count_cpu.h	cpu_btree_count
 *	  btree_build_cpu.h	cpu_btree_build_*
 *	  btree_apply_cpu.h	cpu_btree_apply
 *	  btree_pack_cpu.h	btree_cpu_pack
 *	  btree_verify_cpu.h	btree_cpu_verify
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_CPU_H
#define BTREE_CPU_H

#include "kernels/core/pins.h"

#include "kernels/btree/btree_apply_cpu.h"
#include "kernels/btree/btree_build_cpu.h"
#include "kernels/btree/btree_count_cpu.h"
#include "kernels/btree/btree_pack_cpu.h"
#include "kernels/btree/btree_probe_cpu.h"
#include "kernels/btree/btree_tree_cpu.h"
#include "kernels/btree/btree_verify_cpu.h"

#endif /* BTREE_CPU_H */
