/*-------------------------------------------------------------------------
 *
 * cpu_plain.c
 *	  The CPU device's loops with no vector instructions.
 *
 *-------------------------------------------------------------------------
 */
#define SIMD_PLAIN
#define CPU_SET plain
#include "device/cpu_loops.h"
