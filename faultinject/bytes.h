/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_FAULTINJECT_BYTES_H
#define TM_FAULTINJECT_BYTES_H
/*
 * Answers of sim_choose() from a byte buffer, for fuzzing. Any bytes are good.
 *
 * The buffer is a list of records of three bytes, each a deviation; every other answer
 * is 0. Trailing bytes that fill no record are ignored.
 *
 *	what	bits 0-3: which points are meant, as below; bit 7 tells two apart
 *		bits 4-5: client: 0 any, n: points of client n's operations
 *	gap	how many such points pass first: as it is up to 191, then in steps of 16
 *	answer	which answer; an answer that does not exist counts as another that does.
 *		144 to 191 are a delay until quiescence, or with a switch: so two that are
 *		late meet, without two lengths of time that happen to fit
 *
 * A record counts its own points from the start of the run, and is spent when it has
 * answered. So records neither move nor hide each other when one of them changes, but
 * for what they change in the run. If two mean the same point, the earlier one answers.
 *
 * Bytes of the longer form (bytes_extend()) say three things more. A record of three zeros is none.
 * One of a step with bit 6 of `what` set is a death: of the server's process, the client's process,
 * its machine, or the client's task alone, by the answer; where the task is a server's, the
 * server's process. And two machines that recover live on: LIFE_BYTES, a byte for each client in
 * each round, 0 for nothing.
 *
 * What a record can mean: a task's step before a store, a load, a flush, a fence, a
 * post, a completion (a lock counts as a fence); a packet; a landing, its order, the reading, the
 * draining of a line; the cache; the power, which fails (bit 4 of `what`: that of the machine that
 * recovers); one line of those that the power failure left undecided; all lines from
 * there on; a call, which fails.
 */
#include "core/pmem/crash.h"
#include "core/rt/source.h"
#include "faultinject/deviation.h"

#define RECORD_BYTES   3
#define MAX_RECORDS    40 /* further ones say nothing */
#define LIFE_MACHINES  2  /* that live on, the first two which recover */
#define LIFE_QUESTIONS 6  /* of each, in the order in which they are asked */
#define LIFE_BYTES     (LIFE_MACHINES * LIFE_QUESTIONS)

/*
 * Classes of records: the lower four bits of `what`, and 16 more if bit 7 is set and there is such
 * a class. The table of kinds (core/rt/choose.h) has the first class of each; a step has one for
 * each enum step_kind.
 */
enum record_class {
#define X(name, record, ...) RECORD_##name = record,
	CHOICES(X)
#undef X
		RECORD_LINES = 14, /* all lines from there on */
	RECORD_POST = 15,	   /* RECORD_STEP + STEP_POST once more: where clients die */
	RECORD_BIT_7 = 16
};

#define RECORD_DIES 0x40 /* of the byte `what`, in the longer form */

/* The byte `what` of a record of this class, for any client. */
static inline uint8_t record_what(unsigned class)
{
	return (uint8_t)(class < RECORD_BIT_7 ? class : 0x80 | (class - RECORD_BIT_7));
}

struct byte_record {
	uint8_t class, kind, whose, answer;
	bool spent;
	bool dies, none; /* in the longer form: it is a death; it is not there */
	uint32_t left;
};

struct byte_source {
	struct source source;
	struct byte_record record[MAX_RECORDS];
	unsigned records;
	unsigned machine;
	bool extended;
	uint8_t lives[LIFE_BYTES];
	unsigned asked;	 /* of this machine's life */
	struct pmem *pm; /* of the machine that boots, NULL on the first */
	struct deviations taken;
};

/*
 * Start a run. `power`: the bytes also say where the power fails and what is left; if
 * not, these records are left out (the explorer decides). `taken` is emptied, and to
 * be freed with deviations_free() in the end.
 */
void bytes_start(struct byte_source *b, const uint8_t *bytes, size_t n, bool power);
/* After bytes_start(): the bytes are of the longer form. */
void bytes_extend(struct byte_source *b, const uint8_t lives[LIFE_BYTES]);
/* The power failed, `machine` boots: its recovery only meets lines, the next power failure, and
 * what its clients do then. */
void bytes_boots(struct byte_source *b, unsigned machine, struct pmem *pm);
/* Is there a record left of a power failure of this machine? */
bool bytes_cut(const struct byte_source *b, unsigned machine);

#endif
