/*-------------------------------------------------------------------------
 *
 * skiplist_structure_cpu.h
 *	  The skip list as a structure of the CPU device.
 *
 * It is changed in place, so a reader may see some of a batch's operations and others not.  What it
 * promises: a scan returns, in order, each entry of its intervals that is there from the beginning of the
 * call to its end, and none that was not there at any moment of it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SKIPLIST_STRUCTURE_CPU_H
#define SKIPLIST_STRUCTURE_CPU_H

#include "kernels/cpu/cpu_structure.h"
#include "kernels/skiplist/skiplist_apply_cpu.h"
#include "kernels/skiplist/skiplist_build_cpu.h"
#include "kernels/skiplist/skiplist_scan_cpu.h"
#include "kernels/skiplist/skiplist_size.h"
#include "kernels/skiplist/skiplist_verify_cpu.h"

#define skiplist_cpu_pack cpu_tree_pack_nothing
#define skiplist_cpu_rank NULL
#define skiplist_cpu_reclaim cpu_tree_reclaim
#define skiplist_cpu_release cpu_tree_release

/* Entries of one key take no more than others. */
HOST_FN double
skiplist_cpu_entry_bytes(int nwords, int fill_percent, bool equal_keys, bool on_gpu)
{
	double target = skiplist_target(fill_percent);

	(void) equal_keys;
	if (on_gpu)
		return gpu_skiplist_entry_bytes(nwords, fill_percent);
	/* of all levels: 1 / target^2 + 1 / target^3 + ... index chunks an entry */
	return ARENA_UNIT_BYTES *
		   (skiplist_units(false, nwords) / target + skiplist_units(true, nwords) / (target * (target - 1)));
}

#endif /* SKIPLIST_STRUCTURE_CPU_H */
