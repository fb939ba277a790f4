/*-------------------------------------------------------------------------
 *
 * avl_change.h
 *	  One operation, as one thread tries it beside others.
 *
 * A try either does an operation or changes nothing, and leaves no lock behind.  It locks the link of the
 * list at which the entry is or would be: from the last node before it to the next.  Then:
 *
 *	  - A new node, or several for entries that follow each other there, as a balanced tree of their
 *		own, hang where the tree has no child: right of the node before, or left of the one behind.  They
 *		are complete when the list gets them, by one store.
 *	  - A node that goes is marked, leaves the list, and leaves the tree.  If it has two children, the
 *		next node of the list takes its place; nodes move, entries never do.
 *
 * What a change leaves to be balanced is in the worker's queue.  Nodes that were removed are in a chain
 * of the worker's; they keep their links.
 *
 *-------------------------------------------------------------------------
 */
#ifndef AVL_CHANGE_H
#define AVL_CHANGE_H

#include "kernels/avl/avl_balance.h"
#include "kernels/avl/avl_search.h"

/* A place of the list that a try has locked: the link from before to behind. */
typedef struct AvlGap
{
	uint32_t before;
	uint32_t behind;
} AvlGap;

/*
 * Makes a balanced tree of n nodes that follow each other in the list, from *next on.  Nobody else has
 * them.
 */
KERNEL_FN uint32_t
avl_raise(const void *base, uint32_t *next, uint64_t n)
{
	const uint64_t n_left = n / 2;
	uint32_t left;
	uint32_t root;
	AvlNode *node;
	int heavier;

	if (n == 0)
		return 0;
	left = avl_raise(base, next, n_left);
	root = *next;
	node = avl_at(base, root);
	*next = node->succ;
	avl_set_child(base, root, AVL_LEFT, left);
	avl_set_child(base, root, AVL_RIGHT, avl_raise(base, next, n - n_left - 1));
	node->height = avl_should_have(base, node, &heavier);
	return root;
}

/*
 * Makes spare nodes of the first of ascending inserts, n at most, that belong between two nodes of which the
 * second has the entry behind, and chains them.  Returns how many; *last: the last of them.
 */
KERNEL_FN int64_t
avl_chain(AvlWorker *w, const AvlGap *gap, const GpudsOp *ops, int64_t n, uint32_t *last)
{
	const GpudsEntry *behind = &avl_at(w->base, gap->behind)->e;
	int64_t m = 0;

	*last = gap->before;
	for (; m < n && w->spare != 0 && (ops[m].order & GPUDS_OP_DELETE) == 0 && entry_less(&ops[m].e, behind);
		 m++)
	{
		uint32_t ref = w->spare;
		AvlNode *node = avl_at(w->base, ref);

		w->spare = node->next;
		node->e = ops[m].e;
		node->pred = *last;
		node->succ = gap->behind;
		node->child[AVL_LEFT] = node->child[AVL_RIGHT] = 0;
		node->state = node->next = 0;
		node->version = 0;
		if (m > 0)
			avl_at(w->base, *last)->succ = ref;
		*last = ref;
	}
	return m;
}

/* Inserts in a gap what of n operations belongs there, as far as there are spare nodes; *done: so many. */
KERNEL_FN bool
avl_insert(AvlWorker *w, AvlHeld *held, const AvlGap *gap, const GpudsOp *ops, int64_t n, int64_t *done)
{
	const void *base = w->base;
	AvlNode *before = avl_at(base, gap->before);
	/* the bottom is not in the tree */
	const bool right = gap->before != avl_bottom(w->top) && avl_load(&before->child[AVL_RIGHT]) == 0;
	const uint32_t parent = right ? gap->before : gap->behind;
	const int side = right ? AVL_RIGHT : AVL_LEFT;
	uint32_t first;
	uint32_t last;
	uint32_t root;

	if (!avl_hold(held, avl_at(base, parent), AVL_TREE_LOCK) ||
		avl_load(&avl_at(base, parent)->child[side]) != 0)
		return false;
	first = w->spare;
	*done = avl_chain(w, gap, ops, n, &last);
	if (*done == 0)
		return true;
	w->change += *done;
	{
		uint32_t next = first;

		root = avl_raise(base, &next, (uint64_t) *done);
	}
	avl_at(base, root)->parent = parent;
	avl_store(&before->succ, first);
	avl_store(&avl_at(base, gap->behind)->pred, last);
	avl_store(&avl_at(base, parent)->child[side], root);
	avl_queue(w, parent);
	return true;
}

/* Puts a node's successor, which is locked as all that changes, in its place in the tree. */
KERNEL_FN void
avl_replace(AvlWorker *w, uint32_t parent, uint32_t ref, uint32_t heir, uint32_t heirs_parent)
{
	const void *base = w->base;
	const AvlNode *node = avl_at(base, ref);
	const int place = avl_side(base, parent, ref);

	if (heirs_parent != ref)
	{
		avl_set_child(base, heirs_parent, AVL_LEFT, avl_load(&avl_at(base, heir)->child[AVL_RIGHT]));
		avl_set_child(base, heir, AVL_RIGHT, avl_load(&node->child[AVL_RIGHT]));
		avl_queue(w, heirs_parent);
	}
	avl_set_child(base, heir, AVL_LEFT, avl_load(&node->child[AVL_LEFT]));
	avl_store(&avl_at(base, heir)->height, avl_load(&node->height));
	avl_set_child(base, parent, place, heir);
	/* also if somebody was to visit the node */
	avl_queue(w, heir);
}

/* Removes the node behind a gap. */
KERNEL_FN bool
avl_remove(AvlWorker *w, AvlHeld *held, const AvlGap *gap)
{
	const void *base = w->base;
	const uint32_t ref = gap->behind;
	AvlNode *node = avl_at(base, ref);
	uint32_t parent;
	uint32_t heirs_parent = ref;
	uint32_t heir;
	uint32_t child;

	if (!avl_hold(held, node, AVL_LIST_LOCK) || !avl_hold_parent(held, base, node, &parent) ||
		!avl_hold(held, node, AVL_TREE_LOCK))
		return false;
	heir = avl_load(&node->succ);
	child = avl_load(&node->child[AVL_LEFT]);
	if (child == 0 || avl_load(&node->child[AVL_RIGHT]) == 0)
	{
		child = child != 0 ? child : avl_load(&node->child[AVL_RIGHT]);
		heirs_parent = 0;
	}
	else
	{
		AvlNode *next = avl_at(base, heir);

		if (avl_load(&next->parent) != ref && !avl_hold_parent(held, base, next, &heirs_parent))
			return false;
		if (!avl_hold(held, next, AVL_TREE_LOCK))
			return false;
	}
	avl_set(node, AVL_REMOVED);
	avl_store(&avl_at(base, gap->before)->succ, heir);
	avl_store(&avl_at(base, heir)->pred, gap->before);
	if (heirs_parent != 0)
		avl_replace(w, parent, ref, heir, heirs_parent);
	else
		avl_set_child(base, parent, avl_side(base, parent, ref), child);
	avl_queue(w, parent);
	node->version = w->removed;
	w->removed = ref;
	w->change--;
	return true;
}

/*
 * Tries the first of n operations, which ascend, and with an insert those behind it that belong beside
 * it.  *at is a node near the entry, and is one for another try then.  False: someone else is in the way.
 * *done: so many were done; 0: there is no spare node.
 */
KERNEL_FN bool
avl_try(AvlWorker *w, uint32_t *at, const GpudsOp *ops, int64_t n, int64_t *done)
{
	const bool deletes = (ops[0].order & GPUDS_OP_DELETE) != 0;
	AvlHeld held;
	AvlGap gap;
	AvlNode *before;
	bool ok;

	*done = 0;
	held.n = 0;
	while (avl_is_removed(avl_at(w->base, *at)))
		*at = avl_load(&avl_at(w->base, *at)->pred);
	gap.before = *at = avl_last(w->base, w->top, *at, &ops[0].e, false, &gap.behind);
	before = avl_at(w->base, gap.before);
	ok = avl_hold(&held, before, AVL_LIST_LOCK) && !avl_is_removed(before);
	if (ok)
	{
		const AvlNode *behind;

		gap.behind = avl_load(&before->succ);
		behind = avl_at(w->base, gap.behind);
		*done = 1;
		if (entry_less(&behind->e, &ops[0].e))
			ok = false;
		else if (entry_equal(&behind->e, &ops[0].e))
			ok = !deletes || avl_remove(w, &held, &gap);
		else if (!deletes)
		{
			ok = avl_insert(w, &held, &gap, ops, n, done);
			*at = avl_load(&behind->pred);
		}
	}
	avl_drop(&held);
	return ok;
}

#endif /* AVL_CHANGE_H */
