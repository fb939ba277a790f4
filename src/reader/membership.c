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
 * Probes of a word, which most are, go through all of this as words: the pass that looks for equal ones
 * writes what is sent.  A probe takes 8 bytes on the bus to the device then, and 8 back.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"
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

/* What a device is asked about: probes as they came, and each of them once. */
typedef struct Probes
{
	const GpudsKeyProbe *by;
	const GpudsEntry *entries; /* probes; or NULL, and ... */
	const uint64 *words;       /* ... the words of probes that have no other */
	int64 n;

	/* what is sent, of words if probes have no other */
	uint64 *sent_words;
	GpudsEntry *sent_entries;
	int64 nsent;

	/* probes that equal earlier ones: their places, ascending, and those of the others in what is sent */
	uint32 *doubles;
	uint32 *firsts;
	int64 ndoubles;
	int64 size;
} Probes;

/* Codes of short types differ in their high bits only, so all bits are mixed (MurmurHash3's end). */
static inline uint64
hash_key(const GpudsEntry *key)
{
	uint64 hash = key->w0 ^ (key->w1 << 32 | key->w1 >> 32) ^ key->t;

	hash = (hash ^ hash >> 33) * UINT64CONST(0xff51afd7ed558ccd);
	hash = (hash ^ hash >> 33) * UINT64CONST(0xc4ceb9fe1a85ec53);
	return hash ^ hash >> 33;
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
#define FILTER_BITS_A_KEY 64
#define FILTER_BITS_MAX (1u << 22)

/* The keys that others have entries of; of most probes a bit says that they are of none. */
typedef struct UnsureKeys
{
	unsure_hash *table;
	uint64 *filter;
	uint32 mask; /* of its bits' numbers */
} UnsureKeys;

/* The hash of a word; the bits of its halves depend on all of the word. */
static inline uint64
hash_word(uint64 word)
{
	const uint64 product = word * UINT64CONST(0x9e3779b97f4a7c15);

	return product ^ product >> 32;
}

/* The hash of a key for the filter, and for equal ones. */
static inline uint64
mix_key(const GpudsEntry *key, bool words)
{
	return words ? hash_word(key->w0) : hash_key(key);
}

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

static void
end_unsure(UnsureKeys *keys)
{
	unsure_destroy(keys->table);
	pfree(keys->filter);
}

/* May keys with a hash be among those that others have entries of? */
static inline bool
may_be_unsure(const UnsureKeys *keys, uint64 hash)
{
	const uint32 bit = filter_bit(keys, hash);

	return keys->filter[bit / 64] >> bit % 64 & 1;
}

/* The keys that others have entries of. */
static void
collect_unsure(UnsureKeys *keys, const GpudsKeyProbe *probe, const GpudsMembership *hits)
{
	begin_unsure(keys, hits->nothers);
	for (int64 i = 0; i < hits->nothers; i++)
	{
		const GpudsEntry *entry = &hits->others[i];
		GpudsEntry key = { entry->w0 & ~probe->rest.w0,
						   /* the other words are the same in all probes of a word */
						   probe->words ? 0 : entry->w1 & ~probe->rest.w1,
						   probe->words ? 0 : entry->t & ~probe->rest.t };
		const uint32 bit = filter_bit(keys, mix_key(&key, probe->words));
		bool found;
		Unsure *unsure = unsure_insert(keys->table, key, &found);

		CHECK_FOR_INTERRUPTS();
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

/* A key that has been sent. */
static inline GpudsEntry
sent_key(const Probes *probes, int64 place, bool words)
{
	return words ? (GpudsEntry){ .w0 = probes->sent_words[place] } : probes->sent_entries[place];
}

/* The key of a probe as it came. */
static inline GpudsEntry
probe_key(const Probes *probes, int64 i)
{
	return probes->entries ? key_of(&probes->entries[i]) : (GpudsEntry){ .w0 = probes->words[i] };
}

static void
add_double(Probes *probes, int64 i, uint32 first)
{
	if (probes->ndoubles == probes->size)
	{
		probes->size *= 2;
		probes->doubles = repalloc_huge(probes->doubles, probes->size * sizeof(uint32));
		probes->firsts = repalloc_huge(probes->firsts, probes->size * sizeof(uint32));
	}
	probes->doubles[probes->ndoubles] = (uint32) i;
	probes->firsts[probes->ndoubles++] = first;
}

/*
 * Sends probes that equal no earlier ones.  A table has the last key of each hash only: a key that is there
 * often is found there almost always, and it does no harm to send one twice.  It has the rest of the hash,
 * too, so that almost no probe is compared with one that differs.
 */
static pg_attribute_always_inline void
send_different(Probes *probes, LastKey *last, uint32 mask, bool words)
{
	int64 kept = 0;

	for (int64 i = 0; i < probes->n; i++)
	{
		const GpudsEntry key = probe_key(probes, i);
		const uint64 hash = mix_key(&key, words);
		LastKey *at = &last[hash & mask];

		if (at->rest == (uint32) (hash >> 32) && at->place > 0 &&
			(words ? probes->sent_words[at->place - 1] == key.w0
				   : entry_equal(&probes->sent_entries[at->place - 1], &key)))
		{
			add_double(probes, i, at->place - 1);
			continue;
		}
		if (words)
			probes->sent_words[kept] = key.w0;
		else
			probes->sent_entries[kept] = key;
		at->rest = (uint32) (hash >> 32);
		at->place = (uint32) ++kept;
	}
	probes->nsent = kept;
}

/* Makes ready what is sent for a scan. */
static void
begin_probes(IndexScanDesc scan, Probes *probes)
{
	const uint32 size = pg_nextpower2_32((uint32) Min(Max(2 * probes->n, LEAST_LAST_KEYS), MOST_LAST_KEYS));
	LastKey *last = palloc0(size * sizeof(LastKey));

	probes->ndoubles = 0;
	probes->size = FIRST_DOUBLES;
	probes->doubles = palloc(probes->size * sizeof(uint32));
	probes->firsts = palloc(probes->size * sizeof(uint32));
	if (probes->by->words)
	{
		probes->sent_words = gpuds_scan_alloc_points(scan, probes->n);
		send_different(probes, last, size - 1, true);
	}
	else
	{
		probes->sent_entries = MemoryContextAllocHuge(CurrentMemoryContext, probes->n * sizeof(GpudsEntry));
		send_different(probes, last, size - 1, false);
	}
	pfree(last);
}

static void
end_probes(Probes *probes)
{
	if (probes->sent_entries)
		pfree(probes->sent_entries);
	pfree(probes->doubles);
	pfree(probes->firsts);
}

/* Probes with a hit are matches. */
static void
note_matches(IndexScanDesc scan, const GpudsMembership *hits, int64 n)
{
	/* each is a byte, with one bit or none */
	const int64 matches = (int64) pg_popcount((const char *) hits->hits, (int) n);

	gpuds_scan_note_matches(scan, matches, matches);
}

/* The places of what was sent that the device is not sure of, ascending; returns how many there are. */
static pg_attribute_always_inline int64
find_unsure(const Probes *probes, const UnsureKeys *keys, const GpudsMembership *hits, bool words,
			uint32 *places)
{
	const bool no_delta = hits->ndelta == 0;
	int64 n = 0;

	for (int64 i = 0; i < probes->nsent; i++)
	{
		GpudsEntry key;
		const Unsure *unsure;

		/* most have hits, or most have none */
		if (no_delta && hits->hits[i])
			continue;
		key = sent_key(probes, i, words);
		if (!may_be_unsure(keys, mix_key(&key, words)))
			continue;
		unsure = unsure_lookup(keys->table, key);
		if (unsure && (unsure->delta || !hits->hits[i]))
			places[n++] = (uint32) i;
	}
	return n;
}

/* The same, with the keys that the device has handed back. */
static int64
list_unsure(const Probes *probes, const GpudsMembership *hits, uint32 *places)
{
	UnsureKeys keys;
	int64 n;

	collect_unsure(&keys, probes->by, hits);
	n = probes->by->words ? find_unsure(probes, &keys, hits, true, places)
						  : find_unsure(probes, &keys, hits, false, places);
	end_unsure(&keys);
	return n;
}

/*
 * From answers to what was sent, and the places there that are unsure, makes those of all probes.  Backward,
 * as both lie at the beginning of their arrays; returns how many are unsure.
 */
static int64
spread_answers(const Probes *probes, bool *answers, uint32 *left, int64 nleft)
{
	bool *sent = MemoryContextAllocHuge(CurrentMemoryContext, Max(probes->nsent, 1) * 2 * sizeof(bool));
	bool *unsure = sent + probes->nsent;
	int64 next = 0; /* of the doubles */
	int64 n = 0;

	memcpy(sent, answers, probes->nsent * sizeof(bool));
	memset(unsure, false, probes->nsent * sizeof(bool));
	for (int64 i = 0; i < nleft; i++)
		unsure[left[i]] = true;
	for (int64 i = 0; i < probes->n; i++)
	{
		const bool is_double = next < probes->ndoubles && probes->doubles[next] == i;
		const int64 place = is_double ? probes->firsts[next] : i - next;

		next += is_double;
		answers[i] = sent[place];
		if (unsure[place])
			left[n++] = (uint32) i;
	}
	pfree(sent);
	return n;
}

/*
 * Asks the device about probes; false: it cannot say.  answers[i] is that to the i-th, but of *nleft of them
 * it is not sure, whose numbers are in left, ascending: their answers are false.
 */
static bool
ask_device(IndexScanDesc scan, GpudsVisible *visible, Probes *probes, int64 weight, bool *answers,
		   uint32 *left, int64 *nleft)
{
	GpudsMembership hits = { .hits = answers };

	gpuds_visible_before_barrier(visible);
	if (probes->by->words)
		gpuds_scan_begin_points(scan, probes->by, probes->sent_words, probes->nsent, weight);
	else
		gpuds_scan_begin_membership(scan, probes->by, probes->sent_entries, probes->nsent, weight);
	if (!gpuds_scan_test_membership(scan, visible, probes->nsent, &hits))
		return false;
	note_matches(scan, &hits, probes->nsent);
	*nleft = hits.nothers > 0 ? list_unsure(probes, &hits, left) : 0;
	if (hits.others)
		pfree(hits.others);
	if (probes->ndoubles > 0)
		*nleft = spread_answers(probes, answers, left, *nleft);
	for (int64 i = 0; i < *nleft; i++)
		answers[left[i]] = false;
	return true;
}

/* The same, for probes that may be asked about; if the device cannot say, all of them are left. */
static bool
ask_about(IndexScanDesc scan, GpudsVisible *visible, Probes *probes, int64 weight, bool *answers,
		  uint32 *left, int64 *nleft)
{
	bool sure;

	begin_probes(scan, probes);
	sure = ask_device(scan, visible, probes, weight, answers, left, nleft);
	end_probes(probes);
	if (!sure)
	{
		memset(answers, false, probes->n * sizeof(bool));
		for (int64 i = 0; i < probes->n; i++)
			left[i] = (uint32) i;
		*nleft = probes->n;
	}
	return sure && (*nleft <= probes->n / 2 || visible->known.waits);
}

/* May a device be asked about n probes, and is that worth a copy of the visibility map? */
static bool
may_ask(IndexScanDesc scan, int64 n, int64 weight)
{
	return n > 0 && gpuds_scan_may_test_membership(scan, n, weight) &&
		   gpuds_scan_is_worth_a_map(scan, (double) n);
}

/*
 * Has a device answer for *n probes, as many as it is sure of: answers[number of a probe] says whether it has
 * a row that the scan's snapshot sees.  The others are left in probes[*n], in their order.  weight: as of
 * gpuds_scan_begin_batches.  The scan can be used for other probes then.  False: it is not worth while to
 * do so for the next probes, because the device was sure of less than half, and will not be told of more
 * pages.
 */
bool
gpuds_membership_find(IndexScanDesc scan, GpudsVisible *visible, const GpudsKeyProbe *probe,
					  GpudsEntry *probes, int64 *n, int64 weight, bool *answers)
{
	Probes all = { .by = probe, .entries = probes, .n = *n };
	bool *found;
	uint32 *left;
	int64 nleft;
	int64 next = 0;
	bool goes_on;

	if (!may_ask(scan, *n, weight))
		return true;
	found = MemoryContextAllocHuge(CurrentMemoryContext, *n * sizeof(bool));
	left = MemoryContextAllocHuge(CurrentMemoryContext, *n * sizeof(uint32));
	goes_on = ask_about(scan, visible, &all, weight, found, left, &nleft);
	for (int64 i = 0; i < *n; i++)
	{
		if (next < nleft && left[next] == i)
			probes[next++] = probes[i];
		else
			answers[number_of(&probes[i])] = found[i];
	}
	*n = nleft;
	pfree(found);
	pfree(left);
	return goes_on;
}

/*
 * The same for n probes of which only their words are given, which they have no others of: answers[i] is that
 * to the i-th, and false of *nleft others, whose numbers are in left, ascending; there is room for all.
 */
bool
gpuds_membership_find_words(IndexScanDesc scan, GpudsVisible *visible, const GpudsKeyProbe *probe,
							const uint64 *words, int64 n, int64 weight, bool *answers, uint32 *left,
							int64 *nleft)
{
	Probes all = { .by = probe, .words = words, .n = n };

	if (may_ask(scan, n, weight))
		return ask_about(scan, visible, &all, weight, answers, left, nleft);
	for (*nleft = 0; *nleft < n; (*nleft)++)
		left[*nleft] = (uint32) *nleft;
	return true;
}
