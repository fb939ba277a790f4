/*-------------------------------------------------------------------------
 *
 * hash_verify_gpu.h
 *	  Checking everything that a hash table in device memory promises.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HASH_VERIFY_GPU_H
#define HASH_VERIFY_GPU_H

#include "kernels/runtime/gpu_verify.h"
#include "kernels/hash/hash_table_gpu.h"

/* What may be wrong with a bucket, besides what any node may have. */
enum GpuHashFault
{
	GPU_HASH_BAD_LINE = 100, /* number of entries, version, or next line */
	GPU_HASH_BAD_ORDER,      /* of entries, or one of another bucket */
	GPU_HASH_BAD_TREE        /* an entry of the tree whose bucket is not in it */
};

static inline const char *
gpu_hash_fault_words(uint32_t fault)
{
	switch ((GpuHashFault) fault)
	{
		case GPU_HASH_BAD_LINE:
			return "has a line that is not as it must be";
		case GPU_HASH_BAD_ORDER:
			return "has entries out of order, or of another bucket";
		case GPU_HASH_BAD_TREE:
			return "has an entry in the overflow tree, but is not there";
	}
	return "is sound";
}

/* Checks a bucket of the newest version, and marks its lines. */
template <int nw> struct GpuHashVerify
{
	const unsigned char *base;
	GpuHashTable table;
	GpuOwned owned;
	uint64_t *entries; /* in lines */
	uint64_t *lines;   /* marked */
	GpuFinding *finding;

	/* Marks a node; true: it was not marked before.  What is wrong is noted. */
	GPU_FN bool mark(GpuRef ref, uint64_t bucket, bool shared) const
	{
		int64_t node = owned.node(ref);

		if (node < 0)
			gpu_note_fault(finding, GPU_BAD_REF, (GpuRef) bucket);
		else if (owned.mark(node))
		{
			gpu_atomic_add64(lines, 1);
			return true;
		}
		else if (!shared)
			gpu_note_fault(finding, GPU_USED_TWICE, (GpuRef) bucket);
		return node >= 0 && shared;
	}

	GPU_FN void fault(GpuHashFault what, uint64_t bucket) const
	{
		gpu_note_fault(finding, what, (GpuRef) bucket);
	}

	/* Are the entries of a line those of the bucket, and behind *last? */
	GPU_FN void check_entries(const uint64_t *line, uint32_t n, uint64_t bucket, bool first,
							  GpudsEntry *last) const
	{
		for (int i = 0; i < (int) n; i++)
		{
			GpudsEntry e = gpu_hash_slot(line, i, nw);

			if (gpu_hash_bucket(e, table.bits) != bucket || ((!first || i > 0) && !entry_less(last, &e)))
				fault(GPU_HASH_BAD_ORDER, bucket);
			*last = e;
		}
	}

	GPU_FN void check_lines(GpuRef ref, uint64_t bucket) const
	{
		const uint32_t slots = (uint32_t) gpu_hash_slots(nw);
		uint32_t left = gpu_hash_n(gpu_hash_line(base, ref));
		GpudsEntry last = { 0, 0, 0 };

		gpu_atomic_add64(entries, left);
		for (bool first = true;; first = false)
		{
			const uint64_t *line = gpu_hash_line(base, ref);
			uint32_t n = left < slots ? left : slots;

			check_entries(line, n, bucket, first, &last);
			left -= n;
			ref = gpu_hash_next(line);
			if ((left > 0) != (ref != 0))
				fault(GPU_HASH_BAD_LINE, bucket);
			if (left == 0 || ref == 0 || !mark(ref, bucket, false))
				break;
			if (line[0] - n != gpu_hash_line(base, ref)[0])
				fault(GPU_HASH_BAD_LINE, bucket);
		}
	}

	GPU_FN void operator()(int64_t i) const
	{
		GpuRef ref = ((const GpuRef *) gpu_hash_line(base, table.buckets))[i];
		const uint64_t *line;

		if (ref == 0)
			return;
		if (owned.node(ref) < 0)
		{
			gpu_note_fault(finding, GPU_BAD_REF, (GpuRef) i);
			return;
		}
		line = gpu_hash_line(base, ref);
		/* buckets that were in the tree when the table grew share a line */
		if (!mark(ref, (uint64_t) i, gpu_hash_in_tree(line)))
			return;
		if (line[0] >> GPU_HASH_VERSION_SHIFT > table.version ||
			gpu_hash_n(line) > (uint32_t) gpu_hash_most(nw) ||
			(gpu_hash_in_tree(line) && gpu_hash_n(line) > 0))
			fault(GPU_HASH_BAD_LINE, (uint64_t) i);
		else if (!gpu_hash_in_tree(line))
			check_lines(ref, (uint64_t) i);
	}
};

/* Is the bucket of each entry of the overflow tree there? */
template <typename Probe> struct GpuHashVerifyTree
{
	GpudsView view;
	GpuHashTable table;
	GpuFinding *finding;

	GPU_FN void operator()(int64_t i) const
	{
		typename Probe::Position p;
		uint64_t bucket;
		GpuRef ref;

		Probe::select(view, (uint64_t) i, &p);
		bucket = gpu_hash_bucket(Probe::entry(view, p), table.bits);
		ref = ((const GpuRef *) gpu_hash_line(view.base, table.buckets))[bucket];
		if (ref == 0 || !gpu_hash_in_tree(gpu_hash_line(view.base, ref)))
			gpu_note_fault(finding, GPU_HASH_BAD_TREE, (GpuRef) bucket);
	}
};

/* Working memory. */
struct GpuHashVerifyMemory : GpuVerify
{
	uint64_t *counts; /* entries, lines */
};

static inline void
gpu_hash_verify_layout(GpuScratch *scratch, GpuHashVerifyMemory *m, GpuChange *c, const GpuTree *h)
{
	gpu_verify_layout(scratch, m, c, h);
	m->counts = gpu_scratch<uint64_t>(scratch, 2);
}

/* Checks buckets and lines; false: there is a fault, in the report, or in words if there are any. */
template <int nw, typename Tree>
static inline bool
gpu_hash_verify_lines(GpuChange *c, GpuHash<Tree> *h, const GpuHashVerifyMemory *m, char *why, size_t whylen)
{
	const GpuNodes *nodes = gpu_hash_nodes(h);
	GpuHashReport *report = gpu_hash_report(c);
	GpuStream *s = &c->stream;
	GpuHashVerify<nw> verify;

	verify.base = c->pool->base;
	verify.table.version = h->version;
	verify.table.buckets = gpu_hash_span_ref(&h->buckets);
	verify.table.bits = h->bits;
	verify.owned = m->owned[0];
	verify.entries = &m->counts[0];
	verify.lines = &m->counts[1];
	verify.finding = m->finding;
	gpu_launch(s, INT64_C(1) << h->bits, verify);
	if (h->overflow.tree.entries.load() > 0)
	{
		GpuHashVerifyTree<typename Tree::Probe> tree = { {}, verify.table, m->finding };

		(void) h->overflow.view(c->pool, &tree.view);
		gpu_launch(s, (int64_t) tree.view.entries, tree);
	}
	gpu_copy_bus(s, &report->sum, verify.entries, sizeof(uint64_t));
	gpu_copy_bus(s, &report->taken, verify.lines, sizeof(uint64_t));
	if (!gpu_verify_look(c, m))
		return false;
	if (report->sum == gpu_hash_in_lines(h) && report->taken + 1 == nodes->nlive)
		return true;
	snprintf(why, whylen, "buckets have %llu entries in %llu lines, expected %llu in %u",
			 (unsigned long long) report->sum, (unsigned long long) report->taken,
			 (unsigned long long) gpu_hash_in_lines(h), nodes->nlive - 1);
	return false;
}

/* The same, and nodes that are free or retired. */
template <typename Tree>
static inline bool
gpu_hash_verify_all(GpuChange *c, GpuHash<Tree> *h, const GpuHashVerifyMemory *m, char *why, size_t whylen)
{
	static const char *const kinds[] = { "lines" };

	/* what the version consists of is a node, too */
	gpu_hash_report(c)->table = h->root;
	gpu_verify_mark(c, m, 0, &gpu_hash_device_report(c)->table, 1);
	return (h->nwords == 1 ? gpu_hash_verify_lines<1>(c, h, m, why, whylen)
						   : gpu_hash_verify_lines<2>(c, h, m, why, whylen)) &&
		   gpu_verify_rest(c, h, m, kinds, why, whylen);
}

/* Checks a table's newest version and its memory.  GPU_DAMAGED: why says what is wrong. */
template <typename Tree>
static inline GpuStatus
gpu_hash_verify(GpuChange *c, GpuHash<Tree> *h, char *why, size_t whylen)
{
	GpuScratch scratch = { NULL, 0 };
	GpuHashVerifyMemory m;
	GpuStatus status;
	GpuSpan span;
	bool sound;

	snprintf(why, whylen, "%s", "");
	if (h->nwords == 0 || h->loading)
		return GPU_WITHDRAWN;
	if (h->overflow.tree.nwords != 0 && (status = h->overflow.verify(c, why, whylen)) != GPU_OK)
		return status;
	gpu_hash_verify_layout(&scratch, &m, c, h);
	if (!gpu_scratch_take(c->pool, &span, &scratch))
		return GPU_NO_MEMORY;
	gpu_hash_verify_layout(&scratch, &m, c, h);
	gpu_verify_begin(c, &m, h);
	gpu_fill(&c->stream, m.counts, 0, 2 * sizeof(uint64_t));
	sound = gpu_hash_verify_all(c, h, &m, why, whylen);
	return gpu_verify_end(c, &span, sound, "bucket", gpu_hash_fault_words, why, whylen);
}

#endif /* HASH_VERIFY_GPU_H */
