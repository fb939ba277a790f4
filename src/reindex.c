/*-------------------------------------------------------------------------
 *
 * reindex.c
 *	  Which index takes another one's place in REINDEX CONCURRENTLY, so that what was counted of
 *	  that one stays with it.
 *
 * REINDEX CONCURRENTLY makes new indexes, gives them the former ones' names, and drops those.  Nothing tells
 * when one is dropped which one has its name now; so the names of all indexes of gpuds are remembered when
 * the statement begins.  If one was renamed or moved to another schema meanwhile, its counters begin anew.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/pg_class.h"
#include "commands/defrem.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "index/index.h"
#include "mirror/stats.h"
#include "reader/reader.h"
#include "reindex.h"

typedef struct NamedIndex
{
	Oid index;
	Oid schema;
	NameData name;
} NamedIndex;

/* Of the statement in progress, which has several transactions; NULL: it is another one. */
static MemoryContext context = NULL;
static List *names = NIL;

static bool
is_concurrent(const ReindexStmt *statement)
{
	bool concurrent = false;
	ListCell *lc;

	foreach (lc, statement->params)
	{
		DefElem *option = lfirst_node(DefElem, lc);

		if (strcmp(option->defname, "concurrently") == 0)
			concurrent = defGetBoolean(option);
	}
	return concurrent;
}

static void
remember(HeapTuple tuple)
{
	const FormData_pg_class *class = (Form_pg_class) GETSTRUCT(tuple);
	MemoryContext old;
	NamedIndex *named;

	if (class->relkind != RELKIND_INDEX || !gpuds_is_our_method(class->relam))
		return;
	old = MemoryContextSwitchTo(context);
	named = palloc(sizeof(NamedIndex));
	named->index = class->oid;
	named->schema = class->relnamespace;
	named->name = class->relname;
	names = lappend(names, named);
	MemoryContextSwitchTo(old);
}

/* Before a REINDEX statement. */
void
gpuds_reindex_begin(const ReindexStmt *statement)
{
	Relation classes;
	SysScanDesc scan;
	HeapTuple tuple;

	if (!gpuds_stats_is_kept_by_core() || context || !is_concurrent(statement))
		return;
	context = AllocSetContextCreate(TopMemoryContext, "gpuds reindex", ALLOCSET_SMALL_SIZES);
	classes = table_open(RelationRelationId, AccessShareLock);
	scan = systable_beginscan(classes, InvalidOid, false, NULL, 0, NULL);
	while ((tuple = systable_getnext(scan)) != NULL)
		remember(tuple);
	systable_endscan(scan);
	table_close(classes, AccessShareLock);
}

/* After it, whatever came of it. */
void
gpuds_reindex_end(void)
{
	if (context)
		MemoryContextDelete(context);
	context = NULL;
	names = NIL;
}

/* The index is about to be dropped. */
void
gpuds_reindex_drops(Oid former)
{
	ListCell *lc;

	foreach (lc, names)
	{
		const NamedIndex *named = lfirst(lc);
		Oid index;

		if (named->index != former)
			continue;
		index = get_relname_relid(NameStr(named->name), named->schema);
		if (OidIsValid(index) && index != former)
			gpuds_stats_replaced(former, index);
	}
}
