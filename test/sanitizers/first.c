/*-------------------------------------------------------------------------
 *
 * first.c
 *	  A library whose constructor is called before all others (it is linked with
 *	  -z initfirst), and makes the two sanitizers get along in a server.
 *
 * The address sanitizer begins when somebody calls malloc first.  In Debian 12 that is the
 * constructor of libp11-kit, in newlocale, which holds the lock of the locale.  The
 * sanitizer asks dlerror for a message, which takes that lock, too, and releases it: later
 * on somebody waits for it for ever.  So malloc is called here.
 *
 * The library of the undefined behaviour sanitizer reads its options when it first has
 * something to report, from the environment, over which a server has written its title by
 * then.  So they are here.  It calls a function to say where its reports go, and gets that
 * of the address sanitizer, which comes first.  So its own is called here: this library is
 * loaded between the two.  REPORTS is the beginning of the names of files.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

const char *
__ubsan_default_options(void)
{
	return "print_stacktrace=1:log_path='" REPORTS "'";
}

__attribute__((constructor)) static void
begin(void)
{
	void *volatile nothing = malloc(1);
	void (*set_report_path)(const char *) = (void (*)(const char *)) dlsym(RTLD_NEXT,
																		   "__sanitizer_set_report_path");

	free(nothing);
	set_report_path(REPORTS);
}
