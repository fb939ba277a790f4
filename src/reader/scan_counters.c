/*-------------------------------------------------------------------------
 *
 * scan_counters.c
 *	  What scans have done, for EXPLAIN.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "lib/stringinfo.h"

#include "device/device.h"
#include "reader/reader.h"

/* Adds the counters of other scans. */
void
gpuds_counters_add(GpudsScanCounters *counters, const GpudsScanCounters *others)
{
	counters->answered_by |= others->answered_by;
	counters->scans += others->scans;
	counters->calls += others->calls;
	counters->entries += others->entries;
	counters->notes.operations += others->notes.operations;
	counters->notes.fallbacks += others->notes.fallbacks;
	counters->notes.without |= others->notes.without;
	counters->batches += others->batches;
	counters->probes += others->probes;
	counters->matches += others->matches;
	counters->all_visible += others->all_visible;
	counters->fetches += others->fetches;
	counters->page_states += others->page_states;
	counters->bus_bytes += others->bus_bytes;
	counters->device_ns += others->device_ns;
}

static void
append_name(StringInfo names, const char *name)
{
	appendStringInfo(names, "%s%s", names->len > 0 ? ", " : "", name);
}

/* Appends the name of a kind of device that has answered, or those of its cards. */
static void
append_device(const GpudsScanCounters *counters, GpudsDeviceKind kind, StringInfo names)
{
	const int ncards = gpuds_device_cards(kind);

	if (ncards == 1)
		append_name(names, gpuds_device_name(kind));
	for (int card = 0; card < ncards && ncards > 1; card++)
	{
		if (counters->answered_by & GpudsAnsweredByCards((uint32) 1 << card))
			append_name(names, gpuds_device_card_name(kind, card));
	}
}

/* Appends the names of what has answered: devices as views call them, and "journal". */
void
gpuds_counters_devices(const GpudsScanCounters *counters, StringInfo names)
{
	for (int kind = 0; kind < GPUDS_DEVICE_KINDS; kind++)
	{
		if (counters->answered_by & GpudsAnsweredBy(kind))
			append_device(counters, kind, names);
	}
	if (counters->answered_by & GPUDS_ANSWERED_BY_JOURNAL)
		append_name(names, "journal");
}

/* Says of each device that was done without why, as strings: "cpu: no memory". */
List *
gpuds_counters_without(const GpudsScanCounters *counters)
{
	static const char *const reasons[] = {
		[GPUDS_WITHOUT_MEMORY] = "no memory",
		[GPUDS_WITHOUT_SIZE] = "too many entries",
		[GPUDS_WITHOUT_STRUCTURE] = "lacks the structure",
		[GPUDS_WITHOUT_DEVICE] = "not there",
		[GPUDS_WITHOUT_MIRROR] = "evicted while it was scanned",
	};
	List *list = NIL;

	for (int kind = 0; kind < GPUDS_DEVICE_KINDS; kind++)
	{
		for (size_t why = 0; why < lengthof(reasons); why++)
		{
			if (counters->notes.without & GpudsWithoutBit(kind, why))
				list = lappend(list, psprintf("%s: %s", gpuds_device_name(kind), reasons[why]));
		}
	}
	return list;
}
