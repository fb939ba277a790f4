/*-------------------------------------------------------------------------
 *
 * gpu_versions.h
 *	  A structure in device memory beside a model, both changed by the same batches, and versions of the
 *	  two that are held for readers.
 *
 * A file that includes this has included common.h and kernels/structures.h.  T is the structure's class.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TEST_GPU_VERSIONS_H
#define TEST_GPU_VERSIONS_H

static GpuPool pool;
static GpuChange change;
static GpuScanStream stream;
static unsigned char *staging; /* of input and output of requests */
static unsigned char *device_staging;
static size_t output_at; /* where input ends */
static int passed;

/* A version that is pinned. */
struct Held
{
	uint64_t version; /* 0: none */
	GpudsView view;
	Model model;
};

/* Opens the card and all of the above, with room for so many bytes of input, and of output. */
template <class T>
static bool
open_card(GpuCard *card, size_t bytes)
{
	char why[200];

	gpu_load_all();
	if (!gpu_card(0, card, why, sizeof(why)))
	{
		fprintf(stderr, "%s\n", why);
		return false;
	}
	output_at = bytes;
	staging = (unsigned char *) gpu_host_alloc(2 * output_at);
	CHECK(gpu_use(0) && gpu_pool_open(&pool, (size_t) 512 << 20) && staging != NULL);
	CHECK(gpu_change_open(&change, &pool, T::change_needs().report_bytes, T::change_needs().memory_bytes));
	CHECK(gpu_scan_stream_open(&stream, output_at));
	device_staging = (unsigned char *) gpu_device_address(staging);
	return true;
}

static void
close_card(void)
{
	gpu_scan_stream_close(&stream);
	gpu_change_close(&change);
	gpu_pool_close(&pool);
	gpu_host_free(staging);
}

template <class T>
static void
verify(T *tree)
{
	char why[200];

	if (tree->verify(&change, why, sizeof(why)) != GPU_OK)
	{
		fprintf(stderr, "verify: %s %s\n", why, change.stream.why);
		exit(1);
	}
}

/* An interval is asked for in so many pieces of the same size, and then in larger ones. */
#define PIECES_ALIKE 32

/* Does a scan of an interval return what the model has? */
template <class T>
static void
check_interval(const T *tree, const GpudsView *view, const Model *m, const GpudsInterval *interval,
			   bool forward, int64_t cap)
{
	const GpudsEntry *out = (const GpudsEntry *) (staging + output_at);
	int64_t from = model_rank(m, &interval->lo);
	int64_t to = model_rank(m, &interval->hi);
	int64_t done = 0;
	int64_t asked;
	int pieces = 0;
	GpuRequest r;

	if (to < m->n && entry_equal(&m->e[to], &interval->hi))
		to++;
	to = to < from ? from : to;
	memset((void *) &r, 0, sizeof(r));
	memcpy(staging, interval, sizeof(*interval));
	r.kind = GPU_SCAN;
	r.forward = forward;
	r.output = output_at;
	r.n = 1;
	r.next = forward ? 0 : 1;
	r.cap = cap;
	do
	{
		asked = r.cap;
		CHECK(tree->scan(&stream, view, staging, device_staging, &r) == GPU_OK);
		CHECK(r.found <= asked && done + r.found <= to - from);
		for (int64_t i = 0; i < r.found; i++)
			CHECK(entry_equal(&out[i], &m->e[forward ? from + done + i : to - 1 - done - i]));
		done += r.found;
		if (++pieces > PIECES_ALIKE && 2 * (size_t) asked * sizeof(GpudsEntry) <= output_at)
			r.cap = 2 * asked;
	} while (r.found == asked);
	CHECK(done == to - from);
	passed++;
}

/* The interval of all entries. */
static GpudsInterval
all_entries(uint32_t nwords)
{
	return { { 0, 0, 0 }, { UINT64_MAX, nwords == 1 ? 0 : UINT64_MAX, UINT64_MAX } };
}

template <class T>
static GpuStatus
load(T *tree, const Model *m, int nwords, uint32_t fill_percent)
{
	const int64_t room = (int64_t) (output_at / sizeof(GpudsOp));
	GpuStatus status = tree->load_begin(&change, (uint32_t) nwords, fill_percent);

	for (int64_t i = 0; i < m->n && status == GPU_OK;)
	{
		int64_t n = 1 + (int64_t) test_below((uint64_t) (m->n - i));

		n = n < room ? n : room;
		memcpy(staging, m->e + i, (size_t) n * sizeof(GpudsEntry));
		status = tree->load_add(&change, (const GpudsEntry *) staging, n);
		i += n;
	}
	return status == GPU_OK ? tree->load_end(&change) : status;
}

/* All allocations of a load fail in turn. */
template <class T>
static void
load_without_memory(T *tree, const Model *m, int nwords, std::atomic<int64_t> *fail)
{
	GpuStatus status = GPU_NO_MEMORY;

	for (int64_t after = 0; status != GPU_OK; after++)
	{
		*fail = after;
		status = load(tree, m, nwords, 90);
		*fail = -1;
		CHECK(status == GPU_OK || status == GPU_NO_MEMORY);
		if (status != GPU_OK)
		{
			CHECK(tree->drop(&change) == GPU_OK);
			CHECK(gpu_pool_used(&pool) == 0);
		}
	}
}

static void
copy_model(Model *to, const Model *from)
{
	model_init(to, from->n);
	memcpy(to->e, from->e, (size_t) from->n * sizeof(GpudsEntry));
	to->n = from->n;
}

/* Applies to the model. */
static void
apply_model(Model *m, GpudsOp *ops, int64_t n, int64_t *inserted, int64_t *deleted)
{
	GpudsOp *scratch = (GpudsOp *) malloc((size_t) n * sizeof(GpudsOp));

	sort_ops(ops, scratch, n);
	n = sort_last_ops(ops, n);
	model_apply(m, ops, n, inserted, deleted);
	free(scratch);
}

/* Applies to the structure. */
template <class T>
static GpuStatus
apply_tree(T *tree, const GpudsOp *ops, int64_t n, int64_t *inserted, int64_t *deleted)
{
	memcpy(staging, ops, (size_t) n * sizeof(GpudsOp));
	return tree->apply(&change, (const GpudsOp *) staging, (const GpudsOp *) device_staging, n, inserted,
					   deleted);
}

/* Applies to both; status of the structure's. */
template <class T>
static GpuStatus
apply(T *tree, Model *m, GpudsOp *ops, int64_t n)
{
	int64_t inserted, deleted, there_inserted, there_deleted;
	GpuStatus status = apply_tree(tree, ops, n, &there_inserted, &there_deleted);

	if (status != GPU_OK)
		return status;
	apply_model(m, ops, n, &inserted, &deleted);
	CHECK(inserted == there_inserted);
	CHECK(deleted == there_deleted);
	return status;
}

template <class T>
static void
drop(T *tree)
{
	tree->withdraw();
	CHECK(tree->drop(&change) == GPU_OK);
	CHECK(tree->bytes() == 0);
	CHECK(gpu_pool_used(&pool) == 0);
}

template <class T>
static void
hold(Held *held, const T *tree, const Model *m)
{
	held->version = *tree->version();
	CHECK(tree->view(&pool, &held->view));
	copy_model(&held->model, m);
}

/* The oldest version that is held. */
static uint64_t
oldest_of(const Held *held, int n)
{
	uint64_t oldest = UINT64_MAX;

	for (int k = 0; k < n; k++)
		oldest = held[k].version != 0 && held[k].version < oldest ? held[k].version : oldest;
	return oldest;
}

/* Random changes of all kinds of keys; in the first round, unless it is small, with memory running out. */
static void
test_all_kinds(int rounds, bool small, void (*random_changes)(int kind, int nwords),
			   void (*no_memory)(int kind, int nwords, std::atomic<int64_t> *fail))
{
	for (int round = 0; round < rounds; round++)
	{
		for (int kind = 0; kind < KEYS_KINDS; kind++)
		{
			for (int nwords = 1; nwords <= 2; nwords++)
			{
				random_changes(kind, nwords);
				if (round == 0 && !small)
				{
					no_memory(kind, nwords, &pool.fail_after);
					no_memory(kind, nwords, &pool.fail_list);
				}
			}
		}
	}
}

#endif /* TEST_GPU_VERSIONS_H */
