/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue pair's states: what modify_qp allows, what can be posted where, what is left of what
 * was posted. */
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

/* Values out of their range. */
static void values(struct lab *lab)
{
#define FIELD(name) offsetof(struct ibv_qp_attr, name), sizeof(((struct ibv_qp_attr *)0)->name)
	static const struct {
		const char *what;
		unsigned from; /* of states[] */
		size_t at, size;
		uint32_t value[4];
	} wrongs[] = {
		{"port 0", 0, FIELD(port_num), {0}},
		{"port 2", 0, FIELD(port_num), {2}},
		{"pkey index 5", 0, FIELD(pkey_index), {5}},
		{"unknown access flags", 0, FIELD(qp_access_flags), {LAB_ALL | 1 << 14}},
		{"no global route", 1, FIELD(ah_attr.is_global), {0}},
		{"no destination", 1, FIELD(ah_attr.grh.dgid), {0}},
		{"source address 77", 1, FIELD(ah_attr.grh.sgid_index), {77}},
		{"port 3 in the address vector", 1, FIELD(ah_attr.port_num), {3}},
		{"MTU 0", 1, FIELD(path_mtu), {0}},
		{"MTU 6", 1, FIELD(path_mtu), {6}},
		{"MTU 2048, the port's is 1024", 1, FIELD(path_mtu), {IBV_MTU_2048}},
		{"queue pair 2^24", 1, FIELD(dest_qp_num), {1u << 24}},
		{"max_dest_rd_atomic 200", 1, FIELD(max_dest_rd_atomic), {200}},
		{"min_rnr_timer 32", 1, FIELD(min_rnr_timer), {32}},
		{"rq_psn 2^24", 1, FIELD(rq_psn), {1u << 24}},
		{"sq_psn 2^24", 2, FIELD(sq_psn), {1u << 24}},
		{"timeout 32", 2, FIELD(timeout), {32}},
		{"retry_cnt 8", 2, FIELD(retry_cnt), {8}},
		{"rnr_retry 8", 2, FIELD(rnr_retry), {8}},
		{"max_rd_atomic 200", 2, FIELD(max_rd_atomic), {200}},
	};
#undef FIELD
	lab_make(lab);
	for (unsigned i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
		unsigned from = wrongs[i].from;
		bring_to(lab, states[from].state);
		struct ibv_qp_attr attr = lab_attr(&lab->a, &lab->b);
		attr.qp_state = states[from + 1].state;
		memcpy((char *)&attr + wrongs[i].at, wrongs[i].value, wrongs[i].size);
		lab_say(lab, "%s: %s", wrongs[i].what,
			lab_error(ibv_modify_qp(lab->a.qp, &attr, needed(from, from + 1))));
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

/* A peer that is in INIT does not answer. */
static void half_connected(struct lab *lab)
{
	lab->opt.timeout = 10;
	lab->opt.retry_cnt = 1;
	lab_make(lab);
	lab_to_rts(&lab->a, &lab->b);
	struct ibv_qp_attr attr = lab_attr(&lab->b, &lab->a);
	attr.qp_state = IBV_QPS_INIT;
	lab_say(lab, "b: to INIT: %s", lab_error(ibv_modify_qp(lab->b.qp, &attr, LAB_INIT)));
	lab_op(&lab->a, IBV_WR_RDMA_WRITE, 1, 0, 8, &lab->b, THERE);
	lab_sent(&lab->a, 1);
	lab_state(&lab->a);
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

/* --- to the error state and back --- */

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

const struct verbs_program verbs_states[] = {
	{"transitions", "from each state to each", transitions, 0},
	{"values", "attributes out of their range", values, 0},
	{"query", "what query_qp says on the way to RTS", query, 0},
	{"half-connected", "requests to a queue pair in INIT", half_connected, 0},
	{"receive-in-error", "a receive request that is posted in ERR", receive_in_error, 0},
	{"reset-unpolled", "completions of a queue pair that is reset", reset_unpolled, 0},
	{"destroy-unpolled", "completions of a queue pair that is destroyed", destroy_unpolled, 0},
	{"revoked", "a right that is taken away in RTS", revoked, 0},
	{"drain", "a send queue that is drained and goes on", drain, 0},
	{0},
};
