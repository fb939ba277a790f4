/*-------------------------------------------------------------------------
 *
 * avl_verify_cpu.h
 *	  Checking everything that an AVL tree in an arena promises, while nobody changes it.
 *
 * Memory is accounted for as that of any tree (cpu_verify.h).  Of the tree:
 *
 *	  - The list leads from the bottom to the top in ascending order of entries, and back the same way.
 *	  - No node of it is removed, locked or queued.
 *	  - The tree has the nodes of the list, in its order.  Each leads to its parent, has the right
 *		height, and its children's heights differ by one at most.
 *	  - There are as many entries as the head says.
 *	  - Nodes that wait to be freed are removed, and in the order of their versions.
 *
 *-------------------------------------------------------------------------
 */
#ifndef AVL_VERIFY_CPU_H
#define AVL_VERIFY_CPU_H

#include "kernels/avl/avl_tree_cpu.h"
#include "kernels/cpu/cpu_verify.h"

/* A tree of 2^32 nodes is not higher. */
#define AVL_MAX_HEIGHT 46

/* A node of the list, behind another. */
HOST_FN bool
avl_verify_node(CpuVerify *v, uint32_t ref, uint32_t before, uint32_t top)
{
	const AvlNode *node = avl_at(v->arena, ref);

	if (node->pred != before)
		return cpu_verify_wrong(v, "the node at unit %u is behind unit %u, not %u", ref, before, node->pred);
	if (node->state != 0)
		return cpu_verify_wrong(v, "the node at unit %u is in state %u", ref, node->state);
	if (before != avl_bottom(top) && !entry_less(&avl_at(v->arena, before)->e, &node->e))
		return cpu_verify_wrong(v, "the node at unit %u is out of order", ref);
	return true;
}

/* The list, whose nodes it marks. */
HOST_FN bool
avl_verify_list(CpuVerify *v, uint32_t top)
{
	const uint32_t bottom = avl_bottom(top);
	uint64_t entries = 0;
	uint32_t before = bottom;

	if (!cpu_verify_mark(v, top, 2, "top"))
		return false;
	if (avl_at(v->arena, bottom)->state != 0)
		return cpu_verify_wrong(v, "the bottom is in state %u", avl_at(v->arena, bottom)->state);
	for (uint32_t ref = avl_at(v->arena, bottom)->succ; ref != top; ref = avl_at(v->arena, ref)->succ)
	{
		if (!cpu_verify_mark(v, ref, 1, "node") || !avl_verify_node(v, ref, before, top))
			return false;
		before = ref;
		entries++;
	}
	if (entries != cpu_tree_entries(v->tree))
		return cpu_verify_wrong(v, "%llu entries, but the head says %llu", (unsigned long long) entries,
								(unsigned long long) cpu_tree_entries(v->tree));
	return avl_verify_node(v, top, before, top);
}

/*
 * A subtree, whose first node must be the one at *next of the list; *next becomes the node behind its
 * last one.
 */
HOST_FN bool
avl_verify_below(CpuVerify *v, uint32_t parent, int side, int depth, uint32_t *next)
{
	const uint32_t ref = avl_at(v->arena, parent)->child[side];
	const AvlNode *node = avl_at(v->arena, ref);
	int left;

	if (ref == 0)
		return true;
	/*
	 * all nodes of the list are marked; so a link to something else goes outside of the tree's memory or
	 * order
	 */
	if (depth > AVL_MAX_HEIGHT || ref / ARENA_CHUNK_UNITS >= v->arena->nchunks ||
		(v->marked[ref / 64] >> (ref % 64) & 1) == 0)
		return cpu_verify_wrong(v, "the node at unit %u leads to unit %u, no node", parent, ref);
	if (node->parent != parent)
		return cpu_verify_wrong(v, "the node at unit %u is below unit %u, not %u", ref, parent, node->parent);
	if (!avl_verify_below(v, ref, AVL_LEFT, depth + 1, next))
		return false;
	if (*next != ref)
		return cpu_verify_wrong(v, "the node at unit %u is not where the list has it", ref);
	*next = node->succ;
	if (!avl_verify_below(v, ref, AVL_RIGHT, depth + 1, next))
		return false;
	if (avl_should_have(v->arena, node, &left) != node->height)
		return cpu_verify_wrong(v, "the node at unit %u has the height %u", ref, node->height);
	if (left < -1 || left > 1)
		return cpu_verify_wrong(v, "the node at unit %u is not balanced", ref);
	return true;
}

/* The nodes that wait to be freed. */
HOST_FN bool
avl_verify_removed(CpuVerify *v)
{
	const avl_cpu_tree *tree = (const avl_cpu_tree *) v->tree;
	uint64_t version = 0;
	uint32_t last = 0;

	for (uint32_t ref = tree->oldest; ref != 0; ref = avl_at(v->arena, ref)->next)
	{
		const AvlNode *node = avl_at(v->arena, ref);

		if (!cpu_verify_mark(v, ref, 1, "removed node"))
			return false;
		if (node->state != AVL_REMOVED || node->version < version || node->version > tree->common.version)
			return cpu_verify_wrong(v, "the removed node at unit %u is in state %u, of version %llu", ref,
									node->state, (unsigned long long) node->version);
		version = node->version;
		last = ref;
	}
	if (last != tree->newest)
		return cpu_verify_wrong(v, "the last removed node is at unit %u, not at %u", last, tree->newest);
	return true;
}

/* A tree that was not withdrawn. */
HOST_FN bool
avl_verify_tree(CpuVerify *v)
{
	const uint64_t head = v->tree->head;
	const uint32_t top = head_root(head);
	uint32_t next;

	if (v->tree->nwords < 1 || v->tree->nwords > 2 || (uint32_t) head_nwords(head) != v->tree->nwords)
		return cpu_verify_wrong(v, "the head does not fit the tree");
	if (!avl_verify_list(v, top))
		return false;
	next = avl_at(v->arena, avl_bottom(top))->succ;
	if (!avl_verify_below(v, top, AVL_LEFT, 0, &next))
		return false;
	if (next != top || avl_at(v->arena, top)->child[AVL_RIGHT] != 0)
		return cpu_verify_wrong(v, "the tree lacks the node at unit %u", next);
	return avl_verify_removed(v);
}

/* Checks a tree; the caller keeps others from changing it. */
HOST_FN bool
avl_cpu_verify(const Arena *arena, const CpuTree *tree, char *why, size_t whylen)
{
	CpuVerify v;

	return cpu_verify(&v, arena, tree, avl_verify_tree, why, whylen);
}

#endif /* AVL_VERIFY_CPU_H */
