/*-------------------------------------------------------------------------
 *
 * key_filter.c
 *	  Conditions on columns that the intervals do not express.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key/set.h"

typedef struct FilterColumn
{
	GpudsKeyColumn column;
	GpudsCodeSet set; /* of stored codes */
} FilterColumn;

struct GpudsKeyFilter
{
	int nwords;
	int ncolumns;
	FilterColumn column[GPUDS_KEY_MAX_COLUMNS];
};

/* The filter of the columns from the first on that have conditions, and of tests of points; or NULL. */
GpudsKeyFilter *
gpuds_key_filter(const GpudsKeyLayout *layout, const GpudsCodeSet *sets, int first)
{
	GpudsKeyFilter *filter = NULL;

	for (int i = 0; i < layout->nkeys; i++)
	{
		FilterColumn *column;

		if (!sets[i].constrained || (i < first && sets[i].tests == NULL))
			continue;
		if (filter == NULL)
		{
			filter = palloc(sizeof(GpudsKeyFilter));
			filter->nwords = layout->nwords;
			filter->ncolumns = 0;
		}
		column = &filter->column[filter->ncolumns++];
		column->column = layout->column[i];
		gpuds_set_copy(&column->set, &sets[i]);
	}
	return filter;
}

static bool
set_contains(const GpudsCodeSet *set, GpudsCode code)
{
	int64 lo = 0;
	int64 hi = set->n;

	/* the first item that does not end before code */
	while (lo < hi)
	{
		int64 middle = (lo + hi) / 2;

		if (gpuds_set_item(set, middle).hi < code)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo < set->n && gpuds_set_item(set, lo).lo <= code;
}

/* Is the code of a value, as it is stored, one that a column may have? */
static inline bool
passes(const GpudsKeyColumn *column, const GpudsCodeSet *set, GpudsCode code)
{
	/* tests of points are of those in the set, and no others */
	if (set->tests)
		return gpuds_point_passes(set->tests, column->descending ? ~code : code);
	return set_contains(set, code);
}

/* Does an entry from the intervals belong to the answer?  A NULL filter is not allowed. */
bool
gpuds_key_filter_pass(const GpudsKeyFilter *filter, const GpudsEntry *entry)
{
	GpudsKeyString key;

	gpuds_key_from_entry(entry, filter->nwords, &key);
	for (int i = 0; i < filter->ncolumns; i++)
	{
		const GpudsKeyColumn *column = &filter->column[i].column;
		const GpudsCodeSet *set = &filter->column[i].set;

		if (gpuds_key_get(&key, column->null_shift, 1) == gpuds_null_bit(column))
		{
			if (!set->null)
				return false;
		}
		else if (!passes(column, set, gpuds_key_get(&key, column->shift, column->bits)))
			return false;
	}
	return true;
}
