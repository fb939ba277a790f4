/*-------------------------------------------------------------------------
 *
 * incarnation.c
 *	  Tells a database from another one that had the same number.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/htup_details.h"
#include "miscadmin.h"
#include "utils/inval.h"
#include "utils/syscache.h"

#include "file/file.h"

/* Which incarnation of its database this session is in; see gpuds_database_incarnation. */
static TransactionId my_incarnation;
static bool my_incarnation_valid = false;

static void
database_changed(Datum arg, int cacheid, uint32 hashvalue)
{
	my_incarnation_valid = false;
}

/*
 * Names the incarnation of this session's database: a database that is dropped and made
 * again with the same OID, from files that are the same but for what was done to
 * them since they were copied, is another one.
 *
 * It is the transaction that wrote the row of pg_database.  Every CREATE DATABASE
 * is a transaction of its own, and a standby has the same row as its primary.
 * Other statements that write the row (ALTER DATABASE, GRANT) change it, too, which
 * costs a load of each mirror and is right for SET TABLESPACE, which copies files.
 * Sessions notice as they do any change of a catalog.
 */
TransactionId
gpuds_database_incarnation(void)
{
	static bool watching = false;

	if (!watching)
	{
		CacheRegisterSyscacheCallback(DATABASEOID, database_changed, (Datum) 0);
		watching = true;
	}
	if (!my_incarnation_valid)
	{
		HeapTuple tuple;

		my_incarnation_valid = true; /* unless it changes while we look */
		tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(MyDatabaseId));
		if (!HeapTupleIsValid(tuple))
		{
			my_incarnation_valid = false;
			elog(ERROR, "cache lookup failed for database %u", MyDatabaseId);
		}
		/* freezing leaves the number as it is */
		my_incarnation = HeapTupleHeaderGetRawXmin(tuple->t_data);
		ReleaseSysCache(tuple);
	}
	return my_incarnation;
}
