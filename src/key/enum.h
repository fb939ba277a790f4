/*-------------------------------------------------------------------------
 *
 * enum.h
 *	  Enums as keys: their labels must sort by their OIDs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_KEY_ENUM_H
#define GPUDS_KEY_ENUM_H

#include "nodes/parsenodes.h"

#include "compat.h"

#define GPUDS_ENUM_LABEL_SORTS(label) (((label) &1) == 0)

extern void gpuds_enum_check_labels(Oid type);
extern void gpuds_enum_check_type(Oid type);
pg_noreturn extern void gpuds_enum_reject_label(Oid label);
extern void gpuds_key_after_alter_enum(AlterEnumStmt *stmt);

#endif /* GPUDS_KEY_ENUM_H */
