/*-------------------------------------------------------------------------
 *
 * btree_verify_gpu.h
 *	  Checking everything that a tree in device memory promises.
 *
 * The device does it, by the functions of btree_verify.h.  The first fault that any of its
 * threads finds is put into words.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_VERIFY_GPU_H
#define BTREE_VERIFY_GPU_H

#include "kernels/btree/btree_tree_gpu.h"
#include "kernels/btree/btree_verify.h"

GPU_FN void
gpu_note_fault(GpuFinding *finding, BtreeFault fault, BtreeRef ref)
{
	if (fault != BTREE_SOUND && gpu_atomic_add(&finding->faults, 1) == 0)
	{
		finding->fault = (uint32_t) fault;
		finding->ref = ref;
	}
}

/* Marks nodes as used; each must be so for the first time. */
struct GpuMark
{
	const BtreeRef *ref;
	BtreeOwned owned;
	GpuFinding *finding;

	GPU_FN void operator()(int64_t i) const
	{
		int64_t node = btree_owned_number(&owned, ref[i]);

		if (node < 0)
			gpu_note_fault(finding, BTREE_BAD_REF, ref[i]);
		else if (gpu_atomic_or(&owned.marked[node / 32], 1u << (node % 32)) >> (node % 32) & 1)
			gpu_note_fault(finding, BTREE_USED_TWICE, ref[i]);
	}
};

/* Checks the nodes of a level, and counts the children of each. */
template <int nw> struct GpuVerifyLevel
{
	const unsigned char *base;
	BtreeList list;
	int level;
	uint32_t *start; /* inner nodes; one more */
	GpuFinding *finding;

	GPU_FN void operator()(int64_t i) const
	{
		if (level == 0)
			gpu_note_fault(finding, btree_verify_leaf(base, &list, i, nw), list.ref[i]);
		else
			gpu_note_fault(finding, btree_verify_inner(base, &list, i, nw), list.ref[i]);
		if (level > 0)
			start[i] = (uint32_t) btree_inner_n(btree_node(base, list.ref[i]));
		if (level > 0 && i == 0)
			start[list.n] = 0;
	}
};

/* Are there as many children in all as the host says? */
struct GpuVerifyCount
{
	BtreeList list;
	const uint32_t *start;
	uint32_t children;
	GpuFinding *finding;

	GPU_FN void operator()(int64_t) const
	{
		if (start[list.n] != children)
			gpu_note_fault(finding, BTREE_BAD_LEVEL, list.ref[0]);
	}
};

template <int nw> struct GpuVerifyOpen
{
	const unsigned char *base;
	BtreeList list;
	const uint32_t *start;
	BtreeList children;

	GPU_FN void operator()(int64_t i) const
	{
		btree_verify_open(base, &list, start, &children, i / BTREE_FANOUT, (int) (i % BTREE_FANOUT), nw);
	}
};

/* The list of the root's level. */
struct GpuVerifyRoot
{
	BtreeList list;
	BtreeRef root;
	uint32_t entries;

	GPU_FN void operator()(int64_t) const
	{
		list.w0[0] = list.t[0] = 0;
		if (list.w1)
			list.w1[0] = 0;
		list.ref[0] = root;
		list.before[0] = 0;
		list.before[1] = entries;
	}
};

/* Working memory. */
struct GpuVerify
{
	GpuFinding *finding;
	BtreeOwned leaves;
	BtreeOwned inners;
	uint32_t *leaf_chunks; /* BtreeOwned.number */
	uint32_t *inner_chunks;
	size_t leaf_words; /* of marks */
	size_t inner_words;
	BtreeList list[2]; /* of levels in turn */
	uint32_t *start;
};

static inline void
gpu_verify_layout(GpuScratch *scratch, GpuVerify *v, GpuChange *c, const GpuTree *tree)
{
	const GpuNodes *leaves = &tree->space.nodes[GPU_TREE_LEAVES];
	const GpuNodes *inners = &tree->space.nodes[GPU_TREE_INNERS];
	int64_t most = 1;

	for (int level = 0; level < tree->height; level++)
		most = tree->level_n[level] > most ? tree->level_n[level] : most;
	v->finding = gpu_scratch<GpuFinding>(scratch, 1);
	v->leaf_chunks = gpu_scratch<uint32_t>(scratch, c->pool->nchunks);
	v->inner_chunks = gpu_scratch<uint32_t>(scratch, c->pool->nchunks);
	v->leaf_words = leaves->chunks.size() * gpu_nodes_per_chunk(leaves) / 32 + 1;
	v->inner_words = inners->chunks.size() * gpu_nodes_per_chunk(inners) / 32 + 1;
	v->leaves.marked = gpu_scratch<uint32_t>(scratch, (int64_t) v->leaf_words);
	v->inners.marked = gpu_scratch<uint32_t>(scratch, (int64_t) v->inner_words);
	for (int i = 0; i < 2; i++)
		gpu_scratch_list(scratch, &v->list[i], most, tree->nwords);
	v->start = gpu_scratch<uint32_t>(scratch, most + 1);
	gpu_scratch_temp(scratch, &c->stream, most + 1);
}

/* Sends to the device which chunks a kind of nodes has, and clears the marks. */
static inline void
gpu_verify_own(GpuChange *c, const GpuNodes *nodes, BtreeOwned *owned, uint32_t *number, size_t words)
{
	uint32_t *host = c->host_chunks;

	gpu_finish(&c->stream);
	memset(host, 0, c->pool->nchunks * sizeof(uint32_t));
	for (size_t i = 0; i < nodes->chunks.size(); i++)
		host[nodes->chunks[i]] = (uint32_t) i + 1;
	gpu_copy_bus(&c->stream, number, host, c->pool->nchunks * sizeof(uint32_t));
	gpu_fill(&c->stream, owned->marked, 0, words * sizeof(uint32_t));
	owned->number = number;
	owned->nchunks = c->pool->nchunks;
	owned->chunk_units = GPU_CHUNK_UNITS;
	owned->units = nodes->node_units;
}

/* Fetches what has been found so far; false: there is a fault. */
static inline bool
gpu_verify_look(GpuChange *c, const GpuVerify *v)
{
	gpu_copy_bus(&c->stream, &gpu_tree_report(c)->finding, v->finding, sizeof(GpuFinding));
	return gpu_finish(&c->stream) && gpu_tree_report(c)->finding.faults == 0;
}

static inline void
gpu_verify_mark(GpuChange *c, const GpuVerify *v, const BtreeOwned *owned, const BtreeRef *refs, int64_t n)
{
	gpu_launch(&c->stream, n, GpuMark{ refs, *owned, v->finding });
}

/* Checks all levels; false: there is a fault, which the report has. */
template <int nw>
static inline bool
gpu_verify_levels(GpuChange *c, const GpuTree *tree, GpuVerify *v)
{
	GpuStream *s = &c->stream;

	for (int level = tree->height - 1; level >= 0; level--)
	{
		BtreeList list = v->list[level & 1];
		BtreeList children = v->list[(level + 1) & 1];

		list.n = tree->level_n[level];
		if (level == tree->height - 1)
			gpu_launch(s, 1, GpuVerifyRoot{ list, tree->root, (uint32_t) tree->entries.load() });
		gpu_verify_mark(c, v, level > 0 ? &v->inners : &v->leaves, list.ref, list.n);
		if (!gpu_verify_look(c, v))
			return false;
		gpu_launch(s, list.n, GpuVerifyLevel<nw>{ c->pool->base, list, level, v->start, v->finding });
		if (level == 0)
			break;
		children.n = tree->level_n[level - 1];
		gpu_exclusive_sum(s, v->start, v->start, list.n + 1);
		gpu_launch(s, 1, GpuVerifyCount{ list, v->start, (uint32_t) children.n, v->finding });
		if (!gpu_verify_look(c, v))
			return false;
		gpu_launch(s, list.n * BTREE_FANOUT, GpuVerifyOpen<nw>{ c->pool->base, list, v->start, children });
	}
	return gpu_verify_look(c, v);
}

/* Checks the nodes of one kind that are free or retired; with the live ones they must be all. */
static inline bool
gpu_verify_rest(GpuChange *c, const GpuNodes *nodes, const BtreeOwned *owned, const GpuVerify *v,
				const char *kind, char *why, size_t whylen)
{
	uint32_t retired = nodes->retired_to - nodes->retired_from;
	uint64_t all = (uint64_t) nodes->chunks.size() * gpu_nodes_per_chunk(nodes);
	uint64_t known = (uint64_t) nodes->nlive + nodes->nfree + retired;

	gpu_verify_mark(c, v, owned, nodes->free.at, nodes->nfree);
	gpu_verify_mark(c, v, owned, nodes->retired.at + nodes->retired_from, retired);
	if (!gpu_verify_look(c, v))
		return false;
	if (known != all)
		snprintf(why, whylen, "of %llu %s %llu are in use, unused or replaced", (unsigned long long) all,
				 kind, (unsigned long long) known);
	return known == all;
}

/*
 * Checks a tree's newest version and its memory.  GPU_DAMAGED: why says what is
 * wrong.  Takes working memory of about 30 bytes a leaf from the pool.
 */
static inline GpuStatus
gpu_tree_verify(GpuChange *c, GpuTree *tree, char *why, size_t whylen)
{
	const GpuFinding *finding = &gpu_tree_report(c)->finding;
	const GpuNodes *leaves = &tree->space.nodes[GPU_TREE_LEAVES];
	const GpuNodes *inners = &tree->space.nodes[GPU_TREE_INNERS];
	GpuScratch scratch = { NULL, 0 };
	GpuVerify v;
	GpuSpan span;
	bool sound;

	snprintf(why, whylen, "%s", "");
	if (tree->nwords == 0 || tree->loading)
		return GPU_WITHDRAWN;
	gpu_verify_layout(&scratch, &v, c, tree);
	if (!gpu_scratch_take(c->pool, &span, &scratch))
		return GPU_NO_MEMORY;
	gpu_verify_layout(&scratch, &v, c, tree);
	gpu_fill(&c->stream, v.finding, 0, sizeof(GpuFinding));
	gpu_verify_own(c, leaves, &v.leaves, v.leaf_chunks, v.leaf_words);
	gpu_verify_own(c, inners, &v.inners, v.inner_chunks, v.inner_words);
	sound = tree->nwords == 1 ? gpu_verify_levels<1>(c, tree, &v) : gpu_verify_levels<2>(c, tree, &v);
	sound = sound && gpu_verify_rest(c, leaves, &v.leaves, &v, "leaves", why, whylen) &&
			gpu_verify_rest(c, inners, &v.inners, &v, "inner nodes", why, whylen);
	gpu_span_give(c->pool, &span);
	if (gpu_change_ok(c) && finding->faults != 0)
		snprintf(why, whylen, "node at unit %u %s", finding->ref,
				 btree_fault_words((BtreeFault) finding->fault));
	if (!gpu_change_ok(c))
		return gpu_change_status(c);
	return sound ? GPU_OK : GPU_DAMAGED;
}

#endif /* BTREE_VERIFY_GPU_H */
