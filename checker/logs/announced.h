/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_LOGS_ANNOUNCED_H
#define TM_CHECKER_LOGS_ANNOUNCED_H
/*
 * What clients announced of their operations (core/record/record.h), and what a recovery says is in
 * the store after a power failure: do the contracts hold?
 *
 * An operation is "put KEY VALUE", "get KEY", "del KEY" or "cas KEY OLD NEW", a compare-and-set; an
 * answer is "ok", "value VALUE", "absent", "failed", of a cas that found another value or none, or
 * "error WORDS". A transaction is "txn get KEY put KEY VALUE ...", and its answer "ok" with "value
 * VALUE" or "absent" for each GET, or "aborted"; values are words there. A key and OLD are words.
 * The load phase is announced, too. An operation that is answered with an error, or not at all, may
 * have taken effect at any time after it began, before the power fails, or never.
 *
 * Where a key's values tell its puts apart, the judge knows which one each answer is of. Where they
 * do not, as values are put twice, or there is a cas, LIN and DUR are judged by the model of a
 * register (checker/judge/register.h), and BUF, MONO and NORES by what is certain.
 *
 * What the answers alone contradict, no power failure has done: that is told once
 * (announced_faults()), and no image is blamed for it.
 *
 * A recovery prints a line "KEY VALUE" for each key that has a value. A key that it does not print
 * is absent; a key that no client named does not matter.
 */
#include "checker/logs/announcements.h"
#include "checker/judge/contracts.h"
#include "checker/judge/names.h"

/* Those that are judged here. */
#define ANNOUNCED_CONTRACTS                                                                    \
	(TM_BIT(TM_RDA) | TM_BIT(TM_LIN) | TM_BIT(TM_DUR) | TM_BIT(TM_BUF) | TM_BIT(TM_MONO) | \
	 TM_BIT(TM_NORES) | TM_BIT(TM_OK) | TM_BIT(TM_ATOM) | TM_BIT(TM_SSER))

struct announced;

/* A contract that an image breaks: by what is there, or by the operation that says so already. */
struct announced_break {
	uint8_t contract; /* enum tm_contract */
	uint8_t key;
	int16_t shown; /* the PUT whose value is there; VALUE_ABSENT, VALUE_FOREIGN: no PUT's */
	int16_t op;    /* the operation that saw it before the failure; -1: it was seen after it */
	int16_t against; /* the operation that this contradicts; -1 */
};

/* 0, or -errno with a sentence in *why: -EINVAL: what clients announced is not as above; -ENODATA:
 * they announced nothing; -EFBIG: more than a history has room for. `want`: TM_BIT()s of
 * ANNOUNCED_CONTRACTS. The log outlives it. */
int announced_open(struct announced **out, const struct pm_log *log, unsigned want, char *why,
		   size_t n);
void announced_close(struct announced *a);

/* What the answers alone break, or could not be told of them: so many. */
unsigned announced_faults(const struct announced *a, const struct announcements **said,
			  const struct announced_fault **fault);

/* SSER of a history by itself. False: *fault says why; `op` is to be freed. */
bool announced_serializable(struct announcements *said, struct announced_fault *fault);

/* The power failed before event `at` of the log, and the recovery printed this. 1: *broken is the
 * first contract that does not hold; 0: all do; -EINVAL: what was printed is not as above. */
int announced_judge(struct announced *a, size_t at, const char *text, size_t len,
		    struct announced_break *broken);
/* An operation that had begun before event `at`, as it was announced. */
struct announced_operation {
	uint64_t client;
	const char *call, *answer; /* answer: NULL: none yet */
	bool named;		   /* it is one of those that `broken` is about; NULL: none is */
	bool joined;		   /* the same as the one before it: a transaction */
};
/* The nth one, from 0. False: there are not so many. */
bool announced_operation(const struct announced *a, size_t at, const struct announced_break *broken,
			 unsigned n, struct announced_operation *out);
/* In words: "DUR: x is absent; put x 1 of client 2 had been acknowledged". */
void announced_words(const struct announced *a, const struct announced_break *b, char *out,
		     size_t n);

#endif
