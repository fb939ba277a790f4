/*-------------------------------------------------------------------------
 *
 * avl_node.h
 *	  A node of an AVL tree with a list, and how threads read, write and lock it.
 *
 * Each entry has a node, which is in two orders at once: in a sorted doubly linked list, which says what
 * the structure has, and in a tree, which only leads there.  References are numbers of units of 64 bytes
 * from a base; a node takes one.
 *
 * Two nodes without an entry are there always, beside each other.  The top has the highest number, is the
 * last one of the list, and has the tree as its left child.  The bottom, behind it in memory, is the first
 * one of the list and not in the tree; its number is not looked at, because an entry may have it.
 *
 * What a lock protects:
 *
 *	  AVL_LIST_LOCK		of a node: its succ, and the pred of the next node; so nothing comes between the two,
 *						and the next one stays
 *	  AVL_TREE_LOCK		of a node: its child links, and of its children parent and height
 *
 * Locks are only tried.  Who does not get one lets all go that he has, and begins anew.  So no order of locks
 * is needed, and the threads of a warp do not wait for each other.
 *
 * Readers take no locks.  What they rely on is in avl_search.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef AVL_NODE_H
#define AVL_NODE_H

#include "kernels/core/entry.h"

#define AVL_LEFT 0
#define AVL_RIGHT 1

/* Bits of a node's state. */
#define AVL_LIST_LOCK 1u
#define AVL_TREE_LOCK 2u
#define AVL_REMOVED 4u /* the entry is not there any more */
#define AVL_QUEUED 8u  /* someone is going to visit the node, see avl_balance.h */

typedef struct AvlNode
{
	GpudsEntry e; /* written before others see the node, and never again */
	uint32_t succ;
	uint32_t pred;
	uint32_t child[2];
	uint32_t parent;
	uint32_t height; /* of the tree below, with the node: a leaf's is 1 */
	uint32_t state;
	uint32_t next;    /* in a worker's queue; in a chain of spare or removed nodes */
	uint64_t version; /* that has removed it; while a worker has the node: the next one that it has removed */
} AvlNode;

KERNEL_INLINE AvlNode *
avl_at(const void *base, uint32_t ref)
{
	return (AvlNode *) ((unsigned char *) base + (size_t) ref * sizeof(AvlNode));
}

/* The node below all entries. */
KERNEL_INLINE uint32_t
avl_bottom(uint32_t top)
{
	return top + 1;
}

/*
 * Loads and stores of words that others may look at.  Tests define AVL_LOADED and AVL_STORED to do something
 * between two of them.
 */
KERNEL_INLINE uint32_t
avl_load(const uint32_t *word)
{
	uint32_t value = __atomic_load_n(word, __ATOMIC_ACQUIRE);

#ifdef AVL_LOADED
	AVL_LOADED();
#endif
	return value;
}

KERNEL_INLINE void
avl_store(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
#ifdef AVL_STORED
	AVL_STORED();
#endif
}

/* Sets a bit of a node's state.  False: it was set. */
KERNEL_INLINE bool
avl_set(AvlNode *node, uint32_t bit)
{
	bool was = (__atomic_fetch_or(&node->state, bit, __ATOMIC_ACQ_REL) & bit) != 0;

#ifdef AVL_STORED
	AVL_STORED();
#endif
	return !was;
}

KERNEL_INLINE void
avl_clear(AvlNode *node, uint32_t bit)
{
	(void) __atomic_fetch_and(&node->state, ~bit, __ATOMIC_ACQ_REL);
}

KERNEL_INLINE bool
avl_is_removed(const AvlNode *node)
{
	return (avl_load(&node->state) & AVL_REMOVED) != 0;
}

/* The locks that a thread has. */
typedef struct AvlHeld
{
	AvlNode *node[6]; /* a removal takes the most: two of the list, four of the tree */
	uint32_t bit[6];
	int n;
} AvlHeld;

/* Tries a lock. */
KERNEL_INLINE bool
avl_hold(AvlHeld *held, AvlNode *node, uint32_t bit)
{
	if (!avl_set(node, bit))
		return false;
	held->node[held->n] = node;
	held->bit[held->n++] = bit;
	return true;
}

/* Lets all locks go. */
KERNEL_INLINE void
avl_drop(AvlHeld *held)
{
	while (held->n > 0)
	{
		held->n--;
		avl_clear(held->node[held->n], held->bit[held->n]);
	}
}

/*
 * Tries the tree lock of the parent that a node in the tree has; *parent: which one.  Being in the tree,
 * too, is certain then.
 */
KERNEL_INLINE bool
avl_hold_parent(AvlHeld *held, const void *base, const AvlNode *node, uint32_t *parent)
{
	AvlNode *above;

	*parent = avl_load(&node->parent);
	above = avl_at(base, *parent);
	return avl_hold(held, above, AVL_TREE_LOCK) && avl_load(&node->parent) == *parent &&
		   !avl_is_removed(above) && !avl_is_removed(node);
}

#endif /* AVL_NODE_H */
