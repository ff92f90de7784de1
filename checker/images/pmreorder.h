/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_IMAGES_PMREORDER_H
#define TM_CHECKER_IMAGES_PMREORDER_H
/*
 * The states that PMDK's pmreorder makes of a log, no more and no fewer.
 *
 * It collects stores. A flush marks those that it overlaps. A fence after a flush is a barrier:
 * each sequence of the engine (pm_sequence.h), of those stores that are marked, is written to the
 * files, these are checked, and the stores are taken back. Then the marked ones are there for good,
 * in their order; the others wait for the next barrier. So a store that is not marked is in no
 * state, and two orders of the same stores are two states, also where the files are the same.
 *
 * Four things differ. The files are copies, and what a checker writes to them does not stay. The
 * place of a mapping in its file counts. DEEP_SYNC, where pmreorder ends with an exception, is a
 * flush and a fence. A flush of what is not PM does not count, while there, with a fence, it is a
 * barrier without any store.
 */
#include "checker/images/images.h"
#include "checker/images/pm_sequence.h"

#define PMREORDER_TOLD 200 /* barriers with bad states that are told */

struct pmreorder_barrier {
	size_t event; /* the fence */
	enum pm_engine engine;
	unsigned stores; /* that are marked */
	uint64_t states, bad;
	/* The first bad state: its verdict, and the events of its stores, to be freed. */
	struct image_verdict verdict;
	uint32_t *store;
	unsigned len;
};

struct pmreorder_result {
	uint64_t barriers, checked, states, bad;
	uint64_t bounded; /* barriers with more sequences than were tried */
	uint64_t untold;  /* barriers with bad states, beyond PMREORDER_TOLD */
	struct pmreorder_barrier *barrier;
	unsigned told;
	double seconds;
	enum image_doubt doubt; /* nobody can tell */
};

struct pmreorder_options {
	struct image_checker checker;
	const struct pm_sections *sections;
	uint64_t most; /* states of one barrier */
	void (*progress)(void *arg, const struct driver_progress *at);
	void *progress_arg;
};

/* 0, or -errno with a sentence in *why. -EINTR: it was left off (checker.stop), and *result is what
 * had been found. */
int pmreorder_run(const struct pm_log *log, const struct pmreorder_options *o,
		  struct pmreorder_result *result, char *why, size_t n);
void pmreorder_result_free(struct pmreorder_result *result);

#endif
