/*-------------------------------------------------------------------------
 *
 * keys.c
 *	  The keys of an array: read in place, made into probes, sorted.
 *
 * A device that answers for probes as they come has more of them at a time than are sorted.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/tupmacs.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"

#include "functions/functions.h"
#include "kernels/core/sort.h"

/* Memory that an element of a batch takes, with its interval. */
#define ELEMENT_BYTES (2 * sizeof(GpudsEntry) + sizeof(GpudsInterval) + sizeof(uint32))

/* Elements of a batch, whatever work_mem says.  If there are more, sorting leaves the processor's caches. */
#define FEWEST_ELEMENTS 1024
#define MOST_ELEMENTS (64 * 1024)

/*
 * Memory that an element of a large piece takes, with an interval and what the device says, and elements of
 * one; the same of words, which are sent, and may all be left.  A device takes as many words by one request;
 * what it is told of rows is the same for each request.
 */
#define READ_BYTES (sizeof(GpudsEntry) + sizeof(GpudsInterval) + sizeof(bool))
#define MOST_READ (256 * 1024)
#define WORD_BYTES (2 * sizeof(uint64) + sizeof(uint32))
#define MOST_WORDS 1000000

/* How many of the elements there is room for; bytes: what one takes. */
static int64
room_for(int64 elements, int64 most, size_t bytes)
{
	const int64 room = (int64) work_mem * 1024 / (int64) bytes;

	return Max(Min(Min(Max(room, FEWEST_ELEMENTS), most), elements), 1);
}

/*
 * For keys of an index's first column out of an array, whose elements are of that type or of a domain over it
 * (gpuds_target_key_type); large: pieces may be larger than batches.  Layout and array must stay where
 * they are.  Memory is the current context's.
 */
void
gpuds_keys_begin(GpudsKeys *keys, const GpudsKeyLayout *layout, Oid type, ArrayType *array, bool large)
{
	bool words;

	memset(keys, 0, sizeof(*keys));
	gpuds_key_probe_init(&keys->probe, layout, 1, &type);
	words = large && ARR_NULLBITMAP(array) == NULL && keys->probe.integer_bytes > 0;
	keys->at = ARR_DATA_PTR(array);
	keys->nulls = ARR_NULLBITMAP(array);
	keys->total = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	get_typlenbyvalalign(ARR_ELEMTYPE(array), &keys->length, &keys->by_value, &keys->align);
	keys->most = room_for(keys->total, MOST_ELEMENTS, ELEMENT_BYTES);
	keys->most_read = large && !words ? room_for(keys->total, MOST_READ, READ_BYTES) : keys->most;
	if (words)
	{
		keys->most_words = room_for(keys->total, MOST_WORDS, WORD_BYTES);
		keys->words = palloc(keys->most_words * sizeof(uint64));
		keys->left = palloc(keys->most_words * sizeof(uint32));
	}
	keys->read = palloc(keys->most_read * sizeof(GpudsEntry));
	keys->keys = palloc(keys->most * sizeof(GpudsEntry));
	keys->ends = palloc(keys->most * sizeof(uint32));
}

/* Makes probes of the elements up to the one before end; returns how many there are. */
static int64
read_elements(GpudsKeys *keys, int64 end)
{
	const bool not_null = false;
	int64 n = 0;

	for (; keys->next < end; keys->next++)
	{
		Datum value;

		if (keys->nulls && (keys->nulls[keys->next / 8] & (1 << (keys->next % 8))) == 0)
			continue;
		value = fetch_att(keys->at, keys->by_value, keys->length);
		keys->at = att_addlength_pointer(keys->at, keys->length, keys->at);
		keys->at = (const char *) att_align_nominal(keys->at, keys->align);
		n += gpuds_key_probe(&keys->probe, &value, &not_null, keys->next, &keys->read[n]);
	}
	return n;
}

/*
 * The same for integers without NULLs, which most arrays are of, and which take a sixth of the time;
 * false: they are not.
 */
static bool
read_integers(GpudsKeys *keys, int64 end, int64 *n)
{
	const int64 elements = end - keys->next;

	if (keys->nulls || !gpuds_key_probe_integers(&keys->probe, keys->at, elements, keys->next, keys->read, n))
		return false;
	keys->at += elements * keys->length;
	keys->next = end;
	return true;
}

/* Finds the keys of n members, which are sorted. */
static void
group_members(GpudsKeys *keys, int64 n)
{
	keys->n = 0;
	for (int64 i = 0; i < n; i++)
	{
		GpudsEntry key = keys->members[i];

		key.t &= ~ENTRY_TID_MASK;
		if (keys->n == 0 || !entry_equal(&keys->keys[keys->n - 1], &key))
			keys->keys[keys->n++] = key;
		keys->ends[keys->n - 1] = (uint32) (i + 1);
	}
}

/* Are there elements that have not been read? */
bool
gpuds_keys_has_more(const GpudsKeys *keys)
{
	return keys->next < keys->total;
}

/*
 * Reads the next piece as words, of an array of integers without NULLs; false: it has to be read as probes,
 * and nothing has been read.
 */
bool
gpuds_keys_read_words(GpudsKeys *keys)
{
	const int64 n = Min(keys->most_words, keys->total - keys->next);

	CHECK_FOR_INTERRUPTS();
	if (keys->words == NULL || !gpuds_key_probe_words(&keys->probe, keys->at, n, keys->words))
		return false;
	keys->first = keys->next;
	keys->nwords = n;
	keys->next += n;
	keys->at += n * keys->length;
	keys->nread = keys->taken = 0;
	return true;
}

/* The piece's probes are made of its n words that are left, as many at a time as there is room for. */
void
gpuds_keys_take_left(GpudsKeys *keys, int64 n)
{
	keys->nleft = n;
	keys->made = 0;
}

/* Makes probes of the next words that are left, if those before have come in batches. */
static void
make_left(GpudsKeys *keys)
{
	const uint32 *left = keys->left + keys->made;
	const int64 n = Min(keys->nleft - keys->made, keys->most_read);

	if (n == 0 || keys->taken < keys->nread)
		return;
	for (int64 i = 0; i < n; i++)
		keys->read[i] = (GpudsEntry){ keys->words[left[i]], keys->probe.zero.w1,
									  keys->probe.zero.t | (uint64) (keys->first + left[i]) };
	keys->nread = n;
	keys->taken = 0;
	keys->made += n;
}

/* Reads the next piece, perhaps without any probes; false: there are no more elements. */
bool
gpuds_keys_read(GpudsKeys *keys)
{
	const int64 end = Min(keys->next + keys->most_read, keys->total);

	if (!gpuds_keys_has_more(keys))
		return false;
	CHECK_FOR_INTERRUPTS();
	if (!read_integers(keys, end, &keys->nread))
		keys->nread = read_elements(keys, end);
	keys->taken = 0;
	return true;
}

/* The next batch of the piece; false: there are no more probes. */
bool
gpuds_keys_next(GpudsKeys *keys)
{
	int64 n;

	make_left(keys);
	n = Min(keys->nread - keys->taken, keys->most);
	if (n == 0)
		return false;
	CHECK_FOR_INTERRUPTS();
	keys->members = keys->read + keys->taken;
	keys->taken += n;
	sort_entries(keys->members, keys->keys, n);
	group_members(keys, n);
	return true;
}
