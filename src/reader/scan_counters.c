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

/* Adds the figures of other scans. */
void
gpuds_figures_add(GpudsScanFigures *figures, const GpudsScanFigures *others)
{
	figures->answered_by |= others->answered_by;
	figures->scans += others->scans;
	figures->calls += others->calls;
	figures->entries += others->entries;
	figures->notes.operations += others->notes.operations;
	figures->notes.fallbacks += others->notes.fallbacks;
	figures->notes.without |= others->notes.without;
	figures->batches += others->batches;
	figures->probes += others->probes;
	figures->matches += others->matches;
	figures->all_visible += others->all_visible;
	figures->fetches += others->fetches;
	figures->bus_bytes += others->bus_bytes;
	figures->device_ns += others->device_ns;
}

static void
append_name(StringInfo names, const char *name)
{
	appendStringInfo(names, "%s%s", names->len > 0 ? ", " : "", name);
}

/* Appends the names of what has answered: devices as views call them, and "journal". */
void
gpuds_figures_devices(const GpudsScanFigures *figures, StringInfo names)
{
	for (int kind = 0; kind < GPUDS_DEVICE_KINDS; kind++)
	{
		if (figures->answered_by & GpudsAnsweredBy(kind))
			append_name(names, gpuds_device_name(kind));
	}
	if (figures->answered_by & GPUDS_ANSWERED_BY_JOURNAL)
		append_name(names, "journal");
}

/* Says of each device that was done without why, as strings: "cpu: no memory". */
List *
gpuds_figures_without(const GpudsScanFigures *figures)
{
	static const char *const reasons[] = {
		[GPUDS_WITHOUT_ROOM] = "no memory",
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
			if (figures->notes.without & GpudsWithoutBit(kind, why))
				list = lappend(list, psprintf("%s: %s", gpuds_device_name(kind), reasons[why]));
		}
	}
	return list;
}
