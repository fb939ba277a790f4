/*-------------------------------------------------------------------------
 *
 * stats_mirror.c
 *	  Counters of indexes in their mirrors (stats.h).
 *
 * They begin anew when a mirror's slot is given to another file.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "mirror/mirror.h"

void
gpuds_stats_init(GpudsMirrorStats *stats)
{
	for (size_t i = 0; i < GPUDS_NSTATS; i++)
		pg_atomic_init_u64(&stats->count[i], 0);
}

/*
 * Sets the counters of a mirror to 0.  Needs no lock: the counters are atomic, and what is counted meanwhile
 * may be lost.
 */
void
gpuds_stats_begin(GpudsMirrorStats *stats)
{
	for (size_t i = 0; i < GPUDS_NSTATS; i++)
		pg_atomic_write_u64(&stats->count[i], 0);
}

static void
add(GpudsMirror *mirror, const GpudsIndexStats *counts)
{
	for (size_t i = 0; i < GPUDS_NSTATS; i++)
	{
		const uint64 n = ((const uint64 *) counts)[i];

		if (n > 0)
			pg_atomic_fetch_add_u64(&mirror->stats.count[i], n);
	}
}

static void
count(const GpudsMirrorRef *ref, const GpudsIndexStats *counts)
{
	if (pg_atomic_read_u64(&ref->mirror->serial) == ref->serial)
		add(ref->mirror, counts);
}

/* Adds a mirror's counters, unless it has been given to another file than that. */
static void
add_up(GpudsMirror *mirror, const RelFileLocator *locator, GpudsIndexStats *stats)
{
	const uint64 serial = pg_atomic_read_u64(&mirror->serial);
	GpudsIndexStats counts;

	pg_read_barrier();
	if (serial == 0 || !RelFileLocatorEquals(mirror->file.locator, *locator))
		return;
	for (size_t i = 0; i < GPUDS_NSTATS; i++)
		((uint64 *) &counts)[i] = pg_atomic_read_u64(&mirror->stats.count[i]);
	pg_read_barrier();
	if (pg_atomic_read_u64(&mirror->serial) == serial)
		gpuds_stats_sum(stats, &counts);
}

static void
fetch(Oid index, const RelFileLocator *locator, GpudsMirror *const *mirrors, GpudsIndexStats *stats)
{
	memset(stats, 0, sizeof(GpudsIndexStats));
	for (int number = 0; number < GPUDS_FILE_MIRRORS; number++)
	{
		if (mirrors[number])
			add_up(mirrors[number], locator, stats);
	}
}

static void
reset(Oid index, const RelFileLocator *locator, GpudsMirror *const *mirrors)
{
	for (int number = 0; number < GPUDS_FILE_MIRRORS; number++)
	{
		if (mirrors[number] && RelFileLocatorEquals(mirrors[number]->file.locator, *locator))
			gpuds_stats_begin(&mirrors[number]->stats);
	}
}

const GpudsStatsWay gpuds_stats_of_mirrors = {
	.count = count,
	.add = add,
	.fetch = fetch,
	.reset = reset,
};
