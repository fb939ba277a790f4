/*-------------------------------------------------------------------------
 *
 * gpu_skiplist.cu
 *	  Skip lists in device memory, against a sorted array: what gpu_changes.h has, memory that batches have
 *	  reserved, and damage that verify finds.
 *	  Runs on a GPU, or compiled with GPU_EMULATED on the CPU.
 *
 *	  usage: gpu_skiplist [small | rounds [seed]]
 *
 *-------------------------------------------------------------------------
 */
#include "common.h"
#define STRUCTURES_ON_GPU
#include "kernels/structures.h"

typedef SkiplistOnGpu Tested;
#define TESTED GPUDS_STRUCTURE_SKIPLIST
#define TESTED_SMALL GPU_SKIPLIST_SMALL
#define TESTED_LISTS 3
#include "gpu_changes.h"

/* What batches have reserved is given back, but not after each of them: so often that building anew pays. */
static void
test_spare(int nwords)
{
	static GpudsOp ops[LARGE];
	SkiplistOnGpu list(GPUDS_STRUCTURE_SKIPLIST);
	const int64_t entries = 3 * LARGE;
	const int64_t n = entries / 10;
	const int turns = 12;
	int compacted = 0;
	Model m;

	load_neighbours(&list, &m, entries, nwords);
	for (int turn = 0; turn < turns; turn++)
	{
		/* behind all others, which reserves most, and away again */
		for (int64_t i = 0; i < n; i++)
		{
			ops[i].e = compact_entry(entries + i, nwords);
			ops[i].order = (uint64_t) i << 1 | (turn & 1);
		}
		list.reclaim(&change, UINT64_MAX);
		change_both(&list, &m, ops, n);
		compacted += list.compact(&change);
	}
	/* every second turn reserves enough, but it takes three until a quarter have come or gone */
	CHECK(compacted >= turns / 4 && compacted <= turns / 3);
	list.reclaim(&change, UINT64_MAX);
	verify(&list);
	CHECK((int64_t) list.tree.entries.load() == m.n);
	free(m.e);
	drop(&list);
}

/* Flips bits of a word of a chunk; verify must find that. */
static void
damage(SkiplistOnGpu *list, GpuRef ref, int word, uint64_t bits)
{
	damage_word(list, gpu_skiplist_chunk(pool.base, ref) + word, bits);
}

static void
test_damage(int nwords)
{
	SkiplistOnGpu list(GPUDS_STRUCTURE_SKIPLIST);
	uint64_t root[48];
	uint64_t pair;
	GpuRef child;
	Model m;

	model_fill(&m, most / 2, KEYS_RANDOM, nwords, 2 * most);
	CHECK(load(&list, &m, nwords, 80) == GPU_OK);
	CHECK(list.tree.levels > 2);
	gpu_copy_bus(&change.stream, root, gpu_skiplist_chunk(pool.base, list.tree.top), sizeof(root));
	CHECK(gpu_finish(&change.stream));
	child = list.tree.space.nodes[GPU_SKIPLIST_CHUNKS].chunks[0] * GPU_CHUNK_UNITS;
	pair = *list.version() << 1;
	for (GpuRef ref : { list.tree.top, child })
	{
		const bool index = ref == list.tree.top;

		damage(&list, ref, 0, 0x10);                           /* a slot twice */
		damage(&list, ref, 0, UINT64_C(1) << 59);              /* a slot that is said to be used */
		damage(&list, ref, 1, pair);                           /* newer than the list */
		damage(&list, ref, 3, pair);                           /* likewise, the other pair */
		damage(&list, ref, GPU_SKIPLIST_W0 + 1, ~UINT64_C(0)); /* an entry out of order */
		damage(&list, ref, index ? 22 : 28, 1);                /* notes */
		damage(&list, ref, index ? 22 : 28, UINT64_C(1) << 32);
	}
	damage(&list, list.tree.top, GPU_SKIPLIST_REFS, 2); /* not a chunk's place */
	damage(&list, list.tree.top, GPU_SKIPLIST_REFS,
		   root[GPU_SKIPLIST_REFS] ^
			   (root[GPU_SKIPLIST_REFS] >> 32 | root[GPU_SKIPLIST_REFS] << 32)); /* exchanged */
	damage(&list, list.tree.top, GPU_SKIPLIST_REFS,
		   (root[GPU_SKIPLIST_REFS] ^ root[GPU_SKIPLIST_REFS] >> 32) & UINT32_MAX); /* twice */
	list.tree.entries++;
	CHECK(list.verify(&change, (char *) staging, 200) == GPU_DAMAGED);
	list.tree.entries--;
	list.tree.level_n[1]++;
	CHECK(list.verify(&change, (char *) staging, 200) == GPU_DAMAGED);
	list.tree.level_n[1]--;
	list.tree.space.nodes[0].nfree--;
	CHECK(list.verify(&change, (char *) staging, 200) == GPU_DAMAGED);
	list.tree.space.nodes[0].nfree++;
	check_tree(&list, &m, KEYS_RANDOM);
	free(m.e);
	drop(&list);
}

static void
test_own(int nwords, bool small)
{
	test_damage(nwords);
	if (!small)
		test_spare(nwords);
}

int
main(int argc, char **argv)
{
	return test_changes(argc, argv, test_own);
}
