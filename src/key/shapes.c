/*-------------------------------------------------------------------------
 *
 * shapes.c
 *	  Many shapes, and which of them a point is in.
 *
 * Each shape is covered by squares of Z-order (quads.c).  Two squares are disjoint, or one is in the other.
 * So they are a forest, in which those that have a code are one of its squares and those around it.
 *
 * Nothing here takes long without checking for interrupts.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"

#include "key/quads.h"
#include "key/set.h"
#include "key/shape.h"

/* Quads of all shapes, at most, if each has more than one. */
#define MOST_QUADS (1024 * 1024)

/*
 * What quads of one shape may have too much, in its area, and those of many shapes, whose number that is.  To
 * make an interval, to sort and to look for it takes as long as to look at some twenty entries.  Of many
 * shapes, entries too many are in others, or looked at once for all.
 */
#define MANY_SHAPES 256
#define ENOUGH_OF_ONE 0.5
#define ENOUGH_OF_MANY 2.0

/* A square that a shape has a part in.  A shape has no two that have a code in common. */
typedef struct Square
{
	GpudsCode lo;
	int32 around; /* the nearest square around this one, or an equal one before it; -1: none */
	uint32 shape;
	uint8 bits; /* the lowest ones, in which its codes differ */
} Square;

struct GpudsShapes
{
	int most;      /* quads of a shape */
	double enough; /* of the area of a shape, that they may have too much */
	int64 n;
	int64 size;
	GpudsShape *shape;
	int64 nquads;
	int64 quads_size;
	GpudsQuad *quads; /* until gpuds_shapes_codes */
	Square *squares;  /* as many, by lo, larger ones first; NULL: a single shape is looked at itself */
};

/* The lowest code of a quad's square. */
static inline GpudsCode
square_of(const GpudsQuad *quad)
{
	return quad->codes.lo & ~gpuds_ones(quad->bits);
}

/* Squares by their lowest codes, larger ones before those in them. */
static inline int
compare_quads(const GpudsQuad *a, const GpudsQuad *b)
{
	const GpudsCode lo_a = square_of(a);
	const GpudsCode lo_b = square_of(b);

	if (lo_a != lo_b)
		return lo_a < lo_b ? -1 : 1;
	return (int) b->bits - (int) a->bits;
}

#define ST_SORT sort_quads
#define ST_ELEMENT_TYPE GpudsQuad
#define ST_COMPARE(a, b) compare_quads(a, b)
#define ST_CHECK_FOR_INTERRUPTS
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/* Begins a collection, of about so many shapes, in the current memory context. */
GpudsShapes *
gpuds_shapes_begin(int64 expected)
{
	GpudsShapes *shapes = palloc0(sizeof(GpudsShapes));

	shapes->most = (int) Max(1, Min(GPUDS_MAX_QUADS, MOST_QUADS / Max(expected, 1)));
	shapes->enough = expected < MANY_SHAPES ? ENOUGH_OF_ONE : ENOUGH_OF_MANY;
	shapes->size = shapes->quads_size = Max(expected, 1);
	shapes->shape = gpuds_alloc_array(shapes->size, sizeof(GpudsShape));
	shapes->quads = gpuds_alloc_array(shapes->quads_size, sizeof(GpudsQuad));
	return shapes;
}

/* Makes room for another shape and its quads. */
static void
ensure_capacity(GpudsShapes *shapes)
{
	if (shapes->n == shapes->size)
	{
		shapes->size *= 2;
		shapes->shape = repalloc_huge(shapes->shape, shapes->size * sizeof(GpudsShape));
	}
	if (shapes->nquads + GPUDS_MAX_QUADS > shapes->quads_size)
	{
		shapes->quads_size = 2 * (shapes->nquads + GPUDS_MAX_QUADS);
		shapes->quads = repalloc_huge(shapes->quads, shapes->quads_size * sizeof(GpudsQuad));
	}
}

/* Adds the quads of the last shape. */
static void
add_quads(GpudsShapes *shapes)
{
	int n;

	n = gpuds_quads(&shapes->shape[shapes->n].bounds, shapes->most, shapes->enough,
					shapes->quads + shapes->nquads);
	for (int i = 0; i < n; i++)
		shapes->quads[shapes->nquads + i].shape = (uint32) shapes->n;
	shapes->nquads += n;
	shapes->n++;
}

/*
 * Adds the shape of a value, as gpuds_shape_set has it.  Its number is how many there were before.  False: no
 * point is in it, and it is not added.
 */
bool
gpuds_shapes_add(GpudsShapes *shapes, Oid function, Datum value)
{
	ensure_capacity(shapes);
	if (!gpuds_shape_set(&shapes->shape[shapes->n], function, value))
		return false;
	add_quads(shapes);
	return true;
}

/* Adds a rectangle of codes, which is a box that decides. */
void
gpuds_shapes_add_rectangle(GpudsShapes *shapes, const GpudsRectangle *rectangle)
{
	ensure_capacity(shapes);
	memset(&shapes->shape[shapes->n], 0, sizeof(GpudsShape));
	shapes->shape[shapes->n].bounds = *rectangle;
	add_quads(shapes);
}

/* Is a square around another one, or equal to it? */
static inline bool
is_around(const Square *a, const Square *b)
{
	return a->bits >= b->bits && ((a->lo ^ b->lo) & ~gpuds_ones(a->bits)) == 0;
}

/* Makes the squares of quads in order. */
static void
make_squares(GpudsShapes *shapes)
{
	Square *squares = MemoryContextAllocHuge(GetMemoryChunkContext(shapes), shapes->nquads * sizeof(Square));

	for (int64 i = 0; i < shapes->nquads; i++)
	{
		const GpudsQuad *quad = &shapes->quads[i];
		int32 around = (int32) i - 1;

		squares[i].lo = square_of(quad);
		squares[i].bits = quad->bits;
		squares[i].shape = quad->shape;
		while (around >= 0 && !is_around(&squares[around], &squares[i]))
			around = squares[around].around;
		squares[i].around = around;
	}
	shapes->squares = squares;
}

/* Makes one range of those that follow each other in a set whose ranges are merged. */
static void
join_neighbors(GpudsCodeSet *set)
{
	int64 kept = 0;

	for (int64 i = 1; i < set->n; i++)
	{
		if (set->ranges[i].lo - 1 > set->ranges[kept].hi)
			set->ranges[++kept] = set->ranges[i];
		else
			set->ranges[kept].hi = set->ranges[i].hi;
	}
	set->n = Min(set->n, kept + 1);
}

/*
 * Sets the codes of all shapes, and of points near them, when all have been added; shapes can be found then.
 * The set is of the current memory context.
 */
void
gpuds_shapes_codes(GpudsShapes *shapes, GpudsCodeSet *set)
{
	if (shapes->n > 1)
	{
		if (shapes->nquads > PG_INT32_MAX)
			elog(ERROR, "too many shapes");
		sort_quads(shapes->quads, shapes->nquads);
		make_squares(shapes);
	}
	memset(set, 0, sizeof(*set));
	set->constrained = true;
	set->ranges = gpuds_alloc_array(shapes->nquads, sizeof(GpudsCodeRange));
	for (int64 i = 0; i < shapes->nquads; i++)
		set->ranges[i] = shapes->quads[i].codes;
	set->n = shapes->nquads;
	gpuds_set_merge_ranges(set);
	join_neighbors(set);
	pfree(shapes->quads);
	shapes->quads = NULL;
}

/* Memory of the shapes that have been added, and of the intervals that they become, about. */
Size
gpuds_shapes_bytes(const GpudsShapes *shapes)
{
	return shapes->n * sizeof(GpudsShape) + shapes->nquads * (sizeof(GpudsQuad) + sizeof(Square) +
															  sizeof(GpudsCodeRange) + sizeof(GpudsInterval));
}

/* The last square that begins at a code or before it, perhaps behind another one; -1: none does. */
static int64
last_begun(const GpudsShapes *shapes, GpudsCode code, int64 near)
{
	const Square *squares = shapes->squares;
	int64 lo = squares[near].lo <= code ? near : 0;
	int64 hi = lo;

	for (int64 step = 1; hi < shapes->nquads && squares[hi].lo <= code; step *= 2)
	{
		lo = hi + 1;
		hi += step;
	}
	hi = Min(hi, shapes->nquads);
	while (lo < hi)
	{
		const int64 middle = (lo + hi) / 2;

		if (squares[middle].lo <= code)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo - 1;
}

/*
 * Begins to look for the shapes that have the point of a code.  near: 0, or what was near (at->near) a code
 * that is not far away, which is faster.
 */
void
gpuds_shapes_find(const GpudsShapes *shapes, GpudsCode code, int64 near, GpudsShapesAt *at)
{
	at->code = code;
	gpuds_zorder_coordinates(code, &at->at[0], &at->at[1]);
	at->square = shapes->squares ? last_begun(shapes, code, near) : shapes->n - 1;
	at->near = Max(at->square, 0);
}

/* The same of an entry's first column, which is not NULL. */
void
gpuds_shapes_find_entry(const GpudsShapes *shapes, const GpudsKeyLayout *layout, const GpudsEntry *entry,
						int64 near, GpudsShapesAt *at)
{
	gpuds_shapes_find(shapes, gpuds_first_code(layout, entry), near, at);
}

/* The number of the next shape that has the point; -1: there is none.  Raises what core's operators do. */
int64
gpuds_shapes_next(const GpudsShapes *shapes, GpudsShapesAt *at)
{
	while (at->square >= 0)
	{
		const Square *square;

		if (shapes->squares == NULL)
		{
			at->square = -1;
			return gpuds_shape_has(&shapes->shape[0], at->at, at->code) ? 0 : -1;
		}
		square = &shapes->squares[at->square];
		at->square = square->around;
		if (((at->code ^ square->lo) & ~gpuds_ones(square->bits)) == 0 &&
			gpuds_shape_has(&shapes->shape[square->shape], at->at, at->code))
			return square->shape;
	}
	return -1;
}
