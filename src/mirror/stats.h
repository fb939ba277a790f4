/*-------------------------------------------------------------------------
 *
 * stats.h
 *	  What is counted of an index: its scans, and the work of devices for it.
 *
 * Where the counters are is decided by the server's version (GPUDS_CORE_KEEPS_STATS); the functions below
 * are defined once for each way:
 *
 *	stats_kind.c	Since 18, core keeps them as it keeps its own, by index: in the statistics' shared memory
 *					while the server runs, in their file when it is stopped.
 *	stats_mirror.c	Before, mirrors have them, as long as their slots are assigned to the index's file.
 *
 *	S1	Only who holds a lock on the index to the end of his transaction makes counters for it.  So none are
 *		made for an index whose drop is committed, or whose creation is rolled back.  A process without a
 *		database, which is the drainer, has no such lock, and counts only where there are counters.
 *
 *	S2	What a session counts it hands over at the latest when a (sub)transaction ends, and before core drops
 *		the counters of what that transaction dropped or made.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_MIRROR_STATS_H
#define GPUDS_MIRROR_STATS_H

#include "port/atomics.h"

#include "gpuds.h"

struct GpudsMirror;
struct GpudsMirrorRef;

/* Counters; all but loads best effort. */
typedef struct GpudsIndexStats
{
	uint64 scans;     /* (re)scans started */
	uint64 batches;   /* device calls that answered scans */
	uint64 probes;    /* intervals asked for */
	uint64 entries;   /* entries returned */
	uint64 applied;   /* operations applied by catch-up */
	uint64 loads;     /* bulk loads from the journal */
	uint64 fallbacks; /* scans that went to another device, or to the journal */
	/* as in GpudsDeviceWork */
	uint64 small;
	uint64 small_shares;
	uint64 launches;
	uint64 device_ns;
	uint64 bus_bytes;
} GpudsIndexStats;

#define GPUDS_NSTATS (sizeof(GpudsIndexStats) / sizeof(uint64))

/* What a mirror has of them. */
typedef struct GpudsMirrorStats
{
	pg_atomic_uint64 count[GPUDS_CORE_KEEPS_STATS ? 0 : GPUDS_NSTATS];
} GpudsMirrorStats;

static inline void
gpuds_stats_sum(GpudsIndexStats *sum, const GpudsIndexStats *counts)
{
	for (size_t i = 0; i < GPUDS_NSTATS; i++)
		((uint64 *) sum)[i] += ((const uint64 *) counts)[i];
}

/* When the library is preloaded. */
extern void gpuds_stats_register(void);

/* Of a mirror's memory: it is new; it is another file's from now on. */
extern void gpuds_stats_init(GpudsMirrorStats *stats);
extern void gpuds_stats_begin(GpudsMirrorStats *stats);

/* Counts what a session has done by a reference, which may be out of date. */
extern void gpuds_stats_count(const struct GpudsMirrorRef *ref, const GpudsIndexStats *counts);

/* Counts what the mirror's applier, the caller, has done to it; at once, for everybody to see. */
extern void gpuds_stats_add(struct GpudsMirror *mirror, const GpudsIndexStats *counts);

/*
 * Counters of an index of this database, with what this session has handed over; or sets them to 0.  The
 * mirrors are those of its present file on all kinds of device, NULL where there is none.
 */
extern void gpuds_stats_fetch(Oid index, const RelFileLocator *locator, struct GpudsMirror *const *mirrors,
							  GpudsIndexStats *stats);
extern void gpuds_stats_reset(Oid index, const RelFileLocator *locator, struct GpudsMirror *const *mirrors);

/* The transaction in progress makes or drops an index, which may be rolled back. */
extern void gpuds_stats_created(Oid index);
extern void gpuds_stats_dropped(Oid index);

/* An index takes the place of another one, which is about to be dropped: it takes over what was counted. */
extern void gpuds_stats_replaced(Oid former, Oid index);

#endif /* GPUDS_MIRROR_STATS_H */
