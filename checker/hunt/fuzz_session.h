/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_HUNT_FUZZ_SESSION_H
#define TM_CHECKER_HUNT_FUZZ_SESSION_H
/*
 * A fuzzing session: traces that are known are run again, then each store has its turn (fuzz.h).
 * What breaks unexpectedly is shrunk, and is news if its fingerprint is neither that of a known
 * trace nor of an earlier find. A known trace is accepted if it is among those that are run again.
 */
#include "checker/campaign/campaign.h"
#include "checker/hunt/fuzz.h"
#include "checker/trace/fingerprint.h"
#include "checker/trace/trace.h"

#define FUZZ_TEXT 400

/* A case of a known fingerprint. */
struct fuzz_known {
	struct fingerprint fingerprint;
	char *trace; /* file; NULL: none was written */
	char text[300];
	unsigned operations, deviations;
	bool accepted;
	bool is_new;	/* of this session */
	unsigned again; /* times that the turn met it */
};

/* A trace that was run again. */
struct fuzz_rerun {
	char *trace;
	char why[FUZZ_TEXT]; /* "": as recorded */
	int contract;
};

struct fuzz_session {
	struct fuzz_known *known;
	unsigned knowns;
	size_t known_room;
	struct fuzz_rerun *rerun;
	unsigned reruns, rerun_failures;
	size_t rerun_room;
};

struct fuzz_turn {
	struct fuzz_session *session;
	const struct campaign_config *config;
	/* The caller's: name k->trace and write the new case there. 0 or -errno. */
	int (*save)(struct fuzz_turn *t, struct fuzz_known *k, const struct broken_run *run);
	void (*shrinking)(const struct fuzz_turn *t, unsigned contract); /* NULL: not wanted */
	void *arg;
	/* results */
	struct fuzz fuzz;
	unsigned first;			/* of session->known that this turn can find */
	unsigned cases[TM_CONTRACTS];	/* shrunk */
	unsigned skipped[TM_CONTRACTS]; /* cases that were not looked at: there were enough */
	unsigned fresh;			/* new failures */
	unsigned unaccepted; /* TM_BIT()s: unexpected, and not by an accepted fingerprint */
	double start;
	char why[FUZZ_TEXT]; /* an error's message */
};

/* Run a trace again and accept its fingerprint. 0, or as regress(). */
int fuzz_session_rerun(struct fuzz_session *s, struct trace *t, const char *path);
/* Know a trace of an earlier session, accepted or not. 0, -ENOMEM, or 1: it is no failure. */
int fuzz_session_learn(struct fuzz_session *s, struct trace *t, const char *path, bool accepted);
bool fuzz_session_has(const struct fuzz_session *s, const char *path);
void fuzz_session_free(struct fuzz_session *s);

/* Set the members above "results" before. 0 or -ENOMEM; fuzz_turn_end() in any case. */
int fuzz_turn_begin(struct fuzz_turn *t, struct fuzz_options *o);
/* One round, and all that it found. 0; -EINVAL (the store cannot run), -EIO (internal), -ENOMEM or
 * -ENOTRECOVERABLE (explore_run()) with t->why, or what save() returned. */
int fuzz_turn_round(struct fuzz_turn *t);
void fuzz_turn_end(struct fuzz_turn *t);
/* A known case that belongs into the turn's report. */
bool fuzz_turn_met(const struct fuzz_turn *t, unsigned known);

#endif
