/*-------------------------------------------------------------------------
 *
 * gpu_skiplist.cu
 *	  Skip lists in device memory, against a sorted array: loads and batches of all kinds of keys, in any
 *	  order and all on one chunk, versions that are still read, lists that grow from nothing and shrink to
 *	  nothing, memory running out anywhere, damage that verify finds; and readers beside an applier, who
 *	  find all that stays, in order, and nothing that was never there.
 *	  Runs on a GPU, or compiled with GPU_EMULATED on the CPU.
 *
 *	  usage: gpu_skiplist [small | rounds [seed]]
 *
 *-------------------------------------------------------------------------
 */
#include <atomic>
#include <thread>

#include "common.h"
#include "kernels/core/pins.h"
#define STRUCTURES_ON_GPU
#include "kernels/structures.h"
#include "gpu_versions.h"

#define MOST 6000         /* entries of a list, operations of a batch */
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
check_view(const SkiplistOnGpu *list, const GpudsView *view, const Model *m, int kind)
{
	const GpudsInterval all = all_entries(view->nwords);

	CHECK(view->entries == (uint64_t) m->n);
	check_interval(list, view, m, &all, true, 2 * most);
	check_interval(list, view, m, &all, false, 1 + m->n / 2);
	check_interval(list, view, m, &all, test_below(2) == 0, 300 + (int64_t) test_below((uint64_t) most));
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
		check_interval(list, view, m, &some, i % 2 == 0, i % 5 == 0 ? 3 : most);
	}
}

static void
check_list(SkiplistOnGpu *list, const Model *m, int kind)
{
	GpudsView view;

	verify(list);
	CHECK(list->view(&pool, &view));
	check_view(list, &view, m, kind);
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
			/* many on one chunk, and some on one entry */
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
change_both(SkiplistOnGpu *list, Model *m, GpudsOp *ops, int64_t n)
{
	GpuStatus status = apply(list, m, ops, n);

	if (status != GPU_OK)
		fprintf(stderr, "apply: %d %s\n", (int) status, change.stream.why);
	CHECK(status == GPU_OK);
}

static void
test_random_changes(int kind, int nwords)
{
	static GpudsOp ops[MOST];
	SkiplistOnGpu list(GPUDS_STRUCTURE_SKIPLIST);
	Held held[HELD] = {};
	Model m;

	model_fill(&m, test_below(4) == 0 ? 0 : (int64_t) test_below((uint64_t) most), kind, nwords, 2 * most);
	CHECK(load(&list, &m, nwords, 50 + (uint32_t) test_below(51)) == GPU_OK);
	check_list(&list, &m, kind);
	for (int i = 0; i < batches; i++)
	{
		Held *h = &held[test_below(HELD)];

		if (h->version != 0)
		{
			check_view(&list, &h->view, &h->model, kind);
			free(h->model.e);
			h->version = 0;
		}
		if (i % 8 < 4)
			hold(h, &list, &m);
		if (test_below(3) != 0)
			list.reclaim(&change, oldest_of(held, HELD));
		change_both(&list, &m, ops, make_batch(ops, &m, kind, nwords));
		check_list(&list, &m, kind);
	}
	for (int k = 0; k < HELD; k++)
	{
		if (held[k].version != 0)
			free(held[k].model.e);
	}
	free(m.e);
	drop(&list);
}

/* A list grows from nothing and shrinks to nothing, by batches of a size, whose keys are in an order. */
static void
test_to_nothing(int nwords, int64_t size, int order)
{
	static GpudsOp ops[MOST];
	SkiplistOnGpu list(GPUDS_STRUCTURE_SKIPLIST);
	Model m;

	model_init(&m, 0);
	CHECK(load(&list, &m, nwords, 90) == GPU_OK);
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
			list.reclaim(&change, UINT64_MAX);
			change_both(&list, &m, ops, n);
			if (first % 7 == 0)
				verify(&list);
		}
		check_list(&list, &m, KEYS_DENSE);
	}
	CHECK(m.n == 0);
	/* a chunk or two of memory are all that it takes now */
	free(m.e);
	drop(&list);
}

static GpudsEntry
compact_entry(int64_t i, int nwords)
{
	return { (uint64_t) i * 3, nwords == 2 ? (uint64_t) i << 40 : 0, (uint64_t) i << 16 | 1 };
}

/* Loads so many entries, each next to the one before it. */
static void
load_neighbours(SkiplistOnGpu *list, Model *m, int64_t n, int nwords)
{
	model_init(m, n);
	for (m->n = 0; m->n < n; m->n++)
		m->e[m->n] = compact_entry(m->n, nwords);
	CHECK(load(list, m, nwords, 90) == GPU_OK);
}

/* Small batches that are spread over a list, for which clusters of one to eight blocks are launched. */
static void
test_teams(int nwords)
{
	static const int64_t sizes[] = { 1, 32, 33, 128, 129, 385, 640, 897, 1023, GPU_SKIPLIST_SMALL };
	static GpudsOp ops[GPU_SKIPLIST_SMALL];
	const int64_t entries = 20000;
	SkiplistOnGpu list(GPUDS_STRUCTURE_SKIPLIST);
	int64_t turn = 0;
	Model m;

	load_neighbours(&list, &m, entries, nwords);
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
			list.reclaim(&change, UINT64_MAX);
			change_both(&list, &m, ops, n);
			verify(&list);
		}
	}
	CHECK((int64_t) list.tree.entries.load() == m.n);
	free(m.e);
	drop(&list);
}

/* Each allocation of the building fails in turn, but for the last ones: nothing has changed then. */
static void
compact_without_memory(SkiplistOnGpu *list, std::atomic<int64_t> *fail)
{
	const uint64_t version = *list->version();
	const uint64_t used = gpu_pool_used(&pool);

	for (int64_t after = 0; after < 3 && list->tree.entries > 0; after++)
	{
		*fail = after;
		CHECK(!list->compact(&change));
		CHECK(*fail == -1 && *list->version() == version && gpu_pool_used(&pool) == used);
		CHECK(!list->compact(&change));
		list->tree.compact_rest = 0;
	}
	verify(list);
}

/* What batches have reserved is given back, but not after each of them: so often that building anew pays. */
static void
test_spare(int nwords)
{
	static GpudsOp ops[LARGE];
	SkiplistOnGpu list(GPUDS_STRUCTURE_SKIPLIST);
	const int64_t entries = 3 * LARGE;
	const int64_t n = entries / 10;
	const int turns = 12;
	int compacted = 0;
	Model m;

	load_neighbours(&list, &m, entries, nwords);
	for (int turn = 0; turn < turns; turn++)
	{
		/* behind all others, which reserves most, and away again */
		for (int64_t i = 0; i < n; i++)
		{
			ops[i].e = compact_entry(entries + i, nwords);
			ops[i].order = (uint64_t) i << 1 | (turn & 1);
		}
		list.reclaim(&change, UINT64_MAX);
		change_both(&list, &m, ops, n);
		compacted += list.compact(&change);
	}
	/* every second turn reserves enough, but it takes three until a quarter have come or gone */
	CHECK(compacted >= turns / 4 && compacted <= turns / 3);
	list.reclaim(&change, UINT64_MAX);
	verify(&list);
	CHECK((int64_t) list.tree.entries.load() == m.n);
	free(m.e);
	drop(&list);
}

/*
 * What deletes leave thin is built anew: not while there is no memory, nor before the next deletes; its
 * memory comes back when nobody reads the version before.
 */
static void
test_compact(int nwords, bool all)
{
	static GpudsOp ops[MOST];
	SkiplistOnGpu list(GPUDS_STRUCTURE_SKIPLIST);
	const int64_t entries = 60 * MOST;
	Held held = {};
	uint64_t version;
	uint64_t bytes;
	Model m;

	load_neighbours(&list, &m, entries, nwords);
	CHECK(!list.compact(&change));
	bytes = list.bytes();
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
		list.reclaim(&change, UINT64_MAX);
		change_both(&list, &m, ops, n);
	}
	hold(&held, &list, &m);
	version = *list.version();
	compact_without_memory(&list, &pool.fail_list);
	compact_without_memory(&list, &pool.fail_after);
	CHECK(list.compact(&change) && *list.version() > version);
	check_list(&list, &m, KEYS_DENSE);
	list.reclaim(&change, held.version);
	check_view(&list, &held.view, &held.model, KEYS_DENSE);
	CHECK(!list.compact(&change));
	list.reclaim(&change, UINT64_MAX);
	CHECK(list.bytes() <= bytes / 2);
	CHECK(!list.compact(&change));
	for (int i = 0; i < 4; i++)
	{
		change_both(&list, &m, ops, make_batch(ops, &m, KEYS_DENSE, nwords));
		list.reclaim(&change, UINT64_MAX);
		check_list(&list, &m, KEYS_DENSE);
	}
	free(held.model.e);
	free(m.e);
	drop(&list);
}

/* All allocations of a load and a change fail in turn; what was applied, may be again. */
static void
test_no_memory(int kind, int nwords, std::atomic<int64_t> *fail)
{
	static GpudsOp ops[MOST];
	SkiplistOnGpu list(GPUDS_STRUCTURE_SKIPLIST);
	GpuStatus status = GPU_NO_MEMORY;
	int64_t inserted, deleted;
	int64_t n;
	Model m;

	model_fill(&m, most / 2, kind, nwords, 2 * most);
	load_without_memory(&list, &m, nwords, fail);
	check_list(&list, &m, kind);
	n = make_batch(ops, &m, kind, nwords);
	for (int64_t after = 0; status != GPU_OK; after++)
	{
		*fail = after;
		status = apply_tree(&list, ops, n, &inserted, &deleted);
		*fail = -1;
		CHECK(status == GPU_OK || status == GPU_NO_MEMORY);
		verify(&list);
		list.reclaim(&change, UINT64_MAX);
	}
	apply_model(&m, ops, n, &inserted, &deleted);
	check_list(&list, &m, kind);
	free(m.e);
	drop(&list);
}

/* Flips bits of a word of a chunk; verify must find that. */
static void
damage(SkiplistOnGpu *list, GpuRef ref, int word, uint64_t bits)
{
	uint64_t *at = gpu_skiplist_chunk(pool.base, ref) + word;
	uint64_t was = 0;
	uint64_t is;
	char why[200];

	gpu_copy_bus(&change.stream, &was, at, sizeof(was));
	CHECK(gpu_finish(&change.stream));
	is = was ^ bits;
	gpu_copy_bus(&change.stream, at, &is, sizeof(is));
	CHECK(list->verify(&change, why, sizeof(why)) == GPU_DAMAGED);
	CHECK(why[0] != '\0');
	gpu_copy_bus(&change.stream, at, &was, sizeof(was));
	CHECK(gpu_finish(&change.stream));
	passed++;
}

static void
test_damage(int nwords)
{
	SkiplistOnGpu list(GPUDS_STRUCTURE_SKIPLIST);
	uint64_t root[48];
	uint64_t pair;
	GpuRef child;
	Model m;

	model_fill(&m, most / 2, KEYS_RANDOM, nwords, 2 * most);
	CHECK(load(&list, &m, nwords, 80) == GPU_OK);
	CHECK(list.tree.levels > 2);
	gpu_copy_bus(&change.stream, root, gpu_skiplist_chunk(pool.base, list.tree.top), sizeof(root));
	CHECK(gpu_finish(&change.stream));
	child = list.tree.space.nodes[GPU_SKIPLIST_CHUNKS].chunks[0] * GPU_CHUNK_UNITS;
	pair = *list.version() << 1;
	for (GpuRef ref : { list.tree.top, child })
	{
		const bool index = ref == list.tree.top;

		damage(&list, ref, 0, 0x10);                           /* a slot twice */
		damage(&list, ref, 0, UINT64_C(1) << 59);              /* a slot that is said to be used */
		damage(&list, ref, 1, pair);                           /* newer than the list */
		damage(&list, ref, 3, pair);                           /* likewise, the other pair */
		damage(&list, ref, GPU_SKIPLIST_W0 + 1, ~UINT64_C(0)); /* an entry out of order */
		damage(&list, ref, index ? 22 : 28, 1);                /* notes */
		damage(&list, ref, index ? 22 : 28, UINT64_C(1) << 32);
	}
	damage(&list, list.tree.top, GPU_SKIPLIST_REFS, 2); /* not a chunk's place */
	damage(&list, list.tree.top, GPU_SKIPLIST_REFS,
		   root[GPU_SKIPLIST_REFS] ^
			   (root[GPU_SKIPLIST_REFS] >> 32 | root[GPU_SKIPLIST_REFS] << 32)); /* exchanged */
	damage(&list, list.tree.top, GPU_SKIPLIST_REFS,
		   (root[GPU_SKIPLIST_REFS] ^ root[GPU_SKIPLIST_REFS] >> 32) & UINT32_MAX); /* twice */
	list.tree.entries++;
	CHECK(list.verify(&change, (char *) staging, 200) == GPU_DAMAGED);
	list.tree.entries--;
	list.tree.level_n[1]++;
	CHECK(list.verify(&change, (char *) staging, 200) == GPU_DAMAGED);
	list.tree.level_n[1]--;
	list.tree.space.nodes[0].nfree--;
	CHECK(list.verify(&change, (char *) staging, 200) == GPU_DAMAGED);
	list.tree.space.nodes[0].nfree++;
	check_list(&list, &m, KEYS_RANDOM);
	free(m.e);
	drop(&list);
}

/*
 * Readers beside an applier.  Entries with even keys stay; those with odd ones come and go.  Other keys
 * are never there.
 */
#define STAY 1500
#define READERS 2

struct Beside
{
	SkiplistOnGpu *list;
	PinSlot pin[READERS];
	std::atomic<bool> ended{ false };
};

static GpudsEntry
beside_entry(uint64_t k)
{
	return { k * 16, 0, k << 16 | 1 };
}

/* Goes through all entries in pieces, each of a version of its own. */
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
		int64_t next = forward ? 0 : STAY - 1; /* the even key that comes */
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
			GpudsView view;

			pin_version(&b->pin[reader], 1, b->list->version());
			CHECK(b->list->view(&pool, &view));
			CHECK(b->list->scan(own, &view, mine, there, &r) == GPU_OK);
			pin_release(&b->pin[reader]);
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
		CHECK(next == (forward ? STAY : -1));
	}
}

static void
test_beside(int turns)
{
	static GpudsOp ops[MOST];
	SkiplistOnGpu list(GPUDS_STRUCTURE_SKIPLIST);
	GpuScanStream own[READERS];
	unsigned char *memory[READERS];
	std::thread readers[READERS];
	Beside b;
	Model m;

	model_init(&m, STAY);
	for (uint64_t k = 0; k < STAY; k++)
		m.e[m.n++] = beside_entry(2 * k);
	CHECK(load(&list, &m, 1, 90) == GPU_OK);
	b.list = &list;
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
		list.reclaim(&change, pin_oldest(b.pin, READERS, 1));
		CHECK(apply_tree(&list, ops, n, &inserted, &deleted) == GPU_OK);
	}
	b.ended = true;
	for (int i = 0; i < READERS; i++)
		readers[i].join();
	verify(&list);
	for (int i = 0; i < READERS; i++)
	{
		gpu_scan_stream_close(&own[i]);
		gpu_host_free(memory[i]);
	}
	free(m.e);
	drop(&list);
	passed++;
}

int
main(int argc, char **argv)
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
	if (!open_card<SkiplistOnGpu>(&card, (size_t) LARGE * sizeof(GpudsOp)))
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
		test_damage(nwords);
		if (!small)
		{
			test_compact(nwords, false);
			test_compact(nwords, true);
			test_spare(nwords);
		}
	}
	test_beside(small ? 10 : 300);
	close_card();
	printf("%s, %d passed, 0 failed\n", card.name, passed);
	return 0;
}
