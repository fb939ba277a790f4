/*-------------------------------------------------------------------------
 *
 * cpu_versioned.h
 *	  A tree in an arena: what all structures have in common on a CPU.
 *
 * A tree has a space of the arena, a head (version.h), and the pieces of memory that its versions have
 * replaced.  Its life: begin, publish, view, reclaim, withdraw, release.  What it has memory for, and what
 * root and height mean, is the structure's affair.
 *
 * Invariants:
 *
 *	  - One process at a time builds, changes or frees (the caller holds a lock); readers are beside it.
 *	  - The head is stored before the version, and the version only ever rises, over all lives of the struct.
 *		A reader that pins a version (pins.h) and takes the view afterwards has that version or a later one.
 *	  - A piece of memory that version v replaces is in the queue under v.  It is freed when no pin is older
 *		than v, and not before.
 *	  - A piece of the space is in use, in a queue, or free (cpu_verify.h checks that).
 *	  - A tree that was withdrawn has no head.  When no pin is older than the withdrawal, all its memory
 *		is given back at once.
 *
 *-------------------------------------------------------------------------
 */
#ifndef KERNELS_CPU_VERSIONED_H
#define KERNELS_CPU_VERSIONED_H

#include "kernels/core/version.h"
#include "kernels/cpu/arena.h"

/* Pieces that versions have replaced, oldest first: a chain of units of CpuQueueUnit. */
typedef struct CpuQueue
{
	ArenaRef head;
	ArenaRef tail;
} CpuQueue;

#define CPU_QUEUE_ITEMS 6

typedef struct CpuQueueUnit
{
	uint64_t version; /* the version that replaced the items */
	ArenaRef next;
	uint32_t n;
	uint64_t item[CPU_QUEUE_ITEMS]; /* units << 32 | reference */
} CpuQueueUnit;

/*
 * What the trees of all structures begin with.  A place for trees serves one
 * structure after the other, and a reader that is late may still look at it: so
 * these are the same for all.
 */
typedef struct CpuTree
{
	uint64_t head;    /* atomic, published before version; 0: there is no tree */
	uint64_t version; /* atomic; only ever rises, over all lives of the struct */
	uint64_t entries; /* atomic: of the newest version */
	uint32_t nwords;  /* key words */
	uint32_t reserved;
	ArenaSpace space; /* all memory of the tree */
	CpuQueue retired;
	uint64_t count[2]; /* atomic: entries of this version and of the one before or after */
} CpuTree;

#define CPU_HEAD_COUNT (UINT64_C(1) << 48)

/* Number of the count that belongs to a head. */
HOST_FN int
cpu_head_count(uint64_t head)
{
	return (head & CPU_HEAD_COUNT) != 0;
}

/*
 * Puts new contents in the tree's head, then moves its version.  The count goes
 * where readers of the head before do not look.
 */
HOST_FN void
cpu_tree_publish(CpuTree *tree, uint64_t head, uint64_t entries)
{
	int place = 1 - cpu_head_count(tree->head);

	head &= ~CPU_HEAD_COUNT;
	__atomic_store_n(&tree->count[place], entries, __ATOMIC_RELEASE);
	__atomic_store_n(&tree->head, head != 0 && place == 1 ? head | CPU_HEAD_COUNT : head, __ATOMIC_RELEASE);
	__atomic_store_n(&tree->entries, entries, __ATOMIC_RELAXED);
	/* a reader that pins has either seen this or is seen: see pins.h */
	__atomic_store_n(&tree->version, tree->version + 1, __ATOMIC_SEQ_CST);
}

/*
 * Begins a life of a tree that was withdrawn and holds no memory.  Readers do not see it before it is
 * published.
 */
HOST_FN void
cpu_tree_begin(CpuTree *tree, int nwords)
{
	tree->nwords = (uint32_t) nwords;
	tree->reserved = 0;
	arena_space_init(&tree->space);
	tree->retired.head = tree->retired.tail = 0;
}

/* Entries of the newest version. */
HOST_FN uint64_t
cpu_tree_entries(const CpuTree *tree)
{
	return __atomic_load_n(&tree->entries, __ATOMIC_RELAXED);
}

/*
 * The newest version, for a reader that has pinned tree->version; false: the
 * tree was withdrawn.  A count is overwritten by the version after next, whose
 * writer has published the next one before: then the head has changed.  It cannot
 * have changed back where changes make a new root, because a pinned root is not used again; only trees
 * without entries have no root.  In a structure that is changed in place the count is as good as any.
 */
HOST_FN bool
cpu_tree_view(const Arena *arena, const CpuTree *tree, GpudsView *view)
{
	uint64_t head = __atomic_load_n(&tree->head, __ATOMIC_ACQUIRE);

	for (;;)
	{
		uint64_t entries = __atomic_load_n(&tree->count[cpu_head_count(head)], __ATOMIC_ACQUIRE);
		uint64_t now = __atomic_load_n(&tree->head, __ATOMIC_ACQUIRE);

		if (now == head)
		{
			view->base = (const unsigned char *) arena;
			view->structure = 0;
			view->entries = head_height(head) > 0 ? entries : 0;
			return head_view(head, view);
		}
		head = now;
	}
}

/*
 * Appends a piece of memory, which version replaces, to a queue of the tree;
 * false: out of memory.
 */
HOST_FN bool
cpu_queue_push(Arena *arena, CpuTree *tree, CpuQueue *queue, uint64_t version, ArenaRef ref, int units)
{
	CpuQueueUnit *unit = (CpuQueueUnit *) arena_at(arena, queue->tail);

	if (queue->tail == 0 || unit->n == CPU_QUEUE_ITEMS)
	{
		ArenaRef next = arena_alloc(arena, &tree->space, 1);

		if (next == 0)
			return false;
		if (queue->tail == 0)
			queue->head = next;
		else
			unit->next = next;
		queue->tail = next;
		unit = (CpuQueueUnit *) arena_at(arena, next);
		unit->version = version;
		unit->next = 0;
		unit->n = 0;
	}
	unit->item[unit->n++] = (uint64_t) units << 32 | ref;
	return true;
}

/*
 * Frees a queue's units, with_items also what is noted in them, as far as the
 * versions that replaced them are up to limit.
 */
HOST_FN void
cpu_queue_free(Arena *arena, CpuTree *tree, CpuQueue *queue, bool with_items, uint64_t limit)
{
	while (queue->head != 0)
	{
		ArenaRef ref = queue->head;
		CpuQueueUnit *unit = (CpuQueueUnit *) arena_at(arena, ref);

		if (unit->version > limit)
			return;
		queue->head = unit->next;
		for (uint32_t i = 0; with_items && i < unit->n; i++)
			arena_free(arena, &tree->space, (ArenaRef) unit->item[i], (int) (unit->item[i] >> 32));
		arena_free(arena, &tree->space, ref, 1);
	}
	queue->tail = 0;
}

/* Appends a queue to that of the tree's replaced pieces. */
HOST_FN void
cpu_queue_join(Arena *arena, CpuTree *tree, const CpuQueue *queue)
{
	if (queue->head == 0)
		return;
	if (tree->retired.head == 0)
		tree->retired.head = queue->head;
	else
		((CpuQueueUnit *) arena_at(arena, tree->retired.tail))->next = queue->head;
	tree->retired.tail = queue->tail;
}

/*
 * Frees the pieces that no pin can reach.  oldest_pin is pin_oldest's answer,
 * taken after the newest version was published.
 */
HOST_FN void
cpu_tree_reclaim(Arena *arena, CpuTree *tree, uint64_t oldest_pin)
{
	cpu_queue_free(arena, tree, &tree->retired, true, oldest_pin);
}

/*
 * Publishes that there is no tree any more: from now on cpu_tree_view says no.  Its
 * memory stays until cpu_tree_release.  Returns the version: cpu_tree_release may be
 * called when no pin is older.
 */
HOST_FN uint64_t
cpu_tree_withdraw(CpuTree *tree)
{
	cpu_tree_publish(tree, 0, 0);
	return tree->version;
}

/* Gives all memory of a withdrawn tree back. */
HOST_FN void
cpu_tree_release(Arena *arena, CpuTree *tree)
{
	arena_space_release(arena, &tree->space);
	tree->retired.head = tree->retired.tail = 0;
}

#endif /* KERNELS_CPU_VERSIONED_H */
