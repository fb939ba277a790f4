/*-------------------------------------------------------------------------
 *
 * tails.c
 *	  Where this backend last saw the tails of an index's lanes.
 *
 * That is only a hint.  If the page has become something else, its lock shows that.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "utils/inval.h"

#include "journal/internal.h"

/* Indexes whose tails a backend remembers; those of one hash value push each other out. */
#define NTAILS 64

static GpudsTails tails[NTAILS];
static bool watching = false;

/* Forgets the tails of an index, or of all (InvalidOid). */
void
gpuds_tails_forget(Oid relid)
{
	for (int i = 0; i < NTAILS; i++)
	{
		if (relid == InvalidOid || tails[i].relid == relid)
			tails[i].relid = InvalidOid;
	}
}

/* Files are dropped and their numbers used again: forget what relcache forgets. */
static void
relcache_callback(Datum arg, Oid relid)
{
	gpuds_tails_forget(relid);
}

/* The tails of an index: invalid where this backend has not seen them. */
GpudsTails *
gpuds_tails_of(Relation index)
{
	const RelFileLocator *locator = &RelationLocator(index);
	Oid relid = RelationGetRelid(index);
	GpudsTails *cache;

	if (!watching)
	{
		CacheRegisterRelcacheCallback(relcache_callback, (Datum) 0);
		watching = true;
	}

	cache = &tails[murmurhash32(relid) % NTAILS];
	if (cache->relid != relid || !RelFileLocatorEquals(cache->locator, *locator))
	{
		cache->relid = relid;
		cache->locator = *locator;
		for (int lane = 0; lane < GPUDS_LANES; lane++)
			cache->tail[lane] = InvalidBlockNumber;
	}
	return cache;
}
