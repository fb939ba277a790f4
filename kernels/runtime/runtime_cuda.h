/*-------------------------------------------------------------------------
 *
 * runtime_cuda.h
 *	  A GPU, by CUDA; part of runtime.h, which says what the functions do.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_RUNTIME_CUDA_H
#define GPU_RUNTIME_CUDA_H

#include <cuda_runtime.h>

#include "kernels/runtime/block.h"

/* Notes an error of CUDA; false: there is one, or was. */
static inline bool
gpu_check(GpuStream *s, const char *what, cudaError_t error)
{
	if (error != cudaSuccess)
		gpu_fail(s, what, cudaGetErrorString(error));
	return gpu_ok(s);
}

static inline void
gpu_load_all(void)
{
	setenv("CUDA_MODULE_LOADING", "EAGER", 1);
}

static inline bool
gpu_card(int ordinal, GpuCard *card, char *why, size_t whylen)
{
	cudaDeviceProp prop;
	cudaError_t error;
	int n = 0;

	memset(card, 0, sizeof(*card));
	error = cudaGetDeviceCount(&n);
	if (error == cudaSuccess && ordinal >= n)
		error = cudaErrorNoDevice;
	if (error == cudaSuccess)
		error = cudaSetDevice(ordinal);
	if (error == cudaSuccess)
		error = cudaGetDeviceProperties(&prop, ordinal);
	if (error == cudaSuccess)
		error = cudaDriverGetVersion(&card->driver);
	if (error == cudaSuccess)
		error = cudaMemGetInfo(&card->memory_free, &card->memory_total);
	if (error != cudaSuccess)
	{
		snprintf(why, whylen, "%s", cudaGetErrorString(error));
		card->hopeless = error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver ||
						 error == cudaErrorStubLibrary;
		return false;
	}
	if (prop.major < GPU_LEAST_CAPABILITY)
	{
		snprintf(why, whylen, "%.100s has compute capability %d.%d, %d.0 is needed", prop.name, prop.major,
				 prop.minor, GPU_LEAST_CAPABILITY);
		card->hopeless = true;
		return false;
	}
	memcpy(card->name, prop.name, sizeof(card->name) - 1);
	card->major = prop.major;
	card->minor = prop.minor;
	card->multiprocessors = prop.multiProcessorCount;
	return true;
}

static inline bool
gpu_use(int ordinal)
{
	return cudaSetDevice(ordinal) == cudaSuccess;
}

static inline bool
gpu_stream_open(GpuStream *s, bool urgent)
{
	memset((void *) s, 0, sizeof(*s));
	s->status = GPU_OK;
	int least = 0;
	int greatest = 0;

	return gpu_check(s, "stream priorities", cudaDeviceGetStreamPriorityRange(&least, &greatest)) &&
		   gpu_check(s, "stream",
					 cudaStreamCreateWithPriority(&s->stream, cudaStreamNonBlocking,
												  urgent ? greatest : least));
}

static inline void
gpu_stream_close(GpuStream *s)
{
	if (s->stream)
		cudaStreamDestroy(s->stream);
	memset((void *) s, 0, sizeof(*s));
}

static inline bool
gpu_finish(GpuStream *s)
{
	return gpu_ok(s) && gpu_check(s, "kernel", cudaStreamSynchronize(s->stream));
}

static inline bool
gpu_finished(GpuStream *s)
{
	cudaError_t error;

	if (!gpu_ok(s))
		return true;
	error = cudaStreamQuery(s->stream);
	if (error == cudaErrorNotReady)
		return false;
	gpu_check(s, "kernel", error);
	return true;
}

static inline bool
gpu_quiet(const GpuStream *s)
{
	return s->stream == NULL || cudaStreamQuery(s->stream) != cudaErrorNotReady;
}

static inline bool
gpu_reset(void)
{
	return cudaDeviceReset() == cudaSuccess;
}

static inline bool
gpu_event_open(GpuStream *s, GpuEvent *e)
{
	return gpu_ok(s) && gpu_check(s, "event", cudaEventCreate(&e->event));
}

static inline void
gpu_event_close(GpuEvent *e)
{
	if (e->event)
		cudaEventDestroy(e->event);
	e->event = NULL;
}

static inline void
gpu_event_record(GpuStream *s, GpuEvent *e)
{
	if (gpu_ok(s))
		gpu_check(s, "event", cudaEventRecord(e->event, s->stream));
}

static inline uint64_t
gpu_event_ns(GpuStream *s, const GpuEvent *from, const GpuEvent *to)
{
	float ms = 0;

	if (gpu_ok(s))
		gpu_check(s, "event", cudaEventElapsedTime(&ms, from->event, to->event));
	return (uint64_t) ((double) ms * 1e6);
}

static inline void *
gpu_alloc(size_t bytes)
{
	void *p = NULL;

	if (cudaMalloc(&p, bytes) != cudaSuccess)
	{
		/* not a sticky error: forget it */
		(void) cudaGetLastError();
		return NULL;
	}
	return p;
}

static inline void
gpu_free(void *p, size_t bytes)
{
	if (p == NULL)
		return;
	(void) bytes;
	cudaFree(p);
}

static inline void *
gpu_host_alloc(size_t bytes)
{
	void *p = NULL;

	if (cudaHostAlloc(&p, bytes, cudaHostAllocMapped | cudaHostAllocPortable) != cudaSuccess)
	{
		(void) cudaGetLastError();
		return NULL;
	}
	memset(p, 0, bytes);
	return p;
}

static inline void
gpu_host_free(void *p)
{
	if (p)
		cudaFreeHost(p);
}

static inline bool
gpu_register(void *p, size_t bytes, char *why, size_t whylen)
{
	cudaError_t error = cudaHostRegister(p, bytes, cudaHostRegisterMapped | cudaHostRegisterPortable);

	if (error != cudaSuccess)
	{
		snprintf(why, whylen, "%s", cudaGetErrorString(error));
		(void) cudaGetLastError();
	}
	return error == cudaSuccess;
}

static inline void
gpu_unregister(void *p)
{
	cudaHostUnregister(p);
}

static inline void *
gpu_device_address(void *host)
{
	void *p = NULL;

	if (cudaHostGetDevicePointer(&p, host, 0) != cudaSuccess)
	{
		(void) cudaGetLastError();
		return NULL;
	}
	return p;
}

static inline void
gpu_copy_bus(GpuStream *s, void *to, const void *from, size_t bytes)
{
	if (bytes == 0)
		return;
	if (gpu_ok(s))
		gpu_check(s, "copy", cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, s->stream));
	s->bus_bytes += bytes;
}

static inline void
gpu_copy(GpuStream *s, void *to, const void *from, size_t bytes)
{
	if (bytes == 0)
		return;
	if (gpu_ok(s))
		gpu_check(s, "copy", cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, s->stream));
}

static inline void
gpu_fill(GpuStream *s, void *to, int byte, size_t bytes)
{
	if (bytes == 0)
		return;
	if (gpu_ok(s))
		gpu_check(s, "fill", cudaMemsetAsync(to, byte, bytes, s->stream));
}

template <typename F, int threads>
__global__ void
__launch_bounds__(threads) gpu_kernel(const F f, int64_t n)
{
	int64_t i = (int64_t) blockIdx.x * threads + threadIdx.x;

	if (i < n)
		f(i);
}

template <int threads, typename F>
static inline void
gpu_launch(GpuStream *s, int64_t n, const F &f)
{
	if (n <= 0)
		return;
	s->launches++;
	if (!gpu_ok(s))
		return;
	gpu_kernel<F, threads><<<(unsigned) ((n + threads - 1) / threads), threads, 0, s->stream>>>(f, n);
	gpu_check(s, "launch", cudaGetLastError());
}

template <typename F>
__global__ void
__launch_bounds__(GPU_BLOCK_THREADS) gpu_block_kernel(const F f)
{
	extern __shared__ __align__(16) unsigned char shared[];
	__shared__ uint64_t warps[GPU_BLOCK_WARPS];
	GpuBlock block = { shared, warps };

	f(block);
}

template <typename F>
static inline void
gpu_launch_block(GpuStream *s, const F &f, int threads, size_t shared_bytes)
{
	s->launches++;
	if (!gpu_ok(s))
		return;
	/* beyond 48 kB a kernel has to be told */
	if (shared_bytes > 49152 &&
		!gpu_check(s, "shared memory",
				   cudaFuncSetAttribute(gpu_block_kernel<F>, cudaFuncAttributeMaxDynamicSharedMemorySize,
										GPU_BLOCK_SHARED_BYTES)))
		return;
	gpu_block_kernel<F><<<1, (unsigned) threads, shared_bytes, s->stream>>>(f);
	gpu_check(s, "launch", cudaGetLastError());
}

template <typename F>
__global__ void
__launch_bounds__(GPU_CLUSTER_BLOCK_THREADS) gpu_cluster_kernel(const F f)
{
	GpuCluster cluster;

	f(cluster);
}

/*
 * How a cluster's blocks are made to run at the same time: as a cluster, if the kernel's code is for cards
 * that have them, or by a cooperative launch.  gpu_cluster_wait makes the same choice when it is compiled.
 */
template <typename F>
static inline bool
gpu_cluster_attribute(GpuStream *s, unsigned blocks, cudaLaunchAttribute *attribute)
{
	static thread_local int ptx_version = 0;

	if (ptx_version == 0)
	{
		cudaFuncAttributes kernel = {};

		if (!gpu_check(s, "kernel", cudaFuncGetAttributes(&kernel, gpu_cluster_kernel<F>)))
			return false;
		ptx_version = kernel.ptxVersion;
	}
	if (ptx_version * 10 >= GPU_CLUSTER_ARCH)
	{
		attribute->id = cudaLaunchAttributeClusterDimension;
		attribute->val.clusterDim = { blocks, 1, 1 };
	}
	else
	{
		attribute->id = cudaLaunchAttributeCooperative;
		attribute->val.cooperative = 1;
	}
	return true;
}

template <typename F>
static inline void
gpu_launch_cluster(GpuStream *s, int64_t n, const F &f)
{
	const int64_t warps = n > 0 ? (n + 31) / 32 : 1;
	const unsigned threads = warps * 32 < GPU_CLUSTER_BLOCK_THREADS ? (unsigned) warps * 32
																	: GPU_CLUSTER_BLOCK_THREADS;
	const int64_t blocks = (warps * 32 + threads - 1) / threads;
	cudaLaunchAttribute attribute = {};
	cudaLaunchConfig_t config = {};

	s->launches++;
	config.gridDim = dim3(blocks < GPU_CLUSTER_BLOCKS ? (unsigned) blocks : GPU_CLUSTER_BLOCKS);
	config.blockDim = dim3(threads);
	config.stream = s->stream;
	config.attrs = &attribute;
	config.numAttrs = 1;
	if (gpu_ok(s) && gpu_cluster_attribute<F>(s, config.gridDim.x, &attribute))
		gpu_check(s, "launch", cudaLaunchKernelEx(&config, gpu_cluster_kernel<F>, f));
}

/* A kernel that faults. */
struct GpuFault
{
	uint32_t *nowhere;

	GPU_FN void operator()(int64_t) const
	{
		*nowhere = 1;
	}
};

static inline void
gpu_inject_fault(GpuStream *s)
{
	GpuFault fault = { (uint32_t *) 64 };

	gpu_launch(s, 1, fault);
	gpu_finish(s);
}

#endif /* GPU_RUNTIME_CUDA_H */
