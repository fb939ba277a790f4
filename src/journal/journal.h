/*-------------------------------------------------------------------------
 *
 * journal.h
 *	  The durable side of an index: WAL-logged pages of fixed-size records.
 *
 * Block 0 is the metapage.  Behind it there may be pages of stems (key/stems.h), written with it and
 * never changed.  Every other block is free, or a page of records that belongs to one of two
 * kinds of chains:
 *
 *	base	the live entries at some moment, sorted, written in one go by the build
 *			or by compaction, never appended to;
 *	stripe	one of GPUDS_STRIPES tail chains, records in order of arrival.
 *
 * All records of an entry whose TID is in heap block b are in stripe b % GPUDS_STRIPES.  So all
 * records of one TID are totally ordered, although stripes are appended to concurrently.
 * Records of the base are older than all records of stripes.  A tombstone ends the life of
 * the same (key, TID) appended before.
 *
 * The records of a stripe are numbered from 0 on, for the life of the relation file.
 * Compaction drops the oldest but never renumbers.  A page's opaque data says which records
 * it holds (GpudsPageOpaqueData).  So a reader that followed a stale link to a recycled
 * page notices, and starts again at the metapage.  src/journal/README.md has the
 * locking order and the proofs.
 *
 * All pages have the standard layout; pd_lower ends the records.  All changes go through
 * generic WAL.
 *
 * In names, meta is the metapage's data, pos a position in the stripes, blkno a block
 * number, nwords the number of 64-bit words of a key.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_JOURNAL_H
#define GPUDS_JOURNAL_H

#include "access/genam.h"
#include "storage/block.h"
#include "storage/bufpage.h"
#include "utils/rel.h"

#include "kernels/core/entry.h"
#include "memtable/memtable.h"
#include "sort/record.h"

#define GPUDS_META_BLKNO 0
#define GPUDS_MAGIC 0x47445331 /* "GDS1" */
#define GPUDS_FORMAT_VERSION 2
#define GPUDS_PAGE_ID 0xFF94 /* last two bytes of every page */

/* Kinds of page. */
#define GPUDS_PAGE_META 1
#define GPUDS_PAGE_BASE 2
#define GPUDS_PAGE_STRIPE 3
#define GPUDS_PAGE_FREE 4
#define GPUDS_PAGE_STEMS 5

/* Pages of stems, at most. */
#define GPUDS_MOST_STEM_PAGES 1024

typedef struct GpudsPageOpaqueData
{
	/* number of the page's first record, in its stripe or in its base */
	uint64 first;
	/* of the page's base; in stripe and free pages for information only */
	uint64 generation;
	BlockNumber next; /* next page of the chain, or invalid */
	uint16 spare;     /* zero */
	uint8 kind;       /* GPUDS_PAGE_xxx */
	uint8 stripe;     /* stripe number, 0 in base pages */
	uint16 spare2[3]; /* zero */
	uint16 page_id;   /* GPUDS_PAGE_ID */
} GpudsPageOpaqueData;

typedef GpudsPageOpaqueData *GpudsPageOpaque;

#define GpudsPageGetOpaque(page) ((GpudsPageOpaque) PageGetSpecialPointer(page))

#define GpudsPageRecord(page, i, nwords) \
	((GpudsRecord *) (PageGetContents(page) + (i) *GpudsRecordSize(nwords)))
#define GpudsPageCount(page, nwords) \
	((int) ((((PageHeader) (page))->pd_lower - MAXALIGN(SizeOfPageHeaderData)) / GpudsRecordSize(nwords)))
#define GpudsPageCapacity(nwords)                                                               \
	((int) ((BLCKSZ - MAXALIGN(SizeOfPageHeaderData) - MAXALIGN(sizeof(GpudsPageOpaqueData))) / \
			GpudsRecordSize(nwords)))
#define GPUDS_MAX_RECORDS_PER_PAGE GpudsPageCapacity(1)

/* Where a stripe starts, and a hint where it ends. */
typedef struct GpudsStripeMeta
{
	BlockNumber head;      /* first page, invalid if the stripe is empty */
	BlockNumber tail_hint; /* some page of the stripe, not far from the end */
	uint64 first;          /* number of the first record of head */
} GpudsStripeMeta;

typedef struct GpudsMetaData
{
	/* these two stay where they are in all formats, so that each version knows what is another's */
	uint32 magic;
	uint16 version;  /* GPUDS_FORMAT_VERSION */
	uint8 structure; /* number in kernels/structures.h */
	uint8 nwords;    /* key words of a record, 1 or 2 */
	/* random, given at creation: tells a recycled file number from the file it once was */
	uint64 file_id;
	uint64 generation;     /* counts bases; raised by compaction */
	BlockNumber base_head; /* first page of the base, or invalid */
	BlockNumber base_pages;
	uint64 base_records;
	uint64 live_records; /* as the last VACUUM or build counted them */
	uint64 garbage;      /* dead records and tombstones, ditto */
	uint16 key_bits;     /* of the key layout, to catch a mismatch */
	/* 1: there may be pages that are neither reachable nor free */
	uint16 sweep_due;
	BlockNumber unreached; /* blocks that no chain led to when last counted */
	GpudsStripeMeta stripe[GPUDS_STRIPES];

	/*
	 * What follows is zero in files that were made before it was there, whose pd_lower is in
	 * front of it (GPUDS_META_LEAST).
	 */
	uint64 epoch;      /* times that records have been marked dead without tombstones */
	uint16 epoch_due;  /* 1: some may have been since the epoch was raised last */
	uint16 stem_pages; /* blocks behind the metapage that have the stems of texts (key/stems.h) */
	uint16 spare[2];   /* zero */
} GpudsMetaData;

#define GpudsPageGetMeta(page) ((GpudsMetaData *) PageGetContents(page))

/* Bytes that every metapage has of GpudsMetaData. */
#define GPUDS_META_LEAST offsetof(GpudsMetaData, epoch)

/*
 * How far a reader has read: all records of stripe l numbered below count[l].
 * block[l] is the page that holds, or will be followed by the page that holds,
 * record count[l]; invalid: start at the metapage.
 *
 * Whoever has read up to a position learns of all later changes by reading on from there, as long as
 * the metapage's epoch is the position's.  If it is another one, the position is stale.
 */
typedef struct GpudsJournalPos
{
	uint64 epoch;
	uint64 count[GPUDS_STRIPES];
	BlockNumber block[GPUDS_STRIPES];
} GpudsJournalPos;

/* One page's records, copied out by the reader. */
typedef struct GpudsJournalPage
{
	BlockNumber blkno;
	uint8 kind; /* GPUDS_PAGE_BASE or GPUDS_PAGE_STRIPE */
	uint8 stripe;
	uint64 first; /* number of record[0] */
	int nrecords;
	int nwords;
	char *records; /* nrecords * GpudsRecordSize(nwords) bytes */
} GpudsJournalPage;

/*
 * Goes through a page's records: zeroed but for page, then gpuds_record_next gives
 * one after the other.
 */
typedef struct GpudsRecordIterator
{
	const GpudsJournalPage *page;
	int next;
	/* the record that the iterator stands on */
	GpudsEntry entry;
	uint64 number; /* in its stripe, or in its base */
	uint8 flags;   /* GPUDS_RECORD_xxx */
} GpudsRecordIterator;

typedef struct GpudsJournalReader GpudsJournalReader;

typedef enum GpudsReadResult
{
	GPUDS_READ_PAGE, /* *page was filled */
	GPUDS_READ_END,  /* everything was read; position is final */
	/* a compaction replaced the chain under the reader: start again with a new reader */
	GPUDS_READ_STALE
} GpudsReadResult;

/* shared memory (changes.c): the change counters */
extern Size gpuds_journal_shmem_size(void);
extern void gpuds_journal_shmem_init(void);

/*
 * Change counter of an index file: it moves after every append and before the
 * appender's transaction can commit.  Indexes may share a counter, so a moved
 * counter means "look", an unmoved one "nothing was appended".  Meaningless
 * during recovery, when pages change without anybody counting.
 */
extern uint64 gpuds_journal_changes(Relation index);

/*
 * Bulk deletes of an index file that have ended: it moves before ambulkdelete returns, and so
 * before VACUUM gives TIDs away or calls their pages all-visible.  Indexes may share a counter.
 * Meaningless during recovery.
 */
extern uint64 gpuds_journal_bulk_deletes(Relation index);

/* May tombstones have been appended by a bulk delete since WAL ended there? */
extern bool gpuds_journal_bulk_deleted_since(Relation index, XLogRecPtr lsn);

/* metapage (meta.c) */
extern void gpuds_journal_create(Relation index, ForkNumber fork, uint8 structure, int nwords, int key_bits,
								 const char *stems, Size stems_size);
extern void gpuds_journal_read_meta(Relation index, GpudsMetaData *meta);
extern bool gpuds_journal_has_our_format(Relation index);
extern bool gpuds_journal_peek_meta(Relation index, GpudsMetaData *meta);
extern void gpuds_journal_start(const GpudsMetaData *meta, GpudsJournalPos *start);
extern void gpuds_journal_finish_build(Relation index, BlockNumber head, BlockNumber pages, uint64 records,
									   bool logged);

/* stem_pages.c */
extern BlockNumber gpuds_stem_pages(Size size);
extern void gpuds_journal_write_stems(Relation index, const char *stems, Size size);
extern char *gpuds_journal_read_stems(Relation index, const GpudsMetaData *meta, Size *size);

/* page checks (page.c): ERRCODE_INDEX_CORRUPTED with the block number */
extern void gpuds_page_init(Page page, uint8 kind, int stripe, uint64 generation, uint64 first);
extern void gpuds_page_check(Relation index, Buffer buffer, int nwords);

/* Moves on to the page's next record; false: there is none. */
static inline bool
gpuds_record_next(GpudsRecordIterator *iterator)
{
	const GpudsJournalPage *page = iterator->page;
	const GpudsRecord *record;

	if (iterator->next >= page->nrecords)
		return false;
	record = (const GpudsRecord *) (page->records + iterator->next * GpudsRecordSize(page->nwords));
	gpuds_record_entry(record, page->nwords, &iterator->entry);
	iterator->number = page->first + iterator->next;
	iterator->flags = record->flags;
	iterator->next++;
	return true;
}

/* append_group.c: entries of several indexes, each of another file, that are appended together */
#define GPUDS_GROUP_INDEXES GPUDS_APPEND_FILES
#define GPUDS_GROUP_ENTRIES 64 /* of each of them, at most */

typedef struct GpudsAppend
{
	Relation index;
	const GpudsEntry *entries;
	int n;
	int nwords; /* key words of the index */
} GpudsAppend;

extern bool gpuds_journal_append_group(const GpudsAppend *appends, int n);

/* append.c */
extern void gpuds_journal_append(Relation index, int nwords, const GpudsEntry *entries, int64 n);
extern void gpuds_journal_end(Relation index, const GpudsMetaData *meta, GpudsJournalPos *end);

/* read.c */
extern GpudsJournalReader *gpuds_reader_open(Relation index);
extern GpudsJournalReader *gpuds_reader_open_after(Relation index, const GpudsJournalPos *pos);
extern void gpuds_reader_stop_at(GpudsJournalReader *reader, const GpudsJournalPos *end);
extern GpudsReadResult gpuds_reader_next(GpudsJournalReader *reader, GpudsJournalPage *page);
extern const GpudsMetaData *gpuds_reader_meta(GpudsJournalReader *reader);
extern void gpuds_reader_position(GpudsJournalReader *reader, GpudsJournalPos *pos);
extern void gpuds_reader_close(GpudsJournalReader *reader);

/* base.c: writing a base, sorted entries in, pages out */
typedef struct GpudsBaseWriter GpudsBaseWriter;
struct GpudsReserve;
extern GpudsBaseWriter *gpuds_base_begin(Relation index, int nwords, uint64 generation, bool log_pages,
										 struct GpudsReserve *reserve);
extern GpudsBaseWriter *gpuds_base_begin_part(Relation index, int nwords, BlockNumber first, BlockNumber end,
											  uint64 records_before, bool log_pages);
extern void gpuds_base_add(GpudsBaseWriter *writer, const GpudsEntry *entries, int64 n);
extern void gpuds_base_end(GpudsBaseWriter *writer, BlockNumber *head, BlockNumber *pages, uint64 *records);

/* vacuum marks (mark.c) and compaction (compact.c) */
extern void gpuds_journal_bulk_delete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats, int nwords,
									  IndexBulkDeleteCallback callback, void *state);
extern void gpuds_journal_cleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats, int nwords);

#endif /* GPUDS_JOURNAL_H */
