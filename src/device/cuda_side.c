/*-------------------------------------------------------------------------
 *
 * cuda_side.c
 *	  Copies of side values on the CUDA device.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "device/cuda_requests.h"

/* Sends a request about a copy that the mailbox has been filled with, and notes the copy's memory. */
static GpudsDeviceStatus
send_side(GpudsDeviceTree *tree, GpudsMailbox *mailbox, GpudsStagingSpan *span, uint64 epoch, bool patient)
{
	GpuRequest *request = &mailbox->request;
	GpudsDeviceStatus status;

	request->tree = tree->cuda.number;
	if (!gpuds_mailbox_send(mailbox, span, epoch, patient))
		return GPUDS_DEVICE_LOST;
	status = gpuds_cuda_status(request->status);
	if (status == GPUDS_DEVICE_OK)
		pg_atomic_write_u64(&tree->cuda.side_bytes, request->bytes);
	gpuds_cuda_count_work(request);
	gpuds_mailbox_close(mailbox);
	return status;
}

/* The device's side_begin: room for so many rows, under a name that later requests have. */
GpudsDeviceStatus
gpuds_cuda_side_begin(GpudsDeviceTree *tree, pg_atomic_uint64 *guard, uint64 expected, uint64 name, int rows,
					  int row_bytes)
{
	uint64 epoch = pg_atomic_read_u64(&tree->cuda.first.epoch);
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

/* The device's side_put.  What put->copy cannot give leaves the copy as it is. */
GpudsDeviceStatus
gpuds_cuda_side_put(GpudsDeviceTree *tree, uint64 name, const GpudsSidePut *put)
{
	const size_t numbers = TYPEALIGN(sizeof(uint64), put->n * sizeof(uint32));
	const size_t bytes = numbers + put->n * put->page_bytes;
	uint64 epoch = pg_atomic_read_u64(&tree->cuda.first.epoch);
	GpudsMailbox *mailbox = gpuds_mailbox_open(epoch, false);
	GpudsStagingSpan span = { 0, 0 };
	GpudsDeviceStatus status;
	char *input;

	if (mailbox == NULL)
		return GPUDS_DEVICE_LOST;
	gpuds_staging_take(&span, epoch, bytes, bytes);
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
		gpuds_cuda_side_gone(tree, name);
	return status;
}

/* The device's side_drop: raises no errors. */
bool
gpuds_cuda_side_drop(GpudsDeviceTree *tree)
{
	uint64 epoch = pg_atomic_read_u64(&tree->cuda.first.epoch);
	GpudsMailbox *mailbox = gpuds_mailbox_open(epoch, true);

	pg_atomic_write_u64(&tree->cuda.side, 0);
	if (mailbox == NULL)
		return false;
	mailbox->request.kind = GPU_SIDE_DROP;
	return send_side(tree, mailbox, NULL, epoch, true) == GPUDS_DEVICE_OK;
}
