/*-------------------------------------------------------------------------
 *
 * skiplist.c
 *	  A skip list's chunks and changes one by one: what the printed GFSL gets wrong, chunks that were
 *	  replaced, and an applier that is killed at any of its stores.
 *
 *	  usage: skiplist [seed]
 *
 *-------------------------------------------------------------------------
 */
#define SKIPLIST_STORED stored
#define TESTED_SCAN skiplist_cpu_scan
#include "in_place.h"

static skiplist_cpu_tree *const list = (skiplist_cpu_tree *) &tree;

/* The chunk of level 0 that an entry belongs to. */
static uint64_t *
chunk_of(uint64_t i)
{
	GpudsView view;
	SkiplistWay way;
	GpudsEntry e = entry(i);
	const GpudsEntry *x = &e;
	uint64_t link;

	CHECK(cpu_tree_view(arena, &tree.common, &view));
	skiplist_descend(&view, &x, &way, 1, nwords);
	return skiplist_seek(arena, &way.at[0], &e, &link, false, nwords);
}

static int
entries_of(const uint64_t *chunk)
{
	return skiplist_n(chunk[SKIPLIST_ORDER]);
}

/* How many chunks a level has. */
static int64_t
chunks(int level)
{
	ArenaRef ref = head_root(list->head);
	int64_t n = 0;

	for (int above = head_height(list->head) - 1; above > level; above--)
	{
		const uint64_t *chunk = skiplist_at(arena, ref);

		ref = skiplist_ref(chunk, skiplist_slot(chunk[SKIPLIST_ORDER], 0));
	}
	for (; ref != 0; n++)
		ref = skiplist_next(skiplist_at(arena, ref)[SKIPLIST_LINK]);
	return n;
}

/* Order words, and the search in a chunk, against an array. */
static void
order_words(void)
{
	for (int round = 0; round < 2000; round++)
	{
		uint64_t chunk[64] __attribute__((aligned(64)));
		SkiplistItem items[SKIPLIST_PLACES];
		const bool index = round % 2 != 0;
		int n = (int) test_below(SKIPLIST_PLACES + 1);
		uint64_t order;

		for (int i = 0; i < n; i++)
		{
			items[i].e = entry((uint64_t) i * 2);
			items[i].ref = (uint32_t) i + 7;
		}
		skiplist_make(chunk, items, n, index, nwords);
		order = chunk[SKIPLIST_ORDER];
		for (int step = 0; step < 20; step++)
		{
			GpudsOp op = { entry(test_below(2 * SKIPLIST_PLACES)),
						   (test_random() & 0xFFFF) << 1 | test_below(2) };
			SkiplistItem other[SKIPLIST_PLACES + 1];
			int most = skiplist_used(order) == SKIPLIST_PLACES;
			int after = skiplist_merge(items, n, &op, 1, other);
			int change;

			if (!skiplist_do(chunk, &order, &op, &change, index, nwords))
			{
				CHECK(most && after == n + 1);
				continue;
			}
			CHECK(change == after - n);
			n = after;
			memcpy(items, other, (size_t) n * sizeof(SkiplistItem));
			CHECK(skiplist_n(order) == n && skiplist_used(order) <= SKIPLIST_PLACES);
			for (int i = 0; i < SKIPLIST_PLACES; i++)
			{
				GpudsEntry e;

				CHECK((skiplist_slot(order, i) == SKIPLIST_NO_SLOT) == (i >= n));
				if (i >= n)
					continue;
				e = skiplist_entry(chunk, skiplist_slot(order, i), index, nwords);
				CHECK(entry_equal(&e, &items[i].e));
				CHECK(skiplist_rank(chunk, order, &e, false, index, nwords) == i);
				CHECK(skiplist_rank(chunk, order, &e, true, index, nwords) == i + 1);
				CHECK(!index || skiplist_ref(chunk, skiplist_slot(order, i)) == items[i].ref);
			}
		}
	}
}

/* The paper's delete keeps a lock if the key has gone, and its split another one. */
static void
nothing_stays_locked(void)
{
	begin(100, 100);
	apply(make_ops(1, 2, 10, GPUDS_OP_DELETE)); /* none of these is there */
	apply(make_ops(1, 2, 10, GPUDS_OP_INSERT));
	/* a full chunk is split, and then its neighbour */
	CHECK(entries_of(chunk_of(100)) == SKIPLIST_PLACES);
	for (uint64_t i = 101; i < 160; i += 2)
		apply(make_ops(i, 1, 1, GPUDS_OP_INSERT));
	end();
}

/* The paper goes on raising a key that the level above has already. */
static void
raised_once(void)
{
	int64_t indexed;
	int64_t all;

	begin(1000, 90);
	all = chunks(0);
	indexed = chunks(1);
	/* chunks are replaced by one each: their low bounds are there */
	for (int round = 0; round < 3; round++)
	{
		for (int deletes = 1; deletes >= 0; deletes--)
			apply(make_ops(0, 10, 200, (uint64_t) deletes));
	}
	CHECK(chunks(0) == all && chunks(1) == indexed);
	end();
}

/* The paper raises the first key of a new chunk that a delete may take meanwhile. */
static void
low_bound_is_deleted(void)
{
	begin(100, 100);
	for (uint64_t i = 0; i < 200; i += 2)
	{
		const uint64_t *chunk = chunk_of(i);
		GpudsEntry first = skiplist_entry(chunk, skiplist_slot(chunk[SKIPLIST_ORDER], 0), false, nwords);
		GpudsEntry e = entry(i);

		if (!entry_equal(&e, &first))
			continue;
		apply(make_ops(i, 1, 1, GPUDS_OP_DELETE));
		apply(make_ops(i, 1, 1, GPUDS_OP_INSERT));
		apply(make_ops(i + 1, 1, 1, GPUDS_OP_INSERT));
		apply(make_ops(i, 1, 1, GPUDS_OP_DELETE));
	}
	end();
}

/* The paper joins with a neighbour as it was before that was split. */
static void
joined_with_a_full_one(void)
{
	const int full = SKIPLIST_PLACES;

	begin(10 * full, 100);
	CHECK(chunks(0) == 10);
	/* the third chunk, down to where it is joined with the fourth, which is full */
	apply(make_ops((uint64_t) (2 * 2 * full), 2, full - SKIPLIST_FEW, GPUDS_OP_DELETE));
	CHECK(chunks(0) == 10);
	CHECK(entries_of(chunk_of((uint64_t) (2 * 3 * full - 2))) == (SKIPLIST_FEW + full) / 2);
	/* again, with one that has room */
	apply(make_ops((uint64_t) (2 * 3 * full - 2 * SKIPLIST_FEW), 2, SKIPLIST_FEW, GPUDS_OP_DELETE));
	apply(make_ops((uint64_t) (2 * 3 * full), 2, 6, GPUDS_OP_DELETE));
	CHECK(chunks(0) < 10);
	end();
}

/* The paper lowers the last chunk's bound with its last key, and forgets the first chunk's own entry. */
static void
both_ends(void)
{
	begin(200, 100);
	for (int round = 0; round < 2; round++)
	{
		apply(make_ops(398, 1, 1, GPUDS_OP_DELETE));
		apply(make_ops(398, 1, 40, GPUDS_OP_INSERT));
		apply(make_ops(398, 1, 40, GPUDS_OP_DELETE));
		apply(make_ops(0, 1, 60, GPUDS_OP_DELETE));
		vtable->cpu.reclaim(arena, &tree.common, UINT64_MAX);
		apply(make_ops(0, 1, 60, GPUDS_OP_INSERT));
		apply(make_ops(0, 1, 3, GPUDS_OP_DELETE));
		vtable->cpu.reclaim(arena, &tree.common, UINT64_MAX);
		check();
	}
	apply(make_ops(0, 1, 400, GPUDS_OP_DELETE));
	CHECK(m.n == 0 && chunks(0) == 1 && head_height(list->head) == 1);
	apply(make_ops(5, 1, 1, GPUDS_OP_INSERT));
	end();
}

/* The paper's unlock takes the mark off a chunk that was joined: here one that was replaced never changes. */
static void
replaced_stays_replaced(void)
{
	const size_t bytes = (size_t) skiplist_units(false, nwords) * ARENA_UNIT_BYTES;
	uint64_t *chunk;
	uint64_t was[64];

	begin(1000, 100);
	for (int joined = 0; joined < 2; joined++)
	{
		chunk = chunk_of(1000);
		if (joined)
			apply(make_ops(1000 - 20, 1, 40, GPUDS_OP_DELETE));
		else
			apply(make_ops(1001, 1, 1, GPUDS_OP_INSERT));
		CHECK(skiplist_is_replaced(chunk[SKIPLIST_LINK]));
		memcpy(was, chunk, bytes);
		/* as long as someone may be there, whatever happens to the chunks that took its place */
		apply(make_ops(900, 1, 300, GPUDS_OP_INSERT));
		apply(make_ops(900, 1, 290, GPUDS_OP_DELETE));
		apply(make_ops(900, 2, 150, GPUDS_OP_INSERT));
		CHECK(memcmp(was, chunk, bytes) == 0);
		{
			/* who comes there still finds the way */
			ArenaRef ref = (ArenaRef) (((char *) chunk - (char *) arena) / ARENA_UNIT_BYTES);
			GpudsEntry e = entry(1190);
			uint64_t link;

			CHECK(skiplist_seek(arena, &ref, &e, &link, false, nwords) == chunk_of(1190));
		}
	}
	end();
}

/* Deletes leave few chunks with few entries behind. */
static void
thinned_out(void)
{
	begin(6000, 90);
	for (int64_t left = 0; left < 30; left++)
	{
		int64_t n = 0;

		/* in another order than that of entries, so that no chunk goes as a whole */
		for (uint64_t i = 0; i < 6000; i++)
		{
			if (i % 60 != 0 && (i * 7 + i / 60) % 30 == (uint64_t) left)
			{
				ops[n].e = entry(2 * i);
				ops[n++].order = GPUDS_OP_DELETE;
			}
		}
		apply(n);
		CHECK(chunks(0) <= m.n / 5 + 2);
		vtable->cpu.reclaim(arena, &tree.common, UINT64_MAX);
	}
	CHECK(m.n == 100 && head_height(list->head) <= 3);
	end();
}

/* Ascending inserts leave full chunks behind, one by one or many at a time. */
static void
ascending(void)
{
	for (int64_t n = 1; n <= 100; n *= 100)
	{
		begin(0, 90);
		for (int64_t i = 0; i < 2000; i += n)
			apply(make_ops((uint64_t) i, 1, n, GPUDS_OP_INSERT));
		CHECK(chunks(0) <= 2000 / SKIPLIST_PLACES + 2);
		end();
	}
}

/* How a batch is killed at every store: inserts that split, deletes that join, and both. */
static void
killed_anywhere(int way)
{
	for (int64_t k = 0;; k++)
	{
		int64_t n;
		bool done;

		begin(200, way == 0 ? 100 : 60);
		if (way == 2)
		{
			n = make_ops(100, 1, 100, GPUDS_OP_INSERT);
			for (int64_t i = 0; i < n; i += 2)
				ops[i].order = GPUDS_OP_DELETE;
		}
		else
			n = make_ops(101, way == 0 ? 2 : 1, 90, way == 0 ? GPUDS_OP_INSERT : GPUDS_OP_DELETE);
		done = kill_at(k, n);
		/* what is left of it goes as a whole */
		end();
		if (done)
			break;
	}
}

int
main(int argc, char **argv)
{
	test_seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	arena = test_arena((size_t) 4 << 20);
	vtable = vtable_of(GPUDS_STRUCTURE_SKIPLIST);
	for (nwords = 1; nwords <= 2; nwords++)
	{
		order_words();
		nothing_stays_locked();
		raised_once();
		low_bound_is_deleted();
		joined_with_a_full_one();
		both_ends();
		replaced_stays_replaced();
		thinned_out();
		ascending();
		for (int way = 0; way < 3; way++)
			killed_anywhere(way);
	}
	free(arena);
	printf("skiplist: ok\n");
	return 0;
}
