/*-------------------------------------------------------------------------
 *
 * catchup.c
 *	  Brings a mirror up to the journal's end, or loads it.
 *
 * Records are read in journal order into an array of operations, sorted by
 * (entry, order), reduced to the last word on each entry and applied in pieces.
 * A device that sorts itself gets them as they are, in pieces in journal order.
 * A piece that was applied without the rest does no harm: an entry that came
 * early belongs to a row that no snapshot of the time sees, and an entry that
 * left early belonged to a row that was dead for all.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/ipc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "kernels/sort.h"
#include "mirror/mirror.h"

/* At least this many operations are collected before they are sorted. */
#define MIN_BATCH (1024 * 1024)

/* A GPU without room for a mirror is not asked again for so long. */
#define REST_SECONDS 5

/* A growing array of operations. */
typedef struct OpBatch
{
	GkOp *ops;
	int64 n;
	int64 size;
	int64 limit;
	MemoryContext context;
} OpBatch;

/* What has been warned of in this session. */
static bool warned_journal = false;
static bool warned_room = false;
static bool warned_device = false;

/* How an attempt to change a mirror ended. */
typedef enum ChangeResult
{
	CHANGED,
	STALE,   /* the journal no longer holds what is missing */
	NO_ROOM, /* of the device's memory */
	LOST     /* with the device */
} ChangeResult;

static ChangeResult
change_result(GpudsDeviceStatus status)
{
	return status == GPUDS_DEVICE_OK ? CHANGED : status == GPUDS_DEVICE_NO_MEMORY ? NO_ROOM : LOST;
}

static void
batch_init(OpBatch *batch)
{
	batch->ops = NULL;
	batch->n = batch->size = 0;
	batch->limit = Max(MIN_BATCH, (int64) maintenance_work_mem * 1024 / (2 * sizeof(GkOp)));
	batch->context = CurrentMemoryContext;
}

static void
batch_free(OpBatch *batch)
{
	if (batch->ops)
		pfree(batch->ops);
	batch->ops = NULL;
	batch->n = batch->size = 0;
}

/*
 * Adds the records of a page.  A record that VACUUM marked dead is ignored; its
 * tombstone comes later in the same lane.
 */
static void
batch_add_page(OpBatch *batch, const GpudsJournalPage *page, int nwords)
{
	const char *at = page->records;

	if (batch->n + page->nrecords > batch->size)
	{
		int64 size = Max(batch->size * 2, 1024);

		size = Max(size, batch->n + page->nrecords);
		if (batch->ops == NULL)
			batch->ops = MemoryContextAllocHuge(batch->context, size * sizeof(GkOp));
		else
			batch->ops = repalloc_huge(batch->ops, size * sizeof(GkOp));
		batch->size = size;
	}
	for (int i = 0; i < page->nrecords; i++, at += GpudsRecordSize(nwords))
	{
		const GpudsRecord *record = (const GpudsRecord *) at;
		GkOp *op = &batch->ops[batch->n];

		if (record->flags & GPUDS_RECORD_DEAD)
			continue;
		gpuds_record_entry(record, nwords, &op->e);
		op->order = (page->first + i) << 1 |
					(record->flags & GPUDS_RECORD_TOMBSTONE ? GK_OP_DELETE : GK_OP_INSERT);
		batch->n++;
	}
}

/* Sorts the batch and keeps the last word on each entry. */
static void
batch_sort(OpBatch *batch)
{
	GkOp *scratch;

	if (batch->n < 2)
		return;
	scratch = MemoryContextAllocHuge(batch->context, batch->n * sizeof(GkOp));
	gk_sort_ops(batch->ops, scratch, batch->n);
	pfree(scratch);
	batch->n = gk_last_ops(batch->ops, batch->n);
}

/*
 * Applies a batch, in the order that the device wants, evicting other mirrors for
 * room.
 */
static ChangeResult
apply_batch(GpudsMirror *mirror, OpBatch *batch)
{
	int64 size = gpuds_device_apply_size(&mirror->tree);
	int64 done = 0;

	if (!gpuds_device_sorts(&mirror->tree))
		batch_sort(batch);
	while (done < batch->n)
	{
		int64 n = Min(batch->n - done, size);
		ChangeResult result = change_result(gpuds_device_apply(&mirror->tree, batch->ops + done, n));

		if (result == CHANGED)
			done += n;
		else if (result == LOST || !gpuds_mirror_evict_one(mirror))
			return result;
		CHECK_FOR_INTERRUPTS();
	}
	/* What a load leaves to catch-up is part of the load. */
	if (pg_atomic_read_u64(&mirror->readable) != 0)
		pg_atomic_fetch_add_u64(&mirror->stats.applied, batch->n);
	return CHANGED;
}

/*
 * Reads on from the reader until its end or until the batch is full.  Returns
 * false if the journal was compacted away under the reader.
 */
static bool
read_batch(GpudsJournalReader *reader, int nwords, OpBatch *batch, bool *end)
{
	GpudsJournalPage page;

	*end = false;
	while (batch->n < batch->limit)
	{
		switch (gpuds_reader_next(reader, &page))
		{
			case GPUDS_READ_PAGE:
				batch_add_page(batch, &page, nwords);
				break;
			case GPUDS_READ_END:
				*end = true;
				return true;
			case GPUDS_READ_STALE:
				return false;
		}
	}
	return true;
}

/*
 * Applies the records behind the mirror's position.
 */
static ChangeResult
catch_up(const GpudsMirrorSource *source, GpudsMirror *mirror)
{
	GpudsJournalReader *reader = gpuds_reader_open_after(source->index, &mirror->pos);
	ChangeResult result = CHANGED;
	GpudsJournalPos pos;
	bool end = false;
	OpBatch batch;

	batch_init(&batch);
	while (!end)
	{
		batch.n = 0;
		if (!read_batch(reader, source->layout->nwords, &batch, &end))
		{
			result = STALE;
			break;
		}
		if (batch.n > 0)
			gpuds_stop_point("catch-up-read");
		result = apply_batch(mirror, &batch);
		if (result != CHANGED)
			break;
		gpuds_reader_position(reader, &pos);
		gpuds_mirror_set_position(mirror, &pos);
	}
	batch_free(&batch);
	gpuds_reader_close(reader);
	return result;
}

/* Streams merged entries to the device in pieces. */
typedef struct LoadSink
{
	GpudsDeviceLoad *load;
	ChangeResult result;
	int64 n; /* in load->room */
} LoadSink;

static void
sink_flush(LoadSink *sink)
{
	if (sink->result == CHANGED && sink->n > 0)
		sink->result = change_result(gpuds_device_load_add(sink->load, sink->n));
	sink->n = 0;
}

static inline void
sink_add(LoadSink *sink, const GkEntry *entry)
{
	sink->load->room[sink->n++] = *entry;
	if (sink->n == sink->load->room_size)
		sink_flush(sink);
}

/*
 * Hands on the inserted entries of ops[*at ..] that come before limit (NULL:
 * all).  Returns true if an operation for limit itself was met: it has the
 * last word on it.
 */
static bool
sink_ops_before(LoadSink *sink, const OpBatch *ops, int64 *at, const GkEntry *limit)
{
	for (; *at < ops->n; (*at)++)
	{
		const GkOp *op = &ops->ops[*at];

		if (limit && !gk_less(&op->e, limit))
		{
			if (!gk_equal(&op->e, limit))
				return false;
			if ((op->order & 1) == GK_OP_INSERT)
				sink_add(sink, &op->e);
			(*at)++;
			return true;
		}
		if ((op->order & 1) == GK_OP_INSERT)
			sink_add(sink, &op->e);
	}
	return false;
}

/*
 * Merges the base, streamed from the reader, with the sorted operations of the
 * lanes into a new structure.
 */
static ChangeResult
merge_load(GpudsJournalReader *base, int nwords, const OpBatch *ops, GpudsDeviceLoad *load)
{
	LoadSink sink = { load, CHANGED, 0 };
	int64 at = 0;
	bool more = true;

	while (more && sink.result == CHANGED)
	{
		GpudsJournalPage page;
		const char *record_at;

		switch (gpuds_reader_next(base, &page))
		{
			case GPUDS_READ_STALE:
				return STALE;
			case GPUDS_READ_END:
				more = false;
				break;
			case GPUDS_READ_PAGE:
				if (page.kind != GPUDS_PAGE_BASE)
				{
					more = false;
					break;
				}
				record_at = page.records;
				for (int i = 0; i < page.nrecords; i++, record_at += GpudsRecordSize(nwords))
				{
					const GpudsRecord *record = (const GpudsRecord *) record_at;
					GkEntry entry;

					if (record->flags & GPUDS_RECORD_DEAD)
						continue;
					gpuds_record_entry(record, nwords, &entry);
					if (!sink_ops_before(&sink, ops, &at, &entry))
						sink_add(&sink, &entry);
				}
				break;
		}
		CHECK_FOR_INTERRUPTS();
	}
	sink_ops_before(&sink, ops, &at, NULL);
	sink_flush(&sink);
	return sink.result;
}

static void
cancel_load(int code, Datum arg)
{
	gpuds_device_load_cancel((GpudsDeviceLoad *) DatumGetPointer(arg));
}

/*
 * Loads base and lanes into an empty mirror.  What the lanes hold more than fits
 * the batch is left to catch_up.  So are all the lanes if the device sorts: it
 * does so faster than we.
 */
static ChangeResult
load_once(const GpudsMirrorSource *source, GpudsMirror *mirror)
{
	int nwords = source->layout->nwords;
	GpudsJournalReader *base = gpuds_reader_open(source->index);
	GpudsJournalReader *lanes;
	const GpudsMetaData *meta = gpuds_reader_meta(base);
	GpudsJournalPos pos;
	GpudsDeviceLoad load;
	ChangeResult result = CHANGED;
	OpBatch batch;
	bool end;

	for (int i = 0; i < GPUDS_LANES; i++)
	{
		pos.count[i] = meta->lane[i].first;
		pos.block[i] = meta->lane[i].head;
	}

	/* Lanes first, so that the base can be streamed past them. */
	batch_init(&batch);
	if (!gpuds_device_sorts(&mirror->tree))
	{
		lanes = gpuds_reader_open_after(source->index, &pos);
		if (!read_batch(lanes, nwords, &batch, &end))
			result = STALE;
		else
		{
			gpuds_reader_position(lanes, &pos);
			batch_sort(&batch);
		}
		gpuds_reader_close(lanes);
	}
	if (result == CHANGED)
	{
		gpuds_stop_point("load-base-read");
		memset(&load, 0, sizeof(load));
		PG_ENSURE_ERROR_CLEANUP(cancel_load, PointerGetDatum(&load));
		{
			result = change_result(gpuds_device_load_begin(&mirror->tree, &load, nwords, source->fillfactor));
			if (result == CHANGED)
				result = merge_load(base, nwords, &batch, &load);
			if (result == CHANGED)
				result = change_result(gpuds_device_load_end(&load));
		}
		PG_END_ENSURE_ERROR_CLEANUP(cancel_load, PointerGetDatum(&load));
		if (result != CHANGED)
			gpuds_device_load_cancel(&load);
	}
	gpuds_reader_close(base);
	batch_free(&batch);
	if (result == CHANGED)
	{
		gpuds_mirror_set_position(mirror, &pos);
		pg_atomic_fetch_add_u64(&mirror->stats.loads, 1);
		gpuds_mirror_tick();
	}
	return result;
}

/*
 * Bytes that a structure with all of the journal's records would need, roughly;
 * *generation says of which base.
 */
static size_t
estimate_bytes(const GpudsMirrorSource *source, uint64 *generation)
{
	GpudsMetaData meta;
	GpudsJournalPos end;
	double records;

	gpuds_journal_read_meta(source->index, &meta);
	gpuds_journal_end(source->index, &meta, &end);
	records = meta.base_records;
	for (int i = 0; i < GPUDS_LANES; i++)
		records += end.count[i] > meta.lane[i].first ? end.count[i] - meta.lane[i].first : 0;
	*generation = meta.generation;
	return (size_t) (records * 8 * (source->layout->nwords + 1) * 1.25 * 100 / source->fillfactor);
}

/*
 * There was no room although nothing else is to be evicted: notes when another
 * attempt makes sense.
 */
static void
note_no_room(GpudsMirror *mirror, size_t wanted, uint64 generation)
{
	GpudsDeviceKind kind = mirror->tree.kind;
	size_t size = gpuds_device_memory_size(kind);

	/* What a GPU lacks may be with another program, or come back any moment. */
	if (kind == GPUDS_ON_CUDA && wanted < size / 2)
		return;
	if (gpuds_device_memory_used(kind) < size / 16)
	{
		mirror->hopeless_bytes = wanted;
		mirror->hopeless_generation = generation;
	}
}

/*
 * Makes room as far as eviction can, then loads.  Several attempts: the
 * journal may be compacted meanwhile, and the estimate is only that.
 */
static ChangeResult
load(const GpudsMirrorSource *source, GpudsMirror *mirror)
{
	size_t size = gpuds_device_memory_size(mirror->tree.kind);
	uint64 generation;
	size_t wanted = estimate_bytes(source, &generation);

	/*
	 * The estimate counts garbage as well, so it may be far too high; but what
	 * did not fit when the memory was empty needs not be tried again until
	 * compaction has taken the garbage away.
	 */
	if (wanted / 4 > size || (mirror->hopeless_bytes > 0 && mirror->hopeless_generation == generation &&
							  wanted >= mirror->hopeless_bytes))
		return NO_ROOM;
	while (size < gpuds_device_memory_used(mirror->tree.kind) + Min(wanted, size) &&
		   gpuds_mirror_evict_one(mirror))
		;
	for (;;)
	{
		ChangeResult result = load_once(source, mirror);

		if (result == CHANGED || result == LOST)
			return result;
		if (result == NO_ROOM && !gpuds_mirror_evict_one(mirror))
		{
			note_no_room(mirror, wanted, generation);
			return NO_ROOM;
		}
		CHECK_FOR_INTERRUPTS();
	}
}

/*
 * Brings the mirror to the journal's end; the caller is the applier.  The result
 * is not STALE.
 */
static ChangeResult
bring_up(const GpudsMirrorSource *source, GpudsMirror *mirror)
{
	for (;;)
	{
		ChangeResult result;

		if (!gpuds_mirror_is_loaded(mirror))
		{
			/* Its device may have been lost since it was. */
			if (mirror->loaded)
				(void) gpuds_mirror_discard(mirror);
			result = load(source, mirror);
			if (result != CHANGED)
				return result;
		}
		result = catch_up(source, mirror);
		if (result == CHANGED)
			return CHANGED;
		(void) gpuds_mirror_discard(mirror);
		if (result != STALE)
			return result;
	}
}

static void
release_on_error(int code, Datum arg)
{
	gpuds_mirror_release((GpudsMirror *) DatumGetPointer(arg));
}

static void
warn_journal(Relation index)
{
	if (warned_journal)
		return;
	warned_journal = true;
	ereport(WARNING, (errcode(ERRCODE_OUT_OF_MEMORY),
					  errmsg("no memory for the mirror of index \"%s\", reading its journal instead",
							 RelationGetRelationName(index)),
					  errdetail("Scans that read the journal are slow. This is reported once a session."),
					  errhint("Increase %s.",
							  RelationUsesLocalBuffers(index) ? "gpuds.temp_memory" : "gpuds.host_memory")));
}

static void
warn_room(Relation index)
{
	if (warned_room)
		return;
	warned_room = true;
	ereport(WARNING, (errcode(ERRCODE_OUT_OF_MEMORY),
					  errmsg("no GPU memory for the mirror of index \"%s\", using the CPU device instead",
							 RelationGetRelationName(index)),
					  errdetail("This is reported once a session."),
					  errhint("Increase gpuds.device_memory, or set gpuds.device to \"cpu\".")));
}

static void
warn_device(void)
{
	GpudsCudaInfo info;

	if (warned_device)
		return;
	warned_device = true;
	info.detail[0] = '\0';
	if (gpuds_queue)
		gpuds_queue_info(&info);
	ereport(WARNING, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					  errmsg("there is no CUDA device to use, using the CPU device instead"),
					  gpuds_queue == NULL ? errdetail("The library gpuds_cuda is not installed.")
					  : info.detail[0]    ? errdetail("The device worker says: %s.", info.detail)
										  : errdetail("The device worker does not run."),
					  errhint("Set gpuds.device to \"auto\" or \"cpu\".")));
}

/*
 * Has the mirror all that the journal holds now?  For standbys, where nobody
 * counts changes: looks at the tail pages, without becoming applier.
 */
static bool
nothing_new(const GpudsMirrorSource *source, GpudsMirror *mirror)
{
	GpudsJournalReader *reader;
	GpudsJournalPage page;
	GpudsJournalPos pos;
	bool current;

	if (!gpuds_mirror_get_position(mirror, &pos))
		return false;
	reader = gpuds_reader_open_after(source->index, &pos);
	current = gpuds_reader_next(reader, &page) == GPUDS_READ_END;
	gpuds_reader_close(reader);
	return current;
}

/* Does the mirror have all that the journal's change counter stands for? */
static bool
is_synced(const GpudsMirrorSource *source, GpudsMirrorRef *ref, bool recovery, uint64 changes)
{
	GpudsMirror *mirror = ref->mirror;

	if (!gpuds_device_usable(&mirror->tree))
		return false;
	if (recovery)
		return pg_atomic_read_u64(&mirror->readable) == ref->serial && nothing_new(source, mirror);
	return pg_atomic_read_u64(&mirror->synced) == changes;
}

/* Is the mirror's device to be left alone for now? */
static bool
is_resting(GpudsMirror *mirror)
{
	uint64 until = pg_atomic_read_u64(&mirror->rest_until);

	return until != 0 && !gpuds_mirror_is_loaded(mirror) && GetCurrentTimestamp() < (TimestampTz) until;
}

/*
 * The barrier for one kind of device.  If the result is not CHANGED, ref is of
 * no use; ref->mirror is the one that could not be had, NULL if there was no slot
 * for it.
 */
static ChangeResult
sync_on(const GpudsMirrorSource *source, GpudsDeviceKind kind, GpudsMirrorRef *ref)
{
	bool recovery = RecoveryInProgress();
	uint64 changes = gpuds_journal_changes(source->index) + 1;
	ChangeResult result = NO_ROOM;
	GpudsMirror *mirror;
	bool done = false;

	while (!done)
	{
		if (!gpuds_mirror_lookup(source->index, source->file_id, kind, true, ref))
			return NO_ROOM;
		mirror = ref->mirror;
		gpuds_mirror_touch(mirror);
		if (is_synced(source, ref, recovery, changes))
			return CHANGED;
		if (is_resting(mirror))
			break;

		gpuds_mirror_acquire(mirror, true);
		PG_ENSURE_ERROR_CLEANUP(release_on_error, PointerGetDatum(mirror));
		{
			/* The slot may have been given to another file meanwhile. */
			if (pg_atomic_read_u64(&mirror->serial) == ref->serial)
			{
				/* Counter first, pages after: never synced too far. */
				changes = gpuds_journal_changes(source->index) + 1;
				if (!recovery && is_synced(source, ref, false, changes))
					result = CHANGED;
				else if (!is_resting(mirror))
				{
					pg_atomic_write_u64(&mirror->synced, 0);
					result = bring_up(source, mirror);
					gpuds_mirror_count(ref, 0, 0, 0, 0);
					if (result == CHANGED)
					{
						pg_write_barrier();
						pg_atomic_write_u64(&mirror->readable, ref->serial);
						pg_atomic_write_u64(&mirror->synced, recovery ? 0 : changes);
					}
					else if (result == NO_ROOM && kind == GPUDS_ON_CUDA)
						pg_atomic_write_u64(&mirror->rest_until,
											GetCurrentTimestamp() + REST_SECONDS * USECS_PER_SEC);
				}
				done = true;
			}
		}
		PG_END_ENSURE_ERROR_CLEANUP(release_on_error, PointerGetDatum(mirror));
		gpuds_mirror_release(mirror);
	}
	if (result != CHANGED)
		pg_atomic_fetch_add_u64(&mirror->stats.fallbacks, 1);
	return result;
}

/*
 * The barrier on the CUDA device.  False: the session has to do without.  A
 * device that is lost is worth a second attempt, if the session insists on it.
 */
static bool
sync_on_cuda(const GpudsMirrorSource *source, GpudsMirrorRef *ref)
{
	bool insist = gpuds_device == GPUDS_DEVICE_CUDA;

	for (int attempt = 0; attempt < 2; attempt++)
	{
		uint64 epoch = insist ? gpuds_queue_wait_ready() : gpuds_queue_epoch();

		if (epoch == 0)
			break;
		switch (sync_on(source, GPUDS_ON_CUDA, ref))
		{
			case CHANGED:
				return true;
			case NO_ROOM:
				warn_room(source->index);
				return false;
			default:
				break;
		}
	}
	if (insist)
		warn_device();
	return false;
}

/*
 * The barrier: when it returns, ref names a mirror that has all records that
 * were in the journal when it was called, or NULL if no mirror can be had.
 *
 * Called after the snapshot was taken, holding no locks but those on relations;
 * may wait for another applier, interruptibly.
 */
void
gpuds_mirror_sync(const GpudsMirrorSource *source, GpudsMirrorRef *ref)
{
	GpudsDeviceKind kind = RelationUsesLocalBuffers(source->index) ? GPUDS_ON_CPU_PRIVATE
																   : gpuds_device_wanted();

	if (ref->mirror && ref->mirror->tree.kind == kind &&
		pg_atomic_read_u64(&ref->mirror->serial) == ref->serial && !RecoveryInProgress() &&
		is_synced(source, ref, false, gpuds_journal_changes(source->index) + 1))
	{
		gpuds_mirror_touch(ref->mirror);
		return;
	}

	if (kind != GPUDS_ON_CPU_PRIVATE && gpuds_device != GPUDS_DEVICE_CPU)
	{
		if (sync_on_cuda(source, ref))
			return;
		kind = GPUDS_ON_CPU;
	}
	if (sync_on(source, kind, ref) != CHANGED)
	{
		if (ref->mirror)
			warn_journal(source->index);
		ref->mirror = NULL;
	}
}
