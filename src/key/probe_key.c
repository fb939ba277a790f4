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
#include "key/text.h"

/* The kind of values of a type that are compared with a column. */
static GpudsKeyKind
kind_of(const GpudsKeyColumn *column, Oid type)
{
	GpudsKeyKind kind = type == column->type ? (GpudsKeyKind) column->kind : gpuds_key_kind(type);

	/* the operators of enums are those of anyenum */
	return type == ANYENUMOID ? (GpudsKeyKind) column->kind : kind;
}

/*
 * Is each value of a type equal to the values of one code of a column of another at most, whatever the
 * TimeZone, and to no others?  Points are equal to none, but to all that are near enough.  A text is equal to
 * some of a code's.
 */
bool
gpuds_key_probe_is_exact(Oid column, Oid type)
{
	GpudsKeyKind a = gpuds_key_kind(column);
	GpudsKeyKind b = gpuds_key_kind(type);

	if (a == GPUDS_KIND_POINT || gpuds_is_text(a))
		return false;
	if (column == type)
		return true;
	return a != GPUDS_KIND_NONE && b != GPUDS_KIND_NONE && gpuds_kinds_compare(a, b) &&
		   b != GPUDS_KIND_TIMESTAMPTZ;
}

/* Sets what gpuds_key_probe_integer needs, if it can be asked. */
static void
init_integers(GpudsKeyProbe *probe)
{
	const GpudsKeyColumn *column = &probe->layout->column[0];
	const int bits = Min(column->bits, 64);
	const uint64 bias = UINT64_C(1) << (bits - 1);

	probe->integer_bytes = 0;
	if (!probe->words || probe->ncolumns != 1 || column->hash)
		return;
	probe->integer_bytes = gpuds_integer_bytes(column, (GpudsKeyKind) probe->kind[0]);
	probe->ones = (uint64) gpuds_ones(bits);
	probe->flip = column->descending ? probe->ones ^ bias : bias;
	probe->shift = gpuds_first_word_shift(probe->layout, column);
	probe->greatest = (int64) (bias - 1);
	probe->least = -probe->greatest - 1;
}

/*
 * For probes of a key's first ncolumns columns by values of these types.  By a lossy column, candidates are
 * found.  Hash functions of other types are the current memory context's.
 */
void
gpuds_key_probe_init(GpudsKeyProbe *probe, const GpudsKeyLayout *layout, int ncolumns, const Oid *types)
{
	GpudsEntry taken;
	GpudsEntry used; /* by all columns; behind them every key has zeros */
	GpudsKeyString zero = { 0, 0 };

	probe->layout = layout;
	probe->ncolumns = ncolumns;
	probe->words = true;
	for (int i = 0; i < ncolumns; i++)
	{
		const GpudsKeyColumn *column = &layout->column[i];

		probe->kind[i] = kind_of(column, types[i]);
		probe->hash[i] = column->kind == GPUDS_KIND_HASHED ? gpuds_key_hash_for(column, types[i]) : NULL;
		if (!probe->hash[i] && !gpuds_kinds_compare(column->kind, probe->kind[i]))
			elog(ERROR, "cannot probe column %d of an index for type %u", i + 1, types[i]);
		if (!gpuds_in_first_word(layout, column))
			probe->words = false;
		gpuds_key_put_code(&zero, column, 0);
	}
	gpuds_key_to_entry(&zero, layout->nwords, 0, &probe->zero);
	gpuds_key_prefix_bits(layout, ncolumns, &taken);
	gpuds_key_prefix_bits(layout, layout->ncolumns, &used);
	probe->rest.w0 = used.w0 & ~taken.w0;
	probe->rest.w1 = used.w1 & ~taken.w1;
	probe->rest.t = (used.t & ~taken.t) | ENTRY_TID_MASK;
	init_integers(probe);
}

/*
 * The probe of a row's values: an entry with zeros in what the columns leave, and a number of 48
 * bits in place of the TID.  False: no key is equal to the values.  Allocates nothing, but what hash
 * functions leave in the current memory context.
 */
bool
gpuds_key_probe(const GpudsKeyProbe *probe, const Datum *values, const bool *isnull, uint64 number,
				GpudsEntry *entry)
{
	GpudsKeyString key = { 0, 0 };

	for (int i = 0; i < probe->ncolumns; i++)
	{
		const GpudsKeyColumn *column = &probe->layout->column[i];
		GpudsCode code;
		GpudsCut cut;

		if (isnull[i])
			return false;
		if (probe->hash[i])
		{
			gpuds_key_put_code(&key, column, gpuds_hashed_code(column, probe->hash[i], values[i]));
			continue;
		}
		gpuds_column_cut(column, probe->kind[i], values[i], &cut);
		if (!cut.exact && !cut.hashed)
			return false;
		code = cut.exact ? cut.code : cut.equal;
		if (column->descending)
			code ^= gpuds_ones(column->bits);
		gpuds_key_put_code(&key, column, code);
	}
	gpuds_key_to_entry(&key, probe->layout->nwords, number, entry);
	return true;
}

/*
 * The probes of n values that lie side by side and have ascending numbers, from one on, for one
 * column.  *kept: how many there are, in the order of the values.  False: the values are not integers
 * that there is a short way for.  Allocates nothing.
 */
bool
gpuds_key_probe_integers(const GpudsKeyProbe *probe, const char *values, int64 n, uint64 number,
						 GpudsEntry *entries, int64 *kept)
{
	/* a copy, which no entry overwrites as far as the compiler knows */
	const GpudsKeyProbe by = *probe;
	int64 m = 0;

#define PROBE_INTEGERS(type)      \
	for (int64 i = 0; i < n; i++) \
	m += gpuds_key_probe_integer(&by, ((const type *) values)[i], number + i, &entries[m])

	switch (by.integer_bytes)
	{
		case 0:
			return false;
		case sizeof(int16):
			PROBE_INTEGERS(int16);
			break;
		case sizeof(int32):
			PROBE_INTEGERS(int32);
			break;
		default:
			PROBE_INTEGERS(int64);
			break;
	}
#undef PROBE_INTEGERS
	*kept = m;
	return true;
}

/*
 * The same of values that all are in the column's range, as words: all else of the probes is as in
 * probe->zero.  False: there is no short way for the values, or one of them is not in the range.
 */
bool
gpuds_key_probe_words(const GpudsKeyProbe *probe, const char *values, int64 n, uint64 *words)
{
	const GpudsKeyProbe by = *probe;
	bool all = true;

#define PROBE_WORDS(type)                                                           \
	for (int64 i = 0; i < n; i++)                                                   \
	{                                                                               \
		const int64 value = ((const type *) values)[i];                             \
                                                                                    \
		words[i] = by.zero.w0 | (((uint64) value ^ by.flip) & by.ones) << by.shift; \
		all &= value >= by.least && value <= by.greatest;                           \
	}

	switch (by.integer_bytes)
	{
		case 0:
			return false;
		case sizeof(int16):
			PROBE_WORDS(int16);
			break;
		case sizeof(int32):
			PROBE_WORDS(int32);
			break;
		default:
			PROBE_WORDS(int64);
			break;
	}
#undef PROBE_WORDS
	return all;
}

/*
 * The set of what n probes ask for that differ in their first words only, which are given and stay the
 * caller's; else as gpuds_key_set_of_probes.
 */
void
gpuds_key_set_of_points(const GpudsKeyProbe *probe, uint64 *points, int64 n, GpudsKeySet *set)
{
	const GpudsEntry frame = { 0, probe->zero.w1, probe->zero.t };

	memset(set, 0, sizeof(*set));
	set->sorted = true;
	set->intervals = &set->single;
	set->total = set->nintervals = n;
	set->batch = Max(n, 1);
	set->single = gpuds_key_probe_interval(probe, &frame);
	set->points = set->all_points = points;
}

/*
 * The set of what n probes ask for, which are ascending and all different; the caller says so if they are not
 * (set->sorted).  Allocated in the current memory context.
 */
void
gpuds_key_set_of_probes(const GpudsKeyProbe *probe, const GpudsEntry *entries, int64 n, GpudsKeySet *set)
{
	gpuds_key_set_of_points(probe, NULL, n, set);
	if (n == 0)
		return;
	if (probe->words)
	{
		set->points = set->all_points = MemoryContextAllocHuge(CurrentMemoryContext,
															   n * sizeof(*set->points));
		for (int64 i = 0; i < n; i++)
			set->points[i] = entries[i].w0;
	}
	else if (n == 1)
		set->single = gpuds_key_probe_interval(probe, &entries[0]);
	else
	{
		set->intervals = MemoryContextAllocHuge(CurrentMemoryContext, n * sizeof(GpudsInterval));
		for (int64 i = 0; i < n; i++)
			set->intervals[i] = gpuds_key_probe_interval(probe, &entries[i]);
	}
}
