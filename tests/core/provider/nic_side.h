/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_TESTS_NIC_SIDE_H
#define TM_TESTS_NIC_SIDE_H
/*
 * What live tests of the soft RNIC have in common: two devices that one process has opened, through
 * libibverbs' functions, each with a buffer that is a region, and a queue pair to the other. Each
 * call has to succeed that no test asks an error of; nothing is waited for without a limit.
 */
#include "tests/suite.h"
#include <infiniband/verbs.h>

#define QKEY   0x1234u /* a datagram's */
#define GRH    40u     /* bytes before it */
#define WR     32u     /* a queue pair's requests, of each kind */
#define SGE    4u
#define INLINE 64u

struct side {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *scq, *rcq; /* the same one, unless the test makes another */
	struct ibv_srq *srq;	  /* NULL: the queue pair has a receive queue of its own */
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *buf; /* page-aligned, zero at first */
	union ibv_gid gid;
	struct ibv_qp_attr attr; /* what the queue pair is given, but for the peer */
	/* Where the test makes them. */
	struct ibv_comp_channel *channel;
	struct ibv_cq_ex *cqx;
	struct ibv_qp_ex *qpx;
};
extern struct side a, b;

/* A device, with a region of so many bytes; without a queue pair. */
void open_side(struct side *s, size_t bytes, int access);
struct ibv_qp_init_attr init_of(const struct side *s, enum ibv_qp_type type);
void make_qp(struct side *s, enum ibv_qp_type type);

/* The way from Reset to RTS, as ibv_modify_qp(3) has it in its tables. */
#define TRANSITIONS 9
extern const struct transition {
	enum ibv_qp_type type;
	enum ibv_qp_state to;
	int mask; /* the least that there has to be, without IBV_QP_STATE */
} transitions[TRANSITIONS];

struct ibv_ah_attr path_to(const union ibv_gid *gid);
struct ibv_qp_attr attr_to(const struct side *s, const struct side *peer, enum ibv_qp_state to);
/* From the state that it is in. An extended connection's ends are both given what a reliable one's
 * are. */
void go(struct side *s, const struct side *peer, enum ibv_qp_state until);
/* Queue pairs for a and b, to RTS. */
void connect_both(enum ibv_qp_type type);
enum ibv_qp_state state_of(const struct side *s);
void to_state(struct side *s, enum ibv_qp_state to, int error);

/* A signaled request, from a to b or back: its data are the first of the own buffer, its place the
 * beginning of the peer's. */
struct ibv_send_wr wr_of(const struct side *s, enum ibv_wr_opcode opcode, struct ibv_sge *sge,
			 uint32_t len, uint64_t id);
void post_wr(struct side *s, struct ibv_send_wr *wr);
void post_op(struct side *s, enum ibv_wr_opcode opcode, uint32_t len, uint64_t id);

/* A receive request for the beginning of the buffer, to the shared receive queue if there is
 * one. */
int try_recv(struct side *s, uint32_t len, uint64_t id);
void give(struct side *s, uint32_t len, uint64_t id);
struct ibv_wc wait_for(struct ibv_cq *cq);
void expect(struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status);
void nothing_in(struct ibv_cq *cq);

/* To be acknowledged. */
struct ibv_async_event next_event(struct side *s);
/* The next one that does not say that a connection is established, acknowledged. */
void expect_event(struct side *s, enum ibv_event_type type, const void *element);

#endif
