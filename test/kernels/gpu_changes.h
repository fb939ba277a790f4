/*-------------------------------------------------------------------------
 *
 * gpu_changes.h
 *	  An ordered structure in device memory under changes: batches of all kinds of keys, in any order and all
 *	  in one place, versions that are still read, trees that grow from nothing and shrink to nothing, memory
 *	  running out anywhere; and readers beside an applier, who find all that stays, in order, and nothing that
 *	  was never there.
 *
 * A file that includes this has included kernels/structures.h, and defined:
 *
 *	  Tested			the structure's class
 *	  TESTED			its number
 *	  TESTED_SMALL		operations of a small batch, at most
 *	  TESTED_LISTS		lists of the process that building a tree of two chunks anew takes
 *
 *-------------------------------------------------------------------------
 */
#ifndef TEST_GPU_CHANGES_H
#define TEST_GPU_CHANGES_H

#include <atomic>
#include <thread>

#include "common.h"
#include "kernels/core/pins.h"
#include "gpu_versions.h"

#define MOST 6000         /* entries of a tree, operations of a batch */
#define LARGE (20 * MOST) /* entries and operations that there is room for */
#define BATCHES 24
#define INTERVALS 30 /* that a check asks for */
#define HELD 3       /* versions that are read beside the newest */

/* The same under a sanitizer. */
#define SMALL_MOST 500
#define SMALL_BATCHES 1
#define SMALL_INTERVALS 6

static int64_t most = MOST;
static int batches = BATCHES;
static int intervals = INTERVALS;

/* Is what readers of a view see the model? */
static void
check_view(const Tested *tree, const GpudsView *view, const Model *m, int kind)
{
	const GpudsInterval all = all_entries(view->nwords);

	CHECK(view->entries == (uint64_t) m->n);
	check_interval(tree, view, m, &all, true, 2 * most);
	check_interval(tree, view, m, &all, false, 1 + m->n / 2);
	check_interval(tree, view, m, &all, test_below(2) == 0, 300 + (int64_t) test_below((uint64_t) most));
	for (int i = 0; i < intervals; i++)
	{
		GpudsInterval some;
		GpudsEntry other;

		some.lo = m->n > 0 && test_below(2) ? m->e[test_below((uint64_t) m->n)]
											: test_entry(kind, view->nwords, 2 * most);
		some.hi = some.lo;
		if (i % 3 == 0)
		{
			other = test_entry(kind, view->nwords, 2 * most);
			if (entry_less(&other, &some.lo))
				some.lo = other;
			else
				some.hi = other;
		}
		some.lo.t = test_below(2) ? 0 : some.lo.t;
		some.hi.t = test_below(2) ? UINT64_MAX : some.hi.t;
		check_interval(tree, view, m, &some, i % 2 == 0, i % 5 == 0 ? 3 : most);
	}
}

static void
check_tree(Tested *tree, const Model *m, int kind)
{
	GpudsView view;

	verify(tree);
	CHECK(tree->view(&pool, &view));
	check_view(tree, &view, m, kind);
}

/* A random batch; sometimes ascending, descending, or between two neighbours. */
static int64_t
make_batch(GpudsOp *ops, const Model *m, int kind, int nwords)
{
	int64_t n = 1 + (int64_t) test_below(test_below(2) ? 40 : (uint64_t) most);
	uint64_t deletes = test_below(101);
	uint64_t shape = test_below(5);

	for (int64_t i = 0; i < n; i++)
	{
		bool there = m->n > 0 && test_below(2) == 0;

		ops[i].e = there ? m->e[test_below((uint64_t) m->n)] : test_entry(kind, nwords, 2 * most);
		ops[i].order = (uint64_t) i << 1 | (test_below(100) < deletes);
		if (shape == 0 && m->n > 0 && m->e[m->n / 2].t < UINT64_MAX / 2)
		{
			/* many in one place, and some on one entry */
			ops[i].e = m->e[m->n / 2];
			ops[i].e.t += test_below((uint64_t) n);
		}
	}
	if (shape == 1 || shape == 2)
	{
		qsort(ops, (size_t) n, sizeof(GpudsOp), test_compare);
		for (int64_t i = 0; i < n; i++)
			ops[i].order = (uint64_t) i << 1 | (ops[i].order & 1);
	}
	for (int64_t i = 0; i < n / 2 && shape == 2; i++)
	{
		GpudsOp op = ops[i];

		ops[i] = ops[n - 1 - i];
		ops[n - 1 - i] = op;
	}
	return n;
}

/* Applies to both. */
static void
change_both(Tested *tree, Model *m, GpudsOp *ops, int64_t n)
{
	GpuStatus status = apply(tree, m, ops, n);

	if (status != GPU_OK)
		fprintf(stderr, "apply: %d %s\n", (int) status, change.stream.why);
	CHECK(status == GPU_OK);
}

static void
test_random_changes(int kind, int nwords)
{
	static GpudsOp ops[MOST];
	Tested tree(TESTED);
	Held held[HELD] = {};
	Model m;

	model_fill(&m, test_below(4) == 0 ? 0 : (int64_t) test_below((uint64_t) most), kind, nwords, 2 * most);
	CHECK(load(&tree, &m, nwords, 50 + (uint32_t) test_below(51)) == GPU_OK);
	check_tree(&tree, &m, kind);
	for (int i = 0; i < batches; i++)
	{
		Held *h = &held[test_below(HELD)];

		if (h->version != 0)
		{
			check_view(&tree, &h->view, &h->model, kind);
			free(h->model.e);
			h->version = 0;
		}
		if (i % 8 < 4)
			hold(h, &tree, &m);
		if (test_below(3) != 0)
			tree.reclaim(&change, oldest_of(held, HELD));
		change_both(&tree, &m, ops, make_batch(ops, &m, kind, nwords));
		check_tree(&tree, &m, kind);
	}
	for (int k = 0; k < HELD; k++)
	{
		if (held[k].version != 0)
			free(held[k].model.e);
	}
	free(m.e);
	drop(&tree);
}

/* A tree grows from nothing and shrinks to nothing, by batches of a size, whose keys are in an order. */
static void
test_to_nothing(int nwords, int64_t size, int order)
{
	static GpudsOp ops[MOST];
	Tested tree(TESTED);
	Model m;

	model_init(&m, 0);
	CHECK(load(&tree, &m, nwords, 90) == GPU_OK);
	for (uint64_t deletes = 0; deletes < 2; deletes++)
	{
		for (int64_t first = 0; first < most; first += size)
		{
			int64_t n = size < most - first ? size : most - first;

			for (int64_t i = 0; i < n; i++)
			{
				uint64_t k = (uint64_t) (order == 1 ? most - 1 - first - i : first + i);

				if (order == 2)
					k = k * 2473 % (uint64_t) most;
				ops[i].e = { k * 3, nwords == 2 ? k << 50 : 0, k << 16 | 1 };
				ops[i].order = (uint64_t) i << 1 | deletes;
			}
			tree.reclaim(&change, UINT64_MAX);
			change_both(&tree, &m, ops, n);
			if (first % 7 == 0)
				verify(&tree);
		}
		check_tree(&tree, &m, KEYS_DENSE);
	}
	CHECK(m.n == 0);
	free(m.e);
	drop(&tree);
}

static GpudsEntry
compact_entry(int64_t i, int nwords)
{
	return { (uint64_t) i * 3, nwords == 2 ? (uint64_t) i << 40 : 0, (uint64_t) i << 16 | 1 };
}

/* Loads so many entries, each next to the one before it. */
static void
load_neighbours(Tested *tree, Model *m, int64_t n, int nwords)
{
	model_init(m, n);
	for (m->n = 0; m->n < n; m->n++)
		m->e[m->n] = compact_entry(m->n, nwords);
	CHECK(load(tree, m, nwords, 90) == GPU_OK);
}

/* Small batches that are spread over a tree, for which clusters of one to eight blocks are launched. */
static void
test_teams(int nwords)
{
	static const int64_t sizes[] = { 1, 32, 33, 128, 129, 385, 640, 897, 1023, TESTED_SMALL };
	static GpudsOp ops[TESTED_SMALL];
	const int64_t entries = 20000;
	Tested tree(TESTED);
	int64_t turn = 0;
	Model m;

	load_neighbours(&tree, &m, entries, nwords);
	for (int kind = 0; kind < 3; kind++)
	{
		for (int64_t n : sizes)
		{
			int64_t first = turn++ * 37;

			/* inserts, deletes, and both */
			for (int64_t i = 0; i < n; i++)
			{
				bool deletes = kind == 1 || (kind == 2 && i % 2 == 1);

				ops[i].e = compact_entry((first + i * (entries / n)) % entries, nwords);
				ops[i].e.w0 += !deletes;
				ops[i].order = (uint64_t) i << 1 | deletes;
			}
			tree.reclaim(&change, UINT64_MAX);
			change_both(&tree, &m, ops, n);
			verify(&tree);
		}
	}
	CHECK((int64_t) tree.tree.entries.load() == m.n);
	free(m.e);
	drop(&tree);
}

/* So many allocations of the building fail in turn: nothing has changed then. */
static void
compact_without_memory(Tested *tree, std::atomic<int64_t> *fail, int64_t times)
{
	const uint64_t version = *tree->version();
	const uint64_t used = gpu_pool_used(&pool);

	for (int64_t after = 0; after < times && tree->tree.entries > 0; after++)
	{
		*fail = after;
		CHECK(!tree->compact(&change));
		CHECK(*fail == -1 && *tree->version() == version && gpu_pool_used(&pool) == used);
		CHECK(!tree->compact(&change));
		tree->tree.compact_rest = 0;
	}
	verify(tree);
}

/*
 * What deletes leave thin is built anew: not while there is no memory, nor before the next deletes; its
 * memory comes back when nobody reads the version before.
 */
static void
test_compact(int nwords, bool all)
{
	static GpudsOp ops[MOST];
	Tested tree(TESTED);
	const int64_t entries = 60 * MOST;
	Held held = {};
	uint64_t version;
	uint64_t bytes;
	Model m;

	load_neighbours(&tree, &m, entries, nwords);
	CHECK(!tree.compact(&change));
	bytes = tree.bytes();
	for (int64_t first = 0; first < entries; first += MOST)
	{
		int64_t n = 0;

		for (int64_t i = first; i < first + MOST; i++)
		{
			if (!all && i % 7 == 0)
				continue;
			ops[n].e = compact_entry(i, nwords);
			ops[n].order = (uint64_t) n << 1 | GPUDS_OP_DELETE;
			n++;
		}
		tree.reclaim(&change, UINT64_MAX);
		change_both(&tree, &m, ops, n);
	}
	hold(&held, &tree, &m);
	version = *tree.version();
	compact_without_memory(&tree, &pool.fail_list, TESTED_LISTS);
	compact_without_memory(&tree, &pool.fail_after, 3);
	CHECK(tree.compact(&change) && *tree.version() > version);
	check_tree(&tree, &m, KEYS_DENSE);
	tree.reclaim(&change, held.version);
	check_view(&tree, &held.view, &held.model, KEYS_DENSE);
	CHECK(!tree.compact(&change));
	tree.reclaim(&change, UINT64_MAX);
	CHECK(tree.bytes() <= bytes / 2);
	CHECK(!tree.compact(&change));
	for (int i = 0; i < 4; i++)
	{
		change_both(&tree, &m, ops, make_batch(ops, &m, KEYS_DENSE, nwords));
		tree.reclaim(&change, UINT64_MAX);
		check_tree(&tree, &m, KEYS_DENSE);
	}
	free(held.model.e);
	free(m.e);
	drop(&tree);
}

/* All allocations of a load and a change fail in turn; what was applied, may be again. */
static void
test_no_memory(int kind, int nwords, std::atomic<int64_t> *fail)
{
	static GpudsOp ops[MOST];
	Tested tree(TESTED);
	GpuStatus status = GPU_NO_MEMORY;
	int64_t inserted, deleted;
	int64_t n;
	Model m;

	model_fill(&m, most / 2, kind, nwords, 2 * most);
	load_without_memory(&tree, &m, nwords, fail);
	check_tree(&tree, &m, kind);
	n = make_batch(ops, &m, kind, nwords);
	for (int64_t after = 0; status != GPU_OK; after++)
	{
		*fail = after;
		status = apply_tree(&tree, ops, n, &inserted, &deleted);
		*fail = -1;
		CHECK(status == GPU_OK || status == GPU_NO_MEMORY);
		verify(&tree);
		tree.reclaim(&change, UINT64_MAX);
	}
	apply_model(&m, ops, n, &inserted, &deleted);
	check_tree(&tree, &m, kind);
	free(m.e);
	drop(&tree);
}

/*
 * Readers beside an applier.  Entries with even keys stay; those with odd ones come and go.  Other keys
 * are never there.
 */
#define STAY 1500
#define READERS 2

struct Beside
{
	Tested *tree;
	PinSlot pin[READERS];
	std::atomic<bool> ended{ false };
};

static GpudsEntry
beside_entry(uint64_t k)
{
	return { k * 16, 0, k << 16 | 1 };
}

/* Goes through all entries in pieces, each of a version of its own, or all of one, which says how many. */
static void
read_beside(Beside *b, int reader, GpuScanStream *own, unsigned char *mine)
{
	unsigned char *there = (unsigned char *) gpu_device_address(mine);
	const GpudsEntry *out = (const GpudsEntry *) (mine + 64);
	GpudsInterval all = { { 0, 0, 0 }, { UINT64_MAX, 0, UINT64_MAX } };

	CHECK(gpu_use(0));
	for (int turn = 0; turn < 8 || !b->ended; turn++)
	{
		const bool forward = turn % 2 == 0;
		const bool one = turn % 4 >= 2;
		int64_t next = forward ? 0 : STAY - 1; /* the even key that comes */
		uint64_t found = 0;
		GpudsView view;
		GpuRequest r;

		memset((void *) &r, 0, sizeof(r));
		memcpy(mine, &all, sizeof(all));
		r.kind = GPU_SCAN;
		r.forward = forward;
		r.output = 64;
		r.n = 1;
		r.next = forward ? 0 : 1;
		r.cap = turn % 3 == 0 ? 100 : 700;
		do
		{
			if (!one || found == 0)
			{
				pin_version(&b->pin[reader], 1, b->tree->version());
				CHECK(b->tree->view(&pool, &view));
			}
			CHECK(b->tree->scan(own, &view, mine, there, &r) == GPU_OK);
			if (!one)
				pin_release(&b->pin[reader]);
			found += (uint64_t) r.found;
			for (int64_t i = 0; i < r.found; i++)
			{
				uint64_t k = out[i].w0 / 16;
				GpudsEntry e = beside_entry(k);

				CHECK(entry_equal(&e, &out[i]) && k < 2 * STAY);
				if (k % 2 != 0)
					continue;
				CHECK(k == (uint64_t) next * 2);
				next += forward ? 1 : -1;
			}
		} while (r.found == r.cap);
		if (one)
			pin_release(&b->pin[reader]);
		CHECK(next == (forward ? STAY : -1) && (!one || found == view.entries));
	}
}

static void
test_beside(int turns)
{
	static GpudsOp ops[MOST];
	Tested tree(TESTED);
	GpuScanStream own[READERS];
	unsigned char *memory[READERS];
	std::thread readers[READERS];
	Beside b;
	Model m;

	model_init(&m, STAY);
	for (uint64_t k = 0; k < STAY; k++)
		m.e[m.n++] = beside_entry(2 * k);
	CHECK(load(&tree, &m, 1, 90) == GPU_OK);
	b.tree = &tree;
	memset((void *) b.pin, 0, sizeof(b.pin));
	for (int i = 0; i < READERS; i++)
	{
		memory[i] = (unsigned char *) gpu_host_alloc(32768);
		CHECK(memory[i] != NULL && gpu_scan_stream_open(&own[i], 32768));
	}
	for (int i = 0; i < READERS; i++)
		readers[i] = std::thread(read_beside, &b, i, &own[i], memory[i]);
	for (int turn = 0; turn < turns; turn++)
	{
		int64_t n = 1 + (int64_t) test_below(turn % 4 == 0 ? 2000 : 50);
		int64_t inserted, deleted;

		for (int64_t i = 0; i < n; i++)
		{
			ops[i].e = beside_entry(2 * test_below(STAY) + 1);
			ops[i].order = (uint64_t) i << 1 | test_below(2);
		}
		tree.reclaim(&change, pin_oldest(b.pin, READERS, 1));
		CHECK(apply_tree(&tree, ops, n, &inserted, &deleted) == GPU_OK);
	}
	b.ended = true;
	for (int i = 0; i < READERS; i++)
		readers[i].join();
	verify(&tree);
	for (int i = 0; i < READERS; i++)
	{
		gpu_scan_stream_close(&own[i]);
		gpu_host_free(memory[i]);
	}
	free(m.e);
	drop(&tree);
	passed++;
}

/*
 * The tests of a program, which takes as arguments: small, or rounds and a seed; test_own: those of the
 * structure alone.
 */
static int
test_changes(int argc, char **argv, void (*test_own)(int nwords, bool small))
{
	bool small = argc > 1 && strcmp(argv[1], "small") == 0;
	int rounds = small ? 1 : argc > 1 ? atoi(argv[1]) : 3;
	GpuCard card;

	if (small)
	{
		most = SMALL_MOST;
		batches = SMALL_BATCHES;
		intervals = SMALL_INTERVALS;
	}
	test_seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	if (!open_card<Tested>(&card, (size_t) LARGE * sizeof(GpudsOp)))
		return 1;
	test_all_kinds(rounds, small, test_random_changes, test_no_memory);
	for (int nwords = 1; nwords <= 2; nwords++)
	{
		for (int order = 0; order < 3; order++)
		{
			test_to_nothing(nwords, most, order);
			if (!small)
			{
				test_to_nothing(nwords, 20, order);
				test_to_nothing(nwords, 700, order);
			}
		}
		test_teams(nwords);
		test_own(nwords, small);
		if (!small)
		{
			test_compact(nwords, false);
			test_compact(nwords, true);
		}
	}
	test_beside(small ? 10 : 300);
	close_card();
	printf("%s, %d passed, 0 failed\n", card.name, passed);
	return 0;
}

/* Flips bits of a word in device memory, which verify must find, and flips them back. */
template <class Word>
static void
damage_word(Tested *tree, Word *at, Word bits)
{
	Word was = 0;
	Word is;
	char why[200] = "";

	gpu_copy_bus(&change.stream, &was, at, sizeof(was));
	CHECK(gpu_finish(&change.stream));
	is = was ^ bits;
	gpu_copy_bus(&change.stream, at, &is, sizeof(is));
	CHECK(tree->verify(&change, why, sizeof(why)) == GPU_DAMAGED);
	CHECK(why[0] != '\0');
	gpu_copy_bus(&change.stream, at, &was, sizeof(was));
	CHECK(gpu_finish(&change.stream));
	passed++;
}

#endif /* TEST_GPU_CHANGES_H */
