/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_FAULTINJECT_LIFE_H
#define TM_FAULTINJECT_LIFE_H
/*
 * The answers of CHOICE_LIFE: what a client does with a store that has recovered. 0: nothing; 1: it
 * asks for the log to be cleaned; then, key by key, one answer for each thing that can be done with
 * the key. So an answer means the same with more keys. Those from LIFE_TXNS on are transactions of
 * the key and the one that follows it, those from LIFE_CALLS on the store's own operations.
 */
#include <stdbool.h>
#include <stdint.h>

enum life_verb {
	LIFE_PUT,
	LIFE_PUT_LONG, /* a value of the greatest length that the store was made for */
	LIFE_GET,
	LIFE_DEL,
	LIFE_VERBS
};

enum life_txn {
	LIFE_TXN_PUT, /* both keys */
	LIFE_TXN_GET,
	LIFE_TXN_VERBS
};
#define LIFE_TXN_OPS 2 /* of a transaction */

#define LIFE_CLEAN 1u
#define LIFE_KEYED 2u
#define LIFE_TXNS  0x800u
#define LIFE_CALLS 0x1000u

/* Number of answers. `txns`: has it transactions? `calls`: operations of the store's own. */
static inline unsigned life_answers(unsigned keys, bool txns, unsigned calls)
{
	return calls  ? LIFE_CALLS + calls
	       : txns ? LIFE_TXNS + keys * LIFE_TXN_VERBS
		      : LIFE_KEYED + keys * LIFE_VERBS;
}

static inline bool life_is_keyed(unsigned answer)
{
	return answer >= LIFE_KEYED && answer < LIFE_TXNS;
}

static inline bool life_is_txn(unsigned answer)
{
	return answer >= LIFE_TXNS && answer < LIFE_CALLS;
}

static inline unsigned life_txn(enum life_txn verb, unsigned key)
{
	return LIFE_TXNS + key * LIFE_TXN_VERBS + verb;
}

static inline unsigned life_answer(enum life_verb verb, unsigned key)
{
	return LIFE_KEYED + key * LIFE_VERBS + verb;
}

/* What a keyed answer does. */
static inline enum life_verb life_verb(unsigned answer)
{
	return (answer - LIFE_KEYED) % LIFE_VERBS;
}

static inline unsigned life_key(unsigned answer)
{
	return (answer - LIFE_KEYED) / LIFE_VERBS;
}

#endif
