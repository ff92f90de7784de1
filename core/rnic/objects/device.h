/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RNIC_OBJECTS_DEVICE_H
#define TM_RNIC_OBJECTS_DEVICE_H
/*
 * The objects of the soft RNIC except the queue pair (qp.h): the net, a host's
 * RNIC, protection domains, memory regions, completion queues. Each begins with
 * the structure that libibverbs shows its user.
 */
#include <infiniband/verbs.h>
#include "core/hardware/mutant.h"
#include "core/rnic/count.h"
#include "core/rnic/ground.h"
#include "core/rnic/memory.h"
#include "core/rnic/transport/packet.h"
#include "core/rnic/rnic.h"

#define RNIC_HOSTS     32	  /* of a simulation */
#define BUFFER_CLASSES 31	  /* powers of two up to 2^30 bytes */
#define MAX_MESSAGE    (1u << 30) /* bytes */
#define MAX_WR	       16384	  /* of one work queue */
#define MAX_SGE	       16
#define MAX_INLINE     1024 /* bytes */
#define MAX_CQE	       4194303
#define MAX_RD_ATOMIC  16
#define MAX_OBJECTS    65536	 /* of one host, of each kind below, at a time */
#define MAX_MR	       65535	 /* of one host, at a time */
#define LOSSY_ROOM     16	 /* entries that queues have at least, on a lossy link */
#define GRH_BYTES      40	 /* in front of a datagram that was received */
#define QPN_FIRST      16	 /* 0 and 1 are special in InfiniBand */
#define QPN_LIMIT      0xffffffu /* which is the number of all multicast groups */

struct link;
struct rnic_qp;
struct rnic_cq;
struct rnic_hca;
struct rnic_ah;
struct xrc;

struct rnic_net {
	struct rnic_ground ground;
	struct hardware hw;
	struct link *link;
	struct rnic_qp **qp; /* by number - qpn_first; NULL: destroyed */
	uint32_t qps, qp_room, qp_cursor;
	uint32_t qpn_first, qpn_limit;
	struct xrc *xrc;	 /* NULL: no domain was ever opened */
	struct rnic_qp *free_qp; /* live world: destroyed ones, as the next */
	struct rnic_cq *free_cq;
	struct packet *free_packet;
	void *free_buffer[BUFFER_CLASSES]; /* first word: next */
	struct last_word *parted;	   /* of queue pairs that were destroyed; see repair.c */
	unsigned parted_next;
	uint64_t *count; /* by enum rnic_count; NULL: nobody counts */
	/* Takes what comes for queue pair 1. NULL: nobody does. */
	void (*management)(struct rnic_net *net, struct packet *pkt);
	void (*torn)(const struct packet *pkt); /* live world: a part of the packet is in memory;
						   does not return */
	unsigned hosts;
	struct rnic_hca *hca[]; /* of each host; live world: of each context that is open */
};

/* Of the live world: whoever waits for a completion or an event is told. NULL: nobody waits. */
struct rnic_hooks {
	void (*completion)(struct rnic_cq *cq); /* what the queue was armed for is there */
	/* `element`: the queue pair, completion queue, shared receive queue; NULL: the port. */
	void (*event)(struct rnic_hca *hca, enum ibv_event_type type, void *element);
	void *arg; /* theirs */
};

/* One host's RNIC. */
struct rnic_hca {
	struct rnic_net *net;
	unsigned host;
	unsigned qps;			/* created so far: names their actors */
	unsigned objects;		/* that the user has to give back */
	unsigned pds, cqs, shared, ahs; /* of these */
	unsigned srqs;			/* created so far: names them */
	struct rnic_ah *free_ah;
	struct rnic_hooks hooks;
	const struct rnic_memory *memory;
	void *memory_arg; /* its first argument */
	union ibv_gid gid;
	struct rnic_mr **mr; /* by slot, from 1; dead ones stay */
	uint32_t mrs, mr_room, mr_cursor;
	uint32_t *slots;  /* live world: the first slot of each hash of a key's index */
	unsigned windows; /* that are bound */
	struct ibv_device device;
	struct verbs_context verbs; /* what the user holds is its .context */
};

static inline struct rnic_hca *to_hca(struct ibv_context *context)
{
	return (struct rnic_hca *)((char *)context - offsetof(struct rnic_hca, verbs.context));
}

/* The GID of an IPv4 address, in host byte order: ::ffff:a.b.c.d (RoCEv2). */
void rnic_gid(uint32_t address, union ibv_gid *gid);
/* Of a simulation's host: 10.0.0.1, 10.0.0.2, ... */
#define RNIC_SIM_ADDRESS(host) ((10u << 24) + (host) + 1)

/* Tell the program of an affiliated event, or, element NULL, one of the port. */
static inline void rnic_event(struct rnic_hca *hca, enum ibv_event_type type, void *element)
{
	if (hca->hooks.event)
		hca->hooks.event(hca, type, element);
}

struct rnic_pd {
	struct ibv_pd ibv;
	unsigned users; /* memory regions, windows, queue pairs, shared receive queues, address
			   handles, parent domains */
	struct rnic_pd *base; /* of a parent domain: the one that it stands for; NULL: itself */
	struct ibv_td *td;
	bool dead;
};
/* A parent domain is as good as the domain that it was made of. */
static inline bool same_pd(const struct ibv_pd *a, const struct ibv_pd *b)
{
	const struct rnic_pd *x = (const struct rnic_pd *)a, *y = (const struct rnic_pd *)b;
	return x == y || (x->base ? x->base : x) == (y->base ? y->base : y);
}

/* --- addresses (ah.c) --- */

struct rnic_ah {
	struct ibv_ah ibv;
	uint32_t peer; /* the link's number of the host */
	uint8_t traffic_class;
	bool live;
	struct rnic_ah *next; /* of those that are free */
};

/* The link's number of the host that the path leads to. A positive errno: there is no such path. */
int rnic_path(const struct rnic_hca *hca, const struct ibv_ah_attr *ah, uint32_t *peer);
/* The GRH_BYTES in front of a datagram's data. */
void rnic_put_grh(struct rnic_hca *hca, const struct packet *pkt, uint8_t *to);
/* What the 40 bytes are, as a datagram's completion says it in its field `sl`. */
uint8_t rnic_header_kind(const struct rnic_hca *hca);

/* --- memory (mr.c, mw.c) --- */

enum mr_kind { MR_REGION, MR_NULL, MR_WINDOW_1, MR_WINDOW_2 };

/* A region, or a window on one. */
struct rnic_mr {
	struct ibv_mr ibv; /* a window has an rkey, of what it is bound as, and no lkey */
	struct ibv_mw mw;  /* what the user of a window holds */
	uint64_t iova;	   /* what addresses in work requests count from */
	uint8_t *host;	   /* where that is in this process */
	uint64_t len;
	int access;
	bool used; /* somebody holds it */
	bool live; /* and it has a key that is good: a window is bound */
	uint8_t kind;
	bool in_pm;	 /* all of it lies in the host's pool ... */
	uint64_t pm_off; /* ... from this offset on */
	uint8_t generation;
	uint32_t index;		/* the upper 24 bits of its keys */
	uint32_t next_slot;	/* live world: with the same hash */
	uint32_t windows;	/* bound to this region */
	struct rnic_mr *region; /* that this window is bound to */
	uint32_t qpn; /* of the queue pair that this window serves, 0: any of its domain */
};

/* The live region with this key if it belongs to pd, allows all of `access`, and holds [va, va +
 * len). */
struct rnic_mr *mr_local(struct rnic_hca *hca, const struct ibv_pd *pd, uint32_t lkey, int access,
			 uint64_t va, uint64_t len);
/* The same for the peer of a queue pair: a live region, or a window that is bound. */
struct rnic_mr *mr_remote(const struct rnic_qp *qp, uint32_t rkey, int access, uint64_t va,
			  uint64_t len);
/* Of whatever length. */
struct rnic_mr *mr_remote_whole(const struct rnic_qp *qp, uint32_t rkey, int access);
/* The region with this lkey, whoever may use it; NULL: there is none. */
struct rnic_mr *mr_of_lkey(struct rnic_hca *hca, uint32_t lkey);
/* A window with this rkey; NULL: there is none that is bound. */
struct rnic_mr *mr_of_window(struct rnic_hca *hca, uint32_t rkey);
/* A slot for a new region or window, named; NULL: all are in use. */
struct rnic_mr *mr_slot(struct rnic_hca *hca);
uint32_t mr_key(const struct rnic_mr *mr, bool remote);
/* Everything that was let in for the region lands. */
void mr_settle(struct rnic_hca *hca, const struct rnic_mr *mr);

/* Bind, or invalidate, as the request says; IBV_WC_SUCCESS, or why not. */
struct wqe;
enum ibv_wc_status mw_execute(struct rnic_qp *qp, const struct wqe *wqe);
/* May the peer of this queue pair invalidate the key? Do it. */
bool mw_may_invalidate(const struct rnic_qp *qp, uint32_t rkey);
void mw_invalidate(struct rnic_qp *qp, uint32_t rkey);
/* The queue pair goes: so do the windows that serve it alone. */
void mw_drop_qp(struct rnic_qp *qp);

static inline const struct rnic_ground *mr_ground(const struct rnic_mr *mr)
{
	return &to_hca(mr->ibv.context)->net->ground;
}
static inline uint8_t *mr_host(const struct rnic_mr *mr, uint64_t va)
{
	return (uint8_t *)((uintptr_t)mr->host + (va - mr->iova)); /* host may be NULL */
}
/* Bytes from `at` to the end of its line. DRAM counts from the region's start, so that lines do not
 * depend on where the heap put it. */
static inline uint32_t mr_line_left(const struct rnic_mr *mr, const uint8_t *at)
{
	uint64_t off = (uint64_t)(at - mr->host) +
		       (mr->in_pm ? mr->pm_off : (uintptr_t)mr->host & 15);
	return LINE - off % LINE;
}
/* For the story: words for an address in a region (dead or alive) of any host of this net. */
void rnic_key_place(const struct rnic_net *net, uint32_t rkey, uint64_t va, char *buf, size_t size);

/* The RNIC reads and writes memory, as memory.h says; see dma.c. */
bool dma_read(struct rnic_hca *hca, const struct rnic_mr *mr, const uint8_t *from, void *to,
	      uint32_t len);
bool dma_write(struct rnic_hca *hca, const struct rnic_mr *mr, uint8_t *to, const void *from,
	       uint32_t len, const struct packet_name *name);
bool dma_flush(struct rnic_hca *hca, const struct rnic_mr *mr, uint8_t *at, uint64_t len,
	       bool sends, const struct packet_name *name);
void dma_arrive(struct rnic_hca *hca, const struct rnic_mr *mr, uint8_t *to, const void *from,
		uint32_t len, const struct packet_name *name);
/* In one access: only where the memory has compare_swap() and fetch_add(). */
bool dma_atomic(struct rnic_hca *hca, uint8_t *at, const struct packet *request,
		uint64_t *original);

/* A scatter/gather list walked in pieces that are contiguous in memory. */
struct piece {
	struct rnic_mr *mr;
	uint8_t *host;
	uint32_t len;
};
/* The piece of at most `len` bytes at byte `off` of the list; false: it is not allowed (PD, access,
 * bounds), or the list ends there. */
bool sge_piece(struct rnic_hca *hca, const struct ibv_pd *pd, const struct ibv_sge *sge,
	       unsigned sges, uint32_t off, uint32_t len, int access, struct piece *out);
/* Is [off, off + len) of the list allowed? */
bool sge_allowed(struct rnic_hca *hca, const struct ibv_pd *pd, const struct ibv_sge *sge,
		 unsigned sges, uint64_t off, uint64_t len, int access);
uint64_t sge_bytes(const struct ibv_sge *sge, unsigned sges);
/* Copy from the list's byte off on; false: not allowed. */
bool sge_gather(struct rnic_hca *hca, const struct ibv_pd *pd, const struct ibv_sge *sge,
		unsigned sges, uint32_t off, uint8_t *to, uint32_t len);
bool sge_scatter(struct rnic_hca *hca, const struct ibv_pd *pd, const struct ibv_sge *sge,
		 unsigned sges, uint32_t off, const uint8_t *from, uint32_t len,
		 const struct packet_name *name);

/* --- completion queues (cq.c, cq_ex.c) --- */

/* An entry: what the user sees, and whose it is. */
struct cqe {
	struct ibv_wc wc;
	struct rnic_qp *qp;
	uint32_t seq; /* the work request's number in its queue; `xrc`: of the shared receive
		       * queue */
	bool recv, solicited;
	bool xrc; /* a target queue pair received it: the request was the shared receive queue's */
	uint64_t at_ns;	    /* when it was put in */
	struct op_label op; /* of the message */
};

/* Which entry makes an event. */
enum cq_armed {
	CQ_UNARMED,
	CQ_ARMED_SOLICITED,
	CQ_ARMED_NEXT,
};

/* Between ibv_start_poll() and ibv_end_poll(). */
struct cq_batch {
	bool open, named;
	const void *owner; /* the task that opened it */
	struct cqe current;
	uint8_t class; /* of its buffer */
};

struct rnic_cq {
	union {
		struct ibv_cq ibv;
		struct ibv_cq_ex ex;
	};
	struct cqe *ring;	   /* grows up to ibv.cqe entries */
	uint8_t ring_class;	   /* of its buffer */
	uint32_t room, head, tail; /* head: next to poll; tail: next to fill; both run on */
	unsigned users;		   /* a queue pair counts once as sender, once as receiver */
	bool overrun, dead;
	bool ignores_overrun, single_threaded;
	uint8_t armed;			  /* enum cq_armed */
	struct ibv_moderate_cq moderated; /* one event for so many entries, or after so long */
	uint32_t withheld;		  /* entries that moderation keeps back */
	struct alarm moderation;
	struct rnic_event failing; /* of the queue pairs, after an overrun */
	uint32_t reported;	/* live: events that the program has read, and will acknowledge */
	struct rnic_pd *parent; /* the parent domain, or NULL */
	struct cq_batch *batch; /* NULL: there is no iterating over it */
	struct rnic_cq *next;	/* of those that were given back */
};

/* Put an entry in. When there is no room the entry is lost, and the queue's queue pairs will
 * fail. */
void cq_push(struct rnic_net *net, struct rnic_cq *cq, const struct cqe *cqe);
/* As qp_give_back(). */
void cq_give_back(struct rnic_cq *cq);
/* Take out what is left of a queue pair that was reset or destroyed. */
void cq_purge(struct rnic_cq *cq, const struct rnic_qp *qp);
/* The same for a shared receive queue of XRC, by its number. */
void cq_purge_srq(struct rnic_cq *cq, uint32_t srqn);
int rnic_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int rnic_req_notify_cq(struct ibv_cq *cq, int solicited_only);
/* What an iterating poll (cq_ex.c) has of ibv_poll_cq(): the next entry; NULL: there is none, or,
 * `*named`, it is one that names what the task works for, as did one before. */
const struct cqe *cq_take(struct rnic_cq *cq, bool *named);
/* A step of the task that polls. False: the queue is empty. */
bool cq_step(struct rnic_cq *cq);
/* ibv_start_poll() and so on. */
int cq_ex_start(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr);
int cq_ex_next(struct ibv_cq_ex *cq);
void cq_ex_end(struct ibv_cq_ex *cq);

#endif
