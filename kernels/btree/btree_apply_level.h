/*-------------------------------------------------------------------------
 *
 * btree_apply_level.h
 *	  Applying a batch of operations to an inner level: what is done for one change,
 *	  one run of changes, and one new node.
 *
 * A level takes the changes and parts of the level below, and makes its own.  In
 * order, each for all before the next begins:
 *
 *	  btree_level_head			change below, and one more; then head becomes an
 *								exclusive sum
 *	  btree_level_list_run		change below
 *	  btree_level_plan			run, and one more; then first becomes an exclusive sum
 *	  btree_level_list_parts	change, and part below
 *	  btree_level_part			new node; takes the free inner nodes
 *	  btree_level_inner			thread of a new node; takes the old nodes
 *
 * btree_level_single does the same at once where a single path changes.  After the
 * top level, btree_level_finish finds the root.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_APPLY_LEVEL_H
#define BTREE_APPLY_LEVEL_H

#include "kernels/btree/btree_apply_steps.h"

/* Notes how many nodes of this level are replaced. */
KERNEL_INLINE void
btree_level_set_changes(const BtreeLevel *l, uint32_t n)
{
	l->counts->changes[l->level] = n;
	l->counts->retired[l->level + 1] = l->counts->retired[l->level] +
									   (l->level > 0 && l->level < l->view.height ? n : 0);
}

/* Notes how many nodes of this level are made. */
KERNEL_INLINE void
btree_level_set_parts(const BtreeLevel *l, uint32_t n)
{
	l->counts->parts[l->level] = n;
	l->counts->made[l->level + 1] = l->counts->made[l->level] + (l->level > 0 ? n : 0);
}

/* Does a run begin with change c below?  c goes up to the number of changes, at least. */
KERNEL_INLINE void
btree_level_head(const BtreeLevel *l, int64_t c)
{
	l->head[c] = c < l->counts->changes[l->level - 1] &&
						 (c == 0 || l->below.parent[c - 1] != l->below.parent[c])
					 ? 1
					 : 0;
}

/* Lists the run that begins with change c below.  head is an exclusive sum. */
KERNEL_INLINE void
btree_level_list_run(const BtreeLevel *l, int64_t c)
{
	uint32_t n = l->counts->changes[l->level - 1];

	if (c >= n)
		return;
	if (l->head[c + 1] != l->head[c])
		l->run[l->head[c]] = (uint32_t) c;
	if (c == n - 1)
	{
		l->run[l->head[n]] = n;
		btree_level_set_changes(l, l->head[n]);
	}
}

/* The parent of the node of this level in which operation j is, and its place there. */
KERNEL_INLINE BtreeRef
btree_level_parent(const BtreeLevel *l, int64_t j, int *place, const int nw)
{
	BtreeRef ref = l->view.root;
	BtreeRef parent = 0;

	*place = 0;
	if (l->level >= l->view.height - 1)
		return 0;
	if (l->path.parent)
	{
		*place = btree_place_of(l->path.place[l->level * l->batch.n + j]);
		return l->path.parent[l->level * l->batch.n + j];
	}

	GpudsEntry e = btree_batch_entry(&l->batch, j, nw);

	for (int level = l->view.height - 1; level > l->level; level--)
	{
		const uint64_t *node = btree_node(l->view.base, ref);
		int i = btree_inner_rank(node, &e, nw);

		*place = i;
		parent = ref;
		ref = btree_link_ref(btree_inner_link(node, i));
	}
	return parent;
}

/* Makes the change of run r.  r goes up to the number of runs, at least. */
KERNEL_INLINE void
btree_level_plan(const BtreeLevel *l, int64_t r, const int nw)
{
	const BtreeChanges *below = &l->below;
	const BtreeChanges *here = &l->here;
	uint32_t n = l->counts->changes[l->level];
	int place;

	here->first[r] = 0;
	if (r == n)
		here->op[r] = (uint32_t) l->batch.n;
	if (r < n)
	{
		uint32_t from = l->run[r];
		uint32_t to = l->run[r + 1];
		uint32_t j = below->op[from];
		BtreeRef node = below->parent[from];
		int64_t after = 1;

		if (node != 0 && l->path.parent)
			after = btree_place_n(l->path.place[(l->level - 1) * l->batch.n + j]);
		else if (node != 0)
			after = btree_inner_n(btree_node(l->view.base, node));
		after += (int64_t) (below->first[to] - below->first[from]) - (int64_t) (to - from);
		here->op[r] = j;
		here->first[r] = (uint32_t) btree_nodes(after);
		here->after[r] = (uint32_t) after;
		here->node[r] = node;
		here->parent[r] = btree_level_parent(l, j, &place, nw);
		here->place[r] = btree_place(place, 0, (below->place[to - 1] & BTREE_LAST) != 0);
		if (node != 0)
			l->retired_inners[l->counts->retired[l->level] + (uint32_t) r] = node;
	}
}

/*
 * Lists a part: for i < changes the first one of change i, from there on one of
 * the others for part i - changes below, since a run has at most one part more than
 * there are parts below.  first is an exclusive sum.
 */
KERNEL_INLINE void
btree_level_list_parts(const BtreeLevel *l, int64_t i)
{
	const BtreeChanges *here = &l->here;
	uint32_t n = l->counts->changes[l->level];
	uint32_t change;
	uint32_t q = 0;

	if (i == 0)
		btree_level_set_parts(l, here->first[n]);
	if (i < n)
	{
		change = (uint32_t) i;
	}
	else
	{
		uint32_t child = (uint32_t) (i - n);

		if (child >= l->counts->parts[l->level - 1])
			return;
		change = l->head[l->children.change[child] + 1] - 1;
		q = child - l->below.first[l->run[change]] + 1;
	}
	if (here->first[change] + q < here->first[change + 1])
		l->parts.change[here->first[change] + q] = change;
}

/* A child of a change's parts. */
typedef struct BtreeChild
{
	GpudsEntry separator;
	BtreeRef ref;
	uint32_t before; /* entries in the children of the change's parts before it */
} BtreeChild;

/* Number of the first child of the parts of change c below, counted from its run's start. */
KERNEL_INLINE uint32_t
btree_level_place(const BtreeChanges *below, uint32_t c, uint32_t from, uint32_t first)
{
	return (uint32_t) btree_place_of(below->place[c]) + (below->first[c] - first) - (c - from);
}

/* The first change below of a run whose parts are all behind child number at. */
KERNEL_INLINE uint32_t
btree_level_seek(const BtreeChanges *below, uint32_t from, uint32_t to, uint32_t at)
{
	uint32_t first = below->first[from];
	uint32_t lo = from;

	while (lo + BTREE_NEAR < to)
	{
		uint32_t middle = lo + (to - lo) / 2;

		if (btree_level_place(below, middle, from, first) > at)
			to = middle;
		else
			lo = middle + 1;
	}
	while (lo < to && btree_level_place(below, lo, from, first) <= at)
		lo++;
	return lo;
}

/* Child number at of the parts of a change; lo is what btree_level_seek finds. */
KERNEL_INLINE BtreeChild
btree_level_child(const BtreeLevel *l, uint32_t change, uint32_t lo, uint32_t at, const int nw)
{
	const BtreeChanges *below = &l->below;
	uint32_t from = l->run[change];
	uint32_t first = below->first[from];
	const uint64_t *node = btree_node(l->view.base, l->here.node[change]);
	uint32_t place = at;
	BtreeChild child;

	if (lo > from)
	{
		uint32_t c = lo - 1;
		int old = btree_place_of(below->place[c]);
		uint32_t q = at - btree_level_place(below, c, from, first);
		uint32_t k = below->first[c + 1] - below->first[c];

		if (q < k)
		{
			uint32_t part = below->first[c] + q;

			if (q == 0)
			{
				child.separator.w0 = child.separator.w1 = child.separator.t = 0;
				if (old > 0)
					child.separator = btree_inner_separator(node, old, nw);
			}
			else
			{
				child.separator.w0 = l->children.w0[part];
				child.separator.w1 = nw == 2 ? l->children.w1[part] : 0;
				child.separator.t = l->children.t[part];
			}
			child.ref = l->children.ref[part];
			child.before = l->children.before[part] +
						   btree_apply_net32(&l->batch, below->op[from], below->op[c]);
			if (old > 0)
				child.before += (uint32_t) btree_link_before(btree_inner_link(node, old));
			return child;
		}
		place = (uint32_t) old + 1 + (q - k);
	}

	uint64_t link = btree_inner_link(node, (int) place);

	child.separator = btree_inner_separator(node, (int) place, nw);
	child.ref = btree_link_ref(link);
	child.before = (uint32_t) btree_link_before(link) +
				   btree_apply_net32(&l->batch, below->op[from], below->op[lo]);
	return child;
}

KERNEL_INLINE BtreeChild
btree_level_front(const BtreeLevel *l, uint32_t change, uint32_t at, const int nw)
{
	uint32_t lo = btree_level_seek(&l->below, l->run[change], l->run[change + 1], at);

	return btree_level_child(l, change, lo, at, nw);
}

/* What the level above has to know of a new inner node. */
KERNEL_INLINE void
btree_level_part(const BtreeLevel *l, uint32_t part, const int nw)
{
	int64_t start, end;
	uint32_t change = btree_part_range(l, part, &start, &end);

	l->parts.before[part] = 0;
	if (start > 0)
	{
		BtreeChild front = btree_level_front(l, change, (uint32_t) start, nw);

		btree_part_set_separator(&l->parts, part, &front.separator, nw);
		l->parts.before[part] = front.before;
	}
	l->parts.ref[part] = btree_free_take(&l->inners, l->counts->made[l->level] + part);
}

/*
 * Makes a thread's places of an inner node, and returns the details of their
 * separators.  The caller sets the header, with those of all threads.
 */
KERNEL_INLINE unsigned
btree_level_inner(const BtreeLevel *l, unsigned char *base, uint32_t part, int thread, int *n, const int nw)
{
	int64_t start, end;
	uint32_t change = btree_part_range(l, part, &start, &end);
	uint64_t *node = btree_node(base, btree_free_take(&l->inners, l->counts->made[l->level] + part));
	uint32_t before = start > 0 ? btree_level_front(l, change, (uint32_t) start, nw).before : 0;
	uint32_t from = l->run[change];
	uint32_t to = l->run[change + 1];
	uint32_t first = l->below.first[from];
	uint32_t lo = btree_level_seek(&l->below, from, to,
								   (uint32_t) start + (uint32_t) (thread * BTREE_INNER_PLACES));
	unsigned details = 0;

	*n = (int) (end - start);
	for (int p = thread * BTREE_INNER_PLACES; p < (thread + 1) * BTREE_INNER_PLACES; p++)
	{
		uint32_t at = (uint32_t) (start + p);

		if (p < *n)
		{
			BtreeChild child;

			while (lo < to && btree_level_place(&l->below, lo, from, first) <= at)
				lo++;
			child = btree_level_child(l, change, lo, at, nw);
			btree_inner_set(node, p, &child.separator, child.ref, child.before - before, nw);
			if (p > 0 && (child.separator.w1 | child.separator.t) != 0)
				details |= 1u << p;
		}
		else
		{
			btree_inner_clear(node, p);
		}
	}
	return details;
}

/*
 * Plans a level on which only the node on the path of operation j changes, because
 * one child replaces one.  The node gets one part, and so do those of all levels
 * above, which can be planned at the same time.  retired and made are how many inner
 * nodes the levels below this one have replaced and made.
 */
KERNEL_INLINE void
btree_level_single(const BtreeLevel *l, uint32_t j, uint32_t retired, uint32_t made, const int nw)
{
	const BtreeChanges *here = &l->here;
	int64_t path = (l->level - 1) * l->batch.n + j;
	int place;

	l->head[0] = 0;
	l->head[1] = 1;
	l->run[0] = 0;
	l->run[1] = 1;
	here->op[0] = j;
	here->op[1] = (uint32_t) l->batch.n;
	here->first[0] = 0;
	here->first[1] = 1;
	here->after[0] = (uint32_t) btree_place_n(l->path.place[path]);
	here->node[0] = l->path.parent[path];
	here->parent[0] = btree_level_parent(l, j, &place, nw);
	here->place[0] = btree_place(place, 0, false);
	l->parts.change[0] = 0;
	l->parts.before[0] = 0;
	l->parts.ref[0] = btree_free_take(&l->inners, made);
	l->retired_inners[retired] = here->node[0];
	l->counts->changes[l->level] = 1;
	l->counts->parts[l->level] = 1;
	l->counts->retired[l->level + 1] = retired + 1;
	l->counts->made[l->level + 1] = made + 1;
}

/* The parts of the top level are there: what is the root? */
KERNEL_INLINE void
btree_level_finish(const BtreeLevel *l)
{
	BtreeCounts *counts = l->counts;
	BtreeRef root = 0;
	uint32_t height = 0;
	uint32_t single = 0;

	if (counts->parts[l->level] > 0)
	{
		root = l->parts.ref[0];
		height = (uint32_t) l->level + 1;
	}
	while (height > 1 && btree_inner_n(btree_node(l->view.base, root)) == 1)
	{
		uint32_t at = counts->retired[l->level + 1] + single++;

		l->retired_inners[at] = root;
		root = btree_link_ref(btree_inner_link(btree_node(l->view.base, root), 0));
		height--;
	}
	counts->root = root;
	counts->height = height;
	counts->single = single;
}

#endif /* BTREE_APPLY_LEVEL_H */
