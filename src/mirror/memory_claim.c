/*-------------------------------------------------------------------------
 *
 * memory_claim.c
 *	  What a mirror knows of its claim to memory: when it was used, how long it is
 *	  protected, whether it was refused.
 *
 * evict.c decides which mirror gets memory, and from which others it is taken.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/xact.h"
#include "utils/timestamp.h"

#include "mirror/mirror_internal.h"

/* A loaded mirror that is used is kept for this many times the time of its load ... */
#define PROTECTION 10
/* ... and for so long at least. */
#define LEAST_PROTECTION_US (100 * INT64CONST(1000))

/* A mirror counts as used for so long after a scan, and as long as its load took. */
#define LEAST_IDLE_US (100 * INT64CONST(1000))

/* Uses within that time are noted once. */
#define USED_GRAIN_US (10 * INT64CONST(1000))

/* Scans of the same statement look at the clock so often. */
#define USES_A_LOOK 16

/* Makes a mirror one that nothing is known about. */
void
gpuds_memory_init(GpudsMemoryClaims *claim)
{
	pg_atomic_init_u64(&claim->reserved_bytes, 0);
	pg_atomic_init_u64(&claim->used_at, 0);
	pg_atomic_init_u64(&claim->protected_until, 0);
	pg_atomic_init_u64(&claim->load_us, 0);
	claim->earned_at = 0;
	pg_atomic_init_u64(&claim->rest_until, 0);
	pg_atomic_init_u64(&claim->rest_bytes, 0);
	claim->refusal = GPUDS_REFUSED_MEMORY;
	claim->untried = false;
	claim->refusals = 0;
	claim->entry_bytes = 0;
	claim->least_parts = 0;
}

/*
 * Bytes that are not in use, reserved or not, on the card that has the most of them, or in equal parts on as
 * many cards as it takes for so many.
 */
size_t
gpuds_memory_free_bytes(GpudsDeviceKind kind, size_t wanted)
{
	const int ncards = gpuds_device_cards(kind);
	size_t bytes[GPUDS_MOST_CARDS];

	for (int card = 0; card < ncards; card++)
	{
		const size_t size = gpuds_device_memory_size(kind, card);
		const size_t used = gpuds_device_memory_used(kind, card);
		const bool serves = ncards == 1 || gpuds_device_card_serves(kind, card);

		bytes[card] = serves && size > used ? size - used : 0;
	}
	return gpuds_device_in_parts(bytes, ncards, Max(gpuds_device_parts_for(kind, wanted), 1));
}

static int
serving_cards(GpudsDeviceKind kind)
{
	int n = 0;

	for (int card = 0; card < gpuds_device_cards(kind); card++)
		n += gpuds_device_card_serves(kind, card);
	return n;
}

/*
 * Makes the next load of the mirror, whose applier the caller is, divide it into more parts, because it found
 * no room in those that it had last, though it was expected to take no more than so many bytes.  False: there
 * are no more cards, or a part would take less than half of a card, so that others are in its way.
 */
bool
gpuds_memory_divide(GpudsMirror *mirror, double bytes)
{
	const GpudsDeviceKind kind = mirror->tree.kind;
	const int parts = Max(Max(gpuds_device_parts(&mirror->tree), mirror->claim.least_parts), 1);
	const int cards = gpuds_device_is_remote(kind) ? serving_cards(kind) : 1;
	size_t least = SIZE_MAX;

	for (int card = 0; card < gpuds_device_cards(kind); card++)
	{
		if (gpuds_device_card_serves(kind, card))
			least = Min(least, gpuds_device_memory_size(kind, card));
	}
	if (parts >= cards || 2 * bytes < (double) least * parts)
		return false;
	mirror->claim.least_parts = Min(2 * parts, cards);
	mirror->claim.least_parts_of = 0;
	return true;
}

/*
 * Into how many parts a load of so many entries of the mirror, whose applier the caller is, is to divide it,
 * at least.  What there was no room for is forgotten when a quarter of the entries is gone.
 */
int
gpuds_memory_least_parts(GpudsMirror *mirror, uint64 entries)
{
	GpudsMemoryClaims *claim = &mirror->claim;

	if (claim->least_parts == 0)
		return 1;
	if (claim->least_parts_of == 0)
		claim->least_parts_of = entries;
	if (entries < claim->least_parts_of - claim->least_parts_of / 4)
		claim->least_parts = 0;
	return Max(Min(claim->least_parts, serving_cards(mirror->tree.kind)), 1);
}

/* Has the mirror not yet earned what its load has cost? */
bool
gpuds_memory_is_protected(GpudsMirror *mirror, TimestampTz now)
{
	TimestampTz idle = Max(LEAST_IDLE_US, (int64) pg_atomic_read_u64(&mirror->claim.load_us));

	return now < (TimestampTz) pg_atomic_read_u64(&mirror->claim.protected_until) &&
		   now - (TimestampTz) pg_atomic_read_u64(&mirror->claim.used_at) < idle;
}

/*
 * The same for a mirror of this session's own, which nobody else uses: what the
 * statement in progress has not used, it need not find there.
 */
bool
gpuds_memory_needed_now(GpudsMirror *mirror)
{
	return (TimestampTz) pg_atomic_read_u64(&mirror->claim.used_at) + USED_GRAIN_US >=
			   GetCurrentStatementStartTimestamp() &&
		   gpuds_memory_is_protected(mirror, GetCurrentTimestamp());
}

/*
 * Notes that the mirror, whose applier the caller is, was loaded, and how long that took.
 */
void
gpuds_memory_loaded(GpudsMirror *mirror, uint64 usecs)
{
	TimestampTz now = GetCurrentTimestamp();

	mirror->claim.untried = true;
	mirror->claim.earned_at = now + Max(PROTECTION * usecs, LEAST_PROTECTION_US);
	pg_atomic_write_u64(&mirror->claim.load_us, usecs);
	pg_atomic_write_u64(&mirror->claim.used_at, now);
	pg_atomic_write_u64(&mirror->claim.protected_until, mirror->claim.earned_at);
}

/*
 * Has the last load of the mirror, whose applier the caller is, earned its cost?  If so, another one
 * keeps loads to a tenth of the time.
 */
bool
gpuds_memory_has_earned(const GpudsMirror *mirror)
{
	return GetCurrentTimestamp() >= mirror->claim.earned_at;
}

/*
 * Notes that the mirror, whose applier the caller is, has found room for all that it wanted.
 */
void
gpuds_memory_satisfied(GpudsMirror *mirror)
{
	mirror->claim.untried = false;
	mirror->claim.refusals = 0;
	pg_atomic_write_u64(&mirror->claim.rest_until, 0);
}

/*
 * Was there no memory for the mirror, or for its changes, when it was last wanted?  For views; anybody may
 * ask.
 */
bool
gpuds_memory_is_lacking(GpudsMirror *mirror)
{
	if (pg_atomic_read_u64(&mirror->claim.rest_until) == 0)
		return false;
	/* pairs with that of rest (evict.c) */
	pg_read_barrier();
	return mirror->claim.refusal == GPUDS_REFUSED_MEMORY;
}

/*
 * Is it of no use yet to ask for room for the mirror again?
 */
bool
gpuds_memory_resting(GpudsMirror *mirror)
{
	TimestampTz until = pg_atomic_read_u64(&mirror->claim.rest_until);
	size_t bytes;

	if (until == 0 || GetCurrentTimestamp() >= until)
		return false;
	/* pairs with that of rest (evict.c), for the caller too, who may ask for the reason */
	pg_read_barrier();
	bytes = pg_atomic_read_u64(&mirror->claim.rest_bytes);
	return bytes == 0 || gpuds_memory_free_bytes(mirror->tree.kind, bytes) < bytes;
}

/*
 * Notes that a scan uses the mirror, about now.  Cheap: looks at the clock once a
 * statement and once in several calls.
 */
void
gpuds_memory_used(GpudsMirror *mirror)
{
	static uint64 last = 0;
	static TimestampTz last_statement = 0;
	static int uses = 0;
	TimestampTz now;

	if (mirror->tree.owner == last && last_statement == GetCurrentStatementStartTimestamp() &&
		++uses < USES_A_LOOK)
		return;
	last = mirror->tree.owner;
	last_statement = GetCurrentStatementStartTimestamp();
	uses = 0;
	now = GetCurrentTimestamp();
	if (now - (TimestampTz) pg_atomic_read_u64(&mirror->claim.used_at) >= USED_GRAIN_US)
		pg_atomic_write_u64(&mirror->claim.used_at, now);
}
