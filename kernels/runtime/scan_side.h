/*-------------------------------------------------------------------------
 *
 * scan_side.h
 *	  The side values that a scan of groups finds in a copy (side_pages.h); part of scan.h.
 *
 * The spec of the groups has a map of the heap pages of which the copy is up to date.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_SCAN_SIDE_H
#define GPU_SCAN_SIDE_H

/* The copy that a request names, with its map, of which spec is what the host can read; at: the device's. */
static inline GpuSide
gpu_side_of(const GpuScanStream *stream, const GpuRequest *r, const GroupSpec *spec, const GroupSpec *at)
{
	GpuSide side = stream->side;

	side.map = (const unsigned char *) at + group_spec_bytes(spec) + group_label_bytes(spec, r->n);
	side.map_bytes = spec->side_map;
	return side;
}

#endif /* GPU_SCAN_SIDE_H */
