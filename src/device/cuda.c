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

#include "device/device_ops.h"
#include "structure.h"

/* Entries of a bulk load, operations of an apply that go with one request. */
#define LOAD_ENTRIES ((int64) (GPUDS_PIECE_BYTES / sizeof(GpudsEntry)))
#define APPLY_OPS ((int64) (GPUDS_PIECE_BYTES / sizeof(GpudsOp)))
#define INLINE_OPS ((int64) (GPUDS_INLINE_BYTES / sizeof(GpudsOp)))

/* What a load collects in memory of its own before it asks for a span. */
#define LOAD_BUFFER_BYTES ((size_t) 2 * 1024 * 1024)

/* A scan takes so much staging memory if there is not as much as it would like. */
#define LEAST_SPAN_BYTES ((size_t) 2 * GPUDS_UNIT_BYTES)

/* Chunks for leaves, inner nodes and lists that a tree may not have filled yet. */
#define SLACK_BYTES ((size_t) 3 * 2 * 1024 * 1024)

GpudsDeviceWork gpuds_device_work;

static bool
cuda_chosen(bool by_name)
{
	return by_name ? gpuds_device == GPUDS_CHOICE_CUDA : gpuds_device != GPUDS_CHOICE_CPU;
}

/* The engine's library may be of another build than this one. */
static bool
cuda_has_structure(int structure)
{
	return gpuds_queue != NULL && (gpuds_queue->structures >> structure & 1) != 0;
}

static size_t
cuda_memory_used(void)
{
	GpudsCudaInfo info;

	if (gpuds_queue == NULL)
		return 0;
	gpuds_queue_info(&info);
	return info.memory_used;
}

static size_t
cuda_memory_size(void)
{
	GpudsCudaInfo info;

	if (gpuds_queue == NULL)
		return 0;
	gpuds_queue_info(&info);
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
	uint64 epoch = pg_atomic_read_u64(&tree->cuda.epoch);

	return epoch != 0 && epoch == gpuds_queue_epoch();
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

static void
count_work(const GpuRequest *request)
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
static void
note_side_gone(GpudsDeviceTree *tree, uint64 name)
{
	(void) pg_atomic_compare_exchange_u64(&tree->cuda.side, &name, 0);
}

static GpudsDeviceStatus
device_status(uint32 status)
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
	status = device_status(mailbox->request.status);
	if (status == GPUDS_DEVICE_OK)
		note_size(tree, &mailbox->request);
	count_work(&mailbox->request);
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
		if (!dropped && epoch == gpuds_queue_epoch())
			gpuds_queue_leave(tree->cuda.number);
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
	uint64 epoch = gpuds_queue_epoch();
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
		if (gpuds_staging_keep(&load->span, GPUDS_PIECE_BYTES))
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
		gpuds_staging_take(&load->span, n * sizeof(GpudsEntry), n * sizeof(GpudsEntry));
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
		gpuds_staging_take(&span, n * sizeof(GpudsOp), n * sizeof(GpudsOp));
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

/*
 * Scans
 */

/* What is the same for all requests of a scan. */
typedef struct ScanCall
{
	GpudsDeviceTree *tree;
	pg_atomic_uint64 *guard;
	uint64 expected;
	uint64 epoch;
	GpuForm form;
	bool forward;
	size_t item_bytes;
} ScanCall;

static void
begin_call(ScanCall *call, GpudsDeviceTree *tree, pg_atomic_uint64 *guard, uint64 expected, bool forward)
{
	call->tree = tree;
	call->guard = guard;
	call->expected = expected;
	/* If another epoch is served by now, the tree is gone. */
	call->epoch = pg_atomic_read_u64(&tree->cuda.epoch);
	call->forward = forward;
}

static size_t
input_bytes(const GpudsScan *scan, int64 n)
{
	return scan->points ? sizeof(GpudsInterval) + n * sizeof(uint64) : n * sizeof(GpudsInterval);
}

static int64
intervals_for(const GpudsScan *scan, size_t bytes)
{
	return scan->points ? (bytes - sizeof(GpudsInterval)) / sizeof(uint64) : bytes / sizeof(GpudsInterval);
}

static void
copy_intervals(const GpudsScan *scan, int64 first, int64 n, char *input)
{
	if (scan->points)
	{
		memcpy(input, scan->intervals, sizeof(GpudsInterval));
		memcpy(input + sizeof(GpudsInterval), scan->points + first, n * sizeof(uint64));
	}
	else
		memcpy(input, scan->intervals + first, n * sizeof(GpudsInterval));
}

/*
 * Asks for up to cap items of the next n intervals, and moves the scan behind
 * what was found.  NULL: none can be had.  Else the answer is in output, and the
 * mailbox is to be closed.
 */
static GpuRequest *
ask(const ScanCall *call, GpudsMailbox *mailbox, GpudsStagingSpan *span, GpudsScan *scan, int64 n, int64 cap,
	char *input, char *output)
{
	GpuRequest *request = &mailbox->request;
	int64 first = call->forward ? scan->next : scan->next - n;

	copy_intervals(scan, first, n, input);
	request->kind = GPU_SCAN;
	request->tree = call->tree->cuda.number;
	request->form = call->form;
	request->forward = call->forward;
	request->points = scan->points != NULL;
	request->guarded = true;
	request->guard = (const uint64 *) &call->guard->value;
	request->expected = call->expected;
	request->input = gpuds_staging_offset(input);
	request->output = gpuds_staging_offset(output);
	request->n = n;
	request->cap = cap;
	request->next = call->forward ? 0 : n;
	request->inside = scan->inside;
	request->at = scan->at;
	if (!gpuds_mailbox_send(mailbox, span, call->epoch, false))
		return NULL;
	if (request->status != GPU_OK)
	{
		if (request->status == GPU_WITHDRAWN && call->form == GPU_GROUPS && request->side != 0)
			note_side_gone(call->tree, request->side);
		gpuds_mailbox_close(mailbox);
		return NULL;
	}
	if (request->found < cap && !(call->form == GPU_GROUPS && request->inside))
	{
		scan->next = call->forward ? first + n : first;
		scan->inside = false;
	}
	else
	{
		scan->next = first + request->next;
		scan->inside = request->inside;
		scan->at = request->at;
	}
	count_work(request);
	return request;
}

static int64
intervals_left(const ScanCall *call, const GpudsScan *scan)
{
	return call->forward ? scan->n - scan->next : scan->next;
}

/* A scan that the mailbox has room for.  Returns how many came; -1: none can be had. */
static int64
ask_small(const ScanCall *call, GpudsMailbox *mailbox, GpudsScan *scan, GpudsEntry *out, int64 cap)
{
	char *output = mailbox->data + GPUDS_INLINE_INPUT;
	int64 n = Min(intervals_left(call, scan), GPU_SMALL_INTERVALS);
	GpuRequest *request = ask(call, mailbox, NULL, scan, n, cap, mailbox->data, output);
	int64 found = -1;

	if (request)
	{
		found = request->found;
		memcpy(out, output, found * sizeof(GpudsEntry));
		gpuds_mailbox_close(mailbox);
	}
	return found;
}

/*
 * Any other scan.  Returns how many items came, in the memory of *span, which is the
 * caller's to give back; -1: none can be had, and no span.
 */
static int64
ask_large(const ScanCall *call, GpudsMailbox *mailbox, GpudsScan *scan, int64 cap, GpudsStagingSpan *span)
{
	int64 n = intervals_left(call, scan);
	GpuRequest *request;
	size_t need;
	size_t half;
	int64 found = -1;

	/* An interval has an entry or so. */
	n = Min(n, Max(cap, GPU_SMALL_INTERVALS));
	n = Min(n, intervals_for(scan, GPUDS_PIECE_BYTES));
	cap = Min(cap, GPUDS_PIECE_BYTES / call->item_bytes);
	need = input_bytes(scan, n) + cap * call->item_bytes;
	gpuds_staging_take(span, Min(need, LEAST_SPAN_BYTES), need);
	half = (size_t) span->n * GPUDS_UNIT_BYTES / 2;
	if (need > 2 * half)
	{
		n = Min(n, intervals_for(scan, half));
		cap = Min(cap, half / call->item_bytes);
	}
	request = ask(call, mailbox, span, scan, n, cap, gpuds_staging_at(span) + cap * call->item_bytes,
				  gpuds_staging_at(span));
	if (request)
	{
		found = request->found;
		gpuds_mailbox_close(mailbox);
	}
	else
		gpuds_staging_give(span);
	return found;
}

/*
 * The next entries of a scan, by one request: at most cap, maybe fewer although
 * there are more.  -1: none can be had.
 */
static int64
ask_entries(const ScanCall *call, GpudsScan *scan, GpudsEntry *out, int64 cap)
{
	GpudsMailbox *mailbox = gpuds_mailbox_open(call->epoch, false);
	GpudsStagingSpan span = { 0, 0 };
	int64 found;

	if (mailbox == NULL)
		return -1;
	if (cap <= GPU_SMALL_ENTRIES)
		return ask_small(call, mailbox, scan, out, cap);
	found = ask_large(call, mailbox, scan, cap, &span);
	if (found > 0)
		memcpy(out, gpuds_staging_at(&span), found * sizeof(GpudsEntry));
	gpuds_staging_give(&span);
	return found;
}

static int64
cuda_scan(GpudsDeviceTree *tree, pg_atomic_uint64 *guard, uint64 expected, GpudsScan *scan, bool forward,
		  GpudsEntry *out, int64 cap)
{
	ScanCall call;
	GpudsScan start = *scan;
	int64 done = 0;

	begin_call(&call, tree, guard, expected, forward);
	call.form = GPU_ENTRIES;
	call.item_bytes = sizeof(GpudsEntry);
	while (done < cap && intervals_left(&call, scan) > 0)
	{
		int64 found = ask_entries(&call, scan, out + done, cap - done);

		if (found < 0)
		{
			*scan = start;
			return -1;
		}
		done += found;
	}
	return done;
}

static bool
cuda_scan_tids(GpudsDeviceTree *tree, pg_atomic_uint64 *guard, uint64 expected, GpudsScan *scan, int64 cap,
			   GpudsTids *tids)
{
	ScanCall call;
	GpudsMailbox *mailbox;

	begin_call(&call, tree, guard, expected, true);
	call.form = GPU_SORTED_TIDS;
	call.item_bytes = sizeof(uint64);
	memset(tids, 0, sizeof(GpudsTids));
	mailbox = gpuds_mailbox_open(call.epoch, false);
	if (mailbox == NULL)
		return false;
	tids->n = ask_large(&call, mailbox, scan, cap, &tids->span);
	if (tids->n < 0)
		return false;
	gpuds_staging_shrink(&tids->span, tids->n * sizeof(uint64));
	tids->tids = (const uint64 *) gpuds_staging_at(&tids->span);
	return true;
}

static bool
cuda_rank(GpudsDeviceTree *tree, pg_atomic_uint64 *guard, uint64 expected, const GpudsInterval *intervals,
		  const uint64 *ranks, int64 n, GpudsRanked *ranked)
{
	const uint64 epoch = pg_atomic_read_u64(&tree->cuda.epoch);
	const size_t input = n * sizeof(GpudsInterval);
	const size_t output = input + n * sizeof(uint64);
	const size_t bytes = output + n * sizeof(GpudsRanked);
	GpudsMailbox *mailbox = gpuds_mailbox_open(epoch, false);
	GpudsStagingSpan span = { 0, 0 };
	bool done = false;
	GpuRequest *request;
	char *memory;

	if (mailbox == NULL)
		return false;
	gpuds_staging_take(&span, bytes, bytes);
	memory = gpuds_staging_at(&span);
	memcpy(memory, intervals, input);
	memcpy(memory + input, ranks, n * sizeof(uint64));
	request = &mailbox->request;
	request->kind = GPU_SCAN;
	request->tree = tree->cuda.number;
	request->form = GPU_RANKED;
	request->forward = true;
	request->guarded = true;
	request->guard = (const uint64 *) &guard->value;
	request->expected = expected;
	request->input = gpuds_staging_offset(memory);
	request->output = gpuds_staging_offset(memory + output);
	request->n = n;
	request->cap = n + 1;
	if (gpuds_mailbox_send(mailbox, &span, epoch, false))
	{
		done = request->status == GPU_OK;
		if (done)
		{
			count_work(request);
			memcpy(ranked, memory + output, n * sizeof(GpudsRanked));
		}
		gpuds_mailbox_close(mailbox);
	}
	gpuds_staging_give(&span);
	return done;
}

/* Where the parts of a count are in its staging memory, in bytes. */
typedef struct CountLayout
{
	size_t items; /* behind the results: TIDs or entries */
	size_t map;
	size_t row_places;
	size_t row_pages;
	size_t agg_columns;
	size_t groups;
	size_t join; /* and what belongs to it: */
	size_t join_map;
	size_t join_row_places;
	size_t join_row_pages;
	size_t touched;
	size_t edges;
	size_t input;
} CountLayout;

/* What an attempt at a count has room for. */
typedef struct CountAttempt
{
	int64 others;  /* entries or TIDs */
	uint32 spread; /* of the table of groups */
	int64 entries; /* to go through, of groups in order; else 0 */
} CountAttempt;

static size_t
count_item_bytes(const GpudsCountSpec *spec)
{
	return spec->partial ? sizeof(GpudsEntry) : sizeof(uint64);
}

/* Results of so many intervals. */
static int64
count_results(const GpudsCountSpec *spec, int64 n)
{
	return !spec->partial || spec->groups || spec->join || spec->edges ? 0 : spec->each ? n : 1;
}

/* Bytes that results take for so many intervals. */
static size_t
result_bytes(const GpudsCountSpec *spec, int64 n)
{
	if (spec->groups)
		return group_table_bytes(spec->groups->spec);
	if (spec->join)
		return GPUDS_JOIN_ROOM * sizeof(EntryJoinKey);
	return (size_t) (count_results(spec, n) * gpu_result_words(spec->nagg)) * sizeof(uint64);
}

/* Bytes that what is said of groups takes for so many intervals. */
static size_t
groups_bytes(const GpudsCountSpec *spec, int64 n)
{
	const GpudsCountGroups *groups = spec->groups;

	return groups ? group_spec_bytes(groups->spec) + group_label_bytes(groups->spec, n) : 0;
}

/*
 * Intervals that a count has room for, whatever there is of staging memory.  The device has memory for
 * what is known beside that for intervals.  Points in no order use it, because all of them go at once
 * (cuda_most_unsorted); other intervals leave room in the span.
 */
static int64
count_intervals(const GpudsScan *scan, const GpudsCountSpec *spec, int64 n)
{
	const size_t known = spec->unsorted ? 0 : gpuds_count_known_bytes(spec);
	const size_t bytes = GPUDS_PIECE_BYTES - known - groups_bytes(spec, 0);

	/* a label takes less than an interval, which has none if it is a point */
	n = Min(n, intervals_for(scan, bytes));
	if (spec->groups && spec->groups->spec->has_labels)
		n = Min(n, intervals_for(scan, bytes / 2));
	if (spec->each)
		n = Min(n, (int64) (GPUDS_PIECE_BYTES / 4 / sizeof(uint64)) / gpu_result_words(spec->nagg));
	return n;
}

/* Sets where a join's parts are, from a place on. */
static void
layout_join(CountLayout *layout, const GpudsCountJoin *join, size_t from)
{
	layout->join = from;
	layout->join_map = layout->join + sizeof(GpuJoin);
	layout->join_row_places = layout->join_map + TYPEALIGN(sizeof(uint64), join->map_bytes);
	layout->join_row_pages = layout->join_row_places + join->rows.slots * sizeof(uint32);
	layout->touched = layout->join_map + gpuds_known_rows_bytes(join->map_bytes, &join->rows);
	layout->input = layout->touched + join->ntouched * sizeof(GpudsEntry);
}

/* Does a count have to go with one request? */
static bool
is_whole(const GpudsCountSpec *spec)
{
	return spec->each || spec->groups || spec->join || spec->unsorted;
}

static CountLayout
count_layout(const GpudsCountSpec *spec, int64 n, int64 capacity)
{
	CountLayout layout;

	layout.items = result_bytes(spec, n);
	layout.map = layout.items + capacity * count_item_bytes(spec);
	layout.row_places = layout.map + TYPEALIGN(sizeof(uint64), spec->map_bytes);
	layout.row_pages = layout.row_places + spec->rows.slots * sizeof(uint32);
	layout.agg_columns = layout.map + gpuds_known_rows_bytes(spec->map_bytes, &spec->rows);
	layout.groups = layout.agg_columns + spec->nagg * sizeof(AggColumn);
	layout.input = layout.groups + groups_bytes(spec, n) + gpuds_count_side_bytes(spec);
	if (spec->join)
		layout_join(&layout, spec->join, layout.input);
	layout.edges = layout.input;
	if (spec->edges)
		layout.input += sizeof(GpudsCountEdges);
	return layout;
}

/* Copies what is known of rows to places in staging memory, if there is anything. */
static void
copy_rows(const PageRows *rows, char *places, char *pages)
{
	Assert((rows->slots & (rows->slots - 1)) == 0 && rows->words <= PAGE_ROWS_MAX_WORDS);
	if (rows->slots == 0)
		return;
	memcpy(places, rows->places, rows->slots * sizeof(uint32));
	memcpy(pages, rows->pages, page_rows_pages_bytes(rows->npages, rows->words));
}

/* Puts what is known of rows in staging memory, if there is anything. */
static void
set_rows(GpuRequest *request, const PageRows *rows, const CountLayout *layout, char *memory)
{
	request->row_slots = rows->slots;
	request->row_words = rows->words;
	request->row_npages = rows->npages;
	request->row_places = gpuds_staging_offset(memory + layout->row_places);
	request->row_pages = gpuds_staging_offset(memory + layout->row_pages);
	copy_rows(rows, memory + layout->row_places, memory + layout->row_pages);
}

/* Puts the map of side values behind a spec and its labels, if they are wanted. */
static void
set_side(GpuRequest *request, const GpudsCountSide *side, GroupSpec *spec)
{
	request->side = side->name;
	spec->side_map = TYPEALIGN(sizeof(uint64), side->map_bytes);
	if (side->map_bytes == 0)
		return;
	memset((char *) spec + request->groups_bytes + spec->side_map - sizeof(uint64), 0, sizeof(uint64));
	memcpy((char *) spec + request->groups_bytes, side->map, side->map_bytes);
	request->groups_bytes += spec->side_map;
}

/* Puts what is said of groups in staging memory, for n intervals from the first on. */
static void
set_groups(GpuRequest *request, const GpudsCountGroups *groups, const CountAttempt *attempt, int64 first,
		   int64 n, char *to)
{
	const size_t bytes = group_spec_bytes(groups->spec);
	GroupSpec *spec = (GroupSpec *) to;

	memcpy(to, groups->spec, bytes);
	spec->spread = attempt->spread;
	spec->most = attempt->entries;
	if (spec->has_labels)
		memcpy(group_spec_labels(spec), groups->labels + first, n * sizeof(uint32));
	request->groups = gpuds_staging_offset(to);
	request->groups_bytes = bytes + group_label_bytes(spec, n);
	set_side(request, &groups->side, spec);
}

/* Puts what a count is joined with in staging memory. */
static void
set_join(GpuRequest *request, const GpudsCountJoin *from, const CountLayout *layout, char *memory)
{
	GpuJoin *join = (GpuJoin *) (memory + layout->join);
	const PageRows *rows = &from->rows;

	memset(join, 0, sizeof(*join));
	join->join = from->join;
	join->tree = from->tree->cuda.number;
	join->full = from->full;
	join->guard = (const uint64 *) &from->guard->value;
	join->expected = from->expected;
	join->map = gpuds_staging_offset(memory + layout->join_map);
	join->map_bytes = from->map_bytes;
	join->row_places = gpuds_staging_offset(memory + layout->join_row_places);
	join->row_pages = gpuds_staging_offset(memory + layout->join_row_pages);
	join->row_slots = rows->slots;
	join->row_words = rows->words;
	join->row_npages = rows->npages;
	join->touched = gpuds_staging_offset(memory + layout->touched);
	join->ntouched = from->ntouched;
	join->room = GPUDS_JOIN_ROOM;
	if (from->map_bytes > 0)
		memcpy(memory + layout->join_map, from->map, from->map_bytes);
	copy_rows(rows, memory + layout->join_row_places, memory + layout->join_row_pages);
	if (from->ntouched > 0)
		memcpy(memory + layout->touched, from->touched, from->ntouched * sizeof(GpudsEntry));
	request->join = gpuds_staging_offset(join);
}

/* Whose graph a session's is. */
static uint64
my_owner(void)
{
	return (uint64) GpudsMyBackendIndex() + 1;
}

/* Puts what is said of edges in staging memory. */
static void
set_edges(GpuRequest *request, const GpudsCountEdges *edges, char *to)
{
	memcpy(to, edges, sizeof(GpudsCountEdges));
	request->edges = gpuds_staging_offset(to);
	request->owner = my_owner();
}

/* Sets what a count's request has of its own, and puts it in staging memory. */
static void
set_count(GpuRequest *request, const GpudsCountSpec *spec, const CountLayout *layout, char *memory)
{
	if (spec->map_bytes > 0)
		memcpy(memory + layout->map, spec->map, spec->map_bytes);
	if (spec->nagg > 0)
		memcpy(memory + layout->agg_columns, spec->agg_columns, spec->nagg * sizeof(AggColumn));
	request->map = gpuds_staging_offset(memory + layout->map);
	request->map_bytes = spec->map_bytes;
	set_rows(request, &spec->rows, layout, memory);
	request->agg_columns = gpuds_staging_offset(memory + layout->agg_columns);
	request->nagg = spec->nagg;
	request->each = spec->each;
	if (spec->join)
		set_join(request, spec->join, layout, memory);
	if (spec->edges)
		set_edges(request, spec->edges, memory + layout->edges);
	request->unsorted = spec->unsorted;
}

/* Sets what a count's request has found. */
static void
set_found(GpudsCount *count, const GpudsCountSpec *spec, const GpuRequest *request, int64 n,
		  const CountLayout *layout, const char *memory)
{
	count->counted = request->counted;
	count->filtered = spec->groups ? request->filtered : 0;
	count->results = count->groups = (const uint64 *) memory;
	count->nresults = count_results(spec, n);
	count->ngroups = spec->groups || spec->join ? request->taken : 0;
	count->joined = spec->join ? request->joined : 0;
	count->tids = (const uint64 *) (memory + layout->items);
	count->entries = (const GpudsEntry *) (memory + layout->items);
	count->n = request->found;
}

/*
 * Counts the next intervals by one request with the room of an attempt.  Returns how many entries are to be
 * handed back.  There is room for them: *count has them, and the scan has moved.  There is not, or not for
 * the results: the scan has not moved.  -1: none can be had.  *crowded: entries were handed back because
 * their groups had no slot.
 */
static int64
ask_count(const ScanCall *call, GpudsScan *scan, const GpudsCountSpec *spec, const CountAttempt *attempt,
		  GpudsCount *count, bool *crowded)
{
	const int64 capacity = attempt->others;
	const int64 first = scan->next;
	int64 n = count_intervals(scan, spec, intervals_left(call, scan));
	CountLayout layout = count_layout(spec, n, capacity);
	GpudsMailbox *mailbox;
	GpuRequest *request;
	int64 found;
	char *memory;

	/*
	 * Where there is a result for each interval, or equal ones count once, all that are asked for must fit.
	 */
	if (is_whole(spec) &&
		layout.input + input_bytes(scan, n) > (size_t) gpuds_staging_memory_mb * 1024 * 1024 / 2)
		return PG_INT64_MAX;
	mailbox = gpuds_mailbox_open(call->epoch, false);
	if (mailbox == NULL)
		return -1;
	gpuds_staging_take(&count->span,
					   layout.input + (is_whole(spec) ? input_bytes(scan, n)
													  : Min(input_bytes(scan, n), GPUDS_UNIT_BYTES)),
					   layout.input + input_bytes(scan, n));
	n = Min(n, intervals_for(scan, (size_t) count->span.n * GPUDS_UNIT_BYTES - layout.input));
	memory = gpuds_staging_at(&count->span);
	set_count(&mailbox->request, spec, &layout, memory);
	if (spec->groups)
		set_groups(&mailbox->request, spec->groups, attempt, first, n, memory + layout.groups);
	request = ask(call, mailbox, &count->span, scan, n, capacity, memory + layout.input, memory);
	if (request == NULL)
	{
		gpuds_staging_give(&count->span);
		return -1;
	}
	found = request->found;
	*crowded = spec->groups && request->crowded > 0;
	set_found(count, spec, request, n, &layout, memory);
	gpuds_mailbox_close(mailbox);
	if (spec->join && count->ngroups > GPUDS_JOIN_ROOM)
		found = PG_INT64_MAX;
	if (found > capacity)
		gpuds_staging_give(&count->span);
	else
		gpuds_staging_shrink(&count->span, layout.items + found * count_item_bytes(spec));
	return found;
}

/* Of so many entries too many were handed back: found, in place of most.  How many to go through instead. */
static int64
fewer_entries(int64 entries, int64 found, int64 most)
{
	return Max((int64) ((double) entries * (double) most / (double) found / 2), most);
}

static GpuForm
form_of(const GpudsCountSpec *spec)
{
	if (spec->groups)
		return GPU_GROUPS;
	if (spec->join)
		return GPU_JOIN;
	if (spec->edges)
		return GPU_EDGES;
	return spec->partial ? GPU_AGGREGATE : GPU_COUNT;
}

static GpudsCountStatus
cuda_count(GpudsDeviceTree *tree, pg_atomic_uint64 *guard, uint64 expected, GpudsScan *scan,
		   const GpudsCountSpec *spec, GpudsCount *count)
{
	const int64 most = (int64) (GPUDS_PIECE_BYTES / 2 / count_item_bytes(spec));
	ScanCall call;
	CountAttempt attempt = { .others = (int64) (GPUDS_UNIT_BYTES / count_item_bytes(spec)),
							 .spread = spec->groups ? spec->groups->spec->spread : 1,
							 .entries = spec->groups ? spec->groups->spec->most : 0 };

	if (gpuds_count_known_bytes(spec) > GPUDS_COUNT_MAP_BYTES)
		return GPUDS_COUNT_TOO_LARGE;
	begin_call(&call, tree, guard, expected, true);
	/* Both trees must be of one worker, whose epoch goes with the request. */
	if (spec->join && pg_atomic_read_u64(&spec->join->tree->cuda.epoch) != call.epoch)
		return GPUDS_COUNT_WITHDRAWN;
	call.form = form_of(spec);
	call.item_bytes = count_item_bytes(spec);
	for (;;)
	{
		bool crowded = false;
		int64 found = ask_count(&call, scan, spec, &attempt, count, &crowded);

		if (found < 0)
			return GPUDS_COUNT_WITHDRAWN;
		if (found <= attempt.others)
			return GPUDS_COUNT_OK;
		/* There are more groups than were expected. */
		if (crowded && attempt.spread > 1)
		{
			attempt.spread = 1;
			continue;
		}
		/* Of fewer entries, fewer are handed back. */
		if (found > most && attempt.entries > most)
		{
			attempt.entries = fewer_entries(Min(attempt.entries, (int64) cuda_entries(tree)), found, most);
			continue;
		}
		if (found > most)
			return GPUDS_COUNT_TOO_LARGE;
		/* there may be a few more the next time */
		attempt.others = Min(found + found / 8, most);
	}
}

/* As many as go with a request that hands back as much as it may. */
static int64
cuda_most_unsorted(const GpudsCountSpec *spec)
{
	const GpudsScan points = { .points = (const uint64 *) spec };
	const size_t known = gpuds_count_known_bytes(spec);
	const size_t staging = Min((size_t) gpuds_staging_memory_mb * 1024 * 1024 / 2,
							   (size_t) GPUDS_SPAN_UNITS * GPUDS_UNIT_BYTES);
	/* with what else a request has, of constant size */
	const size_t others = GPUDS_PIECE_BYTES / 2 + GPUDS_UNIT_BYTES;

	if (known > GPUDS_COUNT_MAP_BYTES || known + others + sizeof(GpudsInterval) > staging)
		return 0;
	return intervals_for(&points, Min(GPUDS_PIECE_BYTES, staging - known - others));
}

/*
 * Copies of side values
 */

/* Sends a request about a copy that the mailbox has been filled with, and notes the copy's memory. */
static GpudsDeviceStatus
send_side(GpudsDeviceTree *tree, GpudsMailbox *mailbox, GpudsStagingSpan *span, uint64 epoch, bool patient)
{
	GpuRequest *request = &mailbox->request;
	GpudsDeviceStatus status;

	request->tree = tree->cuda.number;
	if (!gpuds_mailbox_send(mailbox, span, epoch, patient))
		return GPUDS_DEVICE_LOST;
	status = device_status(request->status);
	if (status == GPUDS_DEVICE_OK)
		pg_atomic_write_u64(&tree->cuda.side_bytes, request->bytes);
	count_work(request);
	gpuds_mailbox_close(mailbox);
	return status;
}

static GpudsDeviceStatus
cuda_side_begin(GpudsDeviceTree *tree, pg_atomic_uint64 *guard, uint64 expected, uint64 name, int rows,
				int row_bytes)
{
	uint64 epoch = pg_atomic_read_u64(&tree->cuda.epoch);
	GpudsMailbox *mailbox = gpuds_mailbox_open(epoch, false);
	GpudsDeviceStatus status;

	if (mailbox == NULL)
		return GPUDS_DEVICE_LOST;
	mailbox->request.kind = GPU_SIDE_BEGIN;
	mailbox->request.side = name;
	mailbox->request.n = rows;
	mailbox->request.cap = row_bytes;
	mailbox->request.guarded = true;
	mailbox->request.guard = (const uint64 *) &guard->value;
	mailbox->request.expected = expected;
	status = send_side(tree, mailbox, NULL, epoch, false);
	/* If the tree has been dropped since, no request will find the copy, and the name goes again. */
	if (status == GPUDS_DEVICE_OK)
		pg_atomic_write_u64(&tree->cuda.side, name);
	return status;
}

static GpudsDeviceStatus
cuda_side_put(GpudsDeviceTree *tree, uint64 name, const GpudsSidePut *put)
{
	const size_t numbers = TYPEALIGN(sizeof(uint64), put->n * sizeof(uint32));
	const size_t bytes = numbers + put->n * put->page_bytes;
	uint64 epoch = pg_atomic_read_u64(&tree->cuda.epoch);
	GpudsMailbox *mailbox = gpuds_mailbox_open(epoch, false);
	GpudsStagingSpan span = { 0, 0 };
	GpudsDeviceStatus status;
	char *input;

	if (mailbox == NULL)
		return GPUDS_DEVICE_LOST;
	gpuds_staging_take(&span, bytes, bytes);
	input = gpuds_staging_at(&span);
	memcpy(input, put->blocks, put->n * sizeof(uint32));
	if (!put->copy(put->arg, input + numbers))
	{
		gpuds_staging_give(&span);
		return GPUDS_DEVICE_LOST;
	}
	mailbox->request.kind = GPU_SIDE_PUT;
	mailbox->request.side = name;
	mailbox->request.n = put->n;
	mailbox->request.input = gpuds_staging_offset(input);
	status = send_side(tree, mailbox, &span, epoch, false);
	gpuds_staging_give(&span);
	if (status == GPUDS_DEVICE_LOST)
		note_side_gone(tree, name);
	return status;
}

static bool
cuda_side_drop(GpudsDeviceTree *tree)
{
	uint64 epoch = pg_atomic_read_u64(&tree->cuda.epoch);
	GpudsMailbox *mailbox = gpuds_mailbox_open(epoch, true);

	pg_atomic_write_u64(&tree->cuda.side, 0);
	if (mailbox == NULL)
		return false;
	mailbox->request.kind = GPU_SIDE_DROP;
	return send_side(tree, mailbox, NULL, epoch, true) == GPUDS_DEVICE_OK;
}

/*
 * Graphs
 */

/* Puts what a step is of in its request. */
static void
set_step(GpuRequest *request, const GpudsGraphStep *step, char *memory)
{
	request->kind = GPU_GRAPH;
	request->form = step->step;
	request->owner = my_owner();
	request->tree = step->tree;
	request->each = step->each;
	request->n = step->n;
	request->next = step->next;
	request->cap = step->cap;
	request->input = request->output = gpuds_staging_offset(memory);
	if (step->input_bytes > 0)
		memcpy(memory, step->input, step->input_bytes);
}

static void
take_step(const GpuRequest *request, GpudsGraphStep *step, const char *memory)
{
	const int64 items = step->step == GPU_GRAPH_WALK ? request->counted : request->found;

	step->found = request->found;
	step->counted = request->counted;
	step->taken = request->taken;
	step->joined = request->joined;
	if (step->output)
		memcpy(step->output, memory, items * step->item_bytes);
}

static GpudsDeviceStatus
cuda_graph_step(uint64 epoch, GpudsGraphStep *step, bool patient)
{
	const size_t bytes = Max(step->input_bytes, step->cap * step->item_bytes);
	GpudsMailbox *mailbox = gpuds_mailbox_open(epoch, patient);
	GpudsStagingSpan span = { 0, 0 };
	GpudsDeviceStatus status = GPUDS_DEVICE_LOST;
	char *memory;

	if (mailbox == NULL)
		return GPUDS_DEVICE_LOST;
	if (bytes > sizeof(mailbox->data))
		gpuds_staging_take(&span, bytes, bytes);
	memory = span.n > 0 ? gpuds_staging_at(&span) : mailbox->data;
	set_step(&mailbox->request, step, memory);
	if (gpuds_mailbox_send(mailbox, span.n > 0 ? &span : NULL, epoch, patient))
	{
		status = device_status(mailbox->request.status);
		count_work(&mailbox->request);
		if (status == GPUDS_DEVICE_OK)
			take_step(&mailbox->request, step, memory);
		gpuds_mailbox_close(mailbox);
	}
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
	.scan = cuda_scan,
	.rank = cuda_rank,
	.scan_tids = cuda_scan_tids,
	.agg_columns = true,
	.joins = true,
	.count = cuda_count,
	.most_unsorted = cuda_most_unsorted,
	.drop = cuda_drop,
	.side_begin = cuda_side_begin,
	.side_put = cuda_side_put,
	.side_drop = cuda_side_drop,
	.step_graph = cuda_graph_step,
	.verify = cuda_verify,
};
