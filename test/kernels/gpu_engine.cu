/*-------------------------------------------------------------------------
 *
 * gpu_engine.cu
 *	  The engine as its worker drives it: many requests under way at once, loads,
 *	  changes, drops and scans of both kinds beside each other, versions and guards;
 *	  counts whose parts are not in place; memory of the process that runs out, closing
 *	  while a drop waits, and in the end a device that is lost and one that hangs.
 *	  Runs on a GPU, or compiled with GPU_EMULATED on the CPU, where the thread
 *	  sanitizer has its eye on it.
 *
 *	  usage: gpu_engine [small | hang | rounds [seed]]
 *
 * A device that was lost cannot be opened again by the process, but an emulated
 * one: so on a GPU what happens when it hangs is a run of its own.
 *
 * A scan may see any version from the one at its handing over to the one at its
 * end, so a tree's versions are kept for as long as a scan of it is under way.
 *
 *-------------------------------------------------------------------------
 */
/* Trees are B+trees, skip lists, AVL trees and sorted arrays, in turn under the same numbers. */
#define GPUDS_INJECTION_POINTS

#include "common.h"
#include "kernels/engine/engine.cu"

#define TREES 4
#define SENDERS 24 /* requests under way at most, a scan each */
#define PIECE 65536
/* Answers of a round; under the thread sanitizer each takes six times as long */
#ifdef __SANITIZE_THREAD__
#define ANSWERS 5000
#else
#define ANSWERS 20000
#endif
#define MOST 1500     /* operations of a batch, entries of a load */
#define VERSIONS 4096 /* that a tree has between two drops */

/* What closing may take. */
#define PATIENCE_NS UINT64_C(60000000000)

/* A sender's staging memory. */
struct Mailbox
{
	GpuRequest request;
	unsigned char input[PIECE];
	unsigned char output[PIECE];
};

/* What all senders share, with the staging memory. */
struct Staging
{
	uint64_t guard[TREES]; /* 0, or serial of the tree's life */
	Mailbox scan[SENDERS];
	Mailbox change[TREES];
};

struct Tree
{
	int nwords;
	int kind;
	uint64_t serial;
	Model *version; /* of this life */
	int nversions;  /* 0: there is no tree */
	uint64_t view;  /* serial of what readers see */
	bool changing;  /* the request in its mailbox is under way */
	Model next;     /* what it makes of the last version */
	int64_t inserted;
	int64_t deleted;
	int scans; /* under way */
};

struct Sent
{
	int tree;    /* -1: nothing is under way */
	bool kept;   /* handed over by small, which had no room yet */
	int version; /* at the handing over */
	uint64_t serial;
	GpudsInterval interval;
};

static const uint32_t structures[] = { GPUDS_STRUCTURE_BTREE, GPUDS_STRUCTURE_SKIPLIST, GPUDS_STRUCTURE_AVL,
									   GPUDS_STRUCTURE_ARRAY };
#define STRUCTURE_KINDS (sizeof(structures) / sizeof(structures[0]))
static uint64_t structure_kinds = STRUCTURE_KINDS; /* the first ones, of which loads choose */
static Staging *staging;
static const GpuEngineApi *api;
static GpuEngine *engine;
static Tree tree[TREES];
static Sent sent[SENDERS];
static GpuEngineOptions options;
static int64_t passed = 0;
static int64_t withdrawn = 0;

#ifdef GPU_EMULATED
/* So many allocations of the process's memory succeed, the next one fails; < 0: none fails. */
static std::atomic<int64_t> new_fails_after(-1);

void *
operator new(size_t bytes)
{
	int64_t after = new_fails_after;
	void *p;

	while (after >= 0 && !new_fails_after.compare_exchange_weak(after, after - 1))
		;
	p = after == 0 ? NULL : malloc(bytes);
	if (p == NULL)
		throw std::bad_alloc();
	return p;
}

/* Who asks in this way can do without. */
void *
operator new(size_t bytes, const std::nothrow_t &) noexcept
{
	return malloc(bytes);
}

void
operator delete(void *p) noexcept
{
	free(p);
}

void
operator delete(void *p, size_t) noexcept
{
	free(p);
}
#endif

static uint64_t
offset(const void *p)
{
	return (uint64_t) ((const unsigned char *) p - (const unsigned char *) staging);
}

static bool
is_done(const GpuRequest *r)
{
	return __atomic_load_n(&r->done, __ATOMIC_ACQUIRE) == 1;
}

static void
submit_change(int t, GpuRequestKind kind, int64_t n)
{
	GpuRequest *r = &staging->change[t].request;

	memset((void *) r, 0, sizeof(*r));
	r->kind = kind;
	r->tree = (uint32_t) t;
	r->structure = structures[test_below(structure_kinds)];
	r->nwords = (uint32_t) tree[t].nwords;
	r->fill_percent = 50 + (uint32_t) test_below(51);
	r->input = offset(staging->change[t].input);
	r->output = offset(staging->change[t].output);
	r->n = n;
	r->cap = PIECE;
	tree[t].changing = true;
	api->submit(engine, r);
}

/* Waits for an answer, which comes unless the device is lost. */
static void
await_answer(const GpuRequest *r)
{
	char why[200];

	while (!is_done(r))
	{
		api->poll(engine);
		CHECK(!api->lost(engine, why, sizeof(why)));
	}
}

/* Waits for a tree's change. */
static void
await_change(int t, uint32_t status)
{
	await_answer(&staging->change[t].request);
	CHECK(staging->change[t].request.status == status);
	tree[t].changing = false;
}

/* What readers see of a tree, which is not changing, has another serial than before if it differs. */
static void
check_serial(int t, bool differs)
{
	GpudsView view = {};

	CHECK(gpu_engine_tree(engine, (uint32_t) t)->view(&engine->pool, &view));
	CHECK(!differs || view.serial != tree[t].view);
	tree[t].view = view.serial;
}

static void
load(int t)
{
	GpudsEntry *e = (GpudsEntry *) staging->change[t].input;
	Model m;

	tree[t].nwords = 1 + (int) test_below(2);
	tree[t].kind = (int) test_below(KEYS_KINDS);
	model_fill(&m, (int64_t) test_below(MOST), tree[t].kind, tree[t].nwords, 2 * MOST);
	submit_change(t, GPU_LOAD_BEGIN, 0);
	await_change(t, GPU_OK);
	for (int64_t done = 0; done < m.n;)
	{
		int64_t n = 1 + (int64_t) test_below((uint64_t) (m.n - done));

		memcpy(e, m.e + done, (size_t) n * sizeof(GpudsEntry));
		submit_change(t, GPU_LOAD_ADD, n);
		await_change(t, GPU_OK);
		done += n;
	}
	submit_change(t, GPU_LOAD_END, 0);
	await_change(t, GPU_OK);
	CHECK(staging->change[t].request.entries == (uint64_t) m.n);
	check_serial(t, false);
	tree[t].version[0] = m;
	tree[t].nversions = 1;
	__atomic_store_n(&staging->guard[t], ++tree[t].serial, __ATOMIC_RELEASE);
}

/* Gives a tree up while scans of it may be under way, as an eviction does. */
static void
drop(int t)
{
	__atomic_store_n(&staging->guard[t], 0, __ATOMIC_RELEASE);
	submit_change(t, GPU_DROP, 0);
	await_change(t, GPU_OK);
	CHECK(staging->change[t].request.bytes == 0);
}

static void
forget_versions(int t)
{
	for (int v = 0; v < tree[t].nversions; v++)
		free(tree[t].version[v].e);
	tree[t].nversions = 0;
}

static void
start_apply(int t)
{
	static GpudsOp ops[MOST];
	static GpudsOp scratch[MOST];
	const Model *last = &tree[t].version[tree[t].nversions - 1];
	int64_t n = 1 + (int64_t) test_below(test_below(4) == 0 ? MOST : 40);
	int bias = (int) test_below(5);

	for (int64_t i = 0; i < n; i++)
	{
		bool there = last->n > 0 && test_below(2) == 0;

		ops[i].e = there ? last->e[test_below((uint64_t) last->n)]
						 : test_entry(tree[t].kind, tree[t].nwords, 2 * MOST);
		ops[i].order = (uint64_t) i << 1 | (test_below(5) < (uint64_t) bias);
	}
	memcpy(staging->change[t].input, ops, (size_t) n * sizeof(GpudsOp));
	submit_change(t, GPU_APPLY, n);
	sort_ops(ops, scratch, n);
	n = sort_last_ops(ops, n);
	model_init(&tree[t].next, last->n);
	memcpy(tree[t].next.e, last->e, (size_t) last->n * sizeof(GpudsEntry));
	tree[t].next.n = last->n;
	model_apply(&tree[t].next, ops, n, &tree[t].inserted, &tree[t].deleted);
}

static void
finish_apply(int t)
{
	const GpuRequest *r = &staging->change[t].request;

	CHECK(r->status == GPU_OK);
	CHECK(r->found == tree[t].inserted && r->deleted == tree[t].deleted);
	CHECK(r->entries == (uint64_t) tree[t].next.n);
	check_serial(t, r->found + r->deleted > 0);
	CHECK(tree[t].nversions < VERSIONS);
	tree[t].version[tree[t].nversions++] = tree[t].next;
	tree[t].changing = false;
	passed++;
}

/* Makes a scan a count, with a map and rows of some of the pages that the entries of a model are on. */
static void
make_count(Mailbox *m, const Model *model)
{
	GpuRequest *r = &m->request;
	unsigned char *map = m->input + sizeof(GpudsInterval);
	uint32_t *places = (uint32_t *) (m->input + PIECE / 8);
	uint32_t *pages = (uint32_t *) (m->input + PIECE / 4);
	PageRows rows = test_rows(places, pages, PIECE / 2, model);

	r->form = GPU_COUNT;
	r->forward = true;
	r->next = 0;
	r->cap = 1 + (int64_t) test_below(test_below(2) ? 8 : PIECE / sizeof(uint64_t));
	r->map = offset(map);
	r->map_bytes = test_map(map, 1024);
	r->row_places = offset(places);
	r->row_pages = offset(pages);
	r->row_slots = rows.slots;
	r->row_words = rows.words;
	r->row_npages = rows.npages;
}

/* One interval, whose answer fits the output, or a count may find to be too long. */
static void
start_scan(int i, bool small)
{
	Mailbox *m = &staging->scan[i];
	GpuRequest *r = &m->request;
	int t = (int) test_below(TREES);
	GpudsInterval iv;

	if (tree[t].nversions == 0)
		return;
	iv.lo = test_entry(tree[t].kind, tree[t].nwords, 2 * MOST);
	iv.hi = test_below(2) ? iv.lo : test_entry(tree[t].kind, tree[t].nwords, 2 * MOST);
	if (entry_less(&iv.hi, &iv.lo))
	{
		GpudsEntry swap = iv.lo;

		iv.lo = iv.hi;
		iv.hi = swap;
	}
	memset((void *) r, 0, sizeof(*r));
	memcpy(m->input, &iv, sizeof(iv));
	r->kind = GPU_SCAN;
	r->form = GPU_ENTRIES;
	r->tree = (uint32_t) t;
	r->forward = test_below(2) == 0;
	r->guarded = true;
	r->guard = &staging->guard[t];
	r->expected = tree[t].serial;
	r->input = offset(m->input);
	r->output = offset(m->output);
	r->n = 1;
	r->next = r->forward ? 0 : 1;
	r->cap = small || test_below(3) ? 1 + (int64_t) test_below(GPU_SMALL_ENTRIES)
									: PIECE / (int64_t) sizeof(GpudsEntry);
	if (!small && test_below(3) == 0)
		make_count(m, &tree[t].version[tree[t].nversions - 1]);
	sent[i].tree = t;
	sent[i].serial = tree[t].serial;
	sent[i].version = tree[t].nversions - 1;
	sent[i].interval = iv;
	sent[i].kept = gpu_is_small(r);
	tree[t].scans++;
	if (!sent[i].kept)
		api->submit(engine, r);
}

static int
compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *) a;
	uint64_t y = *(const uint64_t *) b;

	return (x > y) - (x < y);
}

/* The rows that a count was sent with. */
static PageRows
sent_rows(const Mailbox *mailbox)
{
	const GpuRequest *r = &mailbox->request;
	const unsigned char *base = (const unsigned char *) staging;
	PageRows rows = { (const uint32_t *) (base + r->row_places), (const uint32_t *) (base + r->row_pages),
					  r->row_slots, r->row_words, r->row_npages };

	return rows;
}

/* Is that the count of these entries? */
static bool
is_count(const GpudsEntry *e, int64_t n, const Mailbox *mailbox)
{
	static uint64_t tids[PIECE];
	const GpuRequest *r = &mailbox->request;
	const PageRows rows = sent_rows(mailbox);
	int64_t counted = 0;
	int64_t others = 0;

	for (int64_t i = 0; i < n; i++)
	{
		PageRow row = test_row(&e[i], mailbox->input + sizeof(GpudsInterval), r->map_bytes, &rows);

		counted += row == PAGE_ROW_SEEN;
		if (row == PAGE_ROW_UNKNOWN)
			tids[others++] = e[i].t & ENTRY_TID_MASK;
	}
	if (r->found != others || r->counted != counted || r->next != (others > r->cap ? 0 : 1))
		return false;
	qsort(tids, (size_t) others, sizeof(uint64_t), compare_u64);
	return others > r->cap || memcmp(tids, mailbox->output, (size_t) others * sizeof(uint64_t)) == 0;
}

static bool
is_answer(const Model *m, const Mailbox *mailbox, const GpudsInterval *iv)
{
	const GpuRequest *r = &mailbox->request;
	const GpudsEntry *out = (const GpudsEntry *) mailbox->output;
	int64_t from = model_rank(m, &iv->lo);
	int64_t to = model_rank(m, &iv->hi);
	int64_t n;

	if (to < m->n && entry_equal(&m->e[to], &iv->hi))
		to++;
	if (r->form == GPU_COUNT)
		return is_count(m->e + from, to - from, mailbox);
	n = to - from < r->cap ? to - from : r->cap;
	if (r->found != n)
		return false;
	for (int64_t i = 0; i < n; i++)
	{
		if (!entry_equal(&out[i], &m->e[r->forward ? from + i : to - 1 - i]))
			return false;
	}
	return true;
}

static void
finish_scan(int i)
{
	const Mailbox *m = &staging->scan[i];
	const Tree *of = &tree[sent[i].tree];
	bool right = false;

	if (m->request.status == GPU_WITHDRAWN)
	{
		/* only if the tree was dropped since */
		CHECK(of->serial != sent[i].serial || staging->guard[sent[i].tree] != sent[i].serial);
		withdrawn++;
	}
	else
	{
		CHECK(m->request.status == GPU_OK && of->serial == sent[i].serial);
		for (int v = sent[i].version; v < of->nversions && !right; v++)
			right = is_answer(&of->version[v], m, &sent[i].interval);
		/* published, but its request has not been looked at */
		if (!right && of->changing)
			right = is_answer(&of->next, m, &sent[i].interval);
		CHECK(right);
	}
	tree[sent[i].tree].scans--;
	sent[i].tree = -1;
	passed++;
}

/* Hands over the small scans that wait. */
static void
post_kept(void)
{
	GpuRequest *requests[GPU_SMALL_BATCH];
	int number[GPU_SMALL_BATCH];
	int n = 0;
	int took;

	for (int i = 0; i < SENDERS; i++)
	{
		if (sent[i].tree >= 0 && sent[i].kept)
		{
			number[n] = i;
			requests[n++] = &staging->scan[i].request;
		}
	}
	took = n > 0 ? api->small(engine, requests, n) : 0;
	for (int i = 0; i < took; i++)
		sent[number[i]].kept = false;
}

static void
look(void)
{
	api->poll(engine);
	for (int i = 0; i < SENDERS; i++)
	{
		if (sent[i].tree >= 0 && !sent[i].kept && is_done(&staging->scan[i].request))
			finish_scan(i);
	}
	for (int t = 0; t < TREES; t++)
	{
		if (tree[t].changing && is_done(&staging->change[t].request))
			finish_apply(t);
	}
}

static void
settle(void)
{
	bool busy;

	do
	{
		busy = false;
		post_kept();
		look();
		for (int i = 0; i < SENDERS; i++)
			busy |= sent[i].tree >= 0;
		for (int t = 0; t < TREES; t++)
			busy |= tree[t].changing;
	} while (busy);
}

/* Until so many answers have been compared. */
static void
run(int64_t answers)
{
	while (passed < answers)
	{
		int t = (int) test_below(TREES);

		for (int i = 0; i < SENDERS; i++)
		{
			if (sent[i].tree < 0 && test_below(3) == 0)
				start_scan(i, false);
		}
		post_kept();
		if (tree[t].nversions == 0)
			load(t);
		else if (!tree[t].changing && (tree[t].nversions == VERSIONS || test_below(100) == 0))
		{
			drop(t);
			/* those that are under way are still compared */
			settle();
			forget_versions(t);
		}
		else if (!tree[t].changing)
			start_apply(t);
		look();
	}
	settle();
	for (int t = 0; t < TREES; t++)
	{
		if (tree[t].nversions == 0)
			continue;
		submit_change(t, GPU_VERIFY, 0);
		await_change(t, GPU_OK);
		passed++;
	}
}

/* Opens the engine; all trees are empty. */
static void
open_engine(void)
{
	char why[200] = "";
	bool hopeless;

	engine = api->open(&options, &hopeless, why, sizeof(why));
	if (engine == NULL)
	{
		fprintf(stderr, "%s\n", why);
		exit(1);
	}
	for (int t = 0; t < TREES; t++)
	{
		forget_versions(t);
		tree[t].changing = false;
		tree[t].scans = 0;
		staging->guard[t] = 0;
	}
	for (int i = 0; i < SENDERS; i++)
		sent[i].tree = -1;
}

#include "gpu_engine_cases.h"

int
main(int argc, char **argv)
{
	bool few = argc > 1 && strcmp(argv[1], "small") == 0;
	bool hang = argc > 1 && strcmp(argv[1], "hang") == 0;
	int64_t answers = few ? 300 : ANSWERS * (argc > 1 ? atoi(argv[1]) : 5);
	GpuEngineInfo info;

	test_seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	staging = (Staging *) aligned_alloc(4096, (sizeof(Staging) + 4095) / 4096 * 4096);
	CHECK(staging != NULL);
	memset((void *) staging, 0, sizeof(Staging));
	for (int t = 0; t < TREES; t++)
	{
		tree[t].version = (Model *) malloc(VERSIONS * sizeof(Model));
		CHECK(tree[t].version != NULL);
	}
	options.memory = (size_t) 256 << 20;
	options.staging = staging;
	options.staging_bytes = (sizeof(Staging) + 4095) / 4096 * 4096;
	options.piece_bytes = PIECE;
	options.emulate_failures = true;
	api = gpuds_gpu_engine();
	CHECK(api->abi == GPU_ENGINE_ABI);
	open_engine();
	if (!hang)
	{
		run(answers);
		for (int t = 0; t < TREES; t++)
		{
			if (tree[t].nversions > 0)
				drop(t);
			forget_versions(t);
		}
	}
	api->info(engine, &info);
	CHECK(info.memory_used == 0);
	CHECK(api->close(engine, PATIENCE_NS));
	if (!hang)
	{
		close_beside_drop();
		no_host_memory();
		no_structure();
		misplaced();
		too_large();
		give_load_up();
		hang_small();
		/* the sanitizer for kernels would report the fault as a finding */
		if (!few)
			lose();
	}
#ifdef GPU_EMULATED
	hang = !few;
#endif
	if (hang)
		hang_kernel();
	printf("%s, %lld scans met a drop\n%lld passed, 0 failed\n", info.name, (long long) withdrawn,
		   (long long) passed);
	fflush(stdout);
	if (hang)
		_exit(0);
	for (int t = 0; t < TREES; t++)
	{
		forget_versions(t);
		free(tree[t].version);
	}
	free(staging);
	return 0;
}
