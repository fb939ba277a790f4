/*-------------------------------------------------------------------------
 *
 * methods.c
 *	  The table of access methods (methods.h) for src/.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "commands/defrem.h"

#include "methods.h"
#include "structure.h"

#define METHOD_ENTRY(name, STRUCTURE, ordered) { #name, GPUDS_STRUCTURE_##STRUCTURE, ordered },

const GpudsMethod gpuds_methods[] = { GPUDS_METHOD_ROWS(METHOD_ENTRY){ NULL, 0, false } };

bool
gpuds_method_is_on_gpu(Oid am)
{
	for (const GpudsMethod *method = gpuds_methods; method->name; method++)
	{
		if (get_am_oid(method->name, true) == am)
			return (STRUCTURE_BITS >> method->structure & 1) != 0;
	}
	return false;
}
