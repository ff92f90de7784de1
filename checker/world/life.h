/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_WORLD_LIFE_H
#define TM_CHECKER_WORLD_LIFE_H
/*
 * Life goes on: what clients do on a machine that has recovered, once all keys have been read. What
 * recovery has left wrong but not yet unreadable shows at the next updates, and after the next
 * power failure.
 *
 * A life is a few rounds. In each, the reader and a second client do one operation each, both at
 * the same time, or one of them nothing; then all that is on its way lands. The first round in
 * which both do nothing ends the life (CHOICE_LIFE), so the plain run has none. After a life all
 * keys are read once more, the power can fail at its end, and if it does not the store's structural
 * check runs, if the store has one for a pool at rest (fsck_at_rest).
 */
#include "checker/judge/history.h"
#include "core/rt/choose.h"
#include "faultinject/life.h"
#include "scenarios/workload/workload.h"

#define LIFE_ROUNDS  3
#define LIFE_CLIENTS 2
#define LIFE_OPS     (LIFE_ROUNDS * LIFE_CLIENTS)

struct setup;
struct world;
struct world_client;

/* What a PUT of a life wrote. */
struct life_put {
	int32_t op; /* in the history */
	unsigned key;
	uint32_t vlen;
	uint8_t *bytes; /* of the machine's memory */
};

/* The life of one machine. */
struct life {
	struct actor who[LIFE_CLIENTS]; /* the reader and the second client, as choice points name
					   them */
	bool on;			/* it has begun */
	bool second;			/* the second client has connected */
	struct workload_op op[LIFE_CLIENTS][LIFE_TXN_OPS]; /* one, or a transaction's */
	unsigned asked; /* operations; no more than LIFE_OPS, those of transactions included */
	bool busy[LIFE_CLIENTS]; /* the operation has not returned */
	uint16_t nth[LIFE_CLIENTS][OP_KINDS];
	struct life_put put[LIFE_OPS];
	unsigned puts;
};

/* A life that is prescribed, not drawn. */
struct life_plan {
	unsigned answer[LIFE_ROUNDS][LIFE_CLIENTS];
	enum life_cut {
		LIFE_WHOLE,
		LIFE_CUT,
		LIFE_CUT_ANYWHERE
	} cut; /* the power fails: not; once
		  it has begun; or before */
};

void life_init(struct world *w);
/* Forget the life of an earlier run. */
void life_begin(struct world *w);
/* On the reader's task, when it has read all keys: the life that the source wants, and reading all
 * keys again. False: it wants none. */
bool life_run(struct world_client *reader, uint8_t *buf);
/* The name of the value of a life's next PUT, for the history. */
void life_value_name(const struct world *w, struct history_detail *detail);
/* The bytes of a life's PUT, which is about to be called. */
const uint8_t *life_value(struct world *w, const struct workload_op *op);
/* Which PUT of the lives so far wrote these bytes of the key: an operation of the history, or
 * VALUE_FOREIGN. */
int32_t life_value_read(const struct world *w, unsigned key, const uint8_t *bytes, size_t len);
/* Which client a point of CHOICE_LIFE asks about, 0 or 1. */
unsigned life_client(const struct world *w, const struct choice_point *at);
/* The number of answers to CHOICE_LIFE. */
unsigned life_kinds(const struct setup *s);
/* An answer to it, drawn. */
unsigned life_draw(const struct setup *s, const struct choice_point *at, unsigned client,
		   uint64_t *random);

#endif
