/*-------------------------------------------------------------------------
 *
 * gpu_verify.h
 *	  Checking the memory of a tree in device memory, beside what the structure checks of it.
 *
 * Each node of the chunks is in use, free or retired, and only once: whatever leads to a node marks it.  The
 * first fault that any of the device's threads finds is put into words.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_VERIFY_H
#define GPU_VERIFY_H

#include "kernels/runtime/gpu_versioned.h"

/* What may be wrong with any node; a structure's own faults are higher numbers. */
enum GpuNodeFault
{
	GPU_SOUND,
	GPU_BAD_REF, /* not the place of a node of its kind */
	GPU_USED_TWICE
};

/* The nodes of one kind: which of the pool's chunks are theirs, and a bit a node. */
struct GpuOwned
{
	uint32_t *number; /* of each chunk of the pool: number among the kind's, + 1, or 0 */
	uint32_t nchunks; /* of the pool */
	uint32_t units;   /* of a node */
	uint32_t *marked;

	/* Number of the node with this ref; -1: no node has it. */
	GPU_FN int64_t node(GpuRef ref) const
	{
		uint32_t chunk = ref / GPU_CHUNK_UNITS;
		uint32_t unit = ref % GPU_CHUNK_UNITS;
		uint32_t per_chunk = GPU_CHUNK_UNITS / units;

		if (ref == 0 || chunk >= nchunks || number[chunk] == 0 || unit % units != 0 ||
			unit / units >= per_chunk)
			return -1;
		return (int64_t) (number[chunk] - 1) * per_chunk + unit / units;
	}

	/* Marks a node; false: it was marked. */
	GPU_FN bool mark(int64_t node) const
	{
		return (gpu_atomic_or(&marked[node / 32], 1u << (node % 32)) >> (node % 32) & 1) == 0;
	}
};

/* Notes a fault of the node at ref, unless it is GPU_SOUND.  The first one that is noted stays. */
GPU_FN void
gpu_note_fault(GpuFinding *finding, uint32_t fault, GpuRef ref)
{
	if (fault != GPU_SOUND && gpu_atomic_add(&finding->faults, 1) == 0)
	{
		finding->fault = fault;
		finding->ref = ref;
	}
}

/* Marks nodes as used; each must be so for the first time. */
struct GpuMark
{
	const GpuRef *ref;
	GpuOwned owned;
	GpuFinding *finding;

	GPU_FN void operator()(int64_t i) const
	{
		int64_t node = owned.node(ref[i]);

		if (node < 0)
			gpu_note_fault(finding, GPU_BAD_REF, ref[i]);
		else if (!owned.mark(node))
			gpu_note_fault(finding, GPU_USED_TWICE, ref[i]);
	}
};

/* Working memory. */
struct GpuVerify
{
	GpuFinding *finding;
	GpuOwned owned[GPU_SPACE_KINDS];
};

/* Words of marks of a kind. */
static inline size_t
gpu_verify_words(const GpuNodes *nodes)
{
	return nodes->chunks.size() * gpu_nodes_per_chunk(nodes) / 32 + 1;
}

/* Lays the working memory out in scratch, for all kinds of nodes that the tree has now. */
static inline void
gpu_verify_layout(GpuScratch *scratch, GpuVerify *v, const GpuChange *c, const GpuTree *tree)
{
	v->finding = gpu_scratch<GpuFinding>(scratch, 1);
	for (int kind = 0; kind < tree->space.nkinds; kind++)
	{
		GpuOwned *owned = &v->owned[kind];

		owned->number = gpu_scratch<uint32_t>(scratch, c->pool->nchunks);
		owned->marked = gpu_scratch<uint32_t>(scratch, (int64_t) gpu_verify_words(&tree->space.nodes[kind]));
	}
}

/* Sends to the device which chunks a kind of nodes has, and clears the marks. */
static inline void
gpu_verify_own(GpuChange *c, const GpuNodes *nodes, GpuOwned *owned)
{
	uint32_t *host = c->host_chunks;

	gpu_finish(&c->stream);
	memset(host, 0, c->pool->nchunks * sizeof(uint32_t));
	for (size_t i = 0; i < nodes->chunks.size(); i++)
		host[nodes->chunks[i]] = (uint32_t) i + 1;
	gpu_copy_bus(&c->stream, owned->number, host, c->pool->nchunks * sizeof(uint32_t));
	gpu_fill(&c->stream, owned->marked, 0, gpu_verify_words(nodes) * sizeof(uint32_t));
	owned->nchunks = c->pool->nchunks;
	owned->units = nodes->node_units;
}

/* Nothing was found yet, and no node is marked. */
static inline void
gpu_verify_begin(GpuChange *c, GpuVerify *v, const GpuTree *tree)
{
	gpu_report(c)->finding.faults = 0;
	gpu_fill(&c->stream, v->finding, 0, sizeof(GpuFinding));
	for (int kind = 0; kind < tree->space.nkinds; kind++)
		gpu_verify_own(c, &tree->space.nodes[kind], &v->owned[kind]);
}

/* Fetches what has been found so far; false: there is a fault. */
static inline bool
gpu_verify_look(GpuChange *c, const GpuVerify *v)
{
	gpu_copy_bus(&c->stream, &gpu_report(c)->finding, v->finding, sizeof(GpuFinding));
	return gpu_finish(&c->stream) && gpu_report(c)->finding.faults == 0;
}

/*
 * Marks n nodes of a kind as used, on the stream.  What is no node, or was marked, is a fault that
 * gpu_verify_look finds.
 */
static inline void
gpu_verify_mark(GpuChange *c, const GpuVerify *v, int kind, const GpuRef *refs, int64_t n)
{
	gpu_launch(&c->stream, n, GpuMark{ refs, v->owned[kind], v->finding });
}

/* Checks the nodes of each kind that are free or retired; with the live ones they must be all. */
static inline bool
gpu_verify_rest(GpuChange *c, const GpuTree *tree, const GpuVerify *v, const char *const *kinds, char *why,
				size_t whylen)
{
	for (int kind = 0; kind < tree->space.nkinds; kind++)
	{
		const GpuNodes *nodes = &tree->space.nodes[kind];
		uint32_t retired = nodes->retired_to - nodes->retired_from;
		uint64_t all = (uint64_t) nodes->chunks.size() * gpu_nodes_per_chunk(nodes);
		uint64_t known = (uint64_t) nodes->nlive + nodes->nfree + retired;

		gpu_verify_mark(c, v, kind, nodes->free.at, nodes->nfree);
		gpu_verify_mark(c, v, kind, nodes->retired.at + nodes->retired_from, retired);
		if (!gpu_verify_look(c, v))
			return false;
		if (known != all)
		{
			snprintf(why, whylen, "of %llu %s %llu are in use, unused or replaced", (unsigned long long) all,
					 kinds[kind], (unsigned long long) known);
			return false;
		}
	}
	return true;
}

/*
 * The answer of a check, which takes working memory of a span.  thing: what faults are noted of; words: those
 * for the structure's own faults.
 */
static inline GpuStatus
gpu_verify_end(GpuChange *c, GpuSpan *span, bool sound, const char *thing, const char *(*words)(uint32_t),
			   char *why, size_t whylen)
{
	const GpuFinding *finding = &gpu_report(c)->finding;

	gpu_span_give(c->pool, span);
	if (!gpu_change_ok(c))
		return gpu_change_status(c);
	if (finding->faults != 0)
		snprintf(why, whylen, "%s %u %s", thing, finding->ref,
				 finding->fault == GPU_BAD_REF      ? "is not the place of a node of its kind"
				 : finding->fault == GPU_USED_TWICE ? "is used twice"
													: words(finding->fault));
	return sound ? GPU_OK : GPU_DAMAGED;
}

#endif /* GPU_VERIFY_H */
