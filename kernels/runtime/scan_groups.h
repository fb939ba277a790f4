/*-------------------------------------------------------------------------
 *
 * scan_groups.h
 *	  Scans that add up, by groups, what entries have that pass a filter and whose rows are known to be
 *	  seen; part of scan.h.
 *
 * Entries are shared out as scan_entries.h says.  A thread finds the slot of a group when it meets its first
 * entry, adds up in registers as long as entries are of that group, and then adds its sums to those of the
 * slot.  So neighbours of one group cost little, and entries without order an addition to the table each.
 *
 * The filter is tested first, which needs the entry only.  An entry is handed back before anything of it
 * has been added up.  So is one whose row's side values are wanted and not there (scan_side.h).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_SCAN_GROUPS_H
#define GPU_SCAN_GROUPS_H

#include "kernels/runtime/group_table.h"
#include "kernels/runtime/scan_side.h"

/* What is added up of entries, and of which, in device memory. */
struct GpuGroupTerms
{
	int nwords;
	uint32_t filter;      /* steps */
	uint32_t side_filter; /* ... behind those */
	uint32_t n;
	const GroupTerm *terms;
	const EntryFilterStep *steps;
	const uint64_t *codes;

	/* spec: what the host can read of it; at: where all of it is on the device. */
	GpuGroupTerms(const GroupSpec *spec, const GroupSpec *at, int words)
		: nwords(words), filter(spec->filter), side_filter(spec->side_filter), n(spec->nterms),
		  terms((const GroupTerm *) there(spec, at, group_spec_terms(spec))),
		  steps((const EntryFilterStep *) there(spec, at, group_spec_steps(spec))),
		  codes((const uint64_t *) there(spec, at, group_spec_codes(spec)))
	{
	}

	/* Where a part of a spec is on the device. */
	static const unsigned char *there(const GroupSpec *spec, const GroupSpec *at, const void *part)
	{
		return (const unsigned char *) at + ((const unsigned char *) part - (const unsigned char *) spec);
	}

	GPU_FN bool passes(const GpudsEntry &e) const
	{
		if (filter == 0)
			return true;
		return nwords == 1 ? entry_filter_passes(steps, filter, codes, &e, NULL, 1)
						   : entry_filter_passes(steps, filter, codes, &e, NULL, 2);
	}

	/*
	 * Does an entry that is seen pass the filter that needs side values?  *row: these.  If they are not
	 * there, the entry is handed back, and does not pass.
	 */
	template <class Probe>
	GPU_FN bool side_passes(const GpuScanEntries<Probe> &in, const GpuSide &side, const GpudsEntry &e,
							const uint8_t **row, uint32_t *filtered) const
	{
		*row = side.row(e.t & ENTRY_TID_MASK);
		if (*row == NULL)
		{
			in.hand_back(e);
			return false;
		}
		if (side_filter == 0)
			return true;
		if (nwords == 1 ? entry_filter_passes(steps + filter, side_filter, codes, &e, *row, 1)
						: entry_filter_passes(steps + filter, side_filter, codes, &e, *row, 2))
			return true;
		++*filtered;
		return false;
	}

	/* Adds what an entry has; row: NULL, or its side values.  most: room for terms. */
	template <int most> GPU_FN void add(PartialAgg *sums, const GpudsEntry &e, const uint8_t *row) const
	{
		for (int k = 0; k < most; k++)
		{
			if (k < (int) n)
			{
				if (nwords == 1)
					group_term_add(&terms[k], steps, codes, &e, row, 1, &sums[k]);
				else
					group_term_add(&terms[k], steps, codes, &e, row, 2, &sums[k]);
			}
		}
	}

	/* Adds sums to those of a slot, which other threads add to, too. */
	template <int most> GPU_FN void hand_in(uint64_t *slot, uint64_t rows, const PartialAgg *sums) const
	{
		gpu_atomic_add64(&slot[GROUP_ROWS], rows);
		for (int k = 0; k < most; k++)
		{
			if (k < (int) n && sums[k].n > 0)
				GpuGroupTable::add(&slot[GROUP_PARTIAL + k * GROUP_PARTIAL_WORDS], terms[k].column, sums[k]);
		}
	}
};

/* What a thread has of the group at hand. */
template <int most> struct GpuGroupAtHand
{
	bool any; /* there is one */
	GpudsEntry key;
	uint32_t label;
	uint64_t side[GROUP_SIDE_WORDS];
	uint64_t *slot; /* NULL: there was no room */
	uint64_t rows;
	PartialAgg sums[most];
};

/* most: room for terms, of which there may be fewer.  has_side: side values are wanted. */
template <class Probe, int most, bool has_side> struct GpuScanGroups
{
	GpuScanEntries<Probe> in;
	GpuGroupTerms terms;
	GpudsEntry bits;
	const uint32_t *labels; /* NULL: all are 0 */
	GpuGroupTable table;
	GpuSide side;
	uint64_t side_bits[GROUP_SIDE_WORDS]; /* ones where a group agrees */

	/* Adds what a thread has to the table. */
	GPU_FN void hand_in(const GpuGroupAtHand<most> &group) const
	{
		if (group.any && group.rows > 0)
			terms.template hand_in<most>(group.slot, group.rows, group.sums);
	}

	/* Goes on to another group. */
	GPU_FN void begin(GpuGroupAtHand<most> *group, const GpudsEntry &key, uint32_t label,
					  const uint64_t *of_side, int64_t thread) const
	{
		hand_in(*group);
		group->any = true;
		group->key = key;
		group->label = label;
		for (int k = 0; has_side && k < GROUP_SIDE_WORDS; k++)
			group->side[k] = of_side[k];
		group->slot = table.find(key, label, has_side ? of_side : NULL, (uint64_t) thread);
		group->rows = 0;
		for (int k = 0; k < most; k++)
			group->sums[k] = partial_agg_empty();
	}

	/* What a row has in the side values in which a group agrees; 0 in other words. */
	GPU_FN void side_key(const uint8_t *row, uint64_t *of_side) const
	{
		for (uint32_t k = 0; k < GROUP_SIDE_WORDS; k++)
			of_side[k] = k < table.nside ? ((const uint64_t *) row)[k] & side_bits[k] : 0;
	}

	GPU_FN static bool is_alike(const uint64_t *a, const uint64_t *b)
	{
		bool alike = true;

		for (int k = 0; k < GROUP_SIDE_WORDS; k++)
			alike &= a[k] == b[k];
		return alike;
	}

	/* Adds an entry that passes the filter to its group, if it is seen, or hands it back. */
	GPU_FN void add(GpuGroupAtHand<most> *group, const GpudsEntry &e, uint32_t label, int64_t thread,
					uint32_t *filtered) const
	{
		GpudsEntry key = { e.w0 & bits.w0, e.w1 & bits.w1, e.t & bits.t };
		uint64_t of_side[GROUP_SIDE_WORDS];
		const uint8_t *row = NULL;

		if (!in.is_seen(e))
			return;
		if (has_side && !terms.side_passes(in, side, e, &row, filtered))
			return;
		if (has_side)
			side_key(row, of_side);
		if (!group->any || group->label != label || !entry_equal(&group->key, &key) ||
			(has_side && !is_alike(group->side, of_side)))
			begin(group, key, label, of_side, thread);
		if (group->slot == NULL)
		{
			gpu_atomic_count(&in.uncounted->crowded);
			in.hand_back(e);
			return;
		}
		group->rows++;
		terms.template add<most>(group->sums, e, row);
	}

	GPU_FN void operator()(int64_t i) const
	{
		uint32_t filtered = 0;
		GpuGroupAtHand<most> group;

		group.any = false;
		in.of_thread(i,
					 [&](const GpudsEntry &e, int64_t interval, int64_t)
					 {
						 if (terms.passes(e))
							 add(&group, e, labels == NULL ? 0 : labels[interval], i, &filtered);
						 else
							 filtered++;
						 return true;
					 });
		hand_in(group);
		if (filtered > 0)
			gpu_atomic_add(&in.uncounted->filtered, filtered);
	}
};

/* Does a column lie within the side values of a row, if it is a side column and these are wanted? */
static inline bool
gpu_side_column_is_sound(const GroupSpec *spec, const AggColumn *column, uint32_t row_bytes)
{
	return !spec->has_side || column->side_bytes == 0 ||
		   (uint32_t) column->side_offset + column->side_bytes <= row_bytes;
}

/*
 * Do the parts of a spec lie within its bytes, and what they refer to within the parts?  row_bytes: of the
 * side values of a row, 0: there are none.
 */
static inline bool
gpu_group_spec_is_sound(const GroupSpec *spec, uint64_t bytes, int64_t n, uint32_t row_bytes)
{
	const GroupTerm *terms = group_spec_terms(spec);
	const EntryFilterStep *steps = group_spec_steps(spec);

	if (spec->slots == 0 || (spec->slots & (spec->slots - 1)) != 0 || spec->spread == 0 ||
		(spec->spread & (spec->spread - 1)) != 0 || spec->spread > spec->slots || spec->nterms > GROUP_TERMS)
		return false;
	if (spec->nsteps > bytes / sizeof(EntryFilterStep) || spec->ncodes > bytes / sizeof(uint64_t) ||
		spec->side_map > bytes ||
		group_spec_bytes(spec) + group_label_bytes(spec, n) + spec->side_map > bytes ||
		spec->filter > spec->nsteps || spec->side_filter > spec->nsteps - spec->filter)
		return false;
	if (spec->has_side
			? row_bytes == 0 || spec->nside > GROUP_SIDE_WORDS || spec->nside * sizeof(uint64_t) > row_bytes
			: spec->nside > 0 || spec->side_filter > 0)
		return false;
	for (uint32_t i = 0; i < spec->nterms; i++)
	{
		if (terms[i].first_step > spec->nsteps || terms[i].nsteps > spec->nsteps - terms[i].first_step ||
			!gpu_side_column_is_sound(spec, &terms[i].column, row_bytes))
			return false;
	}
	for (uint32_t i = 0; i < spec->nsteps; i++)
	{
		if (steps[i].op != ENTRY_FILTER_TEST
				? steps[i].n > ENTRY_FILTER_DEPTH
				: steps[i].codes > spec->ncodes ||
					  2 * (uint64_t) steps[i].n > spec->ncodes - steps[i].codes ||
					  !gpu_side_column_is_sound(spec, &steps[i].column, row_bytes))
			return false;
	}
	return true;
}

/* Do the slots of ordered groups fit where they will be, with as many numbers behind them? */
static inline bool
gpu_runs_fit(const GpuScanStream *stream, const GroupSpec *spec)
{
	return spec->most > 0 && !spec->has_labels && spec->nside == 0 &&
		   group_table_bytes(spec) <= stream->piece_bytes / 2 &&
		   ((size_t) spec->slots + 1) * sizeof(uint32_t) <= stream->piece_bytes / 2;
}

/* Does the spec of a request lie in the staging memory, and its table fit where it will be? */
static inline bool
gpu_groups_fit(const GpuScanStream *stream, const unsigned char *staging, size_t staging_bytes,
			   const GpuRequest *r)
{
	const GroupSpec *spec = (const GroupSpec *) (staging + r->groups);

	if (r->groups_bytes < sizeof(GroupSpec) || r->groups % sizeof(uint64_t) != 0 ||
		!gpu_staging_has(staging_bytes, r->groups, r->groups_bytes))
		return false;
	return gpu_group_spec_is_sound(spec, r->groups_bytes, r->n, stream->side.row_bytes) &&
		   group_table_bytes(spec) <= stream->piece_bytes && (spec->most == 0 || gpu_runs_fit(stream, spec));
}

/* Copies the spec of a request, which fits, behind map and rows. */
static inline const GroupSpec *
gpu_groups_copy_in(GpuScanStream *stream, const unsigned char *staging, const GpuRequest *r)
{
	unsigned char *to = stream->input + gpu_scan_input_bytes(r) + gpu_visible_bytes(r);

	gpu_copy_bus(&stream->stream, to, staging + r->groups, r->groups_bytes);
	return (const GroupSpec *) to;
}

template <class Probe, int most, bool has_side>
static inline void
gpu_scan_group_entries(GpuScanStream *stream, const GpudsView *view, const GpuRequest *r, int64_t n,
					   int64_t total, const GpuVisible &visible, const GroupSpec *spec,
					   const GroupSpec *device_spec, const GpuGroupTable &table, const GpuSide &side)
{
	const GpuGroupTerms terms(spec, device_spec, view->nwords);
	GpuScanEntries<Probe> in(stream, view, r, n, total, visible);
	GpuScanGroups<Probe, most, has_side> groups = { in, terms, spec->bits, NULL, table, side, {} };

	memcpy(groups.side_bits, spec->side_bits, sizeof(groups.side_bits));
	if (spec->has_labels)
		groups.labels = (const uint32_t *) GpuGroupTerms::there(spec, device_spec, group_spec_labels(spec));
	gpu_launch(&stream->stream, in.threads(), groups);
}

/*
 * Answers with the slots at stream->starts, and with what is handed back, of a request that has gone through
 * so many entries.
 */
static inline void
gpu_scan_groups_answer(GpuScanStream *stream, unsigned char *staging, GpuRequest *r, const GroupSpec *spec,
					   const GpuUncounted &uncounted, int64_t total)
{
	GpuStream *s = &stream->stream;

	gpu_copy_bus(s, staging + r->output, stream->starts,
				 uncounted.taken * group_slot_words(spec->nterms, spec->nside) * sizeof(uint64_t));
	r->taken = uncounted.taken;
	r->filtered = uncounted.filtered;
	r->left_out = uncounted.left_out;
	r->crowded = uncounted.crowded;
	r->counted = total - uncounted.others - uncounted.unseen - uncounted.filtered - uncounted.left_out;
	if (uncounted.others > 0 && uncounted.others <= r->cap)
		gpu_copy_bus(s, staging + r->output + group_table_bytes(spec), stream->output,
					 (size_t) uncounted.others * sizeof(GpudsEntry));
}

/*
 * Adds up the entries of n intervals by groups.  Writes the slots to staging memory, and the others behind
 * the room for all of them, if there is room.  Returns how many others there are, or GPU_SCAN_UNKNOWN.
 */
template <class Probe>
static inline int64_t
gpu_scan_groups(GpuScanStream *stream, const GpudsView *view, unsigned char *staging, GpuRequest *r,
				int64_t n)
{
	GpuStream *s = &stream->stream;
	const GroupSpec *spec = (const GroupSpec *) (staging + r->groups);
	GpuVisible visible = gpu_visible_copy_in(stream, staging, r);
	const GroupSpec *device_spec = gpu_groups_copy_in(stream, staging, r);
	const GpuSide side = gpu_side_of(stream, r, spec, device_spec);
	GpuGroupTable table = { (uint64_t *) stream->other, spec->slots, spec->spread, spec->nterms,
							spec->nside };
	GpuGroupTake take = { table, (uint64_t *) stream->starts, &stream->uncounted->taken };
	GpuUncounted uncounted = {};
	int64_t total;

	gpu_fill(s, stream->uncounted, 0, sizeof(GpuUncounted));
	gpu_fill(s, table.words, 0, group_table_bytes(spec));
	total = n > 0 && view->height > 0 ? gpu_scan_locate<Probe>(stream, view, staging, r, n) : 0;
	if (total == GPU_SCAN_UNKNOWN)
		return total;
	if (total > 0)
	{
		if (side.values != NULL && spec->nterms <= 2)
			gpu_scan_group_entries<Probe, 2, true>(stream, view, r, n, total, visible, spec, device_spec,
												   table, side);
		else if (side.values != NULL)
			gpu_scan_group_entries<Probe, GROUP_TERMS, true>(stream, view, r, n, total, visible, spec,
															 device_spec, table, side);
		else if (spec->nterms <= 2)
			gpu_scan_group_entries<Probe, 2, false>(stream, view, r, n, total, visible, spec, device_spec,
													table, side);
		else
			gpu_scan_group_entries<Probe, GROUP_TERMS, false>(stream, view, r, n, total, visible, spec,
															  device_spec, table, side);
		/* intervals need not be found any more */
		gpu_launch(s, spec->slots, take);
		uncounted = gpu_scan_uncounted(stream);
	}
	gpu_scan_groups_answer(stream, staging, r, spec, uncounted, total);
	return uncounted.others;
}

#endif /* GPU_SCAN_GROUPS_H */
