/*-------------------------------------------------------------------------
 *
 * file.h
 *	  Index files, and what they have in shared memory: their facets.
 *
 * One directory says which index file has what: a memtable, mirrors on devices, a store of
 * side values.  It has an entry for each file that has any of these.
 * A facet lies in a slot of whoever keeps it; the entry has its serial, whose low bits are
 * the number of that slot.
 *
 *	  D1	A file's number, which is its RelFileLocator, has one entry at most, and all
 *			facets of an entry are of one file: that of a locator, a file_id and an
 *			incarnation of the database.
 *
 *			A recycled number has another file_id.  Files of a database that was made
 *			from a template have their originals' file_id, and a database that is made
 *			again may have the numbers that it once had: hence the incarnation.
 *
 *	  D2	An entry changes only under the directory's lock, held exclusively, and after
 *			each change the count of moves of its chain rises, by a full barrier.
 *
 *			So what a backend remembers of an entry holds as long as the count does, and
 *			a lookup that finds the count unchanged takes no lock.
 *
 *	  D3	A serial is never used again.
 *
 *			So a reference to a facet may be out of date, but never names another one.
 *
 *	  D4	A facet is given up in three steps.  It is detached, under the lock; discarded,
 *			without it, which may wait for readers or a device; and its slot becomes free.
 *
 *			So nobody finds a facet that is half gone, and nobody waits for a discard
 *			that it has not asked for.
 *
 * Locking order: applier of a mirror, buffer lock, side lock, directory's lock.  Who holds
 * the directory's lock waits for nothing, and reads no page.
 *
 * A further facet is a number here, and a keeper (GpudsFacetKeeper).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_FILE_H
#define GPUDS_FILE_H

#include "port/atomics.h"
#include "storage/lwlock.h"
#include "utils/rel.h"

#include "gpuds.h"

typedef struct GpudsFile
{
	RelFileLocator locator;
	uint64 file_id; /* of the metapage */
	TransactionId incarnation;
} GpudsFile;

/* Mirrors that a file may have: one on the CPU, and one on each GPU. */
#define GPUDS_FILE_MIRRORS 17

typedef enum GpudsFacet
{
	GPUDS_FACET_MIRROR, /* the first one; then the others */
	GPUDS_FACET_MEMTABLE = GPUDS_FACET_MIRROR + GPUDS_FILE_MIRRORS,
	GPUDS_FACET_SIDE
} GpudsFacet;

#define GPUDS_FACETS (GPUDS_FACET_SIDE + 1)

/* Stores of side values that there can be at a time. */
#define GPUDS_SIDE_STORES 1024

/* A serial: its slot in the low bits, a count above.  0 names nothing. */
#define GPUDS_SLOT_BITS 20

static inline int
gpuds_serial_slot(uint64 serial)
{
	return (int) (serial & ((1 << GPUDS_SLOT_BITS) - 1));
}

/* What a file had at a moment. */
typedef struct GpudsFileEntry
{
	GpudsFile file; /* its locator is what was asked for; the rest means nothing without a facet */
	uint64 facet[GPUDS_FACETS]; /* serials, or 0 */
	uint64 moves;               /* of the chain, as of that moment */
} GpudsFileEntry;

/*
 * Who keeps a kind of facet gives one up on request: detaches it and discards it.  False: somebody is at it;
 * where the caller waits, only after some time.  True also if it is gone already.  Called without the lock.
 */
typedef struct GpudsFacetKeeper
{
	bool (*give_up)(uint64 serial, bool wait);
} GpudsFacetKeeper;

/* directory.c */
extern Size gpuds_file_shmem_size(void);
extern void gpuds_file_shmem_init(void);
extern void gpuds_file_set_keeper(GpudsFacet facet, const GpudsFacetKeeper *keeper);
extern void gpuds_files_lock(LWLockMode mode);
extern void gpuds_files_unlock(void);
extern uint64 gpuds_file_moves(const RelFileLocator *locator);
extern const GpudsFileEntry *gpuds_file_entry(const RelFileLocator *locator);
extern uint64 gpuds_file_facet(const GpudsFile *file, GpudsFacet facet);
extern uint64 gpuds_file_new_serial(int slot);
extern bool gpuds_file_attach(const GpudsFile *file, GpudsFacet facet, uint64 serial);
extern void gpuds_file_detach(const RelFileLocator *locator, GpudsFacet facet);

static inline bool
gpuds_file_is_same(const GpudsFile *a, const GpudsFile *b)
{
	return RelFileLocatorEquals(a->locator, b->locator) && a->file_id == b->file_id &&
		   a->incarnation == b->incarnation;
}

/* forget.c */
extern void gpuds_file_claim(const GpudsFile *file, bool wait);
extern void gpuds_file_forget(const RelFileLocator *locator);
extern void gpuds_files_forget_database(Oid database);
extern void gpuds_files_forget_gone(void);
extern bool gpuds_file_next(int *number, GpudsFileEntry *entry);
extern bool gpuds_file_give_up(const GpudsFileEntry *entry, bool wait);

/* incarnation.c */
extern TransactionId gpuds_database_incarnation(void);

/*
 * slots.c: slots that are handed out and come back, for the directory and for keepers.  All under the
 * directory's lock, held exclusively, but for the count of those that were ever taken.
 */
typedef struct GpudsSlots
{
	pg_atomic_uint32 nused; /* that were ever taken: memory that was never needed is never touched */
	int nslots;
	int first_free;
	int next[FLEXIBLE_ARRAY_MEMBER]; /* of the free list */
} GpudsSlots;

#define GPUDS_NO_SLOT (-1)

extern Size gpuds_slots_size(int nslots);
extern void gpuds_slots_init(GpudsSlots *slots, int nslots);
extern int gpuds_slots_count(const GpudsSlots *slots);
extern int gpuds_slots_take(GpudsSlots *slots, void (*init)(int slot));
extern void gpuds_slots_give(GpudsSlots *slots, int slot);

#endif /* GPUDS_FILE_H */
