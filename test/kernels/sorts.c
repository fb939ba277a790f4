/*-------------------------------------------------------------------------
 *
 * sorts.c
 *	  Sorting entries, operations and words, against qsort.
 *
 *-------------------------------------------------------------------------
 */
#include "common.h"

static int
compare_ops(const void *a, const void *b)
{
	const GpudsOp *x = (const GpudsOp *) a;
	const GpudsOp *y = (const GpudsOp *) b;
	int c = test_compare(&x->e, &y->e);

	return c != 0 ? c : x->order < y->order ? -1 : x->order > y->order;
}

static int
compare_words(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *) a;
	uint64_t y = *(const uint64_t *) b;

	return x < y ? -1 : x > y;
}

/* Shapes of the input, on top of the distributions of keys. */
static void
shape(GpudsOp *ops, int64_t n, int how)
{
	if (how == 0)
		return;
	if (how < 4)
		qsort(ops, (size_t) n, sizeof(GpudsOp), compare_ops);
	if (how == 2)
	{
		for (int64_t i = 0; i < n / 2; i++)
		{
			GpudsOp x = ops[i];

			ops[i] = ops[n - 1 - i];
			ops[n - 1 - i] = x;
		}
	}
	else if (how == 3 && n > 0)
		ops[test_below((uint64_t) n)].e.w0 ^= UINT64_C(1) << test_below(64);
	else if (how == 4)
	{
		/* few at the far end of the range: the highest bits tell nothing */
		for (int64_t i = 0; i < n; i++)
			ops[i].e.w0 = test_below(100) ? ops[i].e.w0 & 0xFFF : ops[i].e.w0;
	}
}

/* Sorts by splitting alone. */
static void
split_sort(uint64_t *words, int64_t n)
{
	int64_t start[SORT_SPLIT + 1];

	if (n < 2 || !sort_split_words(words, n, start))
		return;
	CHECK(start[0] == 0 && start[SORT_SPLIT] == n);
	for (int b = 0; b < SORT_SPLIT; b++)
	{
		CHECK(start[b] <= start[b + 1] && start[b + 1] - start[b] < n);
		split_sort(words + start[b], start[b + 1] - start[b]);
	}
}

static void
run(int64_t n, int kind, int nwords, int how, uint64_t range)
{
	size_t room = (size_t) n + 1;
	GpudsOp *ops = (GpudsOp *) malloc(room * sizeof(GpudsOp));
	GpudsOp *sorted = (GpudsOp *) malloc(room * sizeof(GpudsOp));
	GpudsOp *scratch = (GpudsOp *) malloc(room * sizeof(GpudsOp));
	GpudsEntry *entries = (GpudsEntry *) malloc(room * sizeof(GpudsEntry));
	uint64_t *words = (uint64_t *) malloc(room * sizeof(uint64_t));
	uint64_t *sorted_words = (uint64_t *) malloc(room * sizeof(uint64_t));
	uint64_t *split_words = (uint64_t *) malloc(room * sizeof(uint64_t));
	int64_t kept, distinct = 0;

	for (int64_t i = 0; i < n; i++)
	{
		ops[i].e = test_entry(kind, nwords, range);
		ops[i].order = test_random() >> test_below(60);
	}
	shape(ops, n, how);
	for (int64_t i = 0; i < n; i++)
	{
		entries[i] = ops[i].e;
		words[i] = sorted_words[i] = split_words[i] = ops[i].e.w0 ^ ops[i].e.t;
		sorted[i] = ops[i];
	}
	qsort(sorted, (size_t) n, sizeof(GpudsOp), compare_ops);
	qsort(sorted_words, (size_t) n, sizeof(uint64_t), compare_words);
	sort_ops(ops, scratch, n);
	sort_entries(entries, (GpudsEntry *) scratch, n);
	sort_u64(words, (uint64_t *) scratch, n);
	split_sort(split_words, n);
	for (int64_t i = 0; i < n; i++)
	{
		CHECK(entry_equal(&ops[i].e, &sorted[i].e) && ops[i].order == sorted[i].order);
		CHECK(entry_equal(&entries[i], &sorted[i].e));
		CHECK(words[i] == sorted_words[i]);
		CHECK(split_words[i] == sorted_words[i]);
		distinct += i == 0 || !entry_equal(&sorted[i - 1].e, &sorted[i].e);
	}
	kept = sort_last_ops(ops, n);
	CHECK(kept == distinct);
	CHECK(sort_unique_entries(entries, n) == distinct);
	for (int64_t i = 0, k = 0; i < n; i++)
	{
		if (i + 1 < n && entry_equal(&sorted[i].e, &sorted[i + 1].e))
			continue;
		CHECK(entry_equal(&ops[k].e, &sorted[i].e) && ops[k].order == sorted[i].order);
		CHECK(entry_equal(&entries[k], &sorted[i].e));
		k++;
	}
	free(ops);
	free(sorted);
	free(scratch);
	free(entries);
	free(words);
	free(sorted_words);
	free(split_words);
}

int
main(void)
{
	static const int64_t sizes[] = { 0, 1, 2, 23, 24, 25, 63, 64, 65, 500, 5000, 20000 };

	for (int kind = 0; kind < KEYS_KINDS; kind++)
	{
		for (int how = 0; how < 5; how++)
		{
			for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
			{
				run(sizes[s], kind, 1 + (int) test_below(2), how, 1 + (uint64_t) sizes[s] * 4);
				run(sizes[s], kind, 1 + (int) test_below(2), how, 10);
			}
		}
	}
	printf("sorts: ok\n");
	return 0;
}
