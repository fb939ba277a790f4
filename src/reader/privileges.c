/*-------------------------------------------------------------------------
 *
 * privileges.c
 *	  May the user call what an expression calls?
 *
 * Core asks that when it makes an expression ready to be evaluated.  An index answers for
 * expressions that are never evaluated, and the user must not learn more by that.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "catalog/objectaddress.h"
#include "catalog/pg_proc.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"

#include "reader/reader.h"

static bool
check_function(Oid function, void *context)
{
	if (!GpudsMayExecute(function))
		aclcheck_error(ACLCHECK_NO_PRIV,
					   get_func_prokind(function) == PROKIND_AGGREGATE ? OBJECT_AGGREGATE : OBJECT_FUNCTION,
					   get_func_name(function));
	return false;
}

static bool
check_node(Node *node, void *context)
{
	if (node == NULL)
		return false;
	/*
	 * A cast by way of text is made of functions that core does not ask about, and an aggregate without a
	 * number is none of the query's.
	 */
	if (!IsA(node, CoerceViaIO) && !(IsA(node, Aggref) && ((const Aggref *) node)->aggno < 0))
		(void) check_functions_in_node(node, check_function, context);
	return expression_tree_walker(node, check_node, context);
}

/*
 * Raises an error if the user may not execute one of the functions, operators and aggregates of an
 * expression, or of a list of expressions.
 */
void
gpuds_check_execute(const void *expr)
{
	(void) check_node((Node *) expr, NULL);
}
