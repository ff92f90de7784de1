/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_JUDGE_MODEL_SEARCH_H
#define TM_CHECKER_JUDGE_MODEL_SEARCH_H
/*
 * The search for orders in which a model allows what was seen.
 *
 * A configuration is one way in which the operations so far may have taken effect: the model's
 * state, and which of the operations that are open (begun, not ended) have had theirs. A set has
 * all configurations that the past allows: it is closed under letting one more open operation take
 * effect. When an operation answers, those configurations stay in which it has taken effect with
 * that answer; if there is none, no order explains the history. An operation without an answer
 * (it failed, or the power did) may take effect until the power fails, or never.
 *
 * So the cost is linear in the history, and exponential in the number of operations that are open
 * at one time.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/calls.h"

#define MODEL_CONFIGS 2048 /* of a set, at most */
#define MODEL_OPEN    64   /* operations at one time, at most */

struct model_config {
	uint64_t done; /* bits of slots */
	uint64_t hash; /* of the state and `done` */
};

struct model_set {
	unsigned n, room;
	struct model_config *config;
	uint8_t *state; /* by configuration */
};

/* The operations that are open. */
struct model_slots {
	uint64_t used;
	unsigned op[MODEL_OPEN]; /* in each that is used */
};

struct model_facts {
	/* With this answer it changes no state, and so takes effect as soon as it can. */
	bool (*looks)(const struct tm_event *event);
	/* Without an answer, each of the two could stand for the other. */
	bool (*alike)(const struct tm_event *a, const struct tm_event *b);
};

struct model_search {
	const struct tm_model *model;
	const struct tm_event *event;
	struct model_set set;
	struct model_slots open;
	/* NULL, or facts about the model, by which the set may leave out a configuration if another
	 * one can do all that it can: */
	const struct model_facts *facts;
	uint64_t optional; /* with `facts`: slots without an answer */
	bool full;	   /* there were more than there is room for: nothing is sure */
	/* The state that the model sees, which may have any type. */
	_Alignas(max_align_t) uint8_t scratch[TM_MODEL_BYTES];
};

/* All of these end the process if there is no memory. */
void model_set_free(struct model_set *set);
void model_set_copy(const struct tm_model *model, struct model_set *to,
		    const struct model_set *from);
/* Add a state, once, in which nothing that is open has taken effect. False: there is no room. */
bool model_set_add(const struct tm_model *model, struct model_set *set, const uint8_t *state,
		   uint64_t done);
/* Is it in the set? Its index, or -1. */
int model_set_find(const struct tm_model *model, const struct model_set *set, const uint8_t *state,
		   uint64_t done);

/* The operation's slot, as a bit. */
uint64_t model_slot(const struct model_slots *slots, unsigned op);

/* Begin with a set; nothing is open. */
void model_begin(struct model_search *s, const struct model_set *start);
/* On a task: the operation of this event begins; ends. False: its answer fits no order. */
void model_invoke(struct model_search *s, unsigned op);
bool model_return(struct model_search *s, unsigned op);
/* The power fails: what is open has taken effect or not. */
void model_crash(struct model_search *s);

#endif
