/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_LIVE_RECORDED_HISTORY_H
#define TM_CHECKER_LIVE_RECORDED_HISTORY_H
/*
 * One key of a live store: what the recordings say of it, as a history that the contracts
 * judge. Keys are judged each alone.
 *
 * The history is the recorded operations of some boots, each boot an epoch, with a
 * power failure behind each. Their order in real time comes from the times; what
 * happens at the same time is concurrent. An update that ended because its
 * connection did (recorded_lost) has not returned: nobody was told how it ended.
 *
 * What the key was before the first of these boots is its *start*: nothing, or the
 * value of an earlier PUT; then that PUT comes first in the history, like one
 * of a load phase. A value of a still earlier PUT, which no start explains, is put
 * before it.
 *
 * A history has room for HISTORY_OPS operations. Of a key with more, some are left
 * out, so that what remains is still true; only evidence is lost:
 *   - of the GETs of one value and boot, all but the one that returned first and the one that
 *     was invoked last; GETs that found nothing;
 *   - DELETEs that were acknowledged before another such one began;
 *   - the oldest PUTs, with all their GETs.
 * A PUT that nobody reads explains nothing, nor does a DELETE that another one has
 * followed, once those GETs are gone.
 */
#include "checker/judge/contracts.h"
#include "checker/live/recording.h"

#define RECORDED_OPS   \
	(HISTORY_OPS - \
	 64)		/* recorded operations of one history; the rest is for what comes before */
#define RECORDED_OLD 32 /* values of earlier boots */

/* Where a key stands. */
enum stand { STAND_UNKNOWN, STAND_ABSENT, STAND_VALUE, STAND_FOREIGN };
struct standing {
	uint8_t stand; /* enum stand */
	uint64_t id;   /* STAND_VALUE: of the PUT */
};

struct recorded_key {
	const struct recording_op *const *op; /* of this key; by boot, then by time of invocation */
	unsigned ops;
	uint32_t first, last; /* boots that are judged; the operations of others only say what was
				 deleted */
	struct standing start;
	const uint64_t *shown; /* PUTs whose values recovery may show */
	unsigned shown_n;
};

enum recorded_trouble {
	RECORDED_GOOD,
	RECORDED_STRANGER, /* a GET returned the value of a PUT that no recording has */
	RECORDED_TIMES, /* ... of a PUT that began after the GET had ended: times of two machines */
	RECORDED_LONG	/* too many operations, also when it is trimmed, or too many boots */
};

struct recorded_past {
	struct history h;
	struct judge judge;
	const struct recording_op
		*source[HISTORY_OPS]; /* of an operation in the history; NULL: none */
	int32_t start;	   /* the operation that stands for the start's value, or VALUE_ABSENT */
	unsigned left_out; /* operations that were trimmed */
	enum recorded_trouble trouble; /* why the history is not judged */
	uint64_t strange;	       /* the PUT that it is about */
	struct history_mark ended;     /* behind the last power failure */
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

/* Did the operation end with its connection? */
bool recorded_lost(const struct recording_op *op);
/* Make the history of a key. 0 (see p->trouble), or -ENOMEM. */
int recorded_make(struct recorded_past *p, const struct recorded_key *key);
/* The history's operation that is the PUT of this id, or VALUE_FOREIGN. */
int32_t recorded_put(const struct recorded_past *p, uint64_t id);
/* Judge it (`want` as in contracts_judge()), with what recovery shows after the last failure
 * (STAND_UNKNOWN: nobody looks); that GET is the history's last operation until the next call.
 * `floor`: the operation, as in contracts_judge(). */
void recorded_judge(struct recorded_past *p, const struct standing *shown, int32_t lower_bound,
		    unsigned want, struct verdict out[TM_CONTRACTS]);

#endif
