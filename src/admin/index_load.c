/*-------------------------------------------------------------------------
 *
 * index_load.c
 *	  gpuds_index_load and gpuds_index_evict.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/tableam.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/ipc.h"

#include "admin/admin.h"
#include "index/index.h"
#include "reader/reader.h"
#include "side/side.h"

PG_FUNCTION_INFO_V1(gpuds_index_load);
PG_FUNCTION_INFO_V1(gpuds_index_load_replicas);
PG_FUNCTION_INFO_V1(gpuds_index_evict);

/* There is no mirror to be had, although it was asked for by name. */
static void
refuse(Relation index)
{
	ereport(ERROR,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("could not load the in-memory copy of index \"%s\"", RelationGetRelationName(index)),
			 errdetail("No device that the session may use has memory for it."),
			 errhint("Increase %s.", RelationUsesLocalBuffers(index) ? "gpuds.temp_memory"
									 : gpuds_device_may_use(GPUDS_ON_CUDA)
										 ? "gpuds.device_memory or gpuds.host_memory"
										 : "gpuds.host_memory")));
}

/* Has the side values of all rows copied from the table, as far as there is memory. */
static void
load_side_values(Relation heap, Relation index, const GpudsKeyLayout *layout)
{
	BlockNumber blocks;
	GpudsSideRef ref;
	GpudsFile file;

	if (layout->side_bytes == 0 || heap->rd_tableam != GetHeapamTableAmRoutine() ||
		!gpuds_side_file(index, &file) || !gpuds_side_make(&file, heap, layout->side_bytes, &ref))
		return;
	blocks = RelationGetNumberOfBlocks(heap);
	for (BlockNumber block = 0; block < blocks; block++)
	{
		GpudsSideFill answer = GPUDS_SIDE_FILLED;

		CHECK_FOR_INTERRUPTS();
		if (!gpuds_side_has(&ref, block))
			answer = gpuds_side_fill(&ref, heap, block, index, layout);
		if (answer == GPUDS_SIDE_NO_MEMORY || answer == GPUDS_SIDE_GONE)
			break;
	}
}

/* Gives the memory of a mirror back.  False: it was not loaded. */
static bool
evict(GpudsMirrorRef *ref)
{
	bool evicted = false;

	gpuds_mirror_acquire(ref->mirror, true);
	PG_ENSURE_ERROR_CLEANUP(gpuds_mirror_release_on_error, PointerGetDatum(ref->mirror));
	{
		if (pg_atomic_read_u64(&ref->mirror->serial) == ref->serial && ref->mirror->loaded)
		{
			evicted = gpuds_mirror_is_loaded(ref->mirror);
			(void) gpuds_mirror_discard(ref->mirror);
		}
	}
	PG_END_ENSURE_ERROR_CLEANUP(gpuds_mirror_release_on_error, PointerGetDatum(ref->mirror));
	gpuds_mirror_release(ref->mirror);
	return evicted;
}

/* Gives back the mirrors of the index's file from a number on; false: none was loaded. */
static bool
evict_from(Relation index, int number)
{
	const int end = RelationUsesLocalBuffers(index) ? GPUDS_MIRROR_ON_CPU + 1 : GPUDS_FILE_MIRRORS;
	bool evicted = false;

	for (; number < end; number++)
	{
		GpudsMirrorRef ref;

		if (gpuds_mirror_lookup(index, gpuds_index_info(index)->file_id, number, false, &ref))
			evicted |= evict(&ref);
	}
	return evicted;
}

/* On how many GPUs an index is to be, and in how many parts each time. */
typedef struct Placement
{
	int replicas;
	int parts;
} Placement;

/* Raises an error unless the index can have so many replicas, and so many parts of each. */
static void
check_placement(Relation index, const Placement *wanted)
{
	const bool may = !RelationUsesLocalBuffers(index) && gpuds_device_may_use(GPUDS_ON_CUDA);
	const int most = may ? Max(gpuds_cards, 1) : 1;

	if (wanted->replicas < 1 || wanted->replicas > most)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("replicas of index \"%s\" must be between 1 and %d", RelationGetRelationName(index),
						most),
				 errdetail(
					 "Each replica is on another of the GPUs that the session may use; a temporary index is "
					 "on none.")));
	if (wanted->parts < 1 || wanted->parts > most / wanted->replicas)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("parts of index \"%s\" must be between 1 and %d", RelationGetRelationName(index),
						most / wanted->replicas),
				 errdetail("Each part of each replica is on another of the GPUs that the session may use.")));
}

/*
 * Sets where the index is to be.  What is divided in another way, or is one too many, gives its memory back.
 */
static void
set_placement(const GpudsMirrorSource *source, const Placement *wanted)
{
	const int parts = gpuds_mirror_parts(source);

	if (!gpuds_copies_want(source, wanted->replicas, wanted->parts))
		refuse(source->index);
	(void) evict_from(source->index, GPUDS_MIRROR_ON_GPU(parts == wanted->parts ? wanted->replicas : 0));
}

/* As both functions below; wanted NULL: as it is. */
static bool
load(Oid indexid, const Placement *wanted)
{
	Relation heap;
	Relation index = gpuds_admin_open(indexid, &heap);
	bool has_file = gpuds_admin_has_file(index);

	if (wanted)
		check_placement(index, wanted);
	if (has_file)
	{
		GpudsIndexInfo info = *gpuds_index_info(index);
		GpudsMirrorRef ref = { NULL, 0 };
		GpudsMirrorSource source;

		source.index = index;
		source.layout = &info.layout;
		source.file_id = info.file_id;
		source.fillfactor = GpudsGetFillfactor(index);
		if (wanted && gpuds_cards > 1 && !RelationUsesLocalBuffers(index))
			set_placement(&source, wanted);
		if (!gpuds_mirror_load(&source, &ref) || (wanted && wanted->replicas * wanted->parts > 1 &&
												  !gpuds_device_is_remote(ref.mirror->tree.kind)))
			refuse(index);
		load_side_values(heap, index, &info.layout);
	}
	gpuds_admin_close(index, heap);
	return has_file;
}

/*
 * gpuds_index_load(index regclass) returns boolean
 *
 * Loads the index's mirror onto the session's device, or brings it up to date, and its replicas, and
 * waits for that; side values, too, as far as there is memory for them.  Raises an error
 * if there is no room for the mirror on any device, or for all replicas.
 * False: there is no index file (an unlogged index on a standby).
 */
Datum
gpuds_index_load(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(load(PG_GETARG_OID(0), NULL));
}

/*
 * gpuds_index_load(index regclass, replicas integer, parts integer) returns boolean
 *
 * The same, after setting on how many GPUs the index is to be, and into how many parts it is to be divided
 * each time, at least.  That holds, also after an error, until it is called again, the index has another
 * file, or the server is restarted.
 */
Datum
gpuds_index_load_replicas(PG_FUNCTION_ARGS)
{
	const Placement wanted = { PG_GETARG_INT32(1), PG_GETARG_INT32(2) };

	PG_RETURN_BOOL(load(PG_GETARG_OID(0), &wanted));
}

/*
 * gpuds_index_evict(index regclass) returns boolean
 *
 * Gives the memory of the index's mirrors and of its side values back, after waiting for
 * the process that loads one or brings it up to date.  False: there was none.
 */
Datum
gpuds_index_evict(PG_FUNCTION_ARGS)
{
	Relation heap;
	Relation index = gpuds_admin_open(PG_GETARG_OID(0), &heap);
	bool evicted = false;
	GpudsFile file;

	if (gpuds_admin_has_file(index))
	{
		evicted = evict_from(index, 0);
		if (gpuds_side_file(index, &file))
			evicted |= gpuds_side_drop(&file);
	}
	gpuds_admin_close(index, heap);
	PG_RETURN_BOOL(evicted);
}
