/*-------------------------------------------------------------------------
 *
 * checker.c
 *	  Could every read have seen what it saw?
 *
 * The versions of a row form a chain: absent, inserted, updated, ..., perhaps
 * deleted.  A snapshot stands at one position of each chain.  It may stand there
 * if it may see the transaction that made the position, and may miss the one that
 * made the next position:
 *
 *	- It may see what had been sent to be committed before the snapshot's latest time.
 *	- It may miss what was not yet known to be committed at its earliest time.
 *
 * For each chain that a read has to do with, the positions are kept that fit what
 * the read showed of it.  If there is none, the read is wrong.  What all positions
 * that are left have in common is then true of the snapshot: it sees these
 * transactions, misses those, and was taken after the former were sent and before
 * the latter had returned.  That may exclude positions of other chains, so this goes
 * on until nothing changes.  So a transaction is seen whole or not at all, and the
 * order of commits is respected.  All reads of a REPEATABLE READ transaction share
 * what is known of their snapshot.
 *
 * SERIALIZABLE transactions share their snapshot, too, and what they saw and missed
 * says which others they come after and before (dependencies.h).
 *
 * What a transaction has written itself it sees at once, and nothing else of that
 * row, because it holds the row's lock.
 *
 *-------------------------------------------------------------------------
 */
#include "checker.h"

#include "dependencies.h"

#include <stdlib.h>
#include <string.h>

#define SEEN 1
#define MISSED (-1)

const char *const violation_names[NVIOLATIONS] = {
	"missing", "stale",   "premature", "rolled back", "inconsistent", "unknown row",
	"altered", "unasked", "duplicate", "unordered",   "lost update",  "cycle",
};

/* Row versions of a key that a snapshot may still see. */
typedef struct Alive
{
	Write **items;
	size_t used, size;
} Alive;

typedef struct Checker
{
	History *history;
	FILE *report;
	unsigned max_reports;
	Verdict *verdict;
	Alive *alive; /* by key */
	Alive births; /* committed row versions, by when their commit was sent */
	size_t next_birth;
	Alive chains; /* of this read: the writes that inserted its rows */
	uint64_t read_number;
	uint64_t snapshots;
	Alive *births_of; /* by key, those of SERIALIZABLE transactions */
	int64_t longest;  /* time that a SERIALIZABLE transaction took */
	Dependencies dependencies;
} Checker;

static void
append(Alive *list, Write *write)
{
	if (list->used == list->size)
	{
		list->size = list->size ? list->size * 2 : 16;
		list->items = realloc(list->items, list->size * sizeof(Write *));
		if (list->items == NULL)
		{
			perror("histories");
			exit(2);
		}
	}
	list->items[list->used++] = write;
}

static bool
is_committed(const History *history, const Write *write)
{
	return write->kind != WRITE_NONE && write->undone == NO_STEP && history_writer(history, write)->committed;
}

/*
 * Descriptions
 */

static double
milliseconds(int64_t time)
{
	return (double) time / 1e6;
}

static void
describe_write(const Checker *checker, const Write *write)
{
	static const char *const kinds[] = { "nothing", "insert", "update", "delete" };
	const Transaction *writer = history_writer(checker->history, write);

	fprintf(checker->report, "    %s %llx (before %llx) key %d stripe %lld, session %d transaction %u",
			kinds[write->kind], (unsigned long long) write->row.version,
			(unsigned long long) write->row.previous, write->row.key, (long long) write->row.stripe,
			write->session, write->transaction);
	if (!is_committed(checker->history, write))
		fprintf(checker->report, ", not committed\n");
	else
		fprintf(checker->report, ", commit %.3f to %.3f ms\n", milliseconds(writer->commit_sent),
				milliseconds(writer->commit_returned));
}

static void
describe_condition(const Checker *checker, const Read *read)
{
	const Condition *condition = &read->condition;
	const int32_t *keys = checker->history->sessions[read->session].keys.items;

	switch (condition->kind)
	{
		case BY_ID:
			fprintf(checker->report, "id %llx", (unsigned long long) condition->id);
			break;
		case BY_RANGE:
			fprintf(checker->report, "keys %d to %d", condition->low, condition->high);
			break;
		case BY_KEYS:
			fprintf(checker->report, "keys");
			for (size_t i = 0; i < condition->nkeys; i++)
				fprintf(checker->report, " %d", keys[condition->first_key + i]);
			break;
	}
	if (condition->stripe != ANY_STRIPE)
		fprintf(checker->report, " of stripe %lld", (long long) condition->stripe);
}

static void
describe_read(const Checker *checker, const Read *read)
{
	const SessionLog *log = &checker->history->sessions[read->session];
	const Snapshot *snapshot = &log->snapshots.items[read->snapshot];

	fprintf(checker->report,
			"    read by session %d transaction %u step %u, snapshot %.3f to %.3f ms: ", read->session,
			read->transaction, read->step, milliseconds(snapshot->sent), milliseconds(snapshot->returned));
	describe_condition(checker, read);
	fprintf(checker->report, "\n    shows");
	for (size_t i = 0; i < read->nrows; i++)
		fprintf(checker->report, " %llx", (unsigned long long) log->rows.items[read->first_row + i].version);
	fprintf(checker->report, "\n");
}

/* Notes a violation; read and chain (what inserted the row) are described if given. */
static void
complain(Checker *checker, Violation what, const Read *read, const Write *chain, int64_t version)
{
	int shown = 0;

	checker->verdict->found[what]++;
	if (violations(checker->verdict) > checker->max_reports)
		return;
	fprintf(checker->report, "  %s: row version %llx\n", violation_names[what], (unsigned long long) version);
	if (read)
		describe_read(checker, read);
	for (; chain && shown < 20; chain = chain->next, shown++)
		describe_write(checker, chain);
}

uint64_t
violations(const Verdict *verdict)
{
	uint64_t all = 0;

	for (int i = 0; i < NVIOLATIONS; i++)
		all += verdict->found[i];
	return all;
}

/*
 * Chains
 */

/* Enters a committed write into its chain. */
static void
link_write(Checker *checker, Write *write)
{
	const History *history = checker->history;
	Write *before;

	if (!is_committed(history, write) || write->kind == WRITE_INSERT)
		return;
	before = history_find(history, write->row.previous);
	if (before == NULL || before->kind == WRITE_NONE || before->kind == WRITE_DELETE)
		complain(checker, UNKNOWN_ROW, NULL, write, write->row.previous);
	else if (before->row.id != write->row.id)
		complain(checker, ALTERED, NULL, write, write->row.previous);
	else if (!is_committed(history, before))
		complain(checker, ROLLED_BACK, NULL, write, write->row.previous);
	else if (before->next)
		complain(checker, LOST_UPDATE, NULL, before, write->row.version);
	else
	{
		before->next = write;
		add_dependency(&checker->dependencies, history_writer(history, before),
					   history_writer(history, write));
	}
}

static const History *sorted_history;

static int
compare_births(const void *a, const void *b)
{
	int64_t x = history_writer(sorted_history, *(Write *const *) a)->commit_sent;
	int64_t y = history_writer(sorted_history, *(Write *const *) b)->commit_sent;

	return (x > y) - (x < y);
}

/* By when the snapshot was asked for; those of a snapshot together, in the order of their steps. */
static int
compare_reads(const void *a, const void *b)
{
	const Read *x = *(Read *const *) a;
	const Read *y = *(Read *const *) b;
	int64_t sent_x = sorted_history->sessions[x->session].snapshots.items[x->snapshot].sent;
	int64_t sent_y = sorted_history->sessions[y->session].snapshots.items[y->snapshot].sent;

	if (sent_x != sent_y)
		return sent_x < sent_y ? -1 : 1;
	if (x->session != y->session)
		return x->session < y->session ? -1 : 1;
	return (x > y) - (x < y);
}

static void
link_all(Checker *checker)
{
	History *history = checker->history;

	for (int session = 0; session < history->nsessions; session++)
	{
		for (size_t i = 0; i < history->sessions[session].writes.used; i++)
		{
			Write *write = &history->sessions[session].writes.items[i];

			link_write(checker, write);
			if (is_committed(history, write) && write->kind != WRITE_DELETE)
				append(&checker->births, write);
		}
	}
	if (checker->births.used > 0)
		qsort(checker->births.items, checker->births.used, sizeof(Write *), compare_births);
	for (size_t i = 0; i < checker->births.used; i++)
	{
		const Transaction *writer = history_writer(history, checker->births.items[i]);

		if (!writer->serializable)
			continue;
		append(&checker->births_of[checker->births.items[i]->row.key], checker->births.items[i]);
		if (writer->commit_returned - writer->began > checker->longest)
			checker->longest = writer->commit_returned - writer->began;
	}
}

/*
 * What a snapshot may see
 */

static int
sight(const Transaction *transaction, const Snapshot *snapshot)
{
	return transaction->snapshot == snapshot->number ? transaction->sight : 0;
}

static bool
may_see(const Transaction *transaction, const Snapshot *snapshot)
{
	return sight(transaction, snapshot) != MISSED && transaction->commit_sent <= snapshot->high;
}

static bool
may_miss(const Transaction *transaction, const Snapshot *snapshot)
{
	return sight(transaction, snapshot) != SEEN && transaction->commit_returned > snapshot->low;
}

/* Notes that the snapshot sees a transaction, or misses it; returns whether that was new. */
static bool
decide(Transaction *transaction, Snapshot *snapshot, int decision)
{
	if (!may_see(transaction, snapshot) || !may_miss(transaction, snapshot))
		return false;
	transaction->snapshot = snapshot->number;
	transaction->sight = decision;
	if (decision == SEEN && transaction->commit_sent > snapshot->low)
		snapshot->low = transaction->commit_sent;
	if (decision == MISSED && transaction->commit_returned < snapshot->high)
		snapshot->high = transaction->commit_returned;
	return true;
}

/*
 * Reads
 */

/* Takes a row into this read's account; chain is the write that inserted it. */
static void
include(Checker *checker, Write *chain)
{
	if (chain->read == checker->read_number)
		return;
	chain->read = checker->read_number;
	chain->shown = NULL;
	chain->own = NULL;
	append(&checker->chains, chain);
}

static bool
is_own(const Read *read, const Write *write)
{
	return write->session == read->session && write->transaction == read->transaction &&
		   write->step < read->step && write->undone >= read->step;
}

static void
include_own(Checker *checker, const Read *read)
{
	const SessionLog *log = &checker->history->sessions[read->session];

	for (size_t i = log->transactions.items[read->transaction].first_write; i < log->writes.used; i++)
	{
		Write *write = &log->writes.items[i];
		Write *chain;

		if (write->transaction != read->transaction || write->step >= read->step)
			break;
		if (write->kind == WRITE_NONE || !is_own(read, write))
			continue;
		chain = history_find(checker->history, write->row.id);
		include(checker, chain);
		chain->own = write;
	}
}

/* What is wrong with a row that is shown, whatever the snapshot; NVIOLATIONS: nothing. */
static Violation
judge_row(Checker *checker, const Read *read, const Row *row)
{
	const History *history = checker->history;
	const Write *write = history_find(history, row->version);

	if (write == NULL || write->kind == WRITE_NONE || write->kind == WRITE_DELETE)
		return UNKNOWN_ROW;
	if (write->row.id != row->id || write->row.key != row->key || write->row.stripe != row->stripe ||
		write->row.previous != row->previous)
		return ALTERED;
	if (!history_matches(history, read->session, &read->condition, row))
		return UNASKED;
	if (!is_own(read, write) && !is_committed(history, write))
		return ROLLED_BACK;
	return NVIOLATIONS;
}

/* Enters the rows that are shown; false: one of them is wrong. */
static bool
include_shown(Checker *checker, const Read *read)
{
	const Row *rows = checker->history->sessions[read->session].rows.items + read->first_row;

	for (size_t i = 0; i < read->nrows; i++)
	{
		Violation wrong = judge_row(checker, read, &rows[i]);
		Write *chain = NULL;

		if (wrong == NVIOLATIONS)
		{
			chain = history_find(checker->history, rows[i].id);
			include(checker, chain);
			if (chain->shown)
				wrong = DUPLICATE;
			else if (read->ordered && i > 0 && rows[i].key < rows[i - 1].key)
				wrong = UNORDERED;
			chain->shown = &rows[i];
		}
		if (wrong != NVIOLATIONS)
		{
			complain(checker, wrong, read, chain, rows[i].version);
			return false;
		}
	}
	return true;
}

/* Enters what a key's versions might show, and forgets those that nobody sees from time on. */
static void
include_key(Checker *checker, const Read *read, int32_t key, int64_t time)
{
	const History *history = checker->history;
	Alive *alive;
	size_t kept = 0;

	if (key < 0 || key >= history->nkeys)
		return;
	alive = &checker->alive[key];
	for (size_t i = 0; i < alive->used; i++)
	{
		Write *write = alive->items[i];

		if (write->next && history_writer(history, write->next)->commit_returned <= time)
			continue;
		alive->items[kept++] = write;
		if (history_matches(history, read->session, &read->condition, &write->row))
			include(checker, history_find(history, write->row.id));
	}
	alive->used = kept;
}

/* Enters all rows that the condition may find; time is the snapshot's earliest. */
static void
include_candidates(Checker *checker, const Read *read, int64_t time)
{
	const Condition *condition = &read->condition;
	const int32_t *keys = checker->history->sessions[read->session].keys.items;
	Write *chain;

	switch (condition->kind)
	{
		case BY_ID:
			chain = history_find(checker->history, condition->id);
			if (chain && chain->kind == WRITE_INSERT)
				include(checker, chain);
			break;
		case BY_RANGE:
			for (int32_t key = condition->low; key <= condition->high; key++)
				include_key(checker, read, key, time);
			break;
		case BY_KEYS:
			for (size_t i = 0; i < condition->nkeys; i++)
				include_key(checker, read, keys[condition->first_key + i], time);
			break;
	}
}

/* The version that a read shows if its snapshot stands at a position of a chain (NULL: absent). */
static int64_t
showing(const Checker *checker, const Read *read, const Write *position)
{
	if (position == NULL || position->kind == WRITE_DELETE ||
		!history_matches(checker->history, read->session, &read->condition, &position->row))
		return 0;
	return position->row.version;
}

/* Where a snapshot may stand in a chain, given what is shown. */
typedef struct Positions
{
	Write *first, *last; /* NULL: absent */
	unsigned count;
} Positions;

static void
find_positions(const Checker *checker, const Read *read, Write *chain, const Snapshot *snapshot,
			   Positions *found)
{
	const History *history = checker->history;
	int64_t shown = chain->shown ? chain->shown->version : 0;
	Write *position = NULL;
	Write *next = is_committed(history, chain) ? chain : NULL;

	found->count = 0;
	for (;;)
	{
		const Transaction *leaving = next ? history_writer(history, next) : NULL;
		bool whole = !position || !next || history_writer(history, position) != leaving;

		if (whole && (!next || may_miss(leaving, snapshot)) && showing(checker, read, position) == shown)
		{
			if (found->count++ == 0)
				found->first = position;
			found->last = position;
		}
		if (!next || !may_see(leaving, snapshot))
			break;
		position = next;
		next = position->next;
	}
}

/* What all positions have in common is true of the snapshot; returns whether that was new. */
static bool
learn(const Checker *checker, Write *chain, const Positions *found, Snapshot *snapshot)
{
	const History *history = checker->history;
	Write *write = is_committed(history, chain) ? chain : NULL;
	bool new = false;

	for (Write *seen = write; found->first && seen; seen = seen->next)
	{
		new |= decide(history_writer(history, seen), snapshot, SEEN);
		if (seen == found->first)
			break;
	}
	if (found->last)
		write = found->last->next;
	for (; write && may_see(history_writer(history, write), snapshot); write = write->next)
		new |= decide(history_writer(history, write), snapshot, MISSED);
	return new;
}

/* No position of the chain fits: why? */
static void
complain_of_chain(Checker *checker, const Read *read, Write *chain, const Snapshot *snapshot)
{
	/* What was known before any row was looked at; no snapshot has the number 0 */
	const Snapshot alone = { .low = snapshot->sent, .high = snapshot->returned };
	const Write *write;
	Positions found = { .count = 0 };
	Violation what = STALE;

	if (!chain->own)
		find_positions(checker, read, chain, &alone, &found);
	if (chain->shown == NULL)
		what = found.count > 0 ? INCONSISTENT : MISSING;
	else if (found.count > 0)
		what = INCONSISTENT;
	else if (!chain->own)
	{
		write = history_find(checker->history, chain->shown->version);
		if (history_writer(checker->history, write)->commit_sent > snapshot->returned)
			what = PREMATURE;
	}
	complain(checker, what, read, chain, chain->shown ? chain->shown->version : chain->row.version);
}

/*
 * Does the snapshot, as far as it is known, fit what is shown of all chains?  Complains of the first
 * that it does not.
 */
static bool
fit_chains(Checker *checker, const Read *read, Snapshot *snapshot, bool *new)
{
	for (size_t i = 0; i < checker->chains.used; i++)
	{
		Write *chain = checker->chains.items[i];
		Positions found;

		if (chain->own)
		{
			if (showing(checker, read, chain->own) == (chain->shown ? chain->shown->version : 0))
				continue;
			complain_of_chain(checker, read, chain, snapshot);
			return false;
		}
		find_positions(checker, read, chain, snapshot, &found);
		if (found.count == 0)
		{
			complain_of_chain(checker, read, chain, snapshot);
			return false;
		}
		*new |= learn(checker, chain, &found, snapshot);
	}
	return true;
}

/* Counts what the read has to do with; before anything is known but the snapshot's times. */
static void
count_chains(Checker *checker, const Snapshot *snapshot)
{
	const History *history = checker->history;

	checker->verdict->judged += checker->chains.used;
	for (size_t i = 0; i < checker->chains.used; i++)
	{
		const Write *write = checker->chains.items[i];

		for (write = is_committed(history, write) ? write : NULL; write; write = write->next)
		{
			const Transaction *writer = history_writer(history, write);

			if (may_see(writer, snapshot) && may_miss(writer, snapshot))
			{
				checker->verdict->changing++;
				break;
			}
		}
	}
}

/* Does a write change what the condition finds?  before is the row version that it replaced, if any. */
static bool
concerns(const Checker *checker, const Read *read, const Write *before, const Write *write)
{
	return showing(checker, read, write) != 0 || (before && showing(checker, read, before) != 0);
}

/*
 * Does a write make a row fit a condition that it did not fit before?  One that leaves it fit comes after
 * the write that made it so.  If that is not of a SERIALIZABLE transaction, nobody promises an order.
 */
static bool
makes_fit(const Checker *checker, const Read *read, const Write *write)
{
	return showing(checker, read, write) != 0 &&
		   (write->kind == WRITE_INSERT ||
			showing(checker, read, history_find(checker->history, write->row.previous)) == 0);
}

/* Notes that the reader comes before those who, beside it, made rows of a key fit after its snapshot. */
static void
note_later(Checker *checker, const Read *read, const Snapshot *snapshot, Transaction *reader, int32_t key)
{
	const Alive *births;
	size_t low = 0, high;

	if (key < 0 || key >= checker->history->nkeys)
		return;
	births = &checker->births_of[key];
	for (high = births->used; low < high;)
	{
		size_t middle = (low + high) / 2;

		if (history_writer(checker->history, births->items[middle])->commit_sent > snapshot->returned)
			high = middle;
		else
			low = middle + 1;
	}
	for (; low < births->used; low++)
	{
		Transaction *writer = history_writer(checker->history, births->items[low]);

		if (writer->commit_sent > reader->commit_returned + checker->longest)
			break;
		if (writer->began < reader->commit_returned && makes_fit(checker, read, births->items[low]))
			add_dependency(&checker->dependencies, reader, writer);
	}
}

/*
 * Notes what the reader comes after, writes that it saw, and what it comes before: the first write of each
 * row that it missed, and writes of rows that came to fit the condition before it committed.
 */
static void
note_dependencies(Checker *checker, const Read *read, const Snapshot *snapshot)
{
	const History *history = checker->history;
	Transaction *reader = &history->sessions[read->session].transactions.items[read->transaction];

	if (!reader->serializable || !reader->committed)
		return;
	for (size_t i = 0; i < checker->chains.used; i++)
	{
		Write *before = NULL;
		Write *write = checker->chains.items[i];
		bool missed = !is_committed(history, write);

		for (; write && !missed; before = write, write = write->next)
		{
			Transaction *writer = history_writer(history, write);

			missed = !may_see(writer, snapshot);
			if (!concerns(checker, read, before, write))
				continue;
			if (missed)
				add_dependency(&checker->dependencies, reader, writer);
			else if (!may_miss(writer, snapshot))
				add_dependency(&checker->dependencies, writer, reader);
		}
	}
	switch (read->condition.kind)
	{
		case BY_ID:
			break;
		case BY_RANGE:
			for (int32_t key = read->condition.low; key <= read->condition.high; key++)
				note_later(checker, read, snapshot, reader, key);
			break;
		case BY_KEYS:
			for (size_t i = 0; i < read->condition.nkeys; i++)
				note_later(checker, read, snapshot, reader,
						   history->sessions[read->session].keys.items[read->condition.first_key + i]);
			break;
	}
}

static void
check_read(Checker *checker, const Read *read)
{
	const History *history = checker->history;
	Snapshot *snapshot = &history->sessions[read->session].snapshots.items[read->snapshot];
	bool new;

	checker->read_number++;
	checker->chains.used = 0;
	checker->verdict->reads++;
	checker->verdict->rows += read->nrows;
	if (snapshot->number == 0)
	{
		snapshot->number = ++checker->snapshots;
		snapshot->low = snapshot->sent;
		snapshot->high = snapshot->returned;
	}
	for (; checker->next_birth < checker->births.used; checker->next_birth++)
	{
		Write *birth = checker->births.items[checker->next_birth];

		if (history_writer(history, birth)->commit_sent > snapshot->returned)
			break;
		append(&checker->alive[birth->row.key], birth);
	}
	include_own(checker, read);
	if (!include_shown(checker, read))
		return;
	include_candidates(checker, read, snapshot->sent);
	count_chains(checker, snapshot);
	do
	{
		new = false;
		if (!fit_chains(checker, read, snapshot, &new))
			return;
	} while (new);
	note_dependencies(checker, read, snapshot);
}

static void
check_reads(Checker *checker)
{
	const History *history = checker->history;
	size_t count = 0;
	size_t n = 0;
	Read **reads;

	for (int session = 0; session < history->nsessions; session++)
		count += history->sessions[session].reads.used;
	reads = malloc((count + 1) * sizeof(Read *));
	if (reads == NULL)
	{
		perror("histories");
		exit(2);
	}
	for (int session = 0; session < history->nsessions; session++)
	{
		for (size_t i = 0; i < history->sessions[session].reads.used; i++)
			reads[n++] = &history->sessions[session].reads.items[i];
	}
	qsort(reads, count, sizeof(Read *), compare_reads);
	for (size_t i = 0; i < count; i++)
		check_read(checker, reads[i]);
	free(reads);
}

void
check_history(History *history, FILE *report, unsigned max_reports, Verdict *verdict)
{
	Checker checker = {
		.history = history, .report = report, .max_reports = max_reports, .verdict = verdict
	};

	memset(verdict, 0, sizeof(*verdict));
	sorted_history = history;
	checker.alive = calloc((size_t) history->nkeys, sizeof(Alive));
	checker.births_of = calloc((size_t) history->nkeys, sizeof(Alive));
	if (checker.alive == NULL || checker.births_of == NULL)
	{
		perror("histories");
		exit(2);
	}
	link_all(&checker);
	check_reads(&checker);
	verdict->dependencies = checker.dependencies.list.used;
	verdict->found[CYCLE] = find_cycles(&checker.dependencies, history, report, max_reports);
	free_dependencies(&checker.dependencies);
	for (int key = 0; key < history->nkeys; key++)
	{
		free(checker.alive[key].items);
		free(checker.births_of[key].items);
	}
	free(checker.alive);
	free(checker.births_of);
	free(checker.births.items);
	free(checker.chains.items);
}
