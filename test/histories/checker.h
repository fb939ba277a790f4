/*-------------------------------------------------------------------------
 *
 * checker.h
 *	  Judges a history: could every read have seen what it saw, and could SERIALIZABLE
 *	  transactions have come one after the other?
 *
 *-------------------------------------------------------------------------
 */
#ifndef CHECKER_H
#define CHECKER_H

#include <stdio.h>

#include "history.h"

typedef enum Violation
{
	MISSING,      /* a row is not shown that was committed before the snapshot and still there */
	STALE,        /* a row version is shown that was replaced or deleted before the snapshot */
	PREMATURE,    /* a row version is shown whose commit was sent only after the answer */
	ROLLED_BACK,  /* a row version is shown, or was replaced, that was never committed */
	INCONSISTENT, /* no single snapshot shows this row in this way and the others in theirs */
	UNKNOWN_ROW,  /* nobody wrote this row */
	ALTERED,      /* the row is not as it was written */
	UNASKED,      /* the row does not fit the condition */
	DUPLICATE,    /* the row is shown twice */
	UNORDERED,    /* the keys do not ascend */
	LOST_UPDATE,  /* two transactions replaced the same row version */
	CYCLE,        /* a SERIALIZABLE transaction has no place in any order with the others */
	NVIOLATIONS
} Violation;

typedef struct Verdict
{
	uint64_t reads;
	uint64_t rows;         /* shown */
	uint64_t judged;       /* rows, shown or not, that a read might have shown */
	uint64_t changing;     /* of them, those whose change was being committed */
	uint64_t dependencies; /* of SERIALIZABLE transactions on each other */
	uint64_t found[NVIOLATIONS];
} Verdict;

extern const char *const violation_names[NVIOLATIONS];

/*
 * Judges all reads and writes.  The first max_reports violations are described in
 * report.  A history is judged once: the checker notes its findings in it.
 */
extern void check_history(History *history, FILE *report, unsigned max_reports, Verdict *verdict);

/* How many violations of all kinds. */
extern uint64_t violations(const Verdict *verdict);

#endif
