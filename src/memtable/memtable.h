/*-------------------------------------------------------------------------
 *
 * memtable.h
 *	  Memtables: what has been appended to an index and may not be in its mirrors yet.
 *
 * An index file with a mirror that is in use has a memtable in shared memory.  An
 * appender to the file's journal puts the same operations into the memtable before the
 * append returns, hence before its transaction can commit.  Scans search memtable and
 * mirror, and so never wait for anybody to bring the mirror up; a background process, the
 * flusher, moves what is in the memtable into the mirrors (mirror/flusher.c).
 *
 * A mirror is attached to a memtable (by its serial) after it has been brought up to the
 * journal's end, which was looked for when the memtable was there already.  From then on,
 * until the mirror is detached:
 *
 *	  J1	Every operation whose append has returned is in the mirror, or in the
 *			memtable, or in both.
 *	  J2	The memtable's last word on an entry is the journal's, except where an
 *			append is still under way.
 *
 * For J1, appenders look for a memtable after their pages have changed, and operations
 * leave the memtable only when they are in all mirrors that are attached to it.  So a scan
 * reads the memtable first and pins the mirror's version afterwards: what is moved
 * meanwhile it sees twice.
 *
 * A memtable without room for an operation is full: the operation, and later ones, are
 * in the journal only.  Scans that begin then do not use it, nothing of it is flushed any
 * more, and the mirrors are detached, brought up from the journal, and attached to a new
 * one.
 *
 * Generations.  Operations go to the newest generation (kernels/memtable/generation.h).
 * The flusher begins a new one and waits until all appends are over that had begun before:
 * the older one is frozen then.  When it is in the mirrors it is dropped, as soon as no
 * reader has it pinned.  Appenders choose the generation before they append.  Therefore:
 *
 *	  G1	When a generation is frozen and the memtable is not full, all records of the
 *			stripes numbered below the ends noted when the next one began are in it or in
 *			older ones.
 *
 * So these ends are the position of a mirror that the generation has been applied to.
 * For G1, no second generation begins as long as an append is under way that had begun
 * before the memtable was there.
 *
 * Only the flusher takes anything out of a memtable, freezes it, or frees it; there are
 * no memtables as long as it does not run.  Nothing here raises an error, except where it
 * says so.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_MEMTABLE_H
#define GPUDS_MEMTABLE_H

#include "port/atomics.h"

#include "file/file.h"
#include "gpuds.h"
#include "kernels/core/entry.h"
#include "sort/record.h"

/* shared memory (memtable.c) */
extern Size gpuds_memtable_shmem_size(void);
extern void gpuds_memtable_shmem_init(void);

/*
 * memtable.c.  A memtable is named by its serial, which is never used again; 0 names
 * none.
 */

/*
 * The memtable of a file, which is made if there is none that is still of use.
 * Returns its serial, or 0: there is no memory or no flusher.
 */
extern uint64 gpuds_memtable_open(const GpudsFile *file);

/* Is the memtable there, and has it all that was appended since it was? */
extern bool gpuds_memtable_is_complete(uint64 serial);

/* What there is to tell of all memtables. */
typedef struct GpudsMemtableReport
{
	int flusher_pid;     /* 0: there is no flusher */
	size_t memory_total; /* bytes; 0: there are no memtables */
	size_t memory_used;
	int64 memtables;
	int64 operations; /* that they hold */
	/* since the server was started: */
	uint64 flushed;   /* operations that have left for mirrors */
	uint64 overflows; /* times that there was no room for operations, or for a memtable at all */
} GpudsMemtableReport;

/* Takes the directory's lock in shared mode. */
extern void gpuds_memtable_report(GpudsMemtableReport *report);

/* Wakes the flusher: there is something for it to do. */
extern void gpuds_flusher_wake(void);

/*
 * Attaching, for a mirror's applier.  oldest is asked for before the journal is read
 * and given to gpuds_memtable_attach afterwards: if operations have left the memtable
 * meanwhile, the mirror may lack some of them.  False: it does, or the memtable
 * is gone.  *attached becomes the memtable's serial, 0 when the mirror is detached.
 */
extern uint64 gpuds_memtable_oldest(uint64 serial);
extern bool gpuds_memtable_attach(uint64 serial, uint64 oldest, pg_atomic_uint64 *attached);
extern void gpuds_memtable_detach(pg_atomic_uint64 *attached);

/*
 * write.c: putting in what is appended.
 */

/* Files that one append may be to. */
#define GPUDS_APPEND_FILES 4

/*
 * Announces an append to nfiles files, of n records to the one that gets most, which goes on
 * until gpuds_memtable_end.  To be called before pages change; cleanup of an error calls
 * gpuds_memtable_end, too.
 */
extern void gpuds_memtable_begin(const RelFileLocator *locators, int nfiles, int64 n);

/*
 * A record has been appended to one of the append's files: number is its number in the
 * stripe, block its page.  To be called before anything that may raise an error.  False: nor
 * need others be added that are in the file's pages already.
 */
extern bool gpuds_memtable_add(int file, int stripe, uint64 number, BlockNumber block,
							   const GpudsEntry *entry, bool is_delete);
extern void gpuds_memtable_end(void);

/*
 * write.c: a file's journal says something about entries that is not appended, and that no memtable can have:
 * if the file has one, it is full from now on.  To be called after the pages have changed.
 */
extern void gpuds_memtable_overrule(const RelFileLocator *locator);

/*
 * kill.c: entries whose rows are dead for everybody leave the mirrors before VACUUM comes.
 * A kill is a hint: it is not in the journal, and may be forgotten.  When VACUUM has
 * been there, the heap may give the TID to a live row with the same key; so a kill carries a
 * stamp from before its entry was read, and is void if a bulk delete has ended since.
 */

/* The present stamp of a memtable. */
extern uint64 gpuds_memtable_stamp(uint64 serial);
extern void gpuds_memtable_kill(uint64 serial, uint64 stamp, const GpudsEntry *entries, int n);

/* A bulk delete is about to return; its tombstones have been appended. */
extern void gpuds_memtable_bulk_deleted(const RelFileLocator *locator);

/*
 * memtable_read.c: what a memtable says to a scan.
 */

/*
 * memtable_collect's answer.  -1: *attached, the serial of the memtable that a mirror is attached to,
 * was another one, or the memtable is gone; then nothing was learned.
 */
extern int64 gpuds_memtable_collect(uint64 serial, pg_atomic_uint64 *attached, const GpudsScan *scan,
									bool forward, bool sorted, GpudsOp *out, int64 cap);

/*
 * flush.c: the flusher's side.
 */

/* A frozen generation, for the mirrors to take. */
typedef struct GpudsFrozen
{
	uint64 serial;     /* of its memtable */
	uint64 generation; /* its number */
	GpudsFile file;
	/* the position of a mirror that it has been applied to */
	uint64 end[GPUDS_STRIPES];
	BlockNumber block[GPUDS_STRIPES];
	int64 n;      /* its operations */
	int64 nkills; /* that it had when it was looked at */
} GpudsFrozen;

/* The calling process is the flusher, until it says that it is not. */
extern void gpuds_flusher_begin(void);
extern void gpuds_flusher_end(void);

/* What the flusher is to do about a memtable. */
typedef enum GpudsFlushStep
{
	GPUDS_FLUSH_NONE,  /* there is no memtable of this number, nor of a higher one */
	GPUDS_FLUSH_IDLE,  /* nothing, until somebody wakes it */
	GPUDS_FLUSH_LATER, /* look again soon: somebody is at it, or it is not old enough */
	GPUDS_FLUSH_APPLY  /* apply what is in *frozen to all mirrors that are attached, then drop it */
} GpudsFlushStep;

/* Memtables are numbered from 0 on. */
extern GpudsFlushStep gpuds_flush_step(int number, GpudsFrozen *frozen);

/*
 * The last words of a frozen generation on all entries, ascending by entry, but for
 * what a mirror at position has already.  ops has room for frozen->n.  *beyond: some
 * are not below frozen->end.
 */
extern int64 gpuds_flush_read(const GpudsFrozen *frozen, const uint64 *position, GpudsOp *ops, bool *beyond);

/* The kills of a frozen generation that are not void, as deletions in any order; ops has room for nkills. */
extern int64 gpuds_flush_read_kills(const GpudsFrozen *frozen, GpudsOp *ops);

/* Says of how many mirrors that are attached; -1: one of them has not had the generation. */
typedef int (*GpudsFlushCheck)(const GpudsFrozen *frozen);

/*
 * Drops a frozen generation that is in all mirrors that are attached, as check, which is
 * called under the directory's lock, confirms.  If none is attached, the memtable is of no
 * more use.
 */
extern void gpuds_flush_drop(const GpudsFrozen *frozen, GpudsFlushCheck check);

#endif /* GPUDS_MEMTABLE_H */
