/*-------------------------------------------------------------------------
 *
 * graph_memory.c
 *	  The memory that algorithms take from their host, and the calls that let it stop them.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "kernels/graph/graph_algorithms.h"

#define FIRST_SIZE 1024

/*
 * The array, with room for n elements at least; NULL: the host gives no memory, and the array is as it was.
 * It grows by half at least, so that many small steps take linear time.
 */
void *
graph_grow(GraphHost *host, void *array, uint64_t *size, uint64_t n, size_t width)
{
	uint64_t larger = *size + *size / 2;
	void *grown;

	if (n <= *size)
		return array;
	if (larger < n)
		larger = n;
	if (larger < FIRST_SIZE)
		larger = FIRST_SIZE;
	grown = host->resize(host->context, array, larger * width);
	if (grown == NULL)
		host->status = GRAPH_NO_MEMORY;
	else
		*size = larger;
	return grown;
}

/* A new array of n elements, zeroed if wanted; NULL: the host gives no memory. */
void *
graph_allocate(GraphHost *host, uint64_t n, size_t width, bool zeroed)
{
	const size_t bytes = (n > 0 ? n : 1) * width;
	void *array = host->resize(host->context, NULL, bytes);

	if (array == NULL)
		host->status = GRAPH_NO_MEMORY;
	else if (zeroed)
		memset(array, 0, bytes);
	return array;
}

/* Adds to the steps that were made since the host was called last, and calls it if they are many. */
bool
graph_step(GraphHost *host, int64_t *steps, int64_t done)
{
	*steps += done;
	if (*steps < GRAPH_STEPS)
		return true;
	*steps = 0;
	if (host->proceed(host->context))
		return true;
	host->status = GRAPH_STOPPED;
	return false;
}
