/*-------------------------------------------------------------------------
 *
 * build_sample.c
 *	  The stems of a new index's texts (key/stems.h): a look at some of the table's rows before the build.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/tableam.h"
#include "catalog/index.h"
#include "miscadmin.h"
#include "utils/sampling.h"

#include "build/build.h"

/* Blocks that are read; of a table that has not many more, all are. */
#define SAMPLE_BLOCKS 2048
#define SAMPLE_SEED 0x47445331

static void
take_row(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool alive, void *arg)
{
	gpuds_stem_sample_add(arg, values, isnull);
}

/* Takes the rows of blocks that are chosen at random, or all; returns the share of blocks. */
static double
take_sample(Relation heap, Relation index, IndexInfo *indexInfo, GpudsStemSample *sample)
{
	const BlockNumber nblocks = RelationGetNumberOfBlocks(heap);
	BlockSamplerData sampler;

	if (nblocks <= 2 * SAMPLE_BLOCKS)
	{
		(void) table_index_build_range_scan(heap, index, indexInfo, false, false, false, 0, nblocks, take_row,
											sample, NULL);
		return 1;
	}
	BlockSampler_Init(&sampler, nblocks, SAMPLE_BLOCKS, SAMPLE_SEED);
	while (BlockSampler_HasMore(&sampler))
	{
		CHECK_FOR_INTERRUPTS();
		(void) table_index_build_range_scan(heap, index, indexInfo, false, false, false,
											BlockSampler_Next(&sampler), 1, take_row, sample, NULL);
	}
	return (double) SAMPLE_BLOCKS / nblocks;
}

/*
 * Chooses the stems of an index that is about to be built, and appends them as they are stored.  The caller
 * holds what CREATE INDEX does.  Raises what the index's expressions and its predicate do.
 */
void
gpuds_choose_stems(Relation heap, Relation index, const IndexInfo *indexInfo, const GpudsKeyLayout *layout,
				   StringInfo stems)
{
	GpudsStemSample *sample;
	IndexInfo *own_info;
	double share;

	if (!layout->ordered || !gpuds_key_may_have_stems(layout) || RelationGetNumberOfBlocks(heap) == 0)
		return;

	/* as the build will see the rows, but for duplicates */
	own_info = BuildIndexInfo(index);
	own_info->ii_Concurrent = indexInfo->ii_Concurrent;
	own_info->ii_Unique = false;
	sample = gpuds_stem_sample_begin(layout, (Size) maintenance_work_mem * 1024);
	share = take_sample(heap, index, own_info, sample);
	gpuds_stem_sample_end(sample, share, stems);
	pfree(own_info);
}
