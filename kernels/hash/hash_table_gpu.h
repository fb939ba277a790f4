/*-------------------------------------------------------------------------
 *
 * hash_table_gpu.h
 *	  A hash table in device memory as the host sees it: publishing versions, growing, and giving
 *	  memory back.
 *
 * The lines, and the nodes that say what a version consists of, are the only kind of nodes of one
 * space.  The overflow tree is a structure that no reader looks at but through them; it comes into being with
 * its first entry, and its versions have the table's numbers.  HashStructure says what it has to be.
 *
 * A table grows before a batch that may need it, to the number of buckets that the entries then need if they
 * are to use four of five slots at most.  That builds it anew, as one version that has the same
 * entries, in a space of its own: a thread a new bucket copies what it gets of an old one.  The space
 * and the array before it go back to the pool when no reader pins an older version.
 *
 * Entries of the overflow tree count, too, although the most of them may be of a few keys and stay
 * there: a bucket without a line takes 4 bytes.  If they did not, a table that was small when some
 * keys got many entries would have all other keys of their buckets in the tree for ever, and so be a
 * B+tree in the end.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HASH_TABLE_GPU_H
#define HASH_TABLE_GPU_H

#include "kernels/hash/hash_line_gpu.h"

/* What versions before one have and later ones do not. */
struct GpuHashReplaced
{
	uint64_t version;
	GpuSpace space;
	GpuSpan buckets;
};

/* Its root is the place of the version's GpuHashTable, its height 1. */
template <typename Tree> struct GpuHash : GpuTree
{
	Tree overflow{ 0 }; /* its nwords are 0: there is none */
	GpuSpan buckets;
	uint32_t bits = 0;
	std::vector<GpuHashReplaced> outgrown; /* oldest version first */
};

/* Behind the reports of overflow trees. */
#define GPU_HASH_REPORT_AT 1024

/* What the device reports about a table. */
struct GpuHashReport
{
	/* inserted << 32 | deleted, or entries that move to the overflow tree; as GpuHashGrow.taken */
	uint64_t sum;
	uint64_t taken; /* new lines << 32 | lines replaced */
	uint32_t runs;  /* buckets that have operations, or operations for the overflow tree */
	uint32_t inserts;
	uint32_t in_tree;  /* some of the buckets are in the overflow tree */
	uint32_t too_full; /* some of them have to move there */
	GpuRef table;      /* of the new version */
};

static inline GpuHashReport *
gpu_hash_report(const GpuChange *c)
{
	return (GpuHashReport *) ((unsigned char *) c->report + GPU_HASH_REPORT_AT);
}

/* The same, as the device sees it. */
static inline GpuHashReport *
gpu_hash_device_report(const GpuChange *c)
{
	return (GpuHashReport *) ((unsigned char *) c->device_report + GPU_HASH_REPORT_AT);
}

static inline GpuNodes *
gpu_hash_nodes(GpuTree *h)
{
	return &h->space.nodes[0];
}

/* Entries that are in lines. */
template <typename Tree>
static inline uint64_t
gpu_hash_in_lines(const GpuHash<Tree> *h)
{
	return h->entries.load() - h->overflow.tree.entries.load();
}

/* Where an array of a span begins. */
static inline GpuRef
gpu_hash_span_ref(const GpuSpan *span)
{
	return span->chunk * GPU_CHUNK_UNITS;
}

/*
 * Versions.
 */

/* Writes what a version consists of into the node on top of a stack, and retires the one before. */
struct GpuHashMakeTable
{
	unsigned char *base;
	const GpuRef *top;
	GpuRef *retired; /* where the old one goes, NULL: there is none */
	GpuRef old;
	GpuHashTable table;
	GpuHashReport *report;

	GPU_FN void operator()(int64_t) const
	{
		GpuRef ref = *top;

		*(GpuHashTable *) (base + (size_t) ref * GPU_UNIT_BYTES) = table;
		if (retired)
			*retired = old;
		report->table = ref;
	}
};

/*
 * Publishes a version that has so many entries, and has taken and retired so many lines.  What it takes and
 * retires itself, a node each, was reserved with them.  A table that is loaded is not shown to
 * readers.  False: the device is lost.
 */
template <typename Tree>
static inline bool
gpu_hash_publish(GpuChange *c, GpuHash<Tree> *h, uint64_t entries, uint32_t taken, uint32_t retired)
{
	GpuNodes *nodes = gpu_hash_nodes(h);
	GpuRef old = h->root;
	GpuHashMakeTable make;

	make.base = c->pool->base;
	make.top = nodes->free.at + nodes->nfree - taken - 1;
	make.retired = old != 0 ? nodes->retired.at + nodes->retired_to + retired : NULL;
	make.old = old;
	make.table.version = h->version + 1;
	make.table.buckets = gpu_hash_span_ref(&h->buckets);
	make.table.bits = h->bits;
	make.table.entries = h->overflow.tree.entries.load();
	make.table.root = h->overflow.tree.root;
	make.table.height = h->overflow.tree.height;
	make.report = gpu_hash_device_report(c);
	gpu_launch(&c->stream, 1, make);
	if (!gpu_finish(&c->stream))
		return false;
	gpu_nodes_take(nodes, taken + 1);
	gpu_nodes_retire(nodes, retired + (old != 0));
	h->root = gpu_hash_report(c)->table;
	h->height = entries > 0;
	if (h->loading)
		gpu_tree_set_head(h, 0, entries);
	else
		gpu_tree_publish(h, entries);
	gpu_space_note(&h->space, h->version);
	return true;
}

/* The overflow tree's next version has the number of the table's next one. */
template <typename Tree>
static inline Tree *
gpu_hash_overflow_tree(GpuHash<Tree> *h)
{
	h->overflow.tree.version = h->version;
	return &h->overflow;
}

/* Reserves the lines that a version takes and retires, and what gpu_hash_publish needs. */
static inline bool
gpu_hash_reserve(GpuChange *c, GpuTree *h, uint32_t take, uint32_t retire)
{
	GpuDemand demand = { (uint64_t) take + 1, (uint64_t) retire + 1 };

	return gpu_space_reserve(c, &h->space, &demand);
}

/* Uses again what versions up to oldest have replaced. */
template <typename Tree>
static inline void
gpu_hash_reclaim(GpuChange *c, GpuHash<Tree> *h, uint64_t oldest)
{
	size_t n = 0;

	gpu_space_reclaim(c, &h->space, oldest);
	h->overflow.reclaim(c, oldest);
	for (; n < h->outgrown.size() && h->outgrown[n].version <= oldest; n++)
	{
		gpu_space_close(c, &h->outgrown[n].space);
		gpu_span_give(c->pool, &h->outgrown[n].buckets);
	}
	h->outgrown.erase(h->outgrown.begin(), h->outgrown.begin() + (ptrdiff_t) n);
}

/* Gives all memory back; the version stays. */
template <typename Tree>
static inline void
gpu_hash_close(GpuChange *c, GpuHash<Tree> *h)
{
	gpu_hash_reclaim(c, h, UINT64_MAX);
	(void) h->overflow.drop(c);
	h->overflow.withdraw();
	gpu_tree_close(c, h);
	gpu_tree_set_head(h, 0, 0);
	gpu_span_give(c->pool, &h->buckets);
	h->bits = 0;
}

/* Device memory that a table holds. */
template <typename Tree>
static inline uint64_t
gpu_hash_bytes(const GpuHash<Tree> *h)
{
	uint64_t bytes = gpu_tree_bytes(h) + h->overflow.bytes() + gpu_span_bytes(&h->buckets);

	for (const GpuHashReplaced &r : h->outgrown)
		bytes += gpu_space_bytes(&r.space) + gpu_span_bytes(&r.buckets);
	return bytes;
}

/*
 * Growing.
 */

/* A walk through entries of the overflow tree, as GpuHashCursor. */
template <typename Probe> struct GpuHashTreeCursor
{
	GpudsView tree;
	typename Probe::Position p;

	GPU_FN GpuHashTreeCursor(const GpudsView &of, uint64_t rank) : tree(of)
	{
		Probe::select(tree, rank, &p);
	}

	GPU_FN GpudsEntry entry() const
	{
		return Probe::entry(tree, p);
	}

	GPU_FN void next()
	{
		Probe::step(tree, &p, true);
	}
};

/* Makes the buckets of a larger array; first only counts what they take. */
template <int nw, typename Probe> struct GpuHashGrow
{
	bool count;
	unsigned char *base;
	GpuHashTable table; /* whose buckets are copied */
	uint64_t version;   /* of the copies */
	GpuRef *buckets;    /* the new ones */
	uint32_t bits;
	/* entries that leave the overflow tree << 32 | lines: of each new bucket; then of those before it */
	uint64_t *taken;
	const GpuRef *top; /* of the stack that lines are taken from */
	uint32_t *in_tree; /* some new buckets are */
	GpudsOp *out;      /* deletes what leaves the tree */

	GPU_FN uint32_t mine(const GpudsEntry &e, uint64_t bucket) const
	{
		return gpu_hash_bucket(e, bits) == bucket;
	}

	/* How many entries the new bucket gets, and the first of them. */
	GPU_FN uint32_t part(int64_t bucket, GpuHashCursor<nw> *from) const
	{
		GpuHashCursor<nw> to = *from;
		uint32_t n = 0;

		while (from->left > 0 && !mine(from->entry(), (uint64_t) bucket))
			from->next();
		for (to = *from; to.left > 0 && mine(to.entry(), (uint64_t) bucket); to.next())
			n++;
		return n;
	}

	/* How many entries of the overflow tree are in buckets before this one. */
	GPU_FN uint64_t rank(const GpudsView &tree, int64_t bucket) const
	{
		GpudsEntry first = { (uint64_t) bucket << (64 - bits), 0, 0 };

		return bucket >> bits != 0 ? tree.entries : Probe::rank(tree, first, nw);
	}

	template <typename Cursor> GPU_FN void write(Cursor from, uint32_t n, const GpuRef *next) const
	{
		while (n > 0)
		{
			uint64_t *line = (uint64_t *) gpu_hash_line(base, *next);

			next--;
			line[0] = version << GPU_HASH_VERSION_SHIFT | n;
			line[1] = n > (uint32_t) gpu_hash_slots(nw) ? (uint64_t) *next << 32 : 0;
			for (int i = 0; i < gpu_hash_slots(nw) && n > 0; i++, n--)
			{
				gpu_hash_set_slot(line, i, from.entry(), nw);
				from.next();
			}
		}
	}

	/* Where a new bucket's lines are taken from. */
	GPU_FN const GpuRef *lines(int64_t i) const
	{
		return top - *in_tree - (uint32_t) taken[i];
	}

	/* Of a bucket that was in lines. */
	GPU_FN void copy(int64_t i, GpuRef ref) const
	{
		GpuHashCursor<nw> from(base, ref);
		uint32_t n = part(i, &from);

		if (count)
			taken[i] = n > 0 ? gpu_hash_lines(n, nw) : 0;
		else
		{
			buckets[i] = n > 0 ? *lines(i) : 0;
			write(from, n, lines(i));
		}
	}

	/* Of a bucket that was in the tree: there it stays, if it is still too full for lines. */
	GPU_FN void come_back(int64_t i) const
	{
		const GpudsView tree = gpu_hash_overflow(base, table, nw);
		const uint64_t from = rank(tree, i);
		const uint64_t n = rank(tree, i + 1) - from;

		if (n > (uint64_t) gpu_hash_most(nw))
			stay(i);
		else if (count)
			taken[i] = n > 0 ? n << 32 | gpu_hash_lines((uint32_t) n, nw) : 0;
		else if (n == 0)
			buckets[i] = 0;
		else
		{
			GpuHashTreeCursor<Probe> at(tree, from);
			GpudsOp *to = out + (taken[i] >> 32);

			buckets[i] = *lines(i);
			write(at, (uint32_t) n, lines(i));
			for (uint64_t k = 0; k < n; k++, at.next())
			{
				to[k].e = at.entry();
				to[k].order = GPUDS_OP_DELETE;
			}
		}
	}

	/* A line is there for all buckets that stay in the tree. */
	GPU_FN void stay(int64_t i) const
	{
		uint64_t *line;

		if (count)
		{
			taken[i] = 0;
			*in_tree = 1;
			return;
		}
		buckets[i] = *top;
		line = (uint64_t *) gpu_hash_line(base, *top);
		line[0] = version << GPU_HASH_VERSION_SHIFT | GPU_HASH_TREE;
		line[1] = 0;
	}

	GPU_FN void operator()(int64_t i) const
	{
		GpuRef ref = gpu_hash_first(base, table, (uint64_t) i >> (bits - table.bits));

		if (ref != 0 && gpu_hash_in_tree(gpu_hash_line(base, ref)))
			come_back(i);
		else
			copy(i, ref);
	}
};

/* Entries that a table of so many buckets is to have, at most. */
static inline uint64_t
gpu_hash_room(uint32_t bits, uint32_t nwords)
{
	return (UINT64_C(1) << bits) * (uint64_t) gpu_hash_slots((int) nwords) * 4 / 5;
}

/* What a table that grows copies, and where to. */
template <int nw, typename Tree>
static inline void
gpu_hash_grow_init(GpuChange *c, const GpuHash<Tree> *h, const GpuHash<Tree> *to,
				   GpuHashGrow<nw, typename Tree::Probe> *grow)
{
	grow->base = c->pool->base;
	grow->table.version = h->version;
	grow->table.buckets = gpu_hash_span_ref(&h->buckets);
	grow->table.bits = h->bits;
	grow->table.entries = h->overflow.tree.entries.load();
	grow->table.root = h->overflow.tree.root;
	grow->table.height = h->overflow.tree.height;
	grow->version = h->version + 1;
	grow->buckets = (GpuRef *) to->buckets.at;
	grow->bits = to->bits;
	grow->top = NULL;
	grow->out = NULL;
}

/*
 * Makes the lines that were counted, in the new space, and takes entries out of the overflow tree.  When this
 * has succeeded, the version has only to be published.
 */
template <int nw, typename Tree>
static inline GpuStatus
gpu_hash_grow_make(GpuChange *c, GpuHash<Tree> *h, GpuHash<Tree> *to,
				   GpuHashGrow<nw, typename Tree::Probe> grow)
{
	const int64_t moved = (int64_t) (gpu_hash_report(c)->sum >> 32);
	const uint32_t lines = (uint32_t) gpu_hash_report(c)->sum + gpu_hash_report(c)->in_tree;
	const GpuNodes *nodes = gpu_hash_nodes(to);
	GpuStatus status = GPU_OK;
	int64_t inserted;
	int64_t deleted;
	GpuSpan span;

	if (!gpu_hash_reserve(c, to, lines, 0) ||
		(moved > 0 && !gpu_span_take(c->pool, &span, (size_t) moved * sizeof(GpudsOp))))
		return GPU_NO_MEMORY;
	grow.count = false;
	grow.top = nodes->free.at + nodes->nfree - 1;
	grow.out = (GpudsOp *) span.at;
	gpu_launch(&c->stream, INT64_C(1) << to->bits, grow);
	if (moved > 0)
		status = gpu_hash_overflow_tree(h)->apply_there(c, grow.out, moved, &inserted, &deleted);
	gpu_change_give(c, &span);
	if (status == GPU_OK && !gpu_finish(&c->stream))
		status = gpu_change_status(c);
	/* gpu_hash_publish wants to know */
	gpu_hash_report(c)->taken = lines;
	return status;
}

/* Makes more buckets in a new space.  GPU_NO_MEMORY: nothing was changed. */
template <int nw, typename Tree>
static inline GpuStatus
gpu_hash_grow_into(GpuChange *c, GpuHash<Tree> *h, GpuHash<Tree> *to)
{
	const int64_t n = INT64_C(1) << to->bits;
	GpuScratch scratch = { NULL, 0 };
	GpuStream *s = &c->stream;
	GpuHashReport *report = gpu_hash_report(c);
	GpuStatus status;
	GpuHashGrow<nw, typename Tree::Probe> grow;
	GpuSpan span;

	grow.taken = gpu_scratch<uint64_t>(&scratch, n + 1);
	grow.in_tree = gpu_scratch<uint32_t>(&scratch, 1);
	gpu_scratch_temp(&scratch, s, n + 1);
	if (!gpu_scratch_take(c->pool, &span, &scratch))
		return GPU_NO_MEMORY;
	grow.taken = gpu_scratch<uint64_t>(&scratch, n + 1);
	grow.in_tree = gpu_scratch<uint32_t>(&scratch, 1);
	gpu_scratch_temp(&scratch, s, n + 1);
	gpu_hash_grow_init(c, h, to, &grow);
	grow.count = true;
	gpu_fill(s, grow.in_tree, 0, sizeof(uint32_t));
	gpu_fill(s, grow.taken + n, 0, sizeof(uint64_t));
	gpu_launch(s, n, grow);
	gpu_exclusive_sum(s, grow.taken, grow.taken, n + 1);
	gpu_copy_bus(s, &report->sum, grow.taken + n, sizeof(uint64_t));
	gpu_copy_bus(s, &report->in_tree, grow.in_tree, sizeof(uint32_t));
	status = gpu_finish(s) ? gpu_hash_grow_make(c, h, to, grow) : gpu_change_status(c);
	gpu_change_give(c, &span);
	return status;
}

/*
 * Builds the table anew with 2^bits buckets, more than it has, and publishes that as a version.
 * GPU_NO_MEMORY: nothing was changed.
 */
template <typename Tree>
static inline GpuStatus
gpu_hash_grow(GpuChange *c, GpuHash<Tree> *h, uint32_t bits)
{
	const uint32_t units = GPU_HASH_LINE_UNITS;
	GpuHashReplaced replaced;
	GpuStatus status = GPU_NO_MEMORY;
	GpuHash<Tree> to;

	to.bits = bits;
	if (!gpu_pool_list(c->pool, &h->outgrown, 1) || !gpu_space_open(c, &to.space, 1, &units))
		return GPU_NO_MEMORY;
	if (gpu_span_take(c->pool, &to.buckets, sizeof(GpuRef) << bits))
		status = h->nwords == 1 ? gpu_hash_grow_into<1>(c, h, &to) : gpu_hash_grow_into<2>(c, h, &to);
	if (status != GPU_OK)
	{
		gpu_hash_close(c, &to);
		return status;
	}
	replaced.space = std::move(h->space);
	replaced.buckets = h->buckets;
	h->space = std::move(to.space);
	h->buckets = to.buckets;
	h->bits = bits;
	h->root = 0;
	if (!gpu_hash_publish(c, h, h->entries.load(), (uint32_t) gpu_hash_report(c)->taken, 0))
		return gpu_change_status(c);
	replaced.version = h->version;
	h->outgrown.push_back(std::move(replaced));
	return GPU_OK;
}

/*
 * Builds the overflow tree anew if deletes, or buckets that have come back from it, have left it thin, and
 * publishes that as a version.  True: it did.
 */
template <typename Tree>
static inline bool
gpu_hash_compact(GpuChange *c, GpuHash<Tree> *h)
{
	Tree *overflow = gpu_hash_overflow_tree(h);

	if (overflow->tree.nwords == 0 || !overflow->wasteful() || !gpu_hash_reserve(c, h, 0, 0) ||
		!overflow->compact(c))
		return false;
	return gpu_hash_publish(c, h, h->entries.load(), 0, 0);
}

/* An empty table, not shown to readers; false: out of memory, gpu_hash_close must follow. */
template <typename Tree>
static inline bool
gpu_hash_open(GpuChange *c, GpuHash<Tree> *h, uint32_t nwords, uint32_t fill_percent)
{
	const uint32_t units = GPU_HASH_LINE_UNITS;

	h->load.fill_percent = fill_percent;
	h->nwords = nwords;
	h->loading = true;
	h->bits = GPU_HASH_LEAST_BITS;
	if (!gpu_space_open(c, &h->space, 1, &units) ||
		!gpu_span_take(c->pool, &h->buckets, sizeof(GpuRef) << h->bits))
		return false;
	gpu_fill(&c->stream, h->buckets.at, 0, sizeof(GpuRef) << h->bits);
	return gpu_hash_reserve(c, h, 0, 0) && gpu_hash_publish(c, h, 0, 0, 0);
}

#endif /* HASH_TABLE_GPU_H */
