/*-------------------------------------------------------------------------
 *
 * dependencies.c
 *	  Can SERIALIZABLE transactions be put into one order?
 *
 * Transactions that nothing comes before are taken away, and so on; then those
 * that come before nothing.  What is left is in cycles, or between them.
 *
 *-------------------------------------------------------------------------
 */
#include "dependencies.h"

#include <stdlib.h>
#include <string.h>

static void *
allocate(size_t n, size_t size)
{
	void *items = calloc(n + 1, size);

	if (items == NULL)
	{
		perror("histories");
		exit(2);
	}
	return items;
}

/* Its number, which it gets when it is first needed. */
static uint32_t
number_of(Dependencies *dependencies, Transaction *transaction)
{
	if (transaction->number == 0)
	{
		*ADD(dependencies->transactions) = transaction;
		transaction->number = (uint32_t) dependencies->transactions.used;
	}
	return transaction->number;
}

void
add_dependency(Dependencies *dependencies, Transaction *before, Transaction *after)
{
	Dependency dependency;

	if (before == after || !before->serializable || !after->serializable || !before->committed ||
		!after->committed)
		return;
	dependency.before = number_of(dependencies, before);
	dependency.after = number_of(dependencies, after);
	if (dependencies->list.used > 0 &&
		memcmp(&dependencies->list.items[dependencies->list.used - 1], &dependency, sizeof(dependency)) == 0)
		return;
	*ADD(dependencies->list) = dependency;
}

/* Dependencies by one of their sides: those of i are others[first[i]] to others[first[i + 1] - 1]. */
typedef struct Sorted
{
	size_t *first;
	uint32_t *others;
} Sorted;

static uint32_t
side(const Dependency *dependency, bool after)
{
	return after ? dependency->after : dependency->before;
}

static Sorted
sort_by(const Dependencies *dependencies, bool after)
{
	size_t n = dependencies->transactions.used;
	Sorted sorted = { .first = allocate(n + 3, sizeof(size_t)),
					  .others = allocate(dependencies->list.used, sizeof(uint32_t)) };

	for (size_t i = 0; i < dependencies->list.used; i++)
		sorted.first[side(&dependencies->list.items[i], after) + 2]++;
	for (size_t i = 1; i < n + 3; i++)
		sorted.first[i] += sorted.first[i - 1];
	for (size_t i = 0; i < dependencies->list.used; i++)
	{
		const Dependency *dependency = &dependencies->list.items[i];

		sorted.others[sorted.first[side(dependency, after) + 1]++] = side(dependency, !after);
	}
	return sorted;
}

/* Takes away what nothing that is left comes before; backward: what comes before nothing that is left. */
static void
take_away(const Dependencies *dependencies, bool backward, bool *gone)
{
	size_t n = dependencies->transactions.used;
	size_t *waits = allocate(n + 1, sizeof(size_t));
	uint32_t *queue = allocate(n + 1, sizeof(uint32_t));
	Sorted sorted = sort_by(dependencies, backward);
	size_t queued = 0;

	for (size_t i = 0; i < dependencies->list.used; i++)
	{
		const Dependency *dependency = &dependencies->list.items[i];

		if (!gone[dependency->before] && !gone[dependency->after])
			waits[side(dependency, !backward)]++;
	}
	for (uint32_t i = 1; i <= n; i++)
	{
		if (!gone[i] && waits[i] == 0)
			queue[queued++] = i;
	}
	for (size_t i = 0; i < queued; i++)
	{
		uint32_t taken = queue[i];

		gone[taken] = true;
		for (size_t k = sorted.first[taken]; k < sorted.first[taken + 1]; k++)
		{
			uint32_t other = sorted.others[k];

			if (!gone[other] && --waits[other] == 0)
				queue[queued++] = other;
		}
	}
	free(sorted.first);
	free(sorted.others);
	free(waits);
	free(queue);
}

static void
describe(const Dependencies *dependencies, const History *history, FILE *report, uint32_t number)
{
	const Transaction *transaction = dependencies->transactions.items[number - 1];

	for (int i = 0; i < history->nsessions; i++)
	{
		const SessionLog *log = &history->sessions[i];

		if (log->transactions.used > 0 && transaction >= log->transactions.items &&
			transaction < log->transactions.items + log->transactions.used)
			fprintf(report, "session %d transaction %zu, commit %.3f to %.3f ms", i,
					(size_t) (transaction - log->transactions.items), (double) transaction->commit_sent / 1e6,
					(double) transaction->commit_returned / 1e6);
	}
}

static void
describe_all(const Dependencies *dependencies, const History *history, FILE *report, const bool *gone,
			 unsigned max_reports)
{
	for (size_t i = 0; i < dependencies->list.used && max_reports > 0; i++)
	{
		const Dependency *dependency = &dependencies->list.items[i];

		if (gone[dependency->before] || gone[dependency->after])
			continue;
		describe(dependencies, history, report, dependency->before);
		fprintf(report, "\n    comes before ");
		describe(dependencies, history, report, dependency->after);
		fprintf(report, "\n");
		max_reports--;
	}
}

size_t
find_cycles(const Dependencies *dependencies, const History *history, FILE *report, unsigned max_reports)
{
	size_t n = dependencies->transactions.used;
	bool *gone = allocate(n + 1, sizeof(bool));
	size_t left = 0;

	take_away(dependencies, false, gone);
	take_away(dependencies, true, gone);
	for (size_t i = 1; i <= n; i++)
		left += !gone[i];
	describe_all(dependencies, history, report, gone, max_reports);
	free(gone);
	return left;
}

void
free_dependencies(Dependencies *dependencies)
{
	free(dependencies->list.items);
	free(dependencies->transactions.items);
}
