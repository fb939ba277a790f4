/*-------------------------------------------------------------------------
 *
 * gpu_scan_groups.h
 *	  Sums by groups against a model: the part of gpu_scan.cu for GPU_GROUPS.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TEST_GPU_SCAN_GROUPS_H
#define TEST_GPU_SCAN_GROUPS_H

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <vector>

/* A filter as a tree. */
struct TestFilter
{
	uint32_t op;
	std::vector<TestFilter> joined;
	AggColumn column;
	bool null;
	std::vector<uint64_t> lo;
	std::vector<uint64_t> hi;
};

/* The key of a group with its label, and what is expected of it. */
typedef std::array<uint64_t, 4> TestGroupKey;
struct TestGroup
{
	uint64_t rows;
	Expected terms[GROUP_TERMS];
};
typedef std::map<TestGroupKey, TestGroup> TestGroups;

/* How many ranges a test has: some have more than a word has bits. */
static uint64_t
random_ranges(void)
{
	return test_below(16) == 0 ? 60 + test_below(10) : test_below(4);
}

static TestFilter
random_filter(int nwords, int depth)
{
	TestFilter filter = {};

	filter.op = (uint32_t) (depth == 0 ? (uint64_t) ENTRY_FILTER_TEST : test_below(3));
	if (filter.op != ENTRY_FILTER_TEST)
	{
		for (uint64_t n = test_below(4); n > 0; n--)
			filter.joined.push_back(random_filter(nwords, depth - 1));
		return filter;
	}
	filter.column = random_measure(nwords);
	filter.null = test_below(2);
	for (uint64_t n = random_ranges(), from = 0; n > 0 && from < UINT64_MAX / 2; n--)
	{
		uint64_t step = filter.column.bits < 40 ? UINT64_C(1) << filter.column.bits : UINT64_MAX / 8;

		filter.lo.push_back(from + test_below(step));
		filter.hi.push_back(filter.lo.back() + test_below(step));
		from = filter.hi.back() + 2;
	}
	return filter;
}

/* Appends a filter's steps. */
static void
compile(const TestFilter &filter, std::vector<EntryFilterStep> *steps, std::vector<uint64_t> *codes)
{
	EntryFilterStep step = {};

	for (const TestFilter &joined : filter.joined)
		compile(joined, steps, codes);
	step.op = filter.op;
	step.n = (uint32_t) (filter.op == ENTRY_FILTER_TEST ? filter.lo.size() : filter.joined.size());
	step.column = filter.column;
	step.null = filter.null;
	step.codes = codes->size();
	codes->insert(codes->end(), filter.lo.begin(), filter.lo.end());
	codes->insert(codes->end(), filter.hi.begin(), filter.hi.end());
	steps->push_back(step);
}

/* The code of a column, or none. */
static bool
model_code(const AggColumn *column, const GpudsEntry *e, int nwords, uint64_t *code)
{
	Expected x = {};

	x.min = UINT64_MAX;
	model_add(&x, column, e, nwords);
	*code = x.min;
	return x.n > 0;
}

static bool
model_passes(const TestFilter &filter, const GpudsEntry *e, int nwords)
{
	uint64_t code;
	bool all = true;
	bool any = false;

	if (filter.op == ENTRY_FILTER_TEST)
	{
		if (!model_code(&filter.column, e, nwords, &code))
			return filter.null;
		for (size_t i = 0; i < filter.lo.size(); i++)
			any |= filter.lo[i] <= code && code <= filter.hi[i];
		return any;
	}
	for (const TestFilter &joined : filter.joined)
	{
		bool passes = model_passes(joined, e, nwords);

		all &= passes;
		any |= passes;
	}
	return filter.op == ENTRY_FILTER_AND ? all : any;
}

/* A random spec: its filters as trees, and what the request is given. */
struct TestSpec
{
	GroupSpec head;
	TestFilter filter;
	TestFilter term_filters[GROUP_TERMS];
	GroupTerm terms[GROUP_TERMS];
	std::vector<EntryFilterStep> steps;
	std::vector<uint64_t> codes;
	std::vector<uint32_t> labels;
};

/* A random mask: of few groups, of some, or of many. */
static GpudsEntry
random_group_bits(void)
{
	GpudsEntry bits = { 0, 0, 0 };

	if (test_below(4) > 0)
		bits.w0 = test_random() & test_random() & (test_below(2) ? 7 : UINT64_MAX);
	if (test_below(2))
		bits.w1 = test_random() & test_random() & test_random();
	if (test_below(3) == 0)
		bits.t = test_random() & UINT64_C(3) << ENTRY_SPILL_SHIFT;
	return bits;
}

static void
random_term(TestSpec *spec, int k, int nwords)
{
	GroupTerm *term = &spec->terms[k];
	size_t before = spec->steps.size();

	memset((void *) term, 0, sizeof(*term));
	term->column = random_measure(nwords);
	if (test_below(2))
		return;
	spec->term_filters[k] = random_filter(nwords, 2);
	compile(spec->term_filters[k], &spec->steps, &spec->codes);
	term->first_step = (uint32_t) before;
	term->nsteps = (uint32_t) (spec->steps.size() - before);
	term->has_value = (uint32_t) test_below(2);
	term->has_other = (uint32_t) test_below(2);
	term->value = test_random() & (UINT64_MAX >> (64 - term->column.bits));
	term->other = test_random() & (UINT64_MAX >> (64 - term->column.bits));
}

/* Makes a random spec for n intervals, and puts it in place for a request. */
static void
random_spec(TestSpec *spec, GpuRequest *r, int64_t n, int nwords)
{
	unsigned char *to = slots[2].input;
	GroupSpec *head = (GroupSpec *) to;

	spec->head.bits = random_group_bits();
	spec->head.nterms = (uint32_t) test_below(GROUP_TERMS + 1);
	spec->head.slots = 1u << test_below(test_below(3) == 0 ? 4 : 8);
	while (spec->head.slots > 1 && group_table_bytes(&spec->head) > PIECE / 2)
		spec->head.slots /= 2;
	spec->head.spread = spec->head.slots >> test_below(9);
	if (spec->head.spread == 0)
		spec->head.spread = 1;
	if (test_below(2))
	{
		spec->filter = random_filter(nwords, 3);
		compile(spec->filter, &spec->steps, &spec->codes);
	}
	spec->head.filter = (uint32_t) spec->steps.size();
	for (uint32_t k = 0; k < spec->head.nterms; k++)
		random_term(spec, (int) k, nwords);
	spec->head.nsteps = (uint32_t) spec->steps.size();
	spec->head.ncodes = spec->codes.size();
	spec->head.has_labels = (uint32_t) test_below(2);
	for (int64_t i = 0; i < n; i++)
		spec->labels.push_back(spec->head.has_labels ? (uint32_t) test_below(4) : 0);
	*head = spec->head;
	std::copy(spec->terms, spec->terms + spec->head.nterms, group_spec_terms(head));
	std::copy(spec->steps.begin(), spec->steps.end(), group_spec_steps(head));
	std::copy(spec->codes.begin(), spec->codes.end(), group_spec_codes(head));
	r->groups = (uint64_t) (to - (unsigned char *) slots);
	r->groups_bytes = group_spec_bytes(head) + group_label_bytes(head, n);
	CHECK(r->groups_bytes <= PIECE);
	if (spec->head.has_labels)
		std::copy(spec->labels.begin(), spec->labels.end(), group_spec_labels(head));
	CHECK(gpu_groups_fit(&large, (unsigned char *) slots, REQUESTS * sizeof(Slot), r));
}

static TestGroupKey
model_key(const TestSpec *spec, const GpudsEntry *e, int64_t interval)
{
	return { e->w0 & spec->head.bits.w0, e->w1 & spec->head.bits.w1, e->t & spec->head.bits.t,
			 spec->labels[(size_t) interval] };
}

/* Adds an entry's terms to its group. */
static void
model_group(const TestSpec *spec, const GpudsEntry *e, int nwords, TestGroup *group)
{
	group->rows++;
	for (uint32_t k = 0; k < spec->head.nterms; k++)
	{
		const GroupTerm *term = &spec->terms[k];
		bool passes = term->nsteps == 0 || model_passes(spec->term_filters[k], e, nwords);
		AggColumn column = term->column;
		GpudsEntry constant = { passes ? term->value : term->other, 0, 0 };

		if (group->rows == 1)
			group->terms[k].min = UINT64_MAX;
		if (passes && !term->has_value)
			model_add(&group->terms[k], &column, e, nwords);
		else if (passes || term->has_other)
		{
			/* the same column of an entry that has it at its right end, and no NULL */
			column.place = ENTRY_SPILL_BITS;
			column.null_place = 0;
			column.null_bit = 1;
			model_add(&group->terms[k], &column, &constant, 1);
		}
	}
}

/* What a request is to find, each entry by itself. */
struct TestFound
{
	TestGroups groups;
	int64_t counted;
	int64_t filtered;
	int64_t back; /* entries that must be handed back */
};

/*
 * Goes through the entries of a scan as a request is to: counts those that the filter leaves out and those
 * that are handed back, and calls seen(entry, its interval) of those whose rows are seen.
 */
template <typename F>
static void
model_entries(const TestSpec *spec, const GpuRequest *r, const Progress *p, const Model *m,
			  const Visible *visible, int nwords, int64_t *filtered, int64_t *back, F seen)
{
	for (int64_t i = 0; i < p->n; i++)
	{
		int64_t first;
		int64_t inside = test_inside(m, &p->intervals[i], &first);

		for (const GpudsEntry *e = m->e + first; e < m->e + first + inside; e++)
		{
			PageRow row = test_row(e, visible->map, visible->map_bytes, &visible->rows);

			if (r->inside && i == 0 && !entry_less(&r->at, e))
				continue;
			if (spec->head.filter > 0 && !model_passes(spec->filter, e, nwords))
				++*filtered;
			else if (test_goes_back(row))
				++*back;
			else if (row == PAGE_ROW_SEEN)
				seen(e, i);
		}
	}
}

/* has_slot: takes an entry from those that were handed back though they need not be, if it is one. */
template <typename F>
static void
model_groups(const TestSpec *spec, const GpuRequest *r, const Progress *p, const Model *m,
			 const Visible *visible, int nwords, TestFound *found, F has_slot)
{
	model_entries(spec, r, p, m, visible, nwords, &found->filtered, &found->back,
				  [&](const GpudsEntry *e, int64_t i)
				  {
					  if (!has_slot(e))
						  return;
					  found->counted++;
					  model_group(spec, e, nwords, &found->groups[model_key(spec, e, i)]);
				  });
}

/* Checks slots that are of one group together. */
static void
check_group(const TestSpec *spec, const std::vector<const uint64_t *> &parts, const TestGroup &expected)
{
	uint64_t rows = 0;
	PartialAgg sums[GROUP_TERMS];

	for (uint32_t k = 0; k < spec->head.nterms; k++)
		sums[k] = partial_agg_empty();
	for (const uint64_t *one : parts)
	{
		rows += one[GROUP_ROWS];
		for (uint32_t k = 0; k < spec->head.nterms; k++)
		{
			PartialAgg more;

			memcpy(&more, one + GROUP_PARTIAL + k * GPU_PARTIAL_AGG_WORDS, sizeof(more));
			partial_agg_merge(&sums[k], &more);
		}
	}
	CHECK(rows == expected.rows);
	for (uint32_t k = 0; k < spec->head.nterms; k++)
	{
		uint64_t copy[GPU_PARTIAL_AGG_WORDS];

		memcpy(copy, &sums[k], sizeof(copy));
		check_measured(copy, &spec->terms[k].column, &expected.terms[k]);
	}
}

/* Takes the slots of an answer from what was expected. */
static void
check_slots(const TestSpec *spec, const GpuRequest *r, const uint64_t *slot, TestFound *found)
{
	const size_t words = group_slot_words(spec->head.nterms, spec->head.nside);
	std::map<TestGroupKey, std::vector<const uint64_t *>> parts;

	for (int64_t i = 0; i < r->taken; i++, slot += words)
		parts[{ slot[GROUP_W0], slot[GROUP_W1], slot[GROUP_T], slot[GROUP_LABEL] }].push_back(slot);
	CHECK(parts.size() == found->groups.size());
	for (const auto &part : parts)
		check_group(spec, part.second, found->groups.at(part.first));
}

/* Of entries that were handed back, those of seen rows, each as often as it came. */
static std::map<std::array<uint64_t, 3>, int64_t>
crowded_entries(const GpudsEntry *e, int64_t n, const Visible *visible)
{
	std::map<std::array<uint64_t, 3>, int64_t> crowded;

	for (int64_t i = 0; i < n; i++)
	{
		if (test_row(&e[i], visible->map, visible->map_bytes, &visible->rows) == PAGE_ROW_SEEN)
			crowded[{ e[i].w0, e[i].w1, e[i].t }]++;
	}
	return crowded;
}

static void
run_groups(const GpudsView *view, const Model *m, int kind, uint64_t range)
{
	GpuRequest *r = &slots[0].request;
	const unsigned char *out = slots[0].output;
	GpuRequest asked;
	TestSpec spec = {};
	TestFound found = {};
	Visible visible;
	Progress p;

	start(&slots[0], &p, m, kind, view->nwords, range, test_below(2) ? 3 : 20);
	r->form = GPU_GROUPS;
	r->forward = true;
	r->next = 0;
	r->inside = p.n > 0 && test_below(4) == 0 && p.intervals[0].lo.t != UINT64_MAX &&
				!entry_less(&p.intervals[0].hi, &p.intervals[0].lo);
	if (r->inside)
		r->at = p.intervals[0].lo;
	random_spec(&spec, r, p.n, view->nwords);
	visible = random_visible(r, m, PIECE / 4);
	r->cap = ((int64_t) PIECE - (int64_t) group_table_bytes(&spec.head)) / (int64_t) sizeof(GpudsEntry);
	asked = *r;
	r->status = scan_large(view, r);
	CHECK(r->status == GPU_OK);
	if (r->found <= r->cap)
	{
		auto crowded = crowded_entries((const GpudsEntry *) (out + group_table_bytes(&spec.head)), r->found,
									   &visible);
		int64_t left = r->crowded;

		model_groups(&spec, &asked, &p, m, &visible, view->nwords, &found,
					 [&](const GpudsEntry *e)
					 {
						 int64_t &n = crowded[{ e->w0, e->w1, e->t }];

						 left -= n > 0;
						 return n-- <= 0;
					 });
		CHECK(left == 0 && r->found == found.back + r->crowded);
		/* An entry that comes in several intervals may have had a slot in one of them only. */
		if (r->crowded == 0 || !spec.head.has_labels)
			check_slots(&spec, r, (const uint64_t *) out, &found);
		CHECK(r->counted == found.counted && r->filtered == found.filtered);
		CHECK(r->next == r->n && !r->inside);
	}
	else
		CHECK(r->next == 0);
	free(p.intervals);
}

/* Ones where entries of a group agree that follow each other: in so many leading bits. */
static GpudsEntry
prefix_bits(int n)
{
	GpudsEntry bits = { 0, 0, 0 };

	for (int i = 0; i < n; i++)
		(i < 64 ? bits.w0 : i < 128 ? bits.w1 : bits.t) |= UINT64_C(1) << (63 - i % 64);
	return bits;
}

/* Runs of entries of one group, as they follow each other. */
typedef std::vector<std::pair<TestGroupKey, TestGroup>> TestRuns;

/* What all pieces of a scan are to find together; returns how many entries are handed back. */
static int64_t
model_runs(const TestSpec *spec, const GpuRequest *r, const Progress *p, const Model *m,
		   const Visible *visible, int nwords, TestRuns *runs, int64_t *counted, int64_t *filtered)
{
	int64_t back = 0;

	model_entries(spec, r, p, m, visible, nwords, filtered, &back,
				  [&](const GpudsEntry *e, int64_t i)
				  {
					  TestGroupKey key = model_key(spec, e, i);

					  if (runs->empty() || runs->back().first != key)
						  runs->push_back({ key, TestGroup() });
					  model_group(spec, e, nwords, &runs->back().second);
					  ++*counted;
				  });
	return back;
}

/* Groups that may be left out: of one entry, which is neither the first nor the last of its interval. */
static std::set<TestGroupKey>
model_single(const TestSpec *spec, const Progress *p, const Model *m)
{
	std::map<TestGroupKey, int> entries;
	std::set<TestGroupKey> single;

	for (int64_t i = 0; i < p->n; i++)
	{
		int64_t first;
		int64_t inside = test_inside(m, &p->intervals[i], &first);

		for (int64_t k = 0; k < inside; k++)
			entries[model_key(spec, &m->e[first + k], i)] += k == 0 || k == inside - 1 ? 2 : 1;
	}
	for (const auto &group : entries)
	{
		if (group.second == 1)
			single.insert(group.first);
	}
	return single;
}

/* The slots of all pieces, and for each run those that are of it. */
struct TestSlots
{
	std::vector<std::vector<uint64_t>> slots;
	std::vector<std::pair<TestGroupKey, std::vector<const uint64_t *>>> runs;
};

static void
take_run_slots(const TestSpec *spec, const uint64_t *slot, int64_t n, TestSlots *taken)
{
	const size_t words = group_slot_words(spec->head.nterms, spec->head.nside);

	for (int64_t i = 0; i < n; i++, slot += words)
	{
		TestGroupKey key = { slot[GROUP_W0], slot[GROUP_W1], slot[GROUP_T], slot[GROUP_LABEL] };

		CHECK(slot[GROUP_ROWS] > 0);
		taken->slots.push_back(std::vector<uint64_t>(slot, slot + words));
		if (taken->runs.empty() || taken->runs.back().first != key)
			taken->runs.push_back({ key, {} });
		taken->runs.back().second.push_back(taken->slots.back().data());
	}
}

static void
run_runs(const GpudsView *view, const Model *m, int kind, uint64_t range)
{
	GpuRequest *r = &slots[0].request;
	const unsigned char *out = slots[0].output;
	GroupSpec *head = (GroupSpec *) slots[2].input;
	GpuRequest asked;
	TestSpec spec = {};
	TestRuns expected;
	TestSlots taken;
	Visible visible;
	Progress p;
	int64_t counted = 0;
	int64_t filtered = 0;
	std::set<TestGroupKey> single;
	int64_t back;
	int64_t found[3] = { 0, 0, 0 };
	int64_t left_out = 0;
	int64_t kept = 0;
	size_t taken_runs = 0;

	start(&slots[0], &p, m, kind, view->nwords, range, test_below(2) ? 3 : 20);
	r->form = GPU_GROUPS;
	r->forward = true;
	r->next = 0;
	r->inside = false;
	random_spec(&spec, r, p.n, view->nwords);
	head->bits = spec.head.bits = prefix_bits((int) test_below(test_below(2) ? 132 : 70));
	if (spec.head.has_labels)
		std::fill(spec.labels.begin(), spec.labels.end(), 0);
	head->has_labels = spec.head.has_labels = 0;
	head->slots = spec.head.slots = 1u << test_below(9);
	while (group_table_bytes(head) > PIECE / 2)
		head->slots = spec.head.slots /= 2;
	head->spread = 1;
	head->most = test_below(2) ? INT64_MAX : 1 + (int64_t) test_below(500);
	head->repeated = spec.head.repeated = (uint32_t) test_below(2);
	r->groups_bytes = group_spec_bytes(head);
	visible = random_visible(r, m, PIECE / 4);
	r->cap = ((int64_t) PIECE - (int64_t) group_table_bytes(head)) / (int64_t) sizeof(GpudsEntry);
	asked = *r;
	back = model_runs(&spec, &asked, &p, m, &visible, view->nwords, &expected, &counted, &filtered);
	do
	{
		CHECK(gpu_groups_fit(&large, (unsigned char *) slots, REQUESTS * sizeof(Slot), r));
		r->status = scan_large(view, r);
		CHECK(r->status == GPU_OK && r->crowded == 0);
		if (r->found > r->cap)
		{
			free(p.intervals);
			return;
		}
		take_run_slots(&spec, (const uint64_t *) out, r->taken, &taken);
		found[0] += r->counted;
		found[1] += r->filtered;
		found[2] += r->found;
		left_out += r->left_out;
		/* the first entry of a request, and the last */
		kept += 2;
		CHECK(r->inside || r->next == r->n);
	} while (r->inside);
	if (head->repeated)
		single = model_single(&spec, &p, m);
	CHECK(left_out <= (int64_t) single.size() && left_out >= (int64_t) single.size() - kept);
	CHECK(found[0] <= counted && found[1] <= filtered && found[2] <= back);
	CHECK(found[0] + found[1] + found[2] >= counted + filtered + back - left_out);
	for (const auto &run : expected)
	{
		const bool is_taken = taken_runs < taken.runs.size() && taken.runs[taken_runs].first == run.first;

		CHECK(is_taken || single.count(run.first) > 0);
		if (is_taken)
			check_group(&spec, taken.runs[taken_runs++].second, run.second);
	}
	CHECK(taken_runs == taken.runs.size());
	free(p.intervals);
}

#endif /* TEST_GPU_SCAN_GROUPS_H */
