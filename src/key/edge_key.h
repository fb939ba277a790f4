/*-------------------------------------------------------------------------
 *
 * edge_key.h
 *	  What entries of an index on the edges of a graph have: two vertices, and a weight.
 *
 * A vertex is the value of a column whose type is one of a few.  Its code is one word, or two of a uuid, high
 * one first, and is the same in any index, whatever the order and the place of the column: codes of equal
 * values are equal, and ascend as values do.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_KEY_EDGE_KEY_H
#define GPUDS_KEY_EDGE_KEY_H

#include "key/key.h"

/* Words of a vertex's code, at most. */
#define GPUDS_VERTEX_WORDS 2

/* Columns of the index that are the vertices of an edge. */
#define GPUDS_SOURCE 0
#define GPUDS_TARGET 1

/* Where a column's values are; which of these is set depends on the column. */
typedef struct GpudsEdgeColumn
{
	const GpudsKeyColumn *column;
	AggColumn bits; /* of values of 64 bits at most */
} GpudsEdgeColumn;

typedef struct GpudsEdgeKey
{
	const GpudsKeyLayout *layout;
	GpudsKeyKind kind; /* of vertices */
	int words;         /* of a vertex's code */
	GpudsEdgeColumn vertex[2];
	bool weighted;
	GpudsEdgeColumn weight;
	double unit;   /* of a weight's integers */
	uint64 origin; /* the code of 0 among them */
	bool side;     /* side values are wanted */
} GpudsEdgeKey;

/* Edges, one array for each thing that they have; the caller's. */
typedef struct GpudsEdgeArrays
{
	uint64 *sources; /* codes of vertices */
	uint64 *targets;
	double *weights; /* only of a weighted key; NULL weights are 0 */
	bool *unknown;   /* ... the weight is NULL */
	uint32 *from;    /* what the caller has of each entry, from which that of edges is kept; NULL: nothing */
} GpudsEdgeArrays;

extern int gpuds_vertex_words(GpudsKeyKind kind);
extern void gpuds_vertex_code(GpudsKeyKind kind, Datum value, uint64 *code);
extern Datum gpuds_vertex_value(GpudsKeyKind kind, const uint64 *code, GpudsKeyBytes *bytes);
extern bool gpuds_edge_key_is_weight(const GpudsKeyColumn *column);
extern void gpuds_edge_key_init(GpudsEdgeKey *key, const GpudsKeyLayout *layout, int weight);
extern int64 gpuds_edge_key_read(const GpudsEdgeKey *key, const GpudsEntry *entries, const uint8 *side,
								 int64 n, const GpudsEdgeArrays *edges);
extern double gpuds_edge_key_weight(const GpudsEdgeKey *key, int64 integer);
extern void gpuds_edge_key_probe_init(const GpudsEdgeKey *key, GpudsKeyProbe *probe);
extern void gpuds_edge_key_probe(const GpudsEdgeKey *key, const uint64 *code, uint64 number,
								 GpudsEntry *entry);

#endif /* GPUDS_KEY_EDGE_KEY_H */
