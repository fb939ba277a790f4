/*-------------------------------------------------------------------------
 *
 * page_rows.h
 *	  What is known of the rows of heap pages that a visibility map does not vouch for.
 *
 * A visibility map says of a heap page that all of its rows are visible to everybody, or it
 * says nothing.  Here a snapshot has been asked row by row, for some pages.
 *
 * Pages lie in an array, in any order, and a table of slots says where: page b can only be in slot
 * b % slots.  Of two pages with one slot, the table has one or none.  So a table has slots for many
 * times as many pages as there are, and takes little memory nevertheless.
 *
 *-------------------------------------------------------------------------
 */
#ifndef KERNELS_PAGE_ROWS_H
#define KERNELS_PAGE_ROWS_H

#include "kernels/core/entry.h"

/* Does the snapshot see a row? */
typedef enum PageRow
{
	PAGE_ROW_UNKNOWN,
	PAGE_ROW_SEEN,
	PAGE_ROW_UNSEEN,
	PAGE_ROW_DEAD /* nor does any other */
} PageRow;

/* Is it known that the snapshot does not see the row? */
KERNEL_INLINE bool
page_row_is_unseen(PageRow row)
{
	return row == PAGE_ROW_UNSEEN || row == PAGE_ROW_DEAD;
}

/*
 * Is an entry handed back to whoever asks for entries?  Its row must be visited, or it is dead,
 * and the entry can leave.
 */
KERNEL_INLINE bool
page_row_goes_back(PageRow row)
{
	return row == PAGE_ROW_UNKNOWN || row == PAGE_ROW_DEAD;
}

/* Rows that a word of bits has. */
#define PAGE_ROWS_A_WORD 16

/* Words that the offsets of any page need, which have 16 bits. */
#define PAGE_ROWS_MAX_WORDS 4096

typedef struct PageRows
{
	const uint32_t *places; /* of each slot: number of a page in the array + 1; 0: there is none */
	/*
	 * of each page, 1 + words words: number of the heap page + 1, or 0 if it is none any more; then two bits
	 * a row, a PageRow, offset 1 in the lowest bits of the first
	 */
	const uint32_t *pages;
	uint32_t slots; /* a power of two; 0: nothing is known of any page */
	uint32_t words; /* PAGE_ROWS_MAX_WORDS at most */
	uint32_t npages;
} PageRows;

/* Bytes that so many pages of so many words take. */
KERNEL_FN size_t
page_rows_pages_bytes(uint32_t npages, uint32_t words)
{
	return (size_t) npages * (1 + (size_t) words) * sizeof(uint32_t);
}

/* The same, with so many slots. */
KERNEL_FN size_t
page_rows_bytes(uint32_t slots, uint32_t npages, uint32_t words)
{
	return (size_t) slots * sizeof(uint32_t) + page_rows_pages_bytes(npages, words);
}

/* What is known of the row of a TID (block << 16 | offset).  An offset that has no bits is unknown. */
KERNEL_INLINE PageRow
page_rows_find(const PageRows *rows, uint64_t tid)
{
	uint64_t block = tid >> 16;
	/* offset 0 comes out above all others */
	uint32_t row = (uint32_t) (tid & 0xFFFF) - 1;
	uint32_t word = row / PAGE_ROWS_A_WORD;
	const uint32_t *page;
	uint32_t place;

	if (rows->slots == 0 || word >= rows->words)
		return PAGE_ROW_UNKNOWN;
	place = rows->places[(uint32_t) block & (rows->slots - 1)];
	/* 0 comes out above all others */
	if (place - 1 >= rows->npages)
		return PAGE_ROW_UNKNOWN;
	page = rows->pages + (size_t) (place - 1) * (1 + (size_t) rows->words);
	/* in 64 bits, in which the number after the highest block's is not 0 */
	if (page[0] != block + 1)
		return PAGE_ROW_UNKNOWN;
	return (PageRow) (page[1 + word] >> row % PAGE_ROWS_A_WORD * 2 & 3);
}

#endif /* KERNELS_PAGE_ROWS_H */
