/*-------------------------------------------------------------------------
 *
 * gpu_change.cu
 *	  Loading and changing trees in device memory, against a sorted array:
 *	  batches of all sizes and kinds, versions that are still read, trees that
 *	  deletes have left thin, memory running out anywhere, damage that the check
 *	  must find.
 *	  Runs on a GPU, or compiled with GPU_EMULATED on the CPU.
 *
 *	  usage: gpu_change [small | rounds [seed]]
 *
 *-------------------------------------------------------------------------
 */
#include "bench/build_unsorted.h"
#include "kernels/btree/btree_structure_gpu.h"
#include "tree.h"

#define MOST 20000  /* entries of a tree, operations of a batch */
#define HELD 3      /* versions that are read beside the newest */
#define WIDE 200000 /* entries of a tree that is built anew */

static GpuPool pool;
static GpuChange change;
static GpudsEntry *staging; /* MOST * 2 entries or operations, seen by the device */
static GpudsEntry *there;   /* ... at this address; emulated: other memory */
static uint64_t *ranks;
static int passed;

/* A version that is pinned. */
struct Held
{
	uint64_t version; /* 0: none */
	GpudsView view;
	Model model;
};

/* The entries from a rank on. */
struct ReadAll
{
	GpudsView view;
	int64_t from;
	GpudsEntry *out;

	GPU_FN void operator()(int64_t i) const
	{
		BtreePosition p;

		btree_select(&view, (uint64_t) (from + i), &p);
		out[i] = btree_leaf_entry(btree_node(view.base, p.leaf), p.place, view.nwords);
	}
};

/* The rank of each probe. */
struct ReadRanks
{
	GpudsView view;
	const GpudsEntry *probes;
	uint64_t *out;

	GPU_FN void operator()(int64_t i) const
	{
		out[i] = view.nwords == 1 ? btree_rank(&view, &probes[i], 1) : btree_rank(&view, &probes[i], 2);
	}
};

static void
finish(void)
{
	if (!gpu_finish(&change.stream))
	{
		fprintf(stderr, "%s\n", change.stream.why);
		exit(1);
	}
}

/* Is what readers see the model? */
static void
check_view(const GpudsView *view, const Model *m, int kind, uint64_t range)
{
	const int64_t nprobes = 200;

	CHECK(view->entries == (uint64_t) m->n);
	CHECK((view->height == 0) == (m->n == 0));
	for (int64_t from = 0; from < m->n; from += MOST)
	{
		int64_t n = m->n - from < MOST ? m->n - from : MOST;

		memset((void *) staging, 0xA5, (size_t) n * sizeof(GpudsEntry));
		gpu_launch(&change.stream, n, ReadAll{ *view, from, staging });
		finish();
		for (int64_t i = 0; i < n; i++)
			CHECK(entry_equal(&staging[i], &m->e[from + i]));
	}
	for (int64_t i = 0; i < nprobes; i++)
		staging[i] = test_bound(m, kind, view->nwords, range);
	gpu_launch(&change.stream, nprobes, ReadRanks{ *view, staging, ranks });
	finish();
	for (int64_t i = 0; i < nprobes; i++)
		CHECK(ranks[i] == (uint64_t) model_rank(m, &staging[i]));
	passed++;
}

static void
verify(GpuTree *tree)
{
	char why[200];

	if (gpu_btree_verify(&change, tree, why, sizeof(why)) != GPU_OK)
	{
		fprintf(stderr, "verify: %s %s\n", why, change.stream.why);
		exit(1);
	}
}

static void
check_tree(GpuTree *tree, const Model *m, int kind, uint64_t range)
{
	GpudsView view;

	verify(tree);

	CHECK(gpu_tree_view(tree, &pool, &view));
	check_view(&view, m, kind, range);
}

static GpuStatus
load_filled(GpuTree *tree, const Model *m, int nwords, uint32_t fill_percent)
{
	GpuStatus status = gpu_btree_load_begin(&change, tree, (uint32_t) nwords, fill_percent);

	for (int64_t i = 0; i < m->n && status == GPU_OK;)
	{
		int64_t k = 1 + (int64_t) test_below(test_below(2) ? 10 : 5000);

		k = k < m->n - i ? k : m->n - i;
		memcpy((void *) staging, m->e + i, (size_t) k * sizeof(GpudsEntry));
		status = gpu_btree_load_add(&change, tree, staging, k);
		i += k;
	}
	if (status == GPU_OK)
		status = gpu_btree_load_end(&change, tree);
	if (status != GPU_OK && tree->nwords != 0)
		CHECK(gpu_tree_drop(&change, tree) == GPU_OK);
	return status;
}

static GpuStatus
load(GpuTree *tree, const Model *m, int nwords)
{
	return load_filled(tree, m, nwords, 50 + (uint32_t) test_below(51));
}

static int
compare_ops(const void *a, const void *b)
{
	const GpudsOp *x = (const GpudsOp *) a;
	const GpudsOp *y = (const GpudsOp *) b;
	int order = test_compare(&x->e, &y->e);

	return order != 0 ? order : (x->order > y->order) - (x->order < y->order);
}

/* Kinds of batches. */
enum
{
	BATCH_RANDOM,    /* any entries */
	BATCH_SHUFFLED,  /* ... of any order */
	BATCH_SORTED,    /* ... ascending, no duplicates */
	BATCH_ASCENDING, /* behind all that is there */
	BATCH_TOGETHER,  /* into few leaves */
	BATCH_EMPTYING,  /* delete all that is there */
	BATCH_KINDS
};

static int64_t
make_batch(GpudsOp *ops, int64_t n, int batch, const Model *m, int kind, int nwords, uint64_t range)
{
	uint64_t base = test_below(range);
	int deletes = (int) test_below(101);

	if (batch == BATCH_EMPTYING)
		n = m->n < MOST ? m->n : MOST;
	if (batch == BATCH_SORTED)
		return test_ops(ops, n, kind, nwords, range, deletes);
	for (int64_t i = 0; i < n; i++)
	{
		bool deletes_it = test_below(100) < (uint64_t) deletes;

		if (batch == BATCH_EMPTYING)
		{
			ops[i].e = m->e[n - 1 - i];
			deletes_it = true;
		}
		else if (batch == BATCH_ASCENDING)
		{
			GpudsEntry last = m->n > 0 ? m->e[m->n - 1] : GpudsEntry{ 0, 0, 0 };

			ops[i].e = last;
			ops[i].e.t = last.t < UINT64_MAX - 1 - (uint64_t) i ? last.t + 1 + (uint64_t) i : UINT64_MAX - 1;
			deletes_it = false;
		}
		else if (batch == BATCH_TOGETHER && m->n > 0)
		{
			ops[i].e = m->e[(base + test_below(20)) % (uint64_t) m->n];
			ops[i].e.t = test_below(2) && ops[i].e.t < UINT64_MAX - 200 ? ops[i].e.t + test_below(100)
																		: ops[i].e.t;
		}
		else
		{
			ops[i].e = test_entry(kind, nwords, range);
		}
		ops[i].order = (uint64_t) i << 1 | deletes_it;
	}
	if (batch == BATCH_SHUFFLED)
	{
		for (int64_t i = n; i > 1; i--)
		{
			int64_t j = (int64_t) test_below((uint64_t) i);
			GpudsOp swap = ops[i - 1];

			ops[i - 1] = ops[j];
			ops[j] = swap;
		}
	}
	return n;
}

/* Applies to both; status of the device's. */
static GpuStatus
apply(GpuTree *tree, Model *m, GpudsOp *ops, int64_t n)
{
	int64_t inserted, deleted, there_inserted, there_deleted;
	GpuStatus status;

	memcpy((void *) staging, ops, (size_t) n * sizeof(GpudsOp));
#ifdef GPU_EMULATED
	/* copies are made by the host's address, all other reading is done by the device's */
	if (n <= GPU_SMALL_OPS && tree->entries + (uint64_t) n <= GPU_MAX_ENTRIES)
	{
		memcpy((void *) there, ops, (size_t) n * sizeof(GpudsOp));
		memset((void *) staging, 0xA5, (size_t) n * sizeof(GpudsOp));
	}
	else
		memset((void *) there, 0xA5, (size_t) n * sizeof(GpudsOp));
#endif
	status = gpu_btree_apply(&change, tree, (const GpudsOp *) staging, (const GpudsOp *) there, n,
							 &there_inserted, &there_deleted);
	if (status != GPU_OK)
		return status;
	qsort(ops, (size_t) n, sizeof(GpudsOp), compare_ops);
	n = sort_last_ops(ops, n);
	model_apply(m, ops, n, &inserted, &deleted);
	CHECK(inserted == there_inserted);
	CHECK(deleted == there_deleted);
	return status;
}

static void
copy_model(Model *to, const Model *from)
{
	model_init(to, from->n);
	memcpy((void *) to->e, from->e, (size_t) from->n * sizeof(GpudsEntry));
	to->n = from->n;
}

static void
hold(Held *held, GpuTree *tree, const Model *m)
{
	if (held->version != 0)
		free(held->model.e);
	held->version = *gpu_tree_version(tree);
	CHECK(gpu_tree_view(tree, &pool, &held->view));
	copy_model(&held->model, m);
}

/* What has been given up is used again. */
static void
reclaim(GpuTree *tree, const Held *held)
{
	uint64_t oldest = UINT64_MAX;

	for (int i = 0; i < HELD; i++)
	{
		if (held[i].version != 0 && held[i].version < oldest)
			oldest = held[i].version;
	}
	gpu_tree_reclaim(&change, tree, oldest);
}

static void
test_random_changes(int kind, int nwords, int steps, int64_t most)
{
	uint64_t range = 1 + test_below((uint64_t) most * 2);
	GpudsOp *ops = (GpudsOp *) malloc((size_t) MOST * sizeof(GpudsOp));
	Held held[HELD] = {};
	GpuTree tree;
	GpudsView view;
	Model m;

	CHECK(ops != NULL);
	model_fill(&m, (int64_t) test_below((uint64_t) most), kind, nwords, range);
	CHECK(!gpu_tree_view(&tree, &pool, &view));
	CHECK(load(&tree, &m, nwords) == GPU_OK);
	check_tree(&tree, &m, kind, range);
	for (int i = 0; i < steps; i++)
	{
		int64_t n = 1 + (int64_t) test_below(test_below(3) == 0 ? 5 : test_below(2) ? 300 : (uint64_t) most);
		int batch = (int) test_below(BATCH_KINDS);

		if (m.n + n > MOST)
			batch = BATCH_EMPTYING;
		if (test_below(3) == 0)
			hold(&held[test_below(HELD)], &tree, &m);
		n = make_batch(ops, n, batch, &m, kind, nwords, range);
		CHECK(apply(&tree, &m, ops, n) == GPU_OK);
		if (test_below(2))
			reclaim(&tree, held);
		check_tree(&tree, &m, kind, range);
		for (int h = 0; h < HELD; h++)
		{
			if (held[h].version != 0)
				check_view(&held[h].view, &held[h].model, kind, range);
		}
	}
	for (int h = 0; h < HELD; h++)
	{
		if (held[h].version != 0)
			free(held[h].model.e);
	}
	gpu_tree_withdraw(&tree);
	CHECK(!gpu_tree_view(&tree, &pool, &view));
	CHECK(gpu_tree_bytes(&tree) == gpu_pool_used(&pool));
	CHECK(gpu_tree_drop(&change, &tree) == GPU_OK);
	CHECK(gpu_tree_bytes(&tree) == 0 && gpu_pool_used(&pool) == 0);
	free(m.e);
	free(ops);
}

/*
 * Damage.
 */

/* Exchange a word of device memory with one of the host's. */
struct Exchange
{
	uint64_t *at;
	uint64_t *word;

	GPU_FN void operator()(int64_t) const
	{
		uint64_t old = *at;

		*at = *word;
		*word = old;
	}
};

struct Peek
{
	const uint64_t *at;
	uint64_t *word;

	GPU_FN void operator()(int64_t) const
	{
		*word = *at;
	}
};

static uint64_t
peek(const uint64_t *at)
{
	gpu_launch(&change.stream, 1, Peek{ at, ranks });
	finish();
	return *ranks;
}

/* With this word in device memory the check must say so; after that all is as before. */
static void
check_damage(GpuTree *tree, uint64_t *at, uint64_t word, const char *words)
{
	char why[200];

	*ranks = word;
	gpu_launch(&change.stream, 1, Exchange{ at, ranks });
	finish();
	word = *ranks;
	if (gpu_btree_verify(&change, tree, why, sizeof(why)) != GPU_DAMAGED || strstr(why, words) == NULL)
	{
		fprintf(stderr, "\"%s\" instead of \"%s\"\n", why, words);
		exit(1);
	}
	*ranks = word;
	gpu_launch(&change.stream, 1, Exchange{ at, ranks });
	finish();
	verify(tree);
	passed++;
}

static void
test_damage(int nwords)
{
	GpuTree tree;
	GpudsView view;
	Model m;
	char why[200];
	uint64_t *inner, *leaf, *t;
	GpuNodes *leaves;
	uint64_t link;
	int n;

	model_fill(&m, 5000, KEYS_RANDOM, nwords, UINT64_C(1) << 40);
	CHECK(load(&tree, &m, nwords) == GPU_OK);
	CHECK(gpu_tree_view(&tree, &pool, &view));
	verify(&tree);
	/* down the left edge: one level above the leaves, and a leaf that is full enough */
	leaves = &tree.space.nodes[GPU_BTREE_LEAVES];
	inner = btree_node(view.base, view.root);
	for (int level = view.height - 1; level > 1; level--)
		inner = btree_node(view.base, btree_link_ref(peek(inner + BTREE_LINKS)));
	link = peek(inner + BTREE_LINKS + 1);
	leaf = btree_node(view.base, btree_link_ref(link));
	t = leaf + nwords * BTREE_FANOUT;
	for (n = 0; n < BTREE_FANOUT && peek(t + n) != UINT64_MAX; n++)
		;
	CHECK(n >= 4);
	check_damage(&tree, leaf, peek(leaf + 1) + 1, "out of order");
	check_damage(&tree, leaf + 2, 0, "out of order");
	check_damage(&tree, leaf, peek(inner + 1) - 1, "below the separator");
	check_damage(&tree, leaf + n - 1, peek(inner + 2), "not below the separator");
	check_damage(&tree, t + n - 1, UINT64_MAX, "as many entries");
	if (n < BTREE_FANOUT)
		check_damage(&tree, leaf + n, 5, "not clear");
	check_damage(&tree, inner, peek(inner) + 1, "");
	check_damage(&tree, inner, peek(inner) | UINT64_C(1) << 9, "does not fit its separators");
	check_damage(&tree, inner + 1, peek(inner + 2), "");
	check_damage(&tree, inner + BTREE_INNER_T + 1, 1, "does not fit its separators");
	check_damage(&tree, inner + BTREE_LINKS + 1, link + (UINT64_C(1) << 32), "as many entries");
	check_damage(&tree, inner + BTREE_LINKS + 1, link & 0xFFFFFFFF, "numbers of entries before");
	check_damage(&tree, inner + BTREE_LINKS + 1, link + 1, "not the place of a node");
	check_damage(&tree, inner + BTREE_LINKS + 1, link & ~UINT64_C(0xFFFFFFFF), "not the place of a node");
	check_damage(&tree, inner + BTREE_LINKS + 1,
				 (link & ~UINT64_C(0xFFFFFFFF)) | (uint32_t) peek(inner + BTREE_LINKS), "is used twice");
	/* a node that is both free and in use, and one that is neither */
	CHECK(leaves->nfree >= 2);
	check_damage(&tree, (uint64_t *) leaves->free.at,
				 (peek((uint64_t *) leaves->free.at) & ~UINT64_C(0xFFFFFFFF)) | btree_link_ref(link),
				 "is used twice");
	leaves->nfree--;
	CHECK(gpu_btree_verify(&change, &tree, why, sizeof(why)) == GPU_DAMAGED);
	CHECK(strstr(why, "leaves") != NULL);
	leaves->nfree++;
	tree.level_n[0]++;
	CHECK(gpu_btree_verify(&change, &tree, why, sizeof(why)) == GPU_DAMAGED);
	tree.level_n[0]--;
	pool.fail_after = 0;
	CHECK(gpu_btree_verify(&change, &tree, why, sizeof(why)) == GPU_NO_MEMORY);
	pool.fail_after = -1;
	verify(&tree);
	gpu_tree_withdraw(&tree);
	CHECK(gpu_tree_drop(&change, &tree) == GPU_OK);
	CHECK(gpu_pool_used(&pool) == 0);
	free(m.e);
	passed += 3;
}

/* Building from arrays in any order. */
static void
test_build_at_once(int kind, int nwords, int64_t n, uint64_t range)
{
	uint64_t *words = (uint64_t *) gpu_host_alloc((size_t) (n + 1) * 3 * sizeof(uint64_t));
	bool ascending = test_below(2);
	GpuTree tree;
	Model m;

	CHECK(words != NULL);
	model_fill(&m, n, kind, nwords, range);
	/* t need not ascend where there are no ties */
	for (int64_t i = m.n; i > 1; i--)
	{
		int64_t j = (int64_t) test_below((uint64_t) i);
		GpudsEntry swap = m.e[i - 1];

		m.e[i - 1] = m.e[j];
		m.e[j] = swap;
	}
	for (int64_t i = 0; i < m.n; i++)
	{
		if (ascending)
			m.e[i].t = (uint64_t) i;
		words[i] = m.e[i].w0;
		words[m.n + i] = m.e[i].w1;
		words[2 * m.n + i] = m.e[i].t;
	}
	qsort(m.e, (size_t) m.n, sizeof(GpudsEntry), test_compare);
	CHECK(bench_build_unsorted(&change, &tree, words, nwords == 2 ? words + m.n : NULL, words + 2 * m.n, m.n,
							   50 + (uint32_t) test_below(51)) == GPU_OK);
	check_tree(&tree, &m, kind, range);
	gpu_tree_withdraw(&tree);
	CHECK(gpu_tree_drop(&change, &tree) == GPU_OK);
	CHECK(gpu_pool_used(&pool) == 0);
	gpu_host_free(words);
	free(m.e);
}

/*
 * Trees that deletes have left thin.
 */

/* Entries of the model in a random order, but for each eighth. */
static GpudsEntry *
scattered(const Model *m, int64_t *n)
{
	GpudsEntry *e = (GpudsEntry *) malloc((size_t) (m->n + 1) * sizeof(GpudsEntry));

	CHECK(e != NULL);
	*n = 0;
	for (int64_t i = 0; i < m->n; i++)
	{
		if (i % 8 != 5)
			e[(*n)++] = m->e[i];
	}
	for (int64_t i = *n; i > 1; i--)
	{
		int64_t j = (int64_t) test_below((uint64_t) i);
		GpudsEntry swap = e[i - 1];

		e[i - 1] = e[j];
		e[j] = swap;
	}
	return e;
}

/* Deletes or inserts n entries. */
static void
change_entries(GpuTree *tree, Model *m, const GpudsEntry *e, int64_t n, bool deletes)
{
	GpudsOp *ops = (GpudsOp *) malloc((size_t) n * sizeof(GpudsOp));

	CHECK(ops != NULL);
	for (int64_t i = 0; i < n; i++)
		ops[i] = GpudsOp{ e[i], (uint64_t) i << 1 | (deletes ? 1 : 0) };
	CHECK(apply(tree, m, ops, n) == GPU_OK);
	free(ops);
}

/* What the engine does after an apply; was the tree built anew? */
static bool
compact(GpuTree *tree, uint64_t oldest)
{
	uint32_t launches = change.stream.launches;
	uint64_t version = *gpu_tree_version(tree);
	bool done = gpu_btree_compact(&change, tree);

	CHECK(done == (*gpu_tree_version(tree) > version));
	CHECK(done || change.stream.launches == launches);
	gpu_tree_reclaim(&change, tree, oldest);
	if (done)
		verify(tree);
	CHECK(gpu_tree_bytes(tree) == gpu_pool_used(&pool));
	return done;
}

/* A tree of so many entries, and those that are to be deleted. */
static GpudsEntry *
load_wide(GpuTree *tree, Model *m, int64_t entries, int kind, int nwords, uint32_t fill_percent, int64_t *n)
{
	model_fill(m, entries, kind, nwords, UINT64_C(1) << 40);
	CHECK(load_filled(tree, m, nwords, fill_percent) == GPU_OK);
	/* whatever the fill that was asked for */
	CHECK(!compact(tree, UINT64_MAX));
	return scattered(m, n);
}

static void
drop(GpuTree *tree)
{
	gpu_tree_withdraw(tree);
	CHECK(gpu_tree_drop(&change, tree) == GPU_OK);
	CHECK(gpu_pool_used(&pool) == 0);
}

/* Seven of eight entries go, with or without a version that is held from before on, and come back. */
static void
test_compact(int64_t entries, int kind, int nwords, uint32_t fill_percent, bool holds)
{
	const uint64_t range = UINT64_C(1) << 40;
	Held held = {};
	uint64_t oldest = UINT64_MAX;
	uint64_t bytes;
	int times = 0;
	GpudsEntry *e;
	GpuTree tree;
	int64_t n;
	Model m;

	e = load_wide(&tree, &m, entries, kind, nwords, fill_percent, &n);
	bytes = gpu_tree_bytes(&tree);
	if (holds)
	{
		hold(&held, &tree, &m);
		oldest = held.version;
	}
	for (int64_t i = 0; i < n; i += MOST)
	{
		change_entries(&tree, &m, e + i, n - i < MOST ? n - i : MOST, true);
		if (compact(&tree, oldest))
		{
			times++;
			check_tree(&tree, &m, kind, range);
		}
	}
	check_tree(&tree, &m, kind, range);
	/* one time for each half and a little that goes; one time while the version is held */
	CHECK(holds ? times == 1 : times >= 1 && times <= 5);
	if (holds)
	{
		CHECK(gpu_tree_bytes(&tree) > bytes);
		check_view(&held.view, &held.model, kind, range);
		free(held.model.e);
		(void) compact(&tree, UINT64_MAX);
		/* what was in the way is gone now */
		(void) compact(&tree, UINT64_MAX);
	}
	CHECK(gpu_tree_bytes(&tree) <= (entries > WIDE ? bytes / 2 : bytes));
	check_tree(&tree, &m, kind, range);
	/* neither few operations nor inserts begin it again and again */
	times = 0;
	for (int64_t i = 0; i < 1000; i += 100)
	{
		change_entries(&tree, &m, e + i, 100, false);
		times += compact(&tree, UINT64_MAX);
		change_entries(&tree, &m, e + i, 100, true);
		times += compact(&tree, UINT64_MAX);
	}
	for (int64_t i = 0; i < n; i += MOST)
	{
		change_entries(&tree, &m, e + i, n - i < MOST ? n - i : MOST, false);
		times += compact(&tree, UINT64_MAX);
	}
	CHECK(times <= 1);
	check_tree(&tree, &m, kind, range);
	drop(&tree);
	free(m.e);
	free(e);
}

/* Whole leaves go, from left to right: memory goes back, and at last all but that of a small tree. */
static void
test_compact_empty(int nwords)
{
	GpuTree tree;
	GpudsEntry *e;
	uint64_t bytes;
	int times = 0;
	int64_t n;
	Model m;

	e = load_wide(&tree, &m, 2 * WIDE, KEYS_RANDOM, nwords, 70, &n);
	free(e);
	bytes = gpu_tree_bytes(&tree);
	while (m.n > 0)
	{
		change_entries(&tree, &m, m.e, m.n < MOST ? m.n : MOST, true);
		times += compact(&tree, UINT64_MAX);
	}
	CHECK(times >= 2 && times <= 10);
	CHECK(gpu_tree_bytes(&tree) <= bytes / 2);
	check_tree(&tree, &m, KEYS_RANDOM, 1);
	/* a small tree is left alone, however few entries its leaves have */
	for (int i = 0; i < 20; i++)
	{
		GpudsEntry x[300];

		for (GpudsEntry &entry : x)
			entry = test_entry(KEYS_RANDOM, nwords, UINT64_C(1) << 40);
		change_entries(&tree, &m, x, 300, false);
		CHECK(!compact(&tree, UINT64_MAX));
		change_entries(&tree, &m, x, i % 2 ? 300 : 290, true);
		CHECK(!compact(&tree, UINT64_MAX));
	}
	check_tree(&tree, &m, KEYS_RANDOM, 1);
	drop(&tree);
	free(m.e);
}

/* Memory runs out at every allocation of building a tree anew, which is tried again later. */
static void
test_compact_no_memory(int nwords, std::atomic<int64_t> *fail)
{
	int failures = 0;
	int64_t changed = 0;
	int64_t at = 0;
	GpudsEntry *e;
	GpuTree tree;
	int64_t n;
	Model m;

	e = load_wide(&tree, &m, 2 * WIDE, KEYS_RANDOM, nwords, 90, &n);
	for (; at < n && !gpu_btree_wasteful(&tree); at += MOST)
		change_entries(&tree, &m, e + at, MOST, true);
	gpu_tree_reclaim(&change, &tree, UINT64_MAX);
	CHECK(at < n - 3 * MOST);
	for (int after = 0; after == failures; after++)
	{
		size_t used = gpu_pool_used(&pool);

		tree.compact_rest = 0;
		*fail = after;
		failures += !gpu_btree_compact(&change, &tree);
		*fail = -1;
		if (failures > after)
			CHECK(gpu_pool_used(&pool) == used && tree.compact_rest > 0);
		verify(&tree);
	}
	CHECK(failures >= (fail == &pool.fail_after ? 5 : 3));
	CHECK(tree.replaced.nkinds > 0);
	(void) compact(&tree, UINT64_MAX);
	check_tree(&tree, &m, KEYS_RANDOM, 1);
	/* after a failure it rests for a while, whatever memory there is */
	for (; at < n && !gpu_btree_wasteful(&tree); at += MOST)
		change_entries(&tree, &m, e + at, n - at < MOST ? n - at : MOST, true);
	*fail = 0;
	CHECK(!gpu_btree_compact(&change, &tree));
	CHECK(*fail < 0);
	for (int64_t i = 0; !compact(&tree, UINT64_MAX); i = (i + 500) % 10000)
	{
		change_entries(&tree, &m, e + i, 500, false);
		change_entries(&tree, &m, e + i, 500, true);
		changed += 1000;
	}
	CHECK(changed >= 4000 && changed < 40000);
	check_tree(&tree, &m, KEYS_RANDOM, 1);
	drop(&tree);
	free(m.e);
	free(e);
	passed += failures;
}

/* What need not be done in every round. */
static void
test_compact_all(void)
{
	test_compact(3 * WIDE, KEYS_RANDOM, 2, 90, true);
	for (int nwords = 1; nwords <= 2; nwords++)
	{
		test_compact_empty(nwords);
		test_compact_no_memory(nwords, &pool.fail_after);
		test_compact_no_memory(nwords, &pool.fail_list);
	}
}

/* Memory runs out at every allocation there is: the device's, or the process's for lists. */
static void
test_no_memory(int kind, int nwords, std::atomic<int64_t> *fail)
{
	uint64_t range = 20000;
	GpudsOp *ops = (GpudsOp *) malloc((size_t) MOST * sizeof(GpudsOp));
	GpuStatus status = GPU_NO_MEMORY;
	int failures = 0;
	GpuTree tree;
	Model m;

	CHECK(ops != NULL);
	model_fill(&m, 8000, kind, nwords, range);
	for (int after = 0; status != GPU_OK; after++)
	{
		*fail = after;
		status = load(&tree, &m, nwords);
		CHECK(status == GPU_OK || status == GPU_NO_MEMORY);
		CHECK((gpu_pool_used(&pool) == 0) == (status != GPU_OK));
		failures += status != GPU_OK;
	}
	CHECK(failures >= (fail == &pool.fail_after ? 3 : 1));
	for (int step = 0; step < 4; step++)
	{
		status = GPU_NO_MEMORY;
		for (int after = 0; status != GPU_OK; after++)
		{
			int64_t n = make_batch(ops, 4000, step % 2 ? BATCH_RANDOM : BATCH_ASCENDING, &m, kind, nwords,
								   range);

			*fail = after;
			status = apply(&tree, &m, ops, n);
			CHECK(status == GPU_OK || status == GPU_NO_MEMORY);
			*fail = -1;
			check_tree(&tree, &m, kind, range);
			CHECK(gpu_tree_bytes(&tree) == gpu_pool_used(&pool));
			failures += status != GPU_OK;
		}
		if (step < 3)
			gpu_tree_reclaim(&change, &tree, UINT64_MAX);
	}
	*fail = -1;
	gpu_tree_withdraw(&tree);
	CHECK(gpu_tree_drop(&change, &tree) == GPU_OK);
	CHECK(gpu_pool_used(&pool) == 0);
	free(m.e);
	free(ops);
	passed += failures;
}

/* A tree that says it has almost as many entries as one can have. */
static void
test_too_large(int nwords)
{
	const int64_t sizes[] = { 10, 500, GPU_SMALL_OPS + 500 };
	const uint64_t range = 20000;
	GpudsOp *ops = (GpudsOp *) malloc((size_t) MOST * sizeof(GpudsOp));
	GpuTree tree;
	Model m;

	CHECK(ops != NULL);
	model_fill(&m, 3000, KEYS_DENSE, nwords, range);
	CHECK(load(&tree, &m, nwords) == GPU_OK);
	for (int64_t n : sizes)
	{
		size_t bytes = gpu_tree_bytes(&tree);
		uint64_t entries = tree.entries;

		/* new ones */
		for (int64_t i = 0; i < n; i++)
		{
			ops[i].e = test_entry(KEYS_DENSE, nwords, 1);
			ops[i].e.w0 = range + (uint64_t) i;
			ops[i].order = (uint64_t) i << 1;
		}
		tree.entries = GPU_MAX_ENTRIES - (uint64_t) n + 1;
		CHECK(apply(&tree, &m, ops, n) == GPU_TOO_LARGE);
		CHECK(gpu_tree_bytes(&tree) == bytes);
		/* there is room if others go */
		for (int64_t i = 0; i < n; i += 2)
		{
			ops[i].e = m.e[i];
			ops[i].order |= 1;
		}
		CHECK(apply(&tree, &m, ops, n) == GPU_OK);
		CHECK(tree.entries == GPU_MAX_ENTRIES - (uint64_t) n + 1);
		gpu_tree_set_head(&tree, tree.head, entries);
		check_tree(&tree, &m, KEYS_DENSE, range);
		/* and back again, so that the next turn finds none of them */
		for (int64_t i = 0; i < n; i++)
			ops[i].order ^= 1;
		CHECK(apply(&tree, &m, ops, n) == GPU_OK);
		check_tree(&tree, &m, KEYS_DENSE, range);
	}
	gpu_tree_withdraw(&tree);
	CHECK(gpu_tree_drop(&change, &tree) == GPU_OK);
	/* a load */
	CHECK(gpu_btree_load_begin(&change, &tree, (uint32_t) nwords, 90) == GPU_OK);
	tree.load.entries = GPU_MAX_ENTRIES - 9;
	CHECK(gpu_btree_load_add(&change, &tree, staging, 10) == GPU_TOO_LARGE);
	CHECK(gpu_tree_drop(&change, &tree) == GPU_OK);
	CHECK(gpu_pool_used(&pool) == 0);
	free(m.e);
	free(ops);
	passed++;
}

int
main(int argc, char **argv)
{
	bool small = argc > 1 && strcmp(argv[1], "small") == 0;
	int rounds = argc > 1 && !small ? atoi(argv[1]) : 3;
	char why[200];
	GpuCard card;

	if (argc > 2)
		test_seed = (uint64_t) strtoull(argv[2], NULL, 10);
	if (!gpu_card(0, &card, why, sizeof(why)))
	{
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	CHECK(gpu_use(0));
	CHECK(gpu_pool_open(&pool, (size_t) 600 << 20));
	CHECK(gpu_btree_change_open(&change, &pool));
	staging = (GpudsEntry *) gpu_host_alloc((size_t) MOST * sizeof(GpudsOp));
	ranks = (uint64_t *) gpu_host_alloc((size_t) MOST * sizeof(uint64_t));
#ifdef GPU_EMULATED
	there = (GpudsEntry *) gpu_host_alloc((size_t) MOST * sizeof(GpudsOp));
#else
	there = (GpudsEntry *) gpu_device_address(staging);
#endif
	CHECK(staging != NULL && ranks != NULL && there != NULL);
	for (int round = 0; round < (small ? 1 : rounds); round++)
	{
		for (int kind = 0; kind < KEYS_KINDS; kind++)
		{
			for (int nwords = 1; nwords <= 2; nwords++)
			{
				test_random_changes(kind, nwords, small ? 3 : 12, small ? 300 : MOST / 4);
				test_build_at_once(kind, nwords, small ? 200 : 10000, 1 + test_below(100000));
				if (!small)
					test_random_changes(kind, nwords, 20, 100);
			}
		}
		for (int nwords = 1; nwords <= 2; nwords++)
			test_damage(nwords);
		for (int nwords = 1; nwords <= 2 && !small; nwords++)
		{
			test_no_memory((int) test_below(KEYS_KINDS), nwords, &pool.fail_after);
			test_no_memory((int) test_below(KEYS_KINDS), nwords, &pool.fail_list);
			test_too_large(nwords);
		}
		if (!small)
			test_compact(WIDE, (int) test_below(KEYS_KINDS), 1 + (int) test_below(2),
						 test_below(2) ? 50 : 100, test_below(2));
		if (!small && round == 0)
			test_compact_all();
	}
#ifdef GPU_EMULATED
	gpu_host_free(there);
#endif
	gpu_host_free(ranks);
	gpu_host_free(staging);
	gpu_change_close(&change);
	gpu_pool_close(&pool);
	printf("%d passed, 0 failed\n", passed);
	return 0;
}
