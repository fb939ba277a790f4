/*-------------------------------------------------------------------------
 *
 * hash_apply_cpu.h
 *	  Applying a batch of operations to a hash table on a CPU, beside its readers.
 *
 * Operations are taken key by key.  Those on entries in the table are done at once, each by one
 * store (hash_line.h).  Those on entries in the overflow tree are collected and applied together, a
 * piece at a time.
 *
 * A key gets more than HASH_FEW entries: it moves to the tree.  Its entries are collected as
 * inserts of their own; they are the tree's before the key's marker replaces them in the table, and
 * only then the key's further operations are applied.  When the tree has lost the last entry of a
 * key, the marker goes.
 *
 * So at any time the table is right, with some of the operations done.  If memory runs out it
 * stays so: the same operations may be applied again, because those that were done change
 * nothing the second time.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HASH_APPLY_CPU_H
#define HASH_APPLY_CPU_H

#include "kernels/hash/hash_place_cpu.h"

/* Keys that move, and operations on the tree, that are collected. */
#define HASH_BATCH_KEYS 64
#define HASH_BATCH_OPS 512

/* Operations that are loaded for ahead of the one that is applied. */
#define HASH_APPLY_AHEAD 8

typedef struct HashBatch
{
	Arena *arena;
	hash_cpu_tree *tree;
	int64_t entries; /* of the table and the tree */
	int64_t nmoves;
	int64_t nops;
	int nkeys;
	GpudsOp moves[HASH_BATCH_KEYS * HASH_FEW]; /* entries that move to the tree ... */
	GpudsEntry keys[HASH_BATCH_KEYS];          /* ... and their keys */
	GpudsOp ops[HASH_BATCH_OPS];               /* operations on the tree */
} HashBatch;

/* What the table has of a key, for its applier; returns the segment. */
HOST_FN uint64_t *
hash_find_key(const Arena *arena, const hash_cpu_tree *tree, const GpudsEntry *key, HashFound *found, int nw)
{
	uint64_t hash = hash_of(key);
	uint64_t *segment = hash_segment(arena, hash_locate(arena, tree->root, hash));

	if (nw == 1)
		hash_find(segment, hash_home(hash), key, found, 1);
	else
		hash_find(segment, hash_home(hash), key, found, 2);
	return segment;
}

/* The tree has all entries of a key, which the table has, too: the key's marker replaces these. */
HOST_FN void
hash_mark_key(const Arena *arena, hash_cpu_tree *tree, const GpudsEntry *key, int nw)
{
	const int home = hash_home(hash_of(key));
	HashFound found;
	uint64_t *segment = hash_find_key(arena, tree, key, &found, nw);
	uint64_t first = found.slots & -found.slots;

	hash_store(hash_slot(segment, home, __builtin_ctzll(first), nw) + nw,
			   (key->t & HASH_SPILL_MASK) | HASH_MARKER);
	hash_change_home(segment, home, found.slots & ~first, 0);
}

/* Takes the marker of a key away, if it has one and the tree has none of the key's entries. */
HOST_FN void
hash_unmark_key(const Arena *arena, hash_cpu_tree *tree, const GpudsEntry *key, int nw)
{
	HashFound found;
	uint64_t *segment = hash_find_key(arena, tree, key, &found, nw);

	if (found.marks != 0 && !hash_overflow_has(arena, tree, key))
		hash_change_home(segment, hash_home(hash_of(key)), found.marks, 0);
}

/* Moves the keys that were collected to the tree. */
HOST_FN KernelStatus
hash_flush_moves(HashBatch *b, int nw)
{
	int64_t change = 0;
	KernelStatus status = hash_overflow_apply(b->arena, b->tree, b->moves, b->nmoves, &change);

	for (int i = 0; status == KERNEL_OK && i < b->nkeys; i++)
		hash_mark_key(b->arena, b->tree, &b->keys[i], nw);
	b->nmoves = b->nkeys = 0;
	return status;
}

/*
 * Takes the markers away of keys that have lost their last entry, among those of the operations that
 * were collected.  current: a key whose operations are still being collected, NULL: none is.
 */
HOST_FN void
hash_unmark_collected(HashBatch *b, const GpudsEntry *current, int nw)
{
	for (int64_t i = 0; i < b->nops; i++)
	{
		const GpudsEntry *key = &b->ops[i].e;

		if (i + 1 < b->nops && hash_same_key(key, &b->ops[i + 1].e))
			continue;
		if (current == NULL || !hash_same_key(key, current))
			hash_unmark_key(b->arena, b->tree, key, nw);
	}
	b->nops = 0;
}

/* Does what was collected; current as above.  KERNEL_NO_MEMORY: or a part of it. */
HOST_FN KernelStatus
hash_flush(HashBatch *b, const GpudsEntry *current, int nw)
{
	KernelStatus status = hash_flush_moves(b, nw);
	int64_t change = 0;

	if (status == KERNEL_OK)
		status = hash_overflow_apply(b->arena, b->tree, b->ops, b->nops, &change);
	b->entries += change;
	hash_unmark_collected(b, status == KERNEL_OK ? current : NULL, nw);
	return status;
}

/* Collects an operation on the tree. */
HOST_FN KernelStatus
hash_collect_op(HashBatch *b, const GpudsOp *op, int nw)
{
	KernelStatus status = KERNEL_OK;

	if (b->nops == HASH_BATCH_OPS)
		status = hash_flush(b, &op->e, nw);
	if (status == KERNEL_OK)
		b->ops[b->nops++] = *op;
	return status;
}

/* Collects the entries that the table has of a key, which moves to the tree. */
HOST_FN KernelStatus
hash_collect_move(HashBatch *b, const GpudsEntry *key, const HashFound *found, int nw)
{
	KernelStatus status = KERNEL_OK;
	GpudsEntry sorted[HASH_FEW];
	int64_t n = 0;

	if (b->nkeys == HASH_BATCH_KEYS)
		status = hash_flush(b, key, nw);
	if (status != KERNEL_OK)
		return status;
	for (int i = 0; i < found->n; i++)
	{
		GpudsEntry e = *key;

		e.t = found->t[i];
		n = hash_merge_entry(sorted, n, HASH_FEW, &e, true);
	}
	for (int64_t i = 0; i < n; i++)
	{
		b->moves[b->nmoves].e = sorted[i];
		b->moves[b->nmoves++].order = GPUDS_OP_INSERT;
	}
	b->keys[b->nkeys++] = *key;
	return KERNEL_OK;
}

/* Has the table the entry?  Its slot's bit, 0: no. */
HOST_FN uint64_t
hash_found_slot(const HashFound *found, uint64_t t)
{
	uint64_t slots = found->slots;

	for (int i = 0; i < found->n; i++, slots &= slots - 1)
	{
		if (found->t[i] == t)
			return slots & -slots;
	}
	return 0;
}

/*
 * Operations on a key of which the tree may have entries.  What the table has of it is deleted there;
 * nothing comes into the table any more.
 */
HOST_FN KernelStatus
hash_apply_to_tree(HashBatch *b, const GpudsOp *ops, int64_t n, const HashFound *found, uint64_t *segment,
				   int nw)
{
	KernelStatus status = KERNEL_OK;

	for (int64_t i = 0; status == KERNEL_OK && i < n; i++)
	{
		uint64_t slot = hash_found_slot(found, ops[i].e.t);

		if (slot == 0)
			status = hash_collect_op(b, &ops[i], nw);
		else if (ops[i].order & GPUDS_OP_DELETE)
		{
			hash_change_home(segment, hash_home(hash_of(&ops[i].e)), slot, 0);
			b->entries--;
		}
	}
	return status;
}

/* The deletions among operations on a key of which the table has all entries. */
HOST_FN void
hash_apply_deletes(HashBatch *b, const GpudsOp *ops, int64_t n, const HashFound *found, uint64_t *segment)
{
	uint64_t gone = 0;

	for (int64_t i = 0; i < n; i++)
	{
		if (ops[i].order & GPUDS_OP_DELETE)
			gone |= hash_found_slot(found, ops[i].e.t);
	}
	if (gone != 0)
		hash_change_home(segment, hash_home(hash_of(&ops[0].e)), gone, 0);
	b->entries -= __builtin_popcountll(gone);
}

/* The inserts among them.  From some point on they may be the tree's. */
HOST_FN KernelStatus
hash_apply_inserts(HashBatch *b, const GpudsOp *ops, int64_t n, int nw)
{
	const uint64_t hash = hash_of(&ops[0].e);
	HashFound found;

	for (int64_t i = 0; i < n; i++)
	{
		HashPlaced placed = HASH_PLACED_NOT;
		uint64_t *segment;

		if (ops[i].order & GPUDS_OP_DELETE)
			continue;
		segment = hash_find_key(b->arena, b->tree, &ops[i].e, &found, nw);
		if (hash_found_slot(&found, ops[i].e.t) != 0)
			continue;
		if (found.n < HASH_FEW)
			placed = hash_place(b->arena, b->tree, hash, &ops[i].e, nw);
		else if (hash_collect_move(b, &ops[i].e, &found, nw) != KERNEL_OK)
			return KERNEL_NO_MEMORY;
		else
			found.n = 0; /* operations on these entries are the tree's now */
		if (placed == HASH_PLACED_NO_MEMORY)
			return KERNEL_NO_MEMORY;
		if (placed == HASH_PLACED_NOT)
			return hash_apply_to_tree(b, ops + i, n - i, &found, segment, nw);
		b->entries++;
	}
	return KERNEL_OK;
}

/* All operations of a batch on a key. */
HOST_FN KernelStatus
hash_apply_key(HashBatch *b, const GpudsOp *ops, int64_t n, int nw)
{
	HashFound found;
	uint64_t *segment = hash_find_key(b->arena, b->tree, &ops[0].e, &found, nw);

	if (hash_found_overflow(&found))
		return hash_apply_to_tree(b, ops, n, &found, segment, nw);
	/* first, because they make room */
	hash_apply_deletes(b, ops, n, &found, segment);
	return hash_apply_inserts(b, ops, n, nw);
}

/*
 * Applies a batch of operations, strictly ascending by entry.  KERNEL_NO_MEMORY: some of them were
 * applied.  The caller is the only one that changes the table.
 */
HOST_FN KernelStatus
hash_cpu_apply(Arena *arena, CpuTree *common, const GpudsOp *ops, int64_t n)
{
	hash_cpu_tree *tree = (hash_cpu_tree *) common;
	const int nw = (int) tree->common.nwords;
	KernelStatus status = KERNEL_OK;
	HashBatch b;

	b.arena = arena;
	b.tree = tree;
	b.entries = (int64_t) tree->common.entries;
	b.nmoves = b.nops = b.nkeys = 0;
	for (int64_t i = 0; status == KERNEL_OK && i < n;)
	{
		int64_t end = i + 1;

		while (end < n && hash_same_key(&ops[i].e, &ops[end].e))
			end++;
		if (i + HASH_APPLY_AHEAD < n)
		{
			uint64_t hash = hash_of(&ops[i + HASH_APPLY_AHEAD].e);

			hash_prefetch_home(hash_segment(arena, hash_locate(arena, tree->root, hash)), hash_home(hash));
		}
		status = hash_apply_key(&b, ops + i, end - i, nw);
		i = end;
	}
	if (status == KERNEL_OK)
		status = hash_flush(&b, NULL, nw);
	hash_unmark_collected(&b, NULL, nw);
	/* whatever was done: segments and nodes that were replaced wait for this version */
	hash_publish(tree, (uint64_t) b.entries);
	hash_show_space(tree);
	return status;
}

#endif /* HASH_APPLY_CPU_H */
