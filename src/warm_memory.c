/*-------------------------------------------------------------------------
 *
 * warm_memory.c
 *	  Memory that a process keeps between its batches.
 *
 * A batch takes some megabytes and gives them back.  glibc has large pieces from the kernel one by one, and
 * returns them at once, so each batch would begin with a page fault for every 4 kB: thousands, which take as
 * long as a fast query.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "warm_memory.h"

/* Just below the largest piece that glibc adapts itself to, 32 MB. */
#define ADAPT_TO_BYTES (32 * 1024 * 1024 - 64 * 1024)

/*
 * From now on, up to twice ADAPT_TO_BYTES of what this process has freed stay with it, as they would after
 * any sort or hash of that size: glibc takes the size of a piece that is freed for one that is usual, and
 * keeps such pieces in its heap.  The piece itself is never touched.  Once is enough; other C libraries take
 * no notice.
 */
void
gpuds_keep_warm_memory(void)
{
	static bool done = false;
	void *volatile piece;

	if (done)
		return;
	done = true;
	piece = malloc(ADAPT_TO_BYTES);
	free(piece);
}
