/*-------------------------------------------------------------------------
 *
 * journal_internal.h
 *	  What the journal's files share among themselves and with the build.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_JOURNAL_INTERNAL_H
#define GPUDS_JOURNAL_INTERNAL_H

#include "access/generic_xlog.h"
#include "storage/bufmgr.h"

#include "gpuds.h"
#include "journal/journal.h"

/* A tail page and the new pages of one record: what generic WAL can take. */
#define GPUDS_MAX_NEW_PAGES (MAX_GENERIC_XLOG_PAGES - 1)

/* The stripe that all records of an entry's TID are in. */

/* changes.c */
extern void gpuds_journal_count_change(Relation index);
extern void gpuds_journal_count_bulk_delete(Relation index);
extern void gpuds_journal_bulk_delete_begins(Relation index);

/*
 * Pages that VACUUM has for its own use before it begins what it must not fail at for want of space
 * (new_pages.c): free by the time that they were found, reachable by nothing.
 */
typedef struct GpudsReserve
{
	BlockNumber *blocks;
	int64 n;
	int64 size;    /* of blocks */
	char why[256]; /* there were no more; empty: there always were */
	int why_code;  /* ditto, a SQLSTATE */
} GpudsReserve;

/* How far the free space map reaches, as it was found (gpuds_record_free_page). */
typedef struct GpudsMapReach
{
	BlockNumber end; /* it has room for the blocks below */
	bool full;       /* it does not grow */
} GpudsMapReach;

/* new_pages.c */
extern Buffer gpuds_page_new(Relation index, GpudsReserve *reserve);
extern void gpuds_reserve_init(GpudsReserve *reserve);
extern bool gpuds_reserve_pages(Relation index, GpudsReserve *reserve, int64 n);
extern void gpuds_reserve_release(Relation index, GpudsReserve *reserve);
extern void gpuds_record_free_page(Relation index, BlockNumber blkno, GpudsMapReach *reach);

/* page.c */
pg_noreturn extern void gpuds_corrupted(Relation index, BlockNumber blkno, const char *fmt, ...)
	pg_attribute_printf(3, 4);
extern void gpuds_page_store(Page page, const char *records, int n, int nwords);
extern bool gpuds_page_is_free(Page page);
extern void gpuds_block_check(Relation index, BlockNumber from, BlockNumber blkno);

/* wal.c */
typedef struct GpudsPageDelta
{
	int length; /* of what is used */
	/*
	 * A page's worth and three fragment heads.  An append adds three fragments at most.  Dead marks (mark.c)
	 * add five bytes for each record of a page, of which each has 16 at least.
	 */
	char data[BLCKSZ + 64];
} GpudsPageDelta;

extern void gpuds_page_delta_add(GpudsPageDelta *delta, Page page, int offset, int length);
extern void gpuds_log_pages(Relation index, Buffer changed, GpudsPageDelta *delta, const Buffer *fresh,
							int nfresh);
extern void gpuds_log_group(const Buffer *changed, GpudsPageDelta *deltas, int n);

/* A page's next link, counted from its start. */
#define GPUDS_NEXT_OFFSET \
	(BLCKSZ - MAXALIGN(sizeof(GpudsPageOpaqueData)) + offsetof(GpudsPageOpaqueData, next))

/* append.c */
extern void gpuds_append_remember(int file, int nwords, int stripe, const char *records, int64 n,
								  uint64 number, BlockNumber block);
extern bool gpuds_journal_append_tombstones(Relation index, int nwords, const GpudsEntry *entries, int64 n,
											GpudsReserve *reserve);
extern void gpuds_journal_seal(Relation index, int nwords, GpudsReserve *reserve, GpudsJournalPos *sealed,
							   GpudsStripeMeta fresh[GPUDS_STRIPES]);

/* meta.c */
extern void gpuds_meta_check(Relation index, Buffer buffer);
extern void gpuds_meta_set_counts(Relation index, uint64 live, uint64 garbage, BlockNumber unreached);
extern void gpuds_meta_sweep_due(Relation index);
extern void gpuds_meta_swept(Relation index, BlockNumber nfree);
extern void gpuds_meta_epoch_due(Relation index);
extern void gpuds_meta_next_epoch(Relation index);

/* mark.c */
extern void gpuds_journal_settle_epoch(Relation index);

/* tails.c */
typedef struct GpudsTails
{
	Oid relid;
	RelFileLocator locator; /* all zero: forgotten */
	BlockNumber tail[GPUDS_STRIPES];
} GpudsTails;

extern GpudsTails *gpuds_tails_of(Relation index);
extern void gpuds_tails_forget(Oid relid);

/* read.c */
extern void gpuds_reader_set_strategy(GpudsJournalReader *reader, BufferAccessStrategy strategy);

#endif /* GPUDS_JOURNAL_INTERNAL_H */
