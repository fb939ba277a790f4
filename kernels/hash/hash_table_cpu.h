/*-------------------------------------------------------------------------
 *
 * hash_table_cpu.h
 *	  A hash table in an arena: its directory, its segments, and its overflow tree.
 *
 * The directory leads from a hash to a segment, by as many of the hash's highest bits as it takes.
 * It is a tree of nodes of 8 to 64 words (64 to 512 bytes), each of which chooses by the next three to
 * six bits; all nodes but the lowest choose by six.  A word of a node is the place of a segment, or
 * of a node below.  A segment of depth d has all entries whose hashes begin with the same d bits, and
 * as many words of its node lead to it as there are ways to go on.
 *
 *	  bits 0..31	ArenaRef
 *	  bits 32..39	the segment's depth, or by how many bits the node chooses
 *	  bit 63		HASH_NODE: the word leads to a node
 *
 * A segment that is full is split: two new ones get its entries, by one more bit of the
 * hash, and then the directory leads to them.  If the node needs another bit for that, one of twice
 * the size replaces it, or there is a node below.  The old segment is not changed any more, and is
 * freed when no pin is left that is older.  So a table grows by a chunk at a time.
 *
 * The overflow tree has the entries that have no place in the table:
 * those of keys with more than HASH_FEW entries, and of homes that are HASH_OPEN.  It has no life
 * of its own.  Its nodes and the table's pieces come from one space, and its version is the
 * table's: what a change replaces waits in the tree's queue under the table's next version.
 *
 * Where entries are.  An entry is in the table or in the tree.  It moves from the table to the tree
 * only: first the tree's version that has it is published, then the table's slot is given up.  So a
 * reader that looks at the table first and then at the tree meets it at least once.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HASH_TABLE_CPU_H
#define HASH_TABLE_CPU_H

#include "kernels/cpu/cpu_structure.h"
#include "kernels/hash/hash_line.h"
#include "kernels/hash/hash_overflow_cpu.h"

#define HASH_NODE_LEAST_BITS 3
#define HASH_NODE_BITS 6
#define HASH_NODE (UINT64_C(1) << 63)

/* Segments are not split more often: the arena has no more chunks. */
#define HASH_MAX_DEPTH 26

/*
 * A table.  The root of its head is the directory's, which stays the same for the
 * table's life.
 */
typedef struct hash_cpu_tree
{
	CpuTree common;   /* its space tells others which chunks the table has */
	CpuTree overflow; /* its space is where all memory comes from */
	ArenaRef root;    /* of the directory */
} hash_cpu_tree;

_Static_assert(HASH_SEGMENT_BYTES == ARENA_CHUNK_BYTES, "a segment is a chunk");
_Static_assert((8 << HASH_NODE_BITS) == ARENA_MAX_UNITS * ARENA_UNIT_BYTES &&
				   (8 << HASH_NODE_LEAST_BITS) == ARENA_UNIT_BYTES,
			   "nodes are pieces");

/* A table as a reader sees it. */
typedef struct HashView
{
	const Arena *arena;
	const CpuTree *overflow;
	ArenaRef root;
	int nwords;
} HashView;

/* The table, for a reader that has pinned its version; false: it was withdrawn. */
HOST_INLINE bool
hash_view(const Arena *arena, const CpuTree *tree, HashView *view)
{
	GpudsView v;
	bool there = cpu_tree_view(arena, tree, &v);

	view->arena = arena;
	view->overflow = &((const hash_cpu_tree *) tree)->overflow;
	view->root = v.root;
	view->nwords = v.nwords;
	return there;
}

HOST_INLINE uint64_t
hash_make_link(ArenaRef ref, int bits)
{
	return (uint64_t) bits << 32 | ref;
}

/* A link's depth, or its node's bits. */
HOST_INLINE int
hash_link_bits(uint64_t link)
{
	return (int) (link >> 32 & 0xFF);
}

HOST_INLINE uint64_t *
hash_segment(const Arena *arena, uint64_t link)
{
	return (uint64_t *) arena_at(arena, (ArenaRef) link);
}

/* Where a hash leads to. */
typedef struct HashWay
{
	uint64_t link;    /* of the segment */
	uint64_t node;    /* link of the node that has it */
	uint64_t *parent; /* word that leads to this node, NULL: it is the root */
	int above;        /* bits of the hash that have led to the node */
} HashWay;

/* The words of a node. */
HOST_INLINE uint64_t *
hash_node_words(const Arena *arena, uint64_t node)
{
	return (uint64_t *) arena_at(arena, (ArenaRef) node);
}

/* Units of memory of a node that chooses by some bits. */
HOST_INLINE int
hash_node_units(int bits)
{
	return 8 * (1 << bits) / ARENA_UNIT_BYTES;
}

/* Number of the word that a hash chooses in a node of some bits, below others. */
HOST_INLINE unsigned
hash_node_place(uint64_t hash, int above, int bits)
{
	return (unsigned) (hash << above >> (64 - bits));
}

HOST_INLINE HashWay
hash_way(const Arena *arena, ArenaRef root, uint64_t hash)
{
	HashWay way = { 0, HASH_NODE | hash_make_link(root, HASH_NODE_BITS), NULL, 0 };

	for (;;)
	{
		int bits = hash_link_bits(way.node);
		uint64_t *word = hash_node_words(arena, way.node) + hash_node_place(hash, way.above, bits);

		way.link = hash_load(word);
		if ((way.link & HASH_NODE) == 0)
			return way;
		way.parent = word;
		way.node = way.link;
		way.above += bits;
	}
}

/* The link of the segment that a hash leads to. */
HOST_INLINE uint64_t
hash_locate(const Arena *arena, ArenaRef root, uint64_t hash)
{
	return hash_way(arena, root, hash).link;
}

/*
 * What the applier needs
 */

/* Lets others see which chunks the table has; every function that takes or gives memory ends so. */
HOST_FN void
hash_show_space(hash_cpu_tree *tree)
{
	tree->common.space.chunks = tree->overflow.space.chunks;
	__atomic_store_n(&tree->common.space.nchunks, tree->overflow.space.nchunks, __ATOMIC_RELAXED);
}

/* Gives all memory back, of a table that no reader sees. */
HOST_FN void
hash_cpu_release(Arena *arena, CpuTree *common)
{
	hash_cpu_tree *tree = (hash_cpu_tree *) common;

	cpu_tree_release(arena, &tree->overflow);
	tree->overflow.head = 0;
	hash_show_space(tree);
}

/*
 * Publishes a version of the table.  The overflow tree's is the same from then on.  Its space may be
 * in use by the caller.
 */
HOST_FN void
hash_publish(hash_cpu_tree *tree, uint64_t entries)
{
	cpu_tree_publish(&tree->common, head_make(tree->common.nwords, 0, tree->root), entries);
	tree->overflow.version = tree->common.version;
}

/*
 * Applies operations to the overflow tree, ascending by entry; *change gets what that adds to the
 * number of entries.  What it replaces is replaced by the table's next version.
 */
HOST_FN KernelStatus
hash_overflow_apply(Arena *arena, hash_cpu_tree *tree, const GpudsOp *ops, int64_t n, int64_t *change)
{
	int64_t inserted;
	int64_t deleted;
	KernelStatus status;

	tree->overflow.version = tree->common.version;
	status = hash_overflow.apply(arena, &tree->overflow, ops, n, &inserted, &deleted);
	*change = inserted - deleted;
	return status;
}

/* Has the overflow tree any entry of a key? */
HOST_FN bool
hash_overflow_has(const Arena *arena, const hash_cpu_tree *tree, const GpudsEntry *key)
{
	GpudsInterval interval = { *key, *key };
	GpudsScan scan = { &interval, 1, 0, false, { 0, 0, 0 }, NULL };
	GpudsEntry entry;

	interval.lo.t &= HASH_SPILL_MASK;
	interval.hi.t |= ~HASH_SPILL_MASK;
	return hash_overflow.scan(arena, &tree->overflow, &scan, true, &entry, 1) > 0;
}

#endif /* HASH_TABLE_CPU_H */
