/*-------------------------------------------------------------------------
 *
 * index_size.c
 *	  How large an index is that has just been built, and its structure that has just been loaded.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include <math.h>

#include "device/device.h"
#include "index/index.h"
#include "journal/journal.h"

/* So many pairs of neighbours an inner node tells apart; it is larger if the first words of one are equal. */
#define NEIGHBOURS 6

/*
 * Sizes of an index with so many entries, whose first words have so many different values, with a structure
 * and with the default fillfactor.  On a GPU all inner nodes of a B+tree have the size that those on a CPU
 * have for equal words.
 */
void
gpuds_index_size(double entries, double distinct, int nwords, uint8 structure, GpudsIndexSize *size)
{
	const double apart = gpuds_device_entry_bytes(GPUDS_ON_CPU, structure, nwords, GPUDS_DEFAULT_FILLFACTOR,
												  false);
	const double alike = gpuds_device_entry_bytes(GPUDS_ON_CPU, structure, nwords, GPUDS_DEFAULT_FILLFACTOR,
												  true);
	const double on_gpu = gpuds_device_entry_bytes(GPUDS_ON_CUDA, structure, nwords, GPUDS_DEFAULT_FILLFACTOR,
												   true);
	const double share = entries > 0 ? pow(Min(distinct / entries, 1), NEIGHBOURS) : 1;

	size->journal_bytes = (1 + ceil(entries / GpudsPageCapacity(nwords))) * BLCKSZ;
	size->host_bytes = entries * (apart * share + alike * (1 - share)) +
					   gpuds_device_slack_bytes(GPUDS_ON_CPU);
	size->device_bytes = entries * on_gpu + gpuds_device_slack_bytes(GPUDS_ON_CUDA);
}
