/*-------------------------------------------------------------------------
 *
 * gpu_load.h
 *	  Loading a tree into device memory from sorted entries that are added in batches.
 *
 * The entries go to nodes of the first kind.  Node i of a load begins with entry start(i), and is at place i
 * of the chunks of that kind, so nothing is noted about nodes until all are there.  Entries that do not make
 * a node yet are carried over to the next batch.
 *
 * What a structure knows of its nodes is a class Layout of these functions:
 *
 *	  uint64_t start(i, fill_percent)
 *	  uint64_t full(total, fill_percent)
 *					how many nodes the first total entries fill
 *	  void write(GpuChange *, const GpuTree *, const GpuLoaded &, n, total, source)
 *					writes n nodes from the first one on, of total entries so far
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_LOAD_H
#define GPU_LOAD_H

#include "kernels/runtime/gpu_versioned.h"

/*
 * Entries of nodes, ascending: some that were left over, then the input.  A source
 * has a function entry, which returns entry number i from the first node's on.
 */
struct GpuSource
{
	const GpudsEntry *carry;
	uint64_t ncarry;
	const GpudsEntry *input;

	template <int nw> GPU_FN GpudsEntry entry(uint64_t i) const
	{
		return i < ncarry ? carry[i] : input[i - ncarry];
	}
};

/* The nodes of a load. */
struct GpuLoaded
{
	const uint32_t *chunks; /* from the one that has node first on */
	uint64_t first;
	uint32_t units;
	uint32_t per_chunk;

	GpuLoaded(const GpuTree *tree, const uint32_t *first_chunk, uint64_t first_node)
		: chunks(first_chunk), first(first_node), units(tree->space.nodes[0].node_units),
		  per_chunk(gpu_nodes_per_chunk(&tree->space.nodes[0]))
	{
	}

	GPU_FN GpuRef ref(uint64_t node) const
	{
		return chunks[node / per_chunk - first / per_chunk] * GPU_CHUNK_UNITS +
			   (uint32_t) (node % per_chunk) * units;
	}
};

/* Sends the numbers of the chunks of the first kind, from chunk first on, to the device. */
static inline void
gpu_load_send_chunks(GpuChange *c, const GpuTree *tree, uint32_t *to, size_t first)
{
	const std::vector<uint32_t> &chunks = tree->space.nodes[0].chunks;
	size_t n = chunks.size() - first;

	if (n == 0)
		return;
	memcpy(c->host_chunks, &chunks[first], n * sizeof(uint32_t));
	gpu_copy_bus(&c->stream, to, c->host_chunks, n * sizeof(uint32_t));
}

/*
 * Begins to load a tree, which must not be there, with nodes of so many units, and so many entries in one of
 * the first kind.  GPU_NO_MEMORY: it is still not there.
 */
static inline GpuStatus
gpu_load_begin(GpuChange *c, GpuTree *tree, int nkinds, const uint32_t *node_units, int places,
			   uint32_t nwords, uint32_t fill_percent)
{
	if (tree->nwords != 0)
		return GPU_WITHDRAWN;
	if (!gpu_space_open(c, &tree->space, nkinds, node_units) ||
		!gpu_span_take(c->pool, &tree->load.carry, (size_t) places * sizeof(GpudsEntry)))
	{
		gpu_tree_close(c, tree);
		return gpu_change_ok(c) ? GPU_NO_MEMORY : gpu_change_status(c);
	}
	tree->nwords = nwords;
	tree->loading = true;
	tree->load.fill_percent = fill_percent;
	return gpu_change_status(c);
}

/* Room for the input; false: there is none. */
static inline bool
gpu_load_input(GpuChange *c, GpuLoad *load, size_t bytes)
{
	if (bytes <= gpu_span_bytes(&load->input))
		return true;
	gpu_span_give(c->pool, &load->input);
	return gpu_span_take(c->pool, &load->input, bytes);
}

/*
 * Adds n entries, which are in host memory that the device can use; all entries
 * of a load are strictly ascending.  GPU_NO_MEMORY, GPU_TOO_LARGE: nothing was added.
 */
template <typename Layout>
static inline GpuStatus
gpu_load_add(GpuChange *c, GpuTree *tree, const GpudsEntry *entries, int64_t n)
{
	GpuLoad *load = &tree->load;
	GpuNodes *nodes = &tree->space.nodes[0];
	const uint64_t total = load->entries + (uint64_t) n;
	const uint64_t first = load->nodes;
	const uint32_t fill = load->fill_percent;
	GpudsEntry *carry = (GpudsEntry *) load->carry.at;
	uint64_t full;
	uint64_t left;
	size_t chunk;

	if (!tree->loading)
		return GPU_WITHDRAWN;
	if (n <= 0)
		return gpu_change_status(c);
	if (total > GPU_MAX_ENTRIES)
		return GPU_TOO_LARGE;
	full = Layout::full(total, fill);
	left = total - Layout::start(full, fill);
	chunk = (size_t) first / gpu_nodes_per_chunk(nodes);
	if (!gpu_nodes_extend(c, nodes, gpu_nodes_chunks(nodes, full)) ||
		!gpu_load_input(c, load,
						(size_t) n * sizeof(GpudsEntry) + (nodes->chunks.size() - chunk) * sizeof(uint32_t)))
		return GPU_NO_MEMORY;

	GpudsEntry *input = (GpudsEntry *) load->input.at;
	uint32_t *chunks = (uint32_t *) (input + n);
	GpuSource source = { carry, load->entries - Layout::start(first, fill), input };

	gpu_load_send_chunks(c, tree, chunks, chunk);
	gpu_copy_bus(&c->stream, input, entries, (size_t) n * sizeof(GpudsEntry));
	Layout::write(c, tree, GpuLoaded(tree, chunks, first), full - first, total, source);
	if (full == first)
		gpu_copy(&c->stream, carry + source.ncarry, input, (size_t) n * sizeof(GpudsEntry));
	else
		gpu_copy(&c->stream, carry, input + ((uint64_t) n - left), left * sizeof(GpudsEntry));
	gpu_finish(&c->stream);
	load->entries = total;
	load->nodes = full;
	return gpu_change_status(c);
}

/* What is carried over to the end of a load: entries of the last node. */
template <typename Layout>
static inline GpuSource
gpu_load_rest(GpuChange *c, GpuTree *tree)
{
	GpuLoad *load = &tree->load;

	gpu_span_give(c->pool, &load->input);
	return { (const GpudsEntry *) load->carry.at,
			 load->entries - Layout::start(load->nodes, load->fill_percent), NULL };
}

#endif /* GPU_LOAD_H */
