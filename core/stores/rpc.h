/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_RPC_H
#define TM_STORES_RPC_H
/*
 * What every store here has between client and server: one reliable connection
 * per client, request and reply messages by SEND/RECV, and one-sided access to
 * the regions which the server exports; and, for a client that asks for it, a second
 * connection on which the server speaks first. Plain libibverbs; nothing of any store.
 *
 *	rpc_client.c	the client's end
 *	rpc_server.c	the server's end
 *	rpc_qp.c	queue pairs, and what is said when a client connects
 *
 * Offsets and region numbers travel, never addresses: a region's base address
 * and rkey are exchanged once, out of band, when the client connects.
 *
 * Messages are structs of the store with a fixed layout. Zero them before
 * filling them, so that padding is the same in every run.
 *
 * All functions return 0 or -errno. -EIO: a completion reported an error (or the
 * connection had failed before; it does not come back). -ENOMEM: a request could not be
 * posted, nothing was sent, and the connection is as good as it was. They wait for their
 * completion for ever, in rt_yield().
 */
#include <infiniband/verbs.h>
#include "core/tidemark.h"

#define RPC_REGIONS 8 /* exported regions of a server, at most */
#define RPC_SLOTS   2 /* messages of one client that can be on their way to the server */

/* An exported region, as the client knows it. */
struct rpc_region {
	uint64_t base; /* the server's address of offset 0 */
	uint64_t len;  /* bytes */
	uint32_t rkey;
	uint32_t unused;
};

/* ------------------------------------------------------------------ client */

/*
 * A client's connection. One operation at a time. `buf` is the one registered
 * buffer: outgoing message, incoming message, data.
 */
struct rpc_conn {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *buf;
	size_t msg_bytes, data_bytes;
	bool failed;	    /* a completion reported an error: the queue pair is dead */
	bool expecting;	    /* a receive is posted for the next message */
	bool assumes;	    /* a seeded bug: it counts as posted although the call failed */
	bool sent, arrived; /* completions that were not waited for yet: of a request, of a
			       message */
	unsigned unawaited; /* requests posted earlier, whose completions were not waited for */
	size_t in_len;	    /* bytes of the message that arrived */
	struct rpc_region region[RPC_REGIONS];
	unsigned regions;
	uint32_t word;	/* what the server's word was then (struct rpc_server) */
	unsigned index; /* the connection's number at the server */
	uint8_t *own;	/* memory to which the server WRITEs; NULL: none */
	struct ibv_mr *own_mr;
};

/*
 * Connect to the server. Messages of at most msg_bytes each way; one-sided reads
 * and writes of at most data_bytes. `conn` belongs to the caller. `with`: the connection that
 * the client opened first; NULL: this is the first, and the server closes what the client has
 * left there.
 */
int rpc_open(struct rpc_conn *conn, const struct tm_env *env, size_t msg_bytes, size_t data_bytes,
	     const struct rpc_conn *with);
/* The first, and the caller posts by ibv_wr_*() as well, for which it asks with send_ops:
 * IBV_QP_EX_WITH_*. */
int rpc_open_ex(struct rpc_conn *conn, const struct tm_env *env, size_t msg_bytes,
		size_t data_bytes, uint64_t send_ops);
/* A second connection of the client, whose one-sided accesses keep no order with the first
 * one's. */
int rpc_open_further(struct rpc_conn *conn, const struct tm_env *env, size_t msg_bytes,
		     size_t data_bytes);
/* The first, with `own_bytes` of zeroed memory, a multiple of 64, to which the server WRITEs:
 * conn->own, rpc_server_write(). */
int rpc_open_own(struct rpc_conn *conn, const struct tm_env *env, size_t msg_bytes,
		 size_t data_bytes, size_t own_bytes);
void rpc_close(struct rpc_conn *conn);
/* What another task waits for on this connection will not come: it gets -EIO. */
void rpc_break(struct rpc_conn *conn);
/*
 * A connection of the client for the server's notices: rpc_wait() and rpc_send()
 * are all that is done with it, by one task at a time.
 */
int rpc_open_notices(struct rpc_conn *conn, const struct tm_env *env, size_t msg_bytes,
		     const struct rpc_conn *with);
/* Wait for the server's next notice; at most `cap` bytes of it go to `msg`, *len is its length. */
int rpc_wait(struct rpc_conn *conn, void *msg, size_t cap, size_t *len);
/* The server said that a region is elsewhere now, or new. */
void rpc_set_region(struct rpc_conn *conn, unsigned region, const struct rpc_region *where);

/* Send a request and wait for its reply: at most `cap` bytes of it go to `rsp`;
 * *rsp_len (may be NULL) is its length. */
int rpc_call(struct rpc_conn *conn, const void *req, size_t len, void *rsp, size_t cap,
	     size_t *rsp_len);
/* Send a message that has no reply. Returns when it has been sent, not when it has been handled. */
int rpc_send(struct rpc_conn *conn, const void *msg, size_t len);
/*
 * Read [off, off+len) of a region. *data points into the connection's buffer,
 * aligned as malloc() aligns, and stays valid until the next operation.
 * -ERANGE: outside of the region; nothing was sent.
 */
int rpc_read(struct rpc_conn *conn, unsigned region, uint64_t off, size_t len, const void **data);
/* Write to a region; -ERANGE as above. The completion says neither visible nor durable. */
int rpc_write(struct rpc_conn *conn, unsigned region, uint64_t off, const void *data, size_t len);
/* The same, but does not wait: an rpc_call() follows, which the server gets after it, or
 * rpc_settle(). */
int rpc_write_behind(struct rpc_conn *conn, unsigned region, uint64_t off, const void *data,
		     size_t len);
/* Wait for what was posted and not waited for: only then may there be another rpc_write_behind().
 */
int rpc_settle(struct rpc_conn *conn);
/* Write 8 bytes, which land after what rpc_write_behind() has posted. */
int rpc_write_word(struct rpc_conn *conn, unsigned region, uint64_t off, uint64_t word);
/* Compare the word at `off` with `expected` and, if it is that, make it `desired`: one remote
 * atomic. *found: what it was before. */
int rpc_cas(struct rpc_conn *conn, unsigned region, uint64_t off, uint64_t expected,
	    uint64_t desired, uint64_t *found);
/* WRITE_WITH_IMM as a request: the server's handler is called with `imm`; wait for its reply, as
 * rpc_call() does. */
int rpc_call_imm(struct rpc_conn *conn, unsigned region, uint64_t off, const void *data, size_t len,
		 uint32_t imm, void *rsp, size_t cap, size_t *rsp_len);

/* RDMA FLUSH for persistence of [off, off+len) of a region: what this connection wrote there is
 * durable on return, unless it is in the server's caches. -ERANGE as above. */
int rpc_flush(struct rpc_conn *conn, unsigned region, uint64_t off, size_t len);
/* RDMA Commit (core/rdma_commit.h) of [off, off+len) of a region: what this connection wrote there
 * is durable on return. -ERANGE as above. */
int rpc_commit(struct rpc_conn *conn, unsigned region, uint64_t off, size_t len);
/* The same with a payload for the last 8 bytes of the range. */
int rpc_commit_payload(struct rpc_conn *conn, unsigned region, uint64_t off, size_t len,
		       uint64_t payload);
/* The same with an immediate, as a request: rpc_call_imm() without data. */
int rpc_call_commit(struct rpc_conn *conn, unsigned region, uint64_t off, size_t len, uint32_t imm,
		    void *rsp, size_t cap, size_t *rsp_len);

/* ------------------------------------------------------------------ server */

/* A message as the handler gets it. */
struct rpc_msg {
	unsigned index;	   /* the connection (struct rpc_server: peer) */
	uint32_t client;   /* the client's own number (tm_env.client) */
	bool notices;	   /* it came on the client's connection for notices */
	const void *bytes; /* NULL with an immediate */
	size_t len;	   /* SEND: bytes of the message; immediate: bytes that were written */
	bool has_imm;	   /* a WRITE_WITH_IMM, or a Commit with immediate */
	uint32_t imm;
};

/*
 * Handle one message: fill `reply` (zeroed, `cap` bytes) and return how much of
 * it to send; 0 for no reply. May not block.
 */
typedef size_t rpc_handler(void *arg, const struct rpc_msg *msg, void *reply, size_t cap);

/* A connection, the server's end. */
struct rpc_peer {
	struct ibv_qp *qp; /* NULL: dropped */
	uint32_t client;
	uint32_t generation; /* how often another connection of its client has taken its place */
	uint8_t kind;	     /* enum rpc_kind */
	bool notices;
	bool busy;	/* what it sent is being handled */
	bool notifying; /* its NIC has not acknowledged the last notice */
	bool failed;
	unsigned writing;      /* so many WRITEs to it has its NIC not acknowledged */
	struct rpc_region own; /* where they go; .len 0: nowhere */
	unsigned refused;      /* so many requests in a row could not be posted */
	uint64_t since;	       /* rt_now(): its last notice was sent, or it connected */
	/* The store's own, 0 when it connects: of its notices the last one sent and the last
	 * acknowledged. */
	uint64_t told, acked;
};

/*
 * Every client has RPC_SLOTS slots, a slot is one message buffer and the buffer for its
 * reply. It is posted, filled, handled, replied from, and posted
 * again when the reply has been acknowledged: a client never outruns the server's
 * buffers, its NIC waits (receiver not ready).
 *
 * A client that connects again, because it was started anew or its connection failed, takes the
 * place of its former self, whose connections are closed: nothing that came over them and
 * has not been handled is handled any more.
 */
struct rpc_server {
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_cq *cq; /* of all clients, sends and receives */
	struct ibv_mr *msg_mr, *reply_mr;
	uint8_t *msgs;	  /* per connection RPC_SLOTS messages */
	uint8_t *replies; /* DRAM: likewise; then per connection a notice */
	size_t msg_bytes;
	struct rpc_peer *peer; /* in the order in which they first connected */
	unsigned peers, max_peers;
	uint32_t *owed; /* per slot: 1 it has to be posted, 1 + n its reply of n bytes has to be
			   sent; 0 neither */
	bool owing;	/* there may be such slots */
	struct ibv_mr *export_mr[RPC_REGIONS];
	struct rpc_region region[RPC_REGIONS];
	unsigned regions;
	unsigned qp_access; /* IBV_ACCESS_* of its queue pairs; may be added to before clients
			       connect */
	bool leaks;	    /* a seeded bug: a client that connects again gets further places, and
			     * those that it had are never free again */
	bool takes_busy;    /* a seeded bug: a client that connects again takes the place of its
			     * former self while a request of that is handled */
	bool pays_once;	    /* a seeded bug: what is refused a second time is not tried again */
	uint32_t word;	    /* the store's own: each client that connects gets it */
	/* The store's own, may be NULL: with `others` connects whose number is above this one's
	 * tm_params.clients: another server, say, whose requests a task of its own answers. */
	struct rpc_server *others;
	unsigned clients;
	/* The store's own, may be NULL: a client connects as number `index`. Nothing that it sent
	 * over an earlier connection lands from now on. May not block. */
	void (*connected)(void *arg, unsigned index);
	rpc_handler *handler;
	void *arg;
};

/* Prepare for tm_params.clients clients, each with two connections. `server` belongs to the caller
 * and stays where it is. */
int rpc_server_init(struct rpc_server *server, const struct tm_env *env, size_t msg_bytes,
		    rpc_handler *handler, void *arg);
/* The same with message buffers at `msgs`, 64-byte aligned, rpc_server_msgs_bytes() of them:
 * receive buffers in PM, say. They start with what they hold. NULL: as rpc_server_init(). */
int rpc_server_init_in(struct rpc_server *server, const struct tm_env *env, size_t msg_bytes,
		       rpc_handler *handler, void *arg, void *msgs);
size_t rpc_server_msgs_bytes(const struct tm_params *params, size_t msg_bytes);
/* Export memory (PM or DRAM) as the next region: 0, 1, ... `access`: IBV_ACCESS_*. Clients that
 * connect from then on know it; the others need a notice (struct rpc_region,
 * rpc_set_region()). */
int rpc_server_export(struct rpc_server *server, void *addr, size_t len, int access);
/* The same as region number `region`, which is free. */
int rpc_server_export_at(struct rpc_server *server, unsigned region, void *addr, size_t len,
			 int access);
/* Deregister a region. What clients' NICs had written before has landed when this returns; a
 * request that still names it fails, and so does its connection (knob rkey_reuse: not if the memory
 * is exported again). */
void rpc_server_unexport(struct rpc_server *server, unsigned region);
/* Take connections from now on. */
int rpc_server_listen(struct rpc_server *server);
/* Handle what has arrived. Returns the number of completions; 0: nothing, the caller may yield. */
unsigned rpc_server_poll(struct rpc_server *server);
/* Send a notice on connection `index`, which is one for notices. -EBUSY: the last one is still on
 * its way; -EIO: the connection has failed or was dropped; or is dropped now, with the client's
 * others. */
int rpc_server_notify(struct rpc_server *server, unsigned index, const void *msg, size_t len);
/* WRITE [off, off+len) of an exported region to `to` in the memory of connection `index`; what was
 * written before lands before. The bytes are to stay as they are until the peer's `writing` is 0.
 * -EIO: the connection has failed or was dropped. -ERANGE: outside of either; nothing was sent. */
int rpc_server_write(struct rpc_server *server, unsigned index, unsigned region, uint64_t off,
		     size_t len, uint64_t to);
/* Close all connections of a client: nothing that it has sent takes effect from now on. */
void rpc_server_drop(struct rpc_server *server, uint32_t client);
/* A server task that does nothing else: polls and yields for ever. `server`: a struct
 * rpc_server. */
void rpc_server_task(void *server);

#endif
