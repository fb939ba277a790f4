/*-------------------------------------------------------------------------
 *
 * device_path.c
 *	  Paths with the fewest edges, or of least cost, found by a device in a graph that it has.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "graph/graph.h"

/* Words of a step's output at most. */
#define MOST_WORDS ((int64) (GPUDS_GRAPH_BYTES / sizeof(uint64)))

/* Searches for a path from the first vertex of two to the second; *length: its vertices, 0: there is none. */
static bool
seek(const GpudsDeviceGraph *graph, const uint64 *ends, int64 most, int64 *length)
{
	GpudsGraphStep step = {
		.step = GPU_GRAPH_SEEK, .n = 2, .input = ends, .input_bytes = 2 * sizeof(uint64), .taken = 1
	};

	*length = 0;
	for (; most > 0 && step.taken > 0; most -= step.counted)
	{
		step.next = Min(most, GPUDS_WALK_DEPTHS);
		if (!gpuds_device_step(graph, &step))
			return false;
		step.n = 0;
		step.input_bytes = 0;
		*length = step.found;
	}
	return true;
}

/*
 * Finds a path from a vertex to another one, of so many edges at most, and hands it on as the first one.
 * False: the device has not done it, and nothing was handed on.
 */
bool
gpuds_device_path(const GpudsDeviceGraph *graph, uint64 source, uint64 target, int64 most, GpudsPutPath put,
				  void *arg)
{
	const uint64 ends[2] = { source, target };
	GpudsGraphStep step = { .step = GPU_GRAPH_PATH, .item_bytes = sizeof(uint64) };
	bool done;

	if (!seek(graph, ends, most, &step.cap) || step.cap > MOST_WORDS)
		return false;
	step.output = palloc(Max(step.cap, 1) * sizeof(uint64));
	done = step.cap == 0 || gpuds_device_step(graph, &step);
	if (done)
		put(arg, 0, step.output, step.cap);
	pfree(step.output);
	return done;
}

/* Searches for the path of least cost between two vertices; *length: its vertices, 0: there is none. */
static bool
seek_route(const GpudsDeviceGraph *graph, const uint64 *input, int64 *length)
{
	GpudsGraphStep step = { .step = GPU_GRAPH_SEEK,
							.n = 3,
							.input = input,
							.input_bytes = 3 * sizeof(uint64),
							.next = GPUDS_WALK_DEPTHS };

	do
	{
		if (!gpuds_device_step(graph, &step))
			return false;
		step.n = 0;
		step.input_bytes = 0;
	} while (step.taken > 0);
	*length = step.found;
	return true;
}

/*
 * Finds a path of least cost from a vertex to another one, whose integers are up to most together, and hands
 * it on as the first one.  False: the device has not done it, and nothing was handed on.
 */
bool
gpuds_device_route(const GpudsDeviceGraph *graph, uint64 source, uint64 target, uint64 most, GpudsPutPath put,
				   void *arg)
{
	const uint64 input[3] = { source, target, most };
	GpudsGraphStep step = { .step = GPU_GRAPH_PATH, .item_bytes = 2 * sizeof(uint64) };
	bool done;

	if (!seek_route(graph, input, &step.cap) || step.cap > MOST_WORDS / 2)
		return false;
	step.output = palloc(Max(step.cap, 1) * step.item_bytes);
	done = step.cap == 0 || gpuds_device_step(graph, &step);
	if (done)
		put(arg, 0, step.output, step.cap);
	pfree(step.output);
	return done;
}

/* Begins a walk from a vertex, and goes so many depths at most. */
static bool
walk_from(const GpudsDeviceGraph *graph, uint64 source, int64 most)
{
	GpudsGraphStep step = {
		.step = GPU_GRAPH_START, .n = 1, .input = &source, .input_bytes = sizeof(uint64)
	};

	if (!gpuds_device_step(graph, &step))
		return false;
	step = (GpudsGraphStep){ .step = GPU_GRAPH_WALK, .taken = 1 };
	for (; most > 0 && step.taken > 0; most -= step.counted)
	{
		step.n = Min(most, GPUDS_WALK_DEPTHS);
		if (!gpuds_device_step(graph, &step))
			return false;
	}
	return true;
}

/* Hands on the paths that a step has said, of which the first one is the i-th. */
static void
put_paths(const GpudsGraphStep *step, int64 i, GpudsPutPath put, void *arg)
{
	const uint64 *word = step->output;

	for (int64 end = i + step->taken; i < end; i++)
	{
		put(arg, i, word + 1, (int64) *word);
		word += 1 + *word;
	}
}

/*
 * Finds paths from a vertex to n others, of so many edges at most, and hands them on, one after the other.
 * False: the device has not done it to the end.
 */
bool
gpuds_device_paths(const GpudsDeviceGraph *graph, uint64 source, const uint64 *targets, int64 n, int64 most,
				   GpudsPutPath put, void *arg)
{
	GpudsGraphStep step = { .step = GPU_GRAPH_PATHS, .cap = MOST_WORDS, .item_bytes = sizeof(uint64) };
	bool done = walk_from(graph, source, most);

	step.output = palloc(GPUDS_GRAPH_BYTES);
	for (int64 i = 0; done && i < n; i += step.taken)
	{
		/* At most half of the words of the answer are those that say how long a path is. */
		step.n = Min(n - i, MOST_WORDS / 2);
		step.input = targets + i;
		step.input_bytes = step.n * sizeof(uint64);
		done = gpuds_device_step(graph, &step) && step.taken > 0;
		if (done)
			put_paths(&step, i, put, arg);
	}
	pfree(step.output);
	return done;
}
