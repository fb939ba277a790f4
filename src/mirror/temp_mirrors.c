/*-------------------------------------------------------------------------
 *
 * temp_mirrors.c
 *	  Mirrors of this session's temporary indexes.
 *
 * An index has one at most, found by its OID: when the index gets another file
 * (TRUNCATE, REINDEX) the next lookup finds the mirror of the former one, and gives
 * its memory back.  What is not looked up again is found by watching the relation
 * cache: a mirror that is in doubt, for its index changed or because it was made
 * by a transaction that may yet fail, is looked for in the catalog when the
 * transaction commits, and forgotten when it fails.
 *
 * A GpudsMirror that was forgotten is kept for the next index, with another
 * serial: a scan may still know it, and finds that it is another one.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "lib/ilist.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "mirror/mirror.h"

typedef struct PrivateMirror
{
	GpudsMirror mirror;
	slist_node free;
} PrivateMirror;

typedef struct PrivateEntry
{
	Oid index; /* hash key */
	PrivateMirror *private;
	bool in_doubt;
} PrivateEntry;

static HTAB *entries = NULL;
static slist_head free_mirrors = SLIST_STATIC_INIT(free_mirrors);
static uint64 last_serial = 0;
static uint64 last_owner = 0;

/* Is any entry in doubt; and has anything happened that speaks against one? */
static bool any_in_doubt = false;
static bool suspicion = false;

/* The setting that the present mirrors were made under. */
static int temp_memory_mb = 0;

/* Called also while a transaction ends, and for every relation. */
static void
relation_changed(Datum arg, Oid relid)
{
	HASH_SEQ_STATUS status;
	PrivateEntry *entry;

	if (OidIsValid(relid))
	{
		entry = hash_search(entries, &relid, HASH_FIND, NULL);
		if (entry)
			entry->in_doubt = any_in_doubt = suspicion = true;
		return;
	}
	hash_seq_init(&status, entries);
	while ((entry = hash_seq_search(&status)) != NULL)
		entry->in_doubt = any_in_doubt = suspicion = true;
}

static void
prepare(void)
{
	HASHCTL info;

	if (entries)
		return;
	info.keysize = sizeof(Oid);
	info.entrysize = sizeof(PrivateEntry);
	info.hcxt = TopMemoryContext;
	entries = hash_create("gpuds private mirrors", 16, &info, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	CacheRegisterRelcacheCallback(relation_changed, (Datum) 0);
}

/* A reference to the mirror finds from now on that it is another one, or none. */
static void
forget(PrivateEntry *entry)
{
	PrivateMirror *private = entry->private;

	pg_atomic_write_u64(&private->mirror.serial, 0);
	(void) gpuds_mirror_discard(&private->mirror);
	slist_push_head(&free_mirrors, &private->free);
	(void) hash_search(entries, &entry->index, HASH_REMOVE, NULL);
}

/* Does the catalog say that the mirror's file is that of its index? */
static bool
is_alive(const PrivateEntry *entry)
{
	HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(entry->index));
	bool alive;

	if (!HeapTupleIsValid(tuple))
		return false;
	alive = ((Form_pg_class) GETSTRUCT(tuple))->relfilenode == entry->private->mirror.file.locator.relNumber;
	ReleaseSysCache(tuple);
	return alive;
}

/* Forgets the mirrors in doubt whose files are gone. */
static void
forget_dead(void)
{
	HASH_SEQ_STATUS status;
	PrivateEntry *entry;

	suspicion = false;
	hash_seq_init(&status, entries);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		if (entry->in_doubt && !is_alive(entry))
			forget(entry);
	}
}

/* The memory for mirrors has another size from now on: begins anew. */
static void
resize(void)
{
	HASH_SEQ_STATUS status;
	PrivateEntry *entry;

	temp_memory_mb = gpuds_temp_memory_mb;
	hash_seq_init(&status, entries);
	while ((entry = hash_seq_search(&status)) != NULL)
		forget(entry);
}

/*
 * Finds the mirror of a temporary index's file.  False: there is none, and create
 * is not set.  Called in a transaction.
 */
bool
gpuds_private_lookup(Relation index, const GpudsFile *file, bool create, GpudsMirrorRef *ref)
{
	Oid relid = RelationGetRelid(index);
	PrivateEntry *entry;
	PrivateMirror *private;

	prepare();
	if (create)
	{
		if (suspicion)
			forget_dead();
		if (temp_memory_mb != gpuds_temp_memory_mb)
			resize();
	}
	entry = hash_search(entries, &relid, HASH_FIND, NULL);
	if (entry)
	{
		GpudsMirror *mirror = &entry->private->mirror;

		if (mirror->file.file_id != file->file_id ||
			!RelFileLocatorEquals(mirror->file.locator, RelationLocator(index)))
		{
			forget(entry);
			entry = NULL;
		}
	}
	if (entry == NULL)
	{
		if (!create)
			return false;
		if (slist_is_empty(&free_mirrors))
		{
			private = MemoryContextAlloc(TopMemoryContext, sizeof(PrivateMirror));
			gpuds_mirror_init(&private->mirror, GPUDS_ON_CPU_PRIVATE, ++last_owner);
			slist_push_head(&free_mirrors, &private->free);
		}
		entry = hash_search(entries, &relid, HASH_ENTER, NULL);
		private = slist_container(PrivateMirror, free, slist_pop_head_node(&free_mirrors));
		entry->private = private;
		entry->in_doubt = any_in_doubt = true;
		gpuds_mirror_assign(&private->mirror, index, file, GPUDS_ON_CPU_PRIVATE, GPUDS_MIRROR_ON_CPU,
							++last_serial);
	}
	ref->mirror = &entry->private->mirror;
	ref->serial = pg_atomic_read_u64(&ref->mirror->serial);
	return true;
}

/*
 * Gives up the mirror of a temporary index, if there is one.
 */
void
gpuds_private_forget(Oid index)
{
	PrivateEntry *entry = entries ? hash_search(entries, &index, HASH_FIND, NULL) : NULL;

	if (entry)
		forget(entry);
}

/*
 * Gives the memory of the least recently used mirror back, but not of keep.  asked:
 * also of one that the statement in progress needs.  False: there is none.
 */
bool
gpuds_private_evict_one(GpudsMirror *keep, bool asked)
{
	HASH_SEQ_STATUS status;
	PrivateEntry *entry;
	GpudsMirror *victim = NULL;
	uint64 oldest = PG_UINT64_MAX;

	hash_seq_init(&status, entries);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		GpudsMirror *mirror = &entry->private->mirror;
		uint64 last_use = pg_atomic_read_u64(&mirror->last_use);

		if (mirror != keep && mirror->loaded && last_use < oldest &&
			(asked || !gpuds_memory_needed_now(mirror)))
		{
			victim = mirror;
			oldest = last_use;
		}
	}
	if (victim)
		(void) gpuds_mirror_discard(victim);
	return victim != NULL;
}

/*
 * The transaction is about to commit: what is still in doubt now is no longer so,
 * or forgotten.  The catalog can be read.
 */
void
gpuds_private_pre_commit(void)
{
	HASH_SEQ_STATUS status;
	PrivateEntry *entry;

	if (!any_in_doubt)
		return;
	forget_dead();
	any_in_doubt = false;
	hash_seq_init(&status, entries);
	while ((entry = hash_seq_search(&status)) != NULL)
		entry->in_doubt = false;
}

/*
 * The transaction has failed: forgets all that is in doubt, for the catalog cannot
 * be read.  Raises no error.
 */
void
gpuds_private_abort(void)
{
	HASH_SEQ_STATUS status;
	PrivateEntry *entry;

	if (!any_in_doubt)
		return;
	any_in_doubt = suspicion = false;
	hash_seq_init(&status, entries);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		if (entry->in_doubt)
			forget(entry);
	}
}

/*
 * A subtransaction has failed, and with it what it had made: the next lookup looks
 * in the catalog.
 */
void
gpuds_private_subabort(void)
{
	suspicion = any_in_doubt;
}
