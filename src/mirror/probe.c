/*-------------------------------------------------------------------------
 *
 * probe.c
 *	  Answers a scan from the mirror, or from the journal if there is none, and
 *	  says beforehand which of them it will be.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "mirror/internal.h"

/* A mirror may be evicted between sync and scan; how often to try again. */
#define PROBE_ATTEMPTS 3

/* Operations of a memtable that a probe has room for without asking for memory. */
#define FEW_FRESH 64

/* TIDs that a bitmap takes from a memtable, at most. */
#define MOST_FRESH_TIDS (64 * 1024)

static const GpudsProbeSizes local_sizes = { .first = 16, .small = 64, .growth = 4, .most = 4096 };

/*
 * A round trip costs as much as a thousand entries, and all small scans that go
 * into one launch cost about the same.
 */
static const GpudsProbeSizes remote_sizes = {
	.first = 64,
	.small = GPU_SMALL_ENTRIES,
	.growth = 16,
	.most = 64 * 1024,
	.small_intervals = GPU_SMALL_INTERVALS,
};

/* How many entries to ask for at a time. */
const GpudsProbeSizes *
gpuds_probe_sizes(const GpudsMirrorRef *ref)
{
	return ref->mirror && gpuds_device_is_remote(ref->mirror->tree.kind) ? &remote_sizes : &local_sizes;
}

/* May gpuds_probe_tids have an answer? */
bool
gpuds_probe_sorts_tids(const GpudsMirrorRef *ref)
{
	return ref->mirror && gpuds_device_sorts(&ref->mirror->tree);
}

static bool
is_there(GpudsMirror *mirror)
{
	GpudsJournalPos pos;

	return gpuds_mirror_get_position(mirror, &pos) && gpuds_device_usable(&mirror->tree);
}

/* Has a kind of device the mirror? */
static bool
present_on(const GpudsMirrorSource *source, GpudsDeviceKind kind)
{
	GpudsMirrorRef ref;

	return gpuds_mirror_lookup(source->index, source->file_id, kind, false, &ref) && is_there(ref.mirror);
}

/*
 * Is there a mirror of the index for this session?  No guarantee that it will be
 * there a moment later.  Reads no page.
 */
bool
gpuds_mirror_present(const GpudsMirrorSource *source)
{
	if (RelationUsesLocalBuffers(source->index))
		return present_on(source, GPUDS_ON_CPU_PRIVATE);
	return (gpuds_device_wanted() != GPUDS_ON_CPU && present_on(source, gpuds_device_wanted())) ||
		   present_on(source, GPUDS_ON_CPU);
}

/* Has a kind of device the mirror, or will it load it, as far as is known without trying? */
static bool
expected_on(Relation index, GpudsDeviceKind kind, double bytes)
{
	GpudsMirror *mirror;

	if (!gpuds_device_is_private(kind) && (mirror = gpuds_mirror_find(RelationLocator(index), kind)) != NULL)
	{
		if (is_there(mirror))
			return true;
		if (gpuds_room_resting(mirror))
			return false;
	}
	return bytes <= gpuds_device_memory_size(kind);
}

/*
 * Will the next scan of an index of about so many entries have a mirror, or will it
 * read the journal?  A guess for the planner, which must not fail because an index is
 * damaged: reads no page, and takes the file's number for its identity.
 */
bool
gpuds_mirror_expected(Relation index, double entries)
{
	/* no structure takes less for an entry than a word of its key and the TID */
	double bytes = entries * 2 * sizeof(uint64);

	/* That the library was not preloaded is for the scan to say. */
	if (!gpuds_is_preloaded())
		return true;
	if (RelationUsesLocalBuffers(index))
		return expected_on(index, GPUDS_ON_CPU_PRIVATE, bytes);
	return (gpuds_device_wanted() != GPUDS_ON_CPU && expected_on(index, gpuds_device_wanted(), bytes)) ||
		   expected_on(index, GPUDS_ON_CPU, bytes);
}

/*
 * What the memtable says to the rest of a scan, as memtable_collect.  A mirror that has
 * joined another memtable meanwhile has all that the scan needs, with that one.  -1: the
 * mirror has left its memtable.
 */
static int64
collect(GpudsMirrorRef *ref, const GpudsScan *scan, bool forward, bool sorted, GpudsOp *out, int64 cap)
{
	int64 n = -1;

	while (n < 0 && ref->memtable != 0)
	{
		n = gpuds_memtable_collect(ref->memtable, &ref->mirror->joined, scan, forward, sorted, out, cap);
		if (n < 0)
			ref->memtable = pg_atomic_read_u64(&ref->mirror->joined);
	}
	return n;
}

/* The mirror's entries and the memtable's operations, together.  As gpuds_device_scan; *end as gpuds_probe. */
static int64
probe_both(GpudsMirrorRef *ref, GpudsScan *scan, bool forward, GpudsEntry *out, int64 cap, bool *end)
{
	GpudsMirror *mirror = ref->mirror;
	GpudsOp few[FEW_FRESH];
	GpudsOp *fresh = few;
	int64 room = Min(cap, FEW_FRESH);
	GpudsMerge merge;
	GpudsScan before;
	int64 n = collect(ref, scan, forward, true, fresh, room);

	if (n > room && cap > room)
	{
		room = cap;
		fresh = MemoryContextAllocHuge(CurrentMemoryContext, room * sizeof(GpudsOp));
		n = collect(ref, scan, forward, true, fresh, room);
	}
	if (n >= 0)
	{
		gpuds_injection_point("memtable-collected");
		merge.fresh = fresh;
		merge.nfresh = Min(n, room);
		merge.fresh_end = n <= room;
		before = *scan;
		n = gpuds_device_scan(&mirror->tree, &mirror->guard, ref->serial, scan, forward, out, cap);
		*end = n < cap;
	}
	if (n >= 0 && merge.nfresh > 0)
	{
		GpudsEntry *old = MemoryContextAllocHuge(CurrentMemoryContext, Max(n, 1) * sizeof(GpudsEntry));

		memcpy(old, out, n * sizeof(GpudsEntry));
		merge.old = old;
		merge.nold = n;
		merge.old_end = *end;
		*scan = before;
		n = gpuds_merge(&merge, scan, forward, out, cap, end);
		pfree(old);
	}
	if (fresh != few)
		pfree(fresh);
	return n;
}

/*
 * Fetches the next entries of a scan into out[cap], in order; fewer than cap do
 * not mean the end.  *end: there are no more behind them.  ref comes from
 * gpuds_mirror_sync; it is synced again if the mirror went away meanwhile.  A
 * scan that has come to read the journal stays there until its next sync.
 */
int64
gpuds_probe(const GpudsMirrorSource *source, GpudsMirrorRef *ref, GpudsFallback *fallback, GpudsScan *scan,
			bool forward, GpudsEntry *out, int64 cap, bool *end)
{
	for (int i = 0; ref->mirror && i < PROBE_ATTEMPTS; i++)
	{
		GpudsMirror *mirror = ref->mirror;
		int64 n;

		if (ref->memtable != 0)
			n = probe_both(ref, scan, forward, out, cap, end);
		else
		{
			n = gpuds_device_scan(&mirror->tree, &mirror->guard, ref->serial, scan, forward, out, cap);
			*end = n < cap;
		}
		if (n >= 0)
		{
			gpuds_mirror_count(ref, 0, 1, 0, n);
			gpuds_mirror_touch(mirror);
			return n;
		}
		gpuds_mirror_sync(source, ref);
	}
	if (ref->mirror)
	{
		pg_atomic_fetch_add_u64(&ref->mirror->stats.fallbacks, 1);
		ref->mirror = NULL;
	}
	return gpuds_fallback_scan(fallback, source, scan, forward, out, cap, end);
}

/*
 * The TIDs that the memtable adds to the rest of a scan, sorted, in palloc'd memory; those of
 * the mirror come from gpuds_probe_tids, called afterwards.  False: they are not to
 * be had in this way, because some entries are gone or there are too many, but
 * from gpuds_probe.
 */
bool
gpuds_probe_fresh_tids(GpudsMirrorRef *ref, const GpudsScan *scan, uint64 **tids, int64 *n)
{
	GpudsOp *fresh;
	bool inserts = true;

	*tids = NULL;
	*n = 0;
	if (ref->mirror == NULL || ref->memtable == 0 || gpuds_memtable_entries(ref->memtable) == 0)
		return ref->mirror != NULL;
	fresh = MemoryContextAllocHuge(CurrentMemoryContext, MOST_FRESH_TIDS * sizeof(GpudsOp));
	*n = collect(ref, scan, true, false, fresh, MOST_FRESH_TIDS);
	if (*n >= 0 && *n <= MOST_FRESH_TIDS)
	{
		*tids = palloc(Max(*n, 1) * sizeof(uint64));
		for (int64 i = 0; i < *n; i++)
		{
			inserts &= (fresh[i].order & GPUDS_OP_DELETE) == 0;
			(*tids)[i] = fresh[i].e.t & ENTRY_TID_MASK;
		}
	}
	else
		inserts = false;
	pfree(fresh);
	return inserts;
}

/*
 * The TIDs of a piece of a forward scan, ascending, from a device that sorts;
 * *end: that was the last piece.  False: not to be had, the scan has not moved,
 * and gpuds_probe will do.  What is in *tids is to be freed.
 */
bool
gpuds_probe_tids(GpudsMirrorRef *ref, GpudsScan *scan, int64 cap, GpudsTids *tids, bool *end)
{
	GpudsMirror *mirror = ref->mirror;

	if (mirror == NULL || !gpuds_device_sorts(&mirror->tree) ||
		!gpuds_device_scan_tids(&mirror->tree, &mirror->guard, ref->serial, scan, cap, tids))
		return false;
	gpuds_mirror_count(ref, 0, 1, 0, tids->n);
	gpuds_mirror_touch(mirror);
	*end = scan->next >= scan->n;
	return true;
}
