/*-------------------------------------------------------------------------
 *
 * tails.c
 *	  Where this backend last saw the tails of an index's stripes.
 *
 * That is only a hint.  If the page has become something else, its lock shows that.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/memutils.h"

#include "journal/journal_internal.h"

/* Forgotten entries that there may be, beside as many as there are others. */
#define FORGOTTEN 64

/*
 * An entry of some 300 bytes for each index that this backend has appended to.  Callers have pointers to
 * entries when one is forgotten, so it only becomes that of no file; gpuds_tails_of removes such ones.
 */
static HTAB *tails = NULL;
static long nforgotten = 0;

static bool
is_forgotten(const GpudsTails *entry)
{
	const RelFileLocator none = { 0 };

	return RelFileLocatorEquals(entry->locator, none);
}

/* From now on its tails are those of no file. */
static void
forget(GpudsTails *entry)
{
	if (is_forgotten(entry))
		return;
	memset(&entry->locator, 0, sizeof(entry->locator));
	nforgotten++;
}

static void
remove_forgotten(void)
{
	GpudsTails *entry;
	HASH_SEQ_STATUS all;

	hash_seq_init(&all, tails);
	while ((entry = hash_seq_search(&all)) != NULL)
	{
		if (is_forgotten(entry))
			(void) hash_search(tails, &entry->relid, HASH_REMOVE, NULL);
	}
	nforgotten = 0;
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

/*
 * The tails of an index: invalid where this backend has not seen them.  What was returned before is not valid
 * any more.
 */
GpudsTails *
gpuds_tails_of(Relation index)
{
	const RelFileLocator *locator = &RelationLocator(index);
	Oid relid = RelationGetRelid(index);
	GpudsTails *entry;
	bool found;

	if (tails == NULL)
		make_tails();
	if (nforgotten > FORGOTTEN && nforgotten > hash_get_num_entries(tails) / 2)
		remove_forgotten();
	entry = hash_search(tails, &relid, HASH_ENTER, &found);
	if (found && is_forgotten(entry))
		nforgotten--;
	if (!found || !RelFileLocatorEquals(entry->locator, *locator))
	{
		entry->locator = *locator;
		for (int stripe = 0; stripe < GPUDS_STRIPES; stripe++)
			entry->tail[stripe] = InvalidBlockNumber;
	}
	return entry;
}
