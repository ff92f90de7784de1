/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small programs on verbs. One task plays both hosts: A posts, B's memory is looked at; in the
 * last ones B's CPU stores to its PM. Run 0
 * of each rule is the plain one, in which everything must also complete well. In the
 * others packets are lost, held and doubled, and data land late; there a request that
 * fails (too many retries) ends the run without a verdict.
 *
 * Sequence numbers start just before they wrap, and the retry timer is short, so that
 * a packet that is held meets its own retransmission.
 */
#include "checker/hunt/nic_rules.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/pmem/crash.h"
#include "core/rnic/rnic.h"
#include "core/rt/sim.h"
#include "faultinject/random_source.h"

#define BUF	   8192 /* bytes of each host's memory */
#define POOL	   256	/* bytes of PM */
#define FIRST_PSN  0xfffffd
#define TIMEOUT	   3	      /* 4.096 us << 3 */
#define SETTLE_NS  1000000000 /* longer than all holds of a run that end */
#define PATIENCE   200000     /* polls */
#define DEVIATIONS 6
#define ACCESS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

struct side {
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *buf; /* BUF bytes; of which the first half is registered */
};

struct bench {
	struct sim *sim;
	struct pmem *pm; /* B's, besides its memory: for the rules of persistence */
	const struct hardware *hw;
	const struct rule *rule;
	struct side a, b;
	bool plain, other_done;
	struct nic_rules_result *out;
};

/* What a rule ends with. */
enum verdict { HOLDS_HERE, BROKEN_HERE, NO_VERDICT };

struct rule {
	const char *name;
	enum verdict (*run)(struct bench *l);
};

static enum verdict broken(struct bench *l, const char *text)
{
	snprintf(l->out->text, sizeof(l->out->text), "%s", text);
	return BROKEN_HERE;
}

static void open_side(struct bench *l, struct side *s, struct rnic_net *net, unsigned host)
{
	s->verbs = rnic_open(net, host, NULL);
	s->pd = rnic_alloc_pd(s->verbs);
	s->cq = rnic_create_cq(s->verbs, 64, NULL, NULL, 0);
	s->buf = sim_alloc(l->sim, BUF);
	s->mr = rnic_reg_mr(s->pd, s->buf, BUF / 2, ACCESS);
	struct ibv_qp_init_attr init = {.send_cq = s->cq,
					.recv_cq = s->cq,
					.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = 32,
						.max_recv_wr = 32,
						.max_send_sge = 1,
						.max_recv_sge = 1}};
	s->qp = rnic_create_qp(s->pd, &init);
}

static void join(struct side *s, struct side *peer)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ACCESS};
	rnic_modify_qp(s->qp, &a,
		       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
				 .path_mtu = IBV_MTU_256,
				 .dest_qp_num = peer->qp->qp_num,
				 .rq_psn = FIRST_PSN,
				 .max_dest_rd_atomic = 4,
				 .min_rnr_timer = 1,
				 .ah_attr = {.is_global = 1, .port_num = 1}};
	rnic_query_gid(peer->verbs, 1, 0, &a.ah_attr.grh.dgid);
	rnic_modify_qp(s->qp, &a,
		       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				 .timeout = TIMEOUT,
				 .retry_cnt = 7,
				 .rnr_retry = 7,
				 .sq_psn = FIRST_PSN,
				 .max_rd_atomic = 4};
	rnic_modify_qp(s->qp, &a,
		       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

/* --- requests --- */

struct request {
	enum ibv_wr_opcode opcode;
	uint32_t from, to, len; /* offsets in A's and in B's memory, bytes */
	unsigned flags;		/* IBV_SEND_FENCE */
	uint64_t add;
	uint32_t rkey; /* 0: B's */
};

static void post(struct bench *l, const struct request *r)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)l->a.buf + r->from, .length = r->len, .lkey = l->a.mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = r->opcode,
				 .send_flags = IBV_SEND_SIGNALED | r->flags},
			   *bad;
	uint64_t va = (uintptr_t)l->b.buf + r->to;
	uint32_t rkey = r->rkey ? r->rkey : l->b.mr->rkey;
	if (r->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = va;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = r->add;
	} else {
		wr.wr.rdma.remote_addr = va;
		wr.wr.rdma.rkey = rkey;
	}
	ibv_post_send(l->a.qp, &wr, &bad);
}

#define POST(op, ...) post(l, &(struct request){.opcode = IBV_WR_##op, __VA_ARGS__})

/* The next completion of a side; -1: none comes. */
static int completion(struct bench *l, struct side *s)
{
	struct ibv_wc wc;
	for (unsigned i = 0; i < PATIENCE; i++) {
		if (ibv_poll_cq(s->cq, 1, &wc))
			return (int)wc.status;
		sim_sleep(l->sim, 50);
	}
	return -1;
}

/* All of A's next n requests complete well. */
static bool complete(struct bench *l, unsigned n)
{
	while (n--)
		if (completion(l, &l->a) != IBV_WC_SUCCESS)
			return false;
	return true;
}

static void receive(struct bench *l, uint32_t at, uint32_t len)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)l->b.buf + at, .length = len, .lkey = l->b.mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	ibv_post_recv(l->b.qp, &wr, &bad);
}

static void fill(uint8_t *at, size_t len, uint8_t seed)
{
	for (size_t i = 0; i < len; i++)
		at[i] = (uint8_t)(1 + (seed + i * 7) % 250);
}

static enum verdict holds(struct bench *l, bool so, const char *text)
{
	return so ? HOLDS_HERE : broken(l, text);
}

static enum verdict failed(struct bench *l)
{
	return l->plain ? broken(l, "a request does not complete well, with nothing in its way")
			: NO_VERDICT;
}

/* --- the rules --- */

static enum verdict write_arrives(struct bench *l)
{
	const uint32_t from = 5, to = 23, len = 1501;
	fill(l->a.buf, BUF / 2, 1);
	for (unsigned i = 0; i < 2; i++)
		POST(RDMA_WRITE, .from = from + 100 * i, .to = to + 1600 * i, .len = len);
	if (!complete(l, 2))
		return failed(l);
	sim_sleep(l->sim, SETTLE_NS);
	for (unsigned i = 0; i < 2; i++)
		if (memcmp(l->a.buf + from + 100 * i, l->b.buf + to + 1600 * i, len))
			return broken(l, "a WRITE completed, and its data are not there");
	return HOLDS_HERE;
}

static enum verdict write_once(struct bench *l)
{
	fill(l->a.buf, 64, 1);
	POST(RDMA_WRITE, .len = 64);
	if (!complete(l, 1))
		return failed(l);
	sim_sleep(l->sim, 1000);
	while (!l->plain && !l->b.buf[63] && sim_now(l->sim) < SETTLE_NS)
		sim_sleep(l->sim, 1000);
	if (!l->b.buf[63])
		return l->plain ? broken(l, "a WRITE completed, and its data do not come")
				: NO_VERDICT;
	memset(l->b.buf, 0xee, 64);
	sim_sleep(l->sim, SETTLE_NS);
	return holds(l, l->b.buf[0] == 0xee,
		     "a WRITE that had landed and was overwritten lands again");
}

static enum verdict send_behind_write(struct bench *l)
{
	fill(l->a.buf, 1024, 1);
	receive(l, 2048, 64);
	POST(RDMA_WRITE, .len = 200);
	POST(SEND, .from = 512, .len = 64);
	if (completion(l, &l->b) != IBV_WC_SUCCESS)
		return failed(l);
	if (memcmp(l->a.buf, l->b.buf, 200))
		return broken(l, "a receive completes before the WRITE that was posted before its "
				 "SEND is there");
	return holds(l, !memcmp(l->a.buf + 512, l->b.buf + 2048, 64),
		     "a receive completes before its data are there");
}

static enum verdict read_behind_write(struct bench *l)
{
	fill(l->a.buf, 256, 1);
	POST(RDMA_WRITE, .len = 256);
	POST(RDMA_READ, .from = 1024, .len = 256);
	if (!complete(l, 2))
		return failed(l);
	return holds(l, !memcmp(l->a.buf, l->a.buf + 1024, 256),
		     "a READ does not see the WRITE that was posted before it");
}

static enum verdict read_whole(struct bench *l)
{
	fill(l->b.buf, BUF / 2, 3);
	POST(RDMA_READ, .from = 7, .to = 11, .len = 1200);
	if (!complete(l, 1))
		return failed(l);
	return holds(l, !memcmp(l->a.buf + 7, l->b.buf + 11, 1200),
		     "a READ completed, and not all of its data are there");
}

static enum verdict left_to_right(struct bench *l)
{
	fill(l->a.buf, 256, 1);
	POST(RDMA_WRITE, .len = 256);
	for (unsigned i = 0; i < 2000 && !l->b.buf[255]; i++)
		sim_sleep(l->sim, 50);
	if (l->b.buf[255] && l->hw->dma_order == DMA_LEFT && memcmp(l->a.buf, l->b.buf, 256))
		return broken(l, "the last byte of a WRITE is there before the first one");
	return complete(l, 1) ? HOLDS_HERE : failed(l);
}

static enum verdict fence_waits(struct bench *l)
{
	l->b.buf[0] = 1;
	l->a.buf[0] = 2;
	POST(RDMA_READ, .from = 64, .len = 8);
	POST(RDMA_WRITE, .len = 8, .flags = IBV_SEND_FENCE);
	if (!complete(l, 2))
		return failed(l);
	return holds(l, l->a.buf[64] == 1, "a READ sees the fenced WRITE that was posted after it");
}

static enum verdict atomic_once(struct bench *l)
{
	uint64_t sum;
	for (unsigned i = 0; i < 3; i++)
		POST(ATOMIC_FETCH_AND_ADD, .from = 8 * i, .len = 8, .add = 1);
	if (!complete(l, 3))
		return failed(l);
	sim_sleep(l->sim, SETTLE_NS);
	memcpy(&sum, l->b.buf, sizeof(sum));
	return holds(l, sum == 3, "three atomics that add 1 have not added 3");
}

/* The request must be refused, and nothing may change from B's byte `at` on. */
static enum verdict refused(struct bench *l, const struct request *r, uint32_t at, const char *text)
{
	fill(l->a.buf, 256, 1);
	memset(l->b.buf + at, 0xee, 256);
	post(l, r);
	int status = completion(l, &l->a);
	sim_sleep(l->sim, SETTLE_NS);
	for (unsigned i = 0; i < 256; i++)
		if (l->b.buf[at + i] != 0xee)
			return broken(l, text);
	return holds(l, status != IBV_WC_SUCCESS, "a request that must be refused completes well");
}

static enum verdict dead_key(struct bench *l)
{
	uint32_t rkey = l->b.mr->rkey;
	rnic_dereg_mr(l->b.mr);
	return refused(l, &(struct request){.opcode = IBV_WR_RDMA_WRITE, .len = 256, .rkey = rkey},
		       0, "a WRITE lands in a region that was deregistered");
}

static enum verdict in_bounds(struct bench *l)
{
	return refused(
		l, &(struct request){.opcode = IBV_WR_RDMA_WRITE, .to = BUF / 2 - 64, .len = 128},
		BUF / 2, "a WRITE lands after the end of its region");
}

static enum verdict destroyed(struct bench *l)
{
	uint8_t before[1024];
	fill(l->a.buf, 1024, 1);
	POST(RDMA_WRITE, .len = 1024);
	for (unsigned i = 0; i < 1000 && !l->b.buf[0]; i++)
		sim_sleep(l->sim, 20);
	rnic_destroy_qp(l->b.qp);
	memcpy(before, l->b.buf, sizeof(before));
	sim_sleep(l->sim, SETTLE_NS);
	return holds(l, !memcmp(before, l->b.buf, sizeof(before)),
		     "data land after their queue pair was destroyed");
}

static enum verdict flushed(struct bench *l)
{
	POST(RDMA_WRITE, .len = 64, .rkey = 1);
	POST(RDMA_WRITE, .len = 64, .to = 512);
	completion(l, &l->a);
	return holds(l, completion(l, &l->a) != IBV_WC_SUCCESS,
		     "a request after one that was refused completes well");
}

/* --- persistence: B's CPU alone --- */

static enum verdict flushed_is_durable(struct bench *l)
{
	uint8_t bytes[60];
	fill(bytes, sizeof(bytes), 1);
	pmem_cpu_copy(l->pm, 40, bytes, 0, sizeof(bytes), 0); /* the ends of two lines */
	pmem_cpu_flush(l->pm, 40, sizeof(bytes), 0);
	pmem_cpu_fence(l->pm, 0);
	return holds(l, !pmem_dirty(l->pm),
		     "a line was flushed, a fence came, and it may still be lost");
}

static void flush_line(struct bench *l, unsigned line)
{
	pmem_cpu_copy(l->pm, LINE * line, NULL, 0xff, 8, 0);
	pmem_cpu_flush(l->pm, LINE * line, 8, 0);
}

static void other_task(void *arg)
{
	struct bench *l = arg;
	flush_line(l, 1);
	pmem_cpu_fence(l->pm, 0);
	l->other_done = true;
}

/* What one task has flushed waits for that task's fence, whatever another fences in between. */
static enum verdict fence_is_own(struct bench *l)
{
	flush_line(l, 0);
	if (sim_spawn(l->sim, HOST_SERVER, NULL, other_task, l))
		return NO_VERDICT;
	for (unsigned i = 0; i < PATIENCE && !l->other_done; i++)
		sim_sleep(l->sim, 50);
	if (!l->other_done)
		return l->plain ? broken(l, "a task does not come to its fence") : NO_VERDICT;
	pmem_cpu_fence(l->pm, 0);
	return holds(l, !pmem_dirty(l->pm),
		     "a line was flushed, its task's fence came after another task's, "
		     "and the line may still be lost");
}

/* Three stores to a line: it survives with the first k of them. */
static enum verdict prefix_survives(struct bench *l)
{
	uint8_t line[LINE];
	for (unsigned i = 0; i < 3; i++)
		pmem_cpu_copy(l->pm, 8 * i, NULL, 0xff, 8, 0);
	for (unsigned k = 0; k < pmem_line_answers(l->pm, 0); k++) {
		pmem_line_content(l->pm, 0, k, line);
		for (unsigned i = 1; i < 24; i++)
			if (line[i] > line[i - 1] || (line[i] != line[i - 1] && i % 8))
				return broken(
					l,
					"a line survives with a store, and without one before it");
	}
	return HOLDS_HERE;
}

static const struct rule rules[] = {
	{"write_arrives", write_arrives},
	{"write_once", write_once},
	{"send_behind_write", send_behind_write},
	{"read_behind_write", read_behind_write},
	{"read_whole", read_whole},
	{"left_to_right", left_to_right},
	{"fence_waits", fence_waits},
	{"atomic_once", atomic_once},
	{"dead_key", dead_key},
	{"in_bounds", in_bounds},
	{"destroyed", destroyed},
	{"flushed", flushed},
	{"flushed_is_durable", flushed_is_durable},
	{"fence_is_own", fence_is_own},
	{"prefix_survives", prefix_survives},
};

#define RULES (sizeof(rules) / sizeof(rules[0]))

/* --- running them --- */

static void play(void *arg)
{
	struct bench *l = arg;
	struct source *source = sim_get_source(l->sim);
	struct rnic_net *net = rnic_net_new(l->sim, l->hw);
	sim_source(l->sim, NULL);
	open_side(l, &l->a, net, 1);
	open_side(l, &l->b, net, HOST_SERVER);
	join(&l->a, &l->b);
	join(&l->b, &l->a);
	sim_source(l->sim, source);
	actor_label(sim_actor(l->sim), (struct op_label){1, OP_PUT, 1});
	l->out->broken = l->rule->run(l) == BROKEN_HERE;
	sim_stop(l->sim, SIM_DONE);
}

/* What is held for ever never lands: that is the model, and breaks no rule. */
static bool held_for_ever(const struct deviations *taken)
{
	for (unsigned i = 0; i < taken->n; i++)
		if ((taken->d[i].kind == CHOICE_LAND || taken->d[i].kind == CHOICE_FETCH) &&
		    taken->d[i].answer == DELAY_FOREVER)
			return true;
	return false;
}

int nic_rules(const struct hardware *hw, uint64_t seed, uint64_t runs, struct nic_rules_result *out)
{
	struct sim *sim = sim_new();
	struct pmem_stack *stack = pmem_stack_new(1, POOL);
	struct random_source random = {0};
	memset(out, 0, sizeof(*out));
	if (!sim || !stack) {
		sim_free(sim);
		pmem_stack_free(stack);
		return -ENOMEM;
	}
	pmem_load(stack, NULL, POOL);
	for (uint64_t run = 0; run < runs && !out->broken; run++) {
		for (unsigned i = 0; i < RULES && !out->broken; i++) {
			struct bench l = {.sim = sim,
					  .pm = pmem_machine(stack, 0),
					  .hw = hw,
					  .rule = &rules[i],
					  .plain = !run,
					  .out = out};
			random.taken.n = 0;
			if (run)
				random_start(&random, seed * 1000003 + run, DEVIATIONS);
			sim_reset(sim, run ? &random.source : NULL);
			pmem_begin(l.pm, sim, hw);
			sim_spawn(sim, HOST_SERVER, NULL, play, &l);
			sim_run(sim);
			pmem_end(l.pm);
			out->runs++;
			out->broken &= !held_for_ever(&random.taken);
			out->run = run;
			out->rule = out->broken ? rules[i].name : NULL;
		}
	}
	if (out->broken)
		deviations_append(&out->deviations, &random.taken);
	deviations_free(&random.taken);
	pmem_stack_free(stack);
	sim_free(sim);
	return 0;
}
