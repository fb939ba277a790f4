/*-------------------------------------------------------------------------
 *
 * bounds.c
 *	  Scan keys as intervals of entries and a filter.
 *
 * The keys on one column are intersected to a set of codes (condition.c, set.c).  The
 * intervals are the product of the sets of the leading columns (product.c), up to the first
 * set that holds more than points.  The sets of other columns become the filter (key_filter.c).
 * Sets are computed in ascending codes, and reversed at the end if the column is DESC.
 *
 * A set takes about the memory of the array it comes from.  Intervals take several times as
 * much, and their product any multiple, so they are made in batches.  Nothing here takes
 * long without checking for interrupts.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"

#include "key/product.h"

/* From this many points on, leaving them unsorted is worth while. */
#define MIN_UNSORTED 4096

/* Intervals of a batch, whatever work_mem says. */
#define MIN_BATCH_INTERVALS 1024
#define MAX_BATCH_INTERVALS (1024 * 1024)

/*
 * Are they all that the keys ask for, and so many that they had better be left
 * as they came?
 */
static bool
stay_unsorted(const GpudsKeyLayout *layout, const GpudsCodeSet *sets)
{
	if (!sets[0].constrained || sets[0].n < MIN_UNSORTED || !gpuds_points_suffice(layout, &sets[0]))
		return false;
	for (int i = 1; i < layout->nkeys; i++)
	{
		if (sets[i].constrained)
			return false;
	}
	return true;
}

/* A set of nothing. */
static void
init_set(GpudsKeySet *set)
{
	set->intervals = &set->single;
	set->nintervals = 0;
	set->points = set->all_points = NULL;
	set->sorted = true;
	set->filter = NULL;
	set->recheck = false;
	set->candidates = false;
	set->total = set->first = 0;
	set->batch = 1;
	set->product = NULL;
}

/*
 * Makes the first batch of intervals of the columns' sets, which are ascending ones.  Returns how many
 * columns the intervals are of.
 */
static int
make_intervals(const GpudsKeyLayout *layout, GpudsCodeSet *sets, GpudsKeySet *set)
{
	GpudsKeyProduct product;
	int64 n;

	for (int i = 0; i < layout->nkeys; i++)
	{
		if (sets[i].constrained && layout->column[i].descending)
			gpuds_set_complement(&sets[i], layout->column[i].bits);
	}

	n = gpuds_product_init(&product, layout, sets);
	set->total = n;
	if (n > 1 && product.ncolumns == 1 && gpuds_points_suffice(layout, &sets[0]))
	{
		set->points = set->all_points = gpuds_product_points(&product, &set->single);
		set->sorted = !sets[0].arrived;
		set->batch = set->sorted ? MAX_BATCH_INTERVALS : n;
		set->nintervals = Min(n, set->batch);
	}
	else
	{
		set->batch = Min(Max((int64) work_mem * 1024 / (int64) sizeof(GpudsInterval), MIN_BATCH_INTERVALS),
						 MAX_BATCH_INTERVALS);
		set->nintervals = Min(n, set->batch);
		if (n > 1)
			set->intervals = gpuds_alloc_array(set->nintervals, sizeof(GpudsInterval));
		if (n > set->nintervals)
			set->product = gpuds_product_keep(&product);
		gpuds_product_write(&product, 0, set->intervals, set->nintervals);
	}
	return product.ncolumns;
}

/*
 * Works out which entries the scan keys ask for.  What is not in set itself is
 * allocated in the current memory context and kept until that is reset; scalar
 * keys on leading columns allocate nothing.  No keys ask for all entries.  The
 * layout must live as long as the set.
 *
 * Depends on TimeZone if keys compare timestamptz with its relatives.  Only then, and by lossy columns, may
 * it set recheck.
 */
void
gpuds_key_set(Relation index, const GpudsKeyLayout *layout, ScanKey keys, int nkeys, GpudsKeySet *set)
{
	GpudsCodeSet sets[GPUDS_KEY_MAX_COLUMNS]; /* one for each column, which all keys on it narrow */
	int ncolumns;

	init_set(set);
	memset(sets, 0, layout->nkeys * sizeof(GpudsCodeSet));
	for (int i = 0; i < nkeys; i++)
	{
		GpudsCodeSet *narrowed = &sets[keys[i].sk_attno - 1];
		bool fuzzy = false;

		gpuds_key_narrow(index, layout, &keys[i], sets, &fuzzy);
		if (gpuds_key_finds_candidates(layout, &keys[i]))
			set->candidates |= fuzzy || !layout->ordered;
		else
			set->recheck |= fuzzy;
		if (narrowed->n == 0 && !narrowed->null)
			return;
	}

	for (int i = 0; i < layout->nkeys; i++)
	{
		if (i > 0 || !stay_unsorted(layout, sets))
			gpuds_set_sort(&sets[i]);
	}

	ncolumns = make_intervals(layout, sets, set);
	set->filter = gpuds_key_filter(layout, sets, ncolumns);
}

/* The set of all entries that have given codes in the index's first column.  Otherwise as gpuds_key_set. */
void
gpuds_key_set_of_codes(const GpudsKeyLayout *layout, GpudsCodeSet *codes, GpudsKeySet *set)
{
	GpudsCodeSet sets[GPUDS_KEY_MAX_COLUMNS]; /* one for each column, as above */

	init_set(set);
	memset(sets, 0, layout->nkeys * sizeof(GpudsCodeSet));
	gpuds_set_copy(&sets[0], codes);
	if (codes->n > 0 || codes->null)
		(void) make_intervals(layout, sets, set);
}

/*
 * The same of shapes, which can be found then.  Entries of which points are in no shape are in the set, too:
 * there is no filter.
 */
void
gpuds_key_set_of_shapes(const GpudsKeyLayout *layout, GpudsShapes *shapes, GpudsKeySet *set)
{
	GpudsCodeSet codes;

	gpuds_shapes_codes(shapes, &codes);
	gpuds_key_set_of_codes(layout, &codes, set);
}

/* Puts the set's points in order, leaves one of each, and goes to the first batch. */
void
gpuds_key_set_sort(GpudsKeySet *set)
{
	if (set->sorted)
		return;
	set->total = gpuds_sort_unique_words(set->all_points, set->total);
	set->sorted = true;
	set->batch = MAX_BATCH_INTERVALS;
	set->nintervals = Min(set->total, set->batch);
}

/*
 * Makes the batch with the interval of a number the one at hand, if that is
 * one of the set's.  False: it is already.
 */
bool
gpuds_key_set_turn(GpudsKeySet *set, int64 number)
{
	int64 first = number / set->batch * set->batch;

	if (first == set->first || number < 0 || number >= set->total)
		return false;
	set->first = first;
	set->nintervals = Min(set->batch, set->total - first);
	if (set->all_points)
		set->points = set->all_points + first;
	else
		gpuds_product_write(set->product, first, set->intervals, set->nintervals);
	return true;
}

/*
 * Number of the first interval, of all, that does not end before the entry.  The
 * set's points must be sorted.
 */
int64
gpuds_key_set_find(const GpudsKeySet *set, const GpudsEntry *entry)
{
	GpudsScan scan = { .intervals = set->intervals, .n = set->total, .points = set->all_points };
	int64 lo = 0;
	int64 hi = set->total;

	if (set->product == NULL)
		return entry_scan_find(&scan, entry);
	while (lo < hi)
	{
		int64 middle = lo + (hi - lo) / 2;
		GpudsInterval interval = { { 0 } };

		gpuds_product_write(set->product, middle, &interval, 1);
		if (entry_less(&interval.hi, entry))
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo;
}
