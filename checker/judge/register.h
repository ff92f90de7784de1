/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_JUDGE_REGISTER_H
#define TM_CHECKER_JUDGE_REGISTER_H
/*
 * What was seen of one key, as a register: is there an order of the operations that explains it?
 *
 * A register is a model of a few lines (model_search.h): put, get, del, and compare-and-set. Where
 * each value was put once, and there is no compare-and-set, the judge's own search
 * (contract_search.c) is the faster way to the same answer.
 */
#include "checker/judge/model_search.h"

#define REGISTER_ABSENT (-1) /* a value: there is none */

enum register_kind { REGISTER_PUT, REGISTER_GET, REGISTER_DEL, REGISTER_CAS };

/* Values are numbers from 0. */
struct register_op {
	uint8_t kind; /* enum register_kind */
	/* It was told what became of it; else it has taken effect at some moment after it began, or
	 * never. */
	bool answered;
	bool failed;	/* of an answered CAS: the value was not the old one */
	int32_t value;	/* PUT and CAS: the new one; GET: the answer; DEL: absent */
	int32_t old;	/* CAS */
	uint32_t begun; /* moments: each begin and each answer has one of its own */
	uint32_t ended; /* if it is answered */
	uint32_t name;	/* the caller's */
};

enum register_result { REGISTER_FITS, REGISTER_NONE, REGISTER_FULL };

/* Follow the operations, which are in the order in which they began. NONE: *lost is the operation
 * whose answer fits no order. FULL: too many were open at one time. FITS: *s knows what can be
 * then. Ends the process without memory. */
enum register_result register_follow(struct model_search *s, const struct register_op *op,
				     unsigned n, unsigned *lost);
/* The power failed then: may this be the value? */
bool register_may_be(struct model_search *s, int32_t value);

/* Does an order of all these operations explain the answers? *lost as above. */
enum register_result register_judge(const struct register_op *op, unsigned n, unsigned *lost);
/* Reduce operations that no order explains to a smallest part that no order explains either.
 * Returns their number; they stay in their order. */
unsigned register_shrink(struct register_op *op, unsigned n);

#endif
