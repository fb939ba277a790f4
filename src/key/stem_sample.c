/*-------------------------------------------------------------------------
 *
 * stem_sample.c
 *	  Which stems an index gets (stems.h): those of a sample of its rows' texts.
 *
 * A run of texts that begin alike, and are longer than their codes, is in no order (text.h).  Where a run of
 * the sample is longer than some limit, what all of its texts begin with becomes a stem.  Behind it there are
 * new runs, which become stems in their turn.  The limit is the least one for which stems are few enough.
 *
 * What most texts begin with becomes a stem only as far as their run goes.  Later ones may differ soon behind
 * it, as numbers do that count up.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "key/stems.h"
#include "key/text.h"

/* Bytes that are kept of a text: what a stem can have, and more than a code has behind it. */
#define KEPT_BYTES (GPUDS_STEM_BYTES + GPUDS_TEXT_MAX_BITS / 8)

/* Texts of a sample, at most, and its seed: the same rows give the same codes. */
#define MOST_TEXTS 65536
#define SEED UINT64CONST(0x6770756473)

/* Runs of so many rows are no harm. */
#define SHORT_RUN 4

/* A run of at least this share of a sample becomes a stem only as far as it goes. */
#define LARGE_SHARE (1.0 / 16)

/* By how much rows in runs must become fewer for more bits of numbers. */
#define WORTH_IT 0.75

typedef struct SampleText
{
	const uint8 *bytes;
	int n;
} SampleText;

typedef struct ColumnSample
{
	SampleText *texts;
	int64 ntexts;
	int64 seen;
	Size nbytes; /* of all texts */
} ColumnSample;

struct GpudsStemSample
{
	const GpudsKeyLayout *layout;
	MemoryContext context;
	MemoryContext values; /* of one row */
	pg_prng_state random;
	int64 most; /* texts of a column */
	ColumnSample column[GPUDS_KEY_MAX_COLUMNS];
};

/* A stem that has been chosen, or the root, in the order that they are stored in. */
typedef struct ChosenStem
{
	int64 from; /* texts of the sample that begin with it */
	int64 to;
	int nbytes;
	int of_parent; /* of nbytes */
	int nchildren;
} ChosenStem;

/* The stems of a column. */
typedef struct Choice
{
	const SampleText *texts;
	int64 ntexts;
	int leading; /* bytes of a code behind a stem */
	int most;    /* stems */
	ChosenStem *stem;
	int nstems;
	Size nbytes;
	double in_runs; /* sum, over all texts, of the others in their runs */
} Choice;

/* Begins a sample of the rows of an index, in so many bytes of the current memory context. */
GpudsStemSample *
gpuds_stem_sample_begin(const GpudsKeyLayout *layout, Size memory)
{
	GpudsStemSample *sample = palloc0(sizeof(GpudsStemSample));
	int ncolumns = 0;

	sample->layout = layout;
	sample->context = AllocSetContextCreate(CurrentMemoryContext, "gpuds stems", ALLOCSET_DEFAULT_SIZES);
	sample->values = AllocSetContextCreate(sample->context, "gpuds stem values", ALLOCSET_DEFAULT_SIZES);
	pg_prng_seed(&sample->random, SEED);
	for (int i = 0; i < layout->nkeys; i++)
		ncolumns += gpuds_is_text(layout->column[i].kind);
	sample->most = Min(MOST_TEXTS, memory / (KEPT_BYTES + sizeof(SampleText)) / Max(ncolumns, 1));
	sample->most = Max(sample->most, 1);
	for (int i = 0; i < layout->nkeys; i++)
	{
		if (gpuds_is_text(layout->column[i].kind))
			sample->column[i].texts = MemoryContextAllocZero(sample->context,
															 sample->most * sizeof(SampleText));
	}
	return sample;
}

/* Which text of a full sample another one takes the place of; -1: of none. */
static int64
replaced(GpudsStemSample *sample, const ColumnSample *column)
{
	const uint64 i = pg_prng_uint64_range(&sample->random, 0, column->seen - 1);

	return i < (uint64) sample->most ? (int64) i : -1;
}

static void
add_text(GpudsStemSample *sample, ColumnSample *column, const uint8 *bytes, int n)
{
	const int64 place = column->seen++ < sample->most ? column->ntexts++ : replaced(sample, column);
	uint8 *copy;

	if (place < 0)
		return;
	if (column->texts[place].bytes)
		pfree(unconstify(uint8 *, column->texts[place].bytes));
	n = Min(n, KEPT_BYTES);
	copy = MemoryContextAlloc(sample->context, n + 1);
	memcpy(copy, bytes, n);
	column->texts[place] = (SampleText){ copy, n };
}

/* Adds the values of a row's columns to the sample. */
void
gpuds_stem_sample_add(GpudsStemSample *sample, const Datum *values, const bool *isnull)
{
	MemoryContext old = MemoryContextSwitchTo(sample->values);

	for (int i = 0; i < sample->layout->nkeys; i++)
	{
		const GpudsKeyColumn *column = &sample->layout->column[i];
		const uint8 *bytes;
		int n;

		if (!gpuds_is_text(column->kind) || isnull[i])
			continue;
		bytes = gpuds_text_bytes((GpudsKeyKind) column->kind, values[i], &n);
		add_text(sample, &sample->column[i], bytes, n);
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(sample->values);
}

static int
compare_texts(const void *a, const void *b)
{
	const SampleText *one = a;
	const SampleText *other = b;
	const int order = memcmp(one->bytes, other->bytes, Min(one->n, other->n));

	return order != 0 ? order : (one->n > other->n) - (one->n < other->n);
}

/* Where the run ends that a text of the sample is in, behind a stem of so many bytes. */
static int64
run_end(const Choice *choice, int64 i, int64 to, int nbytes)
{
	const SampleText *first = &choice->texts[i];
	int64 end = i + 1;

	while (end < to && choice->texts[end].n >= nbytes + choice->leading &&
		   memcmp(choice->texts[end].bytes + nbytes, first->bytes + nbytes, choice->leading) == 0)
		end++;
	return end;
}

/* How many bytes two texts have in common. */
static int
common_bytes(const SampleText *a, const SampleText *b)
{
	const int most = Min(Min(a->n, b->n), GPUDS_STEM_BYTES);
	int n = 0;

	while (n < most && a->bytes[n] == b->bytes[n])
		n++;
	return n;
}

/* Makes a run a child of a stem; false: there would be too many stems. */
static bool
add_child(Choice *choice, ChosenStem *parent, int64 from, int64 to)
{
	int nbytes = common_bytes(&choice->texts[from], &choice->texts[to - 1]);

	if (to - from >= choice->ntexts * LARGE_SHARE)
		nbytes = Min(nbytes, parent->nbytes + choice->leading);
	if (choice->nstems == choice->most || choice->nbytes + nbytes - parent->nbytes > GPUDS_STEMS_BYTES)
		return false;
	parent->nchildren++;
	choice->stem[choice->nstems++] = (ChosenStem){
		.from = from, .to = to, .nbytes = nbytes, .of_parent = parent->nbytes
	};
	choice->nbytes += nbytes - parent->nbytes;
	return true;
}

/* Chooses the children of a stem; false: there would be too many stems. */
static bool
choose_children(Choice *choice, ChosenStem *parent, double limit)
{
	int64 end;

	for (int64 i = parent->from; i < parent->to; i = end)
	{
		end = i + 1;
		if (choice->texts[i].n <= parent->nbytes + choice->leading)
			continue;
		end = run_end(choice, i, parent->to, parent->nbytes);
		if (end - i <= limit || parent->nbytes + choice->leading > GPUDS_STEM_BYTES)
			choice->in_runs += (double) (end - i) * (end - i - 1);
		else if (!add_child(choice, parent, i, end))
			return false;
	}
	return true;
}

/* Chooses stems so that no run of the sample is longer than the limit; false: there would be too many. */
static bool
choose_by_limit(Choice *choice, double limit)
{
	choice->stem[0] = (ChosenStem){ .to = choice->ntexts };
	choice->nstems = 1;
	choice->nbytes = 0;
	choice->in_runs = 0;
	for (int i = 0; i < choice->nstems; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!choose_children(choice, &choice->stem[i], limit))
			return false;
	}
	return true;
}

/*
 * Chooses stems of a sorted sample, of which there may be so many, for codes with so many bytes behind them.
 * limit: of the length of runs, to begin with.
 */
static void
choose(Choice *choice, const ColumnSample *column, int leading, int most, double limit)
{
	choice->texts = column->texts;
	choice->ntexts = column->ntexts;
	choice->leading = leading;
	choice->most = most;
	choice->stem = palloc(most * sizeof(ChosenStem));
	while (!choose_by_limit(choice, limit))
		limit *= 1.5;
}

/* Appends the stems of a column as they are stored. */
static void
store(StringInfo stored, int column, int bits, const Choice *choice)
{
	const GpudsStemsHeader header = {
		.column = column, .bits = bits, .nstems = choice->nstems, .nbytes = choice->nbytes
	};

	appendBinaryStringInfo(stored, (const char *) &header, sizeof(header));
	for (int i = 0; i < choice->nstems; i++)
	{
		const ChosenStem *stem = &choice->stem[i];
		const GpudsStoredStem of_stem = { stem->nbytes - stem->of_parent, stem->nchildren };

		appendBinaryStringInfo(stored, (const char *) &of_stem, sizeof(of_stem));
	}
	for (int i = 1; i < choice->nstems; i++)
	{
		const ChosenStem *stem = &choice->stem[i];

		appendBinaryStringInfo(stored, (const char *) choice->texts[stem->from].bytes + stem->of_parent,
							   stem->nbytes - stem->of_parent);
	}
	while (stored->len % MAXIMUM_ALIGNOF != 0)
		appendStringInfoCharMacro(stored, 0);
}

/* Chooses the stems of a column, if it gains by any, and appends them. */
static void
choose_of_column(const GpudsStemSample *sample, int i, double share, StringInfo stored)
{
	const ColumnSample *column = &sample->column[i];
	const int leading = (sample->layout->column[i].bits - GPUDS_TEXT_TAIL_BITS) / 8;
	const double limit = Max(2, SHORT_RUN * share);
	Choice best;
	int best_bits = 0;

	qsort(column->texts, column->ntexts, sizeof(SampleText), compare_texts);
	choose(&best, column, leading, 1, column->ntexts);
	for (int bits = 8; bits <= 16 && leading > bits / 8; bits += 8)
	{
		Choice choice;

		if (best.in_runs <= SHORT_RUN * share * column->ntexts)
			break;
		choose(&choice, column, leading - bits / 8, bits == 8 ? 128 : GPUDS_STEMS, limit);
		if (choice.nstems == 1 || choice.in_runs >= best.in_runs * WORTH_IT)
			continue;
		best = choice;
		best_bits = bits;
	}
	if (best_bits > 0)
		store(stored, i, best_bits, &best);
}

/*
 * Ends a sample of so large a share of rows, and frees it.  Appends the stems of all columns as they are
 * stored, if there are any.
 */
void
gpuds_stem_sample_end(GpudsStemSample *sample, double share, StringInfo stored)
{
	MemoryContext old = MemoryContextSwitchTo(sample->context);

	for (int i = 0; i < sample->layout->nkeys; i++)
	{
		ColumnSample *column = &sample->column[i];

		if (column->ntexts > 0)
			choose_of_column(sample, i, share * column->ntexts / column->seen, stored);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(sample->context);
	pfree(sample);
}
