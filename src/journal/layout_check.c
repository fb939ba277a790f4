/*-------------------------------------------------------------------------
 *
 * layout_check.c
 *	  Compile-time checks of every on-disk structure: sizes and offsets in bytes.
 *
 * Changing one of them means a new GPUDS_FORMAT_VERSION.  The offsets of magic and version never
 * change.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "journal/journal_internal.h"

#define CHECK_SIZE(type, size) StaticAssertDecl(sizeof(type) == (size), "size of " #type " has changed")
#define CHECK_OFFSET(type, field, offset) \
	StaticAssertDecl(offsetof(type, field) == (offset), "offset of " #type "." #field " has changed")

CHECK_SIZE(GpudsPageOpaqueData, 32);
CHECK_OFFSET(GpudsPageOpaqueData, first, 0);
CHECK_OFFSET(GpudsPageOpaqueData, generation, 8);
CHECK_OFFSET(GpudsPageOpaqueData, next, 16);
CHECK_OFFSET(GpudsPageOpaqueData, spare, 20);
CHECK_OFFSET(GpudsPageOpaqueData, kind, 22);
CHECK_OFFSET(GpudsPageOpaqueData, stripe, 23);
CHECK_OFFSET(GpudsPageOpaqueData, spare2, 24);
CHECK_OFFSET(GpudsPageOpaqueData, page_id, 30);
StaticAssertDecl(MAXALIGN(sizeof(GpudsPageOpaqueData)) == sizeof(GpudsPageOpaqueData),
				 "the page id must be the last two bytes of a page");

CHECK_SIZE(GpudsRecord, 8);
CHECK_OFFSET(GpudsRecord, flags, 0);
CHECK_OFFSET(GpudsRecord, spill, 1);
CHECK_OFFSET(GpudsRecord, offset, 2);
CHECK_OFFSET(GpudsRecord, block, 4);
CHECK_OFFSET(GpudsRecord, word, 8);
StaticAssertDecl(GpudsRecordSize(1) == 16 && GpudsRecordSize(2) == 24, "record size has changed");
StaticAssertDecl(MAXALIGN(SizeOfPageHeaderData) == 24, "records must start at byte 24 of a page");

CHECK_SIZE(GpudsStripeMeta, 16);
CHECK_OFFSET(GpudsStripeMeta, head, 0);
CHECK_OFFSET(GpudsStripeMeta, tail_hint, 4);
CHECK_OFFSET(GpudsStripeMeta, first, 8);

CHECK_SIZE(GpudsMetaData, 592);
CHECK_OFFSET(GpudsMetaData, magic, 0);
CHECK_OFFSET(GpudsMetaData, version, 4);
CHECK_OFFSET(GpudsMetaData, structure, 6);
CHECK_OFFSET(GpudsMetaData, nwords, 7);
CHECK_OFFSET(GpudsMetaData, file_id, 8);
CHECK_OFFSET(GpudsMetaData, generation, 16);
CHECK_OFFSET(GpudsMetaData, base_head, 24);
CHECK_OFFSET(GpudsMetaData, base_pages, 28);
CHECK_OFFSET(GpudsMetaData, base_records, 32);
CHECK_OFFSET(GpudsMetaData, live_records, 40);
CHECK_OFFSET(GpudsMetaData, garbage, 48);
CHECK_OFFSET(GpudsMetaData, key_bits, 56);
CHECK_OFFSET(GpudsMetaData, sweep_due, 58);
CHECK_OFFSET(GpudsMetaData, unreached, 60);
CHECK_OFFSET(GpudsMetaData, stripe, 64);
CHECK_OFFSET(GpudsMetaData, epoch, 576);
CHECK_OFFSET(GpudsMetaData, epoch_due, 584);
CHECK_OFFSET(GpudsMetaData, stem_pages, 586);
CHECK_OFFSET(GpudsMetaData, spare, 588);
StaticAssertDecl(GPUDS_META_LEAST == 576, "what the first metapages of this format have");

/* One stripe's share of a heap block number: mark the TID's place in GpudsEntry.t. */
StaticAssertDecl(ENTRY_TID_MASK == ((UINT64CONST(1) << 48) - 1), "a TID takes 48 bits");
StaticAssertDecl((GPUDS_STRIPES & (GPUDS_STRIPES - 1)) == 0, "the number of stripes must be a power of two");
StaticAssertDecl(GPUDS_MAX_RECORDS_PER_PAGE <= PG_UINT16_MAX, "record indexes are 16 bits");
