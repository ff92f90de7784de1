/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RNIC_OBJECTS_QP_H
#define TM_RNIC_OBJECTS_QP_H
/*
 * The queue pair: its two work queues, the requester that works off the send
 * queue, the responder that serves the peer's requests.
 *
 * Work requests are numbered from 0 in each queue; every mark in a queue (what
 * is posted, sent, acknowledged, completed, free again) is such a number. All
 * numbers and packet sequence numbers wrap.
 */
#include "core/rnic/objects/device.h"
#include "core/rnic/transport/link.h"
#include "core/verbs_compat.h"

/* A posted send request. */
struct wqe {
	uint64_t wr_id;
	uint8_t opcode;	   /* enum ibv_wr_opcode */
	uint8_t nonposted; /* all but SEND and WRITE: at most max_rd_atomic of them are under way */
	bool signaled, fence, solicited;
	bool rung;    /* the CPU that posted it has told the RNIC */
	bool started; /* it has packet sequence numbers */
	uint8_t copy_class;
	__be32 imm;
	uint8_t *copy;	/* inline data, or iWARP's send buffer; NULL: gather from the list */
	uint64_t bytes; /* of the message */
	uint64_t va;	/* remote */
	union {
		struct {
			uint64_t swap_add, compare;
			uint64_t flush_len; /* bytes */
		};
		struct {
			uint64_t len;	 /* bytes */
			uint32_t window; /* its slot */
			uint32_t lkey;	 /* of the region */
			int access;
		} bind;
	};
	union {
		uint8_t placement;     /* of a FLUSH */
		uint8_t traffic_class; /* of a datagram */
	};
	uint8_t selectivity;	    /* of a FLUSH */
	uint32_t rkey;		    /* remote; of a window: to be bound as, or to be invalidated */
	uint32_t peer, remote_qkey; /* of a datagram */
	union {
		uint32_t remote_qpn;  /* the same */
		uint32_t remote_srqn; /* XRC */
	};
	bool addressed,
		foreign_address; /* it has these; from an address handle of another domain */
	uint32_t first_psn, psns;
	struct op_label op;
	uint16_t occurrence;
	uint32_t message, round;
	uint32_t sges;
	struct ibv_sge sge[];
};

/* A posted receive request. */
struct rqe {
	uint64_t wr_id;
	uint32_t sges;
	uint32_t srqn; /* XRC, of one that was taken: whose it was */
	struct ibv_sge sge[];
};

struct work_queue {
	uint8_t *ring; /* room slots of `stride` bytes; grows up to what max_wr needs */
	uint8_t class; /* of the ring's buffer */
	uint32_t room, stride;
	uint32_t max_wr, max_sge;
	uint32_t posted; /* next number to be given */
	uint32_t next;	 /* next to be worked on. Send: its first packet; receive: taken by a
			  * message */
	uint32_t done;	 /* next to complete */
	uint32_t freed;	 /* next whose completion the user has not taken out yet */
};
void work_queue_init(struct work_queue *queue, size_t entry, uint32_t max_wr, uint32_t max_sge);
/* A free slot for number `seq`; `oldest`: the lowest number still in use. */
void *work_queue_slot(struct rnic_net *net, struct work_queue *queue, uint32_t oldest,
		      uint32_t seq);
/* The queue goes: its ring serves another one. */
void work_queue_drop(struct rnic_net *net, struct work_queue *queue);
static inline void *queue_at(const struct work_queue *queue, uint32_t seq)
{
	return queue->ring + (size_t)(seq & (queue->room - 1)) * queue->stride;
}

struct rnic_srq {
	struct ibv_srq ibv;
	struct rnic_hca *hca;
	struct work_queue rq; /* what no queue pair has taken is [next, posted) */
	uint32_t taken;	      /* by queue pairs, and their completions are not polled */
	uint32_t limit;	      /* 0: not armed */
	unsigned users;
	bool dead;
	/* XRC; else NULL. */
	struct rnic_xrcd *xrcd;
	struct rnic_cq *cq;
	uint32_t number;
};

/* What a process has of an XRC domain that it has opened: xrc.c. */
struct rnic_xrcd {
	struct ibv_xrcd ibv;
	struct xrc_domain *domain;
	unsigned users; /* shared receive queues, queue pairs */
	bool dead;
};

/* Packets that came ahead of their turn, in the order of their numbers. */
struct kept {
	struct packet *head;
	unsigned count;
	unsigned seen;	/* came while just this was missing */
	uint32_t gap;	/* what is missing in front of them ... */
	uint64_t until; /* ns: ... is not just late, from then on; 0: nothing is missing */
	struct alarm alarm;
};

/* Of a requester on a lossy link: repair.c. */
struct repair {
	bool on;
	bool unsure;	       /* whether anything was lost at all */
	bool ask;	       /* results that are missing may be asked for again */
	uint32_t from;	       /* una, when the last packet was sent again for it */
	uint32_t end;	       /* over when una is there */
	uint32_t burst;	       /* packets under way meanwhile */
	uint32_t sent, resent; /* next after all that was ever sent, that was sent again */
	uint32_t acked_ahead;  /* next after what is acknowledged, results that are missing aside */
	uint32_t sample_psn;   /* its answer tells how long a round trip takes */
	uint64_t sample_at;    /* ns: when it was sent; 0: there is none */
	uint64_t round_trip;   /* ns */
	uint64_t quiet;	       /* ns without news before a probe */
	uint64_t probe_at;     /* ns */
	struct kept kept;      /* results behind one that is missing */
};

struct requester {
	uint32_t acked;	    /* the oldest request that is not acknowledged; <= sq.next <= rung <=
			       sq.posted */
	uint32_t rung;	    /* next request of which the RNIC has not been told */
	uint32_t announced; /* next request for which no doorbell is on its way */
	uint32_t packet;    /* of the request sq.next: next to be sent */
	uint32_t next_psn;  /* for the next request that starts */
	uint32_t una;	    /* the oldest packet sequence number that is not acknowledged */
	uint32_t nonposted; /* under way */
	uint8_t retry_left, rnr_left;
	bool implied;	    /* a missing READ response was asked for again, no progress since */
	uint64_t deadline;  /* ns: retransmit then */
	uint64_t rnr_until; /* ns: the receiver, or the link, was not ready; 0: it is */
	struct link_patience patience;
	struct alarm tx, timer, rnr;
	struct repair repair;
};

/* An atomic, FLUSH or ATOMIC WRITE that was executed: a duplicate gets the same answer. */
struct saved_answer {
	uint32_t psn;
	bool used;
	uint8_t opcode;	   /* of the request */
	uint64_t original; /* atomic */
};

/* What a responder that serves no more has said last. */
struct last_word {
	unsigned host;
	uint32_t qpn, peer, peer_qpn;
	uint32_t acked_psn, refused_psn;
	uint8_t syndrome; /* of the NAK; 0: nothing was refused */
	uint64_t until;	  /* ns: nobody asks any more */
};

struct responder {
	uint32_t psn;	    /* expected */
	uint32_t acked_psn; /* the last one that was answered */
	uint32_t msn;
	struct kept kept; /* lossy link: requests behind a gap */
	struct last_word last_word;
	bool nak_sent;	     /* no second NAK before the sequence is whole again */
	bool not_ready;	     /* it was an RNR NAK */
	bool failed;	     /* an error NAK is on its way; nothing more is let in */
	bool established;    /* the program was told that a request came in before RTS */
	uint8_t in_message;  /* IS_SEND or IS_WRITE: first packet seen, last not yet */
	uint8_t recv_status; /* enum ibv_wc_status of the receive request that the error hits */
	uint64_t va;	     /* WRITE: where the next packet goes */
	uint32_t rkey, left; /* WRITE: bytes to come */
	uint32_t msg_off;    /* bytes of the message so far */
	struct packet_queue land;      /* posted packets on their way into memory, in order */
	uint64_t land_tail, land_done; /* how many were ever queued, have landed */
	struct packet_queue
		answers;    /* not posted, and the acknowledgements behind them, in order */
	uint32_t nonposted; /* let in and not answered, duplicates not counted */
	struct saved_answer saved[MAX_RD_ATOMIC];
	unsigned saved_next;
	struct alarm land_alarm, answer_alarm;
	struct link_patience patience; /* with a link that has no room for a READ's responses */
	bool land_turn,
		answer_turn; /* with a scheduler: this event has not done its one thing yet */
	bool flush_rq;	     /* once everything has landed */
};

/* Work requests that ibv_wr_* builds, between ibv_wr_start() and ibv_wr_complete(): wr.c. */
struct wr_batch {
	bool open;
	const void *owner; /* the task that opened it */
	int error;	   /* the first one; nothing more is built */
	uint32_t built;	   /* requests, in the send queue's slots from `posted` on */
	bool takes_data;   /* the last one may be given its data */
	bool takes_inline;
};

struct rnic_qp {
	union {
		struct ibv_qp ibv; /* .state is the state */
		struct ibv_qp_ex ex;
		struct ibv_qp_ex_with_flush ex_flush;
	};
	bool extended;	 /* has ibv_wr_* */
	uint8_t service; /* enum service */
	struct rnic_hca *hca;
	struct actor actor;
	struct op_label label; /* of the task that posted last, with its visit */
	uint16_t label_visit;
	bool dead, sig_all;
	uint32_t resets; /* how often its queues were emptied */
	uint32_t max_inline;
	uint32_t peer, mtu; /* the link's number of the remote host; bytes */
	struct ibv_qp_attr attr;
	struct work_queue sq, rq;
	struct rnic_srq *srq;	/* where rq gets its requests from; NULL: they are posted to it */
	struct rnic_qp *target; /* XRC: the queue pair that this is a handle of; NULL: it is none */
	struct rnic_qp *next;	/* of those that were given back */
	struct wr_batch batch;
	struct rnic_event land_resumes, answer_resumes; /* a delay that no clock ends is over */
	struct requester req;
	struct responder resp;
};

static inline const struct rnic_ground *qp_ground(const struct rnic_qp *qp)
{
	return &qp->hca->net->ground;
}
/* Does a posted request complete when it has arrived? Else when its data are visible. */
static inline bool rnic_acks_early(const struct rnic_qp *qp)
{
	const struct hardware *hw = &qp->hca->net->hw;
	return hw->ack_early && !MUTANT(hw, NIC_DONE_IS_VISIBLE);
}
/* The domain that the keys of receive requests must belong to. */
static inline const struct ibv_pd *qp_recv_pd(const struct rnic_qp *qp)
{
	return qp->srq ? qp->srq->ibv.pd : qp->ibv.pd;
}
/* All receive completions before number `seq` were polled, or will never be. */
static inline void qp_recv_freed(struct rnic_qp *qp, uint32_t seq)
{
	if (qp->srq)
		qp->srq->taken -= seq - qp->rq.freed;
	qp->rq.freed = seq;
}
/* Is what it sends acknowledged? */
static inline bool qp_is_reliable(const struct rnic_qp *qp)
{
	return qp->service == SERVICE_RC || qp->service == SERVICE_XRC;
}
static inline uint64_t qp_chain(const struct rnic_qp *qp, enum chain_kind kind)
{
	return chain_name(qp->actor.name_hash, kind);
}

/* --- qp.c --- */

/* The service of a type of queue pair. */
enum service qp_service(enum ibv_qp_type type);

/* To the error state: flush both queues. */
void qp_fail(struct rnic_qp *qp);
/* A send request of an unreliable service failed: the send queue is flushed, receiving goes on. */
void qp_fail_sends(struct rnic_qp *qp);
/* NULL: there is none with this number. */
struct rnic_qp *qp_find(struct rnic_net *net, uint32_t qpn);
/* It was destroyed, and nobody will look at it any more: the next one may have its place. Live
 * world only: there an event that comes late does no harm. */
void qp_give_back(struct rnic_qp *qp);
/* A number for it; false: all are used up. */
bool qp_number(struct rnic_net *net, struct rnic_qp *qp);
/* Back to the beginning: nothing of it is left on the way into memory or in a completion queue. */
void qp_reset(struct rnic_qp *qp);

/* --- xrc.c --- */

struct xrc_domain;

/* What ibv_open_xrcd() does once the file is known: by its device and inode, 0 and 0: none. errno
 * EAGAIN: nobody has opened a domain for it, and O_CREAT is not there. */
struct ibv_xrcd *xrc_open(struct ibv_context *context, uint64_t device, uint64_t inode, int oflags);
/* What is wrong with ibv_open_xrcd()'s attributes, the file aside; an errno. */
int xrc_check(const struct ibv_context *context, const struct ibv_xrcd_init_attr *attr);
/* Give the queue a number in the domain; 0 or an errno. */
int xrc_add_srq(struct rnic_srq *srq, struct ibv_xrcd *xrcd, struct ibv_cq *cq);
void xrc_remove_srq(struct rnic_srq *srq);
/* The queue of this number; NULL: it was destroyed. */
struct rnic_srq *xrc_srq(const struct rnic_net *net, uint32_t srqn);
struct ibv_qp *xrc_create_target(struct ibv_context *context,
				 const struct ibv_qp_init_attr_ex *init);
/* The same calls for a target queue pair, by a handle. */
int xrc_modify_qp(struct rnic_qp *handle, struct ibv_qp_attr *attr, int mask);
int xrc_query_qp(struct rnic_qp *handle, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init);
int xrc_destroy_qp(struct rnic_qp *handle);
/* The context is closed: so are its handles of this target queue pair. */
void xrc_close_qp(struct rnic_qp *target, const struct ibv_context *context);
/* What the target queue pair has taken from shared receive queues is lost to them. */
void xrc_reset_qp(struct rnic_qp *target);
/* From now on the target queue pair is at work for this shared receive queue: its requests, domain,
 * completions. False: there is none of this number. */
bool xrc_select(struct rnic_qp *target, uint32_t srqn);
/* The same for a request whose turn has come. False: it cannot be let in, and is counted. */
bool xrc_turn(struct rnic_qp *target, const struct packet *pkt);
/* All who have the target queue pair open hear of it. */
void xrc_event(struct rnic_qp *target, enum ibv_event_type type);
/* A packet for a queue pair of the service has come in. Takes it. */
void xrc_take(struct rnic_qp *qp, struct packet *pkt);

/* Tell the program of an event of the queue pair. */
static inline void qp_event(struct rnic_qp *qp, enum ibv_event_type type)
{
	if (qp->ibv.qp_type == IBV_QPT_XRC_RECV)
		xrc_event(qp, type);
	else
		rnic_event(qp->hca, type, &qp->ibv);
}

/* --- srq.c --- */

int rnic_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
/* Take the oldest request out, to be copied before another is posted; NULL: there is none. */
const struct rqe *srq_pop(struct rnic_srq *srq);
/* Move a request to the queue pair's own receive queue; false: there is none. */
bool srq_take(struct rnic_qp *qp);

/* --- post.c --- */

#define POST_NS 50 /* what posting costs */

/* Append a receive request; `oldest`: the lowest number still in use. */
void post_rqe(struct rnic_net *net, struct work_queue *queue, uint32_t oldest,
	      const struct ibv_recv_wr *wr);
int rnic_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int rnic_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
/* The same, with windows of which type IBV_WR_BIND_MW may bind. */
int post_list(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr,
	      enum ibv_mw_type binds);
/* Posting is a step of the task. */
void post_step(struct rnic_qp *qp);
/* Wait until no other task's batch is open. EINVAL: it is the caller's own. */
int post_enter(struct rnic_qp *qp);
/* May requests be posted, and is there room for one more behind `ahead` that are not posted yet? */
int post_room(const struct rnic_qp *qp, uint32_t ahead);
/* A cleared slot of the send queue for a request of this opcode, number posted + ahead. */
struct wqe *post_slot(struct rnic_qp *qp, uint32_t ahead, enum ibv_wr_opcode opcode,
		      unsigned flags);
/* Where the request's inline data are to be copied. */
uint8_t *post_inline(struct rnic_qp *qp, struct wqe *wqe);
/* Copy a piece of them; the CPU does this, so it needs no key. The next piece goes where this one
 * ends. */
uint8_t *post_copy(struct rnic_qp *qp, uint8_t *to, const void *from, size_t len);
/* Is what the request asks for possible at all? */
int post_check(const struct rnic_qp *qp, const struct wqe *wqe);
/* Where a datagram goes. */
int post_address(struct rnic_qp *qp, struct wqe *wqe, const struct ibv_ah *ah, uint32_t qpn,
		 uint32_t qkey);
/* For which shared receive queue of the peer's it is. */
int post_srqn(struct wqe *wqe, uint32_t srqn);
/* The request in the next slot is posted. */
void post_commit(struct rnic_qp *qp);
void post_doorbell(struct rnic_qp *qp);

/* --- mw.c --- */

/* Make the request, an IBV_WR_BIND_MW, bind this window as `rkey`. */
int mw_fill(struct rnic_qp *qp, struct wqe *wqe, struct ibv_mw *mw, uint32_t rkey,
	    const struct ibv_mw_bind_info *info);

/* --- requester.c --- */

void req_reset(struct rnic_qp *qp);
void req_drop_copy(struct rnic_qp *qp, struct wqe *wqe);
/* There may be something to send. */
void req_kick(struct rnic_qp *qp);
/* In SQD: nothing is under way any more? The program is told once, if it wants to know. */
void req_drained(struct rnic_qp *qp);
/* A response has come in. Takes the packet. */
void req_response(struct rnic_qp *qp, struct packet *pkt);
/* The link is lossy from now on, and was not before. */
void req_becomes_lossy(struct rnic_qp *qp);
/* Complete everything that is posted with WR_FLUSH_ERR. */
void req_flush(struct rnic_qp *qp);

/* --- responder.c --- */

void resp_reset(struct rnic_qp *qp);
/* A request has come in. Takes the packet. */
void resp_request(struct rnic_qp *qp, struct packet *pkt);
/* Answer `request` with a packet of the given opcode and payload length, named after it. */
struct packet *resp_answer(struct rnic_qp *qp, const struct packet *request, uint8_t opcode,
			   uint32_t len);
/* Acknowledge up to the request, in its turn. */
void resp_acknowledge(struct rnic_qp *qp, const struct packet *request);
/* Refuse the request: NAK in its turn, then the error state. */
void resp_refuse(struct rnic_qp *qp, const struct packet *request, uint32_t psn,
		 enum syndrome syndrome);
/* The region that a request which is not posted names; NULL: not allowed, or out of bounds. */
struct rnic_mr *resp_region(struct rnic_qp *qp, const struct packet *request);
/* Put an answer on the link now. */
void resp_send(struct rnic_qp *qp, struct packet *answer);
/* The answer to an atomic, FLUSH or ATOMIC WRITE that was executed. */
struct packet *resp_result(struct rnic_qp *qp, const struct packet *request, uint64_t original);
/* The receive request `seq` is over; pkt: the last packet of its message, NULL: none. */
void resp_complete(struct rnic_qp *qp, uint32_t seq, enum ibv_wc_status status,
		   const struct packet *pkt);
void resp_flush(struct rnic_qp *qp);
/* Does the queue pair's state let requests in? */
bool resp_active(const struct rnic_qp *qp);
/* Is there a receive request for the message whose packet has come? */
bool resp_ready(struct rnic_qp *qp);
/* May a packet whose turn it is be let in? Else an AETH syndrome, and in resp.recv_status what is
 * wrong with the receive request. */
uint8_t resp_check(struct rnic_qp *qp, struct packet *pkt);
uint8_t resp_check_send(struct rnic_qp *qp, const struct packet *pkt);
/* Let it in: takes the packet. */
void resp_accept(struct rnic_qp *qp, struct packet *pkt);

/* --- repair.c --- */

static inline bool is_lossy(const struct rnic_qp *qp)
{
	return qp->hca->net->link->lossy;
}
/* Keep a packet until its turn comes; `expected` is what is missing. Takes it: one that is too far
 * ahead, or there already, is dropped. */
void kept_push(struct rnic_qp *qp, struct kept *kept, uint32_t expected, struct packet *pkt);
/* The first packet that is kept, from `expected` on; what is before that is dropped. NULL: none. */
struct packet *kept_first(struct rnic_qp *qp, struct kept *kept, uint32_t expected);
/* Take out the first one. */
struct packet *kept_pop(struct kept *kept);
void kept_drop(struct rnic_qp *qp, struct kept *kept);
/* Are packets kept, and what is missing in front of them is not just late? Not known yet: fire
 * comes
 * later. */
bool kept_too_long(struct rnic_qp *qp, struct kept *kept, uint32_t expected, rnic_event_fn *fire);
/* Nothing was sent yet. */
void repair_reset(struct rnic_qp *qp);
/* Packet una, or what answers it, is missing. False: known. */
bool repair_begin(struct rnic_qp *qp);
/* The same, known or not. */
void repair_again(struct rnic_qp *qp);
/* Nothing was heard: the next time after twice the time. */
void repair_wait_longer(struct rnic_qp *qp);
/* The packet with so many sequence numbers is sent. */
void repair_sent(struct rnic_qp *qp, const struct packet *pkt, uint32_t psns);
/* una has advanced. */
void repair_progress(struct rnic_qp *qp);

/* The queue pair in the error state says its last word again, if that is an answer to this
 * request. */
void last_word_repeat(struct rnic_qp *qp, const struct packet *request);
/* The queue pair is going to be destroyed; for some time its last word is kept. */
void last_word_keep(struct rnic_qp *qp);
/* A packet for no queue pair that there is: the last word of the one that there was. */
void last_word_find(struct rnic_net *net, const struct packet *request);

/* --- unreliable.c --- */

/* A packet for a queue pair that acknowledges nothing has come in. Takes it. */
void unreliable_take(struct rnic_qp *qp, struct packet *pkt);

/* --- landing.c --- */

/* Posted data was let in: it becomes visible later. Takes the packet. */
void land_push(struct rnic_qp *qp, struct packet *pkt);
/* Let everything up to the last packet for mr (NULL: everything) land now. */
void land_all(struct rnic_qp *qp, const struct rnic_mr *mr);
/* A request that is not posted was let in (or a finished answer, which only waits for its turn).
 * Takes the packet. */
void answer_push(struct rnic_qp *qp, struct packet *pkt);
void answer_drop_all(struct rnic_qp *qp);

#endif
