/*-------------------------------------------------------------------------
 *
 * avl_change_gpu.h
 *	  Applying a batch of operations to a tree in device memory: what the threads do.
 *
 * The nodes on the ways to the operations that change something are replaced, all others are shared with the
 * versions before.  Each step is a function of one number; between steps all threads wait for each other.
 *
 *	  find		which operations change something, and between which nodes inserts are
 *	  gather	these operations, in order
 *	  share		how much of its way each has in common with the operation before it
 *	  plan		a task for each node on the ways; it is the first such operation's
 *	  attach	trees of new nodes, one for all inserts between two neighbours
 *	  rise		from where ways end to the root: each task joins what is on both sides
 *
 * Nobody waits within a step.  Where two ways meet, the thread that comes first is done, and the one that
 * comes last goes on for both.
 *
 *-------------------------------------------------------------------------
 */
#ifndef AVL_CHANGE_GPU_H
#define AVL_CHANGE_GPU_H

#include "kernels/avl/avl_join_gpu.h"

/* A gap is between two neighbours: the node below which an insert would hang << 1 | the side; 0: no node. */
#define GPU_AVL_NO_GAP UINT64_MAX

#define GPU_AVL_NO_TASK UINT32_MAX

/* A node that is replaced, or goes. */
struct GpuAvlTask
{
	GpuRef node;
	GpuRef child[2];   /* what will be on both sides */
	uint32_t above;    /* the task of the node's parent ... */
	uint32_t side;     /* ... and on which side of it */
	uint32_t gone;     /* the entry is deleted */
	uint32_t children; /* tasks below */
	uint32_t arrived;  /* of these, how many are done */
};

struct GpuAvlBatch
{
	unsigned char *base;
	GpuRef root;
	uint64_t version; /* that is made */
	const GpudsOp *ops;
	const uint32_t *number; /* of operations in order; NULL: they are */
	int64_t n;
	GpuAvlTotals *totals;
	uint64_t *effective; /* n + 1: 1, of inserts 1 << 32 | 1, else 0; then sums of those before */
	uint64_t *gap;       /* n */

	/* of effective operations, in order: */
	GpudsOp *op;
	uint64_t *op_gap;
	uint32_t *fresh;  /* inserts before it */
	uint64_t *first;  /* n + 1: tasks of its own; then sums of those before: its first one's number */
	uint32_t *shared; /* nodes of its way that are the tasks of operations before */
	uint32_t *end;    /* the task where its way ends */

	GpuAvlTask *task;
	const GpuRef *free; /* as in GpuAvlMaker */
	uint32_t nfree;
	GpuRef *retired;

	GPU_FN const GpuAvlNode *at(GpuRef ref) const
	{
		return gpu_avl_at(base, ref);
	}

	/* So many operations are effective; known when they are gathered. */
	GPU_FN uint32_t count() const
	{
		return (uint32_t) totals->effective;
	}

	GPU_FN const GpudsOp *sorted(int64_t i) const
	{
		return &ops[number ? number[i] : i];
	}

	/* Where x is, or would be: the last node of the way to it, << 1 | the side; true: it is there. */
	GPU_FN bool search(const GpudsEntry *x, uint64_t *at_gap) const
	{
		GpuRef ref = root;
		int side;

		*at_gap = 0;
		while (ref != 0)
		{
			if (!gpu_avl_side(at(ref), x, &side))
				return true;
			*at_gap = (uint64_t) ref << 1 | (uint64_t) side;
			ref = at(ref)->child[side];
		}
		return false;
	}

	/* i: 0 .. n */
	GPU_FN void find(int64_t i) const
	{
		effective[i] = 0;
		if (i == n)
			return;

		const GpudsOp *o = sorted(i);
		const bool deletes = (o->order & GPUDS_OP_DELETE) != 0;

		/* of several on an entry the first one counts */
		if ((i > 0 && entry_equal(&sorted(i - 1)->e, &o->e)) || search(&o->e, &gap[i]) != deletes)
			return;
		effective[i] = deletes ? 1 : UINT64_C(1) << 32 | 1;
		if (deletes)
			gap[i] = GPU_AVL_NO_GAP;
	}

	/* i: 0 .. n, and effective has become sums */
	GPU_FN void gather(int64_t i) const
	{
		uint32_t j = (uint32_t) effective[i];

		if (i == n)
			totals->effective = effective[n];
		else if ((uint32_t) effective[i + 1] != j)
		{
			op[j] = *sorted(i);
			op_gap[j] = gap[i];
			fresh[j] = (uint32_t) (effective[i] >> 32);
		}
	}

	/* j: 0 .. n */
	GPU_FN void share(int64_t j) const
	{
		GpuRef ref = root;
		bool common = j > 0;
		uint32_t depth = 0;
		int side;
		int before;

		first[j] = 0;
		if (j >= count())
			return;
		shared[j] = 0;
		while (ref != 0)
		{
			const GpuAvlNode *node = at(ref);

			depth++;
			shared[j] += common;
			if (!gpu_avl_side(node, &op[j].e, &side))
				break;
			common = common && gpu_avl_side(node, &op[j - 1].e, &before) && before == side;
			ref = node->child[side];
		}
		first[j] = depth - shared[j];
	}

	/* Clears tasks; j: effective operations.  The host may have done so. */
	GPU_FN void clear(int64_t j) const
	{
		for (uint64_t id = first[j]; id < first[j + 1]; id++)
			task[id].gone = task[id].children = task[id].arrived = 0;
	}

	/*
	 * The task of a node at this depth that is on the way to an operation.  low: the last node above that is
	 * before it.  All operations between low and the node after it come by, and the first has the task.
	 */
	GPU_FN uint32_t task_of(const GpuAvlNode *low, uint32_t depth) const
	{
		int64_t from = 0;
		int64_t to = low ? count() : 0;

		while (from < to)
		{
			int64_t middle = from + (to - from) / 2;

			if (entry_less(&low->e, &op[middle].e))
				to = middle;
			else
				from = middle + 1;
		}
		return (uint32_t) first[from] + depth - shared[from];
	}

	GPU_FN void make_task(uint32_t id, GpuRef ref, uint32_t above, int side) const
	{
		GpuAvlTask *t = &task[id];

		t->node = ref;
		for (int s = 0; s < 2; s++)
			t->child[s] = at(ref)->child[s];
		t->above = above;
		t->side = (uint32_t) side;
		if (above != GPU_AVL_NO_TASK)
			gpu_atomic_add(&task[above].children, 1);
	}

	/* j: effective operations */
	GPU_FN void plan(int64_t j) const
	{
		const GpuAvlNode *low = NULL;
		uint32_t id = GPU_AVL_NO_TASK;
		GpuRef ref = root;
		int side = 0;

		for (uint32_t depth = 0; ref != 0; depth++)
		{
			const GpuAvlNode *node = at(ref);

			if (depth >= shared[j])
			{
				uint32_t mine = (uint32_t) first[j] + depth - shared[j];

				make_task(mine, ref, id, side);
				id = mine;
			}
			else if (depth + 1 == shared[j])
				id = task_of(low, depth);
			if (!gpu_avl_side(node, &op[j].e, &side))
				break;
			low = side == GPU_AVL_RIGHT ? node : low;
			ref = node->child[side];
		}
		end[j] = id;
	}

	/* New nodes as gpu_avl_shape wants them: operation i, which is an insert as all between, has this one. */
	struct Fresh
	{
		const GpuRef *free;
		const uint32_t *fresh;

		GPU_FN GpuRef ref(uint64_t i) const
		{
			return free[-(int64_t) fresh[i]];
		}
	};

	/* The first of the operations that are in the same gap as insert j. */
	GPU_FN int64_t gap_begin(int64_t j) const
	{
		int64_t in = j;
		int64_t step = 1;
		int64_t from;

		for (; step <= in && op_gap[in - step] == op_gap[j]; step *= 2)
			in -= step;
		for (from = step <= in ? in - step + 1 : 0; from < in;)
		{
			int64_t middle = from + (in - from) / 2;

			if (op_gap[middle] == op_gap[j])
				in = middle;
			else
				from = middle + 1;
		}
		return in;
	}

	/* The last one, + 1. */
	GPU_FN int64_t gap_end(int64_t j) const
	{
		const int64_t all = count();
		int64_t in = j;
		int64_t step = 1;
		int64_t to;

		for (; in + step < all && op_gap[in + step] == op_gap[j]; step *= 2)
			in += step;
		for (to = in + step < all ? in + step : all; to - in > 1;)
		{
			int64_t middle = in + (to - in) / 2;

			if (op_gap[middle] == op_gap[j])
				in = middle;
			else
				to = middle;
		}
		return to;
	}

	/* j: effective operations */
	GPU_FN void attach(int64_t j) const
	{
		if (op_gap[j] == GPU_AVL_NO_GAP)
		{
			task[end[j]].gone = 1;
			return;
		}

		const Fresh nodes = { free, fresh };
		const int64_t from = gap_begin(j);
		const uint64_t length = (uint64_t) (gap_end(j) - from);
		const GpuRef top = nodes.ref(gpu_avl_middle((uint64_t) from, length));
		GpuAvlNode *node = gpu_avl_at(base, nodes.ref((uint64_t) j));

		node->e = op[j].e;
		gpu_avl_shape(node, (uint64_t) j, (uint64_t) from, length, version, nodes);
		if (nodes.ref((uint64_t) j) != top)
			return;
		if (root != 0)
			task[end[j]].child[op_gap[j] & 1] = top;
		else
			finish(top);
	}

	/* What the version consists of. */
	GPU_FN void finish(GpuRef top) const
	{
		totals->root = top;
		totals->height = gpu_avl_height(base, top);
	}

	GPU_FN GpuAvlMaker maker() const
	{
		const uint32_t inserts = (uint32_t) (totals->effective >> 32);
		const uint32_t tasks = (uint32_t) totals->tasks;

		return { base, version, free, nfree, retired, inserts + tasks, tasks, totals, false };
	}

	/* Does a task; a task's node that is replaced is retired under the task's number. */
	GPU_FN GpuRef do_task(GpuAvlMaker *make, uint32_t id) const
	{
		const GpuAvlTask *t = &task[id];
		const GpuRef middle = make->node((totals->effective >> 32) + id);

		retired[id] = t->node;
		make->at(middle)->version = version;
		if (t->gone)
			return make->join_without(t->child[GPU_AVL_LEFT], middle, t->child[GPU_AVL_RIGHT]);
		make->at(middle)->e = at(t->node)->e;
		return make->join(t->child[GPU_AVL_LEFT], middle, t->child[GPU_AVL_RIGHT]);
	}

	/* j: effective operations */
	GPU_FN void rise(int64_t j) const
	{
		uint32_t id = (uint32_t) first[j + 1] - 1;
		GpuAvlMaker make = maker();

		if (first[j] == first[j + 1] || task[id].children != 0)
			return;
		for (;;)
		{
			const GpuRef made = do_task(&make, id);
			const uint32_t side = task[id].side;

			if (make.failed)
				return;
			id = task[id].above;
			if (id == GPU_AVL_NO_TASK)
			{
				finish(made);
				return;
			}
			task[id].child[side] = made;
			if (!gpu_arrive(&task[id].arrived, task[id].children))
				return;
		}
	}
};

#endif /* AVL_CHANGE_GPU_H */
