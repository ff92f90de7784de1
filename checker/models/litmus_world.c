/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The machines of a litmus test: a task for each thread, an RNIC for each host, and connected queue
 * pairs. All locations lie in one pool, to which every RNIC has access.
 */
#include "checker/models/litmus_search.h"
#include "core/rnic/objects/cq.h"
#include "core/rnic/objects/mr.h"
#include "core/rnic/objects/post.h"
#include "core/rnic/objects/qp.h"
#include "core/verbs_compat.h"

#define ACCESS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT)
#define SCRATCH	  (8 * LITMUS_WORDS) /* bytes */
#define RD_ATOMIC 16		     /* requests that are not posted, at once */

/* --- threads --- */

/* Is there a completion for this thread? Another one may take it: their order matters. */
static bool is_empty_for(struct sim *sim, const struct ibv_cq *ibv)
{
	const struct rnic_cq *cq = (const struct rnic_cq *)ibv;
	sim_touch_state(sim, TOUCH_DRAM_READ, &cq->head, sizeof(cq->head));
	return cq->head == cq->tail;
}

/* Wait for this statement's turn. One that waits for a completion gets it when there is one. */
static void wait_turn(struct running_thread *me, const struct litmus_statement *s, bool first)
{
	struct sim *sim = me->search->sim;
	struct ibv_cq *cq = litmus_awaited(me, s);
	if (!first && (!cq || !is_empty_for(sim, cq)))
		sim_turn(sim);
	while (cq && is_empty_for(sim, cq)) {
		sim_idle_on(sim, cq);
		sim_yield(sim);
	}
}

static void run_thread(void *arg)
{
	struct running_thread *me = arg;
	const struct litmus_thread *thread = &me->search->test->thread[me->thread];
	bool first = true;
	me->name_hash = sim_actor(me->search->sim)->name_hash;
	for (unsigned i = 0; i < thread->statements; i++) {
		const struct litmus_statement *s = &thread->statement[i];
		if (litmus_is_skipped(me, s))
			continue;
		wait_turn(me, s, first);
		first = false;
		litmus_trace_statement(me, s);
		if (!litmus_execute(me, s)) {
			me->missed = s;
			return;
		}
	}
	me->ended = true;
}

/* --- RNICs and queue pairs --- */

static void open_end(struct ibv_context *verbs, struct ibv_pd *pd, struct qp_end *end)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC};
	end->sent = rnic_create_cq(verbs, LITMUS_QUEUE, NULL, NULL, 0);
	end->received = rnic_create_cq(verbs, LITMUS_QUEUE, NULL, NULL, 0);
	init.send_cq = end->sent;
	init.recv_cq = end->received;
	init.cap = (struct ibv_qp_cap){.max_send_wr = LITMUS_QUEUE,
				       .max_recv_wr = LITMUS_QUEUE,
				       .max_send_sge = 1,
				       .max_recv_sge = 1,
				       .max_inline_data = 8};
	end->qp = rnic_create_qp(pd, &init);
}

static void connect_end(struct qp_end *end, const struct qp_end *peer,
			struct ibv_context *peer_verbs, unsigned mtu)
{
	enum ibv_mtu path = IBV_MTU_256;
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ACCESS};
	while ((256u << (path - IBV_MTU_256)) < mtu)
		path++;
	rnic_modify_qp(end->qp, &a,
		       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
				 .path_mtu = path,
				 .dest_qp_num = peer->qp->qp_num,
				 .max_dest_rd_atomic = RD_ATOMIC,
				 .min_rnr_timer = 1,
				 .ah_attr = {.is_global = 1, .port_num = 1}};
	rnic_query_gid(peer_verbs, 1, 0, &a.ah_attr.grh.dgid);
	rnic_modify_qp(end->qp, &a,
		       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	/* No timer: packets do not get lost. A receiver that is not ready is an error at once. */
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .max_rd_atomic = RD_ATOMIC};
	rnic_modify_qp(end->qp, &a,
		       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static void open_queue_pairs(struct litmus_search *p, struct ibv_context *const *verbs,
			     struct ibv_pd *const *pd)
{
	const struct litmus_test *test = p->test;
	for (unsigned q = 0; q < test->qps; q++) {
		const uint8_t *host = test->qp[q].host;
		for (unsigned e = 0; e < 2; e++)
			open_end(verbs[host[e]], pd[host[e]], &p->end[q][e]);
		for (unsigned e = 0; e < 2; e++)
			connect_end(&p->end[q][e], &p->end[q][1 - e], verbs[host[1 - e]],
				    test->hw.mtu);
	}
}

/* Receives are posted before the start, as the program will ask for them. */
static void post_receives(struct litmus_search *p)
{
	const struct litmus_test *test = p->test;
	for (unsigned t = 0; t < test->threads; t++) {
		for (unsigned i = 0; i < test->thread[t].statements; i++) {
			const struct litmus_statement *s = &test->thread[t].statement[i];
			const struct ibv_mr *scratch = p->scratch[test->thread[t].host];
			struct ibv_sge sge = {.addr = (uintptr_t)scratch->addr,
					      .length = (uint32_t)scratch->length,
					      .lkey = scratch->lkey};
			struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
			if (s->op != LITMUS_RECV)
				continue;
			if (s->has_to) {
				sge.addr = (uintptr_t)pmem_base(p->pm) +
					   litmus_range_off(p, &s->to);
				sge.length = 8u * s->to.words;
				sge.lkey = p->mr[test->thread[t].host]->lkey;
			}
			ibv_post_recv(litmus_end_of(&p->running[t], s)->qp, &wr, &bad);
		}
	}
}

static void open_rnics(struct litmus_search *p)
{
	const struct litmus_test *test = p->test;
	struct rnic_net *net = rnic_net_new(p->sim, &test->hw);
	struct ibv_context **verbs = p->verbs;
	struct ibv_pd *pd[LITMUS_HOSTS];
	for (unsigned h = 0; h < test->hosts; h++) {
		verbs[h] = rnic_open(net, h + 1, p->pm);
		pd[h] = rnic_alloc_pd(verbs[h]);
		p->mr[h] = rnic_reg_mr(pd[h], pmem_base(p->pm), test->pool_bytes, ACCESS);
		p->scratch[h] = rnic_reg_mr(pd[h], sim_alloc(p->sim, SCRATCH), SCRATCH,
					    IBV_ACCESS_LOCAL_WRITE);
	}
	open_queue_pairs(p, verbs, pd);
	post_receives(p);
}

/* --- a host that fails alone --- */

void litmus_note_event(struct litmus_search *p)
{
	if (p->test->one_fails)
		dpor_touch(&p->dpor, DPOR_READ, (uintptr_t)&p->failed_alone, 1);
}

/* What is on its way to the dead host, or will be, has no answer: a NIC notices at last. */
static void gives_up(struct sim *sim, void *arg)
{
	struct qp_end *end = arg;
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};
	(void)sim;
	dpor_touch(&end->search->dpor, DPOR_WRITE, (uintptr_t)&end->search->failed_alone, 1);
	rnic_modify_qp(end->qp, &a, IBV_QP_STATE);
}

static void fails(struct sim *sim, void *arg)
{
	struct litmus_search *p = arg;
	const struct litmus_test *test = p->test;
	const unsigned host = test->fails;
	dpor_touch(&p->dpor, DPOR_WRITE, (uintptr_t)&p->failed_alone, 1);
	p->failed_alone = true;
	sim_end_tasks(sim, host + 1);
	for (unsigned l = 0; l < test->locations; l++) {
		const struct litmus_location *at = &test->location[l];
		const uint64_t first = at->off / LINE * LINE;
		if (at->host == host)
			pmem_host_fails(p->pm, first,
					(at->off + 8u * at->words - first + LINE - 1) / LINE * LINE,
					host + 1);
	}
	for (unsigned q = 0; q < test->qps; q++)
		for (unsigned e = 0; e < 2; e++) {
			struct qp_end *end = &p->end[q][e];
			const struct rnic_qp *qp = (const struct rnic_qp *)end->qp;
			if (test->qp[q].host[1 - e] != host)
				continue;
			end->search = p;
			sim_in_chain(sim, chain_name(qp->actor.name_hash, CHAIN_FAILS), 0, gives_up,
				     end);
		}
	if (test->qps)
		rnic_power_off(p->verbs[host]);
}

void litmus_boot(void *arg)
{
	struct litmus_search *p = arg;
	const struct litmus_test *test = p->test;
	if (test->qps)
		open_rnics(p);
	pmem_watch(p->pm);
	sim_source(p->sim, &p->dpor.source);
	if (p->say)
		sim_set_tracer(p->sim, litmus_trace_effect, p);
	sim_set_scheduler(p->sim, &p->dpor.scheduler);
	for (unsigned t = 0; t < test->threads; t++)
		sim_spawn(p->sim, test->thread[t].host + 1u, p->running[t].name, run_thread,
			  &p->running[t]);
	p->failed_alone = false;
	if (test->one_fails)
		sim_in_chain(p->sim, LITMUS_FAILS, 0, fails, p);
}
