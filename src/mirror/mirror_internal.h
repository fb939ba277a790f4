/*-------------------------------------------------------------------------
 *
 * mirror_internal.h
 *	  What the mirrors' files share among themselves.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_MIRROR_INTERNAL_H
#define GPUDS_MIRROR_INTERNAL_H

#include "datatype/timestamp.h"

#include "mirror/mirror.h"

/* memory_claim.c */
extern size_t gpuds_memory_free_bytes(GpudsDeviceKind kind, size_t wanted);
extern bool gpuds_memory_is_protected(GpudsMirror *mirror, TimestampTz now);

/*
 * Records in a batch of a session's catch-up: what an interruption costs at most.
 * Work that is larger is left to a loader.
 */
#define GPUDS_PIECE_RECORDS (256 * 1024)

/* How an attempt to bring a mirror up ended. */
typedef enum GpudsBringUp
{
	GPUDS_UP,
	GPUDS_STALE,        /* the journal no longer holds what is missing */
	GPUDS_NO_MEMORY,    /* the mirror has noted it */
	GPUDS_TOO_LARGE,    /* more entries than the device can have, ditto */
	GPUDS_NO_STRUCTURE, /* the device does not have the structure, ditto */
	GPUDS_LOST,         /* with the device */
	GPUDS_LONG          /* not done: there is work for a loader */
} GpudsBringUp;

/* How to go about it. */
#define GPUDS_ASKED 0x01    /* by name: loads also in place of mirrors that are protected */
#define GPUDS_ALONE 0x02    /* long work, too */
#define GPUDS_NO_EVICT 0x08 /* no mirror is evicted for it */
#define GPUDS_LOADER 0x04   /* in large batches: no user cancels a loader */

/* load.c */
extern int64 gpuds_ops_large(void);
extern Size gpuds_ops_memory(int64 most);
extern bool gpuds_mirror_fits_anew(const GpudsMirrorSource *source, GpudsMirror *mirror);
extern GpudsBringUp gpuds_mirror_load_all(const GpudsMirrorSource *source, GpudsMirror *mirror, int how);

/* catchup.c */
extern GpudsBringUp gpuds_mirror_apply(GpudsMirror *mirror, const GpudsOp *ops, int64 n, int how,
									   int64 *size);
extern GpudsBringUp gpuds_mirror_bring_up(const GpudsMirrorSource *source, GpudsMirrorRef *ref, int how);

static inline GpudsBringUp
gpuds_bring_up_result(GpudsDeviceStatus status)
{
	switch (status)
	{
		case GPUDS_DEVICE_OK:
			return GPUDS_UP;
		case GPUDS_DEVICE_NO_MEMORY:
			return GPUDS_NO_MEMORY;
		case GPUDS_DEVICE_TOO_LARGE:
			return GPUDS_TOO_LARGE;
		case GPUDS_DEVICE_NO_STRUCTURE:
			return GPUDS_NO_STRUCTURE;
		default:
			return GPUDS_LOST;
	}
}

/* loader_yield.c */
extern void gpuds_make_way_begin(GpudsMirror *mirror, Oid heap, Relation index);
extern void gpuds_make_way_end(void);
extern void gpuds_make_way_check(void);

/* flusher.c */
extern PGDLLEXPORT void gpuds_flusher_main(Datum arg);

/* probe.c */
extern bool gpuds_probe_ask_memtable(GpudsMirrorRef *ref, const GpudsScan *scan, bool forward, bool sorted);
extern bool gpuds_probe_still_attached(const GpudsMirrorRef *ref);
extern int64 gpuds_probe_first_ahead(const GpudsDelta *delta, const GpudsScan *scan);

/* delta_merge.c */

/* Two sources of a scan's entries, each in the scan's direction. */
typedef struct GpudsMerge
{
	const GpudsEntry *old; /* of the mirror */
	int64 nold;
	bool old_end;         /* there are no more */
	const GpudsOp *delta; /* of the memtable: the last word on entries */
	int64 ndelta;
	bool delta_end;
} GpudsMerge;

extern int64 gpuds_merge(const GpudsMerge *merge, GpudsScan *scan, bool forward, GpudsEntry *out, int64 cap,
						 bool *end);

/* loader.c */
extern bool gpuds_loader_hand_over(const GpudsMirrorSource *source, GpudsMirrorRef *ref, int how);
extern bool gpuds_loader_start(const GpudsMirrorSource *source, int number, int how);
extern PGDLLEXPORT void gpuds_loader_main(Datum arg);

#endif /* GPUDS_MIRROR_INTERNAL_H */
