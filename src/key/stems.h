/*-------------------------------------------------------------------------
 *
 * stems.h
 *	  Stems: beginnings that many texts of an index have, which codes need not repeat.
 *
 * The stems of a column are a tree: a stem's parent is the longest other one that it begins with, and the
 * root is empty.  Of two stems with one parent neither begins with the other.  A column has stems if its
 * index was made of rows whose texts begin alike; they stay as they are for the life of the index's file.
 *
 * In the order of bytes the texts that begin with a stem are neighbours, from one place to another.  These
 * places are counted: the number of a text is how many of them it is not below.  Texts of one number have
 * their longest stem in common, so the number and the bytes behind that stem are in the order of texts.
 *
 * What is stored of an index (stem_sample.c, gpuds_stems_load), and is part of its format: for each column
 * that has stems a GpudsStemsHeader; a GpudsStoredStem for the root, its children, then theirs, and so on,
 * so that the children of each are neighbours, in ascending order; the bytes of each behind its parent, in
 * the same order; zeros up to a multiple of eight.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_KEY_STEMS_H
#define GPUDS_KEY_STEMS_H

#include "key/key.h"

/* Bytes of a stem, at most: fewer than are hashed of a text, by more than a code has. */
#define GPUDS_STEM_BYTES 512

/* Stems of a column, with its root, and their bytes in all, at most. */
#define GPUDS_STEMS 8192
#define GPUDS_STEMS_BYTES (128 * 1024)

typedef struct GpudsStemsHeader
{
	uint16 column; /* from 0 on, ascending */
	uint16 bits;   /* of a number: 8 or 16 */
	uint32 nstems; /* with the root */
	uint32 nbytes; /* of all of them */
} GpudsStemsHeader;

typedef struct GpudsStoredStem
{
	uint16 nbytes; /* behind its parent */
	uint16 nchildren;
} GpudsStoredStem;

typedef struct GpudsStem
{
	uint64 head;      /* the first bytes behind its parent as a number, then zeros */
	uint32 start;     /* of these bytes, among those of all */
	uint16 nbytes;    /* behind its parent */
	uint16 first;     /* of its children */
	uint16 nchildren; /* which are neighbours, and ascend */
	uint16 number;    /* of texts from it on */
	uint16 behind;    /* of texts behind those that begin with it */
} GpudsStem;

/* The stems of a column. */
struct GpudsStems
{
	int bits;              /* of a number; 0: there are none */
	const GpudsStem *stem; /* the root first */
	const uint8 *bytes;
};

/* Where a text is among stems. */
typedef struct GpudsStemPlace
{
	int number;
	int nbytes; /* of its longest stem */
} GpudsStemPlace;

/* stems.c */
extern GpudsStemPlace gpuds_stems_find(const GpudsStems *stems, const uint8 *text, int n);

#endif /* GPUDS_KEY_STEMS_H */
