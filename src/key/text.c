/*-------------------------------------------------------------------------
 *
 * text.c
 *	  Codes of texts (text.h).
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "common/hashfn.h"
#include "utils/builtins.h"

#include "key/text.h"

/* Where the server has ICU, it wants ICU's headers, which may be missing, for a member not needed here. */
#pragma push_macro("USE_ICU")
#undef USE_ICU
#include "utils/pg_locale.h"
#pragma pop_macro("USE_ICU")

/* Bytes of a text that its hash is of, at most.  Part of the format of an index, as the seed is. */
#define HASHED_BYTES 1024
#define TEXT_SEED UINT64CONST(0x67707564735f7431)

StaticAssertDecl(GPUDS_STEM_BYTES + GPUDS_TEXT_MAX_BITS / 8 < HASHED_BYTES,
				 "a text of which not all bytes are known is longer than its code");

/* The first bytes of a value. */
typedef struct Bytes
{
	const uint8 *data;
	int n;
} Bytes;

/* Does a collation compare strings byte by byte? */
bool
gpuds_text_collates(Oid collation)
{
	return OidIsValid(collation) && GpudsCollatesBytes(collation);
}

/*
 * The first bytes of a value, as many as are hashed if there are as many; blanks at the end of character(n)
 * are left out, wherever they begin.
 */
static Bytes
bytes_of(GpudsKeyKind kind, Datum value)
{
	struct varlena *data = (struct varlena *) DatumGetPointer(value);
	Bytes bytes;

	if (kind == GPUDS_KIND_NAME)
		return (Bytes){ (const uint8 *) NameStr(*DatumGetName(value)),
						(int) strlen(NameStr(*DatumGetName(value))) };
	if (kind == GPUDS_KIND_BPCHAR)
		data = PG_DETOAST_DATUM_PACKED(value);
	else if (VARATT_IS_EXTERNAL(data) || VARATT_IS_COMPRESSED(data))
		data = PG_DETOAST_DATUM_SLICE(value, 0, HASHED_BYTES);
	bytes.data = (const uint8 *) VARDATA_ANY(data);
	bytes.n = (int) VARSIZE_ANY_EXHDR(data);
	if (kind == GPUDS_KIND_BPCHAR)
		bytes.n = bpchartruelen((char *) bytes.data, bytes.n);
	bytes.n = Min(bytes.n, HASHED_BYTES);
	return bytes;
}

/* The tail of a text that is longer than its code. */
static uint32
tail_of_hash(const Bytes *bytes, int leading)
{
	const uint32 tails = (1 << GPUDS_TEXT_TAIL_BITS) - (leading + 1);

	return leading + 1 + (uint32) (hash_bytes_extended(bytes->data, bytes->n, TEXT_SEED) % tails);
}

/* The bytes of a value that its code depends on, in the current memory context if they are fetched. */
const uint8 *
gpuds_text_bytes(GpudsKeyKind kind, Datum value, int *n)
{
	const Bytes bytes = bytes_of(kind, value);

	*n = bytes.n;
	return bytes.data;
}

/* A step of a hash of bytes, eight at a time. */
static inline uint64
mix(uint64 hash, uint64 bytes)
{
	hash = (hash ^ bytes) * UINT64CONST(0x9E3779B97F4A7C15);
	return hash ^ hash >> 32;
}

/*
 * A hash of a value's bytes, those that its code depends on: equal values of a column, and of the types that
 * it compares with, have equal ones.  It is no part of any format.  Leaves what gpuds_text_bytes does.
 */
uint64
gpuds_text_hash(GpudsKeyKind kind, Datum value)
{
	const Bytes bytes = bytes_of(kind, value);
	uint64 hash = bytes.n;
	uint64 word;
	int at = 0;

	for (; at + (int) sizeof(word) <= bytes.n; at += sizeof(word))
	{
		memcpy(&word, bytes.data + at, sizeof(word));
		hash = mix(hash, word);
	}
	word = 0;
	memcpy(&word, bytes.data + at, bytes.n - at);
	return mix(mix(hash, word), 0);
}

/* Finds the stem of a text; where there are none it is the empty one. */
static GpudsStemPlace
find_stem(const GpudsStems *stems, const Bytes *bytes)
{
	if (stems->bits == 0)
		return (GpudsStemPlace){ 0, 0 };
	return gpuds_stems_find(stems, bytes->data, bytes->n);
}

/* The code of a value of a kind in a column, ascending, whether the column is or not. */
static GpudsCode
code_of(const GpudsKeyColumn *column, GpudsKeyKind kind, Datum value)
{
	const Bytes bytes = bytes_of(kind, value);
	const GpudsStemPlace place = find_stem(gpuds_text_stems(column), &bytes);
	const int leading = gpuds_text_leading_bytes(column);
	const uint8 *rest = bytes.data + place.nbytes;
	const int n = bytes.n - place.nbytes;
	GpudsCode code = place.number;

	for (int i = 0; i < leading; i++)
		code = code << 8 | (i < n ? rest[i] : 0);
	return code << GPUDS_TEXT_TAIL_BITS | (n <= leading ? (uint32) n : tail_of_hash(&bytes, leading));
}

/*
 * The bytes that all texts of a run begin with that a value, which is longer than its code, is in: those of
 * its stem and the leading ones behind it.  Leaves what gpuds_text_bytes does.
 */
const uint8 *
gpuds_text_run_bytes(const GpudsKeyColumn *column, GpudsKeyKind kind, Datum value, int *n)
{
	const Bytes bytes = bytes_of(kind, value);

	*n = find_stem(gpuds_text_stems(column), &bytes).nbytes + gpuds_text_leading_bytes(column);
	return bytes.data;
}

/* The code of a column's value.  What is fetched or decompressed is left in the current memory context. */
GpudsCode
gpuds_text_code(const GpudsKeyColumn *column, Datum value)
{
	return code_of(column, (GpudsKeyKind) column->kind, value);
}

/* Where a constant falls among a column's codes.  Leaves the same. */
void
gpuds_text_cut(const GpudsKeyColumn *column, GpudsKeyKind constant, Datum value, GpudsCut *cut)
{
	const GpudsCode tails = gpuds_ones(GPUDS_TEXT_TAIL_BITS);
	const GpudsCode code = code_of(column, constant, value);

	memset(cut, 0, sizeof(*cut));
	cut->code = code;
	cut->exact = gpuds_text_is_whole(column, code);
	if (cut->exact)
		return;
	cut->fuzzy = cut->hashed = true;
	cut->equal = code;
	cut->code = (code & ~tails) + gpuds_text_leading_bytes(column) + 1;
	cut->last = code | tails;
}
