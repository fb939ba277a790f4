/*-------------------------------------------------------------------------
 *
 * short_run.c
 *	  The rows of a short run of texts (short_run.h).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/detoast.h"
#include "utils/builtins.h"

#include "reader/short_run.h"

typedef struct Row
{
	GpudsEntry entry;
	int at; /* of its text among the bytes */
	int nbytes;
} Row;

struct GpudsShortRun
{
	bool blanks; /* at the end do not count */
	bool descending;
	int n;
	int at; /* the row that was given last; -1: before the first one; n: behind the last one */
	int mark;
	int nbytes;
	Row rows[GPUDS_SHORT_ROWS];
	uint8 bytes[GPUDS_SHORT_BYTES];
};

/* Which of two rows comes first. */
static inline int
compare(const Row *a, const Row *b, const GpudsShortRun *run)
{
	int order = memcmp(run->bytes + a->at, run->bytes + b->at, Min(a->nbytes, b->nbytes));

	if (order == 0)
		order = a->nbytes - b->nbytes;
	if (order != 0)
		return (order < 0) == run->descending ? 1 : -1;
	return entry_less(&a->entry, &b->entry) ? -1 : entry_less(&b->entry, &a->entry);
}

#define ST_SORT sort_rows
#define ST_ELEMENT_TYPE Row
#define ST_COMPARE_ARG_TYPE const GpudsShortRun
#define ST_COMPARE(a, b, run) compare(a, b, run)
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/* Runs by a column, in the current memory context. */
GpudsShortRun *
gpuds_short_run_begin(const GpudsKeyColumn *column)
{
	GpudsShortRun *run = palloc(sizeof(GpudsShortRun));

	run->blanks = column->kind == GPUDS_KIND_BPCHAR;
	run->descending = column->descending;
	gpuds_short_run_clear(run);
	return run;
}

void
gpuds_short_run_clear(GpudsShortRun *run)
{
	run->n = run->nbytes = 0;
	run->at = run->mark = -1;
}

/* Adds a row by its entry and its text; false: there is no room. */
bool
gpuds_short_run_add(GpudsShortRun *run, const GpudsEntry *entry, Datum value)
{
	struct varlena *text;
	Row *row = &run->rows[run->n];

	if (run->n == GPUDS_SHORT_ROWS || toast_raw_datum_size(value) > GPUDS_SHORT_BYTES)
		return false;
	text = PG_DETOAST_DATUM_PACKED(value);
	*row = (Row){ .entry = *entry, .at = run->nbytes, .nbytes = (int) VARSIZE_ANY_EXHDR(text) };
	if (run->blanks)
		row->nbytes = bpchartruelen(VARDATA_ANY(text), row->nbytes);
	if (row->nbytes > GPUDS_SHORT_BYTES - run->nbytes)
		row = NULL;
	else
		memcpy(run->bytes + run->nbytes, VARDATA_ANY(text), row->nbytes);
	if (text != (struct varlena *) DatumGetPointer(value))
		pfree(text);
	if (row == NULL)
		return false;
	run->nbytes += row->nbytes;
	run->n++;
	return true;
}

void
gpuds_short_run_sort(GpudsShortRun *run)
{
	sort_rows(run->rows, run->n, run);
}

/* Goes before the first row, or behind the last one, so that the next in this direction is the first one. */
void
gpuds_short_run_rewind(GpudsShortRun *run, bool forward)
{
	run->at = forward ? -1 : run->n;
}

/* Goes on to the next entry in a direction; false: that was the last one. */
bool
gpuds_short_run_next(GpudsShortRun *run, bool forward, GpudsEntry *entry)
{
	const int next = run->at + (forward ? 1 : -1);

	run->at = Max(-1, Min(next, run->n));
	if (next < 0 || next >= run->n)
		return false;
	*entry = run->rows[next].entry;
	return true;
}

void
gpuds_short_run_mark(GpudsShortRun *run)
{
	run->mark = run->at;
}

void
gpuds_short_run_restore(GpudsShortRun *run)
{
	run->at = run->mark;
}
