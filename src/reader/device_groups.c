/*-------------------------------------------------------------------------
 *
 * device_groups.c
 *	  Rows added up by groups on a device: what entry_agg.c does with filters and groups, for all
 *	  intervals at hand at once.
 *
 * The device has a table of some ten thousand groups (kernels/core/group_spec.h).  Groups of leading columns
 * need no table, and come in order, as many as there are, a piece of the scan at a time.  Entries that it is
 * not sure of, or has no room for, come back and are looked up and added here.  If these are too many, or the
 * groups, it is as if nothing had been asked.
 *
 * A filter's tests are made before any entry has come.  So only such are for the device that no error can
 * come of.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/relscan.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "kernels/core/sort.h"
#include "reader/entry_agg.h"
#include "reader/reader.h"

/* Rows that are worth a round trip. */
#define WORTH_ROWS 4096

/* Slots that all groups may have together, and one of them, so that threads do not wait for each other. */
#define SPREAD_SLOTS 2048
#define MOST_SPREAD 256

/* Bytes that a table has unless more groups are expected. */
#define USUAL_TABLE_BYTES ((size_t) 2 * 1024 * 1024)

/* Entries that a device goes through at once, at least, where there are many groups in order. */
#define LEAST_ORDERED (1024 * 1024)

/* The same of further groups: by then it is known how many entries fill the room for groups. */
#define LEAST_ORDERED_NEXT (128 * 1024)

/* May a device have the side values that are wanted, or are none wanted? */
bool
gpuds_entry_agg_may_have_side(const GpudsEntryAgg *agg)
{
	return !agg->has_side || agg->reader.stored;
}

/* May a device add up by groups, or by filters, or so many columns?  It finds no ends of groups. */
bool
gpuds_entry_agg_may_group(const GpudsEntryAgg *agg)
{
	return agg->nagg <= GROUP_TERMS && gpuds_entry_agg_may_have_side(agg) && !agg->groups.find &&
		   agg->visible.counts && agg->expected >= WORTH_ROWS;
}

/* Adds the steps of a filter; NULL is one that all pass.  False: it cannot be. */
static bool
add_filter(GpudsRowFilter *filter, GpudsFilterSteps *steps, uint32 *first, uint32 *n)
{
	*first = (uint32) steps->nsteps;
	*n = 0;
	if (filter && !gpuds_row_filter_add_steps(filter, steps))
		return false;
	*n = (uint32) steps->nsteps - *first;
	return steps->nsteps * sizeof(EntryFilterStep) + steps->ncodes * sizeof(uint64) <
		   GPUDS_GROUP_SPEC_BYTES / 2;
}

/* Sets a term, but for its filter. */
static void
set_term(const GpudsEntryAgg *agg, int i, GroupTerm *term)
{
	memset(term, 0, sizeof(*term));
	term->column = agg->agg_columns[i];
	if (agg->filters == NULL || agg->filters[i] == NULL)
		return;
	term->has_value = agg->cases[i].has_value;
	term->has_other = agg->cases[i].has_other;
	term->value = agg->cases[i].value;
	term->other = agg->cases[i].other;
}

/* Sets the size of the table, of so many groups, about, and slots at most; false: there are too many. */
static bool
set_slots(GroupSpec *spec, double groups, int64 most)
{
	groups = Max(groups, 1);
	spec->slots = 1;
	while (2 * (int64) spec->slots <= most &&
		   2 * group_table_bytes(spec) <=
			   (2 * groups > spec->slots ? GPUDS_GROUP_TABLE_BYTES : USUAL_TABLE_BYTES))
		spec->slots *= 2;
	spec->spread = 1;
	while (spec->spread < Min(spec->slots, MOST_SPREAD) &&
		   2 * groups * spec->spread <= Min(SPREAD_SLOTS, spec->slots / 2))
		spec->spread *= 2;
	return 2 * groups <= spec->slots;
}

/* Puts the parts of a spec together; NULL: there are no terms. */
static GroupSpec *
join_spec(const GroupSpec *head, const GroupTerm *terms, const GpudsFilterSteps *steps)
{
	GroupSpec *spec = palloc(group_spec_bytes(head));

	*spec = *head;
	if (terms)
		memcpy(group_spec_terms(spec), terms, head->nterms * sizeof(GroupTerm));
	if (head->nsteps > 0)
		memcpy(group_spec_steps(spec), steps->steps, head->nsteps * sizeof(EntryFilterStep));
	if (head->ncodes > 0)
		memcpy(group_spec_codes(spec), steps->codes, head->ncodes * sizeof(uint64));
	return spec;
}

/*
 * Adds terms and filters to the head of a spec, and sets what a device is told of side values, in the current
 * context; NULL: it cannot do it.
 */
static GroupSpec *
make_spec(GpudsEntryAgg *agg, GroupSpec head, GpudsCountSide *side)
{
	GroupTerm terms[GROUP_TERMS];
	GpudsFilterSteps steps = { .side = agg->has_side };
	uint32 first;

	head.has_side = agg->has_side;
	/* terms, and agg->total, have no more */
	if (agg->nagg > GROUP_TERMS || !add_filter(agg->entry_filter, &steps, &first, &head.filter) ||
		!add_filter(agg->side_filter, &steps, &first, &head.side_filter))
		return NULL;
	for (int i = 0; i < agg->nagg; i++)
	{
		set_term(agg, i, &terms[i]);
		if (!add_filter(agg->filters ? agg->filters[i] : NULL, &steps, &terms[i].first_step,
						&terms[i].nsteps))
			return NULL;
	}
	if (agg->has_side && !gpuds_scan_copy_side(agg->scan, &agg->reader.file, side))
		return NULL;
	head.nsteps = (uint32) steps.nsteps;
	head.ncodes = steps.ncodes;
	return join_spec(&head, terms, &steps);
}

/*
 * A count that hands back the entries which pass a filter, if nothing is known of any row; in the current
 * context.  NULL: a device cannot test it.
 */
GroupSpec *
gpuds_row_filter_spec(GpudsRowFilter *filter)
{
	GroupSpec head = { .slots = 1, .spread = 1 };
	GpudsFilterSteps steps = { 0 };
	uint32 first;

	if (!add_filter(filter, &steps, &first, &head.filter))
		return NULL;
	head.nsteps = (uint32) steps.nsteps;
	head.ncodes = steps.ncodes;
	return join_spec(&head, NULL, &steps);
}

/* The groups that the aggregate has, or one group of all rows; NULL: a device cannot do it. */
static GroupSpec *
make_own_spec(GpudsEntryAgg *agg, bool has_labels, GpudsCountSide *side)
{
	GroupSpec head = { .nterms = (uint32) agg->nagg, .has_labels = has_labels };

	StaticAssertDecl(GROUP_SIDE_WORDS == GPUDS_GROUP_SIDE_WORDS, "words of side values");
	if (agg->grouped)
	{
		head.bits = agg->hash.bits.entry;
		head.nside = (uint32) agg->hash.nside;
		memcpy(head.side_bits, agg->hash.bits.side, sizeof(head.side_bits));
	}
	if (!set_slots(&head, agg->grouped ? agg->groups.expected : 1,
				   agg->grouped ? agg->hash.most : PG_INT32_MAX))
		return NULL;
	return make_spec(agg, head, side);
}

/* Adds the terms of a slot to sums. */
static void
add_slot(const uint64 *slot, int nagg, PartialAgg *partial)
{
	PartialAgg part;

	for (int i = 0; i < nagg; i++)
	{
		memcpy(&part, slot + GROUP_PARTIAL + i * GROUP_PARTIAL_WORDS, sizeof(part));
		partial_agg_merge(&partial[i], &part);
	}
}

/* Adds a slot of the device's table to a group, or to all rows. */
static void
take_slot(GpudsEntryAgg *agg, const uint64 *slot)
{
	PartialAgg *partial = agg->total;
	GpudsGroupKey key;

	if (!agg->grouped)
		agg->total_rows += slot[GROUP_ROWS];
	else
	{
		int64 number;

		memset(&key, 0, sizeof(key));
		key.entry.w0 = slot[GROUP_W0];
		key.entry.w1 = slot[GROUP_W1];
		key.entry.t = slot[GROUP_T];
		key.run = slot[GROUP_LABEL];
		memcpy(key.side, slot + group_slot_side((uint32) agg->nagg), agg->hash.nside * sizeof(uint64));
		number = gpuds_hash_groups_find(&agg->hash, &key);
		Assert(number >= 0);
		agg->hash.groups[number].rows += slot[GROUP_ROWS];
		partial = agg->hash.partial + number * agg->nagg;
	}
	add_slot(slot, agg->nagg, partial);
}

/*
 * Is there room for the groups of an answer, each of which may be new, and is none of them where none should
 * be?
 */
static bool
fits(const GpudsEntryAgg *agg, const GpudsCounted *counted)
{
	const size_t words = group_slot_words((uint32) agg->nagg, (uint32) agg->hash.nside);

	for (int64 i = 0; i < counted->groups.n; i++)
	{
		if (counted->groups.words[i * words + GROUP_LABEL] == GPUDS_LABEL_OUTSIDE)
			return false;
	}
	return !agg->grouped || agg->hash.n + counted->groups.n <= agg->hash.most;
}

/* Puts the entries that come back in order: runs are found in the order of the index. */
static void
sort_others(GpudsCounted *counted)
{
	GpudsEntry *scratch;

	if (counted->n == 0)
		return;
	scratch = MemoryContextAllocHuge(CurrentMemoryContext, counted->n * sizeof(GpudsEntry));
	sort_entries(counted->entries, scratch, counted->n);
	pfree(scratch);
}

/* Keeps what the device is not sure of, with its groups if they are in order. */
static void
keep_others(GpudsEntryAgg *agg, const GpudsCounted *counted)
{
	gpuds_probe_free_counted(&agg->others);
	agg->others = *counted;
	agg->next_other = 0;
	agg->next_run = 0;
}

/* Adds all groups of an answer to those of the aggregate. */
static void
take_slots(GpudsEntryAgg *agg, GpudsCounted *counted)
{
	const size_t words = group_slot_words((uint32) agg->nagg, (uint32) agg->hash.nside);

	for (int64 i = 0; i < counted->groups.n; i++)
		take_slot(agg, counted->groups.words + i * words);
	if (counted->groups.words)
		pfree(counted->groups.words);
	memset(&counted->groups, 0, sizeof(counted->groups));
}

/*
 * Adds up what is left of the intervals at hand on the device, or all of a scan of one interval by parts
 * with labels, which become the runs of hashed groups.  Keeps the entries that it is not sure of in
 * agg->others.  False: it cannot; nothing has changed.
 */
bool
gpuds_entry_agg_group(GpudsEntryAgg *agg, const GpudsEntryAggParts *parts)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpuds group spec",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	GpudsCountGroups groups = { .labels = parts ? parts->labels : NULL };
	GpudsCountSpec spec = { .partial = true, .groups = &groups };
	GpudsCounted counted = { 0 };
	bool done;

	groups.spec = make_own_spec(agg, parts != NULL, &groups.side);
	MemoryContextSwitchTo(old);
	if (groups.spec == NULL)
		done = false;
	else if (parts)
		done = gpuds_scan_ask_intervals(agg->scan, &agg->visible, agg->expected, parts->intervals, parts->n,
										&spec, &counted);
	else
		done = gpuds_scan_ask_device(agg->scan, &agg->visible, agg->expected, &spec, &counted);
	done = done && fits(agg, &counted);
	if (!done)
		gpuds_probe_free_counted(&counted);
	else
	{
		gpuds_scan_take_count(agg->scan, &counted);
		agg->filtered += counted.filtered;
		take_slots(agg, &counted);
		if (agg->groups.run)
			sort_others(&counted);
		keep_others(agg, &counted);
	}
	MemoryContextDelete(context);
	return done;
}

/* What groups of leading columns are, for a device; NULL: it cannot do it. */
static GroupSpec *
make_ordered_spec(GpudsEntryAgg *agg, GpudsCountSide *side)
{
	GroupSpec head = {
		.bits = agg->group_bits,
		.nterms = (uint32) agg->nagg,
		.slots = 1,
		.spread = 1,
		.repeated = agg->repeated,
		.most = PG_INT64_MAX,
	};

	while (2 * group_table_bytes(&head) <= Min(GPUDS_GROUP_RUNS_BYTES, (size_t) work_mem * 1024))
		head.slots *= 2;
	/* A look at entries whose groups have no slots is wasted; but the estimate may be wrong. */
	if (agg->ordered_most > 0)
		head.most = agg->ordered_most;
	else if (2 * agg->groups.expected > head.slots)
		head.most = Max((int64) (2 * head.slots * Max(agg->expected / agg->groups.expected, 1)),
						LEAST_ORDERED);
	return make_spec(agg, head, side);
}

/*
 * Adds up the next groups of leading columns on the device, as many as come at once.  They are kept in
 * agg->others, beside the entries that it is not sure of, both in order.  False: it cannot; nothing has
 * changed.
 */
bool
gpuds_entry_agg_next_runs(GpudsEntryAgg *agg)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpuds group spec",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	GpudsCountGroups groups = { 0 };
	GpudsCountSpec spec = { .partial = true, .groups = &groups };
	GpudsCounted counted = { 0 };
	bool done;

	groups.spec = make_ordered_spec(agg, &groups.side);
	MemoryContextSwitchTo(old);
	done = groups.spec && gpuds_scan_ask_device(agg->scan, &agg->visible, agg->expected, &spec, &counted);
	if (done)
	{
		gpuds_scan_take_count(agg->scan, &counted);
		agg->filtered += counted.filtered;
		agg->left_out += counted.left_out;
		agg->ordered_most = Max(2 * (counted.counted + counted.filtered + counted.left_out + counted.n),
								LEAST_ORDERED_NEXT);
		sort_others(&counted);
		keep_others(agg, &counted);
	}
	MemoryContextDelete(context);
	return done;
}

/* Adds the device's next groups, as far as they are of the group at hand. */
void
gpuds_entry_agg_add_runs(GpudsEntryAgg *agg, GpudsEntryAggGroup *group)
{
	const size_t words = group_slot_words((uint32) agg->nagg, 0);
	GpudsEntry key;

	while (gpuds_entry_agg_run(agg, &key) && !entry_less(&agg->group_last, &key))
	{
		const uint64 *slot = agg->others.groups.words + agg->next_run++ * words;

		group->rows += slot[GROUP_ROWS];
		add_slot(slot, agg->nagg, group->partial);
	}
}

static void
clear_sums(const GpudsEntryAgg *agg, GpudsCountedSum *sums, int64 n)
{
	for (int64 i = 0; i < n; i++)
	{
		sums[i].rows = 0;
		for (int k = 0; k < agg->nagg; k++)
			sums[i].partial[k] = partial_agg_empty();
	}
}

/*
 * Adds up the rows that pass the filters of n intervals, ascending, disjoint, and together all of a scan of
 * one interval: counted->sums[i] of the i-th.  *counted also has the entries that the device is not sure of;
 * the caller frees it.  False: it cannot, or the map has changed meanwhile.  The scan does not move.
 */
bool
gpuds_entry_agg_group_intervals(GpudsEntryAgg *agg, const GpudsInterval *intervals, int64 n,
								GpudsCounted *counted)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpuds group spec",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	uint32 *labels = palloc(Max(n, 1) * sizeof(uint32));
	GroupSpec head = { .nterms = (uint32) agg->nagg, .has_labels = true };
	GpudsCountGroups groups = { 0 };
	GpudsCountSpec spec = { .partial = true, .groups = &groups };
	GpudsCountedSum *sums = counted->sums;
	bool done;

	for (int64 i = 0; i < n; i++)
		labels[i] = (uint32) i;
	groups.labels = labels;
	if (set_slots(&head, (double) n, PG_INT32_MAX))
		groups.spec = make_spec(agg, head, &groups.side);
	MemoryContextSwitchTo(old);
	done = groups.spec &&
		   gpuds_scan_ask_intervals(agg->scan, &agg->visible, agg->expected, intervals, n, &spec, counted);
	clear_sums(agg, sums, n);
	for (int64 i = 0; done && i < counted->groups.n; i++)
	{
		const uint64 *slot = counted->groups.words + i * group_slot_words(groups.spec->nterms, 0);

		Assert(slot[GROUP_LABEL] < (uint64) n);
		sums[slot[GROUP_LABEL]].rows += slot[GROUP_ROWS];
		add_slot(slot, agg->nagg, sums[slot[GROUP_LABEL]].partial);
	}
	MemoryContextDelete(context);
	return done;
}
