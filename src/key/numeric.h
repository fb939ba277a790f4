/*-------------------------------------------------------------------------
 *
 * numeric.h
 *	  Values of numeric(p, s) as integers, scaled by 10^s.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_KEY_NUMERIC_H
#define GPUDS_KEY_NUMERIC_H

#include "postgres.h"

#include "key/key.h"

/* The most digits of numbers that have codes: as integers they take 60 bits. */
#define GPUDS_NUMERIC_DIGITS 18

/* The code of what is no number, above all others. */
#define GPUDS_NUMERIC_NAN UINT64_MAX

extern GpudsKeyKind gpuds_numeric_kind(Oid type, int32 typmod);
extern uint64 gpuds_numeric_code(int scale, Datum value);
extern bool gpuds_numeric_cut(int scale, Datum value, uint64 *code);
extern Datum gpuds_numeric_value(int scale, uint64 code, GpudsKeyBytes *bytes);

#endif /* GPUDS_KEY_NUMERIC_H */
