/*-------------------------------------------------------------------------
 *
 * persistent.h
 *	  Small scan requests: the host's side of the resident kernel.
 *
 * A launch takes longer than the lookup of a key, on both sides of the bus.  So
 * a kernel of a few blocks (persistent_kernel.h) stays on the GPU while requests keep
 * coming, each block looking at a slot of its own on a board in host memory
 * (request_ring.h).  The host posts a request by writing the slot, and sees to it that there
 * is a kernel as long as anything is posted.
 *
 * No kernel stays for longer than GPU_BOARD_LIFE_NS: whatever waits for the whole
 * device waits no longer than two of them take, for the next one may be in the
 * stream already.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_RESIDENT_H
#define GPU_RESIDENT_H

#include "kernels/engine/request_ring.h"
#include "kernels/engine/persistent_kernel.h"

/* Polls after which the host asks the driver for errors. */
#define GPU_RESIDENT_POLLS 256

struct GpuResident
{
	GpuStream stream;
	GpuPoster poster;
	GpuResidentBoard *board;        /* as the host sees it */
	GpuResidentBoard *device_board; /* ... and the device */
	GpuBoardState *state;           /* device memory */
	unsigned char *staging;         /* as the host sees it */
	unsigned char *device_staging;  /* ... and the device */
	uint32_t polls;
};

/*
 * The message of a request (gpu_is_small).  first takes the interval that the scan
 * is at.
 */
static inline void
gpu_resident_encode(const GpuResident *resident, const GpuView *view, const GpuRequest *r, int batch,
					uint32_t *word, GpudsInterval *first)
{
	const GpudsInterval *intervals = (const GpudsInterval *) (resident->staging + r->input);
	GpudsScan scan;

	memset(first, 0, sizeof(*first));
	scan.intervals = intervals;
	scan.points = r->points ? (const uint64_t *) (intervals + 1) : NULL;
	scan.n = r->n;
	scan.next = r->next;
	scan.inside = r->inside;
	scan.at = r->at;
	if (r->forward ? r->next < r->n : r->next > 0)
	{
		if (!entry_scan_rest(&scan, r->forward ? r->next : r->next - 1, r->forward, first))
		{
			first->lo.w0 = first->lo.w1 = first->lo.t = UINT64_MAX;
			first->hi.w0 = first->hi.w1 = first->hi.t = 0;
		}
	}
	word[RESIDENT_REQUEST] = (uint32_t) ((size_t) ((const unsigned char *) r - resident->staging) / 8);
	word[RESIDENT_INPUT] = (uint32_t) (r->input / 8);
	word[RESIDENT_OUTPUT] = (uint32_t) (r->output / 8);
	word[RESIDENT_ROOT] = view->root;
	word[RESIDENT_ENTRIES] = (uint32_t) view->entries;
	word[RESIDENT_TREE] = (uint32_t) view->height | (uint32_t) view->nwords << 8 |
						  (r->forward ? GPU_RESIDENT_FORWARD : 0) |
						  (r->points ? GPU_RESIDENT_HAS_POINTS : 0) |
						  (view->nwords == 1 ? GPU_RESIDENT_HAS_FIRST : 0) | view->structure << 24;
	word[RESIDENT_SCAN] = (uint32_t) r->n | (uint32_t) r->next << 16;
	word[RESIDENT_CAP] = (uint32_t) r->cap | (uint32_t) batch << 16;
	word[RESIDENT_LO] = (uint32_t) (first->lo.w0 >> 32);
	word[RESIDENT_LO + 1] = (uint32_t) first->lo.w0;
	word[RESIDENT_LO + 2] = (uint32_t) (first->lo.t >> 32);
	word[RESIDENT_LO + 3] = (uint32_t) first->lo.t;
	word[RESIDENT_HI] = (uint32_t) (first->hi.w0 >> 32);
	word[RESIDENT_HI + 1] = (uint32_t) first->hi.w0;
	word[RESIDENT_HI + 2] = (uint32_t) (first->hi.t >> 32);
	word[RESIDENT_HI + 3] = (uint32_t) first->hi.t;
}

/* staging and device_staging are the staging memory as host and device see it, in which all requests lie. */
static inline bool
gpu_resident_open(GpuResident *r, unsigned char *staging, unsigned char *device_staging)
{
	memset((void *) r, 0, sizeof(*r));
	if (!gpu_stream_open(&r->stream, true))
		return false;
	r->staging = staging;
	r->device_staging = device_staging;
	r->board = (GpuResidentBoard *) gpu_host_alloc(sizeof(GpuResidentBoard));
	r->device_board = r->board ? (GpuResidentBoard *) gpu_device_address(r->board) : NULL;
	r->state = (GpuBoardState *) gpu_alloc(sizeof(GpuBoardState));
	if (r->device_board == NULL || r->state == NULL)
		return false;
	r->poster.board = &r->board->board;
	gpu_fill(&r->stream, r->state, 0, sizeof(GpuBoardState));
	return gpu_finish(&r->stream);
}

/* Asks the kernel to leave; its stream comes to an end then. */
static inline void
gpu_resident_end(GpuResident *r)
{
	if (r->board)
		gpu_board_end(&r->board->board);
}

/* The kernel has left (gpu_quiet), or there was none. */
static inline void
gpu_resident_close(GpuResident *r)
{
	gpu_free(r->state, sizeof(GpuBoardState));
	gpu_host_free(r->board);
	gpu_stream_close(&r->stream);
	memset((void *) r, 0, sizeof(*r));
}

/* A slot for a request, -1: none is free. */
static inline int
gpu_resident_slot(const GpuResident *r)
{
	return gpu_board_slot(&r->poster);
}

/* Post a request, one of batch, in a free slot.  When all are posted, gpu_resident_keep must follow. */
static inline void
gpu_resident_post(GpuResident *resident, int slot, const GpuView *view, const GpuRequest *r, int batch)
{
	uint32_t word[GPU_BOARD_WORDS];

	gpu_resident_encode(resident, view, r, batch, word, &resident->board->first[slot]);
	gpu_board_post(&resident->poster, slot, word);
}

/* Sees to it that a kernel serves what is posted; base is the pool's. */
static inline void
gpu_resident_keep(GpuResident *r, const unsigned char *base)
{
	if (gpu_board_follow(&r->poster))
		gpu_resident_launch(&r->stream, r->device_board, r->state, base, r->device_staging, r->poster.kernel);
}

/*
 * Returns a bit for each slot that has become free.  If the device is lost,
 * stream.status says so.
 */
static inline uint32_t
gpu_resident_poll(GpuResident *r, const unsigned char *base)
{
	uint32_t ended;

	gpu_resident_keep(r, base);
	ended = gpu_board_collect(&r->poster);
	if (r->poster.busy != 0 && ++r->polls % GPU_RESIDENT_POLLS == 0)
		gpu_finished(&r->stream);
	return ended;
}

#endif /* GPU_RESIDENT_H */
