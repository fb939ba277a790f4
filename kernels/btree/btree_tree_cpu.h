/*-------------------------------------------------------------------------
 *
 * btree_tree_cpu.h
 *	  A tree in an arena, and its life: publish, view, withdraw, reclaim,
 *	  release.
 *
 * Readers pin a version (pins.h), take a view of the tree and run over memory
 * that nobody changes.  One process at a time builds, changes or frees (the
 * caller holds a lock); what it does becomes visible in one step.
 *
 * Nodes that a version has replaced wait in a queue until no pin can reach them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_TREE_CPU_H
#define BTREE_TREE_CPU_H

#include "kernels/btree/btree_node.h"
#include "kernels/cpu/arena.h"
#include "kernels/cpu/cpu_structure.h"

#if BTREE_UNIT_BYTES != ARENA_UNIT_BYTES
#error "a BtreeRef must be an ArenaRef"
#endif

/* Nodes are at least half full: so high a tree has more entries than a link can count. */
#define CPU_BTREE_MAX_HEIGHT 24

/*
 * Nodes that versions have replaced, oldest first: a chain of units of
 * CpuBtreeQueueUnit.
 */
typedef struct CpuBtreeQueue
{
	ArenaRef head;
	ArenaRef tail;
} CpuBtreeQueue;

#define CPU_BTREE_QUEUE_ITEMS 6

typedef struct CpuBtreeQueueUnit
{
	uint64_t version; /* the version that replaced the items */
	ArenaRef next;
	uint32_t n;
	uint64_t item[CPU_BTREE_QUEUE_ITEMS]; /* units << 32 | reference */
} CpuBtreeQueueUnit;

/*
 * A tree, which begins as CpuTree does (kernels/cpu/cpu_structure.h).  head is one word, so
 * that a reader gets root, height and width of one and the same version: bit 63 set (else there is no
 * tree), bit 48 which of the counts is the version's, bits 47..40 key words, 39..32 height, 31..0
 * root.  The version only ever rises, over all lives of the struct.
 */
typedef struct CpuBtree
{
	uint64_t head;    /* atomic, published before version */
	uint64_t version; /* atomic */
	uint64_t entries; /* atomic: of the newest version */
	uint32_t nwords;
	uint32_t reserved;
	ArenaSpace space;
	uint32_t padding; /* CpuTree ends here */
	CpuBtreeQueue retired;
	uint64_t count[2]; /* atomic: entries of this version and of the one before or after */
} CpuBtree;

#define CPU_BTREE_HEAD_VALID (UINT64_C(1) << 63)

HOST_FN uint64_t
cpu_btree_make_head(int nwords, int height, BtreeRef root)
{
	return CPU_BTREE_HEAD_VALID | (uint64_t) nwords << 40 | (uint64_t) height << 32 | root;
}

HOST_FN BtreeRef
cpu_btree_head_root(uint64_t head)
{
	return (BtreeRef) head;
}

HOST_FN int
cpu_btree_head_height(uint64_t head)
{
	return (int) (head >> 32 & 0xFF);
}

HOST_FN int
cpu_btree_head_nwords(uint64_t head)
{
	return (int) (head >> 40 & 0xFF);
}

/* Number of the count that belongs to a head. */
HOST_FN int
cpu_btree_head_count(uint64_t head)
{
	return (int) (head >> 48 & 1);
}

/*
 * Put new contents in the tree's head, then move its version.  The count goes
 * where readers of the head before do not look.
 */
HOST_FN void
cpu_btree_publish(CpuBtree *tree, uint64_t head, uint64_t count)
{
	int place = 1 - cpu_btree_head_count(tree->head);

	__atomic_store_n(&tree->count[place], count, __ATOMIC_RELEASE);
	__atomic_store_n(&tree->head, head | (uint64_t) place << 48, __ATOMIC_RELEASE);
	__atomic_store_n(&tree->entries, count, __ATOMIC_RELAXED);
	__atomic_store_n(&tree->version, tree->version + 1, __ATOMIC_SEQ_CST);
}

/*
 * Make an empty tree of one or two key words.  The struct is either memory of
 * zeros (the version is 1 then) or a tree that was released (the version goes
 * on).
 */
HOST_FN void
cpu_btree_init(CpuBtree *tree, int nwords)
{
	tree->nwords = (uint32_t) nwords;
	tree->reserved = 0;
	arena_space_init(&tree->space);
	tree->retired.head = tree->retired.tail = 0;
	cpu_btree_publish(tree, cpu_btree_make_head(nwords, 0, 0), 0);
}

/* Entries of the newest version. */
HOST_FN uint64_t
cpu_btree_entries(const CpuBtree *tree)
{
	return __atomic_load_n(&tree->entries, __ATOMIC_RELAXED);
}

/*
 * The newest version, for a reader that has pinned tree->version; false: the
 * tree was withdrawn.  A count is overwritten by the version after next, whose
 * writer has published the next one before: then the head has changed.  It cannot
 * have changed back, because a pinned root is not used again; only trees without
 * entries have no root.
 */
HOST_FN bool
cpu_btree_view(const Arena *arena, const CpuBtree *tree, BtreeView *view)
{
	uint64_t head = __atomic_load_n(&tree->head, __ATOMIC_ACQUIRE);

	for (;;)
	{
		uint64_t entries = __atomic_load_n(&tree->count[cpu_btree_head_count(head)], __ATOMIC_ACQUIRE);
		uint64_t now = __atomic_load_n(&tree->head, __ATOMIC_ACQUIRE);

		if (now == head)
		{
			view->base = (const unsigned char *) arena;
			view->root = cpu_btree_head_root(head);
			view->height = cpu_btree_head_height(head);
			view->nwords = cpu_btree_head_nwords(head);
			view->entries = view->height > 0 ? entries : 0;
			return (head & CPU_BTREE_HEAD_VALID) != 0;
		}
		head = now;
	}
}

/* Units of an inner node with this header. */
HOST_FN int
cpu_btree_inner_units(uint64_t header)
{
	return btree_header_details_mask(header) != 0 ? btree_inner_units() : BTREE_LINE_BYTES / BTREE_UNIT_BYTES;
}

/* Start loading a node: a leaf, or the line of an inner node that every descent reads. */
HOST_INLINE void
cpu_btree_prefetch(const void *base, BtreeRef ref, const bool leaf, const int nw)
{
	const unsigned char *p = (const unsigned char *) btree_node(base, ref);

	SIMD_PREFETCH(p);
	SIMD_PREFETCH(p + 64);
	if (nw == 2 && leaf)
		SIMD_PREFETCH(p + 128);
}

/*
 * Append a piece of memory, which version replaces, to a queue of the tree;
 * false: out of memory.
 */
HOST_FN bool
cpu_btree_queue_push(Arena *arena, CpuBtree *tree, CpuBtreeQueue *queue, uint64_t version, ArenaRef ref,
					 int units)
{
	CpuBtreeQueueUnit *unit = (CpuBtreeQueueUnit *) arena_at(arena, queue->tail);

	if (queue->tail == 0 || unit->n == CPU_BTREE_QUEUE_ITEMS)
	{
		ArenaRef next = arena_alloc(arena, &tree->space, 1);

		if (next == 0)
			return false;
		if (queue->tail == 0)
			queue->head = next;
		else
			unit->next = next;
		queue->tail = next;
		unit = (CpuBtreeQueueUnit *) arena_at(arena, next);
		unit->version = version;
		unit->next = 0;
		unit->n = 0;
	}
	unit->item[unit->n++] = (uint64_t) units << 32 | ref;
	return true;
}

/*
 * Free a queue's units, with_items also what is noted in them, as far as the
 * versions that replaced them are up to limit.
 */
HOST_FN void
cpu_btree_queue_free(Arena *arena, CpuBtree *tree, CpuBtreeQueue *queue, bool with_items, uint64_t limit)
{
	while (queue->head != 0)
	{
		ArenaRef ref = queue->head;
		CpuBtreeQueueUnit *unit = (CpuBtreeQueueUnit *) arena_at(arena, ref);

		if (unit->version > limit)
			return;
		queue->head = unit->next;
		for (uint32_t i = 0; with_items && i < unit->n; i++)
			arena_free(arena, &tree->space, (ArenaRef) unit->item[i], (int) (unit->item[i] >> 32));
		arena_free(arena, &tree->space, ref, 1);
	}
	queue->tail = 0;
}

/* Append a queue to that of the tree's replaced nodes. */
HOST_FN void
cpu_btree_queue_join(Arena *arena, CpuBtree *tree, const CpuBtreeQueue *queue)
{
	if (queue->head == 0)
		return;
	if (tree->retired.head == 0)
		tree->retired.head = queue->head;
	else
		((CpuBtreeQueueUnit *) arena_at(arena, tree->retired.tail))->next = queue->head;
	tree->retired.tail = queue->tail;
}

/*
 * Free the nodes that no pin can reach.  oldest_pin is pin_oldest's answer,
 * taken after the newest version was published.
 */
HOST_FN void
cpu_btree_reclaim(Arena *arena, CpuBtree *tree, uint64_t oldest_pin)
{
	cpu_btree_queue_free(arena, tree, &tree->retired, true, oldest_pin);
}

/*
 * Publish that there is no tree any more: from now on cpu_btree_view says no.  Its
 * memory stays until cpu_btree_release.  Returns the version: cpu_btree_release may be
 * called when no pin is older.
 */
HOST_FN uint64_t
cpu_btree_withdraw(CpuBtree *tree)
{
	cpu_tree_withdraw((CpuTree *) tree);
	return tree->version;
}

/* Give all memory of a withdrawn tree back. */
HOST_FN void
cpu_btree_release(Arena *arena, CpuBtree *tree)
{
	arena_space_release(arena, &tree->space);
	tree->retired.head = tree->retired.tail = 0;
}

#endif /* BTREE_TREE_CPU_H */
