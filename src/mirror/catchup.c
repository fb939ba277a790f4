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

#include "mirror/internal.h"

/* Operations that are applied at a time where memory is short. */
#define LEAST_APPLY 1024

/*
 * Applies a batch in the order that the device wants.  If there is no room, then
 * less at a time: what an apply replaces is free for the next one.  If even the
 * least does not fit, others are evicted.  *size: operations applied at a time,
 * for the next batch as well.
 */
static GpudsBringUp
apply_batch(GpudsMirror *mirror, GpudsOpBatch *batch, bool asked, int64 *size)
{
	int64 done = 0;

	if (!gpuds_device_sorts(&mirror->tree))
		gpuds_ops_sort(batch);
	while (done < batch->n)
	{
		int64 n = Min(batch->n - done, *size);
		GpudsBringUp result = gpuds_bring_up_result(gpuds_device_apply(&mirror->tree, batch->ops + done, n));

		if (result == GPUDS_UP)
			done += n;
		else if (result == GPUDS_NO_ROOM && n > LEAST_APPLY)
			*size = Max(n / 2, LEAST_APPLY);
		else if (result != GPUDS_NO_ROOM || !gpuds_room_evict_one(mirror, asked))
			return result;
		CHECK_FOR_INTERRUPTS();
		gpuds_make_way_check();
	}
	/* What a load leaves to catch-up is part of the load. */
	if (pg_atomic_read_u64(&mirror->guard) != 0)
		pg_atomic_fetch_add_u64(&mirror->stats.applied, batch->n);
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
	GpudsJournalReader *reader = gpuds_reader_open_after(source->index, &mirror->pos);
	GpudsBringUp result = GPUDS_UP;
	int64 size = gpuds_device_apply_ops(&mirror->tree);
	GpudsJournalPos pos;
	bool end = false;
	GpudsOpBatch batch;

	gpuds_ops_init(&batch, batch_limit(mirror, how));
	while (!end)
	{
		batch.n = 0;
		if (!gpuds_ops_read(&batch, reader, &end))
		{
			result = GPUDS_STALE;
			break;
		}
		if (!end && !(how & GPUDS_ALONE))
		{
			result = GPUDS_LONG;
			break;
		}
		if (batch.n > 0)
		{
			gpuds_injection_point("catch-up-read");
			mirror->ahead = true;
		}
		result = apply_batch(mirror, &batch, (how & GPUDS_ASKED) != 0, &size);
		if (result != GPUDS_UP)
			break;
		gpuds_reader_position(reader, &pos);
		gpuds_mirror_set_position(mirror, &pos);
	}
	gpuds_ops_free(&batch);
	gpuds_reader_close(reader);
	return result;
}

/*
 * The changes of a loaded mirror found no room.  True: a new load is worth while,
 * because it would be packed tighter than what has grown by changes.  Else the
 * mirror stays as it is, for the scans that need no more and for a later attempt.
 */
static bool
would_shrink(const GpudsMirrorSource *source, GpudsMirror *mirror)
{
	uint64 entries;
	double need = gpuds_mirror_need(source, mirror, &entries);

	return need < gpuds_device_bytes(&mirror->tree) * 0.8;
}

static GpudsBringUp
load_and_catch_up(const GpudsMirrorSource *source, GpudsMirror *mirror, int how)
{
	bool shrunk = false;

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
			case GPUDS_NO_ROOM:
				if (shrunk || !would_shrink(source, mirror))
				{
					gpuds_room_refuse(mirror, 0, true);
					return result;
				}
				shrunk = true;
				(void) gpuds_mirror_discard(mirror);
				break;
			case GPUDS_TOO_LARGE:
				gpuds_room_refuse_size(mirror);
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
 * Brings the mirror, whose applier the caller is, to the journal's end, and tells
 * scans.  Without GPUDS_ALONE, GPUDS_LONG says that there is more to do than a
 * backend should do while its query waits.  The result is not GPUDS_STALE.
 */
GpudsBringUp
gpuds_mirror_bring_up(const GpudsMirrorSource *source, GpudsMirrorRef *ref, int how)
{
	GpudsMirror *mirror = ref->mirror;
	bool recovery = RecoveryInProgress();
	/* Counter first, pages after: never synced too far. */
	uint64 changes = gpuds_journal_changes(source->index) + 1;
	GpudsBringUp result = load_and_catch_up(source, mirror, how);

	gpuds_mirror_count(ref, 0, 0, 0, 0);
	if (result == GPUDS_UP)
	{
		pg_write_barrier();
		pg_atomic_write_u64(&mirror->guard, ref->serial);
		pg_write_barrier();
		pg_atomic_write_u64(&mirror->synced, recovery ? 0 : changes);
		pg_atomic_write_u64(&mirror->room.rest_until, 0);
		SpinLockAcquire(&mirror->mutex);
		mirror->news = true;
		SpinLockRelease(&mirror->mutex);
	}
	return result;
}
