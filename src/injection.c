/*-------------------------------------------------------------------------
 *
 * injection.c
 *	  Injection points: named places where a test holds a backend.
 *
 * Only in builds with GPUDS_INJECTION_POINTS.  A backend whose gpuds.wait_at lists
 * the name of a point takes and releases a share lock there, the one that
 * pg_advisory_lock(7160, number) of the same database takes exclusively.  So a
 * test session that holds that lock holds the backend, sees it waiting in
 * pg_locks, and lets it go on by unlocking.  Cancel and statement_timeout
 * work while a backend is held.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#ifdef GPUDS_INJECTION_POINTS

#include "access/xact.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "utils/guc.h"

/* first key of the advisory locks, the second is the point's number */
#define POINT_LOCK_CLASS 7160

/* numbers count from 1 */
static const char *const point_names[] = {
	"insert-buffered-flush",
	"bulk-delete-tombstoned",
	"bulk-delete-done",
	"compact-sealed",
	"compact-written",
	"compact-switched",
	"catch-up-read",
	"load-base-read",
	"scan-probed",
	"scan-before-probe",
	"device-waiting",
	"check-entries-read",
	"journal-scan-stripes",
	"load-begun",
	"mirror-acquired",
	"compact-begun",
	"check-stripes-read",
	"memtable-attaching",
	"memtable-collected",
	"flush-apply",
	"flush-applied",
	"append-paged",
	"epoch-due",
	"page-states-looked",
	"unique-looked",
};

bool gpuds_without_memtables = false;
int gpuds_test_parts = 1;

static bool disk_full = false;

static char *wait_at = NULL;
static uint32 wait_mask = 0; /* bit n: wait at point n */

/* A point's number, 0 if there is none of that name. */
static int
point_number(const char *name, size_t length)
{
	for (int i = 0; i < lengthof(point_names); i++)
	{
		if (strlen(point_names[i]) == length && memcmp(point_names[i], name, length) == 0)
			return i + 1;
	}
	return 0;
}

/* The points in a comma list as bits; false and the culprit if one is unknown. */
static bool
parse_points(const char *list, uint32 *mask, const char **unknown, size_t *unknown_length)
{
	const char *separators = ", \t\n";

	*mask = 0;
	for (list += strspn(list, separators); *list != '\0'; list += strspn(list, separators))
	{
		size_t length = strcspn(list, separators);
		int number = point_number(list, length);

		if (number == 0)
		{
			*unknown = list;
			*unknown_length = length;
			return false;
		}
		*mask |= (uint32) 1 << number;
		list += length;
	}
	return true;
}

static bool
wait_at_check(char **newval, void **extra, GucSource source)
{
	uint32 mask;
	const char *unknown;
	size_t unknown_length;

	if (parse_points(*newval, &mask, &unknown, &unknown_length))
		return true;
	GUC_check_errdetail("There is no injection point \"%.*s\".", (int) unknown_length, unknown);
	return false;
}

static void
wait_at_assign(const char *newval, void *extra)
{
	const char *unknown;
	size_t unknown_length;

	if (!parse_points(newval, &wait_mask, &unknown, &unknown_length))
		wait_mask = 0;
}

/* Defines the settings of this file; to be called once, when the library is loaded. */
void
gpuds_injection_define_guc(void)
{
	DefineCustomStringVariable("gpuds.wait_at", "Injection points that this session waits at.",
							   "A list of names; see src/injection.c.", &wait_at, "", PGC_USERSET,
							   GUC_LIST_INPUT | GUC_NOT_IN_SAMPLE, wait_at_check, wait_at_assign, NULL);
	DefineCustomBoolVariable("gpuds.test_without_memtables", "Makes the session do without memtables.", NULL,
							 &gpuds_without_memtables, false, PGC_USERSET, GUC_NOT_IN_SAMPLE, NULL, NULL,
							 NULL);
	DefineCustomIntVariable("gpuds.test_parts", "Divides indexes on GPUs into so many parts, at least.",
							"As gpuds_index_load does if it is asked to.", &gpuds_test_parts, 1, 1, 16,
							PGC_SIGHUP, GUC_NOT_IN_SAMPLE, NULL, NULL, NULL);
	DefineCustomBoolVariable("gpuds.test_disk_full", "Makes indexes not grow, as on a full disk.",
							 "For appends, VACUUM and free space maps.", &disk_full, false, PGC_USERSET,
							 GUC_NOT_IN_SAMPLE, NULL, NULL, NULL);
}

/* Where a file is about to be made longer. */
void
gpuds_injection_extend(Relation index)
{
	if (disk_full)
		ereport(ERROR, (errcode(ERRCODE_DISK_FULL), errmsg("could not extend index \"%s\": the test says so",
														   RelationGetRelationName(index))));
}

/*
 * Waits here while somebody holds the point's advisory lock of a database, if the
 * process's gpuds.wait_at names the point.  For processes without a database, which
 * read the setting from the configuration.
 */
void
gpuds_injection_point_of(const char *name, Oid database)
{
	int number = point_number(name, strlen(name));
	/* A lock of the transaction's goes with it, also if granted while the statement is being cancelled. */
	bool session = !IsTransactionState();
	LOCKTAG tag;

	if (number == 0)
		elog(ERROR, "unknown injection point \"%s\"", name);
	if ((wait_mask & (uint32) 1 << number) == 0)
		return;

	SET_LOCKTAG_ADVISORY(tag, database, POINT_LOCK_CLASS, number, 2);
	(void) LockAcquire(&tag, ShareLock, session, false);
	LockRelease(&tag, ShareLock, session);
}

/*
 * The same in a session.  Must not be called in a critical section.
 */
void
gpuds_injection_point(const char *name)
{
	gpuds_injection_point_of(name, MyDatabaseId);
}

#endif /* GPUDS_INJECTION_POINTS */
