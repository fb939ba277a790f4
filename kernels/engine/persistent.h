/*-------------------------------------------------------------------------
 *
 * persistent.h
 *	  Small scan requests: the host's side of the persistent kernel.
 *
 * A launch takes longer than the lookup of a key, on both sides of the bus.  So
 * a kernel of a few blocks (persistent_kernel.h) stays on the GPU while requests keep
 * coming, each block looking at a slot of its own on a ring in host memory
 * (request_ring.h).  The host posts a request by writing the slot, and sees to it that there
 * is a kernel as long as anything is posted.
 *
 * No kernel stays for longer than GPU_RING_LIFETIME_NS: whatever waits for the whole
 * device waits no longer than two of them take, for the next one may be in the
 * stream already.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_PERSISTENT_H
#define GPU_PERSISTENT_H

#include "kernels/engine/request_ring.h"
#include "kernels/engine/persistent_kernel.h"

/* Polls after which the host asks the driver for errors. */
#define GPU_PERSISTENT_POLLS 256

struct GpuPersistent
{
	GpuStream stream;
	GpuPoster poster;
	GpuPersistentRing *ring;        /* as the host sees it */
	GpuPersistentRing *device_ring; /* ... and the device */
	GpuRingState *state;            /* device memory */
	unsigned char *staging;         /* as the host sees it */
	unsigned char *device_staging;  /* ... and the device */
	uint32_t polls;
};

/*
 * The message of a request (gpu_is_small).  first takes the interval that the scan
 * is at.
 */
static inline void
gpu_persistent_encode(const GpuPersistent *persistent, const GpudsView *view, const GpuRequest *r, int batch,
					  uint32_t *word, GpudsInterval *first)
{
	const GpudsInterval *intervals = (const GpudsInterval *) (persistent->staging + r->input);
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
	word[PERSISTENT_REQUEST] = (uint32_t) ((size_t) ((const unsigned char *) r - persistent->staging) / 8);
	word[PERSISTENT_INPUT] = (uint32_t) (r->input / 8);
	word[PERSISTENT_OUTPUT] = (uint32_t) (r->output / 8);
	word[PERSISTENT_ROOT] = view->root;
	word[PERSISTENT_ENTRIES] = (uint32_t) view->entries;
	word[PERSISTENT_TREE] = (uint32_t) view->height | (uint32_t) view->nwords << 8 |
							(r->forward ? GPU_PERSISTENT_FORWARD : 0) |
							(r->points ? GPU_PERSISTENT_HAS_POINTS : 0) |
							(view->nwords == 1 ? GPU_PERSISTENT_HAS_FIRST : 0) | view->structure << 24;
	word[PERSISTENT_SCAN] = (uint32_t) r->n | (uint32_t) r->next << 16;
	word[PERSISTENT_CAP] = (uint32_t) r->cap | (uint32_t) batch << 16;
	word[PERSISTENT_LO] = (uint32_t) (first->lo.w0 >> 32);
	word[PERSISTENT_LO + 1] = (uint32_t) first->lo.w0;
	word[PERSISTENT_LO + 2] = (uint32_t) (first->lo.t >> 32);
	word[PERSISTENT_LO + 3] = (uint32_t) first->lo.t;
	word[PERSISTENT_HI] = (uint32_t) (first->hi.w0 >> 32);
	word[PERSISTENT_HI + 1] = (uint32_t) first->hi.w0;
	word[PERSISTENT_HI + 2] = (uint32_t) (first->hi.t >> 32);
	word[PERSISTENT_HI + 3] = (uint32_t) first->hi.t;
}

/* staging and device_staging are the staging memory as host and device see it, in which all requests lie. */
static inline bool
gpu_persistent_open(GpuPersistent *r, unsigned char *staging, unsigned char *device_staging)
{
	memset((void *) r, 0, sizeof(*r));
	if (!gpu_stream_open(&r->stream, true))
		return false;
	r->staging = staging;
	r->device_staging = device_staging;
	r->ring = (GpuPersistentRing *) gpu_host_alloc(sizeof(GpuPersistentRing));
	r->device_ring = r->ring ? (GpuPersistentRing *) gpu_device_address(r->ring) : NULL;
	r->state = (GpuRingState *) gpu_alloc(sizeof(GpuRingState));
	if (r->device_ring == NULL || r->state == NULL)
		return false;
	r->poster.ring = &r->ring->ring;
	gpu_fill(&r->stream, r->state, 0, sizeof(GpuRingState));
	return gpu_finish(&r->stream);
}

/* Asks the kernel to leave; its stream comes to an end then. */
static inline void
gpu_persistent_end(GpuPersistent *r)
{
	if (r->ring)
		gpu_ring_end(&r->ring->ring);
}

/* The kernel has left (gpu_quiet), or there was none. */
static inline void
gpu_persistent_close(GpuPersistent *r)
{
	gpu_free(r->state, sizeof(GpuRingState));
	gpu_host_free(r->ring);
	gpu_stream_close(&r->stream);
	memset((void *) r, 0, sizeof(*r));
}

/* A slot for a request, -1: none is free. */
static inline int
gpu_persistent_slot(const GpuPersistent *r)
{
	return gpu_ring_slot(&r->poster);
}

/* Post a request, one of batch, in a free slot.  When all are posted, gpu_persistent_keep must follow. */
static inline void
gpu_persistent_post(GpuPersistent *persistent, int slot, const GpudsView *view, const GpuRequest *r,
					int batch)
{
	uint32_t word[GPU_RING_WORDS];

	gpu_persistent_encode(persistent, view, r, batch, word, &persistent->ring->first[slot]);
	gpu_ring_post(&persistent->poster, slot, word);
}

/* Sees to it that a kernel serves what is posted; base is the pool's. */
static inline void
gpu_persistent_keep(GpuPersistent *r, const unsigned char *base)
{
	if (gpu_ring_follow(&r->poster))
		gpu_persistent_launch(&r->stream, r->device_ring, r->state, base, r->device_staging,
							  r->poster.kernel);
}

/*
 * Returns a bit for each slot that has become free.  If the device is lost,
 * stream.status says so.
 */
static inline uint32_t
gpu_persistent_poll(GpuPersistent *r, const unsigned char *base)
{
	uint32_t ended;

	gpu_persistent_keep(r, base);
	ended = gpu_ring_collect(&r->poster);
	if (r->poster.busy != 0 && ++r->polls % GPU_PERSISTENT_POLLS == 0)
		gpu_finished(&r->stream);
	return ended;
}

#endif /* GPU_PERSISTENT_H */
