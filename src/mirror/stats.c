/*-------------------------------------------------------------------------
 *
 * stats.c
 *	  Which way counters of indexes are kept (stats.h).
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "mirror/mirror.h"

/* Set before the server has other processes, which inherit it. */
static const GpudsStatsWay *way = &gpuds_stats_of_mirrors;

void
gpuds_stats_register(void)
{
	const GpudsStatsWay *kind = gpuds_stats_register_kind();

	if (kind)
		way = kind;
}

bool
gpuds_stats_is_kept_by_core(void)
{
	return way != &gpuds_stats_of_mirrors;
}

void
gpuds_stats_count(const GpudsMirrorRef *ref, const GpudsIndexStats *counts)
{
	way->count(ref, counts);
}

void
gpuds_stats_add(GpudsMirror *mirror, const GpudsIndexStats *counts)
{
	way->add(mirror, counts);
}

void
gpuds_stats_fetch(Oid index, const RelFileLocator *locator, GpudsMirror *const *mirrors,
				  GpudsIndexStats *stats)
{
	way->fetch(index, locator, mirrors, stats);
}

/*
 * Sets the counters of an index of this database to 0, for all sessions.  The arguments are those of
 * gpuds_stats_fetch; the caller has a lock on the index.
 */
void
gpuds_stats_reset(Oid index, const RelFileLocator *locator, GpudsMirror *const *mirrors)
{
	way->reset(index, locator, mirrors);
}

void
gpuds_stats_created(Oid index)
{
	if (way->created)
		way->created(index);
}

/* The transaction in progress drops an index.  If core keeps its counters, they go when that commits. */
void
gpuds_stats_dropped(Oid index)
{
	if (way->dropped)
		way->dropped(index);
}

void
gpuds_stats_replaced(Oid former, Oid index)
{
	if (way->replaced)
		way->replaced(former, index);
}
