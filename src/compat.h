/*-------------------------------------------------------------------------
 *
 * compat.h
 *	  Differences between PostgreSQL 15 to 19, all of them in one place.
 *
 * What is here for 19 is that of release candidate 1 (19rc1).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_COMPAT_H
#define GPUDS_COMPAT_H

#include "postgres.h"

/* A server's headers may have been made for a compiler of a later C than these sources are compiled as. */
#if PG_VERSION_NUM >= 190000 && defined(HAVE_TYPEOF_UNQUAL) && !defined(typeof_unqual)
#define typeof_unqual __typeof_unqual__
#endif

#include "access/amapi.h"
#include "access/stratnum.h"
#include "storage/buf_internals.h"
#include "storage/buffile.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/wait_event.h"

#if PG_VERSION_NUM < 150000
#error "gpuds needs PostgreSQL 15 or later"
#endif

#if PG_VERSION_NUM >= 180000
#include "catalog/pg_am.h"
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#include "rewrite/rewriteManip.h"
#include "utils/lsyscache.h"
#endif

#if PG_VERSION_NUM >= 190000
#include "access/tableam.h"
#include "nodes/miscnodes.h"
#endif

#if PG_VERSION_NUM >= 160000
#include "storage/relfilelocator.h"
#include "varatt.h"
#define RelationLocator(rel) ((rel)->rd_locator)
#else
#include "storage/relfilenode.h"
#define RelFileLocator RelFileNode
#define RelFileLocatorEquals RelFileNodeEquals
#define relNumber relNode
#define spcOid spcNode
#define dbOid dbNode
#define RelationLocator(rel) ((rel)->rd_node)
#endif

/* Since 18 equalities are mergeable by families of other access methods, too. */
static inline List *
GpudsBtreeFamilies(List *families)
{
#if PG_VERSION_NUM >= 180000
	List *of_btree = NIL;
	ListCell *lc;

	foreach (lc, families)
	{
		if (get_opfamily_method(lfirst_oid(lc)) == BTREE_AM_OID)
			of_btree = lappend_oid(of_btree, lfirst_oid(lc));
	}
	return of_btree;
#else
	return families;
#endif
}

/* Does a collation compare strings byte by byte? */
#if PG_VERSION_NUM >= 180000
#define GpudsCollatesBytes(collation) (pg_newlocale_from_collation(collation)->collate_is_c)
#else
#define GpudsCollatesBytes(collation) lc_collate_is_c(collation)
#endif

/* May the user look into a schema? */
#if PG_VERSION_NUM >= 160000
#define GpudsMayUseSchema(schema) \
	(object_aclcheck(NamespaceRelationId, schema, GetUserId(), ACL_USAGE) == ACLCHECK_OK)
#else
#define GpudsMayUseSchema(schema) (pg_namespace_aclcheck(schema, GetUserId(), ACL_USAGE) == ACLCHECK_OK)
#endif

/* May the user read a whole table?  No, if it has just been dropped. */
#define GpudsMaySelect(table) \
	(pg_class_aclcheck_ext(table, GetUserId(), ACL_SELECT, &(bool){ false }) == ACLCHECK_OK)

/* May the user call a function? */
#if PG_VERSION_NUM >= 160000
#define GpudsMayExecute(function) \
	(object_aclcheck(ProcedureRelationId, function, GetUserId(), ACL_EXECUTE) == ACLCHECK_OK)
#else
#define GpudsMayExecute(function) (pg_proc_aclcheck(function, GetUserId(), ACL_EXECUTE) == ACLCHECK_OK)
#endif

/* Did the transaction in progress give the relation another file? */
#if PG_VERSION_NUM >= 160000
#define GpudsHasNewFile(rel) ((rel)->rd_firstRelfilelocatorSubid != InvalidSubTransactionId)
#else
#define GpudsHasNewFile(rel) ((rel)->rd_firstRelfilenodeSubid != InvalidSubTransactionId)
#endif

/* The path of a permanent or unlogged relation's main fork, from the data directory. */
static inline void
gpuds_file_path(RelFileLocator locator, char path[MAXPGPATH])
{
#if PG_VERSION_NUM >= 180000
	strlcpy(path, relpathperm(locator, MAIN_FORKNUM).str, MAXPGPATH);
#else
	char *allocated = relpathperm(locator, MAIN_FORKNUM);

	strlcpy(path, allocated, MAXPGPATH);
	pfree(allocated);
#endif
}

/* A backend's number, from 0 to MaxBackends - 1. */
#if PG_VERSION_NUM >= 170000
#define GpudsMyBackendIndex() (MyProcNumber)
#else
#define GpudsMyBackendIndex() (MyBackendId - 1)
#endif

/* A process's number among all, also of those that have no database. */
#if PG_VERSION_NUM >= 170000
#define GpudsMyProcNumber() (MyProcNumber)
#else
#define GpudsMyProcNumber() (MyProc->pgprocno)
#endif

/* What pg_stat_activity shows of a wait; before 17 only that it is an extension's. */
#if PG_VERSION_NUM >= 170000
#define GpudsWaitEvent(name)                      \
	({                                            \
		static uint32 event_ = 0;                 \
		if (event_ == 0)                          \
			event_ = WaitEventExtensionNew(name); \
		event_;                                   \
	})
#define GpudsCreateWaitEventSet(n) CreateWaitEventSet(NULL, n)
#else
#define GpudsWaitEvent(name) PG_WAIT_EXTENSION
#define GpudsCreateWaitEventSet(n) CreateWaitEventSet(TopMemoryContext, n)
#endif

/* A new block at the end of a relation's fork, zeroed and exclusively locked. */
static inline Buffer
gpuds_extend_fork(Relation rel, ForkNumber fork)
{
#if PG_VERSION_NUM >= 160000
	return ExtendBufferedRel(BMR_REL(rel), fork, NULL, EB_LOCK_FIRST);
#else
	Buffer buffer;
	bool lock = !RELATION_IS_LOCAL(rel);

	if (lock)
		LockRelationForExtension(rel, ExclusiveLock);
	/* Locked before anybody else can read it, whatever the free space map says of it. */
	buffer = ReadBufferExtended(rel, fork, P_NEW, RBM_ZERO_AND_LOCK, NULL);
	if (lock)
		UnlockRelationForExtension(rel, ExclusiveLock);
	return buffer;
#endif
}

static inline Buffer
gpuds_extend(Relation rel)
{
	return gpuds_extend_fork(rel, MAIN_FORKNUM);
}

/* A page that is written past shared buffers. */
#if PG_VERSION_NUM >= 160000
typedef PGIOAlignedBlock GpudsIOBlock;
#else
typedef PGAlignedBlock GpudsIOBlock;
#endif

#if PG_VERSION_NUM < 180000
#define pg_noreturn pg_attribute_noreturn()
#endif

#if PG_VERSION_NUM < 190000
#define pg_fallthrough __attribute__((fallthrough))
#define PG_SIG_IGN SIG_IGN
#endif

/* What EXPLAIN counts of a node. */
#if PG_VERSION_NUM < 190000
#define NodeInstrumentation Instrumentation
#define WorkerNodeInstrumentation WorkerInstrumentation
#endif

/*
 * A date or timestamp as another type of timestamp, by one of core's functions.  *overflow: 1 if there is
 * none so late, -1 if there is none so early, else 0.
 */
#if PG_VERSION_NUM >= 190000
#define GpudsConvert(function, value, overflow)                                               \
	({                                                                                        \
		ErrorSaveContext context_ = { .type = T_ErrorSaveContext };                           \
		int64 converted_ = function##_safe(value, (Node *) &context_);                        \
		*(overflow) = !context_.error_occurred ? 0 : TIMESTAMP_IS_NOEND(converted_) ? 1 : -1; \
		converted_;                                                                           \
	})
#else
#define GpudsConvert(function, value, overflow) function##_opt_overflow(value, overflow)
#endif

/* Makes known an option of EXPLAIN that is on or off.  Since 19, auto_explain's settings may have it, too. */
#if PG_VERSION_NUM >= 190000
#define GpudsRegisterExplainOption(name, handler) \
	RegisterExtensionExplainOption(name, handler, GUCCheckBooleanExplainOption)
#elif PG_VERSION_NUM >= 180000
#define GpudsRegisterExplainOption(name, handler) RegisterExtensionExplainOption(name, handler)
#endif

/* Goes through an array. */
#if PG_VERSION_NUM >= 190000
#define GpudsArrayBegin(it, array, length, by_value, align) \
	array_iter_setup(it, (AnyArrayType *) (array), length, by_value, align)
#define GpudsArrayNext(it, isnull, i, length, by_value, align) array_iter_next(it, isnull, i)
#else
#define GpudsArrayBegin(it, array, length, by_value, align) array_iter_setup(it, (AnyArrayType *) (array))
#define GpudsArrayNext(it, isnull, i, length, by_value, align) \
	array_iter_next(it, isnull, i, length, by_value, align)
#endif

/* Reads exactly so many bytes. */
static inline void
gpuds_buffile_read(BufFile *file, void *data, size_t size)
{
#if PG_VERSION_NUM >= 160000
	BufFileReadExact(file, data, size);
#else
	if (BufFileRead(file, data, size) != size)
		ereport(ERROR, (errcode_for_file_access(), errmsg("could not read from a temporary file: %m")));
#endif
}

#if PG_VERSION_NUM >= 180000
#define gpuds_vacuum_delay() vacuum_delay_point(false)
#else
#define gpuds_vacuum_delay() vacuum_delay_point()
#endif

/* Is this one of autovacuum's workers? */
#if PG_VERSION_NUM >= 170000
#define GpudsIsAutovacuum() AmAutoVacuumWorkerProcess()
#else
#define GpudsIsAutovacuum() IsAutoVacuumWorkerProcess()
#endif

/* Does the role own the relation? */
#if PG_VERSION_NUM >= 160000
#define GpudsOwnsRelation(relid, roleid) object_ownercheck(RelationRelationId, relid, roleid)
#else
#define GpudsOwnsRelation(relid, roleid) pg_class_ownercheck(relid, roleid)
#endif

/* What core does since 17 before it runs functions as a table's owner. */
#if PG_VERSION_NUM >= 170000
#define GpudsRestrictSearchPath() RestrictSearchPath()
#else
#define GpudsRestrictSearchPath() ((void) 0)
#endif

/*
 * Until 16, old_snapshot_threshold lets VACUUM remove rows that old snapshots see; scans must then
 * look for themselves whether that may have happened.
 */
#if PG_VERSION_NUM >= 170000
#define GpudsSnapshotsExpire() false
#define GpudsSnapshotLSN(snapshot) InvalidXLogRecPtr
#define GpudsRejectOldSnapshot(snapshot, rel) ((void) 0)
#else
#define GpudsSnapshotsExpire() OldSnapshotThresholdActive()
#define GpudsSnapshotLSN(snapshot) ((snapshot)->lsn)
#define GpudsRejectOldSnapshot(snapshot, rel) TestForOldSnapshot_impl(snapshot, rel)
#endif

/* Parameters of ExecutorRun. */
#if PG_VERSION_NUM >= 180000
#define GpudsExecutorRunParams QueryDesc *queryDesc, ScanDirection direction, uint64 count
#define GpudsExecutorRunArgs queryDesc, direction, count
#else
#define GpudsExecutorRunParams QueryDesc *queryDesc, ScanDirection direction, uint64 count, bool execute_once
#define GpudsExecutorRunArgs queryDesc, direction, count, execute_once
#endif

/* Scans of a table have flags since 19, none of which is needed. */
#if PG_VERSION_NUM >= 190000
#define GpudsBeginscanParallel(heap, shared) table_beginscan_parallel(heap, shared, SO_NONE)
#define GpudsIndexFetchBegin(heap) table_index_fetch_begin(heap, SO_NONE)
#else
#define GpudsBeginscanParallel(heap, shared) table_beginscan_parallel(heap, shared)
#define GpudsIndexFetchBegin(heap) table_index_fetch_begin(heap)
#endif

/*
 * Does a query only read a table, given by its number in the query?  Since 19, its scans may then set pages
 * all-visible that they prune.
 */
#if PG_VERSION_NUM >= 190000
#define GpudsQueryReadsOnly(estate, relid)                                    \
	(!bms_is_member(relid, (estate)->es_plannedstmt->resultRelationRelids) && \
	 !bms_is_member(relid, (estate)->es_plannedstmt->rowMarkRelids))
#else
#define GpudsQueryReadsOnly(estate, relid) false
#endif

/* A scan of an index by keys. */
#if PG_VERSION_NUM >= 190000
#define GpudsIndexBeginscan(heap, index, snapshot, nkeys, reads_only) \
	index_beginscan(heap, index, snapshot, NULL, nkeys, 0, (reads_only) ? SO_HINT_REL_READ_ONLY : SO_NONE)
#elif PG_VERSION_NUM >= 180000
#define GpudsIndexBeginscan(heap, index, snapshot, nkeys, reads_only) \
	index_beginscan(heap, index, snapshot, NULL, nkeys, 0)
#else
#define GpudsIndexBeginscan(heap, index, snapshot, nkeys, reads_only) \
	index_beginscan(heap, index, snapshot, nkeys, 0)
#endif

/*
 * The same for a node of core's, which since 18 shows how often it has searched the index, and since 19 says
 * whether its query only reads the table.
 */
#if PG_VERSION_NUM >= 190000
#define GpudsIndexBeginscanOf(node, index, nkeys)                                                    \
	index_beginscan(((ScanState *) (node))->ss_currentRelation, index, (node)->state->es_snapshot,   \
					IsA(node, IndexOnlyScanState) ? ((IndexOnlyScanState *) (node))->ioss_Instrument \
												  : ((IndexScanState *) (node))->iss_Instrument,     \
					nkeys, 0, ScanRelIsReadOnly((ScanState *) (node)) ? SO_HINT_REL_READ_ONLY : SO_NONE)
#elif PG_VERSION_NUM >= 180000
#define GpudsIndexBeginscanOf(node, index, nkeys)                                                     \
	index_beginscan(((ScanState *) (node))->ss_currentRelation, index, (node)->state->es_snapshot,    \
					IsA(node, IndexOnlyScanState) ? &((IndexOnlyScanState *) (node))->ioss_Instrument \
												  : &((IndexScanState *) (node))->iss_Instrument,     \
					nkeys, 0)
#else
#define GpudsIndexBeginscanOf(node, index, nkeys) \
	index_beginscan(((ScanState *) (node))->ss_currentRelation, index, (node)->state->es_snapshot, nkeys, 0)
#endif

/*
 * Prunes a pinned page of the heap for a scan of an index, as core does.  Since 19, that may set the page
 * all-visible, if the query only reads the table.
 */
#if PG_VERSION_NUM >= 190000
#define GpudsPrunePage(scan, buffer)                                                 \
	heap_page_prune_opt((scan)->heapRelation, buffer,                                \
						&((IndexFetchHeapData *) (scan)->xs_heapfetch)->xs_vmbuffer, \
						((scan)->xs_heapfetch->flags & SO_HINT_REL_READ_ONLY) != 0)
#else
#define GpudsPrunePage(scan, buffer) heap_page_prune_opt((scan)->heapRelation, buffer)
#endif

#define GPUDS_PRUNING_SETS_MAP (PG_VERSION_NUM >= 190000)

/* Has a transaction that has committed ended before every snapshot that there is? */
#if PG_VERSION_NUM >= 190000
#define GpudsIsRemovableXid(horizon, xid) GlobalVisTestIsRemovableXid(horizon, xid, true)
#else
#define GpudsIsRemovableXid(horizon, xid) GlobalVisTestIsRemovableXid(horizon, xid)
#endif

/*
 * The LSN of a page that is not locked.  Until 18, it is two words to PostgreSQL, which a writer may store
 * one after the other; read as one, its halves may be from before and after a change, but no more than that.
 */
#define GPUDS_LSN_IS_TWO_WORDS (PG_VERSION_NUM < 190000)

static inline XLogRecPtr
gpuds_unlocked_lsn(Page page)
{
#if GPUDS_LSN_IS_TWO_WORDS
	const uint64 bits = __atomic_load_n((const uint64 *) page, __ATOMIC_RELAXED);
	PageXLogRecPtr lsn;

	StaticAssertStmt(offsetof(PageHeaderData, pd_lsn) == 0 && sizeof(lsn) == sizeof(bits),
					 "a page begins with its LSN");
	memcpy(&lsn, &bits, sizeof(lsn));
	return PageXLogRecPtrGet(lsn);
#else
	return PageGetLSN(page);
#endif
}

/*
 * The LSN of a page as above, if a shared buffer has the page, which is not pinned; else an invalid one.
 * Locks the buffer's header for the moment.
 */
static inline XLogRecPtr
gpuds_lsn_in_buffer(const RelFileLocator *locator, BlockNumber block, Buffer buffer)
{
	BufferDesc *desc = GetBufferDescriptor(buffer - 1);
	XLogRecPtr lsn = InvalidXLogRecPtr;
	BufferTag tag;
#if PG_VERSION_NUM >= 190000
	const uint64 state = LockBufHdr(desc);
#else
	const uint32 state = LockBufHdr(desc);
#endif

#if PG_VERSION_NUM >= 160000
	InitBufferTag(&tag, locator, MAIN_FORKNUM, block);
	if ((state & BM_VALID) && BufferTagsEqual(&tag, &desc->tag))
		lsn = gpuds_unlocked_lsn(BufferGetPage(buffer));
#else
	INIT_BUFFERTAG(tag, *locator, MAIN_FORKNUM, block);
	if ((state & BM_VALID) && BUFFERTAGS_EQUAL(tag, desc->tag))
		lsn = gpuds_unlocked_lsn(BufferGetPage(buffer));
#endif
#if PG_VERSION_NUM >= 190000
	UnlockBufHdr(desc);
#else
	UnlockBufHdr(desc, state);
#endif
	return lsn;
}

/* How many elements the planner expects of an array. */
#if PG_VERSION_NUM >= 170000
#define GpudsArrayLength(root, expr) estimate_array_length(root, expr)
#else
#define GpudsArrayLength(root, expr) ((double) estimate_array_length(expr))
#endif

/* The next datum of a sort, in the current memory context; false: there is none. */
#if PG_VERSION_NUM >= 160000
#define GpudsSortedDatum(sort, value, isnull) tuplesort_getdatum(sort, true, true, value, isnull, NULL)
#else
#define GpudsSortedDatum(sort, value, isnull) tuplesort_getdatum(sort, true, value, isnull, NULL)
#endif

/* The slot that a scan has its rows in. */
#if PG_VERSION_NUM >= 190000
#define GpudsInitScanSlot(estate, ss, desc, callbacks) ExecInitScanTupleSlot(estate, ss, desc, callbacks, 0)
#else
#define GpudsInitScanSlot(estate, ss, desc, callbacks) ExecInitScanTupleSlot(estate, ss, desc, callbacks)
#endif

/* Since 19, a tuple descriptor is finished when all its columns are set. */
#if PG_VERSION_NUM >= 190000
#define GpudsTupleDescFinalize(desc) TupleDescFinalize(desc)
#else
#define GpudsTupleDescFinalize(desc) ((void) (desc))
#endif

/* Since 19, what a handler returns is to stay where it is for good; before, core frees it. */
#define GPUDS_CORE_KEEPS_ROUTINES (PG_VERSION_NUM >= 190000)

/* Before 16, hashes of character(n) with a nondeterministic collation depend on the blanks at the end. */
#define GPUDS_CORE_HASHES_BLANKS (PG_VERSION_NUM < 160000)

/* Parameters of amestimateparallelscan. */
#if PG_VERSION_NUM >= 180000
#define GpudsEstimateParallelScanParams Relation index, int nkeys, int norderbys
#elif PG_VERSION_NUM >= 170000
#define GpudsEstimateParallelScanParams int nkeys, int norderbys
#else
#define GpudsEstimateParallelScanParams void
#endif

/* Where a parallel index scan has the access method's part of its shared memory. */
#if PG_VERSION_NUM >= 180000
#define GpudsParallelScanOffset(shared) ((shared)->ps_offset_am)
#else
#define GpudsParallelScanOffset(shared) ((shared)->ps_offset)
#endif

/* Since 16, variables say which outer joins may have made them NULL. */
#if PG_VERSION_NUM >= 160000
#define GpudsCopyNulling(to, from) ((to)->varnullingrels = bms_copy((from)->varnullingrels))
#define GpudsCopyPlaceholderNulling(to, from) ((to)->phnullingrels = bms_copy((from)->phnullingrels))
#else
#define GpudsCopyNulling(to, from) ((void) 0)
#define GpudsCopyPlaceholderNulling(to, from) ((void) 0)
#endif

/*
 * The clauses that equivalence classes imply for a join; the number of an outer join among the query's
 * relations, 0: it has none; and whether a clause is one of several forms that core has for different orders
 * of outer joins.
 */
#if PG_VERSION_NUM >= 160000
#define GpudsImpliedEqualities(root, joined, outer, inner, sjinfo) \
	generate_join_implied_equalities(root, joined, outer, inner, sjinfo)
#define GpudsOuterJoinRelid(sjinfo) ((sjinfo)->ojrelid)
#define GpudsHasClones(rinfo) ((rinfo)->has_clone || (rinfo)->is_clone)
#else
#define GpudsImpliedEqualities(root, joined, outer, inner, sjinfo) \
	generate_join_implied_equalities(root, joined, outer, inner)
#define GpudsOuterJoinRelid(sjinfo) 0
#define GpudsHasClones(rinfo) false
#endif

/* What an expression of a table's columns is in a child of the table, or a child's child. */
#if PG_VERSION_NUM >= 160000
#define GpudsTranslate(root, expr, child, parent) adjust_appendrel_attrs_multilevel(root, expr, child, parent)
#else
#define GpudsTranslate(root, expr, child, parent) \
	adjust_appendrel_attrs_multilevel(root, expr, (child)->relids, (parent)->relids)
#endif

/* Is an order ascending? */
#if PG_VERSION_NUM >= 180000
#define GpudsPathKeyAscends(key) ((key)->pk_cmptype == COMPARE_LT)
#else
#define GpudsPathKeyAscends(key) ((key)->pk_strategy == BTLessStrategyNumber)
#endif

/*
 * The rows of some paths, one after the other.  Since 18, core forgets of a single path how many of its nodes
 * are disabled.
 */
#if PG_VERSION_NUM >= 190000
#define GpudsCreateAppendPath(root, rel, paths) \
	create_append_path(root, rel, (AppendPathInput){ .subpaths = (paths) }, NIL, NULL, 0, false, -1)
#else
#define GpudsCreateAppendPath(root, rel, paths) \
	create_append_path(root, rel, paths, NIL, NIL, NULL, 0, false, -1)
#endif
#if PG_VERSION_NUM >= 180000
#define GpudsAppendPath(root, rel, paths)                                                             \
	({                                                                                                \
		AppendPath *append_ = GpudsCreateAppendPath(root, rel, paths);                                \
		const Path *first_ = linitial(append_->subpaths);                                             \
		if (list_length(append_->subpaths) == 1)                                                      \
			append_->path.disabled_nodes = Max(append_->path.disabled_nodes, first_->disabled_nodes); \
		append_;                                                                                      \
	})
#else
#define GpudsAppendPath(root, rel, paths) GpudsCreateAppendPath(root, rel, paths)
#endif

/*
 * The outer side of a join whose outer rows are to be unique (JOIN_UNIQUE_OUTER): the cheapest path of
 * unique rows, NULL if there is none, and the relation of all rows.  Since 19, core passes a relation of
 * unique rows.
 */
#if PG_VERSION_NUM >= 190000
#define GpudsUniquePath(root, outer, sjinfo) ((outer)->cheapest_total_path)
#define GpudsAllRows(root, outer)                                     \
	(bms_membership((outer)->relids) == BMS_SINGLETON                 \
		 ? find_base_rel(root, bms_singleton_member((outer)->relids)) \
		 : find_join_rel(root, (outer)->relids))
#else
#define GpudsUniquePath(root, outer, sjinfo) \
	((Path *) create_unique_path(root, outer, (outer)->cheapest_total_path, sjinfo))
#define GpudsAllRows(root, outer) (outer)
#endif

/* Has a column that is declared NOT NULL no NULLs?  Since 18 the declaration may be NOT VALID. */
#if PG_VERSION_NUM >= 180000
#define GpudsNotNullIsValid(rel, attno) bms_is_member(attno, (rel)->notnullattnums)
#else
#define GpudsNotNullIsValid(rel, attno) true
#endif

/*
 * An expression as it is below the step that groups rows.  Since 18, what rows are grouped by may be NULL for
 * the sake of grouping sets, and says so.
 */
#if PG_VERSION_NUM >= 180000
#define GpudsBelowGrouping(root, node)                                                  \
	((root)->group_rtindex > 0 && (root)->parse->groupingSets != NIL                    \
		 ? remove_nulling_relids(node, bms_make_singleton((root)->group_rtindex), NULL) \
		 : (node))
#else
#define GpudsBelowGrouping(root, node) (node)
#endif

/* What rows are grouped by; since 16 without what is the same in all of them. */
#if PG_VERSION_NUM >= 160000
#define GpudsGroupClause(root) ((root)->processed_groupClause)
#else
#define GpudsGroupClause(root) ((root)->parse->groupClause)
#endif

/* The order of groups; since 16, core may have put that of aggregates' rows behind it. */
#if PG_VERSION_NUM >= 160000
#define GpudsGroupPathkeys(root) list_copy_head((root)->group_pathkeys, (root)->num_groupby_pathkeys)
#define GpudsSetUnsorted(aggref) ((aggref)->aggpresorted = false)
#else
#define GpudsGroupPathkeys(root) ((root)->group_pathkeys)
#define GpudsSetUnsorted(aggref) ((void) 0)
#endif

/*
 * Takes over how many nodes of a path below are disabled, or those of a path below without those of a path
 * further below; before 18, costs say so.
 */
#if PG_VERSION_NUM >= 180000
#define GpudsAddDisabledNodes(path, below) ((path)->disabled_nodes += (below)->disabled_nodes)
#define GpudsAddDisabledBetween(path, below, further) \
	((path)->disabled_nodes += (below)->disabled_nodes - (further)->disabled_nodes)
#else
#define GpudsAddDisabledNodes(path, below) ((void) 0)
#define GpudsAddDisabledBetween(path, below, further) ((void) 0)
#endif

/* A scan of a subquery's path; since 16 it is said whether it projects. */
#if PG_VERSION_NUM >= 160000
#define GpudsSubqueryScanPath(root, rel, subpath) \
	create_subqueryscan_path(root, rel, subpath, false, NIL, NULL)
#else
#define GpudsSubqueryScanPath(root, rel, subpath) create_subqueryscan_path(root, rel, subpath, NIL, NULL)
#endif

/* Since 18, core keeps the statistics of an extension with its own. */
#define GPUDS_CORE_KEEPS_STATS (PG_VERSION_NUM >= 180000)

/* Since 18, extensions have options of EXPLAIN, and show more of core's nodes. */
#define GPUDS_EXPLAIN_HAS_OPTIONS (PG_VERSION_NUM >= 180000)

/* Before 17, core plans the workers of a build for btree only. */
#define GPUDS_CORE_PLANS_BUILDS (PG_VERSION_NUM >= 170000)

/* Since 19, sums of integers are serialized as integers of 128 bits, before as numbers. */
#define GPUDS_SUM_IS_INT128 (PG_VERSION_NUM >= 190000)

/*
 * Since 18, core asks an access method which strategy a comparison is, and what the operators of a family
 * allow it to conclude. Strategies and families are btree's; without an order they are hash's, whose only
 * one is equality. Core must not hash by families itself (amcanhash), and there is no height of a tree that
 * costs would depend on (amgettreeheight).
 *
 * What comparison a strategy is, core asks about btree's family that an index is ordered by, and about
 * every family that has an operator. It gets no answer about ours: else it would count them among those
 * that make equalities equivalent, and equalities with an operator that only btree's family has would not
 * be equivalent to others any more, in any query of the database.
 */
#if PG_VERSION_NUM >= 180000
static inline CompareType
gpuds_translate_strategy(StrategyNumber strategy, Oid opfamily)
{
	return get_opfamily_method(opfamily) == BTREE_AM_OID
			   ? IndexAmTranslateStrategy(strategy, BTREE_AM_OID, opfamily, true)
			   : COMPARE_INVALID;
}

static inline StrategyNumber
gpuds_translate_cmptype(CompareType type, Oid opfamily)
{
	switch (type)
	{
		case COMPARE_LT:
			return BTLessStrategyNumber;
		case COMPARE_LE:
			return BTLessEqualStrategyNumber;
		case COMPARE_EQ:
			return BTEqualStrategyNumber;
		case COMPARE_GE:
			return BTGreaterEqualStrategyNumber;
		case COMPARE_GT:
			return BTGreaterStrategyNumber;
		default:
			return InvalidStrategy;
	}
}

static inline StrategyNumber
gpuds_translate_hash_cmptype(CompareType type, Oid opfamily)
{
	return type == COMPARE_EQ ? HTEqualStrategyNumber : InvalidStrategy;
}

#define GpudsSetConsistency(routine)                                                             \
	((routine)->amcanhash = false, (routine)->amconsistentequality = true,                       \
	 (routine)->amconsistentordering = (routine)->amcanorder, (routine)->amgettreeheight = NULL, \
	 (routine)->amtranslatestrategy = (routine)->amcanorder ? gpuds_translate_strategy : NULL,   \
	 (routine)->amtranslatecmptype = (routine)->amcanorder ? gpuds_translate_cmptype             \
														   : gpuds_translate_hash_cmptype)
#else
#define GpudsSetConsistency(routine) ((void) 0)
#endif

/* Properties of an access method that 15 does not know; amcanorder is set. */
#if PG_VERSION_NUM >= 170000
#define GpudsSetLaterProperties(routine)      \
	do                                        \
	{                                         \
		(routine)->amsummarizing = false;     \
		(routine)->amcanbuildparallel = true; \
		GpudsSetConsistency(routine);         \
	} while (0)
#elif PG_VERSION_NUM >= 160000
#define GpudsSetLaterProperties(routine) ((routine)->amsummarizing = false)
#else
#define GpudsSetLaterProperties(routine) ((void) 0)
#endif

/*
 * Until 17, core takes every unique index for one of btree: an INSERT with ON CONFLICT raises an error if its
 * table has another one, whichever index it names, and a foreign key cannot refer to one.
 */
#define GPUDS_CORE_TAKES_UNIQUE (PG_VERSION_NUM >= 180000)

/* Since 17, core says when a statement's last row has been inserted. */
#if PG_VERSION_NUM >= 170000
#define GpudsSetInsertCleanup(routine, function) ((routine)->aminsertcleanup = (function))
#else
#define GpudsSetInsertCleanup(routine, function) ((void) 0)
#endif

/* EXPLAIN's count of index searches. */
#if PG_VERSION_NUM >= 180000
#define GpudsCountSearch(scan)               \
	do                                       \
	{                                        \
		if ((scan)->instrument)              \
			(scan)->instrument->nsearches++; \
	} while (0)
#else
#define GpudsCountSearch(scan) ((void) 0)
#endif

#endif /* GPUDS_COMPAT_H */
