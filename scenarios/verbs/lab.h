/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_SCENARIOS_VERBS_LAB_H
#define TM_SCENARIOS_VERBS_LAB_H
/*
 * Small verbs programs that run on any RNIC and say what happened, so that two RNICs can be
 * compared line by line: the soft RNIC (scenarios/verbs_sim.c) and a device of the system's
 * libibverbs (verbs_live.c).
 *
 * All programs are compiled once. Their object is linked twice: with ibv_* renamed to the soft
 * RNIC's functions, and as it is. What is different in the two worlds is in `struct lab_world`: the
 * clock, and how to wait.
 *
 * A program plays all hosts itself: end `a` is a client's, end `b` the server's, both with a
 * domain, completion queues, a buffer that is a region, and a queue pair. It sets lab->opt, calls
 * lab_connect(), posts, waits. What it prints is the same on every run of one RNIC and means the
 * same on all: errno of calls, completions in the order of their queue, memory, states. No key,
 * number of a queue pair, address or time.
 *
 * Each call that prints prints one line, also when it failed, so that lines of two worlds are in
 * step.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "core/verbs_compat.h"

#define LAB_HOSTS 2
#define LAB_BUF	  (256u * 1024) /* bytes: an end's buffer */
#define LAB_SGES  8

#define LAB_MS	  1000000ull	  /* ns */
#define LAB_WAIT  (4000 * LAB_MS) /* a completion that has not come by then does not come */
#define LAB_QUIET (100 * LAB_MS)  /* when nothing is to come: look again after that */

struct lab;

/* What a world gives to a program. */
struct lab_world {
	struct ibv_context *host[LAB_HOSTS]; /* of b, the server; of a, the client */
	uint8_t gid_index;
	void *arg;
	void (*rest)(void *arg); /* let others run */
	uint64_t (*now)(void *arg);
	void (*line)(void *arg, const char *text);
	/* ibv_create_qp_ex() and ibv_wr_flush(), however this world has FLUSH. */
	struct ibv_qp *(*create_qp)(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
	void (*flush)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t va, size_t len, uint8_t type,
		      uint8_t level);
};

enum verbs_how {
	BY_WR = 1, /* requests are posted by ibv_wr_*, not by ibv_post_send() */
};

struct verbs_program {
	const char *name; /* NULL: the end of the table */
	const char *what; /* one sentence */
	void (*run)(struct lab *lab);
	unsigned how; /* enum verbs_how */
};

/* Options of ends. lab_new() sets what most programs want. */
struct lab_options {
	bool by_wr;
	uint32_t send_wr, recv_wr, send_sge, recv_sge, inline_bytes;
	int cqe;
	int sig_all;
	unsigned qp_access, mr_access;
	enum ibv_mtu mtu;
	uint32_t psn;
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer, rd_atomic, dest_rd_atomic;
};

/* One end of a connection. */
struct end {
	struct lab *lab;
	const char *name;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *scq, *rcq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *qpx; /* NULL: not opt.by_wr */
	uint8_t *buf;	       /* LAB_BUF bytes, zeroed */
	struct ibv_mr *mr;
	union ibv_gid gid;
	bool missed; /* a completion has not come: the next is not waited for as long */
	struct ibv_sge sge[LAB_SGES]; /* of the last lab_wr() */
};

struct lab {
	const struct lab_world *world;
	struct lab_options opt;
	struct end a, b;
};

#define LAB_ALL                                                                      \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)
#define LAB_INIT (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define LAB_RTR                                                                         \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
	 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define LAB_RTS                                                                                \
	(IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | \
	 IBV_QP_MAX_QP_RD_ATOMIC)

/* All that the object with the programs shows to the outside. */
struct verbs_table {
	/* Run one program in a world. */
	void (*run)(const struct lab_world *world, const struct verbs_program *program);
	const struct verbs_program *groups[16]; /* NULL: the end */
};

void lab_run(const struct lab_world *world, const struct verbs_program *program);

/* --- making ends --- */

/* Both ends with everything, in RESET. A call that fails prints a line and ends the program. */
void lab_make(struct lab *lab);
/* ... and connected. */
void lab_connect(struct lab *lab);
/* An end of its own: a or b again, another connection. `name` outlives it. */
void lab_end(struct lab *lab, struct end *e, const char *name, unsigned host);
/* The three steps to RTS, towards `peer`. */
void lab_to_rts(struct end *e, const struct end *peer);
/* All attributes of the path to `peer`, as opt has them; the caller sets qp_state. */
struct ibv_qp_attr lab_attr(const struct end *e, const struct end *peer);
/* A new queue pair with opt's capabilities; NULL with errno. */
struct ibv_qp *lab_qp(struct end *e);
/* Page-aligned and zeroed; the world frees it. */
uint8_t *lab_memory(struct lab *lab, size_t bytes);
/* The program cannot go on. */
_Noreturn void lab_give_up(struct lab *lab);

/* --- posting --- */

/* A signaled request of e: `len` bytes at `off` of its buffer, for `remote` in the peer's. */
struct ibv_send_wr lab_wr(struct end *e, enum ibv_wr_opcode opcode, uint64_t id, size_t off,
			  uint32_t len, const struct end *peer, size_t remote);
/* Post a list of requests by the API of the run and print what it returned. */
int lab_post(struct end *e, struct ibv_send_wr *wr);
/* Print nothing when it is 0. */
int lab_post_quietly(struct end *e, struct ibv_send_wr *wr);
/* lab_wr() and lab_post(). */
int lab_op(struct end *e, enum ibv_wr_opcode opcode, uint64_t id, size_t off, uint32_t len,
	   const struct end *peer, size_t remote);
/* Post a receive request and print nothing when it is 0. */
int lab_recv(struct end *e, uint64_t id, size_t off, uint32_t len);
/* A FLUSH, by ibv_wr_*. */
int lab_flush(struct end *e, uint64_t id, const struct end *peer, size_t remote, size_t len,
	      uint8_t type, uint8_t level);

/* --- waiting and printing --- */

/* The next `n` completions of the send queue's, the receive queue's completion queue. */
void lab_sent(struct end *e, unsigned n);
void lab_received(struct end *e, unsigned n);
/* What else is there after a while: normally nothing. */
void lab_no_more(struct end *e);
/* Wait for one completion, print nothing. False: none came. */
bool lab_take(struct end *e, struct ibv_cq *cq, struct ibv_wc *wc);
/* The state that ibv_query_qp() gives, when things are quiet. */
void lab_state(struct end *e);
/* Bytes of an end's buffer when things are quiet: a few as hex, many as a hash. */
void lab_bytes(struct end *e, size_t off, size_t len);
/* Let everything that is under way arrive. */
void lab_settle(struct lab *lab);
void lab_sleep(struct lab *lab, uint64_t ns);
void lab_say(struct lab *lab, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The name of what a call returned, "0", "EINVAL"; lab_errno(): for NULL or a value below 0. */
const char *lab_error(int error);
/* Bytes that depend on `seed` and their place. */
void lab_fill(uint8_t *to, size_t len, unsigned seed);

#endif
