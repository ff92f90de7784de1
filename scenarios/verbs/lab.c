/* SPDX-License-Identifier: BSD-3-Clause */
/* See lab.h. */
#include "scenarios/verbs/lab.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/rnic/rnic.h"

/* A program that cannot go on comes back to lab_run(). */
struct run {
	struct lab lab;
	jmp_buf end;
};

void lab_give_up(struct lab *lab)
{
	longjmp(((struct run *)lab)->end, 1);
}

void lab_run(const struct lab_world *world, const struct verbs_program *program)
{
	struct run *run = calloc(1, sizeof(*run));
	if (!run) {
		world->line(world->arg, "out of memory");
		return;
	}
	run->lab.world = world;
	run->lab.opt = (struct lab_options){
		.by_wr = program->how & BY_WR,
		.send_wr = 16,
		.recv_wr = 16,
		.send_sge = 4,
		.recv_sge = 4,
		.inline_bytes = 64,
		.cqe = 64,
		.qp_access = LAB_ALL | IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT,
		.mr_access = LAB_ALL | IBV_ACCESS_FLUSH_GLOBAL,
		.mtu = IBV_MTU_1024,
		.psn = 100,
		.timeout = 18, /* 1 s: only what is to fail fails, however busy the machine is */
		.retry_cnt = 6,
		.rnr_retry = 6,
		.min_rnr_timer = 12, /* 0.64 ms */
		.rd_atomic = 4,
		.dest_rd_atomic = 4,
	};
	if (!setjmp(run->end))
		program->run(&run->lab);
}

/* --- printing --- */

void lab_say(struct lab *lab, const char *fmt, ...)
{
	char text[512];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	lab->world->line(lab->world->arg, text);
}

const char *lab_error(int error)
{
	const char *name = strerrorname_np(error);
	return name ? name : "an unknown error";
}

static const char *wc_opcode_name(enum ibv_wc_opcode opcode)
{
	switch ((int)opcode) {
	case IBV_WC_SEND:
		return "SEND";
	case IBV_WC_RDMA_WRITE:
		return "RDMA_WRITE";
	case IBV_WC_RDMA_READ:
		return "RDMA_READ";
	case IBV_WC_COMP_SWAP:
		return "COMP_SWAP";
	case IBV_WC_FETCH_ADD:
		return "FETCH_ADD";
	case IBV_WC_LOCAL_INV:
		return "LOCAL_INV";
	case IBV_WC_BIND_MW:
		return "BIND_MW";
	case IBV_WC_FLUSH:
		return "FLUSH";
	case IBV_WC_ATOMIC_WRITE:
		return "ATOMIC_WRITE";
	case IBV_WC_RECV:
		return "RECV";
	case IBV_WC_RECV_RDMA_WITH_IMM:
		return "RECV_RDMA_WITH_IMM";
	default:
		return "an unknown opcode";
	}
}

/* byte_len counts where data has come in: a receive request's, what READ and the atomics brought
 * back. */
static bool has_bytes(enum ibv_wc_opcode opcode)
{
	return opcode & IBV_WC_RECV || opcode == IBV_WC_RDMA_READ || opcode == IBV_WC_COMP_SWAP ||
	       opcode == IBV_WC_FETCH_ADD;
}

/*
 * In a completion in error only wr_id and status (and qp_num) mean anything; flags and immediate
 * data only where something has come in.
 */
static void say_wc(struct end *e, const char *queue, const struct ibv_wc *wc)
{
	char bytes[32] = "", came[48] = "";
	bool good = wc->status == IBV_WC_SUCCESS;
	if (good && has_bytes(wc->opcode))
		snprintf(bytes, sizeof(bytes), ", %u bytes", wc->byte_len);
	if (good && wc->opcode & IBV_WC_RECV && wc->wc_flags & IBV_WC_WITH_IMM)
		snprintf(came, sizeof(came), ", imm %08x", be32toh(wc->imm_data));
	if (good && wc->opcode & IBV_WC_RECV && wc->wc_flags & IBV_WC_WITH_INV)
		snprintf(came, sizeof(came), ", a key was invalidated");
	lab_say(e->lab, "%s: %s %lu %s%s%s%s%s%s", e->name, queue, (unsigned long)wc->wr_id,
		rnic_wc_status_name(wc->status), good ? " " : "",
		good ? wc_opcode_name(wc->opcode) : "", bytes, came,
		wc->qp_num == e->qp->qp_num ? "" : ", of another queue pair");
}

/* --- waiting --- */

void lab_sleep(struct lab *lab, uint64_t ns)
{
	const struct lab_world *world = lab->world;
	uint64_t end = world->now(world->arg) + ns;
	while (world->now(world->arg) < end)
		world->rest(world->arg);
}

void lab_settle(struct lab *lab)
{
	lab_sleep(lab, 10 * LAB_MS);
}

bool lab_take(struct end *e, struct ibv_cq *cq, struct ibv_wc *wc)
{
	const struct lab_world *world = e->lab->world;
	uint64_t end = world->now(world->arg) + (e->missed ? LAB_QUIET : LAB_WAIT);
	int n;
	while ((n = ibv_poll_cq(cq, 1, wc)) == 0 && world->now(world->arg) < end)
		world->rest(world->arg);
	e->missed = n == 0;
	return n == 1;
}

static void completions(struct end *e, struct ibv_cq *cq, const char *queue, unsigned n)
{
	struct ibv_wc wc;
	for (unsigned i = 0; i < n; i++) {
		if (lab_take(e, cq, &wc))
			say_wc(e, queue, &wc);
		else
			lab_say(e->lab, "%s: %s: no completion", e->name, queue);
	}
}

void lab_sent(struct end *e, unsigned n)
{
	completions(e, e->scq, "sent", n);
}

void lab_received(struct end *e, unsigned n)
{
	completions(e, e->rcq, "received", n);
}

void lab_no_more(struct end *e)
{
	struct ibv_wc wc;
	unsigned n = 0;
	lab_sleep(e->lab, LAB_QUIET);
	for (; ibv_poll_cq(e->scq, 1, &wc) == 1; n++)
		say_wc(e, "sent", &wc);
	for (; ibv_poll_cq(e->rcq, 1, &wc) == 1; n++)
		say_wc(e, "received", &wc);
	if (!n)
		lab_say(e->lab, "%s: nothing more", e->name);
}

void lab_state(struct end *e)
{
	static const char *const names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	memset(&attr, 0, sizeof(attr));
	lab_settle(e->lab);
	int error = ibv_query_qp(e->qp, &attr, IBV_QP_STATE, &init);
	if (error)
		lab_say(e->lab, "%s: ibv_query_qp: %s", e->name, lab_error(error));
	else
		lab_say(e->lab, "%s: state %s", e->name,
			(unsigned)attr.qp_state < 7 ? names[attr.qp_state] : "unknown");
}

void lab_bytes(struct end *e, size_t off, size_t len)
{
	char hex[2 * 32 + 1] = "";
	uint64_t hash = 0xcbf29ce484222325u;
	lab_settle(e->lab);
	for (size_t i = 0; i < len; i++) {
		uint8_t byte = *(volatile uint8_t *)&e->buf[off + i];
		if (len <= 32)
			snprintf(hex + 2 * i, 3, "%02x", byte);
		hash = (hash ^ byte) * 0x100000001b3u;
	}
	if (len <= 32)
		lab_say(e->lab, "%s: at %zu: %s", e->name, off, hex);
	else
		lab_say(e->lab, "%s: at %zu: %zu bytes with hash %016lx", e->name, off, len,
			(unsigned long)hash);
}

/* --- memory --- */

void lab_fill(uint8_t *to, size_t len, unsigned seed)
{
	uint32_t x = seed * 2654435761u + 1;
	for (size_t i = 0; i < len; i++) {
		x = x * 1664525u + 1013904223u;
		to[i] = (uint8_t)(x >> 24);
	}
}

uint8_t *lab_memory(struct lab *lab, size_t bytes)
{
	void *memory;
	if (posix_memalign(&memory, 4096, bytes)) {
		lab_say(lab, "out of memory");
		lab_give_up(lab);
	}
	memset(memory, 0, bytes);
	return memory;
}

/* --- making ends --- */

static void need(struct lab *lab, const char *call, bool done)
{
	if (done)
		return;
	lab_say(lab, "%s: %s", call, lab_error(errno));
	lab_give_up(lab);
}

#define SEND_OPS                                                                                \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND | \
	 IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |                              \
	 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |              \
	 IBV_QP_EX_WITH_ATOMIC_WRITE | IBV_QP_EX_WITH_FLUSH)

struct ibv_qp *lab_qp(struct end *e)
{
	const struct lab_options *opt = &e->lab->opt;
	struct ibv_qp_init_attr_ex init = {
		.send_cq = e->scq,
		.recv_cq = e->rcq,
		.cap = {opt->send_wr, opt->recv_wr, opt->send_sge, opt->recv_sge,
			opt->inline_bytes},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = opt->sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = e->pd,
	};
	if (opt->by_wr) {
		init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		init.send_ops_flags = SEND_OPS;
	}
	return e->lab->world->create_qp(e->ctx, &init);
}

void lab_end(struct lab *lab, struct end *e, const char *name, unsigned host)
{
	const struct lab_options *opt = &lab->opt;
	*e = (struct end){.lab = lab, .name = name, .ctx = lab->world->host[host]};
	e->pd = ibv_alloc_pd(e->ctx);
	need(lab, "ibv_alloc_pd", e->pd);
	e->scq = ibv_create_cq(e->ctx, opt->cqe, NULL, NULL, 0);
	need(lab, "ibv_create_cq", e->scq);
	e->rcq = ibv_create_cq(e->ctx, opt->cqe, NULL, NULL, 0);
	need(lab, "ibv_create_cq", e->rcq);
	e->buf = lab_memory(lab, LAB_BUF);
	e->mr = ibv_reg_mr(e->pd, e->buf, LAB_BUF, opt->mr_access);
	need(lab, "ibv_reg_mr", e->mr);
	e->qp = lab_qp(e);
	need(lab, "ibv_create_qp_ex", e->qp);
	e->qpx = opt->by_wr ? ibv_qp_to_qp_ex(e->qp) : NULL;
	need(lab, "ibv_query_gid", !ibv_query_gid(e->ctx, 1, lab->world->gid_index, &e->gid));
}

void lab_make(struct lab *lab)
{
	lab_end(lab, &lab->a, "a", 1);
	lab_end(lab, &lab->b, "b", 0);
}

struct ibv_qp_attr lab_attr(const struct end *e, const struct end *peer)
{
	const struct lab_options *opt = &e->lab->opt;
	return (struct ibv_qp_attr){
		.port_num = 1,
		.qp_access_flags = opt->qp_access,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = peer->gid,
				    .sgid_index = e->lab->world->gid_index,
				    .hop_limit = 64}},
		.path_mtu = opt->mtu,
		.dest_qp_num = peer->qp->qp_num,
		.rq_psn = opt->psn,
		.sq_psn = opt->psn,
		.max_dest_rd_atomic = opt->dest_rd_atomic,
		.max_rd_atomic = opt->rd_atomic,
		.min_rnr_timer = opt->min_rnr_timer,
		.timeout = opt->timeout,
		.retry_cnt = opt->retry_cnt,
		.rnr_retry = opt->rnr_retry,
	};
}

void lab_to_rts(struct end *e, const struct end *peer)
{
	static const struct {
		enum ibv_qp_state to;
		int mask;
		const char *call;
	} steps[] = {{IBV_QPS_INIT, LAB_INIT, "to INIT"},
		     {IBV_QPS_RTR, LAB_RTR, "to RTR"},
		     {IBV_QPS_RTS, LAB_RTS, "to RTS"}};
	struct ibv_qp_attr attr = lab_attr(e, peer);
	for (unsigned i = 0; i < 3; i++) {
		attr.qp_state = steps[i].to;
		errno = ibv_modify_qp(e->qp, &attr, steps[i].mask);
		need(e->lab, steps[i].call, !errno);
	}
}

void lab_connect(struct lab *lab)
{
	lab_make(lab);
	lab_to_rts(&lab->a, &lab->b);
	lab_to_rts(&lab->b, &lab->a);
}

/* --- posting --- */

static bool is_atomic(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

struct ibv_send_wr lab_wr(struct end *e, enum ibv_wr_opcode opcode, uint64_t id, size_t off,
			  uint32_t len, const struct end *peer, size_t remote)
{
	struct ibv_send_wr wr;
	memset(&wr, 0, sizeof(wr));
	wr.wr_id = id;
	wr.sg_list = e->sge;
	wr.num_sge = 1;
	wr.opcode = opcode;
	wr.send_flags = IBV_SEND_SIGNALED;
	e->sge[0] = (struct ibv_sge){(uintptr_t)e->buf + off, len, e->mr->lkey};
	if (is_atomic(opcode)) {
		wr.wr.atomic.remote_addr = (uintptr_t)peer->buf + remote;
		wr.wr.atomic.rkey = peer->mr->rkey;
	} else if (opcode != IBV_WR_SEND && opcode != IBV_WR_SEND_WITH_IMM) {
		wr.wr.rdma.remote_addr = (uintptr_t)peer->buf + remote;
		wr.wr.rdma.rkey = peer->mr->rkey;
	}
	return wr;
}

static void build_wr(struct ibv_qp_ex *qp, const struct ibv_send_wr *wr)
{
	switch (wr->opcode) {
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, wr->imm_data);
		break;
	case IBV_WR_SEND:
		ibv_wr_send(qp);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(qp, wr->imm_data);
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		ibv_wr_atomic_cmp_swp(qp, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
				      wr->wr.atomic.compare_add, wr->wr.atomic.swap);
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		ibv_wr_atomic_fetch_add(qp, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
					wr->wr.atomic.compare_add);
		break;
	default: /* ATOMIC WRITE */
		ibv_wr_atomic_write(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr,
				    (void *)(uintptr_t)wr->sg_list[0].addr);
	}
}

/* One piece goes by the setter for one, as programs do it. */
static void set_data(struct ibv_qp_ex *qp, const struct ibv_send_wr *wr)
{
	struct ibv_data_buf buf[LAB_SGES];
	const struct ibv_sge *sge = wr->sg_list;
	if (!(wr->send_flags & IBV_SEND_INLINE)) {
		if (wr->num_sge == 1)
			ibv_wr_set_sge(qp, sge->lkey, sge->addr, sge->length);
		else
			ibv_wr_set_sge_list(qp, (size_t)wr->num_sge, sge);
		return;
	}
	for (int i = 0; i < wr->num_sge; i++)
		buf[i] = (struct ibv_data_buf){(void *)(uintptr_t)sge[i].addr, sge[i].length};
	if (wr->num_sge == 1)
		ibv_wr_set_inline_data(qp, buf[0].addr, buf[0].length);
	else
		ibv_wr_set_inline_data_list(qp, (size_t)wr->num_sge, buf);
}

static int post_by_wr(struct ibv_qp_ex *qp, const struct ibv_send_wr *wr)
{
	ibv_wr_start(qp);
	for (; wr; wr = wr->next) {
		qp->wr_id = wr->wr_id;
		qp->wr_flags = wr->send_flags;
		build_wr(qp, wr);
		if (wr->opcode != IBV_WR_ATOMIC_WRITE)
			set_data(qp, wr);
	}
	return ibv_wr_complete(qp);
}

static int post(struct end *e, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	return e->qpx ? post_by_wr(e->qpx, wr) : ibv_post_send(e->qp, wr, &bad);
}

int lab_post(struct end *e, struct ibv_send_wr *wr)
{
	int error = post(e, wr);
	lab_say(e->lab, "%s: post %lu: %s", e->name, (unsigned long)wr->wr_id, lab_error(error));
	return error;
}

int lab_post_quietly(struct end *e, struct ibv_send_wr *wr)
{
	int error = post(e, wr);
	if (error)
		lab_say(e->lab, "%s: post %lu: %s", e->name, (unsigned long)wr->wr_id,
			lab_error(error));
	return error;
}

int lab_op(struct end *e, enum ibv_wr_opcode opcode, uint64_t id, size_t off, uint32_t len,
	   const struct end *peer, size_t remote)
{
	struct ibv_send_wr wr = lab_wr(e, opcode, id, off, len, peer, remote);
	return lab_post(e, &wr);
}

int lab_recv(struct end *e, uint64_t id, size_t off, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)e->buf + off, len, e->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;
	int error = ibv_post_recv(e->qp, &wr, &bad);
	if (error)
		lab_say(e->lab, "%s: post receive %lu: %s", e->name, (unsigned long)id,
			lab_error(error));
	return error;
}

int lab_flush(struct end *e, uint64_t id, const struct end *peer, size_t remote, size_t len,
	      uint8_t type, uint8_t level)
{
	struct ibv_qp_ex *qp = e->qpx;
	ibv_wr_start(qp);
	qp->wr_id = id;
	qp->wr_flags = IBV_SEND_SIGNALED;
	e->lab->world->flush(qp, peer->mr->rkey, (uintptr_t)peer->buf + remote, len, type, level);
	int error = ibv_wr_complete(qp);
	lab_say(e->lab, "%s: post %lu: %s", e->name, (unsigned long)id, lab_error(error));
	return error;
}
