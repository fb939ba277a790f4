/*-------------------------------------------------------------------------
 *
 * gpu_kept_graph_entries.h
 *	  Entries of edges, which of their rows a snapshot sees, and the edges that a plain scan finds.
 *
 * A file that includes this has included common.h and kernels/engine/engine.cu.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TEST_GPU_KEPT_GRAPH_ENTRIES_H
#define TEST_GPU_KEPT_GRAPH_ENTRIES_H

#include <set>
#include <tuple>

#define PAGES 40
#define PAGE_ROWS 12

struct Less
{
	bool operator()(const GpudsEntry &a, const GpudsEntry &b) const
	{
		return entry_less(&a, &b);
	}
};

typedef std::set<GpudsEntry, Less> Entries;

/* An edge; where weights do not matter, its weight is 0. */
struct Edge
{
	uint64_t first;
	uint64_t second;
	uint64_t weight = 0;

	bool operator<(const Edge &other) const
	{
		return std::tie(first, second, weight) < std::tie(other.first, other.second, other.weight);
	}
};

typedef std::set<Edge> Edges;

static Entries entries; /* of the tree */
static int nw;
static AggColumn column[3]; /* source, target, weight */
static uint64_t odd;        /* one of so many entries has a weight that no path can have; 0: none has */
static int64_t given = -1;  /* the weight of an entry that is made; -1: any */
static PageRow row[PAGES][PAGE_ROWS];
static bool visible[PAGES];
static bool known[PAGES];

/* Of weights: bits, and the code of 0. */
#define WEIGHT_BITS 5
#define WEIGHT_ZERO 16

/* Columns of a layout: two of 16 bits and others behind them, two of 32 bits, or two of 64; and a weight. */
static void
set_layout(int layout)
{
	const int bits[] = { 16, 32, 64 };

	nw = layout == 2 ? 2 : 1;
	for (int k = 0; k < 3; k++)
	{
		const int top = 64 * nw + ENTRY_SPILL_BITS - k * (bits[layout] + 1);
		const int its = k == 2 ? WEIGHT_BITS : bits[layout];

		column[k] = {};
		column[k].kind = AGG_COLUMN_INTEGER;
		column[k].bits = (uint8_t) its;
		column[k].null_place = (uint8_t) (top - 1);
		column[k].place = (uint8_t) (top - 1 - its);
		column[k].null_bit = (uint8_t) test_below(2);
		column[k].flip = test_below(2) ? UINT64_MAX >> (64 - its) : 0;
	}
}

static void
put_bit(GpudsEntry *e, int place, uint64_t bit)
{
	const int at = place - ENTRY_SPILL_BITS;

	if (at < 0)
		e->t |= bit << place << ENTRY_SPILL_SHIFT;
	else if (nw == 1 || at >= 64)
		e->w0 |= bit << at % 64;
	else
		e->w1 |= bit << at;
}

/* A weight that few others have, or, seldom, none. */
static void
put_weight(GpudsEntry *e)
{
	const bool is_odd = odd > 0 && test_below(odd) == 0;
	const bool null = is_odd && test_below(2);
	const uint64_t weight = given >= 0 ? (uint64_t) given : test_below(3) * test_below(4);
	const uint64_t code = is_odd ? test_below(WEIGHT_ZERO) : WEIGHT_ZERO + weight;
	const uint64_t bits = code ^ column[2].flip;

	for (int i = 0; i < WEIGHT_BITS && !null; i++)
		put_bit(e, column[2].place + i, bits >> i & 1);
	put_bit(e, column[2].null_place, null == (column[2].null_bit == 1));
}

/* An entry of an edge; null: one of the vertices is. */
static GpudsEntry
make_entry(uint64_t source, uint64_t target, int null, uint64_t tid)
{
	GpudsEntry e = { 0, 0, tid };

	for (int k = 0; k < 2; k++)
	{
		const uint64_t bits = (k == 0 ? source : target) ^ column[k].flip;

		for (int i = 0; i < column[k].bits && null != k; i++)
			put_bit(&e, column[k].place + i, bits >> i & 1);
		put_bit(&e, column[k].null_place, (null == k) == (column[k].null_bit == 1));
	}
	if (column[1].bits == 16)
		put_bit(&e, 3 + (int) test_below(20), test_below(2));
	put_weight(&e);
	return e;
}

static uint64_t
random_vertex(void)
{
	const uint64_t number = test_below(6) * test_below(20);

	return column[0].bits == 64 && test_below(2) ? UINT64_MAX - number : number;
}

static GpudsEntry
random_entry(void)
{
	const uint64_t tid = test_below(PAGES) << 16 | (1 + test_below(PAGE_ROWS + 1));

	return make_entry(random_vertex(), random_vertex(), test_below(20) == 0 ? (int) test_below(2) : 2, tid);
}

static PageRow
row_of(const GpudsEntry &e)
{
	const uint64_t tid = e.t & ENTRY_TID_MASK;
	const uint64_t at = (tid & 0xFFFF) - 1;

	if (visible[tid >> 16])
		return PAGE_ROW_SEEN;
	return known[tid >> 16] && at < PAGE_ROWS ? row[tid >> 16][at] : PAGE_ROW_UNKNOWN;
}

/* Another snapshot; little: one that differs little. */
static void
change_rows(uint64_t part)
{
	for (int p = 0; p < PAGES; p++)
	{
		if (test_below(part) == 0)
			visible[p] = test_below(2);
		if (test_below(part) == 0)
			known[p] = test_below(8) > 0;
		for (int i = 0; i < PAGE_ROWS; i++)
		{
			if (test_below(part) == 0)
				row[p][i] = test_below(6) > 0 ? PAGE_ROW_SEEN : (PageRow) test_below(4);
		}
	}
}

/* Rows that everybody sees, as VACUUM leaves them */
static void
see_all(void)
{
	for (int p = 0; p < PAGES; p++)
		visible[p] = true;
}

static bool
edge_of(const GpudsEntry &e, bool weighted, Edge *edge)
{
	const uint64_t code = agg_column_code(&column[2],
										  agg_column_bits(&e, nw, column[2].place, column[2].bits));
	const bool is_odd = agg_column_is_null(&column[2], &e, nw) || code < WEIGHT_ZERO;

	edge->weight = !weighted ? 0 : is_odd ? GPU_NO_WEIGHT : code - WEIGHT_ZERO;
	edge->first = agg_column_code(&column[0], agg_column_bits(&e, nw, column[0].place, column[0].bits));
	edge->second = agg_column_code(&column[1], agg_column_bits(&e, nw, column[1].place, column[1].bits));
	return !agg_column_is_null(&column[0], &e, nw) && !agg_column_is_null(&column[1], &e, nw);
}

/* The edges of entries without some whose rows are seen, and the entries that must come back. */
static void
plain_scan(const Entries &of, const Entries &without, bool weighted, Edges *edges, Entries *others)
{
	Edge edge;

	for (const GpudsEntry &e : of)
	{
		if (without.count(e))
			continue;
		if (row_of(e) == PAGE_ROW_SEEN && edge_of(e, weighted, &edge))
			edges->insert(edge);
		if (page_row_goes_back(row_of(e)))
			others->insert(e);
	}
}

#endif /* TEST_GPU_KEPT_GRAPH_ENTRIES_H */
