/*-------------------------------------------------------------------------
 *
 * evict.c
 *	  The memory of a device: which mirrors get it, and from whom it is taken.
 *
 * A load reserves what it is going to need before it reads anything, so that
 * loads at the same time do not push each other out.  What is reserved belongs
 * to the mirror's applier and goes with it.
 *
 * A load goes to one card, and all that follows is about that card.  What is joined must be on one card: so
 * it is one with room where an index of the same table is, or of one that it was to be joined with, else the
 * one with the most room.  Each copy of an index is on another card.
 *
 * What no card is large enough for, or is asked to be divided, goes to several, in parts that are alike.
 * Each card is asked for the memory of a part, and who evicts the mirror for one gets what all have back.
 *
 * A load that needs room takes it from the least recently used mirrors, but a mirror
 * that was loaded stays for a time in proportion to what its load has cost, as
 * long as it is used: loading takes a tenth of the time at most, however many
 * indexes want memory that does not suffice for all.  If there is not enough to
 * be had, nobody is evicted, and the mirror that was refused remembers it: its
 * scans do without, and do not ask again before that makes sense.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "utils/timestamp.h"

#include "mirror/mirror_internal.h"

/* How long a mirror rests that was refused, or whose load or catch-up failed. */
#define LEAST_REST_US (100 * INT64CONST(1000))
#define REFUSED_REST_US (1 * USECS_PER_SEC)
#define FAILED_REST_US (5 * USECS_PER_SEC)
#define MAX_DOUBLINGS 6

/* Part of a card's memory that is left for the changes that follow a load. */
#define SPARE_SHARE 32

static LWLock *memory_lock = NULL;

/* Finds the memory lock, whose tranche gpuds.c has asked for, when a process attaches to shared memory. */
void
gpuds_memory_shmem_init(void)
{
	memory_lock = &GetNamedLWLockTranche("gpuds_memory_claims")[0].lock;
}

/* Is a mirror on a card, or to be there? */
static bool
is_on(GpudsMirror *mirror, GpudsDeviceKind kind, int card)
{
	return mirror->tree.kind == kind && (gpuds_device_places(&mirror->tree) >> card & 1) != 0;
}

/* Memory of a card that a mirror gives back when it is discarded. */
static size_t
bytes_on(GpudsMirror *mirror, int card)
{
	if (!is_on(mirror, mirror->tree.kind, card))
		return 0;
	return gpuds_device_bytes_on(&mirror->tree, card) + gpuds_device_side_bytes(&mirror->tree);
}

/* The same of all cards. */
static size_t
mirror_bytes(GpudsMirror *mirror)
{
	return gpuds_device_bytes(&mirror->tree) + gpuds_device_side_bytes(&mirror->tree);
}

static size_t
card_size(GpudsMirror *mirror, int card)
{
	return gpuds_device_memory_size(mirror->tree.kind, card);
}

/* Bytes in use on a card of a mirror's device, or reserved there by others. */
static size_t
committed_on(GpudsMirror *except, int card)
{
	size_t sum = gpuds_device_memory_used(except->tree.kind, card);
	GpudsMirror *mirror;

	for (int i = 0; (mirror = gpuds_mirror_slot(i)) != NULL; i++)
	{
		size_t reserved = pg_atomic_read_u64(&mirror->claim.reserved_bytes);
		size_t bytes;

		if (reserved == 0 || mirror == except || !is_on(mirror, except->tree.kind, card))
			continue;
		reserved /= gpuds_device_parts(&mirror->tree);
		bytes = gpuds_device_bytes_on(&mirror->tree, card);
		if (reserved > bytes)
			sum += reserved - bytes;
	}
	return sum;
}

/* The same without what the mirror itself has there. */
static size_t
others_on(GpudsMirror *mirror, int card)
{
	const size_t committed = committed_on(mirror, card);

	return committed - Min(committed, bytes_on(mirror, card));
}

/*
 * May the mirror be evicted in favour of keep, for memory of a card?  Certain for its applier only.  One that
 * has lost another of its cards is of no use to anybody.
 */
static bool
is_evictable(GpudsMirror *mirror, GpudsMirror *keep, int card, TimestampTz now, bool asked)
{
	if (mirror == keep || !is_on(mirror, keep->tree.kind, card) || !mirror->loaded)
		return false;
	if (!gpuds_device_usable(&mirror->tree))
		return gpuds_device_bytes_on(&mirror->tree, card) > 0;
	return asked || !gpuds_memory_is_protected(mirror, now);
}

/*
 * The mirror to evict in favour of keep: the one whose last use was noted
 * longest ago.  *bytes: of the card, of all that might be evicted.
 */
static GpudsMirror *
find_victim(GpudsMirror *keep, int card, bool asked, size_t *bytes)
{
	TimestampTz now = GetCurrentTimestamp();
	GpudsMirror *victim = NULL;
	uint64 oldest = PG_UINT64_MAX;
	uint64 oldest_at = PG_UINT64_MAX;
	GpudsMirror *mirror;

	*bytes = 0;
	for (int i = 0; (mirror = gpuds_mirror_slot(i)) != NULL; i++)
	{
		uint64 last_use;
		uint64 used_at;

		if (mirror->applier != 0 || !is_evictable(mirror, keep, card, now, asked))
			continue;
		*bytes += bytes_on(mirror, card);
		last_use = pg_atomic_read_u64(&mirror->last_use);
		used_at = pg_atomic_read_u64(&mirror->claim.used_at);
		if (last_use < oldest || (last_use == oldest && used_at < oldest_at))
		{
			victim = mirror;
			oldest = last_use;
			oldest_at = used_at;
		}
	}
	return victim;
}

/*
 * Evicts another mirror of a card in favour of this one, or its copy of side values first.  asked: also
 * one that is protected.  False: there is none, or its memory does not come back.
 */
static bool
evict_other(GpudsMirror *mirror, int card, bool asked)
{
	GpudsMirror *victim;
	size_t bytes;

	while ((victim = find_victim(mirror, card, asked, &bytes)) != NULL)
	{
		if (gpuds_mirror_acquire(victim, false))
		{
			bool right = is_evictable(victim, mirror, card, GetCurrentTimestamp(), asked);
			bool dropped = right && (gpuds_device_side_drop(&victim->tree) || gpuds_mirror_discard(victim));

			gpuds_mirror_release(victim);
			if (right)
				return dropped;
		}
	}
	return false;
}

/* Makes room on a card, from the mirror's own copy of side values before all. */
static bool
evict_on(GpudsMirror *mirror, int card, bool asked)
{
	if (gpuds_device_is_private(mirror->tree.kind))
		return gpuds_private_evict_one(mirror, asked);
	return gpuds_device_side_drop(&mirror->tree) || evict_other(mirror, card, asked);
}

/*
 * Evicts a mirror in favour of this one, whose applier the caller is, from the card that has last had no
 * memory for it.  asked: also one that is protected.  Copies of side values go first, the mirror's own before
 * all.  False: there is none, or its memory does not come back.
 */
bool
gpuds_memory_evict_one(GpudsMirror *mirror, bool asked)
{
	return evict_on(mirror, gpuds_device_refused(&mirror->tree), asked);
}

/* Bytes to reserve for a load that needs so many, on a card with so many: some to spare. */
static size_t
with_spare(size_t need, size_t size)
{
	return Min(need + size / SPARE_SHARE, size);
}

/* Of the bytes that a load needs, those of each of n parts. */
static size_t
part_need(GpudsDeviceKind kind, size_t need, int n)
{
	const size_t slack = Min(gpuds_device_slack_bytes(kind), need);

	return n == 1 ? need : (need - slack) / n + slack;
}

/* A mirror that was not used for so long makes room for copies of side values. */
#define IDLE_US (10 * USECS_PER_SEC)

/* Is the mirror that would be evicted first not in use? */
static bool
is_victim_idle(GpudsMirror *keep)
{
	size_t bytes;
	const GpudsMirror *victim = find_victim(keep, gpuds_device_card(&keep->tree), false, &bytes);

	return victim && GetCurrentTimestamp() - (TimestampTz) pg_atomic_read_u64(
												 &unconstify(GpudsMirror *, victim)->claim.used_at) >
						 IDLE_US;
}

/*
 * Are so many bytes free for a copy of side values of a mirror's rows?  Mirrors that nobody uses are evicted
 * for it; the caller need not be an applier.  What is free may be taken by others meanwhile.
 */
bool
gpuds_memory_for_side(GpudsMirror *mirror, size_t bytes)
{
	const int card = gpuds_device_card(&mirror->tree);
	const size_t size = card_size(mirror, card);
	const size_t own = gpuds_device_side_bytes(&mirror->tree);

	if (bytes > size)
		return false;
	while (committed_on(mirror, card) - Min(own, committed_on(mirror, card)) > size - bytes)
	{
		CHECK_FOR_INTERRUPTS();
		if (!is_victim_idle(mirror) || !evict_other(mirror, card, false))
			return false;
	}
	return true;
}

/* Has the file of a mirror another copy on a card, or one on its way there? */
static bool
has_copy_on(GpudsMirror *mirror, int card)
{
	GpudsMirror *other;

	for (int i = 0; (other = gpuds_mirror_slot(i)) != NULL; i++)
	{
		if (other != mirror && pg_atomic_read_u64(&other->serial) != 0 &&
			is_on(other, mirror->tree.kind, card) && gpuds_file_is_same(&mirror->file, &other->file) &&
			(gpuds_mirror_is_loaded(other) || pg_atomic_read_u64(&other->claim.reserved_bytes) != 0))
			return true;
	}
	return false;
}

/*
 * Is an index of a table that it was to be joined with on a card (2), or one of the same table (1)?  The
 * former comes first: for its sake the mirror has been moved.
 */
static int
kin_on(GpudsMirror *mirror, int card)
{
	const Oid joined = pg_atomic_read_u32(&mirror->joined_table);
	GpudsMirror *other;
	int kin = 0;

	for (int i = 0; (other = gpuds_mirror_slot(i)) != NULL; i++)
	{
		if (other != mirror && pg_atomic_read_u64(&other->serial) != 0 &&
			is_on(other, mirror->tree.kind, card) &&
			(other->table_oid == mirror->table_oid || other->table_oid == joined) &&
			other->file.locator.dbOid == mirror->file.locator.dbOid &&
			other->index_oid != mirror->index_oid && gpuds_mirror_is_loaded(other))
			kin = Max(kin, other->table_oid == joined ? 2 : 1);
	}
	return kin;
}

/*
 * Bytes of a card that nobody has or has reserved, the mirror itself aside; -1: no room can be made for what
 * a load needs there.
 */
static int64
room_on(GpudsMirror *mirror, int card, size_t need, int how)
{
	const size_t size = card_size(mirror, card);
	const size_t committed = others_on(mirror, card);
	const size_t wanted = committed + with_spare(need, size);
	size_t to_be_had = 0;

	if (need > size)
		return -1;
	if (wanted > size && !(how & GPUDS_NO_EVICT))
		(void) find_victim(mirror, card, (how & GPUDS_ASKED) != 0, &to_be_had);
	if (wanted > size + to_be_had)
		return -1;
	return committed < size ? (int64) (size - committed) : 0;
}

/* Is the card one that loads go to?  Where none is, the load is to find that out. */
static bool
takes_loads(GpudsDeviceKind kind, int card)
{
	return gpuds_device_card_serves(kind, card) && !gpuds_device_card_stalls(kind, card);
}

/* Would a mirror have room on another card, without anybody's being evicted? */
static bool
fits_on(GpudsMirror *mirror, int card)
{
	const size_t size = gpuds_device_memory_size(mirror->tree.kind, card);

	return takes_loads(mirror->tree.kind, card) &&
		   committed_on(mirror, card) + with_spare(mirror_bytes(mirror), size) <= size;
}

/*
 * Discards the mirror of a reference, which is loaded again by the next scan, beside its kin: if another card
 * has room for it, and its load has earned its cost.
 */
static void
move(const GpudsMirrorRef *ref, int card)
{
	GpudsMirror *mirror = ref->mirror;

	if (!gpuds_mirror_acquire(mirror, false))
		return;
	PG_ENSURE_ERROR_CLEANUP(gpuds_mirror_release_on_error, PointerGetDatum(mirror));
	{
		if (pg_atomic_read_u64(&mirror->serial) == ref->serial && gpuds_mirror_is_loaded(mirror) &&
			gpuds_memory_has_earned(mirror) && fits_on(mirror, card))
			(void) gpuds_mirror_discard(mirror);
	}
	PG_END_ENSURE_ERROR_CLEANUP(gpuds_mirror_release_on_error, PointerGetDatum(mirror));
	gpuds_mirror_release(mirror);
}

/*
 * The mirrors of two references were to be joined: if only their cards differ, the smaller one is moved to
 * the other's card, unless one of them is on several.  The caller is neither's applier.
 */
void
gpuds_memory_bring_together(const GpudsMirrorRef *one, const GpudsMirrorRef *other)
{
	GpudsMirror *mirrors[2] = { one->mirror, other->mirror };
	const bool other_moves = mirror_bytes(mirrors[1]) <= mirror_bytes(mirrors[0]);
	const uint32 places = gpuds_device_places(&mirrors[0]->tree) | gpuds_device_places(&mirrors[1]->tree);

	if (mirrors[0]->tree.kind != mirrors[1]->tree.kind || pg_popcount32(places) != 2 ||
		!gpuds_device_usable(&mirrors[0]->tree) || !gpuds_device_usable(&mirrors[1]->tree))
		return;
	for (int i = 0; i < 2; i++)
	{
		if (mirrors[i]->number != GPUDS_MIRROR_ON_GPU(0) || pg_atomic_read_u32(&mirrors[i]->copies) > 1 ||
			gpuds_device_parts(&mirrors[i]->tree) > 1)
			return;
	}
	for (int i = 0; i < 2; i++)
		pg_atomic_write_u32(&mirrors[i]->joined_table, mirrors[1 - i]->table_oid);
	move(other_moves ? other : one, gpuds_device_card(&mirrors[other_moves ? 0 : 1]->tree));
}

/* The cards, by bits, that a load of the mirror may go to.  full: those that have refused it. */
static uint32
cards_for(GpudsMirror *mirror, uint32 full)
{
	const GpudsDeviceKind kind = mirror->tree.kind;
	const int ncards = gpuds_device_cards(kind);
	uint32 all = 0;
	uint32 taking = 0;

	for (int card = 0; card < ncards; card++)
	{
		all |= (uint32) 1 << card;
		if (ncards > 1 && takes_loads(kind, card))
			taking |= (uint32) 1 << card;
	}
	if (taking != 0)
		all = taking;
	all &= ~full;
	for (int card = 0; card < ncards && ncards > 1; card++)
	{
		if (has_copy_on(mirror, card))
			all &= ~((uint32) 1 << card);
	}
	return all;
}

/*
 * How many parts a load is divided into: at least so many, if there are as many cards, until they fit. 0:
 * never.
 */
static int
count_parts(GpudsDeviceKind kind, uint32 cards, size_t need, int parts)
{
	const int ncards = pg_popcount32(cards);

	for (int n = Max(Min(parts, ncards), 1); n <= ncards; n++)
	{
		int large_enough = 0;

		for (int card = 0; cards >> card != 0; card++)
			large_enough += (cards >> card & 1) &&
							gpuds_device_memory_size(kind, card) >= part_need(kind, need, n);
		if (large_enough >= n)
			return n;
	}
	return 0;
}

/*
 * Chooses cards for a load of the mirror, by bits: those with the most room of those that serve, are not
 * full, and can make room; first, if it is one, of those that have room and its kin.  0: they cannot.
 */
static uint32
choose_cards(GpudsMirror *mirror, size_t need, int parts, int how, uint32 full)
{
	const GpudsDeviceKind kind = mirror->tree.kind;
	const bool several = gpuds_device_cards(kind) > 1;
	uint32 cards = cards_for(mirror, full);
	const int n = count_parts(kind, cards, need, parts);
	const size_t bytes = part_need(kind, need, Max(n, 1));
	uint32 chosen = 0;

	for (int i = 0; i < n; i++)
	{
		int64 most = -1;
		int best = -1;

		for (int card = 0; cards >> card != 0; card++)
		{
			int64 room = cards >> card & 1 ? room_on(mirror, card, bytes, how) : -1;

			if (several && n == 1 && room >= (int64) with_spare(bytes, card_size(mirror, card)))
				room += PG_INT64_MAX / 4 * kin_on(mirror, card);
			if (room > most)
			{
				most = room;
				best = card;
			}
		}
		if (best < 0)
			return 0;
		chosen |= (uint32) 1 << best;
		cards &= ~chosen;
	}
	return chosen;
}

/*
 * Are the bytes that a load needs to be had without evicting others, if the mirror, whose applier the caller
 * is, gives its own back?
 */
bool
gpuds_memory_suffices(GpudsMirror *mirror, size_t need, int parts)
{
	return choose_cards(mirror, need, parts, GPUDS_NO_EVICT, 0) != 0;
}

/* Places the mirror, which is empty, on cards that it reserves memory of.  False: none can have it. */
static bool
place(GpudsMirror *mirror, size_t need, int parts, int how, uint32 full)
{
	const GpudsDeviceKind kind = mirror->tree.kind;
	size_t least = SIZE_MAX;
	uint32 cards;

	LWLockAcquire(memory_lock, LW_EXCLUSIVE);
	pg_atomic_write_u64(&mirror->claim.reserved_bytes, 0);
	cards = choose_cards(mirror, need, parts, how, full);
	for (int card = 0; cards >> card != 0; card++)
	{
		if (cards >> card & 1)
			least = Min(least, card_size(mirror, card));
	}
	if (cards != 0)
	{
		const int n = pg_popcount32(cards);

		gpuds_device_place(&mirror->tree, cards);
		pg_atomic_write_u64(&mirror->claim.reserved_bytes, n * with_spare(part_need(kind, need, n), least));
	}
	LWLockRelease(memory_lock);
	return cards != 0;
}

/*
 * Evicts others from a card until there is room for what the mirror is to have there; false: it cannot be
 * had.
 */
static bool
make_room(GpudsMirror *mirror, int card, size_t need, int how)
{
	const size_t size = card_size(mirror, card);
	const size_t bytes = with_spare(need, size);

	if (need > size)
		return false;
	while (committed_on(mirror, card) + bytes > size)
	{
		CHECK_FOR_INTERRUPTS();
		if ((how & GPUDS_NO_EVICT) || !evict_on(mirror, card, (how & GPUDS_ASKED) != 0))
			return false;
	}
	return true;
}

/*
 * Reserves memory for a load of the mirror, which is empty and whose applier the
 * caller is, on one of the cards, or in parts on several, and evicts others there for it; nobody if there is
 * enough, or if it would not help.  parts: at least so many.  how: GPUDS_ASKED, also those that are
 * protected; GPUDS_NO_EVICT, nobody in any case.  full: cards, by bits, that have refused the load.  False:
 * it cannot be had.
 */
bool
gpuds_memory_reserve(GpudsMirror *mirror, size_t need, int parts, int how, uint32 full)
{
	uint32 cards;
	size_t bytes;

	if (gpuds_device_is_private(mirror->tree.kind) ? full != 0 : !place(mirror, need, parts, how, full))
		return false;
	cards = gpuds_device_places(&mirror->tree);
	bytes = part_need(mirror->tree.kind, need, pg_popcount32(cards));
	for (int card = 0; cards >> card != 0; card++)
	{
		if ((cards >> card & 1) && !make_room(mirror, card, bytes, how))
		{
			pg_atomic_write_u64(&mirror->claim.reserved_bytes, 0);
			return false;
		}
	}
	return true;
}

/* Scans do without the mirror until then, or until so much is free, if that is not 0. */
static void
rest(GpudsMirror *mirror, TimestampTz until, size_t bytes)
{
	pg_atomic_write_u64(&mirror->claim.protected_until, 0);
	pg_atomic_write_u64(&mirror->claim.rest_bytes, bytes);
	/* with the reason; pairs with that of gpuds_memory_resting */
	pg_write_barrier();
	pg_atomic_write_u64(&mirror->claim.rest_until, until);
	SpinLockAcquire(&mirror->mutex);
	mirror->news = true;
	SpinLockRelease(&mirror->mutex);
}

/*
 * Notes that there was no room for the mirror, whose applier the caller is.
 * wanted: bytes that are needed, 0 if that is not known.  tried: not a decision
 * beforehand, the device has said so.
 */
void
gpuds_memory_refuse(GpudsMirror *mirror, size_t wanted, bool tried)
{
	GpudsDeviceKind kind = mirror->tree.kind;
	size_t size = gpuds_device_largest(kind);
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz until = now + FAILED_REST_US;

	if (tried)
	{
		until = now + (FAILED_REST_US << Min(mirror->claim.refusals, MAX_DOUBLINGS));
		mirror->claim.refusals++;
		mirror->claim.untried = false;
		mirror->claim.least_parts = 0;
		/* What is free has not been enough. */
		wanted = Max(wanted, gpuds_memory_free_bytes(kind, wanted) + size / 16);
	}
	else if (wanted <= size && gpuds_device_is_private(kind))
		until = now + LEAST_REST_US;
	else if (wanted <= size)
	{
		GpudsMirror *other;

		/* Until the first of the others has earned its cost. */
		until = now + REFUSED_REST_US;
		for (int i = 0; (other = gpuds_mirror_slot(i)) != NULL; i++)
		{
			if (other != mirror && other->tree.kind == kind && other->loaded &&
				gpuds_memory_is_protected(other, now))
				until = Min(until, (TimestampTz) pg_atomic_read_u64(&other->claim.protected_until));
		}
		until = Max(until, now + LEAST_REST_US);
	}
	mirror->claim.refusal = GPUDS_REFUSED_MEMORY;
	rest(mirror, until, wanted <= size ? wanted : 0);
}

/*
 * Notes that the mirror, whose applier the caller is, is to be loaded anew, which would take less memory than
 * its changes have made of it, but not before its last load has earned its cost.
 */
void
gpuds_memory_postpone(GpudsMirror *mirror)
{
	GpudsDeviceKind kind = mirror->tree.kind;

	mirror->claim.refusal = GPUDS_REFUSED_MEMORY;
	rest(mirror, mirror->claim.earned_at,
		 gpuds_memory_free_bytes(kind, mirror_bytes(mirror)) + gpuds_device_largest(kind) / 16);
}

/*
 * Notes that the mirror, whose applier the caller is, has more entries than the
 * device can have with any memory.
 */
void
gpuds_memory_refuse_size(GpudsMirror *mirror)
{
	mirror->claim.refusal = GPUDS_REFUSED_SIZE;
	rest(mirror, GetCurrentTimestamp() + FAILED_REST_US, 0);
}

/*
 * Notes that the device of the mirror, whose applier the caller is, does not have the
 * index's structure.
 */
void
gpuds_memory_refuse_structure(GpudsMirror *mirror)
{
	mirror->claim.refusal = GPUDS_REFUSED_STRUCTURE;
	rest(mirror, GetCurrentTimestamp() + FAILED_REST_US, 0);
}

/*
 * The index's journal may have shrunk: it is of use to ask for room again.
 */
void
gpuds_memory_ask_again(Relation index)
{
	if (RelationUsesLocalBuffers(index))
		return;
	for (int number = 0; number < GPUDS_FILE_MIRRORS; number++)
	{
		GpudsMirror *mirror = gpuds_mirror_find(RelationLocator(index), number);

		if (mirror)
			pg_atomic_write_u64(&mirror->claim.rest_until, 0);
	}
}
