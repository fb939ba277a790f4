/*-------------------------------------------------------------------------
 *
 * scan_runs.h
 *	  Scans that add up by groups whose entries follow each other; part of scan.h.
 *
 * So a group is a run of entries that agree in some bits, and is found by comparing neighbours.  First the
 * threads count the groups that begin among their entries (scan_entries.h).  The exclusive sum of these
 * numbers is the number of each thread's first group, and groups have slots by their numbers, in the scan's
 * order.  Then the threads add up.  A group that begins and ends among one thread's entries is written as it
 * is; of others each thread adds its part.  Last, slots without rows are left out: of groups whose entries
 * have not passed the filter, or whose rows are not known to be seen.
 *
 * If groups of one entry are left out, a group begins with its second entry, or when it is known that others
 * of it may come in another request: with the first entry of an interval, or behind the last one.  What comes
 * before that of the group is added then.
 *
 * There are as many groups as entries, perhaps, so a request is for a piece of a scan.  It stops before the
 * group that there is no slot for, or when it has gone through a given number of entries, and says behind
 * which entry the next one is to go on.  What a group has on both sides of that is the sender's to put
 * together.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_SCAN_RUNS_H
#define GPU_SCAN_RUNS_H

/* An entry of a scan. */
struct GpuRunEntry
{
	GpudsEntry e;
	GpudsEntry key;   /* of its group */
	int64_t interval; /* that it is in */
	bool open;        /* its group has begun with it, or before */
};

/* An entry, and those before it, if it is not the first or the second. */
struct GpuRunPlace
{
	GpuRunEntry at;
	GpuRunEntry before;
	GpuRunEntry second; /* before that */
	int64_t o;          /* the entry's number */
	bool begins_before; /* a group begins with the one before, which nobody has added */
	bool begins;        /* a group begins */
	bool leaves_out;    /* the group of the one before is left out */
};

/* A scan's entries by groups. */
template <class Probe> struct GpuRuns
{
	GpuScanEntries<Probe> in;
	GpudsEntry bits; /* ones where entries of a group agree */
	bool repeated;   /* groups of one entry are left out */

	/* Goes on to the next entry, or from nothing to the one that a thread looks at first. */
	GPU_FN void go_on(GpuRunPlace *place, const GpudsEntry &e, int64_t interval, int64_t o, bool first) const
	{
		const GpuRunEntry before = place->at;
		const GpuRunEntry now = { e, entry_first_alike(&e, &bits), interval, true };
		const bool alike = !first && entry_equal(&before.key, &now.key);
		const bool edge = o == 0 || (!first && before.interval != interval);

		place->second = place->before;
		place->before = before;
		place->at = now;
		place->o = o;
		if (repeated)
			place->at.open = alike || edge || o + 1 == in.total;
		place->begins_before = !first && !before.open && (alike || edge);
		place->begins = !alike && place->at.open;
		place->leaves_out = !first && !before.open && !place->begins_before;
	}

	/* Calls each(place) of a thread's entries, until that is false. */
	template <class F> GPU_FN void of_thread(int64_t i, const F &each) const
	{
		const int64_t first = i * in.stretch;
		/* those before say whether the thread's first one begins a group */
		const int64_t before = repeated ? 2 : 1;
		const int64_t from = first > before ? first - before : 0;
		GpuRunPlace place = {};

		in.go_through(from, first + in.stretch,
					  [&](const GpudsEntry &e, int64_t interval, int64_t o)
					  {
						  go_on(&place, e, interval, o, o == from);
						  return o < first || each(place);
					  });
	}
};

/* counts[i]: groups that begin among thread i's entries; behind those of n threads there is one more. */
template <class Probe> struct GpuRunsCount
{
	GpuRuns<Probe> runs;
	int64_t n;
	uint32_t *counts;

	GPU_FN void operator()(int64_t i) const
	{
		uint32_t begun = 0;

		if (i < n)
			runs.of_thread(i,
						   [&](const GpuRunPlace &place)
						   {
							   begun += place.begins_before + place.begins;
							   return true;
						   });
		counts[i] = begun;
	}
};

/* The slots of groups, in their order. */
struct GpuRunSlots
{
	uint64_t *words;
	uint32_t nterms;
	uint32_t n;

	GPU_FN uint64_t *slot(int64_t i) const
	{
		return words + (size_t) i * group_slot_words(nterms, 0);
	}
};

/* What a thread has of the group at hand. */
template <int most> struct GpuRunAtHand
{
	uint32_t behind; /* groups up to it: its number, and one */
	bool begun;      /* among the thread's entries */
	uint64_t rows;
	PartialAgg sums[most];
};

/* Adds up.  most: room for terms, of which there may be fewer.  has_side: side values are wanted. */
template <class Probe, int most, bool has_side> struct GpuRunsAdd
{
	GpuRuns<Probe> runs;
	GpuGroupTerms terms;
	GpuSide side;
	const uint32_t *begun; /* groups that begin before a thread's entries */
	GpuRunSlots slots;     /* of groups of which nothing has been added up */
	bool whole;            /* these are all entries of the scan */
	GpuScanSummary *summary;

	GPU_FN static void clear(GpuRunAtHand<most> *run, uint32_t behind, bool begins)
	{
		run->behind = behind;
		run->begun = begins;
		run->rows = 0;
		for (int k = 0; k < most; k++)
			run->sums[k] = partial_agg_empty();
	}

	/* Writes a group that all entries of have been seen. */
	GPU_FN void write(uint64_t *to, const GpuRunAtHand<most> &run) const
	{
		to[GROUP_ROWS] = run.rows;
		for (int k = 0; k < most; k++)
		{
			if (k < (int) terms.n)
				memcpy(&to[GROUP_PARTIAL + k * GROUP_PARTIAL_WORDS], &run.sums[k], sizeof(PartialAgg));
		}
	}

	/* Hands in what a thread has.  ended: the group does not go on behind its entries. */
	GPU_FN void hand_in(const GpuRunAtHand<most> &run, bool ended) const
	{
		if (run.rows == 0)
			return;
		if (run.begun && ended)
			write(slots.slot(run.behind - 1), run);
		else
			terms.template hand_in<most>(slots.slot(run.behind - 1), run.rows, run.sums);
	}

	/* The request ends with an entry; n: up to it. */
	GPU_FN void stop(const GpuRunEntry &at, int64_t n) const
	{
		summary->at = at.e;
		summary->last = at.interval;
		summary->total = (uint64_t) n;
	}

	/* Begins the next group; false: there is no slot for it. */
	GPU_FN bool begin(GpuRunAtHand<most> *run, const GpudsEntry &key) const
	{
		uint64_t *to;

		hand_in(*run, true);
		clear(run, run->behind + 1, true);
		if (run->behind > slots.n)
			return false;
		to = slots.slot(run->behind - 1);
		to[GROUP_W0] = key.w0;
		to[GROUP_W1] = key.w1;
		to[GROUP_T] = key.t;
		return true;
	}

	/* Adds an entry to its group, if it passes and is seen. */
	GPU_FN void add(GpuRunAtHand<most> *run, const GpudsEntry &e, uint32_t *filtered) const
	{
		const uint8_t *row = NULL;

		if (!terms.passes(e))
			++*filtered;
		else if (runs.in.is_seen(e) && (!has_side || terms.side_passes(runs.in, side, e, &row, filtered)))
		{
			run->rows++;
			terms.template add<most>(run->sums, e, row);
		}
	}

	/* Takes an entry; false: its group, or that of the one before, has no slot. */
	GPU_FN bool take(GpuRunAtHand<most> *run, const GpuRunPlace &place, uint32_t *filtered) const
	{
		if (place.begins_before)
		{
			if (!begin(run, place.before.key))
			{
				stop(place.second, place.o - 1);
				return false;
			}
			add(run, place.before.e, filtered);
		}
		if (place.begins && !begin(run, place.at.key))
		{
			stop(place.before, place.o);
			return false;
		}
		if (place.at.open)
			add(run, place.at.e, filtered);
		if (!whole && place.o + 1 == runs.in.total)
			stop(place.at, place.o + 1);
		return true;
	}

	GPU_FN void operator()(int64_t i) const
	{
		uint32_t filtered = 0;
		uint32_t left_out = 0;
		GpuRunAtHand<most> run;

		clear(&run, begun[i], false);
		if (run.behind > slots.n)
			return;
		runs.of_thread(i,
					   [&](const GpuRunPlace &place)
					   {
						   left_out += place.leaves_out;
						   return take(&run, place, &filtered);
					   });
		hand_in(run, false);
		if (left_out > 0)
			gpu_atomic_add(&runs.in.uncounted->left_out, left_out);
		if (filtered > 0)
			gpu_atomic_add(&runs.in.uncounted->filtered, filtered);
	}
};

/* Makes slots of nothing. */
struct GpuRunsClear
{
	GpuRunSlots slots;

	GPU_FN void operator()(int64_t i) const
	{
		uint64_t *slot = slots.slot(i);

		for (int k = 0; k < GROUP_PARTIAL; k++)
			slot[k] = 0;
		for (uint32_t k = 0; k < slots.nterms; k++)
		{
			PartialAgg nothing = partial_agg_empty();

			memcpy(&slot[GROUP_PARTIAL + k * GROUP_PARTIAL_WORDS], &nothing, sizeof(PartialAgg));
		}
	}
};

/* places[i]: has slot i rows?  Behind all slots, one number more. */
struct GpuRunsMark
{
	GpuRunSlots slots;
	uint32_t *places;

	GPU_FN void operator()(int64_t i) const
	{
		places[i] = i < slots.n && slots.slot(i)[GROUP_ROWS] > 0;
	}
};

/* Copies a slot to its place among those that have rows. */
struct GpuRunsTake
{
	GpuRunSlots slots;
	const uint32_t *places; /* the exclusive sum of what they were */
	uint64_t *to;
	uint32_t *taken;

	GPU_FN void operator()(int64_t i) const
	{
		const size_t words = group_slot_words(slots.nterms, 0);
		const uint64_t *slot = slots.slot(i);

		if (i == 0)
			*taken = places[slots.n];
		if (places[i + 1] == places[i])
			return;
		for (size_t k = 0; k < words; k++)
			to[places[i] * words + k] = slot[k];
	}
};

/* Adds up, with room for so many terms. */
template <class Probe, int most, bool has_side>
static inline void
gpu_scan_runs_add(GpuScanStream *stream, const GpuRuns<Probe> &runs, const GpuGroupTerms &terms,
				  const GpuSide &side, const uint32_t *begun, const GpuRunSlots &slots, bool whole)
{
	const GpuRunsAdd<Probe, most, has_side> add = {
		runs, terms, side, begun, slots, whole, stream->device_summary
	};

	gpu_launch(&stream->stream, runs.in.threads(), add);
}

/* All launches of a request whose entries are known; the slots that have rows are at stream->starts then. */
template <class Probe>
static inline void
gpu_scan_runs_launch(GpuScanStream *stream, const GpuRuns<Probe> &runs, const GpuGroupTerms &terms,
					 const GpuSide &side, uint32_t nslots, bool whole)
{
	GpuStream *s = &stream->stream;
	const int64_t threads = runs.in.threads();
	/* numbers of groups, and then of slots */
	uint32_t *numbers = (uint32_t *) (stream->other + stream->piece_bytes / 2);
	const GpuRunSlots slots = { (uint64_t *) stream->other, terms.n, nslots };
	const GpuRunsCount<Probe> count = { runs, threads, numbers };
	const GpuRunsClear clear = { slots };
	const GpuRunsMark mark = { slots, numbers };
	const GpuRunsTake take = { slots, numbers, (uint64_t *) stream->starts, &stream->uncounted->taken };

	gpu_launch(s, nslots, clear);
	gpu_launch(s, threads + 1, count);
	gpu_exclusive_sum(s, numbers, numbers, threads + 1);
	if (side.values != NULL)
		gpu_scan_runs_add<Probe, GROUP_TERMS, true>(stream, runs, terms, side, numbers, slots, whole);
	else if (terms.n <= 2)
		gpu_scan_runs_add<Probe, 2, false>(stream, runs, terms, side, numbers, slots, whole);
	else
		gpu_scan_runs_add<Probe, GROUP_TERMS, false>(stream, runs, terms, side, numbers, slots, whole);
	gpu_launch(s, (int64_t) nslots + 1, mark);
	gpu_exclusive_sum(s, numbers, numbers, (int64_t) nslots + 1);
	/* intervals need not be found any more */
	gpu_launch(s, nslots, take);
}

/*
 * Adds up the entries of n intervals by groups in order, as many as there are slots for, and spec->most
 * entries at most.  Writes to staging memory as gpu_scan_groups does.  *stopped: there are more; the summary
 * says where.
 */
template <class Probe>
static inline int64_t
gpu_scan_runs(GpuScanStream *stream, const GpudsView *view, unsigned char *staging, GpuRequest *r, int64_t n,
			  bool *stopped)
{
	GpuStream *s = &stream->stream;
	const GroupSpec *spec = (const GroupSpec *) (staging + r->groups);
	const int64_t most_threads = (int64_t) (stream->piece_bytes / 2 / sizeof(uint32_t)) - 1;
	const GpuVisible visible = gpu_visible_copy_in(stream, staging, r);
	const GroupSpec *device_spec = gpu_groups_copy_in(stream, staging, r);
	const GpuGroupTerms terms(spec, device_spec, view->nwords);
	const GpuSide side = gpu_side_of(stream, r, spec, device_spec);
	GpuUncounted uncounted = {};
	int64_t total;
	int64_t done = 0;

	gpu_fill(s, stream->uncounted, 0, sizeof(GpuUncounted));
	total = n > 0 && view->height > 0 ? gpu_scan_locate<Probe>(stream, view, staging, r, n) : 0;
	if (total == GPU_SCAN_UNKNOWN)
		return total;
	if (total > 0)
	{
		const int64_t most = total < spec->most ? total : spec->most;
		GpuRuns<Probe> runs = { GpuScanEntries<Probe>(stream, view, r, n, most, visible), spec->bits,
								spec->repeated != 0 };

		if (runs.in.threads() > most_threads)
			runs.in.total = most_threads * runs.in.stretch;
		gpu_scan_runs_launch(stream, runs, terms, side, spec->slots, runs.in.total == total);
		uncounted = gpu_scan_uncounted(stream);
		/* the total, unless the request has stopped before */
		done = (int64_t) stream->summary->total;
	}
	*stopped = done < total;
	gpu_scan_groups_answer(stream, staging, r, spec, uncounted, done);
	return uncounted.others;
}

#endif /* GPU_SCAN_RUNS_H */
