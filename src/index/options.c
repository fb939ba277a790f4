/*-------------------------------------------------------------------------
 *
 * options.c
 *	  Storage parameters of indexes.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/reloptions.h"

#include "index/index.h"

static relopt_kind index_kind;

void
gpuds_define_reloptions(void)
{
	index_kind = add_reloption_kind();
	add_int_reloption(index_kind, "fillfactor",
					  "Percentage of a node to fill when the index is loaded into memory",
					  GPUDS_DEFAULT_FILLFACTOR, GPUDS_MIN_FILLFACTOR, 100, ShareUpdateExclusiveLock);
}

bytea *
gpuds_options(Datum reloptions, bool validate)
{
	static const relopt_parse_elt table[] = { { "fillfactor", RELOPT_TYPE_INT,
												offsetof(GpudsOptions, fillfactor) } };

	return (bytea *) build_reloptions(reloptions, validate, index_kind, sizeof(GpudsOptions), table,
									  lengthof(table));
}
