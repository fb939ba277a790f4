/*-------------------------------------------------------------------------
 *
 * corrupt.c
 *	  A structure's verify function finds every kind of damage.
 *
 * Each case spoils one thing in a sound B+tree, skip list or AVL tree, expects a complaint that names it,
 * and puts it right again.
 *
 *-------------------------------------------------------------------------
 */
#include "structure_vtable.h"

static Arena *arena;
static CpuTree tree;
static VtableTree room;
static skiplist_cpu_tree *const list = (skiplist_cpu_tree *) &room;
static avl_cpu_tree *const avl = (avl_cpu_tree *) &room;
static int damaged = GPUDS_STRUCTURE_BTREE;
static int ncases;

static bool
verified(char *why, size_t whylen)
{
	if (damaged == GPUDS_STRUCTURE_SKIPLIST)
		return skiplist_cpu_verify(arena, list, why, whylen);
	if (damaged == GPUDS_STRUCTURE_AVL)
		return avl_cpu_verify(arena, &room.common, why, whylen);
	return btree_cpu_verify(arena, &tree, why, whylen);
}

static void
expect_sound(void)
{
	char why[200] = "";

	if (!verified(why, sizeof(why)))
	{
		fprintf(stderr, "expected a sound structure, got \"%s\"\n", why);
		exit(1);
	}
}

static void
expect(const char *complaint)
{
	char why[200] = "";

	if (verified(why, sizeof(why)) || strstr(why, complaint) == NULL)
	{
		fprintf(stderr, "expected \"%s\", got \"%s\"\n", complaint, why);
		exit(1);
	}
	ncases++;
}

/* Set a word of 32 or 64 bits to something else for a moment. */
#define SPOIL(word, value, complaint)               \
	do                                              \
	{                                               \
		__typeof__(word) sound = (word);            \
		CHECK(sound != (__typeof__(word)) (value)); \
		(word) = (__typeof__(word)) (value);        \
		expect(complaint);                          \
		(word) = sound;                             \
		expect_sound();                             \
	} while (0)

static uint64_t *
node_at(ArenaRef ref)
{
	return (uint64_t *) arena_at(arena, ref);
}

static void
run(int kind, int nw)
{
	Model m;
	GpudsOp op;
	int64_t inserted, deleted;
	uint64_t *root, *inner, *leaf, *links;
	uint64_t *count;
	CpuQueueUnit *queue;
	int n;

	memset(&tree, 0, sizeof(tree));
	cpu_btree_init(&tree, nw);
	model_fill(&m, 1000, kind, nw, 2000);
	CHECK(test_build(arena, &tree, &m, 80) == KERNEL_OK);
	op.e = m.e[5];
	op.order = GPUDS_OP_DELETE;
	CHECK(cpu_btree_apply(arena, &tree, &op, 1, &inserted, &deleted) == KERNEL_OK && deleted == 1);
	cpu_tree_reclaim(arena, &tree, UINT64_MAX);
	op.order = GPUDS_OP_INSERT;
	CHECK(cpu_btree_apply(arena, &tree, &op, 1, &inserted, &deleted) == KERNEL_OK && inserted == 1);
	expect_sound();

	root = node_at(head_root(tree.head));
	CHECK(head_height(tree.head) >= 3 && btree_inner_n(root) >= 2);
	inner = root;
	for (int level = head_height(tree.head) - 1; level > 1; level--)
		inner = node_at(btree_link_ref(btree_inner_link(inner, 0)));
	links = inner + BTREE_LINKS;
	n = btree_inner_n(inner);
	leaf = node_at(btree_link_ref(links[1]));

	/* leaves: order, separators, unused places */
	SPOIL(leaf[8 * nw], UINT64_MAX, "entries");
	{
		GpudsEntry a, b;

		a = btree_leaf_entry(leaf, 0, nw);
		b = btree_leaf_entry(leaf, 1, nw);
		leaf[0] = b.w0, leaf[8 * nw] = b.t;
		leaf[1] = a.w0, leaf[1 + 8 * nw] = a.t;
		if (nw == 2)
			leaf[8] = b.w1, leaf[9] = a.w1;
		expect("out of order");
		leaf[0] = a.w0, leaf[8 * nw] = a.t;
		leaf[1] = b.w0, leaf[1 + 8 * nw] = b.t;
		if (nw == 2)
			leaf[8] = a.w1, leaf[9] = b.w1;
		expect_sound();
	}
	{
		GpudsEntry a, b;
		uint64_t *before = node_at(btree_link_ref(links[0]));
		int last = btree_leaf_n(before, nw) - 1;

		/* the last entry of the leaf before moves up to the first of this one, and the other way round */
		a = btree_leaf_entry(before, last, nw);
		b = btree_leaf_entry(leaf, 0, nw);
		before[last] = b.w0, before[last + 8 * nw] = b.t;
		if (nw == 2)
			before[8 + last] = b.w1;
		expect("not below the separator after it");
		before[last] = a.w0, before[last + 8 * nw] = a.t;
		if (nw == 2)
			before[8 + last] = a.w1;
		leaf[0] = a.w0, leaf[8 * nw] = a.t;
		if (nw == 2)
			leaf[8] = a.w1;
		expect("below the separator before it");
		leaf[0] = b.w0, leaf[8 * nw] = b.t;
		if (nw == 2)
			leaf[8] = b.w1;
		expect_sound();
	}
	if (btree_leaf_n(leaf, nw) < BTREE_FANOUT)
		SPOIL(leaf[BTREE_FANOUT - 1], 1, "not clear");

	/* inner nodes */
	SPOIL(inner[0], inner[0] + 1, n == BTREE_FANOUT ? "number of children" : "entries before its children");
	SPOIL(inner[0], inner[0] - 1, kind == KEYS_ONE ? "does not fit its separators" : "not clear");
	SPOIL(links[1], links[1] + (UINT64_C(1) << 32), "not as many entries");
	SPOIL(links[1], btree_link(0, 0) | btree_link_ref(links[1]), "entries before its children");
	SPOIL(links[1], btree_link(btree_link_ref(links[0]), btree_link_before(links[1])), "used twice");
	SPOIL(links[1], btree_link(1, btree_link_before(links[1])), "outside the tree's memory");
	SPOIL(links[1], btree_link(UINT32_MAX, btree_link_before(links[1])), "outside the tree's memory");
	if (kind == KEYS_ONE)
	{
		CHECK(btree_header_details_mask(inner[0]) != 0);
		SPOIL(inner[0], inner[0] ^ 1 << 8, "does not fit its separators");
		SPOIL(inner[BTREE_INNER_T + 1], 0, "does not fit its separators");
		SPOIL(inner[BTREE_INNER_T + 1], UINT64_MAX, "not below the separator after it");
		SPOIL(inner[0], inner[0] & 0xFF, "out of order");
		if (n < BTREE_FANOUT)
			SPOIL(inner[BTREE_INNER_T + n], 1, "not clear");
	}
	else
	{
		CHECK(btree_header_details_mask(inner[0]) == 0);
		SPOIL(inner[0], inner[0] | 1 << 8, "");
		SPOIL(inner[0], inner[0] | 2 << 8, "");
		SPOIL(inner[2], inner[1], "out of order");
		SPOIL(inner[1], UINT64_MAX, "");
	}
	if (n < BTREE_FANOUT)
	{
		SPOIL(links[n], links[0], "not clear");
		SPOIL(links[n], btree_link(0, 1), "not clear");
		SPOIL(inner[n], 1, "not clear");
	}

	/* the tree's own words */
	count = &tree.count[cpu_head_count(tree.head)];
	SPOIL(*count, *count + 1, "but the head's count says");
	SPOIL(tree.entries, tree.entries + 1, "but the head's count says");
	SPOIL(tree.entries, BTREE_MAX_ENTRIES + 1, "entries");
	*count = tree.entries = tree.entries + 1;
	expect("not as many entries");
	*count = tree.entries = tree.entries - 1;
	SPOIL(tree.head, tree.head + (UINT64_C(1) << 32), "");
	SPOIL(tree.head, tree.head ^ UINT64_C(3) << 40, "key words");
	SPOIL(tree.head, tree.head & ~UINT64_C(0xFFFFFFFF), "root at unit 0");
	SPOIL(tree.head, (tree.head & ~UINT64_C(0xFFFFFFFF)) | btree_link_ref(btree_inner_link(root, 1)), "");

	/* memory: queue, free lists, chunks */
	queue = (CpuQueueUnit *) arena_at(arena, tree.retired.head);
	SPOIL(queue->item[0], (uint64_t) btree_leaf_units(nw) << 32 | btree_link_ref(links[0]), "used twice");
	SPOIL(queue->item[0], 99, "piece of 0 units");
	SPOIL(queue->version, tree.version + 1, "out of order");
	SPOIL(queue->n, queue->n - 1, "units are lost");
	SPOIL(queue->n, 100, "has 100 items");
	SPOIL(tree.retired.tail, tree.retired.head + 1, "queue's end");
	SPOIL(tree.retired.head, 0, "");
	CHECK(tree.space.free[1] != 0);
	SPOIL(tree.space.free[1], 0, "units are lost");
	SPOIL(tree.space.free[1], (ArenaRef) tree.head, "used twice");
	if (tree.space.bump < tree.space.bump_end)
		SPOIL(tree.space.bump, tree.space.bump + 1, "units are lost");
	SPOIL(tree.space.bump, tree.space.bump - 1, "used twice");
	SPOIL(tree.space.nchunks, tree.space.nchunks + 1, "chunks instead of");
	SPOIL(tree.space.nchunks, 0, "list of chunks is broken");
	SPOIL(tree.space.chunks, 0, "");

	free(m.e);
	cpu_tree_withdraw(&tree);
	cpu_tree_release(arena, &tree);
	CHECK(arena_used(arena) == 0);
}

/* A chunk's first entry, by its slot. */
static int
first_slot(const uint64_t *chunk)
{
	return skiplist_slot(chunk[SKIPLIST_ORDER], 0);
}

static void
run_list(const int nw)
{
	const Vtable *vtable = vtable_of(GPUDS_STRUCTURE_SKIPLIST);
	const int t = skiplist_t(false, nw);
	static GpudsOp ops[3000];
	GpudsOp one;
	uint64_t *chunk, *next, *index, *order, *link;
	uint64_t sound, low, word;
	uint32_t *refs;
	int64_t n;
	int a, b;
	Model m;

	vtable_init(&room);
	vtable_fill(&m, 3000, KEYS_RANDOM, nw, 8000);
	CHECK(vtable_build(vtable, arena, &room, &m, nw, 90) == KERNEL_OK);
	/* splits, joins, and chunks that wait to be freed */
	n = vtable_ops(ops, 3000, KEYS_RANDOM, nw, 8000, 50);
	CHECK(skiplist_cpu_apply(arena, list, ops, n) == KERNEL_OK);
	damaged = GPUDS_STRUCTURE_SKIPLIST;
	expect_sound();
	CHECK(list->retired.head != 0 && head_height(list->head) > 2);

	/* from the root down to the second chunk of level 0 */
	index = node_at(head_root(list->head));
	for (int level = head_height(list->head) - 1; level > 1; level--)
		index = node_at(skiplist_ref(index, first_slot(index)));
	chunk = node_at(skiplist_ref(index, skiplist_slot(index[SKIPLIST_ORDER], 1)));
	next = node_at(skiplist_next(chunk[SKIPLIST_LINK]));
	order = &chunk[SKIPLIST_ORDER];
	CHECK(skiplist_n(*order) > 3);

	/* order words */
	SPOIL(*order, *order + SKIPLIST_ONE_USED * (uint64_t) (15 - skiplist_used(*order)),
		  "entries in 15 slots");
	SPOIL(*order, *order - SKIPLIST_ONE_ENTRY, "has slot");
	SPOIL(*order, skiplist_order_remove(*order, 1), "but the list says");
	SPOIL(*order, (*order & ~UINT64_C(15)) | skiplist_slot(*order, 1), "at place 1");
	SPOIL(*order, (*order & ~UINT64_C(15)) | SKIPLIST_NO_SLOT, "has slot 15 at place 0");
	a = skiplist_slot(*order, 0);
	b = skiplist_slot(*order, 1);
	SPOIL(*order, (*order & ~UINT64_C(255)) | (uint64_t) a << 4 | (uint64_t) b, "entry 1 of the chunk");

	/* entries */
	chunk = next;
	order = &chunk[SKIPLIST_ORDER];
	a = skiplist_slot(*order, 0);
	b = skiplist_slot(*order, skiplist_n(*order) - 1);
	SPOIL(chunk[SKIPLIST_W0 + a], 0, "entry 0 of the chunk");
	SPOIL(chunk[SKIPLIST_W0 + b], UINT64_MAX, "ends before an entry");
	SPOIL(chunk[SKIPLIST_HIGH], chunk[SKIPLIST_W0 + a], "ends before an entry");
	SPOIL(chunk[SKIPLIST_HIGH], chunk[SKIPLIST_HIGH] + 1, "entry 0 of the chunk");
	word = chunk[t + SKIPLIST_PLACES + nw - 1];
	SPOIL(chunk[t + SKIPLIST_PLACES + nw - 1], word + 1, "leads to");

	/* links */
	link = &chunk[SKIPLIST_LINK];
	SPOIL(*link, skiplist_make_link(skiplist_next(*link), SKIPLIST_REPLACED), "was replaced");
	SPOIL(*link, skiplist_make_link(skiplist_next(*link), skiplist_before(*link) + 1), "is behind unit");
	SPOIL(*link, skiplist_make_link(skiplist_before(*link), skiplist_before(*link)), "used twice");
	SPOIL(*link, skiplist_make_link(0, skiplist_before(*link)), "leads to no chunk");
	SPOIL(*link, skiplist_make_link(UINT32_MAX - 63, skiplist_before(*link)), "outside the tree's memory");

	/* indexes */
	order = &index[SKIPLIST_ORDER];
	refs = skiplist_refs(index);
	a = skiplist_slot(*order, 1);
	b = skiplist_slot(*order, 2);
	SPOIL(refs[a], refs[b], "of the index chunk");
	SPOIL(refs[first_slot(index)], refs[a], "");
	low = index[SKIPLIST_W0 + a];
	SPOIL(index[SKIPLIST_W0 + a], low + 1, "of the index chunk");
	SPOIL(index[SKIPLIST_W0 + first_slot(index)], 1, "does not begin with its low bound");
	/* a chunk that is not raised is found all the same */
	sound = *order;
	*order = skiplist_order_remove(*order, 1);
	expect_sound();
	*order = sound;
	SPOIL(*order, skiplist_order_remove(*order, 0), "does not begin with its low bound");

	/* the list's own words */
	SPOIL(list->nwords, 3 - nw, "head does not fit");
	SPOIL(list->head, head_make(list->nwords, head_root(list->head), 0), "head does not fit");
	SPOIL(list->head, head_make(list->nwords, head_root(list->head), 1), "");
	SPOIL(list->entries, list->entries + 1, "but the list says");
	SPOIL(list->retired.head, 0, "");
	SPOIL(list->space.bump, list->space.bump - 1, "used twice");
	SPOIL(list->space.nchunks, 0, "list of chunks is broken");
	vtable->cpu.reclaim(arena, &room.common, UINT64_MAX);
	SPOIL(list->space.free[skiplist_units(false, nw)], 0, "units are lost");

	/* nothing of this is left */
	one.e = m.e[0];
	one.order = GPUDS_OP_DELETE;
	CHECK(skiplist_cpu_apply(arena, list, &one, 1) == KERNEL_OK);
	expect_sound();
	free(m.e);
	vtable_drop(vtable, arena, &room);
	CHECK(arena_used(arena) == 0);
	damaged = GPUDS_STRUCTURE_BTREE;
}

/* A rotation of a balanced tree leaves it unbalanced. */
static void
unbalance(uint32_t top, uint32_t root)
{
	AvlWorker w;

	avl_worker_init(&w, arena, &room.common);
	avl_rotate(&w, top, root, AVL_RIGHT, false);
	for (uint32_t ref = w.front; ref != 0; ref = avl_at(arena, ref)->next)
		avl_at(arena, ref)->state = 0;
	expect("is not balanced");
	w.front = 0;
	CHECK(avl_queue(&w, avl_at(arena, top)->child[AVL_LEFT]));
	avl_worker_balance(&w);
	expect_sound();
}

static void
run_avl(const int nw)
{
	const Vtable *vtable = vtable_of(GPUDS_STRUCTURE_AVL);
	static GpudsOp ops[3000];
	uint32_t top, root;
	AvlNode *node, *at_root, *removed;
	Model m;

	vtable_init(&room);
	vtable_fill(&m, 1500, KEYS_RANDOM, nw, 4000);
	CHECK(vtable_build(vtable, arena, &room, &m, nw, 90) == KERNEL_OK);
	CHECK(avl_cpu_apply(arena, &room.common, ops, vtable_ops(ops, 1500, KEYS_RANDOM, nw, 4000, 50)) ==
		  KERNEL_OK);
	damaged = GPUDS_STRUCTURE_AVL;
	expect_sound();
	top = head_root(room.common.head);
	root = avl_at(arena, top)->child[AVL_LEFT];
	at_root = avl_at(arena, root);
	removed = avl_at(arena, avl->oldest);
	/* the second node of the list */
	node = avl_at(arena, avl_at(arena, avl_at(arena, avl_bottom(top))->succ)->succ);

	/* the list */
	SPOIL(node->e.w0, UINT64_MAX, "is out of order");
	SPOIL(node->pred, node->pred + 1, "is behind unit");
	SPOIL(node->succ, node->pred, "used twice");
	SPOIL(node->succ, UINT32_MAX - 63, "outside the tree's memory");
	SPOIL(node->state, AVL_TREE_LOCK, "is in state 2");
	SPOIL(avl_at(arena, avl_bottom(top))->state, AVL_LIST_LOCK, "is in state 1");
	SPOIL(avl_at(arena, top)->pred, root, "is behind unit");

	/* the tree */
	SPOIL(at_root->height, at_root->height + 1, "has the height");
	SPOIL(at_root->child[AVL_LEFT], 0, "is not where the list has it");
	SPOIL(at_root->child[AVL_RIGHT], 0, "");
	SPOIL(at_root->child[AVL_LEFT], at_root->child[AVL_RIGHT], "is not where the list has it");
	SPOIL(at_root->child[AVL_LEFT], avl->oldest, "no node");
	SPOIL(at_root->child[AVL_LEFT], UINT32_MAX, "no node");
	SPOIL(at_root->parent, top + 1, "is below unit");
	SPOIL(avl_at(arena, top)->child[AVL_RIGHT], root, "lacks the node");
	unbalance(top, root);

	/* its own words and memory */
	SPOIL(room.common.nwords, 3 - (uint32_t) nw, "head does not fit");
	SPOIL(room.common.entries, room.common.entries + 1, "but the head says");
	SPOIL(removed->state, 0, "removed node");
	SPOIL(removed->version, room.common.version + 1, "removed node");
	SPOIL(avl->newest, 0, "last removed node");
	SPOIL(avl->oldest, 0, "last removed node");
	SPOIL(avl->oldest, root, "used twice");
	SPOIL(room.common.space.bump, room.common.space.bump - 1, "used twice");
	vtable->cpu.reclaim(arena, &room.common, UINT64_MAX);
	SPOIL(room.common.space.free[1], 0, "units are lost");

	free(m.e);
	vtable_drop(vtable, arena, &room);
	CHECK(arena_used(arena) == 0);
	damaged = GPUDS_STRUCTURE_BTREE;
}

int
main(void)
{
	arena = test_arena(96 * ARENA_CHUNK_BYTES);
	for (int nw = 1; nw <= 2; nw++)
	{
		run(KEYS_DENSE, nw);
		run(KEYS_RANDOM, nw);
		run(KEYS_ONE, nw);
		run_list(nw);
		run_avl(nw);
	}
	printf("corrupt: ok, %d kinds of damage\n", ncases);
	free(arena);
	return 0;
}
