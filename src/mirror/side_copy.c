/*-------------------------------------------------------------------------
 *
 * side_copy.c
 *	  A copy of an index's side values on the mirror's device (side/side.h, S3).
 *
 * The copy is of the pages that the store has, and lives and dies with the mirror's structure.  A scan that
 * has passed its barrier and wants side values of many rows brings it up first: it sends the pages that have
 * become present or have been changed since.  Then it takes the map of those that are up to date.  Only one
 * session at a time sends pages; the others do with what is there.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"
#include "storage/ipc.h"

#include "mirror/mirror_internal.h"
#include "side/side.h"

/* A map may be so long: the visibility map has as much at least. */
#define MAP_BYTES (GPUDS_COUNT_MAP_BYTES / 2)

/* Pages that are sent at a time, at most. */
#define MOST_PAGES 1024

/* A copy takes up to two chunks of the device's memory more than its pages. */
#define SLACK_BYTES ((size_t) 2 * 2 * 1024 * 1024)

/* A store whose pages are sent. */
typedef struct Copying
{
	GpudsMirrorRef *ref;
	GpudsSideRef store;
	GpudsSideShape shape;
	uint64 name;
	uint32 blocks[MOST_PAGES];
	int n;
} Copying;

/* Copies the values of the pages at hand, for a device; false: the store is gone. */
static bool
copy_pages(void *arg, char *to)
{
	const Copying *copying = arg;
	bool copied;

	gpuds_side_enter();
	copied = gpuds_side_copy_pages(&copying->store, copying->blocks, copying->n, (uint8 *) to);
	gpuds_side_leave();
	return copied;
}

static size_t
page_bytes(const Copying *copying)
{
	return (size_t) copying->shape.rows * copying->shape.row_bytes;
}

/* Makes sure that the device has the copy that the store's marks are of; false: there is none. */
static bool
find_copy(Copying *copying)
{
	GpudsMirror *mirror = copying->ref->mirror;
	GpudsDeviceStatus status;
	uint64 name;

	gpuds_side_enter();
	copying->name = gpuds_side_copy_name(&copying->store);
	gpuds_side_leave();
	if (copying->name != 0 && copying->name == gpuds_device_side(&mirror->tree))
		return true;
	status = GPUDS_DEVICE_NO_MEMORY;
	if (gpuds_memory_for_side(mirror, copying->shape.pages * page_bytes(copying) + SLACK_BYTES))
	{
		name = gpuds_side_copy_new(&copying->store);
		status = gpuds_device_side_begin(&mirror->tree, &mirror->guard, copying->ref->serial, name,
										 copying->shape.rows, copying->shape.row_bytes);
	}
	if (status == GPUDS_DEVICE_NO_MEMORY)
		gpuds_side_copy_rest(&copying->store);
	if (status != GPUDS_DEVICE_OK)
		return false;
	gpuds_side_set_copy(&copying->store, name);
	copying->name = name;
	return true;
}

/* Sends the pages at hand; false: they did not get there. */
static bool
send_pages(Copying *copying)
{
	GpudsMirror *mirror = copying->ref->mirror;
	const GpudsSidePut put = { copying->blocks, copying->n, page_bytes(copying), copy_pages, copying };
	GpudsDeviceStatus status = gpuds_device_side_put(&mirror->tree, copying->name, &put);

	if (status == GPUDS_DEVICE_NO_MEMORY &&
		gpuds_memory_for_side(mirror, gpuds_device_side_bytes(&mirror->tree) + GPUDS_SIDE_PUT_BYTES))
		status = gpuds_device_side_put(&mirror->tree, copying->name, &put);
	if (status == GPUDS_DEVICE_NO_MEMORY)
		gpuds_side_copy_rest(&copying->store);
	if (status == GPUDS_DEVICE_OK)
		gpuds_side_set_copied(&copying->store, copying->blocks, copying->n);
	return status == GPUDS_DEVICE_OK;
}

/* Sends what the copy lacks. */
static void
send_all(Copying *copying)
{
	const uint64 changes = gpuds_side_changes(&copying->store);
	const int most = (int) Min(GPUDS_SIDE_PUT_BYTES / page_bytes(copying), MOST_PAGES);
	BlockNumber next = 0;
	bool more = true;

	while (more)
	{
		CHECK_FOR_INTERRUPTS();
		more = gpuds_side_next_uncopied(&copying->store, &next, copying->blocks, most, &copying->n);
		if (copying->n > 0 && !send_pages(copying))
			return;
	}
	gpuds_side_all_copied(&copying->store, changes);
}

static void
end_copying(int code, Datum arg)
{
	gpuds_side_copy_end((const GpudsSideRef *) DatumGetPointer(arg));
}

/* Brings the copy of a store up, unless another session is at it. */
static void
bring_up(GpudsMirrorRef *ref, const GpudsSideRef *store)
{
	Copying copying = { .ref = ref, .store = *store };
	bool wanted;

	gpuds_side_enter();
	wanted = gpuds_side_wants_copy(store, gpuds_device_side(&ref->mirror->tree)) &&
			 gpuds_side_copy_shape(store, &copying.shape);
	gpuds_side_leave();
	if (!wanted || !gpuds_side_copy_begin(store))
		return;
	PG_ENSURE_ERROR_CLEANUP(end_copying, PointerGetDatum(store));
	{
		if (find_copy(&copying))
			send_all(&copying);
	}
	PG_END_ENSURE_ERROR_CLEANUP(end_copying, PointerGetDatum(store));
	gpuds_side_copy_end(store);
}

/*
 * What a device may be told of side values, for a scan that has passed its barrier: a copy that is brought up
 * before, and a map of its pages, in the current memory context.  False: there is no copy, or nothing in it.
 */
bool
gpuds_mirror_copy_side(GpudsMirrorRef *ref, const GpudsFile *file, GpudsCountSide *side)
{
	GpudsSideRef store;
	uint8 *map = NULL;

	memset(side, 0, sizeof(*side));
	if (ref->mirror == NULL || !gpuds_device_keeps_side(&ref->mirror->tree))
		return false;
	gpuds_side_enter();
	if (gpuds_side_find(file, false, &store))
		gpuds_side_touch(&store);
	gpuds_side_leave();
	if (store.slot < 0)
		return false;
	bring_up(ref, &store);
	side->name = gpuds_device_side(&ref->mirror->tree);
	if (side->name != 0)
		side->map_bytes = gpuds_side_copied_map(&store, side->name, MAP_BYTES, &map);
	side->map = map;
	return side->map_bytes > 0;
}
