/*-------------------------------------------------------------------------
 *
 * cuda_graph.c
 *	  Graphs on the CUDA device: steps of a search in the memory of one session.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "device/cuda_requests.h"

/* Whose graph a session's is. */
uint64
gpuds_cuda_owner(void)
{
	return (uint64) GpudsMyBackendIndex() + 1;
}

/* Puts what a step is of in its request. */
static void
set_step(GpuRequest *request, const GpudsGraphStep *step, char *memory)
{
	request->kind = GPU_GRAPH;
	request->form = step->step;
	request->owner = gpuds_cuda_owner();
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

/* The device's step_graph.  patient: waits for the former request, and raises no errors. */
GpudsDeviceStatus
gpuds_cuda_step_graph(uint64 epoch, GpudsGraphStep *step, bool patient)
{
	const size_t bytes = Max(step->input_bytes, step->cap * step->item_bytes);
	GpudsMailbox *mailbox = gpuds_mailbox_open(epoch, patient);
	GpudsStagingSpan span = { 0, 0 };
	GpudsDeviceStatus status = GPUDS_DEVICE_LOST;
	char *memory;

	if (mailbox == NULL)
		return GPUDS_DEVICE_LOST;
	if (bytes > sizeof(mailbox->data))
		gpuds_staging_take(&span, epoch, bytes, bytes);
	memory = span.n > 0 ? gpuds_staging_at(&span) : mailbox->data;
	set_step(&mailbox->request, step, memory);
	if (gpuds_mailbox_send(mailbox, span.n > 0 ? &span : NULL, epoch, patient))
	{
		status = gpuds_cuda_status(mailbox->request.status);
		gpuds_cuda_count_work(&mailbox->request);
		if (status == GPUDS_DEVICE_OK)
			take_step(&mailbox->request, step, memory);
		gpuds_mailbox_close(mailbox);
	}
	gpuds_staging_give(&span);
	return status;
}
