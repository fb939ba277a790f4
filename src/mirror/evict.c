/*-------------------------------------------------------------------------
 *
 * evict.c
 *	  Memory for mirrors: whom it is taken from.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "mirror/mirror.h"

/* Is there memory to be had by evicting the mirror? */
static bool
evictable(GpudsMirror *mirror)
{
	return mirror->tree.kind == GPUDS_ON_CUDA ? gpuds_device_holds(&mirror->tree) : mirror->loaded;
}

/*
 * Evicts the least recently used loaded mirror of the same device as keep, but
 * not keep, that nobody is applying to.  False if there is none, or if its
 * memory does not come back.
 */
static bool
evict_shared(GpudsMirror *keep)
{
	for (;;)
	{
		GpudsMirror *victim = NULL;
		GpudsMirror *mirror;
		uint64 oldest = PG_UINT64_MAX;

		for (int i = 0; (mirror = gpuds_mirror_slot(i)) != NULL; i++)
		{
			uint64 last_use = pg_atomic_read_u64(&mirror->last_use);

			if (mirror != keep && mirror->tree.kind == keep->tree.kind && evictable(mirror) &&
				mirror->applier == 0 && last_use < oldest)
			{
				victim = mirror;
				oldest = last_use;
			}
		}
		if (victim == NULL)
			return false;
		if (gpuds_mirror_acquire(victim, false))
		{
			bool right = victim->tree.kind == keep->tree.kind && evictable(victim);
			bool dropped = right && gpuds_mirror_discard(victim);

			gpuds_mirror_release(victim);
			if (right)
				return dropped;
		}
	}
}

/*
 * Makes room on the device of keep.  False: there is nothing left to evict.
 */
bool
gpuds_mirror_evict_one(GpudsMirror *keep)
{
	GpudsMirror *victim;

	if (keep->tree.kind != GPUDS_ON_CPU_PRIVATE)
		return evict_shared(keep);
	victim = gpuds_mirror_private_loaded(keep);
	if (victim)
		(void) gpuds_mirror_discard(victim);
	return victim != NULL;
}
