/*-------------------------------------------------------------------------
 *
 * catchup.c
 *	  Brings a mirror up to the journal's end, or loads it.
 *
 * Records are read in journal order into an array of operations, sorted by
 * (entry, order), reduced to the last word on each entry and applied in pieces.
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

#include "kernels/sort.h"
#include "mirror/mirror.h"

/* Operations applied at a time: bounds the nodes that exist twice. */
#define APPLY_PIECE (128 * 1024)

/* At least this many operations are collected before they are sorted. */
#define MIN_BATCH (1024 * 1024)

/* Entries of a base handed to the device at a time. */
#define LOAD_PIECE 4096

/* A growing array of operations. */
typedef struct OpBatch
{
	GkOp *ops;
	int64 n;
	int64 size;
	int64 limit;
	MemoryContext context;
} OpBatch;

static bool warned = false;

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
 * Applies a sorted batch, evicting other mirrors for room.  False: no room.
 */
static bool
apply_batch(GpudsMirror *mirror, const OpBatch *batch)
{
	int64 done = 0;

	while (done < batch->n)
	{
		int64 n = Min(batch->n - done, APPLY_PIECE);

		if (gpuds_device_apply(&mirror->tree, mirror->owner, batch->ops + done, n) == GK_NO_MEMORY)
		{
			if (!gpuds_mirror_evict_one(mirror))
				return false;
			continue;
		}
		done += n;
		CHECK_FOR_INTERRUPTS();
	}
	pg_atomic_fetch_add_u64(&mirror->stats.applied, batch->n);
	return true;
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

typedef enum CatchUpResult
{
	CAUGHT_UP,
	STALE, /* the journal no longer holds what is missing */
	NO_ROOM
} CatchUpResult;

/*
 * Applies the records behind the mirror's position.
 */
static CatchUpResult
catch_up(const GpudsMirrorSource *source, GpudsMirror *mirror)
{
	GpudsJournalReader *reader = gpuds_reader_open_after(source->index, &mirror->pos);
	CatchUpResult result = CAUGHT_UP;
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
		batch_sort(&batch);
		if (!apply_batch(mirror, &batch))
		{
			result = NO_ROOM;
			break;
		}
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
	GkStatus status;
	int n;
	GkEntry entries[LOAD_PIECE];
} LoadSink;

static void
sink_flush(LoadSink *sink)
{
	if (sink->status == GK_OK && sink->n > 0)
		sink->status = gpuds_device_load_add(sink->load, sink->entries, sink->n);
	sink->n = 0;
}

static inline void
sink_add(LoadSink *sink, const GkEntry *entry)
{
	sink->entries[sink->n++] = *entry;
	if (sink->n == LOAD_PIECE)
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
static CatchUpResult
merge_load(GpudsJournalReader *base, int nwords, const OpBatch *ops, GpudsDeviceLoad *load)
{
	LoadSink *sink = palloc(sizeof(LoadSink));
	CatchUpResult result = CAUGHT_UP;
	int64 at = 0;
	bool more = true;
	GkStatus status;

	sink->load = load;
	sink->status = GK_OK;
	sink->n = 0;
	while (more && sink->status == GK_OK)
	{
		GpudsJournalPage page;
		const char *record_at;

		switch (gpuds_reader_next(base, &page))
		{
			case GPUDS_READ_STALE:
				pfree(sink);
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
					if (!sink_ops_before(sink, ops, &at, &entry))
						sink_add(sink, &entry);
				}
				break;
		}
		CHECK_FOR_INTERRUPTS();
	}
	sink_ops_before(sink, ops, &at, NULL);
	sink_flush(sink);
	status = sink->status;
	if (status != GK_OK)
		result = NO_ROOM;
	pfree(sink);
	return result;
}

static void
cancel_load(int code, Datum arg)
{
	gpuds_device_load_cancel((GpudsDeviceLoad *) DatumGetPointer(arg));
}

/*
 * Loads base and lanes into an empty mirror.  If the lanes hold more than fits
 * the batch, the rest is left to catch_up.
 */
static CatchUpResult
load_once(const GpudsMirrorSource *source, GpudsMirror *mirror)
{
	int nwords = source->layout->nwords;
	GpudsJournalReader *base = gpuds_reader_open(source->index);
	GpudsJournalReader *lanes;
	const GpudsMetaData *meta = gpuds_reader_meta(base);
	GpudsJournalPos pos;
	GpudsDeviceLoad load;
	CatchUpResult result;
	OpBatch batch;
	bool end;

	for (int i = 0; i < GPUDS_LANES; i++)
	{
		pos.count[i] = meta->lane[i].first;
		pos.block[i] = meta->lane[i].head;
	}

	/* Lanes first, so that the base can be streamed past them. */
	batch_init(&batch);
	lanes = gpuds_reader_open_after(source->index, &pos);
	if (!read_batch(lanes, nwords, &batch, &end))
		result = STALE;
	else
	{
		gpuds_reader_position(lanes, &pos);
		batch_sort(&batch);
		gpuds_stop_point("load-base-read");
		if (gpuds_device_load_begin(&mirror->tree, &load, nwords, source->fillfactor) != GK_OK)
			result = NO_ROOM;
		else
		{
			PG_ENSURE_ERROR_CLEANUP(cancel_load, PointerGetDatum(&load));
			{
				result = merge_load(base, nwords, &batch, &load);
				if (result == CAUGHT_UP && gpuds_device_load_end(&load) != GK_OK)
					result = NO_ROOM;
			}
			PG_END_ENSURE_ERROR_CLEANUP(cancel_load, PointerGetDatum(&load));
			if (result != CAUGHT_UP)
				gpuds_device_load_cancel(&load);
		}
	}
	gpuds_reader_close(lanes);
	gpuds_reader_close(base);
	batch_free(&batch);
	if (result == CAUGHT_UP)
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
 * Makes room as far as eviction can, then loads.  Several attempts: the
 * journal may be compacted meanwhile, and the estimate is only that.
 */
static bool
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
		return false;
	while (size - gpuds_device_memory_used(mirror->tree.kind) < Min(wanted, size) &&
		   gpuds_mirror_evict_one(mirror))
		;
	for (;;)
	{
		switch (load_once(source, mirror))
		{
			case CAUGHT_UP:
				return true;
			case STALE:
				break;
			case NO_ROOM:
				if (!gpuds_mirror_evict_one(mirror))
				{
					if (gpuds_device_memory_used(mirror->tree.kind) < size / 16)
					{
						mirror->hopeless_bytes = wanted;
						mirror->hopeless_generation = generation;
					}
					return false;
				}
				break;
		}
		CHECK_FOR_INTERRUPTS();
	}
}

/*
 * Brings the mirror to the journal's end; the caller is the applier.  False:
 * there is no room for it.
 */
static bool
bring_up(const GpudsMirrorSource *source, GpudsMirror *mirror)
{
	for (;;)
	{
		if (!mirror->loaded && !load(source, mirror))
			return false;
		switch (catch_up(source, mirror))
		{
			case CAUGHT_UP:
				return true;
			case STALE:
				gpuds_mirror_discard(mirror);
				break;
			case NO_ROOM:
				gpuds_mirror_discard(mirror);
				return false;
		}
	}
}

static void
release_on_error(int code, Datum arg)
{
	gpuds_mirror_release((GpudsMirror *) DatumGetPointer(arg));
}

static void
warn_fallback(Relation index)
{
	if (warned)
		return;
	warned = true;
	ereport(WARNING, (errcode(ERRCODE_OUT_OF_MEMORY),
					  errmsg("no memory for the mirror of index \"%s\", reading its journal instead",
							 RelationGetRelationName(index)),
					  errdetail("Scans that read the journal are slow. This is reported once a session."),
					  errhint("Increase gpuds.host_memory.")));
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
	GpudsMirror *mirror;
	uint64 changes;
	bool recovery = RecoveryInProgress();
	bool done = false;
	bool ok = false;

	changes = gpuds_journal_changes(source->index) + 1;
	if (ref->mirror && pg_atomic_read_u64(&ref->mirror->serial) == ref->serial && !recovery &&
		pg_atomic_read_u64(&ref->mirror->synced) == changes)
	{
		gpuds_mirror_touch(ref->mirror);
		return;
	}

	while (!done)
	{
		if (!gpuds_mirror_lookup(source->index, source->file_id, true, ref))
			return;
		mirror = ref->mirror;
		gpuds_mirror_touch(mirror);
		if (recovery ? pg_atomic_read_u64(&mirror->readable) == ref->serial && nothing_new(source, mirror)
					 : pg_atomic_read_u64(&mirror->synced) == changes)
			return;

		gpuds_mirror_acquire(mirror, true);
		PG_ENSURE_ERROR_CLEANUP(release_on_error, PointerGetDatum(mirror));
		{
			/* The slot may have been given to another file meanwhile. */
			if (pg_atomic_read_u64(&mirror->serial) == ref->serial)
			{
				/* Counter first, pages after: never synced too far. */
				changes = gpuds_journal_changes(source->index) + 1;
				if (!recovery && pg_atomic_read_u64(&mirror->synced) == changes)
					ok = true;
				else
				{
					pg_atomic_write_u64(&mirror->synced, 0);
					ok = bring_up(source, mirror);
					if (ok)
					{
						pg_write_barrier();
						pg_atomic_write_u64(&mirror->readable, ref->serial);
						pg_atomic_write_u64(&mirror->synced, recovery ? 0 : changes);
					}
				}
				done = true;
			}
		}
		PG_END_ENSURE_ERROR_CLEANUP(release_on_error, PointerGetDatum(mirror));
		gpuds_mirror_release(mirror);
	}
	if (!ok)
	{
		pg_atomic_fetch_add_u64(&ref->mirror->stats.fallbacks, 1);
		warn_fallback(source->index);
		ref->mirror = NULL;
	}
}
