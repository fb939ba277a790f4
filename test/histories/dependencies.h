/*-------------------------------------------------------------------------
 *
 * dependencies.h
 *	  Which SERIALIZABLE transactions must come before which others.
 *
 * One that wrote a row version comes before those that read or replaced it, and
 * one that read comes before those that changed what it would have read.  If the
 * committed ones cannot be put into one order that has all of this, one of them
 * should have failed (Adya, Liskov and O'Neil, Generalized Isolation Level
 * Definitions, ICDE 2000).
 *
 *-------------------------------------------------------------------------
 */
#ifndef DEPENDENCIES_H
#define DEPENDENCIES_H

#include <stdio.h>

#include "history.h"

typedef struct Dependency
{
	uint32_t before, after; /* numbers of transactions */
} Dependency;

typedef struct Dependencies
{
	LIST(Dependency) list;
	LIST(const Transaction *) transactions; /* by number, from 1 on */
} Dependencies;

/* Notes that one transaction comes before another; nothing if they are one, or not both of them count. */
extern void add_dependency(Dependencies *dependencies, Transaction *before, Transaction *after);

/*
 * How many transactions are in cycles, or between two of them.  The first ones are described in report,
 * up to so many.
 */
extern size_t find_cycles(const Dependencies *dependencies, const History *history, FILE *report,
						  unsigned max_reports);

extern void free_dependencies(Dependencies *dependencies);

#endif
