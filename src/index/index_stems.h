/*-------------------------------------------------------------------------
 *
 * index_stems.h
 *	  The stems of an index's texts, as a backend has read them from its file.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_INDEX_STEMS_H
#define GPUDS_INDEX_STEMS_H

#include "journal/journal.h"
#include "key/key.h"

extern uint64 gpuds_index_stems_age(void);
extern bool gpuds_index_set_stems(Relation index, const GpudsMetaData *meta, GpudsKeyLayout *layout);

#endif /* GPUDS_INDEX_STEMS_H */
