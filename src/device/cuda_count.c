/*-------------------------------------------------------------------------
 *
 * cuda_count.c
 *	  Counts on the CUDA device: what entries that a snapshot sees add up to.
 *
 * With the intervals goes what is known of rows.  Entries that it does not decide come
 * back.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "device/cuda_requests.h"

/*
 * How many times as many entries as a request hands back may come back, in all, of the intervals that it has
 * room for, if their results are bits.
 */
#define MOST_OTHERS_SPLIT 4

static size_t
count_item_bytes(const GpudsCountSpec *spec)
{
	return spec->partial ? sizeof(GpudsEntry) : sizeof(uint64);
}

/* Results of so many intervals. */
static int64
count_results(const GpudsCountSpec *spec, int64 n)
{
	return !spec->partial || spec->groups || spec->join || spec->edges ? 0 : spec->each ? n : 1;
}

/* Bytes that results take for so many intervals. */
static size_t
result_bytes(const GpudsCountSpec *spec, int64 n)
{
	if (spec->groups)
		return group_table_bytes(spec->groups->spec);
	if (spec->join)
		return GPUDS_JOIN_ROOM * sizeof(EntryJoinKey);
	if (spec->bits)
		return gpu_result_bits_bytes(n);
	return (size_t) (count_results(spec, n) * gpu_result_words(spec->nagg)) * sizeof(uint64);
}

/* Bytes that what is said of groups takes for so many intervals. */
static size_t
groups_bytes(const GpudsCountSpec *spec, int64 n)
{
	const GpudsCountGroups *groups = spec->groups;

	return groups ? group_spec_bytes(groups->spec) + group_label_bytes(groups->spec, n) : 0;
}

/*
 * How many intervals go with a request that hands back as much as it may, beside what is known; 0: none.
 * Results, if there are any, are bits.  The device has memory for what is known beside that for intervals.
 */
static int64
most_beside_known(const GpudsScan *scan, const GpudsCountSpec *spec)
{
	const size_t known = gpuds_count_known_bytes(spec);
	const size_t staging = Min((size_t) gpuds_staging_memory_mb * 1024 * 1024 / 2,
							   (size_t) GPUDS_SPAN_UNITS * GPUDS_UNIT_BYTES);
	/* with what else a request has, a bit for each of the points among it */
	const size_t others = GPUDS_PIECE_BYTES / 2 + GPUDS_UNIT_BYTES;

	if (known > GPUDS_COUNT_MAP_BYTES || known + others + sizeof(GpudsInterval) > staging)
		return 0;
	return gpuds_cuda_most_intervals(scan, Min(GPUDS_PIECE_BYTES, staging - known - others));
}

/*
 * Intervals that a count has room for, whatever there is of staging memory.  Points in no order, all of which
 * go at once, and intervals whose results are bits use the device's memory beside what is known; others
 * leave room in the span.
 */
static int64
count_intervals(const GpudsScan *scan, const GpudsCountSpec *spec, int64 n)
{
	const size_t known = spec->unsorted ? 0 : gpuds_count_known_bytes(spec);
	const size_t bytes = GPUDS_PIECE_BYTES - known - groups_bytes(spec, 0);

	if (spec->bits)
		return Min(n, most_beside_known(scan, spec));
	/* a label takes less than an interval, which has none if it is a point */
	n = Min(n, gpuds_cuda_most_intervals(scan, bytes));
	if (spec->groups && spec->groups->spec->has_labels)
		n = Min(n, gpuds_cuda_most_intervals(scan, bytes / 2));
	if (spec->each)
		n = Min(n, (int64) (GPUDS_PIECE_BYTES / 4 / sizeof(uint64)) / gpu_result_words(spec->nagg));
	return n;
}

/* Sets where a join's parts are, from a place on. */
static void
layout_join(GpudsCountLayout *layout, const GpudsCountJoin *join, size_t from)
{
	layout->join = from;
	layout->join_map = layout->join + sizeof(GpuJoin);
	layout->join_row_places = layout->join_map + TYPEALIGN(sizeof(uint64), join->map_bytes);
	layout->join_row_pages = layout->join_row_places + join->rows.slots * sizeof(uint32);
	layout->touched = layout->join_map + gpuds_known_rows_bytes(join->map_bytes, &join->rows);
	layout->input = layout->touched + join->ntouched * sizeof(GpudsEntry);
}

/* Does a count have to go with one request? */
static bool
is_whole(const GpudsCountSpec *spec)
{
	return spec->each || spec->groups || spec->join || spec->unsorted;
}

static GpudsCountLayout
count_layout(const GpudsCountSpec *spec, int64 n, int64 capacity)
{
	GpudsCountLayout layout = { 0 };

	layout.items = result_bytes(spec, n);
	layout.map = layout.items + capacity * count_item_bytes(spec);
	layout.row_places = layout.map + TYPEALIGN(sizeof(uint64), spec->map_bytes);
	layout.row_pages = layout.row_places + spec->rows.slots * sizeof(uint32);
	layout.agg_columns = layout.map + gpuds_known_rows_bytes(spec->map_bytes, &spec->rows);
	layout.groups = layout.agg_columns + spec->nagg * sizeof(AggColumn);
	layout.input = layout.groups + groups_bytes(spec, n) + gpuds_count_side_bytes(spec);
	if (spec->join)
		layout_join(&layout, spec->join, layout.input);
	layout.edges = layout.input;
	if (spec->edges)
		layout.input += sizeof(GpudsCountEdges);
	return layout;
}

/* Copies what is known of rows to places in staging memory, if there is anything. */
static void
copy_rows(const PageRows *rows, char *places, char *pages)
{
	Assert((rows->slots & (rows->slots - 1)) == 0 && rows->words <= PAGE_ROWS_MAX_WORDS);
	if (rows->slots == 0)
		return;
	memcpy(places, rows->places, rows->slots * sizeof(uint32));
	memcpy(pages, rows->pages, page_rows_pages_bytes(rows->npages, rows->words));
}

/* Puts what is known of rows in staging memory, if there is anything. */
static void
set_rows(GpuRequest *request, const PageRows *rows, const GpudsCountLayout *layout, char *memory)
{
	request->row_slots = rows->slots;
	request->row_words = rows->words;
	request->row_npages = rows->npages;
	request->row_places = gpuds_staging_offset(memory + layout->row_places);
	request->row_pages = gpuds_staging_offset(memory + layout->row_pages);
	copy_rows(rows, memory + layout->row_places, memory + layout->row_pages);
}

/* Puts the map of side values behind a spec and its labels, if they are wanted. */
static void
set_side(GpuRequest *request, const GpudsCountSide *side, GroupSpec *spec)
{
	request->side = side->name;
	spec->side_map = TYPEALIGN(sizeof(uint64), side->map_bytes);
	if (side->map_bytes == 0)
		return;
	memset((char *) spec + request->groups_bytes + spec->side_map - sizeof(uint64), 0, sizeof(uint64));
	memcpy((char *) spec + request->groups_bytes, side->map, side->map_bytes);
	request->groups_bytes += spec->side_map;
}

/* Puts what is said of groups in staging memory, for n intervals from the first on. */
static void
set_groups(GpuRequest *request, const GpudsCountGroups *groups, const GpudsCountAttempt *attempt, int64 first,
		   int64 n, char *to)
{
	const size_t bytes = group_spec_bytes(groups->spec);
	GroupSpec *spec = (GroupSpec *) to;

	memcpy(to, groups->spec, bytes);
	spec->spread = attempt->spread;
	spec->most = attempt->entries;
	if (spec->has_labels)
		memcpy(group_spec_labels(spec), groups->labels + first, n * sizeof(uint32));
	request->groups = gpuds_staging_offset(to);
	request->groups_bytes = bytes + group_label_bytes(spec, n);
	set_side(request, &groups->side, spec);
}

/* Puts what a count is joined with in staging memory. */
static void
set_join(GpuRequest *request, const GpudsCountJoin *from, const GpudsCountLayout *layout, char *memory)
{
	GpuJoin *join = (GpuJoin *) (memory + layout->join);
	const PageRows *rows = &from->rows;

	memset(join, 0, sizeof(*join));
	join->join = from->join;
	join->tree = from->tree->cuda.number;
	join->full = from->full;
	join->guard = (const uint64 *) &from->guard->value;
	join->expected = from->expected;
	join->map = gpuds_staging_offset(memory + layout->join_map);
	join->map_bytes = from->map_bytes;
	join->row_places = gpuds_staging_offset(memory + layout->join_row_places);
	join->row_pages = gpuds_staging_offset(memory + layout->join_row_pages);
	join->row_slots = rows->slots;
	join->row_words = rows->words;
	join->row_npages = rows->npages;
	join->touched = gpuds_staging_offset(memory + layout->touched);
	join->ntouched = from->ntouched;
	join->room = GPUDS_JOIN_ROOM;
	if (from->map_bytes > 0)
		memcpy(memory + layout->join_map, from->map, from->map_bytes);
	copy_rows(rows, memory + layout->join_row_places, memory + layout->join_row_pages);
	if (from->ntouched > 0)
		memcpy(memory + layout->touched, from->touched, from->ntouched * sizeof(GpudsEntry));
	request->join = gpuds_staging_offset(join);
}

/* Puts what is said of edges in staging memory. */
static void
set_edges(GpuRequest *request, const GpudsCountEdges *edges, char *to)
{
	memcpy(to, edges, sizeof(GpudsCountEdges));
	request->edges = gpuds_staging_offset(to);
	request->owner = gpuds_cuda_owner();
}

/* Sets what a count's request has of its own, and puts it in staging memory. */
static void
set_count(GpuRequest *request, const GpudsCountSpec *spec, const GpudsCountLayout *layout, char *memory)
{
	if (spec->map_bytes > 0)
		memcpy(memory + layout->map, spec->map, spec->map_bytes);
	if (spec->nagg > 0)
		memcpy(memory + layout->agg_columns, spec->agg_columns, spec->nagg * sizeof(AggColumn));
	request->map = gpuds_staging_offset(memory + layout->map);
	request->map_bytes = spec->map_bytes;
	set_rows(request, &spec->rows, layout, memory);
	request->agg_columns = gpuds_staging_offset(memory + layout->agg_columns);
	request->nagg = spec->nagg;
	request->each = spec->each;
	request->bits = spec->bits;
	if (spec->join)
		set_join(request, spec->join, layout, memory);
	if (spec->edges)
		set_edges(request, spec->edges, memory + layout->edges);
	request->unsorted = spec->unsorted;
}

/* Sets what a count's request has found. */
static void
set_found(GpudsCount *count, const GpudsCountSpec *spec, const GpuRequest *request, int64 n,
		  const GpudsCountLayout *layout, const char *memory)
{
	count->counted = request->counted;
	count->filtered = spec->groups ? request->filtered : 0;
	count->left_out = spec->groups ? request->left_out : 0;
	count->results = count->groups = (const uint64 *) memory;
	count->bits = (const uint32 *) memory;
	count->nresults = count_results(spec, n);
	count->ngroups = spec->groups || spec->join ? request->taken : 0;
	count->joined = spec->join ? request->joined : 0;
	count->same = spec->edges && request->same;
	count->tids = (const uint64 *) (memory + layout->items);
	count->entries = (const GpudsEntry *) (memory + layout->items);
	count->n = request->found;
}

/*
 * Sets how many intervals the next attempt is of, and the staging memory that it takes.  False: what must go
 * at once takes too much.
 */
static bool
size_attempt(GpudsCudaCounting *counting)
{
	const GpudsCountSpec *spec = counting->spec;
	const GpudsScan *scan = counting->scan;
	const int64 n = count_intervals(scan, spec, Min(scan->n - scan->next, counting->attempt.intervals));
	const size_t input = gpuds_cuda_input_bytes(scan, n);

	counting->n = n;
	counting->layout = count_layout(spec, n, counting->attempt.others);
	counting->send.most = counting->layout.input + input;
	/*
	 * Where there is a result for each interval, or equal ones count once, all that are asked for must fit.
	 */
	counting->send.least = is_whole(spec) ? counting->send.most
										  : counting->layout.input + Min(input, GPUDS_UNIT_BYTES);
	return !is_whole(spec) || counting->send.most <= (size_t) gpuds_staging_memory_mb * 1024 * 1024 / 2;
}

static void
fill_count(GpudsCudaSend *send)
{
	GpudsCudaCounting *counting = (GpudsCudaCounting *) send;
	const GpudsCountSpec *spec = counting->spec;
	const GpudsCountLayout *layout = &counting->layout;
	const GpudsStagingSpan *span = send->sent.span;
	GpuRequest *request = &send->sent.mailbox->request;
	char *memory = gpuds_staging_at(span);

	counting->n = Min(counting->n,
					  gpuds_cuda_most_intervals(counting->scan,
												(size_t) span->n * GPUDS_UNIT_BYTES - layout->input));
	set_count(request, spec, layout, memory);
	if (spec->groups)
		set_groups(request, spec->groups, &counting->attempt, counting->scan->next, counting->n,
				   memory + layout->groups);
	gpuds_cuda_set_scan(counting->call, request, counting->scan, counting->n, counting->attempt.others,
						memory + layout->input, memory);
}

/*
 * Takes the answer that has come.  Returns how many entries are to be handed back.  There is room for them:
 * *count has them, and the scan has moved.  There is not, or not for the results: the scan has not moved.
 * -1: none can be had.  *crowded: entries were handed back because their groups had no slot.
 */
static int64
take_found(GpudsCudaCounting *counting, bool *crowded)
{
	const GpudsCountSpec *spec = counting->spec;
	const GpudsScan before = *counting->scan;
	const int64 capacity = counting->attempt.others;
	GpudsStagingSpan *span = counting->send.sent.span;
	GpudsMailbox *mailbox = counting->send.sent.mailbox;
	const GpuRequest *request = &mailbox->request;
	int64 found = -1;

	if (gpuds_cuda_accept(counting->call, request, counting->scan, counting->n, capacity))
	{
		found = request->found;
		*crowded = spec->groups && request->crowded > 0;
		set_found(counting->count, spec, request, counting->n, &counting->layout, gpuds_staging_at(span));
	}
	gpuds_mailbox_close(mailbox);
	if (spec->join && counting->count->ngroups > GPUDS_JOIN_ROOM)
		found = PG_INT64_MAX;
	if (found < 0 || found > capacity)
	{
		gpuds_staging_give(span);
		*counting->scan = before;
	}
	else
		gpuds_staging_shrink(span, counting->layout.items + found * count_item_bytes(spec));
	return found;
}

/* Of so many entries too many were handed back: found, in place of most.  How many to go through instead. */
static int64
fewer_entries(int64 entries, int64 found, int64 most)
{
	return Max((int64) ((double) entries * (double) most / (double) found / 2), most);
}

/* The same of intervals, of which about half of most are to come back. */
static int64
fewer_intervals(int64 n, int64 found, int64 most)
{
	return n / (2 * found / most + 1) + 1;
}

static GpuForm
form_of(const GpudsCountSpec *spec)
{
	if (spec->groups)
		return GPU_GROUPS;
	if (spec->join)
		return GPU_JOIN;
	if (spec->edges)
		return GPU_EDGES;
	return spec->partial ? GPU_AGGREGATE : GPU_COUNT;
}

/*
 * Notes what a count is joined with.  False: both trees must be of one worker, whose epoch goes with the
 * request, and in one part.  So must be a tree and a graph.
 */
static bool
begin_join(GpudsCudaCall *call, const GpudsCountJoin *join)
{
	GpudsCudaLayout layout;

	if (!gpuds_cuda_read_layout(join->tree, &layout) || layout.n > 1 ||
		pg_atomic_read_u64(&join->tree->cuda.first.epoch) != call->epoch)
		return false;
	call->other = join->tree;
	call->other_layout = layout.version;
	return true;
}

/*
 * Begins to count what a part has; *count is zero, and *span is where the answer will be.  Then
 * gpuds_cuda_send and gpuds_cuda_take_count follow, as long as the latter says so.
 */
GpudsCountStatus
gpuds_cuda_begin_count(GpudsCudaCounting *counting, GpudsCudaCall *call, GpudsScan *scan,
					   const GpudsCountSpec *spec, GpudsCount *count, GpudsStagingSpan *span)
{
	const GroupSpec *groups = spec->groups ? spec->groups->spec : NULL;

	memset(counting, 0, sizeof(*counting));
	counting->send.epoch = call->epoch;
	counting->send.sent.span = span;
	counting->send.fill = fill_count;
	counting->call = call;
	counting->scan = scan;
	counting->spec = spec;
	counting->count = count;
	counting->attempt = (GpudsCountAttempt){ .others = (int64) (GPUDS_UNIT_BYTES / count_item_bytes(spec)),
											 .spread = groups ? groups->spread : 1,
											 .entries = groups ? groups->most : 0,
											 .intervals = PG_INT64_MAX };
	if (gpuds_count_known_bytes(spec) > GPUDS_COUNT_MAP_BYTES ||
		(spec->bits && most_beside_known(scan, spec) == 0))
		return GPUDS_COUNT_TOO_LARGE;
	if ((spec->join && !begin_join(call, spec->join)) || (spec->edges && spec->graph->epoch != call->epoch))
		return GPUDS_COUNT_WITHDRAWN;
	call->form = form_of(spec);
	call->item_bytes = count_item_bytes(spec);
	return size_attempt(counting) ? GPUDS_COUNT_OK : GPUDS_COUNT_TOO_LARGE;
}

/*
 * What is asked for next, if an answer had too little room for what was found.  Where too many entries come
 * back, it is of fewer entries of groups in order, or of fewer intervals whose results are bits; the caller
 * asks for the others then.  False: they are too many.
 */
static bool
next_attempt(GpudsCudaCounting *counting, int64 found, bool crowded)
{
	const GpudsCountSpec *spec = counting->spec;
	const GpudsScan *scan = counting->scan;
	const int64 most = (int64) (GPUDS_PIECE_BYTES / 2 / count_item_bytes(spec));
	GpudsCountAttempt *attempt = &counting->attempt;

	/* There are more groups than were expected. */
	if (crowded && attempt->spread > 1)
		attempt->spread = 1;
	/* Of fewer entries, fewer are handed back. */
	else if (found > most && attempt->entries > most)
		attempt->entries = fewer_entries(Min(attempt->entries,
											 (int64) pg_atomic_read_u64(&counting->call->part->entries)),
										 found, most);
	else if (found > most && found <= most * MOST_OTHERS_SPLIT && spec->bits &&
			 attempt->intervals == PG_INT64_MAX)
	{
		attempt->intervals = fewer_intervals(count_intervals(scan, spec, scan->n - scan->next), found, most);
		attempt->others = most;
	}
	else if (found > most)
		return false;
	else
		/* there may be a few more the next time */
		attempt->others = Min(found + found / 8, most);
	return size_attempt(counting);
}

/* Takes the answer that has come.  *again: none, but it is to be asked for once more. */
GpudsCountStatus
gpuds_cuda_take_count(GpudsCudaCounting *counting, bool *again)
{
	bool crowded = false;
	const int64 found = take_found(counting, &crowded);

	*again = false;
	if (found < 0)
		return GPUDS_COUNT_WITHDRAWN;
	if (found <= counting->attempt.others)
		return GPUDS_COUNT_OK;
	*again = next_attempt(counting, found, crowded);
	return *again ? GPUDS_COUNT_OK : GPUDS_COUNT_TOO_LARGE;
}

/* Counts what a part has. */
GpudsCountStatus
gpuds_cuda_count(GpudsCudaCall *call, GpudsScan *scan, const GpudsCountSpec *spec, GpudsCount *count)
{
	GpudsCudaCounting counting;
	GpudsCudaSend *send = &counting.send;
	GpudsCountStatus status = gpuds_cuda_begin_count(&counting, call, scan, spec, count, &count->span);
	bool again = true;

	while (status == GPUDS_COUNT_OK && again)
	{
		if (!gpuds_cuda_send(&send, 1))
			return GPUDS_COUNT_WITHDRAWN;
		status = gpuds_cuda_take_count(&counting, &again);
	}
	return status;
}

/* The device's most_unsorted: as many as go with a request that hands back as much as it may. */
int64
gpuds_cuda_most_unsorted(const GpudsCountSpec *spec)
{
	const GpudsScan points = { .points = (const uint64 *) spec };

	return most_beside_known(&points, spec);
}
