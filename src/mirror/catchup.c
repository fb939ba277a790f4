/*-------------------------------------------------------------------------
 *
 * catchup.c
 *	  Brings a mirror up to the journal's end.
 *
 * The records behind the mirror's position are applied in journal order, a batch
 * after the other.  The position follows after each batch, so an interruption
 * costs at most one of them: a small one in a session, which its user may cancel,
 * and a large one in a loader, because a batch is sorted and a large one touches
 * each leaf less often.  A batch that was applied without the rest does no harm:
 * an entry that came early belongs to a row that no snapshot of the time sees, and
 * an entry that left early belonged to a row that was dead for all.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/xlog.h"
#include "miscadmin.h"

#include "journal/journal_sort.h"
#include "mirror/mirror_internal.h"

/* Attempts to attach a mirror to a memtable that is flushed meanwhile. */
#define ATTACH_ATTEMPTS 5

/* Operations that are applied at a time where memory is short. */
#define LEAST_APPLY_OPS 1024

/* A mirror is packed if so much of its memory can be gained, at least. */
#define PACK_SHARE 32

/*
 * Has the device pack the mirror, until a share of its memory is free again for changes.  False: there is
 * less to be gained.  Packing all of a tree takes as long as a few changes for each of the entries that
 * find room then.
 */
static bool
pack(GpudsMirror *mirror)
{
	size_t wanted = gpuds_device_bytes(&mirror->tree) / PACK_SHARE;
	size_t gained = 0;
	int ends = 0;

	/* from where the last packing has ended, to the end, and all of it once */
	while (gained < wanted && ends < 2)
	{
		size_t bytes;

		if (!gpuds_device_pack(&mirror->tree, &bytes))
			ends++;
		gained += bytes;
		CHECK_FOR_INTERRUPTS();
		gpuds_make_way_check();
	}
	return gained > 0 && gained >= wanted;
}

/* Does the mirror take more than a load would, so that there may be something to pack? */
static bool
is_loose(GpudsMirror *mirror)
{
	const double loaded = mirror->claim.entry_bytes * gpuds_device_entries(&mirror->tree) +
						  gpuds_device_slack_bytes(mirror->tree.kind);

	return gpuds_device_bytes(&mirror->tree) > loaded * (1 + 1.0 / PACK_SHARE);
}

/*
 * Applies operations in the order that the device wants; the caller is the mirror's
 * applier.  If there is no claim, then less at a time: what an apply replaces is free
 * for the next one.  If even the least does not fit, the mirror is packed; if that gains little, others are
 * evicted.  *size: operations applied at a time, for the next call as well.
 */
GpudsBringUp
gpuds_mirror_apply(GpudsMirror *mirror, const GpudsOp *ops, int64 nops, int how, int64 *size)
{
	int64 done = 0;
	bool packs = is_loose(mirror);

	while (done < nops)
	{
		int64 n = Min(nops - done, *size);
		GpudsBringUp result = gpuds_bring_up_result(gpuds_device_apply(&mirror->tree, ops + done, n));

		if (result == GPUDS_UP)
			done += n;
		else if (result == GPUDS_NO_MEMORY && n > LEAST_APPLY_OPS)
			*size = Max(n / 2, LEAST_APPLY_OPS);
		else if (result == GPUDS_NO_MEMORY && packs && (packs = pack(mirror)))
			*size = gpuds_device_apply_ops(&mirror->tree);
		else if (result != GPUDS_NO_MEMORY ||
				 !((how & GPUDS_NO_EVICT) ? gpuds_device_side_drop(&mirror->tree)
										  : gpuds_memory_evict_one(mirror, (how & GPUDS_ASKED) != 0)))
			return result;
		CHECK_FOR_INTERRUPTS();
		gpuds_make_way_check();
	}
	/* What a load leaves to catch-up is part of the load. */
	if (pg_atomic_read_u64(&mirror->guard) != 0)
		gpuds_stats_add(mirror, &(GpudsIndexStats){ .applied = nops });
	return GPUDS_UP;
}

/*
 * Operations that a batch may have.  Only sorting here makes large ones worth while.
 */
static int64
batch_limit(GpudsMirror *mirror, int how)
{
	return (how & GPUDS_LOADER) && !gpuds_device_sorts(&mirror->tree) ? gpuds_ops_large()
																	  : GPUDS_PIECE_RECORDS;
}

/*
 * Applies the records behind the mirror's position, but leaves all of them to a
 * loader if they are more than a piece.
 */
static GpudsBringUp
catch_up(const GpudsMirrorSource *source, GpudsMirror *mirror, int how)
{
	const GpudsJournalSelect select = { .most = batch_limit(mirror, how),
										.between_pages = gpuds_make_way_check };
	GpudsJournalReader *reader = gpuds_reader_open_after(source->index, &mirror->pos);
	GpudsSorter *batch = gpuds_sorter_begin_ops(source->layout->nwords, gpuds_ops_memory(select.most),
												GPUDS_SORTER_MOMENT);
	GpudsBringUp result = GPUDS_UP;
	int64 size = gpuds_device_apply_ops(&mirror->tree);
	GpudsJournalPos pos;
	bool end = false;

	while (!end)
	{
		GpudsReadResult read = gpuds_journal_collect(reader, &select, batch);
		GpudsOp *ops;
		int64 n;

		if (read == GPUDS_READ_STALE)
		{
			result = GPUDS_STALE;
			break;
		}
		end = read == GPUDS_READ_END;
		if (!end && !(how & GPUDS_ALONE))
		{
			result = GPUDS_LONG;
			break;
		}
		if (gpuds_sorter_held(batch) > 0)
		{
			gpuds_injection_point("catch-up-read");
			mirror->ahead = true;
		}
		ops = gpuds_sorter_ops(batch, !gpuds_device_sorts(&mirror->tree), &n);
		result = gpuds_mirror_apply(mirror, ops, n, how, &size);
		if (result != GPUDS_UP)
			break;
		gpuds_reader_position(reader, &pos);
		gpuds_mirror_set_position(mirror, &pos);
		gpuds_sorter_clear(batch);
	}
	gpuds_sorter_end(batch);
	gpuds_reader_close(reader);
	return result;
}

/*
 * The changes of a loaded mirror found no room.  True: it is to be loaded anew, because there is room for
 * that: a load packs tighter than what has grown by changes.  If its load was not enough, another one divides
 * it into more parts.  Else the mirror has noted what it waits for, and stays as it is, for the scans that
 * need no more and for a later attempt.  After a load that was not enough, each attempt waits longer than the
 * one before.  Otherwise a load waits until the last one has earned its cost, unless somebody asks for it by
 * name.
 */
static bool
load_anew(const GpudsMirrorSource *source, GpudsMirror *mirror, int how)
{
	const bool untried = mirror->claim.untried;

	if ((untried && !gpuds_memory_divide(mirror, (double) gpuds_device_bytes(&mirror->tree))) ||
		!gpuds_mirror_fits_anew(source, mirror))
		gpuds_memory_refuse(mirror, 0, true);
	else if (!untried && !(how & GPUDS_ASKED) && !gpuds_memory_has_earned(mirror))
		gpuds_memory_postpone(mirror);
	else
		return true;
	return false;
}

static GpudsBringUp
load_and_catch_up(const GpudsMirrorSource *source, GpudsMirror *mirror, int how)
{
	for (;;)
	{
		GpudsBringUp result;

		if (!gpuds_mirror_is_loaded(mirror))
		{
			/* Its device may have been lost since it was. */
			if (mirror->loaded)
				(void) gpuds_mirror_discard(mirror);
			result = gpuds_mirror_load_all(source, mirror, how);
			if (result != GPUDS_UP)
				return result;
		}
		result = catch_up(source, mirror, how);
		switch (result)
		{
			case GPUDS_STALE:
				(void) gpuds_mirror_discard(mirror);
				break;
			case GPUDS_NO_MEMORY:
				if (!load_anew(source, mirror, how))
					return result;
				(void) gpuds_mirror_discard(mirror);
				break;
			case GPUDS_TOO_LARGE:
				gpuds_memory_refuse_size(mirror);
				return result;
			case GPUDS_LOST:
				(void) gpuds_mirror_discard(mirror);
				return result;
			default:
				return result;
		}
	}
}

/*
 * Brings the mirror to the journal's end, and tells scans.
 */
static GpudsBringUp
bring_up_once(const GpudsMirrorSource *source, GpudsMirrorRef *ref, int how)
{
	GpudsMirror *mirror = ref->mirror;
	bool recovery = RecoveryInProgress();
	/* Counter first, pages after: never synced too far. */
	uint64 changes = gpuds_journal_changes(source->index) + 1;
	GpudsBringUp result = load_and_catch_up(source, mirror, how);

	gpuds_mirror_count(ref, 0, 0, 0, 0);
	if (result == GPUDS_UP)
	{
		/* What was published comes before the guard (cpu_scan), and both before synced (is_synced). */
		pg_write_barrier();
		pg_atomic_write_u64(&mirror->guard, ref->serial);
		pg_write_barrier();
		pg_atomic_write_u64(&mirror->synced, recovery ? 0 : changes);
		gpuds_memory_satisfied(mirror);
		SpinLockAcquire(&mirror->mutex);
		mirror->news = true;
		SpinLockRelease(&mirror->mutex);
	}
	return result;
}

/* The memtable of the mirror's file, to attach the mirror to; 0: it has none. */
static uint64
open_memtable(GpudsMirror *mirror)
{
	GpudsFile file = { mirror->file.locator, mirror->file.file_id, mirror->file.incarnation };

	if (RecoveryInProgress() || gpuds_device_is_private(mirror->tree.kind))
		return 0;
	return gpuds_memtable_open(&file);
}

/*
 * Brings the mirror, whose applier the caller is, to the journal's end, tells scans,
 * and attaches it to a memtable if there is one to be had.  Without GPUDS_ALONE, GPUDS_LONG
 * says that there is more to do than a backend should do while its query waits.  The
 * result is not GPUDS_STALE.
 */
GpudsBringUp
gpuds_mirror_bring_up(const GpudsMirrorSource *source, GpudsMirrorRef *ref, int how)
{
	GpudsMirror *mirror = ref->mirror;

	for (int attempt = 0;; attempt++)
	{
		uint64 memtable = open_memtable(mirror);
		uint64 oldest = gpuds_memtable_oldest(memtable);
		GpudsBringUp result;

		/* What the journal has next may overrule the memtable: no scan uses both. */
		mirror->attaching = memtable;
		gpuds_memtable_detach(&mirror->attached);
		pg_atomic_fetch_add_u64(&mirror->brought_up, 1);
		gpuds_injection_point("memtable-attaching");
		result = bring_up_once(source, ref, how);
		if (result != GPUDS_UP || memtable == 0)
			return result;
		mirror->flushed = oldest;
		mirror->unread = 0;
		if (gpuds_memtable_attach(memtable, oldest, &mirror->attached) || attempt == ATTACH_ATTEMPTS)
			return result;
		CHECK_FOR_INTERRUPTS();
	}
}

/*
 * Brings a mirror to the journal's end, so that it has exactly what the journal has up to its
 * position, until the caller, its applier, lets it go.  False: it is not the one that is
 * meant, or cannot be brought up.
 */
bool
gpuds_mirror_settle(const GpudsMirrorSource *source, GpudsMirrorRef *ref)
{
	return pg_atomic_read_u64(&ref->mirror->serial) == ref->serial && gpuds_mirror_is_loaded(ref->mirror) &&
		   gpuds_mirror_bring_up(source, ref, GPUDS_ALONE) == GPUDS_UP;
}
