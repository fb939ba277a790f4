/*-------------------------------------------------------------------------
 *
 * request.h
 *	  What a GPU is asked for: a request, what it may ask, and how it is answered.
 *	  Plain C.
 *
 * Requests lie in the staging memory, which the GPU can read and write too.
 * The sender of a request sets the fields of its first part and done = 0, hands
 * it over (engine.h), and leaves it and all that it refers to alone until done is 1.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_REQUEST_H
#define GPU_REQUEST_H

#include "kernels/core/entry.h"
#include "kernels/core/entry_join.h"
#include "kernels/core/group_spec.h"
#include "kernels/core/page_rows.h"
#include "kernels/core/partial_agg.h"

/* A tree has no more entries: their ranks are numbers of 32 bits. */
#define GPU_MAX_ENTRIES UINT64_C(0xFFFFFFFE)

/* Scans of no more intervals and entries are small. */
#define GPU_SMALL_INTERVALS 32
#define GPU_SMALL_ENTRIES 256

/* Columns that a scan adds up. */
#define GPU_AGG_COLUMNS 4

/* Words of a PartialAgg. */
#define GPU_PARTIAL_AGG_WORDS ((int) (sizeof(PartialAgg) / sizeof(uint64_t)))

typedef enum GpuRequestKind
{
	GPU_SCAN, /* the next entries of a scan */
	/*
	 * drops the tree, if there is one or a part of one, and begins a new one.  n: entries that will
	 * come at least, 0: not known
	 */
	GPU_LOAD_BEGIN,
	GPU_LOAD_ADD, /* input: GpudsEntry[n], strictly ascending over all calls */
	GPU_LOAD_END, /* publish */
	/* input: GpudsOp[n] in any order; the highest order of an entry has the last word */
	GPU_APPLY,
	/* withdraw the tree, wait for its scans, give all memory back; whatever has been done of its load */
	GPU_DROP,
	GPU_VERIFY, /* check the structure; output: text of cap bytes */
	/*
	 * begin a copy of side values (side_pages.h) for a tree, in place of the one that it has.  n: rows of a
	 * page, cap: bytes of a row, a multiple of 8
	 */
	GPU_SIDE_BEGIN,
	/* input: uint32_t[n] numbers of pages, a multiple of 8 bytes, then the side values of each */
	GPU_SIDE_PUT,
	GPU_SIDE_DROP, /* give the memory of the tree's copy back, if it has one */
	GPU_GRAPH      /* a step of a walk over the owner's graph: see GpuGraphStep */
} GpuRequestKind;

/* What a scan's output consists of. */
typedef enum GpuForm
{
	GPU_ENTRIES,     /* GpudsEntry, in the scan's order */
	GPU_SORTED_TIDS, /* uint64_t, entry's t & ENTRY_TID_MASK, ascending */
	GPU_COUNT,       /* the same, of entries that are not counted: see GpuRequest */
	GPU_AGGREGATE,   /* results, then entries that are not in them: likewise */
	GPU_GROUPS,      /* groups, then entries that are not in them: likewise */
	GPU_JOIN,        /* keys that are not joined, then entries that are not: likewise */
	GPU_EDGES,       /* entries that are no edges yet: likewise */
	GPU_RANKED       /* EntryRanked, of each interval: see GpuRequest */
} GpuForm;

/*
 * What GPU_GRAPH asks for (kernels/graph/gpu_graph.h); form of the request.  An owner has one graph at most,
 * and one request at a time.  GPU_WITHDRAWN: it has no graph, or none that the step can be done with.
 */
typedef enum GpuGraphStep
{
	/*
	 * a graph of a tree without edges, with room for n, in place of the owner's; each: edges have weights
	 */
	GPU_GRAPH_BEGIN,
	/*
	 * the same, on the base of the one that is kept of a tree (each: whose edges lead both ways; n: 1: with
	 * weights), in which edges that come are looked for (engine_graphs.h).  GPU_WITHDRAWN: none is kept;
	 * found: 1: the tree has changed little since that one's were, and the graph will be had at little cost
	 */
	GPU_GRAPH_TAKE,
	GPU_GRAPH_ADD, /* input: n edges, two codes each; and the weight, if they have weights */
	/*
	 * there are no more edges; each: they lead both ways.  GPU_TOO_LARGE: there were too many;
	 * GPU_WITHDRAWN: there is no such graph, because one has no weight, or on the base at hand; found:
	 * vertices, or a few more, if it has a base; counted: in how many edges it and the base differ; taken: 1:
	 * only those were looked at that could
	 */
	GPU_GRAPH_END,
	/* input: n vertices that have been reached; each: edges are to be followed from there */
	GPU_GRAPH_REACH,
	/*
	 * goes on for n depths at most; found: vertices reached so far, counted: depths done, taken: to go on
	 * from.  Output, if cap is not 0, which is at least n then: a word for each depth done, the vertices
	 * reached until then
	 */
	GPU_GRAPH_WALK,
	GPU_GRAPH_REACHED, /* output: GpuReached of those from next on, cap at most; found: how many */
	/* input: n vertices that a walk begins from, in place of what has been reached */
	GPU_GRAPH_START,
	/*
	 * output: words, cap at most: for each vertex of the input, n in all, how many vertices the path has by
	 * which the walk has reached it, 0 if it has not, and these; as many as have room.  found: words, taken:
	 * vertices of the input that have been answered
	 */
	GPU_GRAPH_PATHS,
	/*
	 * goes on with a search for a path for next depths at most, or begins one; input: 2 vertices, one path
	 * has to lead from the first to the second, which is another, or none, to go on.  found: vertices on the
	 * path, 0: none has been found, counted: depths done, taken: 0: nor will be.  Of a graph with weights,
	 * the input has 3 words: the last one is what the path may cost; and depths are rounds of the search.
	 * GPU_TOO_LARGE: what paths cost is too much for the search
	 */
	GPU_GRAPH_SEEK,
	/*
	 * output: the vertices of the path that has been found, cap at most; found: how many.  Of a graph with
	 * weights: two words for each, the vertex and what the path to it costs
	 */
	GPU_GRAPH_PATH,
	GPU_GRAPH_CONNECT,   /* find the components; found: vertices */
	GPU_GRAPH_CONNECTED, /* output: two codes for each vertex from next on, cap at most; found: how many */
	GPU_GRAPH_MEASURE,   /* find the components, and count their vertices; found: components */
	/* output: each component from next on, cap at most: its least vertex, how many it has; found: how many */
	GPU_GRAPH_SIZES,
	/* goes through n edges at most from next on; joined: triangles; found: edges left */
	GPU_GRAPH_TRIANGLES,
	GPU_GRAPH_COUNT, /* count edges at each vertex; found: vertices.  GPU_WITHDRAWN: as the next one */
	/* output: each vertex from next on, cap at most, with its outgoing and incoming edges; found: how many */
	GPU_GRAPH_DEGREES,
	/*
	 * goes on with PageRank for next iterations at most, or, with each, begins it; input: damping and
	 * tolerance, n = 2, in double precision.  found: vertices, counted: iterations done, joined: by how much
	 * the last one has changed all ranks, likewise.  GPU_WITHDRAWN: equal edges have become one, or they lead
	 * both ways
	 */
	GPU_GRAPH_RANK,
	GPU_GRAPH_RANKED, /* output: each vertex from next on, cap at most, and its rank; found: how many */
	/* give the memory of the owner's graph back, if there is one; each: or keep it for its tree */
	GPU_GRAPH_DROP
} GpuGraphStep;

/* A vertex that a walk has reached. */
typedef struct GpuReached
{
	uint64_t vertex;
	uint64_t parent;
	uint64_t depth; /* edges from where the walk began */
} GpuReached;

typedef enum GpuStatus
{
	GPU_OK,
	GPU_WITHDRAWN,    /* there is no such tree or copy, or *guard is not what was expected */
	GPU_NO_MEMORY,    /* of the device, or of the process; nothing was changed, or what may be done again */
	GPU_TOO_LARGE,    /* the tree would have more than GPU_MAX_ENTRIES; nothing was changed */
	GPU_NO_STRUCTURE, /* GPU_LOAD_BEGIN: this engine does not have that structure */
	GPU_NO_REQUEST,   /* there is no such kind; or map or rows of a scan are not in place */
	GPU_DAMAGED,      /* GPU_VERIFY found something; output says what */
	GPU_DEVICE_LOST   /* not the engine's answer: the sender's to all that it gets back from close */
} GpuStatus;

/*
 * One request.  input, output, map, row_places and row_pages are offsets in bytes into the
 * staging memory, multiples of 8, the last two of 4.
 *
 * GPU_COUNT counts entries by the heap page that they point to, TID >> 16.  The map has
 * two bits a page, page 0 in the lowest bits of the first byte; the lower bit says that
 * all rows of the page are visible to everybody.  Pages behind the end of the map are
 * not all-visible.  Entries on all-visible pages are counted.  Of the rows of other pages the
 * request may say more (PageRows, page_rows.h, row_places and row_pages in place of places and
 * pages): those that are seen are counted, those that are unseen are left out.  The TIDs of the
 * others are the output.  Such a scan is a forward one, and is done as a whole or not at all:
 * found above cap says for how many TIDs the output should have had room.
 * The output is undefined then, and the scan has not moved.
 *
 * GPU_AGGREGATE does the same, and adds up what the counted entries have in some columns.  It
 * hands entries back, and so those of dead rows as well, which can leave then.
 * The output has a result for each interval, in the order of the input, or one for all: the
 * number of entries counted, and a PartialAgg of each aggregated column.  Behind the results
 * are the other entries, as GpudsEntry, in no order; cap is the room for them.  Such a
 * scan begins with its first interval.  Of each interval without columns, it may be enough to know whether
 * any entry of it was counted: then a result is a bit of uint32_t words, the lowest one first.
 *
 * GPU_GROUPS adds up what a GroupSpec (group_spec.h) says, by groups.  The output has slots of its table,
 * in no order, of which some may be of one group.  Behind the room for all slots are the other entries, as
 * with GPU_AGGREGATE; so are those whose group there is no slot for.
 *
 * Of groups that are wanted in order, each has one slot, the output has them in the scan's order, and the
 * request may stop before the scan's end: next, inside and at say where.  What is behind it is as if it had
 * not been asked for.
 *
 * GPU_JOIN counts, too: how many rows its entries have in a join with those of another tree (GpuJoin,
 * entry_join.h).  The output has room for keys of which that is not known, as EntryJoinKey, in no order, and
 * one may be there several times; and behind it the other entries, as with GPU_AGGREGATE.  If there is not
 * enough room for the keys, which taken says, both are undefined.
 *
 * GPU_EDGES counts, too: each entry that is counted is an edge (GpuEdges), and is added to the graph of the
 * request's owner.  The output has the other entries, as with GPU_AGGREGATE; filtered says of how many
 * entries the rows are unseen, and same that the version is the one that the tree had when the graph was
 * begun.
 *
 * GPU_RANKED says of each interval how many entries it has, and which one has a rank there.  Behind the
 * intervals, of which several may be equal, the input has these ranks, from 0 on, as uint64_t[n].  Such a
 * scan is a forward one without points, from its first interval on, and is done as a whole; cap is above n.
 *
 * If a GroupSpec is of side values, the request names a copy of these that the tree has, and the spec has a
 * map of the heap pages of which the copy is up to date: two bits a page, as those of the visibility map, of
 * which the lower one counts.  Entries of rows on other pages come back.
 */
typedef struct GpuRequest
{
	/* set by the sender */
	uint32_t kind; /* GpuRequestKind */
	uint32_t tree;
	uint32_t form;         /* GpuForm of a scan's output */
	uint32_t nwords;       /* GPU_LOAD_BEGIN: key words, 1 or 2 */
	uint32_t structure;    /* GPU_LOAD_BEGIN: number in kernels/structures.h */
	uint32_t fill_percent; /* GPU_LOAD_BEGIN: 50 to 100 */
	bool forward;          /* scans */
	/* input: one GpudsInterval, then uint64_t[n] to be or'ed into w0 of its ends; else GpudsInterval[n] */
	bool points;
	/*
	 * GPU_COUNT, GPU_AGGREGATE without each: the points may be in any order, and equal, which is as if they
	 * came once; the scan is a forward one from its first interval on
	 */
	bool unsorted;
	bool guarded;
	uint64_t input;
	uint64_t output;
	int64_t n;           /* intervals, entries or operations */
	int64_t cap;         /* scans: entries that output has room for, at least 1 */
	uint64_t map;        /* GPU_COUNT, GPU_AGGREGATE, GPU_GROUPS: see above ... */
	uint64_t map_bytes;  /* ... and its length, maybe 0 */
	uint64_t row_places; /* GPU_COUNT, GPU_AGGREGATE: uint32_t[row_slots] */
	uint64_t row_pages;  /* ... uint32_t[row_npages * (1 + row_words)] */
	uint32_t row_slots;  /* ... a power of two; 0: nothing is known of any row */
	uint32_t row_npages;
	uint64_t agg_columns; /* GPU_AGGREGATE: AggColumn[nagg] in the staging memory */
	uint32_t nagg;        /* 0 to GPU_AGG_COLUMNS */
	uint16_t row_words;   /* PAGE_ROWS_MAX_WORDS at most */
	bool each;            /* GPU_AGGREGATE: a result for each interval; GPU_GRAPH: see GpuGraphStep */
	bool bits;            /* GPU_AGGREGATE: the results are bits; with each and without columns only */
	union
	{
		uint64_t join;  /* GPU_JOIN: GpuJoin in the staging memory */
		uint64_t edges; /* GPU_EDGES: GpuEdges, likewise */
	};
	uint64_t groups;       /* GPU_GROUPS: GroupSpec in the staging memory ... */
	uint64_t groups_bytes; /* ... with all that it has */
	union
	{
		uint64_t side;  /* GPU_GROUPS, GPU_SIDE_*: name of a copy of side values; 0: none */
		uint64_t owner; /* GPU_EDGES, GPU_GRAPH: whose graph it is */
	};
	const uint64_t *guard; /* atomic; if guarded, a scan is only done while ... */
	uint64_t expected;     /* ... *guard has this value */

	/* a scan's progress as in GpudsScan, taken and handed back */
	int64_t next;
	GpudsEntry at;
	bool inside;

	/* set by the engine */
	bool same;       /* GPU_EDGES: see above */
	uint32_t status; /* GpuStatus */
	/*
	 * scans: entries in output, less than cap: the scan is at its end.  GPU_COUNT, GPU_AGGREGATE,
	 * GPU_GROUPS, GPU_JOIN: entries handed back, not above cap: the same.  GPU_APPLY: entries inserted
	 */
	int64_t found;
	int64_t counted; /* GPU_COUNT, GPU_AGGREGATE, GPU_GROUPS: entries on all-visible pages, or of rows seen */
	union
	{
		uint64_t joined;  /* GPU_JOIN: rows of the result, but for keys and entries that are handed back */
		int64_t left_out; /* GPU_GROUPS: entries of groups that are not wanted (GroupSpec) */
	};
	int64_t filtered;   /* GPU_EDGES: see above; GPU_GROUPS: entries that did not pass the filter ... */
	int64_t crowded;    /* ... entries handed back because there was no slot ... */
	int64_t taken;      /* ... slots in output; GPU_JOIN: keys that are handed back */
	int64_t deleted;    /* GPU_APPLY */
	uint64_t entries;   /* of the tree: after GPU_LOAD_*, GPU_APPLY, GPU_DROP */
	uint64_t bytes;     /* of device memory that the tree holds: likewise; after GPU_SIDE_*, its copy */
	uint32_t launches;  /* kernels launched for this request; small: 0 */
	uint32_t batch;     /* requests that were handed over with it; else than small: 1 */
	uint64_t device_ns; /* time on the device */
	uint64_t bus_bytes; /* to and from it */
	uint32_t done;      /* atomic; set last */

	/* the engine's, from the handing over until done is 1 */
	struct GpuRequest *next_queued;
} GpuRequest;

/* What a scan is joined with; map, row_places, row_pages and touched are as in a request. */
typedef struct GpuJoin
{
	EntryJoin join;
	uint32_t tree;
	bool full;             /* all rows that its entries lead to are visible to everybody */
	const uint64_t *guard; /* as in a request that is guarded */
	uint64_t expected;
	uint64_t map;
	uint64_t map_bytes;
	uint64_t row_places;
	uint64_t row_pages;
	uint32_t row_slots;
	uint32_t row_words;
	uint32_t row_npages;
	uint64_t touched; /* GpudsEntry[ntouched], ascending: keys that are handed back in any case */
	int64_t ntouched;
	int64_t room; /* keys that the output has room for */
} GpuJoin;

/* What the entries of an index of edges have. */
typedef struct GpuEdges
{
	AggColumn vertex[2]; /* source and target */
	AggColumn weight;    /* if weighted: integers */
	uint64_t zero;       /* ... the code of 0; UINT64_MAX is that of no number */
	bool weighted;
	bool full; /* all rows that entries lead to are visible to everybody, by the map */
} GpuEdges;

/* In place of a weight that no path can have: NULL, a negative one, or one that is no number. */
#define GPU_NO_WEIGHT UINT64_MAX

/* Does a scan of a form hand back only the entries that it does not count? */
KERNEL_FN bool
gpu_form_counts(uint32_t form)
{
	return form == GPU_COUNT || form == GPU_AGGREGATE || form == GPU_GROUPS || form == GPU_JOIN ||
		   form == GPU_EDGES;
}

/* Words of a result: the entries counted, and what has been aggregated of them. */
KERNEL_FN int64_t
gpu_result_words(int64_t nagg)
{
	return 1 + GPU_PARTIAL_AGG_WORDS * nagg;
}

/* Bytes of results of so many intervals that are bits: whole words of 64. */
KERNEL_FN size_t
gpu_result_bits_bytes(int64_t n)
{
	return (size_t) ((n + 63) / 64) * sizeof(uint64_t);
}

/* Bytes of all results of a request. */
KERNEL_FN size_t
gpu_result_bytes(const GpuRequest *request)
{
	if (request->bits)
		return gpu_result_bits_bytes(request->n);
	return (size_t) ((request->each ? request->n : 1) * gpu_result_words(request->nagg)) * sizeof(uint64_t);
}

/* May a scan go together with others in one launch? */
KERNEL_FN bool
gpu_is_small(const GpuRequest *request)
{
	return request->kind == GPU_SCAN && request->form == GPU_ENTRIES && request->n <= GPU_SMALL_INTERVALS &&
		   request->cap <= GPU_SMALL_ENTRIES;
}

#endif /* GPU_REQUEST_H */
