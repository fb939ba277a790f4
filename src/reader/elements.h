/*-------------------------------------------------------------------------
 *
 * elements.h
 *	  The elements of an array, to be found by values of a column whose codes are hashes.
 *
 * Elements lie in the order of their hashes.  Equal values have equal hashes, so those that are equal to each
 * other are neighbours among those of one hash: they are a class, and a value is compared with one of them.
 * Many elements may be of one hash, because they are equal, or because somebody has chosen them so.  Where
 * the equality is that of a btree operator family, the elements of a hash are in that family's order.  So a
 * table of n elements takes n log n comparisons at most, and a look-up log n.  Where there is no order, a
 * look-up compares the value with each class of its hash, and the table takes as much for each element.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_ELEMENTS_H
#define GPUDS_ELEMENTS_H

#include "access/skey.h"

#include "key/key.h"

typedef struct GpudsElements GpudsElements;

/* Is given the number of an element, from 0 on. */
typedef void (*GpudsElementFound)(void *to, int64 number);

extern Oid gpuds_elements_family(Oid equal, Oid type, Oid value_type);
extern GpudsElements *gpuds_elements_read(const GpudsKeyColumn *column, ScanKeyData *key);
extern bool gpuds_elements_have(GpudsElements *elements, Datum value);
extern uint64 gpuds_elements_ask(const GpudsElements *elements, Datum value);
extern void gpuds_elements_ask_place(const GpudsElements *elements, uint64 hash);
extern void gpuds_elements_ask_value(const GpudsElements *elements, uint64 hash);
extern bool gpuds_elements_have_hash(GpudsElements *elements, uint64 hash, Datum value);
extern void gpuds_elements_find(GpudsElements *elements, Datum value, bool once, GpudsElementFound found,
								void *to);

/* Do the function and the collation of a key call two values equal?  As in a condition, NULL is no. */
static inline bool
gpuds_elements_equal(FmgrInfo *function, Oid collation, Datum a, Datum b)
{
	LOCAL_FCINFO(call, 2);
	Datum equal;

	InitFunctionCallInfoData(*call, function, 2, collation, NULL, NULL);
	call->args[0].value = a;
	call->args[0].isnull = false;
	call->args[1].value = b;
	call->args[1].isnull = false;
	equal = FunctionCallInvoke(call);
	return !call->isnull && DatumGetBool(equal);
}

#endif /* GPUDS_ELEMENTS_H */
