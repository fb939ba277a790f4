/*-------------------------------------------------------------------------
 *
 * state_cache.c
 *	  The page states in shared memory: a set-associative cache without locks.
 *
 * A state is words: those of its rows, then two for each writer.  Slot after slot takes some of them, its
 * parts.  All parts of a state have the serial of the store that has written them, so parts of different
 * stores are never taken for one state.
 *
 * A slot is written by who makes its sequence odd.  Who reads it copies it between two looks at the sequence:
 *
 *	  writer	sequence becomes odd; write barrier; contents; write barrier; sequence becomes even
 *	  reader	looks, it is even; read barrier; copies; read barrier; looks again, it is the same
 *
 * Making it odd is an atomic exchange, so there is one writer at a time.  A writer raises no error, and runs
 * no interrupt, so it always ends.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "common/hashfn.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/shmem.h"

#include "states/states.h"

/* Slots of a set, any of which a part may lie in. */
#define WAYS 8

/* Pages whose parts lie in neighbouring sets. */
#define NEIGHBOURS 64

/* Words of a slot, which has 128 bytes. */
#define SLOT_WORDS 19

/* Words of a writer: the offset of its first row, two flags, and how many rows it has; and its number. */
#define WRITER_WORDS 2
#define WRITER_OFFSET ((1u << 14) - 1)
#define WRITER_DELETES (1u << 14)
#define WRITER_COMMITTED (1u << 15)
#define WRITER_ROWS_SHIFT 16
StaticAssertDecl(MaxHeapTuplesPerPage <= WRITER_OFFSET, "a writer's word has offsets of rows");

/* What a slot has. */
typedef struct Part
{
	RelFileLocator locator;
	BlockNumber block;
	XLogRecPtr lsn;
	uint32 serial; /* of the store */
	Buffer buffer;
	TransactionId settled;
	TransactionId unsettled;
	uint16 nrows;
	uint8 nwriters;
	uint8 number; /* of the part */
	uint32 words[SLOT_WORDS];
} Part;

typedef struct Slot
{
	pg_atomic_uint32 sequence;
	Part part;
} Slot;

StaticAssertDecl(sizeof(Slot) == 128, "a slot takes two lines of most processors' caches");
StaticAssertDecl(GPUDS_STATE_WRITERS <= PG_UINT8_MAX, "a part has the number of writers in a byte");
StaticAssertDecl(GPUDS_STATE_WORDS + GPUDS_STATE_WRITERS * WRITER_WORDS <= PG_UINT8_MAX * SLOT_WORDS,
				 "a part's number is a byte");

/* Tags come first, so that a look for a part reads one line of the processor's cache, and then the slot. */
typedef struct Set
{
	pg_atomic_uint32 tag[WAYS];  /* of the part in the slot; 0: there is none */
	pg_atomic_uint32 used[WAYS]; /* when it was found or stored last, in seconds */
	Slot slot[WAYS];
} Set;

typedef struct States
{
	pg_atomic_uint32 serial; /* of the last store */
	char padding[PG_CACHE_LINE_SIZE - sizeof(pg_atomic_uint32)];
	pg_atomic_uint64 hits;
	pg_atomic_uint64 made;
	pg_atomic_uint64 stale;
	pg_atomic_uint64 evicted;
} States;

static States *shared;
static Set *sets;
static uint64 nsets;

static uint64
count_sets(void)
{
	const uint64 bytes = (uint64) gpuds_visibility_memory_kb * 1024;

	return bytes == 0 ? 0 : Max(bytes / sizeof(Set), 1);
}

/* Shared memory that states need, in bytes. */
Size
gpuds_states_shmem_size(void)
{
	return add_size(CACHELINEALIGN(sizeof(States)), mul_size(count_sets(), sizeof(Set)) + PG_CACHE_LINE_SIZE);
}

/*
 * Creates or finds the cache.  New shared memory is zeros, which say that no slot is taken; so what is never
 * needed is never touched.  The caller holds AddinShmemInitLock.
 */
void
gpuds_states_shmem_init(void)
{
	bool found;
	char *at = ShmemInitStruct("gpuds page states", gpuds_states_shmem_size(), &found);

	shared = (States *) at;
	nsets = count_sets();
	sets = (Set *) CACHELINEALIGN(at + sizeof(States));
	if (found)
		return;
	pg_atomic_init_u32(&shared->serial, 0);
	pg_atomic_init_u64(&shared->hits, 0);
	pg_atomic_init_u64(&shared->made, 0);
	pg_atomic_init_u64(&shared->stale, 0);
	pg_atomic_init_u64(&shared->evicted, 0);
}

/* Where a part belongs. */
typedef struct Place
{
	Set *set;
	uint32 tag;
} Place;

/* A hash of what neighbouring pages have in common; they are asked for one after the other. */
static uint64
hash_of_neighbours(const RelFileLocator *locator, BlockNumber block, int part)
{
	static uint32 last[5] = { 0 };
	static uint64 hash = 0; /* of no part that there is: a table has a number */
	const uint32 key[] = { locator->spcOid, locator->dbOid, locator->relNumber, block / NEIGHBOURS, part };

	StaticAssertStmt(sizeof(last) == sizeof(key), "the last key is a key");
	if (memcmp(last, key, sizeof(key)) != 0)
	{
		memcpy(last, key, sizeof(key));
		hash = hash_bytes_extended((const unsigned char *) key, sizeof(key), 0);
	}
	return hash;
}

/*
 * The parts of neighbouring pages lie in neighbouring sets, so that a scan, which comes to pages in their
 * order, finds them in few pages of memory.
 */
static Place
place_of(const RelFileLocator *locator, BlockNumber block, int part)
{
	const uint64 hash = hash_of_neighbours(locator, block, part);
	const uint64 set = ((hash & PG_UINT32_MAX) * nsets >> 32) + block % NEIGHBOURS;

	return (Place){ &sets[set < nsets ? set : set % Max(nsets, 1)],
					((uint32) (hash >> 32) + block % NEIGHBOURS * 2) | 1 };
}

/*
 * Asks the processor for the sets that some pages' states are in, if they are there: n pages,
 * GPUDS_STATES_AHEAD at most.
 */
void
gpuds_states_prefetch(const RelFileLocator *locator, const BlockNumber *blocks, int n)
{
	const Set *of_page[GPUDS_STATES_AHEAD];

	for (int i = 0; i < n; i++)
		of_page[i] = place_of(locator, blocks[i], 0).set;
	/* By themselves, so that the processor looks for several addresses at a time. */
	for (int i = 0; i < n; i++)
	{
		__builtin_prefetch(of_page[i]);
		__builtin_prefetch(&of_page[i]->slot[0]);
		__builtin_prefetch((const char *) &of_page[i]->slot[0] + PG_CACHE_LINE_SIZE / 2);
	}
}

/* Copies what a slot has; false: it is being written. */
static bool
copy_slot(Slot *slot, Part *part)
{
	const uint32 before = pg_atomic_read_u32(&slot->sequence);

	/* pairs with the barriers of write_slot */
	pg_read_barrier();
	if (before & 1)
		return false;
	memcpy(part, &slot->part, sizeof(Part));
	pg_read_barrier();
	return pg_atomic_read_u32(&slot->sequence) == before;
}

/* Writes a slot; false: somebody else does. */
static bool
write_slot(Slot *slot, const Part *part)
{
	uint32 before = pg_atomic_read_u32(&slot->sequence);

	if ((before & 1) || !pg_atomic_compare_exchange_u32(&slot->sequence, &before, before + 1))
		return false;
	/* pair with the barriers of copy_slot */
	pg_write_barrier();
	memcpy(&slot->part, part, sizeof(Part));
	pg_write_barrier();
	pg_atomic_write_u32(&slot->sequence, before + 2);
	return true;
}

static bool
is_part(const Part *part, const RelFileLocator *locator, BlockNumber block, int number)
{
	return RelFileLocatorEquals(part->locator, *locator) && part->block == block && part->number == number;
}

/* Finds a part of a page's state, and copies it; false: it is not there. */
static bool
find_part(const RelFileLocator *locator, BlockNumber block, int number, uint32 now, Part *part)
{
	const Place place = place_of(locator, block, number);
	Set *set = place.set;

	for (int i = 0; i < WAYS; i++)
	{
		if (pg_atomic_read_u32(&set->tag[i]) != place.tag || !copy_slot(&set->slot[i], part) ||
			!is_part(part, locator, block, number))
			continue;
		/* a hint, which several may write */
		if (pg_atomic_read_u32(&set->used[i]) != now)
			pg_atomic_write_u32(&set->used[i], now);
		return true;
	}
	return false;
}

/* Words of a state that has so many rows and writers. */
static int
words_of(int nrows, int nwriters)
{
	return GpudsRowWords(nrows) + nwriters * WRITER_WORDS;
}

/* A state's rows and writers as words. */
static int
pack(const GpudsPageState *state, uint32 *words)
{
	const int nrows = words_of(state->nrows, 0);
	uint32 *at = words + nrows;

	memcpy(words, state->rows, nrows * sizeof(uint32));
	for (int i = 0; i < state->nwriters; i++)
	{
		const GpudsRowWriter *writer = &state->writers[i];

		*at++ = writer->offset | (writer->deletes ? WRITER_DELETES : 0) |
				(writer->committed ? WRITER_COMMITTED : 0) | (uint32) writer->nrows << WRITER_ROWS_SHIFT;
		*at++ = writer->xid;
	}
	return (int) (at - words);
}

static void
unpack(const uint32 *words, GpudsPageState *state)
{
	const int nrows = words_of(state->nrows, 0);
	const uint32 *at = words + nrows;

	memcpy(state->rows, words, nrows * sizeof(uint32));
	memset(state->rows + nrows, 0, (GPUDS_STATE_WORDS - nrows) * sizeof(uint32));
	for (int i = 0; i < state->nwriters; i++)
	{
		GpudsRowWriter *writer = &state->writers[i];

		writer->offset = (uint16) (*at & WRITER_OFFSET);
		writer->nrows = (uint16) (*at >> WRITER_ROWS_SHIFT);
		writer->deletes = (*at & WRITER_DELETES) != 0;
		writer->committed = (*at++ & WRITER_COMMITTED) != 0;
		writer->xid = *at++;
	}
}

/*
 * The state of a page, copied into *state; false: there is none.  The caller must see whether the page still
 * has its LSN.
 */
bool
gpuds_states_find(const RelFileLocator *locator, BlockNumber block, uint32 now, GpudsPageState *state)
{
	uint32 words[GPUDS_STATE_WORDS + GPUDS_STATE_WRITERS * WRITER_WORDS + SLOT_WORDS];
	Part part;
	uint32 serial;
	int n;

	if (!find_part(locator, block, 0, now, &part))
		return false;
	state->lsn = part.lsn;
	state->buffer = part.buffer;
	state->settled = part.settled;
	state->unsettled = part.unsettled;
	state->nrows = part.nrows;
	state->nwriters = part.nwriters;
	serial = part.serial;
	n = words_of(part.nrows, part.nwriters);
	memcpy(words, part.words, sizeof(part.words));
	for (int i = 1; i * SLOT_WORDS < n; i++)
	{
		if (!find_part(locator, block, i, now, &part) || part.serial != serial || part.lsn != state->lsn)
			return false;
		memcpy(words + i * SLOT_WORDS, part.words, sizeof(part.words));
	}
	unpack(words, state);
	return true;
}

/* Seconds since a slot was used; clocks may be put back. */
static uint32
age_of(Set *set, int way, uint32 now)
{
	const uint32 used = pg_atomic_read_u32(&set->used[way]);

	return used > now ? 0 : now - used;
}

/* Which slot of a set is to have a part: that has it already, an empty one, or the one used longest ago. */
static int
choose_way(Set *set, uint32 tag, const Part *part, uint32 now)
{
	int way = 0;
	uint32 oldest = 0;

	for (int i = 0; i < WAYS; i++)
	{
		const uint32 is = pg_atomic_read_u32(&set->tag[i]);
		const uint32 age = is == 0 ? PG_UINT32_MAX : age_of(set, i, now);
		Part other;

		if (is == tag && copy_slot(&set->slot[i], &other) &&
			is_part(&other, &part->locator, part->block, part->number))
			return i;
		if (i == 0 || age > oldest)
		{
			way = i;
			oldest = age;
		}
	}
	return way;
}

static void
store_part(const Part *part, uint32 now)
{
	const Place place = place_of(&part->locator, part->block, part->number);
	Set *set = place.set;
	const int way = choose_way(set, place.tag, part, now);
	uint32 before;

	if (!write_slot(&set->slot[way], part))
		return;
	before = pg_atomic_exchange_u32(&set->tag[way], place.tag);
	pg_atomic_write_u32(&set->used[way], now);
	if (before != 0 && before != place.tag)
		pg_atomic_fetch_add_u64(&shared->evicted, 1);
}

/* Stores a state in place of the one that the page has, if it has one.  It may be lost at once. */
void
gpuds_states_store(const RelFileLocator *locator, BlockNumber block, uint32 now, const GpudsPageState *state)
{
	uint32 words[GPUDS_STATE_WORDS + GPUDS_STATE_WRITERS * WRITER_WORDS + SLOT_WORDS] = { 0 };
	const int n = pack(state, words);
	Part part = { .locator = *locator,
				  .block = block,
				  .lsn = state->lsn,
				  .serial = pg_atomic_add_fetch_u32(&shared->serial, 1),
				  .buffer = state->buffer,
				  .settled = state->settled,
				  .unsettled = state->unsettled,
				  .nrows = state->nrows,
				  .nwriters = (uint8) state->nwriters };

	for (int i = 0; i == 0 || i * SLOT_WORDS < n; i++)
	{
		part.number = (uint8) i;
		memcpy(part.words, words + i * SLOT_WORDS, sizeof(part.words));
		store_part(&part, now);
	}
}

/* Adds to what gpuds_states_report gives. */
void
gpuds_states_count(const GpudsStateUse *use)
{
	if (use->hits > 0)
		pg_atomic_fetch_add_u64(&shared->hits, (int64) use->hits);
	if (use->made > 0)
		pg_atomic_fetch_add_u64(&shared->made, (int64) use->made);
	if (use->stale > 0)
		pg_atomic_fetch_add_u64(&shared->stale, (int64) use->stale);
}

/* Slots of a set that are taken; adds those that have the first part of a state. */
static int
count_slots(Set *set, int64 *pages)
{
	int taken = 0;

	for (int i = 0; i < WAYS; i++)
	{
		if (pg_atomic_read_u32(&set->tag[i]) == 0)
			continue;
		taken++;
		*pages += ((const volatile Part *) &set->slot[i].part)->number == 0;
	}
	return taken;
}

/* Goes through the whole cache, and takes no lock; the figures may be of different moments. */
void
gpuds_states_report(GpudsStatesReport *report)
{
	int64 slots = 0;

	report->pages = 0;
	for (uint64 i = 0; i < nsets; i++)
		slots += count_slots(&sets[i], &report->pages);
	report->memory_total = nsets * sizeof(Set);
	report->memory_used = slots * (sizeof(Set) / WAYS);
	report->use.hits = pg_atomic_read_u64(&shared->hits);
	report->use.made = pg_atomic_read_u64(&shared->made);
	report->use.stale = pg_atomic_read_u64(&shared->stale);
	report->evicted = pg_atomic_read_u64(&shared->evicted);
}
