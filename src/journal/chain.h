/*-------------------------------------------------------------------------
 *
 * chain.h
 *	  The walk along a chain of the journal's pages.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_CHAIN_H
#define GPUDS_CHAIN_H

#include "journal/journal_internal.h"

#define GPUDS_CHAIN_BASE (-1) /* in place of a stripe's number */

typedef struct GpudsChain
{
	Relation index;
	const GpudsMetaData *meta; /* by which the chain is walked */
	BufferAccessStrategy strategy;
	BlockNumber nblocks; /* of the file, as last seen */

	/* where the walk goes on */
	int stripe;       /* or GPUDS_CHAIN_BASE */
	BlockNumber from; /* the page that leads to next */
	BlockNumber next; /* invalid: the walk is at its end */
	uint64 expect;    /* number of the first record of next */
	uint64 want;      /* the first record that is wanted */
	bool guessed;     /* next may be anything, its first record may be any up to want */

	/* the present page */
	BlockNumber blkno;
	GpudsPageOpaqueData opaque;
	int count;   /* its records */
	int skipped; /* the first of them, which are not wanted and not in records */
	PGAlignedBlock records;
} GpudsChain;

extern void gpuds_chain_init(GpudsChain *chain, Relation index, const GpudsMetaData *meta,
							 BufferAccessStrategy strategy);
extern void gpuds_chain_begin_base(GpudsChain *chain);
extern void gpuds_chain_begin_stripe(GpudsChain *chain, int stripe, uint64 want);
extern void gpuds_chain_begin_at(GpudsChain *chain, int stripe, uint64 want, BlockNumber block);
extern GpudsReadResult gpuds_chain_next(GpudsChain *chain);
extern GpudsReadResult gpuds_stale_or_corrupted(Relation index, const GpudsMetaData *meta, BlockNumber blkno,
												const char *fmt, ...) pg_attribute_printf(4, 5);

#endif /* GPUDS_CHAIN_H */
