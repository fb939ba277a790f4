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
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/memutils.h"

#include "journal/internal.h"

/*
 * Of each index that this backend has appended to, or scanned for its tail: some 300 bytes, where relcache has
 * several kB of it.  Entries stay, so that pointers to them do.
 */
static HTAB *tails = NULL;

/* From now on its tails are those of no file. */
static void
forget(GpudsTails *entry)
{
	memset(&entry->locator, 0, sizeof(entry->locator));
}

/* Forgets the tails of an index, or of all (InvalidOid). */
void
gpuds_tails_forget(Oid relid)
{
	GpudsTails *entry;
	HASH_SEQ_STATUS all;

	if (tails == NULL)
		return;
	if (relid != InvalidOid)
	{
		entry = hash_search(tails, &relid, HASH_FIND, NULL);
		if (entry)
			forget(entry);
		return;
	}
	hash_seq_init(&all, tails);
	while ((entry = hash_seq_search(&all)) != NULL)
		forget(entry);
}

/* Files are dropped and their numbers used again: forget what relcache forgets. */
static void
relcache_callback(Datum arg, Oid relid)
{
	gpuds_tails_forget(relid);
}

static void
make_tails(void)
{
	HASHCTL control = { .keysize = sizeof(Oid), .entrysize = sizeof(GpudsTails), .hcxt = TopMemoryContext };

	tails = hash_create("gpuds tails", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	CacheRegisterRelcacheCallback(relcache_callback, (Datum) 0);
}

/* The tails of an index: invalid where this backend has not seen them. */
GpudsTails *
gpuds_tails_of(Relation index)
{
	const RelFileLocator *locator = &RelationLocator(index);
	Oid relid = RelationGetRelid(index);
	GpudsTails *entry;
	bool found;

	if (tails == NULL)
		make_tails();
	entry = hash_search(tails, &relid, HASH_ENTER, &found);
	if (!found || !RelFileLocatorEquals(entry->locator, *locator))
	{
		entry->locator = *locator;
		for (int lane = 0; lane < GPUDS_LANES; lane++)
			entry->tail[lane] = InvalidBlockNumber;
	}
	return entry;
}
