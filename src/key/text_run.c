/*-------------------------------------------------------------------------
 *
 * text_run.c
 *	  Which entries of texts are of one run (text.h).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key/text.h"

/* Of the texts that are longer than their codes, how many are in runs that stems have left. */
#define SHORT_RUNS_SHARE 0.5

/*
 * The first column from one on whose value an entry does not tell, because it is a text that is longer than
 * its code; -1: there is none.
 */
int
gpuds_key_next_run(const GpudsKeyLayout *layout, const GpudsEntry *entry, int from)
{
	GpudsKeyString key;

	gpuds_key_from_entry(entry, layout->nwords, &key);
	for (int i = from; i < layout->nkeys; i++)
	{
		const GpudsKeyColumn *column = &layout->column[i];
		GpudsCode code;

		if (!gpuds_is_text(column->kind) ||
			gpuds_key_get(&key, column->null_shift, 1) == gpuds_null_bit(column))
			continue;
		code = gpuds_key_get(&key, column->shift, column->bits);
		if (column->descending)
			code ^= gpuds_ones(column->bits);
		if (!gpuds_text_is_whole(column, code))
			return i;
	}
	return -1;
}

/*
 * Ones in the bits that entries of a run by a column have in common: those of the columns before, and of the
 * leading bytes.
 */
void
gpuds_key_run_bits(const GpudsKeyLayout *layout, int i, GpudsEntry *bits)
{
	const GpudsKeyColumn *column = &layout->column[i];
	GpudsKeyString key = { 0, 0 };
	GpudsEntry before;

	gpuds_key_prefix_bits(layout, i, &before);
	if (column->null_shift > column->shift)
		gpuds_key_put(&key, 1, column->null_shift);
	gpuds_key_put(&key, gpuds_ones(column->bits - GPUDS_TEXT_TAIL_BITS),
				  column->shift + GPUDS_TEXT_TAIL_BITS);
	gpuds_key_to_entry(&key, layout->nwords, 0, bits);
	bits->w0 |= before.w0;
	bits->w1 |= before.w1;
	bits->t |= before.t;
}

/*
 * What an entry has of a column, so that the codes of two entries that are no NULLs have the column's order
 * in the index; false: it is a NULL.
 */
bool
gpuds_key_stored_code(const GpudsKeyLayout *layout, int i, const GpudsEntry *entry, GpudsCode *code)
{
	const GpudsKeyColumn *column = &layout->column[i];
	GpudsKeyString key;

	gpuds_key_from_entry(entry, layout->nwords, &key);
	*code = gpuds_key_get(&key, column->shift, column->bits);
	return gpuds_key_get(&key, column->null_shift, 1) != gpuds_null_bit(column);
}

/* What a share of rows begins with. */
typedef struct Beginning
{
	GpudsCode code; /* without its tail */
	double share;
} Beginning;

static int
compare_beginnings(const void *a, const void *b)
{
	const GpudsCode one = ((const Beginning *) a)->code;
	const GpudsCode other = ((const Beginning *) b)->code;

	return one < other ? -1 : one > other;
}

/* Makes a beginning of a text that is longer than its code; false: it is not. */
static bool
find_beginning(const GpudsKeyColumn *column, Datum value, double share, Beginning *beginning)
{
	const GpudsCode code = gpuds_text_code(column, value);

	*beginning = (Beginning){ .code = code >> GPUDS_TEXT_TAIL_BITS, .share = share };
	return !gpuds_text_is_whole(column, code);
}

/*
 * Finds the beginnings that more than one row of a sample has, at most one for each of its values; returns
 * how many.  *of_long: the share of rows whose texts are longer than their codes.
 */
static int
find_beginnings(const GpudsKeyColumn *column, const GpudsSample *sample, Beginning *found, double *of_long)
{
	Beginning before = { 0 };
	bool alike = false;
	int n = 0;

	*of_long = 0;
	for (int i = 0; i < sample->ncommon; i++)
	{
		const bool is_long = find_beginning(column, sample->common[i], sample->shares[i], &found[n]);

		*of_long += is_long ? sample->shares[i] : 0;
		n += is_long;
	}
	for (int i = 0; i < sample->nbounds; i++)
	{
		const bool is_long = find_beginning(column, sample->bounds[i], sample->bucket, &found[n]);
		const Beginning bound = found[n];

		*of_long += is_long ? sample->bucket : 0;
		n += alike && is_long && bound.code == before.code;
		before = bound;
		alike = is_long;
	}
	return n;
}

/*
 * What a sample says of a column's runs.  It does not see those that have less rows than a bucket.  Where
 * there are stems, other texts are taken to be in such runs half of the time; else in none.
 */
GpudsRunShares
gpuds_key_run_shares(const GpudsKeyColumn *column, const GpudsSample *sample)
{
	Beginning *found = palloc((sample->ncommon + sample->nbounds + 1) * sizeof(Beginning));
	GpudsRunShares shares = { 0, 0 };
	double of_long;
	const int n = find_beginnings(column, sample, found, &of_long);

	qsort(found, n, sizeof(Beginning), compare_beginnings);
	for (int i = 0, next; i < n; i = next)
	{
		double share = 0;

		for (next = i; next < n && found[next].code == found[i].code; next++)
			share += found[next].share;
		shares.of_one += share * share;
		shares.of_all += share;
	}
	if (gpuds_text_stems(column)->bits > 0)
		shares.of_all += SHORT_RUNS_SHARE * Max(of_long - shares.of_all, 0);
	pfree(found);
	return shares;
}

/* A run. */
typedef struct Run
{
	GpudsCode code;     /* of its texts, without their tails */
	const uint8 *bytes; /* that all of them begin with */
	int nbytes;
} Run;

/* Is a value of a run?  Few are, so its beginning is looked at before its code is made. */
static bool
is_of_run(const GpudsKeyColumn *column, Datum value, const Run *run)
{
	Beginning beginning;
	int n;
	const uint8 *bytes = gpuds_text_bytes((GpudsKeyKind) column->kind, value, &n);

	return n > run->nbytes && memcmp(bytes, run->bytes, run->nbytes) == 0 &&
		   find_beginning(column, value, 0, &beginning) && beginning.code == run->code;
}

/*
 * The share of a column's rows that are in the run that a bound, a text of a type that the column compares
 * with, falls into; 0: it falls into none.
 */
double
gpuds_key_bound_share(const GpudsKeyColumn *column, const GpudsSample *sample, Oid type, Datum value)
{
	const GpudsKeyKind kind = type == column->type ? (GpudsKeyKind) column->kind : gpuds_key_kind(type);
	Run run;
	GpudsCut cut;
	double share = 0;
	bool alike = false;

	if (!gpuds_is_text(column->kind) || !gpuds_is_text(kind))
		return 0;
	gpuds_text_cut(column, kind, value, &cut);
	if (cut.exact)
		return 0;
	run.code = cut.code >> GPUDS_TEXT_TAIL_BITS;
	run.bytes = gpuds_text_run_bytes(column, kind, value, &run.nbytes);
	for (int i = 0; i < sample->ncommon; i++)
		share += is_of_run(column, sample->common[i], &run) ? sample->shares[i] : 0;
	for (int i = 0; i < sample->nbounds; i++)
	{
		const bool is_alike = is_of_run(column, sample->bounds[i], &run);

		share += alike && is_alike ? sample->bucket : 0;
		alike = is_alike;
	}
	return share;
}
