/*-------------------------------------------------------------------------
 *
 * stats_kind.c
 *	  Counters of indexes as a kind of core's cumulative statistics (stats.h); since 18.
 *
 * An entry is named by database and index OID, so it stays with the index when its file changes.  Core
 * writes entries to its file when the server is stopped, reads them when it is started, discards them after a
 * crash, and drops those of a database with it.  That an index is made or dropped is part of the commit or
 * abort record, so a standby drops its own entries too.
 *
 * What scans count is pending in the session, as core's own counters are: nobody takes a lock for it before
 * core flushes it, at most once a second.  Loads and what was applied are rare, and others look at them: they
 * are added at once, under the entry's lock, which is held for a few additions.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "mirror/mirror.h"

#if GPUDS_CORE_KEEPS_STATS

#include "miscadmin.h"
#include "utils/pgstat_internal.h"

/*
 * Names our entries in the file and in WAL, so it is not to be changed lightly.  Only one library of a server
 * can have a number, of which there are few.
 */
#ifndef GPUDS_STATS_KIND
#define GPUDS_STATS_KIND 30
#endif

typedef struct SharedStats
{
	PgStatShared_Common header;
	GpudsIndexStats stats;
} SharedStats;

static GpudsIndexStats *
shared_of(PgStat_EntryRef *entry)
{
	return &((SharedStats *) entry->shared_stats)->stats;
}

static bool
flush_pending(PgStat_EntryRef *entry, bool nowait)
{
	if (!pgstat_lock_entry(entry, nowait))
		return false;
	gpuds_stats_sum(shared_of(entry), entry->pending);
	pgstat_unlock_entry(entry);
	return true;
}

static const PgStat_KindInfo kind_info = {
	.name = "gpuds",
	.fixed_amount = false,
	.accessed_across_databases = false,
	.write_to_file = true,
	.shared_size = sizeof(SharedStats),
	.shared_data_off = offsetof(SharedStats, stats),
	.shared_data_len = sizeof(GpudsIndexStats),
	.pending_size = sizeof(GpudsIndexStats),
	.flush_pending_cb = flush_pending,
};

/* May the process make an entry (S1)? */
static bool
may_create(void)
{
	return OidIsValid(MyDatabaseId);
}

static void
add_at_once(Oid database, Oid index, const GpudsIndexStats *counts)
{
	PgStat_EntryRef *entry = pgstat_get_entry_ref(GPUDS_STATS_KIND, database, index, may_create(), NULL);

	if (entry == NULL)
		return;
	(void) pgstat_lock_entry(entry, false);
	gpuds_stats_sum(shared_of(entry), counts);
	pgstat_unlock_entry(entry);
}

static void
count(const GpudsMirrorRef *ref, const GpudsIndexStats *counts)
{
	PgStat_EntryRef *entry;

	/* The flusher ends no transactions, so core does not flush what is pending there. */
	if (!may_create())
	{
		add_at_once(ref->database, ref->index, counts);
		return;
	}
	entry = pgstat_prep_pending_entry(GPUDS_STATS_KIND, ref->database, ref->index, NULL);
	gpuds_stats_sum(entry->pending, counts);
}

static void
add(GpudsMirror *mirror, const GpudsIndexStats *counts)
{
	add_at_once(mirror->file.locator.dbOid, mirror->index_oid, counts);
}

/* Hands over what is pending of an index in this session. */
static void
flush_own(Oid index)
{
	PgStat_EntryRef *entry = pgstat_get_entry_ref(GPUDS_STATS_KIND, MyDatabaseId, index, false, NULL);

	if (entry && entry->pending)
	{
		(void) flush_pending(entry, false);
		pgstat_delete_pending_entry(entry);
	}
}

/*
 * As they are now, also for those who look twice in a transaction; stats_fetch_consistency is for core's
 * views.
 */
static void
fetch(Oid index, const RelFileLocator *locator, GpudsMirror *const *mirrors, GpudsIndexStats *stats)
{
	PgStat_EntryRef *entry;

	flush_own(index);
	memset(stats, 0, sizeof(GpudsIndexStats));
	entry = pgstat_get_entry_ref(GPUDS_STATS_KIND, MyDatabaseId, index, false, NULL);
	if (entry == NULL)
		return;
	(void) pgstat_lock_entry_shared(entry, false);
	*stats = *shared_of(entry);
	pgstat_unlock_entry(entry);
}

static void
reset(Oid index, const RelFileLocator *locator, GpudsMirror *const *mirrors)
{
	flush_own(index);
	pgstat_reset(GPUDS_STATS_KIND, MyDatabaseId, index);
}

static void
created(Oid index)
{
	pgstat_create_transactional(GPUDS_STATS_KIND, MyDatabaseId, index);
}

static void
dropped(Oid index)
{
	pgstat_drop_transactional(GPUDS_STATS_KIND, MyDatabaseId, index);
}

static void
replaced(Oid former, Oid index)
{
	GpudsIndexStats counts;

	fetch(former, NULL, NULL, &counts);
	add_at_once(MyDatabaseId, index, &counts);
}

static const GpudsStatsWay way = {
	.count = count,
	.add = add,
	.fetch = fetch,
	.reset = reset,
	.created = created,
	.dropped = dropped,
	.replaced = replaced,
};

/* Core would not start the server if the number were taken. */
const GpudsStatsWay *
gpuds_stats_register_kind(void)
{
	const PgStat_KindInfo *other = pgstat_get_kind_info(GPUDS_STATS_KIND);

	if (other)
	{
		ereport(LOG,
				(errmsg("gpuds counts in shared memory until the server is stopped, because another library "
						"has taken number %d of cumulative statistics",
						GPUDS_STATS_KIND),
				 errdetail("The statistics of that number are called \"%s\".", other->name),
				 errhint("Build one of the two libraries with another number.")));
		return NULL;
	}
	pgstat_register_kind(GPUDS_STATS_KIND, &kind_info);
	return &way;
}

#else

const GpudsStatsWay *
gpuds_stats_register_kind(void)
{
	return NULL;
}

#endif /* GPUDS_CORE_KEEPS_STATS */
