/*-------------------------------------------------------------------------
 *
 * scan_join.h
 *	  Scans whose entries are joined with those of another structure, and only counted; part of scan.h.
 *
 * A launch of the driving structure goes through a piece of the scan, and writes which keys it has, and how
 * many entries of each.  A launch of the other structure then probes that for these keys, a thread each.  The
 * first knows only the one structure, and the second only the other, so there is no kernel for each pair.
 *
 * A key may be written several times, because threads do not know of each other's entries.  That does not
 * matter, as what is counted is a sum over driving entries (entry_join.h).
 *
 * Driving entries of whose rows nothing is known, or which are dead, are handed back as by any scan that adds
 * up.  Keys of which the other side is not known are handed back with the number of their driving rows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_SCAN_JOIN_H
#define GPU_SCAN_JOIN_H

/* Driving entries of a thread. */
#define GPU_JOIN_STRETCH 8

/* Entries of the other side that a thread looks at for a key; keys of more are handed back. */
#define GPU_JOIN_ENTRIES 4096

/* Bytes of device memory that a driving entry of a piece takes. */
#define GPU_JOIN_ENTRY_BYTES (sizeof(GpudsEntry) + sizeof(GpudsEntry) + sizeof(uint32_t))

/* Keys that the other side is asked for; all in device memory. */
struct GpuJoinKeys
{
	EntryJoin join;
	int64_t n;
	GpudsEntry *keys;          /* as the other side has them */
	GpudsEntry *firsts;        /* one of the driving entries of each */
	uint32_t *rows;            /* driving rows of each; 0: there is no key */
	GpuVisible visible;        /* of the other side */
	bool full;                 /* all rows of the other side are visible to everybody */
	const GpudsEntry *touched; /* keys that are handed back whatever the structure has, ascending */
	int64_t ntouched;
	EntryJoinKey *unknown; /* keys that are handed back, as many as there is room for */
	int64_t room;
	GpuUncounted *uncounted;
};

/* Adds a thread's rows to the sum of all.  Whole warps call it. */
GPU_FN void
gpu_join_add(GpuUncounted *uncounted, uint64_t rows)
{
	gpu_warp_add64(&uncounted->joined, rows);
}

/* Writes the keys of a piece's entries; entry o's key, if it has one, is in place o - base. */
template <class Probe> struct GpuJoinCollect
{
	GpuScanEntries<Probe> in;
	GpuJoinKeys keys;
	int other_nwords;
	int64_t base; /* the piece's first entry */

	/* Writes a key of so many rows; those that are joined with none are returned. */
	GPU_FN uint64_t put(int64_t place, const GpudsEntry &e, uint32_t rows) const
	{
		GpudsEntry key;

		if (rows == 0)
			return 0;
		if (!entry_join_key(&keys.join, &e, in.nwords, other_nwords, &key))
			return rows;
		keys.keys[place] = key;
		keys.firsts[place] = e;
		keys.rows[place] = rows;
		return 0;
	}

	GPU_FN void operator()(int64_t i) const
	{
		const int64_t end = base + keys.n;
		const int64_t o = base + i * GPU_JOIN_STRETCH;
		uint64_t alone = 0;
		int64_t place = -1;
		uint32_t rows = 0;
		GpudsEntry first = { 0, 0, 0 };

		in.go_through(o, o + GPU_JOIN_STRETCH < end ? o + GPU_JOIN_STRETCH : end,
					  [&](const GpudsEntry &e, int64_t, int64_t at)
					  {
						  const GpudsEntry last = entry_last_alike(&e, &keys.join.bits);

						  keys.rows[at - base] = 0;
						  if (place < 0 || !entry_alike(first, last))
						  {
							  if (place >= 0)
								  alone += put(place, first, rows);
							  place = at - base;
							  first = e;
							  rows = 0;
						  }
						  rows += in.is_seen(e);
						  return true;
					  });
		if (place >= 0)
			alone += put(place, first, rows);
		gpu_join_add(in.uncounted, entry_join_rows(keys.join.kind, alone, 0));
	}

	GPU_FN bool entry_alike(const GpudsEntry &e, const GpudsEntry &last) const
	{
		const GpudsEntry own = entry_last_alike(&e, &keys.join.bits);

		return entry_equal(&own, &last);
	}
};

/* Probes a structure for keys, and adds up what they are joined with. */
template <class Probe> struct GpuJoinProbe
{
	typename Probe::View view;
	bool empty; /* there are no entries */
	GpuJoinKeys keys;

	/* Is a key one of those that are handed back in any case? */
	GPU_FN bool is_touched(const GpudsEntry &key) const
	{
		int64_t lo = 0;
		int64_t hi = keys.ntouched;

		while (lo < hi)
		{
			int64_t middle = lo + (hi - lo) / 2;

			if (entry_less(&keys.touched[middle], &key))
				lo = middle + 1;
			else
				hi = middle;
		}
		return lo < keys.ntouched && entry_equal(&keys.touched[lo], &key);
	}

	/* How many of n entries from a start have rows that are seen; false: it is not known. */
	GPU_FN bool count_seen(GpuStart start, int64_t n, uint64_t *seen) const
	{
		const bool tests = entry_join_tests(keys.join.kind);
		bool known = true;
		typename Probe::Position p;

		*seen = 0;
		if (n > GPU_JOIN_ENTRIES)
			return false;
		Probe::position(view, start, 0, true, &p);
		while (n > 0 && !(tests && *seen > 0))
		{
			uint64_t some[GPU_TIDS];

			n -= Probe::tids(view, &p, n, some);
			for (int k = 0; k < GPU_TIDS; k++)
			{
				const PageRow row = some[k] == GPU_NO_TID ? PAGE_ROW_UNSEEN : keys.visible.row(some[k]);

				*seen += row == PAGE_ROW_SEEN;
				known &= row != PAGE_ROW_UNKNOWN;
			}
		}
		return known || (tests && *seen > 0);
	}

	/* How many rows a key has; false: it is not known. */
	GPU_FN bool count(const GpudsEntry &key, uint64_t *rows) const
	{
		const GpudsInterval interval = {
			key, { key.w0 | keys.join.rest.w0, key.w1 | keys.join.rest.w1, key.t | keys.join.rest.t }
		};
		GpuStart start;

		*rows = 0;
		if (keys.ntouched > 0 && is_touched(key))
			return false;
		if (empty)
			return true;
		*rows = Probe::locate(view, &interval, true, &start);
		if (*rows >= GPU_TOO_FAR)
			return false;
		return keys.full || *rows == 0 || count_seen(start, (int64_t) *rows, rows);
	}

	GPU_FN void hand_back(int64_t i) const
	{
		const uint32_t at = gpu_atomic_add(&keys.uncounted->taken, 1);

		if (at < keys.room)
		{
			keys.unknown[at].first = keys.firsts[i];
			keys.unknown[at].rows = keys.rows[i];
		}
	}

	GPU_FN void operator()(int64_t i) const
	{
		const uint32_t n = i < keys.n ? keys.rows[i] : 0;
		uint64_t joined = 0;
		uint64_t rows;

		if (n > 0 && count(keys.keys[i], &rows))
			joined = entry_join_rows(keys.join.kind, n, rows);
		else if (n > 0)
			hand_back(i);
		gpu_join_add(keys.uncounted, joined);
	}
};

/* What GpuJoinSide::join is, with the structure's probe. */
template <class Probe>
static inline void
gpu_scan_join_probe(GpuScanStream *stream, const GpudsView *view, const GpuJoinKeys &keys)
{
	GpuJoinProbe<Probe> probe = { Probe::open(*view), view->height == 0, keys };

	gpu_launch(&stream->stream, gpu_whole_blocks(keys.n), probe);
}

/* Bytes that what is said of the other side takes in device memory. */
static inline size_t
gpu_join_bytes(const GpuJoin *join)
{
	return gpu_visible_bytes(join) + (size_t) join->ntouched * sizeof(GpudsEntry);
}

/* Does what a join has in staging memory lie there, and fit behind all else in the stream's? */
static inline bool
gpu_join_fits(const GpuScanStream *stream, const unsigned char *staging, size_t staging_bytes,
			  const GpuRequest *r)
{
	const size_t piece = stream->piece_bytes;
	const GpuJoin *join;

	if (!gpu_staging_has(staging_bytes, r->join, sizeof(GpuJoin)))
		return false;
	join = (const GpuJoin *) (staging + r->join);
	if (!gpu_visible_is_there(piece, staging_bytes, join) ||
		join->ntouched > (int64_t) (piece / sizeof(GpudsEntry)) ||
		!gpu_staging_has(staging_bytes, join->touched, (size_t) join->ntouched * sizeof(GpudsEntry)))
		return false;
	return gpu_scan_input_bytes(r) <= piece && gpu_visible_bytes(r) + gpu_join_bytes(join) <= piece &&
		   join->room <= (int64_t) (piece / 2 / sizeof(EntryJoinKey)) &&
		   r->cap <= (int64_t) (piece / 2 / sizeof(GpudsEntry));
}

/* Copies what is said of the other side behind what is said of the driving one. */
static inline void
gpu_join_copy_in(GpuScanStream *stream, const unsigned char *staging, const GpuRequest *r,
				 const GpuJoin *join, GpuJoinKeys *keys)
{
	unsigned char *to = stream->input + gpu_scan_input_bytes(r) + gpu_visible_bytes(r);

	keys->join = join->join;
	keys->visible = gpu_visible_copy_to(stream, staging, join, to);
	keys->full = join->full;
	to += gpu_visible_bytes(join);
	gpu_copy_bus(&stream->stream, to, staging + join->touched, (size_t) join->ntouched * sizeof(GpudsEntry));
	keys->touched = (const GpudsEntry *) to;
	keys->ntouched = join->ntouched;
	keys->unknown = (EntryJoinKey *) (stream->output + stream->piece_bytes / 2);
	keys->room = join->room;
	keys->uncounted = stream->uncounted;
}

/* Joins so many entries, a piece after the other. */
template <class Probe>
static inline void
gpu_scan_join_pieces(GpuScanStream *stream, const GpudsView *view, const GpuRequest *r, int64_t n,
					 int64_t total, const GpuVisible &visible, const GpuJoinKeys &keys)
{
	const int64_t piece = (int64_t) (stream->piece_bytes / GPU_JOIN_ENTRY_BYTES);
	GpuJoinCollect<Probe> collect = { GpuScanEntries<Probe>(stream, view, r, n, total, visible), keys,
									  stream->joined_view.nwords, 0 };

	collect.keys.keys = (GpudsEntry *) stream->other;
	collect.keys.firsts = collect.keys.keys + piece;
	collect.keys.rows = (uint32_t *) (collect.keys.firsts + piece);
	for (; collect.base < total; collect.base += piece)
	{
		collect.keys.n = total - collect.base < piece ? total - collect.base : piece;
		gpu_launch(&stream->stream,
				   gpu_whole_blocks((collect.keys.n + GPU_JOIN_STRETCH - 1) / GPU_JOIN_STRETCH), collect);
		stream->joined->join(stream, &stream->joined_view, collect.keys);
	}
}

/*
 * Joins the entries of n intervals with those of stream->joined.  Writes keys that are handed back to staging
 * memory, and the others behind the room for them, if there is room for all.  Returns how many others there
 * are, or GPU_SCAN_UNKNOWN.
 */
template <class Probe>
static inline int64_t
gpu_scan_join(GpuScanStream *stream, const GpudsView *view, unsigned char *staging, GpuRequest *r, int64_t n)
{
	GpuStream *s = &stream->stream;
	const GpuJoin *join = (const GpuJoin *) (staging + r->join);
	const GpuVisible visible = gpu_visible_copy_in(stream, staging, r);
	GpuUncounted uncounted = {};
	GpuJoinKeys keys = {};
	int64_t total;

	gpu_fill(s, stream->uncounted, 0, sizeof(GpuUncounted));
	gpu_join_copy_in(stream, staging, r, join, &keys);
	total = n > 0 && view->height > 0 ? gpu_scan_locate<Probe>(stream, view, staging, r, n) : 0;
	if (total == GPU_SCAN_UNKNOWN)
		return total;
	if (total > 0)
	{
		gpu_scan_join_pieces<Probe>(stream, view, r, n, total, visible, keys);
		uncounted = gpu_scan_uncounted(stream);
	}
	r->counted = total - uncounted.others - uncounted.unseen;
	r->joined = uncounted.joined;
	r->taken = uncounted.taken;
	if (uncounted.others <= r->cap && uncounted.taken <= join->room)
	{
		gpu_copy_bus(s, staging + r->output, keys.unknown, uncounted.taken * sizeof(EntryJoinKey));
		gpu_copy_bus(s, staging + r->output + (size_t) join->room * sizeof(EntryJoinKey), stream->output,
					 uncounted.others * sizeof(GpudsEntry));
	}
	return uncounted.others;
}

#endif /* GPU_SCAN_JOIN_H */
