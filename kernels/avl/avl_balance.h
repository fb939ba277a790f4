/*-------------------------------------------------------------------------
 *
 * avl_balance.h
 *	  Balancing the tree, node by node.
 *
 * The balance is relaxed: a node may have a wrong height, or children whose heights differ by more than
 * one, while someone is going to visit it.  A visit needs the locks of the node and of its parent, and
 * those of one or two nodes below for a rotation.  It does what can be said there, and queues the nodes
 * whose turn it is then: the parent if the height has changed, and nodes below that a rotation has left
 * unbalanced.  When all queues are empty the tree is an AVL tree, whatever was hung into it.
 *
 * A node is in one queue at most (AVL_QUEUED).  Who changes something does that before he queues the
 * node, and who takes it from a queue clears the bit before he looks.
 *
 * A queue is served from its front, so that a node that can do nothing before another has been visited
 * does not keep that from its turn.
 *
 *-------------------------------------------------------------------------
 */
#ifndef AVL_BALANCE_H
#define AVL_BALANCE_H

#include "kernels/avl/avl_node.h"

/* What a thread works with. */
typedef struct AvlWorker
{
	void *base;
	uint32_t top;
	uint32_t front; /* of the queue of nodes that it has to visit, 0: there are none */
	uint32_t back;
	uint32_t spare;   /* nodes for new entries */
	uint32_t removed; /* nodes that it has removed */
	int64_t change;   /* of the number of entries */
} AvlWorker;

KERNEL_INLINE uint32_t
avl_height(const void *base, uint32_t ref)
{
	return ref != 0 ? avl_load(&avl_at(base, ref)->height) : 0;
}

/* Queues a node to be visited.  False: it is in a queue, maybe another thread's. */
KERNEL_FN bool
avl_queue(AvlWorker *w, uint32_t ref)
{
	AvlNode *node = avl_at(w->base, ref);

	if (ref == w->top || !avl_set(node, AVL_QUEUED))
		return false;
	node->next = 0;
	if (w->front == 0)
		w->front = ref;
	else
		avl_at(w->base, w->back)->next = ref;
	w->back = ref;
	return true;
}

/* Makes a node, or none, a child of another. */
KERNEL_INLINE void
avl_set_child(const void *base, uint32_t parent, int side, uint32_t child)
{
	avl_store(&avl_at(base, parent)->child[side], child);
	if (child != 0)
		avl_store(&avl_at(base, child)->parent, parent);
}

/* Which child of its parent a node is. */
KERNEL_INLINE int
avl_side(const void *base, uint32_t parent, uint32_t child)
{
	return avl_load(&avl_at(base, parent)->child[AVL_LEFT]) == child ? AVL_LEFT : AVL_RIGHT;
}

/* The height that a node should have; *left: by how much its left child is higher. */
KERNEL_INLINE uint32_t
avl_should_have(const void *base, const AvlNode *node, int *left)
{
	uint32_t l = avl_height(base, avl_load(&node->child[AVL_LEFT]));
	uint32_t r = avl_height(base, avl_load(&node->child[AVL_RIGHT]));

	*left = (int) l - (int) r;
	return 1 + (l > r ? l : r);
}

/* Has a node the right height and balance?  The caller holds its lock and its parent's. */
KERNEL_INLINE bool
avl_is_settled(const void *base, const AvlNode *node)
{
	int left;

	return avl_should_have(base, node, &left) == avl_load(&node->height) && left >= -1 && left <= 1;
}

/* Gives a node that was moved its height, and queues it if it is not balanced. */
KERNEL_FN void
avl_moved(AvlWorker *w, uint32_t ref)
{
	AvlNode *node = avl_at(w->base, ref);
	int left;

	avl_store(&node->height, avl_should_have(w->base, node, &left));
	if (left < -1 || left > 1)
		avl_queue(w, ref);
}

/*
 * Rotates: the child of x on a side takes the place of x, twice: its inner child does.  All nodes that
 * change are locked, and the parent of x.  Links upwards come last, so that the tree never has a circle.
 */
KERNEL_FN void
avl_rotate(AvlWorker *w, uint32_t parent, uint32_t x, int side, bool twice)
{
	const void *base = w->base;
	const int place = avl_side(base, parent, x);
	const uint32_t was = avl_height(base, x);
	const uint32_t c = avl_load(&avl_at(base, x)->child[side]);
	const uint32_t inner = avl_load(&avl_at(base, c)->child[1 - side]);
	const uint32_t up = twice ? inner : c;

	if (twice)
	{
		avl_set_child(base, c, 1 - side, avl_load(&avl_at(base, up)->child[side]));
		avl_set_child(base, x, side, avl_load(&avl_at(base, up)->child[1 - side]));
		avl_set_child(base, up, side, c);
	}
	else
		avl_set_child(base, x, side, inner);
	avl_set_child(base, up, 1 - side, x);
	avl_set_child(base, parent, place, up);
	avl_moved(w, x);
	if (twice)
		avl_moved(w, c);
	avl_moved(w, up);
	if (avl_height(base, up) != was)
		avl_queue(w, parent);
}

/* Settles a node that is locked, as its parent is.  False: someone else is in the way. */
KERNEL_FN bool
avl_settle(AvlWorker *w, AvlHeld *held, uint32_t parent, uint32_t ref)
{
	AvlNode *node = avl_at(w->base, ref);
	int left;
	uint32_t height = avl_should_have(w->base, node, &left);
	const int side = left > 0 ? AVL_LEFT : AVL_RIGHT;
	uint32_t below = ref;
	bool twice = false;

	if (left >= -1 && left <= 1)
	{
		if (height != avl_load(&node->height))
		{
			avl_store(&node->height, height);
			avl_queue(w, parent);
		}
		return true;
	}
	/*
	 * the nodes that move up must be settled: first the child, and if its inner side is higher, its child
	 * there
	 */
	for (int down = 0; down < 2; down++)
	{
		AvlNode *child;

		below = avl_load(&avl_at(w->base, below)->child[down == 0 ? side : 1 - side]);
		child = avl_at(w->base, below);
		if (!avl_hold(held, child, AVL_TREE_LOCK))
			return false;
		if (!avl_is_settled(w->base, child))
		{
			bool mine = avl_queue(w, below);

			avl_queue(w, ref);
			return mine;
		}
		twice = down == 1;
		if (avl_height(w->base, avl_load(&child->child[1 - side])) <=
			avl_height(w->base, avl_load(&child->child[side])))
			break;
	}
	avl_rotate(w, parent, ref, side, twice);
	return true;
}

/* Visits a node.  False: someone else was in the way. */
KERNEL_FN bool
avl_visit(AvlWorker *w, uint32_t ref)
{
	AvlNode *node = avl_at(w->base, ref);
	AvlHeld held;
	uint32_t parent;
	bool done;

	if (avl_is_removed(node))
		return true;
	held.n = 0;
	done = avl_hold_parent(&held, w->base, node, &parent) && avl_hold(&held, node, AVL_TREE_LOCK) &&
		   avl_settle(w, &held, parent, ref);
	avl_drop(&held);
	return done;
}

/* Visits the node at the front of the queue.  False: there is none, or someone else was in the way. */
KERNEL_FN bool
avl_visit_next(AvlWorker *w)
{
	uint32_t ref = w->front;
	bool done;

	if (ref == 0)
		return false;
	w->front = avl_at(w->base, ref)->next;
	avl_clear(avl_at(w->base, ref), AVL_QUEUED);
	done = avl_visit(w, ref);
	if (!done)
		avl_queue(w, ref);
	return done;
}

#endif /* AVL_BALANCE_H */
