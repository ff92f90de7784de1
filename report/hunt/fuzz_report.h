/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_HUNT_FUZZ_REPORT_H
#define TM_REPORT_HUNT_FUZZ_REPORT_H
/* What fuzzing found: text turn by turn, JSON and JUnit at the end. */
#include <jansson.h>
#include "checker/hunt/fuzz_session.h"
#include "report/conclusion.h"

/* What is kept for the files. Starts as all zeros, ends in fuzz_report_free(). */
struct fuzz_report {
	const struct fuzz_session *session;
	struct junit junit;
	struct conclusion conclusion;
	json_t *stores;
};

#define FUZZ_PARTS (FINGERPRINT_PARTS * FINGERPRINT_PART)

/* A cause in words: "a; b; c". */
void fuzz_report_parts(const struct fingerprint *c, char *buf, size_t n);
/* The traces of a folder that were run again; nothing if there were none. */
void fuzz_report_reruns(const struct fuzz_session *s, const char *dir);
/* A store's turn is over: print it, and keep it for the files. 0 or -ENOMEM. */
int fuzz_report_turn(struct fuzz_report *r, const struct fuzz_turn *t);
/* What it comes to; before the files. */
void fuzz_conclude(struct fuzz_report *r, bool failed, bool interrupted);
/* Files: 0 or -errno. */
int fuzz_report_json(const struct fuzz_report *r, uint64_t seed, bool interrupted,
		     const char *path);
int fuzz_report_junit(struct fuzz_report *r, const char *path);
void fuzz_report_free(struct fuzz_report *r);

#endif
