/*-------------------------------------------------------------------------
 *
 * mirror.c
 *	  One mirror: its memory, its file, how far it has been brought up.
 *
 * What holds for shared mirrors (mirror_slots.c) and for private ones (temp_mirrors.c).
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "mirror/mirror_internal.h"

/*
 * Makes an unassigned mirror of memory.  owner is its number among those of its
 * kind's device, as of gpuds_device_init.
 */
void
gpuds_mirror_init(GpudsMirror *mirror, GpudsDeviceKind kind, uint64 owner)
{
	memset(mirror, 0, sizeof(GpudsMirror));
	pg_atomic_init_u64(&mirror->serial, 0);
	pg_atomic_init_u64(&mirror->guard, 0);
	pg_atomic_init_u64(&mirror->synced, 0);
	pg_atomic_init_u64(&mirror->replayed, 0);
	pg_atomic_init_u64(&mirror->last_use, 0);
	pg_atomic_init_u64(&mirror->attached, 0);
	pg_atomic_init_u64(&mirror->brought_up, 0);
	pg_atomic_init_u32(&mirror->joined_table, InvalidOid);
	pg_atomic_init_u32(&mirror->copies, 1);
	pg_atomic_init_u32(&mirror->parts, 1);
	pg_atomic_init_u64(&mirror->loader_at, 0);
	pg_atomic_init_u64(&mirror->followed, 0);
	SpinLockInit(&mirror->mutex);
	ConditionVariableInit(&mirror->applier_left);
	pg_atomic_init_u32(&mirror->waiters, 0);
	gpuds_memory_init(&mirror->claim);
	gpuds_stats_init(&mirror->stats);
	gpuds_device_init(&mirror->tree, kind, owner);
}

/* The kind of device that is to look up so many intervals in an index. */
GpudsDeviceKind
gpuds_mirror_wanted(Relation index, int64 intervals)
{
	return RelationUsesLocalBuffers(index) ? GPUDS_ON_CPU_PRIVATE : gpuds_device_wanted(intervals);
}

/*
 * The applier has brought the mirror up to here.
 */
void
gpuds_mirror_set_position(GpudsMirror *mirror, const GpudsJournalPos *pos)
{
	SpinLockAcquire(&mirror->mutex);
	mirror->pos = *pos;
	mirror->ahead = false;
	mirror->loaded = true;
	SpinLockRelease(&mirror->mutex);
}

/*
 * How far a mirror has been brought up; false: it is not loaded.
 */
bool
gpuds_mirror_get_position(GpudsMirror *mirror, GpudsJournalPos *pos)
{
	bool loaded;

	SpinLockAcquire(&mirror->mutex);
	loaded = mirror->loaded;
	*pos = mirror->pos;
	SpinLockRelease(&mirror->mutex);
	return loaded;
}

/*
 * Throws the mirror's structure away.  The caller is the applier.  False: the
 * memory is not back yet.
 */
bool
gpuds_mirror_discard(GpudsMirror *mirror)
{
	/* Scans that still have it pinned are waited for when the tree is dropped. */
	pg_atomic_write_u64(&mirror->guard, 0);
	pg_atomic_write_u64(&mirror->synced, 0);
	pg_atomic_write_u64(&mirror->replayed, 0);
	gpuds_memtable_detach(&mirror->attached);
	/* What was refused it then says nothing of what a load will find. */
	pg_atomic_write_u64(&mirror->claim.rest_until, 0);
	SpinLockAcquire(&mirror->mutex);
	mirror->loaded = false;
	mirror->killed = 0;
	mirror->news = true;
	memset(&mirror->pos, 0, sizeof(mirror->pos));
	SpinLockRelease(&mirror->mutex);
	return gpuds_device_drop(&mirror->tree);
}

/*
 * Makes an unassigned, discarded mirror one of a file's, of that number among them.  The caller is the
 * applier or the only one to know the mirror.
 */
void
gpuds_mirror_assign(GpudsMirror *mirror, Relation index, const GpudsFile *file, GpudsDeviceKind kind,
					int number, uint64 serial)
{
	mirror->tree.kind = kind;
	gpuds_device_place(&mirror->tree, 1);
	mirror->file = *file;
	mirror->number = number;
	mirror->index_oid = RelationGetRelid(index);
	mirror->table_oid = index->rd_index->indrelid;
	pg_atomic_write_u32(&mirror->joined_table, InvalidOid);
	pg_atomic_write_u32(&mirror->copies, 1);
	pg_atomic_write_u32(&mirror->parts, 1);
	pg_atomic_write_u64(&mirror->loader_at, 0);
	pg_atomic_write_u64(&mirror->followed, 0);
	gpuds_memory_init(&mirror->claim);
	gpuds_stats_begin(&mirror->stats);
	pg_write_barrier();
	pg_atomic_write_u64(&mirror->serial, serial);
}
