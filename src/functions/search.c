/*-------------------------------------------------------------------------
 *
 * search.c
 *	  The rows that have keys of an array in the first column of an index.
 *
 * The index is asked for a batch of keys at once; its entries come in the order of the keys.  Entries are
 * resolved in pieces, so that no number of them takes more memory.
 *
 * If it is only asked whether a key has a row, the visibility map answers for most (reader/visible.h), and a
 * key that has had its row is settled.  But the TID of an entry is where the row's chain of versions begins,
 * not where the version is that the snapshot sees.  So if that is asked for, all rows are visited.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/genam.h"
#include "access/relscan.h"
#include "miscadmin.h"

#include "functions/functions.h"
#include "index/index.h"
#include "reader/reader.h"
#include "reader/visible.h"

/* Entries that are resolved at a time, about. */
#define PIECE (GPUDS_PIECE_ENTRIES / 4 * 3)

/* Entries that there is room for at first. */
#define FIRST_MATCHES 64

typedef struct Match
{
	GpudsEntry entry;
	int64 key;
} Match;

typedef struct Search
{
	GpudsKeys keys;
	IndexScanDesc scan;
	GpudsVisible visible;
	bool *answers; /* by numbers of elements, if it is only asked whether a key has a row; or NULL */
	GpudsFound found;
	void *to;

	int64 key;     /* of the last entry */
	bool *settled; /* of each key: no further row is wanted */

	/* rows of the piece that are to be looked up */
	Match *matches;
	int64 nmatches;
	int64 size;
	bool *to_all; /* of a batch of entries */
	int64 to_all_size;
} Search;

static void
find_key(Search *search, const GpudsEntry *entry)
{
	GpudsKeys *keys = &search->keys;

	search->key = gpuds_key_probe_find(&keys->probe, keys->keys, keys->n, search->key, entry);
	if (search->key == keys->n)
		elog(ERROR, "index \"%s\" returned a key that was not asked for",
			 RelationGetRelationName(search->scan->indexRelation));
}

/* A key has a row that the snapshot sees; nobody asks for another. */
static void
settle(Search *search, int64 key)
{
	const GpudsKeys *keys = &search->keys;

	search->settled[key] = true;
	for (int64 i = gpuds_keys_first(keys, key); i < keys->ends[key]; i++)
		search->answers[gpuds_keys_number(&keys->members[i])] = true;
}

/* Makes room for n more matches, and for what the map says of them. */
static void
ensure_capacity(Search *search, int64 n)
{
	if (search->nmatches + n > search->size)
	{
		search->size = Max(search->nmatches + n, 2 * search->size);
		search->matches = repalloc(search->matches, search->size * sizeof(Match));
	}
	if (n > search->to_all_size)
	{
		search->to_all = repalloc(search->to_all, n * sizeof(bool));
		search->to_all_size = n;
	}
}

/* Adds to the piece those entries of a batch that the map is not enough for. */
static void
add_entries(Search *search, const GpudsScanBatch *batch)
{
	ensure_capacity(search, batch->n);
	gpuds_visible_add_to_piece(&search->visible, batch);
	if (search->answers)
		gpuds_visible_mark(&search->visible, batch, search->to_all);
	for (int64 i = 0; i < batch->n; i++)
	{
		find_key(search, &batch->entries[i]);
		if (search->settled[search->key])
			continue;
		if (search->answers && search->to_all[i])
			settle(search, search->key);
		else
		{
			search->matches[search->nmatches].entry = batch->entries[i];
			search->matches[search->nmatches++].key = search->key;
		}
	}
}

/* Gives a key's row for each of its elements. */
static void
find_members(Search *search, int64 key, ItemPointer tid)
{
	const GpudsKeys *keys = &search->keys;

	for (int64 i = gpuds_keys_first(keys, key); i < keys->ends[key]; i++)
	{
		CHECK_FOR_INTERRUPTS();
		search->found(search->to, gpuds_keys_number(&keys->members[i]), tid);
	}
}

/* Does the snapshot see the row at a place in the order?  It is in the slot then, if it is wanted. */
static bool
is_seen(Search *search, int64 place, const GpudsEntry *entry)
{
	return search->answers ? gpuds_visible_sees(&search->visible, place, entry)
						   : gpuds_visible_look_up(&search->visible, place, entry);
}

/* Looks the piece's rows up in the order of the heap. */
static void
look_up(Search *search)
{
	GpudsVisible *visible = &search->visible;

	for (int64 i = 0; i < search->nmatches; i++)
	{
		if (!search->settled[search->matches[i].key])
			gpuds_visible_order(visible, search->matches[i].entry.t & ENTRY_TID_MASK, i);
	}
	gpuds_visible_sort_order(visible);
	for (int64 i = 0; i < visible->norder; i++)
	{
		const Match *match = &search->matches[gpuds_visible_at(visible, i)];

		if (search->settled[match->key] || !is_seen(search, i, &match->entry))
			continue;
		if (search->answers)
			settle(search, match->key);
		else
			find_members(search, match->key, &visible->slot->tts_tid);
	}
}

/* Finds the rows of the batch of keys at hand. */
static void
search_batch(Search *search)
{
	IndexScanDesc scan = search->scan;
	GpudsKeys *keys = &search->keys;

	memset(search->settled, false, keys->n * sizeof(bool));
	search->key = 0;
	gpuds_scan_set_probes(scan, &keys->probe, keys->keys, keys->n);
	gpuds_visible_before_barrier(&search->visible);
	gpuds_scan_begin_batches(scan, keys->total);
	while (gpuds_scan_has_more(scan))
	{
		gpuds_visible_begin_piece(&search->visible);
		search->nmatches = 0;
		while (search->nmatches < PIECE && gpuds_scan_has_more(scan))
		{
			GpudsScanBatch batch;

			gpuds_scan_next_batch(scan, GPUDS_PIECE_ENTRIES - search->nmatches, &batch);
			add_entries(search, &batch);
		}
		look_up(search);
		gpuds_visible_end_piece(&search->visible);
	}
}

/* answers: as in Search. */
static void
begin(Search *search, const GpudsTarget *target, Oid type, ArrayType *array, bool *answers)
{
	const int64 elements = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));

	search->answers = answers;
	search->scan = gpuds_begin_scan(target->heap, target->index, target->snapshot, 0, true);
	gpuds_visible_begin(&search->visible, search->scan);
	search->visible.keys = (double) elements;
	if (answers)
		gpuds_visible_lock(&search->visible);
	gpuds_keys_begin(&search->keys, &target->layout, type, array,
					 answers && gpuds_scan_may_test_membership(search->scan, elements, elements));
	search->settled = palloc(search->keys.most * sizeof(bool));
	search->nmatches = 0;
	search->size = search->to_all_size = FIRST_MATCHES;
	search->matches = palloc(search->size * sizeof(Match));
	search->to_all = palloc(search->to_all_size * sizeof(bool));
}

static void
end(Search *search)
{
	gpuds_visible_end(&search->visible);
	index_endscan(search->scan);
}

/*
 * Calls found for each row that the snapshot sees and whose key is an element of an array.  type is what
 * gpuds_target_key_type says of the array's.  Memory is the current context's.
 */
void
gpuds_search(const GpudsTarget *target, Oid type, ArrayType *array, GpudsFound found, void *to)
{
	Search search;

	if (target->layout.column[0].hash)
	{
		gpuds_search_hashes(target, type, array, false, found, to);
		return;
	}
	search.found = found;
	search.to = to;
	begin(&search, target, type, array, NULL);
	while (gpuds_keys_read(&search.keys))
	{
		while (gpuds_keys_next(&search.keys))
			search_batch(&search);
	}
	end(&search);
}

static void
set_answer(void *to, int64 number, ItemPointer tid)
{
	bool *answers = to;

	answers[number] = true;
}

/* Has a device answer for a piece, if asks, and leaves the others; false: it is not worth while any more. */
static bool
ask_device(Search *search, bool asks)
{
	GpudsKeys *keys = &search->keys;
	int64 nleft;

	if (!asks || !gpuds_keys_read_words(keys))
	{
		(void) gpuds_keys_read(keys);
		return asks && gpuds_membership_find(search->scan, &search->visible, &keys->probe, keys->read,
											 &keys->nread, keys->total, search->answers);
	}
	asks = gpuds_membership_find_words(search->scan, &search->visible, &keys->probe, keys->words,
									   keys->nwords, keys->total, search->answers + keys->first, keys->left,
									   &nleft);
	gpuds_keys_take_left(keys, nleft);
	return asks;
}

/*
 * The same, if it is only asked which elements have rows: their answers, which are false, become true.  What
 * a device does not answer is searched.  A device that was sure of less than half of a piece is not asked
 * about the next one.
 */
void
gpuds_search_any(const GpudsTarget *target, Oid type, ArrayType *array, bool *answers)
{
	Search search;
	bool asks = true;

	if (target->layout.column[0].hash)
	{
		gpuds_search_hashes(target, type, array, true, set_answer, answers);
		return;
	}
	begin(&search, target, type, array, answers);
	while (gpuds_keys_has_more(&search.keys))
	{
		asks = ask_device(&search, asks);
		while (gpuds_keys_next(&search.keys))
			search_batch(&search);
	}
	end(&search);
}
