/*-------------------------------------------------------------------------
 *
 * product.h
 *	  Intervals as the product of columns' sets.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_KEY_PRODUCT_H
#define GPUDS_KEY_PRODUCT_H

#include "key/set.h"

/*
 * The making of intervals.  They are numbered in their order; an interval's
 * number has a digit for each column, the number of the column's item.
 */
typedef struct GpudsKeyProduct
{
	const GpudsKeyLayout *layout;
	GpudsCodeSet *sets;
	int ncolumns;                        /* that make intervals */
	int64 behind[GPUDS_KEY_MAX_COLUMNS]; /* intervals of one item of a column */
	GpudsKeyString rest;                 /* ones in the bits behind these columns */
	int64 skip;                          /* intervals to leave out before the next one */
	GpudsInterval *next;                 /* where the next interval goes */
	GpudsInterval *end;                  /* of what is wanted */
} GpudsKeyProduct;

extern int64 gpuds_product_init(GpudsKeyProduct *product, const GpudsKeyLayout *layout, GpudsCodeSet *sets);
extern void gpuds_product_write(GpudsKeyProduct *product, int64 first, GpudsInterval *intervals, int64 n);
extern bool gpuds_points_suffice(const GpudsKeyLayout *layout, const GpudsCodeSet *set);
extern uint64 *gpuds_product_points(GpudsKeyProduct *product, GpudsInterval *frame);
extern GpudsKeyProduct *gpuds_product_keep(const GpudsKeyProduct *product);

#endif /* GPUDS_KEY_PRODUCT_H */
