/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RNIC_OBJECTS_MIXED_KEYS_H
#define TM_RNIC_OBJECTS_MIXED_KEYS_H
/*
 * Keys that were refused because a program took a region's lkey for its rkey, or the other way
 * round. On cards where both are the same number such a program works, so that its author has no
 * idea of what is wrong: mixed_keys.c looks for that, and tells the net's mixed_up().
 */
#include <infiniband/verbs.h>
#include <stdint.h>

struct rnic_mr;
struct rnic_qp;

enum mixup_kind { MIXUP_RKEY, MIXUP_LKEY_SENT, MIXUP_LKEY_RECEIVED, MIXUP_KINDS };

struct key_mixup {
	enum mixup_kind kind; /* what should have been given */
	const struct rnic_qp *qp;
	const struct rnic_mr *mr; /* whose other key was given */
	const char *request;	  /* a work request's name; NULL: a receive request */
};

/* This key of a request packet was refused. `va`, `len`: what it was for. */
void mixed_rkey(const struct rnic_qp *qp, uint8_t opcode, uint32_t rkey, int access, uint64_t va,
		uint64_t len);
/* A key of this list was refused. `request`: as in struct key_mixup. */
void mixed_lkey(const struct rnic_qp *qp, const struct ibv_pd *pd, const struct ibv_sge *sge,
		unsigned sges, int access, const char *request);

#endif
