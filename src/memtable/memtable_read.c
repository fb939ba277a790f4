/*-------------------------------------------------------------------------
 *
 * memtable_read.c
 *	  What a memtable says to a scan.
 *
 * A reader pins the memtable's version while it looks; nothing that it can reach is
 * dropped then.  It copies what it finds, so that the pin is held for a moment only.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"

#include "memtable/memtable_internal.h"

/* Generations that hold operations, the newest first; the caller has a pin. */
static int
list_generations(GpudsMemtable *memtable, const Generation **newest_first)
{
	uint64 newest = pg_atomic_read_u64(&memtable->newest);
	uint64 oldest;
	int n = 0;

	/* in this order: what is dropped in between is in the mirrors */
	pg_read_barrier();
	oldest = pg_atomic_read_u64(&memtable->oldest);
	pg_read_barrier();
	for (uint64 number = newest; number >= oldest; number--)
		newest_first[n++] = gpuds_memtable_generation(memtable, number);
	return n;
}

int64
gpuds_memtable_collect(uint64 serial, pg_atomic_uint64 *attached, const GpudsScan *scan, bool forward,
					   bool sorted, GpudsOp *out, int64 cap)
{
	GpudsMemtable *memtable = gpuds_memtable_slot(serial);
	PinSlot *pin = &gpuds_memtables.pins[GpudsMyBackendIndex()];
	const Generation *generations[MEMTABLE_GENERATIONS];
	int64 n = -1;

	pin_version(pin, memtable - gpuds_memtables.memtable + 1, &memtable->version);
	if (pg_atomic_read_u64(&memtable->serial) == serial)
	{
		int ngenerations = list_generations(memtable, generations);

		n = memtable_collect(gpuds_memtables.arena, generations, ngenerations, scan, forward, sorted, out,
							 cap);
		/* afterwards: until now nothing has left the memtable that the mirror did not get */
		pg_read_barrier();
		if (pg_atomic_read_u64(attached) != serial)
			n = -1;
	}
	pin_release(pin);
	return n;
}
