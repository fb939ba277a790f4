/*-------------------------------------------------------------------------
 *
 * cuda_layout.c
 *	  On which cards the parts of a tree are, and where one ends.
 *
 * The first part of each tree is in the tree itself, the others are here, if there are several cards.
 *
 * Who asks copies how the tree is divided first, and looks once more when the answer has come: if a load has
 * begun since, the answer may be of a tree that is divided in another way (tree->layout).
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"
#include "storage/shmem.h"

#include "device/cuda_requests.h"

/* Of each tree, all parts but the first. */
static GpudsCudaPart *others = NULL;

static inline int
others_of_a_tree(void)
{
	return Max(gpuds_cards, 1) - 1;
}

Size
gpuds_cuda_parts_shmem_size(void)
{
	return mul_size(mul_size(gpuds_max_mirrors, others_of_a_tree()), sizeof(GpudsCudaPart));
}

/* Creates or finds the parts, if there are several cards.  The caller holds AddinShmemInitLock. */
void
gpuds_cuda_parts_shmem_init(void)
{
	bool found;

	if (gpuds_cuda_parts_shmem_size() > 0)
		others = ShmemInitStruct("gpuds parts", gpuds_cuda_parts_shmem_size(), &found);
}

/* A part of a tree, which is below gpuds_cards. */
GpudsCudaPart *
gpuds_cuda_part(GpudsDeviceTree *tree, int part)
{
	return part == 0 ? &tree->cuda.first : &others[(Size) tree->cuda.number * others_of_a_tree() + part - 1];
}

/* The card of a part. */
int
gpuds_cuda_part_card(const GpudsDeviceTree *tree, int part)
{
	uint32 cards = gpuds_device_places(tree);

	while (part-- > 0)
		cards &= cards - 1;
	return cards == 0 ? 0 : pg_rightmost_one_pos32(cards);
}

/* Copies how a tree is divided.  False: a load is under way, or has failed. */
bool
gpuds_cuda_read_layout(GpudsDeviceTree *tree, GpudsCudaLayout *layout)
{
	layout->version = pg_atomic_read_u64(&tree->cuda.layout);
	/* pairs with that of gpuds_cuda_end_layout */
	pg_read_barrier();
	layout->n = gpuds_device_parts(tree);
	for (int part = 0; part < layout->n && layout->n > 1; part++)
		layout->last[part] = gpuds_cuda_part(tree, part)->last;
	return layout->version % 2 == 0;
}

/* A load begins: nobody may use what was read of the tree's layout before, or reads from now on. */
void
gpuds_cuda_begin_layout(GpudsDeviceTree *tree)
{
	const uint64 before = pg_atomic_read_u64(&tree->cuda.layout);

	pg_atomic_write_u64(&tree->cuda.layout, before + 1 + before % 2);
	/* pairs with those of gpuds_cuda_is_layout */
	pg_write_barrier();
	for (int part = 0; part < gpuds_device_parts(tree); part++)
		gpuds_cuda_part(tree, part)->last = (GpudsEntry){ UINT64_MAX, UINT64_MAX, UINT64_MAX };
}

void
gpuds_cuda_end_layout(GpudsDeviceTree *tree)
{
	pg_write_barrier();
	pg_atomic_write_u64(&tree->cuda.layout, pg_atomic_read_u64(&tree->cuda.layout) + 1);
}
