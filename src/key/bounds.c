/*-------------------------------------------------------------------------
 *
 * bounds.c
 *	  Scan keys as intervals of entries and a filter.
 *
 * The keys on one column are intersected to a set of codes.  The sets of the
 * leading columns make the intervals, as far as all but the last of them hold
 * points only; the sets of other columns make the filter.  Sets are worked out
 * in ascending codes, and turned around at the end where the column is DESC.
 *
 * A set takes about the memory of the array it comes from.  Intervals take
 * several times as much and their product any multiple, so they are made in
 * batches.  Nothing here takes long without looking for interrupts.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/tupmacs.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "kernels/core/sort.h"
#include "key/code.h"

/* Sets of further columns multiply the intervals up to this many. */
#define MAX_PRODUCT 1000000

/* So many points are worth leaving unsorted. */
#define MIN_UNSORTED 4096

/* Words sorted at a time: bounds the scratch memory, and is a moment's work. */
#define SORT_PIECE (1024 * 1024)

/* Intervals of a batch, whatever work_mem says. */
#define MIN_BATCH 1024
#define MAX_BATCH (1024 * 1024)

/*
 * The codes that a column may have, and whether it may be NULL.  Codes of up
 * to 64 bits that are all points are kept as such: big arrays make them.
 */
typedef struct CodeSet
{
	bool constrained;       /* else everything is in, and the rest is unset */
	bool null;              /* NULL is in */
	bool arrived;           /* points are as they came, with duplicates */
	int64 n;                /* of points or ranges */
	uint64 *points;         /* ascending unless arrived; or NULL */
	GpudsCodeRange *ranges; /* ascending, disjoint; may be &single */
	GpudsCodeRange single;
} CodeSet;

typedef struct FilterColumn
{
	GpudsKeyColumn column;
	CodeSet set; /* of stored codes */
} FilterColumn;

struct GpudsKeyFilter
{
	int nwords;
	int ncolumns;
	FilterColumn column[GPUDS_KEY_MAX_COLUMNS];
};

/*
 * The making of intervals.  They are numbered in their order; an interval's
 * number has a digit for each column, the number of the column's item.
 */
typedef struct GpudsKeyProduct
{
	const GpudsKeyLayout *layout;
	CodeSet *sets;
	int ncolumns;                        /* that make intervals */
	int64 behind[GPUDS_KEY_MAX_COLUMNS]; /* intervals of one item of a column */
	GpudsKeyString rest;                 /* ones in the bits behind these columns */
	int64 skip;                          /* intervals to leave out before the next one */
	GpudsInterval *next;                 /* where the next interval goes */
	GpudsInterval *end;                  /* of what is wanted */
} Product;

#define ST_SORT sort_ranges
#define ST_ELEMENT_TYPE GpudsCodeRange
#define ST_COMPARE(a, b) ((a)->lo < (b)->lo ? -1 : (a)->lo > (b)->lo)
#define ST_CHECK_FOR_INTERRUPTS
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

static void *
alloc_array(int64 n, size_t size)
{
	return MemoryContextAllocHuge(CurrentMemoryContext, Max(n, 1) * size);
}

static void
set_single(CodeSet *set, const GpudsCodeRange *range)
{
	set->constrained = true;
	set->null = false;
	set->n = 1;
	set->points = NULL;
	set->arrived = false;
	set->single = *range;
	set->ranges = &set->single;
}

static void
set_copy(CodeSet *to, const CodeSet *from)
{
	*to = *from;
	if (from->ranges == &from->single)
		to->ranges = &to->single;
}

static GpudsCodeRange
set_item(const CodeSet *set, int64 i)
{
	GpudsCodeRange range;

	if (set->points == NULL)
		return set->ranges[i];
	range.lo = range.hi = set->points[i];
	return range;
}

/* Sorts words; scratch has room for SORT_PIECE of them. */
static void
sort_words(uint64 *words, int64 n, uint64 *scratch)
{
	int64 start[SORT_SPLIT + 1];

	CHECK_FOR_INTERRUPTS();
	if (n <= SORT_PIECE)
		sort_u64(words, scratch, n);
	else if (sort_split_words(words, n, start))
	{
		for (int i = 0; i < SORT_SPLIT; i++)
			sort_words(words + start[i], start[i + 1] - start[i], scratch);
	}
}

/* Sorts and leaves one of each; returns how many. */
static int64
sort_unique(uint64 *points, int64 n)
{
	int64 kept = 0;
	uint64 *scratch;
	bool ascending = true;

	for (int64 i = 1; i < n && ascending; i++)
		ascending = points[i - 1] < points[i];
	if (ascending)
		return n;

	scratch = alloc_array(Min(n, SORT_PIECE), sizeof(uint64));
	sort_words(points, n, scratch);
	pfree(scratch);
	for (int64 i = 1; i < n; i++)
	{
		if (points[i] != points[kept])
			points[++kept] = points[i];
	}
	return kept + 1;
}

static void
sort_points(CodeSet *set)
{
	if (set->arrived)
		set->n = sort_unique(set->points, set->n);
	set->arrived = false;
}

/* Leaves in the set what is in the range too; NULL is not. */
static void
intersect_range(CodeSet *set, const GpudsCodeRange *range)
{
	int64 kept = 0;

	if (!set->constrained)
	{
		set_single(set, range);
		return;
	}
	set->null = false;
	for (int64 i = 0; i < set->n; i++)
	{
		GpudsCodeRange item = set_item(set, i);

		item.lo = Max(item.lo, range->lo);
		item.hi = Min(item.hi, range->hi);
		if (item.lo > item.hi)
			continue;
		if (set->points != NULL)
			set->points[kept++] = (uint64) item.lo;
		else
			set->ranges[kept++] = item;
	}
	set->n = kept;
}

/* Leaves in the set what is in the other too, which has no NULL and is given up. */
static void
intersect_set(CodeSet *set, CodeSet *other)
{
	CodeSet both = { .constrained = true };
	uint64 *points;
	GpudsCodeRange *ranges = NULL;
	int64 i = 0;
	int64 j = 0;

	if (!set->constrained)
	{
		set_copy(set, other);
		return;
	}

	sort_points(set);
	sort_points(other);

	/*
	 * Every overlap ends where an item of one of them does.  An overlap with a
	 * point is that point, so it can take the place of one that was looked at.
	 */
	points = set->points != NULL ? set->points : other->points;
	if (points == NULL)
		ranges = alloc_array(set->n + other->n, sizeof(GpudsCodeRange));
	while (i < set->n && j < other->n)
	{
		GpudsCodeRange a = set_item(set, i);
		GpudsCodeRange b = set_item(other, j);
		GpudsCodeRange item;

		CHECK_FOR_INTERRUPTS();
		item.lo = Max(a.lo, b.lo);
		item.hi = Min(a.hi, b.hi);
		if (item.lo <= item.hi)
		{
			if (points != NULL)
				points[both.n++] = (uint64) item.lo;
			else
				ranges[both.n++] = item;
		}
		if (a.hi <= b.hi)
			i++;
		else
			j++;
	}
	for (int k = 0; k < 2; k++)
	{
		CodeSet *old = k == 0 ? set : other;

		if (old->points != NULL && old->points != points)
			pfree(old->points);
		else if (old->points == NULL && old->ranges != NULL && old->ranges != &old->single)
			pfree(old->ranges);
	}
	both.points = points;
	both.ranges = ranges;
	set_copy(set, &both);
}

static void
intersect_null(CodeSet *set)
{
	if (!set->constrained)
		set->null = true;
	set->constrained = true;
	set->n = 0;
}

/*
 * The codes whose values are in the strategy's relation to the constant at the
 * cut; false if there are none.  If the cut is fuzzy, a superset of them.
 */
static bool
cut_range(const GpudsCut *cut, StrategyNumber strategy, GpudsCode max, GpudsCodeRange *range)
{
	range->lo = 0;
	range->hi = max;

	switch (strategy)
	{
		case BTLessStrategyNumber:
		case BTLessEqualStrategyNumber:
			if (cut->above)
				return true;
			if (cut->fuzzy)
				range->hi = cut->last;
			else if (cut->exact && strategy == BTLessEqualStrategyNumber)
				range->hi = cut->code;
			else if (cut->code == 0)
				return false;
			else
				range->hi = cut->code - 1;
			return true;
		case BTEqualStrategyNumber:
			if (!cut->exact && !cut->fuzzy)
				return false;
			range->lo = cut->code;
			range->hi = cut->fuzzy ? cut->last : cut->code;
			return true;
		case BTGreaterEqualStrategyNumber:
		case BTGreaterStrategyNumber:
			if (cut->above)
				return false;
			range->lo = cut->code;
			if (cut->exact && strategy == BTGreaterStrategyNumber)
			{
				if (cut->code == max)
					return false;
				range->lo++;
			}
			return true;
		default:
			elog(ERROR, "unrecognized strategy number: %d", strategy);
			return false;
	}
}

/* Sorts the ranges and makes one of those that overlap. */
static void
sort_merge_ranges(CodeSet *set)
{
	GpudsCodeRange *ranges = set->ranges;
	int64 kept = 0;

	if (set->n < 2)
		return;
	sort_ranges(ranges, set->n);
	for (int64 i = 1; i < set->n; i++)
	{
		if (ranges[i].lo > ranges[kept].hi)
			ranges[++kept] = ranges[i];
		else
			ranges[kept].hi = Max(ranges[kept].hi, ranges[i].hi);
	}
	set->n = kept + 1;
}

/* Adds one element's codes to an array's set. */
static inline void
add_element(CodeSet *set, const GpudsCut *cut, StrategyNumber strategy, GpudsCode max)
{
	GpudsCodeRange range;

	if (set->points != NULL)
	{
		if (cut->exact)
			set->points[set->n++] = (uint64) cut->code;
	}
	else if (!cut_range(cut, strategy, max, &range))
		return;
	else if (strategy == BTEqualStrategyNumber)
		set->ranges[set->n++] = range;
	else if (set->n == 0)
		set_single(set, &range);
	else
	{
		/* these all begin or all end at the same end: the widest is the union */
		set->single.lo = Min(set->single.lo, range.lo);
		set->single.hi = Max(set->single.hi, range.hi);
	}
}

/*
 * Points of an array of integers without NULLs, for columns whose codes are
 * such integers plus a bias; those that the column cannot hold are left out.
 * This is what big arrays mostly are.  False: the array is not of that sort.
 */
static bool
add_integers(const GpudsKeyColumn *column, GpudsKeyKind constant, const char *data, int64 n, CodeSet *set)
{
	const int64 max = (int64) gpuds_ones(column->bits - 1);
	const int64 min = -max - 1;
	const uint64 bias = UINT64_C(1) << (column->bits - 1);
	uint64 *points = set->points;
	int64 kept = 0;

#define ADD_INTEGERS(type)                      \
	for (int64 i = 0; i < n; i++)               \
	{                                           \
		int64 value = ((const type *) data)[i]; \
                                                \
		points[kept] = (uint64) value + bias;   \
		kept += value >= min && value <= max;   \
	}

	switch (constant)
	{
		case GPUDS_KIND_INT2:
			ADD_INTEGERS(int16);
			break;
		case GPUDS_KIND_INT4:
			ADD_INTEGERS(int32);
			break;
		case GPUDS_KIND_INT8:
			ADD_INTEGERS(int64);
			break;
		case GPUDS_KIND_DATE:
			if (column->kind != constant)
				return false;
			ADD_INTEGERS(int32);
			break;
		case GPUDS_KIND_TIME:
		case GPUDS_KIND_TIMESTAMP:
		case GPUDS_KIND_TIMESTAMPTZ:
		case GPUDS_KIND_MONEY:
			if (column->kind != constant)
				return false;
			ADD_INTEGERS(int64);
			break;
		default:
			return false;
	}
#undef ADD_INTEGERS
	set->n = kept;
	return true;
}

/*
 * The codes in the strategy's relation to any element of the array.  NULL
 * elements have none.  Sets *fuzzy if the set is too large.
 */
static void
set_of_array(const GpudsKeyColumn *column, GpudsKeyKind constant, StrategyNumber strategy, Datum value,
			 CodeSet *set, bool *fuzzy)
{
	ArrayType *array = DatumGetArrayTypeP(value);
	int64 n = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	const bits8 *bitmap = ARR_NULLBITMAP(array);
	char *at = ARR_DATA_PTR(array);
	GpudsCode max = gpuds_ones(column->bits);
	int16 typlen;
	bool typbyval;
	char typalign;

	memset(set, 0, sizeof(*set));
	set->constrained = true;
	if (n == 0)
		return;
	get_typlenbyvalalign(ARR_ELEMTYPE(array), &typlen, &typbyval, &typalign);

	if (strategy == BTEqualStrategyNumber)
	{
		bool points = column->bits <= 64 && (constant != GPUDS_KIND_TIMESTAMPTZ || constant == column->kind);

		if (points)
			set->points = alloc_array(n, sizeof(uint64));
		else
			set->ranges = alloc_array(n, sizeof(GpudsCodeRange));
	}

	if (set->points != NULL && bitmap == NULL && add_integers(column, constant, at, n, set))
		n = 0;
	for (int64 i = 0; i < n; i++)
	{
		GpudsCut cut;

		CHECK_FOR_INTERRUPTS();
		if (bitmap != NULL && (bitmap[i / 8] & (1 << (i % 8))) == 0)
			continue;
		gpuds_cut(column->kind, constant, fetch_att(at, typbyval, typlen), &cut);
		add_element(set, &cut, strategy, max);
		*fuzzy |= cut.fuzzy;
		at = att_addlength_pointer(at, typlen, at);
		at = (char *) att_align_nominal(at, typalign);
	}

	if (set->points != NULL)
		set->arrived = true;
	else
		sort_merge_ranges(set);
	if ((Pointer) array != DatumGetPointer(value))
		pfree(array);
}

/* Narrows a column's set by a key. */
static void
apply_key(Relation index, const GpudsKeyLayout *layout, ScanKey key, CodeSet *sets, bool *recheck)
{
	int i = key->sk_attno - 1;
	const GpudsKeyColumn *column;
	CodeSet *set = &sets[i];
	GpudsKeyKind constant;
	GpudsCode max;
	GpudsCodeRange range;
	GpudsCut cut;

	Assert(i >= 0 && i < layout->ncolumns);
	Assert((key->sk_flags & (SK_ROW_HEADER | SK_ROW_MEMBER | SK_ORDER_BY)) == 0);
	column = &layout->column[i];
	max = gpuds_ones(column->bits);

	if (key->sk_flags & SK_SEARCHNULL)
	{
		intersect_null(set);
		return;
	}
	if (key->sk_flags & SK_SEARCHNOTNULL)
	{
		range.lo = 0;
		range.hi = max;
		intersect_range(set, &range);
		return;
	}
	if (key->sk_flags & SK_ISNULL)
	{
		/* the operators are strict */
		set->constrained = true;
		set->null = false;
		set->n = 0;
		return;
	}

	if (!OidIsValid(key->sk_subtype) || key->sk_subtype == index->rd_opcintype[i])
		constant = column->kind;
	else
	{
		constant = gpuds_key_kind(key->sk_subtype);
		if (!gpuds_kinds_compare(column->kind, constant))
			elog(ERROR, "cannot search column %d of index \"%s\" for type %u", i + 1,
				 RelationGetRelationName(index), key->sk_subtype);
	}

	if (key->sk_flags & SK_SEARCHARRAY)
	{
		CodeSet array;

		set_of_array(column, constant, key->sk_strategy, key->sk_argument, &array, recheck);
		intersect_set(set, &array);
		return;
	}

	gpuds_cut(column->kind, constant, key->sk_argument, &cut);
	*recheck |= cut.fuzzy;
	if (cut_range(&cut, key->sk_strategy, max, &range))
		intersect_range(set, &range);
	else
	{
		set->constrained = true;
		set->null = false;
		set->n = 0;
	}
}

/* To the codes that a DESC column stores; ascending stays ascending. */
static void
complement_set(CodeSet *set, int bits)
{
	GpudsCode ones = gpuds_ones(bits);

	for (int64 i = 0, j = set->n - 1; i <= j; i++, j--)
	{
		if (set->points != NULL)
		{
			uint64 point = set->points[i];

			set->points[i] = set->points[j] ^ (uint64) ones;
			set->points[j] = point ^ (uint64) ones;
		}
		else
		{
			GpudsCodeRange a = set->ranges[i];
			GpudsCodeRange b = set->ranges[j];

			set->ranges[i].lo = b.hi ^ ones;
			set->ranges[i].hi = b.lo ^ ones;
			set->ranges[j].lo = a.hi ^ ones;
			set->ranges[j].hi = a.lo ^ ones;
		}
	}
}

static bool
set_is_points(const CodeSet *set)
{
	if (set->points == NULL)
	{
		for (int64 i = 0; i < set->n; i++)
		{
			if (set->ranges[i].lo != set->ranges[i].hi)
				return false;
		}
	}
	return true;
}

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

/* Writes an interval from lo to hi, hi ending with the highest of what may be behind it. */
static inline void
emit(Product *product, const GpudsKeyString *lo, const GpudsKeyString *hi)
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
emit_points(Product *product, const GpudsKeyString *prefix, const GpudsKeyColumn *column,
			const uint64 *points, int64 n)
{
	GpudsKeyString key = *prefix;
	int shift = column->shift - ENTRY_SPILL_BITS;
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
multiply(Product *product, int i, const GpudsKeyString *prefix)
{
	const GpudsKeyColumn *column = &product->layout->column[i];
	const CodeSet *set = &product->sets[i];
	const bool last = i == product->ncolumns - 1;
	const bool in_word = set->points != NULL && product->layout->nwords == 1 &&
						 column->shift >= ENTRY_SPILL_BITS;
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
			GpudsCodeRange item = set_item(set, at);

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
static void
write_intervals(Product *product, int64 first, GpudsInterval *intervals, int64 n)
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
static bool
words_suffice(const GpudsKeyLayout *layout, const CodeSet *set)
{
	return layout->nwords == 1 && set->points != NULL && !set->null &&
		   layout->column[0].shift >= ENTRY_SPILL_BITS;
}

/*
 * Are they all that the keys ask for, and so many that they had better be left
 * as they came?
 */
static bool
stay_unsorted(const GpudsKeyLayout *layout, const CodeSet *sets)
{
	if (!sets[0].constrained || sets[0].n < MIN_UNSORTED || !words_suffice(layout, &sets[0]))
		return false;
	for (int i = 1; i < layout->ncolumns; i++)
	{
		if (sets[i].constrained)
			return false;
	}
	return true;
}

/* Makes the words of the first column's points, in place, and the frame around them. */
static void
frame_words(Product *product, GpudsKeySet *set)
{
	const GpudsKeyColumn *column = &product->layout->column[0];
	GpudsKeyString key = { 0, 0 };
	uint64 *words = product->sets[0].points;
	int shift = column->shift - ENTRY_SPILL_BITS;

	gpuds_key_put_code(&key, column, 0);
	product->next = &set->single;
	emit(product, &key, &key);
	for (int64 i = 0; i < product->sets[0].n; i++)
		words[i] <<= shift;
	set->words = set->all_words = words;
	set->sorted = !product->sets[0].arrived;
	set->batch = set->sorted ? MAX_BATCH : Max(set->total, 1);
}

/* A product that can be kept. */
static Product *
keep_product(const Product *product)
{
	Product *kept = palloc(sizeof(Product));

	*kept = *product;
	kept->sets = palloc(product->ncolumns * sizeof(CodeSet));
	for (int i = 0; i < product->ncolumns; i++)
		set_copy(&kept->sets[i], &product->sets[i]);
	return kept;
}

/* The filter of the columns from the first on that have conditions, or NULL. */
static GpudsKeyFilter *
make_filter(const GpudsKeyLayout *layout, const CodeSet *sets, int first)
{
	GpudsKeyFilter *filter = NULL;

	for (int i = first; i < layout->ncolumns; i++)
	{
		FilterColumn *column;

		if (!sets[i].constrained)
			continue;
		if (filter == NULL)
		{
			filter = palloc(sizeof(GpudsKeyFilter));
			filter->nwords = layout->nwords;
			filter->ncolumns = 0;
		}
		column = &filter->column[filter->ncolumns++];
		column->column = layout->column[i];
		set_copy(&column->set, &sets[i]);
	}
	return filter;
}

/*
 * Works out which entries the scan keys ask for.  What is not in set itself is
 * allocated in the current memory context and kept until that is reset; scalar
 * keys on leading columns allocate nothing.  No keys ask for all entries.  The
 * layout must live as long as the set.
 *
 * Depends on TimeZone if keys compare timestamptz with its relatives, and only
 * then may set recheck.
 */
void
gpuds_key_set(Relation index, const GpudsKeyLayout *layout, ScanKey keys, int nkeys, GpudsKeySet *set)
{
	CodeSet sets[GPUDS_KEY_MAX_COLUMNS];
	Product product;
	int64 n = 1;
	int end;

	set->intervals = &set->single;
	set->nintervals = 0;
	set->words = set->all_words = NULL;
	set->sorted = true;
	set->filter = NULL;
	set->recheck = false;
	set->total = set->first = 0;
	set->batch = 1;
	set->product = NULL;

	memset(sets, 0, layout->ncolumns * sizeof(CodeSet));
	for (int i = 0; i < nkeys; i++)
	{
		CodeSet *narrowed = &sets[keys[i].sk_attno - 1];

		apply_key(index, layout, &keys[i], sets, &set->recheck);
		if (narrowed->n == 0 && !narrowed->null)
			return;
	}

	for (int i = 0; i < layout->ncolumns; i++)
	{
		if (i > 0 || !stay_unsorted(layout, sets))
			sort_points(&sets[i]);
	}

	product.layout = layout;
	product.sets = sets;
	product.ncolumns = 0;
	end = 64 * layout->nwords + ENTRY_SPILL_BITS;
	for (int i = 0; i < layout->ncolumns; i++)
	{
		const GpudsKeyColumn *column = &layout->column[i];
		int64 items;

		if (!sets[i].constrained)
			break;
		items = sets[i].n + sets[i].null;
		if (i > 0 && items > 1 && items > MAX_PRODUCT / n)
			break;
		n *= items;
		product.ncolumns++;
		end = Min(column->shift, column->null_shift);
		if (!set_is_points(&sets[i]))
			break;
	}
	for (int i = 0; i < layout->ncolumns; i++)
	{
		if (sets[i].constrained && layout->column[i].descending)
			complement_set(&sets[i], layout->column[i].bits);
	}

	product.rest = ones_behind(layout, end);
	for (int64 i = product.ncolumns - 1, behind = 1; i >= 0; i--)
	{
		product.behind[i] = behind;
		behind *= sets[i].n + sets[i].null;
	}

	set->total = n;
	if (n > 1 && product.ncolumns == 1 && words_suffice(layout, &sets[0]))
	{
		frame_words(&product, set);
		set->nintervals = Min(n, set->batch);
	}
	else
	{
		set->batch = Min(Max((int64) work_mem * 1024 / (int64) sizeof(GpudsInterval), MIN_BATCH), MAX_BATCH);
		set->nintervals = Min(n, set->batch);
		if (n > 1)
			set->intervals = alloc_array(set->nintervals, sizeof(GpudsInterval));
		if (n > set->nintervals)
			set->product = keep_product(&product);
		write_intervals(&product, 0, set->intervals, set->nintervals);
	}
	set->filter = make_filter(layout, sets, product.ncolumns);
}

/* Puts the set's words in order, leaves one of each, and goes to the first batch. */
void
gpuds_key_set_sort(GpudsKeySet *set)
{
	if (set->sorted)
		return;
	set->total = sort_unique(set->all_words, set->total);
	set->sorted = true;
	set->batch = MAX_BATCH;
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
	if (set->all_words)
		set->words = set->all_words + first;
	else
		write_intervals(set->product, first, set->intervals, set->nintervals);
	return true;
}

/*
 * Number of the first interval, of all, that does not end before the entry.  The
 * set's words must be sorted.
 */
int64
gpuds_key_set_find(const GpudsKeySet *set, const GpudsEntry *entry)
{
	GpudsScan scan = { .intervals = set->intervals, .n = set->total, .words = set->all_words };
	int64 lo = 0;
	int64 hi = set->total;

	if (set->product == NULL)
		return entry_scan_find(&scan, entry);
	while (lo < hi)
	{
		int64 middle = lo + (hi - lo) / 2;
		GpudsInterval interval = { { 0 } };

		write_intervals(set->product, middle, &interval, 1);
		if (entry_less(&interval.hi, entry))
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo;
}

static bool
set_contains(const CodeSet *set, GpudsCode code)
{
	int64 lo = 0;
	int64 hi = set->n;

	/* the first item that does not end before code */
	while (lo < hi)
	{
		int64 middle = (lo + hi) / 2;

		if (set_item(set, middle).hi < code)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo < set->n && set_item(set, lo).lo <= code;
}

/* Does an entry from the intervals belong to the answer?  A NULL filter is not allowed. */
bool
gpuds_key_filter_pass(const GpudsKeyFilter *filter, const GpudsEntry *entry)
{
	GpudsKeyString key;

	key.high = entry->w0;
	if (filter->nwords == 2)
		key.high = key.high << 64 | entry->w1;
	key.spill = entry->t >> ENTRY_SPILL_SHIFT;

	for (int i = 0; i < filter->ncolumns; i++)
	{
		const GpudsKeyColumn *column = &filter->column[i].column;
		const CodeSet *set = &filter->column[i].set;

		if (gpuds_key_get(&key, column->null_shift, 1) == gpuds_null_bit(column))
		{
			if (!set->null)
				return false;
		}
		else if (!set_contains(set, gpuds_key_get(&key, column->shift, column->bits)))
			return false;
	}
	return true;
}
