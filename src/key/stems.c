/*-------------------------------------------------------------------------
 *
 * stems.c
 *	  Stems as they are stored, and the place of a text among them (stems.h).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "port/pg_bswap.h"

#include "key/code.h"
#include "key/stems.h"

/* For a column without stems. */
const GpudsStems gpuds_no_stems = { 0 };

/* The first bytes of a string as a number that orders as they do, if zeros follow a shorter one. */
static inline uint64
head_of(const uint8 *bytes, int n)
{
	uint64 head = 0;

	memcpy(&head, bytes, Min(n, (int) sizeof(head)));
	return pg_ntoh64(head);
}

/* Is a stem, given by its bytes behind its parent, above what a text has there? */
static inline bool
is_above(const GpudsStems *stems, const GpudsStem *stem, uint64 head, const uint8 *text, int n)
{
	int order;

	if (stem->head != head)
		return stem->head > head;
	order = memcmp(stems->bytes + stem->start, text, Min(stem->nbytes, n));
	return order > 0 || (order == 0 && stem->nbytes > n);
}

/* The last child of a stem that is not above what a text has behind the stem; NULL: all are. */
static inline const GpudsStem *
last_child(const GpudsStems *stems, const GpudsStem *parent, const uint8 *text, int n)
{
	const GpudsStem *children = stems->stem + parent->first;
	const uint64 head = head_of(text, n);
	int from = 0;
	int to = parent->nchildren;

	while (from < to)
	{
		const int middle = (from + to) / 2;

		if (is_above(stems, &children[middle], head, text, n))
			to = middle;
		else
			from = middle + 1;
	}
	return from > 0 ? &children[from - 1] : NULL;
}

/* Where a text, or the first GPUDS_STEM_BYTES bytes of one, is among stems, of which there are some. */
GpudsStemPlace
gpuds_stems_find(const GpudsStems *stems, const uint8 *text, int n)
{
	const GpudsStem *stem = stems->stem;
	int nbytes = 0;

	for (;;)
	{
		const GpudsStem *child = last_child(stems, stem, text + nbytes, n - nbytes);

		if (child == NULL)
			return (GpudsStemPlace){ stem->number, nbytes };
		if (child->nbytes > n - nbytes ||
			memcmp(stems->bytes + child->start, text + nbytes, child->nbytes) != 0)
			return (GpudsStemPlace){ child->behind, nbytes };
		stem = child;
		nbytes += child->nbytes;
	}
}

/* What is known of a stem while it is loaded. */
typedef struct Loading
{
	const GpudsStoredStem *stored;
	GpudsStem *stem;
	uint32 nstems;
	uint32 number; /* that was given last */
} Loading;

/* Gives the stems from one on their numbers; false: a stem is too long. */
static bool
number_stems(Loading *loading, GpudsStem *stem, int nbytes)
{
	nbytes += stem->nbytes;
	if (nbytes > GPUDS_STEM_BYTES)
		return false;
	stem->number = loading->number;
	for (int i = 0; i < stem->nchildren; i++)
	{
		loading->number++;
		if (!number_stems(loading, &loading->stem[stem->first + i], nbytes))
			return false;
	}
	stem->behind = ++loading->number;
	return true;
}

/* Do a stem's children ascend, none of them beginning with the one before? */
static bool
children_ascend(const GpudsStems *stems, const GpudsStem *parent)
{
	for (int i = 1; i < parent->nchildren; i++)
	{
		const GpudsStem *a = &stems->stem[parent->first + i - 1];
		const GpudsStem *b = a + 1;

		if (memcmp(stems->bytes + a->start, stems->bytes + b->start, Min(a->nbytes, b->nbytes)) >= 0)
			return false;
	}
	return true;
}

/* Fills in all stems of a column but their numbers; false: they are not what was stored. */
static bool
load_stems(Loading *loading, const uint8 *bytes, uint32 nbytes)
{
	uint32 next = 1;
	uint32 start = 0;

	for (uint32 i = 0; i < loading->nstems; i++)
	{
		const GpudsStoredStem *stored = &loading->stored[i];

		if ((stored->nbytes == 0) != (i == 0) || stored->nbytes > nbytes - start || i >= next ||
			stored->nchildren > loading->nstems - next)
			return false;
		loading->stem[i] = (GpudsStem){ .head = head_of(bytes + start, stored->nbytes),
										.start = start,
										.nbytes = stored->nbytes,
										.first = next,
										.nchildren = stored->nchildren };
		start += stored->nbytes;
		next += stored->nchildren;
	}
	return next == loading->nstems && start == nbytes;
}

/* Makes the stems of a column of what is stored behind its header; NULL: it is damaged. */
static const GpudsStems *
load_column(const GpudsStemsHeader *header, MemoryContext context)
{
	const GpudsStoredStem *stored = (const GpudsStoredStem *) (header + 1);
	GpudsStems *stems = MemoryContextAlloc(context, sizeof(GpudsStems));
	uint8 *bytes = MemoryContextAlloc(context, header->nbytes + 1);
	Loading loading = { .stored = stored, .nstems = header->nstems };

	loading.stem = MemoryContextAlloc(context, header->nstems * sizeof(GpudsStem));
	memcpy(bytes, stored + header->nstems, header->nbytes);
	*stems = (GpudsStems){ .bits = header->bits, .stem = loading.stem, .bytes = bytes };
	if (!load_stems(&loading, bytes, header->nbytes) || !number_stems(&loading, loading.stem, 0) ||
		loading.number - 1 > (uint32) gpuds_ones(header->bits))
		return NULL;
	for (uint32 i = 0; i < header->nstems; i++)
	{
		if (!children_ascend(stems, &stems->stem[i]))
			return NULL;
	}
	return stems;
}

/* Bytes that a column's stems take; 0: the header is damaged. */
static Size
column_size(const GpudsKeyLayout *layout, const GpudsStemsHeader *header)
{
	if (header->column >= layout->nkeys || !gpuds_is_text(layout->column[header->column].kind) ||
		(header->bits != 8 && header->bits != 16) || header->nstems < 2 || header->nstems > GPUDS_STEMS ||
		header->nbytes > GPUDS_STEMS_BYTES)
		return 0;
	return MAXALIGN(sizeof(*header) + header->nstems * sizeof(GpudsStoredStem) + header->nbytes);
}

/*
 * The stems of each column of a layout, as they are stored (aligned; size 0: there are none), in a memory
 * context.  False: what is stored is damaged.
 */
bool
gpuds_stems_load(const GpudsKeyLayout *layout, const char *stored, Size size, MemoryContext context,
				 const GpudsStems *stems[GPUDS_KEY_MAX_COLUMNS])
{
	for (int i = 0; i < GPUDS_KEY_MAX_COLUMNS; i++)
		stems[i] = &gpuds_no_stems;
	for (Size at = 0; at < size;)
	{
		const GpudsStemsHeader *header = (const GpudsStemsHeader *) (stored + at);
		const Size left = size - at;
		const Size of_column = left >= sizeof(*header) ? column_size(layout, header) : 0;

		if (of_column == 0 || of_column > left)
			return false;
		stems[header->column] = load_column(header, context);
		if (stems[header->column] == NULL)
			return false;
		at += of_column;
	}
	return true;
}

/* Makes a layout one by which texts can be encoded. */
void
gpuds_key_set_stems(GpudsKeyLayout *layout, const GpudsStems *const stems[GPUDS_KEY_MAX_COLUMNS])
{
	for (int i = 0; i < layout->nkeys; i++)
	{
		if (gpuds_is_text(layout->column[i].kind))
			layout->column[i].stems = stems[i];
	}
}

/* Has a key columns whose texts may have stems? */
bool
gpuds_key_may_have_stems(const GpudsKeyLayout *layout)
{
	for (int i = 0; i < layout->nkeys; i++)
	{
		if (gpuds_is_text(layout->column[i].kind))
			return true;
	}
	return false;
}
