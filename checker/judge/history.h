/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_JUDGE_HISTORY_H
#define TM_CHECKER_JUDGE_HISTORY_H
/*
 * What the clients saw, and the contracts over it. Knows nothing of any store.
 *
 * A history is the sequence of invocations and returns, in real-time order, with
 * power failures between them. Values are unique: the value of a PUT is named by
 * the PUT's own index in the history, so a GET's answer names the PUT it read.
 *
 * Every invocation, return and power failure takes one position of one clock.
 * Operations are in the order of their invocations. An operation that has not returned when the
 * power fails never returns: it took effect before the failure or never. "Not found" is an answer
 * (error 0, VALUE_ABSENT), not an error.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/tidemark.h"

#define HISTORY_OPS	4096 /* operations in one history, at most */
#define HISTORY_KEYS	64   /* keys in one history, at most */
#define HISTORY_CRASHES 250  /* power failures in one history, at most */
#define HISTORY_EVENTS	(2 * HISTORY_OPS + HISTORY_CRASHES)

/* What a GET returned, or what an operation wrote. */
#define VALUE_ABSENT  (-1) /* not found; nothing was ever put, or it was deleted */
#define VALUE_FOREIGN (-2) /* bytes that are no single PUT's value of this key */
/* The operation has not returned, or with an error, or bytes that several PUTs write. */
#define VALUE_UNKNOWN (-3)

enum history_kind {
	HISTORY_PUT,
	HISTORY_GET,
	HISTORY_DEL,
	HISTORY_CALL /* of the store's own: contracts of keys and values know nothing of it */
};

/* What an operation was asked for and what it answered; kept where histories are judged that have
 * operations of the store's own. */
struct history_detail {
	uint8_t call; /* HISTORY_CALL: which */
	uint16_t key[TM_CALL_KEYS];
	/* The value that it takes, as the workload names it (workload_value()); client and nth
	 * alone are no name. */
	struct {
		uint8_t client;
		uint16_t nth, key, same;
		uint32_t len;
	} value;
	bool answered;	      /* if it has returned, with this: */
	uint32_t answer, len; /* in history.answer */
};

static inline enum tm_operation history_operation(enum history_kind kind)
{
	static const uint8_t operations[] = {[HISTORY_PUT] = TM_PUT,
					     [HISTORY_GET] = TM_GET,
					     [HISTORY_DEL] = TM_DEL,
					     [HISTORY_CALL] = TM_CALL};
	return operations[kind];
}

struct history_op {
	uint8_t kind;	 /* enum history_kind */
	uint8_t client;	 /* 1.. ; recovery's readers have numbers of their own; 0: the load phase */
	uint16_t key;	 /* index of the key */
	int32_t value;	 /* PUT: its own index; DEL: VALUE_ABSENT; GET: what it returned: a PUT, or
			    VALUE_*; CALL: below all of these, by what it answered */
	int32_t invoked; /* position in the sequence of events */
	int32_t returned; /* likewise; -1: not returned (in flight, or its client died) */
	int16_t error;	  /* 0, or the -errno with which it returned; it never does: -ETIMEDOUT */
	uint8_t epoch;	  /* how many power failures came before the invocation */
	bool unexplained : 1; /* nothing that was injected explains its error */
	bool joined : 1;      /* it and the operation before it are of one transaction */
	bool aborted : 1;     /* its error says that its transaction was aborted */
	bool inside : 1;      /* a message of its client reached a server that was a member */
	uint8_t outside : 4;  /* ... or servers that were left out, as bits */
};

struct history {
	struct history_op op[HISTORY_OPS];
	unsigned ops;
	int32_t clock;			   /* next position in the sequence of events */
	uint8_t epoch;			   /* power failures so far */
	int32_t crash_at[HISTORY_CRASHES]; /* position of each power failure */
	/* Position of the first failure of one of several servers, and of the first that is for
	 * good; INT32_MAX: none. Others went on: no epoch ends there. */
	int32_t failed_at, lost_at;
	uint32_t readmitted; /* servers that were left out and are members again, as bits */
	unsigned keys;
	uint64_t hash; /* of everything above, incremental */
	/* Does an acknowledgement prove that the update is visible? True unless set otherwise after
	 * history_reset(); not so where a NIC acknowledges first. MONO and KEEP then draw no order
	 * from
	 * it. */
	bool ack_visible;
	/* By operation; NULL: not kept. See history_keep_details(). */
	struct history_detail *detail;
	uint8_t *answer; /* all answers; bytes, and how many there is room for */
	uint32_t answers, answers_room;
};

void history_reset(struct history *h, unsigned keys);
/* From now on keep the details of operations. 0 or -ENOMEM. */
int history_keep_details(struct history *h);
/* Free what a history owns. */
void history_free(struct history *h);
/* Index of the new operation, or -ENOSPC. A PUT that was done before the history
 * starts (the load phase) is invoked and returned first, like any other. */
int history_invoke(struct history *h, unsigned client, enum history_kind kind, unsigned key);
/* Likewise, with its details, where these are kept; HISTORY_CALL has no key. */
int history_invoke_detailed(struct history *h, unsigned client, enum history_kind kind,
			    unsigned key, const struct history_detail *detail);
/* What an operation is about to return: an answer, or a GET its value. 0 or -ENOMEM. */
int history_answer(struct history *h, int op, const void *bytes, size_t len);
/* `value` counts for a GET without error only. */
void history_return(struct history *h, int op, int error, int32_t value);
/* The operation that was invoked last is of one transaction with the one before it. All operations
 * of a transaction are invoked before the first returns, and return before anything else happens.
 */
void history_join(struct history *h, int op);
/* It has just returned with an error, which says that its transaction was aborted. */
void history_aborted(struct history *h, int op);
/* It has just returned with an error, and nothing that was injected explains that. */
void history_unexplained(struct history *h, int op);
/* A GET, the last event of it, is never going to return, and nothing that was injected explains
 * that. */
void history_never_returns(struct history *h, int op);
void history_crash(struct history *h);
/* One of several servers loses its power, or is lost. */
void history_server_fails(struct history *h, bool lost);
/* A message of the operation's client reaches this server; `member`: of the configuration. */
void history_reaches(struct history *h, int op, unsigned server, bool member);
/* Forget everything that was recorded after the mark: back to an earlier length (the
 * explorer appends recovery's reads and takes them away again). */
struct history_mark {
	unsigned ops;
	uint32_t answers;
	int32_t clock;
	uint8_t epoch;
	uint64_t hash;
};
struct history_mark history_mark(const struct history *h);
void history_rewind(struct history *h, const struct history_mark *mark);

/* All of it, before any power failure. */
struct snapshot;
void history_exchange(struct history *h, struct snapshot *s);

/* Why a contract is broken: which observation contradicts which. */
struct verdict {
	bool broken;
	bool unsure;	 /* the search ran out of room for some key, which was left out */
	int16_t op;	 /* the observation that breaks it (a GET; OK: what failed), or -1 */
	int16_t against; /* the operation it contradicts, or -1 */
	/* If not 0, the operation + 1 that causes name in its place (checker/judge/blame.h): where
	 * nothing was found, they count what a DELETE had ended. */
	int16_t blamed;
};

/* What a CALL answered, in words: "8 bytes 01 02 ...". */
void history_show_answer(const struct history *h, int op, char *buf, size_t n);

/* Is what breaks it a GET that found nothing? */
bool verdict_nothing(const struct verdict *v, const struct history *h);

/*
 * Judge the whole history; out[c] for c in CONTRACTS_OF_HISTORY. Contracts about
 * crashes look at every GET after a power failure. `want`: TM_BIT()s to judge,
 * others are left untouched. `lower_bound[key]`: index of the PUT/DEL operation whose
 * version is known to have been durable and current before the last power failure,
 * or VALUE_ABSENT for none known; NULL: none for all keys (TM_KEEP).
 *
 * From scratch; takes some 250 KiB of stack. What is called per crash state is
 * judge_recovered(), "checker/judge/contracts.h".
 */
void contracts_judge(const struct history *h, unsigned want, const int32_t *lower_bound,
		     struct verdict out[TM_CONTRACTS]);

#endif
