/*-------------------------------------------------------------------------
 *
 * record.h
 *	  An entry as it is stored: in the pages of an index, and in temporary files.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_RECORD_H
#define GPUDS_RECORD_H

#include "kernels/core/entry.h"

/*
 * A record.  16 bytes in indexes of one key word, 24 with two.
 */
typedef struct GpudsRecord
{
	uint8 flags;   /* bits: tombstone, dead */
	uint8 spill;   /* last key bits, GpudsEntry.t >> ENTRY_SPILL_SHIFT */
	uint16 offset; /* heap TID */
	uint32 block;
	uint64 word[FLEXIBLE_ARRAY_MEMBER]; /* one or two key words */
} GpudsRecord;

/*
 * Stripes of an index's journal, which records are appended to (journal/journal.h): all records of a TID are
 * in the stripe of its heap block.  Each has one tail page, whose lock appenders take in turn; each that is
 * in use is a page more in the file and for standbys to look at.
 */
#define GPUDS_STRIPES 32

#define GPUDS_RECORD_TOMBSTONE 0x01 /* ends an earlier record's life */
#define GPUDS_RECORD_DEAD 0x02      /* marked by VACUUM: ignore */

#define GpudsRecordSize(nwords) (offsetof(GpudsRecord, word) + 8 * (nwords))

/* Makes an entry's record, GpudsRecordSize(nwords) bytes. */
static inline void
gpuds_record_form(GpudsRecord *record, const GpudsEntry *entry, int nwords, uint8 flags)
{
	record->flags = flags;
	record->spill = entry->t >> ENTRY_SPILL_SHIFT;
	record->offset = entry->t & 0xFFFF;
	record->block = (entry->t >> 16) & 0xFFFFFFFF;
	record->word[0] = entry->w0;
	if (nwords > 1)
		record->word[1] = entry->w1;
}

/* The stripe that records of an entry are appended to. */
static inline int
gpuds_stripe_of(const GpudsEntry *entry)
{
	return (int) ((entry->t >> 16) % GPUDS_STRIPES);
}

/* The entry of a record. */
static inline void
gpuds_record_entry(const GpudsRecord *record, int nwords, GpudsEntry *entry)
{
	entry->w0 = record->word[0];
	entry->w1 = nwords > 1 ? record->word[1] : 0;
	entry->t = (uint64) record->spill << ENTRY_SPILL_SHIFT | (uint64) record->block << 16 | record->offset;
}

#endif /* GPUDS_RECORD_H */
