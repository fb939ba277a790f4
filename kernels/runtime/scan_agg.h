/*-------------------------------------------------------------------------
 *
 * scan_agg.h
 *	  Scans that add up what entries on all-visible heap pages have in some columns; part of scan.h.
 *
 * Intervals are located as in any large scan.  Then each thread goes through some
 * neighbouring entries.  It adds up in registers what they have, and at the end of an
 * interval, or of its entries, adds its sums to those in memory, word by word.  So threads
 * have many entries where there are many: the additions of all threads to one place come one
 * after the other.
 *
 * Entries that are not on all-visible pages are expected to be few, and are written in no order.
 *
 * The map lies behind the input in the stream's memory.  A result is GPU_MEASURE_WORDS of
 * its number of measures: the rows, then the words of each Measured.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_SCAN_MEASURE_H
#define GPU_SCAN_MEASURE_H

#include "kernels/core/partial_agg.h"

/* Entries of a thread: enough to make about GPU_MEASURE_THREADS threads, within these limits. */
#define GPU_MEASURE_LEAST 8
#define GPU_MEASURE_MOST 512
#define GPU_MEASURE_THREADS (128 * 1024)

/* Places of a Measured in a result. */
enum
{
	GPU_MEASURED_N,
	GPU_MEASURED_LOW,
	GPU_MEASURED_HIGH,
	GPU_MEASURED_SUM,
	GPU_MEASURED_MIN,
	GPU_MEASURED_MAX
};

/* Makes results of nothing. */
struct GpuMeasureClear
{
	uint64_t *results;
	int words; /* of a result */

	GPU_FN void operator()(int64_t i) const
	{
		uint64_t *result = results + i * words;

		result[0] = 0;
		for (int k = 1; k < words; k += GPU_MEASURED_WORDS)
		{
			Measured nothing = measured_nothing();

			result[k + GPU_MEASURED_N] = result[k + GPU_MEASURED_LOW] = result[k + GPU_MEASURED_HIGH] = 0;
			memcpy(&result[k + GPU_MEASURED_SUM], &nothing.sum, sizeof(double));
			result[k + GPU_MEASURED_MIN] = nothing.min;
			result[k + GPU_MEASURED_MAX] = nothing.max;
		}
	}
};

/* Entries i * stretch and what follows.  most: room for measures, of which there may be fewer. */
template <class Probe, int most> struct GpuScanMeasure
{
	typename Probe::View view;
	int nwords;
	const GpuStart *starts;
	const uint64_t *offsets;
	int64_t n;
	int64_t total;
	int64_t stretch;
	const unsigned char *map;
	uint64_t map_bytes;
	Measure measures[most];
	int nmeasures;
	bool each; /* a result for each interval, else one for all */
	uint64_t *results;
	uint32_t *others;    /* number of entries not on all-visible pages ... */
	GpudsEntry *entries; /* ... and as many of them as there is room for */
	int64_t cap;

	GPU_FN bool visible(const GpudsEntry &e) const
	{
		uint32_t at = (uint32_t) (e.t >> 18);
		unsigned byte = at < map_bytes ? map[at] : 0;

		return (byte >> (e.t >> 16 & 3) * 2 & 1) != 0;
	}

	GPU_FN void add(const GpudsEntry &e, uint64_t *rows, Measured *sums) const
	{
		if (!visible(e))
		{
			uint32_t at = gpu_atomic_add(others, 1);

			if (at < cap)
				entries[at] = e;
			return;
		}
		++*rows;
		for (int k = 0; k < most; k++)
		{
			if (k < nmeasures)
			{
				if (nwords == 1)
					measure_add(&sums[k], &measures[k], &e, 1);
				else
					measure_add(&sums[k], &measures[k], &e, 2);
			}
		}
	}

	/* Adds a thread's sums to those of interval at, or of all. */
	GPU_FN void hand_in(int64_t at, uint64_t rows, const Measured *sums) const
	{
		uint64_t *result = results + (each ? at : 0) * (1 + GPU_MEASURED_WORDS * nmeasures);

		if (rows == 0)
			return;
		gpu_atomic_add64(result++, rows);
		for (int k = 0; k < most; k++)
		{
			if (k < nmeasures && sums[k].n > 0)
			{
				gpu_atomic_add64(&result[GPU_MEASURED_N], sums[k].n);
				gpu_atomic_min64(&result[GPU_MEASURED_MIN], sums[k].min);
				gpu_atomic_max64(&result[GPU_MEASURED_MAX], sums[k].max);
				if (measures[k].kind == MEASURE_INTEGER)
				{
					gpu_atomic_add64(&result[GPU_MEASURED_LOW], sums[k].low);
					gpu_atomic_add64(&result[GPU_MEASURED_HIGH], sums[k].high);
				}
				else
					gpu_atomic_add_double((double *) &result[GPU_MEASURED_SUM], sums[k].sum);
			}
			result += GPU_MEASURED_WORDS;
		}
	}

	GPU_FN void operator()(int64_t i) const
	{
		int64_t o = i * stretch;
		int64_t end = o + stretch < total ? o + stretch : total;
		uint64_t rows = 0;
		Measured sums[most];
		int64_t at = 0;

		for (int k = 0; k < most; k++)
			sums[k] = measured_nothing();
		while (o < end)
		{
			int64_t stop;
			typename Probe::Position p;

			at = gpu_scan_find(offsets, n, (uint64_t) o);
			stop = (int64_t) offsets[at + 1] < end ? (int64_t) offsets[at + 1] : end;
			Probe::position(view, starts[at], (uint64_t) o - offsets[at], true, &p);
			for (;;)
			{
				add(Probe::entry(view, p), &rows, sums);
				if (++o == stop)
					break;
				Probe::step(view, &p, true);
			}
			if (each)
			{
				hand_in(at, rows, sums);
				rows = 0;
				for (int k = 0; k < most; k++)
					sums[k] = measured_nothing();
			}
		}
		hand_in(at, rows, sums);
	}
};

template <class Probe, int most>
static inline void
gpu_scan_measure_entries(GpuScanStream *stream, const GpuView *view, const unsigned char *staging,
						 const GpuRequest *r, int64_t n, int64_t total, const unsigned char *map)
{
	GpuScanMeasure<Probe, most> measure;
	int64_t stretch = total / GPU_MEASURE_THREADS;

	if (stretch < GPU_MEASURE_LEAST)
		stretch = GPU_MEASURE_LEAST;
	if (stretch > GPU_MEASURE_MOST)
		stretch = GPU_MEASURE_MOST;
	measure.view = Probe::open(*view);
	measure.nwords = view->nwords;
	measure.starts = stream->starts;
	measure.offsets = stream->offsets;
	measure.n = n;
	measure.total = total;
	measure.stretch = stretch;
	measure.map = map;
	measure.map_bytes = r->map_bytes;
	measure.nmeasures = (int) r->nmeasures;
	memcpy(measure.measures, staging + r->measures, r->nmeasures * sizeof(Measure));
	measure.each = r->each;
	measure.results = (uint64_t *) stream->other;
	measure.others = stream->others;
	measure.entries = (GpudsEntry *) stream->output;
	measure.cap = r->cap;
	gpu_launch(&stream->stream, (total + stretch - 1) / stretch, measure);
}

/*
 * Measures the entries of n intervals.  Writes the results to staging memory, and the others
 * behind them, if there is room for them.  Returns how many others there are, or GPU_SCAN_UNKNOWN.
 */
template <class Probe>
static inline int64_t
gpu_scan_measure(GpuScanStream *stream, const GpuView *view, unsigned char *staging, GpuRequest *r, int64_t n)
{
	GpuStream *s = &stream->stream;
	unsigned char *map = stream->input + gpu_scan_input_bytes(r);
	GpuMeasureClear clear = { (uint64_t *) stream->other, (int) gpu_result_words(r->nmeasures) };
	const size_t result_bytes = gpu_result_bytes(r);
	int64_t others = 0;
	int64_t total;

	gpu_copy_bus(s, map, staging + r->map, r->map_bytes);
	gpu_fill(s, stream->others, 0, sizeof(uint32_t));
	gpu_launch(s, r->each ? r->n : 1, clear);
	total = n > 0 && view->height > 0 ? gpu_scan_locate<Probe>(stream, view, staging, r, n) : 0;
	if (total == GPU_SCAN_UNKNOWN)
		return total;
	if (total > 0)
	{
		if (r->nmeasures <= 1)
			gpu_scan_measure_entries<Probe, 1>(stream, view, staging, r, n, total, map);
		else
			gpu_scan_measure_entries<Probe, GPU_MEASURES>(stream, view, staging, r, n, total, map);
		gpu_copy_bus(s, &stream->summary->others, stream->others, sizeof(uint32_t));
		if (gpu_finish(s))
			others = stream->summary->others;
	}
	gpu_copy_bus(s, staging + r->output, stream->other, result_bytes);
	r->counted = total - others;
	if (others > 0 && others <= r->cap)
		gpu_copy_bus(s, staging + r->output + result_bytes, stream->output,
					 (size_t) others * sizeof(GpudsEntry));
	return others;
}

#endif /* GPU_SCAN_MEASURE_H */
