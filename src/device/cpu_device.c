/*-------------------------------------------------------------------------
 *
 * cpu_device.c
 *	  The CPU device: trees in the shared arena or in a private one.
 *
 * The private arena is address space of gpuds.temp_memory, taken when the first
 * tree is loaded.  The chunks of a tree that is dropped are given back to the
 * system, and with the last tree all of it is.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include <sys/mman.h>
#include <unistd.h>

#include "miscadmin.h"
#include "storage/shmem.h"

#include "device/cpu_dispatch.h"
#include "device/device_ops.h"
#include "kernels/core/pins.h"
#include "structure.h"

/* Entries handed to a build at a time. */
#define LOAD_ENTRIES 4096

/* Operations applied at a time: bounds the nodes that exist twice. */
#define APPLY_OPS (128 * 1024)

/* Entries packed at a time; fewer where memory is short, but not less than the second number. */
#define PACK_ENTRIES 4096
#define LEAST_PACK_ENTRIES 64

/* Entries counted while a version is pinned, about, and room for those that are handed back. */
#define COUNT_ENTRIES (64 * 1024)
#define COUNT_OTHERS 2048

/* Structures count entries in 32 bits. */
#define MAX_ENTRIES UINT32_MAX

/* A tree may hold so much that it does not use. */
#define SLACK_BYTES ((size_t) 64 * 1024)

static Arena *shared_arena = NULL;
static PinSlot *shared_pins = NULL;

static Arena *private_arena = NULL;
static void *private_map = NULL; /* the mapping that it lies in */
static size_t private_map_bytes;
static int private_loads = 0; /* loads under way: they hold on to the arena */
static PinSlot private_pin;

static size_t
arena_bytes(void)
{
	return (size_t) gpuds_host_memory_mb * 1024 * 1024;
}

static size_t
private_bytes(void)
{
	return (size_t) gpuds_temp_memory_mb * 1024 * 1024;
}

/* Bytes of shared memory that the shared arena and the pins of its trees need. */
Size
gpuds_arena_shmem_size(void)
{
	Size size = mul_size(MaxBackends, sizeof(PinSlot));

	/* Room to align the arena and the pins to their natural boundaries. */
	return add_size(add_size(size, arena_bytes()), ARENA_CHUNK_BYTES + sizeof(PinSlot));
}

/* Creates or finds the shared arena.  The caller holds AddinShmemInitLock. */
void
gpuds_arena_shmem_init(void)
{
	bool found;
	char *memory = ShmemInitStruct("gpuds device", gpuds_arena_shmem_size(), &found);

	shared_arena = (Arena *) TYPEALIGN(ARENA_CHUNK_BYTES, memory);
	shared_pins = (PinSlot *) ((char *) shared_arena + arena_bytes());
	if (!found)
	{
		arena_init(shared_arena, arena_bytes());
		memset(shared_pins, 0, MaxBackends * sizeof(PinSlot));
	}
}

/*
 * The private arena, with the size that is set if it is mapped now.  Mapping it
 * may fail; the caller falls back to the journal then.
 */
static Arena *
get_private_arena(void)
{
	if (private_arena == NULL)
	{
		size_t bytes = private_bytes() + ARENA_CHUNK_BYTES;
		void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
							-1, 0);

		if (memory == MAP_FAILED)
			return NULL;
		private_map = memory;
		private_map_bytes = bytes;
		private_arena = (Arena *) TYPEALIGN(ARENA_CHUNK_BYTES, memory);
		arena_init(private_arena, private_bytes());
	}
	return private_arena;
}

/* Gives the private arena back to the system if no tree has memory of it. */
static void
unmap_if_unused(void)
{
	if (private_arena == NULL || private_loads > 0 || arena_used(private_arena) > 0)
		return;
	munmap(private_map, private_map_bytes);
	private_map = NULL;
	private_arena = NULL;
}

/*
 * Gives the pages of a private tree's chunks back to the system; what is in them is
 * lost, and they can be used again.
 */
static void
give_pages_back(ArenaSpace *space)
{
	size_t page = sysconf(_SC_PAGESIZE);
	uint32 at = space->chunks;
	uint32 first;
	uint32 n;

	while ((n = arena_space_stretch(private_arena, &at, &first)) > 0)
	{
		uintptr_t from = (uintptr_t) private_arena + (size_t) first * ARENA_CHUNK_BYTES;
		uintptr_t end = from + (size_t) n * ARENA_CHUNK_BYTES;

		from = TYPEALIGN(page, from);
		end = TYPEALIGN_DOWN(page, end);
		if (from < end)
			(void) madvise((void *) from, end - from, MADV_DONTNEED);
	}
}

static inline Arena *
tree_arena(const GpudsDeviceTree *tree)
{
	return tree->kind == GPUDS_ON_CPU ? shared_arena : get_private_arena();
}

static inline PinSlot *
my_pin(const GpudsDeviceTree *tree)
{
	return tree->kind == GPUDS_ON_CPU ? &shared_pins[GpudsMyBackendIndex()] : &private_pin;
}

static uint64
oldest_pin(const GpudsDeviceTree *tree, uint64 owner)
{
	return tree->kind == GPUDS_ON_CPU ? pin_oldest(shared_pins, MaxBackends, owner)
									  : pin_oldest(&private_pin, 1, owner);
}

static size_t
shared_memory_used(int card)
{
	return arena_used(shared_arena);
}

static size_t
shared_memory_size(int card)
{
	return arena_size(shared_arena);
}

static size_t
private_memory_used(int card)
{
	return private_arena ? arena_used(private_arena) : 0;
}

static size_t
private_memory_size(int card)
{
	Arena imagined;

	if (private_arena)
		return arena_size(private_arena);
	arena_init(&imagined, private_bytes());
	return arena_size(&imagined);
}

/* Every session may use a CPU device, and falls back to it. */
static bool
cpu_chosen(bool by_name)
{
	return !by_name || gpuds_device == GPUDS_CHOICE_CPU;
}

/* Its structures are those of this library. */
static bool
cpu_has_structure(int structure)
{
	return true;
}

static bool
cpu_has_ranks(int structure)
{
	return gpuds_structure(structure)->cpu.rank != NULL;
}

static bool
cpu_usable(GpudsDeviceTree *tree)
{
	return true;
}

static size_t
cpu_bytes(GpudsDeviceTree *tree)
{
	return arena_space_bytes(&tree->cpu.common.space);
}

static uint64
cpu_entries(GpudsDeviceTree *tree)
{
	return __atomic_load_n(&tree->cpu.common.entries, __ATOMIC_RELAXED);
}

/* The CPU devices' part of gpuds_device_init: an empty tree, withdrawn, that number names among pins. */
void
gpuds_arena_init(GpudsDeviceTree *tree, uint64 number)
{
	tree->owner = number;
	arena_space_init(&tree->cpu.common.space);
	cpu_tree_withdraw(&tree->cpu.common);
}

/* The functions of the tree's structure. */
static inline const CpuStructure *
cpu_structure(const GpudsDeviceTree *tree)
{
	const GpudsStructure *structure = gpuds_structure(tree->structure);

	Assert(structure != NULL);
	return &structure->cpu;
}

static GpudsDeviceStatus
device_status(KernelStatus status)
{
	return status == KERNEL_OK ? GPUDS_DEVICE_OK : GPUDS_DEVICE_NO_MEMORY;
}

static GpudsDeviceStatus
cpu_load_begin(GpudsDeviceLoad *load, int nwords, int fill_percent, uint64 entries)
{
	GpudsDeviceTree *tree = load->tree;
	Arena *arena = tree_arena(tree);
	KernelStatus status = KERNEL_NO_MEMORY;

	if (arena)
	{
		memset((char *) &tree->cpu + sizeof(CpuTree), 0, sizeof(GpudsCpuTree) - sizeof(CpuTree));
		status = cpu_structure(tree)->build_begin(arena, &tree->cpu.common, &load->build, nwords,
												  fill_percent);
	}
	if (status != KERNEL_OK)
	{
		load->tree = NULL;
		return GPUDS_DEVICE_NO_MEMORY;
	}
	if (tree->kind == GPUDS_ON_CPU_PRIVATE)
		private_loads++;
	load->entries = palloc(LOAD_ENTRIES * sizeof(GpudsEntry));
	load->capacity = LOAD_ENTRIES;
	return GPUDS_DEVICE_OK;
}

static GpudsDeviceStatus
cpu_load_add(GpudsDeviceLoad *load, int64 n)
{
	return device_status(cpu_structure(load->tree)->build_add(&load->build, load->entries, n));
}

static GpudsDeviceStatus
cpu_load_end(GpudsDeviceLoad *load)
{
	KernelStatus status = cpu_structure(load->tree)->build_finish(&load->build);

	if (status == KERNEL_OK)
	{
		if (load->tree->kind == GPUDS_ON_CPU_PRIVATE)
			private_loads--;
		pfree(load->entries);
		load->tree = NULL;
	}
	return device_status(status);
}

static void
cpu_load_cancel(GpudsDeviceLoad *load)
{
	bool private = load->tree->kind == GPUDS_ON_CPU_PRIVATE;

	if (private)
		give_pages_back(&load->tree->cpu.common.space);
	cpu_structure(load->tree)->build_cancel(&load->build);
	if (private)
	{
		private_loads--;
		unmap_if_unused();
	}
	if (load->entries)
		pfree(load->entries);
	load->tree = NULL;
}

static GpudsDeviceStatus
cpu_apply(GpudsDeviceTree *tree, const GpudsOp *ops, int64 n)
{
	Arena *arena = tree_arena(tree);
	const CpuStructure *structure = cpu_structure(tree);
	KernelStatus status;

	/* an empty tree does not keep the private arena mapped */
	if (arena == NULL)
		return GPUDS_DEVICE_NO_MEMORY;
	status = structure->apply(arena, &tree->cpu.common, ops, n);
	structure->reclaim(arena, &tree->cpu.common, oldest_pin(tree, tree->owner));
	return device_status(status);
}

static bool
cpu_pack(GpudsDeviceTree *tree, size_t *bytes)
{
	Arena *arena = tree_arena(tree);
	const CpuStructure *structure = cpu_structure(tree);
	KernelStatus status = KERNEL_NO_MEMORY;
	uint64 version;
	int64 units = 0;

	for (int64 most = PACK_ENTRIES; arena && status != KERNEL_OK && most >= LEAST_PACK_ENTRIES; most /= 2)
		status = structure->pack(arena, &tree->cpu.common, &tree->packed, most, &units);
	if (status != KERNEL_OK)
	{
		memset(&tree->packed, 0, sizeof(tree->packed));
		return false;
	}
	if (units > 0)
	{
		/* readers that pin what was replaced are never slow */
		version = __atomic_load_n(&tree->cpu.common.version, __ATOMIC_SEQ_CST);
		while (oldest_pin(tree, tree->owner) < version)
			pg_usleep(20);
		structure->reclaim(arena, &tree->cpu.common, oldest_pin(tree, tree->owner));
		*bytes = (size_t) units * ARENA_UNIT_BYTES;
	}
	return tree->packed.w0 != 0 || tree->packed.w1 != 0 || tree->packed.t != 0;
}

/* Is there a tree, and so a structure?  An applier may be publishing; the structure takes its own view. */
static inline bool
cpu_is_there(const GpudsDeviceTree *tree)
{
	return __atomic_load_n(&tree->cpu.common.head, __ATOMIC_RELAXED) != 0;
}

static int64
cpu_scan(GpudsDeviceTree *tree, pg_atomic_uint64 *guard, uint64 expected, GpudsScan *scan, bool forward,
		 GpudsEntry *out, int64 cap)
{
	PinSlot *pin = my_pin(tree);
	Arena *arena = tree_arena(tree);
	int64 n = -1;

	if (arena == NULL)
		return -1;
	pin_version(pin, tree->owner, &tree->cpu.common.version);
	if (pg_atomic_read_u64(guard) == expected)
	{
		/* pairs with that before the guard is set (mirror/catchup.c) */
		pg_read_barrier();
		if (cpu_is_there(tree))
			n = gpuds_cpu_kernels()->scan[tree->structure](arena, &tree->cpu.common, scan, forward, out, cap);
	}
	pin_release(pin);
	return n;
}

/* Searches for entries by ranks while a version is pinned. */
#define RANKED_ENTRIES 256

static bool
cpu_rank_piece(GpudsDeviceTree *tree, pg_atomic_uint64 *guard, uint64 expected,
			   const GpudsInterval *intervals, const uint64 *ranks, int64 n, GpudsRanked *ranked)
{
	PinSlot *pin = my_pin(tree);
	Arena *arena = tree_arena(tree);
	bool there = false;

	if (arena == NULL)
		return false;
	pin_version(pin, tree->owner, &tree->cpu.common.version);
	if (pg_atomic_read_u64(guard) == expected)
	{
		/* pairs with that before the guard is set (mirror/catchup.c) */
		pg_read_barrier();
		there = cpu_is_there(tree) &&
				cpu_structure(tree)->rank(arena, &tree->cpu.common, intervals, ranks, n, ranked);
	}
	pin_release(pin);
	return there;
}

static bool
cpu_rank(GpudsDeviceTree *tree, pg_atomic_uint64 *guard, uint64 expected, const GpudsInterval *intervals,
		 const uint64 *ranks, int64 n, GpudsRanked *ranked)
{
	bool there = true;

	for (int64 i = 0; there && i < n; i += RANKED_ENTRIES)
		there = cpu_rank_piece(tree, guard, expected, intervals + i, ranks + i, Min(n - i, RANKED_ENTRIES),
							   ranked + i);
	return there;
}

static GpudsCountStatus
cpu_count(GpudsDeviceTree *tree, pg_atomic_uint64 *guard, uint64 expected, GpudsScan *scan,
		  const GpudsCountSpec *spec, GpudsCount *count)
{
	static GpudsEntry others[COUNT_OTHERS];
	static uint64 rows;
	CpuCount counting = { .map = spec->map,
						  .map_bytes = spec->map_bytes,
						  .rows = spec->rows,
						  .full = spec->full,
						  .others = others,
						  .others_size = COUNT_OTHERS };
	PinSlot *pin = my_pin(tree);
	Arena *arena = tree_arena(tree);
	bool there = false;

	Assert(spec->partial && spec->nagg == 0 && !spec->each);
	if (arena == NULL)
		return GPUDS_COUNT_WITHDRAWN;
	pin_version(pin, tree->owner, &tree->cpu.common.version);
	if (pg_atomic_read_u64(guard) == expected)
	{
		/* pairs with that before the guard is set (mirror/catchup.c) */
		pg_read_barrier();
		there = cpu_is_there(tree) &&
				gpuds_cpu_kernels()->count[tree->structure](arena, &tree->cpu.common, scan, COUNT_ENTRIES,
															&counting);
	}
	pin_release(pin);
	if (!there)
		return GPUDS_COUNT_WITHDRAWN;
	rows = counting.counted;
	count->counted = counting.counted;
	count->entries = others;
	count->n = counting.nothers;
	count->results = &rows;
	count->nresults = 1;
	return GPUDS_COUNT_OK;
}

/* A tree that was never loaded has no structure, and no memory. */
static void
release(Arena *arena, GpudsDeviceTree *tree)
{
	if (tree->cpu.common.space.nchunks > 0)
		cpu_structure(tree)->release(arena, &tree->cpu.common);
}

static bool
cpu_drop(GpudsDeviceTree *tree)
{
	uint64 version;

	cpu_tree_withdraw(&tree->cpu.common);
	version = __atomic_load_n(&tree->cpu.common.version, __ATOMIC_SEQ_CST);
	while (oldest_pin(tree, tree->owner) < version)
		pg_usleep(20);
	if (tree->kind == GPUDS_ON_CPU)
		release(shared_arena, tree);
	else if (private_arena)
	{
		give_pages_back(&tree->cpu.common.space);
		release(private_arena, tree);
		unmap_if_unused();
	}
	return true;
}

static GpudsDeviceVerdict
cpu_verify(GpudsDeviceTree *tree, char *why, size_t whylen)
{
	const Arena *arena = tree_arena(tree);

	/* no arena: an empty tree, and nothing to look at */
	if (arena == NULL || cpu_structure(tree)->verify(arena, &tree->cpu.common, why, whylen))
		return GPUDS_TREE_GOOD;
	return GPUDS_TREE_DAMAGED;
}

/* The two kinds differ in whose arena it is. */
#define CPU_DEVICE                                                                                        \
	.name = "cpu", .max_entries = MAX_ENTRIES, .apply_ops = APPLY_OPS, .slack_bytes = SLACK_BYTES,        \
	.chosen = cpu_chosen, .has_structure = cpu_has_structure, .usable = cpu_usable, .bytes = cpu_bytes,   \
	.entries = cpu_entries, .load_begin = cpu_load_begin, .load_add = cpu_load_add,                       \
	.load_end = cpu_load_end, .load_cancel = cpu_load_cancel, .apply = cpu_apply, .pack = cpu_pack,       \
	.scan = cpu_scan, .has_ranks = cpu_has_ranks, .rank = cpu_rank, .count = cpu_count, .drop = cpu_drop, \
	.verify = cpu_verify

const GpudsDeviceOps gpuds_shared_cpu_device = {
	CPU_DEVICE,
	.memory_used = shared_memory_used,
	.memory_size = shared_memory_size,
};

const GpudsDeviceOps gpuds_private_cpu_device = {
	CPU_DEVICE,
	.private = true,
	.memory_used = private_memory_used,
	.memory_size = private_memory_size,
};
