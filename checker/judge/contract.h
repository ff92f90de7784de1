/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_JUDGE_CONTRACT_H
#define TM_CHECKER_JUDGE_CONTRACT_H
/* What the files of the contracts share. Definitions of the contracts: contracts.c. */
#include <assert.h>
#include "checker/judge/contracts.h"

#define NEVER	  INT32_MAX
#define NOT_KNOWN (-2) /* in the memories of struct judge */

static inline bool value_fits(const struct history *h, const struct history_op *get)
{
	return get->value == VALUE_ABSENT || (get->value >= 0 && h->op[get->value].key == get->key);
}

/* A GET that counts, if nothing after position `limit` - 1 is known. */
static inline bool get_counts(const struct history *h, const struct history_op *o, int32_t limit)
{
	return o->kind == HISTORY_GET && o->error == 0 && o->returned >= 0 && o->returned < limit &&
	       value_fits(h, o);
}

static inline bool acknowledged(const struct history_op *o, int32_t limit)
{
	return o->kind != HISTORY_GET && o->error == 0 && o->returned >= 0 && o->returned < limit;
}

/* The earliest observation is the one that is reported. */
static inline void verdict_break(struct verdict *v, int op, int against)
{
	assert(op >= 0 && op < HISTORY_OPS && against >= -1 && against < HISTORY_OPS);
	if (v->broken && v->op <= op)
		return;
	v->broken = true;
	v->op = op;
	v->against = against;
	v->blamed = 0;
}

/* contract_search.c: the search for linearizations of one key in one epoch. */
/* With `learn`, what the epoch leaves possible replaces what it started with. */
enum search_result search_epoch(struct judge *j, const struct history *h, unsigned key,
				int32_t limit, bool learn);
/* bit t of `times`: the key can be read as `value` after t events of epoch 0. */
enum search_result search_times(struct judge *j, const struct history *h, unsigned key,
				int32_t value, uint64_t *times);

/* contract_lin.c: LIN, DUR and BUF of the epoch at hand. get[key]: the GET that names the key's
 * recovered value, or -1; NULL where a model searches. */
void lin_judge(struct judge *j, const struct history *h, const int16_t *get, bool learn,
	       struct verdict *out);
/* What a GET should have known of: verdict.against and .blamed. */
struct judge_missed lin_missed(const struct history *h, int get);
static inline void lin_break(struct verdict *v, int get, struct judge_missed missed)
{
	if (v->broken && v->op <= get)
		return;
	verdict_break(v, get, missed.op);
	v->blamed = missed.blamed;
}

/* contract_buf.c: BUF of keys. */
void buf_judge(struct judge *j, const struct history *h, const int16_t *get, struct verdict *out);

/* contract_order.c: MONO and KEEP. */
void order_learn(struct judge *j, const struct history *h, unsigned from);
int order_mono(struct judge *j, const struct history *h, unsigned key, int32_t value);
bool order_older(struct judge *j, const struct history *h, unsigned key, int32_t value, int than);

#endif
