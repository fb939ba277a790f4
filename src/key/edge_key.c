/*-------------------------------------------------------------------------
 *
 * edge_key.c
 *	  The vertices and weights that entries of an index on edges have.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <float.h>

#include "key/code.h"
#include "key/edge_key.h"

/* Words of the code of vertices of a kind; 0: values of the kind are no vertices. */
int
gpuds_vertex_words(GpudsKeyKind kind)
{
	switch (kind)
	{
		case GPUDS_KIND_INT2:
		case GPUDS_KIND_INT4:
		case GPUDS_KIND_INT8:
			return 1;
		case GPUDS_KIND_UUID:
			return 2;
		default:
			return 0;
	}
}

/* The code of a vertex, put into gpuds_vertex_words words. */
void
gpuds_vertex_code(GpudsKeyKind kind, Datum value, uint64 *code)
{
	const GpudsCode bits = gpuds_code(kind, value);

	if (gpuds_vertex_words(kind) == 2)
		*code++ = (uint64) (bits >> 64);
	*code = (uint64) bits;
}

/* The vertex that a code is of, in *bytes if it is passed by reference. */
Datum
gpuds_vertex_value(GpudsKeyKind kind, const uint64 *code, GpudsKeyBytes *bytes)
{
	switch (kind)
	{
		case GPUDS_KIND_INT2:
			return Int16GetDatum((int16) ((uint16) code[0] ^ (1 << 15)));
		case GPUDS_KIND_INT4:
			return Int32GetDatum((int32) ((uint32) code[0] ^ (UINT32_C(1) << 31)));
		case GPUDS_KIND_INT8:
			return Int64GetDatum(gpuds_signed_value(code[0]));
		default:
		{
			const uint64 words[2] = { pg_hton64(code[0]), pg_hton64(code[1]) };

			memcpy(bytes->uuid.data, words, sizeof(words));
			return UUIDPGetDatum(&bytes->uuid);
		}
	}
}

/* Are a column's values numbers that can be weights?  The key has those of floats as codes only. */
bool
gpuds_edge_key_is_weight(const GpudsKeyColumn *column)
{
	switch (column->values)
	{
		case GPUDS_KIND_INT2:
		case GPUDS_KIND_INT4:
		case GPUDS_KIND_INT8:
			return true;
		case GPUDS_KIND_FLOAT4:
		case GPUDS_KIND_FLOAT8:
			return column->exact;
		default:
			return gpuds_is_scaled(column->values);
	}
}

static void
find_column(const GpudsKeyLayout *layout, int i, GpudsEdgeColumn *place)
{
	place->column = &layout->column[i];
	if (place->column->values != GPUDS_KIND_UUID)
		gpuds_key_agg_column(layout, i, &place->bits);
}

/*
 * For an index whose first two columns are vertices of one kind.  weight: the column that has weights, for
 * which gpuds_edge_key_is_weight; -1: none is wanted.  The layout must live as long as *key.
 */
void
gpuds_edge_key_init(GpudsEdgeKey *key, const GpudsKeyLayout *layout, int weight)
{
	memset(key, 0, sizeof(*key));
	key->layout = layout;
	key->kind = (GpudsKeyKind) layout->column[GPUDS_SOURCE].values;
	key->words = gpuds_vertex_words(key->kind);
	find_column(layout, GPUDS_SOURCE, &key->vertex[GPUDS_SOURCE]);
	find_column(layout, GPUDS_TARGET, &key->vertex[GPUDS_TARGET]);
	key->side = gpuds_key_is_side(key->vertex[GPUDS_TARGET].column);
	key->weighted = weight >= 0;
	if (!key->weighted)
		return;
	find_column(layout, weight, &key->weight);
	key->side |= gpuds_key_is_side(key->weight.column);
	key->origin = UINT64_C(1) << (key->weight.bits.bits - 1);
	key->unit = 1;
	for (int i = 0; i < gpuds_key_scale(key->weight.column->values); i++)
		key->unit *= 10;
}

/* The bits of a uuid as they are in an entry, or among side values. */
static GpudsCode
uuid_bits(const GpudsEdgeColumn *place, int nwords, const GpudsEntry *entry, const uint8 *side)
{
	const GpudsKeyColumn *column = place->column;
	GpudsKeyBytes bytes;
	GpudsKeyString key;
	GpudsCode code;

	if (gpuds_key_is_side(column))
		return gpuds_code(GPUDS_KIND_UUID, gpuds_key_side_get(column, side, &bytes));
	gpuds_key_from_entry(entry, nwords, &key);
	code = gpuds_key_get(&key, column->shift, column->bits);
	return column->descending ? ~code : code;
}

/* The bits of a value of 64 bits at most; false: it is NULL. */
static inline bool
word_bits(const GpudsEdgeColumn *place, const int nwords, const GpudsEntry *entry, const uint8 *side,
		  uint64 *bits)
{
	GpudsEntry as_entry;

	if (!gpuds_key_is_side(place->column))
	{
		*bits = agg_column_bits(entry, nwords, place->bits.place, place->bits.bits);
		return !agg_column_is_null(&place->bits, entry, nwords);
	}
	as_entry = agg_column_side_entry(&place->bits, entry, nwords, side);
	*bits = agg_column_bits(&as_entry, 1, place->bits.place, place->bits.bits);
	return !agg_column_is_null(&place->bits, &as_entry, 1);
}

/* The code of an edge's vertex; false: it is NULL. */
static inline bool
read_vertex(const GpudsEdgeColumn *place, const int words, const int nwords, const GpudsEntry *entry,
			const uint8 *side, uint64 *code)
{
	const GpudsKeyColumn *column = place->column;
	GpudsCode bits;

	if (words == 1)
	{
		const bool known = word_bits(place, nwords, entry, side, code);

		*code ^= place->bits.flip;
		return known;
	}
	if (agg_column_bits(entry, nwords, column->null_shift, 1) == (uint64) gpuds_null_bit(column))
		return false;
	bits = uuid_bits(place, nwords, entry, side);
	code[0] = (uint64) (bits >> 64);
	code[1] = (uint64) bits;
	return true;
}

/* Integers up to this one are the same as double precision. */
#define EXACT_INTEGER (INT64CONST(1) << DBL_MANT_DIG)

/* A weight by its integer, as its cast to double precision: rounded once. */
double
gpuds_edge_key_weight(const GpudsEdgeKey *key, int64 integer)
{
	char digits[32];

	if (key->unit == 1 || (integer <= EXACT_INTEGER && integer >= -EXACT_INTEGER))
		return (double) integer / key->unit;
	snprintf(digits, sizeof(digits), INT64_FORMAT "E-%d", integer,
			 gpuds_key_scale(key->weight.column->values));
	return strtod(digits, NULL);
}

/* The weight of an edge; false: it is NULL. */
static inline bool
read_weight(const GpudsEdgeKey *key, const int nwords, const GpudsEntry *entry, const uint8 *side,
			double *weight)
{
	const AggColumn *column = &key->weight.bits;
	uint64 bits;
	uint64 code;

	*weight = 0;
	if (!word_bits(&key->weight, nwords, entry, side, &bits))
		return false;
	if (agg_column_is_float(column))
	{
		*weight = agg_column_value(column, bits);
		return true;
	}
	code = bits ^ column->flip;
	if (gpuds_is_scaled(key->weight.column->values) && code == GPUDS_NUMERIC_NAN)
		*weight = NAN;
	else
		*weight = gpuds_edge_key_weight(key, (int64) (code - key->origin));
	return true;
}

static inline int64
read_edges(const GpudsEdgeKey *key, const int words, const int nwords, const GpudsEntry *entries,
		   const uint8 *side, int64 n, const GpudsEdgeArrays *edges)
{
	static const uint8 none[GPUDS_SIDE_BYTES];
	const int side_bytes = side ? key->layout->side_bytes : 0;
	int64 kept = 0;

	for (int64 i = 0; i < n; i++)
	{
		const uint8 *values = (side ? side : none) + i * side_bytes;

		if (!read_vertex(&key->vertex[GPUDS_SOURCE], words, nwords, &entries[i], values,
						 edges->sources + kept * words) ||
			!read_vertex(&key->vertex[GPUDS_TARGET], words, nwords, &entries[i], values,
						 edges->targets + kept * words))
			continue;
		if (edges->from)
			edges->from[kept] = edges->from[i];
		if (key->weighted)
			edges->unknown[kept] = !read_weight(key, nwords, &entries[i], values, &edges->weights[kept]);
		kept++;
	}
	return kept;
}

/*
 * Reads what n entries have into arrays that have room for as many.  Entries with a NULL in place of a vertex
 * are no edges; returns how many there are.  side: the entries' side values, if key->side; else NULL.
 * Allocates nothing.
 */
int64
gpuds_edge_key_read(const GpudsEdgeKey *key, const GpudsEntry *entries, const uint8 *side, int64 n,
					const GpudsEdgeArrays *edges)
{
	if (key->words == 2)
		return read_edges(key, 2, key->layout->nwords, entries, side, n, edges);
	if (key->layout->nwords == 1)
		return read_edges(key, 1, 1, entries, side, n, edges);
	return read_edges(key, 1, 2, entries, side, n, edges);
}

/* For probes of the edges that lead out of a vertex. */
void
gpuds_edge_key_probe_init(const GpudsEdgeKey *key, GpudsKeyProbe *probe)
{
	gpuds_key_probe_init(probe, key->layout, 1, &key->layout->column[GPUDS_SOURCE].type);
}

/* The probe of a vertex, with a number of 48 bits in place of the TID.  Allocates nothing. */
void
gpuds_edge_key_probe(const GpudsEdgeKey *key, const uint64 *code, uint64 number, GpudsEntry *entry)
{
	const GpudsKeyColumn *column = key->vertex[GPUDS_SOURCE].column;
	GpudsKeyString string = { 0, 0 };
	GpudsCode bits = code[0];

	if (key->words == 2)
		bits = bits << 64 | code[1];
	if (column->descending)
		bits ^= gpuds_ones(column->bits);
	gpuds_key_put_code(&string, column, bits);
	gpuds_key_to_entry(&string, key->layout->nwords, number, entry);
}
