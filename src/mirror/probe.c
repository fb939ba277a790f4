/*-------------------------------------------------------------------------
 *
 * probe.c
 *	  Answers a scan from the mirror, or from the journal if there is none, and
 *	  says beforehand which of them it will be.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "mirror/mirror_internal.h"

/* A mirror may be evicted between sync and scan; how often to try again. */
#define PROBE_ATTEMPTS 3

/* Operations of a memtable that a scan has room for at first; grown so; and at most. */
#define FEW_DELTA 64
#define DELTA_GROWTH 16
#define MOST_DELTA (64 * 1024)

/* Intervals in no order that a memtable is asked about at a time. */
#define DELTA_INTERVALS (64 * 1024)

static const GpudsProbeSizes local_sizes = {
	.first = 16,
	.small = 64,
	.growth = 4,
	.most = 4096,
	.small_intervals = 64,
};

/*
 * A round trip costs as much as a thousand entries, and all small scans that go
 * into one launch cost about the same.
 */
static const GpudsProbeSizes remote_sizes = {
	.first = 64,
	.small = GPUDS_SMALL_ENTRIES,
	.growth = 16,
	.most = 64 * 1024,
	.small_intervals = GPUDS_SMALL_INTERVALS,
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

	return gpuds_mirror_lookup(source->index, source->file_id, gpuds_mirror_to_ask(source, kind), false,
							   &ref) &&
		   is_there(ref.mirror);
}

/*
 * Is there a mirror of the index for this session?  No guarantee that it will be
 * there a moment later.  Reads no page.
 */
bool
gpuds_mirror_present(const GpudsMirrorSource *source)
{
	const GpudsDeviceKind for_many = gpuds_mirror_wanted(source->index, PG_INT64_MAX);

	return present_on(source, for_many) ||
		   (gpuds_device_is_remote(for_many) && present_on(source, GPUDS_ON_CPU));
}

/* May a GPU have the mirror that sets of many keys are to be looked up in, now or once it is loaded? */
bool
gpuds_mirror_may_be_on_gpu(const GpudsMirrorSource *source)
{
	return gpuds_device_is_remote(gpuds_mirror_wanted(source->index, PG_INT64_MAX));
}

/* Has it? */
bool
gpuds_mirror_is_on_gpu(const GpudsMirrorSource *source)
{
	const GpudsDeviceKind kind = gpuds_mirror_wanted(source->index, PG_INT64_MAX);

	return gpuds_device_is_remote(kind) && present_on(source, kind);
}

/*
 * Does a GPU keep a graph of the mirror that sets of many keys are to be looked up in?  *graph is then one on
 * its base, without edges.  The caller drops it in any case, or begins another one in its place.
 */
bool
gpuds_mirror_keeps_graph(const GpudsMirrorSource *source, bool both, GpudsDeviceGraph *graph)
{
	const GpudsDeviceKind kind = gpuds_mirror_wanted(source->index, PG_INT64_MAX);
	GpudsMirrorRef ref;

	return gpuds_mirror_is_on_gpu(source) &&
		   gpuds_mirror_lookup(source->index, source->file_id, gpuds_mirror_to_ask(source, kind), false,
							   &ref) &&
		   gpuds_probe_take_graph(&ref, both, graph);
}

/* Has a kind of device the mirror, or will it load it, as far as is known without trying? */
static bool
expected_on(Relation index, GpudsDeviceKind kind, double bytes)
{
	const int copies = gpuds_device_is_remote(kind) ? gpuds_device_cards(kind) : 1;
	GpudsMirror *first = NULL;

	for (int copy = copies - 1; copy >= 0 && !gpuds_device_is_private(kind); copy--)
	{
		const int number = gpuds_device_is_remote(kind) ? GPUDS_MIRROR_ON_GPU(copy) : GPUDS_MIRROR_ON_CPU;

		first = gpuds_mirror_find(RelationLocator(index), number);
		if (first && is_there(first))
			return true;
	}
	return bytes <= gpuds_device_largest(kind) && !(first && gpuds_memory_resting(first));
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
	GpudsDeviceKind for_many;

	/* That the library was not preloaded is for the scan to say. */
	if (!gpuds_is_preloaded())
		return true;
	for_many = gpuds_mirror_wanted(index, PG_INT64_MAX);
	return expected_on(index, for_many, bytes) ||
		   (gpuds_device_is_remote(for_many) && expected_on(index, GPUDS_ON_CPU, bytes));
}

/*
 * Does what the memtable said still hold, with the mirror as it was searched afterwards?
 * A mirror that is brought up from the journal is detached first; it may have been attached again
 * since.
 */
bool
gpuds_probe_still_attached(const GpudsMirrorRef *ref)
{
	pg_read_barrier();
	return pg_atomic_read_u64(&ref->mirror->attached) == ref->memtable &&
		   pg_atomic_read_u64(&ref->mirror->brought_up) == ref->brought_up;
}

/* Room for more operations than there was. */
static void
grow(GpudsDelta *delta)
{
	int64 size = delta->ops ? Min(delta->size * DELTA_GROWTH, MOST_DELTA) : FEW_DELTA;

	if (delta->ops)
		pfree(delta->ops);
	delta->ops = NULL;
	delta->ops = MemoryContextAllocHuge(delta->context, size * sizeof(GpudsOp));
	delta->size = size;
}

/*
 * Asks the memtable about the rest of a scan, unless it has said all already.  sorted: the
 * intervals are ascending.  False: the mirror was detached.
 */
bool
gpuds_probe_ask_memtable(GpudsMirrorRef *ref, const GpudsScan *scan, bool forward, bool sorted)
{
	GpudsDelta *delta = &ref->delta;

	if (delta->memtable == ref->memtable && delta->all && delta->forward == forward)
		return true;
	delta->memtable = 0;
	if (delta->ops == NULL)
		grow(delta);
	for (;;)
	{
		int64 n = gpuds_memtable_collect(ref->memtable, &ref->mirror->attached, scan, forward, sorted,
										 delta->ops, delta->size);

		if (n < 0)
			return false;
		delta->all = n <= delta->size;
		delta->n = Min(n, delta->size);
		if (delta->all || delta->size == MOST_DELTA)
			break;
		grow(delta);
	}
	delta->memtable = ref->memtable;
	delta->forward = forward;
	ref->notes.operations += delta->n;
	return true;
}

/* The first of the operations that is behind what a scan has been through. */
int64
gpuds_probe_first_ahead(const GpudsDelta *delta, const GpudsScan *scan)
{
	int64 lo = 0;
	int64 hi = scan->inside ? delta->n : 0;

	while (lo < hi)
	{
		int64 middle = lo + (hi - lo) / 2;
		const GpudsEntry *e = &delta->ops[middle].e;

		if (delta->forward ? entry_less(&scan->at, e) : entry_less(e, &scan->at))
			hi = middle;
		else
			lo = middle + 1;
	}
	return lo;
}

/*
 * The next entries of the mirror and its memtable together, as gpuds_device_scan; *end
 * as gpuds_probe.
 */
static int64
probe_both(GpudsMirrorRef *ref, GpudsScan *scan, bool forward, GpudsEntry *out, int64 cap, bool *end)
{
	GpudsMirror *mirror = ref->mirror;
	const GpudsDelta *delta = &ref->delta;
	GpudsScan before = *scan;
	GpudsMerge merge;
	int64 n;

	if (!gpuds_probe_ask_memtable(ref, scan, forward, true))
		return -1;
	gpuds_injection_point("memtable-collected");
	n = gpuds_device_scan(&mirror->tree, &mirror->guard, ref->serial, scan, forward, out, cap);
	if (n < 0)
		return -1;
	if (!gpuds_probe_still_attached(ref))
	{
		*scan = before;
		return -1;
	}
	*end = n < cap;
	merge.delta = delta->ops + gpuds_probe_first_ahead(delta, &before);
	merge.ndelta = delta->ops + delta->n - merge.delta;
	merge.delta_end = delta->all;
	if (merge.ndelta > 0)
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
		gpuds_probe_forget(ref);
		gpuds_mirror_sync(source, ref);
	}
	if (ref->mirror)
	{
		gpuds_mirror_count_fallback(ref, GPUDS_WITHOUT_MIRROR);
		ref->mirror = NULL;
	}
	/* what the fallback keeps may be older */
	ref->kill_mark.memtable = 0;
	return gpuds_fallback_scan(fallback, source, scan, forward, out, cap, end);
}

/* Entries of the last gpuds_probe lead to rows that are dead for everybody. */
void
gpuds_probe_kill(const GpudsMirrorRef *ref, const GpudsEntry *entries, int n)
{
	const GpudsKillMark *mark = &ref->kill_mark;

	if (mark->memtable != 0 && n > 0)
		gpuds_memtable_kill(mark->memtable, mark->stamp, entries, n);
}

/*
 * The TIDs that the memtable adds to the rest of a scan, sorted, in palloc'd memory; those of
 * the mirror come from gpuds_probe_tids, called afterwards.  False: they are not to
 * be had in this way, because some entries are gone or there are too many, but from
 * gpuds_probe.
 */
bool
gpuds_probe_delta_tids(GpudsMirrorRef *ref, const GpudsScan *scan, uint64 **tids, int64 *n)
{
	GpudsDelta *delta = &ref->delta;
	int64 size = 0;

	*tids = NULL;
	*n = 0;
	if (ref->mirror == NULL)
		return false;
	if (ref->memtable == 0)
		return true;
	/* In pieces, because a search in no order takes its time and holds a pin. */
	for (GpudsScan piece = *scan; piece.next < scan->n; piece.next = piece.n, piece.inside = false)
	{
		CHECK_FOR_INTERRUPTS();
		piece.n = Min(piece.next + DELTA_INTERVALS, scan->n);
		gpuds_probe_forget(ref);
		if (!gpuds_probe_ask_memtable(ref, &piece, true, false) || !delta->all || *n + delta->n > MOST_DELTA)
			return false;
		if (delta->n == 0)
			continue;
		size = *n + delta->n;
		*tids = *tids ? repalloc(*tids, size * sizeof(uint64)) : palloc(size * sizeof(uint64));
		for (int64 i = 0; i < delta->n; i++)
		{
			if (delta->ops[i].order & GPUDS_OP_DELETE)
				return false;
			(*tids)[(*n)++] = delta->ops[i].e.t & ENTRY_TID_MASK;
		}
	}
	/* not in the order of keys */
	gpuds_probe_forget(ref);
	return true;
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
	const GpudsScan before = *scan;

	if (mirror == NULL || !gpuds_device_sorts(&mirror->tree) ||
		!gpuds_device_scan_tids(&mirror->tree, &mirror->guard, ref->serial, scan, cap, tids))
		return false;
	if (ref->memtable != 0 && !gpuds_probe_still_attached(ref))
	{
		gpuds_device_free_tids(tids);
		*scan = before;
		return false;
	}
	gpuds_mirror_count(ref, 0, 1, 0, tids->n);
	gpuds_mirror_touch(mirror);
	*end = scan->next >= scan->n;
	return true;
}
