/*-------------------------------------------------------------------------
 *
 * gpu_avl.cu
 *	  AVL trees in device memory, against a sorted array: what gpu_changes.h has, batches that lead threads to
 *	  one node, batches that take more nodes than were reserved, and damage that verify finds.
 *	  Runs on a GPU, or compiled with GPU_EMULATED on the CPU.
 *
 *	  usage: gpu_avl [small | rounds [seed]]
 *
 *-------------------------------------------------------------------------
 */
#include "common.h"

/* The structure's, or so few that batches run out of them. */
static bool few_spare;
#define GPU_AVL_SPARE(operations, tasks) (few_spare ? 0 : 64 + (operations) / 2 + (tasks) / 8)

#define STRUCTURES_ON_GPU
#include "kernels/structures.h"

typedef AvlOnGpu Tested;
#define TESTED GPUDS_STRUCTURE_AVL
#define TESTED_SMALL GPU_AVL_SMALL
#define TESTED_LISTS 1
#include "gpu_changes.h"

/* Flips bits of a word of 32 bits of a node; verify must find that. */
static void
damage(AvlOnGpu *tree, GpuRef ref, size_t at_byte, uint32_t bits)
{
	damage_word(tree, (uint32_t *) ((unsigned char *) gpu_avl_at(pool.base, ref) + at_byte), bits);
}

static void
test_damage(int nwords)
{
	AvlOnGpu tree(GPUDS_STRUCTURE_AVL);
	GpuAvlNode root;
	GpuRef leaf;
	Model m;

	model_fill(&m, most / 2, KEYS_RANDOM, nwords, 2 * most);
	CHECK(load(&tree, &m, nwords, 80) == GPU_OK);
	gpu_copy_bus(&change.stream, &root, gpu_avl_at(pool.base, tree.tree.root), sizeof(root));
	CHECK(gpu_finish(&change.stream));
	leaf = tree.tree.space.nodes[0].chunks[0] * GPU_CHUNK_UNITS;
	for (GpuRef ref : { tree.tree.root, leaf })
	{
		damage(&tree, ref, offsetof(GpuAvlNode, e.w0) + 4, ~0u); /* an entry out of order */
		damage(&tree, ref, offsetof(GpuAvlNode, before), 1);
		damage(&tree, ref, offsetof(GpuAvlNode, n), 1);
		damage(&tree, ref, offsetof(GpuAvlNode, height), 1);
		damage(&tree, ref, offsetof(GpuAvlNode, version) + 4, 1);  /* newer than the tree */
		damage(&tree, ref, offsetof(GpuAvlNode, child), 1u << 31); /* not a node's place */
	}
	damage(&tree, tree.tree.root, offsetof(GpuAvlNode, child),
		   root.child[GPU_AVL_LEFT] ^ root.child[GPU_AVL_RIGHT]);                         /* twice */
	damage(&tree, tree.tree.root, offsetof(GpuAvlNode, child), root.child[GPU_AVL_LEFT]); /* none */
	tree.tree.entries++;
	CHECK(tree.verify(&change, (char *) staging, 200) == GPU_DAMAGED);
	tree.tree.entries--;
	tree.tree.space.nodes[0].nfree--;
	CHECK(tree.verify(&change, (char *) staging, 200) == GPU_DAMAGED);
	tree.tree.space.nodes[0].nfree++;
	check_tree(&tree, &m, KEYS_RANDOM);
	free(m.e);
	drop(&tree);
}

/* Deletes every stride-th entry and inserts n next to each one between, in one batch. */
static void
change_in_places(AvlOnGpu *tree, Model *m, GpudsOp *ops, int64_t stride, int64_t n)
{
	int64_t count = 0;

	for (int64_t i = 0; i < m->n && count + n < MOST / 2; i += stride)
	{
		ops[count].e = m->e[i];
		ops[count].order = (uint64_t) count << 1 | GPUDS_OP_DELETE;
		count++;
		for (int64_t k = 1; k <= n; k++, count++)
		{
			ops[count].e = m->e[(i + stride / 2) % m->n];
			ops[count].e.t += (uint64_t) k;
			ops[count].order = (uint64_t) count << 1;
		}
	}
	change_both(tree, m, ops, count);
	check_tree(tree, m, KEYS_DENSE);
}

/*
 * Ways of all threads meet at the root; trees of very different heights are joined, inner nodes go and the
 * last ones below take their places; few: with so few spare nodes that batches are done again.
 */
static void
test_places(int nwords, bool few)
{
	static GpudsOp ops[MOST];
	AvlOnGpu tree(GPUDS_STRUCTURE_AVL);
	Held held = {};
	Model m;

	load_neighbours(&tree, &m, 3 * most, nwords);
	hold(&held, &tree, &m);
	few_spare = few;
	for (int64_t n = 0; n < 400; n = 3 * n + 1)
	{
		for (int64_t stride = 1; stride < m.n; stride *= 7)
			change_in_places(&tree, &m, ops, stride, n);
		change_in_places(&tree, &m, ops, m.n / 2, n);
	}
	few_spare = false;
	check_view(&tree, &held.view, &held.model, KEYS_DENSE);
	free(held.model.e);
	free(m.e);
	drop(&tree);
}

/* Whole stretches go, so that what is left of a tree is joined with trees that are much higher. */
static void
test_stretches(int nwords)
{
	static GpudsOp ops[MOST];
	AvlOnGpu tree(GPUDS_STRUCTURE_AVL);
	Model m;

	load_neighbours(&tree, &m, 4 * most, nwords);
	for (int turn = 0; turn < 12 && m.n > 1; turn++)
	{
		const int64_t length = 1 + (int64_t) test_below((uint64_t) (m.n < most ? m.n : most));
		const int64_t from = (int64_t) test_below((uint64_t) (m.n - length + 1));

		for (int64_t i = 0; i < length; i++)
		{
			ops[i].e = m.e[from + i];
			ops[i].order = (uint64_t) i << 1 | GPUDS_OP_DELETE;
		}
		tree.reclaim(&change, UINT64_MAX);
		change_both(&tree, &m, ops, length);
		check_tree(&tree, &m, KEYS_DENSE);
	}
	free(m.e);
	drop(&tree);
}

static void
test_own(int nwords, bool small)
{
	test_damage(nwords);
	test_places(nwords, true);
	if (!small)
	{
		test_places(nwords, false);
		test_stretches(nwords);
	}
}

int
main(int argc, char **argv)
{
	return test_changes(argc, argv, test_own);
}
