/*-------------------------------------------------------------------------
 *
 * avl_tree_cpu.h
 *	  An AVL tree in an arena, and its build from ascending entries.
 *
 * The head's root is the top (avl_node.h), which stays as long as the tree; its height says nothing.
 *
 * Memory.  Nodes that a version has removed wait in a queue of the tree's until no pin is older; each has the
 * version.  So a removal needs no memory.
 *
 *-------------------------------------------------------------------------
 */
#ifndef AVL_TREE_CPU_H
#define AVL_TREE_CPU_H

#include <string.h>

#include "kernels/avl/avl_change.h"
#include "kernels/cpu/cpu_structure.h"

/* Ways down that are interleaved: while one waits for memory, the others go on. */
#define AVL_INTERLEAVED 16

typedef struct avl_cpu_tree
{
	CpuTree common;
	ArenaRef oldest; /* of the removed nodes, 0: there are none */
	ArenaRef newest;
} avl_cpu_tree;

typedef struct avl_cpu_build
{
	Arena *arena;
	avl_cpu_tree *tree;
	uint32_t top;
	uint32_t last; /* of the list so far */
	uint64_t entries;
} avl_cpu_build;

/* Goes down for n entries at once; at[i]: a node near x[i]. */
HOST_INLINE void
avl_descend_all(const GpudsView *view, const GpudsEntry *const *x, uint32_t *at, int n)
{
	uint32_t below[AVL_INTERLEAVED];
	bool on = true;

	for (int i = 0; i < n; i++)
	{
		at[i] = view->root;
		below[i] = avl_load(&avl_at(view->base, view->root)->child[AVL_LEFT]);
	}
	while (on)
	{
		on = false;
		for (int i = 0; i < n; i++)
		{
			if (below[i] == 0)
				continue;
			on = true;
			at[i] = below[i];
			below[i] = avl_step(avl_at(view->base, at[i]), x[i]);
			__builtin_prefetch(avl_at(view->base, below[i]));
		}
	}
}

/* A node behind the last one of a build. */
HOST_FN bool
avl_build_node(avl_cpu_build *build, const GpudsEntry *e)
{
	uint32_t ref = arena_alloc(build->arena, &build->tree->common.space, 1);
	AvlNode *node = avl_at(build->arena, ref);

	if (ref == 0)
		return false;
	memset(node, 0, sizeof(*node));
	node->e = *e;
	node->pred = build->last;
	avl_at(build->arena, build->last)->succ = ref;
	build->last = ref;
	return true;
}

/* Begins to build a tree that was withdrawn and has no memory. */
HOST_FN KernelStatus
avl_cpu_build_begin(Arena *arena, CpuTree *tree, void *state, int nwords, int fill_percent)
{
	avl_cpu_build *build = (avl_cpu_build *) state;
	AvlNode *top;

	(void) fill_percent;
	cpu_tree_begin(tree, nwords);
	build->arena = arena;
	build->tree = (avl_cpu_tree *) tree;
	build->tree->oldest = build->tree->newest = 0;
	build->entries = 0;
	build->top = arena_alloc(arena, &tree->space, 2);
	if (build->top == 0)
		return KERNEL_NO_MEMORY;
	build->last = avl_bottom(build->top);
	top = avl_at(arena, build->top);
	memset(top, 0, 2 * sizeof(*top));
	top->e.w0 = top->e.t = UINT64_MAX;
	top->e.w1 = nwords == 2 ? UINT64_MAX : 0;
	return KERNEL_OK;
}

/* Adds entries, strictly ascending over all calls. */
HOST_FN KernelStatus
avl_cpu_build_add(void *state, const GpudsEntry *entries, int64_t n)
{
	avl_cpu_build *build = (avl_cpu_build *) state;

	for (int64_t i = 0; i < n; i++)
	{
		if (!avl_build_node(build, &entries[i]))
			return KERNEL_NO_MEMORY;
	}
	build->entries += (uint64_t) n;
	return KERNEL_OK;
}

/* Publishes what was added. */
HOST_FN KernelStatus
avl_cpu_build_finish(void *state)
{
	const avl_cpu_build *build = (const avl_cpu_build *) state;
	CpuTree *tree = &build->tree->common;
	uint32_t next = avl_at(build->arena, avl_bottom(build->top))->succ;

	avl_at(build->arena, build->last)->succ = build->top;
	avl_at(build->arena, build->top)->pred = build->last;
	avl_set_child(build->arena, build->top, AVL_LEFT, avl_raise(build->arena, &next, build->entries));
	cpu_tree_publish(tree, head_make(tree->nwords, 1, build->top), build->entries);
	return KERNEL_OK;
}

HOST_FN void
avl_cpu_release(Arena *arena, CpuTree *tree)
{
	avl_cpu_tree *t = (avl_cpu_tree *) tree;

	cpu_tree_release(arena, tree);
	t->oldest = t->newest = 0;
}

HOST_FN void
avl_cpu_build_cancel(void *state)
{
	const avl_cpu_build *build = (const avl_cpu_build *) state;

	avl_cpu_release(build->arena, &build->tree->common);
}

/* Frees the nodes that no pin can reach; oldest_pin is pin_oldest's answer. */
HOST_FN void
avl_cpu_reclaim(Arena *arena, CpuTree *tree, uint64_t oldest_pin)
{
	avl_cpu_tree *t = (avl_cpu_tree *) tree;

	while (t->oldest != 0 && avl_at(arena, t->oldest)->version <= oldest_pin)
	{
		ArenaRef ref = t->oldest;

		t->oldest = avl_at(arena, ref)->next;
		arena_free(arena, &tree->space, ref, 1);
	}
	if (t->oldest == 0)
		t->newest = 0;
}

/* A node and 64 bytes for it, whatever its key is. */
HOST_FN double
avl_cpu_entry_bytes(int nwords, int fill_percent, bool equal_keys, bool on_gpu)
{
	(void) nwords;
	(void) fill_percent;
	(void) equal_keys;
	(void) on_gpu;
	return sizeof(AvlNode);
}

#endif /* AVL_TREE_CPU_H */
