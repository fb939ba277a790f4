/*-------------------------------------------------------------------------
 *
 * product.c
 *	  Intervals of entries, as the product of the leading columns' sets.
 *
 * Intervals take several times the memory of the sets that they come from, and their
 * product any multiple of it.  So they are numbered, and written in batches, each beginning
 * with a given number.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key/product.h"

/* Sets of further columns multiply the intervals up to this many. */
#define MAX_PRODUCT 1000000

/* Ones in the places below end, down to the end of the key's nbits. */
static GpudsKeyString
ones_behind(const GpudsKeyLayout *layout, int end)
{
	int begin = 64 * layout->nwords + ENTRY_SPILL_BITS - layout->nbits;
	GpudsKeyString key = { 0, 0 };

	if (end > ENTRY_SPILL_BITS)
	{
		int low = Max(begin - ENTRY_SPILL_BITS, 0);

		key.high = gpuds_ones(end - ENTRY_SPILL_BITS) & ~gpuds_ones(low);
	}
	if (begin < ENTRY_SPILL_BITS)
		key.spill = (uint64) (gpuds_ones(Min(end, ENTRY_SPILL_BITS)) & ~gpuds_ones(begin));
	return key;
}

/*
 * The product of the sets of the leading columns, which are sorted and as stored,
 * as far as they make intervals.  Returns how many that are.
 */
int64
gpuds_product_init(GpudsKeyProduct *product, const GpudsKeyLayout *layout, GpudsCodeSet *sets)
{
	int64 n = 1;
	int end = 64 * layout->nwords + ENTRY_SPILL_BITS;

	product->layout = layout;
	product->sets = sets;
	product->ncolumns = 0;
	for (int i = 0; i < layout->nkeys; i++)
	{
		const GpudsKeyColumn *column = &layout->column[i];
		int64 items;

		if (!sets[i].constrained)
			break;
		items = sets[i].n + sets[i].null;
		if (i > 0 && items > 1 && items > MAX_PRODUCT / n)
			break;
		n *= items;
		product->ncolumns++;
		end = Min(column->shift, column->null_shift);
		if (!gpuds_set_is_points(&sets[i]))
			break;
	}
	product->rest = ones_behind(layout, end);
	for (int64 i = product->ncolumns - 1, behind = 1; i >= 0; i--)
	{
		product->behind[i] = behind;
		behind *= sets[i].n + sets[i].null;
	}
	return n;
}

/* Writes an interval from lo to hi, hi ending with the highest of what may be behind it. */
static inline void
emit(GpudsKeyProduct *product, const GpudsKeyString *lo, const GpudsKeyString *hi)
{
	int nwords = product->layout->nwords;
	GpudsKeyString end;

	end.high = hi->high | product->rest.high;
	end.spill = hi->spill | product->rest.spill;
	gpuds_key_to_entry(lo, nwords, 0, &product->next->lo);
	gpuds_key_to_entry(&end, nwords, ENTRY_TID_MASK, &product->next->hi);
	product->next++;
}

/*
 * Writes the intervals of n of a last column's points behind a prefix, the common
 * case of codes that lie in one word.
 */
static void
emit_points(GpudsKeyProduct *product, const GpudsKeyString *prefix, const GpudsKeyColumn *column,
			const uint64 *points, int64 n)
{
	GpudsKeyString key = *prefix;
	int shift = gpuds_first_word_shift(product->layout, column);
	GpudsInterval *interval = product->next;
	GpudsInterval frame;

	gpuds_key_put_code(&key, column, 0);
	emit(product, &key, &key);
	frame = *interval;
	for (int64 i = 0; i < n; i++, interval++)
	{
		*interval = frame;
		interval->lo.w0 |= points[i] << shift;
		interval->hi.w0 |= points[i] << shift;
	}
	product->next = interval;
}

/*
 * Writes the intervals of all keys that begin with the prefix of i columns, but
 * for those to leave out, as far as they are wanted.
 */
static void
multiply(GpudsKeyProduct *product, int i, const GpudsKeyString *prefix)
{
	const GpudsKeyColumn *column = &product->layout->column[i];
	const GpudsCodeSet *set = &product->sets[i];
	const bool last = i == product->ncolumns - 1;
	const bool in_word = set->points != NULL && gpuds_in_first_word(product->layout, column);
	const int64 null_before = set->null && column->nulls_first;
	const int64 items = set->n + set->null;
	int64 j = product->skip / product->behind[i];

	product->skip %= product->behind[i];
	while (j < items && product->next < product->end)
	{
		int64 at = j - null_before; /* in the set, or outside of it: NULL */
		GpudsKeyString lo = *prefix;
		GpudsKeyString hi = *prefix;

		if (last && in_word && at >= 0 && at < set->n)
		{
			int64 n = Min(set->n - at, product->end - product->next);

			emit_points(product, prefix, column, set->points + at, n);
			j += n;
			continue;
		}
		if (at < 0 || at >= set->n)
		{
			gpuds_key_put_null(&lo, column);
			gpuds_key_put_null(&hi, column);
		}
		else
		{
			GpudsCodeRange item = gpuds_set_item(set, at);

			gpuds_key_put_code(&lo, column, item.lo);
			gpuds_key_put_code(&hi, column, item.hi);
		}
		if (last)
			emit(product, &lo, &hi);
		else
			multiply(product, i + 1, &lo);
		j++;
	}
}

/* Writes n intervals, from the one with a number on. */
void
gpuds_product_write(GpudsKeyProduct *product, int64 first, GpudsInterval *intervals, int64 n)
{
	GpudsKeyString nothing = { 0, 0 };

	product->skip = first;
	product->next = intervals;
	product->end = intervals + n;
	if (product->ncolumns == 0)
		emit(product, &nothing, &nothing);
	else
		multiply(product, 0, &nothing);
	Assert(product->next == product->end);
}

/* Are the intervals of the first column's set alike but for their first word? */
bool
gpuds_points_suffice(const GpudsKeyLayout *layout, const GpudsCodeSet *set)
{
	return set->points != NULL && !set->null && gpuds_in_first_word(layout, &layout->column[0]);
}

/*
 * Makes of the first column's codes the points of a scan, in place, and the frame
 * around them: the interval of the point 0.
 */
uint64 *
gpuds_product_points(GpudsKeyProduct *product, GpudsInterval *frame)
{
	const GpudsKeyColumn *column = &product->layout->column[0];
	GpudsKeyString key = { 0, 0 };
	uint64 *points = product->sets[0].points;
	int shift = gpuds_first_word_shift(product->layout, column);

	gpuds_key_put_code(&key, column, 0);
	product->next = frame;
	emit(product, &key, &key);
	for (int64 i = 0; shift > 0 && i < product->sets[0].n; i++)
		points[i] <<= shift;
	return points;
}

/* A product that can be kept. */
GpudsKeyProduct *
gpuds_product_keep(const GpudsKeyProduct *product)
{
	GpudsKeyProduct *kept = palloc(sizeof(GpudsKeyProduct));

	*kept = *product;
	kept->sets = palloc(product->ncolumns * sizeof(GpudsCodeSet));
	for (int i = 0; i < product->ncolumns; i++)
		gpuds_set_copy(&kept->sets[i], &product->sets[i]);
	return kept;
}
