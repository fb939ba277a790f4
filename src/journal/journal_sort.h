/*-------------------------------------------------------------------------
 *
 * journal_sort.h
 *	  The entries of a journal, ascending, and its records as operations.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_JOURNAL_SORT_H
#define GPUDS_JOURNAL_SORT_H

#include "journal/journal.h"
#include "sort/sorter.h"

/* What is wanted of a journal; all zeros: everything that is not marked dead. */
typedef struct GpudsJournalSelect
{
	const GpudsScan *only; /* entries in its intervals; NULL: all */
	bool dead;             /* entries that are marked dead, too */
	/* stripe records before this position; NULL: all; for a sort, must live as long as it */
	const GpudsJournalPos *end;
	/* operations after which the stripes are left, not counting the page that has the last; 0: none are */
	int64 most;
	void (*between_pages)(void); /* called often, without locks; may be NULL */
} GpudsJournalSelect;

typedef struct GpudsJournalSort GpudsJournalSort;

extern uint64 gpuds_journal_count_before(const GpudsMetaData *meta, const GpudsJournalPos *end);
extern GpudsReadResult gpuds_journal_collect(GpudsJournalReader *reader, const GpudsJournalSelect *select,
											 GpudsSorter *sorter);

extern GpudsJournalSort *gpuds_journal_sort_begin(Relation index, Size memory,
												  const GpudsJournalSelect *select);
extern const GpudsMetaData *gpuds_journal_sort_meta(const GpudsJournalSort *sort);
extern bool gpuds_journal_sort_stripes(GpudsJournalSort *sort, GpudsJournalPos *pos);
extern int64 gpuds_journal_sort_next(GpudsJournalSort *sort, GpudsEntry *out, int64 cap);
extern void gpuds_journal_sort_end(GpudsJournalSort *sort);

#endif /* GPUDS_JOURNAL_SORT_H */
