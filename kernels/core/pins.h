/*-------------------------------------------------------------------------
 *
 * pins.h
 *	  Which versions are still being read.
 *
 * A reader has a slot of its own.  Before it looks at a structure it writes
 * the structure's version into the slot; a process that frees memory looks at all
 * slots.  The reader makes sure that the version has not moved since it wrote
 * it: then either the writer sees the slot, or the reader has seen the
 * writer's newest version.  Both sides' accesses are sequentially consistent,
 * nothing less orders a store before a load of another word.
 *
 *-------------------------------------------------------------------------
 */
#ifndef KERNELS_PINS_H
#define KERNELS_PINS_H

#include "kernels/core/entry.h"

/* One cache line, so that readers do not disturb each other. */
typedef struct PinSlot
{
	uint64_t version; /* atomic: pinned version, 0: none */
	uint64_t owner;   /* atomic: what is pinned, a number of the caller's */
	uint64_t reserved[6];
} PinSlot;

/*
 * Pin the current version of what *version counts; owner names it.  Returns
 * the version.  The slot must be the caller's own and hold no pin.
 */
HOST_FN uint64_t
pin_version(PinSlot *slot, uint64_t owner, const uint64_t *version)
{
	uint64_t v = __atomic_load_n(version, __ATOMIC_ACQUIRE);

	__atomic_store_n(&slot->owner, owner, __ATOMIC_RELEASE);
	for (;;)
	{
		uint64_t now;

		__atomic_store_n(&slot->version, v, __ATOMIC_SEQ_CST);
		now = __atomic_load_n(version, __ATOMIC_SEQ_CST);
		if (now == v)
			return v;
		v = now;
	}
}

/* Lets the pin go; the caller reads nothing of the version any more.  Harmless if the slot holds none. */
HOST_FN void
pin_release(PinSlot *slot)
{
	__atomic_store_n(&slot->version, 0, __ATOMIC_RELEASE);
}

/*
 * The oldest version of owner that is pinned, UINT64_MAX: none.  Only a process
 * that may publish versions of owner can use the answer: it holds as long as no
 * version is published that is newer than the one at the time of the call.
 */
HOST_FN uint64_t
pin_oldest(const PinSlot *slots, int n, uint64_t owner)
{
	uint64_t oldest = UINT64_MAX;

	for (int i = 0; i < n; i++)
	{
		uint64_t v = __atomic_load_n(&slots[i].version, __ATOMIC_SEQ_CST);

		if (v != 0 && v < oldest && __atomic_load_n(&slots[i].owner, __ATOMIC_ACQUIRE) == owner)
			oldest = v;
	}
	return oldest;
}

#endif /* KERNELS_PINS_H */
