/*-------------------------------------------------------------------------
 *
 * avl.c
 *	  An AVL tree's operations one by one, what the paper that it follows gets wrong, appliers killed at
 *	  any store, and threads that apply shares of a batch at once.
 *
 *	  usage: avl [seconds of the threads [seed]]
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>
#include <sched.h>

static void loaded(void);

#define AVL_LOADED loaded
#define AVL_STORED stored
#define AVL_WAIT sched_yield
#define TESTED_SCAN avl_cpu_scan
#include "in_place.h"

#define WORKERS 4

static avl_cpu_tree *const avl = (avl_cpu_tree *) &tree;

static __thread int64_t loads_left = INT64_MAX; /* until something is done between two of a reader's loads */
static void (*between)(void);

static void
loaded(void)
{
	if (--loads_left != 0)
		return;
	between();
}

/* The node of an entry that is there. */
static uint32_t
ref_of(uint64_t i)
{
	GpudsEntry e = entry(i);
	uint32_t next;

	(void) avl_last(arena, head_root(tree.common.head), avl_bottom(head_root(tree.common.head)), &e, false,
					&next);
	CHECK(entry_equal(&avl_at(arena, next)->e, &e));
	return next;
}

/*
 * The errors of the printed algorithms
 */

/* An insert compares keys with >= where it must with ==; entries of one key differ in their TIDs. */
static void
no_duplicates(void)
{
	begin(100, 90);
	apply(make_ops(0, 1, 200, GPUDS_OP_INSERT));
	CHECK(m.n == 200);
	apply(make_ops(0, 1, 200, GPUDS_OP_INSERT));
	CHECK(m.n == 200);
	apply(make_ops(0, 2, 100, GPUDS_OP_DELETE));
	apply(make_ops(0, 2, 100, GPUDS_OP_DELETE));
	CHECK(m.n == 100);
	end();
}

/* The sentinel below has a free link, which looks like a place for the lowest key. */
static void
nothing_below_the_bottom(void)
{
	begin(0, 90);
	for (int64_t i = 40; i-- > 0;)
		apply(make_ops((uint64_t) i, 1, 1, GPUDS_OP_INSERT));
	CHECK(avl_at(arena, avl_bottom(head_root(tree.common.head)))->child[AVL_RIGHT] == 0);
	/* 0 is as low as a number can be */
	CHECK(finds(&m.e[0]) && m.e[0].w0 == 0 && m.e[0].t == 0);
	end();
}

/*
 * A node with two children: its successor takes its place, which may be its child or far below; the
 * successor's parent and the node's own are different nodes; entries do not move.  Also the node below
 * the top, and all of them in turn.
 */
static void
two_children(void)
{
	for (uint64_t victim = 0; victim < 62; victim += 2)
	{
		uint32_t was[31];
		const AvlNode *node;
		bool two;

		begin(31, 90);
		for (uint64_t i = 0; i < 31; i++)
			was[i] = ref_of(2 * i);
		node = avl_at(arena, was[victim / 2]);
		two = node->child[AVL_LEFT] != 0 && node->child[AVL_RIGHT] != 0;
		CHECK(two == (node->height > 1));
		apply(make_ops(victim, 1, 1, GPUDS_OP_DELETE));
		for (uint64_t i = 0; i < 31; i++)
			CHECK(2 * i == victim || ref_of(2 * i) == was[i]);
		/* reinserted, it is another node; the removed one leads on */
		apply(make_ops(victim, 1, 1, GPUDS_OP_INSERT));
		CHECK(ref_of(victim) != was[victim / 2] && avl_is_removed(node));
		CHECK(victim == 60 || node->succ == was[victim / 2 + 1]);
		end();
	}
}

/*
 * Rotations of all four kinds at once, with and without subtrees below, by inserts and by deletes at both
 * ends.
 */
static void
rotations(void)
{
	for (int way = 0; way < 2; way++)
	{
		begin(0, 90);
		for (uint64_t i = 0; i < 300; i++)
			apply(make_ops(way == 0 ? i : 300 - i, 1, 1, GPUDS_OP_INSERT));
		for (uint64_t i = 0; i < 250; i++)
			apply(make_ops(way == 0 ? i + 1 : 299 - i, 1, 1, GPUDS_OP_DELETE));
		end();
	}
	/* a right-left rotation and its mirror, of three nodes */
	for (uint64_t middle = 0; middle < 2; middle++)
	{
		begin(0, 90);
		apply(make_ops(2 * middle, 1, 1, GPUDS_OP_INSERT));
		apply(make_ops(2 - 2 * middle, 1, 1, GPUDS_OP_INSERT));
		apply(make_ops(1, 1, 1, GPUDS_OP_INSERT));
		CHECK(avl_at(arena, ref_of(1))->height == 2);
		end();
	}
	/* many that go to one place hang there as a tree of their own, whatever that does to the balance */
	begin(1, 90);
	apply(make_ops(1, 1, 5000, GPUDS_OP_INSERT));
	apply(make_ops(0, 1, 5000, GPUDS_OP_DELETE));
	CHECK(m.n == 1);
	end();
}

/* Locks that are kept when another one is not to be had: each lock in turn is another's. */
static void
tries_leave_no_lock(void)
{
	for (uint64_t change = 20; change < 40; change++)
	{
		for (uint64_t i = 0; i <= 32; i++)
		{
			for (uint32_t bit = AVL_LIST_LOCK; bit <= AVL_TREE_LOCK; bit <<= 1)
			{
				GpudsOp op = { entry(change), change % 2 == 0 };
				AvlWorker w;
				AvlNode *locked;
				uint32_t at;
				int64_t done;

				begin(32, 90);
				locked = avl_at(arena, i == 32 ? head_root(tree.common.head) : ref_of(2 * i));
				locked->state |= bit;
				avl_worker_init(&w, arena, &tree.common);
				CHECK(avl_worker_take(&w, arena, &tree.common, 1));
				at = avl_descend(arena, w.top, &op.e);
				if (!avl_try(&w, &at, &op, 1, &done))
				{
					for (uint64_t k = 0; k < 32; k++)
						CHECK(avl_at(arena, ref_of(2 * k))->state == (k == i ? bit : 0));
					locked->state &= ~bit;
					CHECK(avl_try(&w, &at, &op, 1, &done));
				}
				else
					locked->state &= ~bit;
				CHECK(done == 1);
				avl_worker_balance(&w);
				avl_worker_end(&w, arena, avl);
				cpu_tree_publish(&tree.common, tree.common.head,
								 (uint64_t) ((int64_t) tree.common.entries + w.change));
				vtable_verify(vtable, arena, &tree);
				CHECK(finds(&op.e) == (change % 2 != 0));
				end();
			}
		}
	}
}

/* A try begins at a node that was removed, as were those before it: one step back is not enough. */
static void
removed_hint(void)
{
	GpudsOp op = { entry(81), GPUDS_OP_INSERT };
	AvlWorker w;
	uint32_t at;
	int64_t done;

	begin(100, 90);
	at = ref_of(80);
	for (uint64_t i = 80; i >= 60; i -= 2)
		apply(make_ops(i, 1, 1, GPUDS_OP_DELETE));
	avl_worker_init(&w, arena, &tree.common);
	CHECK(avl_worker_take(&w, arena, &tree.common, 1));
	CHECK(avl_try(&w, &at, &op, 1, &done) && done == 1);
	avl_worker_balance(&w);
	avl_worker_end(&w, arena, avl);
	cpu_tree_publish(&tree.common, tree.common.head, tree.common.entries + 1);
	vtable_verify(vtable, arena, &tree);
	CHECK(finds(&op.e));
	end();
}

static uint64_t deleted_between;

static void
delete_between(void)
{
	apply(make_ops(deleted_between, 1, 1, GPUDS_OP_DELETE));
}

/* A search meets a delete that puts its key elsewhere, before any of its loads: it finds it. */
static void
moved_under_a_search(void)
{
	between = delete_between;
	for (uint64_t victim = 0; victim < 60; victim += 2)
	{
		const GpudsEntry next = entry(victim + 2);
		bool on = true;

		for (int64_t k = 1; on; k++)
		{
			begin(31, 90);
			deleted_between = victim;
			loads_left = k;
			CHECK(finds(&next));
			on = loads_left <= 0;
			loads_left = INT64_MAX;
			end();
		}
	}
}

/*
 * An applier that is killed
 */

static void
killed_anywhere(int way)
{
	bool done = false;

	for (int64_t k = 0; !done; k++)
	{
		int64_t n;

		begin(40, 90);
		n = way == 0 ? make_ops(21, 2, 20, GPUDS_OP_INSERT) : make_ops(20, 1, 30, GPUDS_OP_DELETE);
		for (int64_t i = 0; way == 2 && i < n; i += 3)
			ops[i].order = GPUDS_OP_INSERT;
		done = kill_at(k, n);
		end();
	}
}

/*
 * Threads
 */

/* What a worker does; shares of a batch are neighbours, or every fourth operation. */
typedef struct Share
{
	AvlWorker w;
	const GpudsOp *ops;
	int64_t n;
	int64_t done;
} Share;

static int stop;
static pthread_barrier_t begun;
static PinSlot pins[2];

static void *
work(void *arg)
{
	Share *share = (Share *) arg;

	pthread_barrier_wait(&begun);
	share->done = avl_worker_apply(&share->w, arena, NULL, share->ops, share->n);
	return NULL;
}

/*
 * Finds what stays, and nothing that never was: even numbers of every tenth stay, odd ones of them never
 * come.
 */
static void *
read_beside(void *arg)
{
	PinSlot *pin = &pins[(intptr_t) arg];
	uint64_t random = (uint64_t) (intptr_t) arg + 1;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
	{
		GpudsEntry e;

		random = random * UINT64_C(6364136223846793005) + 1;
		pin_version(pin, 1, &tree.common.version);
		e = entry((random >> 33) % 500 * 10);
		CHECK(finds(&e));
		e = entry((random >> 33) % 500 * 10 + 1);
		CHECK(!finds(&e));
		pin_release(pin);
	}
	return NULL;
}

/* Applies shares of n operations by threads; same: each has all of them. */
static void
apply_shares(GpudsOp *all, int64_t n, bool same)
{
	static GpudsOp copies[WORKERS][MOST];
	pthread_t threads[WORKERS];
	Share shares[WORKERS];
	const bool neighbours = test_below(2) == 0;
	int64_t inserted, deleted;
	int64_t change = 0;
	const int64_t before = m.n;

	for (int k = 0; k < WORKERS; k++)
	{
		int64_t mine = 0;

		for (int64_t i = 0; i < n; i++)
		{
			if (same || (neighbours ? i * WORKERS / n : i % WORKERS) == k)
				copies[k][mine++] = all[i];
		}
		shares[k] = (Share){ .ops = copies[k], .n = mine };
		avl_worker_init(&shares[k].w, arena, &tree.common);
		CHECK(mine == 0 || avl_worker_take(&shares[k].w, arena, &tree.common, mine));
	}
	for (int k = 0; k < WORKERS; k++)
		CHECK(pthread_create(&threads[k], NULL, work, &shares[k]) == 0);
	for (int k = 0; k < WORKERS; k++)
	{
		CHECK(pthread_join(threads[k], NULL) == 0);
		CHECK(shares[k].done == shares[k].n && shares[k].w.front == 0);
		change += shares[k].w.change;
	}
	for (int k = 0; k < WORKERS; k++)
		avl_worker_end(&shares[k].w, arena, avl);
	cpu_tree_publish(&tree.common, tree.common.head, (uint64_t) (before + change));
	model_apply(&m, all, n, &inserted, &deleted);
	/* of those who do the same, one has success */
	CHECK(change == inserted - deleted && tree.common.entries == (uint64_t) m.n);
	vtable->cpu.reclaim(arena, &tree.common, pin_oldest(pins, 2, 1));
}

/* Batches by threads, with readers beside them. */
static void
threads(double seconds)
{
	pthread_t readers[2];
	const clock_t until = clock() + (clock_t) (seconds * CLOCKS_PER_SEC);
	int batches = 0;

	stop = 0;
	begin(2500, 90);
	CHECK(pthread_barrier_init(&begun, NULL, WORKERS) == 0);
	for (intptr_t i = 0; i < 2; i++)
		CHECK(pthread_create(&readers[i], NULL, read_beside, (void *) i) == 0);
	for (; batches < 20 || clock() < until; batches++)
	{
		/* a few places that all go for, a stretch, or all over it; ascending ones are in one place */
		const uint64_t from = test_below(4000);
		const uint64_t range = test_below(3) == 0 ? 20 : test_below(2) == 0 ? 300 : 5000 - from;
		const uint64_t deletes = test_below(101);
		int64_t n = 0;

		for (uint64_t i = from; i < from + range; i++)
		{
			if (i % 10 <= 1 || test_below(2) == 0)
				continue;
			ops[n].e = entry(i);
			ops[n++].order = test_below(100) < deletes;
		}
		apply_shares(ops, n, test_below(3) == 0);
		if (batches % 10 == 0)
			check();
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 2; i++)
		CHECK(pthread_join(readers[i], NULL) == 0);
	pthread_barrier_destroy(&begun);
	check();
	end();
	printf("avl: ok, %d batches by %d threads\n", batches, WORKERS);
}

int
main(int argc, char **argv)
{
	test_seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	arena = test_arena((size_t) 8 << 20);
	vtable = vtable_of(GPUDS_STRUCTURE_AVL);
	for (nwords = 1; nwords <= 2; nwords++)
	{
		no_duplicates();
		nothing_below_the_bottom();
		two_children();
		rotations();
		tries_leave_no_lock();
		removed_hint();
		moved_under_a_search();
		for (int way = 0; way < 3; way++)
			killed_anywhere(way);
		threads(argc > 1 ? atof(argv[1]) / 2 : 1);
	}
	free(arena);
	return 0;
}
