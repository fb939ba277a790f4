/*-------------------------------------------------------------------------
 *
 * entry_agg.h
 *	  Rows of a scan, added up by groups without being made.
 *
 * A group's rows have neighbouring keys: they agree in some leading columns, or the caller says where a group
 * ends.  Or groups are hashed (hash_groups.h): then they are of any columns, come in no order, and one may
 * come several times unless they are wanted whole.  Of a group nothing is kept but its partial aggregates.
 *
 * The rows' visibility is as in visible.h.  Entries are resolved in pieces, and a piece's
 * entries are added up when it is known of all of them whether the snapshot sees their rows.
 * A device may do it for all intervals at hand, and leave the entries that it is not sure of.  Groups of
 * leading columns it gives piece by piece, in order, and they are merged with those entries.
 *
 * Entries that do not pass the filter are left out before their rows are looked up; those whose side values
 * do not, as soon as these are there.  An aggregate may have a filter of its own.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_ENTRY_AGG_H
#define GPUDS_ENTRY_AGG_H

#include "kernels/core/partial_agg.h"
#include "reader/group_parts.h"
#include "reader/hash_groups.h"
#include "reader/row_filter.h"
#include "reader/visible.h"

/* A label of parts in which no rows are expected: if there are some, a device's answer is of no use. */
#define GPUDS_LABEL_OUTSIDE PG_UINT32_MAX

/* Parts of a scan's only interval, ascending, disjoint, and together all of it. */
typedef struct GpudsEntryAggParts
{
	GpudsInterval *intervals;
	uint32 *labels; /* of each: the run that its entries are of, or GPUDS_LABEL_OUTSIDE */
	int64 n;
} GpudsEntryAggParts;

/* What makes rows a group. */
typedef struct GpudsEntryAggGroups
{
	int ncolumns; /* that agree; 0: all rows are one group */
	/* NULL, or sets *last to the last entry that may be in a group, for its first one */
	void (*find)(void *arg, const GpudsEntry *first, GpudsEntry *last);

	/* hashed groups */
	const GpudsGroupKey *hashed; /* what their entries agree in; NULL: groups are not hashed */
	bool whole;                  /* each is to come once, and not in parts; only without run */
	double expected;             /* groups, about; 0: not known */
	/*
	 * NULL, or the same as find for a run of entries, which has a number: entries of one group are of one
	 * run.  The numbers are forgotten at restart; -1: it must come before another run.
	 */
	int64 (*run)(void *arg, const GpudsEntry *first, GpudsEntry *last);
	void (*restart)(void *arg);
	/*
	 * Sets parts for a device, before anything has been asked for, with the caller's runs; false: there are
	 * too many, or none can be found.  The arrays are in the current memory context.
	 */
	bool (*parts)(void *arg, GpudsEntryAggParts *parts);

	void *arg;
} GpudsEntryAggGroups;

/*
 * What is added in place of what rows have in a column: of those that pass the aggregate's filter, and of the
 * others, which else add nothing.
 */
typedef struct GpudsEntryAggCase
{
	bool has_value;
	bool has_other;
	uint64 value; /* bits, as the column has them */
	uint64 other;
} GpudsEntryAggCase;

/* What is added up of rows.  It must live as long as the aggregate. */
typedef struct GpudsEntryAggSpec
{
	const GpudsKeyLayout *layout;
	int nagg;
	const AggColumn *agg_columns;
	const int *columns;             /* of the index, of each; -1: agg_columns has something of any entry */
	GpudsRowFilter *const *filters; /* of each, NULL: it has none; or NULL: none has */
	const GpudsEntryAggCase *cases; /* of each that has a filter; set if filters is */
	GpudsRowFilter *entry_filter;   /* of all rows, that needs their entries only; NULL: none */
	GpudsRowFilter *side_filter;    /* ... that needs side values; NULL: none */
	GpudsEntryAggGroups groups;
	int64 least; /* rows of a group that is wanted, of leading columns; smaller ones may be left out */
} GpudsEntryAggSpec;

typedef struct GpudsEntryAgg
{
	IndexScanDesc scan;
	int nwords;
	const GpudsKeyLayout *layout;
	const AggColumn *agg_columns;
	const int *columns; /* of each aggregated column */
	GpudsRowFilter *const *filters;
	const GpudsEntryAggCase *cases;
	int nagg;
	bool has_side; /* side values are wanted */
	bool has_filters;
	bool repeated; /* groups of one entry are not wanted */
	GpudsRowFilter *entry_filter;
	GpudsRowFilter *side_filter;
	int64 filtered; /* entries that did not pass, so far */
	int64 left_out; /* of those, entries that the device has left out since the caller has looked */
	GpudsSideReader reader;
	GpudsEntryAggGroups groups;
	GpudsEntry group_bits; /* ones where entries of one group agree */
	GpudsEntry group_last; /* last entry that may be in the group at hand */
	GpudsVisible visible;
	bool grouped;
	double expected;         /* rows, about */
	bool device_agg_columns; /* a device adds up what is not grouped, as long as it does */
	bool device_groups;      /* ... or by groups and filters (device_groups.c) */
	MemoryContext context;   /* of what follows */

	GpudsCountedSum sum; /* what the device has added up ... */
	int64 total_rows;    /* ... and by filters, if there are no groups */
	PartialAgg total[GROUP_TERMS];
	GpudsCounted others; /* of its last answer, those from next_other on are not in a piece yet */
	int64 next_other;
	int64 next_run;     /* of others.groups, groups in order, those from this one on have not been taken */
	int64 ordered_most; /* entries to go through for the next groups in order; 0: none have come yet */
	int64 answered;     /* entries of the intervals that it has added up ... */
	int64 answered_filtered; /* ... and those that did not pass the filter */

	/* a piece: entries whose rows are seen, from at on not yet added up */
	GpudsEntry *entries;
	bool *seen;
	bool *passes; /* a filter */
	uint8 *side;  /* side values of those that are seen, if any are wanted */
	int64 size;
	int64 n;
	int64 at;

	/* hashed groups: those from next_group on have not been taken away */
	GpudsHashGroups hash;
	GpudsGroupParts *parts; /* NULL, or what the table had no room for; in the end all groups */
	int64 next_group;
	GpudsHashGroup hash_group; /* the one that has been taken */
	uint32 *numbers;           /* of the groups of the piece's entries */
	int64 run;                 /* that entries up to group_last are of, if has_run */
	bool has_run;
} GpudsEntryAgg;

/* The rows of an interval, and what has been aggregated of them. */
typedef GpudsCountedSum GpudsEntryAggSum;

/* A group of rows. */
typedef struct GpudsEntryAggGroup
{
	GpudsEntry first;  /* one of its entries, if there are rows; of a hashed one what they agree in */
	const uint8 *side; /* the same of side values, until the next group; NULL: none */
	uint64 run;        /* that a hashed one's entries are of */
	int64 rows;
	PartialAgg *partial; /* of each aggregated column; the caller's */
} GpudsEntryAggGroup;

extern void gpuds_entry_agg_begin(GpudsEntryAgg *agg, IndexScanDesc scan, const GpudsEntryAggSpec *spec,
								  double expected);
extern bool gpuds_entry_agg_next(GpudsEntryAgg *agg, GpudsEntryAggGroup *group);
extern void gpuds_entry_agg_end(GpudsEntryAgg *agg);

/*
 * The same as gpuds_entry_agg_next, in the time of a few instructions, if no more than rows are wanted of
 * groups of leading columns, and the piece at hand, without a device's groups beside it, has the whole of
 * the next one.  False: ask that function.
 */
static inline bool
gpuds_entry_agg_next_of_piece(GpudsEntryAgg *agg, GpudsEntryAggGroup *group)
{
	const GpudsEntry *entries = agg->entries;
	int64 end = agg->at + 1;
	GpudsEntry last;

	if (agg->nagg > 0 || agg->groups.ncolumns == 0 || agg->groups.find || agg->groups.hashed ||
		agg->next_run < agg->others.groups.n || end >= agg->n)
		return false;
	last = entry_last_alike(&entries[agg->at], &agg->group_bits);
	if (!entry_less(&last, &entries[agg->n - 1]))
		return false;
	while (!entry_less(&last, &entries[end]))
		end++;
	group->first = entries[agg->at];
	group->side = NULL;
	group->rows = end - agg->at;
	agg->at = end;
	return true;
}
extern int64 gpuds_entry_agg_skip_small(GpudsEntryAgg *agg, int64 least, int64 *rows);
extern const bool *gpuds_entry_agg_passing(GpudsEntryAgg *agg, int i, int64 first, int64 n);
extern void gpuds_entry_agg_add(const GpudsEntryAgg *agg, int i, int64 k, const bool *passes,
								PartialAgg *partial);

/* device_groups.c */
extern bool gpuds_entry_agg_may_have_side(const GpudsEntryAgg *agg);
extern bool gpuds_entry_agg_may_group(const GpudsEntryAgg *agg);
extern bool gpuds_entry_agg_group_intervals(GpudsEntryAgg *agg, const GpudsInterval *intervals, int64 n,
											GpudsCounted *counted);
extern bool gpuds_entry_agg_group(GpudsEntryAgg *agg, const GpudsEntryAggParts *parts);
extern bool gpuds_entry_agg_next_runs(GpudsEntryAgg *agg);
extern void gpuds_entry_agg_add_runs(GpudsEntryAgg *agg, GpudsEntryAggGroup *group);

/* The key of a device's next group in order; false: none is at hand. */
static inline bool
gpuds_entry_agg_run(const GpudsEntryAgg *agg, GpudsEntry *key)
{
	const uint64 *slot = agg->others.groups.words + agg->next_run * group_slot_words((uint32) agg->nagg, 0);

	if (agg->next_run == agg->others.groups.n)
		return false;
	key->w0 = slot[GROUP_W0];
	key->w1 = slot[GROUP_W1];
	key->t = slot[GROUP_T];
	return true;
}

/* device_join.c */

/* What a device has joined. */
typedef struct GpudsJoined
{
	uint64 rows;        /* of the result, but for what is left */
	int64 seen;         /* rows of the scan that the snapshot sees, all but those left */
	EntryJoinKey *left; /* rows of the scan for which the other side is to be probed, in no order */
	int64 nleft;
} GpudsJoined;

extern bool gpuds_entry_agg_may_join(const GpudsEntryAgg *agg);
extern bool gpuds_entry_agg_join(GpudsEntryAgg *agg, GpudsEntryAgg *other, const EntryJoin *how,
								 GpudsJoined *joined);

/* group_agg.c */
extern bool gpuds_entry_agg_may_use_device(const GpudsEntryAgg *agg);
extern void gpuds_entry_agg_skip(GpudsEntryAgg *agg);
extern bool gpuds_entry_agg_ranges(GpudsEntryAgg *agg, const AggColumn *by, const GpudsInterval *intervals,
								   int64 n, PartialAgg *ranges);
extern bool gpuds_entry_agg_intervals(GpudsEntryAgg *agg, const GpudsInterval *intervals, int64 n,
									  GpudsEntryAggSum *sums);
extern void gpuds_entry_agg_look_up(GpudsEntryAgg *agg, const GpudsEntry *entries, int64 n);

/*
 * The next group, if a device's answer has all of it, and nothing else is of it; false: gpuds_entry_agg_next
 * knows.  What is at hand beside the answer, or comes behind it, may be of the group.
 */
static inline bool
gpuds_entry_agg_next_whole(GpudsEntryAgg *agg, GpudsEntryAggGroup *group)
{
	const uint64 *slot;

	if (agg->next_run + 1 >= agg->others.groups.n || agg->at < agg->n || agg->next_other < agg->others.n)
		return false;
	(void) gpuds_entry_agg_run(agg, &group->first);
	slot = agg->others.groups.words + agg->next_run++ * group_slot_words((uint32) agg->nagg, 0);
	group->side = NULL;
	group->rows = (int64) slot[GROUP_ROWS];
	memcpy(group->partial, slot + GROUP_PARTIAL, agg->nagg * sizeof(PartialAgg));
	return true;
}

#endif /* GPUDS_ENTRY_AGG_H */
