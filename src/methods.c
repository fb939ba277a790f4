/*-------------------------------------------------------------------------
 *
 * methods.c
 *	  The table of access methods (methods.h) for src/.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "methods.h"
#include "structure.h"

#define METHOD_ENTRY(name, STRUCTURE, ordered) { #name, GPUDS_STRUCTURE_##STRUCTURE, ordered },

const GpudsMethod gpuds_methods[] = { GPUDS_METHOD_ROWS(METHOD_ENTRY){ NULL, 0, false } };
