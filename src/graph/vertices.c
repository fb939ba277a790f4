/*-------------------------------------------------------------------------
 *
 * vertices.c
 *	  The vertices that have been come to, and the memory for them.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "graph/graph.h"

/* Vertices that there is room for at first, whatever the memory. */
#define FIRST_VERTICES 1024

/* Four slots for each three vertices. */
#define SLOTS(most) ((uint64) (most) + (most) / 3 + 1)

/*
 * Nothing has been come to.  words: of a vertex's code.  Arrays of these widths are kept beside the codes.
 * memory: bytes that all together may take.  Allocates in the current memory context.
 */
void
gpuds_vertices_begin(GpudsVertices *vertices, int words, int narrays, const int *width, size_t memory)
{
	Assert(narrays <= GPUDS_VERTEX_ARRAYS);
	memset(vertices, 0, sizeof(*vertices));
	vertices->map.words = words;
	vertices->narrays = narrays;
	memcpy(vertices->width, width, narrays * sizeof(int));
	vertices->memory = memory;
	vertices->context = CurrentMemoryContext;
}

/* Bytes that a vertex takes beside its slot. */
static size_t
bytes_of_vertex(const GpudsVertices *vertices)
{
	size_t bytes = vertices->map.words * sizeof(uint64);

	for (int i = 0; i < vertices->narrays; i++)
		bytes += vertices->width[i];
	return bytes;
}

/* How many vertices there is to be room for next; raises an error if that is no more than there are. */
static uint32
next_most(const GpudsVertices *vertices)
{
	const size_t slot = SLOTS(3) * sizeof(uint64) / 3;
	const size_t fit = (vertices->memory - vertices->others) / (bytes_of_vertex(vertices) + slot);
	const size_t most = Min(Max((size_t) vertices->map.most * 2, FIRST_VERTICES), Max(fit, FIRST_VERTICES));

	if (most <= vertices->map.most || most >= VERTEX_NONE)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("vertices of the graph do not fit into %zu kB of memory", vertices->memory / 1024),
				 errdetail("%u vertices have been reached.", vertices->map.n),
				 errhint("Increase \"work_mem\" or \"hash_mem_multiplier\".")));
	return (uint32) most;
}

static void *
resize(const GpudsVertices *vertices, void *array, size_t bytes)
{
	if (array == NULL)
		return MemoryContextAllocHuge(vertices->context, bytes);
	return repalloc_huge(array, bytes);
}

/* Makes room for more vertices. */
static void
grow(GpudsVertices *vertices)
{
	VertexMap *map = &vertices->map;

	map->most = next_most(vertices);
	map->codes = resize(vertices, map->codes, (size_t) map->most * map->words * sizeof(uint64));
	for (int i = 0; i < vertices->narrays; i++)
		vertices->array[i] = resize(vertices, vertices->array[i], (size_t) map->most * vertices->width[i]);
	if (map->slots)
		pfree(map->slots);
	map->nslots = SLOTS(map->most);
	map->slots = MemoryContextAllocHuge(vertices->context, map->nslots * sizeof(uint64));
	vertex_map_rebuild(map);
}

/*
 * Sets the numbers of n vertices, by their codes.  Those that are new get the next numbers, in order; what is
 * kept of them is not set.  Raises an error if they do not fit into the memory.
 */
void
gpuds_vertices_add(GpudsVertices *vertices, const uint64 *codes, int64 n, uint32 *numbers)
{
	int64 done = 0;

	CHECK_FOR_INTERRUPTS();
	if (vertices->map.most == 0)
		grow(vertices);
	for (;;)
	{
		done += vertex_map_add(&vertices->map, codes + done * vertices->map.words, n - done, numbers + done);
		if (done == n)
			return;
		grow(vertices);
	}
}

/* Forgets all vertices, and keeps the memory. */
void
gpuds_vertices_reset(GpudsVertices *vertices)
{
	vertex_map_clear(&vertices->map);
}
