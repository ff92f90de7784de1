/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RNIC_WORLD_H
#define RNIC_WORLD_H
/*
 * What tests of the soft RNIC have in common: two hosts, one task that plays both
 * sides, each with a queue pair and a buffer that is a region. Each test runs in a
 * simulation of its own; a source whose answers the test decides makes the link and
 * the landing misbehave.
 */
#include "tests/suite.h"
#include "core/pmem/crash.h"
#include "core/verbs_compat.h"
#include "core/rnic/rnic.h"
#include "core/rt/rt.h"
#include "core/rt/sim.h"
#include "faultinject/random_source.h"
#include "tests/suite.h"

#define ALL_ACCESS                                                                   \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_FLUSH_GLOBAL)
#define PERSISTENT IBV_ACCESS_FLUSH_PERSISTENT
#define BUF	   (256 * 1024)
#define US	   1000ull
#define MS	   1000000ull

#define MASK_INIT (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define MASK_RTR                                                         \
	(IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
	 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define MASK_INIT_UD (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY)
#define MASK_RTR_UC  (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define MASK_RTS                                                                \
	(IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | \
	 IBV_QP_MAX_QP_RD_ATOMIC)

/* A source whose answers a test decides. */
struct test_source {
	struct source source;
	uint64_t state;			 /* of the generator */
	unsigned permille[CHOICE_KINDS]; /* how often an answer is not 0 */
	unsigned (*answer)(const struct choice_point *at, unsigned n); /* instead */
	unsigned asked[CHOICE_KINDS];
};

struct side {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *scq, *rcq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *qpx;
	uint8_t *buf;
	struct ibv_mr *mr;
	union ibv_gid gid;
};

struct options {
	struct hardware hw;
	uint32_t psn;
	enum ibv_mtu mtu;
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer, rd_atomic, dest_rd_atomic;
	unsigned qp_access, send_wr, recv_wr, sge, inline_bytes, cqe;
	int sig_all;
	uint64_t send_ops; /* not 0: made by ibv_create_qp_ex() */
};

extern struct options opt;
extern struct sim *sim;
extern struct pmem *pool; /* b's PM, NULL: none */
extern struct rnic_net *net;
extern struct test_source source;
extern struct side a, b;

/* The defaults; before each test. */
void setup_options(void);
/* Run fn in a task, with the two sides made: run_task(fn), or also connected, with the source on:
 * run_connected(fn); run_pm(): connected, b's buffer is PM. */
void make_sides(void);
/* The side's process has ended, and a new one makes the same objects over the same buffer. */
void restart_side(struct side *s, unsigned host);
void run(void (*start)(void *), void (*fn)(void));
void run_task(void (*fn)(void));
void run_connected(void (*fn)(void));
void run_pm(void (*fn)(void));

/* What source.answer may be: at a point `at` where this holds, this answer; elsewhere the first. */
#define ANSWER(name, when, answer)                                      \
	static unsigned name(const struct choice_point *at, unsigned n) \
	{                                                               \
		(void)n;                                                \
		return (when) ? (answer) : 0;                           \
	}

/* A test that is a run like these: task, connected or pm. What follows are assignments, of options
 * mostly, before it. */
#define RNIC_TEST(how, name, ...) RNIC_TESTS(how, name, 1, __VA_ARGS__)
#define RNIC_TESTS(how, name, n, ...)   \
	static void name##_body(void);  \
	TESTS(name, n)                  \
	{                               \
		__VA_ARGS__;            \
		run_##how(name##_body); \
	}                               \
	static void name##_body(void)

void fill(uint8_t *to, size_t len, uint64_t seed);
uint64_t word(const struct side *s, size_t off);
void set_word(struct side *s, size_t off, uint64_t value);

struct ibv_qp_attr attr_for(const struct side *peer);
int modify(struct side *s, const struct side *peer, enum ibv_qp_state to, int mask);
/* A fresh queue pair of whatever type to RTS; any to this state. A datagram's has the Q_Key QKEY.
 */
#define QKEY 0x11223344u
void connect_side(struct side *s, const struct side *peer);
void connect_both(void);
void reconnect(void); /* from whatever state */
void bring_to(struct side *s, const struct side *peer, enum ibv_qp_state to);

/* The side's queue pair is replaced by one of this type; srq NULL: with a receive queue of its
 * own. */
void remake_qp(struct side *s, enum ibv_qp_type type, struct ibv_srq *srq);

/* A signaled request of s, its data at `off` of its buffer, for `remote` in the peer's. */
struct ibv_send_wr wr_make(const struct side *s, enum ibv_wr_opcode opcode, struct ibv_sge *sge,
			   size_t off, uint32_t len, const struct side *peer, size_t remote);
void post(struct side *s, struct ibv_send_wr *wr);
void op(struct side *s, enum ibv_wr_opcode opcode, size_t off, uint32_t len,
	const struct side *peer, size_t remote, uint64_t id, unsigned flags);
/* The same two, and the completion: of this status; success. */
void post_done(struct side *s, struct ibv_send_wr *wr, enum ibv_wc_status status);
void op_done(struct side *s, enum ibv_wr_opcode opcode, size_t off, uint32_t len,
	     const struct side *peer, size_t remote);
void recv_post(struct side *s, size_t off, uint32_t len, uint64_t id);
/* Rounds of WRITEs, SENDs, READs and atomics of random sizes, and the right bytes of each. The
 * receiver may be late each second time. */
void random_traffic(unsigned rounds, bool late);

/* A packet of a's, as it would come to b's queue pair next, for the beginning of b's buffer. */
struct packet *packet_to_b(uint8_t opcode, uint32_t len, int byte);
void deliver_to_b(struct packet *pkt);
struct ibv_wc wait_for(struct ibv_cq *cq);
void expect(struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status);
bool empty(struct ibv_cq *cq);

/* From now on b's events are noted, and a has none. So many came; so many of this type and
 * object. */
void note_events(void);
extern unsigned event_count;
unsigned noted(enum ibv_event_type type, const void *element);

#endif
