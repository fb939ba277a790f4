/*-------------------------------------------------------------------------
 *
 * join_key.c
 *	  What entries of two indexes are joined by: some columns of either key, whatever else the keys have.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key/code.h"
#include "key/join_key.h"

/* Bits of a value; the first column's NULL bit is the highest. */
#define VALUE_BITS GPUDS_KEY_MAX_BITS

static bool
is_integer(uint8 kind)
{
	return kind == GPUDS_KIND_INT2 || kind == GPUDS_KIND_INT4 || kind == GPUDS_KIND_INT8;
}

/* Is a column's type one that has been accepted?  Its values may be compared with others in its own way. */
static bool
is_accepted(const GpudsKeyColumn *column)
{
	return gpuds_key_core_kind(column->type) == GPUDS_KIND_NONE;
}

/*
 * Are two columns' codes equal if and only if their values are, and do they ascend alike?  alone: integers of
 * different size may be made alike.
 */
static bool
column_agrees(const GpudsKeyColumn *a, const GpudsKeyColumn *b, bool alone)
{
	if (a->hash || b->hash || a->descending != b->descending || a->nulls_first != b->nulls_first)
		return false;
	if (a->type != b->type && (is_accepted(a) || is_accepted(b)))
		return false;
	if (a->kind == b->kind)
		return a->kind != GPUDS_KIND_ENUM || a->type == b->type;
	return alone && !a->descending && is_integer(a->kind) && is_integer(b->kind);
}

/* Have entries of two indexes values that are in one order, by n columns of each? */
bool
gpuds_join_key_agrees(const GpudsKeyLayout *a, const int *a_columns, const GpudsKeyLayout *b,
					  const int *b_columns, int n)
{
	if (!a->ordered || !b->ordered)
		return false;
	for (int i = 0; i < n; i++)
	{
		if (a_columns[i] >= a->nkeys || b_columns[i] >= b->nkeys ||
			!column_agrees(&a->column[a_columns[i]], &b->column[b_columns[i]], n == 1))
			return false;
	}
	return true;
}

/* For n columns of a key, in its order. */
void
gpuds_join_key_init(GpudsJoinKey *key, const GpudsKeyLayout *layout, const int *columns, int n)
{
	const GpudsKeyColumn *first = &layout->column[columns[0]];

	key->layout = layout;
	key->ncolumns = n;
	memcpy(key->columns, columns, n * sizeof(int));
	key->word = n == 1 && first->bits <= 64;
	key->bias = 0;
	if (key->word && is_integer(first->kind) && !first->descending)
		key->bias = (UINT64_C(1) << 63) - (UINT64_C(1) << (first->bits - 1));
	key->first = *first;
	key->null_bit = (uint64) gpuds_null_bit(first);
}

/* The value of columns that are more than a word. */
bool
gpuds_join_key_string(const GpudsJoinKey *key, const GpudsEntry *entry, GpudsJoinValue *value)
{
	GpudsKeyString from;
	GpudsKeyString to = { 0, 0 };
	int place = VALUE_BITS;
	bool has_all = true;

	gpuds_key_from_entry(entry, key->layout->nwords, &from);
	for (int i = 0; i < key->ncolumns; i++)
	{
		const GpudsKeyColumn *column = &key->layout->column[key->columns[i]];
		const GpudsCode null_bit = gpuds_key_get(&from, column->null_shift, 1);

		gpuds_key_put(&to, null_bit, --place);
		place -= column->bits;
		gpuds_key_put(&to, gpuds_key_get(&from, column->shift, column->bits), place);
		has_all &= null_bit != gpuds_null_bit(column);
	}
	value->high = to.high;
	value->low = to.spill;
	return has_all;
}

/*
 * For probes of an index by values of these columns, which are its leading ones; false: they are others.
 */
bool
gpuds_join_key_probe_init(const GpudsJoinKey *key, GpudsKeyProbe *probe)
{
	Oid types[GPUDS_KEY_MAX_COLUMNS];

	for (int i = 0; i < key->ncolumns; i++)
	{
		if (key->columns[i] != i)
			return false;
		types[i] = key->layout->column[i].type;
	}
	gpuds_key_probe_init(probe, key->layout, key->ncolumns, types);
	return true;
}

/* The probe of a value without NULLs; false: it is a number that the column has no code for. */
bool
gpuds_join_key_probe(const GpudsJoinKey *key, const GpudsJoinValue *value, GpudsEntry *probe)
{
	GpudsKeyString to = { 0, 0 };

	if (key->word)
	{
		const uint64 code = (uint64) value->high - key->bias;

		if (code > (uint64) gpuds_ones(key->first.bits))
			return false;
		gpuds_key_put_code(&to, &key->first, code);
	}
	else
	{
		const GpudsKeyString from = { value->high, value->low };
		int place = VALUE_BITS;

		for (int i = 0; i < key->ncolumns; i++)
		{
			const GpudsKeyColumn *column = &key->layout->column[key->columns[i]];

			place -= 1 + column->bits;
			gpuds_key_put_code(&to, column, gpuds_key_get(&from, place, column->bits));
		}
	}
	gpuds_key_to_entry(&to, key->layout->nwords, 0, probe);
	return true;
}

/* Moves a column's bits to their place in another key, by words; false: there are too many. */
static bool
move_column(const GpudsKeyColumn *from, const GpudsKeyColumn *to, EntryJoin *join)
{
	for (int place = 0; place < from->bits; place += 64)
	{
		EntryJoinMove *move = &join->moves[join->nmoves];

		if (join->nmoves++ == ENTRY_JOIN_MOVES)
			return false;
		move->from = from->shift + place;
		move->bits = Min(from->bits - place, 64);
		move->to = to->shift + place;
	}
	return true;
}

/*
 * How entries lead to the keys of another index that they are joined with, by columns that agree, which lead
 * that key; sets all but the join's kind.  False: it cannot be said in so few words.
 */
bool
gpuds_join_key_moves(const GpudsJoinKey *key, const GpudsJoinKey *other, EntryJoin *join)
{
	GpudsKeyString null_bits = { 0, 0 };
	GpudsKeyString not_null = { 0, 0 };
	GpudsKeyString to = { 0, 0 };
	GpudsKeyProbe probe;

	if (!gpuds_join_key_probe_init(other, &probe))
		return false;
	memset(join, 0, sizeof(*join));
	for (int i = 0; i < key->ncolumns; i++)
	{
		const GpudsKeyColumn *column = &key->layout->column[key->columns[i]];
		const GpudsKeyColumn *there = &other->layout->column[other->columns[i]];

		gpuds_key_column_bits_of(key->layout, key->columns[i], &join->bits, NULL);
		gpuds_key_put(&null_bits, 1, column->null_shift);
		gpuds_key_put(&not_null, 1 - gpuds_null_bit(column), column->null_shift);
		gpuds_key_put_code(&to, there, 0);
		if (!move_column(column, there, join))
			return false;
	}
	gpuds_key_to_entry(&null_bits, key->layout->nwords, 0, &join->null_bits);
	gpuds_key_to_entry(&not_null, key->layout->nwords, 0, &join->not_null);
	gpuds_key_to_entry(&to, other->layout->nwords, 0, &join->key);
	join->rest = probe.rest;
	join->bias = key->word ? key->bias - other->bias : 0;
	join->most = key->word ? (uint64) gpuds_ones(other->first.bits) : UINT64_MAX;
	return true;
}
