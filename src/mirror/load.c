/*-------------------------------------------------------------------------
 *
 * load.c
 *	  Loads a mirror from the journal.
 *
 * What the load will need is estimated and reserved before anything is read:
 * either there is claim, and the journal is streamed once, or the mirror notes
 * that there is none.  A second time is for an estimate that was wrong; then
 * more is known.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "portability/instr_time.h"
#include "storage/ipc.h"

#include "journal/journal_sort.h"
#include "mirror/mirror_internal.h"

/* Fewer entries than that say nothing about the size of one. */
#define ENTRIES_TO_LEARN_FROM 10000

/* Operations in a large batch: at least, where maintenance_work_mem is small ... */
#define LEAST_LARGE (INT64CONST(1024) * 1024)

/* ... and at most: what is sorted in a moment. */
#define MOST_LARGE GPUDS_SORTER_MOMENT

/*
 * How many operations a large batch has: as many as maintenance_work_mem holds twice, once to sort from and
 * once to sort into, within limits.
 */
int64
gpuds_ops_large(void)
{
	int64 fitting = (int64) maintenance_work_mem * 1024 / (2 * (int64) sizeof(GpudsOp));

	return Min(Max(LEAST_LARGE, fitting), MOST_LARGE);
}

/* Bytes that a sorter takes for a batch of so many operations and the page that fills it. */
Size
gpuds_ops_memory(int64 most)
{
	return (most + GPUDS_MAX_RECORDS_PER_PAGE) * 2 * sizeof(GpudsOp);
}

/* Streams the entries to the device.  *total: those handed on. */
static GpudsBringUp
stream(GpudsJournalSort *sort, GpudsDeviceLoad *load, int64 *total)
{
	int64 n;

	while ((n = gpuds_journal_sort_next(sort, load->entries, load->capacity)) > 0)
	{
		GpudsBringUp result = gpuds_bring_up_result(gpuds_device_load_add(load, n));

		*total += n;
		if (result != GPUDS_UP)
			return result;
	}
	return n < 0 ? GPUDS_STALE : GPUDS_UP;
}

static void
cancel_load(int code, Datum arg)
{
	gpuds_device_load_cancel((GpudsDeviceLoad *) DatumGetPointer(arg));
}

/*
 * Notes what an entry of the load, which is at its end in one way or another,
 * takes of memory.  Of a load in parts that has failed, some parts may have none yet.
 */
static void
learn(GpudsMirror *mirror, int64 entries, bool failed)
{
	int parts = gpuds_device_parts(&mirror->tree);
	size_t bytes = gpuds_device_bytes(&mirror->tree);
	size_t slack = gpuds_device_slack_bytes(mirror->tree.kind) * parts;

	if (entries >= ENTRIES_TO_LEARN_FROM && bytes > slack && !(failed && parts > 1))
		mirror->claim.entry_bytes = (double) (bytes - slack) / entries;
}

/* Entries that a load finds whose stripes were read up to pos, about. */
static uint64
count_to_load(const GpudsMetaData *meta, const GpudsJournalPos *pos)
{
	const uint64 records = meta->base_records + gpuds_journal_count_before(meta, pos);

	return records - Min(meta->garbage, records);
}

/*
 * Loads base and stripes into an empty mirror.  What the stripes hold more than fits
 * the batch is left to catch_up.  So are all the stripes if the device sorts: it
 * does so faster than we.  But a mirror in several parts is divided by what the load
 * reads, which may be stripes alone.
 */
static GpudsBringUp
load_once(const GpudsMirrorSource *source, GpudsMirror *mirror)
{
	const GpudsJournalSelect select = { .most = gpuds_ops_large(), .between_pages = gpuds_make_way_check };
	GpudsJournalSort *sort = gpuds_journal_sort_begin(source->index, gpuds_ops_memory(select.most), &select);
	const GpudsMetaData *meta = gpuds_journal_sort_meta(sort);
	GpudsJournalPos pos;
	GpudsDeviceLoad load;
	GpudsBringUp result = GPUDS_UP;
	int64 total = 0;

	/* Stripes first, so that the base can be streamed past them. */
	gpuds_journal_start(meta, &pos);
	if ((!gpuds_device_sorts(&mirror->tree) || gpuds_device_parts(&mirror->tree) > 1) &&
		!gpuds_journal_sort_stripes(sort, &pos))
		result = GPUDS_STALE;
	if (result == GPUDS_UP)
	{
		gpuds_injection_point("load-base-read");
		memset(&load, 0, sizeof(load));
		PG_ENSURE_ERROR_CLEANUP(cancel_load, PointerGetDatum(&load));
		{
			result = gpuds_bring_up_result(gpuds_device_load_begin(&mirror->tree, &load, meta->structure,
																   source->layout->nwords, source->fillfactor,
																   count_to_load(meta, &pos)));
			if (result == GPUDS_UP)
				result = stream(sort, &load, &total);
			if (result == GPUDS_UP)
				result = gpuds_bring_up_result(gpuds_device_load_end(&load));
		}
		PG_END_ENSURE_ERROR_CLEANUP(cancel_load, PointerGetDatum(&load));
		learn(mirror, total, result != GPUDS_UP);
		if (result != GPUDS_UP)
			gpuds_device_load_cancel(&load);
	}
	gpuds_journal_sort_end(sort);
	if (result == GPUDS_UP)
	{
		gpuds_mirror_set_position(mirror, &pos);
		gpuds_stats_add(mirror, &(GpudsIndexStats){ .loads = 1 });
		gpuds_mirror_tick();
	}
	return result;
}

/* Entries of the journal, as far as VACUUM has counted those that are not any more. */
static uint64
count_entries(Relation index, const GpudsMetaData *meta)
{
	GpudsJournalPos end;
	uint64 entries;

	gpuds_journal_end(index, meta, &end);
	entries = meta->base_records + gpuds_journal_count_before(meta, &end);
	return entries - Min(meta->garbage, entries);
}

/* What a load is expected to find and to take. */
typedef struct LoadNeed
{
	uint64 entries;
	int parts;    /* that it is divided into, at least */
	double bytes; /* as the last load found, else as if many keys were equal, which costs more */
	double least; /* the same, but as if all were different */
} LoadNeed;

static double
need_of(const GpudsMetaData *meta, uint64 entries, int fillfactor, GpudsDeviceKind kind, bool equal_keys)
{
	return entries * gpuds_device_entry_bytes(kind, meta->structure, meta->nwords, fillfactor, equal_keys) +
		   gpuds_device_slack_bytes(kind);
}

/* Into how many parts each copy of the index on GPUs is to be divided, at least. */
int
gpuds_mirror_parts(const GpudsMirrorSource *source)
{
	GpudsMirrorRef first;

	if (gpuds_cards < 2 ||
		!gpuds_mirror_lookup(source->index, source->file_id, GPUDS_MIRROR_ON_GPU(0), false, &first))
		return gpuds_test_parts;
	return Max((int) pg_atomic_read_u32(&first.mirror->parts), gpuds_test_parts);
}

static void
find_need(const GpudsMirrorSource *source, GpudsMirror *mirror, const GpudsMetaData *meta, LoadNeed *need)
{
	GpudsDeviceKind kind = mirror->tree.kind;

	need->entries = count_entries(source->index, meta);
	need->parts = Max(gpuds_device_is_remote(kind) ? gpuds_mirror_parts(source) : 1,
					  (int) (need->entries / gpuds_device_max_part(kind)) + 1);
	need->parts = Max(need->parts, gpuds_memory_least_parts(mirror, need->entries));
	if (mirror->claim.entry_bytes != 0)
	{
		need->bytes = need->entries * mirror->claim.entry_bytes + gpuds_device_slack_bytes(kind);
		need->least = need->bytes;
		return;
	}
	need->bytes = need_of(meta, need->entries, source->fillfactor, kind, true);
	need->least = need_of(meta, need->entries, source->fillfactor, kind, false);
}

/*
 * Could a kind of device, with all of its memory, have a mirror of the index?  Reads pages, asks for no
 * memory.
 */
bool
gpuds_mirror_fits(Relation index, int fillfactor, GpudsDeviceKind kind)
{
	GpudsMetaData meta;

	gpuds_journal_read_meta(index, &meta);
	return need_of(&meta, count_entries(index, &meta), fillfactor, kind, false) <= gpuds_device_largest(kind);
}

/*
 * Would there be room for a load of the mirror, which is loaded and whose applier the caller is, if it were
 * discarded before?  Nobody would be evicted.
 */
bool
gpuds_mirror_fits_anew(const GpudsMirrorSource *source, GpudsMirror *mirror)
{
	GpudsDeviceKind kind = mirror->tree.kind;
	GpudsMetaData meta;
	LoadNeed need;

	gpuds_journal_read_meta(source->index, &meta);
	find_need(source, mirror, &meta, &need);
	return need.entries <= gpuds_device_max_entries(kind) && need.least <= gpuds_device_largest(kind) &&
		   gpuds_memory_suffices(mirror, (size_t) need.least, need.parts);
}

/* Reserves memory for a load that needs a number of bytes, and to spare, on cards that are not full. */
static bool
reserve_bytes(GpudsMirror *mirror, const LoadNeed *need, double bytes, int how, uint32 full)
{
	return bytes <= gpuds_device_largest(mirror->tree.kind) &&
		   gpuds_memory_reserve(mirror, (size_t) bytes, need->parts, how, full);
}

/* The same for what it needs, or at least needs.  On fewer cards than it takes, it would fail once more. */
static bool
reserve(GpudsMirror *mirror, const LoadNeed *need, int how, uint32 full)
{
	const int cards = gpuds_device_cards(mirror->tree.kind) - pg_popcount32(full);

	if (full != 0 && cards < gpuds_memory_least_parts(mirror, need->entries))
		return false;
	return reserve_bytes(mirror, need, need->bytes, how, full) ||
		   (need->least < need->bytes && reserve_bytes(mirror, need, need->least, how, full));
}

/*
 * Loads the mirror, which is empty and whose applier the caller is.  The result is
 * not GPUDS_STALE.
 */
GpudsBringUp
gpuds_mirror_load_all(const GpudsMirrorSource *source, GpudsMirror *mirror, int how)
{
	GpudsDeviceKind kind = mirror->tree.kind;
	/* A load that evicts nobody does not ask twice on a card. */
	bool again = (how & GPUDS_NO_EVICT) != 0;
	uint32 full = 0;    /* cards, by bits, that had no memory after all for one of so many parts */
	bool tried = false; /* there was one, also before it was divided into more */
	GpudsMetaData meta;

	gpuds_journal_read_meta(source->index, &meta);
	if (!gpuds_device_has_structure(kind, meta.structure))
	{
		gpuds_memory_refuse_structure(mirror);
		return GPUDS_NO_STRUCTURE;
	}
	for (;;)
	{
		LoadNeed need;
		GpudsBringUp result;
		instr_time began;
		instr_time elapsed;

		gpuds_journal_read_meta(source->index, &meta);
		find_need(source, mirror, &meta, &need);
		if (need.entries > gpuds_device_max_entries(kind))
		{
			gpuds_memory_refuse_size(mirror);
			return GPUDS_TOO_LARGE;
		}
		if (!reserve(mirror, &need, how, full))
		{
			/* None of the cards had room for it, or for a part of that size. */
			if (full != 0 && gpuds_memory_divide(mirror, need.bytes))
			{
				full = 0;
				continue;
			}
			/* That there is no room without evicting says nothing to a scan, whose load would evict. */
			if (!(how & GPUDS_NO_EVICT))
				gpuds_memory_refuse(mirror, Min(need.least, SIZE_MAX / 2), tried);
			return GPUDS_NO_MEMORY;
		}
		/* What is reserved passes to the loader. */
		if (need.entries > GPUDS_PIECE_RECORDS && !(how & GPUDS_ALONE))
			return GPUDS_LONG;

		INSTR_TIME_SET_CURRENT(began);
		result = load_once(source, mirror);
		INSTR_TIME_SET_CURRENT(elapsed);
		INSTR_TIME_SUBTRACT(elapsed, began);
		switch (result)
		{
			case GPUDS_UP:
				gpuds_memory_loaded(mirror, INSTR_TIME_GET_MICROSEC(elapsed));
				return result;
			case GPUDS_STALE:
				break;
			case GPUDS_NO_MEMORY:
				/* Changes of other mirrors, arrays that the device needs to build, or other programs. */
				if (again || !gpuds_memory_evict_one(mirror, (how & GPUDS_ASKED) != 0))
				{
					full |= (uint32) 1 << gpuds_device_refused(&mirror->tree);
					tried = true;
				}
				again = true;
				break;
			case GPUDS_TOO_LARGE:
				gpuds_memory_refuse_size(mirror);
				return result;
			case GPUDS_NO_STRUCTURE:
				gpuds_memory_refuse_structure(mirror);
				return result;
			default:
				return result;
		}
		CHECK_FOR_INTERRUPTS();
	}
}
