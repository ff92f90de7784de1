/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_LIVE_RECORDED_HISTORY_H
#define TM_CHECKER_LIVE_RECORDED_HISTORY_H
/*
 * The recordings of live clients as a history that the contracts judge. Each key has a history of
 * its own.
 *
 * The history holds the recorded operations of some boots of the server. Each boot is an epoch, and
 * ends with a power failure. The recorded times order the operations: two operations that overlap
 * in time are concurrent. An update whose connection broke (recorded_unanswered) has not returned,
 * as its client never learnt how it ended.
 *
 * `start` is the state of the key before the first of these boots: absent, or the value of an
 * earlier PUT. Then that PUT comes first in the history, as the PUTs of a load phase do. If a GET
 * returns the value of another earlier PUT, that PUT is put before it.
 *
 * A history has room for HISTORY_OPS operations. If a key has more, some are left out. What remains
 * is still a true history, so nothing can be judged broken that is not; only evidence is lost. Left
 * out are:
 *   - of the GETs that returned the same value in the same boot, all but the one that returned
 *     first and the one that was invoked last; and GETs that found nothing;
 *   - DELETEs that were acknowledged before another acknowledged DELETE began;
 *   - the oldest PUTs, each with all GETs of its value.
 * This is sound because a PUT whose value is never read explains no result, and neither does a
 * DELETE that is followed by another one, once those GETs are gone.
 */
#include "checker/judge/contracts.h"
#include "checker/live/recording.h"

#define RECORDED_OPS (HISTORY_OPS - 64) /* of one history; the rest is for earlier PUTs */
#define RECORDED_OLD 32			/* values of earlier boots */

/* What is known of a key. */
enum key_knowledge { KEY_UNKNOWN, KEY_ABSENT, KEY_VALUE, KEY_FOREIGN };
struct key_state {
	uint8_t state; /* enum key_knowledge */
	uint64_t id;   /* KEY_VALUE: of the PUT */
};

struct recorded_key {
	const struct recording_op *const *op; /* of this key; by boot, then by time of invocation */
	unsigned ops;
	/* The boots that are judged; operations of other boots only show what was deleted. */
	uint32_t first, last;
	struct key_state start;
	const uint64_t *shown; /* PUTs whose values a reader after recovery may see */
	unsigned shown_n;
};

enum recorded_trouble {
	RECORDED_GOOD,
	RECORDED_UNKNOWN_PUT, /* a GET returned the value of a PUT that no recording has */
	RECORDED_CLOCKS, /* ... of a PUT that began after the GET had ended: clocks of two machines
			  */
	RECORDED_LONG	 /* too many operations, also when it is trimmed, or too many boots */
};

struct recorded_history {
	struct history h;
	struct judge judge;
	const struct recording_op *source[HISTORY_OPS]; /* by operation; NULL: not recorded */
	int32_t start;	   /* the operation that put the value of `start`, or VALUE_ABSENT */
	unsigned left_out; /* operations that were trimmed */
	enum recorded_trouble trouble; /* why the history is not judged */
	uint64_t strange;	       /* the id of the PUT that it is about */
	struct history_mark ended;     /* after the last power failure */
	struct recorded_put {
		uint64_t id;
		int32_t op; /* in the history; -1: not yet */
	} put[HISTORY_OPS]; /* sorted by id */
	unsigned puts;
	/* Working space. */
	const struct recording_op *kept[HISTORY_OPS];
	struct recorded_event {
		uint64_t at_ns;
		unsigned kept;
		bool returns;
	} event[HISTORY_EVENTS];
	int32_t op_of[HISTORY_OPS]; /* of what is kept */
	uint64_t old[RECORDED_OLD];
	unsigned olds;
};

/* Did the operation get no answer, because its connection broke? */
bool recorded_unanswered(const struct recording_op *op);
/* Make the history of a key. 0 (see p->trouble), or -ENOMEM. */
int recorded_make(struct recorded_history *p, const struct recorded_key *key);
/* The history's operation that is the PUT of this id, or VALUE_FOREIGN. */
int32_t recorded_put(const struct recorded_history *p, uint64_t id);
/* Judge the history, with a reader after the last failure that sees `shown` (KEY_UNKNOWN: there is
 * no reader). Its GET is the history's last operation until the next call. `want` and `lower_bound`
 * as in contracts_judge(). */
void recorded_judge(struct recorded_history *p, const struct key_state *shown, int32_t lower_bound,
		    unsigned want, struct verdict out[TM_CONTRACTS]);

#endif
