/*-------------------------------------------------------------------------
 *
 * mirror.h
 *	  Mirrors: search structures derived from journals, kept on a device.
 *
 * A mirror belongs to a relation file, named by its RelFileLocator, the file_id
 * of its metapage (a recycled file number has another file_id) and the incarnation of its
 * database (files of a database made from a template have their originals' file_id,
 * and a database made again may have the numbers it once had), and has a number among
 * those of the file: a file may have one on the CPU, and copies on as many GPUs as were
 * asked for, brought up and evicted each on its own.  Permanent and unlogged indexes have theirs in an
 * array in shared memory (mirror_slots.c); a temporary index has one in the backend
 * that owns it (temp_mirrors.c).  The memory of a GpudsMirror is a mirror's for ever:
 * its serial says which one, so that a reference can be out of date, never dangle.
 *
 * Barrier rule: a scan first notes how far the journal goes, after its snapshot
 * was taken, then makes the mirror catch up to there, then probes.  All entries
 * of transactions that the snapshot can see were in the journal before the
 * snapshot existed.
 *
 * A mirror that is attached to a memtable need not catch up: the scan finds there what
 * the mirror lacks (memtable/memtable.h), and a background process brings the mirror up.
 *
 * One process at a time, the applier, may change a mirror.  A process that needs it
 * changed waits on the condition variable, interruptibly, until it has been or until
 * the process can become applier itself.  Readers never wait.
 *
 * In names, ref is a scan's reference to a mirror, ops are operations, tids are heap
 * TIDs, pos is a position in the journal.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_MIRROR_H
#define GPUDS_MIRROR_H

#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "storage/spin.h"

#include "device/device.h"
#include "gpuds.h"
#include "journal/journal.h"
#include "key/key.h"
#include "memtable/memtable.h"
#include "mirror/stats.h"

/* Why a mirror was refused. */
typedef enum GpudsRefusal
{
	GPUDS_REFUSED_MEMORY,
	GPUDS_REFUSED_SIZE,     /* more entries than the device can have with any memory */
	GPUDS_REFUSED_STRUCTURE /* the device does not have the structure */
} GpudsRefusal;

/*
 * A mirror and the memory of its device (memory_claim.c).  Written by the mirror's
 * applier, but for used_at; read by everybody.  Times are TimestampTz.
 */
typedef struct GpudsMemoryClaims
{
	pg_atomic_uint64 reserved_bytes;  /* promised to a load; gone with the applier */
	pg_atomic_uint64 used_at;         /* a scan was here, about then */
	pg_atomic_uint64 protected_until; /* a load of another may not evict it before ... */
	pg_atomic_uint64 load_us;         /* ... unless it was not used for so long */
	TimestampTz earned_at;            /* its load has earned its cost then, whoever used it; 0: no load yet */
	pg_atomic_uint64 rest_until;      /* there was no room: do not ask before ...; 0: it has what it needs */
	pg_atomic_uint64 rest_bytes;      /* ... unless so much is free */
	GpudsRefusal refusal;             /* why it was */
	bool untried;                     /* was loaded, and its changes since have not found room yet */
	int refusals;                     /* in a row, of loads and catch-ups that had begun */
	double entry_bytes;               /* of a loaded entry, 0: not known yet */
	int least_parts;                  /* fewer had no room for it when it had ... */
	uint64 least_parts_of;            /* ... so many entries, 0: not known yet */
} GpudsMemoryClaims;

/*
 * A file's mirrors are numbered: that on the CPU, then the copies on GPUs, each on another card.  A temporary
 * index has the first one only.
 */
#define GPUDS_MIRROR_ON_CPU 0
#define GPUDS_MIRROR_ON_GPU(copy) (1 + (copy))

static inline GpudsDeviceKind
gpuds_mirror_kind(int number)
{
	return number == GPUDS_MIRROR_ON_CPU ? GPUDS_ON_CPU : GPUDS_ON_CUDA;
}

typedef struct GpudsMirror
{
	/*
	 * names the assignment of this slot to a file; 0: unassigned.  Changed only by the
	 * applier holding the directory's lock
	 */
	pg_atomic_uint64 serial;
	/*
	 * what a scan's reference must have as its serial: the mirror's own while the tree
	 * holds all that any scan that synced before may ask for, else 0, because a load
	 * publishes before it is complete
	 */
	pg_atomic_uint64 guard;
	/*
	 * the journal's change counter when the last complete catch-up began: all that was
	 * counted by then is there; 0: look
	 */
	pg_atomic_uint64 synced;
	/* on a standby: all that was replayed up to this place in WAL is there; 0: look */
	pg_atomic_uint64 replayed;
	pg_atomic_uint64 last_use; /* the clock at the last scan */

	/* serial of the memtable that the mirror is attached to, or 0 (memtable/memtable.h) */
	pg_atomic_uint64 attached;
	pg_atomic_uint64 brought_up; /* times that it was brought up from the journal, after it was detached */
	uint64 attaching;            /* of the one that its applier is about to attach it to */
	uint64 flushed;              /* generations numbered below are in the mirror; while it is attached */
	uint64 used;                 /* claim.used_at at the last flush ... */
	uint64 unread;               /* ... and operations flushed since that changed */
	uint64 killed;               /* entries deleted that the journal still has, at most; the applier's */

	/* of a shared mirror: valid while serial stays the same */
	GpudsFile file;
	int number; /* among the file's mirrors */
	Oid index_oid;
	Oid table_oid;
	pg_atomic_uint32 joined_table; /* of an index that it was to be joined with on another card last, or 0 */
	pg_atomic_uint32 copies;       /* of the first on a GPU: on how many the index is to be ... */
	pg_atomic_uint32 parts;        /* ... and into how many parts each copy is to be divided, at least */
	pg_atomic_uint64 loader_at;    /* a loader was started then, for which nobody waits */
	pg_atomic_uint64 followed;     /* edges that searches followed since one last had a graph made of all */

	/* applier; mutex protects the field, being applier protects the rest */
	slock_t mutex;
	int applier;  /* backend index + 1, 0: nobody */
	bool offered; /* the applier would have a loader take its place */
	bool news;    /* what waiters look at has changed under this applier */
	ConditionVariable applier_left;
	pg_atomic_uint32 waiters; /* scans that wait for the applier */

	/* tree and pos are valid, if the tree is still usable; changes under mutex */
	bool loaded;
	GpudsJournalPos pos; /* applied up to here; changes under mutex */
	bool ahead;          /* and some operations behind pos, perhaps */
	GpudsMemoryClaims claim;
	GpudsDeviceTree tree;
	GpudsMirrorStats stats;
} GpudsMirror;

/* Is the mirror there?  Certain for its applier only. */
static inline bool
gpuds_mirror_is_loaded(GpudsMirror *mirror)
{
	return mirror->loaded && gpuds_device_usable(&mirror->tree);
}

/*
 * What a memtable said to the rest of a scan.  Kept, it serves all further probes of the
 * scan's intervals in one direction: what comes into the mirror later does not take
 * anything away.
 */
typedef struct GpudsDelta
{
	MemoryContext context; /* of the scan */
	GpudsOp *ops;          /* in the scan's direction; NULL: no memory yet */
	int64 size;
	int64 n;
	bool all;        /* that there are */
	bool forward;    /* direction */
	uint64 memtable; /* that said so; 0: nothing is kept */
} GpudsDelta;

/*
 * What it takes to kill entries (memtable/memtable.h) that a scan was given.  No probe gives an
 * entry that a bulk delete counted in the stamp has deleted.
 */
typedef struct GpudsKillMark
{
	uint64 memtable; /* 0: entries cannot be killed */
	uint64 stamp;
} GpudsKillMark;

/* Why a scan has done without a kind of device, and ... */
typedef enum GpudsWithout
{
	GPUDS_WITHOUT_MEMORY,    /* no memory for the mirror */
	GPUDS_WITHOUT_SIZE,      /* too many entries */
	GPUDS_WITHOUT_STRUCTURE, /* the device does not have it */
	GPUDS_WITHOUT_DEVICE,    /* lost, or not there */
	GPUDS_WITHOUT_MIRROR     /* evicted again and again while it was scanned */
} GpudsWithout;

/* ... the bit that says so. */
#define GpudsWithoutBit(kind, why) (1u << ((kind) *8 + (why)))

/* What scans by a reference have met, for EXPLAIN; zeroed when the reference is made. */
typedef struct GpudsMirrorNotes
{
	uint64 operations; /* that memtables had for them */
	uint64 fallbacks;  /* times that a device was done without */
	uint32 without;    /* bits of GpudsWithoutBit */
} GpudsMirrorNotes;

/* What a scan remembers of the mirror it uses. */
typedef struct GpudsMirrorRef
{
	GpudsMirror *mirror; /* NULL: answer from the journal */
	uint64 serial;
	Oid database; /* of the index */
	Oid index;
	int64 intervals;   /* of the scan, which says what device is best; set before it is synced */
	uint64 memtable;   /* that has what the mirror may lack, or 0: it has all that the scan needs */
	uint64 brought_up; /* the mirror's count when it was attached to this memtable */
	GpudsDelta delta;
	GpudsKillMark kill_mark;
	GpudsMirrorNotes notes;
} GpudsMirrorRef;

/* The index as the mirror directories need it: key layout and identity. */
typedef struct GpudsMirrorSource
{
	Relation index;
	const GpudsKeyLayout *layout;
	uint64 file_id;
	int fillfactor;
} GpudsMirrorSource;

/* mirror.c */
extern void gpuds_mirror_init(GpudsMirror *mirror, GpudsDeviceKind kind, uint64 owner);
extern void gpuds_mirror_assign(GpudsMirror *mirror, Relation index, const GpudsFile *file,
								GpudsDeviceKind kind, int number, uint64 serial);
extern GpudsDeviceKind gpuds_mirror_wanted(Relation index, int64 intervals);
extern void gpuds_mirror_set_position(GpudsMirror *mirror, const GpudsJournalPos *pos);
extern bool gpuds_mirror_get_position(GpudsMirror *mirror, GpudsJournalPos *pos);
extern bool gpuds_mirror_discard(GpudsMirror *mirror);

/* mirror_slots.c */
extern Size gpuds_mirror_shmem_size(void);
extern void gpuds_mirror_shmem_init(void);
extern bool gpuds_mirror_lookup(Relation index, uint64 file_id, int number, bool create, GpudsMirrorRef *ref);
extern GpudsMirror *gpuds_mirror_find(RelFileLocator locator, int number);
extern GpudsMirror *gpuds_mirror_slot(int number);
extern void gpuds_mirror_forget(Relation index);
extern void gpuds_mirror_touch(GpudsMirror *mirror);
extern void gpuds_mirror_tick(void);
extern bool gpuds_mirror_of_file(const GpudsFile *file, int number, GpudsMirrorRef *ref);

/* copies.c */
extern int gpuds_mirror_to_ask(const GpudsMirrorSource *source, GpudsDeviceKind kind);
extern int gpuds_copies_wanted(const GpudsMirrorSource *source);
extern bool gpuds_copies_want(const GpudsMirrorSource *source, int copies, int parts);
extern bool gpuds_copies_have_card(const GpudsMirrorSource *source, int copy);
extern void gpuds_copies_asked(const GpudsMirrorRef *ref);
extern void gpuds_copies_complete(const GpudsMirrorSource *source);

/* stats_count.c */
extern void gpuds_mirror_count(GpudsMirrorRef *ref, uint64 scans, uint64 batches, uint64 probes,
							   uint64 entries);
extern void gpuds_mirror_count_fallback(GpudsMirrorRef *ref, GpudsWithout why);
extern void gpuds_mirror_count_flush(void);

/* applier.c */
extern bool gpuds_mirror_acquire(GpudsMirror *mirror, bool wait);
extern void gpuds_mirror_release(GpudsMirror *mirror);
extern void gpuds_mirror_release_on_error(int code, Datum mirror);
extern bool gpuds_mirror_set_offer(GpudsMirror *mirror, bool offered);
extern bool gpuds_mirror_is_offered(GpudsMirror *mirror);
extern bool gpuds_mirror_take(GpudsMirror *mirror);
extern void gpuds_mirror_decline(GpudsMirror *mirror);

/* temp_mirrors.c: mirrors of temporary indexes */
extern bool gpuds_private_lookup(Relation index, const GpudsFile *file, bool create, GpudsMirrorRef *ref);
extern void gpuds_private_forget(Oid index);
extern bool gpuds_private_evict_one(GpudsMirror *keep, bool asked);
extern void gpuds_private_pre_commit(void);
extern void gpuds_private_abort(void);
extern void gpuds_private_subabort(void);

/* memory_claim.c: what one mirror knows of its claim to memory */
extern void gpuds_memory_init(GpudsMemoryClaims *claim);
extern void gpuds_memory_loaded(GpudsMirror *mirror, uint64 usecs);
extern bool gpuds_memory_resting(GpudsMirror *mirror);
extern bool gpuds_memory_has_earned(const GpudsMirror *mirror);
extern void gpuds_memory_satisfied(GpudsMirror *mirror);
extern bool gpuds_memory_is_lacking(GpudsMirror *mirror);
extern void gpuds_memory_used(GpudsMirror *mirror);
extern bool gpuds_memory_needed_now(GpudsMirror *mirror);
extern bool gpuds_memory_divide(GpudsMirror *mirror, double bytes);
extern int gpuds_memory_least_parts(GpudsMirror *mirror, uint64 entries);

/* evict.c: who gets memory, and from whom it is taken */
extern void gpuds_memory_shmem_init(void);
extern bool gpuds_memory_reserve(GpudsMirror *mirror, size_t need, int parts, int how, uint32 full);
extern bool gpuds_memory_suffices(GpudsMirror *mirror, size_t need, int parts);
extern bool gpuds_memory_evict_one(GpudsMirror *mirror, bool asked);
extern bool gpuds_memory_for_side(GpudsMirror *mirror, size_t bytes);
extern void gpuds_memory_bring_together(const GpudsMirrorRef *one, const GpudsMirrorRef *other);
extern void gpuds_memory_refuse(GpudsMirror *mirror, size_t wanted, bool tried);
extern void gpuds_memory_postpone(GpudsMirror *mirror);
extern void gpuds_memory_refuse_size(GpudsMirror *mirror);
extern void gpuds_memory_refuse_structure(GpudsMirror *mirror);
extern void gpuds_memory_ask_again(Relation index);

/* load.c */
extern int gpuds_mirror_parts(const GpudsMirrorSource *source);
extern bool gpuds_mirror_fits(Relation index, int fillfactor, GpudsDeviceKind kind);

/* flusher.c: the process that moves operations from memtables into mirrors */
extern void gpuds_flusher_register(void);

/* catchup.c */
extern bool gpuds_mirror_settle(const GpudsMirrorSource *source, GpudsMirrorRef *ref);

/* sync.c */
extern void gpuds_mirror_sync(const GpudsMirrorSource *source, GpudsMirrorRef *ref);
extern bool gpuds_mirror_load(const GpudsMirrorSource *source, GpudsMirrorRef *ref);

/* fallback.c: scans that the journal answers */
typedef struct GpudsFallback GpudsFallback;

extern GpudsFallback *gpuds_fallback_begin(void);
extern void gpuds_fallback_next_keys(GpudsFallback *fallback);
extern void gpuds_fallback_reset(GpudsFallback *fallback);
extern bool gpuds_fallback_has_some(const GpudsFallback *fallback);
extern bool gpuds_fallback_has_all(const GpudsFallback *fallback);
extern int64 gpuds_fallback_scan(GpudsFallback *fallback, const GpudsMirrorSource *source, GpudsScan *scan,
								 bool forward, GpudsEntry *out, int64 cap, bool *end);
extern void gpuds_fallback_end(GpudsFallback *fallback);

/*
 * How many entries it is best to ask for at a time (probe.c), of a mirror or of the journal.
 */
typedef struct GpudsProbeSizes
{
	int first;  /* few, for LIMIT and one-key scans; then */
	int small;  /* as many as cost about the same; then */
	int growth; /* this many times as many, up to */
	int most;
	int small_intervals; /* of no more intervals, a device is asked for entries only */
} GpudsProbeSizes;

/* probe.c: mirror or journal, whichever answers */
extern const GpudsProbeSizes *gpuds_probe_sizes(const GpudsMirrorRef *ref);
extern bool gpuds_probe_sorts_tids(const GpudsMirrorRef *ref);
extern bool gpuds_mirror_present(const GpudsMirrorSource *source);
extern bool gpuds_mirror_expected(Relation index, double entries);
extern bool gpuds_mirror_may_be_on_gpu(const GpudsMirrorSource *source);
extern bool gpuds_mirror_is_on_gpu(const GpudsMirrorSource *source);
extern bool gpuds_mirror_keeps_graph(const GpudsMirrorSource *source, bool both, GpudsDeviceGraph *graph);
extern int64 gpuds_probe(const GpudsMirrorSource *source, GpudsMirrorRef *ref, GpudsFallback *fallback,
						 GpudsScan *scan, bool forward, GpudsEntry *out, int64 cap, bool *end);
extern bool gpuds_probe_tids(GpudsMirrorRef *ref, GpudsScan *scan, int64 cap, GpudsTids *tids, bool *end);
extern void gpuds_probe_kill(const GpudsMirrorRef *ref, const GpudsEntry *entries, int n);
extern bool gpuds_probe_delta_tids(GpudsMirrorRef *ref, const GpudsScan *scan, uint64 **tids, int64 *n);

/* probe_count.c: counts by a device that can */

/* What has been counted and aggregated of an interval, or of all. */
typedef struct GpudsCountedSum
{
	int64 rows;
	PartialAgg partial
		[GPUDS_AGG_COLUMNS]; /* an aggregate of more columns does not ask a device (reader/entry_agg.c) */
} GpudsCountedSum;

/* Slots of groups (kernels/core/group_spec.h), of which some may be of one group. */
typedef struct GpudsCountedGroups
{
	uint64 *words; /* NULL: there are none */
	int64 n;
	int64 size;
} GpudsCountedGroups;

/* What has been counted of a scan; in the memory context that was current when it began. */
typedef struct GpudsCounted
{
	int64 counted;         /* entries on heap pages that the visibility map calls all-visible */
	GpudsCountedSum *sums; /* if aggregated: of each interval, or one; the caller's array */
	bool *hits;          /* in place of sums, of intervals in any order: has each an entry that is counted? */
	uint64 *tids;        /* of the others, in no order, or NULL ... */
	GpudsEntry *entries; /* ... or if aggregated, the others */
	GpudsCountedGroups groups; /* in place of sums, if groups are wanted, or EntryJoinKeys of a join */
	uint64 joined;             /* of a join, rows of the result, but for those and the others */
	int64 filtered;            /* ... entries that did not pass their filter */
	int64 left_out;            /* ... entries of groups that are not wanted */
	bool newer;                /* edges were made of a version that has come since the graph was begun */
	GpudsScan rest;            /* where the scan goes on */
	int64 ndelta;              /* with hits: those that the memtable has a word on, which come first */
	int64 n;
	int64 size;
} GpudsCounted;

extern bool gpuds_probe_counts(const GpudsMirrorRef *ref);
extern bool gpuds_probe_aggregates(const GpudsMirrorRef *ref);
extern bool gpuds_probe_count(GpudsMirrorRef *ref, const GpudsScan *scan, const GpudsCountSpec *spec,
							  GpudsCounted *counted);
extern void gpuds_probe_free_counted(GpudsCounted *counted);
extern bool gpuds_probe_begin_join(const GpudsMirrorRef *ref, GpudsMirrorRef *other, GpudsCountJoin *join);
extern bool gpuds_probe_join_holds(const GpudsMirrorRef *other);
extern bool gpuds_probe_begin_graph(const GpudsMirrorRef *ref, int64 more, GpudsDeviceGraph *graph);
extern bool gpuds_probe_take_graph(const GpudsMirrorRef *ref, bool both, GpudsDeviceGraph *graph);

/* probe_rank.c: entries by their ranks in intervals */
extern bool gpuds_probe_ranks(const GpudsMirrorRef *ref);
extern void gpuds_probe_rank(GpudsMirrorRef *ref, const GpudsInterval *intervals, const uint64 *ranks,
							 int64 n, GpudsRanked *ranked);

/* side_copy.c: side values on a device */
extern bool gpuds_mirror_copy_side(GpudsMirrorRef *ref, const GpudsFile *file, GpudsCountSide *side);

/* peek.c: what a structure has at hand, for the planner */
typedef struct GpudsPeek
{
	GpudsMirror *mirror;
	uint64 serial;  /* of the mirror, as its guard had it */
	double entries; /* that the structure has */
	bool current;   /* they are all that were appended until some milliseconds ago */
	int64 budget;   /* entries that counts may still go through, if the structure has no ranks */
} GpudsPeek;

extern bool gpuds_peek_begin(Relation index, GpudsPeek *peek);
extern int64 gpuds_peek_count(GpudsPeek *peek, const GpudsInterval *interval);
extern bool gpuds_peek_end_of(GpudsPeek *peek, const GpudsInterval *interval, bool last, GpudsEntry *entry);

/* The scan has other intervals, or starts from another place: what is kept is of no use. */
static inline void
gpuds_probe_forget(GpudsMirrorRef *ref)
{
	ref->delta.memtable = 0;
}

#endif /* GPUDS_MIRROR_H */
