/*-------------------------------------------------------------------------
 *
 * cuda.c
 *	  The CUDA device: what is asked of a tree becomes requests to the worker.
 *
 * Small requests travel in the mailbox, others with a span of staging units.
 * What is too large for one request goes in several.  Nobody holds a span while it
 * waits for anything but its request; a load, which waits for a disk between two
 * requests, does so in memory of its own, or in units set aside for loads.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "utils/memutils.h"

#include "device/cuda_requests.h"
#include "structure.h"

/* Entries of a bulk load, operations of an apply that go with one request. */
#define LOAD_ENTRIES ((int64) (GPUDS_PIECE_BYTES / sizeof(GpudsEntry)))
#define APPLY_OPS ((int64) (GPUDS_PIECE_BYTES / sizeof(GpudsOp)))
#define INLINE_OPS ((int64) (GPUDS_INLINE_BYTES / sizeof(GpudsOp)))

/* What a load collects in memory of its own before it asks for a span. */
#define LOAD_BUFFER_BYTES ((size_t) 2 * 1024 * 1024)

/* Chunks for leaves, inner nodes and lists that a tree may not have filled yet. */
#define SLACK_BYTES ((size_t) 3 * 2 * 1024 * 1024)

GpudsDeviceWork gpuds_device_work;

static bool
cuda_chosen(bool by_name)
{
	return by_name ? gpuds_device == GPUDS_CHOICE_CUDA : gpuds_device != GPUDS_CHOICE_CPU;
}

static int
cuda_cards(void)
{
	return gpuds_cards;
}

static bool
cuda_serves(int card)
{
	return gpuds_card_epoch(card) != 0;
}

/* The engine's library may be of another build than this one; all cards' is the same. */
static bool
cuda_has_structure(int structure)
{
	for (int card = 0; card < gpuds_cards; card++)
	{
		if (gpuds_queue(card)->structures >> structure & 1)
			return true;
	}
	return false;
}

static size_t
cuda_memory_used(int card)
{
	GpudsCudaInfo info;

	gpuds_queue_info(card, &info);
	return info.memory_used;
}

static size_t
cuda_memory_size(int card)
{
	GpudsCudaInfo info;

	gpuds_queue_info(card, &info);
	return info.memory_total;
}

/* The CUDA device's part of gpuds_device_init: nothing of the tree is on the GPU. */
void
gpuds_cuda_init(GpudsDeviceTree *tree, uint64 number)
{
	/* Those of temporary indexes have larger numbers and are never on a GPU. */
	tree->cuda.number = (uint32) (number - 1);
	pg_atomic_init_u64(&tree->cuda.epoch, 0);
	pg_atomic_init_u64(&tree->cuda.entries, 0);
	pg_atomic_init_u64(&tree->cuda.bytes, 0);
	pg_atomic_init_u64(&tree->cuda.side, 0);
	pg_atomic_init_u64(&tree->cuda.side_bytes, 0);
}

/* Is the epoch still served in which the tree was loaded? */
static bool
cuda_usable(GpudsDeviceTree *tree)
{
	return gpuds_epoch_is_served(pg_atomic_read_u64(&tree->cuda.epoch));
}

static size_t
cuda_bytes(GpudsDeviceTree *tree)
{
	return cuda_usable(tree) ? pg_atomic_read_u64(&tree->cuda.bytes) : 0;
}

static uint64
cuda_entries(GpudsDeviceTree *tree)
{
	return pg_atomic_read_u64(&tree->cuda.entries);
}

/* Adds what a request has cost to gpuds_device_work. */
void
gpuds_cuda_count_work(const GpuRequest *request)
{
	if (gpu_is_small(request))
	{
		gpuds_device_work.small++;
		gpuds_device_work.small_shares += GPUDS_LAUNCH_SHARES / Max(request->batch, 1);
	}
	else
		gpuds_device_work.launches += request->launches;
	gpuds_device_work.device_ns += request->device_ns;
	gpuds_device_work.bus_bytes += request->bus_bytes;
}

static void
note_size(GpudsDeviceTree *tree, const GpuRequest *request)
{
	pg_atomic_write_u64(&tree->cuda.entries, request->entries);
	pg_atomic_write_u64(&tree->cuda.bytes, request->bytes);
}

/* The engine has nothing under the tree's number any more. */
static void
note_gone(GpudsDeviceTree *tree)
{
	pg_atomic_write_u64(&tree->cuda.epoch, 0);
	pg_atomic_write_u64(&tree->cuda.entries, 0);
	pg_atomic_write_u64(&tree->cuda.bytes, 0);
	pg_atomic_write_u64(&tree->cuda.side, 0);
	pg_atomic_write_u64(&tree->cuda.side_bytes, 0);
}

/* The same of the copy of side values that has a name, if the tree still has that one. */
void
gpuds_cuda_side_gone(GpudsDeviceTree *tree, uint64 name)
{
	(void) pg_atomic_compare_exchange_u64(&tree->cuda.side, &name, 0);
}

/* What a status of the engine is to those who asked. */
GpudsDeviceStatus
gpuds_cuda_status(uint32 status)
{
	switch (status)
	{
		case GPU_OK:
			return GPUDS_DEVICE_OK;
		case GPU_NO_MEMORY:
			return GPUDS_DEVICE_NO_MEMORY;
		case GPU_TOO_LARGE:
			return GPUDS_DEVICE_TOO_LARGE;
		case GPU_NO_STRUCTURE:
			return GPUDS_DEVICE_NO_STRUCTURE;
		default:
			return GPUDS_DEVICE_LOST;
	}
}

/*
 * Sends a change of a tree that the mailbox has been filled with, and notes the
 * tree's new size.
 */
static GpudsDeviceStatus
send_change(GpudsDeviceTree *tree, GpudsMailbox *mailbox, GpudsStagingSpan *span, uint64 epoch)
{
	GpudsDeviceStatus status;

	mailbox->request.tree = tree->cuda.number;
	if (!gpuds_mailbox_send(mailbox, span, epoch, false))
		return GPUDS_DEVICE_LOST;
	status = gpuds_cuda_status(mailbox->request.status);
	if (status == GPUDS_DEVICE_OK)
		note_size(tree, &mailbox->request);
	gpuds_cuda_count_work(&mailbox->request);
	gpuds_mailbox_close(mailbox);
	return status;
}

static bool
cuda_drop(GpudsDeviceTree *tree)
{
	uint64 epoch = pg_atomic_read_u64(&tree->cuda.epoch);
	bool dropped = epoch == 0;

	if (!dropped)
	{
		GpudsMailbox *mailbox = gpuds_mailbox_open(epoch, true);

		if (mailbox)
		{
			mailbox->request.kind = GPU_DROP;
			mailbox->request.tree = tree->cuda.number;
			dropped = gpuds_mailbox_send(mailbox, NULL, epoch, true);
			if (dropped)
				gpuds_mailbox_close(mailbox);
		}
		if (!dropped && gpuds_epoch_is_served(epoch))
			gpuds_queue_leave(epoch, tree->cuda.number);
		else
			dropped = true;
	}
	note_gone(tree);
	return dropped;
}

/*
 * Loads
 */

static GpudsDeviceStatus
cuda_load_begin(GpudsDeviceLoad *load, int nwords, int fill_percent)
{
	GpudsDeviceTree *tree = load->tree;
	uint64 epoch = gpuds_card_epoch(gpuds_device_card(tree));
	GpudsMailbox *mailbox;
	GpudsDeviceStatus status;

	mailbox = gpuds_mailbox_open(epoch, false);
	if (mailbox == NULL)
		return GPUDS_DEVICE_LOST;
	mailbox->request.kind = GPU_LOAD_BEGIN;
	mailbox->request.structure = tree->structure;
	mailbox->request.nwords = nwords;
	mailbox->request.fill_percent = fill_percent;
	pg_atomic_write_u64(&tree->cuda.epoch, epoch);
	pg_atomic_write_u64(&tree->cuda.side, 0);
	status = send_change(tree, mailbox, NULL, epoch);
	if (status == GPUDS_DEVICE_OK)
	{
		if (gpuds_staging_keep(&load->span, epoch, GPUDS_PIECE_BYTES))
		{
			load->entries = (GpudsEntry *) gpuds_staging_at(&load->span);
			load->capacity = Min(LOAD_ENTRIES, load->span.n * GPUDS_UNIT_BYTES / sizeof(GpudsEntry));
		}
		else
		{
			load->buffer = MemoryContextAlloc(CurrentMemoryContext, LOAD_BUFFER_BYTES);
			load->entries = load->buffer;
			load->capacity = LOAD_BUFFER_BYTES / sizeof(GpudsEntry);
		}
		gpuds_injection_point("load-begun");
	}
	return status;
}

static GpudsDeviceStatus
send_load(GpudsDeviceLoad *load, GpuRequestKind kind, int64 n)
{
	GpudsDeviceTree *tree = load->tree;
	uint64 epoch = pg_atomic_read_u64(&tree->cuda.epoch);
	GpudsMailbox *mailbox = gpuds_mailbox_open(epoch, false);

	GpudsDeviceStatus status;

	if (mailbox == NULL)
		return GPUDS_DEVICE_LOST;
	if (n > 0 && load->buffer)
	{
		gpuds_staging_take(&load->span, epoch, n * sizeof(GpudsEntry), n * sizeof(GpudsEntry));
		memcpy(gpuds_staging_at(&load->span), load->buffer, n * sizeof(GpudsEntry));
	}
	mailbox->request.kind = kind;
	mailbox->request.n = n;
	if (n > 0)
		mailbox->request.input = gpuds_staging_offset(gpuds_staging_at(&load->span));
	status = send_change(tree, mailbox, n > 0 ? &load->span : NULL, epoch);
	if (load->buffer)
		gpuds_staging_give(&load->span);
	return status;
}

/* Gives back what entries were collected in. */
static void
free_arrays(GpudsDeviceLoad *load)
{
	gpuds_staging_give(&load->span);
	if (load->buffer)
		pfree(load->buffer);
	load->buffer = NULL;
	load->entries = NULL;
}

static GpudsDeviceStatus
cuda_load_add(GpudsDeviceLoad *load, int64 n)
{
	return send_load(load, GPU_LOAD_ADD, n);
}

static GpudsDeviceStatus
cuda_load_end(GpudsDeviceLoad *load)
{
	GpudsDeviceStatus status = send_load(load, GPU_LOAD_END, 0);

	if (status == GPUDS_DEVICE_OK)
	{
		free_arrays(load);
		load->tree = NULL;
	}
	return status;
}

static void
cuda_load_cancel(GpudsDeviceLoad *load)
{
	free_arrays(load);
	(void) cuda_drop(load->tree);
	load->tree = NULL;
}

/*
 * Changes
 */

static GpudsDeviceStatus
cuda_apply(GpudsDeviceTree *tree, const GpudsOp *ops, int64 n)
{
	uint64 epoch = pg_atomic_read_u64(&tree->cuda.epoch);
	GpudsMailbox *mailbox = gpuds_mailbox_open(epoch, false);
	GpudsDeviceStatus status;
	GpudsStagingSpan span = { 0, 0 };
	char *input;

	if (mailbox == NULL)
		return GPUDS_DEVICE_LOST;
	if (n <= INLINE_OPS)
		input = mailbox->data;
	else
	{
		gpuds_staging_take(&span, epoch, n * sizeof(GpudsOp), n * sizeof(GpudsOp));
		input = gpuds_staging_at(&span);
	}
	memcpy(input, ops, n * sizeof(GpudsOp));
	mailbox->request.kind = GPU_APPLY;
	mailbox->request.n = n;
	mailbox->request.input = gpuds_staging_offset(input);
	status = send_change(tree, mailbox, span.n > 0 ? &span : NULL, epoch);
	gpuds_staging_give(&span);
	return status;
}

static GpudsDeviceVerdict
cuda_verify(GpudsDeviceTree *tree, char *why, size_t whylen)
{
	uint64 epoch = pg_atomic_read_u64(&tree->cuda.epoch);
	GpudsMailbox *mailbox = gpuds_mailbox_open(epoch, false);
	GpudsDeviceVerdict verdict = GPUDS_TREE_GONE;

	if (mailbox == NULL)
		return GPUDS_TREE_GONE;
	mailbox->request.kind = GPU_VERIFY;
	mailbox->request.tree = tree->cuda.number;
	mailbox->request.output = gpuds_staging_offset(mailbox->data);
	mailbox->request.cap = Min(whylen, sizeof(mailbox->data));
	mailbox->data[0] = '\0';
	if (!gpuds_mailbox_send(mailbox, NULL, epoch, false))
		return GPUDS_TREE_GONE;
	if (mailbox->request.status == GPU_OK)
		verdict = GPUDS_TREE_GOOD;
	else if (mailbox->request.status == GPU_DAMAGED)
	{
		verdict = GPUDS_TREE_DAMAGED;
		strlcpy(why, mailbox->data, whylen);
	}
	gpuds_mailbox_close(mailbox);
	return verdict;
}

const GpudsDeviceOps gpuds_cuda_device = {
	.name = "cuda",
	.remote = true,
	.sorts = true,
	.max_entries = GPU_MAX_ENTRIES,
	.apply_ops = APPLY_OPS,
	.slack_bytes = SLACK_BYTES,
	.chosen = cuda_chosen,
	.has_structure = cuda_has_structure,
	.cards = cuda_cards,
	.serves = cuda_serves,
	.memory_used = cuda_memory_used,
	.memory_size = cuda_memory_size,
	.usable = cuda_usable,
	.bytes = cuda_bytes,
	.entries = cuda_entries,
	.load_begin = cuda_load_begin,
	.load_add = cuda_load_add,
	.load_end = cuda_load_end,
	.load_cancel = cuda_load_cancel,
	.apply = cuda_apply,
	.scan = gpuds_cuda_scan,
	.rank = gpuds_cuda_rank,
	.scan_tids = gpuds_cuda_scan_tids,
	.agg_columns = true,
	.joins = true,
	.count = gpuds_cuda_count,
	.most_unsorted = gpuds_cuda_most_unsorted,
	.drop = cuda_drop,
	.side_begin = gpuds_cuda_side_begin,
	.side_put = gpuds_cuda_side_put,
	.side_drop = gpuds_cuda_side_drop,
	.step_graph = gpuds_cuda_step_graph,
	.verify = cuda_verify,
};
