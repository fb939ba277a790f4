/*-------------------------------------------------------------------------
 *
 * avl_search.h
 *	  The way to an entry: down the tree, and then along the list.
 *
 * A search waits for nobody and never begins again.  The tree leads it to some node near the entry:
 * rotations, and nodes that change their place, may lead it astray.  From there it follows pred to a node
 * that is before the entry, and then succ to the last such node.
 *
 * Why it is right.  A node that was in the list at some moment since the search began leads by succ to
 * all that is behind it and was in the list all the time since: as long as the node is in the list, its
 * succ is the next one, and when it is removed, it keeps the next one of that moment, which was in the
 * list then.  Nodes that the tree leads to were in the tree at such a moment, and in the list, for a node
 * leaves both while the locks of its surroundings are held, so that nothing comes in its place before it
 * has left the tree.  A pred may be behind the change of a succ; it leads to a node that was in the list
 * since the search began, too.  So a pred is a hint, and what is right before a node is found by succ
 * from there.
 *
 * An entry comes by the store of its node's predecessor's succ, before the tree leads to the node.  It
 * goes when its node is marked as removed, before a link changes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef AVL_SEARCH_H
#define AVL_SEARCH_H

#include "kernels/avl/avl_node.h"

/* Is a node, which is not the bottom, before x, or_equal: or equal to it? */
KERNEL_INLINE bool
avl_is_before(const AvlNode *node, const GpudsEntry *x, const bool or_equal)
{
	return or_equal ? !entry_less(x, &node->e) : entry_less(&node->e, x);
}

/* A step down the tree towards x; 0: there is no more to go. */
KERNEL_INLINE uint32_t
avl_step(const AvlNode *node, const GpudsEntry *x)
{
	if (entry_less(&node->e, x))
		return avl_load(&node->child[AVL_RIGHT]);
	if (entry_less(x, &node->e))
		return avl_load(&node->child[AVL_LEFT]);
	return 0;
}

/* Down the tree to a node near x. */
KERNEL_INLINE uint32_t
avl_descend(const void *base, uint32_t top, const GpudsEntry *x)
{
	uint32_t ref = top;

	for (uint32_t below = avl_load(&avl_at(base, top)->child[AVL_LEFT]); below != 0;)
	{
		ref = below;
		below = avl_step(avl_at(base, ref), x);
	}
	return ref;
}

/*
 * From a node to the last one of the list that is before x, or_equal: or equal to it; maybe the bottom.
 * *next: the one behind it, which is not before x; later another one may come between the two.
 */
KERNEL_INLINE uint32_t
avl_last(const void *base, uint32_t top, uint32_t ref, const GpudsEntry *x, const bool or_equal,
		 uint32_t *next)
{
	const uint32_t bottom = avl_bottom(top);

	while (ref != bottom && (ref == top || !avl_is_before(avl_at(base, ref), x, or_equal)))
		ref = avl_load(&avl_at(base, ref)->pred);
	for (;;)
	{
		*next = avl_load(&avl_at(base, ref)->succ);
		if (*next == top || !avl_is_before(avl_at(base, *next), x, or_equal))
			return ref;
		ref = *next;
	}
}

#endif /* AVL_SEARCH_H */
