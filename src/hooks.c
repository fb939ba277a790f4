/*-------------------------------------------------------------------------
 *
 * hooks.c
 *	  What the library watches in a backend: ends of transactions, utility
 *	  statements, plans that may start workers, drops of indexes.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/xact.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "executor/executor.h"
#include "nodes/parsenodes.h"
#include "nodes/plannodes.h"
#include "tcop/utility.h"
#include "utils/rel.h"
#include "utils/relcache.h"

#include "am/am.h"
#include "mirror/mirror.h"

static ProcessUtility_hook_type prev_utility = NULL;
static ExecutorStart_hook_type prev_executor_start = NULL;
static object_access_hook_type prev_object_access = NULL;

static void
xact_callback(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PARALLEL_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			gpuds_insert_flush_all(true);
			gpuds_private_pre_commit();
			break;
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PARALLEL_ABORT:
			gpuds_private_abort();
			/* FALLTHROUGH */
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_PARALLEL_COMMIT:
		case XACT_EVENT_PREPARE:
			gpuds_insert_forget();
			gpuds_mirror_count_flush();
			break;
	}
}

static void
subxact_callback(SubXactEvent event, SubTransactionId subid, SubTransactionId parent, void *arg)
{
	if (event == SUBXACT_EVENT_COMMIT_SUB)
		gpuds_insert_subcommit(subid, parent);
	else if (event == SUBXACT_EVENT_ABORT_SUB)
	{
		gpuds_insert_subabort(subid);
		gpuds_private_subabort();
	}
}

/*
 * Statements that neither look at index files nor replace them: they leave the
 * insert buffers alone, so that a transaction of many small statements still
 * appends once.
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
utility(PlannedStmt *pstmt, const char *queryString, bool readOnlyTree, ProcessUtilityContext context,
		ParamListInfo params, QueryEnvironment *queryEnv, DestReceiver *dest, QueryCompletion *qc)
{
	Node *statement = pstmt->utilityStmt;
	bool enum_altered = IsA(statement, AlterEnumStmt);

	if (!leaves_files_alone(statement))
		gpuds_insert_flush_all(false);

	if (prev_utility)
		prev_utility(pstmt, queryString, readOnlyTree, context, params, queryEnv, dest, qc);
	else
		standard_ProcessUtility(pstmt, queryString, readOnlyTree, context, params, queryEnv, dest, qc);

	if (enum_altered)
		gpuds_key_after_alter_enum((AlterEnumStmt *) statement);
}

static bool
on_conflict(Plan *plan)
{
	return plan && IsA(plan, ModifyTable) && ((ModifyTable *) plan)->onConflictAction != ONCONFLICT_NONE;
}

/* Does the statement, or an INSERT in one of its WITH queries, have ON CONFLICT? */
static bool
inserts_speculatively(PlannedStmt *stmt)
{
	ListCell *lc;

	if (on_conflict(stmt->planTree))
		return true;
	if (stmt->hasModifyingCTE)
	{
		foreach (lc, stmt->subplans)
		{
			if (on_conflict(lfirst(lc)))
				return true;
		}
	}
	return false;
}

/* Workers do not see the leader's buffers: they must be empty before. */
static void
executor_start(QueryDesc *queryDesc, int eflags)
{
	if (queryDesc->plannedstmt->parallelModeNeeded)
		gpuds_insert_flush_all(false);
	if (inserts_speculatively(queryDesc->plannedstmt))
		gpuds_insert_speculative();

	if (prev_executor_start)
		prev_executor_start(queryDesc, eflags);
	else
		standard_ExecutorStart(queryDesc, eflags);
}

/*
 * A dropped index gives its mirrors' memory back at once, and so do those of a
 * dropped database.  If the drop is rolled back, the next scan loads the mirror again.
 */
static void
object_access(ObjectAccessType access, Oid classId, Oid objectId, int subId, void *arg)
{
	if (prev_object_access)
		prev_object_access(access, classId, objectId, subId, arg);

	if (access == OAT_DROP && classId == RelationRelationId && subId == 0)
	{
		Relation rel = RelationIdGetRelation(objectId);

		if (rel && rel->rd_rel->relkind == RELKIND_INDEX && rel->rd_indam &&
			rel->rd_indam->aminsert == gpuds_insert)
			gpuds_mirror_forget(rel);
		if (rel)
			RelationClose(rel);
	}
	else if (access == OAT_DROP && classId == DatabaseRelationId)
		gpuds_mirror_forget_database(objectId);
}

void
gpuds_hooks_init(void)
{
	RegisterXactCallback(xact_callback, NULL);
	RegisterSubXactCallback(subxact_callback, NULL);
	prev_utility = ProcessUtility_hook;
	ProcessUtility_hook = utility;
	prev_executor_start = ExecutorStart_hook;
	ExecutorStart_hook = executor_start;
	prev_object_access = object_access_hook;
	object_access_hook = object_access;
}
