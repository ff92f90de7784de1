/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue pair's states: what modify_qp allows, what can be posted where, what is flushed. */
#include "scenarios/verbs/programs.h"

#define THERE 8192u

static const struct {
	enum ibv_qp_state state;
	const char *name;
} states[] = {{IBV_QPS_RESET, "RESET"}, {IBV_QPS_INIT, "INIT"}, {IBV_QPS_RTR, "RTR"},
	      {IBV_QPS_RTS, "RTS"},	{IBV_QPS_SQD, "SQD"},	{IBV_QPS_ERR, "ERR"}};
#define STATES 6

static int modify(struct end *e, const struct end *peer, enum ibv_qp_state to, int mask)
{
	struct ibv_qp_attr attr = lab_attr(e, peer);
	attr.qp_state = to;
	return ibv_modify_qp(e->qp, &attr, mask | IBV_QP_STATE);
}

/* A new queue pair of a, in this state. */
static void bring_to(struct lab *lab, enum ibv_qp_state state)
{
	struct end *a = &lab->a, *b = &lab->b;
	int error = ibv_destroy_qp(a->qp);
	a->qp = lab_qp(a);
	if (error || !a->qp)
		lab_give_up(lab);
	if (state != IBV_QPS_RESET)
		error = modify(a, b, IBV_QPS_INIT, LAB_INIT);
	if (!error && (state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD))
		error = modify(a, b, IBV_QPS_RTR, LAB_RTR);
	if (!error && (state == IBV_QPS_RTS || state == IBV_QPS_SQD))
		error = modify(a, b, IBV_QPS_RTS, LAB_RTS);
	if (!error && (state == IBV_QPS_SQD || state == IBV_QPS_ERR))
		error = modify(a, b, state, 0);
	if (error) {
		lab_say(lab, "a: cannot get there: %s", lab_error(error));
		lab_give_up(lab);
	}
}

/* What each transition needs; 0: nothing, or it is not legal. */
static int needed(unsigned from, unsigned to)
{
	if (from == 0 && to == 1)
		return LAB_INIT;
	if (from == 1 && to == 2)
		return LAB_RTR;
	if (from == 2 && to == 3)
		return LAB_RTS;
	return 0;
}

/* From each state to each, with all that the transition needs. */
static void transitions(struct lab *lab)
{
	lab_make(lab);
	for (unsigned from = 0; from < STATES; from++)
		for (unsigned to = 0; to < STATES; to++) {
			if (states[from].state == IBV_QPS_SQD)
				continue; /* sq-drain */
			bring_to(lab, states[from].state);
			int error = modify(&lab->a, &lab->b, states[to].state, needed(from, to));
			lab_say(lab, "%s to %s: %s", states[from].name, states[to].name,
				lab_error(error));
		}
}

static const struct {
	int bit;
	const char *name;
} bits[] = {{IBV_QP_PKEY_INDEX, "PKEY_INDEX"},
	    {IBV_QP_PORT, "PORT"},
	    {IBV_QP_ACCESS_FLAGS, "ACCESS_FLAGS"},
	    {IBV_QP_AV, "AV"},
	    {IBV_QP_PATH_MTU, "PATH_MTU"},
	    {IBV_QP_DEST_QPN, "DEST_QPN"},
	    {IBV_QP_RQ_PSN, "RQ_PSN"},
	    {IBV_QP_MAX_DEST_RD_ATOMIC, "MAX_DEST_RD_ATOMIC"},
	    {IBV_QP_MIN_RNR_TIMER, "MIN_RNR_TIMER"},
	    {IBV_QP_TIMEOUT, "TIMEOUT"},
	    {IBV_QP_RETRY_CNT, "RETRY_CNT"},
	    {IBV_QP_RNR_RETRY, "RNR_RETRY"},
	    {IBV_QP_SQ_PSN, "SQ_PSN"},
	    {IBV_QP_MAX_QP_RD_ATOMIC, "MAX_QP_RD_ATOMIC"},
	    {IBV_QP_QKEY, "QKEY"},
	    {IBV_QP_EN_SQD_ASYNC_NOTIFY, "EN_SQD_ASYNC_NOTIFY"}};
#define BITS (sizeof(bits) / sizeof(bits[0]))

/* Attributes that are changed while the state stays. */
static void changes(struct lab *lab)
{
	static const enum ibv_qp_state where[] = {IBV_QPS_INIT, IBV_QPS_RTS};
	lab_make(lab);
	for (unsigned s = 0; s < 2; s++)
		for (unsigned i = 0; i < BITS; i++) {
			bring_to(lab, where[s]);
			int error = modify(&lab->a, &lab->b, where[s], bits[i].bit);
			lab_say(lab, "in %s, %s: %s", where[s] == IBV_QPS_INIT ? "INIT" : "RTS",
				bits[i].name, lab_error(error));
		}
}

struct wrong {
	const char *what;
	enum ibv_qp_state from;
	void (*change)(struct ibv_qp_attr *attr);
};

static void port_0(struct ibv_qp_attr *attr)
{
	attr->port_num = 0;
}
static void port_2(struct ibv_qp_attr *attr)
{
	attr->port_num = 2;
}
static void pkey_5(struct ibv_qp_attr *attr)
{
	attr->pkey_index = 5;
}
static void odd_access(struct ibv_qp_attr *attr)
{
	attr->qp_access_flags |= 1 << 14;
}
static void no_grh(struct ibv_qp_attr *attr)
{
	attr->ah_attr.is_global = 0;
}
static void no_dgid(struct ibv_qp_attr *attr)
{
	memset(&attr->ah_attr.grh.dgid, 0, 16);
}
static void sgid_77(struct ibv_qp_attr *attr)
{
	attr->ah_attr.grh.sgid_index = 77;
}
static void ah_port_3(struct ibv_qp_attr *attr)
{
	attr->ah_attr.port_num = 3;
}
static void mtu_0(struct ibv_qp_attr *attr)
{
	attr->path_mtu = 0;
}
static void mtu_6(struct ibv_qp_attr *attr)
{
	attr->path_mtu = 6;
}
static void mtu_large(struct ibv_qp_attr *attr)
{
	attr->path_mtu = IBV_MTU_2048;
}
static void dest_large(struct ibv_qp_attr *attr)
{
	attr->dest_qp_num = 1u << 24;
}
static void dest_rd_200(struct ibv_qp_attr *attr)
{
	attr->max_dest_rd_atomic = 200;
}
static void rnr_timer_32(struct ibv_qp_attr *attr)
{
	attr->min_rnr_timer = 32;
}
static void psn_large(struct ibv_qp_attr *attr)
{
	attr->rq_psn = attr->sq_psn = 1u << 24;
}
static void timeout_32(struct ibv_qp_attr *attr)
{
	attr->timeout = 32;
}
static void retry_8(struct ibv_qp_attr *attr)
{
	attr->retry_cnt = 8;
}
static void rnr_retry_8(struct ibv_qp_attr *attr)
{
	attr->rnr_retry = 8;
}
static void rd_200(struct ibv_qp_attr *attr)
{
	attr->max_rd_atomic = 200;
}

/* Values out of their range. */
static void values(struct lab *lab)
{
	static const struct wrong wrongs[] = {
		{"port 0", IBV_QPS_RESET, port_0},
		{"port 2", IBV_QPS_RESET, port_2},
		{"pkey index 5", IBV_QPS_RESET, pkey_5},
		{"unknown access flags", IBV_QPS_RESET, odd_access},
		{"no global route", IBV_QPS_INIT, no_grh},
		{"no destination", IBV_QPS_INIT, no_dgid},
		{"source address 77", IBV_QPS_INIT, sgid_77},
		{"port 3 in the address vector", IBV_QPS_INIT, ah_port_3},
		{"MTU 0", IBV_QPS_INIT, mtu_0},
		{"MTU 6", IBV_QPS_INIT, mtu_6},
		{"MTU 2048, the port's is 1024", IBV_QPS_INIT, mtu_large},
		{"queue pair 2^24", IBV_QPS_INIT, dest_large},
		{"max_dest_rd_atomic 200", IBV_QPS_INIT, dest_rd_200},
		{"min_rnr_timer 32", IBV_QPS_INIT, rnr_timer_32},
		{"rq_psn 2^24", IBV_QPS_INIT, psn_large},
		{"sq_psn 2^24", IBV_QPS_RTR, psn_large},
		{"timeout 32", IBV_QPS_RTR, timeout_32},
		{"retry_cnt 8", IBV_QPS_RTR, retry_8},
		{"rnr_retry 8", IBV_QPS_RTR, rnr_retry_8},
		{"max_rd_atomic 200", IBV_QPS_RTR, rd_200},
	};
	lab_make(lab);
	for (unsigned i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
		unsigned from = (unsigned)wrongs[i].from;
		bring_to(lab, wrongs[i].from);
		struct ibv_qp_attr attr = lab_attr(&lab->a, &lab->b);
		attr.qp_state = states[from + 1].state;
		wrongs[i].change(&attr);
		lab_say(lab, "%s: %s", wrongs[i].what,
			lab_error(ibv_modify_qp(lab->a.qp, &attr, needed(from, from + 1))));
	}
}

/* The state that the caller thinks the queue pair is in. */
static void current_state(struct lab *lab)
{
	static const enum ibv_qp_state thought[] = {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_INIT};
	lab_make(lab);
	for (unsigned i = 0; i < 3; i++) {
		bring_to(lab, IBV_QPS_RTR);
		struct ibv_qp_attr attr = lab_attr(&lab->a, &lab->b);
		attr.qp_state = IBV_QPS_RTS;
		attr.cur_qp_state = thought[i];
		lab_say(lab, "RTR, thought to be %s: %s", states[thought[i]].name,
			lab_error(ibv_modify_qp(lab->a.qp, &attr, LAB_RTS | IBV_QP_CUR_STATE)));
		lab_state(&lab->a);
	}
}

/* What ibv_query_qp() says after each step. */
static void query(struct lab *lab)
{
	lab->opt.timeout = 15;
	lab->opt.retry_cnt = 3;
	lab->opt.rnr_retry = 2;
	lab->opt.min_rnr_timer = 9;
	lab->opt.rd_atomic = 3;
	lab->opt.dest_rd_atomic = 2;
	lab->opt.qp_access = IBV_ACCESS_REMOTE_READ;
	lab_make(lab);
	for (unsigned s = 0; s < 4; s++) {
		struct ibv_qp_attr at;
		struct ibv_qp_init_attr init;
		bring_to(lab, states[s].state);
		memset(&at, 0, sizeof(at));
		memset(&init, 0, sizeof(init));
		int error = ibv_query_qp(
			lab->a.qp, &at,
			LAB_INIT | LAB_RTR | LAB_RTS | IBV_QP_CAP | IBV_QP_CUR_STATE, &init);
		lab_say(lab, "%s: query: %s, state %s", states[s].name, lab_error(error),
			(unsigned)at.qp_state < 4 ? states[at.qp_state].name : "another");
		lab_say(lab, "  port %u, pkey %u, access %x", at.port_num, at.pkey_index,
			at.qp_access_flags);
		lab_say(lab, "  mtu %u, rq_psn %u, dest_rd %u, rnr timer %u, the peer's number: %s",
			at.path_mtu, at.rq_psn, at.max_dest_rd_atomic, at.min_rnr_timer,
			at.dest_qp_num == lab->b.qp->qp_num ? "yes" : "no");
		lab_say(lab, "  sq_psn %u, rd %u, timeout %u, retry %u, rnr retry %u", at.sq_psn,
			at.max_rd_atomic, at.timeout, at.retry_cnt, at.rnr_retry);
		lab_say(lab, "  enough room: %s; type %d, sig_all %d",
			at.cap.max_send_wr >= 16 && at.cap.max_recv_wr >= 16 &&
					at.cap.max_send_sge >= 4 && at.cap.max_recv_sge >= 4 &&
					at.cap.max_inline_data >= 64
				? "yes"
				: "no",
			init.qp_type, init.sq_sig_all);
	}
}

/* --- posting --- */

/* A receive request for a queue pair that has been in the error state for a while. */
static void receive_in_error(struct lab *lab)
{
	lab_connect(lab);
	lab_say(lab, "to ERR: %s", lab_error(modify(&lab->a, &lab->b, IBV_QPS_ERR, 0)));
	lab_sleep(lab, LAB_QUIET);
	lab_recv(&lab->a, 9, 0, 64);
	lab_received(&lab->a, 1);
	lab_op(&lab->a, IBV_WR_SEND, 1, 0, 8, &lab->b, 0);
	lab_sent(&lab->a, 1);
}

/* What is posted in RTR waits for RTS, or is refused. */
static void early_post(struct lab *lab)
{
	lab_make(lab);
	bring_to(lab, IBV_QPS_RTR);
	lab_to_rts(&lab->b, &lab->a);
	lab_op(&lab->a, IBV_WR_RDMA_WRITE, 1, 0, 8, &lab->b, THERE);
	lab_no_more(&lab->a);
	lab_say(lab, "to RTS: %s", lab_error(modify(&lab->a, &lab->b, IBV_QPS_RTS, LAB_RTS)));
	lab_no_more(&lab->a);
}

/* --- to the error state and back --- */

/* a has requests that wait for b's receive request, and receive requests; then it is moved to
 * ERR. */
static void flushed(struct lab *lab)
{
	lab->opt.rnr_retry = 7;
	lab_connect(lab);
	for (unsigned i = 0; i < 3; i++)
		lab_recv(&lab->a, 50 + i, 0, 64);
	for (unsigned i = 0; i < 4; i++) {
		struct ibv_send_wr wr = lab_wr(&lab->a, IBV_WR_SEND, i, 0, 8, &lab->b, 0);
		if (i == 2)
			wr.send_flags = 0;
		lab_post(&lab->a, &wr);
	}
	lab_settle(lab);
	lab_say(lab, "to ERR: %s", lab_error(modify(&lab->a, &lab->b, IBV_QPS_ERR, 0)));
	lab_sent(&lab->a, 4);
	lab_received(&lab->a, 3);
	lab_op(&lab->a, IBV_WR_RDMA_WRITE, 9, 0, 8, &lab->b, THERE);
	lab_sent(&lab->a, 1);
	lab_no_more(&lab->a);
	lab_state(&lab->b);
}

/* From ERR by RESET to a new connection of the same queue pairs. */
static void reconnected(struct lab *lab)
{
	lab_connect(lab);
	lab_fill(lab->a.buf, 64, 1);
	lab_recv(&lab->a, 50, 0, 64);
	struct ibv_send_wr wr = lab_wr(&lab->a, IBV_WR_RDMA_WRITE, 1, 0, 8, &lab->b, 0);
	wr.wr.rdma.rkey = 0xdeadbee0u;
	lab_post(&lab->a, &wr);
	lab_sent(&lab->a, 1);
	lab_received(&lab->a, 1);
	lab_settle(lab);
	lab_say(lab, "a to RESET: %s", lab_error(modify(&lab->a, &lab->b, IBV_QPS_RESET, 0)));
	lab_say(lab, "b to RESET: %s", lab_error(modify(&lab->b, &lab->a, IBV_QPS_RESET, 0)));
	lab_state(&lab->a);
	lab->opt.psn = 9000;
	lab_to_rts(&lab->a, &lab->b);
	lab_to_rts(&lab->b, &lab->a);
	lab_recv(&lab->b, 60, 64, 64);
	lab_op(&lab->a, IBV_WR_RDMA_WRITE, 2, 0, 8, &lab->b, 0);
	lab_op(&lab->a, IBV_WR_SEND, 3, 0, 8, &lab->b, 0);
	lab_sent(&lab->a, 2);
	lab_received(&lab->b, 1);
	lab_bytes(&lab->b, 0, 8);
	lab_no_more(&lab->a);
}

/* Three requests of a that are done and have not been polled. */
static void leave_unpolled(struct lab *lab)
{
	lab_connect(lab);
	lab_recv(&lab->b, 9, 0, 64);
	lab_op(&lab->a, IBV_WR_RDMA_WRITE, 0, 0, 8, &lab->b, THERE);
	lab_op(&lab->a, IBV_WR_RDMA_WRITE, 1, 0, 8, &lab->b, THERE);
	lab_op(&lab->a, IBV_WR_SEND, 2, 0, 8, &lab->b, 0);
	lab_received(&lab->b, 1);
	lab_sleep(lab, LAB_QUIET);
}

/* Completions that have not been polled when the queue pair is reset. */
static void reset_unpolled(struct lab *lab)
{
	leave_unpolled(lab);
	lab_say(lab, "a to RESET: %s", lab_error(modify(&lab->a, &lab->b, IBV_QPS_RESET, 0)));
	lab_no_more(&lab->a);
}

/* ... and when it is destroyed. */
static void destroy_unpolled(struct lab *lab)
{
	struct ibv_wc wc;
	leave_unpolled(lab);
	lab_say(lab, "a: destroy: %s", lab_error(ibv_destroy_qp(lab->a.qp)));
	lab_say(lab, "a: %d completions", ibv_poll_cq(lab->a.scq, 1, &wc));
}

/* The right to write is taken away from a connection that works, and given back. */
static void revoked(struct lab *lab)
{
	struct ibv_qp_attr attr = {.qp_access_flags = IBV_ACCESS_REMOTE_READ};
	lab_connect(lab);
	lab_fill(lab->a.buf, 64, 1);
	lab_op(&lab->a, IBV_WR_RDMA_WRITE, 1, 0, 8, &lab->b, THERE);
	lab_sent(&lab->a, 1);
	lab_say(lab, "b: only READs: %s",
		lab_error(ibv_modify_qp(lab->b.qp, &attr, IBV_QP_ACCESS_FLAGS)));
	lab_op(&lab->a, IBV_WR_RDMA_READ, 2, 64, 8, &lab->b, THERE);
	lab_sent(&lab->a, 1);
	lab_op(&lab->a, IBV_WR_RDMA_WRITE, 3, 8, 8, &lab->b, THERE);
	lab_sent(&lab->a, 1);
	lab_bytes(&lab->b, THERE, 8);
	lab_state(&lab->b);
}

/* Nothing new starts in SQD; in RTS it goes on, without waiting for a retransmission timer. */
static void drain(struct lab *lab)
{
	lab->opt.timeout = 12; /* 17 ms: over before RTS */
	lab_connect(lab);
	lab_op(&lab->a, IBV_WR_RDMA_WRITE, 1, 0, 8, &lab->b, THERE);
	lab_sent(&lab->a, 1);
	lab_say(lab, "to SQD: %s", lab_error(modify(&lab->a, &lab->b, IBV_QPS_SQD, 0)));
	lab_state(&lab->a);
	lab_op(&lab->a, IBV_WR_RDMA_WRITE, 2, 0, 8, &lab->b, THERE);
	lab_no_more(&lab->a);
	/* The other direction works. */
	lab_op(&lab->b, IBV_WR_RDMA_WRITE, 3, 0, 8, &lab->a, THERE);
	lab_sent(&lab->b, 1);
	lab_say(lab, "to RTS: %s", lab_error(modify(&lab->a, &lab->b, IBV_QPS_RTS, 0)));
	lab_sent(&lab->a, 1);
	lab_state(&lab->a);
}

/* What was moved to ERR: nothing of the peer's gets in, nothing is answered. */
static void peer_in_error(struct lab *lab)
{
	lab->opt.timeout = 10;
	lab->opt.retry_cnt = 1;
	lab_connect(lab);
	lab_recv(&lab->b, 60, 0, 64);
	lab_recv(&lab->b, 61, 0, 64);
	lab_say(lab, "b to ERR: %s", lab_error(modify(&lab->b, &lab->a, IBV_QPS_ERR, 0)));
	lab_received(&lab->b, 2);
	lab_op(&lab->a, IBV_WR_SEND, 1, 0, 8, &lab->b, 0);
	lab_sent(&lab->a, 1);
	lab_state(&lab->a);
	lab_no_more(&lab->b);
}

/* The receiver of a WRITE that is refused sees nothing of it but what its receive requests show. */
static void receiver_in_error(struct lab *lab)
{
	lab_connect(lab);
	for (unsigned i = 0; i < 3; i++)
		lab_recv(&lab->b, 60 + i, 0, 64);
	lab_op(&lab->a, IBV_WR_SEND, 1, 0, 8, &lab->b, 0);
	lab_sent(&lab->a, 1);
	struct ibv_send_wr wr = lab_wr(&lab->a, IBV_WR_RDMA_WRITE, 2, 0, 8, &lab->b, 0);
	wr.wr.rdma.rkey = 0xdeadbee0u;
	lab_post(&lab->a, &wr);
	lab_sent(&lab->a, 1);
	lab_received(&lab->b, 3);
	lab_op(&lab->b, IBV_WR_RDMA_WRITE, 3, 0, 8, &lab->a, THERE);
	lab_sent(&lab->b, 1);
	lab_no_more(&lab->b);
}

const struct verbs_program verbs_states[] = {
	{"transitions", "from each state to each", transitions, 0},
	{"changes", "attributes that are changed in INIT and in RTS", changes, 0},
	{"values", "attributes out of their range", values, 0},
	{"current-state", "modify_qp with the state that the queue pair should be in",
	 current_state, 0},
	{"query", "what query_qp says on the way to RTS", query, 0},
	{"receive-in-error", "a receive request that is posted in ERR", receive_in_error, 0},
	{"early-post", "a WRITE that is posted in RTR", early_post, 0},
	{"flushed", "requests that are waiting when the queue pair is moved to ERR", flushed, 0},
	{"reconnected", "a failed connection is reset and connected again", reconnected, 0},
	{"reset-unpolled", "completions of a queue pair that is reset", reset_unpolled, 0},
	{"destroy-unpolled", "completions of a queue pair that is destroyed", destroy_unpolled, 0},
	{"revoked", "a right that is taken away in RTS", revoked, 0},
	{"drain", "a send queue that is drained and goes on", drain, 0},
	{"peer-in-error", "a SEND to a queue pair that was moved to ERR", peer_in_error, 0},
	{"receiver-in-error", "receive requests when a peer's WRITE was refused", receiver_in_error,
	 0},
	{0},
};
