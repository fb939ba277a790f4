/*-------------------------------------------------------------------------
 *
 * membership.c
 *	  The probes that a device knows to have rows, or to have none.
 *
 * The device is asked about the probes as they come: to sort them would take the host longer than it
 * saves the device.  It has a copy of the visibility map and says of each probe whether there is an entry
 * on a page that is all-visible.  It gives the entries that it has on other pages.  Two kinds of probes
 * are left to be searched for as usual: those found only on other pages, and those of which the memtable
 * has an entry.  They are few; a hash table of these entries finds them.
 *
 * The device goes through all entries of each probe.  So equal probes are sent once: otherwise many of a
 * key that many rows have would keep it busy for their product.
 *
 * A probe takes 8 bytes on the bus to the device, if it is of a word, and 8 back.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "port/pg_bitutils.h"

#include "reader/reader.h"
#include "reader/visible.h"

/*
 * Keys that are looked at for equal ones, at least and at most; their table stays in the processor's caches.
 */
#define LEAST_LAST_KEYS 64
#define MOST_LAST_KEYS (32 * 1024)

/* Equal keys that there is room for at first. */
#define FIRST_DOUBLES 1024

/* The last key of a hash. */
typedef struct LastKey
{
	uint32 rest;  /* the rest of its hash */
	uint32 place; /* from 1 on; 0: there is none */
} LastKey;

/* A probe of which the device is not sure. */
typedef struct Unsure
{
	GpudsEntry key; /* without a number */
	bool delta;     /* the memtable has an entry of it */
	char status;
} Unsure;

/* Codes of short types differ in their high bits only, so all bits are mixed (MurmurHash3's end). */
static inline uint64
hash_key(const GpudsEntry *key)
{
	uint64 hash = key->w0 ^ (key->w1 << 32 | key->w1 >> 32) ^ key->t;

	hash = (hash ^ hash >> 33) * UINT64CONST(0xff51afd7ed558ccd);
	hash = (hash ^ hash >> 33) * UINT64CONST(0xc4ceb9fe1a85ec53);
	return hash ^ hash >> 33;
}

/* The same of a probe, of which often only the first word differs from others. */
static inline uint64
hash_probe(const GpudsEntry *key, bool words)
{
	const uint64 product = key->w0 * UINT64CONST(0x9e3779b97f4a7c15);

	/* its upper half, in which all bits have a part, decides both halves */
	return words ? product ^ product >> 32 : hash_key(key);
}

#define SH_PREFIX unsure
#define SH_ELEMENT_TYPE Unsure
#define SH_KEY_TYPE GpudsEntry
#define SH_KEY key
#define SH_HASH_KEY(table, key) (uint32) hash_key(&(key))
#define SH_EQUAL(table, a, b) entry_equal(&(a), &(b))
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

/* Bits of a filter for each key, and bits that it has at most: it stays in the processor's caches. */
#define FILTER_BITS_A_KEY 16
#define FILTER_BITS_MAX (1u << 22)

/* The keys that others have entries of; of most probes a bit says that they are of none. */
typedef struct UnsureKeys
{
	unsure_hash *table;
	uint64 *filter;
	uint32 mask; /* of its bits' numbers */
} UnsureKeys;

static inline uint32
filter_bit(const UnsureKeys *keys, uint64 hash)
{
	return (uint32) (hash >> 32) & keys->mask;
}

static void
begin_unsure(UnsureKeys *keys, int64 n)
{
	const uint32 expected = (uint32) Min(n, FILTER_BITS_MAX / FILTER_BITS_A_KEY);

	keys->table = unsure_create(CurrentMemoryContext, Min(expected, PG_INT16_MAX), NULL);
	keys->mask = pg_nextpower2_32(Max(expected, 64) * FILTER_BITS_A_KEY) - 1;
	keys->filter = palloc0(((size_t) keys->mask + 1) / BITS_PER_BYTE);
}

static const Unsure *
find_unsure(const UnsureKeys *keys, const GpudsEntry *key)
{
	const uint64 hash = hash_key(key);
	const uint32 bit = filter_bit(keys, hash);

	if (!(keys->filter[bit / 64] >> bit % 64 & 1))
		return NULL;
	return unsure_lookup_hash(keys->table, *key, (uint32) hash);
}

static void
end_unsure(UnsureKeys *keys)
{
	unsure_destroy(keys->table);
	pfree(keys->filter);
}

/* The keys that others have entries of. */
static void
collect_unsure(UnsureKeys *keys, const GpudsKeyProbe *probe, const GpudsMembership *hits)
{
	begin_unsure(keys, hits->nothers);
	for (int64 i = 0; i < hits->nothers; i++)
	{
		const GpudsEntry *entry = &hits->others[i];
		GpudsEntry key = { entry->w0 & ~probe->rest.w0, entry->w1 & ~probe->rest.w1,
						   entry->t & ~probe->rest.t };
		const uint32 bit = filter_bit(keys, hash_key(&key));
		bool found;
		Unsure *unsure = unsure_insert(keys->table, key, &found);

		keys->filter[bit / 64] |= UINT64CONST(1) << bit % 64;
		/* Fresh ones come first. */
		if (!found)
			unsure->delta = i < hits->ndelta;
	}
}

/* The number that a probe has in place of a TID. */
static inline int64
number_of(const GpudsEntry *probe)
{
	return (int64) (probe->t & ENTRY_TID_MASK);
}

/* The key of a probe, without its number. */
static inline GpudsEntry
key_of(const GpudsEntry *probe)
{
	return (GpudsEntry){ probe->w0, probe->w1, probe->t & ~ENTRY_TID_MASK };
}

/* Probes that equal others. */
typedef struct Doubles
{
	GpudsEntry *probes;
	uint32 *firsts; /* places of the others among those that are kept */
	int64 n;
	int64 size;
} Doubles;

static void
add_double(Doubles *doubles, const GpudsEntry *probe, uint32 first)
{
	if (doubles->n == doubles->size)
	{
		doubles->size *= 2;
		doubles->probes = repalloc_huge(doubles->probes, doubles->size * sizeof(GpudsEntry));
		doubles->firsts = repalloc_huge(doubles->firsts, doubles->size * sizeof(uint32));
	}
	doubles->firsts[doubles->n] = first;
	doubles->probes[doubles->n++] = *probe;
}

/*
 * Takes probes that equal earlier ones out of *n.  A table has the last key of each hash only: a key that is
 * there often is found there almost always, and it does no harm to send one twice.  It has the rest of the
 * hash, too, so that almost no probe is compared with one that differs.
 */
static void
take_doubles(GpudsEntry *probes, int64 *n, bool words, Doubles *doubles)
{
	const uint32 size = pg_nextpower2_32((uint32) Min(Max(2 * *n, LEAST_LAST_KEYS), MOST_LAST_KEYS));
	LastKey *last = palloc0(size * sizeof(LastKey));
	int64 kept = 0;

	doubles->n = 0;
	doubles->size = FIRST_DOUBLES;
	doubles->probes = palloc(doubles->size * sizeof(GpudsEntry));
	doubles->firsts = palloc(doubles->size * sizeof(uint32));
	for (int64 i = 0; i < *n; i++)
	{
		const GpudsEntry key = key_of(&probes[i]);
		const uint64 hash = hash_probe(&key, words);
		LastKey *at = &last[hash & (size - 1)];

		if (at->rest == (uint32) (hash >> 32) && at->place > 0)
		{
			const GpudsEntry first = key_of(&probes[at->place - 1]);

			if (entry_equal(&first, &key))
			{
				add_double(doubles, &probes[i], at->place - 1);
				continue;
			}
		}
		if (kept < i)
			probes[kept] = probes[i];
		at->rest = (uint32) (hash >> 32);
		at->place = (uint32) ++kept;
	}
	*n = kept;
	pfree(last);
}

/* Probes with a hit are matches. */
static void
note_matches(IndexScanDesc scan, const GpudsMembership *hits, int64 n)
{
	/* each is a byte, with one bit or none */
	const int64 matches = (int64) pg_popcount((const char *) hits->hits, (int) n);

	gpuds_scan_note_matches(scan, matches, matches);
}

/* Which probes is the device sure of? */
static bool *
find_sure(const GpudsKeyProbe *probe, const GpudsEntry *probes, int64 n, const GpudsMembership *hits)
{
	bool *sure = MemoryContextAllocHuge(CurrentMemoryContext, n * sizeof(bool));
	UnsureKeys keys;

	collect_unsure(&keys, probe, hits);
	for (int64 i = 0; i < n; i++)
	{
		const GpudsEntry key = key_of(&probes[i]);
		const Unsure *unsure = NULL;

		if (!hits->hits[i] || hits->ndelta > 0)
			unsure = find_unsure(&keys, &key);
		sure[i] = unsure == NULL || (!unsure->delta && hits->hits[i]);
	}
	end_unsure(&keys);
	return sure;
}

/*
 * Sets the answers of probes that the device is sure of, and keeps the others; returns their number.  sure:
 * NULL, of all.  places: NULL, or where the device's answers are.
 */
static int64
take_answers(GpudsEntry *probes, int64 n, const uint32 *places, const bool *hits, const bool *sure,
			 bool *answers)
{
	int64 kept = 0;

	for (int64 i = 0; i < n; i++)
	{
		const int64 place = places ? places[i] : i;

		if (sure && !sure[place])
			probes[kept++] = probes[i];
		else
			answers[number_of(&probes[i])] = hits[place];
	}
	return kept;
}

/* Asks the device about n different probes; false: it cannot say.  Takes out those that it is sure of. */
static bool
ask_device(IndexScanDesc scan, GpudsVisible *visible, const GpudsKeyProbe *probe, GpudsEntry *probes,
		   int64 *n, Doubles *doubles, int64 weight, bool *answers)
{
	GpudsMembership hits = { 0 };
	bool *sure = NULL;

	hits.hits = MemoryContextAllocHuge(CurrentMemoryContext, *n * sizeof(bool));
	gpuds_visible_before_barrier(visible);
	gpuds_scan_begin_membership(scan, probe, probes, *n, weight);
	if (!gpuds_scan_test_membership(scan, visible, *n, &hits))
	{
		pfree(hits.hits);
		return false;
	}
	note_matches(scan, &hits, *n);
	if (hits.nothers > 0)
		sure = find_sure(probe, probes, *n, &hits);
	doubles->n = take_answers(doubles->probes, doubles->n, doubles->firsts, hits.hits, sure, answers);
	*n = take_answers(probes, *n, NULL, hits.hits, sure, answers);
	if (sure)
		pfree(sure);
	if (hits.others)
		pfree(hits.others);
	pfree(hits.hits);
	return true;
}

/*
 * Has a device answer for *n probes, as many as it is sure of: answers[number of a probe] says whether it has
 * a row that the scan's snapshot sees.  The others are left in probes[*n], in any order.  weight: as of
 * gpuds_scan_begin_batches.  The scan can be used for other probes then.  False: it is not worth while to
 * do so for the next probes, because the device was sure of less than half, and will not be told of more
 * pages.
 */
bool
gpuds_membership_find(IndexScanDesc scan, GpudsVisible *visible, const GpudsKeyProbe *probe,
					  GpudsEntry *probes, int64 *n, int64 weight, bool *answers)
{
	const int64 asked = *n;
	Doubles doubles;
	bool sure;

	if (!gpuds_scan_may_test_membership(scan, asked, weight) ||
		!gpuds_scan_is_worth_a_map(scan, (double) asked))
		return true;
	take_doubles(probes, n, probe->words, &doubles);
	sure = ask_device(scan, visible, probe, probes, n, &doubles, weight, answers);
	memcpy(probes + *n, doubles.probes, doubles.n * sizeof(GpudsEntry));
	*n += doubles.n;
	pfree(doubles.probes);
	pfree(doubles.firsts);
	return sure && (*n <= asked / 2 || visible->known.waits);
}
