/*-------------------------------------------------------------------------
 *
 * avl_join_gpu.h
 *	  Trees made of others, by one thread: a node between two trees, and two trees without one.
 *
 * Nodes of a published version are replaced by copies when they are to change; those that this version has
 * made belong to the thread that has the tree which they are in, and change where they are.  So a thread
 * touches nothing that a reader or another thread looks at.
 *
 * Joining is that of Blelloch, Ferizovic and Sun: it goes down the higher tree to where both are of a height,
 * and balances on the way back.  It visits as many nodes as the heights differ by.
 *
 *-------------------------------------------------------------------------
 */
#ifndef AVL_JOIN_GPU_H
#define AVL_JOIN_GPU_H

#include "kernels/avl/avl_build_gpu.h"

/* What a thread makes nodes with.  Nodes and places are numbered by the batch (avl_change_gpu.h). */
struct GpuAvlMaker
{
	unsigned char *base;
	uint64_t version;    /* that is made */
	const GpuRef *free;  /* the node that is taken first; the others are before it */
	uint32_t nfree;      /* nodes that may be taken */
	GpuRef *retired;     /* the place for the first one that is retired */
	uint32_t first_free; /* number of the first node that nobody in particular takes ... */
	uint32_t first_retired;
	GpuAvlTotals *totals;
	bool failed; /* there was no node to take; nothing that was returned is of use */

	GPU_FN GpuAvlNode *at(GpuRef ref) const
	{
		return gpu_avl_at(base, ref);
	}

	GPU_FN uint32_t height(GpuRef ref) const
	{
		return gpu_avl_height(base, ref);
	}

	/* Node number i. */
	GPU_FN GpuRef node(uint64_t i) const
	{
		return free[-(int64_t) i];
	}

	/* The next one; 0: there is none. */
	GPU_FN GpuRef take()
	{
		uint64_t i = (uint64_t) first_free + gpu_atomic_add(&totals->spare, 1);

		if (i < nfree)
			return node(i);
		failed = true;
		return 0;
	}

	GPU_FN void retire(GpuRef ref) const
	{
		retired[first_retired + gpu_atomic_add(&totals->retired, 1)] = ref;
	}

	/* A node that may be changed in the place of one that may not; 0: failed. */
	GPU_FN GpuRef own(GpuRef ref)
	{
		const GpuAvlNode *node = at(ref);
		GpuRef copy;

		if (node->version == version)
			return ref;
		copy = take();
		if (copy == 0)
			return 0;
		*at(copy) = *node;
		at(copy)->version = version;
		retire(ref);
		return copy;
	}

	/* What an own node has of its children. */
	GPU_FN void update(GpuRef ref) const
	{
		GpuAvlNode *node = at(ref);
		uint32_t left = height(node->child[GPU_AVL_LEFT]);
		uint32_t right = height(node->child[GPU_AVL_RIGHT]);

		node->height = 1 + (left > right ? left : right);
		node->before = gpu_avl_n(base, node->child[GPU_AVL_LEFT]);
		node->n = node->before + 1 + gpu_avl_n(base, node->child[GPU_AVL_RIGHT]);
	}

	/* The child of an own node on a side, also own; 0: failed. */
	GPU_FN GpuRef own_child(GpuRef ref, int side)
	{
		return at(ref)->child[side] = own(at(ref)->child[side]);
	}

	/* The child of x on a side takes its place.  Both are own. */
	GPU_FN GpuRef rotate(GpuRef x, int side) const
	{
		GpuRef up = at(x)->child[side];

		at(x)->child[side] = at(up)->child[1 - side];
		update(x);
		at(up)->child[1 - side] = x;
		update(up);
		return up;
	}

	/* Balances an own node, the heights of whose children differ by two at most; 0: failed. */
	GPU_FN GpuRef balance(GpuRef x)
	{
		const uint32_t left = height(at(x)->child[GPU_AVL_LEFT]);
		const uint32_t right = height(at(x)->child[GPU_AVL_RIGHT]);
		const int side = left > right ? GPU_AVL_LEFT : GPU_AVL_RIGHT;
		GpuRef child;

		if (left <= right + 1 && right <= left + 1)
		{
			update(x);
			return x;
		}
		child = own_child(x, side);
		if (child == 0)
			return 0;
		if (height(at(child)->child[1 - side]) > height(at(child)->child[side]))
		{
			if (own_child(child, 1 - side) == 0)
				return 0;
			at(x)->child[side] = rotate(child, 1 - side);
		}
		return rotate(x, side);
	}

	/* What was below the nodes of a way down on a side becomes below; the tree at its top, 0: failed. */
	GPU_FN GpuRef climb(const GpuRef *path, int depth, int side, GpuRef below)
	{
		while (depth > 0)
		{
			GpuRef x = path[--depth];

			at(x)->child[side] = below;
			below = balance(x);
			if (below == 0)
				return 0;
		}
		return below;
	}

	/* The tree of all of left, the entry of an own node, and all of right; 0: failed. */
	GPU_FN GpuRef join(GpuRef left, GpuRef middle, GpuRef right)
	{
		const int side = height(left) >= height(right) ? GPU_AVL_RIGHT : GPU_AVL_LEFT;
		const GpuRef low = side == GPU_AVL_RIGHT ? right : left;
		GpuRef high = side == GPU_AVL_RIGHT ? left : right;
		GpuRef path[GPU_AVL_LEVELS];
		int depth = 0;

		while (height(high) > height(low) + 1)
		{
			high = own(high);
			if (high == 0)
				return 0;
			path[depth++] = high;
			high = at(high)->child[side];
		}
		at(middle)->child[1 - side] = high;
		at(middle)->child[side] = low;
		update(middle);
		return climb(path, depth, side, middle);
	}

	/* A tree without its last entry, which *last has; 0: there is none, or it failed. */
	GPU_FN GpuRef remove_last(GpuRef ref, GpuRef *last)
	{
		GpuRef path[GPU_AVL_LEVELS];
		int depth = 0;

		while (at(ref)->child[GPU_AVL_RIGHT] != 0)
		{
			ref = own(ref);
			if (ref == 0)
				return 0;
			path[depth++] = ref;
			ref = at(ref)->child[GPU_AVL_RIGHT];
		}
		*last = ref;
		return climb(path, depth, GPU_AVL_RIGHT, at(ref)->child[GPU_AVL_LEFT]);
	}

	/* The tree of all of left and all of right, with the help of an own node; 0: it is empty, or failed. */
	GPU_FN GpuRef join_without(GpuRef left, GpuRef spare, GpuRef right)
	{
		GpuRef last = 0;

		if (left == 0 || right == 0)
		{
			retire(spare);
			return left != 0 ? left : right;
		}
		left = remove_last(left, &last);
		if (failed)
			return 0;
		at(spare)->e = at(last)->e;
		retire(last);
		return join(left, spare, right);
	}
};

#endif /* AVL_JOIN_GPU_H */
