/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_CAUSE_TRAIL_H
#define TM_CHECKER_CAUSE_TRAIL_H
/*
 * The way that a store's code takes in one replay: each of its accesses to DRAM, with what was
 * there, and what it does to PM, in their order. Two trails of one trace, with a knob and without
 * it, show where the store asks for the knob and does something else because of the answer.
 */
#include "checker/trace/replay.h"

struct trail_step {
	uintptr_t pc, addr; /* addr: in DRAM */
	uint64_t value;	    /* read or written; of another event the offset in the
			     * pool, and of a flush its length */
	uint8_t kind; /* 0 a read, 1 a write, 2 a machine starts; from 3 on 3 + enum traced_kind */
	uint8_t len;  /* bytes of `value`; 0: it is longer, and `value` a hash, if anything */
};

struct trail {
	struct trail_step *step;
	size_t n, room;
	const void *written; /* what the last step is about to write, or NULL */
	size_t written_len;
	bool full; /* TRAIL_MAX steps, or out of memory: the rest is missing */
};

#define TRAIL_MAX (1u << 21)

/*
 * Record the replay of `list` under a copy of `base`, in which knob `knob` has the value `value`.
 * *broken: does it break the contract? *applies: does the run come to all that is to go
 * differently? 0, -ENOMEM, or what explore_open() says (-EIO: the store cannot run the workload
 * so). The caller frees the trail in any case.
 */
int trail_record(const struct setup *base, unsigned knob, uint8_t value,
		 const struct deviations *list, unsigned contract, struct trail *trail,
		 bool *broken, bool *applies);
void trail_free(struct trail *trail);

/* enum traced_kind of a step that is neither an access to DRAM nor the start of a machine. */
unsigned trail_event(const struct trail_step *step);

/* What is there, at most 8 bytes. */
uint64_t trail_value(const void *addr, unsigned len);

struct trail_parting {
	uintptr_t asked; /* the code that, last before the ways part, reads the knob, a copy of it,
			    or what the store has computed from it. 0: it is not known */
	/* What is done to PM next with the knob, and without it: stores, flushes and fences. NULL:
	 * nothing before a machine starts. As long as the trails. */
	const struct trail_step *next, *next_without;
	uintptr_t made; /* where it was computed from what differs, 0: it was not, or only copied */
};
void trail_find_parting(const struct trail *a, const struct trail *b, struct trail_parting *out);

#endif
