/*-------------------------------------------------------------------------
 *
 * device.c
 *	  Passes what is asked of a tree on to the device that has it.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "lib/stringinfo.h"

#include "device/device_ops.h"
#include "structure.h"

/* From this many keys on, a GPU finds them faster than a CPU, the round trip included. */
#define MANY_INTERVALS 2048

static const GpudsDeviceOps *const devices[] = {
	[GPUDS_ON_CPU] = &gpuds_shared_cpu_device,
	[GPUDS_ON_CUDA] = &gpuds_cuda_device,
	[GPUDS_ON_CPU_PRIVATE] = &gpuds_private_cpu_device,
};

/* The kind is read once: the slot may be given to a mirror of another kind meanwhile. */
static inline const GpudsDeviceOps *
device_of(const GpudsDeviceTree *tree)
{
	return devices[tree->kind];
}

/*
 * Devices
 */

Size
gpuds_device_shmem_size(void)
{
	return add_size(add_size(gpuds_arena_shmem_size(), gpuds_queue_shmem_size()),
					gpuds_cuda_parts_shmem_size());
}

/* Creates or finds the shared memory of all devices.  The caller holds AddinShmemInitLock. */
void
gpuds_device_shmem_init(void)
{
	gpuds_arena_shmem_init();
	gpuds_queue_shmem_init();
	gpuds_cuda_parts_shmem_init();
}

const char *
gpuds_device_name(GpudsDeviceKind kind)
{
	return devices[kind]->name;
}

bool
gpuds_device_is_remote(GpudsDeviceKind kind)
{
	return devices[kind]->remote;
}

bool
gpuds_device_is_private(GpudsDeviceKind kind)
{
	return devices[kind]->private;
}

bool
gpuds_device_may_use(GpudsDeviceKind kind)
{
	return devices[kind]->chosen(false);
}

/* Does gpuds.device name the device, so that the session wants no other? */
bool
gpuds_device_insists(GpudsDeviceKind kind)
{
	return devices[kind]->chosen(true);
}

GpudsDeviceKind
gpuds_device_wanted(int64 intervals)
{
	bool many = intervals >= MANY_INTERVALS || gpuds_device_insists(GPUDS_ON_CUDA);

	return many && gpuds_device_may_use(GPUDS_ON_CUDA) && gpuds_device_serves(GPUDS_ON_CUDA) ? GPUDS_ON_CUDA
																							 : GPUDS_ON_CPU;
}

int
gpuds_device_order(int64 intervals, GpudsDeviceKind order[GPUDS_SHARED_KINDS])
{
	bool cuda_first = gpuds_device_insists(GPUDS_ON_CUDA) || gpuds_device_wanted(intervals) == GPUDS_ON_CUDA;
	int n = 0;

	if (!gpuds_device_may_use(GPUDS_ON_CUDA))
	{
		order[n++] = GPUDS_ON_CPU;
		return n;
	}
	order[n++] = cuda_first ? GPUDS_ON_CUDA : GPUDS_ON_CPU;
	order[n++] = cuda_first ? GPUDS_ON_CPU : GPUDS_ON_CUDA;
	return n;
}

bool
gpuds_device_sends_large(int64 intervals, int64 weight)
{
	return intervals > GPUDS_SMALL_INTERVALS &&
		   gpuds_device_is_remote(gpuds_device_wanted(Max(weight, intervals)));
}

int
gpuds_device_cards(GpudsDeviceKind kind)
{
	return devices[kind]->cards ? devices[kind]->cards() : 1;
}

bool
gpuds_device_card_serves(GpudsDeviceKind kind, int card)
{
	return devices[kind]->serves == NULL || devices[kind]->serves(card);
}

/* Has it been at one request for so long that it may hang?  What has a choice goes elsewhere. */
bool
gpuds_device_card_stalls(GpudsDeviceKind kind, int card)
{
	return devices[kind]->remote && gpuds_queue_stalls(card);
}

bool
gpuds_device_serves(GpudsDeviceKind kind)
{
	for (int card = 0; card < gpuds_device_cards(kind); card++)
	{
		if (gpuds_device_card_serves(kind, card))
			return true;
	}
	return false;
}

/* Bytes of a card's memory that are taken, at the moment. */
size_t
gpuds_device_memory_used(GpudsDeviceKind kind, int card)
{
	return devices[kind]->memory_used(card);
}

/* Bytes of memory that a card has for trees; 0 if that is not known yet. */
size_t
gpuds_device_memory_size(GpudsDeviceKind kind, int card)
{
	return devices[kind]->memory_size(card);
}

size_t
gpuds_device_in_parts(const size_t *bytes, int n, int parts)
{
	size_t least = 0;

	/* that of the card which as many others as there are parts, itself among them, are not below */
	for (int i = 0; i < n; i++)
	{
		int not_below = 0;

		for (int j = 0; j < n; j++)
			not_below += bytes[j] >= bytes[i];
		if (not_below >= parts)
			least = Max(least, bytes[i]);
	}
	return parts * least;
}

static int
sizes_of(GpudsDeviceKind kind, size_t size[GPUDS_MOST_CARDS])
{
	const int n = gpuds_device_cards(kind);

	for (int card = 0; card < n; card++)
		size[card] = gpuds_device_memory_size(kind, card);
	return n;
}

int
gpuds_device_parts_for(GpudsDeviceKind kind, size_t bytes)
{
	size_t size[GPUDS_MOST_CARDS];
	const int n = sizes_of(kind, size);

	for (int parts = 1; parts <= n; parts++)
	{
		if (gpuds_device_in_parts(size, n, parts) >= bytes)
			return parts;
	}
	return 0;
}

size_t
gpuds_device_largest(GpudsDeviceKind kind)
{
	size_t size[GPUDS_MOST_CARDS];
	const int n = sizes_of(kind, size);
	size_t largest = 0;

	for (int parts = 1; parts <= n; parts++)
		largest = Max(largest, gpuds_device_in_parts(size, n, parts));
	return largest;
}

int
gpuds_device_card_id(GpudsDeviceKind kind, int card)
{
	return devices[kind]->cards ? gpuds_card_id[card] : -1;
}

/* The name is in palloc'd memory, if it is not that of the kind. */
const char *
gpuds_device_card_name(GpudsDeviceKind kind, int card)
{
	const char *name = gpuds_device_name(kind);

	return gpuds_device_cards(kind) > 1 ? psprintf("%s:%d", name, gpuds_device_card_id(kind, card)) : name;
}

/* The same of several cards: "cuda:0,1". */
const char *
gpuds_device_cards_name(GpudsDeviceKind kind, uint32 cards)
{
	StringInfoData name;

	if (gpuds_device_cards(kind) == 1)
		return gpuds_device_name(kind);
	initStringInfo(&name);
	for (int card = 0; cards >> card != 0; card++)
	{
		if (cards >> card & 1)
			appendStringInfo(&name, "%s%d", name.len == 0 ? "" : ",", gpuds_device_card_id(kind, card));
	}
	return psprintf("%s:%s", gpuds_device_name(kind), name.data);
}

uint64
gpuds_device_max_entries(GpudsDeviceKind kind)
{
	return devices[kind]->max_entries * Max(gpuds_device_cards(kind), 1);
}

uint64
gpuds_device_max_part(GpudsDeviceKind kind)
{
	return devices[kind]->max_entries;
}

bool
gpuds_device_has_structure(GpudsDeviceKind kind, int structure)
{
	return devices[kind]->has_structure(structure);
}

size_t
gpuds_device_slack_bytes(GpudsDeviceKind kind)
{
	return devices[kind]->slack_bytes;
}

double
gpuds_device_entry_bytes(GpudsDeviceKind kind, int structure, int nwords, int fill_percent, bool equal_keys)
{
	return gpuds_structure(structure)->cpu.entry_bytes(nwords, fill_percent, equal_keys,
													   gpuds_device_is_remote(kind));
}

/*
 * Trees
 */

void
gpuds_device_init(GpudsDeviceTree *tree, GpudsDeviceKind kind, uint64 number)
{
	tree->kind = kind;
	pg_atomic_init_u32(&tree->cards, 1);
	tree->refused = 0;
	gpuds_arena_init(tree, number);
	gpuds_cuda_init(tree, number);
}

bool
gpuds_device_usable(GpudsDeviceTree *tree)
{
	return device_of(tree)->usable(tree);
}

size_t
gpuds_device_bytes(GpudsDeviceTree *tree)
{
	return device_of(tree)->bytes(tree);
}

size_t
gpuds_device_bytes_on(GpudsDeviceTree *tree, int card)
{
	const GpudsDeviceOps *device = device_of(tree);

	return device->bytes_on ? device->bytes_on(tree, card) : device->bytes(tree);
}

/* Entries of the version that was published last.  Needs no lock, so the number may be out of date. */
uint64
gpuds_device_entries(GpudsDeviceTree *tree)
{
	return device_of(tree)->entries(tree);
}

GpudsDeviceStatus
gpuds_device_load_begin(GpudsDeviceTree *tree, GpudsDeviceLoad *load, int structure, int nwords,
						int fill_percent, uint64 entries)
{
	load->tree = tree;
	tree->structure = structure;
	return device_of(tree)->load_begin(load, nwords, fill_percent, entries);
}

/*
 * Adds the first n of load->entries.  Unless it returns GPUDS_DEVICE_OK, gpuds_device_load_cancel follows.
 * May move load->entries.
 */
GpudsDeviceStatus
gpuds_device_load_add(GpudsDeviceLoad *load, int64 n)
{
	Assert(n <= load->capacity);
	return device_of(load->tree)->load_add(load, n);
}

/*
 * Publishes the tree and ends the load.  Unless it returns GPUDS_DEVICE_OK, gpuds_device_load_cancel
 * follows.
 */
GpudsDeviceStatus
gpuds_device_load_end(GpudsDeviceLoad *load)
{
	return device_of(load->tree)->load_end(load);
}

void
gpuds_device_load_cancel(GpudsDeviceLoad *load)
{
	if (load->tree)
		device_of(load->tree)->load_cancel(load);
}

bool
gpuds_device_sorts(const GpudsDeviceTree *tree)
{
	return device_of(tree)->sorts;
}

bool
gpuds_device_has_ranks(const GpudsDeviceTree *tree)
{
	return device_of(tree)->has_ranks(tree->structure);
}

int64
gpuds_device_apply_ops(const GpudsDeviceTree *tree)
{
	return device_of(tree)->apply_ops;
}

/*
 * Applies n operations, gpuds_device_apply_ops at most, ordered as gpuds_device_sorts says, and publishes a
 * version.  The caller is the applier.
 */
GpudsDeviceStatus
gpuds_device_apply(GpudsDeviceTree *tree, const GpudsOp *ops, int64 n)
{
	return device_of(tree)->apply(tree, ops, n);
}

bool
gpuds_device_pack(GpudsDeviceTree *tree, size_t *bytes)
{
	const GpudsDeviceOps *device = device_of(tree);

	*bytes = 0;
	return device->pack && device->pack(tree, bytes);
}

int64
gpuds_device_scan(GpudsDeviceTree *tree, pg_atomic_uint64 *guard, uint64 expected, GpudsScan *scan,
				  bool forward, GpudsEntry *out, int64 cap)
{
	return device_of(tree)->scan(tree, guard, expected, scan, forward, out, cap);
}

bool
gpuds_device_rank(GpudsDeviceTree *tree, pg_atomic_uint64 *guard, uint64 expected,
				  const GpudsInterval *intervals, const uint64 *ranks, int64 n, GpudsRanked *ranked)
{
	Assert(n <= GPUDS_MOST_RANKED);
	return device_of(tree)->rank(tree, guard, expected, intervals, ranks, n, ranked);
}

bool
gpuds_device_scan_tids(GpudsDeviceTree *tree, pg_atomic_uint64 *guard, uint64 expected, GpudsScan *scan,
					   int64 cap, GpudsTids *tids)
{
	const GpudsDeviceOps *device = device_of(tree);

	return device->scan_tids && device->scan_tids(tree, guard, expected, scan, cap, tids);
}

/* Gives back the memory of an answer, if it has any; its TIDs are gone then. */
void
gpuds_device_free_tids(GpudsTids *tids)
{
	gpuds_staging_give(&tids->span);
	if (tids->own)
		pfree(tids->own);
	tids->own = NULL;
}

bool
gpuds_device_aggregates(const GpudsDeviceTree *tree)
{
	return device_of(tree)->agg_columns;
}

bool
gpuds_device_joins(GpudsDeviceTree *tree, GpudsDeviceTree *other)
{
	return tree->kind == other->kind && device_of(tree)->joins && gpuds_device_parts(tree) == 1 &&
		   gpuds_device_places(tree) == gpuds_device_places(other) && gpuds_device_usable(tree) &&
		   gpuds_device_usable(other);
}

GpudsCountStatus
gpuds_device_count(GpudsDeviceTree *tree, pg_atomic_uint64 *guard, uint64 expected, GpudsScan *scan,
				   const GpudsCountSpec *spec, GpudsCount *count)
{
	memset(count, 0, sizeof(GpudsCount));
	return device_of(tree)->count(tree, guard, expected, scan, spec, count);
}

int64
gpuds_device_most_unsorted(const GpudsDeviceTree *tree, const GpudsCountSpec *spec)
{
	const GpudsDeviceOps *device = device_of(tree);

	return device->most_unsorted ? device->most_unsorted(spec) : 0;
}

/* Gives back the memory of an answer, if it has any; *count points nowhere then. */
void
gpuds_device_free_count(GpudsCount *count)
{
	gpuds_staging_give(&count->span);
	for (int card = 0; card < gpuds_cards; card++)
		gpuds_staging_give(&count->spans[card]);
	if (count->own_results)
		pfree(count->own_results);
	if (count->own_others)
		pfree(count->own_others);
	count->own_results = count->own_others = NULL;
}

bool
gpuds_device_keeps_side(const GpudsDeviceTree *tree)
{
	return device_of(tree)->side_begin != NULL && gpuds_device_parts(tree) == 1;
}

uint64
gpuds_device_side(GpudsDeviceTree *tree)
{
	return gpuds_device_keeps_side(tree) && gpuds_device_usable(tree) ? pg_atomic_read_u64(&tree->cuda.side)
																	  : 0;
}

size_t
gpuds_device_side_bytes(GpudsDeviceTree *tree)
{
	return gpuds_device_side(tree) != 0 ? pg_atomic_read_u64(&tree->cuda.side_bytes) : 0;
}

GpudsDeviceStatus
gpuds_device_side_begin(GpudsDeviceTree *tree, pg_atomic_uint64 *guard, uint64 expected, uint64 name,
						int rows, int row_bytes)
{
	return device_of(tree)->side_begin(tree, guard, expected, name, rows, row_bytes);
}

GpudsDeviceStatus
gpuds_device_side_put(GpudsDeviceTree *tree, uint64 name, const GpudsSidePut *put)
{
	Assert(put->n * put->page_bytes <= GPUDS_SIDE_PUT_BYTES);
	return device_of(tree)->side_put(tree, name, put);
}

bool
gpuds_device_side_drop(GpudsDeviceTree *tree)
{
	return gpuds_device_side(tree) != 0 && device_of(tree)->side_drop(tree);
}

bool
gpuds_device_keeps_graphs(const GpudsDeviceTree *tree)
{
	return device_of(tree)->step_graph != NULL && gpuds_device_parts(tree) == 1;
}

/* The graph is where a tree is; one that is elsewhere is dropped, since there is one in all. */
static void
place_graph(GpudsDeviceGraph *graph, GpudsDeviceTree *tree)
{
	const uint64 epoch = pg_atomic_read_u64(&tree->cuda.first.epoch);

	if (graph->epoch != epoch)
		gpuds_device_graph_drop(graph, false);
	graph->kind = tree->kind;
	graph->epoch = epoch;
}

GpudsDeviceStatus
gpuds_device_graph_begin(GpudsDeviceTree *tree, int64 edges, GpudsDeviceGraph *graph)
{
	GpudsGraphStep step = {
		.step = GPU_GRAPH_BEGIN, .tree = tree->cuda.number, .each = graph->weighted, .n = edges
	};

	place_graph(graph, tree);
	graph->based = false;
	return gpuds_device_graph_step(graph, &step);
}

GpudsDeviceStatus
gpuds_device_graph_take(GpudsDeviceTree *tree, bool both, GpudsDeviceGraph *graph)
{
	GpudsGraphStep step = {
		.step = GPU_GRAPH_TAKE, .tree = tree->cuda.number, .each = both, .n = graph->weighted
	};
	GpudsDeviceStatus status;

	place_graph(graph, tree);
	graph->based = true;
	status = gpuds_device_graph_step(graph, &step);
	graph->near = status == GPUDS_DEVICE_OK && step.found != 0;
	return status;
}

GpudsDeviceStatus
gpuds_device_graph_step(const GpudsDeviceGraph *graph, GpudsGraphStep *step)
{
	Assert(step->input_bytes <= GPUDS_GRAPH_BYTES && step->cap * step->item_bytes <= GPUDS_GRAPH_BYTES);
	return devices[graph->kind]->step_graph(graph->epoch, step, false);
}

GpudsDeviceStatus
gpuds_device_graph_end(GpudsDeviceGraph *graph, bool both, int64 *vertices)
{
	GpudsGraphStep step = { .step = GPU_GRAPH_END, .each = both };
	const GpudsDeviceStatus status = gpuds_device_graph_step(graph, &step);

	*vertices = step.found;
	graph->differ = step.counted;
	graph->by_changes = step.taken != 0;
	return status;
}

void
gpuds_device_graph_drop(GpudsDeviceGraph *graph, bool keep)
{
	GpudsGraphStep step = { .step = GPU_GRAPH_DROP, .each = keep };

	if (graph->epoch != 0)
		(void) devices[graph->kind]->step_graph(graph->epoch, &step, true);
	graph->epoch = 0;
}

bool
gpuds_device_drop(GpudsDeviceTree *tree)
{
	return device_of(tree)->drop(tree);
}

GpudsDeviceVerdict
gpuds_device_verify(GpudsDeviceTree *tree, char *why, size_t whylen)
{
	return device_of(tree)->verify(tree, why, whylen);
}
