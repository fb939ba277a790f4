/*-------------------------------------------------------------------------
 *
 * avl_scan_cpu.h
 *	  Scans and counts of an AVL tree on a CPU, many intervals at a time.
 *
 * A scan finds where an interval begins and goes along the list (avl_search.h).  It is resumed by value: its
 * GpudsScan may be used with a newer version of the tree.
 *
 *-------------------------------------------------------------------------
 */
#ifndef AVL_SCAN_CPU_H
#define AVL_SCAN_CPU_H

#include "kernels/avl/avl_tree_cpu.h"

/* What is left of an interval of a scan. */
typedef struct AvlWalk
{
	GpudsInterval interval;
	uint32_t at; /* a node near where it begins, then the next node */
	bool empty;
} AvlWalk;

/* The next node of a walk, which has an entry of its interval; NULL: there is none. */
HOST_INLINE const AvlNode *
avl_walk_node(const AvlWalk *w, const GpudsView *view, const bool forward)
{
	const AvlNode *node = avl_at(view->base, w->at);

	if (w->empty || w->at == view->root || w->at == avl_bottom(view->root))
		return NULL;
	if (forward ? entry_less(&w->interval.hi, &node->e) : entry_less(&node->e, &w->interval.lo))
		return NULL;
	return node;
}

/* From the node of a walk to the next one. */
HOST_INLINE void
avl_walk_on(AvlWalk *w, const GpudsView *view, const AvlNode *node, const bool forward)
{
	uint32_t next;

	if (forward)
		w->at = avl_load(&node->succ);
	else
		w->at = avl_last(view->base, view->root, avl_load(&node->pred), &node->e, false, &next);
	__builtin_prefetch(avl_at(view->base, w->at));
}

/* Takes the walks through a scan's next intervals, most at most, to where they begin.  Returns how many. */
HOST_INLINE int
avl_walks_begin(const GpudsView *view, AvlWalk *walks, const GpudsScan *scan, int64_t most,
				const bool forward)
{
	const int64_t left = forward ? scan->n - scan->next : scan->next;
	const GpudsEntry *x[AVL_INTERLEAVED];
	uint32_t at[AVL_INTERLEAVED];
	int n = AVL_INTERLEAVED;

	n = left < n ? (int) left : n;
	n = most < n ? (int) most : n;
	for (int i = 0; i < n; i++)
	{
		walks[i].empty = !entry_scan_rest(scan, forward ? scan->next + i : scan->next - 1 - i, forward,
										  &walks[i].interval);
		x[i] = forward ? &walks[i].interval.lo : &walks[i].interval.hi;
	}
	avl_descend_all(view, x, at, n);
	for (int i = 0; i < n; i++)
	{
		uint32_t next;

		walks[i].at = avl_last(view->base, view->root, at[i], x[i], !forward, &next);
		if (forward)
			walks[i].at = next;
	}
	return n;
}

HOST_INLINE int64_t
avl_scan_any(const GpudsView *view, GpudsScan *scan, GpudsEntry *out, int64_t cap, const bool forward)
{
	AvlWalk walks[AVL_INTERLEAVED];
	int64_t done = 0;

	while (done < cap)
	{
		const int n = avl_walks_begin(view, walks, scan, cap - done, forward);

		if (n == 0)
			break;
		for (int i = 0; i < n; i++)
		{
			const AvlNode *node;

			while (done < cap && (node = avl_walk_node(&walks[i], view, forward)) != NULL)
			{
				if (!avl_is_removed(node))
					out[done++] = node->e;
				avl_walk_on(&walks[i], view, node, forward);
			}
			if (cpu_scan_is_full(scan, out, done, cap, forward))
				break;
		}
	}
	return done;
}

HOST_FN int64_t
avl_cpu_scan(const Arena *arena, const CpuTree *tree, GpudsScan *scan, bool forward, GpudsEntry *out,
			 int64_t cap)
{
	GpudsView view;

	if (!cpu_tree_view(arena, tree, &view))
		return -1;
	return forward ? avl_scan_any(&view, scan, out, cap, true) : avl_scan_any(&view, scan, out, cap, false);
}

/* Counts an entry.  False: it is to be handed back, and there is no room for it. */
HOST_INLINE bool
avl_count_entry(const GpudsEntry *e, CpuCount *count)
{
	PageRow row = count->full ? PAGE_ROW_SEEN : cpu_count_row(count, e->t);

	count->counted += row == PAGE_ROW_SEEN;
	if (!page_row_goes_back(row))
		return true;
	if (count->nothers == count->others_size)
		return false;
	count->others[count->nothers++] = *e;
	return true;
}

/* Counts the rest of an interval, *left entries at most.  False: not all of it. */
HOST_INLINE bool
avl_count_interval(AvlWalk *w, const GpudsView *view, GpudsScan *scan, int64_t *left, CpuCount *count)
{
	const AvlNode *node;

	for (; (node = avl_walk_node(w, view, true)) != NULL; avl_walk_on(w, view, node, true))
	{
		if (avl_is_removed(node))
			continue;
		if (*left <= 0 || !avl_count_entry(&node->e, count))
			return false;
		--*left;
		scan->inside = true;
		scan->at = node->e;
	}
	return true;
}

HOST_FN bool
avl_cpu_count(const Arena *arena, const CpuTree *tree, GpudsScan *scan, int64_t most, CpuCount *count)
{
	AvlWalk walks[AVL_INTERLEAVED];
	GpudsView view;
	int64_t left = most;

	if (!cpu_tree_view(arena, tree, &view))
		return false;
	while (scan->next < scan->n && left > 0)
	{
		const int n = avl_walks_begin(&view, walks, scan, INT64_MAX, true);

		for (int i = 0; i < n && left > 0; i++)
		{
			if (!avl_count_interval(&walks[i], &view, scan, &left, count))
				return true;
			scan->inside = false;
			scan->next++;
			left--;
		}
	}
	return true;
}

#endif /* AVL_SCAN_CPU_H */
