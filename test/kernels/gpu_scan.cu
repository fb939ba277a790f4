/*-------------------------------------------------------------------------
 *
 * gpu_scan.cu
 *	  Scan requests of both kinds, against a sorted array: entries and sorted
 *	  TIDs, both directions, intervals and points, stopping and going on anywhere;
 *	  counts and sums, also by groups, by maps of all-visible pages and by rows; joins of any two trees;
 *	  intervals in no order where that makes no difference.
 *	  Runs on a GPU, or compiled with GPU_EMULATED on the CPU.
 *
 *	  usage: gpu_scan [small | rounds [seed]]
 *
 * small is for compute-sanitizer.
 *
 *-------------------------------------------------------------------------
 */
/* Trees are B+trees, sorted arrays and skip lists. */
#define GPUDS_INJECTION_POINTS

#include "kernels/runtime/scan.h"
#include "kernels/engine/persistent.h"
#include "tree.h"

#define PIECE 65536
#define REQUESTS 40

/* Staging memory of a request: the request itself, its input, its output. */
struct Slot
{
	GpuRequest request;
	unsigned char input[PIECE];
	unsigned char output[PIECE];
};

/* A scan in progress, and how much of its answer has come. */
struct Progress
{
	GpudsInterval *intervals; /* in full, also of points */
	int64_t n;
	int64_t interval; /* where the next entry comes from, in scan order ... */
	int64_t entry;    /* ... and which of its entries that is */
	bool ended;
};

/* What a count is told of heap pages. */
struct Visible
{
	const unsigned char *map;
	uint64_t map_bytes;
	PageRows rows;
};

static GpuScanStream large;
static GpuPersistent persistent;
static GpuPool pool;                /* of skip lists ... */
static GpuChange change;            /* ... and what makes them */
static unsigned char *device_slots; /* slots, as the device sees them */
static Slot *slots;
static int passed = 0;

#define POOL_BYTES ((size_t) 256 << 20)
#define LOAD_ENTRIES (PIECE / (int64_t) sizeof(GpudsEntry))

static int
compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *) a;
	uint64_t y = *(const uint64_t *) b;

	return (x > y) - (x < y);
}

/* Puts the intervals or points of a scan in no order. */
static void
shuffle(Slot *slot, Progress *p)
{
	GpuRequest *r = &slot->request;
	GpudsInterval *intervals = (GpudsInterval *) slot->input;
	uint64_t *points = (uint64_t *) (intervals + 1);

	for (int64_t i = p->n - 1; i > 0; i--)
	{
		int64_t other = (int64_t) test_below((uint64_t) i + 1);
		GpudsInterval interval = p->intervals[i];

		p->intervals[i] = p->intervals[other];
		p->intervals[other] = interval;
		if (r->points)
		{
			points[i] = p->intervals[i].lo.w0;
			points[other] = p->intervals[other].lo.w0;
		}
	}
	if (!r->points)
		memcpy(intervals, p->intervals, (size_t) p->n * sizeof(GpudsInterval));
}

/* Puts the points of a scan in no order, some of them twice, which count once. */
static void
repeat_points(Slot *slot, const Progress *p)
{
	GpuRequest *r = &slot->request;
	uint64_t *points = (uint64_t *) (slot->input + sizeof(GpudsInterval));

	r->unsorted = true;
	for (int64_t i = 0; i < p->n; i++)
	{
		if (test_below(2))
			points[r->n++] = p->intervals[test_below((uint64_t) p->n)].lo.w0;
	}
	for (int64_t i = r->n - 1; i > 0; i--)
	{
		int64_t other = (int64_t) test_below((uint64_t) i + 1);
		uint64_t point = points[i];

		points[i] = points[other];
		points[other] = point;
	}
}

/* Lets each interval of a scan have one key only. */
static void
only_single_keys(Slot *slot, Progress *p)
{
	if (slot->request.points)
	{
		GpudsInterval *frame = (GpudsInterval *) slot->input;

		frame->hi.w1 = frame->lo.w1;
	}
	for (int64_t i = 0; i < p->n; i++)
	{
		GpudsInterval *interval = &p->intervals[i];

		if (interval->lo.w0 != interval->hi.w0 || interval->lo.w1 != interval->hi.w1)
			interval->hi.t = UINT64_MAX;
		interval->hi.w0 = interval->lo.w0;
		interval->hi.w1 = interval->lo.w1;
	}
	if (!slot->request.points)
		memcpy(slot->input, p->intervals, (size_t) p->n * sizeof(GpudsInterval));
}

/* A random scan into a slot. */
static void
start(Slot *slot, Progress *p, const Model *m, int kind, int nwords, uint64_t range, int64_t most)
{
	GpuRequest *r = &slot->request;

	memset((void *) slot, 0xA5, sizeof(*slot));
	memset((void *) r, 0, sizeof(*r));
	r->kind = GPU_SCAN;
	r->forward = test_below(2);
	r->points = test_below(3) == 0;
	r->input = (uint64_t) (slot->input - (unsigned char *) slots);
	r->output = (uint64_t) (slot->output - (unsigned char *) slots);
	p->intervals = (GpudsInterval *) malloc((size_t) most * sizeof(GpudsInterval));
	CHECK(p->intervals != NULL);
	if (r->points)
	{
		GpudsInterval frame = { { 0, 0, test_below(2) ? 0 : test_random() },
								{ 0, nwords == 2 ? UINT64_MAX : 0, UINT64_MAX } };
		uint64_t *points = (uint64_t *) (slot->input + sizeof(frame));
		int64_t asked = 1 + (int64_t) test_below((uint64_t) most);

		for (int64_t i = 0; i < asked; i++)
			points[i] = test_bound(m, kind, nwords, range).w0;
		qsort(points, (size_t) asked, sizeof(uint64_t), compare_u64);
		p->n = 0;
		for (int64_t i = 0; i < asked; i++)
		{
			if (i > 0 && points[i] == points[p->n - 1])
				continue;
			points[p->n] = points[i];
			p->intervals[p->n] = frame;
			p->intervals[p->n].lo.w0 = p->intervals[p->n].hi.w0 = points[i];
			p->n++;
		}
		memcpy(slot->input, &frame, sizeof(frame));
	}
	else
	{
		p->n = test_intervals(m, p->intervals, (int64_t) test_below((uint64_t) most / 2 + 1), kind, nwords,
							  range);
		memcpy(slot->input, p->intervals, (size_t) p->n * sizeof(GpudsInterval));
	}
	r->n = p->n;
	r->next = r->forward ? 0 : p->n;
	p->interval = p->entry = 0;
	p->ended = false;
}

/* The model's next entry of a scan; false: there is none. */
static bool
next_entry(Progress *p, const Model *m, bool forward, GpudsEntry *e)
{
	for (; p->interval < p->n; p->interval++, p->entry = 0)
	{
		int64_t first;
		int64_t inside = test_inside(m, &p->intervals[forward ? p->interval : p->n - 1 - p->interval],
									 &first);

		if (p->entry < inside)
		{
			*e = m->e[forward ? first + p->entry : first + inside - 1 - p->entry];
			p->entry++;
			return true;
		}
	}
	return false;
}

/* Compares what a request has found with the model. */
static void
check(Slot *slot, Progress *p, const Model *m)
{
	const GpuRequest *r = &slot->request;
	const GpudsEntry *out = (const GpudsEntry *) slot->output;
	const uint64_t *got = (const uint64_t *) slot->output;
	uint64_t *tids = (uint64_t *) malloc((size_t) r->cap * sizeof(uint64_t));
	int64_t n = 0;
	GpudsEntry e;

	CHECK(tids != NULL && r->status == GPU_OK && r->found >= 0 && r->found <= r->cap);
	while (n < r->cap && next_entry(p, m, r->forward, &e))
	{
		if (r->form == GPU_ENTRIES)
			CHECK(n < r->found && entry_equal(&out[n], &e));
		tids[n++] = e.t & ENTRY_TID_MASK;
	}
	CHECK(n == r->found);
	if (r->form == GPU_SORTED_TIDS)
	{
		qsort(tids, (size_t) n, sizeof(uint64_t), compare_u64);
		CHECK(memcmp(tids, got, (size_t) n * sizeof(uint64_t)) == 0);
		CHECK(got[n] == UINT64_C(0xA5A5A5A5A5A5A5A5) || r->cap > n);
	}
	free(tids);
	p->ended = n < r->cap;
	CHECK(r->inside == !p->ended);
	if (p->ended)
		CHECK(r->next == (r->forward ? r->n : 0));
}

static uint32_t
scan_large(const GpudsView *view, GpuRequest *r)
{
	if (view->structure == GPUDS_STRUCTURE_ARRAY)
		return gpu_scan_large<ArrayProbe>(&large, view, (unsigned char *) slots, device_slots, r);
	if (view->structure == GPUDS_STRUCTURE_AVL)
		return gpu_scan_large<AvlProbe>(&large, view, (unsigned char *) slots, device_slots, r);
	if (view->structure == GPUDS_STRUCTURE_SKIPLIST)
		return gpu_skiplist_scan(&pool, &large, view, (unsigned char *) slots, device_slots, r);
	return gpu_scan_large<BtreeProbe>(&large, view, (unsigned char *) slots, device_slots, r);
}

static void
run_large(const GpudsView *view, const Model *m, int kind, uint64_t range)
{
	int64_t most = test_below(2) ? 20 : PIECE / (int64_t) sizeof(GpudsInterval) - 1;
	Progress p;

	start(&slots[0], &p, m, kind, view->nwords, range, most);
	if (test_below(3) == 0)
		only_single_keys(&slots[0], &p);
	if (test_below(3) == 0)
		shuffle(&slots[0], &p);
	while (!p.ended)
	{
		GpuRequest *r = &slots[0].request;

		r->form = test_below(2) ? GPU_ENTRIES : GPU_SORTED_TIDS;
		r->cap = 1 + (int64_t) test_below(PIECE / sizeof(GpudsEntry));
		if (test_below(3) == 0)
			r->cap = 1 + r->cap % 50 + m->n / 10;
		memset(slots[0].output, 0xA5, PIECE);
		r->status = scan_large(view, r);
		check(&slots[0], &p, m);
	}
	free(p.intervals);
}

/* Finds an entry of each interval by its rank; a probe without ranks may not know. */
static void
run_ranked(const GpudsView *view, const Model *m, int kind, uint64_t range)
{
	GpuRequest *r = &slots[0].request;
	const EntryRanked *ranked = (const EntryRanked *) slots[0].output;
	const int64_t most = PIECE / (int64_t) (sizeof(GpudsInterval) + sizeof(uint64_t));
	Progress p;

	do
	{
		start(&slots[0], &p, m, kind, view->nwords, range, test_below(2) ? 20 : most);
		if (r->points)
			free(p.intervals);
	} while (r->points);
	if (test_below(3) == 0)
		shuffle(&slots[0], &p);
	for (int64_t i = 0; i < p.n; i++)
		((uint64_t *) ((GpudsInterval *) slots[0].input + p.n))[i] = test_below(test_below(2) ? 3 : m->n + 2);
	r->form = GPU_RANKED;
	r->forward = true;
	r->next = 0;
	r->cap = p.n;
	CHECK(!gpu_ranked_fits(&large, REQUESTS * sizeof(Slot), r));
	r->cap = p.n + 1;
	CHECK(gpu_ranked_fits(&large, REQUESTS * sizeof(Slot), r));
	r->status = scan_large(view, r);
	CHECK(r->status == GPU_OK && r->found == p.n && r->next == p.n && !r->inside);
	for (int64_t i = 0; i < p.n; i++)
	{
		const uint64_t rank = ((const uint64_t *) ((GpudsInterval *) slots[0].input + p.n))[i];
		int64_t first;
		int64_t inside = test_inside(m, &p.intervals[i], &first);

		if (view->structure == GPUDS_STRUCTURE_SKIPLIST && ranked[i].entries == UINT64_MAX)
			continue;
		CHECK(ranked[i].entries == (uint64_t) inside);
		if (rank < (uint64_t) inside)
			CHECK(entry_equal(&ranked[i].entry, &m->e[first + (int64_t) rank]));
	}
	free(p.intervals);
}

/* A count begins in the middle of a scan, maybe behind an entry of the interval that it enters first. */
static void
count_from_middle(GpuRequest *r, const Progress *p, const Model *m)
{
	const GpudsInterval *interval;
	int64_t first;
	int64_t inside;

	r->next = (int64_t) test_below((uint64_t) p->n);
	interval = &p->intervals[r->next];
	inside = test_inside(m, interval, &first);
	r->inside = !entry_less(&interval->hi, &interval->lo) && test_below(3) > 0;
	r->at = inside > 0 && test_below(4) ? m->e[first + (int64_t) test_below((uint64_t) inside)]
			: test_below(2)             ? interval->lo
										: interval->hi;
	/* a scan never stops at what cannot be an entry */
	if (r->at.t == UINT64_MAX)
		r->inside = false;
}

/* A random map of so many bytes at most, and rows, which fit into the stream's memory behind the input. */
static Visible
random_visible(GpuRequest *r, const Model *m, uint64_t most)
{
	unsigned char *map = slots[0].input + PIECE / 2;
	uint32_t *places = (uint32_t *) slots[1].input;
	uint32_t *pages = (uint32_t *) slots[1].output;
	Visible visible;

	r->map_bytes = test_map(map, most);
	/* in the last bytes of the input */
	if (test_below(2) && r->form == GPU_COUNT)
		map = (unsigned char *) memmove(map + (PIECE / 2 - r->map_bytes) / 8 * 8, map, r->map_bytes);
	visible.map = map;
	visible.map_bytes = r->map_bytes;
	visible.rows = test_rows(places, pages, PIECE - (r->map_bytes + 7) / 8 * 8 - r->groups_bytes, m);
	r->map = (uint64_t) (map - (unsigned char *) slots);
	r->row_places = (uint64_t) ((unsigned char *) places - (unsigned char *) slots);
	r->row_pages = (uint64_t) ((unsigned char *) pages - (unsigned char *) slots);
	r->row_slots = visible.rows.slots;
	r->row_words = visible.rows.words;
	r->row_npages = visible.rows.npages;
	CHECK(gpu_visible_fits(&large, REQUESTS * sizeof(Slot), r));
	return visible;
}

/* The model's count; how many entries are handed back, their TIDs, ascending, in *tids. */
static int64_t
model_count(const GpuRequest *r, const Progress *p, const Model *m, const Visible *visible, int64_t *counted,
			uint64_t *tids)
{
	int64_t n = 0;

	*counted = 0;
	for (int64_t i = r->next; i < p->n; i++)
	{
		int64_t first;
		int64_t inside = test_inside(m, &p->intervals[i], &first);

		for (const GpudsEntry *e = m->e + first; e < m->e + first + inside; e++)
		{
			PageRow row = test_row(e, visible->map, visible->map_bytes, &visible->rows);

			if (r->inside && i == r->next && !entry_less(&r->at, e))
				continue;
			*counted += row == PAGE_ROW_SEEN;
			if (row == PAGE_ROW_UNKNOWN)
				tids[n++] = e->t & ENTRY_TID_MASK;
		}
	}
	qsort(tids, (size_t) n, sizeof(uint64_t), compare_u64);
	return n;
}

/* Counts with room for so many TIDs; the request is as before afterwards. */
static void
check_count(const GpudsView *view, GpuRequest *r, int64_t cap, int64_t counted, int64_t others,
			const uint64_t *tids)
{
	const uint64_t *out = (const uint64_t *) slots[0].output;
	GpuRequest before;

	r->cap = cap;
	before = *r;
	memset(slots[0].output, 0xA5, PIECE);
	r->status = scan_large(view, r);
	CHECK(r->status == GPU_OK && r->counted == counted && r->found == others);
	if (others > cap)
	{
		CHECK(r->next == before.next && r->inside == before.inside && entry_equal(&r->at, &before.at));
		for (int64_t i = 0; i < PIECE / (int64_t) sizeof(uint64_t); i++)
			CHECK(out[i] == UINT64_C(0xA5A5A5A5A5A5A5A5));
	}
	else
	{
		CHECK(r->next == r->n && !r->inside);
		CHECK(memcmp(tids, out, (size_t) others * sizeof(uint64_t)) == 0);
		for (int64_t i = others; i < PIECE / (int64_t) sizeof(uint64_t); i++)
			CHECK(out[i] == UINT64_C(0xA5A5A5A5A5A5A5A5));
	}
	r->next = before.next;
	r->inside = before.inside;
	r->at = before.at;
}

static void
run_count(const GpudsView *view, const Model *m, int kind, uint64_t range)
{
	const int64_t room = PIECE / (int64_t) sizeof(uint64_t);
	const int64_t most[] = { 3, 20, PIECE / 2 / (int64_t) sizeof(GpudsInterval) };
	GpuRequest *r = &slots[0].request;
	uint64_t *tids = (uint64_t *) malloc((size_t) (m->n + 1) * sizeof(uint64_t));
	int64_t counted, others;
	Visible visible;
	Progress p;

	CHECK(tids != NULL);
	start(&slots[0], &p, m, kind, view->nwords, range, most[test_below(3)]);
	if (test_below(3) == 0)
		only_single_keys(&slots[0], &p);
	if (test_below(3) == 0)
		shuffle(&slots[0], &p);
	if (p.n > 0 && !r->points && test_below(3) == 0)
	{
		/* one interval of everything */
		p.n = r->n = 1;
		p.intervals[0] = { { 0, 0, 0 }, { UINT64_MAX, UINT64_MAX, UINT64_MAX } };
		memcpy(slots[0].input, p.intervals, sizeof(GpudsInterval));
	}
	r->form = GPU_COUNT;
	r->forward = true;
	r->next = 0;
	if (p.n > 0 && test_below(2))
		count_from_middle(r, &p, m);
	else if (r->points && test_below(2))
		repeat_points(&slots[0], &p);
	visible = random_visible(r, m, test_below(2) ? PIECE / 2 : 64);
	others = model_count(r, &p, m, &visible, &counted, tids);
	check_count(view, r, room, counted, others, tids);
	check_count(view, r, 1 + (int64_t) test_below((uint64_t) room), counted, others, tids);
	if (others > 0 && others <= room)
		check_count(view, r, others, counted, others, tids);
	if (others > 1 && others <= room)
		check_count(view, r, others - 1, counted, others, tids);
	free(tids);
	free(p.intervals);
}

#include "gpu_scan_measure.h"
#include "gpu_scan_groups.h"
#include "gpu_scan_join.h"

/* Posts a request, waiting for a slot. */
static void
post(const GpudsView *view, GpuRequest *r, int batch)
{
	int slot;

	while ((slot = gpu_persistent_slot(&persistent)) < 0)
	{
		gpu_persistent_poll(&persistent, view->base);
		CHECK(gpu_ok(&persistent.stream));
	}
	gpu_persistent_post(&persistent, slot, view, r, batch);
	gpu_persistent_keep(&persistent, view->base);
}

static void
run_small(const GpudsView *view, const Model *m, int kind, uint64_t range)
{
	Progress progress[REQUESTS];
	int left = REQUESTS;

	for (int i = 0; i < REQUESTS; i++)
		start(&slots[i], &progress[i], m, kind, view->nwords, range, GPU_SMALL_INTERVALS);
	while (left > 0)
	{
		int number[REQUESTS];
		int n = 0;

		for (int i = 0; i < REQUESTS; i++)
		{
			if (progress[i].ended || test_below(3) == 0)
				continue;
			slots[i].request.cap = 1 + (int64_t) test_below(test_below(2) ? 3 : GPU_SMALL_ENTRIES);
			slots[i].request.done = 0;
			CHECK(gpu_is_small(&slots[i].request));
			memset(slots[i].output, 0xA5, PIECE);
			number[n++] = i;
			if (test_below(20) == 0)
				break;
		}
		for (int i = 0; i < n; i++)
			post(view, &slots[number[i]].request, n);
		for (int i = 0; i < n; i++)
		{
			GpuRequest *r = &slots[number[i]].request;

			while (gpu_acquire_system(&r->done) == 0)
			{
				gpu_persistent_poll(&persistent, view->base);
				CHECK(gpu_ok(&persistent.stream));
			}
			CHECK(r->batch == (uint32_t) n);
			check(&slots[number[i]], &progress[number[i]], m);
			left -= progress[number[i]].ended;
		}
		/* now and then long enough for the kernel to leave */
		if (test_below(200) == 0)
			CHECK(gpu_finish(&persistent.stream));
	}
	while (persistent.poster.busy != 0)
		gpu_persistent_poll(&persistent, view->base);
	CHECK(gpu_finish(&persistent.stream));
	for (int i = 0; i < REQUESTS; i++)
		free(progress[i].intervals);
}

/* Lets the entries point to many heap pages, to a few or many rows of each, if that keeps their order. */
static void
spread_pages(Model *m)
{
	uint64_t page_rows = 4 + test_below(100);
	bool close = test_below(2) == 0;

	for (int64_t i = 0; i < m->n; i++)
	{
		if ((m->e[i].t & ENTRY_TID_MASK) >> 34 != 0)
			return;
	}
	for (int64_t i = 0; i < m->n; i++)
	{
		uint64_t tid = m->e[i].t & ENTRY_TID_MASK;

		m->e[i].t = (m->e[i].t & ~ENTRY_TID_MASK) |
					(close ? tid / page_rows << 16 | tid % page_rows : tid << 14);
	}
}

/* A tree of the model in the device's memory. */
static size_t
device_tree(GpudsView *view, const Model *m, int nwords)
{
	GpudsView tree;
	size_t bytes = (size_t) (m->n * 10 + 64) * 4 * BTREE_UNIT_BYTES;
	unsigned char *there = (unsigned char *) gpu_alloc(bytes);

	test_tree(&tree, m, nwords, test_below(2));
	CHECK(there != NULL);
	gpu_copy_bus(&large.stream, there, tree.base, bytes);
	CHECK(gpu_finish(&large.stream));
	free((void *) tree.base);
	view->base = there;
	view->entries = tree.entries;
	view->structure = GPUDS_STRUCTURE_BTREE;
	view->root = tree.root;
	view->height = tree.height;
	view->nwords = tree.nwords;
	return bytes;
}

/* A sorted array of the model in the device's memory. */
static size_t
device_array(GpudsView *view, const Model *m, int nwords)
{
	size_t bytes = (size_t) m->n * sizeof(GpudsEntry) + ARRAY_UNIT_BYTES;
	unsigned char *there = (unsigned char *) gpu_alloc(bytes);

	CHECK(there != NULL);
	gpu_copy_bus(&large.stream, there, m->e, (size_t) m->n * sizeof(GpudsEntry));
	CHECK(gpu_finish(&large.stream));
	view->base = there;
	view->entries = (uint64_t) m->n;
	view->structure = GPUDS_STRUCTURE_ARRAY;
	view->root = 0;
	view->height = m->n > 0;
	view->nwords = nwords;
	return bytes;
}

/* A skip list or an AVL tree of the model. */
static void
device_loaded(GpuStructure *list, GpudsView *view, const Model *m, int nwords)
{
	GpudsEntry *entries = (GpudsEntry *) slots[0].input;

	CHECK(list->load_begin(&change, (uint32_t) nwords, 90) == GPU_OK);
	for (int64_t done = 0; done < m->n;)
	{
		int64_t n = m->n - done < LOAD_ENTRIES ? m->n - done : LOAD_ENTRIES;

		memcpy(entries, m->e + done, (size_t) n * sizeof(GpudsEntry));
		CHECK(list->load_add(&change, entries, n) == GPU_OK);
		done += n;
	}
	CHECK(list->load_end(&change) == GPU_OK && list->view(&pool, view));
}

/* Gives a tree's memory back, of whatever structure it is. */
static void
free_device(GpuStructure *list, const GpudsView *view, size_t bytes)
{
	if (list == NULL)
		gpu_free((void *) view->base, bytes);
	else
	{
		list->withdraw();
		CHECK(list->drop(&change) == GPU_OK);
		delete list;
	}
}

int
main(int argc, char **argv)
{
	enum
	{
		TREES = 8
	};
	bool few = argc > 1 && strcmp(argv[1], "small") == 0;
	int rounds = argc > 1 && !few ? atoi(argv[1]) : few ? 1 : 5;
	char why[200] = "";
	GpuCard card;

	test_seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	if (!gpu_card(0, &card, why, sizeof(why)))
	{
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	CHECK(gpu_scan_stream_open(&large, PIECE));
	slots = (Slot *) gpu_host_alloc(REQUESTS * sizeof(Slot));
	CHECK(slots != NULL);
	device_slots = (unsigned char *) gpu_device_address(slots);
	CHECK(device_slots != NULL && gpu_persistent_open(&persistent, (unsigned char *) slots, device_slots));
	CHECK(gpu_pool_open(&pool, POOL_BYTES) &&
		  gpu_change_open(&change, &pool, SkiplistOnGpu::change_needs().report_bytes,
						  SkiplistOnGpu::change_needs().memory_bytes));
	for (int r = 0; r < rounds; r++)
	{
		for (int kind = few ? KEYS_DENSE : 0; kind < (few ? KEYS_FEW + 1 : KEYS_KINDS); kind++)
		{
			const int64_t sizes[TREES] = { 0, 1, 8, 9, 60, 500, 3000, 20000 };
			GpudsView views[TREES];
			size_t bytes[TREES];
			GpuStructure *lists[TREES] = {};
			Model models[TREES];
			uint64_t ranges[TREES];

			for (int t = 0; t < TREES; t++)
			{
				int nwords = 1 + (int) test_below(2);

				ranges[t] = (uint64_t) sizes[t] * 2 + 10;
				model_fill(&models[t], sizes[t], kind, nwords, ranges[t]);
				if (test_below(2))
					spread_pages(&models[t]);
				bytes[t] = 0;
				if (test_below(2) == 0)
				{
					if (test_below(2) == 0)
						lists[t] = new SkiplistOnGpu(GPUDS_STRUCTURE_SKIPLIST);
					else
						lists[t] = new AvlOnGpu(GPUDS_STRUCTURE_AVL);
					device_loaded(lists[t], &views[t], &models[t], nwords);
				}
				else
					bytes[t] = test_below(3) == 0 ? device_array(&views[t], &models[t], nwords)
												  : device_tree(&views[t], &models[t], nwords);
				for (int i = 0; i < (few ? 1 : 10); i++)
				{
					run_large(&views[t], &models[t], kind, ranges[t]);
					run_count(&views[t], &models[t], kind, ranges[t]);
					run_measure(&views[t], &models[t], kind, ranges[t]);
					run_groups(&views[t], &models[t], kind, ranges[t]);
					run_runs(&views[t], &models[t], kind, ranges[t]);
					run_ranked(&views[t], &models[t], kind, ranges[t]);
					passed += 6;
				}
			}
			for (int t = 0; t < TREES * (few ? 1 : 10); t++)
			{
				const int other = (int) test_below(TREES);

				run_join(&views[t % TREES], &models[t % TREES], &views[other], &models[other], kind,
						 ranges[t % TREES]);
				passed++;
			}
			for (int t = 0; t < TREES; t++)
			{
				run_small(&views[t], &models[t], kind, ranges[t]);
				passed++;
				free_device(lists[t], &views[t], bytes[t]);
				free(models[t].e);
			}
		}
	}
	gpu_persistent_end(&persistent);
	CHECK(gpu_finish(&large.stream) && gpu_finish(&persistent.stream));
	gpu_scan_stream_close(&large);
	gpu_persistent_close(&persistent);
	CHECK(gpu_pool_used(&pool) == 0);
	gpu_change_close(&change);
	gpu_pool_close(&pool);
	gpu_host_free(slots);
	printf("%s\n%d passed, 0 failed\n", card.name, passed);
	return 0;
}
