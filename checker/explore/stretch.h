/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_EXPLORE_STRETCH_H
#define TM_CHECKER_EXPLORE_STRETCH_H
/*
 * Stretches of runs, as nodes of a tree (prefix.h), within a number of bytes: where a new one finds
 * no room, those that were of no use for the longest time are dropped, leaves first.
 */
#include "checker/explore/prefix.h"
#include "core/rt/actors.h"

struct question {
	struct choice_point at; /* who: one of the tree's actors */
	unsigned n;
};

#define STRETCH_BEGIN CHOICE_KINDS /* in place of its kind: it comes before an operation */

struct stretch {
	uint64_t name; /* of the deviations that lead to it */
	struct stretch *parent;
	struct stretch *next; /* whose name has the same remainder, or which is free */
	uint32_t children;
	uint64_t used; /* the later, the greater */
	struct question *question;
	uint8_t *kind; /* of each question */
	uint32_t questions, room, kind_room;
	bool ended; /* the run's end comes after the last question; else what does is not known */
	bool known; /* and what the run came to */
	struct known_run run;
};

#define STRETCHES 256  /* at most */
#define SEEN	  1024 /* names of stretches in which runs were seen to end */
struct stretches {
	struct actors *actors;
	struct stretch root;
	struct stretch *by_name[STRETCHES], *free;
	struct stretch *all[STRETCHES];
	unsigned n;
	size_t bytes, most;
	uint64_t now; /* counts uses */
	uint64_t seen[SEEN];
	enum checkpoint_mutant mutant;
};
int stretches_init(struct stretches *t, size_t most); /* 0 or -ENOMEM */
void stretches_free(struct stretches *t);
/* All are dropped, and nothing was seen. */
void stretches_clear(struct stretches *t);
/* What a run begins with this answer to this question of a stretch; NULL: it is not there. Answer
 * 0: what comes after the end that is known. */
struct stretch *stretches_find(const struct stretches *t, const struct stretch *s,
			       uint32_t question, unsigned answer);
/* Did a run end in it, as far as is remembered, that was not noted? */
bool stretches_seen(const struct stretches *t, const struct stretch *s, uint32_t question,
		    unsigned answer);
void stretches_see(struct stretches *t, const struct stretch *s, uint32_t question,
		   unsigned answer);
/* A new one, which stretches_find() does not find yet. NULL: there is no room. */
struct stretch *stretches_add(struct stretches *t, struct stretch *s, uint32_t question,
			      unsigned answer);
/* It has no children. */
void stretches_drop(struct stretches *t, struct stretch *s);
/* This one and those before it have just been used. */
void stretches_use(struct stretches *t, struct stretch *s);
void stretch_note(struct stretches *t, struct stretch *s, const struct choice_point *at,
		  unsigned n);

#endif
