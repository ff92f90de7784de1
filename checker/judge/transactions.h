/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_JUDGE_TRANSACTIONS_H
#define TM_CHECKER_JUDGE_TRANSACTIONS_H
/*
 * The contracts SSER and ATOM, by a graph of transactions.
 *
 * A transaction is an operation of a history with those that are joined to it (history_join());
 * any other operation is a transaction by itself. Values are unique, so it is known which
 * transaction each GET has read from. What had been before all others, "not found", is what a
 * transaction before all others wrote to all keys. Four kinds of edges say that one comes before
 * another:
 *
 *   wr    B read what A wrote;
 *   rw    A read what B overwrote;
 *   ww    A wrote what B overwrote;
 *   time  A had ended when B began.
 *
 * Of each GET, of transaction R from transaction S, and of each other one W that wrote the key: W
 * comes before S, or R before W. Often it is known which, as W is known to come after S, or before
 * R: then an edge is added, as long as that adds any. A cycle is a contradiction. If neither is
 * known, as nobody has read what W had overwritten, both are tried. Where nothing is left to try
 * any order of the graph explains all answers: so the judgement is exact, unless it takes more
 * tries than TRANSACTION_TRIES.
 */
#include "checker/judge/history.h"

#define TRANSACTIONS_MOST 1024 /* in a history that is judged */
#define TRANSACTION_TRIES 4096

enum transaction_edge { EDGE_READ, EDGE_OVERWRITTEN, EDGE_WRITTEN, EDGE_TIME, EDGE_ABORTED };

/* One edge of a cycle: from this transaction to the next one's. */
struct transaction_step {
	int16_t first; /* the first operation of the transaction; -1: the one before all others */
	uint8_t edge;  /* enum transaction_edge */
	int16_t get;   /* the GET that tells it, or -1 */
	/* EDGE_OVERWRITTEN: a GET of the transaction that put what `get` read, of what the next one
	 * overwrote as well: so that one came later. -1: there is none, or the time tells it. */
	int16_t because;
};

#define TRANSACTION_STEPS 16 /* of a cycle that is told */

struct transaction_cycle {
	unsigned steps;
	struct transaction_step step[TRANSACTION_STEPS];
	bool tried; /* it is one of several: other orders lead to others */
};

/* The first operation of the transaction that this one belongs to; the number of its operations. */
int transaction_first(const struct history *h, int op);
unsigned transaction_size(const struct history *h, int first);
/* Has any transaction several operations? */
bool transactions_in(const struct history *h);

/* Definitions: contracts.c. *v is written. `cycle` may be NULL; it is written if *v is broken. */
void transactions_sser(const struct history *h, struct verdict *v, struct transaction_cycle *cycle);
void transactions_atom(const struct history *h, struct verdict *v, struct transaction_cycle *cycle);

#endif
