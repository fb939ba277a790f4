/*-------------------------------------------------------------------------
 *
 * seen_entries.c
 *	  The entries of a scan whose rows its snapshot sees, a piece at a time, with side values.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/relscan.h"

#include "reader/cursor.h"
#include "reader/seen_entries.h"

/* Entries of a first piece, and how many times as many the next has, up to GPUDS_PIECE_ENTRIES. */
#define FIRST_PIECE 1024
#define PIECE_GROWTH 8

/*
 * For a scan with an MVCC snapshot, whose keys or probes are set before each gpuds_seen_start.  side: values
 * of side columns are wanted.  Memory is the current context's.
 */
void
gpuds_seen_begin(GpudsSeenEntries *seen, IndexScanDesc scan, const GpudsKeyLayout *layout, bool side)
{
	Assert(IsMVCCSnapshot(scan->xs_snapshot));
	seen->scan = scan;
	gpuds_visible_begin(&seen->visible, scan);
	gpuds_visible_lock(&seen->visible);
	gpuds_side_reader_begin(&seen->reader, &seen->visible, layout);
	seen->side_bytes = side ? layout->side_bytes : 0;
	seen->context = CurrentMemoryContext;
	seen->entries = NULL;
	seen->seen = NULL;
	seen->side = NULL;
	seen->n = seen->size = 0;
	seen->full = true;
}

/* Passes the scan's barrier.  weight: of how many keys the scan is worth the work. */
void
gpuds_seen_start(GpudsSeenEntries *seen, int64 weight)
{
	gpuds_visible_before_barrier(&seen->visible);
	gpuds_scan_begin_batches(seen->scan, weight);
}

static void
free_arrays(GpudsSeenEntries *seen)
{
	if (seen->size == 0)
		return;
	pfree(seen->entries);
	pfree(seen->seen);
	if (seen->side)
		pfree(seen->side);
}

/* Makes room for a piece that is larger than the one before, whose entries nobody wants any more. */
static void
grow(GpudsSeenEntries *seen)
{
	const int64 size = Min(Max(FIRST_PIECE, seen->size * PIECE_GROWTH), GPUDS_PIECE_ENTRIES);

	if (!seen->full || size == seen->size)
		return;
	free_arrays(seen);
	seen->entries = MemoryContextAlloc(seen->context, size * sizeof(GpudsEntry));
	seen->seen = MemoryContextAlloc(seen->context, size * sizeof(bool));
	if (seen->side_bytes > 0)
		seen->side = MemoryContextAlloc(seen->context, size * seen->side_bytes);
	seen->size = size;
}

/* Fetches entries until the piece is full, or at least half full, or the scan has no more. */
static void
fetch_piece(GpudsSeenEntries *seen)
{
	seen->n = 0;
	gpuds_visible_begin_piece(&seen->visible);
	while (seen->n <= seen->size / 2 && gpuds_scan_has_more(seen->scan))
	{
		GpudsScanBatch batch;

		gpuds_scan_next_batch(seen->scan, seen->size - seen->n, &batch);
		memcpy(seen->entries + seen->n, batch.entries, batch.n * sizeof(GpudsEntry));
		gpuds_visible_add_to_piece(&seen->visible, &batch);
		gpuds_visible_mark(&seen->visible, &batch, seen->seen + seen->n);
		seen->n += batch.n;
	}
	seen->full = seen->n > seen->size / 2;
}

/* Looks up the rows that the visibility map is not enough for, in the order of the heap. */
static void
look_up(GpudsSeenEntries *seen)
{
	GpudsVisible *visible = &seen->visible;

	for (int64 i = 0; i < seen->n; i++)
	{
		if (!seen->seen[i])
			gpuds_visible_order(visible, seen->entries[i].t & ENTRY_TID_MASK, i);
	}
	gpuds_scan_note_matches(seen->scan, seen->n, seen->n - visible->norder);
	gpuds_visible_sort_order(visible);
	for (int64 place = 0; place < visible->norder; place++)
	{
		const int64 i = gpuds_visible_at(visible, place);

		seen->seen[i] = gpuds_visible_sees(visible, place, &seen->entries[i]);
	}
	gpuds_visible_end_piece(visible);
}

/* Leaves in the piece the entries whose rows are seen. */
static void
keep_seen(GpudsSeenEntries *seen)
{
	int64 kept = 0;

	for (int64 i = 0; i < seen->n; i++)
	{
		seen->entries[kept] = seen->entries[i];
		kept += seen->seen[i];
	}
	seen->n = kept;
}

/* Goes on to the next piece that has entries; false: there is none. */
bool
gpuds_seen_next(GpudsSeenEntries *seen)
{
	do
	{
		if (!gpuds_scan_has_more(seen->scan))
			return false;
		grow(seen);
		fetch_piece(seen);
		look_up(seen);
		keep_seen(seen);
	} while (seen->n == 0);
	if (seen->side)
		gpuds_side_reader_piece(&seen->reader, seen->entries, seen->n, seen->side);
	return true;
}

/* Makes a piece of those of some entries whose rows are seen; n: GPUDS_PIECE_ENTRIES at most. */
void
gpuds_seen_look_up(GpudsSeenEntries *seen, const GpudsEntry *entries, int64 n)
{
	const GpudsScanBatch batch = { .entries = entries,
								   .n = n,
								   .kill_mark = gpuds_scan_kill_mark(seen->scan) };

	while (seen->size < n)
	{
		seen->full = true;
		grow(seen);
	}
	memcpy(seen->entries, entries, n * sizeof(GpudsEntry));
	memset(seen->seen, false, n * sizeof(bool));
	seen->n = n;
	gpuds_visible_begin_piece(&seen->visible);
	gpuds_visible_add_to_piece(&seen->visible, &batch);
	look_up(seen);
	keep_seen(seen);
}

/* Attempts while other sessions change rows of all-visible pages. */
#define GRAPH_ATTEMPTS 3

/* Edges that there is room for, beside those that the mirror has. */
#define MORE_EDGES (1024 * 1024)

static const GpudsMirrorRef *
mirror_of(const GpudsSeenEntries *seen)
{
	return &((GpudsCursor *) seen->scan->opaque)->ref;
}

/*
 * Has the device add edges of entries whose rows it knows to be seen to a graph; false: it cannot.  *holds:
 * it is right.
 */
static bool
count_edges(GpudsSeenEntries *seen, const GpudsCountEdges *edges, const GpudsDeviceGraph *graph,
			GpudsCounted *others, bool *holds)
{
	GpudsCountEdges told = *edges;
	GpudsCountSpec spec = { .partial = true, .edges = &told, .graph = graph };
	bool done;

	gpuds_visible_tell_device(&seen->visible, (double) gpuds_scan_mirror_entries(seen->scan), &spec);
	told.full = spec.full;
	done = gpuds_scan_count_rest(seen->scan, &spec, others);
	gpuds_injection_point("scan-probed");
	*holds = done && ((!others->newer && gpuds_visible_version_holds(&seen->visible)) ||
					  gpuds_visible_map_holds(&seen->visible, spec.map, spec.map_bytes, spec.full));
	pfree((void *) spec.map);
	return done;
}

/* Begins the session's graph, or takes what the device keeps as its base, unless that has been done. */
static bool
begin_graph(GpudsSeenEntries *seen, bool both, bool based, bool taken, GpudsDeviceGraph *graph)
{
	if (taken)
		return true;
	return based ? gpuds_probe_take_graph(mirror_of(seen), both, graph)
				 : gpuds_probe_begin_graph(mirror_of(seen), MORE_EDGES, graph);
}

/*
 * Has the device of a scan that has just started make a graph of its entries, which are edges, and lead both
 * ways or not; based: on the one that it keeps, which may have been taken (gpuds_scan_keeps_graph).  Those of
 * whose rows the device is not sure are the others; the caller frees them, and drops the graph in any case.
 * The scan has not moved.  False: the device does not do it, or the map changed in every attempt.
 */
bool
gpuds_seen_make_graph(GpudsSeenEntries *seen, const GpudsCountEdges *edges, bool both, bool based,
					  GpudsDeviceGraph *graph, GpudsCounted *others)
{
	const bool taken = based && graph->epoch != 0;
	bool tries = seen->visible.counts && gpuds_scan_joins(seen->scan);
	bool holds = false;

	memset(others, 0, sizeof(*others));
	for (int i = 0; i < GRAPH_ATTEMPTS && tries && !holds; i++)
	{
		gpuds_probe_free_counted(others);
		tries = begin_graph(seen, both, based, taken && i == 0, graph) &&
				count_edges(seen, edges, graph, others, &holds);
	}
	return holds;
}

/* Moves the scan behind what a graph has been made of. */
void
gpuds_seen_take_graph(GpudsSeenEntries *seen, const GpudsCounted *others)
{
	gpuds_scan_take_count(seen->scan, others);
}

/* Frees what *seen has, pins included, but not the scan. */
void
gpuds_seen_end(GpudsSeenEntries *seen)
{
	gpuds_scan_counters(seen->scan)->fetches += seen->visible.fetches;
	gpuds_visible_end(&seen->visible);
	free_arrays(seen);
}
