/*-------------------------------------------------------------------------
 *
 * reindex.h
 *	  What hooks.c tells reindex.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_REINDEX_H
#define GPUDS_REINDEX_H

#include "nodes/parsenodes.h"

extern void gpuds_reindex_begin(const ReindexStmt *statement);
extern void gpuds_reindex_end(void);
extern void gpuds_reindex_drops(Oid former);

#endif /* GPUDS_REINDEX_H */
