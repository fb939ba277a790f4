/*-------------------------------------------------------------------------
 *
 * btree_probe.h
 *	  Reading a version of a tree: scans and counts.
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
#ifndef CPU_BTREE_PROBE_H
#define CPU_BTREE_PROBE_H

#include "kernels/btree/cpu_node.h"

/* Probes that descend together, each waiting for its own memory. */
#ifdef __CUDA_ARCH__
#define CPU_BTREE_LANES 1
#else
#define CPU_BTREE_LANES 16
#endif

/* A node on a probe's path: the child it is at, and the last one it covers. */
typedef struct CpuBtreeFrame
{
	ArenaRef ref;
	uint8_t at;
	uint8_t end;
	bool near_bound; /* the interval begins in the subtree (where the scan starts) */
	bool far_bound;  /* the interval ends in the subtree */
} CpuBtreeFrame;

typedef struct CpuBtreeProbe
{
	GpudsEntry lo;
	GpudsEntry hi;
	bool empty;
	bool near_bound; /* of the leaf */
	bool far_bound;
	int top;                                  /* levels above the first frame of the path */
	ArenaRef ref;                             /* the node it has come to */
	CpuBtreeFrame path[CPU_BTREE_MAX_HEIGHT]; /* from level top to the leaf's parent */
} CpuBtreeProbe;

/*
 * The newest version, for a reader that has pinned tree->version; false: the
 * tree was withdrawn.
 */
HOST_FN bool
cpu_btree_view(const Arena *arena, const CpuBtree *tree, CpuBtreeView *view)
{
	uint64_t head = __atomic_load_n(&tree->head, __ATOMIC_ACQUIRE);

	view->base = (const unsigned char *) arena;
	view->root = (ArenaRef) head;
	view->height = (int) (head >> 32 & 0xFF);
	view->nwords = (int) (head >> 40 & 0xFF);
	return (head & CPU_BTREE_HEAD_VALID) != 0;
}

/* The next lower number. */
KERNEL_INLINE bool
cpu_btree_previous(GpudsEntry *e, const int nw)
{
	if (e->t-- != 0)
		return true;
	if (nw == 2 && e->w1-- != 0)
		return true;
	return e->w0-- != 0;
}

/* The probe for the interval that the scan is at, i intervals further on. */
KERNEL_INLINE void
cpu_btree_probe_init(CpuBtreeProbe *p, const GpudsScan *scan, int64_t i, const bool forward, const int nw)
{
	GpudsInterval interval = entry_scan_interval(scan, forward ? scan->next + i : scan->next - 1 - i);

	p->lo = interval.lo;
	p->hi = interval.hi;
	p->empty = false;
	if (i == 0 && scan->inside)
	{
		if (forward)
		{
			p->lo = scan->at;
			p->lo.t++; /* no entry has the highest t */
		}
		else
		{
			p->hi = scan->at;
			p->empty = !cpu_btree_previous(&p->hi, nw);
		}
	}
	if (entry_less(&p->hi, &p->lo))
		p->empty = true;
	p->near_bound = p->far_bound = true;
}

/*
 * Does an interval that begins in child at of a node end there?  Looks at the
 * first key word only: false means that it may still be so.
 */
KERNEL_INLINE bool
cpu_btree_same_child(const uint64_t *node, int at, const GpudsEntry *far, const bool forward)
{
	if (forward)
		return at == cpu_btree_header_n(node[0]) - 1 || far->w0 < node[1 + at];
	return at == 0 || far->w0 > node[at];
}

/*
 * Go down for all probes at once, as far as they go the same way.  Intervals
 * that follow each other share most of the tree's upper levels.  Returns the
 * number of levels.
 */
KERNEL_INLINE int
cpu_btree_probes_common(CpuBtreeProbe *probes, int lanes, const CpuBtreeView *view, const bool forward,
						const int nw)
{
	ArenaRef ref = view->root;
	int first = 0;
	int last = lanes - 1;
	int depth = 0;

	while (first < last && probes[first].empty)
		first++;
	while (last > first && probes[last].empty)
		last--;
	if (!probes[first].empty)
	{
		const GpudsEntry *lo = &probes[forward ? first : last].lo;
		const GpudsEntry *hi = &probes[forward ? last : first].hi;

		for (; depth < view->height - 1; depth++)
		{
			const uint64_t *node = cpu_btree_node(view->base, ref);
			int at = cpu_btree_inner_rank(view->base, node, lo, nw);

			if (!cpu_btree_same_child(node, at, hi, true) &&
				cpu_btree_inner_rank(view->base, node, hi, nw) != at)
				break;
			ref = cpu_btree_children(node, nw)[at];
			cpu_btree_prefetch(view->base, ref, nw);
		}
	}
	for (int i = 0; i < lanes; i++)
	{
		probes[i].ref = ref;
		probes[i].top = depth;
	}
	return depth;
}

/* One step down: into the child where the scan of the interval goes on. */
KERNEL_INLINE void
cpu_btree_probe_step(CpuBtreeProbe *p, const CpuBtreeView *view, int depth, const bool forward, const int nw)
{
	const uint64_t *node = cpu_btree_node(view->base, p->ref);
	CpuBtreeFrame *f = &p->path[depth];
	const GpudsEntry *near = forward ? &p->lo : &p->hi;
	const GpudsEntry *far = forward ? &p->hi : &p->lo;
	int last = cpu_btree_header_n(node[0]) - 1;

	f->ref = p->ref;
	f->near_bound = p->near_bound;
	f->far_bound = p->far_bound;
	f->at = (uint8_t) (p->near_bound ? cpu_btree_inner_rank(view->base, node, near, nw) : forward ? 0 : last);
	if (!p->far_bound)
		f->end = (uint8_t) (forward ? last : 0);
	else if (p->near_bound && cpu_btree_same_child(node, f->at, far, forward))
		f->end = f->at;
	else
		f->end = (uint8_t) cpu_btree_inner_rank(view->base, node, far, nw);
	p->far_bound = p->far_bound && f->at == f->end;
	p->ref = cpu_btree_children(node, nw)[f->at];
	cpu_btree_prefetch(view->base, p->ref, nw);
}

/* Start loading what a range will want next: the other children it covers. */
KERNEL_INLINE void
cpu_btree_probe_ahead(const CpuBtreeProbe *p, const CpuBtreeView *view, int depth, const bool forward,
					  const int nw)
{
	const CpuBtreeFrame *f = &p->path[depth];
	const uint32_t *children = cpu_btree_children(cpu_btree_node(view->base, f->ref), nw);

	for (int i = f->at; i != f->end;)
	{
		i += forward ? 1 : -1;
		cpu_btree_prefetch(view->base, children[i], nw);
	}
}

/* Go on to the next leaf of the interval; false: that was the last one. */
KERNEL_INLINE bool
cpu_btree_probe_next(CpuBtreeProbe *p, const CpuBtreeView *view, const bool forward, const int nw)
{
	int leaf_depth = view->height - 1;
	int depth = leaf_depth - 1;
	CpuBtreeFrame *f;

	while (depth >= p->top && p->path[depth].at == p->path[depth].end)
		depth--;
	if (depth < p->top)
		return false;
	f = &p->path[depth];
	f->at = (uint8_t) (forward ? f->at + 1 : f->at - 1);
	p->ref = cpu_btree_children(cpu_btree_node(view->base, f->ref), nw)[f->at];
	p->near_bound = false;
	p->far_bound = f->far_bound && f->at == f->end;
	if (++depth < leaf_depth)
	{
		/* the node after this one, too, in time for the next call that gets here */
		if (f->at != f->end)
			cpu_btree_prefetch(view->base,
							   cpu_btree_children(cpu_btree_node(view->base, f->ref),
												  nw)[f->at + (forward ? 1 : -1)],
							   nw);
		for (; depth < leaf_depth; depth++)
			cpu_btree_probe_step(p, view, depth, forward, nw);
		cpu_btree_probe_ahead(p, view, leaf_depth - 1, forward, nw);
	}
	return true;
}

/*
 * Write the interval's entries to out, from the leaf that the probe has come
 * to.  Returns their number; if it is cap, there may be more.
 */
KERNEL_INLINE int64_t
cpu_btree_probe_emit(CpuBtreeProbe *p, const CpuBtreeView *view, GpudsEntry *out, int64_t cap,
					 const bool forward, const int nw)
{
	int64_t done = 0;

	if (view->height - 1 > p->top)
		cpu_btree_probe_ahead(p, view, view->height - 2, forward, nw);
	do
	{
		const uint64_t *leaf = cpu_btree_node(view->base, p->ref);
		bool lo_bound = forward ? p->near_bound : p->far_bound;
		bool hi_bound = forward ? p->far_bound : p->near_bound;
		int from = lo_bound ? cpu_btree_leaf_rank(leaf, &p->lo, nw, false) : 0;
		int to = hi_bound ? cpu_btree_leaf_rank(leaf, &p->hi, nw, true) : cpu_btree_leaf_n(leaf, nw);

		if (to - from > cap - done)
		{
			if (forward)
				to = from + (int) (cap - done);
			else
				from = to - (int) (cap - done);
		}
		for (int i = 0; i < to - from; i++)
			cpu_btree_leaf_entry(leaf, forward ? from + i : to - 1 - i, nw, &out[done + i]);
		done += to > from ? to - from : 0;
	} while (done < cap && cpu_btree_probe_next(p, view, forward, nw));
	return done;
}

KERNEL_INLINE int64_t
cpu_btree_scan_any(const CpuBtreeView *view, GpudsScan *scan, GpudsEntry *out, int64_t cap,
				   const bool forward, const int nw)
{
	CpuBtreeProbe probes[CPU_BTREE_LANES];
	int64_t done = 0;

	while (done < cap)
	{
		int64_t left = forward ? scan->n - scan->next : scan->next;
		int lanes = CPU_BTREE_LANES;

		if (lanes > left)
			lanes = (int) left;
		if (lanes > cap - done)
			lanes = (int) (cap - done);
		if (lanes == 0)
			break;
		for (int i = 0; i < lanes; i++)
			cpu_btree_probe_init(&probes[i], scan, i, forward, nw);
		for (int depth = cpu_btree_probes_common(probes, lanes, view, forward, nw); depth < view->height - 1;
			 depth++)
		{
			for (int i = 0; i < lanes; i++)
				cpu_btree_probe_step(&probes[i], view, depth, forward, nw);
		}
		for (int i = 0; i < lanes; i++)
		{
			if (!probes[i].empty && view->height > 0)
				done += cpu_btree_probe_emit(&probes[i], view, out + done, cap - done, forward, nw);
			if (done == cap)
			{
				scan->inside = true;
				scan->at = out[done - 1];
				break;
			}
			scan->inside = false;
			scan->next += forward ? 1 : -1;
		}
	}
	return done;
}

/*
 * The next entries of a scan, in its order, at most cap.  Fewer than cap: the
 * scan is at its end.
 */
KERNEL_FN int64_t
cpu_btree_scan(const CpuBtreeView *view, GpudsScan *scan, bool forward, GpudsEntry *out, int64_t cap)
{
	if (view->nwords == 1)
	{
		if (forward)
			return cpu_btree_scan_any(view, scan, out, cap, true, 1);
		return cpu_btree_scan_any(view, scan, out, cap, false, 1);
	}
	if (forward)
		return cpu_btree_scan_any(view, scan, out, cap, true, 2);
	return cpu_btree_scan_any(view, scan, out, cap, false, 2);
}

/*
 * An interval on its way to being counted: two descents, to its first and
 * behind its last entry, that part where it leaves a single child.
 */
typedef struct CpuBtreeCounter
{
	ArenaRef lo_ref;
	ArenaRef hi_ref;
	const GpudsInterval *interval;
} CpuBtreeCounter;

/* One step down; returns what is between the two, modulo 2^64. */
KERNEL_INLINE uint64_t
cpu_btree_counter_step(CpuBtreeCounter *c, const CpuBtreeView *view, const int nw)
{
	const uint64_t *lo = cpu_btree_node(view->base, c->lo_ref);
	const uint64_t *hi = cpu_btree_node(view->base, c->hi_ref);
	int i = cpu_btree_inner_rank(view->base, lo, &c->interval->lo, nw);
	int k = cpu_btree_inner_rank(view->base, hi, &c->interval->hi, nw);
	uint64_t sum = 0;

	if (c->lo_ref == c->hi_ref)
	{
		for (int j = i; j < k; j++)
			sum += cpu_btree_counts(lo, nw)[j];
	}
	else
	{
		for (int j = 0; j < i; j++)
			sum -= cpu_btree_counts(lo, nw)[j];
		for (int j = 0; j < k; j++)
			sum += cpu_btree_counts(hi, nw)[j];
	}
	c->lo_ref = cpu_btree_children(lo, nw)[i];
	c->hi_ref = cpu_btree_children(hi, nw)[k];
	cpu_btree_prefetch(view->base, c->lo_ref, nw);
	if (c->hi_ref != c->lo_ref)
		cpu_btree_prefetch(view->base, c->hi_ref, nw);
	return sum;
}

KERNEL_INLINE uint64_t
cpu_btree_count_any(const CpuBtreeView *view, const GpudsInterval *intervals, int64_t n, const int nw)
{
	CpuBtreeCounter counters[CPU_BTREE_LANES];
	uint64_t sum = 0;
	int64_t next = 0;

	while (view->height > 0 && next < n)
	{
		int lanes = 0;

		for (; next < n && lanes < CPU_BTREE_LANES; next++)
		{
			if (entry_less(&intervals[next].hi, &intervals[next].lo))
				continue;
			counters[lanes].lo_ref = counters[lanes].hi_ref = view->root;
			counters[lanes].interval = &intervals[next];
			lanes++;
		}
		for (int depth = 0; depth < view->height - 1; depth++)
		{
			for (int i = 0; i < lanes; i++)
				sum += cpu_btree_counter_step(&counters[i], view, nw);
		}
		for (int i = 0; i < lanes; i++)
		{
			const GpudsInterval *interval = counters[i].interval;

			sum += (uint64_t) cpu_btree_leaf_rank(cpu_btree_node(view->base, counters[i].hi_ref),
												  &interval->hi, nw, true);
			sum -= (uint64_t) cpu_btree_leaf_rank(cpu_btree_node(view->base, counters[i].lo_ref),
												  &interval->lo, nw, false);
		}
	}
	return sum;
}

/* How many entries the intervals hold, by subtree counts. */
KERNEL_FN uint64_t
cpu_btree_count(const CpuBtreeView *view, const GpudsInterval *intervals, int64_t n)
{
	if (view->nwords == 1)
		return cpu_btree_count_any(view, intervals, n, 1);
	return cpu_btree_count_any(view, intervals, n, 2);
}

#endif /* CPU_BTREE_PROBE_H */
