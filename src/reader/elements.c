/*-------------------------------------------------------------------------
 *
 * elements.c
 *	  The elements of an array, to be found by values of a column whose codes are hashes.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/nbtree.h"
#include "access/stratnum.h"
#include "access/tupmacs.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/arrayaccess.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/typcache.h"

#include "key/text.h"
#include "reader/elements.h"

/* Bytes that the processor fetches of memory at a time. */
#define CACHE_LINE 64

/* Calls of functions after which the memory is given back that they have left. */
#define CALLS_OF_SCRATCH 1024

typedef struct Element
{
	uint64 hash;
	Datum value;  /* in the array */
	int32 number; /* its place there, of which an array has no more than MaxArraySize */
	bool again;   /* it is equal to the element before */
	bool given;   /* of the first of a class: it has been given */
} Element;

struct GpudsElements
{
	const GpudsKeyColumn *column;
	ScanKeyData *key; /* its function compares the column with an element */
	int16 length;     /* of elements */
	bool by_value;
	bool bytewise; /* strings that are equal if their bytes are, which needs no function */

	/* of elements among each other; without an order only same is set, and not even that perhaps */
	bool ordered;
	FmgrInfo same;     /* equality; fn_oid is 0 if the operator family has none */
	FmgrInfo order;    /* which of two comes first */
	FmgrInfo to_value; /* the same of a value of the column and an element */

	Element *elements;
	int32 *ends; /* by the first bits of hashes: where the elements with these bits end */
	int bits;    /* how many they are */

	MemoryContext scratch; /* for functions, while the elements are read */
	uint32 calls;
};

/* Turns to the scratch; returns the context to turn back to. */
static MemoryContext
enter_scratch(GpudsElements *elements)
{
	CHECK_FOR_INTERRUPTS();
	if (++elements->calls % CALLS_OF_SCRATCH == 0)
		MemoryContextReset(elements->scratch);
	return MemoryContextSwitchTo(elements->scratch);
}

/* Are two elements equal?  Where the operator family does not say, those of the same bytes are. */
static bool
are_equal(GpudsElements *elements, const Element *a, const Element *b)
{
	MemoryContext old = enter_scratch(elements);
	const bool equal = OidIsValid(elements->same.fn_oid)
						   ? gpuds_elements_equal(&elements->same, elements->key->sk_collation, a->value,
												  b->value)
						   : datumIsEqual(a->value, b->value, elements->by_value, elements->length);

	MemoryContextSwitchTo(old);
	return equal;
}

/* Which of two elements comes first, by the order of their type. */
static int
compare_elements(const Element *a, const Element *b, GpudsElements *elements)
{
	MemoryContext old = enter_scratch(elements);
	const int32 order = DatumGetInt32(
		FunctionCall2Coll(&elements->order, elements->key->sk_collation, a->value, b->value));

	MemoryContextSwitchTo(old);
	return order;
}

#define ST_SORT sort_hashes
#define ST_ELEMENT_TYPE Element
#define ST_COMPARE(a, b) ((a)->hash < (b)->hash ? -1 : (a)->hash > (b)->hash)
#define ST_CHECK_FOR_INTERRUPTS
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

#define ST_SORT sort_values
#define ST_ELEMENT_TYPE Element
#define ST_COMPARE_ARG_TYPE GpudsElements
#define ST_COMPARE(a, b, elements) compare_elements(a, b, elements)
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/*
 * The btree operator family that orders values as an equality calls them equal; InvalidOid: there is none, or
 * it could not compare these values.  type: as the operator has it; value_type: what the values really are,
 * where that is polymorphic.  Several families may have the equality, such as text_ops and text_pattern_ops
 * that of text, and only the type's default one orders by the collation.
 */
Oid
gpuds_elements_family(Oid equal, Oid type, Oid value_type)
{
	const TypeCacheEntry *entry = lookup_type_cache(IsPolymorphicType(type) ? value_type : type,
													TYPECACHE_BTREE_OPFAMILY | TYPECACHE_CMP_PROC);
	List *families = GpudsBtreeFamilies(get_mergejoin_opfamilies(equal));

	/* The order of arrays is one only if that of their elements is, and so on; of rows nobody knows. */
	if (families == NIL || type == RECORDOID || (IsPolymorphicType(type) && !OidIsValid(entry->cmp_proc)))
		return InvalidOid;
	return list_member_oid(families, entry->btree_opf) ? entry->btree_opf : linitial_oid(families);
}

/* Finds what orders two elements, and a value and an element; false: nothing does. */
static bool
find_order(GpudsElements *elements, Oid equal, Oid type, Oid element_type)
{
	const Oid family = gpuds_elements_family(equal, type, element_type);
	Oid order;
	Oid to_value;

	if (!OidIsValid(family))
		return false;
	order = get_opfamily_proc(family, type, type, BTORDER_PROC);
	to_value = get_opfamily_proc(family, elements->column->type, type, BTORDER_PROC);
	if (!OidIsValid(order) || !OidIsValid(to_value))
		return false;
	fmgr_info(order, &elements->order);
	fmgr_info(to_value, &elements->to_value);
	return true;
}

/* Finds the functions that compare elements, which are of a type as operators know it. */
static void
find_functions(GpudsElements *elements, Oid type, Oid element_type)
{
	const GpudsKeyColumn *column = elements->column;
	const StrategyNumber strategy = elements->key->sk_strategy;
	const Oid equal = get_opfamily_member(column->family, column->type, type, strategy);
	const Oid same = get_opfamily_member(column->family, type, type, strategy);

	elements->ordered = OidIsValid(equal) && get_opcode(equal) == elements->key->sk_func.fn_oid &&
						find_order(elements, equal, type, element_type);
	if (OidIsValid(same))
		fmgr_info(get_opcode(same), &elements->same);
}

/* How elements of a type are hashed. */
typedef struct ElementHash
{
	GpudsKeyKind kind;  /* of texts */
	FmgrInfo *function; /* of others */
} ElementHash;

static ElementHash
hash_of_type(const GpudsKeyColumn *column, Oid type)
{
	if (!gpuds_is_text(column->kind))
		return (ElementHash){ .function = gpuds_key_hash_for(column, type) };
	return (ElementHash){ .kind = type == column->type ? (GpudsKeyKind) column->kind : gpuds_key_kind(type) };
}

static uint64
element_hash(const GpudsElements *elements, const ElementHash *hash, Datum value)
{
	return hash->function ? gpuds_key_hash(hash->function, elements->column->collation, value)
						  : gpuds_text_hash(hash->kind, value);
}

/* Reads an array, and leaves NULLs out; returns how many elements there are. */
static int32
read_array(GpudsElements *elements, ArrayType *array, char align, const ElementHash *hash, Element *to)
{
	const int32 n = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	int32 kept = 0;
	array_iter it;

	GpudsArrayBegin(&it, array, elements->length, elements->by_value, align);
	for (int32 i = 0; i < n; i++)
	{
		bool isnull;
		Datum value = GpudsArrayNext(&it, &isnull, i, elements->length, elements->by_value, align);
		MemoryContext old;

		if (isnull)
			continue;
		old = enter_scratch(elements);
		to[kept] = (Element){ .value = value, .number = i };
		to[kept++].hash = element_hash(elements, hash, value);
		MemoryContextSwitchTo(old);
	}
	return kept;
}

static inline int64
place_of(const GpudsElements *elements, uint64 hash)
{
	return (int64) (hash >> (64 - elements->bits));
}

static inline int32
place_begin(const GpudsElements *elements, int64 place)
{
	return place == 0 ? 0 : elements->ends[place - 1];
}

static Element *
alloc_elements(int64 n)
{
	return MemoryContextAllocHuge(CurrentMemoryContext, Max(n, 1) * sizeof(Element));
}

/* Puts elements, which are given up, side by side by the first bits of their hashes. */
static void
divide(GpudsElements *elements, Element *arrived, int32 n)
{
	int64 places;
	int32 before = 0;

	for (elements->bits = 4; INT64CONST(1) << elements->bits < 2 * (int64) n;)
		elements->bits++;
	places = INT64CONST(1) << elements->bits;
	elements->elements = alloc_elements(n);
	elements->ends = MemoryContextAllocExtended(CurrentMemoryContext, places * sizeof(int32),
												MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	for (int32 i = 0; i < n; i++)
		elements->ends[place_of(elements, arrived[i].hash)]++;
	for (int64 place = 0; place < places; place++)
	{
		const int32 here = elements->ends[place];

		elements->ends[place] = before; /* begins there, and ends where the last one will be put */
		before += here;
	}
	for (int32 i = 0; i < n; i++)
		elements->elements[elements->ends[place_of(elements, arrived[i].hash)]++] = arrived[i];
	pfree(arrived);
}

/* Puts those of n elements of one hash that are equal side by side, without an order. */
static void
gather(GpudsElements *elements, Element *first, int32 n)
{
	int32 next;

	for (int32 at = 0; at < n; at = next)
	{
		next = at + 1;
		for (int32 i = next; i < n; i++)
		{
			Element element = first[i];

			if (!are_equal(elements, &first[at], &element))
				continue;
			element.again = true;
			first[i] = first[next];
			first[next++] = element;
		}
	}
}

/* Puts n elements of one hash in order. */
static void
order_values(GpudsElements *elements, Element *first, int32 n)
{
	if (!elements->ordered)
	{
		gather(elements, first, n);
		return;
	}
	sort_values(first, n, elements);
	for (int32 i = 1; i < n; i++)
		first[i].again = compare_elements(&first[i - 1], &first[i], elements) == 0;
}

/* Puts the elements of a place in order. */
static void
order_place(GpudsElements *elements, int64 place)
{
	const int32 end = elements->ends[place];
	int32 next;

	if (end - place_begin(elements, place) < 2)
		return;
	sort_hashes(elements->elements + place_begin(elements, place), end - place_begin(elements, place));
	for (int32 at = place_begin(elements, place); at < end; at = next)
	{
		for (next = at + 1; next < end && elements->elements[next].hash == elements->elements[at].hash;)
			next++;
		if (next - at > 1)
			order_values(elements, elements->elements + at, next - at);
	}
}

/*
 * The elements of the array that a key compares a column with.  Column, key and array must stay where they
 * are.  Memory is the current context's.
 */
GpudsElements *
gpuds_elements_read(const GpudsKeyColumn *column, ScanKeyData *key)
{
	GpudsElements *elements = palloc0(sizeof(GpudsElements));
	ArrayType *array = DatumGetArrayTypeP(key->sk_argument);
	const Oid type = OidIsValid(key->sk_subtype) ? key->sk_subtype : column->type;
	Element *arrived = alloc_elements(ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array)));
	ElementHash hash;
	char align;
	int32 n;

	elements->column = column;
	elements->key = key;
	elements->scratch = AllocSetContextCreate(CurrentMemoryContext, "gpuds elements", ALLOCSET_SMALL_SIZES);
	get_typlenbyvalalign(ARR_ELEMTYPE(array), &elements->length, &elements->by_value, &align);
	find_functions(elements, type, ARR_ELEMTYPE(array));
	elements->bytewise = gpuds_is_text(column->kind) &&
						 (key->sk_func.fn_oid == F_TEXTEQ || key->sk_func.fn_oid == F_BYTEAEQ);
	hash = hash_of_type(column, type);
	n = read_array(elements, array, align, &hash, arrived);
	divide(elements, arrived, n);
	for (int64 place = 0; place < INT64CONST(1) << elements->bits; place++)
		order_place(elements, place);
	MemoryContextDelete(elements->scratch);
	return elements;
}

/* Have two strings the same bytes?  False: not all of them are at hand, and *equal is not set. */
static inline bool
same_bytes(Datum a, Datum b, bool *equal)
{
	struct varlena *one = (struct varlena *) DatumGetPointer(a);
	struct varlena *other = (struct varlena *) DatumGetPointer(b);

	if (VARATT_IS_EXTERNAL(one) || VARATT_IS_COMPRESSED(one) || VARATT_IS_EXTERNAL(other) ||
		VARATT_IS_COMPRESSED(other))
		return false;
	*equal = VARSIZE_ANY_EXHDR(one) == VARSIZE_ANY_EXHDR(other) &&
			 memcmp(VARDATA_ANY(one), VARDATA_ANY(other), VARSIZE_ANY_EXHDR(one)) == 0;
	return true;
}

/* Is a value equal to an element, and so to all of its class? */
static bool
is_equal(GpudsElements *elements, Datum value, int32 at)
{
	bool equal;

	if (elements->bytewise && same_bytes(value, elements->elements[at].value, &equal))
		return equal;
	return gpuds_elements_equal(&elements->key->sk_func, elements->key->sk_collation, value,
								elements->elements[at].value);
}

/* The first element with a hash, from one on before another, or what stands in its place. */
static int32
find_hash(const GpudsElements *elements, int32 from, int32 end, uint64 hash)
{
	while (from < end)
	{
		const int32 middle = from + (end - from) / 2;

		if (elements->elements[middle].hash < hash)
			from = middle + 1;
		else
			end = middle;
	}
	return from;
}

/* The first element that has a hash and does not come before a value, or what stands in its place. */
static int32
find_value(GpudsElements *elements, int32 from, int32 end, uint64 hash, Datum value)
{
	while (from < end)
	{
		const int32 middle = from + (end - from) / 2;
		const Element *element = &elements->elements[middle];

		if (element->hash == hash &&
			DatumGetInt32(FunctionCall2Coll(&elements->to_value, elements->key->sk_collation, value,
											element->value)) > 0)
			from = middle + 1;
		else
			end = middle;
	}
	return from;
}

/*
 * The first element of the class that a value is equal to, from one on, which is the first of its hash or
 * behind a class that was found; -1: there is none.
 */
static int32
find_class(GpudsElements *elements, int32 from, int32 end, uint64 hash, Datum value)
{
	if (from < end && elements->elements[from].hash == hash && is_equal(elements, value, from))
		return from;
	if (elements->ordered)
	{
		from = find_value(elements, from, end, hash, value);
		return from < end && elements->elements[from].hash == hash && is_equal(elements, value, from) ? from
																									  : -1;
	}
	for (from++; from < end && elements->elements[from].hash == hash; from++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!elements->elements[from].again && is_equal(elements, value, from))
			return from;
	}
	return -1;
}

/* The first element of a hash, or what stands in its place, and where its place ends. */
static int32
find_place(const GpudsElements *elements, uint64 hash, int32 *end)
{
	const int64 place = place_of(elements, hash);

	*end = elements->ends[place];
	return find_hash(elements, place_begin(elements, place), *end, hash);
}

static uint64
value_hash(const GpudsElements *elements, Datum value)
{
	const GpudsKeyColumn *column = elements->column;

	return gpuds_is_text(column->kind) ? gpuds_text_hash((GpudsKeyKind) column->kind, value)
									   : gpuds_key_hash(column->hash, column->collation, value);
}

/* Is there an element that a value of the column, which has a hash, is equal to? */
bool
gpuds_elements_have_hash(GpudsElements *elements, uint64 hash, Datum value)
{
	int32 end;
	const int32 first = find_place(elements, hash, &end);

	return find_class(elements, first, end, hash, value) >= 0;
}

/* Is there an element that a value of the column is equal to? */
bool
gpuds_elements_have(GpudsElements *elements, Datum value)
{
	return gpuds_elements_have_hash(elements, value_hash(elements, value), value);
}

/*
 * Steps before gpuds_elements_have_hash, each of which asks for the memory that the next one waits for: of
 * many values, all take one step before any takes the next.  The first returns the value's hash.
 */
uint64
gpuds_elements_ask(const GpudsElements *elements, Datum value)
{
	const uint64 hash = value_hash(elements, value);

	__builtin_prefetch(&elements->ends[place_of(elements, hash)]);
	return hash;
}

void
gpuds_elements_ask_place(const GpudsElements *elements, uint64 hash)
{
	__builtin_prefetch(&elements->elements[place_begin(elements, place_of(elements, hash))]);
}

void
gpuds_elements_ask_value(const GpudsElements *elements, uint64 hash)
{
	const int64 place = place_of(elements, hash);
	const int32 first = place_begin(elements, place);

	if (!elements->by_value && first < elements->ends[place])
	{
		__builtin_prefetch(DatumGetPointer(elements->elements[first].value));
		__builtin_prefetch((char *) DatumGetPointer(elements->elements[first].value) + CACHE_LINE);
	}
}

/* Gives the elements of a class; returns where it ends. */
static int32
give_class(GpudsElements *elements, int32 first, int32 end, GpudsElementFound found, void *to)
{
	int32 at = first;

	do
	{
		CHECK_FOR_INTERRUPTS();
		found(to, elements->elements[at++].number);
	} while (at < end && elements->elements[at].again);
	elements->elements[first].given = true;
	return at;
}

/*
 * Calls found for each element that a value of the column is equal to; once: unless it has been called for
 * the element before.
 */
void
gpuds_elements_find(GpudsElements *elements, Datum value, bool once, GpudsElementFound found, void *to)
{
	const uint64 hash = value_hash(elements, value);
	int32 end;
	int32 at = find_place(elements, hash, &end);

	while ((at = find_class(elements, at, end, hash, value)) >= 0)
	{
		if (once && elements->elements[at].given)
		{
			do
				at++;
			while (at < end && elements->elements[at].again);
		}
		else
			at = give_class(elements, at, end, found, to);
		/* Only classes that were made by bytes may be equal to each other. */
		if (elements->ordered || OidIsValid(elements->same.fn_oid))
			break;
	}
}
