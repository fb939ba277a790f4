/*-------------------------------------------------------------------------
 *
 * avl_probe_gpu.h
 *	  The AVL tree's probe.
 *
 * All entries of an interval are below the first node of the way down that has one of them.  Its reference
 * << 32 | the rank below it is the start of the interval's entries, so what follows never leaves that tree.
 *
 *-------------------------------------------------------------------------
 */
#ifndef AVL_PROBE_GPU_H
#define AVL_PROBE_GPU_H

#include "kernels/avl/avl_node_gpu.h"
#include "kernels/runtime/scan.h"

struct AvlProbe
{
	struct View
	{
		const unsigned char *base;
		GpuRef root;
	};

	/* The way from the top node of an interval to an entry's. */
	struct Position
	{
		GpuRef path[GPU_AVL_LEVELS];
		int depth; /* nodes of it */
	};

	static constexpr bool has_ranks = true;
	static constexpr bool by_tiles = false;

	static GPU_FN View open(const GpudsView &view)
	{
		View v = { view.base, view.height > 0 ? view.root : 0 };

		return v;
	}

	/* The top node of an interval; 0: it has no entries. */
	static GPU_FN GpuRef top(const View &view, const GpudsInterval &interval)
	{
		GpuRef ref = view.root;

		while (ref != 0)
		{
			const GpuAvlNode *node = gpu_avl_at(view.base, ref);

			if (entry_less(&node->e, &interval.lo))
				ref = node->child[GPU_AVL_RIGHT];
			else if (entry_less(&interval.hi, &node->e))
				ref = node->child[GPU_AVL_LEFT];
			else
				break;
		}
		return ref;
	}

	/* Entries below a node that are not before lo. */
	static GPU_FN uint64_t count_from(const View &view, GpuRef ref, const GpudsEntry &lo)
	{
		uint64_t count = 0;

		while (ref != 0)
		{
			const GpuAvlNode *node = gpu_avl_at(view.base, ref);
			bool before = entry_less(&node->e, &lo);

			count += before ? 0 : node->n - node->before;
			ref = node->child[before ? GPU_AVL_RIGHT : GPU_AVL_LEFT];
		}
		return count;
	}

	/* Entries below a node that are not behind hi. */
	static GPU_FN uint64_t count_to(const View &view, GpuRef ref, const GpudsEntry &hi)
	{
		uint64_t count = 0;

		while (ref != 0)
		{
			const GpuAvlNode *node = gpu_avl_at(view.base, ref);
			bool behind = entry_less(&hi, &node->e);

			count += behind ? 0 : (uint64_t) node->before + 1;
			ref = node->child[behind ? GPU_AVL_LEFT : GPU_AVL_RIGHT];
		}
		return count;
	}

	static GPU_FN uint64_t locate(const View &view, const GpudsInterval *interval, bool forward,
								  GpuStart *start)
	{
		const GpuRef ref = top(view, *interval);
		const GpuAvlNode *node;
		uint64_t left;
		uint64_t right;

		*start = 0;
		if (ref == 0)
			return 0;
		node = gpu_avl_at(view.base, ref);
		left = count_from(view, node->child[GPU_AVL_LEFT], interval->lo);
		right = count_to(view, node->child[GPU_AVL_RIGHT], interval->hi);
		*start = (uint64_t) ref << 32 | (forward ? node->before - left : node->before + right);
		return left + 1 + right;
	}

	static GPU_FN void position(const View &view, GpuStart start, uint64_t k, bool forward, Position *p)
	{
		GpuRef ref = (GpuRef) (start >> 32);
		uint32_t rank = (uint32_t) start + (forward ? (uint32_t) k : -(uint32_t) k);

		p->depth = 0;
		do
			p->path[p->depth++] = ref;
		while (gpu_avl_select(gpu_avl_at(view.base, ref), &rank, &ref));
	}

	static GPU_FN const GpuAvlNode *node_at(const View &view, const Position &p)
	{
		return gpu_avl_at(view.base, p.path[p.depth - 1]);
	}

	/* The next entry is at the near end of what is below on its side, or the first above on that side. */
	static GPU_FN void step(const View &view, Position *p, bool forward)
	{
		const int side = forward ? GPU_AVL_RIGHT : GPU_AVL_LEFT;
		GpuRef ref = node_at(view, *p)->child[side];

		if (ref != 0)
		{
			for (; ref != 0; ref = gpu_avl_at(view.base, ref)->child[1 - side])
				p->path[p->depth++] = ref;
			return;
		}
		do
			ref = p->path[--p->depth];
		while (p->depth > 1 && node_at(view, *p)->child[side] == ref);
	}

	/* A node has one. */
	static GPU_FN int together(const View &, const Position &)
	{
		return 1;
	}

	static GPU_FN void next(Position *)
	{
	}

	static GPU_FN GpudsEntry entry(const View &view, const Position &p)
	{
		return node_at(view, p)->e;
	}

	static GPU_FN uint64_t tid(const View &view, const Position &p)
	{
		return node_at(view, p)->e.t & ENTRY_TID_MASK;
	}

	static GPU_FN int tids(const View &view, Position *p, int64_t n, uint64_t *tids)
	{
		for (int i = 0; i < GPU_TIDS; i++)
			tids[i] = GPU_NO_TID;
		tids[0] = tid(view, *p);
		if (n > 1)
			step(view, p, true);
		return 1;
	}
};

#endif /* AVL_PROBE_GPU_H */
