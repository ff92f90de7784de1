/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_JUDGE_CONTRACTS_H
#define TM_CHECKER_JUDGE_CONTRACTS_H
/*
 * The contracts that a history can break, and a judge with a memory.
 *
 * Words. An *epoch* is the time between two power failures; epoch 0 comes before the
 * first. An update (PUT, DEL) that returned without error is *acknowledged* and took
 * effect between its invocation and its return. Any other update is *optional*: it
 * took effect at some time after its invocation, before the next power failure, or
 * never. A GET *counts* if it returned without error either absence or the value of
 * a PUT of its own key. The *cluster* of a PUT is itself and the GETs that count and
 * returned its value; the cluster of a DEL is itself alone.
 *
 *   RDA    broken by a GET that returned bytes of no PUT, or another key's PUT. Such
 *          a GET does not count for anything else.
 *   LIN    per key, epoch 0 is linearizable as a register with a delete.
 *   DUR    durable linearizability: per key the whole history is, power failures
 *          included. What one epoch leaves possible is what the next starts with.
 *          Broken wherever LIN is broken, crash or not.
 *   BUF    buffered durable linearizability over the first power failure: epoch 0 is
 *          linearizable also if every key that is read after the failure is read, with
 *          the same answer, at one common moment T before it. The recovered value of a
 *          key is the answer of its first GET that returned before any update of the
 *          key was invoked in that epoch. Later power failures are not judged for BUF.
 *          DUR holds => BUF holds => LIN holds.
 *   MONO   broken by a GET after a power failure whose answer must precede a value that
 *          a GET returned in an earlier epoch. Only observed values count: to see
 *          absence, and later the deleted value, is a matter of NORES and DUR.
 *   KEEP   likewise with the version that was durable and current at the last failure.
 *   NORES  broken by a GET that returned the value of a PUT, though (a) an operation of
 *          the PUT's cluster returned before an acknowledged DEL was invoked, and that
 *          DEL returned before the GET was invoked; or (b) the PUT had returned with an
 *          error before the GET was invoked.
 *
 * Must precede. In a linearization a cluster stands in one piece. So cluster A comes
 * before B in every one if an operation of A returned before one of B was invoked, and
 * by transitivity. One kind of evidence is left out where acknowledged is not visible
 * (history.ack_visible is false): that update A was acknowledged before a GET of B was
 * invoked. Such a GET may just not see A yet; that breaks LIN, and MONO and KEEP judge
 * what a power failure adds. Looked at are all epochs before the GET's. Where A must
 * precede B and B must precede A, the history is not linearizable, and neither is
 * claimed. The closure is taken for keys with at most 64 updates; beyond, the direct
 * relation stands alone. It is sound, not complete: an order forced in another way is
 * missed.
 * An answer "absent" is the initial absence, which precedes everything, or some DEL:
 * it is older than x only if each of its candidates is.
 *
 * verdict.op and .against, the pair that proves it: RDA the GET and the foreign PUT;
 * LIN and DUR the first GET that fits no order, and the latest operation that it
 * misses; BUF a GET, and an earlier one that shares no moment with it, or what it
 * misses itself; MONO the GET after and the GET before; KEEP the GET and the lower bound;
 * NORES the GET and the DEL or failed PUT.
 *
 * The judge remembers what follows from everything before the last power failure;
 * what is read after it is then judged by looking up one fact per GET.
 *
 *	history_crash(h);
 *	judge_prepare(j, h);
 *	mark = history_mark(h);
 *	for (every image) {
 *		... history_invoke(), history_return() of recovery's GETs ...
 *		judge_recovered(j, h, want, lower_bound, out);
 *		history_rewind(h, &mark);
 *	}
 */
#include "checker/judge/history.h"

/* What is known of one PUT or DEL. Private to contract*.c, like all below. */
struct judge_fact {
	int32_t first_return;	  /* of its cluster, in closed epochs; INT32_MAX: none */
	int32_t first_read;	  /* likewise, of its GETs alone */
	int32_t last_read_invoke; /* of its GETs; -1: none */
	int32_t epoch_return;	  /* first_return with the epoch that is being judged */
	int32_t last_read; /* where the last GET of the running search that returns it is invoked;
			      -1 */
	uint64_t precedes; /* numbers of the key's updates that it must precede */
	int16_t next;	   /* next update of the key, or -1 */
	int16_t observer;  /* the last GET of its cluster in closed epochs, or -1 */
	int16_t mono;	   /* memory of the answer: which GET forbids this value; -1: none; -2: not
			    * known */
	int16_t missed;	   /* likewise: what a GET of this value misses */
	uint8_t number;	   /* among the key's updates, if those are at most 64 */
	uint8_t possible; /* == generation of the key: may be the value at the last power failure */
};

struct judge_key {
	int16_t first_event; /* of the epoch that is being judged; links in judge.next; -1: none */
	int16_t epoch0_event;
	int16_t first_update, last_update; /* of closed epochs; links in judge_fact.next */
	uint16_t updates, dels;
	int16_t last_del; /* the acknowledged DEL with the latest invocation, or -1 */
	int16_t mono_absent, missed_absent;
	uint8_t generation;
	bool absent;	 /* absence is possible at the last power failure */
	bool some_value; /* some PUT's value is */
	bool lost;	 /* not linearizable so far */
	bool unsure;	 /* the search ran out of room */
	bool closed;	 /* `precedes` is computed */
};

struct judge {
	bool ready;
	uint8_t epoch; /* facts below cover the epochs before this one */
	unsigned from; /* first operation of this epoch */
	unsigned ops;  /* the history when it was prepared */
	int32_t clock;
	uint64_t hash;
	struct verdict base[TM_CONTRACTS]; /* of the closed epochs */
	struct judge_key key[HISTORY_KEYS];
	struct judge_fact fact[HISTORY_OPS];
	int16_t at[HISTORY_EVENTS];   /* the operation that is invoked or returns there */
	int16_t next[HISTORY_EVENTS]; /* next event of the same key and epoch, or -1 */
	uint64_t times[64]; /* BUF, short histories: moments at which a PUT's value can be read */
	uint64_t times_absent[HISTORY_KEYS];
	uint64_t times_known, times_absent_known;
};

/* Before the first use. */
void judge_reset(struct judge *j);
/* Learn everything before the last power failure of `h`. Does nothing if the history
 * is the one it was prepared for. */
void judge_prepare(struct judge *j, const struct history *h);
/* Judge `h`: what judge_prepare() saw, continued without a further power failure.
 * Arguments and results as contracts_judge(). `j` changes in its memories only. */
void judge_recovered(struct judge *j, const struct history *h, unsigned want,
		     const int32_t *lower_bound, struct verdict out[TM_CONTRACTS]);

#endif
