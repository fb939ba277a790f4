/*-------------------------------------------------------------------------
 *
 * shortest_path.c
 *	  gpuds_shortest_path and gpuds_shortest_paths.
 *
 * A search goes on from both ends, in turn from the one that has less to do, if there is an index to follow
 * edges against their direction; else from the source alone.  A vertex that both have a label of is on a
 * path. The best one is the shortest if none that is still unknown costs less: such a path costs at least the
 * least label of either queue, together, and what the least edge costs in between.
 *
 * Pairs with one source follow each other, and go on with its search.
 *
 * A device goes on with all pairs that are left, once the search of one has followed many edges, if it has a
 * graph of them or may make one.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include <math.h>

#include "executor/nodeHash.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

#include "graph/path.h"

PG_FUNCTION_INFO_V1(gpuds_shortest_path);
PG_FUNCTION_INFO_V1(gpuds_shortest_paths);

/* Arguments. */
enum
{
	PATH_INDEX,
	PATH_SOURCE,
	PATH_TARGET,
	PATH_WEIGHT_COLUMN,
	PATH_REVERSE_INDEX,
	PATH_DIRECTED,
	PATH_MAX_COST
};

/* Pairs of one source, above which a device walks from the source through all that it reaches. */
#define FEW_TARGETS 4

/* A pair of vertices, by codes; number: as the caller counts them. */
typedef struct Pair
{
	uint64 source[GPUDS_VERTEX_WORDS];
	uint64 target[GPUDS_VERTEX_WORDS];
	int64 number;
} Pair;

typedef struct Paths
{
	GpudsGraphIndex forward;
	GpudsGraphIndex reverse;
	bool has_reverse;
	bool numbered; /* rows have the pair's number */
	double max_cost;
	double bound;      /* the same, and a little more */
	double least_edge; /* what an edge costs at least */
	GpudsPathSide sides[2];
	uint64 *meeting; /* codes of vertices that have been labelled */
	uint32 *found;   /* their numbers on the other side */
	ReturnSetInfo *result;

	double followed_before; /* edges, before the source at hand */
	bool directed;
	bool may_make_graph; /* on a device */

	/* of the pair at hand: the best path, and where both sides have met on it */
	double best;
	uint32 meet[2];
} Paths;

/*
 * Where both sides meet, costs have been added up in another order than from the source on, and
 * rounded otherwise.  So a search goes on to this many times max_cost, and its answer is looked at.
 */
#define ROUNDING (1 + 1e-9)

static void
open_indexes(Paths *paths, FunctionCallInfo fcinfo)
{
	const char *weight = PG_ARGISNULL(PATH_WEIGHT_COLUMN) ? NULL
														  : NameStr(*PG_GETARG_NAME(PATH_WEIGHT_COLUMN));

	gpuds_graph_open(PG_GETARG_OID(PATH_INDEX), weight, &paths->forward);
	paths->has_reverse = !PG_ARGISNULL(PATH_REVERSE_INDEX);
	if (paths->has_reverse)
		gpuds_graph_open_reverse(PG_GETARG_OID(PATH_REVERSE_INDEX), weight, &paths->forward, &paths->reverse);
	else if (!paths->directed)
		gpuds_graph_need_reverse(&paths->forward);
}

/* Begins the searches from both ends.  Without a second index, that from the target has the target alone. */
static void
begin_sides(Paths *paths)
{
	const GpudsGraphIndex *const one_way[2] = { &paths->forward, &paths->reverse };
	const GpudsGraphIndex *const other_way[2] = { &paths->reverse, &paths->forward };
	const size_t memory = get_hash_memory_limit() / (paths->has_reverse ? 2 : 1);
	const int n = paths->directed ? 1 : 2;

	gpuds_path_side_begin(&paths->sides[0], &paths->forward, n, one_way, paths->bound, memory);
	gpuds_path_side_begin(&paths->sides[1], &paths->forward, paths->has_reverse ? n : 0, other_way,
						  paths->bound, memory);
	paths->meeting = palloc(GPUDS_PIECE_ENTRIES * paths->forward.key.words * sizeof(uint64));
	paths->found = palloc(GPUDS_PIECE_ENTRIES * sizeof(uint32));
}

static void
begin_paths(Paths *paths, FunctionCallInfo fcinfo)
{
	paths->directed = PG_ARGISNULL(PATH_DIRECTED) || PG_GETARG_BOOL(PATH_DIRECTED);
	paths->may_make_graph = true;
	paths->result = (ReturnSetInfo *) fcinfo->resultinfo;
	paths->max_cost = PG_ARGISNULL(PATH_MAX_COST) ? INFINITY : PG_GETARG_FLOAT8(PATH_MAX_COST);
	paths->bound = paths->max_cost * ROUNDING;
	open_indexes(paths, fcinfo);
	paths->least_edge = paths->forward.key.weighted ? 0 : 1;
	begin_sides(paths);
}

static void
end(Paths *paths)
{
	for (int i = 0; i < 2; i++)
		gpuds_path_side_end(&paths->sides[i]);
	gpuds_graph_close(&paths->forward);
	if (paths->has_reverse)
		gpuds_graph_close(&paths->reverse);
}

/* A vertex is known on one side; its number on the other is found there, or not. */
static void
meet(Paths *paths, int side, uint32 number, uint32 found)
{
	double cost;

	if (found == VERTEX_NONE)
		return;
	cost = gpuds_path_costs(&paths->sides[side])[number] + gpuds_path_costs(&paths->sides[1 - side])[found];
	if (!(cost < paths->best) || cost > paths->bound)
		return;
	paths->best = cost;
	paths->meet[side] = number;
	paths->meet[1 - side] = found;
}

/* Looks on the other side for the vertices that one has labelled. */
static void
find_meetings(Paths *paths, int side)
{
	const GpudsPathSide *own = &paths->sides[side];
	const int words = own->vertices.map.words;

	for (int64 i = 0; i < own->nimproved; i++)
		memcpy(paths->meeting + i * words, gpuds_vertices_code(&own->vertices, own->improved[i]),
			   words * sizeof(uint64));
	vertex_map_find(&paths->sides[1 - side].vertices.map, paths->meeting, own->nimproved, paths->found);
	for (int64 i = 0; i < own->nimproved; i++)
		meet(paths, side, own->improved[i], paths->found[i]);
}

/* Has the best path been found, if one that is still unknown costs at least so much? */
static bool
is_done(const Paths *paths, double least)
{
	return paths->best <= least || least > paths->bound;
}

static double
count_followed(const Paths *paths)
{
	return paths->sides[0].nedges + paths->sides[1].nedges;
}

/* May a device make a graph of all edges, or, if not make, take the one that it has kept? */
static bool
may_use_graph(Paths *paths, bool make)
{
	GpudsEdges *edges = &paths->sides[0].edges[0];
	const int64 followed = (int64) (count_followed(paths) - paths->followed_before);

	return make ? paths->may_make_graph && gpuds_edges_may_make_graph(edges, followed)
				: gpuds_edges_may_take_graph(edges, followed);
}

/*
 * Follows edges from one side; false: a device may go on.  unfinished: the search need not be such that it
 * can go on.
 */
static bool
go_on(Paths *paths, int number, bool unfinished)
{
	GpudsPathSide *side = &paths->sides[number];
	const double other = gpuds_path_least(&paths->sides[1 - number]);

	gpuds_path_side_round(side, paths->best - other);
	while (gpuds_path_side_next(side))
	{
		find_meetings(paths, number);
		if (unfinished && is_done(paths, side->least + other + paths->least_edge))
		{
			side->broken = true;
			break;
		}
		if (may_use_graph(paths, false) || may_use_graph(paths, true))
			return false;
	}
	return true;
}

/* Finds the best path between the ends of both sides; false: a device may do it. */
static bool
find_path(Paths *paths, bool unfinished)
{
	const GpudsPathSide *sides = paths->sides;

	while (!sides[0].broken && !sides[1].broken)
	{
		const uint32 queued[2] = { gpuds_path_queued(&sides[0]), gpuds_path_queued(&sides[1]) };

		if (queued[0] == 0 || queued[1] == 0 ||
			is_done(paths, gpuds_path_least(&sides[0]) + gpuds_path_least(&sides[1]) + paths->least_edge))
			break;
		if (!go_on(paths, paths->has_reverse && queued[1] < queued[0] ? 1 : 0, unfinished))
			return false;
	}
	return true;
}

/* Begins the search of a pair, or goes on with that of the source. */
static void
start_pair(Paths *paths, const Pair *pair, bool same_source)
{
	GpudsPathSide *sides = paths->sides;
	uint32 found;

	if (!same_source || sides[0].broken)
	{
		gpuds_path_side_start(&sides[0], pair->source);
		paths->followed_before = count_followed(paths);
	}
	gpuds_path_side_start(&sides[1], pair->target);
	paths->best = INFINITY;
	vertex_map_find(&sides[0].vertices.map, pair->target, 1, &found);
	meet(paths, 1, 0, found);
}

static void
put_vertex(const Paths *paths, int64 pair, int32 step, const uint64 *code, double cost)
{
	GpudsKeyBytes bytes;
	Datum values[4];
	bool isnull[4] = { false, false, false, false };

	values[0] = Int64GetDatum(pair);
	values[1] = Int32GetDatum(step);
	values[2] = gpuds_graph_vertex(&paths->forward, code, &bytes);
	values[3] = Float8GetDatum(cost);
	tuplestore_putvalues(paths->result->setResult, paths->result->setDesc, values + !paths->numbered, isnull);
}

/* The vertices from the source to where both sides have met; *steps: how many edges that takes. */
static uint32 *
first_part(const Paths *paths, int32 *steps)
{
	const uint32 *parents = paths->sides[0].vertices.array[PATH_PARENT];
	uint32 *way;

	*steps = 0;
	for (uint32 at = paths->meet[0]; parents[at] != VERTEX_NONE; at = parents[at])
		(*steps)++;
	way = MemoryContextAllocHuge(CurrentMemoryContext, (*steps + (Size) 1) * sizeof(uint32));
	way[*steps] = paths->meet[0];
	for (int32 i = *steps; i > 0; i--)
		way[i - 1] = parents[way[i]];
	return way;
}

/* The cost of the best path, whose first part is given.  put: gives its vertices, too. */
static double
follow_path(const Paths *paths, int64 pair, const uint32 *way, int32 steps, bool put)
{
	const GpudsPathSide *sides = paths->sides;
	const uint32 *parents = sides[1].vertices.array[PATH_PARENT];
	double cost = 0;
	int32 step = steps;

	for (int32 i = 0; i <= steps; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (i > 0)
			cost += gpuds_path_step(&sides[0], way[i]);
		if (put)
			put_vertex(paths, pair, i, gpuds_vertices_code(&sides[0].vertices, way[i]), cost);
	}
	for (uint32 at = paths->meet[1]; parents[at] != VERTEX_NONE; at = parents[at])
	{
		CHECK_FOR_INTERRUPTS();
		cost += gpuds_path_step(&sides[1], at);
		if (put)
			put_vertex(paths, pair, ++step, gpuds_vertices_code(&sides[1].vertices, parents[at]), cost);
	}
	return cost;
}

/* Gives the best path, unless it costs too much. */
static void
put_path(const Paths *paths, int64 pair)
{
	int32 steps;
	uint32 *way = first_part(paths, &steps);

	if (!(follow_path(paths, pair, way, steps, false) > paths->max_cost))
		(void) follow_path(paths, pair, way, steps, true);
	pfree(way);
}

static int
compare_pairs(const void *a, const void *b)
{
	const Pair *one = a;
	const Pair *other = b;

	for (int i = 0; i < GPUDS_VERTEX_WORDS; i++)
	{
		if (one->source[i] != other->source[i])
			return one->source[i] < other->source[i] ? -1 : 1;
	}
	return (one->number > other->number) - (one->number < other->number);
}

static bool
have_same_source(const Pair *a, const Pair *b)
{
	return memcmp(a->source, b->source, sizeof(a->source)) == 0;
}

/* What a device does: the paths of n pairs, of which some are done. */
typedef struct DevicePaths
{
	Paths *paths;
	const Pair *pairs;
	int64 n;
	int64 done;
	bool rounded; /* whether the next one's path costs too much depends on how costs are rounded */
} DevicePaths;

static bool
is_one_vertex(const Pair *pair)
{
	return memcmp(pair->source, pair->target, sizeof(pair->source)) == 0;
}

/* Gives the path of the next pair.  A vertex has one to itself, also if the graph does not have it. */
static void
put_device_path(void *arg, int64 i, const uint64 *codes, int64 n)
{
	DevicePaths *device = arg;
	const Pair *pair = &device->pairs[device->done++];

	if (is_one_vertex(pair))
	{
		codes = pair->source;
		n = 1;
	}
	if ((double) n - 1 > device->paths->max_cost)
		return;
	for (int64 step = 0; step < n; step++)
	{
		CHECK_FOR_INTERRUPTS();
		put_vertex(device->paths, pair->number, (int32) step, &codes[step], (double) step);
	}
}

/* The cost of n edges of a path, of which the device has said what the path to each vertex costs. */
static double
cost_on_device(const Paths *paths, const uint64 *words, int64 n)
{
	double cost = 0;

	for (int64 i = 1; i <= n; i++)
		cost += gpuds_edge_key_weight(&paths->forward.key, (int64) (words[2 * i + 1] - words[2 * i - 1]));
	return cost;
}

/*
 * Gives the path of least cost of the next pair, as put_device_path, unless another path that costs the same
 * may be rounded to less.
 */
static void
put_device_route(void *arg, int64 i, const uint64 *words, int64 n)
{
	DevicePaths *device = arg;
	const Paths *paths = device->paths;
	const Pair *pair = &device->pairs[device->done];
	double cost = 0;

	device->rounded = cost_on_device(paths, words, n - 1) > paths->max_cost;
	if (device->rounded)
		return;
	device->done++;
	for (int64 step = 0; step < n; step++)
	{
		CHECK_FOR_INTERRUPTS();
		if (step > 0)
			cost += cost_on_device(paths, words + 2 * (step - 1), 1);
		put_vertex(paths, pair->number, (int32) step, &words[2 * step], cost);
	}
}

/* What the integers of a path's weights may be together. */
static uint64
most_on_device(const Paths *paths)
{
	const double most = floor(paths->bound * paths->forward.key.unit);

	return most < (double) PG_INT64_MAX ? (uint64) Max(most, 0) : GPUDS_ANY_COST;
}

/* How many of the pairs from the next one on have its source. */
static int64
count_same_source(const DevicePaths *device)
{
	const Pair *pairs = device->pairs + device->done;
	const int64 n = device->n - device->done;
	int64 same = 1;

	while (same < n && have_same_source(&pairs[same - 1], &pairs[same]))
		same++;
	return same;
}

/* Has the device find the path of the next pair, or those of n with its source; false: not to the end. */
static bool
find_next_on_device(const GpudsDeviceGraph *graph, DevicePaths *device, int64 n, int64 most)
{
	const Pair *pairs = device->pairs + device->done;
	uint64 *targets;
	bool done;

	if (is_one_vertex(pairs) && (graph->weighted || n <= FEW_TARGETS))
	{
		put_device_path(device, 0, NULL, 0);
		return true;
	}
	if (graph->weighted)
		return gpuds_device_route(graph, pairs->source[0], pairs->target[0], most_on_device(device->paths),
								  put_device_route, device) &&
			   !device->rounded;
	if (n <= FEW_TARGETS)
		return gpuds_device_path(graph, pairs->source[0], pairs->target[0], most, put_device_path, device);
	targets = MemoryContextAllocHuge(CurrentMemoryContext, n * sizeof(uint64));
	for (int64 i = 0; i < n; i++)
		targets[i] = pairs[i].target[0];
	done = gpuds_device_paths(graph, pairs->source[0], targets, n, most, put_device_path, device);
	pfree(targets);
	return done;
}

static bool
find_on_device(const GpudsDeviceGraph *graph, int64 vertices, void *arg)
{
	DevicePaths *device = arg;
	const double max_cost = device->paths->max_cost;
	const int64 most = max_cost < PG_INT32_MAX ? (int64) Max(max_cost, 0) : PG_INT32_MAX;

	while (device->done < device->n)
	{
		if (!find_next_on_device(graph, device, count_same_source(device), most))
			return false;
	}
	return true;
}

/* Has a device find the paths of n pairs; how many it has found, the first ones. */
static int64
find_by_device(Paths *paths, const Pair *pairs, int64 n)
{
	DevicePaths device = { .paths = paths, .pairs = pairs, .n = n };
	const bool make = may_use_graph(paths, true);

	paths->sides[0].broken = true;
	paths->may_make_graph &= !make;
	(void) gpuds_edges_use_device(&paths->sides[0].edges[0], !paths->directed,
								  make ? GPUDS_GRAPH_OF_ANY : GPUDS_GRAPH_OF_KEPT, find_on_device, &device);
	return device.done;
}

/* Finds the paths of n pairs, and puts them in order. */
static void
find_paths(Paths *paths, Pair *pairs, int64 n)
{
	qsort(pairs, n, sizeof(Pair), compare_pairs);
	for (int64 i = 0; i < n;)
	{
		start_pair(paths, &pairs[i], i > 0 && have_same_source(&pairs[i - 1], &pairs[i]));
		if (!find_path(paths, i + 1 == n || !have_same_source(&pairs[i], &pairs[i + 1])))
		{
			i += find_by_device(paths, pairs + i, n - i);
			continue;
		}
		if (isfinite(paths->best))
			put_path(paths, pairs[i].number);
		i++;
	}
}

static void
set_pair(const Paths *paths, Datum source, Datum target, int64 number, Pair *pair)
{
	memset(pair, 0, sizeof(*pair));
	gpuds_vertex_code(paths->forward.key.kind, source, pair->source);
	gpuds_vertex_code(paths->forward.key.kind, target, pair->target);
	pair->number = number;
}

/*
 * The pairs of two arrays' elements, without those that have a NULL; *n: how many there are.  Raises an error
 * if one array has more elements.
 */
static Pair *
pairs_of_arrays(const Paths *paths, ArrayType *sources, ArrayType *targets, int64 *n)
{
	const int64 elements = ArrayGetNItems(ARR_NDIM(sources), ARR_DIMS(sources));
	Pair *pairs = MemoryContextAllocHuge(CurrentMemoryContext, Max(elements, 1) * sizeof(Pair));
	ArrayIterator source = array_create_iterator(sources, 0, NULL);
	ArrayIterator target = array_create_iterator(targets, 0, NULL);
	Datum values[2];
	bool isnull[2];

	if (elements != ArrayGetNItems(ARR_NDIM(targets), ARR_DIMS(targets)))
		ereport(ERROR, (errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
						errmsg("arrays of sources and targets must have as many elements")));
	*n = 0;
	for (int64 number = 1;
		 array_iterate(source, &values[0], &isnull[0]) && array_iterate(target, &values[1], &isnull[1]);
		 number++)
	{
		if (!isnull[0] && !isnull[1])
			set_pair(paths, values[0], values[1], number, &pairs[(*n)++]);
	}
	array_free_iterator(source);
	array_free_iterator(target);
	return pairs;
}

/* Is what there is to look for not given? */
static bool
lacks_arguments(FunctionCallInfo fcinfo)
{
	return PG_ARGISNULL(PATH_INDEX) || PG_ARGISNULL(PATH_SOURCE) || PG_ARGISNULL(PATH_TARGET);
}

static MemoryContext
create_context(void)
{
	return AllocSetContextCreate(CurrentMemoryContext, "gpuds_shortest_path", ALLOCSET_DEFAULT_SIZES);
}

/*
 * gpuds_shortest_path(index regclass, source anyelement, target anyelement, weight_column name,
 * reverse_index regclass, directed boolean, max_cost double precision) returns table (step integer,
 * vertex anyelement, cost double precision)
 *
 * The vertices of a path from source to target that costs least, with their distance from the source in edges
 * and in cost; no rows if there is none, or if it costs more than max_cost.  An edge costs what it has in the
 * weight column, or 1 if none is named.  If not directed, edges are followed both ways.
 */
Datum
gpuds_shortest_path(PG_FUNCTION_ARGS)
{
	MemoryContext context = create_context();
	MemoryContext old;
	Paths paths;
	Pair pair;

	InitMaterializedSRF(fcinfo, 0);
	if (lacks_arguments(fcinfo))
		return (Datum) 0;
	old = MemoryContextSwitchTo(context);
	paths.numbered = false;
	begin_paths(&paths, fcinfo);
	gpuds_graph_check_type(&paths.forward, get_fn_expr_argtype(fcinfo->flinfo, PATH_SOURCE));
	set_pair(&paths, PG_GETARG_DATUM(PATH_SOURCE), PG_GETARG_DATUM(PATH_TARGET), 1, &pair);
	find_paths(&paths, &pair, 1);
	end(&paths);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return (Datum) 0;
}

/*
 * gpuds_shortest_paths(index regclass, sources anyarray, targets anyarray, weight_column name,
 * reverse_index regclass, directed boolean, max_cost double precision) returns table (pair bigint, step
 * integer, vertex anyelement, cost double precision)
 *
 * The same for the elements of two arrays that have the same place, which is the pair's number.
 */
Datum
gpuds_shortest_paths(PG_FUNCTION_ARGS)
{
	MemoryContext context = create_context();
	MemoryContext old;
	Paths paths;
	Pair *pairs;
	int64 n;

	InitMaterializedSRF(fcinfo, 0);
	if (lacks_arguments(fcinfo))
		return (Datum) 0;
	old = MemoryContextSwitchTo(context);
	paths.numbered = true;
	begin_paths(&paths, fcinfo);
	gpuds_graph_check_type(&paths.forward, ARR_ELEMTYPE(PG_GETARG_ARRAYTYPE_P(PATH_SOURCE)));
	pairs = pairs_of_arrays(&paths, PG_GETARG_ARRAYTYPE_P(PATH_SOURCE), PG_GETARG_ARRAYTYPE_P(PATH_TARGET),
							&n);
	find_paths(&paths, pairs, n);
	end(&paths);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return (Datum) 0;
}
