/* SPDX-License-Identifier: BSD-3-Clause */
/* See rnic_world.h. */
#include "tests/core/rnic/rnic_world.h"
#include "core/rnic/objects/mr.h"
#include "core/rnic/objects/qp.h"

/* The fallback of the inline function: a context of ours never needs it. */
#pragma push_macro("ibv_query_port")
#undef ibv_query_port
int ibv_query_port(struct ibv_context *context, uint8_t port_num,
		   struct _compat_ibv_port_attr *attr)
{
	abort();
}
#pragma pop_macro("ibv_query_port")

/* What the inline ibv_create_qp_ex() calls when nothing extended is asked for. */
struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	return rnic_create_qp(pd, attr);
}

/* The fallback of the inline ibv_query_device_ex(): never needed. */
int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	abort();
}

static unsigned test_answer(struct source *source, const struct choice_point *at, unsigned n)
{
	struct test_source *me = (struct test_source *)source;
	me->asked[at->kind]++;
	if (me->answer)
		return me->answer(at, n);
	if (random_next(&me->state) % 1000 >= me->permille[at->kind])
		return 0;
	unsigned k = 1 + (unsigned)(random_next(&me->state) % (n - 1));
	/* What is held for ever never completes: not here. */
	if (at->kind == CHOICE_LAND || at->kind == CHOICE_FETCH)
		k = 1 + k % 6;
	return k;
}

struct options opt;

struct sim *sim;
struct pmem *pool;
struct rnic_net *net;
struct test_source source;
struct side a, b;
static void (*body)(void);

void setup_options(void)
{
	memset(&source, 0, sizeof(source));
	source.source.answer = test_answer;
	opt = (struct options){
		.hw = {.domain = DOMAIN_DMP,
		       .ddio = DDIO_ON,
		       .transport = TRANSPORT_IB,
		       .mtu = 4096,
		       .iio_in_mhp = true,
		       .ack_early = true},
		.psn = 100,
		.mtu = IBV_MTU_1024,
		.timeout = 8, /* 1 ms */
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 1,
		.rd_atomic = 4,
		.dest_rd_atomic = 4,
		.qp_access = ALL_ACCESS | PERSISTENT,
		.send_wr = 64,
		.recv_wr = 64,
		.sge = 4,
		.inline_bytes = 128,
		.cqe = 256,
		.sig_all = 0,
	};
}

static struct ibv_qp *make_qp(const struct side *s, enum ibv_qp_type type, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = s->scq,
		.recv_cq = s->rcq,
		.srq = srq,
		.cap = {opt.send_wr, opt.recv_wr, opt.sge, opt.sge, opt.inline_bytes},
		.qp_type = type,
		.sq_sig_all = opt.sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     (opt.send_ops ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
		.pd = s->pd,
		.send_ops_flags = opt.send_ops,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(s->ctx, &init);
	ck_assert_ptr_nonnull(qp);
	return qp;
}

/* All objects of a context that has been opened. `buf`: NULL makes one, if the host has no PM. */
static void make_objects(struct side *s, struct pmem *pm, uint8_t *buf)
{
	ck_assert_ptr_nonnull(s->ctx);
	s->pd = rnic_alloc_pd(s->ctx);
	s->scq = rnic_create_cq(s->ctx, (int)opt.cqe, NULL, NULL, 0);
	s->rcq = rnic_create_cq(s->ctx, (int)opt.cqe, NULL, NULL, 0);
	s->buf = pm ? pmem_base(pm) : buf ? buf : sim_alloc(sim, BUF);
	s->mr = rnic_reg_mr(s->pd, s->buf, BUF, ALL_ACCESS | (pm ? PERSISTENT : 0));
	ck_assert_ptr_nonnull(s->mr);
	s->qp = make_qp(s, IBV_QPT_RC, NULL);
	s->qpx = rnic_qp_to_qp_ex(s->qp);
	ck_assert_int_eq(rnic_query_gid(s->ctx, 1, 0, &s->gid), 0);
}

static void make_side(struct side *s, unsigned host)
{
	struct pmem *pm = host == HOST_SERVER ? pool : NULL;
	s->ctx = rnic_open(net, host, pm);
	make_objects(s, pm, NULL);
}

void restart_side(struct side *s, unsigned host)
{
	struct pmem *pm = host == HOST_SERVER ? pool : NULL;
	rnic_close(s->ctx);
	s->ctx = rnic_open_again(s->ctx, pm);
	make_objects(s, pm, s->buf);
}

struct ibv_qp_attr attr_for(const struct side *peer)
{
	return (struct ibv_qp_attr){
		.port_num = 1,
		.qp_access_flags = opt.qp_access,
		.qkey = QKEY,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = peer->gid, .hop_limit = 64}},
		.path_mtu = opt.mtu,
		.dest_qp_num = peer->qp->qp_num,
		.rq_psn = opt.psn,
		.sq_psn = opt.psn,
		.max_dest_rd_atomic = opt.dest_rd_atomic,
		.max_rd_atomic = opt.rd_atomic,
		.min_rnr_timer = opt.min_rnr_timer,
		.timeout = opt.timeout,
		.retry_cnt = opt.retry_cnt,
		.rnr_retry = opt.rnr_retry,
	};
}

int modify(struct side *s, const struct side *peer, enum ibv_qp_state to, int mask)
{
	struct ibv_qp_attr attr = attr_for(peer);
	attr.qp_state = to;
	return rnic_modify_qp(s->qp, &attr, mask | IBV_QP_STATE);
}

/* What the step to this state needs. */
static int mask_of(const struct side *s, enum ibv_qp_state to)
{
	const bool ud = s->qp->qp_type == IBV_QPT_UD, rc = s->qp->qp_type == IBV_QPT_RC;

	if (to == IBV_QPS_INIT)
		return ud ? MASK_INIT_UD : MASK_INIT;
	if (to == IBV_QPS_RTR)
		return ud ? 0 : rc ? MASK_RTR : MASK_RTR_UC;
	return rc ? MASK_RTS : IBV_QP_SQ_PSN;
}

static void go(struct side *s, const struct side *peer, enum ibv_qp_state until)
{
	for (enum ibv_qp_state to = IBV_QPS_INIT; to <= IBV_QPS_RTS && to <= until; to++)
		ck_assert_int_eq(modify(s, peer, to, mask_of(s, to)), 0);
}

void connect_side(struct side *s, const struct side *peer)
{
	go(s, peer, IBV_QPS_RTS);
}

void connect_both(void)
{
	connect_side(&a, &b);
	connect_side(&b, &a);
}

void reconnect(void)
{
	ck_assert_int_eq(modify(&a, &b, IBV_QPS_RESET, 0), 0);
	ck_assert_int_eq(modify(&b, &a, IBV_QPS_RESET, 0), 0);
	connect_both();
}

void bring_to(struct side *s, const struct side *peer, enum ibv_qp_state to)
{
	ck_assert_int_eq(modify(s, peer, IBV_QPS_RESET, 0), 0);
	go(s, peer, to);
	if (to > IBV_QPS_RTS)
		ck_assert_int_eq(modify(s, peer, to, 0), 0);
	ck_assert_int_eq(s->qp->state, to);
}

void remake_qp(struct side *s, enum ibv_qp_type type, struct ibv_srq *srq)
{
	ck_assert_int_eq(rnic_destroy_qp(s->qp), 0);
	s->qp = make_qp(s, type, srq);
	s->qpx = rnic_qp_to_qp_ex(s->qp);
}

void make_sides(void)
{
	make_side(&a, 1);
	make_side(&b, HOST_SERVER);
}

static void task(void *arg)
{
	make_sides();
	body();
	sim_stop(sim, SIM_DONE);
}

static void connected(void *arg)
{
	make_sides();
	connect_both();
	sim_source(sim, source.answer || source.state ? &source.source : NULL);
	body();
	sim_stop(sim, SIM_DONE);
}

void run(void (*start)(void *), void (*fn)(void))
{
	sim = sim_new();
	sim_reset(sim, NULL);
	net = rnic_net_new(sim, &opt.hw);
	body = fn;
	ck_assert_int_eq(sim_spawn(sim, 1, "", start, NULL), 0);
	enum sim_end end = sim_run(sim);
	ck_assert_msg(end == SIM_DONE, "ended with %d: %s", (int)end, sim_fault(sim, NULL));
	sim_free(sim);
}

void run_task(void (*fn)(void))
{
	run(task, fn);
}

void run_connected(void (*fn)(void))
{
	run(connected, fn);
}

/* --- doing things --- */

struct ibv_send_wr wr_make(const struct side *s, enum ibv_wr_opcode opcode, struct ibv_sge *sge,
			   size_t off, uint32_t len, const struct side *peer, size_t remote)
{
	*sge = (struct ibv_sge){(uintptr_t)s->buf + off, len, s->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 7,
				 .sg_list = sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED};
	if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)peer->buf + remote;
		wr.wr.atomic.rkey = peer->mr->rkey;
	} else if (opcode == IBV_WR_FLUSH) {
		wr.num_sge = 0;
		flush_wr(&wr, peer->mr->rkey, (uintptr_t)peer->buf + remote, len, IBV_FLUSH_GLOBAL,
			 IBV_FLUSH_RANGE);
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)peer->buf + remote;
		wr.wr.rdma.rkey = peer->mr->rkey;
	}
	return wr;
}

void post(struct side *s, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	ck_assert_int_eq(ibv_post_send(s->qp, wr, &bad), 0);
}

void op(struct side *s, enum ibv_wr_opcode opcode, size_t off, uint32_t len,
	const struct side *peer, size_t remote, uint64_t id, unsigned flags)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = wr_make(s, opcode, &sge, off, len, peer, remote);
	wr.wr_id = id;
	wr.send_flags = flags;
	post(s, &wr);
}

void recv_post(struct side *s, size_t off, uint32_t len, uint64_t id)
{
	struct ibv_sge sge = {(uintptr_t)s->buf + off, len, s->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;
	ck_assert_int_eq(ibv_post_recv(s->qp, &wr, &bad), 0);
}

void random_traffic(unsigned rounds, bool late)
{
	uint64_t state = source.state;
	struct ibv_send_wr add;
	struct ibv_sge sge;

	set_word(&b, 0, 0);
	for (unsigned i = 0; i < rounds; i++) {
		uint32_t len = (uint32_t)(random_next(&state) % 40000),
			 off = (uint32_t)(8 + random_next(&state) % 40000);
		bool ready = !late || i % 2;

		fill(a.buf, len, i);
		if (ready)
			recv_post(&b, 180000, 40000, i);
		op(&a, IBV_WR_RDMA_WRITE, 0, len, &b, off, 1, 0);
		op(&a, IBV_WR_RDMA_READ, 50000, len, &b, off, 2, 0);
		op(&a, IBV_WR_SEND, 0, len / 3, &b, 0, 3, 0);
		add = wr_make(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, 240000, 8, &b, 0);
		add.wr.atomic.compare_add = 1;
		add.send_flags = 0;
		post(&a, &add);
		op(&a, IBV_WR_RDMA_READ, 100000, len / 2, &b, off, 4, IBV_SEND_SIGNALED);
		if (!ready) {
			rt_sleep(20 * US);
			recv_post(&b, 180000, 40000, i);
		}
		expect(b.rcq, i, IBV_WC_SUCCESS);
		ck_assert_mem_eq(b.buf + 180000, a.buf, len / 3);
		expect(a.scq, 4, IBV_WC_SUCCESS);
		ck_assert_mem_eq(a.buf + 50000, a.buf, len);
		ck_assert_mem_eq(a.buf + 100000, a.buf, len / 2);
	}
	op_done(&a, IBV_WR_RDMA_READ, 240000, 8, &b, 0);
	ck_assert_uint_eq(word(&a, 240000), rounds);
}

struct packet *packet_to_b(uint8_t opcode, uint32_t len, int byte)
{
	struct packet *pkt = packet_get(net, len);

	memset(pkt->payload, byte, len);
	pkt->from = 1; /* a's host */
	pkt->src_qpn = a.qp->qp_num;
	pkt->dest_qpn = b.qp->qp_num;
	pkt->psn = opt.psn;
	pkt->opcode = opcode;
	pkt->ack_req = true;
	pkt->va = (uintptr_t)b.buf;
	pkt->rkey = b.mr->rkey;
	pkt->dma_len = len;
	pkt->name.who = sim_actor(sim);
	return pkt;
}

void deliver_to_b(struct packet *pkt)
{
	rnic_deliver(net, HOST_SERVER, pkt);
	rt_sleep(10 * US);
}

struct ibv_wc wait_for(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;
	while (!(n = ibv_poll_cq(cq, 1, &wc)))
		rt_yield();
	ck_assert_int_eq(n, 1);
	return wc;
}

void expect(struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc = wait_for(cq);
	ck_assert_msg(wc.status == status && wc.wr_id == id, "request %lu: %s, not request %lu: %s",
		      (unsigned long)wc.wr_id, rnic_wc_status_str(wc.status), (unsigned long)id,
		      rnic_wc_status_str(status));
}

void post_done(struct side *s, struct ibv_send_wr *wr, enum ibv_wc_status status)
{
	post(s, wr);
	expect(s->scq, wr->wr_id, status);
}

void op_done(struct side *s, enum ibv_wr_opcode opcode, size_t off, uint32_t len,
	     const struct side *peer, size_t remote)
{
	const uint64_t id = 1234;

	op(s, opcode, off, len, peer, remote, id, IBV_SEND_SIGNALED);
	expect(s->scq, id, IBV_WC_SUCCESS);
}

bool empty(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	return ibv_poll_cq(cq, 1, &wc) == 0;
}

#define EVENTS 32
unsigned event_count;
static struct {
	enum ibv_event_type type;
	void *element;
} events[EVENTS];

static void note_event(struct rnic_hca *hca, enum ibv_event_type type, void *element)
{
	ck_assert_ptr_eq(hca, to_hca(b.ctx));
	ck_assert_uint_lt(event_count, EVENTS);
	events[event_count].type = type;
	events[event_count++].element = element;
}

void note_events(void)
{
	event_count = 0;
	to_hca(a.ctx)->hooks.event = to_hca(b.ctx)->hooks.event = note_event;
}

unsigned noted(enum ibv_event_type type, const void *element)
{
	unsigned n = 0;
	for (unsigned i = 0; i < event_count; i++)
		n += events[i].type == type && events[i].element == element;
	return n;
}

void fill(uint8_t *to, size_t len, uint64_t seed)
{
	for (size_t i = 0; i < len; i++)
		to[i] = (uint8_t)random_next(&seed);
}

uint64_t word(const struct side *s, size_t off)
{
	uint64_t value;
	memcpy(&value, s->buf + off, 8);
	return value;
}

void set_word(struct side *s, size_t off, uint64_t value)
{
	memcpy(s->buf + off, &value, 8);
}

static void pm_connected(void *arg)
{
	pmem_begin(pool, sim, &opt.hw);
	connected(arg);
}

void run_pm(void (*fn)(void))
{
	struct pmem_stack *stack = pmem_stack_new(1, BUF);
	pmem_load(stack, NULL, BUF);
	pool = pmem_machine(stack, 0);
	run(pm_connected, fn);
	pmem_end(pool);
	pmem_stack_free(stack);
	pool = NULL;
}
