/*-------------------------------------------------------------------------
 *
 * probe_key.c
 *	  Probes: the values that rows of another table have for an index's leading columns.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"

#include "key/code.h"

/* The kind of values of a type that are compared with a column. */
static GpudsKeyKind
kind_of(const GpudsKeyColumn *column, Oid type)
{
	GpudsKeyKind kind = type == column->type ? (GpudsKeyKind) column->kind : gpuds_key_kind(type);

	/* the operators of enums are those of anyenum */
	return type == ANYENUMOID ? (GpudsKeyKind) column->kind : kind;
}

/*
 * Is each value of a type equal to one code of a column of another at most, whatever the
 * TimeZone?
 */
bool
gpuds_key_probe_is_exact(Oid column, Oid type)
{
	GpudsKeyKind a = gpuds_key_kind(column);
	GpudsKeyKind b = gpuds_key_kind(type);

	if (column == type)
		return true;
	return a != GPUDS_KIND_NONE && b != GPUDS_KIND_NONE && gpuds_kinds_compare(a, b) &&
		   b != GPUDS_KIND_TIMESTAMPTZ;
}

/* For probes of a key's first ncolumns columns by values of these types. */
void
gpuds_key_probe_init(GpudsKeyProbe *probe, const GpudsKeyLayout *layout, int ncolumns, const Oid *types)
{
	GpudsEntry taken;

	probe->layout = layout;
	probe->ncolumns = ncolumns;
	probe->words = true;
	for (int i = 0; i < ncolumns; i++)
	{
		const GpudsKeyColumn *column = &layout->column[i];

		probe->kind[i] = kind_of(column, types[i]);
		if (!gpuds_kinds_compare(column->kind, probe->kind[i]))
			elog(ERROR, "cannot probe column %d of an index for type %u", i + 1, types[i]);
		if (!gpuds_in_first_word(layout, column))
			probe->words = false;
	}
	gpuds_key_prefix_bits(layout, ncolumns, &taken);
	probe->rest.w0 = ~taken.w0;
	probe->rest.w1 = layout->nwords == 2 ? ~taken.w1 : 0;
	probe->rest.t = (~taken.t & ~(UINT64_MAX >> ENTRY_SPILL_BITS)) | ENTRY_TID_MASK;
}

/*
 * The probe of a row's values: an entry with zeros in what the columns leave, and a number of 48
 * bits in place of the TID.  False: no key is equal to the values.  Allocates nothing.
 */
bool
gpuds_key_probe(const GpudsKeyProbe *probe, const Datum *values, const bool *isnull, uint64 number,
				GpudsEntry *entry)
{
	GpudsKeyString key = { 0, 0 };

	for (int i = 0; i < probe->ncolumns; i++)
	{
		const GpudsKeyColumn *column = &probe->layout->column[i];
		GpudsCut cut;

		if (isnull[i])
			return false;
		gpuds_cut(column->kind, probe->kind[i], values[i], &cut);
		if (!cut.exact)
			return false;
		if (column->descending)
			cut.code ^= gpuds_ones(column->bits);
		gpuds_key_put_code(&key, column, cut.code);
	}
	gpuds_key_to_entry(&key, probe->layout->nwords, number, entry);
	return true;
}

/*
 * The set of what n probes, ascending and all different, ask for.  Allocated in the current memory
 * context.
 */
void
gpuds_key_set_of_probes(const GpudsKeyProbe *probe, const GpudsEntry *entries, int64 n, GpudsKeySet *set)
{
	memset(set, 0, sizeof(*set));
	set->sorted = true;
	set->intervals = &set->single;
	set->total = set->nintervals = n;
	set->batch = Max(n, 1);
	if (n == 0)
		return;
	set->single = gpuds_key_probe_interval(probe, &entries[0]);
	if (probe->words)
	{
		set->single.lo.w0 = 0;
		set->single.hi.w0 = probe->rest.w0;
		set->points = set->all_points = MemoryContextAllocHuge(CurrentMemoryContext,
															   n * sizeof(*set->points));
		for (int64 i = 0; i < n; i++)
			set->points[i] = entries[i].w0;
	}
	else if (n > 1)
	{
		set->intervals = MemoryContextAllocHuge(CurrentMemoryContext, n * sizeof(GpudsInterval));
		for (int64 i = 0; i < n; i++)
			set->intervals[i] = gpuds_key_probe_interval(probe, &entries[i]);
	}
}
