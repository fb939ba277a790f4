/*-------------------------------------------------------------------------
 *
 * cell.c
 *	  Cells of the key space, for predicate locks.
 *
 * A cell is all keys that agree in their leading bits.  How many bits these are is the cell's level.  A cell
 * of a column's finest level is one code of the column together with values of the columns before.  A cell of
 * its coarser levels is a range of 2^8, 2^16, ... codes.  A NULL of the key's last column shares the cell of
 * the code next to it.
 *
 * A scan locks the cells of an interval at the finest level at which they are few.  An insert looks for the
 * locks of its key's cell at each level.  So both need not agree on a level:
 *
 *	  C1	If an interval has an entry, then a cell of the interval is the entry's cell of that level.
 *
 *			Cells of a level are an ordered partition of all keys, and those of an interval are all from that
 *			of its lower end to that of its upper end.
 *
 *	  C2	A cell depends on the bits of the key and on the layout only: not on the TID, on included columns,
 *			or on the state of the index.
 *
 *			Equal values have equal bits, whatever their bytes are (invariant 1 of this directory).
 *
 * A cell's number is a hash.  Cells that have the same number share their locks, which fails transactions for
 * nothing but misses no conflict.  Locks of prepared transactions outlive the server's process, so the number
 * of a cell must stay what it is.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/hashfn.h"

#include "key/code.h"

/* Bits that a level leaves out more than the next finer one, of a column of 64 bits at most; else twice. */
#define LEVEL_BITS 8

/* A level whose cells are an eighth of the column or more has as many cells as an interval may have. */
#define LOG2_INTERVAL_CELLS 3
StaticAssertDecl(GPUDS_INTERVAL_CELLS == 1 << LOG2_INTERVAL_CELLS, "cells of an interval");

static void
add_level(GpudsKeyLayout *layout, int place)
{
	Assert(layout->nlevels < GPUDS_CELL_LEVELS);
	layout->level[layout->nlevels++] = place;
}

/* Sets a layout's levels, from the finest one on; its columns have their places. */
void
gpuds_key_set_levels(GpudsKeyLayout *layout)
{
	layout->nlevels = 0;
	for (int i = layout->nkeys - 1; i >= 0; i--)
	{
		const GpudsKeyColumn *column = &layout->column[i];
		const int step = column->bits > 64 ? 2 * LEVEL_BITS : LEVEL_BITS;

		add_level(layout, column->shift);
		for (int bits = step; layout->ordered && bits + LOG2_INTERVAL_CELLS < column->bits; bits += step)
			add_level(layout, column->shift + bits);
	}
}

/* The number of the cell, of a level, that a key is in. */
static uint32
cell_number(const GpudsKeyLayout *layout, int level, const GpudsKeyString *key)
{
	const int place = layout->level[level];
	const GpudsCode high = place > ENTRY_SPILL_BITS ? key->high >> (place - ENTRY_SPILL_BITS) : key->high;
	const uint64 spill = place < ENTRY_SPILL_BITS ? key->spill >> place : 0;
	const uint64 words[] = { (uint64) level, (uint64) (high >> 64), (uint64) high, spill };

	return (uint32) hash_bytes_extended((const unsigned char *) words, sizeof(words), 0) & GPUDS_CELL_MASK;
}

/* The number of an entry's cell of a level. */
uint32
gpuds_key_cell(const GpudsKeyLayout *layout, int level, const GpudsEntry *entry)
{
	GpudsKeyString key;

	gpuds_key_from_entry(entry, layout->nwords, &key);
	return cell_number(layout, level, &key);
}

/* How many cells behind that of lo is that of hi?  GPUDS_INTERVAL_CELLS: too many. */
static int
cell_distance(const GpudsKeyString *lo, const GpudsKeyString *hi, int place)
{
	/* What follows has no room for the highest bits of a key, but for all those in which near keys differ. */
	if (place < ENTRY_SPILL_BITS && hi->high - lo->high >= GPUDS_INTERVAL_CELLS)
		return GPUDS_INTERVAL_CELLS;
	return (int) Min(gpuds_key_get(hi, place, 128) - gpuds_key_get(lo, place, 128), GPUDS_INTERVAL_CELLS);
}

/* Moves a key on to the next cell. */
static void
next_cell(GpudsKeyString *key, int place)
{
	if (place >= ENTRY_SPILL_BITS)
		key->high += (GpudsCode) 1 << (place - ENTRY_SPILL_BITS);
	else
	{
		key->spill += UINT64_C(1) << place;
		key->high += key->spill >> ENTRY_SPILL_BITS;
		key->spill &= (1 << ENTRY_SPILL_BITS) - 1;
	}
}

/*
 * The numbers of an interval's cells, at the finest level at which there are GPUDS_INTERVAL_CELLS of them at
 * most; returns how many, or 0 if there is no such level.
 */
int
gpuds_key_interval_cells(const GpudsKeyLayout *layout, const GpudsInterval *interval, uint32 *cells)
{
	GpudsKeyString lo;
	GpudsKeyString hi;

	gpuds_key_from_entry(&interval->lo, layout->nwords, &lo);
	gpuds_key_from_entry(&interval->hi, layout->nwords, &hi);
	for (int level = 0; level < layout->nlevels; level++)
	{
		const int place = layout->level[level];
		const int distance = cell_distance(&lo, &hi, place);

		if (distance == GPUDS_INTERVAL_CELLS)
			continue;
		for (int i = 0; i <= distance; i++)
		{
			cells[i] = cell_number(layout, level, &lo);
			next_cell(&lo, place);
		}
		return distance + 1;
	}
	return 0;
}
