/*-------------------------------------------------------------------------
 *
 * engine_change_log.h
 *	  Which entries of a tree the last changes were about, for graphs that are made of it.
 *
 * The log of a tree counts the operations that are applied to it, from 0 on, and has the entries of the last
 * ones if anybody wants to know them.  Invariants:
 *
 *	  - An operation has its number, and its entry is in the log, before the tree changes by it. - A view that
 *	  is taken after gpu_log_begin has all operations below the number that this returns, but for
 *		those that failed.  What has failed is done again under other numbers, or the tree is loaded anew.
 *	  - Numbers below one that was returned before the tree was loaded are of no use: the log says that it
 *	  does
 *		not have them.
 *
 * So if two views of a tree are taken, the first after gpu_log_begin has returned a number, and the log has
 * the entries from there on when the second one is taken, then all entries in which the views differ are
 * among them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_ENGINE_CHANGE_LOG_H
#define GPU_ENGINE_CHANGE_LOG_H

#include <mutex>

#include "kernels/runtime/runtime.h"
#include "kernels/core/entry.h"

/* Entries that a log has at most. */
#define GPU_LOG_ENTRIES (256 * 1024)

/* No view has this many operations. */
#define GPU_LOG_NONE UINT64_MAX

struct GpuChangeLog
{
	std::mutex mutex;
	GpudsEntry
		*entries = NULL;  /* in host memory, that of number n at n % GPU_LOG_ENTRIES; NULL: nobody asked */
	uint64_t first = 0;   /* the least number whose entry may be there */
	uint64_t noted = 0;   /* operations that have numbers */
	uint64_t applied = 0; /* those of them that have been applied */
};

/* The changer is about to apply operations. */
static inline void
gpu_log_note(GpuChangeLog *log, const GpudsOp *ops, int64_t n)
{
	std::lock_guard<std::mutex> guard(log->mutex);
	const int64_t from = n > GPU_LOG_ENTRIES ? n - GPU_LOG_ENTRIES : 0;

	for (int64_t i = from; i < n && log->entries != NULL; i++)
		log->entries[(log->noted + (uint64_t) i) % GPU_LOG_ENTRIES] = ops[i].e;
	log->noted += (uint64_t) n;
}

/* It has done so. */
static inline void
gpu_log_applied(GpuChangeLog *log)
{
	std::lock_guard<std::mutex> guard(log->mutex);

	log->applied = log->noted;
}

/*
 * The tree has been withdrawn, and nobody reads it any more: what it will have is in no log.  ends: nor will
 * anybody ask for it.
 */
static inline void
gpu_log_forget(GpuChangeLog *log, bool ends)
{
	std::lock_guard<std::mutex> guard(log->mutex);

	log->first = log->applied = ++log->noted;
	if (!ends || log->entries == NULL)
		return;
	gpu_host_free(log->entries);
	log->entries = NULL;
}

/*
 * How many operations a view of the tree that is taken now has at least.  From now on entries are logged.
 * GPU_LOG_NONE: there is no memory for that.
 */
static inline uint64_t
gpu_log_begin(GpuChangeLog *log)
{
	std::lock_guard<std::mutex> guard(log->mutex);

	if (log->entries == NULL)
	{
		log->entries = (GpudsEntry *) gpu_host_alloc(GPU_LOG_ENTRIES * sizeof(GpudsEntry));
		log->first = log->noted;
	}
	return log->entries != NULL ? log->applied : GPU_LOG_NONE;
}

/* How many entries the log has from a number on; -1: not all of them.  The caller has the lock. */
static inline int64_t
gpu_log_has(const GpuChangeLog *log, uint64_t from)
{
	if (log->entries == NULL || from == GPU_LOG_NONE || from < log->first ||
		log->noted - from > GPU_LOG_ENTRIES)
		return -1;
	return (int64_t) (log->noted - from);
}

/* The same; a number that may be greater by the time it is used. */
static inline int64_t
gpu_log_since(GpuChangeLog *log, uint64_t from)
{
	std::lock_guard<std::mutex> guard(log->mutex);

	return gpu_log_has(log, from);
}

/*
 * Copies n entries from a number on to device memory; false: the log has not so many.  Waits: the changer
 * must not use their places before they have been copied.
 */
static inline bool
gpu_log_copy(GpuChangeLog *log, GpuStream *s, uint64_t from, GpudsEntry *to, int64_t n)
{
	std::lock_guard<std::mutex> guard(log->mutex);
	const int64_t at = (int64_t) (from % GPU_LOG_ENTRIES);
	const int64_t straight = n < GPU_LOG_ENTRIES - at ? n : GPU_LOG_ENTRIES - at;

	if (gpu_log_has(log, from) < n)
		return false;
	gpu_copy_bus(s, to, log->entries + at, (size_t) straight * sizeof(GpudsEntry));
	gpu_copy_bus(s, to + straight, log->entries, (size_t) (n - straight) * sizeof(GpudsEntry));
	return gpu_finish(s);
}

#endif /* GPU_ENGINE_CHANGE_LOG_H */
