/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_TRACE_TRACE_H
#define TM_CHECKER_TRACE_TRACE_H
/*
 * A trace: all that is needed to see one run again. What was tested (a setup), what
 * went differently from the plain run (deviations), and what was seen (a verdict).
 * docs/trace-format.md describes the file.
 */
#include <stdio.h>
#include "checker/judge/names.h"
#include "checker/world/setup.h"
#include "faultinject/deviation.h"

#define TRACE_MAGIC	   "tidemark-trace" /* how the first line begins; then the version */
#define TRACE_VERSION	   1
#define TRACE_LINE_MAX	   (1 << 18) /* bytes of a line, without its end: any workload fits */
#define TRACE_FILE_MAX	   (1 << 20) /* bytes */
#define TRACE_DEVIATIONS   4096	     /* in one trace */
#define TRACE_VERDICT_SIZE 512	     /* bytes of a verdict, with its NUL; the rest is cut off */

struct crash_bundle;

struct trace {
	struct crash_bundle *cut; /* a power cut of a live server, and then it has nothing else */
	struct setup setup;	  /* finished: setup_finish() was called */
	struct deviations deviations; /* .line of each is its line in the file */
	bool anew;		      /* the store's object is not the one that is recorded */
	int contract;		      /* enum tm_contract that broke; -1: none ("broken none") */
	char verdict[TRACE_VERDICT_SIZE]; /* what was seen; "" if nothing was said */
};

/* "; PATH was built anew since the trace was recorded", or "": what may explain that the trace does
 * not do what it says. */
struct trace_anew {
	char text[256];
};
struct trace_anew trace_anew(const struct trace *t);

/* A store of that name, or NULL. */
typedef const struct tm_store *trace_find_store(const char *name);

/*
 * Write a trace: `contract` -1 and `verdict` NULL or "" if nothing broke. The setup is
 * finished. 0; -EINVAL: the store has no such variant; -EFBIG: larger than trace_read()
 * would take; -ENOMEM; or -errno of the writing. Nothing is flushed or closed.
 */
int trace_write(FILE *out, const struct setup *s, const struct deviations *d, int contract,
		const char *verdict);
/*
 * Write a trace to a file of this name: under another name in the same folder first,
 * then renamed, so that at no time a part of a trace has the name. 0 or -errno, the
 * folder is then as it was.
 */
int trace_save(const char *path, const struct setup *s, const struct deviations *d, int contract,
	       const char *verdict);

/*
 * Read a trace of a simulated run. 0, and *t is then the caller's, for trace_free(); or -errno with
 * *err filled and nothing to free: -EINVAL (not a good trace), -EIO or what opening or reading
 * said, -ENOMEM. err->line is the line, 0 for the file as a whole; err->message says what was found
 * and what was expected, in printable ASCII.
 */
int trace_read(const char *path, struct trace *t, trace_find_store *find_store,
	       struct input_error *err);
int trace_read_file(FILE *in, struct trace *t, trace_find_store *find_store,
		    struct input_error *err);
/* The same, or of a power cut (checker/live/crash_bundle.h): *t has either. */
int trace_read_any(FILE *in, struct trace *t, trace_find_store *find_store,
		   struct input_error *err);
void trace_free(struct trace *t);

#endif
