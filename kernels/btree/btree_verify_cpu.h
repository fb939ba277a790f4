/*-------------------------------------------------------------------------
 *
 * btree_verify_cpu.h
 *	  Checking everything that a tree in an arena promises.
 *
 * The nodes are checked by walking the tree (btree_verify.h), the memory as that of any tree
 * (cpu_verify.h).
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_VERIFY_CPU_H
#define BTREE_VERIFY_CPU_H

#include "kernels/btree/btree_build_cpu.h"
#include "kernels/btree/btree_verify.h"
#include "kernels/cpu/cpu_verify.h"

/* Nodes side by side: what their parents promise of them, in a BtreeList. */
typedef struct CpuBtreeSiblings
{
	uint64_t w0[BTREE_FANOUT + 2];
	uint64_t w1[BTREE_FANOUT + 2];
	uint64_t t[BTREE_FANOUT + 2];
	BtreeRef ref[BTREE_FANOUT + 2];
	uint32_t before[BTREE_FANOUT + 3];
	BtreeList list;
} CpuBtreeSiblings;

/* n places, none of which is a node yet. */
HOST_FN void
cpu_btree_siblings_init(CpuBtreeSiblings *siblings, int64_t n)
{
	memset(siblings, 0, sizeof(*siblings));
	siblings->list.w0 = siblings->w0;
	siblings->list.w1 = siblings->w1;
	siblings->list.t = siblings->t;
	siblings->list.ref = siblings->ref;
	siblings->list.before = siblings->before;
	siblings->list.n = n;
}

/*
 * The children of sound inner node i of a list, the first of them at place
 * *first.  At either side is a place for the neighbour, if there is one, of which
 * only the separators and the numbers of entries are used.
 */
HOST_FN void
cpu_btree_siblings_open(CpuBtreeSiblings *children, const Arena *arena, const BtreeList *list, int64_t i,
						int64_t *first, const int nw)
{
	const unsigned char *base = (const unsigned char *) arena;
	int n = btree_inner_n(btree_node(base, list->ref[i]));
	bool last = i + 1 == list->n;
	uint32_t start[BTREE_FANOUT + 2];

	*first = i > 0 ? 1 : 0;
	start[i] = (uint32_t) *first;
	cpu_btree_siblings_init(children, *first + n + (last ? 0 : 1));
	for (int p = 0; p < n; p++)
		btree_verify_open(base, list, start, &children->list, i, p, nw);
	children->before[*first + n] = list->before[i + 1];
	if (!last)
	{
		GpudsEntry high = btree_list_separator(list, i + 1, nw);

		btree_list_set_separator(&children->list, *first + n, &high, nw);
	}
}

/*
 * Node i of a list and what is below it; right: at the tree's right edge.  Recursion is as deep as the
 * tree.
 */
HOST_FN bool
cpu_btree_verify_node(CpuVerify *v, const BtreeList *list, int64_t i, int level, bool right)
{
	const int nw = (int) v->tree->nwords;
	const unsigned char *base = (const unsigned char *) v->arena;
	const char *kind = level > 0 ? "inner node" : "leaf";
	BtreeRef ref = list->ref[i];
	const uint64_t *node = btree_node(base, ref);
	CpuBtreeSiblings children;
	BtreeFault fault;
	int64_t first;
	int n;

	/* the first unit before the rest: it says how many there are */
	if (!cpu_verify_mark(v, ref, 1, kind) ||
		!cpu_verify_mark(v, ref + 1, (level > 0 ? cpu_btree_inner_units(node[0]) : btree_leaf_units(nw)) - 1,
						 kind))
		return false;
	if (level == 0)
		fault = btree_verify_leaf(base, list, i, nw);
	else if (btree_header_details_mask(node[0]) != 0)
		fault = btree_verify_inner(base, list, i, nw);
	else
		fault = btree_verify_children(base, list, i, nw);
	if (fault != BTREE_SOUND)
		return cpu_verify_wrong(v, "%s at unit %u %s", kind, ref, btree_fault_words(fault));
	n = level > 0 ? btree_inner_n(node) : btree_leaf_n(node, nw);
	if (n < CPU_BTREE_MIN && !right)
		return cpu_verify_wrong(v, "%s at unit %u is less than half full", kind, ref);
	if (level == 0)
		return true;
	cpu_btree_siblings_open(&children, v->arena, list, i, &first, nw);
	for (int p = 0; p < n; p++)
	{
		if (!cpu_btree_verify_node(v, &children.list, first + p, level - 1, right && p == n - 1))
			return false;
	}
	return true;
}

/* All nodes of a tree that has some. */
HOST_FN bool
cpu_btree_verify_root(CpuVerify *v)
{
	GpudsEntry lowest = { 0, 0, 0 };
	CpuBtreeSiblings root;

	cpu_btree_siblings_init(&root, 1);
	btree_list_set_separator(&root.list, 0, &lowest, (int) v->tree->nwords);
	root.ref[0] = head_root(v->tree->head);
	root.before[0] = 0;
	root.before[1] = (uint32_t) cpu_tree_entries(v->tree);
	return cpu_btree_verify_node(v, &root.list, 0, head_height(v->tree->head) - 1, true);
}

/* The head of a tree that was not withdrawn, and all nodes. */
HOST_FN bool
cpu_btree_verify_tree(CpuVerify *v)
{
	uint64_t head = v->tree->head;
	int height = head_height(head);
	uint64_t count = cpu_tree_entries(v->tree);

	if ((uint32_t) head_nwords(head) != v->tree->nwords || v->tree->nwords < 1 || v->tree->nwords > 2)
		return cpu_verify_wrong(v, "%u key words, but the head says %d", v->tree->nwords, head_nwords(head));
	if (height > CPU_BTREE_MAX_HEIGHT || (height == 0) != (head_root(head) == 0))
		return cpu_verify_wrong(v, "height %d with root at unit %u", height, head_root(head));
	if (count > BTREE_MAX_ENTRIES || (height == 0 && count != 0))
		return cpu_verify_wrong(v, "height %d with %llu entries", height, (unsigned long long) count);
	if (v->tree->count[cpu_head_count(head)] != count)
		return cpu_verify_wrong(v, "%llu entries, but the head's count says %llu", (unsigned long long) count,
								(unsigned long long) v->tree->count[cpu_head_count(head)]);
	return height == 0 || cpu_btree_verify_root(v);
}

/*
 * Checks a tree; the caller keeps others from changing it.  False: why says
 * what is wrong.
 */
HOST_FN bool
btree_cpu_verify(const Arena *arena, const CpuTree *tree, char *why, size_t whylen)
{
	CpuVerify v;

	return cpu_verify(&v, arena, tree, cpu_btree_verify_tree, why, whylen);
}

#endif /* BTREE_VERIFY_CPU_H */
