/*-------------------------------------------------------------------------
 *
 * hooks.c
 *	  What the library watches in a backend: ends of transactions, utility
 *	  statements, plans that change tables or may start workers, indexes that are made
 *	  and dropped.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "executor/executor.h"
#include "nodes/parsenodes.h"
#include "nodes/plannodes.h"
#include "tcop/utility.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/snapmgr.h"

#include "hint.h"
#include "index/index.h"
#include "insert/insert.h"
#include "key/enum.h"
#include "memtable/memtable.h"
#include "mirror/mirror.h"
#include "reader/reader.h"
#include "reindex.h"

static ProcessUtility_hook_type prev_utility = NULL;
static ExecutorRun_hook_type prev_executor_run = NULL;
static ExecutorFinish_hook_type prev_executor_finish = NULL;
static object_access_hook_type prev_object_access = NULL;

/* An index that DROP INDEX CONCURRENTLY drops, whose counters are dropped at its end; or invalid. */
static Oid dropped_later = InvalidOid;

static void
xact_callback(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PARALLEL_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			gpuds_insert_before_commit(TopSubTransactionId);
			gpuds_private_pre_commit();
			/* here, where there may still be an error */
			gpuds_mirror_count_flush();
			break;
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PARALLEL_ABORT:
			dropped_later = InvalidOid;
			gpuds_private_abort();
			pg_fallthrough;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_PARALLEL_COMMIT:
		case XACT_EVENT_PREPARE:
			gpuds_memtable_end();
			gpuds_insert_after_end(TopSubTransactionId);
			gpuds_mirror_count_flush();
			break;
	}
}

static void
subxact_callback(SubXactEvent event, SubTransactionId subid, SubTransactionId parent, void *arg)
{
	if (event == SUBXACT_EVENT_PRE_COMMIT_SUB)
		gpuds_insert_before_commit(subid);
	else if (event == SUBXACT_EVENT_ABORT_SUB)
	{
		gpuds_memtable_end();
		gpuds_insert_after_end(subid);
		gpuds_mirror_count_flush();
		gpuds_private_subabort();
	}
}

/*
 * Statements that neither look at index files nor replace them, but may run
 * statements that insert, or be run by functions of such.  Around all others
 * nothing is collected.
 */
static bool
leaves_files_alone(Node *statement)
{
	switch (nodeTag(statement))
	{
		case T_TransactionStmt:
		case T_PlannedStmt:
		case T_DeclareCursorStmt:
		case T_ClosePortalStmt:
		case T_FetchStmt:
		case T_PrepareStmt:
		case T_ExecuteStmt:
		case T_DeallocateStmt:
		case T_CopyStmt:
		case T_CallStmt:
		case T_DoStmt:
		case T_ExplainStmt:
		case T_VariableSetStmt:
		case T_VariableShowStmt:
		case T_ConstraintsSetStmt:
		case T_NotifyStmt:
		case T_ListenStmt:
		case T_UnlistenStmt:
			return true;
		default:
			return false;
	}
}

static void
next_utility(PlannedStmt *pstmt, const char *queryString, bool readOnlyTree, ProcessUtilityContext context,
			 ParamListInfo params, QueryEnvironment *queryEnv, DestReceiver *dest, QueryCompletion *qc)
{
	if (prev_utility)
		prev_utility(pstmt, queryString, readOnlyTree, context, params, queryEnv, dest, qc);
	else
		standard_ProcessUtility(pstmt, queryString, readOnlyTree, context, params, queryEnv, dest, qc);
}

/* The same, with hints of ours on errors. */
static void
next_utility_with_hints(PlannedStmt *pstmt, const char *queryString, bool readOnlyTree,
						ProcessUtilityContext context, ParamListInfo params, QueryEnvironment *queryEnv,
						DestReceiver *dest, QueryCompletion *qc)
{
	MemoryContext memory = CurrentMemoryContext;

	PG_TRY();
	{
		next_utility(pstmt, queryString, readOnlyTree, context, params, queryEnv, dest, qc);
	}
	PG_CATCH();
	{
		gpuds_hint_rethrow(memory);
	}
	PG_END_TRY();
}

static void
utility(PlannedStmt *pstmt, const char *queryString, bool readOnlyTree, ProcessUtilityContext context,
		ParamListInfo params, QueryEnvironment *queryEnv, DestReceiver *dest, QueryCompletion *qc)
{
	Node *statement = pstmt->utilityStmt;
	bool copies_in = IsA(statement, CopyStmt) && ((CopyStmt *) statement)->is_from;
	bool barrier = !leaves_files_alone(statement);
	bool enum_altered = IsA(statement, AlterEnumStmt);
	if (barrier || copies_in)
	{
		GpudsInsertScope scope;

		if (barrier)
			gpuds_insert_flush_all();
		gpuds_insert_begin(&scope, barrier);
		PG_TRY();
		{
			if (IsA(statement, ReindexStmt))
				gpuds_reindex_begin((ReindexStmt *) statement);
			next_utility_with_hints(pstmt, queryString, readOnlyTree, context, params, queryEnv, dest, qc);
			gpuds_insert_append(&scope);
		}
		PG_FINALLY();
		{
			if (IsA(statement, ReindexStmt))
				gpuds_reindex_end();
			gpuds_insert_end(&scope);
		}
		PG_END_TRY();
	}
	else
		next_utility(pstmt, queryString, readOnlyTree, context, params, queryEnv, dest, qc);

	if (OidIsValid(dropped_later))
		gpuds_stats_dropped(dropped_later);
	dropped_later = InvalidOid;
	if (enum_altered)
		gpuds_key_after_alter_enum((AlterEnumStmt *) statement);
}

static void
next_executor_run(GpudsExecutorRunParams)
{
	if (prev_executor_run)
		prev_executor_run(GpudsExecutorRunArgs);
	else
		standard_ExecutorRun(GpudsExecutorRunArgs);
}

/*
 * Workers do not see what the leader has collected: it must be appended before.
 */
static void
executor_run(GpudsExecutorRunParams)
{
	if (queryDesc->plannedstmt->parallelModeNeeded)
		gpuds_insert_flush_all();

	if (queryDesc->operation != CMD_SELECT || queryDesc->plannedstmt->hasModifyingCTE)
	{
		GpudsInsertScope scope;

		gpuds_insert_begin(&scope, false);
		PG_TRY();
		{
			next_executor_run(GpudsExecutorRunArgs);
			gpuds_insert_append(&scope);
		}
		PG_FINALLY();
		{
			gpuds_insert_end(&scope);
		}
		PG_END_TRY();
	}
	else
		next_executor_run(GpudsExecutorRunArgs);
}

static void
next_executor_finish(QueryDesc *queryDesc)
{
	if (prev_executor_finish)
		prev_executor_finish(queryDesc);
	else
		standard_ExecutorFinish(queryDesc);
}

/*
 * Runs what is left of WITH queries that change tables, then triggers, whose
 * statements have scopes of their own.
 */
static void
executor_finish(QueryDesc *queryDesc)
{
	if (queryDesc->plannedstmt->hasModifyingCTE)
	{
		GpudsInsertScope scope;

		gpuds_insert_begin(&scope, false);
		PG_TRY();
		{
			next_executor_finish(queryDesc);
			gpuds_insert_append(&scope);
		}
		PG_FINALLY();
		{
			gpuds_insert_end(&scope);
		}
		PG_END_TRY();
	}
	else
		next_executor_finish(queryDesc);
}

/* Looks at a relation that is being made, if it is an index of ours. */
static void
create_relation(Oid relid)
{
	Relation rel = RelationIdGetRelation(relid);

	if (rel && rel->rd_rel->relkind == RELKIND_INDEX && gpuds_is_our_method(rel->rd_rel->relam))
	{
		gpuds_index_check_new(rel);
		if (gpuds_stats_is_kept_by_core())
			gpuds_stats_created(relid);
	}
	if (rel)
		RelationClose(rel);
}

/*
 * A dropped index gives its mirrors' memory back at once.  If the drop is rolled back, the next scan loads
 * the mirror again.
 */
static void
drop_index(Relation index, const ObjectAccessDrop *drop)
{
	gpuds_mirror_forget(index);
	if (drop->dropflags & PERFORM_DELETION_CONCURRENT_LOCK)
		gpuds_reindex_drops(RelationGetRelid(index));
	/* Others use the index until the statement's last transaction. */
	if (drop->dropflags & PERFORM_DELETION_CONCURRENTLY)
		dropped_later = RelationGetRelid(index);
	else
		gpuds_stats_dropped(RelationGetRelid(index));
}

/* Watches indexes that come and go, and databases that go, whose mirrors' memory is given back, too. */
static void
object_access(ObjectAccessType access, Oid classId, Oid objectId, int subId, void *arg)
{
	if (prev_object_access)
		prev_object_access(access, classId, objectId, subId, arg);

	if (access == OAT_POST_CREATE && classId == RelationRelationId && subId == 0)
		create_relation(objectId);
	else if (access == OAT_DROP && classId == RelationRelationId && subId == 0)
	{
		Relation rel = RelationIdGetRelation(objectId);

		if (rel && gpuds_is_ours(rel))
			drop_index(rel, arg);
		if (rel)
			RelationClose(rel);
	}
	else if (access == OAT_DROP && classId == DatabaseRelationId)
		gpuds_files_forget_database(objectId);
}

/*
 * Registers the transaction callbacks and sets the hooks of this file, which call those set before.  To be
 * called once, when the library is preloaded.
 */
void
gpuds_hooks_init(void)
{
	RegisterXactCallback(xact_callback, NULL);
	RegisterSubXactCallback(subxact_callback, NULL);
	prev_utility = ProcessUtility_hook;
	ProcessUtility_hook = utility;
	prev_executor_run = ExecutorRun_hook;
	ExecutorRun_hook = executor_run;
	prev_executor_finish = ExecutorFinish_hook;
	ExecutorFinish_hook = executor_finish;
	prev_object_access = object_access_hook;
	object_access_hook = object_access;
}
