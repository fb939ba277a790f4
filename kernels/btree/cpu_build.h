/*-------------------------------------------------------------------------
 *
 * btree_build.h
 *	  A new tree, the writer of nodes, and the bulk build.
 *
 * The writer makes a tree from left to right.  For every level it holds what
 * is to become nodes of that level: entries for leaves, items (child, number
 * of entries, separator before it) for inner nodes.  When a level holds
 * CPU_BTREE_MIN more than a node gets, a node is written and becomes an item of the
 * level above; so what is left at any time is enough for one more node, or two
 * of equal size.
 *
 *-------------------------------------------------------------------------
 */
#ifndef CPU_BTREE_BUILD_H
#define CPU_BTREE_BUILD_H

#include <string.h>

#include "kernels/btree/cpu_node.h"

#define CPU_BTREE_LEVEL_CAP 16

typedef struct CpuBtreeItem
{
	ArenaRef ref;
	uint64_t count;
	GpudsEntry low; /* separator before it */
} CpuBtreeItem;

typedef struct CpuBtreeLevel
{
	int n;
	CpuBtreeItem item[CPU_BTREE_LEVEL_CAP];
} CpuBtreeLevel;

typedef struct CpuBtreeWriter
{
	Arena *arena;
	CpuBtree *tree;
	int nw;
	int target;       /* entries of a leaf, items of an inner node */
	bool track;       /* note new and replaced nodes */
	uint64_t version; /* version to be published */
	CpuBtreeQueue fresh;
	CpuBtreeQueue retired;
	const GpudsOp *ahead; /* operations up to here are being loaded for */
	const GpudsOp *ops_end;
	int nentries;
	GpudsEntry low; /* separator before the first entry held */
	GpudsEntry entry[CPU_BTREE_LEVEL_CAP];
	CpuBtreeLevel level[CPU_BTREE_MAX_HEIGHT + 1]; /* level[l]: items of nodes of level l; level[0] unused */
} CpuBtreeWriter;

typedef struct CpuBtreeBuild
{
	CpuBtreeWriter writer;
	uint64_t count;
} CpuBtreeBuild;

/* Put new contents in the tree's head, then move its version. */
HOST_FN void
cpu_btree_publish(CpuBtree *tree, uint64_t head, uint64_t count)
{
	__atomic_store_n(&tree->count, count, __ATOMIC_RELAXED);
	__atomic_store_n(&tree->head, head, __ATOMIC_RELEASE);
	__atomic_store_n(&tree->version, tree->version + 1, __ATOMIC_SEQ_CST);
}

HOST_FN uint64_t
cpu_btree_make_head(int nwords, int height, ArenaRef root)
{
	return CPU_BTREE_HEAD_VALID | (uint64_t) nwords << 40 | (uint64_t) height << 32 | root;
}

/*
 * Make an empty tree of one or two key words.  The struct is either memory of
 * zeros (the version is 1 then) or a tree that was released (the version goes
 * on).
 */
HOST_FN void
cpu_btree_init(CpuBtree *tree, int nwords)
{
	tree->nwords = nwords;
	tree->reserved = 0;
	arena_space_init(&tree->space);
	tree->retired.head = tree->retired.tail = 0;
	cpu_btree_publish(tree, cpu_btree_make_head(nwords, 0, 0), 0);
}

/* Entries of the newest version. */
HOST_FN uint64_t
cpu_btree_entries(const CpuBtree *tree)
{
	return __atomic_load_n(&tree->count, __ATOMIC_RELAXED);
}

/* Append a piece of memory to a queue of the tree; false: out of memory. */
HOST_FN bool
cpu_btree_queue_push(CpuBtreeWriter *w, CpuBtreeQueue *queue, ArenaRef ref, int units)
{
	CpuBtreeQueueUnit *unit = (CpuBtreeQueueUnit *) arena_at(w->arena, queue->tail);

	if (queue->tail == 0 || unit->n == CPU_BTREE_QUEUE_ITEMS)
	{
		ArenaRef next = arena_alloc(w->arena, &w->tree->space, 1);

		if (next == 0)
			return false;
		if (queue->tail == 0)
			queue->head = next;
		else
			unit->next = next;
		queue->tail = next;
		unit = (CpuBtreeQueueUnit *) arena_at(w->arena, next);
		unit->version = w->version;
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

HOST_FN void
cpu_btree_writer_init(CpuBtreeWriter *w, Arena *arena, CpuBtree *tree, int target, bool track)
{
	w->arena = arena;
	w->tree = tree;
	w->nw = (int) tree->nwords;
	w->target = target;
	w->track = track;
	w->version = tree->version + 1;
	w->fresh.head = w->fresh.tail = 0;
	w->retired.head = w->retired.tail = 0;
	w->ahead = w->ops_end = NULL;
	w->nentries = 0;
	for (int l = 0; l <= CPU_BTREE_MAX_HEIGHT; l++)
		w->level[l].n = 0;
}

/* Memory for a new node or extension; 0: none. */
HOST_FN ArenaRef
cpu_btree_new(CpuBtreeWriter *w, int units)
{
	ArenaRef ref = arena_alloc(w->arena, &w->tree->space, units);

	if (ref != 0 && w->track && !cpu_btree_queue_push(w, &w->fresh, ref, units))
	{
		arena_free(w->arena, &w->tree->space, ref, units);
		return 0;
	}
	return ref;
}

HOST_FN bool cpu_btree_put_inner(CpuBtreeWriter *w, int level, int k);

/* Append an item to what becomes nodes of a level. */
HOST_FN bool
cpu_btree_push_item(CpuBtreeWriter *w, int level, const CpuBtreeItem *item)
{
	CpuBtreeLevel *l = &w->level[level];

	l->item[l->n++] = *item;
	if (l->n >= w->target + CPU_BTREE_MIN)
		return cpu_btree_put_inner(w, level, w->target);
	return true;
}

/* Make a leaf of the first k entries held. */
HOST_FN bool
cpu_btree_put_leaf(CpuBtreeWriter *w, int k)
{
	const int nw = w->nw;
	CpuBtreeItem item;
	uint64_t *leaf;

	item.ref = cpu_btree_new(w, cpu_btree_node_units(nw));
	if (item.ref == 0)
		return false;
	item.count = (uint64_t) k;
	item.low = w->low;
	leaf = (uint64_t *) arena_at(w->arena, item.ref);
	for (int i = 0; i < k; i++)
	{
		leaf[i] = w->entry[i].w0;
		if (nw == 2)
			leaf[8 + i] = w->entry[i].w1;
		leaf[8 * nw + i] = w->entry[i].t;
	}
	for (int i = k; i < CPU_BTREE_FANOUT; i++)
	{
		leaf[i] = UINT64_MAX;
		if (nw == 2)
			leaf[8 + i] = UINT64_MAX;
		leaf[8 * nw + i] = UINT64_MAX;
	}
	if (w->nentries > k)
		w->low = cpu_btree_between(&w->entry[k - 1], &w->entry[k]);
	w->nentries -= k;
	for (int i = 0; i < w->nentries; i++)
		w->entry[i] = w->entry[k + i];
	return cpu_btree_push_item(w, 1, &item);
}

/* Make an inner node of the first k items of a level. */
HOST_FN bool
cpu_btree_put_inner(CpuBtreeWriter *w, int level, int k)
{
	const int nw = w->nw;
	CpuBtreeLevel *l = &w->level[level];
	CpuBtreeItem item;
	uint64_t *node;
	uint64_t *ext = NULL;
	uint32_t *children;
	unsigned ties = 0;
	ArenaRef extref = 0;

	if (level >= CPU_BTREE_MAX_HEIGHT)
		return false;
	for (int i = 1; i < k; i++)
		ties |= (unsigned) (l->item[i].low.t != 0) << (i - 1);
	if (ties != 0)
	{
		extref = cpu_btree_new(w, 1);
		if (extref == 0)
			return false;
		ext = (uint64_t *) arena_at(w->arena, extref);
		for (int i = 0; i < CPU_BTREE_FANOUT; i++)
			ext[i] = i > 0 && i < k ? l->item[i].low.t : 0;
	}
	item.ref = cpu_btree_new(w, cpu_btree_node_units(nw));
	if (item.ref == 0)
	{
		if (extref != 0 && !w->track)
			arena_free(w->arena, &w->tree->space, extref, 1);
		return false;
	}
	item.count = 0;
	item.low = l->item[0].low;
	node = (uint64_t *) arena_at(w->arena, item.ref);
	children = (uint32_t *) (node + 8 * nw);
	node[0] = (uint64_t) k | (uint64_t) level << 8 | (uint64_t) ties << 16 | (uint64_t) extref << 32;
	if (nw == 2)
		node[8] = 0;
	for (int i = 1; i < CPU_BTREE_FANOUT; i++)
	{
		node[i] = i < k ? l->item[i].low.w0 : UINT64_MAX;
		if (nw == 2)
			node[8 + i] = i < k ? l->item[i].low.w1 : UINT64_MAX;
	}
	for (int i = 0; i < CPU_BTREE_FANOUT; i++)
	{
		uint64_t count = i < k ? l->item[i].count : 0;

		if (count > UINT32_MAX)
			return false;
		children[i] = i < k ? l->item[i].ref : 0;
		children[CPU_BTREE_FANOUT + i] = (uint32_t) count;
		item.count += count;
	}
	l->n -= k;
	for (int i = 0; i < l->n; i++)
		l->item[i] = l->item[k + i];
	return cpu_btree_push_item(w, level + 1, &item);
}

/* Append an entry. */
HOST_FN bool
cpu_btree_push_entry(CpuBtreeWriter *w, const GpudsEntry *e)
{
	w->entry[w->nentries++] = *e;
	if (w->nentries >= w->target + CPU_BTREE_MIN)
		return cpu_btree_put_leaf(w, w->target);
	return true;
}

/* The lowest level from this one upwards that holds anything, -1: none. */
HOST_FN int
cpu_btree_writer_next(const CpuBtreeWriter *w, int level)
{
	if (level <= 0 && w->nentries > 0)
		return 0;
	for (int l = level > 1 ? level : 1; l <= CPU_BTREE_MAX_HEIGHT; l++)
	{
		if (w->level[l].n > 0)
			return l;
	}
	return -1;
}

/*
 * End of input: what the levels still hold becomes the tree's right edge.
 * Returns the root and its height, 0 if there are no entries.
 */
HOST_FN bool
cpu_btree_writer_finish(CpuBtreeWriter *w, ArenaRef *root, int *height)
{
	*root = 0;
	*height = 0;
	while (w->nentries > 0)
	{
		if (!cpu_btree_put_leaf(w, w->nentries > CPU_BTREE_FANOUT ? w->target : w->nentries))
			return false;
	}
	for (int l = 1; l <= CPU_BTREE_MAX_HEIGHT; l++)
	{
		CpuBtreeLevel *level = &w->level[l];

		if (cpu_btree_writer_next(w, l + 1) < 0)
		{
			if (level->n == 0)
				return true;
			if (level->n == 1)
			{
				*root = level->item[0].ref;
				*height = l;
				return true;
			}
		}
		while (level->n > 0)
		{
			if (!cpu_btree_put_inner(w, l, level->n > CPU_BTREE_FANOUT ? w->target : level->n))
				return false;
		}
	}
	return false;
}

/*
 * Begin to build a tree that has no entries yet and holds no memory.  Leaves
 * and inner nodes are filled to fill_percent (50 to 100).  The tree stays as
 * it is until cpu_btree_build_finish.  That may also be a tree that was withdrawn and
 * released: then tree->nwords is the caller's to set before.
 */
HOST_FN KernelStatus
cpu_btree_build_begin(Arena *arena, CpuBtree *tree, CpuBtreeBuild *build, int fill_percent)
{
	int target = (CPU_BTREE_FANOUT * fill_percent + 50) / 100;

	target = target < CPU_BTREE_MIN ? CPU_BTREE_MIN : target > CPU_BTREE_FANOUT ? CPU_BTREE_FANOUT : target;
	cpu_btree_writer_init(&build->writer, arena, tree, target, false);
	build->count = 0;
	return KERNEL_OK;
}

/*
 * Add entries, strictly ascending over all calls.  After KERNEL_NO_MEMORY only
 * cpu_btree_build_cancel may follow.
 */
HOST_FN KernelStatus
cpu_btree_build_add(CpuBtreeBuild *build, const GpudsEntry *e, int64_t n)
{
	CpuBtreeWriter *w = &build->writer;

	if (n > 0 && w->nentries == 0)
		w->low = e[0];
	for (int64_t i = 0; i < n; i++)
	{
		if (!cpu_btree_push_entry(w, &e[i]))
			return KERNEL_NO_MEMORY;
	}
	build->count += (uint64_t) n;
	return KERNEL_OK;
}

/* Give everything back; the tree stays empty. */
HOST_FN void
cpu_btree_build_cancel(CpuBtreeBuild *build)
{
	arena_space_release(build->writer.arena, &build->writer.tree->space);
}

/* Publish what was added; after KERNEL_NO_MEMORY call cpu_btree_build_cancel. */
HOST_FN KernelStatus
cpu_btree_build_finish(CpuBtreeBuild *build)
{
	CpuBtreeWriter *w = &build->writer;
	ArenaRef root;
	int height;

	if (!cpu_btree_writer_finish(w, &root, &height))
		return KERNEL_NO_MEMORY;
	cpu_btree_publish(w->tree, cpu_btree_make_head(w->nw, height, root), build->count);
	return KERNEL_OK;
}

#endif /* CPU_BTREE_BUILD_H */
