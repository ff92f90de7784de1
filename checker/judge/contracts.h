/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_JUDGE_CONTRACTS_H
#define TM_CHECKER_JUDGE_CONTRACTS_H
/*
 * A judge with a memory of which contracts a history breaks. contracts.c defines the contracts.
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

/* What a GET misses, as in struct verdict: .against, .blamed. */
struct judge_missed {
	int16_t op, blamed;
};

enum search_result { SEARCH_FITS, SEARCH_NONE, SEARCH_FULL };

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
	struct judge_missed missed; /* likewise: what a GET of this value misses */
	uint8_t number;		    /* among the key's updates, if those are at most 64 */
	uint8_t possible; /* == generation of the key: may be the value at the last power failure */
};

struct judge_key {
	int16_t first_event; /* of the epoch that is being judged; links in judge.next; -1: none */
	int16_t epoch0_event;
	int16_t first_update, last_update; /* of closed epochs; links in judge_fact.next */
	uint16_t updates, dels;
	int16_t last_del; /* the acknowledged DEL with the latest invocation, or -1 */
	int16_t mono_absent;
	struct judge_missed missed_absent;
	uint8_t generation;
	bool absent;	 /* absence is possible at the last power failure */
	bool some_value; /* some PUT's value is */
	bool lost;	 /* not linearizable so far */
	bool unsure;	 /* the search ran out of room */
	bool closed;	 /* `precedes` is computed */
};

struct judge {
	bool ready;
	uint8_t epoch;	    /* facts below cover the epochs before this one */
	unsigned from;	    /* first operation of this epoch */
	int32_t start, end; /* positions of its events */
	unsigned ops;	    /* the history when it was prepared */
	int32_t clock;
	uint64_t hash;
	struct verdict base[TM_CONTRACTS]; /* of the closed epochs */
	bool sser_known;		   /* its verdict, of epoch 0, which is closed */
	struct judge_key key[HISTORY_KEYS];
	struct judge_fact fact[HISTORY_OPS];
	int16_t at[HISTORY_EVENTS];   /* the operation that is invoked or returns there */
	int16_t next[HISTORY_EVENTS]; /* next event of the same key and epoch, or -1 */
	uint64_t times[64]; /* BUF, short histories: moments at which a PUT's value can be read */
	uint64_t times_absent[HISTORY_KEYS];
	uint64_t times_known, times_absent_known;
	/* NULL: each key is searched by itself. Else LIN, DUR and BUF alone are judged, and this
	 * searches the epoch at hand, all operations together. It begins with what the epochs
	 * before leave possible; `moment`: with the state of any moment of epoch 0. NONE: *op fits
	 * no order. With `learn`, what the epoch leaves possible replaces what it started with. */
	enum search_result (*search)(struct judge *j, const struct history *h, bool moment,
				     bool learn, int *op);
	void *by; /* its own */
};

/* Before the first use. It judges keys. */
void judge_reset(struct judge *j);
/* Learn everything before the last power failure of `h`. Does nothing if the history
 * is the one it was prepared for. */
void judge_prepare(struct judge *j, const struct history *h);
/* Judge `h`: what judge_prepare() saw, continued without a further power failure.
 * Arguments and results as contracts_judge(). `j` changes in its memories only. */
void judge_recovered(struct judge *j, const struct history *h, unsigned want,
		     const int32_t *lower_bound, struct verdict out[TM_CONTRACTS]);

#endif
