/*-------------------------------------------------------------------------
 *
 * slots.c
 *	  Slots of an array in shared memory, handed out by number (file.h).
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "file/file.h"

/* Shared memory that it takes to hand out so many slots, in bytes, without the slots themselves. */
Size
gpuds_slots_size(int nslots)
{
	return MAXALIGN(add_size(offsetof(GpudsSlots, next), mul_size(nslots, sizeof(int))));
}

/* At server start: no slot was ever taken. */
void
gpuds_slots_init(GpudsSlots *slots, int nslots)
{
	pg_atomic_init_u32(&slots->nused, 0);
	slots->nslots = nslots;
	slots->first_free = GPUDS_NO_SLOT;
}

/* How many were ever taken, whose memory has been initialized.  Needs no lock. */
int
gpuds_slots_count(const GpudsSlots *slots)
{
	int n = (int) pg_atomic_read_u32(unconstify(pg_atomic_uint32 *, &slots->nused));

	pg_read_barrier();
	return n;
}

/*
 * Takes a slot; GPUDS_NO_SLOT: all are taken.  init is called for one that was never taken before.  The
 * caller holds the directory's lock exclusively.
 */
int
gpuds_slots_take(GpudsSlots *slots, void (*init)(int slot))
{
	int slot = slots->first_free;

	if (slot != GPUDS_NO_SLOT)
	{
		slots->first_free = slots->next[slot];
		return slot;
	}
	slot = (int) pg_atomic_read_u32(&slots->nused);
	if (slot == slots->nslots)
		return GPUDS_NO_SLOT;
	init(slot);
	pg_write_barrier();
	pg_atomic_write_u32(&slots->nused, slot + 1);
	return slot;
}

/* Gives a slot back.  The caller holds the directory's lock exclusively. */
void
gpuds_slots_give(GpudsSlots *slots, int slot)
{
	slots->next[slot] = slots->first_free;
	slots->first_free = slot;
}
