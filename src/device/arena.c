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

#include "device/cpu.h"
#include "device/internal.h"

/* Entries handed to a build at a time. */
#define LOAD_ROOM 4096

static GkArena *shared_arena = NULL;
static GkPinSlot *shared_pins = NULL;

static GkArena *private_arena = NULL;
static void *private_map = NULL; /* the mapping that it lies in */
static size_t private_map_bytes;
static int private_loads = 0; /* loads under way: they hold on to the arena */
static GkPinSlot private_pin;

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
	Size size = mul_size(MaxBackends, sizeof(GkPinSlot));

	/* Room to align the arena and the pins to their natural boundaries. */
	return add_size(add_size(size, arena_bytes()), GK_CHUNK_BYTES + sizeof(GkPinSlot));
}

void
gpuds_arena_shmem_init(void)
{
	bool found;
	char *memory = ShmemInitStruct("gpuds device", gpuds_arena_shmem_size(), &found);

	shared_arena = (GkArena *) TYPEALIGN(GK_CHUNK_BYTES, memory);
	shared_pins = (GkPinSlot *) ((char *) shared_arena + arena_bytes());
	if (!found)
	{
		gk_arena_init(shared_arena, arena_bytes());
		memset(shared_pins, 0, MaxBackends * sizeof(GkPinSlot));
	}
}

/*
 * The private arena, with the size that is set if it is mapped now.  Mapping it
 * may fail; the caller falls back to the journal then.
 */
static GkArena *
get_private_arena(void)
{
	if (private_arena == NULL)
	{
		size_t bytes = private_bytes() + GK_CHUNK_BYTES;
		void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
							-1, 0);

		if (memory == MAP_FAILED)
			return NULL;
		private_map = memory;
		private_map_bytes = bytes;
		private_arena = (GkArena *) TYPEALIGN(GK_CHUNK_BYTES, memory);
		gk_arena_init(private_arena, private_bytes());
	}
	return private_arena;
}

/* Gives the private arena back to the system if no tree has memory of it. */
static void
unmap_if_unused(void)
{
	if (private_arena == NULL || private_loads > 0 || gk_arena_used(private_arena) > 0)
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
give_pages_back(GkSpace *space)
{
	size_t page = sysconf(_SC_PAGESIZE);
	uint32 at = space->chunks;
	uint32 first;
	uint32 n;

	while ((n = gk_space_run(private_arena, &at, &first)) > 0)
	{
		uintptr_t from = (uintptr_t) private_arena + (size_t) first * GK_CHUNK_BYTES;
		uintptr_t end = from + (size_t) n * GK_CHUNK_BYTES;

		from = TYPEALIGN(page, from);
		end = TYPEALIGN_DOWN(page, end);
		if (from < end)
			(void) madvise((void *) from, end - from, MADV_DONTNEED);
	}
}

static inline GkArena *
tree_arena(const GpudsDeviceTree *tree)
{
	return tree->kind == GPUDS_ON_CPU ? shared_arena : get_private_arena();
}

static inline GkPinSlot *
my_pin(const GpudsDeviceTree *tree)
{
	return tree->kind == GPUDS_ON_CPU ? &shared_pins[GpudsMyBackendIndex()] : &private_pin;
}

static uint64
oldest_pin(const GpudsDeviceTree *tree, uint64 owner)
{
	return tree->kind == GPUDS_ON_CPU ? gk_oldest_pin(shared_pins, MaxBackends, owner)
									  : gk_oldest_pin(&private_pin, 1, owner);
}

size_t
gpuds_arena_memory_used(GpudsDeviceKind kind)
{
	if (kind == GPUDS_ON_CPU)
		return gk_arena_used(shared_arena);
	return private_arena ? gk_arena_used(private_arena) : 0;
}

size_t
gpuds_arena_memory_size(GpudsDeviceKind kind)
{
	GkArena *arena = kind == GPUDS_ON_CPU ? shared_arena : private_arena;
	GkArena imagined;

	if (arena == NULL)
	{
		arena = &imagined;
		gk_arena_init(arena, private_bytes());
	}
	return gk_arena_size(arena);
}

void
gpuds_arena_init(GpudsDeviceTree *tree, uint64 number)
{
	tree->owner = number;
	gbt_init(&tree->tree, 1);
	gbt_withdraw(&tree->tree);
}

static GpudsDeviceStatus
device_status(GkStatus status)
{
	return status == GK_OK ? GPUDS_DEVICE_OK : GPUDS_DEVICE_NO_MEMORY;
}

GpudsDeviceStatus
gpuds_arena_load_begin(GpudsDeviceLoad *load, int nwords, int fill_percent)
{
	GpudsDeviceTree *tree = load->tree;
	GkArena *arena = tree_arena(tree);
	GkStatus status = GK_NO_MEMORY;

	if (arena)
	{
		/* Not gbt_init: that would show readers an empty tree. */
		tree->tree.nwords = nwords;
		status = gbt_build_begin(arena, &tree->tree, &load->build, fill_percent);
	}
	if (status != GK_OK)
	{
		load->tree = NULL;
		return GPUDS_DEVICE_NO_MEMORY;
	}
	if (tree->kind == GPUDS_ON_CPU_PRIVATE)
		private_loads++;
	load->room = palloc(LOAD_ROOM * sizeof(GkEntry));
	load->room_size = LOAD_ROOM;
	return GPUDS_DEVICE_OK;
}

GpudsDeviceStatus
gpuds_arena_load_add(GpudsDeviceLoad *load, int64 n)
{
	return device_status(gbt_build_add(&load->build, load->room, n));
}

GpudsDeviceStatus
gpuds_arena_load_end(GpudsDeviceLoad *load)
{
	GkStatus status = gbt_build_finish(&load->build);

	if (status == GK_OK)
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
	gbt_build_cancel(&load->build);
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
gpuds_arena_apply(GpudsDeviceTree *tree, const GkOp *ops, int64 n)
{
	GkArena *arena = tree_arena(tree);
	int64 inserted;
	int64 deleted;
	GkStatus status;

	/* an empty tree does not keep the private arena mapped */
	if (arena == NULL)
		return GPUDS_DEVICE_NO_MEMORY;
	status = gbt_apply(arena, &tree->tree, ops, n, &inserted, &deleted);
	gbt_reclaim(arena, &tree->tree, oldest_pin(tree, tree->owner));
	return device_status(status);
}

int64
gpuds_arena_scan(GpudsDeviceTree *tree, pg_atomic_uint64 *serial, uint64 expected, GkScan *scan, bool forward,
				 GkEntry *out, int64 cap)
{
	GkPinSlot *pin = my_pin(tree);
	GkArena *arena = tree_arena(tree);
	GbtView view;
	int64 n = -1;

	if (arena == NULL)
		return -1;
	gk_pin(pin, tree->owner, &tree->tree.version);
	if (pg_atomic_read_u64(serial) == expected)
	{
		pg_read_barrier();
		if (gbt_view(arena, &tree->tree, &view))
			n = gpuds_cpu_kernels()->scan(&view, scan, forward, out, cap);
	}
	gk_unpin(pin);
	return n;
}

void
gpuds_arena_drop(GpudsDeviceTree *tree)
{
	uint64 version;

	gbt_withdraw(&tree->tree);
	version = __atomic_load_n(&tree->tree.version, __ATOMIC_SEQ_CST);
	while (oldest_pin(tree, tree->owner) < version)
		pg_usleep(20);
	if (tree->kind == GPUDS_ON_CPU)
		gbt_release(shared_arena, &tree->tree);
	else if (private_arena)
	{
		give_pages_back(&tree->tree.space);
		gbt_release(private_arena, &tree->tree);
		unmap_if_unused();
	}
}

bool
gpuds_arena_verify(const GpudsDeviceTree *tree, char *why, size_t whylen)
{
	const GkArena *arena = tree_arena(tree);

	/* no arena: an empty tree, and nothing to look at */
	return arena == NULL || gbt_verify(arena, &tree->tree, why, whylen);
}
