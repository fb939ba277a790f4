/*-------------------------------------------------------------------------
 *
 * index.h
 *	  What an index of ours is: its options, its layout, its operator classes, its size.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_INDEX_H
#define GPUDS_INDEX_H

#include "access/amapi.h"
#include "access/genam.h"
#include "nodes/pathnodes.h"

#include "file/file.h"
#include "gpuds.h"
#include "key/key.h"

/*
 * Strategy numbers are those of core's access methods, so that core's assumptions about them hold: btree's
 * where there is an order, else hash's.  Of those above btree's, which no order has, points have GiST's.
 */
#define GPUDS_NSTRATEGIES 5
#define GPUDS_MOST_STRATEGY GPUDS_WITHIN_STRATEGY
#define GPUDS_NHASH_STRATEGIES 1

#define GPUDS_DEFAULT_FILLFACTOR 90
#define GPUDS_MIN_FILLFACTOR 50

/* reloptions of an index */
typedef struct GpudsOptions
{
	int32 vl_len_;  /* varlena header (do not touch directly!) */
	int fillfactor; /* percent of a bulk-built node to fill */
} GpudsOptions;

#define GpudsGetFillfactor(index) \
	((index)->rd_options ? ((GpudsOptions *) (index)->rd_options)->fillfactor : GPUDS_DEFAULT_FILLFACTOR)

/*
 * What a backend remembers of an index in rd_amcache: derived from the catalogs
 * and from the metapage, both fixed for the life of a relation file.
 */
typedef struct GpudsIndexInfo
{
	GpudsKeyLayout layout;
	uint64 file_id;   /* of the metapage */
	uint64 stems_age; /* in which the layout's stems are good (index_stems.h) */
} GpudsIndexInfo;

/* index_info.c */
extern const GpudsIndexInfo *gpuds_index_info(Relation index);
extern void gpuds_index_forget_info(Relation index);
extern bool gpuds_index_planned_layout(Relation index, GpudsKeyLayout *layout);
extern bool gpuds_side_file(Relation index, GpudsFile *file);

/* index_size.c: what a new index takes */
typedef struct GpudsIndexSize
{
	double journal_bytes;
	double host_bytes;   /* of the structure on the CPU device */
	double device_bytes; /* and on a GPU */
} GpudsIndexSize;

extern void gpuds_index_size(double entries, double distinct, int nwords, uint8 structure,
							 GpudsIndexSize *size);

/* classes.c */
extern bool gpuds_index_orders(const IndexOptInfo *index);
extern bool gpuds_index_has_equality(const IndexOptInfo *index, int column, Oid op);
extern bool gpuds_index_is_lossy(const IndexOptInfo *index, int column);
extern bool gpuds_index_has_lossy(const IndexOptInfo *index);

/* new_index.c */
extern void gpuds_index_check_new(Relation index);

/* predicate.c */
extern bool gpuds_index_lock_keys(Relation index, const GpudsKeyLayout *layout, const GpudsKeySet *set,
								  Snapshot snapshot);
extern void gpuds_index_check_keys(Relation index, const GpudsKeyLayout *layout, const GpudsEntry *entries,
								   int n);

/* options.c */
extern void gpuds_define_reloptions(void);
extern bytea *gpuds_options(Datum reloptions, bool validate);

#endif /* GPUDS_INDEX_H */
