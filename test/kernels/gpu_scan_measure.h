/*-------------------------------------------------------------------------
 *
 * gpu_scan_measure.h
 *	  Aggregates of columns against a model: the part of gpu_scan.cu for GPU_AGGREGATE.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TEST_GPU_SCAN_MEASURE_H
#define TEST_GPU_SCAN_MEASURE_H

/* What a column of an entry has, bit by bit. */
static uint64_t
model_bits(const GpudsEntry *e, int nwords, int place, int bits)
{
	uint64_t value = 0;

	for (int i = bits - 1; i >= 0; i--)
	{
		int at = place + i;
		uint64_t word = at < ENTRY_SPILL_BITS                       ? e->t >> ENTRY_SPILL_SHIFT
						: nwords == 2 && at < ENTRY_SPILL_BITS + 64 ? e->w1
																	: e->w0;

		value = value << 1 | (word >> (at < ENTRY_SPILL_BITS ? at : (at - ENTRY_SPILL_BITS) % 64) & 1);
	}
	return value;
}

/* What is expected of an aggregated column. */
struct Expected
{
	uint64_t n;
	unsigned __int128 sum;
	double float_sum;
	double size; /* of all values together */
	uint64_t min;
	uint64_t max;
};

/* What is added up for the square of a value. */
static uint64_t
model_square(uint8_t kind, int64_t value)
{
	const __int128 high = value < 0 ? -((-(__int128) value + 0xFFFFFFFF) / ((int64_t) 1 << 32)) : value >> 32;
	const __int128 low = value - high * ((__int128) 1 << 32);

	if (kind == AGG_COLUMN_SQUARE)
		return (uint64_t) ((__int128) value * value);
	if (kind == AGG_COLUMN_HIGH_SQUARE)
		return (uint64_t) (high * high);
	if (kind == AGG_COLUMN_LOW_SQUARE)
		return (uint64_t) (low * low);
	return (uint64_t) (high * low + ((__int128) 1 << 63));
}

static void
model_add(Expected *x, const AggColumn *m, const GpudsEntry *e, int nwords)
{
	uint64_t bits = model_bits(e, nwords, m->place, m->bits);
	uint64_t code = bits ^ m->flip;

	if (model_bits(e, nwords, m->null_place, 1) == m->null_bit)
		return;
	if (m->kind == AGG_COLUMN_FLOAT4 || m->kind == AGG_COLUMN_FLOAT8)
	{
		double value;

		if (m->kind == AGG_COLUMN_FLOAT8)
			memcpy(&value, &bits, sizeof(value));
		else
		{
			uint32_t half = (uint32_t) bits;
			float single;

			memcpy(&single, &half, sizeof(single));
			value = single;
		}
		x->float_sum += value;
		x->size += value < 0 ? -value : value;
		code = bits >> (m->bits - 1) ? ~bits & (UINT64_MAX >> (64 - m->bits))
									 : bits | UINT64_C(1) << (m->bits - 1);
		if (value != value)
			code = UINT64_MAX;
	}
	else
	{
		if (m->kind != AGG_COLUMN_INTEGER)
			code = model_square(m->kind, (int64_t) (code - (UINT64_C(1) << (m->bits - 1))));
		x->sum += code;
	}
	x->n++;
	x->min = code < x->min ? code : x->min;
	x->max = code > x->max ? code : x->max;
}

/* A random column of entries of so many key words. */
static AggColumn
random_measure(int nwords)
{
	const int all = 64 * nwords + ENTRY_SPILL_BITS;
	AggColumn m = {};

	m.kind = (uint8_t) test_below(AGG_COLUMN_PRODUCT + 1);
	m.bits = (uint8_t) (m.kind == AGG_COLUMN_INTEGER  ? 1 + test_below(64)
						: m.kind == AGG_COLUMN_SQUARE ? 1 + test_below(32)
						: m.kind == AGG_COLUMN_FLOAT4 ? 32
													  : 64);
	m.place = (uint8_t) test_below((uint64_t) (all - m.bits + 1));
	m.null_place = (uint8_t) test_below((uint64_t) all);
	m.null_bit = (uint8_t) test_below(2);
	m.flip = agg_column_is_float(&m) || test_below(2) ? 0
													  : (test_random() | 1) & (UINT64_MAX >> (64 - m.bits));
	return m;
}

/* Is that what was expected?  Floating-point sums depend on the order of entries. */
static void
check_measured(const uint64_t *words, const AggColumn *m, const Expected *x)
{
	PartialAgg got;
	double off;

	memcpy(&got, words, sizeof(got));
	CHECK(got.n == x->n && got.min == x->min && got.max == x->max);
	if (!agg_column_is_float(m))
		CHECK(((unsigned __int128) got.high << 32) + got.low == x->sum);
	else if (x->size <= 1e300)
	{
		off = got.sum - x->float_sum;
		CHECK((off < 0 ? -off : off) <= x->size * 1e-9);
	}
}

/* What entries of a request are counted, and aggregated; returns how many are handed back, and marks them. */
static int64_t
model_measure(const GpuRequest *r, const Progress *p, const Model *m, const Visible *visible,
			  const AggColumn *agg_columns, int nwords, Expected *expected, uint64_t *rows,
			  unsigned char *marks)
{
	int64_t others = 0;

	memset(marks, 0, (size_t) m->n + 1);
	for (int64_t i = 0; i < p->n; i++)
	{
		int64_t at = r->each ? i : 0;
		int64_t first;
		int64_t inside = test_inside(m, &p->intervals[i], &first);

		for (int64_t k = first; k < first + inside; k++)
		{
			PageRow row = test_row(&m->e[k], visible->map, visible->map_bytes, &visible->rows);

			if (r->inside && i == 0 && !entry_less(&r->at, &m->e[k]))
				continue;
			marks[k] += test_goes_back(row);
			others += test_goes_back(row);
			if (row != PAGE_ROW_SEEN)
				continue;
			rows[at]++;
			for (uint32_t j = 0; j < r->nagg; j++)
				model_add(&expected[at * GPU_AGG_COLUMNS + j], &agg_columns[j], &m->e[k], nwords);
		}
	}
	return others;
}

/* Takes entries that are not counted from the marks. */
static void
check_others(const GpudsEntry *entries, int64_t n, const Model *m, unsigned char *marks)
{
	for (int64_t i = 0; i < n; i++)
	{
		GpudsInterval only = { entries[i], entries[i] };
		int64_t first;

		CHECK(test_inside(m, &only, &first) == 1 && marks[first] > 0);
		marks[first]--;
	}
}

static void
run_measure(const GpudsView *view, const Model *m, int kind, uint64_t range)
{
	const int64_t most[] = { 3, 20, PIECE / 4 / (1 + GPU_AGG_COLUMNS * GPU_PARTIAL_AGG_WORDS) / 8 };
	GpuRequest *r = &slots[0].request;
	const uint64_t *out = (const uint64_t *) slots[0].output;
	unsigned char *marks = (unsigned char *) malloc((size_t) m->n + 1);
	AggColumn *agg_columns;
	Expected *expected;
	uint64_t *rows;
	int64_t counted = 0;
	int64_t others;
	Visible visible;
	Progress p;

	start(&slots[0], &p, m, kind, view->nwords, range, most[test_below(3)]);
	if (test_below(3) == 0)
		only_single_keys(&slots[0], &p);
	if (test_below(3) == 0)
		shuffle(&slots[0], &p);
	r->form = GPU_AGGREGATE;
	r->forward = true;
	r->next = 0;
	r->each = test_below(2);
	r->inside = p.n > 0 && test_below(4) == 0 && p.intervals[0].lo.t != UINT64_MAX &&
				!entry_less(&p.intervals[0].hi, &p.intervals[0].lo);
	if (r->inside)
		r->at = p.intervals[0].lo;
	if (r->points && !r->each && !r->inside && test_below(2))
		repeat_points(&slots[0], &p);
	r->nagg = (uint32_t) test_below(GPU_AGG_COLUMNS + 1);
	r->bits = r->each && r->nagg == 0 && test_below(2);
	agg_columns = (AggColumn *) (slots[0].input + PIECE - GPU_AGG_COLUMNS * sizeof(AggColumn));
	for (int i = 0; i < GPU_AGG_COLUMNS; i++)
		agg_columns[i] = random_measure(view->nwords);
	r->agg_columns = (uint64_t) ((unsigned char *) agg_columns - (unsigned char *) slots);
	visible = random_visible(r, m, PIECE / 4);
	expected = (Expected *) calloc((size_t) (p.n + 1) * GPU_AGG_COLUMNS, sizeof(Expected));
	rows = (uint64_t *) calloc((size_t) p.n + 1, sizeof(uint64_t));
	CHECK(marks && expected && rows);
	for (int64_t i = 0; i < (p.n + 1) * GPU_AGG_COLUMNS; i++)
		expected[i].min = UINT64_MAX;
	others = model_measure(r, &p, m, &visible, agg_columns, view->nwords, expected, rows, marks);
	r->cap = ((int64_t) PIECE - (int64_t) gpu_result_bytes(r)) / (int64_t) sizeof(GpudsEntry);
	r->status = scan_large(view, r);
	CHECK(r->status == GPU_OK && r->found == others);
	for (int64_t i = 0; i < (r->each ? p.n : 1); i++)
	{
		counted += (int64_t) rows[i];
		if (r->bits)
		{
			CHECK((((const uint32_t *) out)[i / 32] >> i % 32 & 1) == (rows[i] > 0));
			continue;
		}
		CHECK(out[0] == rows[i]);
		for (uint32_t j = 0; j < r->nagg; j++)
			check_measured(out + 1 + j * GPU_PARTIAL_AGG_WORDS, &agg_columns[j],
						   &expected[i * GPU_AGG_COLUMNS + j]);
		out += gpu_result_words(r->nagg);
	}
	if (r->bits)
		out += gpu_result_bits_bytes(p.n) / sizeof(uint64_t);
	CHECK(r->counted == counted);
	if (others <= r->cap)
	{
		CHECK(r->next == r->n && !r->inside);
		check_others((const GpudsEntry *) out, others, m, marks);
	}
	else
		CHECK(r->next == 0);
	free(marks);
	free(expected);
	free(rows);
	free(p.intervals);
}

#endif /* TEST_GPU_SCAN_MEASURE_H */
