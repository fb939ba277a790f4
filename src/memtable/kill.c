/*-------------------------------------------------------------------------
 *
 * kill.c
 *	  Kills: entries that a scan found to lead to rows that are dead for everybody.
 *
 * The flusher deletes them from the mirrors, behind the operations of their generation.
 * A kill is void if a bulk delete has ended since before its entry was read: the
 * TID may lead to another row now.  It cannot become void too late: the row's entry comes
 * after that end, and gets into a mirror by an applier, as the kill does, one after the
 * other.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"

#include "memtable/memtable_internal.h"

/* Kills that a generation takes: they are not worth all of the memory. */
#define MOST_KILLS (64 * 1024)

uint64
gpuds_memtable_stamp(uint64 serial)
{
	uint64 stamp = pg_atomic_read_u64(&gpuds_memtable_slot(serial)->deletes);

	/* before anything of the mirror is read */
	pg_read_barrier();
	return stamp;
}

/*
 * Kills n entries of the memtable that serial names, which is not 0.  Forgets them if the memtable is gone,
 * if a bulk delete has ended since the stamp was taken, if there is no memory or if the generation has
 * enough kills.  Takes no lock, but pins the memtable's version.
 */
void
gpuds_memtable_kill(uint64 serial, uint64 stamp, const GpudsEntry *entries, int n)
{
	GpudsMemtable *memtable = gpuds_memtable_slot(serial);
	PinSlot *pin = &gpuds_memtables.pins[GpudsMyBackendIndex()];
	uint64 others = 0;

	pin_version(pin, memtable - gpuds_memtables.memtable + 1, &memtable->version);
	if (pg_atomic_read_u64(&memtable->serial) == serial && pg_atomic_read_u64(&memtable->deletes) == stamp)
	{
		Generation *generation = gpuds_memtable_newest(memtable);

		for (int i = 0; i < n && others < MOST_KILLS; i++)
		{
			if (generation_add_kill(gpuds_memtables.arena, generation, &entries[i], stamp, &others) !=
				KERNEL_OK)
				break;
			if (others == 0)
				gpuds_flusher_wake();
		}
	}
	pin_release(pin);
}

void
gpuds_memtable_bulk_deleted(const RelFileLocator *locator)
{
	GpudsMemtable *memtable;

	gpuds_files_lock(LW_SHARED);
	memtable = gpuds_memtable_find(locator);
	if (memtable)
		(void) pg_atomic_fetch_add_u64(&memtable->deletes, 1);
	gpuds_files_unlock();
}
