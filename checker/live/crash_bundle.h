/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_LIVE_CRASH_BUNDLE_H
#define TM_CHECKER_LIVE_CRASH_BUNDLE_H
/*
 * A power cut in one file, to be examined on any machine:
 *
 *	tidemark-cut 1
 *	store efactory
 *	variant default
 *	boot 3
 *	seed 77			(of the subset that happened)
 *	cuts 8			(other subsets that are tried)
 *	broken KEEP happened	(or "KEEP possible", or "none")
 *	says user0000000017: ...
 *	lines 321		(in flight)
 *	cached 1		(there was a cache image)
 *	operations 51234
 *	start 12345		(bytes; 0: none was given)
 *	(an empty line)
 *
 * and then, compressed (zstd, with a checksum), what struct cut has: the media's text, the pool,
 * the lines in flight (their numbers, their bytes), the recorded operations, and the text of
 * the states of keys.
 */
#include "checker/live/examine.h"
#include "core/text/text.h"

#define CRASH_BUNDLE_MAX ((size_t)4 << 30) /* bytes */

struct crash_bundle {
	struct cut cut;
	struct exam_options options;
	int contract;  /* that breaks; -1: none */
	bool happened; /* else it could have */
	char says[EXAM_TEXT];
};

/* For save_file(); `bundle` is a struct crash_bundle. 0 or -errno. */
int crash_bundle_write(FILE *out, const void *bundle);
/* Does a file that begins so, and ends with a NUL? */
bool crash_bundle_begins(const char *bytes);
/* Read it; the bytes are changed. 0, -ENOMEM, or -EINVAL with *wrong. Its cut is to be freed in any
 * case. */
int crash_bundle_read(struct crash_bundle *a, char *bytes, size_t len, struct input_error *wrong);

#endif
