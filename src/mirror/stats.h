/*-------------------------------------------------------------------------
 *
 * stats.h
 *	  What is counted of an index: its scans, and the work of devices for it.
 *
 * Where the counters are is decided when the server starts (stats.c).  There are two ways:
 *
 *	stats_kind.c	Since 18, core keeps them as it keeps its own, by index: in the statistics' shared memory
 *					while the server runs, in their file when it is stopped.
 *	stats_mirror.c	Before, and where another library has taken our number of a kind, mirrors have them, as
 *					long as their slots are assigned to the index's file.
 *
 *	S1	Only who holds a lock on the index to the end of his transaction makes counters for it.  So none are
 *		made for an index whose drop is committed, or whose creation is rolled back.  A process without a
 *		database, which is the flusher, has no such lock, and counts only where there are counters.
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
	pg_atomic_uint64 count[GPUDS_NSTATS]; /* 0 where core keeps them */
} GpudsMirrorStats;

static inline void
gpuds_stats_sum(GpudsIndexStats *sum, const GpudsIndexStats *counts)
{
	for (size_t i = 0; i < GPUDS_NSTATS; i++)
		((uint64 *) sum)[i] += ((const uint64 *) counts)[i];
}

/* When the library is preloaded. */
extern void gpuds_stats_register(void);

/* Does core keep the counters?  Since the library was preloaded. */
extern bool gpuds_stats_is_kept_by_core(void);

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

/* A way to keep counters: what the functions of these names do. */
typedef struct GpudsStatsWay
{
	void (*count)(const struct GpudsMirrorRef *ref, const GpudsIndexStats *counts);
	void (*add)(struct GpudsMirror *mirror, const GpudsIndexStats *counts);
	void (*fetch)(Oid index, const RelFileLocator *locator, struct GpudsMirror *const *mirrors,
				  GpudsIndexStats *stats);
	void (*reset)(Oid index, const RelFileLocator *locator, struct GpudsMirror *const *mirrors);
	void (*created)(Oid index); /* NULL, as those below: nothing */
	void (*dropped)(Oid index);
	void (*replaced)(Oid former, Oid index);
} GpudsStatsWay;

extern const GpudsStatsWay gpuds_stats_of_mirrors; /* stats_mirror.c */

/*
 * stats_kind.c.  The way, if core keeps statistics of extensions and our number is not taken, else NULL; the
 * log says so if it is.  To be called once, when the library is preloaded.
 */
extern const GpudsStatsWay *gpuds_stats_register_kind(void);

#endif /* GPUDS_MIRROR_STATS_H */
