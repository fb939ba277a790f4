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

static bool
cuda_has_ranks(int structure)
{
	for (int card = 0; card < gpuds_cards; card++)
	{
		if (gpuds_queue(card)->ranked >> structure & 1)
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
	pg_atomic_init_u64(&tree->cuda.layout, 0);
	for (int part = 0; part < (number <= gpuds_max_mirrors ? Max(gpuds_cards, 1) : 1); part++)
	{
		pg_atomic_init_u64(&gpuds_cuda_part(tree, part)->epoch, 0);
		pg_atomic_init_u64(&gpuds_cuda_part(tree, part)->entries, 0);
		pg_atomic_init_u64(&gpuds_cuda_part(tree, part)->bytes, 0);
	}
	pg_atomic_init_u64(&tree->cuda.side, 0);
	pg_atomic_init_u64(&tree->cuda.side_bytes, 0);
}

/* Are the epochs still served in which the tree was loaded? */
static bool
cuda_usable(GpudsDeviceTree *tree)
{
	const int n = gpuds_device_parts(tree);

	for (int part = 0; part < n; part++)
	{
		if (!gpuds_epoch_is_served(pg_atomic_read_u64(&gpuds_cuda_part(tree, part)->epoch)))
			return false;
	}
	return true;
}

/* If one of its cards is lost, the others still hold theirs until it is dropped. */
static size_t
part_bytes(GpudsCudaPart *part)
{
	return gpuds_epoch_is_served(pg_atomic_read_u64(&part->epoch)) ? pg_atomic_read_u64(&part->bytes) : 0;
}

static size_t
cuda_bytes(GpudsDeviceTree *tree)
{
	const int n = gpuds_device_parts(tree);
	size_t bytes = 0;

	for (int part = 0; part < n; part++)
		bytes += part_bytes(gpuds_cuda_part(tree, part));
	return bytes;
}

static size_t
cuda_bytes_on(GpudsDeviceTree *tree, int card)
{
	const int n = gpuds_device_parts(tree);

	for (int part = 0; part < n; part++)
	{
		if (gpuds_cuda_part_card(tree, part) == card)
			return part_bytes(gpuds_cuda_part(tree, part));
	}
	return 0;
}

static uint64
cuda_entries(GpudsDeviceTree *tree)
{
	const int n = gpuds_device_parts(tree);
	uint64 entries = 0;

	for (int part = 0; part < n; part++)
		entries += pg_atomic_read_u64(&gpuds_cuda_part(tree, part)->entries);
	return entries;
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
note_size(GpudsCudaPart *part, const GpuRequest *request)
{
	pg_atomic_write_u64(&part->entries, request->entries);
	pg_atomic_write_u64(&part->bytes, request->bytes);
}

/* The engine has nothing under the tree's number any more. */
static void
note_gone(GpudsCudaPart *part)
{
	pg_atomic_write_u64(&part->epoch, 0);
	pg_atomic_write_u64(&part->entries, 0);
	pg_atomic_write_u64(&part->bytes, 0);
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

/* Takes the answer to a change of a part, and notes the part's new size, or which card has refused. */
static GpudsDeviceStatus
take_change(GpudsDeviceTree *tree, GpudsCudaPart *part, GpudsMailbox *mailbox)
{
	const GpudsDeviceStatus status = gpuds_cuda_status(mailbox->request.status);

	if (status == GPUDS_DEVICE_OK)
		note_size(part, &mailbox->request);
	if (status == GPUDS_DEVICE_NO_MEMORY)
		tree->refused = GpudsEpochCard(pg_atomic_read_u64(&part->epoch));
	gpuds_cuda_count_work(&mailbox->request);
	gpuds_mailbox_close(mailbox);
	return status;
}

/* Sends a change of a part of a tree that the mailbox has been filled with. */
static GpudsDeviceStatus
send_change(GpudsDeviceTree *tree, GpudsCudaPart *part, GpudsMailbox *mailbox, GpudsStagingSpan *span)
{
	mailbox->request.tree = tree->cuda.number;
	if (!gpuds_mailbox_send(mailbox, span, pg_atomic_read_u64(&part->epoch), false))
		return GPUDS_DEVICE_LOST;
	return take_change(tree, part, mailbox);
}

static bool
drop_part(GpudsDeviceTree *tree, GpudsCudaPart *part)
{
	uint64 epoch = pg_atomic_read_u64(&part->epoch);
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
	note_gone(part);
	return dropped;
}

static bool
cuda_drop(GpudsDeviceTree *tree)
{
	const int n = gpuds_device_parts(tree);
	bool dropped = true;

	for (int part = 0; part < n; part++)
		dropped &= drop_part(tree, gpuds_cuda_part(tree, part));
	pg_atomic_write_u64(&tree->cuda.side, 0);
	pg_atomic_write_u64(&tree->cuda.side_bytes, 0);
	return dropped;
}

/*
 * Loads
 */

/* Begins the load of a part. */
static GpudsDeviceStatus
begin_part(GpudsDeviceLoad *load, int number)
{
	GpudsDeviceTree *tree = load->tree;
	GpudsCudaPart *part = gpuds_cuda_part(tree, number);
	uint64 epoch = gpuds_card_epoch(gpuds_cuda_part_card(tree, number));
	GpudsMailbox *mailbox = gpuds_mailbox_open(epoch, false);

	if (mailbox == NULL)
		return GPUDS_DEVICE_LOST;
	mailbox->request.kind = GPU_LOAD_BEGIN;
	mailbox->request.structure = tree->structure;
	mailbox->request.nwords = load->nwords;
	mailbox->request.fill_percent = load->fill_percent;
	pg_atomic_write_u64(&part->epoch, epoch);
	load->part = number;
	load->in_part = 0;
	return send_change(tree, part, mailbox, NULL);
}

static GpudsDeviceStatus
cuda_load_begin(GpudsDeviceLoad *load, int nwords, int fill_percent, uint64 entries)
{
	GpudsDeviceTree *tree = load->tree;
	const int n = gpuds_device_parts(tree);
	GpudsDeviceStatus status;

	gpuds_cuda_begin_layout(tree);
	pg_atomic_write_u64(&tree->cuda.side, 0);
	load->nwords = nwords;
	load->fill_percent = fill_percent;
	load->share = entries / n + 1;
	status = begin_part(load, 0);
	if (status == GPUDS_DEVICE_OK)
	{
		/* The memory of a card is not used with another. */
		if (n == 1 &&
			gpuds_staging_keep(&load->span, pg_atomic_read_u64(&tree->cuda.first.epoch), GPUDS_PIECE_BYTES))
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

/* Sends what is at a place among load->entries to the part that is being loaded. */
static GpudsDeviceStatus
send_load(GpudsDeviceLoad *load, GpuRequestKind kind, int64 from, int64 n)
{
	GpudsDeviceTree *tree = load->tree;
	GpudsCudaPart *part = gpuds_cuda_part(tree, load->part);
	uint64 epoch = pg_atomic_read_u64(&part->epoch);
	GpudsMailbox *mailbox = gpuds_mailbox_open(epoch, false);

	GpudsDeviceStatus status;

	if (mailbox == NULL)
		return GPUDS_DEVICE_LOST;
	if (n > 0 && load->buffer)
	{
		gpuds_staging_take(&load->span, epoch, n * sizeof(GpudsEntry), n * sizeof(GpudsEntry));
		memcpy(gpuds_staging_at(&load->span), load->buffer + from, n * sizeof(GpudsEntry));
	}
	mailbox->request.kind = kind;
	mailbox->request.n = n;
	if (n > 0)
		mailbox->request.input = gpuds_staging_offset(gpuds_staging_at(&load->span));
	status = send_change(tree, part, mailbox, n > 0 ? &load->span : NULL);
	if (load->buffer)
		gpuds_staging_give(&load->span);
	load->in_part += n;
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

/* Ends the load of a part, and begins that of the next one. */
static GpudsDeviceStatus
next_part(GpudsDeviceLoad *load)
{
	GpudsDeviceStatus status = send_load(load, GPU_LOAD_END, 0, 0);

	return status == GPUDS_DEVICE_OK ? begin_part(load, load->part + 1) : status;
}

static GpudsDeviceStatus
cuda_load_add(GpudsDeviceLoad *load, int64 n)
{
	const int last = gpuds_device_parts(load->tree) - 1;
	GpudsDeviceStatus status = GPUDS_DEVICE_OK;
	int64 done = 0;

	while (status == GPUDS_DEVICE_OK && done < n)
	{
		int64 piece = n - done;

		if (load->part < last)
			piece = Min(piece, (int64) (load->share - load->in_part));
		status = send_load(load, GPU_LOAD_ADD, done, piece);
		done += piece;
		if (status == GPUDS_DEVICE_OK && load->part < last && load->in_part == load->share)
		{
			gpuds_cuda_part(load->tree, load->part)->last = load->entries[done - 1];
			status = next_part(load);
		}
	}
	return status;
}

/* Parts that no entry has come for are empty, and will stay so. */
static GpudsDeviceStatus
cuda_load_end(GpudsDeviceLoad *load)
{
	const int last = gpuds_device_parts(load->tree) - 1;
	GpudsDeviceStatus status = GPUDS_DEVICE_OK;

	while (status == GPUDS_DEVICE_OK && load->part < last)
		status = next_part(load);
	if (status == GPUDS_DEVICE_OK)
		status = send_load(load, GPU_LOAD_END, 0, 0);
	if (status == GPUDS_DEVICE_OK)
	{
		free_arrays(load);
		gpuds_cuda_end_layout(load->tree);
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

/* What a part is sent of an apply. */
typedef struct Share
{
	GpudsCudaSend send;
	GpudsCudaPart *part;
	const GpudsOp *ops; /* of all parts, n of them, ... */
	int64 n;
	const uint8 *part_of; /* ... with the part of each; NULL: all are the part's */
	int64 own;            /* operations */
	GpudsStagingSpan span;
	uint32 tree;
	uint8 number; /* of the part */
} Share;

/* Copies the part's operations. */
static void
copy_ops(GpudsOp *to, const Share *share)
{
	int64 copied = 0;

	if (share->part_of == NULL)
	{
		memcpy(to, share->ops, share->n * sizeof(GpudsOp));
		return;
	}
	for (int64 i = 0; i < share->n; i++)
	{
		if (share->part_of[i] == share->number)
			to[copied++] = share->ops[i];
	}
}

static void
fill_apply(GpudsCudaSend *send)
{
	Share *share = (Share *) send;
	GpudsMailbox *mailbox = send->sent.mailbox;
	char *input = send->most > 0 ? gpuds_staging_at(&share->span) : mailbox->data;

	copy_ops((GpudsOp *) input, share);
	mailbox->request.kind = GPU_APPLY;
	mailbox->request.tree = share->tree;
	mailbox->request.n = share->own;
	mailbox->request.input = gpuds_staging_offset(input);
}

/* Sends each part its share, if it has any, to all at once as far as there is staging memory. */
static GpudsDeviceStatus
apply_shares(GpudsDeviceTree *tree, Share *shares, int n)
{
	GpudsDeviceStatus worst = GPUDS_DEVICE_OK;
	int left = n;

	while (left > 0 && worst == GPUDS_DEVICE_OK)
	{
		GpudsCudaSend *sends[GPUDS_MOST_CARDS];
		Share *sent[GPUDS_MOST_CARDS];

		left = 0;
		for (int i = 0; i < n; i++)
		{
			sent[left] = &shares[i];
			sends[left] = &shares[i].send;
			left += shares[i].own > 0;
		}
		if (left > 0 && !gpuds_cuda_send(sends, left))
			return GPUDS_DEVICE_LOST;
		for (int i = 0; i < left; i++)
		{
			GpudsDeviceStatus status;

			if (sends[i]->sent.mailbox == NULL)
				continue;
			status = take_change(tree, sent[i]->part, sends[i]->sent.mailbox);
			gpuds_staging_give(&sent[i]->span);
			sent[i]->own = 0;
			worst = Max(worst, status);
		}
	}
	return worst;
}

/* The share of a part, of n operations, that has so many of its own. */
static Share
share_of(GpudsDeviceTree *tree, int number, const GpudsOp *ops, int64 n, const uint8 *part_of, int64 own)
{
	GpudsCudaPart *part = gpuds_cuda_part(tree, number);
	const size_t bytes = own <= INLINE_OPS ? 0 : own * sizeof(GpudsOp);

	return (Share){ .send = { .epoch = pg_atomic_read_u64(&part->epoch),
							  .least = bytes,
							  .most = bytes,
							  .fill = fill_apply },
					.part = part,
					.tree = tree->cuda.number,
					.ops = ops,
					.n = n,
					.part_of = part_of,
					.number = (uint8) number,
					.own = own };
}

/*
 * Sends each part its operations.  What one refuses others may have done by then, as an apply that was
 * interrupted.
 */
static GpudsDeviceStatus
apply_to_parts(GpudsDeviceTree *tree, const GpudsOp *ops, int64 n)
{
	int64 own[GPUDS_MOST_CARDS] = { 0 };
	uint8 *part_of = palloc(Max(n, 1));
	Share shares[GPUDS_MOST_CARDS];
	GpudsDeviceStatus status;
	GpudsCudaLayout layout;

	/* The caller is the applier, so no load is under way. */
	(void) gpuds_cuda_read_layout(tree, &layout);
	for (int64 i = 0; i < n; i++)
	{
		part_of[i] = (uint8) gpuds_cuda_part_from(&layout, 0, &ops[i].e);
		own[part_of[i]]++;
	}
	for (int part = 0; part < layout.n; part++)
	{
		shares[part] = share_of(tree, part, ops, n, part_of, own[part]);
		shares[part].send.sent.span = &shares[part].span;
	}
	status = apply_shares(tree, shares, layout.n);
	pfree(part_of);
	return status;
}

static GpudsDeviceStatus
cuda_apply(GpudsDeviceTree *tree, const GpudsOp *ops, int64 n)
{
	Share all;

	if (gpuds_device_parts(tree) > 1)
		return apply_to_parts(tree, ops, n);
	all = share_of(tree, 0, ops, n, NULL, n);
	all.send.sent.span = &all.span;
	return apply_shares(tree, &all, 1);
}

static GpudsDeviceVerdict
verify_part(GpudsDeviceTree *tree, GpudsCudaPart *part, char *why, size_t whylen)
{
	uint64 epoch = pg_atomic_read_u64(&part->epoch);
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

static GpudsDeviceVerdict
cuda_verify(GpudsDeviceTree *tree, char *why, size_t whylen)
{
	const int n = gpuds_device_parts(tree);
	GpudsDeviceVerdict verdict = GPUDS_TREE_GOOD;

	for (int part = 0; part < n && verdict == GPUDS_TREE_GOOD; part++)
		verdict = verify_part(tree, gpuds_cuda_part(tree, part), why, whylen);
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
	.bytes_on = cuda_bytes_on,
	.load_begin = cuda_load_begin,
	.load_add = cuda_load_add,
	.load_end = cuda_load_end,
	.load_cancel = cuda_load_cancel,
	.apply = cuda_apply,
	.scan = gpuds_cuda_parts_scan,
	.has_ranks = cuda_has_ranks,
	.rank = gpuds_cuda_parts_rank,
	.scan_tids = gpuds_cuda_parts_tids,
	.agg_columns = true,
	.joins = true,
	.count = gpuds_cuda_parts_count,
	.most_unsorted = gpuds_cuda_most_unsorted,
	.drop = cuda_drop,
	.side_begin = gpuds_cuda_side_begin,
	.side_put = gpuds_cuda_side_put,
	.side_drop = gpuds_cuda_side_drop,
	.step_graph = gpuds_cuda_step_graph,
	.verify = cuda_verify,
};
