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

/*
 * Defines the storage parameters.  To be called once in each process, when the library is loaded.  A change
 * by ALTER INDEX takes ShareUpdateExclusiveLock, because only later loads look at it.
 */
void
gpuds_define_reloptions(void)
{
	index_kind = add_reloption_kind();
	add_int_reloption(index_kind, "fillfactor",
					  "Percentage of a node to fill when the index is loaded into memory",
					  GPUDS_DEFAULT_FILLFACTOR, GPUDS_MIN_FILLFACTOR, 100, ShareUpdateExclusiveLock);
}

/* amoptions.  Returns a GpudsOptions.  Unknown names raise an error if validate is set. */
bytea *
gpuds_options(Datum reloptions, bool validate)
{
	static const relopt_parse_elt table[] = { { "fillfactor", RELOPT_TYPE_INT,
												offsetof(GpudsOptions, fillfactor) } };

	return (bytea *) build_reloptions(reloptions, validate, index_kind, sizeof(GpudsOptions), table,
									  lengthof(table));
}
