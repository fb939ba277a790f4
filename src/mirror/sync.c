/*-------------------------------------------------------------------------
 *
 * sync.c
 *	  The barrier: a scan waits until a mirror has what its snapshot may see.
 *
 * A scan needs no more than what the journal held when it began.  As soon as the
 * mirror has that, the scan goes on, without having been applier; if the mirror
 * cannot get that far, it hears of it in the same way and does without.  Only
 * where nobody is at it the scan becomes applier.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/ipc.h"

#include "mirror/mirror_internal.h"

/* What has been warned of in this session. */
static bool warned_journal = false;
static bool warned_memory = false;
static bool warned_large = false;
static bool warned_structure = false;
static bool warned_device = false;

/* What a scan needs. */
typedef struct Goal
{
	bool recovery;
	bool alone;          /* the mirror must have it, whatever is in a memtable */
	uint64 changes;      /* the journal's change counter + 1, outside of recovery */
	XLogRecPtr replayed; /* in recovery: so far, at least */
	bool has_end;
	GpudsJournalPos end; /* of the journal, known if the scan had to wait */
} Goal;

static void
warn_journal(Relation index)
{
	if (warned_journal)
		return;
	warned_journal = true;
	ereport(WARNING,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("no memory for the in-memory copy of index \"%s\", reading its index pages instead",
					RelationGetRelationName(index)),
			 errdetail("Scans that read index pages are slow. This is reported once a session."),
			 errhint("Increase %s.",
					 RelationUsesLocalBuffers(index) ? "gpuds.temp_memory" : "gpuds.host_memory")));
}

static void
warn_memory(Relation index)
{
	if (warned_memory)
		return;
	warned_memory = true;
	ereport(WARNING,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("no GPU memory for the in-memory copy of index \"%s\", using the CPU device instead",
					RelationGetRelationName(index)),
			 errdetail("This is reported once a session."),
			 errhint("Increase gpuds.device_memory, or set gpuds.device to \"cpu\".")));
}

static void
warn_large(Relation index)
{
	if (warned_large)
		return;
	warned_large = true;
	ereport(WARNING,
			(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			 errmsg("index \"%s\" has too many entries for the CUDA device, using the CPU device instead",
					RelationGetRelationName(index)),
			 errdetail("An in-memory copy there has at most " UINT64_FORMAT
					   " entries. This is reported once a session.",
					   gpuds_device_max_entries(GPUDS_ON_CUDA)),
			 errhint("Partition the table, or set gpuds.device to \"cpu\".")));
}

static void
warn_structure(Relation index)
{
	if (warned_structure)
		return;
	warned_structure = true;
	ereport(WARNING,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("the CUDA device lacks the structure of index \"%s\", using the CPU device instead",
					RelationGetRelationName(index)),
			 errdetail("The libraries gpuds and gpuds_cuda are of different builds. This is reported "
					   "once a session."),
			 errhint("Install both libraries from the same build and restart the server.")));
}

static void
warn_device(void)
{
	GpudsCudaInfo info;

	if (warned_device)
		return;
	warned_device = true;
	info.detail[0] = '\0';
	for (int card = 0; card < gpuds_cards && info.detail[0] == '\0'; card++)
		gpuds_queue_info(card, &info);
	ereport(WARNING, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					  errmsg("there is no CUDA device to use, using the CPU device instead"),
					  gpuds_cards == 0 ? errdetail("The library gpuds_cuda is not installed.")
					  : info.detail[0] ? errdetail("The device worker says: %s.", info.detail)
									   : errdetail("The device worker does not run."),
					  errhint("Set gpuds.device to \"auto\" or \"cpu\".")));
}

/*
 * Has the mirror all that the journal holds now?  For standbys, where nobody
 * counts changes: looks at the tail pages, without becoming applier.  Nobody looks twice
 * if nothing has been replayed since.  A snapshot sees a transaction by its commit
 * record, and the end of replay was behind the transaction's other records by then.
 */
static bool
nothing_new(const GpudsMirrorSource *source, GpudsMirror *mirror, XLogRecPtr replayed)
{
	GpudsJournalReader *reader;
	GpudsJournalPage page;
	GpudsJournalPos pos;
	bool current;

	if (pg_atomic_read_u64(&mirror->replayed) == replayed)
	{
		/* pairs with that below: what was seen of the mirror then is seen from here on */
		pg_read_barrier();
		return true;
	}
	if (!gpuds_mirror_get_position(mirror, &pos))
		return false;
	reader = gpuds_reader_open_after(source->index, &pos);
	current = gpuds_reader_next(reader, &page) == GPUDS_READ_END;
	gpuds_reader_close(reader);
	/* The slot may be another file's by now; but that was loaded after the goal was set. */
	if (current)
	{
		pg_write_barrier();
		pg_atomic_write_u64(&mirror->replayed, replayed);
	}
	return current;
}

/* Has the mirror come to that position? */
static bool
has_come_to(GpudsMirror *mirror, const GpudsJournalPos *end)
{
	GpudsJournalPos pos;

	if (!gpuds_mirror_get_position(mirror, &pos) || pos.epoch < end->epoch)
		return false;
	for (int stripe = 0; stripe < GPUDS_STRIPES; stripe++)
	{
		if (pos.count[stripe] < end->count[stripe])
			return false;
	}
	return true;
}

/* Has the mirror, together with its memtable (ref->memtable), all that was appended until now? */
static bool
is_attached(GpudsMirrorRef *ref)
{
	uint64 brought_up = pg_atomic_read_u64(&ref->mirror->brought_up);
	uint64 attached;

	/* in this order: it is detached before that is counted */
	pg_read_barrier();
	attached = pg_atomic_read_u64(&ref->mirror->attached);
	/* attached before guard: of this mirror, not of one that the slot has had since */
	pg_read_barrier();
	if (!gpuds_memtable_is_complete(attached) || pg_atomic_read_u64(&ref->mirror->guard) != ref->serial)
		return false;
	ref->memtable = attached;
	ref->brought_up = brought_up;
	return true;
}

/* Has the mirror all that was counted by then? */
static bool
is_synced(GpudsMirror *mirror, uint64 changes)
{
	bool synced = pg_atomic_read_u64(&mirror->synced) >= changes;

	/* pairs with the barrier before synced is set (catchup.c): what was published before is seen */
	pg_read_barrier();
	return synced;
}

/* Does the mirror have what the scan needs, or ref->memtable what it lacks? */
static bool
is_reached(const GpudsMirrorSource *source, GpudsMirrorRef *ref, const Goal *goal)
{
	GpudsMirror *mirror = ref->mirror;

	ref->memtable = 0;
	if (!gpuds_device_usable(&mirror->tree))
		return false;
	if (!goal->recovery)
		return is_synced(mirror, goal->changes) || (!goal->alone && is_attached(ref));
	if (pg_atomic_read_u64(&mirror->guard) != ref->serial)
		return false;
	return goal->has_end ? has_come_to(mirror, &goal->end) : nothing_new(source, mirror, goal->replayed);
}

static void
set_goal(const GpudsMirrorSource *source, bool alone, Goal *goal)
{
	goal->recovery = RecoveryInProgress();
	goal->alone = alone || gpuds_without_memtables;
	goal->replayed = goal->recovery ? GetXLogReplayRecPtr(NULL) : InvalidXLogRecPtr;
	goal->has_end = false;
	goal->changes = gpuds_journal_changes(source->index) + 1;
}

static void
stop_waiting(int code, Datum arg)
{
	GpudsMirror *mirror = (GpudsMirror *) DatumGetPointer(arg);

	pg_atomic_fetch_sub_u32(&mirror->waiters, 1);
}

/*
 * Waits until the scan can go on, or decide.  True: it has become the applier.
 * heeds_rest: the mirror's having been refused memory is a decision.
 */
static bool
wait_for_mirror(const GpudsMirrorSource *source, GpudsMirrorRef *ref, Goal *goal, bool heeds_rest)
{
	GpudsMirror *mirror = ref->mirror;
	bool got = gpuds_mirror_acquire(mirror, false);

	if (got)
		return true;
	/* Others append and replay goes on; what is there now is enough. */
	if (goal->recovery && !goal->has_end)
	{
		GpudsMetaData meta;

		gpuds_journal_read_meta(source->index, &meta);
		gpuds_journal_end(source->index, &meta, &goal->end);
		goal->has_end = true;
	}
	pg_atomic_fetch_add_u32(&mirror->waiters, 1);
	PG_ENSURE_ERROR_CLEANUP(stop_waiting, PointerGetDatum(mirror));
	{
		while (pg_atomic_read_u64(&mirror->serial) == ref->serial && !is_reached(source, ref, goal) &&
			   !(heeds_rest && gpuds_memory_resting(mirror)))
		{
			got = gpuds_mirror_acquire(mirror, false);
			if (got)
				break;
			/* The process that was woken in our place may have been cancelled: look again. */
			(void) ConditionVariableTimedSleep(&mirror->applier_left, 1000,
											   GpudsWaitEvent("GpudsMirrorLoad"));
		}
		ConditionVariableCancelSleep();
	}
	PG_END_ENSURE_ERROR_CLEANUP(stop_waiting, PointerGetDatum(mirror));
	stop_waiting(0, PointerGetDatum(mirror));
	return got;
}

/* Why a mirror rests. */
static GpudsBringUp
refusal(GpudsMirror *mirror)
{
	switch (mirror->claim.refusal)
	{
		case GPUDS_REFUSED_SIZE:
			return GPUDS_TOO_LARGE;
		case GPUDS_REFUSED_STRUCTURE:
			return GPUDS_NO_STRUCTURE;
		default:
			return GPUDS_NO_MEMORY;
	}
}

/* Why a scan does without a mirror that could not be brought up. */
static GpudsWithout
why_without(GpudsBringUp result)
{
	switch (result)
	{
		case GPUDS_TOO_LARGE:
			return GPUDS_WITHOUT_SIZE;
		case GPUDS_NO_STRUCTURE:
			return GPUDS_WITHOUT_STRUCTURE;
		case GPUDS_LOST:
			return GPUDS_WITHOUT_DEVICE;
		default:
			return GPUDS_WITHOUT_MEMORY;
	}
}

/*
 * The barrier for one mirror of the file, by its number.  If the result is not GPUDS_UP, ref is of
 * no use; ref->mirror is the one that could not be had, NULL if there was no slot
 * for it.
 */
static GpudsBringUp
sync_on(const GpudsMirrorSource *source, int number, int how, GpudsMirrorRef *ref)
{
	bool heeds_rest = !(how & GPUDS_ASKED);
	GpudsBringUp result = GPUDS_NO_MEMORY;
	GpudsMirror *mirror;
	bool done = false;
	Goal goal;

	set_goal(source, (how & GPUDS_ASKED) != 0, &goal);
	if (RelationUsesLocalBuffers(source->index))
		how |= GPUDS_ALONE;
	while (!done)
	{
		if (!gpuds_mirror_lookup(source->index, source->file_id, number, true, ref))
			return GPUDS_NO_MEMORY;
		mirror = ref->mirror;
		gpuds_mirror_touch(mirror);
		if (is_reached(source, ref, &goal))
			return GPUDS_UP;
		if (heeds_rest && gpuds_memory_resting(mirror))
		{
			result = refusal(mirror);
			break;
		}
		if (!wait_for_mirror(source, ref, &goal, heeds_rest))
			continue;

		PG_ENSURE_ERROR_CLEANUP(gpuds_mirror_release_on_error, PointerGetDatum(mirror));
		{
			gpuds_injection_point("mirror-acquired");
			/* The slot may have been given to another file meanwhile. */
			if (pg_atomic_read_u64(&mirror->serial) == ref->serial)
			{
				done = true;
				if (is_reached(source, ref, &goal))
					result = GPUDS_UP;
				else if (heeds_rest && gpuds_memory_resting(mirror))
					result = refusal(mirror);
				else
				{
					result = gpuds_mirror_bring_up(source, ref, how);
					if (result == GPUDS_LONG)
					{
						/* Once: what a loader could not do, we do. */
						how |= GPUDS_ALONE;
						if (gpuds_loader_hand_over(source, ref, how))
						{
							heeds_rest = true;
							done = false;
						}
						else
							result = gpuds_mirror_bring_up(source, ref, how);
					}
				}
			}
		}
		PG_END_ENSURE_ERROR_CLEANUP(gpuds_mirror_release_on_error, PointerGetDatum(mirror));
		gpuds_mirror_release(mirror);
	}
	if (result != GPUDS_UP)
		gpuds_mirror_count_fallback(ref, why_without(result));
	return result;
}

/* The barrier on one of the copies that GPUs have. */
static GpudsBringUp
sync_on_copy(const GpudsMirrorSource *source, GpudsDeviceKind kind, int how, GpudsMirrorRef *ref)
{
	const int number = gpuds_mirror_to_ask(source, kind);
	GpudsBringUp result = sync_on(source, number, how, ref);

	/* One that has had no room for changes rests, and is not asked then if there is another. */
	if (result == GPUDS_NO_MEMORY && gpuds_mirror_to_ask(source, kind) != number)
		result = sync_on(source, gpuds_mirror_to_ask(source, kind), how, ref);
	if (result == GPUDS_UP && gpuds_device_cards(kind) > 1)
	{
		gpuds_copies_asked(ref);
		if (!(how & GPUDS_ASKED))
			gpuds_copies_complete(source);
	}
	return result;
}

/*
 * The barrier on a remote device that the session prefers.  False: the session has to do
 * without.  A device that is lost is worth a second attempt, if the session insists on it.
 */
static bool
sync_on_remote(const GpudsMirrorSource *source, GpudsDeviceKind kind, int how, GpudsMirrorRef *ref)
{
	bool insist = gpuds_device_insists(kind);

	for (int attempt = 0; attempt < 2; attempt++)
	{
		if (!(insist ? gpuds_queue_wait_ready() : gpuds_device_serves(kind)))
			break;
		switch (sync_on_copy(source, kind, how, ref))
		{
			case GPUDS_UP:
				return true;
			case GPUDS_NO_MEMORY:
				warn_memory(source->index);
				return false;
			case GPUDS_TOO_LARGE:
				warn_large(source->index);
				return false;
			case GPUDS_NO_STRUCTURE:
				warn_structure(source->index);
				return false;
			default:
				break;
		}
	}
	if (insist)
	{
		ref->notes.without |= GpudsWithoutBit(kind, GPUDS_WITHOUT_DEVICE);
		warn_device();
	}
	return false;
}

/*
 * The barrier on the first device that has the mirror or has memory for it.  A remote device that
 * is not the first choice is tried only if its process runs, and nobody is warned if it refuses.  One that
 * cannot have the index's structure, in no build, is not tried.
 */
static bool
sync_somewhere(const GpudsMirrorSource *source, int how, GpudsMirrorRef *ref)
{
	GpudsDeviceKind order[GPUDS_SHARED_KINDS];
	int n = gpuds_device_order(ref->intervals, order);

	if (RelationUsesLocalBuffers(source->index))
		return sync_on(source, GPUDS_MIRROR_ON_CPU, how, ref) == GPUDS_UP;
	for (int i = 0; i < n; i++)
	{
		bool remote = gpuds_device_is_remote(order[i]);

		if (remote && i == 0)
		{
			if (sync_on_remote(source, order[i], how, ref))
				return true;
		}
		else if (remote
					 ? gpuds_device_serves(order[i]) && sync_on_copy(source, order[i], how, ref) == GPUDS_UP
					 : sync_on(source, GPUDS_MIRROR_ON_CPU, how, ref) == GPUDS_UP)
			return true;
	}
	return false;
}

/* The mirror that the session has used before, if it will do.  False: it will not. */
static bool
sync_again(const GpudsMirrorSource *source, GpudsMirrorRef *ref)
{
	const GpudsDeviceKind kind = gpuds_mirror_wanted(source->index, ref->intervals);
	Goal goal;

	if (ref->mirror == NULL || ref->mirror->tree.kind != kind ||
		pg_atomic_read_u64(&ref->mirror->serial) != ref->serial)
		return false;
	set_goal(source, false, &goal);
	if (goal.recovery || !is_reached(source, ref, &goal))
		return false;
	gpuds_mirror_touch(ref->mirror);
	return true;
}

/*
 * May entries be killed that the scan will be given?  What a bulk delete has removed that the
 * stamp counts is not to be given any more.  It is in the memtable; where the scan does without
 * the memtable, it is in the mirror if that has all changes up to now.
 */
static void
mark_kills(const GpudsMirrorSource *source, GpudsMirrorRef *ref)
{
	GpudsKillMark *mark = &ref->kill_mark;
	uint64 needed = ref->memtable;

	mark->memtable = 0;
	if (needed == 0 && !is_attached(ref))
		return;
	mark->stamp = gpuds_memtable_stamp(ref->memtable);
	if (gpuds_memtable_is_complete(ref->memtable) &&
		(needed != 0 || pg_atomic_read_u64(&ref->mirror->synced) > gpuds_journal_changes(source->index)))
		mark->memtable = ref->memtable;
	ref->memtable = needed;
}

/*
 * The barrier: when it returns, ref names a mirror that has all records that were in the
 * journal when it was called, together with ref->memtable if that is not 0; or NULL if no
 * mirror can be had.
 *
 * Called after the snapshot was taken, holding no locks but those on relations;
 * may wait for another applier, interruptibly.
 */
void
gpuds_mirror_sync(const GpudsMirrorSource *source, GpudsMirrorRef *ref)
{
	if (sync_again(source, ref) || sync_somewhere(source, 0, ref))
		mark_kills(source, ref);
	else
	{
		if (ref->mirror)
			warn_journal(source->index);
		ref->mirror = NULL;
	}
}

/*
 * The same for the other copies on GPUs, as many as there are cards for, if the one that ref names is there.
 * False: not all can be had.
 */
static bool
load_copies(const GpudsMirrorSource *source, const GpudsMirrorRef *ref)
{
	const int copies = gpuds_device_is_remote(ref->mirror->tree.kind) ? gpuds_copies_wanted(source) : 1;
	bool all = true;

	for (int copy = 0; copy < copies && copies > 1; copy++)
	{
		GpudsMirrorRef other = *ref;
		GpudsBringUp result = GPUDS_UP;

		if (gpuds_copies_have_card(source, copy))
			result = sync_on(source, GPUDS_MIRROR_ON_GPU(copy), GPUDS_ASKED, &other);
		/* A card that is lost meanwhile is none that serves. */
		all &= result == GPUDS_UP || result == GPUDS_LOST || !gpuds_copies_have_card(source, copy);
	}
	return all;
}

/*
 * The same for a caller that asks for the mirror by name, and all its copies: others are evicted for it
 * although they are in use, and a device that had no room is asked again.  False:
 * there is no mirror to be had, or not all copies.
 */
bool
gpuds_mirror_load(const GpudsMirrorSource *source, GpudsMirrorRef *ref)
{
	bool loaded;

	/* Last the one for scans of many keys, which is the one that ref names. */
	ref->intervals = 1;
	loaded = sync_somewhere(source, GPUDS_ASKED, ref);
	if (gpuds_mirror_wanted(source->index, 1) != gpuds_mirror_wanted(source->index, PG_INT64_MAX))
	{
		ref->intervals = PG_INT64_MAX;
		loaded |= sync_somewhere(source, GPUDS_ASKED, ref);
	}
	return loaded && load_copies(source, ref);
}
