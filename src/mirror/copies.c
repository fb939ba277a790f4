/*-------------------------------------------------------------------------
 *
 * copies.c
 *	  Copies of an index on several GPUs.
 *
 * An index has as many as gpuds_index_load was asked for, each a mirror like any other, on a card
 * of its own (evict.c).  The first of them has their number.  A scan asks one copy that is there.
 * One that is missing, because it was evicted or its card was lost, is loaded again by a loader,
 * which evicts nobody and for which nobody waits.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/xact.h"
#include "utils/timestamp.h"

#include "mirror/mirror_internal.h"

/* A loader for a copy is not started again for so long. */
#define LOADER_US (5 * USECS_PER_SEC)

/* The card that the statement of that time has asked last. */
static int last_card = 0;
static TimestampTz last_statement = 0;

/* The file's copy of a number; NULL: it was never loaded. */
static GpudsMirror *
find_copy(const GpudsMirrorSource *source, int copy)
{
	GpudsMirrorRef ref;

	return gpuds_mirror_lookup(source->index, source->file_id, GPUDS_MIRROR_ON_GPU(copy), false, &ref)
			   ? ref.mirror
			   : NULL;
}

/* Can it answer, as far as is known without asking? */
static bool
is_able(GpudsMirror *mirror)
{
	return mirror && gpuds_mirror_is_loaded(mirror) && pg_atomic_read_u64(&mirror->guard) != 0 &&
		   !gpuds_memory_resting(mirror);
}

/*
 * What speaks against a card: least if the statement has asked it before, because indexes that are joined
 * must be on one; else the requests that it has.
 */
static uint32
burden_of(int card)
{
	if (gpuds_queue_stalls(card))
		return PG_UINT32_MAX;
	if (card == last_card && last_statement == GetCurrentStatementStartTimestamp())
		return 0;
	return 1 + gpuds_queue_length(card);
}

/*
 * The number of the mirror that a scan on a kind of device asks.  Of the copies on GPUs that are there it is
 * the one on the card with the fewest requests, and among equals not the same one for all sessions; if none
 * is there, the first.  Takes no lock: a moment later another may be better.
 */
int
gpuds_mirror_to_ask(const GpudsMirrorSource *source, GpudsDeviceKind kind)
{
	GpudsMirror *first;
	int best = -1;
	uint32 least = 0;

	if (!gpuds_device_is_remote(kind))
		return GPUDS_MIRROR_ON_CPU;
	first = gpuds_cards > 1 ? find_copy(source, 0) : NULL;
	for (int i = 0; i < gpuds_cards && first && pg_atomic_read_u32(&first->copies) > 1; i++)
	{
		const int copy = (i + GpudsMyBackendIndex()) % gpuds_cards;
		GpudsMirror *mirror = find_copy(source, copy);
		int card;

		if (!is_able(mirror))
			continue;
		card = gpuds_device_card(&mirror->tree);
		if (best < 0 || burden_of(card) < least)
		{
			best = copy;
			least = burden_of(card);
		}
	}
	return GPUDS_MIRROR_ON_GPU(Max(best, 0));
}

/* Notes that a scan has found the mirror of that reference. */
void
gpuds_copies_asked(const GpudsMirrorRef *ref)
{
	last_card = gpuds_device_card(&ref->mirror->tree);
	last_statement = GetCurrentStatementStartTimestamp();
}

/* On how many GPUs the index is to be, of those that there are. */
int
gpuds_copies_wanted(const GpudsMirrorSource *source)
{
	GpudsMirror *first = gpuds_cards > 1 ? find_copy(source, 0) : NULL;

	return first ? (int) Min(pg_atomic_read_u32(&first->copies), (uint32) gpuds_cards) : 1;
}

/*
 * Sets on how many GPUs the index is to be, and in how many parts each time.  False: every slot for a mirror
 * is busy right now.
 */
bool
gpuds_copies_want(const GpudsMirrorSource *source, int copies, int parts)
{
	GpudsMirrorRef ref;

	if (!gpuds_mirror_lookup(source->index, source->file_id, GPUDS_MIRROR_ON_GPU(0), true, &ref))
		return false;
	pg_atomic_write_u32(&ref.mirror->copies, copies);
	pg_atomic_write_u32(&ref.mirror->parts, parts);
	return true;
}

/* Is it on a card, or on its way to one? */
static bool
is_busy(GpudsMirror *mirror)
{
	return mirror && (gpuds_mirror_is_loaded(mirror) || mirror->applier != 0);
}

/*
 * Has it been brought up, or is somebody at it?  If not, it may have a card all the same: a loader that made
 * way for others has left it there, and no scan asks it.
 */
static bool
is_complete(GpudsMirror *mirror)
{
	return is_busy(mirror) && (mirror->applier != 0 || pg_atomic_read_u64(&mirror->guard) != 0);
}

/* Is there a card for a copy, beside those of the others? */
bool
gpuds_copies_have_card(const GpudsMirrorSource *source, int copy)
{
	const int wanted = gpuds_copies_wanted(source);
	int cards = 0;

	for (int card = 0; card < gpuds_cards; card++)
		cards += gpuds_device_card_serves(GPUDS_ON_CUDA, card) && !gpuds_queue_stalls(card);
	for (int other = 0; other < wanted; other++)
	{
		GpudsMirror *mirror = find_copy(source, other);

		if (other != copy && is_busy(mirror))
			cards -= gpuds_device_parts(&mirror->tree);
	}
	return cards > 0;
}

/* Is it time to load a copy, and are we those who do?  Others see that somebody does. */
static bool
is_due(GpudsMirror *mirror)
{
	const TimestampTz now = GetCurrentTimestamp();
	uint64 before = pg_atomic_read_u64(&mirror->loader_at);

	return now - (TimestampTz) before > LOADER_US &&
		   pg_atomic_compare_exchange_u64(&mirror->loader_at, &before, now);
}

/*
 * Has a loader bring up a copy that is missing, or was not brought up to the end, if a card that serves has
 * no other.  Does not wait for it.
 */
void
gpuds_copies_complete(const GpudsMirrorSource *source)
{
	const int wanted = gpuds_copies_wanted(source);

	for (int copy = 0; copy < wanted && wanted > 1; copy++)
	{
		GpudsMirror *mirror = find_copy(source, copy);
		GpudsMirrorRef ref;

		if (is_complete(mirror) || (mirror && gpuds_memory_resting(mirror)) ||
			!gpuds_copies_have_card(source, copy))
			continue;
		if (gpuds_mirror_lookup(source->index, source->file_id, GPUDS_MIRROR_ON_GPU(copy), true, &ref) &&
			is_due(ref.mirror))
			(void) gpuds_loader_start(source, GPUDS_MIRROR_ON_GPU(copy), GPUDS_NO_EVICT);
		return;
	}
}
