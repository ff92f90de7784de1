/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_LIVE_HOST_H
#define TM_LIVE_HOST_H
/* A host of the live world from inside: what live.c, live_memory.c and live_verbs.c share. See
 * live.h. */
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include "core/live/live.h"
#include "core/live/live_calls.h"
#include "core/live/live_config.h"
#include "core/tidemark.h"

#define LIVE_PEERS  (LIVE_SERVERS + 1) /* the service is the last one */
#define LIVE_POSTED 64
#define LIVE_POLLED 4 /* completion queues that one task waits for, at most */

/* What store code was given by libibverbs. Those of later kinds hold those of earlier ones. */
enum live_kind { LIVE_PD, LIVE_CQ, LIVE_MR, LIVE_QP };

struct live_object {
	struct live_object *next;
	enum live_kind kind;
	void *object;
	struct ibv_comp_channel *channel; /* of a completion queue */
	bool armed;			  /* the next completion makes an event in the channel */
};

/* A store's memory begins right after its block. */
struct live_block {
	struct live_block *next, *previous;
	void *start; /* for free() */
	size_t size; /* bytes for the store */
};

struct live_task {
	struct live_host *host;
	void (*fn)(void *arg);
	void *arg;
	pthread_t thread;
	struct live_task *next;		/* of the host's */
	struct live_task *next_waiting; /* for the baton */
	pthread_cond_t turn;
	jmp_buf leave;
	/* The completion queues found empty since the last yield. */
	struct ibv_cq *polled[LIVE_POLLED];
	unsigned empty;
	unsigned idle;	 /* yields since something was found */
	uint64_t nap_ns; /* how long it last waited in vain */
};

/* A request on a queue pair. */
struct live_posted {
	uint32_t qp;
	uint8_t opcode;
};

struct live_host {
	struct ibv_context *verbs;
	unsigned number; /* as which it asks servers */
	/* Of several servers, where: the service; this one, when it serves. Or "". */
	char service[CONFIG_ADDRESS], address[CONFIG_ADDRESS];
	struct live_peer {
		pthread_mutex_t asks;  /* one at a time */
		struct rendezvous *to; /* changed with `lock` held, too */
	} peer[LIVE_PEERS];
	pthread_t renews; /* a server's lease */
	bool renewing;
	uint64_t start_ns;
	atomic_bool stopping;
	atomic_uint links;   /* of struct injected */
	atomic_uint refused; /* requests that failed by themselves: neither links nor flushed */
	atomic_ullong bad;   /* struct bad_completion: vendor << 32 | posted << 8 | status */
	atomic_uint dropped[TM_MAX_CLIENTS + 1]; /* by client */
	int stop_fd;				 /* readable when stopping */
	pthread_mutex_t lock;			 /* of what follows */
	uint64_t heard_ns;		/* the service answers what was asked then; 0: not */
	uint32_t lease;			/* which one it is */
	struct live_task *holder;	/* of the baton; NULL: it is free */
	struct live_task *first, *last; /* wait for it */
	struct live_task *tasks;
	/* Only the holder of the baton uses these: */
	struct rt_config config; /* the last that it has heard */
	rt_accept_fn *accept;
	void *accept_arg;
	struct live_block *blocks;
	struct live_object *objects;
	struct live_posted posted[LIVE_POSTED]; /* the last ones, by the queue pair's number */
};

/* The task that runs on this thread. */
struct live_task *live_self(void);
/* Without the baton it may block; then it goes on with it, or leaves, as its host was stopped. */
void live_let_go(struct live_task *task);
void live_go_on(struct live_task *task);
/* Whom the host asks (live_peers.c). */
void live_peers_init(struct live_host *host, const struct live_peers *peers);
int live_peers_begin(struct live_host *host);
void live_peers_break(struct live_host *host);
void live_peers_free(struct live_host *host);
int live_peers_injected(struct live_host *host, struct injected *out);
/* It found something to do: its next waits are short. */
void live_busy(struct live_task *task);
/* Give back all objects, and all memory. */
void live_objects_free(struct live_host *host);
void live_blocks_free(struct live_host *host);
/* The entry of a completion queue; NULL: it is no more. */
struct live_object *live_cq(struct live_host *host, const struct ibv_cq *cq);

#endif
