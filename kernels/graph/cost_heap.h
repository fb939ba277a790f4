/*-------------------------------------------------------------------------
 *
 * cost_heap.h
 *	  The vertices that a search is still to go on from, the one of least cost first.
 *
 * A binary heap of numbers of vertices, whose costs are the caller's.  A vertex knows its place in it, so
 * that it can move up when its cost becomes less.  The arrays are the caller's, and have room for all
 * vertices.
 *
 *-------------------------------------------------------------------------
 */
#ifndef KERNELS_COST_HEAP_H
#define KERNELS_COST_HEAP_H

#include "kernels/core/entry.h"

/* The place of a vertex that is not in the heap. */
#define COST_HEAP_OUTSIDE UINT32_MAX

typedef struct CostHeap
{
	uint32_t *heap;   /* numbers of vertices */
	uint32_t *places; /* of each vertex */
	const double *costs;
	uint32_t n;
} CostHeap;

HOST_FN void
cost_heap_put(CostHeap *heap, uint32_t place, uint32_t vertex)
{
	heap->heap[place] = vertex;
	heap->places[vertex] = place;
}

/* Moves a vertex from a place up to where it belongs. */
HOST_FN void
cost_heap_rise(CostHeap *heap, uint32_t place, uint32_t vertex)
{
	const double cost = heap->costs[vertex];

	while (place > 0)
	{
		const uint32_t parent = (place - 1) / 2;

		if (!(cost < heap->costs[heap->heap[parent]]))
			break;
		cost_heap_put(heap, place, heap->heap[parent]);
		place = parent;
	}
	cost_heap_put(heap, place, vertex);
}

/* Adds a vertex, or moves one that is there: its cost has become less. */
HOST_FN void
cost_heap_add(CostHeap *heap, uint32_t vertex)
{
	const uint32_t place = heap->places[vertex];

	cost_heap_rise(heap, place == COST_HEAP_OUTSIDE ? heap->n++ : place, vertex);
}

/* Takes the vertex of least cost out of a heap that is not empty. */
HOST_FN uint32_t
cost_heap_take(CostHeap *heap)
{
	const uint32_t first = heap->heap[0];
	const uint32_t last = heap->heap[--heap->n];
	const double cost = heap->costs[last];
	uint32_t place = 0;

	heap->places[first] = COST_HEAP_OUTSIDE;
	if (heap->n == 0)
		return first;
	for (;;)
	{
		uint32_t child = 2 * place + 1;

		if (child >= heap->n)
			break;
		if (child + 1 < heap->n && heap->costs[heap->heap[child + 1]] < heap->costs[heap->heap[child]])
			child++;
		if (!(heap->costs[heap->heap[child]] < cost))
			break;
		cost_heap_put(heap, place, heap->heap[child]);
		place = child;
	}
	cost_heap_put(heap, place, last);
	return first;
}

#endif /* KERNELS_COST_HEAP_H */
