/*-------------------------------------------------------------------------
 *
 * arena.c
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
#include "device/internal.h"

/* Entries handed to a build at a time. */
#define LOAD_ROOM 4096

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
	return (size_t) gpuds_host_memory * 1024 * 1024;
}

static size_t
private_bytes(void)
{
	return (size_t) gpuds_temp_memory * 1024 * 1024;
}

Size
gpuds_arena_shmem_size(void)
{
	Size size = mul_size(MaxBackends, sizeof(PinSlot));

	/* Room to align the arena and the pins to their natural boundaries. */
	return add_size(add_size(size, arena_bytes()), ARENA_CHUNK_BYTES + sizeof(PinSlot));
}

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

size_t
gpuds_arena_memory_used(GpudsDeviceKind kind)
{
	if (kind == GPUDS_ON_CPU)
		return arena_used(shared_arena);
	return private_arena ? arena_used(private_arena) : 0;
}

size_t
gpuds_arena_memory_size(GpudsDeviceKind kind)
{
	Arena *arena = kind == GPUDS_ON_CPU ? shared_arena : private_arena;
	Arena imagined;

	if (arena == NULL)
	{
		arena = &imagined;
		arena_init(arena, private_bytes());
	}
	return arena_size(arena);
}

void
gpuds_arena_init(GpudsDeviceTree *tree, uint64 number)
{
	tree->owner = number;
	cpu_btree_init(&tree->tree, 1);
	cpu_btree_withdraw(&tree->tree);
}

static GpudsDeviceStatus
device_status(KernelStatus status)
{
	return status == KERNEL_OK ? GPUDS_DEVICE_OK : GPUDS_DEVICE_NO_MEMORY;
}

GpudsDeviceStatus
gpuds_arena_load_begin(GpudsDeviceLoad *load, int nwords, int fill_percent)
{
	GpudsDeviceTree *tree = load->tree;
	Arena *arena = tree_arena(tree);
	KernelStatus status = KERNEL_NO_MEMORY;

	if (arena)
	{
		/* Not cpu_btree_init: that would show readers an empty tree. */
		tree->tree.nwords = nwords;
		status = cpu_btree_build_begin(arena, &tree->tree, &load->build, fill_percent);
	}
	if (status != KERNEL_OK)
	{
		load->tree = NULL;
		return GPUDS_DEVICE_NO_MEMORY;
	}
	if (tree->kind == GPUDS_ON_CPU_PRIVATE)
		private_loads++;
	load->room = palloc(LOAD_ROOM * sizeof(GpudsEntry));
	load->room_size = LOAD_ROOM;
	return GPUDS_DEVICE_OK;
}

GpudsDeviceStatus
gpuds_arena_load_add(GpudsDeviceLoad *load, int64 n)
{
	return device_status(cpu_btree_build_add(&load->build, load->room, n));
}

GpudsDeviceStatus
gpuds_arena_load_end(GpudsDeviceLoad *load)
{
	KernelStatus status = cpu_btree_build_finish(&load->build);

	if (status == KERNEL_OK)
	{
		if (load->tree->kind == GPUDS_ON_CPU_PRIVATE)
			private_loads--;
		pfree(load->room);
		load->tree = NULL;
	}
	return device_status(status);
}

void
gpuds_arena_load_cancel(GpudsDeviceLoad *load)
{
	bool private = load->tree->kind == GPUDS_ON_CPU_PRIVATE;

	if (private)
		give_pages_back(&load->tree->tree.space);
	cpu_btree_build_cancel(&load->build);
	if (private)
	{
		private_loads--;
		unmap_if_unused();
	}
	if (load->room)
		pfree(load->room);
	load->tree = NULL;
}

GpudsDeviceStatus
gpuds_arena_apply(GpudsDeviceTree *tree, const GpudsOp *ops, int64 n)
{
	Arena *arena = tree_arena(tree);
	int64 inserted;
	int64 deleted;
	KernelStatus status;

	/* an empty tree does not keep the private arena mapped */
	if (arena == NULL)
		return GPUDS_DEVICE_NO_MEMORY;
	status = cpu_btree_apply(arena, &tree->tree, ops, n, &inserted, &deleted);
	cpu_btree_reclaim(arena, &tree->tree, oldest_pin(tree, tree->owner));
	return device_status(status);
}

int64
gpuds_arena_scan(GpudsDeviceTree *tree, pg_atomic_uint64 *serial, uint64 expected, GpudsScan *scan,
				 bool forward, GpudsEntry *out, int64 cap)
{
	PinSlot *pin = my_pin(tree);
	Arena *arena = tree_arena(tree);
	BtreeView view;
	int64 n = -1;

	if (arena == NULL)
		return -1;
	pin_version(pin, tree->owner, &tree->tree.version);
	if (pg_atomic_read_u64(serial) == expected)
	{
		pg_read_barrier();
		if (cpu_btree_view(arena, &tree->tree, &view))
			n = gpuds_cpu_kernels()->scan(&view, scan, forward, out, cap);
	}
	pin_release(pin);
	return n;
}

void
gpuds_arena_drop(GpudsDeviceTree *tree)
{
	uint64 version;

	cpu_btree_withdraw(&tree->tree);
	version = __atomic_load_n(&tree->tree.version, __ATOMIC_SEQ_CST);
	while (oldest_pin(tree, tree->owner) < version)
		pg_usleep(20);
	if (tree->kind == GPUDS_ON_CPU)
		cpu_btree_release(shared_arena, &tree->tree);
	else if (private_arena)
	{
		give_pages_back(&tree->tree.space);
		cpu_btree_release(private_arena, &tree->tree);
		unmap_if_unused();
	}
}

bool
gpuds_arena_verify(const GpudsDeviceTree *tree, char *why, size_t whylen)
{
	const Arena *arena = tree_arena(tree);

	/* no arena: an empty tree, and nothing to look at */
	return arena == NULL || cpu_btree_verify(arena, &tree->tree, why, whylen);
}
