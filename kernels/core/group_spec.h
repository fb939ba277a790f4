/*-------------------------------------------------------------------------
 *
 * group_spec.h
 *	  What makes entries a group, and what is added up of a group.
 *
 * Entries of a group agree in some bits, and in a label that their interval has.  Of those that pass a
 * filter, some terms are added up: each is a column, or a constant in its place, for entries that pass a
 * filter of the term's own.
 *
 * Filters and terms may be of side columns, and entries of a group may have to agree in bits of side values,
 * too.  Then entries whose rows' side values are not known are handed back.  A filter of all entries that
 * needs no side values is tested before they are looked for, and one that does thereafter.
 *
 * If entries of a group follow each other, groups may be wanted in the scan's order.  Then each has one slot,
 * and a request is for as many as there are slots for.  Groups of one entry may be left out then, where no
 * other entry can be of the group: one that is neither the first nor the last of its interval.
 *
 * A spec is one piece of memory: a GroupSpec, and behind it, without gaps, its terms, the steps of all
 * filters, their codes, the labels of the scan's intervals, and the map of side values.
 *
 *-------------------------------------------------------------------------
 */
#ifndef KERNELS_GROUP_SPEC_H
#define KERNELS_GROUP_SPEC_H

#include "kernels/core/entry_filter.h"

/* Words of a PartialAgg. */
#define GROUP_PARTIAL_WORDS (sizeof(PartialAgg) / sizeof(uint64_t))

/* Terms that there are at most. */
#define GROUP_TERMS 8

/* Words of the side values of a row, at most. */
#define GROUP_SIDE_WORDS 4

/* One of the terms. */
typedef struct GroupTerm
{
	AggColumn column;
	uint32_t first_step; /* of its filter ... */
	uint32_t nsteps;     /* ... and how many there are; 0: all entries pass */
	uint64_t value;      /* of entries that pass, if has_value, and of the others, if has_other: bits ... */
	uint64_t other;      /* ... as the column has them.  Without has_other, others are left out */
	uint32_t has_value;
	uint32_t has_other;
} GroupTerm;

typedef struct GroupSpec
{
	GpudsEntry bits;     /* ones where entries of a group agree */
	uint32_t slots;      /* of the table of groups: a power of two */
	uint32_t spread;     /* slots at which a group may be looked for first: a power of two, not above slots */
	uint32_t nterms;     /* GROUP_TERMS at most */
	uint32_t nsteps;     /* of all filters */
	uint32_t filter;     /* steps that all entries have to pass, the first ones; 0: all do */
	uint32_t has_labels; /* else all labels are 0 */
	/* of side values: */
	uint32_t has_side;    /* they are wanted */
	uint32_t side_filter; /* steps behind those of the filter that all have to pass, too */
	uint32_t nside;       /* words that have bits in which a group agrees, the first ones */
	uint32_t repeated;    /* groups in order, of one entry: are left out */
	uint64_t side_map;    /* bytes of the map of a copy's pages (request.h), a multiple of 8 */
	uint64_t side_bits[GROUP_SIDE_WORDS]; /* ones where it does */
	uint64_t ncodes;
	/* 0, or groups are wanted in order: of so many entries at most.  There are no labels, and spread is 1 */
	int64_t most;
} GroupSpec;

/*
 * Words of a slot of the table: whether it is taken, the rows, the key, the label, partial aggregates, and
 * what the group has in side values.  A slot has an even number of words.
 */
enum
{
	GROUP_STATE,
	GROUP_ROWS,
	GROUP_W0,
	GROUP_W1,
	GROUP_T,
	GROUP_LABEL,
	GROUP_PARTIAL
};

KERNEL_FN size_t
group_slot_side(uint32_t nterms)
{
	return GROUP_PARTIAL + nterms * GROUP_PARTIAL_WORDS;
}

KERNEL_FN size_t
group_slot_words(uint32_t nterms, uint32_t nside)
{
	return group_slot_side(nterms) + (nside + 1) / 2 * 2;
}

/* Bytes of the whole table. */
KERNEL_FN size_t
group_table_bytes(const GroupSpec *spec)
{
	return spec->slots * group_slot_words(spec->nterms, spec->nside) * sizeof(uint64_t);
}

/* Where the parts of a spec begin. */
KERNEL_FN GroupTerm *
group_spec_terms(const GroupSpec *spec)
{
	return (GroupTerm *) (spec + 1);
}

KERNEL_FN EntryFilterStep *
group_spec_steps(const GroupSpec *spec)
{
	return (EntryFilterStep *) (group_spec_terms(spec) + spec->nterms);
}

KERNEL_FN uint64_t *
group_spec_codes(const GroupSpec *spec)
{
	return (uint64_t *) (group_spec_steps(spec) + spec->nsteps);
}

KERNEL_FN uint32_t *
group_spec_labels(const GroupSpec *spec)
{
	return (uint32_t *) (group_spec_codes(spec) + spec->ncodes);
}

/* Bytes of a spec without labels. */
KERNEL_FN size_t
group_spec_bytes(const GroupSpec *spec)
{
	return sizeof(GroupSpec) + spec->nterms * sizeof(GroupTerm) + spec->nsteps * sizeof(EntryFilterStep) +
		   spec->ncodes * sizeof(uint64_t);
}

/* Bytes of the labels of n intervals, a multiple of 8. */
KERNEL_FN size_t
group_label_bytes(const GroupSpec *spec, int64_t n)
{
	return spec->has_labels ? ((size_t) n * sizeof(uint32_t) + 7) / 8 * 8 : 0;
}

/* Adds a term of an entry that is counted.  side: NULL, or the row's side values. */
KERNEL_INLINE void
group_term_add(const GroupTerm *term, const EntryFilterStep *steps, const uint64_t *codes,
			   const GpudsEntry *e, const uint8_t *side, const int nw, PartialAgg *sum)
{
	bool passes = term->nsteps == 0 ||
				  entry_filter_passes(steps + term->first_step, term->nsteps, codes, e, side, nw);

	if (passes && term->has_value)
		partial_agg_add_bits(sum, &term->column, term->value);
	else if (passes && side != NULL && term->column.side_bytes != 0)
	{
		const GpudsEntry value = agg_column_side_entry(&term->column, e, nw, side);

		partial_agg_add(sum, &term->column, &value, 1);
	}
	else if (passes)
		partial_agg_add(sum, &term->column, e, nw);
	else if (term->has_other)
		partial_agg_add_bits(sum, &term->column, term->other);
}

#endif /* KERNELS_GROUP_SPEC_H */
