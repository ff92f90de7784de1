/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CLI_HUNT_FOREVER_FOLDER_H
#define TM_CLI_HUNT_FOREVER_FOLDER_H
/*
 * The folder of a campaign of tidemark fuzz that has no end:
 *
 *	campaign.json		what is tested; written once
 *	corpus/STORE/HASH	inputs that reached something new
 *	failures/NAME.trace	a trace for each cause
 *	sums.json		over all sessions, written anew each half minute
 *	set-aside/		what was in the folder and is of no use
 *	lock			one process at a time has it locked
 *
 * No file in it names the folder, so that it can be moved and copied. All are written under another
 * name and renamed.
 */
#include <jansson.h>
#include "checker/hunt/fuzz_session.h"
#include "cli/arguments.h"

#define FOREVER_SUM_MAX	     1e15 /* of what is counted */
#define FOREVER_SESSIONS_MAX 1e9

struct forever_folder {
	const char *path;
	char *corpus, *failures, *aside, *sums_path;
	int lock;
	json_t *settings;
	json_t *sums; /* NULL: there was no session yet */
};

/* Each 0, or the status after a message. */

/* Make the folder if there is none, lock it, and read what it has but for corpus and failures.
 * forever_close() in any case. */
int forever_open(struct forever_folder *f, const char *path);
void forever_close(struct forever_folder *f);
/* What is tested: as the folder says, or, of a new one, as the command line says, which is kept
 * then. The names that *a has afterwards are the folder's. */
int forever_settle(struct forever_folder *f, struct arguments *a);
/* A store's folder of inputs: what is not an input is set aside. */
int forever_tidy_corpus(struct forever_folder *f, const char *store);
/* How many there are in the store's folder `dir`. */
unsigned forever_count_inputs(const char *dir);
/* The failures of earlier sessions are known from now on. What does not break any more, and what
 * has the cause of a smaller one, is set aside. */
int forever_learn(struct forever_folder *f, struct fuzz_session *s);
/* Move a file that is below the folder, and say why. */
int forever_set_aside(struct forever_folder *f, const char *path, const char *why);
/* Write the sums, which are the folder's from now on. */
int forever_keep_sums(struct forever_folder *f, json_t *sums);

#endif
