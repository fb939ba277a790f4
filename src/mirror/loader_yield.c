/*-------------------------------------------------------------------------
 *
 * loader_yield.c
 *	  A loader makes way for processes that wait for what it has locked.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "mirror/mirror_internal.h"

/* How often a loader looks whether it is in somebody's way. */
#define CHECK_INTERVAL_US (500 * INT64CONST(1000))

/* In a loader: what it works on. */
static GpudsMirror *my_mirror = NULL;
static Oid my_heap = InvalidOid;
static Oid my_index = InvalidOid;
static char my_name[NAMEDATALEN]; /* of the index */
static TimestampTz next_check = 0;

/*
 * Could we have that lock, of an object that we have no lock of?  Not if somebody has, or waits for, one that
 * conflicts with it.
 */
static bool
is_lock_free(const LOCKTAG *tag, LOCKMODE mode)
{
	if (LockAcquire(tag, mode, false, true) == LOCKACQUIRE_NOT_AVAIL)
		return false;
	LockRelease(tag, mode, false);
	return true;
}

/*
 * Does nobody wait for a lock that conflicts with ours on a table or an index, AccessShareLock?  Asking for
 * another one does not tell: since 17, who holds a lock is given it before those who wait for him.
 */
static bool
is_relation_free(Oid relid)
{
	LockData *locks = GetLockStatusData();
	bool is_free = true;
	LOCKTAG tag;

	SET_LOCKTAG_RELATION(tag, MyDatabaseId, relid);
	for (int i = 0; i < locks->nelements && is_free; i++)
	{
		const LockInstanceData *lock = &locks->locks[i];

		is_free = lock->waitLockMode == NoLock || memcmp(&lock->locktag, &tag, sizeof(tag)) != 0 ||
				  !DoLockModesConflict(lock->waitLockMode, AccessShareLock);
	}
	pfree(locks->locks);
	pfree(locks);
	return is_free;
}

/* From now on this process, a loader, looks whether it is in somebody's way. */
void
gpuds_make_way_begin(GpudsMirror *mirror, Oid heap, Relation index)
{
	my_mirror = mirror;
	my_heap = heap;
	my_index = RelationGetRelid(index);
	strlcpy(my_name, RelationGetRelationName(index), sizeof(my_name));
}

/* This process no longer works on a mirror: from here on gpuds_make_way_check does nothing. */
void
gpuds_make_way_end(void)
{
	my_mirror = NULL;
}

/*
 * In a loader: is somebody waiting for us?  Raises an error if so, which ends the
 * loader.  In other processes it does nothing.
 *
 * DROP DATABASE, and CREATE DATABASE with ours as template, hold a lock on the
 * database while they wait for all others to leave it.  Table and index are
 * given up only if no scan waits for the mirror: it would hold them, too, and
 * have to do the work again.
 */
void
gpuds_make_way_check(void)
{
	TimestampTz now;
	LOCKTAG tag;

	if (my_mirror == NULL)
		return;
	now = GetCurrentTimestamp();
	if (now < next_check)
		return;
	next_check = now + CHECK_INTERVAL_US;
	SET_LOCKTAG_OBJECT(tag, InvalidOid, DatabaseRelationId, MyDatabaseId, 0);
	if (is_lock_free(&tag, RowExclusiveLock) && (pg_atomic_read_u32(&my_mirror->waiters) > 0 ||
												 (is_relation_free(my_heap) && is_relation_free(my_index))))
		return;
	ereport(ERROR, (errcode(ERRCODE_QUERY_CANCELED),
					errmsg("canceling load of the in-memory copy of index \"%s\"", my_name),
					errdetail("Another session waits for a lock that the loader holds.")));
}
