/*-------------------------------------------------------------------------
 *
 * load.c
 *	  gpuds_index_load and gpuds_index_evict.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "fmgr.h"
#include "storage/ipc.h"

#include "admin/admin.h"

PG_FUNCTION_INFO_V1(gpuds_index_load);
PG_FUNCTION_INFO_V1(gpuds_index_evict);

/*
 * gpuds_index_load(index regclass) returns boolean
 *
 * Loads the index's mirror onto the session's device, or brings it up to date.
 * False: there is no room for it on any device, or no index file (an unlogged
 * index on a standby).
 */
Datum
gpuds_index_load(PG_FUNCTION_ARGS)
{
	Relation heap;
	Relation index = gpuds_admin_open(PG_GETARG_OID(0), &heap);
	GpudsMirrorRef ref = { NULL, 0 };

	if (gpuds_admin_has_file(index))
	{
		GpudsIndexInfo info = *gpuds_index_info(index);
		GpudsMirrorSource source;

		source.index = index;
		source.layout = &info.layout;
		source.file_id = info.file_id;
		source.fillfactor = GpudsGetFillfactor(index);
		/* Asked for by name: a device that had no room is asked again. */
		if (gpuds_mirror_lookup(index, info.file_id, GPUDS_ON_CUDA, false, &ref))
			pg_atomic_write_u64(&ref.mirror->rest_until, 0);
		ref.mirror = NULL;
		gpuds_mirror_sync(&source, &ref);
	}
	gpuds_admin_close(index, heap);
	PG_RETURN_BOOL(ref.mirror != NULL);
}

static void
release_on_error(int code, Datum arg)
{
	gpuds_mirror_release((GpudsMirror *) DatumGetPointer(arg));
}

/* Gives the memory of a mirror back.  False: it was not loaded. */
static bool
evict(GpudsMirrorRef *ref)
{
	bool evicted = false;

	gpuds_mirror_acquire(ref->mirror, true);
	PG_ENSURE_ERROR_CLEANUP(release_on_error, PointerGetDatum(ref->mirror));
	{
		/* A device may also hold what an interrupted load has left. */
		if (pg_atomic_read_u64(&ref->mirror->serial) == ref->serial &&
			(ref->mirror->loaded || gpuds_device_holds(&ref->mirror->tree)))
		{
			evicted = gpuds_mirror_is_loaded(ref->mirror);
			(void) gpuds_mirror_discard(ref->mirror);
		}
	}
	PG_END_ENSURE_ERROR_CLEANUP(release_on_error, PointerGetDatum(ref->mirror));
	gpuds_mirror_release(ref->mirror);
	return evicted;
}

/*
 * gpuds_index_evict(index regclass) returns boolean
 *
 * Gives the memory of the index's mirrors back, after waiting for whoever is
 * loading one or bringing it up to date.  False: none was loaded.
 */
Datum
gpuds_index_evict(PG_FUNCTION_ARGS)
{
	Relation heap;
	Relation index = gpuds_admin_open(PG_GETARG_OID(0), &heap);
	int nkinds = RelationUsesLocalBuffers(index) ? 1 : GPUDS_SHARED_KINDS;
	bool evicted = false;

	if (gpuds_admin_has_file(index))
	{
		for (int kind = 0; kind < nkinds; kind++)
		{
			GpudsMirrorRef ref;

			if (gpuds_mirror_lookup(index, gpuds_index_info(index)->file_id, kind, false, &ref))
				evicted |= evict(&ref);
		}
	}
	gpuds_admin_close(index, heap);
	PG_RETURN_BOOL(evicted);
}
