/*-------------------------------------------------------------------------
 *
 * structure.h
 *	  Search structures as the directories of src/ know them.
 *
 * The number of an index's structure is in its metapage, and goes from there with
 * every load to the device, where it chooses the functions.  Nobody else asks
 * which structure it is.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_STRUCTURE_H
#define GPUDS_STRUCTURE_H

#include "gpuds.h"

#include "kernels/cpu/cpu_structure.h"
#include "kernels/structures.h"

typedef struct GpudsStructure
{
	const char *title; /* what users read; NULL: there is no such structure */
	CpuStructure cpu;
} GpudsStructure;

/* The structure of a number, NULL: this library has none. */
extern const GpudsStructure *gpuds_structure(int number);

/* The number that the access method's new indexes get; in test builds a setting may replace it. */
extern uint8 gpuds_structure_of_new_index(uint8 number);

#ifdef GPUDS_INJECTION_POINTS
extern void gpuds_structure_define_guc(void);
#endif

#endif /* GPUDS_STRUCTURE_H */
