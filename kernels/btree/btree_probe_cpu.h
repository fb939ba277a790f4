/*-------------------------------------------------------------------------
 *
 * btree_probe_cpu.h
 *	  Reading a version of a tree on a CPU, many intervals at a time.
 *
 * A probe is one interval on its way through the tree.  Probes of neighbouring
 * intervals go down together until they part.  From there each notes at every
 * inner node which children the interval covers, so that moving on to the next leaf
 * needs no comparison, and no look at a leaf that has nothing to offer.
 *
 * A scan is resumed by value: its GpudsScan may be used with a newer version of
 * the same tree.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_PROBE_CPU_H
#define BTREE_PROBE_CPU_H

#include "kernels/btree/btree_probe.h"
#include "kernels/btree/btree_tree_cpu.h"

/* Descents that are interleaved: while one waits for memory, the others go on. */
#define CPU_BTREE_INTERLEAVED 16

/* Leaves of a range that are on their way to the processor while others are read; a power of two. */
#define CPU_BTREE_LEAVES_AHEAD 16

/* A node on a probe's path: the child it is at, and the last one it covers. */
typedef struct CpuBtreeFrame
{
	BtreeRef ref;
	uint8_t at;
	uint8_t end;
	bool near_bound; /* the interval begins in the subtree (where the scan starts) */
	bool far_bound;  /* the interval ends in the subtree */
} CpuBtreeFrame;

typedef struct CpuBtreeProbe
{
	GpudsInterval interval;
	bool empty;
	bool near_bound; /* of the leaf */
	bool far_bound;
	int top;                                  /* levels above the first frame of the path */
	BtreeRef ref;                             /* the node it has come to */
	CpuBtreeFrame path[CPU_BTREE_MAX_HEIGHT]; /* from level top to the leaf's parent */
} CpuBtreeProbe;

/* A leaf of an interval. */
typedef struct CpuBtreeLeaf
{
	const uint64_t *words;
	bool lo_bound; /* the interval begins in it */
	bool hi_bound; /* the interval ends in it */
} CpuBtreeLeaf;

/* The probe for the interval that the scan is at, i intervals further on. */
HOST_INLINE void
cpu_btree_probe_init(CpuBtreeProbe *p, const GpudsScan *scan, int64_t i, const bool forward)
{
	p->empty = !entry_scan_rest(scan, forward ? scan->next + i : scan->next - 1 - i, forward, &p->interval);
	p->near_bound = p->far_bound = true;
}

/*
 * Does an interval that begins in child at of a node end there?  Looks at the
 * first key word only: false means that it may still be so.
 */
HOST_INLINE bool
cpu_btree_same_child(const uint64_t *node, int at, const GpudsEntry *far, const bool forward)
{
	if (forward)
		return at == btree_inner_n(node) - 1 || far->w0 < node[1 + at];
	return at == 0 || far->w0 > node[at];
}

/*
 * Go down for all probes at once, as far as they go the same way.  Intervals
 * that follow each other share most of the tree's upper levels.  Returns the
 * number of levels.
 */
HOST_INLINE int
cpu_btree_probes_common(CpuBtreeProbe *probes, int together, const GpudsView *view, const bool forward,
						const int nw)
{
	BtreeRef ref = view->root;
	int first = 0;
	int last = together - 1;
	int depth = 0;

	while (first < last && probes[first].empty)
		first++;
	while (last > first && probes[last].empty)
		last--;
	if (!probes[first].empty)
	{
		const GpudsEntry *lo = &probes[forward ? first : last].interval.lo;
		const GpudsEntry *hi = &probes[forward ? last : first].interval.hi;

		for (; depth < view->height - 1; depth++)
		{
			const uint64_t *node = btree_node(view->base, ref);
			int at = btree_inner_rank(node, lo, nw);

			if (!cpu_btree_same_child(node, at, hi, true) && btree_inner_rank(node, hi, nw) != at)
				break;
			ref = btree_link_ref(btree_inner_link(node, at));
			cpu_btree_prefetch(view->base, ref, depth == view->height - 2, nw);
		}
	}
	for (int i = 0; i < together; i++)
	{
		probes[i].ref = ref;
		probes[i].top = depth;
	}
	return depth;
}

/* One step down: into the child where the scan of the interval goes on. */
HOST_INLINE void
cpu_btree_probe_step(CpuBtreeProbe *p, const GpudsView *view, int depth, const bool forward, const int nw)
{
	const uint64_t *node = btree_node(view->base, p->ref);
	CpuBtreeFrame *f = &p->path[depth];
	const GpudsEntry *near = forward ? &p->interval.lo : &p->interval.hi;
	const GpudsEntry *far = forward ? &p->interval.hi : &p->interval.lo;
	int last = btree_inner_n(node) - 1;

	f->ref = p->ref;
	f->near_bound = p->near_bound;
	f->far_bound = p->far_bound;
	f->at = (uint8_t) (p->near_bound ? btree_inner_rank(node, near, nw) : forward ? 0 : last);
	if (!p->far_bound)
		f->end = (uint8_t) (forward ? last : 0);
	else if (p->near_bound && cpu_btree_same_child(node, f->at, far, forward))
		f->end = f->at;
	else
		f->end = (uint8_t) btree_inner_rank(node, far, nw);
	p->far_bound = p->far_bound && f->at == f->end;
	p->ref = btree_link_ref(btree_inner_link(node, f->at));
	cpu_btree_prefetch(view->base, p->ref, depth == view->height - 2, nw);
}

/* Start loading what a range will want in a while: the nodes behind the one that a frame is at. */
HOST_INLINE void
cpu_btree_nodes_ahead(const CpuBtreeFrame *f, const GpudsView *view, const bool forward, const int nw)
{
	const uint64_t *node = btree_node(view->base, f->ref);
	int at = f->at;

	for (int i = 0; i < 2 && at != f->end; i++)
	{
		at += forward ? 1 : -1;
		cpu_btree_prefetch(view->base, btree_link_ref(btree_inner_link(node, at)), false, nw);
	}
}

/* Go on to the next leaf of the interval; false: that was the last one. */
HOST_INLINE bool
cpu_btree_probe_next(CpuBtreeProbe *p, const GpudsView *view, const bool forward, const int nw)
{
	int leaf_depth = view->height - 1;
	int depth = leaf_depth - 1;
	const uint64_t *node;
	CpuBtreeFrame *f;

	while (depth >= p->top && p->path[depth].at == p->path[depth].end)
		depth--;
	if (depth < p->top)
		return false;
	f = &p->path[depth];
	node = btree_node(view->base, f->ref);
	f->at = (uint8_t) (forward ? f->at + 1 : f->at - 1);
	p->ref = btree_link_ref(btree_inner_link(node, f->at));
	p->near_bound = false;
	p->far_bound = f->far_bound && f->at == f->end;
	if (++depth < leaf_depth)
	{
		cpu_btree_nodes_ahead(f, view, forward, nw);
		for (; depth < leaf_depth; depth++)
			cpu_btree_probe_step(p, view, depth, forward, nw);
	}
	return true;
}

/*
 * Adds leaves of the interval, from the one that the probe has come to, to those from first to *end that are
 * on their way, at most CPU_BTREE_LEAVES_AHEAD; most: the entries that are wanted of all of them.  False:
 * these are the last ones.
 */
HOST_INLINE bool
cpu_btree_leaves_ahead(CpuBtreeProbe *p, const GpudsView *view, CpuBtreeLeaf *leaves, unsigned first,
					   unsigned *end, int64_t most, const bool forward, const int nw)
{
	/* Leaves are half full at least, or there are few. */
	while (*end - first < CPU_BTREE_LEAVES_AHEAD && (int64_t) (*end - first) * (BTREE_FANOUT / 2) < most)
	{
		CpuBtreeLeaf *leaf = &leaves[(*end)++ % CPU_BTREE_LEAVES_AHEAD];

		cpu_btree_prefetch(view->base, p->ref, true, nw);
		leaf->words = btree_node(view->base, p->ref);
		leaf->lo_bound = forward ? p->near_bound : p->far_bound;
		leaf->hi_bound = forward ? p->far_bound : p->near_bound;
		if (!cpu_btree_probe_next(p, view, forward, nw))
			return false;
	}
	return true;
}

/* Writes a leaf's entries from place from to before place to, at most cap; returns their number. */
HOST_INLINE int64_t
cpu_btree_leaf_emit(const uint64_t *leaf, int from, int to, GpudsEntry *out, int64_t cap, const bool forward,
					const int nw)
{
	const int n = to - from < cap ? to - from : (int) cap;

	/* Where there is room for a whole leaf, what is behind its entries may be written over. */
	if (forward && from == 0 && cap >= BTREE_FANOUT)
		simd_entries8(leaf, nw == 2 ? leaf + BTREE_FANOUT : NULL, leaf + nw * BTREE_FANOUT, out);
	else
	{
		for (int i = 0; i < n; i++)
			out[i] = btree_leaf_entry(leaf, forward ? from + i : to - 1 - i, nw);
	}
	return n > 0 ? n : 0;
}

/*
 * Write the interval's entries to out, from the leaf that the probe has come
 * to.  Returns their number; if it is cap, there may be more.
 */
HOST_INLINE int64_t
cpu_btree_probe_emit(CpuBtreeProbe *p, const GpudsView *view, GpudsEntry *out, int64_t cap,
					 const bool forward, const int nw)
{
	const GpudsEntry lo = p->interval.lo;
	const GpudsEntry hi = entry_after(&p->interval.hi);
	CpuBtreeLeaf leaves[CPU_BTREE_LEAVES_AHEAD];
	unsigned end = 0;
	bool more = true;
	int64_t done = 0;

	for (unsigned first = 0; done < cap && (more || first < end); first++)
	{
		const CpuBtreeLeaf *leaf = &leaves[first % CPU_BTREE_LEAVES_AHEAD];
		int from;
		int to;

		if (more)
			more = cpu_btree_leaves_ahead(p, view, leaves, first, &end, cap - done, forward, nw);
		from = leaf->lo_bound ? btree_leaf_rank(leaf->words, &lo, nw) : 0;
		to = leaf->hi_bound ? btree_leaf_rank(leaf->words, &hi, nw) : btree_leaf_n(leaf->words, nw);
		done += cpu_btree_leaf_emit(leaf->words, from, to, out + done, cap - done, forward, nw);
	}
	return done;
}

/* How many of the scan's next intervals go down together; left: those that it has. */
HOST_INLINE int
cpu_btree_together(int64_t left)
{
	return left < CPU_BTREE_INTERLEAVED ? (int) left : CPU_BTREE_INTERLEAVED;
}

/* Takes the probes of the scan's next intervals down to their first leaves. */
HOST_INLINE void
cpu_btree_probes_down(CpuBtreeProbe *probes, int together, const GpudsView *view, const GpudsScan *scan,
					  const bool forward, const int nw)
{
	for (int i = 0; i < together; i++)
		cpu_btree_probe_init(&probes[i], scan, i, forward);
	for (int depth = cpu_btree_probes_common(probes, together, view, forward, nw); depth < view->height - 1;
		 depth++)
	{
		for (int i = 0; i < together; i++)
			cpu_btree_probe_step(&probes[i], view, depth, forward, nw);
	}
}

HOST_INLINE int64_t
cpu_btree_scan_any(const GpudsView *view, GpudsScan *scan, GpudsEntry *out, int64_t cap, const bool forward,
				   const int nw)
{
	CpuBtreeProbe probes[CPU_BTREE_INTERLEAVED];
	int64_t done = 0;

	while (done < cap)
	{
		int64_t left = forward ? scan->n - scan->next : scan->next;
		int together = cpu_btree_together(left < cap - done ? left : cap - done);

		if (together == 0)
			break;
		cpu_btree_probes_down(probes, together, view, scan, forward, nw);
		for (int i = 0; i < together; i++)
		{
			if (!probes[i].empty && view->height > 0)
				done += cpu_btree_probe_emit(&probes[i], view, out + done, cap - done, forward, nw);
			if (cpu_scan_is_full(scan, out, done, cap, forward))
				break;
		}
	}
	return done;
}

/*
 * The next entries of a scan, in its order, at most cap.  Fewer than cap: the
 * scan is at its end.
 */
HOST_FN int64_t
cpu_btree_scan(const GpudsView *view, GpudsScan *scan, bool forward, GpudsEntry *out, int64_t cap)
{
	return CPU_SCAN_EACH(cpu_btree_scan_any, view, scan, out, cap, forward);
}

#endif /* BTREE_PROBE_CPU_H */
