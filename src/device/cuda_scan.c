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

/* Fills in a request for up to cap items of the next n intervals, whose answer is to be in output. */
void
gpuds_cuda_set_scan(const GpudsCudaCall *call, GpuRequest *request, const GpudsScan *scan, int64 n, int64 cap,
					char *input, char *output)
{
	copy_intervals(scan, call->forward ? scan->next : scan->next - n, n, input);
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
}

/*
 * Moves the scan behind what a request has found that was filled in as above.  False: none can be had.
 */
bool
gpuds_cuda_accept(const GpudsCudaCall *call, const GpuRequest *request, GpudsScan *scan, int64 n, int64 cap)
{
	const int64 first = call->forward ? scan->next : scan->next - n;

	/* The guard does not say on which cards a tree is: it may be the next load's, which is elsewhere. */
	if (request->status != GPU_OK || !gpuds_cuda_is_layout(call->tree, call->layout) ||
		(call->other && !gpuds_cuda_is_layout(call->other, call->other_layout)))
	{
		if (request->status == GPU_WITHDRAWN && call->form == GPU_GROUPS && request->side != 0)
			gpuds_cuda_side_gone(call->tree, request->side);
		return false;
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
	return true;
}

/* Puts a scan's intervals in the mailbox if there is room for them and for the answer, or in the span. */
static void
fill_scan(GpudsCudaSend *send)
{
	GpudsCudaAsk *ask = (GpudsCudaAsk *) send;
	GpudsMailbox *mailbox = send->sent.mailbox;
	const size_t item_bytes = ask->call->item_bytes;
	char *input = mailbox->data;
	char *output = mailbox->data + GPUDS_INLINE_INPUT;

	if (send->most > 0)
	{
		const size_t half = (size_t) ask->span.n * GPUDS_UNIT_BYTES / 2;

		if (send->most > 2 * half)
		{
			ask->n = Min(ask->n, gpuds_cuda_most_intervals(ask->scan, half));
			ask->cap = Min(ask->cap, half / item_bytes);
		}
		output = gpuds_staging_at(&ask->span);
		input = output + ask->cap * item_bytes;
	}
	gpuds_cuda_set_scan(ask->call, &mailbox->request, ask->scan, ask->n, ask->cap, input, output);
}

/* Prepares to ask for at most cap items of a scan, of the form that the call has. */
static void
begin_ask(GpudsCudaAsk *ask, const GpudsCudaCall *call, GpudsScan *scan, int64 cap)
{
	const int64 left = gpuds_cuda_left(call, scan);

	memset(ask, 0, sizeof(*ask));
	ask->send.epoch = call->epoch;
	ask->send.fill = fill_scan;
	ask->call = call;
	ask->scan = scan;
	ask->cap = cap;
	ask->n = Min(left, GPU_SMALL_INTERVALS);
	if (call->form == GPU_ENTRIES && cap <= GPU_SMALL_ENTRIES)
		return;
	/* An interval has an entry or so. */
	ask->n = Min(left, Max(cap, GPU_SMALL_INTERVALS));
	ask->n = Min(ask->n, gpuds_cuda_most_intervals(scan, GPUDS_PIECE_BYTES));
	ask->cap = Min(cap, GPUDS_PIECE_BYTES / call->item_bytes);
	ask->send.sent.span = &ask->span;
	ask->send.most = gpuds_cuda_input_bytes(scan, ask->n) + ask->cap * call->item_bytes;
	ask->send.least = Min(ask->send.most, LEAST_SPAN_BYTES);
}

/* The same for entries. */
void
gpuds_cuda_begin_entries(GpudsCudaAsk *ask, GpudsCudaCall *call, GpudsScan *scan, int64 cap)
{
	call->form = GPU_ENTRIES;
	call->item_bytes = sizeof(GpudsEntry);
	begin_ask(ask, call, scan, cap);
}

/* The same for TIDs. */
void
gpuds_cuda_begin_tids(GpudsCudaAsk *ask, GpudsCudaCall *call, GpudsScan *scan, int64 cap)
{
	call->form = GPU_SORTED_TIDS;
	call->item_bytes = sizeof(uint64);
	begin_ask(ask, call, scan, cap);
}

/*
 * Takes the answer that has come, and moves the scan.  Returns how many items it has, which are in out; or
 * in the span if out is NULL and the request was no small one.  -1: none can be had, and there is no span.
 */
int64
gpuds_cuda_take_answer(GpudsCudaAsk *ask, void *out)
{
	GpudsMailbox *mailbox = ask->send.sent.mailbox;
	const char *from = mailbox->data + GPUDS_INLINE_INPUT;
	int64 found = -1;

	if (gpuds_cuda_accept(ask->call, &mailbox->request, ask->scan, ask->n, ask->cap))
		found = mailbox->request.found;
	if (ask->span.n > 0)
		from = gpuds_staging_at(&ask->span);
	if (out && found > 0)
		memcpy(out, from, found * ask->call->item_bytes);
	gpuds_mailbox_close(mailbox);
	if (out || found < 0)
		gpuds_staging_give(&ask->span);
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

	while (done < cap && gpuds_cuda_left(call, scan) > 0)
	{
		GpudsCudaAsk ask;
		GpudsCudaSend *send = &ask.send;
		int64 found = -1;

		gpuds_cuda_begin_entries(&ask, call, scan, cap - done);
		if (gpuds_cuda_send(&send, 1))
			found = gpuds_cuda_take_answer(&ask, out + done);
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
	GpudsCudaAsk ask;
	GpudsCudaSend *send = &ask.send;

	memset(tids, 0, sizeof(GpudsTids));
	gpuds_cuda_begin_tids(&ask, call, scan, cap);
	if (!gpuds_cuda_send(&send, 1))
		return false;
	tids->n = gpuds_cuda_take_answer(&ask, NULL);
	if (tids->n < 0)
		return false;
	tids->span = ask.span;
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
