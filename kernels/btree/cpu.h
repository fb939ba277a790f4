/*-------------------------------------------------------------------------
 *
 * cpu.h
 *	  The B+tree on a CPU: copy-on-write over GpudsEntry, changed in batches.
 *
 *	  tree_cpu.h	cpu_btree_init, cpu_btree_view, cpu_btree_entries,
 *					cpu_btree_reclaim, cpu_btree_withdraw, cpu_btree_release
 *	  probe_cpu.h	cpu_btree_scan
 *	  count_cpu.h	cpu_btree_count
 *	  build_cpu.h	cpu_btree_build_*
 *	  apply_cpu.h	cpu_btree_apply
 *	  verify_cpu.h	cpu_btree_verify
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_CPU_H
#define BTREE_CPU_H

#include "kernels/core/pins.h"

#include "kernels/btree/apply_cpu.h"
#include "kernels/btree/build_cpu.h"
#include "kernels/btree/count_cpu.h"
#include "kernels/btree/pack_cpu.h"
#include "kernels/btree/probe_cpu.h"
#include "kernels/btree/tree_cpu.h"
#include "kernels/btree/verify_cpu.h"

#endif /* BTREE_CPU_H */
