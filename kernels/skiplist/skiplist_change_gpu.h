/*-------------------------------------------------------------------------
 *
 * skiplist_change_gpu.h
 *	  What threads do to a skip list in device memory: the steps of a round of an apply.
 *
 * A round has the operations of a batch, or some of them, in any order, and makes one version:
 *
 *	  find		a thread an operation finds its chunk of level 0, and puts it on the chunk's list
 *	  leaf		a thread a chunk that has a list does all its operations
 *	  index		a thread an index chunk, some of whose chunks below were replaced or have few entries:
 *				changes its entries; level by level
 *	  end		one block: levels on top come and go; what the version consists of; what the host gets to know
 *
 * A chunk has one owner in each step, which touches no other chunk but those that it makes, and those
 * right below it.  So there are no locks, nobody waits within a step, and nothing has to be sorted but the
 * operations of one chunk.  The order in which operations come to a list is not known, and makes no
 * difference but for the slots that entries are put in.
 *
 * A chunk has up to GPU_SKIPLIST_RUN operations in a round.  If there are more, all of them wait; so do
 * those of a chunk for whose parts there are no free nodes left.  skiplist_apply_gpu.h says what becomes of
 * them.
 *
 * A chunk that is replaced, its change, has any number of parts, of as many entries each; at the
 * right end of the list all but the last are full, behind ascending inserts.  A chunk without entries leaves
 * the index.  One that deletes have left few entries is joined with a neighbour below the same index chunk,
 * if both fit into one with room to spare.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SKIPLIST_CHANGE_GPU_H
#define SKIPLIST_CHANGE_GPU_H

#include "kernels/skiplist/skiplist_list_gpu.h"

/* Operations on one chunk that its owner does in a round. */
#define GPU_SKIPLIST_RUN 32

/* Entries of each part that a full chunk is divided into, at most, unless it is the last one. */
#define GPU_SKIPLIST_ROOMY 9

/* A chunk with so many entries is joined with a neighbour, if both have no more than the other number. */
#define GPU_SKIPLIST_FEW 3
#define GPU_SKIPLIST_JOINED 8

/* A chunk that something is to be done about. */
struct GpuSkiplistTouched
{
	GpuRef ref;
	uint32_t path;
	uint32_t pieces; /* that have replaced it, or GPU_SKIPLIST_STAYS ... */
	uint32_t first;  /* ... the first one's number among the nodes taken */
	uint32_t next;   /* number + 1 of the next chunk of its parent's list */
};

#define GPU_SKIPLIST_STAYS UINT32_MAX

/* Operations of a round: all those at a stride, or all but every third of them, which were done before. */
struct GpuSkiplistSource
{
	const GpudsOp *ops;
	int64_t stride;
	bool between;

	GPU_FN GpudsOp op(int64_t i) const
	{
		return ops[(between ? i / 2 * 3 + i % 2 + 1 : i) * stride];
	}
};

template <int nw> struct GpuSkiplistRound
{
	unsigned char *base;
	GpuSkiplistView view; /* what is changed: the newest version, or what rounds before have made of it */
	uint64_t stamp;       /* the version that is made */
	uint64_t oldest;      /* that a reader may have */
	GpuSkiplistSource source;
	GpudsOp *copies;             /* of all operations, if their source is host memory; else NULL */
	uint32_t *next;              /* of each operation, on its chunk's list: number + 1 */
	GpuSkiplistTouched *touched; /* level by level */
	uint32_t from[GPU_SKIPLIST_MAX_HEIGHT];
	GpuRef *path;   /* of each touched chunk of level 0: its chunks of all levels */
	uint32_t *last; /* ... and a bit for each of them: it is the last of its level */
	const GpuRef *top[GPU_SKIPLIST_KINDS];
	uint32_t limit[GPU_SKIPLIST_KINDS]; /* nodes that may be taken */
	GpuRef *retired[GPU_SKIPLIST_KINDS];
	const GpuRef *table;                 /* the node that says what the new version consists of ... */
	GpuRef *old_table;                   /* ... and where the one before it is retired */
	GpudsEntry *low[GPU_SKIPLIST_KINDS]; /* low bounds of nodes that were taken */
	GpuSkiplistCounts *counts;

	/* An operation that its thread has found the chunk of. */
	GPU_FN GpudsOp op(int64_t i) const
	{
		return copies ? copies[i] : source.op(i);
	}

	/*
	 * Nodes
	 */

	GPU_FN bool take(int kind, uint32_t n, uint32_t *first) const
	{
		*first = gpu_atomic_add(&counts->taken[kind], n);
		if (*first + n <= limit[kind])
			return true;
		/* nobody finds any after this */
		gpu_atomic_max(&counts->short_at[kind], ~*first);
		return false;
	}

	GPU_FN GpuRef node(int kind, uint32_t number) const
	{
		return *(top[kind] - number);
	}

	GPU_FN void retire(int kind, GpuRef ref) const
	{
		retired[kind][gpu_atomic_add(&counts->retired[kind], 1)] = ref;
	}

	GPU_FN uint64_t *chunk(GpuRef ref) const
	{
		return gpu_skiplist_chunk(base, ref);
	}

	/* The order word that a chunk will have, or has. */
	GPU_FN uint64_t order_after(GpuRef ref) const
	{
		return gpu_skiplist_order(chunk(ref), stamp);
	}

	/* Is a pair of the version that is made, and so nobody's yet? */
	GPU_FN bool is_draft(const uint64_t *at) const
	{
		return at[1] == stamp || at[3] == stamp;
	}

	/*
	 * May a chunk have another order word?  It comes over the older pair, if nobody needs that, or over one
	 * of the version that is made.  *unused: the slots that nobody looks at.
	 */
	GPU_FN bool may_store(const uint64_t *at, uint64_t order, unsigned *unused) const
	{
		uint64_t older = at[1] < at[3] ? at[1] : at[3];
		uint64_t newer = at[1] < at[3] ? at[3] : at[1];
		unsigned used = gpu_skiplist_used(order);

		if (is_draft(at))
			used = gpu_skiplist_used(at[0]) | gpu_skiplist_used(at[2]);
		*unused = ~used & GPU_SKIPLIST_SLOTS_MASK;
		return is_draft(at) || older == 0 || newer <= oldest;
	}

	GPU_FN void store_order(uint64_t *at, uint64_t order) const
	{
		bool first = (at[1] < at[3]) != is_draft(at);

		gpu_store_pair(at + (first ? 0 : 2), order, stamp);
	}

	/* Puts a chunk that was replaced, or has few entries, on its parent's list, if there is a parent. */
	GPU_FN void raise(uint32_t number, int level) const
	{
		GpuSkiplistTouched *t = &touched[number];
		GpuRef parent;
		uint32_t before;

		if (level + 1 == view.height)
			return;
		parent = path[(size_t) t->path * (size_t) view.height + (size_t) level + 1];
		before = gpu_atomic_exchange(&gpu_skiplist_notes(chunk(parent), true)->head, number + 1);
		t->next = before;
		if (before != 0)
			return;
		/* its owner will look at all of it, and so far only what a search needs was looked at */
		gpu_prefetch(chunk(parent) + GPU_SKIPLIST_REFS);
		gpu_prefetch(chunk(parent) + 2 * GPU_SKIPLIST_REFS);
		touched[from[level + 1] + gpu_atomic_add(&counts->touched[level + 1], 1)] = { parent, t->path,
																					  GPU_SKIPLIST_STAYS, 0,
																					  0 };
	}

	/* Parts that so many entries are divided into. */
	static GPU_FN uint32_t parts(uint32_t n, bool full)
	{
		if (n <= GPU_SKIPLIST_PLACES)
			return 1;
		return full ? (n + GPU_SKIPLIST_PLACES - 1) / GPU_SKIPLIST_PLACES
					: (n + GPU_SKIPLIST_ROOMY - 1) / GPU_SKIPLIST_ROOMY;
	}

	/* Where part q of p begins. */
	static GPU_FN uint32_t part_start(uint32_t q, uint32_t p, uint32_t n, bool full)
	{
		if (full)
			return q * GPU_SKIPLIST_PLACES < n ? q * GPU_SKIPLIST_PLACES : n;
		return (uint32_t) ((uint64_t) q * n / p);
	}

	/*
	 * Find
	 */

	GPU_FN void find(int64_t i) const
	{
		GpudsOp mine = source.op(i);
		GpuRef way[GPU_SKIPLIST_MAX_HEIGHT];
		GpuRef ref = view.root;
		uint32_t ends = 1u << (view.height - 1);
		bool end = true;
		uint32_t before;

		if (copies)
			copies[i] = mine;
		for (int level = view.height - 1; level > 0; level--)
		{
			uint64_t order;
			int child;

			way[level] = ref;
			ref = gpu_skiplist_down(chunk(ref), view.version, mine.e, &order, &child, nw);
			end = end && child + 1 == gpu_skiplist_n(order);
			ends |= (end ? 1u : 0u) << (level - 1);
		}
		gpu_prefetch(chunk(ref));
		gpu_prefetch(chunk(ref) + gpu_skiplist_t(false));
		before = gpu_atomic_exchange(&gpu_skiplist_notes(chunk(ref), false)->head, (uint32_t) i + 1);
		next[i] = before;
		if (before != 0)
			return;
		before = gpu_atomic_add(&counts->touched[0], 1);
		touched[before] = { ref, before, GPU_SKIPLIST_STAYS, 0, 0 };
		last[before] = ends;
		path[(size_t) before * (size_t) view.height] = ref;
		for (int level = 1; level < view.height; level++)
			path[(size_t) before * (size_t) view.height + (size_t) level] = way[level];
	}

	/*
	 * Leaf
	 */

	/* What will be in a chunk, ascending: slots that it has, or from PLACES on numbers of its operations. */
	struct Merged
	{
		uint8_t item[GPU_SKIPLIST_PLACES + GPU_SKIPLIST_RUN];
		uint32_t n;
		uint32_t inserted;
		uint32_t deleted;
	};

	/* The operations of a chunk's list, sorted; how many, more than RUN if there are too many. */
	GPU_FN int sorted_run(uint32_t head, uint32_t *run) const
	{
		int n = 0;

		for (; head != 0; head = next[head - 1], n++)
		{
			GpudsOp mine = op(head - 1);
			int at = n;

			if (n == GPU_SKIPLIST_RUN)
				return n + 1;
			for (; at > 0; at--)
			{
				GpudsOp other = op(run[at - 1]);

				if (!gpu_op_less(&mine, &other))
					break;
				run[at] = run[at - 1];
			}
			run[at] = head - 1;
		}
		return n;
	}

	GPU_FN void merge(const uint64_t *at, uint64_t order, const uint32_t *run, int n, Merged *m) const
	{
		const int had = gpu_skiplist_n(order);
		int old = 0;
		int i = 0;

		m->n = m->inserted = m->deleted = 0;
		while (old < had || i < n)
		{
			GpudsEntry e = { 0, 0, 0 };
			GpudsOp next_op = { { 0, 0, 0 }, 0 };
			bool there;

			if (i < n)
				next_op = op(run[i]);
			if (old < had)
				e = gpu_skiplist_entry(at, gpu_skiplist_slot(order, old), false, nw);
			if (i == n || (old < had && entry_less(&e, &next_op.e)))
			{
				m->item[m->n++] = (uint8_t) gpu_skiplist_slot(order, old++);
				continue;
			}
			there = old < had && entry_equal(&e, &next_op.e);
			if (next_op.order & GPUDS_OP_DELETE)
				m->deleted += there;
			else
			{
				m->item[m->n++] = (uint8_t) (there ? gpu_skiplist_slot(order, old) : GPU_SKIPLIST_PLACES + i);
				m->inserted += !there;
			}
			old += there;
			/* of operations on one entry the first counts */
			for (e = next_op.e; i < n && entry_equal(&next_op.e, &e);)
			{
				if (++i < n)
					next_op = op(run[i]);
			}
		}
	}

	GPU_FN GpudsEntry merged_entry(const uint64_t *at, const uint32_t *run, const Merged &m, uint32_t i) const
	{
		if (m.item[i] < GPU_SKIPLIST_PLACES)
			return gpu_skiplist_entry(at, m.item[i], false, nw);
		return op(run[m.item[i] - GPU_SKIPLIST_PLACES]).e;
	}

	/* Gives a chunk its new entries by one store of an order word. */
	GPU_FN void store_leaf(uint64_t *at, unsigned unused, const uint32_t *run, const Merged &m) const
	{
		uint64_t will = GPU_SKIPLIST_EMPTY;

		for (uint32_t i = 0; i < m.n; i++)
		{
			int slot = m.item[i];

			if (slot >= GPU_SKIPLIST_PLACES)
			{
				slot = 0;
				while ((unused >> slot & 1) == 0)
					slot++;
				unused &= unused - 1;
				gpu_skiplist_set_entry(at, slot, merged_entry(at, run, m, i), false, nw);
			}
			will = gpu_skiplist_append(will, (int) i, slot);
		}
		store_order(at, will);
	}

	/* Makes the parts of a chunk that is replaced. */
	GPU_FN void make_leaves(const GpuSkiplistTouched &t, const uint32_t *run, const Merged &m,
							bool full) const
	{
		const uint64_t *at = chunk(t.ref);

		for (uint32_t q = 0; q < t.pieces; q++)
		{
			uint32_t start = part_start(q, t.pieces, m.n, full);
			uint32_t end = part_start(q + 1, t.pieces, m.n, full);
			uint64_t *piece = chunk(node(GPU_SKIPLIST_CHUNKS, t.first + q));
			GpudsEntry low = { 0, 0, 0 };

			for (uint32_t i = start; i < end; i++)
				gpu_skiplist_set_entry(piece, (int) (i - start), merged_entry(at, run, m, i), false, nw);
			gpu_skiplist_make(piece, (int) (end - start), stamp, false);
			if (q > 0)
			{
				GpudsEntry before = merged_entry(at, run, m, start - 1);

				low = merged_entry(at, run, m, start);
				low = entry_between(&before, &low);
			}
			low_of(GPU_SKIPLIST_CHUNKS, t.first + q) = low;
		}
	}

	GPU_FN GpudsEntry &low_of(int kind, uint32_t number) const
	{
		return low[kind][number];
	}

	/* Are all new entries behind the old ones of the last chunk? */
	GPU_FN bool ascending(const GpuSkiplistTouched &t, uint64_t order, const Merged &m) const
	{
		uint32_t had = (uint32_t) gpu_skiplist_n(order);

		return (last[t.path] & 1) != 0 && m.deleted == 0 && had > 0 && m.item[had - 1] < GPU_SKIPLIST_PLACES;
	}

	/* What a chunk's only operation makes of it. */
	GPU_FN void merge_one(uint64_t order, const GpuSkiplistPlace &place, bool deletes, Merged *m) const
	{
		const int had = gpu_skiplist_n(order);

		m->n = 0;
		m->deleted = deletes;
		m->inserted = !deletes;
		for (int i = 0; i <= had; i++)
		{
			if (i == place.rank && !deletes)
				m->item[m->n++] = GPU_SKIPLIST_PLACES;
			if (i < had && !(i == place.rank && deletes))
				m->item[m->n++] = (uint8_t) gpu_skiplist_slot(order, i);
		}
	}

	/* Gives a chunk an entry more or less by one store of an order word. */
	GPU_FN void store_one(uint64_t *at, uint64_t order, unsigned unused, const GpuSkiplistPlace &place,
						  const GpudsOp &mine) const
	{
		int slot = 0;

		if (mine.order & GPUDS_OP_DELETE)
		{
			store_order(at, gpu_skiplist_without(order, place.rank));
			return;
		}
		while ((unused >> slot & 1) == 0)
			slot++;
		gpu_skiplist_set_entry(at, slot, mine.e, false, nw);
		store_order(at, gpu_skiplist_with(order, place.rank, slot));
	}

	/* Does the operations of touched chunk number; how many entries they insert and delete. */
	GPU_FN void leaf(uint32_t number, uint32_t *inserted, uint32_t *deleted) const
	{
		GpuSkiplistTouched *t = &touched[number];
		uint64_t *at = chunk(t->ref);
		GpuSkiplistNotes *notes = gpu_skiplist_notes(at, false);
		uint64_t order = gpu_skiplist_order(at, view.version);
		uint32_t run[GPU_SKIPLIST_RUN];
		int n = sorted_run(notes->head, run);
		unsigned unused;
		bool in_place = may_store(at, order, &unused);
		bool stays;
		Merged m;

		notes->head = 0;
		if (n > GPU_SKIPLIST_RUN)
		{
			wait(notes);
			return;
		}
		if (n == 1)
		{
			const GpudsOp mine = op(run[0]);
			const bool deletes = (mine.order & GPUDS_OP_DELETE) != 0;
			const GpuSkiplistPlace place = gpu_skiplist_place(at, order, mine.e, nw);

			if (place.there != deletes)
				return;
			m.n = (uint32_t) gpu_skiplist_n(order) + 1 - 2 * deletes;
			m.inserted = !deletes;
			m.deleted = deletes;
			stays = in_place && (deletes || unused != 0) && (m.n > 0 || view.height == 1);
			if (stays)
				store_one(at, order, unused, place, mine);
			else
				merge_one(order, place, deletes, &m);
		}
		else
		{
			merge(at, order, run, n, &m);
			if (m.inserted == 0 && m.deleted == 0)
				return;
			stays = in_place && m.inserted <= (uint32_t) gpu_popcount(unused) &&
					(m.n > 0 || view.height == 1);
			if (stays)
				store_leaf(at, unused, run, m);
		}
		if (!stays && !replace(number, order, run, m))
		{
			wait(notes);
			return;
		}
		*inserted = m.inserted;
		*deleted = m.deleted;
		if (!stays || (m.deleted > 0 && m.n <= GPU_SKIPLIST_FEW))
			raise(number, 0);
	}

	/* Puts new chunks in the place of touched chunk number; false: there are no nodes for them. */
	GPU_FN bool replace(uint32_t number, uint64_t order, const uint32_t *run, const Merged &m) const
	{
		GpuSkiplistTouched *t = &touched[number];
		uint32_t pieces = 0;

		if (m.n > 0 || view.height == 1)
		{
			bool full = ascending(*t, order, m);

			pieces = parts(m.n, full);
			if (!take(GPU_SKIPLIST_CHUNKS, pieces, &t->first))
				return false;
			t->pieces = pieces;
			make_leaves(*t, run, m, full);
		}
		t->pieces = pieces;
		retire(GPU_SKIPLIST_CHUNKS, t->ref);
		gpu_atomic_add(&counts->level_add[0], pieces - 1);
		return true;
	}

	GPU_FN void wait(GpuSkiplistNotes *notes) const
	{
		notes->waits = 1;
		gpu_atomic_add(&counts->waiting, 1);
	}

	/*
	 * Index
	 */

	/* What comes of the children of an index chunk: sets of them have a bit for each, by number. */
	struct Children
	{
		uint64_t order; /* the index chunk's */
		int n;
		unsigned touched;                     /* something was done about it */
		unsigned fresh;                       /* the index will have others in its place, ... */
		unsigned gone;                        /* ... none, */
		unsigned many;                        /* ... or more than one */
		uint32_t more;                        /* by how many those are more */
		uint32_t change[GPU_SKIPLIST_PLACES]; /* of a touched one: its number + 1 */
		GpuRef one[GPU_SKIPLIST_PLACES];      /* of a fresh one, if that is one: its reference */

		GPU_FN bool is(unsigned set, int i) const
		{
			return (set >> i & 1) != 0;
		}

		/* Entries that the index will have, and those of them that are fresh. */
		GPU_FN uint32_t total() const
		{
			return (uint32_t) (n - gpu_popcount(gone)) + more;
		}

		GPU_FN uint32_t nfresh() const
		{
			return (uint32_t) gpu_popcount(fresh & ~gone) + more;
		}
	};

	/* The number of the child that a reference leads to. */
	GPU_FN int child_of(const uint64_t refs[GPU_SKIPLIST_PLACES / 2], uint64_t order, GpuRef ref) const
	{
		int slot = 0;
		int child = 0;

		GPU_UNROLL
		for (int i = 0; i < GPU_SKIPLIST_PLACES; i++)
		{
			bool used = (gpu_skiplist_used(order) >> i & 1) != 0;

			slot = used && (GpuRef) (refs[i / 2] >> i % 2 * 32) == ref ? i : slot;
		}
		GPU_UNROLL
		for (int i = 0; i < GPU_SKIPLIST_PLACES; i++)
			child = gpu_skiplist_slot(order, i) == slot ? i : child;
		return child;
	}

	GPU_FN void find_children(const uint64_t *at, uint32_t head, int level, Children *c) const
	{
		const int kind = level > 1 ? GPU_SKIPLIST_INDEXES : GPU_SKIPLIST_CHUNKS;
		uint64_t refs[GPU_SKIPLIST_PLACES / 2];

		GPU_UNROLL
		for (int i = 0; i < GPU_SKIPLIST_PLACES / 2; i += 2)
			gpu_load_pair(at + GPU_SKIPLIST_REFS + i, refs + i);
		c->order = gpu_skiplist_order(at, view.version);
		c->n = gpu_skiplist_n(c->order);
		c->touched = c->fresh = c->gone = c->many = 0;
		c->more = 0;
		while (head != 0)
		{
			const GpuSkiplistTouched t = touched[head - 1];
			const int i = child_of(refs, c->order, t.ref);

			c->touched |= 1u << i;
			c->change[i] = head;
			head = t.next;
			if (t.pieces == GPU_SKIPLIST_STAYS)
				continue;
			c->fresh |= 1u << i;
			if (t.pieces == 0)
				c->gone |= 1u << i;
			else if (t.pieces == 1)
				c->one[i] = node(kind, t.first);
			else
			{
				c->many |= 1u << i;
				c->more += t.pieces - 1;
			}
		}
	}

	/* Of a child that is one, the reference that the index will have. */
	GPU_FN GpuRef one(const uint64_t *at, const Children &c, int i) const
	{
		return c.is(c.fresh, i) ? c.one[i] : gpu_skiplist_ref(at, gpu_skiplist_slot(c.order, i));
	}

	GPU_FN bool waits(GpuRef ref, const bool index) const
	{
		return gpu_skiplist_notes(chunk(ref), index)->waits != 0;
	}

	/* Copies the entries of a chunk behind those that another has; key: of the first one, in an index. */
	GPU_FN int copy_entries(uint64_t *to, int n, GpuRef ref, const GpudsEntry *key, const bool index) const
	{
		const uint64_t *at = chunk(ref);
		uint64_t order = order_after(ref);

		for (int i = 0; i < gpu_skiplist_n(order); i++, n++)
		{
			int slot = gpu_skiplist_slot(order, i);

			gpu_skiplist_set_entry(to, n,
								   index && i == 0 && key ? *key : gpu_skiplist_entry(at, slot, index, nw),
								   index, nw);
			if (index)
				gpu_skiplist_set_ref(to, n, gpu_skiplist_ref(at, slot));
		}
		return n;
	}

	/* Joins children i and j, neighbours, if they have few entries. */
	GPU_FN bool join(const uint64_t *at, int i, int j, const bool index, Children *c, int level) const
	{
		const int kind = index ? GPU_SKIPLIST_INDEXES : GPU_SKIPLIST_CHUNKS;
		const GpudsEntry key = gpu_skiplist_entry(at, gpu_skiplist_slot(c->order, j), true, nw);
		const GpuRef a = one(at, *c, i);
		const GpuRef b = one(at, *c, j);
		uint32_t first;
		uint64_t *to;
		int n;

		if (gpu_skiplist_n(order_after(a)) + gpu_skiplist_n(order_after(b)) > GPU_SKIPLIST_JOINED ||
			waits(a, index) || waits(b, index) || !take(kind, 1, &first))
			return false;
		to = chunk(node(kind, first));
		n = copy_entries(to, 0, a, NULL, index);
		n = copy_entries(to, n, b, &key, index);
		gpu_skiplist_make(to, n, stamp, index);
		retire(kind, a);
		retire(kind, b);
		gpu_atomic_add(&counts->level_add[level - 1], UINT32_MAX);
		c->one[i] = node(kind, first);
		c->fresh |= 1u << i;
		c->gone |= 1u << j;
		return true;
	}

	/* The next child behind i that the index will have, or before it; -1: none. */
	GPU_FN int beside(const Children &c, int i, int step) const
	{
		for (i += step; i >= 0 && i < c.n; i += step)
		{
			if (!c.is(c.gone, i))
				return i;
		}
		return -1;
	}

	/* Joins children with few entries, in an index chunk that does not grow. */
	GPU_FN void join_few(const uint64_t *at, int level, const bool index, Children *c) const
	{
		if (c->many != 0)
			return;
		for (int i = 0; i < c->n; i++)
		{
			int next;
			int before;

			if (!c->is(c->touched & ~c->gone, i) ||
				gpu_skiplist_n(order_after(one(at, *c, i))) > GPU_SKIPLIST_FEW)
				continue;
			next = beside(*c, i, 1);
			before = beside(*c, i, -1);
			if (next < 0 || !join(at, i, next, index, c, level))
			{
				if (before >= 0)
					(void) join(at, before, i, index, c, level);
			}
		}
	}

	/* Puts all entries that an index chunk will have: those that stay, by their slots, and fresh ones. */
	template <typename Put>
	GPU_FN void each_child(const uint64_t *at, int level, const Children &c, const Put &put) const
	{
		const int kind = level > 1 ? GPU_SKIPLIST_INDEXES : GPU_SKIPLIST_CHUNKS;

		for (int i = 0; i < c.n; i++)
		{
			const int slot = gpu_skiplist_slot(c.order, i);

			if (c.is(c.gone, i))
				continue;
			if (!c.is(c.fresh, i))
			{
				put.stays(slot);
				continue;
			}
			if (!c.is(c.many, i))
			{
				put.fresh(gpu_skiplist_entry(at, slot, true, nw), c.one[i]);
				continue;
			}
			const GpuSkiplistTouched t = touched[c.change[i] - 1];

			for (uint32_t k = 0; k < t.pieces; k++)
				put.fresh(k == 0 ? gpu_skiplist_entry(at, slot, true, nw) : low_of(kind, t.first + k),
						  node(kind, t.first + k));
		}
	}

	/* Puts entries in place. */
	struct StoreChild
	{
		uint64_t *at;
		unsigned *unused;
		uint64_t *will;
		int *n;

		GPU_FN void stays(int slot) const
		{
			*will = gpu_skiplist_append(*will, (*n)++, slot);
		}

		GPU_FN void fresh(const GpudsEntry &key, GpuRef ref) const
		{
			int slot = 0;

			while ((*unused >> slot & 1) == 0)
				slot++;
			*unused &= *unused - 1;
			gpu_skiplist_set_entry(at, slot, key, true, nw);
			gpu_skiplist_set_ref(at, slot, ref);
			stays(slot);
		}
	};

	GPU_FN void store_index(uint64_t *at, unsigned unused, int level, const Children &c) const
	{
		uint64_t will = GPU_SKIPLIST_EMPTY;
		int n = 0;

		each_child(at, level, c, StoreChild{ at, &unused, &will, &n });
		store_order(at, will);
	}

	/* Writes the parts of an index chunk one after the other. */
	struct MakeChild
	{
		const GpuSkiplistRound *r;
		const GpuSkiplistTouched *t;
		uint32_t total;
		bool full;
		uint32_t *i; /* entries before this one */
		uint32_t *part;
		uint32_t *start; /* of the part */

		GPU_FN void stays(int slot) const
		{
			const uint64_t *at = r->chunk(t->ref);

			fresh(gpu_skiplist_entry(at, slot, true, nw), gpu_skiplist_ref(at, slot));
		}

		GPU_FN void fresh(const GpudsEntry &key, GpuRef ref) const
		{
			uint64_t *piece = r->chunk(r->node(GPU_SKIPLIST_INDEXES, t->first + *part));

			if (*i == *start)
				r->low_of(GPU_SKIPLIST_INDEXES, t->first + *part) = key;
			gpu_skiplist_set_entry(piece, (int) (*i - *start), key, true, nw);
			gpu_skiplist_set_ref(piece, (int) (*i - *start), ref);
			++*i;
			if (*i == part_start(*part + 1, t->pieces, total, full))
			{
				gpu_skiplist_make(piece, (int) (*i - *start), r->stamp, true);
				*start = *i;
				++*part;
			}
		}
	};

	GPU_FN void make_index(const GpuSkiplistTouched &t, int level, const Children &c, bool full) const
	{
		uint32_t i = 0;
		uint32_t part = 0;
		uint32_t start = 0;

		each_child(chunk(t.ref), level, c, MakeChild{ this, &t, c.total(), full, &i, &part, &start });
	}

	/* Does only the last child of an index chunk that is the last of its level grow? */
	GPU_FN bool ascending_index(const GpuSkiplistTouched &t, int level, const Children &c) const
	{
		return (c.many & ~(1u << (c.n - 1))) == 0 && (last[t.path] >> level & 1) != 0;
	}

	/* Changes touched index chunk number, of a level. */
	GPU_FN void index(uint32_t number, int level) const
	{
		GpuSkiplistTouched *t = &touched[number];
		uint64_t *at = chunk(t->ref);
		GpuSkiplistNotes *notes = gpu_skiplist_notes(at, true);
		uint32_t total;
		unsigned unused;
		bool in_place;
		Children c;

		find_children(at, notes->head, level, &c);
		notes->head = 0;
		if (level > 1)
			join_few(at, level, true, &c);
		else
			join_few(at, level, false, &c);
		if (c.fresh == 0)
			return;
		total = c.total();
		in_place = may_store(at, c.order, &unused);
		if (in_place && total > 0 && c.nfresh() <= (uint32_t) gpu_popcount(unused))
		{
			store_index(at, unused, level, c);
			if (total < (uint32_t) c.n && total <= GPU_SKIPLIST_FEW)
				raise(number, level);
			return;
		}
		t->pieces = 0;
		if (total > 0)
		{
			bool full = ascending_index(*t, level, c);
			uint32_t pieces = parts(total, full);

			if (!take(GPU_SKIPLIST_INDEXES, pieces, &t->first))
			{
				counts->failed = 1;
				return;
			}
			t->pieces = pieces;
			make_index(*t, level, c, full);
		}
		retire(GPU_SKIPLIST_INDEXES, t->ref);
		gpu_atomic_add(&counts->level_add[level], t->pieces - 1);
		raise(number, level);
	}

	/*
	 * Finish
	 */

	/* Puts levels above the parts of a root. */
	GPU_FN GpuRef grow(const GpuSkiplistTouched &t, int *height) const
	{
		int kind = *height > 1 ? GPU_SKIPLIST_INDEXES : GPU_SKIPLIST_CHUNKS;
		uint32_t first = t.first;
		uint32_t n = t.pieces;

		while (n > 1)
		{
			uint32_t p = parts(n, false);
			uint32_t here;

			if (*height == GPU_SKIPLIST_MAX_HEIGHT || !take(GPU_SKIPLIST_INDEXES, p, &here))
			{
				counts->failed = 1;
				return 0;
			}
			for (uint32_t q = 0; q < p; q++)
			{
				uint32_t start = part_start(q, p, n, false);
				uint32_t end = part_start(q + 1, p, n, false);
				uint64_t *at = chunk(node(GPU_SKIPLIST_INDEXES, here + q));

				for (uint32_t i = start; i < end; i++)
				{
					gpu_skiplist_set_entry(at, (int) (i - start), low_of(kind, first + i), true, nw);
					gpu_skiplist_set_ref(at, (int) (i - start), node(kind, first + i));
				}
				gpu_skiplist_make(at, (int) (end - start), stamp, true);
				low_of(GPU_SKIPLIST_INDEXES, here + q) = low_of(kind, first + start);
			}
			counts->level_add[(*height)++] += p;
			kind = GPU_SKIPLIST_INDEXES;
			first = here;
			n = p;
		}
		return node(kind, first);
	}

	/* The root of the new version, and its height. */
	GPU_FN GpuRef new_root(int *height) const
	{
		const int top_level = view.height - 1;
		GpuRef root = view.root;

		*height = view.height;
		if (counts->touched[top_level] > 0)
		{
			const GpuSkiplistTouched &t = touched[from[top_level]];

			if (t.pieces == 0)
			{
				*height = 0;
				return 0;
			}
			if (t.pieces != GPU_SKIPLIST_STAYS)
				root = grow(t, height);
		}
		/* an index with one entry */
		while (*height > 1 && gpu_skiplist_n(order_after(root)) == 1 && counts->failed == 0)
		{
			uint64_t order = order_after(root);

			retire(GPU_SKIPLIST_INDEXES, root);
			counts->level_add[--*height]--;
			root = gpu_skiplist_ref(chunk(root), gpu_skiplist_slot(order, 0));
		}
		return root;
	}

	/*
	 * Undo
	 */

	/* Leaves touched chunk i of level 0 as it was before this round, which was the version's first. */
	GPU_FN void undo(int64_t i) const
	{
		uint64_t *at = chunk(touched[i].ref);

		gpu_skiplist_notes(at, false)->waits = 0;
		for (int pair = 0; pair < 4; pair += 2)
		{
			/* what was there before nobody needed */
			if (at[pair + 1] == stamp)
				gpu_store_pair(at + pair, GPU_SKIPLIST_EMPTY, 0);
		}
	}

	/* Writes what the new version consists of, in place of what is at old, 0: nothing. */
	GPU_FN void finish(GpuRef old, GpuSkiplistReport *report) const
	{
		report->root = new_root(&report->height);
		report->table = *table;
		*(GpuSkiplistTable *) chunk(*table) = { stamp, report->root, report->height };
		if (old != 0)
			*old_table = old;
	}

	/* The same by one block, which then tells the host what has come of the round; counts are 0 again. */
	GPU_FN void end(GpuBlock &block, GpuRef old, GpuSkiplistReport *report) const
	{
		uint32_t *from = (uint32_t *) counts;
		uint32_t *to = (uint32_t *) &report->counts;

		block.each(1, [&](int64_t) { finish(old, report); });
		block.each((int64_t) (sizeof(GpuSkiplistCounts) / sizeof(uint32_t)),
				   [&](int64_t i)
				   {
					   to[i] = from[i];
					   from[i] = 0;
				   });
		block.each(1, [&](int64_t) { gpu_release_system(&report->done, 1); });
	}
};

#endif /* SKIPLIST_CHANGE_GPU_H */
