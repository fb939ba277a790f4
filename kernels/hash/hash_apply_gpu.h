/*-------------------------------------------------------------------------
 *
 * hash_apply_gpu.h
 *	  Applying operations to a hash table in device memory.
 *
 * Operations are hidden like entries and sorted, so that those of a bucket are neighbours, a run.  A
 * thread a run merges them with the bucket's entries, first to count, then to write.  So the host
 * knows what the batch takes before anything is written.  The places of the new lines come into the
 * array last.  The operations of buckets that are in the overflow tree are a batch of that tree.
 *
 * Buckets that have to move to the overflow tree do so in a version of its own before the batch's,
 * which has the same entries.  A run of many operations moves there, too, so that no thread has long to
 * do alone.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HASH_APPLY_GPU_H
#define HASH_APPLY_GPU_H

#include "kernels/hash/hash_table_gpu.h"

/* Operations of a bucket that one thread merges. */
#define GPU_HASH_LONG_RUN 64

/* What is to be done about a run. */
#define GPU_HASH_RUN_CHANGES (1u << 16) /* the lower bits are how many entries its bucket will have */
#define GPU_HASH_RUN_IN_TREE (1u << 17)
#define GPU_HASH_RUN_TOO_FULL (1u << 18)

/* Threads that count or hide a batch. */
#define GPU_HASH_STRIDE (1 << 17)

/* What is done for each operation or each run. */
enum GpuHashPhase
{
	GPU_HASH_HEAD,      /* where runs begin */
	GPU_HASH_FIRST,     /* the first operation of each */
	GPU_HASH_PLAN,      /* what its bucket takes */
	GPU_HASH_MAKE,      /* new lines */
	GPU_HASH_MOVE_PLAN, /* what a bucket takes that moves to the overflow tree */
	GPU_HASH_MOVE,      /* its new line, and its entries for the tree */
	GPU_HASH_SHOW,      /* new lines into the array */
	GPU_HASH_SHOW_MOVE, /* lines of buckets that have moved, likewise */
	GPU_HASH_PICK,      /* operations for the tree ... */
	GPU_HASH_COPY       /* ... together */
};

template <int nw> struct GpuHashBatch
{
	unsigned char *base;
	const GpudsOp *ops;
	const uint32_t *number; /* of operations in order; NULL: as they are */
	int64_t n;
	int64_t runs;
	GpuHashTable table; /* the newest version; not its overflow tree */
	uint32_t *run;      /* of each operation, and one more: runs that begin before it */
	uint32_t *first;    /* of each run, and one more: its first operation */
	uint64_t *sum;      /* as in the report: of the runs before */
	uint64_t *taken;    /* likewise */
	uint32_t *state;    /* GPU_HASH_RUN_* */
	GpuRef *made;       /* first new line of each run */
	uint32_t *place;    /* of each operation, and one more: such for the tree that are before it */
	uint32_t *found;    /* in_tree, too_full; inserts */
	const GpuRef *top;  /* of the stack that lines are taken from */
	GpuRef *retired;
	GpudsOp *out; /* for the tree */

	GPU_FN GpudsOp op(int64_t i) const
	{
		return ops[number ? number[i] : i];
	}

	GPU_FN uint64_t bucket(int64_t i) const
	{
		GpudsOp o = op(i);

		return gpu_hash_bucket(o.e, table.bits);
	}

	GPU_FN GpuRef *slot(int64_t r) const
	{
		return (GpuRef *) gpu_hash_line(base, table.buckets) + bucket(first[r]);
	}

	/* Lines of a run's bucket. */
	GPU_FN uint32_t lines(GpuRef ref) const
	{
		return ref == 0 ? 0 : gpu_hash_lines(gpu_hash_n(gpu_hash_line(base, ref)), nw);
	}

	GPU_FN void head(int64_t i) const
	{
		run[i] = i < n && (i == 0 || bucket(i) != bucket(i - 1));
	}

	GPU_FN void find_first(int64_t i) const
	{
		if (run[i + 1] != run[i])
			first[run[i]] = (uint32_t) i;
		if (i == n - 1)
			first[run[n]] = (uint32_t) n;
	}

	/* Merges a run with its bucket; puts what there will be. */
	template <typename Put> GPU_FN uint64_t merge(int64_t r, GpuRef ref, const Put &put) const
	{
		GpuHashCursor<nw> old(base, ref);
		int64_t o = first[r];
		const int64_t end = first[r + 1];
		uint64_t sum = 0;
		GpudsOp next = op(o);

		while (o < end || old.left > 0)
		{
			GpudsEntry e = { 0, 0, 0 };
			bool was;

			if (old.left > 0)
				e = old.entry();
			if (o == end || (old.left > 0 && entry_less(&e, &next.e)))
			{
				put(e);
				old.next();
				continue;
			}
			was = old.left > 0 && entry_equal(&e, &next.e);
			e = next.e;
			if (was)
				old.next();
			if ((next.order & GPUDS_OP_DELETE) == 0)
			{
				put(e);
				sum += was ? 0 : UINT64_C(1) << 32;
			}
			else
				sum += was;
			/* of operations on one entry the first counts */
			do
			{
				if (++o < end)
					next = op(o);
			} while (o < end && entry_equal(&next.e, &e));
		}
		return sum;
	}

	struct Count
	{
		uint32_t *n;

		GPU_FN void operator()(const GpudsEntry &) const
		{
			++*n;
		}
	};

	GPU_FN void plan(int64_t r) const
	{
		uint32_t will = 0;
		GpuRef ref;

		sum[r] = taken[r] = 0;
		if (r == runs)
			return;
		ref = *slot(r);
		if (ref != 0 && gpu_hash_in_tree(gpu_hash_line(base, ref)))
		{
			state[r] = GPU_HASH_RUN_IN_TREE;
			found[0] = 1;
			return;
		}
		if (first[r + 1] - first[r] <= GPU_HASH_LONG_RUN)
			sum[r] = merge(r, ref, Count{ &will });
		if (first[r + 1] - first[r] > GPU_HASH_LONG_RUN || will > (uint32_t) gpu_hash_most(nw))
		{
			state[r] = GPU_HASH_RUN_TOO_FULL;
			sum[r] = 0;
			found[1] = 1;
			return;
		}
		state[r] = sum[r] != 0 ? GPU_HASH_RUN_CHANGES | will : 0;
		if (sum[r] != 0)
			taken[r] = (uint64_t) gpu_hash_lines(will, nw) << 32 | lines(ref);
	}

	/* Retires the lines that a run's bucket has. */
	GPU_FN void retire(int64_t r, GpuRef ref) const
	{
		GpuRef *to = retired + (uint32_t) taken[r];
		uint32_t n = lines(ref);

		for (uint32_t i = 0; i < n; i++)
		{
			to[i] = ref;
			ref = gpu_hash_next(gpu_hash_line(base, ref));
		}
	}

	/* Writes the lines of a bucket, one entry after the other. */
	struct Writer
	{
		unsigned char *base;
		const GpuRef *next; /* of the line after this one */
		uint64_t *line;
		uint64_t version;
		uint32_t left; /* entries that come */
		int at;

		GPU_FN void begin(GpuRef before)
		{
			line = (uint64_t *) gpu_hash_line(base, *next--);
			line[0] = version << GPU_HASH_VERSION_SHIFT | left;
			line[1] = before;
			if (left > (uint32_t) gpu_hash_slots(nw))
				line[1] |= (uint64_t) *next << 32;
			at = 0;
		}
	};

	struct Write
	{
		Writer *w;

		GPU_FN void operator()(const GpudsEntry &e) const
		{
			if (w->at == gpu_hash_slots(nw))
				w->begin(0);
			gpu_hash_set_slot(w->line, w->at++, e, nw);
			w->left--;
		}
	};

	GPU_FN void make(int64_t r) const
	{
		Writer writer = { base, top - (taken[r] >> 32), NULL, table.version + 1, state[r] & 0xFFFF, 0 };
		GpuRef ref;

		if ((state[r] & GPU_HASH_RUN_CHANGES) == 0)
			return;
		ref = *slot(r);
		made[r] = *writer.next;
		writer.begin(ref);
		(void) merge(r, ref, Write{ &writer });
		retire(r, ref);
	}

	GPU_FN void move_plan(int64_t r) const
	{
		GpuRef ref;

		sum[r] = taken[r] = 0;
		if (r == runs || state[r] != GPU_HASH_RUN_TOO_FULL)
			return;
		ref = *slot(r);
		sum[r] = ref == 0 ? 0 : gpu_hash_n(gpu_hash_line(base, ref));
		taken[r] = UINT64_C(1) << 32 | lines(ref);
	}

	GPU_FN void move(int64_t r) const
	{
		const GpuRef *next = top - (taken[r] >> 32);
		GpudsOp *to = out + sum[r];
		uint64_t *line;
		GpuRef ref;

		if (state[r] != GPU_HASH_RUN_TOO_FULL)
			return;
		ref = *slot(r);
		for (GpuHashCursor<nw> old(base, ref); old.left > 0; old.next(), to++)
		{
			to->e = old.entry();
			to->order = GPUDS_OP_INSERT;
		}
		made[r] = *next;
		line = (uint64_t *) gpu_hash_line(base, *next);
		line[0] = (table.version + 1) << GPU_HASH_VERSION_SHIFT | GPU_HASH_TREE;
		line[1] = ref;
		retire(r, ref);
	}

	/* Of the runs of a state. */
	GPU_FN void show(int64_t r, uint32_t which) const
	{
		if ((state[r] & which) != 0)
			gpu_release(slot(r), made[r]);
	}

	GPU_FN void pick(int64_t i) const
	{
		place[i] = i < n && state[run[i + 1] - 1] == GPU_HASH_RUN_IN_TREE;
	}

	GPU_FN void copy(int64_t i) const
	{
		if (place[i + 1] != place[i])
			out[place[i]] = op(i);
	}
};

template <int nw, int phase> struct GpuHashDo
{
	GpuHashBatch<nw> b;

	GPU_FN void operator()(int64_t i) const
	{
		switch (phase)
		{
			case GPU_HASH_HEAD:
				b.head(i);
				break;
			case GPU_HASH_FIRST:
				b.find_first(i);
				break;
			case GPU_HASH_PLAN:
				b.plan(i);
				break;
			case GPU_HASH_MAKE:
				b.make(i);
				break;
			case GPU_HASH_MOVE_PLAN:
				b.move_plan(i);
				break;
			case GPU_HASH_MOVE:
				b.move(i);
				break;
			case GPU_HASH_SHOW:
				b.show(i, GPU_HASH_RUN_CHANGES);
				break;
			case GPU_HASH_SHOW_MOVE:
				b.show(i, GPU_HASH_RUN_TOO_FULL);
				break;
			case GPU_HASH_PICK:
				b.pick(i);
				break;
			case GPU_HASH_COPY:
				b.copy(i);
				break;
		}
	}
};

template <int nw, int phase>
static inline void
gpu_hash_do(GpuChange *c, const GpuHashBatch<nw> &b, int64_t n)
{
	gpu_launch(&c->stream, n, GpuHashDo<nw, phase>{ b });
}

/* Hides operations, or entries that are to be inserted. */
struct GpuHashHide
{
	const GpudsEntry *entries; /* NULL: the operations are there */
	GpudsOp *ops;

	GPU_FN void operator()(int64_t i) const
	{
		GpudsOp op;

		if (entries)
		{
			op.e = entries[i];
			op.order = GPUDS_OP_INSERT;
		}
		else
			op = ops[i];
		op.e = gpu_hash_hide(op.e);
		ops[i] = op;
	}
};

/* Counts the operations that insert. */
struct GpuHashCountInserts
{
	const GpudsOp *ops;
	int64_t n;
	uint32_t *inserts;

	GPU_FN void operator()(int64_t i) const
	{
		uint32_t count = 0;

		for (; i < n; i += GPU_HASH_STRIDE)
			count += (ops[i].order & GPUDS_OP_DELETE) == 0;
		if (count > 0)
			gpu_atomic_add(inserts, count);
	}
};

/* Working memory of a batch. */
template <int nw> struct GpuHashApply
{
	GpuSort sort;
	GpuHashBatch<nw> b;
};

template <int nw>
static inline void
gpu_hash_apply_layout(GpuScratch *scratch, GpuHashApply<nw> *a, GpuChange *c, int64_t n)
{
	gpu_sort_layout(scratch, &a->sort, n);
	a->b.run = gpu_scratch<uint32_t>(scratch, n + 1);
	a->b.first = gpu_scratch<uint32_t>(scratch, n + 1);
	a->b.sum = gpu_scratch<uint64_t>(scratch, n + 1);
	a->b.taken = gpu_scratch<uint64_t>(scratch, n + 1);
	a->b.state = gpu_scratch<uint32_t>(scratch, n);
	a->b.made = gpu_scratch<GpuRef>(scratch, n);
	a->b.place = gpu_scratch<uint32_t>(scratch, n + 1);
	a->b.found = gpu_scratch<uint32_t>(scratch, 2);
	gpu_scratch_temp(scratch, &c->stream, n + 1);
}

/* Sums up what the runs take, and fetches that. */
template <int nw>
static inline bool
gpu_hash_fetch_plan(GpuChange *c, const GpuHashBatch<nw> &b)
{
	GpuHashReport *report = gpu_hash_report(c);
	GpuStream *s = &c->stream;

	gpu_exclusive_sum(s, b.sum, b.sum, b.runs + 1);
	gpu_exclusive_sum(s, b.taken, b.taken, b.runs + 1);
	gpu_copy_bus(s, &report->sum, b.sum + b.runs, sizeof(uint64_t));
	gpu_copy_bus(s, &report->taken, b.taken + b.runs, sizeof(uint64_t));
	gpu_copy_bus(s, &report->in_tree, &b.found[0], sizeof(uint32_t));
	gpu_copy_bus(s, &report->too_full, &b.found[1], sizeof(uint32_t));
	return gpu_finish(s);
}

/* The newest version, for a batch. */
template <int nw, typename Tree>
static inline void
gpu_hash_batch_version(GpuHashBatch<nw> *b, const GpuHash<Tree> *h)
{
	b->table.version = h->version;
	b->table.buckets = gpu_hash_span_ref(&h->buckets);
	b->table.bits = h->bits;
}

/* Where a batch finds the lines that it takes, and puts those that it retires. */
template <int nw>
static inline void
gpu_hash_batch_nodes(GpuHashBatch<nw> *b, GpuTree *h)
{
	const GpuNodes *nodes = gpu_hash_nodes(h);

	b->top = nodes->free.at + nodes->nfree - 1;
	b->retired = nodes->retired.at + nodes->retired_to;
}

/* Moves the buckets that are too full to the overflow tree, as a version. */
template <int nw, typename Tree>
static inline GpuStatus
gpu_hash_move(GpuChange *c, GpuHash<Tree> *h, GpuHashBatch<nw> b)
{
	Tree *overflow = gpu_hash_overflow_tree(h);
	GpuStatus status = GPU_OK;
	uint64_t taken;
	int64_t moved;
	int64_t inserted;
	int64_t deleted;
	GpuSpan span;

	gpu_hash_do<nw, GPU_HASH_MOVE_PLAN>(c, b, b.runs + 1);
	if (!gpu_hash_fetch_plan(c, b))
		return gpu_change_status(c);
	moved = (int64_t) gpu_hash_report(c)->sum;
	taken = gpu_hash_report(c)->taken;
	if (!gpu_span_take(c->pool, &span, (size_t) (moved + 1) * sizeof(GpudsOp)))
		return GPU_NO_MEMORY;
	b.out = (GpudsOp *) span.at;
	if (overflow->tree.nwords == 0)
		status = overflow->load_begin(c, (uint32_t) nw, h->load.fill_percent);
	if (overflow->tree.loading && (status = overflow->load_end(c)) != GPU_OK)
		(void) overflow->drop(c);
	if (status == GPU_OK && !gpu_hash_reserve(c, h, (uint32_t) (taken >> 32), (uint32_t) taken))
		status = GPU_NO_MEMORY;
	if (status == GPU_OK)
	{
		gpu_hash_batch_nodes(&b, h);
		gpu_hash_do<nw, GPU_HASH_MOVE>(c, b, b.runs);
		if (moved > 0)
			status = gpu_hash_overflow_tree(h)->apply_there(c, b.out, moved, &inserted, &deleted);
	}
	if (status == GPU_OK)
	{
		gpu_hash_do<nw, GPU_HASH_SHOW_MOVE>(c, b, b.runs);
		(void) gpu_hash_publish(c, h, h->entries.load(), (uint32_t) (taken >> 32), (uint32_t) taken);
		status = gpu_change_status(c);
	}
	gpu_change_give(c, &span);
	return status;
}

/* Applies the operations of buckets that are in the overflow tree to that. */
template <int nw, typename Tree>
static inline GpuStatus
gpu_hash_apply_tree(GpuChange *c, GpuHash<Tree> *h, GpuHashBatch<nw> b, int64_t n, int64_t *inserted,
					int64_t *deleted)
{
	GpuStatus status;
	GpuSpan span;

	if (!gpu_span_take(c->pool, &span, (size_t) n * sizeof(GpudsOp)))
		return GPU_NO_MEMORY;
	b.out = (GpudsOp *) span.at;
	gpu_hash_do<nw, GPU_HASH_COPY>(c, b, b.n);
	status = gpu_hash_overflow_tree(h)->apply_there(c, b.out, n, inserted, deleted);
	gpu_change_give(c, &span);
	return status;
}

/* Applies a batch that is planned. */
template <int nw, typename Tree>
static inline GpuStatus
gpu_hash_apply_planned(GpuChange *c, GpuHash<Tree> *h, GpuHashBatch<nw> b, int64_t *inserted,
					   int64_t *deleted)
{
	GpuHashReport *report = gpu_hash_report(c);
	GpuStream *s = &c->stream;
	const uint64_t sum = report->sum;
	const uint64_t taken = report->taken;
	int64_t in_tree = 0;
	int64_t tree_inserted = 0;
	int64_t tree_deleted = 0;
	uint64_t entries = h->entries.load();
	GpuStatus status;

	if (report->in_tree)
	{
		gpu_hash_do<nw, GPU_HASH_PICK>(c, b, b.n + 1);
		gpu_exclusive_sum(s, b.place, b.place, b.n + 1);
		gpu_copy_bus(s, &report->runs, b.place + b.n, sizeof(uint32_t));
		if (!gpu_finish(s))
			return gpu_change_status(c);
		in_tree = report->runs;
	}
	/* what the tree's operations do is not known before they are applied */
	if (entries + (sum >> 32) - (uint32_t) sum + (uint64_t) in_tree > GPU_MAX_ENTRIES)
		return GPU_TOO_LARGE;
	if (!gpu_hash_reserve(c, h, (uint32_t) (taken >> 32), (uint32_t) taken))
		return GPU_NO_MEMORY;
	if (in_tree > 0)
	{
		status = gpu_hash_apply_tree(c, h, b, in_tree, &tree_inserted, &tree_deleted);
		if (status != GPU_OK)
			return status;
	}
	*inserted = (int64_t) (sum >> 32) + tree_inserted;
	*deleted = (int64_t) (uint32_t) sum + tree_deleted;
	if (*inserted == 0 && *deleted == 0)
		return gpu_change_status(c);
	gpu_hash_batch_nodes(&b, h);
	if (sum != 0)
	{
		gpu_hash_do<nw, GPU_HASH_MAKE>(c, b, b.runs);
		gpu_hash_do<nw, GPU_HASH_SHOW>(c, b, b.runs);
	}
	(void) gpu_hash_publish(c, h, entries + (uint64_t) *inserted - (uint64_t) *deleted,
							(uint32_t) (taken >> 32), (uint32_t) taken);
	return gpu_change_status(c);
}

/* Applies a batch that is in order. */
template <int nw, typename Tree>
static inline GpuStatus
gpu_hash_apply_sorted(GpuChange *c, GpuHash<Tree> *h, GpuHashBatch<nw> *b, int64_t *inserted,
					  int64_t *deleted)
{
	GpuHashReport *report = gpu_hash_report(c);
	GpuStream *s = &c->stream;
	void *const temp = s->temp;
	const size_t temp_bytes = s->temp_bytes;

	gpu_hash_batch_version(b, h);
	gpu_hash_do<nw, GPU_HASH_HEAD>(c, *b, b->n + 1);
	gpu_exclusive_sum(s, b->run, b->run, b->n + 1);
	gpu_hash_do<nw, GPU_HASH_FIRST>(c, *b, b->n);
	gpu_copy_bus(s, &report->runs, b->run + b->n, sizeof(uint32_t));
	if (!gpu_finish(s))
		return gpu_change_status(c);
	b->runs = report->runs;
	for (;;)
	{
		GpuStatus status;

		gpu_fill(s, b->found, 0, 2 * sizeof(uint32_t));
		gpu_hash_do<nw, GPU_HASH_PLAN>(c, *b, b->runs + 1);
		if (!gpu_hash_fetch_plan(c, *b))
			return gpu_change_status(c);
		if (!report->too_full)
			return gpu_hash_apply_planned(c, h, *b, inserted, deleted);
		status = gpu_hash_move(c, h, *b);
		if (status != GPU_OK)
			return status;
		/* the tree's batch had memory of its own for sums */
		s->temp = temp;
		s->temp_bytes = temp_bytes;
		s->temp_items = b->n + 1;
		gpu_hash_batch_version(b, h);
	}
}

/* Applies hidden operations that are in device memory. */
template <int nw, typename Tree>
static inline GpuStatus
gpu_hash_apply_hidden(GpuChange *c, GpuHash<Tree> *h, const GpudsOp *ops, int64_t n, int64_t *inserted,
					  int64_t *deleted)
{
	GpuShape *shape = &gpu_report(c)->shape;
	GpuStream *s = &c->stream;
	GpuScratch scratch = { NULL, 0 };
	GpuHashApply<nw> a;
	GpuStatus status;
	GpuSpan span;

	gpu_hash_apply_layout(&scratch, &a, c, n);
	if (!gpu_scratch_take(c->pool, &span, &scratch))
		return GPU_NO_MEMORY;
	gpu_hash_apply_layout(&scratch, &a, c, n);
	a.b.base = c->pool->base;
	a.b.ops = ops;
	a.b.n = n;
	a.b.number = gpu_sort_batch(s, &a.sort, ops, n, shape);
	gpu_copy_bus(s, shape, a.sort.shape, sizeof(GpuShape));
	if (gpu_finish(s) && shape->long_tie)
		a.b.number = gpu_sort_batch_by_words(s, &a.sort, ops, n, shape);
	status = gpu_change_status(c);
	if (status == GPU_OK)
		status = gpu_hash_apply_sorted(c, h, &a.b, inserted, deleted);
	gpu_change_give(c, &span);
	return status;
}

/* Makes the table large enough for what a batch of hidden operations may insert. */
template <typename Tree>
static inline GpuStatus
gpu_hash_make_room(GpuChange *c, GpuHash<Tree> *h, const GpudsOp *ops, int64_t n)
{
	const uint32_t nwords = h->nwords;
	uint64_t entries = h->entries.load();
	uint32_t *inserts = (uint32_t *) c->memory;
	uint32_t bits = h->bits;

	if (entries + (uint64_t) n <= gpu_hash_room(bits, nwords))
		return gpu_change_status(c);
	gpu_fill(&c->stream, inserts, 0, sizeof(uint32_t));
	gpu_launch(&c->stream, n < GPU_HASH_STRIDE ? n : GPU_HASH_STRIDE, GpuHashCountInserts{ ops, n, inserts });
	gpu_copy_bus(&c->stream, &gpu_hash_report(c)->inserts, inserts, sizeof(uint32_t));
	if (!gpu_finish(&c->stream))
		return gpu_change_status(c);
	entries += gpu_hash_report(c)->inserts;
	while (bits < GPU_HASH_MOST_BITS && entries > gpu_hash_room(bits, nwords))
		bits++;
	return bits > h->bits ? gpu_hash_grow(c, h, bits) : GPU_OK;
}

/*
 * Applies operations in device memory in any order, or inserts entries if there are any; the
 * operations are then made of them.  They are hidden where they are.
 */
template <typename Tree>
static inline GpuStatus
gpu_hash_apply_there(GpuChange *c, GpuHash<Tree> *h, GpudsOp *ops, const GpudsEntry *entries, int64_t n,
					 int64_t *inserted, int64_t *deleted)
{
	GpuStatus status;

	gpu_launch(&c->stream, n, GpuHashHide{ entries, ops });
	status = gpu_hash_make_room(c, h, ops, n);
	if (status != GPU_OK)
		return status;
	return h->nwords == 1 ? gpu_hash_apply_hidden<1>(c, h, ops, n, inserted, deleted)
						  : gpu_hash_apply_hidden<2>(c, h, ops, n, inserted, deleted);
}

/*
 * Applies operations in any order, or inserts entries if ops is NULL.  They are in host memory that
 * the device can use.  GPU_NO_MEMORY, GPU_TOO_LARGE: the table has the entries that it had.
 */
template <typename Tree>
static inline GpuStatus
gpu_hash_apply(GpuChange *c, GpuHash<Tree> *h, const GpudsOp *ops, const GpudsEntry *entries, int64_t n,
			   int64_t *inserted, int64_t *deleted)
{
	const size_t ops_bytes = (size_t) n * sizeof(GpudsOp);
	const size_t entries_bytes = ops ? 0 : (size_t) n * sizeof(GpudsEntry);
	GpudsEntry *copies = NULL;
	GpuStatus status;
	GpuSpan span;

	*inserted = *deleted = 0;
	if (n <= 0)
		return gpu_change_status(c);
	if (n >= GPU_MAX_ITEMS || !gpu_span_take(c->pool, &span, ops_bytes + entries_bytes))
		return GPU_NO_MEMORY;
	if (ops)
		gpu_copy_bus(&c->stream, span.at, ops, ops_bytes);
	else
	{
		copies = (GpudsEntry *) ((unsigned char *) span.at + ops_bytes);
		gpu_copy_bus(&c->stream, copies, entries, entries_bytes);
	}
	status = gpu_hash_apply_there(c, h, (GpudsOp *) span.at, copies, n, inserted, deleted);
	gpu_change_give(c, &span);
	return status;
}

#endif /* HASH_APPLY_GPU_H */
