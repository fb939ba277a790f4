/*-------------------------------------------------------------------------
 *
 * cuda_scan.c
 *	  Scans on the CUDA device: the entries, the TIDs, or the ranks of intervals.
 *
 * A small scan travels in the mailbox, any other with a span of staging units.  What is
 * too large for one request goes in several.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "device/cuda_requests.h"

/* A scan takes so much staging memory if there is not as much as it would like. */
#define LEAST_SPAN_BYTES ((size_t) 2 * GPUDS_UNIT_BYTES)

/*
 * Fills in what is the same for all requests of a scan of one part.  guard: of the tree, expected to be of
 * that value.
 */
void
gpuds_cuda_begin_call(GpudsCudaCall *call, GpudsDeviceTree *tree, const GpudsCudaLayout *layout, int part,
					  pg_atomic_uint64 *guard, uint64 expected, bool forward)
{
	call->tree = tree;
	call->part = gpuds_cuda_part(tree, part);
	call->layout = layout->version;
	call->other = NULL;
	call->guard = guard;
	call->expected = expected;
	/* If another epoch is served by now, the tree is gone. */
	call->epoch = pg_atomic_read_u64(&call->part->epoch);
	call->forward = forward;
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
GpuRequest *
gpuds_cuda_ask(const GpudsCudaCall *call, GpudsMailbox *mailbox, GpudsStagingSpan *span, GpudsScan *scan,
			   int64 n, int64 cap, char *input, char *output)
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
	/* The guard does not say on which cards a tree is: it may be the next load's, which is elsewhere. */
	if (request->status != GPU_OK || !gpuds_cuda_is_layout(call->tree, call->layout) ||
		(call->other && !gpuds_cuda_is_layout(call->other, call->other_layout)))
	{
		if (request->status == GPU_WITHDRAWN && call->form == GPU_GROUPS && request->side != 0)
			gpuds_cuda_side_gone(call->tree, request->side);
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
	gpuds_cuda_count_work(request);
	return request;
}

/* A scan that the mailbox has room for.  Returns how many came; -1: none can be had. */
static int64
ask_small(const GpudsCudaCall *call, GpudsMailbox *mailbox, GpudsScan *scan, GpudsEntry *out, int64 cap)
{
	char *output = mailbox->data + GPUDS_INLINE_INPUT;
	int64 n = Min(gpuds_cuda_left(call, scan), GPU_SMALL_INTERVALS);
	GpuRequest *request = gpuds_cuda_ask(call, mailbox, NULL, scan, n, cap, mailbox->data, output);
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
ask_large(const GpudsCudaCall *call, GpudsMailbox *mailbox, GpudsScan *scan, int64 cap,
		  GpudsStagingSpan *span)
{
	int64 n = gpuds_cuda_left(call, scan);
	GpuRequest *request;
	size_t need;
	size_t half;
	int64 found = -1;

	/* An interval has an entry or so. */
	n = Min(n, Max(cap, GPU_SMALL_INTERVALS));
	n = Min(n, gpuds_cuda_most_intervals(scan, GPUDS_PIECE_BYTES));
	cap = Min(cap, GPUDS_PIECE_BYTES / call->item_bytes);
	need = gpuds_cuda_input_bytes(scan, n) + cap * call->item_bytes;
	gpuds_staging_take(span, call->epoch, Min(need, LEAST_SPAN_BYTES), need);
	half = (size_t) span->n * GPUDS_UNIT_BYTES / 2;
	if (need > 2 * half)
	{
		n = Min(n, gpuds_cuda_most_intervals(scan, half));
		cap = Min(cap, half / call->item_bytes);
	}
	request = gpuds_cuda_ask(call, mailbox, span, scan, n, cap,
							 gpuds_staging_at(span) + cap * call->item_bytes, gpuds_staging_at(span));
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
ask_entries(const GpudsCudaCall *call, GpudsScan *scan, GpudsEntry *out, int64 cap)
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

/*
 * The next entries of a scan, at most cap; fewer: no more.  -1: none can be had, and the scan has not moved.
 */
int64
gpuds_cuda_scan(GpudsCudaCall *call, GpudsScan *scan, GpudsEntry *out, int64 cap)
{
	GpudsScan start = *scan;
	int64 done = 0;

	call->form = GPU_ENTRIES;
	call->item_bytes = sizeof(GpudsEntry);
	while (done < cap && gpuds_cuda_left(call, scan) > 0)
	{
		int64 found = ask_entries(call, scan, out + done, cap - done);

		if (found < 0)
		{
			*scan = start;
			return -1;
		}
		done += found;
	}
	return done;
}

/* A piece of a scan as TIDs: *tids has a span that is the caller's to give back.  false: none can be had. */
bool
gpuds_cuda_scan_tids(GpudsCudaCall *call, GpudsScan *scan, int64 cap, GpudsTids *tids)
{
	GpudsMailbox *mailbox;

	call->form = GPU_SORTED_TIDS;
	call->item_bytes = sizeof(uint64);
	memset(tids, 0, sizeof(GpudsTids));
	mailbox = gpuds_mailbox_open(call->epoch, false);
	if (mailbox == NULL)
		return false;
	tids->n = ask_large(call, mailbox, scan, cap, &tids->span);
	if (tids->n < 0)
		return false;
	gpuds_staging_shrink(&tids->span, tids->n * sizeof(uint64));
	tids->tids = (const uint64 *) gpuds_staging_at(&tids->span);
	return true;
}

/* Finds entries by ranks: one request for n intervals.  false: no answer can be had. */
bool
gpuds_cuda_rank(const GpudsCudaCall *call, const GpudsInterval *intervals, const uint64 *ranks, int64 n,
				GpudsRanked *ranked)
{
	const uint64 epoch = call->epoch;
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
	gpuds_staging_take(&span, epoch, bytes, bytes);
	memory = gpuds_staging_at(&span);
	memcpy(memory, intervals, input);
	memcpy(memory + input, ranks, n * sizeof(uint64));
	request = &mailbox->request;
	request->kind = GPU_SCAN;
	request->tree = call->tree->cuda.number;
	request->form = GPU_RANKED;
	request->forward = true;
	request->guarded = true;
	request->guard = (const uint64 *) &call->guard->value;
	request->expected = call->expected;
	request->input = gpuds_staging_offset(memory);
	request->output = gpuds_staging_offset(memory + output);
	request->n = n;
	request->cap = n + 1;
	if (gpuds_mailbox_send(mailbox, &span, epoch, false))
	{
		done = request->status == GPU_OK && gpuds_cuda_is_layout(call->tree, call->layout);
		if (done)
		{
			gpuds_cuda_count_work(request);
			memcpy(ranked, memory + output, n * sizeof(GpudsRanked));
		}
		gpuds_mailbox_close(mailbox);
	}
	gpuds_staging_give(&span);
	return done;
}
