/*
 * A library that takes number 30 of cumulative statistics, as gpuds does, for t/050_statistics_kind.pl.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/pgstat_internal.h"

PG_MODULE_MAGIC;

void _PG_init(void);

typedef struct Shared
{
	PgStatShared_Common header;
	int64 count;
} Shared;

static const PgStat_KindInfo kind_info = {
	.name = "other_kind",
	.shared_size = sizeof(Shared),
	.shared_data_off = offsetof(Shared, count),
	.shared_data_len = sizeof(int64),
};

void
_PG_init(void)
{
	pgstat_register_kind(30, &kind_info);
}
