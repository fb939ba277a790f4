/*-------------------------------------------------------------------------
 *
 * cuda_together.c
 *	  Counts and TIDs for which all parts of a tree are asked at once.
 *
 * Each part is asked about its share (cuda_shares.c) by requests of its own, and what parts say is put
 * together in memory of the session: it goes into other places than it came from.
 *
 * Requests go in rounds: one to each part that is not through with its share, as far as there is staging
 * memory, until all are.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "utils/memutils.h"

#include "device/cuda_requests.h"
#include "kernels/core/sort.h"

/* Intervals that are divided at a time, or have a result each, if they need not go at once. */
#define MOST_DIVIDED (INT64CONST(1024) * 1024)

/*
 * Counts
 */

static size_t
item_bytes(const GpudsCountSpec *spec)
{
	return spec->partial ? sizeof(GpudsEntry) : sizeof(uint64);
}

/* Adds what a part has handed back to the session's own. */
static void
add_others(GpudsCount *all, const GpudsCount *count, const GpudsCountSpec *spec)
{
	const size_t bytes = item_bytes(spec);
	const void *from = spec->partial ? (const void *) count->entries : (const void *) count->tids;

	if (count->n == 0)
		return;
	all->own_others = gpuds_cuda_resize(all->own_others, all->n + count->n, bytes);
	memcpy((char *) all->own_others + all->n * bytes, from, count->n * bytes);
	all->n += count->n;
}

static void
add_groups(GpudsCount *all, const GpudsCount *count, const GpudsCountSpec *spec)
{
	const size_t bytes = gpuds_count_group_words(spec) * sizeof(uint64);

	all->filtered += count->filtered;
	if (count->ngroups == 0)
		return;
	all->own_results = gpuds_cuda_resize(all->own_results, all->ngroups + count->ngroups, bytes);
	memcpy((char *) all->own_results + all->ngroups * bytes, count->groups, count->ngroups * bytes);
	all->ngroups += count->ngroups;
}

/* Adds a result to the words of another one. */
static void
add_result(uint64 *to, const GpudsCount *count, const GpudsCountSpec *spec, int64 result)
{
	to[0] += (uint64) gpuds_count_rows(count, spec, result);
	for (int i = 0; i < spec->nagg; i++)
	{
		uint64 *words = to + 1 + GPU_PARTIAL_AGG_WORDS * i;
		PartialAgg partial;
		PartialAgg merged;

		gpuds_count_partial_agg(count, spec, result, i, &partial);
		memcpy(&merged, words, sizeof(merged));
		partial_agg_merge(&merged, &partial);
		memcpy(words, &merged, sizeof(merged));
	}
}

/* The place among all that an interval of a share has. */
static inline int64
place_of(const GpudsCudaShare *share, int64 interval)
{
	return share->places ? share->places[interval] : interval - share->base;
}

/* Adds the results of a share's intervals from the first on: a bit or a sum for each, or one sum for all. */
static void
add_results(GpudsCount *all, const GpudsCount *count, const GpudsCountSpec *spec, const GpudsCudaShare *share,
			int64 first)
{
	uint64 *sums = all->own_results;
	uint32 *bits = all->own_results;

	for (int64 i = 0; i < count->nresults; i++)
	{
		const int64 place = spec->each ? place_of(share, first + i) : 0;

		if (spec->bits)
			bits[place / 32] |= (count->bits[i / 32] >> i % 32 & 1) << place % 32;
		else
			add_result(sums + place * gpu_result_words(spec->nagg), count, spec, i);
	}
}

/* Room for n results, without any yet. */
static void *
make_results(const GpudsCountSpec *spec, int64 n)
{
	const PartialAgg nothing = partial_agg_empty();
	const size_t words = gpu_result_words(spec->nagg);
	uint64 *results;

	if (spec->bits)
		return palloc0(gpu_result_bits_bytes(n));
	results = MemoryContextAllocHuge(CurrentMemoryContext, n * words * sizeof(uint64));
	memset(results, 0, n * words * sizeof(uint64));
	for (int64 result = 0; result < n; result++)
	{
		for (int i = 0; i < spec->nagg; i++)
			memcpy(results + result * words + 1 + GPU_PARTIAL_AGG_WORDS * i, &nothing, sizeof(nothing));
	}
	return results;
}

/* What a part is counting. */
typedef struct Piece
{
	GpudsCudaCounting counting;
	GpudsCount count;
	int64 first; /* interval of the share that it begins with */
	bool begun;
	bool came; /* in this round */
} Piece;

/* Begins the next piece of a part's share, if none is begun; *span is where its answer will be. */
static GpudsCountStatus
begin_piece(Piece *piece, GpudsCudaCall *call, GpudsCudaShare *share, const GpudsCountSpec *spec,
			GpudsStagingSpan *span)
{
	piece->came = false;
	if (piece->begun)
		return GPUDS_COUNT_OK;
	memset(&piece->count, 0, sizeof(piece->count));
	piece->first = share->scan.next;
	piece->begun = true;
	return gpuds_cuda_begin_count(&piece->counting, call, &share->scan, spec, &piece->count, span);
}

/* Takes the answers to n requests that were sent.  Raises no error, so that all mailboxes are closed. */
static GpudsCountStatus
take_pieces(Piece **sent, int n)
{
	GpudsCountStatus worst = GPUDS_COUNT_OK;

	for (int i = 0; i < n; i++)
	{
		GpudsCountStatus status;

		if (sent[i]->counting.send.sent.mailbox == NULL)
			continue;
		status = gpuds_cuda_take_count(&sent[i]->counting, &sent[i]->begun);
		sent[i]->came = !sent[i]->begun;
		worst = Max(worst, status);
	}
	return worst;
}

/* A round of requests.  *n: how many parts were not through with their shares. */
static GpudsCountStatus
send_round(GpudsCudaShares *parts, Piece *pieces, const GpudsCountSpec *spec, GpudsCount *all, int *n)
{
	GpudsCudaSend *sends[GPUDS_MOST_CARDS];
	Piece *sent[GPUDS_MOST_CARDS];

	*n = 0;
	for (int part = 0; part < parts->n; part++)
	{
		Piece *piece = &pieces[part];
		GpudsCountStatus status;

		piece->came = false;
		if (parts->share[part].scan.next == parts->share[part].scan.n)
			continue;
		status = begin_piece(piece, &parts->calls[part], &parts->share[part], spec, &all->spans[part]);
		if (status != GPUDS_COUNT_OK)
			return status;
		sent[*n] = piece;
		sends[(*n)++] = &piece->counting.send;
	}
	if (*n > 0 && !gpuds_cuda_send(sends, *n))
		return GPUDS_COUNT_WITHDRAWN;
	return take_pieces(sent, *n);
}

/* Adds what came in a round.  False: a part has more points than go at once, some of which may be equal. */
static bool
add_round(GpudsCudaShares *parts, Piece *pieces, const GpudsCountSpec *spec, GpudsCount *all)
{
	for (int part = 0; part < parts->n; part++)
	{
		const GpudsCudaShare *share = &parts->share[part];
		const GpudsCount *count = &pieces[part].count;

		if (!pieces[part].came)
			continue;
		if (spec->unsorted && share->scan.next < share->scan.n)
			return false;
		all->counted += count->counted;
		if (spec->groups)
			add_groups(all, count, spec);
		else
			add_results(all, count, spec, share, pieces[part].first);
		add_others(all, count, spec);
		gpuds_staging_give(&all->spans[part]);
	}
	return true;
}

/* Has all parts count their shares. */
static GpudsCountStatus
count_shares(GpudsCudaShares *parts, const GpudsCountSpec *spec, GpudsCount *all)
{
	Piece pieces[GPUDS_MOST_CARDS];
	GpudsCountStatus status = GPUDS_COUNT_OK;
	int left = parts->n;

	for (int part = 0; part < parts->n; part++)
		pieces[part].begun = false;
	while (status == GPUDS_COUNT_OK && left > 0)
	{
		status = send_round(parts, pieces, spec, all, &left);
		if (status == GPUDS_COUNT_OK && !add_round(parts, pieces, spec, all))
			status = GPUDS_COUNT_TOO_LARGE;
	}
	return status;
}

/*
 * Counts a piece of a scan by all parts; *all is zero.  Its intervals are ascending; with unsorted or bits,
 * they are in any order, and may be equal if they are points.  Groups, if wanted, are in no order.
 */
GpudsCountStatus
gpuds_cuda_count_together(const GpudsCudaPlace *place, GpudsScan *scan, const GpudsCountSpec *spec,
						  GpudsCount *all)
{
	const int64 left = scan->n - scan->next;
	const int64 n = spec->each ? Min(left, MOST_DIVIDED) : left;
	GpudsCountStatus status;
	GpudsCudaShares parts;

	all->nresults = !spec->partial || spec->groups ? 0 : spec->each ? n : 1;
	if (all->nresults > 0)
		all->own_results = make_results(spec, all->nresults);
	if (spec->unsorted || spec->bits)
		gpuds_cuda_divide(&parts, place, scan, n, spec->bits);
	else
		gpuds_cuda_divide_ascending(&parts, place, scan, n);
	status = count_shares(&parts, spec, all);
	gpuds_cuda_free_shares(&parts);
	if (status != GPUDS_COUNT_OK)
		return status;
	all->results = all->groups = all->own_results;
	all->bits = all->own_results;
	all->entries = all->own_others;
	all->tids = all->own_others;
	scan->next += n;
	scan->inside = false;
	return status;
}

/*
 * TIDs
 */

/* Takes an answer of TIDs, unless there is no room for them (*many).  False: none can be had. */
static bool
take_tids(GpudsCudaAsk *ask, int64 cap, GpudsTids *all, bool *many)
{
	int64 found;

	if (ask->send.sent.mailbox == NULL)
		return true;
	*many |= ask->send.sent.mailbox->request.found > cap - all->n;
	if (*many)
	{
		gpuds_cuda_give_back(&ask->send);
		return true;
	}
	found = gpuds_cuda_take_answer(ask, (uint64 *) all->own + all->n);
	all->n += Max(found, 0);
	return found >= 0;
}

/*
 * A round of requests; *n: how many parts were not through with their shares.  False: none can be had, or
 * (*many) there may be more than cap.
 */
static bool
tids_round(GpudsCudaShares *parts, int64 cap, GpudsTids *all, bool *many, int *n)
{
	GpudsCudaAsk asks[GPUDS_MOST_CARDS];
	GpudsCudaSend *sends[GPUDS_MOST_CARDS];
	bool done = true;

	*n = 0;
	for (int part = 0; part < parts->n; part++)
	{
		GpudsScan *scan = &parts->share[part].scan;

		if (scan->next == scan->n)
			continue;
		gpuds_cuda_begin_tids(&asks[*n], &parts->calls[part], scan, cap - all->n);
		sends[*n] = &asks[*n].send;
		(*n)++;
	}
	*many = *n > 0 && all->n == cap;
	if (*n == 0 || *many)
		return !*many;
	if (!gpuds_cuda_send(sends, *n))
		return false;
	for (int i = 0; i < *n; i++)
		done &= take_tids(&asks[i], cap, all, many);
	return done && !*many;
}

/*
 * The TIDs of the next n intervals, in any order; the scan has moved behind these.  False: none can be had,
 * or (*many) there are more than cap, and the scan has not moved.
 */
static bool
find_tids(const GpudsCudaPlace *place, GpudsScan *scan, int64 n, int64 cap, GpudsTids *all, bool *many)
{
	GpudsCudaShares parts;
	int left = place->layout->n;
	bool done = true;

	all->n = 0;
	gpuds_cuda_divide(&parts, place, scan, n, false);
	while (done && left > 0)
		done = tids_round(&parts, cap, all, many, &left);
	gpuds_cuda_free_shares(&parts);
	if (done)
		scan->next += n;
	return done;
}

/*
 * A piece of a scan that is not inside an interval, as TIDs: of as many next intervals as have cap of them.
 * False: none can be had, or (*many) the next interval has more than that by itself.
 */
bool
gpuds_cuda_tids_together(const GpudsCudaPlace *place, GpudsScan *scan, int64 cap, GpudsTids *all, bool *many)
{
	bool done = false;

	memset(all, 0, sizeof(GpudsTids));
	*many = true;
	all->own = MemoryContextAllocHuge(CurrentMemoryContext, Max(cap, 1) * sizeof(uint64));
	for (int64 n = Min(scan->n - scan->next, Min(cap, MOST_DIVIDED)); n > 0 && !done && *many; n /= 4)
		done = find_tids(place, scan, n, cap, all, many);
	if (done && all->n > 0)
	{
		uint64 *scratch = MemoryContextAllocHuge(CurrentMemoryContext, all->n * sizeof(uint64));

		sort_u64(all->own, scratch, all->n);
		pfree(scratch);
	}
	if (!done)
	{
		pfree(all->own);
		all->own = NULL;
	}
	all->tids = all->own;
	return done;
}
