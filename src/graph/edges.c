/*-------------------------------------------------------------------------
 *
 * edges.c
 *	  Edges that the snapshot sees, of some vertices or of all, read from an index in batches.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/genam.h"
#include "access/skey.h"
#include "access/xact.h"
#include "utils/memutils.h"

#include "graph/graph.h"
#include "kernels/core/sort.h"
#include "reader/reader.h"

/* Entries of a page of an index at most. */
#define PAGE_ENTRIES ((int64) (BLCKSZ / (2 * sizeof(uint64))))

/* Entries that a device gives in the time that it finds a key. */
#define ENTRIES_OF_KEY 16

/* A device reads all edges for a search, once so large a part of them has been followed. */
#define PART_FOR_DEVICE 16

/* It asks for a graph that a device has kept earlier: all edges are counted for that. */
#define PART_FOR_NEWEST (64 * 1024)
#define LEAST_FOR_NEWEST 1024

/* Later if entries have changed since: all edges are looked for there. */
#define PART_FOR_KEPT (4 * 1024)
#define LEAST_FOR_KEPT 4096

/*
 * For reading edges again and again.  The index must stay open meanwhile.  Memory is the current context's.
 * Raises an error if the table is a materialized view that has not been populated.
 */
void
gpuds_edges_begin(GpudsEdges *edges, const GpudsGraphIndex *index)
{
	const GpudsTarget *target = &index->target;

	memset(edges, 0, sizeof(*edges));
	edges->index = index;
	edges->context = CurrentMemoryContext;
	edges->scan = gpuds_begin_scan(target->heap, target->index, target->snapshot, 0, true);
	gpuds_seen_begin(&edges->seen, edges->scan, &target->layout, index->key.side);
	gpuds_edge_key_probe_init(&index->key, &edges->probe);
}

/*
 * Begins to read all edges, in the order of the index.  Entries without a source come, too, and are no edges:
 * so the scan is of all entries that a version of a structure has.
 */
void
gpuds_edges_of_all(GpudsEdges *edges)
{
	const int64 entries = RelationGetNumberOfBlocks(edges->scan->indexRelation) * PAGE_ENTRIES;

	index_rescan(edges->scan, NULL, 0, NULL, 0);
	edges->nprobes = -1;
	gpuds_seen_start(&edges->seen, Min(entries / ENTRIES_OF_KEY, PG_INT32_MAX));
}

static void
free_probes(GpudsEdges *edges)
{
	if (edges->most_probes == 0)
		return;
	pfree(edges->probes);
	pfree(edges->scratch);
}

static void
ensure_probes(GpudsEdges *edges, int64 n)
{
	if (n <= edges->most_probes)
		return;
	free_probes(edges);
	edges->most_probes = Min(Max(n, 2 * edges->most_probes), GPUDS_MOST_SOURCES);
	edges->probes = MemoryContextAlloc(edges->context, edges->most_probes * sizeof(GpudsEntry));
	edges->scratch = MemoryContextAlloc(edges->context, edges->most_probes * sizeof(GpudsEntry));
}

/*
 * Begins to read the edges that lead out of n vertices, all different, GPUDS_MOST_SOURCES at most, by their
 * codes.  They come in the order of the index.
 */
void
gpuds_edges_of(GpudsEdges *edges, const uint64 *codes, int64 n)
{
	const int words = edges->index->key.words;

	Assert(n > 0 && n <= GPUDS_MOST_SOURCES);
	ensure_probes(edges, n);
	for (int64 i = 0; i < n; i++)
		gpuds_edge_key_probe(&edges->index->key, codes + i * words, (uint64) i, &edges->probes[i]);
	sort_entries(edges->probes, edges->scratch, n);
	gpuds_scan_set_probes(edges->scan, &edges->probe, edges->probes, n);
	edges->nprobes = n;
	edges->at = 0;
	gpuds_seen_start(&edges->seen, n);
}

static void
free_arrays(GpudsEdges *edges)
{
	if (edges->size == 0)
		return;
	pfree(edges->edges.sources);
	pfree(edges->edges.targets);
	pfree(edges->places);
	if (edges->edges.weights)
	{
		pfree(edges->edges.weights);
		pfree(edges->edges.unknown);
	}
}

/* Makes room for the edges of as many entries as a piece of the scan may have. */
static void
ensure_arrays(GpudsEdges *edges)
{
	const GpudsEdgeKey *key = &edges->index->key;
	const int64 size = edges->seen.size;

	if (size == edges->size)
		return;
	free_arrays(edges);
	edges->edges.sources = MemoryContextAlloc(edges->context, size * key->words * sizeof(uint64));
	edges->edges.targets = MemoryContextAlloc(edges->context, size * key->words * sizeof(uint64));
	edges->places = MemoryContextAlloc(edges->context, size * sizeof(uint32));
	if (key->weighted)
	{
		edges->edges.weights = MemoryContextAlloc(edges->context, size * sizeof(double));
		edges->edges.unknown = MemoryContextAlloc(edges->context, size * sizeof(bool));
	}
	edges->size = size;
}

/* Sets the places of the piece's sources: entries come in the order of the probes. */
static void
find_places(GpudsEdges *edges)
{
	const GpudsEntry *entries = edges->seen.entries;
	int64 at = edges->at;

	for (int64 i = 0; i < edges->seen.n; i++)
	{
		const uint64 w0 = entries[i].w0 & ~edges->probe.rest.w0;
		const uint64 w1 = entries[i].w1 & ~edges->probe.rest.w1;
		const uint64 t = entries[i].t & ~edges->probe.rest.t;

		while (edges->probes[at].w0 != w0 || edges->probes[at].w1 != w1 ||
			   (edges->probes[at].t & ~ENTRY_TID_MASK) != t)
		{
			if (++at == edges->nprobes)
				elog(ERROR, "index \"%s\" returned a vertex that was not asked for",
					 RelationGetRelationName(edges->scan->indexRelation));
		}
		edges->places[i] = (uint32) (edges->probes[at].t & ENTRY_TID_MASK);
	}
	edges->at = at;
}

/* Goes on to the next piece that has edges; false: there is none. */
bool
gpuds_edges_next(GpudsEdges *edges)
{
	GpudsSeenEntries *seen = &edges->seen;

	do
	{
		if (!gpuds_seen_next(seen))
			return false;
		ensure_arrays(edges);
		edges->edges.from = edges->nprobes >= 0 ? edges->places : NULL;
		if (edges->nprobes >= 0)
			find_places(edges);
		edges->n = gpuds_edge_key_read(&edges->index->key, seen->entries, seen->side, seen->n, &edges->edges);
	} while (edges->n == 0);
	return true;
}

/* Makes a piece of the edges that some entries have whose rows are seen; n: GPUDS_PIECE_ENTRIES at most. */
void
gpuds_edges_look_up(GpudsEdges *edges, const GpudsEntry *entries, int64 n)
{
	GpudsSeenEntries *seen = &edges->seen;

	gpuds_seen_look_up(seen, entries, n);
	ensure_arrays(edges);
	edges->edges.from = NULL;
	edges->n = gpuds_edge_key_read(&edges->index->key, seen->entries, NULL, seen->n, &edges->edges);
}

/* How many entries the mirror has that was read last; 0: there was none. */
int64
gpuds_edges_in_mirror(const GpudsEdges *edges)
{
	return gpuds_scan_mirror_entries(edges->scan);
}

/*
 * Has a search followed so many edges that a device may go on with a graph of all that it has kept, if it
 * has?  Its mirror need not be the one that was read.
 */
bool
gpuds_edges_may_take_graph(const GpudsEdges *edges, int64 followed)
{
	const int64 all = gpuds_edges_in_mirror(edges);
	const int64 least = edges->kept == GPUDS_KEPT_CHANGED ? Max(all / PART_FOR_KEPT, LEAST_FOR_KEPT)
														  : Max(all / PART_FOR_NEWEST, LEAST_FOR_NEWEST);

	return edges->kept != GPUDS_KEPT_TAKEN && followed >= least && gpuds_edges_fit_device(edges) &&
		   gpuds_scan_is_on_gpu(edges->scan);
}

/*
 * What searches before have followed since one had a graph made.  Of transactions that are serializable none
 * counts: a graph locks all of the index, for a search that may be short.
 */
static int64
followed_before(const GpudsEdges *edges)
{
	pg_atomic_uint64 *followed = gpuds_scan_followed(edges->scan);

	return followed == NULL || IsolationIsSerializable() ? 0 : (int64) pg_atomic_read_u64(followed);
}

/*
 * So many that a GPU, if one may have the mirror, may make a graph of all?  Those of searches before count as
 * well: so many short ones have one made, too.
 */
bool
gpuds_edges_may_make_graph(GpudsEdges *edges, int64 followed)
{
	const int64 all = gpuds_edges_in_mirror(edges);

	edges->followed = followed;
	return all > 0 && followed + followed_before(edges) >= all / PART_FOR_DEVICE &&
		   gpuds_edges_fit_device(edges) && gpuds_scan_may_be_on_gpu(edges->scan);
}

/* A graph is made of all: what has been followed has led to it. */
void
gpuds_edges_begin_graph(GpudsEdges *edges)
{
	pg_atomic_uint64 *followed = gpuds_scan_followed(edges->scan);

	edges->made = true;
	if (followed)
		pg_atomic_write_u64(followed, 0);
}

/* Has the searches to come know what this one has followed. */
static void
note_followed(const GpudsEdges *edges)
{
	pg_atomic_uint64 *followed = gpuds_scan_followed(edges->scan);

	if (followed && edges->followed > 0 && !edges->made)
		(void) pg_atomic_fetch_add_u64(followed, edges->followed);
}

/* Ends the scan, and frees what *edges has. */
void
gpuds_edges_end(GpudsEdges *edges)
{
	note_followed(edges);
	gpuds_seen_end(&edges->seen);
	index_endscan(edges->scan);
	free_probes(edges);
	free_arrays(edges);
}
