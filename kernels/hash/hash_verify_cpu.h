/*-------------------------------------------------------------------------
 *
 * hash_verify_cpu.h
 *	  Checking everything that a hash table in an arena promises.
 *
 * The overflow tree checks itself, and cpu_verify.h accounts for
 * the memory: the table's pieces are marked among those of the tree.  Of the table:
 *
 *	  - Every word of the directory leads to a node of the next level, or to a segment; the words of a
 *		segment are those that its depth says, and no others.
 *	  - A slot belongs to one home at most, and its key to that home and segment.
 *	  - No entry is in the table twice, or in the table and the tree, and no key has more than
 *		HASH_FEW there.  A key with a marker has no entries in the table, but some in the tree.
 *	  - An entry of the tree is found: its key has a marker, or an open home.
 *	  - There are as many entries as the table says.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HASH_VERIFY_CPU_H
#define HASH_VERIFY_CPU_H

#include "kernels/hash/hash_probe_cpu.h"

typedef struct HashVerify
{
	CpuVerify memory; /* first: the overflow tree, and what it says */
	const hash_cpu_tree *table;
	uint64_t entries; /* found in segments */
} HashVerify;

/* Is an entry in the overflow tree? */
HOST_FN bool
hash_verify_in_tree(const HashVerify *v, const GpudsEntry *e)
{
	GpudsInterval interval = { *e, *e };
	HashView view = { v->memory.arena, &v->table->overflow, v->table->root, (int) v->table->common.nwords };
	GpudsEntry found;

	return hash_overflow_scan(&view, &interval, &found, 1, true) > 0;
}

/* The slots of a segment: each is of one home. */
HOST_FN bool
hash_verify_slots(HashVerify *v, ArenaRef ref, const uint64_t *segment, int nw)
{
	for (int line = 0; line < HASH_LINES; line++)
	{
		uint64_t word = *hash_home_word(segment, line);
		uint64_t used = 0;

		if ((word & HASH_SLOTS_MASK) >> HASH_REACH * hash_slots(nw) != 0)
			return cpu_verify_wrong(&v->memory,
									"line %d of the segment at unit %u has slots that are too far", line,
									ref);
		for (int l = 0; l < HASH_REACH; l++)
		{
			uint64_t theirs = *hash_home_word(segment, line + HASH_LINES - l) >> l * hash_slots(nw);

			theirs &= hash_line_bits(0, nw);
			if (used & theirs)
				return cpu_verify_wrong(&v->memory,
										"a slot of line %d of the segment at unit %u has two homes", line,
										ref);
			used |= theirs;
		}
	}
	return true;
}

/* What a home has of one of its keys, beside what the tree has of it. */
HOST_FN bool
hash_verify_key(HashVerify *v, ArenaRef ref, const uint64_t *segment, int home, const GpudsEntry *e, int nw)
{
	HashFound found;
	int equal = 0;

	hash_find(segment, home, e, &found, nw);
	if (found.marks != 0)
	{
		if (found.n > 0 || (found.marks & (found.marks - 1)) != 0)
			return cpu_verify_wrong(&v->memory,
									"home %d of the segment at unit %u has a marker and an entry of a key",
									home, ref);
		if (!hash_overflow_has(v->memory.arena, v->table, e))
			return cpu_verify_wrong(&v->memory,
									"home %d of the segment at unit %u has a marker without entries", home,
									ref);
		return true;
	}
	for (int i = 0; i < found.n; i++)
		equal += found.t[i] == e->t;
	if (equal != 1 || found.n > HASH_FEW)
		return cpu_verify_wrong(&v->memory, "home %d of the segment at unit %u has %s", home, ref,
								equal != 1 ? "an entry twice" : "too many entries of a key");
	if ((found.word & HASH_OPEN) && hash_verify_in_tree(v, e))
		return cpu_verify_wrong(&v->memory,
								"home %d of the segment at unit %u has an entry that the tree has, too", home,
								ref);
	return true;
}

/* A segment whose hashes begin as hash does. */
HOST_FN bool
hash_verify_segment(HashVerify *v, uint64_t link, uint64_t hash, int nw)
{
	const uint64_t *segment = hash_segment(v->memory.arena, link);
	const int depth = hash_link_bits(link);
	ArenaRef ref = (ArenaRef) link;

	if (!cpu_verify_mark(&v->memory, ref, ARENA_CHUNK_UNITS, "segment") ||
		!hash_verify_slots(v, ref, segment, nw))
		return false;
	for (int home = 0; home < HASH_LINES; home++)
	{
		for (uint64_t bits = *hash_home_word(segment, home) & HASH_SLOTS_MASK; bits != 0; bits &= bits - 1)
		{
			GpudsEntry e = hash_slot_entry(hash_slot(segment, home, __builtin_ctzll(bits), nw), nw);
			uint64_t its = hash_of(&e);

			if (hash_home(its) != home)
				return cpu_verify_wrong(&v->memory,
										"home %d of the segment at unit %u has an entry of home %d", home,
										ref, hash_home(its));
			if (depth > 0 && (its ^ hash) >> (64 - depth) != 0)
				return cpu_verify_wrong(&v->memory, "the segment at unit %u has an entry of another", ref);
			if (!hash_verify_key(v, ref, segment, home, &e, nw))
				return false;
			v->entries += (e.t & HASH_MARKER) == 0;
		}
	}
	return true;
}

/* How many words of a node lead to the segment of word i; 0: its depth is wrong, or they do not. */
HOST_FN int
hash_verify_words(HashVerify *v, uint64_t node, int above, int i)
{
	const uint64_t *words = hash_node_words(v->memory.arena, node);
	int depth = hash_link_bits(words[i]);
	int n = 0;

	if (depth >= above && depth <= above + hash_link_bits(node) && depth <= HASH_MAX_DEPTH)
		n = 1 << (above + hash_link_bits(node) - depth);
	if (n == 0 || i % n != 0)
	{
		(void) cpu_verify_wrong(&v->memory, "word %d of the node at unit %u says depth %d", i,
								(ArenaRef) node, depth);
		return 0;
	}
	for (int k = 1; k < n; k++)
	{
		if (words[i + k] != words[i])
		{
			(void) cpu_verify_wrong(&v->memory, "word %d of the node at unit %u leads elsewhere", i + k,
									(ArenaRef) node);
			return 0;
		}
	}
	return n;
}

/*
 * A node and what is below it; hash: what leads to its first word, by above bits.  Recursion is as deep
 * as the directory.
 */
HOST_FN bool
hash_verify_node(HashVerify *v, uint64_t node, uint64_t hash, int above)
{
	const uint64_t *words = hash_node_words(v->memory.arena, node);
	const int nw = (int) v->table->common.nwords;
	const int bits = hash_link_bits(node);

	if (bits < HASH_NODE_LEAST_BITS || bits > HASH_NODE_BITS || above >= HASH_MAX_DEPTH)
		return cpu_verify_wrong(&v->memory, "the node at unit %u has %d bits below %d", (ArenaRef) node, bits,
								above);
	if (!cpu_verify_mark(&v->memory, (ArenaRef) node, hash_node_units(bits), "node of the directory"))
		return false;
	for (int i = 0, n = 1; i < 1 << bits; i += n)
	{
		uint64_t here = hash | (uint64_t) i << (64 - above - bits);
		bool sound;

		n = 1;
		if (words[i] & HASH_NODE)
		{
			if (bits < HASH_NODE_BITS)
				return cpu_verify_wrong(&v->memory, "the node at unit %u is above another", (ArenaRef) node);
			sound = hash_verify_node(v, words[i], here, above + bits);
		}
		else
		{
			n = hash_verify_words(v, node, above, i);
			sound = n > 0 && hash_verify_segment(v, words[i], here, nw);
		}
		if (!sound)
			return false;
	}
	return true;
}

/* The table leads to every entry of the overflow tree. */
HOST_FN bool
hash_verify_overflow(HashVerify *v)
{
	const hash_cpu_tree *table = v->table;
	GpudsInterval all = { { 0, 0, 0 }, { UINT64_MAX, UINT64_MAX, UINT64_MAX } };
	GpudsScan scan = { &all, 1, 0, false, { 0, 0, 0 }, NULL };
	GpudsEntry entries[64];
	int64_t n;

	do
	{
		n = hash_overflow.scan(v->memory.arena, &table->overflow, &scan, true, entries, 64);
		for (int64_t i = 0; i < n; i++)
		{
			uint64_t hash = hash_of(&entries[i]);
			const uint64_t *segment = hash_segment(v->memory.arena,
												   hash_locate(v->memory.arena, table->root, hash));
			HashFound found;

			hash_find(segment, hash_home(hash), &entries[i], &found, (int) table->common.nwords);
			if (!hash_found_overflow(&found))
				return cpu_verify_wrong(&v->memory, "home %d has no marker of a key that the tree has",
										hash_home(hash));
		}
	} while (n == 64);
	return true;
}

/* A table that was not withdrawn; the overflow tree is sound. */
HOST_FN bool
hash_verify_table(HashVerify *v)
{
	const CpuTree *common = &v->table->common;
	uint64_t in_tree = cpu_tree_entries(&v->table->overflow);

	if (common->nwords != v->table->overflow.nwords ||
		(common->head & ~CPU_HEAD_COUNT) != head_make(common->nwords, 0, v->table->root))
		return cpu_verify_wrong(&v->memory, "the head does not fit the table");
	if (v->table->overflow.version != common->version)
		return cpu_verify_wrong(&v->memory, "the overflow tree is of another version");
	if (!hash_verify_node(v, HASH_NODE | hash_make_link(v->table->root, HASH_NODE_BITS), 0, 0) ||
		!hash_verify_overflow(v))
		return false;
	if (v->entries + in_tree != common->entries)
		return cpu_verify_wrong(&v->memory,
								"%llu entries in segments and %llu in the tree, but the table says %llu",
								(unsigned long long) v->entries, (unsigned long long) in_tree,
								(unsigned long long) common->entries);
	return true;
}

/* The overflow tree, and the table. */
HOST_FN bool
hash_verify_both(CpuVerify *memory)
{
	return hash_overflow.verify(memory) && hash_verify_table((HashVerify *) memory);
}

/* Checks a table; the caller keeps others from changing it. */
HOST_FN bool
hash_cpu_verify(const Arena *arena, const CpuTree *tree, char *why, size_t whylen)
{
	const hash_cpu_tree *table = (const hash_cpu_tree *) tree;
	HashVerify v = { .table = table };

	if (tree->space.chunks != table->overflow.space.chunks ||
		tree->space.nchunks != table->overflow.space.nchunks)
	{
		snprintf(why, whylen, "others see another space");
		return false;
	}
	return cpu_verify(&v.memory, arena, &table->overflow, tree->head != 0, hash_verify_both, why, whylen);
}

#endif /* HASH_VERIFY_CPU_H */
