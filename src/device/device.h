/*-------------------------------------------------------------------------
 *
 * device.h
 *	  What a mirror asks of the device that holds its structure.
 *
 * A device keeps one GpudsDeviceTree per mirror.  The functions that change
 * the tree (load_*, apply, drop) are called by one process at a time, the
 * mirror's applier; scan and verify by anybody at any time, also while a change
 * is under way: they see the version that was published last.
 *
 * The CPU device (cpu_device.c) runs everything in the calling backend, on an arena
 * in the main shared memory segment, or in private memory for temporary
 * indexes.  There, no function raises an error or checks for interrupts, so that
 * a pin is never held over a longjmp.
 *
 * The CUDA device (cuda.c) is another process (queue.h, worker.c).  A tree there
 * is known by its number, and pins are the engine's: a backend holds none.  So
 * scan, count, load_begin, load_add, load_end, apply and verify wait interruptibly, and
 * an interrupt may raise an error.  What was asked for may then be done a little
 * later, or not at all, but not after anything that is asked of the same tree
 * from then on.  That means:
 *	  - A scan or a count has no effect to undo.
 *	  - An apply that was interrupted may have changed the tree.  The mirror's
 *		position has not moved, so the same operations are applied again.
 *	  - A load is begun and ended within PG_ENSURE_ERROR_CLEANUP of load_cancel, which
 *		drops the tree, however far the load has come: its last request may be done.
 *		load_cancel and drop do not raise errors nor check for interrupts; they
 *		wait for some seconds at most.  If that is not enough, the worker drops the
 *		tree when it can.  So a tree that is dropped is nobody's concern any more.
 *	  - The caller holds no lock or pin that others need to make progress.  A
 *		mirror's applier is released by error cleanup.
 *
 * The device may be lost at any time: its process ends, or says so.  Then all
 * trees of that epoch are gone (gpuds_device_usable), scans say "withdrawn",
 * the other functions GPUDS_DEVICE_LOST.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_DEVICE_H
#define GPUDS_DEVICE_H

#include "gpuds.h"

#include "port/pg_bitutils.h"

#include "device/queue.h"
#include "kernels/cpu/cpu_structure.h"

typedef enum GpudsDeviceKind
{
	GPUDS_ON_CPU,        /* shared arena */
	GPUDS_ON_CUDA,       /* GPU memory */
	GPUDS_ON_CPU_PRIVATE /* this backend's own arena */
} GpudsDeviceKind;

#define GPUDS_DEVICE_KINDS 3

/* Kinds that all sessions share: a file may have a mirror on each. */
#define GPUDS_SHARED_KINDS 2

typedef enum GpudsDeviceStatus
{
	GPUDS_DEVICE_OK,
	GPUDS_DEVICE_NO_MEMORY, /* nothing was changed, or it may be done again */
	GPUDS_DEVICE_LOST,
	GPUDS_DEVICE_TOO_LARGE,   /* more entries than a tree can have; nothing was changed */
	GPUDS_DEVICE_NO_STRUCTURE /* the device does not have that structure */
} GpudsDeviceStatus;

/* What one card has of a tree: the entries of a range. */
typedef struct GpudsCudaPart
{
	pg_atomic_uint64 epoch; /* worker that may hold memory for it, 0: none */
	pg_atomic_uint64 entries;
	pg_atomic_uint64 bytes;
	GpudsEntry last; /* no entry of the part is higher; of the last part, the highest number */
} GpudsCudaPart;

/* Its parts are in the order of their ranges, and of their cards (cuda_layout.c). */
typedef struct GpudsCudaTree
{
	uint32 number;           /* on each of its cards */
	pg_atomic_uint64 layout; /* moves when a load begins, and when it has ended; odd in between */
	GpudsCudaPart first;
	pg_atomic_uint64 side;       /* name of the copy of side values that it has, perhaps; 0: none ... */
	pg_atomic_uint64 side_bytes; /* ... and its memory */
} GpudsCudaTree;

/* Room for a tree, and for a load, of any structure on a CPU device. */
typedef union GpudsCpuTree
{
	CpuTree common;
	char bytes[CPU_TREE_BYTES];
} GpudsCpuTree;

typedef union GpudsCpuBuild
{
	uint64 alignment;
	char bytes[CPU_BUILD_BYTES];
} GpudsCpuBuild;

/*
 * The parts of all kinds stay in place when a mirror's slot changes its kind:
 * readers that are late may still pin the CPU tree's version.
 */
typedef struct GpudsDeviceTree
{
	GpudsDeviceKind kind;
	uint8 structure;        /* what was loaded last; changes only while it is withdrawn */
	pg_atomic_uint32 cards; /* bits, of the device: that it is on, or is to be loaded on; likewise */
	int refused;            /* the card that has last had no memory for it; the applier's */
	uint64 owner;           /* its name among pins */
	GpudsEntry packed;      /* where the next gpuds_device_pack goes on; the applier's */
	GpudsCpuTree cpu;       /* on a CPU device */
	GpudsCudaTree cuda;
} GpudsDeviceTree;

/* Shares that a launch is counted in, divided among the small scans of it. */
#define GPUDS_LAUNCH_SHARES 720720

/* What the CUDA device has done for this backend since it started. */
typedef struct GpudsDeviceWork
{
	uint64 small;        /* scans that shared launches */
	uint64 small_shares; /* of launches: GPUDS_LAUNCH_SHARES are one */
	uint64 launches;     /* other kernels launched */
	uint64 device_ns;
	uint64 bus_bytes;
} GpudsDeviceWork;

extern GpudsDeviceWork gpuds_device_work;

/* shared memory (cpu_device.c, queue.c) */
extern Size gpuds_device_shmem_size(void);
extern void gpuds_device_shmem_init(void);

/*
 * A device has cards, numbered from 0, each with memory of its own: a CPU device one, the CUDA device as many
 * as there are GPUs, or none.  A tree is on one card, or divided by key ranges among several.
 */
extern int gpuds_device_cards(GpudsDeviceKind kind);
extern bool gpuds_device_card_serves(GpudsDeviceKind kind, int card);
extern bool gpuds_device_card_stalls(GpudsDeviceKind kind, int card);
extern size_t gpuds_device_memory_used(GpudsDeviceKind kind, int card);
extern size_t gpuds_device_memory_size(GpudsDeviceKind kind, int card);

/* Does any of its cards serve? */
extern bool gpuds_device_serves(GpudsDeviceKind kind);

/* Bytes that a tree can have at most, on as many cards as that takes; 0 if there is none. */
extern size_t gpuds_device_largest(GpudsDeviceKind kind);

/* Of bytes on n cards, as many as a tree can have there in a number of parts, which are alike. */
extern size_t gpuds_device_in_parts(const size_t *bytes, int n, int parts);

/* The least number of cards that can have a tree of so many bytes, whatever is there; 0: they cannot. */
extern int gpuds_device_parts_for(GpudsDeviceKind kind, size_t bytes);

/* What a kind of device is called in views; and one of its cards, or some by bits, if it has several. */
extern const char *gpuds_device_name(GpudsDeviceKind kind);
extern const char *gpuds_device_card_name(GpudsDeviceKind kind, int card);
extern const char *gpuds_device_cards_name(GpudsDeviceKind kind, uint32 cards);

/* The number by which the user knows a card; -1: the device's card has none. */
extern int gpuds_device_card_id(GpudsDeviceKind kind, int card);

/* Does another process do the work, so that a call costs a round trip? */
extern bool gpuds_device_is_remote(GpudsDeviceKind kind);

/* Are its trees the calling backend's own? */
extern bool gpuds_device_is_private(GpudsDeviceKind kind);

/* Does gpuds.device let the session use the device; does it ask for it by name? */
extern bool gpuds_device_may_use(GpudsDeviceKind kind);
extern bool gpuds_device_insists(GpudsDeviceKind kind);

/* Bytes that a tree may hold without using them. */
extern size_t gpuds_device_slack_bytes(GpudsDeviceKind kind);

/*
 * A tree in zeroed memory starts out withdrawn.  number names it among pins and
 * on the GPU: unique among live trees, not 0 but less than GPU_MAX_TREES + 1.
 */
extern void gpuds_device_init(GpudsDeviceTree *tree, GpudsDeviceKind kind, uint64 number);

/*
 * The cards of a tree, by bits; and where its next load is to be, which the applier says while it is not
 * loaded.
 */
static inline uint32
gpuds_device_places(const GpudsDeviceTree *tree)
{
	return pg_atomic_read_u32(&unconstify(GpudsDeviceTree *, tree)->cards);
}

static inline void
gpuds_device_place(GpudsDeviceTree *tree, uint32 cards)
{
	pg_atomic_write_u32(&tree->cards, cards);
}

/* Parts that a tree is divided into, alike after a load, each on another card. */
static inline int
gpuds_device_parts(const GpudsDeviceTree *tree)
{
	return pg_popcount32(gpuds_device_places(tree));
}

/* The card of a tree, or of its first part. */
static inline int
gpuds_device_card(const GpudsDeviceTree *tree)
{
	return pg_rightmost_one_pos32(gpuds_device_places(tree));
}

/* The card that has last had no memory for a load or a change of the tree; for the applier. */
static inline int
gpuds_device_refused(const GpudsDeviceTree *tree)
{
	return gpuds_device_places(tree) >> tree->refused & 1 ? tree->refused : gpuds_device_card(tree);
}

/* Is what the tree holds still there?  False only on a CUDA device that was lost. */
extern bool gpuds_device_usable(GpudsDeviceTree *tree);

/*
 * Entries that a tree can have at most, whatever the memory, and that one of its parts can have.  Nobody
 * needs to begin a load of more.
 */
extern uint64 gpuds_device_max_entries(GpudsDeviceKind kind);
extern uint64 gpuds_device_max_part(GpudsDeviceKind kind);

/*
 * Does the device have a structure, one of this library?  A load of another cannot
 * begin.  The CUDA device may be of another build.
 */
extern bool gpuds_device_has_structure(GpudsDeviceKind kind, int structure);

/*
 * Bytes that an entry of a tree that was just loaded takes, about, but for
 * gpuds_device_slack_bytes.  equal_keys: there are entries of one key all over it.
 */
extern double gpuds_device_entry_bytes(GpudsDeviceKind kind, int structure, int nwords, int fill_percent,
									   bool equal_keys);

/*
 * The device that the session's scans of a number of intervals should use: with "auto", a GPU
 * only for as many as make up for the round trip.
 */
extern GpudsDeviceKind gpuds_device_wanted(int64 intervals);

/*
 * The devices that such a scan of a shared index may use, in the order in which it should try
 * them; returns how many.  Under "auto" a scan that is faster on a CPU tries the GPU last.
 */
extern int gpuds_device_order(int64 intervals, GpudsDeviceKind order[GPUDS_SHARED_KINDS]);

/* A scan that asks the CUDA device for no more is small: it shares a launch with others. */
#define GPUDS_SMALL_INTERVALS GPU_SMALL_INTERVALS
#define GPUDS_SMALL_ENTRIES GPU_SMALL_ENTRIES

/*
 * Would the session send a scan to another process, and has the scan too many intervals to be small
 * there?  weight: of how many intervals the scan is worth the work.
 */
extern bool gpuds_device_sends_large(int64 intervals, int64 weight);

/* Bulk load.  The tree is withdrawn. */
typedef struct GpudsDeviceLoad
{
	GpudsDeviceTree *tree; /* NULL: not begun, or ended */
	GpudsEntry *entries;   /* for the next entries */
	int64 capacity;
	GpudsCpuBuild build;
	GpudsStagingSpan span;
	GpudsEntry *buffer; /* NULL: entries are in span */
	/* of a tree in several parts: */
	int nwords;
	int fill_percent;
	int part;       /* that is being loaded */
	uint64 share;   /* entries that a part is to have */
	uint64 in_part; /* that this one has */
} GpudsDeviceLoad;

/*
 * Begins a load of a structure, which must be one of this library; *load must be zero.  entries: about how
 * many there are to be, of which each part of the tree has as many as any other.  Then, until all are in: put
 * up to capacity entries into load->entries (which may move), strictly ascending over all calls, and call
 * load_add.
 */
extern GpudsDeviceStatus gpuds_device_load_begin(GpudsDeviceTree *tree, GpudsDeviceLoad *load, int structure,
												 int nwords, int fill_percent, uint64 entries);
extern GpudsDeviceStatus gpuds_device_load_add(GpudsDeviceLoad *load, int64 n);
extern GpudsDeviceStatus gpuds_device_load_end(GpudsDeviceLoad *load);
/* Harmless if the load was not begun or has ended. */
extern void gpuds_device_load_cancel(GpudsDeviceLoad *load);

/*
 * Does the device sort operations itself?  Then apply takes them in any order,
 * as of the journal, and the highest order of an entry has the last word.  Else
 * strictly ascending by entry.
 */
extern bool gpuds_device_sorts(const GpudsDeviceTree *tree);

/*
 * Does the tree's structure know on its device how many entries are before another, so that it counts an
 * interval without going through it?  The tree has been loaded.
 */
extern bool gpuds_device_has_ranks(const GpudsDeviceTree *tree);

/* Operations to apply at a time, at most. */
extern int64 gpuds_device_apply_ops(const GpudsDeviceTree *tree);
extern GpudsDeviceStatus gpuds_device_apply(GpudsDeviceTree *tree, const GpudsOp *ops, int64 n);

/*
 * Packs a piece of what changes have left partly filled, so that further ones find memory; the caller is the
 * applier.  The next call goes on behind it.  *bytes: memory that was gained.  False: the end of the tree was
 * reached, there is no memory to pack any of it, or the device has no need of it; the next call begins anew.
 */
extern bool gpuds_device_pack(GpudsDeviceTree *tree, size_t *bytes);

/*
 * The next entries of a scan, at most cap; fewer: the scan is at its end.
 * -1: the tree was withdrawn or, at the time of the pin, *guard was not what
 * was expected (the tree is incomplete, or serves another index by now).  Then
 * the scan has not moved.
 */
extern int64 gpuds_device_scan(GpudsDeviceTree *tree, pg_atomic_uint64 *guard, uint64 expected,
							   GpudsScan *scan, bool forward, GpudsEntry *out, int64 cap);

/* Which entry of an interval has a rank there, and how many it has. */
typedef EntryRanked GpudsRanked;

/* Intervals that are asked about at a time, at most. */
#define GPUDS_MOST_RANKED (16 * 1024)

/*
 * Finds the entry of each of n intervals that has a rank in it, from 0 on, in a structure that has ranks.
 * Intervals may be equal, and in any order.  Each answer is of one version of the tree, or of one of each
 * part.  False as -1 above.
 */
extern bool gpuds_device_rank(GpudsDeviceTree *tree, pg_atomic_uint64 *guard, uint64 expected,
							  const GpudsInterval *intervals, const uint64 *ranks, int64 n,
							  GpudsRanked *ranked);

/* TIDs where the device has put them. */
typedef struct GpudsTids
{
	const uint64 *tids; /* GpudsEntry.t & ENTRY_TID_MASK, ascending */
	int64 n;
	GpudsStagingSpan span;
	void *own; /* palloc'd, in place of the span */
} GpudsTids;

/*
 * A piece of a forward scan, whose intervals may be in any order, of which only the TIDs are wanted: at most
 * cap, fewer also where there are more.  At the end of the scan, scan->next is scan->n.  False
 * as -1 above.  For devices that sort.  What is in *tids is to be freed soon, and
 * before anything else is asked of the device, also after an error.
 */
extern bool gpuds_device_scan_tids(GpudsDeviceTree *tree, pg_atomic_uint64 *guard, uint64 expected,
								   GpudsScan *scan, int64 cap, GpudsTids *tids);
extern void gpuds_device_free_tids(GpudsTids *tids);

/* A visibility map for a count may be so long, with the rows: 32,505,856 heap pages without. */
#define GPUDS_COUNT_MAP_BYTES (GPUDS_PIECE_BYTES - GPUDS_UNIT_BYTES)

/* Columns that a count adds up at a time. */
#define GPUDS_AGG_COLUMNS GPU_AGG_COLUMNS

/* A copy of side values, and its pages that are up to date. */
typedef struct GpudsCountSide
{
	uint64 name;
	const uint8 *map; /* two bits a page, as those of a visibility map */
	size_t map_bytes;
} GpudsCountSide;

/* Groups that are wanted of what is counted (kernels/core/group_spec.h). */
typedef struct GpudsCountGroups
{
	const GroupSpec *spec; /* group_spec_bytes, GPUDS_GROUP_SPEC_BYTES at most; the table within its limit */
	const uint32 *labels;  /* of each interval of the scan, if the spec has labels */
	GpudsCountSide side;   /* if the spec is of side values */
} GpudsCountGroups;

/* Are groups wanted in order?  Then a count is of a piece of the scan, which may end within an interval. */
static inline bool
gpuds_count_is_in_order(const GpudsCountGroups *groups)
{
	return groups && groups->spec->most > 0;
}

/* Bytes that a spec without labels may have, and its table. */
#define GPUDS_GROUP_SPEC_BYTES ((size_t) GPUDS_UNIT_BYTES / 2)
#define GPUDS_GROUP_TABLE_BYTES ((size_t) GPUDS_PIECE_BYTES)

/* Bytes that the slots of groups in order may have. */
#define GPUDS_GROUP_RUNS_BYTES ((size_t) GPUDS_PIECE_BYTES / 2)

/*
 * What entries that are counted are joined with: those of another tree, on the same card.  What is known of
 * its rows is as in a GpudsCountSpec.
 */
typedef struct GpudsCountJoin
{
	EntryJoin join;
	GpudsDeviceTree *tree;
	pg_atomic_uint64 *guard;
	uint64 expected;
	const unsigned char *map;
	size_t map_bytes;
	PageRows rows;
	bool full;
	const GpudsEntry *touched; /* keys that are handed back in any case, ascending */
	int64 ntouched;            /* GPUDS_JOIN_TOUCHED at most */
} GpudsCountJoin;

/* Keys of which the memtable has entries, and keys that are handed back, at most. */
#define GPUDS_JOIN_TOUCHED (64 * 1024)
#define GPUDS_JOIN_ROOM (32 * 1024)

/* Where the vertices of edges are in entries. */
typedef GpuEdges GpudsCountEdges;

typedef struct GpudsDeviceGraph GpudsDeviceGraph;

/* What is to be counted. */
typedef struct GpudsCountSpec
{
	/*
	 * The heap pages that are all-visible: two bits a page, as PostgreSQL's visibility map
	 * has them, but no page headers.  Pages behind its end are not all-visible.
	 */
	const unsigned char *map;
	size_t map_bytes;
	/*
	 * What the snapshot makes of rows of other pages: entries of those that are seen are counted, those that
	 * are unseen are left out.  No slots: every entry on such a page is handed back.
	 */
	PageRows rows;
	bool unsorted; /* points are in any order, and some equal, which count once; neither each nor groups */
	bool full;     /* the map says that all pages are all-visible that entries may lead to */
	bool partial;  /* entries are wanted of the others, and of those counted: */
	const AggColumn *agg_columns;
	int nagg;                       /* GPUDS_AGG_COLUMNS at most */
	bool each;                      /* a sum for each interval */
	bool bits;                      /* with each, without columns: only whether it is above 0 */
	const GpudsCountGroups *groups; /* NULL: none; else partial, and what is above does not matter */
	const GpudsCountJoin *join;     /* the same; there are no groups then */
	const GpudsCountEdges *edges;   /* the same; what is counted is added to the session's graph, ... */
	const GpudsDeviceGraph *graph;  /* ... which is this */
} GpudsCountSpec;

/* Bytes that rows take of GPUDS_COUNT_MAP_BYTES. */
static inline size_t
gpuds_count_rows_bytes(const PageRows *rows)
{
	return TYPEALIGN(sizeof(uint64), page_rows_bytes(rows->slots, rows->npages, rows->words));
}

/* Bytes that a map and rows take. */
static inline size_t
gpuds_known_rows_bytes(size_t map_bytes, const PageRows *rows)
{
	return TYPEALIGN(sizeof(uint64), map_bytes) + gpuds_count_rows_bytes(rows);
}

/* Bytes that the map of a count's side values takes of them. */
static inline size_t
gpuds_count_side_bytes(const GpudsCountSpec *spec)
{
	return spec->groups ? TYPEALIGN(sizeof(uint64), spec->groups->side.map_bytes) : 0;
}

/*
 * Bytes that map and rows of a count take, and those that it is joined with, or the map of side values; with
 * more than GPUDS_COUNT_MAP_BYTES it is too large.
 */
static inline size_t
gpuds_count_known_bytes(const GpudsCountSpec *spec)
{
	const GpudsCountJoin *join = spec->join;
	const size_t bytes = gpuds_known_rows_bytes(spec->map_bytes, &spec->rows) + gpuds_count_side_bytes(spec);

	if (join == NULL)
		return bytes;
	return bytes + gpuds_known_rows_bytes(join->map_bytes, &join->rows) + join->ntouched * sizeof(GpudsEntry);
}

/* What a device has counted. */
typedef struct GpudsCount
{
	int64 counted;             /* entries on all-visible heap pages, and of rows that are seen */
	const uint64 *tids;        /* of the others, as in GpudsTids; if not aggregated */
	const GpudsEntry *entries; /* the others, in no order; if aggregated */
	int64 n;
	const uint64 *results; /* if aggregated: of each interval, or one, as GPU_AGGREGATE has them; or ... */
	const uint32 *bits;    /* ... as bits */
	int64 nresults;
	const uint64 *groups; /* slots of the table, if groups are wanted ... */
	int64 ngroups;
	int64 filtered; /* ... entries that did not pass the filter ... */
	int64 left_out; /* ... and those of groups that are not wanted */
	uint64 joined;  /* if it is a join, rows of the result; groups are EntryJoinKeys that are handed back */
	bool same;      /* if edges are made: of the version that the tree had when the graph was begun */
	GpudsStagingSpan span;
	void *own_results; /* palloc'd, in place of the span */
	void *own_others;
	GpudsStagingSpan spans[GPUDS_MOST_CARDS]; /* of parts that have answered, until that is among the own */
} GpudsCount;

/* Words of one of a count's groups. */
static inline size_t
gpuds_count_group_words(const GpudsCountSpec *spec)
{
	return spec->join ? sizeof(EntryJoinKey) / sizeof(uint64)
					  : group_slot_words(spec->groups->spec->nterms, spec->groups->spec->nside);
}

/* The rows of a result, and what has been aggregated of its i-th column. */
static inline int64
gpuds_count_rows(const GpudsCount *count, const GpudsCountSpec *spec, int64 result)
{
	return (int64) count->results[result * gpu_result_words(spec->nagg)];
}

static inline void
gpuds_count_partial_agg(const GpudsCount *count, const GpudsCountSpec *spec, int64 result, int i,
						PartialAgg *partial)
{
	memcpy(partial, count->results + result * gpu_result_words(spec->nagg) + 1 + GPU_PARTIAL_AGG_WORDS * i,
		   sizeof(PartialAgg));
}

typedef enum GpudsCountStatus
{
	GPUDS_COUNT_OK,
	GPUDS_COUNT_WITHDRAWN, /* as -1 of gpuds_device_scan */
	/* map and rows, or what the others take (half of GPUDS_PIECE_BYTES), are above their limit */
	GPUDS_COUNT_TOO_LARGE
} GpudsCountStatus;

/*
 * Does the device support every GpudsCountSpec?  If not: only partial aggregates, of no columns, one for all.
 */
extern bool gpuds_device_aggregates(const GpudsDeviceTree *tree);

/* Is what one tree has counted and joined with another by a card that has both? */
extern bool gpuds_device_joins(GpudsDeviceTree *tree, GpudsDeviceTree *other);

/*
 * Counts a piece of a forward scan: as much of its next intervals as goes with a
 * request, and of groups in order as many as there is room for.  At the end of the scan,
 * scan->next is scan->n.  Unless the status is GPUDS_COUNT_OK, the scan has not moved.  What is
 * in *count is to be freed as *tids above, whatever the status.
 */
extern GpudsCountStatus gpuds_device_count(GpudsDeviceTree *tree, pg_atomic_uint64 *guard, uint64 expected,
										   GpudsScan *scan, const GpudsCountSpec *spec, GpudsCount *count);
extern void gpuds_device_free_count(GpudsCount *count);

/*
 * Points that a count with spec->unsorted may have, which is done at once; 0: the device does not sort them.
 */
extern int64 gpuds_device_most_unsorted(const GpudsDeviceTree *tree, const GpudsCountSpec *spec);

/*
 * Copies of side values (kernels/runtime/side_pages.h), one of a tree at most.  A copy goes with its tree, or
 * with the device.  Those who begin and put are one process at a time.  Requests of a copy that is gone, or
 * of a tree whose guard is not what was expected, are answered by GPUDS_DEVICE_LOST.  GPUDS_DEVICE_NO_MEMORY:
 * nothing has changed.  All but drop wait interruptibly; what was asked for before an error may be done
 * later, before anything that is asked from then on.
 */

/* Does the device keep copies? */
extern bool gpuds_device_keeps_side(const GpudsDeviceTree *tree);

/* The name of a tree's copy, which may be gone, 0: it has none; and the memory that it has. */
extern uint64 gpuds_device_side(GpudsDeviceTree *tree);
extern size_t gpuds_device_side_bytes(GpudsDeviceTree *tree);

/* Begins a copy without pages, in place of the tree's: of so many rows of a page, of so many bytes each. */
extern GpudsDeviceStatus gpuds_device_side_begin(GpudsDeviceTree *tree, pg_atomic_uint64 *guard,
												 uint64 expected, uint64 name, int rows, int row_bytes);

/* Pages of so many bytes that are put at a time, at most. */
#define GPUDS_SIDE_PUT_BYTES ((size_t) 2 * 1024 * 1024)

/*
 * What is put.  copy is called when there is staging memory for it, raises nothing, and takes little time.
 * False: nothing is to be put, and the copy may be gone.
 */
typedef struct GpudsSidePut
{
	const uint32 *blocks; /* numbers of the pages */
	int n;
	size_t page_bytes;
	bool (*copy)(void *arg, char *to); /* the pages' values, one behind the other */
	void *arg;
} GpudsSidePut;

extern GpudsDeviceStatus gpuds_device_side_put(GpudsDeviceTree *tree, uint64 name, const GpudsSidePut *put);

/* Gives the memory of a tree's copy back; false: it has none, or it is not back yet.  Raises no error. */
extern bool gpuds_device_side_drop(GpudsDeviceTree *tree);

/*
 * The session's graph on a device, of which there is one at most.  It is made of what counts with edges find,
 * and does not depend on their trees, but is on one card.  Who begins or takes one drops it, also after an
 * error.
 */
struct GpudsDeviceGraph
{
	GpudsDeviceKind kind;
	bool weighted;   /* its edges have weights; said by who begins or takes it */
	uint64 epoch;    /* of the worker that has it; 0: there is none */
	bool based;      /* on one that was made before, for another call, ... */
	bool near;       /* ... of the tree, which had changed little since when this one was taken, ... */
	int64 differ;    /* ... with so many other edges */
	bool by_changes; /* only those entries were looked at that could make a difference */
};

/* Bytes of a step's input, or of its output, at most. */
#define GPUDS_GRAPH_BYTES ((size_t) 4 * 1024 * 1024)

/* A step (GpuGraphStep says what its fields mean), and what came of it. */
typedef struct GpudsGraphStep
{
	GpuGraphStep step;
	uint32 tree; /* its number on the device */
	bool each;
	int64 n;
	const void *input; /* NULL: there is none */
	size_t input_bytes;
	int64 next;
	int64 cap;
	void *output; /* NULL: there is none */
	size_t item_bytes;

	int64 found;
	int64 counted;
	int64 taken;
	uint64 joined;
} GpudsGraphStep;

/* Does the device keep graphs? */
extern bool gpuds_device_keeps_graphs(const GpudsDeviceTree *tree);

/*
 * Begins a graph without edges, with room for so many, where a tree is; *graph is zero but for what is said
 * there, or was one.
 */
extern GpudsDeviceStatus gpuds_device_graph_begin(GpudsDeviceTree *tree, int64 edges,
												  GpudsDeviceGraph *graph);

/* The same on the base of the one that the device keeps of the tree, whose edges lead both ways or not. */
extern GpudsDeviceStatus gpuds_device_graph_take(GpudsDeviceTree *tree, bool both, GpudsDeviceGraph *graph);

/* The graph has all its edges, which lead both ways or not.  *vertices: how many it has. */
extern GpudsDeviceStatus gpuds_device_graph_end(GpudsDeviceGraph *graph, bool both, int64 *vertices);

/* Takes a step; waits interruptibly.  GPUDS_DEVICE_LOST: there is no graph any more. */
extern GpudsDeviceStatus gpuds_device_graph_step(const GpudsDeviceGraph *graph, GpudsGraphStep *step);

/*
 * Gives the graph's memory back, if there is one; keep: or lets the device keep it as a base of others.
 * Raises no error.
 */
extern void gpuds_device_graph_drop(GpudsDeviceGraph *graph, bool keep);

/*
 * Takes the tree out of service and gives its memory back, after waiting for
 * the readers that still have it pinned (they are never slow).  False: the
 * device was not done in time, it holds the memory for a little longer.
 */
extern bool gpuds_device_drop(GpudsDeviceTree *tree);

/* Memory that the tree holds, in all or on one card; on a card that is lost: none. */
extern size_t gpuds_device_bytes(GpudsDeviceTree *tree);
extern size_t gpuds_device_bytes_on(GpudsDeviceTree *tree, int card);
extern uint64 gpuds_device_entries(GpudsDeviceTree *tree);

typedef enum GpudsDeviceVerdict
{
	GPUDS_TREE_GOOD,
	GPUDS_TREE_DAMAGED, /* why says how */
	GPUDS_TREE_GONE     /* withdrawn or lost: nothing was learned */
} GpudsDeviceVerdict;

/* Checks the structure's invariants; the caller is the applier. */
extern GpudsDeviceVerdict gpuds_device_verify(GpudsDeviceTree *tree, char *why, size_t whylen);

#endif /* GPUDS_DEVICE_H */
