/*-------------------------------------------------------------------------
 *
 * check_mirror.c
 *	  gpuds_index_check's second part: the mirror against the journal.
 *
 * The check becomes the mirror's applier, so that the mirror stays as it is, and compares
 * all of it with the journal as of the mirror's position.  Scans that need the mirror to
 * catch up wait until the check is done.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/tableam.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/snapmgr.h"

#include "admin/admin.h"

/* Entries fetched from the mirror at a time. */
#define CHUNK_ENTRIES 16384

/* How often to start again when the mirror was evicted or the journal compacted. */
#define MAX_ATTEMPTS 10

typedef enum Verdict
{
	MIRROR_GOOD,
	MIRROR_GONE, /* evicted or overtaken by a compaction: nothing was learned */
	MIRROR_LACKS,
	MIRROR_HAS_EXTRA
} Verdict;

/* Does an entry lead to a row that the session sees? */
static bool
is_visible(Relation heap, const GpudsEntry *entry)
{
	ItemPointerData tid;
	bool all_dead;

	gpuds_entry_tid(entry, &tid);
	return table_index_fetch_tuple_check(heap, &tid, GetActiveSnapshot(), &all_dead);
}

/*
 * Compares the mirror's entries with the journal's, but allows for as many to be missing as
 * were killed, unless they lead to visible rows.  *where: the first that differs.
 */
static Verdict
compare(Relation heap, const GpudsMirrorSource *source, GpudsMirrorRef *ref, GpudsEntry *where)
{
	GpudsMirror *mirror = ref->mirror;
	GpudsEntries *stream = gpuds_entries_open(source->index, &mirror->pos);
	GpudsEntry *chunk = palloc(CHUNK_ENTRIES * sizeof(GpudsEntry));
	GpudsInterval all;
	GpudsScan scan;
	int64 n = 0;
	int64 at = 0;
	bool more = true;
	uint64 missing = 0;
	Verdict verdict = MIRROR_GOOD;

	memset(&all, 0, sizeof(all));
	all.hi.w0 = PG_UINT64_MAX;
	all.hi.w1 = source->layout->nwords > 1 ? PG_UINT64_MAX : 0;
	all.hi.t = UINT64CONST(0xFF) << ENTRY_SPILL_SHIFT | ENTRY_TID_MASK;
	memset(&scan, 0, sizeof(scan));
	scan.intervals = &all;
	scan.points = NULL;
	scan.n = 1;

	for (;;)
	{
		GpudsEntriesResult result;
		GpudsEntry entry;
		bool doubtful;

		result = gpuds_entries_next(stream, &entry, &doubtful);
		if (result == GPUDS_ENTRIES_STALE)
		{
			verdict = MIRROR_GONE;
			break;
		}
		if (at == n && more)
		{
			CHECK_FOR_INTERRUPTS();
			n = gpuds_device_scan(&mirror->tree, &mirror->serial, ref->serial, &scan, true, chunk,
								  CHUNK_ENTRIES);
			if (n < 0)
			{
				verdict = MIRROR_GONE;
				break;
			}
			more = n == CHUNK_ENTRIES;
			at = 0;
		}

		if (at < n && (result == GPUDS_ENTRIES_END || entry_less(&chunk[at], &entry)))
		{
			*where = chunk[at];
			verdict = MIRROR_HAS_EXTRA;
			break;
		}
		if (result == GPUDS_ENTRIES_END)
			break;
		if (at < n && entry_equal(&chunk[at], &entry))
			at++;
		else if (!doubtful && (++missing > mirror->killed || is_visible(heap, &entry)))
		{
			*where = entry;
			verdict = MIRROR_LACKS;
			break;
		}
	}
	pfree(chunk);
	gpuds_entries_close(stream);
	return verdict;
}

/* Checks the mirror; the caller is its applier. */
static Verdict
examine(Relation heap, const GpudsMirrorSource *source, GpudsMirrorRef *ref, GpudsEntry *where)
{
	GpudsMirror *mirror = ref->mirror;
	char why[200];

	if (pg_atomic_read_u64(&mirror->serial) != ref->serial || !gpuds_mirror_is_loaded(mirror))
		return MIRROR_GONE;
	switch (gpuds_device_verify(&mirror->tree, why, sizeof(why)))
	{
		case GPUDS_TREE_GOOD:
			break;
		case GPUDS_TREE_GONE:
			return MIRROR_GONE;
		case GPUDS_TREE_DAMAGED:
			ereport(ERROR, (errcode(ERRCODE_INDEX_CORRUPTED),
							errmsg("the in-memory copy of index \"%s\" is damaged",
								   RelationGetRelationName(source->index)),
							errdetail_internal("%s", why),
							errhint("Call gpuds_index_evict; the next scan loads it again.")));
	}
	return compare(heap, source, ref, where);
}

/*
 * Examines a mirror as its applier, after bringing it to the journal's end; if as_it_is,
 * without that, and only one that has exactly what the journal has up to its position.
 */
static Verdict
acquire_and_examine(Relation heap, const GpudsMirrorSource *source, GpudsMirrorRef *ref, bool as_it_is,
					GpudsEntry *where)
{
	Verdict verdict = MIRROR_GONE;

	gpuds_mirror_acquire(ref->mirror, true);
	PG_ENSURE_ERROR_CLEANUP(gpuds_mirror_release_on_error, PointerGetDatum(ref->mirror));
	{
		if (as_it_is ? pg_atomic_read_u64(&ref->mirror->guard) == ref->serial && !ref->mirror->ahead
					 : gpuds_mirror_settle(source, ref))
			verdict = examine(heap, source, ref, where);
	}
	PG_END_ENSURE_ERROR_CLEANUP(gpuds_mirror_release_on_error, PointerGetDatum(ref->mirror));
	gpuds_mirror_release(ref->mirror);
	gpuds_mirror_count(ref, 0, 0, 0, 0);
	return verdict;
}

static void
report_difference(const char *name, Verdict verdict, const GpudsEntry *where)
{
	ItemPointerData tid;

	gpuds_entry_tid(where, &tid);
	ereport(ERROR, (errcode(ERRCODE_INDEX_CORRUPTED),
					errmsg("the in-memory copy of index \"%s\" does not agree with its index pages", name),
					verdict == MIRROR_LACKS
						? errdetail_internal("It lacks the entry of row (%u,%u).",
											 ItemPointerGetBlockNumberNoCheck(&tid),
											 ItemPointerGetOffsetNumberNoCheck(&tid))
						: errdetail_internal("It has an entry of row (%u,%u) that the index pages lack.",
											 ItemPointerGetBlockNumberNoCheck(&tid),
											 ItemPointerGetOffsetNumberNoCheck(&tid)),
					errhint("Call gpuds_index_evict; the next scan loads the copy again.")));
}

/*
 * Checks the mirror that the session's scans use; it is loaded first if need be.
 * *number is that among the file's.  If no mirror can be had there is nothing to check.
 *
 * A catch-up that was interrupted leaves a mirror that is ahead of its position
 * in part; the next catch-up puts that right.  So one that differs gets a second
 * chance.
 */
static void
check_own(Relation heap, const GpudsMirrorSource *source, int *number)
{
	const char *name = RelationGetRelationName(source->index);
	int wrong = 0;

	for (int attempt = 0; attempt < MAX_ATTEMPTS; attempt++)
	{
		GpudsMirrorRef ref = { NULL };
		GpudsEntry where;
		Verdict verdict;

		gpuds_mirror_sync(source, &ref);
		if (ref.mirror == NULL)
		{
			ereport(DEBUG1, (errmsg_internal("index \"%s\" has no in-memory copy to check", name)));
			return;
		}
		*number = ref.mirror->number;
		verdict = acquire_and_examine(heap, source, &ref, false, &where);
		if (verdict == MIRROR_GOOD)
			return;
		if (verdict != MIRROR_GONE && ++wrong > 1)
			report_difference(name, verdict, &where);
	}
	ereport(DEBUG1,
			(errmsg_internal("the in-memory copy of index \"%s\" does not stay for long enough to be checked",
							 name)));
}

/*
 * Checks the index's mirrors: the one that the session uses, and what other
 * devices have, as far as it is.  Raises ERRCODE_INDEX_CORRUPTED for the first
 * violation.
 */
void
gpuds_check_mirror(Relation heap, const GpudsMirrorSource *source)
{
	int own = -1;

	check_own(heap, source, &own);
	if (RelationUsesLocalBuffers(source->index))
		return;
	for (int number = 0; number < GPUDS_FILE_MIRRORS; number++)
	{
		GpudsMirrorRef ref;
		GpudsEntry where;
		Verdict verdict;

		if (number == own || !gpuds_mirror_lookup(source->index, source->file_id, number, false, &ref))
			continue;
		verdict = acquire_and_examine(heap, source, &ref, true, &where);
		if (verdict == MIRROR_LACKS || verdict == MIRROR_HAS_EXTRA)
			report_difference(RelationGetRelationName(source->index), verdict, &where);
	}
}
