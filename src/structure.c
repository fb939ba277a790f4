/*-------------------------------------------------------------------------
 *
 * structure.c
 *	  The table of structures (kernels/structures.h) for src/.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "utils/guc.h"

#include "structure.h"
#define STRUCTURES_ON_CPU
#include "kernels/structures.h"

#define STRUCTURE_ENTRY(number, NAME, name, Name, text) \
	[number] = { .title = (text), .cpu = CPU_STRUCTURE(name) },

/* Others know only sizes of their types. */
#define STRUCTURE_FITS(number, NAME, prefix, Name, title)                 \
	StaticAssertDecl(sizeof(prefix##_cpu_tree) <= CPU_TREE_BYTES &&       \
						 _Alignof(prefix##_cpu_tree) <= sizeof(uint64),   \
					 "a tree of the structure " #prefix " is too large"); \
	StaticAssertDecl(sizeof(prefix##_cpu_build) <= CPU_BUILD_BYTES &&     \
						 _Alignof(prefix##_cpu_build) <= sizeof(uint64),  \
					 "a load of the structure " #prefix " is too large");
STRUCTURE_ROWS(STRUCTURE_FITS)

static const GpudsStructure structures[STRUCTURE_NUMBERS] = { STRUCTURE_ROWS(STRUCTURE_ENTRY) };

const GpudsStructure *
gpuds_structure(int number)
{
	if (number < 0 || number >= STRUCTURE_NUMBERS || structures[number].title == NULL)
		return NULL;
	return &structures[number];
}

#ifdef GPUDS_INJECTION_POINTS

/* gpuds.test_structure; 0: the access method's own */
static int test_structure = 0;

uint8
gpuds_structure_of_new_index(uint8 number)
{
	return test_structure != 0 ? test_structure : number;
}

/* Defines gpuds.test_structure; to be called once, when the library is loaded. */
void
gpuds_structure_define_guc(void)
{
#define STRUCTURE_OPTION(number, NAME, prefix, Name, title) { #prefix, number, false },
	static const struct config_enum_entry options[] = { { "default", 0, false },
														STRUCTURE_ROWS(STRUCTURE_OPTION){ NULL, 0, false } };

	DefineCustomEnumVariable("gpuds.test_structure", "Structure of the indexes that the session creates.",
							 "So that tests of an access method test another structure.", &test_structure, 0,
							 options, PGC_USERSET, GUC_NOT_IN_SAMPLE, NULL, NULL, NULL);
}

#else

uint8
gpuds_structure_of_new_index(uint8 number)
{
	return number;
}

#endif /* GPUDS_INJECTION_POINTS */
