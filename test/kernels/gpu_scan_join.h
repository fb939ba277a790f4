/*-------------------------------------------------------------------------
 *
 * gpu_scan_join.h
 *	  Joins of two trees against a model: the part of gpu_scan.cu for GPU_JOIN.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TEST_GPU_SCAN_JOIN_H
#define TEST_GPU_SCAN_JOIN_H

#include <map>
#include <set>

/* What a join is with, and what is told of it. */
struct TestJoin
{
	const Model *m;
	Visible visible;
	int nwords;
	std::vector<GpudsEntry> touched;
	GpuJoin *join; /* in a slot */
};

/* A key of the driving side that has a counterpart: its rows, and how many of them were handed back. */
struct TestJoinKey
{
	uint64_t rows;
	uint64_t back;
};

typedef std::array<uint64_t, 3> TestJoinPlace; /* a key's words */
typedef std::map<TestJoinPlace, TestJoinKey> TestJoinKeys;

/* The structure that a view is of, for its probe. */
static const GpuJoinSide *
side_of(const GpudsView *view)
{
	static ArrayOnGpu array(GPUDS_STRUCTURE_ARRAY);
	static SkiplistOnGpu skiplist(GPUDS_STRUCTURE_SKIPLIST);
	static AvlOnGpu avl(GPUDS_STRUCTURE_AVL);
	static BtreeOnGpu btree(GPUDS_STRUCTURE_BTREE);

	switch (view->structure)
	{
		case GPUDS_STRUCTURE_ARRAY:
			return &array;
		case GPUDS_STRUCTURE_SKIPLIST:
			return &skiplist;
		case GPUDS_STRUCTURE_AVL:
			return &avl;
		default:
			return &btree;
	}
}

/* Sets or reads a bit of an entry of so many key words, whose places are as of agg_column_bits. */
static uint64_t *
word_of(GpudsEntry *e, int nwords, int place, int *bit)
{
	*bit = place < ENTRY_SPILL_BITS ? ENTRY_SPILL_SHIFT + place : (place - ENTRY_SPILL_BITS) % 64;
	if (place < ENTRY_SPILL_BITS)
		return &e->t;
	return nwords == 2 && place < ENTRY_SPILL_BITS + 64 ? &e->w1 : &e->w0;
}

static void
set_bit(GpudsEntry *e, int nwords, int place, uint64_t value)
{
	int bit;
	uint64_t *word = word_of(e, nwords, place, &bit);

	*word |= value << bit;
}

/* A random join of entries of so many key words with others. */
static EntryJoin
random_join(int nwords, int other_nwords)
{
	const int all = 64 * nwords + ENTRY_SPILL_BITS;
	int to = 64 * other_nwords + ENTRY_SPILL_BITS;
	EntryJoin join = {};

	join.kind = (uint32_t) test_below(ENTRY_JOIN_ANTI + 1);
	join.nmoves = 1 + (uint32_t) test_below(2);
	for (uint32_t i = 0; i < join.nmoves; i++)
	{
		EntryJoinMove *move = &join.moves[i];

		move->bits = i == 0 && test_below(3) ? 64 : 1 + (int) test_below(60);
		if (move->bits > to)
			move->bits = to < 64 ? to : 64;
		move->from = i == 0 && test_below(4) ? all - move->bits
											 : (int) test_below((uint64_t) (all - move->bits + 1));
		move->to = to -= move->bits;
		for (int k = 0; k < move->bits; k++)
			set_bit(&join.bits, nwords, move->from + k, 1);
	}
	join.bias = test_below(2) ? 0 : test_below(3);
	join.most = join.moves[0].bits < 64 ? (UINT64_C(1) << join.moves[0].bits) - 1 : UINT64_MAX;
	if (test_below(4) == 0)
	{
		const int place = (int) test_below((uint64_t) all);

		set_bit(&join.null_bits, nwords, place, 1);
		set_bit(&join.not_null, nwords, place, test_below(4) > 0 ? 0 : 1);
		set_bit(&join.bits, nwords, place, 1);
	}
	while (--to >= 0)
		set_bit(&join.rest, other_nwords, to, 1);
	join.rest.t |= ENTRY_TID_MASK;
	return join;
}

/* The model's key of the other side, bit by bit; false: there is none. */
static bool
model_join_key(const EntryJoin *join, const GpudsEntry *e, int nwords, int other_nwords, GpudsEntry *key)
{
	*key = {};
	if ((e->w0 & join->null_bits.w0) != join->not_null.w0 ||
		(e->w1 & join->null_bits.w1) != join->not_null.w1 || (e->t & join->null_bits.t) != join->not_null.t)
		return false;
	for (uint32_t i = 0; i < join->nmoves; i++)
	{
		const EntryJoinMove *move = &join->moves[i];
		uint64_t value = model_bits(e, nwords, move->from, move->bits);

		if (i == 0)
			value += join->bias;
		if (i == 0 && value > join->most)
			return false;
		for (int k = 0; k < move->bits; k++)
			set_bit(key, other_nwords, move->to + k, value >> k & 1);
	}
	return true;
}

/* How many entries of a key there are, and how many of them are of rows that are seen, or not known. */
static int64_t
model_join_count(const TestJoin *with, const GpudsEntry *key, uint64_t *seen, uint64_t *unknown)
{
	const GpudsEntry *rest = &with->join->join.rest;
	const GpudsInterval interval = { *key, { key->w0 | rest->w0, key->w1 | rest->w1, key->t | rest->t } };
	int64_t first;
	const int64_t n = test_inside(with->m, &interval, &first);

	*seen = *unknown = 0;
	for (int64_t i = first; i < first + n; i++)
	{
		const PageRow row = test_row(&with->m->e[i], with->visible.map, with->visible.map_bytes,
									 &with->visible.rows);

		*seen += row == PAGE_ROW_SEEN || with->join->full;
		*unknown += row == PAGE_ROW_UNKNOWN && !with->join->full;
	}
	return n;
}

/* Sets what is told of the other side, in slots that the request does not use. */
static void
tell_other(GpuRequest *r, const GpudsView *view, TestJoin *with, int nwords)
{
	unsigned char *map = slots[2].output;
	uint32_t *places = (uint32_t *) slots[3].input;
	uint32_t *pages = (uint32_t *) slots[3].output;
	GpuJoin *join = (GpuJoin *) slots[2].input;

	memset((void *) join, 0, sizeof(*join));
	with->join = join;
	with->nwords = view->nwords;
	join->join = random_join(nwords, view->nwords);
	join->full = test_below(4) == 0;
	join->map_bytes = test_map(map, test_below(2) ? PIECE / 8 : 64);
	with->visible.map = map;
	with->visible.map_bytes = join->map_bytes;
	with->visible.rows = test_rows(places, pages, PIECE / 4, with->m);
	join->map = (uint64_t) (map - (unsigned char *) slots);
	join->row_places = (uint64_t) ((unsigned char *) places - (unsigned char *) slots);
	join->row_pages = (uint64_t) ((unsigned char *) pages - (unsigned char *) slots);
	join->row_slots = with->visible.rows.slots;
	join->row_words = with->visible.rows.words;
	join->row_npages = with->visible.rows.npages;
	join->room = test_below(4) ? PIECE / 2 / (int64_t) sizeof(EntryJoinKey) : 1 + (int64_t) test_below(30);
	r->join = (uint64_t) ((unsigned char *) join - (unsigned char *) slots);
}

/* Some keys are touched, of which the driving side has some. */
static void
touch_keys(TestJoin *with, const Model *m, int nwords)
{
	GpudsEntry *touched = (GpudsEntry *) slots[4].input;
	std::set<TestJoinPlace> keys;

	for (uint64_t n = m->n > 0 && test_below(2) ? test_below(100) : 0; n > 0; n--)
	{
		GpudsEntry key;

		if (model_join_key(&with->join->join, &m->e[test_below((uint64_t) m->n)], nwords, with->nwords, &key))
			keys.insert({ key.w0, key.w1, key.t });
	}
	for (const TestJoinPlace &key : keys)
		touched[with->touched.size()] = { key[0], key[1], key[2] },
		with->touched.push_back({ key[0], key[1], key[2] });
	with->join->touched = (uint64_t) ((unsigned char *) touched - (unsigned char *) slots);
	with->join->ntouched = (int64_t) with->touched.size();
}

static bool
is_touched(const TestJoin *with, const GpudsEntry *key)
{
	for (const GpudsEntry &touched : with->touched)
	{
		if (entry_equal(&touched, key))
			return true;
	}
	return false;
}

/* Rows of the result that n rows have. */
static uint64_t
model_join_rows(uint32_t kind, uint64_t n, uint64_t m)
{
	if (kind == ENTRY_JOIN_INNER)
		return n * m;
	if (kind == ENTRY_JOIN_LEFT)
		return n * (m > 1 ? m : 1);
	return (m > 0) == (kind == ENTRY_JOIN_SEMI) ? n : 0;
}

/* What is joined of the model; returns how many entries are handed back.  *alone: rows of no key. */
static int64_t
model_join(const GpuRequest *r, const Progress *p, const Model *m, int nwords, const Visible *visible,
		   const TestJoin *with, TestJoinKeys *keys, uint64_t *alone)
{
	int64_t others = 0;

	*alone = 0;
	for (int64_t i = 0; i < p->n; i++)
	{
		int64_t first;
		int64_t inside = test_inside(m, &p->intervals[i], &first);

		for (int64_t k = first; k < first + inside; k++)
		{
			PageRow row = test_row(&m->e[k], visible->map, visible->map_bytes, &visible->rows);
			GpudsEntry key;

			if (r->inside && i == 0 && !entry_less(&r->at, &m->e[k]))
				continue;
			others += test_goes_back(row);
			if (row != PAGE_ROW_SEEN)
				continue;
			if (model_join_key(&with->join->join, &m->e[k], nwords, with->nwords, &key))
				(*keys)[{ key.w0, key.w1, key.t }].rows++;
			else
				++*alone;
		}
	}
	return others;
}

/* Is every key handed back that must be, and is the sum of all others right? */
static void
check_joined(const GpuRequest *r, const TestJoin *with, const TestJoinKeys &keys, uint64_t alone)
{
	const uint32_t kind = with->join->join.kind;
	uint64_t joined = model_join_rows(kind, alone, 0);

	for (const auto &of : keys)
	{
		const GpudsEntry key = { of.first[0], of.first[1], of.first[2] };
		const bool tests = kind == ENTRY_JOIN_SEMI || kind == ENTRY_JOIN_ANTI;
		uint64_t seen, unknown;
		const int64_t n = model_join_count(with, &key, &seen, &unknown);
		const bool unsure = is_touched(with, &key) || (unknown > 0 && !(tests && seen > 0));

		CHECK(of.second.back == 0 || of.second.back == of.second.rows);
		CHECK(of.second.back == 0 ? !unsure : unsure || n > GPU_SMALL_ENTRIES);
		if (of.second.back == 0)
			joined += model_join_rows(kind, of.second.rows, seen);
	}
	CHECK(joined == r->joined);
}

static void
run_join(const GpudsView *view, const Model *m, const GpudsView *other, const Model *other_model, int kind,
		 uint64_t range)
{
	GpuRequest *r = &slots[0].request;
	const EntryJoinKey *back = (const EntryJoinKey *) slots[0].output;
	TestJoin with = { other_model, {}, 0, {}, NULL };
	TestJoinKeys keys;
	uint64_t alone;
	Visible visible;
	Progress p;
	int64_t others;

	start(&slots[0], &p, m, kind, view->nwords, range, test_below(2) ? 20 : 3);
	if (p.n > 0 && !r->points && test_below(2))
	{
		p.n = r->n = 1;
		p.intervals[0] = { { 0, 0, 0 }, { UINT64_MAX, UINT64_MAX, UINT64_MAX } };
		memcpy(slots[0].input, p.intervals, sizeof(GpudsInterval));
	}
	r->form = GPU_JOIN;
	r->forward = true;
	r->next = 0;
	r->groups_bytes = PIECE / 2;
	visible = random_visible(r, m, test_below(2) ? PIECE / 8 : 64);
	r->groups_bytes = 0;
	tell_other(r, other, &with, view->nwords);
	touch_keys(&with, m, view->nwords);
	r->cap = 1 + (int64_t) test_below(PIECE / 2 / sizeof(GpudsEntry));
	CHECK(gpu_join_fits(&large, (unsigned char *) slots, REQUESTS * sizeof(Slot), r));
	others = model_join(r, &p, m, view->nwords, &visible, &with, &keys, &alone);
	large.joined = side_of(other);
	large.joined_view = *other;
	r->status = scan_large(view, r);
	CHECK(r->status == GPU_OK && r->found == others);
	if (others <= r->cap && r->taken <= with.join->room)
	{
		for (int64_t i = 0; i < r->taken; i++)
		{
			GpudsEntry key;

			CHECK(model_join_key(&with.join->join, &back[i].first, view->nwords, other->nwords, &key));
			keys.at({ key.w0, key.w1, key.t }).back += back[i].rows;
		}
		check_joined(r, &with, keys, alone);
	}
	free(p.intervals);
}

#endif /* TEST_GPU_SCAN_JOIN_H */
