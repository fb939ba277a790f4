/*-------------------------------------------------------------------------
 *
 * wal.c
 *	  Generic WAL records of changes made in place.
 *
 * access/generic_xlog.h copies every page twice and compares all of its bytes to find what
 * changed.  For one appended record of 16 bytes that would take most of the time, and we
 * know what we change.  So pages of records are changed in place, in a critical section, and
 * the record is assembled here: resource manager RM_GENERIC_ID, and for each page either a
 * full image or a delta of fragments (offset, length, bytes), as generic_redo applies them.
 * Core replays it without the library.
 *
 * The hole between pd_lower and pd_upper of a page must be all zeros, because replay makes
 * it so.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/rmgr.h"
#include "access/xloginsert.h"
#include "miscadmin.h"
#include "utils/memdebug.h"

#include "journal/journal_internal.h"

/* Adds a changed range of a page, in bytes, to a delta. */
void
gpuds_page_delta_add(GpudsPageDelta *delta, Page page, int offset, int length)
{
	uint16 head[2] = { offset, length };

	Assert(delta->length + sizeof(head) + length <= sizeof(delta->data));
	memcpy(delta->data + delta->length, head, sizeof(head));
	memcpy(delta->data + delta->length + sizeof(head), (char *) page + offset, length);
	delta->length += sizeof(head) + length;
}

/*
 * Marks buffers dirty and, if the relation needs WAL, logs them in one record:
 * the first, if valid, by its delta, nfresh others by full images.  The caller
 * holds exclusive locks on them and is in the critical section in which it
 * changed the pages.
 */
void
gpuds_log_pages(Relation index, Buffer changed, GpudsPageDelta *delta, const Buffer *fresh, int nfresh)
{
	int id = 0;
	XLogRecPtr lsn;

	Assert(CritSectionCount > 0);
	Assert(nfresh + (changed != InvalidBuffer) <= MAX_GENERIC_XLOG_PAGES);

	if (changed != InvalidBuffer)
	{
		VALGRIND_CHECK_MEM_IS_DEFINED(delta->data, delta->length);
		MarkBufferDirty(changed);
	}
	for (int i = 0; i < nfresh; i++)
	{
		VALGRIND_CHECK_MEM_IS_DEFINED(BufferGetPage(fresh[i]), BLCKSZ);
		MarkBufferDirty(fresh[i]);
	}
	if (!RelationNeedsWAL(index))
		return;

	XLogBeginInsert();
	if (changed != InvalidBuffer)
	{
		XLogRegisterBuffer(id, changed, REGBUF_STANDARD);
		XLogRegisterBufData(id++, delta->data, delta->length);
	}
	for (int i = 0; i < nfresh; i++)
		XLogRegisterBuffer(id++, fresh[i], REGBUF_FORCE_IMAGE | REGBUF_STANDARD);
	lsn = XLogInsert(RM_GENERIC_ID, 0);

	if (changed != InvalidBuffer)
		PageSetLSN(BufferGetPage(changed), lsn);
	for (int i = 0; i < nfresh; i++)
		PageSetLSN(BufferGetPage(fresh[i]), lsn);
}

/*
 * Marks n buffers dirty, each of another index that needs WAL, and logs them in one record
 * by their deltas.  Locks and critical section are as above.
 */
void
gpuds_log_group(const Buffer *changed, GpudsPageDelta *deltas, int n)
{
	XLogRecPtr lsn;

	Assert(CritSectionCount > 0);
	Assert(n <= MAX_GENERIC_XLOG_PAGES);

	for (int i = 0; i < n; i++)
	{
		VALGRIND_CHECK_MEM_IS_DEFINED(deltas[i].data, deltas[i].length);
		MarkBufferDirty(changed[i]);
	}
	XLogBeginInsert();
	for (int i = 0; i < n; i++)
	{
		XLogRegisterBuffer(i, changed[i], REGBUF_STANDARD);
		XLogRegisterBufData(i, deltas[i].data, deltas[i].length);
	}
	lsn = XLogInsert(RM_GENERIC_ID, 0);
	for (int i = 0; i < n; i++)
		PageSetLSN(BufferGetPage(changed[i]), lsn);
}
