/*-------------------------------------------------------------------------
 *
 * model.c
 *	  Trees against a sorted array: positions, ranks, scans and counts by all
 *	  instruction sets of the machine, in trees that are built, changed by batches
 *	  or made node by node.
 *
 *	  usage: model [rounds [seed]]
 *
 *-------------------------------------------------------------------------
 */
#include "loops.h"
#include "tree.h"

#include "kernels/core/column_test.h"

#define CAP 100

/* Positions and ranks, and steps to the leaves beside. */
static void
check_positions(const GpudsView *view, const Model *m, int kind, uint64_t range)
{
	const int nw = view->nwords;

	for (int i = 0; i < 300; i++)
	{
		GpudsEntry x = test_bound(m, kind, nw, range);
		int64_t rank = model_rank(m, &x);
		BtreePosition p;

		CHECK(btree_rank(view, &x, nw) == (uint64_t) rank);
		btree_lower_bound(view, &x, &p, nw);
		CHECK(p.rank + (uint64_t) p.place == (uint64_t) rank);
		CHECK((p.leaf == 0) == (m->n == 0));
	}
	for (int i = 0; i < 100 && m->n > 0; i++)
	{
		uint64_t rank = test_below((uint64_t) m->n);
		BtreePosition p, back;
		GpudsEntry e;
		int n;

		btree_select(view, rank, &p);
		CHECK(p.rank + (uint64_t) p.place == rank);
		e = btree_leaf_entry(btree_node(view->base, p.leaf), p.place, nw);
		CHECK(entry_equal(&e, &m->e[rank]));
		n = btree_leaf_n(btree_node(view->base, p.leaf), nw);
		back = p;
		if (btree_next_leaf(view, &p, n))
		{
			CHECK(p.rank == back.rank + (uint64_t) n && p.place == 0);
			e = btree_leaf_entry(btree_node(view->base, p.leaf), 0, nw);
			CHECK(entry_equal(&e, &m->e[p.rank]));
			CHECK(btree_previous_leaf(view, &p));
			CHECK(p.leaf == back.leaf && p.rank == back.rank && p.place == n && p.at == back.at);
		}
		else
			CHECK(back.rank + (uint64_t) n == (uint64_t) m->n);
		p = back;
		CHECK(btree_previous_leaf(view, &p) == (back.rank > 0));
		if (back.rank > 0)
			CHECK(p.rank + (uint64_t) p.place == back.rank);
	}
}

/*
 * All intervals, in steps of random size, forward and backward.  With points the
 * scan gets these and the frame instead of the intervals, which say the same.
 */
static void
check_scan(const GpudsView *view, const Model *m, const GpudsInterval *intervals, int64_t n,
		   const GpudsInterval *frame, const uint64_t *points)
{
	GpudsEntry out[CAP];

	for (int forward = 0; forward < 2; forward++)
	{
		GpudsScan scan = { points ? frame : intervals, n, forward ? 0 : n, false, { 0, 0, 0 }, points };
		int64_t cap = 1 + (int64_t) test_below(CAP);
		int64_t got = 0;
		int64_t at = 0;

		for (int64_t i = 0; i < n; i++)
		{
			int64_t from;
			int64_t inside = test_inside(m, &intervals[forward ? i : n - 1 - i], &from);

			for (int64_t k = 0; k < inside; k++)
			{
				if (at == got)
				{
					got = test_scan(test_kernels(), view, &scan, forward, out, cap);
					at = 0;
					CHECK(got > 0);
				}
				CHECK(entry_equal(&out[at], &m->e[forward ? from + k : from + inside - 1 - k]));
				at++;
				if (at == got && test_below(10) == 0)
				{
					cap = 1 + (int64_t) test_below(CAP);
					got = at = 0;
				}
			}
		}
		CHECK(at == got);
		CHECK(test_scan(test_kernels(), view, &scan, forward, out, cap) == 0);
		CHECK(scan.next == (forward ? n : 0) && !scan.inside);
	}
}

/* A visibility map for some heap pages: all of it, or what is often left of it. */
static void
make_map(unsigned char *map, size_t bytes)
{
	uint64_t share = test_below(3);

	for (size_t i = 0; i < bytes; i++)
		map[i] = share == 0   ? 0xFF
				 : share == 1 ? (unsigned char) test_random()
							  : (unsigned char) -(test_below(50) != 0);
}

/* The edges of a table of rows: offsets without bits, the highest block, and the number behind it. */
static void
check_page_rows(void)
{
	uint32_t places[2] = { 2, 3 }; /* of a page behind the last one, too */
	uint32_t pages[6] = { 1, 0xAAAAAAAA, 0xAAAAAAAA, UINT32_MAX, 0x55555555, 0x95555555 };
	PageRows rows = { places, pages, 2, 2, 2 };
	uint64_t highest = UINT64_C(0xFFFFFFFE) << 16;

	CHECK(page_rows_find(&rows, highest) == PAGE_ROW_UNKNOWN);
	CHECK(page_rows_find(&rows, highest | 1) == PAGE_ROW_SEEN);
	CHECK(page_rows_find(&rows, highest | 31) == PAGE_ROW_SEEN);
	CHECK(page_rows_find(&rows, highest | 32) == PAGE_ROW_UNSEEN);
	CHECK(page_rows_find(&rows, highest | 33) == PAGE_ROW_UNKNOWN);
	CHECK(page_rows_find(&rows, highest | 0xFFFF) == PAGE_ROW_UNKNOWN);
	CHECK(page_rows_find(&rows, (highest - (2 << 16)) | 1) == PAGE_ROW_UNKNOWN);
	CHECK(page_rows_find(&rows, UINT64_C(0xFFFFFFFF) << 16 | 1) == PAGE_ROW_UNKNOWN);
	/* it is none any more */
	pages[3] = 0;
	CHECK(page_rows_find(&rows, UINT64_C(0xFFFFFFFE) << 16 | 1) == PAGE_ROW_UNKNOWN);
	rows.slots = 0;
	CHECK(page_rows_find(&rows, highest | 1) == PAGE_ROW_UNKNOWN);
}

/*
 * A test of a column, somewhere in an entry of so many words, against what the codes' ranges say one by one.
 */
static void
check_column_test(int nwords)
{
	const int bits = 1 + (int) test_below(8);
	const int key_bits = 64 * nwords + ENTRY_SPILL_BITS;
	uint64_t lo[128];
	uint64_t hi[128];
	bool in[256] = { false };
	ColumnTest test = { .null = test_below(2) == 0, .lo = lo, .hi = hi };
	uint64_t next = test_below(4);

	test.column.kind = AGG_COLUMN_INTEGER;
	test.column.bits = (uint8_t) bits;
	test.column.place = (uint8_t) (1 + test_below((uint64_t) (key_bits - bits)));
	test.column.null_place = test.column.place - 1;
	test.column.null_bit = (uint8_t) test_below(2);
	test.column.flip = test_random() & ((UINT64_C(1) << bits) - 1);
	while (next < UINT64_C(1) << bits && test.n < 128)
	{
		uint64_t end = next + test_below(3);

		if (end >= UINT64_C(1) << bits)
			end = (UINT64_C(1) << bits) - 1;
		lo[test.n] = next;
		hi[test.n++] = end;
		for (uint64_t code = next; code <= end; code++)
			in[code] = true;
		next = end + 2 + test_below(1 + test_below(100));
	}
	for (int i = 0; i < 200; i++)
	{
		GpudsEntry e = { test_random(), nwords == 2 ? test_random() : 0, test_random() };
		uint64_t code = agg_column_bits(&e, nwords, test.column.place, bits) ^ test.column.flip;
		bool null = agg_column_bits(&e, nwords, test.column.null_place, 1) == test.column.null_bit;

		CHECK(column_test_passes(&test, &e, nwords) == (null ? test.null : in[code]));
	}
}

/* Floating-point values: all NaNs are one, and each of -0 and 0 has a code. */
static void
check_float_tests(void)
{
	const uint64_t zero = UINT64_C(1) << 63;
	const uint64_t nan = UINT64_MAX;
	ColumnTest test = { .column = { AGG_COLUMN_FLOAT8, ENTRY_SPILL_BITS, 64, 0, 1, 0 }, .n = 1 };
	GpudsEntry e = { 0, 0, 0 };

	test.lo = test.hi = &nan;
	e.w0 = UINT64_C(0x7FF8000000000000);
	CHECK(column_test_passes(&test, &e, 1));
	e.w0 = UINT64_C(0xFFF0000000000001);
	CHECK(column_test_passes(&test, &e, 1));
	e.w0 = UINT64_C(0x7FF0000000000000);
	CHECK(!column_test_passes(&test, &e, 1));
	test.lo = test.hi = &zero;
	e.w0 = 0;
	CHECK(column_test_passes(&test, &e, 1));
	e.w0 = UINT64_C(1) << 63;
	CHECK(!column_test_passes(&test, &e, 1));
	e.t = UINT64_C(1) << ENTRY_SPILL_SHIFT;
	CHECK(!column_test_passes(&test, &e, 1));
	test.null = true;
	CHECK(column_test_passes(&test, &e, 1));
}

/* A column of any kind and width, somewhere in an entry of so many words, or among so many side values. */
static AggColumn
make_column(int nwords, int side_bytes)
{
	static const uint8_t bytes[] = { 1, 2, 4, 8 };
	AggColumn column = { .kind = (uint8_t) test_below(3), .null_bit = (uint8_t) test_below(2) };
	const int key_bits = 64 * nwords + ENTRY_SPILL_BITS;

	if (column.kind == AGG_COLUMN_INTEGER)
		column.bits = (uint8_t) (1 + test_below(64));
	else
		column.bits = column.kind == AGG_COLUMN_FLOAT4 ? 32 : 64;
	column.place = (uint8_t) test_below((uint64_t) (key_bits - column.bits + 1));
	column.null_place = column.side_null = (uint8_t) test_below((uint64_t) key_bits);
	column.flip = test_random() >> (64 - column.bits);
	if (side_bytes > 0)
	{
		column.side_bytes = column.kind == AGG_COLUMN_INTEGER ? bytes[test_below(4)] : column.bits / 8;
		column.side_offset = (uint8_t) test_below((uint64_t) (side_bytes - column.side_bytes + 1));
		column.bits = 8 * column.side_bytes;
		column.place = ENTRY_SPILL_BITS;
		column.null_place = 0;
	}
	return column;
}

/* Makes ranges between codes, which are sorted; returns how many. */
static int64_t
make_ranges(uint64_t *codes, int n, uint64_t *lo, uint64_t *hi)
{
	int64_t made = 0;

	for (int i = 1; i < n; i++)
	{
		for (int j = i; j > 0 && codes[j] < codes[j - 1]; j--)
		{
			uint64_t code = codes[j];

			codes[j] = codes[j - 1];
			codes[j - 1] = code;
		}
	}
	for (int i = 0; i + 1 < n; i += 2)
	{
		if (made > 0 && codes[i] <= hi[made - 1])
			continue;
		lo[made] = codes[i];
		hi[made++] = codes[i + 1];
	}
	return made;
}

#define TESTED 300
#define CODES 24

/* Tests of many entries at once, by all instruction sets, against those of one. */
static void
check_column_tests(int nwords, int side_bytes)
{
	GpudsEntry entries[TESTED];
	uint8_t side[TESTED * 16];
	uint64_t codes[CODES], lo[CODES], hi[CODES];
	bool passes[TESTED];
	int n;
	const GpudsCpuKernels *const *variants = gpuds_cpu_variants(&n);
	ColumnTest test = { .null = test_below(2) == 0, .lo = lo, .hi = hi };
	const AggColumn *column = &test.column;
	const int ncodes = (int) test_below(CODES + 1);
	const uint64_t near = test_below(2) == 0 ? 64 : UINT64_MAX;

	test.column = make_column(nwords, side_bytes);
	for (int i = 0; i < TESTED; i++)
		entries[i] = (GpudsEntry){ test_random(), nwords == 2 ? test_random() : 0, test_random() };
	for (size_t i = 0; i < sizeof(side); i++)
		side[i] = (uint8_t) test_random();
	for (int i = 0; i < ncodes; i++)
	{
		const uint64_t bits = agg_column_bits(&entries[i], nwords, test_below(8), column->bits);

		codes[i] = agg_column_code(column, test_below(4) == 0 ? bits : bits & (near - 1));
	}
	test.n = make_ranges(codes, ncodes, lo, hi);
	for (int v = 0; v < n; v++)
	{
		variants[v]->test(&test, entries, side_bytes > 0 ? side : NULL, side_bytes, TESTED, nwords, passes);
		for (int i = 0; i < TESTED; i++)
		{
			GpudsEntry e = entries[i];

			if (side_bytes > 0)
				e = agg_column_side_entry(column, &entries[i], nwords, side + i * side_bytes);
			CHECK(passes[i] == column_test_passes(&test, &e, side_bytes > 0 ? 1 : nwords));
		}
	}
}

/* Counts intervals in pieces, by a map and rows.  With points as check_scan. */
static void
check_count(const GpudsView *view, const Model *m, const GpudsInterval *intervals, int64_t n,
			const GpudsInterval *frame, const uint64_t *points)
{
	static uint32_t places[TEST_ROW_SLOTS];
	static uint32_t pages[TEST_ROW_SLOTS * (1 + TEST_ROW_WORDS)];
	unsigned char map[64];
	GpudsEntry others[CAP];
	CpuCount count = { .map = map, .map_bytes = test_below(sizeof(map) + 1), .others = others };
	GpudsScan scan = { points ? frame : intervals, n, 0, false, { 0, 0, 0 }, points };
	bool full = test_below(2) == 0;
	int64_t at = 0;
	int64_t other = 0;
	int64_t expected = 0;

	make_map(map, sizeof(map));
	count.rows = test_rows(places, pages, sizeof(places) + sizeof(pages), m);
	count.full = full;
	count.others_size = CPU_COUNT_ROOM + (int64_t) test_below(CAP - CPU_COUNT_ROOM + 1);
	for (int64_t i = 0; i < n; i++)
	{
		int64_t from;
		int64_t inside = test_inside(m, &intervals[i], &from);

		for (int64_t k = from; k < from + inside; k++)
		{
			PageRow row = full ? PAGE_ROW_SEEN : test_row(&m->e[k], map, count.map_bytes, &count.rows);

			expected += row == PAGE_ROW_SEEN;
			if (!test_goes_back(row))
				continue;
			while (at == other)
			{
				CHECK(scan.next < n);
				count.nothers = 0;
				test_count(test_kernels(), view, &scan, 1 + (int64_t) test_below(200), &count);
				CHECK(count.nothers <= count.others_size);
				other = count.nothers;
				at = 0;
			}
			CHECK(entry_equal(&others[at], &m->e[k]));
			at++;
		}
	}
	CHECK(at == other);
	while (scan.next < n)
	{
		count.nothers = 0;
		test_count(test_kernels(), view, &scan, 1 + (int64_t) test_below(200), &count);
		CHECK(count.nothers == 0);
	}
	CHECK(count.counted == expected && !scan.inside);
}

static int
compare_words(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *) a;
	uint64_t y = *(const uint64_t *) b;

	return (x > y) - (x < y);
}

/* Equality with many points, of entries that are there and others. */
static void
check_words(const GpudsView *view, const Model *m, int kind, uint64_t range)
{
	GpudsInterval frame = { { 0, 0, test_below(2) ? 0 : test_random() },
							{ test_below(2), view->nwords == 2 ? UINT64_MAX : 0, UINT64_MAX } };
	GpudsInterval intervals[150];
	uint64_t points[150];
	int64_t n = 1 + (int64_t) test_below(150);
	int64_t kept = 0;

	for (int64_t i = 0; i < n; i++)
		points[i] = test_bound(m, kind, view->nwords, range).w0 & ~frame.hi.w0;
	qsort(points, (size_t) n, sizeof(uint64_t), compare_words);
	for (int64_t i = 0; i < n; i++)
	{
		if (kept > 0 && points[i] == points[kept - 1])
			continue;
		points[kept] = points[i];
		intervals[kept] = frame;
		intervals[kept].lo.w0 |= points[i];
		intervals[kept].hi.w0 |= points[i];
		kept++;
	}
	check_scan(view, m, intervals, kept, &frame, points);
	check_count(view, m, intervals, kept, &frame, points);
}

/* Random intervals: their entries, where they begin, and how many they have, each and in all. */
static void
check_intervals(const GpudsView *view, const Model *m, int kind, uint64_t range)
{
	GpudsInterval intervals[300];
	int64_t n = test_intervals(m, intervals, 1 + (int64_t) test_below(150), kind, view->nwords, range);

	check_scan(view, m, intervals, n, NULL, NULL);
	for (int64_t i = 0; i < n; i++)
	{
		int64_t first;
		int64_t inside = test_inside(m, &intervals[i], &first);
		BtreePosition p;

		CHECK(btree_locate(view, &intervals[i], &p, view->nwords) == (uint64_t) inside);
		if (inside > 0)
			CHECK(p.rank + (uint64_t) p.place == (uint64_t) first);
	}
	check_count(view, m, intervals, n, NULL, NULL);
}

/* Everything that reads. */
static void
check_view(const GpudsView *view, const Model *m, int kind, uint64_t range)
{
	GpudsInterval all = { { 0, 0, 0 }, { UINT64_MAX, view->nwords == 2 ? UINT64_MAX : 0, UINT64_MAX } };

	CHECK(view->entries == (uint64_t) m->n);
	check_count(view, m, &all, 1, NULL, NULL);
	check_scan(view, m, &all, 1, NULL, NULL);
	check_positions(view, m, kind, range);
	check_intervals(view, m, kind, range);
	check_words(view, m, kind, range);
}

static void
check_tree(const Arena *arena, const CpuTree *tree, const Model *m, int kind, uint64_t range)
{
	GpudsView view;

	test_verify(arena, tree);
	CHECK(cpu_tree_entries(tree) == (uint64_t) m->n);
	CHECK(cpu_tree_view(arena, tree, &view));
	check_view(&view, m, kind, range);
}

/* A tree of nodes of other sizes than batches leave behind. */
static void
run_made(int kind, int nwords, int64_t size)
{
	uint64_t range = (uint64_t) size * 2 + 10;
	GpudsView view;
	Model m;

	model_fill(&m, size, kind, nwords, range);
	test_tree(&view, &m, nwords, test_below(2));
	check_view(&view, &m, kind, range);
	free((void *) view.base);
	free(m.e);
}

/*
 * A scan that goes on in newer versions: it returns what is there from the
 * beginning to the end and no entry twice, whatever comes and goes meanwhile.
 */
static void
check_resume(int kind, int nwords, int64_t size, bool forward)
{
	Arena *arena = test_arena((size_t) (64 + size / 20) * ARENA_CHUNK_BYTES);
	uint64_t range = (uint64_t) size * 2 + 10;
	GpudsInterval all[2];
	GpudsScan scan = { all, 2, forward ? 0 : 2, false, { 0, 0, 0 }, NULL };
	GpudsEntry out[CAP];
	GpudsOp ops[200];
	GpudsEntry last = { 0, 0, 0 };
	CpuTree tree;
	Model m, kept;
	bool first = true;

	memset(&tree, 0, sizeof(tree));
	cpu_btree_init(&tree, nwords);
	model_fill(&m, size, kind, nwords, range);
	CHECK(test_build(arena, &tree, &m, 90) == KERNEL_OK);
	all[0].lo.w0 = all[0].lo.w1 = all[0].lo.t = 0;
	all[0].hi = m.e[m.n / 2];
	all[1].lo = all[0].hi;
	all[1].lo.t++;
	all[1].hi.w0 = all[1].hi.t = UINT64_MAX;
	all[1].hi.w1 = nwords == 2 ? UINT64_MAX : 0;
	/* kept: entries that no batch deletes, and that are there from the start */
	model_init(&kept, m.n);
	memcpy(kept.e, m.e, (size_t) m.n * sizeof(GpudsEntry));
	kept.n = m.n;
	for (int64_t seen = 0;;)
	{
		int64_t cap = 1 + (int64_t) test_below(CAP);
		GpudsView view;
		int64_t got, n, inserted, deleted, k = 0;

		CHECK(cpu_tree_view(arena, &tree, &view));
		got = test_scan(test_kernels(), &view, &scan, forward, out, cap);
		for (int64_t i = 0; i < got; i++)
		{
			CHECK(first || (forward ? entry_less(&last, &out[i]) : entry_less(&out[i], &last)));
			last = out[i];
			first = false;
			CHECK(model_rank(&m, &out[i]) < m.n && entry_equal(&m.e[model_rank(&m, &out[i])], &out[i]));
			if (seen < kept.n)
			{
				const GpudsEntry *next = &kept.e[forward ? seen : kept.n - 1 - seen];

				CHECK(forward ? !entry_less(next, &out[i]) : !entry_less(&out[i], next));
				seen += entry_equal(next, &out[i]);
			}
		}
		if (got < cap)
		{
			CHECK(seen == kept.n);
			break;
		}
		n = test_ops(ops, 200, kind, nwords, range, 50);
		for (int64_t i = 0; i < n; i++)
		{
			int64_t at = model_rank(&kept, &ops[i].e);

			if ((ops[i].order & 1) && at < kept.n && entry_equal(&kept.e[at], &ops[i].e))
			{
				/* half of what is deleted was promised: forget it, unless it was seen */
				if (test_below(2) || (forward ? at < seen : at >= kept.n - seen))
					continue;
				memmove(&kept.e[at], &kept.e[at + 1], (size_t) (kept.n - at - 1) * sizeof(GpudsEntry));
				kept.n--;
			}
			ops[k++] = ops[i];
		}
		CHECK(cpu_btree_apply(arena, &tree, ops, k, &inserted, &deleted) == KERNEL_OK);
		model_apply(&m, ops, k, &inserted, &deleted);
		cpu_tree_reclaim(arena, &tree, UINT64_MAX);
	}
	free(m.e);
	free(kept.e);
	free(arena);
}

static void
run(int kind, int nwords, int64_t size, int batches)
{
	Arena *arena = test_arena((size_t) (64 + size / 50) * ARENA_CHUNK_BYTES);
	uint64_t range = (uint64_t) size * 2 + 10;
	GpudsOp *ops = (GpudsOp *) malloc((size_t) (size + 2000) * 2 * sizeof(GpudsOp));
	CpuTree tree;
	Model m;

	memset(&tree, 0, sizeof(tree));
	cpu_btree_init(&tree, nwords);
	CHECK(tree.version == 1);
	model_fill(&m, size, kind, nwords, range);
	CHECK(test_build(arena, &tree, &m, 50 + (int) test_below(51)) == KERNEL_OK);
	check_tree(arena, &tree, &m, kind, range);
	for (int b = 0; b < batches; b++)
	{
		static const int percents[] = { 0, 10, 50, 90, 100 };
		int64_t limits[] = { 1, 3, 20, 200, size + 1000 };
		int64_t n = 1 + (int64_t) test_below((uint64_t) limits[test_below(5)]);
		int64_t inserted, deleted, model_inserted, model_deleted;
		uint64_t version = tree.version;

		if (test_below(10) == 0)
		{
			/* a dense run of what is there: delete it all */
			int64_t from = m.n > 0 ? (int64_t) test_below((uint64_t) m.n) : 0;

			n = n < m.n - from ? n : m.n - from;
			for (int64_t i = 0; i < n; i++)
			{
				ops[i].e = m.e[from + i];
				ops[i].order = GPUDS_OP_DELETE;
			}
		}
		else
			n = test_ops(ops, n, kind, nwords, range, percents[test_below(5)]);
		CHECK(cpu_btree_apply(arena, &tree, ops, n, &inserted, &deleted) == KERNEL_OK);
		model_apply(&m, ops, n, &model_inserted, &model_deleted);
		CHECK(inserted == model_inserted && deleted == model_deleted);
		CHECK(tree.version == version + (inserted + deleted > 0));
		check_tree(arena, &tree, &m, kind, range);
		if (test_below(2))
		{
			cpu_tree_reclaim(arena, &tree, UINT64_MAX);
			CHECK(tree.retired.head == 0);
			test_verify(arena, &tree);
		}
	}
	for (int64_t i = 0; i < m.n; i++)
	{
		ops[i].e = m.e[i];
		ops[i].order = GPUDS_OP_DELETE;
	}
	if (m.n > 0)
	{
		int64_t inserted, deleted;

		CHECK(cpu_btree_apply(arena, &tree, ops, m.n, &inserted, &deleted) == KERNEL_OK);
		CHECK(deleted == m.n && head_height(tree.head) == 0);
		m.n = 0;
		check_tree(arena, &tree, &m, kind, range);
	}
	{
		uint64_t version = tree.version;
		GpudsView view;

		CHECK(cpu_tree_withdraw(&tree) == version + 1);
		CHECK(!cpu_tree_view(arena, &tree, &view));
		cpu_tree_release(arena, &tree);
		CHECK(arena_used(arena) == 0);
		cpu_btree_init(&tree, 3 - nwords);
		CHECK(tree.version == version + 2);
		CHECK(cpu_tree_view(arena, &tree, &view) && view.nwords == 3 - nwords);
	}
	free(m.e);
	free(ops);
	free(arena);
}

int
main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1;

	test_seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	check_page_rows();
	check_float_tests();
	for (int i = 0; i < 1000; i++)
	{
		check_column_test(1 + i % 2);
		check_column_tests(1 + i % 2, 0);
		check_column_tests(1 + i % 2, 8 + i / 2 % 2 * 8);
	}
	for (int r = 0; r < rounds; r++)
	{
		for (int kind = 0; kind < KEYS_KINDS; kind++)
		{
			for (int nwords = 1; nwords <= 2; nwords++)
			{
				for (int64_t size = 0; size < 40; size++)
				{
					run_made(kind, nwords, size);
					run(kind, nwords, size, 10);
				}
				for (int i = 0; i < 10; i++)
					run_made(kind, nwords, 40 + (int64_t) test_below(1000));
				run_made(kind, nwords, 20000);
				run(kind, nwords, 100 + (int64_t) test_below(200), 60);
				run(kind, nwords, 3000, 60);
				if (r == 0)
					run(kind, nwords, 60000, 6);
				check_resume(kind, nwords, 2000, true);
				check_resume(kind, nwords, 2000, false);
			}
		}
	}
	printf("model: ok, by");
	{
		int n;
		const GpudsCpuKernels *const *variants = gpuds_cpu_variants(&n);

		CHECK(gpuds_cpu_kernels() == variants[0]);
		for (int i = 0; i < n; i++)
			printf(" %s", variants[i]->name);
		printf("\n");
	}
	return 0;
}
