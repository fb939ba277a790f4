/*-------------------------------------------------------------------------
 *
 * btree_build_cpu.h
 *	  The writer of nodes on a CPU, and the bulk build.
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
#ifndef BTREE_BUILD_CPU_H
#define BTREE_BUILD_CPU_H

#include <string.h>

#include "kernels/btree/btree_tree_cpu.h"

/*
 * Nodes are at least half full, except the root and those at the right edge, where
 * ascending inserts leave full nodes behind.
 */
#define CPU_BTREE_MIN (BTREE_FANOUT / 2)

/* Most that a level holds: what a node gets, and what its left neighbour has. */
#define CPU_BTREE_LEVEL_CAP (2 * BTREE_FANOUT)

typedef struct CpuBtreeItem
{
	BtreeRef ref;
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
	CpuTree *tree;
	int nw;
	int target;       /* entries of a leaf, items of an inner node */
	bool track;       /* note new and replaced nodes */
	uint64_t version; /* version to be published */
	int64_t units;    /* of new nodes, less those of replaced ones; if they are noted */
	CpuQueue fresh;
	CpuQueue retired;
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

HOST_FN void
cpu_btree_writer_init(CpuBtreeWriter *w, Arena *arena, CpuTree *tree, int target, bool track)
{
	w->arena = arena;
	w->tree = tree;
	w->nw = (int) tree->nwords;
	w->target = target;
	w->track = track;
	w->version = tree->version + 1;
	w->units = 0;
	w->fresh.head = w->fresh.tail = 0;
	w->retired.head = w->retired.tail = 0;
	w->ahead = w->ops_end = NULL;
	w->nentries = 0;
	for (int l = 0; l <= CPU_BTREE_MAX_HEIGHT; l++)
		w->level[l].n = 0;
}

/* Memory for a new node; 0: none. */
HOST_FN BtreeRef
cpu_btree_new(CpuBtreeWriter *w, int units)
{
	BtreeRef ref = arena_alloc(w->arena, &w->tree->space, units);

	if (ref != 0 && w->track && !cpu_queue_push(w->arena, w->tree, &w->fresh, w->version, ref, units))
	{
		arena_free(w->arena, &w->tree->space, ref, units);
		return 0;
	}
	w->units += units;
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

	item.ref = cpu_btree_new(w, btree_leaf_units(nw));
	if (item.ref == 0)
		return false;
	item.count = (uint64_t) k;
	item.low = w->low;
	leaf = btree_node(w->arena, item.ref);
	for (int i = 0; i < k; i++)
		btree_leaf_set(leaf, i, &w->entry[i], nw);
	for (int i = k; i < BTREE_FANOUT; i++)
		btree_leaf_clear(leaf, i, nw);
	if (w->nentries > k)
		w->low = entry_between(&w->entry[k - 1], &w->entry[k]);
	w->nentries -= k;
	for (int i = 0; i < w->nentries; i++)
		w->entry[i] = w->entry[k + i];
	return cpu_btree_push_item(w, 1, &item);
}

/* Line 1 of an inner node of the first k items of a level. */
HOST_FN void
cpu_btree_put_details(uint64_t *node, const CpuBtreeLevel *l, int k, const int nw)
{
	for (int i = 0; i < k; i++)
		btree_inner_set_details(node, i, &l->item[i].low, nw);
	for (int i = k; i < BTREE_FANOUT; i++)
		btree_inner_clear_details(node, i);
}

/* Make an inner node of the first k items of a level; false: no memory, or too many entries. */
HOST_FN bool
cpu_btree_put_inner(CpuBtreeWriter *w, int level, int k)
{
	CpuBtreeLevel *l = &w->level[level];
	CpuBtreeItem item;
	uint64_t *node;
	uint64_t header;
	unsigned details = 0;

	if (level >= CPU_BTREE_MAX_HEIGHT)
		return false;
	for (int i = 1; i < k; i++)
		details |= (unsigned) ((l->item[i].low.w1 | l->item[i].low.t) != 0) << i;
	btree_inner_set_header(&header, k, details);
	item.ref = cpu_btree_new(w, cpu_btree_inner_units(header));
	if (item.ref == 0)
		return false;
	item.count = 0;
	item.low = l->item[0].low;
	node = btree_node(w->arena, item.ref);
	node[0] = header;
	for (int i = 0; i < k; i++)
	{
		btree_inner_set_child(node, i, l->item[i].low.w0, l->item[i].ref, item.count);
		item.count += l->item[i].count;
	}
	for (int i = k; i < BTREE_FANOUT; i++)
		btree_inner_clear_child(node, i);
	if (item.count > BTREE_MAX_ENTRIES)
		return false;
	if (details != 0)
		cpu_btree_put_details(node, l, k, w->nw);
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
cpu_btree_writer_finish(CpuBtreeWriter *w, BtreeRef *root, int *height)
{
	*root = 0;
	*height = 0;
	while (w->nentries > 0)
	{
		if (!cpu_btree_put_leaf(w, w->nentries > BTREE_FANOUT ? w->target : w->nentries))
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
			if (!cpu_btree_put_inner(w, l, level->n > BTREE_FANOUT ? w->target : level->n))
				return false;
		}
	}
	return false;
}

/* Entries of a leaf, children of an inner node that a build makes. */
HOST_FN int
cpu_btree_target(int fill_percent)
{
	int target = (BTREE_FANOUT * fill_percent + 50) / 100;

	return target < CPU_BTREE_MIN ? CPU_BTREE_MIN : target > BTREE_FANOUT ? BTREE_FANOUT : target;
}

/*
 * Begin to build a tree that has no entries yet and holds no memory.  Leaves
 * and inner nodes are filled to fill_percent (50 to 100).  The tree stays as
 * it is until btree_cpu_build_finish.  That may also be a tree that was withdrawn and
 * released: then tree->nwords is the caller's to set before.
 */
HOST_FN KernelStatus
cpu_btree_build_begin(Arena *arena, CpuTree *tree, void *state, int fill_percent)
{
	CpuBtreeBuild *build = (CpuBtreeBuild *) state;

	cpu_btree_writer_init(&build->writer, arena, tree, cpu_btree_target(fill_percent), false);
	build->count = 0;
	return KERNEL_OK;
}

/*
 * Add entries, strictly ascending over all calls.  After KERNEL_NO_MEMORY only
 * btree_cpu_build_cancel may follow.
 */
HOST_FN KernelStatus
btree_cpu_build_add(void *state, const GpudsEntry *e, int64_t n)
{
	CpuBtreeBuild *build = (CpuBtreeBuild *) state;
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
btree_cpu_build_cancel(void *state)
{
	CpuBtreeBuild *build = (CpuBtreeBuild *) state;
	arena_space_release(build->writer.arena, &build->writer.tree->space);
}

/* Publish what was added; after KERNEL_NO_MEMORY call btree_cpu_build_cancel. */
HOST_FN KernelStatus
btree_cpu_build_finish(void *state)
{
	CpuBtreeBuild *build = (CpuBtreeBuild *) state;
	CpuBtreeWriter *w = &build->writer;
	BtreeRef root;
	int height;

	if (!cpu_btree_writer_finish(w, &root, &height))
		return KERNEL_NO_MEMORY;
	cpu_tree_publish(w->tree, head_make(w->nw, height, root), build->count);
	return KERNEL_OK;
}

#endif /* BTREE_BUILD_CPU_H */
