/*-------------------------------------------------------------------------
 *
 * hint.c
 *	  Hints and details of ours on errors that core raises where an access method of gpuds cannot be had, or
 *	  not for a column.
 *
 * Core asks no access method before it raises them.  An error is known by its message before translation.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include <ctype.h>

#include "hint.h"
#include "methods.h"

#define HASH_INSTEAD                                                                                \
	"Access method \"gpu_hash\" answers equality of most types that have a hash function, such as " \
	"text, numeric and jsonb."

typedef struct Hint
{
	const char *message;
	const char *text;
	const char *detail; /* NULL: the error keeps its own */
	int code;
	bool ordered_only; /* not on errors that name an access method without an order */
} Hint;

static const Hint hints[] = {
	{ "data type %s has no default operator class for access method \"%s\"",
	  HASH_INSTEAD " A type that orders as an integer or a uuid does can be accepted by gpuds_accept_type.",
	  NULL, ERRCODE_UNDEFINED_OBJECT, true },
	{ "operator class \"%s\" does not exist for access method \"%s\"", HASH_INSTEAD, NULL,
	  ERRCODE_UNDEFINED_OBJECT, true },
	{ "access method \"%s\" does not exist",
	  "CREATE EXTENSION gpuds makes it in this database, or ALTER EXTENSION gpuds UPDATE if the extension "
	  "is of an older version.",
	  NULL, ERRCODE_UNDEFINED_OBJECT, false },
	{ "access method \"%s\" does not support unique indexes",
	  "Use a constraint EXCLUDE (column WITH =) of this access method, or a unique btree index, which may be "
	  "on the same columns.",
	  "Before version 18, PostgreSQL raises errors at ON CONFLICT on tables that have a unique index of an "
	  "access method other than btree.",
	  ERRCODE_FEATURE_NOT_SUPPORTED, false },
};

static bool
is_part_of_name(char c)
{
	return isalnum((unsigned char) c) || c == '_' || c == '$';
}

/* Does a message have a name that is no part of a longer one?  Translations quote in ways of their own. */
static bool
has_name(const char *message, const char *name)
{
	const char *at = message;

	while ((at = strstr(at, name)) != NULL)
	{
		if ((at == message || !is_part_of_name(at[-1])) && !is_part_of_name(at[strlen(name)]))
			return true;
		at++;
	}
	return false;
}

/* The access method of gpuds that an error names; NULL: none. */
static const GpudsMethod *
named_method(const ErrorData *error)
{
	const GpudsMethod *method = gpuds_methods;

	while (method->name && !has_name(error->message, method->name))
		method++;
	return method->name ? method : NULL;
}

/* What to say with an error; NULL: nothing. */
static const Hint *
hint_on(const ErrorData *error)
{
	const GpudsMethod *method = error->message && error->message_id ? named_method(error) : NULL;

	for (int i = 0; method && i < (int) lengthof(hints); i++)
	{
		if (error->sqlerrcode == hints[i].code && strcmp(error->message_id, hints[i].message) == 0)
			return method->ordered || !hints[i].ordered_only ? &hints[i] : NULL;
	}
	return NULL;
}

/*
 * To be called in PG_CATCH, with the memory context of PG_TRY.  Throws the error again, with a hint
 * if there is one for it.
 */
void
gpuds_hint_rethrow(MemoryContext context)
{
	/* Others, being out of memory among them, are not copied. */
	if (geterrcode() == ERRCODE_UNDEFINED_OBJECT || geterrcode() == ERRCODE_FEATURE_NOT_SUPPORTED)
	{
		MemoryContext before = MemoryContextSwitchTo(context);
		ErrorData *error = CopyErrorData();
		const Hint *hint = hint_on(error);

		if (hint)
		{
			error->hint = pstrdup(hint->text);
			if (hint->detail)
				error->detail = pstrdup(hint->detail);
			FlushErrorState();
			ReThrowError(error);
		}
		FreeErrorData(error);
		MemoryContextSwitchTo(before);
	}
	PG_RE_THROW();
}
