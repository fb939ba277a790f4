/*-------------------------------------------------------------------------
 *
 * scan_agg.h
 *	  Scans that add up what entries have in some columns whose rows are known to be seen; part of
 *	  scan.h.
 *
 * Entries are shared out as scan_entries.h says.  A thread adds its sums to those in memory, word by word,
 * at the end of an interval, or of its entries.  If there is one result for all intervals, a warp does so for
 * its threads: additions to one word come one after the other, and those of all threads would take longer
 * than the rest of a sum of ten million entries.
 *
 * A result has gpu_result_words of its number of columns: the rows, then the words of each
 * PartialAgg.  Or it is a bit (GpuRequest, bits).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_SCAN_AGG_H
#define GPU_SCAN_AGG_H

#include "kernels/core/partial_agg.h"

/* Places of a PartialAgg in a result. */
enum
{
	GPU_PARTIAL_AGG_N,
	GPU_PARTIAL_AGG_LOW,
	GPU_PARTIAL_AGG_HIGH,
	GPU_PARTIAL_AGG_SUM,
	GPU_PARTIAL_AGG_MIN,
	GPU_PARTIAL_AGG_MAX
};

/* Makes results of nothing. */
struct GpuAggregateClear
{
	uint64_t *results;
	int words; /* of a result */

	GPU_FN void operator()(int64_t i) const
	{
		uint64_t *result = results + i * words;

		result[0] = 0;
		for (int k = 1; k < words; k += GPU_PARTIAL_AGG_WORDS)
		{
			PartialAgg nothing = partial_agg_empty();

			result[k + GPU_PARTIAL_AGG_N] = result[k + GPU_PARTIAL_AGG_LOW] =
				result[k + GPU_PARTIAL_AGG_HIGH] = 0;
			memcpy(&result[k + GPU_PARTIAL_AGG_SUM], &nothing.sum, sizeof(double));
			result[k + GPU_PARTIAL_AGG_MIN] = nothing.min;
			result[k + GPU_PARTIAL_AGG_MAX] = nothing.max;
		}
	}
};

/* most: room for aggregated columns, of which there may be fewer. */
template <class Probe, int most> struct GpuScanAggregate
{
	GpuScanEntries<Probe> in;
	AggColumn agg_columns[most];
	int nagg;
	bool each; /* a result for each interval, else one for all */
	bool bits; /* it says whether there are rows */
	uint64_t *results;

	GPU_FN static void clear(uint64_t *rows, PartialAgg *sums)
	{
		*rows = 0;
		for (int k = 0; k < most; k++)
			sums[k] = partial_agg_empty();
	}

	/* Adds what an entry has. */
	GPU_FN void add(const GpudsEntry &e, PartialAgg *sums) const
	{
		for (int k = 0; k < most; k++)
		{
			if (k < nagg)
			{
				if (in.nwords == 1)
					partial_agg_add(&sums[k], &agg_columns[k], &e, 1);
				else
					partial_agg_add(&sums[k], &agg_columns[k], &e, 2);
			}
		}
	}

	/* Adds a thread's sums to those of interval at, or of all. */
	GPU_FN void hand_in(int64_t at, uint64_t rows, const PartialAgg *sums) const
	{
		uint64_t *result = results + (each ? at : 0) * (1 + GPU_PARTIAL_AGG_WORDS * nagg);

		if (rows == 0)
			return;
		if (bits)
		{
			(void) gpu_atomic_or((uint32_t *) results + at / 32, UINT32_C(1) << at % 32);
			return;
		}
		gpu_atomic_add64(result++, rows);
		for (int k = 0; k < most; k++)
		{
			if (k < nagg && sums[k].n > 0)
			{
				gpu_atomic_add64(&result[GPU_PARTIAL_AGG_N], sums[k].n);
				gpu_atomic_min64(&result[GPU_PARTIAL_AGG_MIN], sums[k].min);
				gpu_atomic_max64(&result[GPU_PARTIAL_AGG_MAX], sums[k].max);
				if (!agg_column_is_float(&agg_columns[k]))
				{
					gpu_atomic_add64(&result[GPU_PARTIAL_AGG_LOW], sums[k].low);
					gpu_atomic_add64(&result[GPU_PARTIAL_AGG_HIGH], sums[k].high);
				}
				else
					gpu_atomic_add_double((double *) &result[GPU_PARTIAL_AGG_SUM], sums[k].sum);
			}
			result += GPU_PARTIAL_AGG_WORDS;
		}
	}

	/* The same of a whole warp to those of all; not of bits. */
	GPU_FN void hand_in_warp(uint64_t rows, PartialAgg *sums) const
	{
		for (unsigned behind = gpu_warp_threads() / 2; behind > 0; behind /= 2)
		{
			rows += gpu_warp_behind(rows, behind);
			for (int k = 0; k < most; k++)
			{
				const PartialAgg theirs = {
					gpu_warp_behind(sums[k].n, behind),    gpu_warp_behind(sums[k].low, behind),
					gpu_warp_behind(sums[k].high, behind), gpu_warp_behind(sums[k].sum, behind),
					gpu_warp_behind(sums[k].min, behind),  gpu_warp_behind(sums[k].max, behind)
				};

				partial_agg_merge(&sums[k], &theirs);
			}
		}
		if (gpu_block_thread() % gpu_warp_threads() == 0)
			hand_in(0, rows, sums);
	}

	/* Whole warps call it, some threads have no entries. */
	GPU_FN void operator()(int64_t i) const
	{
		int64_t at = 0;
		uint64_t rows;
		PartialAgg sums[most];

		clear(&rows, sums);
		in.of_thread(i,
					 [&](const GpudsEntry &e, int64_t interval, int64_t)
					 {
						 if (each && interval != at)
						 {
							 hand_in(at, rows, sums);
							 clear(&rows, sums);
						 }
						 at = interval;
						 if (in.is_seen(e))
						 {
							 rows++;
							 add(e, sums);
						 }
						 return true;
					 });
		if (each)
			hand_in(at, rows, sums);
		else
			hand_in_warp(rows, sums);
	}
};

template <class Probe, int most>
static inline void
gpu_scan_aggregate_entries(GpuScanStream *stream, const GpudsView *view, const unsigned char *staging,
						   const GpuRequest *r, int64_t n, int64_t total, const GpuVisible &visible)
{
	GpuScanEntries<Probe> in(stream, view, r, n, total, visible);
	GpuScanAggregate<Probe, most> aggregate = { in,      {},      (int) r->nagg,
												r->each, r->bits, (uint64_t *) stream->other };

	memcpy((void *) aggregate.agg_columns, staging + r->agg_columns, r->nagg * sizeof(AggColumn));
	gpu_launch(&stream->stream, gpu_whole_blocks(in.threads()), aggregate);
}

/*
 * Aggregates the entries of n intervals.  Writes the results to staging memory, and the others
 * behind them, if there is room for them.  Returns how many others there are, or GPU_SCAN_UNKNOWN.
 */
template <class Probe>
static inline int64_t
gpu_scan_aggregate(GpuScanStream *stream, const GpudsView *view, unsigned char *staging, GpuRequest *r,
				   int64_t n)
{
	GpuStream *s = &stream->stream;
	GpuVisible visible = gpu_visible_copy_in(stream, staging, r);
	GpuUncounted uncounted = {};
	GpuAggregateClear clear = { (uint64_t *) stream->other, (int) gpu_result_words(r->nagg) };
	const size_t result_bytes = gpu_result_bytes(r);
	int64_t total;

	gpu_fill(s, stream->uncounted, 0, sizeof(GpuUncounted));
	if (r->bits)
		gpu_fill(s, stream->other, 0, result_bytes);
	else
		gpu_launch(s, r->each ? r->n : 1, clear);
	total = n > 0 && view->height > 0 ? gpu_scan_locate<Probe>(stream, view, staging, r, n) : 0;
	if (total == GPU_SCAN_UNKNOWN)
		return total;
	if (total > 0)
	{
		if (r->nagg <= 1)
			gpu_scan_aggregate_entries<Probe, 1>(stream, view, staging, r, n, total, visible);
		else
			gpu_scan_aggregate_entries<Probe, GPU_AGG_COLUMNS>(stream, view, staging, r, n, total, visible);
		uncounted = gpu_scan_uncounted(stream);
	}
	gpu_copy_bus(s, staging + r->output, stream->other, result_bytes);
	r->counted = total - uncounted.others - uncounted.unseen;
	if (uncounted.others > 0 && uncounted.others <= r->cap)
		gpu_copy_bus(s, staging + r->output + result_bytes, stream->output,
					 (size_t) uncounted.others * sizeof(GpudsEntry));
	return uncounted.others;
}

#endif /* GPU_SCAN_AGG_H */
