/*-------------------------------------------------------------------------
 *
 * gpu.cu
 *	  The kernels of device.cu on a GPU, against the same functions on the CPU.
 *
 * A tree is built and changed on the CPU, its arena copied to the device as it
 * is (references are relative), and random points, ranges in both directions and
 * counts are asked there and here.  Run it under compute-sanitizer too.
 *
 *	  usage: gpu [entries a tree, 100000 [millions of entries for timing, 0]]
 *
 *-------------------------------------------------------------------------
 */
#include <cuda_runtime.h>

#include "common.h"
#include "device.cu"

#define CUDA(call)                                                                         \
	do                                                                                     \
	{                                                                                      \
		cudaError_t error = (call);                                                        \
		if (error != cudaSuccess)                                                          \
		{                                                                                  \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
			exit(1);                                                                       \
		}                                                                                  \
	} while (0)

#define BLOCK 128
#define RANGE 40

static int passed = 0;

template <typename T>
static T *
device_copy(const T *host, size_t n)
{
	T *device;

	CUDA(cudaMalloc(&device, n * sizeof(T)));
	if (host)
		CUDA(cudaMemcpy(device, host, n * sizeof(T), cudaMemcpyHostToDevice));
	else
		CUDA(cudaMemset(device, 0xA5, n * sizeof(T)));
	return device;
}

template <typename T>
static T *
host_copy(T *device, size_t n)
{
	T *host = (T *) malloc(n * sizeof(T));

	CHECK(host != NULL);
	CUDA(cudaMemcpy(host, device, n * sizeof(T), cudaMemcpyDeviceToHost));
	CUDA(cudaFree(device));
	return host;
}

/* The view of a copy of the arena in device memory. */
static CpuBtreeView
device_view(const Arena *arena, const CpuBtreeView *view)
{
	CpuBtreeView copy = *view;

	copy.base = device_copy((const unsigned char *) arena, arena_size(arena));
	return copy;
}

static GpudsInterval
random_interval(const GpudsEntry *e, int64_t n, int kind, int nwords)
{
	GpudsInterval iv;

	iv.lo = n > 0 && test_below(2) ? e[test_below((uint64_t) n)]
								   : test_entry(kind, nwords, (uint64_t) n * 2 + 1);
	iv.hi = n > 0 && test_below(4) ? iv.lo : test_entry(kind, nwords, (uint64_t) n * 2 + 1);
	if (test_below(3) == 0)
	{
		iv.lo.t = 0;
		iv.hi.t = UINT64_MAX - 1;
	}
	if (entry_less(&iv.hi, &iv.lo))
	{
		GpudsEntry swap = iv.lo;

		iv.lo = iv.hi;
		iv.hi = swap;
	}
	return iv;
}

/* Scans one interval here and compares with what the device found. */
static void
check_scan(const CpuBtreeView *view, const GpudsInterval *iv, bool forward, int64_t cap, const GpudsEntry *out,
		   int64_t found)
{
	GpudsEntry mine[RANGE];
	GpudsScan scan = { iv, 1, forward ? 0 : 1, false, { 0, 0, 0 }, NULL };
	int64_t n = cpu_btree_scan(view, &scan, forward, mine, cap);

	CHECK(n == found);
	for (int64_t i = 0; i < n; i++)
		CHECK(entry_equal(&mine[i], &out[i]));
}

static void
test_tree(int kind, int nwords, int64_t n)
{
	const int nprobes = 20000;
	int grid = (nprobes + BLOCK - 1) / BLOCK;
	Arena *arena = test_arena((size_t) n * 200 + (4 << 20));
	GpudsEntry *e = (GpudsEntry *) malloc((size_t) (n + 1) * sizeof(GpudsEntry) * 2);
	GpudsOp *ops = (GpudsOp *) malloc((size_t) (n + 1) * sizeof(GpudsOp) * 2);
	GpudsInterval *iv = (GpudsInterval *) malloc(nprobes * sizeof(GpudsInterval));
	CpuBtree tree;
	CpuBtreeBuild build;
	CpuBtreeView view, there;
	int64_t inserted, deleted, nops = n / 3;
	GpudsInterval *d_iv;
	GpudsEntry *out;
	int64_t *found;
	uint64_t *counts;

	for (int64_t i = 0; i < n; i++)
		e[i] = test_entry(kind, nwords, (uint64_t) n * 2 + 1);
	sort_entries(e, e + n, n);
	n = sort_unique_entries(e, n);
	memset(&tree, 0, sizeof(tree));
	cpu_btree_init(&tree, nwords);
	CHECK(cpu_btree_build_begin(arena, &tree, &build, 90) == KERNEL_OK);
	CHECK(cpu_btree_build_add(&build, e, n) == KERNEL_OK);
	CHECK(cpu_btree_build_finish(&build) == KERNEL_OK);
	for (int64_t i = 0; i < nops; i++)
	{
		ops[i].e = test_entry(kind, nwords, (uint64_t) n * 2 + 1);
		ops[i].order = (uint64_t) i << 1 | test_below(2);
	}
	sort_ops(ops, ops + nops, nops);
	CHECK(cpu_btree_apply(arena, &tree, ops, sort_last_ops(ops, nops), &inserted, &deleted) == KERNEL_OK);

	CHECK(cpu_btree_view(arena, &tree, &view));
	there = device_view(arena, &view);
	for (int i = 0; i < nprobes; i++)
		iv[i] = random_interval(e, n, kind, nwords);
	d_iv = device_copy(iv, nprobes);

	out = device_copy((GpudsEntry *) NULL, nprobes);
	found = device_copy((int64_t *) NULL, nprobes);
	lookup<<<grid, BLOCK>>>(there, d_iv, nprobes, out, found);
	CUDA(cudaGetLastError());
	out = host_copy(out, nprobes);
	found = host_copy(found, nprobes);
	for (int i = 0; i < nprobes; i++)
		check_scan(&view, &iv[i], true, 1, &out[i], found[i]);
	free(out);
	free(found);
	passed++;

	for (int forward = 0; forward < 2; forward++)
	{
		out = device_copy((GpudsEntry *) NULL, (size_t) nprobes * RANGE);
		found = device_copy((int64_t *) NULL, nprobes);
		range<<<grid, BLOCK>>>(there, d_iv, nprobes, forward == 1, out, RANGE, found);
		CUDA(cudaGetLastError());
		out = host_copy(out, (size_t) nprobes * RANGE);
		found = host_copy(found, nprobes);
		for (int i = 0; i < nprobes; i++)
			check_scan(&view, &iv[i], forward == 1, RANGE, &out[(size_t) i * RANGE], found[i]);
		free(out);
		free(found);
		passed++;
	}

	counts = device_copy((uint64_t *) NULL, nprobes);
	count<<<grid, BLOCK>>>(there, d_iv, nprobes, counts);
	CUDA(cudaGetLastError());
	counts = host_copy(counts, nprobes);
	for (int i = 0; i < nprobes; i++)
		CHECK(counts[i] == cpu_btree_count(&view, &iv[i], 1));
	free(counts);
	passed++;

	CUDA(cudaFree(d_iv));
	CUDA(cudaFree((void *) there.base));
	free(iv);
	free(ops);
	free(e);
	free(arena);
}

/* Random points that are there, in random order: the best of five launches. */
static void
time_lookups(int64_t n)
{
	const int64_t nprobes = 20000000;
	Arena *arena = test_arena((size_t) n * 30 + (64 << 20));
	GpudsEntry *e = (GpudsEntry *) malloc((size_t) n * sizeof(GpudsEntry) * 2);
	GpudsInterval *iv = (GpudsInterval *) malloc((size_t) nprobes * sizeof(GpudsInterval));
	CpuBtree tree;
	CpuBtreeBuild build;
	CpuBtreeView view, there;
	GpudsInterval *d_iv;
	GpudsEntry *out;
	int64_t *found;
	float best = 1e30f;
	cudaEvent_t start, stop;

	for (int64_t i = 0; i < n; i++)
	{
		e[i].w0 = test_random();
		e[i].w1 = 0;
		e[i].t = (uint64_t) i << 16 | 1;
	}
	sort_entries(e, e + n, n);
	memset(&tree, 0, sizeof(tree));
	cpu_btree_init(&tree, 1);
	CHECK(cpu_btree_build_begin(arena, &tree, &build, 90) == KERNEL_OK);
	CHECK(cpu_btree_build_add(&build, e, n) == KERNEL_OK);
	CHECK(cpu_btree_build_finish(&build) == KERNEL_OK);
	CHECK(cpu_btree_view(arena, &tree, &view));
	there = device_view(arena, &view);
	for (int64_t i = 0; i < nprobes; i++)
	{
		iv[i].lo = iv[i].hi = e[test_below((uint64_t) n)];
		iv[i].lo.t = 0;
		iv[i].hi.t = ENTRY_TID_MASK;
	}
	d_iv = device_copy(iv, (size_t) nprobes);
	out = device_copy((GpudsEntry *) NULL, (size_t) nprobes);
	found = device_copy((int64_t *) NULL, (size_t) nprobes);
	CUDA(cudaEventCreate(&start));
	CUDA(cudaEventCreate(&stop));
	for (int round = 0; round < 6; round++)
	{
		float ms;

		CUDA(cudaEventRecord(start));
		lookup<<<(unsigned) ((nprobes + BLOCK - 1) / BLOCK), BLOCK>>>(there, d_iv, nprobes, out, found);
		CUDA(cudaEventRecord(stop));
		CUDA(cudaEventSynchronize(stop));
		CUDA(cudaEventElapsedTime(&ms, start, stop));
		if (round > 0 && ms < best)
			best = ms;
	}
	out = host_copy(out, (size_t) nprobes);
	found = host_copy(found, (size_t) nprobes);
	for (int64_t i = 0; i < nprobes; i++)
		CHECK(found[i] == 1 && out[i].w0 == iv[i].lo.w0);
	printf("%lld entries, %.1f bytes each, %lld random lookups: %.2f ms, %.2f G/s\n", (long long) n,
		   (double) arena_used(arena) / (double) n, (long long) nprobes, best,
		   (double) nprobes / best / 1e6);
}

int
main(int argc, char **argv)
{
	int64_t n = argc > 1 ? atoll(argv[1]) : 100000;
	int64_t millions = argc > 2 ? atoll(argv[2]) : 0;
	cudaDeviceProp properties;

	CUDA(cudaGetDeviceProperties(&properties, 0));
	printf("%s\n", properties.name);
	for (int nwords = 1; nwords <= 2; nwords++)
	{
		for (int kind = 0; kind < KEYS_KINDS; kind++)
		{
			test_tree(kind, nwords, 1);
			test_tree(kind, nwords, 100);
			test_tree(kind, nwords, n);
		}
	}
	if (millions > 0)
		time_lookups(millions * 1000000);
	printf("%d passed, 0 failed\n", passed);
	return 0;
}
