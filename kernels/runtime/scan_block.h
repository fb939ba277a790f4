/*-------------------------------------------------------------------------
 *
 * scan_block.h
 *	  Scans of up to some hundred intervals by one block of threads: one launch,
 *	  input and output in host memory.  For GPUs only; part of scan.h.
 *
 * What takes time in such scans is not the work but the waiting between its steps,
 * copies and launches.  If the output turns out to be too long, only its
 * length is told, and starts and offsets are left for the steps of a larger scan.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_SCAN_BLOCK_H
#define GPU_SCAN_BLOCK_H

#define GPU_SCAN_BLOCK 1024         /* threads, and intervals at most */
#define GPU_SCAN_BLOCK_ENTRIES 4096 /* output at most; a power of 2 */

/* write has the output in host memory, and neither found nor full yet. */
template <class Probe, bool tids>
__global__ void
__launch_bounds__(GPU_SCAN_BLOCK, 1)
	gpu_scan_block_kernel(const GpuScanLocate<Probe> locate, GpuScanWrite<Probe, 1, tids> write, int64_t cap)
{
	__shared__ uint64_t warps[GPU_SCAN_BLOCK / 32];
	__shared__ uint64_t offsets[GPU_SCAN_BLOCK + 1];
	__shared__ uint64_t list[tids ? GPU_SCAN_BLOCK_ENTRIES : 1];
	int thread = (int) threadIdx.x;
	int n = (int) locate.n;
	GpuStart start = 0;
	uint64_t total;
	uint64_t *out = write.sorted;

	offsets[thread] = gpu_block_exclusive_sum(locate.locate(thread, &start), warps, &total);
	if (thread < n)
		locate.starts[thread] = start;
	if (thread == 0)
	{
		offsets[GPU_SCAN_BLOCK] = total;
		write.summary->total = total;
	}
	__syncthreads();
	if (total >= GPU_TOO_FAR)
		return;
	write.found = total < (uint64_t) cap ? (int64_t) total : cap;
	if (write.found > GPU_SCAN_BLOCK_ENTRIES)
	{
		for (int i = thread; i <= n; i += GPU_SCAN_BLOCK)
			locate.counts[i] = offsets[i];
		return;
	}
	write.full = write.found == cap;
	write.offsets = offsets;
	if (tids)
		write.sorted = list;
	for (int64_t o = thread; o < write.found; o += GPU_SCAN_BLOCK)
		write(o);
	if (tids)
	{
		int padded = 1;

		while (padded < write.found)
			padded *= 2;
		for (int i = (int) write.found + thread; i < padded; i += GPU_SCAN_BLOCK)
			list[i] = UINT64_MAX;
		__syncthreads();
		gpu_block_sort(padded,
					   [&](int a, int b, bool ascending)
					   {
						   uint64_t x = list[a];
						   uint64_t y = list[b];

						   if ((x > y) == ascending)
						   {
							   list[a] = y;
							   list[b] = x;
						   }
					   });
		for (int i = thread; i < write.found; i += GPU_SCAN_BLOCK)
			out[i] = list[i];
	}
}

/*
 * Do a scan this way: stream->summary has the total then, and *written says whether the
 * output is written, too.  False: nothing was done, there are too many intervals.
 * device_staging is the staging memory as the device sees it.
 */
template <class Probe, bool tids>
static inline bool
gpu_scan_block(GpuScanStream *stream, const GpudsView *view, unsigned char *device_staging,
			   const GpuRequest *r, int64_t n, bool *written)
{
	GpuStream *s = &stream->stream;
	GpuScanLocate<Probe> locate = { Probe::open(*view), GpudsScan(), r->forward, stream->starts,
									stream->offsets,    n,           false };
	GpuScanWrite<Probe, 1, tids> write = { Probe::open(*view),
										   r->forward,
										   stream->starts,
										   stream->offsets,
										   n,
										   0,
										   false,
										   (GpudsEntry *) (device_staging + r->output),
										   (uint64_t *) (device_staging + r->output),
										   stream->device_summary };

	if (n > GPU_SCAN_BLOCK || !gpu_ok(s))
		return false;
	locate.scan.intervals = (const GpudsInterval *) (device_staging + r->input);
	locate.scan.points = r->points ? (const uint64_t *) (locate.scan.intervals + 1) : NULL;
	locate.scan.n = r->n;
	locate.scan.next = r->next;
	locate.scan.inside = r->inside;
	locate.scan.at = r->at;
	s->launches++;
	s->bus_bytes += (size_t) n * (r->points ? sizeof(uint64_t) : sizeof(GpudsInterval));
	gpu_scan_block_kernel<Probe, tids><<<1, GPU_SCAN_BLOCK, 0, s->stream>>>(locate, write, r->cap);
	if (gpu_check(s, "launch", cudaGetLastError()) && gpu_finish(s))
		*written = stream->summary->total <= GPU_SCAN_BLOCK_ENTRIES || r->cap <= GPU_SCAN_BLOCK_ENTRIES;
	return true;
}

#endif /* GPU_SCAN_BLOCK_H */
