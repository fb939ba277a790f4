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

#include "kernels/runtime/gpu_verify.h"
#include "kernels/btree/btree_tree_gpu.h"
#include "kernels/btree/btree_verify.h"

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
struct GpuBtreeVerify : GpuVerify
{
	BtreeList list[2]; /* of levels in turn */
	uint32_t *start;
};

static inline void
gpu_btree_verify_layout(GpuScratch *scratch, GpuBtreeVerify *v, GpuChange *c, const GpuTree *tree)
{
	int64_t most = 1;

	for (int level = 0; level < tree->height; level++)
		most = tree->level_n[level] > most ? tree->level_n[level] : most;
	gpu_verify_layout(scratch, v, c, tree);
	for (int i = 0; i < 2; i++)
		gpu_scratch_list(scratch, &v->list[i], most, tree->nwords);
	v->start = gpu_scratch<uint32_t>(scratch, most + 1);
	gpu_scratch_temp(scratch, &c->stream, most + 1);
}

/* Checks all levels; false: there is a fault, which the report has. */
template <int nw>
static inline bool
gpu_btree_verify_levels(GpuChange *c, const GpuTree *tree, GpuBtreeVerify *v)
{
	GpuStream *s = &c->stream;

	for (int level = tree->height - 1; level >= 0; level--)
	{
		BtreeList list = v->list[level & 1];
		BtreeList children = v->list[(level + 1) & 1];

		list.n = tree->level_n[level];
		if (level == tree->height - 1)
			gpu_launch(s, 1, GpuVerifyRoot{ list, tree->root, (uint32_t) tree->entries.load() });
		gpu_verify_mark(c, v, level > 0 ? GPU_BTREE_INNERS : GPU_BTREE_LEAVES, list.ref, list.n);
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

/*
 * Checks a tree's newest version and its memory.  GPU_DAMAGED: why says what is
 * wrong.  Takes working memory of about 30 bytes a leaf from the pool.
 */
static inline GpuStatus
gpu_btree_verify(GpuChange *c, const GpuTree *tree, char *why, size_t whylen)
{
	static const char *const kinds[GPU_BTREE_KINDS] = { "leaves", "inner nodes" };
	GpuScratch scratch = { NULL, 0 };
	GpuBtreeVerify v;
	GpuSpan span;
	bool sound;

	snprintf(why, whylen, "%s", "");
	if (tree->nwords == 0 || tree->loading)
		return GPU_WITHDRAWN;
	gpu_btree_verify_layout(&scratch, &v, c, tree);
	if (!gpu_scratch_take(c->pool, &span, &scratch))
		return GPU_NO_MEMORY;
	gpu_btree_verify_layout(&scratch, &v, c, tree);
	gpu_verify_begin(c, &v, tree);
	sound = tree->nwords == 1 ? gpu_btree_verify_levels<1>(c, tree, &v)
							  : gpu_btree_verify_levels<2>(c, tree, &v);
	sound = sound && gpu_verify_rest(c, tree, &v, kinds, why, whylen);
	return gpu_verify_end(c, &span, sound, "node at unit", btree_fault_words, why, whylen);
}

#endif /* BTREE_VERIFY_GPU_H */
