/*-------------------------------------------------------------------------
 *
 * skiplist_verify_gpu.h
 *	  Checking everything that a skip list in device memory promises.
 *
 * Level by level, from the root down, all chunks are in one list, from left to right, each with its low
 * bound.  Of a chunk:
 *
 *	  - It is a node of its kind, and nothing else is.
 *	  - Its order word, the newest of the version, has each slot once, and the slots that it says it has.
 *	  - Its entries ascend and lie between its low bound and that of the next chunk.
 *	  - It has entries, unless it is the root; an index that is the root has more than one.
 *	  - No pair is newer than the version, and no applier has left notes.
 *
 * There are as many chunks of each level, and as many entries, as the host says.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SKIPLIST_VERIFY_GPU_H
#define SKIPLIST_VERIFY_GPU_H

#include "kernels/runtime/gpu_verify.h"
#include "kernels/skiplist/skiplist_list_gpu.h"

/* What may be wrong with a chunk, besides what any node may have. */
enum GpuSkiplistFault
{
	GPU_SKIPLIST_BAD_ORDER = 200, /* the order word */
	GPU_SKIPLIST_BAD_ENTRIES,     /* in no order, or out of bounds */
	GPU_SKIPLIST_BAD_SIZE,
	GPU_SKIPLIST_BAD_VERSION,
	GPU_SKIPLIST_BAD_NOTES,
	GPU_SKIPLIST_BAD_LEVEL
};

static inline const char *
gpu_skiplist_fault_words(uint32_t fault)
{
	switch ((GpuSkiplistFault) fault)
	{
		case GPU_SKIPLIST_BAD_ORDER:
			return "has an order word that is not as it must be";
		case GPU_SKIPLIST_BAD_ENTRIES:
			return "has entries that are out of order or out of its bounds";
		case GPU_SKIPLIST_BAD_SIZE:
			return "has too few entries";
		case GPU_SKIPLIST_BAD_VERSION:
			return "is newer than the list";
		case GPU_SKIPLIST_BAD_NOTES:
			return "has notes of an applier";
		case GPU_SKIPLIST_BAD_LEVEL:
			return "has not as many neighbours as the list says";
	}
	return "is sound";
}

/* The chunks of a level, from left to right. */
struct GpuSkiplistLevel
{
	GpuRef *ref;
	GpudsEntry *low;
	uint32_t *start; /* entries before it; one more */
};

template <int nw> struct GpuSkiplistCheck
{
	const unsigned char *base;
	uint64_t version;
	GpuSkiplistLevel list;
	int64_t n;
	bool index;
	bool root;
	GpuFinding *finding;

	GPU_FN void fault(GpuSkiplistFault what, GpuRef ref) const
	{
		gpu_note_fault(finding, what, ref);
	}

	/* Does an order word have each slot once, and no others than it says? */
	static GPU_FN bool order_sound(uint64_t order)
	{
		int n = gpu_skiplist_n(order);
		unsigned seen = 0;

		for (int i = 0; i < GPU_SKIPLIST_PLACES; i++)
		{
			int slot = gpu_skiplist_slot(order, i);

			if (i >= n ? slot != 15 : slot >= GPU_SKIPLIST_PLACES || (seen >> slot & 1) != 0)
				return false;
			if (i < n)
				seen |= 1u << slot;
		}
		return seen == gpu_skiplist_used(order) && order >> 60 == 0;
	}

	template <bool of_index> GPU_FN void entries(const uint64_t *chunk, uint64_t order, int64_t i) const
	{
		GpudsEntry last = list.low[i];

		for (int k = 0; k < gpu_skiplist_n(order); k++)
		{
			GpudsEntry e = gpu_skiplist_entry(chunk, gpu_skiplist_slot(order, k), of_index, nw);

			/* nobody looks at the key of an index' first entry */
			if (of_index && k == 0)
				continue;
			if (k > 0 && !(of_index && k == 1) ? !entry_less(&last, &e) : entry_less(&e, &last))
				fault(GPU_SKIPLIST_BAD_ENTRIES, list.ref[i]);
			if (i + 1 < n && !entry_less(&e, &list.low[i + 1]))
				fault(GPU_SKIPLIST_BAD_ENTRIES, list.ref[i]);
			last = e;
		}
	}

	GPU_FN void operator()(int64_t i) const
	{
		uint64_t *chunk = gpu_skiplist_chunk(base, list.ref[i]);
		const GpuSkiplistNotes *notes = gpu_skiplist_notes(chunk, index);
		uint64_t order = gpu_skiplist_order(chunk, version);

		list.start[i] = (uint32_t) gpu_skiplist_n(order);
		if (i == 0)
			list.start[n] = 0;
		if (chunk[1] > version || chunk[3] > version)
			fault(GPU_SKIPLIST_BAD_VERSION, list.ref[i]);
		if (notes->head != 0 || notes->waits != 0)
			fault(GPU_SKIPLIST_BAD_NOTES, list.ref[i]);
		if (!order_sound(order))
		{
			fault(GPU_SKIPLIST_BAD_ORDER, list.ref[i]);
			return;
		}
		if (gpu_skiplist_n(order) < (root ? (index ? 2 : 0) : 1))
			fault(GPU_SKIPLIST_BAD_SIZE, list.ref[i]);
		if (index)
			entries<true>(chunk, order, i);
		else
			entries<false>(chunk, order, i);
	}
};

/* The list of the level below, a thread an entry that there may be. */
template <int nw> struct GpuSkiplistBelow
{
	const unsigned char *base;
	uint64_t version;
	GpuSkiplistLevel list;
	GpuSkiplistLevel below;

	GPU_FN void operator()(int64_t i) const
	{
		int64_t at = i / GPU_SKIPLIST_PLACES;
		int k = (int) (i % GPU_SKIPLIST_PLACES);
		const uint64_t *chunk = gpu_skiplist_chunk(base, list.ref[at]);
		uint64_t order = gpu_skiplist_order(chunk, version);
		int slot = gpu_skiplist_slot(order, k);

		if (k >= gpu_skiplist_n(order))
			return;
		below.ref[list.start[at] + (uint32_t) k] = gpu_skiplist_ref(chunk, slot);
		below.low[list.start[at] + (uint32_t) k] = k == 0 ? list.low[at]
														  : gpu_skiplist_entry(chunk, slot, true, nw);
	}
};

/* The list of the root's level. */
struct GpuSkiplistTop
{
	GpuSkiplistLevel list;
	GpuRef root;

	GPU_FN void operator()(int64_t) const
	{
		list.ref[0] = root;
		list.low[0] = { 0, 0, 0 };
	}
};

/* Working memory. */
struct GpuSkiplistVerify : GpuVerify
{
	GpuSkiplistLevel list[2]; /* of levels in turn */
};

static inline void
gpu_skiplist_verify_layout(GpuScratch *scratch, GpuSkiplistVerify *v, GpuChange *c, const GpuSkiplist *s)
{
	int64_t most = 1;

	for (int level = 0; level < s->levels; level++)
		most = s->level_n[level] > most ? s->level_n[level] : most;
	gpu_verify_layout(scratch, v, c, s);
	for (int i = 0; i < 2; i++)
	{
		v->list[i].ref = gpu_scratch<GpuRef>(scratch, most);
		v->list[i].low = gpu_scratch<GpudsEntry>(scratch, most);
		v->list[i].start = gpu_scratch<uint32_t>(scratch, most + 1);
	}
	gpu_scratch_temp(scratch, &c->stream, most + 1);
}

/* Checks all levels; false: there is a fault, in the report or in words. */
template <int nw>
static inline bool
gpu_skiplist_verify_levels(GpuChange *c, const GpuSkiplist *s, GpuSkiplistVerify *v, char *why, size_t whylen)
{
	const GpuSkiplistView view = gpu_skiplist_newest(c, s);
	GpuSkiplistReport *report = gpu_skiplist_report(c);
	GpuStream *stream = &c->stream;
	uint32_t n = 1;

	gpu_launch(stream, 1, GpuSkiplistTop{ v->list[(s->levels - 1) & 1], s->top });
	for (int level = s->levels - 1; level >= 0; level--)
	{
		GpuSkiplistLevel list = v->list[level & 1];

		if (n != s->level_n[level])
		{
			snprintf(why, whylen, "level %d has %u chunks, expected %u", level, n, s->level_n[level]);
			return false;
		}
		gpu_verify_mark(c, v, level > 0 ? GPU_SKIPLIST_INDEXES : GPU_SKIPLIST_CHUNKS, list.ref, n);
		if (!gpu_verify_look(c, v))
			return false;
		gpu_launch(stream, n,
				   GpuSkiplistCheck<nw>{ view.base, view.version, list, n, level > 0, level == s->levels - 1,
										 v->finding });
		gpu_exclusive_sum(stream, list.start, list.start, (int64_t) n + 1);
		gpu_copy_bus(stream, &report->n[0], list.start + n, sizeof(uint32_t));
		if (!gpu_verify_look(c, v))
			return false;
		/* the lists have room for what the host says */
		if (level > 0 && report->n[0] == s->level_n[level - 1])
			gpu_launch(stream, (int64_t) n * GPU_SKIPLIST_PLACES,
					   GpuSkiplistBelow<nw>{ view.base, view.version, list, v->list[(level - 1) & 1] });
		n = report->n[0];
	}
	if (n != s->entries.load())
		snprintf(why, whylen, "there are %u entries, expected %llu", n,
				 (unsigned long long) s->entries.load());
	return n == s->entries.load();
}

/* The same, and nodes that are free or retired. */
static inline bool
gpu_skiplist_verify_all(GpuChange *c, const GpuSkiplist *s, GpuSkiplistVerify *v, char *why, size_t whylen)
{
	static const char *const kinds[GPU_SKIPLIST_KINDS] = { "chunks", "index chunks" };
	GpuSkiplistReport *report = gpu_skiplist_report(c);

	/* what the version consists of is a node, too */
	report->table = s->root;
	if (s->root != 0)
		gpu_verify_mark(c, v, GPU_SKIPLIST_INDEXES, &((GpuSkiplistReport *) c->device_report)->table, 1);
	if (s->levels > 0 && !(s->nwords == 1 ? gpu_skiplist_verify_levels<1>(c, s, v, why, whylen)
										  : gpu_skiplist_verify_levels<2>(c, s, v, why, whylen)))
		return false;
	return gpu_verify_rest(c, s, v, kinds, why, whylen);
}

/*
 * Checks a list's newest version and its memory.  GPU_DAMAGED: why says what is wrong.  Takes working
 * memory of about 60 bytes a chunk from the pool.
 */
static inline GpuStatus
gpu_skiplist_verify(GpuChange *c, const GpuSkiplist *s, char *why, size_t whylen)
{
	GpuScratch scratch = { NULL, 0 };
	GpuSkiplistVerify v;
	GpuSpan span;
	bool sound;

	snprintf(why, whylen, "%s", "");
	if (s->nwords == 0 || s->loading)
		return GPU_WITHDRAWN;
	gpu_skiplist_verify_layout(&scratch, &v, c, s);
	if (!gpu_scratch_take(c->pool, &span, &scratch))
		return GPU_NO_MEMORY;
	gpu_skiplist_verify_layout(&scratch, &v, c, s);
	gpu_verify_begin(c, &v, s);
	sound = gpu_skiplist_verify_all(c, s, &v, why, whylen);
	return gpu_verify_end(c, &span, sound, "chunk at unit", gpu_skiplist_fault_words, why, whylen);
}

#endif /* SKIPLIST_VERIFY_GPU_H */
