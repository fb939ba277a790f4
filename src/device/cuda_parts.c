/*-------------------------------------------------------------------------
 *
 * cuda_parts.c
 *	  Trees that are divided among several cards.
 *
 * A tree that is larger than a card's share, or is asked to be on several cards, has a part on each: the
 * entries of a range of keys, as a tree of its own under the same number (cuda_layout.c).  The ranges are
 * ascending, without gaps, and stay as they are from one load to the next.
 *
 * A scan goes from part to part, each of which is asked for its entries of the intervals that reach into its
 * range.  Intervals need not be cut: a part has no entries but its own.  So answers of parts, one behind the
 * other, are in the order of keys.  Parts are asked at once where the answers of all are wanted.
 *
 * Parts are changed one after the other, so their versions may differ, and README.md says why that does not
 * matter.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "device/cuda_requests.h"

/*
 * Turns
 */

/* The part where a scan that is not at its end goes on. */
static int
part_at(const GpudsCudaLayout *layout, const GpudsScan *scan, bool forward)
{
	static const GpudsEntry lowest = { 0, 0, 0 };
	GpudsEntry at;

	/* Nothing is before the lowest number, where a backward scan may stand. */
	if (scan->inside && !forward && entry_equal(&scan->at, &lowest))
		return 0;
	if (scan->inside)
		at = forward ? entry_after(&scan->at) : entry_before(scan->at);
	else if (forward)
		at = entry_scan_interval(scan, scan->next).lo;
	else
		at = entry_scan_interval(scan, scan->next - 1).hi;
	return gpuds_cuda_part_from(layout, 0, &at);
}

/* Of the intervals from one to another, the number of the first that begins behind e; end: none. */
static int64
first_behind(const GpudsScan *scan, int64 from, int64 end, const GpudsEntry *e)
{
	while (from < end)
	{
		const int64 middle = from + (end - from) / 2;
		const GpudsInterval interval = entry_scan_interval(scan, middle);

		if (entry_less(e, &interval.lo))
			end = middle;
		else
			from = middle + 1;
	}
	return from;
}

/* The number of the first interval below end that ends behind e; end: none. */
static int64
first_reaching(const GpudsScan *scan, int64 end, const GpudsEntry *e)
{
	const GpudsEntry behind = entry_after(e);
	GpudsScan below = *scan;

	below.n = end;
	return entry_scan_find(&below, &behind);
}

static GpudsCudaTurn
begin_turn(const GpudsCudaLayout *layout, const GpudsScan *scan, bool forward)
{
	GpudsCudaTurn turn = { .part = part_at(layout, scan, forward), .scan = *scan };

	if (forward && turn.part < layout->n - 1)
		turn.scan.n = first_behind(scan, scan->next + 1, scan->n, &layout->last[turn.part]);
	if (!forward && turn.part > 0)
	{
		turn.low = first_reaching(scan, scan->next - 1, &layout->last[turn.part - 1]);
		turn.scan.next -= turn.low;
		turn.scan.n -= turn.low;
		if (scan->points)
			turn.scan.points += turn.low;
		else
			turn.scan.intervals += turn.low;
	}
	return turn;
}

/* A part is through with its turn: goes on behind it, in an interval that it shares with the next part. */
static void
pass_on(const GpudsCudaLayout *layout, const GpudsCudaTurn *turn, GpudsScan *scan, bool forward)
{
	const GpudsInterval shared = entry_scan_interval(scan, forward ? turn->scan.n - 1 : turn->low);

	scan->next = forward ? turn->scan.n : turn->low;
	scan->inside = false;
	if (forward && turn->part < layout->n - 1 && entry_less(&layout->last[turn->part], &shared.hi))
	{
		scan->next--;
		scan->inside = true;
		scan->at = layout->last[turn->part];
	}
	if (!forward && turn->part > 0 && !entry_less(&layout->last[turn->part - 1], &shared.lo))
	{
		scan->next++;
		scan->inside = true;
		scan->at = entry_after(&layout->last[turn->part - 1]);
	}
}

/*
 * The turns that it takes to come to the end of a scan that is not there, each of another part.  Returns how
 * many.
 */
int
gpuds_cuda_all_turns(const GpudsCudaLayout *layout, const GpudsScan *scan, bool forward,
					 GpudsCudaTurn turns[GPUDS_MOST_CARDS])
{
	GpudsScan rest = *scan;
	int n = 0;

	while (forward ? rest.next < rest.n : rest.next > 0)
	{
		Assert(n < GPUDS_MOST_CARDS);
		turns[n] = begin_turn(layout, &rest, forward);
		pass_on(layout, &turns[n++], &rest, forward);
	}
	return n;
}

/* Does a scan that a turn begins reach behind the turn's part? */
static bool
is_of_several(const GpudsCudaLayout *layout, const GpudsCudaTurn *turn, const GpudsScan *scan)
{
	const GpudsInterval last = entry_scan_interval(scan, scan->n - 1);

	return turn->part < layout->n - 1 && entry_less(&layout->last[turn->part], &last.hi);
}

/* Moves the scan to where a turn has come. */
static void
end_turn(const GpudsCudaLayout *layout, const GpudsCudaTurn *turn, GpudsScan *scan, bool forward)
{
	if (turn->scan.next == (forward ? turn->scan.n : 0))
	{
		pass_on(layout, turn, scan, forward);
		return;
	}
	scan->next = turn->scan.next + turn->low;
	scan->inside = turn->scan.inside;
	scan->at = turn->scan.at;
}

/*
 * What device_ops.h has
 */

/* Sends what all parts are asked at once.  False: none can be had, and nothing is left. */
static bool
send_turns(const GpudsCudaPlace *place, GpudsCudaTurn *turns, int n, bool forward, int64 cap,
		   GpudsCudaCall *calls, GpudsCudaAsk *asks)
{
	GpudsCudaSend *sends[GPUDS_MOST_CARDS];

	for (int i = 0; i < n; i++)
	{
		gpuds_cuda_begin_call(&calls[i], place->tree, place->layout, turns[i].part, place->guard,
							  place->expected, forward);
		gpuds_cuda_begin_entries(&asks[i], &calls[i], &turns[i].scan, cap);
		sends[i] = &asks[i].send;
	}
	return gpuds_cuda_send(sends, n);
}

/*
 * The first entries of a scan whose parts are asked at once: those of the parts that have given all that they
 * have, one behind the other, and of the one behind them.  -1: none can be had, and the scan may have moved.
 */
static int64
scan_at_once(const GpudsCudaPlace *place, GpudsScan *scan, bool forward, GpudsEntry *out, int64 cap)
{
	GpudsCudaTurn turns[GPUDS_MOST_CARDS];
	GpudsCudaCall calls[GPUDS_MOST_CARDS];
	GpudsCudaAsk asks[GPUDS_MOST_CARDS];
	const int n = gpuds_cuda_all_turns(place->layout, scan, forward, turns);
	bool goes_on = true;
	int64 done = 0;

	if (n == 1)
		return 0;
	if (!send_turns(place, turns, n, forward, cap, calls, asks))
		return -1;
	for (int i = 0; i < n; i++)
	{
		const GpudsMailbox *mailbox = asks[i].send.sent.mailbox;
		int64 found;

		goes_on = goes_on && mailbox && mailbox->request.found <= cap - done;
		if (!goes_on)
		{
			gpuds_cuda_give_back(&asks[i].send);
			continue;
		}
		found = gpuds_cuda_take_answer(&asks[i], out + done);
		done = found < 0 ? -1 : done + found;
		end_turn(place->layout, &turns[i], scan, forward);
		goes_on = found >= 0 && turns[i].scan.next == (forward ? turns[i].scan.n : 0);
	}
	return done;
}

/* The device's scan.  -1: none can be had, and the scan has not moved. */
int64
gpuds_cuda_parts_scan(GpudsDeviceTree *tree, pg_atomic_uint64 *guard, uint64 expected, GpudsScan *scan,
					  bool forward, GpudsEntry *out, int64 cap)
{
	const GpudsScan start = *scan;
	GpudsCudaLayout layout;
	GpudsCudaCall call;
	int64 left;
	int64 done = 0;

	if (!gpuds_cuda_read_layout(tree, &layout))
		return -1;
	if (layout.n == 1)
	{
		gpuds_cuda_begin_call(&call, tree, &layout, 0, guard, expected, forward);
		return gpuds_cuda_scan(&call, scan, out, cap);
	}
	/* An interval has an entry or so: an interval by itself may have more than there is room for. */
	left = forward ? scan->n - scan->next : scan->next;
	if (left > 1 && left <= cap)
		done = scan_at_once(&(GpudsCudaPlace){ tree, &layout, guard, expected }, scan, forward, out, cap);
	while (done >= 0 && done < cap && (forward ? scan->next < scan->n : scan->next > 0))
	{
		GpudsCudaTurn turn = begin_turn(&layout, scan, forward);
		int64 found;

		gpuds_cuda_begin_call(&call, tree, &layout, turn.part, guard, expected, forward);
		found = gpuds_cuda_scan(&call, &turn.scan, out + done, cap - done);
		done = found < 0 ? -1 : done + found;
		end_turn(&layout, &turn, scan, forward);
	}
	if (done < 0)
		*scan = start;
	return done;
}

/* The device's scan_tids: a piece is of whole intervals, or of one part.  *tids is the caller's to free. */
bool
gpuds_cuda_parts_tids(GpudsDeviceTree *tree, pg_atomic_uint64 *guard, uint64 expected, GpudsScan *scan,
					  int64 cap, GpudsTids *tids)
{
	GpudsScan one = *scan;
	GpudsCudaLayout layout;
	GpudsCudaCall call;
	bool many;
	GpudsCudaTurn turn;

	if (!gpuds_cuda_read_layout(tree, &layout))
		return false;
	if (layout.n == 1 || scan->next == scan->n)
	{
		gpuds_cuda_begin_call(&call, tree, &layout, 0, guard, expected, true);
		return gpuds_cuda_scan_tids(&call, scan, cap, tids);
	}
	/* Intervals may be in any order, but one by itself is. */
	if (scan->n - scan->next > 1 && !scan->inside)
	{
		if (gpuds_cuda_tids_together(&(GpudsCudaPlace){ tree, &layout, guard, expected }, scan, cap, tids,
									 &many))
			return true;
		if (!many)
			return false;
	}
	one.n = one.next + 1;
	turn = begin_turn(&layout, &one, true);
	gpuds_cuda_begin_call(&call, tree, &layout, turn.part, guard, expected, true);
	if (!gpuds_cuda_scan_tids(&call, &turn.scan, cap, tids))
		return false;
	end_turn(&layout, &turn, &one, true);
	scan->next = one.next;
	scan->inside = one.inside;
	scan->at = one.at;
	return true;
}

/* Adds what a part has said of n intervals to what those before it have, and sets which ranks are left. */
static void
add_ranked(GpudsRanked *ranked, const GpudsRanked *of_part, const uint64 *ranks, uint64 *left, int64 n)
{
	for (int64 i = 0; i < n; i++)
	{
		const bool sought = ranks[i] >= ranked[i].entries;

		if (sought)
			ranked[i].entry = of_part[i].entry;
		if (ranked[i].entries == UINT64_MAX || of_part[i].entries == UINT64_MAX)
			ranked[i].entries = UINT64_MAX;
		else
			ranked[i].entries += of_part[i].entries;
		left[i] = sought && ranks[i] >= ranked[i].entries ? ranks[i] - ranked[i].entries : 0;
	}
}

/* The device's rank: a request for each part.  false: no answer can be had. */
bool
gpuds_cuda_parts_rank(GpudsDeviceTree *tree, pg_atomic_uint64 *guard, uint64 expected,
					  const GpudsInterval *intervals, const uint64 *ranks, int64 n, GpudsRanked *ranked)
{
	GpudsCudaLayout layout;
	GpudsCudaCall call;
	GpudsRanked *of_part;
	uint64 *left;
	bool done = true;

	if (!gpuds_cuda_read_layout(tree, &layout))
		return false;
	if (layout.n == 1)
	{
		gpuds_cuda_begin_call(&call, tree, &layout, 0, guard, expected, true);
		return gpuds_cuda_rank(&call, intervals, ranks, n, ranked);
	}
	of_part = palloc(Max(n, 1) * sizeof(GpudsRanked));
	left = palloc(Max(n, 1) * sizeof(uint64));
	memcpy(left, ranks, n * sizeof(uint64));
	memset(ranked, 0, n * sizeof(GpudsRanked));
	for (int part = 0; part < layout.n && done; part++)
	{
		gpuds_cuda_begin_call(&call, tree, &layout, part, guard, expected, true);
		done = gpuds_cuda_rank(&call, intervals, left, n, of_part);
		if (done)
			add_ranked(ranked, of_part, ranks, left, n);
	}
	pfree(of_part);
	pfree(left);
	return done;
}

/* The device's count: a piece is of several parts, or of one where groups are wanted in order. */
GpudsCountStatus
gpuds_cuda_parts_count(GpudsDeviceTree *tree, pg_atomic_uint64 *guard, uint64 expected, GpudsScan *scan,
					   const GpudsCountSpec *spec, GpudsCount *count)
{
	GpudsCudaLayout layout;
	const GpudsCudaPlace place = { tree, &layout, guard, expected };
	GpudsCudaCall call;
	GpudsCountStatus status;
	GpudsCudaTurn turn;

	if (!gpuds_cuda_read_layout(tree, &layout))
		return GPUDS_COUNT_WITHDRAWN;
	if (layout.n == 1)
	{
		gpuds_cuda_begin_call(&call, tree, &layout, 0, guard, expected, true);
		return gpuds_cuda_count(&call, scan, spec, count);
	}
	/* What needs all entries on one card */
	if (spec->join || spec->edges || scan->next == scan->n)
		return GPUDS_COUNT_TOO_LARGE;
	if (spec->unsorted || spec->bits)
		return gpuds_cuda_count_together(&place, scan, spec, count);
	turn = begin_turn(&layout, scan, true);
	if (!gpuds_count_is_in_order(spec->groups) && is_of_several(&layout, &turn, scan))
		return gpuds_cuda_count_together(&place, scan, spec, count);
	gpuds_cuda_begin_call(&call, tree, &layout, turn.part, guard, expected, true);
	status = gpuds_cuda_count(&call, &turn.scan, spec, count);
	if (status == GPUDS_COUNT_OK)
		end_turn(&layout, &turn, scan, true);
	return status;
}
